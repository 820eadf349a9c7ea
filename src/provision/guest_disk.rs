//! `guest_disk`: a disk of a guest, attached by virtio-blk, NVMe or SCSI and backed by a file on the host.
//!
//! The host lists the disks that a plan's stacks need at the same time, and gives them to the guest ([ADR
//! 36](../../docs/adr/0036-disks-of-a-guest.md)). In the guest, each node takes a free disk of its bus and size, finds
//! it by its serial number and empties it. The only ledger entry is the `used` disk, by that number. Absent on purpose:
//! making files, QEMU.

use super::identity::{BlockDevice, Identity};
use super::ledger::Thing;
use super::sysfs::DeviceNumber;
use super::{Base, Built, Layer, LayerInfo, LayerInput, Site, Unmet, guard, knobs, mount_table, needs, size};
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::time::sleep;
use crate::host::{Host, paths};
use crate::record::guest_disk::{self, BUSES, Bus, DiskKind, GuestDisk};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::stack::StackSpec;
use crate::units::Bytes;
use std::collections::BTreeMap;
use std::path::Path;

pub struct OwnDisk;

pub(crate) const NAME: &str = "guest_disk";
const BUS: &str = "bus";

const USED: &str = "used";

/// The fact by which a disk is found again after its guest was killed.
pub(crate) const SERIAL: &str = "serial";

/// Bus and size that a node asks for.
fn kind(options: &Options) -> Option<DiskKind> {
    let bus = options.text(BUS).map_or(Some(Bus::Virtio), Bus::named)?;
    Some(DiskKind { bus, size: options.size(NAME)? })
}

/// Disks that a guest needs so that each of these stacks can stand in it: those of the largest stack, plus those of
/// every stack that is kept for all its trials.
pub fn needed<'a>(stacks: impl Iterator<Item = &'a StackSpec>) -> Vec<GuestDisk> {
    let (mut most, mut kept) = (BTreeMap::new(), BTreeMap::new());
    let mut seen: Vec<&StackSpec> = Vec::new();
    for stack in stacks {
        if seen.contains(&stack) {
            continue;
        }
        seen.push(stack);
        let mut own: BTreeMap<DiskKind, usize> = BTreeMap::new();
        for kind in stack.nodes.iter().filter(|node| node.layer == NAME).filter_map(|node| kind(&node.options)) {
            *own.entry(kind).or_default() += 1;
        }
        for (kind, count) in own {
            let known = if stack.reuse { &mut kept } else { &mut most }.entry(kind).or_insert(0);
            *known = if stack.reuse { *known + count } else { count.max(*known) };
        }
    }
    let all = most.into_iter().chain(kept).flat_map(|(kind, count)| std::iter::repeat_n(kind, count));
    let mut kinds: Vec<DiskKind> = all.collect();
    kinds.sort_unstable();
    guest_disk::numbered(&kinds)
}

pub(super) const INFO: LayerInfo = LayerInfo::device(
    NAME,
    "A disk of the guest that the plan runs in (--guest): virtio-blk, NVMe or SCSI, on a sparse file of the host.",
    &[
        OptionSpec::required(NAME, OptionKind::Size).doc("Size of the disk, in whole MiB; the host's file is sparse."),
        OptionSpec::with_default(BUS, OptionKind::OneOf(BUSES), "virtio")
            .doc("How it is attached: \"nvme\" and \"scsi\" have FUA, \"virtio\" does not."),
        knobs::QUEUE,
    ],
)
// The contents are erased when the disk is claimed again, or go with the guest.
.undone_by(&[(USED, |_, _| Ok(()))]);

impl Layer for OwnDisk {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        size::check(options, NAME, size::is_in_mib, "the size must be a multiple of 1 MiB")
    }

    fn unmet(&self, host: &Host, options: &Options) -> Vec<Unmet> {
        let lacking = match (list(host), kind(options)) {
            (None, _) => Some(Unmet {
                what: "a guest: these disks exist only there".to_owned(),
                hint: "run the plan with --guest".to_owned(),
            }),
            (Some(disks), Some(kind)) if disks.iter().all(|disk| disk.kind != kind) => Some(Unmet {
                what: format!("a disk of {} on {} of this guest", kind.size, kind.bus.name()),
                hint: "`pgstrata run PLAN --guest`, outside, gives the guest the disks of the plan".to_owned(),
            }),
            _ => None,
        };
        let programs = ["blkdiscard", "wipefs"].into_iter().filter_map(|name| needs::program(host, name, "util-linux"));
        needs::root().into_iter().chain(lacking).chain(programs).collect()
    }

    fn build(&self, site: &Site<'_>, _inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let kind = kind(options).ok_or_else(|| Error::bug("a disk of a guest without a size"))?;
        let taken = taken(site);
        let all = list(site.host).ok_or_else(|| Error::host("this is no guest").hint("run the plan with --guest"))?;
        let free = all.into_iter().find(|disk| disk.kind == kind && !taken.contains(&disk.serial));
        let disk = free.ok_or_else(|| {
            Error::host(format!("this guest has no further disk of {} on {}", kind.size, kind.bus.name()))
        })?;
        let device = claim(site, &disk)?;
        empty(site.host, &device)?;
        Ok(built(site.host, device, &disk))
    }

    /// Takes the disk that it had before its guest was killed.
    fn reopen(&self, site: &Site<'_>, _inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let kind = kind(options).ok_or_else(|| Error::bug("a disk of a guest without a size"))?;
        let serial = site.image.and_then(Path::to_str);
        let serial =
            serial.ok_or_else(|| Error::user("a disk of a guest cannot be opened again without its serial"))?;
        let listed = list(site.host).unwrap_or_default().into_iter();
        let disk = listed.filter(|disk| disk.kind == kind).find(|disk| disk.serial == serial);
        let disk = disk.ok_or_else(|| Error::host(format!("this guest has no disk with the serial {serial}")))?;
        Ok(built(site.host, claim(site, &disk)?, &disk))
    }
}

/// The disks of this guest; `None` outside of one.
fn list(host: &Host) -> Option<Vec<GuestDisk>> {
    host.read_optional(guest_disk::LIST).map(|text| guest_disk::listed(&text))
}

/// Serial numbers of the disks in use by stacks of this run. Disks held before the guest was killed do not count.
fn taken(site: &Site<'_>) -> Vec<String> {
    let boot = knobs::boot(site.host);
    let things = site.ledger.open_things().into_iter().map(|(_, thing)| thing);
    let ours = things.filter(|thing| thing.owner == NAME && thing.mark("boot").is_ok_and(|mark| mark == boot));
    ours.filter_map(|thing| thing.mark(SERIAL).ok().map(str::to_owned)).collect()
}

/// Finds the disk, which must match the host's list and be unused, and enters it into the ledger.
fn claim(site: &Site<'_>, disk: &GuestDisk) -> Result<BlockDevice> {
    let (host, serial) = (site.host, &disk.serial);
    let device = await_device(site, serial)?;
    let shown = device.path.display();
    let bus = bus(host, device.node);
    if bus != Some(disk.kind.bus) {
        let bus = bus.map_or("unknown", Bus::name);
        return Err(Error::host(format!("{shown} ({serial}) was to be on {}, its bus is {bus}", disk.kind.bus.name())));
    }
    let size = Identity::of(host, device.node).size_bytes.map(Bytes);
    if size != Some(disk.kind.size) {
        let size = size.map_or_else(|| "unknown".to_owned(), |size| size.to_string());
        return Err(Error::host(format!("{shown} ({serial}) was to have {}, its size is {size}", disk.kind.size)));
    }
    guard::refuse_any(&guard::uses(host, &device)?, &format!("{shown} ({serial}) is in use"))?;
    let used = Thing::new(NAME, USED).with(SERIAL, serial.as_str()).with("boot", knobs::boot(host));
    site.ledger.enter(used)?;
    Ok(device)
}

/// The device with this serial number; a driver may take a moment to show it after boot.
fn await_device(site: &Site<'_>, serial: &str) -> Result<BlockDevice> {
    for _ in 0..mount_table::BUSY_TRIES {
        site.interrupt.check()?;
        let mut found = site.host.names_in("/sys/block");
        found.retain(|name| {
            let node = DeviceNumber::named(site.host, name);
            node.is_some_and(|node| Identity::of(site.host, node).serial.as_deref() == Some(serial))
        });
        match found.as_slice() {
            [name] if paths::exists(&Path::new("/dev").join(name)) => {
                return BlockDevice::find(&Path::new("/dev").join(name));
            }
            [] | [_] => sleep(mount_table::BUSY_PAUSE),
            several => return Err(Error::host(format!("{} have the serial {serial}", several.join(" and ")))),
        }
    }
    Err(Error::host(format!("the kernel shows no disk with the serial {serial}")))
}

/// Bus of the device according to the kernel.
fn bus(host: &Host, node: DeviceNumber) -> Option<Bus> {
    let subsystem = paths::resolved(&host.path(node.path_of("device/subsystem")));
    match subsystem.file_name()?.to_str()? {
        // The controller may belong to one namespace, or be shared by several.
        "nvme" | "nvme-subsystem" => Some(Bus::Nvme),
        name => Bus::named(name),
    }
}

/// Empties the disk with a discard, which also frees the host's space. Writes zeros if that fails, or if a signature or
/// nonzero bytes remain at spots across the disk.
fn empty(host: &Host, device: &BlockDevice) -> Result<()> {
    let discarded = host.run(&Command::new("blkdiscard").arg(&device.path)).is_ok();
    if discarded && left_on(host, device)?.is_empty() {
        return Ok(());
    }
    host.run(&Command::new("blkdiscard").arg("--zeroout").arg(&device.path))?;
    let shown = device.path.display();
    guard::refuse_any(&left_on(host, device)?, &format!("{shown} was emptied, but still contains"))
}

fn left_on(host: &Host, device: &BlockDevice) -> Result<Vec<String>> {
    let mut left = guard::contents(host, device)?;
    left.extend(guard::unknown_bytes(host, device)?);
    Ok(left)
}

/// The base that a claimed disk provides.
fn built(host: &Host, device: BlockDevice, disk: &GuestDisk) -> Built {
    let details = [
        ("device", device.path.display().to_string()),
        (SERIAL, disk.serial.clone()),
        ("size", disk.kind.size.to_string()),
        (BUS, disk.kind.bus.name().to_owned()),
        ("write cache", device.node.shown(host, "queue/write_cache")),
        ("FUA", device.node.shown(host, "queue/fua")),
        ("logical block", device.node.shown(host, "queue/logical_block_size")),
        ("largest atomic write", device.node.shown(host, "queue/atomic_write_unit_max_bytes")),
        ("largest discard", device.node.shown(host, "queue/discard_max_bytes")),
    ];
    Built::one(Base::Device(device.path), details)
}

#[cfg(test)]
mod tests;

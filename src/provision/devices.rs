//! Finds the block devices below a folder and reads their facts from sysfs.
//!
//! Walks down from the filesystem's device: partitions to their disk, loop devices to the device that holds their file,
//! device mapper and md through `slaves/`, btrfs to all its members, ZFS to the devices of the pool, overlays to the
//! filesystem of their upper folder. If the walk ends early, it reports the reason.

use super::identity::{BlockDevice, Identity, turns_per_minute};
use super::sysfs::{self, DeviceNumber};
use super::{mount, mount_table, zfs_tools};
use crate::error::Result;
use crate::host::{Host, paths};
use crate::parse::diskstats;
use crate::parse::mountinfo::Mount;
use crate::record::claim::{Claim, Promise};
use crate::record::facts::{DeviceFacts, WriteCache};
use crate::record::promise;
use crate::record::stack::Role;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Columns of a line in `/proc/diskstats` that counts flushes (Documentation/admin-guide/iostats.rst: three that name
/// the device, 17 counters since Linux 5.5).
const COLUMNS_WITH_FLUSHES: usize = 20;

/// No real stack is deeper; a loop in a fake or broken tree ends here.
const DEEPEST: u32 = 16;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct DevicesBelow {
    /// The devices, the filesystem's own first.
    pub devices: Vec<DeviceFacts>,
    /// For each device, the indices of those it stands on.
    pub on: Vec<Vec<usize>>,
    /// Role of a device in its pool, by index.
    pub roles: BTreeMap<usize, Role>,
    /// Where the walk ended above a device that stands on nothing, and mounts on the way that hold flushes back.
    pub ends: Vec<WayEnd>,
}

impl DevicesBelow {
    /// The devices that a sync reaches: for a pool with a separate intent log those of the log, and never a read cache.
    pub fn reached_by_a_sync(self) -> Vec<DeviceFacts> {
        let has_log = self.roles.values().any(|role| *role == Role::Log);
        let places = self.roles.keys().copied();
        let (passed, reached): (Vec<usize>, Vec<usize>) = places.partition(|place| match self.roles[place] {
            role if has_log => role != Role::Log,
            role => role == Role::Cache,
        });
        let (passed, reached) = (self.closed(passed), self.closed(reached));
        let kept = (0..self.devices.len()).filter(|place| reached.contains(place) || !passed.contains(place));
        kept.map(|place| self.devices[place].clone()).collect()
    }

    /// The given devices and all that lie below them, as indices.
    fn closed(&self, mut places: Vec<usize>) -> Vec<usize> {
        let mut next = 0;
        while let Some(place) = places.get(next).copied() {
            next += 1;
            let below = self.on[place].iter().filter(|below| !places.contains(below)).copied().collect::<Vec<_>>();
            places.extend(below);
        }
        places
    }
}

/// Limit of what can be seen, or of what flushes reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayEnd {
    /// The device below which nothing can be seen, or no flush passes; `None` for the folder itself.
    pub under: Option<usize>,
    /// Reason: the walk ended in memory, nothing more can be seen, or a mount below sends no flushes.
    pub promise: Promise,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tops {
    /// Indices of the devices of its filesystem.
    pub devices: Vec<usize>,
    /// Reason why there are none.
    pub ends: Vec<WayEnd>,
}

/// The block devices below a folder or file, with the reasons if the walk down ends early. Depth 0 is the device of its
/// filesystem. No devices for filesystems without one, and none without a mount table (`/proc` is not mounted, or the
/// system is not Linux).
///
/// # Errors
/// When the folder does not exist or the mount table cannot be read.
pub fn below(host: &Host, folder: &Path) -> Result<DevicesBelow> {
    if !host.exists(mount_table::TABLE) {
        paths::resolve(folder)?;
        let promise = Promise::new(Claim::HiddenBelow, format!("there is no mount table ({})", mount_table::TABLE));
        return Ok(DevicesBelow { ends: vec![WayEnd { under: None, promise }], ..DevicesBelow::default() });
    }
    let mut walk = DeviceWalk::new(host)?;
    walk.folder(folder)?;
    Ok(walk.below)
}

/// A walk down from any number of folders and devices; a device that several of them share is visited once.
pub(super) struct DeviceWalk<'a> {
    host: &'a Host,
    table: Vec<Mount>,
    /// Found so far.
    pub below: DevicesBelow,
    overlays: u32,
}

impl<'a> DeviceWalk<'a> {
    /// # Errors
    /// When the mount table cannot be read.
    pub fn new(host: &'a Host) -> Result<DeviceWalk<'a>> {
        Ok(DeviceWalk { host, table: mount_table::table(host)?, below: DevicesBelow::default(), overlays: 0 })
    }

    /// Walks down from a folder or file.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn folder(&mut self, folder: &Path) -> Result<Tops> {
        let known = self.below.ends.len();
        let devices = self.file(&paths::resolve(folder)?, 0, None);
        let ends = self.below.ends[known..].iter().filter(|end| end.under.is_none()).cloned().collect();
        Ok(Tops { devices, ends })
    }

    /// Walks down from a block device. Returns its index.
    pub fn node(&mut self, node: DeviceNumber) -> usize {
        self.device(node, 0)
    }

    /// The devices of the filesystem that holds `path`.
    fn file(&mut self, path: &Path, depth: u32, under: Option<usize>) -> Vec<usize> {
        let mount = match mount_table::holding(&self.table, path) {
            Ok(mount) => mount,
            Err(e) => {
                let promise = Promise::new(Claim::HiddenBelow, e.to_string());
                self.below.ends.push(WayEnd { under, promise });
                return Vec::new();
            }
        };
        let nodes = devices_of(self.host, mount);
        // The options of the folder's own mount are recorded with its own node.
        if under.is_some() || depth > 0 || self.overlays > 0 {
            let of_mount = promise::of_mount(&mount::facts(self.host, mount)).into_iter();
            let held = of_mount.filter(|promise| promise.claim == Claim::HoldsFlushesBack);
            let named = held.map(|it| Promise { source: format!("{} at {}", it.source, mount.target), ..it });
            self.below.ends.extend(named.map(|promise| WayEnd { under, promise }));
        }
        // An overlay is not a device: the filesystem of its upper folder takes its place.
        match upper_folder(mount).filter(|_| self.overlays < DEEPEST) {
            Some(upper) => {
                self.overlays += 1;
                self.file(&upper, depth, under)
            }
            None if nodes.is_empty() && mount.fstype == "zfs" => {
                let (source, target) = (mount.source.clone(), mount.target.clone());
                self.pool(&source, &target, depth, under)
            }
            None if nodes.is_empty() => {
                let promise = promise::of_end(&mount.target, &mount.fstype);
                self.below.ends.push(WayEnd { under, promise });
                Vec::new()
            }
            None => nodes.into_iter().map(|node| self.device(node, depth)).collect(),
        }
    }

    /// The devices of a dataset's pool; the dataset is mounted on `target`.
    fn pool(&mut self, dataset: &str, target: &str, depth: u32, under: Option<usize>) -> Vec<usize> {
        let found = zfs_tools::devices_of_pool(self.host, dataset).unwrap_or_default();
        if found.is_empty() || depth > DEEPEST {
            self.below.ends.push(WayEnd { under, promise: promise::of_end(target, "zfs") });
            return Vec::new();
        }
        let mut tops = Vec::new();
        for (path, role) in found {
            let path = Path::new(&path);
            let places = match BlockDevice::find(path) {
                Ok(device) => vec![self.device(device.node, depth)],
                // A pool may stand on a file.
                Err(_) => self.file(path, depth + 1, under),
            };
            self.below.roles.extend(places.iter().map(|place| (*place, role)));
            tops.extend(places);
        }
        tops
    }

    fn device(&mut self, node: DeviceNumber, depth: u32) -> usize {
        let mut known = self.below.devices.iter();
        if let Some(known) = known.position(|facts| (facts.major, facts.minor) == (node.major, node.minor)) {
            return known;
        }
        let place = self.below.devices.len();
        self.below.devices.push(facts(self.host, node, depth));
        self.below.on.push(Vec::new());
        if depth > DEEPEST {
            return place;
        }
        let on = if let Some(disk) = node.whole_disk(self.host) {
            vec![self.device(disk, depth + 1)]
        } else if let Some(file) = node.backing_file(self.host) {
            // A loop device may stand on a block device instead of a file.
            match BlockDevice::find(Path::new(&file)) {
                Ok(device) => vec![self.device(device.node, depth + 1)],
                Err(_) => self.file(Path::new(&file), depth + 1, Some(place)),
            }
        } else {
            let slaves = node.slaves(self.host).into_iter().map(|slave| self.device(slave, depth + 1)).collect();
            self.with_hidden_paths(node, depth + 1, slaves)
        };
        // In a broken tree a device may stand on itself.
        self.below.on[place] = on.into_iter().filter(|below| *below != place).collect();
        self.below.devices[place].stands_on_nothing = Some(self.below.on[place].is_empty());
        place
    }

    /// Adds the paths behind a multipath device.
    fn with_hidden_paths(&mut self, node: DeviceNumber, depth: u32, mut on: Vec<usize>) -> Vec<usize> {
        for name in node.hidden_paths(self.host) {
            self.below.devices.push(hidden(self.host, &name, depth));
            self.below.on.push(Vec::new());
            on.push(self.below.devices.len() - 1);
        }
        on
    }
}

/// The devices of a mounted filesystem: by its device number, or, for one with an anonymous number (btrfs, fuseblk), by
/// its source and the source's companions.
fn devices_of(host: &Host, mount: &Mount) -> Vec<DeviceNumber> {
    let own = DeviceNumber { major: mount.major, minor: mount.minor };
    if own.exists(host) {
        return vec![own];
    }
    let Some(name) = kernel_name(host, &mount.source) else { return Vec::new() };
    let members = sysfs::btrfs_devices(host, &name);
    let names = if mount.fstype == "btrfs" && !members.is_empty() { members } else { vec![name] };
    names.iter().filter_map(|name| DeviceNumber::named(host, name)).collect()
}

/// Resolves `/dev/mapper/vg-pg` to `dm-0`.
fn kernel_name(host: &Host, source: &str) -> Option<String> {
    let real = paths::resolved(&host.path(source));
    source.starts_with("/dev/").then(|| real.file_name())?.map(|name| name.to_string_lossy().into_owned())
}

/// The folder that an overlay writes into, if this process can see it. A container sees the folder's name from outside,
/// which may be another folder here, so it must be one made by an overlay, next to its work folder.
fn upper_folder(mount: &Mount) -> Option<PathBuf> {
    let [upper, work] =
        ["upperdir=", "workdir="].map(|name| mount.super_options.iter().find_map(|option| option.strip_prefix(name)));
    let upper = PathBuf::from(upper.filter(|_| mount.fstype == "overlay")?);
    let work = Path::new(work?).join("work");
    let here = upper.is_absolute() && paths::is_folder(&upper) && paths::is_folder(&work);
    here.then(|| paths::resolve(&upper).ok()).flatten()
}

/// Facts from sysfs about a device without a number.
fn hidden(host: &Host, name: &str, depth: u32) -> DeviceFacts {
    let folder = format!("/sys/class/block/{name}");
    let read = |attribute: &str| host.read_optional(format!("{folder}/{attribute}")).filter(|text| !text.is_empty());
    let counted = counted_before(read("stat"));
    DeviceFacts {
        depth,
        name: name.to_owned(),
        size_bytes: read("size").and_then(|sectors| Some(sectors.parse::<u64>().ok()?.saturating_mul(512))),
        wwn: read("wwid"),
        rotational: read("queue/rotational").and_then(|text| sysfs::truth(&text)),
        write_cache: read("queue/write_cache").and_then(|text| write_cache(&text)),
        fua: read("queue/fua").and_then(|text| sysfs::truth(&text)),
        scheduler: read("queue/scheduler").map(|text| sysfs::chosen(&text).to_owned()),
        stands_on_nothing: Some(true),
        counts_flushes: counted.map(|(_, flushes)| flushes.is_some()),
        has_queue: Some(host.exists(format!("{folder}/mq"))),
        writes_before: counted.map(|(writes, _)| writes),
        flushes_before: counted.and_then(|(_, flushes)| flushes),
        ..DeviceFacts::default()
    }
}

/// Writes and flushes that a device has counted so far.
fn counted_before(stat: Option<String>) -> Option<(u64, Option<u64>)> {
    let stat = diskstats::parse_stat(&stat?).ok()?;
    Some((stat.writes, stat.flushes))
}

/// Facts from sysfs about one device. A partition shares its disk's queue.
fn facts(host: &Host, node: DeviceNumber, depth: u32) -> DeviceFacts {
    let partition = node.is_partition(host);
    let counted = counted_before(node.attribute(host, "stat"));
    let identity = Identity::of(host, node);
    DeviceFacts {
        depth,
        name: node.name(host).unwrap_or_else(|| format!("{}:{}", node.major, node.minor)),
        major: node.major,
        minor: node.minor,
        size_bytes: identity.size_bytes,
        model: identity.model,
        firmware: firmware(host, node),
        serial: identity.serial,
        wwn: identity.wwn,
        rotational: queue(host, node, "rotational").and_then(|text| sysfs::truth(&text)),
        rpm: node.bytes(host, "device/vpd_pgb1").and_then(|page| turns_per_minute(&page)),
        write_cache: queue(host, node, "write_cache").and_then(|text| write_cache(&text)),
        fua: queue(host, node, "fua").and_then(|text| sysfs::truth(&text)),
        logical_block_bytes: queue_number(host, node, "logical_block_size"),
        physical_block_bytes: queue_number(host, node, "physical_block_size"),
        scheduler: queue(host, node, "scheduler").map(|text| sysfs::chosen(&text).to_owned()),
        nr_requests: queue_number(host, node, "nr_requests"),
        read_ahead_kb: queue_number(host, node, "read_ahead_kb"),
        discard_max_bytes: queue_number(host, node, "discard_max_bytes"),
        atomic_write_unit_min_bytes: queue_number(host, node, "atomic_write_unit_min_bytes"),
        atomic_write_unit_max_bytes: queue_number(host, node, "atomic_write_unit_max_bytes"),
        backing_file: node.backing_file(host),
        direct_io: node.flag(host, "loop/dio"),
        stands_on_nothing: None,
        counts_flushes: counts_flushes(host, node).map(|counted| counted && !partition),
        has_queue: (!partition && queue(host, node, "write_cache").is_some()).then(|| node.has_queue(host)),
        writes_before: counted.map(|(writes, _)| writes),
        flushes_before: counted.and_then(|(_, flushes)| flushes).filter(|_| !partition),
    }
}

/// An attribute of a device's queue.
fn queue(host: &Host, node: DeviceNumber, name: &str) -> Option<String> {
    let of_disk = || node.is_partition(host).then(|| node.attribute(host, &format!("../queue/{name}"))).flatten();
    node.attribute(host, &format!("queue/{name}")).or_else(of_disk)
}

fn queue_number<T: std::str::FromStr>(host: &Host, node: DeviceNumber, name: &str) -> Option<T> {
    queue(host, node, name)?.parse().ok()
}

/// Firmware revision, if the driver shows it: NVMe, then SCSI and SATA. A partition has its disk's.
fn firmware(host: &Host, node: DeviceNumber) -> Option<String> {
    node.whole_disk(host).unwrap_or(node).first_of(host, &["device/firmware_rev", "device/rev"])
}

fn write_cache(text: &str) -> Option<WriteCache> {
    [WriteCache::WriteBack, WriteCache::WriteThrough].into_iter().find(|cache| cache.word() == text)
}

/// True if the device counts flushes; `None` if it has no line of counters.
fn counts_flushes(host: &Host, node: DeviceNumber) -> Option<bool> {
    let table = host.read_optional("/proc/diskstats")?;
    let own = [node.major.to_string(), node.minor.to_string()];
    let line = table.lines().find(|line| line.split_whitespace().take(2).eq(own.iter().map(String::as_str)))?;
    Some(line.split_whitespace().count() >= COLUMNS_WITH_FLUSHES)
}

#[cfg(test)]
mod tests;

//! `md`: Linux software RAID, with or without a write journal.
//!
//! Ledger entries: each `member`, by the array's UUID, which we choose; then the `array`. Undoing stops any array with
//! that UUID and wipes the superblock with that UUID from each device. The metadata format is 1.2.
//!
//! The build waits for the first resync: until it is complete, parity is not yet consistent for later writes, and the
//! resync would be measured. `assume_clean` skips it: the speed is the same, but there is no redundancy.

mod options;
#[cfg(test)]
mod tests;

use super::by_hand::{self, Script};
use super::identity::BlockDevice;
use super::ledger::Thing;
use super::sysfs::{self, DeviceNumber};
use super::{
    Base, Built, Details, Layer, LayerInfo, LayerInput, Site, Unmet, devices_for, filesystem, guard, kernel_module,
    mapper, mount_table, needs, total,
};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::command::Command;
use crate::host::time::sleep;
use crate::parse::mdadm;
use crate::record::options::{OptionProblem, Options};
use crate::record::stack::{Role, Take};
use crate::units::Bytes;
use options::Level;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub struct Md;

pub(super) const INFO: LayerInfo = LayerInfo::device(
    "md",
    "Linux software RAID, levels 0, 1, 5, 6 and 10; the build waits for the first resync.",
    options::OPTIONS,
)
.on(&[
    Take { least: 2, most: 64, doc: "The member devices; default: all that are still unused.", ..Take::ONE_DEVICE },
    Take {
        role: Role::Log,
        key: "journal",
        least: 0,
        doc: "Device for a write journal (levels 5 and 6).",
        ..Take::ONE_DEVICE
    },
])
.undone_by(&[
    (ARRAY, |host, thing| stop(host, thing.mark("uuid")?)),
    (MEMBER, |host, thing| {
        // udev may have reassembled the array, or a build may have died before its array had a UUID.
        stop_on(host, Path::new(thing.mark("device")?), thing.mark("uuid")?)?;
        filesystem::wipe(host, thing)
    }),
]);

impl Layer for Md {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        options::check(options)
    }

    fn keeps_pages(&self, options: &Options) -> bool {
        // The other levels write parity.
        matches!(options.integer("level"), Some(0 | 1 | 10))
    }

    fn unmet(&self, host: &Host, options: &Options) -> Vec<Unmet> {
        let programs = needs::programs(host, &[("mdadm", "mdadm"), ("wipefs", "util-linux")]);
        let kernel = match Level::of(options) {
            Some(level) => {
                kernel_module::unmet(host, &format!("md RAID level {}", level.number), level.module, |host| {
                    let known = host.read_optional(MDSTAT).unwrap_or_default();
                    known.contains(&format!("[{}]", level.name))
                })
            }
            None => kernel_module::unmet(host, "md RAID", "md-mod", |host| host.exists(MDSTAT)),
        };
        needs::root().into_iter().chain(programs).chain(kernel).collect()
    }

    fn capacity(&self, options: &Options, data: &[Bytes]) -> Option<Bytes> {
        let least = data.iter().map(|bytes| bytes.0).min()?;
        let count = data.len() as u64;
        Some(Bytes(match Level::of(options)?.number {
            0 => total(data).0,
            1 => least,
            10 => least.saturating_mul(count) / 2,
            5 => least.saturating_mul(count.saturating_sub(1)),
            _ => least.saturating_mul(count.saturating_sub(2)),
        }))
    }

    fn build(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let level = Level::of(options).ok_or_else(|| Error::bug("an array without a level"))?;
        let (data, journal) = (devices_for(inputs, Role::Data), devices_for(inputs, Role::Log));
        options::check_members(level, options, data.len(), !journal.is_empty())?;
        kernel_module::load(site.host, level.module, &[])?;
        let uuid = filesystem::new_uuid(site.host)?;
        for device in data.iter().chain(&journal) {
            site.ledger.enter(Thing::new("md", MEMBER).with_path("device", device)?.with("uuid", &uuid))?;
        }
        let name = enter_array(site, &uuid)?;
        site.host.run(&create(&name, &uuid, inputs, options, level))?;
        let array = find(site.host, &uuid)?;
        if level.number != 0 && !options.boolean("assume_clean").unwrap_or(false) {
            wait_for_resync(site, array)?;
        }
        // The journal is written back only if no member is missing, and one is missing until the first resync of level
        // 5.
        options::set(site.host, array, options)?;
        let details = facts(site.host, array)?;
        options::verify(level, options, data.len(), !journal.is_empty(), &details)?;
        Ok(Built::one(Base::Device(path_of(site.host, array)?), details))
    }

    fn by_hand(&self, script: &mut Script, inputs: &[LayerInput], options: &Options) -> Result<Vec<Base>> {
        let level = Level::of(options).ok_or_else(|| Error::bug("an array without a level"))?;
        let (name, uuid) = (script.name(), script.new_uuid());
        script.run(&create(&name, &uuid, inputs, options, level));
        // Without udev nothing makes the link in `/dev/md`.
        let member = by_hand::word(filesystem::text(devices_for(inputs, Role::Data)[0])?);
        let path = script.computed("ARRAY", &format!("/dev/$(ls \"$(sysfs {member} holders)\")"));
        if level.number != 0 {
            script.remark("Waits for the first resync, if there is one.");
            script.line(format!("{} || true", by_hand::shown(&Command::new("mdadm").args(["--wait", &path]))));
        }
        for (file, value) in options::settings(options) {
            script.set_of_device(&path, file, &value);
        }
        script.remark("For the next boot: mdadm --detail --brief on it, appended to /etc/mdadm/mdadm.conf.");
        script.read(&Command::new("mdadm").args(["--detail", &path]));
        Ok(vec![Base::Device(path.into())])
    }

    fn reopen(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let level = Level::of(options).ok_or_else(|| Error::bug("an array without a level"))?;
        let (data, journal) = (devices_for(inputs, Role::Data), devices_for(inputs, Role::Log));
        kernel_module::load(site.host, level.module, &[])?;
        let uuid = uuid_on(site.host, data[0])?;
        let name = enter_array(site, &uuid)?;
        // udev may have assembled it already, under a name of its own.
        stop(site.host, &uuid)?;
        let assemble = Command::new("mdadm").arg("--assemble").arg(format!("/dev/md/{name}")).arg("--run");
        site.host.run(&assemble.args(&data).args(&journal))?;
        let array = find(site.host, &uuid)?;
        options::set(site.host, array, options)?;
        let details = facts(site.host, array)?;
        options::verify(level, options, data.len(), !journal.is_empty(), &details)?;
        Ok(Built::one(Base::Device(path_of(site.host, array)?), details))
    }

    /// Checks that no member is missing.
    fn finish(&self, host: &Host, _options: &Options, details: &mut Details) -> Result<()> {
        let Some(uuid) = details.get("uuid") else { return Ok(()) };
        let array = find(host, uuid)?;
        details.extend(facts(host, array)?);
        match details.get("degraded").map(String::as_str) {
            None | Some("0") => Ok(()),
            Some(lost) => Err(Error::host(format!("the array lacks {lost} of its members"))),
        }
    }
}

/// RAID levels of the running kernel, and arrays.
const MDSTAT: &str = "/proc/mdstat";

/// Ledger kind of a device with our superblock.
const MEMBER: &str = "member";
/// Ledger kind of a running array.
const ARRAY: &str = "array";

/// Enters an array into the ledger; returns its name.
fn enter_array(site: &Site<'_>, uuid: &str) -> Result<String> {
    let name = mapper::short_name(site);
    site.ledger.enter(Thing::new("md", ARRAY).with("name", &name).with("uuid", uuid))?;
    Ok(name)
}

fn create(name: &str, uuid: &str, inputs: &[LayerInput], options: &Options, level: Level) -> Command {
    let (data, journal) = (devices_for(inputs, Role::Data), devices_for(inputs, Role::Log));
    Command::new("mdadm")
        .args(["--create", &format!("/dev/md/{name}")])
        .args(["--run", "--metadata=1.2", &format!("--name={name}"), &format!("--uuid={uuid}")])
        .args(options::arguments(level, options, data.len()))
        .args(journal.iter().flat_map(|device| [Path::new("--write-journal"), device]))
        .args(&data)
}

/// All arrays of the machine, running or not.
fn arrays(host: &Host) -> Vec<DeviceNumber> {
    let names = host.names_in("/sys/block").into_iter().filter(|name| host.exists(format!("/sys/block/{name}/md")));
    names.filter_map(|name| DeviceNumber::named(host, &name)).collect()
}

fn path_of(host: &Host, array: DeviceNumber) -> Result<PathBuf> {
    array.device_file(host).ok_or_else(|| Error::host(format!("the array {}:{} is gone", array.major, array.minor)))
}

/// Hexadecimal digits of a UUID, regardless of grouping.
fn digits(uuid: &str) -> String {
    uuid.chars().filter(char::is_ascii_hexdigit).collect()
}

/// True if an array has this UUID. One that is not running does not report it.
fn has_uuid(host: &Host, array: DeviceNumber, uuid: &str) -> bool {
    let detail = path_of(host, array)
        .and_then(|path| host.run(&Command::new("mdadm").args(["--detail", "--export"]).arg(path)))
        .and_then(|printed| mdadm::parse_export(&printed.stdout));
    detail.is_ok_and(|fields| digits(&fields["MD_UUID"]) == digits(uuid))
}

fn find(host: &Host, uuid: &str) -> Result<DeviceNumber> {
    let found = arrays(host).into_iter().find(|array| has_uuid(host, *array, uuid));
    found.ok_or_else(|| Error::tool(format!("no array has the UUID {uuid} after mdadm")))
}

/// UUID of the array that a device is a member of.
fn uuid_on(host: &Host, path: &Path) -> Result<String> {
    let member = guard::signature(host, path, "linux_raid_member")?;
    let uuid = member.and_then(|signature| signature.uuid);
    uuid.ok_or_else(|| Error::host(format!("{} is not a member of an array", path.display())))
}

fn stop(host: &Host, uuid: &str) -> Result<()> {
    stop_all(host, || arrays(host).into_iter().filter(|array| has_uuid(host, *array, uuid)).collect())
}

/// Stops the array on a device that has a superblock with this UUID.
fn stop_on(host: &Host, path: &Path, uuid: &str) -> Result<()> {
    let Ok(device) = BlockDevice::find(path) else { return Ok(()) };
    if uuid_on(host, path).is_ok_and(|found| digits(&found) == digits(uuid)) {
        return stop_all(host, || {
            arrays(host).into_iter().filter(|array| array.slaves(host).contains(&device.node)).collect()
        });
    }
    Ok(())
}

fn stop_all(host: &Host, left: impl Fn() -> Vec<DeviceNumber>) -> Result<()> {
    mount_table::until_gone(host, || {
        let Some(array) = left().into_iter().next() else { return Ok(None) };
        let path = path_of(host, array)?;
        guard::refuse_mounted(host, &BlockDevice::find(&path)?)?;
        Ok(Some(Command::new("mdadm").arg("--stop").arg(&path)))
    })
}

/// Pause between two checks of a resync.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Number of checks that find an array neither resyncing nor in sync before that is an error: 30 s.
const IDLE_LOOKS: u32 = 300;
/// KiB/s, more than any device reaches: nothing else uses the array yet.
const FULL_SPEED: &str = "100000000";

/// Waits until every member is in sync.
fn wait_for_resync(site: &Site<'_>, array: DeviceNumber) -> Result<()> {
    set_speed(site.host, array, FULL_SPEED)?;
    let mut idle = 0;
    while idle < IDLE_LOOKS {
        site.interrupt.check()?;
        let [action, degraded, start] =
            ["sync_action", "degraded", "resync_start"].map(|name| array.attribute(site.host, &format!("md/{name}")));
        let is_idle = action.as_deref() == Some("idle");
        if is_idle && degraded.as_deref() == Some("0") && start.is_none_or(|start| start == "none") {
            return set_speed(site.host, array, "system");
        }
        idle = if is_idle { idle + 1 } else { 0 };
        sleep(LOOK_EVERY);
    }
    Err(Error::host("the array does not start its first resync")
        .hint("look at /proc/mdstat and the kernel's log; a member may have failed"))
}

/// Sets the speed of a resync.
fn set_speed(host: &Host, array: DeviceNumber, value: &str) -> Result<()> {
    ["md/sync_speed_max", "md/sync_speed_min"].iter().try_for_each(|name| host.write(array.path_of(name), value))
}

/// Files below `md/` of an array and their names among the facts.
const FACTS: &[(&str, &str)] = &[
    ("level", "level"),
    ("raid_disks", "members"),
    ("chunk_size", "chunk size"),
    ("layout", "layout"),
    ("metadata_version", "metadata version"),
    ("consistency_policy", "consistency policy"),
    ("bitmap/location", "bitmap location"),
    ("journal_mode", "journal mode"),
    ("stripe_cache_size", "stripe cache"),
    ("sync_action", "sync action"),
    ("degraded", "degraded"),
    ("component_size", "component size in KiB"),
];

fn facts(host: &Host, array: DeviceNumber) -> Result<Details> {
    let path = path_of(host, array)?;
    let printed = host.run(&Command::new("mdadm").args(["--detail", "--export"]).arg(&path))?;
    let uuid = mdadm::parse_export(&printed.stdout)?.remove("MD_UUID").unwrap_or_default();
    let shown = FACTS.iter().filter_map(|(file, name)| Some((*name, array.attribute(host, &format!("md/{file}"))?)));
    let shown = shown.map(|(name, value)| (name, sysfs::chosen(&value).to_owned()));
    let all = shown.chain([("uuid", uuid), ("device", path.display().to_string())]);
    Ok(all.map(|(name, value)| (name.to_owned(), value)).collect())
}

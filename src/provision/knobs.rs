//! Kernel knobs: values of a block device or of the whole machine, set for a trial and restored afterwards.
//!
//! Defines the available knobs, as options of a plan, and reads the values in force. [`setting`] sets and restores
//! them. The list is short on purpose: knobs commonly tuned for PostgreSQL.

pub(super) mod modules;
mod parameter;
mod setting;
#[cfg(test)]
mod tests;

pub(crate) use setting::boot;
pub(super) use setting::undo;
pub use setting::{OWNER, strayed};

use super::by_hand::Script;
use super::identity::BlockDevice;
use super::ledger::Ledger;
use super::{Base, Unmet, needs};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::record::claim::{Claim, Promise};
use crate::record::facts::WriteCache;
use crate::record::options::{LEAVE, OptionKind, OptionProblem, OptionSpec, OptionValue, Options};
use crate::units::Bytes;
use setting::{KnobOwner, set};
use std::collections::BTreeMap;

/// Key of a device's knobs, and of the machine's knobs that apply to every device.
const QUEUE_KEY: &str = "queue";

/// Side effect of writing a knob on another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drags {
    Nothing,
    /// The kernel keeps only the last one written of the two and shows 0 for the other.
    Rival(&'static str),
    /// The kernel resets the other one to its default (seen with Linux 6.18).
    Reset(&'static str),
}

#[derive(Debug)]
struct Knob {
    /// Its name in its table of a plan.
    name: &'static str,
    /// Its file; for a device's knob, relative to the device's folder in sysfs.
    file: &'static str,
    drags: Drags,
}

const fn knob(name: &'static str, file: &'static str, drags: Drags) -> Knob {
    Knob { name, file, drags }
}

const DIRTY_BYTES: &str = "vm.dirty_bytes";
const DIRTY_RATIO: &str = "vm.dirty_ratio";
const BACKGROUND_BYTES: &str = "vm.dirty_background_bytes";
const BACKGROUND_RATIO: &str = "vm.dirty_background_ratio";
const READ_AHEAD: &str = "read_ahead_kb";
const WRITE_CACHE: &str = "write_cache";
const NR_REQUESTS: &str = "nr_requests";

static OF_MACHINE: [Knob; 9] = [
    knob(DIRTY_BYTES, "/proc/sys/vm/dirty_bytes", Drags::Rival(DIRTY_RATIO)),
    knob(DIRTY_RATIO, "/proc/sys/vm/dirty_ratio", Drags::Rival(DIRTY_BYTES)),
    knob(BACKGROUND_BYTES, "/proc/sys/vm/dirty_background_bytes", Drags::Rival(BACKGROUND_RATIO)),
    knob(BACKGROUND_RATIO, "/proc/sys/vm/dirty_background_ratio", Drags::Rival(BACKGROUND_BYTES)),
    knob("vm.dirty_expire_centisecs", "/proc/sys/vm/dirty_expire_centisecs", Drags::Nothing),
    knob("vm.dirty_writeback_centisecs", "/proc/sys/vm/dirty_writeback_centisecs", Drags::Nothing),
    knob("vm.swappiness", "/proc/sys/vm/swappiness", Drags::Nothing),
    knob("vm.vfs_cache_pressure", "/proc/sys/vm/vfs_cache_pressure", Drags::Nothing),
    knob("transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled", Drags::Nothing),
];

/// In the order of setting: a knob follows any that resets it.
static OF_DEVICE: [Knob; 4] = [
    knob(WRITE_CACHE, "queue/write_cache", Drags::Reset(READ_AHEAD)),
    knob("scheduler", "queue/scheduler", Drags::Reset(NR_REQUESTS)),
    knob(NR_REQUESTS, "queue/nr_requests", Drags::Nothing),
    knob(READ_AHEAD, "queue/read_ahead_kb", Drags::Nothing),
];

/// Set indirectly by the plan: 0 keeps the kernel from sending discards to a device.
static DISCARDS: Knob = knob("discards", "queue/discard_max_bytes", Drags::Nothing);

const fn option(key: &'static str, kind: &'static OptionKind, doc: &'static str) -> OptionSpec {
    OptionSpec::optional(key, OptionKind::OrDefault(kind)).doc(doc)
}

/// Knobs of a block device, as an option of every layer that offers one.
pub const QUEUE: OptionSpec = OptionSpec::optional(QUEUE_KEY, OptionKind::Table(&[
        option("scheduler", &OptionKind::Text, "I/O scheduler: none, mq-deadline, kyber, bfq."),
        // The kernel raises any lower value to 4 (BLKDEV_MIN_RQ).
        option(NR_REQUESTS, &OptionKind::Integer { min: 4 }, "Maximum number of requests in the queue."),
        option(READ_AHEAD, &OptionKind::Integer { min: 0 }, "Read-ahead in KiB, a multiple of the page size."),
        option(
            WRITE_CACHE,
            &OptionKind::OneOf(&["write back", "write through"]),
            "Whether the kernel sends flushes: with `write through` it sends none, even if the device has a volatile cache.",
        ),
    ])).doc("Kernel knobs of the device queue, set for the trial and restored afterwards.");

/// Options of a plan's table `[machine]`.
pub const MACHINE: &[OptionSpec] = &[
    option(DIRTY_BYTES, &OptionKind::Size, "Dirty bytes above which a writing process must do writeback itself."),
    option(DIRTY_RATIO, &OptionKind::Integer { min: 1 }, "Same, as a percentage of available memory."),
    option(BACKGROUND_BYTES, &OptionKind::Size, "Dirty bytes above which the kernel starts background writeback."),
    option(BACKGROUND_RATIO, &OptionKind::Integer { min: 1 }, "Same, as a percentage of available memory."),
    option(
        "vm.dirty_expire_centisecs",
        &OptionKind::Integer { min: 0 },
        "Age at which a dirty page is written back, in hundredths of a second.",
    ),
    option(
        "vm.dirty_writeback_centisecs",
        &OptionKind::Integer { min: 0 },
        "Interval between writeback passes, in hundredths of a second; 0 = never.",
    ),
    option("vm.swappiness", &OptionKind::Integer { min: 0 }, "Tendency to swap, instead of dropping page cache."),
    option("vm.vfs_cache_pressure", &OptionKind::Integer { min: 0 }, "Tendency to reclaim cached dentries and inodes."),
    option(
        "transparent_hugepage",
        &OptionKind::OneOf(&["always", "madvise", "never"]),
        "Transparent huge pages (the file `enabled`).",
    ),
    OptionSpec { doc: "Queue knobs of every device in a stack, unless the device sets its own.", ..QUEUE },
];

/// Maximum that the kernel accepts for bounded knobs (the tables of kernel/sysctl.c and mm/page-writeback.c).
const MOST: [(&str, i64); 3] = [(DIRTY_RATIO, 100), (BACKGROUND_RATIO, 100), ("vm.swappiness", 200)];

fn of_machine(name: &str) -> Option<&'static Knob> {
    OF_MACHINE.iter().find(|knob| knob.name == name)
}

fn of_device(name: &str) -> Option<&'static Knob> {
    OF_DEVICE.iter().chain([&DISCARDS]).find(|knob| knob.name == name)
}

/// Requested value of a knob, in the kernel's format; `None` leaves it unchanged.
fn wanted(value: &OptionValue) -> Option<String> {
    match value {
        OptionValue::Text(text) if text == LEAVE => None,
        OptionValue::Boolean(flag) => Some(u8::from(*flag).to_string()),
        OptionValue::Text(text) => {
            Some(Bytes::parse(text).map_or_else(|_| text.clone(), |Bytes(bytes)| bytes.to_string()))
        }
        other => Some(other.plain()),
    }
}

fn asked(options: &Options) -> impl Iterator<Item = (&str, String)> {
    options.0.iter().filter_map(|(name, value)| Some((name.as_str(), wanted(value)?)))
}

/// Checks the machine's knobs: each must exist, and no two may exclude each other.
///
/// # Errors
/// The key and what is wrong with it.
pub fn check(machine: &Options) -> Result<(), OptionProblem> {
    for (name, _) in asked(machine) {
        let Some(knob) = of_machine(name) else {
            // The plan has already removed the devices' knobs.
            return match name {
                QUEUE_KEY => Ok(()),
                _ => Err(OptionProblem::at(name, "this knob does not exist")),
            };
        };
        let most = MOST.iter().find(|(limited, _)| *limited == name).map(|(_, most)| *most);
        if let Some(most) = most.filter(|most| machine.integer(name).is_some_and(|value| value > *most)) {
            return Err(OptionProblem::at(name, format!("the kernel accepts at most {most}")));
        }
        if let Drags::Rival(other) = knob.drags
            && machine.get(other).and_then(wanted).is_some()
        {
            return Err(OptionProblem::at(
                name,
                format!("it conflicts with `{other}`: the kernel keeps only one of the two"),
            )
            .help("remove one of them"));
        }
    }
    Ok(())
}

/// What this machine lacks for its knobs. Reads, never changes.
pub fn unmet(host: &Host, machine: &Options) -> Vec<Unmet> {
    let root =
        asked(machine).next().and_then(|_| needs::root_to("to set kernel knobs", "or remove [machine] from the plan"));
    let knobs = asked(machine).filter_map(|(name, _)| of_machine(name));
    let missing = knobs.filter(|knob| !host.exists(knob.file)).map(|Knob { name, file, .. }| Unmet {
        what: format!("the knob {name} in this kernel ({file})"),
        hint: format!("remove `{name}`, or boot a kernel that has it"),
    });
    root.into_iter().chain(missing).collect()
}

/// Sets knobs of the machine, each entered into the ledger first.
///
/// # Errors
/// When the kernel lacks one, refuses a value, or shows another one after it.
pub fn set_machine(host: &Host, ledger: &Ledger, machine: &Options) -> Result<()> {
    for (name, value) in asked(machine) {
        let knob = of_machine(name).ok_or_else(|| Error::user(format!("there is no knob `{name}`")))?;
        set(host, ledger, knob, &KnobOwner::machine(host), &value)?;
    }
    Ok(())
}

/// Adds these knobs to a script.
pub fn by_hand(script: &mut Script, machine: &Options) {
    for (name, value) in asked(machine) {
        if let Some(knob) = of_machine(name) {
            script.set(knob.file, &value);
        }
    }
}

/// Adds the knobs of a node's devices to a script.
pub(super) fn queue_by_hand(script: &mut Script, bases: &[Base], options: &Options) {
    for device in bases.iter().filter_map(Base::device) {
        for (knob, value) in queue_of(&options.table(QUEUE_KEY)) {
            script.set_of_device(&device.display().to_string(), knob.file, &value);
        }
    }
}

/// The device knobs requested, in the order of setting.
fn queue_of(queue: &Options) -> impl Iterator<Item = (&'static Knob, String)> {
    OF_DEVICE.iter().filter_map(|knob| Some((knob, queue.get(knob.name).and_then(wanted)?)))
}

/// The devices among a node's bases, with the knobs requested of each, in the order of setting.
fn of_queue(host: &Host, bases: &[Base], options: &Options) -> Result<Vec<(KnobOwner, &'static Knob, String)>> {
    let queue = options.table(QUEUE_KEY);
    if let Some((name, _)) = asked(&queue).find(|(name, _)| of_device(name).is_none()) {
        return Err(Error::user(format!("there is no device knob `{name}`")));
    }
    let mut all = Vec::new();
    for device in devices(host, bases)? {
        all.extend(queue_of(&queue).map(|(knob, value)| (device.clone(), knob, value)));
    }
    Ok(all)
}

/// The devices among a node's bases.
fn devices(host: &Host, bases: &[Base]) -> Result<Vec<KnobOwner>> {
    let paths = bases.iter().filter_map(Base::device);
    paths.map(|path| Ok(KnobOwner::device(host, BlockDevice::find(path)?.node))).collect()
}

/// Sets the knobs that a node's options request for the devices it offers, each entered into the ledger first. Returns
/// the consequences for flushes: a device that reported `write back` until the plan changed it declares nothing itself.
///
/// # Errors
/// When a device lacks one or refuses a value; the error lists the values it offers.
pub(super) fn set_queue(host: &Host, ledger: &Ledger, bases: &[Base], options: &Options) -> Result<Vec<Promise>> {
    let mut promises = Vec::new();
    for (device, knob, value) in of_queue(host, bases, options)? {
        let changed = set(host, ledger, knob, &device, &value)?;
        if changed && knob.name == WRITE_CACHE && value == WriteCache::WriteThrough.word() {
            promises.push(Promise {
                claim: Claim::HoldsFlushesBack,
                source: format!("{QUEUE_KEY}.{WRITE_CACHE} = {value}"),
                why: "the plan stops the kernel from sending flushes to a device with a write-back cache".to_owned(),
            });
        }
    }
    Ok(promises)
}

/// Keeps the kernel from sending these devices discards until the ledger is undone. True if the kernel confirms that
/// for all of them: one without the knob shows nothing.
///
/// # Errors
/// When the kernel refuses.
pub(super) fn without_discards(host: &Host, ledger: &Ledger, bases: &[Base]) -> Result<bool> {
    let mut is_shown = true;
    for device in devices(host, bases)? {
        if setting::shown(host, &device.path_of(&DISCARDS)).is_some() {
            set(host, ledger, &DISCARDS, &device, "0")?;
        } else {
            is_shown = false;
        }
    }
    Ok(is_shown)
}

/// Checks that the kernel still sends these devices no discards.
///
/// # Errors
/// With the limit that it shows.
pub(super) fn still_without_discards(host: &Host, bases: &[Base]) -> Result<()> {
    for device in devices(host, bases)? {
        let limit = device.path_of(&DISCARDS);
        if let Some(shown) = setting::shown(host, &limit).filter(|shown| shown != "0") {
            return Err(Error::host(format!("{limit} was set to `0` but reads `{shown}` after the stack was built"))
                .hint("a preconditioned drive must get no discards; find out who sets it"));
        }
    }
    Ok(())
}

/// Checks that a node's devices still have the requested values, once everything stands on them.
///
/// # Errors
/// With the knob that shows another value.
pub(super) fn still_set(host: &Host, bases: &[Base], options: &Options) -> Result<()> {
    for (device, knob, value) in of_queue(host, bases, options)? {
        let path = device.path_of(knob);
        let shown = setting::shown(host, &path).unwrap_or_default();
        if shown != value {
            return Err(Error::host(format!(
                "{path} was set to `{value}` but reads `{shown}` after the stack was built"
            )));
        }
    }
    Ok(())
}

/// Every machine knob of this kernel, with its current value; of two rivals only the effective one.
pub fn in_force(host: &Host) -> BTreeMap<String, String> {
    let shown = OF_MACHINE.iter().filter_map(|knob| Some((knob.name.to_owned(), setting::shown(host, knob.file)?)));
    let mut all: BTreeMap<String, String> = shown.collect();
    for (bytes, ratio) in [(DIRTY_BYTES, DIRTY_RATIO), (BACKGROUND_BYTES, BACKGROUND_RATIO)] {
        let counts = all.get(bytes).is_some_and(|value| value != "0");
        all.remove(if counts { ratio } else { bytes });
    }
    all
}

//! Sets one knob, after entering it into the ledger, and restores it.
//!
//! A knob's entry holds its file, the previous value and ours. The value that the kernel shows decides on undoing: ours
//! is replaced by the previous one; any other was set by somebody meanwhile, is newer, and stays. A kernel booted
//! since, or a device that has been replaced, is left alone too: neither holds anything of ours.

use super::parameter::{PARAMETER, is_parameter};
use super::{Drags, Knob, of_device, of_machine};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::provision::ledger::{Ledger, Thing};
use crate::provision::sysfs::{self, DeviceNumber};

/// Ledger owner of knobs.
pub const OWNER: &str = "knob";

/// Ledger mark of the value in force if the knob showed another.
const IN_FORCE: &str = "in force";

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const SYSFS: &str = "/sys/dev/block/";

/// Owner of a knob, and how to recognize it later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnobOwner {
    /// The device; `None` for the machine.
    node: Option<DeviceNumber>,
    /// The kernel's number for this attachment of the device (`diskseq`, since Linux 5.15).
    sequence: Option<String>,
    /// Id of this boot.
    boot: String,
    /// File of a module's parameter.
    file: Option<String>,
    /// The value in force, if the parameter does not show it: writing the shown value would not restore it.
    in_force: Option<String>,
}

/// The kernel's id of this boot.
pub(crate) fn boot(host: &Host) -> String {
    host.read_optional(BOOT_ID).unwrap_or_default()
}

impl KnobOwner {
    pub fn machine(host: &Host) -> KnobOwner {
        KnobOwner { node: None, sequence: None, boot: boot(host), file: None, in_force: None }
    }

    pub fn parameter(host: &Host, file: String, in_force: Option<String>) -> KnobOwner {
        KnobOwner { file: Some(file), in_force, ..KnobOwner::machine(host) }
    }

    /// A partition shares its disk's queue.
    pub fn device(host: &Host, node: DeviceNumber) -> KnobOwner {
        let disk = node.whole_disk(host).unwrap_or(node);
        KnobOwner { node: Some(disk), sequence: disk.attribute(host, "diskseq"), ..KnobOwner::machine(host) }
    }

    pub fn path_of(&self, knob: &Knob) -> String {
        self.node.map_or_else(|| self.file.as_deref().unwrap_or(knob.file).to_owned(), |node| node.path_of(knob.file))
    }
}

/// Value that a knob shows: the word in brackets if it lists alternatives.
pub(super) fn shown(host: &Host, path: &str) -> Option<String> {
    Some(sysfs::chosen(&host.read_optional(path)?).to_owned())
}

/// The knob that another one affects, with its file next to the first one's.
fn dragged(knob: &Knob, path: &str) -> Option<(&'static Knob, String)> {
    let (Drags::Rival(name) | Drags::Reset(name)) = knob.drags else { return None };
    let other = of_machine(name).or_else(|| of_device(name))?;
    Some((other, format!("{}{}", path.strip_suffix(knob.file)?, other.file)))
}

/// Sets a knob: enters its value into the ledger, writes, reads back. Does nothing if the value is already set. Returns
/// true if it changed.
pub(super) fn set(host: &Host, ledger: &Ledger, knob: &'static Knob, of: &KnobOwner, ours: &str) -> Result<bool> {
    let path = &of.path_of(knob);
    let old = shown(host, path).ok_or_else(|| {
        Error::host(format!("there is no knob {}: {path} is missing", knob.name)).hint("remove it for this kernel")
    })?;
    if old == ours {
        return Ok(false);
    }
    refuse_rounded(knob, ours)?;
    let mut thing = Thing::new(OWNER, knob.name)
        .with("path", path)
        .with("old", &old)
        .with("ours", ours)
        .with("boot", &of.boot)
        .with("sequence", of.sequence.as_deref().unwrap_or_default());
    if let Some((_, other)) = dragged(knob, path) {
        thing = thing.with("dragged", shown(host, &other).unwrap_or_default());
    }
    if let Some(before) = of.in_force.as_ref().filter(|before| **before != old) {
        thing = thing.with(IN_FORCE, before);
    }
    ledger.enter(thing.clone())?;
    let refused = |why: String| {
        let offers =
            host.read_optional(path).filter(|text| text.contains('[')).map(|text| text.replace(['[', ']'], ""));
        let offers = offers.map_or_else(String::new, |offers| format!("; valid values: {}", offers.trim()));
        Error::host(format!("{} cannot be set to `{ours}` in {path}: {why}{offers}", knob.name))
    };
    host.write(path, ours).map_err(|e| refused(e.to_string()))?;
    match shown(host, path) {
        Some(now) if now == ours => Ok(true),
        now => {
            let now = now.unwrap_or_default();
            // `undo` would not recognize a value that the kernel adjusted as ours.
            if now != old {
                put_back(host, knob, &thing)?;
            }
            Err(refused(format!("the kernel then reports `{now}`")))
        }
    }
}

/// The kernel rounds read-ahead to whole pages; the value it then shows would not be recognized as ours after a crash.
fn refuse_rounded(knob: &Knob, ours: &str) -> Result<()> {
    let page_kb = rustix::param::page_size() as u64 / 1024;
    match ours.parse::<u64>() {
        Ok(kb) if knob.name == super::READ_AHEAD && kb % page_kb != 0 => {
            Err(Error::user(format!("{} = {kb} is not a multiple of the page size, {page_kb} KiB", knob.name)))
        }
        _ => Ok(()),
    }
}

/// Undoes one knob of the ledger. Does nothing unless it shows our value or, half restored, the old one.
///
/// # Errors
/// When it shows our value and cannot be restored, or the entry names a file that is not a knob's.
pub(in crate::provision) fn undo(host: &Host, thing: &Thing) -> Result<()> {
    let knob = known(thing)?;
    let Some(now) = still_there(host, thing)? else { return Ok(()) };
    // A walk killed between the two writes leaves the other knob reset.
    let half_back = now == thing.mark("old")? && matches!(knob.drags, Drags::Reset(_));
    if now == thing.mark("ours")? || half_back { put_back(host, knob, thing) } else { Ok(()) }
}

/// Describes the knobs entered since a mark that do not show our value (any more): undoing leaves them.
pub fn strayed(host: &Host, ledger: &Ledger, mark: u64) -> Vec<String> {
    let things = ledger.open_things().into_iter().filter(|(number, thing)| *number >= mark && thing.owner == OWNER);
    let strays = things.filter_map(|(_, thing)| {
        let (now, ours) = (still_there(host, &thing).ok()??, thing.mark("ours").ok()?);
        let (kind, path) = (&thing.kind, thing.mark("path").ok()?);
        if now == ours {
            let stays = *kind == super::DISCARDS.name && takes_no_limit(host, path) && !goes_with_the_trial(host, path);
            return stays.then(|| {
                format!(
                    "{kind} ({path}) cannot be restored: this kernel accepts no other limit once it is `{now}`; the drive gets no \
                     discards (`fstrim` fails) until it is reattached or the machine reboots"
                )
            });
        }
        Some(format!("{kind} ({path}) is `{now}`, not `{ours}` as set by the run: left unchanged"))
    });
    strays.collect()
}

/// The knob of an entry, if the file is one of that knob's: a ledger must not make root write elsewhere.
fn known(thing: &Thing) -> Result<&'static Knob> {
    let path = thing.mark("path")?;
    let of_machine = of_machine(&thing.kind).filter(|knob| knob.file == path);
    let of_device = of_device(&thing.kind).filter(|knob| {
        let node = path.strip_prefix(SYSFS).and_then(|rest| rest.strip_suffix(knob.file)?.strip_suffix('/'));
        node.and_then(DeviceNumber::parse).is_some()
    });
    let of_module = (thing.kind == PARAMETER.name && is_parameter(path)).then_some(&PARAMETER);
    let known = of_machine.or(of_device).or(of_module);
    known.ok_or_else(|| Error::host(format!("{path} is not a knob that pgstrata sets")))
}

/// Current value of an entry's knob; `None` if it is gone, or belongs to another boot or device by now.
fn still_there(host: &Host, thing: &Thing) -> Result<Option<String>> {
    let path = thing.mark("path")?;
    let node = path.strip_prefix(SYSFS).and_then(|rest| DeviceNumber::parse(rest.split('/').next()?));
    let now = node.map_or_else(|| KnobOwner::machine(host), |node| KnobOwner::device(host, node));
    let same = now.boot == thing.mark("boot")? && now.sequence.unwrap_or_default() == thing.mark("sequence")?;
    Ok(shown(host, path).filter(|_| same))
}

/// Writes the previous value, and that of the affected knob.
fn put_back(host: &Host, knob: &Knob, thing: &Thing) -> Result<()> {
    let (path, old) = (thing.mark("path")?, thing.mark("old")?);
    let other = dragged(knob, path);
    let noted = thing.marks.get("dragged").map_or("", String::as_str);
    match (&knob.drags, &other) {
        // 0 means that the rival was in force, and the kernel rejects 0; writing the rival has the same effect.
        (Drags::Rival(_), Some((_, rival))) if old == "0" => {
            if noted == "0" {
                // The kernel resets the other one only when this one changes.
                host.write(rival, "1")?;
            }
            host.write(rival, noted)?;
        }
        _ if knob.name == super::DISCARDS.name => return discards_back(host, path, old),
        _ => {
            if let Some(in_force) = thing.marks.get(IN_FORCE) {
                host.write(path, in_force)?;
            }
            host.write(path, old)?;
        }
    }
    let mut back = vec![(path.to_owned(), old)];
    if let Some((_, other)) = other.filter(|(_, other)| !noted.is_empty() && shown(host, other).is_some()) {
        if matches!(knob.drags, Drags::Reset(_)) && shown(host, &other).as_deref() != Some(noted) {
            host.write(&other, noted)?;
        }
        back.push((other, noted));
    }
    for (path, wanted) in back {
        let now = shown(host, &path).unwrap_or_default();
        if now != wanted {
            return Err(Error::host(format!("{path} reads `{now}` after restoring `{wanted}`")));
        }
    }
    Ok(())
}

/// The file next to a discard limit that holds the granularity of discards.
fn granularity(host: &Host, limit: &str) -> Option<u64> {
    shown(host, &limit.replace("discard_max_bytes", "discard_granularity"))?.parse().ok()
}

/// True if a device accepts no discard limit other than 0. While the limit is 0, newer kernels set the granularity to 0
/// too (seen with Linux 6.18), and accept only multiples of it.
fn takes_no_limit(host: &Host, path: &str) -> bool {
    granularity(host, path) == Some(0)
}

/// True if a device is made anew for each trial, by the device mapper or on an image.
fn goes_with_the_trial(host: &Host, path: &str) -> bool {
    let device = path.strip_suffix(super::DISCARDS.file).unwrap_or(path);
    ["dm", "loop"].iter().any(|kind| host.exists(format!("{device}{kind}")))
}

/// Candidates for restoring a discard limit, in order. The kernel shows limits that it rejects
/// (`queue_discard_max_store`): those that are not a multiple of the granularity, and those beyond 32 bits. It lowers
/// any that exceed the device's capability.
fn limits_like(old: u64, granularity: u64) -> [u64; 3] {
    // The kernel checks only the low bits.
    let step = granularity.max(1).next_power_of_two();
    [old, old.checked_next_multiple_of(step).unwrap_or(old), old.min(u64::from(u32::MAX)) / step * step]
}

/// Re-enables discards, with the largest limit that the kernel accepts. If it accepts none, discards stay off:
/// [`strayed`] has reported that.
fn discards_back(host: &Host, path: &str, old: &str) -> Result<()> {
    let limit: u64 = old.parse().map_err(|_| Error::bug(format!("`{old}` is no limit of discards")))?;
    let mut refused = None;
    for limit in limits_like(limit, granularity(host, path).unwrap_or(1)) {
        match host.write(path, &limit.to_string()) {
            Ok(()) => return Ok(()),
            Err(e) => refused = Some(e),
        }
    }
    refused.filter(|_| !takes_no_limit(host, path)).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::limits_like;

    #[test]
    fn a_shown_limit_that_the_kernel_rejects_is_rounded() {
        assert_eq!(limits_like(4_294_966_784, 4096), [4_294_966_784, 4_294_967_296, 4_294_963_200], "a loop device");
        assert_eq!(limits_like(2_147_450_880, 512), [2_147_450_880; 3], "a SATA disk");
        assert_eq!(limits_like(2_199_023_255_040, 512)[2], 4_294_966_784, "an NVMe disk");
        assert_eq!(limits_like(4096, 0), [4096; 3]);
    }
}

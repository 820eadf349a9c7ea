//! Mounting, unmounting, and the mount table.
//!
//! Handles a stack's mount: its ledger entry, the check that the mount on the target is ours, and the mount options
//! that a plan may not use because they make mount(8) do something unknown to the ledger.

use super::by_hand::{self, Script};
use super::identity::BlockDevice;
use super::ledger::Thing;
use super::mount_table::{BUSY_PAUSE, BUSY_TRIES, holding, table};
use super::options_kept::{KeepRule, dropped, is_among};
use super::sysfs::DeviceNumber;
use super::{Site, folder, zfs_tools};
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::time::sleep;
use crate::host::{Host, paths, processes};
use crate::parse::mountinfo::Mount;
use crate::record::facts::MountFacts;
use crate::record::options::{OptionProblem, Options};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Patterns of options that are instructions to mount(8) or to other tools, or that defeat the purpose.
const REFUSED: &[(&str, &str)] = &[
    ("ro", "PostgreSQL could not write"),
    ("loop loop=", "use the layer `loop`, which cleans up its loop devices"),
    ("offset= sizelimit=", "it makes mount(8) set up a loop device that nothing would clean up"),
    ("bind rbind move remount subset=", "it mounts something else"),
    ("user users owner group", "it only controls who may mount"),
    ("helper= uhelper=", "it calls another program"),
    ("x- X-", "it is for other tools"),
    ("nofail noauto auto _netdev comment=", "it is for fstab"),
    ("device= logdev= rtdev= journal_dev= journal_path=", "it accesses a device that is not in the stack"),
];

/// A mount to make.
pub(super) struct WantedMount<'a> {
    /// Filesystem type, which is the layer that owns the ledger entry.
    pub fstype: &'static str,
    /// Device, or a name for filesystems without one.
    pub source: &'a str,
    /// Its further devices, any of which the kernel may show as the source (btrfs).
    pub others: Vec<&'a str>,
    /// One mount option each.
    pub options: &'a [String],
    /// Mount options that we add to name its further devices; the kernel need not show them.
    pub members: Vec<String>,
    /// How the kernel prints options that it does not print as given.
    pub rules: &'static [KeepRule],
    /// Further evidence of active options, besides the mount table.
    pub in_force: fn(&Host, &str) -> Vec<String>,
}

/// The command that mounts `source`; `options` may be empty.
pub(super) fn command(fstype: &str, source: &str, options: &str, target: &Path) -> Command {
    let command = Command::new("mount").args(["-t", fstype]);
    let command = if options.is_empty() { command } else { command.args(["-o", options]) };
    command.arg(source).arg(target)
}

/// Adds a mount to a script, with its line of fstab, where `lasting` names the source. Returns the mount point.
pub(super) fn by_hand(script: &mut Script, fstype: &str, source: &str, options: &str, lasting: &str) -> PathBuf {
    let target = script.folder();
    let fstab = script.fill_in("FSTAB", "/etc/fstab", "File that gets the lines for fstab(5)");
    script.run(&Command::new("mkdir").args(["-p", &target]));
    script.run(&command(fstype, source, options, Path::new(&target)));
    let line = format!("{lasting} {target} {fstype} {} 0 0", if options.is_empty() { "defaults" } else { options });
    script.write(&by_hand::word(&line), ">>", &by_hand::word(&fstab));
    script.read(&Command::new("findmnt").args(["--noheadings", "--output", "SOURCE,FSTYPE,OPTIONS", &target]));
    PathBuf::from(target)
}

/// The single mount options of the key `mount`: items of the list may hold several, separated by commas.
pub(super) fn asked(options: &Options) -> Vec<String> {
    options.texts("mount").iter().flat_map(|text| text.split(',')).map(|option| option.trim().to_owned()).collect()
}

/// Rejects mount options that a plan may not give; `own` are patterns of further ones that the layer sets itself.
pub(super) fn check(options: &Options, own: &[(&str, &str)]) -> Result<(), OptionProblem> {
    for option in asked(options) {
        let problem = |what: String| Err(OptionProblem::at("mount", what));
        if option.is_empty() {
            return problem("an empty mount option".to_owned());
        }
        if option.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return problem(format!("the mount option `{}` contains whitespace", option.escape_debug()));
        }
        if let Some((_, why)) = own.iter().chain(REFUSED).find(|(patterns, _)| is_among(&option, patterns)) {
            return problem(format!("the mount option `{option}` is not allowed in plans: {why}"));
        }
    }
    Ok(())
}

/// Makes the mount point of a node. The mount table shows paths without symlinks.
pub(super) fn make_target(site: &Site<'_>) -> Result<PathBuf> {
    let target = paths::resolve(&site.folder)?.join(&site.name);
    folder::make(site.ledger, folder::OWNER, &target)?;
    Ok(target)
}

/// Makes the mount point, mounts, reads the mount back and compares it with the options. Returns the mount point.
///
/// # Errors
/// With the messages of mount(8) and the kernel; or when an option was silently dropped.
pub(super) fn mount(site: &Site<'_>, wanted: &WantedMount<'_>) -> Result<PathBuf> {
    let target = make_target(site)?;
    let thing = Thing::new(wanted.fstype, "mount")
        .with_path("target", &target)?
        .with("source", wanted.source)
        .with("others", wanted.others.join(" "))
        .with("fstype", wanted.fstype);
    site.ledger.enter(thing)?;
    let options: Vec<&str> = wanted.options.iter().chain(&wanted.members).map(String::as_str).collect();
    let uptime = site.host.read_optional("/proc/uptime");
    let begun_s = uptime.and_then(|uptime| uptime.split(' ').next()?.parse().ok());
    let mounted = site.host.run(&command(wanted.fstype, wanted.source, &options.join(","), &target));
    mounted.map_err(|e| with_kernel_words(site.host, e, wanted, begun_s))?;
    let facts = mount_of(site.host, &target)?;
    if Path::new(&facts.target) != target {
        return Err(Error::host(format!("mount succeeded, but {} is not in the mount table", target.display())));
    }
    let shown = [facts.options, facts.super_options].concat();
    let in_force = [(wanted.in_force)(site.host, wanted.source), shown.clone()].concat();
    match dropped(wanted.options, &in_force, wanted.rules).first() {
        None => Ok(target),
        Some(option) => Err(Error::host(format!(
            "the kernel dropped the mount option `{option}` of {}: it shows only `{}`",
            wanted.fstype,
            shown.join(",")
        ))
        .hint("remove the option, or write it as this kernel prints it")),
    }
}

/// Unmounts a mount of the ledger. Does nothing if nothing is mounted there.
///
/// # Errors
/// When something else is mounted there, or it stays busy.
pub(super) fn undo(host: &Host, thing: &Thing) -> Result<()> {
    let target = thing.mark("target")?;
    if !folder::has_our_name(Path::new(target)) {
        return Err(Error::host(format!("{target} is not a mount point of pgstrata")));
    }
    for attempt in 0.. {
        // The topmost mount on the target comes last in the table.
        let table = table(host)?;
        let Some(found) = table.iter().rev().find(|mount| mount.target == target) else { return Ok(()) };
        let mut sources = std::iter::once(thing.mark("source")?)
            .chain(thing.marks.get("others").into_iter().flat_map(|others| others.split(' ')));
        if found.fstype != thing.mark("fstype")? || !sources.any(|source| is_same_source(source, &found.source)) {
            let other = format!("{} of type {}", found.source, found.fstype);
            return Err(Error::host(format!("{target} is not what pgstrata mounted there: {other}")));
        }
        match host.run(&Command::new("umount").arg(target)) {
            Err(e) if attempt >= BUSY_TRIES => {
                return Err(e.hint(format!("{}; then run `pgstrata clean`", who_uses(host, Path::new(target)))));
            }
            Err(_) => sleep(BUSY_PAUSE),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// True if two mount sources are the same: by name, or, since a volume has several names, by device number.
fn is_same_source(one: &str, other: &str) -> bool {
    if one == other || !one.starts_with('/') {
        return one == other;
    }
    let [one, other] = [one, other].map(|path| BlockDevice::find(Path::new(path)).ok().map(|device| device.node));
    one.is_some() && one == other
}

/// Hint that names the processes that keep a mount busy.
fn who_uses(host: &Host, target: &Path) -> String {
    let users = processes::using_folder(host, target).unwrap_or_default();
    let named: Vec<String> = users.iter().map(|process| format!("{} {}", process.pid, process.comm)).collect();
    match named.is_empty() {
        true => format!("`fuser -vm {}` shows who uses it", target.display()),
        false => format!("these processes use it: {}; stop them", named.join(", ")),
    }
}

pub(super) fn facts(host: &Host, mount: &Mount) -> MountFacts {
    MountFacts {
        target: mount.target.clone(),
        fstype: mount.fstype.clone(),
        source: mount.source.clone(),
        options: mount.options.clone(),
        super_options: mount.super_options.clone(),
        device: format!("{}:{}", mount.major, mount.minor),
        journal: has_journal(host, mount),
        zfs: if mount.fstype == "zfs" { zfs_tools::of_mount(host, &mount.source) } else { BTreeMap::new() },
    }
}

/// True if an ext4 has a journal: its driver names the journal's thread, or `<none>` without one.
fn has_journal(host: &Host, mount: &Mount) -> Option<bool> {
    let number = DeviceNumber { major: mount.major, minor: mount.minor };
    let name = number.name(host).filter(|_| mount.fstype.starts_with("ext"))?;
    let task = host.read_optional(format!("/sys/fs/ext4/{name}/journal_task"))?;
    (!task.is_empty()).then(|| task != "<none>")
}

/// Adds the reason from the kernel's log: mount(8) reports "wrong fs type, bad option, bad superblock" for everything.
fn with_kernel_words(host: &Host, error: Error, wanted: &WantedMount<'_>, begun_s: Option<f64>) -> Error {
    let log = host.run(&Command::new("dmesg"));
    let (Ok(log), Some(begun_s)) = (log, begun_s) else { return error };
    let device = wanted.source.rsplit('/').next().unwrap_or(wanted.source);
    let words: Vec<&str> = kernel_lines(&log.stdout, begun_s, device, wanted.fstype);
    if words.is_empty() { error } else { Error::tool(format!("{error}\n  the kernel says: {}", words.join("; "))) }
}

/// Lines of dmesg since `begun_s` (seconds of uptime) that mention the device or the filesystem type. The kernel's log
/// has its own clock, some milliseconds off.
fn kernel_lines<'a>(log: &'a str, begun_s: f64, device: &str, fstype: &str) -> Vec<&'a str> {
    const CLOCKS_DIFFER_S: f64 = 0.05;
    let ours = log.lines().filter_map(|line| {
        let (stamp, text) = line.strip_prefix('[')?.split_once("] ")?;
        let at: f64 = stamp.trim().parse().ok()?;
        let ours = text.contains(device) || text.to_lowercase().starts_with(fstype);
        (at >= begun_s - CLOCKS_DIFFER_S && ours).then_some(text)
    });
    ours.collect()
}

/// The mount that holds a folder or file.
///
/// # Errors
/// When the path does not exist or the table cannot be read.
pub fn mount_of(host: &Host, path: &Path) -> Result<MountFacts> {
    holding(&table(host)?, &paths::resolve(path)?).map(|mount| facts(host, mount))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::mountinfo;
    use crate::provision::mount_table::holding;
    use crate::record::options::OptionValue;

    fn mount_options(list: &[&str]) -> Options {
        let mut options = Options::default();
        options.set("mount", OptionValue::List(list.iter().map(|o| OptionValue::Text((*o).to_owned())).collect()));
        options
    }

    #[test]
    fn options_that_tell_mount_to_do_other_things_are_refused() {
        for bad in [
            "loop",
            "loop=/dev/loop43",
            "ro",
            "x-mount.mkdir",
            "device=/dev/sda",
            "noatime,bind",
            "",
            "a b",
            "noatime,,discard",
            "offset=0",
        ] {
            assert!(check(&mount_options(&[bad]), &[]).is_err(), "{bad}");
        }
        for good in ["noatime", "noatime,discard", "usrquota", "errors=remount-ro", "subvol=/"] {
            assert_eq!(check(&mount_options(&[good]), &[]), Ok(()), "{good}");
        }
        let own = check(&mount_options(&["size=4g"]), &[("size=", "give it as `size`")]).unwrap_err();
        assert!(own.message.contains("give it as `size`"));
    }

    #[test]
    fn a_device_is_the_same_by_another_name() {
        let place = tempfile::tempdir().unwrap();
        let Some(device) = ["/dev/loop0", "/dev/vda", "/dev/sda", "/dev/nvme0n1"]
            .into_iter()
            .find(|path| BlockDevice::find(Path::new(path)).is_ok())
        else {
            println!("skipped: this machine shows no block device");
            return;
        };
        let link = place.path().join("mapper-name");
        std::os::unix::fs::symlink(device, &link).unwrap();
        assert!(is_same_source(link.to_str().unwrap(), device));
        assert!(is_same_source("tmpfs", "tmpfs"));
        assert!(!is_same_source("tmpfs", device) && !is_same_source("/no/such", "/no/other"));
    }

    #[test]
    fn the_innermost_and_latest_mount_holds_a_path() {
        let text = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /srv rw - xfs /dev/sda2 rw\n\
                    3 1 8:3 / /srv/pg rw - xfs /dev/sda3 rw\n4 1 8:4 / /srv/pg rw - xfs /dev/sda4 rw\n";
        let table = mountinfo::parse(text).unwrap();
        let source = |path: &str| holding(&table, Path::new(path)).unwrap().source.clone();
        assert_eq!(source("/srv/pg/data"), "/dev/sda4");
        assert_eq!(source("/srv/pgx"), "/dev/sda2");
        assert_eq!(source("/home"), "/dev/sda1");
        assert!(holding(&[], Path::new("/x")).is_err());
    }

    #[test]
    fn only_fresh_kernel_log_lines_about_our_device_are_shown() {
        let log = "[ 10.5] EXT4-fs (loop0): old\n[   12.25] ext4: Unknown parameter 'bogus'\n[ 12.3] usb 1-1: new\n\
                   [ 12.4] EXT4-fs (loop0): bad option\n";
        assert_eq!(
            kernel_lines(log, 12.0, "loop0", "ext4"),
            ["ext4: Unknown parameter 'bogus'", "EXT4-fs (loop0): bad option"]
        );
    }
}

//! Common code of filesystems on block devices: mkfs, the mark that identifies ours, mount, facts.
//!
//! A filesystem is a [`Recipe`] in a file of its own. It gets a UUID that we choose and enter into the ledger before
//! mkfs runs. Undoing wipes its signature only if the device has that UUID, so the next trial finds a blank disk and
//! foreign data are never touched.

use super::by_hand::{self, Script};
use super::identity::BlockDevice;
use super::ledger::Thing;
use super::mount::{self, WantedMount};
use super::options_kept::KeepRule;
use super::snapshots::SnapshotWay;
use super::{
    Base, Built, Described, Details, InUse, Layer, LayerInfo, LayerInput, Site, UndoThing, Unmet, devices_for, guard,
    images, mount_table, needs, recorded, total,
};
use crate::error::{Error, Result};
use crate::host::command::{Command, failed};
use crate::host::{Host, files, linux, paths, users};
use crate::parse::superblock;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, OptionValue, Options};
use crate::record::stack::{Role, Take};
use crate::units::Bytes;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

impl Described for Recipe {
    fn info(&self) -> &LayerInfo {
        &self.info
    }
}

impl Layer for Recipe {
    /// Checks that apply to every filesystem.
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        if let Some(first) = options.texts("mkfs").first().filter(|first| !first.starts_with('-')) {
            let message = format!("`{first}` is no option of mkfs, whose arguments these are");
            return Err(OptionProblem::at("mkfs", message)
                .help(format!("a mount option is written {{ mount = [\"{first}\"] }}")));
        }
        for argument in options.texts("mkfs") {
            let problem = |why: &str| Err(OptionProblem::at("mkfs", format!("the mkfs argument `{argument}` {why}")));
            if argument.is_empty() || argument.chars().any(char::is_control) {
                return problem("is empty or contains control characters");
            }
            if argument.contains('/') {
                return problem("contains a path: only the stack's own device may be accessed");
            }
            if let Some(other) = OTHER_DEVICES.iter().find(|other| argument.to_ascii_lowercase().contains(**other)) {
                return problem(&format!("names another device (`{other}`): only the stack's own may be accessed"));
            }
            if self.copies.are_in(&argument) {
                return problem("copies files of this machine into the filesystem");
            }
            if OWN_ARGUMENTS.iter().any(|own| argument.starts_with(own)) {
                return problem("sets the label or UUID, by which pgstrata recognizes its filesystems");
            }
        }
        mount::check(options, &[])
    }

    fn keeps_pages(&self, options: &Options) -> bool {
        let values: Vec<String> = options.0.values().map(OptionValue::plain).collect();
        !values.iter().any(|value| ["compress", "raid5", "raid6"].iter().any(|word| value.contains(word)))
    }

    fn unmet(&self, host: &Host, _options: &Options) -> Vec<Unmet> {
        let mkfs = self.mkfs();
        let tools = self.programs.iter().copied().chain([mkfs.as_str()]).map(|name| (name, self.package));
        let common = [("mount", "mount"), ("umount", "mount"), ("wipefs", "util-linux")];
        let programs = tools.chain(common).filter_map(|(name, package)| needs::program(host, name, package));
        let modules = if self.modules.is_empty() { &[self.name()] } else { self.modules };
        let kernel = needs::kernel_filesystem(host, self.name(), modules);
        // Without the driver the programs are useless.
        needs::root().into_iter().chain(kernel).chain(programs).collect()
    }

    fn refused(&self, host: &Host, options: &Options, data: &[Bytes]) -> Option<String> {
        let trying = self.trying.filter(|_| host.has_program(&self.mkfs()))?;
        let files = data.iter().map(|size| linux::in_memory(size.0).map(Arc::new).ok()).collect::<Option<Vec<_>>>()?;
        let paths: Vec<String> = files.iter().map(|file| format!("/proc/self/fd/{}", file.as_raw_fd())).collect();
        let devices = &FilesystemDevices { data: paths.iter().map(Path::new).collect(), log: None };
        let (uuid, label, log_uuid) = (&new_uuid(host).ok()?, shortened("pgstrata", self.label_bytes), String::new());
        let making = Making { devices, options, label, uuid, log_uuid, on_images: true, log_sector: None };
        // A stray word among the arguments names a file of `/` then, which that user cannot write.
        let command = self.mkfs_command(&making, trying).user(&users::server_user(host).ok()?);
        let failed = run_mkfs(host, &files.into_iter().fold(command, Command::inheriting)).err()?.to_string();
        // One that was killed or did not start has judged nothing.
        failed.contains("failed with exit code").then_some(failed)
    }

    fn capacity(&self, options: &Options, data: &[Bytes]) -> Option<Bytes> {
        (!data.is_empty()).then(|| (self.capacity)(options, data))
    }

    fn lacks_below(&self, options: &Options, data: &[Bytes]) -> Option<Unmet> {
        let (all, least) = (total(data), self.least);
        let is_free = options.texts("mkfs").iter().any(|argument| argument == "--unsupported");
        (all < least && !is_free).then(|| Unmet {
            what: format!("a device of at least {least} for {}: `{}` has {all} below it", self.mkfs(), self.name()),
            hint: "use a larger device".to_owned(),
        })
    }

    fn build(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let devices = FilesystemDevices::of(inputs, self)?;
        make(site, &devices, options, self)?;
        site.interrupt.check()?;
        // Before the mount, while nobody else writes to the images.
        let refilled = images::refill_below(site, devices.data.iter().chain(&devices.log))?;
        let mut built = open(site, &devices, options, self)?;
        if refilled.ranges > 0 {
            let left = format!("{} ({}), written again", refilled.ranges, Bytes(refilled.bytes));
            built.details.insert("holes that mkfs left below".to_owned(), left);
        }
        Ok(built)
    }

    fn by_hand(&self, script: &mut Script, inputs: &[LayerInput], options: &Options) -> Result<Vec<Base>> {
        let devices = FilesystemDevices::of(inputs, self)?;
        let (name, uuid) = (script.name(), script.new_uuid());
        let has_own_uuid = devices.log.is_some() && self.make_log.is_some();
        let log_uuid = if has_own_uuid { script.new_uuid() } else { uuid.clone() };
        let log_sector = match devices.log.filter(|_| !has_own_uuid) {
            Some(log) => Some(script.computed("SECTOR", &format!("$(blockdev --getss {})", by_hand::word(text(log)?)))),
            None => None,
        };
        let (label, on_images) = (shortened(&name, self.label_bytes), false);
        let making = Making { devices: &devices, options, label, uuid: &uuid, log_uuid, on_images, log_sector };
        self.commands(&making).iter().for_each(|command| script.run(command));
        let mut asked = mount::asked(options);
        asked.extend((self.members)(&devices));
        let first = text(devices.data[0])?;
        let target = mount::by_hand(script, self.name(), first, &asked.join(","), &format!("UUID={uuid}"));
        if let Some(command) = (self.mark_folder)(&target, options) {
            script.run(&command);
        }
        if let [program, arguments @ ..] = self.reading {
            script.read(&Command::new(program).args(arguments).arg(first));
        }
        Ok(vec![Base::Folder(target)])
    }

    fn reopen(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        open(site, &FilesystemDevices::of(inputs, self)?, options, self)
    }

    fn only_mounts(&self, options: &Options) -> Option<Vec<String>> {
        let others = self.info.options.iter().filter(|spec| ![MKFS.key, MOUNT.key].contains(&spec.key));
        others.into_iter().all(|spec| options.get(spec.key).is_none()).then(|| mount::asked(options))
    }

    fn has_snapshots(&self) -> bool {
        self.snapshots.is_some()
    }

    fn snapshots(&self, _host: &Host, of: &InUse<'_>) -> Result<Option<SnapshotWay>> {
        let Base::Folder(target) = of.base else { return Ok(None) };
        Ok(self.snapshots.map(|way| way(target)))
    }
}

/// How the mount and the signature of a filesystem are undone.
pub(super) const MOUNTED: (&str, UndoThing) = ("mount", mount::undo);
pub(super) const MADE: (&str, UndoThing) = ("filesystem", wipe);

/// Ledger kind of a log on a device of its own.
pub(super) const LOG: &str = "log";

pub(super) struct FilesystemDevices<'a> {
    /// Devices for data; at least one.
    pub data: Vec<&'a Path>,
    /// Device of its journal or log, if that is separate.
    pub log: Option<&'a Path>,
}

impl<'a> FilesystemDevices<'a> {
    fn of(inputs: &'a [LayerInput], recipe: &Recipe) -> Result<FilesystemDevices<'a>> {
        let data = devices_for(inputs, Role::Data);
        if data.is_empty() {
            return Err(Error::bug(format!("{} has no block device", recipe.name())));
        }
        Ok(FilesystemDevices { data, log: devices_for(inputs, Role::Log).first().copied() })
    }
}

/// Layer info of a filesystem on one device whose only options are those of mkfs and mount.
pub const fn on_one_device(name: &'static str, doc: &'static str, usual_mount_options: &'static str) -> LayerInfo {
    let info = LayerInfo::folder(name, doc, &[MKFS, MOUNT]).on(&[Take::ONE_DEVICE]).undone_by(&[MOUNTED, MADE]);
    LayerInfo { usual_mount_options, ..info }
}

/// A filesystem on block devices, as a layer: how it is made and read.
pub struct Recipe {
    /// Its name is the type for mount, and `mkfs.NAME` the program.
    pub(super) info: LayerInfo,
    /// Further programs that read it back.
    pub(super) programs: &'static [&'static str],
    /// Debian package of the programs.
    pub(super) package: &'static str,
    /// Kernel modules that provide it; without any, one of its name.
    pub(super) modules: &'static [&'static str],
    /// Capacity offered on devices of these capacities.
    pub(super) capacity: fn(&Options, &[Bytes]) -> Bytes,
    /// Size of the smallest device that its mkfs accepts.
    pub(super) least: Bytes,
    /// Maximum label length in bytes.
    pub(super) label_bytes: usize,
    /// mkfs options that copy files of the machine into the filesystem.
    pub(super) copies: CopyOptions,
    /// Arguments with which mkfs only tries; none if it writes little to a new file anyway; `None` if neither.
    pub(super) trying: Option<&'static [&'static str]>,
    /// Arguments of mkfs for label and UUID.
    pub(super) label_and_uuid: fn(&str, &str) -> Vec<String>,
    /// Sets the UUID if mkfs cannot; given the device and the UUID.
    pub(super) set_uuid: Option<fn(&Path, &str) -> Command>,
    /// Further arguments of mkfs.
    pub(super) further: fn(&Making<'_>) -> Vec<String>,
    /// Makes a separate log with a UUID of its own, before mkfs; without it, the log has the filesystem's.
    pub(super) make_log: Option<fn(&Making<'_>, &Path) -> Command>,
    /// Mount options that name its further devices.
    pub(super) members: fn(&FilesystemDevices<'_>) -> Vec<String>,
    /// How the kernel prints its mount options.
    pub(super) rules: &'static [KeepRule],
    /// Further evidence of active options; given the host and the device.
    pub(super) in_force: fn(&Host, &str) -> Vec<String>,
    /// Applies options of its own to the mounted filesystem, given the mount point and the options.
    pub(super) mark_folder: fn(&Path, &Options) -> Option<Command>,
    /// Reads these back.
    pub(super) after_mount: fn(&Host, &Path, &Options) -> Result<Details>,
    /// How snapshots are taken while it is mounted there.
    pub(super) snapshots: Option<fn(&Path) -> SnapshotWay>,
    /// Words before the device of the command that prints its superblock; empty if there is none.
    pub(super) reading: &'static [&'static str],
    /// Superblock facts; given the host, the first data device and the mount point.
    pub(super) facts: fn(&Host, &Path, &Path) -> Result<Details>,
}

impl Recipe {
    fn mkfs(&self) -> String {
        format!("mkfs.{}", self.name())
    }

    /// The commands that make it, in order.
    fn commands(&self, making: &Making<'_>) -> Vec<Command> {
        let Making { devices, uuid, .. } = making;
        let log = self.make_log.zip(devices.log).map(|(make, log)| make(making, log));
        log.into_iter()
            .chain([self.mkfs_command(making, &[])])
            .chain(self.set_uuid.map(|set| set(devices.data[0], uuid)))
            .collect()
    }

    fn mkfs_command(&self, making: &Making<'_>, first: &[&str]) -> Command {
        let Making { devices, options, label, uuid, .. } = making;
        Command::new(self.mkfs())
            .args(first)
            .args(options.texts("mkfs"))
            .args((self.further)(making))
            .args((self.label_and_uuid)(label, uuid))
            .args(devices.data.iter().copied())
    }

    /// Defaults for a filesystem on one device, without an external journal, whose mkfs copies no files and whose
    /// kernel driver prints each mount option as given. Name, label and facts are its own.
    pub(super) const fn defaults() -> Recipe {
        Recipe {
            info: on_one_device("", "", ""),
            programs: &[],
            package: "",
            modules: &[],
            capacity: |_, data| total(data),
            least: Bytes(0),
            label_bytes: 0,
            copies: CopyOptions { bare: "", short: '\0', long: "" },
            trying: None,
            label_and_uuid: |_, _| Vec::new(),
            set_uuid: None,
            further: |_| Vec::new(),
            make_log: None,
            members: |_| Vec::new(),
            rules: &[],
            in_force: |_, _| Vec::new(),
            mark_folder: |_, _| None,
            after_mount: |_, _, _| Ok(Details::new()),
            snapshots: None,
            reading: &[],
            facts: |_, _, _| Ok(Details::new()),
        }
    }
}

/// A filesystem to make.
pub(super) struct Making<'a> {
    pub devices: &'a FilesystemDevices<'a>,
    pub options: &'a Options,
    pub label: &'a str,
    pub uuid: &'a str,
    /// UUID of a separate log.
    pub log_uuid: String,
    /// True on images, whose blocks must all be written before the measurement.
    pub on_images: bool,
    /// Sector size of a separate log's device, if known.
    pub log_sector: Option<String>,
}

/// mkfs options that name a folder or file of the machine, which a plan must not reach.
pub(super) struct CopyOptions {
    /// Short options of this mkfs without a value; another may follow in the same argument.
    pub bare: &'static str,
    pub short: char,
    /// The long option, without its dashes; empty if there is none. It may be abbreviated.
    pub long: &'static str,
}

impl CopyOptions {
    fn are_in(&self, argument: &str) -> bool {
        match argument.strip_prefix("--") {
            Some(long) => {
                let name = long.split('=').next().unwrap_or_default();
                !name.is_empty() && self.long.starts_with(name)
            }
            None => argument
                .strip_prefix('-')
                .is_some_and(|short| short.trim_start_matches(|c| self.bare.contains(c)).starts_with(self.short)),
        }
    }
}

pub(super) const MKFS: OptionSpec = OptionSpec::with_default("mkfs", OptionKind::TextList, "none")
    .doc("mkfs arguments, one string each: [\"-E\", \"lazy_itable_init=0\"].");

pub(super) const MOUNT: OptionSpec = OptionSpec::with_default("mount", OptionKind::TextList, "none")
    .doc("Mount options, one string each: [\"noatime\", \"discard\"].");

/// Prefixes of mkfs arguments that pgstrata sets itself.
const OWN_ARGUMENTS: &[&str] = &["-L", "--label", "-U", "--uuid", "uuid="];

/// Ways to name a device other than by its path (mke2fs(8) `-J device=`, mkfs.xfs(8) `logdev=`, libblkid's tags).
const OTHER_DEVICES: &[&str] = &["device=", "dev=", "label=", "uuid=", "partuuid=", "partlabel=", "id="];

/// A new UUID from the kernel.
pub(super) fn new_uuid(host: &Host) -> Result<String> {
    Ok(host.read("/proc/sys/kernel/random/uuid")?.trim().to_owned())
}

fn make(site: &Site<'_>, devices: &FilesystemDevices<'_>, options: &Options, recipe: &Recipe) -> Result<()> {
    let (uuid, label) = (new_uuid(site.host)?, shortened(&site.name, recipe.label_bytes));
    let log_uuid = recipe.make_log.map_or_else(|| Ok(uuid.clone()), |_| new_uuid(site.host))?;
    let mut log_sector = None;
    if let Some(log) = devices.log {
        site.ledger.enter(Thing::new(recipe.name(), LOG).with_path("device", log)?.with("uuid", &log_uuid))?;
        let sector: Option<u32> = BlockDevice::find(log)?.node.number(site.host, "queue/logical_block_size");
        log_sector = sector.filter(|sector| *sector > 512).map(|sector| sector.to_string());
    }
    for device in &devices.data {
        let thing = Thing::new(recipe.name(), "filesystem").with_path("device", device)?.with("uuid", &uuid);
        // Between mkfs and setting its UUID, our filesystem is identified by its label.
        let labeled = recipe.set_uuid.map(|_| label);
        site.ledger.enter(labeled.into_iter().fold(thing, |thing, label| thing.with("label", label)))?;
    }
    let on_images = !site.images.is_empty();
    let making = Making { devices, options, label, uuid: &uuid, log_uuid, on_images, log_sector };
    for command in recipe.commands(&making) {
        // In the run's private folder, so that a stray word among the arguments cannot name a file of the machine.
        run_mkfs(site.host, &command.cwd(&site.folder))?;
    }
    Ok(())
}

/// Mounts the filesystem, compares the mount options, and reads it back.
fn open(site: &Site<'_>, devices: &FilesystemDevices<'_>, options: &Options, recipe: &Recipe) -> Result<Built> {
    let asked = mount::asked(options);
    let first = devices.data[0];
    let wanted = WantedMount {
        fstype: recipe.name(),
        source: text(first)?,
        others: devices.data[1..].iter().map(|path| text(path)).collect::<Result<_>>()?,
        options: &asked,
        members: (recipe.members)(devices),
        rules: recipe.rules,
        in_force: recipe.in_force,
    };
    let target = mount::mount(site, &wanted)?;
    let mut details = (recipe.facts)(site.host, first, &target)?;
    if let Some(command) = (recipe.mark_folder)(&target, options) {
        site.host.run(&command)?;
    }
    details.extend((recipe.after_mount)(site.host, &target, options)?);
    details.extend(atomic_writes(&target)?.map(|units| ("atomic writes".to_owned(), units)));
    Ok(Built::one(Base::Folder(target), details))
}

/// Sizes that the filesystem writes atomically, if this kernel reports them (Linux 6.11). It reports them only for a
/// file.
fn atomic_writes(target: &Path) -> Result<Option<String>> {
    let path = target.join(".pgstrata-atomic-writes");
    drop(files::create(&path)?);
    let units = paths::atomic_write_units(&path);
    files::remove(&path)?;
    Ok(units?.map(|(least, most)| match most {
        0 => "none".to_owned(),
        _ => format!("{} to {}", Bytes(u64::from(least)), Bytes(u64::from(most))),
    }))
}

pub(super) fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Error::bug("a device path that is not UTF-8"))
}

/// Wipes the signature with the UUID (or the label, if one is noted) of a ledger entry from its device. Does nothing if
/// the device carries none or a foreign one: a device's name may be another's by now.
pub(super) fn wipe(host: &Host, thing: &Thing) -> Result<()> {
    let (path, uuid, label) = (Path::new(thing.mark("device")?), thing.mark("uuid")?, thing.marks.get("label"));
    let Some(device) = BlockDevice::with_size(host, path) else { return Ok(()) };
    let signatures = guard::signatures(host, &device)?;
    let ours = signatures
        .iter()
        .filter(|it| it.uuid.as_deref() == Some(uuid) || (label.is_some() && it.label.as_ref() == label))
        .count();
    if ours == 0 {
        return Ok(());
    }
    if ours < signatures.len() {
        return Err(holds_other(path, "the filesystem that pgstrata created"));
    }
    guard::refuse_mounted(host, &device)?;
    wipe_all(host, path)
}

/// A device is not wiped: it holds something other than what pgstrata made on it.
pub(super) fn holds_other(path: &Path, than: &str) -> Error {
    let shown = path.display();
    Error::host(format!("{shown} holds something other than {than}"))
        .hint(format!("check `wipefs {shown}` and clear it manually"))
}

/// Wipes every signature from a device, retrying while somebody else holds it open.
pub(super) fn wipe_all(host: &Host, path: &Path) -> Result<()> {
    mount_table::again(|| wipe_once(host, path))
}

/// As [`wipe_all`], without retries.
pub(super) fn wipe_once(host: &Host, path: &Path) -> Result<()> {
    host.run(&Command::new("wipefs").arg("--all").arg(path)).map(drop)
}

/// Runs mkfs. On failure the error contains mkfs's reason: mkfs.xfs prints it first, followed by its whole usage.
fn run_mkfs(host: &Host, command: &Command) -> Result<()> {
    let (mut output, code) = host.run_to_end(command)?;
    if code == Some(0) {
        return Ok(());
    }
    for said in [&mut output.stdout, &mut output.stderr] {
        let usage = said.find("\nUsage:").filter(|at| !said[..*at].trim().is_empty());
        said.truncate(usage.unwrap_or(said.len()));
    }
    let failed = failed(command, code, &output);
    Err(match recorded::abandoned(host) {
        Some((target, file)) => failed.hint(format!(
            "{target} is still mounted on {file}, whose process died, which may be why; if a killed run left it, `pgstrata clean` unmounts it"
        )),
        None => failed,
    })
}

/// The longest prefix of `name` with at most `bytes`.
pub(super) fn shortened(name: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    &name[..end]
}

/// Selects facts from a superblock that a tool prints, given its words before the device; `begins` names the first
/// field.
pub(super) fn superblock(host: &Host, words: &[&str], device: &Path, begins: &str, names: &str) -> Result<Details> {
    let tool: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with('-')).collect();
    printed(host, words, device, |text| superblock::parse(&tool.join(" "), begins, text), names)
}

/// Selects facts by their names from what a tool prints, given its words before the device or folder; missing ones are
/// left out.
pub(super) fn printed(
    host: &Host,
    words: &[&str],
    of: &Path,
    parse: impl FnOnce(&str) -> Result<Details>,
    names: &str,
) -> Result<Details> {
    let fields = parse(&host.run(&Command::new(words[0]).args(&words[1..]).arg(of))?.stdout)?;
    Ok(names.split(", ").filter_map(|name| Some((name.to_owned(), fields.get(name)?.clone()))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::options::OptionValue;

    fn mkfs(arguments: &[&str]) -> Options {
        let mut options = Options::default();
        let list = arguments.iter().map(|argument| OptionValue::Text((*argument).to_owned())).collect();
        options.set("mkfs", OptionValue::List(list));
        options
    }

    #[test]
    fn arguments_that_would_reach_another_device_are_refused() {
        for bad in [
            "/dev/sda",
            "logdev=/dev/sda",
            "../dev/sda",
            "device=UUID/x",
            "-Lname",
            "-U",
            "--label=x",
            "uuid=1",
            "",
            "a\nb",
            "crc=1,uuid=2",
        ] {
            assert!(crate::provision::xfs::XFS.check(&mkfs(&["-m", bad])).is_err(), "{bad:?}");
        }
        let mount = crate::provision::ext::EXT4.check(&mkfs(&["noatime"])).unwrap_err();
        assert!(mount.help.unwrap().contains("mount = [\"noatime\"]"));
        assert_eq!(
            crate::provision::ext::EXT4.check(&mkfs(&[
                "-E",
                "lazy_itable_init=0,lazy_journal_init=0",
                "-O",
                "^has_journal",
                "-i",
                "8192"
            ])),
            Ok(())
        );
    }

    #[test]
    fn mkfs_cannot_be_told_to_copy_files_of_the_machine() {
        use crate::provision::{btrfs::BTRFS, ext::EXT4, xfs::XFS};
        for argument in ["-d", "-d..", "-qd", "-Fqd."] {
            assert!(EXT4.check(&mkfs(&[argument])).is_err(), "{argument}");
            assert!(XFS.check(&mkfs(&[argument])).is_ok(), "{argument}");
        }
        for argument in ["-r", "-r..", "--rootdir", "--rootdir=..", "--root=.", "-qr"] {
            assert!(BTRFS.check(&mkfs(&[argument])).is_err(), "{argument}");
        }
        assert!(XFS.check(&mkfs(&["-p", "proto"])).is_err());
        assert_eq!(BTRFS.check(&mkfs(&["-d", "single", "-n", "16k"])), Ok(()));
    }

    #[test]
    fn labels_are_cut_between_characters() {
        assert_eq!(shortened("pgstrata-1a2b3c4d-1-ext4", 16), "pgstrata-1a2b3c4");
        assert_eq!(shortened("pgé", 3), "pg");
        assert_eq!(shortened("pg", 16), "pg");
    }

    #[test]
    fn the_reason_of_mkfs_is_not_lost_in_its_usage() {
        let usage = "echo 'Invalid value 999 for -b size' >&2; echo 'Usage: mkfs' >&2; seq 40 >&2; exit 1";
        let error = run_mkfs(&Host::this(), &Command::new("sh").args(["-c", usage])).unwrap_err().to_string();
        assert!(error.ends_with("output:\n  Invalid value 999 for -b size"), "{error}");
    }
}

//! `zpool`: a ZFS pool over any devices.
//!
//! Ledger entries: the parameters of the module, as knobs; the `pool`, identified by its name, which contains the run's
//! id, and by a mark in a user property of its root dataset (or, for a reopened one, by its GUID); the `label` of each
//! of its devices, which survives the destruction of a pool and is wiped if it has the pool's name. A pool is only ever
//! imported by the GUID found on the devices of the stack and by their paths, and never entered into the machine's
//! cache file.

use super::by_hand::Script;
use super::filesystem::{self, new_uuid, wipe_all};
use super::identity::BlockDevice;
use super::knobs::{self, modules};
use super::ledger::Thing;
use super::mount_table::{BUSY_PAUSE, BUSY_TRIES};
use super::sysfs::DeviceNumber;
use super::zfs_tools::{self, MARK};
use super::{
    Base, Built, Details, Layer, LayerInfo, LayerInput, Site, Unmet, devices_for, folder, guard, kernel_module, needs,
};
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::time::sleep;
use crate::host::{Host, paths};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::stack::{BaseKind, Role, Take};
use std::path::{Path, PathBuf};

pub struct Zpool;

/// Redundancy of the data devices (zpoolconcepts(7)).
const GROUPS: &[&str] = &["mirror", "raidz1", "raidz2", "raidz3", "draid1", "draid2", "draid3"];
const MIRROR: &[&str] = &["mirror"];

const fn take(role: Role, key: &'static str, least: usize, groups: &'static [&'static str], doc: &'static str) -> Take {
    Take { role, kind: BaseKind::Device, key, least, most: 255, groups, doc }
}

const TAKES: &[Take] = &[
    take(Role::Data, "vdevs", 1, GROUPS, "Devices for data, or groups of them; default: all unused, as a stripe."),
    take(Role::Log, "log", 0, MIRROR, "Devices for the intent log (SLOG)."),
    take(Role::Cache, "cache", 0, &[], "Devices for the second-level read cache (L2ARC)."),
    take(Role::Special, "special", 0, MIRROR, "Devices for metadata and small blocks."),
    take(Role::Dedup, "dedup", 0, MIRROR, "Devices for deduplication tables."),
];

/// Properties that pgstrata sets itself, or that reach outside the stack.
const REFUSED: &[(&str, &str)] = &[
    ("cachefile", "the pool must not be imported when the machine boots"),
    ("altroot", "pgstrata chooses the mount points"),
    ("bootfs", "nothing boots from it"),
    ("readonly", "PostgreSQL could not write"),
    ("name", "pgstrata chooses the name"),
    ("guid", "ZFS chooses it"),
    ("version", "a pool of an old version has no properties that mark it"),
    ("multihost", "the pool belongs to this machine alone"),
    ("delegation", "nobody else uses the pool"),
    ("pgstrata:", "pgstrata recognizes its pools by it"),
];

const OPTIONS: &[OptionSpec] = &[
    zfs_tools::properties("Pool properties by name: { ashift = 12, autotrim = \"on\" }; features as feature@NAME."),
    OptionSpec::with_default("draid_data", OptionKind::Integer { min: 1 }, "8, or as many as there are devices for")
        .doc("Data devices in each redundancy group of a dRAID."),
    OptionSpec::with_default("draid_spares", OptionKind::Integer { min: 0 }, "0").doc("Distributed spares of a dRAID."),
    modules::PARAMETERS,
];

pub(super) const INFO: LayerInfo = LayerInfo {
    takes: TAKES,
    offers: BaseKind::Pool,
    undo: &[
        (POOL, |host, thing| match thing.marks.contains_key("guid") {
            true => export(host, thing),
            false => zfs_tools::destroy(host, "zpool", "-f", thing),
        }),
        (LABEL, wipe_label),
    ],
    ..LayerInfo::device(
        "zpool",
        "A ZFS pool: stripe, mirrors, raidz or dRAID, with log, cache, special and dedup devices.",
        OPTIONS,
    )
};

impl Layer for Zpool {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        modules::check(&options.table(modules::KEY))?;
        zfs_tools::check(options, REFUSED)
    }

    fn unmet(&self, host: &Host, _options: &Options) -> Vec<Unmet> {
        let mut unmet = zfs_tools::unmet(host);
        if !has_udev(host) {
            unmet.extend(needs::program(host, "sfdisk", "fdisk"));
        }
        unmet
    }

    fn build(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        kernel_module::load(site.host, "zfs", &[])?;
        let parameters = modules::set(site.host, site.ledger, &options.table(modules::KEY))?;
        let (name, mark) = (&site.name, new_uuid(site.host)?);
        let asked = zfs_tools::asked(options);
        enter_labels(site, inputs)?;
        let vdevs = vdevs(&partitioned(site.host, inputs)?, options)?;
        site.ledger.enter(zfs_tools::marked(self.name(), POOL, name, &mark))?;
        let own = ["-o", "cachefile=none", "-O", &format!("{MARK}={mark}")];
        site.host.run(&create(name, &own, &asked, vdevs))?;
        read_back(site.host, name, &asked, &parameters)
    }

    fn by_hand(&self, script: &mut Script, inputs: &[LayerInput], options: &Options) -> Result<Vec<Base>> {
        let (name, asked, parameters) = (script.name(), zfs_tools::asked(options), options.table(modules::KEY));
        script.run(&Command::new("modprobe").arg("zfs"));
        modules::by_hand(script, &parameters);
        script.run(&create(&name, &[], &asked, vdevs(inputs, options)?));
        script.read(&Command::new("zpool").args(["status", &name]));
        zfs_tools::read_by_hand(script, "zpool", &name, &asked);
        Ok(vec![Base::Pool(name)])
    }

    fn reopen(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        kernel_module::load(site.host, "zfs", &[])?;
        let parameters = modules::set(site.host, site.ledger, &options.table(modules::KEY))?;
        let devices = devices(inputs);
        // It keeps its name, which identifies the labels on its devices.
        let (name, guid) = pool_on(site.host, &devices)?;
        site.ledger.enter(Thing::new(self.name(), POOL).with("name", &name).with("guid", &guid))?;
        let mut import = zfs_tools::call("zpool", &["import", "-f", "-N", "-o", "cachefile=none"]);
        for device in &devices {
            import = import.arg("-d").arg(carrier(site.host, device)?);
        }
        // Never -F: a pool that needs a rewind has lost something.
        site.host.run(&import.arg(guid))?;
        read_back(site.host, &name, &zfs_tools::asked(options), &parameters)
    }
}

const POOL: &str = "pool";
const LABEL: &str = "label";

/// All devices of the pool, in any role.
fn devices(inputs: &[LayerInput]) -> Vec<&Path> {
    TAKES.iter().flat_map(|take| devices_for(inputs, take.role)).collect()
}

/// The devices, with whole disks replaced by partitions if no udev runs: `zpool` partitions a whole disk itself and
/// then waits in vain for udev to name the partition.
fn partitioned(host: &Host, inputs: &[LayerInput]) -> Result<Vec<LayerInput>> {
    let mut all = inputs.to_vec();
    if has_udev(host) {
        return Ok(all);
    }
    for given in &mut all {
        let Base::Device(path) = &given.base else { continue };
        let node = BlockDevice::find(path)?.node;
        // Loop devices, volumes and partitions are used as they are.
        if !node.is_partition(host) && node.exists(host) && host.exists(node.path_of("device")) {
            given.base = Base::Device(partition(host, path, node)?);
        }
    }
    Ok(all)
}

/// Control socket of a running udev.
const UDEV: &str = "/run/udev/control";

fn has_udev(host: &Host) -> bool {
    host.exists(UDEV)
}

/// Makes one partition on a blank disk, named as `zpool` names its own.
fn partition(host: &Host, path: &Path, node: DeviceNumber) -> Result<PathBuf> {
    let layout = "label: gpt\nstart=1MiB, name=zfs-pgstrata\n";
    host.run(&Command::new("sfdisk").args(["--quiet", "--wipe", "always"]).arg(path).stdin(layout))?;
    for _ in 0..BUSY_TRIES {
        let first = node.partitions(host).first().and_then(|first| first.device_file(host));
        match first.filter(|path| paths::exists(path)) {
            Some(made) => return Ok(made),
            None => sleep(BUSY_PAUSE),
        }
    }
    Err(Error::host(format!("the kernel does not show the partition of {}", path.display())))
}

/// The devices in the order of `zpool create`.
struct Vdevs {
    words: Vec<String>,
    /// True if groups differ, or other roles have another redundancy: `zpool` then requires `-f`.
    mixed: bool,
}

fn vdevs(inputs: &[LayerInput], options: &Options) -> Result<Vdevs> {
    let mut words = Vec::new();
    let mut shapes = Vec::new();
    for take in TAKES {
        let mut of_role: Vec<&LayerInput> = inputs.iter().filter(|given| given.role == take.role).collect();
        if of_role.is_empty() {
            continue;
        }
        if take.role != Role::Data {
            words.push(take.role.word().to_owned());
        }
        // All devices after a group's keyword become its members, so those without a group come first.
        let mut groups: Vec<(Option<&str>, Vec<&str>)> = Vec::new();
        of_role.sort_by_key(|given| given.group.is_some());
        for given in of_role {
            let Base::Device(path) = &given.base else { continue };
            let path = filesystem::text(path)?;
            match groups.iter_mut().find(|(group, _)| group.is_some() && *group == given.group.as_deref()) {
                Some((_, members)) => members.push(path),
                None => groups.push((given.group.as_deref(), vec![path])),
            }
        }
        for (group, members) in groups {
            let kind = group.and_then(|group| Some(group.rsplit_once('-')?.0));
            words.extend(kind.map(|kind| group_word(kind, members.len(), options)));
            if take.role != Role::Cache && take.role != Role::Log {
                shapes.push((kind, kind.map(|_| members.len())));
            }
            words.extend(members.into_iter().map(str::to_owned));
        }
    }
    Ok(Vdevs { words, mixed: shapes.windows(2).any(|pair| pair[0] != pair[1]) })
}

fn create(name: &str, own: &[&str], asked: &[(String, String)], vdevs: Vdevs) -> Command {
    let create = zfs_tools::call("zpool", if vdevs.mixed { &["create", "-f"] } else { &["create"] });
    let create = create.args(own).args(zfs_tools::arguments(asked));
    create.args(["-O", "canmount=off", "-O", "mountpoint=none", name]).args(vdevs.words)
}

/// `mirror`; `draid2:4d:8c:1s`: data devices per group, children and spares.
fn group_word(kind: &str, members: usize, options: &Options) -> String {
    if !kind.starts_with("draid") {
        return kind.to_owned();
    }
    let data = options.integer("draid_data").map(|data| format!(":{data}d")).unwrap_or_default();
    let spares = options.integer("draid_spares").map(|spares| format!(":{spares}s")).unwrap_or_default();
    format!("{kind}{data}:{members}c{spares}")
}

/// Facts: properties, parameters, version.
fn read_back(host: &Host, name: &str, asked: &[(String, String)], parameters: &Details) -> Result<Built> {
    let found = zfs_tools::get(host, "zpool", name)?;
    zfs_tools::compare("the pool", asked, &found)?;
    let mut details = zfs_tools::facts(&found);
    details.extend(parameters.iter().map(|(name, value)| (format!("module parameter {name}"), value.clone())));
    details.extend(host.read_optional("/sys/module/zfs/version").map(|text| ("ZFS version".to_owned(), text)));
    Ok(Built::one(Base::Pool(name.to_owned()), details))
}

/// Location of a pool's label: the device, or the partition that `zpool` makes on a whole disk.
fn carriers(host: &Host, device: &BlockDevice) -> Vec<PathBuf> {
    let partitions = device.node.partitions(host).into_iter().filter_map(|node| node.device_file(host));
    std::iter::once(device.path.clone()).chain(partitions).collect()
}

/// Signature type that wipefs reports for the label of a pool.
const MEMBER: &str = "zfs_member";

/// Name and GUID from the pool label on a device or partition.
fn label_of(host: &Host, path: &Path) -> Result<Option<(String, String)>> {
    let signatures = guard::signatures(host, &BlockDevice::find(path)?)?;
    let of_pool = signatures.into_iter().filter(|signature| signature.kind == MEMBER);
    Ok(of_pool.filter_map(|signature| signature.label.zip(signature.uuid)).next())
}

/// The device or partition that has a label.
fn carrier(host: &Host, device: &Path) -> Result<PathBuf> {
    for path in carriers(host, &BlockDevice::find(device)?) {
        if guard::signature(host, &path, MEMBER)?.is_some() {
            return Ok(path);
        }
    }
    Err(Error::host(format!("{} carries no label of a ZFS pool", device.display())))
}

/// Name and GUID of the single pool of ours that all the devices belong to.
fn pool_on(host: &Host, devices: &[&Path]) -> Result<(String, String)> {
    let mut pool: Option<(String, String)> = None;
    for device in devices {
        let Some(found) = label_of(host, &carrier(host, device)?)? else { continue };
        if !found.0.starts_with(folder::PREFIX) {
            let message = format!("{} belongs to the pool {}, which is not ours", device.display(), found.0);
            return Err(Error::host(message));
        }
        match &pool {
            Some(known) if *known != found => {
                return Err(Error::host(format!("the devices belong to several pools: {} and {}", known.0, found.0)));
            }
            _ => pool = Some(found),
        }
    }
    pool.ok_or_else(|| Error::host("the devices carry no ZFS pool"))
}

/// Exports a reopened pool; its devices keep it.
fn export(host: &Host, thing: &Thing) -> Result<()> {
    let (name, guid) = (thing.mark("name")?, thing.mark("guid")?);
    if !zfs_tools::is_there(host, "zpool", name)? {
        return Ok(());
    }
    let found = host.run(&zfs_tools::call("zpool", &["get", "-Hp", "-o", "value", "guid", name]))?.stdout;
    if found.trim() != guid {
        return Err(Error::host(format!(
            "the pool {name} is not the one that pgstrata imported: its GUID is {}",
            found.trim()
        )));
    }
    host.run(&zfs_tools::call("zpool", &["export", "-f", name])).map(drop)
}

/// Enters the labels that the devices will get. That of a read cache names no pool: it is identified by the same
/// attachment of the device (`diskseq`) in the same boot.
fn enter_labels(site: &Site<'_>, inputs: &[LayerInput]) -> Result<()> {
    for take in TAKES {
        for device in devices_for(inputs, take.role) {
            let mut thing = Thing::new("zpool", LABEL).with_path("device", device)?.with("pool", &site.name);
            if take.role == Role::Cache {
                let node = BlockDevice::find(device)?.node;
                thing = thing.with("boot", knobs::boot(site.host)).with("sequence", sequence(site.host, node));
            }
            site.ledger.enter(thing)?;
        }
    }
    Ok(())
}

fn sequence(host: &Host, node: DeviceNumber) -> String {
    node.attribute(host, "diskseq").unwrap_or_default()
}

/// Wipes a pool's label from a device of the ledger, with the partitions that `zpool` made on it. Does nothing if the
/// label is missing or another pool's: the device's name may have been reassigned by now.
fn wipe_label(host: &Host, thing: &Thing) -> Result<()> {
    let (path, pool) = (Path::new(thing.mark("device")?), thing.mark("pool")?);
    let Some(device) = BlockDevice::with_size(host, path) else { return Ok(()) };
    let same_attachment = thing.marks.get("boot") == Some(&knobs::boot(host))
        && thing.marks.get("sequence").filter(|known| !known.is_empty()) == Some(&sequence(host, device.node));
    let partitions = device.node.partitions(host);
    for carrier in carriers(host, &device) {
        match label_of(host, &carrier)? {
            Some((name, _)) if name == pool => wipe_all(host, &carrier)?,
            None if same_attachment && is_nameless(host, &carrier)? => wipe_all(host, &carrier)?,
            // Killed between the two: the partition table exists, the label does not.
            None if carrier == device.path && made_by_zpool(host, &partitions) => {}
            _ => continue,
        }
        if !partitions.is_empty() {
            wipe_all(host, &device.path)?;
            break;
        }
    }
    Ok(())
}

/// True if a device has a ZFS label that names no pool, and nothing else.
fn is_nameless(host: &Host, path: &Path) -> Result<bool> {
    let found = guard::signatures(host, &BlockDevice::find(path)?)?;
    Ok(!found.is_empty() && found.iter().all(|signature| signature.kind == MEMBER && signature.label.is_none()))
}

/// True if the partitions are those that `zpool` makes on a whole disk: the first is named `zfs-...` (libzutil,
/// `zpool_label_disk`), and none has anything but a label of ours.
fn made_by_zpool(host: &Host, partitions: &[DeviceNumber]) -> bool {
    let uevent = partitions.first().and_then(|node| node.attribute(host, "uevent")).unwrap_or_default();
    let is_zpools =
        uevent.lines().find_map(|line| line.strip_prefix("PARTNAME=")).is_some_and(|name| name.starts_with("zfs-"));
    is_zpools
        && partitions.iter().all(|node| {
            let device = node.device_file(host).and_then(|path| BlockDevice::find(&path).ok());
            device.is_some_and(|device| guard::signatures(host, &device).is_ok_and(|found| found.is_empty()))
        })
}

#[cfg(test)]
mod tests;

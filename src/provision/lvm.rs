//! `lvm`: logical volumes, linear, striped or thin, of a volume group of their own.
//!
//! Ledger entries: each `physical` volume, by its UUID, which we choose; then the `group`, whose name contains the
//! run's id. Every command names only our devices (`--devices`), so that LVM neither scans nor activates others; it
//! keeps no backup of the metadata in `/etc`. Undoing removes the group, or, if its devices are gone, its remaining
//! mappings, and wipes the labels.

mod options;
mod snapshots;
#[cfg(test)]
mod tests;

use super::by_hand::{self, Script};
use super::ledger::Thing;
use super::size::Size;
use super::snapshots::{SNAPSHOT, SnapshotWay};
use super::{
    Base, Built, Details, InUse, Layer, LayerInfo, LayerInput, Site, Unmet, devices_for, filesystem, guard,
    kernel_module, mapper, mount_table, needs, total,
};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::command::Command;
use crate::parse::lvm;
use crate::record::options::{OptionProblem, Options};
use crate::record::stack::{Role, Take};
use crate::units::Bytes;
use options::Volume;
use std::collections::BTreeMap;
use std::path::Path;

pub struct Lvm;

/// A row of one of LVM's reports, by column.
type ReportRow = BTreeMap<String, String>;

pub(super) const INFO: LayerInfo = LayerInfo::device(
    "lvm",
    "LVM: one logical volume or several, linear, striped or thin, in a volume group of their own.",
    options::OPTIONS,
)
.on(&[Take {
    most: 64,
    doc: "The devices of the volume group; default: all that are still unused.",
    ..Take::ONE_DEVICE
}])
.keeping_pages()
.undone_by(&[
    (GROUP, remove_group),
    (SNAPSHOT, snapshots::delete),
    (ACTIVE, |host, thing| remove_mappings(host, thing.mark("name")?)),
    (PHYSICAL, filesystem::wipe),
]);

impl Layer for Lvm {
    fn bases(&self, options: &Options) -> Vec<String> {
        options::volumes(options).into_iter().map(|volume| volume.base).collect()
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        options::check(options)
    }

    fn unmet(&self, host: &Host, options: &Options) -> Vec<Unmet> {
        let programs = needs::programs(host, &[("lvm", "lvm2"), ("wipefs", "util-linux")]);
        let kernel = kernel_module::unmet(host, "the device mapper", "dm-mod", |host| host.exists(MAPPER));
        let thin = options::is_thin(options).then(|| kernel_module::unmet_target(host, "thin-pool", "dm-thin-pool"));
        mapper::unmet(host).chain(programs).chain(kernel).chain(thin.flatten()).collect()
    }

    fn capacity(&self, options: &Options, data: &[Bytes]) -> Option<Bytes> {
        let all = total(data).0;
        // Several volumes are not distinguished: the largest counts.
        let sizes = options::volumes(options).into_iter().filter_map(|volume| volume.size);
        let largest = sizes.map(|size| size.bytes(all)).max()?;
        Some(Bytes(largest.min(all)))
    }

    fn build(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let devices = devices_for(inputs, Role::Data);
        options::check_devices(options, devices.len())?;
        kernel_module::load(site.host, "dm-mod", &[])?;
        for device in &devices {
            let uuid = physical_uuid(&filesystem::new_uuid(site.host)?);
            site.ledger.enter(Thing::new("lvm", PHYSICAL).with_path("device", device)?.with("uuid", &uuid))?;
            let create = command("pvcreate", &devices).args(["--yes", "--norestorefile", "--uuid", &uuid]);
            site.host.run(&create.arg(device))?;
        }
        let group = mapper::short_name(site);
        enter_group(site, GROUP, &group, &devices)?;
        let create = command("vgcreate", &devices).args(["--yes", "--setautoactivation", "n"]);
        site.host.run(&create.arg(&group).args(&devices))?;
        make_volumes(site, &group, &devices, options)?;
        open(site.host, &group, &devices, options)
    }

    fn by_hand(&self, script: &mut Script, inputs: &[LayerInput], options: &Options) -> Result<Vec<Base>> {
        let (devices, group) = (devices_for(inputs, Role::Data), script.name());
        options::check_devices(options, devices.len())?;
        let tool = |program: &str| Command::new("lvm").arg(program);
        script.run(&tool("pvcreate").args(&devices));
        script.run(&tool("vgcreate").arg(&group).args(&devices));
        let mut room = tool("vgs").args(["--noheadings", "--options", "vg_free_count", &group]);
        let mut unit = 1;
        if options::is_thin(options) {
            let pool = format!("{group}/{}", options::POOL);
            script.run(&tool("lvcreate").args(options::pool_arguments(options, &group)));
            script.run(&tool("lvchange").args(options::when_full_arguments(&group)));
            room = tool("lvs").args(["--noheadings", "--nosuffix", "--units=b", "--options=lv_size", &pool]);
            unit = options::EXTENT;
        }
        // Used right below: a second group may assign it again.
        script.line(format!("ROOM=$(($({}) / {unit}))", by_hand::shown(&room)));
        let volumes = options::volumes(options);
        for volume in &volumes {
            let size = script.computed("SIZE", &format!("$(({}))", options::size_by_hand(options, volume)));
            script.run(&tool("lvcreate").args(options::volume_arguments(options, &volume.name, &size, &group)));
        }
        script.read(&tool("lvs").args(["--all", "--units=b", "--nosuffix", "--options", COLUMNS, &group]));
        let device = |volume: &Volume| format!("/dev/mapper/{}", mapped_name(&group, &volume.name));
        Ok(volumes.iter().map(|volume| Base::Device(device(volume).into())).collect())
    }

    fn reopen(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let devices = devices_for(inputs, Role::Data);
        kernel_module::load(site.host, "dm-mod", &[])?;
        let rows = report(site.host, "pv", "vg_name", &devices, None)?.into_iter();
        let mut groups: Vec<String> = rows.filter_map(|mut row| row.remove("vg_name")).collect();
        groups.dedup();
        let [group] = groups.as_slice() else {
            return Err(Error::host(format!("the devices are not those of one volume group: {}", groups.join(", "))));
        };
        if !group.starts_with(super::folder::PREFIX) {
            return Err(Error::host(format!("the volume group {group} is not one of pgstrata")));
        }
        enter_group(site, ACTIVE, group, &devices)?;
        site.host.run(&command("vgchange", &devices).args(["--activate", "y", group]))?;
        open(site.host, group, &devices, options)
    }

    fn has_snapshots(&self) -> bool {
        true
    }

    fn snapshots(&self, host: &Host, of: &InUse<'_>) -> Result<Option<SnapshotWay>> {
        snapshots::way(host, &devices_for(of.inputs, Role::Data), of.base, of.options).map(Some)
    }

    fn full(&self, host: &Host, inputs: &[LayerInput], options: &Options) -> Result<Option<String>> {
        if !options::is_thin(options) {
            return Ok(None);
        }
        // Its devices carry only this group.
        let rows = report(host, "lv", options::ROOM, &devices_for(inputs, Role::Data), None)?;
        Ok(rows.iter().filter(|row| row["segtype"] == "thin-pool").find_map(options::full))
    }
}

/// Ledger kinds: a device with our label, our group, and an existing group that is activated.
const PHYSICAL: &str = "physical volume";
const GROUP: &str = "volume group";
const ACTIVE: &str = "active volume group";

/// Behaviour of a full pool on writes: the column of lvs, and its name among the facts.
const WHEN_FULL: (&str, &str) = ("lv_when_full", "when full");

/// Columns of lvs that are read back.
const COLUMNS: &str = "lv_name,segtype,stripes,stripe_size,lv_size,chunk_size,pool_lv,zero,discards,lv_when_full";

/// Exists if the kernel has the device mapper.
const MAPPER: &str = "/sys/class/misc/device-mapper";

/// Disables everything that we do not request: backups of metadata, monitoring, the machine's list of devices.
const CONFIG: &str =
    "backup { backup=0 archive=0 } activation { monitoring=0 } devices { use_devicesfile=0 hints=\"none\" }";

/// An LVM command that sees only these devices.
fn command(program: &str, devices: &[impl AsRef<Path>]) -> Command {
    let named: Vec<String> = devices.iter().map(|device| device.as_ref().display().to_string()).collect();
    let quiet = Command::new("lvm").arg(program).env("LVM_SUPPRESS_FD_WARNINGS", "1");
    quiet.args(["--config", CONFIG, "--devices", &named.join(",")])
}

/// A report with sizes in bytes, for a group or for everything on the devices.
fn report(
    host: &Host,
    table: &str,
    columns: &str,
    devices: &[impl AsRef<Path>],
    group: Option<&str>,
) -> Result<Vec<ReportRow>> {
    let list = command(&format!("{table}s"), devices)
        .args(["--reportformat", "json", "--units", "b", "--nosuffix", "--options", columns])
        .args(group);
    lvm::parse_report(&host.run(&list)?.stdout, table)
}

/// Formats a UUID in LVM's groups of characters.
fn physical_uuid(uuid: &str) -> String {
    let mut digits = uuid.chars().filter(char::is_ascii_hexdigit);
    [6, 4, 4, 4, 4, 4, 6].map(|length| digits.by_ref().take(length).collect::<String>()).join("-")
}

fn enter_group(site: &Site<'_>, kind: &str, group: &str, devices: &[&Path]) -> Result<()> {
    site.ledger.enter(with_devices(Thing::new("lvm", kind).with("name", group), devices)?).map(drop)
}

/// Adds the devices of a volume group to a thing in it.
fn with_devices(thing: Thing, devices: &[impl AsRef<Path>]) -> Result<Thing> {
    let mut numbered = devices.iter().enumerate();
    numbered.try_fold(thing, |thing, (number, device)| thing.with_path(&format!("device-{number}"), device.as_ref()))
}

/// The devices of a thing that still carry a label of LVM.
fn carriers_of<'t>(host: &Host, thing: &'t Thing) -> Vec<&'t Path> {
    let devices = thing.marks.iter().filter(|(mark, _)| mark.starts_with("device-")).map(|(_, path)| Path::new(path));
    devices.filter(|path| guard::signature(host, path, "LVM2_member").is_ok_and(|found| found.is_some())).collect()
}

/// Makes the pool, if volumes are thin, and the volumes, sized in whole extents.
fn make_volumes(site: &Site<'_>, group: &str, devices: &[&Path], options: &Options) -> Result<()> {
    let rows = report(site.host, "vg", "vg_extent_size,vg_free_count", devices, Some(group))?;
    let numbers = rows
        .first()
        .and_then(|row| Some((row.get("vg_extent_size")?.parse().ok()?, row.get("vg_free_count")?.parse().ok()?)));
    let (extent, free): (u64, u64) =
        numbers.ok_or_else(|| Error::tool(format!("LVM reports no extents of {group}")))?;
    let mut room = free;
    if options::is_thin(options) {
        kernel_module::load(site.host, "dm-thin-pool", &[])?;
        create_volume(site, devices, options::pool_arguments(options, group))?;
        let when_full = options::when_full_arguments(group);
        site.host.run(&command("lvchange", devices).arg("--yes").args(when_full))?;
        let pool = report(site.host, "lv", "lv_name,lv_size", devices, Some(group))?;
        let size = pool.iter().find(|row| row["lv_name"] == options::POOL).and_then(|row| row["lv_size"].parse().ok());
        room = size.unwrap_or(0u64) / extent;
    }
    let all = room;
    for volume in options::volumes(options) {
        let size = volume.size.unwrap_or(Size::Percent(100.0));
        let extents = options::whole_stripes(options, size.bytes(all * extent) / extent);
        if extents == 0 || extents > room {
            let (asked, left) = (Bytes(extents * extent), Bytes(room * extent));
            let message = format!("the volume {} of {asked} does not fit into {group}: {left} left", volume.name);
            return Err(Error::user(message));
        }
        let size = if options::is_thin(options) { extents * extent } else { extents }.to_string();
        create_volume(site, devices, options::volume_arguments(options, &volume.name, &size, group))?;
        room -= extents;
    }
    Ok(())
}

fn create_volume(site: &Site<'_>, devices: &[&Path], arguments: Vec<String>) -> Result<()> {
    site.interrupt.check()?;
    site.host.run(&command("lvcreate", devices).arg("--yes").args(arguments)).map(drop)
}

/// Finds the devices of the volumes and reads them back.
fn open(host: &Host, group: &str, devices: &[&Path], options: &Options) -> Result<Built> {
    let rows = report(host, "lv", COLUMNS, devices, Some(group))?;
    let mut details = Details::from([
        ("volume group".to_owned(), group.to_owned()),
        ("devices".to_owned(), devices.len().to_string()),
    ]);
    let mut bases = Vec::new();
    let volumes = options::volumes(options);
    for volume in &volumes {
        let row = rows.iter().find(|row| row["lv_name"] == volume.name);
        let row = row.ok_or_else(|| Error::tool(format!("LVM does not list the volume {} of {group}", volume.name)))?;
        options::verify(options, volume, row)?;
        let mapping = mapper::find(host, &mapped_name(group, &volume.name))?;
        bases.push(Base::Device(mapping.path()));
        let prefix = if volume.base.is_empty() { String::new() } else { format!("{}: ", volume.name) };
        let shown = [("segtype", "type"), ("stripes", "stripes"), ("stripe_size", "stripe size"), ("lv_size", "size")];
        details.extend(shown.map(|(column, name)| (format!("{prefix}{name}"), row[column].clone())));
    }
    if let Some(pool) = rows.iter().find(|row| row["segtype"] == "thin-pool") {
        options::verify_pool(options, pool)?;
        let shown =
            [("lv_size", "size"), ("chunk_size", "chunk size"), ("zero", "zero"), ("discards", "discards"), WHEN_FULL];
        details.extend(shown.map(|(column, name)| (format!("pool: {name}"), pool[column].clone())));
    }
    Ok(Built { bases, details, promises: Vec::new() })
}

/// Name of a volume's mapping: hyphens in the parts are doubled.
fn mapped_name(group: &str, volume: &str) -> String {
    format!("{}-{}", group.replace('-', "--"), volume.replace('-', "--"))
}

/// Removes a group with its volumes. If the devices do not carry it, removes only its mappings.
fn remove_group(host: &Host, thing: &Thing) -> Result<()> {
    let group = thing.mark("name")?;
    if !group.starts_with(super::folder::PREFIX) {
        return Err(Error::host(format!("the volume group {group} is not one of pgstrata")));
    }
    let there = carriers_of(host, thing);
    mount_table::again(|| {
        if there.is_empty() || !has_group(host, group, &there)? {
            return Ok(());
        }
        host.run(&command("vgremove", &there).args(["--force", "--force", "--yes", group])).map(drop)
    })?;
    remove_mappings(host, group)
}

fn has_group(host: &Host, group: &str, devices: &[&Path]) -> Result<bool> {
    let rows = report(host, "vg", "vg_name", devices, None)?;
    Ok(rows.iter().any(|row| row["vg_name"] == group))
}

/// Removes the mappings of a group, starting with those that no other stands on.
fn remove_mappings(host: &Host, group: &str) -> Result<()> {
    let start = mapped_name(group, "");
    // A mapping of this group continues with the volume's name; another hyphen would mean another group.
    for attempt in 0.. {
        let mut left = mapper::all(host);
        left.retain(|it| it.name.strip_prefix(&start).is_some_and(|rest| !rest.starts_with('-')));
        let Some(first) = left.first() else { return Ok(()) };
        let mut tops = left.iter().filter(|it| host.names_in(format!("/sys/block/{}/holders", it.device)).is_empty());
        let top = tops.next().unwrap_or(first);
        if attempt >= 64 {
            return Err(Error::host(format!("the mapping {} is in use", top.name)));
        }
        mapper::remove(host, &top.name, "LVM-")?;
    }
    Ok(())
}

//! Device mapper devices by name: found in sysfs, read back from their table, removed if they are ours.
//!
//! A mapping is identified by its name, which contains the run's id, and by its UUID, whose prefix shows who made it.

use super::ledger::Thing;
use super::sysfs::DeviceNumber;
use super::{Base, Site, UndoThing, Unmet, mount_table, needs};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::command::Command;
use crate::parse::dmsetup::{self, MappedRange};
use std::path::{Path, PathBuf};

/// A short name, unique within the machine: `pgstrata-<run id>-<number in the ledger>`.
pub(super) fn short_name(site: &Site<'_>) -> String {
    format!("{}{}-{}", super::folder::PREFIX, site.ledger.run_id(), site.ledger.mark())
}

/// Requirements of every layer that uses the device mapper.
pub(super) fn unmet(host: &Host) -> impl Iterator<Item = Unmet> {
    needs::root().into_iter().chain(needs::program(host, "dmsetup", "dmsetup"))
}

/// An existing mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    pub name: String,
    pub uuid: String,
    /// Kernel name: `dm-3`.
    pub device: String,
}

impl Mapping {
    pub fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.device)
    }
}

/// Every mapping of the machine.
pub(super) fn all(host: &Host) -> Vec<Mapping> {
    let devices = host.names_in("/sys/block").into_iter().filter(|name| name.starts_with("dm-"));
    let found = devices.filter_map(|device| {
        let [name, uuid] =
            ["name", "uuid"].map(|attribute| host.read_optional(format!("/sys/block/{device}/dm/{attribute}")));
        Some(Mapping { name: name?, uuid: uuid.unwrap_or_default(), device })
    });
    found.collect()
}

/// The mapping with this name.
///
/// # Errors
/// When there is none.
pub(super) fn find(host: &Host, name: &str) -> Result<Mapping> {
    let found = all(host).into_iter().find(|mapping| mapping.name == name);
    found.ok_or_else(|| Error::tool(format!("the mapping {name} was created, but the kernel does not show it")))
}

/// The targets of a mapping, as the kernel reports them.
///
/// # Errors
/// When dmsetup fails or prints something else.
pub(super) fn table(host: &Host, name: &str) -> Result<Vec<MappedRange>> {
    dmsetup::parse_table(&host.run(&Command::new("dmsetup").args(["table", name]))?.stdout)
}

/// Size of a device in sectors of 512 bytes.
///
/// # Errors
/// When sysfs does not say.
pub(super) fn sectors(host: &Host, node: DeviceNumber) -> Result<u64> {
    node.number(host, "size")
        .ok_or_else(|| Error::host(format!("the kernel does not report the size of {}:{}", node.major, node.minor)))
}

/// Ledger kind of the mappings of [`create`].
const MAPPING: &str = "mapping";
/// Prefix of the UUIDs of mappings made by dmsetup.
const UUID: &str = "PGSTRATA-";

/// Makes a mapping of one target for the layer of that name, of the given number of sectors, entered into the ledger
/// first. `shows` compares the kernel's table with the request. Returns the name and what the mapping offers.
///
/// # Errors
/// When dmsetup fails, or the kernel shows something else.
pub(super) fn create(
    site: &Site<'_>,
    target: &str,
    sectors: u64,
    arguments: &str,
    shows: impl Fn(&str, &str) -> bool,
) -> Result<(String, Base)> {
    let wanted = format!("{target} {arguments}");
    let name = short_name(site);
    let uuid = format!("{UUID}{name}");
    site.ledger.enter(Thing::new(target, MAPPING).with("name", &name).with("uuid", &uuid))?;
    let line = format!("0 {sectors} {wanted}");
    site.host.run(&Command::new("dmsetup").args(["create", &name, "--uuid", &uuid, "--table", &line]))?;
    let shown = table(site.host, &name)?;
    let shown = shown.iter().map(|target| format!("{} {}", target.kind, target.arguments.join(" ")));
    let shown = shown.collect::<Vec<_>>().join("; ");
    if !shows(&shown, &wanted) {
        return Err(Error::host(format!("the mapping was to be `{wanted}`, but the kernel shows `{shown}`")));
    }
    let base = Base::Device(find(site.host, &name)?.path());
    Ok((name, base))
}

/// Undoes [`create`].
pub(super) const UNDO: &[(&str, UndoThing)] =
    &[(MAPPING, |host, thing| remove(host, thing.mark("name")?, thing.mark("uuid")?))];

/// Removes the mapping with this name and UUID prefix; does nothing if there is none.
///
/// # Errors
/// When the mapping with that name has another UUID, or stays busy.
pub(super) fn remove(host: &Host, name: &str, uuid: &str) -> Result<()> {
    mount_table::until_gone(host, || {
        let Some(found) = all(host).into_iter().find(|mapping| mapping.name == name) else { return Ok(None) };
        if !found.uuid.starts_with(uuid) {
            let message = format!("the mapping {name} is not the one that pgstrata created: {}", found.uuid);
            return Err(Error::host(message));
        }
        Ok(Some(Command::new("dmsetup").args(["remove", name])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_found_by_name_with_their_kernel_name() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [("dm-0/dm/name", "other\n"), ("dm-7/dm/name", "pgstrata-x-1\n"), ("sda/size", "1\n")] {
            let path = root.path().join("sys/block").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let host = Host::rooted(root.path());
        assert_eq!(find(&host, "pgstrata-x-1").unwrap().path(), Path::new("/dev/dm-7"));
        assert!(find(&host, "pgstrata-x").is_err());
        let refused = remove(&host, "pgstrata-x-1", "PGSTRATA-").unwrap_err().to_string();
        assert!(refused.contains("not the one that pgstrata created"), "{refused}");
        remove(&host, "gone", "PGSTRATA-").unwrap();
    }
}

//! `zfs`: a dataset of a pool.
//!
//! Ledger entries: the mount point; the `dataset`, identified by its name and a unique mark; its `mount`. Only `zfs
//! mount` mounts it (`canmount=noauto`), so that properties that are mount options apply.

use super::by_hand::Script;
use super::filesystem::new_uuid;
use super::ledger::Thing;
use super::snapshots::{COPY, SNAPSHOT, SnapshotWay};
use super::zfs_tools::{self, MARK};
use super::{Base, Built, InUse, Layer, LayerInfo, LayerInput, Site, Unmet, folder, mount};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::command::Command;
use crate::record::options::{OptionProblem, Options};
use crate::record::stack::{BaseKind, Take};
use std::path::Path;

pub struct ZfsDataset;

/// Exactly one pool, named by `on`.
pub(super) const ONE_POOL: Take =
    Take { kind: BaseKind::Pool, doc: "The pool to use; default: the latest.", ..Take::ONE_DEVICE };

/// Properties that a plan may set on neither a dataset nor a volume.
pub(super) const REFUSED: &[(&str, &str)] = &[
    ("mountpoint", "pgstrata chooses the mount point"),
    ("canmount", "nothing but pgstrata mounts it"),
    ("readonly", "PostgreSQL could not write"),
    ("sharenfs sharesmb", "nothing is shared with others"),
    ("zoned jailed", "it stays with this machine"),
    ("encryption keyformat keylocation", "there is no key for it; use LUKS below the pool"),
    ("volsize", "it is the option `size` of the layer `zvol`"),
    ("pgstrata:", "pgstrata recognizes its datasets by it"),
];

pub(super) const INFO: LayerInfo = LayerInfo::folder(
    "zfs",
    "A dataset of a ZFS pool, with any properties; a pool can hold several.",
    &[zfs_tools::properties(
        "Dataset properties by name: { recordsize = \"8k\", compression = \"lz4\", logbias = \"throughput\" }.",
    )],
)
.on(&[ONE_POOL])
.undone_by(&[
    (SNAPSHOT, delete_snapshot),
    ("mount", mount::undo),
    (DATASET, |host, thing| zfs_tools::destroy(host, "zfs", "-r", thing)),
]);

impl Layer for ZfsDataset {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        zfs_tools::check(options, REFUSED)
    }

    fn skips_same_bytes(&self, options: &Options) -> Option<String> {
        zfs_tools::skips_same_bytes(options)
    }

    fn unmet(&self, host: &Host, _options: &Options) -> Vec<Unmet> {
        zfs_tools::unmet(host)
    }

    fn build(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let (dataset, target) = (name_in(pool(inputs)?, site), mount::make_target(site)?);
        let mark = new_uuid(site.host)?;
        site.ledger.enter(zfs_tools::marked(self.name(), DATASET, &dataset, &mark))?;
        let asked = zfs_tools::asked(options);
        let own = ["-o", "canmount=noauto", "-o", &format!("{MARK}={mark}")];
        site.host.run(&create(&dataset, &target, &own, &asked))?;
        open(site, &dataset, &target, &asked)
    }

    fn by_hand(&self, script: &mut Script, inputs: &[LayerInput], options: &Options) -> Result<Vec<Base>> {
        let (dataset, target) = (script.name_in(pool(inputs)?), script.folder());
        let asked = zfs_tools::asked(options);
        script.run(&create(&dataset, Path::new(&target), &[], &asked));
        script.read(&Command::new("zfs").args(["get", "-p", "mounted,mountpoint", &dataset]));
        zfs_tools::read_by_hand(script, "zfs", &dataset, &asked);
        Ok(vec![Base::Folder(target.into())])
    }

    fn reopen(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let (dataset, target) = (name_in(pool(inputs)?, site), mount::make_target(site)?);
        let mountpoint = format!("mountpoint={}", target.display());
        site.host.run(&zfs_tools::call("zfs", &["set", &mountpoint, &dataset]))?;
        open(site, &dataset, &target, &zfs_tools::asked(options))
    }

    fn has_snapshots(&self) -> bool {
        true
    }

    fn snapshots(&self, host: &Host, of: &InUse<'_>) -> Result<Option<SnapshotWay>> {
        let Base::Folder(target) = of.base else { return Ok(None) };
        // All datasets of the pool at one moment.
        Ok(Some(SnapshotWay {
            whole: pool(of.inputs)?.to_owned(),
            folder: target.clone(),
            source: mount::mount_of(host, target)?.source,
            devices: Vec::new(),
            make: |of, name| zfs_tools::call("zfs", &["snapshot", "-r", &format!("{}@{name}", of.whole)]),
            delete: |of, name| zfs_tools::call("zfs", &["destroy", "-r", &format!("{}@{name}", of.whole)]),
            thing: |of, name| {
                let sign = if name == COPY { '/' } else { '@' };
                Ok(Thing::new("zfs", SNAPSHOT).with("name", format!("{}{sign}{name}", of.whole)))
            },
            is_filled: false,
            copy: Some(|of, snapshot, name| {
                let mountpoint = format!("mountpoint={}", of.folder.join(name).display());
                let snapshot = format!("{}@{snapshot}", of.source);
                zfs_tools::call("zfs", &["clone", "-o", &mountpoint, &snapshot, &format!("{}/{name}", of.whole)])
            }),
            is_lost: None,
            used: |of, host| {
                let list = zfs_tools::call("zpool", &["list", "-Hp", "-o", "allocated", &of.whole]);
                let shown = host.run(&list)?.stdout;
                shown.trim().parse().map_err(|_| Error::tool(format!("zpool list shows `{}` allocated", shown.trim())))
            },
        }))
    }
}

/// Deletes a snapshot or clone in one of our pools; does nothing if it is absent.
fn delete_snapshot(host: &Host, thing: &Thing) -> Result<()> {
    let name = thing.mark("name")?;
    if !name.starts_with(folder::PREFIX) || host.run(&zfs_tools::call("zfs", &["list", "-H", name])).is_err() {
        return Ok(());
    }
    host.run(&zfs_tools::call("zfs", &["destroy", "-r", name])).map(drop)
}

const DATASET: &str = "dataset";

fn create(dataset: &str, target: &Path, own: &[&str], asked: &[(String, String)]) -> Command {
    let mountpoint = format!("mountpoint={}", target.display());
    zfs_tools::call("zfs", &["create", "-o", &mountpoint]).args(own).args(zfs_tools::arguments(asked)).arg(dataset)
}

/// The pool among a layer's inputs.
pub(super) fn pool(inputs: &[LayerInput]) -> Result<&str> {
    match inputs {
        [LayerInput { base: Base::Pool(name), .. }] => Ok(name),
        _ => Err(Error::bug("a layer of ZFS without a pool")),
    }
}

/// `POOL/NODE`: the same in every trial, and in a reopened pool except for the pool's name.
pub(super) fn name_in(pool: &str, site: &Site<'_>) -> String {
    let node = site.name.rsplit('.').next().unwrap_or(&site.name);
    format!("{pool}/{node}")
}

/// Mounts the dataset and reads it back.
fn open(site: &Site<'_>, dataset: &str, target: &Path, asked: &[(String, String)]) -> Result<Built> {
    let thing = Thing::new("zfs", "mount").with_path("target", target)?.with("source", dataset).with("fstype", "zfs");
    site.ledger.enter(thing)?;
    site.host.run(&zfs_tools::call("zfs", &["mount", dataset]))?;
    let mounted = mount::mount_of(site.host, target)?;
    if Path::new(&mounted.target) != target || mounted.source != dataset {
        return Err(Error::host(format!("zfs mount succeeded, but {dataset} is not mounted on {}", target.display())));
    }
    let found = zfs_tools::get(site.host, "zfs", dataset)?;
    zfs_tools::compare("the dataset", asked, &found)?;
    Ok(Built::one(Base::Folder(target.to_owned()), zfs_tools::facts(&found)))
}

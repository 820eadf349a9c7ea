//! Snapshots of a stack in use. The layer defines how they are taken; this module finds the layer and keeps the order:
//! a snapshot is entered into the ledger before it is taken, and leaves it when deleted.
//!
//! Data, WAL and tablespaces are in one snapshot, or there is none: parts from different moments are not a copy of a
//! database.

use super::facts::Bases;
use super::ledger::{Ledger, Thing};
use super::stack::{BuiltStack, inputs, known};
use super::{InUse, Layer, LayerInput, folder};
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::{Host, files, folders, threads};
use crate::record::stack::{BaseName, End, NodeSpec, Role, StackSpec};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Ledger kind of a snapshot.
pub(super) const SNAPSHOT: &str = "snapshot";

pub(super) const COPY: &str = "pgstrata-copy";

/// Prefix of the names of snapshots.
const PREFIX: &str = "pgstrata-s";

/// Prefix for snapshots that age a stack: a workload may take its own besides.
const AGEING: &str = "pgstrata-a";

/// Hint for a stack without snapshots.
pub const WHO_HAS: &str = "btrfs, xfs (reflinks), lvm and zfs have them";

/// How to take snapshots of a base: what they are taken of, and functions of that, most of them by a snapshot's name.
pub struct SnapshotWay {
    /// Extent of a snapshot: a mount, a volume, a pool. Two folders with the same extent are in the same snapshot.
    pub whole: String,
    /// The base, if it is a folder.
    pub folder: PathBuf,
    /// Of ZFS, the dataset in the folder; of LVM, the volume or thin pool whose use counts.
    pub source: String,
    /// Of LVM, the devices of the volume group.
    pub devices: Vec<PathBuf>,
    /// Commands that take and delete a snapshot.
    pub make: fn(&SnapshotWay, &str) -> Command,
    pub delete: fn(&SnapshotWay, &str) -> Command,
    /// Ledger description of a snapshot.
    pub thing: fn(&SnapshotWay, &str) -> Result<Thing>,
    /// True if a snapshot is a folder in the base that is filled with reflinks, file by file, and does not show a
    /// single moment; false if the filesystem or volume takes it atomically.
    pub is_filled: bool,
    /// The command that makes a writable copy of a snapshot under another name.
    pub copy: Option<fn(&SnapshotWay, &str, &str) -> Command>,
    /// For snapshots with limited room of their own: checks if it has overflowed, so that the snapshot is lost.
    pub is_lost: Option<IsLost>,
    /// Bytes in use in the space that the snapshots share with their origin.
    pub used: fn(&SnapshotWay, &Host) -> Result<u64>,
}

/// Says whether the snapshot of this name is lost.
type IsLost = fn(&SnapshotWay, &Host, &str) -> Result<bool>;

/// Snapshots of a built stack.
pub struct StackSnapshots<'s> {
    host: &'s Host,
    ledger: &'s Ledger,
    way: SnapshotWay,
    /// Prefix of their names.
    prefix: &'static str,
    /// True if they hold space of the filesystem, not of a volume below it.
    pub of_filesystem: bool,
    /// Ledger entry of each existing snapshot, by its number.
    there: Mutex<BTreeMap<u64, u64>>,
}

impl<'s> StackSnapshots<'s> {
    /// # Errors
    /// If no layer of the stack has snapshots, or its folders are not all in one.
    pub fn of(host: &'s Host, ledger: &'s Ledger, spec: &StackSpec, built: &BuiltStack) -> Result<StackSnapshots<'s>> {
        let mut found: Option<(SnapshotWay, bool)> = None;
        for (end, base) in spec.ends() {
            let way = way_of(host, spec, &built.bases, base)?
                .ok_or_else(|| Error::user(lacks(&end, &spec.name)).hint(WHO_HAS))?;
            match &found {
                Some((known, _)) if known.whole != way.0.whole => {
                    let message = format!("`{}` and `{}` are not in one snapshot", known.whole, way.0.whole);
                    return Err(Error::user(message).hint("put data and pg_wal on one filesystem, volume or pool"));
                }
                Some(_) => {}
                None => found = Some(way),
            }
        }
        let (way, of_filesystem) = found.ok_or_else(|| Error::bug("a stack without a folder for data"))?;
        Ok(StackSnapshots { host, ledger, way, prefix: PREFIX, of_filesystem, there: Mutex::default() })
    }

    /// Switches to the names of snapshots that age the stack.
    pub fn for_ageing(self) -> StackSnapshots<'s> {
        StackSnapshots { prefix: AGEING, ..self }
    }

    /// Takes the snapshot with this number.
    ///
    /// # Errors
    /// With the tool's own message, such as for a full pool.
    pub fn make(&self, number: u64) -> Result<()> {
        let name = self.name(number);
        let entry = self.ledger.enter((self.way.thing)(&self.way, &name)?)?;
        threads::locked(&self.there).insert(number, entry);
        self.host.run(&(self.way.make)(&self.way, &name)).map(drop)
    }

    /// Deletes the snapshot with this number.
    ///
    /// # Errors
    /// With the tool's own message.
    pub fn delete(&self, number: u64) -> Result<()> {
        let Some(entry) = threads::locked(&self.there).get(&number).copied() else { return Ok(()) };
        self.host.run(&(self.way.delete)(&self.way, &self.name(number)))?;
        threads::locked(&self.there).remove(&number);
        self.ledger.undone(entry)
    }

    /// The folder of a new snapshot that must still be filled with reflinks.
    pub fn filled(&self, number: u64) -> Option<PathBuf> {
        self.way.is_filled.then(|| self.way.folder.join(self.name(number)))
    }

    /// Makes a writable copy of a snapshot; returns the folders of the origin and of the copy. The copy is removed with
    /// the stack; `None` if the layer cannot make one.
    ///
    /// # Errors
    /// With the tool's own message.
    pub fn copy(&self, number: u64) -> Result<Option<(PathBuf, PathBuf)>> {
        let Some(copy) = self.way.copy else { return Ok(None) };
        self.ledger.enter((self.way.thing)(&self.way, COPY)?)?;
        self.host.run(&copy(&self.way, &self.name(number), COPY))?;
        Ok(Some((self.way.folder.clone(), self.way.folder.join(COPY))))
    }

    /// True if the snapshot with this number has become useless because its own room was full.
    ///
    /// # Errors
    /// If the layer cannot be queried.
    pub fn is_lost(&self, number: u64) -> Result<bool> {
        self.way.is_lost.map_or(Ok(false), |is_lost| is_lost(&self.way, self.host, &self.name(number)))
    }

    /// Bytes in use, including those held by snapshots.
    ///
    /// # Errors
    /// If the layer cannot be queried.
    pub fn used(&self) -> Result<u64> {
        (self.way.used)(&self.way, self.host)
    }

    fn name(&self, number: u64) -> String {
        format!("{}{number}", self.prefix)
    }
}

fn lacks(end: &End, stack: &str) -> String {
    format!("no layer below the {end} of the stack {stack} has snapshots")
}

/// Reason that a stack cannot have snapshots, as far as its layers know before the build.
pub fn lacking(spec: &StackSpec) -> Option<String> {
    spec.ends().into_iter().find(|(_, base)| !can_have(spec, base)).map(|(end, _)| lacks(&end, &spec.name))
}

/// True if [`way_of`] may find a layer.
fn can_have(spec: &StackSpec, name: &BaseName) -> bool {
    let Some(node) = spec.node(name.node()) else { return false };
    known(node).is_ok_and(Layer::has_snapshots) || only_data(node).is_some_and(|below| can_have(spec, below))
}

/// The only data input of a node; `None` for several: each would have a snapshot from a different moment.
fn only_data(node: &NodeSpec) -> Option<&BaseName> {
    let mut data = node.inputs.iter().filter(|input| input.role == Role::Data).map(|input| &input.from);
    data.next().filter(|_| data.next().is_none())
}

/// The uppermost layer with snapshots below a base; true if it is the one that provides the base.
fn way_of(host: &Host, spec: &StackSpec, bases: &Bases, name: &BaseName) -> Result<Option<(SnapshotWay, bool)>> {
    let (Some(node), Some(base)) = (spec.node(name.node()), bases.get(name)) else { return Ok(None) };
    let below: Vec<LayerInput> = inputs(node, bases)?;
    let of = InUse { inputs: &below, base, options: &node.options };
    if let Some(way) = known(node)?.snapshots(host, &of)? {
        return Ok(Some((way, true)));
    }
    let Some(only) = only_data(node) else { return Ok(None) };
    Ok(way_of(host, spec, bases, only)?.map(|(way, _)| (way, false)))
}

/// Snapshots as folders next to the data, to be filled with reflinks.
pub(super) fn reflinks(target: &Path) -> SnapshotWay {
    SnapshotWay {
        make: |of, name| Command::new("mkdir").args(["-m", "711"]).arg(of.folder.join(name)),
        delete: |of, name| Command::new("rm").args(["-r", "--one-file-system"]).arg(of.folder.join(name)),
        whole: target.display().to_string(),
        folder: target.to_owned(),
        source: String::new(),
        devices: Vec::new(),
        thing: |of, name| Thing::new("xfs", SNAPSHOT).with_path("path", &of.folder.join(name)),
        is_filled: true,
        copy: None,
        is_lost: None,
        used,
    }
}

/// Removes a reflink folder; does nothing if there is none.
pub(super) fn delete_reflinks(_host: &Host, thing: &Thing) -> Result<()> {
    let path = Path::new(thing.mark("path")?);
    if folder::has_our_name(path) { folders::remove_all(path) } else { Ok(()) }
}

/// Bytes in use on the filesystem of the base.
fn used(of: &SnapshotWay, _host: &Host) -> Result<u64> {
    Ok(files::room(&of.folder)?.map_or(0, |room| room.used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::reflinks;
    use crate::provision::test_site::{TestPlace, options_of, text};
    use crate::record::options::{OptionValue, Options};
    use std::fs;

    fn snapshots_are_kept_and_go(
        place: TestPlace,
        spec: &StackSpec,
        shows: impl Fn(&BuiltStack, &str) -> Option<String>,
    ) {
        if !place.can_build(spec) {
            return;
        }
        let built = place.build(spec).unwrap();
        let file = built.folder().join("file");
        fs::write(&file, "before").unwrap();
        fs::File::open(&file).unwrap().sync_all().unwrap();
        let snapshots = StackSnapshots::of(&place.host, place.ledger(), spec, &built).unwrap();
        let entries = || place.ledger().open_things().into_iter().filter(|(_, thing)| thing.kind == SNAPSHOT).count();
        snapshots.make(1).unwrap();
        snapshots.make(2).unwrap();
        fs::write(&file, "after").unwrap();
        if let Some(shown) = shows(&built, "pgstrata-s1") {
            assert_eq!(shown, "before");
        }
        assert!(snapshots.used().unwrap() > 0 && entries() == 2);
        snapshots.delete(1).unwrap();
        snapshots.delete(1).unwrap();
        assert_eq!((entries(), shows(&built, "pgstrata-s1")), (1, None));
        // The second is removed with the stack.
        place.clean();
    }

    #[test]
    fn a_btrfs_snapshot_keeps_its_content_and_can_be_copied() {
        let Some(place) = TestPlace::new() else { return };
        let spec = place.on_loop("btrfs", "256MiB", Options::default());
        snapshots_are_kept_and_go(place, &spec, |built, name| {
            fs::read_to_string(built.folder().join(name).join("file")).ok()
        });
    }

    #[test]
    fn a_reflink_snapshot_shares_blocks_and_keeps_its_content() {
        let Some(place) = TestPlace::new() else { return };
        let spec = place.on_loop("xfs", "320MiB", Options::default());
        if !place.can_build(&spec) {
            return;
        }
        let built = place.build(&spec).unwrap();
        let data = built.folder().join("data");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("file"), vec![1u8; 16 << 20]).unwrap();
        fs::write(data.join("left"), "").unwrap();
        let snapshots = StackSnapshots::of(&place.host, place.ledger(), &spec, &built).unwrap();
        let before = snapshots.used().unwrap();
        snapshots.make(1).unwrap();
        let copy = snapshots.filled(1).unwrap().join("data");
        reflinks::copy(&data, &copy, &|path| path.ends_with("left")).unwrap();
        fs::write(data.join("file"), "after").unwrap();
        assert_eq!(fs::read(copy.join("file")).unwrap(), vec![1u8; 16 << 20]);
        assert!(!copy.join("left").exists() && snapshots.used().unwrap() < before + (12 << 20));
        snapshots.delete(1).unwrap();
        assert!(!copy.exists());
        snapshots.make(2).unwrap();
        place.clean();
    }

    #[test]
    fn thin_and_thick_volumes_have_snapshots() {
        for options in [
            options_of(&[("thin", OptionValue::Boolean(true)), ("size", text("50%"))]),
            options_of(&[("size", text("50%"))]),
        ] {
            let Some(place) = TestPlace::new() else { return };
            let spec = place.on_volume("lvm", options, 1, "256MiB");
            // The content of a snapshot is checked by mounting it alone.
            snapshots_are_kept_and_go(place, &spec, |_, _| None);
        }
    }

    #[test]
    fn a_stack_without_snapshots_says_which_layers_have_them() {
        let Some(place) = TestPlace::new() else { return };
        let spec = place.on_loop("ext4", "64MiB", Options::default());
        let built = place.build(&spec).unwrap();
        let error = StackSnapshots::of(&place.host, place.ledger(), &spec, &built).err().unwrap();
        assert!(error.hint_text().unwrap().contains("btrfs, xfs (reflinks), lvm and zfs"), "{error}");
        assert_eq!(lacking(&spec), Some(error.to_string()));
        assert_eq!(lacking(&place.on_loop("btrfs", "256MiB", Options::default())), None);
        assert_eq!(lacking(&place.on_volume("lvm", Options::default(), 1, "256MiB")), None);
        place.clean();
    }
}

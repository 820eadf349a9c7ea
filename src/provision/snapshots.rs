//! Snapshots of a stack while it is used. How they are made is the layer's; here is which layer, and the order of deeds: a
//! snapshot is in the ledger before it is made, and leaves it when it is deleted.
//!
//! Data, WAL and tablespaces are in one snapshot or there is none: parts of different moments are no copy of a database.

use super::ledger::{Ledger, Thing};
use super::stack::{BuiltStack, Grounds, inputs, known};
use super::{GivenGround, Ground, folder};
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::{Host, files, folders, paths};
use crate::record::stack::{GroundName, Role, StackSpec};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Kind of a snapshot in the ledger.
pub(super) const SNAPSHOT: &str = "snapshot";

/// Name of the copy.
pub(super) const COPY: &str = "pgstrata-copy";

/// Start of the names of snapshots.
const PREFIX: &str = "pgstrata-s";

/// Of the name of a snapshot.
pub type ByName<T> = Box<dyn Fn(&str) -> T + Send + Sync>;

/// Asks a layer for the bytes in use.
pub type UsedBytes = Box<dyn Fn(&Host) -> Result<u64> + Send + Sync>;

/// Of the name of a snapshot: asks a layer whether it is of no use any more.
pub type IsLost = Box<dyn Fn(&Host, &str) -> Result<bool> + Send + Sync>;

/// Of the names of a snapshot and of its copy: makes the copy, and the folder that it stands for with its own.
pub type CopyWay = Box<dyn Fn(&str, &str) -> (Command, PathBuf, PathBuf) + Send + Sync>;

/// How snapshots of a ground are made.
pub struct SnapshotWay {
    /// What is in one snapshot: a mount, a volume, a pool. Two folders with the same are in the same snapshot.
    pub whole: String,
    /// Of a name: makes it, and deletes it.
    pub make: ByName<Command>,
    pub delete: ByName<Command>,
    /// Of a name: how the ledger describes it.
    pub thing: ByName<Result<Thing>>,
    /// The folder of a snapshot that is made of reflinks, file by file, and so does not show a single moment; `None` for a
    /// snapshot that the filesystem or volume takes at once.
    pub filled: Option<ByName<PathBuf>>,
    /// Of a snapshot and a name: makes a copy of it that can be written. Its folder, and the one that it is a copy of.
    pub copy: Option<CopyWay>,
    /// Where a snapshot has room of its own, which may fill up: whether that has happened, so that it holds nothing any more.
    pub is_lost: Option<IsLost>,
    /// Bytes in use of what the snapshots share with their origin.
    pub used: UsedBytes,
}

/// The snapshots of a stack that stands.
pub struct Snapshots<'s> {
    host: &'s Host,
    ledger: &'s Ledger,
    way: SnapshotWay,
    /// Number in the ledger of each that is there, by its own number.
    there: Mutex<BTreeMap<u64, u64>>,
}

impl<'s> Snapshots<'s> {
    /// # Errors
    /// When no layer of the stack has snapshots, or its folders are not all in one.
    pub fn of(host: &'s Host, ledger: &'s Ledger, spec: &StackSpec, built: &BuiltStack) -> Result<Snapshots<'s>> {
        let mut found: Option<SnapshotWay> = None;
        for (end, ground) in spec.ends() {
            let way = way_of(host, spec, &built.grounds, ground)?.ok_or_else(|| {
                Error::user(format!("no layer below the {end} of the stack {} has snapshots", spec.name))
                    .hint("btrfs, xfs (reflinks), lvm and zfs have them")
            })?;
            match &found {
                Some(known) if known.whole != way.whole => {
                    let message = format!("`{}` and `{}` are not in one snapshot", known.whole, way.whole);
                    return Err(Error::user(message).hint("put data and pg_wal on one filesystem, volume or pool"));
                }
                Some(_) => {}
                None => found = Some(way),
            }
        }
        let way = found.ok_or_else(|| Error::bug("a stack without a folder for data"))?;
        Ok(Snapshots { host, ledger, way, there: Mutex::default() })
    }

    /// Makes the snapshot of this number.
    ///
    /// # Errors
    /// With the tool's own words: a pool that is full says so.
    pub fn make(&self, number: u64) -> Result<()> {
        let name = format!("{PREFIX}{number}");
        let entry = self.ledger.enter((self.way.thing)(&name)?)?;
        self.lock().insert(number, entry);
        self.host.run(&(self.way.make)(&name)).map(drop)
    }

    /// Deletes it.
    ///
    /// # Errors
    /// With the tool's own words.
    pub fn delete(&self, number: u64) -> Result<()> {
        let Some(entry) = self.lock().get(&number).copied() else { return Ok(()) };
        self.host.run(&(self.way.delete)(&format!("{PREFIX}{number}")))?;
        self.lock().remove(&number);
        self.ledger.undone(entry)
    }

    /// The folder of a snapshot that is to be filled with reflinks once it is made.
    #[must_use]
    pub fn filled(&self, number: u64) -> Option<PathBuf> {
        self.way.filled.as_ref().map(|folder| folder(&format!("{PREFIX}{number}")))
    }

    /// Makes a copy of a snapshot that can be written: the folder of the origin, and of the copy. It goes with the stack;
    /// `None` where the layer has no such copies.
    ///
    /// # Errors
    /// With the tool's own words.
    pub fn copy(&self, number: u64) -> Result<Option<(PathBuf, PathBuf)>> {
        let Some(copy) = &self.way.copy else { return Ok(None) };
        self.ledger.enter((self.way.thing)(COPY)?)?;
        let (command, origin, target) = copy(&format!("{PREFIX}{number}"), COPY);
        self.host.run(&command)?;
        Ok(Some((origin, target)))
    }

    /// Whether the snapshot of this number has become useless because its own room was full.
    ///
    /// # Errors
    /// When the layer cannot be asked.
    pub fn is_lost(&self, number: u64) -> Result<bool> {
        let name = format!("{PREFIX}{number}");
        self.way.is_lost.as_ref().map_or(Ok(false), |is_lost| is_lost(self.host, &name))
    }

    /// Bytes in use, those that snapshots hold included.
    ///
    /// # Errors
    /// When the layer cannot be asked.
    pub fn used(&self) -> Result<u64> {
        (self.way.used)(self.host)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, u64>> {
        self.there.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The uppermost layer with snapshots below a ground.
fn way_of(host: &Host, spec: &StackSpec, grounds: &Grounds, name: &GroundName) -> Result<Option<SnapshotWay>> {
    let (Some(node), Some(ground)) = (spec.node(name.node()), grounds.get(name)) else { return Ok(None) };
    let below: Vec<GivenGround> = inputs(node, grounds)?;
    if let Some(way) = known(node)?.snapshots(host, &below, ground, &node.options)? {
        return Ok(Some(way));
    }
    let data: Vec<&GroundName> =
        node.inputs.iter().filter(|input| input.role == Role::Data).map(|input| &input.from).collect();
    match data.as_slice() {
        // Of several devices each would have a snapshot of its own moment.
        [only] => way_of(host, spec, grounds, only),
        _ => Ok(None),
    }
}

/// Snapshots as folders beside the data, to be filled with reflinks.
pub(super) fn reflinks(target: &Path) -> SnapshotWay {
    let of = |target: &Path| {
        let target = target.to_owned();
        move |name: &str| target.join(name)
    };
    let (make_at, delete_at, noted_at, measured) = (of(target), of(target), of(target), target.to_owned());
    SnapshotWay {
        whole: target.display().to_string(),
        make: Box::new(move |name| Command::new("mkdir").args(["-m", "711"]).arg(make_at(name))),
        delete: Box::new(move |name| Command::new("rm").args(["-r", "--one-file-system"]).arg(delete_at(name))),
        thing: Box::new(move |name| Thing::new("xfs", SNAPSHOT).with_path("path", &noted_at(name))),
        filled: Some(Box::new(of(target))),
        copy: None,
        is_lost: None,
        used: Box::new(move |_| used_of(&measured)),
    }
}

/// Removes such a folder; does nothing where there is none.
pub(super) fn delete_reflinks(_host: &Host, thing: &Thing) -> Result<()> {
    let path = Path::new(thing.mark("path")?);
    if !folder::has_our_name(path) || !paths::exists(path) {
        return Ok(());
    }
    folders::remove_all(path)
}

/// What a folder's filesystem has in use.
pub(super) fn used_of(folder: &Path) -> Result<u64> {
    Ok(files::room(folder)?.map_or(0, |room| room.used))
}

/// The device or pool among what a layer offers, as text.
pub(super) fn text_of(ground: &Ground) -> String {
    match ground {
        Ground::Device(path) | Ground::Folder(path) => path.display().to_string(),
        Ground::Pool(name) => name.clone(),
    }
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
        let snapshots = Snapshots::of(&place.host, place.ledger(), spec, &built).unwrap();
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
        // The second goes with the stack.
        place.clean();
    }

    #[test]
    fn a_snapshot_of_btrfs_keeps_what_was_there_and_can_be_copied() {
        let Some(place) = TestPlace::new() else { return };
        let spec = place.on_loop("btrfs", "256MiB", Options::default());
        snapshots_are_kept_and_go(place, &spec, |built, name| {
            fs::read_to_string(built.folder().join(name).join("file")).ok()
        });
    }

    #[test]
    fn a_snapshot_of_reflinks_shares_its_blocks_with_the_origin_and_keeps_what_was_there() {
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
        let snapshots = Snapshots::of(&place.host, place.ledger(), &spec, &built).unwrap();
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
            // What a snapshot holds is seen by mounting it alone.
            snapshots_are_kept_and_go(place, &spec, |_, _| None);
        }
    }

    #[test]
    fn a_stack_without_snapshots_says_which_layers_have_them() {
        let Some(place) = TestPlace::new() else { return };
        let spec = place.on_loop("ext4", "64MiB", Options::default());
        let built = place.build(&spec).unwrap();
        let error = Snapshots::of(&place.host, place.ledger(), &spec, &built).err().unwrap();
        assert!(error.hint_text().unwrap().contains("btrfs, xfs (reflinks), lvm and zfs"), "{error}");
        place.clean();
    }
}

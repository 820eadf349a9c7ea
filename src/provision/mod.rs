//! Building a stack bottom-up, reading back what is really there, undoing it top-down; the ledger of what exists.
//!
//! A layer is one file and one line in `layers!`. Whatever a layer makes, it enters into the [`ledger`] first; tearing
//! down, and `pgstrata clean` after a crash, are the same walk through the ledger in reverse. Absent on purpose:
//! PostgreSQL, workloads, results.
//!
//! # Add a layer
//!
//! A type that implements [`Layer`] in a file of its own, and its line in `layers!` (`mod md; Md;`), which brings both
//! the module and the entry. Plan, schema, example, drawing, facts, telemetry and durability take the rest from what
//! the layer says of itself. `takes` gives what it stands on, with the plan's key and how many (`Take::ONE_DEVICE`; two
//! members or more; a journal); `offers` and `grounds` what stands on it. `build` gets its inputs with their roles and
//! returns its grounds, its facts and its promises (a driver that passes flushes on uncounted says so). Whatever it
//! makes is entered into the ledger (`site.ledger`) *before* it is made; `undo` copes with "not there", "half there"
//! and "not ours": a device's number may be another's by then, so a mark is read from the thing itself (a UUID, the
//! path of an image). Each option is read back from the kernel, and what is not as asked fails. `reopen` opens it on
//! devices that carry it. `capacity` is the sum of what it stands on unless it says other.
//!
//! Helpers: `needs` (programs, root, kernel), `kernel_module`, `mapper`, `guard` (what a device is and carries),
//! `sysfs`, `mount`. A filesystem on block devices is a `Recipe`; `filesystem` does the rest, and `real_tests` builds
//! it, kills the run at each entry of its ledger and undoes it. Other layers use `test_site::stands_and_dies` and
//! `opens_again`. `test_volumes` has stand-ins for machines that lack volumes (their undo takes every slice of a
//! device, which a real layer must not); `tests/plans/graphs.toml` has every shape of stack.
//!
//! A device from outside of a guest is `guest_disk`: `cli::run` counts what the plan needs, `guest::disks` makes the
//! files and QEMU's arguments, and the list in `record::guest_disk` is all that both sides share
//! (`docs/adr/0036-disks-of-a-guest.md`).
//!
//! # Add to a layer
//!
//! Snapshots: [`Layer::snapshots`] returns the commands and what one snapshot holds (two folders with the same `whole`
//! are in one); a reflink-only filesystem makes a folder that the workload fills between the server's backup calls. A
//! steady state of its drive: [`Layer::lasting`] says by what its device is known again after a trial, and both options
//! of `drives` go into its list (`docs/adr/0037-drives-in-their-steady-state.md`). A knob of the kernel is a line in
//! `knobs`; a layer that offers a device lists `knobs::QUEUE`. Parameters of a module are knobs without a list; where
//! one does not show what is in force, the ledger notes both.

pub(crate) mod devices;
pub mod drives;
pub(crate) mod facts;
pub(crate) mod filesystem;
pub(crate) mod folder;
mod guard;
mod identity;
mod image_file;
pub mod images;
mod kernel_module;
pub(crate) mod knobs;
pub(crate) mod ledger;
pub mod machine_crash;
mod mapper;
pub(crate) mod mount;
pub(crate) mod mount_options;
pub(crate) mod mount_table;
pub(crate) mod needs;
mod options_kept;
pub(crate) mod precondition;
pub(crate) mod recorded;
pub(crate) mod remount;
pub mod same_bytes;
mod size;
pub mod snapshots;
pub(crate) mod stack;
mod sysfs;
pub(crate) mod undo;
mod zfs_places;
mod zfs_tools;

#[cfg(test)]
mod graph_tests;
#[cfg(test)]
mod image_tests;
#[cfg(test)]
mod real_tests;
#[cfg(test)]
mod test_site;

use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::record::claim::Promise;
use crate::record::options::{OptionProblem, OptionSpec, Options};
use crate::record::stack::{GroundKind, Role, Take};
use crate::units::Bytes;
use ledger::{Ledger, Thing};
use serde::Serialize;
use snapshots::SnapshotWay;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Makes of `mod FILE; LAYER, ...;` both the module and the entries of [`ALL`], so that a layer is added by one line.
macro_rules! layers {
    (
        $(mod $module:ident; $($layer:ident),+;)*
        $(#[cfg(test)] mod $test:ident; $($stand_in:ident),+;)*
    ) => {
        $(pub mod $module;)*
        $(#[cfg(test)] mod $test;)*

        /// Every layer, in the order in which the manual lists them.
        #[cfg(not(test))]
        pub const ALL: &[&dyn Layer] = &[$($(&$module::$layer),+),*];
        /// Every layer, stand-ins of the tests among them.
        #[cfg(test)]
        pub const ALL: &[&dyn Layer] = &[$($(&$module::$layer),+),*, $($(&$test::$stand_in),+),*];
    };
}

layers! {
    mod loop_image; LoopImage;
    mod disk; Disk;
    mod null_blk; NullBlk;
    mod zram; Zram;
    mod scsi_debug; ScsiDebug;
    mod guest_disk; OwnDisk;
    mod md; Md;
    mod lvm; Lvm;
    mod luks; Luks;
    mod delay; DELAY, FLAKEY;
    mod linear; Linear;
    mod bcache; Bcache;
    mod ext; EXT2, EXT3, EXT4;
    mod xfs; XFS;
    mod btrfs; BTRFS;
    mod zpool; Zpool;
    mod zfs; Zfs;
    mod zvol; Zvol;
    mod f2fs; F2FS;
    mod reiserfs; REISERFS;
    mod jfs; JFS;
    mod nilfs2; NILFS2;
    mod bcachefs; BCACHEFS;
    mod memory; TMPFS, RAMFS, HUGETLBFS;
    mod directory; Directory;
    #[cfg(test)] mod test_volumes; MD_STAND_IN, LVM_STAND_IN, LUKS_STAND_IN, DELAY_STAND_IN;
    #[cfg(test)] mod test_trio; TRIO;
    #[cfg(test)] mod test_pool; POOL, DATASET;
}

/// The layer that a plan calls `name`.
pub fn layer(name: &str) -> Option<&'static dyn Layer> {
    ALL.iter().copied().find(|layer| layer.name() == name)
}

/// What a node offers to those that stand on it: where a plan's storage can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ground {
    /// A block device, by path.
    Device(PathBuf),
    /// A folder that data can be put in.
    Folder(PathBuf),
    /// A storage pool, by name.
    Pool(String),
}

impl Ground {
    pub fn kind(&self) -> GroundKind {
        match self {
            Ground::Device(_) => GroundKind::Device,
            Ground::Folder(_) => GroundKind::Folder,
            Ground::Pool(_) => GroundKind::Pool,
        }
    }
}

/// Something that a layer is given to build on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenGround {
    pub role: Role,
    /// The group that it is in: `mirror-0`.
    pub group: Option<String>,
    pub ground: Ground,
}

/// The block devices among what a layer is given, in one role.
pub(crate) fn devices_for(inputs: &[GivenGround], role: Role) -> Vec<&Path> {
    inputs
        .iter()
        .filter(|given| given.role == role)
        .filter_map(|given| match &given.ground {
            Ground::Device(path) => Some(path.as_path()),
            Ground::Folder(_) | Ground::Pool(_) => None,
        })
        .collect()
}

/// Something that must be there for a layer to be built, and is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmet {
    /// What is missing: `the program mkfs.xfs`.
    pub what: String,
    /// What would bring it: `apt-get install xfsprogs`.
    pub hint: String,
}

/// Space that a stack takes on something that others use too, for the check before anything is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Space {
    /// Bytes on the filesystem that holds this folder, for one trial (a sparse image).
    Disk(PathBuf, Bytes),
    /// Same, for the whole run: an image that is written in full and used by one trial after another.
    Image(PathBuf, Bytes),
    /// Bytes of the machine's memory (tmpfs, ramfs: the most it may take).
    Memory(Bytes),
}

/// What a layer is given to build with.
pub struct Site<'a> {
    pub host: &'a Host,
    /// Where everything made is entered first.
    pub ledger: &'a Ledger,
    /// Name for what is made: `pgstrata-<run id>-<trial>-<stack>-<node>`; unique within the machine, fit for a label.
    pub name: String,
    /// Private folder of the run for mount points and the like; made and in the ledger.
    pub folder: PathBuf,
    /// Images that are there for the stack, by node.
    pub images: &'a BTreeMap<String, PathBuf>,
    /// The one for the node that is built.
    pub image: Option<&'a Path>,
    /// Whether somebody asked to stop.
    pub interrupt: &'a Interrupt,
}

/// What a layer has built.
#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    /// What stands ready for the nodes above, in the order of [`Layer::grounds`].
    pub grounds: Vec<Ground>,
    /// Facts by name, as read back.
    pub details: BTreeMap<String, String>,
    /// What the layer says of flushes and caches, beside what its mount and its device say.
    pub promises: Vec<Promise>,
}

impl Built {
    /// One ground with its facts; promises nothing of its own.
    pub fn one(ground: Ground, details: BTreeMap<String, String>) -> Built {
        Built { grounds: vec![ground], details, promises: Vec::new() }
    }
}

/// What a layer says of itself, for the plan and the manual.
pub struct LayerInfo {
    /// Its name in plans: `ext4`.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// What it stands on; empty for one that needs nothing below.
    pub takes: &'static [Take],
    /// What each of its grounds is.
    pub offers: GroundKind,
    /// Its options. The first may be given as the value of the layer's own key: `{ loop = "6GiB" }`.
    pub options: &'static [OptionSpec],
}

impl LayerInfo {
    const fn device(name: &'static str, doc: &'static str, options: &'static [OptionSpec]) -> LayerInfo {
        LayerInfo { name, doc, takes: &[], offers: GroundKind::Device, options }
    }

    const fn folder(name: &'static str, doc: &'static str, options: &'static [OptionSpec]) -> LayerInfo {
        LayerInfo { name, doc, takes: &[], offers: GroundKind::Folder, options }
    }

    const fn on(self, takes: &'static [Take]) -> LayerInfo {
        LayerInfo { takes, ..self }
    }
}

/// One kind of layer.
pub trait Layer: Sync {
    fn info(&self) -> &LayerInfo;
    /// Its name in plans.
    fn name(&self) -> &'static str {
        self.info().name
    }
    /// Names of its grounds: one without a name, unless its options make several.
    fn grounds(&self, _options: &Options) -> Vec<String> {
        vec![String::new()]
    }
    /// Names of mount options of its own that people set for a database, in one text: only to name the one that was meant.
    fn usual_mount_options(&self) -> &'static str {
        ""
    }
    /// Checks what the specs cannot say. Pure.
    ///
    /// # Errors
    /// The key and what is wrong with it.
    fn check(&self, _options: &Options) -> Result<(), OptionProblem> {
        Ok(())
    }
    /// What this machine lacks for it. Reads, never changes. An option that is not given is not looked at: without any,
    /// it tells what the layer lacks as such.
    fn unmet(&self, host: &Host, options: &Options) -> Vec<Unmet>;
    /// What it offers at most, where that is known before it is built: an image's size, tmpfs's limit, a folder's free
    /// space. `data` are the capacities of what it stores data on; by default it offers all of it, and one that stands on
    /// nothing the size that its first option gives.
    fn capacity(&self, options: &Options, data: &[Bytes]) -> Option<Bytes> {
        if let ([], [main, ..]) = (self.info().takes, self.info().options) {
            return options.size(main.key);
        }
        (!data.is_empty()).then(|| Bytes(data.iter().fold(0, |sum, bytes| bytes.0.saturating_add(sum))))
    }
    /// What it lacks of what it stores data on, whose capacities are `data`.
    fn lacks_below(&self, _options: &Options, _data: &[Bytes]) -> Option<Unmet> {
        None
    }
    /// The space it takes from something shared.
    fn space(&self, _options: &Options) -> Option<Space> {
        None
    }
    /// What no two nodes can have at the same time: a disk by its path.
    fn claims(&self, _options: &Options) -> Option<String> {
        None
    }
    /// By what its device is known again after a trial, where it outlives that; `below` is the same of what it stands on.
    fn lasting(&self, _options: &Options, _below: &[String]) -> Option<String> {
        None
    }
    /// Whether pages of a database reach what lies below unchanged and as wholes, so that they are known there by their headers.
    fn keeps_pages(&self, _options: &Options) -> bool {
        false
    }
    /// Builds it on its inputs, which are what [`LayerInfo::takes`] asks for; reads back what is there, and fails when that is
    /// not what was asked (an option that the kernel dropped).
    ///
    /// # Errors
    /// What failed, with the tool's own words. What was made up to there is in the ledger and is undone by the caller.
    fn build(&self, site: &Site<'_>, inputs: &[GivenGround], options: &Options) -> Result<Built>;
    /// Opens it again on devices that carry it already (a mount without mkfs, an import without create): after a crash,
    /// or on a copy of its devices. What it makes goes into the ledger as in [`Layer::build`].
    ///
    /// # Errors
    /// As [`Layer::build`]; and where a layer has nothing that could be opened again.
    fn reopen(&self, _site: &Site<'_>, _inputs: &[GivenGround], _options: &Options) -> Result<Built> {
        Err(Error::user(format!("the layer {} cannot be opened again", self.name())))
    }
    /// Its mount options, where opening it again with these options is nothing but a mount of its one device.
    fn only_mounts(&self, _options: &Options) -> Option<Vec<String>> {
        None
    }
    /// Why bytes that it holds already may not be written again, where these options ask for that.
    fn skips_same_bytes(&self, _options: &Options) -> Option<String> {
        None
    }
    /// Whether it has snapshots, as far as that is known before it is built.
    fn has_snapshots(&self) -> bool {
        false
    }
    /// How snapshots of one of its grounds are made, while it is used; `None` where it has none.
    ///
    /// # Errors
    /// When what is needed for them cannot be read back.
    fn snapshots(
        &self,
        _host: &Host,
        _inputs: &[GivenGround],
        _ground: &Ground,
        _options: &Options,
    ) -> Result<Option<SnapshotWay>> {
        Ok(None)
    }
    /// Why it takes nothing more, where what stands on it cannot know that: a thin pool that is full.
    ///
    /// # Errors
    /// With the tool's own words.
    fn full(&self, _host: &Host, _inputs: &[GivenGround], _options: &Options) -> Result<Option<String>> {
        Ok(None)
    }
    /// Called once the whole stack stands, the lowest layer first: restores what the layers above undid and reads back
    /// again what they changed.
    ///
    /// # Errors
    /// When what was asked of this layer does not hold any more.
    fn finish(&self, _host: &Host, _options: &Options, _details: &mut BTreeMap<String, String>) -> Result<()> {
        Ok(())
    }
    /// Undoes one thing that this layer entered into the ledger. Does nothing when it is not there (any more), and
    /// refuses when what is there is not what the ledger describes.
    ///
    /// # Errors
    /// When it is there and cannot be undone.
    fn undo(&self, host: &Host, thing: &Thing) -> Result<()>;
}

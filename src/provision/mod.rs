//! Builds a stack bottom-up, reads back what is really there, and undoes it top-down; keeps the ledger of what exists.
//!
//! A layer is one file and one line in `layers!`. A layer enters everything it makes into the [`ledger`] first;
//! teardown and `pgstrata clean` after a crash are the same walk through the ledger in reverse. Absent on purpose:
//! PostgreSQL, workloads, results.
//!
//! # Add a layer
//!
//! Add a type that implements [`Layer`] in a file of its own with a constant `INFO`, and a line in `layers!` (`mod md;
//! type Md;`), which declares the module and registers the layer. Plan, schema, example, drawing, facts, telemetry and
//! durability derive the rest from the layer's own description. `takes` lists the inputs, with the plan's key and their
//! number (`Take::ONE_DEVICE`; two members or more; a journal); `offers` and `bases` describe what it provides to
//! layers above. `build` gets its inputs with their roles and returns its bases, facts and promises (for instance that
//! a driver passes flushes on uncounted). It enters everything it makes into the ledger (`site.ledger`) *before* making
//! it. `undo` handles "absent", "half there" and "not ours": a device's number may be another's by then, so it checks a
//! mark on the thing itself (a UUID, the path of an image); the info's table `undo` names a function for each kind of
//! ledger entry. Each option is read back from the kernel, and a mismatch fails. `reopen` opens the layer on devices
//! that carry it. `capacity` is the sum of the inputs by default.
//!
//! Helpers: `needs` (programs, root, kernel), `kernel_module`, `mapper`, `guard` (what a device is and carries),
//! `sysfs`, `mount`. A filesystem on block devices is a `Recipe`; `filesystem` does the rest, and `real_tests` builds
//! it, kills the run at each ledger entry and undoes it. Other layers use `test_site::stands_and_dies` and
//! `opens_again`. `test_volumes` has stand-ins for machines that lack volumes (their undo takes every slice of a
//! device, which a real layer must not); `tests/plans/graphs.toml` has every shape of stack.
//!
//! `guest_disk` is a device that the host gives to a guest: `cli::run` counts the disks that the plan needs,
//! `guest::disks` makes the files and QEMU's arguments, and the list in `record::guest_disk` is the only thing both
//! sides share (`docs/adr/0036-disks-of-a-guest.md`).
//!
//! # Add to a layer
//!
//! Commands for a person: [`Layer::by_hand`] adds those of `build` to a script; both take them from the same function.
//! Snapshots: [`Layer::snapshots`] returns the commands and the extent of a snapshot (two folders with the same `whole`
//! are in one); a reflink-only filesystem makes a folder that the workload fills between the server's backup calls.
//! Steady state of its drive: [`Layer::lasting`] returns a lasting identifier of its device, and both options of
//! `precondition` go into its list (`docs/adr/0037-drives-in-their-steady-state.md`). A knob of the kernel is a line in
//! `knobs`; a layer that offers a device lists `knobs::QUEUE`. Parameters of a module are knobs without a list; if one
//! does not show the value in force, the ledger records both.

pub mod by_hand;
pub(crate) mod devices;
pub(crate) mod disk_probe;
pub mod drives;
pub(crate) mod facts;
pub(crate) mod filesystem;
pub(crate) mod folder;
mod guard;
mod identity;
pub(crate) mod image_file;
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
use crate::record::stack::{BaseKind, Role, Take};
use crate::units::Bytes;
use by_hand::Script;
use ledger::{Ledger, Thing};
use serde::Serialize;
use snapshots::SnapshotWay;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Expands `mod FILE; type LAYER;`, for a layer described by the constant `INFO` of its file, and `mod FILE; static
/// LAYER, ...;`, for values of a type that describes itself, to both the module and its entries of [`ALL`], so that one
/// line adds a layer.
macro_rules! layers {
    (
        $(mod $module:ident; $(type $unit:ident;)? $(static $($layer:ident),+;)?)*
        $(#[cfg(test)] mod $test:ident; $($stand_in:ident),+;)*
    ) => {
        $(pub mod $module;)*
        $(#[cfg(test)] mod $test;)*
        $($(impl Described for $module::$unit {
            fn info(&self) -> &LayerInfo {
                &$module::INFO
            }
        })?)*

        /// Every layer, in the order of the manual.
        #[cfg(not(test))]
        pub const ALL: &[&dyn Layer] = &[$($(&$module::$unit,)? $($(&$module::$layer,)+)?)*];
        /// Every layer, including the stand-ins of the tests.
        #[cfg(test)]
        pub const ALL: &[&dyn Layer] = &[$($(&$module::$unit,)? $($(&$module::$layer,)+)?)* $($(&$test::$stand_in,)+)*];
    };
}

layers! {
    mod loop_image; type LoopImage;
    mod disk; type RealDisk;
    mod null_blk; type NullBlk;
    mod zram; type Zram;
    mod scsi_debug; type ScsiDebug;
    mod guest_disk; type OwnDisk;
    mod md; type Md;
    mod lvm; type Lvm;
    mod luks; type Luks;
    mod delay; static DELAY, FLAKEY;
    mod linear; type Linear;
    mod bcache; type Bcache;
    mod ext; static EXT2, EXT3, EXT4;
    mod xfs; static XFS;
    mod btrfs; static BTRFS;
    mod zpool; type Zpool;
    mod zfs; type ZfsDataset;
    mod zvol; type Zvol;
    mod f2fs; static F2FS;
    mod reiserfs; static REISERFS;
    mod jfs; static JFS;
    mod nilfs2; static NILFS2;
    mod bcachefs; static BCACHEFS;
    mod memory; static TMPFS, RAMFS, HUGETLBFS;
    mod directory; type Directory;
    #[cfg(test)] mod test_volumes; MD_STAND_IN, LVM_STAND_IN, LUKS_STAND_IN, DELAY_STAND_IN;
    #[cfg(test)] mod test_trio; TRIO;
    #[cfg(test)] mod test_pool; POOL, DATASET;
}

pub fn layer(name: &str) -> Option<&'static dyn Layer> {
    ALL.iter().copied().find(|layer| layer.name() == name)
}

/// Storage that a node offers to the nodes above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// A block device, by path.
    Device(PathBuf),
    /// A folder for data.
    Folder(PathBuf),
    /// A storage pool, by name.
    Pool(String),
}

impl Base {
    pub fn kind(&self) -> BaseKind {
        match self {
            Base::Device(_) => BaseKind::Device,
            Base::Folder(_) => BaseKind::Folder,
            Base::Pool(_) => BaseKind::Pool,
        }
    }

    /// Its path, if it is a block device.
    pub(crate) fn device(&self) -> Option<&Path> {
        let Base::Device(path) = self else { return None };
        Some(path)
    }
}

/// An input of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerInput {
    pub role: Role,
    /// Its group: `mirror-0`.
    pub group: Option<String>,
    pub base: Base,
}

/// A base of a built layer, with the layer's inputs and options.
pub struct InUse<'a> {
    pub inputs: &'a [LayerInput],
    pub base: &'a Base,
    pub options: &'a Options,
}

/// The block devices among a layer's inputs in one role.
pub(crate) fn devices_for(inputs: &[LayerInput], role: Role) -> Vec<&Path> {
    inputs.iter().filter(|given| given.role == role).filter_map(|given| given.base.device()).collect()
}

/// A missing requirement of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmet {
    /// Missing item: `the program mkfs.xfs`.
    pub what: String,
    /// How to get it: `apt-get install xfsprogs`.
    pub hint: String,
}

/// Shared space that a stack takes, for the check before anything is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Space {
    /// Bytes for one trial on the filesystem that holds this folder (a sparse image).
    Disk(PathBuf, Bytes),
    /// Bytes for the whole run on that filesystem: an image that is written in full and reused by the trials.
    Image(PathBuf, Bytes),
    /// Bytes of memory (for tmpfs and ramfs, their maximum).
    Memory(Bytes),
}

/// Environment in which a layer is built.
pub struct Site<'a> {
    pub host: &'a Host,
    /// Receives an entry for everything before it is made.
    pub ledger: &'a Ledger,
    /// Name for things of this node, unique within the machine and short enough for a label: `pgstrata-<run
    /// id>-<trial>-<stack>-<node>`.
    pub name: String,
    /// Private folder of the run for mount points and the like; it exists and is in the ledger.
    pub folder: PathBuf,
    /// Existing images for the stack, by node.
    pub images: &'a BTreeMap<String, PathBuf>,
    /// The image for the node being built.
    pub image: Option<&'a Path>,
    pub interrupt: &'a Interrupt,
}

/// Facts by name, as read back.
pub(crate) type Details = BTreeMap<String, String>;

/// Result of building a layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    /// Bases for the nodes above, in the order of [`Layer::bases`].
    pub bases: Vec<Base>,
    /// Facts by name, as read back.
    pub details: Details,
    /// Promises of the layer about flushes and caches, in addition to those of its mount and its device.
    pub promises: Vec<Promise>,
}

impl Built {
    /// One base with its facts and no promises of its own.
    pub fn one(base: Base, details: impl IntoIterator<Item = (impl Into<String>, String)>) -> Built {
        let details = details.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Built { bases: vec![base], details, promises: Vec::new() }
    }
}

/// Description of a layer, for the plan and the manual.
pub struct LayerInfo {
    /// Its name in plans: `ext4`.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Its inputs; empty for a layer that needs nothing below.
    pub takes: &'static [Take],
    /// Kind of each of its bases.
    pub offers: BaseKind,
    /// Its options. The first may be given as the value of the layer's own key: `{ loop = "6GiB" }`.
    pub options: &'static [OptionSpec],
    /// Mount options of its own that are commonly set for a database, separated by spaces: only used to suggest the
    /// intended name.
    pub usual_mount_options: &'static str,
    /// True if, whatever its options, pages of a database reach the devices below unchanged and whole.
    pub keeps_pages: bool,
    /// True if it is in memory, and takes the size given by its first option there.
    pub in_memory: bool,
    /// How to undo each kind of thing that it enters into the ledger; see [`Layer::undo`].
    pub undo: &'static [(&'static str, UndoThing)],
}

/// Undoes one thing.
pub type UndoThing = fn(&Host, &Thing) -> Result<()>;

impl LayerInfo {
    const fn device(name: &'static str, doc: &'static str, options: &'static [OptionSpec]) -> LayerInfo {
        let (takes, offers, usual_mount_options) = (&[], BaseKind::Device, "");
        let (keeps_pages, in_memory, undo) = (false, false, &[]);
        LayerInfo { name, doc, takes, offers, options, usual_mount_options, keeps_pages, in_memory, undo }
    }

    const fn folder(name: &'static str, doc: &'static str, options: &'static [OptionSpec]) -> LayerInfo {
        LayerInfo { offers: BaseKind::Folder, ..LayerInfo::device(name, doc, options) }
    }

    const fn on(self, takes: &'static [Take]) -> LayerInfo {
        LayerInfo { takes, ..self }
    }

    const fn undone_by(self, undo: &'static [(&'static str, UndoThing)]) -> LayerInfo {
        LayerInfo { undo, ..self }
    }

    const fn keeping_pages(self) -> LayerInfo {
        LayerInfo { keeps_pages: true, ..self }
    }

    const fn in_memory(self) -> LayerInfo {
        LayerInfo { in_memory: true, ..self }
    }
}

/// Refuses a device on which the kernel shows another value than was asked.
fn must_show(fact: &str, wanted: &str, shown: &str) -> Result<()> {
    if shown == wanted {
        return Ok(());
    }
    Err(Error::host(format!("the {fact} was to be `{wanted}`, but the kernel shows `{shown}`")))
}

/// The sum of the capacities of a layer's data inputs.
pub(crate) fn total(data: &[Bytes]) -> Bytes {
    Bytes(data.iter().fold(0, |sum, bytes| bytes.0.saturating_add(sum)))
}

/// What a layer is; `layers!` writes it for a layer whose file has a constant `INFO`.
pub trait Described: Sync {
    fn info(&self) -> &LayerInfo;
}

pub trait Layer: Described {
    /// Its name in plans.
    fn name(&self) -> &'static str {
        self.info().name
    }
    /// Names of its bases: one without a name, unless its options make several.
    fn bases(&self, _options: &Options) -> Vec<String> {
        vec![String::new()]
    }
    /// Checks constraints that the specs cannot express. Pure.
    ///
    /// # Errors
    /// The key and what is wrong with it.
    fn check(&self, _options: &Options) -> Result<(), OptionProblem> {
        Ok(())
    }
    /// What this machine lacks for it. Reads, never changes. Options that are not given are not checked: without any,
    /// it returns what the layer itself needs.
    fn unmet(&self, host: &Host, options: &Options) -> Vec<Unmet>;
    /// Maximum capacity, if it is known before the build: an image's size, tmpfs's limit, a folder's free space. `data`
    /// are the capacities of its data inputs; by default it offers all of them, and a layer without inputs the size
    /// given by its first option.
    fn capacity(&self, options: &Options, data: &[Bytes]) -> Option<Bytes> {
        if let ([], [main, ..]) = (self.info().takes, self.info().options) {
            return options.size(main.key);
        }
        (!data.is_empty()).then(|| total(data))
    }
    /// A requirement that its data inputs, whose capacities are `data`, do not meet.
    fn lacks_below(&self, _options: &Options, _data: &[Bytes]) -> Option<Unmet> {
        None
    }
    /// What its tool says against these options, tried on files in memory in place of data inputs of these capacities.
    fn refused(&self, _host: &Host, _options: &Options, _data: &[Bytes]) -> Option<String> {
        None
    }
    /// Shared space that it takes.
    fn space(&self, options: &Options) -> Option<Space> {
        let LayerInfo { in_memory, options: specs, .. } = self.info();
        options.size(specs.first().filter(|_| *in_memory)?.key).map(Space::Memory)
    }
    /// A resource that no two nodes can use at the same time: a disk by its path.
    fn claims(&self, _options: &Options) -> Option<String> {
        None
    }
    /// Lasting identifier of its device, if that outlives a trial; `below` are the identifiers of its inputs.
    fn lasting(&self, _options: &Options, _below: &[String]) -> Option<String> {
        None
    }
    /// True if pages of a database reach the devices below unchanged and whole, so that their headers identify them
    /// there.
    fn keeps_pages(&self, _options: &Options) -> bool {
        self.info().keeps_pages
    }
    /// Builds it on its inputs, which match [`LayerInfo::takes`]; reads back the result, and fails if that differs from
    /// the options (an option that the kernel dropped).
    ///
    /// # Errors
    /// The failed step, with the tool's own message. Everything made so far is in the ledger and is undone by the
    /// caller.
    fn build(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built>;
    /// Adds the commands of [`Layer::build`] to a script for a person, from the functions that the build takes its own
    /// from; returns its bases there. By default, a device without inputs is the person's.
    ///
    /// # Errors
    /// If it has no commands.
    fn by_hand(&self, script: &mut Script, _inputs: &[LayerInput], _options: &Options) -> Result<Vec<Base>> {
        let name = self.name();
        Err(match (self.info().takes, self.info().offers) {
            ([], BaseKind::Device) => return Ok(script.device()),
            ([], _) => Error::user(format!("the layer `{name}` builds nothing: it uses a folder of the machine")),
            _ => Error::user(format!("there are no commands for the layer `{name}`")),
        })
    }
    /// Reopens it on devices that already carry it (a mount without mkfs, an import without create): after a crash, or
    /// on a copy of its devices. Uses the ledger like [`Layer::build`].
    ///
    /// # Errors
    /// As [`Layer::build`]; also if the layer cannot be reopened.
    fn reopen(&self, _site: &Site<'_>, _inputs: &[LayerInput], _options: &Options) -> Result<Built> {
        Err(Error::user(format!("the layer {} cannot be opened again", self.name())))
    }
    /// Its mount options, if reopening it with these options only mounts its one device.
    fn only_mounts(&self, _options: &Options) -> Option<Vec<String>> {
        None
    }
    /// Reason why it may skip rewriting bytes that it already holds, if these options cause that.
    fn skips_same_bytes(&self, _options: &Options) -> Option<String> {
        None
    }
    /// True if it has snapshots, as far as that is known before the build.
    fn has_snapshots(&self) -> bool {
        false
    }
    /// How to take snapshots of one of its bases while it is in use; `None` if it has none.
    ///
    /// # Errors
    /// When their prerequisites cannot be read back.
    fn snapshots(&self, _host: &Host, _of: &InUse<'_>) -> Result<Option<SnapshotWay>> {
        Ok(None)
    }
    /// Reason why it accepts no more writes, if the layers above cannot know: a full thin pool.
    ///
    /// # Errors
    /// With the tool's own message.
    fn full(&self, _host: &Host, _inputs: &[LayerInput], _options: &Options) -> Result<Option<String>> {
        Ok(None)
    }
    /// Called once the whole stack stands, lowest layer first: restores settings that the layers above reset, and reads
    /// back again what they changed.
    ///
    /// # Errors
    /// When an option of this layer is no longer in force.
    fn finish(&self, _host: &Host, _options: &Options, _details: &mut Details) -> Result<()> {
        Ok(())
    }
    /// Undoes one thing that this layer entered into the ledger. Does nothing if it is absent or gone, and refuses if
    /// it does not match the ledger's description.
    ///
    /// # Errors
    /// When it exists and cannot be undone.
    fn undo(&self, host: &Host, thing: &Thing) -> Result<()> {
        let known = self.info().undo.iter().find(|(kind, _)| *kind == thing.kind);
        let (_, undo) = known.ok_or_else(|| {
            Error::host(format!("this version of pgstrata makes no {} of the layer `{}`", thing.kind, self.name()))
                .hint("clean up with the version that created it")
        })?;
        undo(host, thing)
    }
}

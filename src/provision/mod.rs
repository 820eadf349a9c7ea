//! Building a stack bottom-up, reading back what is really there, undoing it top-down; the ledger of what exists.
//!
//! A layer is one file and one line in [`ALL`]. Whatever a layer makes, it enters into the [`ledger`] first; tearing
//! down, and `pgstrata clean` after a crash, are the same walk through the ledger in reverse. Absent on purpose:
//! PostgreSQL, workloads, results.

pub mod btrfs;
pub mod devices;
pub mod directory;
pub mod disk;
pub mod ext;
pub mod filesystem;
pub mod folder;
mod guard;
pub mod ledger;
pub mod loop_image;
pub mod mount;
pub mod needs;
mod options_kept;
pub mod ramfs;
pub mod stack;
mod sysfs;
pub mod tmpfs;
pub mod undo;
pub mod xfs;

#[cfg(test)]
mod real_tests;
#[cfg(test)]
mod test_site;

use crate::error::Result;
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::record::facts::LayerFacts;
use crate::record::options::{OptionProblem, OptionSpec, Options};
use crate::units::Bytes;
use ledger::{Ledger, Thing};
use std::path::PathBuf;

/// Every layer, in the order in which the manual lists them.
pub const ALL: &[&dyn Layer] = &[
    &loop_image::LoopImage,
    &disk::Disk,
    &ext::EXT2,
    &ext::EXT3,
    &ext::EXT4,
    &xfs::XFS,
    &btrfs::BTRFS,
    &tmpfs::Tmpfs,
    &ramfs::Ramfs,
    &directory::Directory,
];

/// The layer that a plan calls `name`.
#[must_use]
pub fn layer(name: &str) -> Option<&'static dyn Layer> {
    ALL.iter().copied().find(|layer| layer.name() == name)
}

/// What a layer stands on or offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ground {
    /// A block device, by path.
    Device(PathBuf),
    /// A folder that data can be put in.
    Folder(PathBuf),
}

/// Where in a stack a layer belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    /// Needs nothing below, offers a block device: loop, disk. Key `device` in the plan.
    Device,
    /// Block device in, block device out: md, LVM, crypt. Key `volume` in the plan.
    Volume,
    /// Block device in, folder out: ext4, xfs, btrfs. Key `filesystem` in the plan.
    Filesystem,
    /// Needs nothing below, offers a folder: tmpfs, ramfs, directory. Key `filesystem` (or `directory`) in the plan.
    Folder,
}

/// Something that must be there for a layer to be built, and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// What is missing: `the program mkfs.xfs`.
    pub what: String,
    /// What would bring it: `apt-get install xfsprogs`.
    pub hint: String,
}

/// Room that a stack takes on something that others use too, for the check before anything is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Room {
    /// Bytes on the filesystem that holds this folder (a loop image).
    Disk(PathBuf, Bytes),
    /// Bytes of the machine's memory (tmpfs, ramfs: the most it may take).
    Memory(Bytes),
}

/// What a layer is given to build with.
pub struct Site<'a> {
    /// The machine.
    pub host: &'a Host,
    /// Where everything made is entered first.
    pub ledger: &'a Ledger,
    /// Name for what is made: `pgstrata-<run id>-<trial>-<stack>`; unique within the machine, short, fit for a label.
    pub name: String,
    /// Private folder of the run for mount points and the like; made and in the ledger.
    pub folder: PathBuf,
    /// Whether somebody asked to stop.
    pub interrupt: &'a Interrupt,
}

/// What a layer has built.
#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    /// What the layer above, or the cluster, stands on.
    pub ground: Ground,
    /// What is really there.
    pub facts: LayerFacts,
}

/// One kind of layer.
pub trait Layer: Sync {
    /// Its name in plans: `ext4`.
    fn name(&self) -> &'static str;
    /// Where it belongs.
    fn position(&self) -> Position;
    /// One sentence for the manual.
    fn doc(&self) -> &'static str;
    /// Its options. The first may be given as the value of the layer's own key: `{ loop = "6GiB" }`.
    fn options(&self) -> &'static [OptionSpec];
    /// Checks what the specs cannot say. Pure.
    ///
    /// # Errors
    /// The key and what is wrong with it.
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        let _ = options;
        Ok(())
    }
    /// What this machine lacks for it. Reads, never changes. An option that is not given is not looked at: without any,
    /// it tells what the layer lacks as such.
    fn unmet(&self, host: &Host, options: &Options) -> Vec<Unmet>;
    /// What it offers at most, where that can be told before it is built: an image's size, tmpfs's limit, a folder's free
    /// space.
    fn capacity(&self, options: &Options) -> Option<Bytes> {
        let _ = options;
        None
    }
    /// The room it takes from something shared.
    fn room(&self, options: &Options) -> Option<Room> {
        let _ = options;
        None
    }
    /// Builds it on what lies below, reads back what is there, and fails when that is not what was asked
    /// (an option that the kernel dropped).
    ///
    /// # Errors
    /// What failed, with the tool's own words. What was made up to there is in the ledger and is undone by the caller.
    fn build(&self, site: &Site<'_>, below: Option<&Ground>, options: &Options) -> Result<Built>;
    /// Called once the whole stack stands, the lowest layer first: mends what the layers above undid and reads back again
    /// what they changed.
    ///
    /// # Errors
    /// When what was asked of this layer does not hold any more.
    fn finish(&self, host: &Host, options: &Options, facts: &mut LayerFacts) -> Result<()> {
        let _ = (host, options, facts);
        Ok(())
    }
    /// Undoes one thing that this layer entered into the ledger. Does nothing when it is not there (any more), and
    /// refuses when what is there is not what the ledger describes.
    ///
    /// # Errors
    /// When it is there and cannot be undone.
    fn undo(&self, host: &Host, thing: &Thing) -> Result<()>;
}

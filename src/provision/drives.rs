//! Drives that a plan wants in their steady state before its stacks are built on them.
//!
//! Owns which drives those are, how a run recognizes them, and how one stands alone, without the layers of the plan on
//! it. The writes to it are not here. While a stack stands on such a drive the kernel sends it no discards: mkfs would
//! discard its contents ([ADR 37](../../docs/adr/0037-drives-in-their-steady-state.md)).

use super::identity::{BlockDevice, Identity};
use super::precondition::{KEY, ROUND, asked};
use super::stack::{self, stand_alone};
use super::sysfs::DeviceNumber;
use super::{Base, Site, disk, images, layer};
use crate::error::{Error, Result};
use crate::host::files::File;
use crate::host::{Host, paths};
use crate::record::stack::{BaseName, NodeSpec, StackSpec};
use crate::units::{Bytes, Micros};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq)]
pub struct WantedDrive {
    /// Identifies the drive for the run.
    pub key: String,
    pub node: String,
    pub round: Micros,
    pub is_image: bool,
    /// The drive and everything below it.
    alone: StackSpec,
}

/// The drives that a stack wants in their steady state, in the order of its nodes.
///
/// # Errors
/// When one of them does not outlive a trial.
pub fn of_stack(spec: &StackSpec) -> Result<Vec<WantedDrive>> {
    let mut all = Vec::new();
    for node in &spec.nodes {
        let Some(round) = asked(&node.options) else { continue };
        let key = key(spec, node).ok_or_else(|| {
            let (name, stack) = (&node.name, &spec.name);
            let message =
                format!("`{name}` of the stack {stack} is made anew for each trial: `{KEY}` would go with it");
            Error::user(message)
                .hint(format!("remove `{KEY}`; it is for real disks, images that are fully written, and parts of both"))
        })?;
        let alone = alone(spec, node);
        let is_image = alone.nodes.iter().any(|node| node.layer == "loop");
        all.push(WantedDrive { key, node: node.name.clone(), round, is_image, alone });
    }
    Ok(all)
}

/// Preconditioning requested for one drive: keys and round lengths.
pub type AskedOfOne = BTreeMap<String, Micros>;

/// Preconditioning that a stack requests for each drive below it, whole or partitioned; drives without a request are
/// left out. Drives are named as this machine resolves them: two names of one disk, or two of its partitions, are one
/// drive.
pub fn asked_of_each(host: &Host, spec: &StackSpec) -> BTreeMap<String, AskedOfOne> {
    let mut all: BTreeMap<String, AskedOfOne> = BTreeMap::new();
    all.extend(spec.nodes.iter().flat_map(|node| drive_of(host, spec, node).map(|drive| (drive, AskedOfOne::new()))));
    for node in &spec.nodes {
        let (Some(round), Some(key)) = (asked(&node.options), key(spec, node)) else { continue };
        for below in &alone(spec, node).nodes {
            let asked = drive_of(host, spec, below).and_then(|drive| all.get_mut(&drive));
            asked.map(|asked| asked.insert(key.clone(), round));
        }
    }
    all
}

/// The drive of a node: an image, or the disk that its path leads to.
fn drive_of(host: &Host, spec: &StackSpec, node: &NodeSpec) -> Option<String> {
    if node.layer == disk::NAME {
        disk::whole(host, &node.options)
    } else {
        key(spec, node).filter(|_| node.inputs.is_empty())
    }
}

/// Key by which a run recognizes the device of a node; `None` if the device does not outlive a trial.
pub(crate) fn key(spec: &StackSpec, node: &NodeSpec) -> Option<String> {
    if let Some(image) = images::of_stack(spec).into_iter().find(|image| image.node == node.name) {
        let kept = if spec.reuse { format!(", kept for {}", spec.name) } else { String::new() };
        return Some(format!("{} in {}{kept}", image.place(), image.folder.display()));
    }
    let below = node.inputs.iter().map(|input| key(spec, spec.node(input.from.node())?));
    layer(&node.layer)?.lasting(&node.options, &below.collect::<Option<Vec<_>>>()?)
}

/// A node with everything below it. The request to precondition it is removed: on its own a drive must accept discards.
fn alone(spec: &StackSpec, node: &NodeSpec) -> StackSpec {
    let mut alone = StackSpec { data: BaseName(node.name.clone()), ..spec.clone() }.data_alone();
    for node in &mut alone.nodes {
        node.options.0.remove(KEY);
        node.options.0.remove(ROUND);
    }
    alone
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingDrive {
    pub path: PathBuf,
    pub model: Option<String>,
    pub bytes: u64,
    node: DeviceNumber,
    /// The kernel's number for this attachment of the device (`diskseq`).
    sequence: Option<String>,
}

impl StandingDrive {
    fn of(host: &Host, path: &Path) -> Result<StandingDrive> {
        let node = BlockDevice::find(path)?.node;
        let disk = node.whole_disk(host).unwrap_or(node);
        let bytes = node.number::<u64>(host, "size").unwrap_or(0) * 512;
        let (model, sequence) = (Identity::of(host, node).model, disk.attribute(host, "diskseq"));
        Ok(StandingDrive { path: path.to_owned(), model, bytes, node, sequence })
    }

    /// Checks again, now that this file holds the drive exclusively: it must still be the one that stood there, and the
    /// plan's disks below it must still carry nothing.
    ///
    /// # Errors
    /// With what has changed.
    pub fn check_held(&self, host: &Host, wanted: &WantedDrive, file: &File) -> Result<()> {
        let (major, minor) = paths::look_at_open(file, &self.path)?.device;
        let now = StandingDrive { model: self.model.clone(), ..StandingDrive::of(host, &self.path)? };
        if (DeviceNumber { major, minor }) != self.node || now != *self {
            return Err(Error::host(format!("{} became another device: nothing was written", self.path.display())));
        }
        let mut disks = wanted.alone.nodes.iter().filter(|node| node.layer == disk::NAME);
        disks.try_for_each(|node| disk::still_meant(host, &node.options))
    }
}

impl WantedDrive {
    /// The same drive, identified by its image if the stack has its own: another variant of the stack has another.
    pub fn on(mut self, images: &BTreeMap<String, PathBuf>) -> WantedDrive {
        let own = self.alone.nodes.iter().filter(|_| self.alone.reuse).filter_map(|node| images.get(&node.name));
        self.key = own.fold(self.key.clone(), |key, image| format!("{key}, {}", image.display()));
        self
    }

    /// Stands the drive up alone, with the same checks as for a stack. Everything made for that is in the ledger: the
    /// caller undoes it.
    ///
    /// # Errors
    /// The layers' own: another disk than the plan means, one in use, one that holds data.
    pub fn stand(&self, site: &Site<'_>) -> Result<StandingDrive> {
        let (bases, details) = stand_alone(site, &self.alone)?;
        let Some(Base::Device(path)) = bases.get(&self.alone.data) else {
            return Err(Error::bug(format!("`{}` is to be preconditioned and is not a device", self.node)));
        };
        let standing = StandingDrive::of(site.host, path)?;
        let model = details.iter().find_map(|details| details.get("model").cloned());
        Ok(StandingDrive { model: model.or_else(|| standing.model.clone()), ..standing })
    }

    /// True if a drive of an earlier session is unchanged since this run used it.
    pub fn is_still_of(&self, host: &Host, run: &str) -> bool {
        let mut disks = self.alone.nodes.iter().filter(|node| node.layer == disk::NAME);
        !self.is_image && disks.all(|node| disk::is_left_by(host, &node.options, run))
    }

    /// Size in bytes, if it is known before the drive stands.
    pub fn bytes(&self, host: &Host) -> Option<Bytes> {
        stack::size(Some(host), &self.alone, self.alone.node(&self.node)?)
    }
}

//! A stack's filesystems remounted repeatedly on the same devices, to check many states of them.
//!
//! A stack opened once by [`super::stack::reopen_stack`] shows how mount(8) mounts it. From then on mount(2) is used in
//! the same places, without a process and without reading back facts, and the kernel must show the same options.
//! Folders and mounts are entered into the ledger once: an absent mount needs no undoing.

use super::facts::Bases;
use super::ledger::Thing;
use super::stack::{self, BuiltStack};
use super::undo::{undo_from, undo_own};
use super::{Base, Site, folder, mount_table};
use crate::error::{Error, Result};
use crate::host::mounts::{self, MountOptions};
use crate::host::time::{now, sleep};
use crate::record::facts::MountFacts;
use crate::record::stack::{End, NodeSpec, Role, StackSpec};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a mount may stay busy: its last user is gone, but the kernel may not be done with it.
const BUSY: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);

/// The filesystems of one stack and how they are mounted.
pub struct Remounts {
    mounts: Vec<Remount>,
    /// Mounted folder of each part of the database.
    pub folders: BTreeMap<End, PathBuf>,
}

struct Remount {
    owner: &'static str,
    source: String,
    target: PathBuf,
    options: MountOptions,
    /// Mount facts after mount(8).
    shown: MountFacts,
}

impl Remounts {
    /// Learns from a stack opened on the devices in `there`; `None` unless each node is a filesystem on one device
    /// whose options only affect its mount.
    pub fn of(spec: &StackSpec, opened: &BuiltStack, there: &Bases) -> Option<Remounts> {
        let above = spec.nodes.iter().filter(|node| there.keys().all(|base| base.node() != node.name));
        let below = spec.nodes.iter().filter(|node| there.keys().any(|base| base.node() == node.name));
        // A device's knob is set anew for each opening.
        let has_knobs = below.into_iter().any(|node| node.options.get("queue").is_some());
        let mounts: Option<Vec<Remount>> = above.map(|node| remount(node, opened, there)).collect();
        mounts.filter(|_| !has_knobs).map(|mounts| Remounts { mounts, folders: opened.folders.clone() })
    }

    /// Enters folders and mounts into the ledger, and makes the folders. The stack it was learned from is undone by
    /// now. The new entries lie at or above the ledger's previous mark.
    ///
    /// # Errors
    /// If a folder already exists, or cannot be made or entered.
    pub fn prepare(&self, site: &Site<'_>) -> Result<()> {
        for one in &self.mounts {
            folder::make(site.ledger, folder::OWNER, &one.target)?;
            let thing = Thing::new(one.owner, "mount").with_path("target", &one.target)?;
            site.ledger.enter(thing.with("source", &one.source).with("fstype", &one.shown.fstype))?;
        }
        Ok(())
    }

    /// Mounts all. `false` if the kernel refuses one or shows other options than after mount(8): then all are unmounted
    /// again, but the devices may have changed.
    ///
    /// # Errors
    /// If a mount cannot be undone, or the mount table cannot be read.
    pub fn mount(&self, site: &Site<'_>) -> Result<bool> {
        for one in &self.mounts {
            if mounts::mount(&one.source, &one.target, &one.shown.fstype, &one.options).is_err() {
                return self.unmount().map(|()| false);
            }
        }
        let table = mount_table::table(site.host)?;
        let are_same = self.mounts.iter().all(|Remount { target, shown, .. }| {
            let found = table.iter().rev().find(|mount| Path::new(&mount.target) == target);
            found.is_some_and(|it| it.options == shown.options && it.super_options == shown.super_options)
        });
        if are_same { Ok(true) } else { self.unmount().map(|()| false) }
    }

    /// Unmounts those that are mounted.
    ///
    /// # Errors
    /// If one stays busy, or its filesystem alive.
    pub fn unmount(&self) -> Result<()> {
        self.mounts.iter().rev().try_for_each(|one| unmounted(&one.target))?;
        self.mounts.iter().try_for_each(|one| mount_table::until_ended(Path::new(&one.source)))
    }

    /// Unmounts, and removes folders and entries, down to the ledger's previous mark.
    ///
    /// # Errors
    /// Everything that could not be undone.
    pub fn release(&self, site: &Site<'_>, mark: u64) -> Result<()> {
        self.unmount()?;
        undo_from(site.ledger, mark, undo_own, site.host).into_iter().next().map_or(Ok(()), Err)
    }
}

fn remount(node: &NodeSpec, opened: &BuiltStack, there: &Bases) -> Option<Remount> {
    let layer = stack::known(node).ok()?;
    let options = layer.only_mounts(&node.options)?;
    let [input] = node.inputs.as_slice() else { return None };
    let Base::Device(device) = there.get(&input.from).filter(|_| input.role == Role::Data)? else { return None };
    let shown = opened.facts.nodes.iter().find(|facts| facts.name == node.name)?.bases.first()?.mount.clone()?;
    let (source, target) = (device.to_str()?.to_owned(), PathBuf::from(&shown.target));
    Some(Remount { owner: layer.name(), source, target, options: MountOptions::of(&options)?, shown })
}

fn unmounted(target: &Path) -> Result<()> {
    let begun = now();
    loop {
        match mounts::unmount(target) {
            Ok(()) => return Ok(()),
            // Nothing is mounted there.
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy && begun.elapsed() < BUSY => sleep(PAUSE),
            Err(e) => return Err(Error::host(format!("unmount {}: {e}", target.display()))),
        }
    }
}

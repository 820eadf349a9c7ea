//! A stack as found after it was built: the nodes of the plan, and the existing devices below them.

use super::facts::{DeviceFacts, MountFacts};
use super::seconds::device_prefixes;
use super::stack::{BaseName, End, Input, Role};
use crate::record::claim::{Claim, Promise};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the fact that says when blocks of an image file are allocated.
pub const ALLOCATION: &str = "allocation";
/// Value of [`ALLOCATION`] if the filesystem below allocates a block on its first write.
pub const SPARSE: &str = "sparse";

/// One stack.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StackFacts {
    /// Name in the plan.
    pub name: String,
    /// Its nodes: those of the plan in build order, then the devices found below them.
    pub nodes: Vec<NodeFacts>,
    /// The base that holds the data directory.
    pub data: Option<BaseName>,
    /// The base that holds `pg_wal`, if separate.
    pub wal: Option<BaseName>,
    /// The base of each tablespace.
    pub tablespaces: BTreeMap<String, BaseName>,
    /// Free bytes on the data's filesystem just before the data was loaded.
    pub free_bytes: Option<u64>,
    /// Trials that this stack has already served; 0 for a fresh one.
    pub trials_before: u32,
    /// Seconds since this stack was made.
    pub age_s: Option<f64>,
}

/// Facts read back from one node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeFacts {
    /// Name in the plan; the kernel's name for a device that was found.
    pub name: String,
    /// Name of the layer; `None` for a device that already existed.
    pub layer: Option<String>,
    /// Facts by name, values as the source prints them: `block size` -> `4096`.
    pub details: BTreeMap<String, String>,
    /// Bases that it is built on, with roles.
    pub inputs: Vec<Input>,
    /// Bases that it provides.
    pub bases: Vec<BaseFacts>,
    /// Its promises about flushes and caches.
    pub promises: Vec<Promise>,
}

impl NodeFacts {
    /// True if it is an image whose blocks are allocated on their first write.
    pub fn is_sparse(&self) -> bool {
        self.details.get(ALLOCATION).is_some_and(|allocation| allocation == SPARSE)
    }

    /// First promise of a claim.
    pub fn promise(&self, claim: Claim) -> Option<&Promise> {
        self.promises.iter().find(|promise| promise.claim == claim)
    }
}

/// One base as found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BaseFacts {
    /// Name within its node; empty for the only one.
    pub name: String,
    /// The block device, if it is one.
    pub device: Option<DeviceFacts>,
    /// The mount that holds the folder, if it is one.
    pub mount: Option<MountFacts>,
}

/// A device below a base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Below<'a> {
    /// Steps down from the base; 0 for the inputs of its node.
    pub depth: u32,
    /// First role on the way down other than data, else data.
    pub role: Role,
    /// Its node.
    pub node: &'a NodeFacts,
    /// The base of that node.
    pub base: &'a BaseFacts,
    /// Its facts from sysfs.
    pub device: &'a DeviceFacts,
}

impl Below<'_> {
    /// Name of the base, which its columns are named after.
    pub fn name(&self) -> BaseName {
        BaseName::of(&self.node.name, &self.base.name)
    }
}

impl StackFacts {
    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<&NodeFacts> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Facts of a base.
    pub fn base(&self, name: &BaseName) -> Option<&BaseFacts> {
        self.node(name.node())?.bases.iter().find(|facts| facts.name == name.base())
    }

    pub(crate) fn mount_of(&self, base: Option<&BaseName>) -> Option<&MountFacts> {
        self.base(base?)?.mount.as_ref()
    }

    /// The mount that holds the data.
    pub fn mount(&self) -> Option<&MountFacts> {
        self.mount_of(self.data.as_ref())
    }

    /// Parts of the database with their bases; `pg_wal` first if separate.
    pub(crate) fn ends(&self) -> Vec<(End, &BaseName)> {
        let wal = self.wal.iter().map(|base| (End::Wal, base));
        let data = self.data.iter().map(|base| (End::Data, base));
        let spaces = self.tablespaces.iter().map(|(name, base)| (End::Tablespace(name.clone()), base));
        wal.chain(data).chain(spaces).collect()
    }

    /// The base that holds `pg_wal`, shared with the data or separate.
    pub(crate) fn wal_base(&self) -> Option<&BaseName> {
        self.wal.as_ref().or(self.data.as_ref())
    }

    /// The node of a base and all nodes below it, nearest first, each once, with its depth (0 for the base's own
    /// node) and the first role on the way down other than data.
    pub(crate) fn way_down(&self, base: Option<&BaseName>) -> Vec<(u32, Role, &NodeFacts)> {
        let mut seen: Vec<(u32, Role, &NodeFacts)> = Vec::new();
        seen.extend(base.and_then(|base| self.node(base.node())).map(|node| (0, Role::Data, node)));
        let mut next = 0;
        while let Some((depth, role, node)) = seen.get(next).copied() {
            next += 1;
            for input in &node.inputs {
                let known = seen.iter().any(|(_, _, known)| known.name == input.from.node());
                let role = if role == Role::Data { input.role } else { role };
                let below = self.node(input.from.node()).filter(|_| !known);
                seen.extend(below.map(|below| (depth + 1, role, below)));
            }
        }
        seen
    }

    /// Block devices below a base, from top to bottom.
    pub(crate) fn devices_below(&self, base: Option<&BaseName>) -> Vec<Below<'_>> {
        let way = self.way_down(base);
        let mut below = Vec::new();
        for (depth, role, node) in way.iter().filter(|(depth, _, _)| *depth > 0) {
            for of_node in &node.bases {
                let used = way.iter().flat_map(|(_, _, above)| &above.inputs);
                let used = used.filter(|input| input.from.node() == node.name);
                if let Some(device) = &of_node.device
                    && used.into_iter().any(|input| input.from.base() == of_node.name)
                {
                    below.push(Below { depth: depth - 1, role: *role, node, base: of_node, device });
                }
            }
        }
        below
    }

    /// All block devices of the stack, each once, in node order.
    pub fn devices(&self) -> Vec<(BaseName, &DeviceFacts)> {
        let bases = self.nodes.iter().flat_map(|node| node.bases.iter().map(move |base| (node, base)));
        bases.filter_map(|(node, base)| Some((BaseName::of(&node.name, &base.name), base.device.as_ref()?))).collect()
    }

    /// All block devices with the prefix of their column names.
    pub(crate) fn device_columns(&self) -> Vec<(BaseName, String, &DeviceFacts)> {
        let devices = self.devices();
        let prefixes = device_prefixes(devices.iter().map(|(name, _)| name));
        devices.into_iter().zip(prefixes).map(|((name, device), prefix)| (name, prefix, device)).collect()
    }

    /// The nearest promise of a claim at or below a base.
    pub fn promise(&self, base: Option<&BaseName>, claim: Claim) -> Option<(&NodeFacts, &Promise)> {
        self.way_down(base).into_iter().find_map(|(_, _, node)| Some((node, node.promise(claim)?)))
    }
}

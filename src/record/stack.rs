//! A stack as requested by the plan: a graph of nodes, each a layer with its inputs.

use super::options::Options;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Kind of base that a node provides to nodes above it and requires from nodes below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseKind {
    /// A block device. Only one node can use it.
    Device,
    /// A folder for data.
    Folder,
    /// A storage pool. Any number of nodes can use it.
    Pool,
}

impl BaseKind {
    /// `device`, `folder`, `pool`.
    pub fn word(self) -> &'static str {
        match self {
            BaseKind::Device => "device",
            BaseKind::Folder => "folder",
            BaseKind::Pool => "pool",
        }
    }
}

/// Use that a node makes of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Stores its data there.
    Data,
    /// External journal (ext4), log device (XFS), separate intent log (ZFS).
    Log,
    /// Read cache (L2ARC, dm-cache).
    Cache,
    /// Metadata and small blocks (ZFS special vdev).
    Special,
    /// Tables of deduplication (ZFS dedup vdev).
    Dedup,
}

impl Role {
    /// `data`, `log`, `cache`, `special`, `dedup`.
    pub fn word(self) -> &'static str {
        match self {
            Role::Data => "data",
            Role::Log => "log",
            Role::Cache => "cache",
            Role::Special => "special",
            Role::Dedup => "dedup",
        }
    }
}

/// One kind of input of a layer: how many, of which kind, and the plan's key for them.
#[derive(Debug, Clone, Copy)]
pub struct Take {
    /// Purpose.
    pub role: Role,
    /// Required kind.
    pub kind: BaseKind,
    /// Key in the plan: `on`, `journal`, `vdevs`.
    pub key: &'static str,
    /// Fewest.
    pub least: usize,
    /// Most.
    pub most: usize,
    /// Keywords for groups of them (`mirror`, `raidz1`); empty if the layer has no groups.
    pub groups: &'static [&'static str],
    /// One sentence for the manual.
    pub doc: &'static str,
}

impl Take {
    /// Exactly one block device for data, named by `on`.
    pub(crate) const ONE_DEVICE: Take = Take {
        role: Role::Data,
        kind: BaseKind::Device,
        key: "on",
        least: 1,
        most: 1,
        groups: &[],
        doc: "The device to use; default: the one that is still unused.",
    };
}

/// A base by name: `NODE`, or `NODE.BASE` if the node provides several.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BaseName(pub String);

impl BaseName {
    /// Names the base `own` of `node`; the only base of a node has an empty name.
    pub fn of(node: &str, own: &str) -> BaseName {
        BaseName(if own.is_empty() { node.to_owned() } else { format!("{node}.{own}") })
    }

    /// Name of the node.
    pub fn node(&self) -> &str {
        self.0.split_once('.').map_or(self.0.as_str(), |(node, _)| node)
    }

    /// Name of the base within the node; empty if there is only one.
    pub fn base(&self) -> &str {
        self.0.split_once('.').map_or("", |(_, own)| own)
    }
}

impl fmt::Display for BaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A base that a node is built on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The base.
    pub from: BaseName,
    /// Purpose.
    pub role: Role,
    /// Its group, numbered within the node: `mirror-0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// One node: a layer with its options on its inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Name, unique within the stack; without dots.
    pub name: String,
    /// Name of the layer: `loop`, `ext4`, `zpool`.
    pub layer: String,
    /// One value for each given option.
    pub options: Options,
    /// Inputs, in the order of the plan.
    pub inputs: Vec<Input>,
}

/// One storage stack as requested.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StackSpec {
    /// Name in the plan.
    pub name: String,
    /// Its nodes in build order: each stands on earlier ones only.
    pub nodes: Vec<NodeSpec>,
    /// The folder that holds the data directory.
    pub data: BaseName,
    /// The folder that holds `pg_wal`, if separate.
    pub wal: Option<BaseName>,
    /// The stack of the plan that `pg_wal` was put on (`wal = "NAME"`); its nodes are among `nodes`.
    pub wal_stack: Option<String>,
    /// The folder of each tablespace.
    pub tablespaces: BTreeMap<String, BaseName>,
    /// True if trials share one stack that ages (`reuse = true`); otherwise each trial gets a fresh one.
    pub reuse: bool,
    /// The part kept of the plan's stack, if a workload without a server needs no more: `pg_wal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
}

/// A part of the database that is placed on a base.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// The data directory.
    Data,
    /// `pg_wal`, if separate.
    Wal,
    /// A tablespace.
    Tablespace(String),
}

impl fmt::Display for End {
    /// `data`, `wal`, `tablespace hot`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Data => f.write_str("data"),
            End::Wal => f.write_str("wal"),
            End::Tablespace(name) => write!(f, "tablespace {name}"),
        }
    }
}

impl StackSpec {
    /// Removes duplicate stacks, comparing their text: comparing all pairs takes seconds for thousands.
    pub fn each_once<'s>(stacks: impl Iterator<Item = &'s StackSpec>) -> impl Iterator<Item = &'s StackSpec> {
        let mut seen = BTreeSet::new();
        stacks.filter(move |stack| seen.insert(format!("{stack:?}")))
    }

    /// A stack in which each layer is built on the previous one.
    pub fn linear(name: &str, layers: Vec<(&str, Options)>) -> StackSpec {
        let mut nodes: Vec<NodeSpec> = Vec::new();
        for (layer, options) in layers {
            let from = nodes.last().map(|below| BaseName(below.name.clone()));
            let inputs = from.map(|from| Input { from, role: Role::Data, group: None }).into_iter().collect();
            nodes.push(NodeSpec { name: layer.to_owned(), layer: layer.to_owned(), options, inputs });
        }
        let data = BaseName(nodes.last().map(|top| top.name.clone()).unwrap_or_default());
        StackSpec { name: name.to_owned(), nodes, data, ..StackSpec::default() }
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<&NodeSpec> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Each part of the database with its base, the data first.
    pub fn ends(&self) -> Vec<(End, &BaseName)> {
        let tablespaces = self.tablespaces.iter().map(|(name, base)| (End::Tablespace(name.clone()), base));
        let wal = self.wal.iter().map(|base| (End::Wal, base));
        std::iter::once((End::Data, &self.data)).chain(wal).chain(tablespaces).collect()
    }

    /// The same stack with only the base that holds `pg_wal`, shared or separate: used by workloads without a server,
    /// whose synced writes are like those of a WAL.
    pub(crate) fn wal_alone(&self) -> StackSpec {
        let whole = self.wal.is_none() && self.tablespaces.is_empty();
        let only = if self.wal.is_some() { "pg_wal" } else { "the data" };
        let data = self.wal.clone().unwrap_or_else(|| self.data.clone());
        StackSpec { data, only: (!whole).then(|| only.to_owned()), ..self.clone() }.data_alone()
    }

    /// Names of the nodes at and below a base.
    pub(crate) fn below<'s>(&'s self, base: &'s BaseName) -> BTreeSet<&'s str> {
        let mut found = BTreeSet::from([base.node()]);
        for node in self.nodes.iter().rev() {
            if found.contains(node.name.as_str()) {
                found.extend(node.inputs.iter().map(|input| input.from.node()));
            }
        }
        found
    }

    /// The same stack with only the base that holds the data.
    pub(crate) fn data_alone(&self) -> StackSpec {
        let wanted = self.below(&self.data);
        let nodes = self.nodes.iter().filter(|node| wanted.contains(node.name.as_str())).cloned().collect();
        StackSpec { nodes, wal: None, wal_stack: None, tablespaces: BTreeMap::new(), ..self.clone() }
    }
}

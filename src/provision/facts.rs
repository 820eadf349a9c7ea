//! Facts of a standing stack: a graph of its nodes and of the existing devices below them.

use super::devices::{DeviceWalk, DevicesBelow, Tops};
use super::identity::BlockDevice;
use super::{Base, Built, folder, mount};
use crate::error::Result;
use crate::host::{Host, files};
use crate::record::built::{BaseFacts, NodeFacts, StackFacts};
use crate::record::claim::Promise;
use crate::record::promise;
use crate::record::stack::{BaseName, End, Input, NodeSpec, Role, StackSpec};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Reads back a standing stack.
///
/// # Errors
/// When a device or folder that was built cannot be found.
pub(super) fn read_back(
    host: &Host,
    spec: &StackSpec,
    nodes: &[(&NodeSpec, Built)],
    bases: &Bases,
    folders: &BTreeMap<End, PathBuf>,
) -> Result<StackFacts> {
    let mut walk = DeviceWalk::new(host)?;
    let mut sights = BTreeMap::new();
    for (name, base) in bases {
        let tops = match base {
            Base::Device(path) => Tops { devices: vec![walk.node(BlockDevice::find(path)?.node)], ends: Vec::new() },
            Base::Folder(path) => walk.folder(path)?,
            Base::Pool(_) => Tops::default(),
        };
        sights.insert(name, tops);
    }
    let below = walk.below;
    let found = FoundDevices::new(spec, bases, &sights, &below);
    let own = nodes.iter().map(|(node, built)| of_node(host, node, built, bases, &found));
    let mut facts = own.collect::<Result<Vec<_>>>()?;
    facts.extend(found.nodes());
    let stack = StackFacts {
        name: spec.name.clone(),
        nodes: facts,
        data: Some(spec.data.clone()),
        wal: spec.wal.clone(),
        tablespaces: spec.tablespaces.clone(),
        free_bytes: Some(files::free_bytes(&folders[&End::Data])?),
        trials_before: 0,
        age_s: Some(0.0),
    };
    Ok(with_depths(stack))
}

/// Sets each device's depth below the nearest folder of the database.
fn with_depths(mut stack: StackFacts) -> StackFacts {
    let mut depths: BTreeMap<BaseName, u32> = BTreeMap::new();
    for end in stack.data.iter().chain(&stack.wal).chain(stack.tablespaces.values()) {
        for below in stack.devices_below(Some(end)) {
            let depth = depths.entry(below.name()).or_insert(below.depth);
            *depth = below.depth.min(*depth);
        }
    }
    for node in &mut stack.nodes {
        for found in &mut node.bases {
            let depth = depths.get(&BaseName::of(&node.name, &found.name));
            if let (Some(device), Some(depth)) = (&mut found.device, depth) {
                device.depth = *depth;
            }
        }
    }
    stack
}

/// The devices found by walking down from every base, each with its name in the graph.
struct FoundDevices<'a> {
    below: &'a DevicesBelow,
    /// The device of a base, or those below it if it is a folder.
    sights: &'a BTreeMap<&'a BaseName, Tops>,
    /// By index in `below`; devices built by the stack have their base's name.
    names: Vec<BaseName>,
    /// By index in `below`: true if the stack built it.
    built: Vec<bool>,
}

impl<'a> FoundDevices<'a> {
    fn new(spec: &StackSpec, bases: &Bases, sights: &'a BTreeMap<&'a BaseName, Tops>, below: &'a DevicesBelow) -> Self {
        let named = below.devices.iter().enumerate().map(|(place, device)| {
            let owner = sights.iter().find(|(name, tops)| {
                tops.devices.contains(&place) && matches!(bases.get(**name), Some(Base::Device(_)))
            });
            match owner {
                Some((name, _)) => ((*name).clone(), true),
                // A kernel name may also be the name of a node: `vda` of the host below a node `vda`.
                None if spec.node(&device.name).is_some() => (BaseName(format!("{}-below", device.name)), false),
                None => (BaseName(device.name.clone()), false),
            }
        });
        let (names, built) = named.unzip();
        FoundDevices { below, sights, names, built }
    }

    /// Inputs of a node: those of the plan, plus those found below its devices and folders.
    fn inputs_of(&self, base: &BaseName, is_device: bool, known: &[Input]) -> Vec<Input> {
        let tops = self.sights.get(base).map_or(&[][..], |tops| &tops.devices);
        let below: Vec<usize> = match is_device {
            true => tops.iter().flat_map(|top| self.below.on[*top].iter().copied()).collect(),
            false => tops.to_vec(),
        };
        let named = below.into_iter().map(|place| (&self.names[place], self.below.roles.get(&place)));
        let new = named.filter(|(name, _)| known.iter().all(|input| input.from != **name));
        let inputs = new.map(|(name, of_pool)| (name.clone(), of_pool.copied().unwrap_or(Role::Data)));
        inputs.map(|(from, role)| Input { from, role, group: None }).collect()
    }

    fn ends_under(&self, place: usize) -> impl Iterator<Item = Promise> {
        self.below.ends.iter().filter(move |end| end.under == Some(place)).map(|end| end.promise.clone())
    }

    /// Devices that existed before the stack.
    fn nodes(&self) -> Vec<NodeFacts> {
        let found = (0..self.names.len()).filter(|place| !self.built[*place]);
        let nodes = found.map(|place| {
            let device = self.below.devices[place].clone();
            let on = self.below.on[place].iter().map(|below| self.names[*below].clone());
            let inputs = on.map(|from| Input { from, role: Role::Data, group: None }).collect();
            let mut promises = promise::of_device_among(&device, &self.below.devices);
            promises.extend(self.ends_under(place));
            let offered = vec![BaseFacts { device: Some(device), ..BaseFacts::default() }];
            NodeFacts { name: self.names[place].0.clone(), inputs, bases: offered, promises, ..NodeFacts::default() }
        });
        nodes.collect()
    }
}

fn of_node(host: &Host, node: &NodeSpec, built: &Built, bases: &Bases, found: &FoundDevices<'_>) -> Result<NodeFacts> {
    let mut inputs = node.inputs.clone();
    let mut promises = built.promises.clone();
    let mut offered = Vec::new();
    let own = bases.iter().filter(|(name, _)| name.node() == node.name);
    for (name, base) in own {
        let mut facts = BaseFacts { name: name.base().to_owned(), ..BaseFacts::default() };
        let is_device = matches!(base, Base::Device(_));
        // A node on nodes of the plan is seen through these; the kernel then shows the same devices below a folder, or,
        // for a pool, none.
        if node.inputs.is_empty() || is_device {
            inputs.extend(found.inputs_of(name, is_device, &inputs));
        }
        match base {
            Base::Device(_) => {
                if let Some(place) = found.sights.get(name).and_then(|tops| tops.devices.first().copied()) {
                    let device = found.below.devices[place].clone();
                    promises.extend(promise::of_device_among(&device, &found.below.devices));
                    promises.extend(found.ends_under(place));
                    facts.device = Some(device);
                }
            }
            Base::Folder(path) => {
                let mount = mount::mount_of(host, path)?;
                promises.extend(promise::of_mount(&mount));
                if node.inputs.is_empty() {
                    let ends = found.sights.get(name).into_iter().flat_map(|tops| &tops.ends);
                    promises.extend(ends.map(|end| end.promise.clone()));
                }
                facts.mount = Some(mount);
            }
            Base::Pool(_) => {}
        }
        offered.push(facts);
    }
    let (name, layer, details) = (node.name.clone(), Some(node.layer.clone()), built.details.clone());
    Ok(NodeFacts { name, layer, details, inputs, bases: offered, promises })
}

/// Bases that the nodes of a stack offer, by name.
pub type Bases = BTreeMap<BaseName, Base>;
/// Facts of a node that do not differ between one building of it and the next: no names and identifiers, no defaults of
/// ZFS, which are many.
pub(super) fn lasting(node: &NodeFacts) -> Vec<(String, String)> {
    let lasts = |name: &str, value: &str| {
        let lower = name.to_lowercase();
        let words = ["uuid", "fsid", "device", "mapping", "holes", "features ", "canmount", "cachefile"];
        let is_name = words.iter().any(|word| lower.contains(word));
        !is_name && !value.contains(folder::PREFIX) && !value.ends_with("(default)")
    };
    let mounts = node.bases.iter().filter_map(|base| base.mount.as_ref());
    let options = mounts.map(|mount| {
        let others = mount.super_options.iter().filter(|option| !mount.options.contains(option));
        let all: Vec<&str> = mount.options.iter().chain(others).map(String::as_str).collect();
        ("mount options".to_owned(), all.join(","))
    });
    let details = node.details.iter().map(|(name, value)| (name.clone(), value.clone()));
    details.filter(|(name, value)| lasts(name, value)).chain(options).collect()
}

//! The tables `[stack.NAME]`: layers, their inputs, and the place of the database.
//!
//! Pipeline: layers as written ([`layer`]) -> named nodes with their options -> inputs ([`wire`]) -> a draft, which the
//! matrix turns into one stack per combination of options. Absent on purpose: what any layer does.

mod age;
mod layer;
mod wire;

pub(super) use age::AGE;
pub(super) use layer::Slot;

use super::limits::{Key, Span};
use super::machine::QUEUE;
use super::names::{self, named_tables};
use super::options::{Axis, Entered, options, read_options};
use super::problem::{Problem, Problems, refuse_unknown, suggestion};
use super::tree::{Node, Pair, Toml, get};
use super::values::Choice;
use super::{Catalogue, CatalogueEntry};
use crate::record::options::{OptionValue, Options};
use crate::record::stack::{BaseKind, BaseName, NodeSpec, StackSpec};
use age::AgeDraft;
use layer::{LayerReader, WrittenLayer};
use std::collections::BTreeMap;
use std::path::Path;
use wire::Wiring;

pub(super) const KEYS: [&str; 10] =
    ["device", "devices", "volume", "filesystem", "directory", "wal", "tablespace", "module", "reuse", AGE];

/// Key of a kernel module's parameters: of a stack, or of the layer in it that has this option.
pub(super) const MODULE: &str = "module";

/// Largest `count` of devices.
const MAX_COUNT: i64 = 64;

/// Base of relative paths: layers accept absolute ones only.
const FOLDER: &str = "/";

#[derive(Clone)]
pub(super) struct StackDraft<'c> {
    /// Its name, with its span.
    pub name: Key,
    /// The stack; its nodes have no options.
    spec: StackSpec,
    /// One for each node of `spec`.
    nodes: Vec<NodeDraft<'c>>,
    /// Knobs of `[machine]` for every device, as far as a device of this stack takes them.
    queue: Vec<Axis>,
    /// The stack that holds `pg_wal`, if named.
    wal_stack: Option<Key>,
    /// Its ageing.
    age: Option<AgeDraft<'c>>,
}

#[derive(Clone)]
struct NodeDraft<'c> {
    place: Span,
    entry: &'c CatalogueEntry,
    axes: Vec<Axis>,
    /// Common name of the devices made by one `count`: they have equal options in every case.
    alike: Option<String>,
}

/// Reads every stack; those with mistakes are left out and reported in `problems`.
pub(super) fn read_stacks<'c>(root: &[Pair], catalogue: &'c Catalogue, problems: &mut Problems) -> Vec<StackDraft<'c>> {
    let tables = named_tables(root, "stack", "[stack.ext4]", problems);
    let all: Vec<&str> = tables.iter().map(|(key, _)| key.text.as_str()).collect();
    let mut stacks = Vec::new();
    for (key, node) in &tables {
        names::check(key, "stack", problems);
        match &node.value {
            Toml::Table(pairs) => {
                let (layers, parts, alike) = (Vec::new(), Vec::new(), BTreeMap::new());
                let written = Parts { stack: key, pairs, all: &all, catalogue, layers, parts, alike, wal_stack: None };
                stacks.extend(written.read(problems));
            }
            _ => problems.add(node.must_be(format!("stack `{}`", key.text), "a table")),
        }
    }
    let whole = stacks.clone();
    for stack in &mut stacks {
        stack.join_wal(&whole, problems);
    }
    stacks
}

/// Passes the knobs of `[machine]` for every device to the stacks; a knob that no device takes is a problem.
pub(super) fn give_queue(stacks: &mut [StackDraft<'_>], queue: &[Axis], problems: &mut Problems) {
    for axis in queue {
        let devices = stacks.iter().flat_map(|stack| &stack.nodes).any(NodeDraft::has_queue);
        // A single value that every device overrides has no effect, but makes no duplicate cases either.
        let mut taken = stacks.is_empty() || (devices && !axis.varies());
        for stack in &mut *stacks {
            if stack.nodes.iter().any(|node| node.takes_knob(axis)) {
                stack.queue.push(axis.clone());
                taken = true;
            }
        }
        if !taken {
            let message = format!("`{}` of [machine] applies to no device of any stack", axis.name);
            let help = "remove it: stacks without a device have no queue, and a device's own knobs take precedence";
            problems.add(Problem::at(&axis.span, message).help(help));
        }
    }
}

/// Role of a layer in its stack.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Device,
    Volume,
    Data,
    Wal,
    Tablespace(Key),
}

/// The layers of a stack as written, in build order, each with its name.
struct Parts<'t, 'c> {
    stack: &'t Key,
    pairs: &'t [Pair],
    /// Names of all stacks.
    all: &'t [&'t str],
    catalogue: &'c Catalogue,
    layers: Vec<WrittenLayer<'t, 'c>>,
    parts: Vec<(Part, Key)>,
    /// Common name of the devices made by one `count`, by index of the layer.
    alike: BTreeMap<usize, String>,
    wal_stack: Option<Key>,
}

impl<'t, 'c> Parts<'t, 'c> {
    fn read(mut self, problems: &mut Problems) -> Option<StackDraft<'c>> {
        let before = problems.len();
        let (name, pairs) = (&self.stack.text, self.pairs);
        refuse_unknown(pairs.iter().map(|(key, _)| key), &KEYS, &format!("stack `{name}`"), problems);
        self.read_devices(problems);
        if let Some((_, node)) = get(pairs, "volume") {
            let items = node.items();
            if items.is_empty() {
                problems.add(Problem::at(&node.span, "`volume` is an empty list").help("remove it"));
            }
            for item in items {
                self.push(Part::Volume, None, self.layer(Slot::Volume, item, problems), problems);
            }
        }
        self.read_filesystem(problems);
        self.read_wal(problems);
        self.read_tablespaces(problems);
        self.read_module(problems);
        let reuse = match get(pairs, "reuse").map(|(_, node)| (&node.value, node)) {
            None => false,
            Some((Toml::Boolean(reuse), _)) => *reuse,
            Some((_, node)) => {
                problems.add(node.must_be(format!("`reuse` of stack `{name}`"), "true or false"));
                false
            }
        };
        let age = age::read(self.stack, pairs, self.catalogue, problems);
        if problems.len() > before {
            return None;
        }
        let draft = self.wired(reuse, problems).map(|draft| StackDraft { age, ..draft });
        (problems.len() == before).then_some(draft?)
    }

    fn layer(&self, slot: Slot, node: &'t Node, problems: &mut Problems) -> Option<WrittenLayer<'t, 'c>> {
        LayerReader { slot, catalogue: self.catalogue, problems }.read(node)
    }

    /// Adds a layer, named `given`, or by its own `name`, or by the layer.
    fn push(&mut self, part: Part, given: Option<&Key>, layer: Option<WrittenLayer<'t, 'c>>, problems: &mut Problems) {
        let Some(layer) = layer else { return };
        let mut name = given.unwrap_or(&layer.key).clone();
        if let Some((_, node)) = layer.wire("name") {
            match node.text() {
                Some(text) => name = Key { text: text.to_owned(), span: node.span.clone() },
                None => problems.add(node.must_be(format!("`name` of `{}`", layer.key.text), "text")),
            }
            names::check(&name, "node", problems);
        }
        self.layers.push(layer);
        self.parts.push((part, name));
    }

    fn read_devices(&mut self, problems: &mut Problems) {
        match (get(self.pairs, "device"), get(self.pairs, "devices")) {
            (Some((one, _)), Some((many, _))) => {
                let message = format!("stack `{}` has both `device` and `devices`", self.stack.text);
                let problem = Problem::at(&many.span, message).also(&one.span, "and this");
                problems.add(problem.help("move all of them under `devices`, each with a name"));
            }
            (Some((_, node)), None) => self.read_device(None, node, problems),
            (None, Some((_, node))) => match &node.value {
                Toml::Table(named) if !named.iter().any(|(key, _)| Slot::Device.has(&key.text, self.catalogue)) => {
                    if named.is_empty() {
                        problems.add(Problem::at(&node.span, "`devices` is empty").help("remove it"));
                    }
                    for (key, node) in named {
                        names::check(key, "device", problems);
                        self.read_device(Some(key), node, problems);
                    }
                }
                _ => self.read_device(None, node, problems),
            },
            (None, None) => {}
        }
    }

    /// Reads one device, or as many equal ones as its `count` says, named `d1`, `d2`, ...
    fn read_device(&mut self, name: Option<&Key>, node: &'t Node, problems: &mut Problems) {
        let Some(first) = self.layer(Slot::Device, node, problems) else { return };
        let count = first.wire("count").map(|(_, node)| (&node.value, node));
        let count = match count {
            None => return self.push(Part::Device, name, Some(first), problems),
            Some((Toml::Integer(count @ 1..=MAX_COUNT), _)) => *count,
            Some((value, node)) => {
                let found = if let Toml::Integer(n) = value { n.to_string() } else { node.noun().to_owned() };
                let message = format!("`count` must be a whole number from 1 to {MAX_COUNT}, found {found}");
                return problems.add(Problem::at(&node.span, message));
            }
        };
        let stem = name.map_or("d", |name| &name.text);
        for number in 1..=count {
            let name = Key { text: format!("{stem}{number}"), span: first.key.span.clone() };
            let layer = self.layer(Slot::Device, node, problems);
            self.alike.insert(self.layers.len(), stem.to_owned());
            self.push(Part::Device, Some(&name), layer, problems);
        }
    }

    fn read_filesystem(&mut self, problems: &mut Problems) {
        let layer = match (get(self.pairs, "filesystem"), get(self.pairs, "directory")) {
            (Some((_, node)), None) => self.layer(Slot::Filesystem, node, problems),
            (None, Some((key, node))) => {
                let mut reader = LayerReader { slot: Slot::Filesystem, catalogue: self.catalogue, problems };
                reader.named(key, Some(node), Vec::new())
            }
            (Some((key, _)), Some((directory, _))) => {
                let message = format!("stack `{}` has both `filesystem` and `directory`", self.stack.text);
                let problem = Problem::at(&directory.span, message).also(&key.span, "and this");
                problems.add(problem.help("`directory` alone uses an existing folder and builds nothing"));
                None
            }
            (None, None) => {
                let message = format!("stack `{}` has no filesystem", self.stack.text);
                let help = "add filesystem = \"NAME\", or directory = \"/PATH\" to use an existing folder";
                problems.add(Problem::at(&self.stack.span, message).help(help));
                None
            }
        };
        if let Some(layer) = layer.as_ref().filter(|layer| layer.entry.takes.is_empty()) {
            for key in ["device", "devices", "volume"] {
                let lone = get(self.pairs, "wal").is_none() && get(self.pairs, "tablespace").is_none();
                if let Some((key, _)) = get(self.pairs, key).filter(|_| lone) {
                    let (name, stack) = (layer.entry.name, &self.stack.text);
                    let message = format!("`{name}` needs no device, so stack `{stack}` cannot have a {}", key.text);
                    let help = format!("remove `{}`", key.text);
                    problems.add(Problem::at(&key.span, message).help(help));
                }
            }
        }
        self.push(Part::Data, None, layer, problems);
    }

    fn read_wal(&mut self, problems: &mut Problems) {
        let Some((key, node)) = get(self.pairs, "wal") else { return };
        let Some(other) = node.text() else {
            if matches!(node.value, Toml::Table(_)) {
                let layer = self.layer(Slot::Filesystem, node, problems);
                return self.push(Part::Wal, Some(key), layer, problems);
            }
            let what = format!("`wal` of stack `{}`", self.stack.text);
            return problems.add(node.must_be(what, "the name of a stack or a layer"));
        };
        if other == self.stack.text {
            let message = format!("`wal` of stack `{}` names the stack itself", self.stack.text);
            problems.add(
                Problem::at(&node.span, message).help("remove it: without `wal`, the WAL is stored with the data"),
            );
        } else if !self.all.contains(&other) {
            let message = format!("`wal` of stack `{}` refers to an unknown stack `{other}`", self.stack.text);
            let problem = Problem::at(&node.span, message);
            problems.add(if Slot::Filesystem.has(other, self.catalogue) {
                problem.help(format!("for a separate filesystem write wal = {{ {other} = {{ on = \"DEVICE\" }} }}"))
            } else {
                problem.help(suggestion(other, self.all.iter().copied().filter(|name| *name != self.stack.text)))
            });
        }
        self.wal_stack = Some(Key { text: other.to_owned(), span: node.span.clone() });
    }

    fn read_tablespaces(&mut self, problems: &mut Problems) {
        let Some((_, node)) = get(self.pairs, "tablespace") else { return };
        const HELP: &str = "write tablespace = { NAME = { ext4 = { on = \"DEVICE\" } } }";
        let what = format!("`tablespace` of stack `{}`", self.stack.text);
        let Some(named) = node.table(what, HELP, problems) else { return };
        for (key, node) in named {
            names::check(key, "tablespace", problems);
            if key.text.starts_with("pg_") || key.text.contains('-') {
                let message = format!("`{}` is not a valid tablespace name", key.text);
                problems.add(
                    Problem::at(&key.span, message)
                        .help("PostgreSQL reserves names that start with pg_, and a name with - needs quotes"),
                );
            }
            let layer = self.layer(Slot::Filesystem, node, problems);
            self.push(Part::Tablespace(key.clone()), Some(key), layer, problems);
        }
    }

    /// Passes the parameters of a kernel module to the first layer that has them as an option.
    fn read_module(&mut self, problems: &mut Problems) {
        let Some(pair) = self.pairs.iter().find(|(key, _)| key.text == MODULE) else { return };
        let Some(layer) = self.layers.iter_mut().find(|layer| layer.entry.option(MODULE).is_some()) else {
            let message = format!("no layer of stack `{}` has parameters of a kernel module", self.stack.text);
            return problems.add(Problem::at(&pair.0.span, message).help("`zpool` has: those of ZFS"));
        };
        if let Some((first, _)) = layer.options.iter().find(|(key, _)| key.text == MODULE) {
            let message = format!("`{MODULE}` of stack `{}` is also given for `{}`", self.stack.text, layer.key.text);
            return problems.add(Problem::at(&pair.0.span, message).also(&first.span, "here"));
        }
        layer.options.push(pair);
    }

    /// Names the nodes, devices and volumes first, so that a filesystem yields its name to them.
    fn name_nodes(&self, problems: &mut Problems) -> Vec<String> {
        let mut taken: Vec<(String, Span)> = Vec::new();
        for (part, key) in &self.parts {
            let clash = taken.iter().find(|(name, _)| *name == key.text);
            if let (Part::Device, Some((_, first))) = (part, clash) {
                let message = format!("two devices are named `{}`", key.text);
                problems.add(Problem::at(&key.span, message).also(first, "first here"));
            }
            let second = match part {
                Part::Data => Some(format!("{}-data", key.text)),
                Part::Wal => Some("wal-files".to_owned()),
                Part::Device | Part::Volume | Part::Tablespace(_) => None,
            };
            let numbered = (2..).map(|number| format!("{}{number}", key.text));
            let mut names = std::iter::once(key.text.clone()).chain(second).chain(numbered);
            let free = names.find(|name| *part == Part::Device || taken.iter().all(|(other, _)| other != name));
            taken.push((free.unwrap_or_default(), key.span.clone()));
        }
        taken.into_iter().map(|(name, _)| name).collect()
    }

    fn wired(self, reuse: bool, problems: &mut Problems) -> Option<StackDraft<'c>> {
        let before = problems.len();
        let names = self.name_nodes(problems);
        let mut wiring = Wiring::new(&self.stack.text, &self.layers, &names);
        let mut nodes: Vec<NodeDraft<'c>> = Vec::new();
        let mut spec = StackSpec { name: self.stack.text.clone(), reuse, ..StackSpec::default() };
        spec.wal_stack = self.wal_stack.as_ref().map(|key| key.text.clone());
        let mut data = None;
        for (at, ((written, (part, _)), name)) in self.layers.iter().zip(&self.parts).zip(names).enumerate() {
            let alike = self.alike.get(&at).cloned();
            let inputs = wiring.inputs(&name, written, problems);
            let entered = Entered {
                entry: written.entry,
                what: format!("layer `{}`", written.entry.name),
                prefix: Some(alike.as_ref().unwrap_or(&name)),
                place: written.key.span.clone(),
                main: written.main,
                pairs: written.options.clone(),
                folder: Path::new(FOLDER),
            };
            let axes = read_options(&entered, problems)?;
            let node = NodeDraft { place: entered.place, entry: written.entry, axes, alike };
            let first: Vec<&Choice> = node.axes.iter().filter_map(|axis| axis.choices.first()).collect();
            let bases = (node.entry.bases)(&node.options(&first));
            let base = BaseName::of(&name, bases.first().map_or("", String::as_str));
            wiring.offer(&name, &node, bases);
            match part {
                Part::Device | Part::Volume => {}
                Part::Data => data = Some(base),
                Part::Wal => spec.wal = Some(base),
                Part::Tablespace(key) => drop(spec.tablespaces.insert(key.text.clone(), base)),
            }
            let layer = node.entry.name.to_owned();
            spec.nodes.push(NodeSpec { name, layer, options: Options::default(), inputs });
            nodes.push(node);
        }
        let ends: Vec<&BaseName> = data.iter().chain(&spec.wal).chain(spec.tablespaces.values()).collect();
        if problems.len() == before {
            wiring.refuse_unused(&ends, problems);
        }
        spec.data = data?;
        let (name, wal_stack) = (self.stack.clone(), self.wal_stack);
        Some(StackDraft { name, spec, nodes, queue: Vec::new(), wal_stack, age: None })
    }
}

impl NodeDraft<'_> {
    fn has_queue(&self) -> bool {
        self.entry.option(QUEUE).is_some()
    }

    /// True for a device that takes a knob of `[machine]` and does not set it itself.
    fn takes_knob(&self, knob: &Axis) -> bool {
        self.has_queue() && self.axes.iter().all(|axis| axis.option != knob.option)
    }

    fn options(&self, chosen: &[&Choice]) -> Options {
        options(self.entry, Path::new(FOLDER), &self.axes, chosen)
    }
}

impl<'c> StackDraft<'c> {
    /// Adds the nodes of the stack that holds `pg_wal`.
    fn join_wal(&mut self, all: &[StackDraft<'c>], problems: &mut Problems) {
        let Some(key) = &self.wal_stack else { return };
        let Some(other) = all.iter().find(|other| other.name.text == key.text) else { return };
        if other.spec.reuse != self.spec.reuse {
            let (own, theirs) = (&self.name.text, &other.name.text);
            let message = format!("`reuse` differs between stack `{own}` and `{theirs}`, which holds its WAL");
            let problem = Problem::at(&key.span, message).also(&other.name.span, "the other one");
            return problems.add(problem.help("set both to the same value: they age together or not at all"));
        }
        let theirs = other.part(StackSpec::data_alone);
        for (mut node, mut spec) in theirs.nodes.into_iter().zip(theirs.spec.nodes) {
            spec.name = other.elsewhere(&spec.name);
            for input in &mut spec.inputs {
                input.from = other.base_elsewhere(&input.from);
            }
            node.axes.iter_mut().for_each(|axis| axis.name = other.elsewhere(&axis.name));
            node.alike = node.alike.map(|alike| other.elsewhere(&alike));
            if let Some(at) = self.spec.nodes.iter().position(|own| own.name == spec.name) {
                let message = format!("`{}` is also the name of a node of `wal = \"{}\"`", spec.name, key.text);
                let problem = Problem::at(&self.nodes[at].place, message).also(&key.span, "the WAL's stack");
                return problems.add(problem.help("rename the device or volume"));
            }
            self.spec.nodes.push(spec);
            self.nodes.push(node);
        }
        self.spec.wal = Some(other.base_elsewhere(&other.spec.data));
    }

    /// The name of a node or axis in another stack, whose WAL this one holds.
    fn elsewhere(&self, name: &str) -> String {
        format!("{}-{name}", self.name.text)
    }

    fn base_elsewhere(&self, base: &BaseName) -> BaseName {
        BaseName::of(&self.elsewhere(base.node()), base.base())
    }

    /// The same with only the base that holds `pg_wal`, for a workload without a server.
    pub fn wal_alone(&self) -> StackDraft<'c> {
        self.part(StackSpec::wal_alone)
    }

    fn part(&self, part: fn(&StackSpec) -> StackSpec) -> StackDraft<'c> {
        let spec = part(&self.spec);
        let kept = self.nodes.iter().zip(&self.spec.nodes).filter(|(_, node)| spec.node(&node.name).is_some());
        let nodes: Vec<NodeDraft<'c>> = kept.map(|(node, _)| node.clone()).collect();
        let queue = self.queue.iter().filter(|knob| nodes.iter().any(|node| node.takes_knob(knob))).cloned().collect();
        StackDraft { spec, nodes, queue, wal_stack: None, ..self.clone() }
    }

    /// Nodes that have a choice of their own; of equal devices, only the first.
    fn choosers(&self) -> impl Iterator<Item = &NodeDraft<'c>> {
        let choosers = self.nodes.iter().enumerate().filter(move |(at, node)| {
            node.alike.is_none() || self.nodes[..*at].iter().all(|earlier| earlier.alike != node.alike)
        });
        choosers.map(|(_, node)| node)
    }

    /// The options of all nodes, the knobs for every device, the options of `age`.
    pub fn axes(&self) -> Vec<Axis> {
        let age = self.age.iter().flat_map(|age| &age.axes);
        self.choosers().flat_map(|node| &node.axes).chain(&self.queue).chain(age).cloned().collect()
    }

    /// Options of `age`, given one choice per axis.
    pub fn age(&self, chosen: &[&Choice]) -> Options {
        self.age.as_ref().map(|age| age.options(chosen)).unwrap_or_default()
    }

    /// The same without the options of `age` that need a cluster.
    pub fn age_without(mut self, of_clusters: &[&str]) -> StackDraft<'c> {
        if let Some(age) = &mut self.age {
            age.drop(of_clusters);
        }
        self
    }

    /// The stack, given one choice per axis.
    pub fn spec(&self, chosen: &[&Choice]) -> StackSpec {
        let mut left = chosen;
        let mut of_alike: BTreeMap<&str, &[&Choice]> = BTreeMap::new();
        let mut spec = self.spec.clone();
        for (node, into) in self.nodes.iter().zip(&mut spec.nodes) {
            let known = node.alike.as_deref().and_then(|alike| of_alike.get(alike).copied());
            let own = known.unwrap_or_else(|| {
                let (own, rest) = left.split_at(node.axes.len().min(left.len()));
                left = rest;
                own
            });
            of_alike.extend(node.alike.as_deref().map(|alike| (alike, own)));
            into.options = node.options(own);
        }
        for (knob, choice) in self.queue.iter().zip(left) {
            let takers = self.nodes.iter().zip(&mut spec.nodes).filter(|(draft, _)| draft.takes_knob(knob));
            for (_, node) in takers {
                let mut queue = node.options.table(QUEUE);
                queue.set(knob.option.1.as_deref().unwrap_or_default(), choice.value.clone());
                node.options.set(QUEUE, OptionValue::Map(queue.0));
            }
        }
        spec
    }
}

/// True for a layer that needs nothing below.
pub(super) fn stands_alone(entry: &CatalogueEntry) -> bool {
    entry.takes.is_empty() && entry.offers == BaseKind::Folder
}

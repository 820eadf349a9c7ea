//! The tables `[stack.NAME]`: layers bottom-up, and how a layer is written.
//!
//! A layer is `"name"`, or `{ name = VALUE, option = ... }` where VALUE is the layer's first option, or
//! `{ name = { option = ... } }`. Absent on purpose: what any layer does.

use super::names::{self, named_tables};
use super::options::{Lists, Written, options, read_options};
use super::problem::{Problem, Problems, nearest, refuse_unknown, suggestion};
use super::tree::{Key, Node, Pair, Span, Value, get};
use super::{Catalogue, Entry};
use crate::record::case::{LayerSpec, StackSpec};
use std::path::Path;

/// Keys of a stack.
pub(super) const KEYS: [&str; 6] = ["device", "volume", "filesystem", "directory", "wal", "reuse"];

/// A stack that has been read.
#[derive(Debug, Clone)]
pub(super) struct StackDraft {
    /// The stack.
    pub spec: StackSpec,
    /// Name of the stack that holds `pg_wal`, where that is another one.
    pub wal: Option<String>,
}

/// Where a layer is written, which says what layers may stand there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Device,
    Volume,
    Filesystem,
}

impl Slot {
    const ALL: [Slot; 3] = [Slot::Device, Slot::Volume, Slot::Filesystem];

    fn entries(self, catalogue: &Catalogue) -> &[Entry] {
        match self {
            Slot::Device => &catalogue.devices,
            Slot::Volume => &catalogue.volumes,
            Slot::Filesystem => &catalogue.filesystems,
        }
    }

    fn key(self) -> &'static str {
        match self {
            Slot::Device => "device",
            Slot::Volume => "volume",
            Slot::Filesystem => "filesystem",
        }
    }
}

/// Reads every stack; those with mistakes are left out and told in `problems`.
pub(super) fn read_stacks(root: &[Pair], catalogue: &Catalogue, problems: &mut Problems) -> Vec<StackDraft> {
    let tables = named_tables(root, "stack", "[stack.ext4]", problems);
    let all: Vec<&str> = tables.iter().map(|(key, _)| key.text.as_str()).collect();
    let mut stacks = Vec::new();
    for (key, node) in &tables {
        names::check(key, "stack", problems);
        match &node.value {
            Value::Table(pairs) => stacks.extend(read_stack(key, pairs, &all, catalogue, problems)),
            _ => {
                let message = format!("stack `{}` wants a table, found {}", key.text, node.noun());
                problems.add(Problem::at(node.span.clone(), message));
            }
        }
    }
    stacks
}

fn read_stack(
    name: &Key,
    pairs: &[Pair],
    all: &[&str],
    catalogue: &Catalogue,
    problems: &mut Problems,
) -> Option<StackDraft> {
    let before = problems.len();
    let place = format!("stack `{}`", name.text);
    refuse_unknown(pairs.iter().map(|(key, _)| key), &KEYS, &place, problems);
    let mut layers = Vec::new();
    if let Some((_, node)) = get(pairs, "device") {
        layers.extend(read_layer(Slot::Device, node, catalogue, problems));
    }
    if let Some((_, node)) = get(pairs, "volume") {
        layers.extend(read_volumes(node, catalogue, problems));
    }
    let filesystem = read_filesystem(name, pairs, catalogue, problems);
    check_ground(name, pairs, filesystem.as_ref(), catalogue, problems);
    layers.extend(filesystem);
    let wal = read_wal(name, pairs, all, problems);
    let reuse = match get(pairs, "reuse").map(|(_, node)| node) {
        None => false,
        Some(Node { value: Value::Boolean(reuse), .. }) => *reuse,
        Some(node) => {
            let message = format!("`reuse` of {place} wants true or false, found {}", node.noun());
            problems.add(Problem::at(node.span.clone(), message));
            false
        }
    };
    let spec = StackSpec { name: name.text.clone(), layers, reuse };
    (problems.len() == before).then_some(StackDraft { spec, wal })
}

fn read_volumes(node: &Node, catalogue: &Catalogue, problems: &mut Problems) -> Vec<LayerSpec> {
    match &node.value {
        Value::List(items) if items.is_empty() => {
            problems.add(Problem::at(node.span.clone(), "`volume` is an empty list").help("leave it out"));
            Vec::new()
        }
        Value::List(items) => {
            items.iter().filter_map(|item| read_layer(Slot::Volume, item, catalogue, problems)).collect()
        }
        _ => {
            let message = format!("`volume` wants a list of layers, the lowest first, found {}", node.noun());
            problems.add(Problem::at(node.span.clone(), message).help("put it into brackets: volume = [ ... ]"));
            Vec::new()
        }
    }
}

fn read_filesystem(name: &Key, pairs: &[Pair], catalogue: &Catalogue, problems: &mut Problems) -> Option<LayerSpec> {
    match (get(pairs, "filesystem"), get(pairs, "directory")) {
        (Some((_, node)), None) => read_layer(Slot::Filesystem, node, catalogue, problems),
        (None, Some((key, node))) => {
            let entry = find(Slot::Filesystem, key, catalogue, problems)?;
            finish_layer(entry, key, Some(node), Vec::new(), problems)
        }
        (Some((key, _)), Some((directory, _))) => {
            let message = format!("stack `{}` has both `filesystem` and `directory`", name.text);
            let problem = Problem::at(directory.span.clone(), message).also(key.span.clone(), "and this");
            problems.add(problem.help("`directory` alone means: use what is there, build nothing"));
            None
        }
        (None, None) => {
            let message = format!("stack `{}` has no filesystem", name.text);
            let help = "add filesystem = \"NAME\", or directory = \"/PATH\" to use what is there";
            problems.add(Problem::at(name.span.clone(), message).help(help));
            None
        }
    }
}

/// A filesystem stands on a device, a folder on nothing.
fn check_ground(
    name: &Key,
    pairs: &[Pair],
    filesystem: Option<&LayerSpec>,
    catalogue: &Catalogue,
    problems: &mut Problems,
) {
    let device = get(pairs, "device");
    let below: Vec<&Pair> = device.into_iter().chain(get(pairs, "volume")).collect();
    let Some(filesystem) = filesystem else { return };
    if catalogue.folders.contains(&filesystem.layer.as_str()) {
        for (key, _) in below {
            let message = format!(
                "`{}` stands on nothing, so stack `{}` has no use for a {}",
                filesystem.layer, name.text, key.text
            );
            problems.add(Problem::at(key.span.clone(), message).help(format!("leave out `{}`", key.text)));
        }
    } else if device.is_none() {
        let message = format!("`{}` needs a device, and stack `{}` has none", filesystem.layer, name.text);
        let known: Vec<String> = catalogue.devices.iter().map(|entry| format!("`{}`", entry.name)).collect();
        let help = format!("add device = {{ ... }}; known: {}", known.join(", "));
        problems.add(Problem::at(name.span.clone(), message).help(help));
    }
}

fn read_wal(name: &Key, pairs: &[Pair], all: &[&str], problems: &mut Problems) -> Option<String> {
    let (_, node) = get(pairs, "wal")?;
    let Some(wal) = node.text() else {
        let message = format!("`wal` of stack `{}` wants the name of a stack, found {}", name.text, node.noun());
        problems.add(Problem::at(node.span.clone(), message));
        return None;
    };
    let others = || all.iter().copied().filter(|other| *other != name.text);
    if wal == name.text {
        let message = format!("`wal` of stack `{}` names the stack itself", name.text);
        problems.add(Problem::at(node.span.clone(), message).help("leave it out: the WAL is with the data then"));
    } else if !all.contains(&wal) {
        let message = format!("`wal` of stack `{}` names the unknown stack `{wal}`", name.text);
        problems.add(Problem::at(node.span.clone(), message).help(suggestion(wal, others())));
    }
    Some(wal.to_owned())
}

/// Reads one layer in any of its three spellings.
fn read_layer(slot: Slot, node: &Node, catalogue: &Catalogue, problems: &mut Problems) -> Option<LayerSpec> {
    match &node.value {
        Value::Text(name) => {
            let key = Key { text: name.clone(), span: node.span.clone() };
            let entry = find(slot, &key, catalogue, problems)?;
            finish_layer(entry, &key, None, Vec::new(), problems)
        }
        Value::Table(pairs) => {
            let (key, value) = layer_key(slot, node, pairs, catalogue, problems)?;
            let entry = find(slot, key, catalogue, problems)?;
            let siblings: Vec<&Pair> = pairs.iter().filter(|(other, _)| other.text != key.text).collect();
            match &value.value {
                Value::Table(inner) if siblings.is_empty() => {
                    finish_layer(entry, key, None, inner.iter().collect(), problems)
                }
                Value::Table(_) => {
                    let message = format!("options of `{}` stand inside its table and beside it", key.text);
                    let problem = Problem::at(siblings[0].0.span.clone(), message);
                    problems.add(problem.also(value.span.clone(), "its table").help("put all of them inside"));
                    None
                }
                _ => finish_layer(entry, key, Some(value), siblings, problems),
            }
        }
        _ => {
            let message = format!("`{}` wants a layer, found {}", slot.key(), node.noun());
            problems.add(Problem::at(node.span.clone(), message).help(spellings(slot, catalogue)));
            None
        }
    }
}

/// Which of a layer's keys is its name: the first that is one, else the first.
fn layer_key<'a>(
    slot: Slot,
    node: &Node,
    pairs: &'a [Pair],
    catalogue: &Catalogue,
    problems: &mut Problems,
) -> Option<&'a Pair> {
    let is_layer = |key: &Key| slot.entries(catalogue).iter().any(|entry| entry.name == key.text);
    let found = pairs.iter().find(|(key, _)| is_layer(key));
    if let Some((first, _)) = found {
        let options: &[_] = slot.entries(catalogue).iter().find(|entry| entry.name == first.text)?.options;
        let stranger = |key: &Key| key.text != first.text && !options.iter().any(|spec| spec.key == key.text);
        if let Some((second, _)) = pairs.iter().find(|(key, _)| is_layer(key) && stranger(key)) {
            let message = format!("`{}` and `{}` are two layers where one belongs", first.text, second.text);
            let problem = Problem::at(second.span.clone(), message).also(first.span.clone(), "the other one");
            problems.add(problem.help("to compare them, write a stack for each"));
            return None;
        }
    } else if pairs.is_empty() {
        let problem = Problem::at(node.span.clone(), format!("`{}` names no layer", slot.key()));
        problems.add(problem.help(spellings(slot, catalogue)));
    }
    found.or_else(|| pairs.first())
}

fn find<'c>(slot: Slot, name: &Key, catalogue: &'c Catalogue, problems: &mut Problems) -> Option<&'c Entry> {
    let entries = slot.entries(catalogue);
    if let Some(entry) = entries.iter().find(|entry| entry.name == name.text) {
        return Some(entry);
    }
    let elsewhere = |other: Slot| other.entries(catalogue).iter().any(|entry| entry.name == name.text);
    let problem = Problem::at(name.span.clone(), format!("unknown {} `{}`", slot.key(), name.text));
    let known = || entries.iter().map(|entry| entry.name);
    let everywhere = Slot::ALL.into_iter().filter(|other| *other != slot);
    problems.add(match Slot::ALL.into_iter().find(|other| elsewhere(*other)) {
        Some(other) => problem.help(format!("`{}` belongs under `{}`", name.text, other.key())),
        None if nearest(&name.text, known()).is_some() => problem.help(suggestion(&name.text, known())),
        None => match everywhere.flat_map(|other| hint_elsewhere(other, name, catalogue)).next() {
            Some(hint) => problem.help(hint),
            None => problem.help(suggestion(&name.text, known())),
        },
    });
    None
}

fn hint_elsewhere(slot: Slot, name: &Key, catalogue: &Catalogue) -> Option<String> {
    let near = nearest(&name.text, slot.entries(catalogue).iter().map(|entry| entry.name))?;
    Some(format!("did you mean `{near}`? it belongs under `{}`", slot.key()))
}

fn finish_layer(
    entry: &Entry,
    name: &Key,
    main: Option<&Node>,
    pairs: Vec<&Pair>,
    problems: &mut Problems,
) -> Option<LayerSpec> {
    let place: Span = name.span.clone();
    // Layers take absolute paths only.
    let folder = Path::new("/");
    let written = Written { entry, what: format!("layer `{}`", entry.name), place, main, pairs, folder };
    let axes = read_options(&written, Lists::AreRefused, problems)?;
    let single: Vec<_> = axes.iter().flat_map(|axis| axis.choices.first()).collect();
    Some(LayerSpec { layer: entry.name.to_owned(), options: options(entry, folder, &axes, &single) })
}

fn spellings(slot: Slot, catalogue: &Catalogue) -> String {
    let known: Vec<String> = slot.entries(catalogue).iter().map(|entry| format!("`{}`", entry.name)).collect();
    format!("write \"NAME\" or {{ NAME = VALUE, option = ... }}; known: {}", known.join(", "))
}

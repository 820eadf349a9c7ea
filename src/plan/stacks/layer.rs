//! Spellings of a layer: `"name"`, or `{ name = VALUE, option = ... }` where VALUE is the layer's first option, or
//! `{ name = { option = ... } }`; and which of its keys name its inputs.

use crate::plan::limits::Key;
use crate::plan::problem::{Problem, Problems, did_you_mean, nearest, suggestion};
use crate::plan::tree::{Node, Pair, Value};
use crate::plan::{Catalogue, CatalogueEntry};
use crate::record::stack::BaseKind;

/// Place of a layer in the plan, which determines the layers allowed there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Slot {
    Device,
    Volume,
    Filesystem,
}

impl Slot {
    const ALL: [Slot; 3] = [Slot::Device, Slot::Volume, Slot::Filesystem];

    /// Slot of a layer, from its inputs and what it offers.
    pub fn of(entry: &CatalogueEntry) -> Slot {
        match (entry.offers, entry.takes.is_empty()) {
            (BaseKind::Folder, _) => Slot::Filesystem,
            (BaseKind::Device, true) => Slot::Device,
            (BaseKind::Device | BaseKind::Pool, _) => Slot::Volume,
        }
    }

    pub fn entries(self, catalogue: &Catalogue) -> impl Iterator<Item = &CatalogueEntry> {
        catalogue.layers.iter().filter(move |entry| Slot::of(entry) == self)
    }

    pub fn has(self, name: &str, catalogue: &Catalogue) -> bool {
        self.entries(catalogue).any(|entry| entry.name == name)
    }

    pub fn key(self) -> &'static str {
        match self {
            Slot::Device => "device",
            Slot::Volume => "volume",
            Slot::Filesystem => "filesystem",
        }
    }

    /// Keys that any layer in this slot may have beside its options and inputs.
    fn own_keys(self) -> &'static [&'static str] {
        match self {
            Slot::Device => &["count"],
            Slot::Volume => &["name"],
            Slot::Filesystem => &[],
        }
    }
}

/// A layer as written in the plan.
pub(super) struct WrittenLayer<'t, 'c> {
    pub slot: Slot,
    pub entry: &'c CatalogueEntry,
    /// The layer's name.
    pub key: Key,
    /// The value of the layer's own key, which is its first option.
    pub main: Option<&'t Node>,
    pub options: Vec<&'t Pair>,
    /// Keys that name its inputs, and the keys of its slot.
    pub wiring: Vec<&'t Pair>,
}

impl<'t, 'c> WrittenLayer<'t, 'c> {
    fn new(
        slot: Slot,
        entry: &'c CatalogueEntry,
        key: &Key,
        main: Option<&'t Node>,
        pairs: Vec<&'t Pair>,
    ) -> Option<WrittenLayer<'t, 'c>> {
        let (wiring, options) = pairs.into_iter().partition(|(key, _)| {
            entry.takes.iter().any(|take| take.key == key.text) || slot.own_keys().contains(&key.text.as_str())
        });
        Some(WrittenLayer { slot, entry, key: key.clone(), main, options, wiring })
    }

    /// One of [`WrittenLayer::wiring`].
    pub fn wire(&self, key: &str) -> Option<&'t Pair> {
        self.wiring.iter().copied().find(|(known, _)| known.text == key)
    }
}

/// An existing folder, given by its own key of the stack.
pub(super) fn by_key<'t, 'c>(
    key: &Key,
    value: &'t Node,
    catalogue: &'c Catalogue,
    problems: &mut Problems,
) -> Option<WrittenLayer<'t, 'c>> {
    let entry = find(Slot::Filesystem, key, catalogue, problems)?;
    WrittenLayer::new(Slot::Filesystem, entry, key, Some(value), Vec::new())
}

/// Reads one layer in any of its three spellings.
pub(super) fn read<'t, 'c>(
    slot: Slot,
    node: &'t Node,
    catalogue: &'c Catalogue,
    problems: &mut Problems,
) -> Option<WrittenLayer<'t, 'c>> {
    match &node.value {
        Value::Text(name) => {
            let key = Key { text: name.clone(), span: node.span.clone() };
            let entry = find(slot, &key, catalogue, problems)?;
            WrittenLayer::new(slot, entry, &key, None, Vec::new())
        }
        Value::Table(pairs) => {
            let (key, value) = layer_key(slot, node, pairs, catalogue, problems)?;
            let entry = find(slot, key, catalogue, problems)?;
            let siblings: Vec<&Pair> = pairs.iter().filter(|(other, _)| other.text != key.text).collect();
            let only_own = siblings.iter().all(|(key, _)| slot.own_keys().contains(&key.text.as_str()));
            match &value.value {
                Value::Table(inner) if only_own => {
                    WrittenLayer::new(slot, entry, key, None, inner.iter().chain(siblings).collect())
                }
                Value::Table(_) => {
                    let message = format!("options of `{}` are given both inside its table and next to it", key.text);
                    let problem = Problem::at(&siblings[0].0.span, message);
                    problems.add(problem.also(&value.span, "its table").help("move all of them inside"));
                    None
                }
                _ => WrittenLayer::new(slot, entry, key, Some(value), siblings),
            }
        }
        _ => {
            let message = format!("`{}` must be a layer, found {}", slot.key(), node.noun());
            problems.add(Problem::at(&node.span, message).help(spellings(slot, catalogue)));
            None
        }
    }
}

/// The layer's key that is its name: the first that is a known one, else the first.
fn layer_key<'a>(
    slot: Slot,
    node: &Node,
    pairs: &'a [Pair],
    catalogue: &Catalogue,
    problems: &mut Problems,
) -> Option<&'a Pair> {
    let found = pairs.iter().find(|(key, _)| slot.has(&key.text, catalogue));
    if let Some((first, _)) = found {
        let entry = slot.entries(catalogue).find(|entry| entry.name == first.text)?;
        let mut others = pairs.iter().filter(|(key, _)| key.text != first.text && slot.has(&key.text, catalogue));
        let second = others
            .find(|(key, _)| entry.option(&key.text).is_none() && entry.takes.iter().all(|take| take.key != key.text));
        if let Some((second, _)) = second {
            let message = format!("`{}` and `{}`: two layers where only one is allowed", first.text, second.text);
            let problem = Problem::at(&second.span, message).also(&first.span, "the other one");
            problems.add(problem.help("to compare them, write a stack for each"));
            return None;
        }
    } else if pairs.is_empty() {
        let problem = Problem::at(&node.span, format!("`{}` does not name a layer", slot.key()));
        problems.add(problem.help(spellings(slot, catalogue)));
    }
    found.or_else(|| pairs.first())
}

fn find<'c>(slot: Slot, name: &Key, catalogue: &'c Catalogue, problems: &mut Problems) -> Option<&'c CatalogueEntry> {
    if let Some(entry) = slot.entries(catalogue).find(|entry| entry.name == name.text) {
        return Some(entry);
    }
    let problem = Problem::at(&name.span, format!("unknown {} `{}`", slot.key(), name.text));
    let names: Vec<&str> = slot.entries(catalogue).map(|entry| entry.name).collect();
    let mut everywhere = Slot::ALL.into_iter().filter(|other| *other != slot);
    problems.add(match everywhere.clone().find(|other| other.has(&name.text, catalogue)) {
        Some(other) => problem.help(format!("`{}` belongs under `{}`", name.text, other.key())),
        None if not_yet(&name.text).is_some() => problem.help(not_yet(&name.text).unwrap_or_default()),
        None if !nearest(&name.text, names.iter().copied()).is_empty() => problem.help(suggestion(&name.text, names)),
        None => match everywhere.find_map(|other| hint_elsewhere(other, name, catalogue)) {
            Some(hint) => problem.help(hint),
            None => problem.help(suggestion(&name.text, names)),
        },
    });
    None
}

/// Layers that people look for and that do not exist yet, so that no other word is suggested.
const NOT_YET: &[(&str, &str)] =
    &[("ntfs", "NTFS"), ("nfs", "NFS"), ("overlay", "overlayfs"), ("multipath", "multipath")];

fn not_yet(name: &str) -> Option<String> {
    let (_, trade_name) = NOT_YET.iter().find(|(word, _)| word.eq_ignore_ascii_case(name))?;
    Some(format!(
        "{trade_name} is not supported yet; set it up yourself and name a folder on it: directory = \"/FOLDER\""
    ))
}

fn hint_elsewhere(slot: Slot, name: &Key, catalogue: &Catalogue) -> Option<String> {
    let question = did_you_mean(&name.text, slot.entries(catalogue).map(|entry| entry.name))?;
    Some(format!("{question} it belongs under `{}`", slot.key()))
}

fn spellings(slot: Slot, catalogue: &Catalogue) -> String {
    let known: Vec<String> = slot.entries(catalogue).map(|entry| format!("`{}`", entry.name)).collect();
    format!("write \"NAME\" or {{ NAME = VALUE, option = ... }}; known: {}", known.join(", "))
}

//! Spellings of a layer: `"name"`, or `{ name = VALUE, option = ... }` where VALUE is the layer's first option, or
//! `{ name = { option = ... } }`; and which of its keys name its inputs.

use crate::plan::limits::Key;
use crate::plan::problem::{Problem, Problems, did_you_mean, nearest, suggestion};
use crate::plan::tree::{Node, Pair, Toml};
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

impl<'t> WrittenLayer<'t, '_> {
    /// One of [`WrittenLayer::wiring`].
    pub fn wire(&self, key: &str) -> Option<&'t Pair> {
        self.wiring.iter().copied().find(|(wire, _)| wire.text == key)
    }
}

/// Reads the layers of one place in the plan.
pub(super) struct LayerReader<'p, 'c> {
    pub slot: Slot,
    pub catalogue: &'c Catalogue,
    pub problems: &'p mut Problems,
}

impl<'c> LayerReader<'_, 'c> {
    /// A layer with this name, the value of its own key, and keys beside or below it.
    pub fn named<'t>(
        &mut self,
        key: &Key,
        main: Option<&'t Node>,
        pairs: Vec<&'t Pair>,
    ) -> Option<WrittenLayer<'t, 'c>> {
        let (slot, entry) = (self.slot, self.find(key)?);
        let (wiring, options) = pairs.into_iter().partition(|(key, _)| {
            entry.takes.iter().any(|take| take.key == key.text) || slot.own_keys().contains(&key.text.as_str())
        });
        Some(WrittenLayer { slot, entry, key: key.clone(), main, options, wiring })
    }

    /// Reads one layer in any of its three spellings.
    pub fn read<'t>(&mut self, node: &'t Node) -> Option<WrittenLayer<'t, 'c>> {
        match &node.value {
            Toml::Text(name) => self.named(&Key { text: name.clone(), span: node.span.clone() }, None, Vec::new()),
            Toml::Table(pairs) => {
                let (key, value) = self.layer_key(node, pairs)?;
                let siblings: Vec<&Pair> = pairs.iter().filter(|(other, _)| other.text != key.text).collect();
                let only_own = siblings.iter().all(|(key, _)| self.slot.own_keys().contains(&key.text.as_str()));
                match &value.value {
                    Toml::Table(inner) if only_own => self.named(key, None, inner.iter().chain(siblings).collect()),
                    Toml::Table(_) => {
                        self.find(key)?;
                        let message =
                            format!("options of `{}` are given both inside its table and next to it", key.text);
                        let problem = Problem::at(&siblings[0].0.span, message);
                        self.problems.add(problem.also(&value.span, "its table").help("move all of them inside"));
                        None
                    }
                    _ => self.named(key, Some(value), siblings),
                }
            }
            _ => {
                let problem = node.must_be(format!("`{}`", self.slot.key()), "a layer");
                self.problems.add(problem.help(spellings(self.slot, self.catalogue)));
                None
            }
        }
    }

    /// The layer's key that is its name: the first that is a known one, else the first.
    fn layer_key<'t>(&mut self, node: &Node, pairs: &'t [Pair]) -> Option<&'t Pair> {
        let (slot, catalogue) = (self.slot, self.catalogue);
        let found = pairs.iter().find(|(key, _)| slot.has(&key.text, catalogue));
        if let Some((first, _)) = found {
            let entry = slot.entries(catalogue).find(|entry| entry.name == first.text)?;
            let mut others = pairs.iter().filter(|(key, _)| key.text != first.text && slot.has(&key.text, catalogue));
            let second = others.find(|(key, _)| {
                entry.option(&key.text).is_none() && entry.takes.iter().all(|take| take.key != key.text)
            });
            if let Some((second, _)) = second {
                let message = format!("`{}` and `{}`: two layers where only one is allowed", first.text, second.text);
                let problem = Problem::at(&second.span, message).also(&first.span, "the other one");
                self.problems.add(problem.help("to compare them, write a stack for each"));
                return None;
            }
        } else if pairs.is_empty() {
            let problem = Problem::at(&node.span, format!("`{}` does not name a layer", slot.key()));
            self.problems.add(problem.help(spellings(slot, catalogue)));
        }
        found.or_else(|| pairs.first())
    }

    fn find(&mut self, name: &Key) -> Option<&'c CatalogueEntry> {
        let (slot, catalogue) = (self.slot, self.catalogue);
        if let Some(entry) = slot.entries(catalogue).find(|entry| entry.name == name.text) {
            return Some(entry);
        }
        let names: Vec<&str> = slot.entries(catalogue).map(|entry| entry.name).collect();
        let mut elsewhere = Slot::ALL.into_iter().filter(|other| *other != slot);
        let help = match elsewhere.clone().find(|other| other.has(&name.text, catalogue)) {
            Some(other) => Some(format!("`{}` belongs under `{}`", name.text, other.key())),
            None => not_yet(&name.text),
        };
        let help = help.unwrap_or_else(|| {
            let is_near = !nearest(&name.text, names.iter().copied()).is_empty();
            let hint = elsewhere.find_map(|other| hint_elsewhere(other, name, catalogue)).filter(|_| !is_near);
            hint.unwrap_or_else(|| suggestion(&name.text, names))
        });
        self.problems.add(Problem::at(&name.span, format!("unknown {} `{}`", slot.key(), name.text)).help(help));
        None
    }
}

/// Layers that people look for and that do not exist yet, so that no other word is suggested.
const NOT_YET: &[(&str, &str)] =
    &[("ntfs", "NTFS"), ("nfs", "NFS"), ("overlay", "overlayfs"), ("multipath", "multipath")];

fn not_yet(name: &str) -> Option<String> {
    if name.starts_with("/dev/") {
        return Some(format!(
            "write {{ disk = \"{name}\", serial = \"...\" }}; `pgstrata doctor` prints the line for each disk"
        ));
    }
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

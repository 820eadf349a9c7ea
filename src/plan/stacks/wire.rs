//! Inputs of each node of a stack: as named in the plan, or by default everything unused so far.

use super::NodeDraft;
use super::layer::{Slot, WrittenLayer};
use crate::plan::limits::Span;
use crate::plan::problem::{Problem, Problems, suggestion};
use crate::plan::tree::{Node, Pair, Toml};
use crate::record::stack::{BaseKind, BaseName, Input, Role, Take};
use std::collections::{BTreeMap, BTreeSet};

/// State of wiring one stack.
pub(super) struct Wiring<'a> {
    stack: &'a str,
    /// Bases offered by the nodes so far, in build order.
    offered: Vec<Offer>,
    /// Bases named by some layer: not used by default for others.
    named: BTreeSet<String>,
    /// Names of all nodes, including later ones.
    nodes: BTreeSet<String>,
}

struct Offer {
    name: BaseName,
    kind: BaseKind,
    place: Span,
    /// The node that uses it, and the span of that reference.
    user: Option<(String, Span)>,
}

/// A reference to a base, as written.
struct Reference {
    text: String,
    place: Span,
    group: Option<String>,
}

impl<'a> Wiring<'a> {
    /// `layers` are all layers of the stack, `names` the names of their nodes.
    pub fn new(stack: &'a str, layers: &[WrittenLayer<'_, '_>], names: &[String]) -> Wiring<'a> {
        let mut named = BTreeSet::new();
        for layer in layers {
            for take in layer.entry.takes {
                let node = layer.wire(take.key).map(|(_, node)| node);
                named.extend(node.into_iter().flat_map(texts).map(str::to_owned));
            }
        }
        Wiring { stack, offered: Vec::new(), named, nodes: names.iter().cloned().collect() }
    }

    /// Adds the bases that a node offers.
    pub fn offer(&mut self, name: &str, node: &NodeDraft<'_>, bases: Vec<String>) {
        let offers = bases.into_iter().map(|base| Offer {
            name: BaseName::of(name, &base),
            kind: node.entry.offers,
            place: node.place.clone(),
            user: None,
        });
        self.offered.extend(offers);
    }

    /// Inputs of a layer that becomes the node `name`.
    pub fn inputs(&mut self, name: &str, layer: &WrittenLayer<'_, '_>, problems: &mut Problems) -> Vec<Input> {
        let mut inputs = Vec::new();
        for take in layer.entry.takes {
            let before = problems.len();
            let found = match layer.wire(take.key) {
                Some(pair) => self.by_name(name, take, pair, problems),
                None if take.role == Role::Data => self.by_default(name, take, layer),
                None => Vec::new(),
            };
            if problems.len() == before && !(take.least..=take.most).contains(&found.len()) {
                problems.add(self.wrong_number(take, layer, &found));
            }
            inputs.extend(found);
        }
        inputs
    }

    fn by_name(&mut self, node: &str, take: &Take, (key, value): &Pair, problems: &mut Problems) -> Vec<Input> {
        let mut inputs = Vec::new();
        for reference in references(take, value, problems) {
            let Some(at) = self.find(&reference, problems) else { continue };
            let offer = &mut self.offered[at];
            if offer.kind != take.kind {
                let (is, wants) = (offer.kind.word(), take.kind.word());
                let message = format!("`{}` needs a {wants}, but `{}` is a {is}", key.text, reference.text);
                problems.add(Problem::at(&reference.place, message).also(&offer.place, "defined here"));
                continue;
            }
            if let Some((user, place)) = offer.user.as_ref().filter(|_| offer.kind != BaseKind::Pool) {
                let message = format!("`{}` is used twice: by `{user}` and by `{node}`", reference.text);
                let problem = Problem::at(&reference.place, message).also(place, "used here");
                problems
                    .add(problem.help("only one layer can use a device; add a volume between them, or another device"));
                continue;
            }
            offer.user = Some((node.to_owned(), reference.place));
            inputs.push(Input { from: offer.name.clone(), role: take.role, group: reference.group });
        }
        inputs
    }

    fn find(&self, reference: &Reference, problems: &mut Problems) -> Option<usize> {
        let text = &reference.text;
        if let Some(at) = self.offered.iter().position(|offer| offer.name.0 == *text) {
            return Some(at);
        }
        let of_node: Vec<&Offer> = self.offered.iter().filter(|offer| offer.name.node() == *text).collect();
        if let [_, _, ..] = of_node.as_slice() {
            let names: Vec<String> = of_node.iter().map(|offer| format!("`{}`", offer.name)).collect();
            let message = format!("`{text}` provides several: {}", names.join(", "));
            problems.add(Problem::at(&reference.place, message).help("choose one of them"));
            return None;
        }
        let known: Vec<&str> = self.offered.iter().map(|offer| offer.name.0.as_str()).collect();
        let message = format!("nothing named `{text}` is defined in stack `{}` at this point", self.stack);
        let help = match (self.nodes.contains(text), known.is_empty()) {
            (true, _) => format!("`{text}` is defined later; a layer can only use what is built before it"),
            (false, true) => "there is no layer below yet: add device = { ... }".to_owned(),
            (false, false) => suggestion(text, known),
        };
        problems.add(Problem::at(&reference.place, message).help(help));
        None
    }

    /// Every unused and unnamed base of the kind; for a pool, the latest one, which others may share.
    fn by_default(&mut self, node: &str, take: &Take, layer: &WrittenLayer<'_, '_>) -> Vec<Input> {
        let named = &self.named;
        let mut of_kind = self.offered.iter_mut().filter(|offer| offer.kind == take.kind);
        let used: Vec<&mut Offer> = match take.kind {
            BaseKind::Pool => of_kind.next_back().into_iter().collect(),
            _ => of_kind
                .filter(|offer| offer.user.is_none())
                .filter(|offer| !named.contains(&offer.name.0) && !named.contains(offer.name.node()))
                .collect(),
        };
        let inputs = used.into_iter().map(|offer| {
            offer.user.get_or_insert_with(|| (node.to_owned(), layer.key.span.clone()));
            Input { from: offer.name.clone(), role: take.role, group: None }
        });
        inputs.collect()
    }

    fn wrong_number(&self, take: &Take, layer: &WrittenLayer<'_, '_>, found: &[Input]) -> Problem {
        let name = layer.entry.name;
        let kind = take.kind.word();
        let place = layer.wire(take.key).map_or(&layer.key.span, |(_, node)| &node.span);
        let names: Vec<String> = found.iter().map(|input| format!("`{}`", input.from)).collect();
        let what = if take.role == Role::Data { String::new() } else { format!(" for its {}", take.role.word()) };
        let count = match (take.least, take.most) {
            (1, 1) => format!("one {kind}"),
            (least, most) if least == most => format!("{least} {kind}s"),
            (_, most) if found.len() > most => format!("at most {most} {kind}{}", if most == 1 { "" } else { "s" }),
            (least, _) => format!("at least {least} {kind}s"),
        };
        match found {
            [] if take.kind == BaseKind::Device && layer.slot == Slot::Filesystem && self.offered.is_empty() => {
                let message = format!("`{name}` needs a device, but stack `{}` has none", self.stack);
                Problem::at(place, message).help("add device = { ... }")
            }
            [] if take.kind == BaseKind::Pool => {
                let message = format!("`{name}` needs a pool, but stack `{}` has none", self.stack);
                Problem::at(place, message).help("add one as `volume`; `pgstrata plan --example --all` shows how")
            }
            [] => {
                let message = format!("`{name}` needs {count}{what}, but none is left");
                Problem::at(place, message).help(format!("set `{} = ...`, or add one", take.key))
            }
            _ => {
                let message = format!("`{name}` takes {count}{what}, but would get {}", names.join(", "));
                let help = format!("set `{} = ...`, or add a volume between them", take.key);
                Problem::at(place, message).help(help)
            }
        }
    }

    /// Rejects unused bases: they would not be measured. `ends` hold the database.
    pub fn refuse_unused(&self, ends: &[&BaseName], problems: &mut Problems) {
        for offer in self.offered.iter().filter(|offer| offer.user.is_none() && !ends.contains(&&offer.name)) {
            let message = format!("nothing in stack `{}` uses `{}`", self.stack, offer.name);
            problems.add(Problem::at(&offer.place, message).help("remove it, or refer to it in a layer"));
        }
    }
}

/// All texts in a value, at any depth.
fn texts(node: &Node) -> Vec<&str> {
    match &node.value {
        Toml::Text(text) => vec![text],
        Toml::List(items) => items.iter().flat_map(texts).collect(),
        Toml::Table(pairs) => pairs.iter().flat_map(|(_, node)| texts(node)).collect(),
        _ => Vec::new(),
    }
}

/// Reads `"a"`, `["a", "b"]`, or, for layers that know groups, `[{ mirror = ["a", "b"] }, ...]`.
fn references(take: &Take, node: &Node, problems: &mut Problems) -> Vec<Reference> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all = Vec::new();
    for item in node.items() {
        match &item.value {
            Toml::Text(text) => all.push(Reference { text: text.clone(), place: item.span.clone(), group: None }),
            Toml::Table(pairs) if !take.groups.is_empty() => {
                for (key, members) in pairs {
                    if !take.groups.contains(&key.text.as_str()) {
                        let message = format!("`{}` has no group `{}`", take.key, key.text);
                        let help = suggestion(&key.text, take.groups.iter().copied());
                        problems.add(Problem::at(&key.span, message).help(help));
                        continue;
                    }
                    let number = numbers.entry(&key.text).or_default();
                    let group = Some(format!("{}-{number}", key.text));
                    *number += 1;
                    let one = Take { groups: &[], ..*take };
                    let members = references(&one, members, problems).into_iter();
                    all.extend(members.map(|member| Reference { group: group.clone(), ..member }));
                }
            }
            _ => {
                let wants =
                    if take.groups.is_empty() { "a name or a list of names" } else { "names, or groups of names" };
                problems.add(item.must_be(format!("`{}`", take.key), wants));
            }
        }
    }
    if node.items().is_empty() {
        problems.add(Problem::at(&node.span, format!("`{}` is an empty list", take.key)).help("remove it"));
    }
    all
}

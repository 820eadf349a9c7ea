//! Two plans to begin with: a short one, the output of `pgstrata plan --example`, and a commented one that shows every
//! layer and workload with its options, that of `pgstrata plan --example --all`.
//!
//! The latter is generated from the catalogue, so that it cannot become outdated. A part that the catalogue's own checks reject with
//! made-up values (a real disk has a real serial number) is shown as a comment.

use super::problem::Problems;
use super::stacks::{self, Slot, stands_alone};
use super::values::describe;
use super::{Catalogue, CatalogueEntry, DEFAULT_BLOCKS, DEFAULT_SEED, build, tree, workloads};
use crate::record::options::{OptionKind, OptionSpec};
use crate::units::{Bytes, Micros};
use std::path::Path;

/// Width of comments, columns.
const WIDTH: usize = 100;

/// A first plan.
pub const SHORT_EXAMPLE: &str = include_str!("short_example.toml");

/// Template around the generated parts.
const PAGE: &str = include_str!("example.toml");

/// A plan that parses, with every layer and workload of the catalogue and the meaning of each option.
pub fn example(catalogue: &Catalogue) -> String {
    let (stacks, names) = stacks_shown(catalogue);
    let baseline =
        names.first().map_or_else(|| "# baseline = \"ext4\"".to_owned(), |name| format!("baseline = \"{name}\""));
    let width = build::KEYS.iter().map(|(key, ..)| key.len()).max().unwrap_or(0);
    let build = build::KEYS.iter().map(|(key, _, doc)| comment(&format!("   {key:<width$}  "), doc)).collect();
    let mut page = PAGE
        .replace("{{ seed }}", &DEFAULT_SEED.to_string())
        .replace("{{ blocks }}", &DEFAULT_BLOCKS.to_string())
        .replace("{{ baseline }}", &format!("{baseline:<24}"))
        .replace("{{ last }}", names.last().map_or("", String::as_str));
    for (mark, text) in [
        ("{{ machine }}\n", catalogue.machine.iter().map(entry_shown).collect()),
        ("{{ age }}\n", catalogue.age.iter().map(entry_shown).collect()),
        ("{{ stacks }}\n", stacks),
        ("{{ build }}\n", build),
        ("{{ workloads }}\n", workloads_shown(catalogue)),
    ] {
        page = page.replace(mark, &text);
    }
    page
}

/// Every layer, and the names of the stacks that are not commented out.
fn stacks_shown(catalogue: &Catalogue) -> (String, Vec<String>) {
    let mut out: String =
        Slot::Device.entries(catalogue).chain(Slot::Volume.entries(catalogue)).map(entry_shown).collect();
    let filesystems: Vec<&CatalogueEntry> = Slot::Filesystem.entries(catalogue).collect();
    let device = Slot::Device.entries(catalogue).map(|entry| layer(entry, Blank::Least)).find(|device| {
        filesystems.iter().any(|entry| {
            !stands_alone(entry) && stack_reads(&stack("x", Some(device), &layer(entry, Blank::Least)), catalogue)
        })
    });
    let mut names = Vec::new();
    for entry in &filesystems {
        out.push_str(&entry_shown(entry));
        let below = if stands_alone(entry) { None } else { device.as_deref() };
        let text = stack(entry.name, below, &layer(entry, Blank::Least));
        if stack_reads(&text, catalogue) {
            names.push(entry.name.to_owned());
            out.push_str(&text);
        } else {
            out.push_str(&commented(&stack(entry.name, below, &layer(entry, Blank::Texts))));
        }
    }
    let Some(filesystem) = filesystems.iter().find(|entry| !stands_alone(entry)) else { return (out, names) };
    for entry in Slot::Device.entries(catalogue).filter(|entry| Some(layer(entry, Blank::Least)) != device) {
        let name = format!("{}-{}", filesystem.name, entry.name);
        let text = stack(&name, Some(&layer(entry, Blank::Texts)), &layer(filesystem, Blank::Least));
        out.push_str(&format!("\n# On a `{}`:\n{}", entry.name, commented(&text)));
    }
    (out, names)
}

fn workloads_shown(catalogue: &Catalogue) -> String {
    let shown = catalogue.workloads.iter().map(|entry| {
        let with_axis = workload(entry, true);
        let text = if workload_reads(&with_axis, catalogue) { with_axis } else { workload(entry, false) };
        let text = if workload_reads(&text, catalogue) { text } else { commented(&text) };
        entry_shown(entry) + &text
    });
    shown.collect()
}

fn stack(name: &str, device: Option<&str>, filesystem: &str) -> String {
    let device = device.map_or_else(String::new, |device| format!("device = {device}\n"));
    format!("[stack.{name}]\n{device}filesystem = {filesystem}\n")
}

fn stack_reads(text: &str, catalogue: &Catalogue) -> bool {
    let mut problems = Problems::default();
    tree::parse(text, &mut problems)
        .is_some_and(|root| !stacks::read_stacks(&root, catalogue, &mut problems).is_empty() && problems.is_empty())
}

fn workload_reads(text: &str, catalogue: &Catalogue) -> bool {
    let mut problems = Problems::default();
    tree::parse(text, &mut problems).is_some_and(|root| {
        !workloads::read_workloads(&root, Path::new("/"), catalogue, &mut problems).is_empty() && problems.is_empty()
    })
}

/// Amount of a layer's options to write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blank {
    /// Required options.
    Least,
    /// Every text and path as well, for the user to fill in.
    Texts,
}

fn layer(entry: &CatalogueEntry, fill: Blank) -> String {
    let all_texts = fill == Blank::Texts;
    let sample = |spec: &OptionSpec| match spec.kind {
        OptionKind::Path if all_texts => "\"/dev/disk/by-id/...\"".to_owned(),
        _ => sample(spec),
    };
    let (main, rest) = match entry.options.split_first() {
        Some((main, rest)) if main.required || matches!(main.kind, OptionKind::Size) || all_texts => (Some(main), rest),
        Some((_, rest)) => (None, rest),
        None => (None, entry.options),
    };
    let written = rest
        .iter()
        .filter(|spec| spec.required || (all_texts && matches!(spec.kind, OptionKind::Text | OptionKind::Path)));
    let further: Vec<String> = written.map(|spec| format!("{} = {}", spec.key, sample(spec))).collect();
    match main {
        Some(main) => {
            let first = format!("{} = {}", entry.name, sample(main));
            format!("{{ {} }}", [vec![first], further].concat().join(", "))
        }
        None if further.is_empty() => format!("\"{}\"", entry.name),
        None => format!("{{ {} = {{ {} }} }}", entry.name, further.join(", ")),
    }
}

/// A workload with its required options, its spans, and one axis if `with_axis`.
fn workload(entry: &CatalogueEntry, with_axis: bool) -> String {
    let mut counts = entry.options.iter().filter(|spec| matches!(spec.kind, OptionKind::Integer { min } if min <= 1));
    let axis = counts.next().filter(|_| with_axis).map(|spec| spec.key);
    let options = entry.options.iter().filter_map(|spec| match spec.kind {
        _ if Some(spec.key) == axis => Some(format!("{} = [1, 4, 16]", spec.key)),
        OptionKind::Span if literal_default(spec).is_some() => Some(format!("{} = {}", spec.key, sample(spec))),
        // Its alternative in bytes makes the scale no required option.
        _ if spec.required || matches!(spec.kind, OptionKind::IntegerOrShare) => {
            Some(format!("{} = {}", spec.key, sample(spec)))
        }
        _ => None,
    });
    let options: Vec<String> = options.collect();
    let inside = if options.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", options.join(", ")) };
    format!("[workload.{0}]\n{0} = {inside}\n", entry.name)
}

/// A plausible value: the default if that is a value, else one of the right kind.
fn sample(spec: &OptionSpec) -> String {
    if let Some(literal) = literal_default(spec) {
        return literal;
    }
    match spec.kind {
        OptionKind::Integer { min } => min.max(1).to_string(),
        OptionKind::Number => "100".to_owned(),
        OptionKind::Boolean => "true".to_owned(),
        OptionKind::Text | OptionKind::Sql | OptionKind::Scalar => "\"...\"".to_owned(),
        OptionKind::Path => "\"/srv/pgstrata\"".to_owned(),
        OptionKind::OneOf(words) => format!("\"{}\"", words.first().unwrap_or(&"")),
        OptionKind::SqlOrList => "\"NAME\"".to_owned(),
        OptionKind::TextList => "[\"...\"]".to_owned(),
        OptionKind::Size => "\"4GiB\"".to_owned(),
        OptionKind::Span if spec.key.starts_with("latency") => "\"10ms\"".to_owned(),
        OptionKind::Span => "\"60s\"".to_owned(),
        OptionKind::IntegerOrShare => "10".to_owned(),
        OptionKind::OrDefault(kind) => sample(&OptionSpec { kind: *kind, ..*spec }),
        OptionKind::Properties => "{ }".to_owned(),
        OptionKind::Table(specs) => {
            let inside: Vec<String> = specs.iter().map(|spec| format!("{} = {}", spec.key, sample(spec))).collect();
            format!("{{ {} }}", inside.join(", "))
        }
    }
}

/// The default as TOML, if it is a value and not a description.
fn literal_default(spec: &OptionSpec) -> Option<String> {
    let text = spec.default?;
    let is_value = match spec.kind {
        OptionKind::Integer { .. } | OptionKind::IntegerOrShare => return Some(text.parse::<i64>().ok()?.to_string()),
        OptionKind::Number => return Some(text.parse::<f64>().ok()?.to_string()),
        OptionKind::Boolean => return Some(text.parse::<bool>().ok()?.to_string()),
        OptionKind::OneOf(words) => words.contains(&text),
        OptionKind::Size => Bytes::parse(text).is_ok(),
        OptionKind::Span => Micros::parse(text).is_ok(),
        OptionKind::Path => text.starts_with('/'),
        OptionKind::Text
        | OptionKind::Sql
        | OptionKind::SqlOrList
        | OptionKind::TextList
        | OptionKind::Scalar
        | OptionKind::OrDefault(_)
        | OptionKind::Properties
        | OptionKind::Table(_) => false,
    };
    is_value.then(|| format!("\"{text}\""))
}

/// Name and meaning of an entry and of each of its options, as comments.
fn entry_shown(entry: &CatalogueEntry) -> String {
    let width = entry.takes.iter().map(|take| take.key.len()).max().unwrap_or(0);
    let takes = entry.takes.iter().map(|take| comment(&format!("   {:<width$}  ", take.key), take.doc));
    let title = comment("", &format!("{}: {}", entry.name, entry.doc));
    format!("\n{title}{}{}", takes.collect::<String>(), options_shown(entry.options, "   "))
}

/// Each option with its kind and default; those of a table are indented below it.
fn options_shown(options: &[OptionSpec], indent: &str) -> String {
    let width = options.iter().map(|spec| spec.key.len()).max().unwrap_or(0);
    let shown = options.iter().map(|spec| {
        let mut text = format!("{}: {}", spec.doc.trim_end_matches('.'), describe(spec.kind));
        match (spec.required, spec.default) {
            (true, _) => text.push_str("; required"),
            (false, Some(default)) => text.push_str(&format!("; default: {default}")),
            (false, None) => {}
        }
        let own = comment(&format!("{indent}{:<width$}  ", spec.key), &text);
        match spec.kind {
            OptionKind::Table(inner) => own + &options_shown(inner, &format!("{indent}   ")),
            _ => own,
        }
    });
    shown.collect()
}

fn commented(text: &str) -> String {
    text.lines().map(|line| format!("# {line}\n")).collect()
}

/// The text as a wrapped comment, with `lead` before its first line and the others indented as far.
fn comment(lead: &str, text: &str) -> String {
    let mut out = String::new();
    let mut line = format!("# {lead}");
    let indent = line.len();
    for word in text.split_whitespace() {
        if line.len() > indent && line.len() + 1 + word.len() > WIDTH {
            out.push_str(&format!("{}\n", line.trim_end()));
            line = format!("#{}", " ".repeat(indent - 1));
        }
        if line.len() > indent {
            line.push(' ');
        }
        line.push_str(word);
    }
    out + line.trim_end() + "\n"
}

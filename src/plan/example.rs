//! A commented plan that shows every layer and workload with its options: what `pgstrata plan --example` prints.
//!
//! Made from the catalogue, so that it cannot lag behind it. A part that the catalogue's own checks refuse with made-up
//! values (a real disk has a real serial number) stands there as a comment.

use super::machine::MACHINE;
use super::problem::Problems;
use super::stacks::{self, Slot, stands_alone};
use super::values::describe;
use super::{Catalogue, CatalogueEntry, DEFAULT_BLOCKS, DEFAULT_SEED, build, tree, workloads};
use crate::record::options::{LEAVE, OptionKind, OptionSpec};
use crate::units::{Bytes, Micros};
use std::path::Path;

/// Width of comments, columns.
const WIDTH: usize = 100;

/// A plan that parses, with every layer and workload of the catalogue and the meaning of each option.
pub fn example(catalogue: &Catalogue) -> String {
    let (shown, names) = stacks_shown(catalogue);
    let (workloads, any_server) = workloads_shown(catalogue);
    let mut out = head(names.first());
    out.push_str(&rule("Guests"));
    say(
        &mut out,
        "Run the cases in throw-away virtual machines with kernel, ZFS and PostgreSQL of a Debian suite (pgstrata guest build \
         --suite SUITE). A list is an axis: each block boots each guest once. Default: on this machine.",
    );
    out.push_str("# guest = [\"bookworm\", \"trixie\"]\n");
    out.push_str(&machine_shown(catalogue));
    out.push_str(&shown);
    out.push_str(&postgres_shown(any_server));
    out.push_str(&workloads);
    if let (true, [_, .., last]) = (any_server, names.as_slice()) {
        out.push_str(&rule("Cases to exclude"));
        say(&mut out, "A case that matches every line of an [[exclude]] is not run; a list matches any of its values.");
        out.push_str(&format!("[[exclude]]\nstack = \"{last}\"\nwal_sync_method = \"open_datasync\"\n"));
    }
    out.push_str(&rule("What --quick measures, beside making windows short"));
    say(
        &mut out,
        "Cases that match every line of `only`, with other values for options of layers; default: all cases.",
    );
    out.push_str("[quick]\nblocks = 1\n# only = { clients = [1, 16] }\n# set = { loop = \"2GiB\" }\n");
    out
}

fn head(baseline: Option<&String>) -> String {
    let mut out = String::new();
    for text in [
        "A pgstrata plan: the storage stacks to compare, with PostgreSQL settings and workloads.",
        "Every stack is combined with every workload and every list of values. Show the resulting cases with: pgstrata plan FILE",
        "Sizes: B, KiB, MiB, GiB, TiB; kB, MB, GB, TB and k, M, G, T mean the same, as in PostgreSQL. Time spans: us, ms, s, \
         min, h, d.",
    ] {
        say(&mut out, text);
    }
    let baseline = baseline.map_or_else(|| "# baseline = \"ext4\"".to_owned(), |name| format!("baseline = \"{name}\""));
    for (line, meaning) in [
        ("name = \"example\"".to_owned(), "used in the name of the run folder".to_owned()),
        (format!("seed = {DEFAULT_SEED}"), format!("for the order of trials; default {DEFAULT_SEED}")),
        (format!("blocks = {DEFAULT_BLOCKS}"), format!("every case runs once per block; default {DEFAULT_BLOCKS}")),
        (baseline, "ratios are relative to this stack; or { AXIS = VALUE }".to_owned()),
    ] {
        out.push_str(&format!("{line:<24}# {meaning}\n"));
    }
    for text in [
        "durability = \"quick\" also finds out what a power cut would cost: before the first trial each stack is recorded on \
         loop images for some seconds, and every acknowledged commit must be covered by a flush. Other devices: not measured.",
        "blocks = { at_least = 3, at_most = 12 } is adaptive: all pairs of cases are tested after each block. A case that is \
         beaten is dropped, and the run ends when every remaining pair differs or is the same within 5 %, or \
         after at_most blocks.",
    ] {
        say(&mut out, text);
    }
    out
}

/// The part on stacks, and the names of those that are not comments.
fn stacks_shown(catalogue: &Catalogue) -> (String, Vec<String>) {
    let mut out = rule("Stacks: [stack.NAME]");
    for text in [
        "device, volume = [ ... ] (the lowest first), filesystem. A layer is written \"name\", or { name = VALUE, \
         option = ... } where VALUE is the first option, or { name = { option = ... } }.",
        "directory = \"/PATH\" is short for filesystem = { directory = \"/PATH\" }.",
        "Several devices: devices = { NAME = LAYER, ... }, or devices = { LAYER = VALUE, count = 4 } for d1 to d4. A layer \
         uses every device still unused, or those it names: filesystem = { ext4 = { on = \"a\", journal = \"b\" } }.",
        "wal = LAYER puts pg_wal on a separate filesystem, wal = \"STACK\" on another stack; tablespace = { NAME = LAYER } \
         creates tablespaces. reuse = true builds the stack once and ages it across trials. Any option can be a list, which is an axis; \
         an option whose value is a list takes a list of lists.",
    ] {
        say(&mut out, text);
    }
    if let Some(entry) = &catalogue.age {
        say(
            &mut out,
            "age = { rewrite = [0, 1, 3, 10], filesystem = [\"aged\", \"fresh\"] } ages a fresh stack in each trial before it is \
             measured, here by overwriting the data so many times, and measures the same cluster on a fresh filesystem, too.",
        );
        out.push_str(&entry_shown(entry));
    }
    for entry in Slot::Device.entries(catalogue).chain(Slot::Volume.entries(catalogue)) {
        out.push_str(&entry_shown(entry));
    }
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
    let on_a_device = filesystems.iter().find(|entry| !stands_alone(entry));
    for entry in Slot::Device.entries(catalogue).filter(|entry| Some(layer(entry, Blank::Least)) != device) {
        if let Some(filesystem) = on_a_device {
            out.push_str(&format!("\n# On a `{}`:\n", entry.name));
            let name = format!("{}-{}", filesystem.name, entry.name);
            out.push_str(&commented(&stack(
                &name,
                Some(&layer(entry, Blank::Texts)),
                &layer(filesystem, Blank::Least),
            )));
        }
    }
    (out, names)
}

/// The knobs of the kernel: commented, as they change the whole machine for the time of a trial.
fn machine_shown(catalogue: &Catalogue) -> String {
    let Some(entry) = &catalogue.machine else { return String::new() };
    let mut out = rule("Kernel knobs: [machine]");
    say(
        &mut out,
        "Set for each trial and restored afterwards. A list is an axis; \"default\" keeps the current value.",
    );
    out.push_str(&entry_shown(entry));
    let whole = entry.options.iter().filter(|spec| !matches!(spec.kind, OptionKind::Table(_)));
    // One of each table is enough: some exclude each other.
    let first = whole.take(1).map(|spec| format!("\"{}\" = [{}, \"{LEAVE}\"]\n", spec.key, sample(spec)));
    out.push_str(&commented(&format!("[{MACHINE}]\n{}", first.collect::<String>())));
    out
}

fn postgres_shown(any_server: bool) -> String {
    let mut out = rule("PostgreSQL: [postgres]");
    for text in [
        "bin: \"auto\" (the newest installed), a major version, or the folder with its programs. settings: as in \
         postgresql.conf. initdb: a list of arguments. A list of values for bin or for a setting is an axis.",
        "build, instead of bin: build the server from source, once; `pgstrata postgres` lists and removes builds. A list \
         is an axis:",
    ] {
        say(&mut out, text);
    }
    let width = build::KEYS.iter().map(|key| key.key.len()).max().unwrap_or(0);
    for build::BuildKey { key, doc, .. } in &build::KEYS {
        comment(&mut out, &format!("   {key:<width$}  "), doc);
    }
    let text = "[postgres]\nbin = \"auto\"\n\
        settings = { shared_buffers = \"512MB\", wal_sync_method = [\"fdatasync\", \"open_datasync\"] }\n\
        # initdb = [\"--wal-segsize=64\"]\n\
        # build = { version = \"15\", wal_blocksize = [8, 16, 64] }\n";
    out.push_str(&if any_server { text.to_owned() } else { commented(text) });
    out
}

/// The part on workloads, and whether one that needs a server is no comment.
fn workloads_shown(catalogue: &Catalogue) -> (String, bool) {
    let mut out = rule("Workloads: [workload.NAME]");
    let mut any_server = false;
    for entry in &catalogue.workloads {
        out.push_str(&entry_shown(entry));
        let with_axis = workload(entry, true);
        let text = if workload_reads(&with_axis, catalogue) { with_axis } else { workload(entry, false) };
        if workload_reads(&text, catalogue) {
            any_server |= entry.needs_server;
            out.push_str(&text);
        } else {
            out.push_str(&commented(&text));
        }
    }
    (out, any_server)
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

/// How much of a layer is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blank {
    /// What it must have.
    Least,
    /// Every text and path as well, for a person to fill in.
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
    let is_text = |spec: &OptionSpec| all_texts && matches!(spec.kind, OptionKind::Text | OptionKind::Path);
    let further: Vec<String> = rest
        .iter()
        .filter(|spec| spec.required || is_text(spec))
        .map(|spec| format!("{} = {}", spec.key, sample(spec)))
        .collect();
    match main {
        Some(main) => {
            let first = format!("{} = {}", entry.name, sample(main));
            let all: Vec<String> = std::iter::once(first).chain(further).collect();
            format!("{{ {} }}", all.join(", "))
        }
        None if further.is_empty() => format!("\"{}\"", entry.name),
        None => format!("{{ {} = {{ {} }} }}", entry.name, further.join(", ")),
    }
}

/// A workload with what it must have, its spans, and one axis where `with_axis`.
fn workload(entry: &CatalogueEntry, with_axis: bool) -> String {
    let is_count = |spec: &&OptionSpec| matches!(spec.kind, OptionKind::Integer { min } if min <= 1);
    let axis = entry.options.iter().filter(|_| with_axis).find(is_count).map(|spec| spec.key);
    let options: Vec<String> = entry
        .options
        .iter()
        .filter_map(|spec| match spec.kind {
            _ if Some(spec.key) == axis => Some(format!("{} = [1, 4, 16]", spec.key)),
            OptionKind::Span if literal_default(spec).is_some() => Some(format!("{} = {}", spec.key, sample(spec))),
            _ if spec.required => Some(format!("{} = {}", spec.key, sample(spec))),
            _ => None,
        })
        .collect();
    let inside = if options.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", options.join(", ")) };
    format!("[workload.{0}]\n{0} = {inside}\n", entry.name)
}

/// A value that could stand there: the default where that is a value, else one of the right kind.
fn sample(spec: &OptionSpec) -> String {
    if let Some(literal) = literal_default(spec) {
        return literal;
    }
    match spec.kind {
        OptionKind::Integer { min } => min.max(1).to_string(),
        OptionKind::Number => "100".to_owned(),
        OptionKind::Boolean => "true".to_owned(),
        OptionKind::Text | OptionKind::Scalar => "\"...\"".to_owned(),
        OptionKind::Path => "\"/srv/pgstrata\"".to_owned(),
        OptionKind::OneOf(words) => format!("\"{}\"", words.first().unwrap_or(&"")),
        OptionKind::TextOrList => "\"NAME\"".to_owned(),
        OptionKind::TextList => "[\"...\"]".to_owned(),
        OptionKind::Size => "\"4GiB\"".to_owned(),
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

/// The default as TOML, where it is a value and not words.
fn literal_default(spec: &OptionSpec) -> Option<String> {
    let text = spec.default?;
    let quoted = || format!("\"{text}\"");
    match spec.kind {
        OptionKind::Integer { .. } | OptionKind::IntegerOrShare => text.parse::<i64>().ok().map(|n| n.to_string()),
        OptionKind::Number => text.parse::<f64>().ok().map(|n| n.to_string()),
        OptionKind::Boolean => text.parse::<bool>().ok().map(|flag| flag.to_string()),
        OptionKind::OneOf(words) => words.contains(&text).then(quoted),
        OptionKind::Size => Bytes::parse(text).ok().map(|_| quoted()),
        OptionKind::Span => Micros::parse(text).ok().map(|_| quoted()),
        OptionKind::Path => text.starts_with('/').then(quoted),
        OptionKind::Text
        | OptionKind::TextOrList
        | OptionKind::TextList
        | OptionKind::Scalar
        | OptionKind::OrDefault(_)
        | OptionKind::Properties
        | OptionKind::Table(_) => None,
    }
}

/// Name and meaning of an entry and of each of its options, as comments.
fn entry_shown(entry: &CatalogueEntry) -> String {
    let mut out = String::from("\n");
    say(&mut out, &format!("{}: {}", entry.name, entry.doc));
    let width = entry.takes.iter().map(|take| take.key.len()).max().unwrap_or(0);
    for take in entry.takes {
        comment(&mut out, &format!("   {:<width$}  ", take.key), take.doc);
    }
    options_shown(entry.options, "   ", &mut out);
    out
}

/// Each option with what it takes; those of a table below it, further in.
fn options_shown(options: &[OptionSpec], indent: &str, out: &mut String) {
    let width = options.iter().map(|spec| spec.key.len()).max().unwrap_or(0);
    for spec in options {
        let mut text = describe(spec.kind);
        match (spec.required, spec.default) {
            (true, _) => text.push_str("; required"),
            (false, Some(default)) => text.push_str(&format!("; default: {default}")),
            (false, None) => {}
        }
        comment(
            out,
            &format!("{indent}{:<width$}  ", spec.key),
            &format!("{}: {text}", spec.doc.trim_end_matches('.')),
        );
        if let OptionKind::Table(inner) = spec.kind {
            options_shown(inner, &format!("{indent}   "), out);
        }
    }
}

fn rule(title: &str) -> String {
    format!("\n# --- {title} {}\n", "-".repeat(WIDTH.saturating_sub(title.len() + 7)))
}

fn commented(text: &str) -> String {
    text.lines().map(|line| format!("# {line}\n")).collect()
}

fn say(out: &mut String, text: &str) {
    comment(out, "", text);
}

/// Writes the text as a comment, wrapped, with `lead` before its first line and as much space before the others.
fn comment(out: &mut String, lead: &str, text: &str) {
    let mut line = format!("# {lead}");
    let indent = line.len();
    for word in text.split_whitespace() {
        if line.len() > indent && line.len() + 1 + word.len() > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line = format!("#{}", " ".repeat(indent - 1));
        }
        if line.len() > indent {
            line.push(' ');
        }
        line.push_str(word);
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

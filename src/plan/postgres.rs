//! The table `[postgres]`: the server or the build it comes from, its settings, the arguments of initdb.
//!
//! A list of servers or of values of a setting is an axis. Absent on purpose: the settings that PostgreSQL knows; only
//! the server itself knows them.

use super::build::{BUILD, read_build};
use super::limits::Key;
use super::options::{Axis, read_choices};
use super::problem::{Problem, Problems, refuse_unknown};
use super::tree::{Node, Pair, Toml, get};
use super::values::{Choice, absolute_path, proper_text, read, setting, texts};
use crate::record::build::UNBUILT;
use crate::record::options::{OptionKind, OptionValue};

pub(super) const KEYS: [&str; 4] = ["bin", BUILD, "settings", "initdb"];

/// Name of the axis of servers.
pub(super) const BIN_AXIS: &str = "postgres";

/// The key of initdb's arguments, and the prefix of their axes' names.
pub(super) const INITDB: &str = "initdb";

/// Default of `bin`.
pub(super) const AUTO: &str = "auto";

#[derive(Debug, Clone)]
pub(super) struct PostgresDraft {
    /// Folders of programs, major versions, or `auto`; only [`UNBUILT`] for builds.
    pub bin: Axis,
    /// Sources and options of builds; empty for installed servers.
    pub build: Vec<Axis>,
    /// Arguments of initdb: one axis for all, or one for each.
    pub initdb: Vec<Axis>,
    /// In the order of the plan.
    pub settings: Vec<Axis>,
}

impl PostgresDraft {
    /// All axes: servers, builds, arguments of initdb, settings.
    pub fn axes(&self) -> Vec<Axis> {
        std::iter::once(&self.bin).chain(&self.build).chain(&self.initdb).chain(&self.settings).cloned().collect()
    }
}

/// Reads the table; a plan without one uses the server found, with its defaults.
pub(super) fn read_postgres(root: &[Pair], problems: &mut Problems) -> PostgresDraft {
    let mut draft = PostgresDraft { bin: only(AUTO), build: Vec::new(), initdb: Vec::new(), settings: Vec::new() };
    let Some((_, node)) = get(root, "postgres") else { return draft };
    let Some(pairs) = node.table("`postgres`", "write [postgres]", problems) else { return draft };
    refuse_unknown(pairs.iter().map(|(key, _)| key), &KEYS, "[postgres]", problems);
    if let Some((key, node)) = get(pairs, "bin")
        && let Some(choices) = read_choices("`bin` of [postgres]", node, node.items(), problems, read_bin)
    {
        draft.bin = Axis::of(BIN_AXIS, key.span.clone(), choices);
    }
    if let Some((key, node)) = get(pairs, BUILD) {
        if let Some((bin, _)) = get(pairs, "bin") {
            let problem = Problem::at(&bin.span, "`bin` conflicts with `build`");
            problems.add(problem.also(&key.span, "the build").help("remove one of them"));
        }
        (draft.bin, draft.build) = (only(UNBUILT), read_build(key, node, problems));
    }
    if let Some((_, node)) = get(pairs, "settings") {
        draft.settings = read_settings(node, problems);
    }
    if let Some((key, node)) = get(pairs, INITDB) {
        draft.initdb = read_initdb(key, node, problems);
    }
    draft
}

/// The axis of servers with this one alone.
fn only(bin: &str) -> Axis {
    let choice = Choice { value: OptionValue::Text(bin.to_owned()), identity: bin.to_owned(), span: 0..0 };
    Axis::of(BIN_AXIS, 0..0, vec![choice])
}

fn read_bin(node: &Node) -> Result<Choice, Problem> {
    let text = match node.text() {
        Some(AUTO) => AUTO.to_owned(),
        Some(major) if is_major(major) => major.to_owned(),
        Some(_) => absolute_path(node).map_err(|refusal| {
            refusal.help("or write \"auto\" for the newest installed version, \"17\" for the newest 17")
        })?,
        None => match node.value {
            Toml::Integer(major) if is_major(&major.to_string()) => major.to_string(),
            _ => {
                let wanted = "must be \"auto\", a major version or the folder of the programs";
                return Err(Problem::at(&node.span, format!("{wanted}, found {}", node.noun())));
            }
        },
    };
    Ok(Choice::text(node, if text.len() > 1 { text.trim_end_matches('/').to_owned() } else { text }))
}

/// True for a major version: `17`.
fn is_major(text: &str) -> bool {
    (1..=3).contains(&text.len()) && text.chars().all(|c| c.is_ascii_digit())
}

fn read_settings(node: &Node, problems: &mut Problems) -> Vec<Axis> {
    const HELP: &str = "write settings = { shared_buffers = \"512MB\" }";
    let Some(pairs) = node.table("`settings` of [postgres]", HELP, problems) else { return Vec::new() };
    let mut axes: Vec<Axis> = Vec::new();
    for (key, node) in flatten(pairs) {
        if let Some(first) = axes.iter().find(|axis| axis.name.eq_ignore_ascii_case(&key.text)) {
            let message = format!("setting `{}` is set twice; PostgreSQL setting names are case-insensitive", key.text);
            problems.add(Problem::at(&key.span, message).also(&first.span, "first here"));
        }
        if !is_setting_name(&key.text) {
            let problem = Problem::at(&key.span, format!("`{}` is not a valid setting name", key.text));
            problems.add(problem.help("setting names consist of letters, digits, _ and ."));
            continue;
        }
        let name = format!("setting `{}`", key.text);
        let choices = read_choices(&name, node, node.items(), problems, read_setting);
        axes.extend(choices.map(|choices| Axis::of(&key.text, key.span, choices)));
    }
    axes
}

/// Flattens `auto_explain.log_analyze = true`, a table in TOML and one setting in PostgreSQL.
pub(super) fn flatten(pairs: &[Pair]) -> Vec<(Key, &Node)> {
    let mut flat = Vec::new();
    for (key, node) in pairs {
        match &node.value {
            Toml::Table(inner) if !inner.is_empty() => {
                for (rest, node) in flatten(inner) {
                    flat.push((Key { text: format!("{}.{}", key.text, rest.text), span: rest.span }, node));
                }
            }
            _ => flat.push((key.clone(), node)),
        }
    }
    flat
}

/// True if PostgreSQL can have a setting of this name that clashes with no other axis.
fn is_setting_name(name: &str) -> bool {
    let reserved = ["stack", "workload", BIN_AXIS, BUILD, INITDB];
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
        && !name.ends_with('.')
        && !reserved.contains(&name.split('.').next().unwrap_or(name))
}

fn read_setting(node: &Node) -> Result<Choice, Problem> {
    let text = match setting(node) {
        // An empty text is valid in PostgreSQL: `synchronous_standby_names = ""`.
        Some(text) if node.text().is_none() || text.is_empty() => text,
        Some(_) => proper_text(node)?,
        None => {
            let message = format!("must be a number, text, true or false, found {}", node.noun());
            return Err(Problem::at(&node.span, message));
        }
    };
    Ok(Choice::text(node, text))
}

/// Reads `["--wal-segsize=64"]`, a list of such lists (an axis), or `{ wal-segsize = [16, 64] }`.
fn read_initdb(key: &Key, node: &Node, problems: &mut Problems) -> Vec<Axis> {
    let Toml::Table(pairs) = &node.value else {
        let choices = read_choices("`initdb` of [postgres]", node, node.axis_items(false), problems, |node| {
            read(OptionKind::TextList, node).map_err(|refusal| match node.items() {
                [] => refusal.help("for an option on and off write initdb = { data-checksums = [true, false] }"),
                _ => refusal,
            })
        });
        return choices.map(|choices| Axis::of(INITDB, key.span.clone(), choices)).into_iter().collect();
    };
    let mut axes = Vec::new();
    for (key, node) in pairs {
        let name = format!("`{}` of initdb", key.text);
        if !key.text.chars().all(|c| c.is_ascii_lowercase() || c == '-') || key.text.starts_with('-') {
            let message = format!("`{}` is not an initdb option", key.text);
            let plain = key.text.to_lowercase().replace('_', "-");
            let help = format!("write it as initdb has it, without leading dashes: {}", plain.trim_matches('-'));
            problems.add(Problem::at(&key.span, message).help(help));
        }
        let choices = read_choices(&name, node, node.items(), problems, |node| read(OptionKind::Scalar, node));
        axes.extend(choices.map(|choices| Axis::within(INITDB, key, choices)));
    }
    axes
}

/// Arguments for a value of one of initdb's axes.
pub(super) fn initdb_arguments(axis: &Axis, value: &OptionValue) -> Vec<String> {
    match (&axis.option.1, value) {
        (None, arguments) => texts(arguments),
        (Some(name), OptionValue::Boolean(true)) => vec![format!("--{name}")],
        (Some(name), OptionValue::Boolean(false)) => vec![format!("--no-{name}")],
        (Some(name), value) => vec![format!("--{name}={}", value.plain())],
    }
}

//! Trials to cases, and what nobody told about them.

use super::group::{Group, Groups, case_name, group, plain, trial};
use super::moment::{self, Moment};
use super::repeats::{self, Named};
use super::{Reading, names, read as kinds};
use crate::record::imported::{ImportRecord, ImportedCase, ImportedOutput, ImportedTrial};
use std::collections::{BTreeMap, BTreeSet};

/// Files sorted into cases.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sorted {
    /// The cases.
    pub cases: Vec<ImportedCase>,
    /// How the names of files were understood, where that may be wrong.
    pub notes: Vec<String>,
}

/// Cases of files: each trial in the case that the names of its files tell, all with these facts. Repetitions
/// (`zfs-run1.txt`, `zfs-run2.txt`) are trials of one case; like names in different folders are cases of their own.
#[must_use]
pub fn cases(readings: Vec<Reading>, facts: &BTreeMap<String, String>) -> Sorted {
    let Groups { groups, told, mut notes } = group(readings);
    let of = |group: Group| {
        let trial = trial(group.readings);
        Named { folder: folder(&trial), name: case_name(&trial), trial, context: group.context, caveat: None }
    };
    let mut named: Vec<Named> = groups.into_iter().map(of).collect();
    repeats::join(&mut named, &mut notes);
    let mut folders: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for it in &named {
        folders.entry(it.name.clone()).or_default().insert(it.folder.clone());
    }
    let mut cases: Vec<ImportedCase> = Vec::new();
    // For each case the files that tell of its machine, the nearest to its first trial first.
    let mut contexts: Vec<Vec<usize>> = Vec::new();
    for Named { folder, name, trial, context, caveat } in named {
        let elsewhere = folders.get(&name).is_some_and(|all| all.len() > 1);
        let name = match elsewhere && !folder.is_empty() {
            true => plain(&format!("{}-{name}", plain(&folder))),
            false => plain(&name),
        };
        let name = if name.is_empty() { "stdin".to_owned() } else { name };
        let at = cases.iter().position(|case| case.name == name).unwrap_or_else(|| {
            cases.push(ImportedCase { name, facts: facts.clone(), ..ImportedCase::default() });
            contexts.push(Vec::new());
            cases.len() - 1
        });
        let case = &mut cases[at];
        case.trials.push(trial);
        if let Some(caveat) = caveat.filter(|caveat| !case.caveats.contains(caveat)) {
            case.caveats.push(caveat);
        }
        let new = context.into_iter().filter(|file| !contexts[at].contains(file)).collect::<Vec<_>>();
        contexts[at].extend(new);
    }
    for (case, context) in cases.iter_mut().zip(contexts).filter(|(_, context)| !context.is_empty()) {
        case.context = Some(trial(context.into_iter().flat_map(|file| told[file].readings.clone()).collect()));
    }
    Sorted { cases, notes }
}

/// The folder of a trial's first file.
fn folder(trial: &ImportedTrial) -> String {
    trial.files.first().map(|file| names::name(&file.name, trial.log.is_some()).folder).unwrap_or_default()
}

/// When the first of these was measured, as far as its output tells: `2014-06-26T23:52:00Z`, or with words behind it where
/// the time zone is not known.
#[must_use]
pub fn measured(cases: &[ImportedCase]) -> Option<String> {
    let trials = cases.iter().flat_map(|case| &case.trials);
    let moments = trials.map(|trial| moment::of(&trial.outputs, trial.log.as_ref()));
    moments.fold(Moment::default(), Moment::with).beginning()
}

/// What would be needed to judge a record and is told neither by its origin, nor by facts, nor by what was read.
#[must_use]
pub fn unknown(record: &ImportRecord) -> Vec<String> {
    const DEVICES: [&str; 5] =
        ["stack.device", "stack.devices", "stack.controller", "device.class", "storage.description"];
    const SYSTEM: [&str; 4] = ["host.kernel", "kernel", "host.system", "host.distribution"];
    const FILESYSTEM: [&str; 3] = ["stack.filesystem", "wal_stack.filesystem", "filesystem"];
    const VERSION: [&str; 2] = ["postgresql.version", "postgres.version"];
    let origin = &record.origin;
    let fact = |keys: &[&str]| {
        let tells = |case: &ImportedCase| keys.iter().any(|key| case.facts.contains_key(*key));
        !record.cases.is_empty() && record.cases.iter().all(tells)
    };
    let all = record.cases.iter().flat_map(|case| case.trials.iter().chain(&case.context));
    let outputs: Vec<&ImportedOutput> = all.flat_map(|it| &it.outputs).collect();
    let printed = |tool: &str| outputs.iter().any(|output| output.tool.starts_with(tool));
    let labelled =
        |label: &str| outputs.iter().flat_map(|o| &o.rows).any(|row| row.labels.iter().any(|(name, _)| name == label));
    let told = |name: &str| outputs.iter().any(|output| output.facts.iter().any(|(fact, _)| fact == name));
    let of_postgres =
        outputs.iter().any(|output| kinds::load(&output.tool).is_some_and(|it| it.starts_with("pgbench")));
    let dated = measured(&record.cases).is_some() || told("date") || told("file-date");
    let wanted = [
        ("when it was measured", origin.measured.is_some() || dated),
        ("machine: CPUs and memory", origin.machine.is_some() || fact(&["host.machine", "host.description"])),
        ("devices, controller and their caches", origin.storage.is_some() || fact(&DEVICES)),
        ("operating system and kernel", origin.system.is_some() || fact(&SYSTEM) || told("kernel")),
        ("filesystem", fact(&FILESYSTEM) || printed("mount") || labelled("type")),
        ("mount options", fact(&["mount.options", "stack.mount_options"]) || printed("mount")),
        ("PostgreSQL's version", !of_postgres || origin.postgresql.is_some() || fact(&VERSION) || told("build")),
        (
            "PostgreSQL's settings: fsync, synchronous_commit, wal_sync_method",
            !of_postgres || fact(&["postgresql.wal_sync_method", "wal_sync_method"]),
        ),
    ];
    wanted.iter().filter(|(_, known)| !known).map(|(words, _)| (*words).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_tells_what_it_is_of_and_nothing_that_its_key_is_part_of() {
        let told = |key: &str| {
            let facts = BTreeMap::from([(key.to_owned(), "x".to_owned())]);
            let output = ImportedOutput { tool: "pgbench".to_owned(), ..ImportedOutput::default() };
            let trials = vec![ImportedTrial { outputs: vec![output], ..ImportedTrial::default() }];
            let case = ImportedCase { facts, trials, ..ImportedCase::default() };
            unknown(&ImportRecord { cases: vec![case], ..ImportRecord::default() })
        };
        let all = told("x.y");
        for (key, tells) in [
            ("stack.filesystem", Some("filesystem")),
            ("host.kernel", Some("operating system and kernel")),
            ("host.machine", Some("machine: CPUs and memory")),
            ("stack.device", Some("devices, controller and their caches")),
            ("stack.mount_options", Some("mount options")),
            ("postgresql.version", Some("PostgreSQL's version")),
            ("postgresql.wal_sync_method", Some("PostgreSQL's settings: fsync, synchronous_commit, wal_sync_method")),
            ("stack.mount", None),
            ("stack.filesystem_label", None),
        ] {
            let left = told(key);
            let found: Vec<&String> = all.iter().filter(|it| !left.contains(it)).collect();
            assert_eq!(found, tells.into_iter().collect::<Vec<_>>(), "{key}");
        }
    }
}

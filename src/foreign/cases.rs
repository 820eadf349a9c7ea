//! Turns readings into cases: one file is one case, unless a manifest says otherwise. Lists the facts that are missing.

use super::FileReading;
use super::stated::is_date;
use crate::record::imported::{ImportRecord, ImportedCase, ImportedLog, ImportedOutput, ImportedTimes, ImportedTrial};
use std::collections::BTreeMap;

/// Each file as its own case, named after the file.
pub fn by_file(readings: Vec<FileReading>) -> Vec<ImportedCase> {
    let mut cases: Vec<ImportedCase> = Vec::new();
    for reading in readings {
        let name = case_name(&reading.file.name, &cases);
        cases.push(ImportedCase { name, trials: vec![trial(vec![reading])], ..ImportedCase::default() });
    }
    cases
}

/// File name without its ending, `zfs` for `a/zfs.txt.gz`; with its folders if that is taken.
fn case_name(file: &str, taken: &[ImportedCase]) -> String {
    const ENDINGS: [&str; 8] = [".gz", ".xz", ".zst", ".txt", ".out", ".log", ".json", ".md"];
    let mut stem = file;
    while let Some(rest) = ENDINGS.iter().find_map(|ending| stem.strip_suffix(ending)) {
        stem = rest;
    }
    let short = plain(stem.rsplit('/').next().unwrap_or_default());
    let short = if short.is_empty() { "stdin".to_owned() } else { short };
    let numbered = (2..).map(|number| format!("{short}-{number}"));
    let mut names = [short.clone(), plain(stem), plain(file)].into_iter().chain(numbered);
    names.find(|name| !name.is_empty() && taken.iter().all(|case| case.name != *name)).unwrap_or(short)
}

/// Reduces a name to letters, digits, points and dashes.
fn plain(text: &str) -> String {
    let plain: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' }).collect();
    plain.trim_matches(['-', '.']).chars().take(100).collect()
}

/// One trial from the files of one run. The logs of several threads are merged.
pub fn trial(readings: Vec<FileReading>) -> ImportedTrial {
    let mut trial = ImportedTrial::default();
    for (index, reading) in readings.into_iter().enumerate() {
        trial.files.push(reading.file);
        for mut output in reading.outputs {
            output.file = index;
            trial.outputs.push(output);
        }
        trial.log = match (trial.log.take(), reading.log) {
            (Some(one), Some(other)) => Some(joined(&one, &other)),
            (one, other) => one.or(other),
        };
    }
    trial
}

/// Facts needed to judge a record that neither its origin, its facts nor its files contain.
pub fn unknown(record: &ImportRecord) -> Vec<String> {
    const DEVICES: [&str; 5] =
        ["stack.device", "stack.devices", "stack.controller", "device.class", "storage.description"];
    const SYSTEM: [&str; 4] = ["host.kernel", "kernel", "host.system", "host.distribution"];
    const FILESYSTEM: [&str; 3] = ["stack.filesystem", "wal_stack.filesystem", "filesystem"];
    const VERSION: [&str; 2] = ["postgresql.version", "postgres.version"];
    let origin = &record.origin;
    let fact = |keys: &[&str]| {
        !record.cases.is_empty() && record.cases.iter().all(|case| keys.iter().any(|key| case.facts.contains_key(*key)))
    };
    let trials: Vec<&ImportedTrial> = record.cases.iter().flat_map(|case| &case.trials).collect();
    let outputs: Vec<&ImportedOutput> = trials.iter().flat_map(|trial| &trial.outputs).collect();
    let labels: Vec<&(String, String)> = outputs.iter().flat_map(|o| &o.rows).flat_map(|row| &row.labels).collect();
    let of_files = trials.iter().flat_map(|trial| &trial.files).flat_map(|file| &file.facts);
    let printed_facts: Vec<&str> =
        outputs.iter().flat_map(|output| &output.facts).chain(of_files).map(|it| it.0.as_str()).collect();
    let is_printed = |keys: [&str; 2]| printed_facts.iter().any(|key| keys.contains(key));
    let printed = |tool: &str| outputs.iter().any(|output| output.tool.starts_with(tool));
    let dated = trials.iter().any(|trial| trial.log.as_ref().is_some_and(|log| log.span_us.is_some()))
        || labels.iter().any(|(name, value)| name == "time" && is_date(value));
    let version = origin.postgresql.is_some() || fact(&VERSION) || is_printed(["build", "postgresql.version"]);
    let wanted = [
        ("when it was measured", origin.measured.is_some() || dated || is_printed(["date", "measured"])),
        ("machine: CPUs and memory", origin.machine.is_some() || fact(&["host.machine", "host.description"])),
        ("devices, controller and their caches", origin.storage.is_some() || fact(&DEVICES)),
        (
            "operating system and kernel",
            origin.system.is_some() || fact(&SYSTEM) || is_printed(["kernel", "host.system"]),
        ),
        ("filesystem", fact(&FILESYSTEM) || printed("mount") || labels.iter().any(|(name, _)| name == "type")),
        ("mount options", fact(&["mount.options", "stack.mount_options"]) || printed("mount")),
        ("PostgreSQL's version", !printed("pgbench") || version),
        (
            "PostgreSQL's settings: fsync, synchronous_commit, wal_sync_method",
            !printed("pgbench") || fact(&["postgresql.wal_sync_method", "wal_sync_method"]),
        ),
    ];
    wanted.iter().filter(|(_, known)| !known).map(|(words, _)| (*words).to_owned()).collect()
}

/// Merges two logs of one run.
fn joined(one: &ImportedLog, other: &ImportedLog) -> ImportedLog {
    let span = |pick: fn(u64, u64) -> u64, end: fn((u64, u64)) -> u64| {
        [one.span_us, other.span_us].into_iter().flatten().map(end).reduce(pick)
    };
    ImportedLog {
        done: one.done + other.done,
        skipped: one.skipped + other.skipped,
        failed: one.failed.zip(other.failed).map(|(one, other)| one + other),
        retried: one.retried.zip(other.retried).map(|(one, other)| (one.0 + other.0, one.1 + other.1)),
        span_us: span(u64::min, |it| it.0).zip(span(u64::max, |it| it.1)),
        latency: joined_times(&one.latency, &other.latency),
        lag: one.lag.as_ref().zip(other.lag.as_ref()).map(|(one, other)| joined_times(one, other)),
        column_untold: one.column_untold || other.column_untold,
        lines_unread: one.lines_unread + other.lines_unread,
    }
}

fn joined_times(one: &ImportedTimes, other: &ImportedTimes) -> ImportedTimes {
    let mut steps: BTreeMap<u64, u64> = BTreeMap::new();
    // A distribution of part of the times does not describe all of them.
    if [one, other].iter().all(|it| it.count == 0 || !it.steps.is_empty()) {
        for (us, count) in one.steps.iter().chain(&other.steps) {
            *steps.entry(*us).or_default() += count;
        }
    }
    ImportedTimes {
        count: one.count + other.count,
        sum_us: one.sum_us.saturating_add(other.sum_us),
        most_us: one.most_us.max(other.most_us),
        steps: steps.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_tells_when_it_was_measured() {
        let unknown_of = |span_us| {
            let log = Some(ImportedLog { span_us, ..ImportedLog::default() });
            let trials = vec![ImportedTrial { log, ..ImportedTrial::default() }];
            let cases = vec![ImportedCase { trials, ..ImportedCase::default() }];
            unknown(&ImportRecord { cases, ..ImportRecord::default() }).contains(&"when it was measured".to_owned())
        };
        assert!(unknown_of(None) && !unknown_of(Some((1_403_826_719_000_002, 1_403_826_723_000_009))));
    }

    #[test]
    fn every_file_is_a_separate_case_with_a_unique_name() {
        let readings = ["a/zfs.txt.gz", "b/zfs.txt", "zfs.out", "b/zfs.log", "-", "x y.txt"].map(|name| {
            let mut reading = FileReading::default();
            reading.file.name = name.to_owned();
            reading
        });
        let names: Vec<String> = by_file(readings.into()).into_iter().map(|case| case.name).collect();
        assert_eq!(names, ["zfs", "b-zfs", "zfs.out", "b-zfs.log", "stdin", "x-y"]);
    }
}

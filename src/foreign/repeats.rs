//! Which files are repetitions of one measurement, where only a last number tells their names apart: `zfs-1.txt` and
//! `zfs-2.txt`, `zfs (1).txt`. The number may as well be of clients, versions or disks, so more must speak for it.

use super::moment;
use super::names;
use super::read as kinds;
use crate::record::imported::{ImportedOutput, ImportedTrial};
use std::collections::{BTreeMap, BTreeSet};

/// A trial with what its names tell.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) folder: String,
    /// What tells the case: `zfs-2`.
    pub(super) name: String,
    pub(super) trial: ImportedTrial,
    /// Files that tell of its machine, as [`super::group::Group::context`] has them.
    pub(super) context: Vec<usize>,
    /// Why it is taken for a trial of its case, where that may be wrong.
    pub(super) caveat: Option<String>,
}

/// Names that differ in their last number only.
type Family = BTreeMap<u32, Vec<usize>>;

/// Gives trials that are repetitions of each other one name: `zfs` to `zfs-1` and `zfs-2`. They are, where their numbers go
/// on from 0 or 1 without a hole, the word before is none that is numbered itself (`clients-1`, `disk-2`), no trial has
/// the bare name, and their tools tell how they were run, and the same. A caveat says so, and `notes` why others are not.
pub(super) fn join(trials: &mut [Named], notes: &mut Vec<String>) {
    let mut families: BTreeMap<(String, String, String), Family> = BTreeMap::new();
    for (at, it) in trials.iter().enumerate().filter(|(_, it)| !programs(&it.trial).is_empty()) {
        if let Some((base, mark, number)) = names::numbered(&it.name) {
            let key = (it.folder.clone(), base.to_owned(), mark.to_owned());
            families.entry(key).or_default().entry(number).or_default().push(at);
        }
    }
    for ((folder, base, mark), mut family) in families {
        let bare: Vec<usize> =
            (0..trials.len()).filter(|at| trials[*at].folder == folder && trials[*at].name == base).collect();
        // `x.txt` and `x (1).txt` are what a browser or a file manager makes of two files of one name.
        let first = family.keys().next().copied().unwrap_or_default();
        let is_first = mark == "()" && bare.len() == 1 && matches!(first, 1 | 2);
        if is_first {
            family.insert(first - 1, bare.clone());
        }
        let told: Vec<String> = family.values().flatten().map(|at| trials[*at].name.clone()).collect();
        if told.len() < 2 || is_numbered_itself(&base) {
            continue;
        }
        let names = told.join(", ");
        let reason = if !(is_first || bare.is_empty()) { Some(format!("{base} is there too")) } else { None };
        let case =
            if base.is_empty() { trials[family.values().flatten().copied().min().unwrap_or(0)].stem() } else { base };
        match reason.or_else(|| apart(trials, &family)) {
            Some(reason) => notes.push(format!(
                "{names} are cases of their own: {reason}; name them {case}-run1, {case}-run2 if they are repetitions of one"
            )),
            None => {
                let caveat = format!(
                    "{names} were taken as {} trials of it, as only a last number tells them apart; give them names that \
                     differ in a word if they are of different things",
                    told.len()
                );
                for at in family.values().flatten() {
                    trials[*at].name.clone_from(&case);
                    trials[*at].caveat = Some(caveat.clone());
                }
            }
        }
    }
}

impl Named {
    /// The tool's name, where a file is called by nothing but it and a number: `pgbench` of `pgbench-2.txt`.
    fn stem(&self) -> String {
        let file = self.trial.files.first().map(|file| file.name.as_str()).unwrap_or_default();
        let stem = names::name(file, self.trial.log.is_some()).stem;
        names::numbered(&stem).map_or(stem.clone(), |(base, ..)| base.to_owned())
    }
}

/// Why trials are no repetitions, as far as that is told.
fn apart(trials: &[Named], family: &Family) -> Option<String> {
    let mut of_number = family.iter();
    let (first, _) = of_number.next()?;
    if let Some((number, _)) = family.iter().find(|(_, at)| at.len() > 1) {
        return Some(format!("{number} is there twice"));
    }
    let numbers: Vec<u32> = family.keys().copied().collect();
    if *first > 1 || numbers.windows(2).any(|pair| pair[1] != pair[0] + 1) {
        return Some("their numbers do not go on from 1".to_owned());
    }
    let all: Vec<&ImportedTrial> = family.values().flatten().map(|at| &trials[*at].trial).collect();
    if all.iter().any(|trial| programs(trial) != programs(all[0])) {
        return Some("they are of different tools".to_owned());
    }
    if let Some(tool) = all.iter().find_map(|trial| silent(trial)) {
        return Some(format!("{tool} does not tell whether they were run alike"));
    }
    let of_first = settings(all[0]);
    for trial in &all[1..] {
        let other = settings(trial);
        let differs = of_first.symmetric_difference(&other).next().map(|(name, _)| name.clone());
        if let Some(name) = differs {
            return Some(format!("they differ in `{name}`"));
        }
    }
    let moments: Vec<_> = all.iter().map(|trial| moment::of(&trial.outputs, trial.log.as_ref())).collect();
    let overlap = |(at, one): (usize, &moment::Moment)| moments[at + 1..].iter().any(|other| one.lasts_with(*other));
    moments.iter().enumerate().any(overlap).then(|| "they ran at the same time".to_owned())
}

/// The programs that measured.
fn programs(trial: &ImportedTrial) -> BTreeSet<&str> {
    trial.outputs.iter().filter_map(|output| kinds::load(&output.tool)).collect()
}

/// A program that does not tell all by which two of its runs usually differ. Of pgbench that are clients, scale and
/// script, which a log alone lacks, and an old pgbench its own script's name; of pg_test_fsync and dd the place.
fn silent(trial: &ImportedTrial) -> Option<&str> {
    let tells = |output: &&ImportedOutput| match output.tool.as_str() {
        "pgbench" => {
            let has = |name: &str| output.rows.iter().flat_map(|row| &row.figures).any(|figure| figure.name == name);
            let script = output.facts.iter().find(|(name, _)| name == "transaction type");
            has("clients") && has("scale") && script.is_some_and(|(_, script)| !is_nameless(script))
        }
        // Its JSON has the options of every job.
        "fio" => true,
        _ => false,
    };
    let telling: BTreeSet<&str> =
        trial.outputs.iter().filter(tells).filter_map(|output| kinds::load(&output.tool)).collect();
    // The summary tells for the log beside it.
    let is_told = |program: &str| telling.contains(program) || program == "pgbench -l" && telling.contains("pgbench");
    programs(trial).into_iter().find(|program| !is_told(program))
}

/// `Custom query`: a script of the user's, in versions that do not name it.
fn is_nameless(script: &str) -> bool {
    script.to_lowercase().starts_with("custom")
}

/// How the tools say that they were run.
fn settings(trial: &ImportedTrial) -> BTreeSet<(String, String)> {
    const FIGURES: [&str; 7] =
        ["scale", "clients", "threads", "duration", "transactions_per_client", "max_tries", "seconds_per_test"];
    const LABELS: [&str; 4] = ["write_bytes", "script", "job", "size"];
    let mut found = BTreeSet::new();
    let is_load = |output: &&ImportedOutput| kinds::load(&output.tool).is_some();
    for output in trial.outputs.iter().filter(is_load) {
        found.extend(output.facts.iter().filter(|(name, _)| !is_of_the_moment(name)).cloned());
        for row in &output.rows {
            found.extend(row.labels.iter().filter(|(name, _)| LABELS.contains(&name.as_str())).cloned());
            let figures = row.figures.iter().filter(|figure| FIGURES.contains(&figure.name.as_str()));
            found.extend(figures.map(|figure| (figure.name.clone(), figure.value.to_string())));
        }
    }
    found
}

/// Whether a fact tells when, and not how.
fn is_of_the_moment(name: &str) -> bool {
    name.starts_with("time") || name.contains("date") || name.ends_with(" eta") || name.ends_with(" error")
}

/// What is numbered itself, sorted.
const WORDS: [&str; 59] = [
    "block",
    "blocks",
    "blocksize",
    "bs",
    "c",
    "case",
    "client",
    "clients",
    "con",
    "config",
    "connections",
    "cpu",
    "cpus",
    "db",
    "depth",
    "dev",
    "device",
    "disk",
    "disks",
    "drive",
    "gzip",
    "hdd",
    "host",
    "iodepth",
    "j",
    "job",
    "jobs",
    "level",
    "lz4",
    "machine",
    "n",
    "node",
    "numjobs",
    "nvme",
    "part",
    "pg",
    "pool",
    "postgres",
    "postgresql",
    "qd",
    "raid",
    "raidz",
    "s",
    "scale",
    "server",
    "size",
    "ssd",
    "step",
    "t",
    "tank",
    "thread",
    "threads",
    "v",
    "variant",
    "version",
    "vm",
    "wal",
    "zlib",
    "zstd",
];

/// Whether the last word is of something that is numbered: how many there were, or which one it was.
fn is_numbered_itself(base: &str) -> bool {
    let word = base.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    WORDS.binary_search(&word.as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{Sorted, cases, read};

    fn summary(clients: u32) -> String {
        format!(
            "transaction type: <builtin: TPC-B (sort of)>\nscaling factor: 10\nnumber of clients: {clients}\nnumber of transactions actually processed: 7\ntps = 100.0 (without initial connection time)\n"
        )
    }

    /// Cases of summaries of pgbench with so many clients, each with its count of trials, and what is said of all.
    fn of(names: &[(&str, u32)]) -> (Vec<(String, usize)>, Vec<String>) {
        let readings = names.iter().map(|(name, clients)| read(name, &mut summary(*clients).as_bytes()).unwrap());
        let Sorted { cases, mut notes } = cases(readings.collect(), &BTreeMap::new());
        notes.extend(cases.iter().flat_map(|case| case.caveats.clone()));
        (cases.into_iter().map(|case| (case.name, case.trials.len())).collect(), notes)
    }

    #[test]
    fn names_that_differ_in_a_last_number_are_trials_of_one_case_and_that_is_said() {
        for names in [
            ["pgbench-zfs-1.txt", "pgbench-zfs-2.txt"],
            ["zfs_1.txt", "zfs_2.txt"],
            ["zfs.0.txt", "zfs.1.txt"],
            ["zfs 01.txt", "zfs 02.txt"],
            ["zfs (1).txt", "zfs (2).txt"],
            ["zfs.txt", "zfs (1).txt"],
            ["zfs.txt", "zfs (2).txt"],
            ["zfs-run1.txt", "zfs-run2.txt"],
        ] {
            let (found, notes) = of(&[(names[0], 1), (names[1], 1)]);
            assert_eq!(found, [("zfs".to_owned(), 2)], "{names:?}");
            let is_said = notes.iter().any(|note| note.contains("were taken as 2 trials of it"));
            assert_eq!(is_said, !names[0].contains("run"), "{notes:?}");
        }
        assert_eq!(of(&[("pgbench-1.txt", 1), ("pgbench-2.txt", 1)]).0, [("pgbench".to_owned(), 2)]);
        let (found, _) = of(&[("a-1.txt", 1), ("b-1.txt", 1), ("a-2.txt", 1), ("b-2.txt", 1)]);
        assert_eq!(found, [("a".to_owned(), 2), ("b".to_owned(), 2)]);
    }

    #[test]
    fn names_that_may_differ_in_more_than_a_number_stay_cases() {
        for names in [
            ["clients-1.txt", "clients-2.txt"],
            ["disk-1.txt", "disk-2.txt"],
            ["pg-1.txt", "pg-2.txt"],
            ["zstd-1.txt", "zstd-2.txt"],
            ["pg15.txt", "pg18.txt"],
            ["a-1.txt", "b-1.txt"],
            ["run-9.1.txt", "run-9.2.txt"],
            ["2014-06-1.txt", "2014-06-2.txt"],
        ] {
            let (found, notes) = of(&[(names[0], 1), (names[1], 1)]);
            assert!(found.iter().all(|(_, trials)| *trials == 1) && notes.is_empty(), "{names:?}: {found:?} {notes:?}");
        }
        for (names, why) in [
            ([("zfs-8.txt", 1), ("zfs-16.txt", 1)], "their numbers do not go on from 1"),
            ([("zfs-1.txt", 1), ("zfs-3.txt", 1)], "their numbers do not go on from 1"),
            ([("zfs-1.txt", 1), ("zfs-2.txt", 8)], "they differ in `clients`"),
        ] {
            let (found, notes) = of(&names);
            assert!(found.iter().all(|(_, trials)| *trials == 1) && found.len() == 2, "{names:?}: {found:?}");
            assert!(notes[0].contains(why) && notes[0].contains("name them zfs-run1, zfs-run2"), "{notes:?}");
        }
        let (found, notes) = of(&[("zfs.txt", 1), ("zfs-1.txt", 1), ("zfs-2.txt", 1)]);
        assert!(found.len() == 3 && notes[0].contains("zfs is there too"), "{found:?} {notes:?}");
    }

    #[test]
    fn what_does_not_tell_how_it_was_run_is_no_repetition_by_its_number_alone() {
        let fsync = "5 seconds per test\nCompare file sync methods using one 8kB write:\n        fdatasync                       458.939 ops/sec    2179 usecs/op\n";
        let log = "0 199 2241 0 1403826720 999000\n0 200 2513 0 1403826721 123000\n";
        let without = |line: &str| summary(1).lines().filter(|it| !it.starts_with(line)).collect::<Vec<_>>().join("\n");
        for (text, tool) in [
            (fsync.to_owned(), "pg_test_fsync"),
            (log.to_owned(), "pgbench -l"),
            (without("number of clients"), "pgbench"),
            (without("scaling"), "pgbench"),
            (without("transaction type"), "pgbench"),
            (summary(1).replace("<builtin: TPC-B (sort of)>", "Custom query"), "pgbench"),
        ] {
            let of = |names: [&str; 2]| {
                let readings = names.map(|name| read(name, &mut text.as_bytes()).unwrap());
                cases(readings.into(), &BTreeMap::new())
            };
            let Sorted { cases: found, notes } = of(["option-1.txt", "option-2.txt"]);
            assert_eq!(found.len(), 2, "{text}");
            let said = format!(
                "option-1, option-2 are cases of their own: {tool} does not tell whether they were run alike; name them \
                 option-run1, option-run2 if they are repetitions of one"
            );
            assert_eq!(notes, [said]);
            assert_eq!(of(["option-run1.txt", "option-run2.txt"]).cases[0].trials.len(), 2, "{text}");
        }
    }

    #[test]
    fn the_words_that_are_numbered_are_sorted() {
        assert!(WORDS.is_sorted());
        assert!(is_numbered_itself("zstd") && is_numbered_itself("x-bs") && is_numbered_itself("x_Raid"));
        assert!(!is_numbered_itself("zfs") && !is_numbered_itself(""));
    }
}

//! What an import brings into a comparison: its figures, its trials, what it promises.

use crate::analyse::compare::findings::{RatioOutcome, Reason};
use crate::analyse::compare::side::{ConditionKind, MeasureSpread, Medium, Side, SideMeasure};
use crate::analyse::compare::{compare, from_import, from_probe};
use crate::analyse::findings::DurabilityClass;
use crate::analyse::probe::sample;
use crate::record::imported::{
    ImportRecord, ImportedCase, ImportedFigure, ImportedFile, ImportedLog, ImportedOutput, ImportedRow, ImportedTimes,
    ImportedTrial,
};

fn times(steps: &[(u64, u64)]) -> ImportedTimes {
    let most_us = steps.last().map_or(0, |(us, _)| *us);
    let (count, sum_us) = steps.iter().fold((0, 0), |(count, sum), (us, of)| (count + of, sum + us * of));
    ImportedTimes { count, sum_us, most_us, steps: steps.to_vec() }
}

fn imported(test: &str, method: &str, rate: f64) -> ImportedRow {
    let labels = [("test", test), ("write_bytes", "8192"), ("method", method)];
    ImportedRow {
        labels: labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        figures: vec![ImportedFigure {
            name: "rate".to_owned(),
            unit: "ops/s".to_owned(),
            value: rate,
            ..ImportedFigure::default()
        }],
        ..ImportedRow::default()
    }
}

/// A pgbench summary with this transaction type and this rate.
fn summary(kind: &str, tps: &str) -> ImportedOutput {
    let figure = |name: &str, unit: &str, value| ImportedFigure {
        name: name.to_owned(),
        unit: unit.to_owned(),
        value,
        ..ImportedFigure::default()
    };
    let row = ImportedRow {
        labels: vec![("part".to_owned(), "summary".to_owned())],
        figures: vec![
            figure("scale", "", 100.0),
            figure("clients", "count", 4.0),
            figure("latency_mean", "ms", 8.0),
            figure(tps, "tx/s", 500.0),
        ],
        ..ImportedRow::default()
    };
    let facts = vec![("transaction type".to_owned(), kind.to_owned()), ("query mode".to_owned(), "simple".to_owned())];
    ImportedOutput { tool: "pgbench".to_owned(), facts, rows: vec![row], ..ImportedOutput::default() }
}

fn published(facts: &[(&str, &str)], rows: Vec<ImportedRow>, version: &str) -> ImportRecord {
    let output = ImportedOutput {
        tool: "pg_test_fsync".to_owned(),
        version: Some(version.to_owned()),
        rows,
        ..ImportedOutput::default()
    };
    let iostat = ImportedOutput { tool: "iostat -x".to_owned(), ..ImportedOutput::default() };
    let trial = ImportedTrial { outputs: vec![output, iostat], ..ImportedTrial::default() };
    let facts = facts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let case = ImportedCase { name: "one".to_owned(), facts, trials: vec![trial], caveats: Vec::new() };
    ImportRecord { cases: vec![case], ..ImportRecord::default() }
}

#[test]
fn published_rows_stand_beside_those_of_a_probe() {
    let rows = vec![imported("one write", "fdatasync", 100.0), imported("not synced", "write", 9e5)];
    let record = published(&[("stack.filesystem", "zfs"), ("zfs.sync", "standard")], rows, "9.3 or 9.4");
    let shelf = from_import::sides(0, "shelf:x", &record, None);
    let mut probe = sample::honest();
    let unsynced = sample::spec(
        "not_synced.write",
        crate::record::probe::Family::NotSynced,
        "write",
        crate::record::probe::Way::None,
    );
    probe.rows.push(sample::row(unsynced, 900_000, 0));
    let found = compare(&[shelf[0].clone(), from_probe::side(1, ".", &probe)]);
    assert_eq!(found.sides[0].left_out, ["iostat -x"]);
    let comparison = found.pairs[0].rows[0].comparison.as_ref().unwrap();
    assert!((comparison.ratio - 10.0).abs() < 0.1 && comparison.low.is_none());
    assert_eq!(found.refused.iter().map(|r| r.reason).collect::<Vec<_>>(), [Reason::NotSyncedAcrossVersions]);
    assert!(found.alone.iter().all(|alone| alone.side == 1));
}

#[test]
fn zfs_with_sync_disabled_differs_in_class_from_flushing_devices() {
    let record = published(&[("zfs.sync", "disabled")], vec![imported("one write", "fdatasync", 1e5)], "9.4");
    let shelf = from_import::sides(0, "shelf:x", &record, None);
    let found = compare(&[shelf[0].clone(), from_probe::side(1, ".", &sample::honest())]);
    assert_eq!(found.refused[0].reason, Reason::OtherDurability);
    assert_eq!(found.pairs[0].rows[0].refused, Some(Reason::OtherDurability));
    assert!(!found.compared_anything());
}

#[test]
fn mount_options_that_suppress_flushes_are_recognised_in_imports() {
    let class = |facts: &[(&str, &str)]| {
        let record = published(facts, vec![imported("one write", "fdatasync", 1e5)], "9.4");
        from_import::sides(0, "x", &record, None)[0].measures[0].durability.clone().unwrap().class
    };
    let f2fs = [("stack.filesystem", "f2fs"), ("mount.options", "rw,fsync_mode=nobarrier")];
    assert_eq!(class(&f2fs), DurabilityClass::Volatile);
    assert_eq!(class(&[("mount.options", "rw, nobarrier")]), DurabilityClass::Volatile);
    assert_eq!(class(&[("stack.filesystem", "overlay"), ("mount.options", "volatile")]), DurabilityClass::Volatile);
    assert_eq!(class(&[("stack.filesystem", "ext4"), ("mount.options", "volatile")]), DurabilityClass::Unknown);
}

#[test]
fn server_settings_decide_durability_except_for_pg_test_fsync() {
    let classes = |facts: &[(&str, &str)]| {
        let mut record = published(facts, vec![imported("one write", "fdatasync", 100.0)], "15");
        record.cases[0].trials[0].outputs.push(summary("TPC-B (sort of)", "tps"));
        let side = from_import::sides(0, "x", &record, None).remove(0);
        let of = |family: &str| {
            let measure = side.measures.iter().find(|measure| measure.family == family).unwrap();
            measure.durability.as_ref().unwrap().class
        };
        let found = compare(&[side.clone(), from_probe::side(1, ".", &sample::honest())]);
        (of("pg_test_fsync/one write"), of("pgbench"), found)
    };
    for (name, class) in [("fsync", DurabilityClass::Volatile), ("synchronous_commit", DurabilityClass::Delayed)] {
        for key in [name.to_owned(), format!("postgresql.{name}")] {
            let (of_sync, of_commit, found) = classes(&[(&key, "off")]);
            assert_eq!((of_sync, of_commit), (DurabilityClass::Unknown, class), "{key}");
            assert!(found.compared_anything() && found.refused.is_empty(), "{:?}", found.refused);
            assert_eq!(found.sides[0].durability.as_ref().unwrap().class, class, "the head tells the worst");
            let caveat = found.pairs[0].caveat.as_deref().unwrap_or_default();
            assert!(caveat.contains("A unknown"), "{caveat}: it is of what is compared");
        }
    }
    let (of_sync, of_commit, _) = classes(&[("zfs.sync", "disabled")]);
    assert_eq!((of_sync, of_commit), (DurabilityClass::Volatile, DurabilityClass::Volatile));
}

#[test]
fn several_files_of_one_case_are_its_trials() {
    let rows = || vec![imported("one write", "fdatasync", 100.0)];
    let mut record = published(&[], rows(), "15");
    let mut second = record.cases[0].trials[0].clone();
    second.outputs[0].rows[0].figures[0].value = 104.0;
    record.cases[0].trials.push(second);
    let side = &from_import::sides(0, "x", &record, None)[0];
    let measure = &side.measures[0];
    assert_eq!(side.measures.len(), 1);
    assert!((measure.value - 10_400f64.sqrt()).abs() < 1e-9, "{}: the geometric mean", measure.value);
    assert!(
        matches!(&measure.spread, MeasureSpread::Trials { means, .. } if means.len() == 2) && measure.ends.is_none()
    );
}

#[test]
fn only_measurements_that_are_not_compared_are_left_out() {
    let of = |tools: &[&str], log: Option<ImportedLog>| {
        let output = |tool: &&str| match *tool {
            "summary" => summary("TPC-B (sort of)", "tps"),
            tool => ImportedOutput { tool: tool.to_owned(), ..ImportedOutput::default() },
        };
        let trial = ImportedTrial { outputs: tools.iter().map(output).collect(), log, ..ImportedTrial::default() };
        let case = ImportedCase { trials: vec![trial], ..ImportedCase::default() };
        let record = ImportRecord { cases: vec![case], ..ImportRecord::default() };
        from_import::sides(0, "x", &record, None).remove(0).left_out
    };
    let log = || Some(ImportedLog { latency: times(&[(7000, 990)]), done: 990, ..ImportedLog::default() });
    assert_eq!(of(&["summary", "pgbench -l"], log()), [""; 0], "its percentiles are compared");
    assert_eq!(of(&["pgbench -l"], log()), [""; 0]);
    assert_eq!(of(&["pgbench", "pgbench -l"], log()), ["pgbench"], "progress lines have no summary, the log is used");
    assert_eq!(of(&["summary", "pgbench -l"], None), ["pgbench -l"], "rows of a page are no log");
    assert_eq!(of(&["summary", "mount", "zfs get", "zpool get"], None), [""; 0], "they measure nothing");
    assert_eq!(of(&["summary", "vmstat", "fio"], None), ["fio", "vmstat"]);
}

#[test]
fn a_possible_lag_column_leaves_the_rate_limit_unknown() {
    let rate = |column_untold: bool| {
        let log = ImportedLog { latency: times(&[(7000, 990)]), done: 990, column_untold, ..ImportedLog::default() };
        let output = ImportedOutput { tool: "pgbench -l".to_owned(), ..ImportedOutput::default() };
        let trial = ImportedTrial { outputs: vec![output], log: Some(log), ..ImportedTrial::default() };
        let case = ImportedCase { trials: vec![trial], ..ImportedCase::default() };
        let record = ImportRecord { cases: vec![case], ..ImportRecord::default() };
        let side = from_import::sides(0, "x", &record, None).remove(0);
        let limit = side.measures[0].conditions.iter().find(|it| it.kind == ConditionKind::RateLimit).unwrap();
        limit.value.clone()
    };
    assert_eq!((rate(true), rate(false)), (None, Some("none".to_owned())));
}

#[test]
fn only_an_exact_version_counts_as_a_difference() {
    let facts = |version: &str| {
        let record = published(&[], vec![imported("one write", "fdatasync", 100.0)], version);
        from_import::sides(0, "x", &record, None).remove(0).facts
    };
    for range in ["9.5 or newer", "9.3 or 9.4", "9.6 to 13", "13 or older"] {
        assert!(!facts(range).contains_key("tool.pg_test_fsync.version"), "{range}");
    }
    assert_eq!(facts("9.1")["tool.pg_test_fsync.version"], "9.1");
}

fn command(mut output: ImportedOutput, command: &str) -> ImportedOutput {
    output.facts.push(("command".to_owned(), command.to_owned()));
    output
}

fn of_outputs(outputs: Vec<ImportedOutput>) -> Side {
    let trial = ImportedTrial { outputs, ..ImportedTrial::default() };
    let case = ImportedCase { trials: vec![trial], ..ImportedCase::default() };
    from_import::sides(0, "x", &ImportRecord { cases: vec![case], ..ImportRecord::default() }, None).remove(0)
}

#[test]
fn a_rate_in_the_command_line_is_a_condition() {
    let side = |line: &str| of_outputs(vec![command(summary("TPC-B (sort of)", "tps"), line)]);
    let free = side("pgbench -c 4 -T 60");
    for line in ["pgbench -c 4 -R100 -T 60", "pgbench --rate 2"] {
        let found = compare(&[free.clone(), Side { argument: 1, ..side(line) }]);
        assert!(!found.compared_anything(), "{line}");
        assert!(found.refused.iter().all(|it| it.reason == Reason::OtherConditions), "{line}: {:?}", found.refused);
    }
    assert!(compare(&[free.clone(), Side { argument: 1, ..side("pgbench -c 4 -j 2") }]).compared_anything());
}

#[test]
fn the_command_line_shows_where_pg_test_fsync_wrote() {
    let fsync = |line: &str| {
        let rows = vec![imported("one write", "fdatasync", 100.0)];
        command(ImportedOutput { tool: "pg_test_fsync".to_owned(), rows, ..ImportedOutput::default() }, line)
    };
    let perhaps = of_outputs(vec![fsync("pg_test_fsync -f /mnt/ram")]);
    assert_eq!(perhaps.facts["pg_test_fsync.file"], "/mnt/ram");
    assert_eq!(perhaps.measures[0].medium, Medium::Unknown);
    assert!(perhaps.caveats[0].contains("unknown whether"), "{:?}", perhaps.caveats);
    let labels = [("mount", "/mnt/ram"), ("type", "tmpfs"), ("options", "rw")];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let rows = vec![ImportedRow { labels, ..ImportedRow::default() }];
    let mounts = ImportedOutput { tool: "mount".to_owned(), rows, ..ImportedOutput::default() };
    let known = of_outputs(vec![mounts, fsync("pg_test_fsync -f /mnt/ram/x")]);
    assert_eq!((known.measures[0].medium, known.caveats.len()), (Medium::Memory, 0));
    assert_eq!(of_outputs(vec![fsync("pg_test_fsync -f /dev/shm/x")]).measures[0].medium, Medium::Memory);
    assert_eq!(of_outputs(vec![fsync("pg_test_fsync -f /data/x")]).caveats.len(), 0);
}

/// The side of a case with one trial of these rates per file.
fn of_files(files: &[(&str, f64)]) -> Side {
    let mut record = published(&[], vec![imported("one write", "fdatasync", 1.0)], "15");
    let first = record.cases[0].trials.remove(0);
    for (sha256, rate) in files {
        let mut trial = first.clone();
        let (name, sha256) = (format!("{rate}.txt"), (*sha256).to_owned());
        trial.files = vec![ImportedFile { name, sha256, ..ImportedFile::default() }];
        trial.outputs[0].rows[0].figures[0].value = *rate;
        record.cases[0].trials.push(trial);
    }
    from_import::sides(0, "x", &record, None).remove(0)
}

#[test]
fn a_copy_of_a_file_is_no_second_trial() {
    let trials = |side: &Side| match &side.measures[0].spread {
        MeasureSpread::Trials { means, .. } => means.len(),
        _ => 1,
    };
    let copied = of_files(&[("a", 100.0), ("a", 100.0), ("b", 104.0)]);
    assert!(trials(&copied) == 2 && (copied.measures[0].value - 10_400f64.sqrt()).abs() < 1e-9);
    assert!(copied.caveats[0].starts_with("100.txt is a byte-for-byte copy of another file"), "{:?}", copied.caveats);
    let once = of_files(&[("a", 100.0), ("a", 100.0)]);
    assert_eq!((trials(&once), once.measures[0].ends), (1, None));
    let others = of_files(&[("a", 100.0), ("b", 104.0)]);
    assert!(trials(&others) == 2 && others.caveats.is_empty());
    assert_eq!(trials(&of_files(&[("", 100.0), ("", 104.0)])), 2, "whose sum is not known is no copy");
}

#[test]
fn figures_identical_to_the_last_digit_give_no_interval() {
    let (a, b) = (of_files(&[("a", 100.0), ("b", 100.0)]), of_files(&[("c", 50.0), ("d", 50.0)]));
    assert_eq!((a.measures[0].ends, &a.measures[0].spread), (None, &MeasureSpread::None));
    let found = compare(&[a, Side { argument: 1, ..b }]);
    assert_eq!(found.pairs[0].rows[0].comparison.as_ref().unwrap().outcome, RatioOutcome::NoInterval);
}

#[test]
fn a_percentile_of_several_trials_covers_all_their_operations() {
    let of = |logs: &[&[(u64, u64)]]| {
        let row = ImportedRow { labels: vec![("part".to_owned(), "summary".to_owned())], ..ImportedRow::default() };
        let output = ImportedOutput { tool: "pgbench".to_owned(), rows: vec![row], ..ImportedOutput::default() };
        let log = |steps: &[(u64, u64)]| ImportedLog { latency: times(steps), ..ImportedLog::default() };
        let trial = |latencies: &&[(u64, u64)]| ImportedTrial {
            outputs: vec![output.clone()],
            log: Some(log(latencies)),
            ..ImportedTrial::default()
        };
        let case = ImportedCase { trials: logs.iter().map(trial).collect(), ..ImportedCase::default() };
        from_import::sides(0, "x", &ImportRecord { cases: vec![case], ..ImportRecord::default() }, None).remove(0)
    };
    let p99 = |side: &Side| side.measures.iter().find(|it| it.key().ends_with("latency p99")).unwrap().clone();
    // The 1089th of 1100 operations: the short trial has no more weight than its operations.
    let several = of(&[&[(10, 1000)], &[(10, 80), (900, 20)]]);
    let found = p99(&several);
    assert_eq!((found.value, &found.spread), (0.9, &MeasureSpread::Together { trials: 2, alone: Some((0.01, 0.9)) }));
    let found = compare(&[several, Side { argument: 1, ..of(&[&[(450, 100)]]) }]);
    let row = found.pairs[0].rows.iter().find(|row| row.measure.ends_with("latency p99")).unwrap();
    let comparison = row.comparison.as_ref().unwrap();
    assert_eq!((row.reference.trials, comparison.outcome), (2, RatioOutcome::NoInterval));
    assert!(comparison.how.ends_with("(1 trial vs. 2 trials, own interval 0.01 to 0.9 ms)"), "{}", comparison.how);
    assert!(found.caveats.iter().any(|it| it.contains("are those of all trials of a side merged")));
}

/// The sides of a single-trial record with these outputs.
fn sides_of(outputs: Vec<ImportedOutput>) -> Vec<Side> {
    let trials = vec![ImportedTrial { outputs, ..ImportedTrial::default() }];
    let cases = vec![ImportedCase { name: "x".to_owned(), trials, ..ImportedCase::default() }];
    from_import::sides(0, "x", &ImportRecord { cases, ..ImportRecord::default() }, None)
}

#[test]
fn server_machine_and_dataset_facts_of_both_files_are_compared() {
    let side_of = |version: &str, threads: f64, recordsize: &str, cpus: &str| {
        let mut pgbench = summary("<builtin: TPC-B (sort of)>", "tps");
        pgbench.facts.push(("server version".to_owned(), version.to_owned()));
        let text = threads.to_string();
        let figure = ImportedFigure { name: "threads".to_owned(), value: threads, text, ..ImportedFigure::default() };
        pgbench.rows[0].figures.push(figure);
        let labels = [("name", "tank"), ("property", "recordsize"), ("value", recordsize), ("source", "local")];
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let rows = vec![ImportedRow { labels, ..ImportedRow::default() }];
        let zfs = ImportedOutput { tool: "zfs get".to_owned(), rows, ..ImportedOutput::default() };
        let facts = vec![("cpus".to_owned(), cpus.to_owned())];
        let iostat = ImportedOutput { tool: "iostat".to_owned(), facts, ..ImportedOutput::default() };
        sides_of(vec![pgbench, zfs, iostat]).remove(0)
    };
    let sides = vec![side_of("13.22", 4.0, "8K", "2"), side_of("18.1", 2.0, "128K", "9")];
    let found = compare(&sides);
    let differ: Vec<&str> = found.facts_that_differ.iter().map(|fact| fact.key.as_str()).collect();
    assert_eq!(differ, ["host.cpus", "postgresql.version", "workload.pgbench.threads", "zfs.recordsize"]);
}

#[test]
fn a_tools_reported_failure_is_a_caveat_of_its_side() {
    let mut outputs: Vec<ImportedOutput> = (0..3000).map(|_| summary("<builtin: TPC-B (sort of)>", "tps")).collect();
    outputs[1].notes.push("line 9: Run was aborted".to_owned());
    outputs[2].rows[0].figures.push(ImportedFigure {
        name: "failed".to_owned(),
        value: 7.0,
        text: "7".to_owned(),
        ..ImportedFigure::default()
    });
    let sides = sides_of(outputs);
    assert_eq!((sides.len(), sides[0].caveats.len()), (3000, 0));
    assert_eq!(sides[1].caveats, ["line 9: Run was aborted"]);
    assert_eq!(sides[2].caveats, ["pgbench reports 7 failed transactions"]);
}

#[test]
fn summaries_of_pgbench_have_one_key_over_its_versions() {
    let side = |kind: &str, tps: &str| {
        let log = ImportedLog { latency: times(&[(7000, 990), (20_000, 10)]), done: 1000, ..ImportedLog::default() };
        let trial = ImportedTrial { outputs: vec![summary(kind, tps)], log: Some(log), ..ImportedTrial::default() };
        let case = ImportedCase { trials: vec![trial], ..ImportedCase::default() };
        from_import::sides(0, "x", &ImportRecord { cases: vec![case], ..ImportRecord::default() }, None).remove(0)
    };
    let (old, new) = (side("TPC-B (sort of)", "tps_excluding_connecting"), side("<builtin: TPC-B (sort of)>", "tps"));
    let keys = |side: &Side| side.measures.iter().map(SideMeasure::key).collect::<Vec<_>>();
    assert_eq!(keys(&old), keys(&new));
    assert_eq!(keys(&new)[0], "pgbench/tpcb-like/scale 100/clients 4/tps");
    assert_eq!((new.measures[1].value, new.measures[1].unit.as_str()), (8.0, "ms"));
    let p99 = new.measures.iter().find(|measure| measure.key().ends_with("latency p99")).unwrap();
    assert_eq!(p99.value, 7.0);
    let including = side("TPC-B (sort of)", "tps_including_connecting");
    let refused = compare(&[new, Side { argument: 1, ..including }]).refused;
    assert_eq!(refused[0].reason, Reason::OtherConditions, "{refused:?}");
}

#[test]
fn a_rate_beyond_any_storage_wins_against_nothing_durable() {
    let side = |place, rate| {
        let record = published(&[], vec![imported("one write", "fdatasync", rate)], "15");
        from_import::sides(place, "x", &record, None).remove(0)
    };
    let (slow, memory) = (side(0, 8877.0), side(1, 962_756.0));
    assert_eq!(memory.measures[0].durability.as_ref().unwrap().class, DurabilityClass::Volatile);
    let found = compare(&[slow.clone(), memory]);
    assert_eq!((found.refused[0].reason, found.compared_anything()), (Reason::OtherDurability, false));
    assert!(
        found.refused[0].words.contains("962 756 per second, faster than any known durable storage"),
        "{}",
        found.refused[0].words
    );
    assert!(compare(&[slow, side(1, 9000.0)]).compared_anything(), "what is known of neither may be the same");
}

#[test]
fn the_logs_of_several_threads_are_one_side() {
    let output = || ImportedOutput { tool: "pgbench -l".to_owned(), ..ImportedOutput::default() };
    let log = ImportedLog { latency: times(&[(7000, 990), (20_000, 10)]), done: 1000, ..ImportedLog::default() };
    let trial = ImportedTrial { outputs: vec![output(), output()], log: Some(log), ..ImportedTrial::default() };
    let case = ImportedCase { trials: vec![trial], ..ImportedCase::default() };
    let record = ImportRecord { cases: vec![case], ..ImportRecord::default() };
    let sides = from_import::sides(0, "x", &record, None);
    assert_eq!((sides.len(), sides[0].left_out.len()), (1, 0));
    assert!(sides[0].measures.iter().any(|measure| measure.key().ends_with("latency p99")));
}

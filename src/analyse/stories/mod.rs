//! Whole runs through the analysis: headlines, rankings, what is said of runs in which things went wrong.

mod cautions;
pub(crate) mod columns;
mod disturbed;
mod durability;
mod effects;
mod layers;
mod length;
mod looks;
mod power_cuts;
mod ranks;
mod rate;
pub(crate) mod story;
mod syncs;
mod table;
pub(crate) mod windows;

use crate::analyse::findings::{CostCounter, DurabilityClass, Findings, PairOutcome, TrialKey};
use crate::analyse::stories::story::{Act, Story, first_device};
use crate::analyse::trial::input::Seconds;
use crate::record::columns::{CLIENT_DONE, CPU_TIMES};
use crate::record::counts::Reported;
use crate::record::facts::{Fits, HostFacts};
use crate::record::trial::{Gap, WaitCount, WaitFigures};
use crate::stats::simulation::Noise;
use rand::Rng;

fn labels(findings: &Findings, ranking: usize) -> Vec<(DurabilityClass, u32, String)> {
    let classes = &findings.rankings[ranking].classes;
    classes.iter().flat_map(|c| c.rows.iter().map(|row| (c.class, row.rank, row.label.clone()))).collect()
}

#[test]
fn the_fastest_safe_stack_wins_over_a_faster_volatile_one() {
    let found = Story::of(3, Some("ext4"))
        .with(&Act::on("ext4").tps(1000.0))
        .with(&Act::on("xfs").tps(1200.0))
        .with(&Act::on("btrfs").tps(600.0))
        .with(&Act::in_memory().tps(5000.0))
        .findings();
    assert!(
        found.headline.starts_with(
            "On this machine (tpcb, clients=16) xfs is the fastest stack whose commits wait for a flush: 1.2"
        ),
        "{}",
        found.headline
    );
    assert!(found.headline.contains("; btrfs is slower. tmpfs (5.07 times ext4)"), "{}", found.headline);
    assert!(found.headline.ends_with("is faster, but may lose everything on power loss."), "{}", found.headline);
    use DurabilityClass::{Flushed, Volatile};
    let ranks = labels(&found, 0);
    let ranks: Vec<_> = ranks.iter().map(|(class, rank, label)| (*class, *rank, label.as_str())).collect();
    assert_eq!(ranks, [(Flushed, 1, "xfs"), (Flushed, 2, "ext4"), (Flushed, 3, "btrfs"), (Volatile, 1, "tmpfs")]);
    let tmpfs = &found.rankings[0].classes[1].rows[0];
    let comparison = tmpfs.comparison.as_ref().unwrap();
    assert_eq!(comparison.caveat.as_deref(), Some("different durability: volatile vs. flushed"));
    assert_eq!(comparison.method, "paired over 3 blocks");
    assert!(comparison.outcome.differs());
    assert_eq!(found.rankings[0].unit, "tps");
}

#[test]
fn the_baseline_itself_can_win() {
    let found = Story::of(3, Some("ext4")).with(&Act::on("ext4").tps(1500.0)).with(&Act::on("xfs")).findings();
    assert!(found.headline.contains("ext4 is the fastest stack: xfs is at 0.67"), "{}", found.headline);
    assert!(found.headline.contains(" times ext4 ("), "{}", found.headline);
    let ext4 = &found.rankings[0].classes[0].rows[0];
    assert!(ext4.comparison.is_none());
}

#[test]
fn equal_stacks_share_the_first_rank_without_a_winner() {
    let found = Story::of(3, Some("ext4")).with(&Act::on("ext4")).with(&Act::on("xfs")).findings();
    assert!(
        found.headline.ends_with("(tpcb, clients=16) xfs and ext4 are the same within 5 % (smallest detectable difference at 80 % power: 3.0 %); xfs is 1.011 times ext4 (0.987 to 1.035)."),
        "{}",
        found.headline
    );
    assert!(!found.headline.contains(" = "), "{}", found.headline);
    assert!(labels(&found, 0).iter().all(|(_, rank, _)| *rank == 1));
    let rows = &found.rankings[0].classes[0].rows;
    assert!(rows.iter().filter_map(|row| row.comparison.as_ref()).all(|comparison| !comparison.outcome.differs()));
}

#[test]
fn two_equal_leaders_beat_a_slower_third() {
    let found = Story::of(3, Some("btrfs"))
        .with(&Act::on("ext4").tps(1000.0))
        .with(&Act::on("xfs").tps(1001.0))
        .with(&Act::on("btrfs").tps(500.0))
        .findings();
    assert!(
        found.headline.contains("xfs and ext4 are the fastest stacks, the same within 5 % ("),
        "{}",
        found.headline
    );
    assert!(found.headline.ends_with("; btrfs is slower."), "{}", found.headline);
}

#[test]
fn tied_leaders_have_their_ratio_with_its_interval() {
    let found = Story::of(3, Some("btrfs"))
        .with(&Act::on("ext4").tps(1000.0))
        .with(&Act::on("xfs").tps(1001.0))
        .with(&Act::on("btrfs").tps(500.0))
        .findings();
    let rows = &found.rankings[0].classes[0].rows;
    let (one, other) = (&rows[0], &rows[1]);
    assert_eq!((one.rank, other.rank, rows[2].rank), (1, 1, 3));
    let ratio = format!("; {} is {:.2}", one.label, one.rate.value / other.rate.value);
    let (_, told) = found.headline.split_once(&ratio).unwrap_or_else(|| panic!("{ratio}: {}", found.headline));
    assert!(told.contains(&format!(" times {} (0.", other.label)) && told.contains(" to 1."), "{}", found.headline);
}

#[test]
fn a_ratio_beyond_a_factor_of_ten_is_undecided_without_figures() {
    let mut story = Story::of(3, Some("ext4")).with(&Act::on("ext4")).with(&Act::on("xfs"));
    for trial in &mut story.trials {
        let is_xfs = trial.record.case.stack.name == "xfs";
        let times = if is_xfs { [0.02, 9.0, 1.0][trial.record.trial as usize - 1] } else { 1.0 };
        let done = &mut trial.record.counts.as_mut().unwrap().measures[0].done;
        *done = done.map(|done| (done as f64 * times) as u64);
    }
    let found = story.findings();
    let rows = &found.rankings[0].classes[0].rows;
    let comparison = rows.iter().find_map(|row| row.comparison.as_ref()).unwrap();
    assert!(comparison.ratio.is_beyond_use() && comparison.outcome == PairOutcome::Undecided, "{comparison:?}");
    assert!(found.answer.answer.contains("it is undecided which of"), "{}", found.headline);
    assert!(!found.answer.answer.contains(" times "), "{}", found.headline);
}

#[test]
fn a_margin_set_by_the_seconds_of_the_trials_says_so() {
    let shown = |are_alike: bool| {
        let mut story = Story::of(3, Some("ext4")).with(&Act::on("ext4")).with(&Act::on("xfs"));
        for case in story.trials.chunks_mut(3).filter(|_| are_alike) {
            let (first, others) = case.split_first_mut().unwrap();
            for other in others {
                (other.record.counts, other.seconds) = (first.record.counts.clone(), first.seconds.clone());
            }
        }
        let found = story.findings();
        let decision = found.rankings[0].classes[0].decision.clone().unwrap();
        assert!(decision.detectable_ratio.unwrap() > 1.0, "{decision:?}");
        [decision.sentence, found.headline].map(|text| text.contains(" %, set by the noise within trials"))
    };
    assert_eq!((shown(true), shown(false)), ([true; 2], [false; 2]));
}

#[test]
fn one_figure_per_operation_has_one_value_everywhere() {
    // Trials of unlike length and cost: pooled, the first would weigh most. One case lacks a block.
    let mut story =
        Story::of(4, Some("ext4")).with(&Act::on("ext4")).with(&Act::on("xfs").tps(700.0).trials(&[1, 2, 4]));
    for trial in &mut story.trials {
        let number = u64::from(trial.record.trial);
        let done = trial.seconds.counts(&CLIENT_DONE).unwrap();
        let sums: Vec<u64> = (0..done.rows())
            .scan(0, |sum, row| {
                *sum += done.at(row).unwrap_or(0) * if number == 1 { 3 } else { 1 };
                Some(*sum)
            })
            .collect();
        let rows = sums.len();
        let counter = |each: u64| sums.iter().map(|sum| sum * each * number).collect::<Vec<u64>>();
        let costs =
            [("pg_wal_bytes", 500), ("dev_vda_writes", 2), ("dev_vda_write_bytes", 9_000), ("cpu_user_ns", 70_000)];
        let steady = ["cpu_nice_ns", "cpu_system_ns", "cpu_irq_ns", "cpu_softirq_ns", "others_cpu_ns"];
        trial.seconds.retain(|name| costs.iter().all(|(cost, _)| *cost != name));
        for (name, each) in costs {
            trial.seconds.push_counts(name, counter(each), &vec![true; rows]);
        }
        for name in steady {
            trial.seconds.push_counts(name, vec![0; rows], &vec![true; rows]);
        }
    }
    let found = story.findings();
    let compared = &found.rankings[0].counters;
    let mut known = 0;
    for case in &found.cases {
        let strata = case.strata.as_ref().unwrap();
        let device = &strata.devices[0];
        let shown = [
            (CostCounter::WalBytes, strata.wal_bytes),
            (CostCounter::DeviceWrites, device.writes),
            (CostCounter::DeviceBytes, device.write_bytes),
            (CostCounter::CpuUs, strata.cpu_us),
        ];
        assert_eq!(strata.at_stack_devices.as_ref().unwrap().writes, device.writes);
        for (counter, shown) in shown {
            let mut rows = compared.iter().filter(|one| one.counter == counter).flat_map(|one| &one.rows);
            let row = rows.find(|row| row.case == case.id).unwrap_or_else(|| panic!("{counter:?}"));
            assert_eq!((row.figure.trials, shown), (3, Some(row.figure.value)), "{counter:?} of {}", case.id);
            known += 1;
        }
    }
    assert_eq!(known, 8);
    // Of the trials 1, 2 and 4, the first with three times the work.
    let wal = found.cases[0].strata.as_ref().unwrap().wal_bytes.unwrap();
    assert!((wal / (500.0 * (3.0 * 2.0 * 4.0f64).cbrt()) - 1.0).abs() < 1e-9, "{wal}");
}

#[test]
fn single_trials_prove_nothing_and_the_headline_says_so() {
    let found = Story::of(1, Some("ext4")).with(&Act::on("ext4")).with(&Act::on("xfs").tps(3000.0)).findings();
    assert!(found.headline.contains("undecided"), "{}", found.headline);
    let comparison = found.rankings[0].classes[0].rows[0].comparison.clone().unwrap();
    assert!(comparison.ratio.low.is_none() && !comparison.outcome.differs());
    assert_eq!(comparison.method, "no interval: one of the two has a single trial");
    assert!(found.cautions.iter().any(|caution| caution.text.contains("one trial per case cannot separate cases")));
    assert!(found.cases[0].cautions.iter().any(|caution| caution.starts_with("a single trial")));
    assert_eq!(found.cases[0].measures[0].rate.unwrap().low, None);
}

#[test]
fn one_case_alone_is_reported_without_a_comparison() {
    let found = Story::of(3, None).with(&Act::on("ext4")).findings();
    assert!(found.headline.contains("only ext4 was measured: 99"), "{}", found.headline);
    assert!(found.headline.ends_with(" tps (981 to 1011); nothing to compare it with."), "{}", found.headline);
}

#[test]
fn without_a_baseline_the_fastest_is_set_against_the_next() {
    let found = Story::of(3, None).with(&Act::on("ext4")).with(&Act::on("xfs").tps(1400.0)).findings();
    assert!(found.headline.contains("xfs is the fastest stack: 1.4"), "{}", found.headline);
    assert!(found.rankings[0].classes[0].rows.iter().all(|row| row.comparison.is_none()));
}

#[test]
fn only_volatile_stacks_are_not_called_a_choice() {
    let found = Story::of(3, None).with(&Act::in_memory()).findings();
    assert_eq!(found.rankings[0].classes[0].class, DurabilityClass::Volatile);
    let nosync = Act::on("ext4").setting("fsync", "off").tps(700.0);
    let found = Story::of(3, None).with(&Act::in_memory()).with(&nosync).findings();
    assert!(found.headline.contains("tmpfs is the fastest stack without durability: 1.4"), "{}", found.headline);
    assert!(found.headline.ends_with("a power cut may lose everything, and nothing safer was measured."));
}

#[test]
fn a_volatile_stack_that_is_not_faster_is_told_so() {
    let found = Story::of(3, Some("ext4")).with(&Act::on("ext4")).with(&Act::in_memory()).findings();
    assert!(
        found.headline.ends_with(". tmpfs is not shown to be faster and may lose everything on power loss."),
        "{}",
        found.headline
    );
}

#[test]
fn the_most_clients_decide_and_another_winner_elsewhere_is_named() {
    let found = Story::of(3, Some("ext4"))
        .with(&Act::on("ext4").clients(1).tps(900.0))
        .with(&Act::on("xfs").clients(1).tps(300.0))
        .with(&Act::on("ext4").clients(16).tps(1000.0))
        .with(&Act::on("xfs").clients(16).tps(2000.0))
        .findings();
    let titles: Vec<&str> = found.rankings.iter().map(|ranking| ranking.title.as_str()).collect();
    assert_eq!(titles, ["tpcb, clients=16", "tpcb, clients=1"]);
    assert!(found.headline.starts_with("On this machine (tpcb, clients=16) xfs is the fastest"), "{}", found.headline);
    assert!(found.headline.ends_with(" tpcb, clients=1: ext4 is ahead."), "{}", found.headline);
}

#[test]
fn full_cpus_are_a_caution_and_no_judgment_on_storage() {
    let mut act = Act::on("xfs").tps(2000.0);
    act.cpu_busy = 0.97;
    let found = Story::of(3, Some("ext4")).with(&Act::on("ext4")).with(&act).findings();
    assert!(found.headline.contains(" times ext4 (") && found.answer.notes.is_empty(), "{}", found.headline);
    let said = "CPUs were 97 % busy: stacks may differ by their CPU cost";
    assert_eq!(found.cases[1].cautions[0], said);
    assert_eq!(found.cases[1].backend_time.as_ref().unwrap().sentence, "the CPUs were 97 % busy");
}

/// Samples of which this share waited for the WAL.
fn waiting(share: u64) -> Option<WaitFigures> {
    let wait = |class: &str, event: &str, count| WaitCount { class: class.to_owned(), event: event.to_owned(), count };
    let waits = vec![wait("IO", "WALSync", share), wait("CPU", "CPU", 100 - share)];
    Some(WaitFigures { samples: 10, per_second: 10, backends: 100, waits, ..WaitFigures::default() })
}

#[test]
fn the_headline_has_the_storage_share_of_backend_time() {
    let mut act = Act::on("ext4");
    act.waits = waiting(39);
    let alone = Story::of(3, None).with(&act).findings();
    let share = "39 % of backend time waits for storage (39 to 39)";
    assert_eq!(alone.cases[0].backend_time.as_ref().unwrap().sentence, share);
    assert!(alone.headline.ends_with(&format!(" ext4: {share}.")), "{}", alone.headline);
    assert_eq!(alone.cases[0].cautions, Vec::<String>::new());
    let memory = Act { waits: waiting(1), ..Act::in_memory().tps(2360.0) };
    let found = Story::of(3, Some("ext4")).with(&act).with(&memory).findings();
    let time = found.cases[0].backend_time.as_ref().unwrap();
    assert!(time.sentence.starts_with(&format!("{share}; on tmpfs the same settings ran at 2.3")), "{}", time.sentence);
    let in_memory = time.in_memory.as_ref().unwrap();
    assert_eq!((in_memory.case.as_str(), in_memory.stack.as_str()), ("tmpfs-tpcb-c16", "tmpfs"));
    assert!(in_memory.ratio.low.unwrap() > 2.2, "{in_memory:?}");
    assert_eq!(found.cases[1].backend_time.as_ref().unwrap().in_memory, None);
    let other = Act { waits: waiting(1), ..Act::in_memory().clients(4) };
    let found = Story::of(3, Some("ext4")).with(&act).with(&other).findings();
    assert_eq!(found.cases[0].backend_time.as_ref().unwrap().in_memory, None, "with 4 clients it is not the same");
}

#[test]
fn a_run_that_built_nothing_reports_its_first_reason() {
    let found = Story::of(2, Some("ext4"))
        .with_failed(&Act::on("ext4"), "mkfs.ext4 not found")
        .with_failed(&Act::on("xfs"), "mkfs.xfs not found")
        .findings();
    assert_eq!(found.headline, "Nothing was measured. First reason (ext4): mkfs.ext4 not found.");
    assert!(found.rankings.is_empty() && found.trials.is_empty());
    assert_eq!(found.not_run.len(), 2);
    assert_eq!((found.run.trials_planned, found.run.trials_measured, found.run.trials_not_run), (4, 0, 4));
    assert_eq!(found.cases[0].durability.reason, "not measured");
}

#[test]
fn a_log_of_many_lines_never_becomes_the_headline() {
    let log = "initdb failed:\nDATA in /run/pgstrata/1/data\nFATAL: no space left";
    let found = Story::of(2, Some("ext4")).with_failed(&Act::on("ext4"), log).findings();
    assert_eq!(found.answer.answer, "Nothing was measured.");
    assert!(found.answer.notes[0].ends_with(": initdb failed."), "{:?}", found.answer);
    assert_eq!(found.not_run[0].reason, log, "the whole log stands with the trial");
    let output = "own.sql (line 5): pgbench failed with exit code 2; output:\n  pgbench: error: no column m\nat 1";
    let found = Story::of(2, Some("ext4")).with_failed(&Act::on("ext4"), output).findings();
    let end = "own.sql (line 5): pgbench failed with exit code 2; output: pgbench: error: no column m.";
    assert!(found.answer.notes[0].ends_with(end), "{:?}", found.answer);
}

#[test]
fn a_run_that_has_only_begun_says_what_is_left() {
    let mut story = Story::of(2, None).with(&Act::on("ext4"));
    story.input.pending = story.input.run.order.clone();
    story.trials.clear();
    story.input.wall_us = None;
    let found = story.findings();
    assert_eq!(found.headline, "Nothing has been measured yet: no trial has run.");
    assert_eq!(found.not_run[0].trials, [1, 2]);
    assert_eq!(found.run.measured_share, None);
    assert!(found.cautions[0].text.contains("the run is not complete"));
}

#[test]
fn a_damaged_trial_is_counted_apart_from_those_not_run() {
    let mut story = Story::of(2, None).with(&Act::on("ext4"));
    let lost = story.trials.pop().unwrap().record;
    let key = TrialKey { case: lost.case.id, trial: lost.trial };
    story.input.damaged = vec![(key, "latency.hist is not what was stored".to_owned())];
    let found = story.findings();
    let run = &found.run;
    assert_eq!((run.trials_measured, run.trials_not_run, run.trials_damaged), (1, 0, 1));
    assert_eq!(found.not_run[0].reason, "damaged, left out: latency.hist is not what was stored");
}

#[test]
fn a_case_missing_a_block_is_paired_over_the_others() {
    let found =
        Story::of(3, Some("ext4")).with(&Act::on("ext4")).with(&Act::on("xfs").tps(2000.0).trials(&[1, 3])).findings();
    let comparison = found.rankings[0].classes[0].rows[0].comparison.clone().unwrap();
    assert_eq!((comparison.method.as_str(), comparison.ratio.trials), ("paired over 2 blocks", 2));
    assert_eq!(found.cases[1].cautions, ["measured in 2 of 3 blocks"]);
    assert_eq!(found.cautions[0].cases, ["xfs-tpcb-c16"]);
}

#[test]
fn sync_methods_are_ranked_each_and_after_the_server() {
    let found = Story::of(3, Some("ext4"))
        .with(&Act::sync_on("ext4").tps(300.0))
        .with(&Act::sync_on("xfs").tps(300.0))
        .with(&Act::on("ext4"))
        .with(&Act::on("xfs"))
        .findings();
    let titles: Vec<&str> = found.rankings.iter().map(|ranking| ranking.title.as_str()).collect();
    assert_eq!(titles[0], "tpcb, clients=16");
    assert_eq!(titles[1], "sync, fdatasync, clients=1");
    assert_eq!((titles.len(), found.rankings[1].unit.as_str()), (4, "ops/s"));
    let sync_case = &found.cases[0];
    assert!(sync_case.steadiness.is_none(), "methods take turns: their seconds are not alike");
    assert!(sync_case.strata.is_none(), "methods take turns: what reached the devices is not one operation's");
}

#[test]
fn nothing_is_ranked_on_an_emulated_cpu() {
    let act =
        |stack| Act::on(stack).touched(|record| record.host.cpu_model = Some("QEMU TCG CPU version 2.5+".to_owned()));
    let acts = ["ext4", "xfs"].map(act);
    let found = Story::of(3, Some("ext4")).with(&acts[0]).with(&acts[1]).findings();
    assert!(found.rankings.is_empty(), "{:?}", found.rankings);
    assert!(found.headline.contains("Emulated CPU"), "{}", found.headline);
    let strata = found.cases[0].strata.as_ref().unwrap();
    let own = strata.at_stack_devices.as_ref().unwrap();
    assert_eq!((own.node.as_str(), own.flushes), (strata.devices[0].node.as_str(), strata.devices[0].flushes));
}

#[test]
fn what_disturbs_a_case_is_said_beside_it() {
    let act = Act::on("ext4").touched(|record| {
        let data = record.data.as_mut().unwrap();
        (data.fits, data.database_bytes) = (Fits::SharedBuffers, 100 << 20);
        record.stack.as_mut().unwrap().trials_before = record.trial - 1;
        first_device(record).scheduler = Some(format!("s{}", record.trial % 2));
        record.telemetry_cpu_us = Some(6_000_000);
        let counts = record.counts.as_mut().unwrap();
        counts.measures[0].failed = 3;
        let done = if record.trial == 2 { 10 } else { counts.measures[0].done.unwrap() };
        counts.reported = Some(Reported { done, ..Reported::default() });
        let reason = "no such file".to_owned();
        record.gaps.push(Gap { source: "psi".to_owned(), second: None, rows: 60, reason });
        let reason = "late".to_owned();
        record.gaps.push(Gap { source: "clock".to_owned(), second: Some(7), rows: 2, reason });
    });
    let mut story = Story::of(3, None).with(&act);
    story.trials[2].record.host = HostFacts { swap_used_bytes: Some(1 << 20), ..HostFacts::default() };
    let found = story.findings();
    let wanted = [
        "data (100 MiB) fit into shared_buffers: no reads reached storage",
        "transactions: 9 of 179 279 operations failed",
        "trial 2, transactions: tool reports 10, pgstrata counted 59",
        "clock missed 6 seconds: late",
        "its trials differ in the scheduler of vda below the data: s1; s0",
        "trials 2, 3 ran on a used stack (earlier trials on it: up to 2)",
        "telemetry used 10 % of one CPU",
    ];
    for start in wanted {
        assert!(found.cases[0].cautions.iter().any(|c| c.starts_with(start)), "{start}: {:?}", found.cases[0].cautions);
    }
    assert_eq!(found.cases[0].cautions.len(), wanted.len());
    for whole in ["no psi in any trial: no such file", "1 MiB of swap in use when the run began"] {
        assert!(found.cautions.iter().any(|c| c.text == whole && c.cases.is_empty()), "{:?}", found.cautions);
    }
}

#[test]
fn a_measured_trial_without_any_row_or_figure_is_survived() {
    let mut story = Story::of(2, Some("ext4")).with(&Act::on("ext4")).with(&Act::on("xfs"));
    for trial in &mut story.trials {
        trial.seconds = Seconds::default();
        trial.latencies.clear();
        if trial.record.trial == 1 {
            trial.record.counts = None;
        }
    }
    let found = story.findings();
    assert_eq!(found.trials.len(), 4);
    assert!(found.trials.iter().all(|trial| trial.throughput.is_none() && trial.telemetry.is_empty()));
    assert_eq!(found.cases[0].steadiness, None);
    assert_eq!(found.cases[0].strata, None);
}

#[test]
fn a_case_that_did_nothing_has_figures_without_infinities() {
    let found = Story::of(3, Some("ext4")).with(&Act::on("ext4").tps(0.0)).with(&Act::on("xfs").tps(0.0)).findings();
    assert_eq!(found.cases[0].measures[0].rate.unwrap().value, 0.0);
    assert!(found.rankings[0].classes.iter().flat_map(|class| &class.rows).all(|row| row.comparison.is_none()));
}

#[test]
fn gaps_and_resets_never_put_a_nan_into_the_findings() {
    let mut rng = Noise::seeded(4).rng();
    for _ in 0..60 {
        let mut story = Story::of(2, Some("ext4")).with(&Act::on("ext4")).with(&Act::on("xfs"));
        for trial in &mut story.trials {
            let rows = 1 + rng.random::<u32>() as usize % 12;
            let mut seconds = Seconds::new(rows);
            let columns = CPU_TIMES.iter().map(|column| column.name.to_owned());
            let more = ["client_done", "client_latency_us_max", "time_us", "dev_vda_writes", "dev_vda_write_bytes"];
            let more = more.into_iter().chain(["dev_vda_flushes", "dev_vda_busy_ms", "pg_wal_bytes", "pg_wal_records"]);
            for name in columns.chain(more.map(str::to_owned)) {
                let values: Vec<u64> = (0..rows).map(|_| rng.random::<u64>() >> (rng.random::<u32>() % 64)).collect();
                let values = if name == "client_done" { values.iter().map(|v| v % 5000).collect() } else { values };
                let present: Vec<bool> = (0..rows).map(|_| rng.random::<u32>() % 4 > 0).collect();
                seconds.push_counts(name, values, &present);
            }
            trial.seconds = seconds;
        }
        assert_eq!(story.findings().trials.len(), 4);
    }
}

#[test]
fn only_the_first_500_trials_have_charts_over_time() {
    let act = |stack| Act { seconds: 5, ..Act::on(stack) };
    let found = Story::of(260, None).with(&act("ext4")).with(&act("xfs")).findings();
    let charted: Vec<u32> =
        found.trials.iter().filter(|trial| trial.throughput.is_some()).map(|trial| trial.trial).collect();
    assert_eq!((found.trials.len(), charted.len(), charted.iter().max()), (520, 500, Some(&250)));
    assert!(found.trials.iter().all(|trial| trial.rate.is_some() && trial.telemetry.is_empty() == (trial.trial > 250)));
    let said = found.cautions.iter().filter(|caution| caution.text.contains("the first 500 of 520 trials")).count();
    assert_eq!(said, 1, "{:?}", found.cautions);
}

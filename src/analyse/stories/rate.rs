//! Runs at a fixed rate: operations per second are the same for all, so latency decides. Also runs so fast that not
//! every operation is logged.

use crate::analyse::findings::{Estimate, Findings, RankedBy};
use crate::analyse::stories::story::{Act, Story};
use crate::analyse::stories::windows::three_cycles;
use crate::record::trial::TrialRecord;

/// tpcb at 500 transactions per second with a limit of 20 ms.
fn at_rate(stack: &str, latency_us: u64) -> Act {
    Act { latency_us, rate: Some((500.0, 20_000)), unsteady: 0.01, ..Act::on(stack).tps(500.0) }
}

fn order(found: &Findings, ranking: usize) -> Vec<(u32, &str)> {
    found.rankings[ranking].classes[0].rows.iter().map(|row| (row.rank, row.label.as_str())).collect()
}

#[test]
fn at_a_fixed_rate_the_lowest_p99_wins() {
    let story = Story::of(3, Some("ext4")).with(&at_rate("ext4", 4_000)).with(&at_rate("xfs", 2_000));
    let found = story.with(&at_rate("btrfs", 7_000)).findings();
    let kinds: Vec<(RankedBy, &str)> =
        found.rankings.iter().map(|ranking| (ranking.by, ranking.unit.as_str())).collect();
    assert_eq!(kinds, [(RankedBy::Latency, "ms"), (RankedBy::InTime, "%")]);
    assert_eq!(order(&found, 0), [(1, "xfs"), (2, "ext4"), (3, "btrfs")]);
    let start =
        "On this machine (tpcb, clients=16, p99 latency at 500 tps) xfs has the lowest latency of the stacks: 0.";
    assert!(found.headline.starts_with(start), "{}", found.headline);
    assert!(found.headline.ends_with("); btrfs is slower."), "{}", found.headline);
    let xfs = &found.rankings[0].classes[0].rows[0];
    assert!((3.9..4.2).contains(&xfs.rate.value) && xfs.comparison.as_ref().unwrap().ratio.value < 0.55, "{xfs:?}");
    assert!(found.rankings[1].title.ends_with(", transactions within 20 ms at 500 tps"), "{}", found.rankings[1].title);
    assert_eq!(order(&found, 1), [(1, "ext4"), (1, "xfs"), (1, "btrfs")]);
    assert_eq!(found.rankings[1].classes[0].rows[0].rate.value, 100.0);
}

#[test]
fn a_p99_beside_its_baseline_has_the_interval_and_outcome_of_the_rank() {
    let story = Story::of(3, Some("ext4")).with(&at_rate("ext4", 4_000)).with(&at_rate("xfs", 2_000));
    let found = story.with(&at_rate("btrfs", 7_000)).findings();
    for row in found.rankings[0].classes[0].rows.iter().filter(|row| row.label != "ext4") {
        let case = found.cases.iter().find(|case| case.id == row.case).unwrap();
        let p99 = case.measures[0].latency.as_ref().unwrap().percentile("p99").unwrap();
        let (ranked, beside) = (row.comparison.as_ref().unwrap(), p99.comparison.as_ref().unwrap());
        assert_eq!((beside.outcome, beside.ratio.trials), (ranked.outcome, 3));
        let ends = |of: &Estimate| [of.value, of.low.unwrap(), of.high.unwrap()].map(|end| format!("{end:.9}"));
        assert_eq!(ends(&beside.ratio), ends(&ranked.ratio), "{}", row.label);
    }
}

#[test]
fn the_share_in_time_decides_where_p99_was_skipped() {
    let swamped = Act { skipped: 0.05, ..at_rate("btrfs", 15_000) };
    let found = Story::of(3, Some("ext4")).with(&at_rate("ext4", 4_000)).with(&swamped).findings();
    assert_eq!(order(&found, 0), [(1, "ext4"), (2, "btrfs")]);
    assert_eq!(found.rankings[0].by, RankedBy::InTime, "{}", found.headline);
    let start = "On this machine (tpcb, clients=16, transactions within 20 ms at 500 tps) ext4 is in time most often of the \
                 stacks: btrfs is at 0.93";
    assert!(found.headline.starts_with(start), "{}", found.headline);
    let btrfs = found.rankings[0].classes[0].rows[1].rate.value;
    assert!((93.0..93.8).contains(&btrfs), "of 105 due 98 were done in time: {btrfs}");
    assert_eq!(order(&found, 1), [(1, "ext4")], "btrfs has no p99");
    let p99 = found.cases[1].measures[0].latency.as_ref().unwrap().percentile("p99").unwrap();
    assert!(p99.over_trials.is_none() && p99.unavailable.as_ref().unwrap().starts_with("over the limit"));
}

#[test]
fn a_stack_in_memory_has_lower_latency_without_durability() {
    let memory = Act { latency_us: 500, rate: Some((500.0, 20_000)), unsteady: 0.01, ..Act::in_memory().tps(500.0) };
    let found = Story::of(3, None).with(&at_rate("ext4", 4_000)).with(&memory).findings();
    assert!(
        found.headline.contains(". tmpfs (0.1244 times ext4) is faster, but may lose everything"),
        "{}",
        found.headline
    );
}

#[test]
fn a_sampled_log_has_whole_counts_and_a_slowest_logged_operation() {
    let act = Act::on("ext4").touched(|record| {
        record.operation.log_sample = Some(0.1);
        let measure = &mut record.counts.as_mut().unwrap().measures[0];
        measure.done = measure.done.map(|logged| logged * 10);
    });
    let found = Story::of(3, None).with(&act).findings();
    let whole = Story::of(3, None).with(&Act::on("ext4")).findings();
    let case = &found.cases[0];
    let latency = case.measures[0].latency.as_ref().unwrap();
    assert_eq!(
        (case.log_sample, latency.max_us),
        (Some(0.1), whole.cases[0].measures[0].latency.as_ref().unwrap().max_us)
    );
    let stalls = [case, &whole.cases[0]].map(|case| case.steadiness.as_ref().unwrap().longest_stall_us);
    assert!(stalls[0].is_some() && stalls[0] == stalls[1], "of those logged: {stalls:?}");
    assert!((9_500.0..10_500.0).contains(&case.measures[0].rate.unwrap().value), "{:?}", case.measures[0].rate);
    assert_eq!(latency.percentile("p99").unwrap().over_trials.unwrap().trials, 3);
    assert!(case.cautions.iter().any(|said| said.starts_with("latency was logged for 10 % of")), "{:?}", case.cautions);
    assert_eq!(whole.cases[0].log_sample, None);
}

#[test]
fn the_load_of_a_profile_is_answered_by_stack() {
    let of_profile = |stack: &str, clients: u64, rate: f64, skipped: f64| {
        let act = Act { rate: Some((rate, 20_000)), skipped, clients, ..at_rate(stack, 4_000) };
        act.tps(rate).touched(|record| record.operation.profile_rate = Some(500.0))
    };
    // Case by case two rates; with clients as an axis instead, four loads at one rate each.
    let run = |clients: bool, touch: fn(&mut TrialRecord)| {
        let mut story = Story::of(3, None);
        for stack in ["ext4", "xfs"] {
            let swamped = if stack == "xfs" { 0.05 } else { 0.0 };
            story = story.with(&of_profile(stack, 1, 500.0, 0.0)).with(&of_profile(stack, 2, 1000.0, swamped));
        }
        if !clients {
            story.input.run.cases.iter_mut().for_each(|case| _ = case.axes.remove("clients"));
        }
        story.trials.iter_mut().for_each(|trial| touch(&mut trial.record));
        story.findings()
    };
    let by_clients: Vec<String> = run(true, three_cycles).profiled.into_iter().map(|stack| stack.name).collect();
    assert_eq!(by_clients, ["ext4 clients=1", "ext4 clients=2", "xfs clients=1", "xfs clients=2"]);
    assert_eq!(run(false, |_| {}).profiled[0].wal_bytes_per_day, None, "no checkpoint cycle");
    let found = run(false, three_cycles);
    let kept: Vec<_> = found.profiled.iter().map(|stack| (stack.name.as_str(), stack.holds, stack.fails)).collect();
    assert_eq!(kept, [("ext4", Some(2.0), None), ("xfs", Some(1.0), Some(2.0))]);
    let ext4 = &found.profiled[0];
    let case = &found.cases[0];
    let latency = case.measures[0].latency.as_ref().unwrap();
    assert_eq!(ext4.p99_us, latency.percentile("p99").unwrap().over_trials);
    let written = case.strata.as_ref().unwrap().at_stack_devices.as_ref().unwrap().write_bytes.unwrap();
    assert_eq!(ext4.device_bytes_per_day, Some(written * 500.0 * 86_400.0));
    assert_eq!((ext4.rate, ext4.limit_us, ext4.back_s), (500.0, Some(20_000), None));
    let said =
        "a server with 500 commits a second: its WAL, full pages, dirtied pages and reads that miss, not its locks";
    assert!(found.headline.contains(said) && found.headline.contains("ext4: p99 8"), "{}", found.headline);
}

//! Content of a run's windows: cycles, phases, trends, quiet, unequal work.

use crate::analyse::findings::{CostCounter, Findings};
use crate::analyse::stories::story::{Act, Story};
use crate::analyse::trial::window;
use crate::record::run::QuickOf;
use crate::record::trial::TrialRecord;
use crate::record::window::{
    CheckpointDone, CheckpointRecord, Extent, SettleRecord, VacuumRecord, WindowEnd, WindowRecord,
};
use std::collections::BTreeMap;

/// Wall clock at the first operation.
const START: u64 = 1_700_000_000_000_000;

fn second(at: f64) -> u64 {
    (START as f64 + at * 1e6) as u64
}

fn checkpoint(start_s: f64, end_s: f64) -> CheckpointRecord {
    let done = CheckpointDone { ended_us: second(end_s), wal_removed: 2, ..CheckpointDone::default() };
    CheckpointRecord { started_us: second(start_s), cause: "time".to_owned(), done: Some(done) }
}

/// Three cycles of 20 s in a minute, checkpoints of 15 s.
pub(crate) fn three_cycles(record: &mut TrialRecord) {
    let begins = [-20.2, -0.2, 20.0, 40.0, 60.01];
    record.window = Some(WindowRecord {
        extent: Extent::Cycles { cycles: 3, limit_us: None },
        limit_us: 120_000_000,
        settings: BTreeMap::new(),
        prefill: Some(crate::record::window::PrefillRecord { bytes: 1 << 30, wall_us: 1 }),
        warm_up: vec![Default::default(), Default::default()],
        settled: Some(true),
        began_us: second(-0.1),
        first_operation_us: START,
        from_checkpoint: Some(1),
        ended_us: second(60.05),
        end: WindowEnd::Cycles,
        wal_segments_before: Some(60),
        wal_segments_after: Some(57),
        checkpoints: begins.map(|begin| checkpoint(begin, begin + 15.0)).to_vec(),
        vacuums: vec![VacuumRecord { ended_us: second(30.0), elapsed_us: 6_000_000, what: "vacuum".to_owned() }],
    });
    record.settle = Some(SettleRecord { quiet: true, ..SettleRecord::default() });
}

fn one_cycle_by_the_limit(record: &mut TrialRecord) {
    three_cycles(record);
    let window = record.window.as_mut().unwrap();
    window.checkpoints.drain(3..);
    (window.end, window.settled) = (WindowEnd::Time, Some(false));
    record.settle = Some(SettleRecord::default());
}

fn no_checkpoint(record: &mut TrialRecord) {
    three_cycles(record);
    let window = record.window.as_mut().unwrap();
    *window = WindowRecord {
        extent: Extent::Span { span_us: 60_000_000 },
        prefill: None,
        warm_up: Vec::new(),
        settled: None,
        from_checkpoint: None,
        end: WindowEnd::Time,
        checkpoints: Vec::new(),
        ..window.clone()
    };
}

fn texts(found: &Findings) -> Vec<&str> {
    found.cautions.iter().map(|caution| caution.text.as_str()).collect()
}

#[test]
fn whole_cycles_begin_at_the_checkpoint_that_ended_warmup() {
    let found = Story::of(1, None).with(&Act::on("ext4").touched(three_cycles)).findings();
    let window = found.trials[0].window.as_ref().unwrap();
    assert_eq!((window.whole_cycles, window.asked_cycles, window.cut), (3, Some(3), false));
    // The first one ended before the first operation; the last had only begun.
    let starts: Vec<f64> = window.checkpoints.iter().map(|checkpoint| checkpoint.start_s).collect();
    assert_eq!(starts, [-0.2, 20.0, 40.0, 60.01]);
    // 60 segments became 57, but three checkpoints removed two each.
    assert_eq!(window.wal_segments_new, Some(3));
    assert_eq!(window.vacuum_s, 6.0);
    let case = found.cases[0].window.as_ref().unwrap();
    assert_eq!((case.whole_cycles, case.vacuum_share), ((3, 3), 0.1));
    // In each cycle 15 s belong to the checkpoint; seconds in which one begins or ends belong to neither.
    assert_eq!((case.inside.seconds, case.outside.seconds), (14 + 15 + 15, 5 + 5 + 5));
    assert!(!texts(&found).iter().any(|text| text.contains("checkpoint cycle")), "{:?}", texts(&found));
    assert!(texts(&found).contains(&"autovacuum ran during 10 % of the measured time"), "{:?}", texts(&found));
}

#[test]
fn rates_in_checkpoints_and_outside_are_figures_of_their_own() {
    let mut story = Story::of(1, None).with(&Act::on("ext4").touched(three_cycles));
    // 100 per second in checkpoints, 300 outside, and much in the seconds in which one begins or ends.
    let in_second = |row: u64| match row {
        1..=14 | 21..=35 | 41..=55 => 100,
        16..=20 | 36..=40 | 56..=60 => 300,
        _ => 9_000,
    };
    let done: Vec<u64> = (0..=60).map(in_second).collect();
    story.trials[0].seconds.retain(|name| name != "client_done");
    story.trials[0].seconds.push_counts("client_done", done, &[true; 61]);
    let found = story.findings();
    let case = found.cases[0].window.as_ref().unwrap();
    assert_eq!((case.inside.rate, case.outside.rate), (Some(100.0), Some(300.0)));
}

#[test]
fn pages_of_backends_before_postgresql_16_are_missing_with_the_reason() {
    let pages = |version: u32, columns: &[&str]| {
        let mut story = Story::of(2, None).with(&Act::on("ext4").touched(three_cycles));
        for trial in &mut story.trials {
            trial.record.server.as_mut().unwrap().version_num = version;
            for name in columns {
                let rows = trial.seconds.rows();
                trial.seconds.push_counts(*name, (0..rows as u64).collect(), &vec![true; rows]);
            }
        }
        let found = story.findings().cases[0].window.clone().unwrap().pages.unwrap();
        (found.checkpointer, found.backends, found.backends_unavailable)
    };
    let old = ["pg_buffers_checkpoint", "pg_buffers_bgwriter"];
    let why = |text: &str| Some(text.to_owned());
    let stands_still = why("before PostgreSQL 16 their counter stands still inside a window");
    assert_eq!(pages(150_008, &old), (120, None, stands_still));
    assert_eq!(pages(160_002, &old), (120, None, why("not read in every trial")));
    assert_eq!(pages(160_002, &[old[0], old[1], "pg_buffers_backend"]), (120, Some(120), None));
}

#[test]
fn a_last_cycle_unlike_the_first_is_a_trend() {
    let steady = Story::of(1, None).with(&Act::on("ext4").touched(three_cycles));
    let mut falling = Story::of(1, None).with(&Act::on("ext4").touched(three_cycles));
    let done: Vec<u64> = (0..=60u64).map(|row| 1000 - 5 * row + row * 7 % 11).collect();
    falling.trials[0].seconds.retain(|name| name != "client_done");
    falling.trials[0].seconds.push_counts("client_done", done, &[true; 61]);
    let trend = |story: Story| {
        let found = story.findings();
        let said = texts(&found).iter().any(|text| text.starts_with("1 of 1 trials have a trend"));
        (found.trials[0].window.as_ref().unwrap().trend.unwrap().seen, said)
    };
    assert_eq!(trend(steady), (false, false));
    assert_eq!(trend(falling), (true, true));
}

#[test]
fn a_plain_duration_compares_its_last_third_with_the_first() {
    let texts_of = |done: &dyn Fn(u64) -> u64, seconds: u64| {
        let mut story = Story::of(1, None).with(&Act::on("ext4").touched(no_checkpoint));
        let rows = seconds as usize + 1;
        story.trials[0].seconds.retain(|name| name != "client_done");
        story.trials[0].seconds.push_counts("client_done", (0..rows as u64).map(done).collect(), &vec![true; rows]);
        let found = story.findings();
        let is_reported = texts(&found).iter().any(|text| text.contains("trend: last third unlike the first"));
        (found.trials[0].window.as_ref().unwrap().trend.map(|trend| trend.seen), is_reported)
    };
    assert_eq!(texts_of(&|row| 1000 - 5 * row + row * 7 % 11, 60), (Some(true), true));
    assert_eq!(texts_of(&|row| 1000 + row * 7 % 11, 60), (Some(false), false));
}

#[test]
fn a_window_too_short_for_its_noise_has_no_trend() {
    assert_eq!(window::thirds(0, 29), None);
    assert_eq!(window::thirds(5, 31), Some(((5, 10_000_005), (21_000_005, 31_000_005))));
}

#[test]
fn what_a_window_lacks_is_said() {
    let found = Story::of(2, None)
        .with(&Act::on("ext4").touched(one_cycle_by_the_limit))
        .with(&Act::on("xfs").touched(no_checkpoint))
        .findings();
    let texts = texts(&found);
    for wanted in [
        "no whole checkpoint cycle in 2 of 2 trials",
        "2 of 2 trials cut by the time limit",
        "2 of 2 trials measured unsettled",
        "machine not idle when 2 of 2 trials began",
    ] {
        assert!(texts.iter().any(|text| text.starts_with(wanted)), "{wanted}: {texts:?}");
    }
    assert!(!found.headline.contains("quick"), "{}", found.headline);
}

#[test]
fn what_a_quick_run_left_out_follows_its_answer() {
    let headline = |quick: QuickOf| {
        let mut story = Story::of(2, None).with(&Act::on("ext4").touched(no_checkpoint)).with(&Act::sync_on("ext4"));
        story.input.run.quick = Some(quick);
        story.findings().headline
    };
    let all = headline(QuickOf { cases: 2, blocks: 2, ..QuickOf::default() });
    let wanted = "This was a quick run: its windows lack whole checkpoint cycles (checkpoint writes, and full-page images \
                  at their usual share), recycled WAL segments and a warm-up until rates settle.";
    assert!(all.starts_with("On this machine") && all.ends_with(wanted), "{all}");
    let part = headline(QuickOf {
        cases: 57,
        blocks: 3,
        set: [("loop".to_owned(), "2GiB".to_owned())].into(),
        ..QuickOf::default()
    });
    let wanted = "settle. It had 2 of the plan's 57 cases, 2 blocks instead of 3 and loop=2GiB.";
    assert!(part.ends_with(wanted), "{part}");
}

#[test]
fn unexplained_differences_in_completed_checkpoint_cycles_leave_no_winner() {
    let slow = Act::on("ext4").tps(500.0).touched(one_cycle_by_the_limit);
    let fast = Act::on("xfs").tps(1000.0).touched(three_cycles);
    let headline = Story::of(3, Some("ext4")).with(&slow).with(&fast).findings().headline;
    let wanted = "no winner: the measured windows contain 3 whole checkpoint cycles of xfs and 1 whole checkpoint cycle \
                  of ext4, which is different work";
    assert!(headline.contains(wanted), "{headline}");
    let equal = Story::of(3, Some("ext4")).with(&slow.clone().touched(three_cycles)).with(&fast).findings().headline;
    assert!(equal.contains("xfs is the fastest"), "{equal}");
    // A plan with a duration and its own checkpoint settings gets what it asked for.
    fn by_time(record: &mut TrialRecord) {
        three_cycles(record);
        record.window.as_mut().unwrap().extent = Extent::Span { span_us: 60_000_000 };
    }
    let mut story = Story::of(3, Some("ext4")).with(&slow.touched(no_checkpoint)).with(&fast.touched(by_time));
    for case in &mut story.input.run.cases {
        let settings = &mut case.postgres.as_mut().unwrap().settings;
        settings.insert("max_wal_size".to_owned(), "1GB".to_owned());
    }
    assert!(story.findings().headline.contains("xfs is the fastest"));
}

#[test]
fn other_wal_per_commit_is_named_of_each_case_once_it_is_shown() {
    let found = |blocks: u32, bytes: [u64; 3]| {
        let slow = Act::on("ext4").tps(500.0).touched(three_cycles);
        let fast = Act::on("xfs").tps(1000.0).touched(three_cycles);
        let unsafe_one = Act { flushes: vec![Some(0.0)], ..Act::on("nobarrier").tps(2000.0) }.touched(three_cycles);
        let mut story = Story::of(blocks, Some("ext4")).with(&slow).with(&fast).with(&unsafe_one);
        for trial in &mut story.trials {
            let place = ["ext4", "xfs", "nobarrier"].iter().position(|name| *name == trial.record.case.stack.name);
            let each = bytes[place.unwrap()];
            let done = trial.seconds.counts(&crate::record::columns::CLIENT_DONE).unwrap();
            let sums: Vec<u64> = (0..done.rows())
                .scan(0, |sum, row| {
                    *sum += done.at(row).unwrap_or(0) * each;
                    Some(*sum)
                })
                .collect();
            let rows = sums.len();
            trial.seconds.retain(|name| name != "pg_wal_bytes");
            trial.seconds.push_counts("pg_wal_bytes", sums, &vec![true; rows]);
        }
        story.findings()
    };
    let shown = found(3, [1000, 750, 500]);
    let wal = shown.rankings[0].counters.iter().find(|compared| compared.counter == CostCounter::WalBytes).unwrap();
    let ratios = wal.rows.iter().filter_map(|row| Some((row.label.as_str(), row.ratio?.value, row.outcome?.differs())));
    assert_eq!(ratios.collect::<Vec<_>>(), [("nobarrier", 0.5, true), ("xfs", 0.75, true)]);
    let aside = "; WAL per commit against ext4: nobarrier 50 % less, xfs 25 % less";
    assert!(shown.headline.contains(aside), "{}", shown.headline);
    let more = found(3, [1000, 1100, 1000]).headline;
    assert!(more.contains("; WAL per commit against ext4: xfs 10 % more."), "{more}");
    assert!(!found(3, [1000, 980, 1000]).headline.contains("WAL per commit"), "too little to say");
    assert!(!found(1, [1000, 750, 500]).headline.contains("WAL per commit"), "one block decides nothing");
}

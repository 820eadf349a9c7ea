//! Trials with every column that analysis reads, and the effect of missing ones on the findings.

use crate::analyse::analysis::Analysis;
use crate::analyse::stories::story::{Act, Story, disk};
use crate::analyse::stories::windows::three_cycles;
use crate::analyse::trial::input::{PhaseLatencies, Seconds, TrialInput};
use crate::analyse::trial::reads;
use crate::record::column::{ColumnKind, ColumnType};
use crate::record::columns::{self, ColumnDef};
use crate::record::trial::{TrialRecord, WaitCount, WaitFigures};

/// The devices of the trials, from top to bottom.
const DEVICES: [&str; 4] = ["loop3", "dm_0", "vda1", "vda"];

/// A run with one trial on the devices of [`rows`], the trial not yet added, and the trial's record.
pub fn run(rows: usize) -> (Story, TrialRecord) {
    let mut act = Act::on("ext4").trials(&[1]);
    act.stack.devices = DEVICES.into_iter().zip(0..).map(|(name, depth)| disk(depth, name)).collect();
    let mut story = Story::of(1, None).with(&act);
    let mut record = story.trials.remove(0).record;
    // Samples of waits add a finding about the CPUs.
    let waits = vec![WaitCount { class: "CPU".to_owned(), event: "CPU".to_owned(), count: 9 }];
    record.waits = Some(WaitFigures { samples: 9, backends: 9, waits, ..WaitFigures::default() });
    record.counts.as_mut().unwrap().elapsed_us = (rows as u64 - 1) * 1_000_000;
    (story, record)
}

/// All columns that analysis reads, with counters growing by irregular steps; nothing is done in the second `stall`.
pub fn rows(rows: usize, stall: usize) -> Seconds {
    let mut seconds = Seconds::new(rows);
    let (all, after_start): (Vec<bool>, Vec<bool>) = (0..rows).map(|row| (true, row > 0)).unzip();
    let listed = reads::COLUMNS.into_iter().flatten();
    for column in listed.clone().filter(|column| column.of == ColumnType::Text) {
        seconds.push_texts(column.name, vec![Some("postgres"); rows]);
    }
    for column in &columns::TOP_CPU_NS {
        seconds.push_counts(column.name, vec![300_000_000; rows], &after_start);
    }
    seconds.push_counts(columns::CPU_FULLEST_NS.name, vec![600_000_000; rows], &after_start);
    let done = |row: usize| if row == stall { 0 } else { 1000 + (row as u64 * 31) % 97 };
    seconds.push_counts(columns::CLIENT_DONE.name, (0..rows).map(done).collect(), &after_start);
    let latencies = [
        (columns::CLIENT_LATENCY_US_P50, 1),
        (columns::CLIENT_LATENCY_US_P99, 3),
        (columns::CLIENT_LATENCY_US_P999, 5),
        (columns::CLIENT_LATENCY_US_MAX, 7),
        (columns::CLIENT_IDLE_US_MAX, 7),
    ];
    for (column, factor) in latencies {
        let values = (0..rows).map(|row| done(row) * factor).collect();
        seconds.push_counts(column.name, values, &after_start);
    }
    // Alternate rows are 0.2 s late, so that rates depend on the clock.
    let clock = (0..rows as u64).map(|row| row * 1_000_000 + row % 2 * 200_000).collect();
    seconds.push_counts(columns::TIME_US.name, clock, &all);
    let numbers = listed.filter(|column| column.of == ColumnType::Count && column.kind != ColumnKind::Interval);
    let mut growing: Vec<String> = numbers.map(|column| column.name.to_owned()).collect();
    growing.retain(|name| name != columns::TIME_US.name);
    for device in DEVICES {
        growing.extend(reads::DEVICE_COLUMNS.iter().map(|column| column.name(&format!("dev_{device}"))));
    }
    for (place, name) in growing.into_iter().enumerate() {
        let mut sum = 0;
        let values = (0..rows).map(|row| {
            sum += ((row * 7919 + place * 104_729) % 1_000_003) as u64;
            sum
        });
        seconds.push_counts(name, values.collect(), &all);
    }
    seconds
}

/// Findings of a trial without the columns selected by `missing`, as JSON.
fn found_without(missing: impl Fn(&str) -> bool) -> String {
    const ROWS: usize = 61;
    let (story, mut record) = run(ROWS);
    three_cycles(&mut record);
    record.host.cpus = 4;
    let mut seconds = rows(ROWS, 30);
    seconds.retain(|name| !missing(name));
    let mut analysis = Analysis::new(story.input);
    analysis.add_trial(TrialInput {
        record,
        seconds,
        latencies: Vec::new(),
        phases: PhaseLatencies::default(),
        heat: Vec::new(),
    });
    serde_json::to_string(&analysis.finish()).unwrap()
}

#[test]
fn every_column_listed_as_read_changes_the_findings() {
    let whole = found_without(|_| false);
    assert!(whole == found_without(|_| false), "nothing but the columns may differ");
    // The ARC is only read on ZFS: `arc` has its own test.
    let of_all = |column: &&ColumnDef| column.name != columns::ZFS_ARC_TARGET_BYTES.name;
    for column in reads::COLUMNS.into_iter().flatten().filter(of_all) {
        assert!(whole != found_without(|name| name == column.name), "nothing reads {}", column.name);
    }
    for column in &reads::DEVICE_COLUMNS {
        assert!(whole != found_without(|name| column.includes(name)), "nothing reads {column:?}");
    }
}

#[test]
fn cpu_time_per_operation_needs_every_state() {
    let cpu_us = |missing: &str| {
        let found: serde_json::Value = serde_json::from_str(&found_without(|name| name == missing)).unwrap();
        found["cases"][0]["strata"]["cpu_us"].as_f64()
    };
    assert!(cpu_us("").is_some_and(|us| us > 0.0), "{:?}", cpu_us(""));
    assert_eq!((cpu_us(columns::OTHERS_CPU_NS.name), cpu_us(columns::CPU_USER_NS.name)), (None, None));
}

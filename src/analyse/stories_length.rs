//! A run of days: what is kept of it stays small, and no stall is lost in it.

use super::input::{Seconds, TrialInput};
use super::story::{Act, Story, disk};
use crate::analyse::Analysis;
use crate::analyse::columns::{CPU, TOP_SLOTS, wanted};
use crate::record::case::TrialKey;

/// Rows of four days.
const ROWS: usize = 4 * 86_400 + 1;
/// The second in which nothing was done.
const STALL: usize = 123_456;

/// Four days with every column that analysis reads, counters growing by ragged steps.
fn four_days() -> Seconds {
    let mut seconds = Seconds::new(ROWS);
    let all = vec![true; ROWS];
    let mut names: Vec<String> = CPU.iter().map(|name| (*name).to_owned()).collect();
    names.extend(["time_us", "pg_wal_bytes", "pg_wal_records", "pg_wal_fpi", "pg_wal_syncs"].map(str::to_owned));
    names.extend(["pg_buffers_checkpoint", "pg_buffers_backend", "pg_blks_read"].map(str::to_owned));
    names.extend(["pg_checkpoints_timed", "pg_checkpoints_requested"].map(str::to_owned));
    names.extend(["psi_cpu_some_us", "psi_io_some_us", "psi_io_full_us", "psi_memory_some_us"].map(str::to_owned));
    names.extend(
        ["mem_dirty_bytes", "mem_writeback_bytes", "mem_cached_bytes", "mem_available_bytes"].map(str::to_owned),
    );
    for device in ["loop3", "dm_0", "vda1", "vda"] {
        let slot = format!("dev_{device}");
        for what in ["reads", "read_bytes", "writes", "write_bytes", "flushes", "busy_ms"] {
            names.push(format!("{slot}_{what}"));
        }
        seconds.push_texts(format!("{slot}_name"), vec![Some(device); ROWS]);
    }
    for slot in TOP_SLOTS {
        seconds.push_texts(format!("{slot}_name"), vec![Some("postgres"); ROWS]);
        seconds.push_reals(format!("{slot}_cpu_share"), vec![0.3; ROWS], &all);
    }
    for (place, name) in names.iter().enumerate() {
        assert!(wanted(name), "{name}");
        let step = |row: usize| ((row * 7919 + place * 104_729) % 1_000_003) as u64;
        let mut sum = 0;
        let values = (0..ROWS).map(|row| {
            sum += step(row);
            if name == "time_us" { row as u64 * 1_000_000 } else { sum }
        });
        seconds.push_counts(name.as_str(), values.collect(), &all);
    }
    let done = |row: usize| if row == STALL { 0 } else { 1000 + (row as u64 * 31) % 97 };
    let after_start: Vec<bool> = (0..ROWS).map(|row| row > 0).collect();
    seconds.push_counts("client_done", (0..ROWS).map(done).collect(), &after_start);
    seconds.push_counts("client_latency_us_max", (0..ROWS).map(|row| done(row) * 7).collect(), &after_start);
    seconds
}

#[test]
fn forty_cases_of_four_days_make_a_small_document_in_which_the_stall_is_seen() {
    const CASES: usize = 40;
    let mut act = Act::on("ext4").trials(&[1]);
    let names = ["loop3", "dm_0", "vda1", "vda"].into_iter().zip(0..);
    act.stack.devices = names.map(|(name, depth)| disk(depth, name)).collect();
    let mut story = Story::of(1, None).with(&act);
    story.input.run.order = (0..CASES).map(|case| TrialKey { case: format!("case{case}"), trial: 1 }).collect();
    let mut record = story.trials.remove(0).record;
    record.counts.as_mut().unwrap().elapsed_us = (ROWS as u64 - 1) * 1_000_000;
    let mut analysis = Analysis::new(story.input);
    analysis.add_trial(TrialInput { record, seconds: four_days(), latencies: Vec::new() });
    let found = analysis.finish();
    let json = serde_json::to_string(&found).unwrap();
    assert!(json.len() * CASES < 6_000_000, "{} bytes for one of {CASES}", json.len());

    let throughput = found.trials[0].throughput.as_ref().unwrap();
    assert!(throughput.min.len() > 1000);
    assert_eq!(throughput.min.iter().filter(|least| **least == Some(0.0)).count(), 1);
    assert_eq!(
        found.trials[0].telemetry.len(),
        30,
        "{:?}",
        found.trials[0].telemetry.iter().map(|s| &s.title).collect::<Vec<_>>()
    );
    assert_eq!(found.cases[0].steadiness.as_ref().unwrap().seconds_at_zero, 1);
}

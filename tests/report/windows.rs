//! Windows made up for the sample.

use pgstrata::analyse::findings::*;

/// Checkpoints every 30 s that take 27.
pub fn window() -> CaseWindow {
    CaseWindow {
        whole_cycles: (1, 2),
        inside: PhaseFinding { seconds: 160, rate: Some(640.0), p99_us: Some(21_400) },
        outside: PhaseFinding { seconds: 18, rate: Some(810.0), p99_us: Some(9_800) },
        pages: Some(PagesWritten {
            checkpointer: 91_000,
            background_writer: 120,
            backends: Some(4_400),
            ..Default::default()
        }),
        sync_s_per_gb: Some(Estimate::of(1.9, Some((1.4, 2.6)), 3)),
        vacuum_share: 0.031,
    }
}

/// Of three trials one was cut, one has a trend, and one did not settle.
pub fn trial_window(number: u32) -> TrialWindow {
    let checkpoint = |start_s: f64, ended: bool| CheckpointFinding {
        start_s,
        end_s: ended.then_some(start_s + 27.0),
        cause: "time".to_owned(),
        done: ended.then(|| CheckpointDone {
            buffers: 30_333,
            wal_recycled: 11,
            write_us: 26_900_000,
            ..Default::default()
        }),
    };
    TrialWindow {
        replaced: Default::default(),
        asked_cycles: Some(2),
        whole_cycles: if number == 2 { 1 } else { 2 },
        cut: number == 2,
        length_s: 60.0,
        warm_up_cycles: 2,
        settled: Some(number != 3),
        prefilled: true,
        wal_segments_new: Some(0),
        checkpoints: vec![checkpoint(-0.1, true), checkpoint(29.9, true), checkpoint(59.9, false)],
        trend: Some(Trend { first: 700.0, last: 610.0, seen: number == 1 }),
        vacuum_s: 1.9,
    }
}

//! Contents of the measured windows: whole checkpoint cycles, work inside and outside checkpoints, the trend from the
//! first cycle to the last, who wrote pages, autovacuum's share.

use crate::analyse::findings::estimate::over_trials;
use crate::analyse::findings::{CaseWindow, Estimate, PagesWritten, Phase, TrialFinding, TrialWindow};
use crate::analyse::trial::counters::growth;
use crate::analyse::trial::input::{PhaseLatencies, Seconds};
use crate::analyse::trial::window::{in_checkpoint, sync_s_per_gb};
use crate::record::columns;
use crate::record::trial::TrialRecord;
use crate::stats::ratio::BlockMean;
use crate::store::latency;
use hdrhistogram::Histogram;

#[derive(Debug, Clone, Default)]
pub struct WindowSums {
    inside: PhaseSums,
    outside: PhaseSums,
    pages: Option<PagesWritten>,
    /// Seconds of sync per GB by trial, `None` if it has no such checkpoint.
    checkpoints: Vec<(u32, Option<f64>)>,
}

#[derive(Debug, Clone, Default)]
struct PhaseSums {
    seconds: u64,
    done: u64,
    latencies: Option<Histogram<u64>>,
}

impl WindowSums {
    pub fn add(&mut self, record: &TrialRecord, seconds: &Seconds, phases: &PhaseLatencies) {
        let Some(window) = &record.window else { return };
        self.checkpoints.push((record.trial, sync_s_per_gb(record)));
        if let Some(done) = seconds.counts(&columns::CLIENT_DONE) {
            for row in 1..done.rows() {
                let Some(in_second) = done.at(row) else { continue };
                match in_checkpoint(window, (row as u64 - 1) * 1_000_000, 1_000_000) {
                    Some(true) => self.inside.add_second(in_second),
                    Some(false) => self.outside.add_second(in_second),
                    None => {}
                }
            }
        }
        // Cannot fail: the sums grow as needed.
        if let Some(latencies) = &phases.inside {
            latency::add(&mut self.inside.latencies, latencies).ok();
        }
        if let Some(latencies) = &phases.outside {
            latency::add(&mut self.outside.latencies, latencies).ok();
        }
        self.add_pages(seconds);
    }

    fn add_pages(&mut self, seconds: &Seconds) {
        let grown = |column| seconds.counts(&column).and_then(growth);
        let checkpointer = grown(columns::PG_BUFFERS_CHECKPOINT);
        let background_writer = grown(columns::PG_BUFFERS_BGWRITER);
        let backends = grown(columns::PG_BUFFERS_BACKEND);
        let (Some(checkpointer), Some(background_writer), Some(backends)) = (checkpointer, background_writer, backends)
        else {
            return;
        };
        let sums = self.pages.get_or_insert_with(PagesWritten::default);
        sums.checkpointer += checkpointer;
        sums.background_writer += background_writer;
        sums.backends += backends;
    }

    /// Over all trials; `None` if the window of one has no checkpoint that wrote.
    fn sync_s_per_gb(&self) -> Option<Estimate> {
        let of_trial = |(trial, mean): &(u32, Option<f64>)| Some(BlockMean::of(*trial, (*mean)?));
        over_trials(&self.checkpoints.iter().map(of_trial).collect::<Option<Vec<_>>>()?)
    }

    /// Result, with the windows of its trials; `None` if no trial has one.
    pub fn finding(&self, trials: &[TrialFinding]) -> Option<CaseWindow> {
        let windows: Vec<&TrialWindow> = trials.iter().filter_map(|trial| trial.window.as_ref()).collect();
        let cycles = || windows.iter().map(|window| window.whole_cycles);
        let length: f64 = windows.iter().map(|window| window.length_s).sum();
        let vacuum: f64 = windows.iter().map(|window| window.vacuum_s).sum();
        Some(CaseWindow {
            whole_cycles: (cycles().min()?, cycles().max()?),
            inside: self.inside.finding(),
            outside: self.outside.finding(),
            pages: self.pages,
            sync_s_per_gb: self.sync_s_per_gb(),
            vacuum_share: if length > 0.0 { vacuum / length } else { 0.0 },
        })
    }
}

impl PhaseSums {
    fn add_second(&mut self, done: u64) {
        self.seconds += 1;
        self.done += done;
    }

    fn finding(&self) -> Phase {
        let latencies = self.latencies.as_ref().filter(|all| !all.is_empty());
        Phase {
            seconds: self.seconds,
            rate: (self.seconds > 0).then(|| self.done as f64 / self.seconds as f64),
            p99_us: latencies.map(|all| all.value_at_quantile(0.99)),
        }
    }
}

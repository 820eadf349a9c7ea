//! Contents of the measured windows: whole checkpoint cycles, work inside and outside checkpoints, the trend from the
//! first cycle to the last, who wrote pages, autovacuum's share.

use crate::analyse::findings::estimate::over_trials;
use crate::analyse::findings::{CaseWindow, Estimate, PagesWritten, PhaseFinding, TrialFinding};
use crate::analyse::trial::counters::growth;
use crate::analyse::trial::input::{PhaseLatencies, Seconds};
use crate::analyse::trial::window::{in_checkpoint, sync_s_per_gb};
use crate::record::columns;
use crate::record::trial::TrialRecord;
use crate::stats::ratio::BlockMean;
use crate::store::latency;
use hdrhistogram::Histogram;

/// First version that counts the pages of backends as they are written (`pg_stat_io`).
const BACKENDS_COUNTED: u32 = 160_000;

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
        // Rows of turns are no seconds of the clock, by which checkpoints are known.
        if let Some(done) = seconds.counts(&columns::CLIENT_DONE).filter(|_| record.turns.is_none()) {
            for row in 1..done.rows() {
                let Some(in_second) = done.at(row) else { continue };
                let sums = match in_checkpoint(window, (row as u64 - 1) * 1_000_000, 1_000_000) {
                    Some(true) => &mut self.inside,
                    Some(false) => &mut self.outside,
                    None => continue,
                };
                sums.seconds += 1;
                sums.done += in_second;
            }
        }
        for (sums, latencies) in [(&mut self.inside, &phases.inside), (&mut self.outside, &phases.outside)] {
            if let Some(latencies) = latencies {
                // Cannot fail: the sums grow as needed.
                latency::add(&mut sums.latencies, latencies).ok();
            }
        }
        let pages = [columns::PG_BUFFERS_CHECKPOINT, columns::PG_BUFFERS_BGWRITER, columns::PG_BUFFERS_BACKEND];
        let [checkpointer, background_writer, backends] = pages.map(|column| growth(seconds.counts(&column)?));
        if let Some((checkpointer, background_writer)) = checkpointer.zip(background_writer) {
            let sums = self.pages.get_or_insert(PagesWritten { backends: Some(0), ..PagesWritten::default() });
            sums.checkpointer += checkpointer;
            sums.background_writer += background_writer;
            sums.backends = sums.backends.zip(backends).map(|(sum, backends)| sum + backends);
            let why = backends.is_none().then(|| uncounted(record).to_owned());
            sums.backends_unavailable = why.or(sums.backends_unavailable.take());
        }
    }

    /// Over all trials; `None` if the window of one has no checkpoint that wrote.
    fn sync_s_per_gb(&self) -> Option<Estimate> {
        let trials = self.checkpoints.iter().map(|(trial, mean)| Some(BlockMean::of(*trial, (*mean)?)));
        over_trials(&trials.collect::<Option<Vec<_>>>()?)
    }

    /// Result, with the windows of its trials; `None` if no trial has one.
    pub fn finding(&self, trials: &[TrialFinding]) -> Option<CaseWindow> {
        let windows = trials.iter().filter_map(|trial| trial.window.as_ref());
        let cycles = windows.clone().map(|window| window.whole_cycles);
        let length: f64 = windows.clone().map(|window| window.length_s).sum();
        let vacuum: f64 = windows.map(|window| window.vacuum_s).sum();
        Some(CaseWindow {
            whole_cycles: (cycles.clone().min()?, cycles.max()?),
            inside: self.inside.finding(),
            outside: self.outside.finding(),
            pages: self.pages.clone(),
            sync_s_per_gb: self.sync_s_per_gb(),
            vacuum_share: if length > 0.0 { vacuum / length } else { 0.0 },
        })
    }
}

/// Why the pages that backends wrote in a trial are not known.
fn uncounted(record: &TrialRecord) -> &'static str {
    match record.server.as_ref().is_some_and(|server| server.version_num < BACKENDS_COUNTED) {
        true => "before PostgreSQL 16 their counter stands still inside a window",
        false => "not read in every trial",
    }
}

impl PhaseSums {
    fn finding(&self) -> PhaseFinding {
        let latencies = self.latencies.as_ref().filter(|all| !all.is_empty());
        PhaseFinding {
            seconds: self.seconds,
            rate: (self.seconds > 0).then(|| self.done as f64 / self.seconds as f64),
            p99_us: latencies.map(|all| all.value_at_quantile(0.99)),
        }
    }
}

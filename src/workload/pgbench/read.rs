//! Turns the counts from pgbench's log, and its own summary, into a record. Pure.

use super::options::Settings;
use super::seconds::{LoadTally, ScriptTally, TRANSACTIONS, all_of};
use super::unsent;
use crate::error::{Error, Result};
use crate::parse::pgbench_summary::{self, Summary};
use crate::record::counts::{AllAtWork, Counts, Measure, Reported, StatementFigures};

/// The counts of one measurement. `summary` is pgbench's final output, if it got that far.
pub fn counts(settings: &Settings, tally: &LoadTally, summary: Option<&str>) -> Result<Counts> {
    let summary = summary.map(pgbench_summary::parse).transpose()?;
    let Some(began_us) = tally.began_us else {
        return Err(Error::tool("pgbench completed no transaction during the measurement")
            .hint("a transaction takes longer than the measurement, or the stack stalled: check the server log"));
    };
    let elapsed_us = tally.last_us.saturating_sub(began_us);
    let log_sample = settings.log_sample.unwrap_or(1.0);
    let whole = match &summary {
        Some(summary) if log_sample < 1.0 => as_reported(summary),
        _ => tally.total().of_all(log_sample),
    };
    let mut measures = vec![whole.measure(TRANSACTIONS, elapsed_us)];
    let sent = whole.done + whole.failed + whole.skipped;
    let rest = tally.all_due.and_then(|due| unsent::rest(due, sent));
    measures[0].unsent = tally.unsent.iter().copied().chain(rest).collect();
    if settings.scripts.len() > 1 {
        let scripts = settings.scripts.iter().zip(&tally.scripts);
        measures.extend(scripts.map(|(script, tally)| tally.of_all(log_sample).measure(&script.name, elapsed_us)));
    }
    let reported = summary.map(|summary| reported(settings, summary));
    let all_at_work = tally
        .all_at_work
        .map(|(elapsed_us, share)| AllAtWork { operations: (whole.done as f64 * share).round() as u64, elapsed_us });
    Ok(Counts { elapsed_us, measures, out_of_order: tally.out_of_order, reported, all_at_work, ..Counts::default() })
}

impl LoadTally {
    pub fn total(&self) -> ScriptTally {
        self.scripts.iter().fold(ScriptTally::default(), |sum, script| ScriptTally {
            done: sum.done + script.done,
            failed: sum.failed + script.failed,
            skipped: sum.skipped + script.skipped,
            late: sum.late + script.late,
            latency_us_sum: sum.latency_us_sum + script.latency_us_sum,
        })
    }
}

/// All scripts together by pgbench's own count, which is exact even if it logs only a sample.
fn as_reported(summary: &Summary) -> ScriptTally {
    let mean_us = summary.latency_ms_mean.filter(|mean| mean.is_finite()).unwrap_or(0.0) * 1e3;
    ScriptTally {
        done: summary.transactions,
        failed: summary.failed.unwrap_or(0),
        skipped: summary.skipped.unwrap_or(0),
        late: summary.late.unwrap_or(0),
        latency_us_sum: (mean_us * summary.transactions as f64).round() as u64,
    }
}

impl ScriptTally {
    /// The counts as a measure with this name.
    pub fn measure(&self, name: &str, elapsed_us: u64) -> Measure {
        let ScriptTally { done, failed, skipped, late, latency_us_sum } = *self;
        let (name, done) = (name.to_owned(), Some(done));
        Measure { name, done, failed, skipped, late, elapsed_us, latency_us_sum, ..Measure::default() }
    }

    /// Estimated totals of a script of which this share was logged.
    fn of_all(&self, log_sample: f64) -> ScriptTally {
        let ScriptTally { done, failed, skipped, late, latency_us_sum } = *self;
        let [done, failed, skipped, late, latency_us_sum] =
            [done, failed, skipped, late, latency_us_sum].map(|logged| all_of(logged, log_sample));
        ScriptTally { done, failed, skipped, late, latency_us_sum }
    }
}

/// Leaves out pgbench's counts of single scripts: its threads add to them without a lock.
fn reported(settings: &Settings, summary: Summary) -> Reported {
    let Summary { transactions: done, failed, skipped, late, tps, connection_ms, .. } = summary;
    // Without a standard deviation, pgbench's mean is duration x clients / transactions.
    let latency_ms_mean = summary.latency_ms_stddev.and(summary.latency_ms_mean);
    let scripts = settings.scripts.iter().zip(summary.scripts);
    let statements = scripts.flat_map(|(script, part)| {
        part.into_iter().map(|statement| StatementFigures {
            script: script.name.clone(),
            statement: statement.text,
            latency_us_mean: statement.latency_ms_mean * 1e3,
            failures: statement.failures,
        })
    });
    let statements = statements.collect();
    Reported { done, failed, skipped, late, tps, latency_ms_mean, connection_ms, statements }
}

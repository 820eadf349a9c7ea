//! Raw output to figures: what was counted from the log, beside what pgbench says itself. Pure.

use super::options::Settings;
use super::seconds::{Counts, ScriptCounts};
use crate::error::{Context, Error, Result};
use crate::parse::pgbench_summary::{self, Summary};
use crate::record::trial::{CrossCheck, Figures, Measure, StatementFigures};
use crate::workload::Raw;

/// Name of the measure of all scripts together.
pub const TRANSACTIONS: &str = "transactions";

/// What pgbench's mean latency and ours may differ by.
const LATENCY_TOLERANCE: f64 = 0.01;

/// pgbench prints milliseconds with three decimals: half of the last one is rounding.
const ROUNDING_MS: f64 = 0.000_5;

/// Figures of one measurement.
pub fn figures(settings: &Settings, raw: &Raw) -> Result<Figures> {
    let summary = pgbench_summary::parse(&raw.summary)?;
    let counts = Counts::deserialize_from(&raw.counts)?;
    let Some(began_us) = counts.began_us else {
        return Err(Error::tool("pgbench completed no transaction at all during the measurement")
            .hint("the stack is slower than the duration, or it stalled: look at the server's log"));
    };
    let elapsed_us = counts.last_us.saturating_sub(began_us);
    let total = counts.total();
    let mut measures = vec![measure(TRANSACTIONS, &total, elapsed_us)];
    if settings.scripts.len() > 1 {
        let scripts = settings.scripts.iter().zip(&counts.scripts);
        measures.extend(scripts.map(|(script, counts)| measure(&script.name, counts, elapsed_us)));
    }
    Ok(Figures {
        elapsed_us,
        measures,
        statements: statements(settings, &summary),
        checks: checks(&summary, &total),
        connect_us: summary.connection_ms.map(|ms| (ms * 1e3).round() as u64),
        probe: None,
    })
}

impl Counts {
    fn deserialize_from(json: &serde_json::Value) -> Result<Counts> {
        serde_json::from_value(json.clone()).or_store(|| "read what was counted from pgbench's log".to_owned())
    }

    /// All scripts together.
    pub fn total(&self) -> ScriptCounts {
        self.scripts.iter().fold(ScriptCounts::default(), |sum, script| ScriptCounts {
            done: sum.done + script.done,
            failed: sum.failed + script.failed,
            skipped: sum.skipped + script.skipped,
            late: sum.late + script.late,
            latency_us_sum: sum.latency_us_sum + script.latency_us_sum,
        })
    }
}

fn measure(name: &str, counts: &ScriptCounts, elapsed_us: u64) -> Measure {
    Measure {
        name: name.to_owned(),
        operation: "transaction".to_owned(),
        done: Some(counts.done),
        failed: counts.failed,
        skipped: counts.skipped,
        late: counts.late,
        elapsed_us,
        latency_us_sum: counts.latency_us_sum,
        unavailable: None,
        slice_rates: Vec::new(),
    }
}

fn statements(settings: &Settings, summary: &Summary) -> Vec<StatementFigures> {
    let scripts = settings.scripts.iter().zip(&summary.scripts);
    scripts
        .flat_map(|(script, part)| {
            part.statements.iter().map(|statement| StatementFigures {
                script: script.name.clone(),
                statement: statement.text.clone(),
                latency_us_mean: statement.latency_ms_mean * 1e3,
                failures: statement.failures,
            })
        })
        .collect()
}

/// pgbench's totals against ours. Its counts of single scripts are left out: its threads add to them without a lock.
fn checks(summary: &Summary, total: &ScriptCounts) -> Vec<CrossCheck> {
    let exactly = |what: &str, tool: Option<u64>, own: u64| {
        tool.map(|tool| CrossCheck {
            what: what.to_owned(),
            tool: tool as f64,
            own: own as f64,
            agrees: tool == own,
            tolerance: 0.0,
        })
    };
    let mut checks: Vec<CrossCheck> = [
        exactly(TRANSACTIONS, Some(summary.transactions), total.done),
        exactly("failed", summary.failed, total.failed),
        exactly("skipped", summary.skipped, total.skipped),
        exactly("late", summary.late, total.late),
    ]
    .into_iter()
    .flatten()
    .collect();
    // Without a standard deviation, pgbench's mean is not measured: nothing to compare with.
    if let (Some(tool), Some(_)) = (summary.latency_ms_mean, summary.latency_ms_stddev)
        && total.done > 0
    {
        let own = total.latency_us_sum as f64 / total.done as f64 / 1e3;
        let agrees = (own - tool).abs() <= LATENCY_TOLERANCE * tool + ROUNDING_MS;
        let what = "latency_ms_mean".to_owned();
        checks.push(CrossCheck { what, tool, own, agrees, tolerance: LATENCY_TOLERANCE });
    }
    checks
}

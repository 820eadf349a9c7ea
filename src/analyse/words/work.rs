//! Checks that compared cases did the same work: WAL per commit, and whole checkpoint cycles.

use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::{CostCounter, CounterComparison, CounterRow, Estimate, PairOutcome};
use crate::record::case::CaseSpec;
use crate::stats::moments;

/// Difference of the WAL per commit that is reported with a comparison.
const WAL_WORTH_SAYING: f64 = 0.05;

/// Settings that determine when a checkpoint comes.
const CHECKPOINT_SETTINGS: [&str; 2] = ["checkpoint_timeout", "max_wal_size"];

/// "; WAL per commit against ext4: xfs 25 % less, btrfs 9 % more", for each case of a ranking that was shown to differ
/// from its reference, and by so much; empty if none does.
pub fn wal_aside(counters: &[CounterComparison]) -> String {
    let wal = counters.iter().find(|compared| compared.counter == CostCounter::WalBytes);
    let rows = wal.map(|wal| wal.rows.as_slice()).unwrap_or_default();
    let more = |row: &CounterRow| Some(format!("{} {}", row.label, more_wal(row.ratio.as_ref(), row.outcome)?));
    let differ: Vec<String> = rows.iter().filter_map(more).collect();
    let reference = rows.iter().find(|row| row.outcome.is_none());
    reference.filter(|_| !differ.is_empty()).map_or_else(String::new, |reference| {
        format!("; WAL per commit against {}: {}", reference.label, differ.join(", "))
    })
}

/// "25 % less".
pub fn more_wal(ratio: Option<&Estimate>, outcome: Option<PairOutcome>) -> Option<String> {
    let share = ratio.filter(|_| outcome.is_some_and(PairOutcome::differs))?.value - 1.0;
    let than = if share < 0.0 { "less" } else { "more" };
    (share.abs() >= WAL_WORTH_SAYING).then(|| format!("{:.0} % {than}", 100.0 * share.abs()))
}

/// Reason to name no winner: the windows of these cases hold different numbers of whole checkpoint cycles, and no
/// setting of the plan explains that. `None` if they hold the same number, or the plan sets its own checkpoints.
pub fn unequal_cycles(cases: &[(&str, &CaseSums)]) -> Option<String> {
    // Every step of a search has its own cycle, and their number is not part of its result.
    let measured =
        cases.iter().filter(|(_, case)| !case.operation.as_ref().is_some_and(|operation| operation.is_searched));
    let known = measured.filter_map(|(label, case)| {
        let windows = case.trials.iter().filter_map(|trial| trial.window.as_ref());
        let cycles: Vec<f64> = windows.clone().map(|window| window.whole_cycles as f64).collect();
        let asked = windows.clone().any(|window| window.asked_cycles.is_some());
        Some((*label, moments::mean(&cycles)?, !asked && sets_checkpoints(&case.spec)))
    });
    let known: Vec<(&str, f64, bool)> = known.collect();
    let fewest = known.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let most = known.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let is_explained = most.2 || fewest.2;
    if most.1 - fewest.1 < 1.0 || is_explained {
        return None;
    }
    let [most, fewest] = [most, fewest].map(|(case, cycles, _)| format!("{} of {case}", counted(*cycles)));
    Some(format!("no winner: the measured windows contain {most} and {fewest}, which is different work"))
}

fn sets_checkpoints(spec: &CaseSpec) -> bool {
    let names = spec.postgres.iter().flat_map(|postgres| postgres.settings.keys());
    names.into_iter().any(|name| CHECKPOINT_SETTINGS.iter().any(|known| known.eq_ignore_ascii_case(name)))
}

/// "2 whole checkpoint cycles"; "0.4 whole checkpoint cycles" as a mean over trials.
fn counted(cycles: f64) -> String {
    let number = crate::units::significant(cycles);
    format!("{number} whole checkpoint cycle{}", if number == "1" { "" } else { "s" })
}

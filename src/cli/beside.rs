//! What goes on beside a run on this machine: other programs, other runs.

use super::out;
use crate::analyse::case::cpu_use::LOSS_WORTH_SAYING;
use crate::error::Result;
use crate::host::Host;
use crate::host::machine::{self, WATCHED};
use crate::host::time::{now, sleep};
use crate::run::clean;
use crate::telemetry::processes::others_beside;
use std::path::Path;

/// Says what CPU time other programs take, from as much on as a report says it.
pub(super) fn say_programs(host: &Host) {
    let (cpus, begun) = (machine::facts(host).cpus, now());
    let ((), others) = others_beside(host, || sleep(WATCHED));
    let all_ns = begun.elapsed().as_nanos() as f64 * f64::from(cpus.max(1));
    others.and_then(|others| others_words(others, all_ns)).iter().for_each(|line| out::remark(line));
}

fn others_words((busiest, ns): (Option<String>, u64), all_ns: f64) -> Option<String> {
    let share = (ns as f64 / all_ns).min(1.0);
    let (percent, busiest) = ((share * 100.0).round(), out::harmless(&busiest.unwrap_or_default()));
    let words =
        format!("other programs use {percent} % of the CPUs ({busiest} most of it): the answer will be less sure");
    (share >= LOSS_WORTH_SAYING).then_some(words)
}

/// Says which other runs are active, and, before a new one, what killed ones left.
///
/// # Errors
/// If a ledger cannot be read.
pub(super) fn say_runs(host: &Host, state: &Path, is_new: bool) -> Result<()> {
    let left = clean::clean(host, state, true)?;
    for run in left.iter().filter(|run| is_new && !run.live && !run.things.is_empty()) {
        out::remark(&format!("run {} was killed and left things behind: `pgstrata clean` removes them", run.run));
    }
    for run in left.iter().filter(|run| run.live) {
        out::remark(&format!("run {} is active at the same time: each run disturbs the other's figures", run.run));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_are_named_from_where_a_report_names_them() {
        let said = |ns| others_words((Some("cc1".to_owned()), ns), 1e9);
        let wanted = "other programs use 34 % of the CPUs (cc1 most of it): the answer will be less sure";
        assert_eq!((said(340_000_000).as_deref(), said(19_000_000)), (Some(wanted), None));
    }
}

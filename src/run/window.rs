//! Prepares a window of whole checkpoint cycles: settings under which checkpoints are triggered by time alone, and the
//! expected duration. Values of the plan win. Rationale: `docs/adr/0020-windows-of-whole-checkpoint-cycles.md`.

use super::case;
use crate::cluster::setting;
use crate::error::Result;
use crate::record::case::{CaseSpec, PostgresSpec};
use crate::record::window::Extent;
use crate::units::{Micros, count};
use std::collections::BTreeMap;

/// Default checkpoint interval: the shortest that PostgreSQL accepts.
const CHECKPOINT_TIMEOUT_S: u64 = 30;

/// PostgreSQL's own default.
const DEFAULT_TIMEOUT_US: u64 = 300_000_000;

const MIB: u64 = 1 << 20;

/// Share of the free space for WAL. It is the most that the server retains by itself, and data grow alongside.
const WAL_SHARE: f64 = 0.7;

/// Largest `max_wal_size` to set: twice what 1 GB/s writes in a cycle of 30 s.
const MOST_WAL: u64 = 64 << 30;

/// Smallest `max_wal_size` to set: PostgreSQL's default `min_wal_size`.
const LEAST_WAL: u64 = 80 * MIB;

/// WAL written before the warm-up if the plan sets no `max_wal_size`. Segments that a cycle needs beyond it come from
/// the warm-up and are recycled.
const PREFILL: u64 = 1 << 30;

/// The same before turns, which write less.
const PREFILL_OF_TURNS: u64 = 512 << 20;

/// Warm-up cycles after which measurement starts without having settled.
pub const MOST_WARM_UP_CYCLES: usize = 5;

/// Usual warm-up cycles: the rest of one, and two that agree. For the estimate.
const USUAL_WARM_UP_CYCLES: u64 = 3;

/// Interval of timed checkpoints, microseconds, from the plan or as set for cycles.
pub fn timeout_us(case: &CaseSpec, extent: Extent) -> u64 {
    let set = case.postgres.as_ref().and_then(|postgres| postgres.asked("checkpoint_timeout"));
    let default =
        if matches!(extent, Extent::Cycles { .. }) { CHECKPOINT_TIMEOUT_S * 1_000_000 } else { DEFAULT_TIMEOUT_US };
    set.and_then(setting::span_us).unwrap_or(default)
}

/// Longest duration of a measurement with this checkpoint interval, microseconds, rounded to whole seconds.
pub fn limit_us(extent: Extent, timeout_us: u64) -> u64 {
    let limit = match extent {
        Extent::Span { span_us } => span_us,
        Extent::Cycles { limit_us: Some(limit_us), .. } => limit_us,
        Extent::Cycles { cycles, .. } => cycles.saturating_mul(timeout_us).saturating_mul(2),
    };
    limit.div_ceil(1_000_000).max(1) * 1_000_000
}

/// Expected warm-up and measurement of a case, microseconds.
///
/// # Errors
/// For a workload that this program does not have.
pub fn expected_us(case: &CaseSpec) -> Result<(u64, u64)> {
    let window = case::workload(&case.workload.kind)?.window(&case.workload.options);
    let timeout_us = timeout_us(case, window.extent);
    Ok(match window.extent {
        Extent::Span { span_us } => (window.warm_up.unwrap_or_default().0, span_us),
        Extent::Cycles { cycles, .. } => {
            let warm_up = window.warm_up.map_or(timeout_us.saturating_mul(USUAL_WARM_UP_CYCLES), |least| {
                least.0.saturating_add(timeout_us / 2)
            });
            let measure = cycles.saturating_mul(timeout_us).min(limit_us(window.extent, timeout_us));
            (warm_up, measure)
        }
    })
}

/// Describes the window of a case: `3 checkpoint cycles of 30 s, after a warm-up of 2 to 5 of them`.
///
/// # Errors
/// For a workload that this program does not have.
pub fn described(case: &CaseSpec) -> Result<String> {
    let window = case::workload(&case.workload.kind)?.window(&case.workload.options);
    let timeout = Micros(timeout_us(case, window.extent));
    Ok(match (window.extent, window.warm_up) {
        (Extent::Span { span_us }, warm_up) => match warm_up.unwrap_or_default() {
            Micros(0) => Micros(span_us).to_string(),
            warm_up => format!("{}, after a warm-up of {warm_up}", Micros(span_us)),
        },
        (Extent::Cycles { cycles, .. }, warm_up) => {
            let on_request = case.postgres.as_ref().is_some_and(|postgres| postgres.asked("max_wal_size").is_some());
            let at_most = if on_request { " at most" } else { "" };
            let before = warm_up.map_or_else(
                || format!("2 to {MOST_WARM_UP_CYCLES} of them"),
                |least| format!("{least} and up to the next checkpoint"),
            );
            format!("{} of {timeout}{at_most}, after a warm-up of {before}", count(cycles, "checkpoint cycle"))
        }
    })
}

/// Settings for a window of cycles on a stack with this much space for WAL, except those that the plan sets.
pub fn settings(postgres: &PostgresSpec, free_bytes: u64) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::from([
        ("checkpoint_timeout".to_owned(), format!("{CHECKPOINT_TIMEOUT_S}s")),
        ("max_wal_size".to_owned(), format!("{}MB", most_wal(postgres, free_bytes) / MIB)),
    ]);
    // A server needs at least two segments; PostgreSQL's default assumes the default segment size.
    if !postgres.initdb.iter().any(|argument| argument.starts_with("--wal-segsize")) {
        let least = prefill(postgres, free_bytes).unwrap_or(LEAST_WAL).max(LEAST_WAL);
        settings.insert("min_wal_size".to_owned(), format!("{}MB", least / MIB));
    }
    settings.retain(|name, _| postgres.asked(name).is_none());
    settings
}

/// Settings that turns take from the plan.
pub const REPLACED: [&str; 2] = ["checkpoint_timeout", "max_wal_size"];

/// Settings for turns: no checkpoint and no autovacuum falls into them. They win over the plan's, but for autovacuum;
/// cases that differ in checkpoints are measured over whole trials.
pub fn settings_of_turns(postgres: &PostgresSpec, free_bytes: u64) -> BTreeMap<String, String> {
    let most = most_wal(postgres, free_bytes).min((free_bytes as f64 * WAL_SHARE) as u64).max(most_room(free_bytes));
    let mut settings = BTreeMap::from([
        ("checkpoint_timeout".to_owned(), "1h".to_owned()),
        ("max_wal_size".to_owned(), format!("{}MB", most / MIB)),
    ]);
    // Without the first, a checkpoint begins at half of max_wal_size.
    for (name, value) in [("checkpoint_completion_target", "0"), ("autovacuum", "off")] {
        if postgres.asked(name).is_none() {
            settings.insert(name.to_owned(), value.to_owned());
        }
    }
    settings
}

/// Bytes of WAL to write before turns.
pub fn prefill_of_turns(postgres: &PostgresSpec, free_bytes: u64) -> Option<u64> {
    prefill(postgres, free_bytes).is_some().then_some(PREFILL_OF_TURNS.min((free_bytes as f64 * WAL_SHARE) as u64))
}

/// Bytes of WAL to write before the warm-up, so that the measurement uses recycled segments; `None` if the plan
/// disables recycling.
pub fn prefill(postgres: &PostgresSpec, free_bytes: u64) -> Option<u64> {
    let recycled = postgres.asked("wal_recycle").is_none_or(|value| !is_off(value));
    let most = most_wal(postgres, free_bytes);
    let steady = if postgres.asked("max_wal_size").is_some() { most } else { most.min(PREFILL) };
    recycled.then_some(steady.min((free_bytes as f64 * WAL_SHARE) as u64))
}

/// `max_wal_size`: the plan's, or what there is room for.
fn most_wal(postgres: &PostgresSpec, free_bytes: u64) -> u64 {
    postgres.asked("max_wal_size").and_then(|value| setting::bytes(value, MIB)).unwrap_or_else(|| most_room(free_bytes))
}

/// Room for WAL, as a power of two so that stacks of similar size get the same.
fn most_room(free_bytes: u64) -> u64 {
    let room = ((free_bytes as f64 * WAL_SHARE) as u64).clamp(LEAST_WAL, MOST_WAL);
    (1 << room.ilog2()).max(LEAST_WAL)
}

/// `off` as PostgreSQL reads it, with any of its abbreviations.
fn is_off(value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    value == "0"
        || (value.len() > 1 && "off".starts_with(&value))
        || ["false", "no"].iter().any(|no| !value.is_empty() && no.starts_with(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn postgres(settings: &[(&str, &str)]) -> PostgresSpec {
        PostgresSpec {
            bin: "auto".to_owned(),
            build: None,
            settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            initdb: Vec::new(),
        }
    }

    #[test]
    fn checkpoints_are_timed_and_similar_stacks_get_equal_wal() {
        let of = |free: u64| settings(&postgres(&[]), free);
        let roomy = of(500 << 30);
        assert_eq!(roomy["checkpoint_timeout"], "30s");
        assert_eq!((roomy["max_wal_size"].as_str(), roomy["min_wal_size"].as_str()), ("65536MB", "1024MB"));
        assert_eq!(of(1550 * MIB)["max_wal_size"], "1024MB");
        assert_eq!(of(1650 * MIB), of(1550 * MIB));
        assert_eq!(
            (of(60 * MIB)["max_wal_size"].as_str(), prefill(&postgres(&[]), 60 * MIB)),
            ("80MB", Some(42 * MIB))
        );
    }

    #[test]
    fn what_the_plan_sets_stays() {
        let plan = postgres(&[("Max_WAL_size", "48MB"), ("checkpoint_timeout", "5min")]);
        assert_eq!(settings(&plan, 500 << 30), BTreeMap::from([("min_wal_size".to_owned(), "80MB".to_owned())]));
        assert_eq!(prefill(&plan, 500 << 30), Some(48 * MIB));
        let mut by_initdb = postgres(&[]);
        by_initdb.initdb = ["-c", "max_wal_size=64MB", "--set=min_wal_size=32MB"].map(str::to_owned).to_vec();
        assert_eq!(
            settings(&by_initdb, 500 << 30),
            BTreeMap::from([("checkpoint_timeout".to_owned(), "30s".to_owned())])
        );
        assert_eq!(prefill(&postgres(&[("wal_recycle", "off")]), 500 << 30), None);
    }

    #[test]
    fn the_limit_is_twice_the_cycles_in_whole_seconds() {
        let cycles = |limit_us| Extent::Cycles { cycles: 3, limit_us };
        assert_eq!(limit_us(cycles(None), 30_000_000), 180_000_000);
        assert_eq!(limit_us(cycles(Some(7_000_000)), 30_000_000), 7_000_000);
        assert_eq!(limit_us(Extent::Span { span_us: 1 }, 30_000_000), 1_000_000);
    }
}

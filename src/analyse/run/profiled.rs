//! What each stack does with the load of a server's profile: response times at the server's rate, how much more it takes,
//! the WAL of a day, and the time until it is back after a crash; each where the plan measured it.

use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::groups::by_key;
use crate::analyse::findings::{CaseFinding, Profiled, StageKind, names};
use crate::units::{Micros, significant};

/// Share of the due transactions that must be done within the limit, as in a search for capacity.
const IN_TIME: f64 = 0.99;
const DAY_S: f64 = 86_400.0;

/// One for each stack with a load of a profile.
pub fn findings(cases: &[CaseSums], found: &[CaseFinding]) -> Vec<Profiled> {
    let of_profiles = cases.iter().zip(found).filter_map(|(case, found)| {
        let rate = case.operation.as_ref()?.profile_rate?;
        let axes = case.spec.axes.iter().filter(|(axis, _)| !case.spec.is_workload_axis(axis));
        let name = axes.map(|(axis, value)| names::of_axis(axis, value)).collect::<Vec<_>>().join(" ");
        Some(((name, rate), found))
    });
    by_key(of_profiles).into_iter().map(|((name, rate), cases)| of_stack(name, rate, cases)).collect()
}

fn of_stack(name: String, rate: f64, mut cases: Vec<&CaseFinding>) -> Profiled {
    let multiple = |case: &CaseFinding| case.fixed_rate.unwrap_or(0.0) / rate;
    let capacity = cases.iter().find_map(|case| case.capacity.as_ref());
    let back = cases.iter().filter(|case| case.workload_kind == "recovery").flat_map(|case| &case.stages);
    let back_s = back.into_iter().find(|stage| stage.kind == StageKind::Ranked).and_then(|stage| stage.seconds);
    let (sought, limit) = (capacity.and_then(|found| found.holds), capacity.map(|found| found.limit_us));
    cases.retain(|case| case.fixed_rate.is_some());
    cases.sort_by(|a, b| multiple(a).total_cmp(&multiple(b)));
    let own = cases.iter().find(|case| (multiple(case) - 1.0).abs() < 0.01);
    let p99 = own.and_then(|case| case.measures.first()?.latency.as_ref()?.percentile("p99"));
    let strata = own.and_then(|case| case.strata.as_ref());
    let a_day = |bytes: Option<f64>| Some(bytes? * rate * DAY_S);
    let limited = || cases.iter().filter(|case| case.latency_limit_us.is_some());
    let kept = limited().take_while(|case| is_in_time(case)).last();
    let missed = limited().find(|case| !is_in_time(case));
    Profiled {
        name,
        rate,
        p99_us: p99.and_then(|p99| p99.over_trials),
        p99_unavailable: p99.and_then(|p99| p99.unavailable.clone()),
        limit_us: limit.or(limited().next().and_then(|case| case.latency_limit_us)),
        holds: sought.map(|holds| holds / rate).or(kept.map(|case| multiple(case))),
        fails: sought.map(|holds| holds / rate).or(missed.map(|case| multiple(case))),
        wal_bytes_per_day: a_day(strata.and_then(|strata| strata.wal_bytes)),
        device_bytes_per_day: a_day(strata.and_then(|strata| strata.at_stack_devices.as_ref()?.write_bytes)),
        back_s,
    }
}

fn is_in_time(case: &CaseFinding) -> bool {
    case.measures.first().and_then(|measure| measure.in_time).is_some_and(|share| share.value >= IN_TIME)
}

/// Sentence to accompany a run's answer, and what such a load is not.
pub fn sentence(found: &[Profiled]) -> Option<String> {
    let stacks = found.iter().filter_map(|stack| {
        let p99 = stack.p99_us.map(|us| format!("p99 {}", Micros(us.value.round() as u64)));
        let [up_to, not_at] = [("in time up to", stack.holds), ("not in time at", stack.fails)]
            .map(|(words, factor)| Some(format!("{words} {} times that rate", significant(factor?))));
        let parts: Vec<String> = p99.into_iter().chain(up_to.or(not_at)).collect();
        (!parts.is_empty()).then(|| format!("{}: {}", stack.name, parts.join(", ")))
    });
    let stacks = names::first(stacks.collect::<Vec<_>>().into_iter(), 4, "; ", "; ");
    let rate = significant(found.first()?.rate);
    let stacks = if stacks.is_empty() { String::new() } else { format!(" At that rate, {stacks}.") };
    Some(format!(
        "The load is made from the profile of a server with {rate} commits a second: its WAL, full pages, dirtied pages and \
         reads that miss, not its locks, plans, CPU time of queries and temporary files.{stacks}"
    ))
}

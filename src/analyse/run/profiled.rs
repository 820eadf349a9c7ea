//! What each stack does with the load of a server's profile: response times at the server's rate, how much more it takes,
//! the WAL of a day, and the time until it is back after a crash; each where the plan measured it.

use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::groups::{by_key, distinct};
use crate::analyse::findings::{CaseFinding, Profiled, StageKind, names};
use crate::units::{Micros, significant};

/// Share of the due transactions that must be done within the limit, as in a search for capacity.
const IN_TIME: f64 = 0.99;
const DAY_S: f64 = 86_400.0;

/// Cases of one stack and load: those at fixed rates, and those that tell of the same stack without one.
type Group<'a> = (Vec<&'a CaseFinding>, Vec<&'a CaseFinding>);

/// One for each stack and load of a profile; figures of a day only from windows with whole checkpoint cycles.
pub fn findings(cases: &[CaseSums], found: &[CaseFinding]) -> Vec<Profiled> {
    let of_profiles = cases.iter().zip(found).filter_map(|(case, found)| {
        let rate = case.operation.as_ref()?.profile_rate?;
        let named = |is_load: bool| {
            let axes = case.spec.axes.iter().filter(|(axis, _)| {
                case.spec.is_workload_axis(axis) == is_load && !matches!(axis.as_str(), "rate" | "workload")
            });
            axes.map(|(axis, value)| names::of_axis(axis, value)).collect::<Vec<_>>().join(" ")
        };
        Some(((named(false), rate), (named(true), case.spec.workload.name.as_str(), found)))
    });
    let stacks = by_key(of_profiles).into_iter().flat_map(|((stack, rate), cases)| {
        let (fixed, others): (Vec<_>, Vec<_>) = cases.into_iter().partition(|(.., found)| found.fixed_rate.is_some());
        let others: Vec<&CaseFinding> = others.into_iter().map(|(.., found)| found).collect();
        let mut loads = by_key(fixed.into_iter().map(|(load, name, found)| ((load, name), found)));
        if loads.is_empty() {
            loads.push(Default::default());
        }
        let is_one = loads.iter().all(|((_, name), _)| *name == loads[0].0.1);
        let of_loads = loads.into_iter().map(move |((load, name), fixed)| {
            let parts = [stack.as_str(), if is_one { "" } else { name }, &load];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            of_load(parts.join(" "), rate, (fixed, others.clone()))
        });
        of_loads.collect::<Vec<_>>()
    });
    stacks.collect()
}

fn of_load(name: String, rate: f64, (mut fixed, others): Group<'_>) -> Profiled {
    let multiple = |case: &CaseFinding| case.fixed_rate.unwrap_or(0.0) / rate;
    let back = others.iter().filter(|case| case.workload_kind == "recovery").flat_map(|case| &case.stages);
    let back_s = back.into_iter().find(|stage| stage.kind == StageKind::Ranked).and_then(|stage| stage.seconds);
    fixed.sort_by(|a, b| multiple(a).total_cmp(&multiple(b)));
    let own = fixed.iter().find(|case| (multiple(case) - 1.0).abs() < 0.01);
    let p99 = own.and_then(|case| case.measures.first()?.latency.as_ref()?.percentile("p99"));
    let has_cycle = |case: &CaseFinding| case.window.as_ref().is_some_and(|window| window.whole_cycles.0 > 0);
    let strata = own.filter(|case| has_cycle(case)).and_then(|case| case.strata.as_ref());
    let a_day = |bytes: Option<f64>| Some(bytes? * rate * DAY_S);
    let limited = || fixed.iter().filter(|case| case.latency_limit_us.is_some());
    let kept = limited().take_while(|case| is_in_time(case)).last().map(|case| multiple(case));
    let missed = limited().find(|case| !is_in_time(case)).map(|case| multiple(case));
    let tried = (limited().next().and_then(|case| case.latency_limit_us), kept, missed);
    let sought = others.iter().find_map(|case| case.capacity.as_ref()).map(|found| {
        let holds = found.holds.map(|holds| holds / rate);
        // Where all steps of a search passed, or all failed, it has no middle.
        (Some(found.limit_us), holds, holds.filter(|_| found.about.is_some()))
    });
    let (limit_us, holds, fails) = sought.unwrap_or(tried);
    Profiled {
        name,
        rate,
        p99_us: p99.and_then(|p99| p99.over_trials),
        p99_unavailable: p99.and_then(|p99| p99.unavailable.clone()),
        limit_us,
        holds,
        fails,
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
    let rates = distinct(found.iter().map(|stack| significant(stack.rate))).join(" and ");
    let stacks = if stacks.is_empty() { String::new() } else { format!(" At its rate, {stacks}.") };
    (!found.is_empty()).then(|| {
        format!(
            "The load is made from the profile of a server with {rates} commits a second: its WAL, full pages, dirtied \
             pages and reads that miss, not its locks, plans, CPU time of queries and temporary files.{stacks}"
        )
    })
}

//! Summaries of the page's folded sections, shown after their titles.

use super::device_work::one_write;
use super::environment::machine_names;
use super::labelled::Labelled;
use super::words::{bounded, estimate_text, in_ms, latency, percent};
use crate::analyse::findings::{
    Ageing, CaseFinding, DurabilityClass, Findings, Percentile, PercentileRatio, StageKind,
};
use crate::analyse::run::power_cuts::answer;
use crate::units::{Bytes, count, significant};
use minijinja::{Value, context};

/// One clause per section; none without data.
pub(super) fn section_titles(labelled: &Labelled<'_>) -> Value {
    let findings = labelled.findings;
    let all = TitledCases::all(labelled);
    let main = TitledCases::of_first_ranking(findings).unwrap_or_else(|| TitledCases::all(labelled));
    let of_main = |what: &str, of: fn(&CaseFinding) -> Option<f64>, words: fn(f64) -> String| {
        let of_main = main.range(what, of, words).map(|found| main.prefix.clone() + &found);
        of_main.or_else(|| all.range(what, of, words))
    };
    let windows = findings.trials.iter().filter_map(|trial| trial.window.as_ref());
    let checkpoints: usize = windows.map(|window| window.checkpoints.len()).sum();
    let profiled = findings.profiled.iter().filter_map(|it| Some((it.name.as_str(), in_ms(&it.p99_us?).value)));
    let ratio = main.p99_against_baseline().map_or_else(String::new, |ratio| format!("; {ratio}"));
    context! {
        profiled => extremes("p99", profiled.collect(), ms),
        full => (!findings.full.is_empty()).then(|| format!("full in {}", count(findings.full.len(), "trial"))),
        stages => stages(&main).or_else(|| stages(&all)),
        power_cuts => Some(answer(&findings.power_cuts)).filter(|answer| !answer.is_empty()),
        snapshots => of_main("slowest second at", |case| Some(case.snapshots.as_ref()?.dip?.value), percent),
        drives => steady_drives(findings),
        ageing => ageing(&findings.ageing),
        capacity => of_main("holds", |case| case.capacity.as_ref()?.holds, a_second),
        seconds => without_a_commit(&all)
            .or_else(|| of_main("rate", |case| Some(case.measures.first()?.rate?.value), a_second)),
        latency => of_main("p99", |case| Some(in_ms(&p99(case)?.over_trials?).value), ms).map(|found| found + &ratio),
        waits => of_main("storage", |case| Some(case.backend_time.as_ref()?.storage?.value), percent),
        telemetry => of_main("CPUs busy", |case| case.backend_time.as_ref()?.cpu_busy, percent)
            .or_else(|| of_main("device busy", |case| case.strata.as_ref()?.at_stack_devices.as_ref()?.busy, percent)),
        steadiness => longest_stall(&all),
        strata => of_main(
            "WAL",
            |case| case.strata.as_ref()?.wal_bytes.filter(|bytes| *bytes > 0.0),
            |bytes| Bytes(bytes.round() as u64).to_string(),
        ),
        windows => count(checkpoints, "checkpoint"),
        synced => all.range("fdatasync", |case| Some(one_write(case, "fdatasync")?.rate.as_ref()?.value), a_second),
        statements => slowest_statement(&main).or_else(|| slowest_statement(&all)),
        environment => Some(machine_names(&findings.machines)).filter(|names| !names.is_empty()),
        checks => checks(findings),
        trials => format!("{} of {} measured", findings.run.trials_measured, findings.run.trials_planned),
    }
}

/// Cases with their names, among which a title tells the extremes.
struct TitledCases<'a> {
    cases: Vec<(&'a str, &'a CaseFinding)>,
    /// What they have in common, where the run has more: "tpcb, clients=16: ".
    prefix: String,
}

impl<'a> TitledCases<'a> {
    fn all(labelled: &'a Labelled<'_>) -> TitledCases<'a> {
        let cases = labelled.findings.cases.iter().map(|case| (labelled.label(&case.id), case)).collect();
        TitledCases { cases, prefix: String::new() }
    }

    /// Those of the most important ranking: workloads and loads are not comparable.
    fn of_first_ranking(findings: &'a Findings) -> Option<TitledCases<'a>> {
        let first = findings.rankings.first()?;
        let case = |id: &str| findings.cases.iter().find(|case| case.id == id);
        let cases = first.rows().filter_map(|row| Some((row.label.as_str(), case(&row.case)?))).collect();
        let prefix = if findings.rankings.len() > 1 { format!("{}: ", first.title) } else { String::new() };
        Some(TitledCases { cases, prefix })
    }

    fn most<N: PartialOrd>(&self, of: impl Fn(&'a CaseFinding) -> Option<N>) -> Option<(&'a str, N)> {
        let known = self.cases.iter().filter_map(|(label, case)| Some((*label, of(case)?)));
        known.reduce(|one, other| if other.1 > one.1 { other } else { one })
    }

    fn range(&self, what: &str, of: impl Fn(&CaseFinding) -> Option<f64>, words: fn(f64) -> String) -> Option<String> {
        extremes(what, self.cases.iter().filter_map(|(label, case)| Some((*label, of(case)?))).collect(), words)
    }

    /// "btrfs 1.45× ext4": the case farthest from the baseline, of all that are not volatile.
    fn p99_against_baseline(&self) -> Option<String> {
        let safe = self.cases.iter().filter(|(_, case)| case.durability.class != DurabilityClass::Volatile);
        let compared = safe.filter_map(|(label, case)| Some((*label, p99(case)?.comparison.as_ref()?)));
        let distance = |found: &PercentileRatio| found.ratio.value.ln().abs();
        let (label, found) = compared.max_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)))?;
        let (base, _) = self.cases.iter().find(|(_, case)| case.id == found.baseline)?;
        Some(match found.outcome.differs() {
            true => format!("{label} {}× {base}", estimate_text(&found.ratio).0),
            false => format!("{label} and {base}: {}", found.outcome.words()),
        })
    }
}

fn p99(case: &CaseFinding) -> Option<&Percentile> {
    case.measures.first()?.latency.as_ref()?.percentile("p99")
}

fn ms(ms: f64) -> String {
    format!("{} ms", significant(ms))
}

fn a_second(rate: f64) -> String {
    format!("{}/s", significant(rate))
}

/// "p99 14 ms (ext4) to 21 ms (btrfs)".
fn extremes(what: &str, mut values: Vec<(&str, f64)>, words: impl Fn(f64) -> String) -> Option<String> {
    values.sort_by(|one, other| one.1.total_cmp(&other.1));
    let ((least_label, least), (most_label, most)) = values.first().zip(values.last())?;
    let (least, most) = (words(*least), words(*most));
    Some(match least == most {
        true => format!("{what} {least}"),
        false => format!("{what} {least} ({least_label}) to {most} ({most_label})"),
    })
}

/// "redo 3.1 s (ext4) to 5.2 s (xfs)", of the first whole stage.
fn stages(cases: &TitledCases<'_>) -> Option<String> {
    let stages = cases.cases.iter().flat_map(|(_, case)| &case.stages);
    let name = &stages.clone().find(|stage| stage.kind != StageKind::Part && stage.seconds.is_some())?.name;
    let seconds = |case: &CaseFinding| Some(case.stages.iter().find(|stage| stage.name == *name)?.seconds?.value);
    cases.range(name, seconds, |s| format!("{} s", significant(s)))
}

fn steady_drives(findings: &Findings) -> Option<String> {
    let steady = findings.drives.iter().filter(|drive| drive.steady_after.is_some()).count();
    (!findings.drives.is_empty()).then(|| format!("{steady} of {} steady", findings.drives.len()))
}

/// "scan 0.62× fresh, btrfs": what lies farthest from the control after all ageing; else the first sentence.
fn ageing(found: &[Ageing]) -> Option<String> {
    let last = found.iter().filter_map(|one| Some((one, one.points.last()?.ratio?.value)));
    let farthest = last.max_by(|(_, a), (_, b)| a.ln().abs().total_cmp(&b.ln().abs()));
    let words = farthest.map(|(one, ratio)| format!("{} {}× fresh, {}", one.figure, significant(ratio), one.name));
    words.or_else(|| found.first().map(|first| format!("{}: {}", first.figure, first.sentence)))
}

fn longest_stall(cases: &TitledCases<'_>) -> Option<String> {
    let stall = |case: &CaseFinding| Some((case.steadiness.as_ref()?.longest_stall_us?, case.log_sample.is_some()));
    let (label, (us, sampled)) = cases.most(stall)?;
    Some(format!("longest stall {}, {label}", bounded("at least", sampled, latency(us))))
}

/// "5 seconds without a commit, most in btrfs".
fn without_a_commit(cases: &TitledCases<'_>) -> Option<String> {
    let at_zero = |case: &CaseFinding| case.steadiness.as_ref().map(|found| found.seconds_at_zero);
    let all: u64 = cases.cases.iter().filter_map(|(_, case)| at_zero(case)).sum();
    let (label, _) = cases.most(at_zero)?;
    Some(match all {
        0 => "no second without a commit".to_owned(),
        _ => format!("{} without a commit, most in {label}", count(all as usize, "second")),
    })
}

/// "slowest UPDATE pgbench_accounts, 12 ms (btrfs)".
fn slowest_statement(cases: &TitledCases<'_>) -> Option<String> {
    let (label, (us, statement)) = cases.most(|case| {
        let means = case.statements.iter().map(|it| (it.latency_us_mean, it.statement.as_str()));
        means.max_by(|one, other| one.0.total_cmp(&other.0))
    })?;
    let words: Vec<&str> = statement.trim_end_matches(';').split_whitespace().take(2).collect();
    Some(format!("{}slowest {}, {} ({label})", cases.prefix, words.join(" "), ms(us / 1e3)))
}

fn checks(findings: &Findings) -> String {
    let checks: Vec<bool> = findings.trials.iter().flat_map(|trial| &trial.checks).map(|check| check.agrees).collect();
    let agree = checks.iter().filter(|agrees| **agrees).count();
    let gaps = findings.trials.iter().map(|trial| trial.gaps.len()).sum::<usize>();
    let gaps = if gaps == 0 { "no gaps".to_owned() } else { count(gaps, "gap") };
    match checks.len() {
        0 => gaps,
        all => format!("{agree} of {all} agree; {gaps}"),
    }
}

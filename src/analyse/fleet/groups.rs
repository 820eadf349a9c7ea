//! Hosts of a group beside each other, and one group over another.

use super::findings::{GroupComparison, HostFinding, HostGroup, HostRunFinding};
use super::{GroupBy, HostRun, Machine, value};
use crate::analyse::findings::Estimate;
use crate::stats::outliers::{FEWEST, RobustSpread, median};
use crate::stats::ratio::{BlockMean, RatioMethod, ratio};
use crate::units::count;
use std::collections::{BTreeMap, BTreeSet};

/// Facts whose changes a history shows.
const MARKED: [GroupBy; 4] = [GroupBy::Kernel, GroupBy::Firmware, GroupBy::Postgres, GroupBy::Model];

/// A machine as far as it belongs to a group: a machine whose kernel was changed is in one group before and in another one after.
pub(super) struct Member<'a> {
    /// Its place among all machines.
    place: usize,
    machine: &'a Machine,
    /// Mean of the logarithms of its figures.
    cases: BTreeMap<&'a str, f64>,
    trials: usize,
}

pub(super) type Group<'a> = (String, Vec<Member<'a>>);

/// The groups of some machines, the largest first.
pub(super) fn of<'a>(machines: &'a [Machine], by: &[GroupBy]) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<String, Vec<Member<'a>>> = BTreeMap::new();
    for (place, machine) in machines.iter().enumerate() {
        let mut of_machine: BTreeMap<String, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
        for host_run in &machine.host_runs {
            let cases = of_machine.entry(host_run.group(by)).or_default();
            for (case, logs) in &host_run.cases {
                cases.entry(case).or_default().extend(logs);
            }
        }
        for (group, cases) in of_machine {
            let trials = cases.values().map(Vec::len).sum();
            let cases = cases.into_iter().map(|(case, logs)| (case, mean(&logs))).collect();
            groups.entry(group).or_default().push(Member { place, machine, cases, trials });
        }
    }
    let mut groups: Vec<Group<'a>> = groups.into_iter().collect();
    groups.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
    groups
}

fn mean(logs: &[f64]) -> f64 {
    logs.iter().sum::<f64>() / logs.len().max(1) as f64
}

/// The hosts of a group beside each other.
pub(super) fn finding((name, members): &Group<'_>, by: &[GroupBy]) -> HostGroup {
    let mut figures: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (case, log) in members.iter().flat_map(|member| &member.cases) {
        figures.entry(case).or_default().push(*log);
    }
    let middles: BTreeMap<&str, f64> =
        figures.iter().map(|(case, logs)| (*case, median(logs).unwrap_or(0.0))).collect();
    let beside = members.iter().map(|member| {
        let logs = member.cases.iter().filter_map(|(case, log)| Some((*case, log - middles.get(case)?)));
        logs.collect::<BTreeMap<&str, f64>>()
    });
    let of_cases: Vec<BTreeMap<&str, f64>> = beside.collect();
    let means: Vec<f64> = of_cases.iter().map(|logs| mean(&logs.values().copied().collect::<Vec<_>>())).collect();
    let spread = RobustSpread::of(&means);
    let named = spread.as_ref().map(RobustSpread::named).unwrap_or_default();
    let middle = spread.as_ref().map_or(0.0, |spread| spread.median);
    let shown = ShownGroup { name, by, middles, middle };
    let hosts = members.iter().enumerate().map(|(place, member)| HostFinding {
        host: member.machine.host.hostname.clone(),
        speed: (means[place] - middle).exp(),
        below: spread.as_ref().and_then(|spread| spread.below.get(place).copied()),
        is_slow: named.contains(&place),
        trials: member.trials,
        cases: of_cases[place].iter().map(|(case, log)| ((*case).to_owned(), log.exp())).collect(),
        history: shown.history(member.machine),
    });
    let mut hosts: Vec<HostFinding> = hosts.collect();
    hosts.sort_by(|one, other| one.speed.total_cmp(&other.speed));
    let (deviation, limit) = spread.map_or((0.0, None), |spread| (spread.deviation, spread.limit));
    let limit_speed = limit.map(|limit| (-limit * deviation).exp());
    HostGroup { name: name.clone(), spread: deviation, limit, limit_speed, hosts }
}

/// The group beside which a machine's history is shown.
struct ShownGroup<'a> {
    name: &'a str,
    by: &'a [GroupBy],
    /// Median of its hosts in each case.
    middles: BTreeMap<&'a str, f64>,
    middle: f64,
}

impl ShownGroup<'_> {
    /// Speed relative to the group's hosts, in the cases that they have.
    fn speed(&self, host_run: &HostRun) -> Option<f64> {
        let cases = host_run.cases.iter();
        let logs: Vec<f64> =
            cases.filter_map(|(case, logs)| Some(mean(logs) - self.middles.get(case.as_str())?)).collect();
        (!logs.is_empty()).then(|| (mean(&logs) - self.middle).exp())
    }

    fn history(&self, machine: &Machine) -> Vec<HostRunFinding> {
        let mut host_runs: Vec<&HostRun> = machine.host_runs.iter().collect();
        host_runs.sort_by(|one, other| one.started.cmp(&other.started));
        let mut history: Vec<HostRunFinding> = Vec::new();
        for host_run in host_runs {
            let Some(speed) = self.speed(host_run) else { continue };
            let changes = MARKED.iter().filter_map(|by| {
                let (before, now) = (history.last()?.facts.get(by), host_run.facts.get(by));
                (before != now).then(|| format!("{} {} to {}", by.word(), value(before), value(now)))
            });
            let changes = changes.collect();
            history.push(HostRunFinding {
                run: host_run.run.clone(),
                started: host_run.started.clone(),
                speed,
                trials: host_run.cases.values().map(Vec::len).sum(),
                in_group: host_run.group(self.by) == self.name,
                facts: host_run.facts.clone(),
                changes,
            });
        }
        history
    }
}

/// A group over another one. Machines that are in both, before and after a change, are pairs; the others are compared without
/// pairs, and apart, since few pairs may say less than many machines. Empty where no case is common.
pub(super) fn comparisons(group: &Group<'_>, reference: &Group<'_>) -> Vec<GroupComparison> {
    let names = (group.0.as_str(), reference.0.as_str());
    let mut both: BTreeSet<usize> = group.1.iter().map(|member| member.place).collect();
    both.retain(|place| reference.1.iter().any(|member| member.place == *place));
    if both.len() < 2 {
        both.clear();
    }
    let parts = [true, false].into_iter().filter_map(|paired| {
        comparison(names, &chosen(group, &both, paired), &chosen(reference, &both, paired), paired)
    });
    parts.collect()
}

/// The members of a group that are, or are not, among these machines.
fn chosen<'g, 'a>((_, members): &'g Group<'a>, among: &BTreeSet<usize>, are: bool) -> Vec<&'g Member<'a>> {
    members.iter().filter(|member| among.contains(&member.place) == are).collect()
}

fn comparison(
    (group, reference): (&str, &str),
    members: &[&Member<'_>],
    others: &[&Member<'_>],
    paired: bool,
) -> Option<GroupComparison> {
    let mut cases: Vec<&str> = others.first()?.cases.keys().copied().collect();
    cases.retain(|case| members.iter().chain(others).all(|host| host.cases.contains_key(case)));
    if cases.is_empty() || members.is_empty() {
        return None;
    }
    // Only the same host has the same number, and so is a pair.
    let [own, reference_own] = [(members, others.len()), (others, 0)].map(|(hosts, first)| {
        let numbered = (first..).zip(hosts).map(|(next, host)| (if paired { host.place } else { next }, host));
        numbered.map(|(number, host)| figure(number, host, &cases)).collect::<Vec<BlockMean>>()
    });
    let found = ratio(&own, &reference_own)?;
    let ratio = Estimate::of(found.value, found.interval, members.len() + others.len());
    let method = match found.method {
        RatioMethod::Paired { blocks } => format!("paired over {blocks} hosts"),
        RatioMethod::Unpaired { .. } => "unpaired".to_owned(),
        RatioMethod::NoInterval => "no interval: a group of one host".to_owned(),
    };
    let hosts = (members.len(), others.len());
    Some(GroupComparison { group: group.to_owned(), reference: reference.to_owned(), ratio, hosts, method })
}

/// A host's figure over these cases: it counts once, however many trials it has.
fn figure(number: usize, host: &Member<'_>, cases: &[&str]) -> BlockMean {
    let logs: Vec<f64> = cases.iter().filter_map(|case| host.cases.get(case).copied()).collect();
    BlockMean::of(u32::try_from(number).unwrap_or(u32::MAX), mean(&logs).exp())
}

/// `node7 is 15 % slower than the median of its group of 20, by 5.1 MADs (limit 3.6 MADs)`.
pub(super) fn sentence(group: &HostGroup) -> String {
    let hosts = group.hosts.len();
    let slow = group.hosts.iter().filter(|host| host.is_slow).map(|host| {
        let share = 100.0 * (1.0 - host.speed);
        let decimals = usize::from(share < 10.0);
        let below = host.below.unwrap_or_default();
        format!(
            "{} is {share:.decimals$} % slower than the median of its group of {hosts}, by {below:.1} MADs",
            host.host
        )
    });
    let slow: Vec<String> = slow.collect();
    match group.limit {
        None if hosts < FEWEST => {
            format!("{}: {}; no outlier can be named among fewer than {FEWEST}", group.name, count(hosts, "host"))
        }
        None => format!("{}: the figures of its hosts do not vary", group.name),
        Some(limit) if slow.is_empty() => {
            let spread = 100.0 * group.spread;
            format!(
                "{}: no host of {} is below the limit ({limit:.1} MADs below the median; 1 MAD is {spread:.1} %)",
                group.name,
                group.hosts.len()
            )
        }
        Some(limit) => format!("{}: {} (limit {limit:.1} MADs)", group.name, slow.join("; ")),
    }
}

//! A run folder as sides: cases that differ only in their workload form one side, just as a stack does.

use super::facts::{Facts, medium};
use super::from_probe;
use super::side::{ConditionKind, FigureKind, MeasureCondition, MeasureSpread, Medium, Side, SideMeasure, SideOrigin};
use crate::analyse::case::capacity;
use crate::analyse::findings::groups::by_key;
use crate::analyse::findings::lists::numbered;
use crate::analyse::findings::{CaseFinding, CostCounter, Findings, MeasureFinding, names};
use crate::analyse::load;
use crate::analyse::trial::rates::{rate_of, within_slices};
use crate::error::Result;
use crate::record::case::CaseSpec;
use crate::record::counts::Measure;
use crate::record::facts::{DeviceFacts, Fits};
use crate::record::operation::{Operation, Writes};
use crate::record::probe::ProbeRecord;
use crate::record::run::RunRecord;
use crate::record::trial::{Outcome, TrialRecord};
use crate::stats::autocorrelation::{self, Within};
use crate::stats::interval::{TrialMean, mean_over_trials};
use crate::stats::ratio::BlockMean;
use crate::store::folder::RunFolder;
use crate::units::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Debug, Clone)]
pub struct RunSource {
    pub run: RunRecord,
    pub findings: Findings,
    /// Measured trials.
    pub trials: Vec<TrialRecord>,
}

impl RunSource {
    ///
    /// # Errors
    /// When it is not a run folder, is damaged, or was written by a newer pgstrata.
    pub fn load(path: &Path) -> Result<RunSource> {
        let folder = RunFolder::open(path)?;
        let mut trials = folder.whole_trials()?;
        trials.retain(|trial| trial.outcome == Outcome::Measured);
        Ok(RunSource { run: folder.record().clone(), findings: load::findings(path)?, trials })
    }

    /// Names that [`sides`] accepts for a selection: stacks, then ids, then sides.
    pub fn names(&self) -> Vec<String> {
        let cases = &self.run.cases;
        let stacks_and_ids =
            cases.iter().map(|case| &case.stack.name).chain(cases.iter().map(|case| &case.id)).cloned();
        let mut seen = BTreeSet::new();
        let names = stacks_and_ids.chain(groups(&self.run).into_iter().map(|(name, _)| name));
        names.filter(|name| seen.insert(name.clone())).collect()
    }
}

/// The sides of a run; `wanted` restricts them to a case's id, a side's name, or a stack. Empty if it matches none.
pub fn sides(argument: usize, label: &str, source: &RunSource, wanted: Option<&str>) -> Vec<Side> {
    let chosen = chosen(&source.run, wanted);
    if let ([(_, cases)], None) = (chosen.as_slice(), wanted) {
        return vec![side(argument, label.to_owned(), String::new(), source, cases)];
    }
    chosen.iter().map(|(name, cases)| side(argument, format!("{label}:{name}"), name.clone(), source, cases)).collect()
}

/// The cases of each of these sides with the side's name; a run that is a single side has a name here, too.
pub fn chosen<'r>(run: &'r RunRecord, wanted: Option<&str>) -> Vec<(String, Vec<&'r CaseSpec>)> {
    let mut groups = groups(run);
    let Some(wanted) = wanted else { return groups };
    if let Some(case) = run.cases.iter().find(|case| case.id == wanted) {
        return vec![(wanted.to_owned(), vec![case])];
    }
    match groups.iter().any(|(name, _)| name == wanted) {
        true => groups.retain(|(name, _)| name == wanted),
        false => groups.retain(|(_, cases)| cases.iter().any(|case| case.stack.name == wanted)),
    }
    groups
}

/// Groups of cases that share all axes except the workload's, each with the name that distinguishes it.
fn groups(run: &RunRecord) -> Vec<(String, Vec<&CaseSpec>)> {
    let groups = by_key(run.cases.iter().map(|case| {
        let axes = case.axes.iter().filter(|(axis, _)| !case.is_workload_axis(axis));
        let axes: BTreeMap<&str, &str> = axes.map(|(axis, value)| (axis.as_str(), value.as_str())).collect();
        (axes, case)
    }));
    let mut differing: BTreeSet<&str> = groups.iter().flat_map(|(axes, _)| axes.keys().copied()).collect();
    differing.retain(|axis| *axis != "stack" && groups.iter().any(|(axes, _)| axes.get(axis) != groups[0].0.get(axis)));
    let named = groups.iter().map(|(axes, cases)| {
        let others = differing.iter().filter_map(|axis| axes.get(axis).map(|value| names::of_axis(axis, value)));
        let stack = cases.first().map(|case| case.stack.name.clone());
        (stack.into_iter().chain(others).collect::<Vec<_>>().join(" "), cases.clone())
    });
    named.collect()
}

/// A side of these cases, under a given name.
pub fn side(argument: usize, label: String, name: String, source: &RunSource, cases: &[&CaseSpec]) -> Side {
    let mut facts = Facts::default();
    let mut measures = Vec::new();
    let mut caveats: Vec<String> = Vec::new();
    for spec in cases {
        let trials: Vec<&TrialRecord> = source.trials.iter().filter(|trial| trial.case.id == spec.id).collect();
        for trial in &trials {
            facts_of(trial, &mut facts);
        }
        let Some(found) = source.findings.cases.iter().find(|case| case.id == spec.id) else { continue };
        let options = own_options(spec, cases);
        let case = CaseOfSide { spec, found, trials, findings: &source.findings, run: &source.run.id, options };
        measures.extend(case.measures().into_iter().map(|it| SideMeasure { case: spec.id.clone(), ..it }));
        caveats.extend(found.cautions.iter().filter(|caution| !caveats.contains(caution)).cloned().collect::<Vec<_>>());
    }
    let is_own = |case: &str| cases.iter().any(|spec| spec.id == case);
    let failed = source.findings.not_run.iter().find(|it| it.step.is_some() && is_own(&it.case));
    let failed = failed.map(|it| format!("not measured in {}: {}", numbered("trial", &it.trials), it.reason));
    let full = source.findings.full.iter().find(|it| is_own(&it.case));
    let failed = failed.or_else(|| Some(format!("the stack was full in trial {}: {}", full?.trial, full?.reason)));
    let (origin, facts) = (SideOrigin::Run, facts.texts());
    Side { argument, label, name, origin, facts, measures, failed, caveats, ..Side::default() }
}

/// Options of a case's workload in which the cases of its side differ, without those that are conditions of their own.
fn own_options(spec: &CaseSpec, cases: &[&CaseSpec]) -> String {
    const NAMED: [&str; 6] = ["workload", "clients", "scale", "data", "script", "rate"];
    let axes = spec.axes.iter().filter(|(axis, value)| {
        !NAMED.contains(&axis.as_str()) && cases.iter().any(|other| other.axes.get(*axis) != Some(value))
    });
    axes.map(|(axis, value)| format!("{axis} {value}")).collect::<Vec<_>>().join(", ")
}

fn facts_of(trial: &TrialRecord, facts: &mut Facts) {
    facts.host(&trial.host);
    facts.built(trial.stack.as_ref(), &trial.knobs, trial.server.as_ref());
    for (name, value) in &trial.operation.settings {
        facts.add(format!("workload.{}.{name}", trial.case.workload.kind), value);
    }
}

struct CaseOfSide<'a> {
    spec: &'a CaseSpec,
    found: &'a CaseFinding,
    trials: Vec<&'a TrialRecord>,
    findings: &'a Findings,
    run: &'a str,
    /// Options in which it differs from the side's other cases.
    options: String,
}

impl CaseOfSide<'_> {
    fn measures(&self) -> Vec<SideMeasure> {
        let trials = self.trials.iter();
        let rounds: Vec<(u32, &ProbeRecord)> =
            trials.filter_map(|trial| Some((trial.trial, trial.counts.as_ref()?.probe.as_deref()?))).collect();
        match (rounds.is_empty(), self.spec.postgres.is_some() && !self.trials.is_empty()) {
            (false, _) => self.rows(&rounds),
            (true, true) => {
                let own = self.found.measures.iter().flat_map(|measure| self.transactions(measure));
                own.chain(self.counters()).collect()
            }
            (true, false) => self.found.measures.iter().filter_map(|it| self.rate(it, &it.name)).collect(),
        }
    }

    /// Probe rows over all trials.
    fn rows(&self, rounds: &[(u32, &ProbeRecord)]) -> Vec<SideMeasure> {
        let mut measures = from_probe::over_rounds(self.run, rounds);
        for measure in &mut measures {
            measure.durability = measure.unsynced_form.is_none().then(|| self.found.durability.clone());
            measure.medium = self.medium();
            measure.emulated = self.is_emulated();
        }
        measures
    }

    fn is_emulated(&self) -> bool {
        self.trials.iter().any(|trial| trial.host.is_emulated())
    }

    /// Counters per operation. One that is 0 in a trial has no ratio.
    fn counters(&self) -> impl Iterator<Item = SideMeasure> {
        CostCounter::ALL.into_iter().filter_map(|counter| {
            let means = self.found.work.iter().filter(|(known, _)| *known == counter);
            let means: Vec<BlockMean> = means.map(|(_, mean)| *mean).collect();
            let measure = self.measure(&names::stored(&counter), FigureKind::Counter, "", 0.0);
            let least = means.iter().map(|mean| mean.trial.mean).reduce(f64::min)?;
            (least > 0.0).then(|| self.over_trials(measure, means))
        })
    }

    /// A figure that is the mean of these.
    fn over_trials(&self, measure: SideMeasure, means: Vec<BlockMean>) -> SideMeasure {
        match mean_over_trials(&means.iter().map(|mean| mean.trial).collect::<Vec<_>>()) {
            Some(all) => SideMeasure { value: all.mean, ends: all.ends, spread: self.spread(means), ..measure },
            None => measure,
        }
    }

    /// Rate and latencies of a server's measure.
    fn transactions(&self, found: &MeasureFinding) -> Vec<SideMeasure> {
        let of_script = if found.name == "transactions" { String::new() } else { format!(" of {}", found.name) };
        let item = format!("latency{of_script}");
        let mut measures: Vec<SideMeasure> =
            self.rate(found, &format!("{}{of_script}", found.unit)).into_iter().collect();
        let Some(latency) = &found.latency else { return measures };
        let mean = self.measure(&item, FigureKind::Mean, "ms", latency.mean_us / 1e3);
        let of_trials = self.trials.iter().filter_map(|trial| {
            Some(BlockMean::of(trial.trial, measure_of(trial, &found.name)?.latency_us_mean()? / 1e3))
        });
        measures.push(self.over_trials(mean, of_trials.collect()));
        for percentile in &latency.percentiles {
            let Some(over) = &percentile.over_trials else { continue };
            let means = percentile.trials.iter().map(|(block, us)| BlockMean::of(*block, *us as f64 / 1e3));
            let figure = FigureKind::Percentile(percentile.name.clone());
            measures.push(SideMeasure {
                ends: over.low.zip(over.high).map(|(low, high)| (low / 1e3, high / 1e3)),
                spread: self.spread(means.collect()),
                ..self.measure(&item, figure, "ms", over.value / 1e3)
            });
        }
        // The slowest of a sample is not the slowest of all.
        measures.extend(self.found.log_sample.is_none().then(|| {
            let spread = MeasureSpread::Together { trials: self.trials.len(), alone: None };
            let figure = FigureKind::Percentile("max".to_owned());
            SideMeasure { spread, ..self.measure(&item, figure, "ms", latency.max_us as f64 / 1e3) }
        }));
        measures
    }

    fn spread(&self, means: Vec<BlockMean>) -> MeasureSpread {
        MeasureSpread::Trials { run: self.run.to_owned(), means, slices: false }
    }

    fn rate(&self, found: &MeasureFinding, item: &str) -> Option<SideMeasure> {
        let rate = found.rate.as_ref()?;
        let is_main = self.found.measures.first().is_some_and(|first| first.name == found.name);
        let taken = self.findings.turns.iter().flat_map(|turns| &turns.cases).find(|turns| turns.case == self.spec.id);
        let borne = |block| taken.and_then(|turns| turns.borne.get(&block)).filter(|_| is_main).copied().unwrap_or(0.0);
        let means = self.trials.iter().filter_map(|trial| {
            let measure = measure_of(trial, &found.name)?;
            let within = match measure.slices.is_empty() {
                // Turns share the noise of their round: their seconds say nothing of a ratio.
                true => self.within(trial.trial).filter(|_| is_main && trial.turns.is_none()),
                false => within_slices(measure),
            };
            // The steps of a search ran at other rates than what it found.
            if let Some(search) = trial.counts.as_ref().and_then(|counts| counts.search.as_ref()) {
                return Some(BlockMean { block: trial.trial, trial: capacity::about(search)? });
            }
            let of_turns = is_main.then(|| trial.rate_of_turns()).flatten();
            let mean = of_turns.or_else(|| rate_of(measure))? * f64::exp(-borne(trial.trial));
            Some(BlockMean { block: trial.trial, trial: TrialMean { mean, within } })
        });
        let (ends, spread) = (rate.low.zip(rate.high), self.spread(means.collect()));
        Some(SideMeasure { ends, spread, ..self.measure(item, FigureKind::Rate, &found.unit, rate.value) })
    }

    /// Error of a trial's mean estimated from its seconds, unless seconds were merged.
    fn within(&self, trial: u32) -> Option<Within> {
        let found = self.findings.trials.iter().find(|it| it.case == self.spec.id && it.trial == trial)?;
        let series = found.throughput.as_ref().filter(|series| series.bucket_s == 1)?;
        autocorrelation::within(&series.min.iter().flatten().map(|done| f64::from(*done)).collect::<Vec<_>>())
    }

    fn measure(&self, item: &str, figure: FigureKind, unit: &str, value: f64) -> SideMeasure {
        let data = match self.found.fits {
            Some(Fits::SharedBuffers | Fits::Memory) => Medium::Memory,
            Some(Fits::Neither) => Medium::Disk,
            None => Medium::Unknown,
        };
        SideMeasure {
            // Nothing commits where nothing is written.
            durability: (self.operation().map(|it| it.writes) != Some(Writes::Never))
                .then(|| self.found.durability.clone()),
            medium: self.medium(),
            data,
            emulated: self.is_emulated(),
            ..SideMeasure::new(&self.spec.workload.kind, self.conditions(), item, figure, unit, value)
        }
    }

    fn operation(&self) -> Option<&Operation> {
        self.trials.first().map(|trial| &trial.operation)
    }

    /// Storage of the WAL, where commits are written.
    fn medium(&self) -> Medium {
        let Some(stack) = self.trials.iter().find_map(|trial| trial.stack.as_ref()) else { return Medium::Unknown };
        let devices: Vec<DeviceFacts> =
            stack.devices_below(stack.wal_base()).into_iter().map(|below| below.device.clone()).collect();
        medium(stack.mount_of(stack.wal_base()), &devices)
    }

    /// Empty without a server.
    fn conditions(&self) -> Vec<MeasureCondition> {
        let Some(operation) = self.operation().filter(|_| self.spec.postgres.is_some()) else { return Vec::new() };
        let query_mode = operation.query_mode.as_deref().unwrap_or("simple").to_owned();
        let rate = operation.rate.map_or_else(|| "none".to_owned(), |rate| rate.to_string());
        vec![
            MeasureCondition::named(ConditionKind::Workload, Some(workload_of(operation))),
            MeasureCondition::named(ConditionKind::Scale, self.scale(operation)),
            MeasureCondition::named(ConditionKind::Clients, Some(operation.clients.to_string())),
            MeasureCondition::usual(ConditionKind::QueryMode, Some(query_mode), "simple"),
            MeasureCondition::usual(ConditionKind::RateLimit, Some(rate), "none"),
            MeasureCondition::usual(ConditionKind::Connecting, Some("excluded".to_owned()), "excluded"),
            MeasureCondition::usual(ConditionKind::Options, Some(self.options.clone()), ""),
        ]
    }

    /// The scale; for a share of memory, which differs between machines, the size is included.
    fn scale(&self, operation: &Operation) -> Option<String> {
        let scale = operation.scale.clone()?;
        if !["RAM", "memory", "shared_buffers"].iter().any(|word| scale.contains(word)) {
            return Some(scale);
        }
        self.found.database_bytes.map(|bytes| format!("{scale} ({})", Bytes(bytes)))
    }
}

/// The scripts and what made their tables: "orders", "mine.sql (0c1d2e3f), set up by tables.sql (4a5b6c7d)".
fn workload_of(operation: &Operation) -> String {
    let scripts = operation.scripts.join(" + ");
    operation.settings.get("setup").map_or(scripts.clone(), |setup| format!("{scripts}, set up by {setup}"))
}

/// What a trial counted of this measure.
fn measure_of<'t>(trial: &'t TrialRecord, name: &str) -> Option<&'t Measure> {
    trial.counts.as_ref()?.measures.iter().find(|measure| measure.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_of_a_side_are_told_apart_by_the_options_in_which_they_differ() {
        let case = |every: &str, clients: &str| {
            let axes = [("every", every), ("clients", clients), ("stack", "ext4")];
            let axes = axes.map(|(axis, value)| (axis.to_owned(), value.to_owned())).into();
            CaseSpec { axes, ..CaseSpec::default() }
        };
        let cases = [case("never", "1"), case("10s", "1"), case("10s", "8")];
        let all: Vec<&CaseSpec> = cases.iter().collect();
        assert_eq!(
            all.iter().map(|one| own_options(one, &all)).collect::<Vec<_>>(),
            ["every never", "every 10s", "every 10s"]
        );
        assert_eq!(own_options(&cases[1], &all[1..]), "", "clients are a condition already");
    }

    #[test]
    fn other_tables_are_another_workload() {
        let with = |setup: &str| Operation {
            scripts: vec!["mine.sql (0c1d2e3f)".to_owned()],
            settings: [("setup".to_owned(), setup.to_owned())].into(),
            ..Operation::default()
        };
        assert_eq!(workload_of(&with("a.sql (1)")), "mine.sql (0c1d2e3f), set up by a.sql (1)");
        assert_ne!(workload_of(&with("a.sql (1)")), workload_of(&with("a.sql (2)")));
        assert_eq!(workload_of(&Operation { settings: [].into(), ..with("") }), "mine.sql (0c1d2e3f)");
    }
}

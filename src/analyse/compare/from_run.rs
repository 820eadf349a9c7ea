//! A run folder as sides: cases that differ only in their workload form one side, just as a stack does.

use super::facts::{Facts, medium};
use super::from_probe;
use super::side::{ConditionKind, FigureKind, MeasureCondition, MeasureSpread, Medium, Side, SideMeasure, SideOrigin};
use crate::analyse::findings::groups::by_key;
use crate::analyse::findings::{CaseFinding, Durability, Findings, MeasureFinding, TrialFinding, names};
use crate::analyse::load;
use crate::analyse::trial::rates::{rate_of, within_slices};
use crate::error::Result;
use crate::record::case::{CaseSpec, TrialKey};
use crate::record::facts::{DeviceFacts, Fits};
use crate::record::operation::{Operation, Writes};
use crate::record::probe::ProbeRecord;
use crate::record::run::RunRecord;
use crate::record::trial::TrialRecord;
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
        let run = folder.record().clone();
        let mut trials = Vec::new();
        for case in &run.cases {
            for trial in 1..=run.blocks {
                let key = TrialKey { case: case.id.clone(), trial };
                trials.extend(folder.stored(&key)?.measured());
            }
        }
        Ok(RunSource { findings: load::findings(path)?, run, trials })
    }

    /// Names that [`sides`] accepts for a selection: stacks, then ids, then sides.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.run.cases.iter().map(|case| case.stack.name.clone()).collect();
        names.extend(self.run.cases.iter().map(|case| case.id.clone()));
        names.extend(groups(&self.run).into_iter().map(|(name, _)| name));
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }
}

/// The sides of a run; `wanted` restricts them to a case's id, a side's name, or a stack. Empty if it matches none.
pub fn sides(argument: usize, label: &str, source: &RunSource, wanted: Option<&str>) -> Vec<Side> {
    let chosen = chosen(&source.run, wanted);
    let single = chosen.len() == 1 && wanted.is_none();
    let one = |(name, cases): &(String, Vec<&CaseSpec>)| {
        let label = if single { label.to_owned() } else { format!("{label}:{name}") };
        let name = if single { String::new() } else { name.clone() };
        side(argument, label, name, source, cases)
    };
    chosen.iter().map(one).collect()
}

/// The cases of each of these sides with the side's name; a run that is a single side has a name here, too.
pub fn chosen<'r>(run: &'r RunRecord, wanted: Option<&str>) -> Vec<(String, Vec<&'r CaseSpec>)> {
    let groups = groups(run);
    let Some(wanted) = wanted else { return groups };
    if let Some(case) = run.cases.iter().find(|case| case.id == wanted) {
        return vec![(wanted.to_owned(), vec![case])];
    }
    let named = groups.iter().any(|(name, _)| name == wanted);
    let of_stack = |cases: &[&CaseSpec]| cases.iter().any(|case| case.stack.name == wanted);
    let is_it = |name: &str, cases: &[&CaseSpec]| if named { name == wanted } else { of_stack(cases) };
    groups.into_iter().filter(|(name, cases)| is_it(name, cases)).collect()
}

/// Groups of cases that share all axes except the workload's, each with the name that distinguishes it.
fn groups(run: &RunRecord) -> Vec<(String, Vec<&CaseSpec>)> {
    let groups = by_key(run.cases.iter().map(|case| {
        let axes = case.axes.iter().filter(|(axis, _)| !case.is_workload_axis(axis));
        let axes: BTreeMap<&str, &str> = axes.map(|(axis, value)| (axis.as_str(), value.as_str())).collect();
        (axes, case)
    }));
    let names: BTreeSet<&str> = groups.iter().flat_map(|(axes, _)| axes.keys().copied()).collect();
    let differs = |axis: &&&str| groups.iter().any(|(axes, _)| axes.get(**axis) != groups[0].0.get(**axis));
    let differing: Vec<&str> = names.iter().filter(differs).copied().collect();
    let name = |axes: &BTreeMap<&str, &str>, cases: &[&CaseSpec]| {
        let stack = cases.first().map(|case| case.stack.name.clone());
        let others = differing.iter().filter(|axis| **axis != "stack");
        let others = others.filter_map(|axis| axes.get(axis).map(|value| names::of_axis(axis, value)));
        stack.into_iter().chain(others).collect::<Vec<_>>().join(" ")
    };
    groups.iter().map(|(axes, cases)| (name(axes, cases), cases.clone())).collect()
}

/// A side of these cases, under a given name.
pub fn side(argument: usize, label: String, name: String, source: &RunSource, cases: &[&CaseSpec]) -> Side {
    let mut facts = Facts::default();
    let mut measures = Vec::new();
    let mut caveats: Vec<String> = Vec::new();
    for spec in cases {
        let of_case = |case: &str| case == spec.id;
        let trials: Vec<&TrialRecord> = source.trials.iter().filter(|trial| of_case(&trial.case.id)).collect();
        for trial in &trials {
            facts_of(trial, &mut facts);
        }
        let Some(found) = source.findings.cases.iter().find(|case| of_case(&case.id)) else { continue };
        let case = CaseOfSide { spec, found, trials, findings: &source.findings, run: &source.run.id };
        measures.extend(case.measures());
        caveats.extend(found.cautions.iter().filter(|caution| !caveats.contains(caution)).cloned().collect::<Vec<_>>());
    }
    Side {
        argument,
        label,
        name,
        origin: SideOrigin::Run,
        facts: facts.texts(),
        measures,
        caveats,
        left_out: Vec::new(),
    }
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
}

impl CaseOfSide<'_> {
    fn measures(&self) -> Vec<SideMeasure> {
        let probed = self.trials.iter().any(|trial| probe_of(trial).is_some());
        if probed {
            return self.rows();
        }
        match self.trials.first() {
            Some(trial) if self.spec.postgres.is_some() => {
                let conditions = self.conditions(&trial.operation);
                self.found.measures.iter().flat_map(|measure| self.transactions(measure, &conditions)).collect()
            }
            _ => self.found.measures.iter().filter_map(|measure| self.rate(measure, &[], None)).collect(),
        }
    }

    /// Probe rows over all trials.
    fn rows(&self) -> Vec<SideMeasure> {
        let rounds = self.trials.iter().filter_map(|trial| Some((trial.trial, probe_of(trial)?)));
        let mut measures = from_probe::over_rounds(self.run, &rounds.collect::<Vec<_>>());
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

    /// Rate and latencies of a server's measure.
    fn transactions(&self, found: &MeasureFinding, conditions: &[MeasureCondition]) -> Vec<SideMeasure> {
        let main = found.name == "transactions";
        let of = |what: &str| if main { what.to_owned() } else { format!("{what} of {}", found.name) };
        let rate = self.rate(found, conditions, Some(of(&found.unit)));
        let mut measures: Vec<SideMeasure> = rate.into_iter().collect();
        let Some(latency) = &found.latency else { return measures };
        let mut mean = self.measure(conditions, &of("latency"), FigureKind::Mean, "ms", latency.mean_us / 1e3);
        let means = self.mean_latencies(&found.name);
        if let Some(all) = mean_over_trials(&means.iter().map(|mean| mean.trial).collect::<Vec<_>>()) {
            (mean.value, mean.ends) = (all.mean, all.ends);
            mean.spread = MeasureSpread::Trials { run: self.run.to_owned(), means, slices: false };
        }
        measures.push(mean);
        for percentile in &latency.percentiles {
            let Some(over) = &percentile.over_trials else { continue };
            let figure = FigureKind::Percentile(percentile.name.clone());
            let measure = self.measure(conditions, &of("latency"), figure, "ms", over.value / 1e3);
            let of_trial = |(block, us): &(u32, u64)| BlockMean::of(*block, *us as f64 / 1e3);
            let means = percentile.trials.iter().map(of_trial).collect();
            let spread = MeasureSpread::Trials { run: self.run.to_owned(), means, slices: false };
            let ends = over.low.zip(over.high).map(|(low, high)| (low / 1e3, high / 1e3));
            measures.push(SideMeasure { ends, spread, ..measure });
        }
        let Some(max_us) = latency.max_us else { return measures };
        let figure = FigureKind::Percentile("max".to_owned());
        let max = self.measure(conditions, &of("latency"), figure, "ms", max_us as f64 / 1e3);
        let spread = MeasureSpread::Together { trials: self.trials.len(), alone: None };
        measures.push(SideMeasure { spread, ..max });
        measures
    }

    fn mean_latencies(&self, name: &str) -> Vec<BlockMean> {
        let of_trial = |trial: &&TrialRecord| {
            let measure = trial.counts.as_ref()?.measures.iter().find(|measure| measure.name == name)?;
            Some(BlockMean::of(trial.trial, measure.latency_us_mean()? / 1e3))
        };
        self.trials.iter().filter_map(of_trial).collect()
    }

    fn rate(
        &self,
        found: &MeasureFinding,
        conditions: &[MeasureCondition],
        item: Option<String>,
    ) -> Option<SideMeasure> {
        let rate = found.rate.as_ref()?;
        let item = item.unwrap_or_else(|| found.name.clone());
        let mut measure = self.measure(conditions, &item, FigureKind::Rate, &found.unit, rate.value);
        measure.ends = rate.low.zip(rate.high);
        let first = self.found.measures.first().is_some_and(|first| first.name == found.name);
        let of_trial = |trial: &&TrialRecord| {
            let measure = trial.counts.as_ref()?.measures.iter().find(|measure| measure.name == found.name)?;
            let within = if measure.slices.is_empty() {
                self.within(trial.trial).filter(|_| first)
            } else {
                within_slices(measure)
            };
            Some(BlockMean { block: trial.trial, trial: TrialMean { mean: rate_of(measure)?, within } })
        };
        let means = self.trials.iter().filter_map(of_trial).collect();
        measure.spread = MeasureSpread::Trials { run: self.run.to_owned(), means, slices: false };
        Some(measure)
    }

    /// Error of a trial's mean estimated from its seconds, unless seconds were merged.
    fn within(&self, trial: u32) -> Option<Within> {
        let is_it = |found: &&TrialFinding| found.case == self.spec.id && found.trial == trial;
        let series = self.findings.trials.iter().find(is_it)?.throughput.as_ref().filter(|s| s.bucket_s == 1)?;
        autocorrelation::within(&series.min.iter().flatten().map(|done| f64::from(*done)).collect::<Vec<_>>())
    }

    fn measure(
        &self,
        conditions: &[MeasureCondition],
        item: &str,
        figure: FigureKind,
        unit: &str,
        value: f64,
    ) -> SideMeasure {
        let (family, conditions) = (&self.spec.workload.kind, conditions.to_vec());
        let data = match self.found.fits {
            Some(Fits::SharedBuffers | Fits::Memory) => Medium::Memory,
            Some(Fits::Neither) => Medium::Disk,
            None => Medium::Unknown,
        };
        let (durability, medium) = (self.durability(), self.medium());
        let emulated = self.is_emulated();
        SideMeasure {
            durability,
            medium,
            data,
            emulated,
            ..SideMeasure::new(family, conditions, item, figure, unit, value)
        }
    }

    /// What a commit survives; `None` if nothing commits.
    fn durability(&self) -> Option<Durability> {
        let reads = self.trials.first().is_some_and(|trial| trial.operation.writes == Writes::Never);
        (!reads).then(|| self.found.durability.clone())
    }

    /// Storage of the WAL, where commits are written.
    fn medium(&self) -> Medium {
        let Some(stack) = self.trials.iter().find_map(|trial| trial.stack.as_ref()) else { return Medium::Unknown };
        let devices: Vec<DeviceFacts> =
            stack.devices_below(stack.wal_base()).into_iter().map(|below| below.device.clone()).collect();
        medium(stack.mount_of(stack.wal_base()), &devices)
    }

    fn conditions(&self, operation: &Operation) -> Vec<MeasureCondition> {
        let usual = |kind, value: Option<String>, usual: &str| {
            MeasureCondition::usual(kind, Some(value.unwrap_or_else(|| usual.to_owned())), usual)
        };
        vec![
            MeasureCondition::named(ConditionKind::Workload, Some(operation.scripts.join(" + "))),
            MeasureCondition::named(ConditionKind::Scale, self.scale(operation)),
            MeasureCondition::named(ConditionKind::Clients, Some(operation.clients.to_string())),
            usual(ConditionKind::QueryMode, operation.query_mode.clone(), "simple"),
            usual(ConditionKind::RateLimit, operation.rate.map(|rate| rate.to_string()), "none"),
            usual(ConditionKind::Connecting, None, "excluded"),
        ]
    }

    /// The scale; for a share of memory, which differs between machines, the size is included.
    fn scale(&self, operation: &Operation) -> Option<String> {
        let scale = operation.scale.clone()?;
        if !scale.contains('%') {
            return Some(scale);
        }
        self.found.database_bytes.map(|bytes| format!("{scale} ({})", Bytes(bytes)))
    }
}

fn probe_of(trial: &TrialRecord) -> Option<&ProbeRecord> {
    trial.counts.as_ref()?.probe.as_deref()
}

//! `trials.parquet`: one row a trial, so that questions over many runs need open no JSON.
//!
//! It is made from the run folder like a report, and nothing reads it back: a better formula makes it anew. Columns are only ever
//! added within a [`SCHEMA`]; any other change raises it.

use self::Cell::{Count, Flag, Number, Text};
use super::merge::storage;
use super::turn_table;
use crate::analyse::findings::{CaseFinding, Findings, TrialFinding, names};
use crate::error::{Context, Result};
use crate::record::column::ColumnType;
use crate::record::counts;
use crate::record::event::Step;
use crate::record::facts::{HostFacts, MountFacts};
use crate::record::run::RunRecord;
use crate::record::seconds::Value;
use crate::record::trial::{Outcome, TrialRecord};
use crate::record::verdict::Verdict;
use crate::store::folder::RunFolder;
use crate::store::table::{self, ParquetColumn};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Version of the table. 1: the first.
pub const SCHEMA: u64 = 1;

/// The file in the run folder.
pub const FILE: &str = "trials.parquet";

/// Type of a column, with its cell of a row.
#[derive(Clone, Copy)]
enum Cell {
    /// Absent where it would be empty.
    Text(fn(&TrialRow<'_>) -> Option<String>),
    Count(fn(&TrialRow<'_>) -> Option<u64>),
    Number(fn(&TrialRow<'_>) -> Option<f64>),
    Flag(fn(&TrialRow<'_>) -> Option<bool>),
}

impl Cell {
    fn column_type(self) -> ColumnType {
        match self {
            Text(_) => ColumnType::Text,
            Count(_) => ColumnType::Count,
            Number(_) => ColumnType::Number,
            Flag(_) => ColumnType::Flag,
        }
    }

    fn of(self, row: &TrialRow<'_>) -> Option<Value> {
        match self {
            Text(of) => of(row).filter(|text| !text.is_empty()).map(Value::Text),
            Count(of) => of(row).map(Value::Count),
            Number(of) => of(row).map(Value::Number),
            Flag(of) => of(row).map(Value::Flag),
        }
    }
}

/// What a row tells of.
struct TrialRow<'a> {
    run: &'a RunRecord,
    trial: &'a TrialRecord,
    host: &'a HostFacts,
    models: String,
    firmware: String,
    mount: Option<&'a MountFacts>,
    /// The main one, of a trial that was measured.
    measure: Option<&'a counts::Measure>,
    case: Option<&'a CaseFinding>,
    found: Option<&'a TrialFinding>,
}

/// Name, unit, cell and meaning of each column but those of axes.
const COLUMNS: [(&str, &str, Cell, &str); 49] = [
    ("schema_version", "", Count(|_| Some(SCHEMA)), "version of this table"),
    ("run", "", Text(|it| Some(it.trial.run.clone())), "id of the run that measured it"),
    ("folder_run", "", Text(|it| Some(it.run.id.clone())), "id of the run folder; of a merged one another than `run`"),
    ("plan", "", Text(|it| Some(it.run.name.clone())), "name of the plan"),
    ("plan_sha256", "", Text(|it| Some(it.run.plan_sha256.clone())), "SHA-256 of the plan file"),
    ("quick", "", Flag(|it| Some(it.run.quick.is_some())), "whether the windows were short ones"),
    ("tool_version", "", Text(|it| Some(it.run.tool_version.clone())), "version of pgstrata that measured"),
    ("case", "", Text(|it| Some(it.trial.case.id.clone())), "id of the case"),
    ("trial", "", Count(|it| Some(it.trial.trial.into())), "number of the block"),
    ("started", "", Text(|it| Some(it.trial.started.clone())), "when it began, RFC 3339"),
    ("outcome", "", Text(|it| Some(outcome(it.trial).0.to_owned())), "measured, full or not_run"),
    ("reason", "", Text(|it| outcome(it.trial).1), "why it was not run"),
    ("is_repeat", "", Flag(|it| Some(it.trial.is_repeat)), "whether it repeats a disturbed trial"),
    ("host", "", Text(|it| Some(it.host.hostname.clone())), "host name"),
    ("kernel", "", Text(|it| Some(it.host.kernel.clone())), "release of the kernel"),
    ("distribution", "", Text(|it| it.host.distribution.clone()), "operating system"),
    ("machine", "", Text(|it| it.host.machine.clone()), "product name of the machine"),
    ("is_virtual", "", Flag(|it| it.host.is_virtual), "whether it says that it is a virtual machine"),
    ("is_emulated", "", Flag(|it| Some(it.host.is_emulated())), "whether its CPU is emulated: speed is not comparable"),
    ("guest", "", Text(|it| it.trial.case.guest.clone()), "suite of the guest that it ran in"),
    ("cpu_model", "", Text(|it| it.host.cpu_model.clone()), "model of the CPU"),
    ("cpus", "", Count(|it| Some(it.host.cpus.into())), "CPUs that could be used"),
    ("memory_bytes", "bytes", Count(|it| Some(it.host.memory_bytes)), "memory of the machine"),
    ("models", "", Text(|it| Some(it.models.clone())), "models of the disks below the stack"),
    ("firmware", "", Text(|it| Some(it.firmware.clone())), "firmware of these disks"),
    ("stack", "", Text(|it| Some(it.trial.case.stack.name.clone())), "name of the stack"),
    ("filesystem", "", Text(|it| Some(it.mount?.fstype.clone())), "filesystem of the data directory, as mounted"),
    ("mount_options", "", Text(mount_options), "its options in force"),
    ("postgres_version", "", Text(|it| Some(it.trial.server.as_ref()?.version.clone())), "server_version"),
    ("postgres_version_num", "", Count(|it| Some(it.trial.server.as_ref()?.version_num.into())), "server_version_num"),
    ("settings", "", Text(settings), "settings of the server by the plan, as JSON"),
    ("workload", "", Text(|it| Some(it.trial.case.workload.name.clone())), "name of the workload in the plan"),
    ("workload_kind", "", Text(|it| Some(it.trial.case.workload.kind.clone())), "kind of the workload"),
    ("clients", "", Count(|it| Some(it.trial.operation.clients)), "clients"),
    ("measure", "", Text(|it| Some(it.measure?.name.clone())), "main measure"),
    ("operations", "", Count(|it| it.measure?.done), "operations done"),
    ("failed", "", Count(|it| Some(it.measure?.failed)), "operations failed"),
    ("measured_us", "us", Count(measured_us), "time of the measurement"),
    ("rate", "1/s", Number(|it| it.measure.and(it.found)?.rate), "operations per second, as in the report"),
    ("latency_ms_mean", "ms", Number(|it| Some(it.measure?.latency_us_mean()? / 1e3)), "mean latency"),
    ("latency_ms_p50", "ms", Number(|it| it.percentile("p50")), "median latency"),
    ("latency_ms_p95", "ms", Number(|it| it.percentile("p95")), "95th percentile"),
    ("latency_ms_p99", "ms", Number(|it| it.percentile("p99")), "99th percentile"),
    ("latency_ms_p999", "ms", Number(|it| it.percentile("p99.9")), "99.9th percentile; absent below enough operations"),
    ("seconds", "s", Count(|it| Some(it.found?.zero_seconds?.seconds)), "whole seconds whose operations are known"),
    (
        "seconds_at_zero",
        "s",
        Count(|it| Some(it.found?.zero_seconds?.at_zero)),
        "those in which no operation completed",
    ),
    ("longest_zero_s", "s", Count(|it| Some(it.found?.zero_seconds?.longest_s)), "the longest run of them"),
    ("durability_class", "", Text(durability_class), "what a commit of its case survives"),
    ("power_cut_convicts", "", Flag(convicts), "whether a power cut costs more than it may, where that was tried"),
];

/// Makes it for a run folder, and the table of turns where trials had some.
///
/// # Errors
/// When a record is damaged, or the file cannot be written.
pub fn write(path: &Path, findings: &Findings) -> Result<PathBuf> {
    let folder = RunFolder::open(path)?;
    let run = folder.record();
    let axes: BTreeSet<&String> = run.cases.iter().flat_map(|case| case.axes.keys()).collect();
    let mut columns = ParquetColumn::all(&COLUMNS.map(|(name, unit, cell, doc)| (name, unit, cell.column_type(), doc)));
    let (of, doc) = (ColumnType::Text, "value of the plan's axis");
    columns.extend(axes.iter().map(|axis| ParquetColumn { name: format!("axis_{axis}"), unit: "", of, doc }));
    let (mut rows, mut turns) = (Vec::new(), Vec::new());
    for key in &run.order {
        // A damaged trial has no row; the report names it.
        let Ok(Some(trial)) = folder.trial(key) else { continue };
        let found = findings.trials.iter().find(|found| (&found.case, found.trial) == (&key.case, key.trial));
        let measure = trial.counts.as_ref().and_then(|counts| counts.measures.first());
        let [models, firmware] = <[_; 2]>::from(storage(&trial)).map(|set| Vec::from_iter(set).join(" and "));
        let row = TrialRow {
            run,
            trial: &trial,
            host: &trial.host,
            models,
            firmware,
            mount: trial.stack.as_ref().and_then(|stack| stack.mount()),
            measure: measure.filter(|_| trial.outcome == Outcome::Measured),
            case: findings.cases.iter().find(|case| case.id == key.case),
            found,
        };
        let of_axes = axes.iter().map(|axis| trial.case.axes.get(*axis).cloned().map(Value::Text));
        rows.push(COLUMNS.iter().map(|(_, _, cell, _)| cell.of(&row)).chain(of_axes).collect());
        turns.extend(turn_table::rows(&trial));
    }
    let place = std::path::absolute(path).or_store(|| format!("find {}", path.display()))?;
    let file = place.join(FILE);
    table::write(&file, &columns, &rows)?;
    turn_table::write(&place, turns)?;
    Ok(file)
}

impl TrialRow<'_> {
    /// A percentile of its main measure's latency.
    fn percentile(&self, name: &str) -> Option<f64> {
        let latency = self.case?.measures.first()?.latency.as_ref()?;
        let (_, us) = latency.percentile(name)?.trials.iter().find(|(number, _)| *number == self.trial.trial)?;
        (self.trial.outcome == Outcome::Measured).then_some(*us as f64 / 1e3)
    }
}

fn outcome(trial: &TrialRecord) -> (&'static str, Option<String>) {
    match &trial.outcome {
        _ if trial.full.is_some() => ("full", None),
        Outcome::Measured => ("measured", None),
        Outcome::NotRun { reason, .. } => ("not_run", Some(reason.clone())),
    }
}

fn mount_options(row: &TrialRow<'_>) -> Option<String> {
    let of = row.mount?;
    Some(of.options.iter().chain(&of.super_options).cloned().collect::<Vec<_>>().join(","))
}

fn settings(row: &TrialRow<'_>) -> Option<String> {
    serde_json::to_string(&row.trial.case.postgres.as_ref()?.settings).ok()
}

fn measured_us(row: &TrialRow<'_>) -> Option<u64> {
    Some(row.trial.steps.iter().find(|step| step.step == Step::Measure)?.wall_us)
}

fn durability_class(row: &TrialRow<'_>) -> Option<String> {
    row.case.filter(|case| case.trials > 0).map(|case| names::stored(&case.durability.class))
}

fn convicts(row: &TrialRow<'_>) -> Option<bool> {
    row.case?.verdict.as_ref().map(Verdict::convicts)
}

//! `trials.parquet`: one row a trial, so that questions over many runs need open no JSON.
//!
//! It is made from the run folder like a report, and nothing reads it back: a better formula makes it anew. Columns are only ever
//! added within a [`SCHEMA`]; any other change raises it.

use super::merge::storage;
use super::turn_table;
use crate::analyse::findings::{CaseFinding, Findings, ZeroSeconds, names};
use crate::analyse::trial::rates::rate_of;
use crate::error::{Context, Result};
use crate::record::column::ColumnType;
use crate::record::counts;
use crate::record::event::Step;
use crate::record::run::RunRecord;
use crate::record::seconds::Value;
use crate::record::trial::{Outcome, TrialRecord};
use crate::store::folder::RunFolder;
use crate::store::table::{self, ParquetColumn};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Version of the table. 1: the first.
pub const SCHEMA: u64 = 1;

/// The file in the run folder.
pub const FILE: &str = "trials.parquet";

/// Name, unit, type and meaning of each column but those of axes.
const COLUMNS: [(&str, &str, ColumnType, &str); 49] = [
    ("schema_version", "", ColumnType::Count, "version of this table"),
    ("run", "", ColumnType::Text, "id of the run that measured it"),
    ("folder_run", "", ColumnType::Text, "id of the run folder; of a merged one another than `run`"),
    ("plan", "", ColumnType::Text, "name of the plan"),
    ("plan_sha256", "", ColumnType::Text, "SHA-256 of the plan file"),
    ("quick", "", ColumnType::Flag, "whether the windows were short ones"),
    ("tool_version", "", ColumnType::Text, "version of pgstrata that measured"),
    ("case", "", ColumnType::Text, "id of the case"),
    ("trial", "", ColumnType::Count, "number of the block"),
    ("started", "", ColumnType::Text, "when it began, RFC 3339"),
    ("outcome", "", ColumnType::Text, "measured, full or not_run"),
    ("reason", "", ColumnType::Text, "why it was not run"),
    ("is_repeat", "", ColumnType::Flag, "whether it repeats a disturbed trial"),
    ("host", "", ColumnType::Text, "host name"),
    ("kernel", "", ColumnType::Text, "release of the kernel"),
    ("distribution", "", ColumnType::Text, "operating system"),
    ("machine", "", ColumnType::Text, "product name of the machine"),
    ("is_virtual", "", ColumnType::Flag, "whether it says that it is a virtual machine"),
    ("is_emulated", "", ColumnType::Flag, "whether its CPU is emulated: speed is not comparable"),
    ("guest", "", ColumnType::Text, "suite of the guest that it ran in"),
    ("cpu_model", "", ColumnType::Text, "model of the CPU"),
    ("cpus", "", ColumnType::Count, "CPUs that could be used"),
    ("memory_bytes", "bytes", ColumnType::Count, "memory of the machine"),
    ("models", "", ColumnType::Text, "models of the disks below the stack"),
    ("firmware", "", ColumnType::Text, "firmware of these disks"),
    ("stack", "", ColumnType::Text, "name of the stack"),
    ("filesystem", "", ColumnType::Text, "filesystem of the data directory, as mounted"),
    ("mount_options", "", ColumnType::Text, "its options in force"),
    ("postgres_version", "", ColumnType::Text, "server_version"),
    ("postgres_version_num", "", ColumnType::Count, "server_version_num"),
    ("settings", "", ColumnType::Text, "settings of the server by the plan, as JSON"),
    ("workload", "", ColumnType::Text, "name of the workload in the plan"),
    ("workload_kind", "", ColumnType::Text, "kind of the workload"),
    ("clients", "", ColumnType::Count, "clients"),
    ("measure", "", ColumnType::Text, "main measure"),
    ("operations", "", ColumnType::Count, "operations done"),
    ("failed", "", ColumnType::Count, "operations failed"),
    ("measured_us", "us", ColumnType::Count, "time of the measurement"),
    ("rate", "1/s", ColumnType::Number, "operations per second"),
    ("latency_ms_mean", "ms", ColumnType::Number, "mean latency"),
    ("latency_ms_p50", "ms", ColumnType::Number, "median latency"),
    ("latency_ms_p95", "ms", ColumnType::Number, "95th percentile"),
    ("latency_ms_p99", "ms", ColumnType::Number, "99th percentile"),
    ("latency_ms_p999", "ms", ColumnType::Number, "99.9th percentile; absent below enough operations"),
    ("seconds", "s", ColumnType::Count, "whole seconds whose operations are known"),
    ("seconds_at_zero", "s", ColumnType::Count, "those in which no operation completed"),
    ("longest_zero_s", "s", ColumnType::Count, "the longest run of them"),
    ("durability_class", "", ColumnType::Text, "what a commit of its case survives"),
    ("power_cut_convicts", "", ColumnType::Flag, "whether a power cut costs more than it may, where that was tried"),
];

/// Makes it for a run folder, and the table of turns where trials had some.
///
/// # Errors
/// When a record is damaged, or the file cannot be written.
pub fn write(path: &Path, findings: &Findings) -> Result<PathBuf> {
    let folder = RunFolder::open(path)?;
    let run = folder.record();
    let axes: BTreeSet<&String> = run.cases.iter().flat_map(|case| case.axes.keys()).collect();
    let mut columns = ParquetColumn::all(&COLUMNS);
    let (of, doc) = (ColumnType::Text, "value of the plan's axis");
    columns.extend(axes.iter().map(|axis| ParquetColumn { name: format!("axis_{axis}"), unit: "", of, doc }));
    let (mut rows, mut turns) = (Vec::new(), Vec::new());
    for key in &run.order {
        // A damaged trial has no row; the report names it.
        let Ok(Some(trial)) = folder.trial(key) else { continue };
        let case = findings.cases.iter().find(|case| case.id == key.case);
        let found = findings.trials.iter().find(|found| (&found.case, found.trial) == (&key.case, key.trial));
        let zero = found.and_then(|found| found.zero_seconds);
        let of_axes = axes.iter().map(|axis| trial.case.axes.get(*axis).cloned().map(Value::Text));
        let parts = [
            of_run(run, &trial),
            of_machine(&trial),
            of_stack(&trial),
            of_figures(&trial, case),
            of_zero(zero),
            of_case(case),
            of_axes.collect(),
        ];
        rows.push(parts.concat());
        turns.extend(turn_table::rows(&trial));
    }
    let place = std::path::absolute(path).or_store(|| format!("find {}", path.display()))?;
    let file = place.join(FILE);
    table::write(&file, &columns, &rows)?;
    turn_table::write(&place, turns)?;
    Ok(file)
}

fn text(value: impl Into<String>) -> Option<Value> {
    Some(value.into()).filter(|text: &String| !text.is_empty()).map(Value::Text)
}

fn joined(values: BTreeSet<String>) -> Option<Value> {
    text(values.into_iter().collect::<Vec<_>>().join(" and "))
}

fn of_run(run: &RunRecord, trial: &TrialRecord) -> Vec<Option<Value>> {
    let (outcome, reason) = match &trial.outcome {
        _ if trial.full.is_some() => ("full", None),
        Outcome::Measured => ("measured", None),
        Outcome::NotRun { reason, .. } => ("not_run", Some(reason.clone())),
    };
    vec![
        Some(Value::Count(SCHEMA)),
        text(&trial.run),
        text(&run.id),
        text(&run.name),
        text(&run.plan_sha256),
        Some(Value::Flag(run.quick.is_some())),
        text(&run.tool_version),
        text(&trial.case.id),
        Some(Value::Count(u64::from(trial.trial))),
        text(&trial.started),
        text(outcome),
        reason.map(Value::Text),
        Some(Value::Flag(trial.is_repeat)),
    ]
}

fn of_machine(trial: &TrialRecord) -> Vec<Option<Value>> {
    let host = &trial.host;
    let (models, firmware) = storage(trial);
    vec![
        text(&host.hostname),
        text(&host.kernel),
        host.distribution.clone().map(Value::Text),
        host.machine.clone().map(Value::Text),
        host.is_virtual.map(Value::Flag),
        Some(Value::Flag(host.is_emulated())),
        trial.case.guest.clone().map(Value::Text),
        host.cpu_model.clone().map(Value::Text),
        Some(Value::Count(u64::from(host.cpus))),
        Some(Value::Count(host.memory_bytes)),
        joined(models),
        joined(firmware),
    ]
}

fn of_stack(trial: &TrialRecord) -> Vec<Option<Value>> {
    let mount = trial.stack.as_ref().and_then(|stack| stack.mount());
    let server = trial.server.as_ref();
    let settings = trial.case.postgres.as_ref().and_then(|postgres| serde_json::to_string(&postgres.settings).ok());
    let options = mount.map(|mount| mount.options.iter().chain(&mount.super_options).cloned().collect::<Vec<_>>());
    vec![
        text(&trial.case.stack.name),
        mount.map(|mount| Value::Text(mount.fstype.clone())),
        options.map(|options| Value::Text(options.join(","))),
        server.map(|server| Value::Text(server.version.clone())),
        server.map(|server| Value::Count(u64::from(server.version_num))),
        settings.map(Value::Text),
        text(&trial.case.workload.name),
        text(&trial.case.workload.kind),
        Some(Value::Count(trial.operation.clients)),
    ]
}

fn of_figures(trial: &TrialRecord, case: Option<&CaseFinding>) -> Vec<Option<Value>> {
    let measured = trial.outcome == Outcome::Measured;
    let measure = trial.counts.as_ref().and_then(|counts| counts.measures.first()).filter(|_| measured);
    let done = measure.and_then(|measure| measure.done);
    let found = case.and_then(|case| case.measures.first()).and_then(|measure| measure.latency.as_ref());
    let [p50, p95, p99, p999] = ["p50", "p95", "p99", "p99.9"].map(|name| {
        let (_, us) = found?.percentile(name)?.trials.iter().find(|(number, _)| *number == trial.trial)?;
        measured.then(|| Value::Number(*us as f64 / 1e3))
    });
    let wall = trial.steps.iter().find(|step| step.step == Step::Measure).map(|step| Value::Count(step.wall_us));
    vec![
        measure.map(|measure| Value::Text(measure.name.clone())),
        done.map(Value::Count),
        measure.map(|measure| Value::Count(measure.failed)),
        wall,
        measure.and_then(rate_of).map(Value::Number),
        measure.and_then(counts::Measure::latency_us_mean).map(|us| Value::Number(us / 1e3)),
        p50,
        p95,
        p99,
        p999,
    ]
}

fn of_zero(zero: Option<ZeroSeconds>) -> Vec<Option<Value>> {
    [zero.map(|zero| zero.seconds), zero.map(|zero| zero.at_zero), zero.map(|zero| zero.longest_s)]
        .map(|count| count.map(Value::Count))
        .to_vec()
}

fn of_case(case: Option<&CaseFinding>) -> Vec<Option<Value>> {
    let class = case.filter(|case| case.trials > 0).map(|case| case.durability.class);
    let verdict = case.and_then(|case| case.verdict.as_ref());
    vec![class.map(|class| Value::Text(names::stored(&class))), verdict.map(|verdict| Value::Flag(verdict.convicts()))]
}

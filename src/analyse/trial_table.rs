//! `trials.parquet`: one row a trial, so that questions over many runs need open no JSON.
//!
//! It is made from the run folder like a report, and nothing reads it back: a better formula makes it anew. Columns are only ever
//! added within a [`SCHEMA`]; any other change raises it.

use super::merge::storage;
use crate::analyse::findings::{CaseFinding, DurabilityClass, Findings, TrialFinding, ZeroSeconds};
use crate::analyse::trial::rates::rate_of;
use crate::error::{Context, Result};
use crate::record::counts;
use crate::record::event::Step;
use crate::record::run::RunRecord;
use crate::record::trial::{Outcome, TrialRecord};
use crate::store::folder::RunFolder;
use crate::store::table::{self, Cell, CellType, TableColumn};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Version of the table. 1: the first.
pub const SCHEMA: u64 = 1;

/// The file in the run folder.
pub const FILE: &str = "trials.parquet";

/// Name, unit, type and meaning of each column but those of axes.
const COLUMNS: [(&str, &str, CellType, &str); 49] = [
    ("schema_version", "", CellType::Count, "version of this table"),
    ("run", "", CellType::Text, "id of the run that measured it"),
    ("folder_run", "", CellType::Text, "id of the run folder; of a merged one another than `run`"),
    ("plan", "", CellType::Text, "name of the plan"),
    ("plan_sha256", "", CellType::Text, "SHA-256 of the plan file"),
    ("quick", "", CellType::Flag, "whether the windows were short ones"),
    ("tool_version", "", CellType::Text, "version of pgstrata that measured"),
    ("case", "", CellType::Text, "id of the case"),
    ("trial", "", CellType::Count, "number of the block"),
    ("started", "", CellType::Text, "when it began, RFC 3339"),
    ("outcome", "", CellType::Text, "measured, full or not_run"),
    ("reason", "", CellType::Text, "why it was not run"),
    ("is_repeat", "", CellType::Flag, "whether it repeats a disturbed trial"),
    ("host", "", CellType::Text, "host name"),
    ("kernel", "", CellType::Text, "release of the kernel"),
    ("distribution", "", CellType::Text, "operating system"),
    ("machine", "", CellType::Text, "product name of the machine"),
    ("is_virtual", "", CellType::Flag, "whether it says that it is a virtual machine"),
    ("is_emulated", "", CellType::Flag, "whether its CPU is emulated: speed is not comparable"),
    ("guest", "", CellType::Text, "suite of the guest that it ran in"),
    ("cpu_model", "", CellType::Text, "model of the CPU"),
    ("cpus", "", CellType::Count, "CPUs that could be used"),
    ("memory_bytes", "bytes", CellType::Count, "memory of the machine"),
    ("models", "", CellType::Text, "models of the disks below the stack"),
    ("firmware", "", CellType::Text, "firmware of these disks"),
    ("stack", "", CellType::Text, "name of the stack"),
    ("filesystem", "", CellType::Text, "filesystem of the data directory, as mounted"),
    ("mount_options", "", CellType::Text, "its options in force"),
    ("postgres_version", "", CellType::Text, "server_version"),
    ("postgres_version_num", "", CellType::Count, "server_version_num"),
    ("settings", "", CellType::Text, "settings of the server by the plan, as JSON"),
    ("workload", "", CellType::Text, "name of the workload in the plan"),
    ("workload_kind", "", CellType::Text, "kind of the workload"),
    ("clients", "", CellType::Count, "clients"),
    ("measure", "", CellType::Text, "main measure"),
    ("operations", "", CellType::Count, "operations done"),
    ("failed", "", CellType::Count, "operations failed"),
    ("measured_us", "us", CellType::Count, "time of the measurement"),
    ("rate", "1/s", CellType::Number, "operations per second"),
    ("latency_ms_mean", "ms", CellType::Number, "mean latency"),
    ("latency_ms_p50", "ms", CellType::Number, "median latency"),
    ("latency_ms_p95", "ms", CellType::Number, "95th percentile"),
    ("latency_ms_p99", "ms", CellType::Number, "99th percentile"),
    ("latency_ms_p999", "ms", CellType::Number, "99.9th percentile; absent below enough operations"),
    ("seconds", "s", CellType::Count, "whole seconds whose operations are known"),
    ("seconds_at_zero", "s", CellType::Count, "those in which no operation completed"),
    ("longest_zero_s", "s", CellType::Count, "the longest run of them"),
    ("durability_class", "", CellType::Text, "what a commit of its case survives"),
    ("power_cut_convicts", "", CellType::Flag, "whether a power cut costs more than it may, where that was tried"),
];

/// Makes it for a run folder.
///
/// # Errors
/// When a record is damaged, or the file cannot be written.
pub fn write(path: &Path, findings: &Findings) -> Result<PathBuf> {
    let folder = RunFolder::open(path)?;
    let run = folder.record();
    let axes: BTreeSet<&String> = run.cases.iter().flat_map(|case| case.axes.keys()).collect();
    let described = COLUMNS.iter().map(|(name, unit, of, doc)| ((*name).to_owned(), *unit, *of, *doc));
    let of_axes = axes.iter().map(|axis| (format!("axis_{axis}"), "", CellType::Text, "value of the plan's axis"));
    let columns: Vec<TableColumn> =
        described.chain(of_axes).map(|(name, unit, of, doc)| TableColumn { name, unit, of, doc }).collect();
    let mut rows = Vec::new();
    for key in &run.order {
        // A damaged trial has no row; the report names it.
        let Ok(Some(trial)) = folder.trial(key) else { continue };
        let case = findings.cases.iter().find(|case| case.id == key.case);
        let of_trial = |found: &&TrialFinding| (&found.case, found.trial) == (&key.case, key.trial);
        let zero = findings.trials.iter().find(of_trial).and_then(|found| found.zero_seconds);
        let mut row = row(run, &trial, case, zero);
        row.extend(axes.iter().map(|axis| trial.case.axes.get(*axis).cloned().map(Cell::Text)));
        rows.push(row);
    }
    let file = std::path::absolute(path).or_store(|| format!("find {}", path.display()))?.join(FILE);
    table::write(&file, &columns, &rows)?;
    Ok(file)
}

fn text(value: impl Into<String>) -> Option<Cell> {
    Some(value.into()).filter(|text: &String| !text.is_empty()).map(Cell::Text)
}

fn joined(values: BTreeSet<String>) -> Option<Cell> {
    text(values.into_iter().collect::<Vec<_>>().join(" and "))
}

fn row(
    run: &RunRecord,
    trial: &TrialRecord,
    case: Option<&CaseFinding>,
    zero: Option<ZeroSeconds>,
) -> Vec<Option<Cell>> {
    let mut row = of_run(run, trial);
    row.extend(of_machine(trial));
    row.extend(of_stack(trial));
    row.extend(of_figures(trial, case));
    row.extend(of_zero(zero));
    row.extend(of_case(case));
    row
}

fn of_run(run: &RunRecord, trial: &TrialRecord) -> Vec<Option<Cell>> {
    let (outcome, reason) = match &trial.outcome {
        _ if trial.full.is_some() => ("full", None),
        Outcome::Measured => ("measured", None),
        Outcome::NotRun { reason, .. } => ("not_run", Some(reason.clone())),
    };
    vec![
        Some(Cell::Count(SCHEMA)),
        text(&trial.run),
        text(&run.id),
        text(&run.name),
        text(&run.plan_sha256),
        Some(Cell::Flag(run.quick.is_some())),
        text(&run.tool_version),
        text(&trial.case.id),
        Some(Cell::Count(u64::from(trial.trial))),
        text(&trial.started),
        text(outcome),
        reason.map(Cell::Text),
        Some(Cell::Flag(trial.is_repeat)),
    ]
}

fn of_machine(trial: &TrialRecord) -> Vec<Option<Cell>> {
    let host = &trial.host;
    let (models, firmware) = storage(trial);
    vec![
        text(&host.hostname),
        text(&host.kernel),
        host.distribution.clone().map(Cell::Text),
        host.machine.clone().map(Cell::Text),
        host.is_virtual.map(Cell::Flag),
        Some(Cell::Flag(host.is_emulated())),
        trial.case.guest.clone().map(Cell::Text),
        host.cpu_model.clone().map(Cell::Text),
        Some(Cell::Count(u64::from(host.cpus))),
        Some(Cell::Count(host.memory_bytes)),
        joined(models),
        joined(firmware),
    ]
}

fn of_stack(trial: &TrialRecord) -> Vec<Option<Cell>> {
    let mount = trial.stack.as_ref().and_then(|stack| stack.mount());
    let server = trial.server.as_ref();
    let settings = trial.case.postgres.as_ref().and_then(|postgres| serde_json::to_string(&postgres.settings).ok());
    let options = mount.map(|mount| mount.options.iter().chain(&mount.super_options).cloned().collect::<Vec<_>>());
    vec![
        text(&trial.case.stack.name),
        mount.map(|mount| Cell::Text(mount.fstype.clone())),
        options.map(|options| Cell::Text(options.join(","))),
        server.map(|server| Cell::Text(server.version.clone())),
        server.map(|server| Cell::Count(u64::from(server.version_num))),
        settings.map(Cell::Text),
        text(&trial.case.workload.name),
        text(&trial.case.workload.kind),
        Some(Cell::Count(trial.operation.clients)),
    ]
}

fn of_figures(trial: &TrialRecord, case: Option<&CaseFinding>) -> Vec<Option<Cell>> {
    let measured = trial.outcome == Outcome::Measured;
    let measure = trial.counts.as_ref().and_then(|counts| counts.measures.first()).filter(|_| measured);
    let done = measure.and_then(|measure| measure.done);
    let found = case.and_then(|case| case.measures.first()).and_then(|measure| measure.latency.as_ref());
    let percentile = |name: &str| {
        let of_name = found?.percentiles.iter().find(|percentile| percentile.name == name)?;
        let (_, us) = of_name.trials.iter().find(|(number, _)| *number == trial.trial)?;
        measured.then(|| Cell::Number(*us as f64 / 1e3))
    };
    let wall = trial.steps.iter().find(|step| step.step == Step::Measure).map(|step| Cell::Count(step.wall_us));
    vec![
        measure.map(|measure| Cell::Text(measure.name.clone())),
        done.map(Cell::Count),
        measure.map(|measure| Cell::Count(measure.failed)),
        wall,
        measure.and_then(rate_of).map(Cell::Number),
        measure.and_then(counts::Measure::latency_us_mean).map(|us| Cell::Number(us / 1e3)),
        percentile("p50"),
        percentile("p95"),
        percentile("p99"),
        percentile("p99.9"),
    ]
}

fn of_zero(zero: Option<ZeroSeconds>) -> [Option<Cell>; 3] {
    [zero.map(|zero| zero.seconds), zero.map(|zero| zero.at_zero), zero.map(|zero| zero.longest_s)]
        .map(|count| count.map(Cell::Count))
}

fn of_case(case: Option<&CaseFinding>) -> [Option<Cell>; 2] {
    let class = case.filter(|case| case.trials > 0).map(|case| case.durability.class);
    let verdict = case.and_then(|case| case.verdict.as_ref());
    [class.and_then(word).map(Cell::Text), verdict.map(|verdict| Cell::Flag(verdict.convicts()))]
}

/// As it stands in the findings' JSON.
fn word(class: DurabilityClass) -> Option<String> {
    serde_json::to_value(class).ok()?.as_str().map(str::to_owned)
}

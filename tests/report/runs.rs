//! Run folders for the tests of `serve`: pgbench on ext4 and xfs, three trials each.

use crate::report::facts::stack_facts;
use pgstrata::record::case::{CaseSpec, PostgresSpec, TrialKey, WorkloadSpec};
use pgstrata::record::column::{Column, ColumnKind, ColumnType};
use pgstrata::record::counts::{Counts, Measure};
use pgstrata::record::facts::{HostFacts, ServerFacts};
use pgstrata::record::options::{OptionValue, Options};
use pgstrata::record::run::RunRecord;
use pgstrata::record::stack::StackSpec;
use pgstrata::record::trial::TrialRecord;
use pgstrata::store::folder::Writer;
use pgstrata::store::seconds::SecondsWriter;
use pgstrata::workload::Workload;
use pgstrata::workload::pgbench::Pgbench;
use std::path::{Path, PathBuf};

const BLOCKS: u32 = 3;
/// Stack and transactions a second.
const STACKS: [(&str, f64); 2] = [("ext4", 1000.0), ("xfs", 1500.0)];

/// Makes one below `folder`, in which everything is so many times as fast.
pub fn make(folder: &Path, id: &str, times: f64) -> PathBuf {
    let writer = begin(folder, id);
    let keys = writer.folder().record().order.clone();
    keys.iter().for_each(|key| measure(&writer, key, times));
    writer.folder().path().to_path_buf()
}

/// Begins a run of which nothing is measured yet; while the writer is there, it goes on.
pub fn begin(folder: &Path, id: &str) -> Writer {
    begin_with(folder, id, STACKS.iter().map(|(stack, _)| case(stack)).collect())
}

/// Makes one of each stack with and without full-page writes; without, it is a quarter faster.
pub fn make_matrix(folder: &Path) -> PathBuf {
    let with = |setting: &str, (stack, _): &(&str, f64)| {
        let mut case = case(stack);
        case.id = format!("{stack}-{setting}");
        case.axes.insert("full_page_writes".to_owned(), setting.to_owned());
        case
    };
    let cases: Vec<CaseSpec> =
        ["on", "off"].iter().flat_map(|one| STACKS.iter().map(|stack| with(one, stack))).collect();
    let writer = begin_with(folder, "0matrix", cases);
    for key in &writer.folder().record().order.clone() {
        measure(&writer, key, if key.case.ends_with("off") { 1.25 } else { 1.0 });
    }
    writer.folder().path().to_path_buf()
}

fn begin_with(folder: &Path, id: &str, cases: Vec<CaseSpec>) -> Writer {
    let keys = (1..=BLOCKS).flat_map(|trial| cases.iter().map(move |case| TrialKey { case: case.id.clone(), trial }));
    let record = RunRecord {
        format: 1,
        tool_version: "0.1.0".to_owned(),
        id: id.to_owned(),
        name: "which".to_owned(),
        plan_sha256: "00".to_owned(),
        seed: 1,
        blocks: BLOCKS,
        baseline: [("stack".to_owned(), "ext4".to_owned())].into(),
        quick: None,
        at_least: None,
        precision_percent: 5,
        durability: None,
        extended: Vec::new(),
        share: None,
        turns: Vec::new(),
        merged: Vec::new(),
        started: "2026-03-02T09:14:33Z".to_owned(),
        order: keys.collect(),
        cases,
    };
    Writer::create(&folder.join("results"), record, "name = \"which\"\n").unwrap()
}

/// Measures one of its trials.
pub fn measure(writer: &Writer, key: &TrialKey, times: f64) {
    let record = writer.folder().record();
    let place = record.cases.iter().position(|case| case.id == key.case).unwrap();
    let staging = writer.stage(key).unwrap();
    let column = Column {
        name: "mem_dirty_bytes".to_owned(),
        unit: "bytes".to_owned(),
        kind: ColumnKind::Gauge,
        of: ColumnType::Count,
        doc: String::new(),
    };
    SecondsWriter::create(&staging.seconds(), vec![column]).unwrap().finish().unwrap();
    staging
        .commit(&trial(&record.id, &record.cases[place], key.trial, STACKS[place % STACKS.len()].1 * times))
        .unwrap();
}

fn case(stack: &str) -> CaseSpec {
    let mut options = Options::default();
    options.set("scale", OptionValue::Integer(10));
    options.set("clients", OptionValue::Integer(4));
    let axes = [("stack", stack), ("workload", "tpcb")];
    CaseSpec {
        id: stack.to_owned(),
        guest: None,
        stack: StackSpec::linear(stack, Vec::new()),
        postgres: Some(PostgresSpec {
            bin: "auto".to_owned(),
            build: None,
            settings: Default::default(),
            initdb: Vec::new(),
        }),
        machine: Options::default(),
        age: Options::default(),
        workload: WorkloadSpec { name: "tpcb".to_owned(), kind: "pgbench".to_owned(), options },
        axes: axes.into_iter().map(|(axis, value)| (axis.to_owned(), value.to_owned())).collect(),
    }
}

fn trial(run: &str, case: &CaseSpec, trial: u32, tps: f64) -> TrialRecord {
    const SECONDS: u64 = 10;
    // No trial is quite like another.
    let done = (tps * (1.0 + 0.01 * f64::from(trial % 2)) * SECONDS as f64) as u64;
    let measure = Measure {
        name: "transactions".to_owned(),
        done: Some(done),
        elapsed_us: SECONDS * 1_000_000,
        latency_us_sum: done * 900,
        ..Measure::default()
    };
    let server = ServerFacts {
        version: "15.8".to_owned(),
        key_settings: [("fsync".to_owned(), "on".to_owned()), ("synchronous_commit".to_owned(), "on".to_owned())]
            .into(),
        ..ServerFacts::default()
    };
    TrialRecord {
        format: 1,
        run: run.to_owned(),
        trial,
        case: case.clone(),
        operation: Pgbench.operation(&case.workload.options).unwrap(),
        started: "2026-03-02T09:14:33Z".to_owned(),
        host: HostFacts { kernel: "6.1.0".to_owned(), cpus: 4, memory_bytes: 8 << 30, ..HostFacts::default() },
        stack: Some(stack_facts(&case.stack.name, 0)),
        server: Some(server),
        counts: Some(Counts { elapsed_us: SECONDS * 1_000_000, measures: vec![measure], ..Counts::default() }),
        ..TrialRecord::default()
    }
}

//! Every recipe of docs/recipes.md does what it says: each block of SQL and Python is run, as it stands there, in a run folder.

use hdrhistogram::Histogram;
use pgstrata::record::case::{CaseSpec, TrialKey, WorkloadSpec};
use pgstrata::record::column::{Column, ColumnType};
use pgstrata::record::columns;
use pgstrata::record::facts::{DeviceFacts, HostFacts};
use pgstrata::record::latency::LatencyInterval;
use pgstrata::record::options::{OptionValue, Options};
use pgstrata::record::run::{self, RunRecord};
use pgstrata::record::seconds::{Row, Value, client_columns, key_columns};
use pgstrata::record::stack::{BaseName, StackSpec};
use pgstrata::record::trial::{self, Outcome, TrialRecord, WaitCount, WaitFigures, WaitSecond};
use pgstrata::store::folder::Writer;
use pgstrata::store::seconds::SecondsWriter;
use pgstrata::store::{latency, waits};
use pgstrata::telemetry::{self, SampledObjects};
use pgstrata::workload::Workload;
use pgstrata::workload::pgbench::Pgbench;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where scripts/setup puts Python with the packages.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/recipes/bin/python");
const PAGE: &str = include_str!("../docs/recipes.md");
/// Runs SQL that comes on standard input and prints the rows.
const SQL: &str = "import duckdb, sys\nprint(*duckdb.sql(sys.stdin.read().rstrip().rstrip(';')).fetchall(), sep='\\n')";
const SECONDS: u64 = 5;
const BEGAN_US: u64 = 1_772_442_873_000_000;

/// Stacks with their transactions a second.
const STACKS: [(&str, u64); 2] = [("ext4", 1000), ("xfs", 1500)];

fn case(stack: &str) -> CaseSpec {
    let axes = [("stack", stack), ("workload", "tpcb"), ("clients", "4")];
    let mut options = Options::default();
    options.set("scale", OptionValue::Integer(10));
    options.set("clients", OptionValue::Integer(4));
    CaseSpec {
        id: format!("{stack}.tpcb"),
        guest: None,
        stack: StackSpec::linear(stack, Vec::new()),
        postgres: None,
        machine: Options::default(),
        age: Options::default(),
        workload: WorkloadSpec { name: "tpcb".to_owned(), kind: "pgbench".to_owned(), options },
        axes: axes.map(|(axis, value)| (axis.to_owned(), value.to_owned())).into(),
    }
}

fn make(results: &Path) -> PathBuf {
    let cases: Vec<CaseSpec> = STACKS.iter().map(|(stack, _)| case(stack)).collect();
    let key = |case: &CaseSpec, trial| TrialKey { case: case.id.clone(), trial };
    let order: Vec<TrialKey> = (1..=2).flat_map(|trial| cases.iter().map(move |case| key(case, trial))).collect();
    let record = RunRecord {
        at_least: None,
        precision_percent: 5,
        durability: None,
        extended: Vec::new(),
        share: None,
        turns: Vec::new(),
        merged: Vec::new(),
        format: run::FORMAT,
        tool_version: "test".to_owned(),
        id: "0badcafe".to_owned(),
        name: "which".to_owned(),
        plan_sha256: String::new(),
        seed: 1,
        blocks: 2,
        baseline: BTreeMap::new(),
        quick: None,
        started: "2026-03-02T09:14:33Z".to_owned(),
        cases: cases.clone(),
        order: order.clone(),
    };
    let writer = Writer::create(results, record, "name = \"which\"\n").unwrap();
    for key in order {
        let place = cases.iter().position(|case| case.id == key.case).unwrap();
        stored(&writer, &cases[place], key.trial, STACKS[place].1);
    }
    writer.folder().path().to_path_buf()
}

fn stored(writer: &Writer, case: &CaseSpec, trial: u32, tps: u64) {
    let staging = writer.stage(&TrialKey { case: case.id.clone(), trial }).unwrap();
    let node = BaseName("loop".to_owned());
    let target =
        SampledObjects { devices: vec![(node, DeviceFacts::default())], pools: vec!["tank".to_owned()], server: None };
    let sampled = telemetry::ALL.iter().flat_map(|sampler| sampler.columns(&target));
    let axes = columns::axes(&case.axes);
    let after_key = axes.iter().map(|(column, _)| column.clone()).chain(client_columns()).chain(sampled);
    let columns: Vec<Column> = key_columns().into_iter().chain(after_key).collect();
    let mut seconds = SecondsWriter::create(&staging.seconds(), columns.clone()).unwrap();
    for second in 0..=SECONDS {
        let row = columns.iter().map(|column| value(column, case, trial, second, tps));
        seconds.push(row.collect::<Row>()).unwrap();
    }
    seconds.finish().unwrap();
    let intervals = (0..SECONDS).map(|second| interval(second, tps));
    latency::write(&staging.latencies(), SECONDS * 1_000_000, || Some(BEGAN_US), intervals).unwrap();
    let figures = wait_figures();
    let text = |text: &str| Value::Text(text.to_owned());
    let mut key = vec![
        (columns::RUN.column(), text("0badcafe")),
        (columns::CASE.column(), text(&case.id)),
        (columns::TRIAL.column(), Value::Count(u64::from(trial))),
    ];
    key.extend(axes.iter().map(|(column, value)| (column.clone(), text(value))));
    waits::write(&staging.waits(), &key, Some(BEGAN_US), &figures).unwrap();
    staging.commit(&trial_record(case, trial, figures)).unwrap();
}

/// A second writes 200 times in 100 ms and flushes 100 times in 50 ms; counters grow.
fn value(column: &Column, case: &CaseSpec, trial: u32, second: u64, tps: u64) -> Option<Value> {
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    Some(Value::Count(match column.name.as_str() {
        "run" => return text("0badcafe"),
        "case" => return text(&case.id),
        "trial" => u64::from(trial),
        "second" => second,
        "time_us" => BEGAN_US + second * 1_000_000,
        name if name.starts_with("axis_") => return text(&case.axes[name.trim_start_matches("axis_")]),
        name if name.starts_with("client_") && second == 0 => return None,
        "client_done" => tps,
        "client_latency_us_p99" => 2500,
        "dev_loop_writes" => 200 * second,
        "dev_loop_write_ms" | "dev_loop_flushes" => 100 * second,
        "dev_loop_flush_ms" => 50 * second,
        "dev_loop_queue_ms" => 1500 * second,
        _ if column.of == ColumnType::Text => return None,
        _ => 7 * second,
    }))
}

/// All at 1 ms, but for one in fifty, which takes 8 ms.
fn interval(second: u64, tps: u64) -> LatencyInterval {
    let mut latencies = Histogram::<u64>::new(3).unwrap();
    (0..tps).for_each(|n| latencies.record(if n % 50 == 0 { 8000 } else { 1000 }).unwrap());
    let start_us = second * 1_000_000;
    LatencyInterval { measure: "transactions".to_owned(), start_us, length_us: 1_000_000, latencies }
}

/// Ten samples a second: three backends at the WAL, one computing.
fn wait_figures() -> WaitFigures {
    let wait = |class: &str, event: &str, a_second: u64| WaitCount {
        class: class.to_owned(),
        event: event.to_owned(),
        count: a_second * SECONDS,
    };
    let second = || WaitSecond { samples: 10, counts: vec![(0, 30), (1, 10)] };
    WaitFigures {
        samples: 10 * SECONDS,
        per_second: 10,
        backends: 40 * SECONDS,
        waits: vec![wait("IO", "WALSync", 30), wait("CPU", "CPU", 10)],
        seconds: (0..SECONDS).map(|_| second()).collect(),
        began_us: BEGAN_US,
        lock_holders: Vec::new(),
    }
}

fn trial_record(case: &CaseSpec, trial: u32, figures: WaitFigures) -> TrialRecord {
    TrialRecord {
        disk_probes: Vec::new(),
        turns: None,
        is_repeat: false,
        telemetry_cpu_us_by: BTreeMap::new(),
        format: trial::FORMAT,
        run: "0badcafe".to_owned(),
        trial,
        case: case.clone(),
        operation: Pgbench.operation(&case.workload.options).unwrap(),
        outcome: Outcome::Measured,
        started: "2026-03-02T09:14:33Z".to_owned(),
        host: HostFacts::default(),
        steps: Vec::new(),
        knobs: BTreeMap::new(),
        stack: None,
        server: None,
        idle: None,
        data: None,
        drives: Vec::new(),
        age: None,
        settle: None,
        window: None,
        counts: None,
        full: None,
        waits: Some(figures),
        columns: Vec::new(),
        gaps: Vec::new(),
        load_counts: BTreeMap::new(),
        clock_step_us: None,
        telemetry_cpu_us: None,
        decided: Options::default(),
        notes: Vec::new(),
        files: BTreeMap::new(),
    }
}

/// The blocks of the page: language and text.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let fenced = PAGE.split("\n```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap()).collect()
}

/// What a block prints, run in `folder`.
fn run(folder: &Path, language: &str, text: &str) -> String {
    let program = if language == "sql" { SQL } else { text };
    let mut command = Command::new(PYTHON);
    command.args(["-c", program]).current_dir(folder).env("MPLCONFIGDIR", folder);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{text}\n{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn every_recipe_runs_and_finds_what_is_there() {
    if !Path::new(PYTHON).exists() {
        println!("skipped: no {PYTHON}: `scripts/setup test` fetches the packages of scripts/python/recipes.txt");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let folder = make(&place.path().join("results"));
    let found: Vec<(&str, String)> = blocks().iter().map(|(kind, text)| (*text, run(&folder, kind, text))).collect();
    assert_eq!(found.len(), 8, "a recipe more or less: say here what it finds");
    let of = |part: &str| &found.iter().find(|(text, _)| text.contains(part)).unwrap().1;
    assert!(of("parquet_kv_metadata").contains("client_latency_us_p99 | us | interval | 99th percentile"));
    assert!(of("p99_ms_of_the_median_second").starts_with("('ext4', 4, 1, 1000.0, 2.5)\n"));
    assert!(of("ms_per_write").contains("('ext4.tpcb', 1, 3, 0.5, 0.5, 1.5)"));
    assert!(of("wait_class, wait_event").contains("('xfs.tpcb', 2, 5, 'IO', 'WALSync', 3.0)"));
    assert!(of("waiting_for_storage").contains("('xfs.tpcb', 1, 5, 1500, 3.0)"));
    let plot = std::fs::read(folder.join("device-latency.png")).unwrap();
    assert!(plot.starts_with(b"\x89PNG") && plot.len() > 10_000, "{} bytes", plot.len());
    assert!(
        of("HistogramLogReader").contains("trials/ext4.tpcb 10000 [1000, 8003, 8003] us"),
        "{}",
        of("HistogramLogReader")
    );
    assert!(of("read_json").contains("'which'") && of("read_json").contains("'xfs', 1500.0)"));
}

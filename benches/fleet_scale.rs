//! DuckDB over 1,000 runs of 60 trials of 300 seconds, 18 million rows: `make bench`. Goal: the ten questions of docs/duckdb.md
//! within 30 s on 2 threads. Beside them, and not of the goal: one pass over every second of every run.
//!
//! The run folders are made by the store and `trials.parquet` by the analysis, as a report does it; they are removed afterwards. A number
//! as argument makes so many runs instead.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a program for developers")]

use pgstrata::analyse::{load, trial_table};
use pgstrata::host::time::now;
use pgstrata::record::case::{CaseSpec, TrialKey, WorkloadSpec};
use pgstrata::record::column::{Column, ColumnType};
use pgstrata::record::counts::{Counts, Measure};
use pgstrata::record::facts::HostFacts;
use pgstrata::record::options::{OptionValue, Options};
use pgstrata::record::run::{self, RunRecord};
use pgstrata::record::seconds::{Row, Value, client_columns, key_columns};
use pgstrata::record::stack::StackSpec;
use pgstrata::record::trial::{self, Outcome, TrialRecord};
use pgstrata::store::folder::Writer;
use pgstrata::store::seconds::SecondsWriter;
use pgstrata::telemetry;
use pgstrata::workload::Workload;
use pgstrata::workload::pgbench::Pgbench;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const RUNS: u32 = 1000;
const BLOCKS: u32 = 5;
const SECONDS: u64 = 300;
const STACKS: [&str; 3] = ["ext4", "xfs", "btrfs"];
const CLIENTS: [i64; 2] = [4, 16];
const FULL_PAGE_WRITES: [&str; 2] = ["on", "off"];
const GOAL_S: f64 = 30.0;
const PAGE: &str = include_str!("../docs/duckdb.md");
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/recipes/bin/python");
const EVERY_SECOND: &str = "select run, \"case\", trial, count(*) filter (client_done = 0) as at_zero\n\
    from read_parquet('*/trials/*/*/seconds.parquet') where second > 0 group by all having at_zero > 0";
const SQL: &str = "import duckdb, sys\nduckdb.execute('set threads = 2; set enable_progress_bar = false')\nprint(len(duckdb.sql(sys.stdin.read().rstrip().rstrip(';')).fetchall()))";

fn main() {
    if !Path::new(PYTHON).exists() {
        println!("skipped: no {PYTHON}: `scripts/setup test` fetches the packages of scripts/python/recipes.txt");
        return;
    }
    let runs = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(RUNS);
    let folder = tempfile::tempdir().unwrap();
    let cases = cases();
    let trials = cases.len() as u32 * BLOCKS;
    println!("making {runs} runs of {trials} trials of {SECONDS} seconds ...");
    (1..=runs).for_each(|run| make(folder.path(), &cases, run));
    let timed = |sql: &str| {
        let begun = now();
        let rows = ask(folder.path(), sql);
        (begun.elapsed().as_secs_f64(), rows)
    };
    let mut all_s = 0.0;
    for question in PAGE.split("\n## ").skip(1).filter(|part| part.contains("\n```sql\n")) {
        let sql = question.split("\n```sql\n").nth(1).unwrap().split("\n```").next().unwrap();
        let (seconds, rows) = timed(sql);
        all_s += seconds;
        println!("  {seconds:6.2} s, {rows:>6} rows  {}", question.lines().next().unwrap());
    }
    let rows = f64::from(runs) * f64::from(trials) * SECONDS as f64;
    println!(
        "ten questions over {:.1} million seconds: {all_s:.1} s, {:.2} of the goal of {GOAL_S} s",
        rows / 1e6,
        all_s / GOAL_S
    );
    let (seconds, rows) = timed(EVERY_SECOND);
    println!(
        "  {seconds:6.2} s, {rows:>6} rows  every second of every trial read, and those without an operation counted"
    );
}

fn ask(folder: &Path, sql: &str) -> String {
    let mut command = Command::new(PYTHON);
    let mut child =
        command.args(["-c", SQL]).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{sql}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

fn cases() -> Vec<CaseSpec> {
    let mut cases = Vec::new();
    for stack in STACKS {
        for clients in CLIENTS {
            for setting in FULL_PAGE_WRITES {
                cases.push(case(stack, clients, setting));
            }
        }
    }
    cases
}

fn case(stack: &str, clients: i64, full_page_writes: &str) -> CaseSpec {
    let mut options = Options::default();
    options.set("scale", OptionValue::Integer(10));
    options.set("clients", OptionValue::Integer(clients));
    let axes = [
        ("stack", stack.to_owned()),
        ("workload", "w".to_owned()),
        ("clients", clients.to_string()),
        ("full_page_writes", full_page_writes.to_owned()),
    ];
    CaseSpec {
        id: format!("{stack}.w.clients-{clients}.{full_page_writes}"),
        guest: None,
        stack: StackSpec::linear(stack, vec![("directory", Options::default())]),
        postgres: None,
        machine: Options::default(),
        age: Options::default(),
        workload: WorkloadSpec { name: "w".to_owned(), kind: "pgbench".to_owned(), options },
        axes: axes.map(|(axis, value)| (axis.to_owned(), value)).into(),
    }
}

/// One run, on the host of its number.
fn make(results: &Path, cases: &[CaseSpec], number: u32) {
    let id = format!("{number:08x}");
    let keys = (1..=BLOCKS).flat_map(|trial| cases.iter().map(move |case| TrialKey { case: case.id.clone(), trial }));
    let record = RunRecord {
        format: run::FORMAT,
        tool_version: "bench".to_owned(),
        id: id.clone(),
        name: format!("run-{number}"),
        plan_sha256: String::new(),
        seed: 1,
        blocks: BLOCKS,
        baseline: BTreeMap::new(),
        quick: None,
        at_least: None,
        precision_percent: 5,
        durability: None,
        extended: Vec::new(),
        share: None,
        turns: Vec::new(),
        merged: Vec::new(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        cases: cases.to_vec(),
        order: keys.clone().collect(),
    };
    let writer = Writer::create(results, record, "name = \"bench\"\n").unwrap();
    for key in keys {
        let case = cases.iter().find(|case| case.id == key.case).unwrap();
        measured(&writer, case, &key, &id, number);
    }
    let path = writer.folder().path().to_path_buf();
    trial_table::write(&path, &load::findings(&path).unwrap()).unwrap();
}

fn measured(writer: &Writer, case: &CaseSpec, key: &TrialKey, run: &str, number: u32) {
    let staging = writer.stage(key).unwrap();
    let sampled = telemetry::ALL.iter().flat_map(|sampler| sampler.columns(&telemetry::SampledObjects::default()));
    let columns: Vec<Column> = key_columns().into_iter().chain(client_columns()).chain(sampled).collect();
    let mut seconds = SecondsWriter::create(&staging.seconds(), columns.clone()).unwrap();
    let mut done = 0;
    for second in 0..=SECONDS {
        let rate = rate(second, number, key);
        done += if second == 0 { 0 } else { rate };
        let of = |(index, column): (usize, &Column)| match column.name.as_str() {
            "run" => Some(Value::Text(run.to_owned())),
            "case" => Some(Value::Text(key.case.clone())),
            "trial" => Some(Value::Count(u64::from(key.trial))),
            "second" => Some(Value::Count(second)),
            "client_done" => (second > 0).then_some(Value::Count(rate)),
            _ if column.of == ColumnType::Count => Some(Value::Count(second * (100 + index as u64) + rate)),
            _ => Some(Value::Text("loop0".to_owned())),
        };
        seconds.push(columns.iter().enumerate().map(of).collect::<Row>()).unwrap();
    }
    seconds.finish().unwrap();
    let measure = Measure {
        name: "transactions".to_owned(),
        done: Some(done),
        elapsed_us: SECONDS * 1_000_000,
        latency_us_sum: done * 900,
        ..Measure::default()
    };
    let record = TrialRecord {
        format: trial::FORMAT,
        run: run.to_owned(),
        trial: key.trial,
        case: case.clone(),
        operation: Pgbench.operation(&case.workload.options).unwrap(),
        outcome: Outcome::Measured,
        started: "2026-01-01T00:00:00Z".to_owned(),
        host: HostFacts { hostname: format!("node{number}"), kernel: "6.1.0".to_owned(), ..HostFacts::default() },
        steps: Vec::new(),
        knobs: BTreeMap::new(),
        stack: None,
        server: None,
        idle: None,
        drives: Vec::new(),
        age: None,
        settle: None,
        window: None,
        data: None,
        full: None,
        counts: Some(Counts { elapsed_us: SECONDS * 1_000_000, measures: vec![measure], ..Counts::default() }),
        waits: None,
        columns,
        gaps: Vec::new(),
        load_counts: BTreeMap::new(),
        clock_step_us: None,
        telemetry_cpu_us: None,
        telemetry_cpu_us_by: BTreeMap::new(),
        disk_probes: Vec::new(),
        turns: None,
        is_repeat: false,
        decided: Options::default(),
        notes: Vec::new(),
        files: BTreeMap::new(),
    };
    staging.commit(&record).unwrap();
}

/// Operations of a second; few trials stall.
fn rate(second: u64, number: u32, key: &TrialKey) -> u64 {
    let mixed =
        second.wrapping_mul(2_654_435_761) ^ u64::from(number * 31 + key.trial).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let stalls = number.is_multiple_of(50) && key.trial == 1 && second % 100 < 4;
    if stalls { 0 } else { 1000 + (mixed >> 20) % 200 }
}

//! A report of a 4-day run of 40 cases, 13.8 million rows: `make bench`. Goals: under 10 s, under 10 MB.
//!
//! The run folder is made by the store itself, of seconds with stalls, and removed afterwards.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a program for developers")]

use hdrhistogram::Histogram;
use pgstrata::host::time::now;
use pgstrata::record::case::{CaseSpec, TrialKey, WorkloadSpec};
use pgstrata::record::column::{Column, ColumnType};
use pgstrata::record::counts::{Counts, Measure};
use pgstrata::record::event::{Event, Stamped};
use pgstrata::record::facts::HostFacts;
use pgstrata::record::latency::LatencyInterval;
use pgstrata::record::options::{OptionValue, Options};
use pgstrata::record::run::{self, RunRecord};
use pgstrata::record::seconds::{Row, Value, client_columns, key_columns};
use pgstrata::record::stack::StackSpec;
use pgstrata::record::trial::{self, Outcome, TrialRecord};
use pgstrata::store::folder::Writer;
use pgstrata::store::latency;
use pgstrata::store::seconds::SecondsWriter;
use pgstrata::telemetry;
use pgstrata::workload::Workload;
use pgstrata::workload::pgbench::Pgbench;
use std::collections::BTreeMap;
use std::path::Path;

const CASES: u32 = 40;
const SECONDS: u64 = 4 * 86_400;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    println!("making {CASES} trials of {SECONDS} seconds ...");
    let path = make(folder.path());
    let report = folder.path().join("report.html");
    let begun = now();
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_pgstrata"));
    let output = program.arg("report").arg(&path).arg("-o").arg(&report).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seconds = begun.elapsed().as_secs_f64();
    let megabytes = std::fs::metadata(&report).unwrap().len() as f64 / 1e6;
    println!(
        "report of {:.1} million rows: {seconds:.1} s, {megabytes:.2} MB",
        f64::from(CASES) * SECONDS as f64 / 1e6
    );
    println!("  goal: under 10 s, under 10 MB");
}

fn case(n: u32) -> CaseSpec {
    let mut options = Options::default();
    options.set("scale", OptionValue::Integer(10));
    options.set("clients", OptionValue::Integer(i64::from(n)));
    let stack = StackSpec::linear("ext4", vec![("directory", Options::default())]);
    CaseSpec {
        id: format!("ext4.w.clients-{n}"),
        guest: None,
        stack,
        postgres: None,
        machine: Options::default(),
        age: Options::default(),
        workload: WorkloadSpec { name: "w".to_owned(), kind: "pgbench".to_owned(), options },
        axes: BTreeMap::from([
            ("stack".to_owned(), "ext4".to_owned()),
            ("workload".to_owned(), "w".to_owned()),
            ("clients".to_owned(), n.to_string()),
        ]),
    }
}

fn make(results: &Path) -> std::path::PathBuf {
    let cases: Vec<CaseSpec> = (1..=CASES).map(case).collect();
    let order = cases.iter().map(|case| TrialKey { case: case.id.clone(), trial: 1 }).collect();
    let record = RunRecord {
        format: run::FORMAT,
        tool_version: "bench".to_owned(),
        id: "00000000".to_owned(),
        name: "four-days".to_owned(),
        plan_sha256: String::new(),
        seed: 1,
        blocks: 1,
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
        cases: cases.clone(),
        order,
    };
    let mut writer = Writer::create(results, record, "name = \"four-days\"\n").unwrap();
    let started = Event::RunStarted {
        run: "00000000".to_owned(),
        trials: CASES,
        expected_us: 0,
        most_repeats: 0,
        cases: std::collections::BTreeMap::new(),
    };
    writer.append(&Stamped { at_us: 0, what: started }).unwrap();
    std::thread::scope(|scope| {
        for half in 0..2 {
            let (cases, writer) = (&cases, &writer);
            scope.spawn(move || {
                for case in cases.iter().skip(half).step_by(2) {
                    trial(writer, case);
                }
            });
        }
    });
    writer.folder().path().to_path_buf()
}

fn trial(writer: &Writer, case: &CaseSpec) {
    let key = TrialKey { case: case.id.clone(), trial: 1 };
    let staging = writer.stage(&key).unwrap();
    let sampled = telemetry::ALL.iter().flat_map(|sampler| sampler.columns(&telemetry::SampledObjects::default()));
    let columns: Vec<Column> = key_columns().into_iter().chain(client_columns()).chain(sampled).collect();
    let mut seconds = SecondsWriter::create(&staging.seconds(), columns.clone()).unwrap();
    let mut done = 0;
    for second in 0..=SECONDS {
        let rate = rate(second);
        done += if second == 0 { 0 } else { rate };
        seconds
            .push(columns.iter().enumerate().map(|(i, column)| value(column, i as u64, second, rate)).collect::<Row>())
            .unwrap();
    }
    seconds.finish().unwrap();
    let intervals = (1..=SECONDS).map(interval);
    latency::write(&staging.latencies(), SECONDS * 1_000_000, || Some(0), intervals).unwrap();
    let measure = Measure {
        name: "transactions".to_owned(),
        done: Some(done),
        elapsed_us: SECONDS * 1_000_000,
        ..Measure::default()
    };
    let counts = Counts { elapsed_us: SECONDS * 1_000_000, measures: vec![measure], ..Counts::default() };
    let record = TrialRecord {
        format: trial::FORMAT,
        run: "00000000".to_owned(),
        trial: 1,
        case: case.clone(),
        operation: Pgbench.operation(&case.workload.options).unwrap(),
        outcome: Outcome::Measured,
        started: "2026-01-01T00:00:00Z".to_owned(),
        host: HostFacts::default(),
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
        counts: Some(counts),
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
        files: std::collections::BTreeMap::new(),
    };
    staging.commit(&record).unwrap();
}

/// Operations of a second.
fn rate(second: u64) -> u64 {
    if second % 3001 < 4 { 0 } else { 1000 + second.wrapping_mul(2_654_435_761) % 500 }
}

/// Latencies spread over four powers of two, as a database's are.
fn interval(second: u64) -> LatencyInterval {
    let mut latencies = Histogram::<u64>::new(3).unwrap();
    for n in 0..rate(second) {
        let spread = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        latencies.record(500 + spread * spread % 7500).unwrap();
    }
    let start_us = (second - 1) * 1_000_000;
    LatencyInterval { measure: "transactions".to_owned(), start_us, length_us: 1_000_000, latencies }
}

/// Every column has a value, as on a machine where nothing is absent.
fn value(column: &Column, index: u64, second: u64, rate: u64) -> Option<Value> {
    Some(match (column.of, column.name.as_str()) {
        (_, "second") => Value::Count(second),
        (_, "client_done") if second > 0 => Value::Count(rate),
        (ColumnType::Count, _) => Value::Count(second * (100 + index) + rate),
        _ => Value::Text("loop0".to_owned()),
    })
}

//! A small run folder: pgbench on ext4 and xfs with 4 clients, on ext4 with 16, and on tmpfs; three trials each.

use pgstrata::record::built::{GroundFacts, NodeFacts, StackFacts};
use pgstrata::record::case::{CaseSpec, PostgresSpec, TrialKey, WorkloadSpec};
use pgstrata::record::counts::{Counts, Measure};
use pgstrata::record::facts::{DeviceFacts, HostFacts, MountFacts, ServerFacts, WriteCache};
use pgstrata::record::options::{OptionValue, Options};
use pgstrata::record::promise;
use pgstrata::record::run::RunRecord;
use pgstrata::record::seconds::{Column, ColumnKind, ColumnType};
use pgstrata::record::stack::{GroundName, Input, Role, StackSpec};
use pgstrata::record::trial::{Outcome, TrialRecord};
use pgstrata::store::folder::Writer;
use pgstrata::store::seconds::SecondsWriter;
use pgstrata::workload::Workload;
use pgstrata::workload::pgbench::Pgbench;
use std::path::{Path, PathBuf};

const BLOCKS: u32 = 3;
/// Id, stack, full_page_writes, clients, transactions a second.
const CASES: [(&str, &str, &str, i64, f64); 5] = [
    ("ext4-c4", "ext4", "on", 4, 1000.0),
    ("ext4-c16", "ext4", "on", 16, 2000.0),
    ("xfs-c4", "xfs", "on", 4, 1500.0),
    ("xfs-nofpw-c4", "xfs", "off", 4, 1900.0),
    ("tmpfs-c4", "tmpfs", "on", 4, 9000.0),
];

/// Makes it below `folder`.
pub fn make(folder: &Path) -> PathBuf {
    make_as(folder, "0badcafe", 1.0)
}

/// Makes one with another id, in which everything is so many times as fast.
pub fn make_as(folder: &Path, id: &str, times: f64) -> PathBuf {
    let writer = begin(folder, id);
    let keys = writer.folder().record().order.clone();
    keys.iter().for_each(|key| measure(&writer, key, times));
    writer.folder().path().to_path_buf()
}

/// Begins a run of which nothing is measured yet; while the writer is there, it goes on.
pub fn begin(folder: &Path, id: &str) -> Writer {
    let cases: Vec<CaseSpec> =
        CASES.iter().map(|(id, stack, fpw, clients, _)| case(id, stack, fpw, *clients)).collect();
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
        durability: None,
        extended: Vec::new(),
        started: "2026-03-02T09:14:33Z".to_owned(),
        order: keys.collect(),
        cases: cases.clone(),
    };
    Writer::create(&folder.join("results"), record, "name = \"which\"\n").unwrap()
}

/// Measures one of its trials.
pub fn measure(writer: &Writer, key: &TrialKey, times: f64) {
    let record = writer.folder().record();
    let place = CASES.iter().position(|(id, ..)| *id == key.case).unwrap();
    let staging = writer.stage(key).unwrap();
    let column = Column {
        name: "mem_dirty_bytes".to_owned(),
        unit: "bytes".to_owned(),
        kind: ColumnKind::Gauge,
        of: ColumnType::Count,
        doc: String::new(),
    };
    SecondsWriter::create(&staging.seconds(), vec![column]).unwrap().finish().unwrap();
    let trial = trial(&record.cases[place], key.trial, CASES[place].4 * times);
    staging.commit(&TrialRecord { run: record.id.clone(), ..trial }).unwrap();
}

fn case(id: &str, stack: &str, full_page_writes: &str, clients: i64) -> CaseSpec {
    let mut options = Options::default();
    options.set("scale", OptionValue::Integer(10));
    options.set("clients", OptionValue::Integer(clients));
    let axes = [
        ("stack", stack.to_owned()),
        ("workload", "tpcb".to_owned()),
        ("clients", clients.to_string()),
        ("full_page_writes", full_page_writes.to_owned()),
    ];
    CaseSpec {
        id: id.to_owned(),
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
        axes: axes.into_iter().map(|(axis, value)| (axis.to_owned(), value)).collect(),
    }
}

/// A filesystem on a disk, or tmpfs.
fn stack_facts(filesystem: &str) -> StackFacts {
    let disk = DeviceFacts {
        name: "vda".to_owned(),
        write_cache: Some(WriteCache::WriteBack),
        counts_flushes: Some(true),
        ..DeviceFacts::default()
    };
    let mount = MountFacts { fstype: filesystem.to_owned(), target: "/data".to_owned(), ..MountFacts::default() };
    let input = Input { from: GroundName("vda".to_owned()), role: Role::Data, group: None };
    let on_disk = filesystem != "tmpfs";
    let mut nodes = vec![NodeFacts {
        name: filesystem.to_owned(),
        layer: Some(filesystem.to_owned()),
        inputs: if on_disk { vec![input] } else { Vec::new() },
        promises: promise::of_mount(&mount),
        grounds: vec![GroundFacts { mount: Some(mount), ..GroundFacts::default() }],
        ..NodeFacts::default()
    }];
    nodes.extend(on_disk.then(|| NodeFacts {
        name: "vda".to_owned(),
        grounds: vec![GroundFacts { device: Some(disk), ..GroundFacts::default() }],
        ..NodeFacts::default()
    }));
    let data = Some(GroundName(filesystem.to_owned()));
    StackFacts { name: filesystem.to_owned(), nodes, data, ..StackFacts::default() }
}

fn trial(case: &CaseSpec, trial: u32, tps: f64) -> TrialRecord {
    const SECONDS: u64 = 10;
    // The machine drifts from block to block, and no trial is quite like another.
    let noise = 1.0 + 0.01 * f64::from((trial * case.id.len() as u32) % 5);
    let done = (tps * noise * (1.0 - 0.1 * f64::from(trial)) * SECONDS as f64) as u64;
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
        run: "0badcafe".to_owned(),
        trial,
        case: case.clone(),
        operation: Pgbench.operation(&case.workload.options).unwrap(),
        outcome: Outcome::Measured,
        started: "2026-03-02T09:14:33Z".to_owned(),
        host: HostFacts { kernel: "6.1.0".to_owned(), cpus: 4, memory_bytes: 8 << 30, ..HostFacts::default() },
        steps: Vec::new(),
        knobs: Default::default(),
        stack: Some(stack_facts(&case.stack.name)),
        server: Some(server),
        idle: None,
        age: None,
        settle: None,
        window: None,
        data: None,
        counts: Some(Counts { elapsed_us: SECONDS * 1_000_000, measures: vec![measure], ..Counts::default() }),
        full: None,
        waits: None,
        columns: Vec::new(),
        gaps: Vec::new(),
        telemetry_cpu_us: None,
        telemetry_cpu_us_by: Default::default(),
        cpu_taken: None,
        is_repeat: false,
        decided: Options::default(),
        notes: Vec::new(),
        files: std::collections::BTreeMap::new(),
    }
}

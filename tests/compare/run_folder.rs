//! A small run folder: pgbench on ext4 and xfs with 4 clients, on ext4 with 16, and on tmpfs; three trials each.

use pgstrata::record::built::{BaseFacts, NodeFacts, StackFacts};
use pgstrata::record::case::{CaseSpec, PostgresSpec, TrialKey, WorkloadSpec};
use pgstrata::record::column::{Column, ColumnKind, ColumnType};
use pgstrata::record::counts::{Counts, Measure};
use pgstrata::record::facts::{DeviceFacts, HostFacts, MountFacts, ServerFacts, WriteCache};
use pgstrata::record::options::{OptionValue, Options};
use pgstrata::record::promise;
use pgstrata::record::run::{RunRecord, Share};
use pgstrata::record::seconds::Value;
use pgstrata::record::stack::{BaseName, Input, Role, StackSpec};
use pgstrata::record::trial::{Outcome, TrialRecord};
use pgstrata::store::folder::Writer;
use pgstrata::store::seconds::SecondsWriter;
use pgstrata::workload::Workload;
use pgstrata::workload::pgbench::Pgbench;
use std::path::{Path, PathBuf};

/// How a run folder differs from the usual one.
pub struct Made {
    pub id: &'static str,
    pub plan: &'static str,
    pub seed: u64,
    pub blocks: u32,
    pub share: Option<Share>,
    pub host: String,
    pub kernel: &'static str,
    pub model: &'static str,
    pub firmware: &'static str,
    /// How fast the machine is, beside the others.
    pub speed: f64,
    /// Seconds of each trial in which nothing was done; `None`: the rows of no second.
    pub stalled: Option<u64>,
    /// Trials that are not there.
    pub without: fn(&TrialKey) -> bool,
}

impl Default for Made {
    fn default() -> Made {
        Made {
            id: "0badcafe",
            plan: "name = \"which\"\n",
            seed: 1,
            blocks: 3,
            share: None,
            host: String::new(),
            kernel: "6.1.0",
            model: "DISK 1T",
            firmware: "A1",
            speed: 1.0,
            stalled: None,
            without: |_| false,
        }
    }
}

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
    make_as(&folder.join("results"), &Made::default())
}

/// Makes one below `results`.
pub fn make_as(results: &Path, made: &Made) -> PathBuf {
    let cases: Vec<CaseSpec> =
        CASES.iter().map(|(id, stack, fpw, clients, _)| case(id, stack, fpw, *clients)).collect();
    let held = |block: &u32| made.share.is_none_or(|share| share.has(*block));
    let keys = || {
        let blocks = (1..=made.blocks).filter(held);
        blocks.flat_map(|trial| cases.iter().map(move |case| TrialKey { case: case.id.clone(), trial }))
    };
    let record = RunRecord {
        format: 1,
        tool_version: "0.1.0".to_owned(),
        id: made.id.to_owned(),
        name: "which".to_owned(),
        plan_sha256: sha256(made.plan),
        seed: made.seed,
        blocks: made.blocks,
        baseline: [("stack".to_owned(), "ext4".to_owned())].into(),
        quick: None,
        at_least: None,
        precision_percent: 5,
        durability: None,
        extended: Vec::new(),
        share: made.share,
        turns: Vec::new(),
        merged: Vec::new(),
        started: "2026-03-02T09:14:33Z".to_owned(),
        cases: cases.clone(),
        order: keys().collect(),
    };
    let writer = Writer::create(results, record, made.plan).unwrap();
    for key in keys().filter(|key| !(made.without)(key)) {
        let place = CASES.iter().position(|(id, ..)| *id == key.case).unwrap();
        let staging = writer.stage(&key).unwrap();
        seconds(&staging.seconds(), &key, made);
        let mut record = trial(&cases[place], key.trial, CASES[place].4 * made.speed, made);
        record.run = made.id.to_owned();
        staging.commit(&record).unwrap();
    }
    writer.folder().path().to_path_buf()
}

/// Ten rows, or none.
fn seconds(path: &Path, key: &TrialKey, made: &Made) {
    let column = |name: &str, kind: ColumnKind, of: ColumnType| Column {
        name: name.to_owned(),
        unit: String::new(),
        kind,
        of,
        doc: String::new(),
    };
    let gauge = column("mem_dirty_bytes", ColumnKind::Gauge, ColumnType::Count);
    let Some(stalled) = made.stalled else {
        return SecondsWriter::create(path, vec![gauge]).unwrap().finish().unwrap();
    };
    let text = |name| column(name, ColumnKind::Gauge, ColumnType::Text);
    let count = |name| column(name, ColumnKind::Interval, ColumnType::Count);
    let columns = vec![text("run"), text("case"), count("trial"), count("second"), count("client_done"), gauge];
    let mut writer = SecondsWriter::create(path, columns).unwrap();
    for second in 0..=10 {
        let done = if second > 10 - stalled { 0 } else { 1000 };
        let numbers = [u64::from(key.trial), second, done, 7].map(|n| Some(Value::Count(n)));
        let texts = [made.id.to_owned(), key.case.clone()].map(|text| Some(Value::Text(text)));
        writer.push(texts.into_iter().chain(numbers).collect()).unwrap();
    }
    writer.finish().unwrap();
}

fn sha256(text: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
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
fn stack_facts(filesystem: &str, made: &Made) -> StackFacts {
    let disk = DeviceFacts {
        name: "vda".to_owned(),
        model: Some(made.model.to_owned()),
        firmware: Some(made.firmware.to_owned()),
        stands_on_nothing: Some(true),
        write_cache: Some(WriteCache::WriteBack),
        counts_flushes: Some(true),
        ..DeviceFacts::default()
    };
    let mount = MountFacts { fstype: filesystem.to_owned(), target: "/data".to_owned(), ..MountFacts::default() };
    let input = Input { from: BaseName("vda".to_owned()), role: Role::Data, group: None };
    let on_disk = filesystem != "tmpfs";
    let mut nodes = vec![NodeFacts {
        name: filesystem.to_owned(),
        layer: Some(filesystem.to_owned()),
        inputs: if on_disk { vec![input] } else { Vec::new() },
        promises: promise::of_mount(&mount),
        bases: vec![BaseFacts { mount: Some(mount), ..BaseFacts::default() }],
        ..NodeFacts::default()
    }];
    nodes.extend(on_disk.then(|| NodeFacts {
        name: "vda".to_owned(),
        bases: vec![BaseFacts { device: Some(disk), ..BaseFacts::default() }],
        ..NodeFacts::default()
    }));
    let data = Some(BaseName(filesystem.to_owned()));
    StackFacts { name: filesystem.to_owned(), nodes, data, ..StackFacts::default() }
}

fn trial(case: &CaseSpec, trial: u32, tps: f64, made: &Made) -> TrialRecord {
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
        host: HostFacts {
            hostname: made.host.clone(),
            kernel: made.kernel.to_owned(),
            cpus: 4,
            memory_bytes: 8 << 30,
            ..HostFacts::default()
        },
        steps: Vec::new(),
        knobs: Default::default(),
        stack: Some(stack_facts(&case.stack.name, made)),
        server: Some(server),
        idle: None,
        drives: Vec::new(),
        age: None,
        settle: None,
        window: None,
        data: None,
        counts: Some(Counts { elapsed_us: SECONDS * 1_000_000, measures: vec![measure], ..Counts::default() }),
        full: None,
        waits: None,
        columns: Vec::new(),
        gaps: Vec::new(),
        load_counts: std::collections::BTreeMap::new(),
        clock_step_us: None,
        telemetry_cpu_us: None,
        telemetry_cpu_us_by: Default::default(),
        disk_probes: Vec::new(),
        turns: None,
        is_repeat: false,
        decided: Options::default(),
        notes: Vec::new(),
        files: std::collections::BTreeMap::new(),
    }
}

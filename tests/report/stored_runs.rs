//! Run folders made up trial by trial, with rows, latencies and waits, for the real analysis; always the same.

use crate::report::facts::{host, server_facts, stack_facts};
use crate::report::sample::Noise;
use hdrhistogram::Histogram;
use pgstrata::record::case::{CaseSpec, PostgresSpec, TrialKey, WorkloadSpec};
use pgstrata::record::column::{Column, ColumnKind, ColumnType};
use pgstrata::record::counts::{Counts, Measure, MeasureSlice};
use pgstrata::record::event::{Event, Stamped, Step};
use pgstrata::record::facts::{DataFacts, Fits};
use pgstrata::record::latency::LatencyInterval;
use pgstrata::record::options::{OptionValue, Options};
use pgstrata::record::run::{QuickOf, RunRecord};
use pgstrata::record::seconds::{Row, Value};
use pgstrata::record::stack::StackSpec;
use pgstrata::record::trial::{Outcome, TrialRecord, WaitCount, WaitFigures, WaitSecond};
use pgstrata::store::folder::Writer;
use pgstrata::store::seconds::SecondsWriter;
use pgstrata::store::{latency, waits};
use pgstrata::workload;
use std::path::{Path, PathBuf};

const SECONDS: u64 = 60;
const SECOND_US: u64 = 1_000_000;

/// One case with its truth.
#[derive(Clone, Copy)]
pub struct Truth {
    pub stack: &'static str,
    /// `tpcb`, `lookup` (which only reads) or `sync`.
    pub workload: &'static str,
    pub clients: u64,
    /// Settings of the server that the plan varies.
    pub settings: &'static [(&'static str, &'static str)],
    pub rate: f64,
    /// WAL of an operation, bytes.
    pub wal_bytes: f64,
    /// Share of backend time that waits for storage.
    pub storage: f64,
}

/// A run: what its record says, and how far it came.
pub struct Run {
    pub name: &'static str,
    pub blocks: u32,
    pub quick: bool,
    /// How much trials of a case scatter: standard deviation over mean, about.
    pub scatter: f64,
    /// Trials that were begun; the others were not.
    pub trials: usize,
    /// Axis and value of the baseline.
    pub baseline: (&'static str, &'static str),
    /// Stack of which no trial can be built.
    pub broken: Option<&'static str>,
    pub cases: Vec<Truth>,
}

impl Run {
    /// Writes the run folder below `folder`.
    pub fn store(&self, folder: &Path) -> PathBuf {
        let cases: Vec<CaseSpec> = self.cases.iter().map(Truth::spec).collect();
        let key = |case: &CaseSpec, trial| TrialKey { case: case.id.clone(), trial };
        let order: Vec<TrialKey> = (1..=self.blocks).flat_map(|n| cases.iter().map(move |case| key(case, n))).collect();
        let record = RunRecord {
            format: 1,
            tool_version: "0.1.0".to_owned(),
            id: "5eed".to_owned(),
            name: self.name.to_owned(),
            plan_sha256: "00".to_owned(),
            seed: 42,
            blocks: self.blocks,
            baseline: [(self.baseline.0.to_owned(), self.baseline.1.to_owned())].into(),
            quick: self.quick.then(|| QuickOf { cases: cases.len() as u32, blocks: self.blocks, ..QuickOf::default() }),
            at_least: None,
            precision_percent: 5,
            durability: None,
            extended: Vec::new(),
            share: None,
            turns: Vec::new(),
            merged: Vec::new(),
            started: "2026-03-02T09:14:33Z".to_owned(),
            order: order.clone(),
            cases,
        };
        let mut writer =
            Writer::create(&folder.join("results"), record, &format!("name = \"{}\"\n", self.name)).unwrap();
        let mut noise = Noise::new(7);
        let measured_us = SECONDS * SECOND_US;
        let mut at_us = 0;
        let mut tell = |writer: &mut Writer, what| {
            writer.append(&Stamped { at_us, what }).unwrap();
            at_us += measured_us * 4 / 3;
        };
        let of_run = (self.name.to_owned(), order.len() as u32);
        tell(
            &mut writer,
            Event::RunStarted {
                run: of_run.0,
                trials: of_run.1,
                expected_us: 0,
                most_repeats: 0,
                cases: Default::default(),
            },
        );
        for (place, key) in order.iter().take(self.trials).enumerate() {
            self.cases[place % self.cases.len()].measure(&writer, key, self, &mut noise);
            tell(
                &mut writer,
                Event::TrialDone {
                    trial: key.clone(),
                    wall_us: measured_us,
                    measured_us,
                    rate: None,
                    full_after_us: None,
                },
            );
        }
        if self.trials >= order.len() {
            tell(&mut writer, Event::RunDone { wall_us: 0, measured_us, done: of_run.1, not_run: 0 });
        }
        writer.folder().path().to_path_buf()
    }
}

impl Truth {
    fn spec(&self) -> CaseSpec {
        let mut axes =
            vec![("stack".to_owned(), self.stack.to_owned()), ("workload".to_owned(), self.workload.to_owned())];
        let mut options = Options::default();
        let kind = if self.workload == "sync" { "sync" } else { "pgbench" };
        if kind == "pgbench" {
            axes.push(("clients".to_owned(), self.clients.to_string()));
            options.set("clients", OptionValue::Integer(self.clients as i64));
            options.set("scale", OptionValue::Integer(50));
        }
        if self.workload == "lookup" {
            options.set("script", OptionValue::Text("select-only".to_owned()));
        }
        let settings = || self.settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        axes.extend(settings());
        let values: Vec<&str> = axes.iter().map(|(_, value)| value.as_str()).collect();
        CaseSpec {
            id: values.join("-"),
            stack: StackSpec::linear(self.stack, vec![(self.stack, Options::default())]),
            postgres: (kind == "pgbench").then(|| PostgresSpec {
                bin: "auto".to_owned(),
                build: None,
                settings: settings().collect(),
                initdb: Vec::new(),
            }),
            workload: WorkloadSpec { name: self.workload.to_owned(), kind: kind.to_owned(), options },
            axes: axes.into_iter().collect(),
            ..CaseSpec::default()
        }
    }

    fn measure(&self, writer: &Writer, key: &TrialKey, run: &Run, noise: &mut Noise) {
        // A uniform number from -1 to 1 deviates by 0.58.
        let mut about = |value: f64, deviation: f64| value * (1.0 + deviation / 0.58 * (2.0 * noise.next() - 1.0));
        let rate = about(self.rate, run.scatter);
        let wal_bytes = about(self.wal_bytes, 0.01);
        let mean_storage = about(1000.0 * self.storage, 0.03);
        let done: Vec<u64> = (0..SECONDS).map(|_| about(rate, 0.05) as u64).collect();
        let storage: Vec<u64> = (0..SECONDS).map(|_| about(mean_storage, 0.1) as u64).collect();
        let staging = writer.stage(key).unwrap();
        let mut record = self.record(key, &done);
        if run.broken == Some(self.stack) {
            record.outcome = Outcome::NotRun {
                step: Step::Build,
                reason: format!("mkfs.{} failed with exit code 1: /dev/loop3 is too small", self.stack),
                hint: Some(format!("give the loop image of stack `{}` 256MiB or more", self.stack)),
            };
        } else {
            Truth { wal_bytes, ..*self }.write_rows(&staging.seconds(), &done);
            latency::write(
                &staging.latencies(),
                SECONDS * SECOND_US,
                || None,
                Truth { rate, ..*self }.latencies(&done),
            )
            .unwrap();
            if self.workload != "sync" {
                let waits = waited(&storage);
                waits::write(&staging.waits(), &[], Some(0), &waits).unwrap();
                record.waits = Some(waits);
            }
        }
        staging.commit(&record).unwrap();
    }

    fn record(&self, key: &TrialKey, done: &[u64]) -> TrialRecord {
        let total: u64 = done.iter().sum();
        let whole = Measure {
            name: "transactions".to_owned(),
            done: Some(total),
            elapsed_us: SECONDS * SECOND_US,
            latency_us_sum: total * self.latency_us() as u64,
            ..Measure::default()
        };
        let slices = |rate: f64| {
            let each = |part: f64| MeasureSlice { operations: (rate * part * 10.0) as u64, elapsed_ns: 10_000_000_000 };
            [0.99, 1.0, 1.01].map(each).to_vec()
        };
        let rate = total as f64 / SECONDS as f64;
        let methods = [("fdatasync", 1.0), ("fsync", 0.93), ("open_datasync", 0.99)].map(|(name, part)| Measure {
            name: name.to_owned(),
            done: Some((total as f64 * part / 3.0) as u64),
            elapsed_us: SECONDS * SECOND_US / 3,
            slices: slices(rate * part),
            ..whole.clone()
        });
        let case = self.spec();
        let is_sync = self.workload == "sync";
        let workload = workload::ALL.iter().find(|one| one.info().name == case.workload.kind).unwrap();
        TrialRecord {
            format: 1,
            run: "5eed".to_owned(),
            trial: key.trial,
            operation: workload.operation(&case.workload.options).unwrap(),
            case,
            started: "2026-03-02T09:14:33Z".to_owned(),
            host: host(),
            stack: Some(stack_facts(self.stack, 0)),
            server: (!is_sync).then(|| {
                let mut server = server_facts();
                server
                    .key_settings
                    .extend(self.settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
                server
            }),
            data: (!is_sync).then(|| DataFacts {
                database_bytes: 784 << 20,
                fits: Fits::Memory,
                cache_state: "warm".to_owned(),
                origin: "copied".to_owned(),
                copy_s: None,
                template_s: None,
            }),
            counts: Some(Counts {
                elapsed_us: SECONDS * SECOND_US,
                measures: if is_sync { methods.to_vec() } else { vec![whole] },
                ..Counts::default()
            }),
            ..TrialRecord::default()
        }
    }

    fn latency_us(&self) -> f64 {
        self.clients as f64 / self.rate * 1e6
    }

    /// One interval a second; the slowest percent take up to eight times the median.
    fn latencies(&self, done: &[u64]) -> impl Iterator<Item = LatencyInterval> {
        let (is_sync, us) = (self.workload == "sync", self.latency_us() * 0.85);
        let seconds = if is_sync { Vec::new() } else { done.to_vec() };
        (0u64..).zip(seconds).map(move |(second, done)| {
            let mut latencies: Histogram<u64> = Histogram::new(3).unwrap();
            for i in 0..done {
                let part = (i as f64 + 0.5) / done as f64;
                let us = us * (0.6 + 0.5 * part + 0.17 * (1.0 / (1.0 - part)).sqrt());
                latencies.record(us.min(8.0 * us) as u64).unwrap();
            }
            let (start_us, length_us) = (second * SECOND_US, SECOND_US);
            LatencyInterval { measure: "transactions".to_owned(), start_us, length_us, latencies }
        })
    }

    /// Counters as they stand after each second, the first row before the first operation.
    fn write_rows(&self, path: &Path, done: &[u64]) {
        let writes = if self.workload == "lookup" { 0.0 } else { 1.0 };
        let on_device = if self.stack == "tmpfs" { 0.0 } else { writes };
        let flushes = if self.stack == "btrfs" { 1.9 } else { 0.98 };
        let device_writes = if self.stack == "btrfs" { 4.7 } else { 1.05 };
        let of_server = if self.workload == "sync" { 0.0 } else { writes };
        let each = [
            ("pg_wal_bytes", of_server * self.wal_bytes),
            ("pg_wal_records", of_server * 8.0),
            ("pg_wal_syncs", of_server * 0.98),
            ("pg_xids", of_server),
            ("dev_loop_writes", on_device * device_writes),
            ("dev_loop_write_bytes", on_device * (device_writes * 8192.0 + self.wal_bytes)),
            ("dev_loop_reads", 0.0),
            ("dev_loop_flushes", on_device * flushes),
        ];
        let has_device = |name: &str| self.stack != "tmpfs" || !name.starts_with("dev_");
        let each: Vec<(&str, f64)> = each.into_iter().filter(|(name, _)| has_device(name)).collect();
        let column = |name: &str, of| Column {
            name: name.to_owned(),
            unit: "count".to_owned(),
            kind: ColumnKind::Counter,
            of,
            doc: String::new(),
        };
        let names =
            ["time_us", "client_done", "client_latency_us_max", "pg_checkpoints_timed", "cpu_user_ns", "cpu_idle_ns"];
        let mut columns: Vec<Column> = names.into_iter().map(|name| column(name, ColumnType::Count)).collect();
        columns.extend(each.iter().map(|(name, _)| column(name, ColumnType::Count)));
        columns.push(column("dev_loop_name", ColumnType::Text));
        let mut writer = SecondsWriter::create(path, columns).unwrap();
        let mut sum = 0;
        for second in 0..=SECONDS {
            let of_second = second.checked_sub(1).map(|before| done[before as usize]);
            sum += of_second.unwrap_or(0);
            let slowest = of_second.map(|_| (self.latency_us() * 4.0) as u64);
            let counts =
                [Some(second * SECOND_US), of_second, slowest, Some(second / 20), Some(second * 2_480_000_000)];
            let mut row: Row = counts.into_iter().map(|count| count.map(Value::Count)).collect();
            row.push(Some(Value::Count(second * 5_520_000_000)));
            row.extend(each.iter().map(|(_, each)| Some(Value::Count((sum as f64 * each) as u64))));
            row.push((self.stack != "tmpfs").then(|| Value::Text("loop0".to_owned())));
            writer.push(row).unwrap();
        }
        writer.finish().unwrap();
    }
}

/// What a thousand backends of each second did, so many of them waiting for storage.
fn waited(storage: &[u64]) -> WaitFigures {
    let all: u64 = storage.iter().sum();
    let wait = |class: &str, event: &str, count| WaitCount { class: class.to_owned(), event: event.to_owned(), count };
    let second =
        |waiting: &u64| WaitSecond { samples: 10, counts: vec![(0, *waiting as u32), (1, 1000 - *waiting as u32)] };
    WaitFigures {
        samples: 10 * SECONDS,
        per_second: 10,
        backends: 1000 * SECONDS,
        waits: vec![wait("IO", "WALSync", all), wait("CPU", "CPU", 1000 * SECONDS - all)],
        seconds: storage.iter().map(second).collect(),
        ..WaitFigures::default()
    }
}

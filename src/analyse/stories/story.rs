//! Synthetic runs for the tests of this room, as stories: "ext4 at 1000 tps, flushing half a time per commit".

use crate::analyse::analysis::Analysis;
use crate::analyse::findings::Findings;
use crate::analyse::look::BlockLook;
use crate::analyse::trial::input::{PhaseLatencies, RunInput, Seconds, TrialInput};
use crate::record::built::{BaseFacts, NodeFacts, StackFacts};
use crate::record::case::{CaseSpec, PostgresSpec, TrialKey, WorkloadSpec};
use crate::record::claim::Promise;
use crate::record::counts::{Counts, Measure, MeasureSlice};
use crate::record::event::Step;
use crate::record::facts::{DataFacts, DeviceFacts, Fits, FoundSetting, MountFacts, ServerFacts, WriteCache};
use crate::record::operation::{Operation, Writes};
use crate::record::options::{OptionValue, Options};
use crate::record::promise;
use crate::record::run::RunRecord;
use crate::record::stack::{BaseName, Input, Role, StackSpec};
use crate::record::trial::{Outcome, TrialRecord, WaitFigures};
use crate::stats::simulation::{Noise, autoregressive};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

pub struct Story {
    pub input: RunInput,
    pub trials: Vec<TrialInput>,
    noise: Noise,
}

/// One case of a story with its true properties.
#[derive(Clone)]
pub struct Act {
    pub stack: Floor,
    /// Storage of pg_wal, if separate.
    pub wal_stack: Option<Floor>,
    /// Suite of the guest, if that is an axis.
    pub guest: Option<String>,
    pub workload: &'static str,
    pub writes: Writes,
    pub clients: u64,
    pub tps: f64,
    pub seconds: usize,
    /// Relative standard deviation of a second's rate.
    pub unsteady: f64,
    /// Existing trials; empty = one in each block.
    pub trials: Vec<u32>,
    pub settings: BTreeMap<String, String>,
    /// Settings made by scripts in their sessions.
    pub script_settings: Vec<FoundSetting>,
    /// Flushes per commit at each device, from top to bottom; `None` = no such column.
    pub flushes: Vec<Option<f64>>,
    pub wal_flushes: Vec<Option<f64>>,
    /// Writes per commit at each device.
    pub writes_each: f64,
    /// Writes at each device relative to most stories, from top to bottom; missing = 1.
    pub device_writes: Vec<f64>,
    /// WAL syncs in the whole load of a trial, and exact flushes at each device from top to bottom.
    pub load: Option<(u64, Vec<u64>)>,
    /// WAL records per commit.
    pub wal_records: Option<f64>,
    pub wal_syncs: Option<f64>,
    /// Share of transactions that wrote.
    pub xids: Option<f64>,
    /// Checkpoints in each trial.
    pub checkpoints: u64,
    pub waits: Option<WaitFigures>,
    /// Latency of nearly all operations; one in fifty takes twice as long.
    pub latency_us: u64,
    /// Fixed rate, and the latency limit in microseconds.
    pub rate: Option<(f64, u64)>,
    /// Skipped operations per completed one.
    pub skipped: f64,
    pub cpu_busy: f64,
    /// Another program, with its share of one of two CPUs.
    pub others: Option<(&'static str, f64)>,
    /// Final change to every record.
    pub touch: fn(&mut TrialRecord),
}

/// A filesystem and the devices below it, each depth on the next.
#[derive(Clone)]
pub struct Floor {
    pub name: String,
    pub layer: &'static str,
    pub mount: MountFacts,
    pub devices: Vec<DeviceFacts>,
    pub promises: Vec<Promise>,
}

impl Floor {
    /// The nodes, the filesystem first.
    fn nodes(&self) -> Vec<NodeFacts> {
        let at = |depth: u32| self.devices.iter().filter(move |device| device.depth == depth);
        let inputs = |depth: u32| -> Vec<Input> {
            let from = |device: &DeviceFacts| BaseName(device.name.clone());
            at(depth).map(|device| Input { from: from(device), role: Role::Data, group: None }).collect()
        };
        let mut promises = self.promises.clone();
        promises.extend(promise::of_mount(&self.mount));
        let base = BaseFacts { mount: Some(self.mount.clone()), ..BaseFacts::default() };
        let mut nodes = vec![NodeFacts {
            name: self.name.clone(),
            layer: Some(self.layer.to_owned()),
            inputs: inputs(0),
            bases: vec![base],
            promises,
            ..NodeFacts::default()
        }];
        nodes.extend(self.devices.iter().map(|device| NodeFacts {
            name: device.name.clone(),
            layer: (device.depth == 0 && device.backing_file.is_some()).then(|| "loop".to_owned()),
            inputs: inputs(device.depth + 1),
            bases: vec![BaseFacts { device: Some(device.clone()), ..BaseFacts::default() }],
            promises: promise::of_device_among(device, &self.devices),
            ..NodeFacts::default()
        }));
        nodes
    }
}

/// What caveats say before they quote.
const QUOTING: [&str; 3] = ["its trials ran on different machines: ", "its trials differ in ", "synced writes "];

/// The first device of a record's stack.
pub fn first_device(record: &mut TrialRecord) -> &mut DeviceFacts {
    let nodes = record.stack.as_mut().unwrap().nodes.iter_mut();
    nodes.flat_map(|node| &mut node.bases).find_map(|base| base.device.as_mut()).unwrap()
}

/// A disk as sysfs shows it.
pub fn disk(depth: u32, name: &str) -> DeviceFacts {
    DeviceFacts {
        depth,
        name: name.to_owned(),
        write_cache: Some(WriteCache::WriteBack),
        fua: Some(false),
        counts_flushes: Some(true),
        has_queue: Some(true),
        writes_before: Some(1000),
        flushes_before: Some(1000),
        ..DeviceFacts::default()
    }
}

impl Act {
    /// tpcb on its own filesystem on a disk that flushes once per commit.
    pub fn on(stack: &str) -> Act {
        let mount = MountFacts { fstype: stack.to_owned(), target: "/data".to_owned(), ..MountFacts::default() };
        let devices = vec![disk(0, "vda")];
        let settings = [("fsync", "on"), ("synchronous_commit", "on"), ("wal_sync_method", "fdatasync")];
        Act {
            stack: Floor { name: stack.to_owned(), layer: "ext4", mount, devices, promises: Vec::new() },
            wal_stack: None,
            guest: None,
            workload: "tpcb",
            writes: Writes::Always,
            clients: 16,
            tps: 1000.0,
            seconds: 60,
            unsteady: 0.05,
            trials: Vec::new(),
            settings: settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            script_settings: Vec::new(),
            flushes: vec![Some(1.0)],
            wal_flushes: Vec::new(),
            writes_each: 1.02,
            device_writes: Vec::new(),
            load: None,
            wal_records: Some(8.0),
            wal_syncs: Some(1.0),
            xids: Some(1.0),
            checkpoints: 3,
            waits: None,
            latency_us: 900,
            rate: None,
            skipped: 0.0,
            cpu_busy: 0.4,
            others: None,
            touch: |_| {},
        }
    }

    /// Synced writes without a server, by one writer.
    pub fn sync_on(stack: &str) -> Act {
        let mut act = Act::on(stack);
        (act.workload, act.clients) = ("sync", 1);
        act
    }

    /// tmpfs: no device below.
    pub fn in_memory() -> Act {
        let mut act = Act::on("tmpfs");
        act.stack.devices.clear();
        act.flushes.clear();
        act
    }

    pub fn tps(mut self, tps: f64) -> Act {
        self.tps = tps;
        self
    }

    /// The same in a guest, as an axis.
    pub fn in_guest(mut self, suite: &str) -> Act {
        self.guest = Some(suite.to_owned());
        self
    }

    /// The same with another stack name.
    pub fn named(mut self, stack: &str) -> Act {
        self.stack.name = stack.to_owned();
        self
    }

    pub fn clients(mut self, clients: u64) -> Act {
        self.clients = clients;
        self
    }

    pub fn trials(mut self, trials: &[u32]) -> Act {
        self.trials = trials.to_vec();
        self
    }

    pub fn setting(mut self, name: &str, value: &str) -> Act {
        self.settings.insert(name.to_owned(), value.to_owned());
        self
    }

    pub fn touched(mut self, touch: fn(&mut TrialRecord)) -> Act {
        self.touch = touch;
        self
    }

    fn spec(&self) -> CaseSpec {
        let axes = [
            ("stack", self.stack.name.clone()),
            ("workload", self.workload.to_owned()),
            ("clients", self.clients.to_string()),
        ];
        let mut options = Options::default();
        options.set("clients", OptionValue::Integer(self.clients as i64));
        let mut stack = StackSpec::linear(&self.stack.name, vec![(&self.stack.name, Options::default())]);
        if let Some(wal) = &self.wal_stack {
            stack.wal = Some(BaseName("wal".to_owned()));
            stack.wal_stack = Some(wal.name.clone());
        }
        let kind = if self.workload == "sync" { "sync" } else { "pgbench" };
        let server =
            PostgresSpec { bin: "auto".to_owned(), build: None, settings: BTreeMap::new(), initdb: Vec::new() };
        let suite = self.guest.iter().map(|suite| ("guest", suite.clone()));
        let id = self.guest.as_ref().map_or_else(String::new, |suite| format!("{suite}-"));
        CaseSpec {
            id: format!("{id}{}-{}-c{}", self.stack.name, self.workload, self.clients),
            guest: self.guest.clone(),
            stack,
            postgres: (kind == "pgbench").then_some(server),
            machine: Options::default(),
            age: Options::default(),
            workload: WorkloadSpec { name: self.workload.to_owned(), kind: kind.to_owned(), options },
            axes: axes.into_iter().chain(suite).map(|(axis, value)| (axis.to_owned(), value)).collect(),
        }
    }

    fn operation(&self) -> Operation {
        let (noun, unit) = if self.workload == "sync" { ("sync", "ops/s") } else { ("transaction", "tps") };
        Operation {
            noun: noun.to_owned(),
            unit: unit.to_owned(),
            writes: self.writes,
            clients: self.clients,
            rate: self.rate.map(|(rate, _)| rate),
            profile_rate: None,
            is_searched: false,
            latency_limit_us: self.rate.map(|(_, limit_us)| limit_us),
            cache: None,
            scripts: Vec::new(),
            scale: None,
            query_mode: None,
            script_settings: self.script_settings.clone(),
            log_sample: None,
            settings: BTreeMap::new(),
        }
    }

    fn facts(&self) -> StackFacts {
        let mut nodes = self.stack.nodes();
        let mut wal = None;
        if let Some(floor) = &self.wal_stack {
            let own = floor.nodes().into_iter().enumerate().map(|(at, node)| match at {
                0 => NodeFacts { name: "wal".to_owned(), ..node },
                _ => node,
            });
            let own: Vec<NodeFacts> = own.filter(|node| nodes.iter().all(|known| known.name != node.name)).collect();
            nodes.extend(own);
            wal = Some(BaseName("wal".to_owned()));
        }
        let data = Some(BaseName(self.stack.name.clone()));
        StackFacts { name: self.stack.name.clone(), nodes, data, wal, ..StackFacts::default() }
    }

    /// One in fifty takes twice as long; trials vary slightly in speed.
    fn latencies(&self, trial: u32, done: u64) -> Histogram<u64> {
        let seed = self.stack.name.bytes().fold(u64::from(trial), |sum, byte| sum * 31 + u64::from(byte));
        let us = self.latency_us + self.latency_us * (seed % 7) / 300;
        let mut latencies: Histogram<u64> = Histogram::new(3).unwrap();
        latencies.record_n(us, done - done / 50).unwrap();
        latencies.record_n(2 * us, done / 50).unwrap();
        latencies
    }

    fn load_counts(&self, done: u64) -> BTreeMap<String, u64> {
        let Some((syncs, flushes)) = &self.load else { return BTreeMap::new() };
        let all = |each: Option<f64>| (done as f64 * each.unwrap_or(0.0)) as u64;
        let of_server =
            [("pg_wal_syncs", *syncs), ("pg_wal_records", all(self.wal_records)), ("pg_xids", all(self.xids))];
        let prefixes = self
            .facts()
            .device_columns()
            .into_iter()
            .map(|(_, prefix, _)| format!("{prefix}_flushes"))
            .collect::<Vec<_>>();
        let of_devices = prefixes.into_iter().zip(flushes.iter().copied());
        of_server.into_iter().map(|(name, grown)| (name.to_owned(), grown)).chain(of_devices).collect()
    }

    fn record(&self, trial: u32, done: &[u64]) -> TrialRecord {
        let total: u64 = done.iter().sum();
        let transactions = Measure {
            name: "transactions".to_owned(),
            done: Some(total),
            elapsed_us: done.len() as u64 * 1_000_000,
            latency_us_sum: total * self.latency_us,
            skipped: (total as f64 * self.skipped) as u64,
            late: if self.rate.is_some_and(|(_, limit_us)| 2 * self.latency_us > limit_us) { total / 50 } else { 0 },
            ..Measure::default()
        };
        let slice = |per_s: f64| MeasureSlice { operations: (per_s * 10.0) as u64, elapsed_ns: 10_000_000_000 };
        let slices = ["fdatasync", "fsync", "open_datasync"].map(|name| Measure {
            name: name.to_owned(),
            done: Some(total / 3),
            elapsed_us: done.len() as u64 * 1_000_000 / 3,
            slices: [0.99, 1.0, 1.01].map(|part| slice(self.tps * part)).to_vec(),
            ..Measure::default()
        });
        let measures = if self.workload == "sync" { slices.to_vec() } else { vec![transactions] };
        let server =
            ServerFacts { version: "15.8".to_owned(), key_settings: self.settings.clone(), ..ServerFacts::default() };
        TrialRecord {
            format: 1,
            run: "0badcafe".to_owned(),
            trial,
            case: self.spec(),
            operation: self.operation(),
            started: "2025-01-01T00:00:00Z".to_owned(),
            stack: Some(self.facts()),
            server: (self.workload != "sync").then_some(server),
            data: Some(DataFacts {
                database_bytes: 5 << 30,
                fits: Fits::Neither,
                cache_state: "cold".to_owned(),
                origin: "copied".to_owned(),
                copy_s: None,
                template_s: None,
            }),
            counts: Some(Counts { elapsed_us: done.len() as u64 * 1_000_000, measures, ..Counts::default() }),
            waits: self.waits.clone(),
            load_counts: self.load_counts(total),
            ..TrialRecord::default()
        }
    }

    fn rows(&self, done: &[u64]) -> Seconds {
        let rows = done.len() + 1;
        let mut seconds = Seconds::new(rows);
        let mut cumulative = vec![0u64];
        cumulative.extend(done.iter().scan(0, |sum, done| {
            *sum += done;
            Some(*sum)
        }));
        let all = vec![true; rows];
        let after_start: Vec<bool> = (0..rows).map(|row| row > 0).collect();
        let interval = |of: &dyn Fn(u64) -> u64| [0].into_iter().chain(done.iter().map(|done| of(*done))).collect();
        seconds.push_counts("client_done", interval(&|done| done), &after_start);
        seconds.push_counts("client_latency_us_max", interval(&|done| 9_000_000 / (done + 1)), &after_start);
        seconds.push_counts("time_us", (0..rows as u64).map(|row| row * 1_000_000).collect(), &all);
        let mut counter = |name: &str, each: f64| {
            let values = cumulative.iter().map(|sum| 1_000 + (*sum as f64 * each).round() as u64).collect();
            seconds.push_counts(name, values, &all);
        };
        let facts = self.facts();
        let bases = [(facts.data.as_ref(), &self.flushes), (facts.wal.as_ref(), &self.wal_flushes)];
        let mut named: Vec<(String, String)> = Vec::new();
        for (base, flushes) in bases {
            for below in facts.devices_below(base) {
                let prefix = facts.device_columns().into_iter().find(|(name, _, _)| *name == below.name()).unwrap().1;
                let Some(flushes) =
                    flushes.get(below.depth as usize).filter(|_| named.iter().all(|(p, _)| *p != prefix))
                else {
                    continue;
                };
                let beside = facts.devices_below(base).iter().filter(|other| other.depth == below.depth).count() as f64;
                let writes = self.writes_each * self.device_writes.get(below.depth as usize).unwrap_or(&1.0) / beside;
                counter(&format!("{prefix}_writes"), writes);
                counter(&format!("{prefix}_write_bytes"), writes * 16.4 * 1024.0);
                counter(&format!("{prefix}_reads"), 0.0);
                if let Some(flushes) = flushes {
                    counter(&format!("{prefix}_flushes"), *flushes / beside);
                }
                named.push((prefix, below.device.name.clone()));
            }
        }
        let figures = [("pg_wal_records", self.wal_records), ("pg_wal_syncs", self.wal_syncs), ("pg_xids", self.xids)];
        let bytes = self.wal_records.or(self.wal_syncs).map(|each| each * 100.0);
        for (name, each) in figures.into_iter().chain([("pg_wal_bytes", bytes)]) {
            if let Some(each) = each.filter(|_| self.workload != "sync") {
                counter(name, each);
            }
        }
        let began = (0..rows as u64).map(|row| row * self.checkpoints / (rows as u64 - 1).max(1)).collect();
        seconds.push_counts("pg_checkpoints_timed", began, &all);
        for (name, share) in [("cpu_user_ns", self.cpu_busy), ("cpu_idle_ns", 1.0 - self.cpu_busy)] {
            let of_two_cpus = (0..rows).map(|row| (row as f64 * 2e9 * share) as u64).collect();
            seconds.push_counts(name, of_two_cpus, &all);
        }
        if let Some((name, share)) = self.others {
            seconds.push_texts("others_name", after_start.iter().map(|there| there.then_some(name)));
            seconds.push_counts(
                "others_cpu_ns",
                (0..rows).map(|row| (row as f64 * 1e9 * share) as u64).collect(),
                &all,
            );
        }
        for (prefix, name) in &named {
            seconds.push_texts(format!("{prefix}_name"), vec![Some(name.as_str()); rows]);
        }
        seconds
    }
}

impl Story {
    /// A run of `blocks` blocks, optionally with the stack `baseline` as baseline.
    pub fn of(blocks: u32, baseline: Option<&str>) -> Story {
        let baseline = baseline.map(|stack| ("stack".to_owned(), stack.to_owned()));
        let run = RunRecord {
            format: 1,
            tool_version: "0.1.0".to_owned(),
            id: "0badcafe".to_owned(),
            name: "story".to_owned(),
            plan_sha256: String::new(),
            seed: 42,
            blocks,
            baseline: baseline.into_iter().collect(),
            quick: None,
            at_least: None,
            precision_percent: 5,
            durability: None,
            extended: Vec::new(),
            share: None,
            turns: Vec::new(),
            merged: Vec::new(),
            started: "2025-01-01T00:00:00Z".to_owned(),
            cases: Vec::new(),
            order: Vec::new(),
        };
        let plan_text = "name = \"story\"".to_owned();
        let input = RunInput {
            folder: "results/story".to_owned(),
            lost_events: None,
            run,
            plan_text,
            wall_us: Some(1000),
            measured_us: Some(700),
            pending: Vec::new(),
            damaged: Vec::new(),
            verdicts: Vec::new(),
            merge: None,
        };
        Story { input, trials: Vec::new(), noise: Noise::seeded(1) }
    }

    /// Adds a case with its trials.
    pub fn with(mut self, act: &Act) -> Story {
        let spec = act.spec();
        let all: Vec<u32> = (1..=self.input.run.blocks).collect();
        for trial in if act.trials.is_empty() { &all } else { &act.trials } {
            let deviation = act.tps * act.unsteady;
            let series = autoregressive(&mut self.noise, act.tps, deviation, 0.3, act.seconds);
            let done: Vec<u64> = series.iter().map(|value| value.max(0.0).round() as u64).collect();
            let mut record = act.record(*trial, &done);
            (act.touch)(&mut record);
            let latencies = vec![("transactions".to_owned(), act.latencies(*trial, done.iter().sum()))];
            let phases = PhaseLatencies::default();
            self.trials.push(TrialInput { record, seconds: act.rows(&done), latencies, phases, heat: Vec::new() });
            self.input.run.order.push(TrialKey { case: spec.id.clone(), trial: *trial });
        }
        self.input.run.cases.push(spec);
        self
    }

    /// Makes blocks adaptive: the first look comes after this many.
    pub fn at_least(mut self, blocks: u32) -> Story {
        self.input.run.at_least = Some(blocks);
        self
    }

    /// Adds further trials of an existing case.
    pub fn also(mut self, act: &Act) -> Story {
        self = self.with(act);
        self.input.run.cases.pop();
        self
    }

    /// Result of a look after this block.
    pub fn look(self, block: u32) -> BlockLook {
        let mut analysis = Analysis::new(self.input);
        self.trials.into_iter().for_each(|trial| analysis.add_trial(trial));
        analysis.look(block)
    }

    /// Adds a case none of whose trials could be built.
    pub fn with_failed(mut self, act: &Act, reason: &str) -> Story {
        let before = self.trials.len();
        self = self.with(act);
        for input in &mut self.trials[before..] {
            input.record.outcome = Outcome::NotRun { step: Step::Build, reason: reason.to_owned(), hint: None };
        }
        self
    }

    /// All conclusions. They must survive JSON, which NaN would not.
    pub fn findings(self) -> Findings {
        let mut analysis = Analysis::new(self.input);
        for trial in self.trials {
            analysis.add_trial(trial);
        }
        let findings = analysis.finish();
        let json = serde_json::to_string(&findings).unwrap();
        let back: Findings = serde_json::from_str(&json).expect("findings hold a number that JSON cannot");
        assert_eq!(back.cases.len(), findings.cases.len());
        // A caveat takes one line of a terminal of 80 columns, unless it quotes a message or facts.
        let long = findings
            .cautions
            .iter()
            .map(|caution| &caution.text)
            .find(|text| text.chars().count() > 76 && QUOTING.iter().all(|quote| !text.contains(quote)));
        assert_eq!(long, None);
        findings
    }
}

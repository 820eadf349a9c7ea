//! Findings made up for these tests: four stacks, 1, 4 and 16 clients, trials of a minute; btrfs stalls, one was not run.

use crate::report::effects::effects;
use crate::report::facts::{counters, host, server_facts, stack_facts};
use crate::report::over_time::{heatmap, telemetry, waits};
use crate::report::verdicts::{power_cuts, verdict};
use crate::report::windows::{trial_window, window};
use pgstrata::analyse::findings::*;
use pgstrata::record::trial::{Gap, StepTime};
use std::collections::BTreeMap;

/// A stack of the sample: name, tps at 1, 4 and 16 clients, mean of its fdatasync rate.
pub struct Stack {
    pub name: &'static str,
    tps: [f64; 3],
    sync_rate: f64,
}

pub const STACKS: [Stack; 4] = [
    Stack { name: "ext4", tps: [212.0, 655.0, 1480.0], sync_rate: 318.0 },
    Stack { name: "xfs", tps: [241.0, 742.0, 1655.0], sync_rate: 352.0 },
    Stack { name: "btrfs", tps: [118.0, 351.0, 702.0], sync_rate: 171.0 },
    Stack { name: "tmpfs", tps: [1630.0, 4890.0, 7420.0], sync_rate: 402_000.0 },
];
const CLIENTS: [u32; 3] = [1, 4, 16];
const SYNC_METHODS: [(&str, f64); 3] = [("fdatasync", 1.0), ("fsync", 0.93), ("open_datasync", 0.99)];
const TRIALS: u32 = 3;
pub const SECONDS: usize = 60;

/// A sequence of numbers from 0 to 1 that looks random and is always the same.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

pub fn case_id(stack: &str, clients: u32) -> String {
    format!("{stack}-tpcb-clients{clients}")
}

fn estimate(value: f64, spread: f64) -> Estimate {
    Estimate::of(value, Some((value * (1.0 - spread), value * (1.0 + spread))), TRIALS as usize)
}

/// Ids of the cases with a server on a stack.
pub fn cases_on(stack: &str) -> Vec<String> {
    CLIENTS.map(|clients| case_id(stack, clients)).into()
}

fn durability(stack: &str) -> Durability {
    if stack == "tmpfs" {
        let reason = "tmpfs keeps its files in memory: there is no device below".to_owned();
        return Durability::of(DurabilityClass::Volatile, reason);
    }
    let reason = "0.98 flushes per commit seen on loop (write cache: write back)".to_owned();
    Durability::of(DurabilityClass::Flushed, reason)
}

fn comparison(stack: &Stack, value: f64, base: f64, baseline: String) -> Option<BaselineComparison> {
    let ratio = estimate(value / base, if stack.name == "xfs" { 0.05 } else { 0.08 });
    (stack.name != "ext4").then(|| BaselineComparison {
        baseline,
        outcome: PairOutcome::of(ratio.low >= Some(1.0) || ratio.high <= Some(1.0), None),
        ratio,
        detectable_ratio: Some(1.058),
        method: "paired over 3 blocks".to_owned(),
        caveat: (stack.name == "tmpfs").then(|| "another durability class".to_owned()),
    })
}

fn decision() -> Decision {
    Decision {
        detectable_ratio: Some(1.058),
        sentence:
            "Ranks: Tukey's test on all 3 pairs over 3 blocks. Smallest detectable difference at 80 % power: 5.8 %."
                .to_owned(),
        remarks: vec![
            "xfs and ext4: decided at an earlier look and kept; the interval of all blocks since includes 1".to_owned(),
        ],
    }
}

/// Trials whose geometric mean is about `rate`.
fn trials(rate: f64) -> Vec<RankTrial> {
    let factors = (1u32..).zip([0.985, 1.02, 0.996]);
    factors.map(|(trial, factor)| RankTrial { trial, rate: rate * factor, used: true }).collect()
}

fn ranking(title: String, workload: &str, measure: &str, unit: &str, rows: Vec<RankRow>) -> Ranking {
    // Methods that take turns have no counters of their own.
    let counters = if workload == "sync" { Vec::new() } else { counters(&rows) };
    let (volatile, flushed): (Vec<RankRow>, Vec<RankRow>) =
        rows.into_iter().partition(|row| row.durability.class == DurabilityClass::Volatile);
    let class = |class, mut rows: Vec<RankRow>| {
        rows.sort_by(|a, b| b.rate.value.total_cmp(&a.rate.value));
        for (i, row) in rows.iter_mut().enumerate() {
            row.rank = i as u32 + 1;
        }
        ClassRanking { class, decision: (rows.len() > 1).then(decision), rows }
    };
    Ranking {
        title,
        workload: workload.to_owned(),
        measure: measure.to_owned(),
        by: RankedBy::Rate,
        unit: unit.to_owned(),
        shared: BTreeMap::new(),
        counters,
        classes: vec![class(DurabilityClass::Flushed, flushed), class(DurabilityClass::Volatile, volatile)],
    }
}

fn rankings() -> Vec<Ranking> {
    let mut rankings = Vec::new();
    for (i, clients) in CLIENTS.iter().enumerate().rev() {
        let measured = STACKS.iter().filter(|stack| !(stack.name == "btrfs" && *clients == 1));
        let rows = measured.map(|stack| RankRow {
            latency_us_p99: None,
            rank: 0,
            case: case_id(stack.name, *clients),
            label: stack.name.to_owned(),
            rate: estimate(stack.tps[i], if stack.name == "btrfs" { 0.11 } else { 0.03 }),
            trials: trials(stack.tps[i]),
            comparison: comparison(stack, stack.tps[i], STACKS[0].tps[i], case_id("ext4", *clients)),
            durability: durability(stack.name),
            verdict: verdict(stack.name),
        });
        rankings.push(ranking(format!("tpcb, clients={clients}"), "tpcb", "transactions", "tps", rows.collect()));
    }
    for (method, factor) in SYNC_METHODS {
        let rows = STACKS.iter().map(|stack| RankRow {
            latency_us_p99: None,
            rank: 0,
            case: format!("{}-sync", stack.name),
            label: stack.name.to_owned(),
            rate: estimate(stack.sync_rate * factor, 0.02),
            trials: trials(stack.sync_rate * factor),
            comparison: comparison(stack, stack.sync_rate, STACKS[0].sync_rate * 1.04, "ext4-sync".to_owned()),
            durability: durability(stack.name),
            verdict: None,
        });
        rankings.push(ranking(format!("sync, {method}"), "sync", method, "ops/s", rows.collect()));
    }
    rankings
}

fn latency(tps: f64, clients: u32, stalls: bool) -> Latency {
    let median = f64::from(clients) / tps * 1e6;
    let at = |nines: f64| {
        (median * (0.55 + 0.45 * (1.0 + nines).powf(1.25)) * if stalls { 1.0 + nines * 1.6 } else { 1.0 }) as u64
    };
    let curve = (0..=60).map(|i| f64::from(i) / 12.0).map(|nines| (100.0 * (1.0 - 10f64.powf(-nines)), at(nines)));
    let mut curve: Vec<(f64, u64)> = curve.collect();
    curve.push((100.0, at(5.6)));
    let percentile = |(name, nines): (&str, f64)| Percentile {
        name: name.to_owned(),
        over_trials: Some(estimate(at(nines) as f64, 0.04 * nines)),
        unavailable: None,
        trials: (1..=TRIALS)
            .zip([0.97, 1.0, 1.03])
            .map(|(trial, part)| (trial, (at(nines) as f64 * part) as u64))
            .collect(),
        merged_us: Some(at(nines)),
        comparison: (clients == 16).then(|| PercentileRatio {
            baseline: case_id("ext4", 16),
            ratio: estimate(1.2, 0.04 * nines),
            outcome: PairOutcome::Differs,
        }),
    };
    let percentiles = [("p50", 0.301), ("p95", 1.301), ("p99", 2.0), ("p99.9", 3.0)];
    Latency { mean_us: median * 1.1, percentiles: percentiles.map(percentile).into(), max_us: at(5.6), curve }
}

fn measure(name: &str, unit: &str, rate: f64, clients: u32, stalls: bool) -> MeasureFinding {
    MeasureFinding {
        name: name.to_owned(),
        unit: unit.to_owned(),
        rate: Some(estimate(rate, 0.03)),
        unavailable: None,
        latency: Some(latency(rate, clients, stalls)),
        done: (rate * 180.0) as u64,
        failed: 0,
        skipped: 0,
        late: 0,
        unsent: 0,
        in_time: Some(estimate(1.0, 0.0)),
    }
}

fn strata(stack: &str) -> Strata {
    if stack == "tmpfs" {
        return Strata {
            sentence: "one commit = 3 530 B of WAL; no device below".to_owned(),
            operations: 266_400,
            wal_bytes: Some(3530.0),
            wal_records: Some(27.1),
            full_page_images: Some(0.31),
            wal_syncs: Some(0.41),
            writing: Some(1.0),
            devices: Vec::new(),
            at_stack_devices: None,
            write_amplification: None,
            cpu_us: None,
            image: None,
            flush_share: None,
        };
    }
    let (writes, bytes) = if stack == "btrfs" { (4.71, 22_118.0) } else { (1.02, 16_794.0) };
    let device = DeviceStrata {
        node: "loop".to_owned(),
        device: "loop".to_owned(),
        writes: Some(writes),
        bytes_per_write: Some(bytes),
        write_bytes: Some(writes * bytes),
        flushes: Some(0.98),
        reads: Some(0.003),
        busy: Some(0.87),
        io: DeviceIo {
            writes_per_s: Some(1224.0),
            write_mb_per_s: Some(20.1),
            write_ms_mean: Some(0.71),
            flushes_per_s: Some(1176.0),
            flush_ms_mean: Some(0.42),
            queue_depth_mean: Some(1.1),
            ..DeviceIo::default()
        },
    };
    Strata {
        sentence: format!("one commit = {writes} device writes of {:.1} KiB + 0.98 flushes", bytes / 1024.0),
        operations: 266_400,
        wal_bytes: Some(3712.4),
        wal_records: Some(27.3),
        full_page_images: Some(0.38),
        wal_syncs: Some(0.97),
        writing: Some(1.0),
        devices: vec![device.clone()],
        at_stack_devices: Some(device),
        write_amplification: Some(writes * bytes / 3712.4),
        cpu_us: Some(412.0),
        image: Some(ImageCost {
            sentence: Some("the file below the image added 0.1 writes and 1.2 KiB a commit".to_owned()),
            writes: estimate(0.1, 0.2),
            bytes: estimate(1229.0, 0.2),
        }),
        flush_share: Some(flush_share(stack)),
    }
}

fn flush_share(stack: &str) -> FlushShare {
    FlushShare {
        sentence: "212 commits/s by 1 client are 67 % of the 318 fdatasync/s that one writer gets".to_owned(),
        clients: 1,
        commits: estimate(212.0, 0.03),
        method: "fdatasync".to_owned(),
        syncs: estimate(318.0, 0.02),
        sync_case: format!("{stack}-sync"),
        share: estimate(0.667, 0.04),
    }
}

fn backend_time(stack: &str, clients: u32) -> BackendTime {
    let wait =
        |class: &str, event: &str, share: f64| WaitShare { class: class.to_owned(), event: event.to_owned(), share };
    let (share, waits) = match stack {
        "tmpfs" => (
            0.012,
            vec![
                wait("CPU", "CPU", 0.58),
                wait("Client", "ClientRead", 0.2),
                wait("Lock", "transactionid", 0.14),
                wait("LWLock", "WALInsert", 0.08),
            ],
        ),
        "btrfs" => (
            0.93,
            vec![
                wait("IO", "WALSync", 0.81),
                wait("LWLock", "WALWrite", 0.09),
                wait("Lock", "tuple", 0.05),
                wait("CPU", "CPU", 0.04),
                wait("IO", "DataFileExtend", 0.01),
            ],
        ),
        _ => (
            0.87,
            vec![
                wait("IO", "WALSync", 0.64),
                wait("LWLock", "WALWrite", 0.17),
                wait("CPU", "CPU", 0.09),
                wait("Lock", "transactionid", 0.05),
                wait("Client", "ClientRead", 0.03),
                wait("IO", "DataFileRead", 0.02),
            ],
        ),
    };
    BackendTime {
        sentence: format!("{:.0} % of backend time waits for storage", share * 100.0),
        storage: Some(estimate(share, 0.03)),
        without_client: false,
        storage_behind_locks: if stack == "tmpfs" { 0.0 } else { 0.04 },
        in_memory: (stack != "tmpfs").then(|| InMemory {
            case: case_id("tmpfs", clients),
            stack: "tmpfs".to_owned(),
            ratio: estimate(7.7, 0.04),
        }),
        waits,
        cpu_busy: Some(if stack == "tmpfs" { 0.93 } else { 0.31 }),
        fullest_cpu: Some(if stack == "tmpfs" { 0.98 } else { 0.52 }),
        cpu_pressure: Some(0.23),
        busiest_process: Some((
            if stack == "btrfs" { "kworker/u8:2+btrfs-endio-write" } else { "postgres" }.to_owned(),
            0.74,
        )),
    }
}

fn steadiness(stack: &str) -> Steadiness {
    let stalls = stack == "btrfs";
    Steadiness {
        seconds: 180,
        coefficient_of_variation: if stalls { 0.612 } else { 0.043 },
        seconds_at_zero: if stalls { 11 } else { 0 },
        seconds_under_tenth: if stalls { 14 } else { 0 },
        seconds_under_half: if stalls { 19 } else { 1 },
        longest_zero_s: if stalls { 4 } else { 0 },
        longest_idle_us: Some(if stalls { 4_212_000 } else { 0 }),
        longest_stall_us: Some(if stalls { 4_213_000 } else { 87_400 }),
        longest_stall_at: Some((2, 31)),
    }
}

fn cases() -> Vec<CaseFinding> {
    let mut cases = Vec::new();
    for stack in &STACKS {
        for (i, &clients) in CLIENTS.iter().enumerate() {
            let axes = [("stack", stack.name), ("workload", "tpcb"), ("clients", &clients.to_string())];
            let axes: BTreeMap<String, String> = axes.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
            let not_run = stack.name == "btrfs" && clients == 1;
            let busy = (stack.name == "tmpfs").then_some("CPUs were 97 % busy: stacks may differ by their CPU cost");
            cases.push(CaseFinding {
                id: case_id(stack.name, clients),
                axes,
                workload_kind: "pgbench".to_owned(),
                fixed_rate: None,
                latency_limit_us: None,
                log_sample: None,
                trials: if not_run { 0 } else { TRIALS },
                durability: durability(stack.name),
                verdict: verdict(stack.name),
                measures: if not_run {
                    vec![]
                } else {
                    vec![measure("transactions", "tps", stack.tps[i], clients, stack.name == "btrfs")]
                },
                capacity: None,
                stages: Vec::new(),
                snapshots: None,
                steadiness: (!not_run).then(|| steadiness(stack.name)),
                strata: (!not_run).then(|| strata(stack.name)),
                backend_time: (!not_run).then(|| backend_time(stack.name, clients)),
                fits: Some(Fits::Memory),
                database_bytes: Some(784 << 20),
                statements: if clients == 16 { statements() } else { vec![] },
                window: Some(window()),
                synced: None,
                cautions: busy.into_iter().map(str::to_owned).collect(),
                work: Vec::new(),
            });
        }
    }
    cases.extend(STACKS.iter().map(|stack| {
        CaseFinding {
            id: format!("{}-sync", stack.name),
            axes: [("stack", stack.name), ("workload", "sync")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            workload_kind: "sync".to_owned(),
            fixed_rate: None,
            latency_limit_us: None,
            log_sample: None,
            trials: TRIALS,
            durability: durability(stack.name),
            verdict: None,
            measures: SYNC_METHODS
                .map(|(name, factor)| measure(name, "ops/s", stack.sync_rate * factor, 1, stack.name == "btrfs"))
                .into(),
            capacity: None,
            stages: Vec::new(),
            snapshots: None,
            steadiness: None,
            strata: None,
            backend_time: None,
            fits: None,
            database_bytes: None,
            statements: vec![],
            window: None,
            synced: None,
            cautions: vec![],
            work: Vec::new(),
        }
    }));
    cases
}

fn statements() -> Vec<StatementFigures> {
    let texts = [
        ("UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;", 412.5),
        ("UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;", 633.0),
        ("END;", 8230.7),
    ];
    let figures = |(text, us): (&str, f64)| StatementFigures {
        script: "tpcb-like".to_owned(),
        statement: text.to_owned(),
        latency_us_mean: us,
        failures: Some(0),
    };
    texts.map(figures).into()
}

pub fn series(title: &str, unit: &str, group: &str, values: Vec<Option<f32>>) -> Series {
    Series {
        title: title.to_owned(),
        unit: unit.to_owned(),
        group: group.to_owned(),
        bucket_s: 1,
        min: values,
        max: Vec::new(),
    }
}

pub fn noisy(noise: &mut Noise, mean: f64, spread: f64) -> Vec<Option<f32>> {
    (0..SECONDS).map(|_| Some((mean * (1.0 + spread * (noise.next() - 0.5))) as f32)).collect()
}

fn trial(stack: &Stack, at: usize, number: u32) -> TrialFinding {
    let (tps, clients) = (stack.tps[at], CLIENTS[at]);
    let mut noise = Noise::new(u64::from(number) * 977 + tps as u64);
    let mut throughput = noisy(&mut noise, tps, 0.12);
    let mut slowest = noisy(&mut noise, 5_000.0 * f64::from(clients) / tps, 0.9);
    if stack.name == "btrfs" {
        for second in (29..33).chain([47]) {
            throughput[second] = Some(0.0);
            slowest[second] = (second == 31).then_some(4213.0);
        }
    }
    TrialFinding {
        case: case_id(stack.name, clients),
        trial: number,
        started: format!("2026-03-02T1{number}:14:33Z"),
        rate: Some(tps * (0.98 + 0.01 * f64::from(number))),
        throughput: Some(series("transactions", "tps", "client", throughput)),
        latency_ms_max: Some(series("slowest transaction", "ms", "client", slowest)),
        zero_seconds: None,
        telemetry: telemetry(&mut noise, tps),
        heatmap: Some(heatmap(number)),
        waits: Some(waits(number)),
        processes: vec![("postgres".to_owned(), 0.74), ("loop0".to_owned(), 0.21), ("pgbench".to_owned(), 0.12)],
        gaps: if number == 2 { vec![gap()] } else { vec![] },
        steps: steps(number),
        knobs: BTreeMap::from([("vm.dirty_bytes".to_owned(), "268435456".to_owned())]),
        stack: Some(stack_facts(stack.name, number)),
        server: Some(server_facts()),
        cache_state: Some("page cache cold, shared_buffers empty; data copied from a template".to_owned()),
        settle: Some(SettleRecord { waited_us: 1_500_000, quiet: number != 2, ..SettleRecord::default() }),
        window: Some(trial_window(number)),
        checks: vec![
            CrossCheck {
                what: "transactions".to_owned(),
                tool: (tps * 60.0).round(),
                own: (tps * 60.0).round(),
                agrees: true,
                tolerance: 0.0,
            },
            CrossCheck { what: "latency_ms_mean".to_owned(), tool: 10.812, own: 10.807, agrees: true, tolerance: 0.01 },
        ],
        notes: vec![],
    }
}

fn gap() -> Gap {
    Gap {
        source: "postgres".to_owned(),
        second: Some(41),
        rows: 3,
        reason: "the statistics query took longer than its second".to_owned(),
    }
}

fn steps(number: u32) -> Vec<StepTime> {
    let times = [
        (Step::Check, 12_000),
        (Step::Build, 1_840_000),
        (Step::Load, 9_300_000),
        (Step::WarmUp, 10_000_000),
        (Step::Measure, 60_000_000),
        (Step::TearDown, 2_100_000),
        (Step::Store, 85_000),
    ];
    times.map(|(step, us)| StepTime { step, wall_us: us + u64::from(number) * 1000 }).into()
}

/// The whole sample.
pub fn findings() -> Findings {
    let mut trials = Vec::new();
    for stack in &STACKS {
        let was_run = |clients: u32| stack.name != "btrfs" || clients != 1;
        for (at, _) in CLIENTS.iter().enumerate().filter(|(_, clients)| was_run(**clients)) {
            trials.extend((1..=TRIALS).map(|number| trial(stack, at, number)));
        }
    }
    let ran = trials.iter().map(|trial| TrialKey { case: trial.case.clone(), trial: trial.trial }).collect();
    Findings {
        format: FORMAT,
        run: RunSummary {
            id: "a1b2c3d4".to_owned(),
            name: "which-filesystem".to_owned(),
            started: "2026-03-02T09:14:33.512Z".to_owned(),
            measured_by: "0.1.0".to_owned(),
            analysed_by: "0.1.0".to_owned(),
            seed: 42,
            blocks: TRIALS,
            blocks_held: None,
            trials_planned: 48,
            trials_measured: 45,
            trials_disturbed: 0,
            disturbed_by_block: BTreeMap::new(),
            disks: Vec::new(),
            trials_not_run: 3,
            trials_damaged: 0,
            measured_share: Some(0.713),
            plan: include_str!("plan.toml").to_owned(),
            baseline: [("stack".to_owned(), "ext4".to_owned())].into(),
            merge: None,
        },
        headline: crate::report::facts::answer().text(),
        answer: crate::report::facts::answer(),
        machines: vec![MachineFinding { host: host(), trials: ran }],
        effects: effects(),
        rankings: rankings(),
        turns: None,
        ageing: Vec::new(),
        drives: crate::report::facts::drives(),
        power_cuts: power_cuts(),
        profiled: crate::report::facts::profiled(),
        cases: cases(),
        trials,
        set_aside: Vec::new(),
        full: crate::report::facts::full(case_id("btrfs", 1)),
        not_run: vec![NotRun {
            case: case_id("btrfs", 1),
            trials: vec![1, 2, 3],
            step: Some("load".to_owned()),
            reason: "copying the data failed: no space left on device\nbtrfs: 512 MiB of metadata are full".to_owned(),
            hint: Some("give the loop image of stack `btrfs` 8GiB or more".to_owned()),
        }],
        cautions: cautions(),
        by_hand: by_hand(),
    }
}

fn by_hand() -> Vec<StackByHand> {
    let one = |stack: &str, script: Result<&str, &str>| StackByHand {
        stack: stack.to_owned(),
        case: case_id(stack, 1),
        script: script.map(str::to_owned).map_err(str::to_owned),
    };
    let script = "#!/bin/sh\nset -eu\nDEVICE=\nmkfs.ext4 -m 1 \"$DEVICE\"  # <of the run>\n";
    vec![one("ext4", Ok(script)), one("btrfs", Err("no trial of it was measured: no space left on device"))]
}

fn cautions() -> Vec<Caution> {
    let whole = |text: &str| Caution { text: text.to_owned(), cases: vec![], scope: None };
    let tmpfs = CLIENTS.map(|clients| case_id("tmpfs", clients)).into();
    vec![
        Caution { cases: tmpfs, ..whole("CPUs were 93 to 97 % busy: stacks may differ by their CPU cost") },
        Caution {
            cases: STACKS.iter().map(|stack| case_id(stack.name, 16)).collect(),
            scope: Some("all cases with a server".to_owned()),
            ..whole("data (784 to 786 MiB) fit into memory: reads came from cache")
        },
        whole("4 CPUs were shared with the load generator: above 16 clients pgbench itself may be the limit"),
    ]
}

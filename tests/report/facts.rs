//! What was read back of the made-up stacks, servers and machine.

use pgstrata::analyse::findings::*;
use pgstrata::record::built::{BaseFacts, NodeFacts};
use pgstrata::record::facts::MountFacts;
use pgstrata::record::promise;
use pgstrata::record::stack::BaseName;
use std::collections::BTreeMap;

pub fn answer() -> RunAnswer {
    RunAnswer {
        question: "On this machine (tpcb, clients=16)".to_owned(),
        answer: "xfs is the fastest stack whose commits wait for a flush: 1.12 times ext4 (1.06 to 1.17).".to_owned(),
        notes: vec!["btrfs stood still for up to 4.2 s.".to_owned()],
    }
}

/// A drive that got steady in its sixth round.
pub fn drives() -> Vec<DriveFinding> {
    let round = |(number, rate): (u32, f64)| DriveRoundFinding {
        until_s: f64::from(number) * 60.0,
        rate,
        range: (number >= 5).then_some(0.05),
        excursion: (number >= 5).then_some(-0.02),
    };
    vec![DriveFinding {
        drive: "/dev/disk/by-id/nvme-X, serial S5GX".to_owned(),
        model: Some("SSD X 960 GB".to_owned()),
        bytes: 960_197_124_096,
        purge: "discard".to_owned(),
        fill_bytes: 1_920_394_248_192,
        fill_bytes_per_s: 1.9e9,
        block_bytes: 4096,
        depth: 32,
        rounds: (1..).zip([90e3, 52e3, 42e3, 41e3, 41e3, 40e3]).map(round).collect(),
        steady_after: Some(6),
        sentence: "steady after round 6: 41 200 writes/s, range 5 %, slope -2 %".to_owned(),
    }]
}

pub fn stack_facts(name: &str, number: u32) -> StackFacts {
    let device = DeviceFacts {
        name: format!("loop{number}"),
        size_bytes: Some(6 << 30),
        write_cache: Some(WriteCache::WriteBack),
        fua: Some(false),
        logical_block_bytes: Some(512),
        scheduler: Some("none".to_owned()),
        direct_io: Some(true),
        stands_on_nothing: Some(true),
        counts_flushes: Some(true),
        ..DeviceFacts::default()
    };
    let words = |text: &str| text.split(',').map(str::to_owned).collect();
    let mount = MountFacts {
        target: format!("/run/pgstrata/{number}"),
        fstype: name.to_owned(),
        source: format!("/dev/loop{number}"),
        options: words("rw,noatime"),
        super_options: words(if name == "xfs" { "rw,attr2,inode64,logbufs=8,logbsize=32k,noquota" } else { "rw" }),
        device: format!("7:{number}"),
        journal: None,
        zfs: std::collections::BTreeMap::new(),
    };
    let input = Input { from: BaseName("loop".to_owned()), role: Role::Data, group: None };
    let mut nodes = vec![NodeFacts {
        name: name.to_owned(),
        layer: Some(name.to_owned()),
        details: [("block size".to_owned(), "4096".to_owned())].into(),
        inputs: vec![input],
        promises: promise::of_mount(&mount),
        bases: vec![BaseFacts { mount: Some(mount), ..BaseFacts::default() }],
    }];
    if name == "tmpfs" {
        nodes[0].inputs.clear();
    } else {
        nodes.push(NodeFacts {
            name: "loop".to_owned(),
            layer: Some("loop".to_owned()),
            promises: promise::of_device(&device),
            bases: vec![BaseFacts { device: Some(device), ..BaseFacts::default() }],
            ..NodeFacts::default()
        });
    }
    StackFacts {
        name: name.to_owned(),
        nodes,
        data: Some(BaseName(name.to_owned())),
        wal: None,
        tablespaces: BTreeMap::new(),
        free_bytes: Some(5 << 30),
        trials_before: 0,
        age_s: Some(11.0),
    }
}

pub fn server_facts() -> ServerFacts {
    let key = [
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("wal_sync_method", "fdatasync"),
        ("full_page_writes", "on"),
        ("shared_buffers", "512MB"),
        ("wal_level", "replica"),
        ("data_checksums", "off"),
    ];
    ServerFacts {
        version: "15.18 (Debian 15.18-0+deb12u1)".to_owned(),
        version_num: 150_018,
        bin: "/usr/lib/postgresql/15/bin".to_owned(),
        settings: [("max_connections".to_owned(), "40".to_owned())].into(),
        configure: None,
        key_settings: key.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        shared_buffers_bytes: 512 << 20,
        found_after: Vec::new(),
        unlogged: Vec::new(),
    }
}

pub fn host() -> HostFacts {
    HostFacts {
        hostname: "db-bench-1".to_owned(),
        kernel: "6.18.2".to_owned(),
        distribution: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
        cpu_model: Some("AMD EPYC 9554P".to_owned()),
        cpus: 8,
        memory_bytes: 32 << 30,
        swap_used_bytes: Some(0),
        clocksource: Some("tsc".to_owned()),
        governor: None,
        machine: Some("KVM".to_owned()),
        is_virtual: Some(true),
    }
}

/// WAL per commit of each case against the first, decided, and device writes, undecided.
pub fn counters(rows: &[RankRow]) -> Vec<CounterComparison> {
    let reference = rows.first().map(|row| row.case.clone()).unwrap_or_default();
    let compared = |counter, each: f64, error: f64, outcome: PairOutcome| {
        let row = |(i, row): (usize, &RankRow)| {
            let factor = 1.0 + 0.08 * i as f64;
            let around = |value: f64| Estimate::of(value, Some((value / error, value * error)), 3);
            CounterRow {
                case: row.case.clone(),
                label: row.label.clone(),
                figure: around(each * factor),
                ratio: (i > 0).then(|| around(factor)),
                outcome: (i > 0).then_some(outcome),
            }
        };
        CounterComparison { counter, reference: reference.clone(), rows: rows.iter().enumerate().map(row).collect() }
    };
    vec![
        compared(CostCounter::WalBytes, 5300.0, 1.02, PairOutcome::Differs),
        compared(CostCounter::DeviceWrites, 1.4, 1.9, PairOutcome::Undecided),
    ]
}

pub fn profiled() -> Vec<Profiled> {
    vec![Profiled {
        name: "ext4".to_owned(),
        rate: 299.0,
        p99_us: Some(Estimate::of(4120.0, Some((3870.0, 4390.0)), 3)),
        p99_unavailable: None,
        limit_us: Some(50_000),
        holds: Some(2.0),
        fails: Some(3.0),
        wal_bytes_per_day: Some(1.99e11),
        device_bytes_per_day: Some(4.41e11),
        back_s: None,
    }]
}

/// A trial whose stack filled up.
pub fn full(case: String) -> Vec<FullFinding> {
    vec![FullFinding {
        case,
        trial: 4,
        step: "measuring".to_owned(),
        after_s: 31.42,
        reason: "PANIC:  could not write to file \"pg_wal/xlogtemp.31\": No space left on device".to_owned(),
        used: Some(0.97),
        server_log: "    2026-03-02 09:15:00.001 GMT [31] PANIC:  could not write\n    terminated".to_owned(),
        is_measured: true,
    }]
}

//! Tests of the sources that need a server, on a real one under pgbench.

use super::recorder::{Began, SampledSecond, TelemetryTicker};
use super::throwaway_server::{ThrowawayServer, installations};
use super::{ALL, SampledObjects, Sampler, postgres, waits};
use crate::host::Host;
use crate::host::time::sleep;
use crate::record::seconds::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn target(server: &ThrowawayServer) -> SampledObjects {
    SampledObjects { server: Some(server.address()), ..SampledObjects::default() }
}

fn counted(value: Option<&Value>) -> u64 {
    match value {
        Some(Value::Count(number)) => *number,
        other => panic!("{other:?} is no count"),
    }
}

#[test]
fn server_counters_follow_its_work_second_by_second() {
    for bin in installations() {
        let server = ThrowawayServer::start(&bin, "-c track_wal_io_timing=on");
        server.pgbench(&["-i", "-q", "-s", "1"]);
        let stop = AtomicBool::new(false);
        let mut ticks: Vec<SampledSecond> = Vec::new();
        let recording = std::thread::scope(|scope| {
            let load = scope.spawn(|| server.pgbench(&["-c", "2", "-T", "3"]));
            let began = Began::now();
            let recording = TelemetryTicker::open(ALL, &Host::this(), &target(&server), Vec::new()).record(
                began,
                &|| Some(began.wall_us),
                &stop,
                &mut |tick| {
                    stop.store(tick.second >= 3, Ordering::SeqCst);
                    ticks.push(tick);
                },
            );
            load.join().unwrap();
            recording
        });
        assert!(!recording.gaps.iter().any(|gap| gap.source == "postgres"), "{:?}", recording.gaps);
        let (first, last) = (ticks.first().unwrap(), ticks.last().unwrap());
        let at = |name: &str| recording.columns.iter().position(|column| column.name == name).unwrap();
        for name in ["pg_wal_lsn_bytes", "pg_wal_bytes", "pg_wal_records", "pg_wal_syncs", "pg_commits", "pg_blks_hit"]
        {
            let index = at(name);
            let (before, after) = (counted(value_at(first, index)), counted(value_at(last, index)));
            assert!(after > before, "{}: {name} {before} then {after}", bin.display());
        }
        println!("{}: {} us of CPU for {} rows", bin.display(), recording.cpu_us, ticks.len());
    }
}

fn value_at(tick: &SampledSecond, index: usize) -> Option<&Value> {
    tick.row[index].as_ref()
}

#[test]
fn a_lost_connection_costs_one_row_and_is_made_anew() {
    for bin in installations() {
        let server = ThrowawayServer::start(&bin, "");
        let mut reading = postgres::Postgres.open(&Host::this(), &target(&server)).unwrap();
        reading().unwrap();
        let ended = server
            .psql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'pgstrata'");
        assert_eq!(ended.trim(), "1");
        sleep(Duration::from_millis(200));
        assert!(reading().is_err());
        assert!(counted(reading().unwrap()[0].as_ref()) > 0);
    }
}

#[test]
fn client_waits_are_sampled_without_our_own_connections() {
    for bin in installations() {
        let server = ThrowawayServer::start(&bin, "");
        server.pgbench(&["-i", "-q", "-s", "1"]);
        let address = server.address();
        let stop = AtomicBool::new(false);
        let waits = std::thread::scope(|scope| {
            let sampling = scope.spawn(|| waits::sample(&address, &stop));
            server.pgbench(&["-c", "8", "-T", "3"]);
            stop.store(true, Ordering::SeqCst);
            sampling.join().unwrap().unwrap()
        });
        let figures = waits.figures;
        println!("{}: {figures:?}, {} us of CPU", bin.display(), waits.cpu_us);
        assert!(figures.samples >= 5 && figures.backends <= 9 * figures.samples, "{figures:?}");
        assert!(figures.backends > figures.samples, "{figures:?}");
        assert_eq!(figures.backends, figures.waits.iter().map(|wait| wait.count).sum::<u64>());
        assert!(figures.waits.len() > 1, "{figures:?}");
        assert_eq!(figures.samples, figures.seconds.iter().map(|second| u64::from(second.samples)).sum::<u64>());
        // All clients update the one row of pgbench_branches, so most wait for whoever holds it.
        let known = figures.lock_holders.iter().filter(|holder| holder.class != "Unknown" && holder.class != "Lock");
        assert!(known.map(|holder| holder.count).sum::<u64>() > 0, "{figures:?}");
    }
}

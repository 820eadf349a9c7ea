//! Where the clients' backends spent their time: on storage, including locks whose holder waits for storage, on the
//! CPU, on locks, waiting for the client.
//!
//! A share of time does not tell what limits a case, nor how much faster storage would gain: storage costs CPU time as
//! well. The gain of a stack in memory is measured if the plan has one. The words "bound by" are avoided on purpose
//! (`docs/adr/0021-percentiles-and-storage-share.md`).

use crate::analyse::case::cpu_use::{CpuSums, CpuUse};
use crate::analyse::findings::{BackendTime, Estimate, WaitShare};
use crate::record::trial::{WaitCount, WaitFigures};
use crate::stats::autocorrelation;
use crate::stats::interval::TrialMean;
use crate::stats::moments;
use std::collections::BTreeMap;

/// Backends without a wait event in excess of what the CPUs can run are reported from this share of backend time on.
const UNREPORTED_WORTH_SAYING: f64 = 0.01;
/// Time behind locks is reported separately from this share on.
const BEHIND_LOCKS_WORTH_SAYING: f64 = 0.01;
/// Lightweight locks behind which a backend waits for another one's I/O: a WAL flush, or a page being read. The names
/// changed in PostgreSQL 13 and 14.
const STORAGE_LOCKS: [&str; 6] = ["WALWrite", "WALWriteLock", "BufferIO", "BufferIo", "buffer_io", "WALSync"];

/// Sampled class of a backend without a wait event.
const ON_CPU: &str = "CPU";
/// Class of such backends in excess of what the CPUs can run.
const UNREPORTED: &str = "Unreported";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    Storage,
    /// Waiting for a lock whose holder the server reports.
    HeldLock,
    Client,
    /// Computing, or waiting for a lightweight lock or another process.
    Else,
}

#[derive(Debug, Clone, Default)]
pub struct BackendSums {
    waits: BTreeMap<(String, String), u64>,
    backends: u64,
    /// Backends without a wait event in excess of what the CPUs can run, summed over samples, and all backends, in
    /// trials with known CPU time.
    beyond_cpus: f64,
    beside_cpus: u64,
    /// Share that waited for storage in each trial, including locks.
    storage: Vec<TrialMean>,
    /// Portion of that share that was lock waits.
    behind_locks: Vec<f64>,
}

impl BackendSums {
    /// Adds a trial, with the mean number of CPUs that were busy or taken by the hypervisor. At a fixed rate the
    /// clients' pauses are not counted.
    pub fn add(&mut self, waits: &WaitFigures, busy_cpus: Option<f64>, at_fixed_rate: bool) {
        self.backends += waits.backends;
        if let Some(busy) = busy_cpus {
            let running: u64 = waits.waits.iter().filter(|wait| wait.class == ON_CPU).map(|wait| wait.count).sum();
            self.beyond_cpus += (running as f64 - busy * waits.samples as f64).max(0.0);
            self.beside_cpus += waits.backends;
        }
        for wait in &waits.waits {
            *self.waits.entry((wait.class.clone(), wait.event.clone())).or_default() += wait.count;
        }
        let held_by_storage = held_by_storage(&waits.lock_holders);
        let all = time(waits.waits.iter().map(|wait| (wait, wait.count)), held_by_storage, at_fixed_rate);
        let Some(mean) = all.storage_share() else { return };
        let seconds = waits.seconds.iter().filter_map(|second| {
            let counts = second.counts.iter();
            let counts = counts.filter_map(|(at, count)| Some((waits.waits.get(*at as usize)?, u64::from(*count))));
            time(counts, held_by_storage, at_fixed_rate).storage_share()
        });
        let within = autocorrelation::within(&seconds.collect::<Vec<_>>());
        self.storage.push(TrialMean { mean, within });
        self.behind_locks.push(all.behind_locks / all.all);
    }

    /// Result; `None` if no waits were sampled, unless the CPUs were full.
    pub fn finding(&self, cpu: &CpuSums, at_fixed_rate: bool) -> Option<BackendTime> {
        let counted: u64 = self.waits.values().sum();
        let all = self.backends.max(counted) as f64;
        let seen = self.waits.iter().filter(|(_, count)| **count > 0);
        let shares = seen.map(|((class, event), count)| (class.clone(), event.clone(), *count as f64 / all));
        let mut waits: Vec<WaitShare> = shares.map(|(class, event, share)| WaitShare { class, event, share }).collect();
        let unreported = self.unreported();
        if let Some((unreported, running)) = unreported.zip(waits.iter_mut().find(|wait| wait.class == ON_CPU)) {
            running.share -= unreported;
            let (class, event) = (UNREPORTED.to_owned(), "waiting, not reported".to_owned());
            waits.push(WaitShare { class, event, share: unreported });
        }
        waits.sort_by(|a, b| b.share.total_cmp(&a.share));
        let storage = Estimate::of_means(&self.storage).map(|share| share.map(|share| share.clamp(0.0, 1.0)));
        let full = cpu.cpu().is_some_and(CpuUse::is_full);
        if storage.is_none() && !full {
            return None;
        }
        let mut found = BackendTime {
            sentence: String::new(),
            storage,
            without_client: at_fixed_rate,
            storage_behind_locks: moments::mean(&self.behind_locks).unwrap_or(0.0),
            in_memory: None,
            waits,
            cpu_busy: cpu.cpu().map(CpuUse::busy_of_own),
            fullest_cpu: cpu.fullest(),
            cpu_pressure: cpu.pressure(),
            busiest_process: cpu.busiest(),
        };
        let clauses = storage_clause(&found).into_iter().chain(cpu.clauses());
        found.sentence = clauses.collect::<Vec<_>>().join("; ");
        Some(found)
    }

    /// Lower bound of the share of backend time without a wait event in excess of what the CPUs can run: these backends
    /// waited for a CPU, or for something without an event. CPU time of clients and others is attributed to them.
    fn unreported(&self) -> Option<f64> {
        let share = self.beyond_cpus / self.beside_cpus as f64;
        Some(share).filter(|share| share.is_finite() && *share >= UNREPORTED_WORTH_SAYING)
    }
}

/// Shares of some samples.
#[derive(Debug, Clone, Copy, Default)]
struct Time {
    all: f64,
    storage: f64,
    behind_locks: f64,
}

impl Time {
    fn storage_share(&self) -> Option<f64> {
        (self.all > 0.0).then(|| (self.storage + self.behind_locks) / self.all)
    }
}

/// Interprets samples, of whose lock waits this share has a holder that waits for storage.
fn time<'w>(counts: impl Iterator<Item = (&'w WaitCount, u64)>, held_by_storage: f64, at_fixed_rate: bool) -> Time {
    let mut time = Time::default();
    for (wait, count) in counts {
        let count = count as f64;
        match doing(&wait.class, &wait.event) {
            Activity::Client if at_fixed_rate => continue,
            Activity::Storage => time.storage += count,
            Activity::HeldLock => time.behind_locks += count * held_by_storage,
            Activity::Client | Activity::Else => {}
        }
        time.all += count;
    }
    time
}

/// Share of the observed lock holders that waited for storage; holders not found are left out.
fn held_by_storage(holders: &[WaitCount]) -> f64 {
    let known = holders.iter().filter(|holder| holder.class != "Unknown");
    let all: u64 = known.clone().map(|holder| holder.count).sum();
    let waiting = known.filter(|holder| doing(&holder.class, &holder.event) == Activity::Storage);
    waiting.map(|holder| holder.count).sum::<u64>() as f64 / all.max(1) as f64
}

fn doing(class: &str, event: &str) -> Activity {
    match class {
        "IO" => Activity::Storage,
        "LWLock" | "IPC" if STORAGE_LOCKS.contains(&event) => Activity::Storage,
        "Lock" => Activity::HeldLock,
        "Client" => Activity::Client,
        _ => Activity::Else,
    }
}

/// "39 % of backend time waits for storage (36 to 42)".
pub fn storage_clause(found: &BackendTime) -> Option<String> {
    let storage = found.storage?;
    let of = if found.without_client { "backend time without client pauses" } else { "backend time" };
    let ends = storage.low.zip(storage.high).filter(|_| !storage.is_beyond_use());
    let ends = ends.map(|(low, high)| format!(" ({} to {})", percent(low), percent(high)));
    let behind = Some(found.storage_behind_locks).filter(|share| *share >= BEHIND_LOCKS_WORTH_SAYING);
    let share = percent(storage.value);
    let behind = behind.map(|behind| format!(", {} of these {share} behind locks", percent(behind)));
    let (ends, behind) = (ends.unwrap_or_default(), behind.unwrap_or_default());
    Some(format!("{share} % of {of} waits for storage{ends}{behind}"))
}

/// A share of 0 to 1 in percent, with one decimal below 10.
fn percent(share: f64) -> String {
    let value = share * 100.0;
    let decimals = usize::from(value < 9.95);
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::trial::WaitSecond;
    use crate::stats::simulation::{Noise, autoregressive};

    fn waits(counts: &[(&str, &str, u64)]) -> WaitFigures {
        WaitFigures {
            backends: counts.iter().map(|(_, _, count)| count).sum(),
            waits: wait_counts(counts),
            ..WaitFigures::default()
        }
    }

    fn wait_counts(counts: &[(&str, &str, u64)]) -> Vec<WaitCount> {
        let of = |(class, event, count): &(&str, &str, u64)| WaitCount {
            class: (*class).to_owned(),
            event: (*event).to_owned(),
            count: *count,
        };
        counts.iter().map(of).collect()
    }

    fn found(trials: &[WaitFigures], at_fixed_rate: bool) -> BackendTime {
        let mut sums = BackendSums::default();
        trials.iter().for_each(|trial| sums.add(trial, None, at_fixed_rate));
        sums.finding(&CpuSums::default(), at_fixed_rate).unwrap()
    }

    #[test]
    fn waiting_for_another_backends_wal_flush_is_waiting_for_storage() {
        let trial = waits(&[("IO", "WALSync", 30), ("LWLock", "WALWrite", 45), ("CPU", "CPU", 25)]);
        let found = found(&[trial], false);
        assert_eq!(found.sentence, "75 % of backend time waits for storage");
        assert_eq!(found.waits[0].event, "WALWrite");
    }

    #[test]
    fn backends_without_wait_events_beyond_busy_cpus_are_unreported_waits() {
        let share = |busy_cpus: Option<f64>| {
            let mut sums = BackendSums::default();
            let trial = WaitFigures { samples: 10, ..waits(&[("IO", "WALSync", 20), ("CPU", "CPU", 60)]) };
            sums.add(&trial, busy_cpus, false);
            sums.unreported()
        };
        // Six backends without an event on three CPUs.
        assert!((share(Some(3.0)).unwrap() - 3.0 / 8.0).abs() < 1e-9);
        assert_eq!((share(Some(6.0)), share(None)), (None, None));
    }

    #[test]
    fn what_the_cpus_cannot_have_run_is_a_wait_of_its_own() {
        let mut sums = BackendSums::default();
        let trial = WaitFigures { samples: 10, ..waits(&[("IO", "WALSync", 20), ("CPU", "CPU", 60)]) };
        sums.add(&trial, Some(3.0), false);
        let found = sums.finding(&CpuSums::default(), false).unwrap();
        let shares = found.waits.iter().map(|wait| (wait.class.as_str(), wait.event.as_str(), wait.share));
        let unreported = ("Unreported", "waiting, not reported", 0.375);
        assert_eq!(shares.collect::<Vec<_>>(), [("CPU", "CPU", 0.375), unreported, ("IO", "WALSync", 0.25)]);
        assert_eq!(found.storage.unwrap().value, 0.25, "nothing of it counts as storage");
    }

    #[test]
    fn lock_waits_count_as_what_the_lock_holder_waits_for() {
        let mut trial = waits(&[("Lock", "transactionid", 20), ("IO", "WALSync", 40), ("CPU", "CPU", 40)]);
        assert_eq!(found(&[trial.clone()], false).storage.unwrap().value, 0.4, "nobody asked who holds the locks");
        trial.lock_holders = wait_counts(&[("IO", "WALSync", 6), ("CPU", "CPU", 2), ("Unknown", "Unknown", 99)]);
        let found = found(&[trial], false);
        assert!((found.storage.unwrap().value - 0.55).abs() < 1e-9 && (found.storage_behind_locks - 0.15).abs() < 1e-9);
        assert_eq!(found.sentence, "55 % of backend time waits for storage, 15 of these 55 behind locks");
    }

    #[test]
    fn at_a_fixed_rate_the_clients_pauses_are_no_time() {
        let trial = waits(&[("Client", "ClientRead", 900), ("IO", "WALSync", 40), ("CPU", "CPU", 60)]);
        let found = found(&[trial], true);
        assert_eq!(found.sentence, "40 % of backend time without client pauses waits for storage");
    }

    #[test]
    fn trials_and_the_order_of_their_seconds_give_the_interval() {
        let with_seconds = |storage: &[u32]| {
            let second = |storage: &u32| WaitSecond { samples: 10, counts: vec![(0, *storage), (1, 100 - *storage)] };
            let all: u64 = storage.iter().map(|count| u64::from(*count)).sum();
            let mut trial = waits(&[("IO", "WALSync", all), ("CPU", "CPU", 100 * storage.len() as u64 - all)]);
            trial.seconds = storage.iter().map(second).collect();
            trial
        };
        let mut noise = Noise::seeded(7);
        let mut drawn = |correlation: f64| -> Vec<u32> {
            autoregressive(&mut noise, 40.0, 8.0, correlation, 60)
                .iter()
                .map(|value| value.clamp(0.0, 100.0) as u32)
                .collect()
        };
        let width = |trials: &[WaitFigures]| {
            let storage = found(trials, false).storage.unwrap();
            storage.high.unwrap() - storage.low.unwrap()
        };
        let (loose, tied) = (drawn(0.0), drawn(0.9));
        let thrice = |seconds: &[u32]| [0; 3].map(|_| with_seconds(seconds));
        assert!(width(&thrice(&tied)) > 1.5 * width(&thrice(&loose)), "neighbours say the same");
        let trials = [0.38, 0.39, 0.40].map(|share| with_seconds(&[(share * 100.0) as u32; 20]));
        let sentence = found(&trials, false).sentence;
        assert_eq!(sentence, "39 % of backend time waits for storage (37 to 42)");
        assert_eq!(found(&[waits(&[("IO", "WALSync", 1)])], false).storage.unwrap().low, None);
    }

    #[test]
    fn storage_that_hardly_shows_is_a_number_and_no_judgment() {
        let trial = waits(&[("Client", "ClientRead", 600), ("IO", "WALSync", 30), ("CPU", "CPU", 370)]);
        assert_eq!(found(&[trial], false).sentence, "3.0 % of backend time waits for storage");
    }

    #[test]
    fn without_samples_only_full_cpus_give_a_finding() {
        assert_eq!(BackendSums::default().finding(&CpuSums::default(), false), None);
    }
}

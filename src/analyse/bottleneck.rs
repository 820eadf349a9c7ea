//! What bound a case: the device, the CPU, a lock, or the client.

use super::counters::span_s;
use super::findings::{Bottleneck, BottleneckKind, WaitShare};
use super::input::{CountSeries, Seconds};
use crate::record::columns::{self, ColumnDef};
use crate::record::trial::WaitFigures;
use std::collections::{BTreeMap, HashMap};

/// CPUs that had less of their time left than this leaves are what binds, whatever the backends say they wait for: a client or a writer that gets no CPU
/// looks like a wait for something else.
const CPU_SATURATED: f64 = 0.9;
/// Share of the CPUs' time given to other guests of the hypervisor, or taken by other programs, from which that is said.
pub const LOSS_WORTH_SAYING: f64 = 0.02;
/// A kind of wait binds from this share of the backends' time on; below, none stands out.
const STANDS_OUT: f64 = 0.4;
/// A single process or thread that used this much of one CPU is named: it cannot go faster.
const ONE_CPU_FULL: f64 = 0.9;
/// Waits that are stored.
const WAITS_SHOWN: usize = 12;
/// Processes that are stored.
const PROCESSES_SHOWN: usize = 8;
/// Shares below this are left out of the list of processes.
const LEAST_PROCESS_SHARE: f64 = 0.005;
/// Lightweight locks behind which a backend waits for another one's I/O: the flush of the WAL, a page being read. The
/// names changed with PostgreSQL 13 and 14.
const DEVICE_LOCKS: [&str; 6] = ["WALWrite", "WALWriteLock", "BufferIO", "BufferIo", "buffer_io", "WALSync"];

/// Sums over the trials of one case.
#[derive(Debug, Clone, Default)]
pub struct MachineSums {
    /// Time of all CPUs in each state, nanoseconds.
    cpu_ns: [f64; columns::CPU_TIMES.len()],
    waits: BTreeMap<(String, String), u64>,
    backends: u64,
    processes: BTreeMap<String, f64>,
    /// CPU time of all programs that are none of the run, nanoseconds, by the name of the busiest of them in each second.
    others_ns: BTreeMap<String, f64>,
    trials: u32,
}

impl MachineSums {
    /// Adds a trial with its busiest processes.
    pub fn add(&mut self, seconds: &Seconds, waits: Option<&WaitFigures>, processes: &[(String, f64)]) {
        self.trials += 1;
        for (sum, state) in self.cpu_ns.iter_mut().zip(&columns::CPU_TIMES) {
            *sum += seconds.counts(state).and_then(grown).unwrap_or(0) as f64;
        }
        self.add_others(seconds);
        for (name, share) in processes {
            *self.processes.entry(name.clone()).or_default() += share;
        }
        if let Some(waits) = waits {
            self.backends += waits.backends;
            for wait in &waits.waits {
                *self.waits.entry((wait.class.clone(), wait.event.clone())).or_default() += wait.count;
            }
        }
    }

    fn add_others(&mut self, seconds: &Seconds) {
        let columns = (seconds.counts(&columns::OTHERS_CPU_NS), seconds.texts(&columns::OTHERS_NAME));
        let (Some(used), Some(names)) = columns else { return };
        let mut before = None;
        for row in 0..seconds.rows() {
            let Some(now) = used.at(row) else { continue };
            if let (Some(before), Some(name)) = (before, names.at(row)) {
                *self.others_ns.entry(name.to_owned()).or_default() += now.saturating_sub(before) as f64;
            }
            before = Some(now);
        }
    }

    /// How the CPUs spent their time; `None` where it was not counted. Waiting for I/O is idling: the CPU was free for
    /// whoever needed it. Time that the hypervisor took is nobody's work here, and not available either.
    #[must_use]
    pub fn cpu(&self) -> Option<CpuUse> {
        let all: f64 = self.cpu_ns.iter().sum();
        let of = |wanted: &[ColumnDef]| {
            let states = columns::CPU_TIMES.iter().zip(self.cpu_ns);
            states.filter(|(state, _)| wanted.contains(state)).map(|(_, ns)| ns).sum::<f64>() / all
        };
        let stolen = of(&[columns::CPU_STEAL_NS]);
        let busy = 1.0 - of(&[columns::CPU_IDLE_NS, columns::CPU_IOWAIT_NS]) - stolen;
        let others = self.others_ns.values().sum::<f64>() / all;
        (all > 0.0).then_some(CpuUse { busy: busy.max(0.0), stolen, others })
    }

    /// The program that was the busiest of the others while they took most.
    #[must_use]
    pub fn other(&self) -> Option<&str> {
        self.others_ns.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(name, _)| name.as_str())
    }

    fn busiest(&self) -> Option<(String, f64)> {
        let most = self.processes.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        Some((most.0.clone(), most.1 / f64::from(self.trials.max(1))))
    }

    /// The finding; `None` where neither waits nor CPU were recorded, and without a server unless the CPU was full.
    #[must_use]
    pub fn finding(&self, at_fixed_rate: bool) -> Option<Bottleneck> {
        let cpu = self.cpu();
        let counted: u64 = self.waits.values().sum();
        let all = self.backends.max(counted) as f64;
        let mut waits: Vec<WaitShare> = self
            .waits
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|((class, event), count)| WaitShare {
                class: class.clone(),
                event: event.clone(),
                share: *count as f64 / all,
            })
            .collect();
        waits.sort_by(|a, b| b.share.total_cmp(&a.share));
        let saturated = cpu.is_some_and(CpuUse::saturated);
        if waits.is_empty() && !saturated {
            return None;
        }
        let (kind, mut sentence) = decide(&waits, cpu, at_fixed_rate);
        let others =
            cpu.map(|cpu| cpu.others).filter(|others| kind == BottleneckKind::Cpu && *others >= LOSS_WORTH_SAYING);
        if let Some((others, name)) = others.zip(self.other()) {
            sentence.push_str(&format!(
                "; {} of their time or more went to other programs, {name} the busiest",
                percent(others)
            ));
        }
        let busiest_process = self.busiest();
        if let Some((name, share)) = busiest_process.as_ref().filter(|(_, share)| *share >= ONE_CPU_FULL) {
            // Processes of one name are added up: above one CPU it was surely more than one.
            let name = if *share > 1.0 { format!("all {name} together") } else { name.clone() };
            sentence.push_str(&format!("; {name} used {} of one CPU", percent(*share)));
        }
        waits.truncate(WAITS_SHOWN);
        let cpu_busy = cpu.map(|cpu| cpu.busy);
        Some(Bottleneck { kind, sentence, waits, cpu_busy, busiest_process })
    }
}

/// How the CPUs spent their time, shares of 0 to 1 of all CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuUse {
    /// Working for programs and the kernel here.
    pub busy: f64,
    /// Taken by the hypervisor for other guests.
    pub stolen: f64,
    /// Taken by programs that are none of the run, at least: whoever ended within a second is missed. Part of `busy`.
    pub others: f64,
}

impl CpuUse {
    /// Whether next to no time was left.
    fn saturated(self) -> bool {
        self.busy + self.stolen > CPU_SATURATED
    }
}

/// What a case that storage did not bind was bound by: words with `{}` in place of the share, and the share.
#[must_use]
pub fn elsewhere(found: &Bottleneck, cpu: Option<CpuUse>, at_fixed_rate: bool) -> Option<(&'static str, f64)> {
    use BottleneckKind::{Client, Cpu, Device, Lock, Unclear};
    let waiting = found.waits.iter().filter(|wait| kind_of(wait) == found.kind).map(|wait| wait.share).sum();
    match (found.kind, cpu.filter(|cpu| cpu.saturated())) {
        (Device | Unclear, _) => None,
        (Cpu, Some(cpu)) if cpu.stolen < LOSS_WORTH_SAYING => Some(("the CPUs were {} busy", cpu.busy)),
        (Cpu, Some(cpu)) => Some(("the CPUs were {} busy or taken by other guests", cpu.busy + cpu.stolen)),
        (Cpu, None) => Some(("{} of backend time on the CPU", waiting)),
        (Lock, _) => Some(("{} of backend time waiting for each other", waiting)),
        (Client, _) if at_fixed_rate => {
            Some(("{} of backend time waiting for the client, which kept to its fixed rate", waiting))
        }
        (Client, _) => Some(("{} of backend time waiting for the client", waiting)),
    }
}

/// Growth of a CPU's state from its first to its last reading. The time spent idle and waiting for I/O may fall a little
/// now and then (proc(5), `iowait`): that must not make the state disappear and the CPU look busy.
fn grown(column: CountSeries<'_>) -> Option<u64> {
    let mut readings = (0..column.rows()).filter_map(|row| column.at(row));
    let first = readings.next()?;
    readings.next_back().map(|last| last.saturating_sub(first))
}

fn decide(waits: &[WaitShare], cpu: Option<CpuUse>, at_fixed_rate: bool) -> (BottleneckKind, String) {
    use BottleneckKind::{Client, Cpu, Device, Lock, Unclear};
    if let Some(cpu) = cpu.filter(|cpu| cpu.saturated()) {
        let stolen = if cpu.stolen < LOSS_WORTH_SAYING {
            String::new()
        } else {
            format!(", and {} of their time went to other guests", percent(cpu.stolen))
        };
        return (Cpu, format!("the CPUs were {} busy{stolen}", percent(cpu.busy)));
    }
    let kinds = [Device, Cpu, Lock, Client];
    let share = |kind: BottleneckKind| waits.iter().filter(|w| kind_of(w) == kind).map(|w| w.share).sum::<f64>();
    let most = kinds.into_iter().max_by(|a, b| share(*a).total_cmp(&share(*b))).unwrap_or(Unclear);
    let first = waits.iter().find(|wait| kind_of(wait) == most);
    let event = first.map_or("nothing", |wait| wait.event.as_str());
    let (sum, single) = (percent(share(most)), percent(first.map_or(0.0, |wait| wait.share)));
    if share(most) < STANDS_OUT {
        return (Unclear, format!("no wait stands out: the largest is {event} with {single} of backend time"));
    }
    let sentence = match most {
        Device if sum == single => format!("{single} of backend time in {event}"),
        Device => format!("{sum} of backend time waiting for storage, {single} in {event}"),
        Cpu => format!("{sum} of backend time on the CPU"),
        Lock => format!("{sum} of backend time waiting for each other, {single} for {event}"),
        Client if at_fixed_rate => {
            format!("{sum} of backend time waiting for the client, which kept to its fixed rate")
        }
        _ => format!("{sum} of backend time waiting for the client"),
    };
    (most, sentence)
}

fn kind_of(wait: &WaitShare) -> BottleneckKind {
    match (wait.class.as_str(), wait.event.as_str()) {
        ("IO", _) => BottleneckKind::Device,
        ("LWLock" | "IPC", event) if DEVICE_LOCKS.contains(&event) => BottleneckKind::Device,
        ("CPU", _) => BottleneckKind::Cpu,
        ("Lock" | "LWLock" | "BufferPin" | "Buffer", _) => BottleneckKind::Lock,
        ("Client", _) => BottleneckKind::Client,
        _ => BottleneckKind::Unclear,
    }
}

/// Mean CPU use of the busiest processes of a trial over the rows that list any, the busiest first. Processes of one
/// name are added up; worker threads of the kernel are known by what they work for.
#[must_use]
pub fn processes(seconds: &Seconds) -> Vec<(String, f64)> {
    let ranks = columns::TOP_NAMES.iter().zip(&columns::TOP_CPU_NS);
    let ranks: Vec<_> =
        ranks.filter_map(|(name, cpu_ns)| Some((seconds.texts(name)?, seconds.counts(cpu_ns)?))).collect();
    let Some((_, busiest)) = ranks.first() else { return Vec::new() };
    let listed_s = listed_s(seconds, *busiest);
    let mut sums: HashMap<&str, f64> = HashMap::new();
    for (names, used) in &ranks {
        let mut by_code = vec![0.0; names.words().len()];
        for row in 1..seconds.rows() {
            if let (Some(code), Some(ns)) = (names.code(row), used.at(row)) {
                by_code[code] += ns as f64;
            }
        }
        for (name, ns) in names.words().iter().zip(by_code) {
            *sums.entry(family(name)).or_default() += ns;
        }
    }
    let mean = |ns: f64| if listed_s > 0.0 { ns / 1e9 / listed_s } else { 0.0 };
    let shares = sums.into_iter().map(|(name, sum)| (name.to_owned(), mean(sum)));
    let mut shares: Vec<(String, f64)> = shares.filter(|(_, share)| *share >= LEAST_PROCESS_SHARE).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    shares.truncate(PROCESSES_SHOWN);
    shares
}

/// Time that the rows cover which list any process, in seconds: each from the reading before it, which a gap puts further
/// back than the row before.
fn listed_s(seconds: &Seconds, busiest: CountSeries<'_>) -> f64 {
    let (clock, read) = (seconds.counts(&columns::TIME_US), seconds.counts(&columns::OTHERS_CPU_NS));
    let rows: Vec<usize> = (0..seconds.rows()).filter(|row| read.is_some_and(|read| read.at(*row).is_some())).collect();
    let listing = rows.windows(2).filter(|pair| busiest.at(pair[1]).is_some());
    listing.map(|pair| span_s(clock, pair[0], pair[1])).sum()
}

/// What a kernel worker works for: `kworker/u4:3+btrfs-endio` and `kworker/u4:7-btrfs-endio` are both `btrfs-endio`.
fn family(name: &str) -> &str {
    let Some(rest) = name.strip_prefix("kworker/") else { return name };
    rest.find(['+', '-']).map_or("kworker", |sign| &rest[sign + 1..])
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::trial::WaitCount;

    fn waits(counts: &[(&str, &str, u64)]) -> WaitFigures {
        let of = |(class, event, count): &(&str, &str, u64)| WaitCount {
            class: (*class).to_owned(),
            event: (*event).to_owned(),
            count: *count,
        };
        WaitFigures {
            samples: 100,
            per_second: 10,
            backends: counts.iter().map(|(_, _, count)| count).sum(),
            waits: counts.iter().map(of).collect(),
        }
    }

    fn cpu(busy: u64, idle: u64) -> Seconds {
        let mut seconds = Seconds::new(2);
        seconds.push_counts("cpu_user_ns", vec![0, busy], &[true; 2]);
        seconds.push_counts("cpu_idle_ns", vec![0, idle], &[true; 2]);
        seconds
    }

    fn found(counts: &[(&str, &str, u64)], busy: u64) -> Bottleneck {
        let mut sums = MachineSums::default();
        sums.add(&cpu(busy, 100 - busy), Some(&waits(counts)), &[]);
        sums.finding(false).unwrap()
    }

    #[test]
    fn waiting_for_anothers_flush_of_the_wal_is_waiting_for_the_device() {
        let found = found(&[("IO", "WALSync", 30), ("LWLock", "WALWrite", 45), ("CPU", "CPU", 25)], 40);
        assert_eq!(found.kind, BottleneckKind::Device);
        assert_eq!(found.sentence, "75 % of backend time waiting for storage, 45 % in WALWrite");
        assert_eq!(found.cpu_busy, Some(0.4));
    }

    #[test]
    fn a_single_wait_is_said_in_short() {
        assert_eq!(found(&[("IO", "WALSync", 71), ("CPU", "CPU", 29)], 40).sentence, "71 % of backend time in WALSync");
    }

    #[test]
    fn full_cpus_bind_whatever_the_backends_wait_for() {
        let found = found(&[("Client", "ClientRead", 80), ("CPU", "CPU", 20)], 97);
        assert_eq!((found.kind, found.sentence.as_str()), (BottleneckKind::Cpu, "the CPUs were 97 % busy"));
    }

    #[test]
    fn waiting_for_storage_is_not_being_busy_even_where_that_counter_falls() {
        let mut seconds = Seconds::new(4);
        seconds.push_counts("cpu_user_ns", vec![0, 3, 6, 9], &[true; 4]);
        seconds.push_counts("cpu_idle_ns", vec![500, 500, 501, 501], &[true; 4]);
        seconds.push_counts("cpu_iowait_ns", vec![0, 60, 58, 90], &[true; 4]);
        let mut sums = MachineSums::default();
        sums.add(&seconds, Some(&waits(&[("IO", "WalSync", 9)])), &[]);
        assert_eq!(sums.cpu(), Some(CpuUse { busy: 1.0 - 91.0 / 100.0, stolen: 0.0, others: 0.0 }));
        assert_eq!(sums.finding(false).unwrap().kind, BottleneckKind::Device);
    }

    #[test]
    fn what_the_hypervisor_took_is_no_work_of_ours_yet_leaves_no_time() {
        let mut seconds = cpu(55, 5);
        seconds.push_counts("cpu_steal_ns", vec![0, 40], &[true; 2]);
        let mut sums = MachineSums::default();
        sums.add(&seconds, None, &[]);
        let found = sums.finding(false).unwrap();
        assert_eq!((found.kind, found.cpu_busy.map(|busy| (busy * 100.0).round())), (BottleneckKind::Cpu, Some(55.0)));
        assert_eq!(found.sentence, "the CPUs were 55 % busy, and 40 % of their time went to other guests");
        let (words, share) = elsewhere(&found, sums.cpu(), false).unwrap();
        assert_eq!((words, (share * 100.0).round()), ("the CPUs were {} busy or taken by other guests", 95.0));
    }

    #[test]
    fn what_other_programs_took_is_said_with_the_name_of_the_greediest() {
        // Two CPUs for three seconds, of one of which nothing was read: 6 s, of which others took 2.25 s.
        let mut seconds = Seconds::new(4);
        let (read, ms) = ([true, true, false, true], 1_000_000);
        seconds.push_counts("cpu_user_ns", vec![0, 1950 * ms, 0, 5850 * ms], &read);
        seconds.push_counts("cpu_idle_ns", vec![0, 50 * ms, 0, 150 * ms], &read);
        seconds.push_texts("others_name", [None, Some("rustc"), None, Some("make")]);
        seconds.push_counts("others_cpu_ns", vec![0, 1500 * ms, 0, 2250 * ms], &read);
        let mut sums = MachineSums::default();
        sums.add(&seconds, None, &[]);
        assert!((sums.cpu().unwrap().others - 0.375).abs() < 1e-9 && sums.other() == Some("rustc"));
        let sentence = "the CPUs were 98 % busy; 38 % of their time or more went to other programs, rustc the busiest";
        assert_eq!(sums.finding(false).unwrap().sentence, sentence);
    }

    #[test]
    fn row_locks_and_lightweight_locks_bind_as_locks() {
        let found = found(&[("Lock", "transactionid", 40), ("LWLock", "WALInsert", 20), ("IO", "WALSync", 40)], 30);
        assert_eq!(found.kind, BottleneckKind::Lock);
        assert!(found.sentence.contains("60 %") && found.sentence.contains("transactionid"), "{}", found.sentence);
    }

    #[test]
    fn where_nothing_stands_out_that_is_said() {
        let found = found(&[("Client", "ClientRead", 34), ("IO", "WALSync", 33), ("CPU", "CPU", 33)], 30);
        assert_eq!(found.kind, BottleneckKind::Unclear);
    }

    #[test]
    fn without_waits_only_full_cpus_are_a_finding() {
        let mut sums = MachineSums::default();
        sums.add(&cpu(50, 50), None, &[]);
        assert_eq!(sums.finding(false), None);
        sums.add(&cpu(10_000, 0), None, &[]);
        assert_eq!(sums.finding(false).unwrap().kind, BottleneckKind::Cpu);
        assert_eq!(MachineSums::default().finding(false), None);
    }

    #[test]
    fn a_kernel_thread_that_fills_one_cpu_is_named() {
        let mut sums = MachineSums::default();
        let shares = [("btrfs-endio-write".to_owned(), 0.98), ("postgres".to_owned(), 0.4)];
        sums.add(&cpu(50, 50), Some(&waits(&[("IO", "WALSync", 9)])), &shares);
        let found = sums.finding(false).unwrap();
        assert!(found.sentence.ends_with("; btrfs-endio-write used 98 % of one CPU"), "{}", found.sentence);
    }

    #[test]
    fn workers_of_one_kind_are_added_up_over_slots_and_rows() {
        let mut seconds = Seconds::new(4);
        let (read, ms) = ([true, true, false, true], 1_000_000);
        seconds.push_counts("time_us", vec![0, 1_100_000, 0, 3_000_000], &read);
        seconds.push_counts("others_cpu_ns", vec![0; 4], &read);
        seconds.push_texts("top1_name", [None, Some("kworker/u4:3+btrfs-endio"), None, Some("postgres")]);
        seconds.push_counts("top1_cpu_ns", vec![0, 800 * ms, 0, 1000 * ms], &[false, true, false, true]);
        seconds.push_texts("top2_name", [None, Some("postgres"), None, Some("kworker/u4:7-btrfs-endio")]);
        seconds.push_counts("top2_cpu_ns", vec![0, 200 * ms, 0, 1000 * ms], &[false, true, false, true]);
        let found = processes(&seconds);
        assert_eq!(found.len(), 2);
        assert!(found[0].0 == "btrfs-endio" && (found[0].1 - 0.6).abs() < 1e-12);
        assert!(found[1].0 == "postgres" && (found[1].1 - 0.4).abs() < 1e-12);
    }
}

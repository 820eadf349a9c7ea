//! CPU use: how busy the CPUs were, for whom, which single one was busiest, and who waited for one.

use crate::analyse::trial::counters::{Flow, Operations, span_s};
use crate::analyse::trial::input::Seconds;
use crate::record::columns;
use crate::store::seconds::CountColumn;
use std::collections::{BTreeMap, HashMap};

/// Share from which the CPUs count as full: a client or a writer without a CPU appears to wait for something else.
const FULL: f64 = 0.9;
/// Reported from this share of CPU time on, if given to other guests or taken by other programs.
pub const LOSS_WORTH_SAYING: f64 = 0.02;
/// Reported from this share of the time on in which a task waited for a CPU.
const PRESSURE_WORTH_SAYING: f64 = 0.1;
/// Most processes stored.
const PROCESSES_SHOWN: usize = 8;
/// Processes with smaller shares are omitted.
const LEAST_PROCESS_SHARE: f64 = 0.005;

#[derive(Debug, Clone, Default)]
pub struct CpuSums {
    /// Time of all CPUs by state, nanoseconds.
    cpu_ns: [f64; columns::CPU_TIMES.len()],
    processes: BTreeMap<String, f64>,
    /// CPU time of programs outside the run, nanoseconds, by the name of the busiest of them in each second.
    others_ns: BTreeMap<String, f64>,
    /// Programs outside the run in the trial that they disturbed most: their share of all CPU time, and of one CPU. A lower
    /// bound: programs that end within a second are missed.
    others_worst: (f64, f64),
    /// Busy time of the busiest CPU of each second, and the time of all CPUs, nanoseconds: both were read at once, which no
    /// clock of the clients was.
    fullest_ns: (f64, f64),
    /// Time in which some task waited for a CPU, microseconds.
    waited_us: Flow,
    trials: u32,
    /// Number of CPUs of the machine.
    pub cpus: u32,
}

impl CpuSums {
    /// Adds a trial with its busiest processes.
    pub fn add(&mut self, seconds: &Seconds, processes: &[(String, f64)]) {
        self.trials += 1;
        let mut of_trial = 0.0;
        for (sum, state) in self.cpu_ns.iter_mut().zip(&columns::CPU_TIMES) {
            let grown = seconds.counts(state).and_then(grown).unwrap_or(0) as f64;
            *sum += grown;
            of_trial += grown;
        }
        self.add_others(seconds);
        let mut others = Flow::default();
        others.add(seconds, seconds.counts(&columns::OTHERS_CPU_NS), &Operations::default());
        if let Some((grown, ns_per_s)) = others.grown().zip(others.per_second()).filter(|_| of_trial > 0.0) {
            let worst = (grown / of_trial, ns_per_s / 1e9);
            self.others_worst = if worst.0 > self.others_worst.0 { worst } else { self.others_worst };
        }
        self.add_fullest(seconds);
        self.waited_us.add(seconds, seconds.counts(&columns::PSI_CPU_SOME_US), &Operations::default());
        for (name, share) in processes {
            *self.processes.entry(name.clone()).or_default() += share;
        }
    }

    fn add_fullest(&mut self, seconds: &Seconds) {
        let Some(worked) = seconds.counts(&columns::CPU_FULLEST_NS) else { return };
        let states: Vec<_> = columns::CPU_TIMES.iter().filter_map(|state| seconds.counts(state)).collect();
        // A row after a gap covers more than its second and is skipped.
        for row in (1..worked.rows()).filter(|row| *row == 1 || worked.at(row - 1).is_some()) {
            let of_all = states.iter().map(|state| Some(state.at(row)?.saturating_sub(state.at(row - 1)?)));
            if let Some((ns, of_all)) = worked.at(row).zip(of_all.sum::<Option<u64>>()) {
                self.fullest_ns.0 += ns as f64;
                self.fullest_ns.1 += of_all as f64;
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

    /// CPU time by use; `None` if not counted. Waiting for I/O counts as idle because the CPU was free for other work.
    /// Time taken by the hypervisor is neither used here nor available.
    pub fn cpu(&self) -> Option<CpuUse> {
        let all: f64 = self.cpu_ns.iter().sum();
        let states = columns::CPU_TIMES.iter().zip(self.cpu_ns);
        let [idle, stolen] = [&[columns::CPU_IDLE_NS, columns::CPU_IOWAIT_NS][..], &[columns::CPU_STEAL_NS]]
            .map(|of| states.clone().filter(|(state, _)| of.contains(state)).map(|(_, ns)| ns).sum::<f64>() / all);
        let busy = 1.0 - idle - stolen;
        (all > 0.0).then_some(CpuUse { busy: busy.max(0.0), stolen })
    }

    /// Name of the other program that was busiest while others used most.
    pub fn other(&self) -> Option<&str> {
        self.others_ns.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(name, _)| name.as_str())
    }

    /// Share of one CPU that programs outside the run took in the worst trial, at least; `None` if too little to mention.
    pub fn others_worst(&self) -> Option<f64> {
        Some(self.others_worst.1).filter(|_| self.others_worst.0 >= LOSS_WORTH_SAYING)
    }

    /// Process or thread that used the most CPU, with its share of one CPU.
    pub fn busiest(&self) -> Option<(String, f64)> {
        let most = self.processes.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
        Some((most.0.clone(), most.1 / f64::from(self.trials.max(1))))
    }

    /// Share of all CPUs that pgbench used.
    pub fn clients(&self) -> Option<f64> {
        let used = self.processes.get("pgbench")? / f64::from(self.trials.max(1));
        (self.cpus > 0).then(|| used / f64::from(self.cpus))
    }

    /// Share of its time that the busiest CPU of each second was busy.
    pub fn fullest(&self) -> Option<f64> {
        let (busy, all) = self.fullest_ns;
        (all > 0.0 && self.cpus > 0).then(|| (busy * f64::from(self.cpus) / all).min(1.0))
    }

    /// Share of the time in which some task on the machine waited for a CPU.
    pub fn pressure(&self) -> Option<f64> {
        let all_ns: f64 = self.cpu_ns.iter().sum();
        let waited_ns = self.waited_us.grown()? * 1e3 * f64::from(self.cpus);
        (all_ns > 0.0).then(|| (waited_ns / all_ns).min(1.0))
    }

    /// Remarks on the CPUs, clause by clause; empty if they had capacity left.
    pub fn clauses(&self) -> Vec<String> {
        let mut clauses = Vec::new();
        if let Some(cpu) = self.cpu().filter(|cpu| cpu.is_full()) {
            clauses.push(format!("the CPUs were {} busy", percent(cpu.busy_of_own())));
        } else if let Some(fullest) = self.fullest().filter(|fullest| *fullest >= FULL) {
            clauses.push(format!("one CPU was {} busy", percent(fullest)));
        }
        let waited = self.pressure().filter(|waited| *waited >= PRESSURE_WORTH_SAYING);
        clauses.extend(waited.map(|waited| format!("some task waited for a CPU {} of the time", percent(waited))));
        if let Some((name, share)) = self.busiest().filter(|(_, share)| *share >= FULL) {
            // Processes of one name are added up: above one CPU there must be more than one.
            let name = if share > 1.0 { format!("all {name} together") } else { name };
            clauses.push(format!("{name} used {} of one CPU", percent(share)));
        }
        clauses
    }
}

/// CPU time by use, as shares of 0 to 1 of all CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuUse {
    /// Busy in user or kernel mode on this machine.
    pub busy: f64,
    /// Taken by the hypervisor for other guests.
    pub stolen: f64,
}

impl CpuUse {
    /// Busy share of the CPU time that the hypervisor left to this machine.
    pub fn busy_of_own(self) -> f64 {
        self.busy / (1.0 - self.stolen).max(f64::MIN_POSITIVE)
    }

    /// True if almost no CPU time was left.
    pub fn is_full(self) -> bool {
        self.busy_of_own() > FULL
    }
}

/// Growth of a CPU's state from its first to its last reading. Idle and I/O-wait time may fall slightly now and then
/// (proc(5), `iowait`), which must not drop the state and make the CPU look busy.
fn grown(column: &CountColumn) -> Option<u64> {
    let mut readings = (0..column.rows()).filter_map(|row| column.at(row));
    let first = readings.next()?;
    readings.next_back().map(|last| last.saturating_sub(first))
}

/// Mean number of CPUs, out of `cpus`, that were busy or taken by the hypervisor in a trial.
pub fn busy_cpus(seconds: &Seconds, cpus: u32) -> Option<f64> {
    let mut trial = CpuSums::default();
    trial.add(seconds, &[]);
    trial.cpu().map(|cpu| (cpu.busy + cpu.stolen) * f64::from(cpus))
}

/// Mean CPU use of a trial's busiest processes over the rows that list any, busiest first. Processes of one name are
/// added up; kernel worker threads are named after their task.
pub fn processes(seconds: &Seconds) -> Vec<(String, f64)> {
    let ranks = columns::TOP_NAMES.iter().zip(&columns::TOP_CPU_NS);
    let ranks: Vec<_> =
        ranks.filter_map(|(name, cpu_ns)| Some((seconds.texts(name)?, seconds.counts(cpu_ns)?))).collect();
    let Some((_, busiest)) = ranks.first() else { return Vec::new() };
    let listed_s = listed_s(seconds, busiest);
    let mut sums: HashMap<&str, f64> = HashMap::new();
    for (names, used) in &ranks {
        let mut by_code = vec![0.0; names.words.len()];
        for row in 1..seconds.rows() {
            if let (Some(code), Some(ns)) = (names.code(row), used.at(row)) {
                by_code[code] += ns as f64;
            }
        }
        for (name, ns) in names.words.iter().zip(by_code) {
            *sums.entry(family(name)).or_default() += ns;
        }
    }
    let shares = sums.into_iter().filter(|_| listed_s > 0.0).map(|(name, ns)| (name.to_owned(), ns / 1e9 / listed_s));
    let mut shares: Vec<(String, f64)> = shares.filter(|(_, share)| *share >= LEAST_PROCESS_SHARE).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    shares.truncate(PROCESSES_SHOWN);
    shares
}

/// Time covered by the rows that list any process, in seconds: each row covers the time since the reading before it,
/// which a gap moves further back.
fn listed_s(seconds: &Seconds, busiest: &CountColumn) -> f64 {
    let (clock, read) = (seconds.counts(&columns::TIME_US), seconds.counts(&columns::OTHERS_CPU_NS));
    let rows: Vec<usize> = (0..seconds.rows()).filter(|row| read.is_some_and(|read| read.at(*row).is_some())).collect();
    rows.windows(2).filter(|pair| busiest.at(pair[1]).is_some()).map(|pair| span_s(clock, pair[0], pair[1])).sum()
}

/// Task of a kernel worker: `kworker/u4:3+btrfs-endio` and `kworker/u4:7-btrfs-endio` are both `btrfs-endio`.
fn family(name: &str) -> &str {
    let Some(rest) = name.strip_prefix("kworker/") else { return name };
    rest.find(['+', '-']).map_or("kworker", |sign| &rest[sign + 1..])
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(busy: u64, idle: u64) -> Seconds {
        let mut seconds = Seconds::new(2);
        seconds.push_counts("cpu_user_ns", vec![0, busy], &[true; 2]);
        seconds.push_counts("cpu_idle_ns", vec![0, idle], &[true; 2]);
        seconds
    }

    fn sums(seconds: &Seconds) -> CpuSums {
        sums_on(1, seconds)
    }

    fn sums_on(cpus: u32, seconds: &Seconds) -> CpuSums {
        let mut sums = CpuSums { cpus, ..CpuSums::default() };
        sums.add(seconds, &[]);
        sums
    }

    #[test]
    fn full_cpus_are_reported_and_cpus_with_headroom_are_not() {
        assert_eq!(sums(&cpu(40, 60)).clauses(), Vec::<String>::new());
        assert_eq!(sums(&cpu(97, 3)).clauses(), ["the CPUs were 97 % busy"]);
    }

    #[test]
    fn busy_is_a_share_of_what_the_hypervisor_left() {
        let mut seconds = cpu(57, 3);
        seconds.push_counts("cpu_steal_ns", vec![0, 40], &[true; 2]);
        let sums = sums(&seconds);
        assert_eq!((sums.cpu().unwrap().busy * 100.0).round(), 57.0);
        assert_eq!(sums.clauses(), ["the CPUs were 95 % busy"]);
    }

    #[test]
    fn one_full_cpu_among_idle_ones_is_reported() {
        let ms = 1_000_000;
        let mut seconds = Seconds::new(5);
        let read = [true, true, true, false, true];
        // 16 CPUs, one of them busy: 6 % of all.
        seconds.push_counts("cpu_user_ns", vec![0, 960 * ms, 1920 * ms, 0, 3900 * ms], &read);
        seconds.push_counts("cpu_idle_ns", vec![0, 15_040 * ms, 30_080 * ms, 0, 60_100 * ms], &read);
        // The clock of the clients: a turn's counters were read some time after its end.
        seconds.push_counts("time_us", vec![0, 900_000, 1_800_000, 0, 3_600_000], &read);
        seconds.push_counts(
            "cpu_fullest_ns",
            vec![0, 970 * ms, 950 * ms, 0, 1990 * ms],
            &[false, true, true, false, true],
        );
        let sums = sums_on(16, &seconds);
        assert!((sums.fullest().unwrap() - 0.96).abs() < 1e-9, "{:?}", sums.fullest());
        assert_eq!(sums.clauses(), ["one CPU was 96 % busy"]);
    }

    #[test]
    fn waiting_for_a_cpu_is_reported_from_ten_percent_on() {
        let pressed = |us: u64| {
            // Two CPUs for a second, which the clients' clock has as 0.8.
            let mut seconds = cpu(800_000_000, 1_200_000_000);
            seconds.push_counts("time_us", vec![0, 800_000], &[true; 2]);
            seconds.push_counts("psi_cpu_some_us", vec![5, 5 + us], &[true; 2]);
            sums_on(2, &seconds).clauses()
        };
        assert_eq!(pressed(90_000), Vec::<String>::new());
        assert_eq!(pressed(610_000), ["some task waited for a CPU 61 % of the time"]);
    }

    #[test]
    fn cpu_time_of_other_programs_names_the_greediest_one() {
        // Two CPUs for three seconds, one of them without readings: 6 s, of which others took 2.25 s.
        let mut seconds = Seconds::new(4);
        let (read, ms) = ([true, true, false, true], 1_000_000);
        seconds.push_counts("cpu_user_ns", vec![0, 1950 * ms, 0, 5850 * ms], &read);
        seconds.push_counts("cpu_idle_ns", vec![0, 50 * ms, 0, 150 * ms], &read);
        seconds.push_texts("others_name", [None, Some("rustc"), None, Some("make")]);
        seconds.push_counts("others_cpu_ns", vec![0, 1500 * ms, 0, 2250 * ms], &read);
        let sums = sums(&seconds);
        let (of_all, of_one) = sums.others_worst;
        assert!((of_all - 0.375).abs() < 1e-9 && (of_one - 0.75).abs() < 1e-9, "{:?}", sums.others_worst);
        assert_eq!((sums.other(), sums.others_worst()), (Some("rustc"), Some(of_one)));
    }

    #[test]
    fn other_programs_are_judged_by_the_worst_trial() {
        let trial = |others_ns: u64| {
            let mut seconds = cpu(800_000_000, 1_200_000_000);
            seconds.push_texts("others_name", [None, Some("rustc")]);
            seconds.push_counts("others_cpu_ns", vec![0, others_ns], &[true; 2]);
            seconds
        };
        let mut sums = CpuSums::default();
        // Of the 2 s of two CPUs in a second.
        [0, 600_000_000, 10_000_000].iter().for_each(|ns| sums.add(&trial(*ns), &[]));
        assert_eq!(sums.others_worst(), Some(0.6));
        sums = CpuSums::default();
        sums.add(&trial(10_000_000), &[]);
        assert_eq!(sums.others_worst(), None);
    }

    #[test]
    fn clients_are_a_share_of_all_cpus() {
        let mut sums = CpuSums { cpus: 2, ..CpuSums::default() };
        assert_eq!(sums.clients(), None);
        for used in [0.9, 1.1] {
            sums.add(&cpu(50, 50), &[("pgbench".to_owned(), used), ("postgres".to_owned(), 0.4)]);
        }
        assert_eq!(sums.clients(), Some(0.5));
    }

    #[test]
    fn a_kernel_thread_that_fills_one_cpu_is_named() {
        let mut sums = CpuSums::default();
        sums.add(&cpu(50, 50), &[("btrfs-endio-write".to_owned(), 0.98), ("postgres".to_owned(), 0.4)]);
        assert_eq!(sums.clauses(), ["btrfs-endio-write used 98 % of one CPU"]);
    }

    #[test]
    fn workers_of_one_kind_are_summed_over_slots_and_rows() {
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

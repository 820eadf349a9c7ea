//! The five busiest kernel threads and processes since the previous row, and the CPU time of programs outside the run:
//! from CPU clocks and `/proc/PID/stat`.
//!
//! One btrfs worker at 100 % of a CPU explains a slow filesystem better than any average. Processes of the same name
//! count as one (all of `postgres`, all of `pgbench`); kernel threads count individually, under their name at the end
//! of the second: a worker's name shows what it worked on. pgstrata is included. Processes that ended between two rows
//! are missed; new ones are counted from their start.
//!
//! A process belongs to the run if pgstrata or a process of the run started it: the server and its backends, pgbench,
//! mkfs. Kernel threads work for everybody, so they belong to nobody.
//!
//! Cost: reads the CPU clocks of all processes, and the names of those that ran; see
//! [`crate::host::processes::cpu_times`]. 1.0 ms of CPU for 300 processes (release build, 2 virtual CPUs of an AMD
//! EPYC, Linux 6.18), which is 0.1 % of a core at one row per second.

use super::{Reading, SampledObjects, Sampler};
use crate::error::Result;
use crate::host::Host;
use crate::host::processes::{Named, cpu_times, named};
use crate::record::column::Column;
use crate::record::columns::{self, ColumnDef, TOP};
use crate::record::seconds::Value;
use std::collections::HashMap;

pub struct Processes;

/// Two for each of the busiest, and two for other programs.
const COLUMNS: usize = 2 * TOP + 2;

/// Less CPU time between two rows than this is not worth looking up a name.
const NOTEWORTHY_NS: u64 = 100_000;

/// CPU time by pid, nanoseconds.
type ProgramTimes = HashMap<u32, u64>;

impl Sampler for Processes {
    fn about(&self) -> (&'static str, &'static str) {
        (
            "processes",
            "The five busiest kernel threads and processes since the row before, and the CPU time of programs that are not part of the run.",
        )
    }

    fn columns(&self, _target: &SampledObjects) -> Vec<Column> {
        let top = columns::TOP_NAMES.iter().zip(&columns::TOP_CPU_NS).flat_map(|(name, cpu_ns)| [name, cpu_ns]);
        top.chain([&columns::OTHERS_NAME, &columns::OTHERS_CPU_NS]).map(ColumnDef::column).collect()
    }

    fn open(&self, host: &Host, _target: &SampledObjects) -> Result<Reading> {
        cpu_times(host)?;
        let (host, mut before, mut others_ns) = (host.clone(), None, 0);
        Ok(Box::new(move || {
            let times = cpu_times(&host)?;
            let mut row = Vec::with_capacity(COLUMNS);
            let mut greediest = None;
            if let Some(before) = &before {
                let used = used(before, &times, std::process::id(), |pid| named(&host, pid));
                for (name, used_ns) in busiest(&used) {
                    row.extend([Some(Value::Text(name)), Some(Value::Count(used_ns))]);
                }
                let (name, used_ns) = others(&used);
                greediest = name.map(Value::Text);
                others_ns += used_ns;
            }
            row.resize(2 * TOP, None);
            row.extend([greediest, Some(Value::Count(others_ns))]);
            before = Some(times);
            Ok(row)
        }))
    }
}

/// Acts, and says how much CPU time programs outside of the run took meanwhile, nanoseconds, if that can be read, with the name of
/// the busiest.
pub(crate) fn others_beside<T>(host: &Host, act: impl FnOnce() -> T) -> (T, Option<(Option<String>, u64)>) {
    let before = cpu_times(host).ok();
    let done = act();
    let both = before.zip(cpu_times(host).ok());
    (done, both.map(|(before, after)| others(&used(&before, &after, std::process::id(), |pid| named(host, pid)))))
}

/// CPU time used between two readings.
struct Used {
    comm: String,
    /// Id of the kernel thread; `None` for processes, which are merged by name.
    kernel_thread: Option<u32>,
    /// True if it belongs to the run.
    ours: bool,
    ns: u64,
}

/// Processes with noteworthy CPU time between the two readings. `own` is pgstrata's pid.
fn used(before: &ProgramTimes, after: &ProgramTimes, own: u32, named: impl Fn(u32) -> Option<Named>) -> Vec<Used> {
    let mut used: HashMap<(String, Option<u32>, bool), u64> = HashMap::new();
    let mut known = HashMap::from([(0, false), (1, false), (own, true)]);
    for (pid, time) in after {
        // A clock that went back belongs to another process with a reused pid: count from its start.
        let used_ns = before.get(pid).and_then(|before| time.checked_sub(*before)).unwrap_or(*time);
        if used_ns < NOTEWORTHY_NS {
            continue;
        }
        if let Some(Named { comm, kernel_thread, .. }) = named(*pid) {
            let ours = !kernel_thread && is_ours(*pid, &mut known, &named);
            *used.entry((comm, kernel_thread.then_some(*pid), ours)).or_default() += used_ns;
        }
    }
    used.into_iter().map(|((comm, kernel_thread, ours), ns)| Used { comm, kernel_thread, ours, ns }).collect()
}

/// True if a process descends from one known to be ours. Caches its ancestors in `known`.
fn is_ours(pid: u32, known: &mut HashMap<u32, bool>, named: impl Fn(u32) -> Option<Named>) -> bool {
    let (mut way, mut at) = (Vec::new(), pid);
    let ours = loop {
        if let Some(known) = known.get(&at) {
            break *known;
        }
        // Pids reused during the climb could form a ring.
        let parent = named(at).filter(|_| !way.contains(&at));
        let Some(Named { parent, .. }) = parent else { break false };
        way.push(at);
        at = parent;
    };
    known.extend(way.into_iter().map(|pid| (pid, ours)));
    ours
}

/// Names with their CPU time, nanoseconds, busiest first, at most [`TOP`].
fn busiest(used: &[Used]) -> Vec<(String, u64)> {
    let mut by_name: HashMap<(&str, Option<u32>), u64> = HashMap::new();
    for one in used {
        *by_name.entry((&one.comm, one.kernel_thread)).or_default() += one.ns;
    }
    let mut names: Vec<(String, u64)> = by_name.into_iter().map(|((name, _), ns)| (name.to_owned(), ns)).collect();
    names.sort_unstable_by(|(name, used), (other, others)| others.cmp(used).then_with(|| name.cmp(other)));
    names.truncate(TOP);
    names
}

/// CPU time of all programs outside the run, nanoseconds, and the name with the largest share.
fn others(used: &[Used]) -> (Option<String>, u64) {
    let others: Vec<&Used> = used.iter().filter(|one| !one.ours && one.kernel_thread.is_none()).collect();
    let most = others.iter().max_by_key(|one| (one.ns, &one.comm));
    (most.map(|one| one.comm.clone()), others.iter().map(|one| one.ns).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::time::{sleep, thread_cpu_us};
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    /// Pids below 100 are processes, the others kernel threads, with these names.
    fn names<'a, const N: usize>(names: [(u32, &'a str); N]) -> impl Fn(u32) -> Option<Named> + 'a {
        move |pid| {
            let (_, comm) = names.iter().find(|(named, _)| *named == pid)?;
            Some(Named { comm: (*comm).to_owned(), kernel_thread: pid >= 100, parent: 0 })
        }
    }

    fn names_of(
        before: &ProgramTimes,
        after: &ProgramTimes,
        named: impl Fn(u32) -> Option<Named>,
    ) -> Vec<(String, u64)> {
        busiest(&used(before, after, 0, named))
    }

    fn owned(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
        pairs.iter().map(|(name, ms)| ((*name).to_owned(), ms * MS)).collect()
    }

    #[test]
    fn backends_count_together_and_kernel_threads_each_for_itself() {
        let before = ProgramTimes::from([(1, 10 * MS), (2, 10 * MS), (100, 5 * MS)]);
        let after = ProgramTimes::from([(1, 30 * MS), (2, 35 * MS), (100, 95 * MS), (101, 3 * MS)]);
        let worker = "kworker/0:1-btrfs-endio";
        let names = names([(1, "postgres"), (2, "postgres"), (100, worker), (101, worker)]);
        assert_eq!(names_of(&before, &after, names), owned(&[(worker, 90), ("postgres", 45), (worker, 3)]));
    }

    #[test]
    fn the_five_busiest_processes_are_kept_in_fixed_order() {
        let before = ProgramTimes::from([(9, 100 * MS)]);
        let after = ProgramTimes::from([(1, MS), (2, MS), (3, MS), (4, MS), (5, 2 * MS), (6, MS), (9, 100 * MS + 1)]);
        let names = names([(1, "f"), (2, "e"), (3, "d"), (4, "c"), (5, "b"), (6, "a"), (9, "idle")]);
        let wanted = [("b", 2), ("a", 1), ("c", 1), ("d", 1), ("e", 1)];
        assert_eq!(names_of(&before, &after, names), owned(&wanted));
    }

    #[test]
    fn a_reused_pid_counts_from_its_new_start() {
        let before = ProgramTimes::from([(1, 1000 * MS)]);
        let after = ProgramTimes::from([(1, 4 * MS), (2, 900 * MS)]);
        assert_eq!(names_of(&before, &after, names([(1, "new")])), owned(&[("new", 4)]));
    }

    #[test]
    fn own_processes_and_kernel_threads_are_not_other_programs() {
        // A server that we (5) started (7) with a backend (8), a pgbench (9), and another server on the machine (20,
        // 21).
        let parents = [(5, 3), (7, 5), (8, 7), (9, 5), (20, 1), (21, 20), (3, 1), (30, 31), (31, 30)];
        let comms = [(8, "postgres"), (21, "postgres"), (9, "pgbench"), (3, "make"), (5, "pgstrata"), (100, "kswapd0")];
        let named = |pid: u32| {
            let of = |list: &[(u32, &str)]| list.iter().find(|(of, _)| *of == pid).map(|(_, comm)| (*comm).to_owned());
            let parent = parents.iter().find(|(of, _)| *of == pid).map_or(0, |(_, parent)| *parent);
            Some(Named { comm: of(&comms).unwrap_or("sh".to_owned()), kernel_thread: pid >= 100, parent })
        };
        let after = [(8, 30), (21, 20), (9, 9), (3, 4), (5, 2), (100, 90), (30, 7)];
        let after = ProgramTimes::from(after.map(|(pid, ms)| (pid, ms * MS)));
        let used = used(&ProgramTimes::new(), &after, 5, named);
        assert_eq!(others(&used), (Some("postgres".to_owned()), 31 * MS));
        assert_eq!(busiest(&used)[..3], owned(&[("kswapd0", 90), ("postgres", 50), ("pgbench", 9)]));
    }

    #[test]
    fn cpu_time_of_our_children_is_not_attributed_to_others() {
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let host = Host::this();
        let mut known = HashMap::from([(0, false), (1, false), (std::process::id(), true)]);
        let ours = is_ours(child.id(), &mut known, |pid| named(&host, pid));
        let parents = named(&host, std::process::id()).unwrap().parent;
        let theirs = is_ours(parents, &mut known, |pid| named(&host, pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(ours && !theirs);
    }

    #[test]
    fn a_busy_thread_of_our_own_is_seen() {
        let mut reading = Processes.open(&Host::this(), &SampledObjects::default()).unwrap();
        let row = reading().unwrap();
        assert_eq!(row[..COLUMNS - 1], vec![None; COLUMNS - 1]);
        assert_eq!(row.last(), Some(&Some(Value::Count(0))), "what others use is counted from the first row on");
        let begun = thread_cpu_us();
        while thread_cpu_us() < begun + 300_000 {}
        let row = reading().unwrap();
        let ours = std::fs::read_to_string("/proc/self/comm").unwrap();
        let at = row.iter().position(|value| *value == Some(Value::Text(ours.trim().to_owned())));
        let Some(Value::Count(ns)) = &row[at.expect("we are among the busiest") + 1] else { panic!("{row:?}") };
        assert!(*ns >= 300 * MS, "{row:?}");
    }

    #[test]
    fn what_others_use_is_never_less_than_before() {
        let mut reading = Processes.open(&Host::this(), &SampledObjects::default()).unwrap();
        let mut before = 0;
        for _ in 0..5 {
            sleep(Duration::from_millis(20));
            let Some(Some(Value::Count(now))) = reading().unwrap().pop() else { panic!("always counted") };
            assert!(now >= before);
            before = now;
        }
    }

    #[test]
    fn reading_all_processes_is_cheap() {
        let mut reading = Processes.open(&Host::this(), &SampledObjects::default()).unwrap();
        let begun = thread_cpu_us();
        let rounds = 20;
        for _ in 0..rounds {
            reading().unwrap();
            sleep(Duration::from_millis(1));
        }
        let each = (thread_cpu_us() - begun) / rounds;
        let processes = cpu_times(&Host::this()).unwrap().len();
        println!("one reading of {processes} processes costs {each} us of CPU");
        // Only a gross error (such as reading every thread) would exceed this in any build on any machine.
        assert!(each < 1000 * processes as u64, "{each} us for {processes} processes");
    }
}

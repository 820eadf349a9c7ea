//! The five busiest kernel threads and processes since the row before: their CPU clocks and `/proc/PID/stat`.
//!
//! One btrfs worker at 100 % of a CPU explains a slow filesystem better than any average. Processes of one name count
//! as one (all of `postgres`, all of `pgbench`), threads of the kernel each for itself under the name that the kernel
//! gives them at the end of the second: a worker's name tells what it worked on. pgstrata is among them. What ended
//! between two rows is not seen; what began is counted from its begin.
//!
//! Cost: the CPU clocks of all processes are read, and the names only of those that ran; see
//! [`crate::host::processes::cpu_times`]. 1.0 ms of CPU for 300 processes (release build, 2 virtual CPUs of an AMD EPYC,
//! Linux 6.18), which is 0.1 % of a core at one row a second.

use super::{Reading, Sampler, Target};
use crate::error::Result;
use crate::host::Host;
use crate::host::processes::{Named, cpu_times, named};
use crate::host::time::{Instant, now};
use crate::record::seconds::{Column, Value};
use std::collections::HashMap;

/// The source `processes`.
pub struct Processes;

/// How many have columns.
pub const TOP: usize = 5;

/// Whoever used less CPU time between two rows is not even asked for a name.
const NOTEWORTHY_NS: u64 = 100_000;

/// CPU time by pid, nanoseconds.
type Times = HashMap<u32, u64>;

struct Open {
    host: Host,
    before: Option<(Instant, Times)>,
}

impl Sampler for Processes {
    fn name(&self) -> &'static str {
        "processes"
    }

    fn columns(&self) -> Vec<Column> {
        let columns = |rank: usize| {
            let which = format!("number {rank} in CPU time since the row before");
            let name = format!(
                "/proc/PID/stat comm: name of the kernel thread or of the processes (all of one name together) that \
                 come as {which}; absent in row 0 and where fewer ran"
            );
            let share = format!(
                "CPU clock of the process (clock_getcpuclockid): CPU time of {which}, as share of one CPU (1 = one CPU \
                 in full; several processes or threads can have more)"
            );
            [
                Column::interval(format!("top{rank}_name"), "", name).text(),
                Column::interval(format!("top{rank}_cpu_share"), "share", share).real(),
            ]
        };
        (1..=TOP).flat_map(columns).collect()
    }

    fn open(&self, host: &Host, _target: &Target) -> Result<Box<dyn Reading>> {
        cpu_times(host)?;
        Ok(Box::new(Open { host: host.clone(), before: None }))
    }
}

impl Reading for Open {
    fn sample(&mut self) -> Result<Vec<Option<Value>>> {
        let at = now();
        let times = cpu_times(&self.host)?;
        let mut row = Vec::with_capacity(2 * TOP);
        if let Some((before_at, before)) = &self.before {
            let seconds = at.duration_since(*before_at).as_secs_f64();
            for (name, used_ns) in busiest(before, &times, |pid| named(&self.host, pid)) {
                row.extend([Some(Value::Text(name)), Some(Value::Real(used_ns as f64 / 1e9 / seconds))]);
            }
        }
        row.resize(2 * TOP, None);
        self.before = Some((at, times));
        Ok(row)
    }
}

/// Names with the CPU time that they used between the two readings, nanoseconds, most first, at most [`TOP`].
fn busiest(before: &Times, after: &Times, named: impl Fn(u32) -> Option<Named>) -> Vec<(String, u64)> {
    let mut used: HashMap<(Named, Option<u32>), u64> = HashMap::new();
    for (pid, time) in after {
        // A clock that went back is another process's with the same pid: it counts from its begin.
        let used_ns = before.get(pid).and_then(|before| time.checked_sub(*before)).unwrap_or(*time);
        if used_ns < NOTEWORTHY_NS {
            continue;
        }
        if let Some(named) = named(*pid) {
            let alone = named.kernel_thread.then_some(*pid);
            *used.entry((named, alone)).or_default() += used_ns;
        }
    }
    let mut used: Vec<(String, u64)> = used.into_iter().map(|((named, _), used_ns)| (named.comm, used_ns)).collect();
    used.sort_unstable_by(|(name, used), (other, others)| others.cmp(used).then_with(|| name.cmp(other)));
    used.truncate(TOP);
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::time::{sleep, thread_cpu_us};
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    /// Pids below 100 are processes, the others threads of the kernel, with these names.
    fn names<'a, const N: usize>(names: [(u32, &'a str); N]) -> impl Fn(u32) -> Option<Named> + 'a {
        move |pid| {
            let (_, comm) = names.iter().find(|(named, _)| *named == pid)?;
            Some(Named { comm: (*comm).to_owned(), kernel_thread: pid >= 100 })
        }
    }

    fn owned(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
        pairs.iter().map(|(name, ms)| ((*name).to_owned(), ms * MS)).collect()
    }

    #[test]
    fn backends_count_together_and_kernel_threads_each_for_itself() {
        let before = Times::from([(1, 10 * MS), (2, 10 * MS), (100, 5 * MS)]);
        let after = Times::from([(1, 30 * MS), (2, 35 * MS), (100, 95 * MS), (101, 3 * MS)]);
        let worker = "kworker/0:1-btrfs-endio";
        let names = names([(1, "postgres"), (2, "postgres"), (100, worker), (101, worker)]);
        assert_eq!(busiest(&before, &after, names), owned(&[(worker, 90), ("postgres", 45), (worker, 3)]));
    }

    #[test]
    fn idle_processes_are_left_out_and_five_are_kept_in_a_fixed_order() {
        let before = Times::from([(9, 100 * MS)]);
        let after = Times::from([(1, MS), (2, MS), (3, MS), (4, MS), (5, 2 * MS), (6, MS), (9, 100 * MS + 1)]);
        let names = names([(1, "f"), (2, "e"), (3, "d"), (4, "c"), (5, "b"), (6, "a"), (9, "idle")]);
        let wanted = [("b", 2), ("a", 1), ("c", 1), ("d", 1), ("e", 1)];
        assert_eq!(busiest(&before, &after, names), owned(&wanted));
    }

    #[test]
    fn a_pid_used_again_counts_from_its_begin_and_one_that_ended_not_at_all() {
        let before = Times::from([(1, 1000 * MS)]);
        let after = Times::from([(1, 4 * MS), (2, 900 * MS)]);
        assert_eq!(busiest(&before, &after, names([(1, "new")])), owned(&[("new", 4)]));
    }

    #[test]
    fn a_busy_thread_of_ours_is_seen_and_row_zero_is_absent() {
        let mut reading = Processes.open(&Host::this(), &Target::default()).unwrap();
        assert_eq!(reading.sample().unwrap(), vec![None; 2 * TOP]);
        let begun = thread_cpu_us();
        while thread_cpu_us() < begun + 300_000 {}
        let row = reading.sample().unwrap();
        let ours = std::fs::read_to_string("/proc/self/comm").unwrap();
        let at = row.iter().position(|value| *value == Some(Value::Text(ours.trim().to_owned())));
        let Some(Value::Real(share)) = &row[at.expect("we are among the busiest") + 1] else { panic!("{row:?}") };
        assert!(*share > 0.01, "{row:?}");
    }

    #[test]
    fn reading_all_processes_is_cheap() {
        let mut reading = Processes.open(&Host::this(), &Target::default()).unwrap();
        let begun = thread_cpu_us();
        let rounds = 20;
        for _ in 0..rounds {
            reading.sample().unwrap();
            sleep(Duration::from_millis(1));
        }
        let each = (thread_cpu_us() - begun) / rounds;
        let processes = cpu_times(&Host::this()).unwrap().len();
        println!("one reading of {processes} processes costs {each} us of CPU");
        // Only a fault of a whole class (reading every thread, say) would reach this in any build on any machine.
        assert!(each < 1000 * processes as u64, "{each} us for {processes} processes");
    }
}

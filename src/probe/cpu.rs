//! CPU waits while the rows run, of the probe's own thread and of all processes.

use crate::host::Host;
use crate::host::time::{Instant, micros, now};
use crate::parse::pressure;
use crate::record::probe::CpuWait;

pub struct CpuSnapshot {
    at: Instant,
    own_ns: Option<u64>,
    some_us: Option<u64>,
}

/// Reads the counters, for the calling thread.
pub fn look(host: &Host) -> CpuSnapshot {
    // Time on the CPU, time waiting for one, time slices (Documentation/scheduler/sched-stats.rst).
    let own = host.read_optional("/proc/thread-self/schedstat");
    CpuSnapshot {
        at: now(),
        own_ns: own.and_then(|text| text.split_ascii_whitespace().nth(1)?.parse().ok()),
        some_us: host
            .read_optional("/proc/pressure/cpu")
            .and_then(|text| Some(pressure::parse("/proc/pressure/cpu", &text).ok()?.some_us)),
    }
}

/// Waits since `before`; `None` if the kernel reports neither kind.
pub fn since(before: &CpuSnapshot, host: &Host) -> Option<CpuWait> {
    let now = look(host);
    let own_us = now.own_ns.zip(before.own_ns).map(|(now, before)| now.saturating_sub(before) / 1000);
    let some_us = now.some_us.zip(before.some_us).map(|(now, before)| now.saturating_sub(before));
    let elapsed_us = micros(now.at.duration_since(before.at));
    (own_us.is_some() || some_us.is_some()).then_some(CpuWait { elapsed_us, own_us, some_us })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_counters_grow_from_one_look_to_the_next() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["proc/thread-self", "proc/pressure"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let host = Host::rooted(root.path());
        let show = |own_ns: u64, some_us: u64| {
            std::fs::write(root.path().join("proc/thread-self/schedstat"), format!("9 {own_ns} 3\n")).unwrap();
            let text = format!("some avg10=1.00 avg60=1.00 avg300=1.00 total={some_us}\n");
            std::fs::write(root.path().join("proc/pressure/cpu"), text).unwrap();
        };
        show(1_000_000, 70);
        let before = look(&host);
        show(4_000_000, 170);
        let wait = since(&before, &host).unwrap();
        assert_eq!((wait.own_us, wait.some_us), (Some(3000), Some(100)));
    }

    #[test]
    fn a_kernel_that_tells_nothing_leaves_it_absent() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::rooted(root.path());
        assert_eq!(since(&look(&host), &host), None);
    }
}

//! CPU time of every process, cheap enough for once a second.
//!
//! Reading `/proc/PID/stat` costs about 10 us per process, most of it in the kernel, which is too much for a machine
//! with hundreds of them. The kernel gives the same figure, in nanoseconds instead of ticks, as the process's CPU clock
//! for 0.2 us. So all clocks are read, but names only of the processes of interest.

use super::{Host, pids_with_ours, with_stat};
use crate::error::Result;
use std::collections::HashMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Current name in the kernel; that of a kernel worker includes its task (`kworker/u8:2-btrfs-endio-write`).
    pub comm: String,
    pub kernel_thread: bool,
    pub parent: u32,
}

/// CPU time of every process so far, by pid, for all its threads, user and kernel mode together, nanoseconds. Includes
/// pgstrata. The pids are those of `host`; their clocks are always this machine's.
///
/// # Errors
/// If `/proc` cannot be listed.
pub fn cpu_times(host: &Host) -> Result<HashMap<u32, u64>> {
    Ok(pids_with_ours(host)?.into_iter().filter_map(|pid| Some((pid, cpu_time_ns(pid)?))).collect())
}

/// Name of a process; `None` if it has ended.
pub fn named(host: &Host, pid: u32) -> Option<Named> {
    with_stat(host, pid, |stat| Named {
        comm: stat.comm.to_owned(),
        kernel_thread: stat.kernel_thread,
        parent: stat.parent,
    })
}

/// CPU clock of a process; `None` if there is none with this pid.
#[expect(unsafe_code, reason = "no safe binding takes the clock of another process")]
fn cpu_time_ns(pid: u32) -> Option<u64> {
    #[repr(C)]
    #[derive(Default)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }
    const { assert!(size_of::<usize>() == 8, "struct timespec is laid out like this on 64-bit Linux only") };
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }
    // MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of the kernel's include/linux/posix-timers_types.h, as in
    // clock_getcpuclockid(3).
    let clock = (!i32::try_from(pid).ok()? << 3) | 2;
    let mut time = Timespec::default();
    // SAFETY: `time` is a live, writable struct timespec of this platform, and the call writes nothing else; a clock
    // that does not exist is refused with EINVAL or ESRCH.
    let failed = unsafe { clock_gettime(clock, &raw mut time) } != 0;
    let seconds = u64::try_from(time.seconds).ok().filter(|_| !failed)?;
    Some(seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.nanoseconds).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::time::thread_cpu_us;
    use crate::parse::proc_pid_stat;

    #[test]
    fn the_cpu_clock_of_a_process_includes_its_threads() {
        let ours = || cpu_times(&Host::this()).unwrap()[&std::process::id()];
        let before = ours();
        std::thread::spawn(|| {
            let begun = thread_cpu_us();
            while thread_cpu_us() < begun + 50_000 {}
        })
        .join()
        .unwrap();
        assert!(ours() >= before + 50_000_000);
    }

    #[test]
    fn the_clock_agrees_with_what_the_kernel_prints() {
        let host = Host::this();
        let ticks = || {
            let text = host.read("/proc/self/stat").unwrap();
            let stat = proc_pid_stat::parse("stat", &text).unwrap();
            stat.user_ticks + stat.system_ticks
        };
        let (low, clock, high) = (ticks(), cpu_time_ns(std::process::id()).unwrap() / 10_000_000, ticks());
        // The kernel rounds user and system time down to ticks separately.
        assert!(low <= clock + 1 && clock <= high + 2, "{low} ticks, {clock}, {high}");
    }

    #[test]
    fn a_pid_that_nobody_has_is_absent_not_zero() {
        // Above the largest pid that Linux gives (PID_MAX_LIMIT, 2^22).
        assert_eq!(cpu_time_ns(5_000_000), None);
        assert_eq!(cpu_time_ns(u32::MAX), None);
        assert_eq!(named(&Host::this(), 5_000_000), None);
    }

    #[test]
    fn names_tell_kernel_threads_from_programs() {
        let ours = named(&Host::this(), std::process::id()).unwrap();
        assert!(!ours.kernel_thread && !ours.comm.is_empty());
        // In a container, pid 2 may be any process or none.
        match named(&Host::this(), 2) {
            Some(two) if two.comm == "kthreadd" => assert!(two.kernel_thread),
            other => println!("skipped: pid 2 is not the kernel's thread daemon here but {other:?}"),
        }
    }
}

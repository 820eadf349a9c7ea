//! Conditions on the machine that disturb a measurement, with advice: for `pgstrata doctor`.
//!
//! A check without data reports nothing. The limits are rules of thumb, chosen so that a quiet machine passes; none of
//! them changes a result.

use super::{clocksource, governors};
use crate::host::processes::{cpu_times, named};
use crate::host::time::sleep;
use crate::host::{Host, linux};
use crate::parse::meminfo::{self, Meminfo};
use crate::parse::proc_stat::ProcStat;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; results may vary.
    Notice,
    /// Results will be worse or less stable than the storage is.
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Name in two or three words: `clock source`.
    pub what: String,
    /// What was found, and its effect on the results.
    pub detail: String,
    pub severity: Severity,
    pub advice: String,
}

/// How long the CPUs are watched.
pub const WATCHED: Duration = Duration::from_millis(500);

/// Clock sources that can be read without a system call: TSC, KVM's and Hyper-V's clock
/// (arch/x86/include/asm/vdso/clocksource.h), and the counters of ARM, RISC-V, POWER and S/390.
const FAST_CLOCKS: [&str; 7] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource", "timebase", "tod"];

/// Finds everything that will disturb a measurement, worst first. Watches the CPUs for half a second.
pub fn disturbances(host: &Host) -> Vec<Disturbance> {
    let (before, used_before) = (super::cpus(host), cpu_times(host).unwrap_or_default());
    sleep(WATCHED);
    let (after, used_after) = (super::cpus(host), cpu_times(host).unwrap_or_default());
    let busiest = busiest(&used_before, &used_after).and_then(|(pid, ns)| Some((named(host, pid)?.comm, ns)));
    let both = before.as_ref().zip(after.as_ref());
    let memory = host.read("/proc/meminfo").and_then(|text| meminfo::parse(&text)).unwrap_or_default();
    let checks = [
        clocksource(host).and_then(|name| slow_clock(&name)),
        governors(host).and_then(|names| lazy_governor(&names)),
        boost(host),
        both.and_then(|(before, after)| load_of_others(before, after, busiest.as_ref())),
        both.and_then(|(before, after)| stolen_time(before, after)),
        cpu_quota(),
        swap_in_use(&memory),
        little_memory(&memory),
        much_to_write(&memory),
        host.read_optional("/sys/kernel/mm/transparent_hugepage/enabled").and_then(|mode| huge_pages(&mode)),
    ];
    let mut found: Vec<Disturbance> = checks.into_iter().flatten().collect();
    found.sort_by_key(|disturbance| std::cmp::Reverse(disturbance.severity));
    found
}

fn warning(what: &str, detail: String, advice: &str) -> Disturbance {
    Disturbance { what: what.to_owned(), detail, severity: Severity::Warning, advice: advice.to_owned() }
}

fn notice(what: &str, detail: String, advice: &str) -> Disturbance {
    Disturbance { severity: Severity::Notice, ..warning(what, detail, advice) }
}

fn slow_clock(name: &str) -> Option<Disturbance> {
    let advice = "boot with clocksource=tsc if the TSC is stable (dmesg shows why the kernel rejected it)";
    let detail = format!("`{name}`: reading the clock takes a system call, so timing slows down the workload");
    (!FAST_CLOCKS.contains(&name)).then(|| warning("clock source", detail, advice))
}

fn lazy_governor(names: &str) -> Option<Disturbance> {
    let detail = format!("`{names}`: CPUs lower their clock between requests, which increases short latencies");
    (names != "performance").then(|| warning("CPU governor", detail, "cpupower frequency-set -g performance"))
}

/// Checks frequency boost, by the Intel driver's switch or the general one.
fn boost(host: &Host) -> Option<Disturbance> {
    let switches =
        [("/sys/devices/system/cpu/intel_pstate/no_turbo", "0"), ("/sys/devices/system/cpu/cpufreq/boost", "1")];
    let on = switches.iter().any(|(path, on)| host.read_optional(path).as_deref() == Some(*on));
    let detail = "the CPU clock depends on temperature: the same work runs faster on a cool machine".to_owned();
    on.then(|| notice("CPU boost", detail, "interleaved trials average it out; disable it for the most stable results"))
}

/// Reported from 10 % of all CPUs.
fn load_of_others(before: &ProcStat, after: &ProcStat, busiest: Option<&(String, u64)>) -> Option<Disturbance> {
    let total = after.all.total().saturating_sub(before.all.total());
    let busy = after.all.busy().saturating_sub(before.all.busy()) as f64 / total as f64;
    let who = busiest.map_or_else(String::new, |(name, ns)| {
        let share = *ns as f64 / WATCHED.as_nanos() as f64 * 100.0;
        format!(" (busiest: `{name}`, {share:.0} % of one CPU)")
    });
    let detail = format!("the CPUs were {:.0} % busy just now, before anything was started{who}", busy * 100.0);
    (total > 0 && busy >= 0.1).then(|| warning("other load", detail, "stop other programs; see top"))
}

/// The process, other than this one, that used the most CPU time, with nanoseconds.
fn busiest(before: &HashMap<u32, u64>, after: &HashMap<u32, u64>) -> Option<(u32, u64)> {
    let grown = after.iter().map(|(pid, ns)| (*pid, ns.saturating_sub(before.get(pid).copied().unwrap_or(0))));
    let others = grown.filter(|(pid, ns)| *ns > 0 && *pid != std::process::id());
    others.max_by_key(|(_, ns)| *ns)
}

/// Reported from 1 %, just now or since boot.
fn stolen_time(before: &ProcStat, after: &ProcStat) -> Option<Disturbance> {
    let (stolen_before, stolen_after) = (before.all.steal?, after.all.steal?);
    let ever = share(stolen_after, after.all.total());
    let now = share(stolen_after.saturating_sub(stolen_before), after.all.total().saturating_sub(before.all.total()));
    let [percent, of_all] = [now, ever].map(|share| share * 100.0);
    let detail =
        format!("the hypervisor gave {percent:.1} % of CPU time to other guests just now, {of_all:.1} % since boot");
    let advice = "other guests on the host affect the results; use more blocks for reliable intervals";
    (now >= 0.01 || ever >= 0.01).then(|| warning("steal time", detail, advice))
}

fn share(steal: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { steal as f64 / total as f64 }
}

/// A quota stops all threads of the group together, typically for tens of milliseconds.
fn cpu_quota() -> Option<Disturbance> {
    let allowed = linux::allowed_cpus()?;
    let usable = std::thread::available_parallelism().ok()?.get();
    let detail = format!("a cgroup limits CPU use to {usable} of {allowed} CPUs and throttles beyond that");
    (usable < allowed).then(|| warning("CPU quota", detail, "lift the quota (cpu.max) of the container or slice"))
}

fn swap_in_use(memory: &Meminfo) -> Option<Disturbance> {
    let used = memory.swap_used_bytes().filter(|bytes| *bytes > 0)?;
    let detail = format!("{} of process memory is swapped out: swapping in causes reads during a trial", Bytes(used));
    Some(warning("swap", detail, "swapoff -a, if there is enough memory"))
}

/// Reported below a quarter of the memory.
fn little_memory(memory: &Meminfo) -> Option<Disturbance> {
    let (available, total) = (memory.available_bytes?, memory.total_bytes?);
    let detail = format!("only {} of {} available: little room for the page cache", Bytes(available), Bytes(total));
    (available < total / 4).then(|| warning("free memory", detail, "stop programs that use memory"))
}

/// Reported from 1 % of the memory.
fn much_to_write(memory: &Meminfo) -> Option<Disturbance> {
    let waiting = memory.dirty_bytes?.saturating_add(memory.writeback_bytes?);
    let detail =
        format!("{} waiting for writeback: something is writing, and the devices will be busy", Bytes(waiting));
    (waiting > memory.total_bytes? / 100).then(|| notice("dirty pages", detail, "wait, or run sync"))
}

/// With `always` the kernel collapses pages in the background; PostgreSQL's manual advises against it.
fn huge_pages(modes: &str) -> Option<Disturbance> {
    let detail = "transparent huge pages are `always`: khugepaged and memory compaction run at unpredictable times";
    let advice = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
    modes.contains("[always]").then(|| notice("huge pages", detail.to_owned(), advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::proc_stat::CpuTimes;

    fn names(found: &[Disturbance]) -> Vec<&str> {
        found.iter().map(|disturbance| disturbance.what.as_str()).collect()
    }

    fn cpus(user: u64, idle: u64, steal: Option<u64>) -> ProcStat {
        ProcStat { all: CpuTimes { user, idle, steal, ..CpuTimes::default() }, ..ProcStat::default() }
    }

    #[test]
    fn the_busiest_program_has_the_largest_cpu_growth_excluding_ourselves() {
        let own = std::process::id();
        let before = HashMap::from([(1, 900), (own, 0)]);
        let after = HashMap::from([(1, 950), (own, 800), (own + 1, 70)]);
        assert_eq!(busiest(&before, &after), Some((own + 1, 70)));
        assert_eq!(busiest(&after, &after), None);
    }

    #[test]
    fn a_machine_with_everything_wrong_says_so_the_worst_first() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            (
                "proc/meminfo",
                "MemTotal: 1000 kB\nMemAvailable: 100 kB\nDirty: 90 kB\nWriteback: 0 kB\nSwapTotal: 9 kB\nSwapFree: 4 kB\n",
            ),
            ("proc/stat", "cpu 900 0 0 100 0 0 0 50\ncpu0 900 0 0 100 0 0 0 50\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = disturbances(&Host::rooted(root.path()));
        // The quota applies to the test process itself, whatever the fake tree says.
        let found: Vec<Disturbance> = found.into_iter().filter(|one| one.what != "CPU quota").collect();
        let wanted = [
            "clock source",
            "CPU governor",
            "steal time",
            "swap",
            "free memory",
            "CPU boost",
            "dirty pages",
            "huge pages",
        ];
        assert_eq!(names(&found), wanted);
        assert!(found.iter().all(|one| !one.detail.is_empty() && !one.advice.is_empty()));
    }

    #[test]
    fn a_machine_that_tells_nothing_is_not_accused() {
        let root = tempfile::tempdir().unwrap();
        let found = disturbances(&Host::rooted(root.path()));
        assert!(found.iter().all(|one| one.what == "CPU quota"), "{found:?}");
    }

    #[test]
    fn load_counts_from_a_tenth_of_the_cpus_on() {
        assert!(load_of_others(&cpus(0, 0, None), &cpus(9, 91, None), None).is_none());
        let busiest = ("find".to_owned(), 250_000_000);
        let found = load_of_others(&cpus(0, 0, None), &cpus(10, 90, None), Some(&busiest)).unwrap();
        assert!(found.detail.contains("10 %") && found.detail.contains("`find`, 50 % of one CPU"), "{}", found.detail);
        assert!(load_of_others(&cpus(5, 5, None), &cpus(5, 5, None), None).is_none(), "no time passed");
    }

    #[test]
    fn stolen_time_counts_just_now_and_since_the_start() {
        assert!(stolen_time(&cpus(0, 1000, Some(0)), &cpus(0, 1100, Some(0))).is_none());
        assert!(stolen_time(&cpus(0, 100_000, Some(0)), &cpus(0, 100_098, Some(2))).is_some(), "2 % just now");
        assert!(stolen_time(&cpus(0, 980, Some(20)), &cpus(0, 1080, Some(20))).is_some(), "since the start");
        assert!(stolen_time(&cpus(0, 1000, None), &cpus(0, 1100, None)).is_none(), "an old kernel does not tell");
    }

    #[test]
    fn good_settings_are_passed() {
        assert!(slow_clock("tsc").is_none() && slow_clock("kvm-clock").is_none());
        assert!(lazy_governor("performance").is_none());
        assert!(lazy_governor("performance+powersave").is_some(), "one lazy CPU is enough");
        assert!(huge_pages("always [madvise] never").is_none());
        let memory = Meminfo { total_bytes: Some(1000), available_bytes: Some(900), ..Meminfo::default() };
        assert!(swap_in_use(&memory).is_none() && little_memory(&memory).is_none() && much_to_write(&memory).is_none());
    }
}

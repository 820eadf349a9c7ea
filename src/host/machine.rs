//! The machine: its facts, and conditions on it that disturb a measurement.
//!
//! Everything is read from kernel files and is absent if the machine does not report it.

mod disturbances;

pub use disturbances::{Disturbance, Severity, WATCHED, disturbances};

use super::{Host, linux};
use crate::parse::{cpuinfo, meminfo, os_release, proc_stat};
use crate::record::facts::HostFacts;

/// Facts of the machine. Never fails: what the machine does not report is absent.
pub fn facts(host: &Host) -> HostFacts {
    let memory = host.read("/proc/meminfo").and_then(|text| meminfo::parse(&text)).unwrap_or_default();
    let cpu = host.read("/proc/cpuinfo").map(|text| cpuinfo::parse(&text)).unwrap_or_default();
    HostFacts {
        hostname: one_line(host, "/proc/sys/kernel/hostname").unwrap_or_else(|| "unknown".to_owned()),
        kernel: one_line(host, "/proc/sys/kernel/osrelease")
            .or_else(other_kernel)
            .unwrap_or_else(|| "unknown".to_owned()),
        distribution: host.read_optional("/etc/os-release").and_then(|text| os_release::pretty_name(&text)),
        cpu_model: cpu.model.clone(),
        cpus: usable_cpus(host),
        memory_bytes: memory.total_bytes.unwrap_or_else(linux::memory_bytes),
        swap_used_bytes: memory.swap_used_bytes(),
        clocksource: clocksource(host),
        governor: governors(host),
        machine: machine(host, &cpu),
        is_virtual: Some(is_virtual(host)),
    }
}

/// Hard limit of open files, to which programs may raise the soft one. `None` means unlimited.
pub(crate) fn most_open_files() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum
}

/// CPUs available to this process, limited by its affinity and cgroup quota.
fn usable_cpus(host: &Host) -> u32 {
    let usable = match std::thread::available_parallelism() {
        Ok(cpus) => cpus.get(),
        Err(_) => cpus(host).map_or(1, |stat| stat.each.len()),
    };
    u32::try_from(usable).unwrap_or(u32::MAX)
}

fn cpus(host: &Host) -> Option<proc_stat::ProcStat> {
    host.read("/proc/stat").and_then(|text| proc_stat::parse(&text)).ok()
}

/// Name and release of a kernel other than Linux (uname(2)).
fn other_kernel() -> Option<String> {
    let names = rustix::system::uname();
    (!cfg!(target_os = "linux"))
        .then(|| format!("{} {}", names.sysname().to_string_lossy(), names.release().to_string_lossy()))
}

fn clocksource(host: &Host) -> Option<String> {
    one_line(host, "/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

/// Frequency governors of all CPUs; differing ones are joined by `+`.
pub(crate) fn governors(host: &Host) -> Option<String> {
    const CPUS: &str = "/sys/devices/system/cpu";
    let cpus = host.names_in(CPUS).into_iter();
    let mut found: Vec<String> =
        cpus.filter_map(|cpu| host.read_optional(format!("{CPUS}/{cpu}/cpufreq/scaling_governor"))).collect();
    found.sort_unstable();
    found.dedup();
    (!found.is_empty()).then(|| found.join("+"))
}

/// Model of the machine: from its maker (DMI, device tree), else the hypervisor's type, else that there is a
/// hypervisor.
fn machine(host: &Host, cpu: &cpuinfo::Cpuinfo) -> Option<String> {
    let dmi = ["sys_vendor", "product_name"].map(|name| one_line(host, &format!("/sys/class/dmi/id/{name}")));
    let dmi: Vec<String> = dmi.into_iter().flatten().collect();
    if !dmi.is_empty() {
        return Some(dmi.join(" "));
    }
    one_line(host, "/proc/device-tree/model")
        .map(|model| model.trim_end_matches('\0').to_owned())
        .or_else(|| one_line(host, "/sys/hypervisor/type").map(|kind| format!("virtual machine ({kind})")))
        .or_else(|| (cpu.hypervisor == Some(true)).then(|| "virtual machine".to_owned()))
}

/// True if the machine identifies itself as virtual. Its disks then report what the hypervisor chooses.
pub(crate) fn is_virtual(host: &Host) -> bool {
    let flagged = host.read("/proc/cpuinfo").is_ok_and(|text| cpuinfo::parse(&text).hypervisor == Some(true));
    flagged || one_line(host, "/sys/hypervisor/type").is_some()
}

fn one_line(host: &Host, path: &str) -> Option<String> {
    host.read_optional(path).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine_of(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let host = Host::rooted(root.path());
        (root, host)
    }

    #[test]
    fn a_machine_is_read_from_its_files() {
        let (_root, host) = machine_of(&[
            ("proc/sys/kernel/hostname", "db1\n"),
            ("proc/sys/kernel/osrelease", "6.1.0-9-amd64\n"),
            ("proc/meminfo", "MemTotal: 1024 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n"),
            ("proc/cpuinfo", "model name\t: AMD EPYC\nflags\t: fpu hypervisor\n"),
            ("etc/os-release", "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
            ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
            ("sys/class/dmi/id/product_name", "Standard PC\n"),
        ]);
        let facts = facts(&host);
        assert_eq!((facts.hostname.as_str(), facts.kernel.as_str()), ("db1", "6.1.0-9-amd64"));
        assert_eq!((facts.memory_bytes, facts.swap_used_bytes), (1024 * 1024, Some(6 * 1024)));
        assert_eq!(facts.distribution.as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!((facts.cpu_model.as_deref(), facts.clocksource.as_deref()), (Some("AMD EPYC"), Some("tsc")));
        assert_eq!(facts.governor.as_deref(), Some("performance+powersave"));
        assert_eq!(facts.machine.as_deref(), Some("QEMU Standard PC"));
    }

    #[test]
    fn what_a_machine_does_not_say_is_absent() {
        let (_root, host) = machine_of(&[]);
        let facts = facts(&host);
        assert_eq!((facts.distribution, facts.cpu_model, facts.swap_used_bytes), (None, None, None));
        assert_eq!((facts.clocksource, facts.governor, facts.machine), (None, None, None));
        assert_eq!(facts.hostname, "unknown");
    }

    #[test]
    fn a_machine_without_dmi_names_its_hypervisor() {
        let cpu = ("proc/cpuinfo", "flags : hypervisor\n");
        let (_root, host) = machine_of(&[cpu]);
        assert_eq!(facts(&host).machine.as_deref(), Some("virtual machine"));
        let (_root, host) = machine_of(&[cpu, ("sys/hypervisor/type", "xen\n")]);
        assert_eq!(facts(&host).machine.as_deref(), Some("virtual machine (xen)"));
        let (_root, host) = machine_of(&[("proc/device-tree/model", "Raspberry Pi 5\0")]);
        assert_eq!(facts(&host).machine.as_deref(), Some("Raspberry Pi 5"));
    }

    #[test]
    fn this_machine_has_a_kernel_memory_and_cpus() {
        let facts = facts(&Host::this());
        assert!(facts.memory_bytes > 0 && facts.cpus > 0);
        assert_ne!(facts.kernel, "unknown");
    }
}

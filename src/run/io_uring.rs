//! Checks whether servers here can run with `io_method = io_uring`: the kernel's switch, seccomp, and lockable memory.

use crate::host::Host;
use crate::host::ring::Ring;
use crate::host::users::{self, User};
use crate::parse::proc_limits::{self, SoftLimit};
use crate::record::case::{CaseSpec, PostgresSpec};
use crate::units::Bytes;
use rustix::io::Errno;
use serde::Serialize;
use std::io;

/// The setting, and its value that needs rings.
const SETTING: &str = "io_method";
const IO_URING: &str = "io_uring";

/// Reason why servers cannot use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Obstacle {
    pub why: String,
    pub hint: String,
}

/// Whether servers on this machine can use it.
#[derive(Debug, Serialize)]
pub struct IoUring {
    /// Why the kernel gives a server no ring; `None` if it does. The server must also be built with liburing.
    pub refused: Option<Obstacle>,
    /// Why a server with `max_connections = 100` does not get a ring for each connection; `None` if it does.
    pub low_memory: Option<Obstacle>,
}

/// Inspects the machine; changes nothing.
pub(super) fn diagnose(host: &Host) -> IoUring {
    IoUring { refused: refused(host), low_memory: low_memory(host, DEFAULT_CONNECTIONS, DEFAULT_CONCURRENCY) }
}

/// The value as the case writes it, and the setting's name, if its server is to use io_uring.
pub(super) fn asked_by(postgres: &PostgresSpec) -> Option<(&String, &String)> {
    let mut settings = postgres.settings.iter();
    settings.find(|(name, value)| name.eq_ignore_ascii_case(SETTING) && value.trim().eq_ignore_ascii_case(IO_URING))
}

/// Why the kernel gives no ring to the user that servers run as.
pub(super) fn refused(host: &Host) -> Option<Obstacle> {
    refused_to(host, users::server_user(host).ok().as_ref(), || Ring::new().map(drop))
}

/// The kernel's switch of io_uring, `kernel.io_uring_disabled`; absent before Linux 6.6.
pub(super) fn switch(host: &Host) -> Option<String> {
    host.read_optional("/proc/sys/kernel/io_uring_disabled")
}

/// Checks the switch for the server's user, then tries: seccomp shows up nowhere else.
fn refused_to(host: &Host, user: Option<&User>, set_up: impl FnOnce() -> io::Result<()>) -> Option<Obstacle> {
    let (why, hint) = match switch(host).as_deref() {
        Some("2") => (
            "kernel.io_uring_disabled is 2: no process may use io_uring".to_owned(),
            "sysctl kernel.io_uring_disabled=0",
        ),
        Some("1") if !is_of_group(host, user) => {
            let name = user.map_or("the server's user", |user| &user.name);
            let why = format!("kernel.io_uring_disabled is 1, and {name} is not in the group kernel.io_uring_group");
            (why, "sysctl kernel.io_uring_disabled=0, or set kernel.io_uring_group to that user's group")
        }
        _ => {
            let error = set_up().err()?;
            match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOSYS) => ("the kernel has no io_uring".to_owned(), "use another io_method"),
                Some(Errno::PERM | Errno::ACCESS) => (
                    "io_uring is refused to this process: seccomp, as in a container, or a security module".to_owned(),
                    "allow io_uring_setup, io_uring_enter and io_uring_register in the seccomp profile",
                ),
                _ => (format!("io_uring cannot be set up: {error}"), "use another io_method"),
            }
        }
    };
    Some(Obstacle { why, hint: hint.to_owned() })
}

/// True if a server is in the group that may use io_uring. Started by root, it has no group but its user's own.
fn is_of_group(host: &Host, user: Option<&User>) -> bool {
    let group = host.read_optional("/proc/sys/kernel/io_uring_group").and_then(|text| text.trim().parse::<u32>().ok());
    // -1: no group.
    let Some(group) = group else { return false };
    let status = host.read_optional("/proc/self/status").filter(|_| !users::is_root()).unwrap_or_default();
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or_default();
    user.is_some_and(|user| user.gid == group) || groups.split_whitespace().any(|one| one.parse() == Ok(group))
}

const DEFAULT_CONNECTIONS: u64 = 100;
/// Largest value that PostgreSQL chooses itself (`io_max_concurrency = -1`).
const DEFAULT_CONCURRENCY: u64 = 64;
/// Largest value that PostgreSQL accepts.
const MOST_CONCURRENCY: u64 = 1024;
/// Processes with a ring besides the connections, with PostgreSQL 18's defaults: autovacuum (16), workers (8), WAL
/// senders (10), and auxiliary processes.
const OTHER_PROCESSES: u64 = 16 + 8 + 10 + 8;
/// Kernel that charges rings to the control group instead (io_uring_mlock_size(3)).
const NOT_LOCKED_SINCE: (u32, u32) = (5, 12);

/// A warning if lockable memory is too small for the rings of a case's server.
pub(super) fn warning(host: &Host, case: &CaseSpec) -> Option<String> {
    let postgres = case.postgres.as_ref().filter(|postgres| asked_by(postgres).is_some())?;
    let asked = |name, default| postgres.asked(name).and_then(|value| value.trim().parse().ok()).unwrap_or(default);
    let connections = asked("max_connections", DEFAULT_CONNECTIONS);
    let concurrency = asked("io_max_concurrency", DEFAULT_CONCURRENCY);
    let Obstacle { why, hint } = low_memory(host, connections, concurrency)?;
    Some(format!("{SETTING} = {IO_URING}: {why}; {hint}"))
}

/// Memory that this process, and hence the servers it starts, may lock.
pub(super) fn locked_memory(host: &Host) -> Option<SoftLimit> {
    proc_limits::max_locked_memory(&host.read_optional("/proc/self/limits")?)
}

fn low_memory(host: &Host, connections: u64, concurrency: u64) -> Option<Obstacle> {
    let release = host.read_optional("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    if (numbers.next()?, numbers.next()?) >= NOT_LOCKED_SINCE {
        return None;
    }
    let SoftLimit::Bytes(limit) = locked_memory(host)? else { return None };
    let needed = connections.saturating_add(OTHER_PROCESSES).saturating_mul(ring_bytes(concurrency));
    let (limit, needed, release) = (Bytes(limit), Bytes(needed), release.trim());
    (limit < needed).then(|| Obstacle {
        why: format!(
            "RLIMIT_MEMLOCK is {limit}, and rings for {connections} connections lock about {needed} on Linux {release}"
        ),
        hint: "start pgstrata after `ulimit -l unlimited`, or from a unit with LimitMEMLOCK=infinity".to_owned(),
    })
}

/// Size of a ring: its entries (64 bytes each), and for each two completions (16) and an index (4), plus the heads of
/// both queues.
fn ring_bytes(concurrency: u64) -> u64 {
    const PAGE: u64 = 4096;
    const HEADS: u64 = 512;
    let entries = concurrency.clamp(1, MOST_CONCURRENCY).next_power_of_two();
    (entries * 64).next_multiple_of(PAGE) + (entries * (2 * 16 + 4) + HEADS).next_multiple_of(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::case::WorkloadSpec;
    use crate::record::options::Options;
    use crate::record::stack::StackSpec;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let host = Host::rooted(root.path());
        (root, host)
    }

    const SWITCH: &str = "proc/sys/kernel/io_uring_disabled";
    const GROUP: &str = "proc/sys/kernel/io_uring_group";

    #[test]
    fn sysctl_group_and_seccomp_refusals_of_io_uring_have_remedies() {
        let user = User { name: "postgres".into(), uid: 105, gid: 113 };
        let refused = |files: &[(&str, &str)], errno: Option<i32>| {
            let (_root, host) = machine(files);
            refused_to(&host, Some(&user), || errno.map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code))))
        };
        assert_eq!(refused(&[], None), None);
        assert_eq!(refused(&[(SWITCH, "0\n")], None), None);
        let off = refused(&[(SWITCH, "2\n")], None).unwrap();
        assert!(off.why.contains("is 2") && off.hint.contains("io_uring_disabled=0"), "{off:?}");
        let group = refused(&[(SWITCH, "1\n"), (GROUP, "-1\n")], None).unwrap();
        assert!(group.why.contains("postgres is not in the group"), "{group:?}");
        assert_eq!(refused(&[(SWITCH, "1\n"), (GROUP, "113\n")], None), None);
        assert!(refused(&[(SWITCH, "0\n")], Some(1)).unwrap().why.contains("seccomp"));
        assert!(refused(&[], Some(38)).unwrap().why.contains("no io_uring"));
    }

    #[test]
    fn memlock_counts_for_io_uring_only_before_linux_5_12() {
        let files = |release: &'static str, limit: &'static str| {
            machine(&[("proc/sys/kernel/osrelease", release), ("proc/self/limits", limit)])
        };
        const LOW: &str = "Limit Soft\nMax locked memory         65536   65536   bytes\n";
        let case = |settings: &[(&str, &str)]| CaseSpec {
            id: "s.w".into(),
            guest: None,
            age: Options::default(),
            stack: StackSpec::linear("s", Vec::new()),
            postgres: Some(PostgresSpec {
                bin: "auto".into(),
                build: None,
                settings: settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
                initdb: Vec::new(),
            }),
            machine: Options::default(),
            workload: WorkloadSpec { name: "w".into(), kind: "pgbench".into(), options: Options::default() },
            axes: std::collections::BTreeMap::new(),
        };
        let (_old, old) = files("5.10.0-30-amd64\n", LOW);
        let warned = warning(&old, &case(&[("io_method", "io_uring")])).unwrap();
        assert!(
            warned.contains("64 KiB") && warned.contains("100 connections") && warned.contains("ulimit -l"),
            "{warned}"
        );
        assert_eq!(warning(&old, &case(&[("io_method", "worker")])), None);
        assert_eq!(warning(&old, &case(&[])), None);
        let few = low_memory(&old, 1, 8).unwrap();
        assert!(few.why.contains("344 KiB"), "(1 + 42) x 8 KiB: {few:?}");
        let (_new, new) = files("6.1.0-9-amd64\n", LOW);
        assert_eq!(warning(&new, &case(&[("io_method", "io_uring")])), None);
        let (_free, free) = files("5.10.0\n", "Max locked memory         unlimited  unlimited  bytes\n");
        assert_eq!(low_memory(&free, 100, 64), None);
    }

    #[test]
    fn io_uring_is_known_however_a_plan_writes_it() {
        let asked = |name: &str, value: &str| {
            let settings = [(name.to_owned(), value.to_owned())].into();
            asked_by(&PostgresSpec { bin: "auto".into(), build: None, settings, initdb: Vec::new() }).is_some()
        };
        assert!(asked("io_method", "io_uring") && asked("IO_Method", "IO_URING"));
        assert!(!asked("io_method", "worker") && !asked("io_workers", "io_uring"));
    }
}

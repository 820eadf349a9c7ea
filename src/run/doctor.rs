//! What this machine can measure, and what would disturb it.

use super::io_uring::{self, IoUring};
use crate::cluster::install::{self, Installation};
use crate::host::machine::{self, Disturbance};
use crate::host::users::{self, User};
use crate::host::{Host, files};
use crate::parse::proc_limits::SoftLimit;
use crate::provision::disk::{self, FoundDisk};
use crate::provision::{self, Unmet, image_file};
use crate::record::facts::HostFacts;
use crate::record::options::Options;
use crate::units::Bytes;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Serialize)]
pub struct Diagnosis {
    pub host: HostFacts,
    /// True if pgstrata runs as root.
    pub root: bool,
    /// User that would run PostgreSQL; `None` with a reason in `server_user_problem`.
    pub server_user: Option<String>,
    /// Why no user can run PostgreSQL.
    pub server_user_problem: Option<String>,
    /// Each layer, and what it lacks here.
    pub layers: Vec<LayerDiagnosis>,
    pub disks: Vec<FoundDisk>,
    /// PostgreSQL installations, newest first.
    pub postgres: Vec<PostgresDiagnosis>,
    /// Free space where runs put things.
    pub space: Vec<FreeSpace>,
    /// Write-back and CPU frequency settings that the kernel reports.
    pub kernel_settings: Vec<KernelSetting>,
    pub io_uring: IoUring,
    pub disturbances: Vec<Disturbance>,
}

/// Current value of a kernel setting.
#[derive(Debug, Serialize)]
pub struct KernelSetting {
    /// Name as in sysctl: `vm.dirty_ratio`.
    pub name: String,
    pub value: String,
}

/// A layer on this machine.
#[derive(Debug, Serialize)]
pub struct LayerDiagnosis {
    pub layer: String,
    /// Unmet requirements; empty if it can be built.
    pub lacks: Vec<Unmet>,
}

/// A PostgreSQL on this machine.
#[derive(Debug, Serialize)]
pub struct PostgresDiagnosis {
    /// Folder of its programs.
    pub bin: PathBuf,
    /// Version as it prints it.
    pub version: String,
}

#[derive(Debug, Serialize)]
pub struct FreeSpace {
    pub purpose: String,
    pub folder: PathBuf,
    /// `None` if it cannot be determined.
    pub free_bytes: Option<Bytes>,
}

/// Inspects the machine; changes nothing.
pub fn diagnose(host: &Host, state: &Path, results: &Path) -> Diagnosis {
    let user = users::server_user(host);
    let layers = provision::ALL
        .iter()
        .map(|layer| LayerDiagnosis { layer: layer.name().to_owned(), lacks: layer.unmet(host, &Options::default()) })
        .collect();
    let servers = install::find_all(host).into_iter();
    let postgres = servers.map(|Installation { bin, version, .. }| PostgresDiagnosis { bin, version }).collect();
    Diagnosis {
        host: machine::facts(host),
        root: users::is_root(),
        server_user_problem: user.as_ref().err().map(ToString::to_string),
        server_user: user.ok().map(|User { name, .. }| name),
        layers,
        disks: disk::found(host),
        postgres,
        space: vec![
            free_space("images", Path::new(image_file::DEFAULT_FOLDER)),
            free_space("templates, ledgers", state),
            free_space("results", results),
        ],
        kernel_settings: kernel_settings(host),
        io_uring: io_uring::diagnose(host),
        disturbances: machine::disturbances(host),
    }
}

/// Settings of `/proc/sys/vm` that decide when data reaches the device.
const VM: [&str; 7] = [
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_ratio",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
    "swappiness",
];

fn kernel_settings(host: &Host) -> Vec<KernelSetting> {
    let of_vm = VM.iter().filter_map(|name| {
        let value = host.read_optional(format!("/proc/sys/vm/{name}"))?;
        // Of two mutually exclusive settings, the one that is 0 is inactive.
        (value != "0" || *name == "swappiness").then(|| KernelSetting { name: format!("vm.{name}"), value })
    });
    let governor = machine::governors(host).unwrap_or_else(|| "none: the kernel does not clock the CPUs".to_owned());
    let governor = KernelSetting { name: "CPU frequency governor".to_owned(), value: governor };
    of_vm.chain([governor]).chain(io_uring_settings(host)).collect()
}

/// Current io_uring switch of the kernel, and the memory that a process may lock.
fn io_uring_settings(host: &Host) -> Vec<KernelSetting> {
    let switch = match io_uring::switch(host).as_deref() {
        Some("0") => "0: every process may use io_uring".to_owned(),
        Some("1") => "1: only members of kernel.io_uring_group may use io_uring".to_owned(),
        Some("2") => "2: no process may use io_uring".to_owned(),
        Some(other) => other.to_owned(),
        None => "the kernel has no such switch (before Linux 6.6)".to_owned(),
    };
    let locked = io_uring::locked_memory(host).map(|soft| match soft {
        SoftLimit::Bytes(bytes) => Bytes(bytes).to_string(),
        SoftLimit::Unlimited => "unlimited".to_owned(),
    });
    let settings = [("kernel.io_uring_disabled", Some(switch)), ("RLIMIT_MEMLOCK of pgstrata", locked)];
    let known =
        settings.into_iter().filter_map(|(name, value)| Some(KernelSetting { name: name.to_owned(), value: value? }));
    known.collect()
}

fn free_space(purpose: &str, folder: &Path) -> FreeSpace {
    let free_bytes = files::free_bytes(&files::nearest_existing(folder)).ok().map(Bytes);
    FreeSpace { purpose: purpose.to_owned(), folder: folder.to_path_buf(), free_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_io_uring_switch_and_the_memlock_limit_are_shown() {
        let root = tempfile::tempdir().unwrap();
        let shown = |host: &Host| -> Vec<String> {
            io_uring_settings(host).into_iter().map(|setting| format!("{} {}", setting.name, setting.value)).collect()
        };
        let host = Host::rooted(root.path());
        assert_eq!(shown(&host), ["kernel.io_uring_disabled the kernel has no such switch (before Linux 6.6)"]);
        for (path, text) in [
            ("proc/sys/kernel/io_uring_disabled", "2\n"),
            ("proc/self/limits", "Limit Soft\nMax locked memory         8388608   8388608   bytes\n"),
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let shown = shown(&host);
        assert!(shown[0].contains("2: no process may use io_uring"), "{shown:?}");
        assert!(shown[1].starts_with("RLIMIT_MEMLOCK of pgstrata 8 MiB"), "{shown:?}");
    }
}

//! What this machine can measure, and what would disturb it.

use crate::cluster::install::{self, Installation};
use crate::host::machine::{self, Disturbance};
use crate::host::users::{self, User};
use crate::host::{Host, files};
use crate::provision::disk::{self, FoundDisk};
use crate::provision::{self, Unmet};
use crate::record::facts::HostFacts;
use crate::record::options::Options;
use crate::units::Bytes;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Serialize)]
pub struct Diagnosis {
    pub host: HostFacts,
    /// Whether pgstrata runs as root.
    pub root: bool,
    /// As whom PostgreSQL would run; `None` with a reason in `server_user_problem`.
    pub server_user: Option<String>,
    /// Why nobody is there to run PostgreSQL.
    pub server_user_problem: Option<String>,
    /// Each layer, and what it lacks here.
    pub layers: Vec<LayerDiagnosis>,
    /// The disks of the machine.
    pub disks: Vec<FoundDisk>,
    /// PostgreSQL installations, the newest first.
    pub postgres: Vec<PostgresDiagnosis>,
    /// Space where runs put things.
    pub space: Vec<FreeSpace>,
    /// When the kernel writes back what was written, and how it clocks the CPUs; those that it tells.
    pub kernel_settings: Vec<KernelSetting>,
    /// What would disturb a measurement.
    pub disturbances: Vec<Disturbance>,
}

/// A setting of the kernel as it is now.
#[derive(Debug, Serialize)]
pub struct KernelSetting {
    /// As sysctl has it: `vm.dirty_ratio`.
    pub name: String,
    pub value: String,
}

/// A layer on this machine.
#[derive(Debug, Serialize)]
pub struct LayerDiagnosis {
    pub layer: String,
    /// What it lacks; empty = it can be built.
    pub lacks: Vec<Lack>,
}

#[derive(Debug, Serialize)]
pub struct Lack {
    pub what: String,
    /// What would bring it.
    pub hint: String,
}

/// A PostgreSQL on this machine.
#[derive(Debug, Serialize)]
pub struct PostgresDiagnosis {
    /// Folder of its programs.
    pub bin: PathBuf,
    /// Version as it prints it.
    pub version: String,
}

/// Free space at a place.
#[derive(Debug, Serialize)]
pub struct FreeSpace {
    /// What it is for.
    pub purpose: String,
    pub folder: PathBuf,
    /// How much; `None` where it cannot be asked.
    pub free_bytes: Option<Bytes>,
}

impl From<Unmet> for Lack {
    fn from(unmet: Unmet) -> Lack {
        Lack { what: unmet.what, hint: unmet.hint }
    }
}

/// Looks; changes nothing.
#[must_use]
pub fn diagnose(host: &Host, state: &Path, results: &Path) -> Diagnosis {
    let user = users::server_user(host);
    let layers = provision::ALL
        .iter()
        .map(|layer| LayerDiagnosis {
            layer: layer.name().to_owned(),
            lacks: layer.unmet(host, &Options::default()).into_iter().map(Lack::from).collect(),
        })
        .collect();
    let postgres = install::find_all(host)
        .into_iter()
        .map(|Installation { bin, version, .. }| PostgresDiagnosis { bin, version })
        .collect();
    Diagnosis {
        host: machine::facts(host),
        root: users::is_root(),
        server_user_problem: user.as_ref().err().map(ToString::to_string),
        server_user: user.ok().map(|User { name, .. }| name),
        layers,
        disks: disk::found(host),
        postgres,
        space: vec![free_space("images, templates, ledgers", state), free_space("results", results)],
        kernel_settings: kernel_settings(host),
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
    let vm = |name: &&str| {
        let value = host.read_optional(format!("/proc/sys/vm/{name}"))?;
        Some(KernelSetting { name: format!("vm.{name}"), value })
    };
    // Of two that exclude each other the one that is 0 does not count.
    let counts = |setting: &KernelSetting| setting.value != "0" || setting.name == "vm.swappiness";
    let governor = machine::governors(host).unwrap_or_else(|| "none: the kernel does not clock the CPUs".to_owned());
    let governor = KernelSetting { name: "CPU frequency governor".to_owned(), value: governor };
    VM.iter().filter_map(vm).filter(counts).chain([governor]).collect()
}

fn free_space(purpose: &str, folder: &Path) -> FreeSpace {
    let free_bytes = files::free_bytes(&files::nearest_existing(folder)).ok().map(Bytes);
    FreeSpace { purpose: purpose.to_owned(), folder: folder.to_path_buf(), free_bytes }
}

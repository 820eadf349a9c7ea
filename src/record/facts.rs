//! Facts read back from the kernel, the devices and the server, never taken from the plan.

use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line of the kernel's mount table (`/proc/self/mountinfo`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountFacts {
    /// Mount point.
    pub target: String,
    /// Filesystem type.
    pub fstype: String,
    /// Source device, or the name given for filesystems without one.
    pub source: String,
    /// Options of the mount point (`rw`, `noatime`, ...), in the kernel's order.
    pub options: Vec<String>,
    /// Options of the filesystem (superblock), in the kernel's order.
    pub super_options: Vec<String>,
    /// Device number `major:minor`.
    pub device: String,
    /// True if it keeps a journal, if the kernel reports that (ext4: `/sys/fs/ext4/<device>/journal_task`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<bool>,
    /// ZFS: properties of the dataset and parameters of the module that affect syncs, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub zfs: BTreeMap<String, String>,
}

impl MountFacts {
    /// True if the ARC caches file data (property `primarycache`), rather than the page cache or nothing.
    pub fn is_kept_by_arc(&self) -> bool {
        self.fstype == "zfs" && self.zfs.get("primarycache").is_none_or(|kept| kept == "all")
    }
}

/// Write cache mode that a device reports (`queue/write_cache`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteCache {
    /// A volatile cache that needs flushes.
    WriteBack,
    /// The device declares acknowledged writes stable; the kernel sends it no flushes.
    WriteThrough,
}

impl WriteCache {
    /// `write back`, `write through`, as the kernel prints it.
    pub fn word(self) -> &'static str {
        match self {
            WriteCache::WriteBack => "write back",
            WriteCache::WriteThrough => "write through",
        }
    }
}

/// One block device as sysfs describes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Steps below the folder being examined: 0 is the device its filesystem is on.
    pub depth: u32,
    /// Kernel name: `loop3`, `nvme0n1p2`.
    pub name: String,
    /// Device number; 0:0 for a hidden one, such as a path of a multipath NVMe (`nvme0c0n1`).
    pub major: u32,
    /// Device number.
    pub minor: u32,
    /// Capacity, bytes.
    pub size_bytes: Option<u64>,
    /// Model as the device reports it.
    pub model: Option<String>,
    /// Firmware revision as the device reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// Serial as the device reports it.
    pub serial: Option<String>,
    /// World wide name.
    pub wwn: Option<String>,
    /// Rotational flag of the kernel; meaningless for virtual disks.
    pub rotational: Option<bool>,
    /// Revolutions per minute as the disk reports them (SCSI VPD page B1, which libata provides for SATA).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm: Option<u32>,
    /// Write cache mode.
    pub write_cache: Option<WriteCache>,
    /// True if the device supports forced-unit-access writes.
    pub fua: Option<bool>,
    /// Logical sector size.
    pub logical_block_bytes: Option<u32>,
    /// Physical sector size.
    pub physical_block_bytes: Option<u32>,
    /// I/O scheduler in use.
    pub scheduler: Option<String>,
    /// `queue/nr_requests`.
    pub nr_requests: Option<u32>,
    /// `queue/read_ahead_kb`.
    pub read_ahead_kb: Option<u32>,
    /// Largest discard; 0 if unsupported.
    pub discard_max_bytes: Option<u64>,
    /// Smallest write that the device performs atomically; 0 if none. Since Linux 6.11.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_write_unit_min_bytes: Option<u64>,
    /// Largest such write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_write_unit_max_bytes: Option<u64>,
    /// File behind a loop device.
    pub backing_file: Option<String>,
    /// True if a loop device uses direct I/O on its file.
    pub direct_io: Option<bool>,
    /// True if nothing was found below it: it is a disk, or what is below cannot be seen from here.
    pub stands_on_nothing: Option<bool>,
    /// True if `/proc/diskstats` has counters for it, flush counts included (since Linux 5.5).
    pub counts_flushes: Option<bool>,
    /// True if its driver takes requests through the block layer's queue, where flushes are counted (`mq/` in sysfs).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_queue: Option<bool>,
    /// Its write counter when these facts were read; 0 if it has counted none since it appeared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes_before: Option<u64>,
    /// Its flush counter when these facts were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes_before: Option<u64>,
}

/// Kernel name prefixes of disks implemented in software.
const MADE_UP_DISKS: [&str; 11] = ["vd", "xvd", "loop", "dm-", "md", "nbd", "rbd", "bcache", "drbd", "ublk", "zd"];
/// Models that hypervisors give to virtual disks.
const MADE_UP_MODELS: [&str; 5] = ["QEMU", "VBOX", "VMware", "Virtual", "Msft"];

impl DeviceFacts {
    /// Its sysfs folder.
    pub(crate) fn sysfs_folder(&self) -> String {
        // Hidden devices have no number. sysfs writes `/` in a name as `!`.
        match (self.major, self.minor) {
            (0, 0) => format!("/sys/class/block/{}", self.name.replace('/', "!")),
            (major, minor) => format!("/sys/dev/block/{major}:{minor}"),
        }
    }

    /// True if the disk is implemented in software.
    pub(crate) fn is_made_up(&self) -> bool {
        let by_name = MADE_UP_DISKS.iter().any(|prefix| self.name.starts_with(prefix));
        let model = self.model.as_deref().unwrap_or("");
        by_name || MADE_UP_MODELS.iter().any(|maker| model.contains(maker))
    }
}

/// The server as it ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// `server_version`: `15.18 (Debian 15.18-0+deb12u1)`.
    pub version: String,
    /// `server_version_num`.
    pub version_num: u32,
    /// Folder of its programs.
    pub bin: String,
    /// Settings in force that differ from the built-in default, values with units as `current_setting` prints them.
    pub settings: BTreeMap<String, String>,
    /// Arguments of `configure`, quoted, from the view `pg_config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configure: Option<String>,
    /// Settings that decide what a commit means, always present: `fsync`, `synchronous_commit`, `full_page_writes`,
    /// `wal_sync_method`, `wal_level`, `shared_buffers`, `wal_block_size`, `block_size`, `segment_size`,
    /// `wal_segment_size`, `data_checksums`.
    pub key_settings: BTreeMap<String, String>,
    /// `shared_buffers` in bytes.
    pub shared_buffers_bytes: u64,
    /// Settings that decide what a commit means and that differed from `key_settings` after the measurement: in a new
    /// session of the clients' role, or attached to functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found_after: Vec<FoundSetting>,
    /// Unlogged tables found after the measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlogged: Vec<String>,
}

/// A setting found outside the server's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundSetting {
    /// Setting name.
    pub name: String,
    /// Value; `None` if unknown because a script sets it to a variable.
    pub value: Option<String>,
    /// Location: `line 3 of own.sql`, `function public.f()`, `a new session`.
    pub place: String,
}

/// The smallest memory that holds the data set of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fits {
    /// Smaller than shared_buffers: reads never leave the server.
    SharedBuffers,
    /// Smaller than memory, or on ZFS than the ARC's maximum: reads come from the page cache or the ARC.
    Memory,
    /// Larger than that: reads reach the device.
    Neither,
}

/// The data that the workload worked on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataFacts {
    /// Size of the workload's database.
    pub database_bytes: u64,
    /// The smallest memory that holds it.
    pub fits: Fits,
    /// Caches that were warm when the warm-up began.
    pub cache_state: String,
    /// Origin of the data: copied from a template or loaded, bytes, seconds.
    pub origin: String,
    /// Duration of the copy, seconds.
    pub copy_s: Option<f64>,
    /// Time to make the template, seconds (once per run).
    pub template_s: Option<f64>,
}

/// Facts about the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Host name.
    pub hostname: String,
    /// `uname -r`.
    pub kernel: String,
    /// Distribution from os-release.
    pub distribution: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// CPUs available to the process.
    pub cpus: u32,
    /// Memory size.
    pub memory_bytes: u64,
    /// Swap in use at the start.
    pub swap_used_bytes: Option<u64>,
    /// Clock source of the kernel.
    pub clocksource: Option<String>,
    /// CPU frequency governor.
    pub governor: Option<String>,
    /// Machine as it reports itself (DMI product or hypervisor).
    pub machine: Option<String>,
    /// True if it reports being a virtual machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_virtual: Option<bool>,
}

/// Two readings of one machine's memory may differ by less than this fraction: the kernel reserves some at boot.
const BOOT_SHARE: u64 = 64;

impl HostFacts {
    /// True if its processor is emulated (QEMU's TCG, recognized by the CPU model).
    pub fn is_emulated(&self) -> bool {
        self.cpu_model.as_deref().is_some_and(|model| model.starts_with("QEMU TCG CPU"))
    }

    /// True if both are the same machine, whichever kernel is booted.
    pub(crate) fn is_same_machine(&self, other: &HostFacts) -> bool {
        self.hostname == other.hostname
            && self.cpu_model == other.cpu_model
            && self.cpus == other.cpus
            && self.has_memory_of(other)
    }

    fn has_memory_of(&self, other: &HostFacts) -> bool {
        let (one, two) = (self.memory_bytes, other.memory_bytes);
        one.abs_diff(two) <= one.max(two) / BOOT_SHARE
    }

    /// Differences from another machine, each with both values: `kernel 6.1.0 and 6.12.9`. Empty for the same machine.
    pub(crate) fn differences(&self, other: &HostFacts) -> Vec<String> {
        let [cpu, other_cpu] =
            [self, other].map(|host| host.cpu_model.clone().unwrap_or_else(|| "not known".to_owned()));
        let [memory, other_memory] = [self, other].map(|host| Bytes(host.memory_bytes).to_string());
        let facts = [
            ("host name", self.hostname != other.hostname, self.hostname.clone(), other.hostname.clone()),
            ("kernel", self.kernel != other.kernel, self.kernel.clone(), other.kernel.clone()),
            ("CPU", self.cpu_model != other.cpu_model, cpu, other_cpu),
            ("number of CPUs", self.cpus != other.cpus, self.cpus.to_string(), other.cpus.to_string()),
            ("memory", !self.has_memory_of(other), memory, other_memory),
        ];
        let differing = facts.into_iter().filter(|(_, differs, ..)| *differs);
        differing.map(|(what, _, own, others)| format!("{what} {own} and {others}")).collect()
    }
}

//! What was really there: read back from the kernel, the devices and the server, never taken from the plan.

use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line of the kernel's mount table (`/proc/self/mountinfo`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountFacts {
    /// Where it is mounted.
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
    /// Whether it keeps a journal, where the kernel tells (ext4: `/sys/fs/ext4/<device>/journal_task`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<bool>,
    /// ZFS: the properties of the dataset that say what a sync does, by name, and parameters of the module that do.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub zfs: BTreeMap<String, String>,
}

impl MountFacts {
    /// Whether the ARC keeps the pages of files, and not the page cache nor nobody (property `primarycache`).
    #[must_use]
    pub fn is_kept_by_arc(&self) -> bool {
        self.fstype == "zfs" && self.zfs.get("primarycache").is_none_or(|kept| kept == "all")
    }
}

/// How a device says it caches writes (`queue/write_cache`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteCache {
    /// A volatile cache that needs flushes.
    WriteBack,
    /// The device says that what it acknowledged is stable; the kernel sends it no flushes.
    WriteThrough,
}

impl WriteCache {
    /// `write back`, `write through`, as the kernel prints it.
    #[must_use]
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
    /// Steps below the folder whose devices were looked for: 0 is the device that its filesystem stands on.
    pub depth: u32,
    /// Kernel name: `loop3`, `nvme0n1p2`.
    pub name: String,
    /// Device number; 0:0 for a hidden one, such as a path of a multipath NVMe (`nvme0c0n1`).
    pub major: u32,
    /// Device number.
    pub minor: u32,
    /// Capacity.
    pub size_bytes: Option<u64>,
    /// Model as the device reports it.
    pub model: Option<String>,
    /// Revision of its firmware as it reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// Serial as the device reports it.
    pub serial: Option<String>,
    /// World wide name.
    pub wwn: Option<String>,
    /// The kernel's belief that it rotates; worth nothing for virtual disks.
    pub rotational: Option<bool>,
    /// Turns per minute that the disk itself gives (SCSI VPD page B1, which libata has for SATA).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpm: Option<u32>,
    /// Write cache mode.
    pub write_cache: Option<WriteCache>,
    /// Whether the device takes forced-unit-access writes.
    pub fua: Option<bool>,
    /// Logical sector.
    pub logical_block_bytes: Option<u32>,
    /// Physical sector.
    pub physical_block_bytes: Option<u32>,
    /// I/O scheduler in use.
    pub scheduler: Option<String>,
    /// `queue/nr_requests`.
    pub nr_requests: Option<u32>,
    /// `queue/read_ahead_kb`.
    pub read_ahead_kb: Option<u32>,
    /// Largest discard; 0 where the device takes none.
    pub discard_max_bytes: Option<u64>,
    /// The smallest write that the device does whole or not at all; 0 where it does none. Since Linux 6.11.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_write_unit_min_bytes: Option<u64>,
    /// The largest such write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atomic_write_unit_max_bytes: Option<u64>,
    /// File behind a loop device.
    pub backing_file: Option<String>,
    /// Whether a loop device uses direct I/O on its file.
    pub direct_io: Option<bool>,
    /// Whether nothing was found below it: it is a disk, or what is below cannot be seen from here.
    pub stands_on_nothing: Option<bool>,
    /// The kernel has counters for it in `/proc/diskstats`, with flush counts (since Linux 5.5).
    pub counts_flushes: Option<bool>,
    /// Whether its driver takes requests through the block layer's queue, where flushes are counted (`mq/` in sysfs).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_queue: Option<bool>,
    /// Its counter of writes when these facts were read; 0 for one that has counted none since it appeared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes_before: Option<u64>,
    /// Its counter of flushes when these facts were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes_before: Option<u64>,
}

/// Kernel names of disks that someone else's software makes up.
const MADE_UP_DISKS: [&str; 11] = ["vd", "xvd", "loop", "dm-", "md", "nbd", "rbd", "bcache", "drbd", "ublk", "zd"];
/// Models that virtual machines give their disks.
const MADE_UP_MODELS: [&str; 5] = ["QEMU", "VBOX", "VMware", "Virtual", "Msft"];

impl DeviceFacts {
    /// Its folder in sysfs.
    #[must_use]
    pub(crate) fn sysfs_folder(&self) -> String {
        // Hidden devices have no number. Slashes of a name are `!` in sysfs.
        match (self.major, self.minor) {
            (0, 0) => format!("/sys/class/block/{}", self.name.replace('/', "!")),
            (major, minor) => format!("/sys/dev/block/{major}:{minor}"),
        }
    }

    /// Whether it is a disk of software.
    #[must_use]
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
    /// Every setting in force that is not the built-in default, value with its unit as `current_setting` prints it.
    pub settings: BTreeMap<String, String>,
    /// Arguments of `configure`, quoted, as the view `pg_config` has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configure: Option<String>,
    /// Settings that decide what a commit means, always present: `fsync`, `synchronous_commit`, `full_page_writes`,
    /// `wal_sync_method`, `wal_level`, `shared_buffers`, `wal_block_size`, `block_size`, `segment_size`,
    /// `wal_segment_size`, `data_checksums`.
    pub key_settings: BTreeMap<String, String>,
    /// `shared_buffers` in bytes.
    pub shared_buffers_bytes: u64,
    /// Settings that decide what a commit means, found otherwise than in `key_settings` after the measurement: by a new
    /// session of the clients' role, and those that functions carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found_after: Vec<FoundSetting>,
    /// Unlogged tables found after the measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlogged: Vec<String>,
}

/// A setting that holds somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundSetting {
    /// Its name.
    pub name: String,
    /// Its value; `None` where it cannot be told: a script sets it to a variable.
    pub value: Option<String>,
    /// Where: `line 3 of own.sql`, `function public.f()`, `a new session`.
    pub place: String,
}

/// Where the data set of a trial fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fits {
    /// Smaller than shared_buffers: reads never leave the server.
    SharedBuffers,
    /// Smaller than the machine's memory, or on ZFS than the ARC may grow: reads come from the page cache or the ARC.
    Memory,
    /// Larger than that: reads reach the device.
    Neither,
}

/// The data that the workload worked on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataFacts {
    /// Size of the workload's database.
    pub database_bytes: u64,
    /// Where it fits.
    pub fits: Fits,
    /// Which caches were warm when the warm-up began, in words.
    pub cache_state: String,
    /// How the data came: copied from a template or loaded, bytes, seconds.
    pub origin: String,
    /// Seconds that the copy took.
    pub copy_s: Option<f64>,
    /// Seconds that making the template took (once for the run).
    pub template_s: Option<f64>,
}

/// The machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Host name.
    pub hostname: String,
    /// `uname -r`.
    pub kernel: String,
    /// Distribution as os-release names it.
    pub distribution: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// CPUs that the process may use.
    pub cpus: u32,
    /// Memory.
    pub memory_bytes: u64,
    /// Swap in use at the start.
    pub swap_used_bytes: Option<u64>,
    /// Clock source of the kernel.
    pub clocksource: Option<String>,
    /// CPU frequency governor.
    pub governor: Option<String>,
    /// What the machine says it is (DMI product or hypervisor), where it says so.
    pub machine: Option<String>,
    /// Whether it is a virtual machine, as far as it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_virtual: Option<bool>,
}

/// Two readings of one machine's memory differ by less than this part of it: what the kernel takes for itself at boot.
const BOOT_SHARE: u64 = 64;

impl HostFacts {
    /// Whether its processor is emulated (QEMU's TCG, by the name that it gives its processors).
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        self.cpu_model.as_deref().is_some_and(|model| model.starts_with("QEMU TCG CPU"))
    }

    /// Whether this is the same machine, whichever kernel it has booted.
    #[must_use]
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

    /// In what another machine differs from this one, each with both values: `kernel 6.1.0 and 6.12.9`. Empty for the same
    /// machine.
    #[must_use]
    pub(crate) fn differences(&self, other: &HostFacts) -> Vec<String> {
        let cpu = |host: &HostFacts| host.cpu_model.clone().unwrap_or_else(|| "not known".to_owned());
        let memory = |host: &HostFacts| Bytes(host.memory_bytes).to_string();
        let facts = [
            ("host name", self.hostname != other.hostname, self.hostname.clone(), other.hostname.clone()),
            ("kernel", self.kernel != other.kernel, self.kernel.clone(), other.kernel.clone()),
            ("CPU", self.cpu_model != other.cpu_model, cpu(self), cpu(other)),
            ("number of CPUs", self.cpus != other.cpus, self.cpus.to_string(), other.cpus.to_string()),
            ("memory", !self.has_memory_of(other), memory(self), memory(other)),
        ];
        let differing = facts.into_iter().filter(|(_, differs, ..)| *differs);
        differing.map(|(what, _, own, others)| format!("{what} {own} and {others}")).collect()
    }
}

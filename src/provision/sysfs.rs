//! Block devices in sysfs, by device number: names, attributes, neighbours.
//!
//! Everything goes through [`Host`], so that tests use small fake trees. Absent on purpose: the meaning of attributes
//! (see [`super::devices`], [`super::guard`]).

use crate::host::{Host, files};
use std::path::{Path, PathBuf};

/// A block device by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct DeviceNumber {
    pub major: u32,
    pub minor: u32,
}

impl DeviceNumber {
    /// Reads `8:1`.
    pub fn parse(text: &str) -> Option<DeviceNumber> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// The device with this kernel name (`sda1`, `dm-0`).
    pub fn named(host: &Host, name: &str) -> Option<DeviceNumber> {
        // sysfs writes `/` in names as `!` (cciss/c0d0).
        DeviceNumber::at(host, &format!("/sys/class/block/{}", name.replace('/', "!")))
    }

    /// The device with this folder in sysfs.
    fn at(host: &Host, folder: &str) -> Option<DeviceNumber> {
        DeviceNumber::parse(&host.read_optional(format!("{folder}/dev"))?)
    }

    fn path(self) -> String {
        format!("/sys/dev/block/{}:{}", self.major, self.minor)
    }

    /// Path of an attribute.
    pub fn path_of(self, name: &str) -> String {
        format!("{}/{name}", self.path())
    }

    /// True if the kernel has it.
    pub fn exists(self, host: &Host) -> bool {
        host.exists(self.path())
    }

    /// Trimmed text of an attribute; `None` if absent or empty.
    pub fn attribute(self, host: &Host, name: &str) -> Option<String> {
        host.read_optional(format!("{}/{name}", self.path())).filter(|text| !text.is_empty())
    }

    /// The first of these attributes that it has.
    pub fn first_of(self, host: &Host, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.attribute(host, name))
    }

    /// An attribute as a fact: `unknown` if absent or empty.
    pub fn shown(self, host: &Host, name: &str) -> String {
        self.attribute(host, name).unwrap_or_else(|| "unknown".to_owned())
    }

    /// Raw bytes of an attribute that is not text.
    pub fn bytes(self, host: &Host, name: &str) -> Option<Vec<u8>> {
        files::read(&host.path(format!("{}/{name}", self.path()))).ok()
    }

    pub fn number<T: std::str::FromStr>(self, host: &Host, name: &str) -> Option<T> {
        self.attribute(host, name)?.parse().ok()
    }

    /// A flag, printed as 0 or 1.
    pub fn flag(self, host: &Host, name: &str) -> Option<bool> {
        truth(&self.attribute(host, name)?)
    }

    /// Kernel name: `nvme0n1p2`.
    pub fn name(self, host: &Host) -> Option<String> {
        self.attribute(host, "uevent")?.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(str::to_owned)
    }

    /// Its file in `/dev`, whether or not it exists.
    pub fn device_file(self, host: &Host) -> Option<PathBuf> {
        Some(Path::new("/dev").join(self.name(host)?))
    }

    pub fn is_partition(self, host: &Host) -> bool {
        self.attribute(host, "partition").is_some()
    }

    /// True if its driver takes requests through the block layer's queue.
    pub fn has_queue(self, host: &Host) -> bool {
        host.exists(format!("{}/mq", self.path()))
    }

    /// The disk that contains a partition.
    pub fn whole_disk(self, host: &Host) -> Option<DeviceNumber> {
        let number = self.is_partition(host).then(|| self.attribute(host, "../dev")).flatten();
        number.and_then(|text| DeviceNumber::parse(&text))
    }

    /// Partitions of a disk.
    pub fn partitions(self, host: &Host) -> Vec<DeviceNumber> {
        let own = self.path();
        let mut children = host.names_in(&own);
        children.retain(|name| host.exists(format!("{own}/{name}/partition")));
        children.iter().filter_map(|name| DeviceNumber::at(host, &format!("{own}/{name}"))).collect()
    }

    /// Devices that it consists of (device mapper, md), by number.
    pub fn slaves(self, host: &Host) -> Vec<DeviceNumber> {
        let slaves = format!("{}/slaves", self.path());
        host.names_in(&slaves).iter().filter_map(|name| DeviceNumber::at(host, &format!("{slaves}/{name}"))).collect()
    }

    /// Kernel names of the hidden paths of a multipath NVMe: `nvme0c1n1` of `nvme0n1`. They have no device number, and
    /// count what the device in front does not.
    pub fn hidden_paths(self, host: &Host) -> Vec<String> {
        let Some(name) = self.name(host) else { return Vec::new() };
        // A device with its own queue has no paths behind it.
        let Some((subsystem, namespace)) = multipath_parts(&name).filter(|_| !self.has_queue(host)) else {
            return Vec::new();
        };
        let wwid = self.attribute(host, "wwid");
        let mut paths = host.names_in("/sys/class/block");
        paths.retain(|path| {
            let folder = format!("/sys/class/block/{path}");
            let theirs = host.read_optional(format!("{folder}/wwid"));
            is_path_of(path, subsystem, namespace)
                && host.read_optional(format!("{folder}/hidden")).is_none_or(|hidden| hidden == "1")
                && (wwid.is_none() || theirs.is_none() || theirs == wwid)
        });
        paths.sort();
        paths
    }

    /// Kernel names of the devices built on it.
    pub fn holders(self, host: &Host) -> Vec<String> {
        host.names_in(format!("{}/holders", self.path()))
    }

    /// The file behind a loop device, without the marker of a deleted one.
    pub fn backing_file(self, host: &Host) -> Option<String> {
        let path = self.attribute(host, "loop/backing_file")?;
        Some(path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned())
    }
}

/// Parts of `nvme0n1` before and after the `n` of the namespace.
fn multipath_parts(name: &str) -> Option<(&str, &str)> {
    let (subsystem, namespace) = name.strip_prefix("nvme")?.split_once('n')?;
    (is_number(subsystem) && is_number(namespace)).then_some((subsystem, namespace))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// True for `nvme<subsystem>c<controller>n<namespace>`.
fn is_path_of(path: &str, subsystem: &str, namespace: &str) -> bool {
    let rest = path.strip_prefix("nvme").and_then(|rest| rest.strip_prefix(subsystem)?.strip_prefix('c'));
    rest.and_then(|rest| rest.strip_suffix(namespace)?.strip_suffix('n')).is_some_and(is_number)
}

/// The bracketed item of a list (`none [mq-deadline] kyber`); the whole text without brackets.
pub(super) fn chosen(text: &str) -> &str {
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or(text, |(chosen, _)| chosen)
}

/// A flag as sysfs prints it.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// All loop devices with a file, and its path.
pub(super) fn loops(host: &Host) -> Vec<(DeviceNumber, String)> {
    let all = host.names_in("/sys/block").into_iter().filter(|name| name.starts_with("loop"));
    let nodes = all.filter_map(|name| DeviceNumber::at(host, &format!("/sys/block/{name}")));
    nodes.filter_map(|node| Some((node, node.backing_file(host)?))).collect()
}

/// Devices of the btrfs that includes `name`: kernel names, from `/sys/fs/btrfs/<uuid>/devices`.
pub(super) fn btrfs_devices(host: &Host, name: &str) -> Vec<String> {
    let filesystems = host.names_in("/sys/fs/btrfs").into_iter();
    let mut members = filesystems.map(|uuid| host.names_in(format!("/sys/fs/btrfs/{uuid}/devices")));
    members.find(|all| all.iter().any(|one| one == name)).unwrap_or_default()
}

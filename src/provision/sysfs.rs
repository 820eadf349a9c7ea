//! Block devices as sysfs shows them, by device number: names, attributes, neighbours.
//!
//! Everything goes through [`Host`], so that tests stand on small fake trees. Absent on purpose: what the attributes
//! mean (see [`super::devices`], [`super::guard`]).

use crate::host::{Host, files};

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

    /// The device of a kernel name (`sda1`, `dm-0`).
    pub fn named(host: &Host, name: &str) -> Option<DeviceNumber> {
        // Slashes of a name are `!` in sysfs (cciss/c0d0).
        DeviceNumber::at(host, &format!("/sys/class/block/{}", name.replace('/', "!")))
    }

    /// The device whose folder in sysfs it is.
    fn at(host: &Host, folder: &str) -> Option<DeviceNumber> {
        DeviceNumber::parse(&host.read_optional(format!("{folder}/dev"))?)
    }

    fn path(self) -> String {
        format!("/sys/dev/block/{}:{}", self.major, self.minor)
    }

    /// The file of an attribute.
    pub fn path_of(self, name: &str) -> String {
        format!("{}/{name}", self.path())
    }

    /// Whether the kernel has it.
    pub fn exists(self, host: &Host) -> bool {
        host.exists(self.path())
    }

    /// The trimmed text of an attribute; `None` where there is none or it is empty.
    pub fn attribute(self, host: &Host, name: &str) -> Option<String> {
        host.read_optional(format!("{}/{name}", self.path())).filter(|text| !text.is_empty())
    }

    /// The bytes of an attribute that is not text.
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
        let uevent = self.attribute(host, "uevent")?;
        uevent.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(str::to_owned)
    }

    pub fn is_partition(self, host: &Host) -> bool {
        self.attribute(host, "partition").is_some()
    }

    /// Whether its driver takes requests through the block layer's queue.
    pub fn has_queue(self, host: &Host) -> bool {
        host.exists(format!("{}/mq", self.path()))
    }

    /// The disk that a partition is part of.
    pub fn whole_disk(self, host: &Host) -> Option<DeviceNumber> {
        self.is_partition(host)
            .then(|| self.attribute(host, "../dev"))
            .flatten()
            .and_then(|text| DeviceNumber::parse(&text))
    }

    /// Partitions of a disk.
    pub fn partitions(self, host: &Host) -> Vec<DeviceNumber> {
        let own = self.path();
        let mut children = host.names_in(&own);
        children.retain(|name| host.exists(format!("{own}/{name}/partition")));
        children.iter().filter_map(|name| DeviceNumber::at(host, &format!("{own}/{name}"))).collect()
    }

    /// The devices that it is made of (device mapper, md), by number.
    pub fn slaves(self, host: &Host) -> Vec<DeviceNumber> {
        let slaves = format!("{}/slaves", self.path());
        host.names_in(&slaves).iter().filter_map(|name| DeviceNumber::at(host, &format!("{slaves}/{name}"))).collect()
    }

    /// Kernel names of the hidden paths of a multipath NVMe: `nvme0c1n1` of `nvme0n1`. These are devices without a
    /// number, which count what the one in front does not.
    pub fn hidden_paths(self, host: &Host) -> Vec<String> {
        let Some(name) = self.name(host) else { return Vec::new() };
        // A device with a queue of its own has no paths behind it.
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

    /// Kernel names of the devices that stand on it.
    pub fn holders(self, host: &Host) -> Vec<String> {
        host.names_in(format!("{}/holders", self.path()))
    }

    /// The file behind a loop device; the mark of a deleted one taken off.
    pub fn backing_file(self, host: &Host) -> Option<String> {
        self.attribute(host, "loop/backing_file").map(|path| plain_backing_file(&path))
    }
}

/// `nvme0n1`: what stands before and after the `n` of the namespace.
fn multipath_parts(name: &str) -> Option<(&str, &str)> {
    let (subsystem, namespace) = name.strip_prefix("nvme")?.split_once('n')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (digits(subsystem) && digits(namespace)).then_some((subsystem, namespace))
}

/// Whether a name is `nvme<subsystem>c<controller>n<namespace>`.
fn is_path_of(path: &str, subsystem: &str, namespace: &str) -> bool {
    let rest = path.strip_prefix("nvme").and_then(|rest| rest.strip_prefix(subsystem)?.strip_prefix('c'));
    let controller = rest.and_then(|rest| rest.strip_suffix(namespace)?.strip_suffix('n'));
    controller.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// The one in brackets of a list (`none [mq-deadline] kyber`); all of a text without one.
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

fn plain_backing_file(path: &str) -> String {
    path.strip_suffix(" (deleted)").unwrap_or(path).to_owned()
}

/// All loop devices that have a file, with its path.
pub(super) fn loops(host: &Host) -> Vec<(DeviceNumber, String)> {
    let all = host.names_in("/sys/block").into_iter().filter(|name| name.starts_with("loop"));
    let nodes = all.filter_map(|name| DeviceNumber::at(host, &format!("/sys/block/{name}")));
    nodes.filter_map(|node| Some((node, node.backing_file(host)?))).collect()
}

/// The devices of the btrfs that `name` is part of: kernel names, from `/sys/fs/btrfs/<uuid>/devices`.
pub(super) fn btrfs_devices(host: &Host, name: &str) -> Vec<String> {
    let filesystems = host.names_in("/sys/fs/btrfs").into_iter();
    let mut members = filesystems.map(|uuid| host.names_in(format!("/sys/fs/btrfs/{uuid}/devices")));
    members.find(|all| all.iter().any(|one| one == name)).unwrap_or_default()
}

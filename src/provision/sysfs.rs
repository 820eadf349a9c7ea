//! Block devices as sysfs shows them, by device number: names, attributes, neighbours.
//!
//! Everything goes through [`Host`], so that tests stand on small fake trees. Absent on purpose: what the attributes
//! mean (see [`super::devices`], [`super::guard`]).

use crate::host::Host;
use std::fs;
use std::path::PathBuf;

/// A block device by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Node {
    pub major: u32,
    pub minor: u32,
}

impl Node {
    /// Reads `8:1`.
    pub fn parse(text: &str) -> Option<Node> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Node { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// The device of a kernel name (`sda1`, `dm-0`).
    pub fn named(host: &Host, name: &str) -> Option<Node> {
        // Slashes of a name are `!` in sysfs (cciss/c0d0).
        Node::parse(&host.read_optional(format!("/sys/class/block/{}/dev", name.replace('/', "!")))?)
    }

    fn path(self) -> String {
        format!("/sys/dev/block/{}:{}", self.major, self.minor)
    }

    /// Whether the kernel has it.
    pub fn exists(self, host: &Host) -> bool {
        host.path(self.path()).exists()
    }

    /// The trimmed text of an attribute; `None` where there is none or it is empty.
    pub fn attribute(self, host: &Host, name: &str) -> Option<String> {
        host.read_optional(format!("{}/{name}", self.path())).filter(|text| !text.is_empty())
    }

    /// The bytes of an attribute that is not text.
    pub fn bytes(self, host: &Host, name: &str) -> Option<Vec<u8>> {
        fs::read(host.path(format!("{}/{name}", self.path()))).ok()
    }

    /// A whole number.
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

    /// The disk that a partition is part of.
    pub fn whole_disk(self, host: &Host) -> Option<Node> {
        self.is_partition(host).then(|| self.attribute(host, "../dev")).flatten().and_then(|text| Node::parse(&text))
    }

    /// Partitions of a disk.
    pub fn partitions(self, host: &Host) -> Vec<Node> {
        let children = entries(host.path(self.path()));
        let children = children.into_iter().filter(|(_, path)| path.join("partition").exists());
        children.filter_map(|(_, path)| Node::parse(&fs::read_to_string(path.join("dev")).ok()?)).collect()
    }

    /// The devices that it is made of (device mapper, md), by number.
    pub fn slaves(self, host: &Host) -> Vec<Node> {
        let slaves = entries(host.path(format!("{}/slaves", self.path())));
        slaves.into_iter().filter_map(|(_, path)| Node::parse(&fs::read_to_string(path.join("dev")).ok()?)).collect()
    }

    /// Kernel names of the devices that stand on it.
    pub fn holders(self, host: &Host) -> Vec<String> {
        entries(host.path(format!("{}/holders", self.path()))).into_iter().map(|(name, _)| name).collect()
    }

    /// The file behind a loop device; the mark of a deleted one taken off.
    pub fn backing_file(self, host: &Host) -> Option<String> {
        self.attribute(host, "loop/backing_file").map(|path| plain_backing_file(&path))
    }
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
pub(super) fn loops(host: &Host) -> Vec<(Node, String)> {
    let all = entries(host.path("/sys/block")).into_iter().filter(|(name, _)| name.starts_with("loop"));
    all.filter_map(|(_, path)| {
        let node = Node::parse(&fs::read_to_string(path.join("dev")).ok()?)?;
        Some((node, node.backing_file(host)?))
    })
    .collect()
}

/// The devices of the btrfs that `name` is part of: kernel names, from `/sys/fs/btrfs/<uuid>/devices`.
pub(super) fn btrfs_devices(host: &Host, name: &str) -> Vec<String> {
    let filesystems = entries(host.path("/sys/fs/btrfs"));
    let members = |path: PathBuf| entries(path.join("devices")).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    filesystems
        .into_iter()
        .map(|(_, path)| members(path))
        .find(|all| all.iter().any(|one| one == name))
        .unwrap_or_default()
}

/// Entries of a folder, sorted by name; none where it cannot be read.
fn entries(folder: PathBuf) -> Vec<(String, PathBuf)> {
    let Ok(read) = fs::read_dir(folder) else { return Vec::new() };
    let mut all: Vec<_> =
        read.flatten().map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect();
    all.sort();
    all
}

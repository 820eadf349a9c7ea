//! The disks of this machine, as a plan names them: `pgstrata doctor`.

use crate::host::{Host, folders, paths};
use crate::provision::guard;
use crate::provision::identity::{BlockDevice, Identity};
use crate::provision::sysfs::{self, DeviceNumber};
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FoundDisk {
    /// Path without symlinks: `/dev/nvme0n1`.
    pub path: PathBuf,
    /// Path that does not depend on the order of discovery; `None` if udev made none.
    pub by_id: Option<PathBuf>,
    #[serde(flatten)]
    pub identity: Identity,
    /// `write back` or `write through`, as the kernel shows it.
    pub write_cache: Option<String>,
    /// The active I/O scheduler.
    pub scheduler: Option<String>,
    /// True if the device reports that it rotates.
    pub rotational: Option<bool>,
    /// Current users of the device, as text; empty if there are none.
    pub in_use: Vec<String>,
}

/// Kernel names of block devices that are not disks: loop devices, memory, optical and floppy drives.
const NO_DISKS: [&str; 5] = ["loop", "ram", "zram", "sr", "fd"];

/// Prefixes of names below `/dev/disk/by-id` that contain neither model nor serial.
const OPAQUE: [&str; 3] = ["wwn-", "nvme-eui.", "nvme-nvme."];

/// Every disk with a size, sorted by name. Reads, never changes.
pub fn found(host: &Host) -> Vec<FoundDisk> {
    let links: Vec<PathBuf> = folders::list(Path::new("/dev/disk/by-id")).unwrap_or_default();
    let names = host.names_in("/sys/block").into_iter();
    let disks = names.filter(|name| !NO_DISKS.iter().any(|other| name.starts_with(other)));
    disks.filter_map(|name| look_at(host, &name, &links)).collect()
}

fn look_at(host: &Host, name: &str, links: &[PathBuf]) -> Option<FoundDisk> {
    let node = DeviceNumber::named(host, name)?;
    let identity = Identity::of(host, node);
    identity.size_bytes.filter(|bytes| *bytes > 0)?;
    let device = BlockDevice::named(name, node);
    let uses = guard::uses(host, &device).unwrap_or_else(|e| vec![e.to_string()]);
    let mut mine = links.iter().filter(|link| paths::resolved(link) == device.path);
    Some(FoundDisk {
        by_id: mine.clone().find(|link| !is_opaque(link)).or(mine.next()).cloned(),
        identity,
        write_cache: node.attribute(host, "queue/write_cache"),
        scheduler: node.attribute(host, "queue/scheduler").map(|text| sysfs::chosen(&text).to_owned()),
        rotational: node.flag(host, "queue/rotational"),
        // Without root opening a disk fails, which does not mean that it is in use.
        in_use: uses.into_iter().filter(|used| !used.contains("Permission denied")).collect(),
        path: device.path,
    })
}

fn is_opaque(link: &Path) -> bool {
    let name = link.file_name().unwrap_or_default().to_string_lossy();
    OPAQUE.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_listed_for_plans_and_loops_are_not() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (name, size) in [("nvme0n1", "2048"), ("loop0", "2048"), ("sda", "0")] {
            put(&format!("sys/class/block/{name}/dev"), if name == "nvme0n1" { "259:0" } else { "8:0" });
            put(&format!("sys/block/{name}/size"), size);
        }
        let disk = "sys/dev/block/259:0";
        for (file, text) in [
            ("size", "2048\n"),
            ("serial", "S5GX\n"),
            ("uevent", "DEVNAME=nvme0n1\n"),
            ("queue/scheduler", "[none] mq-deadline\n"),
            ("queue/write_cache", "write back\n"),
            ("queue/rotational", "0\n"),
        ] {
            put(&format!("{disk}/{file}"), text);
        }
        put("sys/dev/block/8:0/size", "0\n");
        put("proc/self/mountinfo", "");
        put("proc/swaps", "Filename Type Size Used Priority\n");
        let found = found(&Host::rooted(root.path()));
        assert_eq!(found.len(), 1, "{found:?}");
        let disk = &found[0];
        assert_eq!(disk.path, Path::new("/dev/nvme0n1"));
        assert_eq!((disk.identity.serial.as_deref(), disk.identity.size_bytes), (Some("S5GX"), Some(1 << 20)));
        assert_eq!((disk.scheduler.as_deref(), disk.rotational), (Some("none"), Some(false)));
        assert_eq!(disk.write_cache.as_deref(), Some("write back"));
    }
}

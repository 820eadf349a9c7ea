//! Block devices: where a path leads, and how a device identifies itself.

use super::sysfs::DeviceNumber;
use crate::error::{Error, Result};
use crate::host::{Host, paths};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Identity of a device. A partition has its disk's model, serial and WWN, and a size of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Model reported by the device.
    pub model: Option<String>,
    /// Serial reported by the device.
    pub serial: Option<String>,
    /// World wide name reported by the device.
    pub wwn: Option<String>,
    pub size_bytes: Option<u64>,
}

impl Identity {
    /// Reads the identity where drivers publish it: NVMe, SCSI and SATA, virtio, MMC, and udev's database for the rest.
    pub(super) fn of(host: &Host, node: DeviceNumber) -> Identity {
        let disk = node.whole_disk(host).unwrap_or(node);
        let udev = host.read_optional(format!("/run/udev/data/b{}:{}", disk.major, disk.minor)).unwrap_or_default();
        let [udev_serial, udev_wwn] = ["E:ID_SERIAL_SHORT=", "E:ID_WWN="]
            .map(|key| udev.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned));
        Identity {
            // A device mapper mapping has a name and no model.
            model: disk.first_of(host, &["device/model", "device/name"]),
            serial: disk
                .first_of(host, &["device/serial", "serial"])
                .or_else(|| disk.bytes(host, "device/vpd_pg80").and_then(|page| unit_serial(&page)))
                .or(udev_serial),
            wwn: disk.first_of(host, &["wwid", "device/wwid"]).or(udev_wwn),
            // The kernel counts 512-byte sectors here whatever the device's own size of sectors (block/genhd.c).
            size_bytes: node.number::<u64>(host, "size").map(|sectors| sectors.saturating_mul(512)),
        }
    }
}

/// SCSI's vital product data page 0xb1: bytes 4 and 5 are the revolutions per minute, 0 for "not reported" and 1 for
/// "does not rotate" (SBC, Block Device Characteristics).
pub(crate) fn turns_per_minute(page: &[u8]) -> Option<u32> {
    let rate = u16::from_be_bytes([*page.get(4)?, *page.get(5)?]);
    // Values below 401 and 0xffff are reserved.
    (page.get(1) == Some(&0xb1) && (0x0401..0xffff).contains(&rate)).then_some(u32::from(rate))
}

/// SCSI's vital product data page 0x80: a header of four bytes, the last two the length, then the serial in ASCII.
pub(super) fn unit_serial(page: &[u8]) -> Option<String> {
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let text = String::from_utf8_lossy(page.get(4..4 + length)?).trim().to_owned();
    (page.get(1) == Some(&0x80) && !text.is_empty()).then_some(text)
}

/// An existing block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockDevice {
    /// Path without symlinks: `/dev/nvme0n1`.
    pub path: PathBuf,
    pub node: DeviceNumber,
}

impl BlockDevice {
    /// The block device that a path leads to.
    ///
    /// # Errors
    /// When nothing is there, or it is not a block device.
    pub fn find(path: &Path) -> Result<BlockDevice> {
        let real = paths::resolve(path)?;
        let found = paths::look_at(&real)?;
        if found.kind != paths::Kind::BlockDevice {
            return Err(Error::user(format!("{} is not a block device", path.display())));
        }
        let (major, minor) = found.device;
        Ok(BlockDevice { path: real, node: DeviceNumber { major, minor } })
    }

    /// The device with this kernel name, in which sysfs writes `/` as `!` (cciss!c0d0).
    pub(super) fn named(name: &str, node: DeviceNumber) -> BlockDevice {
        BlockDevice { path: Path::new("/dev").join(name.replace('!', "/")), node }
    }

    /// The block device that a path leads to, if there is one and it has a size.
    pub(super) fn with_size(host: &Host, path: &Path) -> Option<BlockDevice> {
        let device = BlockDevice::find(path).ok()?;
        device.node.number::<u64>(host, "size").filter(|size| *size > 0).map(|_| device)
    }

    /// The device and its partitions.
    pub(super) fn nodes(&self, host: &Host) -> Vec<DeviceNumber> {
        std::iter::once(self.node).chain(self.node.partitions(host)).collect()
    }
}

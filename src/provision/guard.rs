//! The guard before real devices: is it the device that the plan means, does it carry anything, does anything use it?
//!
//! Owns the checks alone; [`super::disk`] decides by them. Everything here only reads.

use super::devices::Identity;
use super::mount;
use super::sysfs::{self, DeviceNumber};
use crate::error::{Context, Error, Result};
use crate::host::command::Command;
use crate::host::{Host, files, paths};
use crate::parse::wipefs::{self, Signature};
use crate::parse::{mountinfo, swaps};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A block device that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockDevice {
    /// Path without symlinks: `/dev/nvme0n1`.
    pub path: PathBuf,
    pub node: DeviceNumber,
}

impl BlockDevice {
    /// The block device that a path leads to.
    ///
    /// # Errors
    /// When there is nothing, or it is no block device.
    pub fn find(path: &Path) -> Result<BlockDevice> {
        let real = paths::resolve(path)?;
        let found = paths::look_at(&real)?;
        if found.kind != paths::Kind::BlockDevice {
            return Err(Error::user(format!("{} is not a block device", path.display())));
        }
        let (major, minor) = found.device;
        Ok(BlockDevice { path: real, node: DeviceNumber { major, minor } })
    }

    /// It and its partitions.
    fn nodes(&self, host: &Host) -> Vec<DeviceNumber> {
        std::iter::once(self.node).chain(self.node.partitions(host)).collect()
    }
}

/// What does not fit between the device and the serial or WWN that a plan gives; `None` when all that is given fits.
/// A device that does not tell its serial never fits one.
pub(super) fn mistaken(identity: &Identity, serial: Option<&str>, wwn: Option<&str>) -> Option<String> {
    let compare = |what: &str, wanted: Option<&str>, found: &Option<String>| match (wanted, found) {
        (None, _) => None,
        (Some(wanted), Some(found)) if wanted == found => None,
        (Some(wanted), Some(found)) => Some(format!("its {what} is `{found}`, expected `{wanted}`")),
        (Some(wanted), None) => Some(format!("it reports no {what}; expected `{wanted}`")),
    };
    let neither = || Some("neither its serial nor its WWN is given".to_owned());
    match (serial, wwn) {
        (None, None) => neither(),
        _ => compare("serial", serial, &identity.serial).or_else(|| compare("WWN", wwn, &identity.wwn)),
    }
}

/// What the device carries: filesystem, RAID and LVM signatures, a partition table, in words.
///
/// # Errors
/// When wipefs fails, for instance without root.
pub(super) fn signatures(host: &Host, device: &BlockDevice) -> Result<Vec<Signature>> {
    let listed = host.run(&Command::new("wipefs").args(["--no-act", "--json"]).arg(&device.path))?;
    wipefs::parse(&listed.stdout)
}

/// What the device carries, in words: its signatures and the partitions that the kernel sees on it.
///
/// # Errors
/// When wipefs fails, for instance without root.
pub(super) fn contents(host: &Host, device: &BlockDevice) -> Result<Vec<String>> {
    let mut found: Vec<String> = signatures(host, device)?.iter().map(described).collect();
    let partitions = device.node.partitions(host);
    found.extend(partitions.iter().map(|node| format!("partition {}", node.name(host).unwrap_or_default())));
    Ok(found)
}

/// Places all over a device that are looked at for bytes, and bytes at each: 16 MiB of reads, a second on a slow disk.
const SPOTS: u64 = 256;
const SPOT_BYTES: u64 = 64 << 10;

/// Stands at the start of a disk that a run has used.
const FREE: &[u8] = b"pgstrata used this disk: its bytes are nobody's data\n";

/// In words, where a device without any signature holds something other than zeroes at one of [`SPOTS`] places evenly
/// over it, its start and end among them; `None` for a blank one and for one that a run has used and marked.
///
/// # Errors
/// When it cannot be read.
pub(super) fn unknown_bytes(host: &Host, device: &BlockDevice) -> Result<Option<String>> {
    let bytes = device.node.number::<u64>(host, "size").unwrap_or(0).saturating_mul(512);
    let length = SPOT_BYTES.min(bytes);
    let last = bytes - length;
    for spot in 0..SPOTS {
        let offset = (u128::from(last) * u128::from(spot) / u128::from(SPOTS - 1)) as u64 / 512 * 512;
        let found = files::read_at(&device.path, offset, length as usize)?;
        if spot == 0 && found.starts_with(FREE) {
            return Ok(None);
        }
        if let Some(at) = found.iter().position(|byte| *byte != 0) {
            let place = offset + at as u64;
            return Ok(Some(format!("unknown data, first found at {place}")));
        }
    }
    Ok(None)
}

/// What a run leaves at the start of a disk.
fn mark_of(run: &str) -> Vec<u8> {
    [FREE, format!("run {run}\n").as_bytes()].concat()
}

/// Whether the start of a device says that this run was the last to use it.
///
/// # Errors
/// When it cannot be read.
pub(super) fn is_marked_by(device: &BlockDevice, run: &str) -> Result<bool> {
    let mark = mark_of(run);
    files::read_at(&device.path, 0, mark.len()).map(|start| start == mark)
}

/// Writes at the start of a device that its bytes are nobody's data, and which run was the last to use it.
///
/// # Errors
/// When it cannot be written.
pub(super) fn mark_free(device: &BlockDevice, run: &str) -> Result<()> {
    let Some(mut file) = files::open_to_change(&device.path)? else { return Ok(()) };
    let written = file.write_all(&mark_of(run)).and_then(|()| file.sync_all());
    written.or_host(|| format!("mark {} as used", device.path.display()))
}

fn described(signature: &Signature) -> String {
    let label = signature.label.as_ref().map(|label| format!(" labelled `{label}`")).unwrap_or_default();
    let uuid = signature.uuid.as_ref().map(|uuid| format!(", UUID {uuid}")).unwrap_or_default();
    format!("{}{label}{uuid}", signature.kind)
}

/// What uses the device or a partition of it now, in words: mounts, holders, swap, loop devices, an exclusive opener.
/// Empty when nothing does. A write-protected device counts as used.
///
/// # Errors
/// When the mount table or the swap table cannot be read.
pub(super) fn uses(host: &Host, device: &BlockDevice) -> Result<Vec<String>> {
    let nodes = device.nodes(host);
    let mut uses = mounts(host, device, &nodes)?;
    for node in &nodes {
        let name = node.name(host).unwrap_or_default();
        uses.extend(node.holders(host).into_iter().map(|holder| format!("{holder} uses {name}")));
    }
    for area in swaps::parse(&host.read("/proc/swaps")?)? {
        if leads_to(&area, &nodes) {
            uses.push(format!("{area} is used for swap"));
        }
    }
    for (node, file) in sysfs::loops(host) {
        if leads_to(&file, &nodes) {
            uses.push(format!("{} uses it as its backing file", node.name(host).unwrap_or_default()));
        }
    }
    if device.node.flag(host, "ro") == Some(true) {
        uses.push("it is write-protected".to_owned());
    }
    // O_EXCL on a block device fails while the kernel or anybody else holds it exclusively (open(2)): this also finds
    // what leaves no trace above, as the further members of a btrfs.
    if let Err(e) = files::open_exclusively(&device.path) {
        uses.push(format!("it cannot be opened exclusively: {e}"));
    }
    Ok(uses)
}

/// Mounts of the device or its partitions, by number and by source.
fn mounts(host: &Host, device: &BlockDevice, nodes: &[DeviceNumber]) -> Result<Vec<String>> {
    let table = mount::table(host)?;
    let holds = |mount: &&mountinfo::Mount| {
        let own = DeviceNumber { major: mount.major, minor: mount.minor };
        nodes.contains(&own) || Path::new(&mount.source) == device.path || leads_to(&mount.source, nodes)
    };
    Ok(table.iter().filter(holds).map(|mount| format!("{} is mounted on {}", mount.source, mount.target)).collect())
}

/// Whether the device is mounted.
///
/// # Errors
/// When the mount table cannot be read.
pub(super) fn is_mounted(host: &Host, device: &BlockDevice) -> Result<bool> {
    mounts(host, device, &device.nodes(host)).map(|mounts| !mounts.is_empty())
}

fn leads_to(path: &str, nodes: &[DeviceNumber]) -> bool {
    path.starts_with('/') && BlockDevice::find(Path::new(path)).is_ok_and(|device| nodes.contains(&device.node))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(serial: Option<&str>, wwn: Option<&str>) -> Identity {
        Identity { serial: serial.map(str::to_owned), wwn: wwn.map(str::to_owned), ..Identity::default() }
    }

    #[test]
    fn only_the_very_serial_or_wwn_fits() {
        let disk = identity(Some("S5GX"), Some("eui.1"));
        assert_eq!(mistaken(&disk, Some("S5GX"), None), None);
        assert_eq!(mistaken(&disk, None, Some("eui.1")), None);
        assert_eq!(mistaken(&disk, Some("S5GX"), Some("eui.1")), None);
        assert_eq!(mistaken(&disk, Some("S5G"), None).unwrap(), "its serial is `S5GX`, expected `S5G`");
        assert_eq!(mistaken(&disk, Some("S5GX"), Some("eui.2")).unwrap(), "its WWN is `eui.1`, expected `eui.2`");
        assert!(mistaken(&disk, None, None).is_some());
        assert!(mistaken(&identity(None, None), Some(""), None).is_some());
    }

    #[test]
    fn a_file_is_no_block_device_and_a_missing_one_is_told() {
        assert!(BlockDevice::find(Path::new("/etc/passwd")).unwrap_err().to_string().contains("not a block device"));
        assert!(BlockDevice::find(Path::new("/dev/no-such")).unwrap_err().to_string().contains("/dev/no-such"));
    }
}

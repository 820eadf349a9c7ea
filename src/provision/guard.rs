//! The guard of real devices: is it the device that the plan means, does it carry anything, does anything use it?
//!
//! Only makes the checks; [`super::disk`] acts on them. Nearly everything here only reads.

use super::identity::{BlockDevice, Identity};
use super::mount_table;
use super::sysfs::{self, DeviceNumber};
use crate::error::{Context, Error, Result};
use crate::host::command::Command;
use crate::host::{Host, files, folders, loops};
use crate::parse::swaps;
use crate::parse::wipefs::{self, Signature};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Describes the mismatch between the device and the serial or WWN in the plan; `None` if every given one matches. A
/// device that reports no serial never matches one.
pub(super) fn mistaken(identity: &Identity, serial: Option<&str>, wwn: Option<&str>) -> Option<String> {
    match (serial, wwn) {
        (None, None) => Some("neither its serial nor its WWN is given".to_owned()),
        _ => differs("serial", serial, identity.serial.as_deref())
            .or_else(|| differs("WWN", wwn, identity.wwn.as_deref())),
    }
}

fn differs(what: &str, wanted: Option<&str>, found: Option<&str>) -> Option<String> {
    match (wanted?, found) {
        (wanted, Some(found)) if wanted == found => None,
        (wanted, Some(found)) => Some(format!("its {what} is `{found}`, expected `{wanted}`")),
        (wanted, None) => Some(format!("it reports no {what}; expected `{wanted}`")),
    }
}

/// Signatures on the device, as text: filesystem, RAID, LVM, and partition table.
///
/// # Errors
/// When wipefs fails, for instance without root.
pub(super) fn signatures(host: &Host, device: &BlockDevice) -> Result<Vec<Signature>> {
    let listed = host.run(&Command::new("wipefs").args(["--no-act", "--json"]).arg(&device.path))?;
    wipefs::parse(&listed.stdout)
}

/// The first signature of a kind on the device that a path leads to.
///
/// # Errors
/// When there is no such device; as [`signatures`].
pub(super) fn signature(host: &Host, path: &Path, kind: &str) -> Result<Option<Signature>> {
    let found = signatures(host, &BlockDevice::find(path)?)?;
    Ok(found.into_iter().find(|signature| signature.kind == kind))
}

/// Contents of the device, as text: its signatures and the partitions that the kernel sees on it.
///
/// # Errors
/// When wipefs fails, for instance without root.
pub(super) fn contents(host: &Host, device: &BlockDevice) -> Result<Vec<String>> {
    let mut found: Vec<String> = signatures(host, device)?.iter().map(described).collect();
    let partitions = device.node.partitions(host);
    found.extend(partitions.iter().map(|node| format!("partition {}", node.name(host).unwrap_or_default())));
    Ok(found)
}

/// Number of spots read across the device, and bytes at each: 16 MiB of reads, a second on a slow disk.
const SPOTS: u64 = 256;
const SPOT_BYTES: u64 = 64 << 10;

/// Written at the start of a disk that a run has used.
const FREE: &[u8] = b"pgstrata used this disk: its bytes are nobody's data\n";

/// Where this machine keeps checksums of what runs left on its disks, whatever their state folder: a mark on a disk is
/// only as good as the knowledge of the rest of it.
const LEFT: &str = "/var/lib/pgstrata/disks";

/// Checksum of the spots of a disk as a run left it.
struct Left {
    run: String,
    seed: String,
    sum: String,
}

impl Left {
    fn path(host: &Host, device: &BlockDevice) -> PathBuf {
        let Identity { serial, wwn, .. } = Identity::of(host, device.node);
        let partition = device.node.attribute(host, "partition");
        host.path(LEFT).join(files::sha256(format!("{serial:?} {wwn:?} {partition:?}").as_bytes()))
    }

    /// The record of a disk; `None` if others could have written it.
    fn known(host: &Host, device: &BlockDevice) -> Option<Left> {
        folders::open_trusted(&host.path(LEFT)).ok()?;
        let text = files::read_text(&Left::path(host, device)).ok()?;
        let mut words = text.split_whitespace().map(str::to_owned);
        Some(Left { run: words.next()?, seed: words.next()?, sum: words.next()? })
    }

    /// True if all spots are unchanged.
    fn is_as_left(&self, host: &Host, device: &BlockDevice) -> Result<bool> {
        Ok(sum_of_spots(host, device, &self.seed)? == self.sum)
    }
}

/// Spots of a device with their offsets, including its start and end. Each of the others is at a random position within its
/// share of the device, by the seed, so that no data layout can escape every check.
fn spots(host: &Host, device: &BlockDevice, seed: &str) -> impl Iterator<Item = Result<(u64, Vec<u8>)>> {
    let bytes = device.node.number::<u64>(host, "size").unwrap_or(0).saturating_mul(512);
    let length = SPOT_BYTES.min(bytes);
    let (last, seed) = (bytes - length, u64::from_str_radix(seed, 16).unwrap_or(0));
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let others = (0..SPOTS).map(|share| (last / SPOTS * share + random.next_u64() % (last / SPOTS + 1)) / 512 * 512);
    let offsets: Vec<u64> = [0, last / 512 * 512].into_iter().chain(others).collect();
    offsets.into_iter().map(move |offset| Ok((offset, files::read_at(&device.path, offset, length as usize)?)))
}

fn sum_of_spots(host: &Host, device: &BlockDevice, seed: &str) -> Result<String> {
    let read = spots(host, device, seed).map(|read| Ok(read?.1)).collect::<Result<Vec<_>>>()?;
    Ok(files::sha256(&read.concat()))
}

/// Describes bytes other than zero at one of [`SPOTS`] spots across a device without any signature; `None` for a blank
/// device, and for one that is unchanged since a run on this machine.
///
/// # Errors
/// When it cannot be read.
pub(super) fn unknown_bytes(host: &Host, device: &BlockDevice) -> Result<Option<String>> {
    let left = Left::known(host, device);
    if let Some(left) = &left
        && left.is_as_left(host, device)?
    {
        return Ok(None);
    }
    for place in spots(host, device, &files::random_id()?) {
        let (offset, found) = place?;
        let Some(at) = found.iter().position(|byte| *byte != 0) else { continue };
        let why = match left {
            Some(left) => format!("; something was written since the run {} used the disk", left.run),
            None if found.starts_with(FREE) => {
                format!("; a run has marked it as its own, but {LEFT} of this machine does not know that")
            }
            None => String::new(),
        };
        return Ok(Some(format!("unknown data, first found at {}{why}", offset + at as u64)));
    }
    Ok(None)
}

/// True if this run was the last to use a device, and its spots have not been written since.
///
/// # Errors
/// When it cannot be read.
pub(super) fn is_left_by(host: &Host, device: &BlockDevice, run: &str) -> Result<bool> {
    Left::known(host, device).filter(|left| left.run == run).map_or(Ok(false), |left| left.is_as_left(host, device))
}

/// Marks at the start of a device that its bytes are nobody's data, and records what the run left on it.
///
/// # Errors
/// When one of both cannot be written.
pub(super) fn mark_free(host: &Host, device: &BlockDevice, run: &str) -> Result<()> {
    let Some(mut file) = files::open_to_change(&device.path)? else { return Ok(()) };
    let written = file.write_all(FREE).and_then(|()| file.sync_all());
    written.or_host(|| format!("mark {} as used", device.path.display()))?;
    let seed = files::random_id()?;
    let sum = sum_of_spots(host, device, &seed)?;
    let folder = host.path(LEFT);
    folders::make_passable(folder.parent().unwrap_or(Path::new("/")))?;
    folders::make_all(&folder, 0o700)?;
    files::write_whole(&Left::path(host, device), format!("{run} {seed} {sum}\n").as_bytes())
}

fn described(signature: &Signature) -> String {
    let label = signature.label.as_ref().map(|label| format!(" labelled `{label}`")).unwrap_or_default();
    let uuid = signature.uuid.as_ref().map(|uuid| format!(", UUID {uuid}")).unwrap_or_default();
    format!("{}{label}{uuid}", signature.kind)
}

/// Current users of the device or one of its partitions, as text: mounts, holders, swap, loop devices, an exclusive
/// opener. Empty if there are none. A write-protected device counts as used.
///
/// # Errors
/// When the mount table or the swap table cannot be read.
pub(super) fn uses(host: &Host, device: &BlockDevice) -> Result<Vec<String>> {
    let mut uses = uses_of(host, device)?;
    for (twin, why) in twins(host, device) {
        let of_twin = uses_of(host, &twin)?.into_iter();
        uses.extend(of_twin.map(|used| format!("{} is the same disk ({why}): {used}", twin.path.display())));
    }
    uses.extend((device.node.flag(host, "ro") == Some(true)).then(|| "it is write-protected".to_owned()));
    Ok(uses)
}

/// Other names of the device, such as a second path to a LUN or a second loop device on its file, each with the
/// evidence.
fn twins(host: &Host, device: &BlockDevice) -> Vec<(BlockDevice, String)> {
    let whole = device.node.whole_disk(host).unwrap_or(device.node);
    let (own, own_file, below) = (Identity::of(host, whole), file_behind(host, whole), whole.slaves(host));
    let mut twins = Vec::new();
    for name in host.names_in("/sys/block") {
        let node = DeviceNumber::named(host, &name).filter(|node| *node != whole && !below.contains(node));
        let Some(node) = node else { continue };
        let other = Identity::of(host, node);
        let why = match (&own.wwn, &other.wwn) {
            _ if own_file.is_some() && own_file == file_behind(host, node) => Some("the same file".to_owned()),
            (Some(wwn), Some(theirs)) => (wwn == theirs).then(|| format!("WWN {wwn}")),
            // Namespaces and LUNs of one controller may share its serial.
            _ if own.size_bytes == other.size_bytes && own.serial == other.serial => {
                own.serial.as_ref().map(|serial| format!("serial {serial}"))
            }
            _ => None,
        };
        twins.extend(why.map(|why| (BlockDevice::named(&name, node), why)));
    }
    twins
}

/// Filesystem and inode of the file behind a loop device.
fn file_behind(host: &Host, node: DeviceNumber) -> Option<(u64, u64)> {
    node.backing_file(host)?;
    loops::file_of(&node.device_file(host)?).ok()
}

fn uses_of(host: &Host, device: &BlockDevice) -> Result<Vec<String>> {
    let nodes = device.nodes(host);
    let mut uses = mounts(host, device, &nodes)?;
    for node in &nodes {
        let name = node.name(host).unwrap_or_default();
        uses.extend(node.holders(host).into_iter().map(|holder| format!("{holder} uses {name}")));
    }
    let swaps = swaps::parse(&host.read("/proc/swaps")?)?.into_iter().filter(|area| leads_to(area, &nodes));
    uses.extend(swaps.map(|area| format!("{area} is used for swap")));
    let loops = sysfs::loops(host).into_iter().filter(|(_, file)| leads_to(file, &nodes));
    let names = loops.map(|(node, _)| node.name(host).unwrap_or_default());
    uses.extend(names.map(|name| format!("{name} uses it as its backing file")));
    // O_EXCL on a block device fails while the kernel or anybody else holds it exclusively (open(2)). This also detects
    // users that leave no trace above, such as the further members of a btrfs.
    if uses.is_empty()
        && let Err(e) = files::open_exclusively(&device.path)
    {
        uses.push(format!("it cannot be opened exclusively: {e}"));
    }
    Ok(uses)
}

/// Mounts of the device or its partitions, by number and by source.
fn mounts(host: &Host, device: &BlockDevice, nodes: &[DeviceNumber]) -> Result<Vec<String>> {
    let table = mount_table::table(host)?;
    let held = table.iter().filter(|mount| {
        let own = DeviceNumber { major: mount.major, minor: mount.minor };
        nodes.contains(&own) || Path::new(&mount.source) == device.path || leads_to(&mount.source, nodes)
    });
    Ok(held.map(|mount| format!("{} is mounted on {}", mount.source, mount.target)).collect())
}

/// True if the device is mounted.
///
/// # Errors
/// When the mount table cannot be read.
pub(super) fn is_mounted(host: &Host, device: &BlockDevice) -> Result<bool> {
    mounts(host, device, &device.nodes(host)).map(|mounts| !mounts.is_empty())
}

/// # Errors
/// When the device is mounted, or the mount table cannot be read.
pub(super) fn refuse_mounted(host: &Host, device: &BlockDevice) -> Result<()> {
    match is_mounted(host, device)? {
        true => Err(Error::host(format!("{} is still mounted", device.path.display()))),
        false => Ok(()),
    }
}

/// # Errors
/// When anything was found: `what`, which says where and as what, with all of it.
pub(super) fn refuse_any(found: &[String], what: &str) -> Result<()> {
    match found {
        [] => Ok(()),
        _ => Err(Error::host(format!("{what}: {}", found.join("; ")))),
    }
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
    fn regular_files_and_missing_paths_are_no_block_devices() {
        assert!(BlockDevice::find(Path::new("/etc/passwd")).unwrap_err().to_string().contains("not a block device"));
        assert!(BlockDevice::find(Path::new("/dev/no-such")).unwrap_err().to_string().contains("/dev/no-such"));
    }
}

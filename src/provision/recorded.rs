//! Recorded disks on the machine: the mount point that shows them as files, the kernel's NBD devices on them, and the
//! undoing of both.
//!
//! They are entered into the ledger here before they are shown. After a kill the kernel fails every request to them, so
//! that everything built on them can still be unmounted and detached. A device is recognized by its backend's
//! identifier, since its number may have been reassigned by then.

use super::identity::BlockDevice;
use super::ledger::{Ledger, Thing};
use super::sysfs::DeviceNumber;
use super::{Base, Built, Unmet, folder, guard, kernel_module, mount, mount_table};
use crate::error::{Context, Error, Result};
use crate::host::time::sleep;
use crate::host::{Host, files, nbd, paths};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

pub(super) const OWNER: &str = "recorded disks";

/// Source shown in the mount table.
pub(crate) const SOURCE: &str = "pgstrata-disks";

/// Type shown in the mount table.
const TYPE: &str = "fuse";

/// Block size of NBD devices, the same as of loop devices.
const BLOCK: u64 = 512;

/// Makes the mount point below `parent`, and enters it and the future mount into the ledger.
///
/// # Errors
/// If it already exists, or cannot be entered or made.
pub fn prepare(ledger: &Ledger, parent: &Path) -> Result<PathBuf> {
    // The mount table shows paths without symlinks.
    let target = paths::resolve(parent)?.join(format!("{}disks", folder::PREFIX));
    folder::make(ledger, folder::OWNER, &target)?;
    let thing = Thing::new(OWNER, "mount").with_path("target", &target)?.with("source", SOURCE).with("fstype", TYPE);
    ledger.enter(thing)?;
    Ok(target)
}

/// Unmet if the kernel cannot attach disks by NBD.
pub fn unmet_nbd(host: &Host) -> Option<Unmet> {
    kernel_module::unmet(host, "NBD", "nbd", |host| DeviceNumber::named(host, "nbd0").is_some())
}

/// Hands an NBD connection to the kernel, entered into the ledger first; returns its block device, which supports
/// flushes and FUA.
///
/// # Errors
/// If the kernel has no such driver or refuses, or the device does not support FUA.
pub fn attach_nbd(host: &Host, ledger: &Ledger, socket: BorrowedFd<'_>, (size, flags): (u64, u16)) -> Result<PathBuf> {
    let identifier = format!("pgstrata-{}", files::random_id()?);
    let doing = || "attach a recorded disk by NBD".to_owned();
    kernel_module::load(host, "nbd", &[])?;
    ledger.enter(Thing::new(OWNER, "nbd").with("backend", identifier.clone()))?;
    let wish = nbd::Wish { size, block_size: BLOCK, flags, identifier: &identifier };
    let number = nbd::connect(socket, &wish).or_host(doing)?;
    let device = PathBuf::from(format!("/dev/nbd{number}"));
    if found(host, &identifier) != Some(number) {
        // The device could not be found again later, so it is disconnected at once.
        nbd::disconnect(number).or_host(doing)?;
        return Err(Error::host(format!("the kernel does not report what {} is connected to", device.display()))
            .hint("Linux 5.14 or newer does"));
    }
    let node = BlockDevice::find(&device)?.node;
    let cache = node.shown(host, "queue/write_cache");
    if cache != "write back" || node.flag(host, "queue/fua") != Some(true) {
        return Err(Error::host(format!("{} takes no flushes or no FUA (write cache: {cache})", device.display())));
    }
    Ok(device)
}

/// True if an image is such a device, which a stack uses directly.
pub(super) fn is_device(image: &Path) -> bool {
    paths::stat(image).is_ok_and(|found| found.kind == paths::Kind::BlockDevice)
}

/// The base that a recorded disk provides.
pub(super) fn built(host: &Host, device: &Path) -> Result<Built> {
    let node = BlockDevice::find(device)?.node;
    let details = [
        ("device", device.display().to_string()),
        ("write cache", node.shown(host, "queue/write_cache")),
        ("FUA", node.shown(host, "queue/fua")),
    ];
    Ok(Built::one(Base::Device(device.to_owned()), details))
}

/// The number of the device with this backend.
fn found(host: &Host, identifier: &str) -> Option<u32> {
    let names = host.names_in("/sys/block");
    let mut numbers = names.iter().filter_map(|name| name.strip_prefix("nbd")?.parse().ok());
    numbers.find(|number: &u32| {
        host.read_optional(format!("/sys/block/nbd{number}/backend")).as_deref() == Some(identifier)
    })
}

/// A mounted filesystem on a loop device whose file has lost its server, left by a killed run: target and file. Tools
/// that inspect every mount fail while it exists, including mkfs.btrfs(8).
pub(crate) fn abandoned(host: &Host) -> Option<(String, String)> {
    let mounts = mount_table::table(host).unwrap_or_default();
    mounts.into_iter().filter(|mount| mount.source.starts_with("/dev/loop")).find_map(|mount| {
        let file = DeviceNumber::named(host, mount.source.strip_prefix("/dev/")?)?.backing_file(host)?;
        let stat = paths::stat(Path::new(&file));
        stat.is_err_and(|e| e.kind() == std::io::ErrorKind::NotConnected).then_some((mount.target, file))
    })
}

/// Unmounts the files, or disconnects a device.
pub(super) fn undo(host: &Host, thing: &Thing) -> Result<()> {
    match thing.kind.as_str() {
        "nbd" => detach_nbd(host, thing.mark("backend")?),
        _ => mount::undo(host, thing),
    }
}

/// Fails the requests to disks among these things whose recorder has died: a process that waits for one cannot be killed.
///
/// # Errors
/// The driver's error.
pub fn fail_requests(host: &Host, things: &[Thing]) -> Result<()> {
    for thing in things.iter().filter(|thing| thing.owner == OWNER && thing.kind == "nbd") {
        if let Some(number) = found(host, thing.mark("backend")?) {
            nbd::disconnect(number).or_host(|| format!("disconnect /dev/nbd{number}"))?;
        }
    }
    Ok(())
}

fn detach_nbd(host: &Host, identifier: &str) -> Result<()> {
    for attempt in 0.. {
        let Some(number) = found(host, identifier) else { return Ok(()) };
        let path = PathBuf::from(format!("/dev/nbd{number}"));
        let device = BlockDevice::find(&path)?;
        if guard::is_mounted(host, &device)? {
            return Err(Error::host(format!("{} is mounted", path.display())));
        }
        if let Some(holder) = device.node.holders(host).first() {
            return Err(Error::host(format!("{} is in use: {holder} uses it", path.display())));
        }
        if attempt == 0 {
            nbd::disconnect(number).or_host(|| format!("detach {}", path.display()))?;
        } else if attempt >= mount_table::BUSY_TRIES {
            return Err(Error::host(format!("{} is held open by another process", path.display())));
        } else {
            sleep(mount_table::BUSY_PAUSE);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_its_backend_not_its_number() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::rooted(root.path());
        for (name, backend) in [("nbd0", "somebody's\n"), ("nbd3", "pgstrata-1\n"), ("loop0", "pgstrata-2\n")] {
            let folder = root.path().join("sys/block").join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("backend"), backend).unwrap();
        }
        assert_eq!(found(&host, "pgstrata-1"), Some(3));
        assert_eq!((found(&host, "pgstrata"), found(&host, "pgstrata-2")), (None, None));
        // An absent thing needs no undoing.
        undo(&host, &Thing::new(OWNER, "nbd").with("backend", "pgstrata-9")).unwrap();
    }
}

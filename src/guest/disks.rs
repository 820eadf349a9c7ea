//! The disks of a plan's stacks in its guests, each a nameless file of the host that stays open during the run.
//!
//! QEMU gets the open file, so nothing is left of it however the run ends. One set of disks serves all boots: data
//! written by a killed guest is there in the next one.

use super::cache::Cache;
use crate::error::{Context, Error, Result};
use crate::host::command::Command;
use crate::host::files::{self, File};
use crate::host::paths;
use crate::record::guest_disk::{self, Bus, GuestDisk};
use crate::units::Bytes;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

/// Maximum disks of a guest: each takes a slot of its PCI bus, which other devices share.
const MOST: usize = 16;

/// Aligned for direct I/O.
#[repr(align(4096))]
struct AlignedBlock([u8; 4096]);

/// Writes the first block of a disk's sparse file. QEMU probes the alignment of direct I/O by reading it; in a hole
/// every read succeeds, and QEMU then pads each write that is not aligned to 4 KiB (raw_probe_alignment,
/// block/file-posix.c). With padding, a virtio-blk request merged from 1024 pieces exceeds the limit of writev(2) and
/// fails (qemu_iovec_init_extended, before 8.1): the guest sees EIO.
pub(super) fn write_first_block(file: &File) -> io::Result<()> {
    files::write_all_at(file, &AlignedBlock([0; 4096]).0, 0)?;
    file.sync_data()
}

#[derive(Debug, Clone, Default)]
pub struct PlanDisks(Vec<(GuestDisk, Arc<File>)>);

impl PlanDisks {
    /// Makes sparse files on the cache's filesystem.
    ///
    /// # Errors
    /// If there are too many, their sizes exceed the free space, or the filesystem has no direct I/O.
    pub fn make(cache: &Cache, disks: Vec<GuestDisk>) -> Result<PlanDisks> {
        if disks.is_empty() {
            return Ok(PlanDisks::default());
        }
        if disks.len() > MOST {
            let message =
                format!("the plan needs {} guest disks at once; a guest can have at most {MOST}", disks.len());
            return Err(Error::user(message).hint("use fewer sizes, or run the stacks in several plans"));
        }
        let folder = cache.running_folder()?;
        let needed = Bytes(disks.iter().map(|disk| disk.kind.size.0).fold(0, u64::saturating_add));
        let free = Bytes(files::free_bytes(&folder)?);
        if needed >= free {
            let place = folder.display();
            return Err(Error::host(format!("the guest disks need {needed}, but only {free} is free in {place}"))
                .hint("reduce `guest_disk` in the plan, or set PGSTRATA_CACHE to another folder"));
        }
        let made = disks.into_iter().map(|disk| {
            let made = files::nameless(&folder).and_then(|file| {
                file.set_len(disk.kind.size.0)?;
                write_first_block(&file).map(|()| file)
            });
            Ok((disk, Arc::new(made.or_host(|| format!("make a disk of the guest in {}", folder.display()))?)))
        });
        made.collect::<Result<_>>().map(PlanDisks)
    }

    /// Rewrites the first block of each disk if it is empty: a stack may have discarded it since the previous boot.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn write_first_blocks(&self) -> Result<()> {
        for (disk, file) in &self.0 {
            let mut block = AlignedBlock([0; 4096]);
            let done = files::read_exact_at(file, &mut block.0, 0);
            let done = done.and_then(|()| if block.0 == [0; 4096] { write_first_block(file) } else { Ok(()) });
            done.or_host(|| format!("write to the file of the guest's disk {}", disk.serial))?;
        }
        Ok(())
    }

    /// Bytes that the disks may still allocate on the filesystem below.
    ///
    /// # Errors
    /// If a file cannot be examined.
    pub fn unallocated(&self) -> Result<Bytes> {
        self.0.iter().try_fold(Bytes(0), |sum, (disk, file)| {
            let allocated = paths::look_at_open(file, Path::new(&disk.serial))?.allocated_bytes;
            Ok(Bytes(sum.0.saturating_add(disk.kind.size.0.saturating_sub(allocated))))
        })
    }

    /// The list of disks that the guest reads.
    pub(super) fn list(&self) -> String {
        let disks: Vec<GuestDisk> = self.0.iter().map(|(disk, _)| disk.clone()).collect();
        guest_disk::list(&disks)
    }

    /// The QEMU command with these disks attached.
    pub(super) fn attached(&self, mut command: Command) -> Command {
        if self.0.iter().any(|(disk, _)| disk.kind.bus == Bus::Scsi) {
            command = command.args(["-device", "virtio-scsi-pci,id=scsi"]);
        }
        for ((disk, file), number) in self.0.iter().zip(1..) {
            let files = format!("fd={},set={number}", file.as_raw_fd());
            let drive = format!(
                "file=/dev/fdset/{number},if=none,id=plan{number},format=raw,werror=report,rerror=report,cache=none,\
                 discard=unmap,auto-read-only=off"
            );
            let kind = match disk.kind.bus {
                Bus::Virtio => "virtio-blk-pci",
                Bus::Nvme => "nvme",
                // By default it rejects writes with FUA.
                Bus::Scsi => "scsi-hd,bus=scsi.0,dpofua=on",
            };
            let device = format!("{kind},drive=plan{number},serial={}", disk.serial);
            command =
                command.inheriting(Arc::clone(file)).args(["-add-fd", &files, "-drive", &drive, "-device", &device]);
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::guest_disk::{DiskKind, numbered};

    fn disks(kinds: &[(Bus, u64)]) -> Vec<GuestDisk> {
        numbered(&kinds.iter().map(|(bus, size)| DiskKind { bus: *bus, size: Bytes(*size) }).collect::<Vec<_>>())
    }

    fn shown(disks: &PlanDisks) -> String {
        disks.attached(Command::new("qemu")).shown()
    }

    #[test]
    fn each_disk_is_attached_on_its_bus_with_its_serial() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::at(place.path());
        let buses = [(Bus::Virtio, 1 << 20), (Bus::Nvme, 2 << 20), (Bus::Scsi, 3 << 20), (Bus::Scsi, 3 << 20)];
        let made = match PlanDisks::make(&cache, disks(&buses)) {
            Ok(made) => made,
            Err(e) if e.to_string().contains("os error 22") => return println!("skipped: no direct I/O: {e}"),
            Err(e) => panic!("{e}"),
        };
        let fds: Vec<i32> = made.0.iter().map(|(_, file)| file.as_raw_fd()).collect();
        let text = shown(&made);
        for (part, count) in [
            ("-device virtio-scsi-pci,id=scsi ", 1),
            ("-device virtio-blk-pci,drive=plan1,serial=pgstrata-1", 1),
            ("-device nvme,drive=plan2,serial=pgstrata-2", 1),
            ("-device scsi-hd,bus=scsi.0,dpofua=on,drive=plan", 2),
            ("cache=none,discard=unmap", 4),
        ] {
            assert_eq!(text.matches(part).count(), count, "{part}: {text}");
        }
        for (fd, set) in fds.iter().zip(1..) {
            assert!(text.contains(&format!("-add-fd fd={fd},set={set} -drive file=/dev/fdset/{set},")), "{text}");
        }
        let facts = made.0[1].1.metadata().unwrap();
        assert_eq!(facts.len(), 2 << 20);
        assert_eq!(std::os::unix::fs::MetadataExt::blocks(&facts), 8, "the first block alone is allocated");
        // As after a guest's discard.
        files::punch_hole(&made.0[1].1, 0, 2 << 20).unwrap();
        // As a stack left it.
        let (mut data, mut read) = (AlignedBlock([0; 4096]), AlignedBlock([0; 4096]));
        data.0[512] = 7;
        files::write_all_at(&made.0[0].1, &data.0, 0).unwrap();
        made.write_first_blocks().unwrap();
        files::read_exact_at(&made.0[0].1, &mut read.0, 0).unwrap();
        assert!(read.0 == data.0, "what a disk holds stays");
        let yet = made.unallocated().unwrap();
        assert_eq!((yet, made.list().lines().count()), (Bytes((9 << 20) - 4 * 4096), 4));
        let left: Vec<_> = std::fs::read_dir(place.path().join("guest/running")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn too_many_or_too_large_guest_disks_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::at(place.path());
        let none = PlanDisks::make(&cache, Vec::new()).unwrap();
        assert_eq!((shown(&none).as_str(), none.list().as_str()), ("qemu", ""));
        let many = PlanDisks::make(&cache, disks(&[(Bus::Nvme, 1 << 20); 17])).unwrap_err();
        assert!(many.to_string().contains("17 guest disks"), "{many}");
        let large = PlanDisks::make(&cache, disks(&[(Bus::Nvme, 1 << 60)])).unwrap_err();
        assert!(large.to_string().contains("is free in"), "{large}");
    }
}

//! Disks that a guest gets for the stacks of a plan, as named on both sides.
//!
//! The host lists them in a file visible to the guest, which identifies each disk by serial number alone.

use crate::units::Bytes;

/// Path of the list in the guest, one line per disk.
pub const LIST: &str = "/run/pgstrata/host/disks";

/// Names of the buses in plans, in the order of [`Bus`].
pub const BUSES: &[&str] = &["virtio", "nvme", "scsi"];

/// Attachment of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bus {
    /// virtio-blk: a write cache, no FUA.
    Virtio,
    /// A separate NVMe controller: FUA.
    Nvme,
    /// A disk of a virtio-scsi controller: FUA (DPO and FUA of SCSI).
    Scsi,
}

impl Bus {
    /// Name in plans.
    pub fn name(self) -> &'static str {
        BUSES[self as usize]
    }

    /// The bus of this name.
    pub fn named(name: &str) -> Option<Bus> {
        [Bus::Virtio, Bus::Nvme, Bus::Scsi].into_iter().find(|bus| bus.name() == name)
    }
}

/// A disk as requested by a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiskKind {
    /// Attachment.
    pub bus: Bus,
    /// Exact size.
    pub size: Bytes,
}

/// A disk of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestDisk {
    /// Serial number that it reports.
    pub serial: String,
    /// Bus and size.
    pub kind: DiskKind,
}

/// Numbers disks of these kinds. Drivers show only 20 characters of a serial number.
pub fn numbered(kinds: &[DiskKind]) -> Vec<GuestDisk> {
    let disks =
        kinds.iter().zip(1..).map(|(kind, number)| GuestDisk { serial: format!("pgstrata-{number}"), kind: *kind });
    disks.collect()
}

/// Text of the list.
pub fn list(disks: &[GuestDisk]) -> String {
    disks.iter().map(|disk| format!("{} {} {}\n", disk.serial, disk.kind.bus.name(), disk.kind.size.0)).collect()
}

/// Disks of a list; foreign lines are skipped.
pub fn listed(text: &str) -> Vec<GuestDisk> {
    let disks = text.lines().filter_map(|line| match line.split(' ').collect::<Vec<_>>().as_slice() {
        [serial, bus, size] => {
            let kind = DiskKind { bus: Bus::named(bus)?, size: Bytes(size.parse().ok()?) };
            Some(GuestDisk { serial: (*serial).to_owned(), kind })
        }
        _ => None,
    });
    disks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_lists_is_what_the_guest_reads() {
        let kinds = [Bus::Virtio, Bus::Nvme, Bus::Scsi].map(|bus| DiskKind { bus, size: Bytes(1 << 30) });
        let disks = numbered(&kinds);
        assert_eq!(listed(&list(&disks)), disks);
        assert_eq!(disks.iter().map(|disk| disk.serial.as_str()).collect::<Vec<_>>().join(" "), {
            "pgstrata-1 pgstrata-2 pgstrata-3"
        });
        assert_eq!(BUSES, kinds.map(|kind| kind.bus.name()));
        for none in ["", "pgstrata-1 sata 5", "pgstrata-1 nvme x", "pgstrata-1 nvme 5 6"] {
            assert_eq!(listed(none), [], "{none}");
        }
    }
}

//! Disks that a guest gets for the stacks of a plan: what both sides of its border call them.
//!
//! The host lists them in a file that the guest sees; inside, a disk is known by its serial number alone.

use crate::units::Bytes;

/// Where the guest finds the list, a line for each disk.
pub const LIST: &str = "/run/pgstrata/host/disks";

/// Names of the buses, as a plan has them.
pub const BUSES: &[&str] = &["virtio", "nvme", "scsi"];

/// How a disk is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bus {
    /// virtio-blk: a write cache, no FUA.
    Virtio,
    /// An NVMe controller of its own: FUA.
    Nvme,
    /// A disk of a virtio-scsi controller: FUA (DPO and FUA of SCSI).
    Scsi,
}

impl Bus {
    /// Its name in plans.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Bus::Virtio => "virtio",
            Bus::Nvme => "nvme",
            Bus::Scsi => "scsi",
        }
    }

    /// The bus of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Bus> {
        [Bus::Virtio, Bus::Nvme, Bus::Scsi].into_iter().find(|bus| bus.name() == name)
    }
}

/// What a plan asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiskKind {
    /// How it is attached.
    pub bus: Bus,
    /// Its exact size.
    pub size: Bytes,
}

/// A disk of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestDisk {
    /// The serial number that it tells.
    pub serial: String,
    /// What it is.
    pub kind: DiskKind,
}

/// Disks of these kinds, numbered; drivers show 20 characters of a serial number.
#[must_use]
pub fn numbered(kinds: &[DiskKind]) -> Vec<GuestDisk> {
    let disk = |(kind, number): (&DiskKind, usize)| GuestDisk { serial: format!("pgstrata-{number}"), kind: *kind };
    kinds.iter().zip(1..).map(disk).collect()
}

/// The text of the list.
#[must_use]
pub fn list(disks: &[GuestDisk]) -> String {
    let line = |disk: &GuestDisk| format!("{} {} {}\n", disk.serial, disk.kind.bus.name(), disk.kind.size.0);
    disks.iter().map(line).collect()
}

/// The disks of a list; a line that is none of ours is passed over.
#[must_use]
pub fn listed(text: &str) -> Vec<GuestDisk> {
    let disk = |line: &str| match line.split(' ').collect::<Vec<_>>().as_slice() {
        [serial, bus, size] => {
            let kind = DiskKind { bus: Bus::named(bus)?, size: Bytes(size.parse().ok()?) };
            Some(GuestDisk { serial: (*serial).to_owned(), kind })
        }
        _ => None,
    };
    text.lines().filter_map(disk).collect()
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

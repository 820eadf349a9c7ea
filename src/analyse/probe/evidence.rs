//! What the rules look at: the record with what was computed from it, and the questions that several rules ask.

use super::findings::{DeviceWork, Family, GrowthFinding, RowFinding, Segment, Way};
use super::work::SEEN;
use crate::analyse::findings::durability::virtual_disk;
use crate::record::claim::{Claim, Promise};
use crate::record::facts::{DeviceFacts, WriteCache};
use crate::record::probe::ProbeRecord;
use crate::record::promise;

/// Operations below which counters for an operation say nothing: the uncounted one at a slice's beginning would weigh.
const FEWEST_OPERATIONS: u64 = 5;

/// Record, rows and growth.
pub(super) struct Evidence<'a> {
    pub record: &'a ProbeRecord,
    pub rows: &'a [RowFinding],
    pub growth: &'a [GrowthFinding],
}

impl<'a> Evidence<'a> {
    /// The row of a family and way that has one writer and does it in the plainest manner.
    pub fn row(&self, family: Family, way: Way) -> Option<&'a RowFinding> {
        let plain = |row: &&RowFinding| row.spec.segment.is_none_or(|segment| segment == Segment::Recycled);
        let fits = |row: &&RowFinding| row.spec.family == family && row.spec.way == way && row.spec.writers <= 1;
        // pg_test_fsync's open_* rows are direct, a server's are not.
        let rows = || self.rows.iter().filter(fits).filter(plain).filter(|row| row.operations > 0);
        rows().find(|row| !row.spec.direct).or_else(|| rows().next())
    }

    /// The row that stands for "a synced write here".
    pub fn main(&self) -> Option<&'a RowFinding> {
        let order = [
            (Family::OneWrite, Way::Fdatasync),
            (Family::Wal, Way::Fdatasync),
            (Family::OneWrite, Way::Fsync),
            (Family::Wal, Way::Fsync),
        ];
        order.into_iter().find_map(|(family, way)| self.row(family, way))
    }

    /// Rows in which every operation is one buffered write and one fdatasync or fsync of its own.
    pub fn sync_rows(&self) -> impl Iterator<Item = &'a RowFinding> {
        self.single_writes().filter(|row| matches!(row.spec.way, Way::Fdatasync | Way::Fsync))
    }

    /// The same with those whose write is the sync.
    pub fn single_writes(&self) -> impl Iterator<Item = &'a RowFinding> {
        let fits = |row: &&RowFinding| {
            matches!(row.spec.family, Family::OneWrite | Family::Wal)
                && row.spec.writes == 1
                && row.spec.writers <= 1
                && !matches!(row.spec.way, Way::None | Way::Msync)
                && row.operations >= FEWEST_OPERATIONS
        };
        self.rows.iter().filter(fits)
    }

    /// Devices that stand on nothing that can be seen; those furthest down where that was not recorded.
    pub fn lowest(&self) -> Vec<&'a DeviceFacts> {
        let devices = &self.record.place.devices;
        let leaves: Vec<&DeviceFacts> =
            devices.iter().filter(|device| device.stands_on_nothing == Some(true)).collect();
        if !leaves.is_empty() {
            return leaves;
        }
        let depth = devices.iter().map(|device| device.depth).max();
        devices.iter().filter(|device| Some(device.depth) == depth).collect()
    }

    /// Whether a hypervisor or a driver makes the lowest devices up.
    pub fn virtual_disk(&self) -> bool {
        self.record.place.hypervisor.is_some() || self.lowest().iter().any(|device| device.is_made_up())
    }

    /// The names of the lowest devices.
    pub fn lowest_names(&self) -> String {
        self.lowest().iter().map(|device| device.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Why nothing is known below the lowest device, in words; empty where that device is physical.
    pub fn sight_ends(&self) -> Vec<String> {
        let ends = self.record.place.ends.iter().filter(|end| end.claim != Claim::HoldsFlushesBack);
        let mut ends: Vec<String> = ends.map(Promise::to_string).collect();
        if ends.is_empty() && !self.lowest().is_empty() && self.virtual_disk() {
            ends.push(virtual_disk(&self.lowest_names()));
        }
        ends
    }
}

/// Whether a device says that it has a volatile cache.
pub(super) fn writes_back(device: &DeviceFacts) -> bool {
    device.write_cache == Some(WriteCache::WriteBack)
}

/// The word of a device that declares stable what it acknowledged.
pub(super) fn declared_stable(device: &DeviceFacts) -> Option<Promise> {
    promise::of_device(device).into_iter().find(|promise| promise.claim == Claim::DeclaredStable)
}

/// What a row's operations were to a device.
pub(super) fn work_of<'a>(row: &'a RowFinding, device: &str) -> Option<&'a DeviceWork> {
    row.work.iter().find(|work| work.device == device)
}

/// Whether flushes for an operation are as many as a sync needs.
pub(super) fn flushed(work: &DeviceWork) -> bool {
    work.flushes_per_op.is_some_and(|flushes| flushes >= SEEN)
}

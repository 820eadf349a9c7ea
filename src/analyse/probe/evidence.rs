//! Input of the rules: the record with the computed figures, and queries that several rules share.

use super::findings::{Family, GrowthFinding, RateFinding, RowFinding, Segment, Way, WorkPerOperation};
use super::work::SEEN;
use crate::analyse::findings::durability::virtual_disk;
use crate::record::claim::{Claim, Promise};
use crate::record::facts::{DeviceFacts, WriteCache};
use crate::record::probe::ProbeRecord;
use crate::record::promise;

/// Operations below which counters per operation are meaningless: the uncounted one at a slice's start would weigh in.
const FEWEST_OPERATIONS: u64 = 5;

pub(super) struct ProbeEvidence<'a> {
    pub record: &'a ProbeRecord,
    pub rows: &'a [RowFinding],
    pub growth: &'a [GrowthFinding],
}

impl<'a> ProbeEvidence<'a> {
    /// The row of a family and way with one writer and no special options.
    pub fn row(&self, family: Family, way: Way) -> Option<&'a RowFinding> {
        let rows = self.rows.iter().filter(|row| {
            (row.spec.family, row.spec.way) == (family, way)
                && row.spec.writers <= 1
                && row.spec.segment.is_none_or(|segment| segment == Segment::Recycled)
                && row.operations > 0
        });
        // pg_test_fsync's open_* rows use O_DIRECT, a server's do not.
        rows.min_by_key(|row| row.spec.direct)
    }

    /// The rate of that row.
    pub fn rate(&self, family: Family, way: Way) -> Option<&'a RateFinding> {
        self.row(family, way)?.rate.as_ref()
    }

    /// The row that represents "a synced write here".
    pub fn main(&self) -> Option<&'a RowFinding> {
        let order = [
            (Family::OneWrite, Way::Fdatasync),
            (Family::Wal, Way::Fdatasync),
            (Family::OneWrite, Way::Fsync),
            (Family::Wal, Way::Fsync),
        ];
        order.into_iter().find_map(|(family, way)| self.row(family, way))
    }

    /// Rows whose every operation is one buffered write with its own fdatasync or fsync.
    pub fn sync_rows(&self) -> impl Iterator<Item = &'a RowFinding> {
        self.single_writes().filter(|row| matches!(row.spec.way, Way::Fdatasync | Way::Fsync))
    }

    /// Those rows, and rows whose write is itself the sync.
    pub fn single_writes(&self) -> impl Iterator<Item = &'a RowFinding> {
        self.rows.iter().filter(|row| {
            matches!(row.spec.family, Family::OneWrite | Family::Wal)
                && row.spec.writes == 1
                && row.spec.writers <= 1
                && !matches!(row.spec.way, Way::None | Way::Msync)
                && row.operations >= FEWEST_OPERATIONS
        })
    }

    /// Devices with nothing visible below them; the deepest ones if that was not recorded.
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

    /// True if the lowest devices are virtual or implemented in software.
    pub fn virtual_disk(&self) -> bool {
        self.record.place.hypervisor.is_some() || self.lowest().iter().any(|device| device.is_made_up())
    }

    /// The names of the lowest devices.
    pub fn lowest_names(&self) -> String {
        self.lowest().iter().map(|device| device.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Reasons that nothing is known below the lowest device; empty if it is physical.
    pub fn sight_ends(&self) -> Vec<String> {
        let ends = self.record.place.ends.iter().filter(|end| end.claim != Claim::HoldsFlushesBack);
        let mut ends: Vec<String> = ends.map(Promise::to_string).collect();
        if ends.is_empty() && !self.lowest().is_empty() && self.virtual_disk() {
            ends.push(virtual_disk(&self.lowest_names()));
        }
        ends
    }
}

/// True if a device reports a volatile cache.
pub(super) fn writes_back(device: &DeviceFacts) -> bool {
    device.write_cache == Some(WriteCache::WriteBack)
}

/// Promise of a device that declares acknowledged data stable.
pub(super) fn declared_stable(device: &DeviceFacts) -> Option<Promise> {
    promise::of_device(device).into_iter().find(|promise| promise.claim == Claim::DeclaredStable)
}

/// Work of a device for a row's operations.
pub(super) fn work_of<'a>(row: &'a RowFinding, device: &str) -> Option<&'a WorkPerOperation> {
    row.work.iter().find(|work| work.device == device)
}

/// True if there are as many flushes per operation as a sync needs.
pub(super) fn flushed(work: &WorkPerOperation) -> bool {
    work.flushes_per_op.is_some_and(|flushes| flushes >= SEEN)
}

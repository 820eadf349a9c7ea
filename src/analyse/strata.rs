//! What one operation of the client was at each layer: device writes, flushes, WAL.

use super::columns::{self, DATA_SLOTS, WAL_SLOTS, device};
use super::counters::{Flow, Operations, growth, span_s};
use super::findings::{DeviceStrata, Strata};
use super::input::Seconds;
use crate::record::case::CaseSpec;
use crate::record::facts::{DeviceFacts, StackFacts, WriteCache};
use crate::record::operation::{Operation, Writes};
use crate::record::trial::TrialRecord;
use crate::units::{Bytes, significant};

/// Reads below this many per operation are left out of the sentence.
const READS_WORTH_SAYING: f64 = 0.05;
/// Writing workloads make at least a heap record and a commit record; below this many WAL records per operation a
/// workload is called read only. Not 0, because autovacuum and checkpoints write a record now and then.
const READ_ONLY_RECORDS: f64 = 0.05;
/// Devices whose driver passes requests on without queueing them: the kernel counts no flushes there
/// (block/blk-flush.c counts at request queues only), so a zero would be a lie.
const PASS_THROUGH: [&str; 4] = ["dm-", "md", "bcache", "drbd"];

/// What joins the names of several devices that share a slot.
const JOINED_BY: char = '+';

/// Sums over the trials of one case.
#[derive(Debug, Clone, Default)]
pub struct StrataSums {
    /// Slots with counters: those of the data first, from top to bottom.
    pub devices: Vec<DeviceSums>,
    /// WAL bytes.
    pub wal_bytes: Flow,
    /// WAL records.
    pub wal_records: Flow,
    /// Full-page images.
    pub wal_fpi: Flow,
    /// Syncs of the WAL.
    pub wal_syncs: Flow,
}

/// Sums of one slot.
#[derive(Debug, Clone)]
pub struct DeviceSums {
    /// The slot.
    pub slot: &'static str,
    /// Its device's kernel names, one for each different one.
    pub names: Vec<String>,
    /// Its devices as sysfs describes them, in the last trial that has them; several at one depth share a slot.
    pub facts: Vec<DeviceFacts>,
    /// Why its flushes can't be counted, where that is so.
    pub uncounted: Option<&'static str>,
    /// Flushes.
    pub flushes: Flow,
    /// Writes.
    pub writes: Flow,
    write_bytes: Flow,
    reads: Flow,
    busy_ms: f64,
    busy_of_ms: f64,
}

impl StrataSums {
    /// Adds a trial.
    pub fn add(&mut self, record: &TrialRecord, seconds: &Seconds, operations: &Operations) {
        self.wal_bytes.add(seconds.counts(columns::PG_WAL_BYTES), operations);
        self.wal_records.add(seconds.counts(columns::PG_WAL_RECORDS), operations);
        self.wal_fpi.add(seconds.counts(columns::PG_WAL_FPI), operations);
        self.wal_syncs.add(seconds.counts(columns::PG_WAL_SYNCS), operations);
        for (slots, stack) in [(DATA_SLOTS, record.stack.as_ref()), (WAL_SLOTS, record.wal_stack.as_ref())] {
            for (depth, slot) in slots.into_iter().enumerate() {
                self.add_slot(slot, depth, stack, seconds, operations);
            }
        }
    }

    fn add_slot(
        &mut self,
        slot: &'static str,
        depth: usize,
        stack: Option<&StackFacts>,
        seconds: &Seconds,
        operations: &Operations,
    ) {
        let column = |what: &str| seconds.counts(&device(slot, what));
        if !column(columns::DEVICE_WRITES).is_some_and(|writes| writes.any()) {
            return;
        }
        let devices = stack.map_or(&[][..], |stack| &stack.devices);
        let name = seconds.texts(&device(slot, columns::DEVICE_NAME)).and_then(|texts| texts.first());
        let facts = facts_of(name, depth, devices);
        let sums = self.slot(slot);
        let joined = || facts.iter().map(|facts| facts.name.as_str()).collect::<Vec<_>>().join("+");
        let name = name.map_or_else(joined, str::to_owned);
        sums.uncounted = uncounted(&name, &facts, devices).or(sums.uncounted);
        if !name.is_empty() && !sums.names.contains(&name) {
            sums.names.push(name);
        }
        if !facts.is_empty() {
            sums.facts = facts.into_iter().cloned().collect();
        }
        if sums.uncounted.is_none() {
            sums.flushes.add(column(columns::DEVICE_FLUSHES), operations);
        }
        sums.writes.add(column(columns::DEVICE_WRITES), operations);
        sums.write_bytes.add(column(columns::DEVICE_WRITE_BYTES), operations);
        sums.reads.add(column(columns::DEVICE_READS), operations);
        if let Some(busy) = column(columns::DEVICE_BUSY_MS).and_then(growth) {
            sums.busy_ms += busy.amount as f64;
            // Devices at one depth are added up in their slot.
            let devices = sums.facts.len().max(1) as f64;
            sums.busy_of_ms += 1e3 * devices * span_s(seconds.counts(columns::TIME_US), busy.first, busy.last);
        }
    }

    fn slot(&mut self, slot: &'static str) -> &mut DeviceSums {
        let rank = |slot: &str| DATA_SLOTS.iter().chain(&WAL_SLOTS).position(|known| *known == slot);
        let place = self.devices.partition_point(|known| rank(known.slot) < rank(slot));
        if self.devices.get(place).is_none_or(|known| known.slot != slot) {
            self.devices.insert(place, DeviceSums::empty(slot));
        }
        &mut self.devices[place]
    }

    /// The devices below the data, from top to bottom.
    pub fn data(&self) -> impl DoubleEndedIterator<Item = &DeviceSums> {
        self.devices.iter().filter(|device| DATA_SLOTS.contains(&device.slot))
    }

    /// The devices below a pg_wal of its own, from top to bottom.
    pub fn wal(&self) -> impl DoubleEndedIterator<Item = &DeviceSums> {
        self.devices.iter().filter(|device| WAL_SLOTS.contains(&device.slot))
    }

    /// Whether the workload was seen to write no WAL worth speaking of; `None` where WAL was not counted.
    #[must_use]
    pub fn read_only(&self) -> Option<bool> {
        self.wal_records.per_operation().map(|records| records < READ_ONLY_RECORDS)
    }

    /// The finding, `noun` being what an operation is called; `None` where nothing was counted.
    #[must_use]
    pub fn finding(&self, noun: &str) -> Option<Strata> {
        let flows = [&self.wal_bytes, &self.wal_records, &self.wal_syncs];
        let operations = flows.into_iter().chain(self.devices.iter().map(|device| &device.writes));
        let operations = operations.map(Flow::operations).max().filter(|operations| *operations > 0)?;
        Some(Strata {
            sentence: self.sentence(noun),
            operations,
            wal_bytes: self.wal_bytes.per_operation(),
            wal_records: self.wal_records.per_operation(),
            full_page_images: self.wal_fpi.per_operation(),
            wal_syncs: self.wal_syncs.per_operation(),
            devices: self.devices.iter().map(DeviceSums::finding).collect(),
            write_amplification: self.write_amplification(),
            // Needs another case: the analysis adds it when all are there.
            flush_share: None,
        })
    }

    /// The lowest device below the data and, where that is another one, the lowest below pg_wal.
    fn lowest(&self) -> Vec<&DeviceSums> {
        let mut lowest: Vec<&DeviceSums> = self.data().next_back().into_iter().collect();
        lowest.extend(self.wal().next_back().filter(|wal| lowest.iter().all(|data| data.names != wal.names)));
        lowest
    }

    fn write_amplification(&self) -> Option<f64> {
        let wal = self.wal_bytes.per_operation().filter(|bytes| *bytes > 0.0)?;
        let bytes: Option<Vec<f64>> = self.lowest().iter().map(|low| low.write_bytes.per_operation()).collect();
        bytes.filter(|bytes| !bytes.is_empty()).map(|bytes| bytes.iter().sum::<f64>() / wal)
    }

    fn sentence(&self, noun: &str) -> String {
        let mut shown: Vec<&DeviceSums> = Vec::new();
        for (top, low) in [(self.data().next(), self.data().next_back()), (self.wal().next(), self.wal().next_back())] {
            // A partition says nothing that its disk does not say as well.
            let top = top.filter(|top| top.uncounted.is_none());
            for device in [top, low].into_iter().flatten() {
                if shown.iter().all(|known| known.names != device.names) {
                    shown.push(device);
                }
            }
        }
        let single = shown.len() == 1;
        let mut parts: Vec<String> = shown.iter().filter_map(|device| device.words(single)).collect();
        if parts.is_empty() {
            let wal = self.wal_bytes.per_operation().map(|bytes| format!("{} of WAL", size(bytes)));
            parts.push(format!("{}; no block device is visible below it", wal.as_deref().unwrap_or("not counted")));
        }
        format!("one {noun} = {}", parts.join(", "))
    }
}

impl DeviceSums {
    fn empty(slot: &'static str) -> DeviceSums {
        DeviceSums {
            slot,
            names: Vec::new(),
            facts: Vec::new(),
            uncounted: None,
            flushes: Flow::default(),
            writes: Flow::default(),
            write_bytes: Flow::default(),
            reads: Flow::default(),
            busy_ms: 0.0,
            busy_of_ms: 0.0,
        }
    }

    /// What it is called: its kernel name; `loop` for several loop devices; the slot where it has no name.
    #[must_use]
    pub fn name(&self) -> String {
        match self.names.as_slice() {
            [] => self.slot.to_owned(),
            [name] => name.clone(),
            [name, ..] => name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(),
        }
    }

    /// Whether it, or one of several, says that it needs no flushes.
    #[must_use]
    pub fn writes_through(&self) -> bool {
        self.facts.iter().any(|facts| facts.write_cache == Some(WriteCache::WriteThrough))
    }

    /// Whether it takes writes with FUA.
    #[must_use]
    pub fn takes_fua(&self) -> bool {
        !self.facts.is_empty() && self.facts.iter().all(|facts| facts.fua == Some(true))
    }

    /// The file of a loop device.
    #[must_use]
    pub fn backing_file(&self) -> Option<&str> {
        self.facts.iter().find_map(|facts| facts.backing_file.as_deref())
    }

    /// "1.02 device writes of 16.4 KiB + 0.5 flushes", followed by the device's name unless it is the only one.
    fn words(&self, single: bool) -> Option<String> {
        let writes = self.writes.per_operation()?;
        let mut text = format!("{} device writes", significant(writes));
        if let Some(bytes) = self.write_bytes.per(&self.writes) {
            text.push_str(&format!(" of {}", size(bytes)));
        }
        if let Some(flushes) = self.flushes.per_operation() {
            text.push_str(&format!(" + {} flushes", significant(flushes)));
        }
        if let Some(reads) = self.reads.per_operation().filter(|reads| *reads >= READS_WORTH_SAYING) {
            text.push_str(&format!(" + {} reads", significant(reads)));
        }
        let place = if single { String::new() } else { format!(" at {}", self.name()) };
        Some(text + &place)
    }

    fn finding(&self) -> DeviceStrata {
        DeviceStrata {
            slot: self.slot.to_owned(),
            device: self.name(),
            writes: self.writes.per_operation(),
            bytes_per_write: self.write_bytes.per(&self.writes),
            flushes: self.flushes.per_operation(),
            reads: self.reads.per_operation(),
            busy: (self.busy_of_ms > 0.0).then(|| (self.busy_ms / self.busy_of_ms).min(1.0)),
        }
    }
}

/// What a server's operation is called that writes each time.
pub const COMMIT: &str = "commit";

/// What an operation of a case is called; `read_only` is what was seen of it.
#[must_use]
pub fn noun<'a>(case: &CaseSpec, operation: &'a Operation, read_only: Option<bool>) -> &'a str {
    let commits = case.postgres.is_some() && operation.writes == Writes::Always && read_only != Some(true);
    if commits { COMMIT } else { &operation.noun }
}

/// The facts of a slot's devices: by the name in its column, where several are joined, else by depth.
#[must_use]
pub fn facts_of<'a>(name: Option<&str>, depth: usize, devices: &'a [DeviceFacts]) -> Vec<&'a DeviceFacts> {
    let of_slot = |facts: &&DeviceFacts| match name {
        Some(name) => name.split(JOINED_BY).any(|part| part == facts.name),
        None => facts.depth as usize == depth,
    };
    devices.iter().filter(of_slot).collect()
}

/// Why the flush counter of a slot's devices says nothing, where that is so. `all` are the devices of the stack.
#[must_use]
pub fn uncounted(name: &str, facts: &[&DeviceFacts], all: &[DeviceFacts]) -> Option<&'static str> {
    let mut parts = name.split(JOINED_BY);
    if parts.clone().any(|part| all.iter().any(|below| is_partition_of(part, &below.name))) {
        return Some("the kernel counts flushes for whole disks, not for partitions");
    }
    if parts.any(|part| PASS_THROUGH.iter().any(|driver| part.starts_with(driver))) {
        return Some("its driver passes requests on uncounted");
    }
    let no_counter = facts.iter().any(|facts| facts.counts_flushes == Some(false));
    no_counter.then_some("this kernel does not count its flushes")
}

/// Whether `name` is a partition of the disk `disk`: `vda1` of `vda`, `nvme0n1p2` of `nvme0n1`.
fn is_partition_of(name: &str, disk: &str) -> bool {
    let Some(rest) = name.strip_prefix(disk) else { return false };
    let ends_in_digit = disk.ends_with(|c: char| c.is_ascii_digit());
    let number = if ends_in_digit { rest.strip_prefix('p').unwrap_or("") } else { rest };
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}

fn size(bytes: f64) -> String {
    Bytes(bytes.round() as u64).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_told_from_disks_that_merely_share_a_prefix() {
        assert!(is_partition_of("vda1", "vda") && is_partition_of("nvme0n1p2", "nvme0n1"));
        assert!(
            !is_partition_of("vda", "vda") && !is_partition_of("vdab", "vda") && !is_partition_of("loop10", "loop1")
        );
    }
}

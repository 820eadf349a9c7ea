//! The counters of the block devices below the folder, read before and after each slice.

use crate::host::Host;
use crate::parse::diskstats::{self, DiskStats};
use crate::record::facts::DeviceFacts;
use crate::record::probe::DeviceCounts;

/// Path of each device's counters; `None` for a device without any.
pub struct Counters {
    host: Host,
    paths: Vec<Option<String>>,
    /// Reused for each reading.
    buffer: Vec<u8>,
}

/// Counters at one moment, per device.
pub type DeviceSnapshot = Vec<Option<DeviceCounts>>;

impl Counters {
    pub fn of(host: &Host, devices: &[DeviceFacts]) -> Counters {
        let paths = devices.iter().map(|device| {
            let folder = device.sysfs_folder();
            // With `iostats` 0 the kernel does not count: constant counters are not zeroes.
            let queue = ["queue/iostats", "../queue/iostats"];
            let kept = queue.iter().find_map(|name| host.read_optional(format!("{folder}/{name}")));
            let counted = kept.as_deref() != Some("0") && host.read_optional(format!("{folder}/stat")).is_some();
            counted.then(|| format!("{folder}/stat"))
        });
        Counters { host: host.clone(), paths: paths.collect(), buffer: Vec::new() }
    }

    pub fn read(&mut self) -> DeviceSnapshot {
        let Counters { host, paths, buffer } = self;
        let counts = paths.iter().map(|path| {
            host.read_into(path.as_ref()?, buffer).ok()?;
            let stat = diskstats::parse_stat(std::str::from_utf8(buffer).ok()?).ok()?;
            let DiskStats { writes, write_bytes, flushes, reads, .. } = stat;
            Some(DeviceCounts { writes, write_bytes, flushes, reads })
        });
        counts.collect()
    }
}

/// Growth between two snapshots. Partitions show flushes as 0: their disk counts them.
pub fn growth(devices: &[DeviceFacts], before: &DeviceSnapshot, after: &DeviceSnapshot) -> DeviceSnapshot {
    let pairs = before.iter().zip(after).zip(devices);
    let grown_counts = pairs.map(|((before, after), device)| {
        let grown = after.as_ref()?.combined(before.as_ref()?, u64::wrapping_sub);
        let flushes = grown.flushes.filter(|_| device.counts_flushes != Some(false));
        Some(DeviceCounts { flushes, ..grown })
    });
    grown_counts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(stat: &str, iostats: &str) -> (tempfile::TempDir, Counters, Vec<DeviceFacts>) {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/dev/block/8:0");
        std::fs::create_dir_all(folder.join("queue")).unwrap();
        std::fs::write(folder.join("stat"), stat).unwrap();
        std::fs::write(folder.join("queue/iostats"), iostats).unwrap();
        let devices = vec![DeviceFacts { major: 8, ..DeviceFacts::default() }];
        let counters = Counters::of(&Host::rooted(root.path()), &devices);
        (root, counters, devices)
    }

    #[test]
    fn growth_is_in_operations_and_bytes() {
        let (root, mut counters, devices) = machine("1 0 8 0 10 0 80 0 0 0 0 0 0 0 0 3 0\n", "1\n");
        let before = counters.read();
        std::fs::write(root.path().join("sys/dev/block/8:0/stat"), "2 0 9 0 15 0 160 0 0 0 0 0 0 0 0 5 0\n").unwrap();
        let grown = growth(&devices, &before, &counters.read());
        assert_eq!(grown, [Some(DeviceCounts { writes: 5, write_bytes: 40_960, flushes: Some(2), reads: 1 })]);
    }

    #[test]
    fn a_device_without_accounting_has_no_counts_rather_than_zeroes() {
        let (_root, mut counters, _) = machine("1 0 8 0 10 0 80 0 0 0 0 0 0 0 0 3 0\n", "0\n");
        assert_eq!(counters.read(), [None]);
    }

    #[test]
    fn a_partition_has_no_count_of_flushes() {
        let (_root, mut counters, mut devices) = machine("1 0 8 0 10 0 80 0 0 0 0 0 0 0 0 0 0\n", "1\n");
        devices[0].counts_flushes = Some(false);
        let moment = counters.read();
        assert_eq!(growth(&devices, &moment, &moment)[0].unwrap().flushes, None);
    }
}

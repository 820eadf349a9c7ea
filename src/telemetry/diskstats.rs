//! Activity of the stack's block devices: raw counters of `/proc/diskstats`.
//!
//! A device that the kernel does not list or account for has no readings (`queue/iostats` is 0: its counters stand
//! still, which does not mean that nothing happened).

use super::{ColumnSource, Reading, SampledObjects, Sampler, count};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::parse::diskstats::{self, DiskStats};
use crate::record::column::Column;
use crate::record::columns::{self, DeviceColumn};
use crate::record::facts::DeviceFacts;
use crate::record::seconds::{Value, device_prefixes};

pub struct Diskstats;

/// Each column of a device except its name, with its source.
const FIGURES: [ColumnSource<DeviceColumn, DiskStats>; 12] = [
    (columns::DEVICE_READS, |stats| Some(stats.reads)),
    (columns::DEVICE_READ_BYTES, |stats| Some(stats.read_bytes)),
    (columns::DEVICE_READ_MS, |stats| Some(stats.read_ms)),
    (columns::DEVICE_WRITES, |stats| Some(stats.writes)),
    (columns::DEVICE_WRITE_BYTES, |stats| Some(stats.write_bytes)),
    (columns::DEVICE_WRITE_MS, |stats| Some(stats.write_ms)),
    (columns::DEVICE_DISCARDS, |stats| stats.discards),
    (columns::DEVICE_FLUSHES, |stats| stats.flushes),
    (columns::DEVICE_FLUSH_MS, |stats| stats.flush_ms),
    (columns::DEVICE_BUSY_MS, |stats| Some(stats.busy_ms)),
    (columns::DEVICE_QUEUE_MS, |stats| Some(stats.queue_ms)),
    (columns::DEVICE_IN_FLIGHT, |stats| Some(stats.in_flight)),
];

/// A device: its number, and whether it is a partition.
struct CountedDevice {
    number: (u32, u32),
    name: String,
    partition: bool,
}

impl CountedDevice {
    /// True if a line belongs to it. Hidden devices have no number; all their lines say 0 0.
    fn is(&self, stats: &DiskStats) -> bool {
        (stats.major, stats.minor) == self.number && (self.number != (0, 0) || stats.name == self.name)
    }
}

impl Sampler for Diskstats {
    fn about(&self) -> (&'static str, &'static str) {
        ("diskstats", "What the block devices of the stack did, from `/proc/diskstats`: raw counters of each.")
    }

    fn columns(&self, target: &SampledObjects) -> Vec<Column> {
        let prefixes = device_prefixes(target.devices.iter().map(|(name, _)| name));
        prefixes.iter().flat_map(|prefix| columns_of(prefix)).collect()
    }

    fn open(&self, host: &Host, target: &SampledObjects) -> Result<Reading> {
        if target.devices.is_empty() {
            return Err(Error::host("the stack has no block device"));
        }
        let known = diskstats::parse(&host.read("/proc/diskstats")?)?;
        // `None` for a device without counters.
        let counted = target.devices.iter().map(|(_, device)| {
            let own = identified(host, device);
            (known.iter().any(|stats| own.is(stats)) && accounts(host, device)).then_some(own)
        });
        let devices: Vec<Option<CountedDevice>> = counted.collect();
        if devices.iter().all(Option::is_none) {
            let names: Vec<&str> = target.devices.iter().map(|(_, device)| device.name.as_str()).collect();
            let message = format!("the kernel keeps no I/O statistics for {}", names.join(", "));
            return Err(Error::host(message).hint("echo 1 > /sys/block/DEVICE/queue/iostats"));
        }
        let host = host.clone();
        Ok(Box::new(move || {
            let all = diskstats::parse(&host.read("/proc/diskstats")?)?;
            let mut row = Vec::with_capacity(devices.len() * (FIGURES.len() + 1));
            for device in &devices {
                match device {
                    Some(device) => {
                        row.push(Some(Value::Text(device.name.clone())));
                        let stats = counters(&all, device)?;
                        row.extend(FIGURES.iter().map(|(_, of)| count(of(&stats))));
                    }
                    None => row.extend(std::iter::repeat_n(None, FIGURES.len() + 1)),
                }
            }
            Ok(row)
        }))
    }
}

fn columns_of(prefix: &str) -> Vec<Column> {
    let figures = FIGURES.iter().map(|(column, _)| column.column(prefix));
    std::iter::once(columns::DEVICE_NAME.column(prefix)).chain(figures).collect()
}

/// True if the kernel accounts I/O of the device. A partition depends on the switch of its disk.
fn accounts(host: &Host, device: &DeviceFacts) -> bool {
    let folder = device.sysfs_folder();
    let own = host.read_optional(format!("{folder}/queue/iostats"));
    let switch = own.or_else(|| host.read_optional(format!("{folder}/../queue/iostats")));
    switch.is_none_or(|switch| switch != "0")
}

fn identified(host: &Host, device: &DeviceFacts) -> CountedDevice {
    let number = (device.major, device.minor);
    let partition = host.read_optional(format!("{}/partition", device.sysfs_folder())).is_some();
    CountedDevice { number, name: device.name.clone(), partition }
}

fn counters(all: &[DiskStats], device: &CountedDevice) -> Result<DiskStats> {
    let found = all.iter().find(|stats| device.is(stats));
    let stats = found.ok_or_else(|| Error::host(format!("{} disappeared from /proc/diskstats", device.name)))?;
    let mut stats = stats.clone();
    if device.partition {
        // The block layer counts flushes for whole disks only (iostats.rst, field 16).
        (stats.flushes, stats.flush_ms) = (None, None);
    }
    Ok(stats)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::command::Command;
    use crate::host::users::is_root;
    use crate::record::stack::BaseName;

    const STATS: &str = "   8  0 sda 1 0 2 3 4 0 5 6 7 8 9 10 0 11 12 13 14
   8 16 sdb 100 0 200 300 400 0 500 600 700 800 900 1000 0 1100 1200 1300 1400
   8 17 sdb1 1 0 1 1 1 0 1 1 0 1 1 0 0 0 0 0 0
   9  0 md0 1 0 1 1 1 0 1 1 0 1 1
";

    fn device(major: u32, minor: u32, name: &str) -> (BaseName, DeviceFacts) {
        let facts = DeviceFacts { major, minor, name: name.to_owned(), ..DeviceFacts::default() };
        (BaseName(name.to_owned()), facts)
    }

    fn target(devices: Vec<(BaseName, DeviceFacts)>) -> SampledObjects {
        SampledObjects { devices, ..SampledObjects::default() }
    }

    fn machine() -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        std::fs::write(root.path().join("proc/diskstats"), STATS).unwrap();
        let host = Host::rooted(root.path());
        (root, host)
    }

    fn sample(host: &Host, target: &SampledObjects) -> Vec<(String, Option<Value>)> {
        let row = Diskstats.open(host, target).unwrap()().unwrap();
        let columns = Diskstats.columns(target);
        assert_eq!(row.len(), columns.len());
        columns.into_iter().map(|column| column.name).zip(row).collect()
    }

    fn value(row: &[(String, Option<Value>)], name: &str) -> Option<Value> {
        row.iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("no column {name}")).1.clone()
    }

    #[test]
    fn every_device_has_its_own_columns_named_by_its_node() {
        let (_root, host) = machine();
        let mut devices = vec![device(9, 0, "md0"), device(8, 0, "sda"), device(8, 16, "sdb")];
        devices[1].0 = BaseName("lv-hot".to_owned());
        devices[2].0 = BaseName("lv.hot".to_owned());
        let row = sample(&host, &target(devices));
        assert_eq!(value(&row, "dev_lv_hot_name"), Some(Value::Text("sda".to_owned())));
        assert_eq!(value(&row, "dev_lv_hot_write_bytes"), count(5 * 512));
        assert_eq!(value(&row, "dev_lv_hot_2_flushes"), count(1300), "names that look alike in a column stay apart");
        assert_eq!(value(&row, "dev_lv_hot_2_in_flight"), count(700));
        assert_eq!((value(&row, "dev_md0_writes"), value(&row, "dev_md0_flushes")), (count(1), None), "14 fields");
    }

    #[test]
    fn a_partition_has_no_flush_count_but_its_disk_has() {
        let (_root, host) = machine();
        std::fs::create_dir_all(host.path("/sys/dev/block/8:17")).unwrap();
        std::fs::write(host.path("/sys/dev/block/8:17/partition"), "1\n").unwrap();
        let row = sample(&host, &target(vec![device(8, 17, "sdb1"), device(8, 16, "sdb")]));
        assert_eq!((value(&row, "dev_sdb1_flushes"), value(&row, "dev_sdb1_writes")), (None, count(1)));
        assert_eq!(value(&row, "dev_sdb_flushes"), count(1300));
    }

    #[test]
    fn a_hidden_nvme_path_without_device_number_matches_by_name() {
        let (root, host) = machine();
        let lines = " 0 0 nvme0c0n1 1 0 2 3 4 0 5 6 7 8 9 10 0 11 12 13 14\n 0 0 nvme0c1n1 1 0 2 3 9 0 5 6 7 8 9 10 0 11 12 99 14\n";
        std::fs::write(root.path().join("proc/diskstats"), lines).unwrap();
        let row = sample(&host, &target(vec![device(0, 0, "nvme0c1n1")]));
        assert_eq!((value(&row, "dev_nvme0c1n1_writes"), value(&row, "dev_nvme0c1n1_flushes")), (count(9), count(99)));
    }

    #[test]
    fn twenty_devices_have_twenty_sets_of_columns() {
        let devices = (0..20).map(|number| device(8, number, &format!("d{number}"))).collect();
        let columns = Diskstats.columns(&target(devices));
        assert_eq!(columns.len(), 20 * (FIGURES.len() + 1));
        assert_eq!(columns.last().unwrap().name, "dev_d19_in_flight");
    }

    #[test]
    fn a_device_without_account_is_absent_not_zero() {
        let (_root, host) = machine();
        std::fs::create_dir_all(host.path("/sys/dev/block/8:0/queue")).unwrap();
        std::fs::write(host.path("/sys/dev/block/8:0/queue/iostats"), "0\n").unwrap();
        let devices = vec![device(8, 16, "sdb"), device(8, 0, "sda"), device(250, 0, "unlisted")];
        let row = sample(&host, &target(devices.clone()));
        assert_eq!((value(&row, "dev_sdb_writes"), value(&row, "dev_sda_writes")), (count(400), None));
        assert_eq!((value(&row, "dev_sda_name"), value(&row, "dev_unlisted_name")), (None, None));
        let error = Diskstats.open(&host, &target(devices[1..].to_vec())).err().unwrap();
        assert_eq!(error.to_string(), "the kernel keeps no I/O statistics for sda, unlisted");
    }

    #[test]
    fn stacks_without_devices_and_vanished_devices_are_reported() {
        let (_root, host) = machine();
        let error = Diskstats.open(&host, &SampledObjects::default()).err().unwrap();
        assert_eq!(error.to_string(), "the stack has no block device");
        let target = target(vec![device(8, 0, "sda")]);
        let mut reading = Diskstats.open(&host, &target).unwrap();
        std::fs::write(host.path("/proc/diskstats"), "").unwrap();
        assert!(reading().unwrap_err().to_string().contains("sda disappeared"));
    }

    /// A loop device on a file, detached at the end of the test.
    struct Loop(String);
    impl Drop for Loop {
        fn drop(&mut self) {
            drop(Host::this().run(&Command::new("losetup").args(["-d", &self.0])));
        }
    }

    #[test]
    fn a_real_device_counts_what_is_written_and_flushed() {
        let host = Host::this();
        if !is_root() || !host.has_program("losetup") {
            println!("skipped: a loop device needs root and losetup");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(8 << 20).unwrap();
        let made = host.run(&Command::new("losetup").args(["-f", "--show"]).arg(&image)).unwrap();
        let device_path = Loop(made.stdout.trim().to_owned());
        let name = device_path.0.strip_prefix("/dev/").unwrap();
        let number = host.read(format!("/sys/block/{name}/dev")).unwrap();
        let (major, minor) = number.trim().split_once(':').unwrap();
        let mut image_device = device(major.parse().unwrap(), minor.parse().unwrap(), name);
        image_device.0 = BaseName("image".to_owned());
        let target = target(vec![image_device]);
        let before = sample(&host, &target);
        let copy = ["if=/dev/zero", "bs=1M", "count=4", "oflag=direct", "conv=fsync"];
        host.run(&Command::new("dd").args(copy).arg(format!("of={}", device_path.0))).unwrap();
        let after = sample(&host, &target);
        let grown = |column: &str| match (value(&before, column), value(&after, column)) {
            (Some(Value::Count(before)), Some(Value::Count(after))) => after - before,
            other => panic!("{column}: {other:?}"),
        };
        assert_eq!(value(&after, "dev_image_name"), Some(Value::Text(name.to_owned())));
        assert_eq!(grown("dev_image_write_bytes"), 4 << 20);
        assert!(grown("dev_image_writes") > 0 && grown("dev_image_flushes") > 0, "{after:?}");
    }
}

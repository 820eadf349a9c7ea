//! What the block devices below data and pg_wal did: `/proc/diskstats`, raw counters.
//!
//! The columns are a fixed set of slots, `data0` to `data3` and `wal0` to `wal3`: slot 0 is the device that the
//! filesystem stands on, slot 1 what lies below it, and so on. Several devices at one depth (the members of a RAID) are
//! summed. Where a stack is deeper than the slots, the last slot is the lowest depth: the devices that pay. A stack of
//! pg_wal is filled in only where it is another one than the data's.
//!
//! A slot is absent when one of its devices has no counters: the kernel lists it not, or keeps no account of it
//! (`queue/iostats` is 0: its counters stand still, which is not "nothing happened").

use super::{Reading, Sampler, Target, count};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::parse::diskstats::{self, DiskStats};
use crate::record::facts::DeviceFacts;
use crate::record::seconds::{Column, Value};

/// The source `diskstats`.
pub struct Diskstats;

/// Depths that have columns, for data and for pg_wal.
pub const SLOTS: usize = 4;

/// What is kept of a slot, name first: column suffix, unit, meaning. The order is that of [`figures`].
const FIGURES: [(&str, &str, &str); 12] = [
    ("reads", "operations", "reads completed"),
    ("read_bytes", "bytes", "bytes read (sectors of 512 bytes)"),
    ("read_ms", "ms", "time of all reads added up"),
    ("writes", "operations", "writes completed"),
    ("write_bytes", "bytes", "bytes written (sectors of 512 bytes)"),
    ("write_ms", "ms", "time of all writes added up"),
    ("discards", "operations", "discards completed; absent before Linux 4.18"),
    ("flushes", "operations", "flushes completed; absent before Linux 5.5 and for partitions, whose disk counts them"),
    ("flush_ms", "ms", "time of all flushes added up; absent as the flushes are"),
    ("busy_ms", "ms", "time with at least one request in flight; of several devices, added up"),
    ("queue_ms", "ms", "time weighted with the number of requests in flight"),
    ("in_flight", "operations", "requests in flight now"),
];

/// A device of a slot: its number, and whether it is a partition.
struct Device {
    number: (u32, u32),
    name: String,
    partition: bool,
}

struct Open {
    host: Host,
    /// The data's slots, then pg_wal's; an empty one has no device.
    slots: Vec<Vec<Device>>,
}

impl Sampler for Diskstats {
    fn name(&self) -> &'static str {
        "diskstats"
    }

    fn columns(&self) -> Vec<Column> {
        let slots = |of: &'static str| (0..SLOTS).map(move |depth| format!("{of}{depth}"));
        slots("data").chain(slots("wal")).flat_map(|slot| columns_of(&slot)).collect()
    }

    fn open(&self, host: &Host, target: &Target) -> Result<Box<dyn Reading>> {
        if target.data_devices.is_empty() && target.wal_devices.is_empty() {
            return Err(Error::host("the stack stands on no block device"));
        }
        let known = diskstats::parse(&host.read("/proc/diskstats")?)?;
        let counted = |device: &&DeviceFacts| {
            known.iter().any(|stats| (stats.major, stats.minor) == (device.major, device.minor))
                && accounts(host, device)
        };
        let slots: Vec<Vec<Device>> = [&target.data_devices, &target.wal_devices]
            .into_iter()
            .flat_map(|devices| slots(devices))
            .map(|devices| if devices.iter().all(counted) { devices } else { Vec::new() })
            .map(|devices| devices.into_iter().map(|device| identified(host, device)).collect())
            .collect();
        if slots.iter().all(Vec::is_empty) {
            let names: Vec<&str> =
                target.data_devices.iter().chain(&target.wal_devices).map(|device| device.name.as_str()).collect();
            let message = format!("the kernel counts nothing for {}", names.join(", "));
            return Err(Error::host(message).hint("echo 1 > /sys/block/DEVICE/queue/iostats"));
        }
        Ok(Box::new(Open { host: host.clone(), slots }))
    }
}

impl Reading for Open {
    fn sample(&mut self) -> Result<Vec<Option<Value>>> {
        let all = diskstats::parse(&self.host.read("/proc/diskstats")?)?;
        let mut row = Vec::with_capacity(2 * SLOTS * (FIGURES.len() + 1));
        for slot in &self.slots {
            if slot.is_empty() {
                row.extend(std::iter::repeat_n(None, FIGURES.len() + 1));
                continue;
            }
            let names: Vec<&str> = slot.iter().map(|device| device.name.as_str()).collect();
            let figures: Vec<[Option<u64>; 12]> =
                slot.iter().map(|device| device_figures(&all, device)).collect::<Result<_>>()?;
            row.push(Some(Value::Text(names.join("+"))));
            row.extend((0..FIGURES.len()).map(|index| count(sum(figures.iter().map(|device| device[index])))));
        }
        Ok(row)
    }
}

fn columns_of(slot: &str) -> Vec<Column> {
    let name = Column::gauge(
        format!("{slot}_name"),
        "",
        format!("kernel name of the device in slot {slot}; several at one depth, which are then summed, joined by +"),
    );
    let mut columns = vec![name.text()];
    for (figure, unit, meaning) in FIGURES {
        let name = format!("{slot}_{figure}");
        let doc = format!("/proc/diskstats: {meaning}");
        let gauge = figure == "in_flight";
        columns.push(if gauge { Column::gauge(name, unit, doc) } else { Column::counter(name, unit, doc) });
    }
    columns
}

/// The devices of each slot: one slot a depth, the last slot the lowest depth.
fn slots(devices: &[DeviceFacts]) -> [Vec<&DeviceFacts>; SLOTS] {
    let mut depths: Vec<u32> = devices.iter().map(|device| device.depth).collect();
    depths.sort_unstable();
    depths.dedup();
    if depths.len() > SLOTS {
        depths.drain(SLOTS - 1..depths.len() - 1);
    }
    std::array::from_fn(|slot| {
        let at = |device: &&DeviceFacts| Some(&device.depth) == depths.get(slot);
        devices.iter().filter(at).collect()
    })
}

/// Whether the kernel keeps account of the device. A partition's switch is its disk's.
fn accounts(host: &Host, device: &DeviceFacts) -> bool {
    let folder = format!("/sys/dev/block/{}:{}", device.major, device.minor);
    let switch = host
        .read_optional(format!("{folder}/queue/iostats"))
        .or_else(|| host.read_optional(format!("{folder}/../queue/iostats")));
    switch.is_none_or(|switch| switch != "0")
}

fn identified(host: &Host, device: &DeviceFacts) -> Device {
    let number = (device.major, device.minor);
    let partition = host.read_optional(format!("/sys/dev/block/{}:{}/partition", number.0, number.1)).is_some();
    Device { number, name: device.name.clone(), partition }
}

/// The figures of one device in the order of [`FIGURES`].
fn device_figures(all: &[DiskStats], device: &Device) -> Result<[Option<u64>; 12]> {
    let found = all.iter().find(|stats| (stats.major, stats.minor) == device.number);
    let stats = found.ok_or_else(|| Error::host(format!("{} has gone from /proc/diskstats", device.name)))?;
    // The block layer counts flushes for whole disks only (iostats.rst, field 16).
    let flush = |figure: Option<u64>| figure.filter(|_| !device.partition);
    Ok([
        Some(stats.reads),
        Some(stats.read_bytes),
        Some(stats.read_ms),
        Some(stats.writes),
        Some(stats.write_bytes),
        Some(stats.write_ms),
        stats.discards,
        flush(stats.flushes),
        flush(stats.flush_ms),
        Some(stats.busy_ms),
        Some(stats.queue_ms),
        Some(stats.in_flight),
    ])
}

/// The sum; absent as soon as one part is.
fn sum(parts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    parts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::command::Command;
    use crate::host::users::is_root;

    const STATS: &str = "   8  0 sda 1 0 2 3 4 0 5 6 7 8 9 10 0 11 12 13 14
   8 16 sdb 100 0 200 300 400 0 500 600 700 800 900 1000 0 1100 1200 1300 1400
   8 17 sdb1 1 0 1 1 1 0 1 1 0 1 1 0 0 0 0 0 0
   9  0 md0 1 0 1 1 1 0 1 1 0 1 1
";

    fn device(depth: u32, major: u32, minor: u32, name: &str) -> DeviceFacts {
        DeviceFacts { depth, major, minor, name: name.to_owned(), ..DeviceFacts::default() }
    }

    fn machine() -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        std::fs::write(root.path().join("proc/diskstats"), STATS).unwrap();
        let host = Host::rooted(root.path());
        (root, host)
    }

    fn sample(host: &Host, target: &Target) -> Vec<(String, Option<Value>)> {
        let row = Diskstats.open(host, target).unwrap().sample().unwrap();
        let columns = Diskstats.columns();
        assert_eq!(row.len(), columns.len());
        columns.into_iter().map(|column| column.name).zip(row).collect()
    }

    fn value(row: &[(String, Option<Value>)], name: &str) -> Option<Value> {
        row.iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("no column {name}")).1.clone()
    }

    #[test]
    fn devices_at_one_depth_are_summed_and_named_together() {
        let (_root, host) = machine();
        let data_devices = vec![device(0, 9, 0, "md0"), device(1, 8, 0, "sda"), device(1, 8, 16, "sdb")];
        let row = sample(&host, &Target { data_devices, ..Target::default() });
        assert_eq!(value(&row, "data1_name"), Some(Value::Text("sda+sdb".to_owned())));
        assert_eq!(value(&row, "data1_write_bytes"), count((5 + 500) * 512));
        assert_eq!(value(&row, "data1_flushes"), count(13 + 1300));
        assert_eq!(value(&row, "data1_in_flight"), count(7 + 700));
        assert_eq!(value(&row, "data0_name"), Some(Value::Text("md0".to_owned())));
        assert_eq!((value(&row, "data0_writes"), value(&row, "data0_flushes")), (count(1), None), "14 fields");
        assert_eq!((value(&row, "data2_writes"), value(&row, "wal0_name")), (None, None));
    }

    #[test]
    fn a_partition_has_no_flush_count_but_its_disk_has() {
        let (_root, host) = machine();
        std::fs::create_dir_all(host.path("/sys/dev/block/8:17")).unwrap();
        std::fs::write(host.path("/sys/dev/block/8:17/partition"), "1\n").unwrap();
        let wal_devices = vec![device(0, 8, 17, "sdb1"), device(1, 8, 16, "sdb")];
        let row = sample(&host, &Target { wal_devices, ..Target::default() });
        assert_eq!((value(&row, "wal0_flushes"), value(&row, "wal0_writes")), (None, count(1)));
        assert_eq!(value(&row, "wal1_flushes"), count(1300));
    }

    #[test]
    fn a_stack_deeper_than_the_slots_keeps_its_lowest_device() {
        let devices: Vec<DeviceFacts> = (0..7).map(|depth| device(depth, 8, depth, &format!("d{depth}"))).collect();
        let names = slots(&devices).map(|slot| slot.iter().map(|device| device.name.as_str()).collect::<Vec<_>>());
        assert_eq!(names, [["d0"], ["d1"], ["d2"], ["d6"]]);
    }

    #[test]
    fn a_device_without_account_is_absent_not_zero() {
        let (_root, host) = machine();
        std::fs::create_dir_all(host.path("/sys/dev/block/8:0/queue")).unwrap();
        std::fs::write(host.path("/sys/dev/block/8:0/queue/iostats"), "0\n").unwrap();
        let data_devices = vec![device(0, 8, 16, "sdb"), device(1, 8, 0, "sda"), device(2, 250, 0, "unlisted")];
        let row = sample(&host, &Target { data_devices: data_devices.clone(), ..Target::default() });
        assert_eq!((value(&row, "data0_writes"), value(&row, "data1_writes")), (count(400), None));
        assert_eq!((value(&row, "data1_name"), value(&row, "data2_name")), (None, None));
        let none_left = Target { data_devices: data_devices[1..].to_vec(), ..Target::default() };
        let error = Diskstats.open(&host, &none_left).err().unwrap();
        assert_eq!(error.to_string(), "the kernel counts nothing for sda, unlisted");
    }

    #[test]
    fn a_stack_without_devices_and_a_device_that_vanishes_say_so() {
        let (_root, host) = machine();
        let error = Diskstats.open(&host, &Target::default()).err().unwrap();
        assert_eq!(error.to_string(), "the stack stands on no block device");
        let target = Target { data_devices: vec![device(0, 8, 0, "sda")], ..Target::default() };
        let mut reading = Diskstats.open(&host, &target).unwrap();
        std::fs::write(host.path("/proc/diskstats"), "").unwrap();
        assert!(reading.sample().unwrap_err().to_string().contains("sda has gone"));
    }

    /// A loop device on a file, undone with the test.
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
        let facts = device(0, major.parse().unwrap(), minor.parse().unwrap(), name);
        let target = Target { data_devices: vec![facts], ..Target::default() };
        let before = sample(&host, &target);
        let copy = ["if=/dev/zero", "bs=1M", "count=4", "oflag=direct", "conv=fsync"];
        host.run(&Command::new("dd").args(copy).arg(format!("of={}", device_path.0))).unwrap();
        let after = sample(&host, &target);
        let grown = |column: &str| match (value(&before, column), value(&after, column)) {
            (Some(Value::Count(before)), Some(Value::Count(after))) => after - before,
            other => panic!("{column}: {other:?}"),
        };
        assert_eq!(value(&after, "data0_name"), Some(Value::Text(name.to_owned())));
        assert_eq!(grown("data0_write_bytes"), 4 << 20);
        assert!(grown("data0_writes") > 0 && grown("data0_flushes") > 0, "{after:?}");
    }
}

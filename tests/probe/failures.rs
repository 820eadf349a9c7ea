//! Ground that fails while it is measured: the failure is the result, never a fast success.

use crate::probe::faults::can_fuse;
use crate::probe::fuse::{Faults, Fuse, Syncs};
use crate::probe::ground::{Image, Mount, call, can_make, can_mount, folder, has_program, skipped, words};
use crate::probe::program::{Measured, Running, nothing_is_left, operations, probe};
use pgstrata::record::probe::{Failure, RowRecord, Way};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// More than a probe of a small filesystem needs to make its files and begin with its rows, and much less than it does in
/// its time: syncs, and bytes.
const SYNCS_MIDWAY: u64 = 1000;
const BYTES_MIDWAY: u64 = 24 << 20;

/// A row that failed kept what it had, counted no failed operation and was not tried again.
fn ended_by(row: &RowRecord, failure: &Failure) {
    let id = &row.spec.id;
    let latencies = row.seconds.iter().flat_map(|second| &second.latencies).map(|(_, count)| count).sum::<u64>();
    assert_eq!(operations(row), failure.after_operations, "{id}");
    assert_eq!(latencies, failure.after_operations, "{id}");
    assert!(row.slices.iter().all(|slice| slice.at_us <= failure.at_us), "{id} went on after its failure");
    assert!(row.unavailable.is_none(), "{id}");
}

fn failures(result: &Measured) -> Vec<(&RowRecord, &Failure)> {
    result.record.rows.iter().filter_map(|row| Some((row, row.failure.as_ref()?))).collect()
}

/// A probe of a faulty FUSE over memory, which measures and says that rows failed.
fn of_faulty(faults: Faults) -> (Measured, u64) {
    let below = Mount::tmpfs("256m");
    let fuse = Fuse::mount(below.path(), faults);
    let ended = probe(&fuse.mount, &["--json", "--seconds", "2"]).with_code(1);
    nothing_is_left(below.path());
    (ended.result(), fuse.syncs())
}

#[test]
fn a_sync_failing_with_eio_ends_its_row() {
    if !can_fuse("probe of a FUSE with EIO") {
        return;
    }
    let syncs = Syncs::FailFrom(SYNCS_MIDWAY);
    let (result, asked) = of_faulty(Faults { syncs, ..Faults::default() });
    let failed = failures(&result);
    assert!(failed.iter().any(|(row, _)| operations(row) > 0), "none had begun");
    for (row, failure) in &failed {
        ended_by(row, failure);
        assert_eq!(failure.errno, Some(Errno::IO.raw_os_error()), "{}: {failure:?}", row.spec.id);
        assert!(!failure.call.is_empty() && failure.message.contains("EIO"), "{failure:?}");
        assert!(failure.at_us <= result.record.elapsed_us, "{failure:?}");
    }
    // One row for each file, and the threads of group commit: the rows that share it are told so and ask nothing more.
    assert!(failed.len() <= 4, "{}", failed.len());
    assert!(asked <= SYNCS_MIDWAY + 4 + 16, "{asked} syncs were asked for");
    let ended_with = |row: &&RowRecord| row.unavailable.as_ref().is_some_and(|why| why.contains("on the same file"));
    assert!(result.record.rows.iter().filter(ended_with).count() > 10);
    assert!(result.row("not_synced.write").failure.is_none());
}

#[test]
fn a_full_or_over_quota_disk_ends_each_writing_row() {
    if !can_fuse("probe of a FUSE with ENOSPC") {
        return;
    }
    for error in [Errno::NOSPC, Errno::DQUOT] {
        let below = Mount::tmpfs("256m");
        let fuse = Fuse::mount(below.path(), Faults { full: Some((BYTES_MIDWAY, error)), ..Faults::default() });
        let ended = probe(&fuse.mount, &["--json", "--seconds", "3"]).with_code(1);
        let result = ended.result();
        let failed = failures(&result);
        assert!(!failed.is_empty(), "{error}");
        for (row, failure) in failed {
            ended_by(row, failure);
            assert_eq!(failure.errno, Some(error.raw_os_error()), "{}: {failure:?}", row.spec.id);
        }
    }
}

#[test]
fn no_room_for_the_files_is_refused_with_its_reason() {
    if !can_fuse("probe of a FUSE that is full at once") {
        return;
    }
    for (error, name) in [(Errno::NOSPC, "space"), (Errno::DQUOT, "uota")] {
        let below = Mount::tmpfs("256m");
        let fuse = Fuse::mount(below.path(), Faults { full: Some((1 << 20, error)), ..Faults::default() });
        let ended = probe(&fuse.mount, &["--seconds", "1"]).with_code(3).complains(&[name]);
        let says = ended.stderr();
        let hint = says.lines().find(|line| line.starts_with("hint:")).unwrap();
        assert!(hint.contains(fuse.mount.to_str().unwrap()), "it names another folder: {}", ended.said());
    }
}

#[test]
fn a_short_write_is_a_failure_without_errno() {
    if !can_fuse("probe of a FUSE with short writes") {
        return;
    }
    let (result, _) = of_faulty(Faults { short: Some(BYTES_MIDWAY), ..Faults::default() });
    let failed = failures(&result);
    assert!(!failed.is_empty());
    for (row, failure) in failed {
        ended_by(row, failure);
        // A mapping is written by the kernel, which makes an error of it.
        assert!(failure.errno.is_none() || row.spec.way == Way::Msync, "{}: {failure:?}", row.spec.id);
    }
}

/// Fills a filesystem to its last byte.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
}

#[test]
fn an_image_on_a_full_disk_is_an_error() {
    if !can_mount("probe of an image on a full disk") || !can_make("probe of an image on a full disk", &["ext4"]) {
        return;
    }
    let small = Mount::tmpfs("64m");
    let image = Image::at(small.path().join("image"), "ext4");
    let mount = image.mount("");
    fill(&small.path().join("filling"));
    let ended = Running::start(&mut crate::probe::program::command(mount.path(), &["--json", "--seconds", "2"])).end();
    match ended.code {
        Some(1) => {
            let result = ended.result();
            let known = [Errno::IO, Errno::NOSPC, Errno::ROFS].map(|error| Some(error.raw_os_error()));
            for (row, failure) in failures(&result) {
                ended_by(row, failure);
                assert!(known.contains(&failure.errno), "{}: {failure:?}", row.spec.id);
            }
        }
        Some(3) => {
            let names = ["EIO", "ENOSPC", "EROFS", "Input/output error", "space", "read-only", "Read-only"];
            assert!(names.iter().any(|name| ended.stderr().contains(name)), "{}", ended.said());
            assert!(ended.stdout.is_empty(), "{}", ended.said());
        }
        _ => panic!("{}", ended.said()),
    }
}

/// A mapped device over a loop device, removed on drop.
struct Mapped {
    name: String,
    device: String,
}

impl Mapped {
    fn over(image: &Path) -> Option<Mapped> {
        let name = format!("pgstrata-test-{}", std::process::id());
        let found = words("losetup", &["--find", "--show"]).arg(image).output().unwrap();
        let device = String::from_utf8(found.stdout).unwrap().trim().to_owned();
        let mapped = Mapped { name, device };
        let table = format!("0 {} linear {} 0", fs::metadata(image).unwrap().len() / 512, mapped.device);
        let made = words("dmsetup", &["create", &mapped.name, "--table", &table]).status().unwrap();
        made.success().then_some(mapped)
    }

    fn path(&self) -> String {
        format!("/dev/mapper/{}", self.name)
    }

    fn fail_from_now(&self, bytes: u64) {
        call(&mut words("dmsetup", &["suspend", "--nolockfs", "--noflush", &self.name]));
        call(&mut words("dmsetup", &["load", &self.name, "--table", &format!("0 {} error", bytes / 512)]));
        call(&mut words("dmsetup", &["resume", &self.name]));
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        drop(words("dmsetup", &["remove", "--retry", &self.name]).output());
        drop(words("losetup", &["--detach", &self.device]).output());
    }
}

#[test]
fn a_disk_that_starts_failing_is_reported_in_the_result() {
    let test = "probe of a mapped device that fails";
    if !can_make(test, &["ext4"]) {
        return;
    }
    let mapper = fs::read_to_string("/proc/devices").unwrap().contains("device-mapper");
    if !mapper || !has_program("dmsetup") {
        return skipped(test, "needs device-mapper in the kernel, and dmsetup");
    }
    let image = Image::on_disk("ext4");
    let Some(mapped) = Mapped::over(&image.path) else {
        return skipped(test, "device-mapper makes no linear device");
    };
    let mount = Mount::new(words("mount", &[]).arg(mapped.path()));
    let running = Running::midway(mount.path(), "4");
    mapped.fail_from_now(fs::metadata(&image.path).unwrap().len());
    let ended = running.end();
    assert!(matches!(ended.code, Some(1 | 3)), "{}", ended.said());
    let said = ended.stdout() + &ended.stderr();
    assert!(["EIO", "EROFS"].iter().any(|error| said.contains(error)), "{}", ended.said());
}

#[test]
fn a_slow_filesystem_is_measured_all_the_same() {
    if !can_fuse("probe of a slow FUSE") {
        return;
    }
    let below = folder();
    let fuse = Fuse::mount(below.path(), Faults { delay: Duration::from_millis(2), ..Faults::default() });
    let result = probe(&fuse.mount, &["--json", "--seconds", "4"]).with_code(0).result();
    let synced = result.record.rows.iter().filter(|row| row.spec.way == Way::Fdatasync);
    let latencies = synced.flat_map(|row| &row.seconds).flat_map(|second| &second.latencies);
    // A write and a sync, two requests.
    let fastest = latencies.map(|(latency, _)| *latency).min().unwrap();
    assert!(fastest >= 4_000_000, "{fastest} ns");
}

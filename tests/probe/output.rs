//! The forms of the result, and whom the program works for.

use crate::probe::ground::{Mount, can_mount, folder, has_program, set_mode, skipped, words};
use crate::probe::program::{Ended, PROGRAM, Running, command, measured, nothing_is_left, operations, probe};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Lines of pg_test_fsync of PostgreSQL 18 that do not depend on what it measured.
const HEADINGS: [&str; 20] = [
    "O_DIRECT supported on this platform for open_datasync and open_sync.",
    "Compare file sync methods using one 8kB write:",
    "(in \"wal_sync_method\" preference order, except fdatasync is Linux's default)",
    "        open_datasync   ",
    "        fdatasync   ",
    "        fsync   ",
    "        fsync_writethrough                              n/a",
    "        open_sync   ",
    "Compare file sync methods using two 8kB writes:",
    "Compare open_sync with different write sizes:",
    "(This is designed to compare the cost of writing 16kB in different write",
    "open_sync sizes.)",
    "         1 * 16kB open_sync write   ",
    "         2 *  8kB open_sync writes   ",
    "        16 *  1kB open_sync writes   ",
    "Test if fsync on non-write file descriptor is honored:",
    "(If the times are similar, fsync() can sync data written on a different",
    "        write, fsync, close   ",
    "        write, close, fsync   ",
    "Non-sync'ed 8kB writes:",
];

/// The program where every user can reach it.
pub struct Copy {
    program: PathBuf,
    _folder: TempDir,
}

impl Copy {
    /// `None`, with the reason printed, where no other user is available.
    pub fn of_the_program(test: &str) -> Option<Copy> {
        if !has_program("setpriv") {
            skipped(test, "needs the program setpriv");
            return None;
        }
        let folder = folder();
        let program = folder.path().join("pgstrata");
        fs::copy(PROGRAM, &program).unwrap();
        set_mode(&program, 0o755);
        Some(Copy { program, _folder: folder })
    }

    pub fn probe_as_nobody(&self, folder: &Path, args: &[&str]) -> Ended {
        let mut command = words("setpriv", &["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(&self.program).arg("probe").arg(folder).args(args).current_dir("/");
        Running::start(&mut command).end()
    }
}

#[test]
fn somebody_who_is_not_root_can_probe_his_folder() {
    if !can_mount("probe of nobody's folder") {
        return;
    }
    let Some(copy) = Copy::of_the_program("probe of nobody's folder") else { return };
    let folder = folder();
    std::os::unix::fs::chown(folder.path(), Some(65534), Some(65534)).unwrap();
    set_mode(folder.path(), 0o700);
    let result = copy.probe_as_nobody(folder.path(), &["--json", "--seconds", "2"]).with_code(0).result();
    nothing_is_left(folder.path());
    assert!(operations(result.row("one_write.fdatasync")) > 0);
    assert!(result.record.place.mount.is_some());
    let ground = &result.record.place;
    assert!(!ground.devices.is_empty() || !ground.ends.is_empty(), "{ground:?}");
}

#[test]
fn its_folder_is_its_own_while_it_runs() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let running = Running::midway(folder.path(), "2");
    let own = crate::probe::program::left(folder.path());
    assert_eq!(own.len(), 1, "{own:?}");
    assert_eq!(fs::metadata(&own[0]).unwrap().permissions().mode() & 0o777, 0o700);
    running.end().with_code(0);
    nothing_is_left(folder.path());
}

#[test]
fn in_json_slices_and_latencies_hold_the_same_operations() {
    let folder = folder();
    let result = measured(folder.path(), "2");
    let record = &result.record;
    assert_eq!(record.format, pgstrata::record::probe::FORMAT);
    assert_eq!(record.place.folder, folder.path().to_str().unwrap());
    let ids: BTreeSet<&str> = record.rows.iter().map(|row| row.spec.id.as_str()).collect();
    assert_eq!(ids.len(), record.rows.len(), "two rows of one name");
    for row in &record.rows {
        let id = &row.spec.id;
        let counts = row.seconds.iter().flat_map(|second| &second.latencies);
        assert_eq!(operations(row), counts.map(|(_, count)| count).sum::<u64>(), "{id}");
        assert!(operations(row) > 0 || row.unavailable.is_some(), "{id} was not measured and does not say why");
        assert!(row.slowest.len() <= 16 && row.slowest.is_sorted_by(|a, b| a.latency_ns >= b.latency_ns), "{id}");
        for second in &row.seconds {
            assert!(second.latencies.is_sorted_by(|a, b| a.0 < b.0), "{id}");
        }
        for slice in &row.slices {
            assert_eq!(slice.devices.len(), record.place.devices.len(), "{id}");
        }
    }
    // No two rows at the same time.
    let mut slices: Vec<(u64, u64)> =
        record.rows.iter().flat_map(|row| &row.slices).map(|s| (s.at_us, s.elapsed_ns / 1000)).collect();
    slices.sort_unstable();
    assert!(slices.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0 + 1), "{slices:?}");
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let folder = folder();
    let order = |seed: &str| {
        let ended = probe(folder.path(), &["--json", "--seconds", "1", "--seed", seed]).with_code(0);
        let record = ended.result().record;
        assert_eq!(record.seed.to_string(), seed);
        let first = |row: &pgstrata::record::probe::RowRecord| Some((row.slices.first()?.at_us, row.spec.id.clone()));
        let mut rows: Vec<(u64, String)> = record.rows.iter().filter_map(first).collect();
        rows.sort();
        rows.into_iter().map(|(_, id)| id).collect::<Vec<String>>()
    };
    // A busy machine may use the second up before each row had a turn: what both measured is compared.
    let (first, second, other) = (order("7"), order("7"), order("8"));
    let shared =
        |of: &[String], with: &[String]| -> Vec<String> { of.iter().filter(|id| with.contains(id)).cloned().collect() };
    assert!(shared(&first, &second).len() > 3, "{first:?} {second:?}");
    assert_eq!(shared(&first, &second), shared(&second, &first));
    assert_ne!(shared(&first, &other), shared(&other, &first));
}

#[test]
fn in_csv_each_row_has_its_line() {
    let folder = folder();
    let ended = probe(folder.path(), &["--csv", "--seconds", "2"]).with_code(0);
    let text = ended.stdout();
    let lines: Vec<&str> = text.lines().collect();
    let rows = measured(folder.path(), "1").record.rows;
    assert_eq!(lines.len(), rows.len() + 1, "{text}");
    for row in &rows {
        let of_row = lines[1..].iter().filter(|line| line.split(',').any(|cell| cell.trim_matches('"') == row.spec.id));
        assert_eq!(of_row.count(), 1, "{}: {text}", row.spec.id);
    }
    let columns = |line: &str| {
        let outside_quotes = line.split('"').step_by(2);
        outside_quotes.map(|part| part.matches(',').count()).sum::<usize>()
    };
    assert!(lines.iter().all(|line| columns(line) == columns(lines[0])), "{text}");
}

#[test]
fn pg_test_fsync_format_prints_its_lines_in_order() {
    let folder = folder();
    let ended = probe(folder.path(), &["--format", "pg_test_fsync", "--seconds", "2"]).with_code(0);
    let text = ended.stdout();
    let mut rest = text.as_str();
    for heading in HEADINGS {
        let at = rest.find(heading).unwrap_or_else(|| panic!("{heading:?} is missing or out of order:\n{text}"));
        rest = &rest[at + heading.len()..];
    }
    assert_eq!(text.matches(" ops/sec ").count(), 16, "{text}");
    assert_eq!(text.matches(" usecs/op").count(), 16, "{text}");
}

#[test]
fn the_table_fits_100_columns_and_excludes_progress() {
    let folder = folder();
    let ended = probe(folder.path(), &["--seconds", "2"]).with_code(0);
    let text = ended.stdout();
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        assert!(!line.contains(['\r', '\u{1b}']), "{line:?}");
    }
    assert!(text.contains("fdatasync") && text.contains("open_datasync"), "{text}");
}

#[test]
fn a_folder_name_with_control_characters_is_printed_escaped() {
    let folder = folder();
    let name = OsStr::from_bytes(b"a b\x1b[31m\n\x07\xff");
    let tricky = folder.path().join(name);
    fs::create_dir(&tricky).unwrap();
    for args in
        [&["--seconds", "1"][..], &["--seconds", "1", "--csv"], &["--seconds", "1", "--format", "pg_test_fsync"]]
    {
        let ended = probe(&tricky, args).with_code(0);
        for text in [&ended.stdout, &ended.stderr] {
            assert!(!text.iter().any(|byte| [0x1b, 7].contains(byte)), "{args:?}: {}", ended.said().escape_debug());
        }
    }
    let record = measured(&tricky, "1").record;
    assert!(record.place.folder.contains("a b"), "{}", record.place.folder);
    // In a complaint too.
    let ended = Running::start(&mut command(&tricky.join("missing"), &[])).end().with_code(2);
    assert!(!ended.stderr.contains(&0x1b), "{}", ended.said().escape_debug());
}

#[test]
fn a_relative_folder_and_a_link_to_one_are_found() {
    let folder = folder();
    fs::create_dir(folder.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
    let mut command = command(Path::new("link"), &["--json", "--seconds", "1"]);
    let ended = Running::start(command.current_dir(folder.path())).end().with_code(0);
    assert!(ended.result().record.place.folder.starts_with('/'));
    nothing_is_left(&folder.path().join("real"));
}

#[test]
fn json_of_memory_has_no_devices_and_explains_the_end() {
    if !can_mount("probe of memory in JSON") {
        return;
    }
    let mount = Mount::tmpfs("256m");
    let place = measured(mount.path(), "1").record.place;
    assert!(place.devices.is_empty() && !place.ends.is_empty(), "{place:?}");
    assert_eq!(place.mount.unwrap().fstype, "tmpfs");
}

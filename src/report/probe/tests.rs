//! Invariants of a probe's renderers: lines that fit for any numbers, and the format of pg_test_fsync.

use super::{csv, pg_test_fsync};
use crate::analyse::probe::findings::ProbeFindings;
use crate::analyse::probe::{find, sample};
use crate::record::claim::{Claim, Promise};
use crate::record::facts::{DeviceFacts, MountFacts};
use crate::record::probe::{
    DeviceCounts, Failure, Family, Growth, Idle, PlaceFacts, ProbeRecord, RowRecord, RowSpec, SecondLatencies, Segment,
    Slice, Slow, Way,
};
use crate::report::text::at_width;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

fn terminal(findings: &ProbeFindings) -> String {
    super::terminal(findings, &[])
}

/// Output of the original tool, PostgreSQL 18.
const OF_18: &str = include_str!("../../../tests/fixtures/pg_test_fsync/18.txt");

/// A record with every row of pg_test_fsync.
fn compatible() -> ProbeRecord {
    let mut record = sample::honest();
    record.rows.retain(|row| row.spec.family != Family::Wal);
    for family in [Family::OneWrite, Family::TwoWrites] {
        let spec = sample::spec("x.fsync_writethrough", family, "fsync_writethrough", Way::FsyncWritethrough);
        let mut row = sample::row(spec, 1, 1);
        row.slices.clear();
        row.unavailable = Some("not available on Linux".to_owned());
        record.rows.push(row);
    }
    for (writes, kilobytes) in [(1, 16), (2, 8), (4, 4), (8, 2), (16, 1)] {
        let plural = if writes == 1 { "write" } else { "writes" };
        let label = format!("{writes:>2} * {kilobytes:>2}kB open_sync {plural}");
        let spec = sample::spec(&format!("sizes.{writes}"), Family::OpenSyncSizes, &label, Way::OpenSync);
        let spec = RowSpec { writes, write_bytes: kilobytes * 1024, direct: true, ..spec };
        record.rows.push(sample::row(spec, 900, u64::from(writes)));
    }
    for label in ["write, fsync, close", "write, close, fsync"] {
        record.rows.push(sample::row(sample::spec(label, Family::Descriptor, label, Way::Fsync), 800, 1));
    }
    record.rows.push(sample::row(sample::spec("not_synced", Family::NotSynced, "write", Way::None), 1_200_000, 0));
    record
}

/// The text with its rows' numbers blanked, each in its columns.
fn blanked(text: &str) -> Vec<String> {
    let blank = |line: &str| match line.split_once(" ops/sec") {
        Some((before, after)) => {
            let label = &before[..before.len() - 13];
            let unit = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
            format!("{label}{:13} ops/sec{}{unit}", "", " ".repeat(after.len() - unit.len()))
        }
        None => line.to_owned(),
    };
    text.lines().map(blank).collect()
}

#[test]
fn the_text_matches_version_18_except_its_numbers() {
    let ours = pg_test_fsync(&find(&compatible(), 18));
    assert_eq!(blanked(&ours), blanked(OF_18));
    assert_eq!(ours.ends_with('\n'), OF_18.ends_with('\n'));
    let line = ours.lines().find(|line| line.contains("fdatasync  ")).unwrap();
    assert_eq!(line, "        fdatasync                          1000.500 ops/sec    1000 usecs/op");
}

#[test]
fn a_row_without_a_number_reads_as_in_version_18() {
    let mut record = compatible();
    sample::find(&mut record, "one_write.open_sync").failure = Some(sample::failure());
    record.rows.retain(|row| row.spec.family != Family::NotSynced);
    let ours = pg_test_fsync(&find(&record, 18));
    let missing = format!("        {:<30}{:>21}", "open_sync", "n/a");
    assert!(ours.lines().any(|line| line == missing), "{ours}");
    assert_eq!(ours.lines().last().unwrap(), format!("        {:<30}{:>21}", "write", "n/a"));
}

#[test]
fn the_time_per_test_is_at_least_one_second() {
    let mut record = compatible();
    assert!(pg_test_fsync(&find(&record, 18)).starts_with("1 second per test\n"));
    for slice in record.rows.iter_mut().flat_map(|row| &mut row.slices) {
        slice.elapsed_ns *= 5;
    }
    assert!(pg_test_fsync(&find(&record, 18)).starts_with("5 seconds per test\n"));
}

#[test]
fn sections_come_in_order_and_each_row_with_its_figures() {
    let mut record = compatible();
    let wal = sample::honest().rows.into_iter().filter(|row| row.spec.family == Family::Wal);
    record.rows.extend(wal);
    record.rows.push(sample::row(sample::spec("newer.rwf", Family::Newer, "RWF_DSYNC", Way::RwfDsync), 700, 1));
    let text = terminal(&find(&record, 18));
    let headings = [
        "One write",
        "Two writes",
        "open_sync sizes",
        "Descriptor",
        "Not synced",
        "WAL",
        "Newer (not used by PostgreSQL)",
        "Credibility: flushes reach every visible level",
        "Recommendation: wal_sync_method = fdatasync",
        "For comparison",
        "What the device did",
        "Stalls",
        "Caveats",
    ];
    let places: Vec<usize> = headings
        .iter()
        .map(|heading| {
            let is_it = |line: &str| line.starts_with(heading);
            text.lines().skip(7).position(is_it).unwrap_or_else(|| panic!("{heading} is missing: {text}"))
        })
        .collect();
    assert!(places.is_sorted(), "{places:?}");
    let row = text.lines().find(|line| line.starts_with("  fdatasync")).unwrap();
    assert!(row.contains(" 1001 ") && row.contains("1ms") && row.ends_with("1.0w 8k 1.0f"), "{row}");
    assert!(text.contains("n/a: not available on Linux"));
    assert!(text.contains("\u{2192}      1001  HERE"), "{text}");
}

#[test]
fn the_answer_stands_in_the_first_six_lines() {
    let text = at_width(80, || terminal(&find(&compatible(), 18)));
    let head: Vec<&str> = text.lines().take(6).collect();
    let wanted = [
        "WAL writes      not measured",
        "Latency",
        "Credibility     flushes reach",
        "Recommendation",
        "Published",
        "Measured",
    ];
    assert!(head.iter().zip(wanted).all(|(line, wanted)| line.starts_with(wanted)), "{head:?}");
    let text = at_width(80, || terminal(&find(&sample::honest(), 18)));
    let head: Vec<&str> = text.lines().take(7).collect();
    assert!(head[0].starts_with("WAL writes      1001/s ±0.4% by one backend"), "{head:?}");
    assert!(head[1].contains("p99 1 ms, median 1 ms, maximum 1 ms"), "{head:?}");
    assert!(head[3].contains("wal_sync_method = fdatasync (the default), PostgreSQL 18"), "{head:?}");
    assert!(head[4].contains("5th of 10, 1001 fdatasync/s; faster: Samsung 970 Evo Plus 2 TB"), "{head:?}");
    assert!(head[5].contains("/data/pg on ext4, nvme0n1, 9 s") && head[6].is_empty(), "{head:?}");
}

#[test]
fn each_requirement_has_its_line_with_figure_and_interval() {
    use crate::analyse::probe::requirements::{Requirement, judge};
    let record = sample::honest();
    let findings = find(&record, 18);
    let required = ["durable", "tps=5000", "p99=5ms"].map(|text| Requirement::parse(text).unwrap());
    let text = super::terminal(&findings, &judge(&record, &findings, &required));
    let starts = |of: &str| text.lines().any(|line| line.starts_with(of));
    assert!(starts("  pass       durable       flushes were counted"), "{text}");
    assert!(starts("  FAIL       tps=5000      100"), "{text}");
    assert!(starts("  UNDECIDED  p99=5 ms      1 ms (too short for an interval)"), "{text}");
    assert!(text.contains(" per second (95 % CI "), "{text}");
}

#[test]
fn every_label_of_pg_test_fsync_fits_beside_its_figures() {
    let text = terminal(&find(&compatible(), 18));
    for row in compatible().rows {
        let label = row.spec.label.trim().to_owned();
        let beside = text.lines().any(|line| line.starts_with(&format!("  {label} ")) && line.len() > 60);
        assert!(beside || row.unavailable.is_some(), "{label}: {text}");
    }
}

#[test]
fn a_failed_row_shows_its_call_error_and_time() {
    let mut record = sample::honest();
    sample::find(&mut record, "one_write.fdatasync").failure = Some(sample::failure());
    let text = terminal(&find(&record, 18));
    assert!(text.starts_with("FAILED          a sync failed: fdatasync"), "{text}");
    let line = text.lines().find(|line| line.starts_with("    FAILED: ")).unwrap();
    assert!(line.contains("2.5 s after the start") && line.contains("EIO"), "{line}");
    assert!(text.contains("Recommendation: no recommendation\n  A call failed: fix the storage first.\n"), "{text}");
}

#[test]
fn stalls_have_a_date_and_the_rule_has_its_numbers() {
    let mut record = sample::honest();
    let row = sample::find(&mut record, "one_write.fsync");
    let stall = |at_us: u64, ms: u64| Slow { at_us, latency_ns: ms * 1_000_000 };
    row.slowest = vec![stall(1_500_000, 250), stall(1_500_010, 249), stall(7_000_000, 90)];
    let text = terminal(&find(&record, 18));
    assert!(text.contains(" 250ms  2026-03-02 09:14:34.50 UTC  fsync"), "{text}");
    assert!(!text.contains("249ms") && text.contains("  90ms") && text.contains("1 more. Rule"), "{text}");
    let unfolded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unfolded.contains("slower than 10 times its row's median and slower than 10 ms."), "{text}");
}

#[test]
fn a_terminal_is_never_given_control_characters_to_obey() {
    let mut record = sample::honest();
    record.place.folder = "/data/\u{1b}[2Jx".to_owned();
    record.place.devices[0].model = Some("\u{7}Disk\u{202e}".to_owned());
    record.rows[0].spec.label = "\u{9b}31m".to_owned();
    record.notes = vec!["\u{1b}]0;title".to_owned()];
    let text = terminal(&find(&record, 18));
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text}");
    assert!(!text.contains('\u{202e}') && text.contains("{U+001B}"));
}

#[test]
fn the_csv_has_one_line_per_row_of_equal_length() {
    let mut record = compatible();
    record.rows[0].spec.label = "a, \"b\"".to_owned();
    let findings = find(&record, 18);
    let text = csv(&findings);
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), findings.rows.len() + 1);
    let fields = |line: &str| {
        let mut quoted = false;
        1 + line
            .chars()
            .filter(|c| {
                quoted ^= *c == '"';
                *c == ',' && !quoted
            })
            .count()
    };
    assert!(lines.iter().all(|line| fields(line) == fields(lines[0])), "{text}");
    let unavailable = lines.iter().find(|line| line.contains("not available on Linux")).unwrap();
    assert!(unavailable.contains(",,,"), "absent is empty: {unavailable}");
}

fn spec() -> impl Strategy<Value = RowSpec> {
    let family = prop_oneof![
        Just(Family::OneWrite),
        Just(Family::TwoWrites),
        Just(Family::OpenSyncSizes),
        Just(Family::Descriptor),
        Just(Family::NotSynced),
        Just(Family::Wal),
        Just(Family::Newer)
    ];
    let way = prop_oneof![
        Just(Way::OpenDatasync),
        Just(Way::Fdatasync),
        Just(Way::Fsync),
        Just(Way::OpenSync),
        Just(Way::RwfDsync),
        Just(Way::None)
    ];
    let segment = option::of(prop_oneof![Just(Segment::Recycled), Just(Segment::ZeroFilled), Just(Segment::Extended)]);
    let numbers = (any::<u32>(), any::<u32>(), any::<bool>(), any::<u32>());
    (".{0,60}", family, way, numbers, segment).prop_map(|(label, family, way, numbers, segment)| {
        let (write_bytes, writes, direct, writers) = numbers;
        RowSpec { id: label.clone(), family, label, way, write_bytes, writes, direct, writers, segment }
    })
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..10, 0u64..1_000_000_000, any::<u64>()]
}

fn counts() -> impl Strategy<Value = Option<DeviceCounts>> {
    let counts = (number(), number(), option::of(number()), number());
    option::of(counts.prop_map(|(writes, write_bytes, flushes, reads)| DeviceCounts {
        writes,
        write_bytes,
        flushes,
        reads,
    }))
}

fn slice() -> impl Strategy<Value = Slice> {
    (number(), number(), number(), option::of(number()), vec(counts(), 0..3)).prop_map(
        |(at_us, elapsed_ns, operations, syncs, devices)| {
            let device_operations = syncs;
            Slice { at_us, elapsed_ns, operations, syncs, device_operations, devices }
        },
    )
}

fn failed() -> impl Strategy<Value = Option<Failure>> {
    let failure = (".{0,20}", option::of(any::<i32>()), ".{0,80}", number(), number());
    option::of(failure.prop_map(|(call, errno, message, at_us, after_operations)| Failure {
        call,
        errno,
        message,
        at_us,
        after_operations,
    }))
}

fn row() -> impl Strategy<Value = RowRecord> {
    let second = (any::<u32>(), vec((number(), number()), 0..4));
    let second = second.prop_map(|(second, latencies)| SecondLatencies { second, latencies });
    let slow = (number(), number()).prop_map(|(at_us, latency_ns)| Slow { at_us, latency_ns });
    let parts = (vec(slice(), 0..10), vec(second, 0..4), vec(slow, 0..4), vec(number(), 0..3));
    (spec(), option::weighted(0.2, ".{0,120}"), failed(), parts).prop_map(|(spec, unavailable, failure, parts)| {
        let (slices, seconds, slowest, segments_us) = parts;
        RowRecord { spec, unavailable, failure, slices, seconds, slowest, segments_us }
    })
}

fn place() -> impl Strategy<Value = PlaceFacts> {
    let mount =
        (".{0,30}", ".{0,30}").prop_map(|(fstype, source)| MountFacts { fstype, source, ..MountFacts::default() });
    let device = (0u32..3, ".{0,40}", option::of(".{0,40}"), any::<bool>()).prop_map(|(depth, name, model, back)| {
        let named =
            if back { sample::device(&name, depth) } else { DeviceFacts { depth, name, ..DeviceFacts::default() } };
        DeviceFacts { model, rotational: Some(!back), ..named }
    });
    let texts = (".{0,150}", option::of(".{0,30}"), vec(".{0,150}", 0..2));
    (texts, option::of(mount), vec(device, 0..3)).prop_map(|((folder, hypervisor, ends), mount, devices)| PlaceFacts {
        folder,
        mount,
        devices,
        ends: ends.into_iter().map(|end| Promise::new(Claim::HiddenBelow, end)).collect(),
        hypervisor,
        ..PlaceFacts::default()
    })
}

fn record() -> impl Strategy<Value = ProbeRecord> {
    let growth =
        (number(), number(), number(), vec(counts(), 0..3)).prop_map(|(written_bytes, write_ns, sync_ns, devices)| {
            Growth { written_bytes, write_ns, sync_ns, at_us: 0, devices }
        });
    let idle = (number(), vec(counts(), 0..3)).prop_map(|(elapsed_us, devices)| Idle { elapsed_us, devices });
    let started = prop_oneof![Just("2026-03-02T09:14:33Z".to_owned()), ".{0,40}"];
    (place(), vec(row(), 0..8), vec(growth, 0..3), idle, started, 0.0f64..2.0, number()).prop_map(
        |(place, rows, growth, idle, started, precision, elapsed_us)| ProbeRecord {
            place,
            rows,
            growth,
            idle,
            started,
            precision,
            elapsed_us,
            file_bytes: elapsed_us,
            ..ProbeRecord::default()
        },
    )
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(200))]

    #[test]
    fn no_record_breaks_a_renderer_or_its_columns(record in record(), server in 10u32..20, columns in 60u16..130) {
        let findings = find(&record, server);
        let text = at_width(columns, || terminal(&findings));
        for line in text.lines() {
            prop_assert!(line.chars().count() <= usize::from(columns), "{}: {line}", line.chars().count());
        }
        prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
        prop_assert!(pg_test_fsync(&findings).lines().count() >= 30);
        prop_assert!(csv(&findings).starts_with("row,family,"));
        prop_assert_eq!(findings.rows.len(), record.rows.len());
        prop_assert!(serde_json::to_string(&findings).is_ok());
    }
}

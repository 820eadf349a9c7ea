//! Published outputs, outputs of this machine, and forms from manuals.

use super::super::output::Output;
use super::super::table::checks::{numbers_not_read, outputs_of};
use super::read;
use proptest::prelude::{any, proptest};

fn outputs(text: &str) -> Vec<Output> {
    outputs_of(text, read)
}

fn one(text: &str) -> Output {
    let mut found = outputs(text);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

/// Value and unit of a figure in the row with this label, from the first report that has it.
fn value<'a>(output: &'a Output, label: &str, name: &str) -> Option<(f64, &'a str)> {
    let row = output.rows.iter().find(|row| row.labels.iter().any(|(_, value)| value == label))?;
    row.figures.iter().find(|figure| figure.name == name).map(|figure| (figure.value, figure.unit.as_str()))
}

macro_rules! fixture {
    ($path:literal) => {
        include_str!(concat!("../../../../", $path))
    };
}

const LINUX: [&str; 6] = [
    fixture!("tests/fixtures/iostat/12.6.1-x.txt"),
    fixture!("tests/fixtures/iostat/12.6.1-xt.txt"),
    fixture!("tests/fixtures/iostat/12.6.1-xh.txt"),
    fixture!("tests/fixtures/iostat/12.6.1-xs.txt"),
    fixture!("tests/fixtures/iostat/12.6.1-xmy.txt"),
    fixture!("tests/fixtures/iostat/12.6.1-plain.txt"),
];

const PUBLISHED: [&str; 7] = [
    fixture!("shelf/freebsd10-zfs-fsync-2014/iostat-x.txt"),
    fixture!("shelf/wal-blocksize-2012/iostat-x-fdatasync-8k.txt"),
    fixture!("shelf/wal-blocksize-2012/iostat-x-fdatasync-16k.txt"),
    fixture!("shelf/wal-blocksize-2012/iostat-x-fdatasync-64k.txt"),
    fixture!("shelf/wal-blocksize-2012/iostat-x-open_sync-8k.txt"),
    fixture!("shelf/wal-blocksize-2012/iostat-x-open_sync-16k.txt"),
    fixture!("shelf/wal-blocksize-2012/iostat-x-open_sync-64k.txt"),
];

const ILLUMOS: &str = "\
$ iostat -xnz 1
                    extended device statistics
    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device
    1.5  120.0   12.0  960.0  0.0  0.4    0.0    3.2   0  38 c0t0d0
                    extended device statistics
    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device
    0.0  300.0    0.0 2400.0  0.1  0.9    0.3    3.0   1  90 c0t0d0
";

const FREEBSD: &str = "\
                        extended device statistics
device       r/s     w/s     kr/s     kw/s  ms/r  ms/w  ms/o  ms/t qlen  %b
ada0           2     251     16.0   1004.0     1     2     8     2    3  41
";

#[test]
fn every_number_that_was_published_is_read() {
    for text in PUBLISHED {
        let found = outputs(text);
        assert_eq!(numbers_not_read(text, &found), Vec::<String>::new(), "{text}");
        assert!(found.iter().all(|output| output.unread.is_empty()), "{found:#?}");
    }
}

#[test]
fn old_sectors_are_bytes_and_times_are_microseconds() {
    let found = one(PUBLISHED[1]);
    assert_eq!(found.tool, "iostat -x");
    assert_eq!(value(&found, "cciss/c0d0", "write_ops_per_s"), Some((1126.67, "ops/s")));
    assert_eq!(value(&found, "cciss/c0d0", "write_bytes_per_s"), Some((18949.33 * 512.0, "B/s")));
    assert_eq!(value(&found, "cciss/c0d0", "request_bytes"), Some((16.82 * 512.0, "B")));
    assert_eq!(value(&found, "cciss/c0d0p1", "latency_us"), Some((1230.0, "us")));
    assert_eq!(value(&found, "cciss/c0d0p1", "util_percent"), Some((89.27, "%")));
    assert!(
        found.rows[0].since_boot.is_none()
            && found.notes.iter().any(|note| note.contains(
                "unknown whether the first \
                                                                                               report"
            ))
    );
}

#[test]
fn freebsd_of_2014_is_read() {
    let found = one(PUBLISHED[0]);
    assert_eq!((found.tool.as_str(), found.rows.len()), ("iostat -x (FreeBSD)", 13));
    assert_eq!(value(&found, "mfid3", "write_bytes_per_s"), Some((7480.0 * 1024.0, "B/s")));
    assert_eq!(value(&found, "mfid3", "latency_us"), Some((100.0, "us")));
    assert_eq!(value(&found, "mfid10", "util_percent"), Some((4.0, "%")));
}

#[test]
fn every_number_of_this_sysstat_is_read() {
    for text in LINUX {
        let found = outputs(text);
        assert_eq!(numbers_not_read(text, &found), Vec::<String>::new(), "{text}");
        assert!(found.len() == 1 && found[0].unread.is_empty(), "{found:#?}");
        assert!(found[0].facts.contains(&("cpus".to_owned(), "2".to_owned())));
    }
    let found = one(LINUX[0]);
    assert_eq!(found.tool, "iostat -x");
    let reports: Vec<&str> = found.rows.iter().map(|row| row.labels[0].1.as_str()).collect();
    assert_eq!((reports.first(), reports.last()), (Some(&"1"), Some(&"2")));
    // `-y` leaves out the report since boot, and no line says so.
    let since_boot = |text: &str| one(text).rows.into_iter().map(|row| row.since_boot).collect::<Vec<_>>();
    let expected: Vec<Option<bool>> = reports.iter().map(|report| Some(false).filter(|_| *report != "1")).collect();
    assert_eq!(since_boot(LINUX[0]), expected);
    let plain = fixture!("tests/fixtures/iostat/12-ym.txt");
    assert!(since_boot(plain).iter().all(Option::is_none));
    for (command, since) in [("iostat -m", true), ("iostat -y -m 1 1", false), ("iostat -ym 1 1", false)] {
        assert_eq!(since_boot(&format!("$ {command}\n{plain}"))[0], Some(since), "{command}");
    }
}

#[test]
fn a_time_stamp_is_a_label_of_its_report() {
    let found = one(LINUX[1]);
    assert!(found.rows.iter().all(|row| row.labels[1].0 == "time" && row.labels[1].1.contains(':')));
}

#[test]
fn sizes_for_people_carry_their_own_unit() {
    let text = "r/s rkB/s rrqm/s %rrqm r_await rareq-sz Device\n92.24 2.5M 13.22 12.5% 0.20 28.3k vda\n";
    let found = one(text);
    assert_eq!(value(&found, "vda", "read_bytes_per_s"), Some((2.5 * 1024.0 * 1024.0, "B/s")));
    assert_eq!(value(&found, "vda", "read_request_bytes"), Some((28.3 * 1024.0, "B")));
    assert_eq!(value(&found, "vda", "read_merged_percent"), Some((12.5, "%")));
    assert!(one(LINUX[2]).rows.iter().all(|row| row.labels[0].1 == "1"), "four tables of one report");
}

#[test]
fn the_command_decides_whether_the_first_report_is_since_boot() {
    let found = one(ILLUMOS);
    assert_eq!((found.tool.as_str(), found.rows.len()), ("iostat (illumos)", 2));
    assert_eq!((found.rows[0].since_boot, found.rows[1].since_boot), (Some(true), Some(false)));
    assert_eq!(value(&found, "c0t0d0", "active_latency_us"), Some((3200.0, "us")));
    let table = PUBLISHED[1];
    assert_eq!(one(&format!("$ iostat -x 1\n{table}")).rows[0].since_boot, Some(true));
    assert_eq!(one(&format!("$ iostat -x -y 1 1\n{table}")).rows[0].since_boot, Some(false));
    let rows = one(ILLUMOS.split_once('\n').unwrap().1).rows;
    assert_eq!((rows[0].since_boot, rows[1].since_boot), (None, Some(false)), "not told is not no");
    assert!(one(&format!("# iostat -xy 1 1\n{table}")).notes.iter().all(|note| !note.contains("boot")));
}

#[test]
fn illumos_with_errors_is_read() {
    let text = " ---- errors ---\ndevice s/w h/w trn tot\nsd0 0 1 2 3\n";
    assert_eq!(value(&one(text), "sd0", "hard_errors"), Some((1.0, "count")));
    let text = "extended device statistics tty cpu\n\
                device r/s w/s kr/s kw/s wait actv svc_t %w %b tin tout us sy wt id\n\
                sd0 1.0 2.0 3.0 4.0 0.0 0.1 5.0 0 1 0 12 3 4 0 93\nsd1 1.0 2.0 3.0 4.0 0.0 0.1 5.0 0 1\n";
    let found = one(text);
    assert_eq!((value(&found, "sd1", "latency_us"), found.unread.len()), (Some((5000.0, "us")), 0));
    assert_eq!((found.rows.len(), value(&found, "all", "idle_percent")), (4, None), "the terminal's row comes first");
    assert_eq!(found.rows[2].labels[1], ("cpu".to_owned(), "all".to_owned()));
    assert_eq!(numbers_not_read(text, &[found]), Vec::<String>::new());
}

#[test]
fn freebsd_disks_beside_terminal_and_cpu_columns_are_read() {
    let text = "                        extended device statistics             tty             cpu\n\
                device     r/s   w/s    kr/s    kw/s qlen svc_t  %b  tin  tout us ni sy in id\n\
                ada0       0.3   4.5    10.2    33.1    0  12.3   1    0    16  1  0  2  0 97\n\
                ada1      10.3  14.5   110.2   133.1    2  22.3  11\n";
    let found = one(text);
    assert_eq!((found.tool.as_str(), found.rows.len(), found.unread.len()), ("iostat -x (FreeBSD)", 4, 0));
    assert_eq!(value(&found, "ada1", "util_percent"), Some((11.0, "%")));
    assert_eq!(found.rows[2].figures[0].name, "user_percent");
    assert_eq!(numbers_not_read(text, &[found]), Vec::<String>::new());
    let text = "                         extended disk statistics\n\
                disk      r/s  w/s   Kr/s   Kw/s wait actv  svc_t  %w  %b\n\
                sd0       0.1  2.0    0.5   13.2  0.0  0.1   33.1   0   3\n";
    let found = one(text);
    assert_eq!(
        (found.tool.as_str(), value(&found, "sd0", "write_bytes_per_s")),
        ("iostat (illumos)", Some((13.2 * 1024.0, "B/s")))
    );
}

#[test]
fn current_freebsd_is_read_except_disks_side_by_side() {
    let found = one(FREEBSD);
    assert_eq!(value(&found, "ada0", "other_latency_us"), Some((8000.0, "us")));
    assert_eq!(value(&found, "ada0", "queue_length"), Some((3.0, "requests")));
    let text = "      tty            ada0             cpu\n tin  tout  KB/t tps  MB/s  us ni sy in id\n\
                0     1 21.31  12  0.25   1  0  2  0 97\n";
    assert!(outputs(text).is_empty());
}

#[test]
fn a_truncated_row_is_reported_with_its_line() {
    let text = "Device r/s w/s rkB/s wkB/s %util\nsda 1.0 2.0 3.0 4.0 5.0\nsdb 1.0 2.0 3.0\n";
    let found = one(text);
    assert_eq!((found.rows.len(), found.unread.len(), found.unread[0].line), (1, 1, 3));
    let found = one("Device r/s w/s %util\nsda 1.0 nan 5.0\n");
    assert_eq!((found.rows[0].figures.len(), found.unread[0].wanted.as_str()), (2, "a number for w/s, not `nan`"));
}

#[test]
fn an_unknown_column_is_reported_once() {
    let found = one("Device r/s w/s new/s %util\nsda 1 2 3 4\n\nDevice r/s w/s new/s %util\nsda 1 2 3 4\n");
    let names: Vec<&str> = found.rows[0].figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["read_ops_per_s", "write_ops_per_s", "util_percent"]);
    assert_eq!(found.notes[0], "column `new/s` is not known: its numbers are not read");
    assert_eq!((found.unread.len(), found.unread[0].line), (1, 1));
}

#[test]
fn other_columns_of_the_same_kind_are_another_output() {
    let found = outputs(
        "Device r/s w/s %util\nsda 1 2 3\n\n| Device | r/s | w/s | await |\n|---|---|---|---|\n| sda | 1 | 2 | 3 |\n",
    );
    assert_eq!((found.len(), found[1].rows[0].figures.len()), (2, 3));
}

#[test]
fn a_time_stamp_before_the_first_heading_counts() {
    let found = one("$ iostat -T d -x 5\nMon Mar 15 13:48:44 MST 2021\ndevice r/s w/s svc_t %w %b\nsd0 1 2 3 4 5\n");
    assert_eq!((found.rows[0].labels[1].0.as_str(), found.rows[0].since_boot), ("time", Some(true)));
    let found = one("$ iostat -x 5\n[...]\nDevice r/s w/s %util\nsda 1 2 3\n");
    assert_eq!(found.rows[0].since_boot, None, "its first report was left out");
    let found = one("$ iostat -x 5\nDevice r/s w/s %util\n[snip]\nsda 1 2 3\n");
    assert_eq!((found.rows.len(), found.rows[0].since_boot), (1, None));
}

#[test]
fn interval_reports_without_headings_after_grep_remain_separate_reports() {
    let heading = "Device r/s w/s rkB/s wkB/s %util\n";
    let grepped =
        one(&format!("$ iostat -x 1 | grep sda\n{heading}sda 1 2 3 4 5\nsda 6 7 8 9 10\nsda 11 12 13 14 15\n"));
    let reports: Vec<(&str, Option<bool>)> =
        grepped.rows.iter().map(|row| (row.labels[0].1.as_str(), row.since_boot)).collect();
    assert_eq!(reports, [("1", Some(true)), ("2", Some(false)), ("3", Some(false))]);
    let whole = one(&format!("{heading}sda 1 2 3 4 5\nsdb 6 7 8 9 10\n\n{heading}sda 1 2 3 4 5\nsdb 6 7 8 9 10\n"));
    let reports: Vec<&str> = whole.rows.iter().map(|row| row.labels[0].1.as_str()).collect();
    assert_eq!(reports, ["1", "1", "2", "2"]);
}

#[test]
fn device_names_may_contain_blanks_and_absorb_no_figures() {
    let device = |text: &str| one(text).rows[0].labels[1].1.clone();
    assert_eq!(device("Device r/s w/s %util\nMY DATA DISK 1 2 3\n"), "MY DATA DISK");
    assert_eq!(device("r/s w/s %util Device\n1 2 3 MY DATA\n"), "MY DATA");
    let found = one("Device r/s w/s %util\nsda 7 1 2 3\nsdb 1 2 3\n");
    assert_eq!((found.rows.len(), found.unread.len()), (1, 1));
}

#[test]
fn prose_parts_two_outputs() {
    let table = "Device r/s w/s %util\nsda 1 2 3\n";
    let found = outputs(&format!("{table}and with 12 disks it was better:\n{table}"));
    assert_eq!(found.iter().map(|output| output.lines).collect::<Vec<_>>(), [(1, 2), (4, 5)]);
    assert_eq!(outputs(&format!("{table}...\nsdz 4 5 6\n"))[0].rows.len(), 2);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(
        text in "(Device|device|r/s|w/s|KB/t|tps|us|%util|avg-cpu:|[0-9.]{1,4}|sda|Linux|\\{\"sysstat\":|[ ,\\n]){0,60}",
        any in any::<String>(),
    ) {
        outputs(&text);
        outputs(&any);
    }
}

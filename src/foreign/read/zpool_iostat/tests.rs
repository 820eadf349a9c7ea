//! Published outputs, outputs of this machine's tools, and forms from manuals.

use super::super::output::{Output, Row};
use super::super::table::checks::{numbers_not_read, outputs_of};
use super::read;
use proptest::prelude::{any, proptest};

const PUBLISHED: &str = include_str!("../../../../shelf/freebsd10-zfs-fsync-2014/zpool-iostat-v.txt");

const MIRRORS: &str = "\
# zpool iostat -vl tank 5
                capacity     operations     bandwidth    total_wait     disk_wait    syncq_wait    asyncq_wait  scrub   trim
pool          alloc   free   read  write   read  write   read  write   read  write   read  write   read  write   wait   wait
------------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----
tank          2.76T  4.51T  9.56K  62.5K  82.0M   926M  269us    1ms  258us  131us    6us    1us  163us    1ms  452us      -
  mirror-0     564G   924G  1.91K  12.9K  16.4M   188M  302us    1ms  290us  126us    6us    1us  211us    1ms    1ms      -
    sda           -      -    979  6.42K  8.23M  94.1M  302us    1ms  290us  127us    6us    1us  212us    1ms    2ms      -
    sdb           -      -    980  6.46K  8.20M  94.1M  301us    1ms  290us  126us    6us  988ns  210us    1ms  329us      -
  sdc          564G   924G  1.91K  12.9K  16.4M   188M  273us    1ms  262us  129us    6us    1us  168us    1ms  136us      -
logs              -      -      -      -      -      -      -      -      -      -      -      -      -      -      -      -
  mirror-2     128K  9.50G      0     12      0   512K      -  450us      -  440us      -    1us      -      -      -      -
    nvme0n1p1     -      -      0      6      0   256K      -  450us      -  440us      -    1us      -      -      -      -
cache             -      -      -      -      -      -      -      -      -      -      -      -      -      -      -      -
  nvme1n1     1.02G  99.0G      1      3  4.50K   380K  120us   90us  120us   90us      -      -      -      -      -      -
------------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----
tank          2.76T  4.51T      0  62.5K      0   926M      -    1ms      -  131us      -    1us      -    1ms      -      -
";

const PLAIN: &str = "\
              capacity     operations     bandwidth
pool        alloc   free   read  write   read  write
----------  -----  -----  -----  -----  -----  -----
rpool       12.1G   467G      1     22  31.5K   310K
tank        1.51T  2.11T     12    340   1.2M  12.5M
----------  -----  -----  -----  -----  -----  -----
rpool       12.1G   467G      0      0      0      0
tank        1.51T  2.11T      0    400      0  14.0M
----------  -----  -----  -----  -----  -----  -----
";

fn outputs(text: &str) -> Vec<Output> {
    outputs_of(text, read)
}

fn one(text: &str) -> Output {
    let mut found = outputs(text);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

/// Labels after that of the report, joined by slashes.
fn place(row: &Row) -> String {
    let labels = row.labels.iter().filter(|(name, _)| *name != "report" && *name != "time");
    labels.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join("/")
}

fn value(row: &Row, name: &str) -> Option<f64> {
    row.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
}

#[test]
fn every_number_that_was_published_is_read() {
    let found = one(PUBLISHED);
    assert_eq!(numbers_not_read(PUBLISHED, std::slice::from_ref(&found)), Vec::<String>::new());
    assert_eq!((found.rows.len(), found.unread.len()), (15, 0));
    let places: Vec<String> = found.rows.iter().map(place).collect();
    assert_eq!((places[0].as_str(), places[12].as_str()), ("zp1", "zp1/mfid12"));
    assert_eq!((places[13].as_str(), places[14].as_str()), ("zroot", "zroot/mfid0p3"));
    assert_eq!(value(&found.rows[0], "write_ops_per_s"), Some(7.31 * 1024.0));
    assert_eq!(value(&found.rows[0], "write_bytes_per_s"), Some(39.1 * 1024.0 * 1024.0));
    assert_eq!(value(&found.rows[0], "free_bytes"), Some(43.5 * 1024f64.powi(4)));
    assert_eq!(found.rows[0].figures[3].text, "7.31K");
    assert!(found.rows.iter().all(|row| row.since_boot.is_none() && row.labels[0].1 == "1"));
    assert!(found.notes.iter().any(|note| note.contains("rows that add up")));
    assert!(found.notes.iter().any(|note| note.contains("unknown whether the first report")));
}

#[test]
fn mirrors_logs_and_cache_are_told_apart_without_indentation() {
    let text: String = MIRRORS.lines().map(|line| format!("{}\n", line.trim_start())).collect();
    let found = one(&text);
    let places: Vec<String> = found.rows.iter().map(place).collect();
    let expected = [
        "tank",
        "tank/mirror-0",
        "tank/mirror-0/sda",
        "tank/mirror-0/sdb",
        "tank/sdc",
        "tank/logs/mirror-2",
        "tank/logs/mirror-2/nvme0n1p1",
        "tank/cache/nvme1n1",
        "tank",
    ];
    assert_eq!(places, expected);
    assert_eq!(value(&found.rows[0], "read_total_wait_us"), Some(269.0));
    assert_eq!(value(&found.rows[3], "write_syncq_wait_us"), Some(0.988));
    assert_eq!(value(&found.rows[2], "scrub_wait_us"), Some(2000.0));
    assert_eq!(value(&found.rows[0], "trim_wait_us"), None, "a dash is absent, not zero");
    assert_eq!(value(&found.rows[2], "allocated_bytes"), None);
    assert!(found.rows[..8].iter().all(|row| row.since_boot == Some(true)) && found.rows[8].since_boot == Some(false));
    assert_eq!(numbers_not_read(&text, &[found]), ["5"], "the interval on the command line");
}

#[test]
fn pools_without_devices_make_reports() {
    let found = one(PLAIN);
    let places: Vec<String> = found.rows.iter().map(|row| format!("{}:{}", row.labels[0].1, place(row))).collect();
    assert_eq!(places, ["1:rpool", "1:tank", "2:rpool", "2:tank"]);
    let single = "pool alloc free read write read write\ntank 1G 2G 1 2 3K 4K\ntank 1G 2G 5 6 7K 8K\n";
    let found = one(single);
    let reports: Vec<&str> = found.rows.iter().map(|row| row.labels[0].1.as_str()).collect();
    assert_eq!(reports, ["1", "2"]);
}

#[test]
fn queues_have_pending_and_active_requests() {
    let text = "capacity operations bandwidth syncq_read syncq_write\n\
                pool alloc free read write read write pend activ pend activ\ntank 1G 2G 1 2 3K 4K 0 12 1.5K 2\n";
    let found = one(text);
    assert_eq!(value(&found.rows[0], "syncq_read_active"), Some(12.0));
    assert_eq!(value(&found.rows[0], "syncq_write_pending"), Some(1536.0));
}

#[test]
fn a_time_stamp_is_a_label_of_its_report() {
    let found = one("Thu Jun 26 23:52:00 UTC 2014\npool alloc free read write read write\ntank 1G 2G 1 2 3K 4K\n\
                     Thu Jun 26 23:52:05 UTC 2014\ntank 1G 2G 1 2 3K 4K\n");
    let times: Vec<&str> = found.rows.iter().map(|row| row.labels[1].1.as_str()).collect();
    assert_eq!(times, ["Thu Jun 26 23:52:00 UTC 2014", "Thu Jun 26 23:52:05 UTC 2014"]);
}

#[test]
fn a_truncated_row_is_reported_with_its_line() {
    let cut = PUBLISHED.split_once(" 3.62T 0 620").unwrap().0.to_owned() + " 3.62T 0";
    let found = one(&cut);
    assert_eq!((found.unread.len(), found.unread[0].line), (1, 11));
    let found = one("pool alloc free read write read write\ntank 1G 2G 1 2 x 4K\n");
    assert_eq!((found.rows[0].figures.len(), found.unread[0].wanted.contains("read_bytes_per_s")), (5, true));
}

#[test]
fn indentation_tells_what_names_cannot() {
    let text = "pool alloc free read write read write\ntank 3G 3G 1 2 3K 4K\n  raidz1-0 2G 2G 1 2 3K 4K\n    sda - - 1 2 3K 4K\n\
                \u{20}   replacing-1 - - 1 2 3K 4K\n      sdb - - 1 2 3K 4K\n      sdc - - 0 2 0 4K\n    sdd - - 1 2 3K 4K\n\
                special - - - - - -\n  mirror-1 1G 1G 1 2 3K 4K\n    nvme0n1 - - 1 2 3K 4K\n";
    let places = |text: &str| -> Vec<String> { one(text).rows.iter().map(place).collect() };
    let expected = [
        "tank",
        "tank/raidz1-0",
        "tank/raidz1-0/sda",
        "tank/raidz1-0/replacing-1",
        "tank/raidz1-0/replacing-1/sdb",
        "tank/raidz1-0/replacing-1/sdc",
        "tank/raidz1-0/sdd",
        "tank/special/mirror-1",
        "tank/special/mirror-1/nvme0n1",
    ];
    assert_eq!(places(text), expected);
    assert_eq!(one(text).notes.len(), 1, "{:?}", one(text).notes);
    let quoted: String = text.lines().map(|line| format!("> {line}\n")).collect();
    assert_eq!(places(&quoted), expected);
    // Neither collapsed blanks nor the remains of a cut-off margin are indentation.
    let collapsed: String = text.lines().map(|line| format!(" {}\n", line.trim_start())).collect();
    assert_eq!(places(&collapsed)[5], "tank/raidz1-0/sdc");
    let cut = text.replace("tank 3G 3G 1 2 3K 4K\n", "");
    assert_eq!(places(&cut)[1], "raidz1-0/sda");
}

#[test]
fn the_header_decides_whether_the_first_row_is_since_boot() {
    let table = "pool alloc free read write read write\ntank 1G 2G 1 2 3K 4K\ntank 1G 2G 5 6 7K 8K\n";
    let since = |text: &str| one(text).rows.iter().map(|row| row.since_boot).collect::<Vec<_>>();
    assert_eq!(since(table), [None, Some(false)]);
    assert_eq!(since(&format!("# zpool iostat -y tank 10\n----- ----- -----\n{table}")), [Some(false), Some(false)]);
    let snipped = table.replace("write\ntank 1G 2G 1", "write\n----- -----\n[snip]\n\ntank 1G 2G 1");
    assert_eq!(since(&format!("# zpool iostat tank 1\n{snipped}")), [None, Some(false)]);
}

#[test]
fn pool_names_may_contain_blanks_and_absorb_no_figures() {
    let heading = "pool alloc free read write read write\n";
    let found = one(&format!("{heading}my old pool 1G 2G 1 2 3K 4K\ntank 5 1G 2G 1 2 3K 4K\n"));
    assert_eq!((place(&found.rows[0]).as_str(), found.rows.len(), found.unread.len()), ("my old pool", 1, 1));
}

#[test]
fn an_unknown_column_yields_no_number_without_a_unit() {
    let found =
        one("capacity operations bandwidth\npool alloc free read write read write size\ntank 1G 2G 1 2 3K 4K 5\n");
    assert_eq!((found.rows[0].figures.len(), found.unread.len(), found.unread[0].line), (6, 1, 2));
}

#[test]
fn indentation_separates_two_pools_without_a_line_between_them() {
    let text = "pool alloc free read write read write\ntank 3G 3G 1 2 3K 4K\n  sda 3G 3G 1 2 3K 4K\nrpool 1G 1G 1 2 3K 4K\n  sdb 1G 1G 1 2 3K 4K\n";
    let places: Vec<String> = one(text).rows.iter().map(place).collect();
    assert_eq!(places, ["tank", "tank/sda", "rpool", "rpool/sdb"]);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(
        text in "(pool alloc free read write read write|capacity operations|tank|mirror-0|logs|spare-1|-|----|[0-9.]{1,4}[KM]?|[ \\n]){0,60}",
        any in any::<String>(),
    ) {
        outputs(&text);
        outputs(&any);
    }
}

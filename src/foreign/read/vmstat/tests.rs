//! Published outputs, outputs of this machine's tools, and forms from manuals.

use super::super::output::Output;
use super::super::table::checks::{numbers_not_read, outputs_of};
use super::read;
use proptest::prelude::{any, proptest};

const LINUX: [&str; 3] = [
    include_str!("../../../../tests/fixtures/vmstat/4.0.2-plain.txt"),
    include_str!("../../../../tests/fixtures/vmstat/4.0.2-wt.txt"),
    include_str!("../../../../tests/fixtures/vmstat/4.0.2-a.txt"),
];

fn outputs(text: &str) -> Vec<Output> {
    outputs_of(text, read)
}

fn value(output: &Output, name: &str) -> Option<f64> {
    output.rows.iter().flat_map(|row| &row.figures).find(|figure| figure.name == name).map(|figure| figure.value)
}

#[test]
fn every_number_of_this_procps_is_read() {
    for text in LINUX {
        let found = outputs(text);
        assert_eq!(numbers_not_read(text, &found), Vec::<String>::new(), "{text}");
        assert!(found.len() == 1 && found[0].unread.is_empty(), "{found:#?}");
    }
    let found = outputs(LINUX[0]).remove(0);
    assert_eq!((found.rows.len(), found.rows[2].labels[0].1.as_str()), (3, "3"));
    assert!(value(&found, "free_bytes").unwrap() > 1e6 && value(&found, "idle_percent").is_some());
    assert!(outputs(LINUX[1])[0].rows[0].labels[1].1.contains(':'));
    assert!(value(&outputs(LINUX[2])[0], "inactive_bytes").is_some());
}

#[test]
fn guest_time_of_newer_procps_is_read() {
    let text = "$ vmstat 1\nprocs -----------memory---------- ---swap-- -----io---- -system-- -------cpu-------\n\
                r b swpd free buff cache si so bi bo in cs us sy id wa st gu\n1 0 0 100 2 30 0 0 5 6 7 8 9 10 80 1 0 2\n\
                r b swpd free buff cache si so bi bo in cs us sy id wa st gu\n1 0 0 100 2 30 0 0 5 6 7 8 9 10 80 1 0 3\n";
    let found = outputs(text).remove(0);
    assert_eq!((value(&found, "guest_percent"), value(&found, "read_bytes_per_s")), (Some(2.0), Some(5120.0)));
    assert!(
        found.rows[0].since_boot == Some(true) && found.rows[1].since_boot == Some(false) && found.notes.is_empty()
    );
}

#[test]
fn memory_under_a_unit_of_its_own_is_left_out() {
    let table = "r b swpd free buff cache si so bi bo in cs us sy id wa st\n1 0 0 100 2 30 1 2 5 6 7 8 9 10 80 1 0\n";
    for before in [
        "$ vmstat -S M 1\n",
        "$ vmstat -w -Sm\n",
        "$ LC_ALL=C vmstat -wSM 1 5\nvmstat: a warning\n\n",
        "postgres@db1:~$ vmstat --unit=m 1\n",
        "This is what `vmstat 1 -S M` says:\n\n",
    ] {
        let found = outputs(&format!("{before}{table}")).remove(0);
        let figures = ["free_bytes", "swap_in_bytes_per_s", "read_bytes_per_s"].map(|name| value(&found, name));
        assert_eq!(figures, [None, None, Some(5120.0)], "{before}");
        assert!(found.notes.iter().any(|note| note.starts_with("memory, si and so are left out")), "{:?}", found.notes);
    }
    let twice = outputs(&format!("$ vmstat -S M 1\n{table}one\ntwo\nthree\nfour\n{table}$ vmstat 1\n{table}"));
    let free: Vec<Option<f64>> = twice.iter().map(|output| value(output, "free_bytes")).collect();
    assert_eq!(free, [None, None, Some(102_400.0)]);
    for before in ["$ vmstat 1\n", "$ vmstat -S M\n$ ls\n"] {
        let found = outputs(&format!("{before}{table}")).remove(0);
        assert_eq!(
            (value(&found, "free_bytes"), value(&found, "swap_in_bytes_per_s")),
            (Some(102_400.0), Some(1024.0))
        );
    }
    assert!(outputs(table)[0].notes.iter().any(|note| note == "memory is assumed to be in KiB, as without -S"));
}

#[test]
fn columns_of_another_system_are_not_read_as_vmstat() {
    assert!(
        outputs("r b w avm fre flt re pi po fr sr da0 in sy cs us sy id\n1 0 0 5 1 3 0 0 0 3 2 5 6 7 5 1 2 97\n")
            .is_empty()
    );
    let found = outputs("r b swpd free bi bo us sy id zz\n1 0 0 100 5 6 9 10 80 3\n").remove(0);
    assert_eq!((found.rows[0].figures.len(), found.unread.len()), (9, 1));
}

#[test]
fn without_the_command_or_first_report_since_boot_is_unknown() {
    let since = |text: &str| outputs(text)[0].rows[0].since_boot;
    assert_eq!((since(LINUX[0]), since(&format!("$ vmstat 1\n{}", LINUX[0]))), (None, Some(true)));
    let (heading, rows) = LINUX[0].split_once(" st\n").unwrap();
    assert_eq!(since(&format!("$ vmstat 1\n{heading} st\n[...]\n{rows}")), None);
}

#[test]
fn a_truncated_row_is_reported_with_its_line() {
    let cut = LINUX[0].trim_end();
    let found = outputs(&cut[..cut.len() - 4]).remove(0);
    assert_eq!((found.rows.len(), found.unread.len(), found.unread[0].line), (2, 1, 5));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(
        text in "(r b swpd free bi bo us sy id|UTC|Mach Virtual Memory Statistics|x: |[0-9]{1,4}[KM]?|[ \\n]){0,40}",
        any in any::<String>(),
    ) {
        outputs(&text);
        outputs(&any);
    }
}

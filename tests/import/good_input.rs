//! What is read: codes, packings, several tools and versions in one text.

use crate::import::desk::{Desk, fixture, fixture_text, numbers, outputs, said, stdout};
use std::process::{Command, Stdio};

#[test]
fn latin_1_and_utf_16_parse_like_utf_8() {
    let desk = Desk::new();
    let text = format!("Mesur\u{e9} l'\u{e9}t\u{e9} dernier\n{}", fixture_text("pg_test_fsync/15-en.txt"));
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b' ')).collect();
    assert!(String::from_utf8(latin.clone()).is_err(), "the text has letters beyond ASCII");
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect();
    desk.put("utf8.txt", &text);
    desk.put("mark.txt", format!("\u{feff}{}", text.replace('\n', "\r\n")));
    desk.put("latin.txt", latin);
    desk.put("little.txt", [&[0xff, 0xfe], little.as_slice()].concat());
    desk.put("big.txt", big);
    let wanted = numbers(&desk.record(&["utf8.txt"]));
    assert_eq!(wanted.len(), 33);
    for (file, encoding) in [
        ("mark.txt", None),
        ("latin.txt", Some("Latin-1")),
        ("little.txt", Some("UTF-16LE")),
        ("big.txt", Some("UTF-16BE")),
    ] {
        let record = desk.record(&[file]);
        assert_eq!(numbers(&record), wanted, "{file}");
        assert_eq!(record["cases"][0]["trials"][0]["files"][0]["encoding"].as_str(), encoding, "{file}");
    }
}

#[test]
fn compressed_files_are_recognized_by_content_not_name() {
    let desk = Desk::new();
    desk.put("plain", fixture("iostat/12.6.1-x.txt"));
    let wanted = numbers(&desk.record(&["plain"]));
    for (packing, program) in [("gzip", "gzip"), ("xz", "xz"), ("zstd", "zstd")] {
        let made = Command::new(program).arg("-c").arg(desk.path().join("plain")).stderr(Stdio::null()).output();
        let Ok(packed) = made else {
            println!("skipped: {packing}: the program {program} is not installed");
            continue;
        };
        desk.put("packed", &packed.stdout);
        let record = desk.record(&["packed"]);
        assert_eq!(numbers(&record), wanted, "{packing}");
        let file = &record["cases"][0]["trials"][0]["files"][0];
        assert_eq!(file["packed"], packing);
        assert_eq!(file["bytes"], packed.stdout.len());
    }
}

#[test]
fn two_versions_in_one_file_become_two_outputs() {
    let desk = Desk::new();
    let (old, new) =
        (fixture_text("published/wal-blocksize-2012/pg_test_fsync-9.1.txt"), fixture_text("pg_test_fsync/18.txt"));
    let lines = (old.lines().count(), new.lines().count());
    desk.put("both.txt", format!("Before:\n{old}\nAfter:\n{new}"));
    let record = desk.record(&["both.txt"]);
    let found: Vec<_> =
        outputs(&record).iter().map(|output| (output["version"].as_str(), output["lines"].clone())).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].0, Some("9.1"));
    assert_eq!(found[1].0, Some("17 or newer"));
    assert_eq!(found[0].1[0].as_u64(), Some(2));
    assert_eq!(found[1].1[1].as_u64(), Some((lines.0 + lines.1 + 3) as u64));
    assert!(found[0].1[1].as_u64() < found[1].1[0].as_u64());
    desk.put("old.txt", old);
    desk.put("new.txt", new);
    let apart = [numbers(&desk.record(&["old.txt"])), numbers(&desk.record(&["new.txt"]))].concat();
    assert_eq!(numbers(&record), apart);
}

#[test]
fn outputs_of_several_tools_are_read_in_order_without_prose() {
    let desk = Desk::new();
    let parts = ["mount/2.38.1.txt", "pgbench/18-statements.out", "iostat/12.6.1-x.txt"];
    let text: Vec<String> =
        parts.iter().map(|part| format!("We measured 3 times:\n\nfrob 12.5 8\n\n{}\n", fixture_text(part))).collect();
    desk.put("mail.txt", text.concat());
    let record = desk.record(&["mail.txt"]);
    let tools: Vec<&str> = outputs(&record).iter().map(|output| output["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["mount", "pgbench", "iostat -x"]);
    let apart: Vec<String> = parts
        .iter()
        .flat_map(|part| {
            desk.put("part.txt", fixture(part));
            numbers(&desk.record(&["part.txt"]))
        })
        .collect();
    assert_eq!(numbers(&record), apart);
    let output = desk.import(&["mail.txt", "--dry-run"]);
    assert!(stdout(&output).contains("look like measurements, but in no known format"), "{}", said(&output));
    let stored = &record["cases"][0]["trials"][0]["files"][0]["lines_of_no_output"];
    assert_eq!((stored[0].clone(), stored.as_array().unwrap().len()), (serde_json::json!([3, 3]), parts.len()));
}

#[test]
fn standard_input_is_read_and_dry_run_stores_nothing() {
    let desk = Desk::new();
    let output = desk.import_piped(&["-", "--dry-run", "--rows"], &fixture("vmstat/4.0.2-plain.txt"));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(stdout(&output).contains("vmstat") && stdout(&output).contains("nothing was stored"), "{}", said(&output));
    assert!(desk.results().is_empty());
}

#[test]
fn a_since_boot_average_is_distinguished_from_a_possible_one() {
    let desk = Desk::new();
    let plain = fixture_text("vmstat/4.0.2-plain.txt");
    desk.put("plain.txt", &plain);
    desk.put("called.txt", format!("$ vmstat 1 3\n{plain}"));
    let since_boot = |file: &str| {
        let record = desk.record(&[file]);
        let rows = record["cases"][0]["trials"][0]["outputs"][0]["rows"].as_array().unwrap().clone();
        rows.iter().map(|row| row["since_boot"].as_bool()).collect::<Vec<_>>()
    };
    assert_eq!(since_boot("plain.txt"), [None, Some(false), Some(false)]);
    assert_eq!(since_boot("called.txt"), [Some(true), Some(false), Some(false)]);
    let shown = |file: &str| stdout(&desk.import(&[file, "--dry-run", "--rows"]));
    assert!(
        shown("plain.txt").contains("1 (perhaps since boot): ") && shown("plain.txt").matches("boot)").count() == 1
    );
    assert!(shown("called.txt").contains("1 (since boot): ") && shown("called.txt").matches("boot)").count() == 1);
}

#[test]
fn text_that_would_drive_the_terminal_is_shown_harmless() {
    let desk = Desk::new();
    let log = String::from_utf8(fixture("pgbench/18-scripts.log")).unwrap();
    desk.put("x\u{1b}]0;title\u{7}.log", format!("\u{1b}]2;evil\u{7}5\n{log}"));
    let output = desk.import(&["x\u{1b}]0;title\u{7}.log", "--dry-run"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{}", said(&output));
}

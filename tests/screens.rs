//! Every screen in a pseudo-terminal of 80 and of 120 columns: no line is wider, and none is cut where it need not be.

use crate::program::workshop::{Workshop, can_build_stacks};
use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgstrata");

/// What `pgstrata ARGS` prints on a terminal of so many columns; `None` where there is no pseudo-terminal to be had.
fn screen(columns: u16, args: &str, folder: &Path) -> Option<String> {
    let run = format!("stty cols {columns} rows 50 && exec {PROGRAM} {args}");
    let started = Command::new("script")
        .args(["-qec", &run, "/dev/null"])
        .current_dir(folder)
        .env_remove("COLUMNS")
        .env("TERM", "dumb")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let Ok(output) = started else {
        println!("skipped: screens: needs the program script (util-linux)");
        return None;
    };
    Some(String::from_utf8_lossy(&output.stdout).replace('\r', "\n"))
}

/// Lines of both widths fit, and hold these texts, whole.
fn fits(args: &str, whole: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let plan = Command::new(PROGRAM).args(["plan", "--example", "--all"]).output().unwrap();
    std::fs::write(folder.path().join("plan.toml"), plan.stdout).unwrap();
    for columns in [80, 120] {
        let Some(text) = screen(columns, args, folder.path()) else { return };
        for line in text.lines() {
            let width = line.chars().filter(|c| !c.is_control()).count();
            assert!(width <= usize::from(columns), "{args}: {width} of {columns} columns: {line}\n{text}");
        }
        for word in whole {
            assert!(text.contains(word), "{args}: {word} is missing or broken at {columns} columns:\n{text}");
        }
    }
}

#[test]
fn probe_fits_and_answers_in_its_first_six_lines() {
    fits("probe . --seconds 1 2>/dev/null", &["fdatasync, 8 writers", "Samsung 970 Evo Plus 2 TB", "device work"]);
    let folder = tempfile::tempdir().unwrap();
    let Some(text) = screen(80, "probe . --seconds 1 2>/dev/null", folder.path()) else { return };
    let names = ["WAL writes", "Latency", "Credibility", "Recommendation", "Published", "Measured"];
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines.iter().zip(names).all(|(line, name)| line.starts_with(name)), "{text}");
}

#[test]
fn errors_keep_their_colours_where_they_are_folded() {
    let folder = tempfile::tempdir().unwrap();
    let Some(text) = screen(80, "--color always run no-such-plan-as-this-one-in-this-folder", folder.path()) else {
        return;
    };
    for part in ["\u{1b}[1;91merror:\u{1b}[0m failed to read", "\u{1b}[1;96mhint:\u{1b}[0m "] {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
    assert!(!text.contains("U+") && !text.contains("\\u{"), "{text}");
    // As it is seen: without what only sets colours.
    let seen = |line: &str| line.replace("\u{1b}[1;91m", "").replace("\u{1b}[1;96m", "").replace("\u{1b}[0m", "");
    assert!(text.lines().all(|line| seen(line).chars().count() <= 80), "{text}");
}

#[test]
fn doctor_fits() {
    fits(
        "doctor --state state --results results --all",
        &["vm.swappiness", "CPU frequency governor", "Sources of disturbance"],
    );
    fits("doctor --state state --results results", &["Sources of disturbance", "Layers"]);
}

#[test]
fn plan_fits() {
    fits("plan plan.toml --state state --results results", &["Execution order, by case number", "Expected duration"]);
}

#[test]
fn a_report_fits() {
    if !can_build_stacks("screens of a report") {
        return;
    }
    let shop = Workshop::new();
    let run = shop.finished();
    for columns in [80, 120] {
        for command in ["report", "status"] {
            let args = format!("{command} {}", run.strip_prefix(shop.path()).unwrap().display());
            let Some(text) = screen(columns, &args, shop.path()) else { return };
            for line in text.lines() {
                let width = line.chars().filter(|c| !c.is_control()).count();
                assert!(width <= usize::from(columns), "{args}: {width} of {columns} columns: {line}\n{text}");
            }
            let whole = if command == "report" { "another-with-a-long-name" } else { "trials measured" };
            assert!(text.contains(whole), "{text}");
        }
    }
}

#[test]
fn the_shelf_and_a_comparison_fit() {
    fits("shelf", &["freebsd10-zfs-fsync-2014", "wal-blocksize-2012"]);
    fits("shelf show freebsd10-zfs-fsync-2014", &["Conclusions, checked"]);
    fits("compare shelf:freebsd10-zfs-fsync-2014 shelf:wal-blocksize-2012", &["freebsd10-zfs-fsync-2014"]);
}

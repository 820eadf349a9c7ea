//! A run as a person sees it: in a pseudo-terminal of so many columns, and what is said after Ctrl-C.

use crate::program::workshop::{Workshop, can_build_stacks, said, skipped};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const PLAN: &str = r#"
name = "seen"
blocks = 1

[stack.a-stack-with-a-name-too-long-for-it]
filesystem = { tmpfs = "256MiB" }

[workload.tpcb]
pgbench = { scale = 1, clients = 2, duration = "5s", warmup = "1s" }
"#;

/// What is drawn on a terminal of so many columns. script(1) makes the terminal.
fn screen(shop: &Workshop, columns: u32) -> String {
    let program = shop.pgstrata(&[]).get_program().to_str().unwrap().to_owned();
    let command = format!("stty cols {columns} rows 50; {program} run plan.toml --results {columns}");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
    script.env("PGSTRATA_STATE", shop.state()).env("TERM", "xterm").current_dir(shop.path());
    let output = script.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The lines that were drawn one over another, without what moves the cursor.
fn drawn(screen: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for piece in screen.split(['\r', '\n']) {
        let mut line = String::new();
        let mut rest = piece.chars();
        while let Some(c) = rest.next() {
            match c {
                '\u{1b}' => drop(rest.by_ref().find(char::is_ascii_alphabetic)),
                c if c.is_control() => {}
                c => line.push(c),
            }
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

#[test]
fn progress_fits_80_and_120_columns() {
    if !can_build_stacks("progress on a terminal") {
        return;
    }
    if !Path::new("/usr/bin/script").exists() {
        return skipped("progress on a terminal", "needs the program script");
    }
    let shop = Workshop::new();
    shop.file("plan.toml", PLAN);
    for columns in [80, 120] {
        let lines = drawn(&screen(&shop, columns));
        let seconds: Vec<&String> = lines.iter().filter(|line| line.contains("/s, p99 ")).collect();
        assert!(!seconds.is_empty(), "{lines:#?}");
        for line in seconds {
            assert!(line.chars().count() < columns as usize, "{line}");
            let parts: Vec<&str> = line.split("  ").collect();
            assert!(parts[0].ends_with("/1") && parts[1].contains(" left ("), "{line}");
            assert!(parts[2].contains("/s, p99 ") && parts[3].starts_with("second "), "{line}");
            assert!(parts[3].ends_with(" of 5"), "{line}");
            let whole = "a-stack-with-a-name-too-long-for-it.tpcb";
            assert!(if columns == 80 { parts[4].contains('…') } else { parts[4].starts_with(whole) }, "{line}");
        }
        let ended: Vec<&String> = lines.iter().filter(|line| line.contains("/s  in ")).collect();
        assert_eq!(ended.len(), 1, "{lines:#?}");
        assert!(ended.iter().all(|line| line.chars().count() <= columns as usize), "{ended:?}");
    }
}

#[test]
fn after_an_interrupt_the_counts_equal_the_planned_trials() {
    if !can_build_stacks("counts after Ctrl-C") {
        return;
    }
    let shop = Workshop::new();
    let plan = shop.file("plan.toml", &PLAN.replace("blocks = 1", "blocks = 4"));
    let mut run = shop.pgstrata(&["run", plan.to_str().unwrap()]);
    let mut child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("/s  in ") && line.contains(" left (")));
    // The next one has begun: its first event is stored.
    let events = shop.run_folder().join("events.jsonl");
    while fs::read_to_string(&events).unwrap().matches("\"trial_started\"").count() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    drop(lines.last());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(
        String::from_utf8_lossy(&output.stdout)
            .contains("1 trial measured, 3 not run (1 of them cut short); this session took "),
        "{}",
        said(&output)
    );
}

#[test]
fn to_resume_a_complete_run_says_that_it_is_complete() {
    if !can_build_stacks("resuming a complete run") {
        return;
    }
    let shop = Workshop::new();
    let output = shop.pgstrata(&["run", "--resume", shop.finished().to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        stdout.contains("the run is complete: 4 trials measured\n") && !stdout.contains("of it measurement"),
        "{stdout}"
    );
}

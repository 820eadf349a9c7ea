//! The first screen of `pgstrata report` for seven runs, at 80 and at 120 columns, as it is read.
//!
//! The one place that holds the wording of a report: tests elsewhere assert figures and structure. A changed word is read in
//! the difference of its snapshot; the command that takes it over is in `CONTRIBUTING.md`. `PGSTRATA_TEST_PAGES=FOLDER` also
//! writes the seven pages there, to be looked at.

use crate::report::rendered;
use crate::report::stored_runs::{Run, Truth};
use pgstrata::analyse::findings::Findings;
use pgstrata::analyse::load;
use pgstrata::report::terminal::first_screen;
use pgstrata::report::text::at_width;
use std::path::Path;

/// Lines that a terminal shows at once.
const LINES: usize = 24;

const EXT4: Truth =
    Truth { stack: "ext4", workload: "tpcb", clients: 8, settings: &[], rate: 655.0, wal_bytes: 5300.0, storage: 0.62 };
const XFS: Truth = Truth { stack: "xfs", rate: 742.0, wal_bytes: 5900.0, storage: 0.58, ..EXT4 };
const BTRFS: Truth = Truth { stack: "btrfs", rate: 351.0, wal_bytes: 6700.0, storage: 0.81, ..EXT4 };
const TMPFS: Truth = Truth { stack: "tmpfs", rate: 4890.0, wal_bytes: 4900.0, storage: 0.01, ..EXT4 };

/// A run to its end, in which trials of a case scatter by 3 %.
fn run(name: &'static str, blocks: u32, cases: Vec<Truth>) -> Run {
    let baseline = ("stack", "ext4");
    Run { name, blocks, quick: false, scatter: 0.03, trials: usize::MAX, baseline, broken: None, cases }
}

/// Four stacks at two loads, and synced writes alone; quick.
fn demo() -> Run {
    let stacks = [EXT4, XFS, BTRFS, TMPFS];
    let at_one = |truth: Truth| Truth { clients: 1, rate: truth.rate * 0.31, ..truth };
    let alone = |truth: Truth| Truth { workload: "sync", clients: 1, rate: truth.rate * 0.45, ..truth };
    let cases = stacks.into_iter().chain(stacks.map(at_one)).chain(stacks.map(alone)).collect();
    Run { quick: true, scatter: 0.02, ..run("which-filesystem", 3, cases) }
}

fn two_undecided_cases() -> Run {
    Run { scatter: 0.1, ..run("ext4-or-xfs", 3, vec![EXT4, Truth { rate: 690.0, ..XFS }]) }
}

fn one_block() -> Run {
    run("ext4-or-xfs", 1, vec![EXT4, XFS])
}

fn two_blocks() -> Run {
    run("ext4-or-xfs", 2, vec![EXT4, XFS])
}

/// Two filesystems, each with two settings in all combinations.
fn factorial() -> Run {
    const COMPRESSION: &str = "wal_compression";
    const PAGES: &str = "full_page_writes";
    let with = |truth: Truth| {
        let of = |settings: &'static [(&'static str, &'static str)], times: f64, wal: f64| Truth {
            settings,
            rate: truth.rate * times,
            wal_bytes: truth.wal_bytes * wal,
            ..truth
        };
        [
            of(&[(COMPRESSION, "off"), (PAGES, "on")], 1.0, 1.0),
            of(&[(COMPRESSION, "lz4"), (PAGES, "on")], 1.06, 0.6),
            of(&[(COMPRESSION, "off"), (PAGES, "off")], 1.21, 0.3),
            of(&[(COMPRESSION, "lz4"), (PAGES, "off")], 1.2, 0.3),
        ]
    };
    Run { baseline: (PAGES, "on"), ..run("full-page-writes", 4, [EXT4, XFS].into_iter().flat_map(with).collect()) }
}

fn read_only() -> Run {
    let reading = |truth: Truth| Truth { workload: "lookup", rate: truth.rate * 40.0, storage: 0.12, ..truth };
    run("lookups", 3, [EXT4, XFS, BTRFS].map(reading).to_vec())
}

/// Stopped in the second of three blocks; one stack could not be built.
fn incomplete() -> Run {
    Run { trials: 5, broken: Some("btrfs"), ..run("which-filesystem", 3, vec![EXT4, XFS, BTRFS]) }
}

fn situations() -> [(&'static str, Run); 7] {
    [
        ("demo", demo()),
        ("two-undecided-cases", two_undecided_cases()),
        ("one-block", one_block()),
        ("two-blocks", two_blocks()),
        ("factorial", factorial()),
        ("read-only", read_only()),
        ("incomplete", incomplete()),
    ]
}

fn findings(run: &Run) -> Findings {
    let folder = tempfile::tempdir().unwrap();
    let stored = run.store(folder.path());
    // As a person names it: sentences have the name, and each test has a process of its own.
    let before = std::env::current_dir().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    let findings = load::findings(stored.strip_prefix(folder.path()).unwrap()).unwrap();
    std::env::set_current_dir(before).unwrap();
    findings
}

/// What a terminal of so many columns shows before anybody scrolls.
fn screen(columns: u16, name: &str, findings: &Findings) -> String {
    let folder = format!("results/2026-03-02-0914-{name}");
    let text = at_width(columns, || first_screen(findings, Path::new(&folder)));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= usize::from(columns)), "{columns} columns:\n{text}");
    lines[..lines.len().min(LINES)].join("\n")
}

/// Of a terminal of 100 columns.
#[test]
fn the_demo_takes_sixty_lines_with_its_answer_in_four() {
    let findings = findings(&demo());
    let text = at_width(100, || first_screen(&findings, Path::new("results/2026-03-02-0914-which-filesystem")));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() <= 60, "{} lines:\n{text}", lines.len());
    let answer: Vec<&str> = findings.answer.answer.split_whitespace().collect();
    let begins: Vec<&str> = lines[..4].iter().flat_map(|line| line.split_whitespace()).collect();
    assert!(begins.join(" ").contains(&answer.join(" ")), "{text}");
}

#[test]
fn caveats_of_first_screens_take_a_line_each() {
    for (name, run) in situations() {
        let findings = findings(&run);
        let text = at_width(80, || first_screen(&findings, Path::new("results/run")));
        let (_, caveats) = text.split_once("\nCaveats\n").unwrap();
        let lines: Vec<&str> = caveats.lines().take_while(|line| !line.is_empty()).collect();
        assert!(lines.len() == findings.cautions.len().min(5), "{name}: {caveats}");
        assert!(lines.iter().all(|line| line.starts_with("  - ")), "{name}: {caveats}");
    }
}

#[test]
fn an_incomplete_run_names_the_trials_left_out() {
    let findings = findings(&Run { trials: 5, ..run("ext4-or-xfs", 3, vec![EXT4, XFS]) });
    let rows = &findings.rankings[0].classes[0].rows;
    let used = |label: &str| {
        let row = rows.iter().find(|row| row.label == label).unwrap();
        (row.rate.trials, row.trials.iter().map(|trial| trial.used).collect::<Vec<_>>())
    };
    assert_eq!((used("ext4"), used("xfs")), ((2, vec![true, true, false]), (2, vec![true; 2])));
    let text = at_width(120, || first_screen(&findings, Path::new("results/run")));
    let left_out = "What is ranked is of the blocks that all cases have; left out: ext4, trial 3.";
    assert!(text.contains(left_out), "{text}");
}

#[test]
fn first_screens_read_as_their_snapshots() {
    for (name, run) in situations() {
        let findings = findings(&run);
        let shown =
            [80, 120].map(|columns| format!("=== {columns} columns\n{}\n", screen(columns, run.name, &findings)));
        if let Some(pages) = std::env::var_os("PGSTRATA_TEST_PAGES") {
            std::fs::write(Path::new(&pages).join(format!("{name}.html")), rendered("html", &findings)).unwrap();
        }
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(format!("first_screen_{name}"), shown.join("\n"));
        });
    }
}

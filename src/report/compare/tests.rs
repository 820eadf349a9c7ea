//! Invariants of a comparison's terminal text and page, for any names and numbers.

use super::{page, terminal};
use crate::analyse::compare::findings::{
    Alone, Comparison, ComparisonFindings, ComparisonRefusal, Durability, Estimate, FactDifference, MeasureRow, Medium,
    Method, PairFinding, RatioOutcome, Reason, SideFinding, SideOrigin,
};
use crate::analyse::findings::DurabilityClass;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_oneof, proptest};

/// Longest line, columns.
const WIDTH: usize = 100;
const HOSTILE: &str = "</style><script>alert(1)</script>\u{1b}[2J\u{202e}&\"'{{ 7*7 }}";

fn side(mark: &str, label: &str) -> SideFinding {
    SideFinding {
        mark: mark.to_owned(),
        argument: 0,
        label: label.to_owned(),
        origin: SideOrigin::Probe,
        medium: Medium::Disk,
        durability: Some(Durability::of(DurabilityClass::Flushed, "a flush was seen")),
        measures: 2,
        facts: [("stack.filesystem".to_owned(), "ext4".to_owned())].into(),
        caveats: vec!["ten seconds are a short look".to_owned()],
        left_out: vec!["iostat -x".to_owned()],
    }
}

fn estimate(value: f64) -> Estimate {
    Estimate::of(value, Some((value * 0.9, value * 1.1)), 1)
}

fn row(measure: &str, ratio: f64, outcome: RatioOutcome) -> MeasureRow {
    let has = outcome != RatioOutcome::NoInterval;
    MeasureRow {
        measure: format!("pg_test_fsync/one write/{measure}"),
        family: "pg_test_fsync/one write".to_owned(),
        unit: "ops/s".to_owned(),
        more_is_better: true,
        value: estimate(1000.0 * ratio),
        reference: estimate(1000.0),
        value_runs: Vec::new(),
        reference_runs: Vec::new(),
        comparison: Some(Comparison {
            ratio,
            low: has.then_some(ratio * 0.9),
            high: has.then_some(ratio * 1.1),
            outcome,
            method: Method::Slices,
            how: "from the slices of one measurement each".to_owned(),
        }),
        refused: None,
    }
}

fn findings() -> ComparisonFindings {
    let refused = MeasureRow {
        comparison: None,
        refused: Some(Reason::MemoryAgainstDisk),
        ..row("8 kB/fsync", 1.0, RatioOutcome::Faster)
    };
    let rows = vec![
        row("8 kB/open_datasync", 3.4, RatioOutcome::Faster),
        row("8 kB/fdatasync", 0.2, RatioOutcome::Slower),
        row("8 kB/open_sync", 1.01, RatioOutcome::Undecided),
        row("16 kB/open_sync", 2.0, RatioOutcome::NoInterval),
        row("4 kB/open_sync", 2.5, RatioOutcome::NotRepeated),
        refused,
    ];
    let fact = |key: &str, a: Option<&str>, b: Option<&str>| FactDifference {
        key: key.to_owned(),
        values: [a, b].map(|value| value.map(str::to_owned)).into(),
    };
    ComparisonFindings {
        format: 1,
        compared_by: "0.0.0".to_owned(),
        answer: "b is faster than a.".to_owned(),
        sides: vec![side("A", "shelf:a"), side("B", "/b")],
        pairs: vec![PairFinding { side: 1, against: 0, caveat: Some("Not the same promise.".to_owned()), rows }],
        refused: vec![ComparisonRefusal {
            sides: vec![(0, 1)],
            reason: Reason::OtherClients,
            words: "different client count: 4 (A) against 16 (B)".to_owned(),
            measures: (0..9).map(|n| format!("pgbench/clients {n}/tps")).collect(),
        }],
        alone: vec![Alone { side: 1, measures: vec!["newer/8 kB/mmap + msync".to_owned()] }],
        facts_that_differ: vec![fact("host.kernel", Some("6.1"), Some("6.12"))],
        facts_not_told: vec![fact("zfs.sync", Some("standard"), None)],
        caveats: vec!["single runs are among them".to_owned()],
    }
}

#[test]
fn a_comparison_is_called_complete_only_when_nothing_was_skipped() {
    let all = "Everything measured was compared.";
    let mut found = findings();
    found.refused.clear();
    found.alone.clear();
    assert!(!page(&found, None).unwrap().contains(all), "iostat was left out");
    found.sides.iter_mut().for_each(|side| side.left_out.clear());
    assert!(page(&found, None).unwrap().contains(all));
}

#[test]
fn everything_that_was_found_is_said_in_its_order() {
    let text = terminal(&findings());
    let parts = [
        "b is faster than a.",
        "A  shelf:a",
        "B against A",
        "Not the same promise.",
        "pg_test_fsync, one write (ops/s)",
        "3.40× (3.06–3.74) faster",
        "1.01× (0.91–1.11) undecided",
        "2.00× no interval",
        "2.50× (2.25–2.75) not",
        "not compared",
        "Not compared, and why",
        "different client count: 4 (A) against 16 (B)",
        "; 5",
        "only B measured newer/8 kB/mmap + msync",
        "A, B: iostat -x",
        "A  a probe of pgstrata; ext4; on a device; flushed: a flush was seen",
        "Facts that differ",
        "host.kernel",
        "Known for A only: zfs.sync.",
        "Caveats",
        "A, B: ten seconds are a short look",
    ];
    let mut from = 0;
    for part in parts {
        let at = text[from..].find(part).unwrap_or_else(|| panic!("{part} is missing after {from}:\n{text}"));
        from += at;
    }
}

#[test]
fn two_runs_show_both_figures_instead_of_an_interval() {
    let mut found = findings();
    found.pairs[0].rows[0].reference_runs = vec![10.0, 7654.0];
    let (text, page) = (terminal(&found), page(&found, None).unwrap());
    assert!(text.contains(" 10.0, 7654 ") && page.contains("10.0, 7654"), "{text}");
}

#[test]
fn the_page_has_the_same_and_asks_for_nothing() {
    let page = page(&findings(), None).unwrap();
    for part in ["3.40×", "3.06–3.74", "class=\"faster\"", "not compared", ";base64,"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
    assert!(page.contains("default-src &#x27;none&#x27;") || page.contains("default-src 'none'"));
}

#[test]
fn hostile_names_stay_text() {
    let mut findings = findings();
    let spoil = |text: &mut String| text.push_str(HOSTILE);
    spoil(&mut findings.answer);
    for side in &mut findings.sides {
        spoil(&mut side.label);
        side.caveats.iter_mut().for_each(spoil);
        side.left_out.iter_mut().for_each(spoil);
    }
    for row in &mut findings.pairs[0].rows {
        spoil(&mut row.measure);
        spoil(&mut row.unit);
        spoil(&mut row.family);
    }
    findings.facts_that_differ[0].values[0].iter_mut().for_each(spoil);
    spoil(&mut findings.refused[0].words);
    let page = page(&findings, None).unwrap();
    assert!(!page.contains("<script") && page.matches("</style>").count() == 1 && !page.contains(">49"));
    assert!(!page.contains("alert(1)</"), "an element of its own");
    let text = terminal(&findings);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
}

#[test]
fn json_is_the_findings() {
    let text = serde_json::to_string(&findings()).unwrap();
    let again: ComparisonFindings = serde_json::from_str(&text).unwrap();
    // The last digit of numbers may change in JSON, but not in the text shown.
    assert_eq!(terminal(&again), terminal(&findings()));
    assert!(text.contains("\"outcome\":\"undecided\"") && text.contains("\"refused\":\"memory_against_disk\""));
}

/// A text of single-column characters and of characters that control a terminal.
fn name(most: usize) -> impl Strategy<Value = String> {
    proptest::string::string_regex(&format!("[ -~\u{c0}-\u{2af}\u{1}-\u{1f}\u{202a}-\u{202e}]{{0,{most}}}")).unwrap()
}

fn any_row() -> impl Strategy<Value = MeasureRow> {
    let outcome = prop_oneof![
        Just(RatioOutcome::Faster),
        Just(RatioOutcome::Slower),
        Just(RatioOutcome::Undecided),
        Just(RatioOutcome::NotRepeated),
        Just(RatioOutcome::NoInterval)
    ];
    let number = prop_oneof![1e-12f64..1e15, any::<f64>().prop_map(f64::abs)];
    (name(60), number, outcome, any::<bool>(), any::<bool>()).prop_map(|(name, ratio, outcome, shown, rate)| {
        let mut row = MeasureRow { more_is_better: rate, ..row(&name, ratio, outcome) };
        if !shown {
            (row.comparison, row.refused) = (None, Some(Reason::NotSyncedAcrossVersions));
        }
        row
    })
}

proptest! {
    #[test]
    fn no_line_exceeds_the_terminal_and_the_page_always_renders(
        labels in vec(name(140), 2..6), rows in vec(any_row(), 0..6), texts in vec(name(200), 4)
    ) {
        let mut findings = findings();
        let marks = ["A", "B", "C", "D", "Z12"];
        findings.sides = labels.iter().zip(marks).map(|(label, mark)| side(mark, label)).collect();
        findings.pairs[0].rows = rows;
        findings.pairs[0].caveat = Some(texts[0].clone());
        findings.refused[0].words.clone_from(&texts[1]);
        findings.answer.clone_from(&texts[2]);
        let values = findings.sides.iter().map(|side| Some(side.label.clone())).collect();
        findings.facts_that_differ = vec![FactDifference { key: texts[3].clone(), values }];
        findings.facts_not_told.clear();
        for line in terminal(&findings).lines() {
            prop_assert!(line.chars().count() <= WIDTH, "{line}");
        }
        prop_assert!(page(&findings, None).is_ok());
    }
}

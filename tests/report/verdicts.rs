//! Verdicts on power cuts in every form of a report: beside the speed, and in their own section.

use crate::report::{rendered, sample};
use pgstrata::analyse::findings::{DeviceVerdict, Findings, PowerCut, StatesTried, Verdict, VerdictRecord};
use pgstrata::report::text::at_width;

/// What a power cut would cost a stack of the sample.
pub fn verdict(stack: &str) -> Option<Verdict> {
    Some(match stack {
        "ext4" => Verdict::Holds { states: 300 },
        "xfs" => Verdict::Holds { states: 0 },
        "btrfs" => {
            Verdict::NotMeasured { why: "only loop images and disks of a guest are recorded, not disk".to_owned() }
        }
        _ => Verdict::LosesAll { why: "tmpfs is in memory".to_owned() },
    })
}

pub fn power_cuts() -> Vec<PowerCut> {
    let lost = Verdict::Loses { commits: 6_123, us: 2_970_000 };
    let models = [
        ("honest", Verdict::Holds { states: 0 }),
        ("power-protected", Verdict::Holds { states: 0 }),
        ("flush ignored", lost.clone()),
        ("FUA ignored", Verdict::Holds { states: 0 }),
        ("flush and FUA ignored, cache of 1 MiB", Verdict::Loses { commits: 131, us: 60_200 }),
        ("flush delayed by 50.0 ms", Verdict::Loses { commits: 120, us: 50_000 }),
    ];
    let found = sample::STACKS.iter().map(|stack| {
        let is_recorded = matches!(stack.name, "ext4" | "xfs");
        let each = |count: f64| is_recorded.then_some(count);
        let device = |(device, verdict): &(&str, Verdict)| DeviceVerdict {
            device: (*device).to_owned(),
            verdict: verdict.clone(),
        };
        let is_tried = stack.name == "ext4";
        let floor = StatesTried { class: "floor".to_owned(), tried: 300, of: 9_000, may_fail: false };
        PowerCut {
            label: stack.name.to_owned(),
            record: VerdictRecord {
                format: 1,
                tool_version: "0.1.0".to_owned(),
                made: "2026-03-02T09:10:02Z".to_owned(),
                cases: sample::cases_on(stack.name),
                verdict: verdict(stack.name).unwrap(),
                clients: 4,
                commits: if is_recorded { 6_123 } else { 0 },
                writes: if is_recorded { 6_245 } else { 0 },
                flushes: if is_recorded { 3_049 } else { 0 },
                bytes: if is_recorded { 56_432_017 } else { 0 },
                states: if is_tried { vec![floor] } else { Vec::new() },
                wal_ends_read: if is_tried { 300 } else { 0 },
                recovered: if is_tried { 15 } else { 0 },
                devices: if is_recorded { models.iter().map(device).collect() } else { Vec::new() },
                ..VerdictRecord::default()
            },
            writes_per_commit: each(1.02),
            flushes_per_commit: each(0.498),
            bytes_per_commit: each(9_216.4),
            failing_share_max: is_tried.then_some(0.01),
        }
    });
    found.collect()
}

#[test]
fn the_verdict_is_shown_beside_the_speed() {
    let page = rendered("html", &sample::findings());
    let shown = page.split("<script").next().unwrap().replace('\u{a0}', " ");
    for part in [
        "a power cut: holds (300 states); 0.98 flushes per commit",
        "a power cut: loses all commits; tmpfs keeps its files in memory",
        "<h2>Power cuts</h2>",
        "of states chosen like these, at most 1.0 % fail (95 % sure); a smaller share of skipped syncs may go unseen",
        "only loop images and disks of a guest are recorded, not disk",
        "loses 6123 commits &#x2f; 2.97 s",
        "href=\"#power-cuts-section\"",
    ] {
        assert!(shown.contains(part), "{part}");
    }
    let markdown = rendered("md", &sample::findings());
    assert!(markdown.contains("### What a power cut would cost") && markdown.contains("### On other devices"));
    let csv = rendered("csv", &sample::findings());
    assert!(csv.contains(",holds (300 states),,") && csv.contains(",loses all commits,tmpfs is in memory,"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&rendered("json", &sample::findings())).unwrap();
    assert_eq!(json["power_cuts"][1]["devices"][2]["verdict"]["commits"], 6_123);
    assert_eq!(json["cases"][0]["verdict"]["states"], 300);
}

#[test]
fn both_tables_fit_80_columns() {
    let text = at_width(80, || rendered("txt", &sample::findings()));
    assert!(text.contains("What a power cut would cost") && text.contains("On other devices"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_run_without_verdicts_has_no_such_section() {
    let mut findings: Findings = sample::findings();
    findings.power_cuts.clear();
    for form in ["html", "txt", "md"] {
        let text = rendered(form, &findings);
        let text = text.split("<script").next().unwrap();
        assert!(!text.contains("What a power cut would cost") && !text.contains("Power cuts"), "{form}");
    }
}

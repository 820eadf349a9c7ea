//! Titles of the folded sections: what each has found, and which sections are there.

use crate::report::{ageing, rendered, sample};
use pgstrata::analyse::findings::*;
use std::collections::BTreeMap;

/// Titles of all sections of a page, with what stands beside them.
fn titles(findings: &Findings) -> BTreeMap<String, String> {
    let page = rendered("html", findings);
    let sections = page.split("<summary><h2>").skip(1).map(|section| {
        let (title, rest) = section.split_once("</h2>").unwrap();
        let beside = rest.split_once("</summary>").unwrap().0.trim();
        let beside = beside.strip_prefix("<span class=\"aside\">").and_then(|text| text.strip_suffix("</span>"));
        (
            title.to_owned(),
            beside.unwrap_or_default().replace('\u{a0}', " ").replace("&#x2f;", "/").replace("&#x27;", "'"),
        )
    });
    sections.collect()
}

/// The sample, with every section that a plan may add.
fn with_everything() -> Findings {
    let mut findings = Findings { ageing: ageing::figures(), ..sample::findings() };
    let estimate = |value| Some(Estimate::of(value, None, 2));
    for (place, case) in (1u32..).zip(&mut findings.cases) {
        let value = f64::from(place);
        case.stages = vec![StageFinding {
            name: "redo".to_owned(),
            kind: StageKind::Ranked,
            seconds: estimate(value),
            missing: None,
            bytes: None,
            mb_per_s: None,
            trials: Vec::new(),
        }];
        case.snapshots = Some(SnapshotFinding { dip: estimate(value / 100.0), ..SnapshotFinding::default() });
        case.capacity = Some(CapacityFinding {
            limit_us: 20_000,
            unit: "tps".to_owned(),
            searches: 2,
            about: None,
            holds: Some(100.0 * value),
            sentence: String::new(),
            peak: 0.0,
            steps: Vec::new(),
        });
    }
    findings.full = vec![FullFinding {
        case: findings.cases[0].id.clone(),
        trial: 2,
        step: "measuring".to_owned(),
        after_s: 31.4,
        reason: "no space".to_owned(),
        used: None,
        server_log: String::new(),
        is_measured: false,
    }];
    findings.profiled = [("ext4", 14_000.0), ("xfs", 21_000.0)]
        .map(|(name, us)| Profiled {
            name: name.to_owned(),
            rate: 500.0,
            p99_us: estimate(us),
            p99_unavailable: None,
            limit_us: None,
            holds: None,
            fails: None,
            wal_bytes_per_day: None,
            device_bytes_per_day: None,
            back_s: None,
        })
        .into();
    findings
}

#[test]
fn every_section_has_its_finding_beside_its_title() {
    let found = titles(&with_everything());
    let empty: Vec<&String> = found.iter().filter(|(_, beside)| beside.is_empty()).map(|(title, _)| title).collect();
    assert_eq!(empty, ["Plan", "Scaling with clients"]);
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        let lines: Vec<String> = found.iter().map(|(title, beside)| format!("{title}: {beside}")).collect();
        insta::assert_snapshot!("section_titles", lines.join("\n"));
    });
}

#[test]
fn the_title_of_latencies_is_of_one_workload_with_its_ratio() {
    let mut findings = sample::findings();
    let p99 = |findings: &Findings| titles(findings)["Latency"].clone();
    let said = p99(&findings);
    assert!(said.starts_with("tpcb, clients=16: p99 ") && !said.contains("clients=4"), "{said}");
    assert!(said.contains(" ms (tmpfs) to ") && said.ends_with(" ms (btrfs); btrfs 1.20× ext4"), "{said}");
    let of_16 = findings.cases.iter_mut().filter(|case| case.id.ends_with("clients16"));
    for percentile in
        of_16.flat_map(|case| &mut case.measures).flat_map(|of| &mut of.latency.as_mut().unwrap().percentiles)
    {
        percentile.comparison.as_mut().unwrap().outcome = PairOutcome::Undecided;
    }
    assert!(p99(&findings).ends_with("; btrfs and ext4: undecided"), "{}", p99(&findings));
}

#[test]
fn without_seconds_of_its_own_a_section_has_the_rates() {
    let mut findings = sample::findings();
    findings.cases.iter_mut().for_each(|case| case.steadiness = None);
    let said = titles(&findings)["Second by second"].clone();
    assert_eq!(said, "tpcb, clients=16: rate 702/s (btrfs) to 7420/s (tmpfs)");
}

#[test]
fn sections_without_content_are_not_there() {
    let mut findings = sample::findings();
    for case in &mut findings.cases {
        (case.strata, case.backend_time) = (None, None);
    }
    let (whole, without) = (titles(&sample::findings()), titles(&findings));
    let gone: Vec<&String> = whole.keys().filter(|title| !without.contains_key(*title)).collect();
    assert_eq!(gone, ["One commit, layer by layer", "Where the time went"]);
    let page = rendered("html", &findings);
    assert!(!page.contains("href=\"#strata-section\"") && !page.contains("href=\"#waits-section\""));
}

#[test]
fn what_each_trial_and_its_steps_took_is_no_check() {
    let page = rendered("html", &sample::findings());
    let (_, checks) = page.split_once("id=\"checks-section\"").unwrap();
    let (checks, _) = checks.split_once("<details class=\"part\"").unwrap();
    assert!(checks.contains("id=\"checks\"") && checks.contains("id=\"gaps\""), "{checks}");
    assert!(!checks.contains("id=\"steps\"") && !checks.contains("id=\"trials\""), "{checks}");
    assert!(page.contains("id=\"steps\"") && page.contains("id=\"trials\""));
}

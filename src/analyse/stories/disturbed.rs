//! Findings on trials that other programs disturbed.

use crate::analyse::analysis::Analysis;
use crate::analyse::findings::Findings;
use crate::analyse::stories::story::{Act, Story};
use crate::record::trial::{CpuTaken, TrialRecord};

fn by(others_ns: u64) -> Option<CpuTaken> {
    Some(CpuTaken { elapsed_us: 60_000_000, cpus_ns: 120_000_000_000, stolen_ns: 0, others_ns })
}

const A_TENTH: u64 = 6_000_000_000;

/// Findings of a run of ten trials of two cases: `disturbed` disturbed trials count, those of `set_aside` do not.
fn findings(disturbed: usize, set_aside: &[bool]) -> Findings {
    let mut story = Story::of(5, None).with(&Act::on("ext4")).with(&Act::on("xfs"));
    for trial in story.trials.iter_mut().take(disturbed) {
        trial.record.cpu_taken = by(A_TENTH);
    }
    let aside: Vec<TrialRecord> = set_aside
        .iter()
        .zip(&story.trials)
        .map(|(is_repeat, trial)| TrialRecord { cpu_taken: by(A_TENTH), is_repeat: *is_repeat, ..trial.record.clone() })
        .collect();
    let mut analysis = Analysis::new(story.input.clone());
    story.trials.drain(..).for_each(|trial| analysis.add_trial(trial));
    aside.iter().for_each(|record| analysis.add_set_aside(record));
    analysis.finish()
}

fn never_quiet(findings: &Findings) -> Option<&str> {
    findings
        .cautions
        .iter()
        .map(|caution| caution.text.as_str())
        .find(|text| text.starts_with("this machine is too busy"))
}

#[test]
fn a_disturbed_trial_is_kept_outside_the_figures() {
    let found = findings(0, &[false]);
    let aside = &found.set_aside[0];
    assert_eq!((aside.case.as_str(), aside.trial, aside.is_repeat), (found.cases[0].id.as_str(), 1, false));
    assert_eq!(aside.why, "other programs used 10 % of one CPU");
    assert_eq!(found.cases[0].trials, 5);
    assert_eq!(found.cases[0].measures, findings(0, &[]).cases[0].measures);
    let caution = "trial 1: set aside and repeated (other programs used 10 % of one CPU); the repeat counts";
    assert!(found.cases[0].cautions.iter().any(|text| text == caution), "{:?}", found.cases[0].cautions);
    assert_eq!(never_quiet(&found), None);
}

#[test]
fn a_machine_is_called_never_quiet_only_after_repeats_end() {
    assert_eq!(never_quiet(&findings(3, &[])), None, "their blocks are not over");
    assert_eq!(never_quiet(&findings(0, &[false, false])), None, "all that count are quiet");
    let used_up = findings(3, &[false, false]);
    let remark = never_quiet(&used_up).unwrap();
    assert!(
        remark.contains("3 of 10 counted trials") && remark.ends_with("0 of 2 repeats as well, so they stopped"),
        "{remark}"
    );
    let in_vain = findings(3, &[true, true]);
    assert!(never_quiet(&in_vain).unwrap().ends_with("2 of 2 repeats as well, so they stopped"));
}

//! Findings on trials around which the disk was not in its usual state.

use crate::analyse::analysis::Analysis;
use crate::analyse::findings::Findings;
use crate::analyse::stories::story::{Act, Story};
use crate::record::disk_probe::DiskProbe;
use crate::record::trial::TrialRecord;

/// A probe of this many synced writes a second.
fn probe(per_s: u64) -> DiskProbe {
    DiskProbe { flushes: per_s, elapsed_us: 1_000_000, ..DiskProbe::default() }
}

/// Findings of a run of ten trials of two cases: a probe of `disturbed` trials of its last two blocks is off, as is one of
/// each of `set_aside`: repeats of the last block's trials, or trials that were repeated.
fn findings(disturbed: usize, set_aside: &[bool]) -> Findings {
    let mut story = Story::of(5, None).with(&Act::on("ext4")).with(&Act::on("xfs"));
    for trial in &mut story.trials {
        trial.record.disk_probes = vec![probe(4000), probe(4200)];
    }
    for trial in story.trials.iter_mut().filter(|trial| trial.record.trial > 3).take(disturbed) {
        trial.record.disk_probes = vec![probe(4000), probe(400)];
    }
    let aside: Vec<TrialRecord> = set_aside
        .iter()
        .zip(story.trials.iter_mut().filter(|trial| trial.record.trial == 5))
        .map(|(is_repeat, trial)| {
            trial.record.is_repeat = !is_repeat;
            let disk_probes = vec![probe(4000), probe(400)];
            TrialRecord { disk_probes, is_repeat: *is_repeat, ..trial.record.clone() }
        })
        .collect();
    let mut analysis = Analysis::new(story.input.clone());
    story.trials.drain(..).for_each(|trial| analysis.add_trial(trial));
    aside.iter().for_each(|record| analysis.add_set_aside(record));
    analysis.finish()
}

fn never_steady(findings: &Findings) -> Option<&str> {
    findings
        .cautions
        .iter()
        .map(|caution| caution.text.as_str())
        .find(|text| text.starts_with("disk off its usual rate by over 3×"))
}

#[test]
fn a_disturbed_trial_is_kept_outside_the_figures() {
    let found = findings(0, &[false]);
    let aside = &found.set_aside[0];
    assert_eq!((aside.case.as_str(), aside.trial, aside.is_repeat), (found.cases[0].id.as_str(), 5, false));
    assert_eq!(
        (aside.why.as_str(), aside.disk_against_last.map(|ratio| (ratio * 100.0).round())),
        ("disk at 0.10 times its usual rate", Some(10.0))
    );
    assert_eq!(found.cases[0].trials, 5);
    assert_eq!(found.cases[0].measures, findings(0, &[]).cases[0].measures);
    let caution = "trial 5: repeated (disk at 0.10 times its usual rate); the repeat counts";
    assert!(found.cases[0].cautions.iter().any(|text| text == caution), "{:?}", found.cases[0].cautions);
    assert_eq!(never_steady(&found), None);
}

#[test]
fn a_disk_is_called_unsteady_only_after_repeats_end() {
    assert_eq!(never_steady(&findings(2, &[])), None, "their blocks are not over");
    assert_eq!(never_steady(&findings(0, &[false, false])), None, "all that count are steady");
    let used_up = findings(2, &[false, false]);
    let remark = never_steady(&used_up).unwrap();
    assert!(remark.ends_with("around 2 of 10 trials; at most a fifth repeat"), "{remark}");
    let in_vain = findings(4, &[true, true]);
    let remark = never_steady(&in_vain).unwrap();
    assert!(remark.ends_with("around 4 of 10 trials; at most a fifth repeat"), "{remark}");
    let several = in_vain.cautions.iter().find(|one| one.text.ends_with("around trials that count")).unwrap();
    assert_eq!(several.cases.len(), 2, "each case once");
    let own = "trial 4, with its disk at 0.10 times the usual rate, counts";
    assert!(in_vain.cases[0].cautions.iter().any(|text| text == own), "{:?}", in_vain.cases[0].cautions);
}

#[test]
fn the_course_of_the_disk_is_of_all_probes() {
    let found = findings(1, &[]);
    let disk = &found.run.disks[0];
    assert_eq!((disk.per_s_lowest, disk.per_s_highest, disk.probes.len()), (400.0, 4200.0, 20));
    assert_eq!(found.run.trials_disturbed, 1);
    assert_eq!(found.run.disturbed_by_block, [(4, 1)].into());
}

/// Ten trials of two cases, the slow disk in those that `changed` has changed.
fn disturbed_after(changed: impl Fn(&mut TrialRecord)) -> u32 {
    let mut story = Story::of(5, None).with(&Act::on("ext4")).with(&Act::on("xfs"));
    for trial in &mut story.trials {
        let slow = trial.record.trial > 3;
        trial.record.disk_probes = vec![probe(if slow { 100 } else { 4000 })];
        if slow {
            changed(&mut trial.record);
        }
    }
    let mut analysis = Analysis::new(story.input.clone());
    story.trials.drain(..).for_each(|trial| analysis.add_trial(trial));
    analysis.finish().run.trials_disturbed
}

#[test]
fn disks_of_other_machines_are_not_compared() {
    // The first slow one has only three probes before it.
    assert_eq!(disturbed_after(|_| ()), 3);
    assert_eq!(disturbed_after(|trial| trial.host.hostname = "other".to_owned()), 0);
    assert_eq!(disturbed_after(|trial| trial.disk_probes[0].folder = "/other".into()), 0);
}

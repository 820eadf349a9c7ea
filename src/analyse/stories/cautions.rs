//! Cautions: reported once for all cases concerned, most important first.

use crate::analyse::findings::Findings;
use crate::analyse::stories::story::{Act, Story, first_device};
use crate::record::counts::{Measure, Unsent};
use crate::record::facts::{Fits, HostFacts};
use crate::record::operation::CacheState;
use crate::record::trial::{Gap, TrialRecord};
use crate::record::turns::{TurnRecord, TurnsRecord};

/// Caution of every run on the stories' virtual disk.
const BELOW: &str = "vda is a virtual disk: nothing below it is visible";

/// Text and scope of every other caution.
fn said(found: &Findings) -> Vec<(&str, Option<&str>)> {
    let others = found.cautions.iter().filter(|caution| caution.text != BELOW);
    others.map(|caution| (caution.text.as_str(), caution.scope.as_deref())).collect()
}

fn fits_into_memory(record: &mut TrialRecord) {
    let data = record.data.as_mut().unwrap();
    let bytes = if record.case.stack.name == "ext4" { 308 << 20 } else { 313 << 20 };
    (data.fits, data.database_bytes) = (Fits::Memory, bytes);
}

#[test]
fn cautions_that_differ_only_in_a_number_share_one_sentence() {
    let act = |stack: &str| Act::on(stack).touched(fits_into_memory);
    let found = Story::of(3, None).with(&act("ext4")).with(&act("xfs")).with(&act("btrfs")).findings();
    let text = "data (308 to 313 MiB) fit into memory: reads came from cache";
    assert_eq!(said(&found), [(text, Some("all cases"))]);
    assert_eq!(found.cautions[0].cases.len(), 3);
    assert_eq!(found.cases[0].cautions, ["data (308 MiB) fit into memory: reads came from cache"]);
    let scans = Act::on("ext4").touched(|record| {
        fits_into_memory(record);
        (record.operation.noun, record.operation.cache) = ("MiB".to_owned(), Some(CacheState::Cold));
    });
    assert!(Story::of(3, None).with(&scans).findings().cases[0].cautions.is_empty(), "each scan is cold");
    let on_zfs = Story::of(3, None).with(&act("zfs")).findings();
    let in_arc = "data (313 MiB) can be held by the ARC: reads may be from it";
    assert_eq!(on_zfs.cases[0].cautions, [in_arc]);
    let kept = |primarycache: &str| {
        let mut act = act("zfs");
        act.stack.mount.zfs.insert("primarycache".to_owned(), primarycache.to_owned());
        Story::of(3, None).with(&act).findings().cases[0].cautions.clone()
    };
    assert_eq!(kept("all"), [in_arc]);
    assert!(kept("metadata").is_empty() && kept("none").is_empty());
}

#[test]
fn cases_with_a_server_are_named_so_beside_cases_without() {
    let act = |stack: &str| Act::on(stack).touched(fits_into_memory);
    let found = Story::of(3, None)
        .with(&act("ext4"))
        .with(&act("xfs"))
        .with(&Act::sync_on("ext4"))
        .with(&Act::sync_on("xfs"))
        .findings();
    assert_eq!(said(&found)[0].1, Some("all cases with a server"), "{:?}", found.cautions);
}

#[test]
fn a_caution_of_several_cases_lists_them() {
    let busy = |stack: &str, share: f64| {
        let mut act = Act::on(stack);
        act.cpu_busy = share;
        act
    };
    let found = Story::of(3, None)
        .with(&busy("ext4", 0.4))
        .with(&busy("xfs", 0.93))
        .with(&busy("btrfs", 0.99))
        .with(&Act::in_memory().trials(&[1, 2]))
        .findings();
    let text = "CPUs were 93 to 99 % busy: stacks may differ by their CPU cost";
    assert_eq!(said(&found), [("measured in 2 of 3 blocks", None), (text, None)]);
    assert_eq!(found.cautions[1].cases, ["xfs-tpcb-c16", "btrfs-tpcb-c16"]);
}

#[test]
fn programs_outside_the_run_that_took_time_are_named() {
    let beside = |stack: &str, name: &'static str, share: f64| {
        let mut act = Act::on(stack);
        act.others = Some((name, share));
        act
    };
    let found = Story::of(3, None)
        .with(&beside("ext4", "rustc", 0.3))
        .with(&beside("xfs", "rustc", 0.5))
        .with(&beside("btrfs", "sshd", 0.01))
        .findings();
    let text = "other programs: ≥ 30 to 50 % of one CPU, worst trial (rustc)";
    assert_eq!(said(&found), [(text, None)]);
    assert_eq!(found.cautions[0].cases, ["ext4-tpcb-c16", "xfs-tpcb-c16"]);
}

#[test]
fn the_most_important_comes_first_whatever_case_has_it() {
    let first = Act::on("ext4").touched(|record| {
        fits_into_memory(record);
        record.telemetry_cpu_us = Some(600_000);
    });
    let second = Act::on("xfs").touched(|record| {
        fits_into_memory(record);
        record.counts.as_mut().unwrap().measures[0].failed = 1;
    });
    let found = Story::of(3, None).with(&first).with(&second).findings();
    let starts = ["transactions: 3 of ", "data (308 to 313 MiB)", "telemetry used 1.0 % of one CPU"];
    let said = said(&found);
    assert!(said.len() == 3 && said.iter().zip(starts).all(|(s, start)| s.0.starts_with(start)), "{said:?}");
}

#[test]
fn only_a_missing_source_that_a_case_needs_is_cautioned() {
    let without_devices = |record: &mut TrialRecord| {
        let gap = |source: &str| Gap { source: source.to_owned(), second: None, rows: 60, reason: "none".to_owned() };
        record.gaps = vec![gap("diskstats"), gap("postgres")];
    };
    let sync = Act { workload: "sync", ..Act::in_memory().touched(without_devices) };
    assert_eq!(said(&Story::of(3, None).with(&sync).findings()), []);
    let mut hidden = Act::on("zfs").touched(without_devices);
    hidden.stack.devices.clear();
    hidden.flushes.clear();
    let found = Story::of(3, None).with(&hidden).findings();
    assert_eq!(said(&found), [("no diskstats in any trial: none", None), ("no postgres in any trial: none", None)]);
}

#[test]
fn a_virtual_disk_is_named_once_for_the_run() {
    let found = Story::of(3, None).with(&Act::on("ext4")).with(&Act::on("xfs")).findings();
    assert_eq!(found.cautions.iter().filter(|caution| caution.text == BELOW).count(), 1, "{:?}", found.cautions);
}

#[test]
fn one_trial_each_is_said_once_for_the_run() {
    let found = Story::of(1, None).with(&Act::on("ext4")).with(&Act::on("xfs")).findings();
    let said = said(&found);
    assert!(said.len() == 1 && said[0].0.starts_with("one trial per case"), "{said:?}");
}

#[test]
fn facts_that_differ_between_trials_are_named_once() {
    let differ = |record: &mut TrialRecord| {
        let stack = record.stack.as_mut().unwrap();
        stack.trials_before = record.trial;
        let scheduler = format!("s{}-{}", record.trial, stack.name);
        first_device(record).scheduler = Some(scheduler);
    };
    let act = |stack: &str| Act::on(stack).touched(differ);
    let found = Story::of(2, None).with(&act("ext4")).with(&act("xfs")).findings();
    let texts = [
        "trials of a case differ in the scheduler of vda below the data",
        "trials ran on stacks used by earlier trials",
    ];
    assert_eq!(said(&found).iter().map(|said| said.0).collect::<Vec<_>>(), texts);
    assert!(found.cases[0].cautions[0].ends_with(": s1-ext4; s2-ext4"), "{:?}", found.cases[0].cautions);
}

#[test]
fn trials_of_two_machines_are_not_paired_inside_a_block() {
    let host = |name: &str, used| HostFacts {
        hostname: name.to_owned(),
        kernel: "6.1.0".to_owned(),
        cpus: 4,
        memory_bytes: 8 << 30,
        swap_used_bytes: Some(used),
        ..HostFacts::default()
    };
    let story = || {
        let mut story = Story::of(3, Some("ext4")).with(&Act::on("ext4")).with(&Act::on("xfs"));
        for trial in &mut story.trials {
            trial.record.host = host("old", u64::from(trial.record.trial));
        }
        story
    };
    let same = story().findings();
    assert_eq!(same.machines.len(), 1, "swap that is used makes no other machine");
    assert_eq!((same.machines[0].host.swap_used_bytes, same.machines[0].trials.len()), (Some(3), 6));
    assert!(same.cautions.iter().all(|caution| !caution.text.contains("machine")), "{:?}", same.cautions);
    // The last trial of xfs was repeated elsewhere.
    let mut story = story();
    story.trials[5].record.host = host("new", 0);
    let found = story.findings();
    let ran: Vec<(&str, usize)> = found.machines.iter().map(|m| (m.host.hostname.as_str(), m.trials.len())).collect();
    assert_eq!(ran, [("old", 5), ("new", 1)]);
    let xfs = found.cases.iter().find(|case| case.id.contains("xfs")).unwrap();
    assert_eq!(
        xfs.cautions[..2],
        [
            "in block 3 it ran on another machine than what it is compared with".to_owned(),
            "its trials ran on different machines: old, Linux 6.1.0, 4 CPUs, 8 GiB (blocks 1, 2); \
             new, Linux 6.1.0, 4 CPUs, 8 GiB (block 3)"
                .to_owned(),
        ]
    );
    let both = found.cautions.iter().find(|caution| caution.text.contains("not paired there")).unwrap();
    assert_eq!(both.cases.len(), 2);
    let rows = found.rankings.iter().flat_map(|ranking| &ranking.classes).flat_map(|class| &class.rows);
    let caveats: Vec<String> = rows.filter_map(|row| row.comparison.as_ref()?.caveat.clone()).collect();
    assert_eq!(caveats, ["not on the same machine in block 3"]);
}

#[test]
fn cases_are_compared_by_blocks_only_within_one_machine() {
    let host = |kernel: &str| HostFacts {
        hostname: "pgstrata-guest".to_owned(),
        kernel: kernel.to_owned(),
        cpus: 2,
        memory_bytes: 2 << 30,
        ..HostFacts::default()
    };
    let story = |axis: &str, value: &str| {
        let mut story =
            Story::of(3, None).with(&Act::on("ext4").in_guest("bookworm")).with(&Act::on("ext4").in_guest("trixie"));
        story.input.run.baseline = [(axis.to_owned(), value.to_owned())].into();
        for trial in &mut story.trials {
            let old = trial.record.case.guest.as_deref() == Some("bookworm");
            trial.record.host = host(if old { "6.1.0" } else { "6.12.0" });
        }
        story
    };
    let caveats = |found: &Findings| -> Vec<String> {
        let rows = found.rankings.iter().flat_map(|ranking| &ranking.classes).flat_map(|class| &class.rows);
        rows.filter_map(|row| row.comparison.as_ref()?.caveat.clone()).collect()
    };
    let found = story("guest", "bookworm").findings();
    assert_eq!((found.machines.len(), found.rankings[0].classes[0].rows.len()), (2, 2));
    assert!(found.rankings[0].classes[0].rows.iter().any(|row| row.comparison.is_some()));
    assert_eq!(caveats(&found), [] as [String; 0]);
    assert!(found.cautions.iter().all(|caution| !caution.text.contains("machine")), "{:?}", found.cautions);
    // Stacks are compared inside each guest.
    assert_eq!(story("stack", "ext4").findings().rankings.len(), 2);
    // The same guest with another kernel is another machine.
    let mut changed = story("guest", "bookworm");
    changed.trials[2].record.host = host("6.1.9");
    let found = changed.findings();
    assert!(found.cautions.iter().any(|caution| caution.text.contains("machine")), "{:?}", found.cautions);
}

fn stalled_at_its_end(record: &mut TrialRecord) {
    let unsent = Unsent { count: 9, from_us: 6_000_000, until_us: 8_000_000, free_us: 8_000_000 };
    record.counts.as_mut().unwrap().measures[0].unsent = vec![unsent];
}

fn stalled_with_two_scripts(record: &mut TrialRecord) {
    let measures = &mut record.counts.as_mut().unwrap().measures;
    let of_script = ["a", "b"].map(|name| Measure { name: name.to_owned(), ..measures[0].clone() });
    measures.extend(of_script);
    stalled_at_its_end(record);
}

#[test]
fn unsent_operations_are_attributed_to_all_scripts_together() {
    let said_of = |touch| {
        let found = Story::of(3, None).with(&Act::on("ext4").touched(touch)).findings();
        let text = found.cautions.into_iter().map(|caution| caution.text).find(|text| text.contains("never sent"));
        text.unwrap().contains("of all scripts together")
    };
    assert!(said_of(stalled_with_two_scripts as fn(&mut TrialRecord)) && !said_of(stalled_at_its_end));
}

/// A turn in each of six rounds of a block: two cases take turns, and the one that did not begin ends first.
fn turns_of(record: &mut TrialRecord, place: u64, apart_us: u64) {
    let turn = |round: u64| TurnRecord {
        round: round as u32,
        began_us: u64::from(record.trial) * 1_000_000_000 + round * 4_000_000 + place * 2_000_000 + apart_us,
        operations: 2000,
        elapsed_us: 2_000_000,
        whole_us: 2_000_000,
        counts: true,
        is_off: Some(round == 2),
        ..TurnRecord::default()
    };
    record.turns = Some(TurnsRecord { turns: (1..=6).map(turn).collect(), ..TurnsRecord::default() });
}

#[test]
fn rounds_on_a_disturbed_disk_that_count_and_turns_apart_from_the_others_are_said() {
    let said = |second: fn(&mut TrialRecord)| {
        let first = Act::on("ext4").touched(|record| turns_of(record, 0, 0));
        let found = Story::of(3, None).with(&first).with(&Act::on("xfs").touched(second)).findings();
        found.cautions.into_iter().map(|caution| caution.text).collect::<Vec<_>>().join("\n")
    };
    let beside = said(|record| turns_of(record, 1, 0));
    assert!(beside.contains("3 of 18 rounds count with the disk off by over 3×"), "{beside}");
    assert!(!beside.contains("lay apart") && !beside.contains("first in a turn"), "{beside}");
    let firsts = said(|record| {
        turns_of(record, 1, 0);
        record.turns.as_mut().unwrap().turns.iter_mut().for_each(|turn| turn.operations = 800);
    });
    assert!(firsts.contains("2.0 % of operations are first in a turn, caches empty"), "{firsts}");
    assert!(!firsts.contains("under 0.4 s"), "{firsts}");
    let short = said(|record| {
        turns_of(record, 1, 0);
        let us = if record.trial == 3 { 390_000 } else { 410_000 };
        record.turns.as_mut().unwrap().turns.iter_mut().for_each(|turn| turn.whole_us = us);
    });
    assert!(short.contains("turns of 1 of 3 trials took under 0.4 s: slow warm-up"), "{short}");
    let apart = said(|record| turns_of(record, 1, 500_000_000));
    assert!(apart.contains("in 3 of 3 blocks its turns lay apart from those"), "{apart}");
}

#[test]
fn a_case_without_turns_among_others_and_btrfs_in_turns_are_cautioned_of() {
    let mut story =
        ["ext4", "btrfs", "zram"].into_iter().fold(Story::of(3, None), |story, stack| story.with(&Act::on(stack)));
    let ids: Vec<String> = story.input.run.cases.iter().map(|case| case.id.clone()).collect();
    story.input.run.turns = ids[..2].to_vec();
    let found = story.findings();
    let of = |words: &str| &found.cautions.iter().find(|caution| caution.text.contains(words)).unwrap().cases;
    assert_eq!(of("measured by itself"), &ids[2..]);
    assert_eq!(of("btrfs commits early"), &ids[1..2]);
}

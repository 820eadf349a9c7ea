//! Conclusions of runs with adaptive blocks.

use crate::analyse::findings::DurabilityClass;
use crate::analyse::stories::story::{Act, Story};
use crate::record::event::PairRelation;

fn leading() -> Act {
    Act::on("ext4").tps(1100.0)
}

#[test]
fn a_beaten_case_stops_early_and_the_others_go_on() {
    let close = Act::on("btrfs").tps(1099.0);
    let story = Story::of(12, None).at_least(3);
    let story = story.with(&leading().trials(&[1, 2, 3])).with(&close.trials(&[1, 2, 3]));
    let look = story.with(&Act::on("xfs").tps(600.0).trials(&[1, 2, 3])).look(3);
    let beaten: Vec<&str> = look.stopped.iter().map(|stopped| stopped.case.as_str()).collect();
    assert!(beaten.iter().any(|case| case.starts_with("xfs")), "{look:?}");
    let differ = look.decided.iter().filter(|pair| pair.relation == PairRelation::Differs);
    assert!(differ.count() >= 2, "{look:?}");
}

#[test]
fn a_case_stopped_early_after_losing_is_not_named_first() {
    let slower_later = Act::on("ext4").tps(900.0).trials(&[4, 5, 6, 7, 8, 9, 10, 11, 12]);
    let story = Story::of(12, Some("ext4")).at_least(3).with(&leading().trials(&[1, 2, 3])).also(&slower_later);
    let found = story.with(&Act::on("xfs").tps(1000.0).trials(&[1, 2, 3])).findings();
    let class = &found.rankings[0].classes[0];
    assert_eq!(class.class, DurabilityClass::Flushed);
    let sentence = &class.decision.as_ref().unwrap().sentence;
    assert!(sentence.contains("after each block from 3 to at most 12"), "{sentence}");
    let rows: Vec<(u32, &str)> = class.rows.iter().map(|row| (row.rank, row.label.as_str())).collect();
    assert_eq!(rows, [(1, "ext4"), (2, "xfs")]);
    assert!(class.rows[1].rate.value > class.rows[0].rate.value);
    assert!(found.headline.contains("ext4 is the fastest"), "{}", found.headline);
}

#[test]
fn the_interval_of_a_ratio_is_wider_after_interim_looks() {
    let blocks = [1, 2, 3, 4];
    let story = |story: Story| {
        let found = story.with(&leading().trials(&blocks)).with(&Act::on("xfs").trials(&blocks)).findings();
        let classes = &found.rankings[0].classes;
        let rows = classes.iter().flat_map(|class| class.rows.clone());
        let compared: Vec<_> = rows.filter_map(|row| row.comparison).collect();
        let ratio = compared[0].ratio;
        ratio.high.unwrap() / ratio.low.unwrap()
    };
    let (fixed, after_looks) = (story(Story::of(4, Some("ext4"))), story(Story::of(4, Some("ext4")).at_least(3)));
    assert!(after_looks > fixed, "{after_looks} {fixed}");
}

//! What the shelf says of its publications: the answers that their own figures give, and the program that shows them.

use pgstrata::analyse::shelf::find;
use pgstrata::analyse::shelf::findings::{RemarkWeight, ShelfFindings, Support};
use pgstrata::foreign::shelf;
use std::process::{Command, Output};

fn found(name: &str) -> ShelfFindings {
    find(&shelf::open(name).unwrap())
}

/// The sentence of a rule on a case.
fn said(found: &ShelfFindings, case: &str, rule: &str) -> String {
    let remark = found.remarks.iter().find(|remark| remark.case == case && remark.rule == rule);
    remark.unwrap_or_else(|| panic!("{case} {rule}: {:#?}", found.remarks)).sentence.clone()
}

fn support(found: &ShelfFindings) -> Vec<Support> {
    found.conclusions.iter().map(|conclusion| conclusion.support).collect()
}

#[test]
fn of_wal_blocks_it_says_what_single_runs_can_carry() {
    let found = found("wal-blocksize-2012");
    assert_eq!(support(&found), [Support::NotShown, Support::NotShown, Support::CannotBeTold]);
    let blocks = &found.conclusions[1].comparisons;
    let ratios: Vec<String> = blocks.iter().map(|it| format!("{:.3}", it.ratio)).collect();
    assert_eq!(ratios, ["1.290", "1.301", "1.359", "1.286"]);
    for it in blocks {
        assert_eq!((it.trials, it.interval), ((1, 1), None), "one run each has no interval");
        assert!(it.sentence.contains("one run of 60 s each, so no interval"), "{}", it.sentence);
    }
    let shown = printed(&["shelf", "show", "wal-blocksize-2012"]);
    assert!(shown.contains("NOT PROVEN, its figures agree, which may be chance."), "{shown}");
}

#[test]
fn of_wal_blocks_it_says_what_a_commit_writes() {
    let found = found("wal-blocksize-2012");
    let small = said(&found, "open_sync-8k", "commit_writes");
    assert!(small.starts_with("cciss/c0d0: 1.02 writes of 8.3 KiB per commit"), "{small}");
    let large = said(&found, "fdatasync-64k", "commit_writes");
    assert!(large.contains("1.00 writes of 64.3 KiB") && large.contains("one WAL block of 64 KiB"), "{large}");
    let fine = found.remarks.iter().filter(|remark| remark.rule == "commit_writes").count();
    assert_eq!(fine, 6);
}

#[test]
fn the_odd_wal_block_write_is_named_but_not_explained() {
    let found = found("wal-blocksize-2012");
    let odd = said(&found, "pg_test_fsync", "two_writes_cost_much");
    assert!(
        odd.starts_with("two open_sync writes cost 44 times one: one at 3753/s (0.27 ms each), two at 85.2/s (12 ms")
    );
    assert!(odd.contains("why one write is so much faster is unknown"), "{odd}");
}

#[test]
fn zfs_properties_that_contradict_the_run_are_reported() {
    let found = found("freebsd10-zfs-fsync-2014");
    let price = said(&found, "sync-disabled", "price_of_durability");
    assert!(
        price.starts_with("fsync ran 6676 times a second with zfs.sync=standard, 115 687 with disabled: 17.3 times")
    );
    let odd = found.remarks.first().unwrap();
    assert_eq!((odd.weight, odd.case.as_str()), (RemarkWeight::Contradiction, "sync-standard"));
    assert!(odd.sentence.starts_with("zfs get lists sync=disabled, but the case states sync=standard"));
    assert_eq!(odd.at, [("zfs-get-all.txt".to_owned(), 46)]);
    assert!(said(&found, "sync-standard", "faster_than_a_turn").contains("0.15 ms"));
    assert!(said(&found, "sync-disabled", "too_many_syncs").contains("nothing is synced before the call returns"));
    assert_eq!(support(&found), [Support::CannotBeTold, Support::CannotBeTold, Support::CannotBeTold]);
}

#[test]
fn of_memory_filesystems_it_says_that_nothing_is_synced() {
    let found = found("memory-filesystems-2018");
    for case in ["tmpfs", "ramfs"] {
        let memory = said(&found, case, "too_many_syncs");
        assert!(memory.contains(&format!("{case} keeps its files in memory, and nothing is synced")), "{memory}");
        assert!(memory.contains("ran at 1 14"), "{memory}");
        assert!(said(&found, case, "no_slower_than_unsynced").contains("costs less than an open"));
    }
    assert!(!found.remarks.iter().any(|remark| remark.weight == RemarkWeight::Contradiction), "{:#?}", found.remarks);
    let expected = [Support::PointsThatWay, Support::CannotBeTold, Support::CannotBeTold, Support::CannotBeTold];
    assert_eq!(support(&found), expected);
}

#[test]
fn help_and_output_state_the_same_rule_for_single_runs() {
    let flowing = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let rule = pgstrata::analyse::compare::single::sentence();
    for args in [
        ["compare", "--help"].as_slice(),
        &["compare", "shelf:memory-filesystems-2018:tmpfs", "shelf:memory-filesystems-2018:ramfs"],
        &["shelf", "--help"],
        &["shelf", "show", "memory-filesystems-2018"],
    ] {
        assert!(flowing(printed(args)).contains(&rule), "{args:?}");
    }
    assert!(!found("sync-devices").caveats.contains(&rule), "it concludes nothing from a pair");
    assert!(
        said_of(&found("memory-filesystems-2018"), 0)
            .ends_with("; more than the known scatter between runs on idle machines")
    );
}

/// The sentence on the first comparison of a conclusion.
fn said_of(found: &ShelfFindings, conclusion: usize) -> &str {
    &found.conclusions[conclusion].comparisons[0].sentence
}

#[test]
fn a_design_without_figures_claims_none() {
    for name in ["zfs-filling-2011", "linux-filesystems-2015"] {
        let found = found(name);
        assert!(found.cases.iter().all(|case| case.figures == 0 && case.main.is_empty()), "{name}");
        assert!(support(&found).iter().all(|it| *it == Support::CannotBeTold), "{name}");
        assert!(found.remarks.is_empty() && !found.caveats.is_empty(), "{name}");
    }
}

fn pgstrata(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pgstrata")).args(args).output().unwrap()
}

fn printed(args: &[&str]) -> String {
    let output = pgstrata(args);
    assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_program_lists_and_shows_every_publication_in_100_columns() {
    let list = printed(&["shelf"]);
    for name in shelf::names() {
        assert!(list.contains(name), "{list}");
        let shown = printed(&["shelf", "show", name]);
        for line in list.lines().chain(shown.lines()) {
            assert!(line.chars().count() <= 100, "{line}");
        }
        for case in &shelf::open(name).unwrap().record.cases {
            // Longer names are folded.
            let begin: String = case.name.chars().take(20).collect();
            assert!(shown.contains(begin.trim_end()), "{name}: {begin}");
        }
        assert!(shown.contains("\nCaveats\n") && shown.contains("\nNot published\n"), "{shown}");
    }
}

#[test]
fn json_has_every_number_and_what_was_found() {
    let list: serde_json::Value = serde_json::from_str(&printed(&["shelf", "--json"])).unwrap();
    assert_eq!(list.as_array().unwrap().len(), shelf::names().len());
    let shown: serde_json::Value =
        serde_json::from_str(&printed(&["shelf", "show", "wal-blocksize-2012", "--json"])).unwrap();
    assert_eq!(shown["findings"]["conclusions"][1]["support"], "not_shown");
    let trial = &shown["publication"]["record"]["cases"][1]["trials"][0];
    assert_eq!(trial["outputs"][0]["rows"][0]["figures"][0]["unit"], "");
    assert_eq!(trial["files"][0]["name"], "pgbench-open_sync-8k.txt");
}

#[test]
fn an_unknown_publication_exits_with_2_and_names_the_nearest() {
    let output = pgstrata(&["shelf", "show", "wal-block-size-2012"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(stderr.contains("no publication `wal-block-size-2012`"), "{stderr}");
    assert!(stderr.contains("did you mean `wal-blocksize-2012`?"), "{stderr}");
}

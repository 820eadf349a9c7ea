//! What is said of the place and the time of a case, against what its output shows.

use super::{case, output, pgbench, record, row, trial};
use crate::analyse::shelf::findings::{Remark, Weight};
use crate::analyse::shelf::rules;
use crate::record::imported::{ImportRecord, ImportedCase, ImportedOutput, Origin};

fn told(mut output: ImportedOutput, facts: &[(&str, &str)]) -> ImportedOutput {
    output.facts = facts.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    output
}

/// Remarks on a run of pgbench 18.6 on an ext4 of Linux 6.18 that began in November 2026.
fn remarks(origin: Origin, facts: &[(&str, &str)]) -> Vec<Remark> {
    let outputs = vec![
        told(pgbench(1000.0), &[("build", "18.6")]),
        told(output("iostat -x", vec![]), &[("kernel", "6.18.44")]),
        output("mount", vec![row(&[("mount", "/"), ("type", "ext4")], &[])]),
    ];
    let mut trial = trial(outputs);
    trial.began = Some("2026-11-21T09:20:51Z".into());
    rules::remarks(&ImportRecord { origin, ..record(vec![case("a", facts, vec![trial])]) })
}

fn sentences(origin: Origin, facts: &[(&str, &str)]) -> Vec<String> {
    remarks(origin, facts).into_iter().map(|remark| remark.sentence).collect()
}

fn measured(told: &str) -> Origin {
    Origin { measured: Some(told.into()), ..Origin::default() }
}

#[test]
fn what_is_told_of_all_is_held_against_what_a_file_says_itself() {
    let version = "the output is of version 18.6, where PostgreSQL is said to be 15.3";
    let clients = "pgbench says clients 1, where the case is said to have 4";
    for (key, value, said) in [
        ("postgresql.version", "15.3", version),
        ("postgres.version", "15.3", version),
        ("workload.clients", "4", clients),
        ("pgbench.clients", "4", clients),
        ("host.kernel", "5.10", "the output is of kernel 6.18.44, where it is said to be 5.10"),
        ("stack.filesystem", "zfs", "ext4 are mounted and no zfs, where the case is said to be on zfs"),
    ] {
        assert_eq!(sentences(Origin::default(), &[(key, value)]), [said]);
    }
    let at_root = [("stack.filesystem", "zfs"), ("stack.mount", "/")];
    assert_eq!(sentences(Origin::default(), &at_root), ["/ is mounted as ext4, where the case is said to be on zfs"]);
    let some = |text: &str| Some(text.to_owned());
    let origin = Origin { postgresql: some("PostgreSQL 9.6"), system: some("Debian, Linux 4.9"), ..Origin::default() };
    let found = remarks(origin, &[]);
    assert_eq!(found.iter().map(|it| it.weight).collect::<Vec<_>>(), [Weight::Contradiction, Weight::Suspicion]);
    assert!(found.iter().all(|it| it.at == [("out.txt".to_owned(), 0)]), "{found:?}");
}

#[test]
fn what_fits_or_cannot_be_held_against_anything_is_not_remarked() {
    let facts = [
        ("postgresql.version", "18"),
        ("workload.clients", "1"),
        ("pgbench.duration", "60"),
        ("workload.script", "x.sql"),
        ("host.kernel", "6.18"),
        ("stack.filesystem", "EXT4"),
    ];
    let some = |text: &str| Some(text.to_owned());
    for system in ["Debian 12.5", "Linux 6", "a Linux box", ""] {
        let origin = Origin { system: some(system), ..Origin::default() };
        assert_eq!(sentences(origin, &facts), [""; 0], "{system}");
    }
}

#[test]
fn the_version_is_that_of_the_server_where_the_output_tells_it() {
    let of = |told_version: &str| {
        let output = told(pgbench(1000.0), &[("build", "18.6"), ("server version", "15.3")]);
        let facts = [("postgresql.version", told_version)];
        rules::remarks(&record(vec![case("a", &facts, vec![trial(vec![output])])])).len()
    };
    assert_eq!((of("15.3"), of("18.6")), (0, 1));
}

#[test]
fn a_date_is_read_strictly_and_has_a_day_to_spare_at_both_ends() {
    for told in ["2014-06-26", "2014", "2026-10", "2026-11-19", "2026-11-19T09:00:00Z", "2026-11-23 10:00"] {
        let found = sentences(measured(told), &[]);
        let said = format!("what was measured began 2026-11-21T09:20:51Z, where it is said to be of {told}");
        assert_eq!(found, [said]);
    }
    for told in
        ["2026-11-20", "2026-11-22", "2026-11", "2026", " 2026-11-21 09:00", "in winter", "2014-2015", "2014 or 2015"]
    {
        assert_eq!(sentences(measured(told), &[]), [""; 0], "{told}");
    }
    for told in ["2014-06-26 or soon after", "2014-6-26", "2014-13", "2014-", "14-06-26", "2014-06-26x", "20140626", ""]
    {
        assert_eq!(sentences(measured(told), &[]), [""; 0], "{told} is no date that is understood");
    }
    let beginning_of = |began: &str, told: &str| {
        let mut trial = trial(vec![output("pgbench -l", vec![])]);
        trial.began = Some(began.into());
        let record = record(vec![case("a", &[], vec![trial])]);
        rules::remarks(&ImportRecord { origin: measured(told), ..record }).len()
    };
    for told in ["2014-06", "2014-07", "2014"] {
        assert_eq!(beginning_of("2014-07-01T00:10:00Z", told), 0, "{told}: by the clock of another zone it is June");
    }
    assert_eq!(beginning_of("2015-01-01T00:10:00, of an unknown time zone", "2014"), 0);
    assert_eq!(beginning_of("2015-01-02T00:10:00, of an unknown time zone", "2014"), 1);
}

#[test]
fn a_date_that_was_taken_from_the_output_contradicts_no_later_trial() {
    let trial = |began: &str| {
        let mut trial = trial(vec![output("pgbench -l", vec![])]);
        trial.began = Some(began.into());
        trial
    };
    let (first, later) = ("2014-06-26T23:00:00Z", "2014-08-01T10:00:00Z");
    let cases = vec![case("a", &[], vec![trial(first)]), case("b", &[], vec![trial(later)])];
    let said = |told: &str| rules::remarks(&ImportRecord { origin: measured(told), ..record(cases.clone()) }).len();
    assert_eq!((said(first), said("2014-06-26")), (0, 1));
}

#[test]
fn a_mount_is_that_of_the_case_or_of_its_machine_and_not_of_another_case() {
    let of = |name: &str, told: &[(&str, &str)], listed: &[&str]| {
        let mounts = listed.iter().map(|kind| row(&[("mount", "/data"), ("type", kind)], &[])).collect();
        case(name, told, vec![trial(vec![output("mount", mounts)])])
    };
    let on = |kind: &'static str| [("stack.filesystem", kind), ("stack.mount", "/data")];
    let said = |cases: Vec<ImportedCase>| {
        let remarks = rules::remarks(&record(cases));
        remarks.into_iter().map(|remark| (remark.case, remark.sentence)).collect::<Vec<_>>()
    };
    assert_eq!(said(vec![of("a", &on("ext4"), &["ext4"]), of("b", &on("xfs"), &["xfs"])]), []);
    assert_eq!(said(vec![of("a", &on("xfs"), &["ext4", "xfs"])]), [], "one mount lies over the other");
    let load = case("a", &on("ext4"), vec![trial(vec![pgbench(1000.0)])]);
    assert_eq!(said(vec![load.clone(), of("b", &on("xfs"), &["xfs"])]), [], "it may be another machine");
    let said = said(vec![load, of("mounts", &[], &["xfs"])]);
    assert_eq!(said, [("a".into(), "/data is mounted as xfs, where the case is said to be on ext4".into())]);
}

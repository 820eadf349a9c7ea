//! Tests of the shelf: every publication can be read, and every number of every raw file is in its record.

use super::*;
use crate::record::imported::{ImportedFigure, ImportedOutput, ImportedRow, ImportedTrial};
use std::collections::BTreeSet;

/// Numbers that each raw file contains as figures; its other numbers are names or labels.
const COUNTS: &[(&str, &str, usize)] = &[
    ("freebsd10-zfs-fsync-2014", "iostat-x.txt", 91),
    ("freebsd10-zfs-fsync-2014", "pg_test_fsync-zfs-sync-disabled.txt", 25),
    ("freebsd10-zfs-fsync-2014", "pg_test_fsync-zfs-sync-standard.txt", 25),
    ("freebsd10-zfs-fsync-2014", "zfs-get-all.txt", 0),
    ("freebsd10-zfs-fsync-2014", "zpool-get-all.txt", 0),
    ("freebsd10-zfs-fsync-2014", "zpool-iostat-v.txt", 90),
    ("memory-filesystems-2018", "mount.txt", 0),
    ("memory-filesystems-2018", "pg_test_fsync-local-disk.txt", 33),
    ("memory-filesystems-2018", "pg_test_fsync-ramfs.txt", 15),
    ("memory-filesystems-2018", "pg_test_fsync-tmpfs.txt", 15),
    ("wal-blocksize-2012", "iostat-x-fdatasync-16k.txt", 22),
    ("wal-blocksize-2012", "iostat-x-fdatasync-64k.txt", 22),
    ("wal-blocksize-2012", "iostat-x-fdatasync-8k.txt", 22),
    ("wal-blocksize-2012", "iostat-x-open_sync-16k.txt", 22),
    ("wal-blocksize-2012", "iostat-x-open_sync-64k.txt", 22),
    ("wal-blocksize-2012", "iostat-x-open_sync-8k.txt", 22),
    ("wal-blocksize-2012", "pg_test_fsync-9.1.txt", 15),
    ("wal-blocksize-2012", "pgbench-fdatasync-16k.txt", 8),
    ("wal-blocksize-2012", "pgbench-fdatasync-64k.txt", 8),
    ("wal-blocksize-2012", "pgbench-fdatasync-8k.txt", 8),
    ("wal-blocksize-2012", "pgbench-open_sync-16k.txt", 8),
    ("wal-blocksize-2012", "pgbench-open_sync-64k.txt", 8),
    ("wal-blocksize-2012", "pgbench-open_sync-8k.txt", 8),
];

/// Raw files that are kept but not read, with the reason.
const NO_LONGER_READ: &[(&str, &str, &str)] = &[
    ("freebsd10-zfs-fsync-2014", "gpart-list.txt", "the names of devices; it holds no figure"),
    ("memory-filesystems-2018", "df-h.txt", "44 sizes and shares of filesystems, which no comparison and no rule uses"),
];

/// Raw files of a publication with the outputs read from each.
fn outputs(publication: &Publication) -> Vec<(&str, Vec<&ImportedOutput>)> {
    let trials = publication.record.cases.iter().flat_map(|case| &case.trials);
    let of = |trial: &'_ ImportedTrial, index: usize| -> Vec<usize> {
        (0..trial.outputs.len()).filter(|at| trial.outputs[*at].file == index).collect()
    };
    trials
        .flat_map(|trial| {
            trial.files.iter().enumerate().map(move |(index, file)| {
                (file.name.as_str(), of(trial, index).into_iter().map(|at| &trial.outputs[at]).collect())
            })
        })
        .collect()
}

fn figures<'a>(outputs: &[&'a ImportedOutput]) -> Vec<&'a ImportedFigure> {
    outputs.iter().flat_map(|output| &output.rows).flat_map(|row| &row.figures).collect()
}

/// Words of a line that are numbers, optionally with a suffix; found without any reader of the program.
fn numbers(line: &str) -> Vec<&str> {
    let words = line.split(|c: char| c.is_whitespace() || "=,()".contains(c));
    let is_number = |word: &&str| {
        let digits = word.trim_start_matches('-').trim_end_matches(['K', 'M', 'G', 'T', 'k', '%', 'x']);
        digits.starts_with(|c: char| c.is_ascii_digit())
            && word.len() <= digits.len() + 2
            && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    words.filter(is_number).collect()
}

/// Numbers of a text that are neither figures nor in labels of their line's row; each figure matches one.
fn missing(text: &str, outputs: &[&ImportedOutput]) -> Vec<String> {
    let mut lost = Vec::new();
    for (at, line) in (1..).zip(text.lines()) {
        let mut found: Vec<&str> =
            figures(outputs).iter().filter(|it| it.line == at).map(|it| it.text.as_str()).collect();
        let rows = outputs.iter().flat_map(|output| &output.rows).filter(|row| row.line == at);
        let labels = rows
            .flat_map(|row: &ImportedRow| &row.labels)
            .filter(|(name, _)| ["writes", "value", "options"].contains(&&**name));
        found.extend(labels.flat_map(|(_, value)| value.split(|c: char| c.is_whitespace() || "=,".contains(c))));
        for number in numbers(line) {
            match found.iter().position(|known| *known == number) {
                Some(place) => drop(found.swap_remove(place)),
                None => lost.push(format!("{at}: {number}")),
            }
        }
    }
    lost
}

#[test]
fn every_number_of_every_raw_file_is_in_the_record() {
    let mut counted = Vec::new();
    for publication in all().unwrap().iter().filter(|it| it.name != "sync-devices") {
        for (file, outputs) in outputs(publication) {
            let text = text(&publication.name, file).unwrap();
            assert_eq!(missing(text, &outputs), Vec::<String>::new(), "{} {file}", publication.name);
            assert!(outputs.iter().all(|output| output.unread.is_empty()), "{} {file}", publication.name);
            counted.push((publication.name.clone(), file.to_owned(), figures(&outputs).len()));
        }
    }
    counted.sort();
    let wanted: Vec<_> = COUNTS.iter().map(|(name, file, n)| ((*name).to_owned(), (*file).to_owned(), *n)).collect();
    assert_eq!(counted, wanted);
}

#[test]
fn a_number_that_a_reader_drops_is_noticed() {
    let publication = open("wal-blocksize-2012").unwrap();
    for (file, outputs) in outputs(&publication) {
        let text = text(&publication.name, file).unwrap();
        let mut less: Vec<ImportedOutput> = outputs.into_iter().cloned().collect();
        let row = less[0].rows.iter_mut().rfind(|row| !row.figures.is_empty()).unwrap();
        row.figures.pop();
        assert_eq!(missing(text, &less.iter().collect::<Vec<_>>()).len(), 1, "{file}");
    }
}

#[test]
fn every_figure_has_its_unit_and_parsed_value() {
    const BARE: [&str; 4] = ["scale", "version", "dedupditto", "copies"];
    const FACTORS: [f64; 8] = [1.0, 512.0, 1000.0, 1024.0, 1_048_576.0, 1_073_741_824.0, 1_099_511_627_776.0, 1e-3];
    let mut units = BTreeSet::new();
    for publication in all().unwrap() {
        for (file, outputs) in outputs(&publication) {
            for figure in figures(&outputs) {
                let place = format!("{} {file}:{} {figure:?}", publication.name, figure.line);
                assert!(!figure.unit.is_empty() || BARE.contains(&figure.name.as_str()), "{place}");
                let digits = figure.text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
                let number: f64 = digits.parse().unwrap();
                let factor = FACTORS.iter().any(|factor| (figure.value - number * factor).abs() <= 1e-9 * figure.value);
                assert!(factor, "{place}");
                units.insert(figure.unit.clone());
            }
        }
    }
    let known = ["", "%", "B", "B/s", "count", "ms", "ops/s", "requests", "requests/s", "s", "tx/s", "us"];
    assert_eq!(units, known.map(str::to_owned).into());
}

#[test]
fn every_publication_is_whole() {
    let publications = all().unwrap();
    assert!(publications.len() >= 6);
    for publication in &publications {
        let record = &publication.record;
        let cases: BTreeSet<&str> = record.cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(cases.len(), record.cases.len(), "{}: names of cases are unique", publication.name);
        assert!(!record.varied.is_empty() && !record.procedure.is_empty(), "{}", publication.name);
        assert!(!record.caveats.is_empty() && !record.unknown.is_empty(), "{}", publication.name);
        assert!(record.origin.published.is_some(), "{}", publication.name);
        for conclusion in &publication.conclusions {
            let asks = conclusion.lacks.is_some();
            assert!(asks || !conclusion.compare.is_empty(), "{conclusion:?}");
            let named = conclusion.compare.iter().flat_map(|it| [&it.case, &it.over]);
            for case in named {
                assert!(cases.contains(case.as_str()), "{}: {case}", publication.name);
            }
        }
    }
}

#[test]
fn every_file_of_the_shelf_belongs_to_one_case() {
    for publication in all().unwrap() {
        let mut used: Vec<&str> = outputs(&publication).into_iter().map(|(file, _)| file).collect();
        used.sort_unstable();
        if publication.name == "sync-devices" {
            used.dedup();
        }
        used.extend(NO_LONGER_READ.iter().filter(|(of, ..)| *of == publication.name).map(|(_, file, _)| *file));
        used.sort_unstable();
        let there = FILES.iter().filter(|(of, file, _)| *of == publication.name && *file != manifest::NAME);
        assert_eq!(used, there.map(|(_, file, _)| *file).collect::<Vec<_>>(), "{}", publication.name);
    }
}

#[test]
fn devices_are_cases_with_the_line_of_each_figure() {
    let publication = open("sync-devices").unwrap();
    let text = text("sync-devices", "devices.toml").unwrap();
    let evo = publication.record.cases.iter().find(|case| case.name == "Samsung 970 Evo 1 TB").unwrap();
    let rows = &evo.trials[0].outputs[0].rows;
    assert_eq!(rows.len(), 4);
    for row in rows {
        let figure = &row.figures[0];
        let line = text.lines().nth(figure.line as usize - 1).unwrap();
        assert_eq!(line, format!("{}_per_s = {}", row.labels[2].1, figure.text));
    }
    assert_eq!(evo.facts["device.source"], "gist pklaus 2606aae9");
    let gp3 = publication.record.cases.iter().find(|case| case.name.starts_with("AWS gp3")).unwrap();
    assert!(gp3.caveats.iter().any(|caveat| caveat.contains("second source")));
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let hint = |name: &str| open(name).unwrap_err().hint_text().unwrap().to_owned();
    assert_eq!(hint("wal-blocksize-2102"), "did you mean `wal-blocksize-2012`?");
    assert_eq!(hint("memory-filesystems"), "did you mean `memory-filesystems-2018`?");
    assert!(hint("x").starts_with("there are freebsd10-zfs-fsync-2014, "));
    assert!(hint("").starts_with("there are "));
    assert_eq!(open("x").unwrap_err().kind(), crate::error::Kind::User);
}

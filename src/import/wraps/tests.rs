//! Fixtures of every tool, broken at every width and cut in many places, through all of `import`.

use crate::import::{Reading, read, tests::fixtures};
use std::collections::BTreeMap;

/// Each figure, by name and value, with the labels of its row.
type Told = BTreeMap<(String, u64), Vec<Vec<(String, String)>>>;

fn told(text: &str) -> (Told, usize) {
    let reading = read("x.txt", &mut text.as_bytes()).unwrap_or_else(|_| Reading::default());
    let (mut told, mut count) = (Told::new(), 0);
    for row in reading.outputs.iter().flat_map(|output| &output.rows) {
        // Reports are counted, and a place in a summary is known by what stands before it.
        let labels = row.labels.iter().filter(|(name, _)| name != "report");
        let labels: Vec<(String, String)> =
            labels.filter(|(_, value)| value != "one write or two" && !value.is_empty()).cloned().collect();
        for figure in &row.figures {
            count += 1;
            if figure.name != "tps_of_unknown_kind" {
                told.entry((figure.name.clone(), figure.value.to_bits())).or_default().push(labels.clone());
            }
        }
    }
    (told, count)
}

/// What comes out of a mangled text and not of the whole one: a row may have lost a label, none may be another.
fn invented(mangled: &Told, whole: &Told) -> Vec<String> {
    let mut found = Vec::new();
    for ((name, value), rows) in mangled {
        let mut left = whole.get(&(name.clone(), *value)).cloned().unwrap_or_default();
        let mut rows = rows.clone();
        rows.sort_by_key(|labels| std::cmp::Reverse(labels.len()));
        for labels in rows {
            // A stamp may have lost its date.
            let same = |(name, value): &(String, String), (other, whole): &(String, String)| {
                name == other && (value == whole || name == "time" && whole.ends_with(value))
            };
            let is_of =
                |there: &Vec<(String, String)>| labels.iter().all(|it| there.iter().any(|other| same(it, other)));
            match left.iter().position(is_of) {
                Some(at) => drop(left.swap_remove(at)),
                None => found.push(format!("{name} {} {labels:?}", f64::from_bits(*value))),
            }
        }
    }
    found
}

fn folded(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        for (at, c) in line.chars().enumerate() {
            if at > 0 && at % width == 0 && c != '\n' {
                out.push('\n');
            }
            out.push(c);
        }
    }
    out
}

fn texts() -> Vec<(String, String)> {
    const LARGEST: u64 = 20_000;
    let is_small = |path: &std::path::PathBuf| path.metadata().unwrap().len() < LARGEST;
    // A log is no text of rows.
    let is_text = |path: &std::path::PathBuf| path.extension().is_none_or(|it| it != "log");
    let small = fixtures().into_iter().filter(|path| is_small(path) && is_text(path));
    small.map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn fixtures_that_were_folded_at_any_width_give_the_same_or_less_and_mostly_the_same() {
    let (mut all, mut got) = (0, 0);
    for (name, text) in texts() {
        let (whole, count) = told(&text);
        for width in 30..=130 {
            let broken = folded(&text, width);
            let (mangled, left) = told(&broken);
            let more = invented(&mangled, &whole);
            assert!(more.is_empty(), "{name} folded at {width}: {:?}", more.first());
            if broken != text {
                (all, got) = (all + count, got + left);
            }
        }
    }
    assert!(got * 10 > all * 7, "{got} of {all}");
}

#[test]
fn fixtures_that_were_cut_anywhere_give_the_same_or_less() {
    const PLACES: usize = 40;
    // Which section a line of pg_test_fsync is of, and how far a statement goes, may not be seen.
    let bare = |told: &Told| -> Told {
        let uncertain =
            |(name, _): &(String, String)| ["test", "writes", "write_bytes", "statement"].contains(&&name[..]);
        let labels = |labels: &Vec<(String, String)>| labels.iter().filter(|it| !uncertain(it)).cloned().collect();
        told.iter().map(|(key, rows)| (key.clone(), rows.iter().map(labels).collect())).collect()
    };
    for (name, text) in texts() {
        let whole = bare(&told(&text).0);
        let step = text.len() / PLACES + 1;
        for at in (1..text.len()).step_by(step).filter(|at| text.is_char_boundary(*at)) {
            for part in [&text[..at], &text[at..]] {
                let mut mangled = bare(&told(part).0);
                // Of a fio without an end it is not known which directions were idle altogether.
                mangled.retain(|(_, value), _| !name.contains("fio") || *value != 0);
                let more = invented(&mangled, &whole);
                assert!(more.is_empty(), "{name} cut at {at}: {:?}", more.first());
            }
        }
    }
}

fn figures(text: &str) -> Vec<(String, f64)> {
    let reading = read("x.txt", &mut text.as_bytes()).unwrap();
    let rows = reading.outputs.iter().flat_map(|output| &output.rows);
    rows.flat_map(|row| &row.figures).map(|figure| (figure.name.clone(), figure.value)).collect()
}

#[test]
fn a_number_at_the_end_is_taken_where_something_shows_that_it_is_whole() {
    let has = |text: &str, name: &str| figures(text).iter().any(|(have, _)| have == name);
    let run = "number of clients: 8\nnumber of transactions actually processed: 2998";
    assert!(!has(run, "transactions") && has(&format!("{run}\n"), "transactions"));
    let progress = "progress: 5.0 s, 99.0 tps, lat 1.234 ms stddev 0.5";
    assert!(!has(progress, "latency_stddev") && has(&format!("{progress}43"), "latency_stddev"));
    let vmstat = " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n \
                  1  0      0 100000   2000  30000    0    0     5     7  100  200  1  1 ";
    assert!(!has(&format!("{vmstat}98  0  0"), "none") && has(&format!("{vmstat}98  0  0"), "steal_percent"));
    assert!(!has(&format!("{vmstat}98  0  1"), "steal_percent"));
}

#[test]
fn a_number_at_the_begin_is_not_taken_where_something_shows_that_it_is_not_whole() {
    for text in [
        "920000 bytes (82 MB, 78 MiB) copied, 12.3456 s, 6.6 MB/s\n",
        "00000 of 1000000 tuples (10%) done (elapsed 0.12 s, remaining 1.08 s)\n",
        "000 of 1000000 tuples (10%) done (elapsed 0.12 s, remaining 1.08 s)\n",
    ] {
        assert!(figures(text).iter().all(|(name, _)| name != "copied_bytes" && name != "tuples"), "{text}");
    }
    assert!(figures("81920000 bytes (82 MB, 78 MiB) copied, 12.3456 s, 6.6 MB/s\n").len() == 3);
}

#[test]
fn a_number_on_two_lines_is_told_and_names_are_joined() {
    let text = "done in 2.34 s (drop tables 0.01 s, create tables 0.02 s, client-side generate 1\n\
                .45 s, vacuum 0.31 s, primary keys 0.55 s).\n";
    let reading = read("x.txt", &mut text.as_bytes()).unwrap();
    let names: Vec<&str> = reading.outputs[0].rows[0].figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["elapsed", "drop_tables", "create_tables", "vacuum", "primary_keys"]);
    assert_eq!(reading.outputs[0].rows[0].figures[3].line, 2);
    assert_eq!(reading.outputs[0].unread[0].0, 1);
    assert!(reading.outputs[0].unread[0].2.contains("`1.45` on two"));
}

#[test]
fn a_row_that_a_page_wrapped_into_three_lines_is_read() {
    let text = "Device r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s\n%wrqm w_await wareq-sz aqu-sz %util\n\
                nvme0n1 1.23 45.67 0.10 7.52\n0.34 37.13 12.34 456.78 9.87 44.44\n1.23 37.02 0.05 12.30\n";
    assert_eq!(figures(text).last(), Some(&("util_percent".to_owned(), 12.3)));
    assert_eq!(figures(text).len(), 14);
}

#[test]
fn short_lists_of_words_are_not_taken_for_broken_lines() {
    for text in [
        "NAME PROPERTY VALUE SOURCE\ntank sync disabled local\n",
        "/dev/sda1 on / type ext4 (rw,relatime)\n/dev/sdb1 on /home type xfs (rw)\n",
    ] {
        let reading = read("x.txt", &mut text.as_bytes()).unwrap();
        let rows: usize = reading.outputs.iter().map(|output| output.rows.len() + output.unread.len()).sum();
        assert_eq!(rows, text.lines().filter(|line| !line.starts_with("NAME")).count(), "{text}");
    }
}

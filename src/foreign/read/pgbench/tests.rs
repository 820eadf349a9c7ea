//! Real outputs of versions 9.1, 15 and 18, and synthetic ones of the versions between.

use super::read;
use crate::foreign::clean as web;
use crate::foreign::read::output::{Output, Row};
use crate::foreign::read::table::checks::numbers_not_read;
use proptest::prelude::{Strategy, any, prop, prop_assert, proptest};

fn fixture(path: &str) -> String {
    file(&format!("tests/fixtures/{path}"))
}

fn published(path: &str) -> String {
    file(&format!("shelf/{path}"))
}

fn file(path: &str) -> String {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The only output of a text; asserts that every number was read.
fn one(text: &str) -> Output {
    let mut outputs = read(&web::lines(text));
    assert_eq!(outputs.len(), 1, "{text}\n{outputs:#?}");
    let mut left = numbers_not_read(text, &outputs);
    if let Some(version) = &outputs[0].version {
        left.retain(|number| number != version);
    }
    assert!(left.is_empty(), "{left:?} of {text}");
    assert!(outputs[0].unread.is_empty(), "{:?}", outputs[0].unread);
    outputs.remove(0)
}

fn part<'a>(output: &'a Output, part: &str) -> Vec<&'a Row> {
    output.rows.iter().filter(|row| row.labels[0].1 == part).collect()
}

fn value(row: &Row, name: &str) -> f64 {
    let figure = row.figures.iter().find(|figure| figure.name == name);
    figure.unwrap_or_else(|| panic!("no {name} in {row:?}")).value
}

fn label<'a>(row: &'a Row, key: &str) -> &'a str {
    row.labels.iter().find(|(name, _)| *name == key).map_or("", |(_, value)| value)
}

#[test]
fn every_number_of_the_published_summaries_is_read() {
    for method in ["fdatasync", "open_sync"] {
        for size in ["8k", "16k", "64k"] {
            let output = one(&published(&format!("wal-blocksize-2012/pgbench-{method}-{size}.txt")));
            assert_eq!(output.version.as_deref(), Some("8.4 to 9.3"));
            assert_eq!(output.lines, (1, 11));
            assert_eq!(output.facts[0].1, "Custom query");
            let statement = part(&output, "statement")[0];
            assert_eq!(label(statement, "statement"), "insert into test (crt_time) values (now());");
            assert_eq!(value(part(&output, "summary")[0], "duration"), 60.0);
        }
    }
    let output = one(&published("wal-blocksize-2012/pgbench-fdatasync-16k.txt"));
    let summary = part(&output, "summary")[0];
    assert_eq!(value(summary, "tps_including_connecting"), 1554.835518);
    assert_eq!(value(summary, "tps_excluding_connecting"), 1554.887554);
    assert_eq!(value(part(&output, "statement")[0], "latency_mean"), 0.641965);
}

#[test]
fn every_number_of_our_own_summaries_is_read() {
    for (version, banner) in [("15", "15.18"), ("18", "18.6")] {
        for (name, statements) in
            [("failures", 5), ("rate-limit", 0), ("scripts", 13), ("statements", 11), ("unmeasured", 0)]
        {
            let output = one(&fixture(&format!("pgbench/{version}-{name}.out")));
            assert_eq!(output.version.as_deref(), Some(banner));
            assert_eq!(part(&output, "statement").len(), statements, "{name}");
            assert_eq!(part(&output, "script").len(), if name == "scripts" { 2 } else { 0 });
            assert_eq!(part(&output, "summary").len(), 1);
        }
    }
    let limited = one(&fixture("pgbench/18-rate-limit.out"));
    let summary = part(&limited, "summary")[0];
    assert_eq!((value(summary, "skipped"), value(summary, "skipped_share")), (1623.0, 20.197));
    assert_eq!((value(summary, "late"), value(summary, "latency_limit")), (3330.0, 2.0));
    assert_eq!((value(summary, "lag_mean"), value(summary, "lag_max")), (1.309, 2.0));
    assert_eq!((value(summary, "tps"), value(summary, "initial_connection_time")), (3208.068746, 3.515));
    let scripts = one(&fixture("pgbench/18-scripts.out"));
    let second = part(&scripts, "script")[1];
    assert_eq!(label(second, "script"), "2: <builtin: select only>");
    assert_eq!((value(second, "transactions"), value(second, "tps")), (12049.0, 12081.353866));
    let last = part(&scripts, "statement")[12];
    assert_eq!(label(last, "statement"), "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;");
    assert_eq!((label(last, "script"), value(last, "failures")), ("2: <builtin: select only>", 0.0));
}

#[test]
fn versions_without_a_banner_are_told_by_their_form() {
    let tail =
        "tps = 85.184871 (including connections establishing)\ntps = 85.296346 (excluding connections establishing)\n";
    let head = "scaling factor: 10\nquery mode: simple\nnumber of clients: 10\nnumber of transactions per client: 1000\nnumber of transactions actually processed: 10000/10000\n";
    let old = one(&format!("transaction type: TPC-B (sort of)\n{head}{tail}"));
    assert_eq!((old.version.as_deref(), old.facts[0].1.as_str()), (Some("8.4 to 9.3"), "TPC-B (sort of)"));
    assert_eq!(value(&old.rows[0], "transactions_asked"), 10000.0);
    let skipped = "number of transactions skipped: 12 (0.120 %)\nnumber of transactions above the 20.0 ms latency limit: 7 (0.070 %)\n";
    let colon = one(&format!(
        "transaction type: TPC-B (sort of)\n{head}{skipped}latency average: 11.013 ms\nlatency stddev: 7.351 ms\nrate limit schedule lag: avg 0.319 (max 1.047) ms\n{tail}"
    ));
    assert_eq!(colon.version.as_deref(), Some("9.4 to 13"));
    assert_eq!(value(&colon.rows[0], "late_share"), 0.07);
    let equal =
        one(&format!("transaction type: <builtin: TPC-B (sort of)>\n{head}latency average = 11.013 ms\n{tail}"));
    assert_eq!((equal.version.as_deref(), value(&equal.rows[0], "latency_mean")), (Some("9.6 to 13"), 11.013));
    let fourteen = one(&format!(
        "transaction type: multiple scripts\n{head}partition method: hash\npartitions: 4\nlatency average = 11.013 ms\naverage connection time = 1.5 ms\ntps = 85.2 (including reconnection times)\n"
    ));
    assert_eq!(fourteen.version.as_deref(), Some("14"));
    assert_eq!(value(&fourteen.rows[0], "tps_including_reconnecting"), 85.2);
    let fifteen = one(&format!(
        "transaction type: multiple scripts\n{head}number of failed transactions: 1 (0.010%)\nnumber of serialization failures: 1 (0.010%)\nnumber of deadlock failures: 0 (0.000%)\nnumber of transactions retried: 3 (0.030%)\ntotal number of retries: 4\nlatency average = 1.5 ms (including failures)\ninitial connection time = 1.25 ms\ntps = 85.2 (without initial connection time)\n"
    ));
    assert_eq!((fifteen.version.as_deref(), value(&fifteen.rows[0], "retries")), (Some("15 or newer"), 4.0));
    assert!(fifteen.facts.contains(&("latency average".to_owned(), "including failures".to_owned())));
    let server = one(
        "pgbench (18.4, server 15.3 (Debian 15.3-1))\nscaling factor: 1\nnumber of transactions actually processed: 5\n",
    );
    assert_eq!(server.version.as_deref(), Some("18.4"));
    assert!(server.facts.contains(&("server version".to_owned(), "15.3".to_owned())), "{:?}", server.facts);
}

#[test]
fn scripts_and_statements_of_13_and_9_1_are_read() {
    let text = "transaction type: multiple scripts
number of transactions actually processed: 10000
tps = 618.764555 (including connections establishing)
tps = 622.977698 (excluding connections establishing)
SQL script 1: <builtin: TPC-B (sort of)>
 - weight: 1 (targets 50.0% of total)
 - 4984 transactions (49.8% of total, tps = 308.1)
 - number of transactions skipped: 5 (0.100%)
 - latency average = 16.000 ms
 - statement latencies in milliseconds:
        0.002  \\set aid random(1, 100000 * :scale)
        0.326  BEGIN;
SQL script 2: my.sql
 - weight: 2 (targets 50.0% of total)
 - latency average = 15.000 ms
 - statement latencies in milliseconds:
        5.528  UPDATE t SET x = 1.125 WHERE y < 3;
";
    let output = one(text);
    assert_eq!((part(&output, "script").len(), part(&output, "statement").len()), (2, 3));
    assert_eq!((value(&output.rows[1], "script_transactions"), value(&output.rows[1], "tps")), (4984.0, 308.1));
    assert_eq!(label(&output.rows[2], "statement"), "\\set aid random(1, 100000 * :scale)");
    let files = one(
        "tps = 1.5 (including connections establishing)\nstatement latencies in milliseconds, file 1:\n\t0.500000\tBEGIN;\nstatement latencies in milliseconds, file 2:\n\t1.500000\tEND;\n",
    );
    assert_eq!(label(&files.rows[2], "script"), "file 2");
}

#[test]
fn what_c_prints_for_no_number_is_told() {
    let text = "number of transactions actually processed: 0\ntps = 0.000000 (including connections establishing)\n\
                tps = -nan (excluding connections establishing)\n";
    let output = &read(&web::lines(text))[0];
    assert_eq!((output.unread.len(), output.unread[0].line, output.lines), (1, 3, (1, 3)));
    let text = "progress: 5.0 s, 0.0 tps\nprogress: 6.0 s, 1234.0 tps, lat 6.456 ms stddev NaN\n";
    assert_eq!(read(&web::lines(text))[0].unread[0].line, 2);
}

#[test]
fn runs_in_one_text_are_separated_and_keep_their_commands() {
    let run = fixture("pgbench/15-statements.out");
    let bare: String = run.lines().skip(1).map(|line| format!("{line}\n")).collect();
    let text = format!(
        "me@db1:~$ pgbench -i -s 10\ndone in 1.5 s (vacuum 0.5 s).\n$ pgbench -c 8 -T 60\n{run}me@db1:~$ pgbench -c 9\n{bare}{bare}\nThat is 7 of 12.\n"
    );
    let outputs = read(&web::lines(&text));
    let commands: Vec<Option<&str>> = outputs
        .iter()
        .map(|output| output.facts.iter().find(|fact| fact.0 == "command").map(|fact| fact.1.as_str()))
        .collect();
    assert_eq!(commands, [Some("pgbench -c 8 -T 60"), Some("pgbench -c 9"), None]);
    assert_eq!(outputs.iter().map(|output| output.rows.len()).collect::<Vec<_>>(), [12, 12, 12]);
    assert!(outputs.iter().all(|output| output.unread.is_empty()));
    assert!(read(&web::lines("The number of clients: 8 and duration: 60 s were chosen.\n")).is_empty());
}

#[test]
fn malformed_numbers_and_unknown_lines_are_reported() {
    let outputs = read(&web::lines(
        "scaling factor: 1\nnumber of transactions actually processed: 5\nlatency median = 7 ms\nlatency average = nan ms\ntps = 5.5\n",
    ));
    assert_eq!(outputs[0].unread.iter().map(|unread| unread.line).collect::<Vec<_>>(), [3, 4, 5]);
    assert_eq!((outputs[0].unread[0].line, outputs[0].unread[0].text.as_str()), (3, "latency median = 7 ms"));
}

/// Differences between versions.
#[derive(Debug, Clone)]
struct Form {
    version: u32,
    comma: bool,
    limited: bool,
    scripts: bool,
    statements: bool,
    progress: bool,
}

fn any_form() -> impl Strategy<Value = Form> {
    let version = prop::sample::select(vec![91u32, 94, 96, 120, 140, 150, 180]);
    (version, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|form| Form {
        version: form.0,
        comma: false,
        limited: form.2 && form.0 > 91,
        scripts: form.3 && form.0 >= 96,
        statements: form.4,
        progress: form.5 && form.0 > 91,
    })
}

/// Prints a run in the format of its version, with all numbers derived from `seed`.
fn print(form: &Form, seed: u32) -> String {
    let Form { version, .. } = *form;
    let mut count = seed;
    let mut whole = || {
        count = count.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        count >> 8
    };
    let mut text = String::new();
    if version >= 150 {
        text +=
            &format!("pgbench ({}.3 (Debian {}.3-0+deb12u1))\nstarting vacuum...end.\n", version / 10, version / 10);
    }
    for at in 1..=3 * u32::from(form.progress) {
        let failed = if version >= 150 { ", 0 failed" } else { "" };
        text += &format!("progress: {at}.0 s, {}.5 tps, lat {}.123 ms stddev 0.321{failed}\n", whole(), whole());
    }
    text += if version >= 96 {
        "transaction type: <builtin: TPC-B (sort of)>\n"
    } else {
        "transaction type: TPC-B (sort of)\n"
    };
    text += &format!(
        "scaling factor: {}\nquery mode: prepared\nnumber of clients: {}\nnumber of threads: {}\n",
        whole(),
        whole(),
        whole()
    );
    text += &format!("duration: {} s\nnumber of transactions actually processed: {}\n", whole(), whole());
    let share = if version >= 96 { "0.120%" } else { "0.120 %" };
    if version >= 150 {
        text += &format!("number of failed transactions: {} ({share})\n", whole());
    }
    if form.limited {
        text += &format!("number of transactions skipped: {} ({share})\n", whole());
        text += &format!("number of transactions above the 20.0 ms latency limit: {}/{} ({share})\n", whole(), whole());
    }
    let sign = if version >= 96 { " =" } else { ":" };
    if version > 91 {
        text += &format!("latency average{sign} {}.125 ms\nlatency stddev{sign} {}.5 ms\n", whole(), whole());
    }
    if form.limited {
        text += &format!("rate limit schedule lag: avg {}.25 (max {}.75) ms\n", whole(), whole());
    }
    text += &match version {
        140.. => format!(
            "initial connection time = {}.5 ms\ntps = {}.125 (without initial connection time)\n",
            whole(),
            whole()
        ),
        _ => format!(
            "tps = {}.5 (including connections establishing)\ntps = {}.25 (excluding connections establishing)\n",
            whole(),
            whole()
        ),
    };
    text += &print_scripts(form, &mut whole);
    if form.comma { text.replace(".5", ",5").replace(".25 ", ",25 ").replace(".125 ", ",125 ") } else { text }
}

/// Prints the section of each script, as far as `form` has one.
fn print_scripts(form: &Form, whole: &mut impl FnMut() -> u32) -> String {
    let mut text = String::new();
    for script in 1..=if form.scripts { 2 } else { 1 } {
        let dash = if form.scripts { " - " } else { "" };
        if form.scripts {
            text += &format!(
                "SQL script {script}: <builtin: script (no {script})>\n - weight: {} (targets 50.0% of total)\n",
                whole()
            );
            text += &format!(
                " - {} transactions (49.8% of total, tps = {}.5)\n - latency average = {}.5 ms\n",
                whole(),
                whole(),
                whole()
            );
        }
        if form.statements {
            let (and, count) = if form.version >= 150 { (" and failures", "           7") } else { ("", "") };
            text += &format!("{dash}statement latencies in milliseconds{and}:\n");
            for statement in [
                "\\set aid random(1, 100000 * :scale)",
                "BEGIN;",
                "UPDATE t SET x = x + :delta WHERE aid = 0.125 AND y = 3;",
            ] {
                text += &format!("   {:8}.375{count}  {statement}\n", whole() % 1000);
            }
        }
    }
    text
}

proptest! {
    #[test]
    fn what_any_version_prints_reads_back_whole(form in any_form(), seed in any::<u32>()) {
        let text = print(&form, seed);
        let outputs = read(&web::lines(&text));
        prop_assert!(outputs.iter().all(|output| output.unread.is_empty()), "{}{:?}", text, outputs);
        let mut left = numbers_not_read(&text, &outputs);
        left.retain(|number| !matches!(number.as_str(), "1" | "2"));
        prop_assert!(left.is_empty(), "{}{:?}", text, left);
    }
}

#[test]
fn a_summary_truncated_before_its_counts_has_no_rate() {
    let text = "transaction type: <builtin: TPC-B (sort of)>\nscaling factor: 5\nquery mode: simple\n\
                number of clients: 4\nnumber of threads: 2\nduration: 8 s\nnumber of transaction";
    let found = read(&web::lines(text)).remove(0);
    assert_eq!((found.rows[0].figures.len(), found.unread.len()), (4, 0));
    assert_eq!(found.notes, ["it has no rate: the summary is cut off, or the run was ended"]);
}

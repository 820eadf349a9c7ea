//! The questions of docs/duckdb.md, asked of DuckDB as they stand there.

use crate::compare::merged::{pgstrata, said};
use crate::compare::run_folder::{Made, make_as};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../docs/duckdb.md");
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/recipes/bin/python");
const SQL: &str = "import duckdb, sys\nrows = duckdb.sql(sys.stdin.read().rstrip().rstrip(';'))\nfor row in rows.fetchall() if rows else []: print(row)";

/// What a query prints, asked in `folder`.
fn ask(folder: &Path, sql: &str) -> String {
    let mut command = Command::new(PYTHON);
    let piped = command.args(["-c", SQL]).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = piped.stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), sql.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{sql}\n{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn questions() -> Vec<&'static str> {
    PAGE.split("\n```sql\n").skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
}

/// Sum of all trials' rates in a run's table, which are the report's.
fn rates(run: &Path) -> f64 {
    let folder = run.to_str().unwrap();
    assert!(pgstrata(run, &["report", folder]).status.success());
    let found: serde_json::Value =
        serde_json::from_slice(&pgstrata(run, &["report", folder, "--json"]).stdout).unwrap();
    let reported: f64 = found["trials"].as_array().unwrap().iter().filter_map(|trial| trial["rate"].as_f64()).sum();
    let sum = ask(run, "select sum(rate) from 'trials.parquet'");
    let stored: f64 = sum.trim().trim_matches(['(', ')', ',']).parse().unwrap();
    assert!((stored - reported).abs() < 1e-6 * reported, "{stored} {reported}");
    stored
}

#[test]
fn duckdb_answers_each_documented_question_over_several_runs() {
    if !Path::new(PYTHON).exists() {
        println!("skipped: no {PYTHON}: `scripts/setup test` fetches the packages of scripts/python/recipes.txt");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let results = place.path().join("results");
    for (host, id, speed, firmware, stalled) in
        [(1, "00000001", 1.0, "A1", 0), (2, "00000002", 0.5, "A1", 3), (3, "00000003", 1.1, "B2", 0)]
    {
        let made = Made { id, host: format!("node{host}"), speed, firmware, stalled: Some(stalled), ..Made::default() };
        let folder = make_as(&results, &made);
        if host == 3 {
            let path = folder.join("trials/tmpfs-c4/1/trial.json");
            let text = fs::read_to_string(&path).unwrap();
            let mut trial: serde_json::Value = serde_json::from_str(&text).unwrap();
            trial["outcome"] =
                serde_json::json!({ "outcome": "not_run", "step": "build", "reason": "no memory", "hint": null });
            fs::write(&path, trial.to_string()).unwrap();
        }
        let reported = pgstrata(&results, &["report", folder.to_str().unwrap()]);
        assert!(reported.status.success(), "{}", said(&reported));
        assert!(folder.join("trials.parquet").is_file());
    }
    let answers: Vec<String> = questions().into_iter().map(|sql| ask(&results, sql)).collect();
    assert_eq!(answers.len(), 10, "a question more or less: say here what it answers");
    let has = |number: usize, part: &str| {
        assert!(answers[number - 1].contains(part), "{number}: {part}\n{}", answers[number - 1]);
    };
    has(1, "('which', 'measured', 44, 3, 3)\n('which', 'not_run', 1, 1, 1)");
    has(2, "'ext4', 'tpcb', 4,");
    has(3, "('tpcb', 4, 9, 1.");
    has(4, "('node2', 3, 1.");
    has(5, "('DISK 1T', 'A1', 'node2', 0.707)");
    has(6, "'6.1.0', 'B2', 1,");
    has(7, "('node3', 'tmpfs-c4', 'no memory', 1)");
    has(8, "'tpcb', 4,");
    has(9, "('xfs', 9, 1.2");
    has(10, "('node2', 'ext4', '00000002', 'ext4-c16', 1, 8, 3)");
    assert!(!answers[9].contains("node1"), "{}", answers[9]);
    // What a column is stands in the file.
    let described = ask(
        &results,
        "select value from parquet_kv_metadata('*/trials.parquet') where key = 'pgstrata.columns' limit 1",
    );
    assert!(described.contains("latency_ms_p99") && described.contains("schema_version"), "{described}");
    // Nor does a question need an axis that only some plans have.
    for run in fs::read_dir(&results).unwrap().map(|entry| entry.unwrap().path()) {
        let rest =
            "copy (from 'trials.parquet' select * exclude axis_full_page_writes) to 'rest.parquet' (format parquet)";
        ask(&run, rest);
        fs::rename(run.join("rest.parquet"), run.join("trials.parquet")).unwrap();
    }
    let [third, fourth, ninth] = [3, 4, 9].map(|number| ask(&results, questions()[number - 1]));
    assert!(
        third.contains("('tpcb', 4, ") && fourth.contains("('node2', ") && ninth.is_empty(),
        "{third}{fourth}{ninth}"
    );
    let run = fs::read_dir(&results).unwrap().next().unwrap().unwrap().path();
    let (by_time, path) = (rates(&run), run.join("trials/ext4-c4/1/trial.json"));
    let mut trial: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let turn = serde_json::json!({
        "round": 1, "began_us": 1, "operations": 1000, "elapsed_us": 2_000_000, "whole_us": 2_000_000, "wal_flush_us": 0,
        "sync_us": 0, "seconds": 0, "counts": true,
    });
    trial["turns"] = serde_json::json!({ "turns": [turn], "operations": null, "between_us": 0, "between": {} });
    fs::write(&path, trial.to_string()).unwrap();
    assert!(rates(&run) != by_time, "a trial in turns has the rate of its turns");
}

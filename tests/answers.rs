//! The pages of answers against the runs that they name: figures of ours are those that the run folders beside them
//! give, and so are the pictures. `INSTA_UPDATE=always` draws the pictures anew.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGES: [&str; 2] = ["answers.md", "published.md"];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

/// A folder with a run folder of `docs/example`.
fn unpacked(name: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let archive = docs().join(format!("example/{name}.tar.gz"));
    let unpacked = Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(place.path()).status().unwrap();
    assert!(unpacked.success(), "{}", archive.display());
    place
}

/// What a subcommand says as JSON.
fn said(place: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgstrata"));
    let said = command.current_dir(place).args(arguments).arg("--json").output().unwrap();
    assert!(said.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said.stderr));
    serde_json::from_slice(&said.stdout).unwrap()
}

/// What `pgstrata report` says of a run folder in `docs/example`.
fn report_of(name: &str) -> Value {
    said(unpacked(name).path(), &["report", name])
}

/// Sections of the pages that name a run folder, with its report.
fn sections() -> Vec<(String, Value)> {
    let pages = PAGES.map(|page| std::fs::read_to_string(docs().join(page)).unwrap());
    let sections = pages.iter().flat_map(|page| page.split("\n## ").skip(1));
    let named = sections.filter_map(|section| {
        let (_, after) = section.split_once("docs/example/")?;
        let (name, _) = after.split_once(".tar.gz")?;
        Some((section.to_owned(), report_of(name)))
    });
    named.collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The rows of a ranking, class by class. A run on an emulated CPU ranks nothing: there they are the cases of a workload.
fn ranked(report: &Value, title: &str) -> Vec<Value> {
    let rankings = list(&report["rankings"]);
    if rankings.is_empty() {
        return list(&report["cases"]).iter().flat_map(|case| unranked(case, title)).collect();
    }
    let classes = rankings.iter().filter(|ranking| ranking["title"] == title).flat_map(|it| list(&it["classes"]));
    classes.flat_map(|class| list(&class["rows"])).cloned().collect()
}

/// The measure of a case that a ranking would have, called as in a ranking.
fn unranked(case: &Value, title: &str) -> Vec<Value> {
    let axes = case["axes"].as_object().unwrap();
    let names = axes.iter().filter(|(axis, _)| !["stack", "workload"].contains(&axis.as_str()));
    let label: Vec<String> = names.map(|(axis, value)| format!("{axis}={}", value.as_str().unwrap())).collect();
    let workload = axes["workload"].as_str().unwrap();
    let of_title = list(&case["measures"]).iter().filter(|measure| {
        let name = measure["name"].as_str().unwrap();
        title == if name == "transactions" { workload.to_owned() } else { format!("{workload}, {name}") }
    });
    let row =
        |measure: &Value| serde_json::json!({"case": case["id"], "label": label.join(" "), "rate": measure["rate"]});
    of_title.map(row).collect()
}

/// The figure that a column states of a row; of ratios with its interval, if there is one.
fn figures(report: &Value, row: &Value, column: &str) -> Vec<f64> {
    let case = list(&report["cases"]).iter().find(|case| case["id"] == row["case"]).unwrap();
    let (commit, ratio) = (&case["strata"], &row["comparison"]["ratio"]);
    let device = &commit["at_stack_devices"];
    let (found, unit) = match column {
        "tps" | "a second" => (vec![&row["rate"]["value"]], 1.0),
        "p99, ms" => (vec![&row["latency_us_p99"]["value"]], 1000.0),
        "WAL, KiB" => (vec![&commit["wal_bytes"]], 1024.0),
        "writes" => (vec![&device["writes"]], 1.0),
        "written, KiB" => (vec![&device["write_bytes"]], 1024.0),
        "flushes" => (vec![&device["flushes"]], 1.0),
        "a power cut" => (vec![&row["verdict"]["states"]], 1.0),
        _ if column.starts_with("against ") => (vec![&ratio["value"], &ratio["low"], &ratio["high"]], 1.0),
        _ => panic!("no figure is called {column}"),
    };
    found.into_iter().filter_map(Value::as_f64).map(|figure| figure / unit).collect()
}

/// A printed number, and half of its last digit: that of `411 000` is a thousand.
fn number(text: &str) -> (f64, f64) {
    let zeros = text.len() - text.trim_end_matches('0').len();
    let digit = match text.split_once('.') {
        Some((_, decimals)) => -(decimals.len() as i32),
        None if text.len() > 4 => zeros as i32,
        None => 0,
    };
    (text.parse().unwrap(), 0.5 * 10_f64.powi(digit))
}

/// Numbers of a cell: `0.600 (0.516 to 0.699)`, `**411 000**`.
fn numbers(cell: &str) -> Vec<(f64, f64)> {
    let mut texts = vec![String::new()];
    let mut previous = ' ';
    for (at, c) in cell.char_indices() {
        let thousands =
            c == ' ' && previous.is_ascii_digit() && cell[at + 1..].starts_with(|c: char| c.is_ascii_digit());
        match c {
            '0'..='9' | '.' => texts.last_mut().unwrap().push(c),
            _ if thousands => {}
            _ => texts.push(String::new()),
        }
        previous = c;
    }
    texts.iter().filter(|text| text.starts_with(|c: char| c.is_ascii_digit())).map(|text| number(text)).collect()
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// Rows of the tables of a section: the table's head, and the cells of the row.
fn table_rows(section: &str) -> Vec<(Vec<&str>, Vec<&str>)> {
    let mut found = Vec::new();
    for table in section.split("\n\n").filter(|block| block.starts_with('|')) {
        let head = cells(table.lines().next().unwrap());
        found.extend(table.lines().skip(2).map(|line| (head.clone(), cells(line))));
    }
    found
}

/// The ranking that a column is of, and what it states of it: `ours: RANKING`, or the table's first head; a column
/// `then: ` has none of ours.
fn stated<'a>(report: &Value, head: &[&'a str], at: usize) -> Option<(&'a str, &'a str)> {
    match head[at].strip_prefix("ours: ") {
        Some(title) => Some((title, "a second")),
        None if head[at].starts_with("then: ") => None,
        None => (!ranked(report, head[0]).is_empty()).then_some((head[0], head[at])),
    }
}

/// `zfs.sync=disabled` may be called `disabled`.
fn is_called(row: &Value, name: &str) -> bool {
    let label = row["label"].as_str().unwrap();
    label == name || label.ends_with(&format!("={name}"))
}

/// Figures of a section that its run gives; panics at one that it does not.
fn checked(section: &str, report: &Value) -> usize {
    let mut seen = 0;
    for (head, row) in table_rows(section) {
        for (at, cell) in row.iter().enumerate().skip(1) {
            let Some((title, column)) = stated(report, &head, at) else { continue };
            let of_row = ranked(report, title).into_iter().find(|it| is_called(it, row[0]));
            let of_row = of_row.unwrap_or_else(|| panic!("{title} has no case {}", row[0]));
            let (printed, exact) = (numbers(cell), figures(report, &of_row, column));
            let verdict = of_row["verdict"]["verdict"].as_str().filter(|_| column == "a power cut");
            assert!(cell.starts_with(verdict.unwrap_or_default()), "{title}, {}: {cell} is {verdict:?}", row[0]);
            assert!(printed.len() <= exact.len(), "{title}, {}, {column}: {cell}, not {exact:?}", row[0]);
            for ((number, half), exact) in printed.into_iter().zip(exact) {
                assert!((number - exact).abs() <= half * 1.000_001, "{title}, {}, {column}: {cell} is {exact}", row[0]);
                seen += 1;
            }
        }
    }
    seen
}

#[test]
fn figures_of_ours_are_those_of_the_run_folders() {
    let seen: Vec<usize> = sections().iter().map(|(section, report)| checked(section, report)).collect();
    assert!(seen.iter().all(|figures| *figures > 0) && seen.iter().sum::<usize>() >= 60, "{seen:?}");
}

#[test]
fn cases_of_a_run_are_compared_at_the_ratios_of_its_report() {
    let mut seen = 0;
    for name in ["checksums", "eight-of-2015", "wal-compression"] {
        let place = unpacked(name);
        let report = said(place.path(), &["report", name]);
        let rows = ranked(&report, report["rankings"][0]["title"].as_str().unwrap());
        let case = |row: &Value| format!("{name}:{}", row["case"].as_str().unwrap());
        let baseline = rows.iter().find(|row| row["comparison"].is_null()).unwrap();
        let class = |row: &Value| row["durability"]["class"].clone();
        for row in rows.iter().filter(|row| !row["comparison"].is_null() && class(row) == class(baseline)) {
            let compared = said(place.path(), &["compare", &case(baseline), &case(row)]);
            let of_rate = list(&compared["pairs"][0]["rows"]).iter().find(|it| it["unit"] == "tps").unwrap();
            let ratio = of_rate["comparison"]["ratio"].as_f64().unwrap();
            let reported = row["comparison"]["ratio"]["value"].as_f64().unwrap();
            assert!((ratio / reported - 1.0).abs() < 1e-9, "{}: {ratio}, reported {reported}", case(row));
            seen += 1;
        }
    }
    assert!(seen >= 4, "{seen}");
}

/// Lines of a section in fences without a language.
fn quoted(section: &str) -> Vec<&str> {
    let mut fence = None;
    let mut found = Vec::new();
    for line in section.lines() {
        match (line.strip_prefix("```"), fence) {
            (Some(_), Some(_)) => fence = None,
            (Some(language), None) => fence = Some(language),
            (None, Some("")) => found.push(line),
            (None, _) => {}
        }
    }
    found
}

#[test]
fn quoted_lines_of_a_probe_are_those_that_were_printed() {
    let page = std::fs::read_to_string(docs().join("answers.md")).unwrap();
    let printed = std::fs::read_to_string(docs().join("example/probe.txt")).unwrap();
    let of_probe = page.split("\n## ").filter(|section| section.contains("docs/example/probe.txt"));
    let lines: Vec<&str> = of_probe.flat_map(quoted).collect();
    for line in &lines {
        assert!(printed.lines().any(|it| it.starts_with(line)), "{line}");
    }
    assert!(lines.len() >= 3, "{lines:?}");
    let answer = printed.split_once("\n\n").unwrap().0;
    assert!(std::fs::read_to_string(docs().join("probe.md")).unwrap().contains(answer), "{answer}");
}

/// A plan without remarks and empty lines.
fn bare(plan: &str) -> Vec<&str> {
    plan.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[test]
fn plans_of_the_answers_are_those_that_ran() {
    let mut seen = 0;
    for (section, report) in sections() {
        let ran = report["run"]["plan"].as_str().unwrap();
        let of_page = section.split("```toml\n").nth(1).map(|rest| rest.split("\n```").next().unwrap());
        let shipped = docs().join(format!("../plans/{}.toml", report["run"]["name"].as_str().unwrap()));
        let plan = of_page.map_or_else(|| std::fs::read_to_string(shipped).unwrap(), str::to_owned);
        assert_eq!(bare(ran), bare(&plan), "{}", report["run"]["name"]);
        seen += 1;
    }
    assert!(seen >= 6, "{seen}");
}

/// Where a rate is on the picture's axis: in proportion, or by its logarithm where rates are 20-fold apart.
fn place(rate: f64, rates: &[f64]) -> f64 {
    let (low, high) = (rates.iter().copied().fold(f64::MAX, f64::min), rates.iter().copied().fold(0.0, f64::max));
    let share = if high > 20.0 * low { (rate / low * 2.0).ln() / (high / low * 2.0).ln() } else { rate / high };
    220.0 + 300.0 * share
}

/// One case in the picture: its name, a line over its trials, the mean as a dot and as a number; volatile in red.
fn drawn_row(row: &Value, y: usize, rates: &[f64]) -> String {
    let (colour, remark) =
        if row["durability"]["class"] == "volatile" { ("#c4570b", " (volatile)") } else { ("#1b5e9e", "") };
    let mean = row["rate"]["value"].as_f64().unwrap();
    let [from, to] = [f64::min, f64::max].map(|end| place(trial_rates(row).into_iter().reduce(end).unwrap(), rates));
    let (label, at, text) = (row["label"].as_str().unwrap(), place(mean, rates), y + 4);
    format!(
        r#"<text x="8" y="{text}">{label}{remark}</text><text x="540" y="{text}">{mean:.0}</text>
<path d="M{from:.1} {y}H{to:.1}" stroke="{colour}" stroke-width="3"/><circle cx="{at:.1}" cy="{y}" r="5" fill="{colour}"/>
"#
    )
}

fn trial_rates(row: &Value) -> Vec<f64> {
    list(&row["trials"]).iter().filter_map(|trial| trial["rate"].as_f64()).collect()
}

/// A ranking as a picture.
fn drawn(report: &Value, title: &str) -> String {
    let rows = ranked(report, title);
    let rates: Vec<f64> = rows.iter().flat_map(trial_rates).collect();
    let height = 24 * rows.len() + 34;
    let body: String = rows.iter().zip((38..).step_by(24)).map(|(row, y)| drawn_row(row, y, &rates)).collect();
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 620 {height}" font-family="sans-serif" font-size="13">
<rect width="620" height="{height}" fill="#fff"/><text x="8" y="18" fill="#555">{title}, a second</text>
{body}</svg>
"##
    )
}

#[test]
fn pictures_of_ours_are_drawn_from_the_run_folders() {
    let mut seen = 0;
    for (section, report) in sections() {
        for picture in section.split("![").skip(1) {
            let (title, after) = picture.split_once(": ").unwrap();
            let file = docs().join(after.split(['(', ')']).nth(1).unwrap());
            let svg = drawn(&report, title);
            if std::env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
                std::fs::write(&file, &svg).unwrap();
            }
            assert_eq!(std::fs::read_to_string(&file).unwrap(), svg, "{}", file.display());
            seen += 1;
        }
    }
    assert!(seen >= 2, "{seen}");
}

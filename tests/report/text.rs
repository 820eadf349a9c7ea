//! What can be judged without a browser: the page's own text, sizes, the terminal's text, CSV and JSON.

use crate::report::{hostile, rendered, runs, sample};
use pgstrata::analyse::findings::{CaseFinding, Findings, Series, TrialFinding};
use serde_json::Value;

/// The part of a page before its data and scripts: what a reader without JavaScript has.
fn markup(page: &str) -> &str {
    page.split("<script").next().unwrap()
}

/// Cells of a CSV text, by RFC 4180.
fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c => field.push(c),
        }
    }
    assert!(row.is_empty() && field.is_empty() && !quoted, "the last line has its end");
    rows
}

#[test]
fn the_report_text_is_complete_without_javascript() {
    let page = rendered("html", &sample::findings());
    let text = markup(&page).replace('\u{a0}', " ");
    for part in [
        "xfs is the fastest stack whose commits wait for a flush",
        "which-filesystem",
        "2026-03-02 09:14 UTC",
        "db-bench-1",
        "may lose everything on power loss",
        "1655 <span class=\"aside\">1605–1705</span>",
        "0.98 flushes per commit seen on loop",
        "one commit = 1.02 device writes of 16.4 KiB + 0.98 flushes",
        "212 commits&#x2f;s by 1 client are 67 % of the 318 fdatasync&#x2f;s",
        "67 % <span class=\"aside\">64–69 %</span> <span class=\"remark\">of 318 fdatasync&#x2f;s</span>",
        "rw,attr2,inode64",
        "write cache: write back",
        "wal_sync_method",
        "no space left on device",
        "lazy_itable_init=0,lazy_journal_init=0",
        "seed of the order",
    ] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn hostile_text_is_escaped_in_every_field_of_the_page() {
    let findings = hostile::hostile();
    let page = rendered("html", &findings);
    assert!(!markup(&page).contains("<img"));
    assert_eq!(page.matches("</script>").count(), 3, "data, charts, our own script");
    let data = page.split("id=\"findings\">").nth(1).unwrap().split("</script>").next().unwrap();
    assert!(!data.contains('<'));
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["findings"]["headline"], serde_json::json!(hostile::shown(&findings.headline)));
    let all = format!("{}{data}", markup(&page));
    // An escape of JSON would be a control character again in a chart, or in a CSV that is saved from the page.
    for raw in ["\u{1b}", "\u{9b}", "\u{202e}", "\u{2028}", "u001b"] {
        assert!(!all.contains(raw), "{raw:?} is shown as its code");
    }
}

#[test]
fn terminal_output_has_no_control_characters_and_fits_100_columns() {
    for findings in [sample::findings(), hostile::hostile()] {
        let text = rendered("txt", &findings);
        let longest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(longest.chars().count() <= 100, "{longest}");
        let control = text.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(control, None);
        assert!(text.lines().all(|line| line.trim_end() == line));
    }
}

#[test]
fn terminal_output_begins_with_the_headline() {
    let text = rendered("txt", &sample::findings());
    assert!(text.starts_with("On this machine (tpcb, clients=16) xfs is the fastest"));
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in\n{text}"));
    let first = &text[..at("tpcb, clients=16\n")].replace('\n', " ");
    assert!(first.contains("Linux 6.18.2), PostgreSQL 15.18. 45 of 48 trials measured"), "{first}");
    assert!(at("(1)  tmpfs") < at("Caveats"));
    assert!(at("Caveats") < at("btrfs tpcb clients=1, trials 1–3 (ended while load)"));
    assert!(at("copying the data failed: no space left on device") < at("try: give the loop image"));
}

#[test]
fn effects_of_options_stand_in_every_form() {
    let findings = sample::findings();
    let text = rendered("txt", &findings);
    let table = text.split("\n  effect of ").nth(1).unwrap().split("\n\n").next().unwrap();
    println!("{table}");
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[2].join(" "), "tpcb: 12 combinations in 3 blocks");
    assert_eq!(lines[3], ["xfs", "ext4", "1.04×", "(0.98–1.10)", "undecided", "12"]);
    assert!(table.contains("1.31× (1.24–1.38)  depends: differs at clients=16"), "{table}");
    assert!(text.find("effect of") < text.find("tpcb, clients=16\n"));
    let page = rendered("html", &findings);
    assert!(page.find("id=\"effects-section\"").unwrap() < page.find("id=\"rankings\"").unwrap());
    let markdown = rendered("md", &findings);
    assert!(markdown.contains("### Effect of each option\n\n**tpcb**: 12 combinations in 3 blocks"));
    assert!(markdown.find("### Effect") == markdown.find("### "), "{markdown}");
}

#[test]
fn a_run_folder_of_two_axes_tells_what_each_option_does() {
    let place = tempfile::tempdir().unwrap();
    let found = pgstrata::analyse::load::findings(&runs::make_matrix(place.path())).unwrap();
    let text = rendered("txt", &found);
    println!("{}", text.split("\n\n").take(4).collect::<Vec<_>>().join("\n\n"));
    assert!(text.contains("4 combinations in 3 blocks"), "{text}");
    let effect = |axis: &str| found.effects[0].options.iter().find(|one| one.axis == axis).unwrap().ratio.value;
    assert!((effect("stack") - 1.5).abs() < 0.01 && (effect("full_page_writes") - 1.25).abs() < 0.01);
    assert!(found.headline.contains(" Best of the 4 combinations "), "{}", found.headline);
    assert!(rendered("json", &found).contains("\"effects\""));
}

#[test]
fn sync_methods_stand_side_by_side_on_the_terminal() {
    let text = rendered("txt", &sample::findings());
    let table = text.split("sync, ops/s by each method\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["case", "fdatasync", "fsync", "open_datasync"]);
    assert_eq!(lines[3][..3], ["xfs", "352", "(rank"]);
    assert!(table.contains("Volatile: may lose everything on power loss\n  tmpfs "), "{table}");
    assert_eq!(lines.len(), 8, "{table}");
    assert_eq!(text.matches("fdatasync").count(), 1, "{text}");
}

#[test]
fn commits_are_set_against_the_sync_rate_in_the_terminal() {
    let text = rendered("txt", &sample::findings()).replace("\n  ", " ");
    assert!(text.contains("on the same stack: ext4 tpcb clients=1: 67 %; ext4"), "{text}");
    let mut without = sample::findings();
    without.cases.iter_mut().filter_map(|case| case.strata.as_mut()).for_each(|strata| strata.flush_share = None);
    assert!(!rendered("txt", &without).contains("of the sync rate"));
    assert!(!markup(&rendered("html", &without)).contains("Commit rate / sync rate"));
}

#[test]
fn the_page_folds_all_but_the_first_ranking_per_kind() {
    let page = rendered("html", &sample::findings());
    let folded = "<details class=\"more\"><summary>The same by fsync, open_datasync</summary>";
    let parts: Vec<&str> = markup(&page).split(folded).collect();
    assert_eq!(parts.len(), 2);
    assert!(parts[0].contains("<h3>sync, fdatasync</h3>") && !parts[0].contains("<h3>sync, fsync</h3>"));
    let inside = parts[1].split("</details>").next().unwrap();
    assert_eq!(inside.matches("<article class=\"ranking\">").count(), 2);
}

#[test]
fn cautions_name_their_cases_or_what_these_are_all_of() {
    let text = rendered("txt", &sample::findings());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for caution in [
        "- CPUs were 93 to 97 % busy: stacks may differ by their CPU cost (tmpfs tpcb clients=1; tmpfs tpcb clients=4; \
         tmpfs tpcb clients=16) -",
        "reads came from cache (all cases with a server) -",
        "pgbench itself may be the limit Full stacks",
    ] {
        assert!(text.contains(caution), "{caution}\n{text}");
    }
    let page = rendered("html", &sample::findings());
    assert!(markup(&page).contains("reads came from cache <span class=\"aside\">all cases with a server</span>"));
}

#[test]
fn csv_has_one_row_for_each_case_and_measure() {
    let findings = sample::findings();
    let rows = csv_rows(&rendered("csv", &findings));
    let measures: usize = findings.cases.iter().map(|case| case.measures.len()).sum();
    assert_eq!(rows.len(), 1 + measures);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    assert_eq!(rows[0][..5], ["case", "axis_clients", "axis_stack", "axis_workload", "measure"]);
    let column = |name: &str| rows[0].iter().position(|heading| heading == name).unwrap();
    let row = rows.iter().find(|row| row[0] == sample::case_id("btrfs", 16)).unwrap();
    let rate = findings.cases.iter().find(|case| case.id == row[0]).unwrap().measures[0].rate.unwrap();
    assert_eq!(row[column("rate_per_s_low")], rate.low.unwrap().to_string());
    assert_eq!(row[column("rank_in_class")], "3");
    assert_eq!(row[column("durability_class")], "flushed");
}

#[test]
fn hostile_text_comes_through_csv_with_its_hidden_characters_shown() {
    let findings = hostile::hostile();
    let text = rendered("csv", &findings);
    assert!(!text.contains(|c: char| c.is_control() && !"\r\n".contains(c)) && !text.contains('\u{202e}'), "{text}");
    let rows = csv_rows(&text);
    let reason = rows[0].iter().position(|heading| heading == "durability_reason").unwrap();
    assert_eq!(rows[1][reason], hostile::shown(&findings.cases[0].durability.reason));
}

/// Equal but for the last bits of numbers, which serde_json's reader does not promise.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-6 * a.abs()
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| alike(a, b)))
        }
        (a, b) => a == b,
    }
}

#[test]
fn json_reads_back_as_the_same_findings() {
    let findings = hostile::hostile();
    let text = rendered("json", &findings);
    assert_eq!(text.lines().count(), 1);
    assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{2028}']), "it may be looked at on a terminal");
    let back: Findings = serde_json::from_str(&text).unwrap();
    assert_eq!(back.headline, findings.headline);
    assert!(alike(&serde_json::to_value(&back).unwrap(), &serde_json::to_value(&findings).unwrap()));
}

/// Forty cases of three trials, each of its 26 series with a thousand buckets of least and most.
fn large() -> Findings {
    let mut findings = sample::findings();
    let case = findings.cases[1].clone();
    let trial = findings.trials[3].clone();
    let mut noise = sample::Noise::new(7);
    let mut series = |title: String, mean: f64| {
        let values =
            |noise: &mut sample::Noise, mean: f64| (0..1000).map(|_| Some((mean * noise.next()) as f32)).collect();
        let (min, max) = (values(&mut noise, mean), values(&mut noise, mean * 3.0));
        Series { bucket_s: 345, max, ..sample::series(&title, "1/s", "device", min) }
    };
    for i in 0..28 {
        let id = format!("{}-{i}", case.id);
        for number in 1..=3 {
            findings.trials.push(TrialFinding {
                case: id.clone(),
                trial: number,
                throughput: Some(series("transactions".to_owned(), 1234.567)),
                latency_ms_max: Some(series("slowest".to_owned(), 12.3456)),
                telemetry: (0..24).map(|n| series(format!("series {n}"), 98.765_43 * f64::from(n + 1))).collect(),
                ..trial.clone()
            });
        }
        findings.cases.push(CaseFinding { id, ..case.clone() });
    }
    findings
}

#[test]
fn a_page_of_ten_thousand_trials_stays_under_ten_megabytes() {
    let mut findings = sample::findings();
    let trial = TrialFinding {
        throughput: None,
        latency_ms_max: None,
        telemetry: Vec::new(),
        heatmap: None,
        waits: None,
        ..findings.trials[0].clone()
    };
    findings.trials.extend((4..10_000).map(|number| TrialFinding { trial: number, ..trial.clone() }));
    let page = rendered("html", &findings);
    assert!(page.len() < 10_000_000, "{} bytes", page.len());
    assert!(markup(&page).contains(&format!("The first 1000 of {} rows.", findings.trials.len())));
    let button = r#"data-file="trials-first-1000" hidden>Download CSV of the first 1000 rows<"#;
    assert!(markup(&page).contains(button), "what is downloaded says it, too");
    assert!(!markup(&rendered("html", &sample::findings())).contains("irst 1000"));
}

#[test]
fn forty_cases_of_long_trials_stay_under_ten_megabytes() {
    let findings = large();
    assert!(findings.cases.len() >= 40);
    let page = rendered("html", &findings);
    assert!(page.len() < 10_000_000, "{} bytes", page.len());
}

#[test]
fn the_page_besides_its_data_stays_under_two_megabytes() {
    let page = rendered("html", &sample::findings());
    let data = page.split("id=\"findings\">").nth(1).unwrap().split("</script>").next().unwrap();
    assert!(page.len() - data.len() < 2_000_000, "{} bytes", page.len() - data.len());
}

#[test]
fn markdown_has_the_answer_the_tables_and_the_conditions() {
    let findings = sample::findings();
    let text = rendered("md", &findings);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("## which-filesystem"));
    assert!(lines.nth(1).unwrap().contains("(tpcb, clients=16) xfs is the fastest stack"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
    assert!(rows.iter().any(|row| row.contains("| xfs |") && row.contains("1.12×")), "{rows:?}");
    for part in
        ["**Volatile**", "### Latency, ms", "### Not run", "### Conditions", "seed 42", "<summary>Plan</summary>"]
    {
        assert!(text.contains(part), "{part}");
    }
    assert!(text.contains(findings.run.plan.lines().next().unwrap()));
}

#[test]
fn hostile_text_stays_in_its_cell_of_markdown() {
    let text = rendered("md", &hostile::hostile());
    let (before, plan) = text.split_once("<details>").unwrap();
    assert!(!before.contains("<img") && !before.contains("</script"), "{before}");
    assert!(!plan.contains('\u{1b}') && !plan.contains('\u{202e}'));
    // As many cells in each row of a table as in its head: a bar in a name ends no cell.
    let cells = |row: &str| row.replace("\\\\", "").replace("\\|", "").matches('|').count();
    let mut head: Option<usize> = None;
    for line in before.lines() {
        head = if line.starts_with("| ") { Some(*head.get_or_insert(cells(line))) } else { None };
        assert!(head.is_none_or(|head| head == cells(line)), "{line}");
    }
}

#[test]
fn without_rankings_the_device_work_of_each_case_comes_first() {
    let mut findings = sample::findings();
    findings.rankings.clear();
    findings.effects.clear();
    for (extension, title) in [("txt", "One operation at the devices"), ("md", "One operation at the devices")] {
        let text = rendered(extension, &findings);
        let work = text.find(title).unwrap_or_else(|| panic!("{text}"));
        assert!(text[..work].lines().count() < 12, "{text}");
        let volatile = text[work..].find("Volatile").unwrap();
        assert!(text[work..work + volatile].contains("btrfs"), "{text}");
    }
    let page = rendered("html", &findings);
    assert!(page.contains("id=\"device-work\"") && !page.contains("id=\"rankings\""));
    assert!(!rendered("html", &sample::findings()).contains("id=\"device-work\""));
}

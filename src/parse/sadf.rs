//! `sadf -j` of sysstat: what sar recorded, as JSON.
//!
//! Labels: `report` (from 1), `time` (date and time), then `cpu`, `device` or `group` (sadf's name of it: `io`,
//! `memory`). Devices and processors have the names of `iostat`'s figures. Memory is `memory_<sadf's name>_bytes`, paging
//! is `page_in_bytes_per_s`, `page_out_bytes_per_s`, `faults_per_s`, `major_faults_per_s`; the queue is `run_queue`,
//! `load_1_min`, `load_5_min`, `load_15_min`, `blocked_tasks`. A number that is not in these tables is not taken, since its
//! unit is not known, unless it is a percentage. Source: sadf(1) and sar(1) of sysstat 12.

use super::json::{Leaf, document};
use super::output::{Line, Output};
use super::table::{self, KIB, Known, known};
use std::collections::HashSet;

const MS: f64 = 1000.0;

/// Whether the text holds a document of sadf.
#[must_use]
pub fn looks_like(lines: &[Line<'_>]) -> bool {
    (0..lines.len()).any(|at| begins(lines, at))
}

fn begins(lines: &[Line<'_>], at: usize) -> bool {
    let near = &lines[at..lines.len().min(at + 16)];
    let has = |name: &str| near.iter().any(|line| line.text.contains(name));
    lines[at].text.starts_with('{') && has("\"sysstat\"") && (has("\"file-date\"") || has("\"cpu-load\""))
}

/// Reads every document of sadf in the text.
#[must_use]
pub fn read(lines: &[Line<'_>]) -> Vec<Output> {
    let mut outputs = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let mut output = Output { tool: "sadf -j", ..Output::default() };
        let mut reader = Reader::default();
        match begins(lines, at).then(|| document(&lines[at..], |leaf| reader.take(&mut output, leaf))).flatten() {
            Some(found) => {
                at += found.used;
                found.close(&mut output);
                outputs.push(output);
            }
            None => at += 1,
        }
    }
    outputs
}

#[derive(Default)]
struct Reader {
    /// Report and group of the last row.
    key: String,
    /// Names of its figures.
    names: HashSet<String>,
    date: String,
    time: String,
}

impl Reader {
    fn take(&mut self, output: &mut Output, leaf: &Leaf<'_, '_>) {
        let path: Vec<&str> = leaf.path.iter().map(String::as_str).collect();
        let (report, group, rest) = match path.as_slice() {
            ["sysstat", "hosts", _, "statistics", report, group, rest @ ..] => (*report, *group, rest),
            [.., name] => {
                output.facts.push(((*name).to_owned(), leaf.text.to_string()));
                return;
            }
            [] => return,
        };
        if group == "timestamp" {
            match rest {
                ["date"] => leaf.text.as_ref().clone_into(&mut self.date),
                ["time"] => leaf.text.as_ref().clone_into(&mut self.time),
                // It stands behind date and time, before the figures.
                ["utc"] if leaf.text == "1" => self.time.push_str(" UTC"),
                [name] => {
                    let report = report.parse().map_or(0, |report: usize| report + 1);
                    output.facts.push((format!("{name} of report {report}"), leaf.text.to_string()));
                }
                _ => {}
            }
            return;
        }
        let Some((&name, inner)) = rest.split_last() else { return };
        let position = inner.first().filter(|at| at.bytes().all(|byte| byte.is_ascii_digit())).copied();
        let key = format!("{report} {group} {}", position.unwrap_or_default());
        if key != self.key {
            self.key = key;
            self.names.clear();
            let report = report.parse().map_or_else(|_| report.to_owned(), |report: usize| (report + 1).to_string());
            let mut labels = vec![("report", report), ("time", format!("{} {}", self.date, self.time))];
            labels.extend((!matches!(group, "cpu-load" | "disk")).then(|| ("group", group.to_owned())));
            output.rows.push(table::row(labels, leaf.line));
        }
        let Some(row) = output.rows.last_mut() else { return };
        let Some(number) = leaf.number else {
            let label = match name {
                "cpu" => "cpu",
                "disk-device" | "dev" => "device",
                _ => "name",
            };
            row.labels.push((label, leaf.text.to_string()));
            return;
        };
        let known = meaning(group, name).map(|known| (known.name.to_owned(), known.unit, known.factor));
        let Some((name, unit, factor)) = known.or_else(|| generic(group, name)) else {
            let line = Line { number: leaf.line, text: &leaf.text, indent: 0 };
            table::unknown_column(output, line, &format!("{group}: {name}"));
            return;
        };
        // Sectors and kilobytes of one thing are one figure.
        if self.names.insert(name.clone()) {
            row.figures.push(table::figure(&name, unit, number * factor, &leaf.text, leaf.line));
        }
    }
}

fn generic(group: &str, name: &str) -> Option<(String, &'static str, f64)> {
    let plain = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    Some(match (group, name.strip_suffix("-percent")) {
        ("memory", Some(name)) => (format!("memory_{}_percent", plain(name)), "%", 1.0),
        ("memory", None) => (format!("memory_{}_bytes", plain(name)), "B", KIB),
        ("cpu-load", _) => (format!("{}_percent", plain(name)), "%", 1.0),
        (_, Some(name)) => (format!("{}_{}_percent", plain(group), plain(name)), "%", 1.0),
        (_, None) => return None,
    })
}

const MEANINGS: &[(&str, Known)] = &[
    ("cpu-load", known("usr", "user_percent", "%", 1.0)),
    ("cpu-load", known("sys", "system_percent", "%", 1.0)),
    ("io", known("tps", "ops_per_s", "ops/s", 1.0)),
    ("io", known("rtps", "read_ops_per_s", "ops/s", 1.0)),
    ("io", known("wtps", "write_ops_per_s", "ops/s", 1.0)),
    ("io", known("dtps", "discard_ops_per_s", "ops/s", 1.0)),
    ("io", known("bread", "read_bytes_per_s", "B/s", 512.0)),
    ("io", known("bwrtn", "write_bytes_per_s", "B/s", 512.0)),
    ("io", known("bdscd", "discard_bytes_per_s", "B/s", 512.0)),
    ("disk", known("tps", "ops_per_s", "ops/s", 1.0)),
    ("disk", known("rd_sec", "read_bytes_per_s", "B/s", 512.0)),
    ("disk", known("wr_sec", "write_bytes_per_s", "B/s", 512.0)),
    ("disk", known("dc_sec", "discard_bytes_per_s", "B/s", 512.0)),
    ("disk", known("rkB", "read_bytes_per_s", "B/s", KIB)),
    ("disk", known("wkB", "write_bytes_per_s", "B/s", KIB)),
    ("disk", known("dkB", "discard_bytes_per_s", "B/s", KIB)),
    ("disk", known("avgrq-sz", "request_bytes", "B", 512.0)),
    ("disk", known("areq-sz", "request_bytes", "B", KIB)),
    ("disk", known("avgqu-sz", "queue_depth", "requests", 1.0)),
    ("disk", known("aqu-sz", "queue_depth", "requests", 1.0)),
    ("disk", known("await", "latency_us", "us", MS)),
    ("disk", known("svctm", "service_time_us", "us", MS)),
    ("disk", known("util-percent", "util_percent", "%", 1.0)),
    ("paging", known("pgpgin", "page_in_bytes_per_s", "B/s", KIB)),
    ("paging", known("pgpgout", "page_out_bytes_per_s", "B/s", KIB)),
    ("paging", known("fault", "faults_per_s", "faults/s", 1.0)),
    ("paging", known("majflt", "major_faults_per_s", "faults/s", 1.0)),
    ("paging", known("pgfree", "freed_per_s", "pages/s", 1.0)),
    ("paging", known("pgscank", "scans_by_kswapd_per_s", "pages/s", 1.0)),
    ("paging", known("pgscand", "scans_by_processes_per_s", "pages/s", 1.0)),
    ("paging", known("pgsteal", "reclaims_per_s", "pages/s", 1.0)),
    ("swap-pages", known("pswpin", "swap_in_per_s", "pages/s", 1.0)),
    ("swap-pages", known("pswpout", "swap_out_per_s", "pages/s", 1.0)),
    ("queue", known("runq-sz", "run_queue", "tasks", 1.0)),
    ("queue", known("plist-sz", "tasks", "tasks", 1.0)),
    ("queue", known("ldavg-1", "load_1_min", "tasks", 1.0)),
    ("queue", known("ldavg-5", "load_5_min", "tasks", 1.0)),
    ("queue", known("ldavg-15", "load_15_min", "tasks", 1.0)),
    ("queue", known("blocked", "blocked_tasks", "tasks", 1.0)),
    ("process-and-context-switch", known("proc", "tasks_created_per_s", "tasks/s", 1.0)),
    ("process-and-context-switch", known("cswch", "context_switches_per_s", "switches/s", 1.0)),
];

fn meaning(group: &str, name: &str) -> Option<Known> {
    MEANINGS.iter().find(|(of, known)| *of == group && known.column == name).map(|(_, known)| *known)
}

#[cfg(test)]
mod tests {
    use super::super::mangle::any_mangling;
    use super::super::table::checks::outputs_of;
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    const JSON: &str = include_str!("../../tests/fixtures/sadf/12.6.1.json");

    fn outputs(text: &str) -> Vec<Output> {
        outputs_of(text, looks_like, read)
    }

    fn value(output: &Output, label: &str, name: &str) -> Option<f64> {
        let row = output.rows.iter().find(|row| row.labels.iter().any(|(_, value)| value == label))?;
        row.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }

    #[test]
    fn figures_have_the_names_of_iostat() {
        let found = outputs(JSON).remove(0);
        let judge: serde_json::Value = serde_json::from_str(JSON).unwrap();
        let of = |path: &str| judge.pointer(&format!("/sysstat/hosts/0/statistics/0/{path}")).unwrap().as_f64();
        assert_eq!(value(&found, "vda", "latency_us"), of("disk/0/await").map(|await_ms| await_ms * 1000.0));
        assert_eq!(value(&found, "all", "user_percent"), of("cpu-load/0/user"));
        assert_eq!(value(&found, "io", "read_bytes_per_s"), of("io/io-reads/bread").map(|sectors| sectors * 512.0));
        assert_eq!(value(&found, "memory", "memory_memfree_bytes"), of("memory/memfree").map(|kib| kib * 1024.0));
        assert_eq!(value(&found, "queue", "load_15_min"), of("queue/ldavg-15"));
        let reports = |n: &str| found.rows.iter().filter(|row| row.labels[0].1 == n).count();
        assert!(reports("1") > 5 && reports("1") == reports("2"));
        assert!(found.rows[0].labels[1].1.contains(':') && found.unread.is_empty() && found.notes.is_empty());
    }

    #[test]
    fn every_figure_has_a_unit_and_one_that_could_have_none_is_reported() {
        let found = outputs(JSON).remove(0);
        assert!(found.rows.iter().flat_map(|row| &row.figures).all(|figure| !figure.unit.is_empty()), "{found:#?}");
        assert!(value(&found, "paging", "freed_per_s").is_some());
        let found = outputs(&JSON.replace("\"pgfree\"", "\"pgnew\"")).remove(0);
        assert_eq!(found.unread.len(), 1, "once, for all reports: {:?}", found.unread);
        assert!(found.unread[0].wanted.contains("`paging: pgnew`"));
    }

    #[test]
    fn a_time_in_utc_says_so_and_another_does_not() {
        let time = |text: &str| outputs(text)[0].rows[0].labels[1].1.clone();
        assert_eq!(time(JSON), "2026-11-21 09:20:55 UTC");
        assert_eq!(time(&JSON.replace("\"utc\": 1", "\"utc\": 0")), "2026-11-21 09:20:55");
    }

    proptest! {
        #[test]
        fn mangled_text_gives_the_same_or_less(mangling in any_mangling()) {
            let count = |outputs: &[Output]| -> usize {
                outputs.iter().flat_map(|output| &output.rows).map(|row| row.figures.len()).sum()
            };
            let (whole, mangled) = (count(&outputs(JSON)), count(&outputs(&mangling.apply(JSON))));
            prop_assert!(mangled <= whole && (!mangling.keeps_lines() || mangled == whole), "{mangled} of {whole}");
        }

        #[test]
        fn no_text_makes_it_panic(
            text in "\\{\"sysstat\":\\{\"hosts\":\\[\\{\"file-date\":1,(\"statistics\"|\"disk\"|\"cpu-load\"|[\\[\\]{}:,]|[0-9]){0,40}",
            any in any::<String>(),
        ) {
            outputs(&text);
            outputs(&any);
        }
    }
}

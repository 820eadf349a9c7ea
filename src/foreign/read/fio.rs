//! fio's JSON (`--output-format=json` and `json+`) of fio 3.
//!
//! | fio | figure | unit |
//! |---|---|---|
//! | io_bytes, bw_bytes, iops | `io_bytes`, `bytes_per_s`, `ops_per_s` | B, B/s, ops/s |
//! | total_ios, short_ios, drop_ios | `ops`, `short_ops`, `dropped_ops` | count |
//! | runtime, job_runtime (ms); elapsed (s) | `runtime_us`, `elapsed_us` | us |
//! | bw_min, bw_max, bw_mean, bw_dev (KiB/s) | `bytes_per_s_min`, `_max`, `_mean`, `_stddev` | B/s |
//! | iops_min, iops_max, iops_mean, iops_stddev | `ops_per_s_min`, .. | ops/s |
//! | slat_ns, clat_ns, lat_ns: min max mean stddev N | `submission_latency_min_us`, `completion_latency_mean_us`, `latency_max_us`, .. , `latency_samples` | us, count |
//! | percentile 99.900000 | `completion_latency_p99.9_us` | us |
//! | bins (`json+`) | rows with the labels `histogram` and `bin_ns`, figure `samples` | count |
//! | usr_cpu, sys_cpu; ctx, majf, minf | `user_percent`, `system_percent`; `context_switches`, `major_faults`, `minor_faults` | %, count |
//! | iodepth_level, latency_us, .. | rows with the labels `distribution` and `at`, figure `share_percent` | % |
//! | disk_util: ios, merges, ticks (ms), in_queue (ms), util | `read_ops`, `write_merges`, `read_time_us`, `queue_time_us`, `util_percent` | |
//!
//! Labels: `job` (name), `job_index` (from 1), `direction` (read, write, trim, sync). A direction without any operation
//! has no figures: fio's zeros there are no measurements. io_kbytes and bw repeat other figures and are left out.
//! Source: fio's HOWTO and stat.c.

use super::json::{Leaf, document};
use super::output::{Line, Output, Row};
use super::table;
use std::collections::HashMap;

const MS: f64 = 1000.0;
const DISTRIBUTIONS: [&str; 6] =
    ["iodepth_level", "iodepth_submit", "iodepth_complete", "latency_ns", "latency_us", "latency_ms"];

/// Whether the text holds fio's JSON.
#[must_use]
pub fn looks_like(lines: &[Line<'_>]) -> bool {
    (0..lines.len()).any(|at| begins(lines, at))
}

fn begins(lines: &[Line<'_>], at: usize) -> bool {
    let near = &lines[at..lines.len().min(at + 4)];
    lines[at].text.starts_with('{') && near.iter().any(|line| line.text.contains("\"fio version\""))
}

/// Reads every JSON document of fio in the text.
#[must_use]
pub fn read(lines: &[Line<'_>]) -> Vec<Output> {
    let mut outputs = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if !begins(lines, at) {
            at += 1;
            continue;
        }
        let mut reader = Reader::default();
        let mut output = Output { tool: "fio", ..Output::default() };
        let used = document(&lines[at..], &mut output, |output, leaf| reader.take(output, leaf));
        if reader.is_old {
            output.unread.push(table::unread(lines[at], "fio 3; the units of fio 2 are others"));
        }
        empty_idle(&mut output);
        outputs.push(output);
        at += used;
    }
    outputs
}

#[derive(Default)]
struct Reader {
    /// Whether it is of fio 2.
    is_old: bool,
    /// Names of the jobs, by their places.
    jobs: HashMap<String, String>,
    /// Which row a group of figures goes to.
    places: HashMap<String, usize>,
}

impl Reader {
    fn take(&mut self, output: &mut Output, leaf: &Leaf<'_>) {
        let path: Vec<&str> = leaf.path.iter().map(String::as_str).collect();
        if self.is_old {
            return;
        }
        match path.as_slice() {
            ["fio version"] if leaf.text.starts_with("fio-2") => self.is_old = true,
            ["fio version"] => output.version = Some(leaf.text.trim_start_matches("fio-").to_owned()),
            ["jobs" | "client_stats", job, "jobname"] => {
                self.jobs.insert((*job).to_owned(), leaf.text.clone());
            }
            ["jobs" | "client_stats", job, "job options", option] => {
                let name = format!("job {} option {option}", number_of(job));
                output.facts.push((name, leaf.text.clone()));
            }
            ["jobs" | "client_stats", job, rest @ ..] => self.job(output, job, rest, leaf),
            ["disk_util", at, "name"] => {
                let row = self.row(output, &format!("disk {at}"), Vec::new(), leaf.line);
                row.labels.push(("device", leaf.text.clone()));
            }
            ["disk_util", at, name] => self.disk(output, at, name, leaf),
            [.., name] => output.facts.push(((*name).to_owned(), leaf.text.clone())),
            [] => {}
        }
    }

    fn row<'a>(
        &mut self,
        output: &'a mut Output,
        key: &str,
        labels: Vec<(&'static str, String)>,
        line: u32,
    ) -> &'a mut Row {
        let index = self.places.get(key).copied().unwrap_or_else(|| {
            output.rows.push(table::row(labels, line));
            self.places.insert(key.to_owned(), output.rows.len() - 1);
            output.rows.len() - 1
        });
        &mut output.rows[index]
    }

    fn job(&mut self, output: &mut Output, job: &str, rest: &[&str], leaf: &Leaf<'_>) {
        let name = self.jobs.get(job).cloned().unwrap_or_default();
        let mut labels = vec![("job", name), ("job_index", number_of(job))];
        let Some(number) = leaf.number else {
            let path = rest.join(" ");
            output.facts.push((format!("job {} {path}", number_of(job)), leaf.text.clone()));
            return;
        };
        let key = format!("job {job}");
        let figure = |name: &str, unit, value| table::figure(name, unit, value, &leaf.text, leaf.line);
        match rest {
            [direction @ ("read" | "write" | "trim" | "sync" | "mixed"), inner @ ..] => {
                labels.push(("direction", (*direction).to_owned()));
                let key = format!("{key} {direction}");
                match inner {
                    [kind, "bins", bin] => {
                        labels.extend([("histogram", latency(kind)), ("bin_ns", (*bin).to_owned())]);
                        let mut row = table::row(labels, leaf.line);
                        row.figures.push(figure("samples", "count", number));
                        output.rows.push(row);
                    }
                    [kind, "percentile", percentile] => {
                        let name = format!("{}_p{}_us", latency(kind), short(percentile));
                        let figure = figure(&name, "us", number / 1000.0);
                        self.row(output, &key, labels, leaf.line).figures.push(figure);
                    }
                    [kind, "N"] => {
                        let figure = figure(&format!("{}_samples", latency(kind)), "count", number);
                        self.row(output, &key, labels, leaf.line).figures.push(figure);
                    }
                    [kind, statistic] => {
                        let figure = figure(&format!("{}_{statistic}_us", latency(kind)), "us", number / 1000.0);
                        self.row(output, &key, labels, leaf.line).figures.push(figure);
                    }
                    [field] => {
                        if let Some((name, unit, factor)) = of_direction(field) {
                            self.row(output, &key, labels, leaf.line).figures.push(figure(name, unit, number * factor));
                        }
                    }
                    _ => {}
                }
            }
            [distribution, at] if DISTRIBUTIONS.contains(distribution) => {
                labels.extend([("distribution", (*distribution).to_owned()), ("at", (*at).to_owned())]);
                let mut row = table::row(labels, leaf.line);
                row.figures.push(figure("share_percent", "%", number));
                output.rows.push(row);
            }
            [field] => {
                if let Some((name, unit, factor)) = of_job(field) {
                    self.row(output, &key, labels, leaf.line).figures.push(figure(name, unit, number * factor));
                } else {
                    output.facts.push((format!("job {} {field}", number_of(job)), leaf.text.clone()));
                }
            }
            _ => {}
        }
    }

    fn disk(&mut self, output: &mut Output, at: &str, name: &str, leaf: &Leaf<'_>) {
        let Some(number) = leaf.number else { return };
        let (name, unit, factor) = match name {
            "read_ios" => ("read_ops", "count", 1.0),
            "write_ios" => ("write_ops", "count", 1.0),
            "read_merges" => ("read_merges", "count", 1.0),
            "write_merges" => ("write_merges", "count", 1.0),
            "read_sectors" => ("read_bytes", "B", 512.0),
            "write_sectors" => ("write_bytes", "B", 512.0),
            "read_ticks" => ("read_time_us", "us", MS),
            "write_ticks" => ("write_time_us", "us", MS),
            "in_queue" => ("queue_time_us", "us", MS),
            "util" => ("util_percent", "%", 1.0),
            _ => return,
        };
        let figure = table::figure(name, unit, number * factor, &leaf.text, leaf.line);
        self.row(output, &format!("disk {at}"), Vec::new(), leaf.line).figures.push(figure);
    }
}

/// Empties the rows of directions in which nothing was done.
fn empty_idle(output: &mut Output) {
    for row in &mut output.rows {
        let Some((_, direction)) = row.labels.get(2).filter(|(name, _)| *name == "direction") else { continue };
        let counter = if direction == "sync" { "latency_samples" } else { "ops" };
        let idle = row.figures.iter().any(|figure| figure.name == counter && figure.value == 0.0);
        if idle {
            row.absent = Some(format!("no {direction} was done"));
            row.figures.clear();
        }
    }
}

fn number_of(position: &str) -> String {
    position.parse().map_or_else(|_| position.to_owned(), |position: usize| (position + 1).to_string())
}

/// `99.900000` as `99.9`.
fn short(percentile: &str) -> &str {
    match percentile.contains('.') {
        true => percentile.trim_end_matches('0').trim_end_matches('.'),
        false => percentile,
    }
}

fn latency(kind: &str) -> String {
    match kind {
        "slat_ns" => "submission_latency".to_owned(),
        "clat_ns" => "completion_latency".to_owned(),
        "lat_ns" => "latency".to_owned(),
        other => other.to_owned(),
    }
}

fn of_direction(field: &str) -> Option<(&'static str, &'static str, f64)> {
    Some(match field {
        "io_bytes" => ("io_bytes", "B", 1.0),
        "bw_bytes" => ("bytes_per_s", "B/s", 1.0),
        "iops" => ("ops_per_s", "ops/s", 1.0),
        "runtime" => ("runtime_us", "us", MS),
        "total_ios" => ("ops", "count", 1.0),
        "short_ios" => ("short_ops", "count", 1.0),
        "drop_ios" => ("dropped_ops", "count", 1.0),
        "bw_min" => ("bytes_per_s_min", "B/s", table::KIB),
        "bw_max" => ("bytes_per_s_max", "B/s", table::KIB),
        "bw_mean" => ("bytes_per_s_mean", "B/s", table::KIB),
        "bw_dev" => ("bytes_per_s_stddev", "B/s", table::KIB),
        "bw_agg" => ("bytes_per_s_share_percent", "%", 1.0),
        "bw_samples" => ("bytes_per_s_samples", "count", 1.0),
        "iops_min" => ("ops_per_s_min", "ops/s", 1.0),
        "iops_max" => ("ops_per_s_max", "ops/s", 1.0),
        "iops_mean" => ("ops_per_s_mean", "ops/s", 1.0),
        "iops_stddev" => ("ops_per_s_stddev", "ops/s", 1.0),
        "iops_samples" => ("ops_per_s_samples", "count", 1.0),
        _ => return None,
    })
}

fn of_job(field: &str) -> Option<(&'static str, &'static str, f64)> {
    Some(match field {
        "job_runtime" => ("runtime_us", "us", MS),
        "elapsed" => ("elapsed_us", "us", 1e6),
        "usr_cpu" => ("user_percent", "%", 1.0),
        "sys_cpu" => ("system_percent", "%", 1.0),
        "ctx" => ("context_switches", "count", 1.0),
        "majf" => ("major_faults", "count", 1.0),
        "minf" => ("minor_faults", "count", 1.0),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::table::checks::outputs_of;
    use super::*;
    use proptest::prelude::{any, proptest};

    const JSON: &str = include_str!("../../../tests/fixtures/fio/3.33.json");
    const PLUS: &str = include_str!("../../../tests/fixtures/fio/3.33-plus.json");

    fn outputs(text: &str) -> Vec<Output> {
        outputs_of(text, looks_like, read)
    }

    fn direction<'a>(output: &'a Output, direction: &str) -> &'a Row {
        output.rows.iter().find(|row| row.labels.contains(&("direction", direction.to_owned()))).unwrap()
    }

    fn value(row: &Row, name: &str) -> Option<f64> {
        row.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }

    /// What serde makes of the same document, the judge of the numbers.
    fn judge(path: &str) -> f64 {
        let judge: serde_json::Value = serde_json::from_str(JSON).unwrap();
        judge.pointer(path).and_then(serde_json::Value::as_f64).unwrap()
    }

    #[test]
    fn a_job_has_its_directions_with_latencies_in_microseconds() {
        let found = outputs(JSON).remove(0);
        assert_eq!((found.version.as_deref(), found.unread.len(), found.notes.len()), (Some("3.33"), 0, 0));
        let write = direction(&found, "write");
        assert_eq!(write.labels[0], ("job", "mix".to_owned()));
        assert_eq!(value(write, "ops_per_s"), Some(judge("/jobs/0/write/iops")));
        assert_eq!(value(write, "bytes_per_s"), Some(judge("/jobs/0/write/bw_bytes")));
        let percentile = judge("/jobs/0/write/clat_ns/percentile/99.900000");
        assert_eq!(value(write, "completion_latency_p99.9_us"), Some(percentile / 1000.0));
        let sync = direction(&found, "sync");
        assert_eq!(value(sync, "latency_mean_us"), Some(judge("/jobs/0/sync/lat_ns/mean") / 1000.0));
        assert!(value(sync, "latency_p99_us").is_some());
        assert_eq!(found.rows.iter().filter(|row| row.labels[0].0 == "device").count(), 1);
    }

    #[test]
    fn a_direction_without_operations_has_no_figures() {
        let found = outputs(JSON).remove(0);
        let trim = direction(&found, "trim");
        assert_eq!((trim.figures.len(), trim.absent.as_deref()), (0, Some("no trim was done")));
    }

    #[test]
    fn bins_of_a_histogram_add_up_to_its_samples() {
        let found = outputs(PLUS).remove(0);
        let write = direction(&found, "write");
        let bin = |row: &&Row| {
            let labels = |name, value: &str| row.labels.contains(&(name, value.to_owned()));
            labels("direction", "write") && labels("histogram", "completion_latency")
        };
        let sum: f64 = found.rows.iter().filter(bin).map(|row| row.figures[0].value).sum();
        assert_eq!(Some(sum), value(write, "completion_latency_samples"));
    }

    #[test]
    fn a_document_that_is_cut_off_is_not_read_and_that_is_said() {
        let cut: String = JSON.lines().take(60).map(|line| format!("{line}\n")).collect();
        let found = outputs(&format!("fio: some warning\n{cut}")).remove(0);
        assert!(found.rows.is_empty() && found.unread[0].wanted.contains("a whole document"), "{:?}", found.unread);
        let found = outputs("{\n \"fio version\" : \"fio-2.16\",\n \"jobs\" : []\n}").remove(0);
        assert_eq!((found.rows.len(), found.unread.len()), (0, 1));
    }

    #[test]
    fn a_job_without_a_name_does_not_get_that_of_the_next() {
        let text = "{\"fio version\": \"fio-3.33\", \"jobs\": [{\"read\": {\"iops\": 5}}, {\"jobname\": \"b\", \"read\": {\"iops\": 6}}]}";
        let found = outputs(text).remove(0);
        let names: Vec<&str> = found.rows.iter().map(|row| row.labels[0].1.as_str()).collect();
        assert_eq!(names, ["", "b"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            text in "\\{\"fio version\":\"fio-3\",(\"jobs\"|\"sync\"|\"lat_ns\"|\"bins\"|[\\[\\]{}:,]|[0-9]){0,40}",
            any in any::<String>(),
        ) {
            outputs(&text);
            outputs(&any);
        }
    }
}

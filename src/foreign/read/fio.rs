//! fio's JSON (`--output-format=json` and `json+`) of fio 3: work and latency of each job in each direction.
//!
//! Labels: `job` (name), `job_index` (from 1), `direction` (read, write, trim, sync). A direction without any operation
//! has no figures, nor has a latency that was not measured: fio's zeros there are not measurements. Absent on purpose:
//! distributions, the bins of `json+`, disk statistics, and repetitions of other figures; a note names them. Source:
//! fio's HOWTO and stat.c.

use super::json::{Leaf, document};
use super::output::{Output, TextLine};
use super::table;
use std::collections::{BTreeSet, HashMap};

/// Field, figure, unit, factor.
const FIELDS: [(&str, &str, &str, f64); 3] =
    [("bw_bytes", "bytes_per_s", "B/s", 1.0), ("iops", "ops_per_s", "ops/s", 1.0), ("total_ios", "ops", "count", 1.0)];

fn begins(lines: &[TextLine<'_>], at: usize) -> bool {
    let near = &lines[at..lines.len().min(at + 4)];
    lines[at].text.starts_with('{') && near.iter().any(|line| line.text.contains("\"fio version\""))
}

/// Reads every fio JSON document in the text.
pub fn read(lines: &[TextLine<'_>]) -> Vec<Output> {
    table::scan(lines, |at| {
        if !begins(lines, at) {
            return (None, 1);
        }
        let mut reader = FioReader::default();
        let mut output = table::output("fio", lines[at].number);
        let used = document(&lines[at..], &mut output, |output, leaf| reader.take(output, leaf));
        if reader.is_old {
            output.unread.push(table::unread(lines[at], "fio 3: fio 2 uses different units"));
        }
        empty_idle(&mut output);
        if !reader.left_out.is_empty() {
            let names: Vec<String> = reader.left_out.into_iter().collect();
            table::note(&mut output, format!("not read: {}", names.join(", ")));
        }
        (Some(output), used)
    })
}

#[derive(Default)]
struct FioReader {
    /// True for fio 2.
    is_old: bool,
    /// Names of the jobs, by position.
    jobs: HashMap<String, String>,
    /// Rows by the positions of their jobs and by direction.
    rows: HashMap<(String, String), usize>,
    /// Maps that are not read, including disks.
    left_out: BTreeSet<String>,
}

impl FioReader {
    fn take(&mut self, output: &mut Output, leaf: &Leaf<'_>) {
        let path: Vec<&str> = leaf.path.iter().map(String::as_str).collect();
        match path.as_slice() {
            _ if self.is_old => {}
            ["fio version"] if leaf.text.starts_with("fio-2") => self.is_old = true,
            ["fio version"] => output.version = Some(leaf.text.trim_start_matches("fio-").to_owned()),
            ["jobs" | "client_stats", job, "jobname"] => {
                self.jobs.insert((*job).to_owned(), leaf.text.clone());
            }
            ["jobs" | "client_stats", job, "error"] if leaf.number.is_some_and(|error| error != 0.0) => {
                let name = self.jobs.get(*job).map_or("", String::as_str);
                table::note(output, format!("job {} `{name}` failed: error {}", number_of(job), leaf.text));
            }
            ["jobs" | "client_stats", job, "job options", option] => {
                output.facts.push((format!("job {} option {option}", number_of(job)), leaf.text.clone()));
            }
            ["jobs" | "client_stats", job, direction @ ("read" | "write" | "trim" | "sync" | "mixed"), field @ ..] => {
                self.figure(output, job, direction, field, leaf);
            }
            [name] | ["global options", name] => output.facts.push(((*name).to_owned(), leaf.text.clone())),
            ["disk_util", _, "name"] => drop(self.left_out.insert(format!("disk_util of {}", leaf.text))),
            ["jobs" | "client_stats", _, name, _, ..] | [name, _, ..]
                if !["disk_util", "jobs", "client_stats"].contains(name) =>
            {
                self.left_out.insert((*name).to_owned());
            }
            _ => {}
        }
    }

    /// Takes a number of a job if its meaning is known.
    fn figure(&mut self, output: &mut Output, job: &str, direction: &str, field: &[&str], leaf: &Leaf<'_>) {
        let Some((name, unit, value)) = leaf.number.and_then(|number| known(field, number)) else {
            if let [.., map, _] = field {
                self.left_out.insert((*map).to_owned());
            }
            return;
        };
        let index = *self.rows.entry((job.to_owned(), direction.to_owned())).or_insert_with(|| {
            let name = self.jobs.get(job).cloned().unwrap_or_default();
            let labels = vec![("job", name), ("job_index", number_of(job)), ("direction", direction.to_owned())];
            output.rows.push(table::row(labels, leaf.line));
            output.rows.len() - 1
        });
        output.rows[index].figures.push(table::figure(&name, unit, value, &leaf.text, leaf.line));
    }
}

/// Name, unit and value of a known number.
fn known(field: &[&str], number: f64) -> Option<(String, &'static str, f64)> {
    match field {
        [field] => {
            let (_, name, unit, factor) = FIELDS.iter().find(|(known, ..)| known == field)?;
            Some(((*name).to_owned(), unit, number * factor))
        }
        [kind, "percentile", percentile] => {
            // `99.900000` as `99.9`.
            let short = percentile.trim_end_matches('0').trim_end_matches('.');
            let short = if percentile.contains('.') { short } else { percentile };
            Some((format!("{}_p{short}_us", latency(kind)?), "us", number / 1000.0))
        }
        [kind, "N"] => Some((format!("{}_samples", latency(kind)?), "count", number)),
        [kind, statistic] => Some((format!("{}_{statistic}_us", latency(kind)?), "us", number / 1000.0)),
        _ => None,
    }
}

fn latency(kind: &str) -> Option<&'static str> {
    match kind {
        "slat_ns" => Some("submission_latency"),
        "clat_ns" => Some("completion_latency"),
        "lat_ns" => Some("latency"),
        _ => None,
    }
}

fn number_of(position: &str) -> String {
    position.parse().map_or_else(|_| position.to_owned(), |position: usize| (position + 1).to_string())
}

/// Removes zeros that are not measurements: latencies without samples (`disable_lat`, engines without separate
/// submission, and versions that did not count samples), and everything in an idle direction.
fn empty_idle(output: &mut Output) {
    for row in &mut output.rows {
        for kind in ["submission_latency_", "completion_latency_", "latency_"] {
            if row.figures.iter().all(|figure| !figure.name.starts_with(kind) || figure.value == 0.0) {
                row.figures.retain(|figure| !figure.name.starts_with(kind));
            }
        }
        if row.figures.iter().all(|figure| figure.value == 0.0) {
            let direction = row.labels.last().map_or("", |(_, direction)| direction.as_str());
            row.absent = Some(format!("no {direction} was done"));
            row.figures.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::output::Row;
    use super::super::table::checks::outputs_of;
    use super::*;
    use proptest::prelude::{any, proptest};

    const JSON: &str = include_str!("../../../tests/fixtures/fio/3.33.json");
    const PLUS: &str = include_str!("../../../tests/fixtures/fio/3.33-plus.json");

    fn outputs(text: &str) -> Vec<Output> {
        outputs_of(text, read)
    }

    fn direction<'a>(output: &'a Output, direction: &str) -> &'a Row {
        output.rows.iter().find(|row| row.labels.contains(&("direction".to_owned(), direction.to_owned()))).unwrap()
    }

    fn value(row: &Row, name: &str) -> Option<f64> {
        row.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }

    /// The number as serde reads it from the same document, as a reference.
    fn judge(path: &str) -> f64 {
        let judge: serde_json::Value = serde_json::from_str(JSON).unwrap();
        judge.pointer(path).and_then(serde_json::Value::as_f64).unwrap()
    }

    #[test]
    fn a_job_has_its_directions_with_latencies_in_microseconds() {
        let found = outputs(JSON).remove(0);
        assert_eq!((found.version.as_deref(), found.unread.len()), (Some("3.33"), 0));
        let maps = "not read: disk_util of vda, iodepth_complete, iodepth_level, iodepth_submit, latency_ms, latency_ns, latency_us";
        assert_eq!(found.notes, [maps]);
        let write = direction(&found, "write");
        assert_eq!(write.labels[0], ("job".to_owned(), "mix".to_owned()));
        assert_eq!(value(write, "ops_per_s"), Some(judge("/jobs/0/write/iops")));
        assert_eq!(value(write, "bytes_per_s"), Some(judge("/jobs/0/write/bw_bytes")));
        let percentile = judge("/jobs/0/write/clat_ns/percentile/99.900000");
        assert_eq!(value(write, "completion_latency_p99.9_us"), Some(percentile / 1000.0));
        let sync = direction(&found, "sync");
        assert_eq!(value(sync, "latency_mean_us"), Some(judge("/jobs/0/sync/lat_ns/mean") / 1000.0));
        assert!(value(sync, "latency_p99_us").is_some());
    }

    #[test]
    fn a_direction_without_operations_has_no_figures() {
        let found = outputs(JSON).remove(0);
        let trim = direction(&found, "trim");
        assert_eq!((trim.figures.len(), trim.absent.as_deref()), (0, Some("no trim was done")));
    }

    #[test]
    fn zeros_of_what_was_not_measured_are_no_figures() {
        let absent = |text: &str, name: &str| direction(&outputs(text)[0], name).absent.clone();
        let idle = include_str!("../../../tests/fixtures/fio/3.13-idle-sync.json");
        assert_eq!(absent(idle, "sync").as_deref(), Some("no sync was done"));
        let zeros = r#"{"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0, "percentile": {"99.000000": 0}}"#;
        let some = r#"{"min": 900, "max": 2000, "mean": 1000.0, "stddev": 0.0}"#;
        for (fields, kept) in [
            (format!(r#""write": {{"iops": 5, "total_ios": 9, "lat_ns": {zeros}}}"#), 2),
            (format!(r#""write": {{"iops": 5, "total_ios": 9, "slat_ns": {zeros}, "clat_ns": {some}}}"#), 6),
            (format!(r#""write": {{"iops": 0.0, "total_ios": 0, "lat_ns": {zeros}}}"#), 0),
            (format!(r#""write": {{"iops": 5, "lat_ns": {}}}"#, zeros.replace(r#""N": 0, "#, "")), 1),
            (format!(r#""write": {{"lat_ns": {some}}}"#), 4),
        ] {
            let text = format!(r#"{{"fio version": "fio-3.13", "jobs": [{{"jobname": "my job", {fields}}}]}}"#);
            let row = direction(&outputs(&text)[0], "write").clone();
            assert_eq!(
                (row.figures.len(), row.absent.is_some(), row.labels[0].1.as_str()),
                (kept, kept == 0, "my job"),
                "{fields}"
            );
        }
    }

    #[test]
    fn json_plus_reads_like_json_with_its_bins_left_out() {
        let found = outputs(PLUS).remove(0);
        let names = |row: &Row| row.figures.iter().map(|figure| figure.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(direction(&found, "write")), names(direction(&outputs(JSON)[0], "write")));
        assert_eq!((found.rows.len(), found.unread.len()), (outputs(JSON)[0].rows.len(), 0));
    }

    #[test]
    fn a_truncated_document_is_not_read_and_is_reported() {
        let cut: String = JSON.lines().take(60).map(|line| format!("{line}\n")).collect();
        let found = outputs(&format!("fio: some warning\n{cut}")).remove(0);
        assert!(
            found.rows.is_empty() && found.unread[0].wanted.contains("a complete JSON document"),
            "{:?}",
            found.unread
        );
        let found = outputs("{\n \"fio version\" : \"fio-2.16\",\n \"jobs\" : []\n}").remove(0);
        assert_eq!((found.rows.len(), found.unread.len()), (0, 1));
    }

    #[test]
    fn an_unnamed_job_does_not_take_the_next_name() {
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

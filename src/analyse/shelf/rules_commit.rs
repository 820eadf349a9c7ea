//! Rules on a load and the devices beside it: what one commit writes, and how much of it is the device's.

use super::findings::{Remark, Weight};
use super::interval::{Printed, printed, seconds};
use super::rules::Rule;
use super::select::{Found, rows_of_trial, tps};
use super::words::{milliseconds, percent, rate};
use crate::record::imported::{ImportRecord, ImportedCase, ImportedTrial};
use crate::stats::interval::{TrialMean, mean_over_trials};
use crate::units::{Bytes, significant};

const KIB: f64 = 1024.0;
/// Page of the page cache on the usual processors.
const PAGE_KIB: f64 = 4.0;
/// Writes per commit below which a device is not where the commits went, unless some twenty share one.
const LEAST_WRITES: f64 = 0.05;
/// How near a size must be to count as the same.
const SAME: f64 = 0.08;
/// Normal quantile of a two-sided 95 % interval.
const Z: f64 = 1.96;
/// Transactions a second and what they were computed from agree within this.
const ROUNDING: f64 = 0.01;
/// An interval is another than the told one when they differ by more than timers do.
const ODD: f64 = 0.1;

/// What a trial with pgbench says.
pub(super) fn of_trial(case: &ImportedCase, trial: &ImportedTrial) -> Vec<Remark> {
    let mut found = Vec::new();
    let Some(load) = rows_of_trial(case, trial).find(|row| tps(row).is_some_and(|tps| tps.value > 0.0)) else {
        return found;
    };
    found.extend(arithmetic(&load));
    if let Some(device) = device(case, trial) {
        found.extend(commit(&load, &device));
    }
    found
}

/// The device that was written to, if it is one.
struct Device<'a> {
    name: &'a str,
    rows: Vec<Found<'a>>,
}

impl Device<'_> {
    /// Mean over the reports.
    fn mean(&self, figure: &str) -> Option<f64> {
        let values = self.values(figure)?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }

    /// In each report; `None` where one lacks it.
    fn values(&self, figure: &str) -> Option<Vec<f64>> {
        let values: Option<Vec<f64>> = self.rows.iter().map(|row| row.value(figure)).collect();
        values.filter(|values| !values.is_empty())
    }

    /// How surely its writes are known: from how its reports scatter, or of one report from how many it counted.
    fn sureness(&self, writes_per_s: f64, seconds: Option<f64>) -> Option<String> {
        if let [_] = self.rows.as_slice() {
            let half = percent(Z / (writes_per_s * seconds?).sqrt());
            return Some(format!(" (±{half} by counting, if writes came at random)"));
        }
        let trials = self.values("write_ops_per_s")?.into_iter().map(|mean| TrialMean { mean, within: None });
        let (low, high) = mean_over_trials(&trials.collect::<Vec<_>>())?.ends?;
        let half = ((high / low).ln() / 2.0).exp() - 1.0;
        Some(match half < 1.0 {
            true => format!(" (±{} by how {} reports scatter)", percent(half), self.rows.len()),
            false => format!(" ({} reports scatter too much to tell)", self.rows.len()),
        })
    }
}

/// The only whole device with writes; partitions (`c0d0p1`, `sda1` beside `sda`) are inside theirs.
fn device<'a>(case: &'a ImportedCase, trial: &'a ImportedTrial) -> Option<Device<'a>> {
    let written = |row: &Found<'a>| row.value("write_ops_per_s").is_some_and(|per_s| per_s > 0.0);
    let rows = || {
        rows_of_trial(case, trial)
            .filter(|row| row.output.tool.starts_with("iostat") && row.row.since_boot != Some(true))
    };
    let mut names: Vec<&str> = rows().filter(written).filter_map(|row| row.label("device")).collect();
    names.sort_unstable();
    names.dedup();
    let is_part = |name: &str| {
        names.iter().any(|whole| {
            let rest = name.strip_prefix(whole).unwrap_or_default();
            // sda1, nvme0n1p1, da0p1, da0s1; but da10 is no part of da1.
            let marked = rest.strip_prefix(['p', 's']);
            let rest = if whole.ends_with(|c: char| c.is_ascii_digit()) { marked.unwrap_or_default() } else { rest };
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let mut whole = names.iter().copied().filter(|name| !is_part(name));
    let (Some(name), None) = (whole.next(), whole.next()) else { return None };
    Some(Device { name, rows: rows().filter(|row| row.label("device") == Some(name)).collect() })
}

/// Transactions in flight at the end of a run are waited for: that much longer it may take, seconds.
const DRAIN_S: f64 = 2.0;

/// What one commit writes, and how much of its time is the device's.
fn commit(load: &Found<'_>, device: &Device<'_>) -> Option<Remark> {
    let rule = Rule {
        name: "commit_writes",
        weight: Weight::Information,
        source: "writes, bytes and %util of iostat over transactions a second of pgbench: means of different seconds",
    };
    let tps = tps(load)?.value;
    let (writes, bytes) = (device.mean("write_ops_per_s")?, device.mean("write_bytes_per_s")?);
    let (each, kib) = (writes / tps, bytes / writes / KIB);
    let rows: Vec<Found<'_>> = [*load].into_iter().chain(device.rows.iter().copied()).collect();
    let number = Some((each, 1.0, "writes per commit"));
    if each < LEAST_WRITES {
        let sentence = format!(
            "{} saw {} writes for each commit: the commits were not written to it one by one",
            device.name,
            significant(each)
        );
        return rule.says(&rows, number, sentence);
    }
    let sureness = device.sureness(writes, counted_over(load.case, load.trial)).unwrap_or_default();
    let mut sentence = format!(
        "for each commit {} saw {each:.2} writes of {kib:.1} KiB, {:.1} KiB in all{sureness}, whoever made them",
        device.name,
        bytes / tps / KIB
    );
    let block = load.case.facts.get("wal_block").and_then(|block| Bytes::parse(block).ok());
    if let Some(block) = block.map(|block| block.0 as f64 / KIB).filter(|block| (kib / block - 1.0).abs() < SAME) {
        sentence.push_str(&format!("; a write is one WAL block of {block} KiB, however small the row"));
    }
    let merges = device.mean("write_merges_per_s").unwrap_or_default() / writes;
    if merges > 0.5 && ((merges + 1.0) * PAGE_KIB / kib - 1.0).abs() < SAME {
        sentence.push_str(&format!(
            ", put together from pages of {PAGE_KIB} KiB ({merges:.1} merges): through the page cache"
        ));
    }
    if device.rows.iter().any(|row| row.row.since_boot.is_none()) && seconds(&rates(load.case, load.trial)).is_none() {
        sentence.push_str("; unless that report of iostat is the average since boot");
    }
    sentence.push_str(&share(load, device, tps).unwrap_or_default());
    rule.says(&rows, number, sentence)
}

/// How much of a commit's time the device is busy, where one client waits for one thing at a time.
fn share(load: &Found<'_>, device: &Device<'_>, tps: f64) -> Option<String> {
    const MUCH: f64 = 50.0;
    let busy = device.mean("util_percent").filter(|busy| *busy >= MUCH && load.value("clients") == Some(1.0))?;
    let took = 1e6 / tps;
    Some(format!("; the device is busy for {} of its {}", milliseconds(took * busy / 100.0), milliseconds(took)))
}

/// Figures of a summary that do not fit each other.
fn arithmetic(load: &Found<'_>) -> Vec<Remark> {
    let rule = Rule {
        name: "tps_does_not_fit",
        weight: Weight::Contradiction,
        source: "transactions over duration; and clients over the time of a transaction (Little's law)",
    };
    let mut found = Vec::new();
    // Over the duration, connecting is part of it; transactions that were begun before its end count too.
    let with_connecting = load.value("tps_including_connecting").or_else(|| load.value("tps_including_reconnecting"));
    let Some(tps) = with_connecting.or_else(|| tps(load).map(|tps| tps.value)) else { return found };
    let is_part = |part: &str| load.output.rows.iter().any(|row| row.labels.iter().any(|(_, value)| value == part));
    if let (Some(done), Some(duration)) = (load.value("transactions"), load.value("duration")) {
        let expected = done / duration;
        let drained = DRAIN_S / duration;
        if (tps / expected - 1.0).abs() > ROUNDING + drained {
            let sentence = format!(
                "{} transactions in {duration} s are {} a second, not {}",
                significant(done),
                significant(expected),
                significant(tps)
            );
            found.extend(rule.says(&[*load], Some((tps, expected, "tx/s")), sentence));
        }
    }
    let statements = load.output.rows.iter().filter(|row| row.labels.iter().any(|(_, part)| part == "statement"));
    let latencies = statements.filter_map(|row| row.figures.iter().find(|it| it.name == "latency_mean"));
    let latency: f64 = latencies.map(|it| it.value).sum();
    // Of several scripts a transaction runs one.
    let clients = load.value("clients").filter(|_| !is_part("script"));
    if let Some(clients) = clients.filter(|clients| tps * latency / 1e3 > clients * (1.0 + ROUNDING)) {
        let sentence =
            format!("{} transactions a second of {latency} ms need more than {clients} clients", significant(tps));
        found.extend(rule.says(&[*load], Some((tps * latency / 1e3, clients, "clients")), sentence));
    }
    found
}

/// Rates that iostat shows in a trial and that count requests.
fn rates(case: &ImportedCase, trial: &ImportedTrial) -> Vec<Printed> {
    let rows = rows_of_trial(case, trial)
        .filter(|row| row.output.tool.starts_with("iostat") && row.row.since_boot != Some(true));
    rows.flat_map(|row| printed(&row)).collect()
}

/// Seconds over which the writes of a trial were counted: what its rates tell, else what is said.
fn counted_over(case: &ImportedCase, trial: &ImportedTrial) -> Option<f64> {
    let told = case.facts.get("iostat.interval_s").and_then(|told| told.parse().ok());
    seconds(&rates(case, trial)).or(told)
}

/// Rates of iostat that are no whole counts in the interval that is told.
pub(super) fn iostat_interval(record: &ImportRecord) -> Option<Remark> {
    let rule = Rule {
        name: "iostat_interval",
        weight: Weight::Contradiction,
        source: "iostat divides whole counts by the seconds between its reports",
    };
    let mut rows: Vec<Found<'_>> = Vec::new();
    let mut odd: Option<(f64, f64, f64)> = None;
    for case in &record.cases {
        let told = case.facts.get("iostat.interval_s").and_then(|told| told.parse::<f64>().ok());
        let Some(told) = told.filter(|told| *told > 0.0) else { continue };
        for trial in &case.trials {
            let rates = rates(case, trial);
            let Some(seconds) = seconds(&rates).filter(|seconds| (seconds / told - 1.0).abs() > ODD) else { continue };
            let example = rates.iter().map(|(rate, _)| *rate).find(|rate| (rate * told).fract() != 0.0);
            odd = odd.or(example.map(|example| (seconds, told, example)));
            rows.extend(rows_of_trial(case, trial).find(|row| row.output.tool.starts_with("iostat")));
        }
    }
    let (seconds, told, example) = odd?;
    let sentence = format!(
        "iostat's rates {}are whole counts over {} s ({example:.2} a second are {} in that time), not over the {told} s that is \
         told",
        of_cases(&rows),
        significant(seconds),
        rate((example * seconds).round())
    );
    rule.says(&rows, Some((seconds, told, "s")), sentence)
}

/// Which cases rows are of, where they are not of one.
fn of_cases(rows: &[Found<'_>]) -> String {
    let mut cases: Vec<&str> = rows.iter().map(|row| row.case.name.as_str()).collect();
    cases.dedup();
    if cases.len() > 1 { format!("of {} ", cases.join(", ")) } else { String::new() }
}

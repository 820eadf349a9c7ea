//! Rules on a load and the devices beside it: what one commit writes, and how much of it is the device's.

use super::findings::{Remark, Weight};
use super::rules::Rule;
use super::select::{Found, rows_of_trial, tps};
use crate::record::imported::{ImportedCase, ImportedTrial};
use crate::units::{Bytes, significant};

const KIB: f64 = 1024.0;
/// Page of the page cache on the usual processors.
const PAGE_KIB: f64 = 4.0;
/// How near a size must be to count as the same.
const SAME: f64 = 0.08;
/// Transactions a second and what they were computed from agree within this.
const ROUNDING: f64 = 0.01;
/// Longest interval that is looked for in rates, seconds.
const LONGEST_INTERVAL: u32 = 5;

/// What a trial with pgbench says.
pub(super) fn of_trial(case: &ImportedCase, trial: &ImportedTrial) -> Vec<Remark> {
    let mut found = Vec::new();
    found.extend(iostat_interval(case, trial));
    let Some(load) = rows_of_trial(case, trial).find(|row| tps(row).is_some_and(|tps| tps.value > 0.0)) else {
        return found;
    };
    found.extend(arithmetic(&load));
    if let Some(device) = device(case, trial) {
        found.extend(commit(&load, &device));
        found.extend(share(&load, &device));
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
        let values: Option<Vec<f64>> = self.rows.iter().map(|row| row.value(figure)).collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }
}

/// The only whole device with writes; partitions (`c0d0p1`, `sda1` beside `sda`) are inside theirs.
fn device<'a>(case: &'a ImportedCase, trial: &'a ImportedTrial) -> Option<Device<'a>> {
    let written = |row: &Found<'a>| row.value("write_ops_per_s").is_some_and(|per_s| per_s > 0.0);
    let rows = || rows_of_trial(case, trial).filter(|row| row.output.tool.starts_with("iostat") && !row.row.since_boot);
    let mut names: Vec<&str> = rows().filter(written).filter_map(|row| row.label("device")).collect();
    names.sort_unstable();
    names.dedup();
    let is_part = |name: &str| {
        names.iter().any(|whole| {
            let rest = name.strip_prefix(whole).unwrap_or_default();
            let rest = rest.strip_prefix('p').unwrap_or(rest);
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let mut whole = names.iter().copied().filter(|name| !is_part(name));
    let (Some(name), None) = (whole.next(), whole.next()) else { return None };
    Some(Device { name, rows: rows().filter(|row| row.label("device") == Some(name)).collect() })
}

/// What one commit writes.
fn commit(load: &Found<'_>, device: &Device<'_>) -> Option<Remark> {
    let rule = Rule {
        name: "commit_writes",
        weight: Weight::Information,
        source: "writes and bytes a second of iostat over transactions a second of pgbench; both are means, of different \
                 seconds",
    };
    let tps = tps(load)?.value;
    let (writes, bytes) = (device.mean("write_ops_per_s")?, device.mean("write_bytes_per_s")?);
    let (each, kib) = (writes / tps, bytes / writes / KIB);
    let mut sentence = format!(
        "a commit is {each:.2} writes of {kib:.1} KiB to {}, {:.1} KiB in all (±{} % at least, for {} writes counted in a second)",
        device.name,
        bytes / tps / KIB,
        significant(196.0 / writes.sqrt()),
        writes.round()
    );
    let block = load.case.facts.get("wal_block").and_then(|block| Bytes::parse(block).ok());
    if let Some(block) = block.map(|block| block.0 as f64 / KIB).filter(|block| (kib / block - 1.0).abs() < SAME) {
        sentence.push_str(&format!("; a write is one WAL block of {block} KiB, however small the row"));
    }
    let merges = device.mean("write_merges_per_s").unwrap_or_default() / writes;
    if merges > 0.5 && ((merges + 1.0) * PAGE_KIB / kib - 1.0).abs() < SAME {
        sentence.push_str(&format!(
            "; {merges:.1} merges to each, so it came through the page cache in pages of {PAGE_KIB} KiB"
        ));
    }
    let mut rows = vec![*load];
    rows.extend(&device.rows);
    rule.says(&rows, Some((each, 1.0, "writes per commit")), sentence)
}

/// How much of a commit's time is the device's, where one client waits for one thing at a time.
fn share(load: &Found<'_>, device: &Device<'_>) -> Option<Remark> {
    const MUCH: f64 = 50.0;
    let rule = Rule {
        name: "device_share",
        weight: Weight::Information,
        source: "%util of iostat: share of the time in which a request was on its way, with one client",
    };
    let busy = device.mean("util_percent").filter(|busy| *busy >= MUCH)?;
    if load.value("clients") != Some(1.0) {
        return None;
    }
    let took = 1e3 / tps(load)?.value;
    let sentence = format!(
        "with one client {} is busy {} % of the time: about {took:.2} ms a commit, of which {:.2} ms in the device",
        device.name,
        significant(busy),
        took * busy / 100.0
    );
    let mut rows = vec![*load];
    rows.extend(&device.rows);
    rule.says(&rows, Some((busy, MUCH, "%")), sentence)
}

/// Figures of a summary that do not fit each other.
fn arithmetic(load: &Found<'_>) -> Vec<Remark> {
    let rule = Rule {
        name: "tps_does_not_fit",
        weight: Weight::Contradiction,
        source: "transactions over duration; and clients over the time of a transaction (Little's law)",
    };
    let mut found = Vec::new();
    let Some(tps) = tps(load).map(|tps| tps.value) else { return found };
    if let (Some(done), Some(duration)) = (load.value("transactions"), load.value("duration")) {
        let expected = done / duration;
        if (tps / expected - 1.0).abs() > ROUNDING {
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
    if let Some(clients) = load.value("clients").filter(|clients| tps * latency / 1e3 > clients * (1.0 + ROUNDING)) {
        let sentence =
            format!("{} transactions a second of {latency} ms need more than {clients} clients", significant(tps));
        found.extend(rule.says(&[*load], Some((tps * latency / 1e3, clients, "clients")), sentence));
    }
    found
}

/// The interval that rates with two decimals were computed over: the shortest in which all are whole counts.
fn interval_s(rates: &[f64]) -> Option<u32> {
    const FEWEST: usize = 3;
    if rates.len() < FEWEST {
        return None;
    }
    // Each rate is rounded to a hundredth.
    let whole =
        |seconds: f64| rates.iter().all(|rate| (rate * seconds - (rate * seconds).round()).abs() < 0.006 * seconds);
    (1..=LONGEST_INTERVAL).find(|seconds| whole(f64::from(*seconds)))
}

/// Rates of iostat that are no whole counts in the interval that is told.
fn iostat_interval(case: &ImportedCase, trial: &ImportedTrial) -> Option<Remark> {
    let rule = Rule {
        name: "iostat_interval",
        weight: Weight::Contradiction,
        source: "iostat divides whole counts by the seconds between its reports",
    };
    let told: u32 = case.facts.get("iostat.interval_s")?.parse().ok()?;
    let rows: Vec<Found<'_>> = rows_of_trial(case, trial)
        .filter(|row| row.output.tool == "iostat -x" && !row.row.since_boot && row.value("write_ops_per_s").is_some())
        .collect();
    let names = ["read_ops_per_s", "write_ops_per_s", "read_merges_per_s", "write_merges_per_s"];
    let figures = rows.iter().flat_map(|row| names.iter().filter_map(|name| row.figure(name)));
    let fine = |text: &str| text.rsplit_once('.').is_some_and(|(_, decimals)| decimals.len() == 2);
    let rates: Vec<f64> = figures.filter(|it| it.value > 0.0 && fine(&it.text)).map(|it| it.value).collect();
    let seconds = interval_s(&rates).filter(|seconds| seconds % told != 0 || *seconds > told)?;
    let example = rates.iter().find(|rate| rate.fract() != 0.0)?;
    let sentence = format!(
        "iostat's rates are whole counts over {seconds} s ({example:.2} a second are {} in {seconds} s), not over the {told} s \
         that is told",
        (example * f64::from(seconds)).round()
    );
    rule.says(&rows, Some((f64::from(seconds), f64::from(told), "s")), sentence)
}

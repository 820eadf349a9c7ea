//! Rules on a load and its device: writes per commit, and inconsistent summaries.

use super::findings::{RemarkWeight, RuleRemark};
use crate::analyse::imported::select::{FoundRow, rows_of_trial, tps};
use crate::analyse::shelf::rule::remark;
use crate::record::imported::{ImportedCase, ImportedTrial};
use crate::stats::moments;
use crate::units::{Bytes, significant};

const KIB: f64 = 1024.0;
/// Writes per commit below which commits went elsewhere, unless some twenty share a sync.
const LEAST_WRITES: f64 = 0.05;
/// Relative difference at which two sizes count as the same.
const SAME: f64 = 0.08;
/// Maximum relative difference between transactions per second and the figures behind them.
const ROUNDING: f64 = 0.01;
/// Time that a run may overrun while its last transactions finish, seconds.
const DRAIN_S: f64 = 2.0;

/// Remarks on a pgbench trial.
pub(super) fn of_trial(case: &ImportedCase, trial: &ImportedTrial) -> Vec<RuleRemark> {
    let Some(load) = rows_of_trial(case, trial).find(|row| tps(row).is_some_and(|tps| tps.value > 0.0)) else {
        return Vec::new();
    };
    arithmetic(&load).into_iter().chain(commit(&load, &device(case, trial))).collect()
}

/// Rows of the only whole device with writes; partitions (`c0d0p1`, `sda1` beside `sda`) are included in it.
fn device<'a>(case: &'a ImportedCase, trial: &'a ImportedTrial) -> Vec<FoundRow<'a>> {
    let mut rows: Vec<FoundRow<'a>> = rows_of_trial(case, trial)
        .filter(|row| row.output.tool.starts_with("iostat") && row.row.since_boot != Some(true))
        .collect();
    let written = rows.iter().filter(|row| row.value("write_ops_per_s").is_some_and(|per_s| per_s > 0.0));
    let names: Vec<&str> = written.filter_map(|row| row.label("device")).collect();
    let mut whole = names.iter().filter(|name| !names.iter().any(|other| is_part_of(name, other)));
    let Some(first) = whole.next().filter(|first| whole.all(|name| name == *first)) else { return Vec::new() };
    rows.retain(|row| row.label("device") == Some(first));
    rows
}

/// sda1, nvme0n1p1, da0s1; but da10 is not part of da1.
fn is_part_of(name: &str, whole: &str) -> bool {
    let rest = name.strip_prefix(whole).unwrap_or_default();
    let marked = rest.strip_prefix(['p', 's']);
    let number = if whole.ends_with(|c: char| c.is_ascii_digit()) { marked.unwrap_or_default() } else { rest };
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Writes per commit, as means over all reports of the device.
fn commit(load: &FoundRow<'_>, device: &[FoundRow<'_>]) -> Option<RuleRemark> {
    let source = "writes and bytes of iostat over transactions a second of pgbench: means of different seconds";
    let name = device.first()?.label("device")?;
    let tps = tps(load)?.value;
    let [writes, bytes] = ["write_ops_per_s", "write_bytes_per_s"].map(|figure| {
        let values: Option<Vec<f64>> = device.iter().map(|row| row.value(figure)).collect();
        moments::mean(&values?)
    });
    let (writes, bytes) = (writes?, bytes?);
    let (each, kib) = (writes / tps, bytes / writes / KIB);
    let rows: Vec<FoundRow<'_>> = [*load].into_iter().chain(device.iter().copied()).collect();
    if each < LEAST_WRITES {
        let each = significant(each);
        let sentence = format!("{name}: {each} writes per commit: commits were not written to it one by one");
        return remark("commit_writes", RemarkWeight::Information, source, &rows, sentence);
    }
    let in_all = bytes / tps / KIB;
    let mut sentence =
        format!("{name}: {each:.2} writes of {kib:.1} KiB per commit, {in_all:.1} KiB in total, from all programs");
    let block = load.case.fact("wal_block").and_then(|block| Bytes::parse(block).ok());
    if let Some(block) = block.map(|block| block.0 as f64 / KIB).filter(|block| (kib / block - 1.0).abs() < SAME) {
        sentence.push_str(&format!("; a write is one WAL block of {block} KiB, however small the row"));
    }
    if device.iter().any(|row| row.row.since_boot.is_none()) {
        sentence.push_str("; unless that report of iostat is the average since boot");
    }
    remark("commit_writes", RemarkWeight::Information, source, &rows, sentence)
}

/// Transactions that do not fit their duration. The duration includes connecting, and transactions begun before its end
/// count too.
fn arithmetic(load: &FoundRow<'_>) -> Option<RuleRemark> {
    let source = "transactions over duration, as the summary has them";
    let with_connecting = load.value("tps_including_connecting").or_else(|| load.value("tps_including_reconnecting"));
    let tps = with_connecting.or_else(|| tps(load).map(|tps| tps.value))?;
    let (done, duration) = (load.value("transactions")?, load.value("duration").filter(|seconds| *seconds > 0.0)?);
    let expected = done / duration;
    let is_odd = (tps / expected - 1.0).abs() > ROUNDING + DRAIN_S / duration;
    let (done, expected, tps) = (significant(done), significant(expected), significant(tps));
    let sentence = format!("{done} transactions in {duration} s are {expected} a second, not {tps}");
    remark("tps_does_not_fit", RemarkWeight::Contradiction, source, &[*load], sentence).filter(|_| is_odd)
}

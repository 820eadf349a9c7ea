//! Findings as JSON embedded in a page: small enough for mail, and safe inside a `<script>` element.
//!
//! Series are rounded to four significant digits, more than a chart can show. If all series are too large together,
//! neighbouring buckets are merged, keeping the least and the most, so that every stall stays visible.

use super::labelled::Labelled;
use super::table::ROWS_MAX;
use super::template::visible_json;
use super::text::replaced;
use super::words::{comparison_text, estimate_text};
use crate::analyse::analysis::MOST_CHARTED;
use crate::analyse::findings::{Findings, RankRow, Ranking, Series, TrialFinding, WaitsOverTime};
use crate::error::{Error, Result};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Most numbers in all series of a page, besides heatmaps and waits; at about six bytes each, 7 MB.
const NUMBERS_MAX: usize = 1_150_000;
/// Fewest buckets that a series is merged to: few enough to be distinct in a chart of the page's width.
const BUCKETS_MIN: usize = 120;

/// Content of the page's `<script type="application/json">`: `{"findings": ..., "figures": [{case: text}], "ratios":
/// [{case: text}], "labels": {case: label}}`.
///
/// # Errors
/// A bug: findings that cannot be written as JSON.
pub(super) fn page_data(labelled: &Labelled<'_>) -> Result<String> {
    let Labelled { findings, labels } = labelled;
    let bug = |e: serde_json::Error| Error::bug(format!("findings do not serialise: {e}"));
    let charted: Vec<&TrialFinding> = findings.trials.iter().filter(|trial| is_charted(trial, findings)).collect();
    let rankings = first_rows(&findings.rankings);
    let rows = rankings.iter().flat_map(Ranking::rows);
    let shown: BTreeSet<&String> = rows.map(|row| &row.case).chain(charted.iter().map(|trial| &trial.case)).collect();
    let cases = findings.cases.iter().filter(|case| findings.cases.len() <= ROWS_MAX || shown.contains(&case.id));
    let (trials, cases) = (charted.iter().copied().map(without_series).collect(), cases.cloned().collect());
    let bare = Findings { trials, cases, rankings, ..(*findings).clone() };
    let mut value = serde_json::to_value(bare).map_err(bug)?;
    let buckets = buckets_allowed(&charted);
    if let Some(Value::Array(trials)) = value.get_mut("trials") {
        for (slot, trial) in trials.iter_mut().zip(charted) {
            slot["throughput"] = trial.throughput.as_ref().map(|series| compact(series, buckets)).into();
            slot["latency_ms_max"] = trial.latency_ms_max.as_ref().map(|series| compact(series, buckets)).into();
            slot["waits"] = trial.waits.as_ref().map_or(Value::Null, compact_waits);
            slot["telemetry"] = trial.telemetry.iter().map(|series| compact(series, buckets)).collect();
        }
    }
    let data = json!({
        "findings": value,
        "figures": texts(findings, |row| Some(estimate_text(&row.rate).0)),
        "ratios": texts(findings, |row| row.comparison.as_ref().map(|it| comparison_text(&it.ratio, it.outcome).0)),
        "labels": labels,
    });
    Ok(script_safe(&visible_json(&data).map_err(bug)?))
}

/// A text for each row of each ranking, as in their tables, by case.
fn texts(findings: &Findings, text: fn(&RankRow) -> Option<String>) -> Value {
    let texts = findings.rankings.iter().map(|ranking| -> Map<String, Value> {
        ranking.rows().filter_map(|row| Some((row.case.clone(), text(row)?.into()))).collect()
    });
    texts.collect()
}

/// True if the charts need the trial: in a large run, only some trials have kept their series.
fn is_charted(trial: &TrialFinding, findings: &Findings) -> bool {
    findings.trials.len() <= MOST_CHARTED || trial.throughput.is_some() || !trial.telemetry.is_empty()
}

/// The rankings, cut to the rows of their tables.
fn first_rows(rankings: &[Ranking]) -> Vec<Ranking> {
    let mut rankings = rankings.to_vec();
    for ranking in &mut rankings {
        let mut left = ROWS_MAX;
        for class in &mut ranking.classes {
            class.rows.truncate(left);
            left -= class.rows.len();
        }
    }
    rankings
}

fn without_series(trial: &TrialFinding) -> TrialFinding {
    TrialFinding { throughput: None, latency_ms_max: None, telemetry: Vec::new(), waits: None, ..trial.clone() }
}

/// Maximum buckets per series such that all series fit.
fn buckets_allowed(trials: &[&TrialFinding]) -> usize {
    let series = trials.iter().flat_map(|t| t.throughput.iter().chain(&t.latency_ms_max).chain(&t.telemetry));
    let lengths: Vec<usize> = series.map(|series| series.min.len()).collect();
    let mut allowed = lengths.iter().copied().max().unwrap_or(0);
    // A merged series has a least and a most per bucket.
    while allowed > BUCKETS_MIN && lengths.iter().map(|&length| 2 * length.min(allowed)).sum::<usize>() > NUMBERS_MAX {
        allowed = allowed * 9 / 10;
    }
    allowed.max(BUCKETS_MIN)
}

/// A series as JSON with at most `allowed` buckets.
fn compact(series: &Series, allowed: usize) -> Value {
    let merged =
        if series.min.len() > allowed { Some(merge(series, series.min.len().div_ceil(allowed))) } else { None };
    let series = merged.as_ref().unwrap_or(series);
    json!({
        "title": series.title,
        "unit": series.unit,
        "group": series.group,
        "bucket_s": series.bucket_s,
        "min": rounded(&series.min),
        "max": rounded(&series.max),
    })
}

/// Waits as JSON, rounded to what a chart can show.
fn compact_waits(waits: &WaitsOverTime) -> Value {
    let events = waits.waits.iter();
    let events = events.map(|it| json!({"class": it.class, "event": it.event, "backends": rounded(&it.backends)}));
    json!({"bucket_s": waits.bucket_s, "waits": events.collect::<Value>(), "others": rounded(&waits.others)})
}

fn rounded(values: &[Option<f32>]) -> Value {
    values.iter().map(|value| short(*value)).collect()
}

/// Merges each `factor` buckets into one. A bucket without any reading remains a gap.
fn merge(series: &Series, factor: usize) -> Series {
    let most = if series.max.is_empty() { &series.min } else { &series.max };
    Series {
        bucket_s: series.bucket_s.saturating_mul(u32::try_from(factor).unwrap_or(u32::MAX)),
        min: fold(&series.min, factor, f32::min),
        max: fold(most, factor, f32::max),
        ..series.clone()
    }
}

fn fold(values: &[Option<f32>], factor: usize, pick: fn(f32, f32) -> f32) -> Vec<Option<f32>> {
    values.chunks(factor).map(|chunk| chunk.iter().flatten().copied().reduce(pick)).collect()
}

/// Four significant digits; whole numbers without a fraction.
fn short(value: Option<f32>) -> Value {
    let Some(value) = value.map(f64::from).filter(|value| value.is_finite()) else { return Value::Null };
    if value == 0.0 {
        return 0.into();
    }
    let decimals = 3 - value.abs().log10().floor() as i32;
    let text = if decimals > 0 {
        format!("{value:.*}", decimals.unsigned_abs() as usize)
    } else {
        let step = 10f64.powi(-decimals);
        ((value / step).round() * step).to_string()
    };
    let rounded: f64 = text.parse().unwrap_or(value);
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 { (rounded as i64).into() } else { rounded.into() }
}

/// Escapes JSON so that it cannot end its `<script>`, open a comment there, or break a JavaScript line. The escaped
/// characters occur only in strings, where `\u` escapes mean the same.
fn script_safe(json: &str) -> String {
    replaced(json, |c| {
        matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}').then(|| format!("\\u{:04x}", u32::from(c)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[Option<f32>]) -> Series {
        let text = |t: &str| t.to_owned();
        Series {
            title: text("x"),
            unit: text("tps"),
            group: text("client"),
            bucket_s: 1,
            min: values.to_vec(),
            max: vec![],
        }
    }

    #[test]
    fn numbers_keep_four_digits_in_the_fewest_characters() {
        assert_eq!(short(Some(1234.567)).to_string(), "1235");
        assert_eq!(short(Some(0.012_345_6)).to_string(), "0.01235");
        assert_eq!(short(Some(98765.4)).to_string(), "98770");
        assert_eq!(short(Some(42.0)).to_string(), "42");
        assert_eq!(short(Some(0.0)).to_string(), "0");
        assert_eq!(short(Some(f32::NAN)), Value::Null);
        assert_eq!(short(None), Value::Null);
    }

    #[test]
    fn merging_buckets_keeps_every_stall_and_every_peak() {
        let merged = merge(&series(&[Some(9.0), Some(0.0), Some(7.0), Some(900.0), None, None, Some(3.0)]), 2);
        assert_eq!(merged.bucket_s, 2);
        assert_eq!(merged.min, [Some(0.0), Some(7.0), None, Some(3.0)]);
        assert_eq!(merged.max, [Some(9.0), Some(900.0), None, Some(3.0)]);
    }

    #[test]
    fn data_cannot_leave_their_script_element() {
        let safe = script_safe(r#"{"a":"</script><!--&\u{2028}"}"#);
        assert!(!safe.contains(['<', '>', '&']));
        let hostile = "</script><!-- \u{2028} &amp; \"";
        let json = Value::String(hostile.to_owned()).to_string();
        let back: String = serde_json::from_str(&script_safe(&json)).unwrap();
        assert_eq!(back, hostile);
        assert!(!script_safe(&json).contains('\u{2028}'));
    }
}

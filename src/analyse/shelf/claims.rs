//! Conclusions against the figures that they rest on.
//!
//! Two single runs carry no interval of their own, and show nothing (`compare::single`). What can be said of their ratio, in
//! this order: whether chance in the counting explains it, if operations came at random (a Poisson count of n has the
//! relative error 1/sqrt(n); operations that wait for a turning disk or a timer come regularly, and their count scatters
//! less, but runs scatter by other things too); whether it is more than runs on idle machines are known to scatter; whether it is
//! beyond what was measured twice; and how well runs would have to repeat for it to hold.

use super::findings::{Comparison, ConclusionFinding, Repeat, Support};
use super::select::{Found, case, counted, length, rows};
use super::words::{percent, rate};
use crate::analyse::compare::single;
use crate::record::imported::ImportRecord;
use crate::record::publication::{Absent, Compare, Conclusion};
use crate::stats::autocorrelation;
use crate::stats::interval::TrialMean;
use crate::stats::ratio::{self, BlockMean, Ratio};
use crate::units::significant;

/// Normal quantile of a two-sided 95 % interval.
const Z: f64 = 1.96;
/// The same of Student's t with the one degree of freedom that a pair of repeats has.
const T_OF_A_PAIR: f64 = 12.706;
/// Fewest progress rows from which the error inside a run is taken.
const FEWEST_SECONDS: usize = 20;

/// What the figures say of a conclusion.
pub(super) fn answer(record: &ImportRecord, conclusion: &Conclusion, repeats: &[Repeat]) -> ConclusionFinding {
    let mut because = Vec::new();
    let mut supports = Vec::new();
    let scatter = repeats.first();
    let comparisons: Vec<Comparison> =
        conclusion.compare.iter().filter_map(|claim| compare(record, claim, scatter)).collect();
    if comparisons.len() < conclusion.compare.len() {
        because.push("a figure that it compares is not among what was read".to_owned());
        supports.push(Support::CannotBeTold);
    }
    supports.extend(of_all(&comparisons, scatter, &mut because));
    if let Some(claim) = &conclusion.absent {
        let (support, sentence) = absent(record, claim);
        supports.push(support);
        because.push(sentence);
    }
    if let Some(lacks) = &conclusion.lacks {
        supports.push(Support::CannotBeTold);
        because.push(format!("it would need {lacks}"));
    }
    let support = supports.into_iter().min().unwrap_or(Support::CannotBeTold);
    ConclusionFinding { says: conclusion.says.clone(), support, comparisons, because }
}

/// What all comparisons of a conclusion say together.
fn of_all(comparisons: &[Comparison], repeat: Option<&Repeat>, because: &mut Vec<String>) -> Option<Support> {
    let least = comparisons.iter().map(|it| it.support).min()?;
    let single = comparisons.iter().any(|it| it.interval.is_none());
    if let Some(repeat) = repeat.filter(|_| single && least < Support::Shown) {
        because.push(format!(
            "how far runs repeat is not told; the one thing measured twice, {} ({}), gave {} and {} {}: {} apart",
            repeat.what,
            repeat.case,
            rate(repeat.values.0),
            rate(repeat.values.1),
            repeat.unit,
            percent(repeat.apart)
        ));
    }
    let Some(pooled) = pooled(comparisons) else { return Some(least) };
    let Some(interval) = pooled.interval else { return Some(least) };
    let holds = if pooled.tells_apart() { "without" } else { "with" };
    because.push(format!(
        "taken as {} repeats of one comparison: {} times, 95 % interval {} to {}, {holds} 1 in it",
        comparisons.len(),
        significant(pooled.value),
        significant(interval.0),
        significant(interval.1)
    ));
    match (pooled.tells_apart(), pooled.value > 1.0) {
        (true, true) => Some(Support::Shown),
        (true, false) => Some(Support::Contradicted),
        (false, _) => Some(least.min(Support::NotShown)),
    }
}

/// One ratio from comparisons of the same thing under different circumstances, where no case is in two of them.
fn pooled(comparisons: &[Comparison]) -> Option<Ratio> {
    let mut names: Vec<&str> = comparisons.iter().flat_map(|it| [it.case.as_str(), it.over.as_str()]).collect();
    let cases = names.len();
    names.sort_unstable();
    names.dedup();
    if comparisons.len() < 2 || names.len() < cases {
        return None;
    }
    let means = |value: fn(&Comparison) -> f64| -> Vec<BlockMean> {
        let of =
            |(block, it): (u32, &Comparison)| BlockMean { block, trial: TrialMean { mean: value(it), within: None } };
        (0..).zip(comparisons).map(of).collect()
    };
    ratio::ratio(&means(|it| it.value), &means(|it| it.over_value))
}

/// One side of a comparison.
struct Side {
    /// One mean a trial.
    means: Vec<TrialMean>,
    /// Operations of the only trial.
    counted: Option<f64>,
    length: Option<String>,
    unit: String,
}

fn side(record: &ImportRecord, name: &str, claim: &Compare) -> Option<Side> {
    let labels: Vec<(&str, &str)> = claim.row.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let of = case(record, name)?;
    let mut found: Vec<Found<'_>> = Vec::new();
    for row in rows(of).filter(|row| row.output.tool == claim.tool && row.is(&labels)) {
        // Progress rows have the same names; the summary stands for them.
        let summary = row.label("part").is_none_or(|part| part == "summary");
        let other_trial = found.last().is_none_or(|last| !std::ptr::eq(last.trial, row.trial));
        if summary && other_trial && row.figure(&claim.figure).is_some() {
            found.push(row);
        }
    }
    let first = found.first()?;
    let figure = first.figure(&claim.figure)?;
    let mean = |row: &Found<'_>| Some(TrialMean { mean: row.value(&claim.figure)?, within: within(row) });
    Some(Side {
        means: found.iter().filter_map(mean).collect(),
        counted: counted(first, figure).filter(|_| found.len() == 1),
        length: length(first),
        unit: figure.unit.clone(),
    })
}

/// The error of a run of pgbench from its progress rows.
fn within(row: &Found<'_>) -> Option<autocorrelation::Within> {
    let progress = row.output.rows.iter().filter(|row| row.labels.iter().any(|(_, part)| part == "progress"));
    let tps =
        |row: &crate::record::imported::ImportedRow| row.figures.iter().find(|it| it.name == "tps").map(|it| it.value);
    let seconds: Vec<f64> = progress.filter_map(tps).collect();
    (seconds.len() >= FEWEST_SECONDS).then(|| autocorrelation::within(&seconds))?
}

/// One figure of two cases.
fn compare(record: &ImportRecord, claim: &Compare, repeat: Option<&Repeat>) -> Option<Comparison> {
    let (a, b) = (side(record, &claim.case, claim)?, side(record, &claim.over, claim)?);
    // Blocks of their own: trials of what was imported are not known to lie beside each other.
    let blocks = |side: &Side, from: u32| -> Vec<BlockMean> {
        (from..).zip(&side.means).map(|(block, trial)| BlockMean { block, trial: *trial }).collect()
    };
    let found = ratio::ratio(&blocks(&a, 0), &blocks(&b, 1 << 16))?;
    let mean = |side: &Side| side.means.iter().map(|it| it.mean).sum::<f64>() / side.means.len() as f64;
    let counting = a.counted.zip(b.counted).map(|(a, b)| Z * (1.0 / a + 1.0 / b).sqrt());
    let log = found.value.ln();
    let trials = (a.means.len(), b.means.len());
    let single = found.interval.is_none();
    let mut comparison = Comparison {
        case: claim.case.clone(),
        over: claim.over.clone(),
        what: what(claim),
        unit: a.unit.clone(),
        value: mean(&a),
        over_value: mean(&b),
        ratio: found.value,
        trials,
        interval: found.interval,
        counting_half_width: counting,
        holds_below: (single && log.is_finite()).then(|| log.abs() / (Z * std::f64::consts::SQRT_2)),
        support: support(&found, is_rate(&a.unit), counting, repeat),
        sentence: String::new(),
    };
    comparison.sentence = sentence(&comparison, a.length.as_deref());
    Some(comparison)
}

fn what(claim: &Compare) -> String {
    let labels: Vec<&str> = claim.row.values().map(String::as_str).collect();
    let row = if labels.is_empty() { String::new() } else { format!(", {}", labels.join(", ")) };
    format!("{}{row}: {}", claim.tool, claim.figure)
}

/// Whether a figure of this unit is a rate: only of rates is the scatter between runs known.
fn is_rate(unit: &str) -> bool {
    unit.ends_with("/s")
}

/// What a ratio that should be above 1 says.
fn support(found: &Ratio, is_rate: bool, counting: Option<f64>, repeat: Option<&Repeat>) -> Support {
    let log = found.value.ln();
    if found.interval.is_some() {
        return match (found.tells_apart(), log > 0.0) {
            (true, true) => Support::Shown,
            (true, false) => Support::Contradicted,
            (false, _) => Support::NotShown,
        };
    }
    // What two single runs cannot show they cannot disprove.
    if log <= counting.unwrap_or_default() || !log.is_finite() {
        return Support::NotShown;
    }
    // Two values that are `apart` have a standard deviation of apart / sqrt(2); a ratio of two single runs scatters by
    // sqrt(2) times that.
    let beyond_repeat = repeat.is_some_and(|repeat| log > T_OF_A_PAIR * repeat.apart.ln_1p());
    let points = is_rate && single::points_a_way(found.value);
    if points || beyond_repeat { Support::PointsThatWay } else { Support::NotShown }
}

fn sentence(it: &Comparison, length: Option<&str>) -> String {
    let unit = &it.unit;
    let (value, over) = (rate(it.value), rate(it.over_value));
    let mut text = format!("{} {value} {unit}, {} {over} {unit}: {} times", it.case, it.over, significant(it.ratio));
    match it.interval {
        Some((low, high)) => {
            text.push_str(&format!(", 95 % interval {} to {}", significant(low), significant(high)));
        }
        None => {
            let length = length.map_or_else(String::new, |length| format!(" of {length}"));
            text.push_str(&format!("; one run{length} each, so no interval"));
            if let Some(counting) = it.counting_half_width {
                text.push_str(&format!(" (±{} by counting, if operations came at random)", percent(counting)));
            }
            if is_rate(unit) && single::points_a_way(it.ratio) {
                let way = if it.ratio < 1.0 { ", and the other way round" } else { "" };
                text.push_str(&format!("; {}{way}", single::POINTS));
            } else if let Some(scatter) = it.holds_below {
                text.push_str(&format!("; holds if runs scatter by less than {}", percent(scatter)));
            }
        }
    }
    text
}

/// Whether a tool really does not show something.
fn absent(record: &ImportRecord, claim: &Absent) -> (Support, String) {
    let rows = || case(record, &claim.case).into_iter().flat_map(rows);
    let shows = |tool: &str| {
        let of = rows().filter(|row| row.output.tool == tool).count();
        (of, rows().any(|row| row.output.tool == tool && row.label(&claim.label) == Some(&claim.value)))
    };
    let mut others: Vec<&str> = rows()
        .filter(|row| row.output.tool != claim.tool && row.label(&claim.label) == Some(&claim.value))
        .map(|row| row.output.tool.as_str())
        .collect();
    others.dedup();
    let (tool, value) = (&claim.tool, &claim.value);
    match shows(tool) {
        (0, _) => (Support::CannotBeTold, format!("no output of {tool} was published")),
        (_, true) => (Support::Contradicted, format!("{tool} shows {value}")),
        (rows, false) => {
            let seen = if others.is_empty() { String::new() } else { format!("; {} shows it", others.join(", ")) };
            (Support::Shown, format!("none of the {rows} rows of {tool} is {value}{seen}"))
        }
    }
}

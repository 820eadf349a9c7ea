//! Requirements of a user on a folder, and whether a probe meets them: `pgstrata probe --require`.
//!
//! A requirement is met only if the whole 95 % interval meets it, and not met if none of it does; otherwise the probe
//! is undecided. Rates and latencies are those of the row equivalent to a server at its defaults. The interval of a
//! percentile is that of the share of operations beyond it (R. S. Woodruff, JASA 47 (1952) 635), with each second of
//! the row as a cluster, since slow operations come in bursts.

use super::findings::{ProbeFindings, RateFinding};
use super::latency::{self, percentile, span};
use crate::analyse::findings::{CredibilityKind, names};
use crate::record::probe::{ProbeRecord, RowRecord};
use crate::stats::interval::CONFIDENCE;
use crate::stats::student;
use crate::units::{Micros, significant};
use serde::Serialize;

/// Minimum number of seconds for an interval of latencies.
const FEWEST_SECONDS: usize = 3;
/// Degrees of freedom at which Student's distribution is practically normal.
const MANY: f64 = 1e6;

#[derive(Debug, Clone, PartialEq)]
pub enum Requirement {
    /// Flushes reach the lowest visible device, or it declares that it needs none.
    Durable,
    /// Minimum number of WAL writes per second.
    Rate(f64),
    /// Maximum of a latency percentile.
    Latency {
        /// Name in the argument: `p99`.
        name: &'static str,
        quantile: f64,
        most_ns: u64,
    },
}

/// Percentiles that can be required.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

/// Outcome of a requirement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compliance {
    Pass,
    Fail,
    /// Treated as not passed: the interval contains the limit, or the facts are insufficient.
    #[default]
    Undecided,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RequirementFinding {
    /// As given: `p99=5 ms`.
    pub requirement: String,
    pub outcome: Compliance,
    /// The figure, in `unit`; `None` if it is not a number or was not measured.
    pub figure: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// `1/s` or `ns`.
    pub unit: &'static str,
    pub found: String,
}

impl Requirement {
    /// Parses `durable`, `tps=1000`, `p99=5ms`.
    ///
    /// # Errors
    /// A message for the user.
    pub fn parse(text: &str) -> Result<Requirement, String> {
        let forms = "durable, tps=N, p50=TIME, p95=TIME, p99=TIME, p99.9=TIME";
        let (name, value) = match text.split_once('=') {
            Some(pair) => pair,
            None if text == "durable" => return Ok(Requirement::Durable),
            None => return Err(format!("`{text}` is not one of {forms}")),
        };
        if ["tps", "rate"].contains(&name) {
            let rate = value.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
            return rate.map(Requirement::Rate).ok_or_else(|| format!("{text}: not a number above 0"));
        }
        let known = PERCENTILES.into_iter().find(|(known, _)| *known == names::of_latency(name));
        let (name, quantile) = known.ok_or_else(|| format!("`{name}` is not one of {forms}"))?;
        let Micros(us) = Micros::parse(value).map_err(|why| format!("{text}: {why}"))?;
        match us {
            0 => Err(format!("{text}: a time above 0 is needed")),
            us => Ok(Requirement::Latency { name, quantile, most_ns: us.saturating_mul(1000) }),
        }
    }

    fn words(&self) -> String {
        match self {
            Requirement::Durable => "durable".to_owned(),
            Requirement::Rate(least) => format!("tps={least}"),
            Requirement::Latency { name, most_ns, .. } => format!("{name}={}", span(*most_ns)),
        }
    }
}

pub fn judge(record: &ProbeRecord, findings: &ProbeFindings, all: &[Requirement]) -> Vec<RequirementFinding> {
    let row = findings.answer_row();
    let found = all.iter().map(|asked| {
        let found = match asked {
            Requirement::Durable => durable(findings),
            Requirement::Rate(least) => rate(row.and_then(|row| row.rate.as_ref()), *least),
            Requirement::Latency { quantile, most_ns, .. } => {
                let row = row.and_then(|row| record.rows.iter().find(|it| it.spec.id == row.spec.id));
                latency_within(row, *quantile, *most_ns)
            }
        };
        RequirementFinding { requirement: asked.words(), ..found }
    });
    found.collect()
}

fn durable(findings: &ProbeFindings) -> RequirementFinding {
    let credibility = &findings.credibility;
    let outcome = match credibility.kind {
        _ if credibility.headline.is_some() => Compliance::Fail,
        CredibilityKind::Flushed | CredibilityKind::DeclaredStable => Compliance::Pass,
        CredibilityKind::Memory | CredibilityKind::NoFlushSeen => Compliance::Fail,
        CredibilityKind::Implausible | CredibilityKind::Unexplained | CredibilityKind::Unknown => Compliance::Undecided,
    };
    // In full under the heading Credibility.
    let short = credibility.reason.split(" (").next().filter(|_| outcome == Compliance::Pass);
    let found = credibility.headline.clone().unwrap_or_else(|| short.unwrap_or(&credibility.reason).to_owned());
    RequirementFinding { outcome, found, ..RequirementFinding::default() }
}

fn rate(rate: Option<&RateFinding>, least: f64) -> RequirementFinding {
    let ends = rate.and_then(RateFinding::interval);
    let outcome = match ends {
        Some((low, _)) if low >= least => Compliance::Pass,
        Some((_, high)) if high < least => Compliance::Fail,
        _ => Compliance::Undecided,
    };
    let interval = ends.map(|(low, high)| format!("95 % CI {}–{}", significant(low), significant(high)));
    let interval = interval.as_deref().unwrap_or("no interval");
    let (low, high) = ends.unzip();
    let figure = rate.map(|rate| rate.per_s);
    let found = figure.map(|per_s| format!("{} per second ({interval})", significant(per_s)));
    let found = found.unwrap_or_else(|| "not measured".to_owned());
    RequirementFinding { requirement: String::new(), outcome, figure, low, high, unit: "1/s", found }
}

fn latency_within(row: Option<&RowRecord>, quantile: f64, most_ns: u64) -> RequirementFinding {
    let figure = row.and_then(|row| percentile(&latency::counts(row), quantile));
    let (low, high) = row.map_or((None, None), |row| percentile_interval(row, quantile));
    let outcome = match (low, high) {
        (_, Some(high)) if high <= most_ns => Compliance::Pass,
        (Some(low), _) if low > most_ns => Compliance::Fail,
        _ => Compliance::Undecided,
    };
    let interval = match (low, high) {
        (Some(low), Some(high)) => format!("95 % CI {}–{}", span(low), span(high)),
        (Some(low), None) => format!("95 % CI from {}, no upper end", span(low)),
        _ => "too short for an interval".to_owned(),
    };
    let found = figure.map_or_else(|| "not measured".to_owned(), |ns| format!("{} ({interval})", span(ns)));
    let [figure, low, high] = [figure, low, high].map(|ns| ns.map(|ns| ns as f64));
    RequirementFinding { requirement: String::new(), outcome, figure, low, high, unit: "ns", found }
}

/// Half the 95 % interval of the share of slow operations, with seconds as clusters.
fn clustered(row: &RowRecord, is_slow: impl Fn(u64) -> bool) -> f64 {
    let seconds = row.seconds.iter().map(|second| {
        second.latencies.iter().fold((0.0, 0.0), |(all, slow), (ns, operations)| {
            let operations = *operations as f64;
            (all + operations, if is_slow(*ns) { slow + operations } else { slow })
        })
    });
    let seconds: Vec<(f64, f64)> = seconds.collect();
    let operations: f64 = seconds.iter().map(|(operations, _)| operations).sum();
    let share = seconds.iter().map(|(_, slow)| slow).sum::<f64>() / operations;
    let k = seconds.len() as f64;
    let squares: f64 = seconds.iter().map(|(operations, slow)| (slow - share * operations).powi(2)).sum();
    (squares * k / (k - 1.0)).sqrt() / operations * student::two_sided_quantile(CONFIDENCE, k - 1.0)
}

/// The 95 % interval of a percentile; it has an upper end only if at least one operation lies beyond it.
fn percentile_interval(row: &RowRecord, quantile: f64) -> (Option<u64>, Option<u64>) {
    let all = latency::counts(row);
    let Some(at) = percentile(&all, quantile) else { return (None, None) };
    if row.seconds.len() < FEWEST_SECONDS {
        return (None, None);
    }
    // Many operations may take exactly this long: they count on the side that widens the interval.
    let clustered = clustered(row, |ns| ns > at).max(clustered(row, |ns| ns >= at));
    let operations = all.values().map(|operations| *operations as f64).sum::<f64>();
    let independent = (quantile * (1.0 - quantile) / operations).sqrt() * student::two_sided_quantile(CONFIDENCE, MANY);
    let half = clustered.max(independent);
    let low = percentile(&all, (quantile - half).max(0.0));
    let upper = Some(quantile + half).filter(|upper| (1.0 - upper) * operations >= 1.0);
    (low, upper.and_then(|upper| percentile(&all, upper)))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{find as row_of, honest};
    use super::super::{find, findings::DeviceFacts};
    use super::*;
    use crate::record::probe::SecondLatencies;

    fn judged(record: &ProbeRecord, text: &str) -> RequirementFinding {
        let required = Requirement::parse(text).unwrap();
        judge(record, &find(record, 18), &[required]).remove(0)
    }

    /// A WAL row of ten seconds with 1.5 % slow operations.
    fn with_latencies(slow: &[u64]) -> ProbeRecord {
        let mut record = honest();
        let second = |(i, slow): (usize, &u64)| SecondLatencies {
            second: i as u32,
            latencies: vec![(1_000_000, 985), (6_000_000, *slow)],
        };
        row_of(&mut record, "wal.fdatasync.recycled").seconds = slow.iter().enumerate().map(second).collect();
        record
    }

    #[test]
    fn what_cannot_be_required_is_refused_with_what_can() {
        for (text, says) in [
            ("fast", "not one of durable"),
            ("p98=1ms", "not one of durable"),
            ("rate=-1", "above 0"),
            ("rate=many", "above 0"),
            ("p99=5", "write it as 5ms"),
            ("p99=0ms", "above 0"),
        ] {
            let why = Requirement::parse(text).unwrap_err();
            assert!(why.contains(says), "{text}: {why}");
        }
        assert_eq!(Requirement::parse("durable"), Ok(Requirement::Durable));
        let latency = Requirement::Latency { name: "p99.9", quantile: 0.999, most_ns: 5_000_000 };
        assert_eq!(Requirement::parse("p99.9=5ms").as_ref(), Ok(&latency));
        assert_eq!(Requirement::parse("latency_us_p999=5ms"), Ok(latency));
        assert_eq!(Requirement::parse("rate=5"), Requirement::parse("tps=5"));
    }

    #[test]
    fn a_rate_passes_only_with_all_of_its_interval() {
        let record = honest();
        let found = judged(&record, "rate=900");
        assert_eq!(found.outcome, Compliance::Pass, "{found:?}");
        assert_eq!(judged(&record, "rate=1100").outcome, Compliance::Fail);
        let within = format!("rate={}", found.low.unwrap().midpoint(found.high.unwrap()));
        assert_eq!(judged(&record, &within).outcome, Compliance::Undecided);
        let mut short = honest();
        row_of(&mut short, "wal.fdatasync.recycled").slices.truncate(1);
        assert_eq!(judged(&short, "rate=10").outcome, Compliance::Undecided, "no interval decides nothing");
    }

    #[test]
    fn a_latency_passes_only_with_all_of_its_interval() {
        // 1.5 % of the operations are slow, evenly in each second.
        let steady = with_latencies(&[15; 10]);
        assert_eq!(judged(&steady, "p99=5ms").outcome, Compliance::Fail, "{:?}", judged(&steady, "p99=5ms"));
        assert_eq!(judged(&steady, "p99=7ms").outcome, Compliance::Pass);
        assert_eq!(judged(&steady, "p50=5ms").outcome, Compliance::Pass);
        // The same, but all in one second: another ten seconds may have none.
        let burst = with_latencies(&[150, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(judged(&burst, "p99=5ms").outcome, Compliance::Undecided, "{:?}", judged(&burst, "p99=5ms"));
        let short = with_latencies(&[0, 0]);
        assert_eq!(judged(&short, "p99=5ms").outcome, Compliance::Undecided);
    }

    #[test]
    fn the_requirement_durable_passes_with_flushes_and_fails_in_memory() {
        assert_eq!(judged(&honest(), "durable").outcome, Compliance::Pass);
        let mut memory = honest();
        memory.place.mount.as_mut().unwrap().fstype = "tmpfs".to_owned();
        assert_eq!(judged(&memory, "durable").outcome, Compliance::Fail);
        let mut silent = honest();
        silent.place.devices[0] = DeviceFacts { write_cache: None, ..silent.place.devices[0].clone() };
        assert_eq!(judged(&silent, "durable").outcome, Compliance::Undecided);
        let mut broken = honest();
        row_of(&mut broken, "one_write.fsync").failure = Some(super::super::sample::failure());
        assert_eq!(judged(&broken, "durable").outcome, Compliance::Fail);
    }
}

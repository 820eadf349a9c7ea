//! Figures that cases are ranked by: operations per second; at a fixed rate, which is the same for every stack, how
//! late operations were.

use crate::analyse::case::measures::MeasureSums;
use crate::analyse::case::stages::StageSum;
use crate::analyse::findings::estimate::{at_most, estimate, over_trials};
use crate::analyse::findings::{Estimate, RankedBy};
use crate::record::operation::Operation;
use crate::stats::ratio::BlockMean;
use crate::units::{Micros, significant};
use std::cmp::Ordering;

/// Percentiles to rank by; the first for which every trial has enough operations is used.
const RANKING_PERCENTILES: [&str; 3] = ["p99", "p95", "p50"];

#[derive(Debug, Clone)]
pub struct Ranked {
    pub by: RankedBy,
    /// Words for a title; empty for operations per second.
    pub title: String,
    pub unit: String,
    /// One per trial.
    pub values: Vec<BlockMean>,
    pub figure: Estimate,
}

impl Ranked {
    /// The figure of a subset of its trials; `None` if empty.
    pub fn figure_of(&self, values: &[BlockMean]) -> Option<Estimate> {
        match self.by {
            RankedBy::Rate | RankedBy::Capacity => estimate(values),
            RankedBy::Latency | RankedBy::Time => over_trials(values),
            RankedBy::InTime => Some(at_most(100.0, over_trials(values)?)),
        }
    }
}

impl RankedBy {
    /// True if a ratio of one case to another means that the first is better.
    pub fn is_better(self, ratio: f64) -> bool {
        if self.less_is_better() { ratio < 1.0 } else { ratio > 1.0 }
    }

    /// Order of two figures, the better one first.
    pub fn best_first(self, one: f64, other: f64) -> Ordering {
        let rising = one.total_cmp(&other);
        if self.less_is_better() { rising } else { rising.reverse() }
    }

    pub fn less_is_better(self) -> bool {
        matches!(self, RankedBy::Latency | RankedBy::Time)
    }
}

/// Figures that a case is ranked by in this measure, most important first; empty if nothing was measured.
pub fn ranked(measure: &MeasureSums, operation: Option<&Operation>) -> Vec<Ranked> {
    match operation.and_then(|operation| Some((operation, operation.rate?))) {
        Some((operation, rate)) => at_rate(measure, operation, rate),
        None => by_rate(measure, operation).into_iter().collect(),
    }
}

/// Duration of a stage; `None` if there is none.
pub fn by_time(stage: &StageSum) -> Option<Ranked> {
    let (values, figure) = (stage.seconds.clone(), over_trials(&stage.seconds)?);
    Some(Ranked { by: RankedBy::Time, title: String::new(), unit: "s".to_owned(), values, figure })
}

fn by_rate(measure: &MeasureSums, operation: Option<&Operation>) -> Option<Ranked> {
    let limit_us = operation.filter(|operation| operation.is_searched).and_then(|operation| operation.latency_limit_us);
    let title = limit_us.map(|limit_us| format!("rate with 99 % within {}", Micros(limit_us)));
    Some(Ranked {
        by: if title.is_some() { RankedBy::Capacity } else { RankedBy::Rate },
        title: title.unwrap_or_default(),
        unit: measure.found.unit.clone(),
        values: measure.rates.clone(),
        figure: measure.estimate()?,
    })
}

fn at_rate(measure: &MeasureSums, operation: &Operation, rate: f64) -> Vec<Ranked> {
    let at = format!("at {} {}", significant(rate), operation.unit);
    // With a limit, operations are skipped and each case would end up with a different percentile, so the share in time
    // decides.
    let count = if operation.latency_limit_us.is_some() { 1 } else { RANKING_PERCENTILES.len() };
    let percentile = RANKING_PERCENTILES[..count].iter().find_map(|name| {
        let values = scaled(&measure.percentiles.trials(name)?, 1e-3);
        let title = format!("{name} latency {at}");
        Some(Ranked { by: RankedBy::Latency, title, unit: "ms".to_owned(), figure: over_trials(&values)?, values })
    });
    let in_time = operation.latency_limit_us.and_then(|limit_us| {
        let values = scaled(&measure.in_time, 100.0);
        let title = format!("{}s within {} {at}", operation.noun, Micros(limit_us));
        let figure = at_most(100.0, over_trials(&values)?);
        Some(Ranked { by: RankedBy::InTime, title, unit: "%".to_owned(), values, figure })
    });
    percentile.into_iter().chain(in_time).collect()
}

fn scaled(values: &[BlockMean], factor: f64) -> Vec<BlockMean> {
    let mut values = values.to_vec();
    values.iter_mut().for_each(|value| value.trial.mean *= factor);
    values
}

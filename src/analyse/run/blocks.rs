//! The blocks of a run, as far as they decide ranks.

use crate::record::run::RunRecord;
use crate::stats::sequence::Rule;
use crate::units::Micros;

/// The blocks of a run, as far as they decide ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Blocks {
    /// How ranks are decided; `None` for a number of blocks that was fixed before.
    pub rule: Option<Rule>,
    /// The most that the run has been given.
    pub most: u32,
    /// Whether all its trials are there.
    pub finished: bool,
    /// What a block took, wall time; `None` where the run's end is not known.
    pub minutes_each: Option<f64>,
}

impl Blocks {
    #[must_use]
    pub fn of(run: &RunRecord, finished: bool, wall_us: Option<u64>) -> Blocks {
        let rule = match run.at_least {
            _ if !run.extended.is_empty() => Some(Rule::Anytime),
            Some(first) => Some(Rule::Planned { first, last: run.blocks }),
            None => None,
        };
        // After looks some cases have had fewer.
        let minutes_each =
            wall_us.filter(|_| rule.is_none()).map(|us| Micros(us).seconds() / 60.0 / f64::from(run.blocks.max(1)));
        Blocks { rule, most: run.blocks, finished, minutes_each }
    }
}

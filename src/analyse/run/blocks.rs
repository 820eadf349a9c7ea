//! The blocks of a run as they matter for ranks.

use crate::record::run::RunRecord;
use crate::stats::sequence::StoppingRule;
use crate::units::Micros;

/// How many blocks a run has, how they are added, and how long each took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunBlocks {
    /// How blocks are added; `None` if their number was fixed in advance.
    pub rule: Option<StoppingRule>,
    /// Most blocks that the run was allowed.
    pub most: u32,
    /// Cases within so much of each other count as the same, per cent.
    pub precision_percent: u32,
    /// True if the run has all its trials.
    pub finished: bool,
    /// Wall time of a block; `None` if the end of the run is unknown.
    pub minutes_each: Option<f64>,
}

impl RunBlocks {
    pub fn of(run: &RunRecord, finished: bool, wall_us: Option<u64>) -> RunBlocks {
        let rule = match run.at_least {
            _ if !run.extended.is_empty() => Some(StoppingRule::Anytime),
            Some(first) => Some(StoppingRule::Planned { first, last: run.blocks }),
            None => None,
        };
        // After looks, some cases have fewer blocks.
        let minutes_each =
            wall_us.filter(|_| rule.is_none()).map(|us| Micros(us).seconds() / 60.0 / f64::from(run.blocks.max(1)));
        RunBlocks { rule, most: run.blocks, precision_percent: run.precision_percent, finished, minutes_each }
    }
}

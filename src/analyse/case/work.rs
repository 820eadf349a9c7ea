//! Cost of one operation in each trial: what cases are compared by, and whose mean a case shows.

use crate::analyse::case::strata::StrataSums;
use crate::analyse::findings::CostCounter;
use crate::analyse::trial::counters::Operations;
use crate::analyse::trial::input::Seconds;
use crate::record::columns::{DEVICE_FLUSHES, DEVICE_WRITE_BYTES, DEVICE_WRITES};
use crate::record::trial::TrialRecord;
use crate::stats::ratio::BlockMean;

/// Counters of each trial of a case, by its number.
#[derive(Debug, Clone, Default)]
pub struct WorkSums(Vec<(u32, StrataSums)>);

/// Counters of some trials, by their numbers.
pub type TrialsWork<'a> = Vec<(u32, &'a StrataSums)>;

impl WorkSums {
    pub fn add(&mut self, record: &TrialRecord, seconds: &Seconds, operations: &Operations) {
        let mut of_trial = StrataSums::default();
        of_trial.add(record, seconds, operations);
        self.0.push((record.trial, of_trial));
    }

    /// Trials in these blocks; `None` for all of them.
    pub fn within(&self, blocks: Option<&[u32]>) -> TrialsWork<'_> {
        let used = self.0.iter().filter(|(trial, _)| blocks.is_none_or(|blocks| blocks.contains(trial)));
        used.map(|(trial, strata)| (*trial, strata)).collect()
    }

    /// Each counter with its value of each trial that has it.
    pub fn counters(&self) -> Vec<(CostCounter, BlockMean)> {
        let all = self.within(None);
        let each = CostCounter::ALL.into_iter();
        each.flat_map(|counter| per_trial(counter, &all).into_iter().map(move |mean| (counter, mean))).collect()
    }
}

/// One value per trial that has the counter.
pub fn per_trial(counter: CostCounter, trials: &[(u32, &StrataSums)]) -> Vec<BlockMean> {
    let known = trials.iter().filter_map(|(trial, strata)| Some((*trial, per_operation(counter, strata)?)));
    known.map(|(trial, found)| BlockMean::of(trial, found)).collect()
}

fn per_operation(counter: CostCounter, strata: &StrataSums) -> Option<f64> {
    let writes = strata.read_only() != Some(true);
    match counter {
        CostCounter::WalBytes => strata.wal_bytes.per_operation().filter(|_| writes),
        CostCounter::FlushesPerWalSync => {
            let syncs = strata.wal_syncs.per_operation().filter(|syncs| writes && *syncs > 0.0)?;
            Some(strata.at_stack_devices(DEVICE_FLUSHES)? / syncs)
        }
        CostCounter::DeviceWrites => strata.at_stack_devices(DEVICE_WRITES),
        CostCounter::DeviceBytes => strata.at_stack_devices(DEVICE_WRITE_BYTES),
        CostCounter::CpuUs => strata.cpu_us(),
    }
}

//! Cost of one operation in each trial, for comparison between cases.

use crate::analyse::case::strata::StrataSums;
use crate::analyse::findings::CostCounter;
use crate::analyse::trial::counters::Operations;
use crate::analyse::trial::input::Seconds;
use crate::record::trial::TrialRecord;
use crate::stats::ratio::BlockMean;

/// Counters per operation of each trial of a case.
#[derive(Debug, Clone, Default)]
pub struct WorkSums(pub Vec<(CostCounter, BlockMean)>);

impl WorkSums {
    pub fn add(&mut self, record: &TrialRecord, seconds: &Seconds, operations: &Operations) {
        let mut of_trial = StrataSums::default();
        of_trial.add(record, seconds, operations);
        let known =
            CostCounter::ALL.into_iter().filter_map(|counter| Some((counter, per_operation(counter, &of_trial)?)));
        self.0.extend(known.map(|(counter, found)| (counter, BlockMean::of(record.trial, found))));
    }

    /// One value per trial that has the counter.
    pub fn of(&self, counter: CostCounter) -> Vec<BlockMean> {
        self.0.iter().filter(|(known, _)| *known == counter).map(|(_, mean)| *mean).collect()
    }
}

fn per_operation(counter: CostCounter, strata: &StrataSums) -> Option<f64> {
    let writes = strata.read_only() != Some(true);
    match counter {
        CostCounter::WalBytes => strata.wal_bytes.per_operation().filter(|_| writes),
        CostCounter::FlushesPerWalSync => {
            let syncs = strata.wal_syncs.per_operation().filter(|syncs| writes && *syncs > 0.0)?;
            Some(strata.at_stack_devices()?.flushes? / syncs)
        }
        CostCounter::DeviceWrites => strata.at_stack_devices()?.writes,
        CostCounter::DeviceBytes => strata.at_stack_devices()?.write_bytes,
        CostCounter::CpuUs => strata.cpu_us(),
    }
}

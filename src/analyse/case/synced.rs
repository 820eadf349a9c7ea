//! Combined results of a case's probes: the rate of every row over trials, the work of the devices, and the
//! credibility.

use crate::analyse::findings::groups::item_of;
use crate::analyse::findings::remark::{Remark, Weight};
use crate::analyse::findings::{Estimate, Synced, SyncedCredibility, SyncedRow};
use crate::analyse::probe;
use crate::analyse::probe::findings::{ProbeFindings, RowFinding};
use crate::analyse::probe::work::asks_for_fua;
use crate::record::probe::{Family, ProbeRecord};
use crate::stats::interval::TrialMean;
use std::collections::BTreeMap;

/// Server version for the probe's advice, which is not shown here.
const SERVER: u32 = 18;
/// The row that matches a server's WAL writes; every probe has it.
const ALWAYS: &str = "wal.fdatasync.recycled";
/// Missing fraction at which a flush count is still rounded up: an operation may be in flight when a slice ends.
const NOT_A_WHOLE: f64 = 0.1;

#[derive(Debug, Clone, Default)]
pub struct SyncedSums {
    credibility: Vec<SyncedCredibility>,
    rows: Vec<RowSums>,
    /// Synced operations, and those among them that FUA may make durable instead of a flush.
    operations: u64,
    asking_for_fua: u64,
}

/// Cost of one sync in flushes on a filesystem, as counted by a `sync` case on it.
#[derive(Debug, Clone, PartialEq)]
pub struct SyncCost {
    /// By level of devices, from the top; `None` if not counted.
    pub levels: Vec<Option<f64>>,
    pub case: String,
}

#[derive(Debug, Clone)]
struct RowSums {
    row: RowFinding,
    rates: Vec<TrialMean>,
}

impl SyncedSums {
    pub fn add(&mut self, record: &ProbeRecord) {
        let ProbeFindings { rows, credibility, .. } = probe::find(record, SERVER);
        let kind = credibility.kind;
        let reason = credibility.headline.unwrap_or(credibility.reason);
        let new = SyncedCredibility { kind, reason, trials: 0 };
        item_of(&mut self.credibility, |known| known.kind == kind, || new).trials += 1;
        for row in record.rows.iter().filter(|row| row.spec.family != Family::NotSynced) {
            let done: u64 = row.slices.iter().map(|slice| slice.operations).sum();
            self.operations += done;
            self.asking_for_fua += if asks_for_fua(&row.spec) { done } else { 0 };
        }
        for row in rows {
            let rate = row.rate.as_ref().filter(|_| row.failure.is_none()).map(|rate| rate.per_s);
            let rate = rate.map(|mean| TrialMean { mean, within: None });
            match self.rows.iter_mut().find(|known| known.row.spec.id == row.spec.id) {
                Some(known) => known.rates.extend(rate),
                None => self.rows.push(RowSums { rates: rate.into_iter().collect(), row }),
            }
        }
    }

    /// Share of the synced writes that FUA may make durable instead of a flush; 0 without a probe.
    pub fn fua_share(&self) -> f64 {
        if self.operations == 0 { 0.0 } else { self.asking_for_fua as f64 / self.operations as f64 }
    }

    /// Flushes per fdatasync of a recycled segment at each level, in whole numbers, since other programs add only
    /// fractions.
    pub fn flushes_per_sync(&self) -> Option<Vec<Option<f64>>> {
        let row = &self.rows.iter().find(|sums| sums.row.spec.id == ALWAYS)?.row;
        let mut levels: BTreeMap<u32, Option<f64>> = BTreeMap::new();
        for work in &row.work {
            let flushes = work.own_flushes_per_op.or(work.flushes_per_op);
            let level = levels.entry(work.depth).or_default();
            *level = flushes.map(|flushes| flushes + level.unwrap_or(0.0)).or(*level);
        }
        let levels = levels.into_values().map(|level| level.map(|flushes| (flushes + NOT_A_WHOLE).floor().max(1.0)));
        (row.operations > 0).then(|| levels.collect())
    }

    /// Combined result; `None` without a probe.
    pub fn finding(&self) -> Option<Synced> {
        (!self.rows.is_empty()).then(|| Synced {
            credibility: self.credibility.clone(),
            rows: self.rows.iter().map(RowSums::finding).collect(),
        })
    }
}

impl RowSums {
    fn finding(&self) -> SyncedRow {
        let failure = self.row.failure.as_ref();
        let failed = failure.map(|failure| format!("{} failed: {}", failure.call, failure.message));
        let rate = Estimate::of_means(&self.rates);
        SyncedRow {
            family: self.row.spec.family,
            label: self.row.spec.label.trim().to_owned(),
            unavailable: self.row.unavailable.clone().or(failed).filter(|_| rate.is_none()),
            rate,
            latency: self.row.latency,
            device_work: self.row.work.first().map(|work| format!("{}: {}", work.device, work.words)),
        }
    }
}

pub fn remarks(synced: &Synced) -> Vec<Remark> {
    use crate::analyse::findings::CredibilityKind::{Implausible, NoFlushSeen, Unexplained};
    let words = synced.credibility.iter().filter_map(|found| match found.kind {
        NoFlushSeen => Some(format!("synced writes are suspect, no flush was seen: {}", found.reason)),
        Implausible | Unexplained => {
            Some(format!("synced writes are faster than the visible hardware explains: {}", found.reason))
        }
        _ => None,
    });
    words.map(|words| Remark::plain(Weight::Unsafe, words)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::findings::CredibilityKind;
    use crate::analyse::probe::sample::{find, honest, paced};

    #[test]
    fn rows_have_their_mean_over_trials_and_credibility_is_counted() {
        let mut sums = SyncedSums::default();
        assert_eq!(sums.finding(), None);
        for per_s in [900, 1000, 1100] {
            let mut record = honest();
            paced(find(&mut record, "wal.fsync.recycled"), per_s);
            sums.add(&record);
        }
        let found = sums.finding().unwrap();
        assert_eq!(found.credibility.len(), 1);
        assert_eq!((found.credibility[0].kind, found.credibility[0].trials), (CredibilityKind::Flushed, 3));
        let is_it = |row: &&SyncedRow| row.family == crate::record::probe::Family::Wal && row.label == "fsync";
        let rate = found.rows.iter().find(is_it).unwrap().rate.unwrap();
        assert!((rate.value - 1000.0).abs() < 30.0 && rate.low.unwrap() < 900.0, "{rate:?}");
        assert!(remarks(&found).is_empty());
    }

    #[test]
    fn a_case_that_does_not_flush_is_remarked_on() {
        let mut record = honest();
        record.place.mount.as_mut().unwrap().super_options.push("barrier=0".to_owned());
        let mut sums = SyncedSums::default();
        sums.add(&record);
        let text = remarks(&sums.finding().unwrap())[0].text();
        assert!(text.contains("no flush was seen") && text.contains("barrier=0"), "{text}");
    }
}

//! Ageing figures of one case: collected over its trials, with remarks on figures that are missing.

use crate::analyse::case::age_figures::{self, AgeFigure};
use crate::analyse::findings::groups::item_of;
use crate::analyse::findings::remark::{Remark, Weight};
use crate::analyse::trial::input::{Latencies, Seconds};
use crate::record::trial::TrialRecord;
use crate::stats::ratio::BlockMean;
use std::collections::BTreeSet;

/// Below this share of compressed relations, percent, nothing counts as compressed.
const NEARLY_NONE: f64 = 1.0;
/// It never compresses files of which space was reserved by posix_fallocate, as PostgreSQL 16 and later do for more than 8
/// pages at a time.
const UNCOMPRESSED: &str = "btrfs compressed under 1 %: try file_extend_method = 'write_zeros'";

/// Figures of one case, by name and unit, collected over its trials.
#[derive(Debug, Clone, Default)]
pub struct AgeingSums {
    /// In order of first appearance.
    pub(crate) figures: Vec<((String, String), Vec<BlockMean>)>,
    /// Why the layout of relations is unknown, if it is.
    not_told: Option<String>,
    lacking: BTreeSet<String>,
    /// Compressed share of the relations in percent, by trial, for btrfs mounted to compress.
    asked_to_compress: Vec<f64>,
}

impl AgeingSums {
    /// Adds a trial whose stack has `age`; other trials are ignored.
    pub fn add(&mut self, record: &TrialRecord, seconds: &Seconds, latencies: &Latencies) {
        let layout = record.age.as_ref().and_then(|age| age.layout.as_ref());
        self.not_told = self.not_told.take().or_else(|| layout?.not_told.clone());
        let measures = record.counts.iter().flat_map(|counts| &counts.measures);
        self.lacking.extend(measures.filter(|measure| measure.done.is_none()).map(|measure| measure.name.clone()));
        self.asked_to_compress.extend(age_figures::asked_to_compress(record));
        for AgeFigure { name, unit, trial } in age_figures::of_trial(record, seconds, latencies) {
            let key = (name, unit);
            let (_, all) = item_of(&mut self.figures, |(known, _)| *known == key, || (key.clone(), Vec::new()));
            all.push(BlockMean { block: record.trial, trial });
        }
    }

    /// Why there are no extents, and whether btrfs compressed nothing although it should have.
    pub fn remarks(&self) -> impl Iterator<Item = Remark> {
        let not_told = self.not_told.as_ref();
        let unknown = not_told
            .map(|why| Remark::plain(Weight::Instrument, format!("extents of the relations are not known: {why}")));
        let uncompressed = self.asked_to_compress.iter().copied().reduce(f64::max).filter(|share| *share < NEARLY_NONE);
        unknown.into_iter().chain(uncompressed.map(|_| Remark::plain(Weight::Elsewhere, UNCOMPRESSED)))
    }

    /// Values of a figure; empty if a trial lacks the measure, since the others are those that had room for it.
    pub(crate) fn of(&self, key: &(String, String)) -> &[BlockMean] {
        let all = self.figures.iter().find(|(known, _)| known == key).filter(|_| !self.lacking.contains(&key.0));
        all.map_or(&[], |(_, all)| all.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::stories::story::{Act, Story};
    use crate::record::age::AgeRecord;
    use crate::record::counts::Measure;

    #[test]
    fn a_measure_without_room_in_one_trial_has_no_point() {
        let measure =
            |done| Measure { name: "new WAL segment".to_owned(), done, elapsed_us: 1_000_000, ..Measure::default() };
        let mut sums = AgeingSums::default();
        let key = ("new WAL segment".to_owned(), String::new());
        for (trial, done) in [(1, Some(64)), (2, None), (3, Some(64))] {
            let mut record = Story::of(1, None).with(&Act::on("ext4")).trials.remove(0).record;
            (record.trial, record.age, record.operation.unit) = (trial, Some(AgeRecord::default()), String::new());
            record.counts.as_mut().unwrap().measures = vec![measure(done)];
            sums.add(&record, &Seconds::new(0), &[]);
            assert_eq!(sums.of(&key).len(), usize::from(trial == 1), "{trial}");
        }
    }

    #[test]
    fn that_btrfs_compressed_nothing_is_told_where_that_was_asked() {
        let remarks = |shares: &[f64]| {
            let sums = AgeingSums { asked_to_compress: shares.to_vec(), ..AgeingSums::default() };
            sums.remarks().count()
        };
        assert_eq!((remarks(&[0.0, 0.4]), remarks(&[0.0, 61.0]), remarks(&[])), (1, 0, 0));
    }
}

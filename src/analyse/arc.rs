//! Whether the ARC of ZFS can hold what a workload reads as cold: OpenZFS does not take files out of it when it is asked to
//! (POSIX_FADV_DONTNEED), so such reads may come from memory.

use super::input::Seconds;
use crate::record::columns;
use crate::record::counts::Counts;
use crate::record::operation::CacheState;
use crate::record::trial::TrialRecord;

/// Noun of the operations of workloads that read large pieces in order, dropping each from the cache before.
const PIECES_OF: &str = "MiB";

/// The size that the ARC aimed at where it can hold the largest piece of a trial on ZFS; `None` where it cannot, and for
/// workloads that want no cold reads.
#[must_use]
pub fn holds(record: &TrialRecord, counts: &Counts, seconds: &Seconds) -> Option<u64> {
    let is_on_zfs = record.stack.as_ref()?.mount()?.fstype == "zfs";
    let wants_cold = record.operation.noun == PIECES_OF && record.operation.cache != Some(CacheState::Warm);
    if !is_on_zfs || !wants_cold {
        return None;
    }
    let largest = counts.measures.iter().flat_map(|measure| &measure.slices).map(|slice| slice.operations).max()? << 20;
    let series = seconds.counts(&columns::ZFS_ARC_TARGET_BYTES)?;
    let target = (0..series.rows()).filter_map(|row| series.at(row)).max()?;
    (target >= largest).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::super::stories_columns::{rows, run};
    use super::*;
    use crate::analyse::Analysis;
    use crate::analyse::input::{PhaseLatencies, TrialInput};
    use crate::record::counts::MeasureSlice;

    const ROWS: usize = 61;

    /// A trial that read pieces of so many MiB on a filesystem; its ARC aims at no more than 60 MB.
    fn trial(fstype: &str, mib: u64) -> TrialRecord {
        let mut record = run(ROWS).1;
        PIECES_OF.clone_into(&mut record.operation.noun);
        let grounds = record.stack.as_mut().unwrap().nodes.iter_mut().flat_map(|node| &mut node.grounds);
        grounds.filter_map(|ground| ground.mount.as_mut()).for_each(|mount| fstype.clone_into(&mut mount.fstype));
        let slice = MeasureSlice { operations: mib, elapsed_ns: 1_000_000_000 };
        record.counts.as_mut().unwrap().measures[0].slices = vec![slice; 2];
        record
    }

    fn held(record: &TrialRecord, seconds: &Seconds) -> Option<u64> {
        holds(record, record.counts.as_ref().unwrap(), seconds)
    }

    #[test]
    fn an_arc_above_the_largest_piece_on_zfs_may_answer_cold_reads() {
        let mut seconds = rows(ROWS, 30);
        let target = held(&trial("zfs", 8), &seconds).unwrap();
        assert!((8 << 20..61_000_000).contains(&target), "{target}");
        assert_eq!((held(&trial("zfs", 64), &seconds), held(&trial("ext4", 8), &seconds)), (None, None));
        let mut warm = trial("zfs", 8);
        warm.operation.cache = Some(CacheState::Warm);
        assert_eq!(held(&warm, &seconds), None);
        seconds.retain(|name| name != columns::ZFS_ARC_TARGET_BYTES.name);
        assert_eq!(held(&trial("zfs", 8), &seconds), None);
    }

    #[test]
    fn it_is_a_caution() {
        let said = |mib: u64| {
            let (story, record) = (run(ROWS).0, trial("zfs", mib));
            let (latencies, phases, heat) = (Vec::new(), PhaseLatencies::default(), Vec::new());
            let mut analysis = Analysis::new(story.input);
            analysis.add_trial(TrialInput { record, seconds: rows(ROWS, 30), latencies, phases, heat });
            analysis.finish().cases[0].cautions.iter().any(|caution| caution.contains("reads may come from memory"))
        };
        assert!(said(8) && !said(64));
    }
}

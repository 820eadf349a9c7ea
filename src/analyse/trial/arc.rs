//! Checks whether ZFS's ARC can hold data that a workload reads as cold: OpenZFS does not evict files on request
//! (POSIX_FADV_DONTNEED), so such reads may be served from memory.

use crate::analyse::trial::input::Seconds;
use crate::record::built::{NodeFacts, StackFacts};
use crate::record::columns;
use crate::record::counts::Counts;
use crate::record::operation::{CacheState, Operation};
use crate::record::stack::Role;
use crate::record::trial::TrialRecord;

/// Noun of operations that read large pieces in order, dropping each from the cache beforehand.
const PIECES_OF: &str = "MiB";

const POOL: &str = "zpool";

/// Smaller shares affect the result too little for a caution.
const NOTABLE: f64 = 0.5;

/// True if a workload drops data from the page cache before each read.
pub fn reads_cold(operation: &Operation) -> bool {
    operation.noun == PIECES_OF && operation.cache != Some(CacheState::Warm)
}

/// Share of a trial's largest piece that the ARC can hold by its target size, for data on a pool; `None` if it is
/// small, and for workloads without cold reads.
pub fn holds(record: &TrialRecord, counts: &Counts, seconds: &Seconds) -> Option<f64> {
    if !is_on_pool(record.stack.as_ref()?) || !reads_cold(&record.operation) {
        return None;
    }
    let largest = counts.measures.iter().flat_map(|measure| &measure.slices).map(|slice| slice.operations).max()? << 20;
    let series = seconds.counts(&columns::ZFS_ARC_TARGET_BYTES)?;
    let target = (0..series.rows()).filter_map(|row| series.at(row)).max()?;
    let share = (target as f64 / largest as f64).min(1.0);
    (largest > 0 && share >= NOTABLE).then_some(share)
}

/// True if the data are on a dataset, or on another filesystem on a pool's volume.
fn is_on_pool(stack: &StackFacts) -> bool {
    let way = stack.way_down(stack.data.as_ref());
    let is_pool = |node: &NodeFacts| node.layer.as_deref() == Some(POOL);
    stack.mount().is_some_and(|mount| mount.fstype == "zfs")
        || way.into_iter().any(|(_, role, node)| role == Role::Data && is_pool(node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::analysis::Analysis;
    use crate::analyse::stories::columns::{rows, run};
    use crate::analyse::trial::input::{PhaseLatencies, TrialInput};
    use crate::record::counts::MeasureSlice;
    use crate::record::stack::{BaseName, Input};

    const ROWS: usize = 61;

    /// A trial that read pieces of this many MiB on a filesystem; its ARC's target size is at most 60 MB.
    fn trial(fstype: &str, mib: u64) -> TrialRecord {
        let mut record = run(ROWS).1;
        PIECES_OF.clone_into(&mut record.operation.noun);
        let bases = record.stack.as_mut().unwrap().nodes.iter_mut().flat_map(|node| &mut node.bases);
        bases.filter_map(|base| base.mount.as_mut()).for_each(|mount| fstype.clone_into(&mut mount.fstype));
        let slice = MeasureSlice { operations: mib, elapsed_ns: 1_000_000_000 };
        record.counts.as_mut().unwrap().measures[0].slices = vec![slice; 2];
        record
    }

    fn held(record: &TrialRecord, seconds: &Seconds) -> Option<f64> {
        holds(record, record.counts.as_ref().unwrap(), seconds)
    }

    /// Puts a pool below the lowest device of the data, as below a volume, for data or for a log.
    fn on_pool(mut record: TrialRecord, role: Role) -> TrialRecord {
        let nodes = &mut record.stack.as_mut().unwrap().nodes;
        let below = Input { from: BaseName("pool".to_owned()), role, group: None };
        nodes.last_mut().unwrap().inputs.push(below);
        nodes.push(NodeFacts { name: "pool".to_owned(), layer: Some(POOL.to_owned()), ..NodeFacts::default() });
        record
    }

    #[test]
    fn an_arc_of_half_the_data_may_serve_cold_reads() {
        let seconds = rows(ROWS, 30);
        let of = |mib: u64| held(&trial("zfs", mib), &seconds);
        let target = of(48).unwrap() * 48.0;
        assert!((24.0..48.0).contains(&target), "{target}");
        let [just_below_twice, just_above_twice] = [1.95, 2.05].map(|times| of((target * times) as u64));
        assert!(of(8) == Some(1.0) && just_below_twice < Some(0.6) && just_below_twice >= Some(0.5));
        assert_eq!(just_above_twice, None);
    }

    #[test]
    fn another_filesystem_on_a_zvol_reads_through_the_arc_too() {
        let seconds = rows(ROWS, 30);
        let ext4 = || trial("ext4", 8);
        assert_eq!((held(&ext4(), &seconds), held(&on_pool(ext4(), Role::Log), &seconds)), (None, None));
        assert_eq!(held(&on_pool(ext4(), Role::Data), &seconds), Some(1.0));
    }

    #[test]
    fn warm_reads_and_arcs_of_unknown_size_raise_no_warning() {
        let mut seconds = rows(ROWS, 30);
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
            analysis.finish().cases[0].cautions.iter().any(|caution| caution.contains("can hold 100 % of reads"))
        };
        assert!(said(8) && !said(256));
    }
}

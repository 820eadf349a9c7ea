//! The first verdict, without any image: what acknowledgements were not covered when they were given.
//!
//! The commit record of an acknowledged transaction is written after its client sent COMMIT. If no WAL write submitted
//! since then was durable before the mark, the commit could have been lost. This convicts no stack wrongly; a stack that it
//! acquits may still fail on states.

use super::history::History;
use super::pages::Content;
use crate::recorder::{Durable, Entry, NEVER, Op, Seq};

/// The worst moment for a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Acknowledged commits that are lost.
    pub commits: usize,
    /// Microseconds from the first of their acknowledgements to the cut.
    pub us: u64,
    /// Acknowledged commits that are lost at some moment.
    pub uncovered: usize,
}

/// The requests that acknowledgements rest on.
pub struct Evidence<'a> {
    pub entries: &'a [Entry],
    /// The kind of each entry's content.
    pub contents: &'a [Content],
    /// Disks below `pg_wal`.
    pub disks: &'a [u16],
}

impl Evidence<'_> {
    /// When the commit of each acknowledgement became durable; [`NEVER`] where nothing made it so.
    fn covered_from(&self, history: &History, durable: &Durable) -> Vec<Seq> {
        // Compressed and encrypted WAL cannot be told from other content.
        let shows_wal = self.contents.contains(&Content::Wal);
        let is_witness = |number: &usize| {
            let entry = &self.entries[*number];
            let of_wal = !shows_wal || self.contents[*number] == Content::Wal;
            entry.op == Op::Write && of_wal && self.disks.contains(&entry.disk)
        };
        let witnesses = (0..self.entries.len()).filter(is_witness);
        let mut by_submission: Vec<(Seq, Seq)> =
            witnesses.map(|number| (self.entries[number].submitted, durable.from(number))).collect();
        by_submission.sort_unstable();
        let mut earliest = NEVER;
        for (_, from) in by_submission.iter_mut().rev() {
            earliest = earliest.min(*from);
            *from = earliest;
        }
        let covered = history.acknowledged.iter().map(|one| {
            let first = by_submission.partition_point(|(submitted, _)| *submitted < one.started);
            by_submission.get(first).map_or(NEVER, |(_, from)| *from)
        });
        covered.collect()
    }

    /// What the worst power cut costs; `None` where every acknowledgement is covered.
    #[must_use]
    pub fn loss(&self, history: &History, durable: &Durable) -> Option<Loss> {
        let covered = self.covered_from(history, durable);
        let acknowledged = &history.acknowledged;
        let uncovered: Vec<usize> =
            (0..acknowledged.len()).filter(|number| covered[*number] >= acknowledged[*number].mark).collect();
        // A cut at the mark of each: as many are lost as have a mark at or before it and are covered at or after it.
        let mut ends: Vec<Seq> = uncovered.iter().map(|number| covered[*number]).collect();
        ends.sort_unstable();
        let lost_at = |place: usize| {
            let at = acknowledged[uncovered[place]].mark;
            let given = uncovered.partition_point(|number| acknowledged[*number].mark <= at);
            given - ends.partition_point(|end| *end < at)
        };
        let worst = (0..uncovered.len()).max_by_key(|place| lost_at(*place))?;
        let cut = &acknowledged[uncovered[worst]];
        let lost =
            uncovered.iter().filter(|number| acknowledged[**number].mark <= cut.mark && covered[**number] >= cut.mark);
        let first_us = lost.map(|number| acknowledged[*number].at_us).min().unwrap_or(cut.at_us);
        Some(Loss { commits: lost_at(worst), us: cut.at_us - first_us, uncovered: uncovered.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::history::Acknowledgement;
    use crate::recorder::DeviceModel;

    /// A write of WAL, or a flush, that takes the places `at` and `at + 1`.
    fn entry(op: Op, at: Seq) -> Entry {
        let length = if op == Op::Write { 8192 } else { 0 };
        let (hash, stored) = Default::default();
        Entry { disk: 0, op, fua: false, submitted: at, completed: at + 1, at_us: at, offset: 0, length, hash, stored }
    }

    fn loss_of(entries: &[Entry], acknowledged: &[(Seq, Seq)], model: DeviceModel) -> Option<Loss> {
        let contents = vec![Content::Wal; entries.len()];
        let acknowledged = acknowledged.iter().zip(1..).map(|((started, mark), number)| Acknowledgement {
            client: 0,
            number,
            started: *started,
            mark: *mark,
            at_us: *mark,
            xid: 0,
            end: None,
        });
        let history = History::of(acknowledged.collect());
        let evidence = Evidence { entries, contents: &contents, disks: &[0] };
        evidence.loss(&history, &Durable::of(entries, model))
    }

    #[test]
    fn an_acknowledgement_without_a_flush_before_it_is_lost() {
        let flushed = [entry(Op::Write, 0), entry(Op::Flush, 2), entry(Op::Write, 4), entry(Op::Flush, 6)];
        let honest = |entries: &[Entry], acknowledged| loss_of(entries, acknowledged, DeviceModel::Honest);
        assert_eq!(honest(&flushed, &[(0, 4), (4, 8)]), None);
        let early = honest(&flushed, &[(0, 4), (4, 6)]).unwrap();
        assert_eq!((early.commits, early.uncovered), (1, 1), "acknowledged before its flush");
        let unflushed: Vec<Entry> = (0..4).map(|number| entry(Op::Write, number * 2)).collect();
        let lost = honest(&unflushed, &[(0, 2), (2, 4), (4, 6), (6, 8)]).unwrap();
        assert_eq!(lost, Loss { commits: 4, us: 6, uncovered: 4 });
        assert_eq!(honest(&[], &[(0, 0)]).unwrap().commits, 1, "nothing reached the disk");
        assert_eq!(loss_of(&unflushed, &[(0, 2), (2, 4)], DeviceModel::PowerProtected), None);
        assert_eq!(loss_of(&flushed, &[(0, 4), (4, 8)], DeviceModel::FlushIgnored).unwrap().commits, 2);
    }

    #[test]
    fn the_worst_moment_counts_and_a_late_mark_convicts_nobody() {
        // A flush each third commit: two are lost at worst.
        let entries = [Op::Write, Op::Write, Op::Write, Op::Flush, Op::Write, Op::Write, Op::Write, Op::Flush];
        let entries: Vec<Entry> = entries.into_iter().zip(0..).map(|(op, place)| entry(op, place * 2)).collect();
        let acknowledged = [(0, 2), (2, 4), (4, 8), (8, 10), (10, 12), (12, 16)];
        let lost = loss_of(&entries, &acknowledged, DeviceModel::Honest).unwrap();
        assert_eq!(lost, Loss { commits: 2, us: 2, uncovered: 4 });
        let late = [(0, 8), (8, 16)];
        assert_eq!(loss_of(&entries, &late, DeviceModel::Honest), None);
    }

    #[test]
    fn a_write_that_began_before_the_commit_covers_nothing() {
        let entries = [entry(Op::Write, 0), entry(Op::Flush, 2)];
        assert_eq!(loss_of(&entries, &[(1, 4)], DeviceModel::Honest).unwrap().commits, 1);
    }
}

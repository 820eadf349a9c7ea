//! The first verdict, without any image: acknowledgements that were not covered when they were given.
//!
//! The commit record of an acknowledged transaction is written after its client sent COMMIT. If no WAL write submitted
//! since then was durable before the mark, the commit could have been lost. This never convicts a stack wrongly; a
//! stack that it acquits may still fail on states.

use super::history::{Acknowledgement, History, Loss};
use super::pages::Content;
use crate::provision::layer;
use crate::record::stack::{End, StackSpec};
use crate::recorder::{Durable, Earliest, Entry, Op, Seq};

/// The requests on which acknowledgements rest.
pub struct WalRequests<'a> {
    pub entries: &'a [Entry],
    /// Kind of content of each entry.
    pub contents: &'a [Content],
    /// Disks below `pg_wal`.
    pub disks: &'a [u16],
    /// True if pages reach these disks as the server wrote them; if not, a write without a page header may be WAL, too.
    pub pages_are_kept: bool,
}

/// True if all layers of a stack pass pages on unchanged.
pub fn pages_are_kept(stack: &StackSpec) -> bool {
    stack.nodes.iter().all(|node| layer(&node.layer).is_some_and(|layer| layer.keeps_pages(&node.options)))
}

/// Filesystems that write a changed page to a new place by default.
const COPYING: [&str; 4] = ["bcachefs", "btrfs", "nilfs2", "zfs"];

/// True if a filesystem of a stack may overwrite a page of data in place.
pub fn pages_are_overwritten(stack: &StackSpec) -> bool {
    let ends = stack.ends();
    let mut data = ends.iter().filter(|(end, _)| *end != End::Wal).filter_map(|(_, on)| stack.node(on.node()));
    data.any(|node| {
        !COPYING.contains(&node.layer.as_str())
            || node.options.0.values().any(|value| value.plain().contains("nodatacow"))
            || node.options.boolean("nocow") == Some(true)
    })
}

impl WalRequests<'_> {
    /// When the commit of each acknowledgement became durable; `NEVER` if nothing made it so.
    fn covered_from(&self, history: &History, durable: &Durable) -> Vec<Seq> {
        // If WAL cannot be distinguished from other content, any write may be WAL.
        let shows_wal = self.pages_are_kept && self.contents.contains(&Content::Wal);
        let witnesses = (0..).zip(self.entries.iter().zip(self.contents)).filter(|(_, (entry, content))| {
            let of_wal = !shows_wal || **content == Content::Wal;
            entry.op == Op::Write && of_wal && self.disks.contains(&entry.disk)
        });
        let witnesses = Earliest::of(witnesses.map(|(number, (entry, _))| (entry.submitted, durable.from(number))));
        history.acknowledged.iter().map(|one| witnesses.effect(|submitted| submitted < one.started)).collect()
    }

    /// Loss at the worst power cut: of commits that must not be missing, else of asynchronous ones. `None` if every
    /// acknowledgement is covered.
    pub fn loss(&self, history: &History, durable: &Durable) -> Option<Loss> {
        let covered = self.covered_from(history, durable);
        let all = history.acknowledged.iter().zip(covered.iter().copied());
        let promised = all.clone().filter_map(|(one, covered)| {
            let (from, from_us) = history.promised(one)?;
            Some(DueCommit { from, from_us, acknowledged_us: one.at_us, covered })
        });
        worst(promised.collect()).or_else(|| {
            let may_be_missing = all.filter(|(one, _)| one.asynchronous).map(|(one, covered)| {
                let (from, from_us) = (one.mark, one.at_us);
                DueCommit { from, from_us, acknowledged_us: one.at_us, covered }
            });
            let loss = worst(may_be_missing.collect())?;
            let us = loss.us.max(longest_missing(&history.acknowledged, &covered));
            Some(Loss { us, is_expected: true, ..loss })
        })
    }
}

/// A commit that every state from some time on must contain.
struct DueCommit {
    from: Seq,
    /// The same in microseconds.
    from_us: u64,
    acknowledged_us: u64,
    /// When it became durable.
    covered: Seq,
}

/// Loss of these commits at the worst power cut.
fn worst(due: Vec<DueCommit>) -> Option<Loss> {
    let mut uncovered: Vec<DueCommit> = due.into_iter().filter(|one| one.covered >= one.from).collect();
    uncovered.sort_by_key(|one| one.from);
    // For a cut at the moment a commit falls due, count the commits due at or before it that are covered at or after
    // it.
    let mut ends: Vec<Seq> = uncovered.iter().map(|one| one.covered).collect();
    ends.sort_unstable();
    let lost_at = uncovered.iter().map(|cut| {
        let at = cut.from;
        let given = uncovered.partition_point(|one| one.from <= at);
        given - ends.partition_point(|end| *end < at)
    });
    let (commits, cut) = lost_at.zip(&uncovered).max_by_key(|(commits, _)| *commits)?;
    let lost = uncovered.iter().filter(|one| one.from <= cut.from && one.covered >= cut.from);
    let first_us = lost.map(|one| one.acknowledged_us).min().unwrap_or(cut.from_us);
    Some(Loss { commits, us: cut.from_us.saturating_sub(first_us), is_expected: false })
}

/// Longest time an asynchronous commit is missing, up to the last acknowledgement before some cut. The cut with the
/// most lost commits may be a different one.
fn longest_missing(acknowledged: &[Acknowledgement], covered: &[Seq]) -> u64 {
    let missing = acknowledged.iter().zip(covered).filter(|(one, covered)| one.asynchronous && **covered >= one.mark);
    let spans = missing.filter_map(|(one, covered)| {
        let given = acknowledged.partition_point(|other| other.mark <= *covered);
        Some(acknowledged[..given].last()?.at_us.saturating_sub(one.at_us))
    });
    spans.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::history::Flushed;
    use crate::record::options::{OptionValue, Options};
    use crate::recorder::DeviceModel;

    /// A WAL write or a flush that takes sequence numbers `at` and `at + 1`.
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
            asynchronous: false,
        });
        let history = History::of(acknowledged.collect());
        let evidence = WalRequests { entries, contents: &contents, disks: &[0], pages_are_kept: true };
        evidence.loss(&history, &Durable::of(entries, model))
    }

    #[test]
    fn an_acknowledgement_without_a_flush_before_it_is_lost() {
        let flushed = [entry(Op::Write, 0), entry(Op::Flush, 2), entry(Op::Write, 4), entry(Op::Flush, 6)];
        let honest = |entries: &[Entry], acknowledged| loss_of(entries, acknowledged, DeviceModel::Honest);
        assert_eq!(honest(&flushed, &[(0, 4), (4, 8)]), None);
        let early = honest(&flushed, &[(0, 4), (4, 6)]).unwrap();
        assert_eq!(early.commits, 1, "acknowledged before its flush");
        let unflushed: Vec<Entry> = (0..4).map(|number| entry(Op::Write, number * 2)).collect();
        let lost = honest(&unflushed, &[(0, 2), (2, 4), (4, 6), (6, 8)]).unwrap();
        assert_eq!(lost, Loss { commits: 4, us: 6, is_expected: false });
        assert_eq!(honest(&[], &[(0, 0)]).unwrap().commits, 1, "nothing reached the disk");
        assert_eq!(loss_of(&unflushed, &[(0, 2), (2, 4)], DeviceModel::PowerProtected), None);
        assert_eq!(loss_of(&flushed, &[(0, 4), (4, 8)], DeviceModel::FlushIgnored).unwrap().commits, 2);
    }

    #[test]
    fn the_worst_moment_counts_and_a_late_mark_convicts_nobody() {
        // A flush after every third commit: at worst two are lost.
        let entries = [Op::Write, Op::Write, Op::Write, Op::Flush, Op::Write, Op::Write, Op::Write, Op::Flush];
        let entries: Vec<Entry> = entries.into_iter().zip(0..).map(|(op, place)| entry(op, place * 2)).collect();
        let acknowledged = [(0, 2), (2, 4), (4, 8), (8, 10), (10, 12), (12, 16)];
        let lost = loss_of(&entries, &acknowledged, DeviceModel::Honest).unwrap();
        assert_eq!(lost, Loss { commits: 2, us: 2, is_expected: false });
        let late = [(0, 8), (8, 16)];
        assert_eq!(loss_of(&entries, &late, DeviceModel::Honest), None);
    }

    #[test]
    fn asynchronous_commits_may_be_lost_until_reported_flushed() {
        let entries = [entry(Op::Write, 0), entry(Op::Write, 2), entry(Op::Flush, 4)];
        let contents = vec![Content::Wal; entries.len()];
        let evidence = WalRequests { entries: &entries, contents: &contents, disks: &[0], pages_are_kept: true };
        let durable = Durable::of(&entries, DeviceModel::Honest);
        let one = |client, started, mark, asynchronous| Acknowledgement {
            client,
            number: 1,
            started,
            mark,
            at_us: mark,
            xid: 0,
            end: Some(mark * 10),
            asynchronous,
        };
        let loss = |said: &[(Seq, u64)], second| {
            let flushed = said.iter().map(|(mark, up_to)| Flushed { mark: *mark, at_us: *mark, up_to: *up_to });
            let acknowledged = vec![one(0, 0, 2, true), one(1, 2, 4, second)];
            let history = History { flushed: flushed.collect(), ..History::of(acknowledged) };
            evidence.loss(&history, &durable).map(|loss| (loss.commits, loss.is_expected))
        };
        assert_eq!(loss(&[], true), Some((2, true)));
        assert_eq!(loss(&[(4, 20)], true), Some((1, false)), "the first one was said to be flushed, and is not");
        assert_eq!(loss(&[(3, 19), (6, 40)], true), Some((2, true)), "said when it was so");
        assert_eq!(loss(&[], false), Some((1, false)), "the synchronous one counts");
        // One commit is missing for long, later ones are many but missing only briefly.
        let entries: Vec<Entry> = [Op::Write, Op::Flush, Op::Write, Op::Write, Op::Write, Op::Flush]
            .into_iter()
            .zip(0..)
            .map(|(op, place)| entry(op, place * 2))
            .collect();
        let marks = [(0, 1, 0), (1, 2, 900), (4, 6, 901), (6, 8, 902), (8, 10, 903)];
        let acknowledged = marks.iter().zip(0..).map(|((started, mark, at_us), client)| Acknowledgement {
            at_us: *at_us,
            ..one(client, *started, *mark, true)
        });
        let history = History::of(acknowledged.collect());
        let contents = vec![Content::Wal; entries.len()];
        let evidence = WalRequests { entries: &entries, contents: &contents, disks: &[0], pages_are_kept: true };
        let loss = evidence.loss(&history, &Durable::of(&entries, DeviceModel::Honest)).unwrap();
        assert!(loss.is_expected && loss.us >= 900, "{loss:?}");
    }

    #[test]
    fn where_wal_may_hide_any_write_covers_a_commit() {
        // A WAL page that is written much later, and the commit's own record in a block of ZFS's intent log.
        let entries = [entry(Op::Write, 2), entry(Op::Flush, 4), entry(Op::Write, 8)];
        let contents = [Content::Other, Content::Other, Content::Wal];
        let history = History::of(vec![Acknowledgement {
            client: 0,
            number: 1,
            started: 1,
            mark: 6,
            at_us: 6,
            xid: 0,
            end: None,
            asynchronous: false,
        }]);
        let durable = Durable::of(&entries, DeviceModel::Honest);
        let loss = |pages_are_kept| {
            let evidence = WalRequests { entries: &entries, contents: &contents, disks: &[0], pages_are_kept };
            evidence.loss(&history, &durable)
        };
        assert_eq!((loss(true).is_some(), loss(false)), (true, None));
    }

    #[test]
    fn layers_say_whether_they_pass_pages_on_unchanged() {
        let kept = |name: &str, key: &str, value: OptionValue| {
            layer(name).unwrap().keeps_pages(&Options([(key.to_owned(), value)].into()))
        };
        let texts = |text: &str| OptionValue::List(vec![OptionValue::Text(text.to_owned())]);
        for (name, option) in
            [("ext4", "data=journal"), ("btrfs", "nodatacow"), ("xfs", "noatime"), ("f2fs", "noatime")]
        {
            assert!(kept(name, "mount", texts(option)), "{name}");
        }
        assert!(!kept("btrfs", "mount", texts("compress=zstd")));
        assert!(kept("md", "level", OptionValue::Integer(10)) && !kept("md", "level", OptionValue::Integer(5)));
        let none = || OptionValue::Boolean(true);
        assert!(["loop", "lvm", "delay", "bcache"].iter().all(|name| kept(name, "x", none())));
        assert!(!["zfs", "zpool", "zvol", "luks"].iter().any(|name| kept(name, "x", none())));
    }

    #[test]
    fn btrfs_overwrites_pages_only_with_copy_on_write_disabled() {
        let of = |name: &str, key: &str, value: OptionValue| {
            pages_are_overwritten(&StackSpec::linear("s", vec![(name, Options([(key.to_owned(), value)].into()))]))
        };
        let mount = |option: &str| OptionValue::List(vec![OptionValue::Text(option.to_owned())]);
        assert!(of("ext4", "mount", mount("noatime")) && !of("btrfs", "mount", mount("noatime")));
        assert!(of("btrfs", "mount", mount("nodatacow")) && of("btrfs", "nocow", OptionValue::Boolean(true)));
        assert!(!of("btrfs", "nocow", OptionValue::Boolean(false)));
    }

    #[test]
    fn a_write_that_began_before_the_commit_covers_nothing() {
        let entries = [entry(Op::Write, 0), entry(Op::Flush, 2)];
        assert_eq!(loss_of(&entries, &[(1, 4)], DeviceModel::Honest).unwrap().commits, 1);
    }
}

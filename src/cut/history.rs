//! What clients committed and when it was acknowledged, as positions in the recorder's sequence.

use super::wal::{Lsn, WalShape};
use crate::host::files;
use crate::recorder::Seq;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledgement {
    pub client: u16,
    /// Number of the transaction within its client, from 1.
    pub number: u64,
    /// Mark taken before the client sent COMMIT: no request of the commit itself is older.
    pub started: Seq,
    /// Mark taken after the acknowledgement: every request it waited for completed before. A late mark only makes the
    /// test weaker.
    pub mark: Seq,
    /// Microseconds from the start of the recording to the acknowledgement.
    pub at_us: u64,
    /// Transaction id at the server.
    pub xid: u32,
    /// End of its commit record in WAL; `None` if it was not seen there.
    pub end: Option<Lsn>,
    /// True if it was committed with `synchronous_commit = off`.
    pub asynchronous: bool,
}

/// The server's statement that WAL is flushed up to a position (`pg_current_wal_flush_lsn()`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flushed {
    /// The recorder's sequence when the answer arrived.
    pub mark: Seq,
    /// The same in microseconds.
    pub at_us: u64,
    pub up_to: Lsn,
}

/// A transaction that was prepared, and possibly committed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    pub number: u32,
    /// Mark taken after its acknowledgement.
    pub mark: Seq,
    /// Mark taken after the following checkpoint.
    pub checkpoint: Seq,
    /// Mark taken after its COMMIT PREPARED was acknowledged; `None` if the recording ended before.
    pub committed: Option<Seq>,
}

/// Prefix of the names of prepared transactions that are looked for; a number follows, whose negative is in the row.
pub const PREPARED: &str = "pgstrata-kept-";

/// All acknowledgements of a recording, sorted by mark.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    pub acknowledged: Vec<Acknowledgement>,
    /// WAL layout; `None` if the server's was not read.
    pub wal: Option<WalShape>,
    /// The server's statements about flushed WAL, in order: an asynchronous commit may be missing until it is reported
    /// as flushed.
    pub flushed: Vec<Flushed>,
    pub prepared: Vec<Prepared>,
}

impl History {
    pub fn of(mut acknowledged: Vec<Acknowledgement>) -> History {
        acknowledged.sort_by_key(|one| (one.mark, one.client, one.number));
        History { acknowledged, ..History::default() }
    }

    /// Adds the ends of commit records.
    pub fn with_wal(mut self, shape: WalShape, ends: &BTreeMap<u32, Lsn>) -> History {
        for one in &mut self.acknowledged {
            one.end = ends.get(&one.xid).copied();
        }
        History { wal: Some(shape), ..self }
    }

    /// Checks that this can be a history of the recording; if not, the harness is at fault and the stack is not judged.
    ///
    /// # Errors
    /// A description of the contradiction.
    pub fn check(&self, end: Seq) -> Result<(), String> {
        if self.acknowledged.is_empty() {
            return Err("no commit was acknowledged".to_owned());
        }
        let mut last: BTreeMap<u16, &Acknowledgement> = BTreeMap::new();
        for one in &self.acknowledged {
            let Acknowledgement { client, number, started, mark, .. } = *one;
            if mark < started {
                return Err(format!("commit {number} of client {client} has a mark before its commit"));
            }
            if mark > end {
                return Err(format!("commit {number} of client {client} has a mark after the end of the recording"));
            }
            let before = last.insert(client, one);
            if number != before.map_or(1, |before| before.number + 1) {
                return Err(format!("commit {number} of client {client} is out of order"));
            }
            if before.is_some_and(|before| started < before.mark) {
                return Err(format!("commit {number} of client {client} began before the one before it ended"));
            }
        }
        Ok(())
    }

    /// True if the end of every commit record is known.
    pub fn has_ends(&self) -> bool {
        self.wal.is_some() && self.acknowledged.iter().all(|one| one.end.is_some())
    }

    /// Loss among the commits acknowledged before `at` if valid WAL ends at `end`.
    pub fn lost_after(&self, end: Lsn, at: Seq) -> Option<Loss> {
        let given = &self.acknowledged[..self.acknowledged.partition_point(|one| one.mark <= at)];
        let lost: Vec<_> = given.iter().filter(|one| one.end.is_some_and(|ends| ends > end)).collect();
        self.loss_of(&lost, at, given.iter().map(|one| one.at_us).max()?)
    }

    /// Summarizes these lost commits for a power cut at `at`, which is `cut_us`: those that must not be lost, if there
    /// are any.
    pub fn loss_of(&self, lost: &[&Acknowledgement], at: Seq, cut_us: u64) -> Option<Loss> {
        let forbidden = lost.iter().filter(|one| self.promised(one).is_some_and(|(from, _)| from <= at));
        let is_expected = forbidden.clone().next().is_none();
        let counted: Vec<u64> = match is_expected {
            true => lost.iter().map(|one| one.at_us).collect(),
            false => forbidden.map(|one| one.at_us).collect(),
        };
        let us = cut_us.saturating_sub(counted.iter().copied().min()?);
        Some(Loss { commits: counted.len(), us, is_expected })
    }

    /// From when on a commit must not be missing, also in microseconds: from its acknowledgement; for an asynchronous
    /// one also not before the server reported its record as flushed. `None` if it never did.
    pub fn promised(&self, one: &Acknowledgement) -> Option<(Seq, u64)> {
        if !one.asynchronous {
            return Some((one.mark, one.at_us));
        }
        let end = one.end?;
        let said = self.flushed.get(self.flushed.partition_point(|said| said.up_to < end))?;
        Some((said.mark.max(one.mark), said.at_us.max(one.at_us)))
    }

    /// Highest number acknowledged to each client before `at`.
    pub fn acknowledged_at(&self, at: Seq) -> BTreeMap<u16, u64> {
        self.acknowledged.iter().filter(|one| one.mark <= at).map(|one| (one.client, one.number)).collect()
    }
}

/// The link of a client's hash chain after its transaction `number`, from the previous link.
pub fn link(before: &str, client: u16, number: u64) -> String {
    files::sha256(format!("{before} {client} {number}").as_bytes())[..32].to_owned()
}

/// Loss at the worst moment for a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Acknowledged commits that are lost.
    pub commits: usize,
    /// Microseconds from the first of their acknowledgements to the cut.
    pub us: u64,
    /// True if all of them are asynchronous and are allowed to be missing ([`History::promised`]).
    pub is_expected: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(client: u16, number: u64, started: Seq, mark: Seq) -> Acknowledgement {
        Acknowledgement { client, number, started, mark, at_us: mark, xid: 0, end: None, asynchronous: false }
    }

    #[test]
    fn an_asynchronous_commit_may_be_lost_until_it_is_flushed() {
        let asynchronous = Acknowledgement { asynchronous: true, end: Some(80), ..one(0, 1, 5, 100) };
        let synchronous = one(1, 1, 5, 300);
        let said = |mark, up_to| Flushed { mark, at_us: mark, up_to };
        let flushed = vec![said(60, 20), said(500, 79), said(700, 90)];
        let history = History { flushed, ..History::of(vec![asynchronous, synchronous]) };
        let loss = |lost: &[&Acknowledgement], at| history.loss_of(lost, at, at).map(|it| (it.commits, it.is_expected));
        assert_eq!(loss(&[&asynchronous], 699), Some((1, true)), "a slow flush is no lost one");
        assert_eq!(loss(&[&asynchronous], 700), Some((1, false)));
        assert_eq!(loss(&[&asynchronous, &synchronous], 400), Some((1, false)), "the synchronous one alone");
        assert_eq!(loss(&[], 400), None);
        // Flushed by another client's commit before its own client had the answer.
        let early = History { flushed: vec![said(60, 90)], ..history.clone() };
        assert_eq!(early.promised(&asynchronous), Some((100, 100)));
        let unseen = Acknowledgement { end: None, ..asynchronous };
        assert_eq!((history.promised(&unseen), history.promised(&synchronous)), (None, Some((300, 300))));
    }

    #[test]
    fn an_impossible_history_is_the_fault_of_the_harness() {
        let wrong = |acknowledged: Vec<Acknowledgement>| History::of(acknowledged).check(100).unwrap_err();
        assert_eq!(wrong(Vec::new()), "no commit was acknowledged");
        assert!(wrong(vec![one(0, 1, 5, 4)]).contains("a mark before its commit"));
        assert!(wrong(vec![one(0, 1, 5, 101)]).contains("after the end"));
        assert!(wrong(vec![one(0, 1, 5, 7), one(0, 3, 8, 9)]).contains("commit 3 of client 0 is out of order"));
        assert!(wrong(vec![one(0, 1, 5, 7), one(0, 2, 6, 9)]).contains("began before the one before it ended"));
        let fine = History::of(vec![one(1, 1, 5, 8), one(0, 1, 5, 7), one(0, 2, 7, 9)]);
        assert_eq!(fine.check(9), Ok(()));
        assert_eq!(fine.acknowledged_at(8), BTreeMap::from([(0, 1), (1, 1)]));
    }

    #[test]
    fn links_depend_on_all_that_came_before() {
        let second = |first: &str| link(first, 0, 2);
        assert_ne!(second(&link("", 0, 1)), second(&link("", 1, 1)));
        assert_eq!(link("", 0, 1).len(), 32);
    }
}

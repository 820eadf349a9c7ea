//! What clients committed and when they were told so, in places of the recorder's sequence.

use super::arithmetic::Loss;
use super::wal::{Lsn, WalShape};
use crate::recorder::Seq;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A commit that the server acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledgement {
    pub client: u16,
    /// Number of the transaction within its client, from 1.
    pub number: u64,
    /// Mark taken before the client sent COMMIT: no request of the commit itself is older.
    pub started: Seq,
    /// Mark taken after the acknowledgement: every request that it waited for completed before. A late mark only shrinks
    /// what is tested.
    pub mark: Seq,
    /// Microseconds from the start of the recording to the acknowledgement.
    pub at_us: u64,
    /// The transaction's number at the server.
    pub xid: u32,
    /// Where its commit record ends in WAL; `None` where it was not seen there.
    pub end: Option<Lsn>,
}

/// All acknowledgements of a recording, by their marks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    pub acknowledged: Vec<Acknowledgement>,
    /// How WAL is laid out; `None` where the server's was not read.
    pub wal: Option<WalShape>,
}

impl History {
    pub fn of(mut acknowledged: Vec<Acknowledgement>) -> History {
        acknowledged.sort_by_key(|one| (one.mark, one.client, one.number));
        History { acknowledged, wal: None }
    }

    /// Enters where commit records end.
    #[must_use]
    pub fn with_wal(mut self, shape: WalShape, ends: &BTreeMap<u32, Lsn>) -> History {
        for one in &mut self.acknowledged {
            one.end = ends.get(&one.xid).copied();
        }
        History { wal: Some(shape), ..self }
    }

    /// Why it cannot be a history of this recording: then the harness is at fault, and the stack is not judged.
    ///
    /// # Errors
    /// What is wrong, in words.
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

    /// Whether the end of every commit record is known.
    pub fn has_ends(&self) -> bool {
        self.wal.is_some() && self.acknowledged.iter().all(|one| one.end.is_some())
    }

    /// What is lost of the commits that were acknowledged before `at` where valid WAL ends at `end`.
    pub fn lost_after(&self, end: Lsn, at: Seq) -> Option<Loss> {
        let given = &self.acknowledged[..self.acknowledged.partition_point(|one| one.mark <= at)];
        let mut lost = given.iter().filter(|one| one.end.is_some_and(|ends| ends > end));
        let (first, last) = (lost.clone().map(|one| one.at_us).min()?, given.iter().map(|one| one.at_us).max()?);
        let commits = lost.by_ref().count();
        Some(Loss { commits, us: last - first, uncovered: commits })
    }

    /// The highest number that each client was acknowledged before `at`.
    pub fn acknowledged_at(&self, at: Seq) -> BTreeMap<u16, u64> {
        let mut highest = BTreeMap::new();
        for one in self.acknowledged.iter().filter(|one| one.mark <= at) {
            highest.insert(one.client, one.number);
        }
        highest
    }
}

/// The link of a client's hash chain after its transaction `number`, from the link before.
pub fn link(before: &str, client: u16, number: u64) -> String {
    let digest = Sha256::digest(format!("{before} {client} {number}"));
    digest[..16].iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(client: u16, number: u64, started: Seq, mark: Seq) -> Acknowledgement {
        Acknowledgement { client, number, started, mark, at_us: mark, xid: 0, end: None }
    }

    #[test]
    fn a_history_that_cannot_be_is_the_fault_of_the_harness() {
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

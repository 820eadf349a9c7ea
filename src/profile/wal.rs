//! Lines of `pg_waldump` to figures: pure, line by line.
//!
//! `rmgr: Heap  len (rec/tot):  54/ 8106, tx: 735, lsn: 0/1527F88, prev 0/1527F50, desc: LOCK ..., blkref #0: ... FPW`:
//! `rec` is the record without its full-page images. A transaction ends with a record of the manager `Transaction`,
//! which names its sub-transactions; their records have ids of their own.

use crate::error::{Error, Result};
use crate::record::profile::{CommitSpread, ProfiledWal};
use hdrhistogram::Histogram;
use std::collections::HashMap;

/// Reads lines in the order of the WAL. Transactions may go on from one call of `pg_waldump` to the next.
#[derive(Debug)]
pub struct DumpReader {
    /// Records and bytes without full pages, by transaction, of those that have not ended.
    open: HashMap<u32, [u64; 2]>,
    wal: ProfiledWal,
    /// Microseconds since 1970.
    last_commit: Option<i64>,
    /// Records, bytes without full pages, and microseconds to the next, of commits.
    spreads: [Histogram<u64>; 3],
}

/// Manager, bytes without and of full-page images, transaction, description.
fn record(line: &str) -> Option<(&str, [u64; 2], u32, &str)> {
    let (manager, rest) = line.strip_prefix("rmgr: ")?.split_once("len (rec/tot):")?;
    let (lengths, rest) = rest.split_once(", tx:")?;
    let (transaction, rest) = rest.split_once(", lsn:")?;
    let (_, description) = rest.split_once(", desc: ")?;
    let (bytes, total) = lengths.split_once('/')?;
    let bytes: u64 = bytes.trim().parse().ok()?;
    let images = total.trim().parse::<u64>().ok()?.checked_sub(bytes)?;
    Some((manager.trim(), [bytes, images], transaction.trim().parse().ok()?, description))
}

impl DumpReader {
    /// # Errors
    /// Never in practice: the number of digits is a constant that hdrhistogram accepts.
    pub fn new() -> Result<DumpReader> {
        let empty = Histogram::new(3).map_err(|e| Error::bug(e.to_string()))?;
        let spreads = [empty.clone(), empty.clone(), empty];
        Ok(DumpReader { open: HashMap::new(), wal: ProfiledWal::default(), last_commit: None, spreads })
    }

    /// Reads a line; other text than a record is passed over.
    pub fn add(&mut self, line: &str) {
        let Some((manager, [bytes, images], transaction, description)) = record(line) else { return };
        self.wal.records += 1;
        self.wal.bytes += bytes + images;
        self.wal.full_page_bytes += images;
        let (deed, rest) = description.split_once(' ').unwrap_or((description, ""));
        // Who ends a prepared transaction has no id; the record names the one that is ended.
        let (id, rest) = match (deed, rest.split_once(": ")) {
            ("COMMIT_PREPARED" | "ABORT_PREPARED", Some((id, rest))) => (id.parse().unwrap_or(0), rest),
            _ => (transaction, rest),
        };
        if id != 0 {
            add_to(self.open.entry(id).or_default(), [1, bytes]);
        }
        let is_commit = deed == "COMMIT" || deed == "COMMIT_PREPARED";
        if manager == "Transaction" && (is_commit || deed == "ABORT" || deed == "ABORT_PREPARED") {
            let mut all = self.open.remove(&id).unwrap_or_default();
            let below = subtransactions(rest).filter_map(|id| self.open.remove(&id));
            let below = below.map(|part| add_to(&mut all, part)).count() as u64;
            if is_commit {
                self.wal.prepared += u64::from(deed == "COMMIT_PREPARED");
                self.wal.subtransactions += below;
                self.wal.with_subtransactions += u64::from(below > 0);
                self.commit(all, microseconds(rest));
            }
        }
    }

    fn commit(&mut self, [records, bytes]: [u64; 2], at: Option<i64>) {
        self.wal.commits += 1;
        // Commits are stamped before they are written: two may stand in the opposite order.
        let gap = at.zip(self.last_commit).map(|(at, last)| u64::try_from(at - last).unwrap_or(0));
        for (spread, value) in self.spreads.iter_mut().zip([Some(records), Some(bytes), gap]) {
            // It grows as needed.
            value.and_then(|value| spread.record(value).ok());
        }
        self.last_commit = self.last_commit.max(at);
    }

    /// The figures of all lines.
    pub fn finish(self) -> ProfiledWal {
        let [commit_records, commit_bytes, gap_microseconds] = self.spreads.map(|values| {
            let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|share| values.value_at_quantile(share));
            CommitSpread { p50, p90, p99 }
        });
        ProfiledWal { commit_records, commit_bytes, gap_microseconds, ..self.wal }
    }
}

fn add_to(all: &mut [u64; 2], [records, bytes]: [u64; 2]) {
    *all = [all[0] + records, all[1] + bytes];
}

/// Ids behind `subxacts:` in the description of an end.
fn subtransactions(description: &str) -> impl Iterator<Item = u32> {
    let list = description.split_once("; subxacts:").map_or("", |(_, list)| list);
    list.split([';', ',']).next().unwrap_or("").split_whitespace().map_while(|id| id.parse().ok())
}

/// `2026-11-27 19:50:20.123456 UTC; ...` since 1970.
fn microseconds(description: &str) -> Option<i64> {
    let time: jiff::Timestamp = format!("{}Z", description.split(" UTC").next()?).parse().ok()?;
    Some(time.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> ProfiledWal {
        let mut reader = DumpReader::new().unwrap();
        lines.iter().for_each(|line| reader.add(line));
        reader.finish()
    }

    #[test]
    fn a_commit_has_the_records_of_its_sub_transactions() {
        let wal = read(&[
            "first record is after 0/1000000, at 0/1000028, skipping over 40 bytes",
            "rmgr: Heap        len (rec/tot):     54/  8106, tx:        735, lsn: 0/01527F88, prev 0/01527F50, desc: LOCK \
             off: 1, blkref #0: rel 1663/5/1249 blk 58 FPW",
            "rmgr: Heap        len (rec/tot):    100/   100, tx:        736, lsn: 0/0152A000, prev 0/01527F88, desc: \
             INSERT off: 2, blkref #0: rel 1663/5/1249 blk 58",
            "rmgr: Standby     len (rec/tot):     50/    50, tx:          0, lsn: 0/0152A070, prev 0/0152A000, desc: \
             RUNNING_XACTS nextXid 737",
            "rmgr: Transaction len (rec/tot):     46/    46, tx:        735, lsn: 0/0152A0A8, prev 0/0152A070, desc: \
             COMMIT 2026-11-27 19:50:20.000100 UTC; subxacts: 736; inval msgs: catcache 7",
            "rmgr: Transaction len (rec/tot):     34/    34, tx:        738, lsn: 0/0152A0D8, prev 0/0152A0A8, desc: \
             COMMIT 2026-11-27 19:50:20.000350 UTC",
        ]);
        assert_eq!((wal.commits, wal.with_subtransactions, wal.subtransactions, wal.records), (2, 1, 1, 5));
        assert_eq!((wal.bytes, wal.full_page_bytes), (8106 + 100 + 50 + 46 + 34, 8052));
        assert_eq!((wal.commit_bytes.p50, wal.commit_bytes.p99), (34, 200));
        assert_eq!((wal.commit_records.p50, wal.commit_records.p99), (1, 3));
        assert_eq!(wal.gap_microseconds.p50, 250);
    }

    #[test]
    fn lines_of_real_versions_are_read() {
        for dump in
            [include_str!("../../tests/fixtures/profile/15.dump"), include_str!("../../tests/fixtures/profile/18.dump")]
        {
            let wal = read(&dump.lines().collect::<Vec<_>>());
            let [all, commits, prepared] =
                ["rmgr: ", "desc: COMMIT", "COMMIT_PREPARED"].map(|of| dump.matches(of).count());
            let counted = [wal.records, wal.commits, wal.prepared].map(|count| usize::try_from(count).unwrap());
            assert_eq!(counted, [all, commits, prepared]);
            assert!(prepared > 0 && wal.gap_microseconds.p50 > 0 && wal.commit_bytes.p50 > 30, "{wal:?}");
            let of_list = dump.lines().filter_map(|line| Some(subtransactions(line.split_once("desc: ")?.1).count()));
            assert_eq!(of_list.sum::<usize>(), dump.matches("subxacts").count());
        }
    }

    #[test]
    fn a_prepared_transaction_ends_under_its_own_id() {
        let wal = read(&[
            "rmgr: Heap        len (rec/tot):    300/   300, tx:        740, lsn: 0/01, prev 0/00, desc: INSERT off: 2",
            "rmgr: Transaction len (rec/tot):    130/   130, tx:        740, lsn: 0/02, prev 0/01, desc: PREPARE gid a: \
             2026-11-27 19:50:20.000100 UTC",
            "rmgr: Transaction len (rec/tot):     60/    60, tx:          0, lsn: 0/03, prev 0/02, desc: COMMIT_PREPARED \
             740: 2026-11-27 19:50:20.000200 UTC",
            "rmgr: Heap        len (rec/tot):    300/   300, tx:        741, lsn: 0/04, prev 0/03, desc: INSERT off: 2",
            "rmgr: Transaction len (rec/tot):     34/    34, tx:        741, lsn: 0/05, prev 0/04, desc: ABORT \
             2026-11-27 19:50:20.000300 UTC",
        ]);
        assert_eq!((wal.commits, wal.prepared, wal.commit_bytes.p99), (1, 1, 490));
    }
}

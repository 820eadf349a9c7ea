//! ZFS activity: its cache (ARC), its intent log and the transaction groups of the stack's pools, from
//! `/proc/spl/kstat/zfs`.
//!
//! Operations, bytes and times of a pool's devices are in the columns of those devices. ARC and intent log belong to
//! the machine: other pools share them. A stack without a pool has none of these columns.

use super::{ColumnSource, Reading, SampledObjects, Sampler, count};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::parse::kstat;
use crate::record::column::Column;
use crate::record::columns::{self, ColumnDef};
use crate::record::seconds::Row;
use std::collections::BTreeMap;

pub struct ZfsSampler;

const FOLDER: &str = "/proc/spl/kstat/zfs";

/// Columns from a file of named counters, each with the counter's name.
type Named = [(ColumnDef, &'static str)];

const ARC: &Named = &[
    (columns::ZFS_ARC_BYTES, "size"),
    (columns::ZFS_ARC_TARGET_BYTES, "c"),
    (columns::ZFS_ARC_HITS, "hits"),
    (columns::ZFS_ARC_MISSES, "misses"),
    (columns::ZFS_L2_HITS, "l2_hits"),
    (columns::ZFS_L2_MISSES, "l2_misses"),
];

const ZIL: &Named = &[
    (columns::ZFS_ZIL_COMMITS, "zil_commit_count"),
    (columns::ZFS_ZIL_RECORDS, "zil_itx_count"),
    (columns::ZFS_ZIL_POOL_BYTES, "zil_itx_metaslab_normal_bytes"),
    (columns::ZFS_ZIL_LOG_BYTES, "zil_itx_metaslab_slog_bytes"),
];

/// Totals of the transaction groups since the sampler was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TxgSums {
    groups: u64,
    sync_ns: u64,
    written_bytes: u64,
}

const TXGS: [ColumnSource<ColumnDef, TxgSums>; 3] = [
    (columns::ZFS_TXGS, |sums| Some(sums.groups)),
    (columns::ZFS_TXG_SYNC_NS, |sums| Some(sums.sync_ns)),
    (columns::ZFS_TXG_WRITE_BYTES, |sums| Some(sums.written_bytes)),
];

struct OpenZfs {
    host: Host,
    /// Each pool with the number of the last transaction group counted.
    pools: Vec<(String, u64)>,
    sums: TxgSums,
}

impl Sampler for ZfsSampler {
    fn about(&self) -> (&'static str, &'static str) {
        (
            "zfs",
            "What ZFS did, from `/proc/spl/kstat/zfs`: its cache (ARC), its intent log, and the transaction groups of the stack's pools.",
        )
    }

    fn columns(&self, target: &SampledObjects) -> Vec<Column> {
        if target.pools.is_empty() {
            return Vec::new();
        }
        let named = ARC.iter().chain(ZIL).map(|(column, _)| column);
        named.chain(TXGS.iter().map(|(column, _)| column)).map(ColumnDef::column).collect()
    }

    fn open(&self, host: &Host, target: &SampledObjects) -> Result<Reading> {
        let pools = target.pools.iter().map(|pool| (pool.clone(), 0)).collect();
        let mut open = OpenZfs { host: host.clone(), pools, sums: TxgSums::default() };
        if !open.pools.is_empty() {
            // Earlier writes do not count.
            open.sample().map_err(|error| error.hint("these statistics come with OpenZFS 2"))?;
            open.sums = TxgSums::default();
        }
        Ok(Box::new(move || open.sample()))
    }
}

impl OpenZfs {
    fn sample(&mut self) -> Result<Row> {
        if self.pools.is_empty() {
            return Ok(Vec::new());
        }
        let mut row = Vec::new();
        for (file, columns) in [("arcstats", ARC), ("zil", ZIL)] {
            let path = format!("{FOLDER}/{file}");
            let counters: BTreeMap<String, u64> = kstat::named(&path, &self.host.read(&path)?)?;
            row.extend(columns.iter().map(|(_, name)| count(counters.get(*name).copied())));
        }
        self.add_groups()?;
        row.extend(TXGS.iter().map(|(_, of)| count(of(&self.sums))));
        Ok(row)
    }

    /// Adds the transaction groups committed since the last call; the module keeps the last hundred per pool
    /// (`zfs_txg_history`).
    fn add_groups(&mut self) -> Result<()> {
        for (pool, last) in &mut self.pools {
            let path = format!("{FOLDER}/{pool}/txgs");
            let text = self.host.read(&path).map_err(|e| Error::host(format!("{e}; is zfs_txg_history 0?")))?;
            let groups = kstat::txgs(&path, &text)?;
            for group in groups.iter().filter(|group| group.committed && group.number > *last) {
                self.sums.groups += 1;
                self.sums.sync_ns += group.sync_ns;
                self.sums.written_bytes += group.written_bytes;
            }
            *last = groups.iter().filter(|group| group.committed).map(|group| group.number).fold(*last, u64::max);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/spl/kstat/zfs/tank")).unwrap();
        let host = Host::rooted(root.path());
        (root, host)
    }

    fn write(root: &tempfile::TempDir, file: &str, text: &str) {
        std::fs::write(root.path().join("proc/spl/kstat/zfs").join(file), text).unwrap();
    }

    const TXG_HEAD: &str = "txg      birth            state ndirty       nread        nwritten     reads    writes   otime        qtime        wtime        stime\n";

    fn target() -> SampledObjects {
        SampledObjects { pools: vec!["tank".to_owned()], ..SampledObjects::default() }
    }

    #[test]
    fn groups_are_added_up_once_and_from_the_opening_on() {
        let (root, host) = machine();
        write(&root, "arcstats", "1 1 0 2 9 1 2\nname type data\nhits 4 10\nmisses 4 2\nsize 4 4096\nc 4 8192\n");
        write(&root, "zil", "1 1 0 2 9 1 2\nname type data\nzil_commit_count 4 5\nzil_itx_metaslab_slog_bytes 4 77\n");
        write(&root, "tank/txgs", &format!("{TXG_HEAD}4 1 C 1 0 100 0 1 1 1 1 50\n5 1 S 1 0 0 0 0 1 1 1 0\n"));
        let mut open = ZfsSampler.open(&host, &target()).unwrap();
        let columns = ZfsSampler.columns(&target());
        let mut read = || {
            let row = open().unwrap();
            assert_eq!(row.len(), columns.len());
            columns.iter().map(|column| column.name.clone()).zip(row).collect::<BTreeMap<_, _>>()
        };
        let first = read();
        assert_eq!((first["zfs_txgs"].clone(), first["zfs_arc_hits"].clone()), (count(0), count(10)));
        assert_eq!(
            (first["zfs_l2_hits"].clone(), first["zfs_zil_log_bytes"].clone()),
            (None, count(77)),
            "absent is not 0"
        );
        write(&root, "tank/txgs", &format!("{TXG_HEAD}5 1 C 1 0 300 0 1 1 1 1 70\n6 1 O 1 0 0 0 0 1 1 1 0\n"));
        let second = read();
        assert_eq!((second["zfs_txgs"].clone(), second["zfs_txg_sync_ns"].clone()), (count(1), count(70)));
        assert_eq!((read()["zfs_txgs"].clone(), read()["zfs_txg_write_bytes"].clone()), (count(1), count(300)));
    }

    #[test]
    fn a_stack_without_a_zfs_pool_has_no_columns() {
        let (_root, host) = machine();
        assert!(ZfsSampler.columns(&SampledObjects::default()).is_empty());
        assert_eq!(ZfsSampler.open(&host, &SampledObjects::default()).unwrap()().unwrap(), []);
        assert!(ZfsSampler.open(&host, &target()).is_err());
    }
}

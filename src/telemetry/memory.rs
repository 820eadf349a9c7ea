//! Memory use and paging: `/proc/meminfo` and `/proc/vmstat`.

use super::{ColumnSource, Reading, SampledObjects, Sampler, count};
use crate::error::Result;
use crate::host::Host;
use crate::parse::meminfo::{self, Meminfo};
use crate::parse::vmstat;
use crate::record::column::Column;
use crate::record::columns::{self, ColumnDef};
use crate::record::seconds::Row;

pub struct MemorySampler;

/// Each column of `/proc/meminfo` and its source.
const HELD: [ColumnSource<ColumnDef, Meminfo>; 6] = [
    (columns::MEM_DIRTY_BYTES, |memory| memory.dirty_bytes),
    (columns::MEM_WRITEBACK_BYTES, |memory| memory.writeback_bytes),
    (columns::MEM_CACHED_BYTES, |memory| memory.cached_bytes),
    (columns::MEM_AVAILABLE_BYTES, |memory| memory.available_bytes),
    (columns::MEM_FREE_BYTES, |memory| memory.free_bytes),
    (columns::MEM_SWAP_USED_BYTES, Meminfo::swap_used_bytes),
];

/// Each column of `/proc/vmstat` and its source.
const MOVED: [(ColumnDef, &str, u64); 4] = [
    (columns::VM_PAGE_IN_BYTES, "pgpgin", 1024),
    (columns::VM_PAGE_OUT_BYTES, "pgpgout", 1024),
    (columns::VM_SWAP_IN_PAGES, "pswpin", 1),
    (columns::VM_SWAP_OUT_PAGES, "pswpout", 1),
];

impl Sampler for MemorySampler {
    fn about(&self) -> (&'static str, &'static str) {
        ("memory", "Where the memory is and what was moved, from `/proc/meminfo` and `/proc/vmstat`.")
    }

    fn columns(&self, _target: &SampledObjects) -> Vec<Column> {
        HELD.iter().map(|(column, _)| column.column()).chain(MOVED.iter().map(|(column, ..)| column.column())).collect()
    }

    fn open(&self, host: &Host, _target: &SampledObjects) -> Result<Reading> {
        let host = host.clone();
        let read = move || {
            let (memory, moved) = (meminfo::parse(&host.read("/proc/meminfo")?)?, host.read("/proc/vmstat")?);
            let mut row: Row = HELD.iter().map(|(_, of)| count(of(&memory))).collect();
            for (_, item, bytes_or_pages) in MOVED {
                let moved = vmstat::counter(&moved, item)?;
                row.push(count(moved.map(|number| number.saturating_mul(bytes_or_pages))));
            }
            Ok(row)
        };
        read().map(|_: Row| Box::new(read) as Reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_figures_missing_on_old_kernels_are_absent() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let host = Host::rooted(root.path());
        std::fs::write(host.path("/proc/meminfo"), "MemFree: 2 kB\nCached: 3 kB\nDirty: 4 kB\nWriteback: 0 kB\n")
            .unwrap();
        std::fs::write(host.path("/proc/vmstat"), "pgpgin 5\npgpgout 6\n").unwrap();
        let row = MemorySampler.open(&host, &SampledObjects::default()).unwrap()().unwrap();
        let kib = |n: u64| count(n * 1024);
        let wanted = [kib(4), kib(0), kib(3), None, kib(2), None, kib(5), kib(6), None, None];
        assert_eq!(row, wanted);
        assert_eq!(row.len(), MemorySampler.columns(&SampledObjects::default()).len());
    }
}

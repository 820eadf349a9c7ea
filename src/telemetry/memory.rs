//! Memory use and paging: `/proc/meminfo` and `/proc/vmstat`.

use super::{ColumnSource, Reading, SampledObjects, Sampler, count};
use crate::error::Result;
use crate::host::Host;
use crate::parse::meminfo::{self, Meminfo};
use crate::parse::vmstat::{self, Vmstat};
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
const MOVED: [ColumnSource<ColumnDef, Vmstat>; 4] = [
    (columns::VM_PAGE_IN_BYTES, |moved| moved.page_in_bytes),
    (columns::VM_PAGE_OUT_BYTES, |moved| moved.page_out_bytes),
    (columns::VM_SWAP_IN_PAGES, |moved| moved.swap_in_pages),
    (columns::VM_SWAP_OUT_PAGES, |moved| moved.swap_out_pages),
];

impl Sampler for MemorySampler {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn doc(&self) -> &'static str {
        "Where the memory is and what was moved, from `/proc/meminfo` and `/proc/vmstat`."
    }

    fn columns(&self, _target: &SampledObjects) -> Vec<Column> {
        let held = HELD.iter().map(|(column, _)| column.column());
        held.chain(MOVED.iter().map(|(column, _)| column.column())).collect()
    }

    fn open(&self, host: &Host, _target: &SampledObjects) -> Result<Reading> {
        let host = host.clone();
        let read = move || {
            let memory = meminfo::parse(&host.read("/proc/meminfo")?)?;
            let moved = vmstat::parse(&host.read("/proc/vmstat")?)?;
            let held = HELD.iter().map(|(_, of)| count(of(&memory)));
            Ok(held.chain(MOVED.iter().map(|(_, of)| count(of(&moved)))).collect())
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

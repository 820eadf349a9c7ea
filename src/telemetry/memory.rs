//! Where the memory is and what was moved: `/proc/meminfo` and `/proc/vmstat`.

use super::{Reading, Sampler, Target, count};
use crate::error::Result;
use crate::host::Host;
use crate::parse::{meminfo, vmstat};
use crate::record::seconds::{Column, Value};

/// The source `memory`.
pub struct Memory;

struct Open(Host);

impl Sampler for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn columns(&self, _target: &Target) -> Vec<Column> {
        let now = |name: &str, doc: &str| {
            Column::gauge(format!("mem_{name}_bytes"), "bytes", format!("/proc/meminfo: {doc}"))
        };
        let moved = |name: &str, unit: &str, doc: &str| Column::counter(name, unit, format!("/proc/vmstat {doc}"));
        vec![
            now("dirty", "page cache that waits to be written"),
            now("writeback", "page cache being written"),
            now("cached", "page cache, tmpfs and ramfs included"),
            now("available", "what programs could still get without swapping (the kernel's estimate, Linux 3.14)"),
            now("free", "unused"),
            now("swap_used", "swap space in use"),
            moved("vm_page_in_bytes", "bytes", "pgpgin: read by all block devices of the machine"),
            moved("vm_page_out_bytes", "bytes", "pgpgout: written by all block devices of the machine"),
            moved("vm_swap_in_pages", "pages", "pswpin: pages read back from swap"),
            moved("vm_swap_out_pages", "pages", "pswpout: pages written to swap"),
        ]
    }

    fn open(&self, host: &Host, _target: &Target) -> Result<Box<dyn Reading>> {
        let mut open = Open(host.clone());
        open.sample()?;
        Ok(Box::new(open))
    }
}

impl Reading for Open {
    fn sample(&mut self) -> Result<Vec<Option<Value>>> {
        let memory = meminfo::parse(&self.0.read("/proc/meminfo")?)?;
        let moved = vmstat::parse(&self.0.read("/proc/vmstat")?)?;
        Ok(vec![
            count(memory.dirty_bytes),
            count(memory.writeback_bytes),
            count(memory.cached_bytes),
            count(memory.available_bytes),
            count(memory.free_bytes),
            count(memory.swap_used_bytes()),
            count(moved.page_in_bytes),
            count(moved.page_out_bytes),
            count(moved.swap_in_pages),
            count(moved.swap_out_pages),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_old_kernel_does_not_tell_is_absent_and_the_rest_is_there() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let host = Host::rooted(root.path());
        std::fs::write(host.path("/proc/meminfo"), "MemFree: 2 kB\nCached: 3 kB\nDirty: 4 kB\nWriteback: 0 kB\n")
            .unwrap();
        std::fs::write(host.path("/proc/vmstat"), "pgpgin 5\npgpgout 6\n").unwrap();
        let row = Memory.open(&host, &Target::default()).unwrap().sample().unwrap();
        let kib = |n: u64| count(n * 1024);
        let wanted = [kib(4), kib(0), kib(3), None, kib(2), None, kib(5), kib(6), None, None];
        assert_eq!(row, wanted);
        assert_eq!(row.len(), Memory.columns(&Target::default()).len());
    }
}

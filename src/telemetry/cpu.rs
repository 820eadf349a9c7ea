//! What the CPUs did: `/proc/stat`, all CPUs together, raw ticks.

use super::{Reading, Sampler, Target, count};
use crate::error::Result;
use crate::host::Host;
use crate::parse::proc_stat;
use crate::record::seconds::{Column, Value};

/// The source `cpu`.
pub struct Cpu;

struct Open(Host);

impl Sampler for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn columns(&self, _target: &Target) -> Vec<Column> {
        let ticks = |state: &str, meaning: &str| {
            let doc = format!(
                "/proc/stat: time of all CPUs together {meaning}, in ticks of 1/USER_HZ second (USER_HZ is 100 on \
                 every architecture but Alpha, include/uapi/asm-generic/param.h)"
            );
            Column::counter(format!("cpu_{state}"), "ticks", doc)
        };
        vec![
            ticks("user", "in programs, guests' time included"),
            ticks("nice", "in programs of lowered priority"),
            ticks("system", "in the kernel"),
            ticks("idle", "with nothing to do"),
            ticks("iowait", "idle while a task waited for storage"),
            ticks("irq", "in hardware interrupts"),
            ticks("softirq", "in soft interrupts"),
            ticks("steal", "taken by the hypervisor for other guests"),
            Column::gauge("cpu_count", "cpus", "/proc/stat: CPUs online"),
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
        let stat = proc_stat::parse(&self.0.read("/proc/stat")?)?;
        let all = stat.all;
        Ok(vec![
            count(all.user),
            count(all.nice),
            count(all.system),
            count(all.idle),
            count(all.iowait),
            count(all.irq),
            count(all.softirq),
            count(all.steal),
            count(stat.cpus),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_come_in_the_order_of_the_columns() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        std::fs::write(root.path().join("proc/stat"), "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n").unwrap();
        let row = Cpu.open(&Host::rooted(root.path()), &Target::default()).unwrap().sample().unwrap();
        let wanted: Vec<Option<Value>> = [1, 2, 3, 4, 5, 6, 7, 8, 1].map(count).into();
        assert_eq!(row, wanted);
        assert_eq!(row.len(), Cpu.columns(&Target::default()).len());
    }

    #[test]
    fn a_machine_without_the_file_says_so() {
        let root = tempfile::tempdir().unwrap();
        let error = Cpu.open(&Host::rooted(root.path()), &Target::default()).err().unwrap();
        assert!(error.to_string().contains("proc/stat"), "{error}");
    }
}

//! What the CPUs did: `/proc/stat`, all CPUs together.

use super::{ColumnSource, OpenSampler, Sampler, Target, count};
use crate::error::Result;
use crate::host::Host;
use crate::parse::proc_stat::{self, ProcStat};
use crate::record::columns::{self, ColumnDef};
use crate::record::seconds::{Column, Value};

/// The source `cpu`.
pub struct Cpu;

/// Each column and where it comes from.
const FIGURES: [ColumnSource<ColumnDef, ProcStat>; 9] = [
    (columns::CPU_USER_NS, |stat| Some(stat.all.user)),
    (columns::CPU_NICE_NS, |stat| Some(stat.all.nice)),
    (columns::CPU_SYSTEM_NS, |stat| Some(stat.all.system)),
    (columns::CPU_IDLE_NS, |stat| Some(stat.all.idle)),
    (columns::CPU_IOWAIT_NS, |stat| stat.all.iowait),
    (columns::CPU_IRQ_NS, |stat| stat.all.irq),
    (columns::CPU_SOFTIRQ_NS, |stat| stat.all.softirq),
    (columns::CPU_STEAL_NS, |stat| stat.all.steal),
    (columns::CPU_COUNT, |stat| Some(stat.cpus)),
];

struct OpenCpu(Host);

impl Sampler for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn columns(&self, _target: &Target) -> Vec<Column> {
        FIGURES.iter().map(|(column, _)| column.column()).collect()
    }

    fn open(&self, host: &Host, _target: &Target) -> Result<Box<dyn OpenSampler>> {
        let mut open = OpenCpu(host.clone());
        open.sample()?;
        Ok(Box::new(open))
    }
}

impl OpenSampler for OpenCpu {
    fn sample(&mut self) -> Result<Vec<Option<Value>>> {
        let stat = proc_stat::parse(&self.0.read("/proc/stat")?)?;
        Ok(FIGURES.iter().map(|(_, of)| count(of(&stat))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_comes_under_its_column_in_nanoseconds() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        std::fs::write(root.path().join("proc/stat"), "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n").unwrap();
        let row = Cpu.open(&Host::rooted(root.path()), &Target::default()).unwrap().sample().unwrap();
        let found: Vec<(String, Option<Value>)> =
            Cpu.columns(&Target::default()).into_iter().map(|column| column.name).zip(row).collect();
        let states = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
        let wanted =
            states.into_iter().zip(1..).map(|(state, ticks)| (format!("cpu_{state}_ns"), count(ticks * 10_000_000)));
        let wanted: Vec<_> = wanted.chain([("cpu_count".to_owned(), count(1))]).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_machine_without_the_file_says_so() {
        let root = tempfile::tempdir().unwrap();
        let error = Cpu.open(&Host::rooted(root.path()), &Target::default()).err().unwrap();
        assert!(error.to_string().contains("proc/stat"), "{error}");
    }
}

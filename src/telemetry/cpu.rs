//! CPU time from `/proc/stat`: all CPUs together, and the busiest one.

use super::{ColumnSource, Reading, SampledObjects, Sampler, count};
use crate::error::Result;
use crate::host::Host;
use crate::parse::proc_stat::{self, ProcStat};
use crate::record::column::Column;
use crate::record::columns::{self, ColumnDef};
use std::collections::BTreeMap;

pub struct Cpu;

/// Each column and its source.
const FIGURES: [ColumnSource<ColumnDef, ProcStat>; 9] = [
    (columns::CPU_USER_NS, |stat| Some(stat.all.user)),
    (columns::CPU_NICE_NS, |stat| Some(stat.all.nice)),
    (columns::CPU_SYSTEM_NS, |stat| Some(stat.all.system)),
    (columns::CPU_IDLE_NS, |stat| Some(stat.all.idle)),
    (columns::CPU_IOWAIT_NS, |stat| stat.all.iowait),
    (columns::CPU_IRQ_NS, |stat| stat.all.irq),
    (columns::CPU_SOFTIRQ_NS, |stat| stat.all.softirq),
    (columns::CPU_STEAL_NS, |stat| stat.all.steal),
    (columns::CPU_COUNT, |stat| Some(stat.each.len() as u64)),
];

impl Sampler for Cpu {
    fn about(&self) -> (&'static str, &'static str) {
        ("cpu", "What the CPUs did, from `/proc/stat`: all of them together, and the busiest one.")
    }

    fn columns(&self, _target: &SampledObjects) -> Vec<Column> {
        FIGURES.iter().map(|(column, _)| column).chain([&columns::CPU_FULLEST_NS]).map(ColumnDef::column).collect()
    }

    fn open(&self, host: &Host, _target: &SampledObjects) -> Result<Reading> {
        let host = host.clone();
        let read = move || proc_stat::parse(&host.read("/proc/stat")?);
        read()?;
        // Busy time of each CPU until the previous row, nanoseconds; empty before the first row.
        let mut worked_ns = BTreeMap::new();
        Ok(Box::new(move || {
            let stat = read()?;
            let fullest = count(fullest_ns(&mut worked_ns, &stat));
            Ok(FIGURES.iter().map(|(_, of)| count(of(&stat))).chain([fullest]).collect())
        }))
    }
}

/// Busy time of the busiest CPU since the previous row, nanoseconds. Skips CPUs that came online meanwhile.
fn fullest_ns(worked_ns: &mut BTreeMap<u32, u64>, stat: &ProcStat) -> Option<u64> {
    let now: BTreeMap<u32, u64> = stat.each.iter().map(|(number, times)| (*number, times.busy())).collect();
    let before = std::mem::replace(worked_ns, now);
    worked_ns.iter().filter_map(|(number, ns)| Some(ns.saturating_sub(*before.get(number)?))).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::seconds::Value;

    #[test]
    fn each_state_comes_under_its_column_in_nanoseconds() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        std::fs::write(root.path().join("proc/stat"), "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n").unwrap();
        let row = Cpu.open(&Host::rooted(root.path()), &SampledObjects::default()).unwrap()().unwrap();
        let found: Vec<(String, Option<Value>)> =
            Cpu.columns(&SampledObjects::default()).into_iter().map(|column| column.name).zip(row).collect();
        let states = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
        let wanted =
            states.into_iter().zip(1..).map(|(state, ticks)| (format!("cpu_{state}_ns"), count(ticks * 10_000_000)));
        let wanted: Vec<_> =
            wanted.chain([("cpu_count".to_owned(), count(1)), ("cpu_fullest_ns".to_owned(), None)]).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn the_busiest_cpu_is_chosen_anew_for_each_row() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let write = |of: &str| std::fs::write(root.path().join("proc/stat"), format!("cpu  0 0 0 0\n{of}")).unwrap();
        write("cpu0 100 0 0 0\ncpu1 5 0 0 9\n");
        let mut open = Cpu.open(&Host::rooted(root.path()), &SampledObjects::default()).unwrap();
        let mut fullest = |of: &str| {
            write(of);
            open().unwrap().pop().unwrap()
        };
        assert_eq!(fullest("cpu0 100 0 0 0\ncpu1 5 0 0 9\n"), None, "nothing is before the first row");
        assert_eq!(fullest("cpu0 110 0 0 0\ncpu1 90 5 0 9\n"), count(900_000_000));
        assert_eq!(fullest("cpu0 160 0 0 0\ncpu1 91 5 0 9\ncpu2 999 0 0 0\n"), count(500_000_000));
        assert_eq!(fullest("cpu2 999 0 0 30\n"), count(0));
    }

    #[test]
    fn a_machine_without_the_file_says_so() {
        let root = tempfile::tempdir().unwrap();
        let error = Cpu.open(&Host::rooted(root.path()), &SampledObjects::default()).err().unwrap();
        assert!(error.to_string().contains("proc/stat"), "{error}");
    }
}

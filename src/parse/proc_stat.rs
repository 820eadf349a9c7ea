//! `/proc/stat`: CPU time since boot.

use super::fields::Fields;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

const SOURCE: &str = "/proc/stat";
/// The kernel counts in ticks of 1/USER_HZ second, and USER_HZ is 100 on every architecture but Alpha
/// (include/uapi/asm-generic/param.h).
const NS_PER_TICK: u64 = 10_000_000;

/// Time that the CPUs spent in each state, nanoseconds, summed over all CPUs. `guest` time is included in `user`
/// (proc(5)), so it is not kept separately.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    pub user: u64,
    /// Programs with lowered priority.
    pub nice: u64,
    pub system: u64,
    pub idle: u64,
    /// Idle while a task of this CPU waits for storage (Linux 2.5.41).
    pub iowait: Option<u64>,
    /// Hardware interrupts (Linux 2.6.0).
    pub irq: Option<u64>,
    /// Soft interrupts (Linux 2.6.0).
    pub softirq: Option<u64>,
    /// Taken by the hypervisor for other guests (Linux 2.6.11).
    pub steal: Option<u64>,
}

impl CpuTimes {
    /// Time in which the CPUs worked for programs and the kernel of this machine.
    pub fn busy(&self) -> u64 {
        let parts = [self.user, self.nice, self.system, self.irq.unwrap_or(0), self.softirq.unwrap_or(0)];
        parts.iter().fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// All time, including idle and stolen time.
    pub fn total(&self) -> u64 {
        let parts = [self.idle, self.iowait.unwrap_or(0), self.steal.unwrap_or(0)];
        parts.iter().fold(self.busy(), |sum, part| sum.saturating_add(*part))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcStat {
    pub all: CpuTimes,
    /// Online CPUs by number.
    pub each: BTreeMap<u32, CpuTimes>,
}

/// Reads the text of `/proc/stat`.
///
/// # Errors
/// If the line `cpu` is missing or one of its fields is not a number.
pub fn parse(text: &str) -> Result<ProcStat> {
    let mut all = None;
    let mut each = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let Some(rest) = line.strip_prefix("cpu") else {
            // The CPU lines come first; later interrupt lines can have thousands of numbers.
            break;
        };
        if rest.starts_with(' ') {
            all = Some(times(index + 1, rest)?);
        } else {
            let (number, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            let number = number.parse().map_err(|_| {
                Error::host(format!("{SOURCE} line {}: `cpu{number}` is not the name of a CPU", index + 1))
            })?;
            each.insert(number, times(index + 1, rest)?);
        }
    }
    let all = all.ok_or_else(|| Error::host(format!("{SOURCE}: the line `cpu` (all CPUs) is missing")))?;
    Ok(ProcStat { all, each })
}

fn times(line: usize, text: &str) -> Result<CpuTimes> {
    let mut fields = Fields::new(SOURCE, line, text);
    Ok(CpuTimes {
        user: nanoseconds(fields.count("user")?),
        nice: nanoseconds(fields.count("nice")?),
        system: nanoseconds(fields.count("system")?),
        idle: nanoseconds(fields.count("idle")?),
        iowait: fields.count_if_there("iowait")?.map(nanoseconds),
        irq: fields.count_if_there("irq")?.map(nanoseconds),
        softirq: fields.count_if_there("softirq")?.map(nanoseconds),
        steal: fields.count_if_there("steal")?.map(nanoseconds),
    })
}

fn nanoseconds(ticks: u64) -> u64 {
    ticks.saturating_mul(NS_PER_TICK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    const LINUX_6_18: &str = "cpu  31224 0 9801 332952 1688 0 101 199 0 0
cpu0 14416 0 3978 169353 166 0 12 81 0 0
cpu1 16807 0 5823 163599 1522 0 89 117 0 0
intr 1187036 0 0 0
ctxt 1720735
btime 1770000000
";

    #[test]
    fn all_cpus_are_read_and_counted() {
        let stat = parse(LINUX_6_18).unwrap();
        assert_eq!(stat.each.keys().copied().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(stat.each[&1].idle, 1_635_990_000_000);
        let ms = |ns: u64| ns / 1_000_000;
        let all = stat.all;
        assert_eq!((ms(all.user), ms(all.system), ms(all.idle)), (312_240, 98_010, 3_329_520));
        assert_eq!(
            (all.iowait.map(ms), all.softirq.map(ms), all.steal.map(ms)),
            (Some(16_880), Some(1010), Some(1990))
        );
        assert_eq!(ms(all.busy()), 312_240 + 98_010 + 1010);
        assert_eq!(ms(all.total()), 312_240 + 98_010 + 1010 + 3_329_520 + 16_880 + 1990);
    }

    #[test]
    fn states_unknown_to_an_old_kernel_are_absent_not_zero() {
        let stat = parse("cpu  1 2 3 4\ncpu0 1 2 3 4\n").unwrap();
        assert_eq!((stat.all.iowait, stat.all.steal), (None, None));
    }

    #[test]
    fn a_fault_names_file_line_item_and_type() {
        let text = parse("cpu  1 2 x 4\n").unwrap_err().to_string();
        assert_eq!(text, "/proc/stat line 1: `system` is `x`, not a whole number (u64)");
        assert!(parse("cpu  1 2\n").unwrap_err().to_string().contains("`system` is missing"));
        assert!(parse("intr 1\n").unwrap_err().to_string().contains("`cpu` (all CPUs) is missing"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(cpu[0-9 ]{0,12}[ 0-9a-z]{0,60}\n?|\\PC{0,80}){0,4}") {
            drop(parse(&text));
        }
    }
}

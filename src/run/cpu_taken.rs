//! CPU time taken by others during a measurement: counted as its rows pass, stored with the trial.

use crate::record::column::Column;
use crate::record::columns::{CPU_STEAL_NS, CPU_TIMES, OTHERS_CPU_NS};
use crate::record::seconds::{Row, Value};
use crate::record::trial::CpuTaken;
use crate::stats::disturbance::Taken;

pub struct CpuCounter {
    /// Positions in a telemetry row: CPU states, then stolen time and other programs.
    states: Vec<usize>,
    stolen: Option<usize>,
    others: Option<usize>,
    first: Option<CpuReading>,
    last: Option<CpuReading>,
}

#[derive(Clone)]
struct CpuReading {
    wall_us: u64,
    states_ns: Vec<u64>,
    stolen_ns: u64,
    others_ns: u64,
}

impl CpuCounter {
    /// A counter for rows with these columns.
    pub fn of(columns: &[Column]) -> CpuCounter {
        CpuCounter {
            states: CPU_TIMES.iter().filter_map(|state| place_of(state.name, columns)).collect(),
            stolen: place_of(CPU_STEAL_NS.name, columns),
            others: place_of(OTHERS_CPU_NS.name, columns),
            first: None,
            last: None,
        }
    }

    /// Takes one row of telemetry; skips rows that lack a reading.
    pub fn add(&mut self, wall_us: u64, row: &Row) {
        if let Some(reading) = self.reading(wall_us, row) {
            self.first.get_or_insert_with(|| reading.clone());
            self.last = Some(reading);
        }
    }

    fn reading(&self, wall_us: u64, row: &Row) -> Option<CpuReading> {
        let states_ns = self.states.iter().map(|place| count_at(*place, row)).collect::<Option<_>>()?;
        let (stolen_ns, others_ns) = (count_at(self.stolen?, row)?, count_at(self.others?, row)?);
        Some(CpuReading { wall_us, states_ns, stolen_ns, others_ns })
    }

    /// CPU time taken between the first row and the last.
    pub fn taken(&self) -> Option<CpuTaken> {
        let (first, last) = (self.first.as_ref()?, self.last.as_ref()?);
        // Idle time may decrease slightly now and then (proc(5), `iowait`).
        let states = first.states_ns.iter().zip(&last.states_ns).map(|(first, last)| last.saturating_sub(*first));
        let taken = CpuTaken {
            elapsed_us: last.wall_us.saturating_sub(first.wall_us),
            cpus_ns: states.sum(),
            stolen_ns: last.stolen_ns.saturating_sub(first.stolen_ns),
            others_ns: last.others_ns.saturating_sub(first.others_ns),
        };
        (taken.elapsed_us > 0 && taken.cpus_ns > 0).then_some(taken)
    }
}

/// Position of a column in each row of telemetry.
pub fn place_of(name: &str, columns: &[Column]) -> Option<usize> {
    columns.iter().position(|column| column.name == name)
}

pub fn count_at(place: usize, row: &Row) -> Option<u64> {
    match row.get(place)? {
        Some(Value::Count(count)) => Some(*count),
        _ => None,
    }
}

/// True if a measurement was disturbed; `false` if its CPU time was not counted.
pub fn is_disturbed(taken: Option<CpuTaken>) -> bool {
    taken.is_some_and(|t| Taken::of(t.elapsed_us, t.cpus_ns, t.stolen_ns, t.others_ns).is_disturbed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(rows: &[(u64, [Option<u64>; 4])]) -> Option<CpuTaken> {
        let [user, _, _, idle, .., stolen] = CPU_TIMES;
        let columns = [OTHERS_CPU_NS, idle, stolen, user].map(|column| column.column());
        let mut counter = CpuCounter::of(&columns);
        for (wall_us, row) in rows {
            counter.add(*wall_us, &row.map(|value| value.map(Value::Count)).to_vec());
        }
        counter.taken()
    }

    #[test]
    fn cpu_taken_by_others_spans_first_to_last_whole_row() {
        let s = 1_000_000_000;
        let rows = [
            (1_000_000, [None, Some(0), Some(0), Some(0)]),
            (2_000_000, [Some(0), Some(10 * s), Some(s), Some(s)]),
            (12_000_000, [Some(s / 2), Some(20 * s), Some(s), Some(11 * s)]),
            (13_000_000, [Some(9 * s), None, Some(9 * s), Some(9 * s)]),
        ];
        let taken = counted(&rows).unwrap();
        let wanted = CpuTaken { elapsed_us: 10_000_000, cpus_ns: 20 * s, stolen_ns: 0, others_ns: s / 2 };
        assert_eq!(taken, wanted);
        assert!(!is_disturbed(Some(taken)), "5 % of a CPU is the limit itself");
        assert!(is_disturbed(Some(CpuTaken { others_ns: s / 2 + 1, ..taken })));
        assert!(is_disturbed(Some(CpuTaken { stolen_ns: s / 2, ..taken })), "2.5 % of 20 s");
        assert!(!is_disturbed(None));
        assert_eq!(counted(&rows[..2]), None, "one row has no length");
    }
}

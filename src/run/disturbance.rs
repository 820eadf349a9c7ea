//! Warns while a trial is being measured that a program outside the run uses CPU time, once per trial.

use crate::record::column::Column;
use crate::record::columns;
use crate::record::seconds::{Row, Value};

/// Window over which its CPU time is measured, microseconds.
const OVER_US: u64 = 5_000_000;
/// Share of one CPU that triggers a warning.
const SHARE: f64 = 0.25;

/// State from the rows so far.
pub(super) struct Others {
    name: Option<usize>,
    cpu_ns: Option<usize>,
    /// Time and CPU time of the reference row.
    since: Option<(u64, u64)>,
    warned: bool,
}

impl Others {
    pub fn among(telemetry: &[Column]) -> Others {
        let [name, cpu_ns] = [columns::OTHERS_NAME, columns::OTHERS_CPU_NS]
            .map(|wanted| telemetry.iter().position(|column| column.name == wanted.name));
        Others { name, cpu_ns, since: None, warned: false }
    }

    /// The warning that this row triggers.
    pub fn warning(&mut self, wall_us: u64, row: &Row) -> Option<String> {
        let Some(Value::Count(cpu_ns)) = *row.get(self.cpu_ns?)? else { return None };
        let (since_us, before_ns) = *self.since.get_or_insert((wall_us, cpu_ns));
        let passed_us = wall_us.saturating_sub(since_us);
        if self.warned || passed_us < OVER_US {
            return None;
        }
        self.since = Some((wall_us, cpu_ns));
        let share = cpu_ns.saturating_sub(before_ns) as f64 / (passed_us as f64 * 1e3);
        self.warned = share >= SHARE;
        let name = match row.get(self.name?)? {
            Some(Value::Text(name)) => name,
            _ => "unknown",
        };
        let percent = (share * 100.0).round();
        self.warned.then(|| format!("programs outside of the run take {percent} % of a CPU, {name} most of it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::columns::ColumnDef;

    fn warnings(share: f64) -> Vec<String> {
        let telemetry = [&columns::OTHERS_NAME, &columns::OTHERS_CPU_NS].map(ColumnDef::column);
        let mut others = Others::among(&telemetry);
        let row = |second: u64| {
            let cpu_ns = 7 + (second as f64 * share * 1e9) as u64;
            vec![Some(Value::Text("cc1".to_owned())), Some(Value::Count(cpu_ns))]
        };
        (0..60).filter_map(|second| others.warning(second * 1_000_000, &row(second))).collect()
    }

    #[test]
    fn a_busy_program_is_warned_about_once_per_trial() {
        assert_eq!(warnings(0.4), ["programs outside of the run take 40 % of a CPU, cc1 most of it"]);
        assert!(warnings(0.2).is_empty());
    }

    #[test]
    fn without_a_reading_nothing_is_said() {
        let mut others = Others::among(&[]);
        assert_eq!(others.warning(9_000_000, &Vec::new()), None);
    }
}

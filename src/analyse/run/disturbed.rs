//! Disturbed trials: which were repeated, which of the two counts, and whether the machine is ever quiet.

use crate::analyse::case::cpu_use::percent;
use crate::analyse::findings::SetAside;
use crate::analyse::findings::remark::{Remark, Weight};
use crate::analyse::trial::rates::rate_of;
use crate::record::trial::{CpuTaken, Outcome, TrialRecord};
use crate::stats::disturbance::{MOST_OTHERS, MOST_STOLEN, TakenShares, may_repeat, most_repeats};

/// CPU time taken by others in a trial; `None` if not counted.
fn taken(counted: Option<CpuTaken>) -> Option<TakenShares> {
    counted.map(|c| TakenShares::of(c.elapsed_us, c.cpus_ns, c.stolen_ns, c.others_ns))
}

#[derive(Debug, Clone, Default)]
pub struct Disturbed {
    /// Disturbed trials that count all the same.
    pub counting: u32,
    set_aside: Vec<SetAside>,
}

impl Disturbed {
    pub fn add(&mut self, record: &TrialRecord) {
        let is_disturbed = taken(record.cpu_taken).is_some_and(TakenShares::is_disturbed);
        self.counting += u32::from(is_disturbed && record.outcome == Outcome::Measured);
    }

    pub fn add_set_aside(&mut self, record: &TrialRecord) {
        let taken = taken(record.cpu_taken);
        let why = match (&record.outcome, taken) {
            (Outcome::NotRun { reason, .. }, _) => format!("the repeat failed: {reason}"),
            (Outcome::Measured, None) => "CPU use of other programs was not counted".to_owned(),
            (Outcome::Measured, Some(taken)) => {
                let others = (taken.others > MOST_OTHERS)
                    .then(|| format!("other programs used {} of one CPU", percent(taken.others)));
                let stolen = (taken.stolen > MOST_STOLEN)
                    .then(|| format!("other guests got {} of the CPU time", percent(taken.stolen)));
                others.into_iter().chain(stolen).collect::<Vec<_>>().join("; ")
            }
        };
        let measures = record.counts.iter().flat_map(|counts| &counts.measures);
        self.set_aside.push(SetAside {
            case: record.case.id.clone(),
            trial: record.trial,
            started: record.started.clone(),
            is_repeat: record.is_repeat,
            rate: measures.into_iter().find_map(rate_of),
            others: taken.map(|taken| taken.others),
            stolen: taken.map(|taken| taken.stolen),
            why,
        });
    }

    /// Remarks on one case.
    pub fn of_case(&self, case: &str) -> Vec<Remark> {
        let of_case = self.set_aside.iter().filter(|aside| aside.case == case);
        let remark = |aside: &SetAside| {
            let (words, ending) = if aside.is_repeat {
                ("the repeat of a disturbed trial was no better: the first one counts", "the first one counts")
            } else {
                ("a disturbed trial was repeated at the end of its block: the repeat counts", "the repeat counts")
            };
            let which = if aside.is_repeat { "its repeat is set aside" } else { "set aside and repeated" };
            let own = format!("trial {}: {which} ({}); {ending}", aside.trial, aside.why);
            Remark::plain(Weight::Disturbed, words).alone(own)
        };
        of_case.map(remark).collect()
    }

    /// Remark on a run with this many planned trials: whether repeats stopped before every disturbed trial had one.
    pub fn of_run(&self, planned: u32) -> Option<Remark> {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let repeats = count(self.set_aside.len());
        let in_vain = count(self.set_aside.iter().filter(|aside| aside.is_repeat && aside.rate.is_some()).count());
        if self.counting == 0 || most_repeats(planned) == 0 || may_repeat(planned, repeats, in_vain) {
            return None;
        }
        let text = format!(
            "this machine is too busy: {} of {planned} counted trials were disturbed (other programs above {} of one CPU, \
             or other guests above {} of the CPU time); {in_vain} of {repeats} repeats as well, so they stopped",
            self.counting,
            percent(MOST_OTHERS),
            percent(MOST_STOLEN),
        );
        Some(Remark::plain(Weight::Disturbed, text))
    }

    pub fn into_set_aside(self) -> Vec<SetAside> {
        self.set_aside
    }
}

//! Time left of a run, from its events alone: live, and from the run folder.
//!
//! A trial is expected to take as long as earlier ones of its case. A case without a finished trial takes its initial
//! estimate, scaled by the ratio that other cases showed. Time already spent in the current trial is subtracted, so the
//! estimated end does not move while all goes as before. Data and images that are made once do not count for a trial. A
//! trial that takes longer than expected counts with what it took so far. One in turns counts, after each round, with
//! what its turns took, weighted by the share that is done. So the time left does not jump when the trial ends.

use crate::record::case::TrialKey;
use crate::record::event::{CaseLeft, Event, Stamped, Step};
use std::collections::BTreeMap;

/// Estimate from the events so far.
#[derive(Debug, Clone, Default)]
pub struct TimeLeft {
    /// Trials of this session, and the number that have ended.
    pub trials: u32,
    pub ended: u32,
    /// The current trial.
    pub current: Option<TrialUnderWay>,
    /// The round of turns under way, from 1, and the number of rounds.
    pub round: Option<(u32, u32)>,
    /// Trials that wait while the current one has its turn.
    waiting: Vec<TrialUnderWay>,
    cases: BTreeMap<String, CaseTimes>,
    /// Time expected for one-time work, and spent on it.
    once_us: u64,
    once_spent_us: u64,
}

/// The current trial.
#[derive(Debug, Clone)]
pub struct TrialUnderWay {
    pub trial: TrialKey,
    pub step: Step,
    /// Start of the step, and its expected duration.
    pub step_began_us: u64,
    pub step_expected_us: Option<u64>,
    /// Spent on the trial itself before this step.
    spent_us: u64,
    /// Spent when its turns began, and when the round under way did.
    turns_us: Option<(u64, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct CaseTimes {
    planned: CaseLeft,
    ended: u32,
    took_us: u64,
}

impl CaseTimes {
    /// Expected time of a trial; `ratio` is that of other cases to their expected times.
    fn each_us(&self, ratio: f64) -> f64 {
        match self.ended {
            0 => self.planned.expected_us as f64 * ratio,
            ended => self.took_us as f64 / f64::from(ended),
        }
    }
}

impl TimeLeft {
    pub fn note(&mut self, event: &Stamped) {
        match &event.what {
            Event::RunStarted { trials, expected_us, cases, .. }
            | Event::RunResumed { left: trials, expected_us, cases, .. } => {
                let of_trials: u64 = cases.values().map(|case| u64::from(case.trials) * case.expected_us).sum();
                let each = cases.iter().map(|(id, &planned)| (id.clone(), CaseTimes { planned, ended: 0, took_us: 0 }));
                let (trials, once_us) = (*trials, expected_us.saturating_sub(of_trials));
                *self = TimeLeft { trials, once_us, cases: each.collect(), ..TimeLeft::default() };
            }
            Event::Looked { stopped, left, .. } => {
                self.trials = self.ended + left;
                for stopped in stopped {
                    if let Some(case) = self.cases.get_mut(&stopped.case) {
                        case.planned.trials = case.ended;
                    }
                }
            }
            Event::RepeatStarted { trial } => {
                self.trials += 1;
                if let Some(case) = self.cases.get_mut(&trial.case) {
                    case.planned.trials += 1;
                }
            }
            Event::StepStarted { trial, step, expected_us } => {
                self.end_step(event.at_us);
                self.waiting.extend(self.current.take());
                let place = self.waiting.iter().position(|waiting| waiting.trial == *trial);
                let before = place.map(|place| self.waiting.swap_remove(place));
                let (spent_us, turns_us) = before.map_or((0, None), |before| (before.spent_us, before.turns_us));
                let (trial, step, step_expected_us, step_began_us) = (trial.clone(), *step, *expected_us, event.at_us);
                self.current = Some(TrialUnderWay { trial, step, step_began_us, step_expected_us, spent_us, turns_us });
            }
            Event::RoundStarted { round, of } => {
                self.end_step(event.at_us);
                self.round = Some((*round, *of));
                for trial in self.current.iter_mut().chain(&mut self.waiting) {
                    let began_us = trial.turns_us.map_or(trial.spent_us, |(began_us, _)| began_us);
                    trial.turns_us = Some((began_us, trial.spent_us));
                }
            }
            Event::TrialDone { trial, .. } | Event::TrialNotRun { trial, .. } => {
                self.end_step(event.at_us);
                (self.ended, self.round) = (self.ended + 1, self.round.filter(|_| !self.waiting.is_empty()));
                if let (Some(current), Some(case)) = (self.current.take(), self.cases.get_mut(&trial.case)) {
                    case.ended += 1;
                    case.took_us += current.spent_us;
                }
            }
            _ => {}
        }
    }

    /// Counts the time of the current step until now.
    fn end_step(&mut self, now_us: u64) {
        let Some(current) = &mut self.current else { return };
        let took_us = now_us.saturating_sub(std::mem::replace(&mut current.step_began_us, now_us));
        match current.step {
            Step::Template | Step::Images | Step::Precondition => self.once_spent_us += took_us,
            _ => current.spent_us += took_us,
        }
    }

    /// Microseconds left; `None` if there is nothing left, or no estimate.
    pub fn left_us(&self, now_us: u64) -> Option<u64> {
        if self.ended >= self.trials {
            return None;
        }
        // As if those under way had ended, with what they will take.
        let mut then = self.clone();
        then.end_step(now_us);
        let (ratio, mut left_us) = (self.ratio(), 0.0);
        for trial in then.current.iter().chain(&then.waiting) {
            let Some(case) = then.cases.get_mut(&trial.trial.case) else { continue };
            let spent_us = trial.spent_us as f64;
            let whole_us = trial.whole_us(case.each_us(ratio), self.round).max(spent_us);
            left_us += whole_us - spent_us;
            (case.ended, case.took_us) = (case.ended + 1, case.took_us + whole_us as u64);
        }
        let (ratio, cases) = (then.ratio(), then.cases.values());
        let trials = cases.map(|case| f64::from(case.planned.trials.saturating_sub(case.ended)) * case.each_us(ratio));
        left_us += trials.sum::<f64>();
        let untimed = self.cases.values().filter(|case| case.ended == 0).count() as f64;
        let once_us = then.once_us.saturating_sub(then.once_spent_us) as f64;
        Some((left_us + once_us * untimed / self.cases.len().max(1) as f64) as u64)
    }

    /// Time of the trials that ended, by what was expected.
    fn ratio(&self) -> f64 {
        let ended = self.cases.values().filter(|case| case.ended > 0);
        let (took, expected) = ended.fold((0, 0), |(took, expected), case| {
            (took + case.took_us, expected + u64::from(case.ended) * case.planned.expected_us)
        });
        if expected > 0 { took as f64 / expected as f64 } else { 1.0 }
    }
}

impl TrialUnderWay {
    /// Time that the trial is expected to take: in turns, as long as those so far for the rounds that are done, the rest as expected.
    fn whole_us(&self, expected_us: f64, round: Option<(u32, u32)>) -> f64 {
        round.zip(self.turns_us).map_or(expected_us, |((round, of), (began, now))| {
            let left = 1.0 - f64::from(round.saturating_sub(1)) / f64::from(of);
            left * expected_us + (1.0 - left) * began as f64 + now.saturating_sub(began) as f64
        })
    }
}

/// Time left for display, no more precise than the estimate: `40 s`, `12 min`, `2 h 5 min`.
pub fn rounded(left_us: u64) -> String {
    let seconds = left_us.div_ceil(1_000_000);
    let minutes = seconds.div_ceil(60);
    match seconds {
        0..=20 => format!("{seconds} s"),
        21..=119 => format!("{} s", seconds.div_ceil(5) * 5),
        120..=7199 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const S: u64 = 1_000_000;

    fn key(case: &str, trial: u32) -> TrialKey {
        TrialKey { case: case.into(), trial }
    }

    /// Simulates, second by second, a run whose estimate was `expected` seconds per trial: `(second, seconds left)`
    /// after each trial that has ended by then.
    fn play(expected: u64, trials: &[(&str, u64)], once: u64) -> Vec<(usize, u64, u64)> {
        let mut cases = BTreeMap::new();
        for (case, _) in trials {
            let left = CaseLeft { trials: 0, expected_us: expected * S };
            cases.entry((*case).to_owned()).or_insert(left).trials += 1;
        }
        let mut estimate = TimeLeft::default();
        let mut said = Vec::new();
        let mut now = 5000;
        let count = u32::try_from(trials.len()).unwrap();
        let expected_us = expected * S * trials.len() as u64;
        let started = Event::RunStarted { run: "r".into(), trials: count, expected_us, most_repeats: 0, cases };
        estimate.note(&Stamped { at_us: now * S, what: started });
        for (n, (case, seconds)) in trials.iter().enumerate() {
            let trial = key(case, u32::try_from(n).unwrap());
            let mut step = |now: u64, step| {
                let what = Event::StepStarted { trial: trial.clone(), step, expected_us: None };
                estimate.note(&Stamped { at_us: now * S, what });
            };
            if n == 0 {
                step(now, Step::Template);
                now += once;
            }
            step(now, Step::Measure);
            for _ in 0..*seconds {
                now += 1;
                said.push((n, now, estimate.left_us(now * S).unwrap().div_ceil(S)));
            }
            let done = Event::TrialDone { trial, wall_us: 0, measured_us: 0, rate: None, full_after_us: None };
            estimate.note(&Stamped { at_us: now * S, what: done });
        }
        assert_eq!(estimate.left_us(now * S), None);
        said
    }

    #[test]
    fn trials_in_turns_have_their_own_times() {
        let mut estimate = TimeLeft::default();
        let left = CaseLeft { trials: 2, expected_us: 20 * S };
        let cases = ["a", "b"].map(|case| (case.to_owned(), left)).into();
        let started = Event::RunStarted { run: String::new(), trials: 4, expected_us: 80 * S, most_repeats: 0, cases };
        estimate.note(&Stamped { at_us: 0, what: started });
        let mut at_us = 0;
        for turn in 0..10 {
            let trial = key(["a", "b"][turn % 2], 1);
            let what = Event::StepStarted { trial, step: Step::Measure, expected_us: None };
            estimate.note(&Stamped { at_us, what });
            at_us += 4 * S;
        }
        assert_eq!(estimate.left_us(at_us), Some(40 * S), "both trials of the block have taken their time");
        for case in ["a", "b"] {
            let (trial, step) = (key(case, 1), Step::Store);
            let what = Event::StepStarted { trial: trial.clone(), step, expected_us: None };
            estimate.note(&Stamped { at_us, what });
            let done =
                Event::TrialDone { trial, wall_us: 20 * S, measured_us: 12 * S, rate: None, full_after_us: None };
            estimate.note(&Stamped { at_us, what: done });
        }
        assert_eq!(estimate.left_us(at_us), Some(40 * S));
    }

    #[test]
    fn turns_that_take_longer_are_seen_before_their_trial_ends() {
        // Four times as long as expected: 20 s a trial, of which 10 s are ten turns.
        let mut estimate = TimeLeft::default();
        let left = CaseLeft { trials: 3, expected_us: 20 * S };
        let cases = ["a", "b"].map(|case| (case.to_owned(), left)).into();
        let started = Event::RunStarted { run: String::new(), trials: 6, expected_us: 120 * S, most_repeats: 0, cases };
        let mut said = Vec::new();
        let mut note = |at_us: u64, what| {
            estimate.note(&Stamped { at_us, what });
            said.push((at_us + estimate.left_us(at_us).unwrap_or(0)) / S);
        };
        note(0, started);
        let mut at_us = 0;
        let step = |case, step| Event::StepStarted { trial: key(case, 1), step, expected_us: None };
        for case in ["a", "b"] {
            note(at_us, step(case, Step::Load));
            at_us += 10 * S;
        }
        for round in 1..=10 {
            note(at_us, Event::RoundStarted { round, of: 10 });
            for case in ["a", "b"] {
                note(at_us, step(case, Step::Measure));
                at_us += 4 * S;
            }
        }
        for case in ["a", "b"] {
            note(at_us, step(case, Step::Store));
            let trial = key(case, 1);
            note(at_us, Event::TrialDone { trial, wall_us: 0, measured_us: 0, rate: None, full_after_us: None });
        }
        assert_eq!((said[0], said[said.len() - 1]), (120, 300));
        let jumps = said.windows(2).map(|pair| pair[1].abs_diff(pair[0])).max();
        assert!(jumps <= Some(36), "a fifth of what is added: {said:?}");
    }

    #[test]
    fn an_overlong_trial_adds_to_the_others_before_it_ends() {
        let said = play(10, &[("a", 60), ("a", 60), ("a", 60)], 0);
        let of_first: Vec<u64> = said.iter().filter(|(n, ..)| *n == 0).map(|(.., left)| *left).collect();
        assert_eq!(
            (of_first[9], of_first[29], of_first[59]),
            (20, 60, 120),
            "two more trials as long as this one so far"
        );
    }

    #[test]
    fn after_three_equal_trials_time_left_never_climbs_a_tenth() {
        let mut random = ChaCha8Rng::seed_from_u64(20_261_122);
        for _ in 0..200 {
            let (seconds, expected) = (random.random_range(8..300), random.random_range(4..600));
            let jitter = |random: &mut ChaCha8Rng| seconds + random.random_range(0..=seconds / 10);
            let cases = ["a", "b", "c", "d"];
            let trials: Vec<(&str, u64)> = (0..24).map(|n| (cases[n % 4], jitter(&mut random))).collect();
            let said = play(expected, &trials, random.random_range(0..600));
            let (_, at, left) = said.iter().find(|(n, ..)| *n == 3).unwrap();
            for (n, now, then) in said.iter().filter(|(n, ..)| *n >= 3) {
                let late = (now + then) as f64 / (at + left) as f64;
                let later = (now + then).saturating_sub(at + left) as f64 / *left as f64;
                assert!(late < 1.1 && later < 0.1, "trial {n}: {left} s at {at}, then {then} s at {now}");
            }
        }
    }

    #[test]
    fn the_estimated_end_is_constant_within_a_typical_trial() {
        let said = play(10, &[("a", 60), ("a", 60), ("a", 60), ("a", 60)], 30);
        let ends: Vec<u64> = said.iter().filter(|(n, ..)| *n > 0).map(|(_, now, left)| now + left).collect();
        assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
    }

    #[test]
    fn kinds_of_trials_keep_their_own_times() {
        // After one trial of each, the time left is known: two of 100 s and one of 10 s.
        let said = play(20, &[("slow", 100), ("quick", 10), ("slow", 100), ("slow", 100), ("quick", 10)], 0);
        let (_, now, left) = *said.iter().find(|(n, ..)| *n == 2).unwrap();
        assert_eq!((now, left), (5111, 209));
    }

    #[test]
    fn time_left_is_said_no_finer_than_it_is_known() {
        let said = |seconds: u64| rounded(seconds * S);
        assert_eq!([0, 7, 33, 118].map(said), ["0 s", "7 s", "35 s", "120 s"]);
        assert_eq!([120, 121, 3600, 7500].map(said), ["2 min", "3 min", "60 min", "2 h 5 min"]);
    }
}

//! What a person sees while a run goes on: a bar with the time left, or events as JSON, or plain lines.

use super::out;
use crate::record::event::{CaseStopped, Event, Stamped};
use crate::units::{Bytes, Micros, grouped, significant};
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Mutex;

/// Shows events as they come.
pub struct Progress {
    json: bool,
    bar: Option<ProgressBar>,
    state: Mutex<ProgressState>,
}

/// What the time left is estimated from.
#[derive(Default)]
struct ProgressState {
    trials: u32,
    ended: u32,
    /// What the plan was expected to take, and what the trials that ended took.
    expected_us: u64,
    begun_us: u64,
}

impl ProgressState {
    /// The estimate of the plan until a trial has ended; then what trials have taken so far, for each that is left.
    /// Empty where nothing is left.
    fn left(&self, now_us: u64) -> String {
        let gone = now_us.saturating_sub(self.begun_us);
        let left = match (self.ended, self.trials.saturating_sub(self.ended)) {
            (_, 0) => return String::new(),
            (0, _) => self.expected_us.saturating_sub(gone),
            (ended, trials) => gone / u64::from(ended) * u64::from(trials),
        };
        format!("  (about {} left)", Micros(left / 1_000_000 * 1_000_000))
    }
}

impl Progress {
    /// `json`: one event a line on standard output. Else a bar on a terminal, plain lines elsewhere.
    #[must_use]
    pub fn new(json: bool, terminal: bool) -> Progress {
        let bar = (!json && terminal).then(|| {
            let bar = ProgressBar::new(0);
            // The template is a constant; were it wrong, the default style would be shown.
            if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len}  {wide_msg}") {
                bar.set_style(style);
            }
            bar
        });
        Progress { json, bar, state: Mutex::default() }
    }

    /// Shows one event.
    pub fn show(&self, event: &Stamped) {
        if self.json {
            if let Ok(line) = serde_json::to_string(event) {
                // A standard output that takes no more does not end the run.
                drop(out::line(&line));
            }
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.note(&mut state, event);
        let line = described(&event.what);
        let left = state.left(event.at_us);
        match (&self.bar, line) {
            (Some(bar), Some(ProgressLine::Passing(text))) => bar.set_message(format!("{text}{left}")),
            (Some(bar), Some(ProgressLine::Lasting(text))) => bar.suspend(|| out::remark(&text)),
            (None, Some(ProgressLine::Lasting(text))) => out::remark(&format!("{text}{left}")),
            (None, Some(ProgressLine::Passing(_))) | (_, None) => {}
        }
    }

    fn note(&self, state: &mut ProgressState, event: &Stamped) {
        match &event.what {
            Event::RunStarted { trials, expected_us, .. } | Event::RunResumed { left: trials, expected_us, .. } => {
                *state = ProgressState { trials: *trials, ended: 0, expected_us: *expected_us, begun_us: event.at_us };
                if let Some(bar) = &self.bar {
                    bar.set_length(u64::from(*trials));
                }
            }
            Event::Looked { left, .. } => {
                state.trials = state.ended + left;
                if let Some(bar) = &self.bar {
                    bar.set_length(u64::from(state.trials));
                }
            }
            Event::RepeatStarted { .. } => {
                state.trials += 1;
                if let Some(bar) = &self.bar {
                    bar.inc_length(1);
                }
            }
            Event::TrialDone { .. } | Event::TrialNotRun { .. } => {
                state.ended += 1;
                if let Some(bar) = &self.bar {
                    bar.inc(1);
                }
            }
            _ => {}
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A number with its noun: `1 trial`, `4 trials`.
#[must_use]
pub fn count(n: u32, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// What repeats of disturbed trials may add to an estimate.
fn repeats(most: u32) -> String {
    if most == 0 { String::new() } else { format!(", plus up to {} of disturbed trials", count(most, "repeat")) }
}

/// A line that stays on the screen, or one that the next replaces.
enum ProgressLine {
    Lasting(String),
    Passing(String),
}

/// "after block 4: 3 pairs decided, 2 cases stopped (...), at most 12 trials left".
fn looked(block: u32, decided: usize, stopped: &[CaseStopped], left: u32) -> String {
    let mut text =
        format!("after block {block}: {} decided", count(u32::try_from(decided).unwrap_or(u32::MAX), "pair"));
    for case in stopped {
        text.push_str(&format!("\n  {:<52} stopped: {}", case.case, case.reason));
    }
    let left =
        if left == 0 { "nothing is left to do".to_owned() } else { format!("at most {} left", count(left, "trial")) };
    format!("{text}\n  {left}")
}

fn described(event: &Event) -> Option<ProgressLine> {
    Some(match event {
        Event::RunStarted { trials, expected_us, most_repeats, .. } => {
            let trials = count(*trials, "trial");
            let repeats = repeats(*most_repeats);
            ProgressLine::Lasting(format!("{trials} to measure, about {}{repeats}", Micros(*expected_us)))
        }
        Event::RunResumed { done, left, expected_us, most_repeats, .. } => match left {
            0 if *most_repeats == 0 => {
                ProgressLine::Lasting("all trials are complete: nothing is left to do".to_owned())
            }
            left => {
                let done = count(*done, "trial");
                let repeats = repeats(*most_repeats);
                let time = if *left == 0 { String::new() } else { format!(", about {}", Micros(*expected_us)) };
                ProgressLine::Lasting(format!("{done} complete, {left} left{time}{repeats}"))
            }
        },
        Event::RepeatStarted { trial } => ProgressLine::Lasting(format!(
            "  {:<52} #{}  disturbed by other programs or guests: repeated",
            trial.case, trial.trial
        )),
        Event::StepStarted { trial, step, .. } => {
            ProgressLine::Passing(format!("{} #{}: {}", trial.case, trial.trial, step.doing()))
        }
        Event::ImagesWritten { trial, done_bytes, of_bytes } => {
            let share = done_bytes.saturating_mul(100).checked_div(*of_bytes).unwrap_or(100);
            let (case, of) = (&trial.case, Bytes(*of_bytes));
            ProgressLine::Passing(format!("{case} #{}: writing the images in full, {share} % of {of}", trial.trial))
        }
        Event::Second { trial, second, done, latency_us_p99 } => {
            let p99 = latency_us_p99.map_or_else(|| "-".to_owned(), |us| Micros(us).to_string());
            ProgressLine::Passing(format!(
                "{} #{}: second {second}, {}/s, p99 {p99}",
                trial.case,
                trial.trial,
                grouped(*done)
            ))
        }
        Event::TrialDone { trial, rate, wall_us, .. } => {
            let rate = rate.map_or_else(|| "no rate".to_owned(), |rate| format!("{}/s", significant(rate)));
            ProgressLine::Lasting(format!("  {:<52} #{}  {rate:>10}  in {}", trial.case, trial.trial, Micros(*wall_us)))
        }
        Event::TrialNotRun { trial, reason, .. } => ProgressLine::Lasting(format!(
            "  {:<52} #{}  NOT RUN: {}",
            trial.case,
            trial.trial,
            out::harmless_lines(reason)
        )),
        Event::RunExtended { from, to } => {
            ProgressLine::Lasting(format!("extended from {from} to {to} blocks; ranks are decided by e-values"))
        }
        Event::Looked { block, decided, stopped, left, .. } => {
            ProgressLine::Lasting(looked(*block, decided.len(), stopped, *left))
        }
        Event::Warning { message } => ProgressLine::Lasting(format!("warning: {}", out::harmless(message))),
        // The signal's handler has said it, at once.
        Event::TrialStarted { .. } | Event::Interrupted | Event::RunDone { .. } => return None,
    })
}

//! Progress output of a run: a line with the time left, JSON events, or plain lines.

use super::estimate::{TimeLeft, rounded};
use super::out;
use crate::host::threads;
use crate::host::time::{sleep, time_of_day, wall_us};
use crate::record::case::TrialKey;
use crate::record::event::{CaseStopped, Event, Stamped, Step};
use crate::units::{Bytes, Micros, count, grouped, significant};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Width of the line on a terminal that does not report its own.
const USUAL_COLUMNS: usize = 80;
/// Columns for a case's name in a lasting line, if there is room.
const NAME_COLUMNS: usize = 52;
/// Columns for the rest of such a line.
const BESIDE_NAME: usize = 32;
/// Minimum width of a name; a shorter one is left out.
const LEAST_NAME: usize = 8;
/// Interval at which the line is redrawn, so that the time left advances without events.
const REDRAWN: Duration = Duration::from_secs(1);
/// Longest time without a line where lines stay, microseconds.
const SILENT_US: u64 = 10_000_000;

/// Displays events as they arrive.
pub struct ProgressLine {
    json: bool,
    bar: Option<ProgressBar>,
    now: Arc<Mutex<Now>>,
}

/// Content of the line.
#[derive(Default)]
struct Now {
    estimate: TimeLeft,
    /// Rate and latency of the last second, and the current activity.
    figures: String,
    doing: String,
    /// When a line that stays was last printed.
    said_us: u64,
}

impl ProgressLine {
    /// `json`: one event per line on standard output. Otherwise a line that is replaced on a terminal, plain lines
    /// elsewhere.
    pub fn new(json: bool, terminal: bool) -> ProgressLine {
        let now: Arc<Mutex<Now>> = Arc::default();
        let bar = (!json && terminal).then(|| {
            let bar = ProgressBar::new(0);
            let shown = Arc::clone(&now);
            // The template is a constant; if it were wrong, the default style would be used.
            if let Ok(style) = ProgressStyle::with_template("{line}") {
                bar.set_style(style.with_key("line", move |_: &ProgressState, out: &mut dyn Write| {
                    let columns = out::stderr_columns().unwrap_or(USUAL_COLUMNS);
                    let line = lock(&shown).line(columns, wall_us());
                    // Writing to a string cannot fail.
                    out.write_str(&line).unwrap_or_default();
                }));
            }
            bar.enable_steady_tick(REDRAWN);
            bar
        });
        if !json && !terminal {
            speak_up(&now);
        }
        ProgressLine { json, bar, now }
    }

    pub fn show(&self, event: &Stamped) {
        if self.json {
            if let Ok(line) = serde_json::to_string(event) {
                // A standard output that cannot be written does not end the run.
                drop(out::line(&line));
            }
            return;
        }
        let left = lock(&self.now).note(event);
        let columns = out::stderr_columns().filter(|_| self.bar.is_some());
        match lasting(&event.what, columns, if self.bar.is_some() { "" } else { &left }) {
            Some(line) => self.say(&line),
            None => self.bar.iter().for_each(ProgressBar::tick),
        }
    }

    /// A line that stays.
    pub fn say(&self, text: &str) {
        lock(&self.now).said_us = wall_us();
        match &self.bar {
            Some(bar) => bar.suspend(|| out::remark(text)),
            None => out::remark(text),
        }
    }

    /// Removes the line, or prints no more of them.
    pub fn finish(&self) {
        *lock(&self.now) = Now::default();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Prints the line whenever nothing was printed for a while, until the display is dropped.
fn speak_up(now: &Arc<Mutex<Now>>) {
    let now = Arc::downgrade(now);
    // Where no thread can be had, the lines about trials remain.
    drop(threads::begin_apart("progress", move || {
        while let Some(now) = now.upgrade() {
            let due = lock(&now).due(wall_us());
            due.iter().for_each(|line| out::remark(line));
            drop(now);
            sleep(REDRAWN);
        }
    }));
}

fn lock(now: &Mutex<Now>) -> MutexGuard<'_, Now> {
    now.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Now {
    /// Handles an event. Returns the time left for a plain line; empty unless a trial has ended.
    fn note(&mut self, event: &Stamped) -> String {
        self.estimate.note(event);
        match &event.what {
            Event::StepStarted { step, .. } => {
                (self.figures, self.doing) = (String::new(), step.doing().to_owned());
            }
            Event::CrashAsked { .. } => {
                (self.figures, self.doing) = (String::new(), "killing the guest and booting it again".to_owned());
            }
            Event::VerdictStarted { case } => self.doing = format!("recording commits on {case}"),
            Event::VerdictReached { .. } => self.doing = String::new(),
            Event::ImagesWritten { done_bytes, of_bytes, .. } => {
                self.doing = format!("writing images, {}", share(*done_bytes, *of_bytes));
            }
            Event::DriveFilled { drive, done_bytes, of_bytes, .. } => {
                self.doing = format!("filling {drive}, {}", share(*done_bytes, *of_bytes));
            }
            Event::DriveRound { drive, number, most_rounds, round, .. } => {
                let rate = grouped(round.rate().round() as u64);
                self.doing = format!("preconditioning {drive}, round {number} of at most {most_rounds}: {rate}/s");
            }
            Event::Second { second, done, latency_us_p99, .. } => {
                let p99 = latency_us_p99.map_or_else(|| "-".to_owned(), |us| Micros(us).to_string());
                self.figures = format!("{}/s, p99 {p99}", grouped(*done));
                self.doing = format!("second {second}");
                let expected = self.estimate.current.as_ref().and_then(|current| current.step_expected_us);
                if let Some(of) = expected.map(|us| us.div_ceil(1_000_000)).filter(|of| of >= second) {
                    self.doing = format!("second {second} of {of}");
                }
            }
            Event::TrialDone { .. } | Event::TrialNotRun { .. } => {
                (self.figures, self.doing) = (String::new(), String::new());
                return self.left(event.at_us).map_or_else(String::new, |left| format!(", {left}"));
            }
            _ => {}
        }
        String::new()
    }

    /// `12 min left (14:32)`, with the estimated time of day of the end.
    fn left(&self, now_us: u64) -> Option<String> {
        let left_us = self.estimate.left_us(now_us)?;
        Some(format!("{} left ({})", rounded(left_us), time_of_day(now_us.saturating_add(left_us), now_us)))
    }

    /// The line that stays, if it is due: "  trials 1/16, 12 min left (14:32), warming up 3 of 10 s, xfs.rw, block 2".
    fn due(&mut self, now_us: u64) -> Option<String> {
        if self.estimate.trials == 0 || now_us.saturating_sub(self.said_us) < SILENT_US {
            return None;
        }
        self.said_us = now_us;
        let current = self.estimate.current.as_ref().map(|it| format!("{}, block {}", it.trial.case, it.trial.trial));
        let parts: Vec<String> = self.parts(now_us).into_iter().chain(current).collect();
        Some(format!("  trials {}", parts.join(", ")))
    }

    /// Trials, time left, rate, activity, as far as known.
    fn parts(&self, now_us: u64) -> Vec<String> {
        let (ended, trials) = (self.estimate.ended, self.estimate.trials);
        let trials = (trials > 0).then(|| format!("{ended}/{trials}"));
        let parts = [trials, self.left(now_us), Some(self.figures.clone()), Some(self.doing_for(now_us))];
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect()
    }

    /// The line for this width: time left and rate first, then the case's name in the remaining space.
    fn line(&self, columns: usize, now_us: u64) -> String {
        let line = self.parts(now_us).join("  ");
        // The last column stays free: some terminals wrap when it is written.
        let room = columns.saturating_sub(1);
        let name = self.estimate.current.as_ref().map(|current| named(&current.trial)).unwrap_or_default();
        let rest = room.saturating_sub(line.chars().count() + 2);
        if name.is_empty() || rest < LEAST_NAME {
            return shortened(&line, room);
        }
        format!("{line}  {}", shortened(&name, rest))
    }

    /// Current activity, with the elapsed time unless the figures show it.
    fn doing_for(&self, now_us: u64) -> String {
        let Some(current) = &self.estimate.current else { return self.doing.clone() };
        match (current.step, self.estimate.round) {
            (Step::Measure, Some((round, of))) => return format!("round {round} of {of}"),
            (Step::Template | Step::Load | Step::Age | Step::WarmUp, _) => {}
            _ => return self.doing.clone(),
        }
        let seconds = now_us.saturating_sub(current.step_began_us) / 1_000_000;
        let of = current.step_expected_us.map(|us| us.div_ceil(1_000_000)).filter(|of| *of >= seconds);
        of.map_or_else(|| format!("{} {seconds} s", self.doing), |of| format!("{} {seconds} of {of} s", self.doing))
    }
}

/// "71 % of 4 GiB".
fn share(done_bytes: u64, of_bytes: u64) -> String {
    let percent = done_bytes.saturating_mul(100).checked_div(of_bytes).unwrap_or(100);
    format!("{percent} % of {}", Bytes(of_bytes))
}

/// ", about 12 min"; empty without an estimate.
fn about(expected_us: u64) -> String {
    if expected_us == 0 { String::new() } else { format!(", about {}", rounded(expected_us)) }
}

/// Time that repeats of disturbed trials may add to an estimate.
fn repeats(most: u32) -> String {
    if most == 0 { String::new() } else { format!(", plus up to {} of disturbed trials", count(most, "repeat")) }
}

/// "after block 4: 3 pairs decided, 2 cases stopped (...), at most 12 trials left".
fn looked(block: u32, decided: usize, stopped: &[CaseStopped], left: u32) -> String {
    let mut text = format!("after block {block}: {} decided", count(decided, "pair"));
    text.extend(stopped.iter().map(|case| format!("\n  {:<52} stopped: {}", case.case, case.reason)));
    let left =
        if left == 0 { "nothing is left to do".to_owned() } else { format!("at most {} left", count(left, "trial")) };
    format!("{text}\n  {left}")
}

/// A trial: `ext4.tpcb #2`.
pub fn named(trial: &TrialKey) -> String {
    format!("{} #{}", trial.case, trial.trial)
}

/// A text shortened to so many columns by cutting its middle.
fn shortened(text: &str, columns: usize) -> String {
    let length = text.chars().count();
    if length <= columns || columns < 3 {
        return text.chars().take(columns).collect();
    }
    let tail = (columns - 1) / 2;
    let head = columns - 1 - tail;
    text.chars().take(head).chain(['…']).chain(text.chars().skip(length - tail)).collect()
}

/// The lasting line of an event; on a terminal, no wider than that. `left` is said of a trial that ended.
fn lasting(event: &Event, columns: Option<usize>, left: &str) -> Option<String> {
    Some(match event {
        Event::RunStarted { trials, expected_us, most_repeats, .. } => {
            let repeats = repeats(*most_repeats);
            format!("{} to measure{}{repeats}", count(*trials, "trial"), about(*expected_us))
        }
        Event::RunResumed { done, left: 0, most_repeats: 0, .. } => {
            format!("complete: {} measured, nothing is left to do", count(*done, "trial"))
        }
        Event::RunResumed { done, left, expected_us, most_repeats, next_guest, .. } => {
            let repeats = repeats(*most_repeats);
            let guest = next_guest.as_ref().map_or_else(String::new, |guest| format!("in guest {guest}: "));
            format!("{guest}{} complete, {left} left{}{repeats}", count(*done, "trial"), about(*expected_us))
        }
        Event::RepeatStarted { trial } => {
            format!("  {}  the disk was not in its usual state around it: repeated", in_column(trial, columns))
        }
        Event::RunExtended { from, to } => {
            format!("extended from {from} to {to} blocks; ranks are decided by e-values")
        }
        Event::Looked { block, decided, stopped, left, .. } => looked(*block, decided.len(), stopped, *left),
        Event::TrialDone { trial, rate, wall_us, full_after_us, .. } => {
            let rate = rate.map_or_else(|| "no rate".to_owned(), |rate| format!("{}/s", significant(rate)));
            let full = full_after_us.map_or_else(String::new, |us| format!(", FULL after {}", Micros(us)));
            format!("  {}  {rate:>10}  in {}{full}{left}", in_column(trial, columns), Micros(*wall_us))
        }
        Event::VerdictReached { case, verdict } => {
            format!("  {case}  a power cut: {}", out::harmless_lines(&verdict.to_string()))
        }
        Event::TrialNotRun { trial, reason, full_after_us, .. } => {
            let how = full_after_us.map_or_else(|| "NOT RUN".to_owned(), |us| format!("FULL after {}", Micros(us)));
            // The reason may be a tool's output, of several lines.
            format!("  {}  {how}{left}: {}", in_column(trial, columns), out::harmless_lines(reason))
        }
        Event::Warning { message } => format!("warning: {}", out::harmless_lines(message)),
        // The signal handler has already reported the interrupt.
        _ => return None,
    })
}

/// A trial's name, padded to a common column.
fn in_column(trial: &TrialKey, columns: Option<usize>) -> String {
    let width =
        columns.map_or(NAME_COLUMNS, |columns| columns.saturating_sub(BESIDE_NAME).clamp(LEAST_NAME, NAME_COLUMNS));
    format!("{:<width$} #{}", shortened(&trial.case, width), trial.trial)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::event::CaseLeft;
    use std::collections::BTreeMap;

    const S: u64 = 1_000_000;
    const CASE: &str = "xfs.rw.wal_sync_method-open_datasync";

    fn trial() -> TrialKey {
        TrialKey { case: CASE.into(), trial: 1 }
    }

    /// State in the third second of a trial, of sixteen with an estimate of 45 s each.
    fn now() -> Now {
        let mut now = Now::default();
        let cases = BTreeMap::from([(CASE.to_owned(), CaseLeft { trials: 16, expected_us: 45 * S })]);
        let started = Event::RunStarted { run: "r".into(), trials: 16, expected_us: 720 * S, most_repeats: 0, cases };
        let step = Event::StepStarted { trial: trial(), step: Step::Measure, expected_us: Some(10 * S) };
        let second = Event::Second { trial: trial(), second: 3, done: 32_154, latency_us_p99: Some(1090) };
        for (at, what) in [(1, started), (1, step), (4, second)] {
            now.note(&Stamped { at_us: at * S, what });
        }
        now
    }

    #[test]
    fn the_line_fits_80_columns_with_time_left_first() {
        let line = now().line(80, 4 * S);
        let (left, rest) = line.split_once(" (").unwrap();
        assert_eq!(left, "0/16  12 min left");
        assert_eq!(&rest[5..], ")  32 154/s, p99 1.09 ms  second 3 of 10  xfs.rw…ync #1", "{line}");
        assert_eq!(line.chars().count(), 79);
    }

    #[test]
    fn names_are_whole_at_120_columns_and_dropped_at_40() {
        assert!(now().line(120, 4 * S).ends_with("  xfs.rw.wal_sync_method-open_datasync #1"));
        let narrow = now().line(40, 4 * S);
        assert!(narrow.starts_with("0/16  12 min left") && narrow.chars().count() == 39, "{narrow}");
    }

    #[test]
    fn an_overlong_measurement_is_not_shown_as_11_of_10() {
        let mut now = now();
        let what = Event::Second { trial: trial(), second: 11, done: 1, latency_us_p99: None };
        now.note(&Stamped { at_us: 12 * S, what });
        assert!(now.line(120, 12 * S).contains("1/s, p99 -  second 11  xfs"));
    }

    #[test]
    fn a_warm_up_says_how_far_it_is() {
        let mut now = now();
        let what = Event::StepStarted { trial: trial(), step: Step::WarmUp, expected_us: Some(90 * S) };
        now.note(&Stamped { at_us: 20 * S, what });
        assert!(now.line(120, 32 * S).contains("  warming up 12 of 90 s  "));
        assert!(now.line(120, 120 * S).contains("  warming up 100 s  "));
    }

    #[test]
    fn lines_that_stay_are_ten_seconds_apart_at_most() {
        let mut now = now();
        now.said_us = S;
        assert_eq!(now.due(10 * S), None);
        let line = now.due(11 * S).unwrap();
        assert!(line.starts_with("  trials 0/16, 12 min left ("), "{line}");
        let rest = "), 32 154/s, p99 1.09 ms, second 3 of 10, xfs.rw.wal_sync_method-open_datasync, block 1";
        assert!(line.ends_with(rest), "{line}");
        assert_eq!((now.due(20 * S), Now::default().due(99 * S)), (None, None));
        let what = Event::StepStarted { trial: trial(), step: Step::Load, expected_us: None };
        now.note(&Stamped { at_us: 20 * S, what });
        assert!(now.due(32 * S).unwrap().contains("), copying the data in 12 s, xfs.rw"));
    }

    #[test]
    fn a_turn_shows_its_round() {
        let mut now = now();
        now.note(&Stamped { at_us: 5 * S, what: Event::RoundStarted { round: 4, of: 10 } });
        assert!(now.line(120, 5 * S).contains("  round 4 of 10  xfs"), "{}", now.line(120, 5 * S));
    }

    #[test]
    fn a_tools_output_ends_its_line() {
        let reason = "mkfs.xfs failed:\n  cannot open".to_owned();
        let event = Event::TrialNotRun { trial: trial(), step: Step::Build, reason, full_after_us: None };
        let line = lasting(&event, None, ", 12 min left (14:32)").unwrap();
        assert!(line.ends_with("NOT RUN, 12 min left (14:32): mkfs.xfs failed:\n  cannot open"), "{line}");
    }

    #[test]
    fn a_line_that_stays_fits_80_columns() {
        let done = |full_after_us| Event::TrialDone {
            trial: trial(),
            wall_us: 125 * S,
            measured_us: 1,
            rate: Some(32_154.0),
            full_after_us,
        };
        let line = lasting(&done(None), Some(80), "").unwrap();
        assert!(line.chars().count() <= 80 && line.ends_with("#1    32 200/s  in 2 min 5 s"), "{line}");
        let line = lasting(&done(Some(31 * S)), None, "").unwrap();
        assert!(line.ends_with("in 2 min 5 s, FULL after 31 s"), "{line}");
        let (step, reason) = (Step::Age, "no room".to_owned());
        let full = Event::TrialNotRun { trial: trial(), step, reason, full_after_us: Some(9 * S) };
        let line = lasting(&full, None, "").unwrap();
        assert!(line.ends_with("FULL after 9 s: no room") && !line.contains("NOT RUN"), "{line}");
    }
}

//! `pgstrata status`: progress of a run, from the files of its folder alone.

use super::estimate::{TimeLeft, rounded};
use super::out;
use super::progress::named;
use crate::analyse::run::spread::blocks_held;
use crate::error::{EXIT_INCOMPLETE, Result};
use crate::host::time::{rfc3339, time_of_day, wall_us};
use crate::record::case::TrialKey;
use crate::record::event::{Event, Stamped};
use crate::report::text::{at_width, paragraph};
use crate::store::folder::RunFolder;
use crate::units::{Micros, count, significant};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Width of warnings.
const COLUMNS: u16 = 80;

/// Show the progress of a run: trials, time left, warnings
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata status results/2026-11-21-0241-which-filesystem    of an active, finished or killed run
  pgstrata status results/... --json | jq .left_us            for programs
  watch pgstrata status results/...                           from a second terminal

Reads only the run folder, so it works from any account and machine that can read it. Exit code: 0 the run is active or all \
trials are measured, 1 it has ended and some trials have no figures, 2 not a run folder, 5 the folder cannot be read.")]
pub struct Args {
    /// A run folder
    folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RunState {
    Running,
    Complete,
    /// Ended, but some trials have no figures.
    Incomplete,
    Interrupted,
    /// No process writes to it, and its end was not recorded.
    Killed,
}

/// Output of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct RunStatus {
    pub(super) run: String,
    pub(super) name: String,
    pub(super) state: RunState,
    /// Start of the first session, RFC 3339.
    pub(super) started: String,
    /// Its blocks of the plan, if they are spread over machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) blocks: Option<String>,
    /// True if it was merged from several runs.
    #[serde(skip)]
    pub(super) is_merged: bool,
    /// Hosts of its trials, and their kernels and servers, each once.
    #[serde(skip)]
    pub(super) hosts: BTreeSet<String>,
    #[serde(skip)]
    pub(super) software: BTreeSet<String>,
    pub(super) trials: usize,
    pub(super) measured: usize,
    /// Remaining trials: tried without figures, and damaged.
    pub(super) not_run: usize,
    pub(super) damaged: usize,
    /// The current or interrupted trial, and its step.
    pub(super) current: Option<CurrentTrial>,
    /// For an active run: microseconds left, and the estimated end, RFC 3339.
    pub(super) left_us: Option<u64>,
    pub(super) ends: Option<String>,
    /// The last measured trial, and its operations per second.
    pub(super) last: Option<LastTrial>,
    /// Warnings of the last session.
    pub(super) warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct CurrentTrial {
    pub(super) trial: TrialKey,
    pub(super) step: String,
    /// Time in the step so far, and its expected duration, microseconds.
    pub(super) since_us: u64,
    pub(super) expected_us: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct LastTrial {
    trial: TrialKey,
    rate: Option<f64>,
}

impl LastTrial {
    /// Its name and rate.
    pub(super) fn words(&self) -> String {
        let rate = self.rate.map_or_else(|| "no rate".to_owned(), |rate| format!("{}/s", significant(rate)));
        format!("{}, {rate}", named(&self.trial))
    }
}

/// Prints the status.
///
/// # Errors
/// If the folder is not a run folder or cannot be read.
pub fn run(args: &Args) -> Result<u8> {
    let folder = RunFolder::open(&args.folder)?;
    let now_us = wall_us();
    let status = status(&folder, now_us)?;
    out::json_or(args.json, &status, || shown(&status, &args.folder, now_us))?;
    Ok(if matches!(status.state, RunState::Running | RunState::Complete) { 0 } else { EXIT_INCOMPLETE })
}

/// Status of a run at a moment.
///
/// # Errors
/// If its events cannot be read.
pub(super) fn status(folder: &RunFolder, now_us: u64) -> Result<RunStatus> {
    // Before the events: a run that ends meanwhile then counts as running, not as killed.
    let (live, record) = (folder.is_live(), folder.record());
    let (mut measured, mut not_run, mut damaged) = (0, 0, 0);
    let (mut stored, mut hosts, mut software) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let events = folder.events()?;
    let due = record.due(events.iter().map(|event| &event.what));
    for key in &due {
        match folder.trial(key) {
            Ok(Some(trial)) => {
                stored.push(key);
                hosts.insert(trial.host.hostname.clone());
                software.insert(trial.host.kernel.clone());
                software.extend(trial.server.as_ref().map(|server| server.version.clone()));
                *(if trial.is_result() { &mut measured } else { &mut not_run }) += 1;
            }
            Ok(None) => {}
            Err(_) => damaged += 1,
        }
    }
    // In an active run, a trial may be stored an instant before its end is recorded.
    let lost = RunFolder::lost_events(&events, stored.into_iter()).filter(|_| !live);
    let mut estimate = TimeLeft::default();
    events.iter().for_each(|event| estimate.note(event));
    let state = match events.iter().rev().find(|event| !matches!(event.what, Event::Warning { .. })).map(|it| &it.what)
    {
        _ if live => RunState::Running,
        // An emptied file has no end either.
        Some(Event::RunDone { .. }) | None if measured == due.len() => RunState::Complete,
        Some(Event::RunDone { .. }) => RunState::Incomplete,
        Some(Event::Interrupted) => RunState::Interrupted,
        // No other guest was booted.
        Some(Event::HandedOver { .. }) => RunState::Killed,
        // Fail-fast records no end.
        _ if estimate.current.is_none() && estimate.ended > 0 && measured < due.len() => RunState::Incomplete,
        _ => RunState::Killed,
    };
    let left_us = estimate.left_us(now_us).filter(|_| live);
    let last = events.iter().rev().find_map(|event| match &event.what {
        Event::TrialDone { trial, rate, .. } => Some(LastTrial { trial: trial.clone(), rate: *rate }),
        _ => None,
    });
    let until_us = if live { now_us } else { events.last().map_or(now_us, |event| event.at_us) };
    let current = estimate.current.as_ref().map(|current| CurrentTrial {
        trial: current.trial.clone(),
        step: current.step.doing().to_owned(),
        since_us: until_us.saturating_sub(current.step_began_us),
        expected_us: current.step_expected_us,
    });
    Ok(RunStatus {
        run: record.id.clone(),
        name: record.name.clone(),
        state,
        started: record.started.clone(),
        blocks: blocks_held(record),
        is_merged: !record.merged.is_empty(),
        hosts,
        software,
        trials: due.len(),
        measured,
        not_run,
        damaged,
        current,
        left_us,
        ends: left_us.map(|left_us| rfc3339(now_us.saturating_add(left_us))),
        last,
        warnings: warnings(&events).into_iter().chain(lost).collect(),
    })
}

fn warnings(events: &[Stamped]) -> Vec<String> {
    let began = events.iter().rposition(|it| matches!(it.what, Event::RunStarted { .. } | Event::RunResumed { .. }));
    let warnings = events[began.unwrap_or(0)..].iter().filter_map(|event| match &event.what {
        Event::Warning { message } => Some(message.clone()),
        _ => None,
    });
    warnings.collect()
}

fn whole_seconds(us: u64) -> Micros {
    Micros(us / 1_000_000 * 1_000_000)
}

fn shown(status: &RunStatus, folder: &Path, now_us: u64) -> String {
    let resume = format!("pgstrata run --resume {}", folder.display());
    let state = match status.state {
        RunState::Running => status.left_us.map_or_else(
            || "running".to_owned(),
            |left| format!("running, {} left ({})", rounded(left), time_of_day(now_us.saturating_add(left), now_us)),
        ),
        RunState::Complete => "complete".to_owned(),
        RunState::Incomplete if status.is_merged => {
            "merged; some trials have no figures: resume the runs they come from, then merge again".to_owned()
        }
        RunState::Incomplete => format!("ended; try the trials without figures again: {resume}"),
        RunState::Interrupted => format!("interrupted; resume it: {resume}"),
        RunState::Killed => format!("killed; clean up: pgstrata clean; then resume: {resume}"),
    };
    let all = count(status.trials, "trial");
    let mut text = format!("{}: {state}\n  {} of {all} measured", status.name, status.measured);
    for (number, what) in [(status.not_run, "not run"), (status.damaged, "damaged")] {
        text.extend((number > 0).then(|| format!(", {number} {what}")));
    }
    text.extend(status.blocks.as_ref().map(|blocks| format!("\n  blocks: {blocks}")));
    text.push('\n');
    if let Some(CurrentTrial { trial, step, since_us, expected_us }) = &status.current {
        let of = expected_us.filter(|of| of >= since_us);
        let of = of.map_or_else(String::new, |of| format!(" of {}", whole_seconds(of)));
        let word = if status.state == RunState::Running { "now" } else { "cut short" };
        text.push_str(&format!("  {word}: {}, {step}, {}{of}\n", named(trial), whole_seconds(*since_us)));
    }
    text.extend(status.last.as_ref().map(|last| format!("  last: {}\n", last.words())));
    text.extend(status.warnings.iter().map(|warning| at_width(COLUMNS, || paragraph("  warning: ", warning))));
    out::harmless_lines(&text)
}

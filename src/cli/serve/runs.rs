//! List of runs: rows, search, and a cache between requests.
//!
//! A run is read when a row or a search needs it, and again only after a change. Runs that are not shown only need
//! `run.json`.

use crate::analyse::findings::names::stored;
use crate::analyse::load;
use crate::cli::serve::fleet::PlanRuns;
use crate::cli::serve::{encoded, fleet, others};
use crate::cli::status::{RunStatus, status};
use crate::error::{Error, Result};
use crate::host::time::{now, wall_us};
use crate::record::run::RunRecord;
use crate::report::serve::{ListView, RunRow};
use crate::serve::HttpRequest;
use crate::store::results::{Results, Stamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

/// Runs on one page of the list.
const ROWS: usize = 100;

/// The runs of a folder.
pub(super) struct Runs {
    pub(super) results: Results,
    /// Cached runs, each with its stamp at the time.
    known: Mutex<BTreeMap<String, (Stamp, Arc<CachedRun>)>>,
    /// Held while findings are computed: that uses all CPUs, and a run may be active.
    pub(super) computing: Mutex<()>,
}

/// Cached contents of a run, or the reason that it cannot be read.
struct CachedRun {
    /// From `run.json`.
    head: Result<Head, String>,
    /// The whole row, with hosts, kernels and servers in lower case; from its trials and events, on first use.
    row: OnceLock<Result<(RunRow, String), String>>,
    answer: OnceLock<String>,
}

/// Contents of `run.json`.
struct Head {
    row: RunRow,
    /// Key shared by all runs of a plan.
    key: String,
    is_merged: bool,
    /// Text for searches, lower-case.
    words: String,
}

impl Runs {
    pub(super) fn of(results: Results) -> Runs {
        Runs { results, known: Mutex::default(), computing: Mutex::default() }
    }

    /// The view of the list.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(super) fn view(&self, request: &HttpRequest, folder: &str) -> Result<ListView> {
        let query = request.value("q").unwrap_or_default().to_owned();
        let from: usize = request.value("from").and_then(|from| from.parse().ok()).unwrap_or(0);
        let first = request.value("a").filter(|name| self.results.path(name).is_some());
        let names = self.names()?;
        let words: Vec<String> = query.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let matching: Vec<&String> = names.iter().filter(|name| self.matches(&words, name)).collect();
        let fleets = self.plans()?.iter().filter(|plan| plan.runs.len() > 1).map(fleet::link).collect();
        // Analysis uses all CPUs, which would disturb a run.
        let is_idle = !self.known.lock().unwrap_or_else(PoisonError::into_inner).values().any(|(stamp, _)| stamp.live);
        let begun = now();
        let shown = matching.iter().skip(from).take(ROWS);
        let rows = shown
            .map(|name| RunRow { answer: self.answer(name, is_idle && begun.elapsed() < ANSWERING), ..self.row(name) });
        let rows = rows.collect();
        let others = if from == 0 && first.is_none() { others::rows(&self.results, &words)? } else { Vec::new() };
        let next = from.saturating_add(ROWS);
        let more = (next < matching.len()).then(|| {
            let first = first.map_or_else(String::new, |first| format!("&a={}", encoded(first)));
            format!("/?q={}&from={next}{first}", encoded(&query))
        });
        let first = first.map(|name| (name.to_owned(), encoded(name)));
        let (folder, all, found) = (folder.to_owned(), names.len(), matching.len());
        Ok(ListView { folder, query, first, rows, others, fleets, all, found, more })
    }

    /// Names of the runs, newest first; drops cached runs that are gone.
    fn names(&self) -> Result<Vec<String>> {
        let names = self.results.names()?;
        let there: BTreeSet<&String> = names.iter().collect();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).retain(|name, _| there.contains(name));
        Ok(names)
    }

    /// Plans with their runs, those with most runs first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(super) fn plans(&self) -> Result<Vec<PlanRuns>> {
        let mut plans: Vec<PlanRuns> = Vec::new();
        let mut merged: Vec<(String, String)> = Vec::new();
        for name in self.names()?.into_iter().rev() {
            let Ok(known) = self.known(&name) else { continue };
            let Ok(head) = &known.head else { continue };
            if head.is_merged {
                merged.push((head.key.clone(), name));
                continue;
            }
            match plans.iter_mut().find(|plan| plan.key == head.key) {
                Some(plan) => plan.runs.push(name),
                None => plans.push(PlanRuns { name: head.row.plan.clone(), key: head.key.clone(), runs: vec![name] }),
            }
        }
        for (key, name) in merged {
            plans.iter_mut().filter(|plan| plan.key == key).for_each(|plan| plan.runs.push(name.clone()));
        }
        plans.sort_by_key(|plan| std::cmp::Reverse(plan.runs.len()));
        Ok(plans)
    }

    /// True if every word occurs in the name of a run, its plan, stacks, workloads, hosts, kernels or servers.
    fn matches(&self, words: &[String], name: &str) -> bool {
        let own = name.to_lowercase();
        let left: Vec<&String> = words.iter().filter(|word| !own.contains(*word)).collect();
        if left.is_empty() {
            return true;
        }
        let Ok(known) = self.known(name) else { return false };
        let Ok(head) = &known.head else { return false };
        let left: Vec<&String> = left.into_iter().filter(|word| !head.words.contains(*word)).collect();
        left.is_empty()
            || matches!(self.read(name, &known), Ok((_, words)) if left.iter().all(|word| words.contains(*word)))
    }

    fn known(&self, name: &str) -> Result<Arc<CachedRun>, String> {
        let stamp = self.results.stamp(name).ok_or(GONE)?;
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = all.get(name).filter(|(of, _)| *of == stamp) {
            return Ok(Arc::clone(found));
        }
        let record = self.results.record(name).and_then(|record| record.ok_or_else(|| Error::store(GONE)));
        let head = record.map(|record| Head::of(name, &record)).map_err(|error| error.chain());
        let known = Arc::new(CachedRun { head, row: OnceLock::new(), answer: OnceLock::new() });
        all.insert(name.to_owned(), (stamp, Arc::clone(&known)));
        Ok(known)
    }

    fn read<'k>(&self, name: &str, known: &'k CachedRun) -> Result<&'k (RunRow, String), String> {
        let row = known.row.get_or_init(|| {
            let head = known.head.as_ref().map_err(String::clone)?;
            let opened = self.results.run(name).and_then(|run| run.ok_or_else(|| Error::store(GONE)));
            let status = opened.and_then(|run| status(&run, wall_us()));
            status.map(|status| whole_row(&head.row, &status)).map_err(|error| error.chain())
        });
        row.as_ref().map_err(String::clone)
    }

    /// The answer of a run, computed once after each change if it may be.
    fn answer(&self, name: &str, may_compute: bool) -> Option<String> {
        let known = self.known(name).ok()?;
        if known.answer.get().is_none() && may_compute {
            let run = self.results.run(name).ok().flatten()?;
            // While a report is computed, the list has no answer rather than waiting for it.
            let _turn = match self.computing.try_lock() {
                Ok(turn) => turn,
                Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
                Err(TryLockError::WouldBlock) => return None,
            };
            known.answer.get_or_init(|| {
                load::findings(run.path()).map_or_else(|error| error.chain(), |findings| findings.answer.answer)
            });
        }
        known.answer.get().cloned()
    }

    fn row(&self, name: &str) -> RunRow {
        let found = self.known(name).and_then(|known| self.read(name, &known).map(|(row, _)| row.clone()));
        found.unwrap_or_else(|problem| RunRow { problem: Some(problem), ..RunRow::named(name, encoded(name)) })
    }
}

/// Answers are computed for so long while a list is made; the others are left to the next one.
const ANSWERING: Duration = Duration::from_secs(2);

const GONE: &str = "it is gone";

impl Head {
    fn of(name: &str, record: &RunRecord) -> Head {
        let mut seen = BTreeSet::new();
        let stacks = record.cases.iter().map(|case| case.stack.name.as_str()).filter(|stack| seen.insert(*stack));
        let stacks = stacks.collect::<Vec<_>>().join(", ");
        let workloads: BTreeSet<&str> = record.cases.iter().map(|case| case.workload.name.as_str()).collect();
        let words = std::iter::once(record.name.as_str()).chain(workloads).collect::<Vec<_>>().join(" ");
        let length = if record.quick.is_some() { "quick" } else { "whole" };
        Head {
            key: format!("{}-{length}", record.plan_sha256),
            is_merged: !record.merged.is_empty(),
            words: format!("{words} {stacks}").to_lowercase(),
            row: RunRow {
                plan: record.name.clone(),
                started: record.started.clone(),
                stacks,
                ..RunRow::named(name, encoded(name))
            },
        }
    }
}

/// The row with what trials and events tell, and its words for searches.
fn whole_row(head: &RunRow, status: &RunStatus) -> (RunRow, String) {
    let words: Vec<String> = status.hosts.iter().chain(&status.software).map(|word| word.to_lowercase()).collect();
    let row = RunRow {
        state: stored(&status.state),
        measured: status.measured,
        trials: status.trials,
        hosts: status.hosts.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        ..head.clone()
    };
    (row, words.join(" "))
}

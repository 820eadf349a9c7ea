//! `pgstrata check --rerun-baseline`: measures the cases of two runs again, interleaved in one run, and checks that
//! run.

use crate::analyse::compare::from_run::{self, RunSource};
use crate::analyse::compare::side::Side;
use crate::analyse::limits::{self, CheckedRun, Limit, LimitFindings};
use crate::analyse::load;
use crate::cli::commands::with_scripts;
use crate::cli::follow::Follower;
use crate::cli::run::{self, RunTask, Watched};
use crate::cli::{out, share};
use crate::error::{Error, Kind, Result};
use crate::host::Host;
use crate::plan::Plan;
use crate::plan::joined::{self, BASELINE, JoinedHalf, Matched, RUN};
use crate::record::case::CaseSpec;
use crate::run::forecast;
use crate::run::opening::{self, Continuing};
use crate::run::session::{RunPlaces, count_trials};
use crate::store::folder::RunFolder;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A side, with the ids that its cases have in the joint run.
type JointSide<'a> = (&'a Side, Vec<String>);

/// The cases of two runs, matched.
#[derive(Default)]
struct Paired<'a> {
    /// Sides of the same name, in the same order.
    baseline: Vec<JointSide<'a>>,
    run: Vec<JointSide<'a>>,
    /// To be measured again: of the baseline and of the run.
    cases: Vec<(&'a CaseSpec, &'a CaseSpec)>,
    /// Identical in both runs: ids in the baseline and in the run.
    equal: Vec<(String, String)>,
    /// Present in only one of the two.
    alone: Vec<String>,
}

/// Measures and checks; returns only the exit code if the run ended before its trials were measured.
///
/// # Errors
/// If there is nothing to interleave, or it cannot be interleaved; as for a run.
pub(super) fn check(
    run: &RunToCheck,
    baseline: &RunToCheck,
    limits: &[Limit],
    places: &RunPlaces,
    yes: bool,
) -> Result<Result<LimitFindings, u8>> {
    let paired = paired(run, baseline);
    if paired.cases.is_empty() && paired.equal.is_empty() {
        return Err(Error::user(format!("{} and {} have no case in common", run.label, baseline.label)).hint(
            "cases are matched by name; for one case on each side: check RUN:CASE --against BASELINE:CASE --rerun-baseline",
        ));
    }
    let plan = joined::join(half(baseline), half(run), &paired.cases)?;
    // Run folders may come from others, and the stacks in them are built as root.
    forecast::recheck(&plan.cases)?;
    let folder = match measure(plan, places, yes)? {
        Ok(folder) => folder,
        Err(code) => return Ok(Err(code)),
    };
    let (source, wall_us) = (RunSource::load(&folder)?, load::wall_us(&RunFolder::open(&folder)?)?);
    let blocks = source.run.blocks;
    let shown = folder.display().to_string();
    let ((old, old_trials), (new, new_trials)) = (part(&source, &paired.baseline), part(&source, &paired.run));
    let found = limits::check(
        CheckedRun { label: &run.label, run: &source.run, wall_us, trials: new_trials, sides: &new },
        CheckedRun { label: &baseline.label, run: &source.run, wall_us, trials: old_trials, sides: &old },
        limits,
    );
    let mut found = found.of_rerun(shown.clone(), before(run, baseline, &paired.equal, limits));
    found.notes.insert(
        0,
        format!(
            "Both were measured again, interleaved in {blocks} blocks, in {shown}; with more blocks there, the same check reads them"
        ),
    );
    let equal = paired.equal.into_iter().map(|(old, _)| old).collect();
    for (why, ids) in [("they are identical in both runs", equal), ("only one of the runs has them", paired.alone)] {
        found.notes.extend((!ids.is_empty()).then(|| format!("Not measured again, because {why}: {}", ids.join("; "))));
    }
    for missing in load::findings(&folder)?.not_run {
        found.notes.push(format!("{} was not run: {}", missing.case, missing.reason));
    }
    Ok(Ok(found))
}

fn half(read: &RunToCheck) -> JoinedHalf<'_> {
    JoinedHalf { label: &read.label, record: &read.source.run, plan: &read.plan }
}

fn cases<'r>(source: &'r RunSource, ids: &[String]) -> Vec<&'r CaseSpec> {
    source.run.cases.iter().filter(|case| ids.contains(&case.id)).collect()
}

fn paired<'a>(run: &'a RunToCheck, baseline: &'a RunToCheck) -> Paired<'a> {
    let mut paired = Paired::default();
    let are = |side: &Side, reference: &Side| limits::are_partners(&run.sides, side, &baseline.sides, reference);
    for (reference, ids) in baseline.sides.iter().zip(&baseline.ids) {
        let Some((side, other)) = run.sides.iter().zip(&run.ids).find(|(side, _)| are(side, reference)) else {
            paired.alone.extend(ids.iter().cloned());
            continue;
        };
        let Matched { pairs: found, equal, alone } =
            joined::matched(&cases(&baseline.source, ids), &cases(&run.source, other));
        paired.equal.extend(equal.iter().map(|(old, new)| (old.id.clone(), new.id.clone())));
        paired.alone.extend(alone.iter().map(|id| (*id).to_owned()));
        let ids = found.iter().map(|(old, new)| (joined::id(BASELINE, &old.id), joined::id(RUN, &new.id)));
        let (old_ids, new_ids) = ids.unzip();
        paired.cases.extend(found);
        paired.baseline.push((reference, old_ids));
        paired.run.push((side, new_ids));
    }
    let new = run.sides.iter().zip(&run.ids).filter(|(side, _)| !baseline.sides.iter().any(|other| are(side, other)));
    paired.alone.extend(new.flat_map(|(_, ids)| ids.iter().cloned()));
    paired
}

/// Comparison of the stored runs, without the cases that are identical in both.
fn before(run: &RunToCheck, baseline: &RunToCheck, equal: &[(String, String)], limits: &[Limit]) -> LimitFindings {
    let (equal_old, equal_new): (Vec<String>, Vec<String>) = equal.iter().cloned().unzip();
    let (new, old) = (sides_without(run, &equal_new), sides_without(baseline, &equal_old));
    limits::check(CheckedRun { sides: &new, ..run.checked() }, CheckedRun { sides: &old, ..baseline.checked() }, limits)
}

fn sides_without(read: &RunToCheck, cases: &[String]) -> Vec<Side> {
    let sides = read.sides.iter().zip(&read.ids).map(|(side, ids)| {
        let ids: Vec<String> = ids.iter().filter(|id| !cases.contains(id)).cloned().collect();
        side_of(side, &read.source, &ids)
    });
    sides.collect()
}

/// These cases under the name of another side.
fn side_of(named: &Side, source: &RunSource, ids: &[String]) -> Side {
    from_run::side(named.argument, named.name.clone(), named.name.clone(), source, &cases(source, ids))
}

/// The sides of one half of the joint run, and its trials planned and measured.
fn part(source: &RunSource, sides: &[JointSide<'_>]) -> (Vec<Side>, (u32, u32)) {
    let cases: BTreeSet<&String> = sides.iter().flat_map(|(_, ids)| ids).collect();
    let planned = source.run.order.iter().filter(|key| cases.contains(&key.case)).count();
    let measured = source.trials.iter().filter(|trial| cases.contains(&trial.case.id)).count();
    let [planned, measured] = [planned, measured].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    (sides.iter().map(|(side, ids)| side_of(side, source, ids)).collect(), (planned, measured))
}

/// Runs the plan, or the rest of an earlier call; returns the run folder, or the exit code of a run that stopped.
fn measure(plan: Plan, places: &RunPlaces, yes: bool) -> Result<Result<PathBuf, u8>> {
    let task = match share::of_plan(&places.results, &plan).pop() {
        // Every trial due has a result.
        Some(folder) if count_trials(&folder)?.1 == 0 && !folder.is_live() => {
            return Ok(Ok(folder.path().to_path_buf()));
        }
        Some(folder) => RunTask::Resume(Box::new(opening::stored(folder.path(), None)?)),
        None => RunTask::Start(Box::new(plan), None),
    };
    let follower = Follower::new(false);
    // Only the check is printed.
    let watched = Watched { json: false, yes, follower: &follower };
    let ending = run::measured(&Host::this(), task, Continuing::default(), places, watched)?;
    run::written(&ending.folder, &with_scripts(&ending.folder)?)?;
    if ending.interrupted {
        out::remark("interrupted; the same command resumes it");
        return Ok(Err(Kind::Interrupted.exit_code()));
    }
    if let Some((kind, why)) = &ending.stopped {
        out::remark(&out::harmless_lines(&format!("{why}\nrun folder  {}", ending.folder.display())));
        return Ok(Err(kind.exit_code()));
    }
    Ok(Ok(ending.folder))
}

/// A run with the requested sides.
pub(crate) struct RunToCheck {
    pub label: String,
    pub source: RunSource,
    pub sides: Vec<Side>,
    pub wall_us: Option<u64>,
    /// The plan stored in its folder.
    pub plan: String,
    /// Ids of the cases of each side.
    pub ids: Vec<Vec<String>>,
}

impl RunToCheck {
    pub fn checked(&self) -> CheckedRun<'_> {
        let found = &self.source.findings.run;
        let (run, trials) = (&self.source.run, (found.trials_planned, found.trials_measured));
        CheckedRun { label: &self.label, run, wall_us: self.wall_us, trials, sides: &self.sides }
    }
}

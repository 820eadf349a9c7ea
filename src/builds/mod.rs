//! PostgreSQL from source: fetched, configured, compiled once, and cached by the content of its inputs.
//!
//! Stages of a build: `source` (package, tarball or commit to a tarball with its checksum) -> `recipe` (arguments of
//! `configure`, the key) -> `compile` (unpack, patch, configure, make, install, query the server) -> `shelf` (storage).
//! A build is complete or absent, and no part of it runs as root. Absent on purpose: plans, servers under test.
//!
//! The mirror, the cache's location and the keys of steps come from `guest`, so that each is defined once. A new key of
//! `build` needs a line in `KEYS` of `plan::build`, a field of `record::build::BuildSpec` that is read back
//! (`differences`), and its argument of `configure` in `recipe`.

mod compile;
mod debian;
mod needs;
mod recipe;
mod shelf;
mod source;
#[cfg(test)]
mod tests;

pub use shelf::{BuildNote, Shelf};

use crate::error::{Error, Result};
use crate::guest::mirror::Mirror;
use crate::host::signals::Interrupt;
use crate::host::time::now;
use crate::host::{Host, files, folders, users};
use crate::record::build::BuildSpec;
use compile::Compile;
use recipe::BuildRecipe;
use shelf::BuildTask;
use source::BuildSource;
use std::path::PathBuf;
use std::time::Duration;

/// Duration of a build on two cores, seconds: 10 to configure, 89 to compile. Only for the estimate.
pub const EXPECTED_S: u64 = 120;

/// Progress report of a build.
#[derive(Debug)]
pub enum BuildProgress<'a> {
    /// A step begins.
    Begins(&'a str),
    /// Current activity.
    At(&'a str),
    Done {
        step: &'a str,
        took: Duration,
    },
    /// A fact that may surprise the user.
    Note(&'a str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltPostgres {
    /// Folder of its programs.
    pub bin: PathBuf,
    /// Source: file or commit, with its checksum.
    pub made_from: String,
}

/// State of a build that a plan asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildState {
    Built(BuiltPostgres),
    /// Missing requirements of this machine, each with the remedy. Empty if the build can run.
    Lacking(Vec<(String, String)>),
}

/// Reports whether PostgreSQL is built, else what the machine lacks. Contacts no mirror.
///
/// # Errors
/// If a tarball, checkout or patch cannot be read.
pub fn look(host: &Host, shelf: &Shelf, spec: &BuildSpec) -> Result<BuildState> {
    let lacking = needs::lacking(host, spec);
    let programs_are_there = lacking.is_empty();
    // The key needs a compiler; a checkout needs git.
    if programs_are_there && let Some(source) = BuildSource::known(host, shelf, spec)? {
        let recipe = BuildRecipe::of(host, shelf, spec, &source)?;
        if let Some(built) = shelf.find(&recipe.place) {
            return Ok(BuildState::Built(built));
        }
    }
    Ok(BuildState::Lacking(lacking))
}

/// Builds PostgreSQL unless it is already built.
///
/// # Errors
/// If a program is missing, the source cannot be fetched or does not compile, or on Ctrl-C. A partial build is removed.
pub fn build(
    host: &Host,
    shelf: &Shelf,
    spec: &BuildSpec,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<BuiltPostgres> {
    if let BuildState::Built(built) = look(host, shelf, spec)? {
        return Ok(built);
    }
    let lacking = needs::lacking(host, spec);
    if let Some((_, hint)) = lacking.first() {
        let what: Vec<&str> = lacking.iter().map(|(what, _)| what.as_str()).collect();
        return Err(Error::host(format!("PostgreSQL cannot be built: {}", what.join("; "))).hint(hint.clone()));
    }
    let _lock = shelf.lock()?;
    let work = shelf.work()?;
    let built = run(&BuildTask { host, shelf, spec, interrupt, work: &work }, progress);
    // A partial build is useless, except for its log.
    let cleaned = folders::remove_all(&work);
    let built = built.map_err(|e| e.while_doing(format!("build PostgreSQL {}", spec.described())))?;
    cleaned?;
    Ok(built)
}

fn run(task: &BuildTask<'_>, progress: &mut dyn FnMut(BuildProgress<'_>)) -> Result<BuiltPostgres> {
    let BuildTask { host, shelf, spec, .. } = *task;
    let source = match BuildSource::known(host, shelf, spec)? {
        Some(source) => source,
        None => step("fetch the source package", progress, |report| {
            let mirror = Mirror::of(host, None)?;
            debian::fetch(task, &mirror, report)
        })?,
    };
    if let Some(note) = source.note(host, spec) {
        progress(BuildProgress::Note(&note));
    }
    let recipe = BuildRecipe::of(host, shelf, spec, &source)?;
    // Another build of the plan may have fetched this one's source.
    if let Some(built) = shelf.find(&recipe.place) {
        return Ok(built);
    }
    let log = shelf.log();
    let compile = Compile { task, log: &log, recipe: &recipe, user: users::server_user(host)? };
    step("unpack", progress, |_| compile.unpack(&source, spec))?;
    step("configure", progress, |report| compile.configure(report))?;
    step("compile", progress, |report| compile.make(report))?;
    step("install", progress, |report| compile.install(report))?;
    let version = step("ask the server for its sizes", progress, |_| compile.check(spec))?;
    let kept = BuildNote {
        spec: BuildSpec { made_from: None, ..spec.clone() },
        version,
        made_from: source.described(),
        compiler: recipe.compiler.clone(),
        configure: recipe.configure.clone(),
    };
    files::write_whole(&compile.installed().join(shelf::NOTE), &shelf::to_json(&kept)?)?;
    shelf.take(&compile.installed(), &recipe.place)
}

fn step<T>(
    name: &str,
    progress: &mut dyn FnMut(BuildProgress<'_>),
    make: impl FnOnce(&mut dyn FnMut(&str)) -> Result<T>,
) -> Result<T> {
    let begun = now();
    progress(BuildProgress::Begins(name));
    let made = make(&mut |line| progress(BuildProgress::At(line)))?;
    progress(BuildProgress::Done { step: name, took: begun.elapsed() });
    Ok(made)
}

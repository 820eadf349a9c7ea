//! PostgreSQL builds of a plan: finding existing ones, and making the others before a run.

use super::out;
use crate::builds::{self, BuildProgress, BuildState, BuiltPostgres, Shelf};
use crate::error::{Context, Error, Result};
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::record::build::{BuildSpec, GIVEN, GivenBuild, UNBUILT};
use crate::record::case::CaseSpec;
use crate::units::{Micros, count};
use serde::Serialize;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// A build requested by a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BuildLine {
    /// Description: `15, WAL blocks of 16 kB`.
    pub what: String,
    /// Folder of its programs; `null` before it is built.
    pub bin: Option<PathBuf>,
    /// Requirements that this machine lacks, each with the remedy.
    pub lacking: Vec<(String, String)>,
    /// Ids of its cases.
    pub cases: Vec<String>,
}

/// Finds existing builds and enters them into the cases; builds nothing.
///
/// # Errors
/// If a tarball, checkout or patch cannot be read.
pub fn find(host: &Host, cases: &mut [CaseSpec]) -> Result<Vec<BuildLine>> {
    enter_given(host, cases)?;
    let specs = asked(cases);
    if specs.is_empty() {
        return Ok(Vec::new());
    }
    let shelf = Shelf::of_user()?;
    let mut lines = Vec::new();
    for spec in specs {
        let what = spec.described();
        let (bin, lacking) = match builds::look(host, &shelf, &spec)? {
            BuildState::Built(built) => {
                let (finished, bin) = given(&spec, &built);
                enter(cases, &finished, &bin);
                (Some(built.bin), Vec::new())
            }
            BuildState::Lacking(lacking) => (None, lacking),
        };
        let ids = cases.iter().filter(|case| same(case, &spec)).map(|case| case.id.clone()).collect();
        lines.push(BuildLine { what, bin, lacking, cases: ids });
    }
    Ok(lines)
}

/// Builds what is missing, with progress on standard error, and enters all builds into the cases.
///
/// # Errors
/// If a build fails, or on Ctrl-C.
pub fn make(host: &Host, cases: &mut [CaseSpec], interrupt: &Interrupt) -> Result<()> {
    enter_given(host, cases)?;
    let specs = asked(cases);
    if specs.is_empty() {
        return Ok(());
    }
    let (host, shelf) = (&host.heeding(interrupt), Shelf::of_user()?);
    let all = u32::try_from(specs.len()).unwrap_or(u32::MAX);
    for (spec, number) in specs.into_iter().zip(1u32..) {
        let mut begun = false;
        let built = builds::build(host, &shelf, &spec, interrupt, &mut |progress| {
            if !begun {
                out::remark(&out::harmless(&format!("PostgreSQL {}: build {number} of {all}", spec.described())));
                begun = true;
            }
            show(&progress);
        })?;
        let (finished, bin) = given(&spec, &built);
        enter(cases, &finished, &bin);
    }
    Ok(())
}

/// Ensures that the builds of a stored run exist: a removed one is made again.
///
/// # Errors
/// If it cannot be made again as it was.
pub fn make_again(host: &Host, cases: &[CaseSpec], interrupt: &Interrupt) -> Result<()> {
    let gone = cases.iter().filter(|case| {
        let postgres = case.postgres.as_ref().filter(|postgres| postgres.build.is_some());
        postgres.is_some_and(|postgres| !PathBuf::from(&postgres.bin).is_dir())
    });
    let mut gone: Vec<CaseSpec> = gone.cloned().collect();
    let before = gone.clone();
    for postgres in gone.iter_mut().filter_map(|case| case.postgres.as_mut()) {
        UNBUILT.clone_into(&mut postgres.bin);
    }
    make(host, &mut gone, interrupt)?;
    match before.iter().zip(&gone).find(|(before, now)| before.postgres != now.postgres) {
        None => Ok(()),
        Some((before, _)) => Err(Error::host(format!(
            "the PostgreSQL of {} was removed and cannot be built again as it was: its source or the compiler is another",
            before.id
        ))
        .hint("start a new run of the plan")),
    }
}

/// Enters what the host of this guest has built for it.
fn enter_given(host: &Host, cases: &mut [CaseSpec]) -> Result<()> {
    let Some(text) = host.read_optional(GIVEN) else { return Ok(()) };
    let builds: Vec<GivenBuild> = serde_json::from_str(&text).or_host(|| format!("read {GIVEN}"))?;
    builds.iter().for_each(|(spec, bin)| enter(cases, spec, bin));
    Ok(())
}

/// Finished builds of these cases.
pub fn made(cases: &[CaseSpec]) -> Vec<GivenBuild> {
    let servers = cases.iter().filter_map(|case| case.postgres.as_ref()).filter(|postgres| postgres.bin != UNBUILT);
    let mut made: Vec<GivenBuild> =
        servers.filter_map(|postgres| Some((postgres.build.clone()?, postgres.bin.clone()))).collect();
    made.sort();
    made.dedup();
    made
}

/// `, about 4 min for 2 builds`, if builds are missing.
pub fn expected(lines: &[BuildLine]) -> Option<String> {
    let missing = u32::try_from(lines.iter().filter(|line| line.bin.is_none()).count()).unwrap_or(u32::MAX);
    let span = Micros(u64::from(missing) * builds::EXPECTED_S * 1_000_000);
    (missing > 0)
        .then(|| format!("plus about {span} once for {} of PostgreSQL, which are then kept", count(missing, "build")))
}

/// Distinct builds of cases that have none yet.
fn asked(cases: &[CaseSpec]) -> Vec<BuildSpec> {
    let mut specs: Vec<BuildSpec> = Vec::new();
    for postgres in cases.iter().filter_map(|case| case.postgres.as_ref()).filter(|postgres| postgres.bin == UNBUILT) {
        let spec = postgres.build.as_ref().map(|spec| BuildSpec { made_from: None, ..spec.clone() });
        specs.extend(spec.filter(|spec| !specs.contains(spec)));
    }
    specs
}

fn same(case: &CaseSpec, spec: &BuildSpec) -> bool {
    let build = case.postgres.as_ref().and_then(|postgres| postgres.build.as_ref());
    build.is_some_and(|build| BuildSpec { made_from: spec.made_from.clone(), ..build.clone() } == *spec)
}

/// Enters the folder of a finished build, and what it was made from.
fn enter(cases: &mut [CaseSpec], finished: &BuildSpec, bin: &str) {
    for case in cases.iter_mut().filter(|case| same(case, finished)) {
        if let Some(postgres) = &mut case.postgres {
            bin.clone_into(&mut postgres.bin);
            postgres.build = Some(finished.clone());
        }
    }
}

fn given(spec: &BuildSpec, built: &BuiltPostgres) -> GivenBuild {
    (BuildSpec { made_from: Some(built.made_from.clone()), ..spec.clone() }, built.bin.display().to_string())
}

fn show(progress: &BuildProgress<'_>) {
    match progress {
        // On a terminal the line is replaced; elsewhere the end of each step is enough.
        BuildProgress::Begins(step) | BuildProgress::At(step) if std::io::stderr().is_terminal() => out::passing(step),
        BuildProgress::Begins(_) | BuildProgress::At(_) => {}
        BuildProgress::Note(note) => out::remark(&format!("  note: {}", out::harmless(note))),
        BuildProgress::Done { step, took } => {
            let clear = if std::io::stderr().is_terminal() { "\r\u{1b}[K" } else { "" };
            out::remark(&format!("{clear}  {step}: {}", span(*took)));
        }
    }
}

/// A duration to a tenth of a second.
pub fn span(took: Duration) -> Micros {
    Micros(u64::try_from(took.as_millis() / 100 * 100_000).unwrap_or(u64::MAX))
}

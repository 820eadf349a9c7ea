//! `pgstrata check`: whether a run keeps limits against a baseline.

use super::out;
use super::places::folder_and_case;
use crate::analyse::compare::from_run::{self, RunSource};
use crate::analyse::compare::side::Side;
use crate::analyse::limits::{self, Checked, Limit, Outcome};
use crate::error::{Context, EXIT_REQUIREMENT, EXIT_UNDECIDED, Error, Result};
use crate::foreign::nearest;
use crate::host::files;
use crate::report;
use std::path::{Path, PathBuf};

/// File that makes a folder a run folder.
const RUN: &str = "run.json";

/// Check a run against a baseline: fail where a figure is beyond a limit
///
/// Each limit is decided by the 95 % interval of the ratio to the baseline, for every case and workload that has the
/// figure: kept where the whole interval is within the limit, exceeded where all of it is beyond, else undecided.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata check results/new --against results/old --limit 'tps -5 %'
  pgstrata check results/new --against results/old --limit 'tps -5 %' --limit 'latency_us_p99 +10 %' --junit check.xml
  pgstrata check results/x:pg18 --against results/x:pg17 --limit 'tps -2 %'    two cases of one run: paired

A limit is a figure and the change that is allowed: -5 % limits a fall, +5 % a rise. Figures are tps, latency_us_mean, \
latency_us_p50, latency_us_p95, latency_us_p99, latency_us_p999, a row of a probe such as fdatasync, or a measure as \
`pgstrata compare` prints it. Cases are matched by name, and what `compare` refuses to compare is undecided, with the \
reason. So is a case of the baseline that the run lacks; one that only the run has is listed.

Trials of two runs are not paired: what changed on the machine between the runs counts as a change, and the interval \
cannot tell the two apart. For a check that holds on a machine that drifts, put both variants into one plan and check one \
case against the other.

Exit code: 0 all limits are kept, 6 one is exceeded, 7 none is exceeded and one is undecided, 2 wrong limit or folder, \
5 a folder cannot be read.")]
pub struct Args {
    /// Run folder, or FOLDER:CASE
    #[arg(value_name = "RUN")]
    run: String,
    /// Run folder to check against, or FOLDER:CASE
    #[arg(long, value_name = "BASELINE")]
    against: String,
    /// Allowed change of a figure: 'tps -5 %', 'latency_us_p99 +10 %'; may be given several times
    #[arg(long = "limit", value_name = "LIMIT", required = true, value_parser = Limit::parse, allow_hyphen_values = true)]
    limits: Vec<Limit>,
    /// Also write a JUnit file: an exceeded limit is a failure, an undecided one an error
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A run with the sides that were asked for.
struct Read {
    label: String,
    source: RunSource,
    sides: Vec<Side>,
}

impl Read {
    fn checked(&self) -> Checked<'_> {
        let run = &self.source.findings.run;
        Checked {
            label: &self.label,
            id: &self.source.run.id,
            started: &self.source.run.started,
            trials: (run.trials_planned, run.trials_measured),
            sides: &self.sides,
        }
    }
}

/// Checks and prints.
///
/// # Errors
/// When a folder cannot be read, or nothing has a figure that a limit names.
pub fn run(args: &Args) -> Result<u8> {
    let case = folder_and_case(&args.run).and_then(|(_, case)| case);
    let (run, baseline) = (read(0, &args.run, None)?, read(1, &args.against, case)?);
    if let Some((figure, names)) = limits::unknown(&args.limits, &run.sides, &baseline.sides) {
        let error = Error::user(format!("no case has the figure `{figure}`"));
        let known = format!("figures of these runs: {}", names.join(", "));
        return Err(match nearest(&figure, names.iter().map(String::as_str)) {
            Some(name) => error.hint(format!("did you mean `{name}`? {known}")),
            None => error.hint(known),
        });
    }
    let findings = limits::check(run.checked(), baseline.checked(), &args.limits);
    match args.json {
        true => out::json(&findings)?,
        false => out::fitted(|| report::limits::terminal(&findings))?,
    }
    if let Some(path) = &args.junit {
        let path = std::path::absolute(path).or_user(|| format!("find {}", path.display()))?;
        files::write_output(&path, report::limits::junit(&findings).as_bytes())?;
    }
    Ok(match findings.outcome {
        Outcome::Pass => 0,
        Outcome::Fail => EXIT_REQUIREMENT,
        Outcome::Undecided => EXIT_UNDECIDED,
    })
}

/// Reads `FOLDER` or `FOLDER:CASE`; `case` is the one that the other argument names.
fn read(argument: usize, text: &str, case: Option<&str>) -> Result<Read> {
    let not_a_run = || {
        Error::user(format!("{text} is not a run folder"))
            .hint("name a folder that `pgstrata run` printed, or FOLDER:CASE; `pgstrata compare` takes other results")
    };
    let (folder, own) = folder_and_case(text).ok_or_else(not_a_run)?;
    if !Path::new(folder).join(RUN).is_file() {
        return Err(not_a_run());
    }
    let source = RunSource::load(Path::new(folder))?;
    let wanted = own.or(case);
    let mut sides = from_run::sides(argument, folder, &source, wanted);
    if let (Some(case), true) = (wanted, sides.is_empty()) {
        return Err(Error::user(format!("{folder} has no case `{case}`"))
            .hint(format!("available: {}", source.names().join("; "))));
    }
    // The only side of a run goes without a name; the other run may have several.
    if let ([side], Some(case)) = (sides.as_mut_slice(), source.run.cases.first())
        && side.name.is_empty()
    {
        side.name.clone_from(&case.stack.name);
    }
    Ok(Read { label: text.to_owned(), source, sides })
}

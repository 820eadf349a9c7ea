//! `pgstrata check`: checks a run against limits relative to a baseline.

use crate::analyse::compare::from_run::{self, RunSource};
use crate::analyse::limits::{self, Compliance, Limit};
use crate::analyse::load;
use crate::cli::out;
use crate::cli::page::to_file;
use crate::cli::places::{PlaceArgs, folder_and_case};
use crate::cli::rerun::{self, RunToCheck};
use crate::error::{EXIT_REQUIREMENT, EXIT_UNDECIDED, Error, Result};
use crate::foreign::hint_at_nearest;
use crate::report;
use crate::store::folder::RunFolder;
use std::path::{Path, PathBuf};

/// Check a run against a baseline: fail where a figure is beyond a limit
///
/// Each limit is decided by the 95 % interval of the ratio to the baseline, for every case and workload that has the
/// figure: kept where the whole interval is within the limit, exceeded where all of it is beyond, else undecided. A case that
/// could not be measured, or that gave up durability, exceeds its limits.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata check results/new --against results/old --limit 'tps -5 %'
  pgstrata check new --against old --limit 'p99 +10 %' --junit check.xml
  pgstrata check new --against old --limit 'wal_bytes +2 %' --limit 'tps -15 %'
  pgstrata check results/x:xfs --against results/x:ext4 --limit 'tps -2 %'    two cases of one run: paired
  pgstrata check new --against old --limit 'tps -5 %' --rerun-baseline    both measured again: paired

A limit is a figure and the change that is allowed: -5 % limits a fall, +5 % a rise. Figures are tps, mean, p50, p95, p99, p99.9 \
(latencies, which files call latency_us_p50 and so on), a row of a probe such as fdatasync, what an operation such as a commit costs \
(wal_bytes, flushes_per_wal_sync, device_writes, device_bytes, cpu_us; in quick runs wal_bytes falls as trials do more), or a measure as `pgstrata compare` prints it. Cases are matched by name. A case that was tried and could not be measured exceeds its limits, and so does one that can lose \
commits where the baseline's cannot, or did nothing. What else `compare` refuses to compare is undecided, with the reason, and so is a case that \
is not in the run's plan; one that only the run has is listed. What `only` in [quick] left out is not checked and said; exit code 7 if nothing was checked.

Trials of two runs are not paired: what changed on the machine between the runs counts as a change, and the interval \
cannot tell the two apart. For a check that holds on a machine that drifts, put both variants into one plan and check one \
case against the other, or use --rerun-baseline: it measures the cases of both runs again on this machine, interleaved in the \
blocks of one new run, and checks that. Their stacks, settings and workloads are taken from the run folders, so both runs must be \
possible here, with the servers that they had. Cases that are the same in both are left out; where all are, there is nothing to \
interleave. With the same two runs and the same --results, an interrupted rerun is resumed, and a complete one is checked without \
measuring anything.

Exit code: 0 all limits are kept, 6 one is exceeded, 7 none is exceeded and one is undecided, 2 wrong limit or folder, \
5 a folder cannot be read; with --rerun-baseline also those of `pgstrata run`: 3, 4, and 130 interrupted.")]
pub struct Args {
    /// Run folder, or FOLDER:CASE
    #[arg(value_name = "RUN")]
    run: String,
    /// Run folder to check against, or FOLDER:CASE
    #[arg(long, value_name = "BASELINE")]
    against: String,
    /// Allowed change of a figure: 'tps -5 %', 'p99 +10 %'; may be given several times
    #[arg(long = "limit", value_name = "LIMIT", required = true, value_parser = Limit::parse, allow_hyphen_values = true)]
    limits: Vec<Limit>,
    /// Also write a JUnit file: an exceeded limit is a failure, an undecided one an error
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Measure the cases of both runs again, interleaved, and check that
    #[arg(long, help_heading = RERUN)]
    rerun_baseline: bool,
    /// Overwrite disks that the plans mark `overwrite = true`, and precondition disks, without asking
    #[arg(long, help_heading = RERUN, requires = "rerun_baseline")]
    yes: bool,
    #[command(flatten, next_help_heading = RERUN)]
    places: PlaceArgs,
}

/// Heading of the options for a rerun.
const RERUN: &str = "Measuring again";

/// Checks and prints.
///
/// # Errors
/// If a folder cannot be read, or nothing has the figure of a limit.
pub fn run(args: &Args) -> Result<u8> {
    let case = folder_and_case(&args.run).and_then(|(_, case)| case);
    let (run, baseline) = (read(0, &args.run, None)?, read(1, &args.against, case)?);
    if let Some((figure, names)) = limits::unknown(&args.limits, &run.sides, &baseline.sides) {
        if names.is_empty() {
            return Err(Error::user("no trial of these runs was measured")
                .hint("`pgstrata status FOLDER` shows why; `pgstrata run --resume FOLDER` tries again"));
        }
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let known = format!("figures of these runs: {}", quoted.join(", "));
        return Err(
            Error::user(format!("no case has the figure `{figure}`")).hint(hint_at_nearest(&figure, &names, &known))
        );
    }
    if let Some((limit, meant)) = limits::on_gains_alone(&args.limits, &baseline.sides) {
        return Err(Error::user(format!("`{limit}` limits a gain, and nothing limits a loss of that figure"))
            .hint(format!("write --limit '{meant}', beside it if a gain is suspect, too")));
    }
    let findings = match args.rerun_baseline {
        false => limits::check(run.checked(), baseline.checked(), &args.limits),
        true => match rerun::check(&run, &baseline, &args.limits, &args.places.places()?, args.yes)? {
            Ok(findings) => findings,
            Err(code) => return Ok(code),
        },
    };
    out::json_or(args.json, &findings, || report::limits::terminal(&findings))?;
    if let Some(path) = &args.junit {
        to_file(path, &report::limits::junit(&findings))?;
    }
    Ok(match findings.outcome {
        Compliance::Pass => 0,
        Compliance::Fail => EXIT_REQUIREMENT,
        Compliance::Undecided => EXIT_UNDECIDED,
    })
}

/// Reads `FOLDER` or `FOLDER:CASE`; `case` is the one named by the other argument.
fn read(argument: usize, text: &str, case: Option<&str>) -> Result<RunToCheck> {
    let not_a_run = || {
        Error::user(format!("{text} is not a run folder"))
            .hint("name a folder that `pgstrata run` printed, or FOLDER:CASE; `pgstrata compare` takes other results")
    };
    let (folder, own) = folder_and_case(text).ok_or_else(not_a_run)?;
    if !RunFolder::is_one(Path::new(folder)) {
        return Err(not_a_run());
    }
    let source = RunSource::load(Path::new(folder))?;
    let wanted = own.or(case);
    let mut sides = from_run::sides(argument, folder, &source, wanted);
    if let (Some(case), true) = (wanted, sides.is_empty()) {
        return Err(Error::user(format!("{folder} has no case `{case}`"))
            .hint(format!("available: {}", source.names().join("; "))));
    }
    // The single side of a run has no name; the other run may have several.
    if let ([side], Some(case)) = (sides.as_mut_slice(), source.run.cases.first())
        && side.name.is_empty()
    {
        side.name.clone_from(&case.stack.name);
    }
    let chosen = from_run::chosen(&source.run, wanted).into_iter();
    let ids = chosen.map(|(_, cases)| cases.iter().map(|case| case.id.clone()).collect()).collect();
    let stored = RunFolder::open(Path::new(folder))?;
    let (wall_us, plan) = (load::wall_us(&stored)?, stored.plan_text()?);
    Ok(RunToCheck { label: text.to_owned(), source, sides, wall_us, plan, ids })
}

//! `pgstrata commands`: prints the script that builds a case's stack by hand.

use super::out;
use crate::analyse::findings::{Findings, StackByHand};
use crate::analyse::load;
use crate::error::{Error, Result};
use crate::plan::did_you_mean;
use crate::record::case::CaseSpec;
use crate::record::trial::{Outcome, TrialRecord};
use crate::run::{by_hand, forecast};
use crate::store::folder::{RunFolder, StoredTrial};
use std::path::{Path, PathBuf};

/// Print the shell script that builds a case's stack by hand
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata commands results/2026-11-21-0241-which ext4.tpcb > stack.sh
  pgstrata commands plan.toml ext4.tpcb                 the same, before any run

Prints, and runs nothing. The script (POSIX sh) has the commands of the run: volume, mkfs or zpool and zfs, mount and its line of \
fstab, kernel knobs, initdb, lines of postgresql.conf. After each part stand the commands that read the options back, with the values \
that the run read. Fill in DEVICE (DEVICE1, DEVICE2 ...) at its top: it refuses a device with a signature or in use. Image files, \
names, marks and the private socket of the run are left out. Layers without commands, such as `delay`, are an error.

Exit code: 0 printed, 2 no such case, or a stack without commands, 3 no trial of the case was measured, 5 the folder cannot be read.")]
pub struct Args {
    /// Run folder, plan file, or name of a shipped plan
    #[arg(value_name = "RUN|PLAN")]
    source: PathBuf,
    /// The case, as `pgstrata plan` and the report name it
    case: String,
}

/// Prints.
///
/// # Errors
/// If there is no such case, it was not measured, or its stack cannot be built by hand.
pub fn run(args: &Args) -> Result<u8> {
    let text = match RunFolder::is_one(&args.source) {
        true => of_run(&RunFolder::open(&args.source)?, &args.case)?,
        false => {
            let plan = super::plan::parsed(&args.source)?;
            let source = format!("the plan {} asks for it", plan.name);
            by_hand::script(find(&plan.cases, &args.case)?, None, &source)?
        }
    };
    out::bytes(out::harmless_lines(&text).as_bytes())?;
    Ok(0)
}

fn of_run(folder: &RunFolder, name: &str) -> Result<String> {
    let case = find(&folder.record().cases, name)?;
    // Run folders may come from others.
    forecast::recheck(std::slice::from_ref(case))?;
    let trial = measured(folder, &case.id)?;
    let (record, started) = (folder.record(), &trial.started);
    let source = format!("pgstrata {} did in the run {} on {started}", record.tool_version, record.name);
    by_hand::script(case, Some(&trial), &source)
}

/// Stacks whose scripts a page has: with more it would be mostly scripts.
const MOST_STACKS: usize = 40;

/// Findings of a run with the scripts of its stacks, for its page.
///
/// # Errors
/// As [`load::findings`].
pub(super) fn with_scripts(folder: &Path) -> Result<Findings> {
    let findings = load::findings(folder)?;
    Ok(Findings { by_hand: of_stacks(&RunFolder::open(folder)?), ..findings })
}

/// The scripts of a run's stacks; cases that differ in their workload alone share one. Of several cases the
/// first that was measured is taken.
fn of_stacks(folder: &RunFolder) -> Vec<StackByHand> {
    let cases = &folder.record().cases;
    let of_stack = |case: &CaseSpec, other: &CaseSpec| {
        (&case.guest, &case.stack, &case.postgres, &case.machine, &case.age)
            == (&other.guest, &other.stack, &other.postgres, &other.machine, &other.age)
    };
    let firsts = cases.iter().enumerate().filter(|(at, case)| !cases[..*at].iter().any(|other| of_stack(case, other)));
    let stacks = firsts.take(MOST_STACKS).map(|(at, first)| {
        let sharing = cases[at..].iter().filter(|case| of_stack(first, case));
        let mut scripts = sharing.map(|case| (case, of_run(folder, &case.id)));
        let made = scripts.find(|(_, script)| script.is_ok());
        let (case, script) = made.unwrap_or_else(|| (first, of_run(folder, &first.id)));
        let script = script.map_err(|error| error.chain());
        StackByHand { stack: first.stack.name.clone(), case: case.id.clone(), script }
    });
    stacks.collect()
}

/// The first measured trial of a case.
fn measured(folder: &RunFolder, case: &str) -> Result<TrialRecord> {
    let mut why = "it was not run".to_owned();
    for key in folder.record().order.iter().filter(|key| key.case == case) {
        match folder.stored(key)? {
            StoredTrial::Whole(trial) => match &trial.outcome {
                Outcome::Measured => return Ok(*trial),
                Outcome::NotRun { reason, .. } => why = format!("it failed: {reason}"),
            },
            StoredTrial::Damaged(reason) => why = reason,
            StoredTrial::Missing => {}
        }
    }
    Err(Error::host(format!("no trial of {case} was measured, so nothing says that its stack works: {why}"))
        .hint("`pgstrata commands PLAN CASE` prints what the plan asks for"))
}

fn find<'c>(cases: &'c [CaseSpec], name: &str) -> Result<&'c CaseSpec> {
    cases.iter().find(|case| case.id == name).ok_or_else(|| {
        let known: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
        let hint = did_you_mean(name, known.iter().copied());
        Error::user(format!("there is no case `{}`; there are {}", out::harmless(name), known.join(", ")))
            .hint(hint.unwrap_or_else(|| "`pgstrata plan PLAN` lists the cases of a plan".to_owned()))
    })
}

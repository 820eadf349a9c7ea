//! `pgstrata clean`: undoes what a run has left that was killed.

use super::out;
use super::places::StateArgs;
use super::progress::count;
use crate::error::{EXIT_INCOMPLETE, Result};
use crate::host::Host;
use crate::run::clean::{self, Leftover};

/// Undo what a run has left that was killed
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata clean            undo everything that dead runs have left, in reverse order of making
  pgstrata clean --dry-run  only list it

Touches nothing that a ledger does not list, and no run that is still alive. Exit code: 0 all is clean, 1 something
could not be undone (said which and why).")]
pub struct Args {
    /// Only list what is left
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    state: StateArgs,
}

/// Undoes and lists.
///
/// # Errors
/// When the ledgers cannot be read.
pub fn run(args: &Args) -> Result<u8> {
    let leftovers = clean::clean(&Host::this(), &args.state.state()?, args.dry_run)?;
    if leftovers.is_empty() {
        out::line("nothing to clean: no run has left anything")?;
    }
    let mut failed = false;
    for leftover in &leftovers {
        failed |= leftover.failure.is_some();
        print(leftover, args.dry_run)?;
    }
    Ok(if failed { EXIT_INCOMPLETE } else { 0 })
}

fn print(leftover: &Leftover, dry: bool) -> Result<()> {
    if leftover.live {
        return out::line(&format!("run {}: still alive, left alone", leftover.run));
    }
    let deed = match (dry, &leftover.failure) {
        (true, _) => "would undo",
        (false, None) => "undid",
        (false, Some(_)) => "tried to undo",
    };
    out::line(&format!(
        "run {}: {deed} {}",
        leftover.run,
        count(leftover.things.len().try_into().unwrap_or(u32::MAX), "thing")
    ))?;
    for thing in leftover.things.iter().rev() {
        let marks: Vec<String> = thing.marks.iter().map(|(name, value)| format!("{name} {value}")).collect();
        out::line(&format!("  {} {}: {}", thing.owner, thing.kind, out::harmless(&marks.join(", "))))?;
    }
    for knob in &leftover.left {
        out::line(&format!("  {}", out::harmless(knob)))?;
    }
    match &leftover.failure {
        Some(e) => out::line(&format!("  not all of it: {}", out::harmless_lines(&e.to_string()))),
        None => Ok(()),
    }
}

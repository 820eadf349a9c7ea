//! `pgstrata clean`: cleans up after a killed run.

use super::out;
use super::places::StateArgs;
use crate::error::{EXIT_INCOMPLETE, Result};
use crate::host::{Host, users};
use crate::report::text::paragraph;
use crate::run::clean::{self, Leftover};
use crate::units::count;

/// Clean up after a killed run
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata clean            remove everything that killed runs left behind, in reverse order
  pgstrata clean --dry-run  list it, change nothing

Touches only what a ledger lists, and never a run that is still active. Exit code: 0 all clean, 1 cleanup incomplete \
(the output says what and why).")]
pub struct Args {
    /// List what is left, change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    state: StateArgs,
}

/// Undoes and lists.
///
/// # Errors
/// If the ledgers cannot be read.
pub fn run(args: &Args) -> Result<u8> {
    let state = args.state.state()?;
    let leftovers = clean::clean(&Host::this(), &state, args.dry_run)?;
    if leftovers.is_empty() {
        let of_root = if users::is_root() { "" } else { "; what root's runs left: sudo pgstrata clean" };
        let place = out::harmless(&state.display().to_string());
        out::line(&format!("nothing to clean up: {place} lists nothing that a run left behind{of_root}"))?;
    }
    leftovers.iter().try_for_each(|leftover| print(leftover, args.dry_run))?;
    let failed = leftovers.iter().any(|leftover| leftover.failure.is_some());
    Ok(if failed { EXIT_INCOMPLETE } else { 0 })
}

fn print(leftover: &Leftover, dry: bool) -> Result<()> {
    if leftover.live {
        return out::line(&format!("run {}: still active, not touched", leftover.run));
    }
    let deed = match (dry, &leftover.failure) {
        (true, _) => "would clean up",
        (false, None) => "cleaned up",
        (false, Some(_)) => "could not fully clean up",
    };
    let things = count(leftover.things.len(), "thing");
    out::fitted(|| {
        let mut text = paragraph("", &format!("run {}: {deed} {things}", leftover.run));
        for thing in leftover.things.iter().rev() {
            let marks: Vec<String> = thing.marks.iter().map(|(name, value)| format!("{name} {value}")).collect();
            let line = format!("{} {}: {}", thing.owner, thing.kind, out::harmless(&marks.join(", ")));
            text.push_str(&paragraph("  ", &line));
        }
        text.extend(leftover.left.iter().map(|knob| paragraph("  ", &out::harmless(knob))));
        if let Some(e) = &leftover.failure {
            let message = format!("incomplete: {}", out::harmless_lines(&e.to_string()));
            message.lines().for_each(|line| text.push_str(&paragraph("  ", line)));
        }
        text
    })
}

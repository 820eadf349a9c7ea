//! The command line: flags in, plain options out; the only room that prints.
//!
//! A subcommand is one file with `Args` and `run`, its `mod` line, its variant and its arm below. Absent on purpose: how
//! a step works.

mod blocks;
mod built;
mod catalogue;
mod check;
mod clean;
mod compare;
mod completions;
mod cut;
mod cut_guest;
mod doctor;
mod estimate;
mod follow;
#[cfg(test)]
mod graph_tests;
mod guest;
mod guest_run;
mod import;
mod init;
mod man;
mod merge;
mod on;
pub(crate) mod out;
mod places;
mod plan;
mod plans;
mod postgres;
mod probe;
mod progress;
mod pull;
mod report;
mod run;
mod serve;
mod shelf;
mod siblings;
mod status;
mod witness;

pub use catalogue::catalogue;

use crate::error::{Error, Result};
use clap::{CommandFactory, Parser, Subcommand};
use out::Colour;
use std::ffi::OsString;
use std::process::ExitCode;

/// Shown below the help of the program and in its manual page.
const AFTER_HELP: &str = "\
Examples:
  pgstrata init                          write a first plan interactively
  pgstrata plan plan.toml                check it and show what it will do
  pgstrata run plan.toml                 run it: results, ranking, report.html
  pgstrata report results/...            recompute and render the report of a run

Exit status:
  0    done
  1    incomplete: trials not run, nothing to compare, a failed sync,
       cleanup incomplete
  2    wrong usage, or an error in a plan or other input file
  3    the machine lacks or refuses something needed
  4    an external program failed
  5    results cannot be read or written
  6    a requirement is not met, a limit is exceeded, or a power cut
       loses commits
  7    a requirement or limit is undecided, and none is known to be missed
  70   internal error in pgstrata
  130  interrupted";

/// Find out which storage stack PostgreSQL should run on
///
/// Builds each storage stack of a plan, runs a real PostgreSQL on it, measures every layer, judges durability, and
/// writes one report.
#[derive(Debug, Parser)]
#[command(name = "pgstrata", version, after_help = AFTER_HELP, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    /// When to use color: auto (on a terminal, unless NO_COLOR is set), always, never
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN", hide_possible_values = true)]
    color: Colour,
    #[command(subcommand)]
    command: Command,
}

/// Every subcommand, in the order of the help.
#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Args),
    Plan(plan::Args),
    Plans(plans::Args),
    Run(run::Args),
    Status(status::Args),
    Probe(probe::Args),
    Cut(cut::Args),
    Pull(pull::Args),
    Witness(witness::Args),
    Merge(merge::Args),
    Compare(compare::Args),
    Check(check::Args),
    Import(import::Args),
    Report(report::Args),
    Serve(serve::Args),
    Shelf(shelf::Args),
    Clean(clean::Args),
    Guest(guest::Args),
    Postgres(postgres::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(name = "guest-agent", hide = true)]
    GuestAgent(guest::AgentArgs),
}

impl Command {
    fn run(&self) -> Result<u8> {
        match self {
            Command::Init(args) => init::run(args),
            Command::Plan(args) => plan::run(args),
            Command::Plans(args) => plans::run(args),
            Command::Run(args) => run::run(args),
            Command::Status(args) => status::run(args),
            Command::Probe(args) => probe::run(args),
            Command::Cut(args) => cut::run(args),
            Command::Pull(args) => pull::run(args),
            Command::Witness(args) => witness::run(args),
            Command::Merge(args) => merge::run(args),
            Command::Compare(args) => compare::run(args),
            Command::Check(args) => check::run(args),
            Command::Import(args) => import::run(args),
            Command::Report(args) => report::run(args),
            Command::Serve(args) => serve::run(args),
            Command::Shelf(args) => shelf::run(args),
            Command::Clean(args) => clean::run(args),
            Command::Guest(args) => guest::run(args),
            Command::Postgres(args) => postgres::run(args),
            Command::Doctor(args) => doctor::run(args),
            Command::Completions(args) => completions::run(args),
            Command::Man(args) => man::run(args),
            Command::GuestAgent(args) => guest::run_agent(args),
        }
    }
}

/// The description of the whole command line, for completions and manual pages.
fn command() -> clap::Command {
    Cli::command()
}

/// Runs the program with the arguments of the process: parses, calls, prints the error, gives the exit code.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os()))
}

fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(usage) => {
            // An error about printing an error could not be printed.
            let printed = out::settle(usage.print());
            return match (usage.exit_code(), printed) {
                (0, Err(error)) => failed(&error),
                (code, _) => u8::try_from(code).unwrap_or(2),
            };
        }
    };
    out::set_colour(cli.color);
    match cli.command.run() {
        Ok(code) => code,
        Err(error) => failed(&error),
    }
}

fn failed(error: &Error) -> u8 {
    out::error(error);
    error.kind().exit_code()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_subcommand_shows_examples_in_its_help() {
        for subcommand in command().get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
            let help = subcommand.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:\n  pgstrata "), "{}", subcommand.get_name());
            assert!(subcommand.get_about().is_some(), "{}", subcommand.get_name());
        }
    }

    #[test]
    fn wrong_usage_exits_with_2_and_help_with_0() {
        let code = |args: &[&str]| run(args.iter().map(OsString::from));
        assert_eq!(code(&["pgstrata", "--no-such-flag"]), 2);
        assert_eq!(code(&["pgstrata", "plan"]), 2);
        assert_eq!(code(&["pgstrata", "plan", "--example", "--schema"]), 2);
        assert_eq!(code(&["pgstrata", "plan", "--help"]), 0);
    }
}

//! The command line: flags in, plain options out; the only room that prints.
//!
//! A subcommand is one file with `Args` and `run`, its `mod` line, and its line in the list `subcommands!` below. Absent
//! on purpose: the work of each step.

mod beside;
mod built;
mod catalogue;
mod check;
mod clean;
mod commands;
mod compare;
mod completions;
mod cut;
mod cut_guest;
mod doctor;
#[cfg(test)]
mod documentation_tests;
mod engines;
mod estimate;
mod follow;
#[cfg(test)]
mod graph_tests;
mod guest;
mod guest_agent;
mod guest_run;
mod help;
mod import;
mod init;
mod man;
mod merge;
mod named;
mod on;
pub(crate) mod out;
mod page;
mod places;
mod plan;
mod plans;
mod postgres;
mod prepared;
mod probe;
mod profile;
mod progress;
mod pull;
mod report;
mod rerun;
mod run;
mod serve;
mod share;
mod shelf;
mod siblings;
mod status;
mod submit;
mod witness;

pub use catalogue::catalogue;

use crate::error::{Error, Result};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
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
  1    incomplete: trials not run, shares or blocks missing, nothing to
       compare, a failed sync, an incomplete cleanup
  2    wrong usage, or an error in a plan or other input file
  3    the machine lacks or refuses something needed
  4    an external program failed
  5    results cannot be read or written
  6    a requirement is not met, a limit is exceeded, or a power cut
       loses commits
  7    a requirement or limit is undecided, and none is known to be missed
  70   internal error in pgstrata
  130  interrupted";

/// Subcommands that depend on Linux: its block devices, mounts, control groups, `/proc` and `/sys`. Elsewhere they are
/// refused before they start.
const NEED_LINUX: [&str; 10] =
    ["init", "plan", "run", "cut", "pull", "clean", "guest", "postgres", "doctor", "guest-agent"];

/// Find out which storage stack PostgreSQL should run on
///
/// Builds each storage stack of a plan, runs a real PostgreSQL on it, measures every layer, judges durability, and
/// writes one report.
#[derive(Debug, Parser)]
#[command(name = "pgstrata", version = env!("PGSTRATA_VERSION"), after_help = AFTER_HELP, disable_help_subcommand = true)]
struct Cli {
    /// When to use color: auto (on a terminal, unless NO_COLOR is set), always, never
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN", hide_possible_values = true)]
    color: Colour,
    #[command(subcommand)]
    command: SubcommandArgs,
}

/// Expands `Name: FILE;` to the subcommand with the `Args` of the file and to the call of its `run`.
macro_rules! subcommands {
    ($($(#[$shown:meta])* $name:ident: $module:ident;)*) => {
        /// Every subcommand, in the order of the help.
        #[derive(Debug, Subcommand)]
        enum SubcommandArgs {
            $($(#[$shown])* $name($module::Args),)*
        }

        impl SubcommandArgs {
            fn run(&self) -> Result<u8> {
                match self {
                    $(SubcommandArgs::$name(args) => $module::run(args),)*
                }
            }
        }
    };
}

subcommands! {
    Init: init;
    Plan: plan;
    Plans: plans;
    Run: run;
    Status: status;
    Probe: probe;
    Profile: profile;
    Cut: cut;
    Pull: pull;
    Witness: witness;
    Submit: submit;
    Merge: merge;
    Compare: compare;
    Check: check;
    Import: import;
    Report: report;
    Commands: commands;
    Serve: serve;
    Shelf: shelf;
    Clean: clean;
    Guest: guest;
    Postgres: postgres;
    Doctor: doctor;
    Completions: completions;
    Man: man;
    #[command(name = "guest-agent", hide = true)]
    GuestAgent: guest_agent;
}

/// The description of the whole command line, for completions and manual pages.
fn command() -> clap::Command {
    Cli::command()
}

/// Runs the program with the arguments of the process: parses, calls, prints the error, returns the exit code.
pub fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os()))
}

fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let parsed = help::at(out::width(), command()).try_get_matches_from(args);
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(usage) => {
            let usage = help::pointed(usage, &command());
            // An error about printing an error could not be printed.
            let printed = out::settle(usage.print());
            return match (usage.exit_code(), printed) {
                (0, Err(error)) => failed(&error),
                (code, _) => u8::try_from(code).unwrap_or(2),
            };
        }
    };
    out::set_colour(cli.color);
    let subcommand = matches.subcommand_name().unwrap_or_default();
    match refuse_elsewhere(subcommand, std::env::consts::OS).and_then(|()| cli.command.run()) {
        Ok(code) => code,
        Err(error) => failed(&error),
    }
}

/// Refuses subcommands that need Linux on other systems.
fn refuse_elsewhere(subcommand: &str, system: &str) -> Result<()> {
    if system == "linux" || !NEED_LINUX.contains(&subcommand) {
        return Ok(());
    }
    let command = command();
    let names = command.get_subcommands().filter(|one| !one.is_hide_set()).map(clap::Command::get_name);
    let others: Vec<&str> = names.filter(|name| !NEED_LINUX.contains(name)).collect();
    Err(Error::host(format!("pgstrata {subcommand} needs Linux, and this is {system}"))
        .hint(format!("what works here: {}", others.join(", "))))
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
    fn commands_that_need_linux_are_refused_elsewhere_with_an_alternative() {
        let command = command();
        for name in NEED_LINUX {
            assert!(command.find_subcommand(name).is_some(), "{name}");
            assert!(refuse_elsewhere(name, "linux").is_ok(), "{name}");
            let refused = refuse_elsewhere(name, "freebsd").unwrap_err();
            assert_eq!(refused.kind().exit_code(), 3);
            assert_eq!(refused.to_string(), format!("pgstrata {name} needs Linux, and this is freebsd"));
            let hint = refused.hint_text().unwrap_or_default();
            assert!(hint.contains("probe") && hint.contains("report") && !hint.contains("clean"), "{hint}");
        }
        for name in ["probe", "import", "compare", "report"] {
            assert!(refuse_elsewhere(name, "macos").is_ok(), "{name}");
        }
    }

    #[test]
    fn wrong_usage_exits_with_2_and_help_with_0() {
        let code = |args: &[&str]| run(args.iter().map(OsString::from));
        assert_eq!(code(&["pgstrata", "--no-such-flag"]), 2);
        assert_eq!(code(&["pgstrata", "plan"]), 2);
        assert_eq!(code(&["pgstrata", "plan", "--example", "--schema"]), 2);
        assert_eq!(code(&["pgstrata", "plan", "--all", "x"]), 2);
        assert_eq!(code(&["pgstrata", "plan", "--help"]), 0);
    }
}

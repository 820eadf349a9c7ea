//! `pgstrata completions`: completion scripts for shells.
//!
//! clap_complete provides subcommands and options. Added here: names of publications and, for `compare`, the cases of a
//! run folder, which the shell lists from the folder.

use super::out;
use crate::error::Result;
use crate::foreign::shelf;
use clap::ValueHint;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;

/// Print shell completions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pgstrata completions bash > /etc/bash_completion.d/pgstrata
  pgstrata completions fish > ~/.config/fish/completions/pgstrata.fish

bash, zsh and fish also complete shelf names, and FOLDER:CASE for compare.")]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the completions.
///
/// # Errors
/// If standard output cannot be written.
pub fn run(args: &Args) -> Result<u8> {
    out::bytes(script(args.shell).as_bytes())?;
    Ok(0)
}

/// Arguments that are plans or folders: (subcommand, argument, hint).
const HINTS: [(&str, &str, ValueHint); 12] = [
    ("plan", "file", ValueHint::FilePath),
    ("run", "plan", ValueHint::FilePath),
    ("plan", "on", ValueHint::AnyPath),
    ("run", "on", ValueHint::AnyPath),
    ("run", "resume", ValueHint::DirPath),
    ("status", "folder", ValueHint::DirPath),
    ("report", "folder", ValueHint::DirPath),
    ("commands", "source", ValueHint::AnyPath),
    ("probe", "folder", ValueHint::DirPath),
    ("submit", "plan", ValueHint::FilePath),
    ("submit", "into", ValueHint::DirPath),
    ("submit", "again", ValueHint::DirPath),
];

/// Placeholder for the names of publications in the parts below.
const NAMES: &str = "@NAMES@";
/// Same, each as a side of `compare`.
const SIDES: &str = "@SIDES@";

/// Bash breaks words at colons, so of `shelf:NAME` or `FOLDER:CASE` it only has the part after the last one.
const BASH: &str = include_str!("completions/pgstrata.bash");

const FISH: &str = include_str!("completions/pgstrata.fish");

const ZSH: &str = include_str!("completions/pgstrata.zsh");
/// End of functions in clap_complete's output for zsh.
const ZSH_END: &str = "\nif [ \"$funcstack[1]\" = \"_pgstrata\" ]; then";
/// The sides of `compare` in that output, and their replacement.
const ZSH_SIDES: (&str, &str) = ("the first is the reference:_default'", "the first is the reference:_pgstrata_sides'");

/// The whole script for a shell.
fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut with_values(super::command()), "pgstrata", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let names = shelf::names();
    let sides: Vec<String> = names.iter().map(|name| format!("shelf:{name}")).collect();
    let script = match shell {
        Shell::Bash => script + BASH,
        Shell::Fish => script + FISH,
        Shell::Zsh => script.replacen(ZSH_END, &format!("{ZSH}{ZSH_END}"), 1).replacen(ZSH_SIDES.0, ZSH_SIDES.1, 1),
        _ => script,
    };
    script.replace(NAMES, &names.join(" ")).replace(SIDES, &sides.join(" "))
}

/// The command line with value hints for shells. Only here: elsewhere an unknown name gets its own message.
fn with_values(command: clap::Command) -> clap::Command {
    let command = HINTS.into_iter().fold(command, |command, (subcommand, argument, hint)| {
        command.mut_subcommand(subcommand, |it| it.mut_arg(argument, |argument| argument.value_hint(hint)))
    });
    let names = PossibleValuesParser::new(shelf::names());
    command.mut_subcommand("shelf", |shelf| {
        shelf.mut_subcommand("show", |show| show.mut_arg("name", |name| name.value_parser(names)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bash_zsh_and_fish_complete_shelf_names_and_run_cases() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            let sides = shelf::names().into_iter().map(|name| format!("shelf:{name}"));
            assert!(sides.into_iter().all(|side| script.contains(&side)), "{shell}");
            assert!(shelf::names().iter().all(|name| script.matches(name).count() > 1), "{shell}");
            assert!(script.contains("/trials/*") && !script.contains(NAMES) && !script.contains(SIDES), "{shell}");
        }
        assert!(script(Shell::Zsh).contains(":_pgstrata_sides'") && script(Shell::Bash).contains("plusdirs"));
    }
}

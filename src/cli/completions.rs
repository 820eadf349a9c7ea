//! `pgstrata completions`: what a shell needs to complete the command line.

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
  pgstrata completions fish > ~/.config/fish/completions/pgstrata.fish")]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the completions.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &Args) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut with_values(super::command()), "pgstrata", &mut script);
    out::bytes(&script)?;
    Ok(0)
}

/// Arguments that are plans, and those that are folders: (subcommand, argument, what it is).
const HINTS: [(&str, &str, ValueHint); 5] = [
    ("plan", "file", ValueHint::FilePath),
    ("run", "plan", ValueHint::FilePath),
    ("run", "resume", ValueHint::DirPath),
    ("report", "folder", ValueHint::DirPath),
    ("probe", "folder", ValueHint::DirPath),
];

/// The command line with what a shell can know of its values. Only here: elsewhere an unknown name gets its own message.
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
    fn bash_and_zsh_complete_the_names_of_the_shelf_and_bash_folders() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut with_values(super::super::command()), "pgstrata", &mut script);
            let script = String::from_utf8(script).unwrap();
            // The others complete no values of arguments in what clap_complete makes for them.
            if matches!(shell, Shell::Bash | Shell::Zsh) {
                assert!(shelf::names().iter().all(|name| script.contains(name)), "{shell}");
            }
            assert!(shell != Shell::Bash || script.contains("plusdirs"), "{script}");
        }
    }
}

//! `pgstrata completions`: completion scripts for shells.
//!
//! clap_complete provides subcommands and options, hidden ones too, which are left out here. Added: names of shipped
//! plans and of publications and, for `compare`, the cases of a run folder, which the shell lists from the folder.

use super::out;
use crate::error::Result;
use crate::foreign::shelf;
use crate::plan::shipped;
use clap::ValueHint;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;
use std::sync::LazyLock;

/// Print shell completions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pgstrata completions bash > /etc/bash_completion.d/pgstrata
  pgstrata completions fish > ~/.config/fish/completions/pgstrata.fish

bash, zsh and fish also complete names of shipped plans and of the shelf, and FOLDER:CASE for compare.")]
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
/// Same, of shipped plans.
const PLANS: &str = "@PLANS@";
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

/// How zsh completes the plan of plans, and the replacement.
const ZSH_PLAN: (&str, &str) = (":_files'", ":_pgstrata_plans'");

/// Static, because clap wants names that last.
static COMMAND: LazyLock<clap::Command> = LazyLock::new(super::command);

/// The command line without hidden options and subcommands, which are for the program itself.
fn visible(command: &'static clap::Command) -> clap::Command {
    let shown = clap::Command::new(command.get_name()).disable_help_subcommand(true);
    let shown = command.get_about().into_iter().fold(shown, |shown, about| shown.about(about.clone()));
    shown
        .args(command.get_arguments().filter(|one| !one.is_hide_set()).cloned())
        .subcommands(command.get_subcommands().filter(|one| !one.is_hide_set()).map(visible))
}

/// The whole script for a shell.
fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    let mut command = with_values(visible(&COMMAND).version(env!("PGSTRATA_VERSION")));
    clap_complete::generate(shell, &mut command, "pgstrata", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let names = shelf::names();
    let sides: Vec<String> = names.iter().map(|name| format!("shelf:{name}")).collect();
    let script = match shell {
        Shell::Bash => script + BASH,
        Shell::Fish => script + FISH,
        Shell::Zsh => {
            let script = script.replacen(ZSH_END, &format!("{ZSH}{ZSH_END}"), 1).replacen(ZSH_SIDES.0, ZSH_SIDES.1, 1);
            let lines = script.split_inclusive('\n').map(|line| match line.contains("name of a shipped plan") {
                true => line.replacen(ZSH_PLAN.0, ZSH_PLAN.1, 1),
                false => line.to_owned(),
            });
            lines.collect()
        }
        _ => script,
    };
    let plans: Vec<&str> = shipped::all().map(|plan| plan.name).collect();
    script.replace(NAMES, &names.join(" ")).replace(SIDES, &sides.join(" ")).replace(PLANS, &plans.join(" "))
}

/// The command line with value hints for shells. Only here: elsewhere an unknown name gets its own message.
fn with_values(command: clap::Command) -> clap::Command {
    let command = HINTS.into_iter().fold(command, |command, (subcommand, argument, hint)| {
        command.mut_subcommand(subcommand, |it| it.mut_arg(argument, |argument| argument.value_hint(hint)))
    });
    let plans = PossibleValuesParser::new(shipped::all().map(|plan| plan.name));
    let command = command.mut_subcommand("plans", |list| list.mut_arg("name", |name| name.value_parser(plans.clone())));
    let shown = [("plans", plans), ("shelf", PossibleValuesParser::new(shelf::names()))];
    shown.into_iter().fold(command, |command, (list, names)| {
        command.mut_subcommand(list, |list| {
            list.mut_subcommand("show", |show| show.mut_arg("name", |name| name.value_parser(names)))
        })
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

    #[test]
    fn scripts_have_shipped_plans_and_no_internal_option() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = script(shell);
            for hidden in ["crashed", "guest-agent", "@PLANS@"] {
                assert!(!script.contains(hidden), "{shell}: {hidden}");
            }
            let has_plans = matches!(shell, Shell::Elvish | Shell::PowerShell) || script.contains("encryption");
            assert!(script.contains("notify") && has_plans, "{shell}");
        }
        assert_eq!(script(Shell::Zsh).matches(":_pgstrata_plans'").count(), 6);
    }
}

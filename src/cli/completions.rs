//! `pgstrata completions`: what a shell needs to complete the command line.

use super::out;
use crate::error::Result;
use clap_complete::Shell;

/// Print the completions for a shell
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
    clap_complete::generate(args.shell, &mut super::command(), "pgstrata", &mut script);
    out::bytes(&script)?;
    Ok(0)
}

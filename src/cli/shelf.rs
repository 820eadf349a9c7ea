//! `pgstrata shelf`: shows the published measurements in the program, and how far their own figures support the
//! conclusions.

use super::out;
use crate::analyse::compare::single;
use crate::analyse::shelf::findings::ShelfFindings;
use crate::error::Result;
use crate::foreign::shelf;
use crate::record::publication::Publication;
use crate::{analyse, report};
use serde::Serialize;

const HELP: &str = "Examples:
  pgstrata shelf                                          list the shelf
  pgstrata shelf show wal-blocksize-2012                  its conclusions, and what its figures support
  pgstrata shelf show wal-blocksize-2012 --json           every number with its unit, file and line
  pgstrata shelf --json | jq '.[] | {name, conclusions}'  as JSON

The raw output of each publication ships with this program and is read by the same code as your
own files. Works without root, PostgreSQL or a network.";

/// Show published measurements, and whether their figures support their conclusions
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = format!("{HELP}\n\n{}", single::RULE.join("\n"))
)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show one publication
    #[command(after_help = "Examples:
  pgstrata shelf show freebsd10-zfs-fsync-2014
  pgstrata shelf show freebsd10-zfs-fsync-2014 --json | jq .findings.remarks")]
    Show {
        /// Name, as listed by `pgstrata shelf`
        name: String,
        /// Print JSON: findings, and the record with every number
        #[arg(long)]
        json: bool,
    },
}

/// Output of `show --json`.
#[derive(Serialize)]
struct PublicationDocument<'a> {
    findings: &'a ShelfFindings,
    publication: &'a Publication,
}

/// Lists or shows.
///
/// # Errors
/// If there is no publication of that name, or standard output cannot be written.
pub fn run(args: &Args) -> Result<u8> {
    match &args.action {
        None => list(args.json)?,
        Some(Action::Show { name, json }) => show(name, *json)?,
    }
    Ok(0)
}

fn list(json: bool) -> Result<()> {
    let found: Vec<ShelfFindings> = shelf::all()?.iter().map(analyse::shelf::find).collect();
    out::json_or(json, &found, || report::shelf::list(&found))
}

fn show(name: &str, json: bool) -> Result<()> {
    let publication = shelf::open(name)?;
    let findings = analyse::shelf::find(&publication);
    let whole = PublicationDocument { findings: &findings, publication: &publication };
    out::json_or(json, &whole, || report::shelf::show(&findings))
}

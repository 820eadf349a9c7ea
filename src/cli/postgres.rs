//! `pgstrata postgres`: PostgreSQL builds that plans need.

use super::{built, out};
use crate::builds::{BuildNote, Shelf};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::report::text::paragraph;
use crate::units::Bytes;
use clap::Subcommand;
use serde::Serialize;
use std::path::PathBuf;

/// Build PostgreSQL from source as plans ask for it, list what is built, remove it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata postgres build wal-block-size   build what a plan needs; `pgstrata run` does it by itself
  pgstrata postgres list                   what is built, from what, and how large it is
  pgstrata postgres rm 0a1b2c3d4e5f6071    remove one build
  pgstrata postgres rm --all               remove all builds and fetched sources

A plan has a server built with
  [postgres]
  build = { version = \"15\", wal_blocksize = [8, 16, 64] }
where each value can be a list, which is an axis. The keys are version and suite (the tarball of Debian's source package, from \
this machine's mirror), or source (a tarball or a git checkout); wal_blocksize, blocksize (kB), segsize (GB); configure and \
patches (lists). `pgstrata plan --example --all` explains them.

A build takes about 2 minutes on 2 cores and 30 MB in PGSTRATA_CACHE, or /var/cache/pgstrata for root, or ~/.cache/pgstrata. \
It is made once for the same source, options, patches and compiler. Nothing of it runs as root.")]
pub struct Args {
    #[command(subcommand)]
    what: PostgresCommand,
}

#[derive(Debug, Subcommand)]
enum PostgresCommand {
    /// Build every PostgreSQL that a plan asks for
    Build {
        /// Plan file, or the name of a shipped plan
        plan: PathBuf,
    },
    /// List what is built
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove one build, or all
    Rm {
        /// Key of the build (see `list`)
        #[arg(required_unless_present = "all", value_name = "KEY")]
        key: Option<String>,
        /// Remove all builds and fetched sources
        #[arg(long, conflicts_with = "key")]
        all: bool,
    },
}

const STOPPING: &[u8] = b"\rinterrupted: removing the unfinished build; finished ones are kept\n";
const LEFT: &[u8] = b"\rthe next build removes what is left of this one\n";

/// # Errors
/// See the exit codes in the help text.
pub fn run(args: &Args) -> Result<u8> {
    match &args.what {
        PostgresCommand::Build { plan } => {
            let mut plan = super::plan::read(plan, false, &[], None)?.plan;
            if plan.cases.iter().all(|case| case.postgres.as_ref().is_none_or(|postgres| postgres.build.is_none())) {
                let error = Error::user("the plan has no `build` in [postgres]: it runs installed servers");
                return Err(error.hint("pgstrata postgres --help shows how to write one"));
            }
            built::make(&Host::this(), &mut plan.cases, &Interrupt::listen_saying(STOPPING, LEFT)?)?;
            list(false)
        }
        PostgresCommand::List { json } => list(*json),
        PostgresCommand::Rm { key, .. } => {
            let shelf = Shelf::of_user()?;
            let bytes = key.as_ref().map_or_else(|| shelf.remove_all(), |key| shelf.remove(key))?;
            out::remark(&format!("{} removed", Bytes(bytes)));
            Ok(0)
        }
    }
}

/// A build in the list.
#[derive(Serialize)]
struct KeptBuild {
    key: String,
    bin: PathBuf,
    bytes: u64,
    #[serde(flatten)]
    kept: BuildNote,
}

fn list(json: bool) -> Result<u8> {
    let shelf = Shelf::of_user()?;
    let lines = shelf.all()?.into_iter();
    let lines =
        lines.map(|(key, kept, bytes)| KeptBuild { bin: shelf.path().join(&key).join("bin"), key, bytes, kept });
    let lines: Vec<KeptBuild> = lines.collect();
    out::json_or(json, &lines, || match lines.is_empty() {
        true => "nothing is built\n".to_owned(),
        false => lines.iter().map(shown).collect::<Vec<_>>().join("\n"),
    })?;
    Ok(0)
}

fn shown(line: &KeptBuild) -> String {
    let KeptBuild { key, bin, bytes, kept } = line;
    let rows = [
        ("  asked for   ", kept.spec.described()),
        ("  made from   ", kept.made_from.clone()),
        ("  configure   ", kept.configure.join(" ")),
        ("  compiler    ", kept.compiler.clone()),
        ("  programs    ", bin.display().to_string()),
    ];
    let rows: String = rows.iter().map(|(name, value)| paragraph(name, value)).collect();
    format!("{key}  PostgreSQL {}, {}\n{rows}", out::harmless(&kept.version), Bytes(*bytes))
}

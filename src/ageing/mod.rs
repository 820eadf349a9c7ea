//! Ageing a stack before it is measured: work on the files of a stopped cluster and on the free space beside them, and
//! the resulting file layout.
//!
//! Each mechanism is one file and one option in [`SPECS`]; amounts are work (times overwritten, share filled), never
//! time. Absent on purpose: the filesystem below, when ageing happens, figures.
//!
//! # Add a way to age a stack
//!
//! Add an option in [`SPECS`] (an amount of work; 0 does nothing), a file, a type in `record::age` for its result, and
//! a call in `age`. Work that changes the cluster itself is done for the control too; work that is lost with the
//! filesystem is not. `run` passes in the snapshot actions. An amount that is plotted needs a line in `AMOUNTS` of
//! `analyse::run::ageing`, and a figure needs lines in `age_figures::of_trial` (`docs/adr/0025-ageing.md`).

mod churn;
pub mod drive;
mod fill;
pub(crate) mod layout;
mod pages;
mod pgbench;
mod spree;

use crate::cluster::check;
use crate::cluster::spec::ServerSpec;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::record::age::AgeRecord;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use std::path::Path;

/// Minimum `batch`: PostgreSQL's default page size.
const LEAST_BATCH: u64 = 8192;

/// Batches per rewrite of the data if the plan gives no `batch`: each holds 3 % of the pages, like a checkpoint
/// interval of 30 s at 1000 transactions a second on 8 GiB.
const BATCHES: u64 = 32;

/// Maximum of `fill`, percent: beyond it a copy-on-write filesystem may refuse even deletes.
const MOST_FILL: i64 = 95;

/// Options of `age` in a stack.
pub const SPECS: &[OptionSpec] = &[
    OptionSpec::with_default(REWRITE, OptionKind::Integer { min: 0 }, "0").doc(
        "how many times the data are overwritten with the server stopped: random pages of the relation files are \
         written back with the same bytes, sorted within batches and synced after each, as checkpoints do",
    ),
    OptionSpec::with_default("batch", OptionKind::Size, "1/32 of the data")
        .doc("pages written between two syncs by `rewrite` and `pgbench`"),
    OptionSpec::with_default("pgbench", OptionKind::Integer { min: 0 }, "0").doc(
        "how many times the data are overwritten by a server under pgbench (tpcb-like), with a checkpoint after each \
         batch; the database bloats, too",
    ),
    OptionSpec::with_default("churn", OptionKind::Integer { min: 0 }, "0").doc(
        "how many times the free space is written with files of PostgreSQL's sizes (WAL segments, temporary files, \
         relation segments, base backups), most of which are deleted",
    ),
    OptionSpec::with_default("fill", OptionKind::Integer { min: 0 }, "0").doc(
        "percent of the filesystem to be used before the measurement: files of 9 MB in ten folders are added, in \
         steps of 18 % of its size",
    ),
    OptionSpec::with_default("deletes", OptionKind::Boolean, "false")
        .doc("whether a quarter of the files of each step of `fill` is deleted after it"),
    OptionSpec::with_default(SNAPSHOTS, OptionKind::Boolean, "false").doc(
        "whether a snapshot is made after each step of `fill`, before its deletes, and kept: what is deleted then \
         stays held (btrfs, lvm, zfs; xfs as reflinks)",
    ),
    OptionSpec::with_default("filesystem", OptionKind::OneOf(&[AGED, FRESH]), AGED).doc(
        "where the aged cluster is measured: where it is, or copied to a fresh filesystem on the same devices \
             (the control)",
    ),
];

const REWRITE: &str = "rewrite";
const SNAPSHOTS: &str = "snapshots";
const AGED: &str = "aged";
const FRESH: &str = "fresh";

/// The option that rewrites existing bytes unchanged, if the plan sets one: some storage below a filesystem skips such
/// writes. The control has none.
pub fn asks_for_same_bytes(options: &Options) -> Option<&'static str> {
    let asks = options.integer(REWRITE).is_some_and(|times| times > 0);
    (asks && !is_fresh(options)).then_some(REWRITE)
}

/// Options that only a workload with a server can have.
pub const OF_CLUSTERS: &[&str] = &[REWRITE, "batch", "pgbench"];

/// Checks constraints that the specs cannot express.
///
/// # Errors
/// The key and what is wrong with it.
pub fn check(options: &Options) -> Result<(), OptionProblem> {
    if options.integer("fill").is_some_and(|fill| fill > MOST_FILL) {
        return Err(OptionProblem::at("fill", format!("must be at most {MOST_FILL} percent")));
    }
    for key in ["deletes", SNAPSHOTS] {
        if options.boolean(key) == Some(true) && options.integer("fill").is_none() {
            return Err(OptionProblem::at(key, "needs `fill`").help("add fill = 70"));
        }
    }
    if options.size("batch").is_some_and(|batch| batch.0 < LEAST_BATCH) {
        return Err(OptionProblem::at("batch", "must be at least 8 KiB, one page"));
    }
    Ok(())
}

/// True for the control: the cluster on a fresh filesystem.
pub fn is_fresh(options: &Options) -> bool {
    options.text("filesystem") == Some(FRESH)
}

/// The option that takes snapshots of the stack, if the plan sets one. The control has none: they would be lost with
/// the filesystem.
pub fn asks_for_snapshots(options: &Options) -> Option<&'static str> {
    let asks = options.boolean(SNAPSHOTS) == Some(true) && options.integer("fill").is_some_and(|fill| fill > 0);
    (asks && !is_fresh(options)).then_some(SNAPSHOTS)
}

/// Snapshots of the stack, which stay until it is torn down.
pub struct AgeingSnapshots<'a> {
    /// Takes the snapshot with this number.
    pub make: &'a dyn Fn(u64) -> Result<()>,
    /// Bytes in use, including those held by snapshots.
    pub used: &'a dyn Fn() -> Result<u64>,
    /// True if the snapshots hold space of the filesystem, not of a volume below it.
    pub of_filesystem: bool,
}

/// Target of the ageing.
pub struct AgeingSubject<'a> {
    pub host: &'a Host,
    /// A cleanly stopped cluster, if there is one.
    pub cluster: Option<&'a ServerSpec>,
    /// Folder on the stack for files beside the cluster.
    pub folder: &'a Path,
    /// Set if the options need snapshots.
    pub snapshots: Option<AgeingSnapshots<'a>>,
    /// Seed of all random choices: the same pages and files on every stack.
    pub seed: u64,
    pub interrupt: &'a Interrupt,
}

/// Runs every mechanism that the options name. The control gets only those that change the cluster itself: the rest
/// would be lost with the filesystem.
///
/// # Errors
/// The kernel's or the server's message; a full filesystem is named as such; interrupted.
pub fn age(subject: &AgeingSubject<'_>, options: &Options) -> Result<AgeRecord> {
    let amount = |key| options.integer(key).and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    let is_fresh = is_fresh(options);
    let mut record = AgeRecord { is_fresh, ..AgeRecord::default() };
    if let Some(cluster) = subject.cluster {
        let page = check::block_size(subject.host, &cluster.install, &cluster.user)?;
        let files = pages::relation_files(&cluster.data, page)?;
        record.data_bytes = files.iter().map(|file| file.bytes).sum();
        let batch = options.size("batch").map_or(record.data_bytes / BATCHES, |batch| batch.0).max(page) / page;
        if amount("pgbench") > 0 {
            record.bloat = Some(pgbench::run(subject, cluster, amount("pgbench"), record.data_bytes, batch)?);
        }
        if amount(REWRITE) > 0 && !is_fresh {
            // pgbench may have added files.
            let files = pages::relation_files(&cluster.data, page)?;
            let of = pages::Rewrite { page, times: amount(REWRITE), batch, seed: subject.seed };
            record.pages = Some(pages::rewrite(&files, of, subject.interrupt)?);
        }
    } else if let Some(key) = OF_CLUSTERS.iter().find(|key| amount(key) > 0) {
        return Err(Error::bug(format!("`{key}` of `age` needs a cluster")));
    }
    if amount("churn") > 0 && !is_fresh {
        record.churn = Some(churn::run(subject, amount("churn"), record.data_bytes)?);
    }
    if amount("fill") > 0 && !is_fresh {
        let deletes = options.boolean("deletes") == Some(true);
        let (files, snapshots) = fill::run(subject, amount("fill"), deletes)?;
        (record.fill, record.snapshots) = (Some(files), snapshots);
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::options::OptionValue;

    #[test]
    fn amounts_that_make_no_sense_are_refused() {
        let refused = |pairs: &[(&str, OptionValue)]| {
            let mut options = Options::default();
            pairs.iter().for_each(|(key, value)| options.set(key, value.clone()));
            check(&options).err().and_then(|problem| problem.key)
        };
        assert_eq!(refused(&[("fill", OptionValue::Integer(96))]).as_deref(), Some("fill"));
        assert_eq!(refused(&[("deletes", OptionValue::Boolean(true))]).as_deref(), Some("deletes"));
        assert_eq!(refused(&[("snapshots", OptionValue::Boolean(true))]).as_deref(), Some("snapshots"));
        assert_eq!(refused(&[("batch", OptionValue::Text("4KiB".into()))]).as_deref(), Some("batch"));
        assert_eq!(refused(&[("fill", OptionValue::Integer(90)), ("deletes", OptionValue::Boolean(true))]), None);
    }

    #[test]
    fn snapshots_are_requested_only_where_a_filled_filesystem_persists() {
        let asks = |fill: i64, filesystem: &str| {
            let mut options = Options::default();
            options.set("fill", OptionValue::Integer(fill));
            options.set("snapshots", OptionValue::Boolean(true));
            options.set("filesystem", OptionValue::Text(filesystem.to_owned()));
            asks_for_snapshots(&options)
        };
        assert_eq!((asks(90, AGED), asks(0, AGED), asks(90, FRESH)), (Some("snapshots"), None, None));
        assert_eq!(asks_for_snapshots(&Options::default()), None);
    }
}

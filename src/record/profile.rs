//! What a running server asks of its storage: `profile.toml` of `pgstrata profile`.
//!
//! Differences of the server's own counters between two readings, under the names that PostgreSQL gives them and in
//! its units: blocks are of `block_size`, times are milliseconds. No names of tables, databases, users or hosts, no
//! SQL.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Format version. Fields are only added as `Option` within it.
pub const FORMAT: u32 = 1;

/// Names with whole numbers.
pub type Numbers = BTreeMap<String, i64>;

/// `profile.toml`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Profile {
    /// [`FORMAT`] of the program that wrote it.
    pub version: u32,
    /// Version of pgstrata that wrote it.
    pub tool_version: String,
    /// Readings of the sessions, about one a second.
    pub samples: u64,
    /// Settings that matter to storage, as the server shows them.
    pub settings: BTreeMap<String, String>,
    /// By view, as of the last reading: `server` (1 for yes), `sizes`, `wal_folder`, `replication`.
    pub state: BTreeMap<String, Numbers>,
    /// By view: last reading minus first. `moment` has the time between the two, the position in the WAL, and the
    /// transaction ids assigned; `checkpoints` those whose redo position the samples saw, and the WAL between them.
    pub counts: BTreeMap<String, Numbers>,
    /// Client sessions, summed over the samples, by state; active ones by what they wait for.
    pub sessions: Numbers,
    /// From the WAL itself; `None` without `--wal`.
    pub wal: Option<ProfiledWal>,
    /// What could not be seen, each with the reason.
    pub unseen: BTreeMap<String, String>,
}

/// What `pg_waldump` shows of a folder of segments.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProfiledWal {
    /// Commits, also of prepared transactions.
    pub commits: u64,
    /// Commits by COMMIT PREPARED.
    pub prepared: u64,
    /// Commits of transactions with sub-transactions that wrote.
    pub with_subtransactions: u64,
    /// Those sub-transactions.
    pub subtransactions: u64,
    /// All records.
    pub records: u64,
    /// All records with their full-page images, bytes.
    pub bytes: u64,
    /// Full-page images, bytes as stored.
    pub full_page_bytes: u64,
    /// Records of a commit without full-page images, bytes.
    pub commit_bytes: CommitSpread,
    /// Records of a commit.
    pub commit_records: CommitSpread,
    /// Time from one commit to the next, microseconds.
    pub gap_microseconds: CommitSpread,
}

/// A distribution over commits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CommitSpread {
    /// Median, to three digits, as the others.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
}

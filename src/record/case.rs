//! A case as requested by the plan: one stack x PostgreSQL settings x workload.

use super::build::BuildSpec;
use super::options::Options;
use super::stack::StackSpec;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// PostgreSQL as requested.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PostgresSpec {
    /// Folder of the server's programs; `auto` or a major version until the run has found one, and
    /// [`super::build::UNBUILT`] until one is built, then its path.
    pub bin: String,
    /// Source to build it from, if the plan asks for a build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildSpec>,
    /// Settings by name, values as postgresql.conf takes them (without quotes).
    pub settings: BTreeMap<String, String>,
    /// Further arguments of initdb: `--data-checksums`, `--wal-segsize=64`.
    pub initdb: Vec<String>,
}

/// First major version that extends tables with posix_fallocate(3) when adding more than 8 pages at once.
const RESERVES_SPACE: u32 = 16;

/// Settings of a size, and what a number without a unit counts there, bytes (blocks are those of the default build).
pub const BARE_SIZES: [(&str, u64); 8] = [
    ("shared_buffers", 8 << 10),
    ("effective_cache_size", 8 << 10),
    ("temp_buffers", 8 << 10),
    ("wal_buffers", 8 << 10),
    ("work_mem", 1 << 10),
    ("maintenance_work_mem", 1 << 10),
    ("min_wal_size", 1 << 20),
    ("max_wal_size", 1 << 20),
];

impl PostgresSpec {
    /// Size that the plan sets for one of these settings. Negative values mean other things.
    pub fn size(&self, name: &str) -> Option<Bytes> {
        let text = self.asked(name)?;
        let (_, unit) = BARE_SIZES.into_iter().find(|(known, _)| *known == name)?;
        let bare = text.trim().parse::<u64>().ok().map(|number| Bytes(number.saturating_mul(unit)));
        bare.or_else(|| Bytes::parse(text).ok())
    }

    /// Value set by the plan: in the settings, or by initdb (`-c NAME=VALUE`, since PostgreSQL 16).
    pub fn asked(&self, name: &str) -> Option<&str> {
        let of_initdb = self.initdb.iter().filter_map(|argument| {
            ["--set=", "-c", ""].iter().find_map(|lead| argument.strip_prefix(lead)?.trim().split_once('='))
        });
        let settings = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        settings.chain(of_initdb).find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// True if a server of this major version reserves the space of growing tables instead of writing zeros. btrfs
    /// never compresses such files.
    pub fn reserves_space(&self, major: u32) -> bool {
        major >= RESERVES_SPACE && self.asked("file_extend_method") != Some("write_zeros")
    }
}

/// A workload as requested.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadSpec {
    /// Name in the plan: `tpcb`.
    pub name: String,
    /// Kind of workload: `pgbench`, `sync`.
    pub kind: String,
    /// Its options, one value each.
    pub options: Options,
}

/// One point of the plan's matrix.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseSpec {
    /// Short unique name, fit for a folder: lower-case letters, digits, `-`, `.`, `_`.
    pub id: String,
    /// Suite of the guest it runs in: the plan's key `guest`, or `run --guest`. `None`: where pgstrata itself runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<String>,
    /// The stack that holds the database.
    pub stack: StackSpec,
    /// The server; `None` if the workload needs none.
    pub postgres: Option<PostgresSpec>,
    /// Kernel knobs of the machine set for the trial, by name: `vm.dirty_bytes`. Those of devices are options of the
    /// stack's nodes.
    pub machine: Options,
    /// Ageing of the stack before the measurement; empty for none.
    #[serde(default, skip_serializing_if = "Options::is_empty")]
    pub age: Options,
    /// The workload to run.
    pub workload: WorkloadSpec,
    /// Position in the matrix: `stack`, `workload`, and each axis with its value. Two cases compare if they differ from
    /// the baseline only in the baseline's axes.
    pub axes: BTreeMap<String, String>,
}

impl CaseSpec {
    /// The load that was made of a profile: the file with its sum, commits a second, bytes of the tables, which depend on
    /// the memory of the machine.
    pub fn load_of_profile(&self) -> Option<&str> {
        let options = &self.workload.options;
        options.text("setup").filter(|_| options.text("profile").is_some())?.lines().next()?.strip_prefix("-- ")
    }

    /// True if an axis is an option of the stack: `ext4.mount`, `loop`. Other stacks do not have it, so it is compared
    /// as part of the stack.
    pub(crate) fn is_of_stack(&self, axis: &str) -> bool {
        let node = axis.split('.').next().unwrap_or(axis);
        let set = self.postgres.as_ref().is_some_and(|postgres| postgres.settings.contains_key(axis));
        !set && self.stack.node(node).is_some()
    }

    /// True if an axis belongs to the workload: its name, or one of its options.
    pub fn is_workload_axis(&self, axis: &str) -> bool {
        axis == "workload" || self.workload.options.get(axis).is_some()
    }
}

/// Groups cases with a server by guest, stack and server: a power cut costs them the same, whatever the workload.
pub fn by_stack_and_server(cases: &[CaseSpec]) -> Vec<Vec<&CaseSpec>> {
    let mut found: Vec<Vec<&CaseSpec>> = Vec::new();
    for case in cases.iter().filter(|case| case.postgres.is_some()) {
        let group = found.iter_mut().find(|group| {
            let first = group[0];
            first.guest == case.guest && first.stack == case.stack && first.postgres == case.postgres
        });
        match group {
            Some(group) => group.push(case),
            None => found.push(vec![case]),
        }
    }
    found
}

/// One trial of the run's order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TrialKey {
    /// The case's id.
    pub case: String,
    /// Number of the block that contains the trial, from 1; also the trial's number within its case.
    pub trial: u32,
}

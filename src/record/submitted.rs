//! `submit.json`: the submission of `pgstrata submit` to an engine, in the folder where the engine's tasks work.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the file. 1: the first.
pub const FORMAT: u32 = 1;

/// One submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that submitted it and runs the tasks.
    pub tool_version: String,
    /// First written, RFC 3339.
    pub made: String,
    /// Eight hex digits, part of the names that the engine sees.
    pub id: String,
    /// Name of the plan.
    pub name: String,
    /// SHA-256 of the plan's bytes.
    pub plan_sha256: String,
    /// Seed of the order.
    pub seed: u64,
    /// True for a quick run.
    pub quick: bool,
    /// Blocks of the plan as run.
    pub blocks: u32,
    /// Number of shares.
    pub shares: u32,
    /// The engine: `slurm`, `kubernetes`, `ssh`.
    pub engine: String,
    /// Values of its flags, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Arguments for the engine's program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Number of times it was written: 1, plus one for each `--again`.
    pub attempt: u32,
}

impl Submission {
    /// Name used with the engine: letters, digits and hyphens, at most 40 characters, so that it may be part of any
    /// name.
    pub fn job_name(&self) -> String {
        let hyphened = self.name.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let words: Vec<&str> = hyphened.split('-').filter(|word| !word.is_empty()).collect();
        let short: String = words.join("-").chars().take(22).collect();
        let of_plan = ["pgstrata", short.trim_end_matches('-'), &self.id];
        of_plan.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Three shares of six blocks.
    pub(crate) fn submission(engine: &str) -> Submission {
        Submission {
            format: FORMAT,
            tool_version: "0.1.0".to_owned(),
            made: "2026-01-01T00:00:00Z".to_owned(),
            id: "0a1b2c3d".to_owned(),
            name: "spread".to_owned(),
            plan_sha256: "00".to_owned(),
            seed: 1,
            quick: false,
            blocks: 6,
            shares: 3,
            engine: engine.to_owned(),
            options: BTreeMap::new(),
            arguments: Vec::new(),
            attempt: 1,
        }
    }

    #[test]
    fn a_job_name_contains_no_shell_or_manifest_syntax() {
        let named = |name: &str| Submission { name: name.to_owned(), ..submission("slurm") }.job_name();
        assert_eq!(named("Spread"), "pgstrata-spread-0a1b2c3d");
        assert_eq!(named("it's $(rm -rf ~), %j\n#SBATCH"), "pgstrata-it-s-rm-rf-j-sbatch-0a1b2c3d");
        assert_eq!(named("日本"), "pgstrata-0a1b2c3d");
        assert!(named(&"long name ".repeat(20)).len() <= 40);
    }
}

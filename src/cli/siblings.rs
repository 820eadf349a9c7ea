//! `pgstrata compare --group-by`: compares machines, with hosts as the units.

use super::out;
use crate::analyse::fleet::{self, GroupBy};
use crate::cli::page::page;
use crate::error::{EXIT_INCOMPLETE, Error, Result};
use crate::report;
use std::path::Path;

/// What hosts are grouped by, as a flag.
#[derive(Debug, clap::Args)]
pub struct Grouping {
    /// Compare hosts instead of stacks: within and between groups by model, firmware, kernel, cpu, postgres
    ///
    /// Every SIDE is a run folder of the same plan, for example pgstrata compare --group-by model,firmware results/*. Each host
    /// has one figure, its mean over cases, beside the median of the hosts in its group. Slower hosts are named by median and
    /// MAD with a limit by the number of hosts: of equal hosts one is named in 5 of 100 fleets, and none among fewer than 6
    /// hosts. Groups are compared with the largest one: hosts that are in both, such as before and after new firmware, in pairs, the
    /// others unpaired.
    #[arg(long, value_name = "FACT,...", value_delimiter = ',', value_parser = fact)]
    pub(super) group_by: Vec<GroupBy>,
}

fn fact(word: &str) -> Result<GroupBy, String> {
    GroupBy::of(word).ok_or_else(|| format!("hosts are grouped by {}", GroupBy::ALL.map(GroupBy::word).join(", ")))
}

impl Grouping {
    /// Compares the hosts of run folders, and prints.
    ///
    /// # Errors
    /// If a folder is not one, or the page cannot be written.
    pub fn compare(&self, folders: &[String], json: bool, html: Option<&Path>) -> Result<u8> {
        if let Some(folder) = folders.iter().find(|folder| !Path::new(folder).is_dir()) {
            return Err(Error::user(format!("{folder} is not a folder")).hint("name run folders of one plan"));
        }
        let runs: Vec<(String, &Path)> = folders.iter().map(|folder| (folder.clone(), Path::new(folder))).collect();
        let findings = fleet::compare(&runs, &self.group_by)?;
        out::json_or(json, &findings, || report::fleet::terminal(&findings))?;
        if let Some(path) = html {
            page(path, &report::fleet::page(&findings, None, &[])?, json)?;
        }
        let compared = findings.groups.iter().any(|group| group.limit.is_some()) || !findings.comparisons.is_empty();
        Ok(if compared { 0 } else { EXIT_INCOMPLETE })
    }
}

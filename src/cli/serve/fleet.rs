//! Fleet page of the server: selected runs, grouped by facts.

use crate::analyse::fleet::{self, GroupBy};
use crate::cli::serve::{HOME, encoded};
use crate::error::{Error, Result};
use crate::report;
use crate::report::fleet::GroupingLink;
use crate::report::serve::FleetLink;
use crate::store::results::Results;
use std::path::{Path, PathBuf};

/// Default grouping of siblings.
pub(super) const USUAL: [GroupBy; 3] = [GroupBy::Model, GroupBy::Firmware, GroupBy::Kernel];

/// Parses facts separated by commas; `None` if one is unknown.
pub(super) fn facts(words: &str) -> Option<Vec<GroupBy>> {
    words.split(',').map(GroupBy::of).collect()
}

/// The plan with this key, else the one with most runs.
pub(super) fn chosen(plans: Vec<PlanRuns>, key: Option<&str>) -> Option<PlanRuns> {
    plans.into_iter().find(|plan| key.is_none_or(|key| plan.key == key))
}

/// Link to a plan's page in the list.
pub(super) fn link(plan: &PlanRuns) -> FleetLink {
    FleetLink { plan: plan.name.clone(), runs: plan.runs.len(), address: address(plan, &USUAL) }
}

fn address(plan: &PlanRuns, by: &[GroupBy]) -> String {
    format!("/fleet?by={}&plan={}", words(by), encoded(&plan.key))
}

fn words(by: &[GroupBy]) -> String {
    by.iter().map(|by| by.word()).collect::<Vec<_>>().join(",")
}

/// The page. Runs that cannot be opened are left out, with the reason.
///
/// # Errors
/// If none of the runs can be read.
pub(super) fn page(results: &Results, plan: &PlanRuns, by: &[GroupBy]) -> Result<String> {
    let mut refused: Vec<(String, String)> = Vec::new();
    let mut opened: Vec<(String, PathBuf)> = Vec::new();
    for name in &plan.runs {
        match results.run(name).and_then(|run| run.ok_or_else(|| Error::store("it is gone"))) {
            Ok(run) => opened.push((name.clone(), run.path().to_owned())),
            Err(error) => refused.push((name.clone(), error.chain())),
        }
    }
    let folders: Vec<(String, &Path)> = opened.iter().map(|(name, path)| (name.clone(), path.as_path())).collect();
    let mut findings = fleet::compare(&folders, by)?;
    findings.left_out.splice(0..0, refused);
    let all = std::iter::once(USUAL.to_vec()).chain(GroupBy::ALL.map(|by| vec![by]));
    let links = all.map(|others| GroupingLink {
        text: words(&others).replace(',', ", "),
        address: address(plan, &others),
        is_this: others == by,
    });
    report::fleet::page(&findings, Some(HOME), &links.collect::<Vec<_>>())
}

/// The runs of one plan.
pub(crate) struct PlanRuns {
    pub(super) name: String,
    pub(super) key: String,
    /// Names of the runs, oldest first; merged ones last, since the runs that they come from take precedence.
    pub(super) runs: Vec<String>,
}

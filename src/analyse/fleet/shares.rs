//! Progress of the shares of a submitted plan: complete, running, partial, or without a run folder.

use crate::error::Result;
use crate::record::case::TrialKey;
use crate::record::run::Share;
use crate::record::submitted::Submission;
use crate::record::trial::Outcome;
use crate::store::folder::{RunFolder, StoredTrial};
use serde::Serialize;
use std::collections::BTreeSet;

/// Progress of a share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShareProgress {
    /// It has no run folder.
    #[default]
    Absent,
    /// Trials are missing.
    Incomplete,
    /// A pgstrata is writing to its folder.
    Running,
    Complete,
}

/// One share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ShareState {
    /// Its number, from 1.
    pub share: u32,
    pub blocks: Vec<u32>,
    pub state: ShareProgress,
    /// Trials with a result, and trials due; `None` for the latter if no folder has them.
    pub done: u32,
    pub trials: Option<u32>,
    /// Host names of the machines that its trials ran on.
    pub hosts: Vec<String>,
    /// Its run folder.
    pub folder: Option<String>,
    /// Reason that a trial was not run.
    pub reason: Option<String>,
}

impl ShareState {
    fn absent(share: Share, blocks: u32) -> ShareState {
        let blocks = (1..=blocks).filter(|block| share.has(*block)).collect();
        ShareState { share: share.part, blocks, ..ShareState::default() }
    }

    fn read(self, folder: &RunFolder) -> Result<ShareState> {
        let order = &folder.record().order;
        let trials = u32::try_from(order.len()).unwrap_or(u32::MAX);
        let (mut done, mut hosts, mut reason) = (0, BTreeSet::new(), None);
        for key in order {
            let StoredTrial::Whole(trial) = folder.stored(key)? else { continue };
            done += u32::from(trial.is_result());
            hosts.insert(trial.host.hostname.clone());
            if let Outcome::NotRun { reason: why, .. } = &trial.outcome {
                let TrialKey { case, trial } = key;
                reason.get_or_insert_with(|| format!("{case}, block {trial}: {why}"));
            }
        }
        let state = match (done == trials, folder.is_live()) {
            (_, true) => ShareProgress::Running,
            (true, false) => ShareProgress::Complete,
            (false, false) => ShareProgress::Incomplete,
        };
        let (hosts, folder) = (hosts.into_iter().collect(), Some(folder.path().display().to_string()));
        Ok(ShareState { state, done, trials: Some(trials), hosts, folder, reason, ..self })
    }
}

/// Progress of each share of a submission, from these run folders; of several folders of one share, the most advanced.
///
/// # Errors
/// If a trial cannot be read.
pub fn shares(submission: &Submission, folders: &[RunFolder]) -> Result<Vec<ShareState>> {
    let mut found: Vec<ShareState> = (1..=submission.shares)
        .map(|part| ShareState::absent(Share { part, of: submission.shares }, submission.blocks))
        .collect();
    for folder in folders {
        let record = folder.record();
        let is_of_plan = record.is_of_plan(&submission.plan_sha256, submission.seed, submission.quick);
        let Some(share) = record.share.filter(|_| is_of_plan) else { continue };
        let place = found.iter_mut().find(|known| share.of == submission.shares && known.share == share.part);
        let Some(known) = place else { continue };
        let read = ShareState::absent(share, submission.blocks).read(folder)?;
        if (read.state, read.done) > (known.state, known.done) {
            *known = read;
        }
    }
    Ok(found)
}

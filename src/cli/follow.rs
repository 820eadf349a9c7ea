//! Output for others during a run and at its end: the report page of `run --page`, the command of `run --notify`.

use super::out;
use crate::analyse::load;
use crate::error::{Context, Error, Result};
use crate::host::command::Command;
use crate::host::{Host, files};
use crate::record::case::TrialKey;
use crate::record::event::{Event, Stamped};
use crate::store::folder::{RunFolder, StoredTrial};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// Seconds after which the page reloads itself.
const REFRESH_S: u32 = 15;
/// Blocks without which nothing has an interval.
const LEAST_BLOCKS: usize = 3;
/// Time limit of the command: the run is over, and the user waits for it.
const NOTIFY_LIMIT: Duration = Duration::from_secs(60);

/// Follows a run.
#[derive(Default)]
pub struct Follower {
    /// True to write the page after each trial.
    page: bool,
    /// The run's folder, once it exists.
    folder: OnceLock<PathBuf>,
}

impl Follower {
    pub fn new(page: bool) -> Follower {
        Follower { page, folder: OnceLock::new() }
    }

    /// Handles an event; nothing is measured between the end of a trial and the return of this.
    pub fn note(&self, folder: &Path, event: &Stamped) {
        let is_start = matches!(event.what, Event::RunStarted { .. } | Event::RunResumed { .. });
        if is_start || matches!(event.what, Event::TrialDone { .. } | Event::TrialNotRun { .. }) {
            self.folder.get_or_init(|| folder.to_path_buf());
            self.write_page(folder, Some(REFRESH_S));
        }
    }

    /// Stops the reloading of the page after the run has failed.
    pub fn failed(&self) {
        if let Some(folder) = self.folder.get() {
            self.write_page(folder, None);
        }
    }

    /// Writes the page atomically. A failure does not end the run.
    fn write_page(&self, folder: &Path, refresh_s: Option<u32>) {
        if !self.page {
            return;
        }
        let written = super::commands::with_scripts(folder)
            .and_then(|findings| crate::report::page::page(&findings, refresh_s, None))
            .and_then(|page| files::write_whole(&folder.join("report.html"), page.as_bytes()));
        if let Err(e) = written {
            out::remark(&format!("warning: the page was not written: {}", out::harmless_lines(&e.to_string())));
        }
    }

    /// Runs the command of `--notify`. Its failure is a warning.
    pub fn notify(&self, host: &Host, command: &str, ended: &Result<u8>) {
        if let Err(e) = self.try_notify(host, command, ended) {
            out::remark(&format!("warning: --notify: {}", out::harmless_lines(&e.to_string())));
        }
    }

    fn try_notify(&self, host: &Host, command: &str, ended: &Result<u8>) -> Result<()> {
        let mut words = command.split_whitespace();
        let program = words.next().ok_or_else(|| Error::user("it names no program"))?;
        let (outcome, code, message) = match ended {
            Ok(0) => ("complete", 0, String::new()),
            Ok(130) => ("interrupted", 130, String::new()),
            Ok(code) => ("incomplete", *code, String::new()),
            Err(e) => ("failed", e.kind().exit_code(), e.chain()),
        };
        let folder = self.folder.get().cloned().unwrap_or_default();
        let here = std::env::current_dir().or_user(|| "find the working folder".to_owned())?;
        let command = Command::new(program)
            .args(words)
            .with_callers_environment()
            .env("PGSTRATA_RUN_FOLDER", folder.as_os_str())
            .env("PGSTRATA_OUTCOME", outcome)
            .env("PGSTRATA_EXIT_STATUS", code.to_string())
            .env("PGSTRATA_MESSAGE", message)
            .cwd(here)
            .limit(NOTIFY_LIMIT);
        host.run(&command).map(drop)
    }
}

/// What a run shows before the first trial of a block begins, from the fourth on. With adaptive blocks the look says it.
///
/// # Errors
/// If the folder is damaged.
pub(super) fn so_far(folder: &Path, beginning: &TrialKey) -> Result<Option<String>> {
    let stored = RunFolder::open(folder)?;
    let record = stored.record();
    let place = record.order.iter().position(|key| key == beginning).unwrap_or(0);
    let (before, after) = record.order.split_at(place);
    let blocks = |keys: &[TrialKey]| keys.iter().map(|key| key.trial).collect::<BTreeSet<_>>();
    let done = blocks(before);
    if record.at_least.is_some() || done.len() < LEAST_BLOCKS || done.contains(&beginning.trial) {
        return Ok(None);
    }
    let is_stored = |key: &TrialKey| Ok(!matches!(stored.stored(key)?, StoredTrial::Missing));
    let stands = before.iter().map(is_stored).collect::<Result<Vec<bool>>>()?;
    let begun = after.iter().map(is_stored).collect::<Result<Vec<bool>>>()?;
    if stands.contains(&false) || begun.contains(&true) {
        return Ok(None);
    }
    let (answer, all) = (load::findings(folder)?.answer.answer, blocks(&record.order).len());
    Ok(Some(format!("after {} of {all} blocks: {}", done.len(), out::harmless(&answer))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process;

    #[test]
    fn from_the_fourth_block_a_run_says_what_it_shows() {
        let place = tempfile::tempdir().unwrap();
        let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/example/nodatacow.tar.gz");
        let unpacked =
            process::Command::new("tar").arg("xzf").arg(archive).arg("-C").arg(place.path()).status().unwrap();
        assert!(unpacked.success());
        let folder = place.path().join("nodatacow");
        let order = RunFolder::open(&folder).unwrap().record().order.clone();
        let of_block = |block: u32| order.iter().filter(move |key| key.trial == block).collect::<Vec<_>>();
        let [first, second] = of_block(4)[..] else { panic!("{order:?}") };
        assert_eq!(so_far(&folder, first).unwrap(), None, "the block is there already");
        for key in [first, second] {
            std::fs::remove_dir_all(folder.join("trials").join(&key.case).join("4")).unwrap();
        }
        let said = so_far(&folder, first).unwrap().unwrap();
        assert!(said.starts_with("after 3 of 4 blocks: ") && said.contains("nodatacow"), "{said}");
        assert_eq!((so_far(&folder, second).unwrap(), so_far(&folder, of_block(3)[0]).unwrap()), (None, None));
        std::fs::remove_dir_all(folder.join("trials").join(&first.case).join("2")).unwrap();
        assert_eq!(so_far(&folder, first).unwrap(), None, "an earlier one is missing");
    }
}

//! Submits a plan's shares to a site's engine: a queue, a cluster, a list of hosts.
//!
//! A submission is a folder with fixed names: the program, the plan, the engine's job file, `results/`, `logs/`.
//! Commands start in it, and tasks work in it, so no user-chosen name appears in a script. An engine is a file here and
//! an entry in [`ALL`]. Not here: run folders, and the definition of a share.
//!
//! Flags, help and completions are derived from an engine's description (`docs/adr/0035-submissions-are-folders.md`).

mod kubernetes;
mod slurm;
mod ssh;

use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::command::{Command, quoted};
use crate::host::processes::signal_group;
use crate::host::signals::Interrupt;
use crate::host::time::sleep;
use crate::record::submitted::Submission;
use std::fmt;
use std::process::Stdio;
use std::time::Duration;

/// The plan, the program, and the folders of a submission.
pub const PLAN: &str = "plan.toml";
pub const PROGRAM: &str = "pgstrata";
pub const RESULTS: &str = "results";
pub const LOGS: &str = "logs";

pub const ALL: &[&dyn Engine] = &[&slurm::Slurm, &kubernetes::Kubernetes, &ssh::Ssh];

/// SIGTERM.
const TERMINATE: i32 = 15;

/// A flag of an engine in addition to the one that selects it.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    pub name: &'static str,
    /// Placeholder for its value in the help.
    pub value: &'static str,
    pub doc: &'static str,
    pub required: bool,
    pub default: Option<&'static str>,
}

/// Runs tasks on several machines.
pub trait Engine: Sync + fmt::Debug {
    /// Its flag, without the hyphens.
    fn name(&self) -> &'static str;

    /// Value that the flag takes, if any.
    fn value(&self) -> Option<&'static str> {
        None
    }

    fn doc(&self) -> &'static str;

    fn flags(&self) -> &'static [Flag] {
        &[]
    }

    /// Program used to submit.
    fn program(&self) -> &'static str;

    /// True if the program is put into the folder for the tasks; `false` if they get it from elsewhere.
    fn carries_program(&self) -> bool {
        true
    }

    /// Default number of shares.
    fn shares(&self, submission: &Submission) -> u32 {
        submission.blocks
    }

    /// Name and text of the job file, for these shares (from 1, sorted).
    ///
    /// # Errors
    /// When one of its options is invalid.
    fn job_file(&self, submission: &Submission, shares: &[u32], plan: &str) -> Result<(&'static str, String)>;

    /// The command that submits them, to be started in the folder.
    fn command(&self, submission: &Submission, shares: &[u32]) -> Command;

    /// True if that command runs until the shares have ended.
    fn waits(&self) -> bool {
        false
    }

    /// Waiting and running shares, according to the engine.
    ///
    /// # Errors
    /// When the engine does not answer.
    fn queued(&self, _host: &Host, _submission: &Submission) -> Result<Vec<u32>> {
        Ok(Vec::new())
    }

    /// For an engine that restarts every share, not just missing ones: the command that first ends the earlier ones.
    fn starts_all(&self, _submission: &Submission) -> Option<Command> {
        None
    }

    /// Task log of its program, rewritten with each submission.
    fn notes(&self) -> Option<&'static str> {
        None
    }

    /// Shares whose last task failed, and how, according to the engine or its notes.
    ///
    /// # Errors
    /// When the engine does not answer.
    fn failures(&self, host: &Host, submission: &Submission, notes: Option<&str>) -> Result<Vec<(u32, String)>>;
}

/// The engine with this name.
///
/// # Errors
/// If there is none: a newer pgstrata wrote it.
pub fn engine(name: &str) -> Result<&'static dyn Engine> {
    let found = ALL.iter().copied().find(|engine| engine.name() == name);
    found.ok_or_else(|| Error::user(format!("there is no engine `{name}`")).hint("use the pgstrata that submitted"))
}

/// Submits, and returns the output of the engine's program. One that waits prints as it goes, and fails if tasks
/// failed, which the shares report better.
///
/// # Errors
/// When the program is missing or fails; when the user interrupts.
pub fn hand_in(host: &Host, engine: &dyn Engine, command: &Command) -> Result<String> {
    if !host.has_program(engine.program()) {
        return Err(Error::host(format!("there is no program `{}` here", engine.program()))
            .hint("leave out --go, and submit the job file on a machine that has it"));
    }
    if !engine.waits() {
        return Ok(host.run(command)?.stdout.trim().to_owned());
    }
    let interrupt = Interrupt::listen()?;
    // Output of tasks is not our output.
    let mut child = host.spawn(command, Stdio::from(std::io::stderr()), Stdio::inherit())?;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) => sleep(Duration::from_millis(100)),
            Err(e) => return Err(Error::tool(e.to_string()).while_doing(format!("wait for {}", engine.program()))),
        }
        if interrupt.is_raised() {
            // GNU parallel starts no more tasks after the first, and ends running ones after the second.
            for _ in 0..2 {
                signal_group(child.id(), TERMINATE)?;
                sleep(Duration::from_millis(200));
            }
            drop(child.wait());
            break;
        }
    }
    interrupt.check()?;
    Ok(String::new())
}

/// The command line that runs a share, for a shell: fixed names, nothing chosen by the user.
fn run_words(submission: &Submission, program: &str, blocks: &str) -> String {
    let quick = if submission.quick { " --quick" } else { "" };
    format!("{program} run {PLAN}{quick} --blocks {blocks} --results {RESULTS}")
}

/// The command as typed in the folder.
pub fn shown(folder: &std::path::Path, command: &Command) -> String {
    format!("cd {} && {}", quoted(folder.as_os_str()), command.shown())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_have_unique_names_and_are_found_by_them() {
        for one in ALL {
            assert_eq!(engine(one.name()).unwrap().name(), one.name());
        }
        let mut names: Vec<&str> = ALL.iter().flat_map(|one| one.flags().iter().map(|flag| flag.name)).collect();
        names.extend(ALL.iter().map(|one| one.name()));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
        assert!(engine("pbs").is_err());
    }
}

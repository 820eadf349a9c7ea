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
use rustix::process::Signal;
use std::process::Stdio;
use std::time::Duration;

/// The plan, the program, and the folders of a submission.
pub const PLAN: &str = "plan.toml";
pub const PROGRAM: &str = "pgstrata";
pub const RESULTS: &str = "results";
pub const LOGS: &str = "logs";

pub const ALL: &[&Engine] = &[&slurm::SLURM, &kubernetes::KUBERNETES, &ssh::SSH];

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

impl Flag {
    const fn required(name: &'static str, value: &'static str, doc: &'static str) -> Flag {
        Flag { name, value, doc, required: true, default: None }
    }

    const fn optional(name: &'static str, value: &'static str, doc: &'static str) -> Flag {
        Flag { required: false, ..Flag::required(name, value, doc) }
    }
}

type MakesJobFile = fn(&Submission, &[u32], &str) -> Result<(&'static str, String)>;
type FindsFailures = fn(&Host, &Submission, Option<&str>) -> Result<Vec<(u32, String)>>;

/// Runs tasks on several machines.
#[derive(Debug)]
pub struct Engine {
    /// Its flag, without the hyphens.
    pub name: &'static str,
    /// Value that the flag takes, if any.
    pub value: Option<&'static str>,
    pub doc: &'static str,
    pub flags: &'static [Flag],
    /// Program used to submit.
    pub program: &'static str,
    /// True if the program is put into the folder for the tasks; `false` if they get it from elsewhere.
    pub carries_program: bool,
    /// Default number of shares.
    pub shares: fn(&Submission) -> u32,
    /// Name and text of the job file, for these shares (from 1, sorted) and this plan; fails if one of its options is
    /// invalid.
    pub job_file: MakesJobFile,
    /// The command that submits these shares, to be started in the folder.
    pub command: fn(&Submission, &[u32]) -> Command,
    /// True if that command runs until the shares have ended.
    pub waits: bool,
    /// Waiting and running shares, according to the engine; fails if it does not answer.
    pub queued: fn(&Host, &Submission) -> Result<Vec<u32>>,
    /// For an engine that restarts every share, not just missing ones: the command that first ends the earlier ones.
    pub starts_all: fn(&Submission) -> Option<Command>,
    /// Task log of its program, rewritten with each submission.
    pub notes: Option<&'static str>,
    /// Shares whose last task failed, and how, according to the engine or its notes; fails if the engine does not
    /// answer.
    pub failures: FindsFailures,
}

/// The engine with this name.
///
/// # Errors
/// If there is none: a newer pgstrata wrote it.
pub fn engine(name: &str) -> Result<&'static Engine> {
    let found = ALL.iter().copied().find(|engine| engine.name == name);
    found.ok_or_else(|| Error::user(format!("there is no engine `{name}`")).hint("use the pgstrata that submitted"))
}

/// Submits, and returns the output of the engine's program. One that waits prints as it goes, and fails if tasks
/// failed, which the shares report better.
///
/// # Errors
/// When the program is missing or fails; when the user interrupts.
pub fn hand_in(host: &Host, engine: &Engine, command: &Command) -> Result<String> {
    if !host.has_program(engine.program) {
        return Err(Error::host(format!("there is no program `{}` here", engine.program))
            .hint("leave out --go, and submit the job file on a machine that has it"));
    }
    if !engine.waits {
        return Ok(host.run(command)?.stdout.trim().to_owned());
    }
    let interrupt = Interrupt::listen()?;
    // Output of tasks is not our output.
    let mut child = host.spawn(command, Stdio::from(std::io::stderr()), Stdio::inherit())?;
    let wrong = |e: std::io::Error| Error::tool(e.to_string()).while_doing(format!("wait for {}", engine.program));
    while child.try_wait().map_err(wrong)?.is_none() {
        sleep(Duration::from_millis(100));
        if interrupt.is_raised() {
            // GNU parallel starts no more tasks after the first, and ends running ones after the second.
            for _ in 0..2 {
                signal_group(child.id(), Signal::TERM.as_raw())?;
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
    format!("{program} run {PLAN}{quick} --share {blocks} --results {RESULTS}")
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
            assert_eq!(engine(one.name).unwrap().name, one.name);
        }
        let mut names: Vec<&str> = ALL.iter().flat_map(|one| one.flags.iter().map(|flag| flag.name)).collect();
        names.extend(ALL.iter().map(|one| one.name));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
        assert!(engine("pbs").is_err());
    }
}

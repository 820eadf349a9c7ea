//! Runs a program that takes minutes: its output goes to a file and is reported line by line, and interrupts are
//! heeded.

use super::command::Command;
use super::signals::Interrupt;
use super::time::{now, sleep};
use super::{Host, files, processes};
use crate::error::{Context, Error, Result};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Polling interval for the file and the program.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) struct FollowedProgram<'a> {
    pub(crate) host: &'a Host,
    /// Receives its output; emptied first.
    pub(crate) log: &'a Path,
    /// Sends SIGTERM to its process group after this time.
    pub(crate) limit: Duration,
    pub(crate) interrupt: &'a Interrupt,
}

impl FollowedProgram<'_> {
    /// Runs the program to completion, passing each whole line of its output to `report`. True if it exited with 0.
    ///
    /// # Errors
    /// If it cannot be started, exceeds the limit, or is interrupted; it has ended by then.
    pub(crate) fn run(&self, command: &Command, report: &mut dyn FnMut(&str)) -> Result<bool> {
        let file = files::create(self.log)?;
        let clone = file.try_clone().or_host(|| format!("open {}", self.log.display()))?;
        let mut child = self.host.spawn(command, Stdio::from(clone), Stdio::from(file))?;
        let (begun, mut seen, mut stopped) = (now(), 0, None);
        loop {
            seen += report_lines(self.log, seen, report)?;
            if let Some(status) = child.try_wait().or_host(|| format!("wait for {}", command.shown()))? {
                report_lines(self.log, seen, report)?;
                return stopped.map_or_else(|| Ok(status.success()), Err);
            }
            let over = begun.elapsed() > self.limit;
            if stopped.is_none() && (over || self.interrupt.is_raised()) {
                let hours = self.limit.as_secs_f64() / 3600.0;
                stopped = Some(match over {
                    true => Error::tool(format!("`{}` did not finish within {hours} h", command.shown())),
                    false => Error::interrupted(),
                });
                processes::signal_group(child.id(), rustix::process::Signal::TERM.as_raw())?;
            }
            sleep(LOOK);
        }
    }
}

/// Reports the whole lines added to a file since byte `from`; returns their length in bytes.
fn report_lines(log: &Path, from: u64, report: &mut dyn FnMut(&str)) -> Result<u64> {
    let added = files::read_from(log, from)?;
    let whole = added.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    String::from_utf8_lossy(&added[..whole]).lines().for_each(report);
    Ok(u64::try_from(whole).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn followed(script: &str, limit: Duration, interrupt: &Interrupt) -> (Result<bool>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut lines = Vec::new();
        let followed = FollowedProgram { host: &Host::this(), log: &log, limit, interrupt };
        let ended = followed.run(&Command::new("sh").args(["-c", script]), &mut |line| lines.push(line.to_owned()));
        (ended, lines)
    }

    #[test]
    fn every_line_is_told_and_the_exit_code_counts() {
        let (ended, lines) = followed("echo one; echo two >&2; exit 3", Duration::from_secs(60), &Interrupt::never());
        assert!(!ended.unwrap());
        assert_eq!(lines, ["one", "two"]);
        assert!(followed("true", Duration::from_secs(60), &Interrupt::never()).0.unwrap());
    }

    #[test]
    fn an_interrupt_or_timeout_kills_it_with_all_its_children() {
        let interrupt = Interrupt::never();
        interrupt.raise();
        let (ended, _) = followed("sleep 60 & wait", Duration::from_secs(60), &interrupt);
        assert_eq!(ended.unwrap_err().kind(), Kind::Interrupted);
        let (ended, _) = followed("sleep 60 & wait", Duration::ZERO, &Interrupt::never());
        assert!(ended.unwrap_err().to_string().contains("did not finish"));
    }
}

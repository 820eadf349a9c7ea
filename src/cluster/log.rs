//! Reads a running server's log of checkpoints and autovacuum, incrementally.

use super::server::Server;
use crate::error::Result;
use crate::host::files;
use crate::parse::server_log::{LogEntry, LogReader};
use crate::record::window::{CheckpointRecord, VacuumRecord};
use std::path::PathBuf;

/// The log of one server since it was started.
#[derive(Debug, Default)]
pub struct ServerLog {
    path: PathBuf,
    offset: u64,
    /// A line whose end has not been written yet.
    begun: Vec<u8>,
    reader: LogReader,
    /// In order.
    pub checkpoints: Vec<CheckpointRecord>,
    /// Ordered by their ends.
    pub vacuums: Vec<VacuumRecord>,
}

impl ServerLog {
    /// The log of a server; nothing is read yet.
    pub fn of(server: &Server) -> ServerLog {
        ServerLog { path: server.spec.log.clone(), offset: server.log_start(), ..ServerLog::default() }
    }

    /// Reads new lines since the last call.
    ///
    /// # Errors
    /// When the file cannot be read, or a line about a checkpoint has an unknown form.
    pub fn read(&mut self) -> Result<()> {
        let new = files::read_from(&self.path, self.offset)?;
        self.offset += new.len() as u64;
        self.begun.extend(new);
        let Some(end) = self.begun.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let rest = self.begun.split_off(end + 1);
        let lines = std::mem::replace(&mut self.begun, rest);
        for line in String::from_utf8_lossy(&lines).lines() {
            match self.reader.line(line)? {
                None => {}
                Some(LogEntry::CheckpointStarted { at_us, cause }) => {
                    self.checkpoints.push(CheckpointRecord { started_us: at_us, cause, done: None });
                }
                Some(LogEntry::CheckpointEnded(done)) => {
                    if let Some(last) = self.checkpoints.last_mut() {
                        last.done = Some(done);
                    }
                }
                Some(LogEntry::Vacuumed(vacuum)) => self.vacuums.push(vacuum),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::server::DATABASE;
    use crate::cluster::testing::server_in;
    use crate::host::Host;

    #[test]
    fn a_checkpoint_is_seen_as_soon_as_it_begins() {
        let host = Host::this();
        let folder = tempfile::tempdir().unwrap();
        let Some(server) = server_in(&host, folder.path()) else { return };
        let mut log = ServerLog::of(&server);
        log.read().unwrap();
        let before = log.checkpoints.len();
        server.connect(DATABASE).unwrap().query("create table t as select 1; checkpoint").unwrap();
        log.read().unwrap();
        let checkpoint = log.checkpoints[before].clone();
        assert!(checkpoint.cause.contains("force"), "{checkpoint:?}");
        let done = checkpoint.done.unwrap();
        assert!(done.buffers > 0 && done.ended_us >= checkpoint.started_us, "{done:?}");
        assert!(checkpoint.started_us.abs_diff(crate::host::time::wall_us()) < 60_000_000);
        server.stop(&host).unwrap();
    }
}

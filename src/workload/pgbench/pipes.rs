//! pgbench's per-transaction log through named pipes: full resolution, nothing on the disk under test.
//!
//! pgbench names its logs by its process id, which is known beforehand because a shell makes the pipes under its own id
//! and then becomes pgbench. Each thread of pgbench writes a pipe of its own, in pieces of 4 kB (stdio's buffer): an
//! event is read up to some 120 transactions of its thread after it happened.

use super::seconds::Collector;
use crate::error::{Context, Error, Result};
use crate::host::command::Command;
use crate::host::files::{self, File};
use crate::host::folders;
use crate::host::time::sleep;
use crate::host::users::User;
use crate::parse::pgbench_log::{self, LogColumns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Makes `$2` pipes in the folder `$1` under the names that `pgbench --log-prefix=$1/log` will use, and becomes the
/// command that follows. Constant: nothing is ever interpolated into it.
const BECOME: &str = r#"
folder=$1 pipes=$2; shift 2
i=0
while [ "$i" -lt "$pipes" ]; do
    if [ "$i" -eq 0 ]; then name=log.$$; else name=log.$$.$i; fi
    mkfifo -m 600 "$folder/$name" || exit 1
    i=$((i + 1))
done
exec "$@"
"#;

/// Largest piece read at once. Pipes are enlarged to this too, so that pgbench never waits for a reader that the
/// scheduler has put aside (`/proc/sys/fs/pipe-max-size` is 1 MiB by default).
const PIECE: usize = 1 << 20;

/// How often a reader checks whether pgbench has ended before opening its log.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A private folder with pgbench's pipes; removed with them on drop.
#[derive(Debug)]
pub struct Pipes {
    folder: PathBuf,
}

impl Pipes {
    /// Makes the folder in `within`, accessible to `user` alone.
    pub fn make(within: &Path, user: &User) -> Result<Pipes> {
        let folder = within.join(format!("pipes-{}", files::random_id()?));
        files::make_folder(&folder, 0o700)?;
        let pipes = Pipes { folder };
        files::give_to(&pipes.folder, user)?;
        Ok(pipes)
    }

    /// The command that makes `count` pipes and becomes `program` with `args`. Its process id names the pipes.
    pub fn command(&self, count: u64, program: &Path, args: &[String]) -> Command {
        Command::new("sh").args(["-c", BECOME, "sh"]).arg(&self.folder).arg(count.to_string()).arg(program).args(args)
    }

    pub fn log_prefix(&self) -> String {
        format!("--log-prefix={}", self.folder.join("log").display())
    }

    /// Reads the log of one thread of the pgbench with this process id until it ends, or until `ended` is set and
    /// nothing is left.
    pub fn read(
        &self,
        pid: u32,
        thread: usize,
        columns: LogColumns,
        ended: &AtomicBool,
        collector: &Collector,
    ) -> Result<()> {
        let name = if thread == 0 { format!("log.{pid}") } else { format!("log.{pid}.{thread}") };
        let Some(mut pipe) = open(&self.folder.join(&name), ended)? else { return Ok(()) };
        let mut buffer = vec![0u8; PIECE];
        let mut filled = 0;
        let mut transactions = Vec::new();
        while wait_for_data(&pipe, ended)? {
            let length = match pipe.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(length) => length,
                Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted) => {
                    continue;
                }
                Err(e) => return Err(Error::host(e.to_string()).while_doing(format!("read the pipe {name}"))),
            };
            filled += length;
            let taken = pgbench_log::parse(&buffer[..filled], columns, &mut transactions)?;
            collector.take(thread, &transactions)?;
            transactions.clear();
            buffer.copy_within(taken..filled, 0);
            filled -= taken;
            if filled == buffer.len() {
                return Err(Error::tool(format!("pgbench's transaction log: a line of more than {PIECE} bytes")));
            }
        }
        if filled > 0 && !ended.load(Ordering::SeqCst) {
            return Err(Error::tool("pgbench's transaction log ends in the middle of a line"));
        }
        Ok(())
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        // It lies in the server's private folder, which is removed as a whole.
        drop(folders::remove_all(&self.folder));
    }
}

/// Opens a pipe without waiting for its writer. `None` if pgbench ended before making it.
fn open(path: &Path, ended: &AtomicBool) -> Result<Option<File>> {
    loop {
        // If it cannot be enlarged, the usual 64 kB will do.
        match files::open_pipe(path, PIECE)? {
            None if !ended.load(Ordering::SeqCst) => sleep(Duration::from_millis(1)),
            opened => return Ok(opened),
        }
    }
}

/// Waits until there is data, or the writer has closed the pipe. False if pgbench has ended and nothing is left: a
/// writer that never opened its end would otherwise go unnoticed.
fn wait_for_data(pipe: &File, ended: &AtomicBool) -> Result<bool> {
    loop {
        let was_over = ended.load(Ordering::SeqCst);
        match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&POLL_INTERVAL)) {
            Ok(0) if was_over => return Ok(false),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(e) => return Err(e).or_host(|| "wait for pgbench's log".to_owned()),
        }
    }
}

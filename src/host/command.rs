//! Runs external programs: argument vectors, never shell strings, and every one logged.

use super::files::File;
use super::processes::{self, orphans};
use super::signals::Interrupt;
use super::time::{self, micros, now};
use super::users::User;
use super::{Host, linux, threads};
use crate::error::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Every child carries this variable with the run's id, so that `pgstrata clean` can recognise our processes.
pub(crate) const RUN_VARIABLE: &str = "PGSTRATA_RUN";

/// Variables that a child inherits from the caller, besides PATH with the sbin folders. This is an allowlist because a
/// denylist is never complete: PGHOSTADDR leads libpq to another server, MKE2FS_CONFIG makes another filesystem,
/// POSIXLY_CORRECT and COLUMNS change what tools print.
const PASSED: [&str; 2] = ["HOME", "TZ"];

/// How long a program may take to exit after an interrupt before it is killed.
const END_LIMIT: Duration = Duration::from_secs(2);

/// How long processes that a program left behind may keep writing after it ends: one that holds its pipes may be a
/// daemon.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Polling interval for a running program.
const LOOK: Duration = Duration::from_millis(10);

/// Withheld even from programs that act for the user: variables that lead to another server, preload a library
/// (libeatmydata), or change what a tool writes to a disk.
const WITHHELD: [&str; 9] = ["PG", "LD_", "FIO_", "MKE2FS_", "E2FSPROGS_", "XFS_", "BTRFS_", "ZFS_", "POSIXLY_CORRECT"];
/// Our own variables, exempt from [`WITHHELD`].
const OWN: &str = "PGSTRATA_";

#[must_use]
#[derive(Debug, Clone, Default)]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    as_caller: bool,
    cwd: Option<PathBuf>,
    user: Option<User>,
    stdin: Option<Vec<u8>>,
    limit: Option<Duration>,
    dies_with_us: bool,
    inherited: Vec<Arc<File>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Standard output, with invalid UTF-8 replaced.
    pub stdout: String,
    pub stderr: String,
}

/// A line of the command log, stored as `raw/commands.jsonl` of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandLog {
    /// The command as typed in a shell.
    pub command: String,
    /// User it ran as, if not our own.
    pub user: Option<String>,
    /// Wall clock at start, microseconds since 1970.
    pub at_us: u64,
    /// Duration, microseconds; `None` if it was started and left running.
    pub wall_us: Option<u64>,
    /// Exit code; `None` if it was killed, did not start, or is still running.
    pub exit_code: Option<i32>,
}

impl Command {
    /// Takes a name (searched in PATH and the sbin folders) or a path.
    pub fn new(program: impl AsRef<OsStr>) -> Command {
        Command { program: program.as_ref().to_owned(), ..Command::default() }
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Command {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Command {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Command {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Passes on the caller's environment: for programs that act for the user outside of stacks and servers and are
    /// configured by it (proxies, KUBECONFIG, SLURM_CONF, SSH_AUTH_SOCK).
    pub(crate) fn with_callers_environment(mut self) -> Command {
        self.as_caller = true;
        self
    }

    /// Sets the working folder.
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Command {
        self.cwd = Some(folder.into());
        self
    }

    /// Runs it as another user if we are root (group and supplementary groups are dropped too).
    pub fn user(mut self, user: &User) -> Command {
        self.user = Some(user.clone());
        self
    }

    /// Feeds this text to standard input.
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Command {
        self.stdin = Some(text.into());
        self
    }

    /// Kills it after this time, which counts as a failure.
    pub fn limit(mut self, limit: Duration) -> Command {
        self.limit = Some(limit);
        self
    }

    /// Has the kernel kill it when the thread that started it ends, for whatever reason.
    pub(crate) fn dying_with_us(mut self) -> Command {
        self.dies_with_us = true;
        self
    }

    /// Lets it inherit an open file under the same descriptor number.
    pub(crate) fn inheriting(mut self, file: Arc<File>) -> Command {
        self.inherited.push(file);
        self
    }

    /// The program and its arguments.
    pub(crate) fn words(&self) -> impl Iterator<Item = &OsStr> {
        std::iter::once(self.program.as_os_str()).chain(self.args.iter().map(OsString::as_os_str))
    }

    /// The command as typed in a shell.
    pub fn shown(&self) -> String {
        self.words().map(quoted).collect::<Vec<String>>().join(" ")
    }

    fn prepared(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        let passed = std::env::vars_os().filter(|(name, _)| match self.as_caller {
            true => begins(name, OWN) || !WITHHELD.iter().any(|start| begins(name, start)),
            false => PASSED.iter().any(|passed| name == *passed),
        });
        command.args(&self.args).env_clear().envs(passed);
        command.envs([("LC_ALL", "C"), ("LANG", "C")]).env("PATH", search_path());
        // We handle Ctrl-C on the terminal: it must not kill children before the tear-down.
        command.process_group(0);
        command.current_dir(self.cwd.clone().unwrap_or_else(|| PathBuf::from("/")));
        if let Some(user) = &self.user {
            // A home folder might contain a .pgpass.
            command.envs([("USER", &*user.name), ("LOGNAME", &user.name), ("HOME", "/")]);
            if super::users::is_root() {
                command.uid(user.uid).gid(user.gid);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

fn begins(name: &OsStr, start: &str) -> bool {
    name.as_encoded_bytes().starts_with(start.as_bytes())
}

/// PATH plus the sbin folders, where mkfs, losetup and the like live.
fn search_path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin");
    path
}

/// Quotes a word for a shell.
pub fn quoted(arg: &OsStr) -> String {
    let text = arg.to_string_lossy();
    if !text.is_empty() && text.chars().all(|c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c)) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

impl Host {
    /// Runs a program to completion.
    ///
    /// # Errors
    /// [`crate::error::Kind::Tool`] with command, exit code and the last lines of what it printed, when it cannot be
    /// started, exits with a code other than 0, is killed, or exceeds its limit; or if interrupted, on a host that
    /// heeds interrupts.
    pub fn run(&self, command: &Command) -> Result<Output> {
        let (output, code) = self.run_to_end(command)?;
        if code == Some(0) { Ok(output) } else { Err(failed(command, code, &output)) }
    }

    /// Same, for a caller that judges the exit code, which is `None` if the program was killed.
    ///
    /// # Errors
    /// If it cannot be started or exceeds its limit, or if interrupted, on a host that heeds interrupts.
    pub(crate) fn run_to_end(&self, command: &Command) -> Result<(Output, Option<i32>)> {
        self.interrupt.as_ref().map_or(Ok(()), Interrupt::check)?;
        let at_us = time::wall_us();
        let begun = now();
        let stdin = if command.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        let started = self.start(command, [stdin, Stdio::piped(), Stdio::piped()]);
        let outcome = started.and_then(|child| finish(command, child, self.interrupt.as_ref()));
        let exit_code = outcome.as_ref().ok().and_then(|(_, code)| *code);
        self.log_command(command, at_us, Some(micros(begun.elapsed())), exit_code);
        outcome
    }

    /// Starts a program and leaves it running, with its output going to pipes or files of the caller's choice.
    ///
    /// # Errors
    /// [`crate::error::Kind::Tool`] if it cannot be started.
    pub fn spawn(&self, command: &Command, stdout: Stdio, stderr: Stdio) -> Result<Child> {
        self.start_logged(command, [Stdio::null(), stdout, stderr])
    }

    /// Starts a program with its standard input, output and error in pipes.
    ///
    /// # Errors
    /// [`crate::error::Kind::Tool`] if it cannot be started.
    pub(crate) fn spawn_piped(&self, command: &Command) -> Result<Child> {
        self.start_logged(command, [Stdio::piped(), Stdio::piped(), Stdio::piped()])
    }

    pub fn has_program(&self, name: &str) -> bool {
        std::env::split_paths(&search_path()).any(|dir| dir.join(name).is_file())
    }

    #[expect(
        unsafe_code,
        reason = "joins a control group, limits memory, asks for a signal and leaves files open between fork and exec"
    )]
    fn prepared(&self, command: &Command) -> std::process::Command {
        let mut prepared = command.prepared();
        if let Some(run) = &self.run {
            prepared.env(RUN_VARIABLE, &**run);
        }
        if let Some(group) = self.group.clone() {
            // A child that cannot join by itself is added after it has started.
            let join = move || group.join().or(Ok(()));
            // SAFETY: `join` makes one write(2) to an open file, and allocates nothing: async-signal-safe,
            // signal-safety(7).
            unsafe { prepared.pre_exec(join) };
        }
        if let Some(bytes) = self.most_memory {
            // SAFETY: one setrlimit(2), nothing allocated.
            unsafe { prepared.pre_exec(move || linux::limit_memory(bytes)) };
        }
        if command.dies_with_us {
            let die = linux::die_with_parent;
            // SAFETY: one prctl(2), nothing allocated. Runs after the change of user, which would reset it.
            unsafe { prepared.pre_exec(die) };
        }
        for file in &command.inherited {
            let file = Arc::clone(file);
            // Only in the child: others started meanwhile must not inherit it.
            let leave_open = move || Ok(rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty())?);
            // SAFETY: one fcntl(2), nothing allocated; the file stays open as long as the command exists.
            unsafe { prepared.pre_exec(leave_open) };
        }
        prepared
    }

    /// Starts the child in its control group, or records it as one of ours.
    fn start(&self, command: &Command, [stdin, stdout, stderr]: [Stdio; 3]) -> Result<Child> {
        let mut prepared = self.prepared(command);
        prepared.stdin(stdin).stdout(stdout).stderr(stderr);
        let mut started = orphans::starting();
        let child = prepared.spawn().map_err(|e| not_started(command, &e))?;
        started.insert(child.id());
        drop(started);
        if let Some(group) = &self.group {
            group.add(child.id());
        }
        Ok(child)
    }

    fn start_logged(&self, command: &Command, streams: [Stdio; 3]) -> Result<Child> {
        let at_us = time::wall_us();
        let child = self.start(command, streams);
        self.log_command(command, at_us, None, None);
        child
    }

    fn log_command(&self, command: &Command, at_us: u64, wall_us: Option<u64>, exit_code: Option<i32>) {
        if let Ok(mut log) = self.log.lock() {
            let user = command.user.as_ref().map(|user| user.name.clone());
            log.push(CommandLog { command: command.shown(), user, at_us, wall_us, exit_code });
        }
    }
}

/// Feeds, drains and waits in turn, so that no pipe can fill up and block the child.
fn finish(command: &Command, mut child: Child, interrupt: Option<&Interrupt>) -> Result<(Output, Option<i32>)> {
    let mut pipes = [
        Pipe::new(child.stdin.take(), command.stdin.clone()),
        Pipe::new(child.stdout.take(), None),
        Pipe::new(child.stderr.take(), None),
    ];
    let status = wait(command, &mut child, interrupt, &mut pipes)?;
    let ended = now();
    while pipes[1..].iter().any(|pipe| pipe.end.is_some()) && ended.elapsed() < LAST_WORDS {
        serve(&mut pipes, LOOK);
    }
    let [_, stdout, stderr] = pipes.map(|pipe| String::from_utf8_lossy(&pipe.bytes).into_owned());
    Ok((Output { stdout, stderr }, status.code()))
}

/// Waits for the end of the program. On timeout or interrupt, ends it and everything it started in its process group.
fn wait(command: &Command, child: &mut Child, interrupt: Option<&Interrupt>, pipes: &mut [Pipe]) -> Result<ExitStatus> {
    let wrong = |e: std::io::Error| Error::tool(format!("`{}`: {e}", command.shown()));
    let begun = now();
    let stopped = loop {
        if let Some(status) = child.try_wait().map_err(wrong)? {
            return Ok(status);
        }
        if interrupt.is_some_and(Interrupt::is_raised) {
            break Error::interrupted();
        }
        if let Some(limit) = command.limit.filter(|limit| begun.elapsed() > *limit) {
            break Error::tool(format!("`{}` did not finish within {} s", command.shown(), limit.as_secs_f64()));
        }
        // Most commands take milliseconds.
        serve(pipes, if begun.elapsed() < Duration::from_millis(100) { LOOK / 10 } else { LOOK });
    };
    // The leader may have ended in the meantime, which is not an error.
    let leader = child.id();
    processes::signal_group(leader, Signal::TERM.as_raw()).ok();
    let asked = now();
    while asked.elapsed() < END_LIMIT && child.try_wait().map_err(wrong)?.is_none() {
        serve(pipes, LOOK);
    }
    // Kill what is left of the group.
    processes::signal_group(leader, Signal::KILL.as_raw()).ok();
    child.wait().map_err(wrong)?;
    Err(stopped)
}

/// A pipe of a program, with the bytes still to be fed or those read so far.
struct Pipe {
    /// `None` once closed.
    end: Option<File>,
    bytes: Vec<u8>,
    feeds: bool,
}

impl Pipe {
    fn new(end: Option<impl Into<OwnedFd>>, input: Option<Vec<u8>>) -> Pipe {
        Pipe { end: end.map(|end| File::from(end.into())), feeds: input.is_some(), bytes: input.unwrap_or_default() }
    }

    fn polled(&self) -> Option<PollFd<'_>> {
        Some(PollFd::new(self.end.as_ref()?, if self.feeds { PollFlags::OUT } else { PollFlags::IN }))
    }

    /// Transfers one chunk if the pipe is ready, so this never blocks.
    fn step(&mut self) {
        // A ready pipe always has room for this much (PIPE_BUF).
        const PIECE: usize = 4096;
        let Some(end) = &mut self.end else { return };
        let moved = if self.feeds {
            let taken = end.write(&self.bytes[..self.bytes.len().min(PIECE)]);
            taken.inspect(|taken| drop(self.bytes.drain(..*taken)))
        } else {
            let mut piece = [0; 16 * PIECE];
            end.read(&mut piece).inspect(|read| self.bytes.extend_from_slice(&piece[..*read]))
        };
        // A program that exits without reading its input says so by its exit code; output read before an error may
        // explain it.
        let goes_on = moved.is_ok_and(|moved| moved > 0) && !(self.feeds && self.bytes.is_empty());
        if !goes_on {
            self.end = None;
        }
    }
}

/// Feeds and drains the ready pipes, or waits at most `limit` until one is ready.
fn serve(pipes: &mut [Pipe], limit: Duration) {
    let mut open: Vec<&mut Pipe> = pipes.iter_mut().filter(|pipe| pipe.end.is_some()).collect();
    let mut polled: Vec<PollFd> = open.iter().filter_map(|pipe| pipe.polled()).collect();
    let limit = Timespec { tv_sec: 0, tv_nsec: limit.subsec_nanos().into() };
    // A signal during the wait counts as nothing ready.
    poll(&mut polled, Some(&limit)).ok();
    let ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
    open.iter_mut().zip(ready).filter(|(_, ready)| *ready).for_each(|(pipe, _)| pipe.step());
}

/// Blames the machine if it ran out of processes or memory, else the program.
fn not_started(command: &Command, e: &std::io::Error) -> Error {
    let text = format!("`{}` could not be started: {e}", command.shown());
    match e.kind() {
        ErrorKind::WouldBlock | ErrorKind::OutOfMemory => Error::host(text).hint(threads::LIMITS),
        _ => Error::tool(text),
    }
}

/// Error for a failed tool: command, exit code, last lines.
pub(crate) fn failed(command: &Command, code: Option<i32>, output: &Output) -> Error {
    let ended = code.map_or_else(|| "was killed".to_owned(), |code| format!("failed with exit code {code}"));
    let said = if output.stderr.trim().is_empty() { &output.stdout } else { &output.stderr };
    let lines = last_lines(said, 12);
    let output = if lines.is_empty() { String::new() } else { format!("; output:\n{lines}") };
    Error::tool(format!("`{}` {ended}{output}", command.shown()))
}

/// The last `count` non-blank lines, each indented by two.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].iter().map(|l| format!("  {l}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn a_failing_command_shows_arguments_exit_code_and_last_lines() {
        let host = Host::this();
        let command = Command::new("sh").args(["-c", "echo out; echo 'no space' >&2; exit 3"]);
        let text = host.run(&command).unwrap_err().to_string();
        assert!(text.contains("exit code 3"), "{text}");
        assert!(text.contains("  no space"), "{text}");
        assert!(text.contains("'echo out; echo '"), "{text}");
        let log = host.take_command_log();
        assert_eq!(log.len(), 1);
        assert_eq!(log[0].exit_code, Some(3));
    }

    #[test]
    fn a_command_over_its_limit_is_killed() {
        let host = Host::this();
        let command = Command::new("sleep").arg("60").limit(Duration::from_millis(50));
        assert!(host.run(&command).unwrap_err().to_string().contains("did not finish"));
    }

    #[test]
    fn an_interrupt_kills_a_command_with_all_its_children() {
        let interrupt = Interrupt::never();
        let host = Host::this().heeding(&interrupt);
        let stubborn = Command::new("sh").args(["-c", "trap '' TERM; sleep 60 & sleep 60; sleep 60"]);
        std::thread::scope(|scope| {
            let running = scope.spawn(|| host.run(&stubborn));
            time::sleep(Duration::from_millis(100));
            interrupt.raise();
            assert_eq!(running.join().unwrap().unwrap_err().kind(), Kind::Interrupted);
        });
        assert_eq!(host.run(&Command::new("true")).unwrap_err().kind(), Kind::Interrupted);
        assert!(host.heeding_none().run(&Command::new("true")).is_ok());
    }

    #[test]
    fn a_daemon_that_inherits_the_pipes_is_not_waited_for() {
        let begun = now();
        let left = Command::new("sh").args(["-c", "setsid sleep 30 & echo $!"]);
        let unread = left.clone().stdin("x".repeat(1 << 20));
        let sleepers = [left, unread].map(|command| Host::this().run(&command).unwrap().stdout);
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        for pid in sleepers {
            let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
            rustix::process::kill_process(pid, Signal::KILL).unwrap();
        }
    }

    #[test]
    fn large_output_and_large_input_do_not_block_each_other() {
        let text = "x".repeat(1 << 20);
        let output = Host::this().run(&Command::new("cat").stdin(text.clone())).unwrap();
        assert_eq!(output.stdout.len(), text.len());
    }

    #[test]
    fn only_children_of_a_run_carry_its_id() {
        let show = Command::new("sh").args(["-c", "echo $PGSTRATA_RUN"]);
        let host = Host::this();
        assert_eq!(host.for_run("0badcafe").run(&show).unwrap().stdout, "0badcafe\n");
        assert_eq!(host.run(&show).unwrap().stdout, "\n");
        assert_eq!(host.take_command_log().len(), 2, "clones share the log");
    }

    #[test]
    fn of_the_callers_environment_a_child_gets_a_short_list() {
        let names = |command: Command| {
            let shown = Host::this().run(&command).unwrap().stdout;
            shown.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
        };
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "cargo sets it for tests");
        let short = names(Command::new("env").env("GIVEN", "1"));
        let passes = |name: &String| {
            ["PATH", "LC_ALL", "LANG", "GIVEN"].contains(&name.as_str()) || PASSED.contains(&name.as_str())
        };
        assert!(short.iter().all(passes) && short.contains(&"GIVEN".to_owned()), "{short:?}");
        let callers = names(Command::new("env").with_callers_environment());
        assert!(callers.contains(&"CARGO_MANIFEST_DIR".to_owned()), "{callers:?}");
        let withheld = |name: &String| WITHHELD.iter().any(|start| name.starts_with(start)) && !name.starts_with(OWN);
        assert!(!callers.iter().any(withheld), "{callers:?}");
    }

    #[test]
    fn an_inherited_file_is_open_in_that_program_alone() {
        use std::os::fd::AsRawFd;
        let file = Arc::new(tempfile::tempfile().unwrap());
        let look = Command::new("test").arg("-e").arg(format!("/proc/self/fd/{}", file.as_raw_fd()));
        assert!(Host::this().run(&look.clone().inheriting(Arc::clone(&file))).is_ok());
        assert!(Host::this().run(&look).is_err());
    }

    #[test]
    fn arguments_are_never_read_by_a_shell() {
        let output = Host::this().run(&Command::new("echo").arg("$(id); `id` | x")).unwrap();
        assert_eq!(output.stdout, "$(id); `id` | x\n");
    }
}

//! The guest's side: runs one command at a time for the host, with its streams, time limit and signals.
//!
//! The commands come from the host, so none is refused. When the host is gone the agent ends, and the guest with it.

use super::wire::{ALIVE_EVERY, CommandEnd, Frame, Hello, Order, PORT};
use crate::error::{Context, Error, Result};
use crate::host::command::Command;
use crate::host::files::{self, File};
use crate::host::time::{Instant, now, sleep};
use crate::host::{Host, processes, threads};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Polling interval for the end of a command: short in its first second, then longer, because each check takes CPU time
/// from the measurement.
const LOOK_EVERY: Duration = Duration::from_millis(5);
const THEN_EVERY: Duration = Duration::from_millis(50);
/// Time to wait for output streams that a left-over child of the command may still hold open.
const DRAIN: Duration = Duration::from_secs(1);
/// Time for which a killed command may hang in the kernel.
const DEATH: Duration = Duration::from_secs(10);

const KILL: i32 = rustix::process::Signal::KILL.as_raw();

/// Connection to the host.
#[derive(Clone)]
struct HostPort(Arc<Mutex<File>>);

impl HostPort {
    fn send(&self, frame: &Frame) -> Result<()> {
        frame.write(&mut *threads::locked(&self.0))
    }
}

/// Serves the host until it is gone or asks to power off.
///
/// # Errors
/// If there is no port to the host, or it breaks.
pub fn serve(host: &Host) -> Result<()> {
    let path = host.path(format!("/dev/virtio-ports/{PORT}"));
    let mut port = files::open_to_change(&path)?
        .ok_or_else(|| Error::host("there is no port to a host").hint("this command is for inside of a guest"))?;
    let line = HostPort(Arc::new(Mutex::new(port.try_clone().or_host(|| format!("open {}", path.display()))?)));
    let kernel = host.read("/proc/sys/kernel/osrelease")?.trim().to_owned();
    line.send(&Frame::Hello(Hello { kernel }))?;
    let beat = line.clone();
    threads::begin_apart("alive", move || {
        while beat.send(&Frame::Alive).is_ok() {
            sleep(ALIVE_EVERY);
        }
    })?;
    let mut running: Option<RunningCommand> = None;
    while let Some(frame) = Frame::read(&mut port)? {
        match frame {
            Frame::Start(order) => match RunningCommand::start(host, &order, &line) {
                Ok(started) => running = Some(started),
                Err(error) => line.send(&Frame::NotStarted(error.chain()))?,
            },
            Frame::Input(bytes) => {
                if let Some(input) = running.as_ref().and_then(|running| running.input.as_ref()) {
                    // A command that has closed its input drops the rest.
                    drop(input.send(bytes));
                }
            }
            Frame::InputEnd => {
                if let Some(running) = &mut running {
                    running.input = None;
                }
            }
            Frame::Signal(number) => {
                if let Some(running) = running.as_ref().filter(|running| !running.over.load(Ordering::SeqCst)) {
                    processes::signal_group(running.leader, number)?;
                }
            }
            Frame::PowerOff => break,
            _ => return Err(Error::bug("the host sent a frame that only guests send")),
        }
    }
    Ok(())
}

/// The current or last command.
struct RunningCommand {
    leader: u32,
    input: Option<Sender<Vec<u8>>>,
    over: Arc<AtomicBool>,
}

impl RunningCommand {
    fn start(host: &Host, order: &Order, line: &HostPort) -> Result<RunningCommand> {
        let (program, args) = order.argv.split_first().ok_or_else(|| Error::user("no command is named"))?;
        let command = Command::new(program).args(args).cwd(&order.cwd);
        let command = order.env.iter().fold(command, |command, (name, value)| command.env(name, value));
        let begun = now();
        let mut child = host.spawn_piped(&command)?;
        let leader = child.id();
        let over = Arc::new(AtomicBool::new(false));
        let open = Arc::new(AtomicUsize::new(2));
        let (input, fed) = channel();
        if let Some(pipe) = child.stdin.take() {
            let line = line.clone();
            threads::begin_apart("input", move || feed(pipe, &fed, &line))?;
        }
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let limit = order.limit_ms.map(Duration::from_millis);
        let watch = CommandWatch { child, begun, limit, open, over: Arc::clone(&over) };
        watch.pass_on(stdout, Frame::Output, line)?;
        watch.pass_on(stderr, Frame::Errors, line)?;
        let line = line.clone();
        threads::begin_apart("watch", move || watch.until_end(&line))?;
        Ok(RunningCommand { leader, input: Some(input), over })
    }
}

fn feed(mut pipe: ChildStdin, fed: &Receiver<Vec<u8>>, line: &HostPort) {
    for bytes in fed {
        // Input that a command does not read is dropped, as in a shell's pipe.
        drop(pipe.write_all(&bytes));
        if line.send(&Frame::Took(u32::try_from(bytes.len()).unwrap_or(u32::MAX))).is_err() {
            return;
        }
    }
}

struct CommandWatch {
    child: Child,
    begun: Instant,
    limit: Option<Duration>,
    /// Number of streams not yet at their end.
    open: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
}

impl CommandWatch {
    /// Sends what a stream of the command prints to the host.
    fn pass_on(
        &self,
        pipe: Option<impl Read + Send + 'static>,
        frame: fn(Vec<u8>) -> Frame,
        line: &HostPort,
    ) -> Result<()> {
        let Some(mut pipe) = pipe else { return Ok(()) };
        let (line, over, open) = (line.clone(), Arc::clone(&self.over), Arc::clone(&self.open));
        let begun = threads::begin_apart("output", move || {
            let mut buffer = vec![0; 32 << 10];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                if over.load(Ordering::SeqCst) || line.send(&frame(buffer[..length].to_vec())).is_err() {
                    break;
                }
            }
            open.fetch_sub(1, Ordering::SeqCst);
        });
        begun.map(drop)
    }

    fn until_end(mut self, line: &HostPort) {
        let mut killed: Option<Instant> = None;
        let ended = loop {
            match self.child.try_wait() {
                Ok(None) => {}
                Ok(Some(_)) | Err(_) if killed.is_some() => break CommandEnd::TimedOut,
                Ok(Some(status)) => break ended(status),
                Err(_) => break CommandEnd::Killed { signal: KILL },
            }
            let over = self.limit.is_some_and(|limit| self.begun.elapsed() >= limit);
            if over && killed.is_none() {
                killed = Some(now());
                drop(processes::signal_group(self.child.id(), KILL));
            }
            if killed.is_some_and(|killed| killed.elapsed() > DEATH) {
                break CommandEnd::TimedOut;
            }
            sleep(if self.begun.elapsed() < Duration::from_secs(1) { LOOK_EVERY } else { THEN_EVERY });
        };
        let begun = now();
        while self.open.load(Ordering::SeqCst) > 0 && begun.elapsed() < DRAIN {
            sleep(LOOK_EVERY);
        }
        self.over.store(true, Ordering::SeqCst);
        // If the host is gone, nobody receives it.
        drop(line.send(&Frame::Ended(ended)));
    }
}

fn ended(status: ExitStatus) -> CommandEnd {
    let killed = CommandEnd::Killed { signal: status.signal().unwrap_or(KILL) };
    status.code().map_or(killed, CommandEnd::Exited)
}

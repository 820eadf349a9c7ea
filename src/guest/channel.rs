//! The host's side of the port: runs a command in the guest and waits for its end. Every wait has a limit.

use super::wire::{CommandEnd, Frame, Hello, Order, WINDOW};
use crate::error::{Context, Error, Result};
use crate::host::signals::Interrupt;
use crate::host::threads::{self, locked};
use crate::host::time::{Instant, now};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A guest that is silent for this long hangs: it sends a keep-alive every 2 s.
const SILENCE: Duration = Duration::from_secs(60);
/// Time by which the guest may exceed a command's limit.
const GRACE: Duration = Duration::from_secs(30);
/// Time in which a command must end after it was interrupted.
const INTERRUPTED: Duration = Duration::from_secs(120);
/// Polling interval for interrupts.
const TURN: Duration = Duration::from_millis(50);

const INT: i32 = rustix::process::Signal::INT.as_raw();
const KILL: i32 = rustix::process::Signal::KILL.as_raw();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    Output,
    Errors,
}

/// Failure of the channel, or refusal of a command.
#[derive(Debug)]
pub(super) enum Broken {
    /// The port is closed because QEMU has ended.
    Gone,
    Silent(Duration),
    /// The command could not be started or the order not sent; the guest is fine.
    Refused(Error),
}

/// Source of the command's standard input.
pub type Input = Box<dyn Read + Send>;

#[derive(Debug)]
pub(super) struct Channel {
    stream: Arc<Mutex<UnixStream>>,
    frames: Receiver<Frame>,
}

impl Channel {
    pub(super) fn over(stream: UnixStream) -> Result<Channel> {
        let doing = || "open the guest's port".to_owned();
        stream.set_nonblocking(false).or_host(doing)?;
        stream.set_write_timeout(Some(SILENCE)).or_host(doing)?;
        let mut from = stream.try_clone().or_host(doing)?;
        let (to, frames) = channel();
        let begun = threads::begin_apart("guest", move || {
            // An error counts as the end, too.
            while let Ok(Some(frame)) = Frame::read(&mut from) {
                if to.send(frame).is_err() {
                    return;
                }
            }
        });
        begun.map_err(|e| e.while_doing(doing()))?;
        Ok(Channel { stream: Arc::new(Mutex::new(stream)), frames })
    }

    /// The agent's greeting; `None` if it did not arrive in time.
    pub(super) fn hello(&self, within: Duration) -> Result<Option<Hello>, Broken> {
        match self.frames.recv_timeout(within) {
            Ok(Frame::Hello(hello)) => Ok(Some(hello)),
            Ok(_) | Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Broken::Gone),
        }
    }

    pub(super) fn power_off(&self) {
        // A guest that is gone is off, so errors do not matter.
        drop(send(&self.stream, &Frame::PowerOff));
    }

    /// Runs a command to its end and passes on its output as it arrives; `None` if `left`, which is polled many times a
    /// second, returned true: the command then continues.
    pub(super) fn run(
        &self,
        order: &Order,
        input: Option<Input>,
        interrupt: &Interrupt,
        output: &mut dyn FnMut(OutputStream, &[u8]) -> Result<()>,
        left: &dyn Fn() -> bool,
    ) -> Result<Option<CommandEnd>, Broken> {
        send(&self.stream, &Frame::Start(order.clone()))?;
        let feeding = Feeding::start(Arc::clone(&self.stream), input)?;
        let begun = now();
        let limit = order.limit_ms.map(|limit| Duration::from_millis(limit) + GRACE);
        let mut heard = now();
        let mut interrupted: Option<Instant> = None;
        // If its output cannot be passed on any more, the command still runs to its end.
        let mut unread = None;
        loop {
            match self.frames.recv_timeout(TURN) {
                Ok(frame) => {
                    heard = now();
                    let (stream, bytes) = match frame {
                        Frame::Ended(ended) => {
                            return unread.map_or(Ok(Some(ended)), |error| Err(Broken::Refused(error)));
                        }
                        Frame::NotStarted(why) => return Err(Broken::Refused(Error::tool(why))),
                        Frame::Took(bytes) => {
                            feeding.took(bytes);
                            continue;
                        }
                        Frame::Output(bytes) => (OutputStream::Output, bytes),
                        Frame::Errors(bytes) => (OutputStream::Errors, bytes),
                        _ => continue,
                    };
                    if unread.is_none() {
                        unread = output(stream, &bytes).err();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Broken::Gone),
            }
            if left() {
                return Ok(None);
            }
            if interrupt.is_raised() && interrupted.is_none() {
                interrupted = Some(now());
                send(&self.stream, &Frame::Signal(INT))?;
            }
            if interrupted.is_some_and(|at| at.elapsed() > INTERRUPTED) {
                send(&self.stream, &Frame::Signal(KILL))?;
            }
            let late = limit.is_some_and(|limit| begun.elapsed() > limit);
            let hangs = interrupted.is_some_and(|at| at.elapsed() > INTERRUPTED + GRACE);
            if late || hangs || heard.elapsed() > SILENCE {
                return Err(Broken::Silent(heard.elapsed()));
            }
        }
    }
}

fn send(stream: &Mutex<UnixStream>, frame: &Frame) -> Result<(), Broken> {
    let sent = frame.write(&mut *locked(stream));
    sent.map_err(|_| Broken::Gone)
}

/// Sends standard input until the value is dropped; at most a window of it is unread in the guest.
struct Feeding {
    credit: Arc<(Mutex<usize>, Condvar)>,
    over: Arc<AtomicBool>,
}

impl Feeding {
    fn start(stream: Arc<Mutex<UnixStream>>, input: Option<Input>) -> Result<Feeding, Broken> {
        let feeding = Feeding { credit: Arc::new((Mutex::new(WINDOW), Condvar::new())), over: Arc::default() };
        let Some(mut input) = input else {
            send(&stream, &Frame::InputEnd)?;
            return Ok(feeding);
        };
        let (credit, over) = (Arc::clone(&feeding.credit), Arc::clone(&feeding.over));
        let begun = threads::begin_apart("guest input", move || {
            let mut buffer = vec![0; 16 << 10];
            while let Ok(length @ 1..) = input.read(&mut buffer) {
                take(&credit, length, &over);
                let frame = Frame::Input(buffer[..length].to_vec());
                if over.load(Ordering::SeqCst) || send(&stream, &frame).is_err() {
                    return;
                }
            }
            if !over.load(Ordering::SeqCst) {
                drop(send(&stream, &Frame::InputEnd));
            }
        });
        begun.map(|_| feeding).map_err(Broken::Refused)
    }

    fn took(&self, bytes: u32) {
        let (credit, given) = &*self.credit;
        *locked(credit) += usize::try_from(bytes).unwrap_or(0);
        given.notify_all();
    }
}

impl Drop for Feeding {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

/// Waits until this many bytes may be sent, or the command is over.
fn take(credit: &(Mutex<usize>, Condvar), bytes: usize, over: &AtomicBool) {
    let mut left = locked(&credit.0);
    while *left < bytes && !over.load(Ordering::SeqCst) {
        left = credit.1.wait_timeout(left, TURN).map_or_else(|e| e.into_inner().0, |(left, _)| left);
    }
    *left = left.saturating_sub(bytes);
}

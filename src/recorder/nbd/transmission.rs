//! Requests and replies, once a client has its export.
//!
//! Requests are carried out one after another, in the order in which they were sent. Before one is carried out, everything
//! that the client has sent by then is read and has its place of submission: a flush that was sent before a write was
//! answered does not cover that write.

use super::NbdShared;
use crate::recorder::disk::{Change, Recorder, Submitted};
use crate::recorder::entry::Op;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
/// Bytes of a request without its payload.
const HEAD: usize = 28;

/// Largest read and write. A larger write ends the connection, whose client does not keep to what it was told.
pub(super) const MOST_PAYLOAD: u32 = 32 << 20;

/// How much is read ahead: requests, and bytes of their payloads.
const MOST_AHEAD: usize = 256;
const MOST_BYTES_AHEAD: usize = 64 << 20;
/// Bytes of one read(2).
const PIECE: usize = 128 << 10;

/// Commands.
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const WRITE_ZEROES: u16 = 6;

/// Flags of commands: stable before the reply; no hole, which a recorder that stores no zeros may ignore.
const FUA: u16 = 1;
const NO_HOLE: u16 = 2;

/// A request as it was sent.
struct NbdRequest {
    flags: u16,
    command: u16,
    cookie: [u8; 8],
    offset: u64,
    length: u32,
}

/// What becomes of a request that was read.
enum NbdAction {
    Read { recorder: Arc<Recorder>, disk: u16, offset: u64, length: u32 },
    Change { recorder: Arc<Recorder>, change: Change, submitted: Submitted, content: Vec<u8> },
    Refuse(Errno),
}

/// What was received and not read yet.
struct NbdInput<'s> {
    stream: &'s UnixStream,
    bytes: Vec<u8>,
}

/// Serves requests until the client goes.
pub(super) fn transmit(stream: &UnixStream, shared: &NbdShared, name: &str) -> io::Result<()> {
    let mut input = NbdInput { stream, bytes: Vec::new() };
    let mut queue: VecDeque<([u8; 8], NbdAction)> = VecDeque::new();
    let mut open = true;
    while open || !queue.is_empty() {
        if open {
            open = read_ahead(&mut input, &mut queue, shared, name)?;
        }
        // What was submitted is carried out even where its client has gone, as a disk would.
        if let Some((cookie, due)) = queue.pop_front() {
            open &= answer(stream, cookie, due).is_ok();
        }
    }
    Ok(())
}

/// Reads all that was sent; waits for something where nothing is due. `false` when nothing more is to come.
fn read_ahead(
    input: &mut NbdInput<'_>,
    queue: &mut VecDeque<([u8; 8], NbdAction)>,
    shared: &NbdShared,
    name: &str,
) -> io::Result<bool> {
    let payloads = queue.iter().map(|(_, due)| match due {
        NbdAction::Change { content, .. } => content.len(),
        NbdAction::Read { .. } | NbdAction::Refuse(_) => 0,
    });
    let mut ahead: usize = payloads.sum();
    loop {
        while let Some(request) = input.request() {
            let Ok(request) = request else { return Ok(false) };
            let wants = if request.command == WRITE { request.length as usize } else { 0 };
            if request.command == DISCONNECT || wants > MOST_PAYLOAD as usize {
                return Ok(false);
            }
            if input.bytes.len() < HEAD + wants {
                break;
            }
            let content = input.take(wants);
            ahead += wants;
            let due = submitted(&request, content, shared, name).unwrap_or_else(NbdAction::Refuse);
            queue.push_back((request.cookie, due));
            if queue.len() >= MOST_AHEAD || ahead >= MOST_BYTES_AHEAD {
                return Ok(true);
            }
        }
        match input.receive(queue.is_empty()) {
            Ok(Received::Bytes) => {}
            Ok(Received::NothingNow) => return Ok(true),
            Ok(Received::End) | Err(_) => return Ok(false),
        }
    }
}

/// What came of waiting for input.
enum Received {
    Bytes,
    NothingNow,
    End,
}

impl NbdInput<'_> {
    /// The head of the request at the front; `None` before it is there, an error where it is none.
    fn request(&self) -> Option<Result<NbdRequest, ()>> {
        let head = self.bytes.first_chunk::<HEAD>()?;
        let number =
            |at: usize, bytes: usize| head[at..at + bytes].iter().fold(0, |n: u64, byte| n << 8 | u64::from(*byte));
        if number(0, 4) != u64::from(REQUEST_MAGIC) {
            return Some(Err(()));
        }
        let cookie = head[8..].first_chunk().copied()?;
        let [flags, command] = [4, 6].map(|at| number(at, 2) as u16);
        Some(Ok(NbdRequest { flags, command, cookie, offset: number(16, 8), length: number(24, 4) as u32 }))
    }

    /// Takes the request at the front away, and returns its payload.
    fn take(&mut self, payload: usize) -> Vec<u8> {
        let rest = self.bytes.split_off(HEAD + payload);
        let mut taken = std::mem::replace(&mut self.bytes, rest);
        taken.drain(..HEAD);
        taken
    }

    /// Receives what is there, or waits for it.
    fn receive(&mut self, waits: bool) -> io::Result<Received> {
        if !waits && !readable(self.stream)? {
            return Ok(Received::NothingNow);
        }
        let before = self.bytes.len();
        self.bytes.resize(before + PIECE, 0);
        let received = loop {
            match self.stream.read(&mut self.bytes[before..]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                received => break received,
            }
        };
        self.bytes.truncate(before + *received.as_ref().unwrap_or(&0));
        Ok(if received? == 0 { Received::End } else { Received::Bytes })
    }
}

fn readable(stream: &UnixStream) -> io::Result<bool> {
    let mut ready = [PollFd::new(stream, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    Ok(poll(&mut ready, Some(&at_once))? > 0)
}

/// Checks a request and submits it.
fn submitted(request: &NbdRequest, content: Vec<u8>, shared: &NbdShared, name: &str) -> Result<NbdAction, Errno> {
    let NbdRequest { flags, command, offset, length, .. } = *request;
    let op = match command {
        READ => None,
        WRITE => Some(Op::Write),
        FLUSH => Some(Op::Flush),
        TRIM => Some(Op::Discard),
        WRITE_ZEROES => Some(Op::WriteZeroes),
        _ => return Err(Errno::INVAL),
    };
    // FUA is allowed on every command and means something where data change.
    let known = if command == WRITE_ZEROES { FUA | NO_HOLE } else { FUA };
    let empty = length == 0 && op != Some(Op::Flush);
    let flushes_part = op == Some(Op::Flush) && (offset, length) != (0, 0);
    if flags & !known != 0 || empty || flushes_part || (op.is_none() && length > MOST_PAYLOAD) {
        return Err(Errno::INVAL);
    }
    let export = shared.export(name).ok_or(Errno::SHUTDOWN)?;
    let (recorder, disk) = (export.recorder, export.disk);
    let size = recorder.size(disk).ok_or(Errno::SHUTDOWN)?;
    if offset.checked_add(u64::from(length)).is_none_or(|end| end > size) {
        // The protocol has a number of its own for what would make the disk grow.
        return Err(if matches!(op, Some(Op::Write | Op::WriteZeroes)) { Errno::NOSPC } else { Errno::INVAL });
    }
    let Some(op) = op else { return Ok(NbdAction::Read { recorder, disk, offset, length }) };
    let fua = flags & FUA != 0 && op != Op::Flush;
    let change = Change { disk, op, offset, length: u64::from(length), fua };
    let submitted = recorder.submit(&change).map_err(|_| Errno::IO)?;
    Ok(NbdAction::Change { recorder, change, submitted, content })
}

/// Carries a request out and replies.
fn answer(mut stream: &UnixStream, cookie: [u8; 8], due: NbdAction) -> io::Result<()> {
    let outcome = match due {
        NbdAction::Refuse(error) => Err(error),
        NbdAction::Change { recorder, change, submitted, content } => {
            recorder.complete(&change, submitted, &content).map(|()| Vec::new()).map_err(|_| Errno::IO)
        }
        NbdAction::Read { recorder, disk, offset, length } => {
            let mut bytes = vec![0; length as usize];
            recorder.read(disk, offset, &mut bytes).map(|()| bytes).map_err(|_| Errno::IO)
        }
    };
    // Errors have numbers of the protocol's own, which are those of Linux.
    let error = outcome.as_ref().err().map_or(0, |error| error.raw_os_error());
    let head = [&REPLY_MAGIC.to_be_bytes()[..], &error.to_be_bytes(), &cookie].concat();
    stream.write_all(&head)?;
    stream.write_all(&outcome.unwrap_or_default())
}

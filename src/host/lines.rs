//! Lines of text over TCP: one line asks, one line answers.

use super::signals::Interrupt;
use super::threads;
use super::time::sleep;
use crate::error::{Context, Error, Result};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The longest that the other side may take.
const ANSWER: Duration = Duration::from_secs(30);
/// How often somebody who waits looks whether it is to end.
const LOOK: Duration = Duration::from_millis(200);
/// Longest line, bytes.
const LONGEST: u64 = 64 << 10;
/// Connections at a time.
const MOST: usize = 256;

/// A connection to somebody who answers.
pub struct Lines(BufReader<TcpStream>);

impl Lines {
    /// Connects to `host:port`.
    ///
    /// # Errors
    /// When nobody listens there.
    pub(crate) fn connect(address: &str) -> Result<Lines> {
        let what = || format!("connect to {address}");
        let mut last = None;
        for one in address.to_socket_addrs().or_host(what)? {
            match TcpStream::connect_timeout(&one, ANSWER) {
                Ok(stream) => {
                    stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(ANSWER))).or_host(what)?;
                    return Ok(Lines(BufReader::new(stream)));
                }
                Err(e) => last = Some(e),
            }
        }
        last.map_or_else(|| Err(Error::host(format!("{address} is not an address"))), |e| Err(e).or_host(what))
    }

    /// Sends a line and waits for the answer.
    ///
    /// # Errors
    /// When the connection is gone, or no answer comes.
    pub(crate) fn ask(&mut self, line: &str) -> Result<String> {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).or_host(|| "send a line".to_owned())?;
        let mut answer = String::new();
        (&mut self.0).take(LONGEST).read_line(&mut answer).or_host(|| "wait for an answer".to_owned())?;
        match answer.strip_suffix('\n') {
            Some(answer) => Ok(answer.to_owned()),
            None => Err(Error::host("the connection ended in the middle of an answer")),
        }
    }
}

/// Answers each line of each connection until it is interrupted; `ready` is told the address, with the port that was
/// chosen where it is 0. Who sends no line, or one that is too long, is disconnected.
///
/// # Errors
/// When the address cannot be listened on.
pub(crate) fn serve(
    address: &str,
    interrupt: &Interrupt,
    ready: &dyn Fn(SocketAddr),
    answer: &(dyn Fn(&str) -> String + Sync),
) -> Result<()> {
    let what = || format!("listen on {address}");
    let listener = TcpListener::bind(address).or_host(what)?;
    listener.set_nonblocking(true).or_host(what)?;
    ready(listener.local_addr().or_host(what)?);
    let connected = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        while !interrupt.is_raised() {
            // One that is gone again is no reason to end.
            let Ok((stream, _)) = listener.accept() else {
                sleep(LOOK);
                continue;
            };
            if connected.fetch_add(1, Ordering::SeqCst) >= MOST {
                connected.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let connected = &connected;
            let begun = threads::begin(scope, move || {
                answer_all(stream, interrupt, answer);
                connected.fetch_sub(1, Ordering::SeqCst);
            });
            // Without a thread this one is turned away.
            if begun.is_err() {
                connected.fetch_sub(1, Ordering::SeqCst);
            }
        }
    });
    Ok(())
}

/// Answers until the other side goes, or it is interrupted.
fn answer_all(stream: TcpStream, interrupt: &Interrupt, answer: &(dyn Fn(&str) -> String + Sync)) {
    let blocking = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(LOOK)));
    if blocking.and_then(|()| stream.set_nodelay(true)).is_err() {
        return;
    }
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while !interrupt.is_raised() {
        let room = LONGEST - line.len() as u64;
        match (&mut reader).take(room).read_until(b'\n', &mut line) {
            Ok(_) if line.last() == Some(&b'\n') => {
                let said = format!("{}\n", answer(String::from_utf8_lossy(&line).trim_end()));
                if reader.get_mut().write_all(said.as_bytes()).is_err() {
                    return;
                }
                line.clear();
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            _ => return,
        }
    }
}

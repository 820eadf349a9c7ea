//! Lines of text over TCP: one line per request, one per answer.

use super::connections::{Connection, Connections};
use super::signals::Interrupt;
use super::threads;
use super::time::sleep;
use crate::error::{Context, Error, Result};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(30);
/// Polling interval for an interrupt.
const LOOK: Duration = Duration::from_millis(200);
/// Longest line, bytes.
const LONGEST: u64 = 64 << 10;
/// Most concurrent connections, and the longest time to transfer one line or to read an answer.
pub(crate) const LIMITS: (usize, Duration) = (256, Duration::from_secs(10));

/// A connection to a server.
pub struct Lines(BufReader<TcpStream>);

impl Lines {
    /// Connects to `host:port`.
    ///
    /// # Errors
    /// If nobody listens there.
    pub(crate) fn connect(address: &str) -> Result<Lines> {
        let what = || format!("connect to {address}");
        let mut last = None;
        for one in address.to_socket_addrs().or_host(what)? {
            match TcpStream::connect_timeout(&one, ANSWER) {
                Ok(stream) => {
                    let set = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(ANSWER)));
                    set.and_then(|()| stream.set_write_timeout(Some(ANSWER))).or_host(what)?;
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
    /// If the connection is gone, or no answer comes.
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

/// Answers each line of each connection until interrupted. `ready` gets the address, with the actual port if 0 was
/// asked for. A client that sends no line in time, or one that is too long, is disconnected; after its first line it
/// may stay silent as long as it keeps its slot.
///
/// # Errors
/// If the address cannot be listened on.
pub(crate) fn serve(
    address: &str,
    interrupt: &Interrupt,
    ready: &dyn Fn(SocketAddr),
    answer: &(dyn Fn(&str) -> String + Sync),
    (most, patience): (usize, Duration),
) -> Result<()> {
    let listening = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok((listener.local_addr()?, listener))
    });
    let (address, listener) = listening.or_host(|| format!("listen on {address}"))?;
    ready(address);
    let connections = Connections::new(most);
    std::thread::scope(|scope| {
        while !interrupt.is_raised() {
            // A client that has gone again is no reason to stop.
            let Ok((stream, _)) = listener.accept() else {
                sleep(LOOK);
                continue;
            };
            if let Some(connection) = connections.admit(stream) {
                // If no thread can be started, only this client is dropped.
                threads::begin(scope, move || answer_all(connection, answer, patience)).ok();
            }
        }
        connections.end_all();
    });
    Ok(())
}

/// Answers until the client disconnects, or takes too long over a line or an answer.
fn answer_all(mut connection: Connection, answer: &(dyn Fn(&str) -> String + Sync), patience: Duration) {
    connection.allow(Some(patience));
    let mut reader = BufReader::new(connection);
    let mut line = Vec::new();
    loop {
        match (&mut reader).take(LONGEST).read_until(b'\n', &mut line) {
            Ok(_) if line.last() == Some(&b'\n') => {}
            _ => return,
        }
        reader.get_mut().heard();
        let said = format!("{}\n", answer(String::from_utf8_lossy(&line).trim_end()));
        reader.get_mut().allow(Some(patience));
        if reader.get_mut().write_all(said.as_bytes()).is_err() {
            return;
        }
        line.clear();
        reader.get_mut().allow(None);
        if !reader.fill_buf().is_ok_and(|next| !next.is_empty()) {
            return;
        }
        reader.get_mut().allow(Some(patience));
    }
}

#[cfg(test)]
mod tests {
    use super::super::connections::testing::{assert_ended, besiege};
    use super::*;

    #[test]
    fn clients_that_send_no_line_are_dropped_and_block_nobody() {
        let (interrupt, (sender, receiver)) = (Interrupt::default(), std::sync::mpsc::channel());
        std::thread::scope(|scope| {
            let ready = move |address: SocketAddr| sender.send(address).unwrap();
            let (interrupt, limits) = (&interrupt, (4, Duration::from_millis(300)));
            let serving =
                scope.spawn(move || serve("127.0.0.1:0", interrupt, &ready, &|line| format!("<{line}>"), limits));
            let address = receiver.recv().unwrap();
            let silent = besiege(address, 8);
            for n in 0..5 {
                let mut lines = Lines::connect(&address.to_string()).unwrap();
                assert_eq!(lines.ask(&n.to_string()).unwrap(), format!("<{n}>"));
            }
            silent.into_iter().for_each(|mut stream| assert_ended(&mut stream));
            interrupt.raise();
            serving.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_client_that_stops_within_a_line_is_dropped() {
        let (interrupt, (sender, receiver)) = (Interrupt::default(), std::sync::mpsc::channel());
        std::thread::scope(|scope| {
            let ready = move |address: SocketAddr| sender.send(address).unwrap();
            let (interrupt, limits) = (&interrupt, (4, Duration::from_millis(300)));
            scope.spawn(move || serve("127.0.0.1:0", interrupt, &ready, &str::to_owned, limits));
            let address = receiver.recv().unwrap().to_string();
            let mut lines = [Lines::connect(&address).unwrap(), Lines::connect(&address).unwrap()];
            for one in &mut lines {
                assert_eq!(one.ask("a").unwrap(), "a");
            }
            let [mut silent, mut halting] = lines;
            halting.0.get_mut().write_all(b"b").unwrap();
            assert_ended(halting.0.get_mut());
            assert_eq!(silent.ask("c").unwrap(), "c");
            interrupt.raise();
        });
    }
}

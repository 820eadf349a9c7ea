//! Limits for clients of our own small servers: how many at once, and how long each may take.
//!
//! No client is waited for forever, and none can shut others out: when all slots are taken, the least recently heard
//! client of the address with the most connections is dropped.

use super::threads::locked;
use super::time::{Instant, now, sleep};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Time guaranteed to each connection, however many wait: enough for a request to arrive.
const GRACE: Duration = Duration::from_millis(200);

/// Polling interval for the end of an evicted client's thread.
const LOOK: Duration = Duration::from_millis(5);

pub(crate) struct Connections {
    most: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// Counts admissions and messages heard.
    turn: u64,
    /// Clients that hold a slot, keyed by the turn in which they were last heard.
    placed: BTreeMap<u64, Placed>,
    /// Evicted clients whose threads have not ended yet.
    leaving: usize,
}

struct Placed {
    address: IpAddr,
    heard: Instant,
    stream: Arc<TcpStream>,
}

/// An admitted client; dropping it frees its slot.
pub(crate) struct Connection {
    of: Arc<Connections>,
    stream: Arc<TcpStream>,
    turn: u64,
    until: Option<Instant>,
}

impl Connections {
    pub(crate) fn new(most: usize) -> Arc<Connections> {
        Arc::new(Connections { most, open: Mutex::default() })
    }

    /// Gives a client a slot, evicting another if there is none. `None` if the client is gone already, or too many
    /// threads are still busy with evicted ones.
    pub(crate) fn admit(self: &Arc<Self>, stream: TcpStream) -> Option<Connection> {
        stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true)).ok()?;
        let (address, stream) = (stream.peer_addr().ok()?.ip(), Arc::new(stream));
        let came = now();
        let mut open = locked(&self.open);
        while open.placed.len() >= self.most {
            let turn = open.idlest()?;
            let left = match open.leaving < self.most {
                true => GRACE.saturating_sub(open.placed.get(&turn)?.heard.elapsed()),
                false if came.elapsed() < GRACE => LOOK,
                false => return None,
            };
            if left.is_zero() {
                open.placed.remove(&turn)?.stream.shutdown(Shutdown::Both).ok();
                open.leaving += 1;
            } else {
                drop(open);
                sleep(left);
                open = locked(&self.open);
            }
        }
        open.turn += 1;
        let turn = open.turn;
        open.placed.insert(turn, Placed { address, heard: now(), stream: Arc::clone(&stream) });
        drop(open);
        Some(Connection { of: Arc::clone(self), stream, turn, until: None })
    }

    pub(crate) fn end_all(&self) {
        for placed in locked(&self.open).placed.values() {
            placed.stream.shutdown(Shutdown::Both).ok();
        }
    }
}

impl Open {
    fn idlest(&self) -> Option<u64> {
        let mut crowds: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for placed in self.placed.values() {
            *crowds.entry(placed.address).or_default() += 1;
        }
        let idlest = self.placed.iter().max_by_key(|(turn, placed)| (crowds.get(&placed.address), Reverse(**turn)));
        idlest.map(|(turn, _)| *turn)
    }
}

impl Connection {
    /// Sets the total time for all further reads and writes; `None` means no limit.
    pub(crate) fn allow(&mut self, span: Option<Duration>) {
        self.until = span.map(|span| now() + span);
    }

    /// Notes that the client has sent or taken a whole message, which makes it the last to be evicted.
    pub(crate) fn heard(&mut self) {
        let mut open = locked(&self.of.open);
        open.turn += 1;
        let turn = open.turn;
        if let Some(placed) = open.placed.remove(&self.turn) {
            open.placed.insert(turn, Placed { heard: now(), ..placed });
            self.turn = turn;
        }
    }

    /// Signals the client that nothing more will come.
    pub(crate) fn finish(&self) {
        self.stream.shutdown(Shutdown::Write).ok();
    }

    fn left(&self) -> Result<Option<Duration>> {
        let Some(until) = self.until else { return Ok(None) };
        let left = until.saturating_duration_since(now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Connection {
    fn read(&mut self, part: &mut [u8]) -> Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        (&*self.stream).read(part)
    }
}

impl Write for Connection {
    fn write(&mut self, part: &[u8]) -> Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        (&*self.stream).write(part)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = locked(&self.of.open);
        if open.placed.remove(&self.turn).is_none() {
            open.leaving = open.leaving.saturating_sub(1);
        }
    }
}

/// Clients that try to shut others out, for the tests of the servers.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use std::net::SocketAddr;

    /// Starts `each` silent clients, and as many that send a byte now and then and reconnect when dropped. Returns the
    /// silent ones.
    pub(crate) fn besiege(address: SocketAddr, each: usize) -> Vec<TcpStream> {
        for _ in 0..each {
            std::thread::spawn(move || {
                while let Ok(mut stream) = TcpStream::connect(address) {
                    while stream.write_all(b"a").is_ok() {
                        sleep(Duration::from_millis(20));
                    }
                }
            });
        }
        (0..each).map(|_| TcpStream::connect(address).unwrap()).collect()
    }

    pub(crate) fn assert_ended(stream: &mut TcpStream) {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut part = [0; 64];
        loop {
            match stream.read(&mut part) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) => {
                    assert!(error.kind() == ErrorKind::ConnectionReset, "{error}");
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_new_connection_evicts_the_idlest_of_the_busiest_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let places = Connections::new(3);
        let join = || {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, places.admit(listener.accept().unwrap().0).unwrap())
        };
        let ((_a, mut first), (mut b, second), (_c, third)) = (join(), join(), join());
        // From here on it is the only one of its address, and would be the idlest.
        locked(&places.open).placed.get_mut(&third.turn).unwrap().address = IpAddr::from([10, 0, 0, 1]);
        first.heard();
        let (_d, fourth) = join();
        testing::assert_ended(&mut b);
        let placed = |one: &Connection| locked(&places.open).placed.contains_key(&one.turn);
        assert_eq!([&first, &second, &third, &fourth].map(placed), [true, false, true, true]);
        assert_eq!(locked(&places.open).leaving, 1);
        drop((first, second, third, fourth));
        let open = locked(&places.open);
        assert_eq!((open.placed.len(), open.leaving), (0, 0));
    }
}

//! A small HTTP server that only reads: GET and HEAD, one request for each connection, one thread for each.
//!
//! What is asked for and what is answered is the caller's (`cli`): a function from a request to a response. Here is what
//! must hold whatever the answer: limits on size, time and number, the check of the `Host` header against names that point
//! to this machine by somebody else's DNS, and headers that keep a browser from running or embedding what it is given.
//! Absent on purpose: runs, pages, files.

mod request;
mod response;

pub use request::Request;
pub use response::{Policy, Response};

use crate::error::{Error, Result};
use crate::host::time::now;
use request::{Refusal, parse};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Connections at once; more are turned away.
const MOST_CONNECTIONS: usize = 64;
/// Bytes of a request's head.
const MOST_HEAD: usize = 16 << 10;
/// Bytes that are taken behind a request.
const MOST_REST: usize = 64 << 10;
/// Time in which a request must have come, and in which each part of an answer must be taken.
const PATIENCE: Duration = Duration::from_secs(15);

/// What answers a request.
pub type Answer = dyn Fn(&Request) -> Response + Send + Sync;

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    names: Arc<Vec<String>>,
}

impl Server {
    /// Listens at an address. `names` are what clients may call this machine, beside addresses and `localhost`.
    ///
    /// # Errors
    /// When it cannot listen on the address.
    pub fn listen(at: SocketAddr, names: &[String]) -> Result<Server> {
        let listener = TcpListener::bind(at).map_err(|e| {
            Error::host(e.to_string())
                .while_doing(format!("listen at {at}"))
                .hint("choose another address or port: --listen 127.0.0.1:0 takes any free port")
        })?;
        let names = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Ok(Server { listener, names: Arc::new(names) })
    }

    /// Where it listens, with the port that the system chose.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().map_err(|e| Error::host(e.to_string()).while_doing("read the address of the server"))
    }

    /// Answers requests until the process is ended.
    pub fn run(&self, answer: &Arc<Answer>) {
        let open = Arc::new(AtomicUsize::new(0));
        // A connection that was gone before it was accepted is the client's affair.
        for stream in self.listener.incoming().flatten() {
            if open.fetch_add(1, Ordering::SeqCst) >= MOST_CONNECTIONS {
                open.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let (open, names, answer) = (Arc::clone(&open), Arc::clone(&self.names), Arc::clone(answer));
            let place = Place(open);
            // Without a thread this one is turned away.
            drop(std::thread::Builder::new().spawn(move || {
                let _place = place;
                serve(stream, &names, &*answer);
            }));
        }
    }
}

/// A place among the connections; given back whatever becomes of the thread.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn serve(mut stream: TcpStream, names: &[String], answer: &Answer) {
    let limits = [stream.set_read_timeout(Some(PATIENCE)), stream.set_write_timeout(Some(PATIENCE))];
    let Some(head) = read_head(&mut stream).filter(|_| limits.iter().all(std::result::Result::is_ok)) else { return };
    let (response, with_body) = respond(&head, names, answer);
    // A client that has gone away misses nothing.
    if stream.write_all(&response.bytes(with_body)).is_ok() {
        stream.shutdown(std::net::Shutdown::Write).ok();
        let begun = now();
        take_rest(&mut stream, &|| begun.elapsed());
    }
}

/// Takes what is still on its way, so that the answer is not lost to a reset. A client that never ends gets that reset: it would
/// keep its thread and its place.
fn take_rest(from: &mut impl Read, elapsed: &dyn Fn() -> Duration) {
    let (mut taken, mut part) = (0, [0; 1024]);
    while taken < MOST_REST && elapsed() < PATIENCE {
        match from.read(&mut part) {
            Ok(read) if read > 0 => taken += read,
            _ => break,
        }
    }
}

/// The head of a request; `None` where none came in time, or it is too large.
fn read_head(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let begun = now();
    let (mut head, mut part) = (Vec::new(), [0; 2048]);
    while begun.elapsed() < PATIENCE && head.len() < MOST_HEAD {
        let read = stream.read(&mut part).ok().filter(|read| *read > 0)?;
        head.extend_from_slice(&part[..read]);
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            head.truncate(end);
            return Some(head);
        }
    }
    None
}

/// The response, and whether its body is sent.
fn respond(head: &[u8], names: &[String], answer: &Answer) -> (Response, bool) {
    let parsed = match parse(head) {
        Ok(parsed) => parsed,
        Err(Refusal { status, why }) => return (Response::plain(status, why), true),
    };
    if !is_ours(&parsed.host, names) {
        let why = "this server does not go by the name in the Host header; if it should: pgstrata serve --allow-host NAME\n\
                   (a request by IP address or as localhost is always answered)";
        return (Response::plain(421, why), true);
    }
    (answer(&parsed.request), !parsed.is_head)
}

/// Whether a `Host` header names this machine. A name that somebody else's DNS points here would let their page read the
/// answers; an address cannot be pointed anywhere.
fn is_ours(host: &str, names: &[String]) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.parse::<IpAddr>().is_ok() || names.contains(&name)
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn said(head: &str) -> (u16, String) {
        let names = ["db.example".to_owned()];
        let echo = |request: &Request| Response::plain(200, format!("{:?} {:?}", request.path, request.query));
        let (response, with_body) = respond(head.as_bytes(), &names, &echo);
        let text = String::from_utf8(response.bytes(with_body)).unwrap();
        (response.status, text.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    fn get(target: &str) -> (u16, String) {
        said(&format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:8432"))
    }

    #[test]
    fn only_reading_is_answered_and_head_has_no_body() {
        assert_eq!(get("/a%20b/c?q=x+y&z").1, "[\"a b\", \"c\"] [(\"q\", \"x y\"), (\"z\", \"\")]\n");
        assert_eq!(said("HEAD / HTTP/1.1\r\nHost: localhost"), (200, String::new()));
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get"] {
            assert_eq!(said(&format!("{method} / HTTP/1.1\r\nHost: localhost")).0, 405, "{method}");
        }
    }

    #[test]
    fn a_name_that_may_be_somebody_elses_is_refused_and_addresses_are_not() {
        let status = |host: &str| said(&format!("GET / HTTP/1.1\r\nHost: {host}")).0;
        for ours in [
            "127.0.0.1",
            "127.0.0.1:1",
            "[::1]:80",
            "[::1]",
            "localhost:8432",
            "LOCALHOST.",
            "DB.example:80",
            "10.0.0.7",
        ] {
            assert_eq!(status(ours), 200, "{ours}");
        }
        for foreign in ["attacker.example", "127.0.0.1.attacker.example", "localhost.attacker.example:8432", "", "x:y"]
        {
            assert_eq!(status(foreign), 421, "{foreign}");
        }
        assert_eq!(said("GET / HTTP/1.1\r\nAccept: x").0, 400);
        assert_eq!(said("GET / HTTP/1.1\r\nHost: localhost\r\nHost: attacker.example").0, 400);
    }

    #[test]
    fn a_request_that_is_none_is_refused() {
        for head in ["", "GET", "GET /", "GET / HTTP/2", "GET / SPDY/1.1", "GET  / HTTP/1.1", "\u{0}"] {
            assert!(matches!(said(&format!("{head}\r\nHost: localhost")).0, 400 | 405 | 505), "{head}");
        }
        for target in ["x", "http://localhost/", "*", "/%zz", "/%ff", "/a%00b", "/%0d%0aX: y"] {
            assert_eq!(get(target).0, 400, "{target}");
        }
    }

    #[test]
    fn a_slash_in_a_name_stays_in_the_name() {
        assert_eq!(get("/runs/..%2f..%2fetc").1, "[\"runs\", \"../../etc\"] []\n");
        assert_eq!(get("/runs/../x").1, "[\"runs\", \"..\", \"x\"] []\n");
    }

    /// A client that sends so much at once, and never ends.
    struct Endless {
        at_once: usize,
        reads: Cell<u32>,
    }

    impl Read for &Endless {
        fn read(&mut self, part: &mut [u8]) -> std::io::Result<usize> {
            self.reads.set(self.reads.get() + 1);
            Ok(self.at_once.min(part.len()))
        }
    }

    #[test]
    fn a_client_that_never_ends_is_left_by_its_bytes_or_by_the_time() {
        let fast = Endless { at_once: 1024, reads: Cell::new(0) };
        take_rest(&mut &fast, &|| Duration::ZERO);
        assert_eq!(fast.reads.get() as usize, MOST_REST / 1024);
        // A byte a second.
        let slow = Endless { at_once: 1, reads: Cell::new(0) };
        take_rest(&mut &slow, &|| Duration::from_secs(slow.reads.get().into()));
        assert_eq!(u64::from(slow.reads.get()), PATIENCE.as_secs());
    }

    #[test]
    fn a_client_that_sends_on_without_end_gets_its_answer_and_loses_its_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let server = std::thread::spawn(move || serve(stream, &[], &|_: &Request| Response::plain(200, "here")));
        client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = [0; 8];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1");
        // More than sockets hold on both sides and the server takes.
        let part = vec![0; 1 << 20];
        let sent = (0..256).take_while(|_| client.write_all(&part).is_ok()).count();
        assert!(sent < 256, "the server takes all of it");
        server.join().unwrap();
    }

    #[test]
    fn every_answer_forbids_guessing_types_and_embedding() {
        let bytes = Response::plain(200, "x").bytes(true);
        let text = String::from_utf8(bytes).unwrap();
        for header in ["nosniff", "frame-ancestors 'none'", "no-store", "no-referrer", "Content-Length: 2\r\n"] {
            assert!(text.contains(header), "{header}: {text}");
        }
    }
}

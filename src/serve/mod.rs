//! A small read-only HTTP server: GET and HEAD, one request per connection, one thread per connection.
//!
//! The caller (`cli`) decides the answers: a function from a request to a response. This module enforces what must hold
//! for any answer: limits on size, time and number, a check of the `Host` header against names that somebody else's DNS
//! points to this machine, and headers that keep a browser from running or embedding what it receives. Absent on
//! purpose: runs, pages, files.

mod request;
mod response;

pub use request::HttpRequest;
pub use response::Response;

use crate::error::{Context, Result};
use crate::host::connections::{Connection, Connections};
use crate::host::threads;
use crate::host::time::sleep;
use request::parse;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

/// Simultaneous connections.
const MOST_CONNECTIONS: usize = 64;
/// Largest head of a request, bytes.
const MOST_HEAD: usize = 16 << 10;
/// Most bytes read after a request.
const MOST_REST: u64 = 64 << 10;
/// Bytes of an answer sent at a time.
const PART: usize = 64 << 10;
/// Time limit for receiving a request, and for sending each part of an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Delay before the next attempt if no connection can be accepted.
const LOOK: Duration = Duration::from_millis(50);

/// Function that answers a request.
pub type Answer = dyn Fn(&HttpRequest) -> Response + Send + Sync;

/// A listening server.
pub struct HttpServer {
    listener: TcpListener,
    names: Arc<Vec<String>>,
    most: usize,
    patience: Duration,
}

impl HttpServer {
    /// Listens at an address. `names` are the names by which clients may address this machine, besides IP addresses and
    /// `localhost`.
    ///
    /// # Errors
    /// If it cannot listen on the address.
    pub fn listen(at: SocketAddr, names: &[String]) -> Result<HttpServer> {
        let listener = TcpListener::bind(at)
            .or_host(|| format!("listen at {at}"))
            .map_err(|e| e.hint("choose another address or port: --listen 127.0.0.1:0 takes any free port"))?;
        let names = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Ok(HttpServer { listener, names: Arc::new(names), most: MOST_CONNECTIONS, patience: PATIENCE })
    }

    /// The address it listens on, with the port chosen by the system.
    ///
    /// # Errors
    /// If the system does not report it.
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().or_host(|| "read the address of the server".to_owned())
    }

    /// Answers requests until the process ends.
    pub fn run(&self, answer: &Arc<Answer>) {
        let connections = Connections::new(self.most);
        for stream in self.listener.incoming() {
            // A connection closed before it was accepted is the client's business; without a free descriptor, the next
            // one would fail too.
            let Ok(stream) = stream else {
                sleep(LOOK);
                continue;
            };
            let Some(connection) = connections.admit(stream) else { continue };
            let (names, answer, patience) = (Arc::clone(&self.names), Arc::clone(answer), self.patience);
            // If no thread can be started, only this client is dropped.
            threads::begin_apart("client", move || serve(connection, &names, &*answer, patience)).ok();
        }
    }
}

fn serve(mut connection: Connection, names: &[String], answer: &Answer, patience: Duration) {
    connection.allow(Some(patience));
    let Some(head) = read_head(&mut connection) else { return };
    connection.heard();
    let (response, with_body) = respond(&head, names, answer);
    for part in response.bytes(with_body).chunks(PART) {
        connection.allow(Some(patience));
        // A client that has gone away needs no answer.
        if connection.write_all(part).is_err() {
            return;
        }
        connection.heard();
    }
    connection.finish();
    // Reads what the client still sends, so that a reset does not discard the answer. A client that never stops gets
    // the reset.
    connection.allow(Some(patience));
    std::io::copy(&mut connection.take(MOST_REST), &mut std::io::sink()).ok();
}

/// The head of a request; `None` if none came in time, or it is too large.
fn read_head(from: &mut impl Read) -> Option<Vec<u8>> {
    let (mut head, mut part) = (Vec::new(), [0; 2048]);
    while head.len() < MOST_HEAD {
        let read = from.read(&mut part).ok().filter(|read| *read > 0)?;
        head.extend_from_slice(&part[..read]);
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            head.truncate(end);
            return Some(head);
        }
    }
    None
}

/// The response, and true if its body is to be sent.
fn respond(head: &[u8], names: &[String], answer: &Answer) -> (Response, bool) {
    let (request, is_head, host) = match parse(head) {
        Ok(parsed) => parsed,
        Err((status, why)) => return (Response::plain(status, why), true),
    };
    if !is_ours(&host, names) {
        let why = "this server does not go by the name in the Host header; if it should: pgstrata serve --allow-host NAME\n\
                   (a request by IP address or as localhost is always answered)";
        return (Response::plain(421, why), true);
    }
    (answer(&request), !is_head)
}

/// True if a `Host` header names this machine. A page whose own name somebody's DNS points here could read the answers;
/// an address cannot be redirected like that.
fn is_ours(host: &str, names: &[String]) -> bool {
    let (name, is_v6, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address, true, port),
        None => {
            let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
            (name, false, port)
        }
    };
    let number = port.strip_prefix(':').filter(|digits| digits.bytes().all(|c| c.is_ascii_digit()));
    if !port.is_empty() && number.is_none_or(str::is_empty) {
        return false;
    }
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    match is_v6 {
        true => name.parse::<Ipv6Addr>().is_ok(),
        false => name == "localhost" || name.parse::<Ipv4Addr>().is_ok() || names.contains(&name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::connections::testing::{assert_ended, besiege};
    use std::net::TcpStream;

    fn said(head: &str) -> (u16, String) {
        let names = ["db.example".to_owned()];
        let echo = |request: &HttpRequest| Response::plain(200, format!("{:?} {:?}", request.path, request.query));
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
    fn possibly_foreign_host_names_are_refused_and_addresses_are_not() {
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
        for foreign in [
            "attacker.example",
            "127.0.0.1.attacker.example",
            "localhost.attacker.example:8432",
            "[::1].attacker.example",
            "[::1]attacker.example:80",
            "[::1]:80.attacker.example",
            "[::1]80",
            "[127.0.0.1]",
            "[localhost]",
            "[db.example]:80",
            "[::1",
            "::1",
            "::1]",
            "[]",
            "localhost:80:80",
            "localhost:",
            "user@localhost",
            "",
            "x:y",
        ] {
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

    fn serving(most: usize, answer: impl Fn(&HttpRequest) -> Response + Send + Sync + 'static) -> SocketAddr {
        let mut server = HttpServer::listen("127.0.0.1:0".parse().unwrap(), &[]).unwrap();
        (server.most, server.patience) = (most, Duration::from_millis(300));
        let (address, answer): (_, Arc<Answer>) = (server.address().unwrap(), Arc::new(answer));
        std::thread::spawn(move || server.run(&answer));
        address
    }

    fn asked(address: SocketAddr) -> TcpStream {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        client
    }

    #[test]
    fn clients_that_send_no_request_are_dropped_and_block_nobody() {
        let address = serving(4, |_| Response::plain(200, "here"));
        let silent = besiege(address, 8);
        for _ in 0..5 {
            let mut answer = String::new();
            asked(address).read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("here\n"), "{answer}");
        }
        silent.into_iter().for_each(|mut stream| assert_ended(&mut stream));
    }

    #[test]
    fn a_client_that_leaves_a_large_response_unread_is_disconnected() {
        let client = asked(serving(4, |_| Response::plain(200, "x".repeat(64 << 20))));
        sleep(Duration::from_secs(2));
        let mut all = Vec::new();
        (&client).read_to_end(&mut all).ok();
        assert!((1..64 << 20).contains(&all.len()), "{} bytes", all.len());
    }

    #[test]
    fn a_client_that_sends_endlessly_is_answered_and_disconnected() {
        let mut client = asked(serving(4, |_| Response::plain(200, "here")));
        let mut answer = [0; 8];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1");
        // More than the socket buffers of both sides and the server's reads hold.
        let part = vec![0; 1 << 20];
        let sent = (0..256).take_while(|_| client.write_all(&part).is_ok()).count();
        assert!(sent < 256, "the server takes all of it");
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

//! A small client: one connection over a Unix socket, simple queries, text rows. No pool, no TLS, no passwords.
//!
//! Every answer has a time limit, so that a hanging server does not hang its watchers; after a timeout a connection is
//! out of step and refuses further queries.

use crate::error::{Context, Error, Result};
use crate::host::signals::Interrupt;
use crate::host::time::now;
use crate::host::{files, linux};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{DataRowBody, ErrorFields, Message};
use postgres_protocol::message::frontend;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Default limit for the next piece of an answer; see [`Client::set_limit`].
pub const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// How often a waiting client checks for an interrupt.
const LOOK: Duration = Duration::from_millis(100);

/// Where a server listens, and its data folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// The socket file: `<private folder>/.s.PGSQL.5432`.
    pub socket: PathBuf,
    pub data: PathBuf,
    pub database: String,
    pub user: String,
}

impl ServerAddress {
    /// The kernel knows who listens on a socket, and the data folder names its postmaster (`postmaster.pid`, first
    /// line): before anything is sent, check that both are the same process.
    fn check_peer(&self, stream: &UnixStream) -> Result<()> {
        let listens = linux::peer(stream);
        let lock = files::read(&self.data.join("postmaster.pid"))?;
        let ours = String::from_utf8_lossy(&lock).lines().next().and_then(|line| line.trim().parse().ok());
        if listens.is_some() && listens == ours {
            return Ok(());
        }
        let data = self.data.display();
        let listens = listens
            .map_or("a process of another PID namespace (a container)".to_owned(), |pid| format!("process {pid}"));
        Err(Error::host(format!("{listens} listens there, which is not the server on {data}; it was told nothing")))
    }
}

#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    input: BytesMut,
    broken: bool,
    /// Statements of the last query that were done.
    pub(crate) done: usize,
    limit: Duration,
    interrupt: Interrupt,
}

/// One row: text or NULL for each column.
pub type TextRow = Vec<Option<String>>;

impl Client {
    /// Connects, with a limit for each piece of the server's answers.
    ///
    /// # Errors
    /// When a process other than the server on this data folder listens there; with the server's own message.
    pub fn connect(to: &ServerAddress, limit: Duration) -> Result<Client> {
        let doing = || format!("connect to the server at {}", to.socket.display());
        let stream = UnixStream::connect(&to.socket).or_host(doing)?;
        to.check_peer(&stream).map_err(|error| error.while_doing(doing()))?;
        let interrupt = Interrupt::never();
        let mut client = Client { stream, input: BytesMut::new(), broken: false, done: 0, limit, interrupt };
        client.set_limit(limit)?;
        client.greet(&to.user, &to.database).map_err(|error| error.while_doing(doing()))?;
        Ok(client)
    }

    /// Sets the limit for the next piece of an answer: a CHECKPOINT takes a while.
    ///
    /// # Errors
    /// When the limit is zero.
    pub fn set_limit(&mut self, limit: Duration) -> Result<()> {
        self.limit = limit;
        self.stream.set_read_timeout(Some(limit.min(LOOK))).or_host(|| "set the response timeout".to_owned())?;
        self.stream.set_write_timeout(Some(limit)).or_host(|| "set the response timeout".to_owned())
    }

    /// Makes waiting for an answer stop on an interrupt.
    pub(super) fn heeding(mut self, interrupt: &Interrupt) -> Client {
        self.interrupt = interrupt.clone();
        self
    }

    /// Runs one or more statements and returns the rows of the last one that can return any.
    ///
    /// # Errors
    /// With the server's own message, after which the connection remains usable; after a timeout it does not.
    pub fn query(&mut self, sql: &str) -> Result<Vec<TextRow>> {
        let doing = || format!("run `{}` on the server", shortened(sql));
        if self.broken {
            return Err(Error::host("this connection timed out before and is out of sync").while_doing(doing()));
        }
        let mut message = BytesMut::new();
        frontend::query(sql, &mut message).or_host(doing)?;
        // Any error before ReadyForQuery leaves parts of the answer unread.
        self.broken = true;
        self.stream.write_all(&message).map_err(|e| self.lost(&e)).map_err(|error| error.while_doing(doing()))?;
        let answer = self.answer(sql).map_err(|error| error.while_doing(doing()))?;
        self.broken = false;
        answer.map_err(|error| error.while_doing(doing()))
    }

    /// The first value of the first row.
    ///
    /// # Errors
    /// As [`Client::query`]; when there is no value.
    pub fn value(&mut self, sql: &str) -> Result<String> {
        let value = self.query(sql)?.into_iter().next().and_then(|row| row.into_iter().next().flatten());
        value.ok_or_else(|| Error::tool(format!("`{sql}` returned no value")))
    }

    /// The first value of the first row, as a whole number.
    ///
    /// # Errors
    /// As [`Client::value`]; when it is not a whole number.
    pub fn number<T: std::str::FromStr>(&mut self, sql: &str) -> Result<T> {
        let text = self.value(sql)?;
        text.parse().map_err(|_| Error::tool(format!("`{sql}`: expected a whole number, found `{text}`")))
    }

    /// Start-up; the cluster uses trust, so there is no authentication.
    fn greet(&mut self, user: &str, database: &str) -> Result<()> {
        let parameters =
            [("user", user), ("database", database), ("application_name", "pgstrata"), ("client_encoding", "UTF8")];
        let mut message = BytesMut::new();
        frontend::startup_message(parameters, &mut message).or_host(|| "send the startup message".to_owned())?;
        self.stream.write_all(&message).map_err(|e| self.lost(&e))?;
        loop {
            match self.next()? {
                Message::AuthenticationOk
                | Message::ParameterStatus(_)
                | Message::BackendKeyData(_)
                | Message::NoticeResponse(_) => {}
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ErrorResponse(body) => return Err(server_error(body.fields(), "")),
                _ => return Err(Error::host("the server requires authentication other than trust")),
            }
        }
    }

    /// Reads one answer to its end. Outer error: the connection is lost; inner: the server reports an error.
    fn answer(&mut self, sql: &str) -> Result<Result<Vec<TextRow>>> {
        let mut rows = Vec::new();
        let mut refused = None;
        self.done = 0;
        loop {
            match self.next()? {
                Message::RowDescription(_) => rows.clear(),
                Message::DataRow(body) => rows.push(text_row(&body)?),
                Message::ErrorResponse(body) => refused = Some(server_error(body.fields(), sql)),
                Message::ReadyForQuery(_) => return Ok(refused.map_or(Ok(rows), Err)),
                Message::CommandComplete(_) => self.done += 1,
                Message::EmptyQueryResponse
                | Message::NoticeResponse(_)
                | Message::NotificationResponse(_)
                | Message::ParameterStatus(_) => {}
                _ => return Err(Error::bug("COPY and the extended protocol are not supported by this client")),
            }
        }
    }

    fn next(&mut self) -> Result<Message> {
        let mut begun = now();
        loop {
            if let Some(message) = Message::parse(&mut self.input).map_err(|e| self.lost(&e))? {
                return Ok(message);
            }
            let mut piece = [0u8; 8192];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(Error::host("the server closed the connection")),
                Ok(length) => {
                    self.input.extend_from_slice(&piece[..length]);
                    begun = now();
                }
                Err(e) if is_late(&e) && begun.elapsed() < self.limit => self.interrupt.check()?,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.lost(&e)),
            }
        }
    }

    /// The error for a failed connection; timeouts are spelled out.
    fn lost(&self, e: &io::Error) -> Error {
        if is_late(e) {
            return Error::host(format!("no response within {} s", self.limit.as_secs_f64()));
        }
        Error::host(e.to_string())
    }
}

fn is_late(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut message = BytesMut::new();
        frontend::terminate(&mut message);
        // Only a courtesy: without it the server logs an unexpected end.
        drop(self.stream.write_all(&message));
    }
}

fn text_row(body: &DataRowBody) -> Result<TextRow> {
    let cells =
        body.ranges().map(|range| Ok(range.map(|range| String::from_utf8_lossy(&body.buffer()[range]).into_owned())));
    cells.collect().or_host(|| "read a row".to_owned())
}

/// The server's own message: `ERROR: division by zero (22012); detail`, and where in `sql` if that has several lines.
fn server_error(mut fields: ErrorFields<'_>, sql: &str) -> Error {
    let (mut severity, mut code, mut message) = (String::from("ERROR"), String::new(), String::from("no message"));
    let (mut detail, mut hint, mut place) = (None, None, None);
    // Ends at the last field or an unreadable one; the fields before it are shown.
    while let Ok(Some(field)) = fields.next() {
        let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'S' => severity = value,
            b'C' => code = value,
            b'M' => message = value,
            b'D' => detail = Some(value),
            b'H' => hint = Some(value),
            // Counts characters from 1.
            b'P' => place = value.parse::<usize>().ok(),
            _ => {}
        }
    }
    let detail = detail.map_or_else(String::new, |detail| format!("; {detail}"));
    let before = |place: usize| sql.chars().take(place.saturating_sub(1)).filter(|one| *one == '\n').count();
    let place = place.filter(|_| sql.trim_end().contains('\n'));
    let line = place.map_or_else(String::new, |place| format!(" in line {}", before(place) + 1));
    let error = Error::tool(format!("{severity}: {message} (SQLSTATE {code}){line}{detail}"));
    hint.into_iter().fold(error, Error::hint)
}

fn shortened(sql: &str) -> String {
    const MOST: usize = 60;
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MOST { line } else { line.chars().take(MOST).chain(" ...".chars()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    #[test]
    fn a_server_that_accepts_and_says_nothing_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let stream = UnixStream::connect(&socket).unwrap();
        let interrupt = Interrupt::never();
        let mut client =
            Client { stream, input: BytesMut::new(), broken: false, done: 0, limit: ANSWER_LIMIT, interrupt };
        client.set_limit(Duration::from_millis(20)).unwrap();
        let error = client.query("select 1").unwrap_err().to_string();
        assert!(error.contains("no response within 0.02 s"), "{error}");
        assert!(client.query("select 1").unwrap_err().to_string().contains("out of sync"));
        drop(listener);
    }

    #[test]
    fn a_socket_that_is_not_there_is_named() {
        let error = Client::connect(&address(Path::new("/nowhere")), ANSWER_LIMIT).unwrap_err();
        assert!(error.to_string().contains("/nowhere/.s.PGSQL.5432"), "{error}");
    }

    fn address(folder: &Path) -> ServerAddress {
        let [database, user] = ["postgres", "postgres"].map(str::to_owned);
        ServerAddress { socket: folder.join(".s.PGSQL.5432"), data: folder.to_path_buf(), database, user }
    }

    #[test]
    fn an_impostor_server_on_the_data_folder_is_sent_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let to = address(folder.path());
        let listener = UnixListener::bind(&to.socket).unwrap();
        let heard = |ours: u32| {
            std::fs::write(folder.path().join("postmaster.pid"), format!("{ours}\n/data\n")).unwrap();
            let error = Client::connect(&to, Duration::from_millis(20)).unwrap_err().to_string();
            let mut heard = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut heard).unwrap();
            (heard.len(), error)
        };
        let (bytes, error) = heard(std::process::id() + 1);
        assert!(bytes == 0 && error.contains("is not the server on"), "{bytes}: {error}");
        let (bytes, error) = heard(std::process::id());
        assert!(bytes > 0 && error.contains("no response within"), "{bytes}: {error}");
    }

    #[test]
    fn a_long_statement_is_shown_shortened_and_on_one_line() {
        assert_eq!(shortened("select\n  1"), "select 1");
        assert!(shortened(&"x".repeat(500)).ends_with(" ..."));
    }
}

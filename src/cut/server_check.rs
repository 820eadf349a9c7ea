//! PostgreSQL on a state: recovery, and its own checks of the recovered database.
//!
//! A server that ends by itself with a FATAL or PANIC has found damage. One that was killed, or does not answer in
//! time, says nothing about the state.

use super::cutting::Finding;
use crate::cluster::client::Client;
use crate::cluster::server::{DATABASE, Server};
use crate::cluster::spec::ServerSpec;
use crate::error::{Error, Kind, Result};
use crate::host::command::Command;
use crate::host::signals::Interrupt;
use crate::host::{Host, files, threads};
use crate::recorder::Seq;
use std::time::Duration;

/// Longest time for a check of all indexes: milliseconds here, minutes on a busy machine.
const ANSWER: Duration = Duration::from_secs(600);

/// Private memory of a process: on a damaged catalog a session may allocate without end.
const MOST_MEMORY: u64 = 1 << 30;

/// Result of the server and its own checks, and the checks that were left out.
pub type ServerFinding = (Finding, Vec<String>);

/// Starts a server, runs `look`, stops it, and has pg_checksums read every page.
///
/// # Errors
/// If a step did not finish, which says nothing about the state.
pub fn on_server(
    host: &Host,
    spec: &ServerSpec,
    interrupt: &Interrupt,
    look: impl FnOnce(&Server) -> Result<ServerFinding>,
) -> Result<ServerFinding> {
    let host = &host.limiting_memory(MOST_MEMORY);
    let server = match Server::start(host, spec.clone(), interrupt) {
        Ok(server) => server,
        Err(e) => return damage(spec, e),
    };
    let mut left_out = match look(&server) {
        Ok((Finding::Whole, steps)) => steps,
        Ok(checked) => return Ok(checked),
        Err(e) => return damage(spec, e),
    };
    let checksums = server.connect(DATABASE)?.value("SHOW data_checksums")? == "on";
    if let Err(e) = server.stop(host) {
        return damage(spec, e);
    }
    let why = match checksums {
        false => Some("the cluster has none"),
        true if !crate::host::paths::exists(&spec.install.bin.join("pg_checksums")) => Some("no program pg_checksums"),
        true => None,
    };
    if let Some(why) = why {
        left_out.push(format!("checksums: {why}"));
        return Ok((Finding::Whole, left_out));
    }
    let command = Command::new(spec.install.bin.join("pg_checksums")).args(["--check", "-D"]).arg(&spec.data);
    match host.run(&command.user(&spec.user)) {
        Ok(_) => Ok((Finding::Whole, left_out)),
        Err(e) if host.take_command_log().last().and_then(|ran| ran.exit_code).is_some() => Ok(torn(e.to_string())),
        Err(e) => Err(Error::host(e.to_string())),
    }
}

/// Lets a server recover, marks when it accepts clients, and kills it. Returns what its log says if it does not
/// recover.
///
/// # Errors
/// If it did not finish, which says nothing about the state.
pub fn ready(
    host: &Host,
    spec: &ServerSpec,
    interrupt: &Interrupt,
    mark: impl FnOnce() -> Seq,
) -> Result<Result<Seq, Finding>> {
    let server = match Server::start(host, spec.clone(), interrupt) {
        Ok(server) => server,
        Err(e) => return damage(spec, e).map(|(found, _)| Err(found)),
    };
    let ready = mark();
    server.kill_all(host).map(|()| Ok(ready))
}

fn torn(what: String) -> ServerFinding {
    (Finding::Torn(what), Vec::new())
}

/// What the log of a failed server says.
fn damage(spec: &ServerSpec, e: Error) -> Result<ServerFinding> {
    if e.kind() == Kind::Interrupted || e.kind() == Kind::Bug {
        return Err(e);
    }
    let log = files::read(&spec.log).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    if let Some(line) = short_of(&log) {
        return Err(Error::host(format!("the server ended because this machine was short of memory or files: {line}")));
    }
    match ended_by_itself(&log) {
        true => Ok(torn(e.to_string())),
        false => Err(Error::host(format!("the server ended, and its log says no reason: {e}"))),
    }
}

/// The line with which a server gave up for lack of memory or files (errno messages as in glibc).
fn short_of(log: &str) -> Option<&str> {
    const WORDS: [&str; 3] = ["Cannot allocate memory", "Too many open files", "could not resize shared memory"];
    let last = log.lines().rfind(|line| gave_up(line))?;
    WORDS.iter().any(|words| last.contains(words)).then_some(last)
}

/// True if the server gave up; lines about clients that connect too early, or are disconnected by a shutdown, do not
/// say so.
fn gave_up(line: &str) -> bool {
    let has = |words: [&str; 2]| words.iter().any(|words| line.contains(words));
    has(["FATAL:", "PANIC:"]) && !has(["the database system is ", "terminating connection"])
}

/// True if a query's error says that the server was shut down, or short of resources (classes 57 and 53 of PostgreSQL's
/// errcodes.txt): nothing about the content of the disk.
pub fn is_of_the_machine(error: &Error) -> bool {
    error.kind() != Kind::Tool || ["SQLSTATE 57", "SQLSTATE 53"].iter().any(|class| error.to_string().contains(class))
}

/// True if a log shows that the server gave up, or one of its processes crashed.
fn ended_by_itself(log: &str) -> bool {
    log.lines().any(|line| {
        let crashed = line.contains("was terminated by signal") && !line.contains("was terminated by signal 9");
        crashed || gave_up(line)
    })
}

/// Runs `look`, and amcheck concurrently on its own connections, to use several CPUs. All of it only reads, except that
/// prepared transactions are rolled back; they are in no table that `look` judges. The finding of `look` comes first,
/// unless amcheck brings the server down: then the server's log is judged.
///
/// # Errors
/// If the server cannot be queried.
pub fn beside_amcheck(server: &Server, look: impl FnOnce() -> Result<Finding>) -> Result<ServerFinding> {
    let (found, checked) = at_once(look, || amcheck(server));
    match found? {
        Finding::Whole => checked,
        found => Ok((found, Vec::new())),
    }
}

/// Runs two functions concurrently.
fn at_once<T, U: Send>(one: impl FnOnce() -> T, other: impl FnOnce() -> Result<U> + Send) -> (T, Result<U>) {
    std::thread::scope(|scope| {
        let other = threads::begin(scope, other);
        let one = one();
        let died = Error::bug("the thread of a check died");
        (one, other.and_then(|other| other.join().unwrap_or(Err(died))))
    })
}

/// Checks indexes against their tables, and tables by themselves, with the extension that pg_amcheck uses.
fn amcheck(server: &Server) -> Result<ServerFinding> {
    let mut client = server.connect_with_limit(ANSWER)?;
    let has = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'amcheck'), \
               EXISTS (SELECT FROM pg_proc WHERE proname = 'verify_heapam')";
    let has = client.query(has)?;
    let [has_extension, has_verify_heapam] =
        [0, 1].map(|place| has.first().and_then(|row| row.get(place)?.as_deref()) == Some("t"));
    if !has_extension {
        return Ok((Finding::Whole, vec!["amcheck: the extension is not installed".to_owned()]));
    }
    let (indexes, tables) = at_once(
        || check_indexes(&mut client),
        || if has_verify_heapam { damaged_table(&mut server.connect_with_limit(ANSWER)?) } else { Ok(None) },
    );
    match indexes.and(tables) {
        Ok(None) => Ok((Finding::Whole, Vec::new())),
        Ok(Some(damage)) => Ok(torn(damage)),
        Err(e) if !is_of_the_machine(&e) => Ok(torn(e.to_string())),
        Err(e) => Err(e),
    }
}

/// Damage of an index is an error of the query.
fn check_indexes(client: &mut Client) -> Result<()> {
    // A power cut between PREPARE TRANSACTION and COMMIT PREPARED leaves locks, for which the check would wait forever.
    let in_doubt = "SELECT 'ROLLBACK PREPARED ' || quote_literal(gid) FROM pg_prepared_xacts \
                    WHERE database = current_database()";
    for rollback in client.query(in_doubt)?.iter().flatten().flatten() {
        client.query(rollback)?;
    }
    // Temporary tables of sessions that the cut ended stay in the catalog, and no other session can read them.
    let check = "SELECT bt_index_parent_check(c.oid, true) FROM pg_class c JOIN pg_am a ON a.oid = c.relam \
                 JOIN pg_index i ON i.indexrelid = c.oid WHERE a.amname = 'btree' AND c.relkind = 'i' AND i.indisvalid AND c.relpersistence <> 't'";
    client.query(check).map(drop)
}

fn damaged_table(client: &mut Client) -> Result<Option<String>> {
    let damage = client.query(
        "SELECT c.relname, v.blkno, v.msg FROM pg_class c JOIN pg_am a ON a.oid = c.relam, \
         LATERAL verify_heapam(c.oid) v WHERE a.amname = 'heap' AND c.relkind IN ('r', 't', 'm') \
         AND c.relpersistence <> 't' LIMIT 1",
    )?;
    Ok(damage.first().map(|row| row.iter().flatten().cloned().collect::<Vec<_>>().join(": ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{server, testing};

    #[test]
    fn a_session_over_the_memory_limit_accuses_no_disk() {
        let (host, folder) = (Host::this(), tempfile::tempdir().unwrap());
        let Some(install) = testing::some_installation() else { return };
        let spec = testing::spec_in(install, folder.path());
        server::init(&host, &spec).unwrap();
        let look = |server: &Server| {
            let mut client = server.connect_with_limit(ANSWER)?;
            let take = |mb: u64| format!("select length(repeat('x', {mb}000000) || repeat('y', {mb}000000))");
            assert!(client.query(&take(10)).is_ok());
            let refused = client.query(&take(530)).unwrap_err();
            assert!(refused.to_string().contains("SQLSTATE 53200") && is_of_the_machine(&refused), "{refused}");
            Ok((Finding::Whole, Vec::new()))
        };
        assert!(matches!(on_server(&host, &spec, &Interrupt::never(), look), Ok((Finding::Whole, _))));
    }

    #[test]
    fn a_crashed_server_is_distinguished_from_a_killed_one() {
        for line in [
            "2026-11-22 [7] FATAL:  could not locate a valid checkpoint record at 0/1F2E3D0",
            "[7] PANIC:  could not read block 3",
            "[7] LOG:  server process (PID 9) was terminated by signal 6: Aborted",
            "[7] FATAL:  invalid page in block 3 of relation base/5/16384",
        ] {
            assert!(ended_by_itself(line), "{line}");
        }
        for line in [
            "[7] LOG:  server process (PID 9) was terminated by signal 9: Killed",
            "[8] FATAL:  the database system is starting up",
            "[8] FATAL:  the database system is in recovery mode",
            "[8] FATAL:  terminating connection due to unexpected postmaster exit",
            "[7] LOG:  redo starts at 0/1F2E3D0",
            "",
        ] {
            assert!(!ended_by_itself(line), "{line}");
        }
    }

    #[test]
    fn a_machine_that_is_short_of_memory_is_no_damage() {
        let short = "[7] LOG:  starting\n[7] FATAL:  could not map anonymous shared memory: Cannot allocate memory\n";
        assert!(short_of(short).unwrap().contains("shared memory"));
        assert_eq!(short_of("[7] PANIC:  could not read block 3: Input/output error"), None);
        let damaged = "[7] LOG:  out of file descriptors: Too many open files; release and retry\n\
                       [7] PANIC:  could not locate a valid checkpoint record at 0/1F2E3D0\n";
        assert_eq!(short_of(damaged), None, "that came first and was not what ended it");
        assert!(is_of_the_machine(&Error::tool("out of memory (SQLSTATE 53200)")));
        assert!(is_of_the_machine(&Error::tool("terminating connection (SQLSTATE 57P01)")));
        assert!(!is_of_the_machine(&Error::tool("invalid page in block 3 (SQLSTATE XX001)")));
    }
}

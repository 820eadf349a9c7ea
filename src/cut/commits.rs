//! The clients: real commits beside the recorder, plus operations known to fail on other systems.
//!
//! Each client inserts rows into two indexed tables, with its own hash chain, and marks the recorder's sequence after
//! each acknowledgement. One more session moves files: extension, TRUNCATE, CREATE and DROP, VACUUM, prepared
//! transactions, an unlogged table. Another moves WAL: checkpoints and segment switches. A third polls how far WAL is
//! flushed.

use super::beside::Unrecorded;
use super::history::{Acknowledgement, Flushed, History, PREPARED, Prepared, link};
use super::wal::{self, Lsn, WalReader, WalShape};
use crate::cluster::client::Client;
use crate::cluster::server::Server;
use crate::error::{Error, Result};
use crate::host::signals::Interrupt;
use crate::host::threads;
use crate::host::time::{now, sleep};
use crate::recorder::Recorder;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// Rows per transaction in the first table; the second has one.
pub const ROWS: u64 = 3;

/// Longest wait for an answer of the server: a checkpoint on a slow disk.
const ANSWER: Duration = Duration::from_secs(120);

/// Pause between rounds of the sessions beside the clients, and between commits once time is up.
const PAUSE: Duration = Duration::from_millis(50);

/// Polling interval for the flushed WAL position: an asynchronous commit may wait for several `wal_writer_delay`, 200
/// ms each.
const ASK_FLUSHED_EVERY: Duration = Duration::from_millis(20);

/// Interval between checkpoints; redo and the writes of data then cover one second.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);

/// Fewest checkpoints of a recording that is long enough: after the second, the first WAL segments are gone.
const LEAST_CHECKPOINTS: u32 = 2;

pub struct ClientLoad<'a> {
    pub server: &'a Server,
    pub recorder: &'a Recorder,
    pub clients: u16,
    /// Time at full speed; on a machine too slow for its checkpoints, clients then continue slowly until these are
    /// done.
    pub time: Duration,
    pub asynchronous: Asynchronous,
    /// Runs alongside until told that it is over.
    pub beside: Option<&'a Beside<'a>>,
    pub interrupt: &'a Interrupt,
}

/// A function that runs beside the clients.
pub type Beside<'a> = dyn Fn(&dyn Fn() -> bool) -> Result<(), Unrecorded> + Sync + 'a;

pub struct Committed {
    pub history: History,
    /// Commits in WAL other than the clients'.
    pub others: usize,
}

/// Which of the clients' transactions commit without waiting for WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asynchronous {
    None,
    /// One in [`ASYNCHRONOUS`], by `SET LOCAL`.
    Some,
    /// All, by the server's settings.
    All,
}

/// One transaction in this many commits asynchronously, the same ones in each recording.
const ASYNCHRONOUS: u8 = 8;

/// True if the transaction with this link commits asynchronously.
fn is_asynchronous(link: &str) -> bool {
    u8::from_str_radix(link.get(..2).unwrap_or_default(), 16).unwrap_or_default().is_multiple_of(ASYNCHRONOUS)
}

/// Progress of the sessions, shared among them.
#[derive(Default)]
struct LoadProgress {
    /// Set when one of them fails.
    stop: AtomicBool,
    /// Completed checkpoints.
    checkpoints: AtomicU32,
}

impl LoadProgress {
    fn is_over(&self, load: &ClientLoad<'_>, began: Instant) -> bool {
        let due = LEAST_CHECKPOINTS.min((load.time.as_secs_f64() / CHECKPOINT_EVERY.as_secs_f64()) as u32);
        let complete = began.elapsed() >= load.time && self.checkpoints.load(Ordering::Relaxed) >= due;
        complete || self.is_stopped(load)
    }

    /// True if there is nothing left to wait for.
    fn is_stopped(&self, load: &ClientLoad<'_>) -> bool {
        self.stop.load(Ordering::Relaxed) || load.interrupt.check().is_err()
    }
}

/// Creates the tables before the recording.
///
/// # Errors
/// With the server's own message.
pub fn prepare(server: &Server) -> Result<()> {
    let mut client = connect(server)?;
    client.query(
        "CREATE TABLE pgstrata_rows (client int, number bigint, part int, link text, filler text, \
         PRIMARY KEY (client, number, part)); \
         CREATE TABLE pgstrata_commits (client int, number bigint, link text, PRIMARY KEY (client, number)); \
         CREATE UNLOGGED TABLE pgstrata_unlogged (number bigint PRIMARY KEY); \
         CREATE TABLE pgstrata_prepared (number bigint PRIMARY KEY)",
    )?;
    // If amcheck is available, recovered states are checked with it.
    let known = "SELECT FROM pg_available_extensions WHERE name = 'amcheck'";
    if !client.query(known)?.is_empty() {
        client.query("CREATE EXTENSION amcheck")?;
    }
    client.query("CHECKPOINT").map(drop)
}

pub(super) fn connect(server: &Server) -> Result<Client> {
    server.connect_with_limit(ANSWER)
}

/// Lets all clients commit for a while.
///
/// # Errors
/// The first client's: the server's own message, or a recording that failed. If no client failed, that of the workload
/// beside them; interrupted.
pub fn run(load: &ClientLoad<'_>) -> Result<Committed, Unrecorded> {
    let progress = &LoadProgress::default();
    let shape = shape_of(load.server)?;
    let mut followed = FollowedWal::begin(load.server, shape)?;
    let (following, mut flushed, mut prepared) = (&mut followed, Vec::new(), Vec::new());
    let (noted, preparing) = (&mut flushed, &mut prepared);
    let (outcomes, beside): (Vec<Result<Vec<Acknowledgement>>>, _) = std::thread::scope(|scope| {
        let workload = load.beside.map(|beside| {
            let began = now();
            threads::begin(scope, move || stopping(progress, || beside(&|| progress.is_over(load, began))))
        });
        let mut begun: Vec<_> = (0..load.clients)
            .map(|client| threads::begin(scope, move || stopping(progress, || commit(load, client, progress))))
            .collect();
        begun.extend([
            threads::begin(scope, move || stopping(progress, || move_files(load, progress).map(|()| Vec::new()))),
            threads::begin(scope, move || {
                stopping(progress, || move_wal(load, progress, following, preparing).map(|()| Vec::new()))
            }),
            threads::begin(scope, move || {
                stopping(progress, || note_flushed(load, progress, noted).map(|()| Vec::new()))
            }),
        ]);
        if begun.iter().any(Result::is_err) || workload.as_ref().is_some_and(Result::is_err) {
            progress.stop.store(true, Ordering::Relaxed);
        }
        (begun.into_iter().map(ended).collect(), workload.map_or(Ok(()), ended))
    });
    if let Some(failure) = load.recorder.failure() {
        return Err(Error::host(failure).into());
    }
    let acknowledged = outcomes.into_iter().collect::<Result<Vec<_>>>()?.concat();
    load.interrupt.check()?;
    beside?;
    // A later flushed commit makes sure that asynchronous commits are written as well.
    connect(load.server)?.query("SET synchronous_commit = on; INSERT INTO pgstrata_prepared VALUES (0)")?;
    followed.read_on(&|| load.interrupt.check().is_err())?;
    load.interrupt.check()?;
    let history = History { flushed, prepared, ..History::of(acknowledged) }.with_wal(shape, &followed.ends);
    let seen = history.acknowledged.iter().filter(|one| one.end.is_some()).count();
    Ok(Committed { others: followed.ends.len() - seen, history })
}

/// Waits for a thread, if it could be started.
pub(super) fn ended<T, E: From<Error>>(begun: Result<ScopedJoinHandle<'_, Result<T, E>>>) -> Result<T, E> {
    begun?.join().unwrap_or_else(|_| Err(Error::bug("a client's thread died").into()))
}

/// Runs `work`, and stops the others if it fails.
fn stopping<T, E>(progress: &LoadProgress, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    work().inspect_err(|_| progress.stop.store(true, Ordering::Relaxed))
}

/// Runs one client's transactions.
fn commit(load: &ClientLoad<'_>, client: u16, progress: &LoadProgress) -> Result<Vec<Acknowledgement>> {
    let mut connection = connect(load.server)?;
    let (began, mut acknowledged, mut chain) = (now(), Vec::new(), String::new());
    for number in 1.. {
        // Checked first, so that at least one commit follows the last checkpoint.
        let is_last = progress.is_over(load, began);
        if is_last && number == 1 {
            break;
        }
        chain = link(&chain, client, number);
        let begun = transaction(client, number, &chain);
        let (asynchronous, set) = match load.asynchronous {
            Asynchronous::Some if is_asynchronous(&chain) => (true, "; SET LOCAL synchronous_commit = off"),
            kind => (kind == Asynchronous::All, ""),
        };
        // The id as WAL has it, without its epoch.
        let xid = connection.number::<u64>(&format!("{begun}{set}; SELECT txid_current()"))? as u32;
        let started = load.recorder.mark();
        connection.query("COMMIT")?;
        let mark = load.recorder.mark();
        let at_us = load.recorder.elapsed_us();
        acknowledged.push(Acknowledgement { client, number, started, mark, at_us, xid, end: None, asynchronous });
        if is_last {
            break;
        }
        // Only a checkpoint is left to wait for: at full speed its disk could fill up meanwhile.
        if began.elapsed() >= load.time {
            sleep(PAUSE);
        }
    }
    Ok(acknowledged)
}

/// A client's transaction up to its COMMIT.
pub fn transaction(client: u16, number: u64, chain: &str) -> String {
    let rows: Vec<String> =
        (0..ROWS).map(|part| format!("({client}, {number}, {part}, '{chain}', repeat('{chain}', 4))")).collect();
    format!(
        "BEGIN; INSERT INTO pgstrata_rows VALUES {}; INSERT INTO pgstrata_commits VALUES ({client}, {number}, '{chain}')",
        rows.join(", ")
    )
}

/// Ends of commit records, read while WAL is being written, because a checkpoint removes it.
struct FollowedWal {
    reader: WalReader,
    ends: BTreeMap<u32, Lsn>,
}

impl FollowedWal {
    /// Starts at the current position.
    fn begin(server: &Server, shape: WalShape) -> Result<FollowedWal> {
        let at = connect(server)?.value("SELECT pg_current_wal_insert_lsn()")?;
        let data = &server.spec.data;
        let timeline = wal::checkpoint(data)?.map_or(1, |checkpoint| checkpoint.timeline);
        let reader = WalReader::new(&data.join("pg_wal"), shape, timeline, wal::parse_lsn(&at)?);
        Ok(FollowedWal { reader, ends: BTreeMap::new() })
    }

    /// Reads what has been written, until `left` says otherwise: a slow reader may follow fast clients for as long as
    /// they write.
    fn read_on(&mut self, left: &dyn Fn() -> bool) -> Result<()> {
        let FollowedWal { reader, ends } = self;
        reader.read_on(|record| {
            ends.extend(record.commits.map(|xid| (xid, record.end)));
            if left() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    }
}

/// Page and segment size of the server's WAL.
fn shape_of(server: &Server) -> Result<WalShape> {
    let sql = "SELECT setting FROM pg_settings WHERE name IN ('wal_block_size', 'wal_segment_size') ORDER BY name";
    let rows = connect(server)?.query(sql)?;
    let number = |place: usize| rows.get(place)?.first()?.as_deref()?.parse::<u64>().ok();
    let (page, segment) =
        number(0).zip(number(1)).ok_or_else(|| Error::tool("the server did not tell its WAL's sizes"))?;
    if !page.is_power_of_two() || !segment.is_power_of_two() || !(512..segment).contains(&page) {
        return Err(Error::tool(format!("WAL of pages of {page} and segments of {segment} bytes is not known")));
    }
    Ok(WalShape { segment_bytes: segment, page_bytes: page })
}

/// Runs operations that move files, in rounds.
fn move_files(load: &ClientLoad<'_>, progress: &LoadProgress) -> Result<()> {
    let mut connection = connect(load.server)?;
    let began = now();
    let mut vacuums = 0;
    for round in 1_u32.. {
        // After its time only a checkpoint is left to wait for, before which all WAL is read.
        if began.elapsed() >= load.time || progress.is_stopped(load) {
            break;
        }
        connection.query(
            "CREATE TABLE pgstrata_scratch AS SELECT n, repeat('x', 100) AS filler FROM generate_series(1, 500) n; \
             CREATE INDEX ON pgstrata_scratch (n)",
        )?;
        connection.query("TRUNCATE pgstrata_scratch")?;
        connection.query("DROP TABLE pgstrata_scratch")?;
        connection.query(&format!("INSERT INTO pgstrata_unlogged VALUES ({round})"))?;
        connection.query(&format!(
            "BEGIN; INSERT INTO pgstrata_prepared VALUES ({round}); PREPARE TRANSACTION 'pgstrata-{round}'"
        ))?;
        connection.query(&format!("COMMIT PREPARED 'pgstrata-{round}'"))?;
        if began.elapsed() >= CHECKPOINT_EVERY * (vacuums + 1) {
            vacuums += 1;
            connection.query("VACUUM pgstrata_rows")?;
        }
        sleep(PAUSE);
    }
    Ok(())
}

/// Records how far the server says WAL is flushed, if commits may wait for that.
fn note_flushed(load: &ClientLoad<'_>, progress: &LoadProgress, noted: &mut Vec<Flushed>) -> Result<()> {
    if load.asynchronous == Asynchronous::None {
        return Ok(());
    }
    let mut connection = connect(load.server)?;
    let began = now();
    while !progress.is_over(load, began) {
        let up_to = wal::parse_lsn(&connection.value("SELECT pg_current_wal_flush_lsn()")?)?;
        let (mark, at_us) = (load.recorder.mark(), load.recorder.elapsed_us());
        if noted.last().is_none_or(|last| last.up_to < up_to) {
            noted.push(Flushed { mark, at_us, up_to });
        }
        sleep(ASK_FLUSHED_EVERY);
    }
    Ok(())
}

/// Runs checkpoints at their times, however long the rest takes. WAL is read before a checkpoint removes it.
fn move_wal(
    load: &ClientLoad<'_>,
    progress: &LoadProgress,
    followed: &mut FollowedWal,
    prepared: &mut Vec<Prepared>,
) -> Result<()> {
    let mut connection = connect(load.server)?;
    let began = now();
    let mut checkpoints = 0;
    let left = || progress.is_stopped(load);
    while !progress.is_over(load, began) {
        followed.read_on(&left)?;
        if began.elapsed() >= CHECKPOINT_EVERY * (checkpoints + 1) {
            checkpoints += 1;
            // From the second on: a finished segment is removed or recycled at the next checkpoint.
            if checkpoints.is_multiple_of(2) {
                connection.query("SELECT pg_switch_wal()")?;
                followed.read_on(&left)?;
            }
            if left() {
                break;
            }
            // It stays prepared until the next one: a checkpoint moves it from WAL to a file.
            if let Some(last) = prepared.last_mut() {
                connection.query(&format!("COMMIT PREPARED '{PREPARED}{}'", last.number))?;
                last.committed = Some(load.recorder.mark());
            }
            connection.query(&format!(
                "BEGIN; INSERT INTO pgstrata_prepared VALUES (-{checkpoints}); PREPARE TRANSACTION '{PREPARED}{checkpoints}'"
            ))?;
            let mark = load.recorder.mark();
            connection.query("CHECKPOINT")?;
            prepared.push(Prepared { number: checkpoints, mark, checkpoint: load.recorder.mark(), committed: None });
            progress.checkpoints.store(checkpoints, Ordering::Relaxed);
        }
        sleep(PAUSE);
    }
    Ok(())
}

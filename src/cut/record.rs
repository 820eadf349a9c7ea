//! One recording: a case's stack on recorded disks, a server on it, and the clients' commits.

use super::commits::{self, Load};
use super::disks::Disks;
use super::history::History;
use super::session::Session;
use crate::cluster::install;
use crate::cluster::server::{self, Server, ServerSpec};
use crate::error::{Context, Error, Result};
use crate::host::{files, folders};
use crate::provision::Site;
use crate::provision::stack::{self, BuiltStack};
use crate::record::case::{CaseSpec, PostgresSpec};
use crate::record::stack::{End, GroundName, StackSpec};
use crate::recorder::{Recorder, Recording, Seq, create_base, name_of};
use crate::run::undo;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The layer whose image is recorded.
pub const RECORDED: &str = "loop";

/// Bytes that a log may take on its disk.
const MOST_LOG: u64 = 8 << 30;

/// Sessions beyond the clients': prepared transactions of the one that moves files.
const MOST_PREPARED: (&str, &str) = ("max_prepared_transactions", "4");

/// A recorded case.
#[derive(Clone)]
pub struct Recorded {
    pub recording: Recording,
    pub history: History,
    /// When the server had stopped and its filesystems were synced. Later requests belong to the tear-down.
    pub stopped: Seq,
    /// Node of each disk, by the disk's number.
    pub nodes: Vec<String>,
    /// Base file of each disk.
    pub bases: Vec<PathBuf>,
    pub log: PathBuf,
    /// Disks below `pg_wal`.
    pub wal_disks: Vec<u16>,
    /// Microseconds by which an asynchronous commit may lag; `None` where commits are synchronous.
    pub async_window_us: Option<u64>,
}

/// The disks of a stack that can be recorded: nodes and sizes.
#[must_use]
pub fn disks_of(stack: &StackSpec) -> Vec<(String, u64)> {
    let nodes = stack.nodes.iter().filter(|node| node.layer == RECORDED);
    nodes.filter_map(|node| Some((node.name.clone(), node.options.size("loop")?.0))).collect()
}

/// Layers at the bottom of a stack that are not recorded.
#[must_use]
pub fn not_recorded(stack: &StackSpec) -> Vec<&str> {
    let bottom = stack.nodes.iter().filter(|node| node.inputs.is_empty() && node.layer != RECORDED);
    let layers: BTreeSet<&str> = bottom.map(|node| node.layer.as_str()).collect();
    layers.into_iter().collect()
}

/// Nodes below a ground.
fn below<'s>(stack: &'s StackSpec, ground: &'s GroundName) -> BTreeSet<&'s str> {
    let mut found = BTreeSet::from([ground.node()]);
    for node in stack.nodes.iter().rev().filter(|node| node.name == ground.node()) {
        found.extend(node.inputs.iter().flat_map(|input| below(stack, &input.from)));
    }
    found
}

/// The number of each disk below `pg_wal`.
fn wal_disks(stack: &StackSpec, disks: &[(String, u64)]) -> Vec<u16> {
    let below = below(stack, stack.wal.as_ref().unwrap_or(&stack.data));
    let numbered = disks.iter().zip(0..).filter(|((node, _), _)| below.contains(node.as_str()));
    numbered.map(|(_, number)| number).collect()
}

/// Records a case. Whatever is built is in the session's ledger from `mark` on, and is undone by the caller.
///
/// # Errors
/// What failed, with the tool's own words; a log that is full; interrupted.
pub fn record(session: &Session<'_>, case: &CaseSpec, exports: &dyn Disks, work: &Path) -> Result<Recorded> {
    let disks = disks_of(&case.stack);
    let bases: Vec<PathBuf> = disks.iter().map(|(node, _)| work.join(format!("base-{node}.img"))).collect();
    let files = bases.iter().zip(&disks).map(|(path, (_, size))| Ok((create_base(path, *size)?, *size)));
    let recorder = Arc::new(Recorder::filling(files.collect::<Result<_>>()?));
    let mark = session.ledger.mark();
    let log = work.join("log");
    let shown = disks
        .iter()
        .zip(0..)
        .map(|((node, _), number)| Ok((node.clone(), exports.show(session, &name_of(node), &recorder, number)?)));
    let images: Result<BTreeMap<String, PathBuf>> = shown.collect();
    let done = images.and_then(|images| on_disks(session, case, &images, &recorder, &log));
    // A recorder that fails makes everything above it fail: its reason is the one that counts.
    let undone = undo::undo(&session.ledger, mark, &session.host);
    for (node, _) in &disks {
        exports.hide(&name_of(node));
    }
    if let Some(failure) = recorder.failure() {
        return Err(Error::host(failure));
    }
    let Done { history, async_window_us, stopped } = done?;
    undone?;
    let recording = recorder.finish()?;
    let wal_disks = wal_disks(&case.stack, &disks);
    let nodes = disks.into_iter().map(|(node, _)| node).collect();
    Ok(Recorded { recording, history, stopped, nodes, bases, log, wal_disks, async_window_us })
}

/// What the clients did on a stack that still stands.
struct Done {
    history: History,
    async_window_us: Option<u64>,
    stopped: Seq,
}

fn on_disks(
    session: &Session<'_>,
    case: &CaseSpec,
    images: &BTreeMap<String, PathBuf>,
    recorder: &Arc<Recorder>,
    log: &Path,
) -> Result<Done> {
    let name = format!("pgstrata-{}.{}", session.id, case.stack.name);
    let site = site(session, name, images);
    let stack = stack::build_stack(&site, &case.stack)?;
    for folder in folders_of(&stack) {
        files::make_folder(&folder, 0o700)?;
        files::give_to(&folder, &session.user)?;
    }
    let spec = server_spec(session, postgres_of(case)?, &stack, log.with_file_name("server.log"))?;
    session.ledger.enter(undo::server_thing(&spec)?)?;
    server::init(
        &session.host,
        &ServerSpec { initdb: [spec.initdb.clone(), vec!["--no-sync".into()]].concat(), ..spec.clone() },
    )?;
    let server = Server::start(&session.host, spec, session.interrupt)?;
    make_tablespaces(&server, &stack)?;
    commits::prepare(&server)?;
    let async_window_us = async_window_us(&server)?;
    // What is there now is the base, and counts as durable.
    sync(&stack)?;
    recorder.begin(log, MOST_LOG)?;
    let (clients, time) = (session.cutting.clients, session.cutting.time);
    let load = Load { server: &server, recorder, clients, time, interrupt: session.interrupt };
    let history = commits::run(&load)?;
    server.stop(&session.host)?;
    sync(&stack)?;
    Ok(Done { history, async_window_us, stopped: recorder.mark() })
}

fn sync(stack: &BuiltStack) -> Result<()> {
    for folder in folders_of(stack) {
        folders::sync_filesystem(&folder).or_host(|| format!("sync {}", folder.display()))?;
    }
    Ok(())
}

/// Where a stack is built.
pub fn site<'s>(session: &'s Session<'_>, name: String, images: &'s BTreeMap<String, PathBuf>) -> Site<'s> {
    Site {
        host: &session.host,
        ledger: &session.ledger,
        name,
        folder: session.folder.clone(),
        images,
        image: None,
        interrupt: session.interrupt,
    }
}

pub fn postgres_of(case: &CaseSpec) -> Result<&PostgresSpec> {
    case.postgres.as_ref().ok_or_else(|| Error::bug("a case without a server cannot be cut"))
}

/// The folders of pgstrata's own on a stack, one for each of its ends.
fn folders_of(stack: &BuiltStack) -> Vec<PathBuf> {
    stack.folders.iter().map(|(end, folder)| folder_of(end, folder)).collect()
}

fn folder_of(end: &End, folder: &Path) -> PathBuf {
    folder.join(match end {
        End::Data => "pgstrata-data".to_owned(),
        End::Wal => "pgstrata-wal".to_owned(),
        End::Tablespace(name) => format!("pgstrata-{name}"),
    })
}

/// The data folder of a server on a stack.
pub fn data_folder(stack: &BuiltStack) -> PathBuf {
    folder_of(&End::Data, stack.folder()).join("cluster")
}

/// The folder of its WAL.
pub fn wal_folder(stack: &BuiltStack) -> PathBuf {
    separate_wal(stack).unwrap_or_else(|| data_folder(stack).join("pg_wal"))
}

fn separate_wal(stack: &BuiltStack) -> Option<PathBuf> {
    stack.folders.get(&End::Wal).map(|folder| folder_of(&End::Wal, folder).join("pg_wal"))
}

/// A server on a stack, new or opened again.
///
/// # Errors
/// When there is no PostgreSQL, or the socket's folder cannot be made.
pub fn server_spec(
    session: &Session<'_>,
    postgres: &PostgresSpec,
    stack: &BuiltStack,
    log: PathBuf,
) -> Result<ServerSpec> {
    let sockets = session.folder.join("pgstrata-socket");
    let mut settings = postgres.settings.clone();
    settings.entry(MOST_PREPARED.0.to_owned()).or_insert_with(|| MOST_PREPARED.1.to_owned());
    Ok(ServerSpec {
        install: install::find(&session.host, &postgres.bin)?,
        user: session.user.clone(),
        data: data_folder(stack),
        wal: separate_wal(stack),
        socket_folder: undo::make_folder_for(&session.ledger, &sockets, &session.user)?,
        log,
        settings,
        initdb: postgres.initdb.clone(),
    })
}

/// Makes the tablespaces of the stack; the clients' first table moves to one of them.
fn make_tablespaces(server: &Server, stack: &BuiltStack) -> Result<()> {
    let mut client = server.connect(server::DATABASE)?;
    for (end, folder) in &stack.folders {
        let End::Tablespace(name) = end else { continue };
        client.query(&server::create_tablespace(name, &folder_of(end, folder))?)?;
        client.query(&format!("SET default_tablespace = '{}'", name.replace('\'', "''")))?;
        client.query(&format!(
            "ALTER DATABASE {} SET default_tablespace = '{}'",
            server::DATABASE,
            name.replace('\'', "''")
        ))?;
    }
    Ok(())
}

/// Three times `wal_writer_delay`, where commits are asynchronous (PostgreSQL, "Asynchronous Commit").
fn async_window_us(server: &Server) -> Result<Option<u64>> {
    let rows = server.connect(server::DATABASE)?.query(
        "SELECT current_setting('synchronous_commit'), setting FROM pg_settings WHERE name = 'wal_writer_delay'",
    )?;
    let cell = |at: usize| rows.first().and_then(|row| row.get(at).cloned().flatten()).unwrap_or_default();
    let delay_ms: u64 = cell(1).parse().map_err(|_| Error::tool("the server did not tell its wal_writer_delay"))?;
    Ok((cell(0) == "off").then_some(delay_ms * 3 * 1000))
}

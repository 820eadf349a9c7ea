//! One recording: a case's stack on recorded disks, a server on it, and the clients' commits.

use super::beside::{Beside, Unrecorded};
use super::commits::{self, Asynchronous, ClientLoad, Committed};
use super::disks::Disks;
use super::history::History;
use super::opening::Folders;
use super::session::{CutSession, site};
use crate::cluster::install;
use crate::cluster::server::{self, Server};
use crate::cluster::spec::ServerSpec;
use crate::error::{Context, Error, Result};
use crate::host::{files, folders};
use crate::provision::stack::{self, BuiltStack};
use crate::provision::{guest_disk, knobs};
use crate::record::case::{CaseSpec, PostgresSpec};
use crate::record::options::Options;
use crate::record::stack::{End, StackSpec};
use crate::record::verdict::RanBeside;
use crate::recorder::{Recorder, Recording, Seq, create_origin, name_of};
use crate::run::undo;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The layer whose image is recorded.
pub const RECORDED: &str = "loop";

/// Bytes that a log may take on its disk.
const MOST_LOG: u64 = 8 << 30;

/// Setting for the session that moves files, which prepares transactions.
const MOST_PREPARED: (&str, &str) = ("max_prepared_transactions", "4");

#[derive(Clone)]
pub struct Recorded {
    pub recording: Recording,
    pub clients: ClientsWork,
    /// Node of each disk, by disk number.
    pub nodes: Vec<String>,
    pub origins: Vec<PathBuf>,
    pub log: PathBuf,
    pub wal_disks: Vec<u16>,
}

/// The case with an image of the same size in place of each disk of a guest.
pub fn on_images(case: &CaseSpec) -> CaseSpec {
    let mut case = case.clone();
    for node in case.stack.nodes.iter_mut().filter(|node| node.layer == guest_disk::NAME) {
        let mut options = Options::default();
        for (from, to) in [(guest_disk::NAME, RECORDED), (knobs::QUEUE.key, knobs::QUEUE.key)] {
            node.options.get(from).into_iter().for_each(|value| options.set(to, value.clone()));
        }
        (node.layer, node.options) = (RECORDED.to_owned(), options);
    }
    case
}

/// Disks of a stack that can be recorded: nodes and sizes.
pub fn disks_of(stack: &StackSpec) -> Vec<(String, u64)> {
    let nodes = stack.nodes.iter().filter(|node| node.layer == RECORDED);
    nodes.filter_map(|node| Some((node.name.clone(), node.options.size("loop")?.0))).collect()
}

/// Layers at the bottom of a stack that are not recorded.
pub fn not_recorded(stack: &StackSpec) -> Vec<&str> {
    let bottom = stack.nodes.iter().filter(|node| node.inputs.is_empty() && node.layer != RECORDED);
    let layers: BTreeSet<&str> = bottom.map(|node| node.layer.as_str()).collect();
    layers.into_iter().collect()
}

/// Numbers of the disks below `pg_wal`.
fn wal_disks(stack: &StackSpec, disks: &[(String, u64)]) -> Vec<u16> {
    let below = stack.below(stack.wal.as_ref().unwrap_or(&stack.data));
    disks.iter().zip(0..).filter(|((node, _), _)| below.contains(node.as_str())).map(|(_, number)| number).collect()
}

/// Records a case. Everything built is in the session's ledger from `mark` on; the caller undoes it.
///
/// # Errors
/// The tool's own message; a full log; interrupted.
pub fn record(
    session: &CutSession<'_>,
    case: &CaseSpec,
    exports: &dyn Disks,
    work: &Path,
) -> Result<Recorded, Unrecorded> {
    let disks = disks_of(&case.stack);
    let origins: Vec<PathBuf> = disks.iter().map(|(node, _)| work.join(format!("origin-{node}.img"))).collect();
    let files = origins.iter().zip(&disks).map(|(path, (_, size))| Ok((create_origin(path, *size)?, *size)));
    let recorder = Arc::new(Recorder::filling(files.collect::<Result<_>>()?));
    let mark = session.ledger.mark();
    let log = work.join("log");
    let numbered = disks.iter().zip(0..);
    let shown = numbered
        .map(|((node, _), number)| Ok((node.clone(), exports.show(session, &name_of(node), &recorder, number)?)));
    let images: Result<BTreeMap<String, PathBuf>> = shown.collect();
    let done = images.map_err(Unrecorded::from).and_then(|images| on_disks(session, case, &images, &recorder, &log));
    // A failing recorder makes everything above it fail: its reason is the one that counts.
    let undone = undo::undo(&session.ledger, mark, &session.host);
    for (node, _) in &disks {
        exports.hide(&name_of(node));
    }
    if let Some(failure) = recorder.failure() {
        return Err(Error::host(failure).into());
    }
    let clients = done?;
    undone?;
    let recording = recorder.finish()?;
    let wal_disks = wal_disks(&case.stack, &disks);
    let nodes = disks.into_iter().map(|(node, _)| node).collect();
    Ok(Recorded { recording, clients, nodes, origins, log, wal_disks })
}

/// The clients' work on a stack that is still up.
#[derive(Clone)]
pub struct ClientsWork {
    pub history: History,
    /// True if the server's own setting makes commits asynchronous.
    pub asynchronous: bool,
    /// True if the server has `full_page_writes`, which repair torn pages.
    pub mends_pages: bool,
    pub beside: Option<RanBeside>,
    /// When the server had stopped and its filesystems were synced. Later requests belong to the tear-down.
    pub stopped: Seq,
}

fn on_disks(
    session: &CutSession<'_>,
    case: &CaseSpec,
    images: &BTreeMap<String, PathBuf>,
    recorder: &Arc<Recorder>,
    log: &Path,
) -> Result<ClientsWork, Unrecorded> {
    let name = format!("pgstrata-{}.{}", session.id, case.stack.name);
    let site = site(session, name, images);
    let stack = stack::build_stack(&site, &case.stack)?;
    for folder in folders_of(&stack.folders) {
        files::make_folder(&folder, 0o700)?;
        files::give_to(&folder, &session.user)?;
    }
    let folders = server_folders(&stack.folders);
    let mut spec = server_spec(session, postgres_of(case)?, folders, log.with_file_name(RECORDED_LOG))?;
    let beside = Beside::of(session, case, log.parent().unwrap_or(&session.work))?;
    spec.settings.extend(beside.iter().flat_map(Beside::server_settings));
    session.ledger.enter(undo::server_thing(&spec)?)?;
    let initdb = [spec.initdb.clone(), vec!["--no-sync".into()]].concat();
    server::init(&session.host, &ServerSpec { initdb, ..spec.clone() })?;
    let server = Server::start(&session.host, spec, session.interrupt)?;
    make_tablespaces(&server, &stack)?;
    // Before the clients' tables: a workload moves everything in the data directory to its own tablespaces.
    if let Some(beside) = &beside {
        beside.prepare(&server)?;
    }
    use_tablespaces(&server, &stack)?;
    commits::prepare(&server)?;
    let asynchronous = is_off(&server, "synchronous_commit")?;
    let mends_pages = !is_off(&server, "full_page_writes")?;
    // The current content is the origin, and counts as durable.
    sync(&stack)?;
    recorder.begin(log, MOST_LOG)?;
    let (clients, time) = (session.cutting.clients, session.cutting.time);
    let share = match (asynchronous, session.cutting.asynchronous_share) {
        (true, _) => Asynchronous::All,
        (false, true) => Asynchronous::Some,
        (false, false) => Asynchronous::None,
    };
    let (workload, interrupt) = (case.workload.name.clone(), session.interrupt);
    let run = beside.as_ref().map(|beside| |is_over: &dyn Fn() -> bool| beside.run(&server, is_over));
    let beside = run.as_ref().map(|run| run as &commits::Beside<'_>);
    let load = ClientLoad { server: &server, recorder, clients, time, asynchronous: share, beside, interrupt };
    let Committed { history, others } = commits::run(&load)?;
    let beside = beside.map(|_| RanBeside { workload, commits: others });
    server.stop(&session.host)?;
    sync(&stack)?;
    Ok(ClientsWork { history, asynchronous, mends_pages, beside, stopped: recorder.mark() })
}

fn sync(stack: &BuiltStack) -> Result<()> {
    for folder in folders_of(&stack.folders) {
        folders::sync_filesystem(&folder).or_host(|| format!("sync {}", folder.display()))?;
    }
    Ok(())
}

pub fn postgres_of(case: &CaseSpec) -> Result<&PostgresSpec> {
    case.postgres.as_ref().ok_or_else(|| Error::bug("a case without a server cannot be cut"))
}

/// pgstrata's own folders on a stack, one for each of its ends.
fn folders_of(folders: &Folders) -> Vec<PathBuf> {
    folders.iter().map(|(end, folder)| folder_of(end, folder)).collect()
}

/// pgstrata's own folder for an end on the stack.
pub fn folder_of(end: &End, folder: &Path) -> PathBuf {
    folder.join(match end {
        End::Data => "pgstrata-data".to_owned(),
        End::Wal => "pgstrata-wal".to_owned(),
        End::Tablespace(name) => format!("pgstrata-{name}"),
    })
}

/// The folders of data and of WAL, if separate, of a server on a stack.
pub fn server_folders(folders: &Folders) -> (PathBuf, Option<PathBuf>) {
    // No stack is built without data.
    let data = folder_of(&End::Data, &folders[&End::Data]).join("cluster");
    (data, folders.get(&End::Wal).map(|folder| folder_of(&End::Wal, folder).join("pg_wal")))
}

/// A server with these folders of data and WAL, new or reopened.
///
/// # Errors
/// If there is no PostgreSQL, or the socket's folder cannot be created.
pub fn server_spec(
    session: &CutSession<'_>,
    postgres: &PostgresSpec,
    (data, wal): (PathBuf, Option<PathBuf>),
    log: PathBuf,
) -> Result<ServerSpec> {
    let sockets = session.folder.join("pgstrata-socket");
    let mut settings = postgres.settings.clone();
    settings.entry(MOST_PREPARED.0.to_owned()).or_insert_with(|| MOST_PREPARED.1.to_owned());
    Ok(ServerSpec {
        install: install::find(&session.host, &postgres.bin)?,
        user: session.user.clone(),
        data,
        wal,
        socket_folder: undo::make_folder_for(&session.ledger, &sockets, &session.user)?,
        log,
        settings,
        initdb: postgres.initdb.clone(),
    })
}

fn make_tablespaces(server: &Server, stack: &BuiltStack) -> Result<()> {
    let mut client = server.connect(server::DATABASE)?;
    for (end, folder) in &stack.folders {
        let End::Tablespace(name) = end else { continue };
        client.query(&server::create_tablespace(name, &folder_of(end, folder))?)?;
    }
    Ok(())
}

/// Puts new objects into one of the tablespaces.
fn use_tablespaces(server: &Server, stack: &BuiltStack) -> Result<()> {
    let mut client = server.connect(server::DATABASE)?;
    for end in stack.folders.keys() {
        let End::Tablespace(name) = end else { continue };
        let name = name.replace('\'', "''");
        client.query(&format!("ALTER DATABASE {} SET default_tablespace = '{name}'", server::DATABASE))?;
    }
    Ok(())
}

fn is_off(server: &Server, name: &str) -> Result<bool> {
    Ok(server.connect(server::DATABASE)?.value(&format!("SHOW {name}"))? == "off")
}

/// Log of the server that clients were committing to.
pub const RECORDED_LOG: &str = "recorded-server.log";

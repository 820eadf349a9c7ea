//! Data sets made once for a PostgreSQL build and a scale, then copied into each stack as files.
//!
//! Every stack starts from the same bytes, and loading happens once. `docs/adr/0004-template-copy.md` has the savings.

use super::case::workload;
use super::rehearsal;
use super::session::{Session, Template};
use super::undo;
use crate::cluster::install::Installation;
use crate::cluster::server::{self, Server};
use crate::cluster::spec::ServerSpec;
use crate::error::{Context, Result};
use crate::host::signals::Interrupt;
use crate::host::time::now;
use crate::host::{files, folders};
use crate::provision::images;
use crate::record::case::CaseSpec;
use crate::record::operation::CacheState;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Settings for loading a template: it need not survive a power cut, and should leave little WAL to copy.
const LOAD_SETTINGS: [(&str, &str); 7] = [
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("synchronous_commit", "off"),
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("autovacuum", "off"),
    ("maintenance_work_mem", "256MB"),
];

fn load_settings(initdb: &[String]) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::from(LOAD_SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned())));
    // A server needs at least two segments; initdb's default assumes the default segment size.
    if !initdb.iter().any(|arg| arg.starts_with("--wal-segsize")) {
        settings.insert("min_wal_size".to_owned(), "32MB".to_owned());
    }
    settings
}

/// The template for a case; made if this case is the first to need it.
///
/// # Errors
/// With the tools' own message; a full disk is reported as such.
pub fn template(session: &mut Session<'_>, case: &CaseSpec, install: &Installation, raw: &Path) -> Result<Template> {
    let set = workload(&case.workload.kind)?.data_set(&case.workload.options, session.memory_of(case));
    let name = set.map_or_else(|| "empty".to_owned(), |set| set.key);
    let initdb: Vec<String> = case.postgres.iter().flat_map(|postgres| &postgres.initdb).cloned().collect();
    let key = format!("{} {} {name}", install.bin.display(), initdb.join(" "));
    if let Some(template) = session.templates.made.get(&key) {
        return Ok(template.clone());
    }
    let folder = templates_folder(session)?;
    let mark = session.ledger.mark();
    let data = folder.join(session.ledger.mark().to_string());
    let sockets = session.folder.join("pgstrata-template");
    let spec = ServerSpec {
        install: install.clone(),
        user: session.user.clone(),
        data: data.clone(),
        wal: None,
        socket_folder: undo::make_folder_for(&session.ledger, &sockets, &session.user)?,
        log: raw.join("template-server.log"),
        settings: load_settings(&initdb),
        initdb,
    };
    let made = make(session, case, spec, raw);
    // The server is stopped by now, or must be; the data folder stays with the templates' folder.
    session.undo_from(mark);
    let template = made.inspect_err(|_| drop(folders::remove_all(&data)))?;
    if session.guest.is_some() {
        // The guest may be killed while later trials still copy it.
        folders::each_file(&data, &mut |path| {
            files::open(path)?.sync_all().or_host(|| format!("sync {}", path.display()))
        })?;
    }
    session.templates.made.insert(key, template.clone());
    Ok(template)
}

/// The folder of all templates of the run, made with the first.
fn templates_folder(session: &mut Session<'_>) -> Result<PathBuf> {
    if let Some(folder) = &session.templates.folder {
        return Ok(folder.clone());
    }
    folders::make_passable(&session.state)?;
    let path = session.state.join(format!("pgstrata-{}-templates", session.record.id));
    let folder = undo::make_folder_for(&session.ledger, &path, &session.user)?;
    session.templates.folder = Some(folder.clone());
    Ok(folder)
}

/// A path beside the templates that does not exist yet, for a cluster that moves from one stack to another.
///
/// # Errors
/// With the path.
pub fn aside(session: &mut Session<'_>) -> Result<PathBuf> {
    Ok(templates_folder(session)?.join("aside"))
}

fn make(session: &Session<'_>, case: &CaseSpec, spec: ServerSpec, raw: &Path) -> Result<Template> {
    let begun = now();
    let data = spec.data.clone();
    session.ledger.enter(undo::server_thing(&spec)?)?;
    rehearse(session, case, &spec, raw)?;
    server::init(&session.host, &spec)?;
    let server = Server::start(&session.host, spec, &session.interrupt)?;
    let options = &case.workload.options;
    workload(&case.workload.kind)?.load(&session.place(&data, Some(&server), raw), options, session.memory_of(case))?;
    let mut client = server.connect(server::DATABASE)?;
    client.query("CHECKPOINT")?;
    let database_bytes = server.database_bytes()?;
    server.stop(&session.host)?;
    Ok(Template { data, seconds: begun.elapsed().as_secs_f64(), database_bytes })
}

/// Data sets up to this size, bytes, are loaded in seconds.
const SOON_LOADED: u64 = 1 << 30;

/// Tries the plan's own SQL on a small cluster where its mistakes would else show only after much was loaded or written.
fn rehearse(session: &Session<'_>, case: &CaseSpec, spec: &ServerSpec, raw: &Path) -> Result<()> {
    let (workload, memory) = (workload(&case.workload.kind)?, session.memory_of(case));
    let is_soon = workload.data_set(&case.workload.options, memory).is_none_or(|set| set.expected.0 <= SOON_LOADED)
        && images::of_stack(&case.stack).is_empty();
    let Some(small) = rehearsal::small(case)?.filter(|_| !is_soon) else { return Ok(()) };
    // What takes too long to be tried may be right.
    rehearsal::rehearse(session.place(&spec.data, None, raw), spec.clone(), case, &small, memory)
        .map(drop)
        .map_err(|e| e.while_doing("try the workload's own SQL on a small cluster"))
}

/// Wording for the record: page cache before the server started.
pub fn described(state: CacheState) -> &'static str {
    match state {
        CacheState::Warm => {
            "warm: each file of the cluster was read once before the server started (as far as memory reaches); \
             shared_buffers empty"
        }
        CacheState::Cold => {
            "cold: the page cache of each file of the cluster was dropped (POSIX_FADV_DONTNEED) before the server \
             started, as far as the filesystem does that (tmpfs and ramfs live in it, ZFS keeps its ARC); shared_buffers \
             empty"
        }
    }
}

/// Brings the page cache of all files at and below `folder` into a state.
///
/// # Errors
/// With the path; interrupted, after the current file.
pub fn set_cache(folder: &Path, state: CacheState, interrupt: &Interrupt) -> Result<()> {
    folders::each_file(folder, &mut |path| {
        interrupt.check()?;
        let mut file = files::open(path)?;
        let set = match state {
            CacheState::Warm => std::io::copy(&mut file, &mut std::io::sink()).map(drop),
            CacheState::Cold => files::drop_cache(&file),
        };
        set.or_host(|| format!("read {}", path.display()))
    })
}

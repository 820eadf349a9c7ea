//! The steps `load`, `start` and `read back`: the cluster on the stack, and its state after the measurement.

use super::Trial;
use super::window::WindowWatch;
use crate::ageing::layout;
use crate::cluster::copy;
use crate::cluster::server::{self, CHECKPOINT_LIMIT, Server};
use crate::cluster::spec::ServerSpec;
use crate::error::{Error, Result};
use crate::host::files;
use crate::host::time::now;
use crate::provision::disk_probe::existing_folder;
use crate::record::case::{CaseSpec, PostgresSpec};
use crate::record::facts::{DataFacts, Fits, ServerFacts};
use crate::record::operation::CacheState;
use crate::record::stack::End;
use crate::record::window::Extent;
use crate::run::session::Session;
use crate::run::{template, undo, window};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Makes the folder for the workload and, if it needs a server, copies the data in.
pub(super) fn load(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    let folder = folder_on(session, trial, &trial.stack()?.folder().join("pgstrata-data"))?;
    trial.folder = Some(folder);
    if trial.case.postgres.is_none() {
        return Ok(());
    }
    let made = trial.template.clone();
    let template = made.ok_or_else(|| Error::bug("data were to be loaded before they were made"))?;
    let spec = server_spec(session, trial, wal_folder(session, trial)?)?;
    let begun = now();
    let bytes = copy::copy(&template.data, &spec, &session.interrupt)?;
    trial.record.data = Some(DataFacts {
        database_bytes: template.database_bytes,
        fits: Fits::Neither,
        cache_state: String::new(),
        origin: format!("{bytes} bytes copied as files from a template made in this run, then synced, then CHECKPOINT"),
        copy_s: Some(begun.elapsed().as_secs_f64()),
        template_s: Some(template.seconds),
    });
    trial.cluster = Some(spec);
    Ok(())
}

/// Part of the memory that WAL may take on a filesystem without a size: one of so many.
const UNLIMITED_PARTS: u64 = 8;

/// Starts the server on the data, which are on the stack by now.
pub(super) fn start(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    let taken = trial.cluster.take();
    let mut spec = taken.ok_or_else(|| Error::bug("a server was to be started before its data were there"))?;
    let folder = trial.folder()?.to_path_buf();
    let tablespaces = tablespace_folders(session, trial)?;
    let cache = trial.record.operation.cache.unwrap_or(CacheState::Warm);
    template::set_cache(&spec.data, cache, &session.interrupt)?;
    let window = trial.workload.window(&trial.case.workload.options);
    let free = room_for_wal(session, trial, spec.wal.as_deref().and_then(Path::parent).unwrap_or(&folder))?;
    let (mut ours, prefill) = match (&trial.case.postgres, window.extent) {
        (Some(postgres), Extent::Cycles { .. }) => (window::settings(postgres, free), window::prefill(postgres, free)),
        (Some(postgres), Extent::Span { .. }) if session.record.turns.contains(&trial.case.id) => {
            (window::settings_of_turns(postgres, free), window::prefill_of_turns(postgres, free))
        }
        _ => (BTreeMap::new(), None),
    };
    ours.extend(trial.workload.server_settings(&trial.case.workload.options));
    spec.settings.extend(ours.clone());
    session.ledger.enter(undo::server_thing(&spec)?)?;
    let server = Server::start(&session.host, spec, &session.interrupt)?;
    let mut watch = WindowWatch::begin(&server, window, ours)?;
    let mut client = server.connect_with_limit(CHECKPOINT_LIMIT)?;
    for (name, folder) in &tablespaces {
        client.query(&server::create_tablespace(name, folder)?)?;
    }
    let raw = trial.staging.raw();
    trial.workload.place_data(&session.place(&folder, Some(&server), &raw), &trial.case.workload.options)?;
    client.query("CHECKPOINT")?;
    if let (Some(age), Some(stack)) = (&mut trial.record.age, &trial.stack) {
        age.layout = Some(layout::look(&server, &|file| stack.pieces(&session.host, file), &session.interrupt)?);
    }
    if let Some(bytes) = prefill {
        watch.prefill(bytes, &session.interrupt).map_err(|e| e.while_doing("fill pg_wal"))?;
    }
    let held = cache_bytes_max(session, trial)?;
    let facts = server.facts()?;
    as_built(trial.case.postgres.as_ref(), &facts)?;
    if let Some(data) = &mut trial.record.data {
        data.fits = fits(data.database_bytes, &facts, held);
        template::described(cache).clone_into(&mut data.cache_state);
    }
    trial.record.server = Some(facts);
    (trial.server, trial.watch) = (Some(server), Some(watch));
    Ok(())
}

/// Bytes free for WAL: those of its filesystem; of an existing one a part, if several clusters stand there; in memory without
/// a limit, a part of it.
fn room_for_wal(session: &Session<'_>, trial: &Trial<'_>, place: &Path) -> Result<u64> {
    let in_folder = |case: &CaseSpec| session.record.turns.contains(&case.id) && existing_folder(&case.stack).is_some();
    let beside = match in_folder(trial.case) {
        true => session.record.cases.iter().filter(|case| in_folder(case)).count() as u64,
        false => 1,
    };
    let unlimited = || session.memory_of(trial.case).total.0 / UNLIMITED_PARTS;
    Ok(files::free_bytes_if_limited(place)?.map_or_else(unlimited, |free| free / beside))
}

/// A server that differs from what the plan had built would measure another case.
fn as_built(postgres: Option<&PostgresSpec>, facts: &ServerFacts) -> Result<()> {
    let differing = postgres.and_then(|postgres| postgres.build.as_ref()).map(|build| build.differences(facts));
    match differing.unwrap_or_default().as_slice() {
        [] => Ok(()),
        differing => Err(Error::tool(format!("the server is not as it was built: {}", differing.join("; ")))
            .hint("remove the build and have it made again: pgstrata postgres list, pgstrata postgres rm KEY")),
    }
}

/// A folder on a stack for the server's user. On a kept stack it is in the ledger too, to be removed before the stack.
pub(super) fn folder_on(session: &Session<'_>, trial: &Trial<'_>, path: &Path) -> Result<PathBuf> {
    if trial.case.stack.reuse {
        return undo::make_folder_for(&session.ledger, path, &session.user);
    }
    files::make_folder(path, 0o700)?;
    files::give_to(path, &session.user)?;
    Ok(path.to_path_buf())
}

/// Folder of `pg_wal` on the current stack, if separate from the data.
pub(super) fn wal_folder(session: &Session<'_>, trial: &Trial<'_>) -> Result<Option<PathBuf>> {
    let wal = trial.stack()?.folders.get(&End::Wal);
    wal.map(|wal| Ok(folder_on(session, trial, &wal.join("pgstrata-wal"))?.join("pg_wal"))).transpose()
}

/// The cluster on the current stack.
pub(super) fn server_spec(session: &Session<'_>, trial: &Trial<'_>, wal: Option<PathBuf>) -> Result<ServerSpec> {
    let (Some(postgres), Some(install)) = (&trial.case.postgres, &trial.install) else {
        return Err(Error::bug("a server was to be started before it was found"));
    };
    Ok(ServerSpec {
        install: install.clone(),
        user: session.user.clone(),
        data: trial.folder()?.join("cluster"),
        wal,
        socket_folder: undo::make_folder_for(
            &session.ledger,
            &session.folder.join(format!("pgstrata-socket{}", session.images.beside.len())),
            &session.user,
        )?,
        log: trial.staging.raw().join("server.log"),
        settings: postgres.settings.clone(),
        initdb: postgres.initdb.clone(),
    })
}

fn tablespace_folders(session: &Session<'_>, trial: &Trial<'_>) -> Result<BTreeMap<String, PathBuf>> {
    let mut folders = BTreeMap::new();
    for (end, folder) in &trial.stack()?.folders {
        if let End::Tablespace(name) = end {
            folders.insert(name.clone(), folder_on(session, trial, &folder.join(format!("pgstrata-{name}")))?);
        }
    }
    Ok(folders)
}

/// Memory that may cache the data files: all of it, or the limit of the filesystem's own cache.
fn cache_bytes_max(session: &Session<'_>, trial: &Trial<'_>) -> Result<u64> {
    let memory = session.memory().0;
    Ok(trial.stack()?.cache_bytes_max(&session.host)?.map_or(memory, |limit| limit.min(memory)))
}

fn fits(bytes: u64, facts: &ServerFacts, memory: u64) -> Fits {
    if bytes <= facts.shared_buffers_bytes {
        Fits::SharedBuffers
    } else if bytes <= memory {
        Fits::Memory
    } else {
        Fits::Neither
    }
}

/// The data have grown: their size at the end counts.
pub(super) fn read_back(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    let Some(server) = &trial.server else { return Ok(()) };
    if let Some(facts) = &mut trial.record.server {
        facts.found_after = server.settings_elsewhere(facts)?;
        facts.unlogged = server.unlogged_tables()?;
    }
    let bytes = server.database_bytes()?;
    let held = cache_bytes_max(session, trial)?;
    if let (Some(data), Some(facts)) = (&mut trial.record.data, &trial.record.server) {
        data.database_bytes = bytes;
        data.fits = fits(bytes, facts, held);
    }
    Ok(())
}

impl Trial<'_> {
    /// Stops the server cleanly after a measurement; after a failure, and on a full stack, undoing the ledger ends it.
    pub(super) fn stop_server(&mut self, session: &Session<'_>) {
        let stops = self.record.counts.is_some() && self.record.full.is_none();
        let Some(server) = self.server.take().filter(|_| stops) else { return };
        if let Err(e) = server.stop(&session.host) {
            let note = format!("after the measurement the server did not stop in good order: {}", e.chain());
            self.record.notes.push(note);
        }
    }
}

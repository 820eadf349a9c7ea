//! The SQL of a plan's own, run once on a small cluster before much is loaded or written.

use super::{case, undo};
use crate::cluster::install;
use crate::cluster::server::{self, Server};
use crate::cluster::spec::ServerSpec;
use crate::error::Result;
use crate::host::processes::cgroup;
use crate::host::signals::Interrupt;
use crate::host::{Host, files, folders, machine, users};
use crate::plan::Plan;
use crate::provision::folder;
use crate::provision::ledger::Ledger;
use crate::record::case::CaseSpec;
use crate::record::options::Options;
use crate::units::Bytes;
use crate::workload::pgbench::Pgbench;
use crate::workload::{MemorySizes, Place};
use std::path::Path;

/// The workload of a case at scale 1, if there is SQL in it that may fail.
///
/// # Errors
/// When there is no such workload.
pub(super) fn small(case: &CaseSpec) -> Result<Option<Options>> {
    let options = &case.workload.options;
    let plain = case::workload(&case.workload.kind)?.as_pgbench(options);
    Ok(Pgbench.rehearsal(plain.as_ref().unwrap_or(options)))
}

/// Makes a cluster in `spec.data`, loads it, runs each script once, and removes it. The caller entered it into a ledger.
///
/// # Errors
/// With the server's or pgbench's own message.
pub(super) fn rehearse(place: Place<'_>, spec: &ServerSpec, small: &Options, memory: MemorySizes) -> Result<()> {
    server::init(place.host, spec)?;
    let server = Server::start(place.host, spec.clone(), place.interrupt)?;
    let host = place.host;
    Pgbench.rehearse(&Place { server: Some(&server), ..place }, small, memory)?;
    server.stop(host)?;
    folders::remove_all(&spec.data)
}

/// Tries all SQL of a plan's own, outside of any guest, and leaves nothing. Servers that are not there are left out.
///
/// # Errors
/// As [`rehearse`], with the workload's name; if something cannot be made in `state` or removed from it.
pub fn rehearse_plan(host: &Host, plan: &Plan, state: &Path, ledgers: &Path, interrupt: &Interrupt) -> Result<()> {
    let mut wanted: Vec<(&CaseSpec, &str, Options)> = Vec::new();
    for case in plan.cases.iter().filter(|case| case.guest.is_none()) {
        let Some((postgres, small)) = case.postgres.as_ref().zip(small(case)?) else { continue };
        if wanted.iter().all(|(_, bin, known)| (*bin, known) != (&*postgres.bin, &small)) {
            wanted.push((case, &postgres.bin, small));
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let id = files::random_id()?;
    let ledger = Ledger::create(ledgers, &id).map_err(|e| e.hint("choose another folder for it with --state DIR"))?;
    let tried = rehearse_all(host, &wanted, state, &ledger, interrupt);
    undo::undo(&ledger, 0, host).and_then(|()| ledger.close()).and(tried)
}

fn rehearse_all(
    host: &Host,
    wanted: &[(&CaseSpec, &str, Options)],
    state: &Path,
    ledger: &Ledger,
    interrupt: &Interrupt,
) -> Result<()> {
    let id = ledger.run_id();
    let group = cgroup::place(host, id);
    let user = users::server_user(host)?;
    ledger.enter(undo::processes_thing(id, group.as_deref())?)?;
    let memory = Bytes(machine::facts(host).memory_bytes);
    let host = &host.for_run(id).keeping_together(group.as_deref()).heeding(interrupt);
    folders::make_passable(state)?;
    let clusters = undo::make_folder_for(ledger, &state.join(format!("{}{id}-scripts", folder::PREFIX)), &user)?;
    let raw = folder::make_for_run(ledger, id)?;
    let socket_folder = undo::make_folder_for(ledger, &raw.join("pgstrata-scripts"), &user)?;
    for (number, (case, bin, small)) in wanted.iter().enumerate() {
        let Ok(install) = install::find(host, bin) else { continue };
        let spec = ServerSpec {
            install,
            user: user.clone(),
            data: clusters.join(format!("{}{number}", folder::PREFIX)),
            wal: None,
            socket_folder: socket_folder.clone(),
            log: raw.join("server.log"),
            settings: [("fsync".to_owned(), "off".to_owned())].into(),
            initdb: case.postgres.iter().flat_map(|postgres| &postgres.initdb).cloned().collect(),
        };
        ledger.enter(undo::server_thing(&spec)?)?;
        let (folder, raw, user) = (&*spec.data, &*raw, &user);
        let place = Place { host, folder, server: None, crash: None, snapshots: None, user, interrupt, raw };
        rehearse(place, &spec, small, case::memory_of(case, memory)).map_err(|e| {
            e.while_doing(format!("try the SQL of the workload `{}` on a small cluster", case.workload.name))
        })?;
    }
    Ok(())
}

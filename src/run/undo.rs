//! Dispatches ledger entries to their owners: the layers, and owners that are not layers.

use crate::cluster;
use crate::cluster::spec::ServerSpec;
use crate::error::{Error, Result};
use crate::host::processes::{self, cgroup, orphans};
use crate::host::time::now;
use crate::host::users::User;
use crate::host::{Host, files};
use crate::provision::folder;
use crate::provision::ledger::{Ledger, Thing};
use crate::provision::undo::{undo_from, undo_own};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Owner of a server: everything whose working folder is the data folder.
const SERVER: &str = "server";
/// Owner of the run's processes: those in its control group or with its id in the environment, and orphans.
const PROCESSES: &str = "processes";

/// The mark of the run's control group.
const GROUP: &str = "cgroup";

/// A process that survives SIGKILL this long hangs in the kernel, in I/O on a dead device.
const KILL_LIMIT: Duration = Duration::from_secs(30);

/// The ledger entry for a server about to be made or started.
///
/// # Errors
/// When a path is not UTF-8.
pub fn server_thing(spec: &ServerSpec) -> Result<Thing> {
    Thing::new(SERVER, "postgres").with_path("data", &spec.data)?.with_path("sockets", &spec.socket_folder)
}

/// True if a thing of the ledger is a server.
pub fn is_server(thing: &Thing) -> bool {
    thing.owner == SERVER
}

/// The ledger entry for all processes that a run will start, in this control group if there is one.
///
/// # Errors
/// When a path is not UTF-8.
pub fn processes_thing(run: &str, group: Option<&Path>) -> Result<Thing> {
    let thing = Thing::new(PROCESSES, "processes").with("run", run);
    group.map_or(Ok(thing.clone()), |group| thing.with_path(GROUP, group))
}

/// Makes a folder accessible to the server's user alone, after entering it into the ledger.
///
/// # Errors
/// With the path.
pub fn make_folder_for(ledger: &Ledger, path: &Path, user: &User) -> Result<PathBuf> {
    folder::make(ledger, folder::OWNER, path)?;
    files::give_to(path, user)?;
    files::set_mode(path, 0o700)?;
    Ok(path.to_path_buf())
}

/// Undoes everything after a mark of the ledger, last made first. Continues after a failure.
///
/// Servers go first, then everything else the run has started: a leftover tool would hold the devices and mounts that
/// the walk removes.
///
/// # Errors
/// All failures in one; failed entries stay in the ledger.
pub fn undo(ledger: &Ledger, mark: u64, host: &Host) -> Result<()> {
    let host = &host.heeding_none();
    let open = ledger.open_things();
    let mut failures = Vec::new();
    for (_, thing) in open.iter().rev().filter(|(number, thing)| *number >= mark && thing.owner == SERVER) {
        failures.extend(undo_server(host, thing).err());
    }
    for (_, thing) in open.iter().filter(|(_, thing)| thing.owner == PROCESSES) {
        let run = thing.mark("run").and_then(|run| match run == ledger.run_id() {
            true => Ok(run),
            false => Err(Error::host(format!("the ledger of run {} lists processes of {run}", ledger.run_id()))),
        });
        failures.extend(run.and_then(|run| end_run(host, run, group_of(thing))).err());
    }
    let undo = |host: &Host, thing: &Thing| match (thing.owner.as_str(), group_of(thing)) {
        (SERVER, _) => undo_server(host, thing),
        (PROCESSES, Some(group)) => cgroup::remove(thing.mark("run")?, group),
        (PROCESSES, None) => Ok(()),
        _ => undo_own(host, thing),
    };
    failures.extend(undo_from(ledger, mark, undo, host));
    match failures.len() {
        0 => Ok(()),
        1 => Err(failures.remove(0)),
        n => {
            let lines: Vec<String> = failures.iter().map(|e| format!("  {e}")).collect();
            Err(Error::host(format!("{n} things could not be undone:\n{}", lines.join("\n"))))
        }
    }
}

fn undo_server(host: &Host, thing: &Thing) -> Result<()> {
    let (data, sockets) = (Path::new(thing.mark("data")?), Path::new(thing.mark("sockets")?));
    if !folder::has_our_name(data) || !folder::has_our_name(sockets) {
        return Err(Error::host(format!("pgstrata runs no server in {}", data.display())));
    }
    cluster::undo::undo_server(host, data, sockets)
}

fn group_of(thing: &Thing) -> Option<&Path> {
    thing.marks.get(GROUP).map(Path::new)
}

/// Ends every process of a run. A process forked during one pass is found by the next.
fn end_run(host: &Host, run: &str, group: Option<&Path>) -> Result<()> {
    if let Some(group) = group {
        cgroup::end(host, run, group, KILL_LIMIT)?;
    }
    let begun = now();
    loop {
        let mut left = processes::of_run(host, run)?;
        left.extend(orphans::adopted(host)?);
        if left.is_empty() {
            orphans::collect(host);
            return Ok(());
        }
        processes::kill(host, &left, KILL_LIMIT)?;
        if begun.elapsed() > KILL_LIMIT {
            let message = format!("processes of the run fork faster than they are killed: {}", left[0].comm);
            return Err(Error::host(message));
        }
    }
}

/// Combines the error of the work and that of undoing it.
///
/// # Errors
/// Either, or both in one.
pub fn both(done: Result<()>, undone: Result<()>) -> Result<()> {
    const CLEAN: &str = "`pgstrata clean` tries again; what is left is in the ledger";
    match (done, undone) {
        (done, Ok(())) => done,
        (Ok(()), Err(left)) => Err(left.hint(CLEAN)),
        (Err(why), Err(left)) => {
            Err(Error::new(why.kind(), format!("{why}\nand not all of it could be undone: {left}")).hint(CLEAN))
        }
    }
}

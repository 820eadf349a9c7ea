//! The SQL of a plan's own, run once on a small cluster before much is loaded or written.

use super::{case, undo};
use crate::cluster::install;
use crate::cluster::server::{self, Server};
use crate::cluster::spec::ServerSpec;
use crate::error::{Error, Result};
use crate::host::processes::cgroup;
use crate::host::signals::Interrupt;
use crate::host::time::now;
use crate::host::{Host, files, folders, machine, users};
use crate::parse::no_space::{self, FULL};
use crate::plan::Plan;
use crate::provision::folder;
use crate::provision::ledger::Ledger;
use crate::record::case::CaseSpec;
use crate::record::options::Options;
use crate::units::Bytes;
use crate::workload::pgbench::Pgbench;
use crate::workload::{MemorySizes, Place};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Settings that would make the small cluster large.
const OF_MEMORY: [&str; 2] = ["shared_buffers", "huge_pages"];

/// Options that make two workloads the same SQL.
const OF_SQL: [&str; 3] = ["script", "setup", "mode"];

/// How long a statement and a script are tried, and what an error says then.
const LONGEST: Duration = Duration::from_secs(20);
const TOO_LONG: [&str; 3] = ["statement timeout", "transaction timeout", "timeout: it runs"];
/// First version with a limit for transactions, which all statements of `setup` are one of.
const LIMITS_TRANSACTIONS: u32 = 17;

/// The workload of a case at scale 1, if there is SQL in it that may fail. Tablespaces exist only on the stack.
///
/// # Errors
/// When there is no such workload.
pub(super) fn small(case: &CaseSpec) -> Result<Option<Options>> {
    let options = &case.workload.options;
    let plain = case::workload(&case.workload.kind)?.as_pgbench(options);
    let small = Pgbench.rehearsal(plain.as_ref().unwrap_or(options));
    Ok(small.filter(|_| case.stack.tablespaces.is_empty()))
}

/// Makes a cluster in `spec.data` with the case's settings instead of those of `spec`, loads it, runs each script once, and
/// removes it. The caller entered it into a ledger. Returns the bytes that its `setup` made; none if all that took too long,
/// and was not done to its end.
///
/// # Errors
/// With the server's or pgbench's own message.
pub(super) fn rehearse(
    place: Place<'_>,
    mut spec: ServerSpec,
    case: &CaseSpec,
    small: &Options,
    memory: MemorySizes,
) -> Result<Option<u64>> {
    let own = case.postgres.iter().flat_map(|postgres| postgres.settings.clone());
    let own = own.filter(|(name, _)| OF_MEMORY.iter().all(|large| !name.eq_ignore_ascii_case(large)));
    let needed = case::workload(&case.workload.kind)?.server_settings(&case.workload.options);
    let limits = ["statement_timeout", "transaction_timeout"];
    let limits = &limits[..1 + usize::from(spec.install.major >= LIMITS_TRANSACTIONS)];
    let limits = limits.iter().map(|name| (*name, format!("{}s", LONGEST.as_secs())));
    let tried = limits.chain([("fsync", "off".to_owned())]).map(|(name, value)| (name.to_owned(), value));
    spec.settings = own.chain(needed).chain(tried).collect();
    let (host, data) = (place.host, spec.data.clone());
    server::init(host, &spec)?;
    let server = Server::start(host, spec, place.interrupt)?;
    let begun = now();
    let tried = Pgbench.rehearse(&Place { server: Some(&server), ..place }, small, memory, LONGEST);
    let is_too_long =
        |e: &Error| begun.elapsed() >= LONGEST && TOO_LONG.iter().any(|words| e.to_string().contains(words));
    let made = if tried.as_ref().is_err_and(is_too_long) { None } else { Some(tried?) };
    server.stop(host)?;
    folders::remove_all(&data)?;
    Ok(made)
}

/// Tries all SQL of a plan's own, outside of any guest, and leaves nothing. Left out are servers that are not there, and
/// with a word: everything, if nothing can be made in `state` or it is full, and statements that take long.
///
/// # Errors
/// As [`rehearse`], with the workload's name; if something cannot be removed.
pub fn rehearse_plan(
    host: &Host,
    plan: &Plan,
    state: &Path,
    ledgers: &Path,
    interrupt: &Interrupt,
    say: &dyn Fn(&str),
) -> Result<()> {
    let mut wanted: Vec<(&CaseSpec, Options)> = Vec::new();
    for case in plan.cases.iter().filter(|case| case.guest.is_none()) {
        let Some(small) = small(case)? else { continue };
        let bin = |case: &CaseSpec| case.postgres.as_ref().map(|postgres| postgres.bin.clone());
        let is_same = |(other, known): &(&CaseSpec, Options)| {
            bin(other) == bin(case) && OF_SQL.iter().all(|key| known.get(key) == small.get(key))
        };
        if !wanted.iter().any(is_same) {
            wanted.push((case, small));
        }
    }
    wanted.retain(|(case, _)| case.postgres.as_ref().is_some_and(|own| install::find(host, &own.bin).is_ok()));
    if wanted.is_empty() {
        return Ok(());
    }
    let id = files::random_id()?;
    let ledger = match Ledger::create(ledgers, &id) {
        Ok(ledger) => ledger,
        Err(e) => {
            say(&format!("the plan's own SQL was not tried on a small cluster, which --state DIR would hold: {e}"));
            return Ok(());
        }
    };
    say("trying the plan's own SQL on a small cluster");
    let tried = rehearse_all(host, &wanted, state, &ledger, (interrupt, say));
    undo::both(tried, undo::undo(&ledger, 0, host).and_then(|()| ledger.close()))
}

fn rehearse_all(
    host: &Host,
    wanted: &[(&CaseSpec, Options)],
    state: &Path,
    ledger: &Ledger,
    (interrupt, say): (&Interrupt, &dyn Fn(&str)),
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
    for (number, (case, small)) in wanted.iter().enumerate() {
        let Some(postgres) = &case.postgres else { continue };
        let Ok(install) = install::find(host, &postgres.bin) else { continue };
        let spec = ServerSpec {
            install,
            user: user.clone(),
            data: clusters.join(format!("{}{number}", folder::PREFIX)),
            wal: None,
            socket_folder: socket_folder.clone(),
            log: raw.join("server.log"),
            settings: BTreeMap::new(),
            initdb: postgres.initdb.clone(),
        };
        ledger.enter(undo::server_thing(&spec)?)?;
        files::remove(&spec.log)?;
        let (folder, log) = (&*spec.data.clone(), spec.log.clone());
        let (raw, user, name) = (&*raw, &user, &case.workload.name);
        let place = Place { host, folder, server: None, crash: None, snapshots: None, user, interrupt, raw };
        let tried = rehearse(place, spec, case, small, case::memory_of(case, memory));
        if let Some(full) = tried.as_ref().err().and_then(|e| lacks_room(e, &log)) {
            let place = state.display();
            say(&format!("the SQL of the workload `{name}` and what follows was not tried: {place} is full: {full}"));
            return Ok(());
        }
        let of = format!("of the workload `{name}`");
        match tried.map_err(|e| e.while_doing(format!("try the SQL {of} on a small cluster")))? {
            Some(made) if made > 0 && small.text("setup").is_some() => {
                say(&format!("`setup` {of} made tables of {} at scale 1, not in the space above", Bytes(made)));
            }
            Some(_) => {}
            None => say(&format!("the SQL {of} was not tried to its end: it took over {} s", LONGEST.as_secs())),
        }
    }
    Ok(())
}

/// The message about a full filesystem behind a failure. A server that cannot write its WAL tells only its log.
fn lacks_room(failed: &Error, log: &Path) -> Option<String> {
    let log = files::read(log).unwrap_or_default();
    let all = format!("{}\n{}", failed.chain(), String::from_utf8_lossy(&log));
    // Memory that servers share may lack room, too.
    let of_disks = all.lines().filter(|line| !line.contains("shared memory")).collect::<Vec<_>>().join("\n");
    no_space::line(&of_disks, FULL).map(str::to_owned)
}

//! The step `age`: ages the stack as the plan asks before it is measured and, for the control, moves the cluster to a
//! fresh filesystem.

use super::{Trial, cluster, stack};
use crate::ageing::{self, AgeingSubject, layout};
use crate::cluster::copy;
use crate::error::{Error, Result};
use crate::host::{folders, paths, reflinks};
use crate::provision::snapshots::StackSnapshots;
use crate::record::age::AgeRecord;
use crate::run::session::Session;
use crate::run::{template, undo};
use std::path::Path;

pub(super) fn age(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    trial.record.age = Some(aged(session, trial, trial.folder()?)?);
    if ageing::is_fresh(&trial.case.age) {
        to_fresh(session, trial)?;
    }
    let pool = trial.stack()?.pool_room(&session.host)?;
    // With a cluster the layout follows once its server has started.
    let without_server = trial.folder.as_ref().filter(|_| trial.cluster.is_none());
    let layout = without_server.map(|folder| layout::of_filesystem(folder)).transpose()?;
    if let Some(age) = &mut trial.record.age {
        (age.pool, age.layout) = (pool, layout);
    }
    Ok(())
}

fn aged(session: &Session<'_>, trial: &Trial<'_>, data: &Path) -> Result<AgeRecord> {
    let folder = data.join("age");
    folders::make_all(&folder, 0o700)?;
    let asked = ageing::asks_for_snapshots(&trial.case.age).map(|_| trial.snapshots(session));
    let snapshots = asked.transpose()?.map(StackSnapshots::for_ageing);
    let there = || snapshots.as_ref().ok_or_else(|| Error::bug("snapshots were to be made where none are asked for"));
    let make = |number| {
        there()?.make(number)?;
        // The server is stopped, so a copy made file by file is consistent.
        let copied = there()?.filled(number).zip(data.file_name());
        copied.map_or(Ok(()), |(into, name)| reflinks::copy(data, &into.join(name), &|_| false))
    };
    // Unless synced first, a pool's own figures lag by a transaction group.
    let used = || match trial.stack()?.pool_room(&session.host)? {
        Some(pool) => Ok(pool.allocated_bytes),
        None => there()?.used(),
    };
    if let Some(cluster) = &trial.cluster {
        session.ledger.enter(undo::server_thing(cluster)?)?;
    }
    let subject = AgeingSubject {
        host: &session.host,
        cluster: trial.cluster.as_ref(),
        folder: &folder,
        snapshots: snapshots.as_ref().map(|all| ageing::AgeingSnapshots {
            make: &make,
            used: &used,
            of_filesystem: all.of_filesystem,
        }),
        // Stacks of one block are aged alike, blocks differently: each is a sample of its own.
        seed: session.record.seed.wrapping_add(u64::from(trial.key.trial)),
        interrupt: &session.interrupt,
    };
    let record = ageing::age(&subject, &trial.case.age)?;
    let made = record.snapshots.map_or(0, |work| work.made);
    for number in 1..=made {
        if there()?.is_lost(number)? {
            let message = format!("snapshot {number} of {made} has no room of its own left and holds nothing any more");
            return Err(Error::host(message).hint("use thin volumes: lvm = { thin = true }"));
        }
    }
    Ok(record)
}

/// Copies the cluster away, rebuilds the stack on the same devices, and copies the cluster back.
fn to_fresh(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    let Some(cluster) = trial.cluster.take() else { return build_anew(session, trial) };
    let aside = template::aside(session)?;
    let moved =
        copy::copy_off(&cluster, &aside, &session.interrupt).and_then(|_| build_anew(session, trial)).and_then(|()| {
            let spec = cluster::server_spec(session, trial, cluster::wal_folder(session, trial)?)?;
            copy::copy(&aside, &spec, &session.interrupt)?;
            trial.cluster = Some(spec);
            Ok(())
        });
    // A failed copy may have left nothing.
    if paths::exists(&aside) {
        folders::remove_all(&aside)?;
    }
    moved
}

fn build_anew(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    let mark = trial.mark.ok_or_else(|| Error::bug("a stack that nothing was entered for was to be built anew"))?;
    trial.stack = None;
    session.undo_from(mark);
    if let Some(undo_failure) = session.undo_failure.take() {
        return Err(undo_failure);
    }
    stack::build(session, trial)?;
    trial.folder = Some(cluster::folder_on(session, trial, &trial.stack()?.folder().join("pgstrata-data"))?);
    Ok(())
}

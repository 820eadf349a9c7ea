//! The step `age`: what the plan asks to be done to the stack before it is measured, and, for the control, the cluster's
//! way to a fresh filesystem.

use super::{Trial, cluster, stack};
use crate::ageing::{self, Subject};
use crate::cluster::server;
use crate::error::{Error, Result};
use crate::host::{folders, paths};
use crate::run::{template, undo};

pub(super) fn age(trial: &mut Trial<'_, '_>) -> Result<()> {
    let missing = || Error::bug("a stack was to be aged before it was built");
    let folder = trial.folder.clone().ok_or_else(missing)?.join("age");
    folders::make_all(&folder, 0o700)?;
    let session = &trial.session;
    if let Some(cluster) = &trial.cluster {
        session.ledger.enter(undo::server_thing(cluster)?)?;
    }
    let subject = Subject {
        host: &session.host,
        cluster: trial.cluster.as_ref(),
        folder: &folder,
        // Stacks of one block are aged alike, blocks differently: each is a sample of its own.
        seed: session.record.seed.wrapping_add(u64::from(trial.key.trial)),
        interrupt: &session.interrupt,
    };
    trial.record.age = Some(ageing::age(&subject, &trial.case.age)?);
    if ageing::is_fresh(&trial.case.age) { to_fresh(trial) } else { Ok(()) }
}

/// Copies the cluster away, builds the stack anew on the same devices, and copies the cluster back.
fn to_fresh(trial: &mut Trial<'_, '_>) -> Result<()> {
    let Some(cluster) = trial.cluster.take() else { return build_anew(trial) };
    let aside = template::aside(trial.session)?;
    let moved =
        server::copy_off(&cluster, &aside, &trial.session.interrupt).and_then(|_| build_anew(trial)).and_then(|()| {
            let spec = cluster::server_spec(trial)?;
            server::copy(&trial.session.host, &aside, &spec, &trial.session.interrupt)?;
            trial.cluster = Some(spec);
            Ok(())
        });
    // A copy that broke off may have left nothing.
    if paths::exists(&aside) {
        folders::remove_all(&aside)?;
    }
    moved
}

fn build_anew(trial: &mut Trial<'_, '_>) -> Result<()> {
    let mark = trial.mark.ok_or_else(|| Error::bug("a stack that nothing was entered for was to be built anew"))?;
    trial.stack = None;
    trial.session.undo_from(mark);
    if let Some(stuck) = trial.session.stuck.take() {
        return Err(stuck);
    }
    stack::build(trial)?;
    trial.folder = Some(cluster::folder_on(trial, &trial.stack()?.folder().join("pgstrata-data"))?);
    Ok(())
}

//! The steps `warm-up` and `measure`: the workload on the stack.

use super::Trial;
use crate::cluster::server;
use crate::error::{Error, Result};
use crate::record::options::Options;
use crate::record::trial::Outcome;
use crate::run::measure::Measurement;
use crate::telemetry::{ServerAddress, Target};
use crate::workload::Place;
use std::path::Path;

pub(super) fn warm_up(trial: &mut Trial<'_, '_>) -> Result<()> {
    let raw = trial.staging.raw();
    let place = trial.place(&raw)?;
    trial.workload.warm_up(&place, &trial.case.workload.options, trial.session.memory())
}

pub(super) fn measure(trial: &mut Trial<'_, '_>) -> Result<()> {
    let options = &decided(trial)?;
    trial.record.operation = trial.workload.operation(options)?;
    let target = Target {
        devices: trial.stack()?.facts.devices().into_iter().map(|(name, device)| (name, device.clone())).collect(),
        server: trial.server.as_ref().map(|server| ServerAddress {
            socket: server.spec.socket(),
            database: server::DATABASE.to_owned(),
            user: server::ROLE.to_owned(),
        }),
    };
    let raw = trial.staging.raw();
    let measured = Measurement {
        host: &trial.session.host,
        key: trial.key,
        run: &trial.session.record.id,
        workload: trial.workload,
        options,
        memory: trial.session.memory(),
        target: &target,
        events: &trial.session.events,
    }
    .run(&trial.place(&raw)?, &trial.staging.seconds(), &trial.staging.latencies())?;
    if measured.began_us.is_none() {
        return Err(
            Error::tool("the workload ended without having done anything").hint("a longer duration or a higher rate")
        );
    }
    trial.record.counts = Some(measured.counts);
    trial.record.waits = measured.waits;
    trial.record.columns = measured.columns;
    trial.record.gaps = measured.gaps;
    trial.record.telemetry_cpu_us = Some(measured.telemetry_cpu_us);
    Ok(())
}

/// The workload's options with those that the plan left open: as an earlier trial with the same workload decided, also in
/// an earlier sitting, or decided now.
fn decided(trial: &mut Trial<'_, '_>) -> Result<Options> {
    let workload = &trial.case.workload;
    let mut earlier = None;
    for key in &trial.session.record.order {
        let same = trial.session.record.cases.iter().any(|case| case.id == key.case && case.workload == *workload);
        // One that cannot be read is measured again, and decides nothing.
        if same && let Ok(Some(record)) = trial.session.events.writer().folder().trial(key) {
            earlier = Some(record).filter(|record| record.outcome == Outcome::Measured).map(|record| record.decided);
        }
        if earlier.is_some() {
            break;
        }
    }
    let raw = trial.staging.raw();
    trial.record.decided = match earlier {
        Some(decided) => decided,
        None => trial.workload.decide(&trial.place(&raw)?, &workload.options)?,
    };
    let mut options = workload.options.clone();
    for (key, value) in &trial.record.decided.0 {
        options.set(key, value.clone());
    }
    Ok(options)
}

impl Trial<'_, '_> {
    fn place<'p>(&'p self, raw: &'p Path) -> Result<Place<'p>> {
        Ok(Place {
            host: &self.session.host,
            folder: self.folder.as_deref().ok_or_else(|| Error::bug("a workload was started before its folder"))?,
            server: self.server.as_ref(),
            user: &self.session.user,
            interrupt: &self.session.interrupt,
            raw,
        })
    }
}

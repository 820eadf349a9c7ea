//! The step `precondition`: drives of the stack that the run has not yet brought to their steady state.
//!
//! Each is claimed on its own, after the same checks as for formatting, and released again.

use super::{Trial, site};
use crate::ageing::drive::{BLOCK, DEPTH, Drive, DriveProgress, Preconditioned, precondition};
use crate::error::{Error, Result};
use crate::host::time::wall_us;
use crate::provision::drives::{self, StandingDrive, WantedDrive};
use crate::record::drive::{DriveRecord, DriveRound};
use crate::record::event::Event;
use crate::record::stack::StackSpec;
use crate::run::session::Session;
use crate::stats::steady_state::{MOST_ROUNDS, is_reached};
use crate::units::Micros;
use std::time::Duration;

fn wanted(session: &Session<'_>, spec: &StackSpec) -> Result<Vec<WantedDrive>> {
    let images = session.images.by_node(spec);
    Ok(drives::of_stack(spec)?.into_iter().map(|drive| drive.on(&images)).collect())
}

/// The drives of a stack still to be prepared in this run.
pub(super) fn lacking(session: &Session<'_>, spec: &StackSpec) -> Result<Vec<WantedDrive>> {
    let wanted = wanted(session, spec)?;
    Ok(wanted.into_iter().filter(|drive| !session.drives.iter().any(|done| done.key == drive.key)).collect())
}

/// Records of the prepared drives of a stack.
pub(super) fn done(session: &Session<'_>, spec: &StackSpec) -> Result<Vec<DriveRecord>> {
    let wanted = wanted(session, spec)?;
    let known = wanted.iter().filter_map(|drive| session.drives.iter().find(|done| done.key == drive.key));
    Ok(known.cloned().collect())
}

pub(super) fn precondition_all(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    for wanted in lacking(session, &trial.case.stack)? {
        // A disk used or emptied by somebody since an earlier session has lost its state.
        let earlier = session.earlier_drives.iter().find(|done| done.key == wanted.key);
        let record = match earlier.filter(|_| wanted.is_still_of(&session.host, session.ledger.run_id())) {
            Some(earlier) => earlier.clone(),
            None => one(session, trial, &wanted)?,
        };
        session.drives.push(record);
    }
    Ok(())
}

fn one(session: &mut Session<'_>, trial: &mut Trial<'_>, wanted: &WantedDrive) -> Result<DriveRecord> {
    let mark = session.ledger.mark();
    let made = write(session, trial, wanted);
    session.undo_from(mark);
    let record = made.map_err(|e| e.while_doing(format!("bring {} to its steady state", wanted.key)))?;
    if session.undo_failure.is_some() {
        return Err(Error::host(format!("{} could not be released after it was preconditioned", wanted.key)));
    }
    let (trial_key, drive) = (trial.key.clone(), Box::new(record.clone()));
    session.events.emit(Event::DrivePreconditioned { trial: trial_key, drive })?;
    Ok(record)
}

fn write(session: &Session<'_>, trial: &Trial<'_>, wanted: &WantedDrive) -> Result<DriveRecord> {
    let spec = &trial.case.stack;
    let name = site::name_of(session, spec, &trial.key.trial.to_string());
    let images = session.images.by_node(spec);
    let standing = wanted.stand(&site::site(session, name, &images))?;
    let StandingDrive { path, model, bytes, .. } = &standing;
    let (began_us, Micros(round_us)) = (wall_us(), wanted.round);
    let most_rounds = u32::try_from(MOST_ROUNDS).unwrap_or(u32::MAX);
    let Preconditioned { purge, fill, rounds } = precondition(&Drive {
        path,
        bytes: *bytes,
        held: &|file| standing.check_held(&session.host, wanted, file),
        is_image: wanted.is_image,
        round: Duration::from_micros(round_us),
        most_rounds,
        seed: session.record.seed,
        interrupt: &session.interrupt,
        report: &|doing| {
            let (trial, drive) = (trial.key.clone(), wanted.key.clone());
            session.events.emit(match doing {
                DriveProgress::Filling { done, of } => {
                    Event::DriveFilled { trial, drive, done_bytes: done, of_bytes: of }
                }
                DriveProgress::Round { number, round } => {
                    Event::DriveRound { trial, drive, number, most_rounds, round }
                }
            })
        },
        is_steady: &|rounds| is_reached(&rounds.iter().map(DriveRound::rate).collect::<Vec<_>>()),
    })?;
    Ok(DriveRecord {
        key: wanted.key.clone(),
        node: wanted.node.clone(),
        device: path.display().to_string(),
        model: model.clone(),
        is_image: wanted.is_image,
        bytes: *bytes,
        purge,
        fill,
        block_bytes: BLOCK,
        depth: DEPTH,
        round_us,
        most_rounds,
        rounds,
        began_us,
        ended_us: wall_us(),
    })
}

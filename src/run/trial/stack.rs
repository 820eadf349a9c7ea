//! The step `images`: writes those images of the stack that the run has not written yet.
//!
//! The step `build`: sets the kernel knobs, then builds the stack of a trial, or takes the one kept for all trials,
//! with its age; then watches other activity on its devices.

use super::site::{name_of, site};
use super::{Trial, drive, idle};
use crate::error::Result;
use crate::host::time::now;
use crate::provision::knobs;
use crate::provision::stack::{self, BuiltStack};
use crate::record::event::Event;
use crate::record::stack::StackSpec;
use crate::run::session::{KeptStack, Session};
use std::collections::BTreeMap;

/// Writes the images that the stack needs and the run does not have yet. They stay for later trials.
pub(super) fn write_images(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    let spec = &trial.case.stack;
    if session.stands(spec) {
        return Ok(());
    }
    let mark = session.ledger.mark();
    let mut images = std::mem::take(&mut session.images);
    let made = images.make(&site(session, String::new(), &BTreeMap::new()), spec, &|done, of| {
        let (trial, done_bytes, of_bytes) = (trial.key.clone(), done.0, of.0);
        session.events.emit(Event::ImagesWritten { trial, done_bytes, of_bytes })
    });
    session.images = images;
    if made.is_err() {
        session.undo_from(mark);
    }
    made
}

pub(super) fn build(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    let spec = &trial.case.stack;
    if spec.reuse && !session.stands(spec) {
        keep(session, spec)?;
    }
    // Things made from here on are undone after the trial; templates and kept stacks are not.
    trial.mark = Some(session.ledger.mark());
    knobs::set_machine(&session.host, &session.ledger, &trial.case.machine)
        .map_err(|e| e.while_doing("set the knobs of the kernel"))?;
    trial.record.knobs = knobs::in_force(&session.host);
    let built = match session.kept.iter_mut().find(|(kept, _)| kept == spec) {
        Some((_, kept)) => {
            let mut built = kept.built.clone();
            built.facts.trials_before = kept.trials;
            built.facts.age_s = Some(kept.made.elapsed().as_secs_f64());
            kept.trials += 1;
            built
        }
        None => of_spec(session, spec, &trial.key.trial.to_string())?,
    };
    trial.record.drives = drive::done(session, spec)?;
    trial.record.idle = idle::watch(session, &built.facts)?;
    trial.record.stack = Some(built.facts.clone());
    trial.stack = Some(built);
    Ok(())
}

/// Builds a stack that is kept for the whole run.
fn keep(session: &mut Session<'_>, spec: &StackSpec) -> Result<()> {
    let mark = session.ledger.mark();
    let built = of_spec(session, spec, "kept").inspect_err(|_| session.undo_from(mark))?;
    session.kept.push((spec.clone(), KeptStack { built, made: now(), trials: 0 }));
    Ok(())
}

fn of_spec(session: &Session<'_>, spec: &StackSpec, trial: &str) -> Result<BuiltStack> {
    let name = name_of(session, spec, trial);
    let images = session.images.by_node(spec);
    stack::build_stack(&site(session, name, &images), spec)
        .map_err(|e| e.while_doing(format!("build the stack {}", spec.name)))
}

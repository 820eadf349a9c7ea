//! A whole stack: its layers built one on the other, and what is there in the end.
//!
//! Tearing down is not here: it is the walk of [`super::undo`] down to [`BuiltStack::mark`], the same after a success, a
//! failure and a crash.

use super::{Built, Ground, Layer, Position, Room, Site, Unmet, devices, layer, mount};
use crate::error::{Error, Result};
use crate::host::{Host, files};
use crate::record::case::{LayerSpec, StackSpec};
use crate::record::facts::StackFacts;
use std::path::PathBuf;

/// A stack that stands.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltStack {
    /// The folder that data can be put in. Others than root may enter it; its owner is root, or us.
    pub folder: PathBuf,
    /// What is really there.
    pub facts: StackFacts,
    /// Everything of it lies at or above this number in the ledger.
    pub mark: u64,
}

/// Builds a stack bottom-up and reads back what is there.
///
/// # Errors
/// The layer's own, with the stack and layer in front. What was made up to there is in the ledger: the caller takes
/// [`super::ledger::Ledger::mark`] before and undoes down to it.
pub fn build_stack(site: &Site<'_>, spec: &StackSpec) -> Result<BuiltStack> {
    let mark = site.ledger.mark();
    let mut ground: Option<Ground> = None;
    let mut layers = Vec::new();
    for asked in &spec.layers {
        site.interrupt.check()?;
        let built = build_layer(site, ground.as_ref(), asked)
            .map_err(|e| e.while_doing(format!("build the layer {} of the stack {}", asked.layer, spec.name)))?;
        ground = Some(built.ground);
        layers.push(built.facts);
    }
    let Some(Ground::Folder(folder)) = ground else {
        return Err(Error::bug(format!("the stack {} ends in no folder", spec.name)));
    };
    for (asked, facts) in spec.layers.iter().zip(&mut layers) {
        known(asked)?
            .finish(site.host, &asked.options, facts)
            .map_err(|e| e.while_doing(format!("finish the layer {} of the stack {}", asked.layer, spec.name)))?;
    }
    let below = devices::below(site.host, &folder)?;
    if let (Some(top), false) = (layers.last_mut(), below.ends.is_empty()) {
        top.details.insert("devices end".to_owned(), below.ends.join("; "));
    }
    let facts = StackFacts {
        name: spec.name.clone(),
        layers,
        mount: Some(mount::mount_of(site.host, &folder)?),
        devices: below.devices,
        free_bytes: Some(files::free_bytes(&folder)?),
        trials_before: 0,
        age_s: Some(0.0),
    };
    Ok(BuiltStack { folder, facts, mark })
}

fn build_layer(site: &Site<'_>, below: Option<&Ground>, asked: &LayerSpec) -> Result<Built> {
    let layer = known(asked)?;
    let on_device = matches!(layer.position(), Position::Volume | Position::Filesystem);
    match (on_device, below) {
        (true, Some(Ground::Device(_))) | (false, None) => layer.build(site, below, &asked.options),
        (true, _) => Err(Error::bug("it needs a block device below")),
        (false, _) => Err(Error::bug("it must be the lowest layer")),
    }
}

fn known(asked: &LayerSpec) -> Result<&'static dyn Layer> {
    layer(&asked.layer).ok_or_else(|| Error::user(format!("there is no layer `{}`", asked.layer)))
}

/// What this machine lacks for a stack, free room included. Reads, never changes; the same thing is told once.
#[must_use]
pub fn unmet(host: &Host, spec: &StackSpec) -> Vec<Unmet> {
    let mut all: Vec<Unmet> = Vec::new();
    let layers = spec.layers.iter().filter_map(|asked| Some((layer(&asked.layer)?, &asked.options)));
    let of_layers = layers.flat_map(|(layer, options)| layer.unmet(host, options));
    for one in of_layers.chain(super::needs::lacking_room(host, &rooms(spec))) {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

/// The room that a stack takes from what others use, too. Rooms of stacks that stand at the same time (data and WAL, or
/// reused ones) add up: see [`super::needs::lacking_room`].
#[must_use]
pub fn rooms(spec: &StackSpec) -> Vec<Room> {
    spec.layers.iter().filter_map(|asked| layer(&asked.layer)?.room(&asked.options)).collect()
}

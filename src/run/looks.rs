//! Adaptive blocks: a look after each whole block, and which cases it stops; more blocks for a run that has ended.
//!
//! `analyse` computes the decisions from the run folder, as it does for the report.

use crate::analyse::look::{self, BlockLook};
use crate::error::{Error, Result};
use crate::host::time;
use crate::plan;
use crate::record::event::Event;
use crate::record::run::{Extension, RunRecord};
use crate::store::folder::{RunFolder, Writer};
use std::collections::BTreeMap;

pub struct Looks {
    /// Blocks before the first look; `None` if the number of blocks is fixed.
    first: Option<u32>,
    /// Cases that continued, by block.
    taken: BTreeMap<u32, Vec<String>>,
}

impl Looks {
    /// The looks of a run, from its events. The look at which a run ended before being extended is taken again: another
    /// rule now decides what is open.
    pub fn of(record: &RunRecord, folder: &RunFolder) -> Result<Looks> {
        let mut taken = BTreeMap::new();
        for event in folder.events()? {
            match event.what {
                Event::Looked { block, going_on, .. } => drop(taken.insert(block, going_on)),
                Event::RunExtended { .. } => drop(taken.pop_last()),
                _ => {}
            }
        }
        Ok(Looks { first: record.at_least, taken })
    }

    /// True if no look before this block has stopped the case.
    pub fn went_on(&self, case: &str, block: u32) -> bool {
        self.taken.range(..block).all(|(_, going_on)| going_on.iter().any(|other| other == case))
    }

    /// Takes a look after a block, once; `None` if there is nothing to look at.
    pub fn after(&mut self, block: u32, record: &RunRecord, folder: &RunFolder) -> Result<Option<Event>> {
        let before = self.first.is_none_or(|first| block < first);
        let ended = self.taken.last_key_value().is_some_and(|(last, going_on)| *last < block && going_on.is_empty());
        if before || ended || self.taken.contains_key(&block) {
            return Ok(None);
        }
        let BlockLook { decided, needed, stopped } = look::look(folder.path(), block)?;
        let going_on: Vec<String> = needed.into_iter().filter(|case| self.went_on(case, block)).collect();
        let stopped = stopped.into_iter().filter(|stopped| self.went_on(&stopped.case, block)).collect();
        let left = going_on.len().saturating_mul(record.blocks.saturating_sub(block) as usize);
        self.taken.insert(block, going_on.clone());
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        Ok(Some(Event::Looked { block, decided, stopped, going_on, left }))
    }
}

/// Extends a run to `blocks` blocks in all. The plan in its folder stays as it was given.
pub fn extend(writer: &mut Writer, blocks: u32) -> Result<Event> {
    let mut record = writer.folder().record().clone();
    let from = record.blocks;
    if blocks <= from {
        let has = if record.at_least.is_some() { "may take up to" } else { "has" };
        return Err(Error::user(format!("the run {has} {from} blocks already, and --blocks says {blocks}"))
            .hint("--blocks is the total number of blocks; leave it out to resume the run as planned"));
    }
    let looks = Looks::of(&record, writer.folder())?;
    if looks.taken.last_key_value().is_some_and(|(_, going_on)| going_on.is_empty()) {
        return Err(Error::user("no comparison of this run is open: further blocks would decide nothing")
            .hint("`pgstrata report` shows what was decided; for another question write another plan"));
    }
    record.order = plan::extended_order(&record.cases, blocks, record.seed)?;
    record.blocks = blocks;
    record.extended.push(Extension { at: time::rfc3339(time::wall_us()), from, to: blocks });
    writer.set_record(record)?;
    Ok(Event::RunExtended { from, to: blocks })
}

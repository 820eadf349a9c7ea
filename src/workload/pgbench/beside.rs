//! pgbench as an unmeasured background load for other clients: its data and its load.

use super::{Pgbench, drive, settings};
use crate::error::Result;
use crate::record::options::Options;
use crate::workload::{MemorySizes, Place, Workload};

/// Fills the database and moves it to the tablespaces in the options. Returns the reason if the stack ran out of space.
///
/// # Errors
/// With the tool's own message; interrupted.
pub fn prepare(place: &Place<'_>, options: &Options, memory: MemorySizes) -> Result<Option<String>> {
    let done = Pgbench.load(place, options, memory).and_then(|()| Pgbench.place_data(place, options));
    drive::ended(drive::server_of(place)?, done.err())
}

/// Runs until `is_over`, then aborts transactions that take much longer. Returns the reason if it ended early because
/// the stack ran out of space.
///
/// # Errors
/// With the tool's own message; interrupted.
pub fn run(
    place: &Place<'_>,
    options: &Options,
    memory: MemorySizes,
    is_over: &dyn Fn() -> bool,
) -> Result<Option<String>> {
    let settings = settings(options)?;
    let done = drive::beside(place, &settings, settings.units(memory), is_over);
    drive::ended(drive::server_of(place)?, done.err())
}

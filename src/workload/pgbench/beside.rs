//! pgbench beside clients of others' own: its data and its load, of which nothing is measured.

use super::{Pgbench, drive, settings};
use crate::error::Result;
use crate::record::options::Options;
use crate::workload::{Memory, Place, Workload};

/// Fills the database and moves it to the tablespaces that the options name. Why not, where the stack had no room left.
///
/// # Errors
/// With the tool's own words; interrupted.
pub fn prepare(place: &Place<'_>, options: &Options, memory: Memory) -> Result<Option<String>> {
    let done = Pgbench.load(place, options, memory).and_then(|()| Pgbench.place_data(place, options));
    drive::ended(drive::server_of(place)?, done.err())
}

/// Runs until it is over; a transaction that takes much longer is broken off. Why it ended earlier, where the stack had no room
/// left.
///
/// # Errors
/// With the tool's own words; interrupted.
pub fn run(place: &Place<'_>, options: &Options, memory: Memory, is_over: &dyn Fn() -> bool) -> Result<Option<String>> {
    let settings = settings(options)?;
    let done = drive::beside(place, &settings, settings.units(memory), is_over);
    drive::ended(drive::server_of(place)?, done.err())
}

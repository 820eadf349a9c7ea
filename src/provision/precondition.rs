//! Options of a disk that is brought to its steady state before the trials.

use super::{Base, Site, knobs};
use crate::error::Result;
use crate::record::drive::SNIA_ROUND_US;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::units::Micros;

pub(crate) const KEY: &str = "precondition";

pub(crate) const ROUND: &str = "precondition_round";

/// Requests that a device is brought to its steady state; for layers whose device outlives a trial.
pub const PRECONDITION: OptionSpec = OptionSpec::with_default(KEY, OptionKind::Boolean, "false").doc(
    "Bring the device to its steady state once per run, before stacks are built on it: purge, 2 x its size in 128 KiB \
     sequential writes, then up to 25 rounds of 4 KiB random writes until SNIA's rule holds. HOURS ON A LARGE DRIVE, \
     and it wears.",
);

pub const PRECONDITION_ROUND: OptionSpec = OptionSpec::with_default(ROUND, OptionKind::Span, "60s")
    .doc("Length of a round of `precondition`. Shorter ones are not SNIA's, and reports say so.");

/// Length of the rounds requested for a node's drive; `None` without preconditioning.
pub(crate) fn asked(options: &Options) -> Option<Micros> {
    (options.boolean(KEY) == Some(true)).then(|| options.span(ROUND).unwrap_or(Micros(SNIA_ROUND_US)))
}

/// Checks both options of a layer.
///
/// # Errors
/// The key and what is wrong with it.
pub(crate) fn check(options: &Options) -> Result<(), OptionProblem> {
    match (asked(options), options.span(ROUND)) {
        (Some(Micros(0)), _) => Err(OptionProblem::at(ROUND, "a round must be longer than 0")),
        (None, Some(_)) => Err(OptionProblem::at(ROUND, "there are no rounds without `precondition = true`")),
        _ => Ok(()),
    }
}

/// Disables discards on a node's devices if its drive was brought to its steady state. Returns how that was verified.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn keep_full(site: &Site<'_>, bases: &[Base], options: &Options) -> Result<Option<&'static str>> {
    if asked(options).is_none() {
        return Ok(None);
    }
    let is_off = knobs::without_discards(site.host, site.ledger, bases)?;
    Ok(Some(if is_off { "none: discard_max_bytes is 0" } else { "unknown: the kernel has no discard_max_bytes" }))
}

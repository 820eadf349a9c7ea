//! Duration of a sync by the amount written before it: an honest volatile cache shows a growing cost.

use super::Surroundings;
use super::counters::{Counters, growth};
use super::operation::FILE;
use super::tape::{FailedCall, nanos};
use crate::error::Result;
use crate::host::time::{micros, now};
use crate::probe::synced::{sync, write_at};
use crate::record::probe::{Failure, Growth, Way};
use rustix::fs::OFlags;
use std::fs::File;
use std::time::Duration;

/// Bytes written before the sync; the last amount is the whole file.
const AMOUNTS: [u64; 3] = [0, 64 << 10, 1 << 20];
/// Bytes per write call.
const PIECE: usize = 64 << 10;
/// Maximum number of rounds; at least one is run.
const ROUNDS: usize = 5;

/// Measures in rounds until `span` is over. A failure ends it and is reported.
///
/// # Errors
/// Interrupted.
pub(super) fn measure(
    around: &Surroundings<'_>,
    counters: &mut Counters,
    span: Duration,
) -> Result<(Vec<Growth>, Option<Failure>)> {
    let file_bytes = around.site.segment_bytes;
    let mut found = Vec::new();
    let until = now() + span;
    for round in 0..ROUNDS {
        if round > 0 && now() >= until {
            break;
        }
        for bytes in AMOUNTS.into_iter().filter(|bytes| *bytes < file_bytes).chain([file_bytes]) {
            around.interrupt.check()?;
            match once(around, counters, bytes) {
                Ok(growth) => found.push(growth),
                Err(failed) => {
                    let failure = failed.record(micros(around.begun.elapsed()), found.len() as u64);
                    return Ok((found, Some(failure)));
                }
            }
        }
    }
    Ok((found, None))
}

fn once(around: &Surroundings<'_>, counters: &mut Counters, bytes: u64) -> Result<Growth, FailedCall> {
    let file = around.site.open(FILE, OFlags::empty())?;
    sync(&file, Way::Fdatasync)?;
    let before = counters.read();
    let begun = now();
    write(&file, around.noise.bytes(), bytes)?;
    let written = now();
    sync(&file, Way::Fdatasync)?;
    let synced = now();
    Ok(Growth {
        written_bytes: bytes,
        write_ns: nanos(written.duration_since(begun)),
        sync_ns: nanos(synced.duration_since(written)),
        at_us: micros(written.duration_since(around.begun)),
        devices: growth(&around.place.devices, &before, &counters.read()),
    })
}

fn write(file: &File, bytes: &[u8], length: u64) -> Result<(), FailedCall> {
    let mut at = 0;
    while at < length {
        let piece = usize::try_from(length - at).unwrap_or(PIECE).min(PIECE).min(bytes.len());
        // Neighbouring pieces differ, as far as memory allows.
        let from = usize::try_from(at).unwrap_or(0) % (bytes.len() - piece + 1);
        write_at(file, &bytes[from..from + piece], at)?;
        at += piece as u64;
    }
    Ok(())
}

//! How long a sync takes after how much was written: an honest volatile cache shows a cost that grows.

use super::counters::{Counters, growth};
use super::operation::FILE;
use super::row::words;
use super::site::ProbeSite;
use super::tape::Failed;
use crate::error::Result;
use crate::host::signals::Interrupt;
use crate::host::time::{Instant, micros, now};
use crate::probe::synced::{sync, write_at};
use crate::record::facts::DeviceFacts;
use crate::record::probe::{Failure, Growth, Way};
use rustix::fs::OFlags;
use std::fs::File;
use std::time::Duration;

/// What is written before the sync, bytes; the last one is the whole file.
const AMOUNTS: [u64; 3] = [0, 64 << 10, 1 << 20];
/// Written by one call.
const PIECE: usize = 64 << 10;
/// Rounds at most; at least one.
const ROUNDS: usize = 5;

/// What growth is measured on.
pub struct GrowthSite<'a> {
    /// Where the file is.
    pub site: &'a ProbeSite,
    /// Size of the file.
    pub file_bytes: u64,
    /// Aligned bytes, a piece at least.
    pub bytes: &'a [u8],
    pub devices: &'a [DeviceFacts],
    /// When the first slice began.
    pub begun: Instant,
}

/// Measures in rounds until `span` is over. A failure ends it and is reported.
///
/// # Errors
/// Interrupted.
pub fn measure(
    ground: &GrowthSite<'_>,
    counters: &mut Counters,
    span: Duration,
    interrupt: &Interrupt,
) -> Result<(Vec<Growth>, Option<Failure>)> {
    let mut found = Vec::new();
    let until = now() + span;
    for round in 0..ROUNDS {
        if round > 0 && now() >= until {
            break;
        }
        for bytes in AMOUNTS.into_iter().filter(|bytes| *bytes < ground.file_bytes).chain([ground.file_bytes]) {
            interrupt.check()?;
            match once(ground, counters, bytes) {
                Ok(growth) => found.push(growth),
                Err(failed) => {
                    let (errno, message) = words(&failed);
                    let (call, at_us) = (failed.call.to_owned(), micros(ground.begun.elapsed()));
                    let after_operations = found.len() as u64;
                    return Ok((found, Some(Failure { call, errno, message, at_us, after_operations })));
                }
            }
        }
    }
    Ok((found, None))
}

fn once(ground: &GrowthSite<'_>, counters: &mut Counters, bytes: u64) -> Result<Growth, Failed> {
    let opened = ground.site.open(FILE, OFlags::empty());
    let file = opened.map_err(|error| Failed { call: "open", error })?;
    sync(&file, Way::Fdatasync)?;
    let before = counters.read();
    let begun = now();
    write(&file, ground.bytes, bytes)?;
    let written = now();
    sync(&file, Way::Fdatasync)?;
    let synced = now();
    Ok(Growth {
        written_bytes: bytes,
        write_ns: nanos(written.duration_since(begun)),
        sync_ns: nanos(synced.duration_since(written)),
        at_us: micros(written.duration_since(ground.begun)),
        devices: growth(ground.devices, &before, &counters.read()),
    })
}

fn write(file: &File, bytes: &[u8], length: u64) -> Result<(), Failed> {
    let mut at = 0;
    while at < length {
        let piece = usize::try_from(length - at).unwrap_or(PIECE).min(PIECE).min(bytes.len());
        // No two neighbouring pieces alike, as far as memory goes.
        let from = usize::try_from(at).unwrap_or(0) % (bytes.len() - piece + 1);
        write_at(file, &bytes[from..from + piece], at)?;
        at += piece as u64;
    }
    Ok(())
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

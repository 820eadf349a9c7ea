//! `pgstrata probe`: how fast, how steady and how believable is a synced write in a folder.

use super::out;
use crate::error::{EXIT_INCOMPLETE, Error, Result};
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::probe::{self, Choice, Observer, Request, Stage};
use crate::record::probe::ProbeRecord;
use crate::units::Bytes;
use std::path::PathBuf;
use std::time::Duration;

/// Measure how fast, how steady and how believable a synced write is in a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata probe /var/lib/postgresql     ten seconds; needs neither root nor PostgreSQL
")]
pub struct Args {
    /// A folder on the filesystem to probe
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Time for measuring, seconds; ends earlier once every rate is known
    #[arg(long, value_name = "N", default_value = "10", value_parser = seconds)]
    seconds: Duration,
    /// Half an interval over its rate at which a rate counts as known, percent; 0 uses all the time
    #[arg(long, value_name = "PCT", default_value = "5", value_parser = precision)]
    precision: f64,
    /// Size of one write of WAL: 1kB to 64kB, as the server is built
    #[arg(long, value_name = "SIZE", default_value = "8kB", value_parser = wal_block)]
    wal_block: u32,
    /// Writers of the row with group commit
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(2..=256))]
    writers: u32,
    /// Seed of the order in which rows take turns [default: another one each time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match (0.2..=86_400.0).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err("from 0.2 to 86400 seconds".to_owned()),
    }
}

fn precision(text: &str) -> Result<f64, String> {
    let percent: f64 = text.trim_end_matches('%').parse().map_err(|_| "not a number of percent".to_owned())?;
    match (0.0..=50.0).contains(&percent) {
        true => Ok(percent / 100.0),
        false => Err("from 0 to 50 percent".to_owned()),
    }
}

fn wal_block(text: &str) -> Result<u32, String> {
    let Bytes(bytes) = Bytes::parse(text)?;
    match (10..=16).map(|power| 1u64 << power).find(|size| *size == bytes) {
        Some(size) => u32::try_from(size).map_err(|e| e.to_string()),
        None => Err("PostgreSQL has WAL blocks of 1kB, 2kB, 4kB, 8kB, 16kB, 32kB or 64kB".to_owned()),
    }
}

struct Quiet;
impl Observer for Quiet {}

/// Probes and prints.
///
/// # Errors
/// When the folder cannot be probed; interrupted.
pub fn run(args: &Args) -> Result<u8> {
    let interrupt = Interrupt::listen()?;
    let request = Request {
        folder: args.folder.clone(),
        choice: Choice::All,
        budget: args.seconds,
        precision: args.precision,
        wal_block: args.wal_block,
        writers: args.writers,
        seed: args.seed.unwrap_or_else(crate::host::time::wall_us),
    };
    let record = probe::measure(&Host::this(), &request, &interrupt, &Quiet)?;
    out::json(&record)?;
    Ok(0)
}

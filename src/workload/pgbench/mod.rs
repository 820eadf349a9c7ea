//! pgbench as shipped with the PostgreSQL under test: loads its tables, drives the clients, and tells every single
//! transaction.
//!
//! Absent on purpose: state of caches (`cache` is only declared here; the room that drops caches reads it), rates and
//! percentiles.

mod drive;
mod options;
mod pipes;
mod read;
mod seconds;
#[cfg(test)]
mod tests;

use super::{DataSet, Listener, Place, Raw, Workload};
use crate::error::{Context, Error, Result};
use crate::host::files;
use crate::record::options::{OptionProblem, OptionSpec, Options};
use crate::record::trial::Figures;
use crate::units::{Bytes, Micros};
use options::{BYTES_PER_SCALE, ScriptSource, Settings};
use std::path::Path;
use std::time::Duration;

/// A CHECKPOINT after loading writes up to all of shared_buffers to a stack that may be slow.
const CHECKPOINT_LIMIT: Duration = Duration::from_secs(3600);

/// The workload `pgbench`.
#[derive(Debug)]
pub struct Pgbench;

impl Workload for Pgbench {
    fn name(&self) -> &'static str {
        "pgbench"
    }

    fn doc(&self) -> &'static str {
        "PostgreSQL's own benchmark: small transactions on a table of accounts, or scripts of your own"
    }

    fn options(&self) -> &'static [OptionSpec] {
        options::SPECS
    }

    fn resolve(&self, options: &mut Options, folder: &Path) {
        options::resolve_scripts(options, folder);
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        options::check_files(&Settings::from(options)?)
    }

    fn warnings(&self, options: &Options, memory: Bytes) -> Vec<String> {
        let Ok(settings) = Settings::from(options) else { return Vec::new() };
        let (units, clients) = (settings.units(memory), settings.clients);
        let has_branches = settings.scripts.iter().any(|s| s.source == ScriptSource::Builtin("tpcb-like"));
        if !has_branches || clients <= units {
            return Vec::new();
        }
        vec![format!(
            "{clients} clients at scale {units}: every transaction of tpcb-like locks one of {units} rows of \
             pgbench_branches, so clients wait for each other instead of for the stack; make the scale at least {clients}"
        )]
    }

    fn connections(&self, options: &Options) -> u64 {
        Settings::from(options).map_or(0, |settings| settings.clients)
    }

    fn needs_server(&self) -> bool {
        true
    }

    fn data_set(&self, options: &Options, memory: Bytes) -> Option<DataSet> {
        let units = Settings::from(options).ok()?.units(memory);
        Some(DataSet { key: format!("pgbench-scale-{units}"), expected: Bytes(units.saturating_mul(BYTES_PER_SCALE)) })
    }

    fn spans(&self, options: &Options) -> (Micros, Micros) {
        Settings::from(options).map_or((Micros(0), Micros(0)), |settings| (settings.warmup, settings.duration))
    }

    fn load(&self, place: &Place<'_>, options: &Options, memory: Bytes) -> Result<()> {
        drive::load(place, settings(options)?.units(memory))?;
        let mut client = drive::server_of(place)?.connect(crate::cluster::server::DATABASE)?;
        client.set_limit(CHECKPOINT_LIMIT)?;
        client.query("checkpoint").map(drop)
    }

    fn warm_up(&self, place: &Place<'_>, options: &Options, memory: Bytes) -> Result<()> {
        let settings = settings(options)?;
        if settings.warmup.0 == 0 {
            return Ok(());
        }
        drive::warm_up(place, &settings, settings.units(memory))
    }

    fn measure(&self, place: &Place<'_>, options: &Options, memory: Bytes, listener: &dyn Listener) -> Result<Raw> {
        let settings = settings(options)?;
        let (counts, mut histograms) = drive::measure(place, &settings, settings.units(memory), listener)?;
        let mut all = super::empty_histogram()?;
        for histogram in &histograms {
            all.add(histogram).map_err(|e| Error::bug(format!("adding latencies: {e}")))?;
        }
        let mut latencies = vec![(read::TRANSACTIONS.to_owned(), all)];
        if settings.scripts.len() > 1 {
            latencies.extend(settings.scripts.iter().map(|script| script.name.clone()).zip(histograms.drain(..)));
        }
        let out = place.raw.join("pgbench.out");
        let summary = files::read_text(&out)?;
        let counts = serde_json::to_value(counts).or_store(|| "keep what was counted".to_owned())?;
        Ok(Raw { files: vec![out, place.raw.join("pgbench.err")], latencies, counts, summary })
    }

    fn read(&self, options: &Options, raw: &Raw) -> Result<Figures> {
        read::figures(&settings(options)?, raw)
    }
}

/// The settings of options that the plan has checked.
fn settings(options: &Options) -> Result<Settings> {
    Settings::from(options)
        .map_err(|problem| Error::user(format!("pgbench: `{}` {}", problem.key.unwrap_or_default(), problem.message)))
}

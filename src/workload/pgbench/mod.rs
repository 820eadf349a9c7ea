//! pgbench as shipped with the PostgreSQL under test: loads its tables, drives the clients, and reads every single
//! transaction.
//!
//! Not here: putting caches into the state that `cache` asks for, rates and percentiles.

pub mod beside;
pub mod capacity;
mod drive;
mod due;
mod failed_line;
mod idle;
pub mod maintenance;
mod options;
mod pipes;
mod quota;
mod read;
pub mod recovery;
mod reflinks;
mod sample;
mod script_settings;
mod scripts;
mod seconds;
mod shifted;
mod shipped;
pub mod snapshots;
#[cfg(test)]
mod tests;
mod unsent;

pub use scripts::files as script_files;

use super::{DataSet, Measuring, MemorySizes, Place, Until, Window, Workload, WorkloadInfo};
use crate::cluster::server::CHECKPOINT_LIMIT;
use crate::error::{Error, Result};
use crate::host::files;
use crate::parse::pgbench_summary;
use crate::record::counts::Counts;
use crate::record::facts::FoundSetting;
use crate::record::operation::{CacheState, Operation};
use crate::record::options::{OptionProblem, OptionValue, Options};
use crate::record::window::Extent;
use crate::units::Bytes;
pub(crate) use options::BYTES_PER_SCALE;
use options::Settings;
use scripts::{DEFAULT_SCRIPT, Script, ScriptSource};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Options recorded as the plan gave them: figures may depend on them.
const SETTINGS: [&str; 10] =
    ["setup", "cycles", "limit", "duration", "warmup", "cache", "jobs", "tablespace", "index_tablespace", "autovacuum"];

/// Options that name a tablespace, and the kind of relation moved there.
const MOVED: [(&str, &str); 2] = [("tablespace", "TABLE"), ("index_tablespace", "INDEX")];

/// Base name of the measured pgbench's output.
const MEASURED: &str = "pgbench";

const INFO: WorkloadInfo = WorkloadInfo {
    name: "pgbench",
    doc: "PostgreSQL's own benchmark: small transactions on a table of accounts; mixes that ship with pgstrata; or scripts of your own",
    needs_server: true,
    options: options::SPECS,
    quick: &[],
};

#[derive(Debug)]
pub struct Pgbench;

impl Pgbench {
    /// The same at scale 1, if there is SQL of the user's own that may fail.
    pub fn rehearsal(&self, options: &Options) -> Option<Options> {
        // The load of a profile is ours, and as large at any scale.
        let settings = Settings::from(options).ok().filter(|_| scripts::made_of(options).is_none())?;
        let mut sources = settings.setup.iter().chain(settings.scripts.iter().map(|script| &script.source));
        sources.any(|source| matches!(source, ScriptSource::File(_) | ScriptSource::Sql(_))).then(|| {
            let mut small = options.clone();
            // The other way to say how large the data are.
            small.0.remove("data");
            small.set("scale", OptionValue::Integer(1));
            small
        })
    }

    /// Loads data and runs each script once, by one client. Returns the bytes that `setup` made.
    ///
    /// # Errors
    /// With the server's or pgbench's own message.
    pub fn rehearse(&self, place: &Place<'_>, options: &Options, memory: MemorySizes, limit: Duration) -> Result<u64> {
        let (settings, server) = (settings(options)?, drive::server_of(place)?);
        drive::load(place, settings.shipped, settings.units(memory))?;
        let before = server.database_bytes()?;
        set_up(place, &settings)?;
        let made = server.database_bytes()?.saturating_sub(before);
        drive::once(place, &settings, limit).map(|()| made)
    }
}

impl Workload for Pgbench {
    fn info(&self) -> &WorkloadInfo {
        &INFO
    }

    fn resolve(&self, options: &mut Options, folder: &Path) {
        scripts::resolve_scripts(options, folder);
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        scripts::check_profile(options)?;
        options::check_files(&Settings::from(options)?)
    }

    fn warnings(&self, options: &Options, memory: MemorySizes) -> Vec<String> {
        let Ok(settings) = Settings::from(options) else { return Vec::new() };
        let (units, clients) = (settings.units(memory), settings.clients);
        let has_branches = settings.scripts.iter().any(|s| s.source == ScriptSource::Builtin("tpcb-like"));
        let waiting = (has_branches && clients > units).then(|| {
            format!(
                "{clients} clients at scale {units}: every tpcb-like transaction locks one of {units} rows of \
                 pgbench_branches, so clients wait for each other instead of storage; set the scale to at least {clients}"
            )
        });
        let unread = (settings.setup.is_some() && units > 1 && !settings.uses_scale()).then(|| {
            let key = if options.get("data").is_some() { "data" } else { "scale" };
            format!("`{key}` sizes pgbench's own tables, which neither `script` nor `setup` names: leave it out")
        });
        waiting.into_iter().chain(unread).collect()
    }

    fn connections(&self, options: &Options) -> u64 {
        Settings::from(options).map_or(0, |settings| settings.clients)
    }

    fn server_settings(&self, options: &Options) -> BTreeMap<String, String> {
        let deferred = options.text("autovacuum") == Some("deferred");
        deferred.then(|| ("autovacuum".to_owned(), "off".to_owned())).into_iter().collect()
    }

    fn data_set(&self, options: &Options, memory: MemorySizes) -> Option<DataSet> {
        let settings = Settings::from(options).ok()?;
        let units = settings.units(memory);
        let setup = settings.setup.as_ref().map_or_else(String::new, |setup| format!("-setup-{}", setup.sum()));
        let made = scripts::made_of(options).map_or(0, |(_, _, bytes)| bytes);
        Some(DataSet {
            key: format!("{}-scale-{units}{setup}", settings.shipped.map_or("pgbench", |shipped| shipped.name)),
            expected: Bytes(units.saturating_mul(settings.bytes_per_unit()).saturating_add(made)),
        })
    }

    fn operation(&self, options: &Options) -> Result<Operation> {
        let settings = settings(options)?;
        let mut scripts = options.texts("script");
        if scripts.is_empty() {
            scripts.push(DEFAULT_SCRIPT.to_owned());
        }
        for text in &mut scripts {
            let script = scripts::script(text).ok().and_then(|script| Some((script.source.known_by()?, script.weight)));
            if let Some((name, weight)) = script {
                *text = if weight == 1 { name } else { format!("{name}@{weight}") };
            }
        }
        let setup = settings.setup.as_ref().and_then(ScriptSource::known_by);
        let made = scripts::made_of(options);
        if let Some((known, ..)) = &made {
            scripts = vec![format!("load of {known}")];
        }
        Ok(Operation {
            noun: "transaction".to_owned(),
            unit: "tps".to_owned(),
            writes: settings.writes(),
            clients: settings.clients,
            rate: settings.rate,
            profile_rate: made.map(|(_, rate, _)| rate),
            is_searched: false,
            latency_limit_us: settings.latency_limit.map(|limit| limit.0),
            cache: Some(if options.text("cache") == Some("cold") { CacheState::Cold } else { CacheState::Warm }),
            scripts,
            scale: options.get("scale").or(options.get("data")).map(OptionValue::plain),
            query_mode: Some(settings.mode),
            log_sample: Some(settings.log_sample.unwrap_or(1.0)),
            script_settings: script_settings(&settings.scripts),
            settings: options.given(&SETTINGS).chain(setup.map(|setup| ("setup".to_owned(), setup))).collect(),
        })
    }

    fn window(&self, options: &Options) -> Window {
        let nothing = Window { warm_up: None, extent: Extent::Span { span_us: 0 } };
        Settings::from(options).map_or(nothing, |settings| settings.window)
    }

    fn make_quick(&self, options: &mut Options) {
        options::make_quick(options);
    }

    fn load(&self, place: &Place<'_>, options: &Options, memory: MemorySizes) -> Result<()> {
        let settings = settings(options)?;
        drive::load(place, settings.shipped, settings.units(memory))?;
        set_up(place, &settings)
    }

    fn tablespaces(&self, options: &Options) -> Vec<String> {
        MOVED.iter().filter_map(|(key, _)| options.text(key)).map(str::to_owned).collect()
    }

    fn place_data(&self, place: &Place<'_>, options: &Options) -> Result<()> {
        for (key, what) in MOVED {
            let Some(tablespace) = options.text(key) else { continue };
            let mut client = drive::server_of(place)?.connect_with_limit(CHECKPOINT_LIMIT)?;
            let name = tablespace.replace('"', "\"\"");
            client.query(&format!("ALTER {what} ALL IN TABLESPACE pg_default SET TABLESPACE \"{name}\""))?;
        }
        Ok(())
    }

    fn warm_up(&self, place: &Place<'_>, options: &Options, memory: MemorySizes, until: Until<'_>) -> Result<()> {
        let settings = settings(options)?;
        drive::warm_up(place, &settings, settings.units(memory), until)
    }

    fn decide(&self, place: &Place<'_>, options: &Options) -> Result<Options> {
        let settings = settings(options)?;
        let mut decided = Options::default();
        if settings.log_sample.is_none() {
            let sample = self.warm_up_rate(place).map_or(1.0, sample::for_rate);
            decided.set("log_sample", OptionValue::Number(sample));
        }
        Ok(decided)
    }

    fn warm_up_rate(&self, place: &Place<'_>) -> Option<f64> {
        let text = files::read_text(&place.raw.join(format!("{}.out", drive::WARM_UP))).ok()?;
        pgbench_summary::parse(&text).ok()?.tps
    }

    fn measure(&self, run: Measuring<'_>) -> Result<Counts> {
        let Measuring { place, options, memory, until, listener } = run;
        let settings = settings(options)?;
        let (tally, failed) = drive::measure(place, &settings, MEASURED, settings.units(memory), until, listener)?;
        let ended = drive::ended(drive::server_of(place)?, failed)?;
        // The summary of a pgbench that was ended early, if any, covers fewer clients or another time.
        let summary = match &ended {
            Some(_) => None,
            None => Some(files::read_text(&place.raw.join(format!("{MEASURED}.out")))?),
        };
        Ok(Counts { ended, ..read::counts(&settings, &tally, summary.as_deref())? })
    }
}

/// Runs `setup`, if there is one.
fn set_up(place: &Place<'_>, settings: &Settings) -> Result<()> {
    let mut client = drive::server_of(place)?.connect_with_limit(CHECKPOINT_LIMIT)?;
    if let Some(setup) = &settings.setup {
        let sql = String::from_utf8_lossy(&setup.text()?).into_owned();
        let done = client.query(&sql);
        done.map_err(|e| failed_line::named(e, "run `setup` of the workload,", setup, "setup", Some(client.done)))?;
    }
    client.query("checkpoint").map(drop)
}

/// Settings that the user's own scripts change in their sessions.
fn script_settings(scripts: &[Script]) -> Vec<FoundSetting> {
    let found = scripts.iter().flat_map(|script| {
        let name = match &script.source {
            ScriptSource::Builtin(_) => return Vec::new(),
            ScriptSource::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            ScriptSource::Sql(_) | ScriptSource::Shipped(_) => script.name.clone(),
        };
        // An unreadable script is one that pgbench could not run either.
        let bytes = script.source.text().unwrap_or_default();
        script_settings::settings_in(&String::from_utf8_lossy(&bytes), &name)
    });
    found.collect()
}

/// The settings from options that the plan has checked.
fn settings(options: &Options) -> Result<Settings> {
    Settings::from(options)
        .map_err(|problem| Error::user(format!("pgbench: `{}` {}", problem.key.unwrap_or_default(), problem.message)))
}

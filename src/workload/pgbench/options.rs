//! Options of a pgbench workload: specs, checks, and the typed settings for the rest of the code.

use super::scripts::{DEFAULT_SCRIPT, Script, ScriptSource, scripts, setup, shipped, writes};
use super::shipped::Shipped;
use crate::host::paths;
use crate::record::operation::Writes;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, OptionValue, Options};
use crate::record::window::Extent;
use crate::units::{Bytes, Micros};
use crate::workload::{MemorySizes, Window};
use std::sync::LazyLock;

/// Bytes of tables and indexes per unit of scale: `pgbench -i -s 50` on PostgreSQL 15 with 8 kB pages enlarged an empty
/// database by 784 228 352 bytes; at scale 10 it was 0.1 % more per unit.
pub const BYTES_PER_SCALE: u64 = 15_684_567;

/// Default checkpoint cycles: three, so that the first can be compared with the last.
const DEFAULT_CYCLES: u64 = 3;
/// Default for scripts that write no WAL, and so have no checkpoints.
const DEFAULT_DURATION: Micros = Micros(60_000_000);
const DEFAULT_WARMUP: Micros = Micros(10_000_000);
const QUICK_DURATION: &str = "10s";
const QUICK_WARMUP: &str = "2s";
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Option specs, in the order of the manual.
pub const SPECS: &[OptionSpec] = &[
    OptionSpec::with_default("script", OptionKind::SqlOrList, DEFAULT_SCRIPT).doc(
        "a shipped mix with tables of its own (orders, events, queue, documents), a script built into pgbench \
         (tpcb-like, simple-update, select-only), a file `path.sql`, relative to the plan's folder, or SQL that ends \
         with `;`; a list is mixed, with optional weights: `select-only@9`",
    ),
    OptionSpec::with_default("setup", OptionKind::Sql, "nothing").doc(
        "SQL that ends with `;`, or a file `path.sql`, run once after the data are loaded: the tables of a script of \
         your own",
    ),
    OptionSpec::optional("profile", OptionKind::Text).doc(
        "a file that `pgstrata profile` made, relative to the plan's folder: a load of that server's shape, in place of \
         `script`, `setup` and a size",
    ),
    OptionSpec::optional("scale", OptionKind::IntegerOrShare).doc(
        "number of units: 100 000 accounts (15 MiB), or 1 to 1.6 MiB of a shipped script; or a share of memory: `50% of \
         RAM`. A plan sets this or `data`, or has its tables from `setup`",
    ),
    OptionSpec::optional("data", OptionKind::Text).doc(
        "size of tables and indexes, in whole units: `20GB`; `2x RAM`, `50% of RAM`; or `in shared_buffers` (half of \
         it), `in memory` (40 % of RAM), `twice memory`",
    ),
    OptionSpec::with_default("clients", OptionKind::Integer { min: 1 }, "1")
        .doc("concurrent clients, each with its own connection"),
    OptionSpec::with_default("jobs", OptionKind::Integer { min: 1 }, "number of CPUs, at most the number of clients")
        .doc("pgbench threads shared by the clients"),
    OptionSpec::with_default("mode", OptionKind::OneOf(&["simple", "extended", "prepared"]), "simple")
        .doc("protocol for queries"),
    OptionSpec::optional("rate", OptionKind::Number).doc(
        "target rate in transactions per second for all clients together; latency then counts from when a \
         transaction was scheduled, and cases are ranked by the 99th percentile. Without it, as fast as possible: a \
         closed loop, whose latencies are service times",
    ),
    OptionSpec::optional("latency_limit", OptionKind::Span).doc(
        "slower transactions count as late; with `rate`, transactions already later than this are skipped, and cases \
         are also ranked by the share completed in time",
    ),
    OptionSpec::with_default("cycles", OptionKind::Integer { min: 1 }, "3").doc(
        "number of full checkpoint cycles to measure: from the start of one checkpoint to the start of the one that \
         many later. If the plan sets neither checkpoint_timeout nor max_wal_size, checkpoints run every 30 s. \
         Scripts that write no WAL have no cycles and are measured for `duration`",
    ),
    OptionSpec::with_default("limit", OptionKind::Span, "twice the time of the cycles at checkpoint_timeout").doc(
        "maximum time for the measured cycles, in whole seconds; a trial that hits it has fewer cycles, and the \
         report says so",
    ),
    OptionSpec::with_default(
        "duration",
        OptionKind::Span,
        "60s for scripts that write no WAL; full cycles for all others",
    )
    .doc(
        "measure for this time, in whole seconds, instead of full checkpoint cycles: the cost of checkpoints is then \
         missing or random in the results",
    ),
    OptionSpec::with_default(
        "warmup",
        OptionKind::Span,
        "with cycles, until two full ones agree, at most five; with a duration 10s",
    )
    .doc(
        "duration of the unmeasured warm-up, in whole seconds; `0s` for none. With cycles, the measurement then \
         starts at the next checkpoint",
    ),
    OptionSpec::with_default("tablespace", OptionKind::Text, "none: in the data directory")
        .doc("tablespace of the stack to move the tables to before the measurement"),
    OptionSpec::with_default("index_tablespace", OptionKind::Text, "none: in the data directory")
        .doc("tablespace of the stack to move the indexes to before the measurement"),
    OptionSpec::with_default("cache", OptionKind::OneOf(&["warm", "cold"]), "warm").doc(
        "state of the OS page cache at the start of the warm-up: warm (from copying the data in) or cold (dropped)",
    ),
    OptionSpec::with_default("autovacuum", OptionKind::OneOf(&["production", "deferred"]), "production").doc(
        "autovacuum as in production, by the server's settings, or deferred: off during warm-up and measurement \
         (`autovacuum = off`), so that it does not run at random times. Its cost is then missing in the results, and \
         the report says so",
    ),
    OptionSpec::with_default(
        "log_sample",
        OptionKind::Number,
        "all; above some 6,000 a second for each CPU a share that keeps the cost of logging below 2 %",
    )
    .doc(
        "share of transactions whose latency is logged, above 0 and up to 1: `0.01` for 1 %. Counts stay exact, \
         percentiles are computed from those logged, and the slowest took at least as long as the slowest of these",
    ),
    OptionSpec::with_default("statements", OptionKind::Boolean, "true")
        .doc("mean latency of each statement (pgbench -r; costs two clock readings per statement)"),
];

/// Largest value that pgbench accepts for clients, threads, scale and seconds (`option_parse_int` up to INT_MAX).
const MOST: u64 = i32::MAX as u64;

/// Cached: it reads cgroup files, and a plan of 10 000 cases asks 100 000 times.
static CPUS: LazyLock<u64> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64));

/// Transactions per second. pgbench counts the time to the next one in 64 bits of microseconds, and overflows silently.
const RATES: std::ops::RangeInclusive<f64> = 0.001..=1e9;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    Units(u64),
    Size(Bytes),
    /// Fills this share of the machine's memory, 0.5 for half.
    ShareOfMemory(f64),
    /// Fills this share of shared_buffers.
    ShareOfBuffers(f64),
}

/// Named sizes. Data grow during the run, and the page cache shares memory with shared_buffers: hence half of the one,
/// and less than half of the other.
const PRESETS: [(&str, Scale); 3] = [
    ("in shared_buffers", Scale::ShareOfBuffers(0.5)),
    ("in memory", Scale::ShareOfMemory(0.4)),
    ("twice memory", Scale::ShareOfMemory(2.0)),
];

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// At least one.
    pub scripts: Vec<Script>,
    /// What they are transactions of, if it ships with its tables.
    pub shipped: Option<&'static Shipped>,
    /// Runs after loading.
    pub setup: Option<ScriptSource>,
    pub scale: Scale,
    /// At least 1.
    pub clients: u64,
    /// Between 1 and `clients`.
    pub jobs: u64,
    /// `simple`, `extended`, `prepared`.
    pub mode: String,
    /// Transactions per second.
    pub rate: Option<f64>,
    /// Limit beyond which transactions are late.
    pub latency_limit: Option<Micros>,
    /// Whole seconds, at least one, or cycles.
    pub window: Window,
    /// Share of the transactions that is logged; `None` if the plan leaves that open.
    pub log_sample: Option<f64>,
    /// True if statements are timed.
    pub statements: bool,
}

impl Settings {
    /// Reads and checks the options, except that files exist.
    ///
    /// # Errors
    /// The key and what is wrong with it.
    pub fn from(options: &Options) -> Result<Settings, OptionProblem> {
        let clients = count(options, "clients")?.unwrap_or(1);
        let jobs = match count(options, "jobs")? {
            Some(jobs) if jobs > clients => {
                let message = format!("{jobs} threads exceed {clients} clients");
                return Err(OptionProblem::at("jobs", message)
                    .help("remove `jobs`: it defaults to the number of clients or CPUs"));
            }
            Some(jobs) => jobs,
            None => clients.min(*CPUS),
        };
        let rate = options.number("rate");
        if rate.is_some_and(|rate| !RATES.contains(&rate)) {
            let (least, most) = (RATES.start(), RATES.end());
            return Err(OptionProblem::at("rate", format!("must be from {least} to {most} transactions per second")));
        }
        let log_sample = options.number("log_sample");
        if log_sample.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return Err(OptionProblem::at("log_sample", "must be greater than 0 and at most 1"));
        }
        let latency_limit = options.positive_span("latency_limit")?;
        let scripts = scripts(options)?;
        let settings = Settings {
            window: window(options, writes(&scripts))?,
            scripts,
            shipped: shipped(options),
            setup: options.text("setup").map(setup).transpose()?,
            scale: size(options)?,
            clients,
            jobs,
            mode: options.text("mode").unwrap_or("simple").to_owned(),
            rate,
            latency_limit,
            log_sample,
            statements: options.boolean("statements").unwrap_or(true),
        };
        let unit = Bytes(settings.bytes_per_unit());
        match settings.scale {
            Scale::Size(size) if size < unit => {
                let name = settings.shipped.map_or("pgbench", |shipped| shipped.name);
                let message = format!("{size} is too small: one unit of {name} has {unit}");
                Err(OptionProblem::at("data", message).help("write at least that much, or scale = 1"))
            }
            _ => Ok(settings),
        }
    }

    /// Bytes of tables and indexes for each unit of scale.
    pub fn bytes_per_unit(&self) -> u64 {
        self.shipped.map_or(BYTES_PER_SCALE, |shipped| shipped.bytes_per_unit)
    }

    /// Units of scale for this machine; at least 1.
    pub fn units(&self, memory: MemorySizes) -> u64 {
        let (Bytes(bytes), share) = match self.scale {
            Scale::Units(units) => return units,
            Scale::Size(size) => (size, 1.0),
            Scale::ShareOfMemory(share) => (memory.total, share),
            Scale::ShareOfBuffers(share) => (memory.shared_buffers, share),
        };
        ((bytes as f64 * share / self.bytes_per_unit() as f64) as u64).max(1)
    }

    pub fn writes(&self) -> Writes {
        writes(&self.scripts)
    }

    /// True if a script or `setup` is pgbench's own, names a table of it or the scale, or cannot be read.
    pub fn uses_scale(&self) -> bool {
        let names = |source: &ScriptSource| {
            let sql = source.text().map(|sql| String::from_utf8_lossy(&sql).into_owned()).unwrap_or_default();
            sql.is_empty() || ["pgbench_", ":scale"].iter().any(|name| sql.contains(name))
        };
        self.scripts.iter().map(|script| &script.source).chain(&self.setup).any(names)
    }

    /// True if there is a built-in script: pgbench then determines the scale itself.
    pub fn uses_builtin(&self) -> bool {
        self.scripts.iter().any(|script| matches!(script.source, ScriptSource::Builtin(_)))
    }
}

/// A duration if the plan gives one or the scripts write nothing, whole checkpoint cycles otherwise.
fn window(options: &Options, writes: Writes) -> Result<Window, OptionProblem> {
    let duration = seconds(options, "duration")?;
    let limit = seconds(options, "limit")?;
    let cycles = count(options, "cycles")?;
    if let (Some(_), Some(key)) = (duration, cycles.map(|_| "cycles").or(limit.map(|_| "limit"))) {
        return Err(OptionProblem::at(key, "conflicts with `duration`")
            .help("`duration` measures for a fixed time, `cycles` for full checkpoint cycles: remove one of them"));
    }
    let warm_up = whole_seconds(options, "warmup")?;
    Ok(match duration.or((writes == Writes::Never).then_some(DEFAULT_DURATION)) {
        Some(span) => {
            Window { warm_up: Some(warm_up.unwrap_or(DEFAULT_WARMUP)), extent: Extent::Span { span_us: span.0 } }
        }
        None => {
            let limit_us = limit.map(|limit| limit.0);
            Window { warm_up, extent: Extent::Cycles { cycles: cycles.unwrap_or(DEFAULT_CYCLES), limit_us } }
        }
    })
}

/// Options of a pgbench that logs every transaction: a workload's options without its `own`.
pub fn logging_all(options: &Options, own: &[&str]) -> Options {
    let mut plain = options.clone();
    plain.0.retain(|key, _| !own.contains(&key.as_str()));
    plain.set("log_sample", OptionValue::Number(1.0));
    plain.set("statements", OptionValue::Boolean(false));
    plain
}

/// Replaces cycles by a short duration; keeps values from the plan.
pub fn make_quick(options: &mut Options) {
    for key in ["cycles", "limit"] {
        options.0.remove(key);
    }
    options.set_where_absent(&[("duration", QUICK_DURATION), ("warmup", QUICK_WARMUP)]);
}

/// The size from `data` or `scale`, of which there must be one.
fn size(options: &Options) -> Result<Scale, OptionProblem> {
    let Some(text) = options.text("data") else { return scale(options) };
    if options.get("scale").is_some() {
        return Err(OptionProblem::at("data", "conflicts with `scale`").help("remove one of them"));
    }
    if let Some((_, preset)) = PRESETS.iter().find(|(name, _)| *name == text.trim()) {
        return Ok(*preset);
    }
    match share_of_memory(text) {
        Some(share) => Ok(Scale::ShareOfMemory(share)),
        None => Bytes::parse(text).map(Scale::Size).map_err(|message| {
            OptionProblem::at("data", message).help(
                "write \"20GB\", \"2x RAM\", \"50% of RAM\", \"in shared_buffers\", \"in memory\" or \"twice memory\"",
            )
        }),
    }
}

/// `50% of RAM` as 0.5, `2x RAM` as 2.
fn share_of_memory(text: &str) -> Option<f64> {
    let before = text.trim().strip_suffix("RAM")?.trim_end();
    let (number, factor) = match before.strip_suffix("of") {
        Some(share) => (share.trim_end().strip_suffix('%')?, 0.01),
        None => (before.strip_suffix('x')?, 1.0),
    };
    let number = number.trim().parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite())?;
    Some(number * factor)
}

fn scale(options: &Options) -> Result<Scale, OptionProblem> {
    const FORMS: &str = "write a whole number of at least 1, a share of memory as \"50% of RAM\", or in place of it \
                         data = \"20GB\"";
    let wrong = match options.get("scale") {
        Some(OptionValue::Integer(_)) => {
            return Ok(Scale::Units(count(options, "scale").map_err(|e| e.help(FORMS))?.unwrap_or(1)));
        }
        Some(OptionValue::Text(text)) => {
            if let Some(share) = share_of_memory(text) {
                return Ok(Scale::ShareOfMemory(share));
            }
            format!("`{text}` is not a scale")
        }
        Some(other) => format!("`{}` is not a scale", other.plain()),
        None if options.get("setup").is_some() => return Ok(Scale::Units(1)),
        None if options.get("script").is_some() => {
            let help = "the script's own tables: setup = \"tables.sql\"; pgbench's, if it uses these: scale = 20";
            return Err(OptionProblem::at("scale", "is missing, and `setup`, too").help(help));
        }
        None => "is missing".to_owned(),
    };
    Err(OptionProblem::at("scale", wrong).help(FORMS))
}

fn count(options: &Options, key: &'static str) -> Result<Option<u64>, OptionProblem> {
    match options.integer(key) {
        Some(number) if (1..=MOST).contains(&number.max(0).unsigned_abs()) => Ok(Some(number.unsigned_abs())),
        Some(number) => Err(OptionProblem::at(key, format!("must be from 1 to {MOST}, found {number}"))),
        None => Ok(None),
    }
}

fn whole_seconds(options: &Options, key: &str) -> Result<Option<Micros>, OptionProblem> {
    match options.checked_span(key)? {
        Some(span) if !span.0.is_multiple_of(1_000_000) => {
            Err(OptionProblem::at(key, format!("{span} is not a whole number of seconds, as pgbench requires")))
        }
        Some(span) if span.0 / 1_000_000 > MOST => Err(OptionProblem::at(key, format!("must be at most {MOST}s"))),
        span => Ok(span),
    }
}

/// A time of whole seconds, at least one.
pub fn seconds(options: &Options, key: &str) -> Result<Option<Micros>, OptionProblem> {
    match whole_seconds(options, key)? {
        Some(Micros(0)) => Err(OptionProblem::at(key, "must be at least 1s")),
        span => Ok(span),
    }
}

/// Checks that the files of the scripts and of `setup` exist.
///
/// # Errors
/// The first such file.
pub fn check_files(settings: &Settings) -> Result<(), OptionProblem> {
    let scripts = settings.scripts.iter().map(|script| ("script", &script.source));
    for (key, source) in scripts.chain(settings.setup.iter().map(|setup| ("setup", setup))) {
        if let ScriptSource::File(path) = source
            && !paths::is_file(path)
        {
            return Err(OptionProblem::at(key, format!("the file {} does not exist", path.display()))
                .help("relative paths start at the plan's folder"));
        }
        if source.text().is_ok_and(|sql| sql.starts_with(BYTE_ORDER_MARK)) {
            let what = "a script begins with a byte order mark, which a server takes for SQL";
            return Err(OptionProblem::at(key, what).help("save it as UTF-8 without a byte order mark"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, OptionValue)]) -> Options {
        let mut options = Options::default();
        options.set("scale", OptionValue::Integer(10));
        for (key, value) in pairs {
            options.set(key, value.clone());
        }
        options
    }

    /// A machine with this many GiB, and a server with 1 GiB of shared_buffers.
    fn memory(gib: u64) -> MemorySizes {
        MemorySizes { total: Bytes(gib << 30), shared_buffers: Bytes(1 << 30) }
    }

    fn text(text: &str) -> OptionValue {
        OptionValue::Text(text.to_owned())
    }

    #[test]
    fn a_scale_alone_is_a_whole_workload() {
        let settings = Settings::from(&options(&[])).unwrap();
        assert_eq!(settings.scripts[0].name, "tpcb-like");
        assert_eq!((settings.clients, settings.jobs, settings.units(memory(1))), (1, 1, 10));
        assert_eq!(settings.window, Window { warm_up: None, extent: Extent::Cycles { cycles: 3, limit_us: None } });
        assert!(settings.statements && settings.uses_builtin());
    }

    #[test]
    fn the_window_is_whole_checkpoint_cycles_by_default() {
        let window = |pairs: &[(&str, OptionValue)]| Settings::from(&options(pairs)).unwrap().window;
        let span = |warm_up: u64, span_us| Window { warm_up: Some(Micros(warm_up)), extent: Extent::Span { span_us } };
        let limited = window(&[("cycles", OptionValue::Integer(5)), ("limit", text("10min"))]);
        assert_eq!(limited.extent, Extent::Cycles { cycles: 5, limit_us: Some(600_000_000) });
        assert_eq!(window(&[("duration", text("7s"))]), span(10_000_000, 7_000_000));
        assert_eq!(window(&[("script", text("select-only"))]), span(10_000_000, 60_000_000));
        assert_eq!(window(&[("warmup", text("0s"))]).warm_up, Some(Micros(0)));
        for key in ["cycles", "limit"] {
            let value = if key == "limit" { text("9s") } else { OptionValue::Integer(2) };
            let problem = Settings::from(&options(&[("duration", text("7s")), (key, value)])).unwrap_err();
            assert_eq!(problem.key.as_deref(), Some(key));
        }
    }

    #[test]
    fn quick_shortens_the_duration_but_keeps_values_of_the_plan() {
        let quick = |pairs: &[(&str, OptionValue)]| {
            let mut options = options(pairs);
            make_quick(&mut options);
            Settings::from(&options).unwrap().window
        };
        let span = |warm_up: u64, span_us| Window { warm_up: Some(Micros(warm_up)), extent: Extent::Span { span_us } };
        assert_eq!(quick(&[("cycles", OptionValue::Integer(5)), ("limit", text("9s"))]), span(2_000_000, 10_000_000));
        assert_eq!(quick(&[("duration", text("3s")), ("warmup", text("0s"))]), span(0, 3_000_000));
    }

    #[test]
    fn a_share_of_memory_becomes_units() {
        let half = Settings::from(&options(&[("scale", text("50% of RAM"))])).unwrap();
        assert_eq!(half.units(memory(16)), 547);
        assert_eq!(half.units(memory(0)), 1);
        assert!(Settings::from(&options(&[("scale", text("50%"))])).is_err());
        assert!(Settings::from(&options(&[("scale", text("-5% of RAM"))])).is_err());
        assert!(Settings::from(&options(&[("scale", OptionValue::Integer(0))])).is_err());
    }

    #[test]
    fn data_size_is_in_whole_units_of_the_script() {
        let sized = |script: &str, data: &str| {
            let mut sized = options(&[("script", text(script)), ("data", text(data))]);
            sized.0.remove("scale");
            Settings::from(&sized)
        };
        let units = |data: &str| sized("tpcb-like", data).unwrap().units(memory(16));
        assert_eq!(["in shared_buffers", "in memory", "twice memory"].map(units), [34, 438, 2190]);
        assert_eq!(["2x RAM", "2 x RAM", "200% of RAM", "20MB", "1.5GB"].map(units), [2190, 2190, 2190, 1, 102]);
        assert_eq!(sized("orders", "20MB").unwrap().units(memory(16)), 12);
        assert!(sized("events", "1kB").unwrap_err().message.contains("one unit of events has 1.04 MiB"));
        for wrong in ["20", "twice RAM", "x RAM", "0x RAM", "of RAM", "14MB"] {
            assert_eq!(sized("tpcb-like", wrong).unwrap_err().key.as_deref(), Some("data"), "{wrong}");
        }
        let both = Settings::from(&options(&[("data", text("20GB"))])).unwrap_err();
        assert!(both.message.contains("conflicts with `scale`"));
        assert!(Settings::from(&Options::default()).unwrap_err().help.unwrap().contains("data ="));
    }

    #[test]
    fn what_pgbench_could_not_do_is_refused_with_its_key() {
        for (key, value) in [
            ("duration", text("1500ms")),
            ("duration", text("0s")),
            ("warmup", text("10")),
            ("jobs", OptionValue::Integer(2)),
            ("rate", OptionValue::Number(0.0)),
            ("latency_limit", text("0ms")),
            ("rate", OptionValue::Number(1e-300)),
            ("rate", OptionValue::Number(1e300)),
            ("clients", OptionValue::Integer(0)),
            ("clients", OptionValue::Integer(1 << 31)),
            ("clients", OptionValue::Integer(i64::MAX)),
            ("scale", OptionValue::Integer(i64::MAX)),
            ("cycles", OptionValue::Integer(i64::MAX)),
            ("duration", text("99999999d")),
            ("log_sample", OptionValue::Number(0.0)),
            ("log_sample", OptionValue::Number(1.5)),
        ] {
            let problem = Settings::from(&options(&[(key, value)])).unwrap_err();
            assert_eq!(problem.key.as_deref(), Some(key), "{problem:?}");
        }
    }
}

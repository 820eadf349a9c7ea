//! `pgstrata probe`: speed, steadiness and credibility of synced writes in a folder.

use super::out;
use crate::analyse::probe::findings::ProbeFindings;
use crate::analyse::probe::requirements::{self, Compliance, Requirement, RequirementFinding};
use crate::cluster::install;
use crate::error::{EXIT_INCOMPLETE, EXIT_REQUIREMENT, EXIT_UNDECIDED, Error, Result};
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::host::time::{now, wall_us};
use crate::probe::{self, Observer, ProbeRequest, RowChoice, Stage};
use crate::record::probe::ProbeRecord;
use crate::units::{Bytes, Micros};
use crate::{analyse, report};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// Major version for the recommendation if no server is installed.
const NEWEST_SERVER: u32 = 18;

/// Measure how fast, consistent and plausible synced writes are in a folder
///
/// Writes small files into DIR with each way to make a write durable: pg_test_fsync's rows, rows that write WAL as the
/// server does, and newer methods that PostgreSQL does not use. Times every operation, counts device I/O,
/// checks the results for plausibility, and recommends a wal_sync_method.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata probe /var/tmp                           ten seconds; no PostgreSQL, no root needed
  pgstrata probe . --seconds 60 --precision 1       a minute, or until every rate is within ±1 %
  pgstrata probe . --rows all                       every row, including those of pg_test_fsync
  pgstrata probe . --require durable,p99=5ms,tps=1000    for CI: exit code 0 only if all are met
  pgstrata probe . --json | jq .findings.credibility    record and findings as JSON
  pgstrata probe . --format pg_test_fsync           output format of pg_test_fsync 18

It writes four files of at most 16 MiB each, and at most 5 % of the free space, to a private folder
in DIR, which is always removed at exit. On copy-on-write filesystems, overwritten blocks stay
allocated until the next commit.

Differences from pg_test_fsync: rows run round-robin in short slices instead of 5 s each, so that all
rows share a device's cache or burst credit; the first operation of each slice is not counted; a
failed fdatasync is a failure, not a fast success; the monotonic clock is read after every operation;
system calls bypass the libc wrappers. In memory or without a sync, that alone makes a row up to a
third faster here. --format pg_test_fsync prints the average whole seconds per row, at least 1.

Which row matches PostgreSQL: the WAL row of its wal_sync_method, buffered, recycled segment, as long
as each commit fills a page. Before 16, servers with wal_level=minimal used O_DIRECT for the open_*
methods; since 16, servers with debug_io_direct=wal use it for all methods. pg_test_fsync always uses
it for open_*, so its open_* rows do not match a server with default settings. The mmap row makes the
page writable with madvise(MADV_POPULATE_WRITE), where a program would take a page fault.

--require takes durable (the credibility is `flushed` or `declared stable`, and no sync failed),
tps=N (at least N WAL writes per second), p50=TIME, p95=TIME, p99=TIME and p99.9=TIME (at most), all for the
row that matches a server with default settings. A requirement passes if the whole 95 % CI meets it,
fails if none of it does, and is otherwise undecided, which is not a pass. A probe of a few seconds
may leave percentiles undecided.

Exit code: 0 measured, 1 measured but a sync or write failed or files are left, 2 DIR is not a directory,
3 DIR is not writable, is full or disappeared, 6 a requirement is not met, 7 one is undecided and
the others are met, 130 interrupted.")]
pub struct Args {
    /// Folder on the filesystem to probe
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Rows to measure: main, all, ids or id prefixes (wal, one_write, newer.msync); those of the answer always run
    ///
    /// main has one row per wal_sync_method writing as the WAL is written, group commit, and fdatasync of a single
    /// write, for comparison with published figures. Fewer rows get more time each.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "main", hide_default_value = true)]
    rows: Vec<String>,
    /// Requirements, one exit code: durable, tps=N, p50=TIME, p95=TIME, p99=TIME, p99.9=TIME
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Requirement::parse)]
    require: Vec<Requirement>,
    /// Measuring time: seconds (0.2 to 86400) or a span like 2min; ends early when every rate reaches --precision
    #[arg(long, value_name = "N", default_value = "10", value_parser = seconds)]
    seconds: Duration,
    /// Target half-width of each rate's 95 % CI, percent (0 to 50); 0 uses the full time
    #[arg(long, value_name = "PCT", default_value = "5", value_parser = precision)]
    precision: f64,
    /// WAL block size: 1kB to 64kB, as the server was built
    #[arg(long, value_name = "SIZE", default_value = "8kB", value_parser = wal_block)]
    wal_block: u32,
    /// Number of writers in the group commit row (2 to 256)
    #[arg(long, value_name = "N", default_value = "8", value_parser = writers)]
    writers: u32,
    /// PostgreSQL major version for the recommendation (12 to 18) [default: the newest installed, else 18]
    #[arg(long, value_name = "MAJOR", value_parser = server)]
    server: Option<u32>,
    /// Seed for the order of rows [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Output format; pg_test_fsync measures only its own rows
    #[arg(long, value_name = "FORM", value_parser = ["txt", "json", "csv", "pg_test_fsync"], default_value = "txt")]
    format: String,
    /// Same as --format json
    #[arg(long, conflicts_with_all = ["format", "csv"])]
    json: bool,
    /// Same as --format csv: one line per row
    #[arg(long, conflicts_with = "format")]
    csv: bool,
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = match text.parse() {
        Ok(seconds) => seconds,
        Err(_) => {
            Micros::parse(text).map_err(|_| "expected seconds, or a span such as 30s or 2min".to_owned())?.seconds()
        }
    };
    match (0.2..=86_400.0).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err("must be from 0.2 to 86400 seconds".to_owned()),
    }
}

fn precision(text: &str) -> Result<f64, String> {
    let percent: f64 =
        text.strip_suffix('%').unwrap_or(text).parse().map_err(|_| "expected a percentage".to_owned())?;
    match (0.0..=50.0).contains(&percent) {
        true => Ok(percent.abs() / 100.0),
        false => Err("must be from 0 to 50 percent".to_owned()),
    }
}

fn writers(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (2..=256).contains(number));
    number.ok_or_else(|| "must be a whole number from 2 to 256".to_owned())
}

fn server(text: &str) -> Result<u32, String> {
    let major = text.split('.').next().unwrap_or(text).parse().ok();
    match major {
        Some(major @ 12..=18) => Ok(major),
        Some(..12) => Err("this PostgreSQL version is too old: must be a major version from 12 to 18".to_owned()),
        _ => Err("must be a major version from 12 to 18".to_owned()),
    }
}

fn wal_block(text: &str) -> Result<u32, String> {
    let Bytes(bytes) = Bytes::parse(text)?;
    match (10..=16).map(|power| 1u64 << power).find(|size| *size == bytes) {
        Some(size) => u32::try_from(size).map_err(|e| e.to_string()),
        None => Err("WAL block size must be 1kB, 2kB, 4kB, 8kB, 16kB, 32kB or 64kB".to_owned()),
    }
}

/// Messages at the first and the second interrupt.
const ASKED: &[u8] = b"\rinterrupted: removing the files; interrupt again to exit immediately\n";
const LEFT: &[u8] = b"\rexited immediately: remove any folder pgstrata-probe-... left in DIR with rm -r\n";

/// Installs the handler for Ctrl-C; call once per process.
pub(super) fn interrupt() -> Result<Interrupt> {
    Interrupt::listen_saying(ASKED, LEFT)
}

/// Output of `--json`.
#[derive(Serialize)]
struct ProbeDocument<'a> {
    record: &'a ProbeRecord,
    findings: &'a ProbeFindings,
    /// Outcome of each `--require`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requirements: Vec<RequirementFinding>,
}

/// Probes and prints.
///
/// # Errors
/// If the folder cannot be probed; on Ctrl-C.
pub fn run(args: &Args) -> Result<u8> {
    let host = Host::this();
    let interrupt = interrupt()?;
    let format = match () {
        () if args.json => "json",
        () if args.csv => "csv",
        () => args.format.as_str(),
    };
    let choice = match format {
        "pg_test_fsync" => RowChoice::Compat,
        _ => RowChoice::of_names(&args.rows)?,
    };
    if choice == RowChoice::Compat && !args.require.is_empty() {
        return Err(Error::user("--format pg_test_fsync does not measure the rows that --require needs")
            .hint("omit --format, or use --json"));
    }
    let request = ProbeRequest {
        folder: args.folder.clone(),
        choice,
        budget: args.seconds,
        precision: args.precision,
        wal_block: args.wal_block,
        writers: args.writers,
        free_over_files: probe::FREE_OVER_FILES,
        seed: args.seed.unwrap_or_else(wall_us),
    };
    // The one that a plan's `auto` uses too.
    let server = args.server.or_else(|| install::find(&host, "auto").ok().map(|install| install.major));
    let record = probe_folder(&request, &interrupt)?;
    let findings = analyse::probe::find(&record, server.unwrap_or(NEWEST_SERVER));
    let requirements = requirements::judge(&record, &findings, &args.require);
    let [missed, undecided] =
        [Compliance::Fail, Compliance::Undecided].map(|outcome| requirements.iter().any(|one| one.outcome == outcome));
    if format != "txt" {
        record.notes.iter().chain(&record.left_behind).for_each(|note| out::remark(&out::harmless(note)));
        requirements.iter().for_each(|one| out::remark(report::probe::requirement(one).trim_end()));
    }
    match format {
        "json" => out::json(&ProbeDocument { record: &record, findings: &findings, requirements })?,
        "csv" => out::bytes(report::probe::csv(&findings).as_bytes())?,
        "pg_test_fsync" => out::bytes(report::probe::pg_test_fsync(&findings).as_bytes())?,
        _ => out::fitted(|| report::probe::terminal(&findings, &requirements))?,
    }
    let failed = record.left_behind.is_some()
        || record.growth_failure.is_some()
        || record.rows.iter().any(|row| row.failure.is_some());
    Ok(match failed {
        _ if missed => EXIT_REQUIREMENT,
        _ if undecided => EXIT_UNDECIDED,
        true => EXIT_INCOMPLETE,
        false => 0,
    })
}

/// Measures with progress on standard error.
///
/// # Errors
/// If the folder cannot be probed; on Ctrl-C.
pub(super) fn probe_folder(request: &ProbeRequest, interrupt: &Interrupt) -> Result<ProbeRecord> {
    let progress = ProbeProgress::new(request.budget);
    let measured = probe::measure(&Host::this(), request, interrupt, &progress);
    progress.bar.finish_and_clear();
    measured
}

/// A progress bar on standard error, if that is a terminal.
struct ProbeProgress {
    bar: ProgressBar,
    begun: crate::host::time::Instant,
}

impl ProbeProgress {
    fn new(budget: Duration) -> ProbeProgress {
        let bar = match std::io::stderr().is_terminal() {
            true => ProgressBar::new(u64::try_from(budget.as_millis()).unwrap_or(u64::MAX)),
            false => ProgressBar::hidden(),
        };
        // The template is a constant; if it were wrong, the default style would be used.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {wide_msg}") {
            bar.set_style(style);
        }
        ProbeProgress { bar, begun: now() }
    }
}

impl Observer for ProbeProgress {
    fn stage(&self, stage: Stage) {
        let words = match stage {
            Stage::Idle => "watching the idle devices".to_owned(),
            Stage::Files => "writing the files".to_owned(),
            Stage::Rows { known, all } => format!("{known} of {all} rows done or unavailable"),
            Stage::Growth => "syncing increasing amounts".to_owned(),
        };
        self.bar.set_position(u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.bar.set_message(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_that_make_no_sense_are_refused() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(precision("2%"), Ok(0.02));
        assert_eq!(wal_block("64kB"), Ok(65_536));
        for bad in ["0", "-1", "nan", "inf", "1e9", "ten", ""] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
        for bad in ["-1", "nan", "51", "x"] {
            assert!(precision(bad).is_err(), "{bad}");
        }
        for bad in ["512B", "128kB", "9kB", "8"] {
            assert!(wal_block(bad).is_err(), "{bad}");
        }
    }
}

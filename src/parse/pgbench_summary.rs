//! pgbench's final output, versions 12 to 18 (`printResults` in pgbench.c).
//!
//! An unknown line is an error: a figure that a newer version prints under another name must not be lost silently.

use crate::error::{Error, Result};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    pub transactions: u64,
    /// Transactions failed; `None` before PostgreSQL 15.
    pub failed: Option<u64>,
    /// Transactions skipped because they were already late; with `-R` and `-L`.
    pub skipped: Option<u64>,
    /// Transactions slower than the limit; with `-L`.
    pub late: Option<u64>,
    /// Mean latency, milliseconds with three decimals.
    pub latency_ms_mean: Option<f64>,
    /// Standard deviation of the latency, milliseconds. Printed only if latencies were measured individually: without
    /// it, `latency_ms_mean` is duration x clients / transactions.
    pub latency_ms_stddev: Option<f64>,
    /// Time to set up the connections, milliseconds; since PostgreSQL 14.
    pub connection_ms: Option<f64>,
    /// Transactions per second, excluding the time to set up connections.
    pub tps: Option<f64>,
    /// The scripts in order; a single script has no name.
    pub scripts: Vec<Vec<Statement>>,
}

/// One statement (or backslash command) of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Mean latency, milliseconds.
    pub latency_ms_mean: f64,
    /// Failures; `None` before PostgreSQL 15.
    pub failures: Option<u64>,
    /// First line of the statement.
    pub text: String,
}

/// Reads a summary.
///
/// # Errors
/// With line number, line and expected form; also if the number of transactions is missing.
pub fn parse(text: &str) -> Result<Summary> {
    let mut reading = SummaryReader::default();
    for (index, line) in text.lines().enumerate() {
        reading.line(line.trim_end()).map_err(|wanted| {
            Error::tool(format!("pgbench's summary, line {}: expected {wanted}, found `{line}`", index + 1))
        })?;
    }
    if !reading.has_transactions {
        return Err(Error::tool("pgbench's summary: expected a line `number of transactions actually processed: N`"));
    }
    Ok(reading.summary)
}

#[derive(Default)]
struct SummaryReader {
    summary: Summary,
    has_transactions: bool,
    /// Inside a list of statements: how many counts stand between a latency and its statement.
    statements: Option<usize>,
}

type Wanted = Result<(), &'static str>;

impl SummaryReader {
    fn line(&mut self, line: &str) -> Wanted {
        if let Some(counts) = heading(line) {
            self.statements = Some(counts);
            if self.summary.scripts.is_empty() {
                self.summary.scripts.push(Vec::new());
            }
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix("SQL script ") {
            rest.split_once(": ").ok_or("`SQL script N: NAME`")?;
            self.statements = None;
            self.summary.scripts.push(Vec::new());
            return Ok(());
        }
        if let Some(item) = line.strip_prefix(" - ") {
            let is_of_scripts = item.starts_with("weight: ") || item.contains(" transactions (");
            return if is_of_scripts { Ok(()) } else { SummaryReader::default().item(item) };
        }
        if let Some(counts) = self.statements {
            let statement = statement(line, counts)?;
            self.summary.scripts.last_mut().ok_or("a script")?.push(statement);
            return Ok(());
        }
        self.item(line)
    }

    /// Reads one line about all scripts together.
    fn item(&mut self, line: &str) -> Wanted {
        const IGNORED: [&str; 18] = [
            "pgbench (",
            "starting vacuum",
            "transaction type: ",
            "scaling factor: ",
            "partition method: ",
            "partitions: ",
            "query mode: ",
            "number of clients: ",
            "number of threads: ",
            "maximum number of tries: ",
            "duration: ",
            "number of transactions per client: ",
            "number of serialization failures: ",
            "number of deadlock failures: ",
            "number of other failures: ",
            "number of transactions retried: ",
            "total number of retries: ",
            "rate limit schedule lag: avg ",
        ];
        let summary = &mut self.summary;
        if let Some(rest) = line.strip_prefix("number of transactions actually processed: ") {
            summary.transactions = whole(before_bracket(rest).split('/').next().unwrap_or_default())?;
            self.has_transactions = true;
        } else if let Some(rest) = line.strip_prefix("number of failed transactions: ") {
            summary.failed = Some(whole(before_bracket(rest))?);
        } else if let Some(rest) = line.strip_prefix("number of transactions skipped: ") {
            summary.skipped = Some(whole(before_bracket(rest))?);
        } else if let Some(rest) = line.strip_prefix("number of transactions above the ") {
            let late = rest.split_once(" ms latency limit: ").ok_or("`N ms latency limit: LATE/ALL`")?.1;
            summary.late = Some(whole(before_bracket(late).split('/').next().unwrap_or_default())?);
        } else if let Some(rest) = line.strip_prefix("latency average = ") {
            summary.latency_ms_mean = Some(millis(rest.trim_end_matches(" (including failures)"))?);
        } else if let Some(rest) = line.strip_prefix("latency stddev = ") {
            summary.latency_ms_stddev = Some(millis(rest)?);
        } else if let Some(rest) = line.strip_prefix("initial connection time = ") {
            summary.connection_ms = Some(millis(rest)?);
        } else if let Some(rest) = line.strip_prefix("tps = ") {
            // Two lines before PostgreSQL 14; the later one excludes the set-up of connections.
            summary.tps = Some(real(before_bracket(rest))?);
        } else if !(line.is_empty() || IGNORED.iter().any(|known| line.starts_with(known))) {
            return Err("a line that pgbench 12 to 18 prints");
        }
        Ok(())
    }
}

fn heading(line: &str) -> Option<usize> {
    match line.strip_prefix(" - ").unwrap_or(line) {
        "statement latencies in milliseconds:" => Some(0),
        "statement latencies in milliseconds and failures:" => Some(1),
        "statement latencies in milliseconds, failures and retries:" => Some(2),
        _ => None,
    }
}

/// `   0.055           0  BEGIN;`: the numbers of the heading's columns, then the statement.
fn statement(line: &str, counts: usize) -> Result<Statement, &'static str> {
    const WANTED: &str = "a statement's latency in milliseconds, its failures and its text";
    let (latency, mut rest) = line.trim_start().split_once(' ').ok_or(WANTED)?;
    let mut failures = None;
    for _ in 0..counts {
        let (number, after) = rest.trim_start().split_once(' ').ok_or(WANTED)?;
        let number = whole(number).map_err(|_| WANTED)?;
        failures.get_or_insert(number);
        rest = after;
    }
    let text = rest.trim_start();
    if text.is_empty() {
        return Err(WANTED);
    }
    Ok(Statement { latency_ms_mean: real(latency).map_err(|_| WANTED)?, failures, text: text.to_owned() })
}

fn before_bracket(text: &str) -> &str {
    text.split_once(" (").map_or(text, |(before, _)| before)
}

fn millis(text: &str) -> Result<f64, &'static str> {
    real(text.strip_suffix(" ms").ok_or("a number of milliseconds")?)
}

fn real(text: &str) -> Result<f64, &'static str> {
    text.parse().map_err(|_| "a number")
}

fn whole(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "a whole number")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> String {
        let path = format!("{}/tests/fixtures/pgbench/{name}.out", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// From PostgreSQL 13, in the form shown in its manual.
    const THIRTEEN: &str = "transaction type: multiple scripts
scaling factor: 1
query mode: simple
number of clients: 10
number of threads: 1
duration: 10 s
number of transactions actually processed: 10000
number of transactions skipped: 12 (0.120 %)
number of transactions above the 20.0 ms latency limit: 7/10000 (0.070 %)
latency average = 15.844 ms
latency stddev = 2.715 ms
rate limit schedule lag: avg 0.319 (max 1.047) ms
tps = 618.764555 (including connections establishing)
tps = 622.977698 (excluding connections establishing)
SQL script 1: <builtin: TPC-B (sort of)>
 - weight: 1 (targets 50.0% of total)
 - 4984 transactions (49.8% of total, tps = 308.1)
 - number of transactions skipped: 5 (0.100%)
 - latency average = 16.000 ms
 - latency stddev = 2.000 ms
 - statement latencies in milliseconds:
        0.002  \\set aid random(1, 100000 * :scale)
        0.326  BEGIN;
SQL script 2: my.sql
 - weight: 1 (targets 50.0% of total)
 - 5016 transactions (50.2% of total, tps = 310.6)
 - latency average = 15.000 ms
 - latency stddev = 2.000 ms
 - statement latencies in milliseconds:
        5.528  UPDATE t SET x = 1;
";

    #[test]
    fn the_summary_of_version_13_reads() {
        let summary = parse(THIRTEEN).unwrap();
        assert_eq!((summary.transactions, summary.failed), (10_000, None));
        assert_eq!((summary.skipped, summary.late), (Some(12), Some(7)));
        assert_eq!((summary.latency_ms_mean, summary.latency_ms_stddev), (Some(15.844), Some(2.715)));
        assert_eq!(summary.connection_ms, None);
        assert_eq!(summary.tps, Some(622.977_698));
        assert_eq!(summary.scripts.len(), 2);
        assert_eq!(summary.scripts[0][0].text, "\\set aid random(1, 100000 * :scale)");
        assert_eq!(summary.scripts[1][0].failures, None);
    }

    #[test]
    fn pgbench_summaries_of_both_versions_parse_for_every_run_kind() {
        for version in ["15", "18"] {
            let plain = parse(&fixture(&format!("{version}-statements"))).unwrap();
            assert!(plain.transactions > 0 && plain.failed == Some(0) && plain.tps.is_some());
            assert!(plain.latency_ms_mean.is_some() && plain.connection_ms.is_some());
            assert_eq!(plain.scripts.len(), 1);
            assert_eq!(plain.scripts[0].len(), 11);
            assert_eq!(plain.scripts[0][10].text, "END;");
            assert_eq!(plain.scripts[0][10].failures, Some(0));

            let unmeasured = parse(&fixture(&format!("{version}-unmeasured"))).unwrap();
            assert!(unmeasured.latency_ms_mean.is_some() && unmeasured.latency_ms_stddev.is_none());

            let limited = parse(&fixture(&format!("{version}-rate-limit"))).unwrap();
            assert!(limited.skipped.is_some() && limited.late.is_some());
            assert!(limited.latency_ms_stddev.is_some());

            let mixed = parse(&fixture(&format!("{version}-scripts"))).unwrap();
            assert!(mixed.scripts.len() > 1);

            let failing = parse(&fixture(&format!("{version}-failures"))).unwrap();
            assert!(failing.failed.unwrap() > 0, "{version}");
            assert!(failing.scripts[0].iter().any(|statement| statement.failures > Some(0)));
        }
    }

    #[test]
    fn an_unknown_line_and_a_bad_number_name_themselves() {
        let error = parse("number of transactions actually processed: 5\nlatency median = 3 ms\n").unwrap_err();
        assert!(error.to_string().contains("line 2") && error.to_string().contains("latency median"), "{error}");
        let error = parse("number of transactions actually processed: many\n").unwrap_err().to_string();
        assert!(error.contains("line 1: expected a whole number"), "{error}");
        assert!(parse("").is_err());
        let error = parse("statement latencies in milliseconds:\n x\n").unwrap_err().to_string();
        assert!(error.contains("expected a statement's latency"), "{error}");
    }
}

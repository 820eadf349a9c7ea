//! What the clients' backends wait for: `pg_stat_activity` ten times a second, on a thread and connection of its own.
//!
//! Counted are the backends of clients (`backend_type = 'client backend'`), without pgstrata's own connections
//! ([`APPLICATION_NAME`]). A sample that could not be taken, or came too late for its moment, does not count.

use super::{APPLICATION_NAME, ServerAddress, connect};
use crate::cluster::client::{Client, TextRow};
use crate::error::{Error, Result};
use crate::host::time::{now, sleep, thread_cpu_us};
use crate::record::trial::{WaitCount, WaitFigures};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Samples a second aimed at.
pub const PER_SECOND: u32 = 10;

/// What the sampling leaves behind.
#[derive(Debug, Clone, PartialEq)]
pub struct Waits {
    pub figures: WaitFigures,
    /// CPU time that the sampling cost on our side, microseconds.
    pub cpu_us: u64,
}

/// Class and event of a wait, as [`WaitCount`] has them. The names are the server's: `WALSync` is `WalSync` from
/// PostgreSQL 17 on.
type Wait = (String, String);

/// Samples until `stop` is set. Blocks; belongs on a thread of its own. A connection that breaks is made anew.
///
/// # Errors
/// When not one sample could be taken, with the server's last words.
pub fn sample(server: &ServerAddress, stop: &AtomicBool) -> Result<Waits> {
    let cpu_before = thread_cpu_us();
    let sql = activity_sql();
    let step = Duration::from_secs(1) / PER_SECOND;
    let begun = now();
    let mut session: Option<Client> = None;
    let mut seen: BTreeMap<Wait, u64> = BTreeMap::new();
    let mut samples = 0;
    let mut trouble = Error::host("stopped before the first sample");
    let mut due: u32 = 0;
    while !stop.load(Ordering::SeqCst) {
        match one(&mut session, server, &sql) {
            Ok(waits) => {
                samples += 1;
                for (wait, backends) in waits {
                    *seen.entry(wait).or_default() += backends;
                }
            }
            Err(error) => {
                session = None;
                trouble = error;
            }
        }
        // Moments that passed meanwhile are skipped: two samples at once would count one moment twice.
        due = due.saturating_add(1).max(elapsed_steps(begun.elapsed(), step).saturating_add(1));
        sleep((begun + step * due).saturating_duration_since(now()));
    }
    if samples == 0 {
        return Err(trouble.while_doing("sample what the backends wait for"));
    }
    Ok(Waits { figures: figures(samples, seen), cpu_us: thread_cpu_us().saturating_sub(cpu_before) })
}

fn elapsed_steps(elapsed: Duration, step: Duration) -> u32 {
    u32::try_from(elapsed.as_nanos() / step.as_nanos()).unwrap_or(u32::MAX)
}

fn figures(samples: u64, seen: BTreeMap<Wait, u64>) -> WaitFigures {
    let backends = seen.values().sum();
    let mut waits: Vec<WaitCount> =
        seen.into_iter().map(|((class, event), count)| WaitCount { class, event, count }).collect();
    waits.sort_by_key(|wait| std::cmp::Reverse(wait.count));
    WaitFigures { samples, per_second: PER_SECOND, backends, waits }
}

/// The backends of clients, grouped by what they wait for now.
fn activity_sql() -> String {
    format!(
        "SELECT wait_event_type, wait_event, count(*) FROM pg_stat_activity \
         WHERE backend_type = 'client backend' AND application_name <> '{APPLICATION_NAME}' \
         AND pid <> pg_backend_pid() GROUP BY 1, 2"
    )
}

fn one(session: &mut Option<Client>, server: &ServerAddress, sql: &str) -> Result<Vec<(Wait, u64)>> {
    let client = match session {
        Some(client) => client,
        None => session.insert(connect(server)?),
    };
    client.query(sql)?.iter().map(counted).collect()
}

/// One row of [`activity_sql`].
///
/// The column `state` is not asked for: the view reads it a moment before the wait (`pg_stat_get_activity` copies all
/// states first), so that a busy server shows backends that are idle and wait for a WAL sync. The wait is the newer
/// truth. A backend between statements waits for its client (`Client`, `ClientRead`), in a transaction or not; one that
/// waits for nothing uses the CPU.
fn counted(row: &TextRow) -> Result<(Wait, u64)> {
    let [class, event, backends] = row.as_slice() else {
        return Err(Error::tool(format!("pg_stat_activity came as {} columns, not 3", row.len())));
    };
    let text = backends.as_deref().unwrap_or_default();
    let backends = text
        .parse()
        .map_err(|_| Error::tool(format!("pg_stat_activity: count is `{text}`, not a whole number (u64)")))?;
    let class = class.as_deref().unwrap_or("CPU");
    Ok(((class.to_owned(), event.as_deref().unwrap_or(class).to_owned()), backends))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::throwaway_server::{ThrowawayServer, installations};

    fn row(class: Option<&str>, event: Option<&str>, backends: &str) -> TextRow {
        [class, event, Some(backends)].map(|text| text.map(str::to_owned)).into()
    }

    #[test]
    fn backends_are_classed_by_what_they_wait_for_and_those_that_do_not_wait_use_the_cpu() {
        let classed = |class, event| {
            let ((class, event), backends) = counted(&row(class, event, "3")).unwrap();
            assert_eq!(backends, 3);
            format!("{class}/{event}")
        };
        assert_eq!(classed(Some("IO"), Some("WALSync")), "IO/WALSync");
        assert_eq!(classed(Some("Lock"), Some("transactionid")), "Lock/transactionid");
        assert_eq!(classed(Some("Client"), Some("ClientRead")), "Client/ClientRead");
        assert_eq!(classed(None, None), "CPU/CPU");
        assert_eq!(classed(Some("Extension"), None), "Extension/Extension");
    }

    #[test]
    fn figures_have_the_most_frequent_wait_first_and_count_backends_over_all_samples() {
        let key = |class: &str, event: &str| (class.to_owned(), event.to_owned());
        let seen = BTreeMap::from([(key("CPU", "CPU"), 3), (key("IO", "WALSync"), 71)]);
        let figures = figures(20, seen);
        assert_eq!((figures.samples, figures.per_second, figures.backends), (20, 10, 74));
        assert_eq!((figures.waits[0].event.as_str(), figures.waits[0].count), ("WALSync", 71));
    }

    #[test]
    fn a_row_of_another_shape_is_an_error_that_names_the_item() {
        assert!(counted(&vec![None]).unwrap_err().to_string().contains("1 columns"));
        assert!(counted(&row(None, None, "many")).unwrap_err().to_string().contains("count is `many`"));
    }

    #[test]
    fn moments_that_passed_are_skipped_not_made_up_for() {
        let step = Duration::from_millis(100);
        assert_eq!(elapsed_steps(Duration::from_millis(99), step), 0);
        assert_eq!(elapsed_steps(Duration::from_millis(350), step), 3);
        assert_eq!(elapsed_steps(Duration::MAX, step), u32::MAX);
    }

    #[test]
    fn a_server_that_is_not_there_is_an_error_not_an_empty_figure() {
        let server =
            ServerAddress { socket: "/nowhere/.s.PGSQL.5432".into(), database: "x".to_owned(), user: "x".to_owned() };
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sampling = scope.spawn(|| sample(&server, &stop));
            sleep(Duration::from_millis(50));
            stop.store(true, Ordering::SeqCst);
            let text = sampling.join().unwrap().unwrap_err().to_string();
            assert!(text.starts_with("failed to sample what the backends wait for"), "{text}");
        });
    }

    #[test]
    fn real_servers_answer_with_backends_of_clients_alone() {
        for bin in installations() {
            let server = ThrowawayServer::start(&bin, "");
            // Psql is the only client, and it asks itself: there is nobody else.
            assert_eq!(server.psql(&activity_sql()), "", "{}", bin.display());
            let others = activity_sql().replace("pid <> pg_backend_pid()", "true");
            let row: TextRow = server
                .psql(&others)
                .trim()
                .split('|')
                .map(|text| (!text.is_empty()).then(|| text.to_owned()))
                .collect();
            let ((class, event), backends) = counted(&row).unwrap();
            assert_eq!((class.as_str(), event.as_str(), backends), ("CPU", "CPU", 1), "{}", bin.display());
        }
    }
}

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
    /// What was seen.
    pub figures: WaitFigures,
    /// CPU time that the sampling cost on our side, microseconds.
    pub cpu_us: u64,
}

/// Class and event of a wait, as [`WaitCount`] has them.
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

/// The backends of clients, grouped by what they do now.
fn activity_sql() -> String {
    format!(
        "SELECT state, wait_event_type, wait_event, count(*) FROM pg_stat_activity \
         WHERE backend_type = 'client backend' AND application_name <> '{APPLICATION_NAME}' \
         AND pid <> pg_backend_pid() GROUP BY 1, 2, 3"
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
fn counted(row: &TextRow) -> Result<(Wait, u64)> {
    let [state, class, event, backends] = row.as_slice() else {
        return Err(Error::tool(format!("pg_stat_activity came as {} columns, not 4", row.len())));
    };
    let text = backends.as_deref().unwrap_or_default();
    let backends = text
        .parse()
        .map_err(|_| Error::tool(format!("pg_stat_activity: count is `{text}`, not a whole number (u64)")))?;
    Ok((classified(state.as_deref(), class.as_deref(), event.as_deref()), backends))
}

/// What a backend waits for. Between statements it is the client's turn, whatever the server says it waits for; a
/// backend that is at work (or just starting, without a state yet) and waits for nothing uses the CPU.
fn classified(state: Option<&str>, class: Option<&str>, event: Option<&str>) -> Wait {
    let class = match class {
        _ if state.is_some_and(|state| state.starts_with("idle")) => "Client",
        Some(class) => class,
        None => "CPU",
    };
    (class.to_owned(), event.unwrap_or(class).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::throwaway_server::{ThrowawayServer, installations};

    fn wait(state: &str, class: Option<&str>, event: Option<&str>) -> String {
        let (class, event) = classified(Some(state), class, event);
        format!("{class}/{event}")
    }

    #[test]
    fn backends_are_classed_by_what_they_wait_for() {
        assert_eq!(wait("active", Some("IO"), Some("WALSync")), "IO/WALSync");
        assert_eq!(wait("active", Some("Lock"), Some("transactionid")), "Lock/transactionid");
        assert_eq!(wait("active", None, None), "CPU/CPU");
        assert_eq!(wait("idle", Some("Client"), Some("ClientRead")), "Client/ClientRead");
        assert_eq!(wait("idle in transaction", Some("Client"), Some("ClientRead")), "Client/ClientRead");
        assert_eq!(wait("idle in transaction (aborted)", None, None), "Client/Client");
        assert_eq!(classified(None, None, None), ("CPU".to_owned(), "CPU".to_owned()));
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
        let row = vec![None, None, None, Some("many".to_owned())];
        assert!(counted(&row).unwrap_err().to_string().contains("count is `many`"));
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

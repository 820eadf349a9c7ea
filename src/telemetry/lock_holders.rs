//! Who holds the locks that backends wait for, and what the holder itself waits for.
//!
//! A row lock is held until its transaction has committed, so a backend waiting for one often waits indirectly for
//! another's WAL flush. `pg_blocking_pids` briefly locks the server's lock table, so it is called at most once a
//! second, only if a sample has just seen such a wait, and for [`MOST_ASKED`] backends at most.

use super::APPLICATION_NAME;
use crate::cluster::client::TextRow;
use crate::error::{Error, Result};

/// Class and event of a wait, as in [`crate::record::trial::WaitCount`]. The names are the server's: `WALSync` is
/// `WalSync` from PostgreSQL 17 on.
pub(super) type Wait = (String, String);

/// Waiting backends to query, picked at random if there are more.
const MOST_ASKED: u32 = 32;

/// Class and event if the holder is unknown.
const UNKNOWN: &str = "Unknown";

/// The class of waits for heavyweight locks, the only ones whose holder the server reports.
pub(super) const LOCK: &str = "Lock";

/// One backend in a sample.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Backend {
    pid: i64,
    wait: Wait,
    /// Process ids of its blockers; `None` if not queried.
    blocked_by: Option<Vec<i64>>,
    /// True if it belongs to a measured client.
    is_client: bool,
}

/// All backends, one row each. States are read before the holders are queried: a lock may have been granted meanwhile.
pub(super) fn sql() -> String {
    format!(
        "SELECT pid, class, event, CASE WHEN class = '{LOCK}' AND nth <= {MOST_ASKED} THEN pg_blocking_pids(pid) END, client \
         FROM (SELECT pid, wait_event_type AS class, wait_event AS event, \
         row_number() OVER (PARTITION BY wait_event_type ORDER BY random()) AS nth, \
         backend_type = 'client backend' AND application_name <> '{APPLICATION_NAME}' AND pid <> pg_backend_pid() AS client \
         FROM pg_stat_get_activity(NULL) WHERE pid IS NOT NULL) AS backends"
    )
}

/// The wait of a backend.
///
/// The column `state` is not used: the view reads it a moment before the wait (`pg_stat_get_activity` copies all states
/// first), so that a busy server shows idle backends waiting for a WAL sync. The wait is more recent. A backend between
/// statements waits for its client (`Client`, `ClientRead`), in a transaction or not; one that waits for nothing uses
/// the CPU.
pub(super) fn wait(class: Option<&str>, event: Option<&str>) -> Wait {
    let class = class.unwrap_or("CPU");
    (class.to_owned(), event.unwrap_or(class).to_owned())
}

/// One row of [`sql`].
pub(super) fn backend(row: &TextRow) -> Result<Backend> {
    let [pid, class, event, blocked_by, client] = row.as_slice() else {
        return Err(Error::tool(format!("pg_stat_activity returned {} columns, expected 5", row.len())));
    };
    let blocked_by = blocked_by.as_ref().map(|text| {
        let inner = text.trim_matches(['{', '}']);
        inner.split(',').filter(|pid| !pid.is_empty()).map(process_id).collect::<Result<Vec<i64>>>()
    });
    Ok(Backend {
        pid: process_id(pid.as_deref().unwrap_or_default())?,
        wait: wait(class.as_deref(), event.as_deref()),
        blocked_by: blocked_by.transpose()?,
        is_client: client.as_deref() == Some("t"),
    })
}

fn process_id(text: &str) -> Result<i64> {
    text.parse().map_err(|_| Error::tool(format!("pg_stat_activity: `{text}` is not a process id")))
}

/// The wait of the backend at the end of the queue, for each client that waits for a lock and was queried.
pub(super) fn holders(backends: &[Backend]) -> Vec<Wait> {
    let asked = backends.iter().filter(|backend| backend.is_client && backend.blocked_by.is_some());
    asked.map(|backend| root(backends, backend).unwrap_or_else(|| wait(Some(UNKNOWN), None))).collect()
}

/// The wait at the end of the chain; `None` if the chain is incomplete or circular.
fn root(backends: &[Backend], waiting: &Backend) -> Option<Wait> {
    let mut at = waiting;
    // A chain without a circle is no longer than the number of backends.
    for _ in 0..backends.len() {
        // Process id 0 is a prepared transaction.
        let holder = at.blocked_by.as_ref()?.iter().find(|pid| **pid != 0)?;
        at = backends.iter().find(|backend| backend.pid == *holder)?;
        if at.wait.0 != LOCK {
            return Some(at.wait.clone());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: [Option<&str>; 5]) -> TextRow {
        cells.map(|cell| cell.map(str::to_owned)).into()
    }

    fn backends(rows: &[[Option<&str>; 5]]) -> Vec<Backend> {
        rows.iter().map(|cells| backend(&row(*cells)).unwrap()).collect()
    }

    fn events(rows: &[[Option<&str>; 5]]) -> Vec<String> {
        holders(&backends(rows)).into_iter().map(|(_, event)| event).collect()
    }

    const TRUE: Option<&str> = Some("t");
    const LOCKED: Option<&str> = Some("Lock");

    #[test]
    fn queued_row_locks_count_as_the_wait_of_their_holder() {
        let found = events(&[
            [Some("10"), LOCKED, Some("tuple"), Some("{11}"), TRUE],
            [Some("11"), LOCKED, Some("transactionid"), Some("{12,12}"), TRUE],
            [Some("12"), Some("IO"), Some("WALSync"), None, TRUE],
            [Some("13"), LOCKED, Some("transactionid"), Some("{14}"), TRUE],
            [Some("14"), None, None, None, TRUE],
        ]);
        assert_eq!(found, ["WALSync", "WALSync", "CPU"]);
    }

    #[test]
    fn a_lock_holder_that_is_no_client_counts_too() {
        let found = events(&[
            [Some("10"), LOCKED, Some("relation"), Some("{7}"), TRUE],
            [Some("7"), Some("Timeout"), Some("VacuumDelay"), None, Some("f")],
            [Some("8"), LOCKED, Some("relation"), Some("{10}"), Some("f")],
        ]);
        assert_eq!(found, ["VacuumDelay"]);
    }

    #[test]
    fn a_lock_chain_with_unknown_end_is_not_called_storage() {
        let found = events(&[
            [Some("1"), LOCKED, Some("transactionid"), Some("{}"), TRUE],
            [Some("2"), LOCKED, Some("transactionid"), Some("{99}"), TRUE],
            [Some("3"), LOCKED, Some("transactionid"), Some("{0}"), TRUE],
            [Some("4"), LOCKED, Some("transactionid"), Some("{5}"), TRUE],
            [Some("5"), LOCKED, Some("transactionid"), Some("{4}"), TRUE],
            [Some("6"), LOCKED, Some("transactionid"), None, TRUE],
        ]);
        assert_eq!(found, ["Unknown"; 5], "and the sixth was not asked for");
    }

    #[test]
    fn a_malformed_row_is_an_error_that_names_the_item() {
        assert!(backend(&vec![None]).unwrap_err().to_string().contains("1 columns, expected 5"));
        let bad = backend(&row([Some("1"), LOCKED, None, Some("{x}"), TRUE])).unwrap_err().to_string();
        assert!(bad.contains("`x` is not a process id"), "{bad}");
    }
}

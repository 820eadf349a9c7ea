//! Wait events of the clients' backends: `pg_stat_activity` ten times a second, on a thread and connection of its own.
//!
//! Counts client backends (`backend_type = 'client backend'`), without pgstrata's own connections
//! ([`APPLICATION_NAME`]). A failed or late sample does not count. After the first sample in a second that shows a wait
//! for a lock, the holders of locks are queried ([`super::lock_holders`]).
//!
//! Queries the function below the view `pg_stat_activity`; the view's joins to databases and roles are not needed.

use super::lock_holders::{self, Wait, holders};
use super::{APPLICATION_NAME, connect};
use crate::cluster::client::{Client, ServerAddress, TextRow};
use crate::error::{Error, Result};
use crate::host::time::{now, sleep, thread_cpu_us, wall_us};
use crate::record::trial::{WaitCount, WaitFigures, WaitSecond};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Target number of samples per second.
pub const PER_SECOND: u32 = 10;

/// Results of the sampling.
#[derive(Debug, Clone, PartialEq)]
pub struct Waits {
    pub figures: WaitFigures,
    /// CPU time that the sampling cost on our side, microseconds.
    pub cpu_us: u64,
}

/// Samples until `stop` is set. Blocks; run it on a thread of its own. Reconnects after errors.
///
/// # Errors
/// When not a single sample could be taken, with the server's last message.
pub fn sample(server: &ServerAddress, stop: &AtomicBool) -> Result<Waits> {
    let cpu_before = thread_cpu_us();
    let sql = activity_sql();
    let step = Duration::from_secs(1) / PER_SECOND;
    let begun = now();
    let mut seen = SeenWaits { began_us: wall_us(), ..SeenWaits::default() };
    let mut session: Option<Client> = None;
    let mut trouble = Error::host("stopped before the first sample");
    let mut due: u32 = 0;
    let mut asked_in = None;
    while !stop.load(Ordering::SeqCst) {
        let second = due / PER_SECOND;
        let taken = one(&mut session, server, &sql).and_then(|waits| {
            let has_lock = waits.iter().any(|((class, _), _)| class == lock_holders::LOCK);
            let asks = has_lock && asked_in.replace(second).is_none_or(|before| before != second);
            let holders = if asks { look(&mut session, server)? } else { Vec::new() };
            Ok((waits, holders))
        });
        match taken {
            Ok((waits, holders)) => seen.add(second as usize, waits, holders),
            Err(error) => {
                session = None;
                trouble = error;
            }
        }
        // Skips moments that have passed meanwhile: two samples at once would count one moment twice.
        due = due.saturating_add(1).max(elapsed_steps(begun.elapsed(), step).saturating_add(1));
        sleep((begun + step * due).saturating_duration_since(now()));
    }
    if seen.seconds.is_empty() {
        return Err(trouble.while_doing("sample the wait events of the backends"));
    }
    Ok(Waits { figures: seen.figures(), cpu_us: thread_cpu_us().saturating_sub(cpu_before) })
}

fn elapsed_steps(elapsed: Duration, step: Duration) -> u32 {
    u32::try_from(elapsed.as_nanos() / step.as_nanos()).unwrap_or(u32::MAX)
}

/// All samples so far.
#[derive(Debug, Default)]
struct SeenWaits {
    began_us: u64,
    /// Number of samples in each second, and how often each wait was seen.
    seconds: Vec<(u32, BTreeMap<Wait, u32>)>,
    holders: BTreeMap<Wait, u64>,
}

impl SeenWaits {
    /// Adds a sample: each wait with its number of backends, in which a wait may occur several times.
    fn add(&mut self, second: usize, sampled: Vec<(Wait, u32)>, holders: Vec<Wait>) {
        if self.seconds.len() <= second {
            self.seconds.resize_with(second + 1, Default::default);
        }
        let (samples, waits) = &mut self.seconds[second];
        *samples += 1;
        for (wait, backends) in sampled {
            *waits.entry(wait).or_default() += backends;
        }
        for holder in holders {
            *self.holders.entry(holder).or_default() += 1;
        }
    }

    fn figures(self) -> WaitFigures {
        let mut sums: BTreeMap<&Wait, u64> = BTreeMap::new();
        for (wait, backends) in self.seconds.iter().flat_map(|(_, waits)| waits) {
            *sums.entry(wait).or_default() += u64::from(*backends);
        }
        let mut most_first: Vec<(&Wait, u64)> = sums.into_iter().collect();
        most_first.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let places: BTreeMap<&Wait, u32> = (0u32..).zip(&most_first).map(|(place, (wait, _))| (*wait, place)).collect();
        let seconds = self.seconds.iter().map(|(samples, waits)| WaitSecond {
            samples: *samples,
            counts: waits.iter().filter_map(|(wait, backends)| Some((*places.get(wait)?, *backends))).collect(),
        });
        WaitFigures {
            samples: self.seconds.iter().map(|(samples, _)| u64::from(*samples)).sum(),
            per_second: PER_SECOND,
            backends: most_first.iter().map(|(_, count)| count).sum(),
            waits: most_first.iter().map(|(wait, count)| counted(wait, *count)).collect(),
            seconds: seconds.collect(),
            began_us: self.began_us,
            lock_holders: self.holders.iter().map(|(wait, count)| counted(wait, *count)).collect(),
        }
    }
}

fn counted((class, event): &Wait, count: u64) -> WaitCount {
    WaitCount { class: class.clone(), event: event.clone(), count }
}

/// Waits of several turns, as if these had followed one another.
#[derive(Default)]
pub struct JoinedWaits(SeenWaits);

impl JoinedWaits {
    /// Adds the waits of a turn of so many seconds, whose first operation began then.
    pub fn add(&mut self, turn: &WaitFigures, began_us: u64, seconds: u64) {
        if self.0.began_us == 0 {
            self.0.began_us = began_us.saturating_sub(self.0.seconds.len() as u64 * 1_000_000);
        }
        let before = self.0.seconds.len();
        self.0.seconds.resize_with(before + seconds as usize, Default::default);
        for (place, second) in turn.seconds.iter().enumerate() {
            // Row 0 is before the first operation.
            let row = turn.row(place, began_us).checked_sub(1).map(|row| row.min(seconds.saturating_sub(1)) as usize);
            let Some((samples, waits)) = row.and_then(|row| self.0.seconds.get_mut(before + row)) else { continue };
            *samples += second.samples;
            for (wait, backends) in &second.counts {
                if let Some(wait) = turn.waits.get(*wait as usize) {
                    *waits.entry((wait.class.clone(), wait.event.clone())).or_default() += backends;
                }
            }
        }
        for holder in &turn.lock_holders {
            *self.0.holders.entry((holder.class.clone(), holder.event.clone())).or_default() += holder.count;
        }
    }

    /// Leaves out a turn of so many seconds, whose waits are unknown.
    pub fn skip(&mut self, seconds: u64) {
        self.0.seconds.resize_with(self.0.seconds.len() + seconds as usize, Default::default);
    }

    /// `None` if no turn had any.
    pub fn figures(self) -> Option<WaitFigures> {
        self.0.seconds.iter().any(|(samples, _)| *samples > 0).then(|| self.0.figures())
    }
}

/// The backends of clients, grouped by their current wait.
fn activity_sql() -> String {
    format!(
        "SELECT wait_event_type, wait_event, count(*) FROM pg_stat_get_activity(NULL) \
         WHERE backend_type = 'client backend' AND application_name <> '{APPLICATION_NAME}' \
         AND pid <> pg_backend_pid() GROUP BY 1, 2"
    )
}

fn connected<'a>(session: &'a mut Option<Client>, server: &ServerAddress) -> Result<&'a mut Client> {
    match session {
        Some(client) => Ok(client),
        None => Ok(session.insert(connect(server)?)),
    }
}

fn one(session: &mut Option<Client>, server: &ServerAddress, sql: &str) -> Result<Vec<(Wait, u32)>> {
    connected(session, server)?.query(sql)?.iter().map(grouped).collect()
}

/// The holders of the locks that backends currently wait for.
fn look(session: &mut Option<Client>, server: &ServerAddress) -> Result<Vec<Wait>> {
    let rows = connected(session, server)?.query(&lock_holders::sql())?;
    let backends = rows.iter().map(lock_holders::backend).collect::<Result<Vec<_>>>()?;
    Ok(holders(&backends))
}

/// One row of [`activity_sql`].
fn grouped(row: &TextRow) -> Result<(Wait, u32)> {
    let [class, event, backends] = row.as_slice() else {
        return Err(Error::tool(format!("pg_stat_activity returned {} columns, expected 3", row.len())));
    };
    let text = backends.as_deref().unwrap_or_default();
    let backends = text
        .parse()
        .map_err(|_| Error::tool(format!("pg_stat_activity: count is `{text}`, not a whole number (u32)")))?;
    Ok((lock_holders::wait(class.as_deref(), event.as_deref()), backends))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::throwaway_server::{ThrowawayServer, installations};

    fn row(class: Option<&str>, event: Option<&str>, backends: &str) -> TextRow {
        [class, event, Some(backends)].map(|text| text.map(str::to_owned)).into()
    }

    #[test]
    fn backends_are_classed_by_wait_event_or_as_cpu() {
        let classed = |class, event| {
            let ((class, event), backends) = grouped(&row(class, event, "3")).unwrap();
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
    fn waits_are_sorted_by_frequency_and_kept_per_second() {
        let key = |class: &str, event: &str| (class.to_owned(), event.to_owned());
        let mut seen = SeenWaits { began_us: 7, ..SeenWaits::default() };
        for (cpu, sync) in [(2, 30), (1, 40)] {
            let waits = vec![(key("CPU", "CPU"), cpu), (key("IO", "WALSync"), sync)];
            seen.add(0, waits, vec![key("IO", "WALSync")]);
        }
        seen.add(2, vec![(key("IO", "WALSync"), 1)], Vec::new());
        let figures = seen.figures();
        assert_eq!((figures.samples, figures.per_second, figures.backends, figures.began_us), (3, 10, 74, 7));
        assert_eq!((figures.waits[0].event.as_str(), figures.waits[0].count), ("WALSync", 71));
        let seconds: Vec<_> = figures.seconds.iter().map(|second| (second.samples, second.counts.clone())).collect();
        assert_eq!(seconds, [(2, vec![(1, 3), (0, 70)]), (0, vec![]), (1, vec![(0, 1)])]);
        assert_eq!((figures.lock_holders.len(), figures.lock_holders[0].count), (1, 2));
    }

    #[test]
    fn a_malformed_row_is_an_error_that_names_the_item() {
        assert!(grouped(&vec![None]).unwrap_err().to_string().contains("1 columns"));
        assert!(grouped(&row(None, None, "many")).unwrap_err().to_string().contains("count is `many`"));
    }

    #[test]
    fn moments_that_passed_are_skipped_not_made_up_for() {
        let step = Duration::from_millis(100);
        assert_eq!(elapsed_steps(Duration::from_millis(99), step), 0);
        assert_eq!(elapsed_steps(Duration::from_millis(350), step), 3);
        assert_eq!(elapsed_steps(Duration::MAX, step), u32::MAX);
    }

    #[test]
    fn a_missing_server_is_an_error_not_an_empty_figure() {
        let server = ServerAddress {
            socket: "/nowhere/.s.PGSQL.5432".into(),
            data: "/nowhere".into(),
            database: "x".to_owned(),
            user: "x".to_owned(),
        };
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sampling = scope.spawn(|| sample(&server, &stop));
            sleep(Duration::from_millis(50));
            stop.store(true, Ordering::SeqCst);
            let text = sampling.join().unwrap().unwrap_err().to_string();
            assert!(text.starts_with("failed to sample the wait events of the backends"), "{text}");
        });
    }

    #[test]
    fn real_servers_answer_with_backends_of_clients_alone() {
        for bin in installations() {
            let server = ThrowawayServer::start(&bin, "");
            // psql is the only client, and it sees only itself once earlier backends have gone.
            let alone = (0..100).any(|_| {
                let answer = server.psql(&activity_sql());
                sleep(Duration::from_millis(if answer.is_empty() { 0 } else { 50 }));
                answer.is_empty()
            });
            assert!(alone, "{}: {}", bin.display(), server.psql(&activity_sql()));
            let others = activity_sql().replace("pid <> pg_backend_pid()", "true");
            let seen = |_| -> Option<(Wait, u32)> {
                let answer = server.psql(&others);
                let cells = answer.trim().split('|').map(|text| (!text.is_empty()).then(|| text.to_owned()));
                let found = grouped(&cells.collect::<TextRow>()).ok()?;
                (found.1 == 1).then_some(found).or_else(|| {
                    sleep(Duration::from_millis(50));
                    None
                })
            };
            let ((class, event), _) = (0..100).find_map(seen).unwrap_or_else(|| panic!("{}", server.psql(&others)));
            assert_eq!((class.as_str(), event.as_str()), ("CPU", "CPU"), "{}", bin.display());
        }
    }
}

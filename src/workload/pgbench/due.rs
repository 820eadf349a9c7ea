//! Operations with scheduled start times: seconds in which some were due and none completed, and lateness caused by the
//! driver itself.

use crate::parse::pgbench_log::{Transaction, TransactionOutcome};

const SECOND_US: u64 = 1_000_000;

/// The driver may add lateness of up to 1/10 of the limit.
const DRIVER_PART: u64 = 10;

/// Totals of a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DueTally {
    /// Whole seconds in which operations were due and none completed.
    pub silent_s: u64,
    /// Operations that the driver itself started late, by more than a tenth of the limit.
    pub lagging: u64,
    /// Sum of the delays caused by the driver itself, microseconds.
    pub driver_lag_us_sum: u64,
}

/// Counts the transactions of a pgbench with `--rate` as they arrive.
#[derive(Debug)]
pub struct DueTracker {
    limit_us: u64,
    tally: DueTally,
    /// End of each client's last transaction.
    ended_us: Vec<Option<u64>>,
    seconds: Vec<DueSecond>,
}

#[derive(Debug, Clone, Copy, Default)]
struct DueSecond {
    has_done: bool,
    has_due: bool,
}

impl DueTracker {
    pub fn new(limit_us: u64) -> DueTracker {
        DueTracker { limit_us, tally: DueTally::default(), ended_us: Vec::new(), seconds: Vec::new() }
    }

    /// Takes a transaction; those of each client in order. Without `--rate` transactions have no due time.
    pub fn take(&mut self, began_us: u64, transaction: &Transaction) {
        let Some(lag_us) = transaction.lag_us else { return };
        let at_us = transaction.at_us;
        // A skipped one has no due time in the log, but it was due longer ago than the limit. A failed one has none
        // either.
        let waited_us = match transaction.ended {
            TransactionOutcome::Done(latency_us) => latency_us,
            TransactionOutcome::Skipped => self.limit_us,
            TransactionOutcome::Failed(_) => 0,
        };
        let due_us = at_us.saturating_sub(waited_us);
        let [due, last] =
            [due_us, at_us].map(|us| usize::try_from(us.saturating_sub(began_us) / SECOND_US).unwrap_or(usize::MAX));
        if self.seconds.len() <= last {
            self.seconds.resize(last + 1, DueSecond::default());
        }
        self.seconds[due..=last].iter_mut().for_each(|second| second.has_due = true);
        let client = transaction.client as usize;
        if self.ended_us.len() <= client {
            self.ended_us.resize(client + 1, None);
        }
        let before_us = self.ended_us[client].replace(at_us);
        if let TransactionOutcome::Done(_) = transaction.ended {
            self.seconds[last].has_done = true;
            // While the client was busy with its previous transaction, this one waited for the server, not for the
            // driver.
            let busy_us = before_us.map_or(0, |before_us| before_us.saturating_sub(due_us));
            let driver_us = lag_us.saturating_sub(busy_us);
            self.tally.driver_lag_us_sum += driver_us;
            self.tally.lagging += u64::from(driver_us > self.limit_us / DRIVER_PART);
        }
    }

    /// The totals over this many whole seconds.
    pub fn tally(&self, whole: u64) -> DueTally {
        let whole = self.seconds.iter().take(usize::try_from(whole).unwrap_or(usize::MAX));
        let silent = whole.filter(|second| second.has_due && !second.has_done).count();
        DueTally { silent_s: silent as u64, ..self.tally }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT_US: u64 = 20_000;

    fn done(client: u32, at_us: u64, latency_us: u64, lag_us: u64) -> Transaction {
        Transaction {
            client,
            ended: TransactionOutcome::Done(latency_us),
            script: 0,
            at_us,
            lag_us: Some(lag_us),
            retries: None,
        }
    }

    fn counted(transactions: &[Transaction]) -> DueTally {
        let mut due = DueTracker::new(LIMIT_US);
        transactions.iter().for_each(|transaction| due.take(0, transaction));
        due.tally(5)
    }

    #[test]
    fn a_second_with_due_but_no_completed_operations_is_silent() {
        // Due in second 0 and completed in second 3: seconds 1 and 2 are silent.
        assert_eq!(counted(&[done(0, 500_000, 900, 0), done(0, 3_200_000, 2_500_000, 0)]).silent_s, 2);
        // Nothing was due in the seconds between.
        assert_eq!(counted(&[done(0, 500_000, 900, 0), done(0, 3_200_000, 900, 0)]).silent_s, 0);
        let skipped = Transaction { ended: TransactionOutcome::Skipped, ..done(0, 2_005_000, 0, 0) };
        assert_eq!(counted(&[done(0, 500_000, 900, 0), skipped, done(0, 2_100_000, 900, 0)]).silent_s, 1);
    }

    #[test]
    fn driver_lateness_counts_only_while_its_client_is_idle() {
        // Due at 10 ms, begun at 15 ms by an idle client: 5 ms of a limit of 20 ms.
        let idle = counted(&[done(0, 2_000, 900, 0), done(0, 16_000, 6_000, 5_000)]);
        assert_eq!((idle.lagging, idle.driver_lag_us_sum), (1, 5_000));
        // The same, by a client that was busy until 14.8 ms.
        let busy = counted(&[done(0, 14_800, 900, 0), done(0, 16_000, 6_000, 5_000)]);
        assert_eq!((busy.lagging, busy.driver_lag_us_sum), (0, 200));
    }
}

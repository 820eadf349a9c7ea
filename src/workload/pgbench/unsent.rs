//! Operations of a fixed rate that fell due while no client was free to send them before the window ended: pgbench
//! leaves them out of its log and summary, so a server that stalls at the end of a window would look fast.

use crate::parse::pgbench_log::{Transaction, TransactionOutcome};
use crate::record::counts::Unsent;

/// A load of a fixed rate, and its end.
#[derive(Debug, Clone, Copy)]
pub struct FixedRate {
    /// Operations per second of all clients together.
    pub rate: f64,
    pub clients: u64,
    /// Wall clock at the end of the window, microseconds.
    pub end_us: u64,
    /// True if only a sample is logged: then it is unknown which clients waited.
    pub is_sampled: bool,
}

impl FixedRate {
    pub fn all_due(self, began_us: u64) -> Unsent {
        let until_us = self.end_us.saturating_sub(began_us);
        let count = (self.rate * until_us as f64 / 1e6).round() as u64;
        Unsent { count, from_us: 0, until_us, free_us: until_us }
    }
}

/// Due operations that are neither done, failed nor skipped: the last ones, since a schedule is processed in order.
/// `None` if chance may explain them, since due times are drawn at random.
pub fn rest(due: Unsent, sent: u64) -> Option<Unsent> {
    let count = due.count.saturating_sub(sent);
    let apart_us = due.until_us.saturating_sub(due.from_us) as f64 / due.count.max(1) as f64;
    let from_us = due.until_us.saturating_sub((count as f64 * apart_us) as u64);
    (count as f64 > 4.0 * (due.count as f64).sqrt()).then_some(Unsent { count, from_us, ..due })
}

/// The last operation of a client: when it was due and when it ended, wall clock, microseconds.
#[derive(Debug, Clone, Copy)]
struct Last {
    client: u32,
    due_us: u64,
    ended_us: u64,
}

/// The last operation of each client, by pgbench thread: each thread has a schedule of its own.
#[derive(Debug, Default)]
pub struct LastOnes(Vec<Vec<Last>>);

impl LastOnes {
    pub fn take(&mut self, thread: usize, transaction: &Transaction) {
        let (client, ended_us) = (transaction.client, transaction.at_us);
        let waited_us = if let TransactionOutcome::Done(latency_us) = transaction.ended { latency_us } else { 0 };
        let last = Last { client, due_us: ended_us.saturating_sub(waited_us), ended_us };
        if self.0.len() <= thread {
            self.0.resize(thread + 1, Vec::new());
        }
        match self.0[thread].iter_mut().find(|known| known.client == client) {
            Some(known) => *known = last,
            None => self.0[thread].push(last),
        }
    }

    /// Unsent operations of each thread that had no free client from its last sent operation until after the end. Their
    /// number follows from the rate alone: pgbench draws no due time before a client asks for an operation.
    pub fn unsent(&self, load: FixedRate, began_us: u64) -> Vec<Unsent> {
        let threads = self.0.len() as u64;
        let unsent = (0..).zip(&self.0).filter_map(|(thread, clients)| {
            // As pgbench distributes them (`nclients_dealt` in pgbench.c).
            let dealt = load.clients / threads + u64::from(thread < load.clients % threads);
            let from_us = clients.iter().map(|last| last.due_us).max()?;
            let free_us = clients.iter().map(|last| last.ended_us).min()?;
            let due_us = load.end_us.saturating_sub(from_us);
            let count = (load.rate / threads as f64 * due_us as f64 / 1e6).round() as u64;
            let all_waited = clients.len() as u64 >= dealt && free_us > load.end_us && count > 0;
            all_waited.then(|| Unsent {
                count,
                from_us: from_us.saturating_sub(began_us),
                until_us: load.end_us.saturating_sub(began_us),
                free_us: free_us.saturating_sub(began_us),
            })
        });
        unsent.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsent(ended: &[(usize, u32, u64, u64)], clients: u64) -> Vec<Unsent> {
        let mut last = LastOnes::default();
        for (thread, client, at_us, latency_us) in ended {
            let ended = TransactionOutcome::Done(*latency_us);
            last.take(
                *thread,
                &Transaction { client: *client, ended, script: 0, at_us: *at_us, lag_us: Some(0), retries: None },
            );
        }
        last.unsent(FixedRate { rate: 100.0, clients, end_us: 8_000_000, is_sampled: false }, 0)
    }

    #[test]
    fn a_sampled_log_shows_unsent_transactions_only_beyond_chance() {
        let load = FixedRate { rate: 1000.0, clients: 2, end_us: 8_000_000, is_sampled: true };
        let due = load.all_due(0);
        assert_eq!(
            rest(due, 4000),
            Some(Unsent { count: 4000, from_us: 4_000_000, until_us: 8_000_000, free_us: 8_000_000 })
        );
        assert_eq!((rest(due, 7700), rest(due, 8100)), (None, None));
    }

    #[test]
    fn transactions_due_while_all_clients_stall_are_never_sent() {
        let stalled = [(0, 0, 10_000_000, 4_000_000), (0, 1, 10_001_000, 4_050_000)];
        let found = unsent(&stalled, 2);
        assert_eq!(found, [Unsent { count: 200, from_us: 6_000_000, until_us: 8_000_000, free_us: 10_000_000 }]);
        let waits: Vec<u64> = found[0].waits_us().collect();
        assert_eq!((waits.len(), waits[0], waits[199]), (200, 3_995_000, 2_005_000));
        for (name, ended, clients) in [
            ("a client was free", vec![(0, 0, 10_000_000, 4_000_000), (0, 1, 7_900_000, 900)], 2),
            ("a client was never seen", vec![(0, 0, 10_000_000, 4_000_000)], 2),
            ("the stall ended before the window", vec![(0, 0, 7_990_000, 3_000_000), (0, 1, 7_991_000, 900)], 2),
            ("nothing was due in the last moment", vec![(0, 0, 8_000_400, 900), (0, 1, 8_000_500, 900)], 2),
        ] {
            assert_eq!(unsent(&ended, clients), [], "{name}");
        }
    }

    #[test]
    fn each_thread_has_its_own_schedule() {
        let of_two = [(0, 0, 10_000_000, 4_000_000), (1, 1, 7_999_000, 900)];
        assert_eq!(unsent(&of_two, 2).iter().map(|unsent| unsent.count).collect::<Vec<_>>(), [100]);
        // Three clients on two threads: the first has two.
        let of_three = [(0, 0, 10_000_000, 4_000_000), (1, 1, 10_000_000, 4_000_000)];
        assert_eq!(unsent(&of_three, 3).len(), 1);
    }
}

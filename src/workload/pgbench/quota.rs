//! A number of transactions of all clients: what was done from when each client had done one, which finds the caches of a new
//! session empty, until the first client ended. After that fewer clients share the stack.

use crate::parse::pgbench_log::{Transaction, TransactionOutcome};
use std::collections::BTreeMap;

/// Ends of the completed transactions.
#[derive(Debug, Clone, Default)]
pub struct Quota {
    ended_us: Vec<u64>,
    /// Ends of each client's first and last one.
    of_client_us: BTreeMap<u32, (u64, u64)>,
}

impl Quota {
    pub fn take(&mut self, transaction: &Transaction) {
        let TransactionOutcome::Done(_) = transaction.ended else { return };
        let at_us = transaction.at_us;
        let (first_us, last_us) = self.of_client_us.entry(transaction.client).or_insert((at_us, at_us));
        (*first_us, *last_us) = (at_us.min(*first_us), at_us.max(*last_us));
        self.ended_us.push(at_us);
    }

    /// Those that are done.
    pub fn done(&self) -> usize {
        self.ended_us.len()
    }

    /// Microseconds in which all clients were at work, and the share of all transactions that ended in them; `None` if there
    /// was no such time.
    pub fn all_at_work(&self) -> Option<(u64, f64)> {
        let from_us = self.of_client_us.values().map(|(first_us, _)| *first_us).max()?;
        let to_us = self.of_client_us.values().map(|(_, last_us)| *last_us).min()?;
        let done = self.ended_us.iter().filter(|at_us| (from_us + 1..=to_us).contains(at_us)).count();
        (done > 0).then(|| (to_us - from_us, done as f64 / self.ended_us.len() as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_is_what_is_done_while_all_clients_are_at_work() {
        let mut quota = Quota::default();
        assert_eq!(quota.all_at_work(), None);
        for (client, at_us) in [(0, 10), (1, 12), (0, 20), (1, 30), (0, 25), (1, 40)] {
            let ended = TransactionOutcome::Done(5);
            quota.take(&Transaction { client, ended, script: 0, at_us, lag_us: None, retries: None });
        }
        assert_eq!(quota.all_at_work(), Some((13, 2.0 / 6.0)));
    }
}

//! A fixed number of transactions for each client: what was done until the first client had done its part. After that
//! fewer clients share the stack.

use crate::parse::pgbench_log::{Transaction, TransactionOutcome};

/// Ends of the completed transactions.
#[derive(Debug, Clone, Default)]
pub struct Quota {
    ended_us: Vec<u64>,
    /// End of each client's last one.
    last_us: Vec<u64>,
}

impl Quota {
    pub fn take(&mut self, transaction: &Transaction) {
        let TransactionOutcome::Done(_) = transaction.ended else { return };
        let client = transaction.client as usize;
        if self.last_us.len() <= client {
            self.last_us.resize(client + 1, 0);
        }
        self.last_us[client] = self.last_us[client].max(transaction.at_us);
        self.ended_us.push(transaction.at_us);
    }

    /// Wall clock when the first client ended, microseconds, and the share of all transactions done by then.
    pub fn until_first(&self) -> Option<(u64, f64)> {
        let first_us = self.last_us.iter().copied().filter(|at_us| *at_us > 0).min()?;
        let done = self.ended_us.iter().filter(|at_us| **at_us <= first_us).count();
        Some((first_us, done as f64 / self.ended_us.len() as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_first_client_to_end_is_left_out() {
        let mut quota = Quota::default();
        assert_eq!(quota.until_first(), None);
        for (client, at_us) in [(0, 10), (1, 12), (0, 20), (1, 30), (0, 25), (1, 40)] {
            let ended = TransactionOutcome::Done(5);
            quota.take(&Transaction { client, ended, script: 0, at_us, lag_us: None, retries: None });
        }
        assert_eq!(quota.until_first(), Some((25, 4.0 / 6.0)));
    }
}

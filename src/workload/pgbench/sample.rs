//! Share of the transactions to log: all, unless writing the log would slow the measurement down.
//!
//! Measured with select-only and prepared statements, 4 clients on 2 CPUs, 14 interleaved triples: at 80 000
//! transactions per second the full log costs 6.5 % (95 % interval 2 to 10), `--sampling-rate=0.01` nothing detectable.
//! A line thus costs 1.6 us of CPU, 2.5 us at the upper end, in pgbench and pgstrata together. `make bench` measures
//! it.

/// CPU time per log line, seconds, at the upper end.
const LINE_S: f64 = 2.5e-6;

/// Share of the CPUs that logging may cost: below what is called the same (5 %), and each case decides by its own
/// warm-up, so that a fast stack does not cost a slow one its stalls.
const ALLOWED: f64 = 0.02;

/// The window may be this much faster than the warm-up.
const FASTER_WINDOW: f64 = 1.25;

/// Shares to choose from, so that a report shows a round number.
const SHARES: [f64; 10] = [1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];

/// The share of the transactions to log after a warm-up at this rate.
pub fn for_rate(tps: f64) -> f64 {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    share(tps * FASTER_WINDOW, cpus as f64)
}

fn share(tps: f64, cpus: f64) -> f64 {
    // Slightly more, for a 0.1 that is 0.0999... in binary.
    let most = ALLOWED * cpus / LINE_S / tps * (1.0 + 1e-9);
    SHARES.into_iter().find(|share| *share <= most).unwrap_or(SHARES[SHARES.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sampled_share_keeps_logging_below_two_percent_of_cpu() {
        assert_eq!([share(100.0, 2.0), share(15_900.0, 2.0), share(16_100.0, 2.0)], [1.0, 1.0, 0.5]);
        assert_eq!([share(80_000.0, 2.0), share(80_000.0, 32.0), share(1e9, 2.0)], [0.2, 1.0, 0.001]);
        for tps in [1e3, 3e4, 9e4, 1e6] {
            assert!(share(tps, 4.0) * tps * LINE_S <= 0.02 * 4.0 * 1.001, "{tps}");
        }
    }

    #[test]
    fn every_transaction_is_logged_at_six_thousand_a_cpu() {
        let cpus = std::thread::available_parallelism().unwrap().get() as f64;
        assert_eq!([for_rate(6_000.0 * cpus), for_rate(7_000.0 * cpus)], [1.0, 0.5]);
    }
}

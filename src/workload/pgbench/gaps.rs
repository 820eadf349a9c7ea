//! The longest time without a completed transaction, over all streams together.
//!
//! Streams come one after another, so completions are marked in the milliseconds of their second; gaps are told to 1 ms.

const MS: usize = 1000;
const BITS: usize = u64::BITS as usize;

/// The milliseconds of one second in which a transaction ended.
#[derive(Debug, Default)]
pub(super) struct Marks([u64; MS.div_ceil(BITS)]);

impl Marks {
    /// Marks a moment, microseconds after the beginning of the second.
    pub fn mark(&mut self, at_us: u64) {
        let ms = usize::try_from(at_us / 1000).unwrap_or(MS).min(MS - 1);
        self.0[ms / BITS] |= 1 << (ms % BITS);
    }

    fn has(&self, ms: usize) -> bool {
        self.0[ms / BITS] & (1 << (ms % BITS)) != 0
    }
}

/// Goes through the seconds in their order.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// Empty milliseconds since the last completion.
    empty: u64,
}

impl Gaps {
    /// The longest time without a completion that ended in this second or was going on at its end, microseconds: whole
    /// milliseconds without one.
    pub fn of_second(&mut self, marks: &Marks) -> u64 {
        let mut longest = 0;
        for ms in 0..MS {
            self.empty = if marks.has(ms) { 0 } else { self.empty + 1 };
            longest = longest.max(self.empty);
        }
        longest * 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(at_us: &[u64]) -> Marks {
        let mut marks = Marks::default();
        at_us.iter().for_each(|at_us| marks.mark(*at_us));
        marks
    }

    #[test]
    fn a_gap_runs_over_the_ends_of_seconds_until_a_transaction_ends() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.of_second(&marks(&[100, 400_500, 699_900])), 399_000);
        assert_eq!(gaps.of_second(&marks(&[])), 1_300_000, "it goes on");
        assert_eq!(gaps.of_second(&marks(&[250_000, 999_999])), 1_550_000);
        let all: Vec<u64> = (0..1000).map(|ms| ms * 1000 + 7).collect();
        assert_eq!(gaps.of_second(&marks(&all)), 0);
    }

    #[test]
    fn a_moment_beyond_the_second_counts_at_its_end() {
        assert_eq!(Gaps::default().of_second(&marks(&[5_000_000])), 999_000);
    }
}

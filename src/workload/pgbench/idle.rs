//! The longest time without a completed transaction, over all streams together.
//!
//! Streams are read one after another, so completions are marked per millisecond of their second; times are exact to 1
//! ms.

const MS: usize = 1000;
const BITS: usize = u64::BITS as usize;

/// The milliseconds of one second in which a transaction ended.
#[derive(Debug, Default)]
pub(super) struct Marks([u64; MS.div_ceil(BITS)]);

impl Marks {
    /// Marks a completion, microseconds after the beginning of the second.
    pub fn mark(&mut self, at_us: u64) {
        let ms = usize::try_from(at_us / 1000).unwrap_or(MS).min(MS - 1);
        self.0[ms / BITS] |= 1 << (ms % BITS);
    }

    fn has(&self, ms: usize) -> bool {
        self.0[ms / BITS] & (1 << (ms % BITS)) != 0
    }
}

/// Walks through the seconds in order.
#[derive(Debug, Default)]
pub(super) struct IdleSpan {
    /// Empty milliseconds since the last completion.
    empty: u64,
}

impl IdleSpan {
    /// The longest time without a completion that ended in the first `length_us` of this second or was still going on
    /// at their end, in microseconds. n empty milliseconds between two completions count as n + 1 ms, give or take one;
    /// without any: 0.
    pub fn of_second(&mut self, marks: &Marks, length_us: u64) -> u64 {
        let mut longest = 0;
        for ms in 0..usize::try_from(length_us / 1000).unwrap_or(MS).min(MS) {
            self.empty = if marks.has(ms) { 0 } else { self.empty + 1 };
            longest = longest.max(self.empty);
        }
        if longest == 0 { 0 } else { (longest + 1) * 1000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000;

    fn marks(at_us: &[u64]) -> Marks {
        let mut marks = Marks::default();
        at_us.iter().for_each(|at_us| marks.mark(*at_us));
        marks
    }

    #[test]
    fn idle_time_spans_seconds_until_a_transaction_ends() {
        let mut idle = IdleSpan::default();
        assert_eq!(idle.of_second(&marks(&[100, 400_500, 699_900]), S), 400_000);
        assert_eq!(idle.of_second(&marks(&[]), S), 1_301_000, "it goes on");
        assert_eq!(idle.of_second(&marks(&[250_000, 999_999]), S), 1_551_000);
        let all: Vec<u64> = (0..1000).map(|ms| ms * 1000 + 7).collect();
        assert_eq!(idle.of_second(&marks(&all), S), 0);
    }

    #[test]
    fn what_a_second_lacks_at_its_end_is_not_idle() {
        let busy: Vec<u64> = (0..990).map(|ms| ms * 1000).collect();
        assert_eq!(IdleSpan::default().of_second(&marks(&busy), 990_000), 0);
        assert_eq!(
            IdleSpan::default().of_second(&marks(&[5 * S]), S),
            1_000_000,
            "a moment beyond the second counts at its end"
        );
    }
}

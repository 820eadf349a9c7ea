//! The order of the trials: one round through all cases a block, shuffled by the plan's seed.
//!
//! The order belongs to the plan format: the same seed and cases must give the same order in every version, or a
//! resumed run would not find its trials. So nothing here leans on what a random library may change: ChaCha8 is a fixed
//! cipher (RFC 8439's function with 8 rounds), its key is the seed in little-endian bytes followed by zeros, and the
//! shuffle is written out. A test pins one order.

use crate::record::case::TrialKey;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// The trials of `blocks` rounds through `cases`. More blocks leave the order of the earlier ones as it was.
pub(super) fn order(cases: &[String], blocks: u32, seed: u64) -> Vec<TrialKey> {
    let mut key = [0u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    let mut trials = Vec::with_capacity(cases.len().saturating_mul(blocks as usize));
    for trial in 1..=blocks {
        let mut round: Vec<&String> = cases.iter().collect();
        shuffle(&mut round, &mut rng);
        trials.extend(round.into_iter().map(|case| TrialKey { case: case.clone(), trial }));
    }
    trials
}

/// Durstenfeld's form of the Fisher-Yates shuffle (Knuth, TAOCP 2, algorithm 3.4.2P): from the last item down, each
/// changes places with one at or before it.
fn shuffle<T>(items: &mut [T], rng: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        let chosen = below(last as u64 + 1, rng);
        items.swap(last, chosen as usize);
    }
}

/// A number in `0..n`, each equally likely: draws at or above the largest multiple of `n` are thrown away.
fn below(n: u64, rng: &mut ChaCha8Rng) -> u64 {
    let usable = u64::MAX - u64::MAX % n;
    loop {
        let draw = rng.next_u64();
        if draw < usable {
            return draw % n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_assert_ne, proptest};

    fn names(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("c{i}")).collect()
    }

    fn shown(cases: usize, blocks: u32, seed: u64) -> String {
        let trials = order(&names(cases), blocks, seed);
        trials.iter().map(|t| format!("{}/{}", t.case, t.trial)).collect::<Vec<_>>().join(" ")
    }

    /// If this fails, every run folder made with an earlier version can no longer be resumed.
    #[test]
    fn the_order_of_a_seed_never_changes() {
        insta::assert_snapshot!(shown(5, 3, 42), @"c1/1 c0/1 c2/1 c3/1 c4/1 c0/2 c3/2 c4/2 c1/2 c2/2 c0/3 c3/3 c1/3 c2/3 c4/3");
        insta::assert_snapshot!(shown(8, 1, 0), @"c2/1 c1/1 c3/1 c7/1 c0/1 c4/1 c5/1 c6/1");
    }

    proptest! {
        #[test]
        fn every_case_comes_once_a_block(cases in 0usize..40, blocks in 1u32..6, seed in any::<u64>()) {
            let names = names(cases);
            let trials = order(&names, blocks, seed);
            prop_assert_eq!(trials.len(), cases * blocks as usize);
            for (i, block) in trials.chunks(cases.max(1)).enumerate() {
                let mut seen: Vec<&String> = block.iter().map(|trial| &trial.case).collect();
                seen.sort_unstable();
                let mut all: Vec<&String> = names.iter().collect();
                all.sort_unstable();
                prop_assert_eq!(seen, all);
                prop_assert!(block.iter().all(|trial| trial.trial as usize == i + 1));
            }
        }

        #[test]
        fn a_seed_gives_the_same_order_again_and_another_seed_another(seed in any::<u64>()) {
            prop_assert_eq!(order(&names(30), 2, seed), order(&names(30), 2, seed));
            prop_assert_ne!(order(&names(30), 2, seed), order(&names(30), 2, seed.wrapping_add(1)));
        }

        #[test]
        fn more_blocks_leave_the_earlier_ones_as_they_were(seed in any::<u64>()) {
            prop_assert_eq!(&order(&names(7), 5, seed)[..14], &order(&names(7), 2, seed)[..]);
        }
    }

    #[test]
    fn every_place_is_equally_likely() {
        let mut firsts = [0u32; 4];
        for seed in 0..4000 {
            let first = &order(&names(4), 1, seed)[0].case;
            firsts[names(4).iter().position(|name| name == first).unwrap()] += 1;
        }
        // 1000 expected in each, standard deviation 27: six of them.
        assert!(firsts.iter().all(|n| (835..1165).contains(n)), "{firsts:?}");
    }
}

//! The order of the trials: a block is one round through all cases, balanced for place and predecessor, drawn from the
//! plan's seed.
//!
//! A trial may affect the next one (a device that still collects garbage, warm caches), so each case should follow each
//! other one equally often, and stand at each place of a block equally often. A Williams design does both (E. J.
//! Williams, Australian Journal of Scientific Research A 2, 1949, 149): its rows are the cyclic shifts of a zigzag, `n`
//! of them for an even number of cases, and for an odd one these and their mirror images. Cases are numbered at random.
//! Each block takes one unused row: among some drawn at random, the one with the least [`Balance::score`]. A plan with
//! fewer blocks than rows is then as balanced as such rows can be, and further blocks do not change the order of
//! earlier ones. When all rows are used, the cases are renumbered.
//!
//! Cases of several guests are grouped by guest inside each block, so that a block boots each guest once. The guests
//! have an order of their own, drawn in the same way, and inside its guest each group is ordered like a plan of only
//! these cases. Guests with the same cases therefore have them in the same order.
//!
//! The order belongs to the plan format: the same seed and cases must give the same order in every version, or a
//! resumed run would not find its trials. So nothing here depends on behaviour that a random library may change:
//! ChaCha8 is a fixed cipher (RFC 8439's function with 8 rounds), its key is the seed in little-endian bytes followed
//! by zeros, and the shuffle is written out. A test pins one order.

use crate::record::case::{CaseSpec, TrialKey};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use std::collections::BTreeMap;

/// Number of rows among which the next block is chosen; with up to 32 cases, all rows.
const CANDIDATES: usize = 64;

/// The trials of `blocks` rounds through `cases`, grouped by guest. More blocks do not change the order of earlier
/// ones.
pub(super) fn of_cases(cases: &[CaseSpec], blocks: u32, seed: u64) -> Vec<TrialKey> {
    // A guest's name stands for the trials of its group; cases without a guest form one group.
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut guests: Vec<String> = Vec::new();
    for case in cases {
        let guest = case.guest.clone().unwrap_or_default();
        if !groups.contains_key(&guest) {
            guests.push(guest.clone());
        }
        groups.entry(guest).or_default().push(case.id.clone());
    }
    let ordered: BTreeMap<String, Vec<TrialKey>> =
        groups.iter().map(|(guest, ids)| (guest.clone(), order(ids, blocks, seed))).collect();
    let turns = order(&guests, blocks, seed).into_iter().flat_map(|turn| {
        let (all, cases) = (&ordered[&turn.case], groups[&turn.case].len());
        let before = (turn.trial as usize - 1) * cases;
        all[before..before + cases].to_vec()
    });
    turns.collect()
}

/// Round `number`, from 1, of cases measured in turns: each follows each other one as evenly as the rounds allow.
pub(crate) fn round(cases: &[String], number: u32, seed: u64) -> Vec<String> {
    order(cases, number, seed).into_iter().filter(|turn| turn.trial == number).map(|turn| turn.case).collect()
}

/// The trials of `blocks` rounds through `cases`. More blocks do not change the order of earlier ones.
fn order(cases: &[String], blocks: u32, seed: u64) -> Vec<TrialKey> {
    let mut key = [0u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    let mut trials = Vec::with_capacity(cases.len().saturating_mul(blocks as usize));
    let mut tally = Balance::default();
    let mut design = WilliamsDesign::default();
    for trial in 1..=blocks {
        if design.left.is_empty() {
            design = WilliamsDesign::draw(cases.len(), &mut rng);
        }
        let round = design.take(&tally, &mut rng);
        tally.add(&round);
        trials.extend(round.into_iter().map(|case| TrialKey { case: cases[case].clone(), trial }));
    }
    trials
}

/// A Williams design with the rows that no block has used yet.
#[derive(Default)]
struct WilliamsDesign {
    /// Case index by number in the design.
    cases: Vec<usize>,
    left: Vec<DesignRow>,
}

/// The zigzag shifted by `shift`, optionally reversed.
#[derive(Clone, Copy)]
struct DesignRow {
    shift: usize,
    mirrored: bool,
}

impl WilliamsDesign {
    fn draw(n: usize, rng: &mut ChaCha8Rng) -> WilliamsDesign {
        let mut cases: Vec<usize> = (0..n).collect();
        shuffle(&mut cases, rng);
        let mirrors: &[bool] = if n.is_multiple_of(2) { &[false] } else { &[false, true] };
        let rows = mirrors.iter().flat_map(|mirrored| (0..n).map(|shift| DesignRow { shift, mirrored: *mirrored }));
        let mut left: Vec<DesignRow> = rows.collect();
        shuffle(&mut left, rng);
        WilliamsDesign { cases, left }
    }

    /// Removes the row with the least score among the last [`CANDIDATES`], which are in random order.
    fn take(&mut self, tally: &Balance, rng: &mut ChaCha8Rng) -> Vec<usize> {
        let first = self.left.len().saturating_sub(CANDIDATES);
        let scored = (first..self.left.len()).map(|at| (tally.score(&self.round(self.left[at])), at));
        let Some((_, best)) = scored.min() else { return Vec::new() };
        let row = self.left.remove(best);
        // Gives large plans different candidates each time.
        if self.left.len() > CANDIDATES {
            shuffle(&mut self.left, rng);
        }
        self.round(row)
    }

    fn round(&self, row: DesignRow) -> Vec<usize> {
        let n = self.cases.len();
        // 0, 1, n-1, 2, n-2, ...: each difference between neighbours occurs once.
        let zigzag = (0..n).map(|place| if place % 2 == 0 { (n - place / 2) % n } else { place.div_ceil(2) });
        let mut round: Vec<usize> = zigzag.map(|number| self.cases[(number + row.shift) % n]).collect();
        if row.mirrored {
            round.reverse();
        }
        round
    }
}

/// Counts of each case following another one, and of each case at each place of a block.
#[derive(Default)]
struct Balance {
    /// By predecessor and case, over the whole run, block borders included.
    followed: BTreeMap<(usize, usize), u64>,
    /// By place and case.
    stood: BTreeMap<(usize, usize), u64>,
    last: Option<usize>,
}

impl Balance {
    /// Increase of the sum of squares of both counts if this round is added; the smaller, the more even they become.
    /// Adding one to a count `c` adds `2 c + 1`. A case that follows itself counts like any other pair.
    fn score(&self, round: &[usize]) -> u64 {
        let followed = self.pairs(round).map(|pair| self.followed.get(&pair));
        let stood = round.iter().enumerate().map(|(place, case)| self.stood.get(&(place, *case)));
        followed.chain(stood).map(|count| 2 * count.copied().unwrap_or(0) + 1).sum()
    }

    fn pairs<'r>(&self, round: &'r [usize]) -> impl Iterator<Item = (usize, usize)> + use<'r> {
        let before = self.last.into_iter().chain(round.iter().copied());
        let after = if self.last.is_some() { round } else { round.get(1..).unwrap_or_default() };
        before.zip(after.iter().copied())
    }

    fn add(&mut self, round: &[usize]) {
        for pair in self.pairs(round) {
            *self.followed.entry(pair).or_default() += 1;
        }
        for (place, case) in round.iter().enumerate() {
            *self.stood.entry((place, *case)).or_default() += 1;
        }
        self.last = round.last().copied().or(self.last);
    }
}

/// Durstenfeld's form of the Fisher-Yates shuffle (Knuth, TAOCP 2, algorithm 3.4.2P): from the last item down, each is
/// swapped with one at or before it.
fn shuffle<T>(items: &mut [T], rng: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        let chosen = below(last as u64 + 1, rng);
        items.swap(last, chosen as usize);
    }
}

/// A uniform number in `0..n`: draws at or above the largest multiple of `n` are rejected.
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
    use crate::record::case::WorkloadSpec;
    use crate::record::options::Options;
    use crate::record::stack::StackSpec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_assert_ne, proptest};

    fn names(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("c{i}")).collect()
    }

    fn shown(cases: usize, blocks: u32, seed: u64) -> String {
        let trials = order(&names(cases), blocks, seed);
        trials.iter().map(|t| format!("{}/{}", t.case, t.trial)).collect::<Vec<_>>().join(" ")
    }

    /// If this fails, run folders made by earlier versions can no longer be resumed.
    #[test]
    fn the_order_of_a_seed_never_changes() {
        insta::assert_snapshot!(shown(5, 3, 42), @"c0/1 c1/1 c2/1 c4/1 c3/1 c1/2 c4/2 c0/2 c3/2 c2/2 c0/3 c2/3 c1/3 c3/3 c4/3");
        insta::assert_snapshot!(shown(8, 1, 0), @"c0/1 c4/1 c7/1 c5/1 c3/1 c6/1 c1/1 c2/1");
    }

    /// Number of times that each of `n` cases follows each other one within blocks.
    fn followed_within_blocks(n: usize, blocks: u32, seed: u64) -> Vec<u32> {
        let names = names(n);
        let mut counts = vec![0; n * n];
        let place = |trial: &TrialKey| names.iter().position(|name| *name == trial.case).unwrap();
        for block in order(&names, blocks, seed).chunks(n) {
            for pair in block.windows(2) {
                counts[place(&pair[0]) * n + place(&pair[1])] += 1;
            }
        }
        (0..n * n).filter(|at| at / n != at % n).map(|at| counts[at]).collect()
    }

    /// Sum of squares of [`Balance::score`]'s counts over a whole order.
    fn unevenness(trials: &[TrialKey], n: usize) -> usize {
        let (mut pairs, mut places) = (BTreeMap::new(), BTreeMap::new());
        for pair in trials.windows(2) {
            *pairs.entry((&pair[0].case, &pair[1].case)).or_insert(0usize) += 1;
        }
        for (at, trial) in trials.iter().enumerate() {
            *places.entry((at % n, &trial.case)).or_insert(0usize) += 1;
        }
        pairs.values().map(|count| count * count).sum::<usize>()
            + places.values().map(|count| count * count).sum::<usize>()
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
        fn each_guest_has_its_cases_of_a_block_contiguous(
            cases in 1usize..8, guests in 1usize..4, blocks in 1u32..6, seed in any::<u64>(),
        ) {
            let case = |guest: usize, name: &String| CaseSpec {
                id: format!("g{guest}-{name}"),
                guest: Some(format!("g{guest}")),
                stack: StackSpec::linear("s", Vec::new()),
                postgres: None,
                machine: Options::default(),
                age: Options::default(),
                workload: WorkloadSpec { name: "w".into(), kind: "sync".into(), options: Options::default() },
                axes: BTreeMap::new(),
            };
            // Not sorted by guest, as may result from exclusions.
            let all: Vec<CaseSpec> =
                names(cases).iter().flat_map(|name| (0..guests).map(move |guest| case(guest, name))).collect();
            let trials = of_cases(&all, blocks, seed);
            prop_assert_eq!(trials.len(), all.len() * blocks as usize);
            for (at, block) in trials.chunks(all.len()).enumerate() {
                prop_assert!(block.iter().all(|trial| trial.trial as usize == at + 1));
                prop_assert_eq!(block.chunk_by(|one, next| one.case[..2] == next.case[..2]).count(), guests);
            }
            for guest in 0..guests {
                let own: Vec<CaseSpec> = all.iter().filter(|case| case.id.starts_with(&format!("g{guest}"))).cloned().collect();
                let of_all: Vec<&TrialKey> = trials.iter().filter(|key| key.case.starts_with(&format!("g{guest}"))).collect();
                let alone = of_cases(&own, blocks, seed);
                prop_assert_eq!(of_all, alone.iter().collect::<Vec<_>>());
            }
            let longer = of_cases(&all, blocks + 1, seed);
            prop_assert_eq!(&longer[..trials.len()], &trials[..]);
        }

        #[test]
        fn the_same_seed_repeats_the_order_and_another_changes_it(seed in any::<u64>()) {
            prop_assert_eq!(order(&names(30), 2, seed), order(&names(30), 2, seed));
            prop_assert_ne!(order(&names(30), 2, seed), order(&names(30), 2, seed.wrapping_add(1)));
        }

        #[test]
        fn more_blocks_leave_the_earlier_ones_as_they_were(seed in any::<u64>()) {
            prop_assert_eq!(&order(&names(7), 5, seed)[..14], &order(&names(7), 2, seed)[..]);
        }
    }

    proptest! {
        #[test]
        fn a_full_design_balances_every_succession_and_every_position(
            n in 2usize..=13, designs in 1u32..3, seed in any::<u64>(),
        ) {
            let blocks = designs * n as u32 * if n % 2 == 0 { 1 } else { 2 };
            let expected = blocks / n as u32;
            prop_assert!(followed_within_blocks(n, blocks, seed).iter().all(|count| *count == expected));
            let names = names(n);
            let trials = order(&names, blocks, seed);
            for place in 0..n {
                for name in &names {
                    let stood = trials.iter().skip(place).step_by(n).filter(|trial| trial.case == *name).count();
                    prop_assert_eq!(stood, blocks as usize / n);
                }
            }
        }

        #[test]
        fn in_half_a_design_no_succession_of_cases_repeats(
            n in 4usize..=40, blocks in 1u32..=8, seed in any::<u64>(),
        ) {
            let blocks = blocks.min(n as u32 / 2);
            prop_assert!(followed_within_blocks(n, blocks, seed).iter().all(|count| *count <= 1));
        }

        #[test]
        fn the_order_is_more_balanced_than_random_shuffles(
            n in 4usize..=10, blocks in 2u32..=8, seed in any::<u64>(),
        ) {
            let ours = unevenness(&order(&names(n), blocks, seed), n);
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let of_shuffles: usize = (0..20).map(|_| {
                let shuffled: Vec<TrialKey> = (0..blocks).flat_map(|trial| {
                    let mut round = names(n);
                    shuffle(&mut round, &mut rng);
                    round.into_iter().map(move |case| TrialKey { case, trial })
                }).collect();
                unevenness(&shuffled, n)
            }).sum();
            prop_assert!(20 * ours < of_shuffles, "{ours} against {} by shuffles", of_shuffles / 20);
        }
    }

    #[test]
    fn every_place_is_equally_likely() {
        let mut firsts = [0u32; 4];
        for seed in 0..4000 {
            let first = &order(&names(4), 1, seed)[0].case;
            firsts[names(4).iter().position(|name| name == first).unwrap()] += 1;
        }
        // 1000 expected in each, standard deviation 27; the bounds are six of them.
        assert!(firsts.iter().all(|n| (835..1165).contains(n)), "{firsts:?}");
    }
}

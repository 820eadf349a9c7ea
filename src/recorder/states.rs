//! The states that a power cut may leave, and a selection of them to test.
//!
//! A state is the durable set at a moment, some of the requests in play then, and possibly torn writes. Floors come
//! first: redo reads WAL from its start, so anything missing there is missing for good.

use super::durable::Durable;
use super::entry::{Entry, Op, Seq};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// How a state is composed from the requests in play.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The durable set alone.
    Floor,
    /// Plus everything in play.
    Ceiling,
    /// Plus one request in play.
    FloorAndOne,
    /// Plus everything in play except one request.
    CeilingButOne,
    /// Plus one of all subsets, if at most [`MOST_ENUMERATED`] requests were in play.
    Subset,
    /// Plus a random subset, or with one kind of content kept or dropped.
    Sample,
    /// The durable set and part of one write, in units of 4 KiB.
    TornPage,
    /// The same in units of 512 bytes: outside what filesystems promise on disks with 4 KiB sectors.
    TornSector,
}

impl Class {
    /// In the order they are tried, with the label for tables.
    pub const WORDS: [(Class, &str); 8] = [
        (Class::Floor, "floor"),
        (Class::Ceiling, "ceiling"),
        (Class::FloorAndOne, "floor + 1"),
        (Class::CeilingButOne, "ceiling - 1"),
        (Class::Subset, "subset"),
        (Class::Sample, "sample"),
        (Class::TornPage, "torn at 4 KiB"),
        (Class::TornSector, "torn at 512 B"),
    ];

    /// Label for tables.
    pub fn word(self) -> &'static str {
        Class::WORDS[self as usize].1
    }
}

/// The part of a torn write that was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptPart {
    First,
    Last,
    /// The first half of each 8 KiB page: halves meet at this offset and every 8 KiB from there.
    FirstHalves,
}

/// A write of which a power cut left only a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tear {
    /// Number of the entry.
    pub entry: usize,
    /// Offset where the two parts meet: bytes from the start of the write.
    pub at: u64,
    pub kept: KeptPart,
}

impl Tear {
    /// The first half of every page; the halves of one page meet `at` bytes from the start of the write.
    pub fn first_halves(entry: usize, at: u64) -> Tear {
        Tear { entry, at, kept: KeptPart::FirstHalves }
    }

    /// The parts that are kept.
    pub(super) fn parts(&self, entry: &Entry) -> impl Iterator<Item = Range<u64>> {
        let end = entry.length;
        let (first, length, every) = match self.kept {
            KeptPart::First => (0, self.at, u64::MAX),
            KeptPart::Last => (self.at, end - self.at, u64::MAX),
            KeptPart::FirstHalves => ((self.at + PAGE - SEAM) % PAGE, SEAM, PAGE),
        };
        (first..end).step_by(every as usize).map(move |from| from..(from + length).min(end))
    }
}

/// One state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub class: Class,
    /// The power failed just before this position in the sequence.
    pub at: Seq,
    /// Entries in play that are kept: numbers, in order.
    pub extra: Vec<usize>,
    /// Partially kept writes.
    pub torn: Vec<Tear>,
}

impl State {
    /// The disks with every request submitted before `at`.
    pub fn everything(entries: &[Entry], durable: &Durable, at: Seq) -> State {
        State { class: Class::Ceiling, at, extra: durable.in_play(entries, at), torn: Vec::new() }
    }

    /// Numbers of all entries present as a whole, in order.
    pub(super) fn present(&self, durable: &Durable) -> Vec<usize> {
        let mut present = durable.at(self.at);
        present.extend(&self.extra);
        present.sort_unstable();
        present
    }
}

/// Most requests in play for which all subsets are tried.
pub const MOST_ENUMERATED: usize = 8;

/// Most requests in play that are kept, left out and torn one at a time; from more, this many are picked at random. A
/// disk that is never flushed has thousands in play at each of thousands of moments.
const MOST_NEAR: usize = 32;

/// Unit of torn pages and of seams, bytes.
const SEAM: u64 = 4096;

/// PostgreSQL's default page size, bytes.
const PAGE: u64 = 8192;

/// Random subsets for each moment with more in play.
const RANDOM_SUBSETS: usize = 4;

/// Knowledge about the content of a request, which the recorder itself cannot interpret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Stratum for sampling.
    pub kind: u8,
    /// Offsets from its start, multiples of 4 KiB of the disk, where a tear leaves a mixture. Empty if any offset will
    /// do.
    pub seams: Vec<u64>,
}

/// How to select states.
#[derive(Debug, Clone, Copy)]
pub struct Pick {
    /// The same seed selects the same states.
    pub seed: u64,
    /// Most states, shared evenly among the classes; unused shares go to other classes.
    pub states: usize,
}

/// How much was selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Distinct moments, by durable set and requests in play.
    pub moments: usize,
    /// Moments with something in play.
    pub with_play: usize,
    /// Most requests in play at once.
    pub most_in_play: usize,
    /// By class: states selected, and states available (samples: drawn).
    pub classes: BTreeMap<Class, (usize, usize)>,
}

/// Selects states at these moments, no two with the same requests. `written` describes each entry's content.
pub fn select(
    entries: &[Entry],
    durable: &Durable,
    moments: &[Seq],
    written: &[Written],
    pick: Pick,
) -> (Vec<State>, Coverage) {
    let mut chooser = Chooser {
        entries,
        written,
        rng: ChaCha8Rng::seed_from_u64(pick.seed),
        most: pick.states,
        seen: BTreeSet::new(),
        chosen: BTreeMap::new(),
        coverage: Coverage::default(),
    };
    let mut seen = BTreeSet::new();
    let mut sweep = Sweep::new(entries, durable);
    let mut moments = moments.to_vec();
    moments.sort_unstable();
    // Latest first: of two moments with the same disks, more was acknowledged at the later one.
    for at in moments.into_iter().rev() {
        sweep.back_to(at);
        if seen.insert((sweep.durable_sum, sweep.in_play_sum)) {
            let in_play = sweep.in_play.iter().copied().collect();
            chooser.take_moment(&CutMoment { at, sum: sweep.durable_sum, all: sweep.in_play_sum, in_play });
        }
    }
    chooser.finish()
}

/// The durable set and the requests in play, stepping backwards through moments.
struct Sweep {
    /// Entry numbers by when they became durable, and by submission, latest last: those still durable, and those still
    /// submitted.
    by_durable: Vec<(Seq, usize)>,
    by_submission: Vec<(Seq, usize)>,
    durable_sum: u128,
    in_play: BTreeSet<usize>,
    in_play_sum: u128,
}

impl Sweep {
    /// Starts after the last request.
    fn new(entries: &[Entry], durable: &Durable) -> Sweep {
        let changing: Vec<usize> = (0..entries.len()).filter(|number| entries[*number].changes()).collect();
        let mut by_durable: Vec<(Seq, usize)> =
            changing.iter().map(|number| (durable.from(*number), *number)).collect();
        let mut by_submission: Vec<(Seq, usize)> =
            changing.iter().map(|number| (entries[*number].submitted, *number)).collect();
        by_durable.sort_unstable();
        by_submission.sort_unstable();
        let durable_sum = sum(&changing);
        Sweep { by_durable, by_submission, durable_sum, in_play: BTreeSet::new(), in_play_sum: 0 }
    }

    /// Steps back to a moment.
    fn back_to(&mut self, at: Seq) {
        while let Some((_, number)) = self.by_durable.pop_if(|(from, _)| *from >= at) {
            self.durable_sum = self.durable_sum.wrapping_sub(share(number));
            self.in_play.insert(number);
            self.in_play_sum = self.in_play_sum.wrapping_add(share(number));
        }
        // Anything submitted later becomes durable later still: it is in play by now.
        while let Some((_, number)) = self.by_submission.pop_if(|(submitted, _)| *submitted >= at) {
            if self.in_play.remove(&number) {
                self.in_play_sum = self.in_play_sum.wrapping_sub(share(number));
            }
        }
    }
}

/// A position at which the power may fail.
struct CutMoment {
    at: Seq,
    /// Sum over the durable set.
    sum: u128,
    /// Sum over the requests in play.
    all: u128,
    in_play: Vec<usize>,
}

struct Chooser<'a> {
    entries: &'a [Entry],
    written: &'a [Written],
    rng: ChaCha8Rng,
    most: usize,
    /// Sums of the states seen.
    seen: BTreeSet<u128>,
    /// By class and, for torn writes, kind of content: far more WAL is written than data. With the number seen.
    chosen: BTreeMap<(Class, u8), (usize, Vec<State>)>,
    coverage: Coverage,
}

impl Chooser<'_> {
    fn take_moment(&mut self, moment: &CutMoment) {
        let (in_play, all) = (&moment.in_play, moment.all);
        self.coverage.moments += 1;
        self.coverage.with_play += usize::from(!in_play.is_empty());
        self.coverage.most_in_play = self.coverage.most_in_play.max(in_play.len());
        self.take(moment, Class::Floor, 0, Vec::new);
        self.take(moment, Class::Ceiling, all, || in_play.clone());
        let near = self.near(in_play);
        for one in &near {
            self.take(moment, Class::FloorAndOne, share(*one), || vec![*one]);
            self.take(moment, Class::CeilingButOne, all.wrapping_sub(share(*one)), || {
                in_play.iter().copied().filter(|other| other != one).collect()
            });
        }
        if in_play.len() <= MOST_ENUMERATED {
            for subset in 0..1_u32 << in_play.len() {
                let extra = in_play.iter().zip(0..).filter(|(_, bit)| subset >> bit & 1 == 1).map(|(one, _)| *one);
                let extra: Vec<usize> = extra.collect();
                self.take(moment, Class::Subset, sum(&extra), || extra);
            }
        } else {
            self.take_samples(moment);
        }
        for (class, unit) in [(Class::TornPage, SEAM), (Class::TornSector, 512)] {
            for one in &near {
                if let Some(tear) = self.tear(*one, unit) {
                    self.take_torn(moment, class, tear);
                }
            }
        }
    }

    /// Requests that are kept, left out and torn one at a time: all, or a random selection.
    fn near(&mut self, in_play: &[usize]) -> Vec<usize> {
        if in_play.len() <= MOST_NEAR {
            return in_play.to_vec();
        }
        (0..MOST_NEAR).map(|_| in_play[self.rng.next_u32() as usize % in_play.len()]).collect()
    }

    fn stratum(&self, number: usize) -> u8 {
        self.written.get(number).map_or(0, |written| written.kind)
    }

    /// Keeps each kind of content alone and drops it alone, then takes random subsets.
    fn take_samples(&mut self, moment: &CutMoment) {
        let kinds: BTreeSet<u8> = moment.in_play.iter().map(|number| self.stratum(*number)).collect();
        let mut samples: Vec<Vec<usize>> = Vec::new();
        for kind in kinds {
            for kept in [true, false] {
                let extra = moment.in_play.iter().copied().filter(|number| (self.stratum(*number) == kind) == kept);
                samples.push(extra.collect());
            }
        }
        for _ in 0..RANDOM_SUBSETS {
            let extra = moment.in_play.iter().copied().filter(|_| self.rng.next_u32() & 1 == 1);
            samples.push(extra.collect());
        }
        for extra in samples {
            self.take(moment, Class::Sample, sum(&extra), || extra);
        }
    }

    /// Tears a write at a multiple of `unit` bytes of the disk, at a seam if it has any; `None` if it lies within one
    /// unit.
    fn tear(&mut self, number: usize, unit: u64) -> Option<Tear> {
        let entry = &self.entries[number];
        if entry.op != Op::Write {
            return None;
        }
        let first = unit - entry.offset % unit;
        if first >= entry.length {
            return None;
        }
        let seams = self.written.get(number).map_or(&[][..], |written| &written.seams);
        let at = if seams.is_empty() || unit != SEAM {
            let places = (entry.length - first - 1) / unit + 1;
            first + unit * (u64::from(self.rng.next_u32()) % places)
        } else {
            seams[self.rng.next_u32() as usize % seams.len()]
        };
        let kept = if self.rng.next_u32() & 1 == 0 { KeptPart::First } else { KeptPart::Last };
        Some(Tear { entry: number, at, kept })
    }

    /// Takes a state whose extra requests have this sum.
    fn take(&mut self, moment: &CutMoment, class: Class, extra_sum: u128, extra: impl FnOnce() -> Vec<usize>) {
        let identity = moment.sum.wrapping_add(extra_sum);
        self.choose(class, 0, identity, || State { class, at: moment.at, extra: extra(), torn: Vec::new() });
    }

    fn take_torn(&mut self, moment: &CutMoment, class: Class, tear: Tear) {
        let part = mix(u128::from(tear.at), u128::from(tear.kept == KeptPart::First));
        let identity = moment.sum.wrapping_add(mix(part, tear.entry as u128));
        let (stratum, at) = (self.stratum(tear.entry), moment.at);
        self.choose(class, stratum, identity, || State { class, at, extra: Vec::new(), torn: vec![tear] });
    }

    /// Counts a state and, if new, keeps it or lets it replace another one (reservoir sampling).
    fn choose(&mut self, class: Class, stratum: u8, identity: u128, state: impl FnOnce() -> State) {
        if !self.seen.insert(identity) {
            return;
        }
        self.coverage.classes.entry(class).or_default().1 += 1;
        let (all, chosen) = self.chosen.entry((class, stratum)).or_default();
        *all += 1;
        if chosen.len() < self.most {
            chosen.push(state());
        } else {
            let place = (self.rng.next_u64() % *all as u64) as usize;
            if let Some(kept) = chosen.get_mut(place) {
                *kept = state();
            }
        }
    }

    fn finish(mut self) -> (Vec<State>, Coverage) {
        let mut classes: BTreeMap<Class, Vec<Vec<State>>> = BTreeMap::new();
        for ((class, _), (_, mut chosen)) in std::mem::take(&mut self.chosen) {
            self.shuffle(&mut chosen);
            classes.entry(class).or_default().push(chosen);
        }
        let mut classes: Vec<(usize, Class, Vec<Vec<State>>)> =
            classes.into_iter().map(|(class, strata)| (strata.iter().map(Vec::len).sum(), class, strata)).collect();
        classes.sort_by_key(|(size, ..)| *size);
        let sizes: Vec<usize> = classes.iter().map(|(size, ..)| *size).collect();
        let mut states = Vec::new();
        for ((_, class, mut strata), share) in classes.into_iter().zip(shares(&sizes, self.most)) {
            strata.sort_by_key(Vec::len);
            let sizes: Vec<usize> = strata.iter().map(Vec::len).collect();
            for (mut chosen, share) in strata.into_iter().zip(shares(&sizes, share)) {
                chosen.truncate(share);
                self.coverage.classes.entry(class).or_default().0 += chosen.len();
                states.extend(chosen);
            }
        }
        states.sort_by_key(|state| (state.class, state.at));
        (states, self.coverage)
    }

    fn shuffle(&mut self, states: &mut [State]) {
        for last in (1..states.len()).rev() {
            let place = (self.rng.next_u64() % (last as u64 + 1)) as usize;
            states.swap(last, place);
        }
    }
}

/// Shares `most` evenly among groups of these sizes, smallest first: the rest of its share goes to the others.
fn shares(sizes: &[usize], most: usize) -> Vec<usize> {
    let mut left = most;
    let shares = sizes.iter().enumerate().map(|(place, size)| {
        let share = left.div_ceil(sizes.len() - place).min(*size);
        left -= share;
        share
    });
    shares.collect()
}

/// Multiplier of the 128-bit FNV hash.
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013B;

/// Mixes a number into a hash.
fn mix(hash: u128, number: u128) -> u128 {
    let mixed = (hash ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)).wrapping_mul(PRIME);
    mixed ^ (mixed >> 61)
}

/// A sum that does not depend on order.
fn sum(numbers: &[usize]) -> u128 {
    numbers.iter().map(|number| share(*number)).fold(0, u128::wrapping_add)
}

/// Contribution of one number to the sum.
fn share(number: usize) -> u128 {
    mix(1, number as u128 + 1)
}

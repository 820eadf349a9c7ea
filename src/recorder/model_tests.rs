//! Tests the engine against trivially correct models: a disk is a vector of bytes, a durable set a definition.

use super::entry::{Entry, Hash, NEVER, Op, Seq};
use super::states::{KeptPart, Tear};
use super::testing::{ROOM, SIZE, TestDisks, whole};
use super::{Class, DeviceModel, Durable, Pick, Recorder, Recording, State, Written, select};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// One request of a random load.
#[derive(Debug, Clone)]
struct Request {
    disk: u16,
    op: Op,
    offset: u64,
    length: u64,
    filler: u8,
    fua: bool,
}

fn request() -> impl Strategy<Value = Request> {
    let op = prop_oneof![
        5 => Just(Op::Write),
        2 => Just(Op::Flush),
        1 => Just(Op::Discard),
        1 => Just(Op::WriteZeroes),
    ];
    (0..2_u16, op, 0..60_u64, 1..5_u64, 1..=255_u8, proptest::bool::weighted(0.1)).prop_map(
        |(disk, op, block, blocks, filler, fua)| {
            // Half blocks too: extents are split at any byte.
            let (offset, length) = (block * 512, blocks * 512);
            Request { disk, op, offset, length, filler, fua }
        },
    )
}

fn send(recorder: &Recorder, request: &Request) {
    let Request { disk, op, offset, length, filler, fua } = *request;
    let done = match op {
        Op::Write => recorder.write(disk, offset, &vec![filler; length as usize], fua),
        Op::Flush => recorder.flush(disk),
        Op::Discard | Op::WriteZeroes => recorder.clear(disk, op, offset, length),
    };
    done.unwrap();
}

/// Applies a request to vectors.
fn apply(disks: &mut [Vec<u8>], request: &Request) {
    let range = request.offset as usize..(request.offset + request.length) as usize;
    match request.op {
        Op::Write => disks[request.disk as usize][range].fill(request.filler),
        Op::Discard | Op::WriteZeroes => disks[request.disk as usize][range].fill(0),
        Op::Flush => {}
    }
}

/// The durable set of an honest device, by definition: completed FUA writes, and writes that completed before the
/// submission of a flush that itself completed.
fn is_durable(entries: &[Entry], entry: &Entry, at: Seq) -> bool {
    let flushed = entries.iter().any(|flush| {
        flush.op == Op::Flush && flush.disk == entry.disk && entry.completed < flush.submitted && flush.completed < at
    });
    entry.changes() && ((entry.fua && entry.completed < at) || flushed)
}

/// Entries whose submissions and completions interleave at random.
fn interleaved() -> impl Strategy<Value = Vec<Entry>> {
    (proptest::collection::vec(request(), 1..40), any::<u64>()).prop_map(|(requests, seed)| {
        let mut places: Vec<Seq> = (0..requests.len() as u64 * 2).collect();
        let mut random = seed | 1;
        for last in (1..places.len()).rev() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            places.swap(last, (random >> 33) as usize % (last + 1));
        }
        let mut entries: Vec<Entry> = requests
            .iter()
            .zip(places.chunks_exact(2))
            .map(|(request, two)| Entry {
                disk: request.disk,
                op: request.op,
                fua: request.fua && request.op == Op::Write,
                submitted: two[0].min(two[1]),
                completed: two[0].max(two[1]),
                at_us: two[0].max(two[1]) * 10,
                offset: request.offset,
                length: if request.op == Op::Flush { 0 } else { request.length },
                hash: Hash::default(),
                stored: 0,
            })
            .collect();
        entries.sort_by_key(|entry| entry.completed);
        entries
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_disk_reads_back_as_written_and_replays_bit_identical(
        before in proptest::collection::vec(request(), 0..10),
        after in proptest::collection::vec(request(), 0..60),
    ) {
        let disks = TestDisks::new(2);
        let mut model = vec![vec![0; SIZE as usize]; 2];
        for one in &before {
            send(&disks.recorder, one);
            apply(&mut model, one);
        }
        disks.recorder.begin(&disks.log(), ROOM).unwrap();
        for one in &after {
            send(&disks.recorder, one);
            apply(&mut model, one);
        }
        for disk in 0..2 {
            prop_assert!(whole(&disks.recorder.image(disk).unwrap()) == model[disk as usize]);
        }
        disks.recorder.finish().unwrap();
        let replayed = Recording::open(&disks.log(), &disks.origins()).unwrap();
        prop_assert!(replayed.log().entries().len() == after.len());
        let entries = replayed.log().entries();
        let durable = Durable::of(entries, DeviceModel::Honest);
        let end = State::everything(entries, &durable, replayed.log().end());
        for (image, model) in replayed.images(&durable, &end).iter().zip(&model) {
            prop_assert!(whole(image) == *model);
        }
    }

    #[test]
    fn the_durable_set_matches_its_definition_and_only_grows(entries in interleaved()) {
        let durable = Durable::of(&entries, DeviceModel::Honest);
        let mut before = Vec::new();
        for at in 0..=entries.len() as u64 * 2 {
            let expected: Vec<usize> =
                (0..entries.len()).filter(|number| is_durable(&entries, &entries[*number], at)).collect();
            let found = durable.at(at);
            prop_assert_eq!(&found, &expected);
            prop_assert!(before.iter().all(|number| found.contains(number)));
            before = found;
        }
    }

    #[test]
    fn lying_device_models_keep_no_more_than_honest_ones(entries in interleaved()) {
        let honest = Durable::of(&entries, DeviceModel::Honest);
        let of = |model| Durable::of(&entries, model);
        let end = entries.len() as u64 * 2;
        for number in (0..entries.len()).filter(|number| entries[*number].changes()) {
            prop_assert!(of(DeviceModel::PowerProtected).from(number) <= honest.from(number));
            for liar in [DeviceModel::FlushIgnored, DeviceModel::FuaIgnored, DeviceModel::DelayedFlush { us: 50 }] {
                prop_assert!(of(liar).from(number) >= honest.from(number), "{liar}");
            }
            prop_assert_eq!(of(DeviceModel::BoundedCache { bytes: u64::MAX }).from(number), NEVER);
        }
        let positions: Vec<Seq> = (0..=end).collect();
        for liar in DeviceModel::ALL.map(of) {
            let lacks = |at: &Seq| honest.at(*at).iter().any(|number| !liar.at(*at).contains(number));
            let by_definition: Vec<Seq> = positions.iter().copied().filter(lacks).collect();
            prop_assert_eq!(honest.ahead_of(&liar, &positions), by_definition);
        }
        let bounded = of(DeviceModel::BoundedCache { bytes: 2048 });
        let held: u64 = bounded.in_play(&entries, end).iter().filter(|number| entries[**number].disk == 0)
            .filter(|number| entries[**number].op == Op::Write).map(|number| entries[*number].length).sum();
        prop_assert!(held <= 2048);
    }

    #[test]
    fn states_contain_the_durable_set_and_never_repeat(
        entries in interleaved(), seed in any::<u64>(),
    ) {
        let durable = Durable::of(&entries, DeviceModel::Honest);
        let moments: Vec<Seq> = (0..=entries.len() as u64 * 2).collect();
        let kind = |entry: &Entry| Written { kind: (entry.offset / 4096 % 3) as u8, seams: Vec::new() };
        let written: Vec<Written> = entries.iter().map(kind).collect();
        let pick = Pick { seed, states: 60 };
        let (states, coverage) = select(&entries, &durable, &moments, &written, pick);
        prop_assert_eq!(&select(&entries, &durable, &moments, &written, pick).0, &states);
        let mut seen = BTreeSet::new();
        for state in &states {
            let (floor, in_play) = (durable.at(state.at), durable.in_play(&entries, state.at));
            let present = state.present(&durable);
            prop_assert!(floor.iter().all(|number| present.contains(number)));
            prop_assert!(state.extra.iter().all(|number| in_play.contains(number)));
            prop_assert!(seen.insert((present, state.torn.clone())), "twice: {state:?}");
        }
        let mut of_all = 0;
        for (class, word) in Class::WORDS {
            prop_assert_eq!(class.word(), word);
            let chosen = states.iter().filter(|state| state.class == class).count();
            let (reported, all) = coverage.classes.get(&class).copied().unwrap_or_default();
            prop_assert_eq!(chosen, reported);
            prop_assert!(chosen == all || chosen >= 60 / Class::WORDS.len(), "{class:?}: {chosen} of {all}");
            of_all += all;
        }
        prop_assert_eq!(states.len(), of_all.min(60));
    }
}

#[test]
fn disks_reachable_from_several_moments_are_tried_at_the_latest() {
    let disks = TestDisks::recording(1);
    let marks: Vec<Seq> = (0..5)
        .map(|block| {
            disks.recorder.write(0, block * 4096, &[1; 4096], false).unwrap();
            disks.recorder.mark()
        })
        .collect();
    let recording = disks.recorder.finish().unwrap();
    let entries = recording.log().entries();
    let durable = Durable::of(entries, DeviceModel::Honest);
    let (states, _) = select(entries, &durable, &marks, &[], Pick { seed: 1, states: 1000 });
    let whole: Vec<&State> = states.iter().filter(|state| state.torn.is_empty()).collect();
    assert_eq!(whole.len(), 32, "every subset of what was never flushed");
    let latest = |extra: &[usize]| whole.iter().find(|state| state.extra == extra).map(|state| state.at);
    assert_eq!((latest(&[]), latest(&[0, 1])), (marks.last().copied(), marks.last().copied()));
}

#[test]
fn a_state_shows_durable_kept_and_torn_writes() {
    let disks = TestDisks::recording(1);
    let write = |block: u64, filler: u8| disks.recorder.write(0, block * 4096, &[filler; 8192], false).unwrap();
    write(0, 1);
    disks.recorder.flush(0).unwrap();
    write(2, 2);
    write(4, 3);
    let at = disks.recorder.mark();
    let recording = disks.recorder.finish().unwrap();
    let fillers = |state: &State| {
        let bytes = &TestDisks::bytes_of(&recording, state)[0];
        (0..6).map(|block| bytes[block * 4096]).collect::<Vec<u8>>()
    };
    let floor = State { class: Class::Floor, at, extra: Vec::new(), torn: Vec::new() };
    assert_eq!(fillers(&floor), [1, 1, 0, 0, 0, 0]);
    assert_eq!(fillers(&State { extra: vec![3], ..floor.clone() }), [1, 1, 0, 0, 3, 3]);
    let torn = |kept| vec![Tear { entry: 2, at: 4096, kept }];
    assert_eq!(fillers(&State { torn: torn(KeptPart::First), ..floor.clone() }), [1, 1, 2, 0, 0, 0]);
    assert_eq!(fillers(&State { torn: torn(KeptPart::Last), ..floor.clone() }), [1, 1, 0, 2, 0, 0]);
    let both = vec![Tear::first_halves(2, 4096), Tear::first_halves(3, 4096)];
    assert_eq!(fillers(&State { torn: both, ..floor }), [1, 1, 2, 0, 3, 0]);
}

#[test]
fn a_recording_on_a_state_shows_both() {
    let disks = TestDisks::recording(1);
    disks.recorder.write(0, 0, &[1; 4096], true).unwrap();
    disks.recorder.write(0, 8192, &[2; 4096], false).unwrap();
    let at = disks.recorder.mark();
    let recording = disks.recorder.finish().unwrap();
    let durable = Durable::of(recording.log().entries(), DeviceModel::Honest);
    let state = State { class: Class::Floor, at, extra: Vec::new(), torn: Vec::new() };
    let second = Recorder::over(recording.images(&durable, &state), &disks.log().with_extension("2"), ROOM).unwrap();
    second.write(0, 4096, &[3; 4096], true).unwrap();
    second.write(0, 0, &[4; 2048], false).unwrap();
    let shown = whole(&second.image(0).unwrap());
    let at = second.mark();
    let again = second.finish().unwrap();
    assert_eq!([0, 2048, 4096, 8192].map(|offset| shown[offset]), [4, 1, 3, 0]);
    let state = State { class: Class::Floor, at, extra: Vec::new(), torn: Vec::new() };
    let cut_again = &TestDisks::bytes_of(&again, &state)[0];
    assert_eq!([0, 2048, 4096, 8192].map(|offset| cut_again[offset]), [1, 1, 3, 0], "a second power cut");
}

/// A checker that knows what was acknowledged: block n contains n.
fn missing(bytes: &[u8], acknowledged: u8) -> Vec<u8> {
    (1..=acknowledged).filter(|block| bytes[usize::from(*block) * 4096] != *block).collect()
}

#[test]
fn every_dropped_member_of_the_durable_set_is_caught() {
    let disks = TestDisks::recording(1);
    for block in 1..=20 {
        disks.recorder.write(0, u64::from(block) * 4096, &[block; 4096], false).unwrap();
        disks.recorder.flush(0).unwrap();
    }
    let at = disks.recorder.mark();
    let recording = disks.recorder.finish().unwrap();
    let entries = recording.log().entries();
    let state = State { class: Class::Floor, at, extra: Vec::new(), torn: Vec::new() };
    let of = |durable: &Durable| whole(&recording.images(durable, &state)[0]);
    let honest = || Durable::of(entries, DeviceModel::Honest);
    assert!(missing(&of(&honest()), 20).is_empty());
    for (block, number) in (0..entries.len()).filter(|number| entries[*number].changes()).enumerate() {
        assert_eq!(missing(&of(&honest().without(number)), 20), [block as u8 + 1]);
    }
}

#[test]
fn a_full_log_fails_the_recording_instead_of_truncating_it() {
    let disks = TestDisks::new(1);
    disks.recorder.begin(&disks.log(), 20_000).unwrap();
    let results: Vec<bool> =
        (0..8).map(|block| disks.recorder.write(0, block * 4096, &[1; 4096], false).is_ok()).collect();
    assert_eq!(results, [true, true, true, true, false, false, false, false]);
    assert!(disks.recorder.flush(0).is_err());
    assert!(disks.recorder.failure().unwrap().contains("is full"));
    assert!(disks.recorder.finish().unwrap_err().to_string().contains("is full"));
    assert!(disks.recorder.finish().is_err(), "it stays void");
}

#[test]
fn a_recorder_that_answers_unlogged_requests_is_caught() {
    let disks = TestDisks::recording(1);
    disks.recorder.write(0, 0, &[1; 4096], false).unwrap();
    disks.recorder.forget_one();
    disks.recorder.write(0, 4096, &[2; 4096], false).unwrap();
    let error = disks.recorder.finish().unwrap_err().to_string();
    assert!(error.contains("sequence number 2 is missing"), "{error}");
}

#[test]
fn disks_of_different_kinds_keep_what_each_of_them_keeps() {
    let disks = TestDisks::recording(2);
    for disk in [0, 1] {
        disks.recorder.write(disk, 0, &[1; 4096], false).unwrap();
        disks.recorder.flush(disk).unwrap();
    }
    let at = disks.recorder.mark();
    let recording = disks.recorder.finish().unwrap();
    let entries = recording.log().entries();
    let durable = Durable::of_each(entries, &[DeviceModel::FlushIgnored, DeviceModel::Honest]);
    let state = State { class: Class::Floor, at, extra: Vec::new(), torn: Vec::new() };
    let kept: Vec<u8> = recording.images(&durable, &state).iter().map(|image| whole(image)[0]).collect();
    assert_eq!(kept, [0, 1]);
    assert_eq!(Durable::of_each(entries, &[DeviceModel::Honest; 2]), Durable::of(entries, DeviceModel::Honest));
}

#[test]
fn a_truncated_damaged_or_incomplete_log_is_refused() {
    let disks = TestDisks::recording(1);
    for block in 0..3 {
        disks.recorder.write(0, block * 4096, &[7; 4096], false).unwrap();
    }
    disks.recorder.finish().unwrap();
    let bytes = std::fs::read(disks.log()).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(disks.log(), bytes).unwrap();
        Recording::open(&disks.log(), &disks.origins()).unwrap_err().to_string()
    };
    let entry = (bytes.len() - 32) / 3;
    assert!(refused(&bytes[..bytes.len() - 1]).contains("its end is missing"));
    assert!(
        refused(&[&bytes[..32 + entry], &bytes[32 + 2 * entry..]].concat()).contains("sequence number 2 is missing")
    );
    let mut damaged = bytes.clone();
    damaged[40 + 72] ^= 1;
    assert!(refused(&damaged).contains("its end is missing"));
    assert!(refused(b"something else, and long enough for a header").contains("not the log of a recording"));
    std::fs::write(disks.log(), &bytes).unwrap();
    assert!(Recording::open(&disks.log(), &disks.origins()).is_ok());
}

#[test]
fn requests_beyond_the_end_are_refused_and_not_logged() {
    let disks = TestDisks::recording(1);
    assert!(disks.recorder.write(0, SIZE - 512, &[1; 1024], false).is_err());
    assert!(disks.recorder.clear(0, Op::Discard, SIZE, 1).is_err());
    assert!(disks.recorder.write(1, 0, &[1; 512], false).is_err());
    assert!(disks.recorder.finish().unwrap().log().entries().is_empty());
}

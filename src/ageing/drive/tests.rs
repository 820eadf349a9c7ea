//! Runs on files, which accept direct writes like devices; with root, also on a loop device that is shorter than
//! announced.

use super::*;
use crate::error::Kind;
use crate::host::loops::OwnLoop;
use crate::host::users;
use std::cell::RefCell;

const MIB: u64 = 1 << 20;
const BYTES: u64 = 8 * MIB + (64 << 10);

/// A file in place of a device; `None` if the temporary folder does not support direct writes.
fn device(folder: &tempfile::TempDir) -> Option<std::path::PathBuf> {
    let path = folder.path().join("device");
    std::fs::write(&path, vec![0; BYTES as usize]).unwrap();
    if files::direct(&files::open_regular(&path).unwrap()).is_err() {
        println!("skipped: {} takes no direct writes", folder.path().display());
        return None;
    }
    Some(path)
}

/// Preconditions a device of this size with rounds of 20 ms. `report` receives the progress.
fn run(
    (path, bytes): (&Path, u64),
    interrupt: &Interrupt,
    enough: u32,
    report: &dyn Fn(DriveProgress) -> Result<()>,
) -> Result<Preconditioned> {
    let drive = Drive {
        path,
        bytes,
        held: &|_| Ok(()),
        is_image: true,
        round: Duration::from_millis(20),
        most_rounds: 9,
        seed: 7,
        interrupt,
        report,
        is_steady: &|rounds| rounds.len() >= enough as usize,
    };
    precondition(&drive)
}

#[test]
fn the_device_is_written_twice_and_each_round_counts_writes() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = device(&folder) else { return };
    let reported = RefCell::new(Vec::new());
    let report = |doing| {
        reported.borrow_mut().push(doing);
        Ok(())
    };
    let once = || run((&path, BYTES), &Interrupt::never(), 3, &report).unwrap();
    // On a busy machine no write may end within rounds of 20 ms.
    let has_written = |done: &Preconditioned| done.rounds.iter().any(|round| round.operations > 0);
    let done = (0..100).map(|_| once()).find(has_written).expect("a hundred times no round wrote anything");
    assert!(matches!(done.purge, Purge::None { .. }), "an image is not purged: {:?}", done.purge);
    assert_eq!((done.fill.times, done.fill.written_bytes), (2, 2 * BYTES));
    assert_eq!(done.rounds.len(), 3);
    for pair in done.rounds.windows(2) {
        assert!(pair[0].elapsed_us >= 20_000 && pair[0].began_us <= pair[1].began_us, "{:?}", done.rounds);
    }
    assert!(done.rounds.iter().all(|round| round.written_bytes == round.operations * BLOCK));
    let last = reported.borrow().last().copied();
    assert_eq!(last, Some(DriveProgress::Round { number: 3, round: done.rounds[2] }));
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, BYTES);
    let (first, rest) = bytes.split_at(MIB as usize);
    let (middle, last) = rest.split_at(rest.len() - MIB as usize);
    assert!(first.iter().chain(last).all(|byte| *byte == 0), "nothing at the ends looks like a signature");
    let blank = middle.chunks(4096).filter(|block| block.iter().all(|byte| *byte == 0)).count();
    assert_eq!(blank, 0, "blocks were left out");
}

#[test]
fn chunks_are_written_in_order_and_repeated_after_the_last() {
    let place = in_sequence(3);
    let places: Vec<u64> = std::iter::from_fn(place).collect();
    assert_eq!(places, [0, 1, 2, 0, 1, 2].map(|chunk| chunk * FILL_BLOCK));
}

/// Contents of a two-block device after this many writes by one writer.
fn written(writes: u64, salt: u64) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device");
    std::fs::write(&path, vec![0; BLOCK as usize]).unwrap();
    let file = files::open_to_change(&path).unwrap().unwrap();
    let left = AtomicU64::new(writes);
    let place = |_: &mut ChaCha8Rng| {
        let some = left.load(Ordering::Relaxed) > 0;
        some.then(|| left.fetch_sub(1, Ordering::Relaxed)).map(|_| 0)
    };
    one_writer((&file, BLOCK, BLOCK), salt, &place, &WriteCounts::default()).unwrap();
    std::fs::read(&path).unwrap()
}

#[test]
fn no_overwrite_repeats_the_bytes_of_the_previous_write() {
    assert_ne!(written(1, 7), written(2, 7));
    assert_ne!(written(1, 7), written(1, 8));
    assert_eq!(written(2, 7), written(2, 7));
}

/// A loop device on a sparse file, which supports discards regardless of other devices; `None` without root.
fn loop_device(folder: &tempfile::TempDir, bytes: u64) -> Option<OwnLoop> {
    if !users::is_root() {
        println!("skipped: a loop device needs root");
        return None;
    }
    let file = folder.path().join("image");
    std::fs::File::create(&file).unwrap().set_len(bytes).unwrap();
    OwnLoop::on(&file)
}

fn drive<'a>(path: &'a Path, interrupt: &'a Interrupt, held: &'a dyn Fn(&File) -> Result<()>) -> Drive<'a> {
    Drive {
        path,
        bytes: 8 * MIB,
        held,
        is_image: false,
        round: Duration::from_millis(1),
        most_rounds: 1,
        seed: 7,
        interrupt,
        report: &|_| Ok(()),
        is_steady: &|_| true,
    }
}

#[test]
fn a_device_in_use_is_refused_and_left_unwritten() {
    let folder = tempfile::tempdir().unwrap();
    let Some(own) = loop_device(&folder, 8 * MIB) else { return };
    let device = own.0.clone();
    let interrupt = Interrupt::never();
    let holder = files::open_exclusively(&device).unwrap();
    let busy = precondition(&drive(&device, &interrupt, &|_| Ok(()))).unwrap_err();
    drop(holder);
    let held = |_: &File| {
        assert!(files::open_exclusively(&device).is_err(), "somebody else could take it");
        Err(Error::host("it is another one by now"))
    };
    let other = precondition(&drive(&device, &interrupt, &held)).unwrap_err();
    let bytes = std::fs::read(&device).unwrap();
    drop(own);
    assert!(busy.chain().contains("is in use") && busy.hint_text().is_some(), "{}", busy.chain());
    assert!(other.chain().contains("another one by now"), "{}", other.chain());
    assert!(bytes.iter().all(|byte| *byte == 0));
}

#[test]
fn a_purge_discards_the_whole_device_and_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let Some(own) = loop_device(&folder, 8 * MIB) else { return };
    let device = own.0.clone();
    std::fs::write(&device, vec![7; 8 * MIB as usize]).unwrap();
    let (never, raised) = (Interrupt::never(), Interrupt::never());
    raised.raise();
    let stopped = precondition(&drive(&device, &raised, &|_| Ok(()))).unwrap_err();
    let kept = std::fs::read(&device).unwrap();
    let drive = drive(&device, &never, &|_| Ok(()));
    let file = hold(&device).unwrap();
    let (secure, plain) = (discarded(&drive, &file, true), discarded(&drive, &file, false));
    drop(file);
    let emptied = std::fs::read(&device).unwrap();
    drop(own);
    assert_eq!(stopped.kind(), Kind::Interrupted);
    assert!(kept.iter().all(|byte| *byte == 7), "the purge went on");
    assert_eq!(secure.unwrap(), Err("the device takes no discards".to_owned()), "loop devices have no secure ones");
    assert_eq!(plain.unwrap(), Ok(()));
    assert!(emptied.iter().all(|byte| *byte == 0));
}

#[test]
fn a_drive_without_steady_state_stops_after_the_last_round() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = device(&folder) else { return };
    let done = run((&path, BYTES), &Interrupt::never(), u32::MAX, &|_| Ok(())).unwrap();
    assert_eq!(done.rounds.len(), 9);
}

#[test]
fn an_interrupt_ends_preconditioning_and_leaves_both_ends_blank() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = device(&folder) else { return };
    let interrupted = |when: fn(&DriveProgress) -> bool| {
        let (interrupt, rounds) = (Interrupt::never(), RefCell::new(0));
        let report = |doing| {
            *rounds.borrow_mut() += u32::from(matches!(doing, DriveProgress::Round { .. }));
            if when(&doing) {
                interrupt.raise();
            }
            Ok(())
        };
        let error = run((&path, BYTES), &interrupt, u32::MAX, &report).unwrap_err();
        assert_eq!(error.kind(), Kind::Interrupted);
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes[..MIB as usize].iter().all(|byte| *byte == 0));
        rounds.into_inner()
    };
    assert_eq!(interrupted(|doing| matches!(doing, DriveProgress::Filling { .. })), 0);
    assert_eq!(interrupted(|doing| matches!(doing, DriveProgress::Round { number: 2, .. })), 2);
}

#[test]
fn what_a_device_refuses_is_told_with_its_offset() {
    let folder = tempfile::tempdir().unwrap();
    let Some(own) = loop_device(&folder, 8 * MIB) else { return };
    let device = own.0.clone();
    // The size given is larger than the device.
    let error = run((&device, 12 * MIB), &Interrupt::never(), 1, &|_| Ok(())).unwrap_err();
    drop(own);
    let text = error.chain();
    assert!(text.contains("No space left on device") && text.contains(&device.display().to_string()), "{text}");
    let offset = text.split("at offset ").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
    assert!((8 * MIB..12 * MIB).contains(&offset.parse().unwrap()), "{text}");
}

//! On files, which take direct writes as devices do; with root, on a loop device that ends early.

use super::*;
use crate::error::Kind;
use crate::host::users;
use std::cell::RefCell;

const MIB: u64 = 1 << 20;
const BYTES: u64 = 8 * MIB + (64 << 10);

/// A file in place of a device; `None` where the folder for temporary files takes no direct writes.
fn device(folder: &tempfile::TempDir) -> Option<std::path::PathBuf> {
    let path = folder.path().join("device");
    std::fs::write(&path, vec![0; BYTES as usize]).unwrap();
    if files::open_direct(&path).is_err() {
        println!("skipped: {} takes no direct writes", folder.path().display());
        return None;
    }
    Some(path)
}

/// Prepares a device of so many bytes, with rounds of 20 ms. `tell` hears how far it is.
fn run(
    (path, bytes): (&Path, u64),
    interrupt: &Interrupt,
    enough: u32,
    tell: &dyn Fn(Doing) -> Result<()>,
) -> Result<Done> {
    let host = Host::this();
    let drive = Drive {
        host: &host,
        path,
        bytes,
        is_image: true,
        round: Duration::from_millis(20),
        most_rounds: 9,
        seed: 7,
        interrupt,
        tell,
        is_steady: &|rounds| rounds.len() >= enough as usize,
    };
    precondition(&drive)
}

#[test]
fn all_of_it_is_written_twice_and_each_round_counts_its_writes() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = device(&folder) else { return };
    let told = RefCell::new(Vec::new());
    let tell = |doing| {
        told.borrow_mut().push(doing);
        Ok(())
    };
    let done = run((&path, BYTES), &Interrupt::never(), 3, &tell).unwrap();
    assert!(matches!(done.purge, Purge::None { .. }), "an image is not purged: {:?}", done.purge);
    assert_eq!((done.fill.times, done.fill.written_bytes), (2, 2 * BYTES));
    assert_eq!(done.rounds.len(), 3);
    for pair in done.rounds.windows(2) {
        assert!(pair[0].elapsed_us >= 20_000 && pair[0].began_us <= pair[1].began_us, "{:?}", done.rounds);
    }
    assert!(done.rounds.iter().all(|round| round.written_bytes == round.operations * BLOCK));
    assert!(done.rounds.iter().any(|round| round.operations > 0), "{:?}", done.rounds);
    let last = told.borrow().last().copied();
    assert_eq!(last, Some(Doing::Round { number: 3, round: done.rounds[2] }));
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, BYTES);
    let (first, rest) = bytes.split_at(MIB as usize);
    let (middle, last) = rest.split_at(rest.len() - MIB as usize);
    assert!(first.iter().chain(last).all(|byte| *byte == 0), "nothing at the ends looks like a signature");
    let blank = middle.chunks(4096).filter(|block| block.iter().all(|byte| *byte == 0)).count();
    assert_eq!(blank, 0, "blocks were left out");
}

#[test]
fn a_drive_that_never_gets_steady_ends_after_the_last_round() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = device(&folder) else { return };
    let done = run((&path, BYTES), &Interrupt::never(), u32::MAX, &|_| Ok(())).unwrap();
    assert_eq!(done.rounds.len(), 9);
}

#[test]
fn an_interrupt_ends_it_in_the_fill_and_between_rounds_and_leaves_blank_ends() {
    let folder = tempfile::tempdir().unwrap();
    let Some(path) = device(&folder) else { return };
    let interrupted = |when: fn(&Doing) -> bool| {
        let (interrupt, rounds) = (Interrupt::never(), RefCell::new(0));
        let tell = |doing| {
            *rounds.borrow_mut() += u32::from(matches!(doing, Doing::Round { .. }));
            if when(&doing) {
                interrupt.raise();
            }
            Ok(())
        };
        let error = run((&path, BYTES), &interrupt, u32::MAX, &tell).unwrap_err();
        assert_eq!(error.kind(), Kind::Interrupted);
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes[..MIB as usize].iter().all(|byte| *byte == 0));
        rounds.into_inner()
    };
    assert_eq!(interrupted(|doing| matches!(doing, Doing::Filling { .. })), 0);
    assert_eq!(interrupted(|doing| matches!(doing, Doing::Round { number: 2, .. })), 2);
}

#[test]
fn what_a_device_refuses_is_told_with_its_offset() {
    if !users::is_root() {
        return println!("skipped: a loop device needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("image");
    std::fs::File::create(&file).unwrap().set_len(8 * MIB).unwrap();
    let host = Host::this();
    let made = host.run(&Command::new("losetup").args(["--show", "-f"]).arg(&file)).unwrap();
    let device = Path::new(made.stdout.trim());
    // It is said to be larger than it is.
    let error = run((device, 12 * MIB), &Interrupt::never(), 1, &|_| Ok(())).unwrap_err();
    host.run(&Command::new("losetup").arg("--detach").arg(device)).unwrap();
    let text = error.chain();
    assert!(text.contains("No space left on device") && text.contains(&device.display().to_string()), "{text}");
    let offset = text.split("at offset ").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
    assert!((8 * MIB..12 * MIB).contains(&offset.parse().unwrap()), "{text}");
}

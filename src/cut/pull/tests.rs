//! Pulls the plug of a recorded disk: its floor is left, as on a disk that keeps only what it flushed.

use super::*;
use crate::cluster::testing::some_installation;
use crate::cut::session;
use crate::cut::tests::{can_record, case, places};
use crate::provision::facts::Bases;
use crate::provision::recorded;
use crate::provision::stack::{build_stack, reopen_stack};
use crate::recorder::{Class, DeviceModel, Durable, Exports, Recorder, State, create_origin, name_of};
use std::sync::Arc;

/// Commits the witness must have before the plug is pulled.
const COMMITS: usize = 40;
const BYTES: u64 = 640 << 20;

/// Without its filesystem mounted, the folder lies on another device.
fn refused_on_another_device(pulls: &Pulls, places: &RunPlaces) {
    let mut unmounted = Pulls { at: pulls.at.clone(), record: pulls.record.clone() };
    unmounted.record.devices[0].size_bytes = Some(1);
    let refused = unmounted.judge(&Host::this(), places, true, &Interrupt::never()).unwrap_err();
    assert!(refused.to_string().contains("does not lie on the devices"), "{refused}");
}

/// The witness's own disk lost its record.
fn refused_where_the_witness_forgot(pulls: &Pulls, places: &RunPlaces, (at, witness): (&Path, &Path)) {
    let acknowledged = std::fs::read_to_string(witness).unwrap();
    let first: String = acknowledged.lines().take(2).map(|line| format!("{line}\n")).collect();
    std::fs::write(witness, first).unwrap();
    let mut forgetful = Pulls { at: at.to_path_buf(), record: pulls.record.clone() };
    let refused = forgetful.judge(&Host::this(), places, true, &Interrupt::never()).unwrap_err();
    assert!(refused.to_string().contains("the witness lost what it was told"), "{refused}");
    assert_eq!(forgetful.record.rounds.last().unwrap().end, None, "it can be judged once the witness is back");
    std::fs::write(witness, acknowledged).unwrap();
}

/// The sequence and the witness's record at the cut: the record is the same before and after, so nothing later is on
/// the disk.
fn plug(recorder: &Recorder, witness: &Path) -> (Seq, String) {
    let text = || std::fs::read_to_string(witness).unwrap();
    loop {
        let (before, at, after) = (text(), recorder.mark(), text());
        if before == after {
            return (at, after);
        }
    }
}

/// Pulls the plug once on ext4 with a mount option, and judges.
fn pulled(mount: &[&str]) -> Option<Verdict> {
    if !can_record("ext4") {
        return None;
    }
    let (host, folder) = (Host::this(), tempfile::tempdir().unwrap());
    let (places, never) = (places(folder.path()), Interrupt::never());
    let case = case("ext4", mount, &[]);
    let session = CutSession::open(&host, &places, Cutting::default(), &never).unwrap();
    let exports =
        Exports::mount(&recorded::prepare(&session.ledger, &session.folder).unwrap(), recorded::SOURCE).unwrap();
    let base = session.work.join("base");
    let recorder = Arc::new(Recorder::filling(vec![(create_origin(&base, BYTES).unwrap(), BYTES)]));
    let shown =
        |recorder: &Arc<Recorder>| BTreeMap::from([("loop".to_owned(), exports.add(&name_of("loop"), recorder, 0))]);
    let images = shown(&recorder);
    let mark = session.ledger.mark();
    let name = format!("pgstrata-{}.ext4", session.id);
    let built = build_stack(&session::site(&session, name.clone(), &images), &case.stack).unwrap();
    files::set_mode(built.folder(), 0o755).unwrap();
    folders::sync_filesystem(built.folder()).unwrap();
    recorder.begin(&session.work.join("log"), 4 << 30).unwrap();
    let witness = folder.path().join("witness");
    let asked = FirstPull {
        folder: built.folder().clone(),
        witness: WitnessPlace::File(witness.clone()),
        clients: 2,
        bin: some_installation().unwrap().bin.display().to_string(),
    };
    let mut pulls = Pulls::prepare(&host, &asked, &places).unwrap();
    let interrupt = Interrupt::never();
    let (stop, kept) = (interrupt.clone(), || std::fs::read_to_string(&witness).unwrap_or_default().lines().count());
    let (at, as_cut) = std::thread::scope(|scope| {
        let clients = scope.spawn(|| pulls.commit(&host, &places, &interrupt, &|_| ()));
        while kept() < COMMITS && !clients.is_finished() {
            sleep(Duration::from_millis(20));
        }
        let (at, text) = plug(&recorder, &witness);
        stop.raise();
        assert_eq!(clients.join().unwrap().unwrap_err().kind(), Kind::Interrupted);
        (at, text)
    });
    // As left by the machine that lost its power.
    std::fs::write(&witness, as_cut).unwrap();
    pulls.record.rounds.last_mut().unwrap().end = None;
    undo::undo(&session.ledger, mark, &host).unwrap();
    exports.remove(&name_of("loop"));
    let recording = Arc::try_unwrap(recorder).ok().unwrap().finish().unwrap();
    let durable = Durable::of(recording.log().entries(), DeviceModel::Honest);
    let floor = State { at, class: Class::Floor, extra: Vec::new(), torn: Vec::new() };
    let left = Recorder::over(recording.images(&durable, &floor), &session.work.join("overlay"), 4 << 30).unwrap();
    let left = Arc::new(left);
    let images = shown(&left);
    reopen_stack(&session::site(&session, name, &images), &case.stack, Bases::new()).unwrap();
    assert!(pulls.judge(&host, &places, false, &never).unwrap_err().to_string().contains("not restarted"));
    refused_on_another_device(&pulls, &places);
    if mount.is_empty() {
        refused_where_the_witness_forgot(&pulls, &places, (folder.path(), &witness));
    }
    let verdict = pulls.judge(&host, &places, true, &never).unwrap();
    assert_eq!(Pulls::open(&pulls.at).unwrap().record.verdicts().collect::<Vec<_>>(), [&verdict]);
    assert!(pulls.judge(&host, &places, true, &never).unwrap_err().to_string().contains("no power cut to judge"));
    undo::undo(&session.ledger, mark, &host).unwrap();
    exports.remove(&name_of("loop"));
    drop(exports);
    session.close().unwrap();
    Some(verdict)
}

#[test]
fn a_disk_that_gets_no_flushes_is_convicted() {
    if let Some(verdict) = pulled(&[]) {
        assert_eq!(verdict, Verdict::Holds { states: 1 });
    }
    if let Some(verdict) = pulled(&["barrier=0"]) {
        assert!(verdict.convicts(), "{verdict}");
    }
}

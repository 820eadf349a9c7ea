//! Tests the tester itself: faults put into recordings, states and checks on purpose, each of which must be caught.

use super::case::cut_case;
use super::cutting::{CutEvent, Cutting, Finding};
use super::evidence::{self, verdict_of};
use super::judged::Judged;
use super::ladder::{CheckContext, Checker, EndedBy};
use super::pages::{Content, content_of};
use super::record::{self, Recorded};
use super::session::CutSession;
use super::tests::{SMALL, SmallStack, can_record, case, judge, judge_for, places};
use super::trying::{SecondCut, SecondFailure, Suspect};
use super::{Verdict, replay, tried};
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::provision::recorded;
use crate::record::case::CaseSpec;
use crate::record::stack::{BaseName, Input, NodeSpec, Role};
use crate::record::verdict::VerdictRecord;
use crate::recorder::{Class, DeviceModel, Durable, Exports, Image, State, create_origin};
use crate::run::session::RunPlaces;
use crate::run::undo;
use serde_json::Value;
use std::cell::Cell;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A recording and everything needed to check states of it.
fn with_recording(places: &RunPlaces, case: &CaseSpec, act: impl FnOnce(&CutSession<'_>, &Exports, &Recorded)) {
    let interrupt = Interrupt::never();
    // All commits must be synchronous, so that none may be missing.
    let time = Duration::from_millis(800);
    let cutting = Cutting { time, states: 20, asynchronous_share: false, ..Cutting::default() };
    let session = CutSession::open(&Host::this(), places, cutting, &interrupt).unwrap();
    let target = recorded::prepare(&session.ledger, &session.folder).unwrap();
    let exports = Exports::mount(&target, recorded::SOURCE).unwrap();
    let recorded = record::record(&session, case, &exports, &session.work).unwrap();
    act(&session, &exports, &recorded);
    drop(exports);
    session.close().unwrap();
}

/// What an honest disk keeps of a recording, and the floor at its last acknowledgement.
fn floor(recorded: &Recorded) -> (Durable, State) {
    let durable = Durable::of(recorded.recording.log().entries(), DeviceModel::Honest);
    let at = recorded.clients.history.acknowledged.last().unwrap().mark;
    (durable, State { class: Class::Floor, at, extra: Vec::new(), torn: Vec::new() })
}

fn checker<'a>(
    session: &'a CutSession<'_>,
    case: &'a CaseSpec,
    exports: &'a Exports,
    recorded: &'a Recorded,
) -> Checker<'a> {
    let (nodes, history, work) = (recorded.nodes.as_slice(), &recorded.clients.history, session.work.as_path());
    let log = recorded.recording.log();
    let durable = Durable::of(log.entries(), DeviceModel::Honest);
    let end = State::everything(log.entries(), &durable, recorded.clients.stopped);
    let of = CheckContext { session, case, exports, nodes, history, work };
    Checker::attach(of, recorded.recording.images(&durable, &end)).unwrap()
}

#[test]
fn the_log_replays_to_the_disk_after_clean_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    if !can_record("ext4") {
        return;
    }
    let interrupt = Interrupt::never();
    let small = SmallStack::open(&places, &interrupt);
    small.recorder.begin(&small.session.work.join("log"), 1 << 30).unwrap();
    let mark = small.session.ledger.mark();
    let built = small.build();
    let SmallStack { session, exports, recorder, images, .. } = small;
    for number in 0..40 {
        let path = built.folder().join(format!("file-{number}"));
        std::fs::write(&path, vec![number; 70_000]).unwrap();
        if number % 3 == 0 {
            std::fs::File::open(&path).unwrap().sync_all().unwrap();
        }
        if number % 5 == 0 {
            std::fs::remove_file(&path).unwrap();
        }
    }
    undo::undo(&session.ledger, mark, &session.host).unwrap();
    let disk = std::fs::read(&images["loop"]).unwrap();
    let recording = recorder.finish().unwrap();
    let entries = recording.log().entries();
    let durable = Durable::of(entries, DeviceModel::Honest);
    let end = State::everything(entries, &durable, recording.log().end());
    let mut replayed = vec![0; SMALL as usize];
    recording.images(&durable, &end)[0].read(0, &mut replayed).unwrap();
    assert!(entries.len() > 40 && disk.iter().any(|byte| *byte != 0));
    assert!(disk == replayed);
    drop(exports);
    session.close().unwrap();
}

#[test]
fn the_end_of_wal_reveals_a_lost_durable_write() {
    let folder = tempfile::tempdir().unwrap();
    if !can_record("ext4") {
        return;
    }
    let case = case("ext4", &[], &[]);
    with_recording(&places(folder.path()), &case, |session, exports, recorded| {
        let log = recorded.recording.log();
        let entries = log.entries();
        assert!(recorded.clients.history.has_ends(), "every commit record is found in WAL");
        let acknowledged = &recorded.clients.history.acknowledged;
        let (last, since) = (acknowledged.last().unwrap(), &acknowledged[acknowledged.len() - 10]);
        let state = State { class: Class::Floor, at: last.mark, extra: Vec::new(), torn: Vec::new() };
        let checker = checker(session, &case, exports, recorded);
        let found = |durable: &Durable| checker.tail(&recorded.recording.images(durable, &state), state.at).unwrap();
        let honest = || Durable::of(entries, DeviceModel::Honest);
        assert_eq!(found(&honest()), Finding::Whole);
        let is_wal = |number: &usize| content_of(&log.content(&entries[*number]).unwrap()) == Content::Wal;
        // A block that was written again since is no loss.
        let is_last = |number: &usize| {
            let entry = &entries[*number];
            let later = honest().at(last.mark).into_iter().filter(|later| later > number);
            later.map(|later| &entries[later]).all(|later| later.offset != entry.offset)
        };
        let durable = honest().at(last.mark);
        let members: Vec<usize> = durable
            .into_iter()
            .filter(|number| entries[*number].submitted > since.mark && is_wal(number) && is_last(number))
            .collect();
        assert!(!members.is_empty());
        for member in members.into_iter().rev().take(6) {
            let finding = found(&honest().without(member));
            assert!(matches!(finding, Finding::Lost(_)), "entry {member}: {finding:?}");
        }
        checker.detach().unwrap();
    });
}

#[test]
fn unmountable_disks_are_reported_and_do_not_affect_later_states() {
    let folder = tempfile::tempdir().unwrap();
    if !can_record("ext4") {
        return;
    }
    let case = case("ext4", &[], &[]);
    with_recording(&places(folder.path()), &case, |session, exports, recorded| {
        let (durable, state) = floor(recorded);
        let checker = checker(session, &case, exports, recorded);
        let images = || recorded.recording.images(&durable, &state);
        let whole = |images: Vec<Image>| checker.whole(&images, state.at, EndedBy::Cut).unwrap();
        let size = images()[0].size();
        let disk = |name: &str| {
            let path = session.work.join(name);
            (Image::of(create_origin(&path, size).unwrap(), size), path)
        };
        let ((blank, _), (empty, path)) = (disk("blank"), disk("empty"));
        assert!(Command::new("mkfs.ext4").arg("-qF").arg(path).status().unwrap().success());
        // The first state shows how the filesystem is mounted; the others use mount(2).
        for _ in 0..2 {
            assert!(whole(images()).is_whole());
            assert!(matches!(whole(vec![blank.clone()]), Finding::Unmountable(_)));
            assert!(matches!(whole(vec![empty.clone()]), Finding::Torn(_)));
        }
        assert!(whole(images()).is_whole());
        checker.detach().unwrap();
    });
}

#[test]
fn a_check_with_a_killed_server_proves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    if !can_record("ext4") {
        return;
    }
    let case = case("ext4", &[], &[]);
    with_recording(&places(folder.path()), &case, |session, exports, recorded| {
        let (durable, state) = floor(recorded);
        let checker = checker(session, &case, exports, recorded);
        let whole = || checker.whole(&recorded.recording.images(&durable, &state), state.at, EndedBy::Cut);
        let cluster = session.folder.join(format!("pgstrata-{}.ext4.ext4/pgstrata-data/cluster", session.id));
        let (done, killed) = (AtomicBool::new(false), Cell::new(false));
        let finding = std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                // The recovered server writes its own; the crashed server's is removed first.
                let ready =
                    || std::fs::read_to_string(cluster.join("postmaster.pid")).ok().filter(|it| it.contains("ready"));
                while !done.load(Ordering::Relaxed) {
                    let Some(note) = ready() else {
                        std::thread::yield_now();
                        continue;
                    };
                    let id: i32 = note.lines().next().unwrap().parse().unwrap();
                    let alive =
                        std::fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.trim() == "postgres");
                    let here = std::fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|folder| folder == cluster);
                    if alive && here {
                        let id = rustix::process::Pid::from_raw(id).unwrap();
                        return rustix::process::kill_process(id, rustix::process::Signal::KILL).is_ok();
                    }
                }
                false
            });
            let finding = whole();
            done.store(true, Ordering::Relaxed);
            killed.set(killer.join().unwrap());
            finding
        });
        assert!(killed.get(), "the server was killed before its check ended");
        assert!(finding.is_err(), "{finding:?}");
        assert!(whole().unwrap().is_whole(), "the same state holds when nobody interferes");
        checker.detach().unwrap();
    });
}

#[test]
fn a_second_cut_detects_a_recovery_whose_disk_drops_pages() {
    let folder = tempfile::tempdir().unwrap();
    if !can_record("ext4") {
        return;
    }
    let (places, case) = (places(folder.path()), case("ext4", &[], &[]));
    let to = folder.path().join("evidence");
    with_recording(&places, &case, |session, exports, recorded| {
        let (durable, state) = floor(recorded);
        let checker = checker(session, &case, exports, recorded);
        let log = session.work.join("second.log");
        let recovered = checker.recover(&recorded.recording.images(&durable, &state), &log).unwrap();
        let Ok((recovery, ready)) = recovered else { panic!("the floor recovers") };
        let entries = recovery.log().entries();
        let found = |durable: &Durable, second: &State| {
            checker.whole(&recovery.images(durable, second), state.at, EndedBy::SecondCut).unwrap()
        };
        let honest = SecondCut::durable(&recovery);
        let second = State { at: ready, ..state.clone() };
        assert!(found(&honest, &second).is_whole());
        // With pg_control and the log, but without the pages written by the recovery.
        let lying = Durable::of(entries, DeviceModel::FlushIgnored);
        let mut without = State::everything(entries, &lying, recovery.log().end());
        let all = without.extra.len();
        without.extra.retain(|number| content_of(&recovery.log().content(&entries[*number]).unwrap()) != Content::Data);
        assert!(without.extra.len() < all, "recovery wrote pages of data");
        assert!(verdict_of(&found(&lying, &without)).convicts());
        checker.detach().unwrap();
        let kept = Suspect { state, second: Some(SecondFailure::Cut(SecondCut { log, state: second })) };
        evidence::keep(&to, &case, &Verdict::Holds { states: 1 }, Some(kept), recorded).unwrap();
    });
    let replayed = || replay(&Host::this(), &to, &places, &Interrupt::never()).unwrap().finding.unwrap();
    assert_eq!(replayed(), Verdict::Holds { states: 1 });
    // A commit that no server wrote: a replay that reads the tables misses it, one that only recovers does not.
    let rewrite = |change: &dyn Fn(&mut Value)| {
        let path = to.join(evidence::FILE);
        let mut text = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut text);
        std::fs::write(&path, text.to_string()).unwrap();
    };
    rewrite(&|text| {
        text["second"] = Value::Null;
        let given = text["history"]["acknowledged"].as_array_mut().unwrap();
        let mut forged = given.last().unwrap().clone();
        forged["number"] = (forged["number"].as_u64().unwrap() + 1).into();
        given.push(forged);
    });
    assert!(replayed().convicts());
    rewrite(&|text| text["recovery_failed"] = true.into());
    assert_eq!(replayed(), Verdict::Holds { states: 1 });
}

#[test]
fn a_recording_with_commits_that_wal_lacks_is_never_acquitted() {
    let folder = tempfile::tempdir().unwrap();
    if !can_record("ext4") {
        return;
    }
    let case = case("ext4", &[], &[]);
    with_recording(&places(folder.path()), &case, |session, exports, recorded| {
        let mut forged = recorded.clone();
        let last = *recorded.clients.history.acknowledged.last().unwrap();
        // An acknowledged commit that the server never wrote.
        let (number, end) = (last.number + 1, last.end.map(|end| end + (1 << 30)));
        forged.clients.history.acknowledged.push(super::history::Acknowledgement {
            number,
            end,
            xid: last.xid + 1,
            started: last.mark,
            ..last
        });
        let judged = Judged { session, case: &case, exports, recorded: &forged, work: &session.work };
        let devices = judged.devices();
        let mut result = VerdictRecord { verdict: Verdict::Holds { states: 0 }, ..VerdictRecord::default() };
        tried::try_states(&judged, &judged.contents().unwrap().written, &devices, &mut result, &|_: CutEvent<'_>| ())
            .unwrap();
        assert!(
            matches!(&result.verdict, Verdict::HarnessBroken { why } if why.contains("clean stop")),
            "{}",
            result.verdict
        );
    });
}

/// A stack with `pg_wal` on a disk of its own.
fn on_two_disks() -> CaseSpec {
    let mut case = case("ext4", &[], &[]);
    let from = |name: &str| vec![Input { from: BaseName(name.to_owned()), role: Role::Data, group: None }];
    let disk = NodeSpec { name: "wal".to_owned(), inputs: Vec::new(), ..case.stack.nodes[0].clone() };
    let filesystem = NodeSpec { name: "walfs".to_owned(), inputs: from("wal"), ..case.stack.nodes[1].clone() };
    case.stack.nodes.extend([disk, filesystem]);
    case.stack.wal = Some(BaseName("walfs".to_owned()));
    case
}

#[test]
fn evidence_of_a_stack_with_separate_wal_can_be_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    if !can_record("ext4") {
        return;
    }
    let (places, case, to) = (places(folder.path()), on_two_disks(), folder.path().join("evidence"));
    with_recording(&places, &case, |_, _, recorded| {
        let kept = Suspect { state: floor(recorded).1, second: None };
        evidence::keep(&to, &case, &Verdict::Holds { states: 1 }, Some(kept), recorded).unwrap();
    });
    // Mounted under a name other than the one in the links of the data folder.
    let replayed = replay(&Host::this(), &to, &places, &Interrupt::never()).unwrap();
    assert_eq!(replayed.finding, Some(Verdict::Holds { states: 1 }));
}

#[test]
fn honest_wal_disks_do_not_save_data_on_lying_disks() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    if !can_record("ext4") {
        return;
    }
    let interrupt = Interrupt::never();
    // Two checkpoints after a switch: the segment of the first redo is gone from the honest disk.
    let cutting = Cutting { time: Duration::from_millis(3500), states: 12, ..Cutting::default() };
    let session = CutSession::open(&Host::this(), &places, cutting, &interrupt).unwrap();
    let result = cut_case(&session, &on_two_disks(), &places, &|_| ()).unwrap();
    session.close().unwrap();
    assert!(matches!(result.verdict, Verdict::Holds { states: 12.. }), "{}", result.verdict);
    let lying = result.devices.last().unwrap();
    assert!(lying.device.contains("pg_wal") && lying.verdict.convicts(), "{lying:?}");
}

#[test]
fn pages_torn_at_4_kib_have_their_own_severity() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    if !can_record("ext4") {
        return;
    }
    // Pages are overwritten from the second checkpoint on.
    let case = case("ext4", &[], &[("full_page_writes", "off"), ("zero_damaged_pages", "on")]);
    let result = judge_for(Duration::from_millis(2500), &places, &case, 12);
    assert!(matches!(result.verdict, Verdict::Torn { unit: Some(4096), .. }), "{}", result.verdict);
    assert!(result.torn_pages > 0);
}

#[test]
fn a_library_that_disables_fsync_in_one_folder_is_convicted() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let (library, source) = (folder.path().join("nosync.so"), folder.path().join("nosync.c"));
    let only = "#include <dlfcn.h>\n#include <stdio.h>\n#include <string.h>\n\
                int skips(int f){char l[64],p[4096];sprintf(l,\"/proc/self/fd/%d\",f);int n=readlink(l,p,4095);p[n<0?0:n]=0;\
                return strstr(p,ONLY)!=0;} int real(char*n,int f){return ((int(*)(int))dlsym((void*)-1L,n))(f);}\
                int fsync(int f){return skips(f)?0:real(\"fsync\",f);}\
                int fdatasync(int f){return skips(f)?0:real(\"fdatasync\",f);}";
    std::fs::write(&source, only).unwrap();
    let compile = |only: &str| {
        let define = format!("-DONLY=\"{only}\"");
        let flags = ["-w", "-shared", "-fPIC", define.as_str(), "-o"];
        Command::new("cc").args(flags).args([&library, &source]).status().is_ok_and(|status| status.success())
    };
    if !compile("/") {
        println!("skipped: a library that ignores fsync needs cc");
        return;
    }
    if !can_record("ext4") {
        return;
    }
    let real = crate::cluster::testing::some_installation().unwrap().bin;
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for program in std::fs::read_dir(&real).unwrap().map(|program| program.unwrap().path()) {
        let own = bin.join(program.file_name().unwrap());
        if program.ends_with("postgres") {
            let script = format!("#!/bin/sh\nLD_PRELOAD={} exec {} \"$@\"\n", library.display(), program.display());
            std::fs::write(&own, script).unwrap();
            crate::host::files::set_mode(&own, 0o755).unwrap();
        } else {
            std::os::unix::fs::symlink(&program, &own).unwrap();
        }
    }
    let mut case = case("ext4", &[], &[]);
    case.postgres.as_mut().unwrap().bin = bin.display().to_string();
    let result = judge(&places, &case, 0);
    assert!(matches!(result.verdict, Verdict::Loses { commits: 1.., .. }), "{}", result.verdict);
    assert!(compile("pg_twophase"));
    let result = judge(&places, &case, 1);
    assert!(matches!(&result.verdict, Verdict::Torn { unit: None, .. }), "{}", result.verdict);
}

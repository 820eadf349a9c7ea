//! Tests of the ledger: what survives a crash, who may take it, what is refused.

use super::{Ledger, LedgerLine, Listed, Replayed, Thing, list, replay, sweep};
use crate::host::Host;
use crate::host::command::Command;
use proptest::prelude::{any, prop_assert, proptest};
use std::fs;
use std::path::{Path, PathBuf};

fn image(path: &str) -> Thing {
    Thing::new("loop", "image").with("path", path)
}

#[test]
fn entries_not_undone_are_found_again_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::create(folder.path(), "r1").unwrap();
    let a = ledger.enter(image("/a")).unwrap();
    let b = ledger.enter(image("/b")).unwrap();
    let mark = ledger.mark();
    let c = ledger.enter(image("/c")).unwrap();
    ledger.undone(b).unwrap();
    drop(ledger);
    let taken = Ledger::take(folder.path(), "r1").unwrap();
    assert_eq!(taken.open_things(), [(a, image("/a")), (c, image("/c"))]);
    assert_eq!(mark, c);
    assert!(taken.enter(image("/d")).unwrap() > c);
}

#[test]
fn an_entry_is_in_the_file_before_enter_returns() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::create(folder.path(), "r1").unwrap();
    ledger.enter(image("/a")).unwrap();
    let text = fs::read_to_string(ledger.path()).unwrap();
    assert!(text.ends_with("\"marks\":{\"path\":\"/a\"}}}\n"), "{text}");
}

#[test]
fn only_a_dead_run_loses_its_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::create(folder.path(), "r1").unwrap();
    ledger.enter(image("/a")).unwrap();
    assert_eq!(list(folder.path()).unwrap(), [Listed { run_id: "r1".into(), held: true }]);
    assert!(Ledger::take(folder.path(), "r1").unwrap_err().to_string().contains("still active"));
    assert!(Ledger::create(folder.path(), "r1").is_err());
    drop(ledger);
    assert_eq!(list(folder.path()).unwrap(), [Listed { run_id: "r1".into(), held: false }]);
    Ledger::take(folder.path(), "r1").unwrap();
}

#[test]
fn a_child_does_not_hold_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::create(folder.path(), "r1").unwrap();
    ledger.enter(image("/a")).unwrap();
    let quiet = std::process::Stdio::null;
    let mut child = Host::this().spawn(&Command::new("sleep").arg("30"), quiet(), quiet()).unwrap();
    drop(ledger);
    let taken = Ledger::take(folder.path(), "r1");
    child.kill().unwrap();
    child.wait().unwrap();
    taken.unwrap();
}

#[test]
fn the_ledger_file_is_removed_only_when_all_is_undone() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::create(folder.path(), "r1").unwrap();
    let a = ledger.enter(image("/a")).unwrap();
    ledger.close().unwrap();
    let ledger = Ledger::open_for_resume(folder.path(), "r1").unwrap();
    ledger.undone(a).unwrap();
    ledger.close().unwrap();
    assert_eq!(list(folder.path()).unwrap(), []);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(Ledger::take(folder.path(), "r1").is_err());
    Ledger::open_for_resume(folder.path(), "r1").unwrap();
}

#[test]
fn a_truncated_last_line_is_ignored_and_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::create(folder.path(), "r1").unwrap();
    ledger.enter(image("/a")).unwrap();
    ledger.enter(image("/b")).unwrap();
    let path = ledger.path().to_owned();
    drop(ledger);
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text[..text.len() - 1]).unwrap();
    let taken = Ledger::take(folder.path(), "r1").unwrap();
    assert_eq!(taken.open_things().len(), 1);
    taken.enter(image("/c")).unwrap();
    drop(taken);
    assert_eq!(Ledger::take(folder.path(), "r1").unwrap().open_things().len(), 2);
}

#[test]
fn garbage_is_an_error_that_names_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::create(folder.path(), "r1").unwrap();
    ledger.enter(image("/a")).unwrap();
    let path = ledger.path().to_owned();
    drop(ledger);
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str("{\"made\": \"x\"}\n{\"undone\":0}\n");
    fs::write(&path, text).unwrap();
    let error = Ledger::take(folder.path(), "r1").unwrap_err().to_string();
    assert!(error.contains("r1.jsonl, line 3"), "{error}");
}

#[test]
fn an_old_entry_without_mark_names_who_can_clean_up() {
    let thing = Thing::new("loop", "device").with("number", "0").with("image", "/a");
    let error = thing.mark("made").unwrap_err();
    assert_eq!(error.kind(), crate::error::Kind::Host);
    assert!(error.hint_text().unwrap().contains("the version of pgstrata that created it"), "{error}");
}

#[test]
fn a_ledger_of_a_newer_format_is_refused() {
    let error = replay(b"{\"ledger\":2}\n", Path::new("x")).unwrap_err().to_string();
    assert!(error.contains("format 2"), "{error}");
}

#[test]
fn a_full_disk_leaves_a_ledger_that_still_reads() {
    if !crate::host::users::is_root() {
        println!("skipped: mounting a small tmpfs needs root");
        return;
    }
    let host = Host::this();
    let folder = tempfile::tempdir().unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16k", "none"]).arg(folder.path());
    host.run(&mount).unwrap();
    let ledger = Ledger::create(folder.path(), "r1").unwrap();
    let mut entered = 0;
    while entered < 1000 && ledger.enter(image(&"x".repeat(700))).is_ok() {
        entered += 1;
    }
    assert_eq!(ledger.open_things().len(), entered);
    drop(ledger);
    let again = Ledger::take(folder.path(), "r1").map(|ledger| ledger.open_things().len());
    host.run(&Command::new("umount").arg(folder.path())).unwrap();
    assert!((1..1000).contains(&entered));
    assert_eq!(again.unwrap(), entered);
}

#[test]
fn the_folder_follows_the_variables_of_the_user() {
    let folder = |pairs: &[(&str, &str)], is_root| {
        let pairs: Vec<(String, String)> = pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let variable = move |name: &str| pairs.iter().find(|(n, _)| n == name).map(|(_, value)| PathBuf::from(value));
        super::state_by(variable, is_root).ok()
    };
    let home = ("HOME", "/home/me");
    assert_eq!(folder(&[home], true), Some("/var/lib/pgstrata".into()));
    assert_eq!(folder(&[home], false), Some("/home/me/.local/state/pgstrata".into()));
    assert_eq!(folder(&[home, ("XDG_STATE_HOME", "/s")], false), Some("/s/pgstrata".into()));
    assert_eq!(folder(&[home, ("XDG_STATE_HOME", "")], false), Some("/home/me/.local/state/pgstrata".into()));
    assert_eq!(folder(&[home, ("PGSTRATA_STATE", "/t")], true), Some("/t".into()));
    assert_eq!(folder(&[], false), None);
    assert_eq!(folder(&[home, ("PGSTRATA_STATE", "relative")], true), None);
}

#[test]
fn an_id_that_would_leave_the_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for id in ["", "..", "../x", "a/b", ".hidden", "a\nb"] {
        assert!(Ledger::create(folder.path(), id).is_err(), "{id:?}");
    }
}

proptest! {
    #[test]
    fn replaying_any_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        drop(replay(&bytes, Path::new("x")));
    }

    #[test]
    fn a_ledger_cut_anywhere_reads_through_its_last_whole_line(cut in 0usize..400) {
        let mut text = b"{\"ledger\":1}\n".to_vec();
        for number in 0..4 {
            let line = LedgerLine { made: Some(number), thing: Some(image("/a")), ..LedgerLine::default() };
            text.extend(super::text_of(&line).unwrap());
        }
        text.truncate(cut);
        let lines = text.iter().filter(|byte| **byte == b'\n').count();
        let (Replayed { open, .. }, _) = replay(&text, Path::new("x")).unwrap();
        prop_assert!(open.len() == lines.saturating_sub(1));
    }
}

#[test]
fn leftovers_of_a_kill_before_naming_the_ledger_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    let number = ended.id();
    ended.wait().unwrap();
    let ours = format!(".r1.{}.part", std::process::id());
    for name in [format!(".r1.{number}.part"), ours.clone(), ".part".to_owned(), "r2.jsonl".to_owned()] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    sweep(&Host::this(), folder.path()).unwrap();
    let left = crate::host::folders::list(folder.path()).unwrap().into_iter();
    let left: Vec<String> = left.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(left, [".part", ours.as_str(), "r2.jsonl"]);
}

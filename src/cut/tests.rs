//! Tests the tester on real stacks: which must be convicted, which acquitted, and what it says if it cannot decide.

use super::case::cut_case;
use super::cutting::Cutting;
use super::history::History;
use super::pages::{Content, content_of};
use super::session::{self, CutSession};
use super::{Verdict, arithmetic, record, replay, second};
use crate::cluster::server::{self, Server};
use crate::cluster::testing::some_installation;
use crate::host::command::Command;
use crate::host::signals::Interrupt;
use crate::host::{Host, files, users};
use crate::provision::stack::{BuiltStack, build_stack};
use crate::provision::{layer, recorded};
use crate::record::case::{CaseSpec, PostgresSpec, WorkloadSpec};
use crate::record::options::{OptionValue, Options};
use crate::record::stack::StackSpec;
use crate::record::verdict::VerdictRecord;
use crate::recorder::{DeviceModel, Durable, Exports, Recorder, create_origin, name_of};
use crate::run::session::RunPlaces;
use crate::run::{clean, undo};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Large enough for every mkfs and a small cluster; the base is sparse.
const SIZE: &str = "640MiB";

pub(super) fn options(pairs: &[(&str, &str)]) -> Options {
    let mut options = Options::default();
    for (key, value) in pairs {
        options.set(key, OptionValue::Text((*value).to_owned()));
    }
    options
}

/// A filesystem on one loop image, with a mount option and settings.
pub(super) fn case(filesystem: &str, mount: &[&str], settings: &[(&str, &str)]) -> CaseSpec {
    let mut on = Options::default();
    if !mount.is_empty() {
        let list = mount.iter().map(|option| OptionValue::Text((*option).to_owned())).collect();
        on.set("mount", OptionValue::List(list));
    }
    let layers = match filesystem {
        "tmpfs" => vec![("tmpfs", options(&[("size", SIZE)]))],
        _ => vec![("loop", options(&[("loop", SIZE)])), (filesystem, on)],
    };
    // Unused, but evidence is checked like a plan.
    let mut workload = Options::default();
    workload.set("scale", OptionValue::Integer(1));
    let postgres = PostgresSpec {
        bin: "auto".to_owned(),
        build: None,
        settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        initdb: Vec::new(),
    };
    CaseSpec {
        id: filesystem.to_owned(),
        guest: None,
        stack: StackSpec::linear(filesystem, layers),
        age: Options::default(),
        postgres: Some(postgres),
        machine: Options::default(),
        workload: WorkloadSpec { name: "none".to_owned(), kind: "pgbench".to_owned(), options: workload },
        axes: BTreeMap::new(),
    }
}

/// Bytes of the disk of a [`SmallStack`].
pub(super) const SMALL: u64 = 64 << 20;

/// One recorded disk for ext4, still empty.
pub(super) struct SmallStack<'a> {
    pub session: CutSession<'a>,
    /// Where the disk is exported.
    pub target: PathBuf,
    pub exports: Exports,
    pub recorder: Arc<Recorder>,
    pub images: BTreeMap<String, PathBuf>,
}

impl<'a> SmallStack<'a> {
    pub fn open(places: &RunPlaces, interrupt: &'a Interrupt) -> SmallStack<'a> {
        let session = CutSession::open(&Host::this(), places, Cutting::default(), interrupt).unwrap();
        let target = recorded::prepare(&session.ledger, &session.folder).unwrap();
        let exports = Exports::mount(&target, recorded::SOURCE).unwrap();
        let base = create_origin(&session.work.join("base"), SMALL).unwrap();
        let recorder = Arc::new(Recorder::filling(vec![(base, SMALL)]));
        let images = BTreeMap::from([("loop".to_owned(), exports.add(&name_of("loop"), &recorder, 0))]);
        SmallStack { session, target, exports, recorder, images }
    }

    pub fn build(&self) -> BuiltStack {
        let mut stack = case("ext4", &[], &[]).stack;
        stack.nodes[0].options = options(&[("loop", "64MiB")]);
        let name = format!("pgstrata-{}.ext4", self.session.id);
        build_stack(&session::site(&self.session, name, &self.images), &stack).unwrap()
    }
}

/// Folders of a test for its ledgers, recordings and results.
pub(super) fn places(folder: &Path) -> RunPlaces {
    crate::host::files::set_mode(folder, 0o755).unwrap();
    RunPlaces { results: folder.join("results"), state: folder.join("state"), guest: None }
}

/// True if this machine can record a filesystem; prints what is missing.
pub(super) fn can_record(filesystem: &str) -> bool {
    let lacking = match (users::is_root(), Path::new("/dev/fuse").exists()) {
        (false, _) => Some("root".to_owned()),
        (_, false) => Some("/dev/fuse".to_owned()),
        _ => {
            layer(filesystem).unwrap().unmet(&Host::this(), &Options::default()).first().map(|unmet| unmet.what.clone())
        }
    };
    if let Some(lacking) = &lacking {
        println!("skipped: recording {filesystem} needs {lacking}");
    }
    lacking.is_none() && some_installation().is_some()
}

pub(super) fn judge(places: &RunPlaces, case: &CaseSpec, states: usize) -> VerdictRecord {
    judge_for(Duration::from_millis(1500), places, case, states)
}

pub(super) fn judge_for(time: Duration, places: &RunPlaces, case: &CaseSpec, states: usize) -> VerdictRecord {
    let interrupt = Interrupt::never();
    let cutting = Cutting { time, states, ..Cutting::default() };
    let session = CutSession::open(&Host::this(), places, cutting, &interrupt).unwrap();
    let result = cut_case(&session, case, places, &|_| ()).unwrap();
    session.close().unwrap();
    println!(
        "{} {:?}: {} of {} commits",
        case.id,
        case.postgres.as_ref().unwrap().settings,
        result.verdict,
        result.commits
    );
    result
}

fn holds_on_every_state(filesystem: &str) {
    // States whose WAL is read to its end: if none fails, at most 1 % of such states do (95 % CI), or 4 % with the
    // smaller number.
    let many = if std::env::var_os("PGSTRATA_TEST_FULL").is_some() { 300 } else { 75 };
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    if !can_record(filesystem) {
        return;
    }
    let result = judge(&places, &case(filesystem, &[], &[]), many);
    assert!(matches!(result.verdict, Verdict::Holds { states } if states >= many), "{}", result.verdict);
    assert!(result.commits > 10 && result.flushes > 10, "{result:?}");
    assert!(result.wal_ends_read >= many as u64 && result.recovered >= 12, "{result:?}");
    let of = |start: &str| &result.devices.iter().find(|on| on.device.starts_with(start)).unwrap().verdict;
    assert!(of("flush ignored").convicts() && of("flush and FUA ignored").convicts(), "{:?}", result.devices);
    assert!(matches!(of("power-protected"), Verdict::Holds { states: 1.. }), "{:?}", result.devices);
    let second = result.states.iter().find(|class| class.class == second::WORD).unwrap();
    assert!(second.tried > 0 && second.of >= second.tried, "{second:?}");
    // A share of the commits is asynchronous; losing some of these says nothing about the stack.
    assert!((1..result.commits).contains(&result.asynchronous.unwrap()), "{result:?}");
    assert!(result.evidence.is_none());
}

#[test]
fn ext4_holds_on_every_state() {
    holds_on_every_state("ext4");
}

#[test]
fn btrfs_holds_on_every_state() {
    holds_on_every_state("btrfs");
}

#[test]
fn stacks_that_do_not_flush_are_convicted_by_arithmetic() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let cases =
        [case("ext4", &["barrier=0"], &[]), case("btrfs", &["nobarrier"], &[]), case("ext4", &[], &[("fsync", "off")])];
    for case in &cases {
        if can_record(&case.id) {
            let result = judge(&places, case, 0);
            assert!(matches!(result.verdict, Verdict::Loses { commits: 1.., .. }), "{}: {}", case.id, result.verdict);
            // A disk that needs no flushes keeps what was written; without fsync it was not written in time.
            let protected = &result.devices.iter().find(|on| on.device == "power-protected").unwrap().verdict;
            let writes = case.postgres.as_ref().unwrap().settings.is_empty();
            assert_eq!(!protected.convicts(), writes, "{}: {protected}", case.id);
        }
    }
    assert!(matches!(judge(&places, &case("tmpfs", &[], &[]), 0).verdict, Verdict::LosesAll { .. }));
}

#[test]
fn a_stack_on_a_disk_of_a_guest_is_recorded() {
    if can_record("ext4") {
        let folder = tempfile::tempdir().unwrap();
        let mut case = case("ext4", &[], &[]);
        case.stack.nodes[0].layer = "guest_disk".to_owned();
        case.stack.nodes[0].options = options(&[("guest_disk", SIZE), ("bus", "nvme")]);
        let result = judge(&places(folder.path()), &case, 0);
        assert!(matches!(result.verdict, Verdict::Holds { .. }), "{}", result.verdict);
        assert!(result.commits > 10 && result.flushes > 10, "{result:?}");
    }
}

#[test]
fn nothing_of_a_stack_in_memory_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    if !can_record("tmpfs") {
        return;
    }
    let (places, interrupt, case) = (places(folder.path()), Interrupt::never(), case("tmpfs", &[], &[]));
    let session = CutSession::open(&Host::this(), &places, Cutting::default(), &interrupt).unwrap();
    let (mark, images) = (session.ledger.mark(), BTreeMap::new());
    let site = || session::site(&session, format!("pgstrata-{}.tmpfs", session.id), &images);
    let stack = build_stack(&site(), &case.stack).unwrap();
    let postgres = record::postgres_of(&case).unwrap();
    let spec = record::server_spec(
        &session,
        postgres,
        record::server_folders(&stack.folders),
        session.work.join("server.log"),
    )
    .unwrap();
    let parent = spec.data.parent().unwrap();
    files::make_folder(parent, 0o700).unwrap();
    files::give_to(parent, &session.user).unwrap();
    session.ledger.enter(undo::server_thing(&spec).unwrap()).unwrap();
    server::init(&session.host, &spec).unwrap();
    let server = Server::start(&session.host, spec, &interrupt).unwrap();
    server.connect(server::DATABASE).unwrap().query("CREATE TABLE kept AS SELECT 1; CHECKPOINT").unwrap();
    server.stop(&session.host).unwrap();
    let entries = |stack: &BuiltStack| std::fs::read_dir(stack.folder()).unwrap().count();
    assert_eq!(entries(&stack), 1);
    undo::undo(&session.ledger, mark, &session.host).unwrap();
    assert_eq!(entries(&build_stack(&site(), &case.stack).unwrap()), 0, "even after a clean stop");
    undo::undo(&session.ledger, mark, &session.host).unwrap();
    session.close().unwrap();
}

#[test]
fn a_conviction_by_states_keeps_evidence_that_fails_again() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    if !can_record("ext4") {
        return;
    }
    let result = judge(&places, &case("ext4", &["barrier=0"], &[]), 8);
    assert!(result.verdict.convicts(), "{}", result.verdict);
    let replayed = replay(&Host::this(), Path::new(&result.evidence.unwrap()), &places, &Interrupt::never()).unwrap();
    assert!(replayed.finding.unwrap().convicts());
}

#[test]
fn asynchronous_commit_is_an_expected_loss() {
    let folder = tempfile::tempdir().unwrap();
    if !can_record("ext4") {
        return;
    }
    let result = judge(&places(folder.path()), &case("ext4", &[], &[("synchronous_commit", "off")]), 8);
    assert!(matches!(result.verdict, Verdict::ExpectedLoss { commits: 1.., .. }), "{}", result.verdict);
}

#[test]
fn without_an_acknowledgement_the_harness_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    if !can_record("ext4") {
        return;
    }
    let result = judge_for(Duration::ZERO, &places(folder.path()), &case("ext4", &["barrier=0"], &[]), 0);
    assert!(
        matches!(&result.verdict, Verdict::HarnessBroken { why } if why.contains("no commit")),
        "{}",
        result.verdict
    );
}

#[test]
fn marks_that_were_shifted_are_caught() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    if !can_record("ext4") {
        return;
    }
    let (interrupt, case) = (Interrupt::never(), case("ext4", &[], &[]));
    let cutting = Cutting { time: Duration::from_millis(500), asynchronous_share: false, ..Cutting::default() };
    let session = CutSession::open(&Host::this(), &places, cutting, &interrupt).unwrap();
    let target = recorded::prepare(&session.ledger, &session.folder).unwrap();
    let exports = Exports::mount(&target, recorded::SOURCE).unwrap();
    let recorded = record::record(&session, &case, &exports, &session.work).unwrap();
    drop(exports);
    session.close().unwrap();
    let log = recorded.recording.log();
    let entries = log.entries();
    let contents: Vec<Content> = entries.iter().map(|entry| content_of(&log.content(entry).unwrap())).collect();
    assert!(contents.contains(&Content::Wal) && contents.contains(&Content::Data));
    let disks = &recorded.wal_disks;
    let evidence = arithmetic::WalRequests { entries, contents: &contents, disks, pages_are_kept: true };
    let durable = Durable::of(entries, DeviceModel::Honest);
    let history = &recorded.clients.history;
    assert_eq!(history.check(log.end()), Ok(()));
    assert_eq!(evidence.loss(history, &durable), None);
    // Right after COMMIT was sent, before its flush.
    let early = history.acknowledged.iter().map(|one| super::history::Acknowledgement { mark: one.started, ..*one });
    assert!(evidence.loss(&History::of(early.collect()), &durable).is_some());
    let late =
        history.acknowledged.iter().map(|one| super::history::Acknowledgement { mark: one.mark + log.end(), ..*one });
    assert!(History::of(late.collect()).check(log.end()).is_err());
}

#[test]
fn a_stack_on_disks_whose_server_died_is_undone() {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    if !can_record("ext4") {
        return;
    }
    let interrupt = Interrupt::never();
    let small = SmallStack::open(&places, &interrupt);
    let built = small.build();
    let SmallStack { session, target, exports, .. } = small;
    std::fs::write(built.folder().join("file"), "x").unwrap();
    // Like after a kill: the kernel aborts the connection.
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mounts.lines().find(|line| line.split(' ').nth(4) == target.to_str()).unwrap();
    let number = line.split(' ').nth(2).unwrap().split_once(':').unwrap().1;
    let control = Path::new("/sys/fs/fuse/connections");
    let mounted = control.join(number).exists()
        || Host::this().run(&Command::new("mount").args(["-t", "fusectl", "none"]).arg(control)).is_ok();
    assert!(mounted, "the control filesystem of FUSE");
    std::fs::write(control.join(number).join("abort"), "1").unwrap();
    let (id, ledgers) = (session.id.clone(), places.ledgers());
    drop(exports);
    drop(session);
    let abandoned = recorded::abandoned(&Host::this());
    assert!(abandoned.is_some_and(|(_, file)| Path::new(&file).starts_with(&target)), "it makes mkfs.btrfs fail");
    let left = clean::clean(&Host::this(), &places.state, false).unwrap();
    assert_eq!(left.len(), 1);
    assert!(left[0].run == id && left[0].failure.is_none(), "{:?}", left[0].failure);
    assert_eq!(std::fs::read_dir(ledgers).unwrap().count(), 0);
    assert!(!target.exists());
}

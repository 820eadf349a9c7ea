//! Tests of the host, in a guest: those of layers that the kernels of hosts lack, and of filesystems on another kernel.

use super::ground::{SUITE, guest_in_full, set_mode};
use pgstrata::guest::build;
use pgstrata::guest::cache::Cache;
use pgstrata::guest::share::SharedFolder;
use pgstrata::guest::suite::Suite;
use pgstrata::guest::vm::{SCRATCH, Scratch, Shape, Vm};
use pgstrata::guest::wire::{CommandEnd, Order};
use pgstrata::host::Host;
use pgstrata::host::signals::Interrupt;
use pgstrata::units::Bytes;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tests that run in the guest, as libtest filters them: each must find some, and none may be skipped there. Each half has
/// a guest of one processor, and takes as long as the other.
const HALVES: [&[&str]; 2] = [
    &[
        "provision::real_tests::",
        "provision::lvm::",
        "provision::snapshots::",
        "provision::luks::",
        "provision::delay::",
        "provision::linear::",
    ],
    &[
        "provision::zpool::",
        "provision::md::",
        "provision::bcache::",
        "provision::null_blk::",
        "provision::zram::",
        "provision::scsi_debug::",
        "provision::f2fs::",
        "provision::jfs::",
        "provision::nilfs2::",
        "provision::reiserfs::",
        "provision::ext::",
        "provision::xfs::",
        "provision::btrfs::",
        "provision::loop_image::",
    ],
];

/// What is skipped rightly: no suite has both the driver and the tools.
const NOWHERE: &str = "bcachefs needs";

/// What tests of the whole program start.
const PROGRAM: &str = env!("CARGO_BIN_EXE_pgstrata");

/// How long the tests of one filter may take: the processor is ten times slower there.
const LIMIT_MS: u64 = 3_300_000;

/// The program of some tests (`--lib`), which cargo builds where it is not built.
fn tests_of(target: &[&str]) -> PathBuf {
    let build = ["test", "--no-run", "--locked", "--message-format=json"];
    let output =
        Command::new(env!("CARGO")).args(build).args(target).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    // The program that they start is built, too, and may be named last.
    let mut tests = messages.filter(|message| message["profile"]["test"] == true);
    PathBuf::from(tests.find_map(|message| Some(message["executable"].as_str()?.to_owned())).unwrap())
}

/// Why the tests of one filter are no success; `None` where they are.
fn objection(filter: &str, ended: CommandEnd, text: &str) -> Option<String> {
    if ended != CommandEnd::Exited(0) {
        return Some(format!("{filter}: {ended:?}"));
    }
    let skipped = |line: &&str| line.starts_with("skipped: ") || line.contains(" skipped: ");
    if let Some(line) = text.lines().filter(skipped).find(|line| !line.contains(NOWHERE)) {
        return Some(format!("{filter}: skipped in the guest: {line}"));
    }
    text.contains("running 0 tests").then(|| format!("{filter}: finds no test"))
}

/// A folder that the guest gets: the tests without what only a debugger reads.
fn shared_folder(tests: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    set_mode(folder.path(), 0o755);
    let copy = folder.path().join("tests");
    let stripped = Command::new("strip").args(["--strip-debug", "-o"]).arg(&copy).arg(tests).status();
    if !stripped.is_ok_and(|status| status.success()) {
        std::fs::copy(tests, &copy).unwrap();
    }
    set_mode(&copy, 0o755);
    folder
}

#[test]
fn layer_tests_all_pass_in_trixie_without_skips() {
    layers_in("trixie");
}

#[test]
fn layer_tests_all_pass_in_bookworm_without_skips() {
    layers_in("bookworm");
}

#[test]
fn postgresql_runs_on_every_volume_in_a_guest() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let folder = shared_folder(&tests_of(&["--test", "all"]));
    let wrong = pass(SUITE, folder.path(), &["program::volumes::"]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn printed_scripts_build_every_volume_in_a_guest() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let folder = shared_folder(&tests_of(&["--lib"]));
    let wrong = pass(SUITE, folder.path(), &["provision::by_hand::"]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_thin_pool_filling_in_a_guest_is_a_result() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let folder = shared_folder(&tests_of(&["--test", "all"]));
    let wrong = pass(SUITE, folder.path(), &["program::full::a_thin_pool"]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn layers_in(suite: &str) {
    let Some(_guest) = guest_in_full(suite) else { return };
    let folder = shared_folder(&tests_of(&["--lib"]));
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let half = |filters: &'static [&str]| scope.spawn(|| pass(suite, folder.path(), filters));
        let halves = HALVES.map(half);
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs the tests of some filters in a guest of their own; what is wrong.
fn pass(suite: &str, folder: &Path, filters: &[&str]) -> Vec<String> {
    let (host, cache, interrupt) = (Host::this(), Cache::of_user().unwrap(), Interrupt::never());
    let image = build::require(&cache, &suite.parse::<Suite>().unwrap()).unwrap();
    let mut shape = Shape::usual(&cache).unwrap();
    shape.cpus = 1;
    shape.program = PathBuf::from(env!("CARGO_BIN_EXE_pgstrata"));
    shape.shares.push(SharedFolder {
        tag: "tests".to_owned(),
        folder: folder.to_path_buf(),
        inside: "/run/pgstrata/tests".to_owned(),
        writable: false,
    });
    shape.scratch = Some(Scratch::Empty(Bytes(16 << 30)));
    let mut vm = Vm::boot(&host, &cache, &image, &shape, &interrupt).unwrap();
    let mut wrong = Vec::new();
    for filter in filters {
        let script = format!(
            "lib=/run/pgstrata/host/lib; set -- $lib/ld-*; mkdir -p {SCRATCH}/t; chmod 755 {SCRATCH}; \
             mkdir -p $(dirname {PROGRAM}); ln -sf /run/pgstrata/host/bin/pgstrata {PROGRAM}; \
             export TMPDIR={SCRATCH}/t PGSTRATA_STATE={SCRATCH} PGSTRATA_TEST_FULL=1; \
             export PGSTRATA_TEST_POSTGRES=$(ls -d /usr/lib/postgresql/*/bin | paste -sd:); \
             exec $1 --library-path $lib /run/pgstrata/tests/tests {filter} --test-threads=1 --nocapture 2>&1"
        );
        let argv = ["sh", "-c", &script].map(str::to_owned).to_vec();
        let order = Order { argv, env: Vec::new(), cwd: "/root".to_owned(), limit_ms: Some(LIMIT_MS) };
        let mut text = Vec::new();
        let ended = vm.run(&order, None, &interrupt, &mut |_, bytes| {
            text.extend_from_slice(bytes);
            Ok(())
        });
        let text = String::from_utf8_lossy(&text).into_owned();
        wrong.extend(objection(filter, ended.unwrap(), &text).map(|why| format!("{suite}: {why}\n{text}")));
        println!(
            "{suite}: {filter} {}",
            text.lines().rev().find(|line| line.starts_with("test result")).unwrap_or("-")
        );
    }
    vm.power_off();
    wrong
}

#[test]
fn skipped_tests_and_empty_filters_are_not_a_success() {
    let fine = "running 1 test\ntest a::b ... ok\n\ntest result: ok. 1 passed\n";
    assert_eq!(objection("a", CommandEnd::Exited(0), fine), None);
    assert!(objection("a", CommandEnd::Exited(101), fine).is_some());
    assert!(objection("a", CommandEnd::TimedOut, fine).is_some());
    assert!(objection("a", CommandEnd::Exited(0), "test a::b ... skipped: no zfs\nok\n").is_some());
    assert!(
        objection("a", CommandEnd::Exited(0), "test a::b ... skipped: bcachefs needs the program bcachefs\nok\n")
            .is_none()
    );
    assert!(objection("a", CommandEnd::Exited(0), "running 0 tests\n\ntest result: ok. 0 passed\n").is_some());
}

//! Runs in guests, as the program inside of each sees them, and what is refused before a guest is booted. No guest runs here: the
//! hidden flag `--inside` tells the program that this machine is one.

use crate::program::workshop::{Workshop, said, stderr};
use std::fs;
use std::path::PathBuf;
use std::process::Output;

const PLAN: &str = r#"
name = "two-guests"
blocks = 2
guest = ["bookworm", "trixie"]
baseline = { guest = "bookworm" }

[stack.here]
directory = "FOLDER"

[workload.sync]
sync = { duration = "1s" }
"#;

fn plan(shop: &Workshop) -> PathBuf {
    let folder = shop.path().join("data");
    fs::create_dir_all(&folder).unwrap();
    shop.file("plan.toml", &PLAN.replace("FOLDER", folder.to_str().unwrap()))
}

/// The guest that a program inside hands the run over to.
fn handed_over(output: &Output) -> Option<String> {
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    let what = &last["what"];
    (what["event"] == "handed_over").then(|| what["guest"].as_str().unwrap().to_owned())
}

/// Runs in one guest after another until the run has ended; the guests in turn.
fn to_its_end(shop: &Workshop, first: &Output, in_turn: &mut Vec<String>) {
    let mut next = handed_over(first);
    while let Some(guest) = next {
        assert!(in_turn.len() < 10, "{in_turn:?}");
        let folder = shop.run_folder();
        let args = ["run", "--json", "--inside", &guest, "--died", "[]", "--resume", folder.to_str().unwrap()];
        let output = shop.pgstrata(&args).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
        in_turn.push(guest);
        next = handed_over(&output);
    }
}

fn outcome(folder: &std::path::Path, case: &str, trial: u32) -> serde_json::Value {
    let path = folder.join(format!("trials/{case}/{trial}/trial.json"));
    serde_json::from_slice::<serde_json::Value>(&fs::read(path).unwrap()).unwrap()["outcome"]["outcome"].clone()
}

#[test]
fn a_program_in_a_guest_runs_only_its_own_trials() {
    let shop = Workshop::new();
    let path = plan(&shop);
    let begin =
        |guest: &str| shop.pgstrata(&["run", "--json", "--inside", guest, path.to_str().unwrap()]).output().unwrap();
    let order: serde_json::Value = {
        let output = shop.pgstrata(&["plan", "--json", path.to_str().unwrap()]).output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["order"].clone()
    };
    let of_case = |key: &serde_json::Value| if key["case"] == "here.sync.guest-trixie" { "trixie" } else { "bookworm" };
    let mut due: Vec<&str> = order.as_array().unwrap().iter().map(of_case).collect();
    due.dedup();
    let first = begin(due[0]);
    assert!(first.status.success(), "{}", said(&first));
    let mut in_turn = vec![due[0].to_owned()];
    to_its_end(&shop, &first, &mut in_turn);
    assert_eq!(in_turn, due);
    let folder = shop.run_folder();
    for case in ["here.sync.guest-bookworm", "here.sync.guest-trixie"] {
        assert_eq!((outcome(&folder, case, 1), outcome(&folder, case, 2)), ("measured".into(), "measured".into()));
    }
    let events = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    assert!(events.contains("run_done") && !events.contains("another machine"), "{events}");
}

#[test]
fn a_trial_failed_in_its_guest_waits_for_resume() {
    let shop = Workshop::new();
    let path = plan(&shop);
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("[workload.sync]", "[stack.lacking]\ndirectory = \"/nowhere/at/all\"\n\n[workload.sync]");
    fs::write(&path, text).unwrap();
    let first = shop.pgstrata(&["run", "--json", "--inside", "bookworm", path.to_str().unwrap()]).output().unwrap();
    let mut in_turn = Vec::new();
    to_its_end(&shop, &first, &mut in_turn);
    let folder = shop.run_folder();
    let tries = || {
        let events = fs::read_to_string(folder.join("events.jsonl")).unwrap();
        events.lines().filter(|line| line.contains("trial_not_run")).count()
    };
    assert_eq!(tries(), 4, "one try for each trial of the stack that is not there");
    assert_eq!(outcome(&folder, "lacking.sync.guest-trixie", 1), "not_run");
    let resumed =
        shop.pgstrata(&["run", "--json", "--inside", "trixie", "--resume", folder.to_str().unwrap()]).output().unwrap();
    to_its_end(&shop, &resumed, &mut Vec::new());
    assert_eq!(tries(), 8);
}

#[test]
fn a_run_goes_on_where_it_was_begun() {
    let shop = Workshop::new();
    let path = plan(&shop);
    let text = fs::read_to_string(&path).unwrap();
    let own = text.lines().filter(|line| !line.starts_with("guest") && !line.starts_with("baseline"));
    let here = shop.file("here.toml", &own.collect::<Vec<_>>().join("\n"));
    let output = shop.run(&here);
    assert!(output.status.success(), "{}", said(&output));
    let folder = shop.run_folder();
    let refused = |args: &[&str], code: i32, what: &str, hint: &str| {
        let output = shop.pgstrata(args).env("PGSTRATA_CACHE", shop.path().join("cache")).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(stderr(&output).contains(what) && stderr(&output).contains(hint), "{}", said(&output));
    };
    let folder = folder.to_str().unwrap();
    refused(&["run", "--resume", folder, "--guest"], 2, "was begun on this machine", "leave out --guest");
    fs::remove_dir_all(shop.results()).unwrap();
    let args = ["run", "--json", "--inside", "bookworm", here.to_str().unwrap()];
    assert!(shop.pgstrata(&args).output().unwrap().status.success());
    let folder = shop.run_folder();
    let folder = folder.to_str().unwrap();
    refused(&["run", "--resume", folder, "--guest=trixie"], 2, "was begun in bookworm, not in trixie", "--guest alone");
    for args in [&["run", "--resume", folder, "--guest"][..], &["run", "--resume", folder]] {
        refused(args, 3, "the guest bookworm is not built", "pgstrata guest build --suite bookworm");
    }
}

#[test]
fn a_plan_with_guests_refuses_host_disks_and_other_guests() {
    let shop = Workshop::new();
    let path = plan(&shop);
    let plan = path.to_str().unwrap();
    let cache = shop.path().join("cache");
    let run = |args: &[&str]| shop.pgstrata(args).env("PGSTRATA_CACHE", &cache).output().unwrap();
    let refused = |args: &[&str], code: i32, what: &str| {
        let output = run(args);
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(stderr(&output).contains(what), "{}", said(&output));
    };
    refused(&["run", plan, "--guest"], 2, "the plan names its guests itself: bookworm, trixie");
    refused(&["run", plan, "--on", shop.path().to_str().unwrap()], 2, "leave out --on");
    refused(&["cut", plan], 2, "the plan's cases run in guests");
    refused(&["run", plan], 3, "is not built");
    let listed = run(&["plan", plan]);
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(listed.status.code(), Some(3), "{}", said(&listed));
    assert!(text.contains("here.sync.guest-bookworm") && text.contains("the guest trixie, for #2"), "{text}");
    assert!(text.contains("pgstrata guest build --suite trixie"), "{text}");
    let built =
        "\n[postgres]\nbuild = { version = \"17\" }\n[workload.tpcb]\npgbench = { scale = 1, duration = \"1s\" }\n";
    fs::write(&path, fs::read_to_string(&path).unwrap() + built).unwrap();
    refused(&["run", plan], 3, "is not built");
    assert!(!cache.join("builds").exists(), "nothing is built for a guest that is not there");
}

#[test]
fn a_run_left_between_two_guests_is_shown_as_killed() {
    let shop = Workshop::new();
    let path = plan(&shop);
    for guest in ["bookworm", "trixie"] {
        let args = ["run", "--json", "--inside", guest, path.to_str().unwrap()];
        let output = shop.pgstrata(&args).output().unwrap();
        assert!(handed_over(&output).is_some(), "{}", said(&output));
        let status = shop.pgstrata(&["status", "--json", shop.run_folder().to_str().unwrap()]).output().unwrap();
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
        assert_eq!(status["state"], "killed", "{status}");
        fs::remove_dir_all(shop.results()).unwrap();
    }
}

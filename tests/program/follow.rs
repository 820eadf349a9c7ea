//! A run that is followed from elsewhere: `pgstrata status`, the page that reloads itself, the command at the end; and a
//! run folder that somebody takes away.

use crate::program::workshop::{Workshop, can_build_stacks, run_id, said, stderr};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

const PLAN: &str = r#"
name = "followed"
blocks = 3

[stack.tmp]
filesystem = { tmpfs = "256MiB" }

[workload.tpcb]
pgbench = { scale = 1, clients = 2, duration = "3s", warmup = "1s" }
"#;

const REFRESH: &str = "<meta http-equiv=\"refresh\" content=\"15\">";

/// What `status --json` says, and its exit code.
fn status(shop: &Workshop, folder: &Path) -> (serde_json::Value, Option<i32>) {
    let output = shop.pgstrata(&["status", folder.to_str().unwrap(), "--json"]).output().unwrap();
    (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
}

#[test]
fn a_run_is_followed_by_its_folder_alone() {
    if !can_build_stacks("following a run") {
        return;
    }
    let shop = Workshop::new();
    // Long enough for two looks at a window from a busy machine.
    shop.file("plan.toml", &PLAN.replace("\"3s\"", "\"8s\""));
    let notify = shop.file("notify.sh", "#!/bin/sh\nenv | grep ^PGSTRATA_ > told.txt\necho \"$1\" >> told.txt\n");
    let notify = format!("sh {} two-words", notify.display());
    let mut run = shop.pgstrata(&["run", "plan.toml", "--json", "--page", "--notify", &notify]);
    let mut child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut events = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut wait_for = |word: &str| assert!(events.by_ref().any(|line| line.contains(word)), "{word}");
    wait_for("\"trial_done\"");
    wait_for("\"second\"");
    let folder = shop.run_folder();
    let (live, code) = status(&shop, &folder);
    assert_eq!((live["state"].as_str(), code), (Some("running"), Some(0)), "{live}");
    assert_eq!((&live["trials"], &live["measured"], &live["not_run"]), (&3.into(), &1.into(), &0.into()), "{live}");
    assert_eq!((&live["current"]["trial"]["trial"], &live["current"]["step"]), (&2.into(), &"measuring".into()));
    assert!(live["left_us"].as_u64().unwrap() > 1_000_000 && live["ends"].is_string(), "{live}");
    assert!(live["last"]["rate"].as_f64().unwrap() > 0.0, "{live}");
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains(REFRESH) && page.trim_end().ends_with("</html>"));
    let text = shop.pgstrata(&["status", folder.to_str().unwrap()]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.starts_with("followed: running, ") && text.contains(" left ("), "{text}");
    assert!(text.contains("  1 of 3 trials measured\n  now: tmp.tpcb #2, measuring, "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    drop(events.last());
    assert!(child.wait().unwrap().success());
    let (done, code) = status(&shop, &folder);
    assert_eq!((done["state"].as_str(), code, &done["measured"]), (Some("complete"), Some(0), &3.into()), "{done}");
    assert!(done["current"].is_null() && done["left_us"].is_null(), "{done}");
    assert!(!fs::read_to_string(folder.join("report.html")).unwrap().contains("http-equiv=\"refresh\""));
    let told = fs::read_to_string(shop.path().join("told.txt")).unwrap();
    assert!(told.contains(&format!("PGSTRATA_RUN_FOLDER={}\n", folder.display())), "{told}");
    assert!(told.contains("PGSTRATA_OUTCOME=complete\n") && told.contains("PGSTRATA_EXIT_STATUS=0\n"), "{told}");
    assert!(told.ends_with("two-words\n"), "{told}");
}

#[test]
fn truncated_events_are_detected_by_status_report_and_resume() {
    if !can_build_stacks("a run whose events are cut") {
        return;
    }
    let shop = Workshop::new();
    let folder = shop.finished();
    let path = folder.join("events.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let ends: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
    let last = whole.rfind("{\"at_us\"").unwrap();
    let before_the_end = whole[..last].rfind("\"trial_done\"").map(|at| whole[..at].rfind('\n').unwrap() + 1).unwrap();
    assert!(ends.contains(&before_the_end));
    for (cut, words) in
        [(0, "events.jsonl is empty: it lacks the end of 4 of 4"), (before_the_end, "the end of 1 of 4")]
    {
        fs::write(&path, &whole[..cut]).unwrap();
        for command in [&["report"][..], &["status"], &["run", "--resume"]] {
            let args = [command, &[folder.to_str().unwrap()]].concat();
            let output = shop.pgstrata(&args).output().unwrap();
            // A run without an end that nobody writes to was killed, as far as its events say.
            let code = if command == ["status"] && cut > 0 { 1 } else { 0 };
            assert_eq!(output.status.code(), Some(code), "{}", said(&output));
            let text = said(&output).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(words), "{args:?}: {text}");
        }
    }
}

#[test]
fn a_killed_run_is_reported_with_the_commands_to_continue() {
    if !can_build_stacks("status of a killed run") {
        return;
    }
    let shop = Workshop::new();
    shop.file("plan.toml", PLAN);
    let mut child = shop.pgstrata(&["run", "plan.toml", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let events = BufReader::new(child.stdout.take().unwrap());
    assert!(events.lines().map_while(Result::ok).any(|line| line.contains("\"second\"")));
    child.kill().unwrap();
    child.wait().unwrap();
    let folder = shop.run_folder();
    let output = shop.pgstrata(&["status", folder.to_str().unwrap()]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.starts_with("followed: killed; clean up: pgstrata clean; then resume: pgstrata run --resume "),
        "{text}"
    );
    assert!(text.contains("  0 of 3 trials measured\n  cut short: tmp.tpcb #1, measuring, "), "{text}");
    assert!(shop.pgstrata(&["clean"]).status().unwrap().success());
}

#[test]
fn a_notify_command_that_cannot_start_is_only_a_warning() {
    let shop = Workshop::new();
    let told = shop.file("notify.sh", "env > told.txt\n");
    let plan = shop.file("plan.toml", "name = \"x\"\nnonsense = 1\n");
    let notify = |command: &str| shop.pgstrata(&["run", plan.to_str().unwrap(), "--notify", command]).output().unwrap();
    let output = notify("/no/such/program");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        stderr(&output).contains("warning: --notify: `/no/such/program` could not be started"),
        "{}",
        said(&output)
    );
    notify(&format!("sh {}", told.display()));
    let told = fs::read_to_string(shop.path().join("told.txt")).unwrap();
    assert!(told.contains("PGSTRATA_OUTCOME=failed\n") && told.contains("PGSTRATA_EXIT_STATUS=2\n"), "{told}");
    assert!(told.contains("PGSTRATA_MESSAGE=") && told.contains("nonsense"), "{told}");
}

#[test]
fn a_run_whose_folder_is_removed_exits_with_5() {
    if !can_build_stacks("a run folder that is removed") {
        return;
    }
    let shop = Workshop::new();
    shop.file("plan.toml", PLAN);
    let mut run = shop.pgstrata(&["run", "plan.toml", "--json"]);
    let mut child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut events = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(events.by_ref().any(|line| line.contains("\"second\"")));
    let id = run_id(&shop.run_folder());
    fs::remove_dir_all(shop.results()).unwrap();
    drop(events.last());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    let error = stderr(&output);
    assert!(
        error.contains(" is gone: it was removed or moved") && error.contains("or start the plan again"),
        "{error}"
    );
    assert!(!shop.results().exists(), "a ghost of the run folder was made");
    assert!(crate::program::machine::traces(&id).is_empty());
}

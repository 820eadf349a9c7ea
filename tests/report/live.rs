//! The page of a run that goes on (`run --page`), in a real browser.

use crate::report::chromium::Chromium;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

const PLAN: &str = r#"
name = "live"
blocks = 3

[stack.tmp]
filesystem = { tmpfs = "256MiB" }

[workload.tpcb]
pgbench = { scale = 1, clients = 2, duration = "3s", warmup = "1s" }
"#;

#[test]
fn the_live_page_reloads_until_the_run_has_ended() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: the page of a live run: needs root for a filesystem in memory");
    }
    let Some(mut browser) = Chromium::start() else { return };
    let folder = tempfile::Builder::new().prefix("pgstrata-test-").tempdir().unwrap();
    // The server's user must be able to walk through.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path().join("plan.toml"), PLAN).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_pgstrata"));
    run.args(["run", "plan.toml", "--state", "state", "--json", "--page"]).current_dir(folder.path());
    let mut child = run.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut events = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    // The page that is there as the second trial begins has the first one.
    assert!(events.by_ref().any(|line| line.contains("\"trial_started\"") && line.contains("\"trial\":2")));
    let run = fs::read_dir(folder.path().join("results")).unwrap().next().unwrap().unwrap().path();
    browser.open(&run.join("report.html"));
    browser.wait_until("document.querySelector('[data-chart=ranking] canvas, [data-chart=ranking] svg') !== null");
    browser.evaluate("window.before = true");
    drop(events.last());
    assert!(child.wait().unwrap().success());
    // The browser loads the page again by itself, and finds the last one, which asks for no further.
    browser.wait_until("window.before === undefined && document.readyState === 'complete'");
    // Between two documents there is an empty one, which asks for nothing either.
    browser.wait_until(
        "document.querySelector('meta[http-equiv=refresh]') === null && document.body.innerText.includes('3 of 3')",
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

//! Going on with a run: its record says what is left, whatever has become of the plan and the working folder.

use crate::program::workshop::{FINISHED, Workshop, can_build_stacks, said, stderr};
use std::fs;
use std::path::Path;

#[test]
fn scripts_beside_the_plan_are_found_on_resume_from_elsewhere() {
    if !can_build_stacks("resume from another folder") {
        return;
    }
    let shop = Workshop::new();
    let plans = shop.path().join("plans");
    fs::create_dir_all(plans.join("deep")).unwrap();
    fs::write(plans.join("deep/mine.sql"), "SELECT count(*) FROM pgbench_branches;\n").unwrap();
    let text = "name = \"mine\"\nblocks = 2\n[stack.t]\nfilesystem = { tmpfs = \"256MiB\" }\n\
                [postgres]\nsettings = { shared_buffers = \"16MB\" }\n[workload.w]\n\
                pgbench = { script = [\"deep/mine.sql@2\"], scale = 1, duration = \"1s\", warmup = \"0s\" }\n";
    fs::write(plans.join("plan.toml"), text).unwrap();
    let output = shop.run(Path::new("plans/plan.toml"));
    assert!(output.status.success(), "{}", said(&output));
    let folder = shop.run_folder();
    fs::remove_dir_all(folder.join("trials/t.w/2")).unwrap();
    let script = shop.path().join("plans/deep/mine.sql");
    let run = fs::read_to_string(folder.join("run.json")).unwrap();
    assert!(run.contains(&format!("{}@2", script.display())), "{run}");
    let kept = folder.join("trials/t.w/1/raw/script-1-mine.sql");
    assert_eq!(fs::read(kept).unwrap(), fs::read(&script).unwrap());
    // The plan itself is needed no more.
    fs::remove_file(shop.path().join("plans/plan.toml")).unwrap();
    let elsewhere = shop.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let resumed = || {
        let mut command = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]);
        command.current_dir(&elsewhere).output().unwrap()
    };
    let sql = fs::read(&script).unwrap();
    fs::write(&script, "SELECT 1;\n").unwrap();
    let refused = resumed();
    assert!(
        !refused.status.success() && stderr(&refused).contains("the scripts of w have changed since its trials"),
        "{}",
        said(&refused)
    );
    fs::write(&script, sql).unwrap();
    let output = resumed();
    assert!(output.status.success(), "{}", said(&output));
    assert!(stderr(&output).contains("1 trial complete, 1 left"), "{}", said(&output));
    assert!(!stderr(&output).contains("another machine"), "{}", said(&output));
    assert!(folder.join("trials/t.w/2/trial.json").exists());
}

#[test]
fn resume_takes_remaining_trials_from_the_record_not_the_plan() {
    if !can_build_stacks("resume by the record") {
        return;
    }
    let shop = Workshop::new();
    let folder = shop.finished();
    fs::remove_dir_all(folder.join("trials/one.tpcb/2")).unwrap();
    // As if an older pgstrata had read the same plan into another case.
    let record = folder.join("run.json");
    let text = fs::read_to_string(&record).unwrap();
    assert!(text.contains("\"one.tpcb\""), "{text}");
    fs::write(&record, text.replace("\"one.tpcb\"", "\"old-id\"")).unwrap();
    fs::rename(folder.join("trials/one.tpcb"), folder.join("trials/old-id")).unwrap();
    let trial = folder.join("trials/old-id/1/trial.json");
    let text = fs::read_to_string(&trial).unwrap().replace("\"one.tpcb\"", "\"old-id\"");
    // And on another machine.
    let mut stored: serde_json::Value = serde_json::from_str(&text).unwrap();
    stored["host"]["hostname"] = "elsewhere".into();
    fs::write(&trial, stored.to_string()).unwrap();
    let output = shop
        .pgstrata(&["run", shop.file("plan.toml", FINISHED).to_str().unwrap(), "--resume", folder.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(stderr(&output).contains("3 trials complete, 1 left"), "{}", said(&output));
    let told =
        "resumed on another machine: 1 of the trials there already differ from what follows in host name elsewhere";
    assert!(stderr(&output).contains(told), "{}", said(&output));
    assert!(folder.join("trials/old-id/2/trial.json").exists() && !folder.join("trials/one.tpcb").exists());
}

#[test]
fn damaged_trials_are_named_left_out_and_measured_again() {
    if !can_build_stacks("damaged trials") {
        return;
    }
    let shop = Workshop::new();
    let folder = shop.finished();
    let trial = |case: &str| folder.join("trials").join(case);
    let [first, second, third] = ["one.tpcb/1", "one.tpcb/2", "another-with-a-long-name.tpcb/1"].map(trial);
    // Nothing in it, another trial's, a pipe that nobody writes to.
    fs::write(first.join("trial.json"), "").unwrap();
    fs::copy(first.join("latency.hist"), second.join("latency.hist")).unwrap();
    let seconds = third.join("seconds.parquet");
    fs::remove_file(&seconds).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &seconds, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();

    let report = shop.pgstrata(&["report", folder.to_str().unwrap()]).output().unwrap();
    assert!(report.status.success(), "{}", said(&report));
    // However the terminal breaks its lines.
    let shown = said(&report).split_whitespace().collect::<Vec<_>>().join(" ");
    for why in ["trial.json", "latency.hist", "seconds.parquet is a pipe"] {
        assert!(shown.contains("damaged, left out") && shown.contains(why), "{why}: {shown}");
    }
    assert!(shown.contains("1 of 4 trials measured, 3 damaged (unreadable)"), "{shown}");
    let resumed = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]).output().unwrap();
    assert!(resumed.status.success(), "{}", said(&resumed));
    assert!(stderr(&resumed).contains("1 trial complete, 3 left"), "{}", said(&resumed));
    assert!(stderr(&resumed).contains("trial 2 of one.tpcb is measured again"), "{}", said(&resumed));
    assert!(!said(&resumed).contains("damaged, left out"), "{}", said(&resumed));
    assert!(fs::symlink_metadata(&seconds).unwrap().is_file());
}

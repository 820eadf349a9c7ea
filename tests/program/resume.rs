//! Going on with a run: its record says what is left, whatever has become of the plan and the working folder.

use crate::program::workshop::{Workshop, can_build_stacks, said, stderr};
use std::fs;
use std::path::Path;

/// A run with a script of its own beside the plan, whose third trial is missing.
fn run_with_a_trial_missing(shop: &Workshop) -> std::path::PathBuf {
    let plans = shop.path().join("plans");
    fs::create_dir_all(plans.join("deep")).unwrap();
    fs::write(plans.join("deep/mine.sql"), "SELECT count(*) FROM pgbench_branches;\n").unwrap();
    let text = "name = \"mine\"\nblocks = 3\n[stack.t]\nfilesystem = { tmpfs = \"256MiB\" }\n\
                [postgres]\nsettings = { shared_buffers = \"16MB\" }\n[workload.w]\n\
                pgbench = { script = [\"deep/mine.sql@2\"], scale = 1, duration = \"1s\", warmup = \"0s\" }\n";
    fs::write(plans.join("plan.toml"), text).unwrap();
    let output = shop.run(Path::new("plans/plan.toml"));
    assert!(output.status.success(), "{}", said(&output));
    let folder = shop.run_folder();
    fs::remove_dir_all(folder.join("trials/t.w/3")).unwrap();
    folder
}

#[test]
fn scripts_lie_beside_the_plan_and_are_found_again_by_a_run_that_is_resumed_from_elsewhere() {
    if !can_build_stacks("resume from another folder") {
        return;
    }
    let shop = Workshop::new();
    let folder = run_with_a_trial_missing(&shop);
    let script = shop.path().join("plans/deep/mine.sql");
    let run = fs::read_to_string(folder.join("run.json")).unwrap();
    assert!(run.contains(&format!("{}@2", script.display())), "{run}");
    let kept = folder.join("trials/t.w/1/raw/script-1-mine.sql");
    assert_eq!(fs::read(kept).unwrap(), fs::read(&script).unwrap());
    // The plan itself is needed no more.
    fs::remove_file(shop.path().join("plans/plan.toml")).unwrap();
    let elsewhere = shop.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut command = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]);
    let output = command.current_dir(&elsewhere).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(stderr(&output).contains("2 trials complete, 1 left"), "{}", said(&output));
    assert!(!stderr(&output).contains("another machine"), "{}", said(&output));
    assert!(folder.join("trials/t.w/3/trial.json").exists());
}

#[test]
fn what_is_left_is_taken_from_the_record_and_not_from_another_reading_of_the_plan() {
    if !can_build_stacks("resume by the record") {
        return;
    }
    let shop = Workshop::new();
    let folder = run_with_a_trial_missing(&shop);
    // As if an older pgstrata had read the same plan into another case.
    let record = folder.join("run.json");
    let text = fs::read_to_string(&record).unwrap();
    assert!(text.contains("\"t.w\""), "{text}");
    fs::write(&record, text.replace("\"t.w\"", "\"old-id\"")).unwrap();
    fs::rename(folder.join("trials/t.w"), folder.join("trials/old-id")).unwrap();
    for trial in ["1", "2"] {
        let path = folder.join("trials/old-id").join(trial).join("trial.json");
        fs::write(&path, fs::read_to_string(&path).unwrap().replace("\"t.w\"", "\"old-id\"")).unwrap();
    }
    // And on another machine.
    let trial = folder.join("trials/old-id/1/trial.json");
    let mut stored: serde_json::Value = serde_json::from_slice(&fs::read(&trial).unwrap()).unwrap();
    stored["host"]["hostname"] = "elsewhere".into();
    fs::write(&trial, stored.to_string()).unwrap();
    let output = shop.pgstrata(&["run", "plans/plan.toml", "--resume", folder.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(stderr(&output).contains("2 trials complete, 1 left"), "{}", said(&output));
    let told =
        "resumed on another machine: 1 of the trials there already differ from what follows in host name elsewhere";
    assert!(stderr(&output).contains(told), "{}", said(&output));
    assert!(folder.join("trials/old-id/3/trial.json").exists() && !folder.join("trials/t.w").exists());
}

#[test]
fn damaged_trials_are_named_left_out_and_measured_again() {
    if !can_build_stacks("damaged trials") {
        return;
    }
    let shop = Workshop::new();
    let folder = run_with_a_trial_missing(&shop);
    let resume = || shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]).output().unwrap();
    assert!(resume().status.success());
    let trial = |number: u32| folder.join("trials/t.w").join(number.to_string());
    // Nothing in it, another trial's, a pipe that nobody writes to.
    fs::write(trial(1).join("trial.json"), "").unwrap();
    fs::copy(trial(1).join("latency.hist"), trial(2).join("latency.hist")).unwrap();
    let seconds = trial(3).join("seconds.parquet");
    fs::remove_file(&seconds).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &seconds, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();

    let report = shop.pgstrata(&["report", folder.to_str().unwrap()]).output().unwrap();
    assert!(report.status.success(), "{}", said(&report));
    // However the terminal breaks its lines.
    let shown = said(&report).split_whitespace().collect::<Vec<_>>().join(" ");
    for (number, why) in [(1, "trial.json"), (2, "latency.hist"), (3, "seconds.parquet is a pipe")] {
        assert!(shown.contains("damaged, left out") && shown.contains(why), "trial {number}: {shown}");
    }
    let resumed = resume();
    assert!(resumed.status.success(), "{}", said(&resumed));
    assert!(stderr(&resumed).contains("0 trials complete, 3 left"), "{}", said(&resumed));
    assert!(stderr(&resumed).contains("trial 2 of t.w is measured again"), "{}", said(&resumed));
    assert!(!said(&resumed).contains("damaged, left out"), "{}", said(&resumed));
    assert!(fs::symlink_metadata(&seconds).unwrap().is_file());
}

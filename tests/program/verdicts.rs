//! `durability = "quick"`: a run finds out what a power cut would cost each stack, stores it, and ranks by it.

use crate::program::workshop::{Workshop, can_build_stacks, said, skipped};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

const PLAN: &str = r#"
name = "verdicts"
blocks = 1
durability = "quick"

[postgres]
settings = { shared_buffers = "16MB" }

[workload.tpcb]
pgbench = { scale = 1, clients = 1, duration = "1s", warmup = "0s" }
"#;

const EXT4: &str = r#"
[stack.ext4]
device = { loop = "512MiB", in = "IMAGES", sparse = true }
filesystem = "ext4"
"#;

const LYING: &str = r#"
[stack.lying]
device = { loop = "512MiB", in = "IMAGES", sparse = true }
filesystem = { ext4 = { mount = ["nobarrier"] } }
"#;

const MEMORY: &str = r#"
[stack.memory]
filesystem = { tmpfs = { size = "512MiB" } }
"#;

const FOLDER: &str = r#"
[stack.folder]
directory = "FOLDER"
"#;

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn can_record(test: &str) -> bool {
    let has_fuse = Path::new("/dev/fuse").exists();
    if !has_fuse {
        skipped(test, "needs /dev/fuse to record disks");
    }
    has_fuse && can_build_stacks(test)
}

/// A workshop with a plan of these stacks.
fn planned(stacks: &[&str]) -> (Workshop, PathBuf) {
    let shop = Workshop::new();
    let folder = |name: &str| {
        fs::create_dir(shop.path().join(name)).unwrap();
        shop.path().join(name).display().to_string()
    };
    let text =
        (PLAN.to_owned() + &stacks.concat()).replace("IMAGES", &folder("images")).replace("FOLDER", &folder("folder"));
    let plan = shop.file("plan.toml", &text);
    (shop, plan)
}

/// Runs a plan until its verdicts are there, and returns the folder.
fn judged(shop: &Workshop, plan: &Path) -> PathBuf {
    let mut command = shop.pgstrata(&["run", "--json", plan.to_str().unwrap()]);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut events = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(events.any(|line| line.contains("\"step\":\"template\"")), "no trial began");
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    // The rest is read, so that nothing waits for a reader.
    events.for_each(drop);
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    shop.run_folder()
}

/// The verdict that the folder has of a stack.
fn verdict(folder: &Path, stack: &str) -> Value {
    let all = fs::read_dir(folder.join("verdicts")).unwrap().map(|file| file.unwrap().path());
    let of_stack = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&format!("{stack}."));
    let found: Vec<PathBuf> = all.filter(of_stack).collect();
    assert_eq!(found.len(), 1, "cases that differ in their workload share one: {found:?}");
    json(&found[0])
}

fn reported(shop: &Workshop, folder: &Path) -> Value {
    let report = shop.pgstrata(&["report", folder.to_str().unwrap(), "--format", "json"]).output().unwrap();
    serde_json::from_slice(&report.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&report)))
}

/// More than arithmetic, later, on the cases of a run.
fn cut(shop: &Workshop, folder: &Path) -> Output {
    shop.pgstrata(&["cut", folder.to_str().unwrap(), "--states", "2", "--seconds", "1"]).output().unwrap()
}

#[test]
fn the_report_lists_one_verdict_per_stack_beside_the_rates() {
    if !can_record("verdicts of a run") {
        return;
    }
    let (shop, plan) = planned(&[EXT4, LYING, MEMORY]);
    let two = "[[exclude]]\nstack = [\"lying\", \"memory\"]\nclients = 2\n";
    let text = fs::read_to_string(&plan).unwrap().replace("clients = 1", "clients = [1, 2]") + two;
    let ran = shop.run(&shop.file("plan.toml", &text));
    assert_eq!(ran.status.code(), Some(0), "{}", said(&ran));
    let folder = shop.run_folder();
    let ext4 = verdict(&folder, "ext4");
    assert_eq!((&ext4["verdict"]["verdict"], &ext4["cases"][1]), (&"holds".into(), &"ext4.tpcb.clients-2".into()));
    assert!(ext4["commits"].as_u64().unwrap() > 10 && ext4["flushes"].as_u64().unwrap() > 10, "{ext4}");
    assert_eq!(ext4["devices"][2]["verdict"]["verdict"], "loses", "on a device that ignores flushes: {ext4}");
    let lying = verdict(&folder, "lying");
    assert_eq!((&lying["verdict"]["verdict"], &lying["flushes"]), (&"loses".into(), &0.into()), "{lying}");
    assert_eq!(verdict(&folder, "memory")["verdict"]["verdict"], "loses_all");
    let found = reported(&shop, &folder);
    assert_eq!(found["power_cuts"].as_array().unwrap().len(), 3);
    for case in found["cases"].as_array().unwrap() {
        let volatile = ["lying", "memory"].iter().any(|stack| case["id"].as_str().unwrap().starts_with(stack));
        assert_eq!(case["durability"]["class"] == "volatile", volatile, "{case}");
        assert!(case["verdict"]["verdict"].is_string(), "{case}");
    }
}

#[test]
fn a_resumed_run_has_its_verdicts_until_cut_finds_more() {
    if !can_record("verdicts of a run that goes on") {
        return;
    }
    let (shop, plan) = planned(&[LYING]);
    let folder = judged(&shop, &plan);
    let before = verdict(&folder, "lying");
    let resumed = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]).output().unwrap();
    assert_eq!(resumed.status.code(), Some(0), "{}", said(&resumed));
    assert_eq!(verdict(&folder, "lying"), before);
    assert!(before["states"].as_array().is_none_or(Vec::is_empty), "{before}");
    let cut = cut(&shop, &folder);
    assert_eq!(cut.status.code(), Some(6), "lying is convicted: {}", said(&cut));
    let after = verdict(&folder, "lying");
    assert!(!after["states"].as_array().unwrap().is_empty(), "{after}");
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    let state = after["state"].as_str().unwrap_or("states tried: ");
    assert!(page.contains(state), "{after}");
}

#[test]
fn what_cut_does_not_decide_leaves_the_verdict_of_arithmetic() {
    if !can_record("a verdict that stays") {
        return;
    }
    let (shop, plan) = planned(&[EXT4, FOLDER]);
    let folder = judged(&shop, &plan);
    assert_eq!(
        verdict(&folder, "folder")["verdict"]["why"],
        "only loop images and disks of a guest are recorded, not directory"
    );
    let cut = cut(&shop, &folder);
    assert_eq!(cut.status.code(), Some(1), "{}", said(&cut));
    // Nothing fails, but two states are not of every kind.
    assert!(said(&cut).contains("not decided, ") && said(&cut).contains("(--states)"), "{}", said(&cut));
    assert_eq!(verdict(&folder, "ext4")["verdict"]["verdict"], "holds");
    assert_eq!(reported(&shop, &folder)["power_cuts"].as_array().unwrap().len(), 2);
}

const WITH_SCRIPT: &str = r#"
name = "scripts"
blocks = 1

[stack.ext4]
device = { loop = "512MiB", in = "IMAGES", sparse = true }
filesystem = "ext4"

[postgres]
settings = { shared_buffers = "16MB" }

[workload.own]
pgbench = { scale = 1, script = "own.sql", clients = [1, 6] }
"#;

#[test]
fn cut_runs_the_script_of_the_plan_when_asked() {
    const NAME: &str = "a script beside the clients of cut";
    if !can_record(NAME) {
        return;
    }
    let shop = Workshop::new();
    fs::create_dir(shop.path().join("images")).unwrap();
    let images = shop.path().join("images").display().to_string();
    let plan = shop.file("plan.toml", &WITH_SCRIPT.replace("IMAGES", &images));
    let plan = plan.to_str().unwrap();
    let cut = |flags: &[&str]| {
        let common = ["cut", plan, "--states", "0", "--seconds", "1", "--clients", "1", "--json"];
        shop.pgstrata(&[&common[..], flags].concat()).output().unwrap()
    };
    let results = |flags: &[&str]| {
        let done = cut(flags);
        assert_eq!(done.status.code(), Some(0), "{}", said(&done));
        serde_json::from_slice::<Vec<Value>>(&done.stdout).unwrap()
    };
    shop.file("own.sql", "\\set id random(1, 100000)\nUPDATE pgbench_accounts SET abalance = 1 WHERE aid = :id;\n");
    let alone = results(&[]);
    assert_eq!(alone.len(), 1, "cases that differ in their workload share a verdict: {alone:?}");
    assert!(alone[0].get("beside").is_none(), "{alone:?}");
    let beside = results(&["--workload"]);
    let cases: Vec<&str> = beside.iter().map(|result| result["cases"][0].as_str().unwrap()).collect();
    assert_eq!(cases, ["ext4.own.clients-1", "ext4.own.clients-6"]);
    for result in &beside {
        assert_eq!(result["beside"]["workload"], "own");
        assert_eq!(result["verdict"]["verdict"], "holds", "{result}");
    }
    let mut left = fs::read_dir(shop.results()).unwrap().map(|entry| entry.unwrap().path().join("report.html"));
    assert!(left.any(|page| fs::read_to_string(page).unwrap().contains("<dd>own</dd>")), "no page of the cut");
    let six = &beside[1];
    assert!(six["beside"]["commits"].as_u64() > Some(0), "{six}");
    // The second line of the script is no command of pgbench's.
    shop.file("own.sql", "SELECT 1;\n\\nonsense\n");
    let wrong = cut(&["--workload"]);
    assert_eq!(wrong.status.code(), Some(4), "{}", said(&wrong));
    assert!(wrong.stdout.is_empty(), "no verdict: {}", said(&wrong));
    for words in ["workload `own` of the case ext4.own.clients-1", "own.sql:2: invalid command", "nonsense"] {
        assert!(said(&wrong).contains(words), "{words}: {}", said(&wrong));
    }
}

//! `durability = "quick"`: a run finds out what a power cut would cost each stack, stores it, and ranks by it.

use crate::program::workshop::{Workshop, can_build_stacks, said, skipped};
use serde_json::Value;
use std::fs;
use std::path::Path;

const PLAN: &str = r#"
name = "verdicts"
blocks = 1
durability = "quick"

[stack.ext4]
device = { loop = "512MiB", in = "IMAGES", sparse = true }
filesystem = "ext4"

[stack.lying]
device = { loop = "512MiB", in = "IMAGES", sparse = true }
filesystem = { ext4 = { mount = ["nobarrier"] } }

[stack.memory]
filesystem = { tmpfs = { size = "512MiB" } }

[stack.folder]
directory = "FOLDER"

[postgres]
settings = { shared_buffers = "16MB" }

[workload.tpcb]
pgbench = { scale = 1, clients = [1, 2], duration = "1s", warmup = "0s" }

[[exclude]]
stack = ["lying", "memory", "folder"]
clients = 2
"#;

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn the_report_lists_one_verdict_per_stack_beside_the_rates() {
    const NAME: &str = "verdicts of a run";
    if !can_build_stacks(NAME) {
        return;
    }
    if !Path::new("/dev/fuse").exists() {
        return skipped(NAME, "needs /dev/fuse to record disks");
    }
    let shop = Workshop::new();
    for folder in ["images", "folder"] {
        fs::create_dir(shop.path().join(folder)).unwrap();
    }
    crate::program::workshop::set_mode(&shop.path().join("folder"), 0o777);
    let path = |name: &str| shop.path().join(name).display().to_string();
    let plan = shop.file("plan.toml", &PLAN.replace("IMAGES", &path("images")).replace("FOLDER", &path("folder")));
    let ran = shop.run(&plan);
    assert_eq!(ran.status.code(), Some(0), "{}", said(&ran));
    let folder = shop.run_folder();
    let verdict = |stack: &str| json(&folder.join(format!("verdicts/{stack}.tpcb.clients-1.json")));
    assert_eq!(
        fs::read_dir(folder.join("verdicts")).unwrap().count(),
        4,
        "cases that differ in their workload share one"
    );
    let ext4 = verdict("ext4");
    assert_eq!((&ext4["verdict"]["verdict"], &ext4["cases"][1]), (&"holds".into(), &"ext4.tpcb.clients-2".into()));
    assert!(ext4["commits"].as_u64().unwrap() > 10 && ext4["flushes"].as_u64().unwrap() > 10, "{ext4}");
    assert_eq!(ext4["devices"][2]["verdict"]["verdict"], "loses", "on a device that ignores flushes: {ext4}");
    let lying = verdict("lying");
    assert_eq!((&lying["verdict"]["verdict"], &lying["flushes"]), (&"loses".into(), &0.into()), "{lying}");
    assert_eq!(verdict("memory")["verdict"]["verdict"], "loses_all");
    let why = verdict("folder")["verdict"]["why"].clone();
    assert_eq!(why, "only loop images are recorded, not directory");
    // A run that goes on has them already.
    fs::remove_dir_all(folder.join("trials/memory.tpcb.clients-1")).unwrap();
    let made = |name: &str| fs::read(folder.join(format!("verdicts/{name}.tpcb.clients-1.json"))).unwrap();
    let before = made("lying");
    let resumed = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]).output().unwrap();
    assert_eq!(resumed.status.code(), Some(0), "{}", said(&resumed));
    assert_eq!(made("lying"), before);
    let report = shop.pgstrata(&["report", folder.to_str().unwrap(), "--format", "json"]).output().unwrap();
    let found: Value = serde_json::from_slice(&report.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&report)));
    assert_eq!(found["power_cuts"].as_array().unwrap().len(), 4);
    for case in found["cases"].as_array().unwrap() {
        let volatile = ["lying", "memory"].iter().any(|stack| case["id"].as_str().unwrap().starts_with(stack));
        assert_eq!(case["durability"]["class"] == "volatile", volatile, "{case}");
        assert!(case["verdict"]["verdict"].is_string(), "{case}");
    }
    // More than arithmetic, later: it takes the place of what was there.
    let cut = shop.pgstrata(&["cut", folder.to_str().unwrap(), "--states", "2", "--seconds", "1"]).output().unwrap();
    assert_eq!(cut.status.code(), Some(6), "lying is convicted: {}", said(&cut));
    assert!(!verdict("lying")["states"].as_array().unwrap().is_empty(), "{}", verdict("lying"));
    // Nothing fails, but two states are not of every kind: what arithmetic said stays.
    assert!(said(&cut).contains("not decided, ") && said(&cut).contains("none of these"), "{}", said(&cut));
    assert_eq!(verdict("ext4")["verdict"]["verdict"], "holds");
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
    if !can_build_stacks(NAME) {
        return;
    }
    if !Path::new("/dev/fuse").exists() {
        return skipped(NAME, "needs /dev/fuse to record disks");
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
    let cases: Vec<&str> = beside.iter().map(|result| result["case"].as_str().unwrap()).collect();
    assert_eq!(cases, ["ext4.own.clients-1", "ext4.own.clients-6"]);
    for result in &beside {
        assert_eq!(result["beside"]["workload"], "own");
        assert_eq!(result["verdict"]["verdict"], "holds", "{result}");
    }
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

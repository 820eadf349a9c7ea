//! `durability = "quick"`: a run finds out what a power cut would cost each stack, stores it, and ranks by it.

use crate::workshop::{Workshop, can_build_stacks, said, skipped};
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
"#;

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_run_judges_each_stack_once_and_its_report_has_the_verdicts_beside_the_rates() {
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
        crate::workshop::set_mode(&shop.path().join(folder), 0o777);
    }
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
    let cut = shop.pgstrata(&["cut", folder.to_str().unwrap(), "--states", "4", "--seconds", "1"]).output().unwrap();
    assert_eq!(cut.status.code(), Some(6), "lying is convicted: {}", said(&cut));
    assert!(verdict("ext4")["verdict"]["states"].as_u64().unwrap() >= 4, "{}", said(&cut));
    assert!(!verdict("ext4")["states"].as_array().unwrap().is_empty());
}

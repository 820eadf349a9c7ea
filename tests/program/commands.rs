//! `pgstrata commands`: the script of a run, filled in and executed, makes what the run measured.

use crate::program::workshop::{Workshop, can_build_stacks, json, said, stderr};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const PLAN: &str = r#"
name = "take-home"
blocks = 1

[stack.ext4]
device = { loop = "640MiB", in = "IMAGES", sparse = true }
filesystem = { ext4 = { mkfs = ["-m", "1"], mount = ["noatime"] } }
wal = "tmp"

[stack.tmp]
filesystem = { tmpfs = "256MiB" }

[postgres]
settings = { shared_buffers = "16MB", cluster_name = "it's `id` $(id)" }
initdb = ["--data-checksums"]

[workload.tpcb]
pgbench = { scale = 1, clients = 2, duration = "2s", warmup = "0s" }
"#;

fn called(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// What a shell executes of a script, but for the folder of the programs, which a plan does not know.
fn executed(script: &str) -> Vec<&str> {
    script.lines().filter(|line| !line.starts_with('#') && !line.starts_with("BIN=")).collect()
}

#[test]
fn a_runs_script_makes_the_stack_and_cluster_that_it_measured() {
    if !can_build_stacks("the script of a run") {
        return;
    }
    let shop = Workshop::new();
    let place = shop.path().display().to_string();
    let ran = shop.ran(&PLAN.replace("IMAGES", &place));
    let run = json(&fs::read(ran.folder.join("run.json")).unwrap());
    let cases: Vec<&str> = run["cases"].as_array().unwrap().iter().map(|case| case["id"].as_str().unwrap()).collect();
    let case = cases.iter().find(|case| case.starts_with("ext4")).unwrap();
    let script = text(&shop.pgstrata(&["commands", ran.folder.to_str().unwrap(), case]).output().unwrap());
    let planned = text(&shop.pgstrata(&["commands", "plan.toml", case]).output().unwrap());
    assert_eq!(executed(&script), executed(&planned));
    let image = shop.file("image", "");
    fs::File::options().write(true).open(&image).unwrap().set_len(640 << 20).unwrap();
    let device = text(&called("losetup", &["--find", "--show", image.to_str().unwrap()]));
    let filled = script
        .replace("\nDEVICE=\n", &format!("\nDEVICE={device}\n"))
        .replace("=/var/lib/postgresql", &format!("={place}/mount"))
        .replace("=/etc/fstab", &format!("={place}/fstab"));
    let file = shop.file("stack.sh", &filled);
    let made = called("sh", &[file.to_str().unwrap()]);
    let again = called("sh", &[file.to_str().unwrap()]);
    let second = filled.lines().find_map(|line| line.strip_prefix("MOUNT2=")).unwrap().to_owned();
    let mount = format!("{place}/mount");
    let wal = fs::read_link(Path::new(&mount).join("data/pg_wal"));
    let options = text(&called("findmnt", &["--noheadings", "--output", "OPTIONS", &mount]));
    let superblock = text(&called("dumpe2fs", &["-h", &device]));
    for folder in [&mount, &second] {
        called("umount", &[folder]);
    }
    called("losetup", &["--detach", &device]);
    assert!(made.status.success(), "{}\n{filled}", said(&made));
    assert!(stderr(&again).contains("is not empty: it has the signature ext4"), "{}", said(&again));
    assert_eq!(wal.unwrap(), Path::new(&second).join("pg_wal"));
    assert!(text(&made).contains("it's `id` $(id)\n"), "{}", said(&made));
    assert!(text(&made).contains("Data page checksum version:           1"), "{}", said(&made));
    let trial = json(&fs::read(ran.folder.join("trials").join(case).join("1/trial.json")).unwrap());
    let nodes = trial["stack"]["nodes"].as_array().unwrap();
    let ext4 = nodes.iter().find(|node| node["layer"] == "ext4").unwrap();
    let found = ["options", "super_options"].map(|key| ext4["bases"][0]["mount"][key].as_array().unwrap().clone());
    for option in found.concat() {
        assert!(options.split(',').any(|shown| shown == option.as_str().unwrap()), "{option} in {options}");
    }
    for fact in ["Filesystem features", "Block size", "Reserved block count", "Inode count"] {
        let line = superblock.lines().find(|line| line.starts_with(fact)).unwrap();
        assert_eq!(line.split_once(':').unwrap().1.trim(), ext4["details"][fact].as_str().unwrap(), "{fact}");
        assert!(script.contains(&format!("#   {fact}: {}", ext4["details"][fact].as_str().unwrap())), "{script}");
    }
}

#[test]
fn unknown_cases_and_failed_trials_have_no_script() {
    let shop = Workshop::new();
    let folder = shop.finished();
    let run = folder.to_str().unwrap();
    let unknown = shop.pgstrata(&["commands", run, "tow.tpcb"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2), "{}", said(&unknown));
    assert!(stderr(&unknown).contains("there is no case `tow.tpcb`; there are "), "{}", stderr(&unknown));
    for trial in ["1", "2"] {
        let file = folder.join("trials/one.tpcb").join(trial).join("trial.json");
        let mut record = json(&fs::read(&file).unwrap());
        record["outcome"] =
            serde_json::json!({ "outcome": "not_run", "step": "build", "reason": "no room", "hint": null });
        fs::write(&file, record.to_string()).unwrap();
    }
    let failed = shop.pgstrata(&["commands", run, "one.tpcb"]).output().unwrap();
    assert_eq!(failed.status.code(), Some(3), "{}", said(&failed));
    assert!(stderr(&failed).contains("it failed: no room"), "{}", stderr(&failed));
    let reported = shop.pgstrata(&["report", run]).output().unwrap();
    assert!(reported.status.success(), "{}", said(&reported));
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    let section = page.split("id=\"by-hand-section\"").nth(1).unwrap().split("id=\"plan\"").next().unwrap();
    assert!(section.contains("There is no script: no trial of one.tpcb was measured"), "{section}");
    assert_eq!(section.matches("<pre").count(), 1, "{section}");
    assert!(section.contains("mount -t tmpfs") && section.contains("noatime"), "{section}");
}

#[test]
fn a_script_says_how_its_server_was_built() {
    let shop = Workshop::new();
    let built = "[postgres]\nbuild = { version = 15, wal_blocksize = 64, configure = [\"--with-lz4\"] }";
    shop.file("plan.toml", &PLAN.replace("IMAGES", "/tmp").replace("[postgres]", built));
    let output = shop.pgstrata(&["commands", "plan.toml", "ext4.tpcb"]).output().unwrap();
    assert!(text(&output).contains("# Built from source: 15, WAL blocks of 64 kB, --with-lz4"), "{}", said(&output));
}

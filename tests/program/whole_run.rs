//! A plan goes in, a comparison comes out.

use crate::depth::is_full;
use crate::program::workshop::{Workshop, can_build_stacks, said};
use pgstrata::store::latency;
use std::fs;
use std::path::Path;

const PLAN: &str = r#"
name = "small"
seed = 3
blocks = BLOCKS
baseline = "ext4"

[stack.ext4]
device = { loop = "512MiB", in = "IMAGES" }
filesystem = { ext4 = { mount = ["noatime"] } }

[stack.tmp]
filesystem = { tmpfs = "512MiB" }

[stack.logged]
filesystem = { tmpfs = "512MiB" }
wal = "ext4"

[postgres]
settings = { shared_buffers = "16MB" }

[workload.tpcb]
pgbench = { scale = 1, clients = 2, duration = "2s", warmup = "1s", log_sample = 1.0 }

[workload.sync]
sync = { duration = "1s" }

[[exclude]]
stack = "logged"
workload = "sync"
"#;

fn document(path: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// What the folder holds gives the same figures again, and without its counts there are none.
fn figures_come_from_the_counts_in_the_folder(shop: &Workshop, folder: &Path, findings: &serde_json::Value) {
    let report = || shop.pgstrata(&["report", folder.to_str().unwrap(), "--json"]).output().unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&report().stdout).unwrap(), *findings);
    for case in ["ext4.tpcb", "tmp.sync"] {
        let path = folder.join("trials").join(case).join("1/trial.json");
        let whole = fs::read_to_string(&path).unwrap();
        let mut record = document(&path);
        let counts = record.as_object_mut().unwrap().remove("counts").unwrap();
        let main = &counts["measures"][0];
        let rate = main["done"].as_f64().unwrap() / (main["elapsed_us"].as_f64().unwrap() / 1e6);
        let is_it = |trial: &&serde_json::Value| trial["case"] == case && trial["trial"] == 1;
        let found = findings["trials"].as_array().unwrap().iter().find(is_it).unwrap();
        let found = found["rate"].as_f64().unwrap();
        assert!((found / rate - 1.0).abs() < 1e-12, "{case}: {found} against {rate}");
        fs::write(&path, record.to_string()).unwrap();
        let output = report();
        assert!(!output.status.success() && said(&output).contains("has no counts"), "{}", said(&output));
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn ranked_figures_inside_durability_classes_agree_with_pgbench() {
    if !can_build_stacks("a whole run on loop devices") {
        return;
    }
    let shop = Workshop::new();
    let images = shop.path().join("images");
    fs::create_dir(&images).unwrap();
    let blocks = if is_full() { 2 } else { 1 };
    let text = PLAN.replace("IMAGES", images.to_str().unwrap()).replace("BLOCKS", &blocks.to_string());
    let output = shop.run(&shop.file("plan.toml", &text));
    assert!(output.status.success(), "{}", said(&output));
    let folder = shop.run_folder();

    // Every case has all its trials, with rows, latencies, the server's log and the commands.
    for case in ["ext4.tpcb", "tmp.tpcb", "logged.tpcb", "ext4.sync", "tmp.sync"] {
        for trial in 1..=blocks {
            let trial = folder.join("trials").join(case).join(trial.to_string());
            let record = document(&trial.join("trial.json"));
            assert_eq!(record["outcome"]["outcome"], "measured", "{case}: {record}");
            for file in ["seconds.parquet", "latency.hist", "raw/commands.jsonl"] {
                assert!(trial.join(file).exists(), "{case}: {file}");
            }
            // The intervals of a measure hold each operation that was counted.
            let mut latencies = Vec::new();
            latency::visit(&trial, |name, _, _, interval| latency::merge(&mut latencies, name, &interval)).unwrap();
            for measure in record["counts"]["measures"].as_array().unwrap() {
                // A row that a busy machine let do nothing has none.
                let whole = latencies.iter().find(|(name, _)| measure["name"] == *name);
                let done = measure["done"].as_u64().unwrap_or(0);
                assert_eq!(done, whole.map_or(0, |(_, whole)| whole.len()), "{case}: {measure}");
            }
        }
    }

    let report = shop.pgstrata(&["report", folder.to_str().unwrap(), "--json"]).output().unwrap();
    let findings: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    for trial in findings["trials"].as_array().unwrap() {
        let checks = trial["checks"].as_array().unwrap();
        assert!(checks.iter().all(|check| check["agrees"] == true), "{trial}");
        if trial["case"].as_str().unwrap().ends_with("tpcb") {
            let transactions = checks.iter().find(|check| check["what"] == "transactions").unwrap();
            assert_eq!(transactions["tool"], transactions["own"]);
            assert_eq!(transactions["tolerance"], 0.0);
        }
    }
    figures_come_from_the_counts_in_the_folder(&shop, &folder, &findings);
    let ranking = findings["rankings"].as_array().unwrap().iter().find(|r| r["workload"] == "tpcb").unwrap();
    let class_of = |case: &str| {
        let classes = ranking["classes"].as_array().unwrap();
        let has = |class: &&serde_json::Value| class["rows"].as_array().unwrap().iter().any(|row| row["case"] == case);
        classes.iter().find(has).unwrap()["class"].clone()
    };
    assert_eq!(class_of("tmp.tpcb"), "volatile");
    // The WAL on ext4 does not save data that lie in memory.
    assert_eq!(class_of("logged.tpcb"), "volatile");
    assert_eq!(class_of("ext4.tpcb"), "flushed");
    let strata =
        &findings["cases"].as_array().unwrap().iter().find(|case| case["id"] == "ext4.tpcb").unwrap()["strata"];
    assert!(strata["devices"][0]["flushes"].as_f64().unwrap() > 0.1, "{strata}");
    assert!(strata["wal_bytes"].as_f64().unwrap() > 100.0, "{strata}");

    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains(findings["headline"].as_str().unwrap().split_whitespace().next().unwrap()));
    assert!(fs::read_dir(&images).unwrap().next().is_none());
}

#[test]
fn a_kept_stack_reports_how_many_trials_it_served() {
    if !can_build_stacks("a stack that is kept") {
        return;
    }
    let shop = Workshop::new();
    let images = shop.path().join("images");
    fs::create_dir(&images).unwrap();
    let text = PLAN
        .replace("IMAGES", images.to_str().unwrap())
        .replace("BLOCKS", "2")
        .replace("[stack.ext4]", "[stack.ext4]\nreuse = true")
        .replace("duration = \"2s\"", "duration = \"1s\"");
    // Without the stack that has its WAL on the kept one: that would be one of the trials it serves. Of what is measured between
    // its trials the one without a server is enough.
    let (before, after) = (text.find("[stack.logged]").unwrap(), text.find("[postgres]").unwrap());
    let text = format!("{}{}", &text[..before], &text[after..])
        .replace("\"logged\"\nworkload = \"sync\"", "\"tmp\"\nworkload = \"tpcb\"");
    let plan = shop.file("plan.toml", &text);
    let output = shop.run(&plan);
    assert!(output.status.success(), "{}", said(&output));
    let mut served: Vec<u64> = ["ext4.tpcb", "ext4.sync"]
        .iter()
        .flat_map(|case| ["1", "2"].map(|trial| format!("{case}/{trial}/trial.json")))
        // Of a trial that was disturbed and repeated, the other one is set aside.
        .flat_map(|path| ["trials", "set-aside"].map(|folder| shop.run_folder().join(folder).join(&path)))
        .filter(|path| path.exists())
        .map(|path| document(&path)["stack"]["trials_before"].as_u64().unwrap())
        .collect();
    served.sort_unstable();
    assert_eq!(served.first(), Some(&0));
    assert!(served.windows(2).all(|pair| pair[0] < pair[1]), "{served:?}");
}

#[test]
fn events_are_json_lines_in_trial_order() {
    if !can_build_stacks("events of a run") {
        return;
    }
    let shop = Workshop::new();
    let text = "name = \"events\"\nblocks = 1\n[stack.t]\nfilesystem = { tmpfs = \"64MiB\" }\n\
                [workload.s]\nsync = { duration = \"2s\" }\n";
    let plan = shop.file("plan.toml", text);
    let output = shop.pgstrata(&["run", "--json", plan.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let lines = String::from_utf8(output.stdout).unwrap();
    let names: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["what"].clone())
        .map(|what| format!("{} {}", what["event"].as_str().unwrap(), what["step"].as_str().unwrap_or("")))
        .collect();
    let of = |wanted: &str| names.iter().position(|name| name.trim() == wanted).unwrap_or_else(|| panic!("{names:?}"));
    let order = [
        "run_started",
        "trial_started",
        "step_started check",
        "step_started build",
        "step_started load",
        "step_started measure",
        "second",
        "step_started tear_down",
        "step_started store",
        "trial_done",
        "run_done",
    ];
    let places: Vec<usize> = order.iter().map(|name| of(name)).collect();
    assert!(places.is_sorted(), "{names:?}");
}

#[test]
fn under_sudo_the_results_belong_to_the_calling_user() {
    use std::os::unix::fs::MetadataExt;
    if !can_build_stacks("results under sudo") {
        return;
    }
    let shop = Workshop::new();
    let text = "name = \"mine\"\nblocks = 1\n[stack.t]\nfilesystem = { tmpfs = \"64MiB\" }\n\
                [workload.s]\nsync = { duration = \"1s\" }\n";
    let plan = shop.file("plan.toml", text);
    let mut command = shop.pgstrata(&["run", plan.to_str().unwrap()]);
    let output = command.env("SUDO_UID", "65534").env("SUDO_GID", "65533").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let folder = shop.run_folder();
    let mut left = vec![folder.clone()];
    let mut files = 0;
    while let Some(path) = left.pop() {
        let facts = fs::symlink_metadata(&path).unwrap();
        assert_eq!((facts.uid(), facts.gid()), (65_534, 65_533), "{}", path.display());
        files += usize::from(facts.is_file());
        left.extend(fs::read_dir(&path).into_iter().flatten().map(|entry| entry.unwrap().path()));
    }
    assert!(files > 5 && folder.join("report.html").exists());
    assert_eq!(fs::metadata(shop.results()).unwrap().uid(), 0);
}

//! Shipped scripts on real stacks: loaded once, each transaction counted for itself. Their WAL is tested where it can be counted,
//! beside the workload: here it depends on the seconds that a busy machine gives.

use crate::depth::waits_for_full;
use crate::program::workshop::{Workshop, can_build_stacks, json, said, stderr};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// Stacks of this size, and workloads with this much data.
fn plan(stack: &str, data: &str, scripts: &[&str]) -> String {
    let workload = |script: &&str| {
        format!(
            "[workload.{script}]\npgbench = {{ script = \"{script}\", data = \"{data}\", clients = 4, duration = \"3s\", \
             warmup = \"0s\", log_sample = 1.0 }}\n"
        )
    };
    let workloads: String = scripts.iter().map(workload).collect();
    let settings = "settings = { shared_buffers = \"64MB\" }";
    format!("name = \"scripts\"\nblocks = 1\n{stack}\n[postgres]\n{settings}\n{workloads}")
}

/// Weight of each transaction, as the page of the scripts says.
fn stated(script: &str) -> BTreeMap<String, f64> {
    let page = include_str!("../../docs/scripts.md");
    let section = page.split("\n## ").find(|section| section.starts_with(&format!("{script}: "))).unwrap();
    let rows = section.split("| transaction |").nth(1).unwrap().lines().filter_map(|line| line.strip_prefix("| `"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        (cells[0].trim_end_matches('`').to_owned(), cells[1].parse().unwrap())
    };
    rows.map(row).collect()
}

/// Runs two scripts at 20 MB on ext4 and on tmpfs.
fn run_on_both(scripts: [&str; 2]) {
    if !can_build_stacks("shipped scripts") {
        return;
    }
    let stacks = "[stack.ext4]\ndevice = { loop = \"1GiB\", sparse = true }\nfilesystem = \"ext4\"\n\
                  [stack.tmp]\nfilesystem = { tmpfs = \"1GiB\" }";
    let shop = Workshop::new();
    let ran = shop.ran(&plan(stacks, "20MB", &scripts));
    for script in scripts {
        let stated = stated(script);
        let mut loads = 0;
        for case in ["ext4", "tmp"].map(|stack| format!("{stack}.{script}")) {
            let trial = ran.folder.join("trials").join(&case).join("1");
            let record = json(&fs::read(trial.join("trial.json")).unwrap());
            let [all, measures @ ..] = record["counts"]["measures"].as_array().unwrap().as_slice() else {
                panic!("{case}")
            };
            let done = all["done"].as_f64().unwrap();
            assert!(done > 0.0 && all["failed"] == 0, "{case}: {all}");
            assert!(
                measures.iter().all(|one| stated.contains_key(one["name"].as_str().unwrap())),
                "{case}: {measures:?}"
            );
            for (name, weight) in &stated {
                let of =
                    measures.iter().find(|one| one["name"] == **name).map_or(0.0, |one| one["done"].as_f64().unwrap());
                let (share, error) = (weight / 100.0, (weight / 100.0 / done).sqrt());
                assert!((of / done - share).abs() < 6.0 * error, "{case}: {name}: {of} of {done}");
            }
            // Of a trial that was disturbed and repeated, the other one is set aside.
            let folders = ["trials", "set-aside"].map(|folder| ran.folder.join(folder).join(&case).join("1/raw"));
            let is_loader = |raw: &&std::path::PathBuf| raw.join(format!("{script}-setup.sql")).exists();
            loads += folders.iter().filter(is_loader).count();
        }
        assert_eq!(loads, 1, "{script}");
    }
}

#[test]
fn orders_and_events_run_on_ext4_and_tmpfs() {
    run_on_both(["orders", "events"]);
}

#[test]
fn queue_and_documents_run_on_ext4_and_tmpfs() {
    run_on_both(["queue", "documents"]);
}

#[test]
fn a_plan_is_sized_and_ageing_by_pgbench_refused() {
    let shop = Workshop::new();
    let stack = "[stack.tmp]\nfilesystem = { tmpfs = \"1GiB\" }\nage = { pgbench = [0, 1] }";
    let plan = shop.file("plan.toml", &plan(stack, "100MB", &["orders", "tpcb-like"]));
    let output = shop.pgstrata(&["plan", plan.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("orders-scale-62") && said.contains("pgbench-scale-6"), "{said}");
    assert!(said.contains("pgbench's tables, which the workload orders does not have"), "{said}");
    assert!(!said.contains("which the workload tpcb-like"), "{said}");
}

#[test]
fn a_plan_tries_its_own_sql_and_leaves_nothing() {
    if !can_build_stacks("a plan's own SQL") {
        return;
    }
    let shop = Workshop::new();
    let tried = |stack: &str, setup: &str, script: &str| {
        let own = format!("scale = 5, clients = 4, duration = \"3s\", setup = \"{setup}\", script = \"{script}\"");
        let settings = "postgres.settings = { max_prepared_transactions = 4, shared_buffers = \"1GB\" }";
        let plan = format!("name = \"own\"\n{settings}\n{stack}\nworkload.mine.pgbench = {{ {own} }}\n");
        let output = shop.pgstrata(&["plan", shop.file("plan.toml", &plan).to_str().unwrap()]).output().unwrap();
        let left = |folder: std::path::PathBuf| fs::read_dir(folder).map_or(0, Iterator::count);
        assert_eq!(left(shop.state().join("ledger")), 0, "{}", said(&output));
        assert!(left(shop.state()) <= 1, "{}", said(&output));
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            !shown.contains("-setup-") && shown.contains("80 % of it for mine, without what `setup` makes"),
            "{shown}"
        );
        (output.status.code(), stderr(&output))
    };
    let made = "CREATE TABLE jobs AS SELECT 1 AS id;";
    let tmp = "stack.tmp.filesystem.tmpfs = \"1GiB\"";
    let prepared = "BEGIN; UPDATE jobs SET id = :scale; PREPARE TRANSACTION 'a'; ROLLBACK PREPARED 'a';";
    let (code, why) = tried(tmp, made, prepared);
    assert!(code == Some(0) && why.contains("trying the plan's own SQL"), "{code:?}: {why}");
    // What only the stack has is tried by the run alone.
    let spaces = format!("{tmp}\nstack.tmp.tablespace.fast.tmpfs = \"64MiB\"");
    assert_eq!(tried(&spaces, "CREATE TABLE jobs (id int) TABLESPACE fast;", "SELECT 1;"), (Some(0), String::new()));
    assert!(why.contains("`setup` of the workload `mine` made tables of"), "{why}");
    let push = shop.file("push.sql", "\\set id 2\nSELECT 1;\nUPDATE jobs\n   SET ids = :id;\n");
    let (code, why) = tried(tmp, made, push.to_str().unwrap());
    assert_eq!(code, Some(4), "{why}");
    for part in ["the workload `mine`", "column \"ids\"", &format!("{} (line 4)", push.display())] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let (_, why) = tried(tmp, "CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1';", "SELECT one();");
    assert!(why.contains("trying the plan's own SQL") && !why.contains("made tables of"), "{why}");
    let (_, why) = tried(tmp, "CREATE TABL jobs;", "SELECT 1;");
    assert!(why.contains("syntax error at or near \"TABL\""), "{why}");
    let setup = shop.file("jobs.sql", "CREATE TABLE jobs (id int);\n\nVACUUM jobs;\n");
    let (_, why) = tried(tmp, setup.to_str().unwrap(), "SELECT 1;");
    for part in ["one transaction", &format!("`setup` of the workload, {} (line 3)", setup.display())] {
        assert!(why.contains(part), "{part}: {why}");
    }
}

#[test]
fn a_full_disk_is_no_mistake_of_a_plans_sql() {
    if !can_build_stacks("a full disk") {
        return;
    }
    let shop = Workshop::new();
    let workload =
        "workload.mine.pgbench = { setup = \"CREATE TABLE jobs AS SELECT 1 AS id;\", script = \"SELECT 1;\" }";
    let plan = shop.file("plan.toml", &format!("name = \"own\"\nstack.tmp.filesystem.tmpfs = \"1GiB\"\n{workload}\n"));
    fs::create_dir_all(shop.state()).unwrap();
    let done = |program: &str, arguments: &[&str]| {
        let done = Command::new(program).args(arguments).arg(shop.state()).status();
        assert!(done.unwrap().success(), "{program}");
    };
    done("mount", &["-t", "tmpfs", "-o", "size=24m", "pgstrata-test"]);
    let output = shop.pgstrata(&["plan", plan.to_str().unwrap()]).output().unwrap();
    let left = fs::read_dir(shop.state()).map_or(0, Iterator::count);
    done("umount", &[]);
    let why = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{why}");
    for part in ["was not tried", "No space left on device", "the plan needs"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert!(left <= 2, "{left} entries are left");
}

#[test]
fn data_of_every_script_have_the_size_asked_for() {
    if waits_for_full() || !can_build_stacks("sized data") {
        return;
    }
    let scripts = ["tpcb-like", "orders", "events", "queue", "documents"];
    let stack = "[stack.tmp]\nfilesystem = { tmpfs = \"2GiB\" }";
    let shop = Workshop::new();
    // The size is read after the window: a few transactions add little.
    let ran = shop.ran(&plan(stack, "500MB", &scripts).replace("clients = 4", "clients = 4, rate = 10"));
    for script in scripts {
        let record = json(&fs::read(ran.folder.join(format!("trials/tmp.{script}/1/trial.json"))).unwrap());
        let bytes = record["data"]["database_bytes"].as_f64().unwrap();
        let share = bytes / (500u64 << 20) as f64;
        assert!((0.97..1.03).contains(&share), "{script}: {bytes}");
    }
}

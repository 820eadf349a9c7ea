//! What a real server on real devices is said to survive: scripts that do not wait, folders that others use, words of the
//! plan's own.

use crate::program::workshop::{Workshop, can_build_stacks, said};
use std::fs;

const PLAN: &str = r#"
name = "durability"
blocks = 1

[stack.ext4]
device = { loop = "512MiB", in = "IMAGES", sparse = true }
filesystem = "ext4"

[stack.ext2]
device = { loop = "512MiB", in = "IMAGES", sparse = true }
filesystem = "ext2"

[stack.told]
device = { loop = "512MiB", in = "IMAGES", sparse = true, queue = { write_cache = "write through" } }
filesystem = "ext4"

[stack.folder]
directory = "FOLDER"

# The WAL writer flushes what nobody waits for; at its usual pace of five a second that would be a flush for each transaction
# of a machine busy enough.
[postgres]
settings = { shared_buffers = "16MB", wal_writer_delay = "10s" }

[workload.waits]
pgbench = { script = "waits.sql", scale = 1, clients = 2, duration = "2s", warmup = "0s" }

[workload.lazy]
pgbench = { script = "lazy.sql", scale = 1, clients = 2, duration = "2s", warmup = "0s" }

[workload.hidden]
pgbench = { script = "hidden.sql", scale = 1, clients = 2, duration = "2s", warmup = "0s" }

[[exclude]]
stack = ["ext2", "told", "folder"]
workload = ["lazy", "hidden"]
"#;

const SET: &str = "\\set aid random(1, 100000)\n";
const UPDATE: &str = "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;";

#[test]
fn unflushed_commits_of_custom_scripts_are_detected() {
    if !can_build_stacks("durability of a real server") {
        return;
    }
    let shop = Workshop::new();
    for folder in ["images", "folder"] {
        fs::create_dir(shop.path().join(folder)).unwrap();
    }
    crate::program::workshop::set_mode(&shop.path().join("folder"), 0o777);
    shop.file("waits.sql", &format!("{SET}{UPDATE}\n"));
    shop.file("lazy.sql", &format!("{SET}BEGIN;\nSET LOCAL synchronous_commit = off;\n{UPDATE}\nEND;\n"));
    // Nothing in its text names the setting whole: only the missing flushes, or what a new session finds, give it away.
    let hidden = "SELECT set_config('synchronous_' || 'commit', 'off', false);";
    shop.file("hidden.sql", &format!("{SET}{hidden}\n{UPDATE}\n"));
    let path = |folder: &str| shop.path().join(folder).display().to_string();
    let plan = shop.file("plan.toml", &PLAN.replace("IMAGES", &path("images")).replace("FOLDER", &path("folder")));
    let output = shop.run(&plan);
    assert!(output.status.success(), "{}", said(&output));
    let folder = shop.run_folder();
    let report = shop.pgstrata(&["report", folder.to_str().unwrap(), "--json"]).output().unwrap();
    let findings: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let of = |case: &str| {
        let cases = findings["cases"].as_array().unwrap();
        let found = &cases.iter().find(|found| found["id"] == case).unwrap()["durability"];
        (found["class"].as_str().unwrap().to_owned(), found["reason"].as_str().unwrap().to_owned())
    };
    let assert_is = |case: &str, class: &str, reason: &str| {
        let found = of(case);
        assert!(found.0 == class && found.1.contains(reason), "{case}: wanted {class} ... {reason}; got {found:?}");
    };
    // A slow disk under other tests leaves less evidence, and another sentence about the flushes that were counted.
    let waits = of("ext4.waits");
    let is_counted =
        ["per transaction) seen at", "flushes per transaction seen at"].iter().any(|it| waits.1.contains(it));
    assert!(waits.0 == "flushed" && is_counted, "{waits:?}");
    assert_is("ext4.lazy", "delayed", "synchronous_commit = off (line 3 of lazy.sql)");
    assert_is("ext4.hidden", "unknown", "expected at least");
    assert_is("ext2.waits", "flushed", "; filesystem ext2: a power cut may destroy the filesystem");
    assert_is("told.waits", "volatile", "queue.write_cache = write through of told");
    // Other tests may use the same disk meanwhile; the folder is believed only as far as they leave it to be.
    let (class, reason) = of("folder.waits");
    let shared = reason.contains("device shared") || reason.contains("may come from other programs");
    assert!(["flushed", "declared_stable", "unknown"].contains(&class.as_str()), "{class}: {reason}");
    assert!(shared || reason.contains("only ") || reason.contains("no block device"), "{class}: {reason}");
    let record = fs::read_to_string(folder.join("trials/folder.waits/1/trial.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert!(record["idle"]["elapsed_us"].as_u64().unwrap_or(0) >= 900_000, "{}", record["idle"]);
}

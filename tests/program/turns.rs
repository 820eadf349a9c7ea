//! Cases of a quick run stand at once and are measured in turns.

use crate::depth::{is_full, waits_for_full};
use crate::probe::fuse::{Faults, Fuse};
use crate::program::kill::{Moment, run_and_kill};
use crate::program::machine::traces;
use crate::program::workshop::{Workshop, can_build_stacks, json, run_id, said};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PLAN: &str = r#"
name = "turns"
seed = 5
blocks = BLOCKS
baseline = "ext4"

[stack.ext4]
device = { loop = "256MiB", in = "IMAGES" }
filesystem = "ext4"

[stack.noatime]
device = { loop = "256MiB", in = "IMAGES" }
filesystem = { ext4 = { mount = ["noatime"] } }

[postgres]
settings = { shared_buffers = "16MB", max_wal_size = "64MB" }

[workload.tpcb]
pgbench = { scale = 2, clients = 2, duration = "DURATION", warmup = "1s" }
"#;

const CASES: [&str; 2] = ["ext4.tpcb", "noatime.tpcb"];

fn plan(shop: &Workshop, blocks: &str, duration: &str) -> String {
    let images = shop.path().join("images");
    fs::create_dir_all(&images).unwrap();
    let plan = PLAN.replace("IMAGES", images.to_str().unwrap()).replace("BLOCKS", blocks).replace("DURATION", duration);
    shop.file("plan.toml", &plan).to_str().unwrap().to_owned()
}

/// The stored trials by case and block.
fn records(folder: &Path, blocks: u32) -> BTreeMap<(String, u32), serde_json::Value> {
    let keys = CASES.into_iter().flat_map(|case| (1..=blocks).map(move |block| (case.to_owned(), block)));
    let read = |(case, block): (String, u32)| {
        let path = folder.join("trials").join(&case).join(block.to_string()).join("trial.json");
        ((case, block), json(&fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))))
    };
    keys.map(read).collect()
}

fn turns(record: &serde_json::Value) -> Vec<&serde_json::Value> {
    let all = record["turns"]["turns"].as_array().unwrap().iter();
    all.filter(|turn| turn["counts"] == true).collect()
}

#[test]
fn cases_of_a_quick_run_alternate_on_standing_stacks() {
    if !can_build_stacks("turns on standing stacks") {
        return;
    }
    let shop = Workshop::new();
    let plan = plan(&shop, "1", "3s");
    let shown = shop.pgstrata(&["plan", &plan, "--quick"]).output().unwrap();
    assert!(said(&shown).contains("3 turns of 1 s side by side"), "{}", said(&shown));
    let output = shop.pgstrata(&["run", &plan, "--quick"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let folder = shop.run_folder();
    let records = records(&folder, 1);
    let mut in_time: Vec<(u64, &str)> = Vec::new();
    for ((case, _), record) in &records {
        let own = turns(record);
        assert_eq!(own.len(), 3, "{record}");
        let sum = |key: &str| own.iter().map(|turn| turn[key].as_u64().unwrap()).sum::<u64>();
        assert_eq!(record["counts"]["elapsed_us"].as_u64().unwrap(), sum("whole_us"));
        assert!(record["counts"]["measures"][0]["done"].as_u64().unwrap() >= sum("operations"));
        assert_eq!(record["window"]["settings"]["autovacuum"], "off");
        assert!(record["notes"].as_array().unwrap().is_empty(), "{}", record["notes"]);
        let commands = folder.join("trials").join(case).join("1/raw/commands.jsonl");
        assert!(fs::read_to_string(commands).unwrap().contains("mkfs.ext4"), "its own commands");
        assert_eq!(record["turns"]["operations"], records[&(CASES[0].to_owned(), 1)]["turns"]["operations"]);
        let syncs = record["load_counts"]["pg_wal_syncs"].as_u64().unwrap();
        assert!(syncs > 0 && record["load_counts"]["dev_loop_flushes"].as_u64().unwrap() >= syncs, "{record}");
        in_time.extend(own.iter().map(|turn| (turn["began_us"].as_u64().unwrap(), case.as_str())));
    }
    in_time.sort_unstable();
    for round in in_time.chunks(2) {
        assert_ne!(round[0].1, round[1].1, "each case has one turn in a round: {in_time:?}");
    }
    let report = shop.pgstrata(&["report", folder.to_str().unwrap(), "--json"]).output().unwrap();
    let found = json(&report.stdout);
    assert_eq!((&found["turns"]["rounds"], &found["turns"]["cases"][0]["turns"]), (&3.into(), &3.into()));
    let rate = found["trials"][0]["rate"].as_f64().unwrap();
    let first = turns(&records[&(found["trials"][0]["case"].as_str().unwrap().to_owned(), 1)]);
    let sum = |key: &str| first.iter().map(|turn| turn[key].as_f64().unwrap()).sum::<f64>();
    assert!((rate / (sum("operations") * 1e6 / sum("elapsed_us")) - 1.0).abs() < 1e-9, "{rate}");
}

#[test]
fn existing_folders_and_ramfs_alternate_too() {
    if !can_build_stacks("turns in existing folders and in memory") {
        return;
    }
    let shop = Workshop::new();
    let stacks = PLAN.find("[stack.ext4]").unwrap()..PLAN.find("[postgres]").unwrap();
    let folder = shop.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let there = format!("[stack.ext4]\ndirectory = {folder:?}\n\n[stack.noatime]\nfilesystem = \"ramfs\"\n\n");
    let text = PLAN.replace(&PLAN[stacks], &there).replace("BLOCKS", "1").replace("DURATION", "2s");
    let plan = shop.file("plan.toml", &text);
    let output = shop.pgstrata(&["run", plan.to_str().unwrap(), "--quick"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    for ((case, _), record) in records(&shop.run_folder(), 1) {
        let own = turns(&record);
        assert_eq!(own.len(), 2, "{record}");
        let is_probed = own.iter().all(|turn| turn["probe"]["folder"] == folder.to_str().unwrap());
        assert_eq!(is_probed, case == CASES[0], "{record}");
        assert_ne!(record["window"]["settings"]["max_wal_size"], "80MB", "room for all turns: {record}");
        let between = record["turns"]["between"].as_object();
        assert!(between.is_none_or(serde_json::Map::is_empty), "its disk is not its own: {record}");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_killed_block_of_turns_is_measured_again_whole() {
    if can_build_stacks("kill -9 among turns") {
        killed_blocks_are_measured_again(&["build", "settle", "measure"]);
    }
}

#[test]
fn a_block_of_turns_killed_elsewhere_is_measured_again() {
    if can_build_stacks("kill -9 before and behind turns") {
        killed_blocks_are_measured_again(&["tear_down", "warm_up"]);
    }
}

/// A kill in each of these steps, in the first trial and the second by turns; ten in the full suite. Then the rest of the run.
fn killed_blocks_are_measured_again(steps: &[&str]) {
    let shop = Workshop::new();
    let plan = plan(&shop, "2", "2s");
    let place = shop.path().to_str().unwrap();
    let before = traces(place);
    let (mut folder, kills) = (None, if is_full() { 10 } else { steps.len() });
    for kill in 0..kills {
        let at = Moment {
            step: steps[kill % steps.len()],
            trial: (kill + kill / steps.len()) % 2,
            delay: Duration::from_millis(37 * (kill as u64 % 11)),
        };
        run_and_kill(&shop, &["--quick", &plan], folder.as_deref(), at, || ());
        let cleaned = shop.pgstrata(&["clean"]).output().unwrap();
        assert!(cleaned.status.success(), "{}", said(&cleaned));
        folder = Some(shop.run_folder());
        let id = folder.as_deref().map(run_id).unwrap();
        assert_eq!(traces(place), before, "{}", said(&cleaned));
        assert!(traces(&id).is_empty(), "{}", said(&cleaned));
    }
    let folder = folder.unwrap();
    let output = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    for (key, record) in records(&folder, 2) {
        assert_eq!(turns(&record).len(), 2, "{key:?}: {record}");
    }
}

/// While true, every request to the disk below the images takes longer.
static IS_SLOWED: AtomicBool = AtomicBool::new(false);

/// An ext4 for images, on a file of a FUSE filesystem.
struct SlowedDisk {
    folder: PathBuf,
    _fuse: Fuse,
    _below: tempfile::TempDir,
}

impl SlowedDisk {
    fn mount(folder: PathBuf, delay: Duration) -> SlowedDisk {
        let below = tempfile::tempdir().unwrap();
        let fuse = Fuse::mount(below.path(), Faults { delay, delayed_while: Some(&IS_SLOWED), ..Faults::default() });
        let image = fuse.mount.join("disk");
        fs::File::create(&image).unwrap().set_len(1 << 30).unwrap();
        fs::create_dir(&folder).unwrap();
        let (image, target) = (image.to_str().unwrap(), folder.to_str().unwrap());
        for command in [&["mkfs.ext4", "-q", image][..], &["mount", "-o", "loop", image, target]] {
            assert!(Command::new(command[0]).args(&command[1..]).status().unwrap().success(), "{command:?}");
        }
        SlowedDisk { folder, _fuse: fuse, _below: below }
    }
}

impl Drop for SlowedDisk {
    fn drop(&mut self) {
        IS_SLOWED.store(false, Ordering::Relaxed);
        drop(Command::new("umount").arg(&self.folder).status());
    }
}

#[test]
fn a_round_on_a_slowed_disk_is_made_again() {
    if !can_build_stacks("a slowed disk below turns") {
        return;
    }
    if let Err(why) = Fuse::can() {
        println!("skipped: a slowed disk below turns: {why}");
        return;
    }
    let shop = Workshop::new();
    // Where other tests use the disk a flush takes some 2 ms by itself: it must be three times slower all the same.
    let _disk = SlowedDisk::mount(shop.path().join("images"), Duration::from_millis(10));
    // At a fixed rate a turn ends after its time, however slow the disk is.
    let plan = plan(&shop, "1", "5s\", rate = 100, mode = \"simple");
    let mut run = shop.pgstrata(&["run", &plan, "--quick", "--json"]);
    let mut child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let events = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let turns_begun = events.filter(|line| line.contains("step_started") && line.contains(r#""step":"measure""#));
    for (turn, _) in turns_begun.enumerate() {
        // The first turn of the third round, and the probe before the second: four earlier ones to compare it with.
        IS_SLOWED.store(turn == 4, Ordering::Relaxed);
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let folder = shop.run_folder();
    for (key, record) in records(&folder, 1) {
        let all = record["turns"]["turns"].as_array().unwrap();
        let again = all.iter().filter(|turn| turn["counts"] == false).map(|turn| turn["round"].as_u64());
        assert_eq!(again.collect::<Vec<_>>(), [Some(3)], "{key:?}: {record}");
        assert_eq!(turns(&record).len(), 5, "{key:?}: {record}");
    }
    let report = shop.pgstrata(&["report", "--full", folder.to_str().unwrap()]).output().unwrap();
    let text = String::from_utf8_lossy(&report.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("1 of 6 rounds were made again"), "{text}");
}

/// Ratio of the journalling stack with its interval, and how many rounds were made again, of five blocks of twelve rounds. If
/// `is_slowed`, every request to the disk below the images takes longer for 16 s, from the second block's third round on.
fn journalling(is_slowed: bool) -> ([f64; 3], u64) {
    let shop = Workshop::new();
    // Without a limit one turn of equal work would last until the disk is well again, and no probe would see it (ADR 46).
    let _disk = SlowedDisk::mount(shop.path().join("images"), Duration::from_millis(3));
    let text = fs::read_to_string(plan(&shop, "5", "12s")).unwrap();
    let plan = shop.file("plan.toml", &text.replace("[\"noatime\"]", "[\"noatime\", \"data=journal\"]"));
    let mut run = shop.pgstrata(&["run", plan.to_str().unwrap(), "--quick", "--json"]);
    let mut child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let events = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let turns_begun = events.filter(|line| line.contains("step_started") && line.contains(r#""step":"measure""#));
    std::thread::scope(|threads| {
        for (turn, _) in turns_begun.enumerate() {
            if is_slowed && turn == 24 + 4 {
                IS_SLOWED.store(true, Ordering::Relaxed);
                threads.spawn(|| {
                    std::thread::sleep(Duration::from_secs(16));
                    IS_SLOWED.store(false, Ordering::Relaxed);
                });
            }
        }
    });
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let report = shop.pgstrata(&["report", "--json", shop.run_folder().to_str().unwrap()]).output().unwrap();
    let found = json(&report.stdout);
    let classes = found["rankings"][0]["classes"].as_array().unwrap();
    let mut rows = classes.iter().flat_map(|class| class["rows"].as_array().unwrap());
    let ratio = &rows.find(|row| row["case"] == CASES[1]).unwrap()["comparison"]["ratio"];
    let again = found["turns"]["made_again"].as_u64().unwrap();
    (["low", "value", "high"].map(|key| ratio[key].as_f64().unwrap()), again)
}

#[test]
fn a_disk_slowed_within_a_turn_of_equal_work_is_noticed_and_the_ratio_holds() {
    if waits_for_full() || !can_build_stacks("ratios beside a slowed disk") {
        return;
    }
    if let Err(why) = Fuse::can() {
        println!("skipped: ratios beside a slowed disk: {why}");
        return;
    }
    let (alone, (slowed, again)) = (journalling(false).0, journalling(true));
    println!("alone {alone:?}, slowed {slowed:?}, {again} rounds made again");
    assert!(again > 0, "alone {alone:?}, slowed {slowed:?}");
    assert!(slowed[0] <= alone[2] && alone[0] <= slowed[2], "alone {alone:?}, slowed {slowed:?}");
}

//! A disk that fills up under the results: the run ends with what it has, undone, and goes on when there is room.

use crate::program::machine::traces;
use crate::program::workshop::{Workshop, can_build_stacks, json, run_id, said, stderr};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A filesystem of a size that can be changed, as folder of results.
struct Small(PathBuf);

impl Small {
    fn mount(folder: PathBuf, size: &str) -> Small {
        fs::create_dir(&folder).unwrap();
        let small = Small(folder);
        small.call(&["mount", "-t", "tmpfs", "-o", &format!("size={size}"), "none"]);
        small
    }

    fn grow(&self, size: &str) {
        self.call(&["mount", "-o", &format!("remount,size={size}")]);
    }

    fn call(&self, command: &[&str]) {
        assert!(Command::new(command[0]).args(&command[1..]).arg(&self.0).status().unwrap().success(), "{command:?}");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(&self.0).status());
    }
}

fn names(folder: &Path) -> Vec<String> {
    let list = fs::read_dir(folder).map(|list| list.map(|e| e.unwrap().file_name().into_string().unwrap()).collect());
    let mut names: Vec<String> = list.unwrap_or_default();
    names.sort();
    names
}

#[test]
fn a_run_stopped_by_full_results_disk_resumes_with_room() {
    if !can_build_stacks("full disk under the results") {
        return;
    }
    let shop = Workshop::new();
    // A trial takes some 100 KiB.
    let small = Small::mount(shop.results(), "300k");
    let images = shop.path().join("images");
    fs::create_dir(&images).unwrap();
    let text = format!(
        "name = \"full\"\nblocks = 4\n[stack.e]\ndevice = {{ loop = \"256MiB\", in = \"{}\" }}\nfilesystem = \"ext4\"\n\
         [postgres]\nsettings = {{ shared_buffers = \"16MB\" }}\n[workload.w]\n\
         pgbench = {{ scale = 1, duration = \"1s\", warmup = \"0s\" }}\n",
        images.display()
    );
    let plan = shop.file("plan.toml", &text);
    let output = shop.run(&plan);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    let folder = shop.run_folder();
    let says = stderr(&output);
    assert!(says.contains("space") && says.contains(folder.to_str().unwrap()), "{says}");
    assert!(says.contains("pgstrata run --resume"), "{says}");

    let id = run_id(&folder);
    assert!(traces(&id).is_empty(), "{:?}", traces(&id));
    assert!(names(&images).is_empty() && names(&shop.state().join("ledger")).is_empty());
    assert_eq!(names(&shop.state()), ["ledger"]);
    let stored = names(&folder.join("trials/e.w"));
    assert!(stored.iter().all(|name| !name.starts_with('.')), "{stored:?}");
    // A trial whose last file found no room is stored as not run, if the record still fits.
    let is_measured = |name: &&String| {
        let record = fs::read(folder.join("trials/e.w").join(name).join("trial.json")).unwrap();
        json(&record)["outcome"]["outcome"] == "measured"
    };
    let complete = stored.iter().filter(is_measured).count();
    assert!((1..4).contains(&complete), "{stored:?}");

    small.grow("16m");
    let output = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let resumed = format!("complete, {} left", 4 - complete);
    assert!(stderr(&output).contains(&resumed), "{}", said(&output));
    assert_eq!(names(&folder.join("trials/e.w")), ["1", "2", "3", "4"]);
    let events = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    for line in events.lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "half an event: {line}");
    }

    // A report that cannot be written is not announced.
    let report = folder.join("report.html");
    fs::remove_file(&report).unwrap();
    fs::create_dir(&report).unwrap();
    let output = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("\nrun folder  ") && !told.contains("\nreport  "), "{told}");
}

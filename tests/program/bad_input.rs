//! What goes wrong at the keyboard gets a clear error, the right exit code, and leaves nothing behind.

use crate::program::workshop::{FINISHED, Workshop, can_build_stacks, said, set_mode, skipped, stderr};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TMPFS: &str = "filesystem = { tmpfs = \"256MiB\" }";

/// A plan of one small case; `stack` is the body of `[stack.s]`.
fn plan(stack: &str, settings: &str, pgbench: &str) -> String {
    format!(
        "name = \"bad\"\nblocks = 1\n[stack.s]\n{stack}\n[postgres]\nsettings = {{ shared_buffers = \"16MB\"{settings} }}\n\
         [workload.w]\npgbench = {{ scale = 1, clients = 1, duration = \"1s\", warmup = \"0s\"{pgbench} }}\n"
    )
}

fn loop_stack(shop: &Workshop, size: &str, filesystem: &str) -> String {
    let images = shop.path().join("images");
    fs::create_dir_all(&images).unwrap();
    format!("device = {{ loop = \"{size}\", in = \"{}\" }}\nfilesystem = {filesystem}", images.display())
}

/// Runs a plan that must not come to figures.
fn fails(shop: &Workshop, text: &str, exit_code: i32, says: &[&str]) -> Output {
    let path = shop.file("plan.toml", text);
    let output = shop.run(&path);
    assert_eq!(output.status.code(), Some(exit_code), "{}", said(&output));
    let all = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    for words in says {
        assert!(all.contains(words), "`{words}` is not in:\n{}", said(&output));
    }
    leaves_nothing(shop);
    output
}

fn leaves_nothing(shop: &Workshop) {
    let ledgers: Vec<_> = list(&shop.state().join("ledger"));
    assert!(ledgers.is_empty(), "{ledgers:?}");
    let images: Vec<_> = list(&shop.path().join("images"));
    assert!(images.is_empty(), "{images:?}");
    let state: Vec<_> = list(&shop.state()).into_iter().filter(|p| !p.ends_with("ledger")).collect();
    assert!(state.is_empty(), "{state:?}");
}

fn list(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).map(|list| list.map(|e| e.unwrap().path()).collect()).unwrap_or_default()
}

#[test]
fn an_unknown_key_is_located_and_gets_the_nearest_name() {
    let shop = Workshop::new();
    let text = plan(TMPFS, "", "").replace("blocks", "bloks");
    fails(&shop, &text, 2, &["plan.toml", "bloks", "blocks"]);
    assert!(!shop.results().exists());
}

#[test]
fn a_size_without_its_unit_says_how_to_write_it() {
    let shop = Workshop::new();
    fails(&shop, &plan("filesystem = { tmpfs = \"4\" }", "", ""), 2, &["no unit", "GiB"]);
}

#[test]
fn a_missing_device_is_an_error_of_the_case() {
    if !can_build_stacks("missing device") {
        return;
    }
    let shop = Workshop::new();
    let stack = "device = { disk = \"/dev/pgstrata-none\", serial = \"X\" }\nfilesystem = \"ext4\"";
    fails(&shop, &plan(stack, "", ""), 3, &["/dev/pgstrata-none", "nothing of this plan can run here"]);
}

/// A loop device that somebody else made. It reports no serial, so that it can never be named in full: the checks behind
/// that one (signatures, mounts, another serial) are tested beside the layer, in `src/provision/disk/tests.rs`.
struct Foreign {
    device: String,
    target: Option<PathBuf>,
}

impl Foreign {
    fn make(shop: &Workshop, filesystem: bool, mounted: bool) -> Foreign {
        let image = shop.path().join("foreign.img");
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        if filesystem {
            assert!(Command::new("mkfs.ext4").arg("-q").arg(&image).status().unwrap().success());
        }
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&image).output().unwrap();
        let device = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        let target = mounted.then(|| {
            let target = shop.path().join("mounted");
            fs::create_dir(&target).unwrap();
            assert!(Command::new("mount").arg(&device).arg(&target).status().unwrap().success());
            fs::write(target.join("precious"), "precious").unwrap();
            target
        });
        Foreign { device, target }
    }

    fn stack(&self, more: &str) -> String {
        format!("device = {{ disk = \"{}\", serial = \"X\"{more} }}\nfilesystem = \"ext4\"", self.device)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Some(target) = &self.target {
            drop(Command::new("umount").arg(target).status());
        }
        drop(Command::new("losetup").args(["--detach", &self.device]).status());
    }
}

#[test]
fn a_device_without_serial_is_refused_and_left_unchanged() {
    if !can_build_stacks("device with a filesystem") {
        return;
    }
    let shop = Workshop::new();
    let foreign = Foreign::make(&shop, true, false);
    let before = fs::read(shop.path().join("foreign.img")).unwrap();
    fails(&shop, &plan(&foreign.stack(""), "", ""), 3, &[foreign.device.as_str(), "reports no serial"]);
    assert!(before == fs::read(shop.path().join("foreign.img")).unwrap(), "the device was written to");
}

#[test]
fn a_mounted_device_without_serial_is_refused_and_stays_mounted() {
    if !can_build_stacks("mounted device") {
        return;
    }
    let shop = Workshop::new();
    let foreign = Foreign::make(&shop, true, true);
    fails(&shop, &plan(&foreign.stack(""), "", ""), 3, &[foreign.device.as_str(), "reports no serial"]);
    let precious = foreign.target.as_ref().unwrap().join("precious");
    assert_eq!(fs::read_to_string(precious).unwrap(), "precious");
}

#[test]
fn a_device_whose_serial_is_another_is_refused() {
    if !can_build_stacks("wrong serial") {
        return;
    }
    let shop = Workshop::new();
    let foreign = Foreign::make(&shop, false, false);
    fails(&shop, &plan(&foreign.stack(""), "", ""), 3, &["reports no serial", "X"]);
}

#[test]
fn an_image_beyond_the_free_space_is_refused_before_building() {
    if !can_build_stacks("image larger than free space") {
        return;
    }
    let shop = Workshop::new();
    let stack = loop_stack(&shop, "900TiB", "\"ext4\"");
    fails(&shop, &plan(&stack, "", ""), 3, &["900 TiB of space on the filesystem of"]);
    assert!(!shop.results().exists(), "a run folder was made");
}

#[test]
fn a_size_that_does_not_fit_fails_the_plan_check() {
    let shop = Workshop::new();
    let path = shop.file("plan.toml", &plan(&loop_stack(&shop, "900TiB", "\"ext4\""), "", ""));
    let call = |more: &[&str]| shop.pgstrata(&[&["plan", path.to_str().unwrap()], more].concat()).output().unwrap();
    let output = call(&[]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("900 TiB") && stdout.contains("does not fit"), "{}", said(&output));
    // What is missing does not hide what does not fit.
    for what in ["cannot run here: 900 TiB of space", "is too small: the plan needs 900 TiB"] {
        assert!(stderr(&output).contains(what), "{}", said(&output));
    }
    let output = call(&["--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let space = document["forecast"]["space"].as_array().unwrap();
    assert!(space.iter().any(|line| line["fits"] == false), "{document}");
    assert!(stderr(&output).contains("900 TiB of space"), "{}", said(&output));
    leaves_nothing(&shop);
}

#[test]
fn a_refused_mkfs_option_is_reported_in_mkfs_words() {
    if !can_build_stacks("mkfs option refused") {
        return;
    }
    // Before anything is built.
    let shop = Workshop::new();
    let stack = loop_stack(&shop, "256MiB", "{ ext4 = { mkfs = [\"-O\", \"no_such_feature\"] } }");
    let says = ["plan.toml:", "mkfs.ext4", "exit code 1", "Invalid filesystem option set: no_such_feature"];
    fails(&shop, &plan(&stack, "", ""), 2, &says);
    assert!(!shop.results().exists(), "a run folder was made");
}

#[test]
fn a_mount_option_the_kernel_drops_is_a_case_error() {
    if !can_build_stacks("mount option dropped") {
        return;
    }
    let shop = Workshop::new();
    fails(&shop, &plan("filesystem = { ramfs = { mount = [\"size=1g\"] } }", "", ""), 1, &["size=1g", "NOT RUN"]);
}

#[test]
fn a_server_that_fails_to_start_shows_its_last_log() {
    if !can_build_stacks("PostgreSQL that does not start") {
        return;
    }
    let shop = Workshop::new();
    let text = plan(TMPFS, ", shared_preload_libraries = \"no_such_library\"", "");
    fails(&shop, &text, 1, &["no_such_library", "FATAL", "NOT RUN"]);
}

#[test]
fn a_reserved_server_setting_is_refused_before_building() {
    let shop = Workshop::new();
    let text = plan(TMPFS, ", PORT = [5433, 5434], logging_collector = true", "");
    let output = fails(&shop, &text, 2, &["`PORT`", "socket", "`logging_collector`", "log goes to"]);
    assert!(!shop.results().exists(), "a run folder was made");
    let checked = shop.pgstrata(&["plan", shop.path().join("plan.toml").to_str().unwrap()]).output().unwrap();
    assert_eq!(checked.status.code(), Some(2), "{}", said(&checked));
    assert!(checked.stdout.is_empty(), "{}", said(&checked));
    assert_eq!(stderr(&checked), stderr(&output));
}

#[test]
fn an_sql_error_in_a_custom_script_ends_the_case() {
    if !can_build_stacks("custom script with an SQL error") {
        return;
    }
    let shop = Workshop::new();
    let script = shop.file("wrong.sql", "SELECT no_such_column FROM pgbench_accounts LIMIT 1;\n");
    let text = plan(TMPFS, "", &format!(", script = \"{}\"", script.display()));
    fails(&shop, &text, 1, &["no_such_column", "NOT RUN"]);
}

#[test]
fn a_disk_that_is_full_during_the_load_says_so() {
    if !can_build_stacks("disk full during the load") {
        return;
    }
    let shop = Workshop::new();
    // Room for the bytes, but not for the number of files.
    let stack = "filesystem = { tmpfs = { size = \"256MiB\", mount = [\"nr_inodes=300\"] } }";
    let output = fails(&shop, &plan(stack, "", ""), 1, &["NOT RUN"]);
    assert!(said(&output).contains("space"), "{}", said(&output));
}

#[test]
fn a_read_only_results_folder_is_refused_before_building() {
    if !can_build_stacks("results folder read-only") {
        return;
    }
    let shop = Workshop::new();
    let sealed = shop.path().join("results");
    fs::create_dir(&sealed).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "ro", "none"]).arg(&sealed).status().unwrap();
    assert!(mounted.success());
    let path = shop.file("plan.toml", &plan(TMPFS, "", ""));
    let output = shop.run(&path);
    assert!(Command::new("umount").arg(&sealed).status().unwrap().success());
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(stderr(&output).contains("--results"), "{}", said(&output));
    leaves_nothing(&shop);
}

#[test]
fn a_changed_or_newer_run_folder_is_refused() {
    if !can_build_stacks("a complete small run") {
        return;
    }
    let shop = Workshop::new();
    let folder = shop.finished();
    let folder_text = folder.to_str().unwrap().to_owned();
    let call = |args: &[&str]| shop.pgstrata(args).output().unwrap();

    let changed = shop.file("other.toml", &FINISHED.replace("seed = 7", "seed = 8"));
    let output = call(&["run", changed.to_str().unwrap(), "--resume", &folder_text]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(stderr(&output).contains("not the one"), "{}", said(&output));

    let plan_text = fs::read_to_string(folder.join("plan.toml")).unwrap();
    fs::write(folder.join("plan.toml"), format!("{plan_text}# a thought\n")).unwrap();
    let output = call(&["run", "--resume", &folder_text]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    fs::write(folder.join("plan.toml"), plan_text).unwrap();

    let run = fs::read_to_string(folder.join("run.json")).unwrap();
    fs::write(folder.join("run.json"), run.replacen("\"format\": 1", "\"format\": 99", 1)).unwrap();
    for command in [vec!["report", &folder_text], vec!["run", "--resume", &folder_text]] {
        let output = call(&command);
        assert_eq!(output.status.code(), Some(5), "{}", said(&output));
        assert!(stderr(&output).contains("format version 99"), "{}", said(&output));
    }
    leaves_nothing(&shop);
}

#[test]
fn a_directory_stack_works_in_full_without_root() {
    const TEST: &str = "host without root";
    let root = rustix::process::geteuid().is_root();
    if root && !Path::new("/usr/bin/setpriv").exists() {
        skipped(TEST, "needs setpriv to give root away");
        return;
    }
    let shop = Workshop::new();
    let here = shop.path().join("here");
    fs::create_dir(&here).unwrap();
    set_mode(&here, 0o777);
    set_mode(shop.path(), 0o777);
    let text =
        plan(&format!("directory = \"{}\"\n[stack.t]\nfilesystem = {{ tmpfs = \"256MiB\" }}", here.display()), "", "");
    let path = shop.file("plan.toml", &text);
    let program = shop.path().join("pgstrata");
    fs::copy(env!("CARGO_BIN_EXE_pgstrata"), &program).unwrap();
    let mut command = if root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
        command
    } else {
        Command::new(&program)
    };
    command.arg("run").arg(&path).current_dir(shop.path()).env("PGSTRATA_STATE", shop.state()).env("HOME", shop.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let all = said(&output);
    assert!(all.contains("root") && all.contains("NOT RUN"), "{all}");
    assert!(all.contains("1 trial measured, 1 not run"), "{all}");
    assert!(shop.run_folder().join("report.html").exists());
    assert!(list(&here).is_empty(), "{:?}", list(&here));
    leaves_nothing(&shop);
}

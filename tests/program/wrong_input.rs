//! Wrong inputs of `plan`, `run`, `probe`, `import` and `init`: each with its exit code and what the message has to say.

use crate::program::workshop::{Workshop, can_build_stacks, said, set_mode, stderr};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const HEAD: &str = "name = \"wrong\"\nblocks = 3\n";
const WORKLOAD: &str = "[workload.w]\npgbench = { scale = 1, clients = 1, duration = \"1s\" }\n";

/// Whether the settings of a plan can be shown to a server here.
fn has_postgres(shop: &Workshop) -> bool {
    let doctor = shop.pgstrata(&["doctor", "--json"]).output().unwrap();
    let diagnosis: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    !diagnosis["postgres"].as_array().unwrap().is_empty()
}

fn stack(text: &str) -> String {
    format!("{HEAD}[stack.s]\n{text}\n{WORKLOAD}")
}

fn settings(text: &str) -> String {
    format!("{HEAD}[stack.s]\nfilesystem = {{ tmpfs = \"256MiB\" }}\n[postgres]\nsettings = {{ {text} }}\n{WORKLOAD}")
}

/// What `plan` says of each, and what it must not say.
fn expect(shop: &Workshop, table: &[(String, i32, &[&str], &[&str])]) {
    for (text, code, says, never) in table {
        let path = shop.file("plan.toml", text);
        let output = shop.pgstrata(&["plan", path.to_str().unwrap()]).output().unwrap();
        let all = said(&output);
        assert_eq!(output.status.code(), Some(*code), "{text}\n{all}");
        says.iter().for_each(|words| assert!(all.contains(words), "`{words}` is not said of\n{text}\n{all}"));
        never.iter().for_each(|words| assert!(!all.contains(words), "`{words}` is said of\n{text}\n{all}"));
    }
}

#[test]
fn suggestions_are_made_only_for_likely_typos() {
    let shop = Workshop::new();
    let on_loop =
        |size: &str, filesystem: &str| stack(&format!("device = {{ loop = {size} }}\nfilesystem = \"{filesystem}\""));
    expect(
        &shop,
        &[
            (on_loop("\"1GiB\"", "zfs"), 2, &["`zfs` needs a pool", "add one as `volume`"], &["did you mean"]),
            (on_loop("\"1GiB\"", "ntfs"), 2, &["NTFS is not supported yet"], &["did you mean"]),
            (on_loop("\"1GiB\"", "ext5"), 2, &["`ext4`"], &["did you mean"]),
            (on_loop("\"1GiB\"", "ext44"), 2, &["did you mean `ext4`?"], &[]),
            (on_loop("2048", "ext4"), 2, &["add a unit to the number: MiB, GiB"], &["2048GiB"]),
        ],
    );
}

#[test]
fn settings_refused_by_the_server_are_located_before_building() {
    let shop = Workshop::new();
    if !has_postgres(&shop) {
        println!("skipped: settings that the server refuses: no PostgreSQL on this machine");
        return;
    }
    let table: [(String, i32, &[&str], &[&str]); 5] = [
        (settings("shard_buffers = \"16MB\""), 2, &["plan.toml:6:14", "did you mean `shared_buffers`?"], &[]),
        (settings("wal_sync_method = [\"fdatasync\", \"opendatasync\"]"), 2, &["did you mean `open_datasync`?"], &[]),
        (settings("work_mem = \"128 megs\""), 2, &["work_mem", "\"kB\", \"MB\""], &[]),
        (settings("max_connections = -4"), 2, &["outside the valid range"], &[]),
        (settings("include = \"x\""), 2, &["reserved for pgstrata", "plan.toml:6:14"], &[]),
    ];
    expect(&shop, &table);
    let path = shop.file("plan.toml", &settings("shard_buffers = \"16MB\""));
    let run = shop.run(&path);
    assert_eq!(run.status.code(), Some(2), "{}", said(&run));
    assert!(!shop.results().exists(), "a run folder was made");
}

#[test]
fn a_plan_shows_its_server_and_what_nobody_could_check() {
    let shop = Workshop::new();
    if !can_build_stacks("server of a plan") || !has_postgres(&shop) {
        return;
    }
    let path = shop.file("plan.toml", &settings("auto_explain.log_analyze = true"));
    let output = shop.pgstrata(&["plan", path.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let all = said(&output);
    assert!(all.contains("\nPostgreSQL: ") && all.contains("(auto: the"), "{all}");
    assert!(all.contains("Not checked: settings of extensions: auto_explain.log_analyze"), "{all}");
    let json = shop.pgstrata(&["plan", path.to_str().unwrap(), "--json"]).output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(document["servers"][0]["asked"], "auto");
    assert!(document["servers"][0]["bin"].as_str().unwrap().starts_with('/'), "{document}");
}

#[test]
fn a_refused_mount_option_is_located_with_the_likely_one() {
    if !can_build_stacks("mount option refused") {
        return;
    }
    let shop = Workshop::new();
    let mounted = |options: &str| {
        stack(&format!(
            "device = {{ loop = \"256MiB\", in = \"/tmp\" }}\nfilesystem = {{ ext4 = {{ mount = {options} }} }}"
        ))
    };
    let table: [(String, i32, &[&str], &[&str]); 4] = [
        (mounted("[\"noatme\"]"), 2, &["plan.toml:5", "did you mean `noatime`?"], &[]),
        (mounted("[\"noatime\", \"comit=5\"]"), 2, &["did you mean `commit`?"], &[]),
        (mounted("[\"data=wrteback\"]"), 2, &["Bad value for 'data'"], &["did you mean"]),
        (mounted("[\"noatime\", \"barrier=0\", \"lazytime\"]"), 0, &["noatime"], &["refuses", "Not checked"]),
    ];
    expect(&shop, &table);
}

#[test]
fn cases_that_cannot_run_here_make_exit_code_3() {
    let shop = Workshop::new();
    let disk = "device = { disk = \"/dev/pgstrata-none\", serial = \"X\" }\nfilesystem = \"ext4\"";
    let nowhere = format!("{HEAD}[stack.s]\ndirectory = \"/tmp\"\n[postgres]\nbin = \"/nowhere/17/bin\"\n{WORKLOAD}");
    expect(
        &shop,
        &[
            (stack(disk), 3, &["1 of 1 cases cannot run here", "/dev/pgstrata-none"], &[]),
            (nowhere, 3, &["1 of 1 cases cannot run here", "/nowhere/17/bin"], &[]),
        ],
    );
}

#[test]
fn designs_that_cannot_answer_are_warned_of() {
    if !can_build_stacks("warnings of a design") {
        return;
    }
    let shop = Workshop::new();
    let two = |blocks: u32, size: &str| {
        format!(
            "name = \"w\"\nblocks = {blocks}\n[stack.a]\ndevice = {{ loop = \"512MiB\", in = \"/tmp\" }}\n\
             filesystem = \"ext4\"\n[stack.b]\ndevice = {{ loop = \"{size}\", in = \"/tmp\" }}\nfilesystem = \"xfs\"\n{WORKLOAD}"
        )
    };
    expect(
        &shop,
        &[
            (
                two(2, "512MiB"),
                0,
                &["two trials of each of two cases have no interval"],
                &["in both filesystem and device"],
            ),
            (two(3, "600MiB"), 0, &["a and b differ in both filesystem and device"], &["3 blocks: if"]),
        ],
    );
}

#[test]
fn a_state_folder_closed_to_the_server_user_is_refused() {
    if !can_build_stacks("closed state folder") {
        return;
    }
    let shop = Workshop::new();
    if !has_postgres(&shop) {
        return;
    }
    let closed = shop.path().join("closed");
    fs::create_dir(&closed).unwrap();
    set_mode(&closed, 0o700);
    let path = shop.file("plan.toml", &settings("fsync = true"));
    let state = closed.join("state");
    for command in ["plan", "run"] {
        let args = [command, path.to_str().unwrap(), "--state", state.to_str().unwrap()];
        let output = shop.pgstrata(&args).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        let words = stderr(&output);
        assert!(words.contains("cannot enter") && words.contains("chmod a+x") && words.contains("--state"), "{words}");
    }
    assert!(!shop.results().exists() && !state.exists(), "something was made");
}

#[test]
fn a_run_whose_first_trials_fail_alike_stops() {
    if !can_build_stacks("fail fast") {
        return;
    }
    let shop = Workshop::new();
    if !has_postgres(&shop) {
        return;
    }
    // Each is good by itself: only a server that starts sees that they exclude each other.
    let text = settings("wal_level = \"minimal\", max_wal_senders = 5").replace("blocks = 3", "blocks = 9");
    let path = shop.file("plan.toml", &text);
    let output = shop.run(&path);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(stderr(&output).contains("stopped: the first 3 trials all failed in the same way"), "{}", said(&output));
    let folder = shop.run_folder();
    let trials = fs::read_dir(folder.join("trials/s.w")).unwrap().count();
    assert_eq!(trials, 3, "{}", said(&output));
    let status = shop.pgstrata(&["status", folder.to_str().unwrap()]).output().unwrap();
    let text = String::from_utf8_lossy(&status.stdout);
    assert_eq!(status.status.code(), Some(1), "{text}");
    assert!(text.contains(": ended; try the trials without figures again: pgstrata run --resume "), "{text}");
    assert!(text.contains("  0 of 9 trials measured, 3 not run\n") && !text.contains("now: "), "{text}");
}

#[test]
fn under_umask_077_the_server_works_and_results_stay_private() {
    if !can_build_stacks("a run under umask 077") {
        return;
    }
    let shop = Workshop::new();
    if !has_postgres(&shop) {
        return;
    }
    let stacks = "[stack.tmp]\nfilesystem = { tmpfs = \"256MiB\" }\n\
                  [stack.ext4]\ndevice = { loop = \"400MiB\" }\nfilesystem = \"ext4\"\n";
    let workload = "[workload.w]\npgbench = { scale = 1, clients = 1, duration = \"2s\", warmup = \"1s\" }\n";
    let path = shop.file("plan.toml", &format!("name = \"private\"\nblocks = 1\n{stacks}{workload}"));
    let state = shop.path().join("deep/state");
    let program = shop.pgstrata(&[]).get_program().to_str().unwrap().to_owned();
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 077 && exec \"$@\"", "sh", &program, "run", path.to_str().unwrap()]);
    let output = shell.env("PGSTRATA_STATE", &state).current_dir(shop.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("\n2 trials measured, 0 not run; "), "{}", said(&output));
    // A filesystem in memory has no images, and no step that writes them.
    let steps = |case: &str| {
        let trial = fs::read(shop.run_folder().join(format!("trials/{case}/1/trial.json"))).unwrap();
        let trial: serde_json::Value = serde_json::from_slice(&trial).unwrap();
        trial["steps"].as_array().unwrap().iter().map(|step| step["step"].to_string()).collect::<Vec<_>>()
    };
    let images = "\"images\"".to_owned();
    assert!(!steps("tmp.w").contains(&images) && steps("ext4.w").contains(&images), "{:?}", steps("ext4.w"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&shop.results()), mode(&shop.run_folder()), mode(&state)), (0o700, 0o700, 0o711));
}

#[test]
fn a_standard_output_that_is_full_ends_with_5() {
    let shop = Workshop::new();
    for args in [&["shelf"][..], &["plan", "--example"], &["--help"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = shop.pgstrata(args).stdout(Stdio::from(full)).output().unwrap();
        says(&output, 5, &["failed to write to standard output"]);
    }
}

fn says(output: &Output, code: i32, words: &[&str]) {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
    words.iter().for_each(|words| assert!(stderr(output).contains(words), "`{words}` is not in {}", said(output)));
}

#[test]
fn wrong_flags_and_files_are_answered_in_plain_terms() {
    let shop = Workshop::new();
    let call = |args: &[&str]| shop.pgstrata(args).output().unwrap();
    let folder = shop.path().to_str().unwrap().to_owned();
    says(&call(&["run", "plan.toml", "--dry-run"]), 2, &["pgstrata plan plan.toml"]);
    says(&call(&["probe", &folder, "--server", "9.6"]), 2, &["too old", "from 12 to 18"]);
    says(&call(&["probe", &folder, "--writers", "1"]), 2, &["a whole number from 2 to 256"]);
    says(&call(&["probe", &folder, "--writers", "x"]), 2, &["a whole number from 2 to 256"]);
    says(&call(&["probe", "/proc"]), 3, &["/proc: proc is a kernel filesystem that cannot hold files"]);
    says(&call(&["probe", "/etc/passwd"]), 2, &["is not a directory"]);
    let run = shop.path().join("run");
    fs::create_dir(&run).unwrap();
    fs::write(run.join("run.json"), "{}").unwrap();
    says(&call(&["import", run.to_str().unwrap()]), 2, &["folder of a pgstrata run", "pgstrata report"]);
}

#[test]
fn init_writes_a_valid_plan_and_overwrites_nothing() {
    let shop = Workshop::new();
    let call = |args: &[&str]| shop.pgstrata(args).stdin(std::process::Stdio::null()).output().unwrap();
    let folder = shop.path().to_str().unwrap().to_owned();
    says(&call(&["init"]), 2, &["standard input is not a terminal", "--on loop"]);
    says(&call(&["init", "--on", &folder, "--question", "filesystem"]), 2, &["needs a disk or `loop`"]);
    let args = ["init", "--on", &folder, "--question", "wal-sync-method", "--out", "first.toml"];
    let output = call(&args);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    says(&call(&args), 2, &["first.toml already exists"]);
    let shipped = ["init", "--on", &folder, "--question", "encryption", "--out", "second.toml"];
    let output = call(&shipped);
    assert!(output.status.success() && said(&output).contains("pgstrata run second.toml --on /"), "{}", said(&output));
    let sized = ["init", "--on", "loop", "--question", "encryption", "--data", "1GiB", "--out", "third.toml"];
    says(&call(&sized), 2, &["has its own size and blocks"]);
    if !has_postgres(&shop) || !can_build_stacks("plans of init") {
        return;
    }
    for question in ["filesystem", "mount-options", "wal-sync-method", "wal-compression", "clients"] {
        let file = format!("{question}.toml");
        let output = call(&["init", "--on", "loop", "--question", question, "--out", &file]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let plan = call(&["plan", &file]);
        assert_eq!(plan.status.code(), Some(0), "{}", said(&plan));
        assert!(!said(&plan).contains("warning") && !said(&plan).contains("Not checked"), "{}", said(&plan));
    }
}

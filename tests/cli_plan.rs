//! The program as a person calls it: exit codes, what goes to which stream, readers that go away.

use std::io::Read;
use std::process::{Command, Stdio};

fn pgstrata(args: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_pgstrata")).args(args).env_remove("NO_COLOR").output().unwrap()
}

#[test]
fn a_bad_plan_exits_with_2_and_prints_to_stderr() {
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(file.path(), "name = \"p\"\nbloks = 3\n").unwrap();
    let path = file.path().to_str().unwrap();
    let output = pgstrata(&["plan", path]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(stderr.starts_with(&format!("error: {path} has 3 errors\n")), "{stderr}");
    assert!(stderr.contains("did you mean `blocks`?") && !stderr.contains('\u{1b}'), "{stderr}");
    let painted = String::from_utf8(pgstrata(&["--color", "always", "plan", path]).stderr).unwrap();
    assert!(painted.contains("\u{1b}[") && !painted.contains("\\u{1b}"), "{painted:?}");
}

#[test]
fn a_missing_plan_and_wrong_usage_exit_with_2() {
    let output = pgstrata(&["plan", "/nonexistent/plan.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("/nonexistent/plan.toml"));
    for args in [&["plan"][..], &["plan", "x", "--example"], &["no-such"], &[]] {
        assert_eq!(pgstrata(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn only_a_file_hides_a_shipped_plan_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("zfs-sync");
    let planned = || {
        let program = env!("CARGO_BIN_EXE_pgstrata");
        let output = Command::new(program).args(["plan", "zfs-sync"]).current_dir(folder.path()).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    std::fs::create_dir(&named).unwrap();
    assert!(planned().starts_with("Plan zfs-sync: "), "{}", planned());
    std::fs::remove_dir(&named).unwrap();
    std::fs::write(&named, "name = 3\n").unwrap();
    assert!(planned().contains("zfs-sync has"), "{}", planned());
}

#[test]
fn the_schema_is_json_and_the_example_toml() {
    let schema: serde_json::Value = serde_json::from_slice(&pgstrata(&["plan", "--schema"]).stdout).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let example = |args: &[&str]| String::from_utf8(pgstrata(args).stdout).unwrap();
    let (short, all) = (example(&["plan", "--example"]), example(&["plan", "--example", "--all"]));
    for text in [&short, &all] {
        assert!(toml::from_str::<toml::Table>(text).unwrap().contains_key("name"));
    }
    assert!(short.lines().count() <= 20 && all.contains("[machine]"), "{short}");
}

#[test]
fn completions_and_manual_pages_name_every_subcommand() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a/man");
    assert!(pgstrata(&["man", "--out", out.to_str().unwrap()]).status.success());
    for page in ["man1/pgstrata.1", "man1/pgstrata-plan.1", "man1/pgstrata-man.1", "man5/pgstrata-plan.5"] {
        assert!(out.join(page).is_file(), "{page}");
    }
    for shell in ["bash", "fish", "zsh"] {
        let script = String::from_utf8(pgstrata(&["completions", shell]).stdout).unwrap();
        assert!(script.contains("completions") && script.contains("schema"), "{shell}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for args in [&["man"][..], &["plan", "--schema"], &["completions", "bash"], &["--help"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pgstrata"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_full_standard_output_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pgstrata")).args(["plan", "--schema"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(String::from_utf8(output.stderr).unwrap().contains("failed to write to standard output"));
}

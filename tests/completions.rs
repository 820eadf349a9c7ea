//! Completion as bash does it: the script is loaded, a line is typed, and what bash would offer is read.

use std::fs;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgstrata");

/// What bash offers at the end of `line`; `words` as bash splits it, which it does at colons too.
fn offered(folder: &Path, line: &str, words: &[&str]) -> Option<Vec<String>> {
    let script = Command::new(PROGRAM).args(["completions", "bash"]).output().unwrap();
    fs::write(folder.join("script"), script.stdout).unwrap();
    let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
    let typed = format!(
        "source ./script; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({}); COMP_CWORD={}; \
         _pgstrata_sides pgstrata '{last}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1
    );
    let Ok(output) = Command::new("bash").args(["--norc", "-c", &typed]).current_dir(folder).output() else {
        println!("skipped: completions: needs bash");
        return None;
    };
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn bash_completes_publications_and_cases_of_a_run_for_compare() {
    let folder = tempfile::tempdir().unwrap();
    for case in ["ext4.tpcb", "xfs.tpcb"] {
        fs::create_dir_all(folder.path().join("run/trials").join(case)).unwrap();
    }
    let of = |line: &str, words: &[&str]| offered(folder.path(), line, words);
    let Some(shelf) = of("pgstrata compare shelf:free", &["pgstrata", "compare", "shelf", ":", "free"]) else { return };
    assert_eq!(shelf, ["freebsd10-zfs-fsync-2014"]);
    let cases = of("pgstrata compare run:", &["pgstrata", "compare", "run", ":", ""]).unwrap();
    assert_eq!(cases, ["ext4.tpcb", "xfs.tpcb"]);
    assert_eq!(of("pgstrata compare run:x", &["pgstrata", "compare", "run", ":", "x"]).unwrap(), ["xfs.tpcb"]);
    assert_eq!(of("pgstrata compare ru", &["pgstrata", "compare", "ru"]).unwrap(), ["run"]);
    let options = of("pgstrata compare --h", &["pgstrata", "compare", "--h"]).unwrap();
    assert!(options.contains(&"--html".to_owned()), "{options:?}");
    let names = of("pgstrata shelf show wal", &["pgstrata", "shelf", "show", "wal"]).unwrap();
    assert_eq!(names, ["wal-blocksize-2012"]);
    fs::write(folder.path().join("encoded.toml"), "").unwrap();
    assert_eq!(of("pgstrata run enc", &["pgstrata", "run", "enc"]).unwrap(), ["encryption", "encoded.toml"]);
    let options = of("pgstrata run --", &["pgstrata", "run", "--"]).unwrap();
    assert!(options.contains(&"--quick".to_owned()) && !options.contains(&"--inside".to_owned()), "{options:?}");
}

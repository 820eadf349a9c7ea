//! Submissions as folders: what is written, what is refused, and how far the shares are.

use crate::program::spread::{folder_of, plan, succeeded};
use crate::program::workshop::{Workshop, json, said, set_mode, skipped};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn only_a_lost_share_is_submitted_again() {
    let shop = Workshop::new();
    plan(&shop);
    let written = shop.pgstrata(&["submit", "plan.toml", "--ssh", "db1,root@db2,db3", "--into", "s"]).output().unwrap();
    succeeded(&written);
    let folder = shop.path().join("s");
    for name in ["pgstrata", "plan.toml", "submit.json", "job.sh"] {
        assert!(folder.join(name).is_file(), "{name}: {}", said(&written));
    }
    let original = fs::read(shop.path().join("plan.toml")).unwrap();
    assert_eq!(fs::read(folder.join("plan.toml")).unwrap(), original);
    assert!(said(&written).contains("::: 1 2 3"), "{}", said(&written));
    // The program in the folder runs a share, as it would on its host.
    let task = |share: &str| {
        let mut command = Command::new(folder.join("pgstrata"));
        command.args(["run", "plan.toml", "--share", share, "--results", "results"]).current_dir(&folder);
        succeeded(&command.env("PGSTRATA_STATE", shop.state()).output().unwrap());
    };
    task("2/3");
    fs::write(
        folder.join("parallel.log"),
        "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n\
         1\tdb1\t1.0\t1.0\t0\t0\t255\t0\t./pgstrata clean; ./pgstrata run plan.toml --share 1/3 --results results\n",
    )
    .unwrap();
    let before = fs::read(folder.join("submit.json")).unwrap();
    let asked = shop.pgstrata(&["submit", "--again", "s"]).output().unwrap();
    assert!(
        said(&asked).contains("submit    pgstrata submit --again") && said(&asked).contains(" --go"),
        "{}",
        said(&asked)
    );
    assert_eq!(fs::read(folder.join("submit.json")).unwrap(), before, "a question changes nothing");
    let looked = shop.pgstrata(&["submit", "--again", "s", "--ssh", "db2"]).output().unwrap();
    assert_eq!(looked.status.code(), Some(1), "{}", said(&looked));
    for part in ["1 of 3  no run folder; db1 was not reached", "2 of 3  complete, 4 of 4 trials", "::: 1 3"] {
        assert!(said(&looked).contains(part), "{part}: {}", said(&looked));
    }
    let job = fs::read_to_string(folder.join("job.sh")).unwrap();
    assert!(job.contains("--sshlogin db2 ") && job.contains("::: 1 3"), "{job}");
    task("1/3");
    task("3/3");
    let done = shop.pgstrata(&["submit", "--again", "s", "--json"]).output().unwrap();
    succeeded(&done);
    assert_eq!(json(&done.stdout)["missing"], serde_json::json!([]));
    assert!(folder_of(&folder.join("results"), "3of3").is_some());
}

#[test]
fn an_impossible_submission_is_refused_before_a_folder_is_made() {
    let shop = Workshop::new();
    plan(&shop);
    let text = fs::read_to_string(shop.path().join("plan.toml")).unwrap();
    shop.file("adaptive.toml", &text.replace("blocks = 6", "blocks = { at_least = 3, at_most = 6 }"));
    let own = "[workload.w]\npgbench = { script = \"my.sql\", scale = 1, clients = 1, duration = \"1s\" }\n";
    shop.file("beside.toml", &format!("{text}{own}"));
    shop.file("my.sql", "select 1;");
    fs::create_dir(shop.path().join("full")).unwrap();
    shop.file("full/x", "");
    for (arguments, told) in [
        (vec!["plan.toml"], "no engine is named"),
        (vec!["plan.toml", "--slurm", "--ssh", "a"], "cannot be used with"),
        (vec!["plan.toml", "--slurm", "--shares", "7"], "has no block"),
        (vec!["plan.toml", "--ssh", "db1,-oProxyCommand=x"], "is not a host name"),
        (vec!["plan.toml", "--kubernetes", "--image", "i"], "needs --claim"),
        (vec!["plan.toml", "--slurm", "--image", "i"], "--kubernetes"),
        (
            vec!["plan.toml", "--kubernetes", "--image", "i", "--claim", "c", "--storage-class", "fast,Slow"],
            "`Slow` is not the name of a storage class",
        ),
        (vec!["adaptive.toml", "--slurm"], "adaptive"),
        (vec!["beside.toml", "--slurm"], "would not be copied"),
        (vec!["plan.toml", "--slurm", "--into", "full"], "not empty"),
        (vec!["--again", "."], "pgstrata submit"),
        (vec!["--slurm"], "required"),
    ] {
        let before = fs::read_dir(shop.path()).unwrap().count();
        let output = shop.pgstrata(&[vec!["submit"], arguments.clone()].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(told), "{arguments:?}: {}", said(&output));
        assert_eq!(fs::read_dir(shop.path()).unwrap().count(), before, "{arguments:?}");
    }
}

#[test]
fn a_missing_submit_program_is_reported_and_the_folder_stays() {
    let shop = Workshop::new();
    plan(&shop);
    let kubernetes = vec!["--kubernetes", "--image", "i", "--claim", "c"];
    let engines = [("sbatch", vec!["--slurm"]), ("parallel", vec!["--ssh", "a"]), ("kubectl", kubernetes)];
    // Beside PATH, the program looks there.
    let folders = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    let is_there = |name: &str| folders.iter().any(|folder| Path::new(folder).join(name).exists());
    let Some((name, flags)) = engines.into_iter().find(|(name, _)| !is_there(name)) else {
        return skipped(
            "a_missing_submit_program_is_reported_and_the_folder_stays",
            "sbatch, parallel and kubectl are all installed",
        );
    };
    let arguments = [vec!["submit", "plan.toml", "--into", "k", "--go"], flags].concat();
    let output = shop.pgstrata(&arguments).env("PATH", shop.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains(name) && said(&output).contains("leave out --go"), "{}", said(&output));
    assert!(shop.path().join("k/submit.json").is_file());
}

#[test]
fn a_kubernetes_manifest_has_one_pod_for_each_block() {
    let shop = Workshop::new();
    plan(&shop);
    let arguments = ["submit", "plan.toml", "--kubernetes", "--image", "i", "--claim", "c", "--into", "k"];
    succeeded(&shop.pgstrata(&arguments).output().unwrap());
    let manifest = json(&fs::read(shop.path().join("k/job.json")).unwrap());
    assert_eq!(manifest["items"][1]["spec"]["completions"], 6);
    let plan = fs::read_to_string(shop.path().join("plan.toml")).unwrap();
    assert_eq!(manifest["items"][0]["data"]["plan.toml"], plan);
    assert!(!shop.path().join("k/pgstrata").exists(), "the program is in the image");
}

/// Stands for kubectl: a pod still runs for as long as there is a file `running`.
const KUBECTL: &str = r#"#!/bin/sh
case $1 in
get) printf '%s\n' "$*" >> "${0%/*}/asked"; [ -e "${0%/*}/running" ] && printf '1\tRunning\n'; printf '0\tFailed\t2026-01-01T00:00:00Z\t\tOOMKilled\t137\tn7\n'; exit 0 ;;
apply) printf '%s\n' "$*" >> "${0%/*}/asked"; echo 'job.batch/x serverside-applied' ;;
esac
"#;

#[test]
fn running_pods_are_not_started_again() {
    let shop = Workshop::new();
    plan(&shop);
    let own = shop.path().join("own");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("kubectl"), KUBECTL).unwrap();
    set_mode(&own.join("kubectl"), 0o755);
    let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap());
    let submit =
        |arguments: &[&str]| shop.pgstrata(&[&["submit"], arguments].concat()).env("PATH", &path).output().unwrap();
    let first = ["plan.toml", "--kubernetes", "--image", "i", "--claim", "c", "--into", "k", "--go", "--", "-n", "lab"];
    let first = submit(&first);
    succeeded(&first);
    assert!(said(&first).contains("serverside-applied"), "{}", said(&first));
    let manifest = || fs::read_to_string(shop.path().join("k/job.json")).unwrap();
    let (before, again) = (manifest(), ["--again", "k", "--go"]);
    fs::write(own.join("running"), "").unwrap();
    let refused = submit(&again);
    assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
    for words in ["shares still wait or run", "starts all of them again: 2", "kubectl delete -f job.json -n lab"] {
        assert!(said(&refused).contains(words), "{words}: {}", said(&refused));
    }
    // Another way to hand it in would write the job anew.
    assert_eq!(submit(&["--again", "k", "--", "-n", "lab"]).status.code(), Some(3));
    assert_eq!(manifest(), before);
    fs::remove_file(own.join("running")).unwrap();
    let asked = said(&submit(&["--again", "k"]));
    assert!(asked.contains("1 of 6  no run folder; Kubernetes: OOMKilled, exit code 137, on n7"), "{asked}");
    let folder = fs::File::open(shop.path().join("k")).unwrap();
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let refused = submit(&again);
    assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
    assert!(said(&refused).contains("another pgstrata is submitting"), "{}", said(&refused));
    drop(folder);
    succeeded(&submit(&again));
    assert_ne!(manifest(), before, "a Job of another name");
    let asked = fs::read_to_string(own.join("asked")).unwrap();
    let told: Vec<&str> = asked.lines().collect();
    assert_eq!(told[0], "apply --server-side -f job.json -n lab");
    assert!(told[1].starts_with("get pods --selector=pgstrata=pgstrata-") && told[1].ends_with(" -n lab"), "{asked}");
}

/// Stands for ssh: runs what it is given in a home folder for each host, with the variables that sshd sets; db2 is dead.
const SSH: &str = r#"#!/bin/sh
while :; do case $1 in -l) shift 2 ;; -*) shift ;; *) break ;; esac; done
host=$1
shift
[ "$1" = -- ] && shift
[ "$host" = db2 ] && exit 255
mkdir -p "${0%/*}/home-$host" && cd "${0%/*}/home-$host" && HOME=$PWD SHELL=/bin/sh exec sh -c "$*"
"#;

/// Host, beginning and end of each task of GNU parallel's log, in seconds.
fn tasks(log: &str) -> Vec<(String, f64, f64)> {
    let task = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let (begun, took): (f64, f64) = (columns[2].trim().parse().unwrap(), columns[3].trim().parse().unwrap());
        (columns[1].to_owned(), begun, begun + took)
    };
    log.lines().skip(1).map(task).collect()
}

#[test]
fn gnu_parallel_distributes_the_plan_and_collects_run_folders() {
    let name = "gnu_parallel_distributes_the_plan_and_collects_run_folders";
    let version = Command::new("parallel").arg("--version").output();
    if !version.is_ok_and(|output| output.stdout.starts_with(b"GNU parallel")) {
        return skipped(name, "needs GNU parallel (Debian: parallel; `scripts/setup test` installs it)");
    }
    if Command::new("rsync").arg("--version").output().is_err() {
        return skipped(name, "needs rsync (`scripts/setup test` installs it)");
    }
    let shop = Workshop::new();
    plan(&shop);
    let ssh = shop.file("ssh", SSH);
    set_mode(&ssh, 0o755);
    let arguments = ["submit", "plan.toml", "--ssh", "db1,db2,db3", "--into", "s", "--go", "--", "--ssh"];
    let done = shop.pgstrata(&arguments).arg(&ssh).output().unwrap();
    succeeded(&done);
    assert!(said(&done).contains("Removed db2") && said(&done).contains("3 of 3  complete"), "{}", said(&done));
    let folder = shop.path().join("s");
    assert_eq!(fs::read_dir(folder.join("results")).unwrap().count(), 3);
    let log = fs::read_to_string(folder.join("parallel.log")).unwrap();
    let tasks = tasks(&log);
    assert_eq!(tasks.len(), 3, "{log}");
    for (i, (host, begun, ended)) in tasks.iter().enumerate() {
        let beside = tasks[i + 1..].iter().find(|(other, b, e)| other == host && b < ended && begun < e);
        assert!(beside.is_none(), "two shares at once on {host}:\n{log}");
    }
}

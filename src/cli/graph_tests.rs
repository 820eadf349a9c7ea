//! A plan with stacks of all shapes: parsed, drawn, built, measured and torn down, by the layers that this machine has
//! and stand-ins for the rest.

use super::catalogue;
use crate::host::command::Command;
use crate::host::signals::Interrupt;
use crate::host::{Host, users};
use crate::plan::{self, Plan, drawing};
use crate::record::built::StackFacts;
use crate::record::case::TrialKey;
use crate::record::claim::Claim;
use crate::record::stack::{BaseName, Role};
use crate::record::trial::Outcome;
use crate::run::opening;
use crate::run::session::{RunContext, RunPlaces};
use crate::store::folder::RunFolder;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const GRAPHS: &str = include_str!("../../tests/plans/graphs.toml");

fn graphs(text: &str) -> Plan {
    plan::parse(text, "graphs.toml", &catalogue()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_shape_of_stack_is_read_and_drawn() {
    let plan = graphs(GRAPHS);
    let mut shown = String::new();
    for case in plan.cases.iter().filter(|case| case.workload.name == "tpcb") {
        shown.push_str(&format!("=== {}\n{}\n\n", case.id, drawing::drawing(&case.stack).join("\n")));
    }
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("graphs", shown);
    });
}

#[test]
fn parameters_of_a_zfs_stack_go_to_its_pool() {
    let small = graphs(include_str!("../../tests/plans/zfs.toml"));
    assert_eq!(small.cases.iter().filter(|case| case.stack.name == "datasets").count(), 2, "sync is an axis");
    let pool = small.cases.iter().find_map(|case| case.stack.node("zpool")).unwrap();
    assert_eq!(pool.options.table("module").text("zfs_arc_max"), Some("256MiB"));
    let without = "[stack.s]\ndevice = { loop = \"64MiB\" }\nfilesystem = \"ext4\"\nmodule = { x = 1 }\n";
    let text = format!("name = \"p\"\nblocks = 1\n{without}[workload.w]\nsync = {{}}\n");
    let error = plan::parse(&text, "p", &catalogue()).unwrap_err().to_string();
    assert!(error.contains("no layer of stack `s` has parameters of a kernel module"), "{error}");
}

#[test]
fn a_workload_without_a_server_runs_where_the_wal_lies() {
    let plan = graphs(GRAPHS);
    let synced: Vec<_> = plan.cases.iter().filter(|case| case.workload.kind == "sync").collect();
    assert!(synced.iter().all(|case| case.stack.wal.is_none() && case.stack.tablespaces.is_empty()));
    let of = |stack: &str| &synced.iter().find(|case| case.stack.name == stack).unwrap().stack;
    let nodes = |stack: &str| of(stack).nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>();
    assert_eq!((nodes("split"), of("split").only.as_deref()), (vec!["fast", "wal"], Some("pg_wal")));
    assert_eq!(nodes("wal-elsewhere"), ["plain-loop", "plain-ext4"]);
    assert_eq!((nodes("plain"), of("plain").only.as_deref()), (vec!["loop", "ext4"], None));
    let pools = synced.iter().filter(|case| case.stack.name == "pool").count();
    assert_eq!(pools, 1, "recordsize of the data is no axis of the WAL");
}

#[test]
fn devices_of_one_count_vary_together_and_named_ones_independently() {
    let sizes = |devices: &str| -> Vec<Vec<String>> {
        let stack = format!("[stack.s]\ndevices = {devices}\nfilesystem = {{ btrfs = {{}} }}\n");
        let plan = graphs(&format!("name = \"p\"\nblocks = 1\n{stack}[workload.w]\nsync = {{}}\n"));
        let loops = |node: &crate::record::stack::NodeSpec| Some(node.options.get("loop")?.plain());
        plan.cases.iter().map(|case| case.stack.nodes.iter().filter_map(loops).collect()).collect()
    };
    let alike = sizes("{ loop = [\"256MiB\", \"512MiB\"], count = 3 }");
    assert_eq!(alike, [["256MiB"; 3], ["512MiB"; 3]]);
    let both = sizes("{ a = { loop = [\"256MiB\", \"512MiB\"] }, b = { loop = [\"256MiB\", \"512MiB\"] } }");
    assert_eq!(both.len(), 4);
}

/// The plan, with stand-ins for the volumes that this machine lacks.
fn with_stand_ins(host: &Host, text: &str) -> String {
    let lacking = ["md", "lvm", "luks", "delay"].into_iter().filter(|name| {
        !crate::provision::layer(name).unwrap().unmet(host, &crate::record::options::Options::default()).is_empty()
    });
    lacking.fold(text.to_owned(), |text, name| {
        let named = if name == "delay" { "" } else { &format!(" name = \"{name}\",") };
        text.replace(&format!("{{ {name} = {{"), &format!("{{ {name}-stand-in = {{{named}"))
    })
}

/// The devices below a base, each with its depth and role.
fn below(stack: &StackFacts, base: Option<&BaseName>) -> BTreeMap<String, (u32, Role)> {
    stack.devices_below(base).into_iter().map(|below| (below.name().0, (below.depth, below.role))).collect()
}

fn stacks_of(folder: &RunFolder) -> BTreeMap<String, StackFacts> {
    let mut stacks = BTreeMap::new();
    for key in &folder.record().order {
        let trial = folder.trial(key).unwrap().unwrap();
        if trial.case.workload.name == "placed" {
            continue;
        }
        assert_eq!(trial.outcome, Outcome::Measured, "{}", key.case);
        stacks.insert(trial.case.stack.name.clone(), trial.stack.unwrap());
    }
    stacks
}

/// One recordsize is enough here, and synced writes cover all that a server would.
const LEFT_OUT: &str = "\n[[exclude]]\n\"test-dataset.recordsize\" = \"32k\"\n[[exclude]]\nworkload = \"sync\"\n";

#[test]
fn stacks_of_one_way_down_are_built_measured_and_removed() {
    let names = ["plain", "external-journal", "xfs-logdev", "btrfs-two", "raid10-lvm", "crypt"];
    let Some(stacks) = built(&names) else { return };
    let journal = &stacks["external-journal"];
    let devices = below(journal, journal.data.as_ref());
    assert_eq!((devices["data"], devices["log"]), ((0, Role::Data), (0, Role::Log)));
    let mount = stacks["xfs-logdev"].mount().unwrap();
    assert!(mount.super_options.iter().any(|option| option.starts_with("logdev=/dev/loop")), "{mount:?}");
    let btrfs = stacks["btrfs-two"].node("btrfs").unwrap();
    assert_eq!((btrfs.details["num_devices"].as_str(), btrfs.details["profile of Data"].as_str()), ("2", "RAID1"));
    let raid = &stacks["raid10-lvm"];
    let devices = below(raid, raid.data.as_ref());
    assert_eq!((devices["lvm"].0, devices["md"].0, devices["d1"].0, devices["d4"].0), (0, 1, 2, 2));
}

#[test]
fn stacks_that_part_are_built_measured_and_removed() {
    let names = ["pool", "split", "two-on-one", "slipped-in", "trio", "wal-elsewhere"];
    let Some(stacks) = built(&names) else { return };
    let pool = &stacks["pool"];
    let devices = below(pool, pool.data.as_ref());
    assert_eq!((devices["slog"].1, devices["l2arc"].1, devices["b"].1), (Role::Log, Role::Cache, Role::Data));
    assert_ne!(pool.data, pool.wal);
    let split = &stacks["split"];
    assert!(
        below(split, split.data.as_ref()).contains_key("slow") && below(split, split.wal.as_ref()).contains_key("fast")
    );
    assert!(below(split, split.tablespaces.get("hot")).contains_key("hot"));
    let trio = &stacks["trio"];
    let (left, right) = (below(trio, trio.data.as_ref()), below(trio, trio.wal.as_ref()));
    assert!(left.contains_key("trio.left") && !left.contains_key("trio.right") && right.contains_key("trio.right"));
    // Loop devices on slices of a device: the way down goes through the device, not through /dev.
    let sliced = &stacks["two-on-one"];
    assert!(below(sliced, sliced.wal.as_ref()).contains_key("loop"));
    assert_eq!(sliced.promise(sliced.wal.as_ref(), Claim::Volatile), None);
    let slipped = &stacks["slipped-in"];
    assert_eq!(below(slipped, slipped.data.as_ref())["slow-log"], (0, Role::Log));
    assert!(below(&stacks["wal-elsewhere"], stacks["wal-elsewhere"].wal.as_ref()).contains_key("plain-loop"));
}

/// Builds, measures and removes the stacks of the plan that have these names; `None` where that cannot be.
fn built(names: &[&str]) -> Option<BTreeMap<String, StackFacts>> {
    let host = Host::this();
    if !users::is_root() || crate::cluster::install::find(&host, "auto").is_err() {
        println!("skipped: building every shape of stack needs root and a PostgreSQL");
        return None;
    }
    let place = tempfile::Builder::new().prefix("pgstrata-graphs-").tempdir().unwrap();
    crate::host::files::set_mode(place.path(), 0o755).unwrap();
    let path = place.path().to_str().unwrap();
    let text = GRAPHS.replace("{ loop = ", &format!("{{ in = \"{path}\", sparse = true, loop = "));
    let text = text.replace("directory = \"/tmp\"", &format!("directory = \"{path}\""));
    let text = with_stand_ins(&host, &text) + LEFT_OUT;
    let places = RunPlaces { results: place.path().join("results"), state: place.path().join("state"), guest: None };
    let mut plan = plan::check(&text, Path::new("/"), &catalogue()).unwrap_or_else(|problems| panic!("{problems:?}"));
    plan.cases.retain(|case| names.contains(&case.stack.name.as_str()));
    plan.order.retain(|key| plan.cases.iter().any(|case| case.id == key.case));
    let context = RunContext {
        host: &host,
        places: &places,
        interrupt: &Interrupt::never(),
        watcher: &|_, _| (),
        judge: &|_| panic!("no verdict was asked for"),
    };
    let ending = opening::start(&context, &plan).unwrap();
    let folder = RunFolder::open(&ending.folder).unwrap();
    let stacks = stacks_of(&folder);
    assert_eq!(stacks.keys().map(String::as_str).collect::<BTreeSet<_>>(), names.iter().copied().collect());
    if names.contains(&"split") {
        one_has_the_tablespace(&folder);
    }
    let left = host.run(&Command::new("losetup").args(["--list", "--noheadings", "-O", "BACK-FILE"])).unwrap().stdout;
    assert!(!left.contains(path), "{left}");
    assert!(!host.read("/proc/self/mountinfo").unwrap().contains(path));
    Some(stacks)
}

/// The tablespace that a workload asks for: the stack without it has the reason, the other one was measured.
fn one_has_the_tablespace(folder: &RunFolder) {
    let key = |stack: &str| TrialKey { case: format!("{stack}.placed"), trial: 1 };
    let Outcome::NotRun { reason, .. } = folder.trial(&key("wal-elsewhere")).unwrap().unwrap().outcome else {
        panic!()
    };
    assert!(reason.contains("the tablespace hot in the stack wal-elsewhere"), "{reason}");
    let placed = folder.trial(&key("split")).unwrap().unwrap();
    assert_eq!(placed.outcome, Outcome::Measured);
    let log = std::fs::read_to_string(folder.trial_path(&key("split")).join("raw/server.log")).unwrap();
    assert!(!log.contains("ERROR"), "{log}");
}

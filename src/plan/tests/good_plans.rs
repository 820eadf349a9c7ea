//! Meaning of valid plans.

use super::{MANUAL, catalogue, small};
use crate::plan::{Plan, check, parse};
use crate::record::options::{OptionProblem, OptionValue};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn plan(text: &str) -> Plan {
    parse(text, "plan.toml", &catalogue()).unwrap_or_else(|error| panic!("{error}"))
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.cases.iter().map(|case| case.id.as_str()).collect()
}

#[test]
fn the_plan_in_the_manual_yields_the_cases_it_names() {
    let plan = plan(MANUAL);
    insta::assert_snapshot!(ids(&plan).join("\n"), @r"
    ext4.tpcb.clients-1.wal_sync_method-fdatasync
    ext4.tpcb.clients-1.wal_sync_method-open_datasync
    ext4.tpcb.clients-4.wal_sync_method-fdatasync
    ext4.tpcb.clients-4.wal_sync_method-open_datasync
    ext4.tpcb.clients-16.wal_sync_method-fdatasync
    ext4.tpcb.clients-16.wal_sync_method-open_datasync
    ext4.sync
    xfs-disk.tpcb.clients-1.wal_sync_method-fdatasync
    xfs-disk.tpcb.clients-1.wal_sync_method-open_datasync
    xfs-disk.tpcb.clients-4.wal_sync_method-fdatasync
    xfs-disk.tpcb.clients-4.wal_sync_method-open_datasync
    xfs-disk.tpcb.clients-16.wal_sync_method-fdatasync
    xfs-disk.tpcb.clients-16.wal_sync_method-open_datasync
    xfs-disk.sync
    tmp.tpcb.clients-1.wal_sync_method-fdatasync
    tmp.tpcb.clients-4.wal_sync_method-fdatasync
    tmp.tpcb.clients-16.wal_sync_method-fdatasync
    tmp.sync
    here.tpcb.clients-1.wal_sync_method-fdatasync
    here.tpcb.clients-1.wal_sync_method-open_datasync
    here.tpcb.clients-4.wal_sync_method-fdatasync
    here.tpcb.clients-4.wal_sync_method-open_datasync
    here.tpcb.clients-16.wal_sync_method-fdatasync
    here.tpcb.clients-16.wal_sync_method-open_datasync
    here.sync
    ");
    assert_eq!(plan.order.len(), plan.cases.len() * 3);
    assert_eq!(plan.baseline, BTreeMap::from([("stack".into(), "ext4".into())]));
    assert_eq!((plan.seed, plan.blocks, plan.sha256.len()), (42, 3, 64));
}

#[test]
fn a_case_is_complete_and_axes_hold_only_what_varies() {
    let plan = plan(MANUAL);
    let case = plan.cases.iter().find(|case| case.id == "xfs-disk.tpcb.clients-4.wal_sync_method-fdatasync").unwrap();
    let nodes: Vec<&str> = case.stack.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(nodes, ["disk", "xfs", "ext4-loop", "ext4-ext4"]);
    assert_eq!(case.stack.nodes[0].options.text("serial"), Some("S5GX"));
    assert_eq!(case.stack.wal_stack.as_deref(), Some("ext4"));
    assert_eq!((case.stack.data.0.as_str(), case.stack.wal.as_ref().unwrap().0.as_str()), ("xfs", "ext4-ext4"));
    let postgres = case.postgres.as_ref().unwrap();
    assert_eq!(postgres.bin, "auto");
    assert_eq!(postgres.settings["fsync"], "on");
    assert_eq!(postgres.settings["wal_sync_method"], "fdatasync");
    assert_eq!(case.workload.options.text("scale"), Some("50% of RAM"));
    assert_eq!(case.workload.options.integer("clients"), Some(4));
    let axes: Vec<String> = case.axes.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
    assert_eq!(axes, ["clients=4", "stack=xfs-disk", "wal_sync_method=fdatasync", "workload=tpcb"]);
}

#[test]
fn a_workload_without_server_does_not_cross_with_the_server() {
    let plan = plan(MANUAL);
    let sync: Vec<_> = plan.cases.iter().filter(|case| case.workload.kind == "sync").collect();
    assert_eq!(sync.len(), 4);
    assert!(sync.iter().all(|case| case.postgres.is_none() && case.stack.wal.is_none() && case.stack.nodes.len() <= 2));
}

#[test]
fn the_three_spellings_of_a_layer_mean_the_same() {
    let layer = |filesystem: &str| {
        let text = small("").replace("\"tmpfs\"", filesystem);
        plan(&text).cases[0].stack.nodes.clone()
    };
    assert_eq!(
        layer(r#"{ tmpfs = "4GiB", mount = ["huge=always"] }"#),
        layer(r#"{ tmpfs = { size = "4GiB", mount = ["huge=always"] } }"#)
    );
    assert_eq!(layer(r#""tmpfs""#), layer("{ tmpfs = {} }"));
    assert_eq!(layer(r#"{ directory = "/srv/pg" }"#), {
        let text = small("").replace("filesystem = \"tmpfs\"", "directory = \"/srv/pg\"");
        plan(&text).cases[0].stack.nodes.clone()
    });
    let headers = "name = \"p\"\n[stack.t.filesystem.tmpfs]\nsize = \"4GiB\"\n[workload.w.sync]\n";
    assert_eq!(plan(headers).cases[0].stack.nodes, layer(r#"{ tmpfs = "4GiB" }"#));
}

#[test]
fn volumes_stand_between_device_and_filesystem() {
    let text = "name = \"p\"\n[stack.m]\ndevice = { loop = \"1GiB\" }\nvolume = [{ mirror = 2 }]\nfilesystem = \"xfs\"\nreuse = true\n[workload]\ns = \"sync\"\n";
    let plan = plan(text);
    let stack = &plan.cases[0].stack;
    assert_eq!(stack.nodes.iter().map(|node| node.layer.as_str()).collect::<Vec<_>>(), ["loop", "mirror", "xfs"]);
    assert_eq!(stack.nodes[1].options.get("width"), Some(&OptionValue::Integer(2)));
    assert!(stack.reuse);
    assert_eq!((plan.seed, plan.blocks), (1, 5));
    assert!(plan.baseline.is_empty());
}

#[test]
fn aging_has_its_own_axes_with_or_without_a_server() {
    let text = "name = \"p\"\n[stack.b]\nfilesystem = \"tmpfs\"\n\
                age = { rewrite = [0, 3], fill = 70, filesystem = [\"aged\", \"fresh\"] }\n\
                [workload]\nw = \"pgbench\"\ns = \"sync\"\n";
    let plan = plan(text);
    assert_eq!(
        ids(&plan),
        [
            "b.w.age-rewrite-0.age-filesystem-aged",
            "b.w.age-rewrite-0.age-filesystem-fresh",
            "b.w.age-rewrite-3.age-filesystem-aged",
            "b.w.age-rewrite-3.age-filesystem-fresh",
            "b.s.age-filesystem-aged",
            "b.s.age-filesystem-fresh",
        ]
    );
    let age = &plan.cases[2].age;
    assert_eq!(
        (age.integer("rewrite"), age.integer("fill"), age.text("filesystem")),
        (Some(3), Some(70), Some("aged"))
    );
    assert_eq!(plan.cases[4].age.integer("rewrite"), None);
    assert_eq!(plan.cases[2].axes["age.rewrite"], "3");
}

#[test]
fn blocks_are_a_number_or_adaptive() {
    let of = |blocks: &str| {
        let plan = plan(&format!("blocks = {blocks}\n{}", small("")));
        (plan.at_least, plan.blocks, plan.order.len() / plan.cases.len())
    };
    assert_eq!(of("4"), (None, 4, 4));
    assert_eq!(of("{ at_least = 4, at_most = 9 }"), (Some(4), 9, 9));
    assert_eq!(of("{ at_most = 9 }"), (Some(3), 9, 9));
}

#[test]
fn several_servers_are_an_axis_named_by_what_differs() {
    let bins = "[postgres]\nbin = [\"/usr/lib/postgresql/15/bin\", \"/usr/lib/postgresql/18/bin/\"]\n";
    let plan = plan(&small(bins));
    assert_eq!(
        ids(&plan),
        [
            "t.w.clients-1.postgres-15",
            "t.w.clients-1.postgres-18",
            "t.w.clients-2.postgres-15",
            "t.w.clients-2.postgres-18"
        ]
    );
    assert_eq!(plan.cases[1].axes["postgres"], "/usr/lib/postgresql/18/bin");
    assert_eq!(plan.cases[1].postgres.as_ref().unwrap().bin, "/usr/lib/postgresql/18/bin");
}

#[test]
fn settings_take_numbers_flags_texts_and_dotted_names() {
    let settings = "[postgres.settings]\nmax_connections = 50\nfsync = false\nbgwriter_lru_multiplier = 2.5\nauto_explain.log_analyze = true\nsynchronous_standby_names = \"\"\n";
    let plan = plan(&small(settings));
    let settings = &plan.cases[0].postgres.as_ref().unwrap().settings;
    let shown: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        shown,
        [
            "auto_explain.log_analyze=on",
            "bgwriter_lru_multiplier=2.5",
            "fsync=off",
            "max_connections=50",
            "synchronous_standby_names="
        ]
    );
}

#[test]
fn any_axis_can_be_baseline_however_its_value_is_written() {
    let text = |baseline: &str| {
        small("[postgres]\nsettings = { fsync = [true, false], wal_buffers = [4, 8] }")
            .replace("name = \"p\"", &format!("name = \"p\"\nbaseline = {baseline}"))
    };
    let baseline = |written: &str| plan(&text(written)).baseline;
    assert_eq!(baseline("{ fsync = false }"), BTreeMap::from([("fsync".into(), "off".into())]));
    assert_eq!(baseline("{ fsync = \"on\", clients = 2 }").len(), 2);
    assert_eq!(baseline("\"t\""), BTreeMap::from([("stack".into(), "t".into())]));
}

#[test]
fn exclusion_removes_exactly_the_cases_that_match() {
    let settings = "[postgres]\nsettings = { fsync = [true, false], wal_buffers = [4, 8, 16] }\n";
    let whole = plan(&small(settings));
    let with = |exclude: &str| {
        let plan = plan(&small(&format!("{settings}{exclude}")));
        plan.cases.iter().map(|case| case.id.clone()).collect::<BTreeSet<String>>()
    };
    let expected = |keep: &dyn Fn(&BTreeMap<String, String>) -> bool| {
        whole.cases.iter().filter(|case| keep(&case.axes)).map(|case| case.id.clone()).collect::<BTreeSet<String>>()
    };
    assert_eq!(whole.cases.len(), 12);
    let one = with("[[exclude]]\nfsync = false\nwal_buffers = [4, 8]\n");
    assert_eq!(one, expected(&|axes| !(axes["fsync"] == "off" && axes["wal_buffers"] != "16")));
    let two = with("[[exclude]]\nfsync = \"off\"\n[[exclude]]\nclients = 2\nwal_buffers = 4\n");
    assert_eq!(
        two,
        expected(&|axes| axes["fsync"] != "off" && !(axes["clients"] == "2" && axes["wal_buffers"] == "4"))
    );
}

#[test]
fn excluding_does_not_need_an_axis_that_varies() {
    let text = small("[[exclude]]\nworkload = \"w\"\nmode = \"simple\"\n")
        .replace("[workload.w]", "[workload.v]\npgbench = { mode = \"prepared\" }\n[workload.w]")
        .replace("clients = [1, 2]", "mode = \"simple\"");
    assert_eq!(ids(&plan(&text)), ["t.v"]);
}

#[test]
fn two_stacks_that_are_alike_are_an_a_a_comparison() {
    let text = small("[stack.again]\nfilesystem = \"tmpfs\"");
    assert_eq!(plan(&text).cases.len(), 4);
}

#[test]
fn the_order_depends_on_the_seed_and_nothing_else() {
    let seeded = |seed: u32| plan(&MANUAL.replace("seed = 42", &format!("seed = {seed}"))).order;
    assert_eq!(seeded(7), seeded(7));
    assert_ne!(seeded(7), seeded(8));
}

#[test]
fn windows_line_endings_and_a_byte_order_mark_are_accepted() {
    let text = format!("\u{feff}{}", MANUAL.replace('\n', "\r\n"));
    assert!(check(&text, Path::new("/"), &catalogue()).is_ok());
}

#[test]
fn relative_paths_resolve_against_the_folder_of_the_plan() {
    let mut catalogue = catalogue();
    let pgbench = catalogue.workloads.iter_mut().find(|entry| entry.name == "pgbench").unwrap();
    pgbench.resolve = Box::new(|options, folder| {
        let script = options.text("script").map(|name| folder.join(name).display().to_string());
        options.0.extend(script.map(|path| ("script".to_owned(), OptionValue::Text(path))));
    });
    pgbench.check = Box::new(|options| match options.text("script") {
        Some(path) if !path.starts_with("/plans/") => Err(OptionProblem::at("script", format!("{path} is relative"))),
        _ => Ok(()),
    });
    let text = small("[[exclude]]\nscript = \"b.sql\"\n").replace(
        "[workload.w]",
        "[workload.b]\npgbench = { script = \"b.sql\" }\n[workload.a]\npgbench = { script = \"a.sql\" }\n[workload.w]",
    );
    let plan = check(&text, Path::new("/plans"), &catalogue).unwrap();
    let scripts: Vec<_> = plan.cases.iter().map(|case| case.workload.options.text("script")).collect();
    assert_eq!(scripts, [Some("/plans/a.sql"), None, None]);
}

#[test]
fn layer_and_initdb_options_are_axes_compared_by_name() {
    let text = r#"name = "p"
baseline = { stack = "x", xfs.mount = "noatime", "data.loop" = "1GiB" }
[stack.x]
devices = { data = { loop = ["1GiB", "2GiB"] } }
filesystem = { xfs = { mount = [["noatime"], ["noatime", "discard"]] } }
[stack.t]
filesystem = "tmpfs"
[postgres]
initdb = { wal-segsize = [16, 64], data-checksums = true }
[workload.w.pgbench]
duration = ["10s", "20s"]
[[exclude]]
data.loop = "2GiB"
xfs.mount = "noatime,discard"
[[exclude]]
duration = "20s"
initdb.wal-segsize = 64
"#;
    let plan = plan(text);
    let x: Vec<&str> = plan.cases.iter().map(|case| case.id.as_str()).filter(|id| id.starts_with("x.")).collect();
    assert_eq!(x.len(), 3 * 3, "3 of 4 stacks, 3 of 4 pairs of segment size and duration: {x:?}");
    assert_eq!(plan.cases.len(), 9 + 3);
    let case = plan.cases.iter().find(|case| case.axes.get("initdb.wal-segsize").is_some_and(|size| size == "64"));
    let initdb = &case.unwrap().postgres.as_ref().unwrap().initdb;
    assert_eq!(initdb, &["--wal-segsize=64", "--data-checksums"]);
    let mounts: std::collections::BTreeSet<Vec<String>> =
        plan.cases.iter().filter_map(|case| Some(case.stack.node("xfs")?.options.texts("mount"))).collect();
    assert_eq!(mounts.len(), 2);
    assert_eq!(plan.baseline["xfs.mount"], "noatime");
}

#[test]
fn guests_are_an_axis_and_group_cases_within_blocks() {
    let text = small("").replacen(
        '\n',
        "\nblocks = 4\nguest = [\"bookworm\", \"trixie\"]\nbaseline = { guest = \"trixie\" }\n",
        1,
    );
    let plan = plan(&text);
    assert_eq!(
        ids(&plan),
        [
            "t.w.clients-1.guest-bookworm",
            "t.w.clients-2.guest-bookworm",
            "t.w.clients-1.guest-trixie",
            "t.w.clients-2.guest-trixie"
        ]
    );
    let guest = |id: &str| plan.cases.iter().find(|case| case.id == id).unwrap().guest.clone().unwrap();
    assert_eq!(guest("t.w.clients-1.guest-trixie"), "trixie");
    let mut firsts = BTreeSet::new();
    for block in plan.order.chunks(4) {
        let guests: Vec<String> = block.iter().map(|key| guest(&key.case)).collect();
        assert!(guests[0] == guests[1] && guests[2] == guests[3] && guests[0] != guests[2], "{guests:?}");
        firsts.insert(guests[0].clone());
    }
    assert_eq!(firsts.len(), 2, "each guest comes first in some block");
    let part = plan.part_in(Some("trixie"));
    assert_eq!((part.cases.len(), part.order.len()), (2, 8));
    assert!(plan.part_in(None).cases.is_empty());
}

#[test]
fn a_single_guest_is_no_axis_and_changes_no_ids() {
    let (with, without) = (plan(&small("").replacen('\n', "\nguest = \"trixie-backports\"\n", 1)), plan(&small("")));
    assert_eq!((ids(&with), &with.order), (ids(&without), &without.order));
    assert!(with.cases.iter().all(|case| case.guest.as_deref() == Some("trixie-backports")));
    assert!(with.cases.iter().all(|case| !case.axes.contains_key("guest")));
    let mut in_guest = without.clone();
    in_guest.run_in("bookworm");
    assert!(in_guest.cases.iter().all(|case| case.guest.as_deref() == Some("bookworm")));
}

#[test]
fn a_quick_plan_runs_in_the_guest_that_received_it() {
    let mut in_guest = plan(&(small("") + "[quick]\nblocks = 2\n"));
    in_guest.run_in("trixie");
    in_guest.keep_quick_part();
    assert!(in_guest.quick.is_some() && in_guest.cases.iter().all(|case| case.guest.as_deref() == Some("trixie")));
    assert_eq!(in_guest.part_in(Some("trixie")).order, in_guest.order);
}

#[test]
fn a_quick_run_keeps_the_trials_of_a_guest_together() {
    let text = small("").replacen('\n', "\nguest = [\"bookworm\", \"trixie\"]\n", 1) + "[quick]\nblocks = 2\n";
    let mut plan = plan(&text);
    plan.keep_quick_part();
    let guests: Vec<bool> = plan.order.iter().map(|key| key.case.contains("trixie")).collect();
    assert_eq!(
        guests.chunk_by(|one, next| one == next).count().min(4),
        guests.chunk_by(|one, next| one == next).count()
    );
    assert!(guests.chunks(2).all(|pair| pair[0] == pair[1]), "{guests:?}");
}

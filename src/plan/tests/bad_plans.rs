//! Every possible mistake in a plan, with the message shown.
//!
//! The messages are in `snapshots/`, one file for all, so that they can be read as prose.

use super::{MANUAL, catalogue, small};
use crate::error::Kind;
use crate::plan::{Paint, parse, read};

/// The manual's plan with `from`, which must occur, replaced.
fn bent(from: &str, to: &str) -> String {
    assert!(MANUAL.contains(from), "{from}");
    MANUAL.replacen(from, to, 1)
}

fn stack(lines: &str) -> String {
    format!("name = \"p\"\n[stack.s]\n{lines}\n[workload.w]\nsync = {{}}\n")
}

fn whole_file() -> Vec<(&'static str, String)> {
    vec![
        ("an empty file", String::new()),
        ("TOML that cannot be read", "name = \"p\nseed = \n[stack.x\n".to_owned()),
        ("a key twice", bent("seed = 42", "seed = 42\nseed = 43")),
        ("an unknown key of the plan", bent("blocks", "bloks")),
        ("a name with other characters", bent("\"which-filesystem\"", "\"Which filesystem?\"")),
        ("a name that is no text", bent("\"which-filesystem\"", "7")),
        ("no blocks", bent("blocks = 3", "blocks = 0")),
        ("blocks with a fraction", bent("blocks = 3", "blocks = 1.5")),
        ("adaptive blocks without an end", bent("blocks = 3", "blocks = { at_least = 3 }")),
        ("adaptive blocks upside down", bent("blocks = 3", "blocks = { at_least = 8, at_most = 4 }")),
        ("adaptive blocks that begin too early", bent("blocks = 3", "blocks = { at_lest = 2, at_most = 2 }")),
        ("a guest that is no suite", bent("seed = 42", "guest = \"Debian 13\"")),
        ("a guest that is a number", bent("seed = 42", "guest = [\"trixie\", 13]")),
        ("a guest twice", bent("seed = 42", "guest = [\"trixie\", \"trixie\"]")),
        ("no guest at all", bent("seed = 42", "guest = []")),
        (
            "a baseline of a guest and a stack",
            bent("baseline = \"ext4\"", "guest = [\"a\", \"b\"]\nbaseline = { stack = \"ext4\", guest = \"a\" }"),
        ),
        ("a seed below zero", bent("seed = 42", "seed = -1")),
        ("a stack table that is text", "name = \"p\"\nstack = \"ext4\"\n[workload.w]\nsync = {}".to_owned()),
        ("a stack with a bad name", stack("directory = \"/x\"\n[stack.\"My Disk\"]\ndirectory = \"/y\"")),
        ("no workload", "name = \"p\"\n[stack.s]\ndirectory = \"/x\"\n".to_owned()),
        ("terminal sequences in the plan", "name = \"\\u001b[31m\"\n\"\\u001b[2J\" = 1\n".to_owned()),
    ]
}

fn stacks() -> Vec<(&'static str, String)> {
    vec![
        ("an unknown key of a stack", bent("wal = \"ext4\"", "wall = \"ext4\"")),
        ("an unknown filesystem", bent("{ xfs =", "{ xsf =")),
        ("a layer that nobody knows", stack("filesystem = \"reiserfs4000\"")),
        ("a layer in the wrong place", stack("device = { loop = \"1GiB\" }\nfilesystem = \"loop\"")),
        ("a layer in the wrong place, misspelt", stack("device = \"exxt4\"\nfilesystem = \"xfs\"")),
        ("a layer that is a number", stack("filesystem = 4")),
        ("a layer without name", stack("filesystem = {}")),
        ("two layers in one place", stack("device = { loop = \"1GiB\" }\nfilesystem = { ext4 = {}, xfs = {} }")),
        ("an unknown option of a layer", bent("in = \"/var", "inn = \"/var")),
        ("a size without unit", bent("\"6GiB\"", "\"6\"")),
        ("a size as a number", bent("\"6GiB\"", "6")),
        ("a size of an unknown unit", bent("\"6GiB\"", "\"6 gigs\"")),
        ("a size of zero", bent("\"6GiB\"", "\"0GiB\"")),
        ("a path that is relative", bent("\"/var/lib/pgstrata\"", "\"images\"")),
        ("a list written as text", bent("[\"noatime\"]", "\"noatime nodiratime\"")),
        ("a list with a number", bent("[\"noatime\"]", "[\"noatime\", 3]")),
        ("an empty list of options", bent("[\"noatime\"]", "[]")),
        ("an axis in a stack with a value twice", bent("\"6GiB\"", "[\"6GiB\", \"6144MiB\"]")),
        ("a required option missing", stack("device = { loop = {} }\nfilesystem = \"ext4\"")),
        ("the main option twice", stack("filesystem = { tmpfs = \"1GiB\", size = \"2GiB\" }")),
        ("options inside and beside", stack("filesystem = { tmpfs = { size = \"1GiB\" }, mount = [\"x\"] }")),
        ("an option that the layer refuses", bent(", serial = \"S5GX\"", "")),
        ("no filesystem", stack("device = { loop = \"1GiB\" }")),
        ("filesystem and directory", stack("filesystem = \"tmpfs\"\ndirectory = \"/x\"")),
        ("no device", stack("filesystem = \"ext4\"")),
        ("a device under a folder", stack("device = { loop = \"1GiB\" }\nfilesystem = \"tmpfs\"")),
        ("a volume that is a number", stack("device = { loop = \"1GiB\" }\nvolume = 2\nfilesystem = \"xfs\"")),
        ("an empty list of volumes", stack("device = { loop = \"1GiB\" }\nvolume = []\nfilesystem = \"xfs\"")),
        ("too small a number", stack("device = { loop = \"1GiB\" }\nvolume = [{ mirror = 1 }]\nfilesystem = \"xfs\"")),
        ("WAL on an unknown stack", bent("wal = \"ext4\"", "wal = \"ext5\"")),
        ("WAL on the stack itself", bent("wal = \"ext4\"", "wal = \"xfs-disk\"")),
        ("reuse that is text", stack("directory = \"/x\"\nreuse = \"yes\"")),
        ("age that is a number", stack("filesystem = \"tmpfs\"\nage = 3")),
        ("age of an existing folder", stack("directory = \"/x\"\nage = { rewrite = 3 }")),
        ("age of a stack that is kept", stack("filesystem = \"tmpfs\"\nreuse = true\nage = { rewrite = 3 }")),
    ]
}

fn graphs() -> Vec<(&'static str, String)> {
    vec![
        (
            "a device that nothing uses",
            stack("devices = { loop = \"1GiB\", count = 2 }\nfilesystem = \"tmpfs\"\nwal = { xfs = { on = \"d1\" } }"),
        ),
        (
            "a device used twice",
            stack(
                "devices = { a = { loop = \"1GiB\" } }\nfilesystem = { ext4 = { on = \"a\" } }\nwal = { xfs = { on = \"a\" } }",
            ),
        ),
        (
            "too many devices below a filesystem",
            stack("devices = { loop = \"1GiB\", count = 3 }\nfilesystem = \"xfs\""),
        ),
        (
            "a device that is not there",
            stack("devices = { data = { loop = \"1GiB\" } }\nfilesystem = { xfs = { on = \"date\" } }"),
        ),
        (
            "a node that comes later",
            stack("device = { loop = \"1GiB\" }\nvolume = [{ mirror = 2, on = \"xfs\" }]\nfilesystem = \"xfs\""),
        ),
        ("WAL without a device left", stack("device = { loop = \"1GiB\" }\nfilesystem = \"xfs\"\nwal = { xfs = {} }")),
        (
            "a device named as a node of the WAL's stack",
            stack(
                "devices = { t-loop = { loop = \"1GiB\" } }\nfilesystem = \"xfs\"\nwal = \"t\"\n[stack.t]\ndevice = { loop = \"1GiB\" }\nfilesystem = \"xfs\"",
            ),
        ),
        ("WAL on a filesystem by name", bent("wal = \"ext4\"", "wal = \"btrfs\"")),
        (
            "device and devices",
            stack("device = { loop = \"1GiB\" }\ndevices = { loop = \"1GiB\", count = 2 }\nfilesystem = \"xfs\""),
        ),
        ("a count of none", stack("devices = { loop = \"1GiB\", count = 0 }\nfilesystem = \"xfs\"")),
        ("tablespaces without names", stack("directory = \"/x\"\ntablespace = \"hot\"")),
        (
            "a tablespace of PostgreSQL's own",
            stack("devices = { loop = \"1GiB\" }\ndirectory = \"/x\"\ntablespace = { pg_hot = { xfs = {} } }"),
        ),
    ]
}

fn servers_and_workloads() -> Vec<(&'static str, String)> {
    vec![
        ("an unknown key of postgres", bent("settings = {", "setings = {")),
        ("a relative bin", bent("[postgres]", "[postgres]\nbin = \"pg15\"")),
        ("an empty list of servers", bent("[postgres]", "[postgres]\nbin = []")),
        ("the same server twice", bent("[postgres]", "[postgres]\nbin = [\"/opt/pg\", \"/opt/pg/\"]")),
        ("a setting that is a date", bent("fsync = true", "fsync = 2020-01-01")),
        ("a setting with the same value twice", bent("fsync = true", "fsync = [true, \"on\"]")),
        ("an empty list of settings", bent("fsync = true", "fsync = []")),
        ("a setting twice", bent("fsync = true", "fsync = true, FSYNC = false")),
        ("a setting with a bad name", bent("fsync = true", "\"f sync\" = true")),
        ("a setting named like an option", bent("fsync = true", "clients = 3")),
        ("initdb as text", bent("[postgres]", "[postgres]\ninitdb = \"--data-checksums -k\"")),
        ("no arguments of initdb as a value", bent("[postgres]", "[postgres]\ninitdb = [[], [\"-k\"]]")),
        ("an unknown kind of workload", bent("pgbench = {", "pgbnech = {")),
        ("a workload without kind", bent("sync = {}", "")),
        ("two kinds in one workload", bent("sync = {}", "sync = {}\npgbench = {}")),
        ("options beside the kind", bent("sync = {}", "sync = {}\nclients = 4")),
        ("options without kind", bent("sync = {}", "clients = 4")),
        (
            "a kind in place of a name",
            bent("[workload.sync]\nsync = {}", "[workload]\npgbench = { scale = 5, clients = 4 }"),
        ),
        ("a kind that is a number", bent("sync = {}", "sync = 4")),
        ("options of a workload that has none", bent("sync = {}", "sync = { clients = 4 }")),
        ("an unknown option of a workload", bent("clients = [", "client = [")),
        ("a number in quotes", bent("clients = [1, 4, 16]", "clients = \"4\"")),
        ("a span without unit", bent("\"60s\"", "60")),
        ("a word that is not one of these", bent("clients = [1, 4, 16]", "mode = \"prepard\"")),
        ("a share that cannot be read", bent("50% of RAM", "50% of the RAM")),
        ("an axis with a value twice", bent("[1, 4, 16]", "[1, 4, 1]")),
        ("an axis with a value out of range", bent("[1, 4, 16]", "[1, 0, -16]")),
        ("an option of initdb with dashes", bent("[postgres]", "[postgres]\ninitdb = { --wal-segsize = 64 }")),
        ("an option that the workload refuses", bent("duration", "latency_limit = \"5ms\", duration")),
        ("a combination that the workload refuses", bent("duration", "jobs = 4, duration")),
        ("more cases than anybody can wait for", bent("[1, 4, 16]", &format!("{:?}", (1..6000).collect::<Vec<_>>()))),
    ]
}

fn choices_of_cases() -> Vec<(&'static str, String)> {
    let everything = "[[exclude]]\nstack = \"t\"\n";
    let duplicate = "[workload.v]\npgbench = { clients = [2, 4] }";
    vec![
        ("a baseline that is not there", bent("baseline = \"ext4\"", "baseline = \"ext5\"")),
        (
            "a baseline that fits two cases",
            bent("mount = [\"noatime\"]", "mount = [[\"noatime\"], [\"relatime\", \"discard\"]]"),
        ),
        ("a baseline of an unknown axis", bent("baseline = \"ext4\"", "baseline = { wal_sync_metod = \"fdatasync\" }")),
        ("a baseline of an unknown value", bent("\"ext4\"", "{ wal_sync_method = \"fdatasink\" }")),
        ("a baseline of no axis", bent("\"ext4\"", "{ fsync = true }")),
        ("a baseline that no case has", bent("\"ext4\"", "{ workload = \"sync\", clients = 4 }")),
        ("a baseline that is excluded", bent("\"tmp\"\nwal_sync_method = \"open_datasync\"", "\"ext4\"")),
        ("a baseline that is a list", bent("\"ext4\"", "[\"ext4\"]")),
        ("an unknown axis in exclude", bent("\nwal_sync_method = \"open", "\nwal_sync_methd = \"open")),
        ("an unknown value in exclude", bent("stack = \"tmp\"", "stack = \"temp\"")),
        ("bin in exclude", bent("stack = \"tmp\"", "bin = \"auto\"")),
        ("an exclude that matches nothing", bent("stack = \"tmp\"", "workload = \"sync\"")),
        ("an exclude that names nothing", small("[[exclude]]\n")),
        ("an exclude in single brackets", small("[exclude]\nstack = \"t\"\n")),
        ("an exclude with an empty list", small("[[exclude]]\nstack = []\n")),
        ("an exclude with a table", small("[[exclude]]\nstack = { t = 1 }\n")),
        ("everything excluded", small(everything)),
        ("duplicate cases", small(duplicate)),
    ]
}

#[test]
fn every_mistake_is_shown_at_its_place_with_a_remedy() {
    let mut shown = String::new();
    for (title, text) in [whole_file(), stacks(), graphs(), servers_and_workloads(), choices_of_cases()].concat() {
        let error = parse(&text, "plan.toml", &catalogue()).expect_err(title);
        assert_eq!(error.kind(), Kind::User);
        let message = error.to_string();
        assert!(message.starts_with("plan.toml has "), "{title}: {message}");
        assert!(!message.chars().any(|c| c.is_control() && c != '\n'), "{title}: {message:?}");
        shown.push_str(&format!("=== {title}\n{message}\n\n"));
    }
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("bad_plans", shown);
    });
}

#[test]
fn several_mistakes_are_reported_together_in_file_order() {
    let text = MANUAL.replace("blocks = 3", "blocks = 0").replace("6GiB", "6").replace("[1, 4, 16]", "[]");
    let message = parse(&text, "plan.toml", &catalogue()).unwrap_err().to_string();
    assert!(message.starts_with("plan.toml has 3 errors\n\n"), "{message}");
    let places: Vec<Option<usize>> =
        ["plan.toml:3:", "plan.toml:7:", "plan.toml:25:"].iter().map(|place| message.find(place)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{message}");
}

#[test]
fn colour_changes_nothing_but_the_colour() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bent("blocks", "bloks")).unwrap();
    let plain = read(file.path(), &catalogue(), Paint::Plain).unwrap_err().to_string();
    let painted = read(file.path(), &catalogue(), Paint::Coloured).unwrap_err().to_string();
    assert!(painted.contains("\u{1b}[") && !plain.contains('\u{1b}'));
    let mut bare = String::new();
    for (i, part) in painted.split("\u{1b}[").enumerate() {
        bare.push_str(if i == 0 { part } else { part.split_once('m').unwrap().1 });
    }
    assert_eq!(bare, plain);
}

#[test]
fn a_file_that_is_no_plan_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let said = |name: &str, bytes: Option<&[u8]>| {
        let path = folder.path().join(name);
        if let Some(bytes) = bytes {
            std::fs::write(&path, bytes).unwrap();
        }
        let error = read(&path, &catalogue(), Paint::Plain).unwrap_err();
        assert_eq!(error.kind(), Kind::User);
        assert!(error.to_string().contains(name), "{error}");
        error.to_string()
    };
    assert!(said("missing.toml", None).contains("No such file"));
    assert!(said("binary.toml", Some(b"name = 1\n\xff")).contains("line 2 is not UTF-8"));
    assert!(said("huge.toml", Some(&vec![b'#'; (1 << 20) + 1])).contains("1048576 bytes"));
    assert!(read(folder.path(), &catalogue(), Paint::Plain).unwrap_err().to_string().contains("directory"));
}

#[test]
fn a_plan_that_expands_to_too_many_cases_is_refused() {
    let refusal = |text: &str| parse(text, "p", &catalogue()).unwrap_err().to_string();
    let numbers = |n: usize| (4..4 + n).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let device = format!(
        "filesystem = \"ext4\"\ndevice = {{ loop = \"1GiB\", direct_io = [true, false], queue = {{ nr_requests = [{}] }} }}\n",
        numbers(500)
    );
    let stacks: String = (0..110).map(|n| format!("[stack.s{n}]\n{device}")).collect();
    let message = refusal(&format!("name = \"p\"\n{stacks}[workload.w]\nsync = {{}}\n"));
    assert!(message.contains("more than 100000 combinations of options"), "{message}");
    let stack = "name = \"p\"\n[stack.s]\ndirectory = \"/x\"\n[workload.w]\nsync = {}\n";
    let message = refusal(&format!("{stack}{}", "[[exclude]]\nstack = \"s\"\n".repeat(1001)));
    assert!(message.contains("1001 tables `exclude`, the limit is 1000"), "{message}");
}

//! Inside a room: no circle of files, and floors where the room has them. An arrow is a path that code outside tests names; a
//! re-export leads to the file that defines the item; a `mod.rs` and its own children are not counted.

use super::paths::{module_of, named, reexported};
use super::source::{Source, all, root};
use std::collections::{BTreeMap, BTreeSet};

/// The room whose files still use each other in circles.
const OPEN: &str = "host";

/// Rooms with floors, the lowest first; parts of one floor do not use each other. The same table stands in `ARCHITECTURE.md`.
const FLOORS: &[(&str, &[&[&str]])] = &[
    (
        "analyse",
        &[
            &["findings", "imported"],
            &["trial", "probe"],
            &["case"],
            &["run"],
            &["words"],
            &["analysis"],
            &["load"],
            &["look", "merge", "compare"],
            &["turn_table"],
            &["fleet", "limits", "shelf", "trial_table"],
        ],
    ),
    (
        "plan",
        &[
            &["limits", "ids", "order", "forecast", "drawing", "shipped"],
            &["problem"],
            &["tree"],
            &["names", "values", "blocks", "power_cut_check"],
            &["options", "joined"],
            &["guest", "build", "workloads"],
            &["postgres"],
            &["machine"],
            &["stacks"],
            &["matrix", "schema", "example", "pointed"],
            &["select"],
            &["quick"],
        ],
    ),
    (
        "run",
        &[
            &[
                "by_hand",
                "case",
                "died",
                "drives",
                "events",
                "fail_fast",
                "guests",
                "io_uring",
                "looks",
                "share",
                "undo",
            ],
            &[
                "age_cost",
                "check",
                "disturbance",
                "doctor",
                "rehearsal",
                "repeats",
                "session",
                "together",
                "warnings",
                "window",
            ],
            &["clean", "measure", "template", "verdicts"],
            &["forecast", "turns"],
            &["trial"],
            &["trial_loop"],
            &["opening"],
        ],
    ),
    (
        "provision",
        &[
            &["by_hand", "disk_probe", "ledger", "sysfs", "mount_table", "needs", "options_kept", "size"],
            &["folder", "identity", "kernel_module"],
            &["guard", "knobs", "mapper", "directory"],
            &["precondition", "zfs_tools", "delay", "guest_disk", "null_blk", "scsi_debug", "zram"],
            &["mount", "disk", "linear", "zfs_places"],
            &["devices", "image_file", "memory", "mount_options", "recorded"],
            &["facts", "images", "loop_image", "undo"],
            &["stack"],
            &["drives", "machine_crash", "remount", "same_bytes", "snapshots"],
            &["filesystem"],
            &[
                "bcache", "bcachefs", "btrfs", "ext", "f2fs", "jfs", "luks", "lvm", "md", "nilfs2", "reiserfs", "xfs",
                "zfs", "zpool",
            ],
            &["zvol"],
        ],
    ),
    (
        "report",
        &[
            &["text"],
            &["layout", "words"],
            &["table", "template"],
            &["labelled"],
            &[
                "ageing",
                "backend_time",
                "capacity",
                "cases",
                "counters",
                "device_work",
                "devices",
                "differences",
                "disk",
                "drives",
                "effects",
                "environment",
                "full",
                "latencies",
                "merged",
                "power_cuts",
                "profiled",
                "rankings",
                "snapshots",
                "stages",
                "trials",
                "windows",
            ],
            &["embed", "section_titles", "sheet"],
            &["csv", "json", "markdown", "openmetrics", "page", "terminal"],
            &["compare", "cut", "fleet", "limits", "probe", "serve", "shelf"],
        ],
    ),
];

type Module = Vec<String>;

/// Files by module, with what each re-exports.
struct Files {
    reexports: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Files {
    fn of<'s>(sources: impl Iterator<Item = &'s Source>) -> Files {
        let of_file = |source: &Source| {
            let names = reexported(source).into_iter().filter_map(|path| Some((path.last()?.clone(), path)));
            (module_of(&source.path), names.collect())
        };
        Files { reexports: sources.map(of_file).collect() }
    }

    /// The module of the file that a path leads to.
    fn target(&self, path: &[String]) -> Option<Module> {
        let length = (1..=path.len()).rev().find(|length| self.reexports.contains_key(&path[..*length]))?;
        let (module, rest) = path.split_at(length);
        match rest.first().and_then(|name| self.reexports[module].get(name)) {
            Some(further) if further != path => self.target(&[further, &rest[1..]].concat()),
            _ => Some(module.to_vec()),
        }
    }

    /// Arrows between files of one room.
    fn arrows(&self, source: &Source) -> BTreeSet<Module> {
        let from = module_of(&source.path);
        let is_parent = |above: &Module, below: &Module| below.len() == above.len() + 1 && below.starts_with(above);
        let counts =
            |to: &Module| *to != from && to.first() == from.first() && !is_parent(to, &from) && !is_parent(&from, to);
        let paths = named(source).into_iter().filter(|named| !named.in_test);
        paths.filter_map(|named| self.target(&named.path)).filter(counts).collect()
    }
}

fn arrows(sources: &[&Source]) -> BTreeMap<Module, BTreeSet<Module>> {
    let files = Files::of(sources.iter().copied());
    sources.iter().map(|source| (module_of(&source.path), files.arrows(source))).collect()
}

/// The files from which arrows lead back to them.
fn in_circles(arrows: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<String> {
    let returns = |start: &&Module| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![*start]);
        while let Some(module) = next.pop() {
            for to in arrows.get(module).into_iter().flatten() {
                if to == *start {
                    return true;
                }
                if seen.insert(to) {
                    next.push(to);
                }
            }
        }
        false
    };
    arrows.keys().filter(returns).map(|module| module.join("::")).collect()
}

fn code() -> Vec<&'static Source> {
    all().iter().filter(|source| source.path.starts_with("src") && !source.code().is_empty()).collect()
}

#[test]
fn no_file_leads_back_to_itself_inside_its_room() {
    let circles = in_circles(&arrows(&code()));
    let wrong: Vec<&String> = circles.iter().filter(|module| !module.starts_with(OPEN)).collect();
    assert!(wrong.is_empty(), "a type or function stands on the wrong floor; move it to a file of its own: {wrong:#?}");
}

#[test]
fn no_floor_uses_a_higher_one() {
    let arrows = arrows(&code());
    for (room, floors) in FLOORS {
        let floor = |module: &Module| {
            (module.first()? == room).then_some(())?;
            let part = module.get(1)?;
            Some((part.clone(), floors.iter().position(|parts| parts.contains(&part.as_str())).unwrap_or(usize::MAX)))
        };
        for (from, tos) in &arrows {
            let Some((part, height)) = floor(from) else { continue };
            assert!(height != usize::MAX, "{} stands on no floor: add it to FLOORS", from.join("::"));
            for (of, below) in tos.iter().filter_map(floor).filter(|(of, _)| *of != part) {
                assert!(below < height, "{} may not use {room}::{of}, which is not below it", from.join("::"));
            }
        }
    }
}

#[test]
fn architecture_md_shows_the_floors_that_are_checked() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for (room, floors) in FLOORS {
        let shown: Vec<String> = floors.iter().map(|parts| parts.join(", ")).collect();
        let row = format!("| `{room}` | `{}` |", shown.join("` < `"));
        assert!(text.contains(&row), "ARCHITECTURE.md lacks: {row}");
    }
}

#[test]
fn an_import_cycle_is_found_through_a_re_export() {
    let sources = [
        Source::of("src/plan/mod.rs", "pub use b::B; use a::A;"),
        Source::of("src/plan/a.rs", "use super::B;"),
        Source::of("src/plan/b.rs", "use crate::plan::c::{C, D};"),
        Source::of("src/plan/c.rs", "fn f() -> super::a::A { }"),
        Source::of("src/plan/d.rs", "use super::a::A; #[cfg(test)] mod tests { use crate::plan::e::E; }"),
        Source::of("src/plan/e.rs", "use super::d::D; use super::plan;"),
    ];
    let found = in_circles(&arrows(&sources.iter().collect::<Vec<_>>()));
    assert_eq!(found, ["plan::a", "plan::b", "plan::c"]);
}

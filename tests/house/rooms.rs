//! Who may use whom. The same table, with what each room owns, stands in `ARCHITECTURE.md`; a test compares the two.

use super::paths::{Named, module_of, named};
use super::source::{Source, all, root};
use std::collections::BTreeSet;

/// One room of `src/` and what it may use beside itself.
struct Room {
    name: &'static str,
    /// Rooms, or single modules of rooms (`host::files`). `*` is everything.
    uses: &'static [&'static str],
    /// What its unit tests may use on top.
    tests_use: &'static [&'static str],
}

const fn room(name: &'static str, uses: &'static [&'static str]) -> Room {
    Room { name, uses, tests_use: &[] }
}

impl Room {
    const fn tests_use(self, tests_use: &'static [&'static str]) -> Room {
        Room { tests_use, ..self }
    }
}

/// In the order of the data.
const ROOMS: &[Room] = &[
    room("main", &["cli"]),
    room("cli", &["*"]),
    room("error", &[]),
    room("units", &[]),
    room("host", &["units", "error", "parse", "record::facts"]),
    // A line of the server's log is read into what the record keeps of it.
    room("parse", &["units", "error", "record::age", "record::stack", "record::window"]),
    room("record", &["units", "error"]),
    room("plan", &["units", "error", "record", "host::files"]),
    room("provision", &["units", "error", "host", "parse", "record"]),
    room("cluster", &["units", "error", "host", "parse", "record"]),
    room("probe", &["units", "error", "host", "parse", "record", "stats", "provision::devices", "provision::mount"]),
    room("ageing", &["units", "error", "host", "parse", "record", "cluster"]),
    room("workload", &["units", "error", "host", "parse", "record", "cluster", "probe", "profile", "stats"]),
    room("telemetry", &["units", "error", "host", "parse", "record", "cluster::client"]).tests_use(&["cluster"]),
    room(
        "run",
        &[
            "units",
            "error",
            "host",
            "parse",
            "record",
            "plan",
            "provision",
            "cluster",
            "ageing",
            "workload",
            "telemetry",
            "store",
            "stats",
            "analyse::look",
        ],
    ),
    room("recorder", &["units", "error", "host"]),
    room(
        "cut",
        &[
            "units",
            "error",
            "host",
            "record",
            "plan",
            "provision",
            "cluster",
            "workload",
            "recorder",
            "run::undo",
            "run::session",
            "run::case",
            "run::forecast",
        ],
    )
    .tests_use(&["run::clean"]),
    room("guest", &["units", "error", "host", "parse", "record"]),
    room(
        "builds",
        &["units", "error", "host", "parse", "record", "guest::cache", "guest::mirror", "guest::steps", "guest::suite"],
    ),
    room("profile", &["units", "error", "host", "record", "cluster::install"]),
    room("foreign", &["units", "error", "parse", "record"]),
    room("store", &["units", "error", "record", "host::files"]),
    room("stats", &[]),
    room("analyse", &["units", "error", "record", "store", "stats", "host::threads"]),
    room("report", &["units", "error", "analyse"]).tests_use(&["record"]),
    room("submit", &["error", "host", "parse", "record"]),
    room("serve", &["error", "host::connections", "host::threads", "host::time"]),
];

fn find(name: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.name == name)
}

/// Why a room may not name a path; `None` where it may.
fn objection(room: &Room, named: &Named) -> Option<String> {
    let target = named.path.first()?;
    if target == room.name {
        return None;
    }
    if find(target).is_none() {
        return Some(format!("`{target}` is no room"));
    }
    let covers = |allowed: &&str| *allowed == "*" || allowed.split("::").zip(&named.path).all(|(a, b)| a == b);
    let covers = |allowed: &&str| covers(allowed) && allowed.split("::").count() <= named.path.len();
    let on_top = room.tests_use.iter().filter(|_| named.in_test);
    if room.uses.iter().chain(on_top).any(covers) {
        return None;
    }
    Some(format!("`{}` may not use `{}`, only {}", room.name, named.path.join("::"), room.uses.join(", ")))
}

fn objections(source: &Source) -> Vec<String> {
    let Some(room) = module_of(&source.path).into_iter().next() else { return Vec::new() };
    let Some(room) = find(&room) else { return vec![format!("{}: `{room}` is no room", source.at(1))] };
    let said = named(source).into_iter().filter_map(|named| Some((named.line, objection(room, &named)?)));
    said.map(|(line, why)| format!("{}: {why}", source.at(line))).collect()
}

#[test]
fn no_room_uses_what_its_row_does_not_allow() {
    let wrong: Vec<String> =
        all().iter().filter(|source| source.path.starts_with("src")).flat_map(objections).collect();
    assert!(wrong.is_empty(), "change the code, or the rule in ARCHITECTURE.md and here:\n{}", wrong.join("\n"));
}

#[test]
fn every_room_exists() {
    for room in ROOMS {
        let (file, folder) = (format!("src/{}.rs", room.name), format!("src/{}/mod.rs", room.name));
        assert!(root().join(&file).is_file() || root().join(&folder).is_file(), "neither {file} nor {folder} is there");
    }
}

#[test]
fn a_forbidden_import_is_found_wherever_it_hides() {
    let wrong = |file: &str, text: &str| !objections(&Source::of(file, text)).is_empty();
    assert!(wrong("src/plan/mod.rs", "use crate::host::Host;"));
    assert!(wrong("src/plan/matrix.rs", "fn f() { super::super::store::open() }"));
    assert!(wrong("src/stats/mean.rs", "use crate::{units::Bytes};"));
    assert!(wrong("src/store/mod.rs", "use crate::host::Host;"));
    assert!(wrong("src/record/case.rs", "fn f() { pgstrata_stats::ratio::ratio() }"));
    assert!(wrong("src/telemetry/sql.rs", "use crate::cluster::server::Server;"));
    assert!(wrong("src/main.rs", "fn main() { pgstrata::run::all() }"));
    assert!(wrong("src/corner/mod.rs", "use std::io;"));
    assert!(wrong("src/plan/mod.rs", "use crate::helpers::x;"));
}

#[test]
fn an_allowed_import_passes() {
    let fine = |file: &str, text: &str| objections(&Source::of(file, text)).is_empty();
    assert!(fine("src/plan/mod.rs", "use crate::{record::case, error::Result, plan::matrix}; use super::record::run;"));
    assert!(fine("src/store/mod.rs", "use crate::host::files::write_atomic;"));
    assert!(fine("src/telemetry/sql.rs", "#[cfg(test)] mod tests { use crate::cluster::server::Server; }"));
    assert!(fine("src/main.rs", "fn main() { pgstrata::cli::main() }"));
}

/// The words in backticks.
fn quoted(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn architecture_md_shows_the_table_that_is_checked() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = text.split("<!-- rooms -->").nth(1).expect("ARCHITECTURE.md has no `<!-- rooms -->` markers");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let shown: Vec<&str> =
        rows.iter().map(|row| row[0].trim_matches('`').trim_end_matches('/').trim_end_matches(".rs")).collect();
    let known: Vec<&str> = ROOMS.iter().map(|room| room.name).collect();
    assert_eq!(shown, known, "the rooms, in this order");
    for (row, room) in rows.iter().zip(ROOMS) {
        let (uses, tests) = row[3].split_once("; its tests also").unwrap_or((row[3], ""));
        let checked = |list: &'static [&'static str]| list.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(quoted(uses), checked(room.uses), "what `{}` may use", room.name);
        assert_eq!(quoted(tests), checked(room.tests_use), "what the tests of `{}` may use", room.name);
    }
}

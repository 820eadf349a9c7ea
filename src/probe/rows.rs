//! The rows of a probe, as data.
//!
//! First those of pg_test_fsync, with its names, sizes, offsets, flags and order (src/bin/pg_test_fsync of PostgreSQL
//! 18), so that results are comparable; then rows that write like the server writes its WAL; then methods that
//! PostgreSQL does not have.

use crate::error::{Error, Result};
use crate::record::probe::{Family, RowSpec, Segment, Way};
use std::collections::BTreeSet;

/// A page of WAL as PostgreSQL is built by default (`XLOG_BLCKSZ`), bytes.
pub const WAL_BLOCK: u32 = 8192;

/// Name of the row that syncs before closing.
pub const WRITE_FSYNC_CLOSE: &str = "write, fsync, close";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChoice {
    All,
    /// Only those of pg_test_fsync.
    Compat,
    /// Those with these ids, plus [`ALWAYS`].
    Chosen(BTreeSet<String>),
}

/// Rows in every choice by name: what a server does by default, and what published figures refer to.
pub const ALWAYS: [&str; 2] = ["wal.fdatasync.recycled", "one_write.fdatasync"];

/// The rows of most interest: each `wal_sync_method` as a server writes its WAL, commits that share a sync, and the row
/// of published figures. Six rows in ten seconds get five times the time they would get among all.
const MAIN: [&str; 6] = [
    "wal.open_datasync.recycled",
    "wal.fdatasync.recycled",
    "wal.fsync.recycled",
    "wal.open_sync.recycled",
    "wal.fdatasync.group",
    "one_write.fdatasync",
];

impl RowChoice {
    /// Parses names: `main`, `all`, a row's id, or its part before a dot (`wal`, `one_write`).
    ///
    /// # Errors
    /// A name that no row has, with a list of valid names.
    pub fn of_names(names: &[String]) -> Result<RowChoice> {
        if names.iter().any(|name| name == "all") {
            return Ok(RowChoice::All);
        }
        let ids: Vec<String> = rows(&RowChoice::All, WAL_BLOCK, 1).into_iter().map(|row| row.id).collect();
        let mut chosen: BTreeSet<String> = ALWAYS.map(str::to_owned).into();
        for name in names {
            let meant = ids.iter().filter(|id| match name.as_str() {
                "main" => MAIN.contains(&id.as_str()),
                name => id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
            });
            let meant: Vec<String> = meant.cloned().collect();
            if meant.is_empty() {
                return Err(Error::user(format!("no row is named `{name}`"))
                    .hint(format!("valid names: main, all, {}", ids.join(", "))));
            }
            chosen.extend(meant);
        }
        Ok(RowChoice::Chosen(chosen))
    }
}

/// The rows, in table order. `wal_block` is the write size of the WAL rows, `writers` the number of threads of the
/// group commit row.
pub fn rows(choice: &RowChoice, wal_block: u32, writers: u32) -> Vec<RowSpec> {
    let mut rows = compat();
    if *choice != RowChoice::Compat {
        rows.extend(wal(wal_block, writers));
        rows.extend(newer());
    }
    if let RowChoice::Chosen(ids) = choice {
        rows.retain(|row| ids.contains(&row.id));
    }
    rows
}

fn spec(family: Family, id: &str, label: &str, way: Way) -> RowSpec {
    RowSpec {
        id: id.to_owned(),
        family,
        label: label.to_owned(),
        way,
        write_bytes: WAL_BLOCK,
        writes: 1,
        direct: false,
        writers: 1,
        segment: None,
    }
}

fn compat() -> Vec<RowSpec> {
    let mut rows = Vec::new();
    for (family, prefix, writes) in [(Family::OneWrite, "one_write", 1), (Family::TwoWrites, "two_writes", 2)] {
        for (way, name) in Way::METHODS {
            let direct = matches!(way, Way::OpenDatasync | Way::OpenSync);
            rows.push(RowSpec { writes, direct, ..spec(family, &format!("{prefix}.{name}"), name, way) });
        }
    }
    for (writes, kib) in [(1, 16), (2, 8), (4, 4), (8, 2), (16, 1)] {
        let id = format!("open_sync_sizes.{writes}x{kib}k");
        let label = format!("{writes:>2} * {kib:>2}kB open_sync write{}", if writes == 1 { "" } else { "s" });
        let row = spec(Family::OpenSyncSizes, &id, &label, Way::OpenSync);
        rows.push(RowSpec { writes, write_bytes: kib << 10, direct: true, ..row });
    }
    rows.push(spec(Family::Descriptor, "descriptor.write_fsync_close", WRITE_FSYNC_CLOSE, Way::Fsync));
    rows.push(spec(Family::Descriptor, "descriptor.write_close_fsync", "write, close, fsync", Way::Fsync));
    rows.push(spec(Family::NotSynced, "not_synced.write", "write", Way::None));
    rows
}

fn wal(wal_block: u32, writers: u32) -> Vec<RowSpec> {
    let group = format!("fdatasync, {writers} writers");
    let rows = [
        ("open_datasync.recycled", "open_datasync", Way::OpenDatasync, Segment::Recycled),
        ("fdatasync.recycled", "fdatasync", Way::Fdatasync, Segment::Recycled),
        ("fsync.recycled", "fsync", Way::Fsync, Segment::Recycled),
        ("open_sync.recycled", "open_sync", Way::OpenSync, Segment::Recycled),
        ("open_datasync.direct", "open_datasync, O_DIRECT", Way::OpenDatasync, Segment::Recycled),
        ("fdatasync.zero_filled", "fdatasync, zero-filled", Way::Fdatasync, Segment::ZeroFilled),
        ("fdatasync.extended", "fdatasync, extended", Way::Fdatasync, Segment::Extended),
        ("fdatasync.group", &group, Way::Fdatasync, Segment::Recycled),
    ];
    let rows = rows.into_iter().map(|(id, label, way, segment)| RowSpec {
        write_bytes: wal_block,
        segment: Some(segment),
        direct: id == "open_datasync.direct",
        writers: if id == "fdatasync.group" { writers } else { 1 },
        ..spec(Family::Wal, &format!("wal.{id}"), label, way)
    });
    rows.collect()
}

fn newer() -> Vec<RowSpec> {
    let rows = [
        ("newer.rwf_dsync", "pwritev2 RWF_DSYNC", Way::RwfDsync, false),
        ("newer.rwf_dsync_direct", "RWF_DSYNC, O_DIRECT", Way::RwfDsync, true),
        ("newer.io_uring", "io_uring write+fdatasync", Way::IoUring, false),
        ("newer.msync", "mmap + msync", Way::Msync, false),
    ];
    rows.map(|(id, label, way, direct)| RowSpec { direct, ..spec(Family::Newer, id, label, way) }).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own() {
        let all = rows(&RowChoice::All, 8192, 8);
        let ids: BTreeSet<&str> = all.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids.len(), all.len());
        assert_eq!(rows(&RowChoice::Compat, 8192, 8).len(), 18, "as many as pg_test_fsync has");
    }

    #[test]
    fn rows_are_selected_by_name_or_name_prefix() {
        let ids = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let choice = RowChoice::of_names(&names)?;
            Ok::<Vec<String>, Error>(rows(&choice, 8192, 8).into_iter().map(|row| row.id).collect())
        };
        let mut main = MAIN.to_vec();
        main.sort_unstable();
        let mut chosen = ids(&["main"]).unwrap();
        chosen.sort_unstable();
        assert_eq!(chosen, main);
        assert_eq!(ids(&["newer.msync"]).unwrap(), ["one_write.fdatasync", "wal.fdatasync.recycled", "newer.msync"]);
        assert_eq!(ids(&["wal"]).unwrap().len(), 9);
        assert_eq!(ids(&["wal", "all"]).unwrap().len(), 30);
        let error = ids(&["wal", "wa"]).unwrap_err();
        assert!(error.to_string().contains("`wa`") && error.hint_text().unwrap().contains("newer.msync"), "{error}");
        assert!(ALWAYS.iter().all(|id| MAIN.contains(id)));
    }

    #[test]
    fn each_row_of_open_sync_in_pieces_writes_16_kb() {
        let all = rows(&RowChoice::Compat, 8192, 1);
        let pieces: Vec<&RowSpec> = all.iter().filter(|row| row.family == Family::OpenSyncSizes).collect();
        assert_eq!(pieces.len(), 5);
        assert!(pieces.iter().all(|row| row.writes * row.write_bytes == 16 << 10 && row.direct));
    }

    #[test]
    fn the_wal_block_is_that_of_the_wal_rows_alone() {
        for row in rows(&RowChoice::All, 65_536, 4) {
            assert_eq!(row.write_bytes == 65_536, row.family == Family::Wal, "{}", row.id);
        }
    }
}

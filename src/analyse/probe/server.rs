//! Rows equivalent to the WAL writes of a server.
//!
//! PostgreSQL before 16 adds O_DIRECT to `open_datasync` and `open_sync` if only the server itself reads the WAL
//! (src/backend/access/transam/xlog.c, `get_sync_bit`: `wal_level = minimal`); since 16, O_DIRECT comes only from
//! `debug_io_direct = wal`, and then for every method. pg_test_fsync always adds it to its open_* rows.

use super::findings::ServerRow;
use crate::record::probe::{Family, ProbeRecord, RowSpec, Segment, Way};
use std::collections::BTreeSet;

/// First major version with `debug_io_direct`.
const DEBUG_IO_DIRECT: u32 = 16;

/// Value of `wal_sync_method` for a way; `None` for methods not used by PostgreSQL on Linux.
pub(super) fn method(way: Way) -> Option<&'static str> {
    let mut known = Way::METHODS.into_iter().filter(|(known, _)| *known != Way::FsyncWritethrough);
    known.find(|(known, _)| *known == way).map(|(_, name)| name)
}

/// True if a row equals a server at default settings except for `wal_sync_method`.
pub(super) fn at_default_settings(spec: &RowSpec) -> bool {
    spec.family == Family::Wal
        && !spec.direct
        && spec.writers <= 1
        && spec.writes == 1
        && spec.segment == Some(Segment::Recycled)
        && method(spec.way).is_some()
}

/// Relation of a row with O_DIRECT, as pg_test_fsync has it, to a server of the major version `server`.
pub(super) fn role(spec: &RowSpec, server: u32) -> Option<String> {
    let is_compatible = matches!(spec.family, Family::OneWrite | Family::TwoWrites | Family::OpenSyncSizes);
    let when = match server >= DEBUG_IO_DIRECT {
        true => "debug_io_direct = wal",
        false => "wal_level = minimal, which rules out archiving and WAL senders",
    };
    (is_compatible && matches!(spec.way, Way::OpenDatasync | Way::OpenSync)).then(|| {
        format!(
            "with O_DIRECT, as in pg_test_fsync; not what a server does: PostgreSQL {server} uses O_DIRECT only with {when}"
        )
    })
}

/// For each method, the row equivalent to a server at default settings.
pub(super) fn equals(record: &ProbeRecord, server: u32) -> Vec<ServerRow> {
    let mut seen = BTreeSet::new();
    // A group commit row with a single writer equals the plain one.
    let specs = record.rows.iter().map(|row| &row.spec).filter(|spec| at_default_settings(spec));
    let rows = specs.filter(|spec| seen.insert(method(spec.way))).filter_map(|spec| {
        let method = method(spec.way)?.to_owned();
        Some(ServerRow {
            default: spec.way == Way::Fdatasync,
            sentence: format!("PostgreSQL {server} with wal_sync_method = {method} is the row \"{}\"", spec.label),
            wal_sync_method: method,
            row_id: spec.id.clone(),
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(way: Way, direct: bool, segment: Segment) -> RowSpec {
        let id = format!("wal.{way:?}");
        let (label, family, segment) = (id.clone(), Family::Wal, Some(segment));
        RowSpec { id, family, label, way, write_bytes: 8192, writes: 1, direct, writers: 1, segment }
    }

    #[test]
    fn a_server_uses_direct_writes_by_its_version_and_settings() {
        let wal = spec(Way::OpenDatasync, true, Segment::Recycled);
        let row = RowSpec { family: Family::OneWrite, segment: None, ..wal.clone() };
        assert!(role(&row, 15).unwrap().contains("wal_level = minimal"));
        let today = role(&row, 16).unwrap();
        assert!(today.contains("not what a server does") && today.contains("debug_io_direct = wal"), "{today}");
        assert_eq!((role(&RowSpec { way: Way::Fdatasync, ..row }, 18), role(&wal, 18)), (None, None));
    }

    #[test]
    fn only_the_buffered_recycled_row_matches_the_server_at_defaults() {
        let plain = spec(Way::Fdatasync, false, Segment::Recycled);
        assert!(at_default_settings(&plain));
        let others = [
            spec(Way::Fdatasync, true, Segment::Recycled),
            spec(Way::Fdatasync, false, Segment::Extended),
            spec(Way::RwfDsync, false, Segment::Recycled),
            RowSpec { writers: 8, ..plain.clone() },
            RowSpec { family: Family::OneWrite, segment: None, ..plain },
        ];
        assert!(others.iter().all(|spec| !at_default_settings(spec)));
    }
}

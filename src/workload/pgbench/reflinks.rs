//! Copies a running cluster by reflinks, file by file. Files from different moments are not a consistent copy of a
//! database, so it is made between the calls of a base backup (PostgreSQL's manual, "Making a Base Backup Using the Low
//! Level API").

use crate::cluster::server::{CHECKPOINT_LIMIT, Server};
use crate::error::{Error, Result};
use crate::host::{files, reflinks};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// First version with today's names of the calls.
const PG_BACKUP_START: u32 = 15;

/// Left out of the copy as pg_basebackup does: files specific to this server, or created anew.
const LEFT_OUT: [&str; 4] = ["postmaster.pid", "postmaster.opts", "pgsql_tmp", "pg_wal"];

/// The data folder within a copy.
pub fn data_in(copy: &Path, data: &Path) -> PathBuf {
    copy.join(data.file_name().unwrap_or_default())
}

/// Copies the data folder of the running server into a folder.
///
/// # Errors
/// The server's message, or the kernel's with the path; `pg_wal` on another filesystem.
pub fn copy(server: &Server, into: &Path) -> Result<()> {
    if server.spec.wal.is_some() {
        return Err(Error::user("pg_wal lies elsewhere: reflinks stay in one filesystem"));
    }
    let (start, stop) = if server.spec.install.major >= PG_BACKUP_START {
        ("SELECT pg_backup_start('pgstrata', true)", "SELECT labelfile FROM pg_backup_stop(false)")
    } else {
        ("SELECT pg_start_backup('pgstrata', true, false)", "SELECT labelfile FROM pg_stop_backup(false, false)")
    };
    let (data, target) = (&server.spec.data, data_in(into, &server.spec.data));
    // The backup ends with its session.
    let mut client = server.connect_with_limit(CHECKPOINT_LIMIT)?;
    client.query(start)?;
    reflinks::copy(data, &target, &|path| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        LEFT_OUT.contains(&name) || name.starts_with("pg_internal.init")
    })?;
    let label = client.value(stop)?;
    // Last: now it has all the WAL that the copy has to replay.
    reflinks::copy(&data.join("pg_wal"), &target.join("pg_wal"), &|_| false)?;
    files::write_for(&target.join("backup_label"), label.as_bytes(), 0o600, &server.spec.user)
}

//! The folder: checks if it can be probed, finds the devices below it, and sizes the files.

use super::site::SEGMENT_BYTES;
use crate::error::{Error, Result};
use crate::host::{Host, files, machine, paths};
use crate::provision::{devices, mount};
use crate::record::probe::PlaceFacts;
use crate::units::Bytes;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Segment-sized files that exist at the same time: the one of the pg_test_fsync rows, the recycled segment, a
/// zero-filled and an extended one.
pub const FILES: u64 = 4;
/// Smallest segment, as in PostgreSQL.
const SMALLEST_SEGMENT: u64 = 1 << 20;

/// Filesystems that expose kernel state.
const OF_THE_KERNEL: [&str; 11] =
    ["proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs", "devpts", "bpf", "pstore"];

/// Facts about the folder, and its path as the kernel has it (names may not be UTF-8).
///
/// # Errors
/// If it does not exist, is not a directory or cannot be read.
pub fn facts(host: &Host, folder: &Path) -> Result<(PlaceFacts, PathBuf)> {
    let seen = paths::stat(folder).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::user(format!("{}: no such folder", folder.display()))
            .hint("name a folder on the filesystem to probe; create one with `mkdir`"),
        ErrorKind::NotADirectory | ErrorKind::InvalidFilename => Error::user(format!("{}: {e}", folder.display())),
        _ if e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            Error::user(format!("{}: {e}", folder.display()))
        }
        _ => Error::host(format!("{}: {e}", folder.display())),
    })?;
    if seen.kind != paths::Kind::Directory {
        return Err(Error::user(format!("{}: is not a directory", folder.display()))
            .hint("to probe a device, name a folder on its filesystem"));
    }
    let absolute = paths::resolve(folder)?;
    let mounted = mount::mount_of(host, &absolute).ok();
    if let Some(mount) = mounted.as_ref().filter(|mount| OF_THE_KERNEL.contains(&mount.fstype.as_str())) {
        let what = format!("{}: {} is a kernel filesystem that cannot hold files", folder.display(), mount.fstype);
        return Err(Error::host(what).hint("name a folder on the filesystem to probe"));
    }
    let below = devices::below(host, &absolute)?;
    let machine = machine::facts(host);
    let facts = PlaceFacts {
        folder: absolute.display().to_string(),
        mount: mounted,
        ends: below.ends.iter().map(|end| end.promise.clone()).collect(),
        devices: below.reached_by_a_sync(),
        free_bytes: files::free_bytes_if_limited(&absolute)?,
        kernel: machine.kernel,
        hypervisor: machine::is_virtual(host).then(|| machine.machine.unwrap_or_else(|| "virtual machine".to_owned())),
    };
    Ok((facts, absolute))
}

/// Size of each of this many files: 16 MiB, or less if needed to keep `free_over_files` times the total free.
///
/// # Errors
/// If even the smallest size is too large.
pub fn segment_bytes(place: &PlaceFacts, files: u64, free_over_files: u64) -> Result<u64> {
    let Some(free) = place.free_bytes else { return Ok(SEGMENT_BYTES) };
    let mut sizes = std::iter::successors(Some(SEGMENT_BYTES), |bytes| Some(bytes / 2))
        .take_while(|bytes| *bytes >= SMALLEST_SEGMENT);
    sizes.find(|bytes| bytes * files * free_over_files <= free).ok_or_else(|| {
        let least = SMALLEST_SEGMENT * files * free_over_files;
        Error::host(format!("{} has {} free, too little for a probe", place.folder, Bytes(free))).hint(format!(
            "a probe writes at least {} and at most {} % of the free space: free up {}",
            Bytes(SMALLEST_SEGMENT * files),
            100 / free_over_files,
            Bytes(least)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::host::signals::Interrupt;
    use crate::probe::{Observer, ProbeRequest, RowChoice, measure};
    use std::time::Duration;

    fn place(free_bytes: Option<u64>) -> PlaceFacts {
        PlaceFacts { folder: "/srv".into(), free_bytes, ..PlaceFacts::default() }
    }

    #[test]
    fn probe_files_use_at_most_a_twentieth_of_free_space() {
        assert_eq!(segment_bytes(&place(None), FILES, 20).unwrap(), 16 << 20);
        for free_mib in [80u64, 100, 200, 500, 1279, 1280, 100_000] {
            let free = free_mib << 20;
            let bytes = segment_bytes(&place(Some(free)), FILES, 20).unwrap();
            assert!(bytes * FILES * 20 <= free && (1 << 20..=16 << 20).contains(&bytes), "{free_mib} {bytes}");
        }
        assert_eq!(segment_bytes(&place(Some(1280 << 20)), FILES, 20).unwrap(), 16 << 20);
        let error = segment_bytes(&place(Some(79 << 20)), FILES, 20).unwrap_err();
        assert_eq!(error.kind(), Kind::Host);
        assert!(error.to_string().contains("79"), "{error}");
    }

    struct Silent;
    impl Observer for Silent {}

    #[test]
    fn a_folder_can_be_probed_without_proc_and_sys() {
        let (machine, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let request = ProbeRequest {
            folder: folder.path().to_owned(),
            choice: RowChoice::Compat,
            budget: Duration::from_secs(1),
            precision: 0.0,
            wal_block: 8192,
            writers: 1,
            free_over_files: 1,
            seed: 1,
        };
        let record = measure(&Host::rooted(machine.path()), &request, &Interrupt::never(), &Silent).unwrap();
        assert!(record.place.mount.is_none() && record.place.devices.is_empty());
        assert_eq!(record.place.kernel, "unknown");
        assert!(record.place.ends[0].to_string().contains("no mount table"), "{:?}", record.place.ends);
        assert!(record.cpu.is_none());
        assert!(record.rows.iter().any(|row| !row.slices.is_empty()), "{:?}", record.rows);
        assert!(record.rows.iter().all(|row| row.failure.is_none()), "{:?}", record.rows);
    }

    #[test]
    fn what_is_no_folder_is_the_users_mistake() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for path in [file.path(), Path::new("/no/such/folder")] {
            assert_eq!(facts(&Host::this(), path).unwrap_err().kind(), Kind::User, "{}", path.display());
        }
    }
}

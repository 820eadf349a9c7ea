//! A moment of synced writes to the filesystem below the images, or of the existing folder: whether the machine's storage is in its usual state.

use super::{Space, layer};
use crate::error::{Context, Result};
use crate::host::files::{self, File};
use crate::host::time::{micros, now, wall_us};
use crate::record::disk_probe::DiskProbe;
use crate::record::stack::StackSpec;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Length of a probe; the flush that exceeds it is the last one.
const LENGTH: Duration = Duration::from_millis(150);

/// The layer of existing folders, and its option for the folder.
const DIRECTORY: &str = "directory";

/// A page of WAL, aligned for writes past the page cache.
#[repr(align(4096))]
struct Page([u8; 8192]);

static PAGE: Page = Page([0x5a; 8192]);

/// Pages written in turn; all are allocated before the first flush that counts.
const PAGES: u64 = 16;

/// Folder of the first image that a stack stands on, or the existing folder.
pub fn folder_of(spec: &StackSpec) -> Option<PathBuf> {
    let of_image = spec.nodes.iter().find_map(|node| match layer(&node.layer)?.space(&node.options)? {
        Space::Disk(folder, _) | Space::Image(folder, _) => Some(folder),
        Space::Memory(_) => None,
    });
    of_image.or_else(|| existing_folder(spec).map(Path::to_path_buf))
}

/// Existing folder that the stack's data go into, if they do.
pub fn existing_folder(spec: &StackSpec) -> Option<&Path> {
    spec.node(spec.data.node()).filter(|node| node.layer == DIRECTORY)?.options.text(DIRECTORY).map(Path::new)
}

/// Probes the filesystem of this folder with an unnamed file, which leaves no trace.
///
/// # Errors
/// Where no unnamed file can be made; of a write or a sync.
pub fn probe(folder: &Path) -> Result<DiskProbe> {
    let doing = || format!("probe the disk below {}", folder.display());
    let file = files::nameless(&files::nearest_existing(folder)).or_host(doing)?;
    for page in 0..PAGES {
        write(&file, page).or_host(doing)?;
    }
    file.sync_data().or_host(doing)?;
    let mut probe = DiskProbe { folder: folder.to_path_buf(), wall_us: wall_us(), ..DiskProbe::default() };
    let begun = now();
    while begun.elapsed() < LENGTH {
        write(&file, probe.flushes % PAGES).or_host(doing)?;
        file.sync_data().or_host(doing)?;
        probe.flushes += 1;
    }
    probe.elapsed_us = micros(begun.elapsed());
    Ok(probe)
}

fn write(file: &File, page: u64) -> io::Result<()> {
    files::write_all_at(file, &PAGE.0, page * PAGE.0.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_counts_flushes_and_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let found = probe(folder.path()).unwrap();
        assert!(found.flushes > 0 && found.elapsed_us >= 150_000, "{found:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(probe(Path::new("/proc")).is_err());
    }
}

//! Copying a cleanly stopped cluster onto a stack.
//!
//! Neither the template nor the copy stays in the page cache: memory is for what the trial itself reads.
//!
//! Uses plain reads and writes in large blocks: `copy_file_range`, reflinks and holes would give some filesystems
//! another layout than a server writing the same data, and would compare copies instead of stacks.

use super::spec::ServerSpec;
use crate::error::{Context, Error, Result};
use crate::host::paths::{self, Kind};
use crate::host::signals::Interrupt;
use crate::host::users::User;
use crate::host::{files, folders};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Size of a read and a write: large enough that the number of system calls does not matter.
const BLOCK: usize = 1 << 20;

/// Creates a cluster in `spec.data` by copying the files of a cleanly stopped one, byte by byte (never by reflink),
/// with owner and modes, syncs the filesystems and returns the bytes copied. pg_wal goes to `spec.wal` if set.
///
/// # Errors
/// With the path; a full disk is reported as such; interrupted.
pub fn copy(template: &Path, spec: &ServerSpec, interrupt: &Interrupt) -> Result<u64> {
    if paths::exists(&template.join("postmaster.pid")) {
        return Err(Error::bug(format!("the template {} is in use by a running server", template.display())));
    }
    let mut copying = CopyJob { user: &spec.user, interrupt, block: vec![0; BLOCK], bytes: 0, written: Vec::new() };
    copying.folder(template, &spec.data, spec.wal.is_some())?;
    if let Some(wal) = &spec.wal {
        copying.folder(&template.join("pg_wal"), wal, false)?;
        let link = spec.data.join("pg_wal");
        files::make_link(&link, wal)?;
        files::give_to(&link, &spec.user)?;
        sync(wal)?;
    }
    sync(&spec.data)?;
    copying.forgotten()
}

/// The reverse: copies the files of a cleanly stopped cluster to a folder that does not exist yet.
///
/// # Errors
/// As [`copy`].
pub fn copy_off(spec: &ServerSpec, to: &Path, interrupt: &Interrupt) -> Result<u64> {
    let mut copying = CopyJob { user: &spec.user, interrupt, block: vec![0; BLOCK], bytes: 0, written: Vec::new() };
    copying.folder(&spec.data, to, spec.wal.is_some())?;
    if let Some(wal) = &spec.wal {
        copying.folder(wal, &to.join("pg_wal"), false)?;
    }
    sync(to)?;
    copying.forgotten()
}

struct CopyJob<'a> {
    user: &'a User,
    interrupt: &'a Interrupt,
    block: Vec<u8>,
    bytes: u64,
    /// Files written so far.
    written: Vec<PathBuf>,
}

impl CopyJob<'_> {
    /// Drops the pages of all copies, written back by now, from the cache. Returns their size in bytes.
    fn forgotten(self) -> Result<u64> {
        for path in &self.written {
            files::forget(&files::open(path)?, path)?;
        }
        Ok(self.bytes)
    }

    /// Copies the content of a folder into `to`, which is new or empty.
    fn folder(&mut self, from: &Path, to: &Path, without_wal: bool) -> Result<()> {
        let mode = paths::look_at(from)?.mode;
        match folders::list(to) {
            Ok(held) if !held.is_empty() => return Err(Error::host(format!("{} is not empty", to.display()))),
            Ok(_) => files::set_mode(to, mode)?,
            Err(_) => files::make_folder(to, mode).map_err(|e| e.hint("is its filesystem full or read-only?"))?,
        }
        files::give_to(to, self.user)?;
        // Sorted, so that every stack gets the same order: it decides where files lie.
        for from in folders::list(from)? {
            self.interrupt.check()?;
            let name = from.file_name().unwrap_or_default();
            if without_wal && name == "pg_wal" {
                continue;
            }
            let to = to.join(name);
            match paths::look_for(&from)?.map(|found| found.kind) {
                Some(Kind::Directory) => self.folder(&from, &to, false)?,
                Some(Kind::RegularFile) => self.file(&from, &to)?,
                _ => {
                    let what = from.display();
                    return Err(Error::bug(format!(
                        "the template contains {what}, which is neither a file nor a folder"
                    )));
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, from: &Path, to: &Path) -> Result<()> {
        let mut source = files::open(from)?;
        let mode = paths::look_at_open(&source, from)?.mode;
        let mut target = files::create_new(to, mode).map_err(|e| write_error(to, &e))?;
        loop {
            let length = match source.read(&mut self.block) {
                Ok(0) => break,
                Ok(length) => length,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e).or_host(|| format!("read {}", from.display())),
            };
            target.write_all(&self.block[..length]).map_err(|e| write_error(to, &e))?;
            self.bytes += length as u64;
            self.interrupt.check()?;
        }
        files::set_mode(to, mode)?;
        files::give_to(to, self.user)?;
        // The template was made with fsync = off: dirty pages would stay in the cache.
        source.sync_data().or_host(|| format!("sync {}", from.display()))?;
        files::forget(&source, from)?;
        self.written.push(to.to_path_buf());
        Ok(())
    }
}

fn write_error(path: &Path, e: &io::Error) -> Error {
    let advice = "the stack is too small for the data: increase its size or reduce the workload's scale";
    files::write_refused(e, format!("write {}", path.display()), advice)
}

/// Writes back the whole filesystem of `folder`; this reports writes that failed later.
fn sync(folder: &Path) -> Result<()> {
    folders::sync_filesystem(folder).map_err(|e| write_error(folder, &e).while_doing("sync the copied data"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::{some_installation, spec_in};
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn template_in(folder: &Path) -> std::path::PathBuf {
        let template = folder.join("template");
        fs::create_dir_all(template.join("pg_wal/archive_status")).unwrap();
        fs::create_dir_all(template.join("base/1")).unwrap();
        fs::write(template.join("base/1/2619"), vec![7u8; 3_000_000]).unwrap();
        fs::write(template.join("pg_wal/000000010000000000000001"), vec![0u8; 1 << 20]).unwrap();
        fs::set_permissions(template.join("base/1/2619"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(&template, fs::Permissions::from_mode(0o700)).unwrap();
        template
    }

    #[test]
    fn a_copy_has_equal_bytes_and_modes_and_no_holes() {
        let Some(install) = some_installation() else { return };
        let folder = tempfile::tempdir().unwrap();
        let template = template_in(folder.path());
        let mut spec = spec_in(install, folder.path());
        spec.wal = Some(folder.path().join("wal"));
        let copied = copy(&template, &spec, &Interrupt::never()).unwrap();
        assert_eq!(copied, 3_000_000 + (1 << 20));
        let file = spec.data.join("base/1/2619");
        assert_eq!(fs::read(&file).unwrap(), vec![7u8; 3_000_000]);
        let facts = fs::metadata(&file).unwrap();
        assert_eq!((facts.mode() & 0o7777, facts.uid()), (0o600, spec.user.uid));
        assert_eq!(fs::metadata(&spec.data).unwrap().mode() & 0o7777, 0o700);
        assert_eq!(fs::read_link(spec.data.join("pg_wal")).unwrap(), folder.path().join("wal"));
        let wal = fs::metadata(folder.path().join("wal/000000010000000000000001")).unwrap();
        assert!(wal.blocks() * 512 >= 1 << 20, "zeros are written, not left out");
    }

    #[test]
    fn a_cluster_leaving_a_stack_gets_its_wal_folder_back() {
        let Some(install) = some_installation() else { return };
        let folder = tempfile::tempdir().unwrap();
        let template = template_in(folder.path());
        let mut spec = spec_in(install, folder.path());
        spec.wal = Some(folder.path().join("wal"));
        let copied = copy(&template, &spec, &Interrupt::never()).unwrap();
        let back = folder.path().join("back");
        assert_eq!(copy_off(&spec, &back, &Interrupt::never()).unwrap(), copied);
        assert_eq!(fs::read(back.join("base/1/2619")).unwrap(), vec![7u8; 3_000_000]);
        assert!(!back.join("pg_wal").is_symlink() && back.join("pg_wal/000000010000000000000001").is_file());
    }

    /// Bytes of the file in the page cache (mincore(2)), as `fincore` of util-linux reports them.
    fn cached_bytes(path: &Path) -> u64 {
        let output = crate::host::command::Command::new("fincore").args(["--bytes", "--noheadings", "--output", "RES"]);
        let printed = crate::host::Host::this().run(&output.arg(path)).unwrap();
        printed.stdout.trim().parse().unwrap()
    }

    #[test]
    fn template_and_copy_are_evicted_from_the_page_cache() {
        let Some(install) = some_installation() else { return };
        if !crate::host::Host::this().has_program("fincore") {
            println!("skipped: needs fincore of util-linux");
            return;
        }
        // /var/tmp is on a disk even if /tmp is in memory, where files are the cache.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let template = template_in(folder.path());
        let big = template.join("base/1/2619");
        let file = fs::File::open(&big).unwrap();
        file.sync_all().unwrap();
        files::drop_cache(&file).unwrap();
        if cached_bytes(&big) > 0 {
            println!("skipped: {} is in memory, or its filesystem drops no pages", folder.path().display());
            return;
        }
        fs::write(&big, vec![7u8; 3_000_000]).unwrap();
        assert!(cached_bytes(&big) > 2_000_000, "it was just written");
        let spec = spec_in(install, folder.path());
        copy(&template, &spec, &Interrupt::never()).unwrap();
        assert_eq!((cached_bytes(&big), cached_bytes(&spec.data.join("base/1/2619"))), (0, 0));
    }

    #[test]
    fn a_full_disk_error_names_the_file_and_a_remedy() {
        let Some(install) = some_installation() else { return };
        if !crate::host::users::is_root() {
            println!("skipped: needs root, to mount a small tmpfs");
            return;
        }
        let host = crate::host::Host::this();
        let folder = tempfile::tempdir().unwrap();
        let small = folder.path().join("small");
        fs::create_dir(&small).unwrap();
        let mount = crate::host::command::Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "pgstrata-test"]);
        host.run(&mount.arg(&small)).unwrap();
        let mut spec = spec_in(install, folder.path());
        spec.data = small.join("data");
        let copied = copy(&template_in(folder.path()), &spec, &Interrupt::never());
        host.run(&crate::host::command::Command::new("umount").arg(&small)).unwrap();
        let error = copied.unwrap_err();
        assert!(error.to_string().contains("small/data/base/1/2619: No space left"), "{error}");
        assert!(error.hint_text().unwrap().contains("too small"), "{error}");
    }

    #[test]
    fn a_folder_that_holds_something_is_not_copied_into() {
        let Some(install) = some_installation() else { return };
        let folder = tempfile::tempdir().unwrap();
        let template = template_in(folder.path());
        let spec = spec_in(install, folder.path());
        fs::create_dir(&spec.data).unwrap();
        fs::write(spec.data.join("precious"), "x").unwrap();
        assert!(copy(&template, &spec, &Interrupt::never()).unwrap_err().to_string().contains("is not empty"));
        assert_eq!(fs::read(spec.data.join("precious")).unwrap(), b"x");
    }

    #[test]
    fn an_interrupt_ends_a_copy() {
        let Some(install) = some_installation() else { return };
        let folder = tempfile::tempdir().unwrap();
        let template = template_in(folder.path());
        let interrupt = Interrupt::never();
        interrupt.raise();
        let error = copy(&template, &spec_in(install, folder.path()), &interrupt).unwrap_err();
        assert_eq!(error.kind(), crate::error::Kind::Interrupted);
    }
}

//! Accesses files by names of our own in a folder that may come from someone else: never through a symbolic link, and
//! only regular files, so that none leads elsewhere, blocks, or never ends. The folder itself is the user's and may be
//! named through links.

use super::{File, if_there, open_folder, write_beside};
use crate::error::{Context, Error, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

/// Opens `name`, below `folder`, for reading; `None` if nothing has that name.
///
/// # Errors
/// An error that names the path that is not a regular file, or the folder on the way that is not a folder.
pub(crate) fn open_within(folder: &Path, name: impl AsRef<Path>) -> Result<Option<File>> {
    open(folder, name.as_ref(), OFlags::RDONLY)
}

/// Same, for reading and appending. Refuses a file with more than one name: the others would change with it.
///
/// # Errors
/// An I/O error that names the path.
pub(crate) fn open_to_append_within(folder: &Path, name: &str) -> Result<Option<File>> {
    let file = open(folder, name.as_ref(), OFlags::RDWR | OFlags::APPEND)?;
    let path = folder.join(name);
    match &file {
        Some(file) if file.metadata().or_store(|| format!("stat {}", path.display()))?.nlink() > 1 => {
            Err(Error::store(format!("{} has further names (hard links), which would change with it", path.display()))
                .hint("replace it with a copy of itself"))
        }
        _ => Ok(file),
    }
}

/// Writes `name`, below `folder`, atomically. An existing file is replaced, never written to.
///
/// # Errors
/// An I/O error that names the path; the folders on the way must exist.
pub(crate) fn write_within(folder: &Path, name: &Path, bytes: &[u8]) -> Result<()> {
    let written = match parent(folder, name)? {
        Some((at, name)) => write_beside(&at, name, bytes, None),
        None => Err(io::ErrorKind::NotFound.into()),
    };
    written.or_store(|| format!("write {}", folder.join(name).display()))
}

fn open(folder: &Path, name: &Path, flags: OFlags) -> Result<Option<File>> {
    let path = folder.join(name);
    let opening = || format!("open {}", path.display());
    let Some((at, last)) = parent(folder, name)? else { return Ok(None) };
    // Checked before, since opening a device may already have an effect; and after, since another file may have the
    // name by then.
    let found = rustix::fs::statat(&at, last, AtFlags::SYMLINK_NOFOLLOW);
    let Some(found) = if_there(found.map_err(io::Error::from)).or_store(opening)? else { return Ok(None) };
    regular(&found, &path)?;
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = or_closed(rustix::fs::openat(&at, last, flags, Mode::empty()), opening)?;
    regular(&rustix::fs::fstat(&file).or_store(opening)?, &path)?;
    Ok(Some(file.into()))
}

/// Opens the folder of `name` and returns it with the last part of the name; `None` if there is no such folder.
fn parent<'n>(folder: &Path, name: &'n Path) -> Result<Option<(OwnedFd, &'n OsStr)>> {
    let mut path = folder.to_path_buf();
    let mut at = rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let mut parts = name.components();
    while let Some(Component::Normal(part)) = parts.next() {
        let opened = match at {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(leads_elsewhere(&path, "a symbolic link or no folder")),
            opened => or_closed(opened, || format!("open {}", path.display()))?,
        };
        if parts.as_path().as_os_str().is_empty() {
            return Ok(Some((opened, part)));
        }
        path.push(part);
        at = open_folder(&opened, part);
    }
    Err(Error::store(format!("{} is not the name of a file of a run", name.display())))
}

/// The error of a place that is closed to this user says so: it is no damage.
fn or_closed<T>(opened: rustix::io::Result<T>, what: impl FnOnce() -> String) -> Result<T> {
    let is_closed = matches!(opened, Err(Errno::ACCESS));
    let hint = |e: Error| if is_closed { e.hint("run it as the owner of the folder, or as root") } else { e };
    opened.or_store(what).map_err(hint)
}

fn regular(found: &Stat, path: &Path) -> Result<()> {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Symlink => Err(leads_elsewhere(path, "a symbolic link")),
        FileType::Fifo => Err(leads_elsewhere(path, "a pipe")),
        FileType::Socket => Err(leads_elsewhere(path, "a socket")),
        FileType::Directory => Err(leads_elsewhere(path, "a folder")),
        _ => Err(leads_elsewhere(path, "a device")),
    }
}

fn leads_elsewhere(path: &Path, what: &str) -> Error {
    Error::store(format!("{} is {what}; in the folder of a run only regular files are opened", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    #[test]
    fn a_place_that_is_closed_to_this_user_is_told_from_a_damaged_one() {
        let hint =
            |errno| or_closed::<()>(Err(errno), || "open x".to_owned()).unwrap_err().hint_text().map(str::to_owned);
        assert_eq!(hint(Errno::ACCESS).as_deref(), Some("run it as the owner of the folder, or as root"));
        assert_eq!(hint(Errno::IO), None);
    }

    /// Puts something hostile in the place of a file, by kind. False if that takes root.
    fn put(what: &str, place: &Path, victim: &Path) -> bool {
        let run =
            |program: &str, args: &[&str]| Command::new(program).arg(place).args(args).status().unwrap().success();
        match what {
            "link to a file" => symlink(victim, place).unwrap(),
            "link to an endless device" => symlink("/dev/zero", place).unwrap(),
            "link to nothing" => symlink(victim.with_file_name("nothing"), place).unwrap(),
            "link to itself" => symlink(place, place).unwrap(),
            "link to a pipe" => {
                symlink(victim.with_file_name("pipe"), place).unwrap();
                return Command::new("mkfifo").arg(victim.with_file_name("pipe")).status().unwrap().success();
            }
            "pipe" => return run("mkfifo", &[]),
            "socket" => drop(UnixListener::bind(place).unwrap()),
            "folder" => fs::create_dir(place).unwrap(),
            "endless device" => return run("mknod", &["c", "1", "5"]),
            _ => return run("mknod", &["b", "7", "250"]),
        }
        true
    }

    #[test]
    fn symlinks_and_fifos_named_like_run_files_are_not_opened() {
        for what in [
            "link to a file",
            "link to an endless device",
            "link to nothing",
            "link to itself",
            "link to a pipe",
            "pipe",
            "socket",
            "folder",
            "endless device",
            "block device",
        ] {
            let place = tempfile::tempdir().unwrap();
            let (run, victim) = (place.path().join("run"), place.path().join("victim"));
            fs::create_dir_all(run.join("verdicts")).unwrap();
            fs::write(&victim, "keep").unwrap();
            let file = run.join("verdicts/a.json");
            if !put(what, &file, &victim) {
                println!("skipped: {what}: making one needs root");
                continue;
            }
            for opened in [open_within(&run, "verdicts/a.json"), open_to_append_within(&run, "verdicts/a.json")] {
                let error = opened.unwrap_err().to_string();
                assert!(
                    error.contains("verdicts/a.json is a ") && error.contains("only regular files"),
                    "{what}: {error}"
                );
            }
            let written = write_within(&run, Path::new("verdicts/a.json"), b"new");
            match what {
                "folder" => assert!(written.unwrap_err().to_string().contains("verdicts/a.json"), "{what}"),
                _ => assert_eq!((written.is_ok(), fs::read(&file).unwrap()), (true, b"new".to_vec()), "{what}"),
            }
            assert!(!fs::symlink_metadata(&file).unwrap().file_type().is_block_device());
            assert_eq!(fs::read_to_string(&victim).unwrap(), "keep", "{what}");
        }
    }

    #[test]
    fn only_the_run_folder_itself_may_be_a_symlink() {
        let place = tempfile::tempdir().unwrap();
        let (run, elsewhere) = (place.path().join("run"), place.path().join("elsewhere"));
        fs::create_dir_all(&run).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("a.json"), "keep").unwrap();
        symlink(&elsewhere, run.join("verdicts")).unwrap();
        for error in [
            open_within(&run, "verdicts/a.json").unwrap_err(),
            write_within(&run, Path::new("verdicts/a.json"), b"new").unwrap_err(),
        ] {
            assert!(error.to_string().contains("verdicts is a symbolic link or no folder"), "{error}");
        }
        assert!(open_within(&run, "../elsewhere/a.json").is_err());
        assert!(open_within(&run, "nothing/a.json").unwrap().is_none());
        symlink(&elsewhere, place.path().join("link")).unwrap();
        assert!(open_within(&place.path().join("link"), "a.json").unwrap().is_some());
        assert_eq!(fs::read_to_string(elsewhere.join("a.json")).unwrap(), "keep");
    }

    #[test]
    fn a_hard_linked_file_may_be_replaced_but_not_appended() {
        let place = tempfile::tempdir().unwrap();
        let victim = place.path().join("victim");
        fs::write(&victim, "keep").unwrap();
        fs::hard_link(&victim, place.path().join("events.jsonl")).unwrap();
        assert!(open_within(place.path(), "events.jsonl").unwrap().is_some());
        let error = open_to_append_within(place.path(), "events.jsonl").unwrap_err().to_string();
        assert!(error.contains("events.jsonl has further names"), "{error}");
        write_within(place.path(), Path::new("events.jsonl"), b"new").unwrap();
        assert_eq!(fs::read_to_string(victim).unwrap(), "keep");
    }
}

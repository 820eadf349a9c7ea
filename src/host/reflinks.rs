//! Copies folders whose files share their blocks with the originals (FICLONE).

use super::paths::{self, Kind};
use super::{files, folders, linux};
use crate::error::{Error, Result};
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;
use std::{fs, io};

/// Copies a folder recursively, with owners and modes, to one that does not exist. Skips files that vanish meanwhile
/// and those for which `leaves_out` is true.
///
/// # Errors
/// An I/O error that names the path; on a filesystem without reflinks it says so.
pub(crate) fn copy(from: &Path, to: &Path, leaves_out: &dyn Fn(&Path) -> bool) -> Result<()> {
    let facts = fs::symlink_metadata(from).map_err(|e| failed(&e, from))?;
    files::make_folder(to, facts.mode() & 0o7777)?;
    chown(to, Some(facts.uid()), Some(facts.gid())).map_err(|e| failed(&e, to))?;
    for path in folders::list(from)?.into_iter().filter(|path| !leaves_out(path)) {
        let target = to.join(path.file_name().unwrap_or_default());
        let copied = |done| files::if_there(done).map(drop).map_err(|e| failed(&e, &path));
        match paths::look_for(&path)?.map(|found| found.kind) {
            Some(Kind::Directory) => copy(&path, &target, leaves_out)?,
            Some(Kind::RegularFile) => copied(copy_file(&path, &target))?,
            Some(Kind::Symlink) => copied(fs::read_link(&path).and_then(|aim| symlink(aim, &target)))?,
            _ => {}
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let source = files::File::open(from)?;
    let facts = source.metadata()?;
    let target = files::create_new(to, facts.mode() & 0o7777)?;
    linux::share_blocks(&target, &source)?;
    std::os::unix::fs::fchown(&target, Some(facts.uid()), Some(facts.gid()))
}

fn failed(e: &io::Error, path: &Path) -> Error {
    let error = Error::host(e.to_string()).while_doing(format!("copy {} by reflink", path.display()));
    match e.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::INVAL | rustix::io::Errno::XDEV) => {
            error.hint("the filesystem makes no reflinks: xfs does unless made with -m reflink=0")
        }
        _ => error,
    }
}

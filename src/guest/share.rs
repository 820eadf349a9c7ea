//! Files that a guest gets from the host: its first script, and this program with the libraries that it is loaded with,
//! so that it runs with any suite's own libraries.

use super::recipe::INIT_SCRIPT;
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::{Host, files, folders, paths, users};
use crate::parse::ldd;
use crate::record::guest_disk;
use std::path::{Component, Path, PathBuf};

/// Folder of the files that are copied to their own paths.
const FILES: &str = "files";

/// Mount point in the guest.
pub const INSIDE: &str = "/run/pgstrata/host";

/// A file for the guest: its absolute path there, and its content.
pub type GivenFile = (PathBuf, Vec<u8>);

/// Fills the folder that a guest starts from. `program` becomes its `pgstrata`; `disks` lists those of its plan.
pub(super) fn fill(
    host: &Host,
    folder: &Path,
    program: &Path,
    shares: &[SharedFolder],
    disks: &str,
    files: &[GivenFile],
) -> Result<()> {
    files::write_whole(&folder.join("init"), INIT_SCRIPT.as_bytes())?;
    files::set_mode(&folder.join("init"), 0o755)?;
    let list = shares.iter().map(|share| {
        let access = if share.writable { "rw,cache=none" } else { "ro,cache=loose" };
        format!("{} {} {access}\n", share.tag, share.inside)
    });
    files::write_whole(&folder.join("shares"), list.collect::<String>().as_bytes())?;
    let place = Path::new(guest_disk::LIST).strip_prefix(INSIDE).map_err(|e| Error::bug(e.to_string()))?;
    files::write_whole(&folder.join(place), disks.as_bytes())?;
    for below in ["bin", "lib", FILES] {
        files::make_folder(&folder.join(below), 0o755)?;
    }
    // Only QEMU, and so the guest, may read them.
    let user = users::server_user(host)?;
    for (path, content) in files {
        let place = below(&folder.join(FILES), path);
        folders::make_passable(place.parent().unwrap_or(folder))?;
        files::write_for(&place, content, 0o400, &user)?;
    }
    add_program(host, folder, program, "pgstrata")
}

/// The place of an absolute path below a folder, which no `..` leaves.
fn below(folder: &Path, path: &Path) -> PathBuf {
    let mut inside = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => inside.push(name),
            Component::ParentDir => drop(inside.pop()),
            _ => {}
        }
    }
    folder.join(inside)
}

/// Adds a program of the host under a name on the guest's PATH.
///
/// # Errors
/// If it cannot be read, or its libraries cannot be determined.
pub fn add_program(host: &Host, folder: &Path, program: &Path, name: &str) -> Result<()> {
    let libraries = host.run(&Command::new("ldd").arg(program)).map(|printed| ldd::libraries(&printed.stdout));
    // ldd fails on a static program.
    let libraries = libraries.unwrap_or_default();
    copy_program(program, &folder.join("lib").join(name))?;
    let mut loader = None;
    for library in &libraries {
        let Some(file) = Path::new(library).file_name() else { continue };
        let to = folder.join("lib").join(file);
        if !paths::exists(&to) {
            copy_program(Path::new(library), &to)?;
        }
        if file.to_string_lossy().starts_with("ld-") {
            loader = Some(file.to_string_lossy().into_owned());
        }
    }
    let start = match loader {
        Some(loader) => format!("{INSIDE}/lib/{loader} --library-path {INSIDE}/lib {INSIDE}/lib/{name}"),
        None => format!("{INSIDE}/lib/{name}"),
    };
    let script = folder.join("bin").join(name);
    files::write_whole(&script, format!("#!/bin/sh\nexec {start} \"$@\"\n").as_bytes())?;
    files::set_mode(&script, 0o755)
}

fn copy_program(from: &Path, to: &Path) -> Result<()> {
    folders::copy_file(from, to)?;
    files::set_mode(to, 0o755)
}

/// A folder of the host that the guest mounts.
#[derive(Debug, Clone)]
pub struct SharedFolder {
    pub tag: String,
    pub folder: PathBuf,
    /// Mount point in the guest.
    pub inside: String,
    pub writable: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_plan_stays_below_its_folder() {
        for (path, place) in [
            ("/srv/a.sql", "/files/srv/a.sql"),
            ("/../../etc/shadow", "/files/etc/shadow"),
            ("/srv/plans/../../../../etc/passwd", "/files/etc/passwd"),
            ("/srv/./plans/../sql/a.sql", "/files/srv/sql/a.sql"),
        ] {
            assert_eq!(below(Path::new("/files"), Path::new(path)), Path::new(place), "{path}");
        }
    }
}

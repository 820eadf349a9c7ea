//! Folders that a run makes: its private one, mount points, data folders of `directory` stacks.
//!
//! Enforces what may be removed: a real folder, named `pgstrata-...`, listed in the ledger, with nothing mounted in or
//! below it.

use super::ledger::{Ledger, Thing};
use super::mount_table;
use crate::error::{Context, Error, Result};
use crate::host::{Host, files, folders, paths, users};
use std::path::{Path, PathBuf};

/// Ledger owner of folders that belong to no layer.
pub const OWNER: &str = "folder";

/// Prefix of the name of everything that pgstrata makes.
pub const PREFIX: &str = "pgstrata-";

/// Others may traverse the folder to reach what they were given, but not list it.
const PASSABLE: u32 = 0o711;

/// Makes the private folder of a run, for mount points, sockets and the like: `/run/pgstrata-<run id>` for root, else
/// in the temporary folder. Others may traverse it, but not list it.
///
/// # Errors
/// When it already exists, or cannot be entered into the ledger or made.
pub fn make_for_run(ledger: &Ledger, run_id: &str) -> Result<PathBuf> {
    let base = if users::is_root() { PathBuf::from("/run") } else { std::env::temp_dir() };
    let base = std::path::absolute(&base).or_host(|| format!("find {}", base.display()))?;
    let path = base.join(format!("{PREFIX}{run_id}"));
    make(ledger, OWNER, &path)?;
    Ok(path)
}

/// Enters a folder into the ledger and makes it. Its parent must exist, and its name must begin with [`PREFIX`].
///
/// # Errors
/// When the name is not ours, the folder already exists, or it cannot be made.
pub fn make(ledger: &Ledger, owner: &str, path: &Path) -> Result<()> {
    check_name(path)?;
    // An existing folder is somebody else's: an entry would have it removed.
    if paths::exists(path) {
        return Err(Error::host(format!("the folder {} already exists", path.display()))
            .hint("if a killed run left it: `pgstrata clean`, with the --state folder of that run, removes it"));
    }
    ledger.enter(Thing::new(owner, "folder").with_path("path", path)?)?;
    files::make_folder(path, PASSABLE)
}

/// Removes a folder of the ledger with all its contents. Does nothing if it is gone.
///
/// # Errors
/// When it is not a folder named like ours, or something is mounted in or below it.
pub fn undo(host: &Host, thing: &Thing) -> Result<()> {
    let path = Path::new(thing.mark("path")?);
    check_name(path)?;
    let Some(found) = paths::look_for(path)? else { return Ok(()) };
    if found.kind != paths::Kind::Directory {
        return Err(Error::host(format!("{} is not the folder that pgstrata created", path.display())));
    }
    let real = paths::resolve(path)?;
    if let Some(mounted) = mount_table::table(host)?.iter().find(|mount| Path::new(&mount.target).starts_with(&real)) {
        return Err(Error::host(format!("{} is still mounted on {}", mounted.source, mounted.target))
            .hint("stop what uses it, then run `pgstrata clean`"));
    }
    folders::remove_all(path)
}

/// True if a path, without `..`, has a component named `pgstrata-...`: everything that pgstrata makes has one.
pub fn has_our_name(path: &Path) -> bool {
    path.is_absolute()
        && path.components().all(|part| part.as_os_str() != "..")
        && path.components().any(|part| part.as_os_str().to_string_lossy().starts_with(PREFIX))
}

fn check_name(path: &Path) -> Result<()> {
    let plain = path.is_absolute() && path.components().all(|part| part.as_os_str() != "..");
    let ours = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    if plain && ours {
        Ok(())
    } else {
        Err(Error::bug(format!("{} is not the path of a folder named {PREFIX}...", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::command::Command;
    use std::fs;

    #[test]
    fn a_folder_is_made_listed_and_removed_with_its_contents() {
        let place = tempfile::tempdir().unwrap();
        let ledger = Ledger::create(&place.path().join("ledger"), "r1").unwrap();
        let path = place.path().join("pgstrata-r1");
        make(&ledger, OWNER, &path).unwrap();
        fs::write(path.join("file"), "x").unwrap();
        let (_, thing) = ledger.open_things().remove(0);
        let host = Host::this();
        undo(&host, &thing).unwrap();
        assert!(!path.exists());
        undo(&host, &thing).unwrap();
    }

    #[test]
    fn what_is_not_a_folder_named_like_ours_stays() {
        let place = tempfile::tempdir().unwrap();
        let host = Host::this();
        let thing = |path: &Path| Thing::new(OWNER, "folder").with("path", path.to_str().unwrap());
        let other = place.path().join("other");
        fs::create_dir(&other).unwrap();
        assert!(undo(&host, &thing(&other)).is_err());
        let link = place.path().join("pgstrata-link");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        assert!(undo(&host, &thing(&link)).is_err());
        assert!(undo(&host, &thing(&place.path().join("other/../pgstrata-x"))).is_err());
        assert!(undo(&host, &Thing::new(OWNER, "folder")).is_err());
        assert!(other.exists());
    }

    #[test]
    fn a_folder_with_a_mount_below_it_stays() {
        if !users::is_root() {
            println!("skipped: mounting needs root");
            return;
        }
        let host = Host::this();
        let place = tempfile::tempdir().unwrap();
        let ours = place.path().join("pgstrata-x");
        let inner = ours.join("inner");
        fs::create_dir_all(&inner).unwrap();
        host.run(&Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&inner)).unwrap();
        fs::write(inner.join("precious"), "x").unwrap();
        let thing = Thing::new(OWNER, "folder").with("path", ours.to_str().unwrap());
        let refused = undo(&host, &thing);
        let kept = inner.join("precious").exists();
        host.run(&Command::new("umount").arg(&inner)).unwrap();
        assert!(refused.unwrap_err().to_string().contains("still mounted"));
        assert!(kept);
        undo(&host, &thing).unwrap();
    }
}

//! Links in a data folder that lead to the folders of a recording: a replay mounts the same disks elsewhere.

use super::opening::Folders;
use super::record::folder_of;
use crate::error::Result;
use crate::host::folders::list;
use crate::host::{Host, files};
use crate::record::stack::End;
use std::path::{Path, PathBuf};

/// Redirects `pg_wal` and the tablespaces to the current location of these folders.
///
/// # Errors
/// If a link cannot be created.
pub fn lead_to(host: &Host, data: &Path, folders: &Folders) -> Result<()> {
    let spaces = data.join("pg_tblspc");
    // If it cannot be read, the server will run into that itself.
    let listed = list(&spaces).unwrap_or_default();
    for link in listed.into_iter().chain([data.join("pg_wal")]) {
        // Not a link: WAL lies with the data, or the cut left something else, which the server will run into.
        let Some(target) = host.link(&link) else { continue };
        if let Some(now) = moved(&target, folders).filter(|now| *now != target) {
            files::remove(&link)?;
            files::make_link(&link, &now)?;
        }
    }
    Ok(())
}

/// Current location of a target below one of pgstrata's own folders.
fn moved(target: &Path, folders: &Folders) -> Option<PathBuf> {
    folders.iter().filter(|(end, _)| **end != End::Data).find_map(|(end, folder)| {
        let now = folder_of(end, folder);
        let mut above = target.ancestors();
        let then = above.find(|above| above.file_name() == now.file_name())?;
        Some(now.join(target.strip_prefix(then).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn links_of_a_recording_point_to_its_current_mounts() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data/pgstrata-data/cluster");
        fs::create_dir_all(data.join("pg_tblspc")).unwrap();
        let link = |name: &str, target: &str| std::os::unix::fs::symlink(target, data.join(name)).unwrap();
        link("pg_wal", "/run/pgstrata-1/pgstrata-1.two.log/pgstrata-wal/pg_wal");
        link("pg_tblspc/16384", "/run/pgstrata-1/pgstrata-1.two.cold/pgstrata-cold");
        link("pg_tblspc/16385", "/elsewhere");
        let at = |name: &str| place.path().join(name);
        let ends = [(End::Data, "data"), (End::Wal, "log"), (End::Tablespace("cold".to_owned()), "cold")];
        let folders: Folders = ends.into_iter().map(|(end, name)| (end, at(name))).collect();
        for _ in 0..2 {
            lead_to(&Host::this(), &data, &folders).unwrap();
            let target = |name: &str| fs::read_link(data.join(name)).unwrap();
            assert_eq!(target("pg_wal"), at("log/pgstrata-wal/pg_wal"));
            assert_eq!(target("pg_tblspc/16384"), at("cold/pgstrata-cold"));
            assert_eq!(target("pg_tblspc/16385"), Path::new("/elsewhere"));
        }
        // WAL stored with the data is not a link.
        let plain = tempfile::tempdir().unwrap();
        fs::create_dir(plain.path().join("pg_wal")).unwrap();
        lead_to(&Host::this(), plain.path(), &folders).unwrap();
        assert!(plain.path().join("pg_wal").is_dir());
    }
}

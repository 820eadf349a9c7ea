//! The folder through which a run in a guest comes out: its run folder grows there, trial by trial, below the host's folder of
//! results. QEMU writes it as its own user; at the end the run folder is copied to its place, so that it is the person's.

use super::vm::Shared;
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::files::File;
use crate::host::{Host, files, folders, paths, users};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where the guest sees it.
pub const INSIDE: &str = "/run/pgstrata/results";

/// The folder; removed at the end, with what was not copied.
#[derive(Debug)]
pub struct Outlet {
    results: PathBuf,
    folder: PathBuf,
    /// The events of the run, locked as by a program that writes them: the guest's own lock is not seen here.
    live: OnceLock<File>,
}

impl Outlet {
    /// Makes it in a folder of results, with the plan in it under its own name.
    ///
    /// # Errors
    /// When it cannot be made, or the user that QEMU runs as may not reach it.
    pub fn make(host: &Host, results: &Path, plan: (&str, &[u8])) -> Result<Outlet> {
        folders::make_all(results, 0o755)?;
        let user = users::server_user(host)?;
        if let Some(closed) = paths::closed_to(results, &user) {
            let why = format!("QEMU runs as {} and may not enter {}", user.name, closed.display());
            return Err(Error::host(why).hint("name another folder with --results DIR"));
        }
        let folder = results.join(format!(".guest-{}", files::random_id()?));
        files::make_folder(&folder, 0o755)?;
        let outlet = Outlet { results: results.to_path_buf(), folder, live: OnceLock::new() };
        files::write_for(&outlet.folder.join(plan.0), plan.1, 0o644, &user)?;
        files::give_to(&outlet.folder, &user)?;
        Ok(outlet)
    }

    #[must_use]
    pub fn shared(&self) -> Shared {
        Shared { tag: "results".to_owned(), folder: self.folder.clone(), inside: INSIDE.to_owned(), writable: true }
    }

    /// The run folder that has appeared in it, and its name; `None` before the run begins.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn run_folder(&self) -> Result<Option<(PathBuf, String)>> {
        let paths = folders::list(&self.folder)?;
        let found = paths.into_iter().find(|path| paths::is_file(&path.join("run.json")));
        Ok(found.and_then(|path| Some((path.clone(), path.file_name()?.to_str()?.to_owned()))))
    }

    /// Shows the growing run folder under its final name, by a link; gives that name. Nothing is done where it is there.
    ///
    /// # Errors
    /// When the link cannot be made.
    pub fn show(&self) -> Result<Option<PathBuf>> {
        let Some((inside, name)) = self.run_folder()? else { return Ok(None) };
        let place = self.results.join(&name);
        if paths::look_for(&place)?.is_none() {
            let target = inside.strip_prefix(&self.results).unwrap_or(&inside);
            files::make_link(&place, target)?;
        }
        if self.live.get().is_none() {
            let events = files::open(&inside.join("events.jsonl"))?;
            // Whoever asks for the state of the run holds it for a moment.
            if files::lock(&events).is_ok() {
                self.live.get_or_init(|| events);
            }
        }
        Ok(Some(place))
    }

    /// Copies the run folder to its place, as ours. `None` when the run made none.
    ///
    /// # Errors
    /// When it cannot be copied; it then stays where it is.
    pub fn take_out(self, host: &Host) -> Result<Option<PathBuf>> {
        let Some((inside, name)) = self.run_folder()? else { return Ok(None) };
        let place = self.results.join(&name);
        let part = files::beside(&place);
        host.run(&Command::new("cp").args(["-r", "--no-preserve=ownership", "--"]).arg(&inside).arg(&part))?;
        if paths::look_for(&place)?.is_some_and(|found| found.kind == paths::Kind::Symlink) {
            files::remove(&place)?;
        }
        folders::rename(&part, &place)?;
        Ok(Some(place))
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        // With no run folder in place of the link there is something to keep.
        let name = self.run_folder().ok().flatten().map(|(_, name)| name);
        let kept = name.is_some_and(|name| {
            !matches!(paths::look_for(&self.results.join(name)), Ok(Some(found)) if found.kind == paths::Kind::Directory)
        });
        if !kept {
            drop(folders::remove_all(&self.folder));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_folder_is_seen_while_it_grows_and_is_ours_at_its_end() {
        let place = tempfile::tempdir().unwrap();
        files::set_mode(place.path(), 0o755).unwrap();
        let (host, results) = (Host::this(), place.path().join("results"));
        let outlet = Outlet::make(&host, &results, ("p.toml", b"x")).unwrap();
        assert_eq!(outlet.show().unwrap(), None);
        let inside = outlet.shared().folder.join("2026-p");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(inside.join("run.json"), "{}").unwrap();
        std::fs::write(inside.join("events.jsonl"), "").unwrap();
        let shown = outlet.show().unwrap().unwrap();
        assert_eq!(shown, results.join("2026-p"));
        assert!(shown.join("run.json").is_file());
        assert_eq!(outlet.take_out(&host).unwrap(), Some(shown.clone()));
        assert!(shown.join("run.json").is_file() && !shown.is_symlink());
        assert_eq!(folders::list(&results).unwrap(), [shown]);
    }

    #[test]
    fn an_outlet_without_a_run_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        files::set_mode(place.path(), 0o755).unwrap();
        let outlet = Outlet::make(&Host::this(), place.path(), ("p.toml", b"x")).unwrap();
        assert_eq!(outlet.take_out(&Host::this()).unwrap(), None);
        assert_eq!(folders::list(place.path()).unwrap(), [] as [PathBuf; 0]);
    }
}

//! Shared folder through which a run in a guest delivers its results: the run folder grows in it, trial by trial, below
//! the host's folder of results. QEMU writes it as its own user; at the end the run folder is copied to its place, so
//! that it belongs to our user.

use super::share::SharedFolder;
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::files::{self, File};
use crate::host::users::{self, User};
use crate::host::{Host, folders, paths};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Mount point in the guest.
pub const INSIDE: &str = "/run/pgstrata/results";

/// File of a run folder that its writer locks.
const EVENTS: &str = "events.jsonl";
/// Prefix of outlet names.
const PREFIX: &str = ".guest-";

fn is_outlet(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
}

fn is_link(path: &Path) -> Result<bool> {
    Ok(paths::look_for(path)?.is_some_and(|found| found.kind == paths::Kind::Symlink))
}

/// A path beside this one, after removing the obsolete copy that a killed program may have left there.
fn beside(place: &Path) -> Result<PathBuf> {
    let path = files::beside(place);
    folders::remove_all(&path).map(|()| path)
}

/// The folder; removed at the end, unless it contains something not copied.
#[derive(Debug)]
pub struct Outlet {
    results: PathBuf,
    folder: PathBuf,
    /// The run's events, locked as by their writer: the guest's own lock is not visible on the host.
    live: OnceLock<File>,
    /// True if the folder contains something that exists nowhere else.
    keeps: bool,
}

impl Outlet {
    /// Makes an outlet in a folder of results.
    ///
    /// # Errors
    /// If it cannot be made, or is inaccessible to the user that QEMU runs as.
    pub fn make(host: &Host, results: &Path) -> Result<Outlet> {
        folders::make_all(results, 0o755)?;
        let user = users::server_user(host)?;
        Outlet::empty(results, &user)
            .map_err(|e| if e.hint_text().is_some() { e.hint("name another folder with --results DIR") } else { e })
    }

    /// Makes an outlet beside the folder of a stopped run, given by its absolute path, with a copy of that folder in
    /// it. A link to the copy takes the folder's place, as at the beginning of a run; this way a run whose program was
    /// killed can be resumed too.
    ///
    /// # Errors
    /// If another pgstrata writes to the folder, it cannot be copied, or is inaccessible to the user that QEMU runs as.
    pub fn around(host: &Host, place: &Path) -> Result<Outlet> {
        let user = users::server_user(host)?;
        let name = place.file_name().ok_or_else(|| Error::user(format!("{} has no name", place.display())))?;
        let own = paths::resolve(place)?;
        let before = files::open_within(&own, EVENTS)?
            .ok_or_else(|| Error::store(format!("{} is missing", own.join(EVENTS).display())))?;
        files::soon(|| files::lock(&before)).map_err(|_| {
            Error::host(format!("another pgstrata is writing to {}", place.display()))
                .hint("wait for it, or stop it first")
        })?;
        let outlet = Outlet::empty(place.parent().unwrap_or(place), &user)?;
        let copy = outlet.folder.join(name);
        host.run(&Command::new("cp").args(["-r", "--no-preserve=ownership", "--"]).arg(&own).arg(&copy))?;
        if users::is_root() {
            files::give_tree_to(&copy, &user)?;
        }
        if is_link(place)? {
            files::remove(place)?;
            outlet.show()?;
            // The killed program left the folder in an outlet of its own.
            if let Some(old) = own.parent().filter(|old| is_outlet(old)) {
                folders::remove_all(old)?;
            }
        } else {
            let aside = beside(place)?;
            folders::rename(place, &aside)?;
            outlet.show()?;
            folders::remove_all(&aside)?;
        }
        Ok(outlet)
    }

    /// Copies the folders whose names begin with `prefix` to their place, owned by our user; returns their paths there.
    ///
    /// # Errors
    /// If one cannot be copied; all then stay in the outlet.
    pub fn take_folders(mut self, host: &Host, prefix: &str) -> Result<Vec<PathBuf>> {
        self.keeps = true;
        let mut places = Vec::new();
        for inside in folders::list(&self.folder)? {
            let Some(name) = inside.file_name().filter(|name| name.to_string_lossy().starts_with(prefix)) else {
                continue;
            };
            let place = self.results.join(name);
            let part = beside(&place)?;
            let copy = Command::new("cp").args(["-r", "--no-preserve=ownership", "--sparse=always", "--"]);
            host.run(&copy.arg(&inside).arg(&part))
                .map_err(|e| e.or_hint(format!("what came out of the guest is in {}", self.folder.display())))?;
            folders::rename(&part, &place)?;
            places.push(place);
        }
        self.keeps = false;
        Ok(places)
    }

    fn empty(results: &Path, user: &User) -> Result<Outlet> {
        if let Some(closed) = paths::closed_to(results, user) {
            let why = format!("QEMU runs as {} and may not enter {}", user.name, closed.display());
            return Err(Error::host(why).hint(format!("chmod a+x {}", closed.display())));
        }
        let folder = results.join(format!("{PREFIX}{}", files::random_id()?));
        files::make_folder(&folder, 0o755)?;
        files::give_to(&folder, user)?;
        Ok(Outlet { results: results.to_path_buf(), folder, live: OnceLock::new(), keeps: false })
    }

    pub fn shared(&self) -> SharedFolder {
        let (tag, folder, inside) = ("results".to_owned(), self.folder.clone(), INSIDE.to_owned());
        SharedFolder { tag, folder, inside, writable: true }
    }

    /// The run folder in the outlet, and its name; `None` before the run begins.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn run_folder(&self) -> Result<Option<(PathBuf, String)>> {
        let paths = folders::list(&self.folder)?;
        let found = paths.into_iter().find(|path| paths::is_file(&path.join("run.json")));
        Ok(found.and_then(|path| Some((path.clone(), path.file_name()?.to_str()?.to_owned()))))
    }

    /// Links the growing run folder under its final name, unless that exists; returns the path.
    ///
    /// # Errors
    /// If the link cannot be made.
    pub fn show(&self) -> Result<Option<PathBuf>> {
        let Some((inside, name)) = self.run_folder()? else { return Ok(None) };
        let place = self.results.join(&name);
        if paths::look_for(&place)?.is_none() {
            let target = inside.strip_prefix(&self.results).unwrap_or(&inside);
            files::make_link(&place, target)?;
        }
        if self.live.get().is_none() {
            let events = files::open(&inside.join(EVENTS))?;
            // A reader that checks the state of the run holds the lock for a moment.
            if files::lock(&events).is_ok() {
                self.live.get_or_init(|| events);
            }
        }
        Ok(Some(place))
    }

    /// Copies the run folder to its place, owned by our user; `None` if the run made none.
    ///
    /// # Errors
    /// If it cannot be copied; it then stays in the outlet.
    pub fn take_out(self, host: &Host) -> Result<Option<PathBuf>> {
        let Some((inside, name)) = self.run_folder()? else { return Ok(None) };
        let place = self.results.join(&name);
        let part = beside(&place)?;
        host.run(&Command::new("cp").args(["-r", "--no-preserve=ownership", "--"]).arg(&inside).arg(&part))?;
        if is_link(&place)? {
            files::remove(&place)?;
        }
        folders::rename(&part, &place)?;
        Ok(Some(place))
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        // Unless the run folder has replaced the link, its data exist only here.
        let name = self.run_folder().ok().flatten().map(|(_, name)| name);
        let kept = name.is_some_and(|name| {
            !matches!(paths::look_for(&self.results.join(name)), Ok(Some(found)) if found.kind == paths::Kind::Directory)
        });
        if !kept && !self.keeps {
            drop(folders::remove_all(&self.folder));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_folder_is_visible_while_growing_and_finally_ours() {
        let place = tempfile::tempdir().unwrap();
        files::set_mode(place.path(), 0o755).unwrap();
        let (host, results) = (Host::this(), place.path().join("results"));
        let outlet = Outlet::make(&host, &results).unwrap();
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

    /// The folder of a run in `results`, as another program left it.
    fn run_folder(results: &Path) -> PathBuf {
        let folder = results.join("2026-p");
        std::fs::create_dir_all(folder.join("trials/a")).unwrap();
        std::fs::write(folder.join("run.json"), "{}").unwrap();
        std::fs::write(folder.join(EVENTS), "one\n").unwrap();
        folder
    }

    #[test]
    fn a_resumed_run_works_in_a_copy_replacing_its_folder() {
        let results = tempfile::tempdir().unwrap();
        files::set_mode(results.path(), 0o755).unwrap();
        let (host, folder) = (Host::this(), run_folder(results.path()));
        let outlet = Outlet::around(&host, &folder).unwrap();
        assert!(folder.is_symlink() && folder.join("trials/a").is_dir());
        let inside = outlet.run_folder().unwrap().unwrap().0;
        let user = users::server_user(&host).unwrap();
        for path in [inside.clone(), inside.join(EVENTS), inside.join("trials/a")] {
            assert_eq!(paths::look_at(&path).unwrap().uid, user.uid, "{}", path.display());
        }
        std::fs::write(inside.join(EVENTS), "one\ntwo\n").unwrap();
        assert_eq!(outlet.take_out(&host).unwrap(), Some(folder.clone()));
        assert_eq!(std::fs::read_to_string(folder.join(EVENTS)).unwrap(), "one\ntwo\n");
        assert_eq!(folders::list(results.path()).unwrap(), [folder]);
    }

    #[test]
    fn a_run_of_a_killed_program_resumes_from_its_folder() {
        let results = tempfile::tempdir().unwrap();
        files::set_mode(results.path(), 0o755).unwrap();
        let (host, folder) = (Host::this(), results.path().join("2026-p"));
        let left = run_folder(&results.path().join(".guest-0badcafe"));
        files::make_link(&folder, Path::new(".guest-0badcafe/2026-p")).unwrap();
        let outlet = Outlet::around(&host, &folder).unwrap();
        assert!(!left.exists() && folder.join("trials/a").is_dir());
        outlet.take_out(&host).unwrap();
        assert!(!folder.is_symlink());
        assert_eq!(folders::list(results.path()).unwrap(), [folder]);
    }

    #[test]
    fn a_folder_that_somebody_writes_to_stays_as_it_is() {
        let results = tempfile::tempdir().unwrap();
        files::set_mode(results.path(), 0o755).unwrap();
        let folder = run_folder(results.path());
        let writer = files::open(&folder.join(EVENTS)).unwrap();
        files::lock(&writer).unwrap();
        let error = Outlet::around(&Host::this(), &folder).unwrap_err();
        assert!(error.to_string().contains("another pgstrata is writing"), "{error}");
        assert_eq!(folders::list(results.path()).unwrap(), [folder]);
    }

    #[test]
    fn only_folders_with_the_prefix_leave_the_guest() {
        let results = tempfile::tempdir().unwrap();
        files::set_mode(results.path(), 0o755).unwrap();
        let outlet = Outlet::make(&Host::this(), results.path()).unwrap();
        let evidence = outlet.shared().folder.join("cut-1a2b/ext4");
        std::fs::create_dir_all(&evidence).unwrap();
        std::fs::write(evidence.join("log"), "x").unwrap();
        let taken = outlet.take_folders(&Host::this(), "cut-").unwrap();
        assert_eq!(taken, [results.path().join("cut-1a2b")]);
        assert_eq!(std::fs::read_to_string(taken[0].join("ext4/log")).unwrap(), "x");
        assert_eq!(folders::list(results.path()).unwrap(), taken);
    }

    #[test]
    fn an_outlet_without_a_run_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        files::set_mode(place.path(), 0o755).unwrap();
        let outlet = Outlet::make(&Host::this(), place.path()).unwrap();
        assert_eq!(outlet.take_out(&Host::this()).unwrap(), None);
        assert_eq!(folders::list(place.path()).unwrap(), [] as [PathBuf; 0]);
    }
}

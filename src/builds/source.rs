//! Sources of a build: a Debian package, a tarball, or a commit of a checkout. Each becomes a tarball with a checksum
//! of its content.

use super::needs::is_checkout;
use super::shelf::{self, Shelf};
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::{Host, files, paths, users};
use crate::record::build::BuildSpec;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Size limit of a tarball, bytes; PostgreSQL's have 30 MB.
const MAX_TARBALL: u64 = 1 << 30;

/// A source whose content is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BuildSource {
    /// The tarball of a package, in the cache.
    Package {
        package: Package,
        file: PathBuf,
    },
    Tarball {
        file: PathBuf,
        sum: String,
    },
    Commit {
        folder: PathBuf,
        commit: String,
        tree: String,
    },
}

/// A Debian source package as fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Package {
    /// Name and version, such as `postgresql-15 15.18-0+deb12u1`.
    pub(super) name: String,
    /// Name of PostgreSQL's own tarball in it.
    pub(super) file: String,
    /// SHA-256 of that tarball.
    pub(super) sum: String,
}

impl BuildSource {
    /// The source that a plan asks for; `None` for a package that is not in the cache.
    ///
    /// # Errors
    /// If a tarball or checkout cannot be read.
    pub(super) fn known(host: &Host, shelf: &Shelf, spec: &BuildSpec) -> Result<Option<BuildSource>> {
        let Some(named) = &spec.source else {
            let folder = shelf.package_folder(spec);
            let Ok(text) = files::read_text(&folder.join(shelf::NOTE)) else { return Ok(None) };
            let package: Package = serde_json::from_str(&text).map_err(|e| {
                Error::host(format!("{}: {e}", folder.display())).hint(format!("remove it: rm -r {}", folder.display()))
            })?;
            let file = folder.join(&package.file);
            return Ok(Some(BuildSource::Package { package, file }));
        };
        let path = PathBuf::from(named);
        if is_checkout(spec) {
            let shown = git(host, &path, &["rev-parse", "HEAD", "HEAD^{tree}"])?;
            let mut lines = shown.lines().map(str::to_owned);
            let (Some(commit), Some(tree)) = (lines.next(), lines.next()) else {
                return Err(Error::tool(format!("git names no commit of {}", path.display())));
            };
            return Ok(Some(BuildSource::Commit { folder: path, commit, tree }));
        }
        let bytes = files::read_given(&path, MAX_TARBALL, || format!("read the source {}", path.display()))?;
        Ok(Some(BuildSource::Tarball { file: path, sum: files::sha256(&bytes) }))
    }

    /// Checksum or git tree hash that identifies the content.
    pub(super) fn content(&self) -> &str {
        match self {
            BuildSource::Package { package, .. } => &package.sum,
            BuildSource::Tarball { sum, .. } => sum,
            BuildSource::Commit { tree, .. } => tree,
        }
    }

    /// Description for people, with the checksum.
    pub(super) fn described(&self) -> String {
        match self {
            BuildSource::Package { package: Package { name, file, sum }, .. } => {
                format!("{file} of {name}, without Debian's patches, SHA-256 {sum}")
            }
            BuildSource::Tarball { file, sum } => format!("{}, SHA-256 {sum}", file.display()),
            BuildSource::Commit { folder, commit, tree } => {
                format!("commit {commit} of {}, tree {tree}", folder.display())
            }
        }
    }

    /// Notes that a checkout contains changes that are not in its commit.
    pub(super) fn note(&self, host: &Host, spec: &BuildSpec) -> Option<String> {
        let BuildSource::Commit { folder, commit, .. } = self else { return None };
        let status = git(host, folder, &["status", "--porcelain", "--untracked-files=no"]).ok()?;
        let named = spec.source.as_deref().unwrap_or_default();
        (!status.trim().is_empty())
            .then(|| format!("{named} has uncommitted changes, which are not built: what is built is commit {commit}"))
    }

    /// Puts the tarball where the user who builds can read it.
    pub(super) fn put(&self, host: &Host, to: &Path) -> Result<()> {
        match self {
            BuildSource::Package { file, .. } | BuildSource::Tarball { file, .. } => {
                let bytes = files::read_given(file, MAX_TARBALL, || format!("read the source {}", file.display()))?;
                // The tarball may have changed since.
                if files::sha256(&bytes) != self.content() {
                    return Err(Error::host(format!("{} changed while it was about to be built", file.display())));
                }
                files::write_for(to, &bytes, 0o644, &users::server_user(host)?)
            }
            BuildSource::Commit { folder, commit, .. } => {
                let name = to.to_string_lossy();
                git(host, folder, &["archive", "--format=tar", "--prefix=postgresql/", "-o", &name, commit]).map(drop)
            }
        }
    }
}

/// Runs git in a checkout as the user who builds: a checkout's own configuration can name programs.
fn git(host: &Host, folder: &Path, args: &[&str]) -> Result<String> {
    let user = users::server_user(host)?;
    let command =
        Command::new("git").args(["-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-C"]).arg(folder).args(args);
    host.run(&command.user(&user)).map(|output| output.stdout).map_err(|e| match paths::closed_to(folder, &user) {
        Some(closed) => Error::user(format!(
            "{} cannot be read by `{}`, as whom PostgreSQL is built: {} is closed to that user",
            folder.display(),
            user.name,
            closed.display()
        ))
        .hint(format!("chmod a+x {}, or give a tarball", closed.display())),
        None => Error::user(e.to_string()).hint("`source` is a tarball, or a git checkout with a commit"),
    })
}

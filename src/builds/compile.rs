//! Builds and installs PostgreSQL from a tarball, as a user who is not root.

use super::needs;
use super::recipe::BuildRecipe;
use super::shelf::BuildTask;
use super::source::BuildSource;
use crate::error::{Error, Result};
use crate::host::command::{Command, last_lines};
use crate::host::followed::FollowedProgram;
use crate::host::users::User;
use crate::host::{files, paths};
use crate::parse::pg_version;
use crate::record::build::BuildSpec;
use crate::record::facts::ServerFacts;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A build takes a minute on a desktop, and a quarter of an hour on a small machine that others use.
const LIMIT: Duration = Duration::from_secs(2 * 3600);

/// The server answers in milliseconds; beyond this it hangs.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Sizes to query from the server.
const SIZES: [&str; 3] = ["wal_block_size", "block_size", "segment_size"];

/// A build task and its source.
pub(super) struct Compile<'a> {
    pub task: &'a BuildTask<'a>,
    pub log: &'a Path,
    pub recipe: &'a BuildRecipe,
    pub user: User,
}

impl Compile<'_> {
    fn tree(&self) -> PathBuf {
        self.task.work.join("tree")
    }

    /// Destination of `make install`: the final path, below a folder of ours.
    pub(super) fn installed(&self) -> PathBuf {
        let place = self.recipe.place.strip_prefix("/").unwrap_or(&self.recipe.place);
        self.task.work.join("out").join(place)
    }

    pub(super) fn unpack(&self, source: &BuildSource, spec: &BuildSpec) -> Result<()> {
        let (tarball, tree) = (self.task.work.join("source.tar"), self.tree());
        source.put(self.task.host, &tarball)?;
        files::make_folder(&tree, 0o755)?;
        files::give_to(&tree, &self.user)?;
        let tar = Command::new("tar").args(["--extract", "--no-same-owner", "--strip-components=1", "--file"]);
        let tar = tar.arg(&tarball).arg("--directory").arg(&tree).user(&self.user);
        let (log, &BuildTask { host, interrupt, .. }) = (self.log, self.task);
        if !(FollowedProgram { host, log, limit: LIMIT, interrupt }).run(&tar, &mut |_| ())? {
            let said = last_lines(&String::from_utf8_lossy(&files::read(log)?), 5);
            return Err(Error::user(format!("the source cannot be unpacked:\n{said}"))
                .hint("`source` is a tarball of PostgreSQL"));
        }
        if !paths::is_file(&tree.join("configure")) {
            return Err(Error::user("the source has no `configure`: it is not a tarball of PostgreSQL"));
        }
        for (patch, name) in self.recipe.patches.iter().zip(&spec.patches) {
            let command = Command::new("patch").args(["--strip=1", "--batch", "--forward"]).stdin(patch.clone());
            let applied = self.task.host.run(&command.cwd(&tree).user(&self.user));
            applied.map_err(|e| Error::user(e.to_string()).while_doing(format!("apply the patch {name}")))?;
        }
        Ok(())
    }

    pub(super) fn configure(&self, report: &mut dyn FnMut(&str)) -> Result<()> {
        let prefix = format!("--prefix={}", self.recipe.place.display());
        let mut words = vec!["./configure".to_owned(), prefix];
        words.extend(self.recipe.configure.iter().cloned());
        self.follow(&words, report)
    }

    pub(super) fn make(&self, report: &mut dyn FnMut(&str)) -> Result<()> {
        let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut compiled = 0u32;
        self.follow(&["make".to_owned(), format!("-j{jobs}"), "-C".to_owned(), "src".to_owned()], &mut |line| {
            if line.contains(" -c -o ") {
                compiled += 1;
                report(&format!("{compiled} files compiled"));
            }
        })
    }

    pub(super) fn install(&self, report: &mut dyn FnMut(&str)) -> Result<()> {
        let into = format!("DESTDIR={}", self.task.work.join("out").display());
        self.follow(&["make", "-C", "src", "install", &into].map(str::to_owned), report)?;
        // With a umask such as 077 another server user could not run it.
        let open = Command::new("chmod").args(["-R", "a+rX"]).arg(self.task.work.join("out")).user(&self.user);
        self.task.host.run(&open).map(drop)
    }

    /// Version reported by the new server.
    ///
    /// # Errors
    /// If the server differs from the build requested.
    pub(super) fn check(&self, spec: &BuildSpec) -> Result<String> {
        let postgres = || Command::new(self.installed().join("bin/postgres")).user(&self.user).limit(ANSWER_LIMIT);
        let version = pg_version::parse(&self.task.host.run(&postgres().arg("--version"))?.stdout)?.text;
        let mut key_settings = BTreeMap::new();
        for name in SIZES {
            let ask = postgres().args(["-C", name, "-D", "/proc", "-c", "config_file=/dev/null"]);
            key_settings.insert(name.to_owned(), self.task.host.run(&ask)?.stdout.trim().to_owned());
        }
        let configure = Some(self.recipe.configure.join(" "));
        let facts = ServerFacts { version: version.clone(), key_settings, configure, ..ServerFacts::default() };
        let differing = spec.differences(&facts);
        if differing.is_empty() { Ok(version) } else { Err(Error::tool(differing.join("; "))) }
    }

    fn follow(&self, words: &[String], report: &mut dyn FnMut(&str)) -> Result<()> {
        let (log, &BuildTask { host, interrupt, .. }) = (self.log, self.task);
        // `env` resolves `./configure` in its working directory.
        let command = Command::new("env").args(words).cwd(self.tree()).user(&self.user);
        let followed = FollowedProgram { host, log, limit: LIMIT, interrupt };
        if followed.run(&command, report)? {
            return Ok(());
        }
        let text = files::read(log)?;
        Err(self.diagnosis(&words.join(" "), &String::from_utf8_lossy(&text)))
    }

    /// Finds the cause of a failure in the output.
    fn diagnosis(&self, command: &str, log: &str) -> Error {
        let whole = format!("the whole output: {}", self.log.display());
        if let Some(line) = log.lines().find(|line| line.contains("No space left on device")) {
            return Error::host(format!("no space for the build: {}", line.trim()))
                .hint("a build needs 400 MB while it is made; PGSTRATA_CACHE names another folder");
        }
        let parser = ["bison", "flex"].into_iter().find(|name| {
            let missing = [format!("{name} not found"), format!("{name}' is missing"), format!("{name} is missing")];
            log.lines().any(|line| missing.iter().any(|missing| line.to_lowercase().contains(missing)))
        });
        if let Some(parser) = parser.filter(|name| !self.task.host.has_program(name)) {
            return Error::host(format!("this source needs the program {parser}"))
                .hint(needs::install(&["bison", "flex"]));
        }
        if let Some(line) = log.lines().find_map(|line| line.strip_prefix("configure: error: ")) {
            return Error::tool(format!("configure: {line}")).hint(whole);
        }
        // With several jobs, the error is far above the end.
        let shown = match log.lines().find(|line| line.contains(": error: ") || line.contains("fatal error:")) {
            Some(error) => format!("  {}\n{}", error.trim(), last_lines(log, 5)),
            None => last_lines(log, 15),
        };
        Error::tool(format!("`{command}` failed; output:\n{shown}")).hint(whole)
    }
}

//! Runs mmdebstrap, which makes a Debian root from packages, with hooks; reports progress and responds to interrupts.

use super::mirror::Mirror;
use super::recipe::PREFERENCES;
use super::suite::{Suite, TRIED};
use crate::error::{Error, Result};
use crate::host::command::{Command, last_lines, quoted};
use crate::host::followed::FollowedProgram;
use crate::host::signals::Interrupt;
use crate::host::{Host, files, folders, users};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit; a machine with two slow, busy cores needs half an hour.
const LIMIT: Duration = Duration::from_secs(2 * 3600);

/// Inputs of mmdebstrap that are common to the steps of a suite.
pub(super) struct Bootstrap<'a> {
    pub(super) host: &'a Host,
    pub(super) suite: &'a Suite,
    pub(super) mirror: Mirror,
    /// Folder of the suite, which keeps packages from call to call.
    pub(super) folder: &'a Path,
    pub(super) interrupt: &'a Interrupt,
}

impl Bootstrap<'_> {
    /// Installs `packages`, then runs `hooks`; reports mmdebstrap's progress, line by line. Hooks get the root
    /// as `$1`, and may write to `work`.
    pub(super) fn run(
        &self,
        variant: &str,
        packages: &[&str],
        work: &Path,
        hooks: &[String],
        report: &mut dyn FnMut(&str),
    ) -> Result<()> {
        if !self.host.has_program("mmdebstrap") {
            return Err(Error::host("the program mmdebstrap is missing").hint(super::image::INSTALL));
        }
        let packages_folder = self.folder.join("packages");
        folders::make_all(&packages_folder, 0o755)?;
        let kept = quoted(packages_folder.as_os_str());
        let archives = "/var/cache/apt/archives";
        let mut command = outermost()
            .with_callers_environment()
            .dying_with_us()
            .arg(format!("--variant={variant}"))
            .args(["--format=null", "--skip=essential/unlink", "--aptopt=APT::Install-Recommends \"false\""])
            .args(["--aptopt=Acquire::Languages \"none\"", "--aptopt=Acquire::Retries \"3\""])
            .args(["--aptopt=Acquire::http::Timeout \"60\"", "--dpkgopt=force-unsafe-io"])
            .args(["--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*"])
            .arg(format!("--include={}", packages.join(",")))
            .arg(format!("--setup-hook=mkdir -p \"$1\"{archives}"))
            .arg(format!("--setup-hook=sync-in {kept} {archives}"))
            // The initramfs that the suite would build is never used, and takes a minute.
            .arg("--essential-hook=chroot \"$1\" dpkg-divert --local --quiet --rename --add /usr/sbin/update-initramfs")
            .arg("--essential-hook=ln -s /bin/true \"$1\"/usr/sbin/update-initramfs")
            .arg("--essential-hook=mkdir -p \"$1\"/etc/postgresql-common/createcluster.d")
            .arg("--essential-hook=echo create_main_cluster = false > \"$1\"/etc/postgresql-common/createcluster.d/guest.conf")
            .arg(format!("--customize-hook=sync-out {archives} {kept}"));
        if self.suite.is_backports() {
            let (folder, text) = ("\"$1\"/etc/apt/preferences.d", quoted(PREFERENCES.as_ref()));
            command = command.arg(format!("--setup-hook=mkdir -p {folder} && printf %s {text} > {folder}/backports"));
        }
        let command = command
            .args(hooks.iter().map(|hook| format!("--customize-hook={hook}")))
            .args([self.suite.base(), "/dev/null"])
            .args(self.mirror.lines("deb", self.suite, "main contrib"))
            .env("TMPDIR", work);
        // mmdebstrap makes its chroot there, which another user owns if namespaces are used.
        files::set_mode(work, 0o1777)?;
        self.follow(&command, report)?;
        files::set_mode(work, 0o755)
    }

    fn log(&self) -> PathBuf {
        self.folder.join("mmdebstrap.log")
    }

    fn follow(&self, command: &Command, report: &mut dyn FnMut(&str)) -> Result<()> {
        let log = self.log();
        // It removes its chroot on SIGTERM.
        let followed = FollowedProgram { host: self.host, log: &log, limit: LIMIT, interrupt: self.interrupt };
        let has_worked = followed.run(command, &mut |line| {
            let step = line.strip_prefix("I: ").filter(|line| !DETAILS.iter().any(|detail| line.starts_with(detail)));
            step.into_iter().for_each(&mut *report);
        })?;
        if has_worked { Ok(()) } else { Err(self.diagnosis(&files::read(&log)?)) }
    }

    /// Finds the cause of a failure in mmdebstrap's output.
    fn diagnosis(&self, log: &[u8]) -> Error {
        let log = String::from_utf8_lossy(log);
        let suite = self.suite;
        let line_with = |what: &str| log.lines().rev().find(|line| line.contains(what)).map(str::trim);
        let elsewhere = "name another mirror with --mirror URL";
        if let Some(line) = line_with("does not have a Release file") {
            return Error::user(format!("the mirror has no suite `{suite}`: {}", line.trim_start_matches("E: ")))
                .hint(format!("one of {}; or {elsewhere}", TRIED.join(", ")));
        }
        if let Some(line) = line_with("404  Not Found").or_else(|| line_with("404 Not Found")) {
            return Error::tool(format!("the mirror lacks a package that it lists: {line}"))
                .hint(format!("it may be in the middle of an update: try again in some minutes, or {elsewhere}"));
        }
        if let Some(line) = line_with("Unable to locate package").or_else(|| line_with("has no installation candidate"))
        {
            return Error::tool(format!("the suite {suite} cannot be a guest: {line}"))
                .hint(format!("tried suites: {}", TRIED.join(", ")));
        }
        if let Some(line) = line_with("No space left on device") {
            return Error::host(format!("no space for the guest: {line}"))
                .hint("it needs 4 GB while it is built; PGSTRATA_CACHE names another folder");
        }
        if let Some(line) = ["Could not resolve", "Could not connect", "Connection failed", "Connection timed out"]
            .iter()
            .find_map(|what| line_with(what))
        {
            return Error::host(format!("the mirror cannot be reached: {line}")).hint(elsewhere);
        }
        if let Some(line) = line_with("NO_PUBKEY") {
            return Error::host(format!("the keys that sign {suite} are not known here: {line}"))
                .hint("install the package debian-archive-keyring, or a newer one");
        }
        if let Some(line) = line_with("E: ZFS ") {
            let end = log.rfind(line).map_or("", |at| &log[at..]);
            return Error::tool(format!("{}\n{}", line.trim_start_matches("E: "), last_lines(end, 20)));
        }
        let hint = format!("the whole log: {}", self.log().display());
        Error::tool(format!("mmdebstrap failed; output:\n{}", last_lines(&log, 15))).hint(hint)
    }
}

/// mmdebstrap; as root in a PID namespace, so that everything it starts ends with it, even if we or it are killed.
/// Without a mount namespace: a copy of the mount table would keep filesystems alive that others unmount meanwhile.
fn outermost() -> Command {
    if users::is_root() {
        let own = ["--pid", "--fork", "--kill-child", "mmdebstrap", "--mode=root"];
        Command::new("unshare").args(own)
    } else {
        Command::new("mmdebstrap").arg("--mode=unshare")
    }
}

/// Lines of progress without useful information.
const DETAILS: [&str; 7] =
    ["automatically ", "chroot architecture ", "finding ", "main() ", "running --", "skipping ", "using "];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn diagnosed(log: &str) -> Error {
        let (host, suite) = (Host::this(), "trixie".parse().unwrap());
        let mirror = Mirror::of(&host, Some("http://m")).unwrap();
        let interrupt = Interrupt::never();
        let bootstrap =
            Bootstrap { host: &host, suite: &suite, mirror, folder: Path::new("/c"), interrupt: &interrupt };
        bootstrap.diagnosis(log.as_bytes())
    }

    #[test]
    fn what_went_wrong_is_told_with_what_to_do() {
        for (log, kind, said, hint) in [
            (
                "E: The repository 'http://m x Release' does not have a Release file.\n",
                Kind::User,
                "no suite",
                "bookworm",
            ),
            ("Err:3 http://m trixie/main amd64 zlib\n  404  Not Found [IP: 1.2.3.4 80]\n", Kind::Tool, "404", "again"),
            ("E: Unable to locate package zfs-dkms\n", Kind::Tool, "zfs-dkms", "tried suites"),
            ("dpkg: error: No space left on device\n", Kind::Host, "no space", "PGSTRATA_CACHE"),
            ("W: Could not resolve 'm'\n", Kind::Host, "reached", "--mirror"),
            ("E: ZFS 2.1 does not build for Linux 9; the end\nmake: *** no\n", Kind::Tool, "make: *** no", ""),
            ("something else\n", Kind::Tool, "something else", "mmdebstrap.log"),
        ] {
            let error = diagnosed(log);
            assert_eq!(error.kind(), kind, "{log}");
            assert!(error.to_string().contains(said), "{error}");
            assert!(error.hint_text().unwrap_or_default().contains(hint), "{error}");
        }
    }
}

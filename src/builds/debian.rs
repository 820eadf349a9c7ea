//! Gets PostgreSQL's tarball from Debian's source package. apt runs with its own configuration: sources file, lists and
//! caches are in the work folder, and the machine's apt is left alone.

use super::shelf::{self, BuildTask};
use super::source::{BuildSource, Package};
use crate::error::{Error, Result};
use crate::guest::mirror::Mirror;
use crate::guest::suite::Suite;
use crate::host::command::{Command, last_lines};
use crate::host::followed::FollowedProgram;
use crate::host::{files, folders};
use crate::record::build::{BuildSpec, is_of};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Major versions and their suites.
const SUITES: [(&str, &str); 4] = [("13", "bullseye"), ("15", "bookworm"), ("17", "trixie"), ("18", "forky")];

/// Time limit for lists of a few suites and a tarball of 25 MB; beyond this the mirror hangs.
const LIMIT: Duration = Duration::from_secs(1800);

/// Fetches the newest version that the mirror can deliver.
///
/// # Errors
/// If the mirror has none or cannot be reached.
pub(super) fn fetch(task: &BuildTask<'_>, mirror: &Mirror, report: &mut dyn FnMut(&str)) -> Result<BuildSource> {
    let asked = task.spec.version.as_deref().unwrap_or_default();
    let major = asked.split('.').next().unwrap_or_default();
    let suite = suite(task.spec, major)?;
    let apt = Apt::new(task, mirror, &suite)?;
    apt.run(&["apt-get", "update"], report)?;
    let name = format!("postgresql-{major}");
    let listed = versions(&task.host.run(&apt.command(&["apt-cache", "madison", &name]))?.stdout, asked);
    let mut refused = Vec::new();
    for version in &listed {
        report(&format!("{name} {version}"));
        match apt.run(&["apt-get", "source", "--download-only", &format!("{name}={version}")], report) {
            Ok(()) => return keep(task, &format!("{name} {version}")),
            Err(e) if e.kind() == crate::error::Kind::Interrupted => return Err(e),
            // A mirror may have only the binaries of security updates.
            Err(e) => refused.push(format!("{version}: {}", e.to_string().lines().last().unwrap_or_default().trim())),
        }
    }
    let elsewhere = "name another `suite`, or a tarball of PostgreSQL as `source`";
    let problem = match refused.is_empty() {
        true => format!("the mirror's sources of {suite} have no PostgreSQL {asked}"),
        false => {
            format!("the mirror lists PostgreSQL {asked} of {suite} but has no file of it: {}", refused.join("; "))
        }
    };
    Err(Error::tool(problem).hint(elsewhere))
}

fn suite(spec: &BuildSpec, major: &str) -> Result<Suite> {
    let known = SUITES.iter().find(|(version, _)| *version == major).map(|(_, suite)| *suite);
    let known = spec.suite.as_deref().or(known).ok_or_else(|| {
        let known: Vec<String> = SUITES.iter().map(|(version, suite)| format!("{version} ({suite})")).collect();
        Error::user(format!("no Debian suite is known for PostgreSQL {major}")).hint(format!(
            "known are {}; name another one as `suite`, or a tarball of PostgreSQL as `source`",
            known.join(", ")
        ))
    })?;
    known.parse()
}

/// Versions of a source package listed by `apt-cache madison` that match the request, newest first.
fn versions(text: &str, asked: &str) -> Vec<String> {
    let column = text.lines().filter_map(|line| Some(line.split('|').nth(1)?.trim().to_owned()));
    let mut found: Vec<String> = column.filter(|version| is_of(version, asked)).collect();
    found.sort_by_key(|version| {
        let parts = version.split(|c: char| !c.is_ascii_digit());
        let numbers: Vec<u32> = parts.map_while(|part| part.parse().ok()).collect();
        std::cmp::Reverse((numbers, version.clone()))
    });
    found.dedup();
    found
}

/// Moves PostgreSQL's tarball from the downloaded files into the cache.
fn keep(task: &BuildTask<'_>, name: &str) -> Result<BuildSource> {
    let downloaded = folders::list(&downloads(task.work))?;
    let mut named = downloaded.iter().filter_map(|path| Some((path, path.file_name()?.to_string_lossy())));
    let tarball = named.find(|(_, file)| file.contains(".orig.tar.") && !file.ends_with(".asc"));
    let (tarball, file) = tarball.ok_or_else(|| Error::tool(format!("{name} has no tarball of PostgreSQL's own")))?;
    let (bytes, file) = (files::read(tarball)?, file.into_owned());
    let package = Package { name: name.to_owned(), file, sum: files::sha256(&bytes) };
    let made = task.work.join("package");
    files::make_folder(&made, 0o755)?;
    files::write_whole(&made.join(&package.file), &bytes)?;
    files::write_whole(&made.join(shelf::NOTE), &shelf::to_json(&package)?)?;
    let place = task.shelf.package_folder(task.spec);
    folders::remove_all(&place)?;
    folders::rename(&made, &place)?;
    let file = place.join(&package.file);
    Ok(BuildSource::Package { package, file })
}

fn downloads(work: &Path) -> PathBuf {
    work.join("downloads")
}

struct Apt<'a> {
    task: &'a BuildTask<'a>,
    folder: PathBuf,
}

impl<'a> Apt<'a> {
    fn new(task: &'a BuildTask<'a>, mirror: &Mirror, suite: &Suite) -> Result<Apt<'a>> {
        let folder = task.work.join("apt");
        let [lists, archives] = ["lists/partial", "cache/archives/partial"].map(|below| folder.join(below));
        [lists, archives, downloads(task.work)].iter().try_for_each(|folder| folders::make_all(folder, 0o755))?;
        let lines = mirror.lines("deb-src", suite, "main").join("\n") + "\n";
        files::write_whole(&folder.join("sources.list"), lines.as_bytes())?;
        Ok(Apt { task, folder })
    }

    fn command(&self, words: &[&str]) -> Command {
        let at = |below: &str| self.folder.join(below).display().to_string();
        let options = [
            format!("Dir::Etc::SourceList={}", at("sources.list")),
            "Dir::Etc::SourceParts=/dev/null".to_owned(),
            format!("Dir::State::Lists={}", at("lists")),
            format!("Dir::Cache={}", at("cache")),
            "Acquire::Languages=none".to_owned(),
            "Acquire::Retries=3".to_owned(),
            "Acquire::http::Timeout=60".to_owned(),
        ];
        let (program, rest) = words.split_first().unwrap_or((&"apt-get", &[]));
        let options = options.iter().flat_map(|option| ["-o", option.as_str()]);
        Command::new(program)
            .with_callers_environment()
            .args(options)
            .args(rest)
            .cwd(downloads(self.task.work))
            .limit(LIMIT)
    }

    fn run(&self, words: &[&str], report: &mut dyn FnMut(&str)) -> Result<()> {
        let log = self.task.shelf.log();
        let BuildTask { host, interrupt, .. } = *self.task;
        let followed = FollowedProgram { host, log: &log, limit: LIMIT, interrupt };
        let has_worked = followed.run(&self.command(words), &mut |line| {
            if line.starts_with("Get:") {
                report(line);
            }
        })?;
        if has_worked { Ok(()) } else { Err(diagnosis(words, &String::from_utf8_lossy(&files::read(&log)?))) }
    }
}

/// Finds the cause of a failure in apt's output.
fn diagnosis(words: &[&str], log: &str) -> Error {
    let line_with =
        |what: &[&str]| log.lines().rev().find(|line| what.iter().any(|what| line.contains(what))).map(str::trim);
    if let Some(line) = line_with(&["does not have a Release file"]) {
        return Error::tool(format!("the mirror has no such suite: {line}"));
    }
    if let Some(line) = line_with(&["Could not resolve", "Could not connect", "Connection failed", "timed out"]) {
        return Error::host(format!("the mirror cannot be reached: {line}"))
            .hint("a tarball of PostgreSQL as `source` needs no mirror");
    }
    if let Some(line) = line_with(&["No space left on device"]) {
        return Error::host(format!("no space: {line}")).hint("PGSTRATA_CACHE names another folder");
    }
    if let Some(line) = line_with(&["404", "E: "]) {
        return Error::tool(format!("{} failed: {line}", words.join(" ")));
    }
    Error::tool(format!("{} failed; output:\n{}", words.join(" "), last_lines(log, 12)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADISON: &str = "\
postgresql-15 | 15.18-0+deb12u1 | http://m/debian bookworm/main Sources
postgresql-15 | 15.9-0+deb12u1 | http://m/debian bookworm-updates/main Sources
postgresql-15 | 15.20-0+deb12u1 | http://m/security bookworm-security/main Sources
postgresql-15 | 15.20-0+deb12u1 | http://m/security bookworm-security/main Sources
";

    #[test]
    fn versions_come_newest_first_by_number() {
        assert_eq!(versions(MADISON, "15"), ["15.20-0+deb12u1", "15.18-0+deb12u1", "15.9-0+deb12u1"]);
        assert_eq!(versions(MADISON, "15.9"), ["15.9-0+deb12u1"]);
        assert_eq!(versions(MADISON, "15.1"), Vec::<String>::new());
        assert_eq!(versions("N: Unable to locate package postgresql-99\n", "99"), Vec::<String>::new());
    }

    #[test]
    fn a_version_without_a_suite_names_those_that_have_one() {
        let spec = |suite: Option<&str>| BuildSpec { suite: suite.map(str::to_owned), ..BuildSpec::default() };
        assert_eq!(suite(&spec(None), "15").unwrap().name(), "bookworm");
        assert_eq!(suite(&spec(Some("sid")), "15").unwrap().name(), "sid");
        let error = suite(&spec(None), "16").unwrap_err();
        assert!(error.hint_text().unwrap().contains("17 (trixie)"), "{error}");
    }

    #[test]
    fn what_apt_says_is_told_with_what_to_do() {
        let said = |log: &str| {
            let error = diagnosis(&["apt-get", "source"], log);
            format!("{error}; {}", error.hint_text().unwrap_or_default())
        };
        assert!(said("E: The repository 'http://m x Release' does not have a Release file.").contains("no such suite"));
        assert!(said("W: Could not resolve 'm'\nE: x").contains("needs no mirror"));
        assert!(said("E: Failed to fetch http://m/x.dsc  404  Not Found [IP: 1]").contains("404"));
        assert!(said("dpkg: No space left on device").contains("PGSTRATA_CACHE"));
        assert!(said("something\nelse").contains("else"));
    }
}

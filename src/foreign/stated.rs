//! Facts in lines that no reader takes: `uname -a`, a date, the version in the path of a PostgreSQL.

use super::read::output::TextLine;
use super::read::table::is_time;

/// Facts in the lines of a text, each key once; if paths contain two versions, neither.
pub(super) fn facts(lines: &[TextLine<'_>]) -> Vec<(String, String)> {
    let mut versions: Vec<&str> = lines.iter().filter_map(|line| version_in_path(line.text)).collect();
    versions.sort_unstable();
    versions.dedup();
    let version = if let [only] = versions.as_slice() { Some(format!("{only}, by a path")) } else { None };
    let date = lines.iter().find(|line| is_date(line.text)).map(|line| line.text.to_owned());
    let facts = [
        ("host.system", lines.iter().find_map(|line| system(line.text))),
        ("measured", date),
        ("postgresql.version", version),
    ];
    facts.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// True if a line is a date, a command, or describes the system: its numbers are not figures.
pub(super) fn is_no_figure(text: &str) -> bool {
    is_time(text)
        || system(text).is_some()
        || super::clean::prompt(text).is_some()
        || text.split_whitespace().skip(1).any(|word| {
            let letters = word.trim_start_matches('-');
            letters.len() < word.len() && letters.starts_with(|c: char| c.is_ascii_alphabetic())
        })
}

/// True for a time stamp with a date, or seconds since 1970.
pub(super) fn is_date(text: &str) -> bool {
    let dated = text.split(|c: char| !c.is_ascii_digit()).any(|digits| {
        digits.len() == 10 || digits.len() == 4 && (digits.starts_with("19") || digits.starts_with("20"))
    });
    is_time(text) && (dated || text.matches('/').count() == 2)
}

/// System and kernel from a line of `uname -a`.
fn system(text: &str) -> Option<String> {
    const SYSTEMS: [&str; 6] = ["Linux", "FreeBSD", "OpenBSD", "NetBSD", "SunOS", "Darwin"];
    const MACHINES: [&str; 6] = ["x86_64", "amd64", "aarch64", "arm64", "i686", "i386"];
    let words: Vec<&str> = text.split_whitespace().collect();
    let [name, _host, release, rest @ ..] = words.as_slice() else { return None };
    let is_release = release.starts_with(|c: char| c.is_ascii_digit()) && SYSTEMS.contains(name);
    let machine = rest.iter().any(|word| MACHINES.contains(word) || word.starts_with('#'));
    (is_release && machine).then(|| format!("{name} {release}"))
}

/// `9.6` of `/usr/pgsql-9.6/bin/pgbench`, `15` of `/usr/lib/postgresql/15/bin/pgbench`.
fn version_in_path(text: &str) -> Option<&str> {
    let mut paths = text.split(|c: char| c.is_whitespace() || "\"'=;,()".contains(c)).filter(|word| word.contains('/'));
    paths.find_map(|path| {
        let mut named = false;
        path.split('/').find_map(|part| {
            let bare = ["postgresql", "postgres", "pgsql", "pg"].iter().find_map(|name| part.strip_prefix(name));
            let bare = bare.map(|rest| rest.trim_start_matches(['-', '_', '@']));
            let found = bare.filter(|rest| !rest.is_empty()).unwrap_or(part);
            let is_it = (named || bare.is_some()) && is_version(found);
            named = bare == Some("");
            is_it.then_some(found)
        })
    })
}

/// True for a version of PostgreSQL: `9.6`, `9.4.1`, `15`.
fn is_version(text: &str) -> bool {
    let parts: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
    parts.is_some_and(|parts| parts.len() <= 3 && (10..=30).contains(&parts[0]) || parts.len() > 1 && parts[0] < 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::clean::lines;

    fn of(text: &str) -> Vec<(String, String)> {
        facts(&lines(text))
    }

    #[test]
    fn system_date_and_version_come_from_lines_between_outputs() {
        let text = "$ uname -a\nLinux db1 3.10.0-862.el7.x86_64 #1 SMP Fri Apr 20 2018 x86_64 GNU/Linux\n\
                    $ date\nThu Jun 26 23:52:00 UTC 2014\n$ /usr/pgsql-9.6/bin/pg_test_fsync -f /data/x\n";
        let expected = [
            ("host.system", "Linux 3.10.0-862.el7.x86_64"),
            ("measured", "Thu Jun 26 23:52:00 UTC 2014"),
            ("postgresql.version", "9.6, by a path"),
        ];
        assert_eq!(of(text), expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        let bsd = of("FreeBSD z1 10.0-RELEASE FreeBSD 10.0-RELEASE #0 r260789: Thu Jan 16 22:34:59 UTC 2014 amd64\n");
        assert_eq!(bsd[0].1, "FreeBSD 10.0-RELEASE");
    }

    #[test]
    fn a_version_stands_in_a_path_and_two_are_none() {
        for (path, version) in [
            ("/usr/lib/postgresql/15/bin/pgbench", Some("15")),
            ("~/postgresql-9.4.1/contrib/pgbench", Some("9.4.1")),
            ("/opt/pg12/bin/pgbench", Some("12")),
            ("/usr/local/pgsql/bin/pgbench", None),
            ("/data/2014/pg_test_fsync.out", None),
            ("PostgreSQL 15 was 2 times as fast", None),
        ] {
            assert_eq!(version_in_path(path), version, "{path}");
        }
        assert!(of("/usr/pgsql-9.6/bin/psql\n/usr/pgsql-10/bin/psql\n").is_empty());
    }

    #[test]
    fn prose_tells_nothing() {
        assert!(of("Linux is 3.0 times as fast\nIt took 09:09:58\n23:52:00\n").is_empty());
    }
}

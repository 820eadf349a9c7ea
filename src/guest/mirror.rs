//! Source of packages: the mirror that the machine's own apt uses.

use super::suite::Suite;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::parse::apt_sources::{AptSource, deb822, one_line};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirror {
    main: String,
    /// URI of security updates, if the machine has one.
    security: Option<String>,
}

impl Mirror {
    /// The given mirror, else the machine's own.
    ///
    /// # Errors
    /// If the machine has no Debian mirror.
    pub(crate) fn of(host: &Host, named: Option<&str>) -> Result<Mirror> {
        if let Some(main) = named {
            let is_plain = main.chars().all(|c| c.is_ascii_alphanumeric() || "-._~:/@%+".contains(c));
            if !main.contains("://") || !is_plain {
                return Err(Error::user(format!("--mirror {main}: no address"))
                    .hint("give an address with http:// or https://"));
            }
            return Ok(Mirror { main: main.trim_end_matches('/').to_owned(), security: None });
        }
        Mirror::among(&sources(host)).ok_or_else(|| {
            Error::host("apt of this machine knows no mirror of Debian")
                .hint("name one with --mirror URL; the package debian-archive-keyring is needed, too")
        })
    }

    /// A source counts as Debian's if it has the component `main`, a suite with `-updates` or `-security`, and Debian's
    /// keys or none.
    fn among(sources: &[AptSource]) -> Option<Mirror> {
        let debian = sources.iter().filter(|source| {
            let keys = source.signed_by.as_ref().is_none_or(|file| file.contains("debian-archive"));
            keys && source.components.iter().any(|component| component == "main")
        });
        let [updates, security] = ["-updates", "-security"].map(|ending| {
            let source = debian.clone().find(|source| source.suite.ends_with(ending));
            source.map(|source| source.uri.trim_end_matches('/').to_owned())
        });
        Some(Mirror { main: updates?, security })
    }

    /// Lines of sources.list for a suite: `deb` for its packages, `deb-src` for their sources.
    pub(crate) fn lines(&self, kind: &str, suite: &Suite, components: &str) -> Vec<String> {
        let base = suite.base();
        let line = |uri: &str, ending: &str| format!("{kind} {uri} {base}{ending} {components}");
        let mut lines = vec![line(&self.main, "")];
        // Unreleased suites have neither.
        if super::suite::TRIED.contains(&base) {
            lines.push(line(&self.main, "-updates"));
            lines.extend(self.security.as_ref().map(|uri| line(uri, "-security")));
        }
        lines.extend(suite.is_backports().then(|| format!("{kind} {} {suite} {components}", self.main)));
        lines
    }
}

fn sources(host: &Host) -> Vec<AptSource> {
    let folder = "/etc/apt/sources.list.d";
    let mut sources = one_line(&host.read_optional("/etc/apt/sources.list").unwrap_or_default());
    for name in host.names_in(folder) {
        let text = host.read_optional(format!("{folder}/{name}")).unwrap_or_default();
        match name.rsplit_once('.') {
            Some((_, "list")) => sources.extend(one_line(&text)),
            Some((_, "sources")) => sources.extend(deb822(&text)),
            _ => {}
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("etc/apt/sources.list.d")).unwrap();
        for (name, text) in files {
            std::fs::write(root.path().join("etc/apt").join(name), text).unwrap();
        }
        let host = Host::rooted(root.path());
        (root, host)
    }

    const DEBIAN: &str = "Types: deb\nURIs: http://a/debian/\nSuites: bookworm bookworm-updates\nComponents: main\n\n\
                          Types: deb\nURIs: http://a/sec\nSuites: bookworm-security\nComponents: main\n";

    #[test]
    fn the_machines_mirror_serves_any_suite() {
        let other = "deb [signed-by=/o.gpg] http://o bookworm-updates main\n";
        let (_root, host) = machine(&[("sources.list.d/a.list", other), ("sources.list.d/d.sources", DEBIAN)]);
        let mirror = Mirror::of(&host, None).unwrap();
        assert_eq!(
            mirror.lines("deb", &"trixie".parse().unwrap(), "main contrib"),
            [
                "deb http://a/debian trixie main contrib",
                "deb http://a/debian trixie-updates main contrib",
                "deb http://a/sec trixie-security main contrib"
            ]
        );
        let of_backports = mirror.lines("deb", &"trixie-backports".parse().unwrap(), "main contrib");
        assert_eq!(of_backports.len(), 4);
        assert_eq!(of_backports[..3], mirror.lines("deb", &"trixie".parse().unwrap(), "main contrib")[..]);
        assert_eq!(of_backports[3], "deb http://a/debian trixie-backports main contrib");
        assert_eq!(
            mirror.lines("deb", &"forky".parse().unwrap(), "main contrib"),
            ["deb http://a/debian forky main contrib"]
        );
    }

    #[test]
    fn a_machine_without_debian_is_told_of_the_flag() {
        let (_root, host) = machine(&[("sources.list", "deb http://o stable main\n")]);
        assert!(Mirror::of(&host, None).unwrap_err().hint_text().unwrap().contains("--mirror"));
        assert_eq!(
            Mirror::of(&host, Some("http://m/")).unwrap().lines("deb", &"x".parse().unwrap(), "main contrib").len(),
            1
        );
        assert!(Mirror::of(&host, Some("m; rm -rf /")).is_err());
    }
}

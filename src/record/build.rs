//! A PostgreSQL built from source: the plan's request, and how a running server differs from it.

use super::facts::ServerFacts;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// Placeholder for `bin` of a case whose PostgreSQL is not built yet.
pub const UNBUILT: &str = "build";

/// Path in a guest of the builds that its host has made for it: a JSON list of [`GivenBuild`].
pub const GIVEN: &str = "/run/pgstrata/builds";

/// A finished build, with the folder of its programs.
pub type GivenBuild = (BuildSpec, String);

/// A PostgreSQL to be built from source.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BuildSpec {
    /// Version of Debian's source package: a major one (`15`) or an exact one (`15.18`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Suite of Debian that the package is taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// Tarball or git checkout to build instead of a package, as an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// WAL block size, kB (`--with-wal-blocksize`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wal_blocksize: Option<u32>,
    /// Page size of tables and indexes, kB (`--with-blocksize`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocksize: Option<u32>,
    /// Segment size of tables and indexes, GB (`--with-segsize`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segsize: Option<u32>,
    /// Further arguments of `configure`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configure: Vec<String>,
    /// Patches, as absolute paths, applied in this order (`patch -p1`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<String>,
    /// Source of the finished build: file or commit, and the SHA-256 of its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_from: Option<String>,
}

impl BuildSpec {
    /// `15, WAL blocks of 16 kB`: the short name of the source, then the differences from PostgreSQL's defaults.
    pub fn described(&self) -> String {
        let source = match (&self.source, &self.version) {
            (Some(source), _) => source.rsplit('/').next().unwrap_or(source).to_owned(),
            (None, Some(version)) => version.clone(),
            (None, None) => "unknown".to_owned(),
        };
        let mut parts = vec![source];
        parts.extend(self.suite.as_ref().map(|suite| format!("of {suite}")));
        for (size, words) in [(self.wal_blocksize, "WAL blocks of"), (self.blocksize, "pages of")] {
            parts.extend(size.map(|size| format!("{words} {size} kB")));
        }
        parts.extend(self.segsize.map(|size| format!("segments of {size} GB")));
        parts.extend(self.configure.iter().cloned());
        parts.extend(self.patches.iter().map(|patch| patch.rsplit('/').next().unwrap_or(patch).to_owned()));
        parts.join(", ")
    }

    /// Differences between a running server and this request, each with both values.
    pub fn differences(&self, facts: &ServerFacts) -> Vec<String> {
        let mut differing = Vec::new();
        for (name, asked) in self.sizes() {
            let found = facts.key_settings.get(name).map_or("nothing", String::as_str);
            if Bytes::parse(found).map_or_else(|_| found.parse().ok(), |bytes| Some(bytes.0)) != Some(asked) {
                differing.push(format!("{name} is {found}, asked for {asked} bytes"));
            }
        }
        let configure = facts.configure.as_deref().unwrap_or_default();
        for argument in self.configure.iter().filter(|argument| !configure.contains(argument.as_str())) {
            differing.push(format!("configure ran without {argument}"));
        }
        if let Some(version) = self.version.as_ref().filter(|asked| !is_of(&facts.version, asked)) {
            differing.push(format!("the version is {}, asked for {version}", facts.version));
        }
        differing
    }

    /// Settings that show the requested sizes, in bytes.
    fn sizes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let sizes = [
            ("wal_block_size", self.wal_blocksize, 1 << 10),
            ("block_size", self.blocksize, 1 << 10),
            ("segment_size", self.segsize, 1 << 30),
        ];
        sizes.into_iter().filter_map(|(name, asked, unit)| Some((name, u64::from(asked?) * unit)))
    }
}

/// True if a version satisfies the request: `15.18 (Debian ...)` satisfies `15` and `15.18`, not `15.1`.
pub fn is_of(version: &str, asked: &str) -> bool {
    version.strip_prefix(asked).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn requested_options_not_in_force_are_named_with_both_values() {
        let asked = BuildSpec {
            version: Some("15".into()),
            wal_blocksize: Some(16),
            segsize: Some(2),
            configure: vec!["--with-lz4".into()],
            ..BuildSpec::default()
        };
        let facts = |pairs: &[(&str, &str)], version: &str, configure: &str| ServerFacts {
            version: version.into(),
            key_settings: pairs
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect::<BTreeMap<_, _>>(),
            configure: Some(configure.into()),
            ..ServerFacts::default()
        };
        let good = facts(&[("wal_block_size", "16384"), ("segment_size", "2GB")], "15.18", " '--with-lz4' '--x'");
        assert_eq!(asked.differences(&good), Vec::<String>::new());
        let bad = facts(&[("wal_block_size", "8192"), ("segment_size", "1GB")], "16.2", "");
        assert_eq!(
            asked.differences(&bad),
            [
                "wal_block_size is 8192, asked for 16384 bytes",
                "segment_size is 1GB, asked for 2147483648 bytes",
                "configure ran without --with-lz4",
                "the version is 16.2, asked for 15"
            ]
        );
        assert!(asked.differences(&facts(&[], "15.1", "--with-lz4"))[0].contains("nothing"));
    }

    #[test]
    fn a_minor_version_belongs_to_its_major_version_only() {
        assert!(is_of("15.18 (Debian 15.18-0+deb12u1)", "15") && is_of("15.18", "15.18") && is_of("19devel", "19"));
        assert!(!is_of("15.18", "15.1") && !is_of("15.18", "1") && !is_of("16.1", "15"));
    }
}

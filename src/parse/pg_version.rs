//! `postgres --version`: one line, `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.

use crate::error::{Error, Result};

/// Version of a PostgreSQL program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PgVersion {
    /// Major version: 15.
    pub major: u32,
    /// Minor version; `None` for beta and development versions (`19devel`).
    pub minor: Option<u32>,
    /// Everything after `(PostgreSQL) `, including the packager's remark.
    pub text: String,
}

/// Reads the first line of `PROGRAM --version`, in the server programs' format since PostgreSQL 10.
///
/// # Errors
/// With the line, if its format differs.
pub fn parse(text: &str) -> Result<PgVersion> {
    let line = text.lines().next().unwrap_or_default().trim();
    let wrong = |wanted: &str| {
        Error::tool(format!("the output of `--version`, line 1: expected {wanted}, found `{line}`"))
            .hint("is this a PostgreSQL program?")
    };
    let (_, version) = line.split_once(" (PostgreSQL) ").ok_or_else(|| wrong("`NAME (PostgreSQL) VERSION`"))?;
    let (major, rest) = leading_digits(version);
    let major = major.parse().map_err(|_| wrong("a major version as a whole number"))?;
    let minor = rest.strip_prefix('.').map(|rest| leading_digits(rest).0.parse()).transpose();
    let minor = minor.map_err(|_| wrong("a minor version as a whole number"))?;
    Ok(PgVersion { major, minor, text: version.to_owned() })
}

/// The digits that a text begins with, and the rest.
fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_wheel_and_development_versions_read() {
        let debian = parse("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n").unwrap();
        assert_eq!((debian.major, debian.minor), (15, Some(18)));
        assert_eq!(debian.text, "15.18 (Debian 15.18-0+deb12u1)");
        assert_eq!(parse("postgres (PostgreSQL) 18.6\n").unwrap().minor, Some(6));
        let devel = parse("postgres (PostgreSQL) 19devel\n").unwrap();
        assert_eq!((devel.major, devel.minor), (19, None));
    }

    #[test]
    fn another_programs_version_is_refused_with_its_line() {
        let error = parse("mysqld  Ver 8.0.36 for Linux").unwrap_err().to_string();
        assert!(error.contains("mysqld  Ver 8.0.36"), "{error}");
        assert!(parse("").is_err());
        assert!(parse("postgres (PostgreSQL) x").is_err());
        assert!(parse("postgres (PostgreSQL) 15.x").is_err());
    }
}

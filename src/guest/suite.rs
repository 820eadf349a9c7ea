//! Debian suite of a guest.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A suite by its code name (`trixie`), or with kernel and ZFS from its backports (`trixie-backports`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Suite(String);

/// The suites tried in tests; others may work.
pub const TRIED: [&str; 2] = ["bookworm", "trixie"];

/// Suffix of a suite's backports.
const BACKPORTS: &str = "-backports";

impl Suite {
    pub fn name(&self) -> &str {
        &self.0
    }

    /// The suite without its backports, from which all other packages come.
    pub(super) fn base(&self) -> &str {
        self.0.strip_suffix(BACKPORTS).unwrap_or(&self.0)
    }

    pub(super) fn is_backports(&self) -> bool {
        self.base() != self.name()
    }
}

impl Default for Suite {
    /// The newest suite tried.
    fn default() -> Suite {
        Suite("trixie".to_owned())
    }
}

impl FromStr for Suite {
    type Err = Error;

    fn from_str(text: &str) -> Result<Suite> {
        // The name becomes part of paths, addresses and commands.
        let mut words = text.split('-');
        if text.len() <= 40 && words.all(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase())) {
            return Ok(Suite(text.to_owned()));
        }
        Err(Error::user(format!("`{text}` is not a Debian suite")).hint(format!("one of {}", TRIED.join(", "))))
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_a_plain_word() {
        assert_eq!("bookworm".parse::<Suite>().unwrap().name(), "bookworm");
        let backports: Suite = "trixie-backports".parse().unwrap();
        assert_eq!(
            (backports.name(), backports.base(), backports.is_backports()),
            ("trixie-backports", "trixie", true)
        );
        assert!(!"trixie".parse::<Suite>().unwrap().is_backports());
        for wrong in ["", "../x", "a b", "Trixie", "x;y", "-backports", "trixie-", "-"] {
            let error = wrong.parse::<Suite>().unwrap_err();
            assert!(error.hint_text().unwrap().contains("trixie"), "{wrong}");
        }
    }
}

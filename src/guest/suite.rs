//! Which Debian a guest is.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A suite by its code name (`trixie`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Suite(String);

/// The suites that are tried in the tests; others may work.
pub const TRIED: [&str; 2] = ["bookworm", "trixie"];

impl Suite {
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Default for Suite {
    /// The newest that is tried.
    fn default() -> Suite {
        Suite("trixie".to_owned())
    }
}

impl FromStr for Suite {
    type Err = Error;

    fn from_str(text: &str) -> Result<Suite> {
        // It becomes a part of paths, of addresses and of commands.
        if !text.is_empty() && text.len() <= 40 && text.chars().all(|c| c.is_ascii_lowercase()) {
            return Ok(Suite(text.to_owned()));
        }
        Err(Error::user(format!("`{text}` is no suite of Debian")).hint(format!("one of {}", TRIED.join(", "))))
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
        for wrong in ["", "../x", "a b", "Trixie", "x;y"] {
            let error = wrong.parse::<Suite>().unwrap_err();
            assert!(error.hint_text().unwrap().contains("trixie"), "{wrong}");
        }
    }
}

//! The findings as one JSON document on one line, for programs.

use super::text::replaced;
use super::words::is_hidden;
use crate::analyse::findings::Findings;
use crate::error::{Error, Result};

/// `--format json`.
pub(super) fn document(findings: &Findings) -> Result<String> {
    let text = serde_json::to_string(findings).map_err(|e| Error::bug(format!("findings do not serialise: {e}")))?;
    Ok(harmless(&text) + "\n")
}

/// Escapes characters that could control a terminal: control characters that JSON allows, and characters that hide or
/// reorder text. They occur only inside strings.
pub(crate) fn harmless(text: &str) -> String {
    replaced(text, |c| {
        // An escape has four digits, so larger characters take two.
        is_hidden(c).then(|| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_meaning_and_drives_no_terminal() {
        let text = harmless("\"a\u{9b}31m\u{7f}\u{202e}\u{e0001}ö\"");
        assert_eq!(text, "\"a\\u009b31m\\u007f\\u202e\\udb40\\udc01ö\"");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), "a\u{9b}31m\u{7f}\u{202e}\u{e0001}ö");
    }
}

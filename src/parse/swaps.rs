//! `/proc/swaps`: the swap areas in use.

use crate::error::{Error, Result};

/// The files and devices that the kernel swaps to.
///
/// # Errors
/// Names a malformed line, or the missing header.
pub fn parse(text: &str) -> Result<Vec<String>> {
    let mut lines = text.lines();
    if !lines.next().is_some_and(|header| header.starts_with("Filename")) {
        return Err(Error::host("/proc/swaps, line 1: not the header `Filename Type Size Used Priority`"));
    }
    let entries = lines.enumerate().filter(|(_, line)| !line.trim().is_empty()).map(|(index, line)| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields.as_slice() {
            // The kernel escapes blanks in a file's name, and marks deleted files.
            [name, _, _, _, _] => Ok((*name).to_owned()),
            _ => Err(Error::host(format!("/proc/swaps, line {}: {} fields, expected 5", index + 2, fields.len()))),
        }
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn devices_and_files_read() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2                               partition\t999420\t\t0\t\t-2\n/swap\\040file file 1 0 -3\n";
        assert_eq!(parse(text).unwrap(), ["/dev/sda2", "/swap\\040file"]);
        assert_eq!(parse("Filename Type Size Used Priority\n").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn errors_name_the_line() {
        assert!(parse("").unwrap_err().to_string().contains("line 1"));
        assert!(parse("Filename\n/dev/sda2 partition\n").unwrap_err().to_string().contains("line 2"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            drop(parse(&text));
        }
    }
}

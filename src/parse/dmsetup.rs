//! `dmsetup table NAME`: the targets of a mapped device, one per line.

use super::fields::filled_lines;
use crate::error::{Error, Result};

/// A range of the device and its mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedRange {
    /// First sector, in units of 512 bytes.
    pub start: u64,
    /// Number of sectors.
    pub sectors: u64,
    /// `crypt`, `delay`, `linear`.
    pub kind: String,
    pub arguments: Vec<String>,
}

/// Reads the table of one device.
///
/// # Errors
/// Names a line that is not `START SECTORS KIND ARGUMENTS`; also if there is no line.
pub fn parse_table(text: &str) -> Result<Vec<MappedRange>> {
    let mut targets = Vec::new();
    for (number, line) in filled_lines(text) {
        let wrong = || Error::tool(format!("dmsetup table, line {}: `{line}` is not a target", number + 1));
        let mut words = line.split_whitespace();
        let start = words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
        let sectors = words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
        let kind = words.next().ok_or_else(wrong)?.to_owned();
        targets.push(MappedRange { start, sectors, kind, arguments: words.map(str::to_owned).collect() });
    }
    if targets.is_empty() { Err(Error::tool("dmsetup table printed no target".to_owned())) } else { Ok(targets) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    const CRYPT: &str = include_str!("../../tests/fixtures/dmsetup/1.02.205-crypt.txt");
    const DELAY: &str = include_str!("../../tests/fixtures/dmsetup/1.02.205-delay.txt");

    #[test]
    fn targets_read_with_their_arguments() {
        let [crypt] = parse_table(CRYPT).unwrap().try_into().unwrap();
        assert_eq!((crypt.kind.as_str(), crypt.arguments[0].as_str()), ("crypt", "aes-xts-plain64"));
        assert!(crypt.arguments.contains(&"sector_size:4096".to_owned()), "{crypt:?}");
        let [delay] = parse_table(DELAY).unwrap().try_into().unwrap();
        assert_eq!((delay.start, delay.kind.as_str(), delay.arguments.len()), (0, "delay", 9));
    }

    #[test]
    fn what_is_no_target_is_refused() {
        assert!(parse_table("0 x linear").unwrap_err().to_string().contains("line 1"));
        assert!(parse_table("\n").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            drop(parse_table(&text));
        }
    }
}

//! `mdadm --detail --export DEVICE`: properties of an array, as `KEY=VALUE` lines (mdadm 3.3 and later).

use super::fields::filled_lines;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// Reads the lines; each key must begin with `MD_`.
///
/// # Errors
/// Names a malformed line; also if there is no `MD_UUID`.
pub fn parse_export(text: &str) -> Result<BTreeMap<String, String>> {
    let mut fields = BTreeMap::new();
    for (number, line) in filled_lines(text) {
        let pair = line.split_once('=').filter(|(key, _)| key.starts_with("MD_"));
        let (key, value) = pair.ok_or_else(|| {
            Error::tool(format!("mdadm --detail --export, line {}: `{line}` is not a field", number + 1))
        })?;
        fields.insert(key.to_owned(), value.to_owned());
    }
    if fields.contains_key("MD_UUID") {
        return Ok(fields);
    }
    Err(Error::tool("mdadm --detail --export printed no MD_UUID".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    const RAID5: &str = include_str!("../../tests/fixtures/mdadm/4.4-raid5.txt");

    #[test]
    fn an_array_reads_with_its_uuid_and_its_members() {
        let fields = parse_export(RAID5).unwrap();
        assert_eq!((fields["MD_LEVEL"].as_str(), fields["MD_DEVICES"].as_str()), ("raid5", "3"));
        assert_eq!(fields["MD_UUID"].split(':').count(), 4);
        assert_eq!(fields["MD_METADATA"], "1.2");
    }

    #[test]
    fn a_line_that_is_no_field_is_refused() {
        let error = parse_export("MD_UUID=1\nmdadm: cannot\n").unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        assert!(parse_export("").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            drop(parse_export(&text));
        }
    }
}

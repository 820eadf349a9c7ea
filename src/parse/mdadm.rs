//! `mdadm --detail --export DEVICE`: properties of an array, as `KEY=VALUE` lines (mdadm 3.3 and later).

use super::fields::{filled_lines, having, wrong_line};
use crate::error::Result;
use std::collections::BTreeMap;

const TOOL: &str = "mdadm --detail --export";

/// Reads the lines; each key must begin with `MD_`.
///
/// # Errors
/// Names a malformed line; also if there is no `MD_UUID`.
pub fn parse_export(text: &str) -> Result<BTreeMap<String, String>> {
    let mut fields = BTreeMap::new();
    for (index, line) in filled_lines(text) {
        let pair = line.split_once('=').filter(|(key, _)| key.starts_with("MD_"));
        let (key, value) = pair.ok_or_else(|| wrong_line(TOOL, index, line, "not a field"))?;
        fields.insert(key.to_owned(), value.to_owned());
    }
    having(TOOL, fields, &["MD_UUID"])
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

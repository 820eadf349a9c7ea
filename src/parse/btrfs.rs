//! btrfs-progs: `btrfs inspect-internal dump-super DEVICE` and `btrfs filesystem df -b FOLDER`.

use super::fields::{add_word, filled_lines, having, wrong_line};
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// Reads the `key  value` lines of `dump-super`. Names of flags, which follow their number on separate lines, become
/// the value: `incompat_flags` -> `MIXED_BACKREF NO_HOLES`.
///
/// # Errors
/// Names a malformed line, and `sectorsize` or `nodesize` if it is missing.
pub fn parse_super(text: &str) -> Result<BTreeMap<String, String>> {
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    let mut last_key: Option<String> = None;
    for (index, line) in filled_lines(text) {
        if line.starts_with("superblock:") || line.starts_with("----") {
            continue;
        }
        if line.starts_with(char::is_whitespace) {
            let key = last_key.as_ref();
            let key = key.ok_or_else(|| wrong_line("btrfs dump-super", index, line, "flags without a field"))?;
            let names = line.split(['(', ')', '|', ' ', '\t']).filter(|name| !name.is_empty());
            let value = fields.entry(key.clone()).or_default();
            if value.starts_with("0x") {
                value.clear();
            }
            names.for_each(|name| add_word(value, " ", name));
        } else {
            // An empty label is a key without a value.
            let pair = line.split_once('\t');
            let (key, value) =
                pair.ok_or_else(|| wrong_line("btrfs dump-super", index, line, "not `key<tab>value`"))?;
            fields.insert(key.to_owned(), value.trim().to_owned());
            last_key = Some(key.to_owned());
        }
    }
    having("btrfs dump-super", fields, &["sectorsize", "nodesize"])
}

/// Reads the profile of each kind of block group: `Data` -> `single`, `Metadata` -> `DUP`. The profiles of a kind with
/// several (an unfinished conversion) are separated by blanks.
///
/// # Errors
/// Names a line that is not `Kind, profile: total=..., used=...`, and `Data` if it is missing.
pub fn parse_profiles(text: &str) -> Result<BTreeMap<String, String>> {
    let mut profiles: BTreeMap<String, String> = BTreeMap::new();
    for (index, line) in filled_lines(text) {
        if line.starts_with("WARNING") || line.starts_with(' ') {
            continue;
        }
        let pair = line.split_once(", ").and_then(|(kind, rest)| Some((kind, rest.split_once(": total=")?.0)));
        let (kind, profile) =
            pair.ok_or_else(|| wrong_line("btrfs filesystem df", index, line, "not `kind, profile: ...`"))?;
        add_word(profiles.entry(kind.to_owned()).or_default(), " ", profile);
    }
    let has_data = profiles.keys().any(|kind| kind.starts_with("Data"));
    if has_data { Ok(profiles) } else { Err(Error::tool("btrfs filesystem df printed no `Data`".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    /// From btrfs-progs 6.2, shortened.
    const SUPER: &str = "\
superblock: bytenr=65536, device=/dev/loop0
---------------------------------------------------------
csum_type\t\t0 (crc32c)
csum\t\t\t0xc5a91aa7 [match]
flags\t\t\t0x1
\t\t\t( WRITTEN )
label\t\t\t
sectorsize\t\t4096
nodesize\t\t16384
leafsize (deprecated)\t16384
incompat_flags\t\t0x341
\t\t\t( MIXED_BACKREF |
\t\t\t  EXTENDED_IREF |
\t\t\t  NO_HOLES )
dev_item.type\t\t0
";
    const DF: &str = "\
Data, single: total=8388608, used=0
System, DUP: total=8388608, used=16384
Metadata, DUP: total=53673984, used=131072
GlobalReserve, single: total=5767168, used=0
";

    #[test]
    fn a_superblock_reads_with_the_names_of_its_flags() {
        let fields = parse_super(SUPER).unwrap();
        assert_eq!(fields["nodesize"], "16384");
        assert_eq!(fields["csum_type"], "0 (crc32c)");
        assert_eq!(fields["incompat_flags"], "MIXED_BACKREF EXTENDED_IREF NO_HOLES");
        assert_eq!(fields["label"], "");
    }

    #[test]
    fn profiles_read() {
        let profiles = parse_profiles(DF).unwrap();
        assert_eq!((profiles["Data"].as_str(), profiles["Metadata"].as_str()), ("single", "DUP"));
        let mixed = parse_profiles("Data+Metadata, single: total=1, used=0\n").unwrap();
        assert_eq!(mixed["Data+Metadata"], "single");
    }

    #[test]
    fn errors_name_the_line() {
        assert!(parse_super("nonsense\n").unwrap_err().to_string().starts_with("btrfs dump-super, line 1"));
        assert!(parse_super("\t( X )\n").unwrap_err().to_string().contains("flags without a field"));
        assert!(parse_super("nodesize\t1\n").unwrap_err().to_string().contains("sectorsize"));
        assert!(parse_profiles("Data single\n").unwrap_err().to_string().contains("line 1"));
        assert!(parse_profiles("System, DUP: total=1\n").unwrap_err().to_string().contains("Data"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            drop(parse_super(&text));
            drop(parse_profiles(&text));
        }
    }
}

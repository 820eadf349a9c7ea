//! `dumpe2fs -h DEVICE`: the superblock of ext2, ext3 and ext4 (e2fsprogs).

use super::fields::{filled_lines, having, wrong_line};
use crate::error::Result;
use std::collections::BTreeMap;

/// Reads the `Key:   value` lines; keys and values as printed.
///
/// # Errors
/// Names a malformed line, a duplicate key, or a superblock without `Block size`.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>> {
    let mut fields = BTreeMap::new();
    for (index, line) in filled_lines(text) {
        let pair = line.split_once(':');
        let (key, value) = pair.ok_or_else(|| wrong_line("dumpe2fs", index, line, "not `key: value`"))?;
        if fields.insert(key.trim().to_owned(), value.trim().to_owned()).is_some() {
            return Err(wrong_line("dumpe2fs", index, line, "a duplicate key"));
        }
    }
    having("dumpe2fs", fields, &["Block size"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    /// From e2fsprogs 1.47.0, shortened.
    const EXT4: &str = "\
Filesystem volume name:   pgstrata-0123456
Filesystem UUID:          11111111-2222-3333-4444-555555555555
Filesystem features:      has_journal ext_attr metadata_csum
Filesystem flags:         signed_directory_hash 
Block size:               4096
Inode size:	          256
Filesystem created:       Sat Nov 21 02:55:49 2026
Total journal size:       32M

";

    #[test]
    fn a_superblock_reads() {
        let fields = parse(EXT4).unwrap();
        assert_eq!(fields["Block size"], "4096");
        assert_eq!(fields["Inode size"], "256");
        assert_eq!(fields["Filesystem created"], "Sat Nov 21 02:55:49 2026");
    }

    #[test]
    fn errors_name_the_line() {
        let error = parse("Block size: 4096\nnonsense\n").unwrap_err().to_string();
        assert_eq!(error, "dumpe2fs, line 2: not `key: value`: `nonsense`");
        assert!(parse("Inode size: 256\n").is_err());
        assert!(parse("Block size: 1\nBlock size: 2\n").unwrap_err().to_string().contains("line 2"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            drop(parse(&text));
        }
    }
}

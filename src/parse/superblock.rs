//! Superblocks as printed by `dumpe2fs -h DEVICE`, `debugreiserfs DEVICE`, `jfs_tune -l DEVICE`,
//! `nilfs-tune -l DEVICE` and `bcachefs show-super DEVICE`: a line per field, under headings.

use super::fields::{add_word, filled_lines, having, wrong_line};
use crate::error::Result;
use std::collections::BTreeMap;

/// Reads the `key: value` lines, removing quotes from values. Indented lines without a colon belong to the key above
/// them; other lines without one are headings.
///
/// # Errors
/// Names an indented line before any key, a duplicate key with different values, and `needed` if it is missing.
pub fn parse(tool: &str, needed: &str, text: &str) -> Result<BTreeMap<String, String>> {
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    let mut last: Option<String> = None;
    for (index, line) in filled_lines(text) {
        match line.split_once(':') {
            Some((key, value)) => {
                let (key, value) = (key.trim().to_owned(), value.trim().trim_matches('\'').to_owned());
                let before = fields.insert(key.clone(), value.clone());
                if before.is_some_and(|before| before != value) {
                    return Err(wrong_line(tool, index, line, "a duplicate key"));
                }
                last = Some(key);
            }
            None if line.starts_with(char::is_whitespace) => {
                let key = last.as_ref().ok_or_else(|| wrong_line(tool, index, line, "a value without a key"))?;
                add_word(fields.entry(key.clone()).or_default(), ", ", line.trim());
            }
            None => {}
        }
    }
    having(tool, fields, &[needed])
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
    /// From reiserfsprogs 3.6.27, shortened.
    const REISERFS: &str = "\
debugreiserfs 3.6.27


Filesystem state: consistent

Reiserfs super block in block 16 on 0x0 of format 3.6 with standard journal
Count of blocks on the device: 81920
Blocksize: 4096
Free blocks (count of blocks - used [journal, bitmaps, data, reserved] blocks): 73706
Hash function used to sort names: \"r5\"
Journal parameters:
\tDevice [0x0]
\tMax transaction length 1024 blocks
Blocks reserved by journal: 0
Set flags in SB:
\tATTRIBUTES CLEAN
Last fsck run: Sun Nov 22 11:27:29 2026
";
    /// From jfsutils 1.1.15, shortened.
    const JFS: &str = "\
jfs_tune version 1.1.15, 04-Mar-2011

JFS filesystem superblock:

JFS magic number:\t'JFS1'
JFS flags:\t\tJFS_LINUX  JFS_COMMIT  JFS_GROUPCOMMIT  JFS_INLINELOG  
Aggregate block size:\t4096 bytes
";
    /// From nilfs-tools 2.2.11, shortened.
    const NILFS2: &str = "\
Filesystem volume name:\t  pgstrata-1a2b3c4d-1
Filesystem features:      (none)
# of blocks per segment:  2048
Block size:\t\t  4096
";

    #[test]
    fn a_superblock_of_each_tool_reads() {
        let ext4 = parse("dumpe2fs", "Block size", EXT4).unwrap();
        assert_eq!((ext4["Block size"].as_str(), ext4["Inode size"].as_str()), ("4096", "256"));
        assert_eq!(ext4["Filesystem created"], "Sat Nov 21 02:55:49 2026");
        let reiserfs = parse("debugreiserfs", "Blocksize", REISERFS).unwrap();
        assert_eq!(reiserfs["Journal parameters"], "Device [0x0], Max transaction length 1024 blocks");
        assert_eq!(reiserfs["Set flags in SB"], "ATTRIBUTES CLEAN");
        assert_eq!(reiserfs["Last fsck run"], "Sun Nov 22 11:27:29 2026");
        let jfs = parse("jfs_tune", "Aggregate block size", JFS).unwrap();
        assert_eq!((jfs["JFS magic number"].as_str(), jfs["Aggregate block size"].as_str()), ("JFS1", "4096 bytes"));
        let nilfs2 = parse("nilfs-tune", "Block size", NILFS2).unwrap();
        assert_eq!(nilfs2["# of blocks per segment"], "2048");
    }

    #[test]
    fn errors_name_the_tool_and_the_line() {
        let error = |text: &str| parse("jfs_tune", "a", text).unwrap_err().to_string();
        assert_eq!(error("b: 1\n"), "jfs_tune printed no `a`");
        assert_eq!(error("\tflag\n"), "jfs_tune, line 1: a value without a key: `\tflag`");
        assert_eq!(error("a: 1\na: 2\n"), "jfs_tune, line 2: a duplicate key: `a: 2`");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            drop(parse("tool", "a", &text));
        }
    }
}

//! `reiserfs`: version 3, which Linux 6.13 removed.

use super::filesystem::{Recipe, on_one_device, superblock};
use super::options_kept::KeepRule;
use super::options_kept::KeepSign::{Shown, Unless};

pub static REISERFS: Recipe = Recipe {
    info: on_one_device(
        "reiserfs",
        "ReiserFS 3: journals metadata, packs small files; not in Linux 6.13 and later.",
        USUAL,
    ),
    programs: &["debugreiserfs"],
    package: "reiserfsprogs",
    label_bytes: 16,
    label_and_uuid: |label, uuid| ["-q", "-f", "-l", label, "-u", uuid].map(str::to_owned).to_vec(),
    rules: RULES,
    reading: READING,
    facts: |host, device, _| superblock(host, READING, device, "Blocksize", FACTS),
    ..Recipe::defaults()
};

/// Mount options commonly set for a database.
const USUAL: &str = "acl attrs barrier block-allocator commit data notail tails user_xattr";

/// fs/reiserfs/super.c, `reiserfs_show_options`: it prints no default.
const RULES: &[KeepRule] = &[
    ("barrier=flush", Unless(&["barrier=none"])),
    ("tails=small", Unless(&["tails=on", "notail"])),
    ("tails=off", Shown(&["notail"])),
    ("data=ordered", Unless(&["data="])),
    ("commit=30", Unless(&["commit="])),
    ("errors=ro-remount", Unless(&["errors="])),
];

const READING: &[&str] = &["debugreiserfs"];

const FACTS: &str = "Blocksize, Count of blocks on the device, Hash function used to sort names, Journal \
    parameters, Set flags in SB, UUID, sb_version";

#[cfg(test)]
mod tests {
    use crate::provision::test_site::{TestPlace, mkfs, mounted};
    use crate::record::claim::Claim;

    const SIZE: &str = "64MiB";

    #[test]
    fn mount_options_that_people_set_are_kept() {
        for list in ["notail,data=writeback", "barrier=flush,data=ordered", "tails=off,commit=60", "data=journal,acl"] {
            let Some(place) = TestPlace::with_layer("reiserfs") else { return };
            let built = place.build(&place.on_loop("reiserfs", SIZE, mounted(&[list])));
            assert!(built.is_ok(), "reiserfs with {list}: {}", built.unwrap_err());
            place.clean();
        }
    }

    #[test]
    fn a_mount_that_holds_flushes_back_says_so() {
        for (option, holds_back) in [("barrier=none", true), ("barrier=flush", false)] {
            let Some(place) = TestPlace::with_layer("reiserfs") else { return };
            let built = place.build(&place.on_loop("reiserfs", SIZE, mounted(&[option]))).unwrap();
            let promise = built.facts.promise(built.facts.data.as_ref(), Claim::HoldsFlushesBack);
            assert_eq!(promise.is_some(), holds_back, "{option}");
            place.clean();
        }
    }

    #[test]
    fn what_is_asked_of_mkfs_is_read_back() {
        let Some(place) = TestPlace::with_layer("reiserfs") else { return };
        let built = place.build(&place.on_loop("reiserfs", SIZE, mkfs(&["--hash", "tea"]))).unwrap();
        assert_eq!(built.facts.nodes[1].details["Hash function used to sort names"], "\"tea\"");
        place.clean();
    }
}

//! `jfs`: IBM's filesystem. Its mkfs takes no UUID, so that is set afterwards.

use super::filesystem::{Recipe, on_one_device, superblock};
use super::options_kept::KeepRule;
use super::options_kept::KeepSign::{Shown, Unless};
use crate::host::command::Command;

pub static JFS: Recipe = Recipe {
    info: on_one_device("jfs", "JFS: journals metadata; it never flushes the device's write cache.", USUAL),
    programs: &["jfs_tune"],
    package: "jfsutils",
    label_bytes: 16,
    label_and_uuid: |label, _| ["-q", "-L", label].map(str::to_owned).to_vec(),
    set_uuid: Some(|device, uuid| Command::new("jfs_tune").args(["-U", uuid]).arg(device)),
    rules: RULES,
    reading: READING,
    facts: |host, device, _| superblock(host, READING, device, "Aggregate block size", FACTS),
    ..Recipe::defaults()
};

/// Mount options commonly set for a database.
const USUAL: &str = "discard nodiscard errors integrity nointegrity";

/// fs/jfs/super.c, `jfs_show_options`.
const RULES: &[KeepRule] = &[
    ("discard", Shown(&["discard="])),
    ("nodiscard", Unless(&["discard="])),
    ("integrity", Unless(&["nointegrity"])),
    ("errors=remount-ro", Unless(&["errors="])),
];

const READING: &[&str] = &["jfs_tune", "-l"];

const FACTS: &str = "Aggregate block size, Aggregate size, Allocation group size, File system UUID, JFS flags, \
    JFS version, Physical block size";

#[cfg(test)]
mod tests {
    use crate::provision::test_site::{TestPlace, mounted};
    use crate::record::claim::Claim;

    const SIZE: &str = "64MiB";

    #[test]
    fn mount_options_that_people_set_are_kept() {
        for list in ["integrity,errors=remount-ro", "nointegrity", "discard", "nodiscard,errors=continue"] {
            let Some(place) = TestPlace::with_layer("jfs") else { return };
            let built = place.build(&place.on_loop("jfs", SIZE, mounted(&[list])));
            assert!(built.is_ok(), "jfs with {list}: {}", built.unwrap_err());
            place.clean();
        }
    }

    #[test]
    fn it_sends_no_flush_and_says_so() {
        let Some(place) = TestPlace::with_layer("jfs") else { return };
        let built = place.build(&place.on_loop("jfs", SIZE, mounted(&[]))).unwrap();
        assert!(built.facts.promise(built.facts.data.as_ref(), Claim::HoldsFlushesBack).is_some());
        let flushes = || {
            let stat = std::fs::read_to_string(format!("/sys/block/{}/stat", built.facts.devices()[0].1.name)).unwrap();
            stat.split_whitespace().nth(15).unwrap().parse::<u64>().unwrap()
        };
        let before = flushes();
        for number in 0..8 {
            let file = std::fs::File::create(built.folder().join(format!("file{number}"))).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &[1; 8192], 0).unwrap();
            file.sync_all().unwrap();
        }
        assert_eq!(
            flushes(),
            before,
            "a later kernel's jfs flushes: the row of record::durability is no longer true of it"
        );
        place.clean();
    }
}

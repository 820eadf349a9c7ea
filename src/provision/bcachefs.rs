//! `bcachefs`. Debian 13 has the driver but not the tools: there it is unmet, for that reason.

use super::filesystem::{Recipe, on_one_device, superblock};

pub static BCACHEFS: Recipe = Recipe {
    info: on_one_device(
        "bcachefs",
        "bcachefs: copy on write with checksums; in Linux 6.7 to 6.17, and its tools in few distributions.",
        "compression discard journal_flush_delay journal_flush_disabled nocow",
    ),
    programs: &["bcachefs"],
    package: "bcachefs-tools",
    // BCH_SB_LABEL_SIZE is 32.
    label_bytes: 31,
    label_and_uuid: |label, uuid| vec!["-q".to_owned(), format!("--fs_label={label}"), format!("--uuid={uuid}")],
    reading: READING,
    facts: |host, device, _| superblock(host, READING, device, "External UUID", FACTS),
    ..Recipe::defaults()
};

const READING: &[&str] = &["bcachefs", "show-super"];

const FACTS: &str = "Block size, Btree node size, Checksum, Device index, External UUID, Features, Version";

#[cfg(test)]
mod tests {
    use crate::host::Host;
    use crate::provision::Layer;
    use crate::record::options::Options;

    #[test]
    fn what_is_missing_names_the_tools() {
        let unmet = super::BCACHEFS.unmet(&Host::this(), &Options::default());
        if Host::this().has_program("mkfs.bcachefs") {
            println!("skipped: mkfs.bcachefs is here");
            return;
        }
        assert!(unmet.iter().any(|unmet| unmet.what == "the program mkfs.bcachefs"), "{unmet:?}");
    }
}

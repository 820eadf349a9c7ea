//! `f2fs`: a log-structured filesystem for flash.

use super::Details;
use super::filesystem::{Recipe, on_one_device};
use super::options_kept::KeepRule;
use super::options_kept::KeepSign::{Shown, Unless, UnlessOpposite};
use crate::error::{Error, Result};
use crate::host::{Host, paths};
use std::path::Path;

pub static F2FS: Recipe = Recipe {
    info: on_one_device("f2fs", "F2FS: log-structured, made for flash.", USUAL),
    package: "f2fs-tools",
    // MAX_VOLUME_NAME is 512 UTF-16 units.
    label_bytes: 255,
    // Not -q, which hides the reason of a failure.
    label_and_uuid: |label, uuid| ["-l", label, "-U", uuid].map(str::to_owned).to_vec(),
    rules: RULES,
    facts,
    ..Recipe::defaults()
};

/// Mount options commonly set for a database.
const USUAL: &str = "active_logs alloc_mode background_gc barrier checkpoint checkpoint_merge compress_algorithm \
    data_flush discard nodiscard discard_unit extent_cache noextent_cache fastboot flush_merge noflush_merge \
    fsync_mode gc_merge inline_data noinline_data memory mode nobarrier reserve_root";

/// fs/f2fs/super.c, `f2fs_show_options`: it prints nearly every active option, defaults included.
const RULES: &[KeepRule] = &[
    ("checkpoint=disable checkpoint=disable:", Shown(&["checkpoint=disable:"])),
    ("checkpoint=enable", Unless(&["checkpoint=disable:"])),
    ("norecovery disable_roll_forward", Shown(&["norecovery", "disable_roll_forward"])),
    ("noheap nogc_merge nocheckpoint_merge", UnlessOpposite),
    ("no_heap", Unless(&["heap"])),
];

/// Files of `/sys/fs/f2fs/<device>` about the superblock and the driver's writes
/// (Documentation/ABI/testing/sysfs-fs-f2fs).
const FACTS: &str = "features, main_blkaddr, reserved_segments, ovp_segments, cp_interval, discard_granularity, \
    gc_min_sleep_time, ipu_policy, min_fsync_blocks, min_ipu_util, max_small_discards, unusable";

fn facts(host: &Host, device: &Path, _target: &Path) -> Result<Details> {
    let real = paths::resolved(device);
    let folder = format!("/sys/fs/f2fs/{}", real.file_name().unwrap_or_default().to_string_lossy());
    let read = FACTS.split(", ").filter_map(|name| Some((name, host.read_optional(format!("{folder}/{name}"))?)));
    let shown: Details = read.map(|(name, value)| (name.to_owned(), value)).collect();
    match shown.contains_key("features") {
        true => Ok(shown),
        false => Err(Error::host(format!("{folder}/features cannot be read"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::provision::test_site::{TestPlace, mkfs, mounted};
    use crate::record::claim::Claim;

    const SIZE: &str = "128MiB";

    #[test]
    fn mount_options_that_people_set_are_kept() {
        for list in [
            "discard,noinline_data,active_logs=2",
            "nodiscard,flush_merge,fsync_mode=strict",
            "mode=lfs,alloc_mode=reuse,background_gc=off",
            "checkpoint=enable,noextent_cache,fastboot",
            "checkpoint_merge,gc_merge",
        ] {
            let Some(place) = TestPlace::with_layer("f2fs") else { return };
            let built = place.build(&place.on_loop("f2fs", SIZE, mounted(&[list])));
            assert!(built.is_ok(), "f2fs with {list}: {}", built.unwrap_err());
            place.clean();
        }
    }

    #[test]
    fn a_mount_that_holds_flushes_back_says_so() {
        for (option, holds_back) in [("nobarrier", true), ("fsync_mode=nobarrier", true), ("fsync_mode=posix", false)] {
            let Some(place) = TestPlace::with_layer("f2fs") else { return };
            let built = place.build(&place.on_loop("f2fs", SIZE, mounted(&[option]))).unwrap();
            let promise = built.facts.promise(built.facts.data.as_ref(), Claim::HoldsFlushesBack);
            assert_eq!(promise.is_some(), holds_back, "{option}");
            place.clean();
        }
    }

    #[test]
    fn features_asked_of_mkfs_are_read_back() {
        let Some(place) = TestPlace::with_layer("f2fs") else { return };
        let built = place.build(&place.on_loop("f2fs", SIZE, mkfs(&["-O", "extra_attr,inode_checksum"]))).unwrap();
        let features = &built.facts.nodes[1].details["features"];
        assert!(features.contains("extra_attr") && features.contains("inode_checksum"), "{features}");
        place.clean();
    }

    #[test]
    fn what_mkfs_refuses_is_told_in_its_own_words() {
        let Some(place) = TestPlace::with_layer("f2fs") else { return };
        let error = place.build(&place.on_loop("f2fs", "4MiB", mkfs(&[]))).unwrap_err().to_string();
        assert!(error.contains("mkfs.f2fs") && error.to_lowercase().contains("device size"), "{error}");
        place.clean();
    }
}

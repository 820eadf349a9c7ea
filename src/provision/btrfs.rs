//! `btrfs`, on one device.

use super::filesystem::{self, OnDevice, Recipe};
use super::options_kept::Kept::{Shown, Unless};
use super::options_kept::Rule;
use crate::error::Result;
use crate::host::Host;
use crate::host::command::Command;
use crate::parse::btrfs;
use std::collections::BTreeMap;
use std::path::Path;

/// The layer.
pub static BTRFS: OnDevice =
    OnDevice { doc: "btrfs: copy on write with checksums, unless mounted with nodatacow.", recipe: RECIPE };

const RECIPE: Recipe = Recipe {
    name: "btrfs",
    mkfs: "mkfs.btrfs",
    programs: &["btrfs"],
    package: "btrfs-progs",
    modules: &["btrfs"],
    // BTRFS_LABEL_SIZE is 256 with the closing zero.
    label_bytes: 255,
    label_and_uuid: |label, uuid| ["-q", "-L", label, "-U", uuid].map(str::to_owned).to_vec(),
    rules: RULES,
    in_force: |_, _| Vec::new(),
    facts,
};

/// fs/btrfs/super.c, `btrfs_fs_parameters` and `btrfs_show_options`.
const RULES: &[Rule] = &[
    ("datacow", Unless(&["nodatacow"])),
    ("datasum", Unless(&["nodatasum"])),
    ("barrier", Unless(&["nobarrier"])),
    ("treelog", Unless(&["notreelog"])),
    ("acl", Unless(&["noacl"])),
    ("noautodefrag", Unless(&["autodefrag"])),
    ("noflushoncommit", Unless(&["flushoncommit"])),
    ("noenospc_debug", Unless(&["enospc_debug"])),
    ("nossd_spread", Unless(&["ssd_spread"])),
    ("nodiscard", Unless(&["discard", "discard="])),
    ("discard=sync", Shown(&["discard"])),
    ("discard", Shown(&["discard=sync"])),
    ("space_cache=v1", Shown(&["space_cache"])),
    ("commit=30", Unless(&["commit="])),
    ("max_inline=2048", Unless(&["max_inline="])),
    ("compress", Shown(&["compress="])),
    ("compress=zlib", Shown(&["compress=zlib:"])),
    ("compress=zstd", Shown(&["compress=zstd:"])),
    ("compress=no", Unless(&["compress=", "compress-force="])),
    ("compress=none", Unless(&["compress=", "compress-force="])),
    ("compress-force", Shown(&["compress-force="])),
    ("compress-force=zlib", Shown(&["compress-force=zlib:"])),
    ("compress-force=zstd", Shown(&["compress-force=zstd:"])),
];

const FACTS: &[&str] = &[
    "fsid",
    "csum_type",
    "sectorsize",
    "nodesize",
    "stripesize",
    "num_devices",
    "total_bytes",
    "compat_flags",
    "compat_ro_flags",
    "incompat_flags",
];

fn facts(host: &Host, device: &Path, target: &Path) -> Result<BTreeMap<String, String>> {
    let printed = host.run(&Command::new("btrfs").args(["inspect-internal", "dump-super"]).arg(device))?;
    let mut facts = filesystem::chosen(&btrfs::parse_super(&printed.stdout)?, FACTS);
    let printed = host.run(&Command::new("btrfs").args(["filesystem", "df", "-b"]).arg(target))?;
    let profiles = btrfs::parse_profiles(&printed.stdout)?;
    facts.extend(profiles.into_iter().map(|(kind, profile)| (format!("profile of {kind}"), profile)));
    Ok(facts)
}

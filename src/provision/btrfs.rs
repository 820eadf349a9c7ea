//! `btrfs`, on one device or several.

use super::filesystem::{self, CopyOptions, MADE, MKFS, MOUNT, MOUNTED, Recipe, on_one_device};
use super::ledger::Thing;
use super::options_kept::KeepRule;
use super::options_kept::KeepSign::{Shown, Unless, UnlessOpposite};
use super::snapshots::{SNAPSHOT, SnapshotWay, reflinks};
use super::{Details, LayerInfo, folder, total};
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::{Host, paths};
use crate::parse::btrfs;
use crate::record::options::{OptionKind, OptionSpec, Options};
use crate::record::stack::Take;
use crate::units::Bytes;
use std::path::Path;

pub static BTRFS: Recipe = Recipe {
    info: LayerInfo {
        takes: &[Take { most: 64, doc: "The devices to use; default: all that are still unused.", ..Take::ONE_DEVICE }],
        options: &[MKFS, MOUNT, profile("data", "Data profile."), profile("metadata", "Metadata profile."), NOCOW],
        undo: &[MOUNTED, MADE, (SNAPSHOT, delete_snapshot)],
        ..on_one_device("btrfs", "btrfs: copy on write with checksums, unless mounted with nodatacow.", USUAL)
    },
    programs: &["btrfs", "chattr", "lsattr"],
    package: "btrfs-progs",
    capacity,
    // BTRFS_LABEL_SIZE is 256, including the trailing zero.
    copies: CopyOptions { bare: "fMKqvV", short: 'r', long: "rootdir" },
    trying: Some(&[]),
    label_bytes: 255,
    label_and_uuid: |label, uuid| ["-q", "-L", label, "-U", uuid].map(str::to_owned).to_vec(),
    further: |making| profiles(making.options),
    members: |devices| devices.data[1..].iter().map(|path| format!("device={}", path.display())).collect(),
    rules: RULES,
    mark_folder,
    after_mount: nocow,
    snapshots: Some(snapshot_way),
    reading: READING,
    facts,
    ..Recipe::defaults()
};

/// Read-only subvolumes of the whole filesystem, in a folder at its top; deleted ones are cleaned up in the background.
fn snapshot_way(target: &Path) -> SnapshotWay {
    SnapshotWay {
        make: |of, name| subvolume("snapshot").arg("-r").arg(&of.folder).arg(of.folder.join(name)),
        delete: |of, name| subvolume("delete").arg(of.folder.join(name)),
        thing: |of, name| Thing::new("btrfs", SNAPSHOT).with_path("path", &of.folder.join(name)),
        is_filled: false,
        copy: Some(|of, snapshot, name| subvolume("snapshot").args([snapshot, name].map(|name| of.folder.join(name)))),
        ..reflinks(target)
    }
}

fn subvolume(verb: &str) -> Command {
    Command::new("btrfs").args(["-q", "subvolume", verb])
}

fn delete_snapshot(host: &Host, thing: &Thing) -> Result<()> {
    let path = Path::new(thing.mark("path")?);
    if !folder::has_our_name(path) || !paths::exists(path) {
        return Ok(());
    }
    host.run(&subvolume("delete").arg(path)).map(drop)
}

/// Profiles that mkfs.btrfs(8) knows.
const PROFILES: &[&str] = &["single", "dup", "raid0", "raid1", "raid1c3", "raid1c4", "raid10", "raid5", "raid6"];

const fn profile(key: &'static str, doc: &'static str) -> OptionSpec {
    OptionSpec::with_default(key, OptionKind::OneOf(PROFILES), "the mkfs.btrfs default for the number of devices")
        .doc(doc)
}

const NOCOW: OptionSpec = OptionSpec::with_default("nocow", OptionKind::Boolean, "false")
    .doc("Turn off copy on write, checksums and compression for new files (chattr +C on the folder).");

/// Sets the attribute on the empty folder, so that its files inherit it.
fn mark_folder(target: &Path, options: &Options) -> Option<Command> {
    (options.boolean("nocow") == Some(true)).then(|| Command::new("chattr").arg("+C").arg(target))
}

fn nocow(host: &Host, target: &Path, options: &Options) -> Result<Details> {
    let printed = host.run(&Command::new("lsattr").arg("-d").arg(target))?.stdout;
    let has = printed.split_whitespace().next().is_some_and(|attributes| attributes.contains('C'));
    if options.boolean("nocow") == Some(true) && !has {
        return Err(Error::host(format!("chattr +C on {} has no effect: `{}`", target.display(), printed.trim())));
    }
    Ok([("nocow".to_owned(), if has { "on, for new files" } else { "off" }.to_owned())].into())
}

/// Arguments of mkfs for the requested profiles.
fn profiles(options: &Options) -> Vec<String> {
    let asked = [("-d", "data"), ("-m", "metadata")].into_iter();
    asked.filter_map(|(flag, key)| Some([flag.to_owned(), options.text(key)?.to_owned()])).flatten().collect()
}

/// Capacity of the devices under the data's profile (btrfs(5), "Profiles").
fn capacity(options: &Options, data: &[Bytes]) -> Bytes {
    let devices = data.len() as u64;
    let all = total(data).0;
    Bytes(match options.text("data").unwrap_or("single") {
        "dup" | "raid1" | "raid10" => all / 2,
        "raid1c3" => all / 3,
        "raid1c4" => all / 4,
        "raid5" => all / devices * devices.saturating_sub(1),
        "raid6" => all / devices * devices.saturating_sub(2),
        _ => all,
    })
}

/// Mount options commonly set for a database.
const USUAL: &str = "autodefrag noautodefrag barrier nobarrier commit compress compress-force datacow nodatacow \
    datasum nodatasum discard nodiscard flushoncommit noflushoncommit max_inline metadata_ratio notreelog treelog \
    space_cache ssd nossd ssd_spread thread_pool";

/// fs/btrfs/super.c, `btrfs_fs_parameters` and `btrfs_show_options`.
const RULES: &[KeepRule] = &[
    ("datacow datasum barrier treelog acl", UnlessOpposite),
    ("noautodefrag noflushoncommit noenospc_debug nossd_spread", UnlessOpposite),
    ("nodiscard", Unless(&["discard", "discard="])),
    ("discard=sync", Shown(&["discard"])),
    ("discard", Shown(&["discard=sync"])),
    ("space_cache=v1", Shown(&["space_cache"])),
    ("commit=30", Unless(&["commit="])),
    ("max_inline=2048", Unless(&["max_inline="])),
    ("compress", Shown(&["compress="])),
    ("compress=zlib", Shown(&["compress=zlib:"])),
    ("compress=zstd", Shown(&["compress=zstd:"])),
    ("compress=no compress=none", Unless(&["compress=", "compress-force="])),
    ("compress-force", Shown(&["compress-force="])),
    ("compress-force=zlib", Shown(&["compress-force=zlib:"])),
    ("compress-force=zstd", Shown(&["compress-force=zstd:"])),
];

const READING: &[&str] = &["btrfs", "inspect-internal", "dump-super"];

const FACTS: &str = "fsid, csum_type, sectorsize, nodesize, stripesize, num_devices, total_bytes, compat_flags, \
    compat_ro_flags, incompat_flags";

fn facts(host: &Host, device: &Path, target: &Path) -> Result<Details> {
    let mut facts = filesystem::printed(host, READING, device, btrfs::parse_super, FACTS)?;
    let printed = host.run(&Command::new("btrfs").args(["filesystem", "df", "-b"]).arg(target))?;
    let profiles = btrfs::parse_profiles(&printed.stdout)?;
    facts.extend(profiles.into_iter().map(|(kind, profile)| (format!("profile of {kind}"), profile)));
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use crate::provision::test_site::{TestPlace, mounted, options_of};
    use crate::record::options::OptionValue;

    const SIZE: &str = "256MiB";

    #[test]
    fn options_for_flash_and_defragmentation_are_kept() {
        for list in ["ssd,discard,autodefrag", "nossd", "discard=async,noautodefrag", "ssd_spread"] {
            let Some(place) = TestPlace::with_layer("btrfs") else { return };
            let built = place.build(&place.on_loop("btrfs", SIZE, mounted(&[list])));
            assert!(built.is_ok(), "btrfs with {list}: {}", built.unwrap_err());
            place.clean();
        }
    }

    #[test]
    fn files_of_a_folder_without_copy_on_write_have_none() {
        for (nocow, shown) in [(true, "on, for new files"), (false, "off")] {
            let Some(place) = TestPlace::with_layer("btrfs") else { return };
            let options = options_of(&[("nocow", OptionValue::Boolean(nocow))]);
            let built = place.build(&place.on_loop("btrfs", SIZE, options)).unwrap();
            assert_eq!(built.facts.nodes[1].details["nocow"], shown);
            let file = built.folder().join("file");
            std::fs::write(&file, "x").unwrap();
            let listed = place.host.run(&crate::host::command::Command::new("lsattr").arg(&file)).unwrap().stdout;
            assert_eq!(listed.split(' ').next().unwrap().contains('C'), nocow, "{listed}");
            place.clean();
        }
    }
}

//! `ext2`, `ext3`, `ext4`: one family, one driver, one set of tools.

use super::filesystem::{self, CopyOptions, FilesystemDevices, LOG, MADE, MOUNTED, Making, Recipe, on_one_device};
use super::options_kept::KeepRule;
use super::options_kept::KeepSign::{Shown, Unless, UnlessOpposite};
use crate::host::command::Command;
use crate::host::{Host, paths};
use crate::record::stack::{Role, Take};
use std::path::Path;

pub static EXT2: Recipe =
    recipe("ext2", "ext2: no journal; needs fsck after a crash.", &["ext4", "ext2"], &[Take::ONE_DEVICE]);

pub static EXT3: Recipe = recipe(
    "ext3",
    "ext3: journal, but no extents and no delayed allocation.",
    &["ext4", "ext3"],
    &[Take::ONE_DEVICE, JOURNAL],
);

pub static EXT4: Recipe = recipe("ext4", "ext4: the default on Debian.", &["ext4"], &[Take::ONE_DEVICE, JOURNAL]);

const JOURNAL: Take =
    Take { role: Role::Log, key: "journal", least: 0, doc: "Separate device for the journal.", ..Take::ONE_DEVICE };

/// Default block size of a filesystem with an external journal: both must use the same (mke2fs(8), `-J device=`), and
/// mke2fs chooses by the size of each.
const BLOCK_BYTES: &str = "4096";

const fn recipe(
    name: &'static str,
    doc: &'static str,
    modules: &'static [&'static str],
    takes: &'static [Take],
) -> Recipe {
    Recipe {
        info: on_one_device(name, doc, USUAL).on(takes).undone_by(&[MOUNTED, MADE, (LOG, filesystem::wipe)]),
        programs: &["dumpe2fs"],
        package: "e2fsprogs",
        modules,
        copies: CopyOptions { bare: "cjnqvFKSV", short: 'd', long: "" },
        trying: Some(&["-n"]),
        label_bytes: 16,
        label_and_uuid: |label, uuid| ["-q", "-L", label, "-U", uuid].map(str::to_owned).to_vec(),
        further,
        make_log: Some(make_journal),
        members,
        rules: RULES,
        in_force,
        reading: READING,
        facts: |host, device, _| filesystem::superblock(host, READING, device, "Block size", FACTS),
        ..Recipe::defaults()
    }
}

/// Extended options that make mke2fs zero inode tables and journal itself. By default the kernel zeroes the tables in
/// the background after the first mount, which would be measured.
const ZEROED: [&str; 2] = ["lazy_itable_init=0", "lazy_journal_init=0"];

/// Arguments that zero whatever the plan's arguments leave open. mke2fs honors only the last `-E`, so the plan's is
/// repeated.
fn zeroed(arguments: &[String]) -> Vec<String> {
    let given = last_value(arguments, "-E").unwrap_or_default();
    let names: Vec<&str> = given.split(',').map(name_of).collect();
    let missing: Vec<&str> = ZEROED.into_iter().filter(|option| !names.contains(&name_of(option))).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let all = Some(given).filter(|given| !given.is_empty()).into_iter().chain(missing);
    vec!["-E".to_owned(), all.collect::<Vec<_>>().join(",")]
}

fn name_of(option: &str) -> &str {
    option.split('=').next().unwrap_or_default()
}

/// The value of the last of these options.
fn last_value<'a>(arguments: &'a [String], option: &str) -> Option<&'a str> {
    let at = arguments.iter().rposition(|argument| argument.starts_with(option))?;
    let inside = arguments[at].strip_prefix(option).filter(|value| !value.is_empty());
    inside.or_else(|| arguments.get(at + 1).map(String::as_str))
}

fn further(making: &Making<'_>) -> Vec<String> {
    let asked = making.options.texts("mkfs");
    let mut further = if making.on_images { zeroed(&asked) } else { Vec::new() };
    if let Some(journal) = making.devices.log {
        further.extend(["-J".to_owned(), format!("device={}", journal.display())]);
        if last_value(&asked, "-b").is_none() {
            further.extend(["-b", BLOCK_BYTES].map(str::to_owned));
        }
    }
    further
}

fn make_journal(making: &Making<'_>, journal: &Path) -> Command {
    let asked = making.options.texts("mkfs");
    let block = last_value(&asked, "-b").unwrap_or(BLOCK_BYTES);
    let (label, uuid) = (making.label, making.log_uuid.as_str());
    Command::new("mke2fs").args(["-q", "-O", "journal_dev", "-b", block, "-L", label, "-U", uuid]).arg(journal)
}

/// The journal's device number in the superblock may belong to another device by now.
fn members(devices: &FilesystemDevices<'_>) -> Vec<String> {
    devices.log.iter().map(|journal| format!("journal_path={}", journal.display())).collect()
}

/// Mount options commonly set for a database.
const USUAL: &str = "barrier nobarrier commit data delalloc nodelalloc discard nodiscard journal_checksum \
    journal_async_commit journal_ioprio dioread_lock dioread_nolock auto_da_alloc noauto_da_alloc stripe \
    max_batch_time min_batch_time inode_readahead_blks";

/// From fs/ext4/super.c, `ext4_mount_opts` and `_ext4_show_options`. Most defaults need no line: the kernel prints them
/// too, in `/proc/fs/ext4/<device>/options`.
const RULES: &[KeepRule] = &[
    ("barrier nodiscard delalloc", UnlessOpposite),
    ("barrier=1", Unless(&["nobarrier"])),
    ("barrier=0", Shown(&["nobarrier"])),
    ("auto_da_alloc=1", Unless(&["noauto_da_alloc"])),
    ("auto_da_alloc=0", Shown(&["noauto_da_alloc"])),
    ("noload", Shown(&["norecovery"])),
    ("dioread_lock", Shown(&["nodioread_nolock"])),
    // Always on since Linux 6.1, and not shown if mount(8) uses the newer calls.
    ("iversion", UnlessOpposite),
    ("journal_async_commit", Shown(&["journal_async_commit"])),
    ("bsdgroups", Shown(&["grpid"])),
    ("sysvgroups", Unless(&["grpid"])),
];

/// The driver lists all active options, defaults included, under the kernel's name of the device.
fn in_force(host: &Host, device: &str) -> Vec<String> {
    let real = paths::resolved(Path::new(device));
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    host.read_optional(format!("/proc/fs/ext4/{name}/options")).unwrap_or_default().lines().map(str::to_owned).collect()
}

const READING: &[&str] = &["dumpe2fs", "-h"];

const FACTS: &str = "Filesystem UUID, Filesystem features, Default mount options, Block size, Cluster size, \
    Inode size, Inode count, Block count, Reserved block count, Flex block group size, RAID stride, RAID stripe \
    width, Journal features, Total journal size, Journal UUID, Journal device, Fast commit length, Checksum type";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provision::test_site::{TestPlace, mkfs};

    #[test]
    fn clusters_of_bigalloc_are_read_back() {
        let Some(place) = TestPlace::with_layer("ext4") else { return };
        let built = place
            .build(&place.on_loop("ext4", "64MiB", mkfs(&["-b", "4096", "-O", "bigalloc", "-C", "65536"])))
            .unwrap();
        let details = &built.facts.nodes[1].details;
        assert_eq!((details["Cluster size"].as_str(), details["Block size"].as_str()), ("65536", "4096"));
        assert!(details["Filesystem features"].contains("bigalloc"), "{details:?}");
        place.clean();
    }

    #[test]
    fn images_are_zeroed_by_mkfs_unless_the_plan_says_otherwise() {
        let zeroed = |plan: &str| zeroed(&plan.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).join(" ");
        assert_eq!(zeroed("-b 4096"), "-E lazy_itable_init=0,lazy_journal_init=0");
        assert_eq!(zeroed("-E stride=4"), "-E stride=4,lazy_itable_init=0,lazy_journal_init=0");
        assert_eq!(zeroed("-Elazy_itable_init=1,stride=4"), "-E lazy_itable_init=1,stride=4,lazy_journal_init=0");
        assert_eq!(zeroed("-E lazy_itable_init,lazy_journal_init=1"), "");
    }
}

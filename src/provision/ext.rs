//! `ext2`, `ext3`, `ext4`: one family, one driver, one set of tools.

use super::filesystem::{self, OnDevice, Recipe};
use super::options_kept::Kept::{Shown, Unless};
use super::options_kept::Rule;
use crate::error::Result;
use crate::host::command::Command;
use crate::host::{Host, paths};
use crate::parse::dumpe2fs;
use std::collections::BTreeMap;
use std::path::Path;

/// ext2: no journal.
pub static EXT2: OnDevice = OnDevice {
    doc: "ext2: without a journal; a crash needs fsck.",
    recipe: recipe("ext2", "mkfs.ext2", &["ext4", "ext2"]),
};

/// ext3.
pub static EXT3: OnDevice = OnDevice {
    doc: "ext3: a journal, but no extents and no delayed allocation.",
    recipe: recipe("ext3", "mkfs.ext3", &["ext4", "ext3"]),
};

/// ext4.
pub static EXT4: OnDevice =
    OnDevice { doc: "ext4: the default of Debian.", recipe: recipe("ext4", "mkfs.ext4", &["ext4"]) };

const fn recipe(name: &'static str, mkfs: &'static str, modules: &'static [&'static str]) -> Recipe {
    Recipe {
        name,
        mkfs,
        programs: &["dumpe2fs"],
        package: "e2fsprogs",
        modules,
        label_bytes: 16,
        label_and_uuid: |label, uuid| ["-q", "-L", label, "-U", uuid].map(str::to_owned).to_vec(),
        rules: RULES,
        in_force,
        facts,
    }
}

/// fs/ext4/super.c, `ext4_mount_opts` and `_ext4_show_options`. Most defaults need no line: the kernel prints them, too,
/// in `/proc/fs/ext4/<device>/options`.
const RULES: &[Rule] = &[
    ("barrier", Unless(&["nobarrier"])),
    ("barrier=1", Unless(&["nobarrier"])),
    ("barrier=0", Shown(&["nobarrier"])),
    ("auto_da_alloc=1", Unless(&["noauto_da_alloc"])),
    ("auto_da_alloc=0", Shown(&["noauto_da_alloc"])),
    ("noload", Shown(&["norecovery"])),
    ("dioread_lock", Shown(&["nodioread_nolock"])),
    ("iversion", Shown(&["i_version"])),
    ("journal_async_commit", Shown(&["journal_async_commit"])),
    ("bsdgroups", Shown(&["grpid"])),
    ("sysvgroups", Unless(&["grpid"])),
    ("nodiscard", Unless(&["discard"])),
    ("delalloc", Unless(&["nodelalloc"])),
];

/// The driver lists all options in force, defaults included, by the kernel's name of the device.
fn in_force(host: &Host, device: &str) -> Vec<String> {
    let real = paths::resolved(Path::new(device));
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let listed = host.read_optional(format!("/proc/fs/ext4/{name}/options")).unwrap_or_default();
    listed.lines().map(str::to_owned).collect()
}

const FACTS: &[&str] = &[
    "Filesystem UUID",
    "Filesystem features",
    "Default mount options",
    "Block size",
    "Inode size",
    "Inode count",
    "Block count",
    "Reserved block count",
    "Flex block group size",
    "RAID stride",
    "RAID stripe width",
    "Journal features",
    "Total journal size",
    "Fast commit length",
    "Checksum type",
];

fn facts(host: &Host, device: &Path, _target: &Path) -> Result<BTreeMap<String, String>> {
    let printed = host.run(&Command::new("dumpe2fs").arg("-h").arg(device))?;
    Ok(filesystem::chosen(&dumpe2fs::parse(&printed.stdout)?, FACTS))
}

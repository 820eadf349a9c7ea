//! Content of a guest: packages and scripts. All of it is part of the steps' keys.

use super::steps::{BuildStep, key};
use super::suite::Suite;
use std::path::Path;

/// To be increased when a step makes something else from the same inputs.
const EDITION: &str = "1";

/// Packages for the first step: the kernel, busybox, and tools to build ZFS.
pub(super) const COMPILING: &[&str] = &["busybox-static", "linux-headers-amd64", "linux-image-amd64", "zfs-dkms"];

/// Packages of the root image, besides the essential ones. Patterns are for packages that some suites lack.
pub(super) const ROOT: &[&str] = &[
    "bash",
    "bcache-tools",
    "bsdutils",
    "btrfs-compsize",
    "btrfs-progs",
    "cryptsetup-bin",
    "dmsetup",
    "dosfstools",
    "e2fsprogs",
    "fdisk",
    "f2fs-tools",
    "iproute2",
    "jfsutils",
    "kmod",
    "lvm2",
    "mdadm",
    "mount",
    "nilfs-tools",
    "postgresql",
    "procps",
    "thin-provisioning-tools",
    "udev",
    "xfsprogs",
    "zfsutils-linux",
    "?exact-name(bcachefs-tools)",
    "?exact-name(reiserfsprogs)",
];

/// apt preferences for backports: kernel and ZFS; everything else is from the stable suite.
pub(super) const PREFERENCES: &str = "\
Package: linux-* zfs-* zfsutils-linux libzfs* libzpool* libnvpair* libuutil*
Pin: release n=*-backports
Pin-Priority: 990
";

/// Modules loaded before the root image is mounted; those of the second list only if the kernel has them.
pub(super) const EARLY_MODULES: &[&str] = &["virtio_pci", "virtio_blk", "virtio_console", "ext4", "9p", "9pnet_virtio"];
pub(super) const EARLY_MODULES_IF_THERE: &[&str] = &["crc32c_generic", "virtio_rng"];

pub(super) const MODULES_SCRIPT: &str = include_str!("scripts/modules.sh");
pub(super) const ROOT_SCRIPT: &str = include_str!("scripts/root.sh");
pub(super) const INITRAMFS_SCRIPT: &str = include_str!("scripts/initramfs.sh");
pub(super) const PROBE_SCRIPT: &str = include_str!("scripts/probe.sh");
pub(super) const INIT_SCRIPT: &str = include_str!("scripts/init.sh");

/// Size of the root image; unwritten parts take no space on the host.
pub(super) const ROOT_SIZE: &str = "8G";

/// The steps of a suite, in order.
#[derive(Debug)]
pub(super) struct Steps {
    /// Kernel, its modules and ZFS, busybox.
    pub(super) modules: BuildStep,
    /// Files that QEMU loads: the unpacked kernel, the initramfs.
    pub(super) boot: BuildStep,
    pub(super) root: BuildStep,
}

impl Steps {
    pub(super) fn of(suite: &Suite, folder: &Path) -> Steps {
        let step = |name, inputs: &[&str]| BuildStep { folder: folder.to_path_buf(), name, key: key(inputs) };
        let compiling = COMPILING.join(" ");
        let mut of_modules = vec![EDITION, suite.name(), &compiling, MODULES_SCRIPT];
        of_modules.extend(suite.is_backports().then_some(PREFERENCES));
        let modules = step("modules", &of_modules);
        let early = [EARLY_MODULES.join(" "), EARLY_MODULES_IF_THERE.join(" ")];
        let boot = step("boot", &[EDITION, &modules.key, &early[0], &early[1], INITRAMFS_SCRIPT, PROBE_SCRIPT]);
        let root = step("root", &[EDITION, &modules.key, &ROOT.join(" "), ROOT_SCRIPT, ROOT_SIZE]);
        Steps { modules, boot, root }
    }

    pub(super) fn all(&self) -> [&BuildStep; 3] {
        [&self.modules, &self.boot, &self.root]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_share_no_step() {
        let of = |name: &str| Steps::of(&name.parse().unwrap(), Path::new("/c"));
        for (one, other) in [("bookworm", "trixie"), ("trixie", "trixie-backports")] {
            for (one, other) in of(one).all().iter().zip(of(other).all()) {
                assert_ne!(one.key, other.key, "{}", one.name);
            }
        }
    }
}

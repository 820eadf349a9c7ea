//! Requirements that layers have of a machine: root, programs, kernel filesystems, free space.
//!
//! Reads, never changes: a missing kernel module is not loaded here, since mount(8) has the kernel do that.

use super::{Space, Unmet};
use crate::host::{Host, files, paths, users};
use crate::parse::{meminfo, modules_dep};
use crate::units::Bytes;
use std::collections::BTreeMap;
use std::path::Path;

/// Unmet unless running as root.
pub(super) fn root() -> Option<Unmet> {
    root_to("to create devices, filesystems and mounts", "or use a `directory` stack")
}

/// As [`root`], with the purpose and a way to do without.
pub(super) fn root_to(purpose: &str, without: &str) -> Option<Unmet> {
    (!users::is_root())
        .then(|| Unmet { what: format!("root, {purpose}"), hint: format!("run it with sudo, {without}") })
}

/// Unmet if a program is missing; the Debian package provides it.
pub(super) fn program(host: &Host, name: &str, package: &str) -> Option<Unmet> {
    (!host.has_program(name))
        .then(|| Unmet { what: format!("the program {name}"), hint: format!("apt-get install {package}") })
}

/// The missing programs, each with its package.
pub(super) fn programs<'a>(host: &Host, wanted: &[(&'a str, &'a str)]) -> Vec<Unmet> {
    wanted.iter().filter_map(|(name, package)| program(host, name, package)).collect()
}

/// Hint for a kernel that lacks a driver.
pub(super) const LACKING_KERNEL: &str =
    "run the plan with --guest, boot a kernel that has it, or install the package with this kernel's modules";

/// Unmet unless the kernel has the filesystem type: registered, or in one of these modules, which it loads on demand.
pub(super) fn kernel_filesystem(host: &Host, fstype: &str, modules: &[&str]) -> Option<Unmet> {
    let registered = host.read_optional("/proc/filesystems").unwrap_or_default();
    let known = registered.lines().any(|line| line.split_whitespace().next_back() == Some(fstype));
    (!known && !modules.iter().any(|module| has_module(host, module))).then(|| Unmet {
        what: format!("the filesystem {fstype} in the kernel {}", release(host).unwrap_or_default()),
        hint: LACKING_KERNEL.to_owned(),
    })
}

pub(super) fn loop_devices(host: &Host) -> Option<Unmet> {
    (!paths::exists(Path::new("/dev/loop-control")) && !has_module(host, "loop")).then(|| Unmet {
        what: "loop devices (/dev/loop-control)".to_owned(),
        hint: "boot a kernel with loop devices; in a container, pass in /dev/loop-control and /dev/loop*".to_owned(),
    })
}

/// True if the module is on depmod's list, or on that of built-in modules.
pub(super) fn has_module(host: &Host, module: &str) -> bool {
    let Some(release) = release(host) else { return false };
    ["modules.dep", "modules.builtin"].iter().any(|list| {
        let text = host.read_optional(format!("/lib/modules/{release}/{list}")).unwrap_or_default();
        text.lines().any(|line| modules_dep::name(line.split(':').next().unwrap_or(line)) == module)
    })
}

/// Release of the running kernel.
pub(super) fn release(host: &Host) -> Option<String> {
    host.read_optional("/proc/sys/kernel/osrelease")
}

/// Space missing for stacks that stand at the same time, in total: on each filesystem, and in memory.
pub fn lacking_space(host: &Host, spaces: &[Space]) -> Vec<Unmet> {
    let mut disks: BTreeMap<u64, (&Path, u64)> = BTreeMap::new();
    let mut memory = 0u64;
    for space in spaces {
        match space {
            Space::Memory(Bytes(bytes)) => memory = memory.saturating_add(*bytes),
            Space::Disk(folder, Bytes(bytes)) | Space::Image(folder, Bytes(bytes)) => {
                let device = paths::look_at(&files::nearest_existing(folder)).map_or(0, |found| found.filesystem);
                let sum = disks.entry(device).or_insert((folder, 0));
                sum.1 = sum.1.saturating_add(*bytes);
            }
        }
    }
    let on_disk = disks.into_values().filter_map(|(folder, bytes)| {
        let free = files::free_bytes(&files::nearest_existing(folder)).ok()?;
        (bytes > free).then(|| too_little(bytes, free, &format!("on the filesystem of {}", folder.display())))
    });
    let available = host.read("/proc/meminfo").and_then(|text| meminfo::parse(&text)).unwrap_or_default();
    let in_memory = available.available_bytes.filter(|free| memory > *free);
    on_disk.chain(in_memory.map(|free| too_little(memory, free, "in memory"))).collect()
}

fn too_little(needed: u64, free: u64, place: &str) -> Unmet {
    Unmet {
        what: format!("{} of space {place} ({} free)", Bytes(needed), Bytes(free)),
        hint: "use a smaller size or another location, or free some space".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(files: &[(&str, &str)]) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let host = Host::rooted(root.path());
        (root, host)
    }

    #[test]
    fn filesystems_are_available_when_registered_or_provided_by_a_module() {
        let (_root, host) = fake(&[
            ("proc/filesystems", "nodev\ttmpfs\n\text4\n"),
            ("proc/sys/kernel/osrelease", "6.1.0\n"),
            ("lib/modules/6.1.0/modules.dep", "kernel/fs/xfs/xfs.ko.xz: kernel/lib/libcrc32c.ko.xz\n"),
            ("lib/modules/6.1.0/modules.builtin", "kernel/fs/f2fs/f2fs.ko\n"),
        ]);
        for there in ["tmpfs", "ext4", "xfs", "f2fs"] {
            assert_eq!(kernel_filesystem(&host, there, &[there]), None, "{there}");
        }
        let unmet = kernel_filesystem(&host, "btrfs", &["btrfs"]).unwrap();
        assert_eq!(unmet.what, "the filesystem btrfs in the kernel 6.1.0");
    }

    #[test]
    fn space_on_one_filesystem_adds_up() {
        let (root, host) = fake(&[("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:       2048 kB\n")]);
        let free = files::free_bytes(root.path()).unwrap();
        let disk = |share: u64| Space::Disk(root.path().join("not/yet"), Bytes(free / 100 * share));
        assert_eq!(lacking_space(&host, &[disk(40)]), []);
        assert_eq!(lacking_space(&host, &[disk(60), disk(60)]).len(), 1);
        assert_eq!(lacking_space(&host, &[Space::Memory(Bytes(2 << 20))]), []);
        let unmet = lacking_space(&host, &[Space::Memory(Bytes(1 << 20)), Space::Memory(Bytes(2 << 20))]);
        assert_eq!(unmet[0].what, "3 MiB of space in memory (2 MiB free)");
        assert_eq!(lacking_space(&host, &[Space::Disk(root.path().into(), Bytes(u64::MAX)), disk(1)]).len(), 1);
    }

    #[test]
    fn a_missing_program_names_the_package_that_brings_it() {
        let unmet = program(&Host::this(), "mkfs.no-such", "no-such-progs").unwrap();
        assert_eq!(unmet.hint, "apt-get install no-such-progs");
        assert_eq!(program(&Host::this(), "sh", "dash"), None);
    }
}

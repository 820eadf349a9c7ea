//! Mounts without mount(8): mount(2) and umount2(2), with options as written for mount(8).

use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::io;
use std::path::Path;

/// Options that the kernel takes as flags (mount(8), "filesystem-independent mount options"). All others are passed to
/// the filesystem as they are.
const FLAGS: &[(&str, MountFlags)] = &[
    ("noatime", MountFlags::NOATIME),
    ("nodiratime", MountFlags::NODIRATIME),
    ("relatime", MountFlags::RELATIME),
    ("strictatime", MountFlags::STRICTATIME),
    ("lazytime", MountFlags::LAZYTIME),
    ("nosuid", MountFlags::NOSUID),
    ("nodev", MountFlags::NODEV),
    ("noexec", MountFlags::NOEXEC),
    ("sync", MountFlags::SYNCHRONOUS),
    ("dirsync", MountFlags::DIRSYNC),
];

/// Arguments of mount(2) for a list of options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountOptions {
    flags: MountFlags,
    data: CString,
}

impl MountOptions {
    /// Splits options into flags and the filesystem's own; `None` if one contains a zero byte.
    pub(crate) fn of(options: &[String]) -> Option<MountOptions> {
        let mut flags = MountFlags::empty();
        let mut own = Vec::new();
        for option in options {
            match FLAGS.iter().find(|(name, _)| name == option) {
                Some((_, flag)) => flags |= *flag,
                None => own.push(option.as_str()),
            }
        }
        CString::new(own.join(",")).ok().map(|data| MountOptions { flags, data })
    }
}

/// Mounts a device on a folder.
///
/// # Errors
/// The kernel's error.
pub(crate) fn mount(source: &str, target: &Path, fstype: &str, options: &MountOptions) -> io::Result<()> {
    Ok(rustix::mount::mount(source, target, fstype, options.flags, options.data.as_c_str())?)
}

/// Unmounts a folder; fails with EBUSY while it is in use.
///
/// # Errors
/// The kernel's error.
pub(crate) fn unmount(target: &Path) -> io::Result<()> {
    Ok(rustix::mount::unmount(target, UnmountFlags::NOFOLLOW)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_point_options_become_flags_and_others_reach_the_filesystem() {
        let options = ["noatime", "data=journal", "nodev", "barrier=0"].map(str::to_owned);
        let sorted = MountOptions::of(&options).unwrap();
        assert_eq!(sorted.flags, MountFlags::NOATIME | MountFlags::NODEV);
        assert_eq!(sorted.data.as_c_str(), c"data=journal,barrier=0");
        assert_eq!(MountOptions::of(&["a\0b".to_owned()]), None);
    }

    #[test]
    fn what_was_mounted_is_there_until_it_is_unmounted() {
        if !crate::host::users::is_root() {
            println!("skipped: a mount needs root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let options = MountOptions::of(&["noexec".to_owned(), "size=64k".to_owned()]).unwrap();
        mount("pgstrata-test", folder.path(), "tmpfs", &options).unwrap();
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let line = table.lines().find(|line| line.contains(folder.path().to_str().unwrap())).unwrap().to_owned();
        unmount(folder.path()).unwrap();
        assert!(line.contains("noexec") && line.contains("size=64k"), "{line}");
        assert!(unmount(folder.path()).is_err());
    }
}

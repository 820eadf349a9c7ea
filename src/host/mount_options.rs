//! Asks the kernel about mount options before there is anything to mount (fsopen(2), fsconfig(2); Linux 5.2).

pub use super::answers::MountFinding;
use rustix::mount::{FsOpenFlags, fsconfig_set_flag, fsconfig_set_string, fsopen};
use std::io;

/// An option no filesystem has: a filesystem that accepts it does not check options before mounting.
const NO_OPTION: &str = "pgstrata_no_such_option";

/// Passes an option (`name` or `name=value`) to a new context of the filesystem. Nothing is mounted; the kernel may
/// load the filesystem's module.
pub(crate) fn ask(filesystem: &str, option: &str) -> MountFinding {
    match hand_over(filesystem, NO_OPTION) {
        Ok(MountFinding::Good) => {
            MountFinding::Unchecked(format!("{filesystem} in this kernel checks options only when it is mounted"))
        }
        Ok(_) => hand_over(filesystem, option).unwrap_or_else(|e| MountFinding::Unchecked(e.to_string())),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            MountFinding::Unchecked("this check needs root".to_owned())
        }
        Err(e) => MountFinding::Unchecked(e.to_string()),
    }
}

fn hand_over(filesystem: &str, option: &str) -> io::Result<MountFinding> {
    let context = fsopen(filesystem, FsOpenFlags::FSOPEN_CLOEXEC)?;
    let handed = match option.split_once('=') {
        Some((name, value)) => fsconfig_set_string(&context, name, value),
        None => fsconfig_set_flag(&context, option),
    };
    if handed.is_ok() {
        return Ok(MountFinding::Good);
    }
    // Each message is one read: a letter for its kind, a blank, the text.
    let mut buffer = [0; 512];
    let words = rustix::io::read(&context, &mut buffer).map(|length| {
        let text = String::from_utf8_lossy(&buffer[..length]).trim_end().to_owned();
        text.strip_prefix("e ").map(str::to_owned).unwrap_or(text)
    });
    Ok(MountFinding::Refused(words.unwrap_or_else(|_| format!("{filesystem}: bad value in `{option}`"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_validates_tmpfs_options_before_the_mount() {
        if !crate::host::users::is_root() {
            assert_eq!(ask("tmpfs", "size=1m"), MountFinding::Unchecked("this check needs root".to_owned()));
            return;
        }
        assert_eq!(ask("tmpfs", "size=1m"), MountFinding::Good);
        let MountFinding::Refused(words) = ask("tmpfs", "sise=1m") else { panic!("it was not refused with words") };
        assert!(words.contains("sise"), "{words}");
        assert!(matches!(ask("no_such_filesystem", "x"), MountFinding::Unchecked(_)));
    }
}

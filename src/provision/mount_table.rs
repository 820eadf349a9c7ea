//! The mount table of this process, and the limits of waiting for a busy mount or device.

use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::time::sleep;
use crate::host::{Host, files};
use crate::parse::mountinfo::{self, Mount};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// Mounts visible to this process, proc(5).
pub(crate) const TABLE: &str = "/proc/self/mountinfo";

/// Number of attempts while a mount or a device is busy after its last user has ended.
pub(crate) const BUSY_TRIES: u32 = 50;

pub(crate) const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// Retries while another program has the thing open: udev does so after each change.
///
/// # Errors
/// Of the last attempt.
pub(crate) fn again(act: impl Fn() -> Result<()>) -> Result<()> {
    for _ in 0..BUSY_TRIES {
        if act().is_ok() {
            return Ok(());
        }
        sleep(BUSY_PAUSE);
    }
    act()
}

/// Runs the commands that `next` returns until it returns none; after a failure, `next` is asked again after a pause.
///
/// # Errors
/// Of `next`, at once; of a command that keeps failing.
pub(crate) fn until_gone(host: &Host, next: impl Fn() -> Result<Option<Command>>) -> Result<()> {
    let mut tries = 0;
    while let Some(command) = next()? {
        match host.run(&command) {
            Err(e) if tries >= BUSY_TRIES => return Err(e.hint("stop what uses it, then run `pgstrata clean`")),
            Err(_) => sleep(BUSY_PAUSE),
            Ok(_) => {}
        }
        tries += 1;
    }
    Ok(())
}

/// Waits until the filesystem on an unmounted device has ended. A copy of the mount table keeps it alive, and who mounts
/// the device again would get it as it was, whatever the device holds by now.
///
/// # Errors
/// When it does not end.
pub fn until_ended(device: &Path) -> Result<()> {
    for _ in 0..BUSY_TRIES {
        match files::open_exclusively(device) {
            Err(e) if e.kind() == ErrorKind::ResourceBusy => sleep(BUSY_PAUSE),
            _ => return Ok(()),
        }
    }
    let device = device.display();
    Err(Error::host(format!("{device} is unmounted, but still in use, probably by a copy of the mount table")).hint(
        format!(
            "do not start containers, or services with mounts of their own, during a run; `grep -lw {device} \
             /proc/[0-9]*/mountinfo` lists their processes"
        ),
    ))
}

/// The kernel's mount table.
///
/// # Errors
/// When it cannot be read.
pub fn table(host: &Host) -> Result<Vec<Mount>> {
    mountinfo::parse(&host.read(TABLE)?)
}

/// The mount with the longest target above `path` (which has no symlinks); of several on one target, the last.
pub(crate) fn holding<'a>(table: &'a [Mount], path: &Path) -> Result<&'a Mount> {
    let above = table.iter().filter(|mount| path.starts_with(&mount.target));
    let nearest = above.max_by_key(|mount| Path::new(&mount.target).components().count());
    nearest.ok_or_else(|| Error::host(format!("no mount in the mount table contains {}", path.display())))
}

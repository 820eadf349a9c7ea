//! Loop devices come and go (`/dev/loop-control`, include/uapi/linux/loop.h).

use super::files::File;
use rustix::ioctl::{IntegerSetter, Opcode, ioctl};
use std::io;

const ADD: Opcode = 0x4C80;
const REMOVE: Opcode = 0x4C81;

/// Makes the loop device of this number; fails with EEXIST where there is one.
pub(crate) fn add(number: u32) -> io::Result<()> {
    control::<ADD>(number)
}

/// Removes a loop device that has no file; fails with EBUSY where it has one, or somebody has it open.
pub(crate) fn remove(number: u32) -> io::Result<()> {
    control::<REMOVE>(number)
}

#[expect(unsafe_code, reason = "no safe binding of these requests")]
fn control<const REQUEST: Opcode>(number: u32) -> io::Result<()> {
    let control = File::options().read(true).write(true).open("/dev/loop-control")?;
    // SAFETY: both requests take the number itself as their argument, and no memory of ours.
    Ok(unsafe { ioctl(&control, IntegerSetter::<REQUEST>::new_usize(number as usize)) }?)
}

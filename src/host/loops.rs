//! Loop devices: adding and removing them, attaching and detaching a file, limiting their size (`/dev/loop-control`,
//! include/uapi/linux/loop.h).

use super::files::File;
use rustix::ioctl::{Getter, IntegerSetter, NoArg, Opcode, Setter, ioctl};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

const CONFIGURE: Opcode = 0x4C0A;
const CLEAR: Opcode = 0x4C01;
const ADD: Opcode = 0x4C80;
const REMOVE: Opcode = 0x4C81;
const SET_STATUS: Opcode = 0x4C04;
const GET_STATUS: Opcode = 0x4C05;
/// `BLKFLSBUF`, which any block device takes.
const FLUSH_BUFFERS: Opcode = 0x1261;

/// `LO_FLAGS_DIRECT_IO`.
const DIRECT_IO: u32 = 16;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    names: [[u64; 8]; 2],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Config {
    file: u32,
    block_bytes: u32,
    info: Info,
    reserved: [u64; 8],
}

/// Attaches an open file to a free loop device in one step (Linux 5.8); fails with EBUSY if the device has a file. If
/// no sector size is given the kernel chooses one; it uses no direct I/O if the file's filesystem has none.
pub(crate) fn configure(device: &Path, file: &File, direct_io: bool, sector: Option<u32>) -> io::Result<()> {
    let device = File::options().read(true).write(true).open(device)?;
    let info = Info { flags: if direct_io { DIRECT_IO } else { 0 }, ..Info::default() };
    let block_bytes = sector.unwrap_or(0);
    let config = Config { file: file.as_raw_fd().cast_unsigned(), block_bytes, info, reserved: [0; 8] };
    // SAFETY: the request reads one `struct loop_config`, which `Config` is and which lives as long as the call.
    #[expect(unsafe_code, reason = "no safe binding of this request")]
    let configured = unsafe { ioctl(&device, Setter::<CONFIGURE, Config>::new(config)) };
    Ok(configured?)
}

/// Detaches the file of a loop device as soon as the device's last user closes it.
pub(crate) fn clear(device: &Path) -> io::Result<()> {
    ask::<CLEAR>(device)
}

/// Filesystem and inode of the file behind a loop device, whatever its name is by now.
pub(crate) fn file_of(device: &Path) -> io::Result<(u64, u64)> {
    let device = File::options().read(true).open(device)?;
    // SAFETY: the request writes one `struct loop_info64`, which `Info` is; every bit pattern is valid.
    #[expect(unsafe_code, reason = "no safe binding of this request")]
    let info = unsafe { ioctl(&device, Getter::<GET_STATUS, Info>::new()) }?;
    Ok((info.device, info.inode))
}

/// Adds the loop device with this number; fails with EEXIST if there is one.
pub(crate) fn add(number: u32) -> io::Result<()> {
    control::<ADD>(number)
}

/// Removes a loop device without a file; fails with EBUSY if it has one, or is open.
pub(crate) fn remove(number: u32) -> io::Result<()> {
    control::<REMOVE>(number)
}

/// Writes back and drops the kernel's buffers of a block device (`BLKFLSBUF`), before something else is attached to it.
pub(crate) fn forget_buffers(device: &Path) -> io::Result<()> {
    ask::<FLUSH_BUFFERS>(device)
}

#[expect(unsafe_code, reason = "no safe binding of these requests")]
fn ask<const REQUEST: Opcode>(device: &Path) -> io::Result<()> {
    let device = File::options().read(true).open(device)?;
    // SAFETY: both requests have no argument.
    Ok(unsafe { ioctl(&device, NoArg::<REQUEST>::new()) }?)
}

#[expect(unsafe_code, reason = "no safe binding of these requests")]
fn control<const REQUEST: Opcode>(number: u32) -> io::Result<()> {
    let control = File::options().read(true).write(true).open("/dev/loop-control")?;
    // SAFETY: both requests take the number itself as their argument, no memory of ours.
    Ok(unsafe { ioctl(&control, IntegerSetter::<REQUEST>::new_usize(number as usize)) }?)
}

/// Limits a loop device to `bytes`, or to the size of its file if 0. Requests in flight complete first; requests beyond
/// the limit fail from here on. Returns the previous limit.
///
/// # Errors
/// The kernel's error: ENOTTY or ENXIO if it is not a loop device, or has no file.
#[expect(unsafe_code, reason = "no safe binding of these requests")]
pub(crate) fn end_after(device: &Path, bytes: u64) -> io::Result<u64> {
    let device = File::options().read(true).write(true).open(device)?;
    // SAFETY: the request writes one `struct loop_info64`, which `Info` is; every bit pattern is valid.
    let before = unsafe { ioctl(&device, Getter::<GET_STATUS, Info>::new()) }?;
    // SAFETY: the request reads one such struct, which lives as long as the call.
    unsafe { ioctl(&device, Setter::<SET_STATUS, Info>::new(Info { size_limit: bytes, ..before })) }?;
    Ok(before.size_limit)
}

/// A loop device on a file for one test, with the limits of a new one; removed on drop.
#[cfg(test)]
pub(crate) struct OwnLoop(pub std::path::PathBuf);

#[cfg(test)]
impl OwnLoop {
    /// `None`, with the reason printed, if none can be added.
    pub fn on(file: &Path) -> Option<OwnLoop> {
        let Some(number) = (1000..1100).find(|number| add(*number).is_ok()) else {
            println!("skipped: no loop device can be made");
            return None;
        };
        let own = OwnLoop(format!("/dev/loop{number}").into());
        let file = File::options().read(true).write(true).open(file).unwrap();
        configure(&own.0, &file, false, None).unwrap();
        Some(own)
    }
}

#[cfg(test)]
impl Drop for OwnLoop {
    fn drop(&mut self) {
        drop(clear(&self.0));
        let number = self.0.to_str().and_then(|path| path.strip_prefix("/dev/loop")?.parse().ok()).unwrap_or_default();
        // udev may still have it open.
        let removed = (0..500).any(|_| {
            super::time::sleep(std::time::Duration::from_millis(10));
            remove(number).is_ok()
        });
        if !removed {
            println!("{} is left", self.0.display());
        }
    }
}

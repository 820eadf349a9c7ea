//! Virtual disks that record every write: the origin image, the log of writes and flushes, and the states that a power
//! cut can leave.
//!
//! Owns the log with its single sequence over all disks, the durable set under each device model, the states that a
//! power cut can leave, and views of them that a kernel can mount (through FUSE or NBD). Not here: PostgreSQL, stacks,
//! and what a state means for the commits. Design: `docs/adr/0026-power-cuts-from-a-recording.md`.

mod disk;
mod durable;
mod entry;
#[cfg(target_os = "linux")]
mod fuse;
mod image;
mod log;
mod nbd;
#[cfg(not(target_os = "linux"))]
mod no_fuse;
mod states;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod testing;

pub(crate) use disk::create_origin;
pub use disk::{Recorder, Recording, name_of};
pub use durable::{DeviceModel, Durable, Earliest};
pub use entry::{Entry, Op, Seq};
#[cfg(target_os = "linux")]
pub use fuse::Exports;
pub use image::Image;
pub use nbd::{NbdServer, open};
#[cfg(not(target_os = "linux"))]
pub use no_fuse::Exports;
pub use states::{Class, Coverage, Pick, State, Tear, Written, select};

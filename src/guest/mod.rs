//! Guests: throw-away virtual machines for kernels and filesystems that the host lacks.
//!
//! [`build`] makes kernel, modules and root image of a Debian suite from packages of the machine's own mirror, in the
//! user's cache. [`vm`] boots them with QEMU, without a network, and [`channel`] talks to [`agent`], the same program
//! inside. A guest's writes are lost with it, except in shared folders. Absent on purpose: what runs in the guest.

pub mod accelerator;
pub mod agent;
mod boot_files;
mod bootstrap;
pub mod build;
pub mod cache;
pub mod channel;
mod cpio;
mod death;
pub mod disks;
pub mod image;
mod kernel;
pub(crate) mod mirror;
pub mod outlet;
mod qemu;
mod recipe;
pub mod share;
pub(crate) mod steps;
pub mod suite;
pub mod vm;
pub mod wire;

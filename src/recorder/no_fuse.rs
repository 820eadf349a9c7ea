//! Stands in for `fuse` where there is no FUSE of Linux.

use super::disk::Recorder;
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Never there: only [`Exports::mount`] makes one.
pub enum Exports {}

impl Exports {
    /// # Errors
    /// Always.
    pub fn mount(folder: &Path, _source: &str) -> Result<Exports> {
        Err(Error::host("recorded disks are files of Linux's FUSE")
            .while_doing(format!("mount the recorded disks on {}", folder.display())))
    }

    pub fn add(&self, _name: &str, _recorder: &Arc<Recorder>, _disk: u16) -> PathBuf {
        match *self {}
    }

    pub fn swap(&self, _name: &str, _recorder: &Arc<Recorder>, _disk: u16) {
        match *self {}
    }

    pub fn remove(&self, _name: &str) {
        match *self {}
    }
}

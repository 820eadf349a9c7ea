//! Exposes recorded disks on the machine: as files for loop devices, or as devices of the kernel's NBD client.
//!
//! Both fill the same log. A loop device has no FUA and needs only FUSE; an NBD device passes FUA on and needs its
//! driver.

use super::cutting::Attachment;
use super::session::CutSession;
use crate::error::Result;
use crate::host::paths;
use crate::provision::recorded;
use crate::recorder::{Exports, NbdServer, Recorder, open};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Attachment {
    /// What this machine lacks for this attachment.
    pub fn lacking(self, session: &CutSession<'_>) -> Option<String> {
        match self {
            Attachment::Loop => {
                (!paths::exists(Path::new("/dev/fuse"))).then(|| "this machine has no /dev/fuse".to_owned())
            }
            Attachment::Nbd => {
                let missing = recorded::unmet_nbd(&session.host)?.what;
                Some(format!("{missing} is missing; a guest has it (--guest)"))
            }
        }
    }
}

/// Recorded disks attached to the machine, by name.
pub trait Disks {
    /// Exposes a disk and returns the path of an image for a loop device, or of a device. Anything it creates is in the
    /// session's ledger.
    ///
    /// # Errors
    /// If it cannot be attached.
    fn show(&self, session: &CutSession<'_>, name: &str, recorder: &Arc<Recorder>, disk: u16) -> Result<PathBuf>;

    /// Replaces the disk behind a name by another of the same size. No cache may hold data of the old one.
    fn put_behind(&self, name: &str, recorder: &Arc<Recorder>, disk: u16);

    /// Removes a disk that nothing stands on any more.
    fn hide(&self, name: &str);
}

impl Disks for Exports {
    fn show(&self, _: &CutSession<'_>, name: &str, recorder: &Arc<Recorder>, disk: u16) -> Result<PathBuf> {
        Ok(self.add(name, recorder, disk))
    }

    fn put_behind(&self, name: &str, recorder: &Arc<Recorder>, disk: u16) {
        self.swap(name, recorder, disk);
    }

    fn hide(&self, name: &str) {
        self.remove(name);
    }
}

impl Disks for NbdServer {
    fn show(&self, session: &CutSession<'_>, name: &str, recorder: &Arc<Recorder>, disk: u16) -> Result<PathBuf> {
        use std::os::fd::AsFd;
        self.add(name, recorder, disk)?;
        let (stream, size_and_flags) = open(self.socket(), name)?;
        // The kernel keeps its own reference to the connection.
        recorded::attach_nbd(&session.host, &session.ledger, stream.as_fd(), size_and_flags)
    }

    fn put_behind(&self, name: &str, recorder: &Arc<Recorder>, disk: u16) {
        self.swap(name, recorder, disk);
    }

    fn hide(&self, name: &str) {
        self.remove(name);
    }
}

/// Starts serving disks with the session's kind of attachment.
///
/// # Errors
/// If the kernel does not let us mount, or the socket cannot be created.
pub fn serve(session: &CutSession<'_>) -> Result<Box<dyn Disks>> {
    Ok(match session.cutting.attachment {
        Attachment::Loop => {
            Box::new(Exports::mount(&recorded::prepare(&session.ledger, &session.folder)?, recorded::SOURCE)?)
        }
        // The folder is private and removed with the session.
        Attachment::Nbd => Box::new(NbdServer::listen(&session.folder.join("nbd"))?),
    })
}

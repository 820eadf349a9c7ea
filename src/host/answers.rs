//! What calls that only Linux has take and answer: the types that they share with their stand-ins in `elsewhere`.

/// A range of a file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileRange {
    pub start: u64,
    pub bytes: u64,
}

/// Layout of a file on its device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pieces {
    /// Number of extents, with those adjacent in both the file and on the device merged.
    pub pieces: u64,
    /// Bytes with a location on the device.
    pub placed_bytes: u64,
    /// Part of these shared with another file or a snapshot.
    pub shared_bytes: u64,
    /// Part of these that is compressed or encrypted.
    pub encoded_bytes: u64,
    /// Part of these never written.
    pub unwritten_bytes: u64,
}

/// The kernel's answer for one mount option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountFinding {
    Good,
    /// With the kernel's message.
    Refused(String),
    /// With the reason why the kernel could not be asked.
    Unchecked(String),
}

/// A device to be created.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish<'a> {
    pub size: u64,
    pub block_size: u64,
    /// Flags of the export, as sent by its server.
    pub flags: u16,
    /// Shown in `/sys/block/nbdN/backend`.
    pub identifier: &'a str,
}

/// Results of the two requests: a negative number is an errno.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteThenSync {
    /// Bytes written.
    pub written: i32,
    /// 0 if synced.
    pub synced: i32,
}

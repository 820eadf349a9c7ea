//! Texts of foreign tools and kernel files to typed values: pure functions from `&str`, one file a tool.

pub mod btrfs;
pub mod dumpe2fs;
pub mod mountinfo;
pub mod swaps;
pub mod wipefs;
pub mod xfs_info;

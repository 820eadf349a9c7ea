//! Texts of foreign tools and kernel files to typed values: pure functions from `&str`, one file a tool.

pub(crate) mod btrfs;
pub(crate) mod cpuinfo;
pub(crate) mod diskstats;
pub(crate) mod dumpe2fs;
mod fields;
pub(crate) mod meminfo;
pub(crate) mod mountinfo;
pub(crate) mod os_release;
pub(crate) mod pg_version;
pub(crate) mod pgbench_log;
pub mod pgbench_summary;
pub(crate) mod pressure;
pub(crate) mod proc_pid_stat;
pub(crate) mod proc_pid_status;
pub(crate) mod proc_stat;
pub(crate) mod server_log;
pub(crate) mod superblock;
pub(crate) mod swaps;
pub(crate) mod vmstat;
pub(crate) mod wipefs;
pub(crate) mod xfs_info;

//! Texts of foreign tools and kernel files to typed values: pure functions from `&str`, one file a tool.

pub mod btrfs;
pub mod cpuinfo;
pub mod diskstats;
pub mod dumpe2fs;
mod fields;
pub mod meminfo;
pub mod mountinfo;
pub mod os_release;
pub mod pg_version;
pub mod pgbench_log;
pub mod pgbench_summary;
pub mod pressure;
pub mod proc_pid_stat;
pub mod proc_pid_status;
pub mod proc_stat;
pub mod swaps;
pub mod vmstat;
pub mod wipefs;
pub mod xfs_info;

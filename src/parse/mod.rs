//! Texts of foreign tools and kernel files to typed values: pure functions from `&str`, one file a tool.

pub mod cpuinfo;
pub mod diskstats;
mod fields;
pub mod meminfo;
pub mod os_release;
pub mod pressure;
pub mod proc_pid_stat;
pub mod proc_pid_status;
pub mod proc_stat;
pub mod vmstat;
pub mod pg_version;
pub mod pgbench_log;
pub mod pgbench_summary;
pub mod btrfs;
pub mod dumpe2fs;
pub mod mountinfo;
pub mod swaps;
pub mod wipefs;
pub mod xfs_info;

//! Texts of foreign tools and kernel files to typed values: pure functions from `&str`, one file a tool.

pub mod btrfs;
pub mod cpuinfo;
pub mod dd;
pub mod df;
pub mod diskstats;
pub mod dumpe2fs;
mod fields;
pub mod fio;
pub mod gpart;
pub mod iostat;
mod json;
#[cfg(test)]
mod mangle;
pub mod meminfo;
pub mod mount_output;
pub mod mountinfo;
pub mod os_release;
pub mod output;
pub mod pg_test_fsync;
pub mod pg_version;
pub mod pgbench_log;
pub mod pgbench_output;
pub mod pgbench_summary;
pub mod pressure;
pub mod proc_pid_stat;
pub mod proc_pid_status;
pub mod proc_stat;
pub mod sadf;
pub mod swaps;
mod table;
pub mod vmstat;
pub mod vmstat_output;
pub mod web;
pub mod wipefs;
pub mod xfs_info;
pub mod zpool_get;
pub mod zpool_iostat;

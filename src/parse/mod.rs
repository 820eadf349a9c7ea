//! Parses output of tools and kernel files into typed values: pure functions from `&str`, one file per tool.
//!
//! A new parser uses the tool's machine-readable format, rejects unknown input, and converts units. One fixture per
//! version of the tool in `tests/fixtures/<tool>/`, made by a script in `scripts/`. An error names source, line, item
//! and wanted type.
//!
//! Of the stored types it knows those of `record::window`, `age` and `stack`: a checkpoint in the server's log, a pool's
//! space and the roles of its devices are stored as parsed.

pub(crate) mod apt_sources;
pub(crate) mod btrfs;
pub(crate) mod cpuinfo;
pub(crate) mod diskstats;
pub(crate) mod dmsetup;
mod fields;
pub(crate) mod joblog;
pub(crate) mod kstat;
pub(crate) mod ldd;
pub(crate) mod lvm;
pub(crate) mod mdadm;
pub(crate) mod meminfo;
pub(crate) mod modules_dep;
pub(crate) mod mountinfo;
pub(crate) mod no_space;
pub(crate) mod os_release;
pub(crate) mod pg_version;
pub(crate) mod pgbench_log;
pub mod pgbench_summary;
pub(crate) mod pods;
pub(crate) mod pressure;
pub(crate) mod proc_limits;
pub(crate) mod proc_pid_stat;
pub(crate) mod proc_pid_status;
pub(crate) mod proc_stat;
pub(crate) mod recovery_log;
pub(crate) mod scontrol;
pub(crate) mod server_log;
pub(crate) mod squeue;
pub(crate) mod superblock;
pub(crate) mod swaps;
pub(crate) mod vmstat;
pub(crate) mod wipefs;
pub(crate) mod xfs_info;
pub(crate) mod zdb;
pub(crate) mod zfs_get;
pub(crate) mod zpool_list;

//! Texts of foreign tools and kernel files to typed values: pure functions from `&str`, one file a tool.

pub mod pg_version;
pub mod pgbench_log;
pub mod pgbench_summary;

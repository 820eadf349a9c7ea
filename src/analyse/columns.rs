//! The names of the columns that analysis reads: the one place that knows them. A column that a trial lacks makes the
//! figures that need it absent.

/// Wall clock of a row, microseconds.
pub const TIME_US: &str = "time_us";
/// Operations done in the second.
pub const CLIENT_DONE: &str = "client_done";
/// Slowest operation of the second.
pub const CLIENT_LATENCY_US_MAX: &str = "client_latency_us_max";

/// Kernel name of a device (text).
pub const DEVICE_NAME: &str = "name";
/// Reads completed.
pub const DEVICE_READS: &str = "reads";
/// Bytes read.
pub const DEVICE_READ_BYTES: &str = "read_bytes";
/// Writes completed.
pub const DEVICE_WRITES: &str = "writes";
/// Bytes written.
pub const DEVICE_WRITE_BYTES: &str = "write_bytes";
/// Flushes completed.
pub const DEVICE_FLUSHES: &str = "flushes";
/// Time with anything in flight, milliseconds.
pub const DEVICE_BUSY_MS: &str = "busy_ms";
const DEVICE: [&str; 7] =
    [DEVICE_NAME, DEVICE_READS, DEVICE_READ_BYTES, DEVICE_WRITES, DEVICE_WRITE_BYTES, DEVICE_FLUSHES, DEVICE_BUSY_MS];

/// Name of a device's column; `prefix` is what [`crate::record::built::StackFacts::device_columns`] gives it.
#[must_use]
pub fn device(prefix: &str, what: &str) -> String {
    format!("{prefix}_{what}")
}

/// Ticks in user mode.
pub const CPU_USER: &str = "cpu_user";
/// Ticks in user mode at low priority.
pub const CPU_NICE: &str = "cpu_nice";
/// Ticks in the kernel.
pub const CPU_SYSTEM: &str = "cpu_system";
/// Idle ticks.
pub const CPU_IDLE: &str = "cpu_idle";
/// Idle ticks while something waited for I/O.
pub const CPU_IOWAIT: &str = "cpu_iowait";
/// Ticks in interrupts.
pub const CPU_IRQ: &str = "cpu_irq";
/// Ticks in soft interrupts.
pub const CPU_SOFTIRQ: &str = "cpu_softirq";
/// Ticks that the hypervisor gave to others.
pub const CPU_STEAL: &str = "cpu_steal";
/// All states of a CPU: their sum is the time of all CPUs.
pub const CPU: [&str; 8] = [CPU_USER, CPU_NICE, CPU_SYSTEM, CPU_IDLE, CPU_IOWAIT, CPU_IRQ, CPU_SOFTIRQ, CPU_STEAL];

/// Bytes waiting to be written back.
pub const MEM_DIRTY_BYTES: &str = "mem_dirty_bytes";
/// Bytes being written back.
pub const MEM_WRITEBACK_BYTES: &str = "mem_writeback_bytes";
/// Bytes in the page cache.
pub const MEM_CACHED_BYTES: &str = "mem_cached_bytes";
/// Bytes that programs could still get.
pub const MEM_AVAILABLE_BYTES: &str = "mem_available_bytes";

/// Microseconds in which some task waited for a CPU.
pub const PSI_CPU_SOME_US: &str = "psi_cpu_some_us";
/// Microseconds in which some task waited for I/O.
pub const PSI_IO_SOME_US: &str = "psi_io_some_us";
/// Microseconds in which all tasks waited for I/O.
pub const PSI_IO_FULL_US: &str = "psi_io_full_us";
/// Microseconds in which some task waited for memory.
pub const PSI_MEMORY_SOME_US: &str = "psi_memory_some_us";

/// Slots of the busiest processes: name (text) and share of one CPU.
pub const TOP_SLOTS: [&str; 5] = ["top1", "top2", "top3", "top4", "top5"];
/// Name of a process in a slot.
pub const TOP_NAME: &str = "name";
/// Its share of one CPU, 0 to 1 and above for several threads.
pub const TOP_CPU_SHARE: &str = "cpu_share";

/// Name of the program not of the run that took most CPU time.
pub const OTHERS_NAME: &str = "others_name";
/// CPU time of all programs not of the run, share of one CPU.
pub const OTHERS_CPU_SHARE: &str = "others_cpu_share";

/// WAL bytes written.
pub const PG_WAL_BYTES: &str = "pg_wal_bytes";
/// WAL records.
pub const PG_WAL_RECORDS: &str = "pg_wal_records";
/// Full-page images in the WAL.
pub const PG_WAL_FPI: &str = "pg_wal_fpi";
/// Syncs of WAL files.
pub const PG_WAL_SYNCS: &str = "pg_wal_syncs";
/// Buffers that checkpoints wrote.
pub const PG_BUFFERS_CHECKPOINT: &str = "pg_buffers_checkpoint";
/// Buffers that backends had to write themselves.
pub const PG_BUFFERS_BACKEND: &str = "pg_buffers_backend";
/// Checkpoints because their time had come.
pub const PG_CHECKPOINTS_TIMED: &str = "pg_checkpoints_timed";
/// Checkpoints that were asked for, by WAL volume or by command.
pub const PG_CHECKPOINTS_REQUESTED: &str = "pg_checkpoints_requested";
/// Blocks that were not in shared_buffers.
pub const PG_BLKS_READ: &str = "pg_blks_read";

const SINGLE: [&str; 22] = [
    TIME_US,
    CLIENT_DONE,
    CLIENT_LATENCY_US_MAX,
    MEM_DIRTY_BYTES,
    MEM_WRITEBACK_BYTES,
    MEM_CACHED_BYTES,
    MEM_AVAILABLE_BYTES,
    PSI_CPU_SOME_US,
    PSI_IO_SOME_US,
    PSI_IO_FULL_US,
    PSI_MEMORY_SOME_US,
    OTHERS_NAME,
    OTHERS_CPU_SHARE,
    PG_WAL_BYTES,
    PG_WAL_RECORDS,
    PG_WAL_FPI,
    PG_WAL_SYNCS,
    PG_BUFFERS_CHECKPOINT,
    PG_BUFFERS_BACKEND,
    PG_CHECKPOINTS_TIMED,
    PG_CHECKPOINTS_REQUESTED,
    PG_BLKS_READ,
];

/// Whether analysis reads the column of this name; others need not be decoded.
#[must_use]
pub fn wanted(name: &str) -> bool {
    let of = |slots: &[&str], parts: &[&str]| {
        let part = |slot: &&str| name.strip_prefix(*slot).and_then(|rest| rest.strip_prefix('_'));
        slots.iter().find_map(part).is_some_and(|part| parts.contains(&part))
    };
    SINGLE.contains(&name) || CPU.contains(&name) || is_device(name) || of(&TOP_SLOTS, &[TOP_NAME, TOP_CPU_SHARE])
}

fn is_device(name: &str) -> bool {
    let ends = |what: &&str| name.strip_suffix(*what).is_some_and(|rest| rest.ends_with('_'));
    name.starts_with("dev_") && DEVICE.iter().any(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_every_family_are_wanted_and_strangers_are_not() {
        for name in ["time_us", "dev_d1_flushes", "dev_xfs_loop_name", "cpu_steal", "top5_cpu_share", "pg_wal_syncs"] {
            assert!(wanted(name), "{name}");
        }
        for name in ["run", "d1_reads", "dev_d1_queue_ms", "top1_pid", "dev_d1", "client_failed"] {
            assert!(!wanted(name), "{name}");
        }
    }

    #[test]
    fn the_clients_columns_are_those_that_are_recorded() {
        let recorded: Vec<String> =
            crate::record::seconds::client_columns().into_iter().map(|column| column.name).collect();
        for name in [CLIENT_DONE, CLIENT_LATENCY_US_MAX] {
            assert!(recorded.iter().any(|known| known == name), "{name}");
        }
    }
}

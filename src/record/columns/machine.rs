//! Columns of the machine: its block devices, CPUs, memory, pressure and processes.

use super::{ColumnDef, DeviceColumn, counter, gauge, interval};

columns! {
    /// kernel name of the device of this node
    pub const DEVICE_NAME: DeviceColumn = gauge("name", "").text().of_each_device();
    /// /proc/diskstats: reads completed
    pub(crate) const DEVICE_READS: DeviceColumn = counter("reads", "operations").of_each_device();
    /// /proc/diskstats: bytes read (sectors of 512 bytes)
    pub(crate) const DEVICE_READ_BYTES: DeviceColumn = counter("read_bytes", "bytes").of_each_device();
    /// /proc/diskstats: total time of all reads
    pub const DEVICE_READ_MS: DeviceColumn = counter("read_ms", "ms").of_each_device();
    /// /proc/diskstats: writes completed
    pub(crate) const DEVICE_WRITES: DeviceColumn = counter("writes", "operations").of_each_device();
    /// /proc/diskstats: bytes written (sectors of 512 bytes)
    pub(crate) const DEVICE_WRITE_BYTES: DeviceColumn = counter("write_bytes", "bytes").of_each_device();
    /// /proc/diskstats: total time of all writes
    pub const DEVICE_WRITE_MS: DeviceColumn = counter("write_ms", "ms").of_each_device();
    /// /proc/diskstats: discards completed; absent before Linux 4.18
    pub const DEVICE_DISCARDS: DeviceColumn = counter("discards", "operations").of_each_device();
    /// /proc/diskstats: flushes completed; absent before Linux 5.5 and for partitions (counted on the whole disk)
    pub(crate) const DEVICE_FLUSHES: DeviceColumn = counter("flushes", "operations").of_each_device();
    /// /proc/diskstats: total time of all flushes; absent when the flush count is
    pub const DEVICE_FLUSH_MS: DeviceColumn = counter("flush_ms", "ms").of_each_device();
    /// /proc/diskstats: time with at least one request in flight
    pub(crate) const DEVICE_BUSY_MS: DeviceColumn = counter("busy_ms", "ms").of_each_device();
    /// /proc/diskstats: time weighted with the number of requests in flight
    pub const DEVICE_QUEUE_MS: DeviceColumn = counter("queue_ms", "ms").of_each_device();
    /// /proc/diskstats: requests in flight now
    pub const DEVICE_IN_FLIGHT: DeviceColumn = gauge("in_flight", "operations").of_each_device();

    /// /proc/stat user: user-mode time, including guests, all CPUs, in steps of 10 ms
    pub(crate) const CPU_USER_NS: ColumnDef = counter("cpu_user_ns", "ns");
    /// /proc/stat nice: user-mode time at low priority, all CPUs, in steps of 10 ms
    pub(crate) const CPU_NICE_NS: ColumnDef = counter("cpu_nice_ns", "ns");
    /// /proc/stat system: kernel-mode time, all CPUs, in steps of 10 ms
    pub(crate) const CPU_SYSTEM_NS: ColumnDef = counter("cpu_system_ns", "ns");
    /// /proc/stat idle: idle time, all CPUs, in steps of 10 ms
    pub(crate) const CPU_IDLE_NS: ColumnDef = counter("cpu_idle_ns", "ns");
    /// /proc/stat iowait: idle time while a task waited for storage, all CPUs, in steps of 10 ms
    pub(crate) const CPU_IOWAIT_NS: ColumnDef = counter("cpu_iowait_ns", "ns");
    /// /proc/stat irq: time in hardware interrupts, all CPUs, in steps of 10 ms
    pub(crate) const CPU_IRQ_NS: ColumnDef = counter("cpu_irq_ns", "ns");
    /// /proc/stat softirq: time in soft interrupts, all CPUs, in steps of 10 ms
    pub(crate) const CPU_SOFTIRQ_NS: ColumnDef = counter("cpu_softirq_ns", "ns");
    /// /proc/stat steal: time taken by the hypervisor for other guests, all CPUs, in steps of 10 ms
    pub(crate) const CPU_STEAL_NS: ColumnDef = counter("cpu_steal_ns", "ns");
}

/// All CPU states; they sum to the total time of all CPUs.
pub(crate) const CPU_TIMES: [ColumnDef; 8] =
    [CPU_USER_NS, CPU_NICE_NS, CPU_SYSTEM_NS, CPU_IDLE_NS, CPU_IOWAIT_NS, CPU_IRQ_NS, CPU_SOFTIRQ_NS, CPU_STEAL_NS];

/// CPU states that are work of this machine.
pub(crate) const CPU_WORK: [ColumnDef; 5] = [CPU_USER_NS, CPU_NICE_NS, CPU_SYSTEM_NS, CPU_IRQ_NS, CPU_SOFTIRQ_NS];

columns! {
    /// /proc/stat cpuN: busy time of the busiest single CPU since the previous row, in steps of 10 ms; it may be a
    /// different CPU in each row; absent in row 0
    pub(crate) const CPU_FULLEST_NS: ColumnDef = interval("cpu_fullest_ns", "ns");

    /// /proc/stat: CPUs online
    pub const CPU_COUNT: ColumnDef = gauge("cpu_count", "cpus");

    /// /proc/meminfo: dirty page cache waiting for writeback
    pub(crate) const MEM_DIRTY_BYTES: ColumnDef = gauge("mem_dirty_bytes", "bytes");
    /// /proc/meminfo: page cache under writeback
    pub(crate) const MEM_WRITEBACK_BYTES: ColumnDef = gauge("mem_writeback_bytes", "bytes");
    /// /proc/meminfo: page cache, including tmpfs and ramfs
    pub(crate) const MEM_CACHED_BYTES: ColumnDef = gauge("mem_cached_bytes", "bytes");
    /// /proc/meminfo: memory available to programs without swapping (kernel estimate, Linux 3.14)
    pub(crate) const MEM_AVAILABLE_BYTES: ColumnDef = gauge("mem_available_bytes", "bytes");
    /// /proc/meminfo: unused
    pub const MEM_FREE_BYTES: ColumnDef = gauge("mem_free_bytes", "bytes");
    /// /proc/meminfo: swap space in use
    pub const MEM_SWAP_USED_BYTES: ColumnDef = gauge("mem_swap_used_bytes", "bytes");
    /// /proc/vmstat pgpgin: read from all block devices of the machine
    pub const VM_PAGE_IN_BYTES: ColumnDef = counter("vm_page_in_bytes", "bytes");
    /// /proc/vmstat pgpgout: written to all block devices of the machine
    pub const VM_PAGE_OUT_BYTES: ColumnDef = counter("vm_page_out_bytes", "bytes");
    /// /proc/vmstat pswpin: pages read back from swap
    pub const VM_SWAP_IN_PAGES: ColumnDef = counter("vm_swap_in_pages", "pages");
    /// /proc/vmstat pswpout: pages written to swap
    pub const VM_SWAP_OUT_PAGES: ColumnDef = counter("vm_swap_out_pages", "pages");

    /// /proc/pressure/cpu: time in which at least one task waited for a CPU
    pub(crate) const PSI_CPU_SOME_US: ColumnDef = counter("psi_cpu_some_us", "us");
    /// /proc/pressure/cpu: time in which all non-idle tasks waited for a CPU; since Linux 5.13
    pub const PSI_CPU_FULL_US: ColumnDef = counter("psi_cpu_full_us", "us");
    /// /proc/pressure/io: time in which at least one task waited for I/O
    pub(crate) const PSI_IO_SOME_US: ColumnDef = counter("psi_io_some_us", "us");
    /// /proc/pressure/io: time in which all non-idle tasks waited for I/O
    pub(crate) const PSI_IO_FULL_US: ColumnDef = counter("psi_io_full_us", "us");
    /// /proc/pressure/memory: time in which at least one task waited for memory
    pub(crate) const PSI_MEMORY_SOME_US: ColumnDef = counter("psi_memory_some_us", "us");
    /// /proc/pressure/memory: time in which all non-idle tasks waited for memory
    pub const PSI_MEMORY_FULL_US: ColumnDef = counter("psi_memory_full_us", "us");
}

/// Number of busiest kernel threads and processes that have columns.
pub(crate) const TOP: usize = 5;

/// Names of the busiest, busiest first.
pub(crate) const TOP_NAMES: [ColumnDef; TOP] =
    [top_name("top1_name"), top_name("top2_name"), top_name("top3_name"), top_name("top4_name"), top_name("top5_name")];

/// CPU time of the busiest, in the order of [`TOP_NAMES`].
pub(crate) const TOP_CPU_NS: [ColumnDef; TOP] = [
    top_cpu("top1_cpu_ns"),
    top_cpu("top2_cpu_ns"),
    top_cpu("top3_cpu_ns"),
    top_cpu("top4_cpu_ns"),
    top_cpu("top5_cpu_ns"),
];

const fn top_name(name: &'static str) -> ColumnDef {
    interval(
        name,
        "",
        "/proc/PID/stat comm: name of the kernel thread or the processes (grouped by name) that \
         hold this rank in CPU time since the previous row; absent in row 0 and if fewer ran",
    )
    .text()
}

const fn top_cpu(name: &'static str) -> ColumnDef {
    interval(
        name,
        "ns",
        "CPU clock of the process (clock_getcpuclockid): CPU time since the previous row of the processes with \
         this name",
    )
}

columns! {
    /// /proc/PID/stat comm: name of the processes (grouped by name) that used the most CPU time since the previous
    /// row, excluding pgstrata, its descendants and kernel threads; absent in row 0 and if none ran
    pub(crate) const OTHERS_NAME: ColumnDef = interval("others_name", "").text();
    /// CPU clocks: CPU time since the first reading of all processes except pgstrata, its descendants and kernel
    /// threads; processes that ended between two rows and those that used less than 0.1 ms are not counted
    pub(crate) const OTHERS_CPU_NS: ColumnDef = counter("others_cpu_ns", "ns");
}

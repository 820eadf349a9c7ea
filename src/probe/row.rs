//! Record of a row while it is measured: slices, latencies by second, the slowest operations, failures.

use super::tape::FailedCall;
use crate::error::{Error, Result};
use crate::record::probe::{Failure, RowRecord, RowSpec, SecondLatencies, Slow};
use hdrhistogram::Histogram;
use rustix::io::Errno;
use std::io::ErrorKind;

/// Slow operations kept per row.
const SLOWEST: usize = 16;

pub struct RowBuilder {
    pub record: RowRecord,
    /// The second being filled.
    second: u32,
    latencies: Histogram<u64>,
}

/// One completed operation, in nanoseconds since the first slice began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoneOperation {
    pub ended_ns: u64,
    pub latency_ns: u64,
}

impl RowBuilder {
    /// An empty record.
    ///
    /// # Errors
    /// Never in practice: the number of digits is a constant that hdrhistogram accepts.
    pub fn new(spec: RowSpec) -> Result<RowBuilder> {
        const SIGNIFICANT_DIGITS: u8 = 2;
        let latencies =
            Histogram::new(SIGNIFICANT_DIGITS).map_err(|e| Error::bug(format!("cannot create a histogram: {e}")))?;
        Ok(RowBuilder { record: RowRecord { spec, ..RowRecord::default() }, second: 0, latencies })
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.record.unavailable.is_some() || self.record.failure.is_some()
    }

    pub fn operations(&self) -> u64 {
        self.record.slices.iter().map(|slice| slice.operations).sum()
    }

    /// Adds an operation. They must come in the order of their ends.
    ///
    /// # Errors
    /// Never in practice: the histogram grows as needed.
    pub fn done(&mut self, done: DoneOperation) -> Result<()> {
        let second = u32::try_from(done.ended_ns / 1_000_000_000).unwrap_or(u32::MAX);
        if second > self.second {
            self.close_second();
            self.second = second;
        }
        let recorded = self.latencies.record(done.latency_ns);
        recorded.map_err(|e| Error::bug(format!("cannot record a latency of {} ns: {e}", done.latency_ns)))?;
        let slowest = &mut self.record.slowest;
        if slowest.len() < SLOWEST || slowest.last().is_some_and(|last| last.latency_ns < done.latency_ns) {
            let slow = Slow { at_us: (done.ended_ns - done.latency_ns) / 1000, latency_ns: done.latency_ns };
            let place = slowest.partition_point(|one| one.latency_ns >= slow.latency_ns);
            slowest.insert(place, slow);
            slowest.truncate(SLOWEST);
        }
        Ok(())
    }

    fn close_second(&mut self) {
        if !self.latencies.is_empty() {
            let counts = self.latencies.iter_recorded();
            let latencies = counts.map(|count| (count.value_iterated_to(), count.count_at_value())).collect();
            self.record.seconds.push(SecondLatencies { second: self.second, latencies });
            self.latencies.reset();
        }
    }

    /// Ends the row with a call that failed at `at_us`. If it is the first operation and the kernel says that it does
    /// not support this, the row is not available here; anything else is a failure of the storage.
    pub fn failed(&mut self, failed: &FailedCall, at_us: u64) {
        let after_operations = self.operations();
        match refusal(&self.record.spec, failed).filter(|_| after_operations == 0) {
            Some(why) => self.record.unavailable = Some(why),
            None => self.record.failure = Some(failed.record(at_us, after_operations)),
        }
    }

    pub fn close(mut self) -> RowRecord {
        self.close_second();
        self.record
    }
}

impl FailedCall {
    /// Records the error's name and message as on the probed system.
    pub(super) fn record(&self, at_us: u64, after_operations: u64) -> Failure {
        let errno = self.error.raw_os_error();
        let text = self.error.to_string();
        let text = text.split(" (os error").next().unwrap_or(&text);
        let message = errno.and_then(name).map_or_else(|| text.to_owned(), |name| format!("{name}: {text}"));
        Failure { call: self.call.to_owned(), errno, message, at_us, after_operations }
    }
}

/// Names of the error numbers that storage returns (errno(3)); the numbers differ between systems.
fn name(errno: i32) -> Option<&'static str> {
    const NAMES: [(Errno, &str); 20] = [
        (Errno::PERM, "EPERM"),
        (Errno::NOENT, "ENOENT"),
        (Errno::INTR, "EINTR"),
        (Errno::IO, "EIO"),
        (Errno::NXIO, "ENXIO"),
        (Errno::BADF, "EBADF"),
        (Errno::AGAIN, "EAGAIN"),
        (Errno::NOMEM, "ENOMEM"),
        (Errno::ACCESS, "EACCES"),
        (Errno::FAULT, "EFAULT"),
        (Errno::NODEV, "ENODEV"),
        (Errno::INVAL, "EINVAL"),
        (Errno::FBIG, "EFBIG"),
        (Errno::NOSPC, "ENOSPC"),
        (Errno::ROFS, "EROFS"),
        (Errno::NOSYS, "ENOSYS"),
        (Errno::OPNOTSUPP, "EOPNOTSUPP"),
        (Errno::NOTCONN, "ENOTCONN"),
        (Errno::STALE, "ESTALE"),
        (Errno::DQUOT, "EDQUOT"),
    ];
    NAMES.iter().find(|(number, _)| number.raw_os_error() == errno).map(|(_, name)| *name)
}

/// The reason why a call's very first failure means "not supported here" rather than "the storage failed".
fn refusal(spec: &RowSpec, failed: &FailedCall) -> Option<String> {
    let errno = failed.error.raw_os_error().map(Errno::from_raw_os_error);
    let why = match (failed.call, errno) {
        ("open", Some(Errno::INVAL)) if spec.direct => "the filesystem does not support O_DIRECT",
        ("write", Some(Errno::INVAL)) if spec.direct => {
            let bytes = spec.write_bytes;
            return Some(format!(
                "a direct write of {bytes} bytes is rejected: not a multiple of the device's sector size or the filesystem's block size"
            ));
        }
        ("pwritev2", Some(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS)) if spec.direct => {
            "RWF_DSYNC (Linux 4.7) or a direct write of this size is not supported"
        }
        ("io_uring write", Some(Errno::INVAL)) => "no IORING_OP_WRITE: needs Linux 5.6",
        ("pwritev2", Some(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS)) => "no RWF_DSYNC: needs Linux 4.7",
        ("io_uring_setup", Some(Errno::NOSYS)) => "no io_uring: needs Linux 5.1",
        ("io_uring_setup", Some(Errno::PERM)) => {
            "io_uring is disabled (kernel.io_uring_disabled, or seccomp in a container)"
        }
        ("io_uring_setup", Some(Errno::NOMEM)) => {
            "io_uring needs more locked memory than the limit allows: raise it (ulimit -l)"
        }
        ("io_uring_setup", _) => return Some(format!("io_uring cannot be set up: {}", failed.error)),
        ("clone", _) => return Some(failed.error.to_string()),
        ("mmap", Some(Errno::NODEV | Errno::INVAL)) => "the filesystem does not support shared mappings",
        ("madvise(MADV_POPULATE_WRITE)", Some(Errno::INVAL)) => {
            "no MADV_POPULATE_WRITE (needs Linux 5.14): without it a full disk would kill the process"
        }
        _ if failed.error.kind() == ErrorKind::Unsupported => {
            return Some(format!("{}: {}", failed.call, failed.error));
        }
        _ => return None,
    };
    Some(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::rows::{RowChoice, rows};
    use crate::record::probe::Slice;
    use std::io;

    fn row(id: &str) -> RowBuilder {
        RowBuilder::new(rows(&RowChoice::All, 8192, 1).into_iter().find(|spec| spec.id == id).unwrap()).unwrap()
    }

    fn failed(call: &'static str, errno: i32) -> FailedCall {
        FailedCall { call, error: io::Error::from_raw_os_error(errno) }
    }

    #[test]
    fn latencies_are_counted_in_the_second_in_which_operations_ended() {
        let mut row = row("one_write.fdatasync");
        for (ended_ns, latency_ns) in [(500, 500), (900_000_000, 400), (2_000_000_000, 1_100_000_000)] {
            row.done(DoneOperation { ended_ns, latency_ns }).unwrap();
        }
        let record = row.close();
        let seconds: Vec<(u32, u64)> = record
            .seconds
            .iter()
            .map(|second| (second.second, second.latencies.iter().map(|(_, count)| count).sum()))
            .collect();
        assert_eq!(seconds, [(0, 2), (2, 1)]);
        assert_eq!(record.slowest[0], Slow { at_us: 900_000, latency_ns: 1_100_000_000 });
        for (shown, exact) in record.seconds[0].latencies.iter().zip([400u64, 500]) {
            assert!(shown.0 >= exact && (shown.0 - exact) * 100 < exact, "{shown:?} {exact}");
        }
    }

    #[test]
    fn the_sixteen_slowest_operations_keep_their_moment() {
        let mut row = row("one_write.fsync");
        for n in 1..=100u64 {
            row.done(DoneOperation { ended_ns: n * 1_000_000, latency_ns: (n * 37) % 101 }).unwrap();
        }
        let slowest: Vec<u64> = row.close().slowest.iter().map(|slow| slow.latency_ns).collect();
        assert_eq!(slowest, (85..=100).rev().collect::<Vec<u64>>());
    }

    #[test]
    fn only_a_refusal_after_the_first_is_a_storage_failure() {
        let mut refused = row("one_write.open_datasync");
        refused.failed(&failed("open", 22), 5);
        assert!(refused.record.failure.is_none() && refused.has_ended());
        assert_eq!(refused.record.unavailable.as_deref(), Some("the filesystem does not support O_DIRECT"));
        let mut locked = row("newer.io_uring");
        locked.failed(&failed("io_uring_setup", 12), 5);
        assert!(locked.record.unavailable.as_deref().is_some_and(|why| why.contains("ulimit -l")));
        let mut broken = row("one_write.fdatasync");
        broken.failed(&failed("fdatasync", 5), 7);
        let failure = broken.record.failure.clone().unwrap();
        assert_eq!((failure.errno, failure.call.as_str(), failure.at_us), (Some(5), "fdatasync", 7));
        assert!(failure.message.starts_with("EIO: "), "{}", failure.message);
        let mut later = row("one_write.open_datasync");
        later.record.slices.push(Slice { operations: 3, ..Slice::default() });
        later.failed(&failed("write", 22), 9);
        assert_eq!(later.record.failure.as_ref().unwrap().after_operations, 3);
    }
}

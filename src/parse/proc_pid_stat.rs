//! `/proc/PID/stat`: one process, including all its threads.

use super::fields::Fields;
use crate::error::{Error, Result};

/// `PF_KTHREAD` of the kernel's task flags (include/linux/sched.h).
const KERNEL_THREAD_FLAG: u64 = 0x0020_0000;

/// Fields of `/proc/PID/stat`; the name borrows from the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat<'a> {
    pub pid: u32,
    /// Name in the kernel: 15 bytes of a program's name, or the full name of a kernel thread, to which a workqueue's
    /// worker adds its work (`kworker/u8:2-btrfs-endio-write`).
    pub comm: &'a str,
    /// State: `R`, `S`, `D`, `Z` (ended, not yet reaped by its parent), `X` (gone), ...
    pub state: char,
    pub parent: u32,
    /// True for a kernel thread.
    pub kernel_thread: bool,
    /// CPU time in user mode, ticks of 1/USER_HZ second.
    pub user_ticks: u64,
    /// CPU time in kernel mode, ticks of 1/USER_HZ second.
    pub system_ticks: u64,
    /// Start time, ticks since boot: together with the pid, this identifies a process for ever.
    pub started_ticks: u64,
}

/// `source` is the file's path, for errors.
///
/// # Errors
/// With the item if the name is not in brackets, or a field is missing or not a number.
pub fn parse<'a>(source: &'a str, text: &'a str) -> Result<ProcessStat<'a>> {
    // A name may contain blanks, brackets and line ends: it extends to the last bracket.
    let parts = text.split_once('(').and_then(|(pid, rest)| Some((pid, rest.rsplit_once(')')?)));
    let (pid, (comm, rest)) =
        parts.ok_or_else(|| Error::host(format!("{source} line 1: `comm` is not in brackets")))?;
    let pid = Fields::new(source, 1, pid).count("pid")?;
    let mut fields = Fields::new(source, 1, rest);
    let state = fields.text("state")?.chars().next().unwrap_or('?');
    let parent = fields.count("ppid")?;
    for skipped in ["pgrp", "session", "tty_nr", "tpgid"] {
        fields.text(skipped)?;
    }
    let flags: u64 = fields.count("flags")?;
    for skipped in ["minflt", "cminflt", "majflt", "cmajflt"] {
        fields.text(skipped)?;
    }
    let (user_ticks, system_ticks) = (fields.count("utime")?, fields.count("stime")?);
    for skipped in ["cutime", "cstime", "priority", "nice", "num_threads", "itrealvalue"] {
        fields.text(skipped)?;
    }
    let started_ticks = fields.count("starttime")?;
    let kernel_thread = flags & KERNEL_THREAD_FLAG != 0;
    Ok(ProcessStat { pid, comm, state, parent, kernel_thread, user_ticks, system_ticks, started_ticks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    const PLACE: &str = "/proc/13752/stat";
    const CAT: &str = "13752 (cat) R 13747 13747 12770 0 -1 4194304 102 0 0 0 7 3 0 0 20 0 1 0 188454 3133440 384 \
                       18446744073709551615 94758111727616 94758111747497 140731418103296 0 0 0 0 0 0 0 0 0 17 1 0 0 \
                       0 0 0 94758111763504 94758111765120 94758359851008 1 2 3 4 0\n";

    #[test]
    fn a_program_is_read() {
        let cat = parse(PLACE, CAT).unwrap();
        assert_eq!((cat.pid, cat.comm, cat.state, cat.parent), (13752, "cat", 'R', 13747));
        assert_eq!((cat.user_ticks, cat.system_ticks, cat.started_ticks), (7, 3, 188_454));
        assert!(!cat.kernel_thread);
    }

    #[test]
    fn a_kernel_worker_keeps_the_name_of_its_workqueue() {
        let text = CAT.replace("(cat)", "(kworker/u8:2-btrfs-endio-write)").replace("4194304", "69238880");
        let worker = parse(PLACE, &text).unwrap();
        assert_eq!(worker.comm, "kworker/u8:2-btrfs-endio-write");
        assert!(worker.kernel_thread);
    }

    #[test]
    fn brackets_blanks_and_newlines_in_names_shift_no_fields() {
        let cat = CAT.replace("(cat)", "(a) R 1 (b\n)");
        let odd = parse(PLACE, &cat).unwrap();
        assert_eq!((odd.comm, odd.started_ticks), ("a) R 1 (b\n", 188_454));
    }

    #[test]
    fn a_fault_names_file_line_item_and_type() {
        let text = parse(PLACE, &CAT.replace("188454", "then")).unwrap_err().to_string();
        assert_eq!(text, "/proc/13752/stat line 1: `starttime` is `then`, not a whole number (u64)");
        assert!(parse(PLACE, "1 cat R").unwrap_err().to_string().contains("not in brackets"));
        assert!(parse(PLACE, "1 (cat) R 1").unwrap_err().to_string().contains("`pgrp` is missing"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[0-9]{0,20} ?\\(?\\PC{0,20}\\)?( [0-9]{1,22}){0,25}\n?") {
            drop(parse(PLACE, &text));
        }
    }
}

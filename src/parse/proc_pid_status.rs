//! `/proc/PID/status`: user and signal handlers of a process.

use super::fields::Fields;
use crate::error::{Error, Result};

/// The effective user of a process, from the text of its `/proc/PID/status` (`source`, for the error).
///
/// # Errors
/// If the line `Uid:` is missing or its second field is not a number.
pub fn effective_uid(source: &str, text: &str) -> Result<u32> {
    let line = text.lines().enumerate().find_map(|(index, line)| Some((index + 1, line.strip_prefix("Uid:")?)));
    let (number, uids) = line.ok_or_else(|| Error::host(format!("{source}: the line `Uid:` is missing")))?;
    let mut fields = Fields::new(source, number, uids);
    fields.text("real Uid")?;
    fields.count("effective Uid")
}

/// True if a process has a handler for the signal of this number, according to the text of its `/proc/PID/status`;
/// false if the line is missing.
pub fn catches(text: &str, signal: u32) -> bool {
    let mask = text.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
    mask.is_some_and(|mask| signal > 0 && mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    const PLACE: &str = "/proc/7/status";

    #[test]
    fn the_effective_user_is_the_second_of_four() {
        assert_eq!(effective_uid(PLACE, "Name:\tsu\nPid:\t7\nUid:\t1000\t101\t0\t0\n").unwrap(), 101);
    }

    #[test]
    fn a_fault_names_file_line_item_and_type() {
        let text = effective_uid(PLACE, "Name:\tsu\nUid:\t1\troot\t0\t0\n").unwrap_err().to_string();
        assert_eq!(text, "/proc/7/status line 2: `effective Uid` is `root`, not a whole number (u32)");
        assert!(effective_uid(PLACE, "").unwrap_err().to_string().contains("`Uid:` is missing"));
        assert!(effective_uid(PLACE, "Uid:\t1\n").unwrap_err().to_string().contains("`effective Uid` is missing"));
    }

    #[test]
    fn a_signal_is_caught_where_its_bit_is_set() {
        // pgbench with `-T`: catches SIGINT and SIGALRM, ignores SIGPIPE.
        let text = "Name:\tpgbench\nSigIgn:\t0000000000001000\nSigCgt:\t0000000000002002\n";
        assert_eq!([2, 13, 14].map(|signal| catches(text, signal)), [true, false, true]);
        assert!(!catches("Name:\tsh\n", 14) && !catches(text, 0));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(Uid:)?[\t 0-9]{0,30}\n?|\\PC{0,60}") {
            drop(effective_uid(PLACE, &text));
        }
    }
}

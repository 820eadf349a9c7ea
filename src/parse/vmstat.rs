//! `/proc/vmstat`: memory management counters since boot.

use super::fields::Fields;
use crate::error::Result;

const SOURCE: &str = "/proc/vmstat";

/// The counter named `item`; `None` if the kernel does not report it.
///
/// # Errors
/// With line and item if it is not a whole number.
pub fn counter(text: &str, item: &str) -> Result<Option<u64>> {
    let mut lines = text.lines().zip(1..).map(|(line, number)| (number, line.split_once(' ').unwrap_or((line, ""))));
    let found = lines.find(|(_, (name, _))| *name == item);
    found.map(|(number, (_, rest))| Fields::new(SOURCE, number, rest).count(item)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    #[test]
    fn a_kernel_without_swap_has_no_swap_counters() {
        let text = "pgpgin 1\npgpgout 2\n";
        assert_eq!(["pgpgout", "pswpin"].map(|item| counter(text, item).unwrap()), [Some(2), None]);
    }

    #[test]
    fn a_fault_names_file_line_item_and_type() {
        let text = counter("nr_dirty 41\npgpgin x\n", "pgpgin").unwrap_err().to_string();
        assert_eq!(text, "/proc/vmstat line 2: `pgpgin` is `x`, not a whole number (u64)");
        assert!(counter("pgpgin\n", "pgpgin").unwrap_err().to_string().contains("`pgpgin` is missing"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(pgpgin|pswpout)?[ 0-9a-z]{0,40}\n?|\\PC{0,60}") {
            drop(counter(&text, "pgpgin"));
        }
    }
}

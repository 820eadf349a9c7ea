//! `/proc/vmstat`: memory management counters since boot.

use super::fields::Fields;
use crate::error::Result;

const SOURCE: &str = "/proc/vmstat";

/// `None` if the kernel does not report the figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Vmstat {
    /// Bytes read by all block devices. The kernel prints KiB (`vmstat_start` in mm/vmstat.c).
    pub page_in_bytes: Option<u64>,
    /// Bytes written by all block devices.
    pub page_out_bytes: Option<u64>,
    /// Pages read back from swap.
    pub swap_in_pages: Option<u64>,
    /// Pages written to swap.
    pub swap_out_pages: Option<u64>,
}

/// Reads the figures of [`Vmstat`], ignoring other lines.
///
/// # Errors
/// With line and item if one of these figures is not a whole number.
pub fn parse(text: &str) -> Result<Vmstat> {
    let mut found = Vmstat::default();
    for (index, line) in text.lines().enumerate() {
        let (item, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (place, factor) = match item {
            "pgpgin" => (&mut found.page_in_bytes, 1024),
            "pgpgout" => (&mut found.page_out_bytes, 1024),
            "pswpin" => (&mut found.swap_in_pages, 1),
            "pswpout" => (&mut found.swap_out_pages, 1),
            _ => continue,
        };
        let number: u64 = Fields::new(SOURCE, index + 1, rest).count(item)?;
        *place = Some(number.saturating_mul(factor));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    #[test]
    fn transfers_are_in_bytes_and_swap_in_pages() {
        let found = parse("nr_dirty 41\npgpgin 5030573\npgpgout 7623636\npswpin 1\npswpout 2\n").unwrap();
        assert_eq!((found.page_in_bytes, found.page_out_bytes), (Some(5_030_573 * 1024), Some(7_623_636 * 1024)));
        assert_eq!((found.swap_in_pages, found.swap_out_pages), (Some(1), Some(2)));
    }

    #[test]
    fn a_kernel_without_swap_has_no_swap_counters() {
        assert_eq!(parse("pgpgin 1\npgpgout 2\n").unwrap().swap_in_pages, None);
    }

    #[test]
    fn a_fault_names_file_line_item_and_type() {
        let text = parse("nr_dirty 41\npgpgin x\n").unwrap_err().to_string();
        assert_eq!(text, "/proc/vmstat line 2: `pgpgin` is `x`, not a whole number (u64)");
        assert!(parse("pgpgin\n").unwrap_err().to_string().contains("`pgpgin` is missing"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(pgpgin|pswpout)?[ 0-9a-z]{0,40}\n?|\\PC{0,60}") {
            drop(parse(&text));
        }
    }
}

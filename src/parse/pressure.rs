//! `/proc/pressure/{cpu,io,memory}`: time in which tasks stalled on a resource (PSI, Linux 4.20).

use super::fields::Fields;
use crate::error::{Error, Result};

/// Stall time since boot. The file's averages are rates and are ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Time in which at least one task waited for the resource, microseconds.
    pub some_us: u64,
    /// Time in which all non-idle tasks waited for it, microseconds; `cpu` has none before Linux 5.13.
    pub full_us: Option<u64>,
}

/// Reads the file's text; `source` is its path, for errors.
///
/// # Errors
/// If the line `some` is missing, or a line is neither `some` nor `full` or has no number after `total=`.
pub fn parse(source: &str, text: &str) -> Result<Pressure> {
    let (mut some_us, mut full_us) = (None, None);
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let place = match kind {
            "some" => &mut some_us,
            "full" => &mut full_us,
            other => {
                return Err(Error::host(format!("{source} line {number}: `{other}`, neither `some` nor `full`")));
            }
        };
        let total = rest.split_ascii_whitespace().find_map(|field| field.strip_prefix("total="));
        let total = total.ok_or_else(|| Error::host(format!("{source} line {number}: `total=` is missing")))?;
        *place = Some(Fields::new(source, number, total).count("total")?);
    }
    let some_us = some_us.ok_or_else(|| Error::host(format!("{source}: the line `some` is missing")))?;
    Ok(Pressure { some_us, full_us })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    const IO: &str = "/proc/pressure/io";
    const LINUX_6_18: &str = "some avg10=0.40 avg60=0.33 avg300=0.22 total=14496010
full avg10=0.40 avg60=0.33 avg300=0.21 total=13821943
";

    #[test]
    fn totals_are_read() {
        let pressure = parse(IO, LINUX_6_18).unwrap();
        assert_eq!(pressure, Pressure { some_us: 14_496_010, full_us: Some(13_821_943) });
    }

    #[test]
    fn kernels_before_5_13_have_no_full_line_for_cpu() {
        let text = "some avg10=0.05 avg60=0.09 avg300=0.32 total=21017026\n";
        assert_eq!(parse("/proc/pressure/cpu", text).unwrap().full_us, None);
    }

    #[test]
    fn a_fault_names_file_line_item_and_type() {
        let text = parse(IO, &LINUX_6_18.replace("13821943", "-")).unwrap_err().to_string();
        assert_eq!(text, "/proc/pressure/io line 2: `total` is `-`, not a whole number (u64)");
        assert!(parse(IO, "").unwrap_err().to_string().contains("`some` is missing"));
        assert!(parse(IO, "most total=1\n").unwrap_err().to_string().contains("neither"));
        assert!(parse(IO, "some avg10=1\n").unwrap_err().to_string().contains("`total=` is missing"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(some|full)?[ a-z0-9=.]{0,60}\n?|\\PC{0,60}") {
            drop(parse(IO, &text));
        }
    }
}

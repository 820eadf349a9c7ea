//! Statistics of the Solaris porting layer below `/proc/spl/kstat/zfs`: named counters (`arcstats`, `zil`), and the
//! recent transaction groups of a pool (`txgs`). A heading precedes the values; in files of named counters, one more
//! line precedes the heading.

use super::fields::Fields;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// Type of a value: unsigned 64 bits (`KSTAT_DATA_UINT64`).
const UINT64: &str = "4";

/// Reads named counters, skipping values of other types (signed numbers, texts), none of which is used.
///
/// # Errors
/// Names file and line that are malformed.
pub fn named(source: &str, text: &str) -> Result<BTreeMap<String, u64>> {
    let mut counters = BTreeMap::new();
    for (number, line) in body(source, text, "name")? {
        let mut fields = Fields::new(source, number, line);
        let (name, kind) = (fields.text("name")?, fields.text("type")?);
        if kind == UINT64 {
            counters.insert(name.to_owned(), fields.count(name)?);
        }
    }
    Ok(counters)
}

/// One transaction group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Txg {
    pub number: u64,
    /// True if it is written and committed; its figures are then final.
    pub committed: bool,
    /// Bytes written to the pool's devices.
    pub written_bytes: u64,
    /// Duration of its sync, nanoseconds.
    pub sync_ns: u64,
}

/// Reads the transaction groups, oldest first.
///
/// # Errors
/// Names file and line that are malformed.
pub fn txgs(source: &str, text: &str) -> Result<Vec<Txg>> {
    let heading = text.lines().find(|line| is_heading(line, "txg")).unwrap_or_default();
    let heading: Vec<&str> = heading.split_whitespace().collect();
    let lines = body(source, text, "txg")?.into_iter().map(|(number, line)| {
        let values: Vec<&str> = line.split_whitespace().collect();
        let fields = Fields::new(source, number, line);
        let value = |name: &str| {
            let value = heading.iter().position(|known| *known == name).and_then(|at| values.get(at).copied());
            value.ok_or_else(|| Error::host(format!("{source} line {number}: `{name}` is missing")))
        };
        Ok(Txg {
            number: fields.number("txg", value("txg")?)?,
            committed: value("state")? == "C",
            written_bytes: fields.number("nwritten", value("nwritten")?)?,
            sync_ns: fields.number("stime", value("stime")?)?,
        })
    });
    lines.collect()
}

/// The lines after the heading, with their line numbers from 1; empty for a statistic that has no data yet.
fn body<'a>(source: &str, text: &'a str, first: &str) -> Result<Vec<(usize, &'a str)>> {
    let heading = text.lines().take(2).position(|line| is_heading(line, first));
    match heading {
        Some(at) => Ok(text.lines().enumerate().skip(at + 1).map(|(number, line)| (number + 1, line)).collect()),
        None if text.trim().is_empty() => Ok(Vec::new()),
        None => Err(Error::host(format!("{source}: there is no heading that begins with `{first}`"))),
    }
}

fn is_heading(line: &str, first: &str) -> bool {
    line.split_whitespace().next() == Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn the_statistics_of_a_real_module_are_read() {
        let arc = named("arcstats", include_str!("../../tests/fixtures/zfs/2.3.9-arcstats.txt")).unwrap();
        assert_eq!(
            (arc["c_max"], arc.contains_key("memory_available_bytes")),
            (1_293_406_720, false),
            "signed: left out"
        );
        let zil = named("zil", include_str!("../../tests/fixtures/zfs/2.3.9-zil.txt")).unwrap();
        assert_eq!((zil["zil_commit_count"], zil["zil_itx_metaslab_slog_bytes"]), (100, 848_416));
        let groups = txgs("txgs", include_str!("../../tests/fixtures/zfs/2.3.9-txgs.txt")).unwrap();
        let first = Txg { number: 5, committed: true, written_bytes: 191_488, sync_ns: 946_369_648 };
        assert_eq!((groups.len(), groups[0], groups[6].committed), (7, first, false));
    }

    #[test]
    fn a_line_that_ends_early_is_told() {
        let error = named("arcstats", "1 1\nname type data\nhits 4\n").unwrap_err().to_string();
        assert!(error.contains("arcstats line 3"), "{error}");
        let error = txgs("txgs", "txg birth state nwritten stime\n5 1 C 7\n").unwrap_err().to_string();
        assert!(error.contains("txgs line 2: `stime` is missing"), "{error}");
        assert!(named("x", "1 1\nother\n").is_err());
        assert_eq!(txgs("txgs", "").unwrap(), []);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            drop((named("x", &text), txgs("x", &text)));
        }
    }
}

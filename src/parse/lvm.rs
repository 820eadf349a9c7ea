//! `lvs`, `vgs` and `pvs` with `--reportformat json`: one table of named columns (LVM 2.02.158 and later).

use crate::error::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct ReportDocument {
    report: Vec<BTreeMap<String, Vec<BTreeMap<String, String>>>>,
}

/// The rows of the table `lv`, `vg` or `pv`, each as its columns by name.
///
/// # Errors
/// If the text is not LVM's JSON, or has no such table.
pub fn parse_report(text: &str, table: &str) -> Result<Vec<BTreeMap<String, String>>> {
    let document: ReportDocument =
        serde_json::from_str(text).map_err(|e| Error::tool(format!("the output of LVM is not a report: {e}")))?;
    let found = document.report.into_iter().find_map(|mut tables| tables.remove(table));
    found.ok_or_else(|| Error::tool(format!("the report of LVM has no table `{table}`")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    const STRIPED: &str = include_str!("../../tests/fixtures/lvm/2.03.31-striped.json");
    const THIN: &str = include_str!("../../tests/fixtures/lvm/2.03.31-thin.json");

    #[test]
    fn volumes_read_with_their_columns() {
        let rows = parse_report(STRIPED, "lv").unwrap();
        let row = rows.iter().find(|row| row["lv_name"] == "data").unwrap();
        assert_eq!((row["segtype"].as_str(), row["stripes"].as_str()), ("striped", "2"));
        let thin = parse_report(THIN, "lv").unwrap();
        assert!(thin.iter().any(|row| row["segtype"] == "thin-pool" && row["chunk_size"] == "131072"), "{thin:?}");
        assert!(parse_report(STRIPED, "vg").unwrap_err().to_string().contains("no table `vg`"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            drop(parse_report(&text, "lv"));
        }
    }
}

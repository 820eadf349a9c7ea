//! A table of a page without a script, with its CSV as an address that can be saved.

use super::page::base64;
use super::table::Table;
use serde::Serialize;

/// Its macro, `sheet(s)`, which needs that of the table before it.
pub(super) const MACRO: &str = concat!(include_str!("html/table.html"), include_str!("html/sheet.html"));

#[derive(Serialize)]
pub(super) struct Sheet {
    table: Table,
    file: String,
    csv: String,
}

impl Sheet {
    /// Of a table; the file is named `page-TABLE.csv`.
    pub(super) fn of(page: &str, table: Table) -> Sheet {
        let csv = format!("data:text/csv;base64,{}", base64(table.to_csv().as_bytes()));
        Sheet { file: format!("{page}-{}.csv", table.id), table, csv }
    }
}

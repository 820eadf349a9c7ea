//! Results of the readers of foreign text: outputs of tools with rows, each row with labels and figures, each figure as
//! printed, with its unit and line. Text that could not be read is listed, never dropped.
//!
//! Every foreign parser has the same function, `read(lines) -> Vec<Output>`, which scans the whole text for its own
//! output. Text comes as the web gives it, so nothing here depends on columns: `clean` undoes what pages do to text,
//! and keeps the original line numbers.

pub use crate::record::imported::{ImportedFigure as Figure, ImportedOutput as Output, ImportedRow as Row, Unread};

/// A line of the text, cleaned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLine<'a> {
    /// Number in the file, from 1.
    pub number: u32,
    /// The line without its end, margin and markup.
    pub text: &'a str,
    /// Columns before the text. Pages change this: it is a hint, and nothing may depend on it.
    pub indent: usize,
}

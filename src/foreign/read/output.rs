//! What a reader of foreign text finds: outputs of tools, each with its rows, each row with labels and figures, each
//! figure as it stands in the text, with its unit and its line. And what it could not read, never dropped.
//!
//! Every foreign parser has the same function, `read(lines) -> Vec<Output>`, which goes through the whole text and takes
//! what is its own. Text comes as the web gives it, so nothing here depends on columns: `clean` undoes what pages do to
//! text, and says where each line stood.

pub use crate::record::imported::{ImportedFigure as Figure, ImportedOutput as Output, ImportedRow as Row, Unread};

/// One line of the text as it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its number in the file, from 1.
    pub number: u32,
    /// The line without its end, its margin and what a page put around it.
    pub text: &'a str,
    /// How many columns stood before that. Pages change it: it may tell, but nothing may depend on it.
    pub indent: usize,
}

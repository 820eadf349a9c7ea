//! Imported figures by themselves: which rows are which, and which no storage can have.

pub(crate) mod beyond;
pub(crate) mod select;
pub mod words;

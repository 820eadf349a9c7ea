//! Imported figures on their own: selecting rows, and figures that no storage can reach.

pub(crate) mod beyond;
pub(crate) mod select;
pub mod words;

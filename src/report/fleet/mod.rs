//! A fleet comparison as text for a terminal and as a page. Its JSON is the findings themselves.

mod page;
mod plot;
mod terminal;
#[cfg(test)]
mod tests;

pub use page::{GroupingLink, page};
pub use terminal::terminal;

//! A comparison as text for a terminal and as a page. Its JSON is the findings themselves.

mod page;
mod tables;
mod terminal;
#[cfg(test)]
mod tests;

pub use page::page;
pub use terminal::terminal;

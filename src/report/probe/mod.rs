//! A probe's findings as text for a terminal, as CSV, and in pg_test_fsync's format. Their JSON is the findings
//! themselves.

mod csv;
mod head;
mod numbers;
mod pg_test_fsync;
mod rows;
mod sections;
mod terminal;
#[cfg(test)]
mod tests;

pub use csv::csv;
pub use head::requirement;
pub use pg_test_fsync::pg_test_fsync;
pub use terminal::terminal;

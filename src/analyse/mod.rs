//! Records to findings: figures with their intervals, comparisons, refusals to compare, verdicts.
//!
//! Reads run folders through `store`; needs neither root nor PostgreSQL nor the machine. Absent on purpose: HTML.

pub mod findings;

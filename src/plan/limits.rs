//! How large a plan may be, and where its parts stand in its text.

use std::ops::Range;

/// Where something stands in the text, in bytes.
pub(crate) type Span = Range<usize>;

/// Deepest nesting of tables and lists that a plan may have; a plan needs six.
pub(crate) const MAX_DEPTH: usize = 32;

/// Most values of a list: as many as a plan may have cases.
pub(crate) const MAX_ITEMS: usize = MAX_CASES;

/// Longest text, bytes. A program takes 128 KiB as an argument.
pub(crate) const MAX_TEXT: usize = 64 << 10;

/// Most keys of a table: stacks, workloads, settings. PostgreSQL has 400 settings.
pub(crate) const MAX_KEYS: usize = 1000;

/// Most parts of a dotted key that the TOML parser is trusted with.
pub(crate) const MAX_KEY_PARTS: usize = 1000;

/// A key with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// The key, unquoted.
    pub text: String,
    pub span: Span,
}

/// Most cases of a plan: with a minute each, a week.
pub(crate) const MAX_CASES: usize = 10_000;

/// Most combinations of options that are checked for a plan: one each for ten layers of every case.
pub(crate) const MAX_COMBINATIONS: usize = 10 * MAX_CASES;

//! Size limits of a plan, and spans in its text.

use std::ops::Range;

/// Byte range in the plan's text.
pub(crate) type Span = Range<usize>;

/// Deepest nesting of tables and lists that a plan may have; a plan needs six.
pub(crate) const MAX_DEPTH: usize = 32;

/// Most values of a list: the most cases of a plan.
pub(crate) const MAX_ITEMS: usize = MAX_CASES;

/// Longest text, bytes. A program argument may have 128 KiB.
pub(crate) const MAX_TEXT: usize = 64 << 10;

/// Most keys of a table: stacks, workloads, settings. PostgreSQL has 400 settings.
pub(crate) const MAX_KEYS: usize = 1000;

/// Most parts of a dotted key that the TOML parser is given.
pub(crate) const MAX_KEY_PARTS: usize = 1000;

/// A key with its span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// The key, unquoted.
    pub text: String,
    pub span: Span,
}

/// Most cases of a plan: with a minute each, a week.
pub(crate) const MAX_CASES: usize = 10_000;

/// Most combinations of options checked for one plan: one for each of ten layers of every case.
pub(crate) const MAX_COMBINATIONS: usize = 10 * MAX_CASES;

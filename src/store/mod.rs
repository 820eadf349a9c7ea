//! A folder per run: atomic writes, versions, reading back. Does not know what the numbers mean.

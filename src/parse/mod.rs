//! Texts of foreign tools and kernel files to typed values: pure functions from `&str`, one file a tool.

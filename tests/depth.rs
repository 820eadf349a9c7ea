//! Two depths: `make test` on each change, `make test-full` with all combinations before an issue is called resolved.

pub fn is_full() -> bool {
    std::env::var_os("PGSTRATA_TEST_FULL").is_some()
}

/// Whether this test waits for the full suite; says so.
pub fn waits_for_full() -> bool {
    if !is_full() {
        println!("skipped: only in the full suite (make test-full)");
    }
    !is_full()
}

//! Threads of a scope, begun in the one way that does not panic where the system has none left: a panic would leave the others
//! waiting, and with them the stack and the server standing.

use crate::error::{Error, Result};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// What helps where there is no process, thread or memory left.
pub(crate) const LIMITS: &str =
    "free memory, or raise the limit that is reached: `ulimit -u`, `ulimit -v`, `pids.max` of the control group";

/// Begins one. Where that fails, the caller tells those that it has begun to end before it returns: the scope waits for them.
///
/// # Errors
/// The system's: its limit of processes or of memory is reached.
pub(crate) fn begin<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    Builder::new()
        .spawn_scoped(scope, work)
        .map_err(|e| Error::host(format!("cannot start a thread: {e}")).hint(LIMITS))
}

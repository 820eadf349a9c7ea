//! Threads, begun in the one way that does not panic where the system has none left: a panic would leave the others waiting, and
//! with them the stack and the server standing.

use crate::error::{Error, Result};
use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// What helps where there is no process, thread or memory left.
pub(crate) const LIMITS: &str =
    "free memory, or raise the limit that is reached: `ulimit -u`, `ulimit -v`, `pids.max` of the control group";

/// Begins one of a scope. Where that fails, the caller tells those that it has begun to end before it returns: the scope waits for
/// them.
///
/// # Errors
/// The system's: its limit of processes or of memory is reached.
pub(crate) fn begin<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).map_err(|e| none_left(&e))
}

/// Begins one that nobody needs to wait for.
///
/// # Errors
/// The system's.
pub(crate) fn begin_apart<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(work).map_err(|e| none_left(&e))
}

fn none_left(e: &io::Error) -> Error {
    Error::host(format!("cannot start a thread: {e}")).hint(LIMITS)
}

//! Starts threads in a way that does not panic when the system has none left: a panic would leave the others waiting,
//! and with them the stack and the server up.

use crate::error::{Error, Result};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Hint for a lack of processes, threads or memory.
pub(crate) const LIMITS: &str =
    "free memory, or raise the limit that is reached: `ulimit -u`, `ulimit -v`, `pids.max` of the control group";

/// Starts a scoped thread. On failure the caller must tell the threads it has started to end before it returns: the
/// scope waits for them.
///
/// # Errors
/// The system's error: its limit of processes or memory is reached.
pub(crate) fn begin<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).map_err(|e| none_left(&e))
}

/// Starts a thread that nobody waits for.
///
/// # Errors
/// The system's error.
pub(crate) fn begin_apart<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(work).map_err(|e| none_left(&e))
}

/// What `of` guards, also after a thread that held it has panicked.
pub(crate) fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn none_left(e: &io::Error) -> Error {
    Error::host(format!("cannot start a thread: {e}")).hint(LIMITS)
}

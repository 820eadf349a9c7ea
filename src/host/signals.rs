//! Interrupts: the first asks for an orderly end, the second exits at once.

use crate::error::{Context, Error, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Printed at the first interrupt. The carriage return overwrites a progress line.
const ASKED: &[u8] = b"\rinterrupted: cleaning up, complete trials are kept; again to exit immediately\n";
/// Printed at the second.
pub(crate) const LEFT: &[u8] = b"\rexited immediately; run `pgstrata clean` to clean up\n";

/// Flag for a requested stop. Cheap to clone and to check.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for SIGINT, SIGTERM, SIGHUP and SIGQUIT, and answers each on standard error at once. A second one ends
    /// the process with exit code 130; what it had built is in the ledger for `pgstrata clean`.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub(crate) fn listen() -> Result<Interrupt> {
        Interrupt::listen_saying(ASKED, LEFT)
    }

    /// Same, with other messages. A file that exceeds its size limit (SIGXFSZ) makes the write fail instead of ending
    /// the process.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    #[expect(unsafe_code, reason = "a signal handler that speaks")]
    pub(crate) fn listen_saying(asked: &'static [u8], left: &'static [u8]) -> Result<Interrupt> {
        let unheard = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGXFSZ, unheard).or_host(|| "listen for signals".to_owned())?;
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            let flag = Arc::clone(&flag);
            let answer = move || {
                let again = flag.swap(true, Ordering::SeqCst);
                // SAFETY: file descriptor 2 is never closed by this program; writing to a closed one only fails.
                let stderr = unsafe { BorrowedFd::borrow_raw(2) };
                // If nobody reads standard error any more, there is nobody to tell.
                rustix::io::write(stderr, if again { left } else { asked }).ok();
                if again {
                    signal_hook::low_level::exit(130);
                }
            };
            // SAFETY: the handler swaps an atomic, calls write(2) without libc (errno stays) and _exit(2): all of them
            // async-signal-safe, signal-safety(7).
            unsafe { signal_hook::low_level::register(signal, answer) }.or_host(|| "listen for signals".to_owned())?;
        }
        Ok(Interrupt(flag))
    }

    /// An interrupt that only [`Interrupt::raise`] sets: for tests.
    pub fn never() -> Interrupt {
        Interrupt::default()
    }

    #[cfg(test)]
    pub(crate) fn raise(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// # Errors
    /// [`crate::error::Kind::Interrupted`] when somebody asked to stop.
    pub fn check(&self) -> Result<()> {
        if self.is_raised() { Err(Error::interrupted()) } else { Ok(()) }
    }
}

//! Interrupts: the first asks for an orderly end, the second leaves at once.

use crate::error::{Context, Error, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody asked to stop. Cheap to clone and to ask.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for SIGINT, SIGTERM and SIGHUP. A second one ends the process at once with exit code 130; what it had
    /// built is then in the ledger for `pgstrata clean`.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn listen() -> Result<Interrupt> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Order matters: the exit looks at the flag before the second line sets it.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))
                .or_host(|| "listen for signals".to_owned())?;
            signal_hook::flag::register(signal, Arc::clone(&flag)).or_host(|| "listen for signals".to_owned())?;
        }
        Ok(Interrupt(flag))
    }

    /// An interrupt that nothing but [`Interrupt::raise`] sets: for tests.
    #[must_use]
    pub fn never() -> Interrupt {
        Interrupt::default()
    }

    /// Asks to stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether somebody asked to stop.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// # Errors
    /// [`crate::error::Kind::Interrupted`] when somebody asked to stop.
    pub fn check(&self) -> Result<()> {
        if self.is_raised() { Err(Error::interrupted()) } else { Ok(()) }
    }
}

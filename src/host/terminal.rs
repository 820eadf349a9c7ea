//! The terminal that is written to.

use std::io::{IsTerminal, Stdout};

/// How wide what is printed may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// Of a terminal; `None` where it does not tell.
    OfTerminal(Option<u16>),
    /// It is none.
    NoTerminal,
}

/// The columns of standard output.
#[must_use]
pub fn columns(stdout: &Stdout) -> Columns {
    if !stdout.is_terminal() {
        return Columns::NoTerminal;
    }
    let size = rustix::termios::tcgetwinsize(stdout).ok();
    Columns::OfTerminal(size.map(|size| size.ws_col).filter(|columns| *columns > 0))
}

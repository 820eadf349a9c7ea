//! The terminal that is written to.

use crate::error::{Context, Result};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
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
pub fn columns(stdout: &Stdout) -> Columns {
    if !stdout.is_terminal() {
        return Columns::NoTerminal;
    }
    let size = rustix::termios::tcgetwinsize(stdout).ok();
    Columns::OfTerminal(size.map(|size| size.ws_col).filter(|columns| *columns > 0))
}

/// Columns and rows of the terminal of standard input; 80 and 24 where it does not tell.
pub(crate) fn size() -> (u16, u16) {
    let size = rustix::termios::tcgetwinsize(std::io::stdin()).ok();
    size.filter(|size| size.ws_col > 0 && size.ws_row > 0).map_or((80, 24), |size| (size.ws_col, size.ws_row))
}

/// The terminal of standard input, handing on every key as it is typed until this value is dropped.
#[derive(Debug)]
pub(crate) struct RawTerminal(Termios);

impl RawTerminal {
    /// # Errors
    /// When standard input is no terminal.
    pub(crate) fn enter() -> Result<RawTerminal> {
        let doing = || "set up the terminal".to_owned();
        let before = tcgetattr(std::io::stdin()).or_host(doing)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).or_host(doing)?;
        Ok(RawTerminal(before))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing put back.
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0).ok();
    }
}

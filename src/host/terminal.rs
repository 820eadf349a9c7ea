//! The terminal.

use crate::error::{Context, Result};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{IsTerminal, Stdout};

/// Width available for output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// Width of the terminal; `None` if it does not report it.
    OfTerminal(Option<u16>),
    /// Standard output is not a terminal.
    NoTerminal,
}

pub fn columns(stdout: &Stdout) -> Columns {
    if !stdout.is_terminal() {
        return Columns::NoTerminal;
    }
    let size = rustix::termios::tcgetwinsize(stdout).ok();
    Columns::OfTerminal(size.map(|size| size.ws_col).filter(|columns| *columns > 0))
}

/// Columns and rows of the terminal on standard input; 80 and 24 if it does not report them.
pub(crate) fn size() -> (u16, u16) {
    let size = rustix::termios::tcgetwinsize(std::io::stdin()).ok();
    size.filter(|size| size.ws_col > 0 && size.ws_row > 0).map_or((80, 24), |size| (size.ws_col, size.ws_row))
}

/// The terminal on standard input in raw mode, which passes on every key as typed, until dropped.
#[derive(Debug)]
pub(crate) struct RawTerminal(Termios);

impl RawTerminal {
    /// # Errors
    /// If standard input is not a terminal.
    pub(crate) fn enter() -> Result<RawTerminal> {
        let entered = tcgetattr(std::io::stdin()).and_then(|before| {
            let mut raw = before.clone();
            raw.make_raw();
            tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).map(|()| RawTerminal(before))
        });
        entered.or_host(|| "set up the terminal".to_owned())
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to restore.
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0).ok();
    }
}

//! Probes that measure how fast memory is want the machine for themselves: all others wait for them to end.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, PoisonError};

/// How many probes run, and whether one of them has the machine for itself.
static NOW: Mutex<(usize, bool)> = Mutex::new((0, false));
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// Whether this thread has the machine.
    static HAS_ALL: Cell<bool> = const { Cell::new(false) };
}

/// A probe's place among others. A test may hold several at once.
pub struct Turn {
    alone: bool,
}

impl Turn {
    /// Waits while a probe of another thread runs alone.
    pub fn shared() -> Turn {
        let mut now = NOW.lock().unwrap_or_else(PoisonError::into_inner);
        while now.1 && !HAS_ALL.get() {
            now = CHANGED.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        now.0 += 1;
        Turn { alone: false }
    }

    /// Waits until no probe runs; those of this thread only, from then on.
    pub fn alone() -> Turn {
        let mut now = NOW.lock().unwrap_or_else(PoisonError::into_inner);
        while now.0 > 0 || now.1 {
            now = CHANGED.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        now.1 = true;
        HAS_ALL.set(true);
        Turn { alone: true }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut now = NOW.lock().unwrap_or_else(PoisonError::into_inner);
        match self.alone {
            true => {
                now.1 = false;
                HAS_ALL.set(false);
            }
            false => now.0 -= 1,
        }
        CHANGED.notify_all();
    }
}

//! A client that commits continually, to see an outage as a user does.

use crate::cluster::client::Client;
use crate::cluster::server::Server;
use crate::error::Result;
use crate::host::time::{Instant, micros, now, sleep, wall_us};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Pause between two commits while the server answers, and between two attempts while it does not.
const PAUSE: Duration = Duration::from_millis(2);

/// Beyond this an answer is of no interest; the client tries again.
const ANSWER_LIMIT: Duration = Duration::from_secs(600);

/// A transaction that writes to the WAL only, so that its commit waits for storage.
const COMMIT: &str = "SELECT pg_logical_emit_message(true, 'pgstrata', '')";

/// A clock comparable with timestamps in the server's log: wall clock, without its steps.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall_us: u64,
    began: Instant,
}

impl Clock {
    pub fn begin() -> Clock {
        Clock { wall_us: wall_us(), began: now() }
    }

    pub fn us(self) -> u64 {
        self.at(now())
    }

    /// A moment, possibly before the clock began, in microseconds since 1970. Preserves order.
    pub fn at(self, moment: Instant) -> u64 {
        match self.began.checked_duration_since(moment) {
            Some(before) => self.wall_us.saturating_sub(micros(before)),
            None => self.wall_us + micros(moment.duration_since(self.began)),
        }
    }
}

/// Commits until `stop` is set, and sends the time of each answer.
pub fn watch(server: &Server, clock: Clock, answers: &Sender<u64>, stop: &AtomicBool) {
    let mut session: Option<Client> = None;
    while !stop.load(Ordering::SeqCst) {
        // Refusals are normal during an outage; the next attempt reconnects.
        if commit(&mut session, server).is_ok() {
            // The receiver is dropped only when the outage has already failed.
            answers.send(clock.us()).ok();
        } else {
            session = None;
        }
        sleep(PAUSE);
    }
}

fn commit(session: &mut Option<Client>, server: &Server) -> Result<()> {
    let client = match session {
        Some(client) => client,
        None => session.insert(server.connect_with_limit(ANSWER_LIMIT)?),
    };
    client.query(COMMIT).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_the_clock_start_keep_their_microsecond_order() {
        let earlier = now();
        let clock = Clock::begin();
        let mut last_us = 0;
        for nanos in (0..20_000).step_by(50) {
            let at_us = clock.at(earlier + Duration::from_nanos(nanos));
            assert!(at_us >= last_us, "{nanos}: {at_us} {last_us}");
            last_us = at_us;
        }
        let length_us = micros(clock.began.duration_since(earlier));
        assert_eq!(clock.at(earlier), clock.wall_us - length_us);
        assert_eq!(clock.at(clock.began + Duration::from_millis(3)), clock.wall_us + 3_000);
    }
}

//! Ends the program when a variant keeps it busy for long, and says which.

use pgstrata::host::time::sleep;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Looks at what is being tried.
pub struct Watchdog(Arc<Mutex<(u64, String, Vec<u8>)>>);

impl Watchdog {
    /// Begins to look.
    pub fn start() -> Watchdog {
        /// Nothing takes a hundredth of this, not even on a busy machine.
        const PATIENCE: Duration = Duration::from_secs(120);
        let now = Arc::new(Mutex::new((0, String::new(), Vec::new())));
        let seen = Arc::clone(&now);
        std::thread::spawn(move || {
            let mut last = 0;
            loop {
                sleep(PATIENCE);
                let (count, name, variant) = seen.lock().unwrap().clone();
                if count == last && count > 0 {
                    println!("{name}: it hangs\n  {}", super::keep("hang", count, &variant));
                    std::process::exit(1);
                }
                last = count;
            }
        });
        Watchdog(now)
    }

    /// What is tried next.
    pub fn begins(&self, name: &str, seed: u64, variant: &[u8]) {
        let mut now = self.0.lock().unwrap();
        now.0 += 1;
        now.1 = format!("{name}, seed {seed}");
        now.2.clear();
        now.2.extend_from_slice(variant);
    }
}

//! Claims of a node about flushes and caches.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Statement of a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// Keeps written data in memory only.
    Volatile,
    /// Acknowledges a sync without flushing or writing the data to the device.
    HoldsFlushesBack,
    /// Acknowledges a commit before requesting the sync, which follows within a known time.
    AcknowledgesEarly,
    /// Writes pages without a copy from which a page torn by a power cut could be repaired.
    MayTear,
    /// Declares acknowledged data stable, so that the kernel sends it no flushes.
    DeclaredStable,
    /// Passes flushes on without counting them.
    FlushesUncounted,
    /// Its lower layers cannot be seen from here.
    HiddenBelow,
    /// Keeps no journal: a power cut may cost the filesystem itself.
    Unjournaled,
}

/// A claim with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// The claim.
    pub claim: Claim,
    /// Evidence and where it was read, for the report: `mount option barrier=0`.
    pub source: String,
    /// Reason that the evidence implies the claim: `the filesystem sends no flushes`. Empty if the source states it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Promise {
    /// A promise whose source needs no explanation.
    pub fn new(claim: Claim, source: impl Into<String>) -> Promise {
        Promise { claim, source: source.into(), why: String::new() }
    }
}

impl fmt::Display for Promise {
    /// `mount option barrier=0: the filesystem sends no flushes`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if self.why.is_empty() { Ok(()) } else { write!(f, ": {}", self.why) }
    }
}

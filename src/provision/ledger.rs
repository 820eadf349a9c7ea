//! The ledger: everything that a run makes on the machine, written down before it is made.
//!
//! One file a run, `<ledger folder>/<run id>.jsonl`, append-only, each line synced before the deed. A line is either
//! `{"made": N, "thing": {...}}` or `{"undone": N}`. Whoever holds the file's lock (flock) owns the run; `clean` takes
//! only ledgers that nobody holds. A last line that is cut off was never followed by its deed and is ignored.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One thing that a run makes: enough to find it again, to be sure that it is ours, and to undo it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thing {
    /// Who knows how to undo it: a layer's name, `folder`, `server`, `processes`.
    pub owner: String,
    /// What it is: `image`, `loop`, `mount`, `folder`, ...
    pub kind: String,
    /// How to find it and know it: `path`, `device`, `target`, ...
    pub marks: BTreeMap<String, String>,
}

/// The ledger of one run, open and locked.
#[derive(Debug)]
pub struct Ledger {}

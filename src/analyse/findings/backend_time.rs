//! What the clients' backends of a case waited for.

use crate::analyse::findings::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// Where the clients' backends spent their time, and how busy the CPUs were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackendTime {
    /// For example "39 % of backend time waits for storage (36 to 42)".
    pub sentence: String,
    /// Share of backend time spent waiting for storage, 0 to 1, including waits for locks whose holder waited for
    /// storage; `None` if no waits were sampled.
    pub storage: Option<Estimate>,
    /// True if the share excludes time waiting for the client: at a fixed rate these waits are pauses.
    pub without_client: bool,
    /// Portion of `storage` that is lock waits.
    pub storage_behind_locks: f64,
    /// The same settings on a stack in memory, if the run measured that.
    pub in_memory: Option<InMemory>,
    /// Share of backend samples by class and event, largest first.
    pub waits: Vec<WaitShare>,
    /// CPU use during the measurement, 0 to 1 of all CPUs, excluding time taken by the hypervisor; `None` if unknown.
    pub cpu_busy: Option<f64>,
    /// The same for the busiest CPU of each second.
    pub fullest_cpu: Option<f64>,
    /// Share of the time in which some task on the machine waited for a CPU (PSI), 0 to 1.
    pub cpu_pressure: Option<f64>,
    /// Process or kernel thread that used the most CPU, with its share of one CPU.
    pub busiest_process: Option<(String, f64)>,
}

/// A case on a stack in memory that otherwise equals another case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InMemory {
    pub case: String,
    pub stack: String,
    /// Its rate over that of the other case.
    pub ratio: Estimate,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitShare {
    /// `IO`, `LWLock`, `Lock`, `CPU`, `Client`, ...
    pub class: String,
    /// `WALSync`, ...
    pub event: String,
    /// Share of the backend samples, 0 to 1.
    pub share: f64,
}

//! What the clients' backends of a case waited for.

use crate::analyse::findings::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// Where the time of the clients' backends went, and what the CPUs did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackendTime {
    /// The sentence: "39 % of backend time waits for storage (36 to 42)".
    pub sentence: String,
    /// Share of backend time that waited for storage, 0 to 1, waits for locks whose holder waited for storage included;
    /// `None` where no waits were sampled.
    pub storage: Option<Estimate>,
    /// Whether that is a share of the time outside of waits for the client: at a fixed rate these are pauses.
    pub without_client: bool,
    /// Part of that which are waits for locks.
    pub storage_behind_locks: f64,
    /// The same settings on a stack in memory, where the run measured that.
    pub in_memory: Option<InMemory>,
    /// Share of backend samples by class and event, largest first.
    pub waits: Vec<WaitShare>,
    /// CPU in use over the measurement, 0 to 1 of all CPUs, without what a hypervisor took; `None` where unknown.
    pub cpu_busy: Option<f64>,
    /// The same of the CPU that was the busiest in each second.
    pub fullest_cpu: Option<f64>,
    /// Share of the time in which some task of the machine waited for a CPU (PSI), 0 to 1.
    pub cpu_pressure: Option<f64>,
    /// The process or kernel thread that used most CPU, with its share of one CPU.
    pub busiest_process: Option<(String, f64)>,
}

/// A case on a stack in memory that differs from another one in its stack alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InMemory {
    pub case: String,
    /// Name of its stack.
    pub stack: String,
    /// Its rate over that of the other case.
    pub ratio: Estimate,
}

/// Share of one wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitShare {
    /// `IO`, `LWLock`, `Lock`, `CPU`, `Client`, ...
    pub class: String,
    /// `WALSync`, ...
    pub event: String,
    /// 0 to 1 of the backend samples.
    pub share: f64,
}

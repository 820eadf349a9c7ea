//! Durability of a case's commits: classes, and the class that follows from a promise alone.

use crate::record::claim::{Claim, Promise};
use serde::{Deserialize, Serialize};

/// What a power cut costs a commit, as far as facts that were read back can show; ordered from known to be safe, over
/// possibly safe, to known not to be. Shown in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DurabilityClass {
    /// The workload only reads: it has no commits to lose.
    NotApplicable,
    /// Flushes or FUA writes of the commits pass every visible level.
    Flushed,
    /// The lowest device declares that it needs no flushes; there is no other evidence.
    DeclaredStable,
    /// The facts do not decide.
    Unknown,
    /// Commits are acknowledged before they are written (synchronous_commit=off): bounded loss.
    Delayed,
    /// A page torn by a power cut cannot be repaired (full_page_writes=off).
    MayTear,
    /// Nothing survives, or nothing is flushed: tmpfs, ramfs, fsync=off, nobarrier.
    Volatile,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Durability {
    pub class: DurabilityClass,
    /// Includes the fact: "mount option barrier=0", "0.98 flushes per commit seen on vda".
    pub reason: String,
    /// For *may tear*: the class with full-page writes on. Cases are ranked together only if both classes match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<DurabilityClass>,
    /// What hides the storage below the visible devices: "vda is a virtual disk: nothing below it is visible".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sight_ends: Vec<String>,
}

impl Durability {
    pub fn of(class: DurabilityClass, reason: impl Into<String>) -> Durability {
        Durability { class, reason: reason.into(), otherwise: None, sight_ends: Vec::new() }
    }
}

/// Class of a commit for which a layer makes this claim, regardless of counts; `None` if the claim is reported but does
/// not affect the class.
pub fn class(claim: Claim) -> Option<DurabilityClass> {
    match claim {
        Claim::Volatile | Claim::HoldsFlushesBack => Some(DurabilityClass::Volatile),
        Claim::AcknowledgesEarly => Some(DurabilityClass::Delayed),
        Claim::MayTear => Some(DurabilityClass::MayTear),
        Claim::DeclaredStable => Some(DurabilityClass::DeclaredStable),
        Claim::FlushesUncounted | Claim::HiddenBelow => Some(DurabilityClass::Unknown),
        Claim::Unjournaled => None,
    }
}

/// Durability that follows from a promise alone.
pub fn by_promise(promise: &Promise) -> Durability {
    Durability::of(class(promise.claim).unwrap_or(DurabilityClass::Unknown), promise.to_string())
}

/// Applies to every lowest device that is a software device, in runs and probes alike.
pub(crate) fn virtual_disk(name: &str) -> String {
    format!("{name} is a virtual disk: nothing below it is visible")
}

pub(crate) fn unknown(reason: &str) -> Durability {
    Durability::of(DurabilityClass::Unknown, reason)
}

/// Display name of a class.
pub fn class_word(class: DurabilityClass) -> String {
    super::names::stored(&class).replace('_', " ")
}

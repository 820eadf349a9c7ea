//! What commits of a case survive: classes, and what follows from a promise alone.

use crate::record::claim::{Claim, Promise};
use serde::{Deserialize, Serialize};

/// What a commit costs a case when the power goes, as far as facts read back can tell; ordered from what is known to be
/// safe over what may be to what is known not to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DurabilityClass {
    /// The workload only reads: no commit of its own could be lost.
    NotApplicable,
    /// Flushes, or FUA writes, of the commits pass every level that can be seen.
    Flushed,
    /// The lowest device declares that it needs no flushes; its word is all there is.
    DeclaredStable,
    /// The facts don't tell.
    Unknown,
    /// Commits are acknowledged before they are written (synchronous_commit=off): a known window of loss.
    Delayed,
    /// A page torn by a power cut cannot be repaired (full_page_writes=off).
    MayTear,
    /// Nothing survives, or nothing is forced out: tmpfs, ramfs, fsync=off, nobarrier.
    Volatile,
}

impl DurabilityClass {
    /// All of them, in the order in which they are shown.
    pub const ALL: [DurabilityClass; 7] = [
        DurabilityClass::NotApplicable,
        DurabilityClass::Flushed,
        DurabilityClass::DeclaredStable,
        DurabilityClass::Unknown,
        DurabilityClass::Delayed,
        DurabilityClass::MayTear,
        DurabilityClass::Volatile,
    ];
}

/// A class and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Durability {
    pub class: DurabilityClass,
    /// Why, with the fact: "mount option barrier=0", "0.98 flushes per commit seen on vda".
    pub reason: String,
    /// Of *may tear*: the class that it would have with full pages. Cases are ranked only with their like in both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<DurabilityClass>,
    /// What hides the storage below the devices that can be seen: "vda is a virtual disk: nothing below it is visible".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sight_ends: Vec<String>,
}

impl Durability {
    #[must_use]
    pub fn of(class: DurabilityClass, reason: impl Into<String>) -> Durability {
        Durability { class, reason: reason.into(), otherwise: None, sight_ends: Vec::new() }
    }
}

/// The class of a commit that somebody on its way claims this of, whatever was counted; `None` where the claim is said,
/// but changes no class.
#[must_use]
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

/// What follows from a promise alone.
#[must_use]
pub fn by_promise(promise: &Promise) -> Durability {
    Durability::of(class(promise.claim).unwrap_or(DurabilityClass::Unknown), promise.to_string())
}

/// What holds for every lowest device that is one of software, in runs and probes alike.
#[must_use]
pub(crate) fn virtual_disk(name: &str) -> String {
    format!("{name} is a virtual disk: nothing below it is visible")
}

pub(crate) fn unknown(reason: &str) -> Durability {
    Durability::of(DurabilityClass::Unknown, reason)
}

/// What a class is called.
#[must_use]
pub fn class_word(class: DurabilityClass) -> &'static str {
    match class {
        DurabilityClass::NotApplicable => "not applicable",
        DurabilityClass::Flushed => "flushed",
        DurabilityClass::DeclaredStable => "declared stable",
        DurabilityClass::MayTear => "may tear",
        DurabilityClass::Delayed => "delayed",
        DurabilityClass::Volatile => "volatile",
        DurabilityClass::Unknown => "unknown",
    }
}

//! Files of module parameters: which of those named in a ledger root may write to.

use super::{Drags, Knob, knob};

/// The modules of ZFS, including those of versions before 2.2.
pub(crate) const MODULES: [&str; 4] = ["zfs", "spl", "icp", "zcommon"];

/// Stands for every parameter; the file is only in the ledger.
pub(crate) static PARAMETER: Knob = knob("module parameter", "", Drags::Nothing);

pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// True if a path is the parameter file of one of these modules: a ledger must not make root write elsewhere.
pub(crate) fn is_parameter(path: &str) -> bool {
    MODULES.iter().any(|module| path.strip_prefix(&folder(module)).is_some_and(is_name))
}

pub(crate) fn folder(module: &str) -> String {
    format!("/sys/module/{module}/parameters/")
}

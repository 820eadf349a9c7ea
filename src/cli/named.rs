//! Shipped plans by their names, where `plan` and `run` take a file or a name.

use super::out;
use crate::error::{Error, Result};
use crate::plan::shipped::{self, Shipped};
use crate::plan::{self, Plan, did_you_mean};
use std::path::Path;

/// Parses the shipped plan of this name, if there is one and no file has that name.
///
/// # Errors
/// As for a plan file.
pub(super) fn named(name: &Path) -> Result<Option<Plan>> {
    // A folder of that name, such as one with the plan's results, is not a plan.
    let found = name.to_str().filter(|_| !name.exists() || name.is_dir()).and_then(shipped::find);
    found.map(|found| parsed(&found)).transpose()
}

/// Adds a hint about shipped plans if an unreadable path may be meant as the name of one.
pub(super) fn hinted(error: Error, name: &Path) -> Error {
    let bare = name.to_str().filter(|text| !text.contains(['/', '.']) && !name.exists());
    match bare {
        Some(text) => error.hint(format!("no shipped plan has that name either: {}", meant(text))),
        None => error,
    }
}

pub(super) fn parsed(shipped: &Shipped) -> Result<Plan> {
    plan::parse(shipped.text, shipped.name, &super::catalogue())
}

pub(super) fn unknown(name: &str) -> Error {
    Error::user(format!("no shipped plan is named `{}`", out::harmless(name))).hint(meant(name))
}

fn meant(name: &str) -> String {
    let known: Vec<&str> = shipped::all().map(|plan| plan.name).collect();
    did_you_mean(name, known.iter().copied()).unwrap_or_else(|| format!("there are {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_plan_where_no_file_has_it() {
        assert_eq!(named(Path::new("filesystem-matrix")).unwrap().unwrap().name, "filesystem-matrix");
        assert!(named(Path::new("/filesystem-matrix")).unwrap().is_none());
        let folder = tempfile::tempdir().unwrap();
        assert!(named(&folder.path().join("filesystem-matrix")).unwrap().is_none());
        assert_eq!(unknown("filesystem-matrx").hint_text(), Some("did you mean `filesystem-matrix`?"));
    }
}

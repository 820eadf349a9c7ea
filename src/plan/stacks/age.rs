//! The key `age` of a stack: how it is aged before it is measured.

use super::FOLDER;
use crate::plan::limits::Key;
use crate::plan::options::{Axis, Entered, options, read_options};
use crate::plan::problem::{Problem, Problems};
use crate::plan::tree::{Pair, get};
use crate::plan::values::Choice;
use crate::plan::{Catalogue, CatalogueEntry};
use crate::record::options::Options;
use std::path::Path;

pub(in super::super) const AGE: &str = "age";

/// Keys that conflict with `age`, and the remedy.
const CLASHES: [(&str, &str); 3] = [
    ("reuse", "each trial ages a stack of its own: remove `reuse`"),
    ("tablespace", "files in tablespaces are not aged: remove `tablespace`"),
    ("directory", "an existing folder cannot be made fresh: use a device and a filesystem"),
];

#[derive(Clone)]
pub(super) struct AgeDraft<'c> {
    entry: &'c CatalogueEntry,
    pub axes: Vec<Axis>,
}

impl AgeDraft<'_> {
    /// The options for one choice per axis of a stack; the axes of `age` come last.
    pub fn options(&self, chosen: &[&Choice]) -> Options {
        let own = chosen.get(chosen.len().saturating_sub(self.axes.len())..).unwrap_or_default();
        options(self.entry, Path::new(FOLDER), &self.axes, own)
    }

    /// Drops these options.
    pub fn drop(&mut self, keys: &[&str]) {
        self.axes.retain(|axis| !keys.contains(&axis.option.0.as_str()));
    }
}

/// Reads the key; `None` if there is none or it has mistakes.
pub(super) fn read<'c>(
    stack: &Key,
    pairs: &[Pair],
    catalogue: &'c Catalogue,
    problems: &mut Problems,
) -> Option<AgeDraft<'c>> {
    let (key, node) = get(pairs, AGE)?;
    let entry = catalogue.age.as_ref()?;
    let what = format!("`{AGE}` of stack `{}`", stack.text);
    let written = node.table(&what, "write age = { rewrite = [0, 1, 3, 10] }", problems)?;
    for (other, help) in CLASHES {
        if let Some((clash, _)) = get(pairs, other) {
            let message = format!("stack `{}` has both `{AGE}` and `{other}`", stack.text);
            problems.add(Problem::at(&key.span, message).also(&clash.span, "and this").help(help));
        }
    }
    let (place, pairs) = (key.span.clone(), written.iter().collect());
    let entered = Entered { entry, what, prefix: Some(AGE), place, main: None, pairs, folder: Path::new(FOLDER) };
    Some(AgeDraft { entry, axes: read_options(&entered, problems)? })
}

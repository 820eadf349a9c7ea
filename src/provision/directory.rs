//! `directory`: uses the machine's existing storage; formats nothing and needs no root. Works in a private folder in
//! it.

use super::ledger::Thing;
use super::{Base, Built, Layer, LayerInfo, LayerInput, Site, Unmet, folder};
use crate::error::{Error, Result};
use crate::host::{Host, files, paths};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::units::Bytes;
use std::path::Path;

pub struct Directory;

const INFO: LayerInfo = LayerInfo::folder(
    "directory",
    "A folder on an existing filesystem; nothing is formatted, no root needed.",
    &[OptionSpec::required("directory", OptionKind::Path)
        .doc("Existing folder; the data go into a private subfolder.")],
);

impl Layer for Directory {
    fn info(&self) -> &LayerInfo {
        &INFO
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        let path = Path::new(options.text("directory").unwrap_or_default());
        if path.is_absolute() && path.components().all(|part| part.as_os_str() != "..") {
            Ok(())
        } else {
            Err(OptionProblem::at("directory", format!("`{}` is not an absolute path without `..`", path.display())))
        }
    }

    fn unmet(&self, _host: &Host, options: &Options) -> Vec<Unmet> {
        let Some(path) = options.text("directory").map(Path::new) else { return Vec::new() };
        let unmet = |what: String, hint: String| vec![Unmet { what, hint }];
        if !paths::is_folder(path) {
            return unmet(format!("the folder {}", path.display()), format!("mkdir -p {}", path.display()));
        }
        match files::may_write_in(path) {
            Ok(()) => Vec::new(),
            Err(e) => unmet(
                format!("permission to write in {}: {e}", path.display()),
                "choose a folder that you own, or change its owner".to_owned(),
            ),
        }
    }

    fn capacity(&self, options: &Options, _data: &[Bytes]) -> Option<Bytes> {
        options.text("directory").and_then(|path| files::free_bytes(Path::new(path)).ok()).map(Bytes)
    }

    fn build(&self, site: &Site<'_>, _inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let place = options.text("directory").ok_or_else(|| Error::bug("a directory stack without a directory"))?;
        let path = paths::resolve(Path::new(place))?.join(&site.name);
        folder::make(site.ledger, self.name(), &path)?;
        let details = [("folder", path.display().to_string())];
        Ok(Built::one(Base::Folder(path), details))
    }

    fn undo(&self, host: &Host, thing: &Thing) -> Result<()> {
        folder::undo(host, thing)
    }
}

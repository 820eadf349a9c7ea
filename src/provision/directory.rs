//! `directory`: uses the machine's existing storage; formats nothing and needs no root. Works in a private folder in
//! it.

use super::{Base, Built, Layer, LayerInfo, LayerInput, Site, Unmet, folder};
use crate::error::{Error, Result};
use crate::host::{Host, files, paths};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::units::Bytes;
use std::path::Path;

pub struct Directory;

pub(super) const INFO: LayerInfo = LayerInfo::folder(
    "directory",
    "A folder on an existing filesystem; nothing is formatted, no root needed.",
    &[OptionSpec::required("directory", OptionKind::Path)
        .doc("Existing folder; the data go into a private subfolder.")],
)
.undone_by(&[("folder", folder::undo)]);

impl Layer for Directory {
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
        let path_shown = path.display();
        let (what, hint) = match files::may_write_in(path) {
            _ if paths::is_disk(path) => (
                format!("a folder: {path_shown} is a disk"),
                "to use it up: device = { disk = \"/dev/disk/by-id/...\", serial = \"...\" }".to_owned(),
            ),
            _ if paths::is_file(path) => (format!("a folder: {path_shown} is a file"), "name a folder".to_owned()),
            _ if !paths::is_folder(path) => {
                (format!("the folder {path_shown}"), format!("is its filesystem mounted? If so: mkdir -p {path_shown}"))
            }
            _ if paths::is_file(&path.join("PG_VERSION")) => (
                format!("a folder of its own: {path_shown} is a server's data directory"),
                "name a folder beside it".to_owned(),
            ),
            Ok(()) if files::free_bytes(path).is_ok_and(|free| free == 0) => {
                (format!("free space in {path_shown}"), "choose a folder on a filesystem that has some".to_owned())
            }
            Ok(()) => return Vec::new(),
            Err(e) => (
                format!("permission to write in {path_shown}: {e}"),
                "choose a folder that you own, or change its owner".to_owned(),
            ),
        };
        vec![Unmet { what, hint }]
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::options::OptionValue;

    #[test]
    fn a_server_s_data_directory_is_no_folder_for_a_stack() {
        let folder = tempfile::tempdir().unwrap();
        let lacks = |path: &Path| {
            let mut options = Options::default();
            options.set("directory", OptionValue::Text(path.display().to_string()));
            Directory.unmet(&Host::this(), &options).first().map(|unmet| unmet.what.clone())
        };
        assert_eq!(lacks(folder.path()), None);
        std::fs::write(folder.path().join("PG_VERSION"), "18\n").unwrap();
        assert!(lacks(folder.path()).unwrap().contains("is a server's data directory"));
        assert!(lacks(&folder.path().join("missing")).unwrap().starts_with("the folder "));
    }
}

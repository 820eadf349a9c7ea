//! Input files of `import`: named files, those of a folder, standard input.

use crate::cli::out;
use crate::error::{Context, Error, Result};
use crate::foreign::manifest::{self, Manifest};
use crate::host::files as on_disk;
use crate::store::folder::RunFolder;
use crate::store::import::ImportFolder;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    /// Display name: as given, or below the folder as given; `-` for standard input.
    pub(super) name: String,
    /// Path below the given folder; file name for a single file.
    pub(super) in_folder: String,
    /// Path; `None` for standard input.
    path: Option<PathBuf>,
    /// True if it was found in a folder, not named.
    pub(super) found: bool,
}

impl Given {
    fn of(path: &Path, given: &Path, found: bool) -> Given {
        let below = path.strip_prefix(given).ok().filter(|_| found).unwrap_or(path);
        let in_folder = below.to_string_lossy().into_owned();
        Given { name: path.to_string_lossy().into_owned(), in_folder, path: Some(path.to_owned()), found }
    }

    ///
    /// # Errors
    /// With its name.
    pub(super) fn open(&self) -> Result<Box<dyn Read>> {
        match &self.path {
            None => Ok(Box::new(std::io::stdin().lock())),
            Some(path) => Ok(Box::new(on_disk::open_given(path, &self.name)?)),
        }
    }
}

/// Maximum depth of folders, and maximum number of files.
const DEEPEST: usize = 32;
const MOST_FILES: usize = 10_000;

/// All files that these arguments name, in order; those of a folder by name. In folders, hidden and irregular files are
/// left out, and no link is followed.
///
/// # Errors
/// If a file is absent or named twice, standard input is named twice, or a folder holds none or too many.
pub(super) fn given(args: &[PathBuf]) -> Result<Vec<Given>> {
    let mut all = Vec::new();
    for path in args {
        if path.as_os_str() == "-" {
            all.push(Given { name: "-".to_owned(), in_folder: "-".to_owned(), path: None, found: false });
            continue;
        }
        let facts = fs::metadata(path).or_user(|| format!("find {}", path.display()))?;
        if facts.is_dir() {
            let before = all.len();
            walk(path, path, DEEPEST, &mut all)?;
            if all.len() == before {
                return Err(Error::user(format!("{} contains no files", path.display())));
            }
        } else {
            all.push(Given::of(path, path, false));
        }
    }
    if all.iter().filter(|given| given.path.is_none()).count() > 1 {
        return Err(Error::user("standard input is named twice").hint("give - only once"));
    }
    let mut known = BTreeSet::new();
    for file in &all {
        let whole = file.path.as_ref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
        // Compared by components, so that `./x` equals `x`.
        if !known.insert(whole.map(|path| path.components().collect::<PathBuf>())) {
            return Err(Error::user(format!("{} is given twice", file.name)).hint("give each file only once"));
        }
    }
    Ok(all)
}

/// The files named by the manifest of a folder, if it has one; else all of them.
///
/// # Errors
/// If the manifest is wrong, or its folder is not the only argument.
pub(super) fn sorted(given: Vec<Given>, args: &[PathBuf]) -> Result<(Vec<Given>, Option<Manifest>)> {
    let Some(folder) = args.iter().find(|path| path.join(manifest::NAME).is_file()) else { return Ok((given, None)) };
    let path = folder.join(manifest::NAME);
    let shown = path.display().to_string();
    if args.len() > 1 {
        return Err(Error::user(format!("{shown} assigns the files of its folder, so it must be imported alone"))
            .hint(format!("import {} alone", folder.display())));
    }
    let text = fs::read_to_string(&path).or_user(|| format!("read {shown}"))?;
    let there: Vec<String> = given.iter().map(|given| given.in_folder.clone()).collect();
    let manifest = Manifest::parse(&shown, &text, &there)?.of_a_user(&shown)?;
    let files = manifest.files();
    let (named, others): (Vec<Given>, Vec<Given>) =
        given.into_iter().partition(|given| files.contains(given.in_folder.as_str()));
    for other in others.iter().filter(|other| other.in_folder != manifest::NAME) {
        out::remark(&out::harmless(&format!("not named in {shown}, so not read: {}", other.in_folder)));
    }
    // Files named in a manifest must be readable.
    let named = named.into_iter().map(|given| Given { found: false, ..given }).collect();
    Ok((named, Some(manifest)))
}

fn walk(given: &Path, folder: &Path, depth: usize, all: &mut Vec<Given>) -> Result<()> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .and_then(|list| list.map(|entry| entry.map(|entry| entry.path())).collect())
        .or_user(|| format!("list {}", folder.display()))?;
    paths.sort();
    for path in paths {
        let hidden = path.file_name().unwrap_or_default().to_string_lossy().starts_with('.');
        let facts = fs::symlink_metadata(&path).or_user(|| format!("find {}", path.display()))?;
        // Its own imports and runs are no news.
        let is_own = RunFolder::open(&path).is_ok() || ImportFolder::open(&path).is_ok();
        if is_own {
            out::remark(&out::harmless(&format!("passed over: {} is a run or import of pgstrata", path.display())));
        }
        if hidden || is_own {
            continue;
        }
        // Opening an unreadable folder fails too, with the reason for skipping it.
        if facts.is_file() || facts.is_dir() && fs::read_dir(&path).is_err() {
            all.push(Given::of(&path, given, true));
        } else if facts.is_dir() && depth > 0 {
            walk(given, &path, depth - 1, all)?;
        }
        if all.len() > MOST_FILES {
            let what = format!("more than {MOST_FILES} files given");
            return Err(Error::user(what).hint("import its subfolders one at a time"));
        }
    }
    Ok(())
}

/// Default name of an import, from its first file or folder: `pgbench-zfs` for `a/pgbench-zfs.txt.gz`.
pub(super) fn name_of(file: &str) -> String {
    if file == "-" {
        return "stdin".to_owned();
    }
    let file = file.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let stem = file.split('.').next().unwrap_or_default();
    let plain: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).take(60).collect();
    match plain.trim_matches('-') {
        "" => "file".to_owned(),
        plain => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_lists_files_without_hidden_ones_and_links() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("b/.git")).unwrap();
        for name in ["z.txt", "b/a.txt", "b/.git/config", ".hidden"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        std::os::unix::fs::symlink("/", folder.path().join("root")).unwrap();
        let found = given(&[folder.path().to_path_buf()]).unwrap();
        let names: Vec<&Path> =
            found.iter().map(|given| Path::new(&given.name).strip_prefix(folder.path()).unwrap()).collect();
        assert_eq!(names, [Path::new("b/a.txt"), Path::new("z.txt")]);
        assert!(found.iter().all(|given| given.found));
    }

    #[test]
    fn standard_input_is_named_once_and_missing_files_are_errors() {
        assert!(!given(&["-".into()]).unwrap()[0].found);
        assert!(given(&["-".into(), "-".into()]).is_err());
        let manifest = std::path::absolute("Cargo.toml").unwrap();
        assert!(given(&["./Cargo.toml".into(), manifest]).unwrap_err().to_string().contains("given twice"));
        assert!(given(&["/no/such/file".into()]).unwrap_err().to_string().contains("/no/such/file"));
        assert!(
            given(&[tempfile::tempdir().unwrap().path().to_path_buf()]).unwrap_err().to_string().contains("no file")
        );
    }

    #[test]
    fn an_import_is_named_by_its_first_file() {
        for (file, name) in [
            ("a/pgbench-zfs.txt.gz", "pgbench-zfs"),
            ("-", "stdin"),
            ("a/measured/", "measured"),
            ("ä b.txt", "b"),
            (".x", "file"),
        ] {
            assert_eq!(name_of(file), name);
        }
    }
}

//! Arguments of `configure`, and the key: everything that affects the result.

use super::shelf::Shelf;
use super::source::BuildSource;
use crate::error::Result;
use crate::guest::steps::key;
use crate::host::command::Command;
use crate::host::{Host, files};
use crate::record::build::BuildSpec;
use std::path::{Path, PathBuf};

/// Increase when the same inputs produce a different build.
const EDITION: &str = "1";

/// Features that no server under test needs and that would need more packages. The plan's own arguments come later and
/// take precedence.
const WITHOUT: [&str; 3] = ["--without-readline", "--without-icu", "--without-zlib"];

/// Size limit of a patch, bytes.
const MAX_PATCH: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BuildRecipe {
    /// Destination of the build.
    pub(super) place: PathBuf,
    /// Arguments of `configure`, without the prefix.
    pub(super) configure: Vec<String>,
    /// Contents of the patches.
    pub(super) patches: Vec<Vec<u8>>,
    /// First line of `cc --version`, so that builds by different compilers are not compared by accident.
    pub(super) compiler: String,
}

impl BuildRecipe {
    /// # Errors
    /// If the compiler does not run, or a patch cannot be read.
    pub(super) fn of(host: &Host, shelf: &Shelf, spec: &BuildSpec, source: &BuildSource) -> Result<BuildRecipe> {
        let version = host.run(&Command::new("cc").arg("--version"))?.stdout;
        let compiler = version.lines().next().unwrap_or_default().to_owned();
        let read = |name: &String| files::read_given(Path::new(name), MAX_PATCH, || format!("read the patch {name}"));
        let patches = spec.patches.iter().map(read).collect::<Result<Vec<Vec<u8>>>>()?;
        let configure = configure(spec);
        let sums: Vec<String> = patches.iter().map(|patch| files::sha256(patch)).collect();
        let place = shelf.path().to_string_lossy();
        let mut inputs = vec![EDITION, std::env::consts::ARCH, &place, &compiler, source.content()];
        inputs.extend(configure.iter().map(String::as_str));
        inputs.push("patches");
        inputs.extend(sums.iter().map(String::as_str));
        Ok(BuildRecipe { place: shelf.path().join(key(&inputs)), configure, patches, compiler })
    }
}

fn configure(spec: &BuildSpec) -> Vec<String> {
    let sizes = [
        ("--with-wal-blocksize", spec.wal_blocksize),
        ("--with-blocksize", spec.blocksize),
        ("--with-segsize", spec.segsize),
    ];
    let sizes = sizes.into_iter().filter_map(|(name, size)| Some(format!("{name}={}", size?)));
    WITHOUT.iter().map(|name| (*name).to_owned()).chain(sizes).chain(spec.configure.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plans_own_arguments_come_last() {
        let spec = BuildSpec {
            wal_blocksize: Some(64),
            segsize: Some(2),
            configure: vec!["--with-zlib".into()],
            ..BuildSpec::default()
        };
        let wanted = [
            "--without-readline",
            "--without-icu",
            "--without-zlib",
            "--with-wal-blocksize=64",
            "--with-segsize=2",
            "--with-zlib",
        ];
        assert_eq!(configure(&spec), wanted);
    }
}

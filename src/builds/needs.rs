//! What a build needs of the machine.

use crate::host::Host;
use crate::record::build::BuildSpec;

/// What brings all of it.
const INSTALL: &str = "apt-get install --no-install-recommends";

/// Programs, and the Debian packages that have them.
const PROGRAMS: [(&str, &str); 5] =
    [("cc", "gcc libc6-dev"), ("make", "make"), ("perl", "perl"), ("tar", "tar"), ("bzip2", "bzip2")];

/// Since PostgreSQL 17 a tarball no longer carries what these make; a checkout never did.
const PARSERS: [(&str, &str); 2] = [("bison", "bison"), ("flex", "flex")];
const WITHOUT_PARSERS: u32 = 17;

/// What this machine lacks, each with the command that installs it.
#[must_use]
pub(super) fn lacking(host: &Host, spec: &BuildSpec) -> Vec<(String, String)> {
    let major: Option<u32> = spec.version.as_ref().and_then(|version| version.split('.').next()?.parse().ok());
    let mut wanted = PROGRAMS.to_vec();
    // What a tarball carries is known when it is unpacked: configure says it then.
    if major.is_some_and(|major| major >= WITHOUT_PARSERS) || is_checkout(spec) {
        wanted.extend(PARSERS);
    }
    if is_checkout(spec) {
        wanted.push(("git", "git"));
    }
    if spec.version.is_some() {
        wanted.push(("apt-get", "apt"));
    }
    if !spec.patches.is_empty() {
        wanted.push(("patch", "patch"));
    }
    let missing: Vec<(&str, &str)> = wanted.into_iter().filter(|(program, _)| !host.has_program(program)).collect();
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    let install = install(&packages);
    missing.iter().map(|(program, _)| (format!("the program {program} is missing"), install.clone())).collect()
}

/// The command that installs packages.
#[must_use]
pub(super) fn install(packages: &[&str]) -> String {
    format!("{INSTALL} {}; or scripts/setup postgresql", packages.join(" "))
}

/// Whether the source is a folder.
#[must_use]
pub(super) fn is_checkout(spec: &BuildSpec) -> bool {
    spec.source.as_ref().is_some_and(|source| crate::host::paths::is_folder(std::path::Path::new(source)))
}

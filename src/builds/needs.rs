//! Requirements that a build has of the machine.

use crate::host::Host;
use crate::record::build::BuildSpec;

/// Command that installs the packages.
const INSTALL: &str = "apt-get install --no-install-recommends";

/// Programs and the Debian packages that provide them.
const PROGRAMS: [(&str, &str); 5] =
    [("cc", "gcc libc6-dev"), ("make", "make"), ("perl", "perl"), ("tar", "tar"), ("bzip2", "bzip2")];

/// Since PostgreSQL 17 a tarball no longer contains the output of these; a checkout never did.
const PARSERS: [(&str, &str); 2] = [("bison", "bison"), ("flex", "flex")];
const WITHOUT_PARSERS: u32 = 17;

/// Arguments of configure that need a library, its header, and the Debian package that provides it.
const LIBRARIES: [(&str, &str, &str); 4] = [
    ("--with-liburing", "liburing.h", "liburing-dev"),
    ("--with-lz4", "lz4.h", "liblz4-dev"),
    ("--with-zstd", "zstd.h", "libzstd-dev"),
    ("--with-zlib", "zlib.h", "zlib1g-dev"),
];
/// configure finds all of them with it, except zlib.
const PKG_CONFIG: (&str, &str) = ("pkg-config", "pkg-config");
/// Default include paths of compilers.
const HEADERS: [&str; 2] = ["/usr/include", "/usr/local/include"];
/// Arguments and variables that make configure search elsewhere, so that missing headers are left for it to report.
const ELSEWHERE: [&str; 4] = ["--with-includes", "CPPFLAGS=", "CFLAGS=", "PKG_CONFIG_PATH="];

/// Missing headers, with their packages.
fn missing_headers(host: &Host, spec: &BuildSpec) -> Vec<(&'static str, &'static str)> {
    if spec.configure.iter().any(|argument| ELSEWHERE.iter().any(|start| argument.starts_with(start))) {
        return Vec::new();
    }
    let wanted = LIBRARIES.iter().filter(|(asks, ..)| spec.configure.iter().any(|argument| argument == asks));
    let missing = wanted
        .filter(|(_, header, _)| HEADERS.iter().all(|folder| !host.exists(format!("{folder}/{header}"))))
        .map(|(_, header, package)| (*header, *package));
    missing.collect()
}

/// Everything this machine lacks, each with the command that installs it.
pub(super) fn lacking(host: &Host, spec: &BuildSpec) -> Vec<(String, String)> {
    let major: Option<u32> = spec.version.as_ref().and_then(|version| version.split('.').next()?.parse().ok());
    let mut wanted = PROGRAMS.to_vec();
    // The contents of a tarball are known only once it is unpacked: configure reports it then.
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
    if LIBRARIES[..3].iter().any(|(asks, ..)| spec.configure.iter().any(|argument| argument == asks)) {
        wanted.push(PKG_CONFIG);
    }
    let programs = wanted.into_iter().filter(|(program, _)| !host.has_program(program));
    let programs = programs.map(|(program, package)| (format!("the program {program} is missing"), package));
    let headers = missing_headers(host, spec);
    // The script installs no libraries.
    let only_programs = headers.is_empty();
    let headers = headers.into_iter().map(|(header, package)| (format!("the header {header} is missing"), package));
    let missing: Vec<(String, &str)> = programs.chain(headers).collect();
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    let install = if only_programs { install(&packages) } else { format!("{INSTALL} {}", packages.join(" ")) };
    missing.into_iter().map(|(what, _)| (what, install.clone())).collect()
}

pub(super) fn install(packages: &[&str]) -> String {
    format!("{INSTALL} {}; or scripts/setup postgresql", packages.join(" "))
}

/// True if the source is a folder.
pub(super) fn is_checkout(spec: &BuildSpec) -> bool {
    spec.source.as_ref().is_some_and(|source| crate::host::paths::is_folder(std::path::Path::new(source)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_library_headers_are_reported_with_their_packages() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("usr/include")).unwrap();
        std::fs::write(root.path().join("usr/include/lz4.h"), "").unwrap();
        let host = Host::rooted(root.path());
        let spec = |configure: &[&str]| BuildSpec {
            configure: configure.iter().map(|argument| (*argument).to_owned()).collect(),
            ..BuildSpec::default()
        };
        let all = ["--with-liburing", "--with-lz4", "--with-zstd"];
        assert_eq!(missing_headers(&host, &spec(&all)), [("liburing.h", "liburing-dev"), ("zstd.h", "libzstd-dev")]);
        assert_eq!(missing_headers(&host, &spec(&["--with-lz4", "--enable-debug"])), []);
        assert_eq!(missing_headers(&host, &spec(&["--with-zstd", "--with-includes=/opt/zstd/include"])), []);
        let lacking = lacking(&host, &spec(&all));
        let zstd = lacking.iter().find(|(what, _)| what == "the header zstd.h is missing").unwrap();
        assert!(zstd.1.ends_with("liburing-dev libzstd-dev"), "{}", zstd.1);
    }
}

//! `build` of `[postgres]`: a PostgreSQL built from source. Each of its keys is an axis.

use super::limits::Key;
use super::options::{Axis, read_choices};
use super::problem::{Problem, Problems, refuse_unknown};
use super::tree::{Node, Toml, get};
use super::values::{Choice, proper_text, read, texts};
use crate::record::build::BuildSpec;
use crate::record::options::{OptionKind, OptionValue};
use std::path::Path;

/// The key, and the prefix of its axes' names.
pub(super) const BUILD: &str = "build";

const VERSION: &str = "version";
const SUITE: &str = "suite";
const SOURCE: &str = "source";
const CONFIGURE: &str = "configure";
const PATCHES: &str = "patches";

/// Type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    Version,
    Suite,
    Path,
    /// One of these sizes, in kB.
    OneOf(&'static [u32]),
    Whole,
    Texts,
}

/// Each key with its type and its sentence for the manual, in the manual's order.
pub(super) const KEYS: [(&str, KeyKind, &str); 8] = [
    (VERSION, KeyKind::Version, "Version of Debian's source package: \"15\", or an exact one such as \"15.18\"."),
    (SUITE, KeyKind::Suite, "Debian suite of the package; default: the one that has the version."),
    (SOURCE, KeyKind::Path, "Instead of `version`: a tarball of PostgreSQL, or a git checkout."),
    ("wal_blocksize", KeyKind::OneOf(&[1, 2, 4, 8, 16, 32, 64]), "Size of WAL blocks in kB (--with-wal-blocksize)."),
    ("blocksize", KeyKind::OneOf(&[1, 2, 4, 8, 16, 32]), "Size of table and index pages in kB (--with-blocksize)."),
    ("segsize", KeyKind::Whole, "Size of table and index segments in GB (--with-segsize)."),
    (CONFIGURE, KeyKind::Texts, "More arguments for configure."),
    (PATCHES, KeyKind::Texts, "Patch files, applied in this order (patch -p1)."),
];

/// Arguments of `configure` that are set by keys of their own, or that place the build.
const RESERVED: [(&str, &str); 4] = [
    ("--with-wal-blocksize", "write wal_blocksize = 16"),
    ("--with-blocksize", "write blocksize = 16"),
    ("--with-segsize", "write segsize = 2"),
    ("--prefix --exec-prefix --bindir --libdir --datadir --datarootdir", "pgstrata installs builds in its cache"),
];

/// Reads the table. Its axes are named `build.KEY`.
pub(super) fn read_build(key: &Key, node: &Node, problems: &mut Problems) -> Vec<Axis> {
    const HELP: &str = "write build = { version = \"15\" }";
    let Some(pairs) = node.table("`build` of [postgres]", HELP, problems) else { return Vec::new() };
    refuse_unknown(pairs.iter().map(|(key, _)| key), &KEYS.map(|(key, ..)| key), "`build` of [postgres]", problems);
    match (get(pairs, VERSION), get(pairs, SOURCE), get(pairs, SUITE)) {
        (None, None, _) => {
            let problem = Problem::at(&key.span, "`build` needs `version` or `source`");
            problems.add(problem.help("version = \"15\" builds Debian's source package of PostgreSQL 15"));
        }
        (Some((version, _)), Some((source, _)), _) => {
            let problem = Problem::at(&version.span, "`version` conflicts with `source`");
            let problem = problem.also(&source.span, "the source");
            problems.add(problem.help("the version of a tarball or checkout is its own: remove one of them"));
        }
        (None, Some(_), Some((suite, _))) => {
            let problem = Problem::at(&suite.span, "`suite` conflicts with `source`");
            problems.add(problem.help("a suite is where the package of a `version` is taken from"));
        }
        _ => {}
    }
    let mut axes = Vec::new();
    for (name, kind, _) in &KEYS {
        let Some((key, node)) = get(pairs, name) else { continue };
        let items = node.axis_items(*kind != KeyKind::Texts);
        let shown = format!("`{name}` of build");
        let choices = read_choices(&shown, node, items, problems, |node| read_one(name, *kind, node));
        axes.extend(choices.map(|choices| Axis::within(BUILD, key, choices)));
    }
    axes
}

fn read_one(key: &str, kind: KeyKind, node: &Node) -> Result<Choice, Problem> {
    let wrong = match kind {
        KeyKind::Version => match &node.value {
            Toml::Integer(major) if *major > 0 => return Ok(Choice::text(node, major.to_string())),
            Toml::Text(version) if is_version(version) => return Ok(Choice::text(node, version.clone())),
            // TOML reads 15.10 as 15.1.
            Toml::Number(_) => {
                let refusal = Problem::at(&node.span, "must be text: a number loses its last 0");
                return Err(refusal.help("put quotes around it"));
            }
            _ => "must be a version such as \"15\" or \"15.18\"".to_owned(),
        },
        KeyKind::Suite => match node.text() {
            Some(suite) if !suite.is_empty() && suite.chars().all(|c| c.is_ascii_lowercase()) => {
                return Ok(Choice::text(node, suite.to_owned()));
            }
            _ => "must be the code name of a Debian suite, such as \"bookworm\"".to_owned(),
        },
        KeyKind::Path => match node.text() {
            Some(_) => return Ok(Choice::text(node, proper_text(node)?)),
            None => format!("must be the path of a tarball or git checkout, found {}", node.noun()),
        },
        KeyKind::OneOf(sizes) => match node.value {
            Toml::Integer(n) if sizes.iter().any(|size| i64::from(*size) == n) => {
                return read(OptionKind::Scalar, node);
            }
            _ => {
                let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
                format!("must be a number of kB: {}", sizes.join(", "))
            }
        },
        KeyKind::Whole => return read(OptionKind::Integer { min: 1 }, node),
        KeyKind::Texts => {
            let choice = read(OptionKind::TextList, node)?;
            let arguments = if key == CONFIGURE { texts(&choice.value) } else { Vec::new() };
            for argument in arguments {
                let name = argument.split('=').next().unwrap_or_default();
                if let Some((_, help)) = RESERVED.iter().find(|(all, _)| all.split(' ').any(|known| known == name)) {
                    let refusal = Problem::at(&node.span, format!("must not contain `{argument}`"));
                    return Err(refusal.help(*help));
                }
            }
            return Ok(choice);
        }
    };
    Err(Problem::at(&node.span, wrong))
}

/// `15`, `15.18`.
fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() <= 2
        && parts.iter().all(|part| (1..=4).contains(&part.len()) && part.bytes().all(|c| c.is_ascii_digit()))
}

/// Sets the value of an axis; relative paths are relative to `folder`.
pub(super) fn enter(spec: &mut BuildSpec, axis: &Axis, value: &OptionValue, folder: &Path) {
    let size = if let OptionValue::Integer(n) = value { u32::try_from(*n).ok() } else { None };
    match axis.option.1.as_deref() {
        Some(VERSION) => spec.version = Some(value.plain()),
        Some(SUITE) => spec.suite = Some(value.plain()),
        Some(SOURCE) => spec.source = Some(path_in(folder, &value.plain())),
        Some("wal_blocksize") => spec.wal_blocksize = size,
        Some("blocksize") => spec.blocksize = size,
        Some("segsize") => spec.segsize = size,
        Some(CONFIGURE) => spec.configure = texts(value),
        Some(PATCHES) => spec.patches = texts(value).iter().map(|text| path_in(folder, text)).collect(),
        _ => {}
    }
}

fn path_in(folder: &Path, text: &str) -> String {
    folder.join(text).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use crate::plan::tests::{catalogue, small};
    use crate::plan::{Plan, check};
    use crate::record::build::{BuildSpec, UNBUILT};
    use std::path::Path;

    fn plan(postgres: &str) -> Result<Plan, String> {
        let text = small(&format!("[postgres]\n{postgres}\n"));
        check(&text, Path::new("/plans"), &catalogue())
            .map_err(|problems| problems.into_error(&text, "plan.toml", crate::plan::Paint::Plain).to_string())
    }

    fn builds(plan: &Plan) -> Vec<BuildSpec> {
        plan.cases.iter().filter_map(|case| case.postgres.as_ref()?.build.clone()).collect()
    }

    #[test]
    fn each_value_of_a_build_is_an_axis() {
        let plan = plan(
            "build = { version = \"15\", wal_blocksize = [8, 16], configure = [[\"--with-lz4\"], [\"CFLAGS=-O3\", \"--x\"]] }",
        )
        .unwrap();
        assert_eq!(plan.cases.len(), 2 * 2 * 2);
        let case = plan.cases.last().unwrap();
        assert_eq!(case.axes["build.wal_blocksize"], "16");
        assert_eq!(case.axes["build.configure"], "CFLAGS=-O3,--x");
        assert!(!case.axes.contains_key("build.version"), "one value is no axis");
        let postgres = case.postgres.as_ref().unwrap();
        assert_eq!(postgres.bin, UNBUILT);
        let expected = BuildSpec {
            version: Some("15".into()),
            wal_blocksize: Some(16),
            configure: vec!["CFLAGS=-O3".into(), "--x".into()],
            ..BuildSpec::default()
        };
        assert_eq!(postgres.build, Some(expected));
        assert_eq!(builds(&plan).len(), 8);
    }

    #[test]
    fn paths_of_a_build_start_at_the_plans_folder() {
        let plan = plan("build = { source = [\"pg.tar.gz\", \"/src/pg\"], patches = [\"a.patch\"] }").unwrap();
        let found = builds(&plan);
        assert_eq!(found[0].source.as_deref(), Some("/plans/pg.tar.gz"));
        assert_eq!(found[1].source.as_deref(), Some("/src/pg"));
        assert_eq!(found[0].patches, ["/plans/a.patch"]);
        assert_eq!(plan.cases[0].axes["build.source"], "pg.tar.gz", "as the plan writes it");
    }

    #[test]
    fn a_build_that_cannot_be_is_refused_where_it_stands() {
        for (build, words) in [
            ("build = 15", "must be a table"),
            ("build = {}", "needs `version` or `source`"),
            ("build = { version = 15.1 }", "put quotes around it"),
            ("build = { version = \"x\" }", "must be a version"),
            ("build = { version = 15, source = \"a\" }", "conflicts with `source`"),
            ("build = { source = \"a\", suite = \"trixie\" }", "`suite` conflicts"),
            ("build = { version = 15, wal_blocksize = 24 }", "1, 2, 4, 8, 16, 32, 64"),
            ("build = { version = 15, wal_blocksize = [8, 8] }", "the value `8` twice"),
            ("build = { version = 15, blocksize = 64 }", "1, 2, 4, 8, 16, 32"),
            ("build = { version = 15, segsize = 0 }", "at least 1"),
            ("build = { version = 15, suite = \"Trixie\" }", "code name"),
            ("build = { version = 15, configure = [\"--with-wal-blocksize=16\"] }", "write wal_blocksize = 16"),
            ("build = { version = 15, configure = [\"--prefix=/x\"] }", "in its cache"),
            ("build = { version = 15, wal_block = 8 }", "did you mean `wal_blocksize`?"),
            ("build = { version = 15 }\nbin = \"auto\"", "conflicts with `build`"),
        ] {
            let said = plan(build).unwrap_err();
            assert!(said.contains(words), "{build}: {said}");
        }
    }
}

//! Warnings about a plan before the run, in addition to those of its workloads.

use super::case::workload;
use crate::cluster::{install, server};
use crate::error::Result;
use crate::host::{Host, paths};
use crate::record::build::UNBUILT;
use crate::record::case::{BARE_SIZES, CaseSpec, PostgresSpec};
use crate::record::operation::Writes;
use crate::record::window::Extent;
use crate::units::{Bytes, Micros};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Warnings of one case.
///
/// # Errors
/// For a workload that this program does not have.
pub(super) fn of_case(host: &Host, case: &CaseSpec, quick: bool) -> Result<Vec<String>> {
    let cycles = if quick { None } else { without_cycles(case)? };
    let compressed = never_compressed(case, |postgres| major_of(host, postgres));
    Ok(compressed.into_iter().chain(cycles).chain(bare_sizes(case)).collect())
}

/// What numbers without a unit mean: `shared_buffers = 128` may have been meant as 128 MB.
fn bare_sizes(case: &CaseSpec) -> Vec<String> {
    let Some(postgres) = &case.postgres else { return Vec::new() };
    let bare = BARE_SIZES.into_iter().filter_map(|(name, unit)| {
        let text = postgres.asked(name)?;
        let size = postgres.size(name).filter(|size| size.0 > 0 && text.trim().parse::<u64>().is_ok())?;
        Some(format!("{name} = {text} is {size}: a number without a unit counts {} each; write the unit", Bytes(unit)))
    });
    bare.collect()
}

/// A warning if a case that may write is measured for a fixed time instead of whole checkpoint cycles.
fn without_cycles(case: &CaseSpec) -> Result<Option<String>> {
    let (workload, options) = (workload(&case.workload.kind)?, &case.workload.options);
    let Extent::Span { span_us } = workload.window(options).extent else { return Ok(None) };
    // Other workloads have no cycles to measure.
    let Some(key) = ["step", "duration"].into_iter().find(|key| options.get(key).is_some()) else { return Ok(None) };
    if !workload.info().needs_server || workload.operation(options)?.writes == Writes::Never {
        return Ok(None);
    }
    Ok(Some(format!(
        "{} is measured for a fixed {}: that may contain no checkpoint and an unusual share of full-page images; remove \
         `{key}` to measure full checkpoint cycles",
        case.workload.name,
        Micros(span_us),
    )))
}

/// A warning if cases differ in data checksums because their versions have different defaults.
pub(super) fn checksums_by_version(host: &Host, cases: &[CaseSpec]) -> Option<String> {
    let mut majors: BTreeMap<&str, Option<u32>> = BTreeMap::new();
    let mut defaults: BTreeSet<(bool, u32)> = BTreeSet::new();
    for postgres in cases.iter().filter_map(|case| case.postgres.as_ref()) {
        if postgres.initdb.iter().any(|argument| argument == "-k" || argument.ends_with("data-checksums")) {
            continue;
        }
        // Builds that do not exist yet share one name.
        let major = match postgres.bin.as_str() {
            UNBUILT => major_of(host, postgres),
            bin => *majors.entry(bin).or_insert_with(|| major_of(host, postgres)),
        };
        defaults.extend(major.map(|major| (major >= server::CHECKSUMS_BY_DEFAULT, major)));
    }
    let with = defaults.iter().find(|(with, _)| *with)?.1;
    let without = defaults.iter().find(|(with, _)| !*with)?.1;
    Some(format!(
        "cases differ in data checksums as well as in version: PostgreSQL {with} creates clusters with them, {without} \
         without; set initdb = {{ data-checksums = true }}, or false, for all cases"
    ))
}

/// A warning if stacks are folders of one filesystem, as where one of several is not mounted.
pub(super) fn one_filesystem(cases: &[CaseSpec]) -> Option<String> {
    let mut stacks: BTreeMap<u64, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for stack in cases.iter().map(|case| &case.stack) {
        if let [node] = stack.nodes.as_slice()
            && let Some(folder) = node.options.text("directory")
            && let Ok(found) = paths::look_at(Path::new(folder))
        {
            stacks.entry(found.filesystem).or_default().insert((&stack.name, folder));
        }
    }
    let folders = stacks.into_values().find(|folders| folders.len() > 1)?;
    let named: Vec<String> = folders.into_iter().map(|(name, folder)| format!("{name} ({folder})")).collect();
    Some(format!("{} are folders of one filesystem: is one of them not mounted?", named.join(" and ")))
}

/// The major version of a case's server, if known.
fn major_of(host: &Host, postgres: &PostgresSpec) -> Option<u32> {
    let found = if postgres.bin == UNBUILT { None } else { install::find(host, &postgres.bin).ok() };
    match found {
        Some(install) => Some(install.major),
        None => postgres.build.as_ref()?.version.as_ref()?.split('.').next()?.parse().ok(),
    }
}

/// A warning if btrfs is asked to compress but may not compress tables: a file with space reserved by
/// posix_fallocate(3) stays uncompressed, even with compress-force and when it is rewritten. Smaller extensions are
/// written as zeros (`mdzeroextend`, storage/smgr/md.c). `major` returns the version of the server, if known.
fn never_compressed(case: &CaseSpec, major: impl Fn(&PostgresSpec) -> Option<u32>) -> Option<String> {
    let postgres = case.postgres.as_ref()?;
    let node = case.stack.nodes.iter().filter(|node| node.layer == "btrfs").find(|node| {
        let texts = node.options.texts("mount");
        let mut options = texts.iter().flat_map(|text| text.split(','));
        options.any(|option| option.starts_with("compress") && !option.ends_with("=no") && !option.ends_with("=none"))
    })?;
    let reserves = major(postgres).is_none_or(|major| postgres.reserves_space(major));
    reserves.then(|| {
        format!(
            "{} of stack {} stops compressing a table once it grows by more than 8 pages at a time (COPY, many clients): \
             PostgreSQL 16 and later reserve these by posix_fallocate, and btrfs never compresses such a file; set \
             file_extend_method = \"write_zeros\"",
            node.name, case.stack.name
        )
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::build::BuildSpec;
    use crate::record::case::WorkloadSpec;
    use crate::record::options::{OptionValue, Options};
    use crate::record::stack::StackSpec;

    pub(in crate::run) fn case(clients: i64, settings: &[(&str, &str)]) -> CaseSpec {
        let options = [("scale", 100), ("clients", clients)].map(|(key, n)| (key.to_owned(), OptionValue::Integer(n)));
        CaseSpec {
            id: "s.w".into(),
            guest: None,
            age: Options::default(),
            stack: StackSpec::linear("s", Vec::new()),
            postgres: Some(PostgresSpec {
                bin: "auto".into(),
                build: None,
                settings: settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
                initdb: Vec::new(),
            }),
            machine: Options::default(),
            workload: WorkloadSpec { name: "w".into(), kind: "pgbench".into(), options: Options(options.into()) },
            axes: BTreeMap::new(),
        }
    }

    #[test]
    fn a_size_without_a_unit_is_explained() {
        let said = |value: &str| bare_sizes(&case(1, &[("shared_buffers", value), ("max_wal_size", "1GB")]));
        assert_eq!(
            said("128"),
            ["shared_buffers = 128 is 1 MiB: a number without a unit counts 8 KiB each; write the unit"]
        );
        assert_eq!((said("128MB"), said("0")), (vec![], vec![]));
    }

    #[test]
    fn a_btrfs_that_will_not_compress_tables_is_warned_of() {
        let warned = |major, mount: &str, settings| {
            let mut options = Options::default();
            options.set("mount", OptionValue::Text(mount.into()));
            let mut case = case(1, settings);
            case.stack = StackSpec::linear("b", vec![("btrfs", options)]);
            never_compressed(&case, |_| major).is_some()
        };
        let newest = Some(18);
        assert!(warned(newest, "noatime,compress=zstd", &[]));
        assert!(warned(newest, "compress-force", &[("file_extend_method", "x")]));
        assert!(!warned(newest, "noatime,compress=no", &[]));
        assert!(!warned(newest, "compress=zstd", &[("file_extend_method", "write_zeros")]));
        let of = |major| warned(major, "compress=zstd", &[]);
        assert_eq!((of(Some(15)), of(Some(16)), of(None)), (false, true, true));
    }

    #[test]
    fn folders_of_one_filesystem_are_warned_of() {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let on = |name: &str, folder: &Path| {
            let mut options = Options::default();
            options.set("directory", OptionValue::Text(folder.display().to_string()));
            CaseSpec { stack: StackSpec::linear(name, vec![("directory", options)]), ..case(1, &[]) }
        };
        let warning = one_filesystem(&[on("a", one.path()), on("b", other.path())]).unwrap();
        assert!(warning.starts_with("a (/") && warning.contains(" and b (/"), "{warning}");
        assert!(one_filesystem(&[on("a", one.path()), on("a", other.path())]).is_some(), "an axis of folders");
        assert_eq!(one_filesystem(&[on("a", one.path()), on("a", one.path())]), None);
        assert_eq!(one_filesystem(&[on("a", one.path()), on("b", Path::new("/proc"))]), None);
    }

    #[test]
    fn versions_that_differ_in_checksums_by_default_are_warned_of() {
        let build = |version: &str, initdb: &[&str]| {
            let mut case = case(1, &[]);
            let postgres = case.postgres.as_mut().unwrap();
            UNBUILT.clone_into(&mut postgres.bin);
            postgres.build = Some(BuildSpec { version: Some(version.into()), ..BuildSpec::default() });
            postgres.initdb = initdb.iter().map(|argument| (*argument).to_owned()).collect();
            case
        };
        let warning = |cases: &[CaseSpec]| checksums_by_version(&Host::this(), cases);
        let message = warning(&[build("17", &[]), build("18.1", &[])]).unwrap();
        assert!(message.contains("PostgreSQL 18 creates clusters with them, 17 without"), "{message}");
        assert_eq!(warning(&[build("16", &[]), build("17", &[])]), None);
        assert_eq!(warning(&[build("17", &["--data-checksums"]), build("18", &["--data-checksums"])]), None);
        assert!(warning(&[build("17", &[]), build("18", &["--no-data-checksums"])]).is_none(), "both are without");
    }
}

//! Adding a thing means adding a file and naming it in its seam's `ALL`. Nobody forgets the second.

use super::paths::named;
use super::source::{Source, Token, all, root};
use std::path::Path;

/// Folder of the seam and its trait, or its type if things are values of one; `ALL` stands in the folder's `mod.rs`.
const SEAMS: [(&str, &str); 5] = [
    ("src/provision", "Layer"),
    ("src/workload", "Workload"),
    ("src/telemetry", "Sampler"),
    ("src/report", "Renderer"),
    ("src/submit", "Engine"),
];

/// The words between `ALL` and the end of its list, or those of `layers! { ... }`, which makes the list.
fn words_of_all(tokens: &[Token]) -> Vec<String> {
    if let Some(made) = tokens.windows(3).position(|t| t[0].is("layers") && t[1].is_sign('!') && t[2].is_sign('{')) {
        let list = tokens[made + 3..].iter().take_while(|t| !t.is_sign('}'));
        return list.filter_map(|t| t.word().map(str::to_owned)).collect();
    }
    let start = tokens.windows(2).position(|t| t[0].is("const") && t[1].is("ALL")).unwrap_or(tokens.len());
    let list = tokens[start..].iter().skip_while(|t| !t.is_sign('=')).take_while(|t| !t.is_sign(';'));
    list.filter_map(|t| t.word().map(str::to_owned)).collect()
}

/// The types for which code outside of tests implements the trait.
fn implementers(source: &Source, of: &str) -> Vec<String> {
    let code = source.code();
    let found = code.windows(3).filter(|t| t[0].is(of) && t[1].is("for"));
    found.filter_map(|t| t[2].word().map(str::to_owned)).collect()
}

/// The constants and statics of a type: `pub static EXT4: OnDevice = ...`.
fn instances(source: &Source, of: &str) -> Vec<String> {
    let code = source.code();
    let found = code.windows(4).filter(|t| t[0].is("static") || t[0].is("const"));
    found.filter(|t| t[2].is_sign(':') && t[3].is(of)).filter_map(|t| t[1].word().map(str::to_owned)).collect()
}

/// The module that a file belongs to, directly below its seam's folder.
fn module_below(path: &Path, folder: &str) -> Option<String> {
    let first = path.strip_prefix(folder).ok()?.iter().next()?;
    Some(first.to_string_lossy().trim_end_matches(".rs").to_owned())
}

/// What implements the seam's trait and is not in its list. Where a type has constants or statics, those are the things
/// and each must be listed; else the type is, or the module that holds it.
fn forgotten(sources: &[&Source], folder: &str, of: &str) -> Vec<String> {
    let home = Path::new(folder).join("mod.rs");
    let listed = sources.iter().find(|s| s.path == home).map(|s| words_of_all(&s.tokens)).unwrap_or_default();
    let mut forgotten = Vec::new();
    for source in sources {
        forgotten.extend(instances(source, of).into_iter().filter(|thing| !listed.contains(thing)));
        let module = module_below(&source.path, folder).unwrap_or_default();
        for name in implementers(source, of) {
            let things: Vec<String> = sources.iter().flat_map(|source| instances(source, &name)).collect();
            let missing = things.iter().filter(|thing| !listed.contains(thing)).cloned();
            forgotten.extend(missing);
            if things.is_empty() && !listed.contains(&name) && !listed.contains(&module) {
                forgotten.push(name);
            }
        }
    }
    forgotten
}

#[test]
fn every_layer_workload_sampler_renderer_and_engine_is_listed() {
    for (folder, of) in SEAMS {
        let sources: Vec<&Source> = all().iter().filter(|source| source.path.starts_with(folder)).collect();
        let has_list = |s: &&Source| s.tokens.windows(2).any(|t| t[0].is("const") && t[1].is("ALL"));
        assert!(sources.iter().any(has_list), "{folder}/mod.rs has no `ALL`");
        let forgotten = forgotten(&sources, folder, of);
        assert!(forgotten.is_empty(), "not in `ALL` of {folder}/mod.rs: {}", forgotten.join(", "));
    }
}

#[test]
fn every_seam_is_described() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for (folder, of) in SEAMS {
        let seam = format!("`{}::{of}`", folder.trim_start_matches("src/"));
        assert!(text.contains(&seam), "ARCHITECTURE.md does not describe {seam}");
    }
}

/// Lines of code in which options of a workload are looked at: their names and defaults are the workload's own, and what
/// others need of them it tells in `record::operation`.
fn looks_at_options(source: &Source) -> Vec<usize> {
    let code = source.code();
    let fields = code.windows(3).filter(|t| t[0].is("workload") && t[1].is_sign('.') && t[2].is("options"));
    let is_options = |path: &[String]| path.len() > 1 && path[0] == "record" && path[1] == "options";
    let paths = named(source).into_iter().filter(|named| !named.in_test && is_options(&named.path));
    fields.map(|t| t[0].line).chain(paths.map(|named| named.line)).collect()
}

#[test]
fn analysis_asks_no_workload_for_its_options() {
    for source in all().iter().filter(|source| source.path.starts_with("src/analyse")) {
        let lines = looks_at_options(source);
        assert!(lines.is_empty(), "{}: take it from `record::operation`", source.at(lines[0]));
    }
    let looks = |text: &str| !looks_at_options(&Source::of("src/analyse/case.rs", text)).is_empty();
    assert!(looks("fn f(c: &CaseSpec) -> bool { c.spec.workload.options.get(\"rate\").is_some() }"));
    assert!(looks("use crate::record::{case::CaseSpec, options::Options};"));
    assert!(!looks("fn f(c: &CaseSpec) -> bool { c.mount.options.is_empty() && c.is_workload_axis(\"rate\") }"));
    assert!(!looks("#[cfg(test)] mod tests { use crate::record::options::Options; }"));
}

#[test]
fn a_layer_that_is_not_listed_is_found() {
    let tree = [
        ("src/provision/mod.rs", "pub const ALL: &[&dyn Layer] = &[&ext::EXT4, &Tmpfs, &loop_image::Image];"),
        ("src/provision/tmpfs.rs", "impl Layer for Tmpfs {}"),
        ("src/provision/loop_image.rs", "impl Layer for Image {}"),
        ("src/provision/zfs/mod.rs", "impl Layer for Zfs {}\n#[cfg(test)] mod t { impl Layer for Fake {} }"),
        ("src/provision/filesystem.rs", "impl Layer for OnDevice {}"),
        ("src/provision/ext.rs", "pub static EXT4: OnDevice = f(); pub static EXT3: OnDevice = g();"),
    ];
    let sources = tree.map(|(path, text)| Source::of(path, text));
    let sources: Vec<&Source> = sources.iter().collect();
    assert_eq!(forgotten(&sources, "src/provision", "Layer"), ["Zfs", "EXT3"]);
}

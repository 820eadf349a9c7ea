//! Every dependency comes under a licence that a program under MIT or Apache-2.0 can be shipped with.

use super::source::root;
use serde_json::Value;
use std::process::Command;

/// Licences (SPDX) that ask for no more than a notice; with MPL-2.0, whose duties end at its own files.
const ALLOWED: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Zlib",
];

/// Whether an SPDX expression can be met with allowed licences alone; one that cannot be read is not. `/` is the old
/// way to write `OR`.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ").replace(" WITH ", "+WITH+");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    either(&mut rest) == Some(true) && rest.is_empty()
}

/// `a OR b`, which binds weaker than `AND`; `None` where it cannot be read.
fn either(rest: &mut &[&str]) -> Option<bool> {
    let mut answer = both(rest)?;
    while rest.first() == Some(&"OR") {
        *rest = &rest[1..];
        answer |= both(rest)?;
    }
    Some(answer)
}

fn both(rest: &mut &[&str]) -> Option<bool> {
    let mut answer = one(rest)?;
    while rest.first() == Some(&"AND") {
        *rest = &rest[1..];
        answer &= one(rest)?;
    }
    Some(answer)
}

fn one(rest: &mut &[&str]) -> Option<bool> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    if *first != "(" {
        return Some(ALLOWED.contains(&first.replace("+WITH+", " WITH ").as_str()));
    }
    let answer = either(rest)?;
    let (close, after) = rest.split_first()?;
    *rest = after;
    (*close == ")").then_some(answer)
}

/// Every package that can become part of the program, its build or its tests on this platform.
fn packages() -> Vec<Value> {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform", &platform]);
    let output = cargo.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let used: Vec<&Value> = metadata["resolve"]["nodes"].as_array().unwrap().iter().map(|node| &node["id"]).collect();
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().filter(|package| used.contains(&&package["id"])).cloned().collect()
}

#[test]
fn every_dependency_has_a_licence_that_is_allowed() {
    let packages = packages();
    assert!(packages.len() > 1, "cargo metadata names no dependency");
    for package in packages {
        let (name, licence) = (&package["name"], package["license"].as_str().unwrap_or("none given"));
        assert!(is_allowed(licence), "{name}: its licence `{licence}` is not on the list");
    }
}

#[test]
fn licences_are_read_as_spdx_means_them() {
    for fine in [
        "MIT",
        "MIT OR GPL-3.0",
        "Apache-2.0/MIT",
        "(MIT OR GPL-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR X",
    ] {
        assert!(is_allowed(fine), "{fine}");
    }
    for not in
        ["GPL-3.0", "MIT AND GPL-3.0", "MIT OR GPL-3.0 AND", "", "none given", "(MIT", "MIT AND (GPL-2.0 OR AGPL-3.0)"]
    {
        assert!(!is_allowed(not), "{not}");
    }
}

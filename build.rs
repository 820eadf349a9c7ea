//! Hands the chart library to the compiler: checked against its sum, copied to `OUT_DIR`, from where
//! `src/report/page.rs` embeds it. Fetching is not its business: that is `scripts/fetch-echarts`. And makes the index of
//! the shelf, by which `src/foreign/shelf.rs` embeds every file of it, and that of the plans, for `src/plan/shipped.rs`.

use sha2::{Digest, Sha256};
use std::path::Path;
use std::{env, fs};

/// Where `scripts/fetch-echarts` puts the files.
const VENDOR: &str = "assets/vendor";
/// SHA-256 of `dist/echarts.min.js` of the npm package echarts 6.1.0; the same as in `scripts/fetch-echarts`.
const ECHARTS_SHA256: &str = "b66b25aeb4df84e33199dc21694014d336d222cbd9deb0e5a7c14bd6aa0d0fd0";
/// The library and the licence texts that a report must carry with it.
const FILES: [&str; 4] = ["echarts.min.js", "LICENSE", "NOTICE", "LICENSE-d3"];

/// Published measurements, a folder each.
const SHELF: &str = "shelf";
/// Plans, a file each, and their pages.
const PLANS: &str = "plans";
const PAGES: &str = "docs/plans";
/// The commit that is built, where somebody says so, as `make` and `scripts/release` do.
const COMMIT: &str = "PGSTRATA_COMMIT";

fn main() {
    println!("cargo::rerun-if-env-changed={COMMIT}");
    let commit = env::var(COMMIT).ok().filter(|commit| !commit.is_empty());
    let commit = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=PGSTRATA_VERSION={}{commit}", env!("CARGO_PKG_VERSION"));
    println!("cargo::rerun-if-changed={SHELF}");
    if let Err(problem) = index_shelf() {
        println!("cargo::error={problem}");
    }
    println!("cargo::rerun-if-changed={PLANS}");
    println!("cargo::rerun-if-changed={PAGES}");
    if let Err(problem) = index_plans() {
        println!("cargo::error={problem}");
    }
    for name in FILES {
        println!("cargo::rerun-if-changed={VENDOR}/{name}");
    }
    if let Err(problem) = hand_over() {
        println!("cargo::error={problem}; fetch it with: scripts/fetch-echarts");
    }
}

/// Writes a list of (folder, file, bytes) in the order of their names.
fn index_shelf() -> Result<(), String> {
    let mut lines = String::new();
    for folder in names(Path::new(SHELF))? {
        let files = names(&Path::new(SHELF).join(&folder))?;
        if !files.iter().any(|file| file == "publication.toml") {
            return Err(format!("{SHELF}/{folder} has no publication.toml"));
        }
        for file in files {
            let path = format!("/{SHELF}/{folder}/{file}");
            lines.push_str(&format!(
                "    ({folder:?}, {file:?}, include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {path:?}))),\n"
            ));
        }
    }
    write_index("shelf.rs", &lines)
}

/// Writes a list of (name, text, page) in the order of the names.
fn index_plans() -> Result<(), String> {
    let mut lines = String::new();
    for file in names(Path::new(PLANS))? {
        let name = file.strip_suffix(".toml").ok_or_else(|| format!("{PLANS}/{file} is not a plan: NAME.toml"))?;
        let page = format!("{PAGES}/{name}.md");
        if !Path::new(&page).is_file() {
            return Err(format!("{PLANS}/{file} has no page {page}"));
        }
        let embedded =
            |path: &str| format!("include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?}))", format!("/{path}"));
        let (text, page) = (embedded(&format!("{PLANS}/{file}")), embedded(&page));
        lines.push_str(&format!("    ({name:?}, {text}, {page}),\n"));
    }
    write_index("plans.rs", &lines)
}

fn write_index(name: &str, lines: &str) -> Result<(), String> {
    let out = env::var("OUT_DIR").map_err(|e| format!("cargo did not set OUT_DIR: {e}"))?;
    let to = Path::new(&out).join(name);
    fs::write(&to, format!("&[\n{lines}]\n")).map_err(|e| format!("failed to write {}: {e}", to.display()))
}

/// Names in a folder, sorted, without hidden ones.
fn names(folder: &Path) -> Result<Vec<String>, String> {
    let read = |e: std::io::Error| format!("failed to read {}: {e}", folder.display());
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).map_err(read)?.collect();
    let names = entries.map_err(read)?.into_iter().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    Ok(names)
}

fn hand_over() -> Result<(), String> {
    let out = env::var("OUT_DIR").map_err(|e| format!("cargo did not set OUT_DIR: {e}"))?;
    for name in FILES {
        let from = Path::new(VENDOR).join(name);
        let bytes = fs::read(&from).map_err(|e| format!("the chart library is missing: {}: {e}", from.display()))?;
        if name == "echarts.min.js" {
            check_sum(&from, &bytes)?;
        }
        let to = Path::new(&out).join(name);
        fs::write(&to, bytes).map_err(|e| format!("failed to write {}: {e}", to.display()))?;
    }
    Ok(())
}

fn check_sum(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let sum: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    if sum == ECHARTS_SHA256 {
        return Ok(());
    }
    Err(format!("{} has sha256 {sum}, wanted {ECHARTS_SHA256}", path.display()))
}

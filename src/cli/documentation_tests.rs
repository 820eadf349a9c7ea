//! Tests of the documentation: every command and plan in it is accepted, those that take seconds run, and times and
//! published figures are those that the program has.

use crate::cli::estimate::rounded;
use crate::foreign::shelf;
use crate::plan::{self, Catalogue, Plan, shipped};
use crate::run::forecast::{expected_without_images, make_quick};
use crate::units::Bytes;
use crate::{analyse, report};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use toml::{Table, Value};

/// Beginnings of commands that take seconds, change nothing and need no network.
const RUN: [&str; 9] = [
    "plan --example",
    "plan --schema",
    "plans",
    "shelf",
    "doctor",
    "completions bash",
    "import --manifest-example",
    "clean --dry-run",
    "postgres list",
];

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(super::catalogue);
static SCHEMA: LazyLock<serde_json::Value> = LazyLock::new(|| plan::schema(&CATALOGUE));

/// README and manual; not decision records, which describe the past.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("docs")];
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.extension() {
                Some(ending) if ending == "md" => pages.push(path),
                None if path.is_dir() && !path.ends_with("adr") => folders.push(path),
                _ => {}
            }
        }
    }
    pages
}

fn text_of(page: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap()
}

/// Code of a page: fenced with its language, or indented by four.
fn blocks(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found = vec![("", Vec::new())];
    let mut fenced = false;
    for line in page.lines() {
        let fence = line.trim_start().strip_prefix("```");
        fenced ^= fence.is_some();
        let code = if fenced { Some(line) } else { line.strip_prefix("    ") };
        match (fence, code) {
            (Some(language), _) => found.push((language, Vec::new())),
            (None, Some(code)) => found.last_mut().unwrap().1.push(code),
            (None, None) if line.is_empty() => found.last_mut().unwrap().1.push(line),
            (None, None) => found.push(("", Vec::new())),
        }
    }
    found
}

/// Calls of the program in a page's code: arguments, and the remark behind them.
fn called(page: &str) -> Vec<(Vec<String>, &str)> {
    let lines = blocks(page).into_iter().flat_map(|(_, lines)| lines);
    let calls = lines.filter_map(|line| line.split_once("pgstrata ").filter(|(before, _)| is_call(before)));
    let remark = |rest: &'_ str| rest.find(" # ").map_or(rest.len(), |at| at + 3);
    calls.filter_map(|(_, rest)| Some((words(rest)?, &rest[remark(rest)..]))).collect()
}

/// Arguments of the commands that the text of a page names in code spans; required ones may be left out there.
fn named(page: &str) -> Vec<Vec<String>> {
    page.split('`').skip(1).step_by(2).filter_map(|span| words(span.strip_prefix("pgstrata ")?)).collect()
}

/// Arguments up to a remark, a redirection or a pipe; `None` for prose about the program.
fn words(rest: &str) -> Option<Vec<String>> {
    let ends = ["  ", " #", " | ", " || ", " > "].iter().filter_map(|end| rest.find(end));
    let rest = &rest[..ends.min().unwrap_or(rest.len())];
    let words = shlex::split(rest).unwrap_or_else(|| panic!("{rest}: a quote is not closed"));
    words.first()?.starts_with(|first: char| first.is_ascii_lowercase()).then_some(words)
}

/// True if only a path, a user, a machine or a pipe precedes the program's name in a line that calls it.
fn is_call(before: &str) -> bool {
    let before = before.trim();
    before.is_empty()
        || ["sudo", "machine", "bin/", "|"].iter().any(|word| before.starts_with(word) || before.ends_with(word))
}

fn arguments(words: &[String]) -> impl Iterator<Item = OsString> {
    std::iter::once("pgstrata").chain(words.iter().map(String::as_str)).map(OsString::from)
}

/// Reason for which the program refuses these arguments.
fn refusal(words: &[String]) -> Option<clap::Error> {
    super::command().try_get_matches_from(arguments(words)).err().filter(|error| error.exit_code() != 0)
}

/// The plan that a command takes by its bare name, if no shipped plan has that name.
fn unknown_plan(words: &[String]) -> Option<&str> {
    let takes = ["run", "plan", "plans", "cut"].contains(&words[0].as_str());
    let name = words.iter().skip(1).find(|word| !["show", "replay"].contains(&word.as_str()))?;
    let is_bare = name.starts_with(|first: char| first.is_ascii_lowercase()) && !name.contains(['/', '.']);
    (takes && is_bare && shipped::find(name).is_none()).then_some(name)
}

/// A fragment of a plan as a whole one: it may be of a stack or of `[postgres]`; what it lacks comes from `base`.
fn completed(fragment: &str, base: &Table) -> Result<String, toml::de::Error> {
    let mut plan: Table = toml::from_str(fragment)?;
    let of = |keys: &serde_json::Value| plan.keys().all(|key| keys["properties"].get(key).is_some());
    if !of(&SCHEMA) {
        let is_server = of(&SCHEMA["properties"]["postgres"]);
        if !is_server && !["device", "devices", "directory"].iter().any(|key| plan.contains_key(*key)) {
            plan.insert("device".to_owned(), Value::Table(toml::from_str("loop = \"2GiB\"")?));
        }
        let table = if is_server { plan } else { Table::from_iter([("page".to_owned(), Value::Table(plan))]) };
        plan = Table::from_iter([(if is_server { "postgres" } else { "stack" }.to_owned(), Value::Table(table))]);
    }
    for key in ["name", "stack", "postgres", "workload"] {
        if let (false, Some(value)) = (plan.contains_key(key), base.get(key)) {
            plan.insert(key.to_owned(), value.clone());
        }
    }
    Ok(toml::to_string(&plan).unwrap())
}

/// The plans of a page: those that are whole as they are there, fragments completed by the first one before them.
fn plans(page: &str) -> Vec<(bool, String)> {
    let mut base: Table = toml::from_str(plan::SHORT_EXAMPLE).unwrap();
    let mut found = Vec::new();
    for (_, lines) in blocks(page).into_iter().filter(|(language, _)| *language == "toml") {
        let text = lines.join("\n");
        let table: Table = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let is_whole = ["name", "stack", "workload"].iter().all(|key| table.contains_key(*key));
        found.push((is_whole, if is_whole { text } else { completed(&text, &base).unwrap() }));
        if is_whole {
            base = table;
        }
    }
    found
}

/// The plan, read beside the scripts that it names, and a profile.
fn parsed(text: &str) -> Plan {
    let folder = tempfile::tempdir().unwrap();
    for script in text.split('"').filter_map(|part| part.split('@').next()).filter(|part| part.ends_with(".sql")) {
        std::fs::write(folder.path().join(script), "select 1;").unwrap();
    }
    let profile = include_str!("../../tests/fixtures/profile/busy.toml");
    std::fs::write(folder.path().join("profile.toml"), profile).unwrap();
    let file = folder.path().join("p.toml");
    std::fs::write(&file, text).unwrap();
    plan::read(&file, &CATALOGUE, plan::Paint::Plain).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

#[test]
fn every_command_in_the_pages_is_accepted() {
    let mut refused = Vec::new();
    let mut seen = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let called: Vec<Vec<String>> = called(&text).into_iter().map(|(words, _)| words).collect();
        let named = named(&text);
        seen += called.len() + named.len();
        let lacks = |error: &clap::Error| error.kind() == clap::error::ErrorKind::MissingRequiredArgument;
        let unknown = called.iter().chain(&named).filter_map(|words| unknown_plan(words));
        refused.extend(unknown.map(|name| format!("{}: no plan {name}", page.display())));
        let of_called = called.iter().filter_map(|words| Some((refusal(words)?, words)));
        let of_named = named.iter().filter_map(|words| Some((refusal(words).filter(|why| !lacks(why))?, words)));
        refused.extend(of_called.chain(of_named).map(|(why, words)| format!("{}: {words:?}: {why}", page.display())));
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(seen > 100, "{seen}");
}

#[test]
fn every_plan_in_the_pages_is_accepted() {
    let mut seen = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for (language, lines) in blocks(&text) {
            let is_plan = lines.iter().any(|line| line.starts_with("[stack") || line.starts_with("[workload"));
            assert!(!is_plan || language == "toml", "{}: a plan outside of ```toml: {lines:?}", page.display());
        }
        for (_, plan) in plans(&text) {
            parsed(&plan);
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn commands_in_the_pages_that_take_seconds_run() {
    let mut calls = BTreeSet::new();
    for text in pages().into_iter().map(|page| std::fs::read_to_string(page).unwrap()) {
        calls.extend(called(&text).into_iter().map(|(words, _)| words).chain(named(&text)));
    }
    // `NAME` stands for something, and `--bug` writes a file.
    let is_whole = |line: &str| !line.contains(|c: char| c.is_ascii_uppercase()) && !line.contains("--bug");
    calls.retain(|words| RUN.iter().any(|start| words.join(" ").starts_with(start)) && is_whole(&words.join(" ")));
    for words in &calls {
        assert_eq!(super::run(arguments(words)), 0, "{words:?}");
    }
    assert!(calls.len() >= 18, "{calls:?}");
}

#[test]
fn answers_are_plans_that_server_and_kernel_accept() {
    let place = tempfile::tempdir().unwrap();
    let (file, state) = (place.path().join("answer.toml"), place.path().join("state"));
    let whole = plans(&text_of("docs/answers.md")).into_iter().filter(|(is_whole, _)| *is_whole);
    for (_, plan) in whole {
        std::fs::write(&file, &plan).unwrap();
        let [file, state] = [&file, &state].map(|path| path.display().to_string());
        let code = super::run(arguments(&["plan".to_owned(), file, "--state".to_owned(), state]));
        assert!([0, 3].contains(&code), "exit code {code}\n{plan}");
    }
}

#[test]
fn times_of_plans_in_the_pages_are_the_forecast() {
    let memory = Bytes(16 << 30);
    let (mut seen, mut stale) = (0, Vec::new());
    for page in ["docs/answers.md", "docs/published.md"] {
        let text = text_of(page);
        let of_page: Vec<Plan> = plans(&text).iter().map(|(_, plan)| parsed(plan)).collect();
        for (words, remark) in called(&text).into_iter().filter(|(words, _)| words[0] == "run") {
            let name = words[1].trim_end_matches(".toml");
            let here = of_page.iter().find(|plan| plan.name == name).cloned();
            let mut plan = here.unwrap_or_else(|| parsed(shipped::find(name).unwrap().text));
            let full = rounded(expected_without_images(&plan, memory).unwrap());
            make_quick(&mut plan).unwrap();
            let quick = rounded(expected_without_images(&plan, memory).unwrap());
            let forecast = format!("{full}; with --quick {quick}");
            if remark != forecast {
                stale.push(format!("{page}: {name}: {remark} is {forecast}"));
            }
            seen += 1;
        }
    }
    assert!(stale.is_empty() && seen >= 14, "{seen} seen; {stale:#?}");
}

#[test]
fn published_figures_in_the_pages_are_those_of_the_shelf() {
    let text = text_of("docs/published.md");
    let mut seen = 0;
    for section in text.split("\n## ").skip(1) {
        let name = section.split("`pgstrata shelf show ").nth(1).unwrap().split('`').next().unwrap();
        let shown = report::shelf::show(&analyse::shelf::find(&shelf::open(name).unwrap()));
        let dense = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        let shown = dense(&shown);
        let cells = section.lines().filter(|line| line.starts_with("| ")).flat_map(|line| line.split('|'));
        for figure in cells.filter(|cell| cell.trim().starts_with(|first: char| first.is_ascii_digit())) {
            assert!(shown.contains(&dense(figure)), "{name}: {figure}");
            seen += 1;
        }
    }
    assert!(seen >= 18, "{seen}");
}

#[test]
fn blocks_and_fragments_are_found_as_they_are() {
    let page = "a\n\n    pgstrata plans    # lists\n\n```toml\nx = 1\n\n    y = 2\n```\nb `pgstrata run no-such`";
    let code: Vec<_> = blocks(page).into_iter().filter(|(_, lines)| lines.iter().any(|l| !l.is_empty())).collect();
    assert_eq!(code, [("", vec!["", "pgstrata plans    # lists", ""]), ("toml", vec!["x = 1", "", "    y = 2"])]);
    assert_eq!(called(page), [(vec!["plans".to_owned()], "lists")]);
    assert_eq!(named(page).iter().filter_map(|words| unknown_plan(words)).collect::<Vec<_>>(), ["no-such"]);
    let base = toml::from_str(plan::SHORT_EXAMPLE).unwrap();
    for fragment in ["filesystem = \"xfs\"", "build = { version = \"15\" }", "guest = \"trixie\"", "blocks = 3"] {
        parsed(&completed(fragment, &base).unwrap());
    }
    let wrong = completed("filesystem = \"xsf\"", &base).unwrap();
    assert!(plan::parse(&wrong, "p.toml", &CATALOGUE).is_err());
}

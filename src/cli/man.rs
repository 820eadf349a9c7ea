//! `pgstrata man`: manual pages of the program, each subcommand and the plan file; the same descriptions as Markdown.

mod markdown;

use super::out;
use crate::error::{Context, EXIT_CODES, Error, Result};
use crate::plan::CatalogueEntry;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use std::path::{Path, PathBuf};

/// Print the manual pages, or write them to a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pgstrata man | man -l -                         read them now
  pgstrata man --out /usr/local/share/man         install them: man1/pgstrata.1, ..., man5/pgstrata-plan.5
  pgstrata man --markdown docs                    every layer, workload, sampler, plan and command, as Markdown")]
pub struct Args {
    /// Write the pages to this folder, created if missing, instead of printing them
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write a Markdown page for each layer, workload, sampler, shipped plan and subcommand to this folder, created if missing
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    markdown: Option<PathBuf>,
}

/// Name of the page of the plan file.
const PLAN_PAGE: &str = "pgstrata-plan.5";

/// Files that every command writes and reads.
const FILES: [(&str, &str); 4] = [
    ("results/", "One folder per run, import, merge and pull, and the evidence of cuts (--results DIR)."),
    (
        "/var/lib/pgstrata",
        "Images, unless the plan names a folder (in); templates and ledgers of runs by root, of other users in \
         ~/.local/state/pgstrata (--state DIR).",
    ),
    ("/run/pgstrata-*", "Mount points and private sockets of an active run."),
    (
        "/var/cache/pgstrata, ~/.cache/pgstrata",
        "Guests, PostgreSQL built for plans (pgstrata postgres), and versions downloaded by the setup. `auto` in a plan means the newest version installed \
         anywhere.",
    ),
];

/// Writes or prints the pages.
///
/// # Errors
/// If the folder or standard output cannot be written.
pub fn run(args: &Args) -> Result<u8> {
    if let Some(folder) = &args.markdown {
        markdown::pages().into_iter().try_for_each(|(path, text)| write(&folder.join(path), text.as_bytes()))?;
        return Ok(0);
    }
    let pages = pages()?;
    match &args.out {
        Some(folder) => {
            for (name, page) in pages {
                let section = format!("man{}", name.rsplit('.').next().unwrap_or("1"));
                write(&folder.join(section).join(name), &page)?;
            }
        }
        None => pages.into_iter().try_for_each(|(_, page)| out::bytes(&page))?,
    }
    Ok(0)
}

/// Writes a page, and creates the folders above it.
fn write(path: &Path, page: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).or_host(|| format!("create the folder {}", folder.display()))?;
    std::fs::write(path, page).or_host(|| format!("write {}", path.display()))
}

/// File name and text of each page, the program's own first, the plan file's last.
fn pages() -> Result<Vec<(String, Vec<u8>)>> {
    let mut command = super::command();
    command.build();
    let shown: Vec<&clap::Command> = command.get_subcommands().filter(|sub| !sub.is_hide_set()).collect();
    let names: Vec<String> = shown.iter().map(|sub| format!("pgstrata-{}", sub.get_name())).collect();
    let pages = std::iter::once(&command).chain(shown).map(|command| page(command, &names));
    let pages = pages.collect::<std::io::Result<Vec<_>>>();
    let mut pages = pages.map_err(|e| Error::bug(e.to_string()).while_doing("write a manual page"))?;
    pages.push((PLAN_PAGE.to_owned(), plan_page().into_bytes()));
    Ok(pages)
}

fn page(command: &clap::Command, names: &[String]) -> std::io::Result<(String, Vec<u8>)> {
    let man = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    let is_program = command.get_name() == "pgstrata";
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut roff = Roff::new();
    let after = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let (body, status) = split_status(after.as_deref().unwrap_or_default());
    for (heading, body) in headed(body) {
        section(&mut roff, &heading, &body);
    }
    roff.control("SH", ["EXIT STATUS"]);
    if let Some(status) = status {
        roff.text([roman(status)]).control("PP", []);
    }
    if is_program || status.is_none() {
        pairs(&mut roff, EXIT_CODES.iter().map(|(code, meaning)| (code.to_string(), (*meaning).to_owned())));
    }
    roff.control("SH", ["FILES"]);
    pairs(&mut roff, FILES.iter().map(|(path, what)| ((*path).to_owned(), (*what).to_owned())));
    roff.control("SH", ["SEE ALSO"]);
    let own = man.get_filename();
    let others = std::iter::once("pgstrata".to_owned()).chain(names.iter().cloned()).map(|name| (name, "1"));
    let others = others.chain([("pgstrata-plan".to_owned(), "5")]).filter(|(name, of)| format!("{name}.{of}") != own);
    roff.text(others.flat_map(|(name, of)| [bold(name), roman(format!("({of})  "))]).collect::<Vec<Inline>>());
    text.extend(roff.to_roff().into_bytes());
    Ok((own, text))
}

/// Splits a help text at its last `Exit code:` or `Exit status:`.
fn split_status(help: &str) -> (&str, Option<&str>) {
    match ["Exit code:", "Exit status:"].into_iter().find_map(|mark| help.rsplit_once(mark)) {
        // That is the common table, which every page has.
        Some((before, status)) if status.trim_start_matches(' ').starts_with('\n') => (before, None),
        Some((before, status)) => (before, Some(status.trim())),
        None => (help, None),
    }
}

/// Sections of a help text: those that begin with a heading (`Examples:`), and NOTES for the rest.
fn headed(help: &str) -> Vec<(String, String)> {
    let mut parts: Vec<(String, String)> = Vec::new();
    for line in help.lines() {
        let is_heading = line.ends_with(':') && line.split(' ').count() == 1;
        match (is_heading, parts.last_mut()) {
            (true, _) => parts.push((line.trim_end_matches(':').to_uppercase(), String::new())),
            // Unindented text after the examples is not an example.
            (false, Some((heading, _))) if heading == "EXAMPLES" && !line.is_empty() && !line.starts_with(' ') => {
                parts.push(("NOTES".to_owned(), format!("{line}\n")));
            }
            (false, Some((_, body))) => body.push_str(&format!("{line}\n")),
            (false, None) => parts.push(("NOTES".to_owned(), format!("{line}\n"))),
        }
    }
    parts.retain(|(_, body)| !body.trim().is_empty());
    parts
}

/// A section; indented lines are kept, the rest is filled to the reader's width.
fn section(roff: &mut Roff, heading: &str, body: &str) {
    roff.control("SH", [heading]);
    for paragraph in body.trim_matches('\n').split("\n\n") {
        let mut lines = paragraph.lines().peekable();
        while let Some(line) = lines.next() {
            if line.starts_with(' ') {
                roff.control("EX", []);
                roff.text([roman(line)]);
                while let Some(next) = lines.next_if(|next| next.starts_with(' ')) {
                    roff.text([roman(next)]);
                }
                roff.control("EE", []);
            } else {
                roff.text([roman(line)]);
            }
        }
        roff.control("PP", []);
    }
}

fn pairs(roff: &mut Roff, pairs: impl IntoIterator<Item = (String, String)>) {
    for (name, what) in pairs {
        roff.control("TP", []).text([bold(name)]).text([roman(what)]);
    }
}

/// Page of the plan file, from the descriptions that plans are checked against.
fn plan_page() -> String {
    let catalogue = super::catalogue();
    let schema = crate::plan::schema(&catalogue);
    let mut roff = Roff::new();
    roff.control("TH", ["pgstrata-plan", "5", "", concat!("pgstrata ", env!("CARGO_PKG_VERSION"))]);
    roff.control("SH", ["NAME"])
        .text([roman("pgstrata-plan - plan file of pgstrata: the storage stacks to compare, in TOML")]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.text([roman(
        "A plan is a TOML file. Every stack is measured under every workload; an option or setting that is a list of values \
         is an axis, and each combination is a case. `pgstrata plan FILE` checks a plan and shows its cases, \
         `pgstrata plan --example --all` prints a commented one with every key, `pgstrata plan --schema` a JSON schema.",
    )]);
    roff.control("SH", ["KEYS"]);
    let keys = schema["properties"].as_object().into_iter().flatten();
    let keys = keys.map(|(key, spec)| (key.clone(), spec["description"].as_str().unwrap_or_default().to_owned()));
    pairs(&mut roff, keys);
    for (heading, entries) in [("LAYERS", &catalogue.layers), ("WORKLOADS", &catalogue.workloads)] {
        roff.control("SH", [heading]);
        for entry in entries {
            described(&mut roff, entry);
        }
    }
    roff.control("SH", ["SEE ALSO"]).text([bold("pgstrata-plan"), roman("(1), "), bold("pgstrata-run"), roman("(1)")]);
    roff.to_roff()
}

fn described(roff: &mut Roff, entry: &CatalogueEntry) {
    roff.control("SS", [entry.name]).text([roman(entry.doc)]);
    for take in entry.takes {
        let number = if take.least == 0 { ", optional" } else { "" };
        roff.control("TP", []).text([bold(take.key), roman(format!(" ({}{number})", take.kind.word()))]);
        roff.text([roman(format!("What it uses as its {}.", take.role.word()))]);
    }
    for option in entry.options {
        let default = option.default.map(|default| format!(", default {default}")).unwrap_or_default();
        let needed = if option.required { ", required" } else { "" };
        let kind = crate::plan::describe_kind(option.kind);
        let details = roman(format!("{default}{needed})"));
        roff.control("TP", []).text([bold(option.key), roman(" ("), italic(kind), details]);
        roff.text([roman(option.doc)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_has_a_man_page_with_the_usual_sections() {
        let pages = pages().unwrap();
        assert_eq!(pages[0].0, "pgstrata.1");
        let shown = super::super::command().get_subcommands().filter(|sub| !sub.is_hide_set()).count();
        assert_eq!(pages.len(), 2 + shown);
        for (name, text) in pages.iter().filter(|(name, _)| name != PLAN_PAGE) {
            let text = String::from_utf8(text.clone()).unwrap();
            assert!(name.starts_with("pgstrata") && name.ends_with(".1"), "{name}");
            for wanted in [".SH EXAMPLES", ".SH \"EXIT STATUS\"", ".SH FILES", ".SH \"SEE ALSO\""] {
                assert!(text.contains(wanted), "{name} has no {wanted}:\n{text}");
            }
            assert!(!text.contains("EXTRA") && !text.contains("Exit code:"), "{name}");
        }
    }

    #[test]
    fn the_plan_page_names_every_layer_workload_and_option() {
        let page = plan_page();
        let catalogue = super::super::catalogue();
        for entry in catalogue.layers.iter().chain(&catalogue.workloads) {
            assert!(page.contains(&format!(".SS {}", entry.name)), "{}", entry.name);
            for option in entry.options {
                assert!(page.contains(&option.key.replace('-', "\\-")), "{}", option.key);
            }
        }
    }
}

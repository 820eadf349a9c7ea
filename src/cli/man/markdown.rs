//! `pgstrata man --markdown`: documentation pages, one for each layer, workload, sampler, shipped plan and subcommand,
//! from the descriptions that plans and columns are checked against.

use crate::cluster::client::ServerAddress;
use crate::plan::{CatalogueEntry, describe_kind, shipped};
use crate::record::facts::DeviceFacts;
use crate::record::options::{OptionKind, OptionSpec};
use crate::record::stack::{BaseName, Take};
use crate::telemetry::{self, SampledObjects, Sampler};
use std::fmt::Write;

/// A page: path below the documentation folder, and text.
pub(super) type Page = (String, String);

/// Introduction of each list of pages.
const LAYERS: &str = "A stack is a graph of layers: a device, maybe volumes, a filesystem. [Filesystems](filesystems.md) and \
                      [volumes](volumes.md) say how stacks are written; these pages have every option. A list of values is an axis.";
const WORKLOADS: &str = "What a plan measures on its stacks. A list of values is an axis.";
const SAMPLERS: &str = "What is read once a second during a trial. Counters are stored as they were read: a rate is the difference of \
                        two rows ([the run folder](run-folder.md)).";
const PLANS: &str = "Plans that the program carries. `pgstrata run NAME` runs one, `--quick` in minutes.";
const COMMANDS: &str = "The help of every subcommand.";

/// All pages, with the list of each kind before its pages.
pub(super) fn pages() -> Vec<Page> {
    let catalogue = crate::cli::catalogue();
    let mut pages = Vec::new();
    list(&mut pages, "layers", "Layers", LAYERS, &described(&catalogue.layers, layer));
    list(&mut pages, "workloads", "Workloads", WORKLOADS, &described(&catalogue.workloads, workload));
    let samplers = telemetry::ALL.iter().map(|one| {
        let (name, doc) = one.about();
        (name.to_owned(), doc.to_owned(), sampler(*one))
    });
    list(&mut pages, "samplers", "Samplers", SAMPLERS, &samplers.collect::<Vec<_>>());
    let plans = shipped::all().map(|plan| {
        let text = format!("{}\n## The plan\n\n```toml\n{}```\n", plan.page, plan.text);
        (plan.name.to_owned(), plan.question(), text)
    });
    list(&mut pages, "plans", "Plans that ship with the program", PLANS, &plans.collect::<Vec<_>>());
    list(&mut pages, "commands", "Commands", COMMANDS, &commands());
    pages
}

fn described(entries: &[CatalogueEntry], page: fn(&CatalogueEntry) -> String) -> Vec<Described> {
    entries.iter().map(|entry| (entry.name.to_owned(), entry.doc.to_owned(), page(entry))).collect()
}

/// An item of a kind: name, description, page.
type Described = (String, String, String);

fn list(pages: &mut Vec<Page>, folder: &str, title: &str, lead: &str, of: &[Described]) {
    let mut text = format!("# {title}\n\n{lead}\n\n| | |\n|---|---|\n");
    text.extend(of.iter().map(|(name, doc, _)| format!("| [{name}]({folder}/{name}.md) | {} |\n", cell(doc))));
    pages.push((format!("{folder}.md"), text));
    pages.extend(of.iter().map(|(name, _, page)| (format!("{folder}/{name}.md"), page.clone())));
}

fn layer(entry: &CatalogueEntry) -> String {
    let mut text = format!("# {}\n\n{}\n\nOffers a {}.\n", entry.name, prose(entry.doc), entry.offers.word());
    if !entry.takes.is_empty() {
        text.push_str("\n## Stands on\n\n| key | what | as its | meaning |\n|---|---|---|---|\n");
        for take in entry.takes {
            let groups =
                if take.groups.is_empty() { String::new() } else { format!(" Groups: {}.", take.groups.join(", ")) };
            let (kind, role, doc) = (number(take), take.role.word(), cell(take.doc));
            text.push_str(&format!("| `{}` | {kind} | {role} | {doc}{groups} |\n", take.key));
        }
    }
    text + &options(entry.options)
}

/// Number of inputs: `1 device`, `2 or more devices`.
fn number(take: &Take) -> String {
    let word = take.kind.word();
    match (take.least, take.most) {
        (0, 1) => format!("at most 1 {word}"),
        (1, 1) => format!("1 {word}"),
        (0, usize::MAX) => format!("any number of {word}s"),
        (0, most) => format!("up to {most} {word}s"),
        (least, usize::MAX) => format!("{least} or more {word}s"),
        (least, most) => format!("{least} to {most} {word}s"),
    }
}

fn workload(entry: &CatalogueEntry) -> String {
    let server = if entry.needs_server { "Runs against a PostgreSQL." } else { "Needs no PostgreSQL." };
    format!("# {}\n\n{}\n\n{server}\n{}", entry.name, prose(entry.doc), options(entry.options))
}

fn options(specs: &[OptionSpec]) -> String {
    if specs.is_empty() {
        return "\nIt has no options.\n".to_owned();
    }
    let mut text = "\n## Options\n\n| option | value | default | meaning |\n|---|---|---|---|\n".to_owned();
    rows(&mut text, "", specs);
    text
}

fn rows(text: &mut String, above: &str, specs: &[OptionSpec]) {
    for spec in specs {
        let default = if spec.required { "required" } else { spec.default.unwrap_or_default() };
        let (kind, key) = (cell(&describe_kind(spec.kind)), format!("{above}{}", spec.key));
        text.push_str(&format!("| `{key}` | {kind} | {} | {} |\n", cell(default), cell(spec.doc)));
        if let OptionKind::Table(specs) = spec.kind {
            rows(text, &format!("{key}."), specs);
        }
    }
}

/// Columns of a stack with one device and one pool.
fn sampler(sampler: &dyn Sampler) -> String {
    let server = ServerAddress { socket: "/".into(), data: "/".into(), database: String::new(), user: String::new() };
    let target = SampledObjects {
        devices: vec![(BaseName("data".to_owned()), DeviceFacts { name: "vda".to_owned(), ..DeviceFacts::default() })],
        pools: vec!["tank".to_owned()],
        server: Some(server),
    };
    let columns = sampler.columns(&target);
    let (name, doc) = sampler.about();
    let mut text = format!("# {name}\n\n{}\n", prose(doc));
    if columns.iter().any(|column| column.name.starts_with("dev_data_")) {
        text.push_str("\nEach device of a stack has these columns: `data` stands for the name of its node.\n");
    }
    text.push_str("\n## Columns\n\n| column | unit | kind | meaning |\n|---|---|---|---|\n");
    for column in columns {
        let kind = format!("{:?}", column.kind).to_lowercase();
        text.push_str(&format!("| `{}` | {} | {kind} | {} |\n", column.name, cell(&column.unit), cell(&column.doc)));
    }
    text
}

fn commands() -> Vec<Described> {
    let mut command = crate::cli::help::at(80, crate::cli::command());
    command.build();
    let shown = command.get_subcommands_mut().filter(|one| !one.is_hide_set());
    let pages = shown.map(|one| {
        let (name, about) = (one.get_name().to_owned(), one.get_about().map(ToString::to_string).unwrap_or_default());
        let mut text = format!("# pgstrata {name}\n\n");
        // Writing to a string cannot fail.
        write!(text, "```text\n{}\n```\n", one.render_long_help().to_string().trim_end()).unwrap_or_default();
        (name, about, text)
    });
    pages.collect()
}

/// Escapes a sentence for Markdown: outside backticks, tags and emphasis are text.
fn prose(text: &str) -> String {
    let pieces = text.split('`').enumerate().map(|(place, piece)| match place % 2 {
        0 => piece.replace('<', "&lt;").replace('*', "\\*"),
        _ => piece.to_owned(),
    });
    pieces.collect::<Vec<_>>().join("`")
}

/// The same in a table.
fn cell(text: &str) -> String {
    prose(text).replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str) -> String {
        pages().into_iter().find(|(at, _)| at == path).unwrap_or_else(|| panic!("no page {path}")).1
    }

    #[test]
    fn every_layer_workload_sampler_and_plan_has_a_complete_page() {
        let catalogue = crate::cli::catalogue();
        for (folder, entries) in [("layers", &catalogue.layers), ("workloads", &catalogue.workloads)] {
            let list = page(&format!("{folder}.md"));
            for entry in entries {
                let text = page(&format!("{folder}/{}.md", entry.name));
                assert!(list.contains(&format!("({folder}/{}.md)", entry.name)), "{}", entry.name);
                let keys = entry.options.iter().map(|option| option.key).chain(entry.takes.iter().map(|take| take.key));
                for key in keys {
                    assert!(text.contains(&format!("| `{key}` |")), "{}: {key}", entry.name);
                }
            }
        }
        assert!(page("layers/md.md").contains("| `on` | 2 to 64 devices | data |"), "{}", page("layers/md.md"));
        for one in telemetry::ALL {
            let (name, _) = one.about();
            assert!(page(&format!("samplers/{name}.md")).contains("| counter |"), "{name}");
        }
        assert!(page("samplers/diskstats.md").contains("| `dev_data_flushes` | operations | counter |"));
        for plan in shipped::all() {
            assert!(page(&format!("plans/{}.md", plan.name)).contains(plan.text), "{}", plan.name);
        }
        assert!(page("commands/probe.md").contains("--require"));
    }

    #[test]
    fn tables_escape_what_ends_a_cell_or_begins_a_tag() {
        assert_eq!(cell("a|b <c> `d<e|f*` g*"), "a\\|b &lt;c> `d<e\\|f*` g\\*");
    }

    #[test]
    fn table_rows_have_as_many_cells_as_the_head() {
        for (path, text) in pages() {
            let mut code = false;
            let mut wanted = None;
            for line in text.lines() {
                code ^= line.starts_with("```");
                if code || !line.starts_with('|') {
                    wanted = None;
                    continue;
                }
                let cells = line.replace("\\|", "").matches('|').count();
                assert_eq!(cells, *wanted.get_or_insert(cells), "{path}: {line}");
            }
        }
    }
}

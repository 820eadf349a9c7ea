//! `pgstrata doctor`: shows what this machine can measure, and possible disturbances.

use super::out;
use super::places::PlaceArgs;
use crate::error::{EXIT_INCOMPLETE, Result};
use crate::host::Host;
use crate::provision::disk::FoundDisk;
use crate::report::text::paragraph;
use crate::run::doctor::{self, Diagnosis};
use crate::run::io_uring::{IoUring, Obstacle};
use crate::units::Bytes;

/// Show what this machine can measure, and what would disturb it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata doctor          what can be measured here, what is missing and how to install it
  pgstrata doctor --json   the same as JSON

Changes nothing. Exit code: 0 at least one stack and one PostgreSQL are usable, 1 otherwise.")]
pub struct Args {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    places: PlaceArgs,
}

/// Looks and prints.
///
/// # Errors
/// If standard output cannot be written.
pub fn run(args: &Args) -> Result<u8> {
    let places = args.places.places()?;
    let diagnosis = doctor::diagnose(&Host::this(), &places.state, &places.results);
    out::json_or(args.json, &diagnosis, || shown(&diagnosis))?;
    let usable = diagnosis.layers.iter().any(|layer| layer.lacks.is_empty()) && !diagnosis.postgres.is_empty();
    Ok(if usable { 0 } else { EXIT_INCOMPLETE })
}

/// Lines, each with its label.
type Lines = Vec<(String, String)>;

const OK: &str = "  ok       ";
const PLAIN: &str = "  ";

/// Labelled lines, folded at the width.
fn shown(diagnosis: &Diagnosis) -> String {
    let layers = diagnosis.layers.iter().flat_map(|layer| {
        let ok = layer.lacks.is_empty().then(|| (OK.to_owned(), layer.layer.clone()));
        let mark = format!("  missing  {:<10} ", layer.layer);
        let missing = layer.lacks.iter().map(move |lack| (mark.clone(), format!("{}; {}", lack.what, lack.hint)));
        ok.into_iter().chain(missing)
    });
    let space = diagnosis.space.iter().map(|space| {
        let free = space.free_bytes.map_or_else(|| "unknown".to_owned(), |free| format!("{free} free"));
        (PLAIN.to_owned(), format!("{}: {free}, {}", space.purpose, space.folder.display()))
    });
    let settings = diagnosis.kernel_settings.iter();
    let settings = settings.map(|setting| (format!("  {:<28} ", setting.name), setting.value.clone()));
    let found = diagnosis.disturbances.iter();
    let found = found.map(|found| (PLAIN.to_owned(), format!("{}: {}; {}", found.what, found.detail, found.advice)));
    let sections = [
        ("Machine", machine(diagnosis)),
        ("Layers", layers.collect()),
        ("Disks", or_none(disks(diagnosis), PLAIN, "none found")),
        ("PostgreSQL", servers(diagnosis)),
        ("Space", space.collect()),
        ("Kernel settings", settings.collect()),
        ("Sources of disturbance", or_none(found.collect(), PLAIN, "nothing found")),
    ];
    let section = |(title, lines): (&str, Lines)| {
        let lines: String = lines.iter().map(|(mark, text)| paragraph(mark, text)).collect();
        format!("{title}\n{lines}")
    };
    sections.map(section).join("\n")
}

fn or_none(lines: Lines, mark: &str, text: &str) -> Lines {
    if lines.is_empty() { vec![(mark.to_owned(), text.to_owned())] } else { lines }
}

/// The servers, and the verdict on `io_method = io_uring`, as for a layer.
fn servers(diagnosis: &Diagnosis) -> Lines {
    let servers = diagnosis.postgres.iter();
    let servers = servers.map(|it| (OK.to_owned(), format!("{} {}", it.version, it.bin.display()))).collect();
    let why = "no installation with postgres, initdb and pgbench found; apt-get install postgresql";
    let IoUring { refused, low_memory } = &diagnosis.io_uring;
    let obstacles = [("refused", refused), ("low     ", low_memory)].into_iter().filter_map(|(word, found)| {
        let Obstacle { why, hint } = found.as_ref()?;
        Some((format!("  {word}  io_method = io_uring: "), format!("{why}; {hint}")))
    });
    let allowed = "io_method = io_uring: the kernel allows it; the server must be built with liburing";
    [or_none(servers, "  missing  ", why), or_none(obstacles.collect(), OK, allowed)].concat()
}

/// Each disk as a plan names it, with properties that affect the speed of syncs.
fn disks(diagnosis: &Diagnosis) -> Lines {
    let lines = |disk: &FoundDisk| {
        let size = disk.size_bytes.map(|bytes| Bytes(bytes).to_string());
        let kind = disk.rotational.map(|rotates| if rotates { "rotating" } else { "non-rotating" }.to_owned());
        let scheduler = disk.scheduler.as_ref().map(|name| format!("scheduler {name}"));
        let facts: Vec<String> =
            [size, disk.model.clone(), kind, disk.write_cache.clone(), scheduler].into_iter().flatten().collect();
        let mark = if disk.in_use.is_empty() { "  free     " } else { "  in use   " };
        let path = disk.by_id.as_ref().unwrap_or(&disk.path);
        let identity = match (&disk.serial, &disk.wwn) {
            (Some(serial), _) => format!("serial = \"{serial}\""),
            (None, Some(wwn)) => format!("wwn = \"{wwn}\""),
            (None, None) => "reports neither serial nor WWN, so it cannot be used in a plan".to_owned(),
        };
        let first = (mark.to_owned(), format!("{}: {}", disk.path.display(), facts.join(", ")));
        let others = [format!("disk = \"{}\", {identity}", path.display())].into_iter().chain(disk.in_use.clone());
        [first].into_iter().chain(others.map(|text| (" ".repeat(OK.len()), text))).collect::<Lines>()
    };
    diagnosis.disks.iter().flat_map(lines).collect()
}

fn machine(diagnosis: &Diagnosis) -> Lines {
    let host = &diagnosis.host;
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let root = if diagnosis.root { "yes" } else { "no: only `directory` stacks can be built" };
    let user = diagnosis.server_user.as_deref().or(diagnosis.server_user_problem.as_deref());
    let lines = [
        ("  kernel       ", format!("{}, {}", host.kernel, or_unknown(&host.distribution))),
        ("  CPU          ", format!("{} x {}", host.cpus, or_unknown(&host.cpu_model))),
        ("  memory       ", Bytes(host.memory_bytes).to_string()),
        ("  root         ", root.to_owned()),
        ("  server user  ", user.unwrap_or("unknown").to_owned()),
    ];
    lines.map(|(mark, text)| (mark.to_owned(), text)).to_vec()
}

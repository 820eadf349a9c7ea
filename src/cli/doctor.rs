//! `pgstrata doctor`: what this machine can measure, and what would disturb it.

use super::out;
use super::places::PlaceArgs;
use crate::error::{EXIT_INCOMPLETE, Result};
use crate::host::Host;
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
/// When standard output takes no more.
pub fn run(args: &Args) -> Result<u8> {
    let places = args.places.places()?;
    let diagnosis = doctor::diagnose(&Host::this(), &places.state, &places.results);
    if args.json {
        out::json(&diagnosis)?;
    } else {
        out::fitted(|| shown(&diagnosis))?;
    }
    let usable = diagnosis.layers.iter().any(|layer| layer.lacks.is_empty()) && !diagnosis.postgres.is_empty();
    Ok(if usable { 0 } else { EXIT_INCOMPLETE })
}

/// Lines behind names, folded at the width.
fn shown(diagnosis: &Diagnosis) -> String {
    let mut text = machine(diagnosis);
    text.push_str("\nLayers\n");
    for layer in &diagnosis.layers {
        if layer.lacks.is_empty() {
            text.push_str(&format!("  ok       {}\n", layer.layer));
        }
        for lack in &layer.lacks {
            let mark = format!("  missing  {:<10} ", layer.layer);
            text.push_str(&paragraph(&mark, &format!("{}; {}", lack.what, lack.hint)));
        }
    }
    text.push_str(&disks(diagnosis));
    text.push_str("\nPostgreSQL\n");
    if diagnosis.postgres.is_empty() {
        let why = "no installation with postgres, initdb and pgbench found; apt-get install postgresql";
        text.push_str(&paragraph("  missing  ", why));
    }
    for postgres in &diagnosis.postgres {
        text.push_str(&paragraph("  ok       ", &format!("{} {}", postgres.version, postgres.bin.display())));
    }
    text.push_str(&io_uring(&diagnosis.io_uring));
    text.push_str("\nSpace\n");
    for space in &diagnosis.space {
        let free = space.free_bytes.map_or_else(|| "unknown".to_owned(), |free| format!("{free} free"));
        text.push_str(&paragraph("  ", &format!("{}: {free}, {}", space.purpose, space.folder.display())));
    }
    text.push_str("\nKernel settings\n");
    for setting in &diagnosis.kernel_settings {
        text.push_str(&paragraph(&format!("  {:<28} ", setting.name), &setting.value));
    }
    text.push_str("\nSources of disturbance\n");
    if diagnosis.disturbances.is_empty() {
        text.push_str("  nothing found\n");
    }
    for found in &diagnosis.disturbances {
        text.push_str(&paragraph("  ", &format!("{}: {}; {}", found.what, found.detail, found.advice)));
    }
    text
}

/// The verdict on `io_method = io_uring`, as for a layer.
fn io_uring(found: &IoUring) -> String {
    let IoUring { refused, low_memory } = found;
    let lines = [("refused", refused), ("low     ", low_memory)]
        .into_iter()
        .filter_map(|(word, found)| Some((word, found.as_ref()?)));
    let text: String = lines
        .map(|(word, Obstacle { why, hint })| {
            paragraph(&format!("  {word}  io_method = io_uring: "), &format!("{why}; {hint}"))
        })
        .collect();
    if text.is_empty() {
        return paragraph(
            "  ok       ",
            "io_method = io_uring: the kernel allows it; the server must be built with liburing",
        );
    }
    text
}

/// Each disk as a plan names it, with what else decides how fast it syncs.
fn disks(diagnosis: &Diagnosis) -> String {
    let mut text = "\nDisks\n".to_owned();
    if diagnosis.disks.is_empty() {
        text.push_str("  none found\n");
    }
    for disk in &diagnosis.disks {
        let size = disk.size_bytes.map(|bytes| Bytes(bytes).to_string());
        let kind = disk.rotational.map(|rotates| if rotates { "rotating" } else { "non-rotating" }.to_owned());
        let scheduler = disk.scheduler.as_ref().map(|name| format!("scheduler {name}"));
        let facts: Vec<String> =
            [size, disk.model.clone(), kind, disk.write_cache.clone(), scheduler].into_iter().flatten().collect();
        let mark = if disk.in_use.is_empty() { "  free     " } else { "  in use   " };
        text.push_str(&paragraph(mark, &format!("{}: {}", disk.path.display(), facts.join(", "))));
        let path = disk.by_id.as_ref().unwrap_or(&disk.path);
        let identity = match (&disk.serial, &disk.wwn) {
            (Some(serial), _) => format!("serial = \"{serial}\""),
            (None, Some(wwn)) => format!("wwn = \"{wwn}\""),
            (None, None) => "reports neither serial nor WWN, so it cannot be used in a plan".to_owned(),
        };
        text.push_str(&paragraph("           ", &format!("disk = \"{}\", {identity}", path.display())));
        for used in &disk.in_use {
            text.push_str(&paragraph("           ", used));
        }
    }
    text
}

fn machine(diagnosis: &Diagnosis) -> String {
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
    lines.iter().fold("Machine\n".to_owned(), |text, (mark, value)| text + &paragraph(mark, value))
}

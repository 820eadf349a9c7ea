//! `pgstrata doctor`: what this machine can measure, and what would disturb it.

use super::out;
use super::places::PlaceArgs;
use crate::error::{EXIT_INCOMPLETE, Result};
use crate::host::Host;
use crate::run::doctor::{self, Diagnosis};
use crate::units::Bytes;

/// Show what this machine can measure, and what would disturb it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata doctor          what can be measured here, what is missing and which package brings it
  pgstrata doctor --json   the same for programs

Changes nothing. Exit code: 0 at least one stack and one PostgreSQL can be used, 1 not even that.")]
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
        print(&diagnosis)?;
    }
    let usable = diagnosis.layers.iter().any(|layer| layer.lacks.is_empty()) && !diagnosis.postgres.is_empty();
    Ok(if usable { 0 } else { EXIT_INCOMPLETE })
}

fn print(diagnosis: &Diagnosis) -> Result<()> {
    print_machine(diagnosis)?;
    out::line("\nLayers")?;
    for layer in &diagnosis.layers {
        if layer.lacks.is_empty() {
            out::line(&format!("  ok       {}", layer.layer))?;
        }
        for lack in &layer.lacks {
            out::line(&format!("  missing  {:<10} {}; {}", layer.layer, lack.what, lack.hint))?;
        }
    }
    print_disks(diagnosis)?;
    out::line("\nPostgreSQL")?;
    if diagnosis.postgres.is_empty() {
        out::line("  missing  no installation with postgres, initdb and pgbench; apt-get install postgresql")?;
    }
    for postgres in &diagnosis.postgres {
        out::line(&format!("  ok       {:<36} {}", out::harmless(&postgres.version), postgres.bin.display()))?;
    }
    out::line("\nSpace")?;
    for space in &diagnosis.space {
        let free = space.free_bytes.map_or_else(|| "unknown".to_owned(), |free| format!("{free} free"));
        out::line(&format!("  {:<28} {:<36} {free}", space.purpose, space.folder.display()))?;
    }
    out::line("\nWould disturb a measurement")?;
    if diagnosis.disturbances.is_empty() {
        out::line("  nothing found")?;
    }
    for disturbance in &diagnosis.disturbances {
        out::line(&format!("  {}: {}; {}", disturbance.what, disturbance.detail, disturbance.advice))?;
    }
    Ok(())
}

/// Each disk as a plan names it, with what else decides how fast it syncs.
fn print_disks(diagnosis: &Diagnosis) -> Result<()> {
    out::line("\nDisks")?;
    if diagnosis.disks.is_empty() {
        out::line("  none found")?;
    }
    for disk in &diagnosis.disks {
        let size = disk.size_bytes.map(|bytes| Bytes(bytes).to_string());
        let kind = disk.rotational.map(|rotates| if rotates { "rotating" } else { "not rotating" }.to_owned());
        let scheduler = disk.scheduler.as_ref().map(|name| format!("scheduler {name}"));
        let facts: Vec<String> =
            [size, disk.model.clone(), kind, disk.write_cache.clone(), scheduler].into_iter().flatten().collect();
        let mark = if disk.in_use.is_empty() { "free  " } else { "in use" };
        out::line(&format!("  {mark}   {}: {}", disk.path.display(), out::harmless(&facts.join(", "))))?;
        let path = disk.by_id.as_ref().unwrap_or(&disk.path);
        let identity = match (&disk.serial, &disk.wwn) {
            (Some(serial), _) => format!("serial = \"{}\"", out::harmless(serial)),
            (None, Some(wwn)) => format!("wwn = \"{}\"", out::harmless(wwn)),
            (None, None) => "it tells neither serial nor WWN, so no plan can name it".to_owned(),
        };
        out::line(&format!("           disk = \"{}\", {identity}", path.display()))?;
        for used in &disk.in_use {
            out::line(&format!("           {}", out::harmless(used)))?;
        }
    }
    Ok(())
}

fn print_machine(diagnosis: &Diagnosis) -> Result<()> {
    let host = &diagnosis.host;
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    out::line("Machine")?;
    out::line(&format!("  kernel       {}, {}", host.kernel, or_unknown(&host.distribution)))?;
    out::line(&format!("  CPU          {} x {}", host.cpus, or_unknown(&host.cpu_model)))?;
    out::line(&format!("  memory       {}", Bytes(host.memory_bytes)))?;
    let root = if diagnosis.root { "yes" } else { "no: only `directory` stacks can be built" };
    out::line(&format!("  root         {root}"))?;
    let user = diagnosis.server_user.as_deref().or(diagnosis.server_user_problem.as_deref());
    out::line(&format!("  servers as   {}", user.unwrap_or("unknown")))
}

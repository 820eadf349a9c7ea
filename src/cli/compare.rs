//! `pgstrata compare`: measurements side by side, from any source.

mod outputs;

use crate::analyse::compare::from_run::{self, RunSource};
use crate::analyse::compare::side::Side;
use crate::analyse::compare::{self, from_import, from_probe, single};
use crate::analyse::fleet::GroupBy;
use crate::cli::out;
use crate::cli::page::{page, refuse_to_overwrite};
use crate::cli::places::folder_and_case;
use crate::cli::probe::{interrupt, probe_folder, seconds};
use crate::cli::siblings;
use crate::error::{Context, EXIT_INCOMPLETE, Error, Result};
use crate::foreign::{self, shelf};
use crate::host::signals::Interrupt;
use crate::host::time::wall_us;
use crate::probe::{self, ProbeRequest, RowChoice, WAL_BLOCK};
use crate::record::imported::{FORMAT, ImportRecord, ImportedCase};
use crate::record::probe::ProbeRecord;
use crate::report;
use crate::store::folder::RunFolder;
use crate::store::import::ImportFolder;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prefix of a publication's name.
const SHELF: &str = "shelf:";
/// Default precision and writers of a probe, as in `pgstrata probe`.
const PRECISION: f64 = 0.05;
const WRITERS: u32 = 8;
/// Rounds in which several folders take turns; the shortest possible round, in which every row still has its turn; and
/// the name of the option in messages.
const ROUNDS: u32 = 3;
const SHORTEST_ROUND: Duration = Duration::from_secs(1);
const TURNS: &str = "folders in turn";
/// Forms of a side, for errors.
const FORMS: &str = "a side is a run folder, FOLDER:CASE, an import folder, a file with tool output, shelf:NAME, \
                     shelf:NAME:CASE, or any other folder, which is probed (write FOLDER/. if it holds tool output)";

const HELP: &str = "Examples:
  pgstrata compare shelf:freebsd10-zfs-fsync-2014 .   published results against a probe of this folder
  pgstrata compare results/x:ext4 results/x:xfs       two stacks of a run
  pgstrata compare results/before results/after       two runs, cases matched by name
  pgstrata compare theirs.txt ours.txt --html a.html  two outputs of pg_test_fsync or pgbench
  pgstrata compare /mnt/a /mnt/b --seconds 30         two folders, probed alternately

A SIDE is one of
  FOLDER             a run folder: all cases; those that differ only in workload count as one
  FOLDER:CASE        a case of a run or import, by id or by stack name
  FOLDER             a folder with import.json
  FILE               the output of a tool: pg_test_fsync or pgbench; packed or not
  shelf:NAME[:CASE]  a publication that ships with pgstrata
  DIR                any other folder: probed as by pgstrata probe; several folders take
                     turns, in three rounds (one round below 3 s); six rows for folders alone (--rows all)

A DIR with tool output directly in it is ambiguous and refused; the error shows the import command.
Always probed are `.`, `..`, DIR/. and PostgreSQL data directories.

The first two lines are the answer. For two runs both values are shown; units are the tool's own.

Not compared where the sides are known to differ: workload, scale, client count or write size; data
in RAM against data on disk; files in memory against files on a device; means against percentiles;
the non-synced row of pg_test_fsync where versions differ. Results known to lose commits are never
compared with results that may be durable. Unknown facts of a side are listed.";
const EXIT_CODES: &str =
    "Exit code: 0 something was compared, 1 nothing was comparable, 2 a side was not found or not readable.";

/// Compare measurements: runs, probes, published results, other tools' output
///
/// Comparable values are shown side by side, with ratio and 95 % CI; the rest is listed, each reason once. Facts
/// that differ (kernel, mount options, settings) are listed too: they are the candidate causes. The first side is the
/// reference; cases of the other sides are matched to it by name.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}\n\n{}\n\n{EXIT_CODES}", single::RULE.join("\n")))]
pub struct Args {
    /// What to compare; the first is the reference
    #[arg(value_name = "SIDE", required = true)]
    sides: Vec<String>,
    /// Compare hosts instead of stacks: within and between groups by model, firmware, kernel, cpu, postgres
    ///
    /// Every SIDE is a run folder of the same plan, for example pgstrata compare --group-by model,firmware results/*. Each host
    /// has one figure, its mean over cases, beside the median of the hosts in its group. Slower hosts are named by median and
    /// MAD with a limit by the number of hosts: of equal hosts one is named in 5 of 100 fleets, and none among fewer than 6
    /// hosts. Groups are compared with the largest one: hosts that are in both, such as before and after new firmware, in pairs, the
    /// others unpaired.
    #[arg(long, value_name = "FACT,...", value_delimiter = ',', value_parser = siblings::group)]
    group_by: Vec<GroupBy>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// Also write an HTML page to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Rows to probe, as in `pgstrata probe` [default: main for folders alone, else all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    rows: Vec<String>,
    /// Probing time per folder over all rounds, in seconds
    #[arg(long, value_name = "N", default_value = "10", value_parser = seconds)]
    seconds: Duration,
    /// Seed for the order of a probe's rows [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// A side that was found but maybe not measured yet.
enum SideSource {
    /// Ready.
    Sides(Vec<Side>),
    /// A folder to probe.
    Probe(PathBuf),
}

/// Compares and prints.
///
/// # Errors
/// If a side cannot be found, read or probed; if interrupted.
pub fn run(args: &Args) -> Result<u8> {
    if let Some(path) = &args.html {
        refuse_to_overwrite(path)?;
    }
    if !args.group_by.is_empty() {
        return siblings::compare(&args.group_by, &args.sides, args.json, args.html.as_deref());
    }
    let found: Vec<SideSource> =
        args.sides.iter().enumerate().map(|(argument, text)| resolve(argument, text)).collect::<Result<_>>()?;
    let count: usize =
        found.iter().map(|found| if let SideSource::Sides(sides) = found { sides.len() } else { 1 }).sum();
    if count < 2 {
        return Err(Error::user(format!("{} is the only side", args.sides.join(" ")))
            .hint(format!("name at least two; {FORMS}")));
    }
    let sides = measured(args, found)?;
    let findings = compare::compare(&sides);
    out::json_or(args.json, &findings, || report::compare::terminal(&findings))?;
    if let Some(path) = &args.html {
        page(path, &report::compare::page(&findings, None)?, args.json)?;
    }
    Ok(if findings.compared_anything() { 0 } else { EXIT_INCOMPLETE })
}

/// The sides in the order of the arguments; folders are probed now. Several folders take turns, round by round, so that
/// a change on the machine is not mistaken for a difference between them.
fn measured(args: &Args, found: Vec<SideSource>) -> Result<Vec<Side>> {
    let folders =
        found.iter().filter_map(|found| if let SideSource::Probe(folder) = found { Some(folder) } else { None });
    let folders: Vec<PathBuf> = folders.cloned().collect();
    let choice = match args.rows.as_slice() {
        [] if folders.len() < found.len() => RowChoice::All,
        [] => RowChoice::of_names(&["main".to_owned()])?,
        names => RowChoice::of_names(names)?,
    };
    let rounds = if folders.len() > 1 && args.seconds >= SHORTEST_ROUND * ROUNDS { ROUNDS } else { 1 };
    let interrupt = if folders.is_empty() { Interrupt::never() } else { interrupt()? };
    let mut records: Vec<Vec<ProbeRecord>> = vec![Vec::new(); folders.len()];
    for round in 1..=rounds {
        for (folder, records) in folders.iter().zip(&mut records) {
            records.push(probed(args, folder, &choice, (round, rounds), &interrupt)?);
        }
    }
    let mut records = folders.iter().zip(records);
    let mut sides = Vec::new();
    for (argument, found) in found.into_iter().enumerate() {
        match found {
            SideSource::Sides(ready) => sides.extend(ready),
            SideSource::Probe(_) => sides.extend(records.next().and_then(|(folder, records)| {
                let label = folder.display().to_string();
                match records.as_slice() {
                    [one] => Some(from_probe::side(argument, &label, one)),
                    rounds => from_probe::side_of_rounds(argument, &label, TURNS, rounds),
                }
            })),
        }
    }
    Ok(sides)
}

fn probed(
    args: &Args,
    folder: &Path,
    choice: &RowChoice,
    (round, rounds): (u32, u32),
    interrupt: &Interrupt,
) -> Result<ProbeRecord> {
    let budget = args.seconds / rounds;
    let request = ProbeRequest {
        folder: folder.to_owned(),
        choice: choice.clone(),
        budget,
        precision: PRECISION,
        wal_block: WAL_BLOCK,
        writers: WRITERS,
        free_over_files: probe::FREE_OVER_FILES,
        seed: args.seed.unwrap_or_else(wall_us).wrapping_add(u64::from(round)),
    };
    let turn = if rounds > 1 { format!(", round {round} of {rounds}") } else { String::new() };
    let label = out::harmless(&folder.display().to_string());
    out::remark(&format!("probing {label}{turn}, up to {:.1} s", budget.as_secs_f64()));
    if let Some(found) = outputs::first(folder).filter(|_| round == 1) {
        out::remark(&format!("the tool output in {label} ({found}) is ignored; `pgstrata import` reads it"));
    }
    probe_folder(&request, interrupt)
}

/// Source that an argument names.
fn resolve(argument: usize, text: &str) -> Result<SideSource> {
    if let Some(rest) = text.strip_prefix(SHELF) {
        let (name, case) = rest.split_once(':').map_or((rest, None), |(name, case)| (name, Some(case)));
        let record = shelf::open(name)?.record;
        return of_import(argument, &format!("{SHELF}{name}"), &record, case);
    }
    match folder_and_case(text) {
        Some((folder, case)) => of_path(argument, folder, Path::new(folder), case),
        None => Err(missing(text)),
    }
}

fn of_path(argument: usize, label: &str, path: &Path, case: Option<&str>) -> Result<SideSource> {
    let label = if label.trim_end_matches('/').is_empty() { "/" } else { label.trim_end_matches('/') };
    if RunFolder::is_one(path) {
        let source = RunSource::load(path)?;
        let sides = from_run::sides(argument, label, &source, case);
        return named(sides, label, case, || source.names());
    }
    if ImportFolder::is_one(path) {
        return of_import(argument, label, ImportFolder::open(path)?.record(), case);
    }
    if path.is_dir() {
        outputs::refuse(label, path)?;
    }
    if let Some(case) = case {
        return Err(Error::user(format!("{label} has no cases, so there is no case `{case}`"))
            .hint("only run folders, imports and the shelf have cases"));
    }
    if path.is_dir() { Ok(SideSource::Probe(path.to_owned())) } else { raw(argument, label, path) }
}

/// A file with the output of a tool.
fn raw(argument: usize, label: &str, path: &Path) -> Result<SideSource> {
    let mut file = File::open(path).or_user(|| format!("read {label}"))?;
    let reading = foreign::read(label, &mut file).map_err(|e| e.or_hint(FORMS))?;
    let case = ImportedCase { trials: vec![foreign::trial(vec![reading])], ..ImportedCase::default() };
    let record = ImportRecord { format: FORMAT, cases: vec![case], ..ImportRecord::default() };
    of_import(argument, label, &record, None)
}

fn of_import(argument: usize, label: &str, record: &ImportRecord, case: Option<&str>) -> Result<SideSource> {
    let sides = from_import::sides(argument, label, record, case);
    if sides.is_empty() && case.is_none() {
        let hint = match label.strip_prefix("shelf:") {
            Some(name) => format!("its conclusions were published without figures: pgstrata shelf show {name}"),
            None => "pg_test_fsync and pgbench output can be compared; other tools do not state a comparable workload"
                .to_owned(),
        };
        return Err(Error::user(format!("{label} holds no comparable figures")).hint(hint));
    }
    named(sides, label, case, || record.cases.iter().map(|case| case.name.clone()).collect())
}

/// The sides, or an error that lists the available names.
fn named(sides: Vec<Side>, label: &str, case: Option<&str>, names: impl FnOnce() -> Vec<String>) -> Result<SideSource> {
    match case {
        Some(case) if sides.is_empty() => {
            let names = names();
            let hint = foreign::hint_at_nearest(case, &names, &format!("available: {}", names.join("; ")));
            Err(Error::user(format!("{label} has no case `{case}`")).hint(hint))
        }
        _ => Ok(SideSource::Sides(sides)),
    }
}

/// Error for a name that does not exist, with similar names.
fn missing(text: &str) -> Error {
    let path = Path::new(text);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let entries = std::fs::read_dir(parent.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let beside = parent.unwrap_or(Path::new(""));
    let mut names: Vec<String> = entries.map(|entry| beside.join(entry.file_name()).display().to_string()).collect();
    names.extend(shelf::names().into_iter().map(|name| format!("{SHELF}{name}")));
    let error = Error::user(format!("{text} does not exist"));
    // Subfolders of a results folder are not meant to be probed.
    if let Some(folder) = parent.filter(|folder| RunFolder::is_one(folder) || ImportFolder::is_one(folder)) {
        let case = path.file_name().unwrap_or_default().to_string_lossy();
        return error.hint(format!("write a case of a folder as {}:{case}", folder.display()));
    }
    error.hint(foreign::hint_at_nearest(text, &names, FORMS))
}

//! `pgstrata cut`: cost of a power cut for each stack of a plan.

mod kept;

use super::out::{self, harmless};
use super::places::PlaceArgs;
use super::{built, cut_guest};
use crate::cut::case::{Cuts, cut};
use crate::cut::{Attachment, CutEvent, Cutting, replay};
use crate::error::{EXIT_INCOMPLETE, EXIT_REQUIREMENT, Error, Result};
use crate::guest::suite::Suite;
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::plan::Plan;
use crate::record::case::CaseSpec;
use crate::record::verdict::VerdictRecord;
use crate::run::forecast::recheck;
use crate::store::folder::RunFolder;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Find out what a power cut would cost each stack of a plan: a verdict, with evidence
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:
  pgstrata cut plan.toml                      verdict of each case, from 300 states
  pgstrata cut plan.toml --states 0           by arithmetic alone, in seconds
  pgstrata cut plan.toml --states 2000        more states
  pgstrata cut plan.toml --workload           with the plan's own pgbench on the same server
  pgstrata cut plan.toml --json               the same for programs
  pgstrata cut results/2026-11-21-0241-which  the cases of a run, for its report
  pgstrata cut plan.toml --guest              in a throw-away virtual machine: ZFS and others, and disks with FUA
  pgstrata cut replay results/cut-1a2b3c4d/ext4

Each case's stack is built on disks that pgstrata records, in place of its loop images and disks of a guest: every write and flush, in order. \
They are loop devices (FUSE, root), which have no FUA, or with --disks nbd the kernel's NBD devices, which have it. Clients \
commit real transactions and note what was acknowledged. A case is convicted if a power cut could lose a commit \
that the server had promised to keep; one transaction in eight commits asynchronously and counts only once the server reports its WAL as \
flushed. In each state WAL is read to its end; one state in twenty (12 to 100) is also put through the filesystem's checker, \
recovery, amcheck and pg_checksums. If nothing is convicted, the power is cut again while PostgreSQL recovers. The results stay as a page in RESULTS/cut-ID, a conviction's recording in RESULTS/cut-ID/CASE; those of a run are in its report. Cases on other layers are `not measured`.

Without --workload nothing but these clients runs, and cases that differ in their workload share a verdict. With it the case's own \
pgbench (data, scripts, clients, rate) runs on the same server, so the states hold what it does to the disk, and amcheck and \
pg_checksums read its tables, too. The clients' commits are still the ones that are looked for. A pgbench that fails is an error; \
another workload than `pgbench` is `not measured`.

What ends it early (an interrupt, a pgbench that fails) leaves the verdicts of the cases before it: they are printed and kept, and \
the exit code is that of what ended it.

Exit code: 0 every case holds, or loses only what asynchronous commit may lose; 1 a case was not measured, or the harness broke; 6 a \
case is convicted; 2 wrong plan or flag, 3 the machine lacks something, 4 an external program failed, 5 a folder cannot be read or written, \
130 interrupted. replay: 6 the state still fails, 0 it does not, or none was kept.")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Sub>,
    /// The plan file, the name of a shipped plan, or a run folder, which keeps the verdicts
    #[arg(required = true)]
    plan: Option<PathBuf>,
    /// Check N states that a power cut could have left, a sample of them by recovery; 0: arithmetic alone
    #[arg(long, value_name = "N", default_value_t = 300)]
    states: usize,
    /// Let the clients commit for this many seconds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    clients: u16,
    /// Run each case's own pgbench on the same server while the clients commit; cases that differ in their workload are then cut separately
    #[arg(long)]
    workload: bool,
    /// The same seed tries the same states of a recording
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Attach the recorded disks as loop devices, or by the kernel's NBD client [default: loop; with --guest nbd]
    #[arg(long, value_name = "KIND")]
    disks: Option<DisksArg>,
    /// Do it in a guest: a throw-away virtual machine with kernel, ZFS and PostgreSQL of a Debian suite [default: trixie]
    #[arg(long, value_name = "SUITE", num_args = 0..=1, require_equals = true)]
    guest: Option<Option<Suite>>,
    /// This is the guest: print lines of JSON for the program on the host
    #[arg(long, hide = true, conflicts_with_all = ["guest", "json"])]
    inside: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    places: PlaceArgs,
}

/// How recorded disks are attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DisksArg {
    /// Loop devices on files shown through FUSE: without FUA
    Loop,
    /// The kernel's NBD client (module nbd, Linux 5.14 or newer): with FUA
    Nbd,
}

#[derive(Debug, clap::Subcommand)]
enum Sub {
    /// Build the state of a conviction again and check it
    #[command(after_help = "Examples:
  pgstrata cut replay results/cut-1a2b3c4d/ext4")]
    Replay {
        /// Folder of the evidence
        evidence: PathBuf,
        #[command(flatten)]
        places: PlaceArgs,
    },
}

/// Cuts and prints.
///
/// # Errors
/// Mistakes in the plan file; missing requirements of the machine; Ctrl-C.
pub fn run(args: &Args) -> Result<u8> {
    let host = Host::this();
    if let Some(Sub::Replay { evidence, places }) = &args.command {
        let replayed = replay(&host, evidence, &places.places()?, &Interrupt::listen()?)?;
        out::line(&harmless(&format!("{}: {}", replayed.case, replayed.verdict)))?;
        let Some(finding) = replayed.finding else {
            return out::line("no state was kept: the arithmetic convicted").map(|()| 0);
        };
        out::line(&out::harmless_lines(&format!("its state now: {finding}")))?;
        return Ok(if finding.convicts() { EXIT_REQUIREMENT } else { 0 });
    }
    let path = args.plan.as_ref().ok_or_else(|| Error::user("name a plan"))?;
    if let Some(suite) = &args.guest {
        return in_guest(args, path, &suite.clone().unwrap_or_default(), &host);
    }
    if args.workload && RunFolder::is_one(path) {
        let what = "--workload takes a plan, not a run folder, whose cases share a verdict";
        return Err(Error::user(what).hint(PLAN_OF_RUN));
    }
    let subject = CutSubject::of(path)?;
    let places = args.places.places()?;
    let (clients, states, seed) = (args.clients, args.states, args.seed);
    let attachment = if disks(args) == NBD { Attachment::Nbd } else { Attachment::Loop };
    let (time, workload) = (Duration::from_secs(args.seconds), args.workload);
    let cutting = Cutting { clients, time, workload, states, seed, attachment, ..Cutting::default() };
    let interrupt = Interrupt::listen()?;
    let cuts = cut(&host, subject.cases(), &places, cutting, &interrupt, &|progress| show(args, &said(&progress)));
    show(args, "");
    let Cuts { results, left, ended_by } = cuts?;
    if results.is_empty() {
        return Err(ended_by.unwrap_or_else(|| Error::user("the plan has no case with a server")));
    }
    let (count, code) = (results.len(), exit_code(&results));
    match &subject {
        _ if args.inside => out::line(&out::json_line(&cut_guest::CutMessage::Results(results))?)?,
        CutSubject::Plan(plan) => kept::of_plan(&host, args, plan, results)?,
        CutSubject::Run(folder) => kept::of_run(args, folder, results)?,
    }
    if left > 0 {
        out::remark(&format!("not cut: {left} of {} cases", left + count));
    }
    ended_by.map_or_else(|| Ok(code), Err)
}

/// Shows progress on a terminal, or sends it to the host.
fn show(args: &Args, text: &str) {
    if args.inside {
        // If the host is gone, the guest ends too.
        drop(out::json_line(&cut_guest::CutMessage::Progress(text.to_owned())).and_then(|line| out::line(&line)));
    } else if std::io::stderr().is_terminal() {
        out::passing(text);
    }
}

/// The same in a guest. The results are printed here.
fn in_guest(args: &Args, path: &Path, suite: &Suite, host: &Host) -> Result<u8> {
    if RunFolder::is_one(path) {
        return Err(Error::user("--guest takes a plan, not a run folder").hint(PLAN_OF_RUN));
    }
    let mut plan = super::plan::parsed(path)?;
    built::find(host, &mut plan.cases)?;
    of_this_machine(&plan.cases, "copy the plan and remove `guest` from it")?;
    let flags = [
        ("--disks", disks(args).to_owned()),
        ("--states", args.states.to_string()),
        ("--seconds", args.seconds.to_string()),
        ("--clients", args.clients.to_string()),
        ("--seed", args.seed.to_string()),
    ];
    let mut flags: Vec<String> = flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect();
    flags.extend(args.workload.then(|| "--workload".to_owned()));
    let results = args.places.places()?.results;
    let (code, results) = cut_guest::run(host, (path, &plan.cases), suite, &flags, &results, &|text| show(args, text))?;
    if let Some(results) = results {
        kept::of_plan(host, args, &plan, results)?;
    }
    Ok(code)
}

const NBD: &str = "nbd";

/// Attachment of the recorded disks; guests have NBD.
fn disks(args: &Args) -> &'static str {
    match args.disks {
        Some(DisksArg::Nbd) => NBD,
        None if args.guest.is_some() => NBD,
        Some(DisksArg::Loop) | None => "loop",
    }
}

/// Source of the cases.
enum CutSubject {
    Plan(Box<Plan>),
    Run(Box<RunFolder>),
}

impl CutSubject {
    fn of(path: &Path) -> Result<CutSubject> {
        if !RunFolder::is_one(path) {
            let plan = super::plan::read(path, false, &[], None)?.plan;
            of_this_machine(&plan.cases, "copy the plan, remove `guest` from it, and name the suite: --guest=SUITE")?;
            return Ok(CutSubject::Plan(Box::new(plan)));
        }
        let folder = RunFolder::open(path)?;
        if folder.is_live() {
            return Err(Error::host(format!("a run is writing to {}", path.display()))
                .hint("cutting would disturb its figures: wait for it, or stop it first"));
        }
        of_this_machine(&folder.record().cases, "write durability = \"quick\" into its plan and run it again")?;
        recheck(&folder.record().cases)?;
        Ok(CutSubject::Run(Box::new(folder)))
    }

    fn cases(&self) -> &[CaseSpec] {
        match self {
            CutSubject::Plan(plan) => &plan.cases,
            CutSubject::Run(folder) => &folder.record().cases,
        }
    }
}

/// Hint if a run folder is not suitable.
const PLAN_OF_RUN: &str = "name the plan of the run: the run folder has it as plan.toml";

/// Refuses cases that run in guests.
fn of_this_machine(cases: &[CaseSpec], hint: &str) -> Result<()> {
    if cases.iter().all(|case| case.guest.is_none()) {
        return Ok(());
    }
    let what = "the plan's cases run in guests that it names itself, and `cut` runs all cases in one place";
    Err(Error::user(what).hint(hint))
}

fn exit_code(results: &[VerdictRecord]) -> u8 {
    if results.iter().any(|result| result.verdict.convicts()) {
        EXIT_REQUIREMENT
    } else if results.iter().any(|result| !result.verdict.is_known()) {
        EXIT_INCOMPLETE
    } else {
        0
    }
}

fn said(progress: &CutEvent<'_>) -> String {
    match progress {
        CutEvent::Recording { case, workload: None } => format!("{case}: recording commits"),
        CutEvent::Recording { case, workload: Some(name) } => {
            format!("{case}: loading the data of {name}, recording commits")
        }
        CutEvent::Checking { case, states } => format!("{case}: {states} states to check"),
        CutEvent::State { case, step, done, of } => format!("{case}: {step}, state {} of {of}", done + 1),
    }
}

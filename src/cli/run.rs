//! `pgstrata run`: executes a plan, or goes on with a run that stopped.

use super::follow::Follower;
use super::guest_run;
use super::out;
use super::places::PlaceArgs;
use super::progress::{Progress, count};
use crate::error::{Context, EXIT_INCOMPLETE, Error, Kind, Result};
use crate::guest::suite::Suite;
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::plan::Plan;
use crate::provision::disk::{self, DiskContents};
use crate::record::case::CaseSpec;
use crate::record::event::Stamped;
use crate::run::check;
use crate::run::clean;
use crate::run::died::Died;
use crate::run::events::Watcher;
use crate::run::session::{self, Continuing, Ending, Places};
use crate::store::folder::RunFolder;
use crate::units::Micros;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Run a plan: build each stack, measure PostgreSQL on it, write the report
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata run which-filesystem.toml            run a plan, show progress, write the report
  pgstrata run plan.toml --json > events.jsonl  the same for programs: one event a line
  pgstrata run plan.toml --quick                ten seconds a trial instead of whole checkpoint cycles
  pgstrata run filesystem-matrix --quick        a plan that ships with pgstrata
  pgstrata run --resume results/2026-11-21-0241-which-filesystem
  pgstrata run --resume results/2026-11-21-0241-which-filesystem --blocks 8
  pgstrata run plan.toml --guest=bookworm       in a throw-away virtual machine (see pgstrata guest)
  pgstrata run plan.toml --page --notify 'systemd-cat -t pgstrata printenv'

--notify splits CMD at spaces into a program and its arguments: no shell, no quoting. The program starts in the working
folder when the run ends for any reason, and may take up to 60 s. Its environment has PGSTRATA_RUN_FOLDER (empty if there
is none), PGSTRATA_OUTCOME (complete, incomplete, interrupted, failed), PGSTRATA_EXIT_STATUS and PGSTRATA_MESSAGE (the
error). If it fails, the run prints a warning.

Ctrl-C once cleans up, keeps complete trials and exits; a second Ctrl-C exits immediately, and `pgstrata clean` cleans up
the rest. Exit code: 0 all trials measured, 1 some were not run, 2 wrong plan or flag, 3 the machine lacks something,
4 an external program failed (a run stops when its first trials all fail in the same way before they measure anything),
5 a run folder cannot be written or read, 130 interrupted.")]
pub struct Args {
    /// The plan file (see `pgstrata plan --example`), or the name of a shipped plan (see `pgstrata plans`)
    #[arg(required_unless_present = "resume")]
    plan: Option<PathBuf>,
    /// Resume the run in this folder: complete trials are kept, the rest is run
    #[arg(long, value_name = "RUN_FOLDER")]
    resume: Option<PathBuf>,
    /// With --resume: extend the run to N blocks in total; ranks are then decided by e-values, which stay valid however
    /// often blocks are added
    #[arg(long, value_name = "N", requires = "resume")]
    blocks: Option<u32>,
    /// Print each event as one line of JSON instead of progress
    #[arg(long)]
    json: bool,
    /// Measure writing workloads for 10 s after a warm-up of 2 s, or as long as the plan says, instead of full checkpoint
    /// cycles, with what the plan's table `[quick]` keeps; the report starts with what that leaves out
    #[arg(long, conflicts_with = "resume")]
    quick: bool,
    /// There is none: `pgstrata plan` does that
    #[arg(long, hide = true)]
    dry_run: bool,
    /// Run it in a guest: a throw-away virtual machine with kernel, ZFS and PostgreSQL of a Debian suite [default: trixie]
    #[arg(long, value_name = "SUITE", num_args = 0..=1, require_equals = true, default_missing_value = "trixie", conflicts_with = "resume")]
    guest: Option<Suite>,
    /// Trials under which a guest died: for the program inside
    #[arg(long, hide = true, requires = "resume", value_name = "JSON")]
    died: Option<String>,
    /// Overwrite disks that the plan marks `overwrite = true` without asking
    #[arg(long)]
    yes: bool,
    /// Also write report.html after each trial; the page reloads itself during the run
    #[arg(long)]
    page: bool,
    /// Run this command when the run ends or fails
    #[arg(long, value_name = "CMD")]
    notify: Option<String>,
    #[command(flatten)]
    places: PlaceArgs,
}

/// Runs the plan; writes `report.html` into the run folder and prints the table.
///
/// # Errors
/// See the exit codes in the help text.
pub fn run(args: &Args) -> Result<u8> {
    if args.dry_run {
        let plan = args.plan.as_ref().map_or_else(|| "PLAN".to_owned(), |plan| shown(plan));
        return Err(
            Error::user("`run` has no --dry-run").hint(format!("pgstrata plan {plan} shows what a run will do"))
        );
    }
    let host = Host::this();
    let follower = Follower::new(args.page);
    let ended = match &args.guest {
        Some(suite) => in_guest(args, suite, &host, &follower),
        None => run_watched(args, &host, &follower),
    };
    if ended.is_err() {
        follower.failed();
    }
    if let Some(command) = &args.notify {
        follower.notify(&host, command, &ended);
    }
    ended
}

fn run_watched(args: &Args, host: &Host, follower: &Follower) -> Result<u8> {
    let places = args.places.places()?;
    let task = Task::of(args)?;
    check::places(host, task.cases(), &places.state)?;
    consent(host, task.cases(), args.yes)?;
    let interrupt = Interrupt::listen()?;
    let progress = Progress::new(args.json, std::io::stderr().is_terminal());
    let watcher = |folder: &Path, event: &Stamped| {
        progress.show(event);
        follower.note(folder, event);
    };
    let ending = match &task {
        Task::Resume(stored) => session::resume(host, stored, continuing(args)?, &places, &interrupt, &watcher),
        Task::Start(plan) => start(host, plan, &places, &interrupt, &watcher),
    };
    progress.finish();
    conclude(&ending?, args.json)
}

fn continuing(args: &Args) -> Result<Continuing> {
    let died: Vec<Died> = match &args.died {
        Some(list) => serde_json::from_str(list).or_user(|| "read --died".to_owned())?,
        None => Vec::new(),
    };
    Ok(Continuing { blocks: args.blocks, died })
}

/// The same in a guest; the page and the tables are made here.
fn in_guest(args: &Args, suite: &Suite, host: &Host, follower: &Follower) -> Result<u8> {
    let plan = args.plan.as_ref().ok_or_else(|| Error::user("name a plan"))?;
    let places = args.places.places()?;
    let request = guest_run::Request { plan, suite, quick: args.quick, json: args.json, results: &places.results };
    let outcome = guest_run::run(host, &request, &|folder, event| follower.note(folder, event))?;
    let Some(folder) = outcome.folder else { return Ok(outcome.code) };
    let findings = crate::analyse::load::findings(&folder)?;
    let report = folder.join("report.html");
    if !args.json {
        let (done, not_run) = guest_run::counted(&folder)?;
        super::report::print(&findings, "txt")?;
        out::line(&format!("\n{} measured, {not_run} not run", count(done, "trial")))?;
        out::line(&format!("run folder  {}", folder.display()))?;
        out::line(&format!("report      {}", report.display()))?;
    }
    super::report::write(&findings, "html", &report)?;
    session::give_to_person(&folder)?;
    Ok(outcome.code)
}

/// Starts a run, and says when an earlier one has left something.
fn start(host: &Host, plan: &Plan, places: &Places, interrupt: &Interrupt, watcher: Watcher<'_>) -> Result<Ending> {
    let left = clean::clean(host, &places.state, true)?;
    for run in left.iter().filter(|run| !run.live && !run.things.is_empty()) {
        out::remark(&format!("run {} was killed and left things behind: `pgstrata clean` removes them", run.run));
    }
    for run in left.iter().filter(|run| run.live) {
        out::remark(&format!("run {} is active at the same time: each run disturbs the other's figures", run.run));
    }
    session::start(host, plan, places, interrupt, watcher)
}

/// What is to be run.
enum Task {
    /// A plan from its beginning.
    Start(Plan),
    /// What is left of a run.
    Resume(Box<RunFolder>),
}

impl Task {
    fn of(args: &Args) -> Result<Task> {
        match (&args.plan, &args.resume) {
            (plan, Some(folder)) => {
                session::stored(folder, plan.as_deref()).map(|stored| Task::Resume(Box::new(stored)))
            }
            (Some(path), None) => {
                let (plan, checked) = super::plan::read(path, args.quick)?;
                super::plan::remark_servers(&checked);
                Ok(Task::Start(plan))
            }
            (None, None) => Err(Error::user("name a plan, or a run folder with --resume")),
        }
    }

    fn cases(&self) -> &[CaseSpec] {
        match self {
            Task::Start(plan) => &plan.cases,
            Task::Resume(stored) => &stored.record().cases,
        }
    }
}

/// Shows each disk that the plan marks `overwrite = true`, and asks.
fn consent(host: &Host, cases: &[CaseSpec], yes: bool) -> Result<()> {
    let disks = cases.iter().flat_map(|case| &case.stack.nodes).filter(|spec| spec.layer == "disk");
    let mut shown = BTreeSet::new();
    for spec in disks {
        // A disk that cannot be shown now must not be overwritten unseen when it turns up later in the run.
        let contents = disk::contents(host, &spec.options)
            .map_err(|e| e.while_doing("show the disk that the plan marks `overwrite = true`"))?;
        let Some(contents) = contents else { continue };
        if shown.insert(contents.path.clone()) {
            out::remark(&described(&contents));
        }
    }
    if shown.is_empty() || yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Error::user(
            "cannot ask whether the disks above may be overwritten: standard input is not a terminal",
        )
        .hint("check them and run again with --yes"));
    }
    out::remark("All data on them will be lost. Type yes to continue.");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).or_user(|| "read the answer".to_owned())?;
    if answer.trim() == "yes" { Ok(()) } else { Err(Error::user("no disk was touched: the answer was not yes")) }
}

fn described(disk: &DiskContents) -> String {
    let unknown = || "unknown".to_owned();
    let model = disk.model.clone().unwrap_or_else(unknown);
    let serial = disk.serial.clone().unwrap_or_else(unknown);
    let size = disk.size.map_or_else(unknown, |size| size.to_string());
    let holds = if disk.signatures.is_empty() { "nothing known".to_owned() } else { disk.signatures.join("; ") };
    let line = format!("will be overwritten: {}  model {model}  serial {serial}  {size}  holds: {holds}", disk.path);
    out::harmless(&line)
}

/// Refuses folders of runs where another tool's output is wanted.
///
/// # Errors
/// With the commands that take one.
pub fn refuse_folders(paths: &[PathBuf]) -> Result<()> {
    let Some(folder) = paths.iter().find(|path| path.join("run.json").is_file()) else { return Ok(()) };
    let folder = out::harmless(&shown(folder));
    Err(Error::user(format!("{folder} is the folder of a pgstrata run, not the output of another tool"))
        .hint(format!("pgstrata report {folder}, or pgstrata compare {folder} OTHER")))
}

fn conclude(ending: &Ending, json: bool) -> Result<u8> {
    let findings = crate::analyse::load::findings(&ending.folder)?;
    let report = ending.folder.join("report.html");
    // The table first: writing the page may fail, on a full disk.
    if !json {
        super::report::print(&findings, "txt")?;
        out::line(&format!("\n{}", summed_up(ending)))?;
        out::line(&format!("run folder  {}", ending.folder.display()))?;
        out::line(&format!("report      {}", report.display()))?;
    }
    super::report::write(&findings, "html", &report)?;
    if let Err(e) = session::give_to_person(&ending.folder) {
        out::remark(&format!("warning: {}", out::harmless_lines(&e.to_string())));
    }
    if ending.interrupted {
        if !json {
            out::line(&format!("interrupted; resume it with:\n  pgstrata run --resume {}", shown(&ending.folder)))?;
        }
        return Ok(Kind::Interrupted.exit_code());
    }
    if let Some((kind, why)) = &ending.stopped {
        out::remark(&out::harmless_lines(why));
        return Ok(kind.exit_code());
    }
    Ok(if ending.not_run > 0 { EXIT_INCOMPLETE } else { 0 })
}

/// `4 trials measured, 12 not run (1 of them cut short); took 5 min 2 s, 62 % of it measurement`.
fn summed_up(ending: &Ending) -> String {
    let cut_short = if ending.cut_short { " (1 of them cut short)" } else { "" };
    let counts = format!("{} measured, {} not run{cut_short}", count(ending.done, "trial"), ending.not_run);
    if ending.nothing_left {
        return format!("the run is complete: {} measured", count(ending.done, "trial"));
    }
    let share = 100.0 * ending.measured_us as f64 / ending.wall_us.max(1) as f64;
    format!("{counts}; took {}, {share:.0} % of it measurement", Micros(ending.wall_us))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

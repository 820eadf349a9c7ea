//! `pgstrata run`: executes a plan, or resumes a run.

use super::commands::with_scripts;
use super::follow::{self, Follower};
use super::places::PlaceArgs;
use super::plan::guests;
use super::progress::ProgressLine;
use super::share::{self, ShareArg};
use super::{beside, built, guest_run, out, prepared};
use crate::analyse::findings::Findings;
use crate::cut;
use crate::error::{Context, EXIT_INCOMPLETE, Error, Kind, Result};
use crate::guest::build;
use crate::guest::cache::Cache;
use crate::guest::image::GuestImage;
use crate::guest::suite::Suite;
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::plan::Plan;
use crate::provision::disk::{self, DiskContents};
use crate::record::build::UNBUILT;
use crate::record::case::CaseSpec;
use crate::record::drive::DriveRecord;
use crate::record::event::{Event, Stamped};
use crate::run::opening::{self, Continuing};
use crate::run::session::{self, Ending, RunContext, RunPlaces};
use crate::run::{check, drives, forecast};
use crate::store::folder::RunFolder;
use crate::units::{Micros, count};
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Run a plan: build each stack, measure PostgreSQL on it, write the report
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata run which-filesystem.toml            run a plan, show progress, write the report
  pgstrata run plan.toml --json > events.jsonl  the same for programs: one event a line
  pgstrata run plan.toml --quick                short turns instead of whole checkpoint cycles
  pgstrata run filesystem-matrix --quick        a plan that ships with pgstrata
  pgstrata run encryption --on /dev/disk/by-id/nvme-X   one on a disk of yours; ALL DATA ON IT IS LOST
  pgstrata run separate-wal --on data=/dev/nvme0n1 --on log=/dev/nvme1n1   one on two disks
  pgstrata run --resume results/2026-11-21-0241-which-filesystem
  pgstrata run --resume results/2026-11-21-0241-which-filesystem --blocks 8
  pgstrata run plan.toml --share 2/3            blocks 2, 5, 8 ... of the plan; other machines have the others
  pgstrata run plan.toml --guest=bookworm       in a throw-away virtual machine (see pgstrata guest)
  pgstrata run --resume results/2026-11-22-0241-which-filesystem --guest
  pgstrata run plan.toml --page --notify 'systemd-cat -t pgstrata printenv'

--notify splits CMD at spaces into a program and its arguments: no shell, no quoting. The program starts in the working \
folder when the run ends for any reason, and may take up to 60 s. Its environment is yours without PG* and LD_* (and without \
what changes tools of filesystems); added are PGSTRATA_RUN_FOLDER (empty if there is none), PGSTRATA_OUTCOME (complete, \
incomplete, interrupted, failed), PGSTRATA_EXIT_STATUS and PGSTRATA_MESSAGE (the error). If it fails, the run prints a warning.

Ctrl-C once cleans up, keeps complete trials and exits; a second Ctrl-C exits immediately, and `pgstrata clean` cleans up \
the rest. Exit code: 0 all trials measured, 1 some were not run, 2 wrong plan or flag, 3 the machine lacks something, \
4 an external program failed (a run stops when its first trials all fail in the same way before they measure anything), \
5 a run folder cannot be written or read, 130 interrupted.")]
pub struct Args {
    /// The plan file (see `pgstrata plan --example`), or the name of a shipped plan (see `pgstrata plans`)
    #[arg(required_unless_present = "resume")]
    plan: Option<PathBuf>,
    /// Resume the run in this folder: complete trials are kept, the rest is run
    #[arg(long, value_name = "RUN_FOLDER")]
    resume: Option<PathBuf>,
    /// Run share I of N of the plan's blocks (from 1), or the share that the environment of a job array says (`slurm`,
    /// `slurm/N`, `kubernetes/N`; their indices count from 0); a share that was begun is resumed
    #[arg(long, value_name = "I/N|slurm|kubernetes/N")]
    share: Option<ShareArg>,
    /// Extend the resumed run to so many blocks in total; ranks are then decided by e-values, which stay valid however often
    /// blocks are added
    #[arg(long, value_name = "TOTAL", requires = "resume", conflicts_with = "share", value_parser = total)]
    blocks: Option<u32>,
    /// Print each event as one line of JSON instead of progress
    #[arg(long)]
    json: bool,
    /// Measure for 10 s after a warm-up of 2 s, or as long as the plan says, instead of full checkpoint cycles: in turns of
    /// 1 s on stacks that stand at once, where they can; with what the plan's table `[quick]` keeps. The report says what
    /// that leaves out
    #[arg(long, conflicts_with = "resume")]
    quick: bool,
    /// Put the plan's image files into this folder, or use this disk (/dev/...; ALL DATA ON IT IS LOST) instead; once for each
    /// device where a stack has several: --on data=DISK --on log=DISK (stacks whose single device has no name use the first).
    /// With --quick, and where the plan fills the stack, only a part of the disk as large as the image file is used
    #[arg(long, value_name = "[DEVICE=]DISK|FOLDER", conflicts_with_all = ["resume", "guest"])]
    on: Vec<String>,
    /// There is none: `pgstrata plan` does that
    #[arg(long, hide = true)]
    dry_run: bool,
    /// Run it in a guest: a throw-away virtual machine with kernel, ZFS and PostgreSQL of a Debian suite [default: trixie, or
    /// with --resume the one it was begun in]
    #[arg(long, value_name = "SUITE", num_args = 0..=1, require_equals = true)]
    guest: Option<Option<Suite>>,
    /// The guest that this is: for the program inside
    #[arg(long, hide = true, value_name = "SUITE", conflicts_with = "guest")]
    inside: Option<Suite>,
    /// The run goes on by itself, without these trials, under which a guest died: for the program inside
    #[arg(long, hide = true, requires = "resume", value_name = "JSON")]
    died: Option<String>,
    /// The run goes on within this trial, whose guest was killed because it asked for that: for the program inside
    #[arg(long, hide = true, requires = "died", value_name = "JSON")]
    crashed: Option<String>,
    /// Overwrite disks that the plan marks `overwrite = true`, and precondition disks, without asking
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

impl Args {
    fn plan(&self) -> Result<&Path> {
        self.plan.as_deref().ok_or_else(|| Error::user("name a plan, or a run folder with --resume"))
    }
}

/// Runs the plan; writes `report.html` into the run folder and prints the table.
///
/// # Errors
/// See the exit codes in the help text.
pub fn run(args: &Args) -> Result<u8> {
    if args.dry_run {
        let plan = args.plan.as_ref().map_or_else(|| "PLAN".to_owned(), |plan| plan.display().to_string());
        return Err(
            Error::user("`run` has no --dry-run").hint(format!("pgstrata plan {plan} shows what a run will do"))
        );
    }
    let host = Host::this();
    let follower = Follower::new(args.page);
    let ended = guest_suites(args).and_then(|(suites, cases)| match suites.as_slice() {
        [] => run_watched(args, &host, &follower),
        _ => in_guests(args, (suites, cases), &host, &follower),
    });
    if ended.is_err() {
        follower.failed();
    }
    if let Some(command) = &args.notify {
        follower.notify(&host, command, &ended);
    }
    ended
}

fn run_watched(args: &Args, host: &Host, follower: &Follower) -> Result<u8> {
    let guest = args.inside.as_ref().map(|suite| suite.name().to_owned());
    let places = RunPlaces { guest, ..args.places.places()? };
    let task = RunTask::of(args, &places)?;
    let ending =
        measured(host, task, continuing(args)?, &places, Watched { json: args.json, yes: args.yes, follower })?;
    conclude(&ending, args.json)
}

/// Display of a run, and permission to overwrite without asking.
#[derive(Clone, Copy)]
pub(super) struct Watched<'a> {
    pub json: bool,
    pub yes: bool,
    pub follower: &'a Follower,
}

/// Runs it with consent and progress, up to the end of the session.
pub(super) fn measured(
    host: &Host,
    mut task: RunTask,
    more: Continuing,
    places: &RunPlaces,
    watched: Watched<'_>,
) -> Result<Ending> {
    if let RunTask::Start(plan, _) = &task {
        forecast::must_run(plan, &forecast::unmet(host, &plan.part_in(places.guest.as_deref()).cases))?;
    }
    check::places(host, task.cases(), &places.state)?;
    consent(host, &task, watched.yes)?;
    let interrupt = Interrupt::listen()?;
    task.build(host, &interrupt)?;
    if !watched.json {
        beside::say_programs(host);
    }
    let progress = ProgressLine::new(watched.json, std::io::stderr().is_terminal());
    let watcher = |folder: &Path, event: &Stamped| {
        progress.show(event);
        watched.follower.note(folder, event);
        if let (Event::TrialStarted { trial }, false) = (&event.what, watched.json) {
            // A folder that cannot be read is named at the end.
            follow::so_far(folder, trial).ok().flatten().iter().for_each(|answer| progress.say(answer));
        }
    };
    let judge = |case: &CaseSpec| cut::quick(host, case, places, &interrupt);
    let context = &RunContext { host, places, interrupt: &interrupt, watcher: &watcher, judge: &judge };
    beside::say_runs(host, &places.state, matches!(task, RunTask::Start(..)))?;
    let ending = match &task {
        RunTask::Resume(stored) => opening::resume(context, stored, more),
        RunTask::Start(plan, _) => opening::start(context, plan),
    };
    progress.finish();
    ending
}

fn continuing(args: &Args) -> Result<Continuing> {
    let died = args.died.as_deref().map(serde_json::from_str).transpose();
    let crashed = args.crashed.as_deref().map(serde_json::from_str).transpose();
    let (died, crashed) =
        (died.or_user(|| "read --died".to_owned())?, crashed.or_user(|| "read --crashed".to_owned())?);
    Ok(Continuing { blocks: args.blocks, died, crashed })
}

/// Suites of the run's guests, that of the next trial first, and its cases; empty if it runs on the host.
fn guest_suites(args: &Args) -> Result<(Vec<Suite>, Vec<CaseSpec>)> {
    if args.inside.is_some() {
        return Ok((Vec::new(), Vec::new()));
    }
    let cases = planned_cases(args)?;
    let suites = asked_suites(args, &cases)?;
    Ok((suites, cases))
}

fn asked_suites(args: &Args, cases: &[CaseSpec]) -> Result<Vec<Suite>> {
    let suites = guests::suites(cases)?;
    let named: BTreeSet<&str> = suites.iter().map(Suite::name).collect();
    let named = named.into_iter().collect::<Vec<_>>().join(", ");
    match (&args.guest, &args.resume) {
        (Some(_), Some(folder)) if suites.is_empty() => {
            let what = format!("the run in {} was begun on this machine, not in a guest", folder.display());
            return Err(Error::user(what)
                .hint("leave out --guest to resume it here; for a guest start the plan again, with --guest"));
        }
        (Some(Some(suite)), Some(folder)) if suites != [suite.clone()] => {
            return Err(Error::user(format!("the run in {} was begun in {named}, not in {suite}", folder.display()))
                .hint("leave out the suite: --guest alone resumes it where it was begun"));
        }
        (Some(_), None) if !suites.is_empty() => {
            return Err(Error::user(format!("the plan names its guests itself: {named}"))
                .hint("leave out --guest, or remove `guest` from the plan"));
        }
        (Some(suite), None) if args.share.is_none() => return Ok(vec![suite.clone().unwrap_or_default()]),
        _ => {}
    }
    if args.share.is_some() && (!suites.is_empty() || args.guest.is_some()) {
        return Err(Error::user("blocks are spread over machines, and this plan runs in guests")
            .hint("leave out --share, or run the plan without guests"));
    }
    if !args.on.is_empty() && !suites.is_empty() {
        return Err(Error::user("--on names a disk or folder of this machine, and the plan runs in guests")
            .hint("leave out --on, or remove `guest` from the plan"));
    }
    Ok(suites)
}

/// Cases of the plan or run in the order in which they are due.
fn planned_cases(args: &Args) -> Result<Vec<CaseSpec>> {
    let (mut cases, order) = match &args.resume {
        Some(folder) => {
            let stored = opening::stored(folder, args.plan.as_deref())?;
            (stored.record().cases.clone(), guest_run::left(&stored)?)
        }
        None => {
            let path = args.plan()?;
            if path.exists() && !path.is_file() && !path.is_dir() {
                let what = format!("{} is no regular file, and a run reads its plan again", path.display());
                return Err(Error::user(what).hint("write the plan to a file"));
            }
            let mut plan = super::plan::parsed(path)?;
            if args.quick {
                plan.keep_quick_part();
            }
            (plan.cases, plan.order)
        }
    };
    let first = order.first().and_then(|key| cases.iter().position(|case| case.id == key.case));
    cases.rotate_left(first.unwrap_or(0));
    Ok(cases)
}

/// The same in guests; the page and the tables are made here.
fn in_guests(
    args: &Args,
    (suites, mut cases): (Vec<Suite>, Vec<CaseSpec>),
    host: &Host,
    follow: &Follower,
) -> Result<u8> {
    let (places, interrupt, cache) = (args.places.places()?, Interrupt::listen()?, Cache::of_user()?);
    // All of them, before anything is built or booted.
    let images: Vec<GuestImage> = suites.iter().map(|suite| build::require(&cache, suite)).collect::<Result<_>>()?;
    let folder =
        args.resume.as_ref().map(std::path::absolute).transpose().or_user(|| "find the run folder".to_owned())?;
    let task = match &folder {
        Some(folder) => {
            built::make_again(host, &cases, &interrupt)?;
            guest_run::GuestTask::Resume { folder, blocks: args.blocks }
        }
        None => {
            built::make(host, &mut cases, &interrupt)?;
            guest_run::GuestTask::Start { plan: guests::plan(args.plan()?)?, quick: args.quick }
        }
    };
    if !args.json {
        beside::say_programs(host);
    }
    let request = guest_run::GuestRunRequest { task, images, cases, json: args.json, results: &places.results };
    let (code, folder) = guest_run::run(host, &request, &interrupt, &|folder, event| follow.note(folder, event))?;
    let Some(folder) = folder else { return Ok(code) };
    let (done, not_run) = session::count_trials(&RunFolder::open(&folder)?)?;
    let counts = format!("{} measured, {not_run} not run", count(done, "trial"));
    print_result(&folder, args.json, &counts, code == Kind::Interrupted.exit_code())?;
    Ok(code)
}

/// Prints the results of a run and how it ended, and writes its report.
fn print_result(folder: &Path, json: bool, counts: &str, interrupted: bool) -> Result<()> {
    let findings = with_scripts(folder)?;
    // The table first: writing the page may fail on a full disk.
    if !json {
        super::report::print_first_screen(&findings, folder)?;
        out::line(&format!("\n{counts}\nrun folder  {}", folder.display()))?;
    }
    let report = written(folder, &findings)?;
    if !json {
        out::line(&format!("report      {}", report.display()))?;
        if interrupted {
            out::line(&format!("interrupted; resume it with:\n  pgstrata run --resume {}", folder.display()))?;
        }
    }
    Ok(())
}

/// Work to do.
pub(super) enum RunTask {
    /// A plan from its beginning, and its file; one made of cases of earlier runs has none.
    Start(Box<Plan>, Option<PathBuf>),
    /// The rest of a run.
    Resume(Box<RunFolder>),
}

impl RunTask {
    fn of(args: &Args, places: &RunPlaces) -> Result<RunTask> {
        if let Some(folder) = &args.resume {
            let stored = opening::stored(folder, args.plan.as_deref())?;
            resumable(&stored, args)?;
            return Ok(RunTask::Resume(Box::new(stored)));
        }
        let path = args.plan()?;
        let share = args.share.map(ShareArg::share).transpose()?;
        let guest = args.inside.as_ref().map(Suite::name);
        let mut read = super::plan::read(path, args.quick, &args.on, guest)?;
        if let Some(share) = share {
            read.plan.keep_share(share)?;
            if let Some(begun) = share::begun(&places.results, &read.plan, share)? {
                let stored = opening::stored(begun.path(), None)?;
                let [held, asked] =
                    [&stored.record().cases, &read.plan.cases].map(|cases| cases.iter().map(|case| &case.stack));
                if held.ne(asked) {
                    let folder = begun.path().display();
                    return Err(Error::user(format!("{folder} already has this share, on other storage"))
                        .hint("give the --on that it was begun with, or other --results"));
                }
                return Ok(RunTask::Resume(Box::new(stored)));
            }
        }
        super::plan::remark_servers(&read.checked);
        Ok(RunTask::Start(Box::new(read.plan), Some(path.to_owned())))
    }

    /// Builds every PostgreSQL of it.
    fn build(&mut self, host: &Host, interrupt: &Interrupt) -> Result<()> {
        match self {
            RunTask::Resume(stored) => built::make_again(host, &stored.record().cases, interrupt),
            RunTask::Start(plan, None) => built::make_again(host, &plan.cases, interrupt),
            RunTask::Start(plan, Some(file)) => {
                let mut servers = plan.cases.iter().filter_map(|case| case.postgres.as_ref());
                if servers.any(|postgres| postgres.bin == UNBUILT) {
                    built::make(host, &mut plan.cases, interrupt)?;
                    // Only now can a server check its settings.
                    super::plan::accepted(plan, file, None)?;
                }
                Ok(())
            }
        }
    }

    fn cases(&self) -> &[CaseSpec] {
        match self {
            RunTask::Start(plan, _) => &plan.cases,
            RunTask::Resume(stored) => &stored.record().cases,
        }
    }
}

/// Value of `--blocks`.
fn total(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a total number of blocks; a share of the plan's blocks is --share 1/3".to_owned())
}

/// Refuses to resume a merged run, to extend a share, and to resume with another share.
fn resumable(stored: &RunFolder, args: &Args) -> Result<()> {
    let (folder, record) = (stored.path().display(), stored.record());
    if !record.merged.is_empty() {
        return Err(Error::user(format!("{folder} was merged from {} runs", record.merged.len()))
            .hint("resume the run that lacks trials, then merge again: pgstrata merge DIR..."));
    }
    let asked = args.share.map(ShareArg::share).transpose()?;
    match (record.share, asked) {
        (Some(share), None) if args.blocks.is_some() => {
            Err(Error::user(format!("{folder} has share {share} of its plan, which is not extended"))
                .hint("for more blocks, raise `blocks` in the plan, and run and merge its shares"))
        }
        (held, Some(asked)) if held != Some(asked) => {
            let has = held.map_or_else(|| "all blocks".to_owned(), |held| format!("share {held}"));
            Err(Error::user(format!("{folder} has {has} of its plan, and --share asks for {asked}"))
                .hint("leave out --share to resume it; leave out --resume to run another share"))
        }
        _ => Ok(()),
    }
}

/// Shows each disk that the plan marks `overwrite = true` and each that is preconditioned, and asks, also for disks of a
/// resumed run whose trials are stored: damaged ones are measured again and disturbed ones repeated, and which these are is
/// only known later.
fn consent(host: &Host, task: &RunTask, yes: bool) -> Result<()> {
    let done = if let RunTask::Resume(stored) = task { drives::earlier(&stored.events()?) } else { Vec::new() };
    let disks = task.cases().iter().flat_map(|case| &case.stack.nodes).filter(|spec| spec.layer == "disk");
    let mut shown = BTreeSet::new();
    for spec in disks {
        // A disk that cannot be shown now must not be overwritten unseen if it appears later in the run.
        let contents = disk::contents(host, &spec.options)
            .map_err(|e| e.while_doing("show the disk that the plan marks `overwrite = true`"))?;
        let Some(contents) = contents else { continue };
        if shown.insert(contents.path.clone()) {
            out::remark(&described(&contents));
        }
    }
    let drives = preconditioned(host, task.cases(), &done)?;
    drives.iter().for_each(|line| out::remark(line));
    if yes || shown.is_empty() && drives.is_empty() {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let what = "cannot ask whether the disks above may be overwritten: standard input is not a terminal";
        return Err(Error::user(what).hint("check them and run again with --yes"));
    }
    out::remark("All data on them will be lost. Type yes to continue.");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).or_user(|| "read the answer".to_owned())?;
    if answer.trim() == "yes" { Ok(()) } else { Err(Error::user("no disk was touched: the answer was not yes")) }
}

/// Disks to be preconditioned, each with the amount and time.
fn preconditioned(host: &Host, cases: &[CaseSpec], done: &[DriveRecord]) -> Result<Vec<String>> {
    let lines = drives::lines(host, cases.iter().map(|case| &case.stack))?;
    let shown = lines.iter().filter(|line| !line.is_image).map(|line| match done.iter().any(|known| known.key == line.drive) {
        true => format!(
            "already preconditioned by this run, repeated if it was used or trimmed since: {}",
            prepared::drive(line)
        ),
        false => format!(
            "will be overwritten, and worn by preconditioning: {}; it then gets no discards until it is reattached or the machine \
             reboots, where the kernel takes no limit after 0 (Linux 6.18)",
            prepared::drive(line)
        ),
    });
    Ok(shown.map(|line| out::harmless(&line)).collect())
}

fn described(disk: &DiskContents) -> String {
    let size = disk.size.map(|size| size.to_string());
    let [model, serial, size] = [&disk.model, &disk.serial, &size].map(|fact| fact.as_deref().unwrap_or("unknown"));
    let holds = if disk.signatures.is_empty() { "nothing known".to_owned() } else { disk.signatures.join("; ") };
    let line = format!("will be overwritten: {}  model {model}  serial {serial}  {size}  holds: {holds}", disk.path);
    out::harmless(&line)
}

/// Refuses run folders as input where another tool's output is expected.
///
/// # Errors
/// With the commands that accept one.
pub fn refuse_folders(paths: &[PathBuf]) -> Result<()> {
    let Some(folder) = paths.iter().find(|path| RunFolder::is_one(path)) else { return Ok(()) };
    let folder = out::harmless(&folder.display().to_string());
    Err(Error::user(format!("{folder} is the folder of a pgstrata run, not the output of another tool"))
        .hint(format!("pgstrata report {folder}, or pgstrata compare {folder} OTHER")))
}

fn conclude(ending: &Ending, json: bool) -> Result<u8> {
    if ending.handed_over.is_some() {
        // The host boots the next guest, and writes the report at the end.
        return Ok(0);
    }
    print_result(&ending.folder, json, &summed_up(ending), ending.interrupted)?;
    if ending.interrupted {
        return Ok(Kind::Interrupted.exit_code());
    }
    if let Some((kind, why)) = &ending.stopped {
        out::remark(&out::harmless_lines(why));
        out::remark(&format!("fix that, then resume: pgstrata run --resume {}", ending.folder.display()));
        return Ok(kind.exit_code());
    }
    Ok(if ending.not_run > 0 { EXIT_INCOMPLETE } else { 0 })
}

/// Writes the analysis into a run folder; returns the path of the page.
pub(super) fn written(folder: &Path, findings: &Findings) -> Result<PathBuf> {
    let report = super::report::write_in(folder, findings)?;
    if let Err(e) = session::give_to_person(folder) {
        out::remark(&format!("warning: {}", out::harmless_lines(&e.to_string())));
    }
    Ok(report)
}

/// `4 trials measured, 12 not run (1 of them cut short); this session took 5 min 2 s, 62 % of it measurement`.
fn summed_up(ending: &Ending) -> String {
    let cut_short = if ending.cut_short { " (1 of them cut short)" } else { "" };
    let counts = format!("{} measured, {} not run{cut_short}", count(ending.done, "trial"), ending.not_run);
    if ending.nothing_left {
        return format!("the run is complete: {} measured", count(ending.done, "trial"));
    }
    let share = 100.0 * ending.measured_us as f64 / ending.wall_us.max(1) as f64;
    format!("{counts}; this session took {}, {share:.0} % of it measurement", Micros(ending.wall_us))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::case::WorkloadSpec;
    use crate::record::options::{OptionValue, Options};
    use crate::record::stack::StackSpec;

    fn case(layer: &str, device: &str, more: &[&str]) -> CaseSpec {
        let text = |text: &str| OptionValue::Text(text.to_owned());
        let mut options = Options::default();
        options.set(layer, text(device));
        more.iter().for_each(|key| options.set(key, OptionValue::Boolean(true)));
        CaseSpec {
            id: "s.w".into(),
            guest: None,
            stack: StackSpec::linear("s", vec![(layer, options), ("ext4", Options::default())]),
            postgres: None,
            machine: Options::default(),
            age: Options::default(),
            workload: WorkloadSpec { name: "w".into(), kind: "sync".into(), options: Options::default() },
            axes: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn disks_to_precondition_are_confirmed_once_and_image_files_never() {
        let asked = |cases: &[CaseSpec]| preconditioned(&Host::this(), cases, &[]).unwrap();
        let disk = case("disk", "/dev/no-such-disk", &["precondition"]);
        let lines = asked(&[disk.clone(), disk]);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let (begin, what) =
            ("will be overwritten, and worn by preconditioning: /dev/no-such-disk", "2 x its size in sequence");
        assert!(lines[0].starts_with(begin) && lines[0].contains(what), "{lines:?}");
        assert!(lines[0].contains("no discards until it is reattached or the machine reboots"), "{lines:?}");
        let none = Vec::<String>::new();
        assert_eq!(asked(&[case("disk", "/dev/no-such-disk", &["overwrite"])]), none);
        assert_eq!(asked(&[case("loop", "1GiB", &["precondition"])]), none);
    }
}

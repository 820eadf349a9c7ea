//! `pgstrata submit`: submits the shares of a plan to Slurm, Kubernetes or ssh hosts, and resubmits missing ones.

use super::engines::EngineArgs;
use super::out;
use super::plan::guests;
use super::share::run_folders;
use crate::analyse::fleet::shares::{self, ShareProgress, ShareState};
use crate::error::{Context, EXIT_INCOMPLETE, Error, Result};
use crate::host::command::{Command, quoted};
use crate::host::time::{rfc3339, wall_us};
use crate::host::{Host, files};
use crate::plan::Plan;
use crate::record::run::Share;
use crate::record::submitted::{FORMAT, Submission};
use crate::run::session;
use crate::submit::{self, Engine, LOGS, PLAN, PROGRAM, RESULTS};
use crate::units::count;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// File that marks the folder of a submission.
const SUBMISSION: &str = "submit.json";

/// Submit a plan's blocks to Slurm, Kubernetes, or hosts reached by ssh
///
/// Writes a folder with the plan, the program (with Kubernetes it comes from the image) and what the engine needs: the script of a job
/// array, the manifest of an Indexed Job, or a command line of GNU parallel. --go also submits it. Run folders end up in its folder
/// `results`; with Kubernetes, on the claim.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata submit plan.toml --slurm         write the folder, and say what to type
  pgstrata submit plan.toml --slurm --go -- --partition=nvme --time=8:00:00
  pgstrata submit plan.toml --ssh db1,db2,root@db3 --go
  pgstrata submit plan.toml --kubernetes --image r.example/pg --claim data
  pgstrata submit --again /shared/x         how far each share is
  pgstrata submit --again /shared/x --go    submit what is missing

Arguments after -- are passed to sbatch, kubectl or parallel, by --again too. A plan is divided into shares of its blocks, \
by default one block each, with --ssh one share for each host; every share runs on one machine (see pgstrata merge). With --slurm \
and --kubernetes a share that was begun is resumed, on any node; with --ssh only on the same host. Slurm requeues a task and Kubernetes \
replaces a pod when its node dies; everything else that is missing is submitted with --again --go. The plan may name no file beside it, and paths in it must be right on every machine.

With Kubernetes, run folders are on the claim: mount it at DIR/results, or copy them there from a pod that mounts it.

Exit code: 0 written, submitted, or every share is complete; 1 with --again: a share is not complete (running and queued ones included) \
and nothing was submitted, or with --ssh: one is still missing; 2 wrong plan, flag or folder, 3 the engine's program is missing, its pods still run, or another submit of the folder is going on, 4 it failed, 5 a folder cannot be written or read, \
130 interrupted.")]
pub struct Args {
    /// The plan file, or the name of a shipped plan
    #[arg(required_unless_present = "again")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    engine: EngineArgs,
    /// Number of shares [default: the number of blocks; with --ssh the number of hosts]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    shares: Option<u32>,
    /// Short windows and a part of the plan, as `pgstrata run --quick`
    #[arg(long)]
    quick: bool,
    /// Folder to make [default: pgstrata-PLAN-ID]
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Show how far the shares of the submission in this folder are; with --go submit the missing ones
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plan", "shares", "quick", "into"])]
    again: Option<PathBuf>,
    /// Submit it now
    #[arg(long)]
    go: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Arguments for sbatch, kubectl or parallel
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

/// Output of `submit --json`.
#[derive(Debug, Serialize)]
struct SubmitStatus {
    folder: PathBuf,
    submission: Submission,
    shares: Vec<ShareState>,
    /// Shares that wait or run according to the engine.
    queued: Vec<u32>,
    missing: Vec<u32>,
    /// Reasons for failed shares, from the engine's log.
    failures: Vec<(u32, String)>,
    /// Command that submits the missing shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    submitted: bool,
    /// Output of the engine's program.
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<String>,
}

/// Writes the folder, submits if requested, prints the status.
///
/// # Errors
/// See the exit codes in the help text.
pub fn run(args: &Args) -> Result<u8> {
    let host = Host::this();
    let (folder, submission, engine) = match (&args.again, &args.plan) {
        (Some(folder), _) => again(args, folder)?,
        (None, Some(plan)) => first(args, plan)?,
        (None, None) => return Err(Error::user("name a plan, or a folder with --again")),
    };
    let is_only_asked = args.again.is_some() && !args.go && args.engine.given().is_none() && args.arguments.is_empty();
    // Held until the end: shares that another process of ours is submitting have no folder yet.
    let _going = if is_only_asked { None } else { Some(alone(&folder)?) };
    let mut status = look(&host, folder, submission, engine, !is_only_asked)?;
    if let Some(end) = (engine.starts_all)(&status.submission).filter(|_| !is_only_asked && !status.queued.is_empty()) {
        return Err(still_there(&status, engine, &end.cwd(&status.folder)));
    }
    if !status.missing.is_empty() && is_only_asked {
        status.command = Some(format!("pgstrata submit --again {} --go", quoted(status.folder.as_os_str())));
    } else if !status.missing.is_empty() {
        write_job(&status, engine)?;
        let command = (engine.command)(&status.submission, &status.missing).cwd(&status.folder);
        status.command = Some(submit::shown(&status.folder, &command));
        if args.go {
            status.said = Some(handed_in(&host, engine, &command, &status.folder)?).filter(|said| !said.is_empty());
            status.submitted = true;
            if engine.waits {
                let SubmitStatus { folder, submission, command, .. } = status;
                status = SubmitStatus { command, submitted: true, ..look(&host, folder, submission, engine, args.go)? };
            }
        }
    }
    let with_shares = args.again.is_some() || status.submitted && engine.waits;
    out::json_or(args.json, &status, || shown(&status, with_shares))?;
    let open = match (status.submitted, engine.waits) {
        (true, false) => false,
        (true, true) => !status.missing.is_empty(),
        (false, _) => args.again.is_some() && status.shares.iter().any(|share| share.state != ShareProgress::Complete),
    };
    Ok(if open { EXIT_INCOMPLETE } else { 0 })
}

/// The folder, locked against another `submit --go`.
fn alone(folder: &Path) -> Result<fs::File> {
    let opened = fs::File::open(folder).or_store(|| format!("open the folder {}", folder.display()))?;
    match files::lock(&opened) {
        Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
            return Err(Error::host(format!("another pgstrata is submitting {}", folder.display()))
                .hint("wait until it ends, or stop it"));
        }
        locked => locked.or_store(|| format!("lock the folder {}", folder.display()))?,
    }
    Ok(opened)
}

/// Error for shares that would be started a second time.
fn still_there(status: &SubmitStatus, engine: &Engine, end: &Command) -> Error {
    let shares = status.queued.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let what = format!("shares still wait or run, and --{} starts all of them again: {shares}", engine.name);
    Error::host(what).hint(format!("wait for them, or end them: {}", submit::shown(&status.folder, end)))
}

/// Submits. An engine that waits for its tasks starts a new log of them.
fn handed_in(host: &Host, engine: &Engine, command: &Command, folder: &Path) -> Result<String> {
    let notes = engine.notes.filter(|_| engine.waits).map(|name| folder.join(name));
    if let Some(notes) = &notes {
        files::remove(notes)?;
    }
    let said = submit::hand_in(host, engine, command)?;
    match notes {
        Some(notes) if !notes.exists() => Err(Error::tool(format!("`{}` ran no task", engine.program))
            .hint("see its output above; arguments after -- are passed to it")),
        _ => Ok(said),
    }
}

/// A new submission, in a new folder.
fn first(args: &Args, path: &Path) -> Result<(PathBuf, Submission, &'static Engine)> {
    let (engine, options) = args.engine.chosen()?;
    let mut plan = super::plan::parsed(path)?;
    must_travel(&plan, path)?;
    if args.quick {
        plan.keep_quick_part();
    }
    let mut submission = Submission {
        format: FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        made: rfc3339(wall_us()),
        id: files::random_id()?,
        name: plan.name.clone(),
        plan_sha256: plan.sha256.clone(),
        seed: plan.seed,
        quick: args.quick,
        blocks: plan.blocks,
        shares: 1,
        engine: engine.name.to_owned(),
        options,
        arguments: args.arguments.clone(),
        attempt: 0,
    };
    submission.shares = args.shares.unwrap_or_else(|| (engine.shares)(&submission));
    // The last share is the first to have no block.
    plan.clone().keep_share(Share { part: submission.shares, of: submission.shares })?;
    let all: Vec<u32> = (1..=submission.shares).collect();
    // Refuses before a folder is made.
    (engine.job_file)(&submission, &all, &plan.text)?;
    let folder = args.into.clone().unwrap_or_else(|| PathBuf::from(submission.job_name()));
    let folder = std::path::absolute(&folder).or_user(|| format!("find {}", folder.display()))?;
    prepare(&folder, engine, &plan.text)?;
    Ok((folder, submission, engine))
}

/// Refuses a plan that does not run on the task's machine, or that needs local files.
fn must_travel(plan: &Plan, path: &Path) -> Result<()> {
    if !guests::suites(&plan.cases)?.is_empty() {
        return Err(Error::user("blocks are spread over machines, and this plan runs in guests")
            .hint("remove `guest` from the plan"));
    }
    // Parsed in another location, a plan lacks the files that it names by relative paths, or names others.
    let elsewhere = crate::plan::parse(&plan.text, PLAN, &super::catalogue());
    if !elsewhere.is_ok_and(|elsewhere| elsewhere.cases == plan.cases) {
        let plan = path.display();
        let what = format!("{plan} names a file next to it, which would not be copied to the machines");
        return Err(Error::user(what).hint(
            "write the SQL into the plan (it ends with `;`), or name an absolute path that is there on every machine",
        ));
    }
    Ok(())
}

fn prepare(folder: &Path, engine: &Engine, plan: &str) -> Result<()> {
    if engine.carries_program && !cfg!(target_os = "linux") {
        return Err(Error::host("the tasks need pgstrata for Linux, and this one would be copied to them")
            .hint("submit from a Linux machine, or use --kubernetes, whose image has its own"));
    }
    let is_new = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
    if !is_new || folder.is_file() {
        return Err(Error::user(format!("{} already exists and is not empty", folder.display())).hint(
            "choose another folder with --into DIR; to go on with what was submitted: pgstrata submit --again DIR",
        ));
    }
    for name in [RESULTS, LOGS] {
        let path = folder.join(name);
        fs::create_dir_all(&path).or_store(|| format!("create the folder {}", path.display()))?;
    }
    files::write_whole(&folder.join(PLAN), plan.as_bytes())?;
    if engine.carries_program {
        let own = std::env::current_exe().or_host(|| "find the program itself".to_owned())?;
        let copied = fs::copy(&own, folder.join(PROGRAM));
        copied.or_store(|| format!("copy {} to {}", own.display(), folder.display()))?;
    }
    Ok(())
}

/// An existing submission, with changed options applied.
fn again(args: &Args, folder: &Path) -> Result<(PathBuf, Submission, &'static Engine)> {
    let folder = std::path::absolute(folder).or_user(|| format!("find {}", folder.display()))?;
    let path = folder.join(SUBMISSION);
    let text = fs::read_to_string(&path).map_err(|e| {
        Error::user(format!("{}: {e}", path.display())).hint("name a folder that `pgstrata submit` has made")
    })?;
    let mut submission: Submission = serde_json::from_str(&text)
        .map_err(|e| Error::store(format!("{} is damaged: {e}", path.display())).hint("submit the plan again"))?;
    if submission.format > FORMAT {
        return Err(Error::store(format!("{} was written by pgstrata {}", path.display(), submission.tool_version))
            .hint("use that version, or a newer one"));
    }
    let engine = submit::engine(&submission.engine)?;
    if let Some((other, options)) = args.engine.given() {
        if other.name != engine.name {
            let message = format!("{} was submitted with --{}", folder.display(), engine.name);
            return Err(Error::user(message).hint("submit the plan again, into another folder"));
        }
        submission.options.extend(options.clone());
    }
    if !args.arguments.is_empty() {
        submission.arguments.clone_from(&args.arguments);
    }
    Ok((folder, submission, engine))
}

/// Progress of a submission. If the engine cannot list its queue, that is an error before submitting more.
fn look(host: &Host, folder: PathBuf, submission: Submission, engine: &Engine, writes: bool) -> Result<SubmitStatus> {
    // Before the folders: a share that ends in between is complete by its folder. A first attempt has nothing queued
    // yet.
    let queued = if submission.attempt == 0 { Ok(Vec::new()) } else { (engine.queued)(host, &submission) };
    let results = folder.join(RESULTS);
    let folders = run_folders(&results).or_store(|| format!("read the folder {}", results.display()))?;
    let shares = shares::shares(&submission, &folders)?;
    let answers = queued.is_ok();
    let queued = match queued {
        Err(e) if !writes => {
            out::remark(&format!("what waits or runs is not known: {}", out::harmless_lines(&e.to_string())));
            Vec::new()
        }
        // Waiting shares would be submitted twice.
        queued => queued?,
    };
    let open = shares.iter().filter(|share| matches!(share.state, ShareProgress::Absent | ShareProgress::Incomplete));
    let missing: Vec<u32> = open.map(|share| share.share).filter(|share| !queued.contains(share)).collect();
    let has_run = submission.attempt > 0 || engine.waits;
    let failures = if answers && has_run && !missing.is_empty() {
        let notes = engine.notes.and_then(|name| fs::read_to_string(folder.join(name)).ok());
        let failures = (engine.failures)(host, &submission, notes.as_deref()).unwrap_or_else(|e| {
            out::remark(&format!("why tasks failed is not known: {}", out::harmless_lines(&e.to_string())));
            Vec::new()
        });
        failures.into_iter().filter(|(share, _)| missing.contains(share)).collect()
    } else {
        Vec::new()
    };
    let (command, submitted, said) = (None, false, None);
    Ok(SubmitStatus { folder, submission, shares, queued, missing, failures, command, submitted, said })
}

/// The engine's file for the missing shares, and the record of this attempt.
fn write_job(status: &SubmitStatus, engine: &Engine) -> Result<()> {
    let path = status.folder.join(PLAN);
    let plan = fs::read_to_string(&path).or_store(|| format!("read {}", path.display()))?;
    let submission = Submission { attempt: status.submission.attempt + 1, ..status.submission.clone() };
    let (name, text) = (engine.job_file)(&submission, &status.missing, &plan)?;
    files::write_whole(&status.folder.join(name), text.as_bytes())?;
    let json = serde_json::to_string_pretty(&submission).map_err(|e| Error::bug(e.to_string()))?;
    files::write_whole(&status.folder.join(SUBMISSION), json.as_bytes())?;
    session::give_to_person(&status.folder)
}

fn shown(status: &SubmitStatus, with_shares: bool) -> String {
    let (of, folder) = (status.submission.shares, quoted(status.folder.as_os_str()));
    let mut text = format!("{} in {}\n", count(of, "share"), status.folder.display());
    for share in status.shares.iter().filter(|_| with_shares) {
        text.push_str(&format!("  {} of {of}  {}\n", share.share, line(share, status)));
    }
    text.extend(status.said.as_ref().map(|said| format!("{said}\n")));
    let complete = status.shares.iter().all(|share| share.state == ShareProgress::Complete);
    text.extend(status.command.as_ref().filter(|_| !status.submitted).map(|command| format!("submit    {command}\n")));
    if complete {
        text.push_str(&format!("merge     pgstrata merge {folder}/{RESULTS}/*\n"));
    } else {
        text.push_str(&format!("how far   pgstrata submit --again {folder}\n"));
    }
    out::harmless_lines(&text)
}

/// `incomplete, 1 of 4 trials, node2: ext4, block 2: no space`.
fn line(share: &ShareState, status: &SubmitStatus) -> String {
    let state = match share.state {
        ShareProgress::Complete => "complete",
        ShareProgress::Running => "running",
        _ if status.queued.contains(&share.share) => "queued",
        ShareProgress::Incomplete => "incomplete",
        ShareProgress::Absent => "no run folder",
    };
    let mut text = state.to_owned();
    text.extend(share.trials.map(|trials| format!(", {} of {}", share.done, count(trials, "trial"))));
    text.extend((!share.hosts.is_empty()).then(|| format!(", {}", share.hosts.join(", "))));
    let failure = status.failures.iter().find(|(failed, _)| *failed == share.share).map(|(_, why)| why);
    text.extend([failure, share.reason.as_ref()].into_iter().flatten().map(|why| format!("; {why}")));
    text
}

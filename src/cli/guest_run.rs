//! `pgstrata run --guest`: the same plan, run by the same program inside of a guest.

use super::out;
use super::progress::Progress;
use crate::error::{Error, Kind, Result};
use crate::guest::build::{self, Image};
use crate::guest::cache::Cache;
use crate::guest::channel::Stream;
use crate::guest::outlet::{INSIDE, Outlet};
use crate::guest::suite::Suite;
use crate::guest::vm::{Shape, Vm};
use crate::guest::wire::{Ended, Order};
use crate::host::signals::Interrupt;
use crate::host::{Host, files};
use crate::record::case::TrialKey;
use crate::record::event::{Event, Stamped, Step};
use crate::run::died::Died;
use crate::store::folder::RunFolder;
use crate::units::Bytes;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// A guest that dies without a trial under way would die again.
const WITHOUT_TRIAL: &str = "no trial was under way";
/// Most that the scratch disk may hold; what is not written takes no space.
const SCRATCH: Bytes = Bytes(256 << 30);

/// What was asked for.
pub struct Request<'a> {
    pub plan: &'a Path,
    pub suite: &'a Suite,
    pub quick: bool,
    pub json: bool,
    pub results: &'a Path,
}

/// How it ended: the exit code of the program inside, and the run folder where there is one.
pub struct Outcome {
    pub code: u8,
    pub folder: Option<PathBuf>,
}

/// Runs a plan in a guest. `follow` sees each event, with the run folder as it is seen on the host.
///
/// # Errors
/// When the guest is not built or does not boot, or ends with no trial under way.
pub fn run(host: &Host, request: &Request<'_>, follow: &dyn Fn(&Path, &Stamped)) -> Result<Outcome> {
    let interrupt = Interrupt::listen()?;
    let cache = Cache::of_user()?;
    let image = build::require(&cache, request.suite)?;
    let doing = || format!("read the plan {}", request.plan.display());
    let text = files::read_given(request.plan, 16 << 20, doing)?;
    let name =
        request.plan.file_name().map_or_else(|| "plan.toml".to_owned(), |name| name.to_string_lossy().into_owned());
    let outlet = Outlet::make(host, request.results, (&name, &text))?;
    let progress = Progress::new(request.json, std::io::stderr().is_terminal());
    let mut sitting =
        Sitting { outlet: &outlet, progress: &progress, follow, line: Vec::new(), under_way: None, errors: Vec::new() };
    let mut died: Vec<Died> = Vec::new();
    let ended = loop {
        match boot_and_run(host, &cache, &image, request, &name, &died, &mut sitting, &interrupt) {
            Err(e) if e.kind() == Kind::Interrupted => break Err(e),
            Err(e) => match sitting.under_way.take() {
                Some((trial, step)) if !interrupt.is_raised() => {
                    out::remark(&out::harmless_lines(&format!(
                        "warning: {e}\nthe guest is booted again for the other trials"
                    )));
                    died.push(Died { trial, step, reason: e.chain() });
                }
                _ => break Err(e.while_doing(format!("run the plan in the guest ({WITHOUT_TRIAL})"))),
            },
            Ok(ended) => break Ok(ended),
        }
    };
    progress.finish();
    let errors = std::mem::take(&mut sitting.errors);
    let folder = outlet.take_out(host)?;
    let code = match ended? {
        Ended::Exited(code) => u8::try_from(code).unwrap_or(u8::MAX),
        Ended::Killed { signal } => {
            return Err(Error::tool(format!("pgstrata in the guest was killed by signal {signal}")));
        }
        Ended::TimedOut => return Err(Error::bug("a run without a limit was at its limit")),
    };
    if folder.is_none() {
        // What the program inside had to say is all there is.
        out::to_stderr_bytes(&errors);
    }
    Ok(Outcome { code, folder })
}

#[expect(clippy::too_many_arguments, reason = "all that a sitting is made of, in one place")]
fn boot_and_run(
    host: &Host,
    cache: &Cache,
    image: &Image,
    request: &Request<'_>,
    name: &str,
    died: &[Died],
    sitting: &mut Sitting<'_>,
    interrupt: &Interrupt,
) -> Result<Ended> {
    let mut shape = Shape::usual(cache)?;
    // What the host has no room for must not look free inside.
    let free = files::free_bytes(&files::nearest_existing(cache.parent()))?;
    shape.scratch = Some(Bytes(free.min(SCRATCH.0) >> 20 << 20));
    shape.shares.push(sitting.outlet.shared());
    let mut vm = Vm::boot(host, cache, image, &shape, interrupt)?;
    let mut argv: Vec<String> = ["pgstrata", "run", "--json", "--yes", "--results", INSIDE].map(str::to_owned).to_vec();
    match sitting.outlet.run_folder()? {
        Some((_, folder)) => {
            let list = serde_json::to_string(died).map_err(|e| Error::bug(e.to_string()))?;
            argv.extend(["--resume".to_owned(), format!("{INSIDE}/{folder}"), "--died".to_owned(), list]);
        }
        None => {
            argv.push(name.to_owned());
            argv.extend(request.quick.then(|| "--quick".to_owned()));
        }
    }
    let env = vec![("HOME".to_owned(), "/root".to_owned())];
    let order = Order { argv, env, cwd: INSIDE.to_owned(), limit_ms: None };
    let ended = vm.run(&order, None, interrupt, &mut |stream, bytes| {
        match stream {
            Stream::Output => sitting.take(bytes),
            Stream::Errors => sitting.errors.extend_from_slice(bytes),
        }
        Ok(())
    })?;
    vm.power_off();
    Ok(ended)
}

/// What is known of the run while it goes on.
struct Sitting<'a> {
    outlet: &'a Outlet,
    progress: &'a Progress,
    follow: &'a dyn Fn(&Path, &Stamped),
    /// The part of a line that has come.
    line: Vec<u8>,
    /// The trial that is under way, and what it is at.
    under_way: Option<(TrialKey, Step)>,
    /// What the program inside has printed as errors.
    errors: Vec<u8>,
}

impl Sitting<'_> {
    /// Takes in events, one a line.
    fn take(&mut self, bytes: &[u8]) {
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            if let Ok(event) = serde_json::from_slice::<Stamped>(&line) {
                self.note(&event);
            }
        }
    }

    fn note(&mut self, event: &Stamped) {
        match &event.what {
            Event::TrialStarted { trial } => self.under_way = Some((trial.clone(), Step::Check)),
            Event::StepStarted { trial, step, .. } => self.under_way = Some((trial.clone(), *step)),
            Event::TrialDone { .. } | Event::TrialNotRun { .. } => self.under_way = None,
            _ => {}
        }
        self.progress.show(event);
        // That the growing folder cannot be shown does not end the run.
        if let Ok(Some(folder)) = self.outlet.show() {
            (self.follow)(&folder, event);
        }
    }
}

/// Trials with and without figures of a run that has ended, from its folder.
///
/// # Errors
/// When the folder cannot be read.
pub fn counted(folder: &Path) -> Result<(u32, u32)> {
    let stored = RunFolder::open(folder)?;
    let due = stored.record().due(stored.events()?.iter().map(|event| &event.what));
    let mut measured = 0;
    for key in &due {
        measured += u32::from(stored.stored(key)?.measured().is_some());
    }
    Ok((measured, u32::try_from(due.len()).unwrap_or(u32::MAX) - measured))
}

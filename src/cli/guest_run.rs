//! `pgstrata run --guest`: the same plan, run by the same program inside of a guest.

use super::out;
use super::plan::guests;
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
use crate::run::session;
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
    pub task: Task<'a>,
    /// The suites of all its guests; the first is booted first.
    pub suites: Vec<Suite>,
    pub json: bool,
    pub results: &'a Path,
}

/// What is to be run.
pub enum Task<'a> {
    /// A plan from its beginning: the name of its file, and its text.
    Start { name: String, text: Vec<u8>, quick: bool },
    /// What is left of a run, by the absolute path of its folder; with more blocks where that is asked.
    Resume { folder: &'a Path, blocks: Option<u32> },
}

/// How it ended: the exit code of the program inside, and the run folder where there is one.
pub struct Outcome {
    pub code: u8,
    pub folder: Option<PathBuf>,
}

/// Runs a plan in its guests, one at a time. `follow` sees each event, with the run folder as it is seen on the host.
///
/// # Errors
/// When a guest is not built or does not boot, or ends with no trial under way.
pub fn run(host: &Host, request: &Request<'_>, follow: &dyn Fn(&Path, &Stamped)) -> Result<Outcome> {
    let interrupt = Interrupt::listen()?;
    let cache = Cache::of_user()?;
    // All of them, before anything is booted.
    let images: Vec<Image> = request.suites.iter().map(|suite| build::require(&cache, suite)).collect::<Result<_>>()?;
    let outlet = match &request.task {
        Task::Start { name, text, .. } => Outlet::make(host, request.results, (name, text))?,
        Task::Resume { folder, .. } => Outlet::around(host, folder)?,
    };
    let progress = Progress::new(request.json, std::io::stderr().is_terminal());
    let mut sitting = Sitting::new(&outlet, &progress, follow);
    let ended = Trip { host, cache: &cache, images: &images, request, interrupt: &interrupt }.all(&mut sitting);
    progress.finish();
    let (errors, spoke) = (std::mem::take(&mut sitting.errors), sitting.spoke);
    let folder = outlet.take_out(host)?;
    folder.as_deref().map_or(Ok(()), session::give_to_person)?;
    let code = match ended.map_err(|e| resumable(e, folder.as_deref()))? {
        Ended::Exited(code) => u8::try_from(code).unwrap_or(u8::MAX),
        Ended::Killed { signal } => {
            return Err(Error::tool(format!("pgstrata in the guest was killed by signal {signal}")));
        }
        Ended::TimedOut => return Err(Error::bug("a run without a limit was at its limit")),
    };
    if !spoke {
        // What the program inside had to say is all there is.
        out::to_stderr_bytes(&errors);
    }
    Ok(Outcome { code, folder: folder.filter(|_| spoke) })
}

/// Says how what was measured is not lost.
fn resumable(error: Error, folder: Option<&Path>) -> Error {
    match folder {
        Some(folder) if error.hint_text().is_none() => error
            .hint(format!("complete trials are kept; resume the run with: pgstrata run --resume {}", folder.display())),
        _ => error,
    }
}

/// Name and text of the plan that goes in: a file, or a shipped plan.
///
/// # Errors
/// Plan file's mistakes, and what no guest can do.
pub fn text_of(path: &Path) -> Result<(String, Vec<u8>)> {
    let found = super::plan::parsed(path)?;
    guests::refuse_builds(&found.cases)?;
    let name = path.file_name().map_or_else(|| "plan.toml".to_owned(), |name| name.to_string_lossy().into_owned());
    Ok((if path.is_file() { name } else { format!("{}.toml", found.name) }, found.text.into_bytes()))
}

/// What every boot of a run needs.
struct Trip<'a> {
    host: &'a Host,
    cache: &'a Cache,
    images: &'a [Image],
    request: &'a Request<'a>,
    interrupt: &'a Interrupt,
}

impl Trip<'_> {
    /// Boots one guest after another until the run has ended.
    fn all(&self, sitting: &mut Sitting<'_>) -> Result<Ended> {
        let mut suite = self.request.suites.first().ok_or_else(|| Error::bug("a run in no guest"))?.clone();
        // Trials under which a guest died; none before the first boot.
        let mut died: Option<Vec<Died>> = None;
        loop {
            match self.boot_and_run(&suite, died.as_deref(), sitting) {
                Err(e) if e.kind() == Kind::Interrupted => return Err(e),
                Err(e) => match sitting.under_way.take() {
                    Some((trial, step)) if !self.interrupt.is_raised() => {
                        out::remark(&out::harmless_lines(&format!(
                            "warning: {e}\nthe guest is booted again for the other trials"
                        )));
                        died.get_or_insert_default().push(Died { trial, step, reason: e.chain() });
                    }
                    _ => return Err(e.while_doing(format!("run the plan in the guest {suite} ({WITHOUT_TRIAL})"))),
                },
                Ok(ended) => match sitting.next.take() {
                    Some(next) => {
                        suite = next.parse()?;
                        died.get_or_insert_default();
                    }
                    None => return Ok(ended),
                },
            }
        }
    }

    fn boot_and_run(&self, suite: &Suite, died: Option<&[Died]>, sitting: &mut Sitting<'_>) -> Result<Ended> {
        let image = self.images.iter().find(|image| image.suite == *suite);
        let image = image.ok_or_else(|| Error::bug(format!("the run was handed over to the guest {suite}")))?;
        let shape = shape(self.cache, sitting.outlet)?;
        let mut vm = Vm::boot(self.host, self.cache, image, &shape, self.interrupt)?;
        let argv = self.argv(suite, died, sitting.outlet)?;
        (sitting.spoke, sitting.errors) = (false, Vec::new());
        let env = vec![("HOME".to_owned(), "/root".to_owned())];
        let order = Order { argv, env, cwd: INSIDE.to_owned(), limit_ms: None };
        let ended = vm.run(&order, None, self.interrupt, &mut |stream, bytes| {
            match stream {
                Stream::Output => sitting.take(bytes),
                Stream::Errors => sitting.errors.extend_from_slice(bytes),
            }
            Ok(())
        })?;
        vm.power_off();
        Ok(ended)
    }

    /// What is called inside: the plan at first, then what is left of the run.
    fn argv(&self, suite: &Suite, died: Option<&[Died]>, outlet: &Outlet) -> Result<Vec<String>> {
        let mut argv: Vec<String> =
            ["pgstrata", "run", "--json", "--yes", "--results", INSIDE, "--inside", suite.name()]
                .map(str::to_owned)
                .into();
        match (outlet.run_folder()?, &self.request.task) {
            (Some((_, folder)), _) => argv.extend(["--resume".to_owned(), format!("{INSIDE}/{folder}")]),
            (None, Task::Start { name, quick, .. }) => {
                argv.push(name.clone());
                argv.extend(quick.then(|| "--quick".to_owned()));
                return Ok(argv);
            }
            (None, Task::Resume { folder, .. }) => {
                return Err(Error::store(format!("the run folder {} is gone", folder.display())));
            }
        }
        if let Some(died) = died {
            argv.extend(["--died".to_owned(), serde_json::to_string(died).map_err(|e| Error::bug(e.to_string()))?]);
        } else if let Task::Resume { blocks: Some(blocks), .. } = self.request.task {
            argv.extend(["--blocks".to_owned(), blocks.to_string()]);
        }
        Ok(argv)
    }
}

/// A guest with a scratch disk and a way out.
///
/// # Errors
/// When this program cannot be found, or the free space below the cache.
pub(super) fn shape(cache: &Cache, outlet: &Outlet) -> Result<Shape> {
    let mut shape = Shape::usual(cache)?;
    // What the host has no room for must not look free inside.
    let free = files::free_bytes(&files::nearest_existing(cache.parent()))?;
    shape.scratch = Some(Bytes(free.min(SCRATCH.0) >> 20 << 20));
    shape.shares.push(outlet.shared());
    Ok(shape)
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
    /// The guest in which the next trials are due.
    next: Option<String>,
    /// What the program inside has printed as errors.
    errors: Vec<u8>,
    /// Whether it has told an event since it was called.
    spoke: bool,
}

impl<'a> Sitting<'a> {
    fn new(outlet: &'a Outlet, progress: &'a Progress, follow: &'a dyn Fn(&Path, &Stamped)) -> Sitting<'a> {
        let (line, errors) = (Vec::new(), Vec::new());
        Sitting { outlet, progress, follow, line, under_way: None, next: None, errors, spoke: false }
    }

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
        self.spoke = true;
        match &event.what {
            Event::HandedOver { guest } => self.next = Some(guest.clone()),
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

/// Trials with and without a result of a run that has ended, from its folder.
///
/// # Errors
/// When the folder cannot be read.
pub fn counted(folder: &Path) -> Result<(u32, u32)> {
    let stored = RunFolder::open(folder)?;
    let due = stored.record().due(stored.events()?.iter().map(|event| &event.what));
    let mut measured = 0;
    for key in &due {
        measured += u32::from(stored.stored(key)?.is_result());
    }
    Ok((measured, u32::try_from(due.len()).unwrap_or(u32::MAX) - measured))
}

/// Trials of a run that have no figures, in their order.
///
/// # Errors
/// When the folder cannot be read.
pub fn left(stored: &RunFolder) -> Result<Vec<TrialKey>> {
    let mut left = Vec::new();
    for key in stored.record().due(stored.events()?.iter().map(|event| &event.what)) {
        if stored.stored(&key)?.measured().is_none() {
            left.push(key);
        }
    }
    Ok(left)
}

//! `pgstrata run --guest`: the same plan, run by the same program in a guest.

use super::plan::guests;
use super::progress::ProgressLine;
use super::{built, out};
use crate::builds::Shelf;
use crate::error::{Error, Kind, Result};
use crate::guest::cache::Cache;
use crate::guest::channel::OutputStream;
use crate::guest::disks::PlanDisks;
use crate::guest::image::GuestImage;
use crate::guest::outlet::{INSIDE, Outlet};
use crate::guest::share::{GivenFile, SharedFolder};
use crate::guest::suite::Suite;
use crate::guest::vm::{LeftDisk, Scratch, Shape, Vm};
use crate::guest::wire::{CommandEnd, Order};
use crate::host::signals::Interrupt;
use crate::host::time::{Instant, micros, now};
use crate::host::{Host, files};
use crate::provision::guest_disk;
use crate::record::build::GIVEN;
use crate::record::case::{CaseSpec, TrialKey};
use crate::record::event::{Event, Stamped, Step};
use crate::run::died::{Crashed, Died};
use crate::run::session;
use crate::store::folder::RunFolder;
use crate::units::Bytes;
use std::cell::Cell;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A guest that dies without a current trial would die again.
const WITHOUT_TRIAL: &str = "no trial was under way";
/// Time limit for opening a stack after a crash, recovery included; PostgreSQL's start has its own limit.
const BACK_LIMIT: Duration = Duration::from_secs(2 * 3600);
/// Maximum size of the scratch disk; unwritten parts take no space.
const SCRATCH: Bytes = Bytes(256 << 30);

/// A run in guests, as requested.
pub struct GuestRunRequest<'a> {
    pub task: GuestTask<'a>,
    /// All its guests; the first is booted first.
    pub images: Vec<GuestImage>,
    /// Its cases, with what is built for them.
    pub cases: Vec<CaseSpec>,
    pub json: bool,
    pub results: &'a Path,
}

/// Gets each event, with the run folder on the host.
type Follow<'a> = dyn Fn(&Path, &Stamped) + 'a;

/// Work to do.
pub enum GuestTask<'a> {
    /// A plan from its beginning.
    Start { plan: GivenFile, quick: bool },
    /// The rest of a run, by the absolute path of its folder; extended if `blocks` is given.
    Resume { folder: &'a Path, blocks: Option<u32> },
}

/// Runs a plan in its guests, one at a time; returns the exit code of the program inside, and the run folder if there
/// is one.
///
/// # Errors
/// If a guest does not boot, or dies with no current trial.
pub fn run(
    host: &Host,
    request: &GuestRunRequest<'_>,
    interrupt: &Interrupt,
    follow: &Follow<'_>,
) -> Result<(u8, Option<PathBuf>)> {
    let first = &request.images.first().ok_or_else(|| Error::bug("a run in no guest"))?.suite;
    let cache = Cache::of_user()?;
    let disks = PlanDisks::make(&cache, guest_disk::needed(request.cases.iter().map(|case| &case.stack)))?;
    let outlet = match &request.task {
        GuestTask::Start { .. } => Outlet::make(host, request.results)?,
        GuestTask::Resume { folder, .. } => Outlet::around(host, folder)?,
    };
    let progress = ProgressLine::new(request.json, std::io::stderr().is_terminal());
    let mut session = GuestSession::new(&outlet, &progress, follow);
    let trip = Trip { host, cache: &cache, disks, request, interrupt };
    let ended = course(first, interrupt, &mut session, &mut |boot, session| trip.boot_and_run(boot, session));
    progress.finish();
    let (errors, spoke) = (std::mem::take(&mut session.errors), session.spoke);
    let folder = outlet.take_out(host)?;
    folder.as_deref().map_or(Ok(()), session::give_to_person)?;
    let ended = ended.map_err(|e| match &folder {
        // No measurement is lost.
        Some(folder) => e.or_hint(format!(
            "complete trials are kept; resume the run with: pgstrata run --resume {}",
            folder.display()
        )),
        None => e,
    });
    let code = exit_code(ended?)?;
    if !spoke {
        // The errors of the program inside are all there is.
        out::to_stderr_bytes(&errors);
    }
    Ok((code, folder.filter(|_| spoke)))
}

/// The exit code of the program inside.
///
/// # Errors
/// If it was killed.
pub(super) fn exit_code(ended: CommandEnd) -> Result<u8> {
    match ended {
        CommandEnd::Exited(code) => Ok(u8::try_from(code).unwrap_or(u8::MAX)),
        CommandEnd::Killed { signal } => {
            Err(Error::tool(format!("pgstrata in the guest was killed by signal {signal}")))
        }
        CommandEnd::TimedOut => Err(Error::bug("a command without a limit was at its limit")),
    }
}

/// Command to start the program inside.
pub(super) fn order(argv: Vec<String>) -> Order {
    Order { argv, env: vec![("HOME".to_owned(), "/root".to_owned())], cwd: INSIDE.to_owned(), limit_ms: None }
}

/// Input of every boot of a run.
struct Trip<'a> {
    host: &'a Host,
    cache: &'a Cache,
    disks: PlanDisks,
    request: &'a GuestRunRequest<'a>,
    interrupt: &'a Interrupt,
}

/// Outcome of a boot.
enum Went<D> {
    Ended(CommandEnd),
    /// A trial requested the crash of its guest, which was killed; the rest of the guest.
    Killed(D),
}

/// Input of one boot of a run.
struct Boot<'a, D> {
    suite: &'a Suite,
    /// Trials during which a guest died; `None` before the first boot.
    died: Option<&'a [Died]>,
    /// The crash after which it continues, with the rest of the killed guest.
    after: Option<(CrashRequest, D)>,
}

/// Boots a guest, and runs the due trials in it.
type BootOne<'f, D> = dyn FnMut(Boot<'_, D>, &mut GuestSession<'_>) -> Result<Went<D>> + 'f;

/// Boots guests one after another until the run has ended.
fn course<D>(
    first: &Suite,
    interrupt: &Interrupt,
    session: &mut GuestSession<'_>,
    boot: &mut BootOne<'_, D>,
) -> Result<CommandEnd> {
    let mut suite = first.clone();
    let mut died: Option<Vec<Died>> = None;
    let mut after = None;
    loop {
        session.begin();
        let went = boot(Boot { suite: &suite, died: died.as_deref(), after: after.take() }, session);
        let went = went.and_then(|went| match went {
            Went::Ended(ended) => Ok(Went::Ended(ended)),
            Went::Killed(left) => session.crash().map(|request| Went::Killed((request, left))),
        });
        match went {
            Err(e) if e.kind() == Kind::Interrupted => return Err(e),
            Err(e) => match session.under_way.take() {
                Some((trial, step)) if !interrupt.is_raised() => {
                    out::remark(&out::harmless_lines(&format!(
                        "warning: {e}\nthe guest is booted again for the other trials"
                    )));
                    died.get_or_insert_default().push(Died { trial, step, reason: e.chain() });
                }
                _ => return Err(e.while_doing(format!("run the plan in the guest {suite} ({WITHOUT_TRIAL})"))),
            },
            Ok(Went::Killed(crash)) => after = Some(crash),
            Ok(Went::Ended(ended)) => match session.next.take() {
                Some(next) => suite = next.parse()?,
                None => return Ok(ended),
            },
        }
        died.get_or_insert_default();
    }
}

impl Trip<'_> {
    fn boot_and_run(&self, boot: Boot<'_, LeftDisk>, session: &mut GuestSession<'_>) -> Result<Went<LeftDisk>> {
        let Boot { suite, died, after } = boot;
        let image = self.request.images.iter().find(|image| image.suite == *suite);
        let image = image.ok_or_else(|| Error::bug(format!("the run was handed over to the guest {suite}")))?;
        let (crash, disk) = after.unzip();
        let mut shape = shape(self.cache, session.outlet, &self.disks, &self.request.cases)?;
        if let GuestTask::Start { plan, .. } = &self.request.task {
            shape.files.push(plan.clone());
        }
        if let Some(disk) = disk {
            shape.scratch = Some(Scratch::Left(disk));
        }
        let mut vm = Vm::boot(self.host, self.cache, image, &shape, self.interrupt)?;
        let crashed = crash.map(|(crashed, at)| Crashed { down_us: micros(at.elapsed()), ..crashed });
        let order = order(self.argv(suite, died, crashed.as_ref(), session.outlet)?);
        let (asked, back) = (Cell::new(false), Cell::new(None));
        let ended = vm.run_until(
            &order,
            None,
            self.interrupt,
            &mut |stream, bytes| {
                match stream {
                    OutputStream::Output => session.take(bytes),
                    OutputStream::Errors => session.errors.extend_from_slice(bytes),
                }
                asked.set(session.asked.is_some());
                back.set(session.back);
                Ok(())
            },
            &|| asked.get() || back.get().is_some_and(|back: Instant| back.elapsed() > BACK_LIMIT),
        )?;
        match ended {
            None if asked.get() => vm.kill().map(Went::Killed),
            None => {
                let what = format!("the trial did not go on within {} s after the crash", BACK_LIMIT.as_secs());
                Err(Error::tool(what).hint("opening the stack or recovery hangs: see the guest's console"))
            }
            Some(ended) => {
                vm.power_off();
                Ok(Went::Ended(ended))
            }
        }
    }

    /// Arguments of the program inside: the plan at first, then the rest of the run.
    fn argv(
        &self,
        suite: &Suite,
        died: Option<&[Died]>,
        crashed: Option<&Crashed>,
        outlet: &Outlet,
    ) -> Result<Vec<String>> {
        let argv = ["pgstrata", "run", "--json", "--yes", "--results", INSIDE, "--inside", suite.name()];
        let mut argv: Vec<String> = argv.map(str::to_owned).into();
        match (outlet.run_folder()?, &self.request.task) {
            (Some((_, folder)), _) => argv.extend(["--resume".to_owned(), format!("{INSIDE}/{folder}")]),
            (None, GuestTask::Start { plan: (path, _), quick }) => {
                argv.push(path.to_string_lossy().into_owned());
                argv.extend(quick.then(|| "--quick".to_owned()));
                return Ok(argv);
            }
            (None, GuestTask::Resume { folder, .. }) => {
                return Err(Error::store(format!("the run folder {} is gone", folder.display())));
            }
        }
        if let Some(died) = died {
            argv.extend(["--died".to_owned(), out::json_line(&died)?]);
        } else if let GuestTask::Resume { blocks: Some(blocks), .. } = self.request.task {
            argv.extend(["--blocks".to_owned(), blocks.to_string()]);
        }
        if let Some(crashed) = crashed {
            argv.extend(["--crashed".to_owned(), out::json_line(crashed)?]);
        }
        Ok(argv)
    }
}

/// A guest with the disks of its plan, a scratch disk, a channel for results, and the files and builds of these cases.
///
/// # Errors
/// If this program, or the free space below the cache, cannot be determined, or a file cannot be read.
pub(super) fn shape(cache: &Cache, outlet: &Outlet, disks: &PlanDisks, cases: &[CaseSpec]) -> Result<Shape> {
    let mut shape = Shape::usual(cache)?;
    // The disk must not show free space that the host lacks.
    let free = files::free_bytes(&files::nearest_existing(cache.parent()))?.saturating_sub(disks.unallocated()?.0);
    disks.write_first_blocks()?;
    shape.plan_disks = disks.clone();
    shape.scratch = Some(Scratch::Empty(Bytes(free.min(SCRATCH.0) >> 20 << 20)));
    shape.shares.push(outlet.shared());
    shape.files = guests::files(cases)?;
    let builds = built::made(cases);
    if !builds.is_empty() {
        // Programs contain the path of their libraries.
        let folder = Shelf::of_user()?.path().to_path_buf();
        let inside = folder.to_string_lossy().into_owned();
        shape.shares.push(SharedFolder { tag: "builds".to_owned(), folder, inside, writable: false });
        shape.files.push((GIVEN.into(), out::json_line(&builds)?.into_bytes()));
    }
    Ok(shape)
}

/// A trial's request that its guest be killed, and when it arrived.
type CrashRequest = (Crashed, Instant);

/// State of the run in progress.
struct GuestSession<'a> {
    outlet: &'a Outlet,
    progress: &'a ProgressLine,
    follow: &'a Follow<'a>,
    /// Incomplete last line.
    line: Vec<u8>,
    /// The current trial and its step.
    under_way: Option<(TrialKey, Step)>,
    /// The crash that it requests.
    asked: Option<CrashRequest>,
    /// Start of the continuation after that, until its first event.
    back: Option<Instant>,
    /// True if its guest has crashed already.
    has_crashed: bool,
    /// The guest for the next trials.
    next: Option<String>,
    /// Standard error of the program inside.
    errors: Vec<u8>,
    /// True if it has sent an event since its start.
    spoke: bool,
}

impl<'a> GuestSession<'a> {
    fn new(outlet: &'a Outlet, progress: &'a ProgressLine, follow: &'a Follow<'a>) -> GuestSession<'a> {
        let (line, errors) = (Vec::new(), Vec::new());
        let (under_way, asked, back, has_crashed, next, spoke) = (None, None, None, false, None, false);
        GuestSession { outlet, progress, follow, line, under_way, asked, back, has_crashed, next, errors, spoke }
    }

    /// Resets the state of the program inside for a new guest.
    fn begin(&mut self) {
        (self.spoke, self.errors, self.line) = (false, Vec::new(), Vec::new());
        (self.asked, self.back) = (None, None);
    }

    /// Takes the request for a crash that has been carried out.
    fn crash(&mut self) -> Result<CrashRequest> {
        let request = self.asked.take().ok_or_else(|| Error::bug("a guest was killed that nobody wanted to crash"))?;
        if std::mem::replace(&mut self.has_crashed, true) {
            let what = format!("trial {} of {}", request.0.trial.trial, request.0.trial.case);
            return Err(Error::tool(format!("{what} asked for a second crash of its guest, and was ended")));
        }
        Ok(request)
    }

    /// Handles output of events, one per line.
    fn take(&mut self, bytes: &[u8]) {
        for line in whole_lines(&mut self.line, bytes) {
            if let Ok(event) = serde_json::from_slice::<Stamped>(&line) {
                self.note(&event);
            }
        }
    }

    fn note(&mut self, event: &Stamped) {
        self.spoke = true;
        // Any further event shows that it continues.
        self.back = matches!(event.what, Event::CrashSurvived { .. }).then(now);
        match &event.what {
            Event::HandedOver { guest } => self.next = Some(guest.clone()),
            Event::TrialStarted { trial } => {
                (self.under_way, self.has_crashed) = (Some((trial.clone(), Step::Check)), false);
            }
            Event::CrashAsked { trial, since_answer_us, answers_apart_us } => {
                let (trial, since_answer_us, answers_apart_us) = (trial.clone(), *since_answer_us, *answers_apart_us);
                self.asked = Some((Crashed { trial, since_answer_us, answers_apart_us, down_us: 0 }, now()));
            }
            Event::StepStarted { trial, step, .. } => self.under_way = Some((trial.clone(), *step)),
            Event::TrialDone { .. } | Event::TrialNotRun { .. } => self.under_way = None,
            _ => {}
        }
        self.progress.show(event);
        // A failure to show the growing folder does not end the run.
        if let Ok(Some(folder)) = self.outlet.show() {
            (self.follow)(&folder, event);
        }
    }
}

/// Adds bytes to an incomplete line; takes the lines that are complete.
pub(super) fn whole_lines(line: &mut Vec<u8>, bytes: &[u8]) -> Vec<Vec<u8>> {
    line.extend_from_slice(bytes);
    let end = line.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let whole: Vec<u8> = line.drain(..end).collect();
    whole.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Trials of a run that have no figures, in order.
///
/// # Errors
/// If the folder cannot be read.
pub fn left(stored: &RunFolder) -> Result<Vec<TrialKey>> {
    let mut left = Vec::new();
    for key in stored.record().due(stored.events()?.iter().map(|event| &event.what)) {
        if stored.stored(&key)?.measured().is_none() {
            left.push(key);
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events of a guest in each boot, and the way each boot ends.
    type Boots<'b> = &'b [(&'b [Event], Option<&'b str>)];

    fn key() -> TrialKey {
        TrialKey { case: "ext4.crash".to_owned(), trial: 1 }
    }

    fn started() -> Event {
        Event::TrialStarted { trial: key() }
    }

    fn asked() -> Event {
        Event::CrashAsked { trial: key(), since_answer_us: 3_000, answers_apart_us: 7_000 }
    }

    fn done() -> Event {
        Event::TrialDone { trial: key(), wall_us: 1, measured_us: 1, rate: None, full_after_us: None }
    }

    /// Input of a boot: the trials that died, and the disk with which it continues after a crash.
    type Got = (Vec<String>, Option<&'static str>);

    /// Simulates these boots; returns the outcome and the input of each.
    fn played(boots: Boots<'_>) -> (Result<CommandEnd>, Vec<Got>) {
        let results = tempfile::tempdir().unwrap();
        files::set_mode(results.path(), 0o755).unwrap();
        let outlet = Outlet::make(&Host::this(), results.path()).unwrap();
        let (progress, follow) = (ProgressLine::new(false, false), |_: &Path, _: &Stamped| {});
        let mut session = GuestSession::new(&outlet, &progress, &follow);
        let (mut got, mut left) = (Vec::new(), boots.iter());
        let ended = course(&Suite::default(), &Interrupt::never(), &mut session, &mut |boot, session| {
            let died = boot.died.unwrap_or_default().iter().map(|died| died.reason.clone()).collect();
            if let Some(((request, _), _)) = &boot.after {
                assert_eq!((request.since_answer_us, request.answers_apart_us), (3_000, 7_000));
            }
            got.push((died, boot.after.map(|(_, disk)| disk)));
            let (events, fails) = left.next().expect("no further boot");
            for what in *events {
                let line = serde_json::to_string(&Stamped { at_us: 1, what: what.clone() }).unwrap();
                session.take(format!("{line}\n").as_bytes());
            }
            // An incomplete line, as a killed guest leaves it.
            session.take(b"{\"half a line");
            match fails {
                Some(why) => Err(Error::tool((*why).to_owned())),
                None if session.asked.is_some() => Ok(Went::Killed("disk")),
                None => Ok(Went::Ended(CommandEnd::Exited(0))),
            }
        });
        (ended, got)
    }

    #[test]
    fn a_guest_that_its_trial_kills_reboots_with_its_disk() {
        let (ended, got) = played(&[(&[started(), asked()], None), (&[done()], None)]);
        assert_eq!(ended.unwrap(), CommandEnd::Exited(0));
        assert_eq!(got, [(Vec::new(), None), (Vec::new(), Some("disk"))]);
    }

    #[test]
    fn each_trial_may_crash_once_and_again_when_repeated() {
        let (ended, got) =
            played(&[(&[started(), asked()], None), (&[done(), started(), asked()], None), (&[done()], None)]);
        assert_eq!(ended.unwrap(), CommandEnd::Exited(0));
        assert_eq!(
            got.iter().map(|(died, disk)| (died.len(), disk.is_some())).collect::<Vec<_>>(),
            [(0, false), (0, true), (0, true)]
        );
    }

    #[test]
    fn a_second_crash_costs_the_trial_but_not_the_rest() {
        let (ended, got) = played(&[(&[started(), asked()], None), (&[asked()], None), (&[], None)]);
        assert_eq!(ended.unwrap(), CommandEnd::Exited(0));
        assert_eq!(got.len(), 3);
        assert!(got[2].0[0].contains("trial 1 of ext4.crash asked for a second crash"), "{:?}", got[2]);
        assert_eq!(got[2].1, None);
    }

    #[test]
    fn a_guest_that_never_returns_costs_only_the_trial() {
        let (ended, got) = played(&[
            (&[started(), asked()], None),
            (&[], Some("the guest did not answer within 300 s; last lines of its console: x")),
            (&[], None),
        ]);
        assert_eq!(ended.unwrap(), CommandEnd::Exited(0));
        assert!(got[2].0[0].contains("last lines of its console"), "{:?}", got[2]);
        assert_eq!(got[2].1, None);
    }
}

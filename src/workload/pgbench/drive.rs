//! Runs pgbench: arguments, process, and waiting for its end.

use super::failed_line;
use super::options::Settings;
use super::pipes::Pipes;
use super::scripts::ScriptSource;
use super::seconds::{Collector, LoadTally};
use super::shipped::Shipped;
use super::unsent::FixedRate;
use crate::cluster::server::{DATABASE, Server};
use crate::error::{Context, Error, Result};
use crate::host::command::{Command, last_lines};
use crate::host::time::{now, sleep, wall_us};
use crate::host::{Host, files, processes, threads};
use crate::parse::no_space::{self, FULL};
use crate::parse::pgbench_log::LogColumns;
use crate::units::Micros;
use crate::workload::{AskProgress, Listener, LoadEvent, Place, Until, WindowProgress};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Interval for checking for an interrupt, the end of pgbench and reader events.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// pgbench dies of an interrupt at once; this limit is for one that hangs.
const END_LIMIT: Duration = Duration::from_secs(2);

/// How long pgbench may overrun before it counts as hung along with its stack. A full thin pool makes writes wait for a
/// minute.
const HANG_LIMIT: Duration = Duration::from_secs(3600);

/// How long the transactions of a background pgbench may take to end. Nobody counts them, so they are aborted then.
const BESIDE_LIMIT: Duration = Duration::from_secs(10);

/// `-T` of a pgbench that is ended by signal: a day.
const UNTIL_TOLD: Micros = Micros(86_400_000_000);

/// Base name of the warm-up's output.
pub const WARM_UP: &str = "pgbench-warmup";

/// Base name of the output of a background pgbench.
const BESIDE: &str = "pgbench-beside";

/// Lines of pgbench output shown on failure.
const ERROR_LINES: usize = 12;

/// A pgbench in its own process group, killed on drop.
struct RunningPgbench {
    child: Child,
    ended: bool,
    /// Wall clock when it was asked to end, microseconds.
    asked_to_end_us: Option<u64>,
}

impl RunningPgbench {
    fn start(place: &Place<'_>, command: &Command, name: &str) -> Result<RunningPgbench> {
        let command = command.clone().user(place.user);
        let out = files::create(&place.raw.join(format!("{name}.out")))?;
        let err = files::create(&place.raw.join(format!("{name}.err")))?;
        let child = place.host.spawn(&command, Stdio::from(out), Stdio::from(err))?;
        Ok(RunningPgbench { child, ended: false, asked_to_end_us: None })
    }

    fn has_ended(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait().or_host(|| "check whether pgbench is still running".to_owned())?;
        self.ended |= status.is_some();
        Ok(status)
    }

    fn wait(&mut self, place: &Place<'_>, progress: &mut AskProgress<'_>) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.has_ended()? {
                return Ok(status);
            }
            place.interrupt.check()?;
            if self.asked_to_end_us.is_none() && progress()?.is_over {
                self.ask_to_end(place.host)?;
            }
            sleep(POLL_INTERVAL);
        }
    }

    /// Ends pgbench as if its duration were over: each client finishes its transaction, then the summary is printed.
    /// `-T` is an alarm (`setalarm` in pgbench.c), so SIGALRM triggers it early.
    fn ask_to_end(&mut self, host: &Host) -> Result<()> {
        let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else { return Ok(()) };
        // Before pgbench has installed its handler, SIGALRM would kill it.
        if !self.ended && processes::catches(host, self.child.id(), Signal::ALARM) {
            self.asked_to_end_us = Some(wall_us());
            kill_process(pid, Signal::ALARM).or_host(|| "stop pgbench at the end of its time".to_owned())?;
        }
        Ok(())
    }

    fn kill(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let (Some(group), false) = (group, self.ended) else { return };
        for signal in [Signal::INT, Signal::KILL] {
            // It may have just ended by itself.
            kill_process_group(group, signal).ok();
            let begun = now();
            while begun.elapsed() < END_LIMIT {
                if !matches!(self.has_ended(), Ok(None)) {
                    return;
                }
                sleep(Duration::from_millis(5));
            }
        }
    }
}

impl Drop for RunningPgbench {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The server of a place; pgbench workloads always have one.
pub fn server_of<'a>(place: &Place<'a>) -> Result<&'a Server> {
    place.server.ok_or_else(|| Error::bug("pgbench was started without a server"))
}

/// Initializes the database: tables, data, VACUUM and primary keys, those of a shipped script or pgbench's own.
pub fn load(place: &Place<'_>, shipped: Option<&Shipped>, units: u64) -> Result<()> {
    let server = server_of(place)?;
    let mut args = vec!["-s".to_owned(), units.to_string()];
    match shipped {
        None => args.extend(["-i", "-q"].map(str::to_owned)),
        Some(shipped) => {
            let setup = keep_script(place, server, &format!("{}-setup.sql", shipped.name), shipped.setup.as_bytes())?;
            args.extend(["-n", "-t", "1", "-f"].map(str::to_owned));
            args.push(setup.display().to_string());
        }
    }
    args.extend(server.client_args()?);
    args.push(DATABASE.to_owned());
    run_to_end(place, &args, "pgbench-init", &mut || Ok(WindowProgress::default()))
}

/// Runs each script once, by one client, for `longest` at most.
pub fn once(place: &Place<'_>, settings: &Settings, longest: Duration) -> Result<()> {
    for script in &settings.scripts {
        let begun = now();
        let too_long = || Error::tool(format!("timeout: it runs for more than {} s", longest.as_secs()));
        let mut progress = || (begun.elapsed() <= longest).then(WindowProgress::default).ok_or_else(too_long);
        let alone = Settings { scripts: vec![script.clone()], clients: 1, jobs: 1, rate: None, ..settings.clone() };
        let args = run_args(place, &alone, 1, (Micros(0), Some(1)))?;
        run_to_end(place, &args, "pgbench-once", &mut progress)
            .map_err(|e| failed_line::named(e, "run", &script.source, &script.name, None))?;
    }
    Ok(())
}

pub fn warm_up(place: &Place<'_>, settings: &Settings, units: u64, until: Until<'_>) -> Result<()> {
    let Until { longest, progress, .. } = until;
    let args = run_args(place, settings, units, (longest, None))?;
    run_to_end(place, &args, WARM_UP, progress)
}

/// Runs a background pgbench unmeasured until `is_over`.
pub fn beside(place: &Place<'_>, settings: &Settings, units: u64, is_over: &dyn Fn() -> bool) -> Result<()> {
    let server = server_of(place)?;
    let args = run_args(place, settings, units, (UNTIL_TOLD, None))?;
    let pipes = Pipes::make(&server.spec.socket_folder, place.user)?;
    let command = pipes.command(0, &server.spec.install.bin.join("pgbench"), &args);
    let mut running = RunningPgbench::start(place, &command, BESIDE)?;
    let mut over_since = None;
    let status = loop {
        if let Some(status) = running.has_ended()? {
            break status;
        }
        place.interrupt.check()?;
        if is_over() {
            if over_since.get_or_insert_with(now).elapsed() > BESIDE_LIMIT {
                return Ok(());
            }
            if running.asked_to_end_us.is_none() {
                running.ask_to_end(place.host)?;
            }
        }
        sleep(POLL_INTERVAL);
    };
    judged("pgbench", place, status, BESIDE)
}

/// Runs a pgbench whose transactions are not counted.
fn run_to_end(place: &Place<'_>, args: &[String], name: &str, progress: &mut AskProgress<'_>) -> Result<()> {
    let server = server_of(place)?;
    let pipes = Pipes::make(&server.spec.socket_folder, place.user)?;
    let command = pipes.command(0, &server.spec.install.bin.join("pgbench"), args);
    let status = RunningPgbench::start(place, &command, name)?.wait(place, progress)?;
    judged("pgbench", place, status, name)
}

/// Runs another program of the server's installation, with arguments for connecting to the server.
pub fn run_program(place: &Place<'_>, program: &str, args: &[String]) -> Result<()> {
    let server = server_of(place)?;
    let command = Command::new(server.spec.install.bin.join(program)).args(args).args(server.client_args()?);
    let status = RunningPgbench::start(place, &command, program)?.wait(place, &mut || Ok(WindowProgress::default()))?;
    judged(program, place, status, program)
}

/// Runs a measured pgbench with its output under `name`; returns the counts from its log. A failed pgbench still yields
/// its counts so far, with the error.
pub fn measure(
    place: &Place<'_>,
    settings: &Settings,
    name: &str,
    units: u64,
    until: Until<'_>,
    listener: &Listener<'_>,
) -> Result<(LoadTally, Option<Error>)> {
    let Until { longest, operations, progress } = until;
    let server = server_of(place)?;
    let mut args = run_args(place, settings, units, (longest, None))?;
    let pipes = Pipes::make(&server.spec.socket_folder, place.user)?;
    args.splice(0..0, ["-l".to_owned(), pipes.log_prefix()]);
    let log_sample = settings.log_sample.unwrap_or(1.0);
    if log_sample < 1.0 {
        args.insert(0, format!("--sampling-rate={log_sample}"));
    }
    let (events, heard) = mpsc::channel();
    let collector = Collector::new(settings, operations.is_some(), events.clone());
    let command = pipes.command(settings.jobs, &server.spec.install.bin.join("pgbench"), &args);
    let mut running = RunningPgbench::start(place, &command, name)?;
    let pid = running.child.id();
    let columns = LogColumns { lag: settings.rate.is_some(), retries: false };
    let ended = AtomicBool::new(false);
    let status = std::thread::scope(|scope| {
        let reading = (0..settings.jobs as usize).try_for_each(|thread| {
            let (events, pipes, collector, ended) = (events.clone(), &pipes, &collector, &ended);
            let begun = threads::begin(scope, move || {
                let outcome = pipes.read(pid, thread, columns, ended, collector).and_then(|()| collector.end(thread));
                if let Err(error) = outcome {
                    // The receiver is dropped only when the measurement has already failed.
                    drop(events.send(Err(error)));
                }
            });
            begun.map(drop)
        });
        let status = reading.and_then(|()| {
            // Not -t, which has no limit in time, and whose clients end one by one.
            let is_done = || operations.is_some_and(|operations| collector.done() >= operations);
            attend(&mut running, place, &heard, Until { longest, operations, progress }, (&is_done, listener))
        });
        running.kill();
        ended.store(true, Ordering::SeqCst);
        status
    })?;
    let load = settings.rate.filter(|_| status.success()).zip(collector.began_us());
    let load = load.map(|(rate, began_us)| FixedRate {
        rate,
        clients: settings.clients,
        end_us: running.asked_to_end_us.unwrap_or(began_us.saturating_add(longest.0)),
        is_sampled: log_sample < 1.0,
    });
    // pgbench's own error explains more than its truncated log.
    let (tally, failed) = match (judged("pgbench", place, status, name), collector.finish(load)) {
        (Ok(()), tally) => (tally?, None),
        (Err(failed), Ok(tally)) => (tally, Some(failed)),
        (Err(failed), Err(_)) => return Err(failed),
    };
    for event in heard.try_iter() {
        // Errors from a truncated log add nothing.
        match event {
            Ok(event) => listener(event),
            Err(error) if failed.is_none() => return Err(error),
            Err(_) => {}
        }
    }
    Ok((tally, failed))
}

/// Reason why a load ended early because the stack ran out of space.
///
/// # Errors
/// Any other failure.
pub fn ended(server: &Server, failed: Option<Error>) -> Result<Option<String>> {
    let Some(error) = failed else { return Ok(None) };
    // A server that cannot write its WAL reports nothing more to its clients.
    let is_full =
        no_space::line(&error.chain(), FULL).is_some() || no_space::logged(&server.log_text(), FULL).is_some();
    if is_full { Ok(Some(error.chain())) } else { Err(error) }
}

/// Forwards the readers' events until pgbench ends, at the latest when the work is done.
fn attend(
    running: &mut RunningPgbench,
    place: &Place<'_>,
    heard: &Receiver<Result<LoadEvent>>,
    until: Until<'_>,
    (is_done, listener): (&dyn Fn() -> bool, &Listener<'_>),
) -> Result<ExitStatus> {
    let Until { longest, progress, .. } = until;
    let latest = now() + Duration::from_micros(longest.0) + HANG_LIMIT;
    loop {
        match heard.recv_timeout(POLL_INTERVAL) {
            Ok(Err(error)) => {
                // If pgbench has just ended, its own error explains why the log broke off.
                sleep(POLL_INTERVAL);
                return running.has_ended()?.filter(|status| !status.success()).ok_or(error);
            }
            Ok(Ok(event)) => listener(event),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        place.interrupt.check()?;
        if let Some(status) = running.has_ended()? {
            return Ok(status);
        }
        if now() > latest {
            let limit = Micros(HANG_LIMIT.as_micros() as u64);
            let error = Error::tool(format!("pgbench did not end within {limit} after its time: a transaction hangs"));
            return Err(error.hint("the stack takes no more writes: check the kernel's log"));
        }
        if running.asked_to_end_us.is_none() && (is_done() || progress()?.is_over) {
            running.ask_to_end(place.host)?;
        }
    }
}

/// The error of a failed program, with its own message.
fn judged(program: &str, place: &Place<'_>, status: ExitStatus, name: &str) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    let said = files::read(&place.raw.join(format!("{name}.err"))).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let how = match status.code() {
        Some(code) => format!("failed with exit code {code}"),
        None => format!("was killed ({status})"),
    };
    let error = Error::tool(format!("{program} {how}; output:\n{}", last_lines(&said, ERROR_LINES)));
    Err(if said.contains("too many clients") || said.contains("connection slots are reserved") {
        error.hint("raise `max_connections` in the plan's settings above the number of clients")
    } else if said.contains("No space left on device") {
        error.hint("the stack is too small for the data: increase its size or reduce the scale")
    } else {
        error
    })
}

/// Arguments of a run, for a time or a number of transactions of all clients. No VACUUM first: the template is vacuumed.
fn run_args(place: &Place<'_>, settings: &Settings, units: u64, until: (Micros, Option<u64>)) -> Result<Vec<String>> {
    let server = server_of(place)?;
    let (until, amount) = match until {
        (_, Some(operations)) => ("-t", operations.div_ceil(settings.clients).max(1)),
        (span, None) => ("-T", span.0 / 1_000_000),
    };
    let amount = amount.to_string();
    let (clients, jobs) = (settings.clients.to_string(), settings.jobs.to_string());
    // With a progress report, even one that never comes, pgbench's summary prints the measured latency; without, it
    // prints duration x clients / transactions.
    let mut args: Vec<String> =
        ["-n", until, &amount, "-c", &clients, "-j", &jobs, "-M", &settings.mode, "-P", "1000000"]
            .map(str::to_owned)
            .to_vec();
    args.extend(settings.statements.then(|| "-r".to_owned()));
    if let Some(rate) = settings.rate {
        args.extend(["-R".to_owned(), rate.to_string()]);
    }
    if let Some(limit) = settings.latency_limit {
        args.extend(["-L".to_owned(), limit.millis().to_string()]);
    }
    if !settings.uses_builtin() {
        args.extend(["-s".to_owned(), units.to_string()]);
    }
    for (number, script) in settings.scripts.iter().enumerate() {
        match &script.source {
            ScriptSource::Builtin(name) => args.extend(["-b".to_owned(), format!("{name}@{}", script.weight)]),
            source => {
                let name = match source {
                    ScriptSource::File(path) => path.file_name().unwrap_or_default().to_string_lossy(),
                    ScriptSource::Shipped(transaction) => format!("{}.sql", transaction.name).into(),
                    _ => "plan.sql".into(),
                };
                let kept = keep_script(place, server, &format!("script-{}-{name}", number + 1), &source.text()?)?;
                args.extend(["-f".to_owned(), format!("{}@{}", kept.display(), script.weight)]);
            }
        }
    }
    args.extend(server.client_args()?);
    args.push(DATABASE.to_owned());
    Ok(args)
}

/// Copies a script into the raw folder as evidence, and into the server's private folder, where the clients' user can
/// read it; returns the latter path.
fn keep_script(place: &Place<'_>, server: &Server, name: &str, text: &[u8]) -> Result<PathBuf> {
    files::write_whole(&place.raw.join(name), text)?;
    let readable = server.spec.socket_folder.join(name);
    files::write_for(&readable, text, 0o644, place.user)?;
    Ok(readable)
}

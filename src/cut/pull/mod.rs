//! Pulls the plug: clients commit on a real filesystem while a witness keeps what was acknowledged; after power
//! returns, PostgreSQL recovers and every acknowledged commit is looked for.
//!
//! Tables, checks by PostgreSQL and verdicts are the same as for states built from a recording. Here nothing is
//! recorded: the real device decides. The filesystem was mounted when the machine came up, so its own checker is not
//! run, and the end of WAL is not read.

mod witness;

#[cfg(test)]
mod tests;

pub(crate) use witness::{WitnessPlace, answer};

use super::cutting::{Cutting, Finding};
use super::evidence::verdict_of;
use super::history::{Acknowledgement, History, link};
use super::record::server_spec;
use super::session::CutSession;
use super::{commits, invariants, server_check};
use crate::cluster::install;
use crate::cluster::server::{self, Server};
use crate::cluster::spec::ServerSpec;
use crate::error::{Context, Error, Kind, Result};
use crate::host::signals::Interrupt;
use crate::host::time::{self, now, sleep};
use crate::host::{Host, files, folders, paths, threads};
use crate::provision::folder::PREFIX;
use crate::provision::ledger::Ledger;
use crate::provision::{devices, knobs};
use crate::record::case::PostgresSpec;
use crate::record::facts::DeviceFacts;
use crate::record::pull::{self, PullRecord, Round, RoundEnd};
use crate::record::verdict::Verdict;
use crate::recorder::Seq;
use crate::run::session::RunPlaces;
use crate::run::undo;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use witness::{KeptCommit, Voice};

/// File name of the record.
const FILE: &str = "pull.json";
/// Interval between checkpoints.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);

/// Parameters of the first pull.
#[derive(Debug, Clone)]
pub struct FirstPull {
    /// Folder on the filesystem under test.
    pub folder: PathBuf,
    pub witness: WitnessPlace,
    pub clients: u16,
    /// Folder of PostgreSQL's programs, a version, or `auto`.
    pub bin: String,
}

/// Pulls of one folder, and where they are stored.
pub struct Pulls {
    /// Holds `pull.json`.
    pub at: PathBuf,
    pub record: PullRecord,
}

impl Pulls {
    /// Prepares the first pull.
    ///
    /// # Errors
    /// If the folder is not a folder, or the witness lies on the same filesystem.
    pub fn prepare(host: &Host, asked: &FirstPull, places: &RunPlaces) -> Result<Pulls> {
        let folder = paths::resolve(&asked.folder)?;
        if !paths::is_folder(&folder) {
            return Err(Error::user(format!("{} is not a folder", folder.display())));
        }
        if let WitnessPlace::File(path) = &asked.witness {
            let beside = files::nearest_existing(path.parent().unwrap_or(Path::new("/")));
            if paths::look_at(&beside)?.filesystem == paths::look_at(&folder)?.filesystem {
                let message = format!("{} is on the filesystem whose power is to be cut", path.display());
                return Err(
                    Error::user(message).hint("name a file on another disk, or host:port of `pgstrata witness`")
                );
            }
        }
        let id = files::random_id()?;
        let devices = devices::below(host, &folder)?.devices;
        let firmware = devices.iter().filter_map(|device| Some((device.name.clone(), device.firmware.clone()?)));
        let record = PullRecord {
            format: pull::FORMAT,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            witness: asked.witness.to_string(),
            bin: install::find(host, &asked.bin)?.bin.display().to_string(),
            folder: folder.display().to_string(),
            clients: asked.clients,
            firmware: firmware.collect::<BTreeMap<_, _>>(),
            devices,
            rounds: Vec::new(),
            id: id.clone(),
        };
        let at = places.results.join(format!("pull-{id}"));
        folders::make_all(&at, 0o755)?;
        Ok(Pulls { at, record })
    }

    /// Opens stored pulls.
    ///
    /// # Errors
    /// If there are none, or a newer pgstrata wrote them.
    pub fn open(at: &Path) -> Result<Pulls> {
        let path = at.join(FILE);
        let record: PullRecord =
            serde_json::from_slice(&files::read(&path)?).or_store(|| format!("read {}", path.display()))?;
        if record.format > pull::FORMAT {
            return Err(Error::store(format!("pulls of format {} are not supported", record.format)));
        }
        Ok(Pulls { at: at.to_path_buf(), record })
    }

    fn save(&self) -> Result<()> {
        let text = serde_json::to_vec_pretty(&self.record).or_store(|| "write the pulls".to_owned())?;
        files::write_whole(&self.at.join(FILE), &text)
    }

    /// Folder of the cluster of a round.
    fn data_of(&self, round: u32) -> PathBuf {
        Path::new(&self.record.folder).join(format!("{PREFIX}pull-{}", self.record.id)).join(format!("round-{round}"))
    }

    fn spec(&self, session: &CutSession<'_>, round: u32) -> Result<ServerSpec> {
        let postgres = PostgresSpec { bin: self.record.bin.clone(), ..PostgresSpec::default() };
        let data = self.data_of(round).join("cluster");
        server_spec(session, &postgres, (data, None), session.work.join("server.log"))
    }

    /// Lets clients commit on a new cluster until the power is gone or it is interrupted. Reports just before they
    /// begin.
    ///
    /// # Errors
    /// If the server or the witness fails; the round then counts as cut. If interrupted, it does not.
    pub fn commit(&mut self, host: &Host, places: &RunPlaces, interrupt: &Interrupt, tell: &dyn Fn(u32)) -> Result<()> {
        let session = CutSession::open(host, places, Cutting::default(), interrupt)?;
        let number = self.record.rounds.last().map_or(1, |round| round.number + 1);
        let began = self.begin(&session, number);
        let done = began.and_then(|server| {
            tell(number);
            self.commit_until(&server, number, interrupt)
        });
        let stopped = matches!(&done, Err(e) if e.kind() == Kind::Interrupted);
        let closed = session.close();
        if stopped {
            if let Some(round) = self.record.rounds.last_mut() {
                round.end = Some(RoundEnd::Stopped);
            }
            self.save()?;
        }
        done.and(closed)
    }

    /// Creates a new cluster, syncs it, and adds the round to the record: from here on the power may be cut.
    fn begin(&mut self, session: &CutSession<'_>, number: u32) -> Result<Server> {
        let folder = self.data_of(number);
        folders::make_all(&folder, 0o755)?;
        files::give_to(&folder, &session.user)?;
        let spec = self.spec(session, number)?;
        session.ledger.enter(undo::server_thing(&spec)?)?;
        server::init(&session.host, &spec)?;
        let server = Server::start(&session.host, spec, session.interrupt)?;
        commits::prepare(&server)?;
        folders::sync_filesystem(&folder).or_host(|| format!("sync {}", folder.display()))?;
        let boot = knobs::boot(&session.host);
        let started = time::rfc3339(time::wall_us());
        self.record.rounds.push(Round { number, started, boot, session: session.id.clone(), end: None });
        self.save()?;
        Ok(server)
    }

    fn commit_until(&self, server: &Server, round: u32, interrupt: &Interrupt) -> Result<()> {
        let place = &WitnessPlace::parse(&self.record.witness)?;
        let stop = &AtomicBool::new(false);
        let going_on = || !stop.load(Ordering::Relaxed) && !interrupt.is_raised();
        let ending = |outcome: Result<()>| outcome.inspect_err(|_| stop.store(true, Ordering::Relaxed));
        let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
            let clients = (0..self.record.clients).map(|client| {
                threads::begin(scope, move || {
                    let voice = Voice::open(place, &self.record.id);
                    ending(voice.and_then(|voice| commit_to(voice, server, round, client, &going_on)))
                })
            });
            let mut begun: Vec<_> = clients.collect();
            begun.push(threads::begin(scope, || ending(make_checkpoints(server, &going_on))));
            if begun.iter().any(Result::is_err) {
                stop.store(true, Ordering::Relaxed);
            }
            begun.into_iter().map(commits::ended).collect()
        });
        outcomes.into_iter().collect::<Result<()>>()?;
        interrupt.check()
    }

    /// Recovers after a power cut, and looks for every commit that the witness kept. `drive_only`: the machine kept
    /// running.
    ///
    /// # Errors
    /// If there is no power cut to judge, or the check did not finish.
    pub fn judge(
        &mut self,
        host: &Host,
        places: &RunPlaces,
        drive_only: bool,
        interrupt: &Interrupt,
    ) -> Result<Verdict> {
        let open = self.record.rounds.last().filter(|round| round.end.is_none()).cloned();
        let Some(round) = open else {
            return Err(Error::user("there is no power cut to judge: the clients were stopped, or never began")
                .hint("begin the next one without --judge"));
        };
        if knobs::boot(host) == round.boot && !drive_only {
            return Err(Error::user("this machine was not restarted since the clients began: that was no power cut")
                .hint("if the drive alone lost its power: --drive-only"));
        }
        let before = Ledger::open_for_resume(&places.ledgers(), &round.session)?;
        undo::undo(&before, 0, host).and_then(|()| before.close())?;
        let kept = Voice::open(&WitnessPlace::parse(&self.record.witness)?, &self.record.id)?.recall(round.number)?;
        let history = history(&kept)?;
        self.same_devices(host)?;
        let session = CutSession::open(host, places, Cutting::default(), interrupt)?;
        let found = self.recover(&session, round.number, &history);
        let closed = session.close();
        let (found, left_out) = found?;
        closed?;
        // A client tells the witness of each commit before it sends the next one.
        if let Finding::Torn(what) = &found
            && what.contains(invariants::NEVER_SENT)
        {
            let hint = "give the witness its file back and run `pgstrata pull --resume` again; nothing was judged, and the cluster \
                        stays where it is";
            return Err(Error::host(format!("the witness lost what it was told: {what}")).hint(hint));
        }
        let verdict = verdict_of(&found);
        let at = time::rfc3339(time::wall_us());
        let end =
            RoundEnd::Judged { at, drive_only, acknowledged: kept.len() as u64, verdict: verdict.clone(), left_out };
        if let Some(last) = self.record.rounds.last_mut() {
            last.end = Some(end);
        }
        self.save()?;
        if matches!(verdict, Verdict::Holds { .. } | Verdict::ExpectedLoss { .. }) {
            folders::remove_all(&self.data_of(round.number))?;
        }
        Ok(verdict)
    }

    /// Fails unless the folder is on the same devices as before: after a reboot its filesystem may not be mounted yet.
    fn same_devices(&self, host: &Host) -> Result<()> {
        let folder = Path::new(&self.record.folder);
        let there = paths::is_folder(folder).then(|| devices::below(host, folder)).transpose()?;
        let there: BTreeSet<_> = there.iter().flat_map(|below| &below.devices).map(lasting_facts).collect();
        if there == self.record.devices.iter().map(lasting_facts).collect() {
            return Ok(());
        }
        Err(Error::host(format!("{} does not lie on the devices on which the clients committed", folder.display()))
            .hint("mount the filesystem under test there, then run `pgstrata pull --resume` again"))
    }

    fn recover(&self, session: &CutSession<'_>, round: u32, history: &History) -> Result<(Finding, Vec<String>)> {
        let mut spec = self.spec(session, round)?;
        if !paths::exists(&spec.data.join("PG_VERSION")) {
            let missing = Finding::Torn(format!("{} is not there", spec.data.display()));
            return Ok((missing, Vec::new()));
        }
        // A crash during recovery must not go unnoticed. No process of an earlier boot runs, but one may have its pid.
        spec.settings.insert("restart_after_crash".to_owned(), "off".to_owned());
        session.ledger.enter(undo::server_thing(&spec)?)?;
        files::remove(&spec.data.join("postmaster.pid"))?;
        server_check::on_server(&session.host, &spec, session.interrupt, |server| {
            server_check::beside_amcheck(server, || invariants::look(server, history, Seq::MAX, true))
        })
    }
}

/// Lets one client commit, and tell the witness of each commit before it sends the next.
fn commit_to(mut voice: Voice, server: &Server, round: u32, client: u16, goes_on: &dyn Fn() -> bool) -> Result<()> {
    let (mut connection, mut chain) = (commits::connect(server)?, String::new());
    for number in 1.. {
        if !goes_on() {
            break;
        }
        chain = link(&chain, client, number);
        connection.query(&commits::transaction(client, number, &chain))?;
        connection.query("COMMIT")?;
        voice.report(round, client, number)?;
    }
    Ok(())
}

fn make_checkpoints(server: &Server, goes_on: &dyn Fn() -> bool) -> Result<()> {
    let (mut connection, mut last) = (commits::connect(server)?, now());
    for row in 0_u64.. {
        if !goes_on() {
            break;
        }
        connection.query(&format!("INSERT INTO pgstrata_unlogged VALUES ({row})"))?;
        if last.elapsed() >= CHECKPOINT_EVERY {
            last = now();
            connection.query("CHECKPOINT")?;
        }
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// What identifies a device: names change from boot to boot.
fn lasting_facts(device: &DeviceFacts) -> (Option<String>, Option<String>, Option<u64>) {
    (device.model.clone(), device.serial.clone(), device.size_bytes)
}

/// The witness's record as the clients' history. Sequence positions are the order in which the witness was told.
fn history(kept: &[KeptCommit]) -> Result<History> {
    if kept.is_empty() {
        return Err(Error::user("the witness kept no commit of this round: there is nothing to look for"));
    }
    let acknowledged = kept.iter().zip(0..).map(|(kept, place): (_, Seq)| {
        let (started, mark) = (place * 2, place * 2 + 1);
        let KeptCommit { client, number, at_us, .. } = *kept;
        Acknowledgement { client, number, started, mark, at_us, ..Acknowledgement::default() }
    });
    Ok(History::of(acknowledged.collect()))
}

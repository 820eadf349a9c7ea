//! The check of one state, in steps that stop at the first failure: mount, end of WAL, the filesystem's own checker,
//! recovery, every acknowledged commit, amcheck, checksums.
//!
//! The state is a view over origin and log. The writes of a check go to a log of their own, which is dropped with it.
//! Nothing is repaired: a stack that cannot be mounted or a server that cannot be started as it is, is a finding. Loop
//! devices stay attached from state to state; only the disks behind them change.

use super::cutting::Finding;
use super::disks::Disks;
use super::history::History;
use super::opening::{Folders, Opener};
use super::record::{RECORDED, postgres_of, server_folders, server_spec};
use super::session::{CutSession, site};
use super::wal::{self, Checkpoint, Lsn, WalReader, WalShape};
use super::{filesystem_check, invariants, links, server_check};
use crate::cluster::spec::ServerSpec;
use crate::error::{Context, Error, Result};
use crate::host::{files, loops, paths};
use crate::provision::facts::Bases;
use crate::provision::{Base, Site, layer, mount_table};
use crate::record::case::CaseSpec;
use crate::record::stack::BaseName;
use crate::recorder::{Image, Recorder, Recording, Seq, name_of};
use crate::run::undo;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that recovery may write to the disks of a state.
const MOST_OVERLAY: u64 = 4 << 30;

/// Settings that make PostgreSQL ignore damage.
const HIDING: [&str; 4] =
    ["zero_damaged_pages", "ignore_checksum_failure", "ignore_invalid_pages", "ignore_system_indexes"];

/// How the server that wrote a state ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    Stop,
    Cut,
    /// Cut again during recovery from the first cut.
    SecondCut,
}

/// The writes of a recovery, and the position in them at which PostgreSQL accepted clients.
type Recovery<Written> = Result<(Written, Seq), Finding>;

fn no_data() -> Finding {
    Finding::Torn("the data folder is not there".to_owned())
}

/// Everything needed to check states of one recording.
pub struct CheckContext<'a> {
    pub session: &'a CutSession<'a>,
    pub case: &'a CaseSpec,
    pub exports: &'a dyn Disks,
    pub nodes: &'a [String],
    pub history: &'a History,
    /// Folder for the writes of a check.
    pub work: &'a Path,
}

/// Checks one state after another on loop devices that stay attached.
pub struct Checker<'a> {
    of: CheckContext<'a>,
    opener: Opener<'a>,
    /// Ledger position of the loop devices: at or above it.
    mark: u64,
    /// Steps that gave no result, with the reason.
    left_out: RefCell<BTreeSet<String>>,
}

impl<'a> Checker<'a> {
    /// Attaches the loop devices to these disks.
    ///
    /// # Errors
    /// If one cannot be attached.
    pub fn attach(of: CheckContext<'a>, images: Vec<Image>) -> Result<Checker<'a>> {
        let mark = of.session.ledger.mark();
        let recorder = Arc::new(overlay(&of, images)?);
        let shown = of.nodes.iter().zip(0..);
        let files: Result<BTreeMap<String, PathBuf>> = shown
            .map(|(node, disk)| Ok((node.clone(), of.exports.show(of.session, &name_of(node), &recorder, disk)?)))
            .collect();
        let attached = files.and_then(|files| {
            // The stack keeps its name from the recording: links to pg_wal and tablespaces contain its paths.
            let name = format!("pgstrata-{}.{}", of.session.id, of.case.stack.name);
            let loops = attached_loops(&of, &name, &files)?;
            Ok(Opener::new(of.session, of.case, name, (files, loops)))
        });
        match attached {
            Ok(opener) => Ok(Checker { of, opener, mark, left_out: RefCell::default() }),
            Err(e) => detached(&of, mark).and(Err(e)),
        }
    }

    /// Detaches the loop devices, and returns which steps were left out and why.
    ///
    /// # Errors
    /// If one cannot be detached.
    pub fn detach(self) -> Result<Vec<String>> {
        detached(&self.of, self.mark).map(|()| self.left_out.into_inner().into_iter().collect())
    }

    /// Reads WAL to its end on disks as a power cut just before `at` left them, and reports the acknowledged commits
    /// that recovery would not reach. Starts no server.
    ///
    /// # Errors
    /// If the check itself did not finish, which says nothing about the state.
    pub fn tail(&self, images: &[Image], at: Seq) -> Result<Finding> {
        self.on(images, || self.mounted(|folders| Ok(self.tail_of(folders, at))))
    }

    /// Runs all steps on disks as such an end just before `at` left them.
    ///
    /// # Errors
    /// As for [`Checker::tail`].
    pub fn whole(&self, images: &[Image], at: Seq, end: EndedBy) -> Result<Finding> {
        self.on(images, || {
            // A conviction by the WAL tail is not the last word: the recovered tables show what is lost.
            let Some(mounted) = self.mounted(|folders| Ok(self.tail_of(folders, at)))? else { return Ok(None) };
            if matches!(mounted, Finding::Unmountable(_)) {
                return Ok(Some(mounted));
            }
            if let Some(damage) = self.filesystem_damage()? {
                return Ok(Some(Finding::Unmountable(damage)));
            }
            let recovered = self.mounted(|folders| self.recovered(folders, at, end))?;
            if recovered.as_ref().is_some_and(Finding::is_whole) && !mounted.is_whole() {
                return Err(Error::bug(format!("the end of WAL says {mounted:?}, but the recovered tables are whole")));
            }
            Ok(recovered)
        })
    }

    /// Puts disks behind the loop devices and acts, without the writes of a refused mount.
    fn on(&self, images: &[Image], act: impl Fn() -> Result<Option<Finding>>) -> Result<Finding> {
        self.opener.until_opened(|| {
            let recorder = Arc::new(overlay(&self.of, images.to_vec())?);
            self.put(&recorder)?;
            let found = act();
            // Do not keep the commands of a thousand states.
            drop(self.of.session.host.take_command_log());
            recorder.failure().map_or(found, |failure| Err(Error::host(failure)))
        })
    }

    fn put(&self, recorder: &Arc<Recorder>) -> Result<()> {
        let devices = self.opener.loops.values().filter_map(Base::device);
        devices.clone().try_for_each(mount_table::until_ended)?;
        for (node, disk) in self.of.nodes.iter().zip(0..) {
            self.of.exports.put_behind(&name_of(node), recorder, disk);
        }
        for device in devices {
            loops::forget_buffers(device).or_host(|| format!("drop the buffers of {}", device.display()))?;
        }
        Ok(())
    }

    /// Opens the stack as it is, and acts; `None` if that must be redone.
    fn mounted(&self, act: impl FnOnce(&Folders) -> Result<Finding>) -> Result<Option<Finding>> {
        let opened = self.opener.open(act)?;
        Ok(opened.map(|found| found.unwrap_or_else(Finding::Unmountable)))
    }

    fn tail_of(&self, folders: &Folders, at: Seq) -> Finding {
        let Some(shape) = self.of.history.wal.filter(|_| self.of.history.has_ends()) else {
            self.leave_out("end of WAL: not every commit was seen in WAL");
            return Finding::Whole;
        };
        match end_of_wal(folders, shape) {
            Ok(Some(end)) => self.of.history.lost_after(end, at).map_or(Finding::Whole, Finding::Lost),
            Ok(None) => Finding::Torn("pg_control is missing or damaged".to_owned()),
            // The disks themselves accept every request: a read error comes from the filesystem.
            Err(e) => Finding::Torn(e.chain()),
        }
    }

    /// Damage found by the filesystem's own checker on disks that were mounted and unmounted.
    fn filesystem_damage(&self) -> Result<Option<String>> {
        let checks = filesystem_check::all_of(&self.of.session.host, &self.of.case.stack, &self.opener.loops);
        for check in checks {
            match check {
                Ok(check) => {
                    if let Some(damage) = check.run(&self.of.session.host)? {
                        return Ok(Some(damage));
                    }
                }
                Err(why) => self.leave_out(&why),
            }
        }
        Ok(None)
    }

    /// A server on a state, with these settings off; `None` if there is no data folder.
    fn server_on(&self, folders: &Folders, off: &[&str]) -> Result<Option<ServerSpec>> {
        // Checked before anything is created for a server and entered into the ledger.
        let own = server_folders(folders);
        if !paths::exists(&own.0.join("PG_VERSION")) {
            return Ok(None);
        }
        let log = self.of.work.join("server.log");
        files::remove(&log)?;
        let mut spec = server_spec(self.of.session, postgres_of(self.of.case)?, own, log)?;
        // A crash must not go unnoticed.
        for name in off.iter().chain(&["restart_after_crash"]) {
            spec.settings.insert((*name).to_owned(), "off".to_owned());
        }
        // After a power cut no process has that pid; here one may.
        files::remove(&spec.data.join("postmaster.pid"))?;
        links::lead_to(&self.of.session.host, &spec.data, folders)?;
        self.of.session.ledger.enter(undo::server_thing(&spec)?)?;
        Ok(Some(spec))
    }

    fn recovered(&self, folders: &Folders, at: Seq, end: EndedBy) -> Result<Finding> {
        let CutSession { host, interrupt, .. } = self.of.session;
        let postgres = postgres_of(self.of.case)?;
        // Nothing here needs to survive a power cut, and no setting of the plan may hide damage.
        let hiding = HIDING.iter().filter(|name| postgres.settings.contains_key(**name));
        let off: Vec<&str> = ["fsync"].iter().chain(hiding).copied().collect();
        let Some(spec) = self.server_on(folders, &off)? else { return Ok(no_data()) };
        let (found, left_out) = server_check::on_server(host, &spec, interrupt, |server| {
            // Done before amcheck, which rolls them back. Not after a second cut: PostgreSQL 18.6 itself loses a
            // prepared transaction whose file was written by the end-of-recovery checkpoint that the cut ended
            // ("removing future two-phase state file", looked for under the epoch FFFFFFFF, and then its WAL record is
            // skipped).
            let prepared = match end {
                EndedBy::SecondCut => Finding::Whole,
                EndedBy::Stop | EndedBy::Cut => invariants::prepared(server, self.of.history, at)?,
            };
            let crashed = end != EndedBy::Stop;
            server_check::beside_amcheck(server, || match invariants::look(server, self.of.history, at, crashed)? {
                Finding::Whole => Ok(prepared),
                found => Ok(found),
            })
        })?;
        left_out.iter().for_each(|step| self.leave_out(step));
        Ok(found)
    }

    /// Mounts these disks and lets PostgreSQL recover on them with the settings of its case, recording everything in a
    /// new log.
    ///
    /// # Errors
    /// If it did not finish, which says nothing about the state.
    pub fn recover(&self, images: &[Image], log: &Path) -> Result<Recovery<Recording>> {
        let done = self.opener.until_opened(|| self.recover_once(images.to_vec(), log))?;
        // Nothing uses the log any more.
        self.put(&Arc::new(overlay(&self.of, images.to_vec())?))?;
        match done {
            Ok((recorder, ready)) => Ok(Ok((recorder.finish()?, ready))),
            Err(finding) => Ok(Err(finding)),
        }
    }

    fn recover_once(&self, images: Vec<Image>, log: &Path) -> Result<Option<Recovery<Arc<Recorder>>>> {
        let CutSession { host, interrupt, .. } = self.of.session;
        files::remove(log)?;
        let recorder = Arc::new(Recorder::over(images, log, MOST_OVERLAY)?);
        self.put(&recorder)?;
        let opened = self.opener.open(|folders| {
            let Some(spec) = self.server_on(folders, &[])? else { return Ok(Err(no_data())) };
            server_check::ready(host, &spec, interrupt, || recorder.mark())
        });
        drop(host.take_command_log());
        if let Some(failure) = recorder.failure() {
            return Err(Error::host(failure));
        }
        let ready = opened?.map(|ready| ready.unwrap_or_else(|why| Err(Finding::Unmountable(why))));
        Ok(ready.map(|ready| ready.map(|ready| (recorder, ready))))
    }

    fn leave_out(&self, step: &str) {
        self.left_out.borrow_mut().insert(step.to_owned());
    }
}

/// Where valid WAL ends; `None` if there is no checkpoint to read it from.
fn end_of_wal(folders: &Folders, shape: WalShape) -> Result<Option<Lsn>> {
    let (data, wal) = server_folders(folders);
    let Some(Checkpoint { redo, timeline }) = wal::checkpoint(&data)? else { return Ok(None) };
    let mut reader = WalReader::new(&wal.unwrap_or_else(|| data.join("pg_wal")), shape, timeline, redo);
    reader.read_on(|_| ControlFlow::Continue(()))?;
    Ok(Some(reader.end()))
}

/// The loop device of each disk, attached to the file that exposes it.
fn attached_loops(of: &CheckContext<'_>, name: &str, files: &BTreeMap<String, PathBuf>) -> Result<Bases> {
    let recorded = layer(RECORDED).ok_or_else(|| Error::bug("there is no layer for recorded disks"))?;
    let mut loops = Bases::new();
    for (node, file) in files {
        let Some(spec) = of.case.stack.node(node) else { continue };
        let own = Site { image: Some(file), ..site(of.session, format!("{name}.{node}"), files) };
        let bases = recorded.reopen(&own, &[], &spec.options)?.bases;
        let names = recorded.bases(&spec.options).into_iter().map(|base| BaseName::of(node, &base));
        loops.extend(names.zip(bases));
    }
    Ok(loops)
}

fn detached(of: &CheckContext<'_>, mark: u64) -> Result<()> {
    let undone = undo::undo(&of.session.ledger, mark, &of.session.host);
    for node in of.nodes {
        of.exports.hide(&name_of(node));
    }
    undone
}

/// A recording on top of disks, with an unnamed log.
fn overlay(of: &CheckContext<'_>, images: Vec<Image>) -> Result<Recorder> {
    let path = of.work.join("overlay");
    files::remove(&path)?;
    let recorder = Recorder::passing(images, &path, MOST_OVERLAY)?;
    files::remove(&path)?;
    Ok(recorder)
}

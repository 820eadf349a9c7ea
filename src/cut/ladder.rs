//! The check of one state, in steps that stop at the first failure: mount, end of WAL, the filesystem's own checker, recovery,
//! every acknowledged commit, amcheck, checksums.
//!
//! The state is a view over base and log. What a check writes goes to a log of its own, which is dropped with it. Nothing
//! is repaired: what cannot be mounted or started as it is, is a finding. Loop devices stay from state to state; what stands
//! behind them changes.

use super::disks::Disks;
use super::filesystem_check;
use super::history::History;
use super::invariants::{self, Found};
use super::record::{RECORDED, data_folder, postgres_of, server_spec, site, wal_folder};
use super::server_check::{self, Ended};
use super::session::Session;
use super::wal::{self, WalReader};
use crate::error::{Context, Error, Kind, Result};
use crate::host::{files, loops, paths};
use crate::provision::stack::{BuiltStack, Grounds, reopen_stack};
use crate::provision::undo::{Undoers, undo_from};
use crate::provision::{Ground, Site, layer};
use crate::record::case::CaseSpec;
use crate::record::stack::GroundName;
use crate::recorder::{Image, Recorder, Seq, name_of};
use crate::run::undo;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that recovery may write to the disks of a state.
const MOST_OVERLAY: u64 = 4 << 30;

/// How a state came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    Recovered(Found),
    /// The stack cannot be opened as it is, or its filesystem is damaged.
    Unmountable(String),
}

impl Finding {
    pub fn is_whole(&self) -> bool {
        *self == Finding::Recovered(Found::Whole)
    }
}

/// What is needed to check states of one recording.
pub struct Checked<'a> {
    pub session: &'a Session<'a>,
    pub case: &'a CaseSpec,
    pub exports: &'a dyn Disks,
    /// Node of each disk.
    pub nodes: &'a [String],
    pub history: &'a History,
    /// Folder for what a check writes.
    pub work: &'a Path,
}

/// Checks one state after another, on loop devices that stay.
pub struct Checker<'a> {
    of: Checked<'a>,
    /// File of each disk, by node.
    files: BTreeMap<String, PathBuf>,
    /// Loop device of each disk.
    loops: Grounds,
    /// The loop devices lie at or above it in the ledger.
    mark: u64,
    /// Steps that nothing could be said of, with the reason.
    left_out: RefCell<BTreeSet<String>>,
}

impl<'a> Checker<'a> {
    /// Attaches the loop devices, with these disks behind them.
    ///
    /// # Errors
    /// When one cannot be attached.
    pub fn attach(of: Checked<'a>, images: Vec<Image>) -> Result<Checker<'a>> {
        let mark = of.session.ledger.mark();
        let recorder = Arc::new(overlay(&of, images)?);
        let shown = of.nodes.iter().zip(0..);
        let files: Result<BTreeMap<String, PathBuf>> = shown
            .map(|(node, disk)| Ok((node.clone(), of.exports.show(of.session, &name_of(node), &recorder, disk)?)))
            .collect();
        let mut checker =
            Checker { of, files: BTreeMap::new(), loops: Grounds::new(), mark, left_out: RefCell::default() };
        let attached = files.and_then(|files| {
            checker.files = files;
            checker.attach_loops()
        });
        match attached {
            Ok(loops) => {
                checker.loops = loops;
                Ok(checker)
            }
            Err(e) => checker.detach().and(Err(e)),
        }
    }

    fn attach_loops(&self) -> Result<Grounds> {
        let recorded = layer(RECORDED).ok_or_else(|| Error::bug("there is no layer for recorded disks"))?;
        let mut loops = Grounds::new();
        for (node, file) in &self.files {
            let Some(spec) = self.of.case.stack.node(node) else { continue };
            let own =
                Site { image: Some(file), ..site(self.of.session, format!("{}.{node}", self.name()), &self.files) };
            let grounds = recorded.reopen(&own, &[], &spec.options)?.grounds;
            let names = recorded.grounds(&spec.options).into_iter().map(|ground| GroundName::of(node, &ground));
            loops.extend(names.zip(grounds));
        }
        Ok(loops)
    }

    /// The stack has the name of the recording: links to pg_wal and tablespaces hold its paths.
    fn name(&self) -> String {
        format!("pgstrata-{}.{}", self.of.session.id, self.of.case.stack.name)
    }

    /// Takes the loop devices away, and says which steps were left out and why.
    ///
    /// # Errors
    /// When one cannot be detached.
    pub fn detach(self) -> Result<Vec<String>> {
        let Checked { session, exports, nodes, .. } = self.of;
        let undone = undo::undo(&session.ledger, self.mark, &session.host);
        for node in nodes {
            exports.hide(&name_of(node));
        }
        undone.map(|()| self.left_out.into_inner().into_iter().collect())
    }

    /// The end of WAL on disks as a power cut just before `at` left them: which acknowledged commits recovery would not reach.
    /// No server is started.
    ///
    /// # Errors
    /// When the check itself did not end. It says nothing of the state.
    pub fn tail(&self, images: Vec<Image>, at: Seq) -> Result<Finding> {
        self.on(images, || self.mounted(|stack| Ok(self.tail_of(stack, at))))
    }

    /// All steps on disks as a power cut just before `at` left them, or, not `crashed`, a clean stop before it.
    ///
    /// # Errors
    /// As [`Checker::tail`].
    pub fn whole(&self, images: Vec<Image>, at: Seq, crashed: bool) -> Result<Finding> {
        self.on(images, || {
            // What the tail convicts is not left at that: the recovered tables show what is lost.
            let mounted = self.mounted(|stack| Ok(self.tail_of(stack, at)))?;
            if matches!(mounted, Finding::Unmountable(_)) {
                return Ok(mounted);
            }
            if let Some(damage) = self.filesystem_damage()? {
                return Ok(Finding::Unmountable(damage));
            }
            let recovered = self.mounted(|stack| self.recovered(stack, at, crashed))?;
            if recovered.is_whole() && !mounted.is_whole() {
                return Err(Error::bug(format!("the end of WAL says {mounted:?}, but the recovered tables are whole")));
            }
            Ok(recovered)
        })
    }

    /// Puts disks behind the loop devices and acts.
    fn on(&self, images: Vec<Image>, act: impl FnOnce() -> Result<Finding>) -> Result<Finding> {
        let Checked { session, exports, nodes, .. } = &self.of;
        let recorder = Arc::new(overlay(&self.of, images)?);
        for (node, disk) in nodes.iter().zip(0..) {
            exports.put_behind(&name_of(node), &recorder, disk);
        }
        for ground in self.loops.values() {
            let Ground::Device(device) = ground else { continue };
            loops::forget_buffers(device).or_host(|| format!("drop the buffers of {}", device.display()))?;
        }
        let found = act();
        // The commands of a thousand states are not kept.
        drop(session.host.take_command_log());
        match recorder.failure() {
            Some(failure) => Err(Error::host(failure)),
            None => found,
        }
    }

    /// Opens the stack as it is, acts, and takes it down to the loop devices.
    fn mounted(&self, act: impl FnOnce(&BuiltStack) -> Result<Finding>) -> Result<Finding> {
        let Session { ledger, host, .. } = self.of.session;
        let mark = ledger.mark();
        drop(host.take_command_log());
        let site = site(self.of.session, self.name(), &self.files);
        let (found, serves) = match reopen_stack(&site, &self.of.case.stack, self.loops.clone()) {
            Ok(stack) => (act(&stack), true),
            Err(e) => {
                // A program that was killed, or never ran, says nothing of the state.
                let ended = host.take_command_log().iter().all(|ran| ran.exit_code.is_some());
                let refused = e.kind() == Kind::Tool && ended;
                (if refused { Ok(Finding::Unmountable(e.to_string())) } else { Err(Error::host(e.chain())) }, false)
            }
        };
        // A server and its processes are there only where one was started.
        let started =
            serves && ledger.open_things().iter().any(|(number, thing)| *number >= mark && undo::is_server(thing));
        let failures = match started {
            true => undo::undo(ledger, mark, host).err(),
            false => undo_from(ledger, mark, &Undoers::new(), host).into_iter().next(),
        };
        failures.map_or(found, Err)
    }

    fn tail_of(&self, stack: &BuiltStack, at: Seq) -> Finding {
        let Some(shape) = self.of.history.wal.filter(|_| self.of.history.has_ends()) else {
            self.leave_out("end of WAL: not every commit was seen in WAL");
            return Finding::Recovered(Found::Whole);
        };
        let end = || -> Result<Option<wal::Lsn>> {
            let Some(wal::Checkpoint { redo, timeline }) = wal::checkpoint(&data_folder(stack))? else {
                return Ok(None);
            };
            let mut reader = WalReader::new(&wal_folder(stack), shape, timeline, redo);
            reader.read_on(|_| ())?;
            Ok(Some(reader.end()))
        };
        Finding::Recovered(match end() {
            Ok(Some(end)) => self.of.history.lost_after(end, at).map_or(Found::Whole, Found::Lost),
            Ok(None) => Found::Torn("pg_control is missing or damaged".to_owned()),
            // The disks themselves take every request: what cannot be read, the filesystem refuses.
            Err(e) => Found::Torn(e.chain()),
        })
    }

    /// What the filesystem's own checker finds on disks that were mounted and unmounted.
    fn filesystem_damage(&self) -> Result<Option<String>> {
        let checks = filesystem_check::all_of(&self.of.session.host, &self.of.case.stack, &self.loops);
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

    fn recovered(&self, stack: &BuiltStack, at: Seq, crashed: bool) -> Result<Finding> {
        let Session { ledger, host, interrupt, .. } = self.of.session;
        let log = self.of.work.join("server.log");
        files::remove(&log)?;
        let mut spec = server_spec(self.of.session, postgres_of(self.of.case)?, stack, log)?;
        if !paths::exists(&spec.data.join("PG_VERSION")) {
            return Ok(Finding::Recovered(Found::Torn("the data folder is not there".to_owned())));
        }
        // Nothing here must outlive a power cut, and a crash must be seen.
        for (name, value) in [("fsync", "off"), ("restart_after_crash", "off")] {
            spec.settings.insert(name.to_owned(), value.to_owned());
        }
        // After a power cut no process of that number runs; here one may.
        files::remove(&spec.data.join("postmaster.pid"))?;
        ledger.enter(undo::server_thing(&spec)?)?;
        let look = |server: &_| match invariants::look(server, self.of.history, at, crashed)? {
            Found::Whole => server_check::amcheck(server),
            found => Ok(Ended::Found(found)),
        };
        match server_check::on_server(host, &spec, interrupt, look)? {
            Ended::Found(found) => Ok(Finding::Recovered(found)),
            Ended::LeftOut(steps) => {
                steps.iter().for_each(|step| self.leave_out(step));
                Ok(Finding::Recovered(Found::Whole))
            }
        }
    }

    fn leave_out(&self, step: &str) {
        self.left_out.borrow_mut().insert(step.to_owned());
    }
}

/// A recording on top of disks, whose log has no name.
fn overlay(of: &Checked<'_>, images: Vec<Image>) -> Result<Recorder> {
    let path = of.work.join("overlay");
    files::remove(&path)?;
    let recorder = Recorder::passing(images, &path, MOST_OVERLAY)?;
    files::remove(&path)?;
    Ok(recorder)
}

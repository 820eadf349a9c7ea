//! Judges a recording: by arithmetic, under each model of the device, and by states.

use super::cutting::CutEvent;
use super::history::Loss;
use super::judged::{Contents, Judged, ModelledDevice, verdict_on};
use super::pages::{Content, content_of};
use super::seams::DiskBlocks;
use super::trying::{SecondFailure, Suspect};
use super::{arithmetic, tried};
use crate::error::{Context, Result};
use crate::record::verdict::{DeviceVerdict, Verdict, VerdictRecord};
use crate::recorder::{Class, DeviceModel, Durable, Entry, Op, State, Written};
use crate::units::Micros;

/// Note for a case in which arithmetic is weaker.
const WEAKER: &str = "arithmetic: a layer changes pages of WAL, so any write on the disks of pg_wal counts as one";

impl Judged<'_> {
    /// The verdict, with the state it rests on if it convicts.
    pub fn judge(&self, report: &dyn Fn(CutEvent<'_>)) -> Result<(VerdictRecord, Option<Suspect>)> {
        let entries = self.recorded.recording.log().entries();
        let Contents { kinds, written, page_writes } = self.contents()?;
        let end = self.recorded.clients.history.acknowledged.last().map_or(0, |last| last.mark);
        let made = entries.iter().filter(|entry| entry.completed < end);
        let (writes, others): (Vec<&Entry>, Vec<&Entry>) = made.partition(|entry| entry.op == Op::Write);
        let acknowledged = &self.recorded.clients.history.acknowledged;
        let mut result = VerdictRecord {
            commits: acknowledged.len() as u64,
            asynchronous: Some(acknowledged.iter().filter(|one| one.asynchronous).count() as u64),
            beside: self.recorded.clients.beside.clone(),
            writes: writes.len() as u64,
            flushes: others.iter().filter(|entry| entry.op == Op::Flush).count() as u64,
            bytes: writes.iter().map(|entry| entry.length).sum(),
            page_writes: (page_writes.pages > 0).then_some(page_writes),
            ..verdict_on(self.case, Verdict::Holds { states: 0 }, self.session.cutting.clients)
        };
        if let Err(why) = self.recorded.clients.history.check(self.recorded.recording.log().end()) {
            result.verdict = Verdict::HarnessBroken { why };
            return Ok((result, None));
        }
        if self.recorded.clients.asynchronous && !self.recorded.clients.history.has_ends() {
            let why = "asynchronous commits are judged by their records, and not all were seen in WAL".to_owned();
            result.verdict = Verdict::NotMeasured { why };
            return Ok((result, None));
        }
        if !arithmetic::pages_are_kept(&self.case.stack) {
            result.left_out.push(WEAKER.to_owned());
        }
        let devices = self.devices();
        let by_arithmetic = devices.iter().map(|device| DeviceVerdict {
            device: device.name.clone(),
            verdict: self.arithmetic(&kinds, &device.durable),
        });
        result.devices = by_arithmetic.collect();
        result.verdict = result.devices[0].verdict.clone();
        let kept = match self.session.cutting.states {
            0 => None,
            _ => tried::try_states(self, &written, &devices, &mut result, report)?,
        };
        result.state = kept.as_ref().map(|kept| self.in_words(kept, &devices[0].durable));
        Ok((result, kept))
    }

    /// The state that a conviction rests on.
    fn in_words(&self, Suspect { state, second }: &Suspect, durable: &Durable) -> String {
        let acknowledged = &self.recorded.clients.history.acknowledged;
        let given = acknowledged.partition_point(|one| one.mark <= state.at);
        let at = acknowledged[..given].last().map_or(0, |last| last.at_us);
        let in_play = durable.in_play(self.recorded.recording.log().entries(), state.at).len();
        let later = match second {
            None => "",
            Some(SecondFailure::Recovery) => "; recovery from it fails",
            Some(SecondFailure::Cut(_)) => "; then a second cut during recovery",
        };
        format!(
            "power cut after {given} of {} acknowledged commits ({}): {}, {} of {in_play} writes in flight kept{later}",
            acknowledged.len(),
            Micros(at),
            state.class.word(),
            state.extra.len()
        )
    }

    /// The device models tried on each stack, the honest one first. If WAL has its own disks, each of the two groups is
    /// honest in turn.
    pub fn devices(&self) -> Vec<ModelledDevice> {
        let entries = self.recorded.recording.log().entries();
        let models = DeviceModel::ALL.into_iter();
        let mut devices: Vec<ModelledDevice> = models
            .map(|model| ModelledDevice { name: model.to_string(), durable: Durable::of(entries, model) })
            .collect();
        let (disks, wal) = (self.recorded.nodes.len() as u16, &self.recorded.wal_disks);
        if (0..disks).any(|disk| !wal.contains(&disk)) {
            let models = (0..disks)
                .map(|disk| if wal.contains(&disk) { DeviceModel::Honest } else { DeviceModel::FlushIgnored });
            let durable = Durable::of_each(entries, &models.collect::<Vec<_>>());
            devices.push(ModelledDevice { name: "flush ignored by all but the disks of pg_wal".to_owned(), durable });
        }
        devices
    }

    /// Content of each request.
    pub fn contents(&self) -> Result<Contents> {
        let log = self.recorded.recording.log();
        let begin = State { class: Class::Floor, at: 0, extra: Vec::new(), torn: Vec::new() };
        let durable = Durable::of(log.entries(), DeviceModel::Honest);
        let mut blocks = DiskBlocks::over(self.recorded.recording.images(&durable, &begin));
        let mut contents = Contents::default();
        for entry in log.entries() {
            let bytes = log.content(entry).or_store(|| "read the log".to_owned())?;
            contents.page_writes.add(entry.offset, &bytes);
            let seams = blocks.write(entry, &bytes).or_store(|| "read the log".to_owned())?;
            let kind = match content_of(&bytes) {
                Content::Data if !seams.is_empty() => Content::Overwritten,
                kind => kind,
            };
            contents.kinds.push(kind);
            contents.written.push(Written { kind: kind as u8, seams });
        }
        Ok(contents)
    }

    fn arithmetic(&self, contents: &[Content], durable: &Durable) -> Verdict {
        let entries = self.recorded.recording.log().entries();
        let pages_are_kept = arithmetic::pages_are_kept(&self.case.stack);
        let evidence = arithmetic::WalRequests { entries, contents, disks: &self.recorded.wal_disks, pages_are_kept };
        let loss = evidence.loss(&self.recorded.clients.history, durable).and_then(|loss| self.weighed(loss));
        loss.unwrap_or(Verdict::Holds { states: 0 })
    }

    /// Verdict on a loss. A loss that asynchronous commits allow is blamed on the server's settings if these make
    /// commits asynchronous; if only a share of the clients' transactions asked for it, it means nothing.
    pub fn weighed(&self, loss: Loss) -> Option<Verdict> {
        let Loss { commits, us, is_expected, .. } = loss;
        match (is_expected, self.recorded.clients.asynchronous) {
            (true, true) => Some(Verdict::ExpectedLoss { commits, us }),
            (true, false) => None,
            (false, _) => Some(Verdict::Loses { commits, us }),
        }
    }
}

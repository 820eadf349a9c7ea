//! When each request becomes durable, under a model of the device below.
//!
//! Every model interprets the same log, so one recording serves them all. A model assigns each request the position in
//! the sequence from which no power cut undoes it; the durable set at a moment is everything at or before it, and only
//! grows.

use super::entry::{Entry, NEVER, Op, Seq};

/// How the device treats acknowledged data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceModel {
    /// Keeps completed FUA writes, and everything completed before the submission of a flush that itself completed.
    Honest,
    /// Keeps every completed write: a cache with power-loss protection, or none.
    PowerProtected,
    /// Acknowledges flushes without doing anything; honors FUA.
    FlushIgnored,
    /// Treats FUA writes as plain ones; honors flushes.
    FuaIgnored,
    /// Ignores flushes and FUA; keeps what its cache of this size has evicted, oldest first.
    BoundedCache { bytes: u64 },
    /// Acknowledges a flush at once and performs it this much later; honors FUA.
    DelayedFlush { us: u64 },
}

impl DeviceModel {
    /// Models reported for each stack.
    pub const ALL: [DeviceModel; 6] = [
        DeviceModel::Honest,
        DeviceModel::PowerProtected,
        DeviceModel::FlushIgnored,
        DeviceModel::FuaIgnored,
        DeviceModel::BoundedCache { bytes: 1 << 20 },
        DeviceModel::DelayedFlush { us: 50_000 },
    ];
}

impl std::fmt::Display for DeviceModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use crate::units::{Bytes, Micros};
        match self {
            DeviceModel::Honest => f.write_str("honest"),
            DeviceModel::PowerProtected => f.write_str("power-protected"),
            DeviceModel::FlushIgnored => f.write_str("flush ignored"),
            DeviceModel::FuaIgnored => f.write_str("FUA ignored"),
            DeviceModel::BoundedCache { bytes } => write!(f, "flush and FUA ignored, cache of {}", Bytes(*bytes)),
            DeviceModel::DelayedFlush { us } => write!(f, "flush delayed by {}", Micros(*us)),
        }
    }
}

/// When each entry of a log becomes durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durable {
    /// By entry number; [`NEVER`] if nothing makes it durable.
    from: Vec<Seq>,
}

impl Durable {
    /// Evaluates a log with a model for each disk.
    pub fn of_each(entries: &[Entry], models: &[DeviceModel]) -> Durable {
        let by_model: Vec<Durable> = models.iter().map(|model| Durable::of(entries, *model)).collect();
        let numbered = entries.iter().enumerate();
        let from =
            numbered.map(|(number, entry)| by_model.get(usize::from(entry.disk)).map_or(NEVER, |of| of.from[number]));
        Durable { from: from.collect() }
    }

    /// Evaluates a log with one model for all disks.
    pub fn of(entries: &[Entry], model: DeviceModel) -> Durable {
        let disks = entries.iter().map(|entry| entry.disk).max().map_or(0, |most| most + 1);
        let flushes: Vec<Earliest> = (0..disks).map(|disk| flushes(entries, disk, model)).collect();
        let pushed_out = match model {
            DeviceModel::BoundedCache { bytes } => pushed_out(entries, bytes),
            _ => Vec::new(),
        };
        let from = entries.iter().enumerate().map(|(number, entry)| match model {
            _ if !entry.changes() => NEVER,
            DeviceModel::PowerProtected => entry.completed,
            DeviceModel::BoundedCache { .. } => pushed_out[number],
            DeviceModel::Honest | DeviceModel::DelayedFlush { .. } | DeviceModel::FlushIgnored if entry.fua => {
                entry.completed
            }
            DeviceModel::FlushIgnored => NEVER,
            DeviceModel::Honest | DeviceModel::FuaIgnored | DeviceModel::DelayedFlush { .. } => {
                flushes[usize::from(entry.disk)].effect(|submitted| submitted <= entry.completed)
            }
        });
        Durable { from: from.collect() }
    }

    /// The same as if this entry never became durable, so that a test misses it.
    #[cfg(test)]
    pub(crate) fn without(mut self, entry: usize) -> Durable {
        self.from[entry] = NEVER;
        self
    }

    /// Position from which the entry with this number is durable.
    pub fn from(&self, entry: usize) -> Seq {
        self.from[entry]
    }

    /// The durable set just before `at`: entry numbers, in order.
    pub fn at(&self, at: Seq) -> Vec<usize> {
        (0..self.from.len()).filter(|number| self.from[*number] < at).collect()
    }

    /// Which of these positions have an entry in this durable set that is missing in the other's.
    pub fn ahead_of(&self, other: &Durable, positions: &[Seq]) -> Vec<Seq> {
        let mut gaps: Vec<(Seq, Seq)> = self.from.iter().copied().zip(other.from.iter().copied()).collect();
        gaps.retain(|(held, lacked)| held < lacked);
        gaps.sort_unstable();
        // Of all that begin no later, the end of the one that ends last.
        let mut last = 0;
        gaps.iter_mut().for_each(|(_, lacked)| {
            last = last.max(*lacked);
            *lacked = last;
        });
        let is_ahead = |at: &Seq| {
            let begun = gaps.partition_point(|(held, _)| held < at);
            gaps[..begun].last().is_some_and(|(_, lacked)| lacked >= at)
        };
        positions.iter().copied().filter(is_ahead).collect()
    }

    /// Entries submitted before `at` that may or may not survive: entry numbers, in order.
    pub fn in_play(&self, entries: &[Entry], at: Seq) -> Vec<usize> {
        let in_play_now = (0..self.from.len()).filter(|number| {
            let entry = &entries[*number];
            entry.changes() && entry.submitted < at && self.from[*number] >= at
        });
        in_play_now.collect()
    }
}

/// Flushes of one disk: when each was submitted, and when it takes effect.
fn flushes(entries: &[Entry], disk: u16, model: DeviceModel) -> Earliest {
    let flushes = entries.iter().filter(|entry| entry.disk == disk && entry.op == Op::Flush);
    Earliest::of(flushes.map(|flush| match model {
        DeviceModel::DelayedFlush { us } => {
            let due = flush.at_us + us;
            let first = entries.partition_point(|entry| entry.at_us < due);
            (flush.submitted, entries.get(first).map_or(NEVER, |entry| entry.completed.max(flush.completed)))
        }
        _ => (flush.submitted, flush.completed),
    }))
}

/// Requests by submission, each with the earliest effect of it and all later ones.
pub struct Earliest(Vec<(Seq, Seq)>);

impl Earliest {
    /// Of requests with submission and effect.
    pub fn of(requests: impl Iterator<Item = (Seq, Seq)>) -> Earliest {
        let mut by_submission: Vec<(Seq, Seq)> = requests.collect();
        by_submission.sort_unstable();
        let mut earliest = NEVER;
        for (_, effect) in by_submission.iter_mut().rev() {
            earliest = earliest.min(*effect);
            *effect = earliest;
        }
        Earliest(by_submission)
    }

    /// The earliest effect of a request not submitted too early.
    pub fn effect(&self, is_too_early: impl Fn(Seq) -> bool) -> Seq {
        let first = self.0.partition_point(|(submitted, _)| is_too_early(*submitted));
        self.0.get(first).map_or(NEVER, |(_, effect)| *effect)
    }
}

/// When each entry leaves a cache of `bytes` that is written back oldest first, one cache per disk.
fn pushed_out(entries: &[Entry], bytes: u64) -> Vec<Seq> {
    let mut from = vec![NEVER; entries.len()];
    let disks = entries.iter().map(|entry| entry.disk).max().map_or(0, |most| usize::from(most) + 1);
    let mut cached: Vec<(std::collections::VecDeque<usize>, u64)> = vec![Default::default(); disks];
    for (number, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.changes()) {
        let (queue, held) = &mut cached[usize::from(entry.disk)];
        // Only content takes space; a discard is evicted with the content before it.
        *held += if entry.op == Op::Write { entry.length } else { 0 };
        queue.push_back(number);
        while *held > bytes {
            let Some(oldest) = queue.pop_front() else { break };
            from[oldest] = entry.completed;
            *held -= if entries[oldest].op == Op::Write { entries[oldest].length } else { 0 };
        }
    }
    from
}

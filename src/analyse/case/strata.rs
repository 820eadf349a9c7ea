//! Cost of one client operation at each layer: device writes, flushes, WAL.

use crate::analyse::case::image_cost::ImageCostSums;
use crate::analyse::findings::groups::{distinct, item_of};
use crate::analyse::findings::{DeviceIo, DeviceStrata, Strata};
use crate::analyse::trial::counters::{Flow, Operations, growth};
use crate::analyse::trial::device_work::DeviceFlows;
use crate::analyse::trial::input::Seconds;
use crate::record::built::{NodeFacts, StackFacts};
use crate::record::case::CaseSpec;
use crate::record::claim::{Claim, Promise};
use crate::record::columns::{self, DEVICE_FLUSHES, DEVICE_READS, DEVICE_WRITE_BYTES, DEVICE_WRITES, DeviceColumn};
use crate::record::facts::DeviceFacts;
use crate::record::operation::{Operation, Writes};
use crate::record::stack::{BaseName, End};
use crate::record::trial::{IdleTraffic, TrialRecord};
use crate::stats::geometric;
use crate::store::seconds::CountColumn;
use crate::units::{Bytes, significant};
use std::collections::BTreeMap;

/// The sentence omits reads below this many per operation.
const READS_WORTH_SAYING: f64 = 0.05;
/// A writing workload makes at least a heap record and a commit record; with fewer WAL records per operation than this,
/// a workload counts as read only. Not 0, because autovacuum and checkpoints write an occasional record.
const READ_ONLY_RECORDS: f64 = 0.05;

/// Number of each trial, with its own sums.
type Trials<'a> = [(u32, &'a StrataSums)];

#[derive(Debug, Clone, Default)]
pub struct StrataSums {
    /// Devices with counters, from top to bottom, those of the data first.
    pub devices: Vec<DeviceSums>,
    /// Names of the stack's devices in the last trial; `None` if one of them is not visible.
    of_stack: Option<Vec<String>>,
    pub wal_bytes: Flow,
    pub wal_records: Flow,
    pub wal_fpi: Flow,
    pub wal_syncs: Flow,
    /// WAL syncs from before the load to after it, if counted: exact.
    pub load_syncs: f64,
    /// WAL records, transactions that wrote, and operations, counted likewise.
    pub load_records: f64,
    pub load_xids: f64,
    pub load_operations: f64,
    /// Transactions that wrote.
    pub xids: Flow,
    /// CPU time by state, and CPU time of other programs.
    cpu_ns: [Flow; columns::CPU_WORK.len()],
    others_cpu_ns: Flow,
    /// Checkpoints that began during the measurement.
    pub checkpoints: u64,
    /// Most counter readings in a trial, including the one at its start.
    pub readings: usize,
    /// True if the processor was emulated.
    pub emulated: bool,
    pub in_virtual_machine: bool,
    image: ImageCostSums,
}

/// Sums of one device, or of all devices at one depth.
#[derive(Debug, Clone, Default)]
pub struct DeviceSums {
    pub node: String,
    /// Depth below each part of the database.
    below: BTreeMap<End, u32>,
    pub names: Vec<String>,
    /// Devices as described by sysfs, in the last trial that has them.
    pub facts: Vec<DeviceFacts>,
    pub promises: Vec<Promise>,
    /// Number of its devices that declare their writes stable, and number of all its devices.
    stable: (usize, usize),
    /// Flushes attributed to other programs by their activity before the trials; `None` if that was not observed.
    others: Option<f64>,
    /// True if it has counted any flush since it appeared.
    pub ever_flushed: bool,
    /// Flushes from before the load to after it, in trials whose syncs were counted that way.
    pub load_flushes: Option<f64>,
    work: DeviceFlows,
}

impl StrataSums {
    pub fn add(&mut self, record: &TrialRecord, seconds: &Seconds, operations: &Operations) {
        self.wal_bytes.add(seconds, seconds.counts(&columns::PG_WAL_BYTES), operations);
        self.wal_records.add(seconds, seconds.counts(&columns::PG_WAL_RECORDS), operations);
        self.wal_fpi.add(seconds, seconds.counts(&columns::PG_WAL_FPI), operations);
        self.wal_syncs.add(seconds, seconds.counts(&columns::PG_WAL_SYNCS), operations);
        let [syncs, records, xids] = [columns::PG_WAL_SYNCS, columns::PG_WAL_RECORDS, columns::PG_XIDS]
            .map(|column| record.load_counts.get(column.name).map(|count| *count as f64));
        self.load_syncs += syncs.unwrap_or(0.0);
        if let Some((records, xids)) = records.zip(xids) {
            let measures = record.counts.iter().flat_map(|counts| &counts.measures);
            self.load_records += records;
            self.load_xids += xids;
            self.load_operations += measures.map(|measure| measure.done).sum::<Option<u64>>().unwrap_or(0) as f64;
        }
        self.image.add(record, seconds, operations);
        for (flow, column) in self.cpu_ns.iter_mut().zip(&columns::CPU_WORK) {
            flow.add(seconds, seconds.counts(column), operations);
        }
        self.others_cpu_ns.add(seconds, seconds.counts(&columns::OTHERS_CPU_NS), operations);
        self.xids.add(seconds, seconds.counts(&columns::PG_XIDS), operations);
        for column in [columns::PG_CHECKPOINTS_TIMED, columns::PG_CHECKPOINTS_REQUESTED] {
            self.checkpoints += seconds.counts(&column).and_then(growth).unwrap_or(0);
        }
        self.readings = self.readings.max(seconds.rows());
        self.emulated |= record.host.is_emulated();
        self.in_virtual_machine |= record.host.is_virtual == Some(true);
        if let Some(stack) = &record.stack {
            self.of_stack = devices_of(stack);
            self.add_devices(record, stack, seconds, operations);
        }
    }

    fn add_devices(&mut self, record: &TrialRecord, stack: &StackFacts, seconds: &Seconds, operations: &Operations) {
        let ends: Vec<_> = stack.ends().into_iter().map(|(end, base)| (end, stack.devices_below(Some(base)))).collect();
        let syncs_are_counted = record.load_counts.contains_key(columns::PG_WAL_SYNCS.name);
        for (name, prefix, facts) in stack.device_columns() {
            if !seconds.device_counts(&prefix, &DEVICE_WRITES).is_some_and(CountColumn::any) {
                continue;
            }
            let new = DeviceSums { node: name.0.clone(), ..DeviceSums::default() };
            let sums = item_of(&mut self.devices, |known| known.node == name.0, || new);
            let below = ends.iter().flat_map(|(end, below)| below.iter().map(move |below| (end, below)));
            let of_device = below.filter(|(_, below)| below.name() == name);
            sums.below = of_device.map(|(end, below)| (end.clone(), below.depth)).collect();
            sums.add_facts(facts, stack.node(name.node()).map_or(&[][..], |node| &node.promises));
            let idle = record.idle.as_ref().and_then(|idle| flushes_while_idle(idle, &name));
            let load_flushes = record.load_counts.get(&DEVICE_FLUSHES.name(&prefix)).filter(|_| syncs_are_counted);
            sums.add_work(DeviceFlows::of(seconds, &prefix, operations), idle, load_flushes.copied());
        }
        self.devices.sort_by_key(|device| {
            let [data, wal] = [End::Data, End::Wal].map(|end| device.below.get(&end).copied());
            (data.unwrap_or(u32::MAX), wal)
        });
    }

    /// Devices below one part of the database, from top to bottom; those at one depth are added up.
    pub fn below(&self, end: &End) -> Vec<DeviceSums> {
        let mut levels: BTreeMap<u32, DeviceSums> = BTreeMap::new();
        for device in &self.devices {
            let Some(depth) = device.below.get(end) else { continue };
            let level = levels.remove(depth).map_or_else(|| device.clone(), |level| level.and(device));
            levels.insert(*depth, level);
        }
        levels.into_values().collect()
    }

    /// True if the workload wrote next to no WAL; `None` if WAL was not counted. In short windows the counter of WAL
    /// records lags by a second or so, but transactions that took an id have written all the same. If none took one, no
    /// commit waits for WAL (RecordTransactionCommit), no matter who writes it: at one query per second, other
    /// processes write more records than there are queries.
    pub fn read_only(&self) -> Option<bool> {
        let xids = self.xids.per_operation();
        let wrote = xids.is_some_and(|xids| xids >= READ_ONLY_RECORDS);
        let records = self.wal_records.per_operation()?;
        Some((records < READ_ONLY_RECORDS && !wrote) || xids == Some(0.0))
    }

    /// Result, with `noun` as the name of an operation; `None` if nothing was counted. Figures per operation are means over
    /// `trials`, as where cases are compared.
    pub fn finding(&self, noun: &str, trials: &Trials<'_>) -> Option<Strata> {
        let mean = |of: fn(&StrataSums) -> Option<f64>| mean(trials, of);
        let of_device = |device: &DeviceSums| {
            device.finding(trials, |trial, column| trial.device(&device.node)?.per_operation(column))
        };
        let flows = [self.wal_bytes, self.wal_records, self.wal_syncs];
        let operations = flows.into_iter().chain(self.devices.iter().map(DeviceSums::writes));
        let operations = operations.map(|flow| flow.operations as u64).max().filter(|operations| *operations > 0)?;
        let image = self.image.finding(noun);
        let added = image.as_ref().and_then(|image| image.sentence.as_ref()).map(|added| format!("; {added}"));
        Some(Strata {
            sentence: self.sentence(noun, trials) + &added.unwrap_or_default(),
            operations,
            wal_bytes: mean(|trial| trial.wal_bytes.per_operation()),
            wal_records: mean(|trial| trial.wal_records.per_operation()),
            full_page_images: mean(|trial| trial.wal_fpi.per_operation()),
            wal_syncs: mean(|trial| trial.wal_syncs.per_operation()),
            writing: mean(|trial| trial.xids.per_operation()),
            devices: self.devices.iter().map(of_device).collect(),
            at_stack_devices: self.all_stack_devices(trials),
            write_amplification: mean(StrataSums::write_amplification),
            cpu_us: mean(StrataSums::cpu_us),
            image,
            // Requires another case; added by the analysis once all cases are complete.
            flush_share: None,
        })
    }

    /// All devices of the stack, data and WAL; `None` if one of them is not counted.
    fn stack_devices(&self) -> Option<Vec<&DeviceSums>> {
        self.of_stack.as_ref()?.iter().map(|name| self.device(name)).collect()
    }

    fn device(&self, node: &str) -> Option<&DeviceSums> {
        self.devices.iter().find(|device| device.node == node)
    }

    /// A counter of all devices of the stack; `None` if one of them lacks it.
    pub(crate) fn at_stack_devices(&self, column: DeviceColumn) -> Option<f64> {
        self.stack_devices()?.iter().map(|device| device.per_operation(column)).sum()
    }

    /// All devices of the stack as one.
    fn all_stack_devices(&self, trials: &Trials<'_>) -> Option<DeviceStrata> {
        let joined = self.stack_devices()?.into_iter().cloned().reduce(|all, device| all.and(&device))?;
        // Per-second figures of several devices do not describe any of them.
        Some(DeviceStrata { io: DeviceIo::default(), ..joined.finding(trials, StrataSums::at_stack_devices) })
    }

    /// Lowest devices below the data and, if these are different, below pg_wal.
    fn lowest(&self) -> Vec<DeviceSums> {
        let mut lowest: Vec<DeviceSums> = self.below(&End::Data).pop().into_iter().collect();
        lowest.extend(self.below(&End::Wal).pop().filter(|wal| lowest.iter().all(|data| data.names != wal.names)));
        lowest
    }

    /// CPU time of server, kernel and clients per operation, microseconds.
    pub fn cpu_us(&self) -> Option<f64> {
        let all: f64 = self.cpu_ns.iter().map(Flow::per_operation).sum::<Option<f64>>()?;
        Some((all - self.others_cpu_ns.per_operation()?).max(0.0) / 1e3)
    }

    fn write_amplification(&self) -> Option<f64> {
        let wal = self.wal_bytes.per_operation().filter(|bytes| *bytes > 0.0)?;
        let lowest = self.lowest();
        let bytes: Option<f64> = lowest.iter().map(|low| low.per_operation(DEVICE_WRITE_BYTES)).sum();
        bytes.filter(|_| !lowest.is_empty()).map(|bytes| bytes / wal)
    }

    fn sentence(&self, noun: &str, trials: &Trials<'_>) -> String {
        let mut shown: Vec<DeviceStrata> = Vec::new();
        for end in [End::Data, End::Wal] {
            let levels = self.below(&end);
            let of_level = |place: usize| {
                let in_trial = |trial: &StrataSums, column| trial.below(&end).get(place)?.per_operation(column);
                Some(levels.get(place)?.finding(trials, in_trial))
            };
            // A partition adds nothing to the figures of its disk.
            let top = levels.first().filter(|top| top.promise(Claim::FlushesUncounted).is_none());
            let last = of_level(levels.len().saturating_sub(1));
            for device in [top.and_then(|_| of_level(0)), last].into_iter().flatten() {
                if shown.iter().all(|known| known.node != device.node) {
                    shown.push(device);
                }
            }
        }
        let single = shown.len() == 1;
        let mut parts: Vec<String> = shown.iter().filter_map(|device| words(device, single)).collect();
        if parts.is_empty() {
            let wal = mean(trials, |trial| trial.wal_bytes.per_operation());
            let wal = wal.map(|bytes| format!("{} of WAL", size(bytes)));
            parts.push(format!("{}; no block device is visible below it", wal.as_deref().unwrap_or("not counted")));
        }
        format!("one {noun} = {}", parts.join(", "))
    }
}

impl DeviceSums {
    fn add_facts(&mut self, facts: &DeviceFacts, promises: &[Promise]) {
        let new: Vec<Promise> = promises.iter().filter(|it| !self.promises.contains(it)).cloned().collect();
        self.promises.extend(new);
        if !self.names.contains(&facts.name) {
            self.names.push(facts.name.clone());
        }
        self.facts = vec![facts.clone()];
        self.stable = (usize::from(self.promise(Claim::DeclaredStable).is_some()), 1);
    }

    /// Adds a trial, with the flush rate of other programs before it and the flushes from before the load to after it.
    fn add_work(&mut self, mut trial: DeviceFlows, idle: Option<f64>, load_flushes: Option<u64>) {
        let flushes = trial.flow(DEVICE_FLUSHES);
        if let Some(grown) = flushes.grown() {
            let before = self.facts.first().and_then(|facts| facts.flushes_before);
            self.ever_flushed |= grown > 0.0 || before.is_some_and(|before| before > 0);
            self.others = idle.map(|a_second| self.others.unwrap_or(0.0) + a_second * flushes.seconds);
        }
        if self.promise(Claim::FlushesUncounted).is_some() {
            trial.leave_out_flushes();
        } else if let Some(flushes) = load_flushes {
            *self.load_flushes.get_or_insert_default() += flushes as f64;
        }
        self.work.merge(&trial, std::ops::Add::add);
    }

    fn per_operation(&self, column: DeviceColumn) -> Option<f64> {
        self.work.flow(column).per_operation()
    }

    pub fn writes(&self) -> Flow {
        self.work.flow(DEVICE_WRITES)
    }

    pub fn flushes(&self) -> Flow {
        self.work.flow(DEVICE_FLUSHES)
    }

    /// Combines devices at one depth: adds up their work and joins their names.
    fn and(mut self, other: &DeviceSums) -> DeviceSums {
        self.node = format!("{}+{}", self.node, other.node);
        self.names = vec![format!("{}+{}", self.name(), other.name())];
        self.facts.extend(other.facts.iter().cloned());
        self.promises.extend(other.promises.iter().cloned());
        self.stable = (self.stable.0 + other.stable.0, self.stable.1 + other.stable.1);
        self.others = self.others.zip(other.others).map(|(own, others)| own + others);
        self.ever_flushed |= other.ever_flushed;
        self.load_flushes = self.load_flushes.zip(other.load_flushes).map(|(own, others)| own + others);
        self.work.merge(&other.work, f64::max);
        self
    }

    /// Kernel name; `loop` for several loop devices; the node if there is no name.
    pub fn name(&self) -> String {
        match self.names.as_slice() {
            [] => self.node.clone(),
            [name] => name.clone(),
            [name, ..] => name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(),
        }
    }

    /// First matching promise of any of its devices.
    pub fn promise(&self, claim: Claim) -> Option<&Promise> {
        self.promises.iter().find(|promise| promise.claim == claim)
    }

    /// True if all its devices declare their writes stable.
    pub fn declares_stable(&self) -> bool {
        self.stable.0 > 0 && self.stable.0 == self.stable.1
    }

    /// Flushes without those attributed to other programs; `None` if flushes are not counted.
    pub fn own_flushes(&self) -> Option<Flow> {
        self.flushes().per_operation()?;
        Some(self.flushes().without(self.others.unwrap_or(0.0)))
    }

    /// Share of its flushes attributed to other programs; `None` if these were not observed.
    pub fn share_of_others(&self) -> Option<f64> {
        let all = self.flushes().amount;
        self.others.map(|others| if all > 0.0 { (others / all).min(1.0) } else { 0.0 })
    }

    /// True if it accepts FUA writes.
    pub fn takes_fua(&self) -> bool {
        !self.facts.is_empty() && self.facts.iter().all(|facts| facts.fua == Some(true))
    }

    /// Backing file of a loop device.
    pub fn backing_file(&self) -> Option<&str> {
        self.facts.iter().find_map(|facts| facts.backing_file.as_deref())
    }

    /// Its work per operation as mean over trials of what `of` finds in each.
    fn finding(&self, trials: &Trials<'_>, of: impl Fn(&StrataSums, DeviceColumn) -> Option<f64>) -> DeviceStrata {
        let [writes, write_bytes, flushes, reads] = [DEVICE_WRITES, DEVICE_WRITE_BYTES, DEVICE_FLUSHES, DEVICE_READS]
            .map(|column| mean(trials, |trial| of(trial, column)));
        let each = write_bytes.zip(writes).filter(|(_, writes)| *writes > 0.0);
        let bytes_per_write = each.map(|(bytes, writes)| bytes / writes);
        let (node, device, busy, io) = (self.node.clone(), self.name(), self.work.busy(), self.work.io());
        DeviceStrata { node, device, writes, bytes_per_write, write_bytes, flushes, reads, busy, io }
    }
}

/// "1.02 device writes of 16.4 KiB + 0.5 flushes", followed by the device's name unless it is the only one.
fn words(device: &DeviceStrata, single: bool) -> Option<String> {
    let mut text = format!("{} device writes", significant(device.writes?));
    text.extend(device.bytes_per_write.map(|bytes| format!(" of {}", size(bytes))));
    text.extend(device.flushes.map(|flushes| format!(" + {} flushes", significant(flushes))));
    let reads = device.reads.filter(|reads| *reads >= READS_WORTH_SAYING);
    text.extend(reads.map(|reads| format!(" + {} reads", significant(reads))));
    let place = if single { String::new() } else { format!(" at {}", device.device) };
    Some(text + &place)
}

/// Geometric mean over trials of what each has; the plain mean if one has zero.
fn mean(trials: &Trials<'_>, of: impl Fn(&StrataSums) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = trials.iter().filter_map(|(_, trial)| of(trial)).collect();
    geometric::over_trials(&values).map(|found| found.mean)
}

/// Name of a server's operation that always writes.
pub const COMMIT: &str = "commit";

/// Name of a case's operation; `read_only` is what was observed.
pub fn noun<'a>(case: &CaseSpec, operation: &'a Operation, read_only: Option<bool>) -> &'a str {
    let commits = case.postgres.is_some() && operation.writes == Writes::Always && read_only != Some(true);
    if commits { COMMIT } else { &operation.noun }
}

/// Devices that a stack writes to, each once: those of the plan with no other plan node below; for a part of the
/// database without any (say, because the plan gave a folder) its first devices. `None` if a part is not in memory and
/// has no visible device.
fn devices_of(stack: &StackFacts) -> Option<Vec<String>> {
    let devices = stack.devices().into_iter().map(|(name, _)| name);
    let mut found: Vec<String> = devices.filter(|name| is_stack_device(stack, name)).map(|name| name.0).collect();
    for (_, base) in stack.ends() {
        let below = stack.devices_below(Some(base));
        let Some(first) = below.iter().map(|device| device.depth).min() else {
            stack.promise(Some(base), Claim::Volatile)?;
            continue;
        };
        if below.iter().any(|device| is_stack_device(stack, &device.name())) {
            continue;
        }
        found.extend(below.iter().filter(|device| device.depth == first).map(|device| device.name().0));
    }
    Some(distinct(found))
}

/// True if a node is part of the plan and none below it is.
fn is_stack_device(stack: &StackFacts, name: &BaseName) -> bool {
    node_of_plan(stack, name)
        .is_some_and(|node| node.inputs.iter().all(|input| node_of_plan(stack, &input.from).is_none()))
}

fn node_of_plan<'a>(stack: &'a StackFacts, name: &BaseName) -> Option<&'a NodeFacts> {
    stack.node(name.node()).filter(|node| node.layer.is_some())
}

/// Flush rate of other programs at a device while the trial was idle: the observed count plus its square root, for what
/// such a small count may hide.
fn flushes_while_idle(idle: &IdleTraffic, device: &BaseName) -> Option<f64> {
    let flushes = idle.devices.get(&device.0)?.flushes? as f64;
    (idle.elapsed_us > 0).then(|| (flushes + flushes.sqrt()) / (idle.elapsed_us as f64 / 1e6))
}

fn size(bytes: f64) -> String {
    Bytes(bytes.round() as u64).to_string()
}

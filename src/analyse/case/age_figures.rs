//! Figures of one trial on a stack with `age`: its results, the layout of its files, the work of its devices.

use crate::analyse::case::strata::{COMMIT, StrataSums};
use crate::analyse::trial::counters::{Operations, growth};
use crate::analyse::trial::device_work::DeviceFlows;
use crate::analyse::trial::input::{Latencies, Seconds};
use crate::analyse::trial::rates::rate_of;
use crate::analyse::trial::window::sync_s_per_gb;
use crate::record::age::{AgeRecord, LEAST_RELATION, Layout, PoolRoom, RelationLayout};
use crate::record::built::Below;
use crate::record::columns;
use crate::record::operation::Writes;
use crate::record::trial::TrialRecord;
use crate::stats::autocorrelation::Within;
use crate::stats::interval::TrialMean;

const GIB: f64 = (1u64 << 30) as f64;

#[derive(Debug)]
pub(crate) struct AgeFigure {
    pub name: String,
    pub unit: String,
    pub trial: TrialMean,
}

impl AgeFigure {
    fn new(name: &str, unit: &str, mean: f64) -> AgeFigure {
        AgeFigure { name: name.to_owned(), unit: unit.to_owned(), trial: TrialMean { mean, within: None } }
    }

    /// A count in units of `scale`. Whether a file has three extents or four is chance, so the error is that of a
    /// Poisson count.
    pub fn count(name: &str, count: u64, scale: f64) -> AgeFigure {
        let n = count as f64;
        let within = (count > 0).then(|| Within { standard_error: n.sqrt() * scale, degrees: n });
        AgeFigure { name: name.to_owned(), unit: String::new(), trial: TrialMean { mean: n * scale, within } }
    }
}

/// Figures of a trial whose stack has `age`; other trials have none. Unknown figures are omitted.
pub(crate) fn of_trial(record: &TrialRecord, seconds: &Seconds, latencies: &Latencies) -> Vec<AgeFigure> {
    let Some(age) = &record.age else { return Vec::new() };
    let unit = &record.operation.unit;
    let measures = record.counts.iter().flat_map(|counts| &counts.measures);
    let of_measures = measures.filter_map(|measure| Some(AgeFigure::new(&measure.name, unit, rate_of(measure)?)));
    let mut figures: Vec<AgeFigure> = of_measures.collect();
    figures.extend(at_fixed_rate(record, latencies));
    // For read-only workloads a checkpoint has only a few catalog pages, whose sync says nothing about a load.
    let checkpoints = sync_s_per_gb(record).filter(|_| record.operation.writes != Writes::Never);
    figures.extend(checkpoints.map(|s_per_gb| AgeFigure::new("checkpoint sync", "s/GB", s_per_gb)));
    figures.extend(age.layout.iter().flat_map(|layout| of_layout(age, layout)));
    figures.extend(compressed(record));
    figures.extend(age.pool.iter().flat_map(of_pool));
    figures.extend(held(age));
    figures.extend(written(record, seconds));
    figures.extend(of_devices(record, seconds));
    figures.extend(cpu_busy(seconds));
    figures.into_iter().filter(|figure| figure.trial.mean.is_finite()).collect()
}

/// Latency tail, and the slowest operation if all were logged. Without a fixed rate, slow operations delay the start of
/// others, so neither shows stalls.
fn at_fixed_rate(record: &TrialRecord, latencies: &Latencies) -> Vec<AgeFigure> {
    let main = record.counts.iter().flat_map(|counts| &counts.measures).next();
    let of_main = latencies.iter().find(|(name, _)| main.is_some_and(|main| main.name == *name));
    let Some((_, histogram)) = of_main.filter(|(_, all)| record.operation.rate.is_some() && !all.is_empty()) else {
        return Vec::new();
    };
    let mut figures = vec![AgeFigure::new("p99", "ms", histogram.value_at_quantile(0.99) as f64 / 1000.0)];
    if record.operation.log_sample.is_none_or(|share| share >= 1.0) {
        figures.push(AgeFigure::new("slowest operation", "ms", histogram.max() as f64 / 1000.0));
    }
    figures
}

/// Relations whose extents count, and their size in bytes; empty if any is unknown, since a partial figure is not
/// comparable.
fn known(layout: &Layout) -> (Vec<&RelationLayout>, u64) {
    let large = layout.relations.iter().filter(|relation| relation.bytes >= LEAST_RELATION);
    let known: Vec<&RelationLayout> =
        large.filter(|relation| relation.extents.is_some() && layout.not_told.is_none()).collect();
    let bytes = known.iter().map(|relation| relation.bytes).sum();
    (known, bytes)
}

/// Filesystems that can compress and report the result.
const COMPRESSING: [&str; 3] = ["bcachefs", "btrfs", "zfs"];

/// Compressed share of the relations, percent.
fn compressed_percent(record: &TrialRecord) -> Option<f64> {
    let (known, bytes) = known(record.age.as_ref()?.layout.as_ref()?);
    let encoded: u64 = known.iter().map(|relation| relation.encoded_bytes).sum();
    (bytes > 0).then(|| 100.0 * encoded as f64 / bytes as f64)
}

fn compressed(record: &TrialRecord) -> Option<AgeFigure> {
    let mount = record.stack.as_ref()?.mount()?;
    let compresses = COMPRESSING.contains(&mount.fstype.as_str());
    Some(AgeFigure::new("stored compressed", "%", compressed_percent(record).filter(|_| compresses)?))
}

/// The same for data on a btrfs mounted to compress, with a server that preallocates space.
pub(crate) fn asked_to_compress(record: &TrialRecord) -> Option<f64> {
    let stack = record.stack.as_ref()?;
    let mount = stack.mount().filter(|mount| mount.fstype == "btrfs")?;
    let asked = mount.super_options.iter().any(|option| option.starts_with("compress"));
    let nocow = stack.nodes.iter().any(|node| node.details.get("nocow").is_some_and(|shown| shown.starts_with("on")));
    let major = record.server.as_ref()?.version_num / 10_000;
    let reserves = record.case.postgres.as_ref()?.reserves_space(major);
    compressed_percent(record).filter(|_| asked && !nocow && reserves)
}

fn of_layout(age: &AgeRecord, layout: &Layout) -> Vec<AgeFigure> {
    let (known, bytes) = known(layout);
    let extents: u64 = known.iter().filter_map(|relation| relation.extents).sum();
    let mut figures = Vec::new();
    if bytes > 0 {
        figures.push(AgeFigure::count("extents per GiB", extents, GIB / bytes as f64));
    }
    if let (Some(size), Some(free)) = (layout.size_bytes, layout.free_bytes) {
        let used = size.saturating_sub(free);
        if layout.cluster_bytes > 0 && age.snapshots.is_none() {
            // Files next to the cluster are not part of its space; on the control they have been removed.
            let beside: u64 = age.fill.iter().chain(&age.churn).map(|work| work.left_bytes).sum();
            let own = used.saturating_sub(beside);
            figures.push(AgeFigure::new("space used / logical size", "", own as f64 / layout.cluster_bytes as f64));
        }
        // A dataset's size shrinks by what snapshots hold, so its pool is used instead.
        if age.pool.is_none() && size > 0 {
            figures.push(AgeFigure::new("filesystem used", "%", 100.0 * used as f64 / size as f64));
        }
    }
    figures
}

/// Figures on the space of a pool.
fn of_pool(pool: &PoolRoom) -> Vec<AgeFigure> {
    let fragmentation =
        pool.fragmentation_percent.map(|percent| AgeFigure::new("pool fragmentation", "%", percent as f64));
    let others = [
        AgeFigure::new("pool capacity", "%", pool.capacity_percent as f64),
        AgeFigure::new("pool allocated", "GiB", pool.allocated_bytes as f64 / GIB),
        AgeFigure::new("pool free", "GiB", pool.free_bytes as f64 / GIB),
    ];
    fragmentation.into_iter().chain(others).collect()
}

/// Space held only by snapshots: in use beyond the remaining files. Snapshots of a volume do not show it: a thick one
/// counts in full, a thin one with deleted blocks that were not discarded.
fn held(age: &AgeRecord) -> Option<AgeFigure> {
    let (snapshots, fill) = (age.snapshots.filter(|snapshots| snapshots.of_filesystem)?, age.fill?);
    let grown = snapshots.used_after_bytes.saturating_sub(snapshots.used_before_bytes);
    Some(AgeFigure::new("held by snapshots", "GiB", grown.saturating_sub(fill.left_bytes) as f64 / GIB))
}

/// Bytes that each commit writes to all devices of the stack, WAL and data.
fn written(record: &TrialRecord, seconds: &Seconds) -> Option<AgeFigure> {
    if record.server.is_none() || record.operation.writes != Writes::Always {
        return None;
    }
    let mut strata = StrataSums::default();
    strata.add(record, seconds, &Operations::of(seconds));
    let bytes = strata.at_stack_devices(columns::DEVICE_WRITE_BYTES)?;
    Some(AgeFigure::new("device written", &format!("KiB/{COMMIT}"), bytes / 1024.0))
}

/// Mean read size and mean request time of the top device below the data.
fn of_devices(record: &TrialRecord, seconds: &Seconds) -> Vec<AgeFigure> {
    let Some(stack) = &record.stack else { return Vec::new() };
    let Some(top) = stack.devices_below(stack.data.as_ref()).first().map(Below::name) else {
        return Vec::new();
    };
    let columns = stack.device_columns();
    let Some((_, prefix, _)) = columns.iter().find(|(name, _, _)| *name == top) else { return Vec::new() };
    let work = DeviceFlows::of(seconds, prefix, &Operations::default());
    let bytes = work.flow(columns::DEVICE_READ_BYTES).per_grown(&work.flow(columns::DEVICE_READS));
    let mut figures = Vec::from_iter(bytes.map(|bytes| AgeFigure::new("mean device read", "KiB", bytes / 1024.0)));
    let counters = [columns::DEVICE_READS, columns::DEVICE_WRITES, columns::DEVICE_READ_MS, columns::DEVICE_WRITE_MS];
    if let [Some(reads), Some(writes), Some(read_ms), Some(write_ms)] = counters.map(|it| work.flow(it).grown())
        && reads + writes > 0.0
    {
        figures.push(AgeFigure::new("device response time", "ms", (read_ms + write_ms) / (reads + writes)));
    }
    figures
}

fn cpu_busy(seconds: &Seconds) -> Option<AgeFigure> {
    let (mut all, mut idle) = (0.0, 0.0);
    for state in columns::CPU_TIMES {
        let grown = growth(seconds.counts(&state)?)? as f64;
        all += grown;
        idle += if [columns::CPU_IDLE_NS, columns::CPU_IOWAIT_NS].contains(&state) { grown } else { 0.0 };
    }
    (all > 0.0).then(|| AgeFigure::new("CPU busy", "%", 100.0 * (all - idle) / all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::stories::story::{Act, Story, disk};
    use crate::analyse::stories::windows::three_cycles;
    use crate::record::age::{FileWork, SnapshotWork};
    use crate::record::facts::DeviceFacts;

    fn figures(act: &Act) -> Vec<(String, String, f64)> {
        let trial = Story::of(1, None).with(act).trials.remove(0);
        let found = of_trial(&trial.record, &trial.seconds, &trial.latencies);
        found.into_iter().map(|figure| (figure.name, figure.unit, figure.trial.mean)).collect()
    }

    fn aged(record: &mut TrialRecord) {
        three_cycles(record);
        record.age = Some(AgeRecord::default());
        for checkpoint in &mut record.window.as_mut().unwrap().checkpoints {
            let done = checkpoint.done.as_mut().unwrap();
            // 16 kB pages: 1.024 GB in 2 s.
            (done.buffers, done.sync_us) = (62_500, 2_000_000);
        }
        let settings = &mut record.server.as_mut().unwrap().key_settings;
        settings.insert("block_size".to_owned(), "16384".to_owned());
    }

    #[test]
    fn a_fixed_rate_adds_tail_latency_and_the_slowest_operation() {
        let act = Act { rate: Some((200.0, 100_000)), ..Act::on("ext4").touched(aged) };
        let found = figures(&act);
        let of = |wanted: &str| found.iter().find(|(name, _, _)| name == wanted).unwrap_or_else(|| panic!("{found:?}"));
        assert!((of("checkpoint sync").2 - 2.0 / 1.024).abs() < 1e-9, "{found:?}");
        assert!(of("slowest operation").2 >= of("p99").2 && of("p99").2 >= 1.8, "{found:?}");
        let written = of("device written");
        // 1.02 writes of 16.4 KiB per commit.
        assert_eq!(written.1, "KiB/commit");
        assert!((written.2 - 1.02 * 16.4).abs() < 0.1, "{found:?}");
    }

    /// Data on two images, WAL in a folder given by the plan.
    fn with_wal_elsewhere() -> Act {
        let image = |name: &str| DeviceFacts { backing_file: Some("/images/1".to_owned()), ..disk(0, name) };
        let mut act = Act::on("ext4").touched(aged);
        act.stack.devices = vec![image("loop0"), image("loop1")];
        let mut wal = Act::on("xfs").stack;
        (wal.layer, wal.devices) = ("directory", vec![disk(0, "vdc")]);
        (act.wal_stack, act.wal_flushes) = (Some(wal), vec![Some(1.0)]);
        act
    }

    #[test]
    fn device_writes_are_summed_over_data_and_wal_devices() {
        let found = figures(&with_wal_elsewhere());
        let written = found.iter().find(|(name, _, _)| name == "device written").unwrap();
        // 1.02 writes of 16.4 KiB per commit at either end.
        assert!((written.2 - 2.0 * 1.02 * 16.4).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn device_writes_are_unknown_without_counters_or_after_their_reset() {
        let blind = Act { wal_flushes: Vec::new(), ..with_wal_elsewhere() };
        assert!(!figures(&blind).iter().any(|(name, _, _)| name == "device written"));
        let trial = Story::of(1, None).with(&blind).trials.remove(0);
        let columns = trial.record.stack.as_ref().unwrap().device_columns();
        let prefix = columns.iter().find(|(_, _, facts)| facts.name == "vdc").unwrap().1.clone();
        let rows = trial.seconds.rows();
        let written = |last: u64| {
            let mut seconds = trial.seconds.clone();
            for column in ["writes", "write_bytes"] {
                let mut values: Vec<u64> = (0..rows as u64).map(|row| row << 20).collect();
                values[rows - 1] = last;
                seconds.push_counts(format!("{prefix}_{column}"), values, &vec![true; rows]);
            }
            super::written(&trial.record, &seconds).is_some()
        };
        assert_eq!((written(u64::MAX >> 8), written(0)), (true, false));
    }

    #[test]
    fn closed_loop_clients_report_no_stalls() {
        let names = |act: &Act| figures(act).into_iter().map(|(name, _, _)| name).collect::<Vec<_>>();
        let stalls =
            |act: &Act| names(act).iter().filter(|name| ["p99", "slowest operation"].contains(&name.as_str())).count();
        assert_eq!(stalls(&Act::on("ext4").touched(aged)), 0);
        let sampled = Act::on("ext4").touched(|record| {
            aged(record);
            record.operation.log_sample = Some(0.1);
        });
        assert_eq!(stalls(&Act { rate: Some((200.0, 100_000)), ..sampled }), 1);
        let reads = Act { writes: Writes::Never, ..Act::on("ext4").touched(aged) };
        assert!(!names(&reads).contains(&"device written".to_owned()));
        assert_eq!(names(&Act::on("ext4")), Vec::<String>::new(), "a stack that does not age");
    }

    #[test]
    fn small_relations_and_files_beside_the_cluster_do_not_count() {
        let relation = |bytes, extents| RelationLayout { bytes, extents: Some(extents), ..RelationLayout::default() };
        let layout = Layout {
            relations: vec![relation(512 << 20, 100), relation(8192, 1)],
            size_bytes: Some(4 << 30),
            free_bytes: Some(1 << 30),
            cluster_bytes: 1 << 30,
            ..Layout::default()
        };
        let fill = Some(FileWork { left_bytes: 1 << 30, ..FileWork::default() });
        let figures = of_layout(&AgeRecord { fill, ..AgeRecord::default() }, &layout);
        let values: Vec<(&str, f64)> = figures.iter().map(|figure| (figure.name.as_str(), figure.trial.mean)).collect();
        let wanted = [("extents per GiB", 200.0), ("space used / logical size", 2.0), ("filesystem used", 75.0)];
        assert_eq!(values, wanted);
    }

    #[test]
    fn what_is_stored_compressed_is_told_of_filesystems_that_can() {
        let on = |fstype: &str, options: &[&str], touch: fn(&mut TrialRecord)| {
            let mut record = Story::of(1, None).with(&Act::on(fstype)).trials.remove(0).record;
            let bases = record.stack.as_mut().unwrap().nodes.iter_mut().flat_map(|node| &mut node.bases);
            let mount = bases.filter_map(|base| base.mount.as_mut()).next().unwrap();
            mount.super_options = options.iter().map(|option| (*option).to_owned()).collect();
            record.server.as_mut().unwrap().version_num = 180_001;
            touch(&mut record);
            let relation = RelationLayout {
                bytes: 512 << 20,
                extents: Some(9),
                encoded_bytes: 128 << 20,
                ..RelationLayout::default()
            };
            let layout = Some(Layout { relations: vec![relation], ..Layout::default() });
            record.age = Some(AgeRecord { layout, ..AgeRecord::default() });
            (compressed(&record).map(|figure| figure.trial.mean), asked_to_compress(&record))
        };
        let of = |fstype: &str, options: &[&str]| on(fstype, options, |_| ());
        assert_eq!(of("btrfs", &["rw", "compress-force=zstd:3"]), (Some(25.0), Some(25.0)));
        assert_eq!(of("btrfs", &["rw"]), (Some(25.0), None));
        // Not reported if PostgreSQL or the filesystem has another reason.
        let otherwise: [fn(&mut TrialRecord); 3] = [
            |record| record.server.as_mut().unwrap().version_num = 150_012,
            |record| {
                let settings = &mut record.case.postgres.as_mut().unwrap().settings;
                settings.insert("file_extend_method".to_owned(), "write_zeros".to_owned());
            },
            |record| {
                let details = &mut record.stack.as_mut().unwrap().nodes[0].details;
                details.insert("nocow".to_owned(), "on, for new files".to_owned());
            },
        ];
        for touch in otherwise {
            assert_eq!(on("btrfs", &["compress-force=zstd:3"], touch), (Some(25.0), None));
        }
        assert_eq!((of("zfs", &[]), of("xfs", &[])), ((Some(25.0), None), (None, None)));
    }

    #[test]
    fn a_pool_tells_its_room_and_snapshots_what_they_hold() {
        let pool = PoolRoom {
            size_bytes: 10 << 30,
            allocated_bytes: 9 << 30,
            free_bytes: 1 << 30,
            fragmentation_percent: Some(61),
            capacity_percent: 90,
        };
        let snapshots =
            SnapshotWork { made: 5, used_before_bytes: 1 << 30, used_after_bytes: 9 << 30, of_filesystem: true };
        let fill = FileWork { left_bytes: 6 << 30, ..FileWork::default() };
        let age = AgeRecord {
            pool: Some(pool),
            fill: Some(fill),
            snapshots: Some(snapshots),
            layout: Some(Layout { size_bytes: Some(8 << 30), free_bytes: Some(1 << 30), ..Layout::default() }),
            ..AgeRecord::default()
        };
        let of_layout = age.layout.iter().flat_map(|layout| of_layout(&age, layout));
        let figures: Vec<AgeFigure> = of_layout.chain(of_pool(&pool)).chain(held(&age)).collect();
        let values: Vec<(&str, f64)> = figures.iter().map(|figure| (figure.name.as_str(), figure.trial.mean)).collect();
        let wanted = [
            ("pool fragmentation", 61.0),
            ("pool capacity", 90.0),
            ("pool allocated", 9.0),
            ("pool free", 1.0),
            ("held by snapshots", 2.0),
        ];
        assert_eq!(values, wanted);
        assert_eq!(of_pool(&PoolRoom { fragmentation_percent: None, ..pool }).len(), 3);
        assert!(held(&AgeRecord::default()).is_none());
    }

    #[test]
    fn snapshots_below_the_filesystem_do_not_report_what_they_hold() {
        let of = |of_filesystem| {
            let snapshots =
                SnapshotWork { made: 3, used_after_bytes: 9 << 30, of_filesystem, ..SnapshotWork::default() };
            let fill = FileWork { left_bytes: 6 << 30, ..FileWork::default() };
            held(&AgeRecord { snapshots: Some(snapshots), fill: Some(fill), ..AgeRecord::default() }).is_some()
        };
        assert_eq!((of(true), of(false)), (true, false));
    }
}

//! Cost of the file below an image: writes and bytes at the device that holds it in excess of those at the loop device.
//!
//! The filesystem below allocates blocks, converts extents and commits its own journal, none of which happens on a real
//! disk. Writes of other programs to the device below are included.

use crate::analyse::findings::{Estimate, ImageCost};
use crate::analyse::trial::counters::Operations;
use crate::analyse::trial::device_work::DeviceFlows;
use crate::analyse::trial::input::Seconds;
use crate::record::built::StackFacts;
use crate::record::columns::{self, DeviceColumn};
use crate::record::stack::BaseName;
use crate::record::trial::TrialRecord;
use crate::stats::interval;
use crate::units::{Bytes, significant};

/// Excess writes below the images in each trial of a case, per operation.
#[derive(Debug, Clone, Default)]
pub struct ImageCostSums {
    writes: Vec<f64>,
    bytes: Vec<f64>,
    /// Flushes at the device below per flush at the loop devices.
    flushes: Vec<f64>,
}

/// Up to this many flushes at the device below per flush at the loop device, the image's flushes are simply passed on.
const PASSED_ON: f64 = 1.05;
/// Each flush of an image makes a journalling filesystem commit the file's timestamps, at most once per timer tick,
/// with a flush of its own (ext4 and XFS on Linux 6.18: `cargo bench --bench image_cost`). Any beyond this number come
/// from other programs.
const PASSED_ON_WITH_JOURNAL: f64 = 2.05;

impl ImageCostSums {
    pub fn add(&mut self, record: &TrialRecord, seconds: &Seconds, operations: &Operations) {
        let Some(stack) = &record.stack else { return };
        let Some((images, below)) = levels(stack) else { return };
        let columns = stack.device_columns();
        let [below, images] = [below, images].map(|names| {
            let works = names.iter().map(|name| {
                let (_, prefix, _) = columns.iter().find(|(known, _, _)| known == name)?;
                Some(DeviceFlows::of(seconds, prefix, operations))
            });
            works.collect::<Option<Vec<_>>>()
        });
        let Some((below, images)) = below.zip(images) else { return };
        let [writes, bytes, flushes] = [columns::DEVICE_WRITES, columns::DEVICE_WRITE_BYTES, columns::DEVICE_FLUSHES]
            .map(|column| sum(&below, column).zip(sum(&images, column)));
        if let Some((writes, bytes)) = writes.zip(bytes) {
            self.writes.push(writes.0 - writes.1);
            self.bytes.push(bytes.0 - bytes.1);
            let flushes = flushes.filter(|(below, images)| *below > 0.0 && *images > 0.0);
            self.flushes.extend(flushes.map(|(below, images)| below / images));
        }
    }

    /// Result, with `noun` as the name of an operation; `None` without an image whose device below was counted.
    pub fn finding(&self, noun: &str) -> Option<ImageCost> {
        let (writes, bytes) = (estimate(&self.writes)?, estimate(&self.bytes)?);
        let shown = [
            (&writes, format!("{} writes", significant(writes.value))),
            (&bytes, Bytes(bytes.value.round() as u64).to_string()),
        ];
        let seen = shown.into_iter().filter(|(figure, _)| figure.low.is_some_and(|low| low > 0.0));
        let parts = seen.map(|(_, words)| words).collect::<Vec<_>>().join(" and ");
        let counted = self.flushes.len() == self.writes.len();
        let most = self.flushes.iter().copied().fold(0.0, f64::max);
        let took = format!("the disk below the image took {parts} more per {noun}");
        let from_journal = "from the journal of the filesystem there (the file's timestamps) or from other programs";
        let added = match counted {
            false => {
                format!("{took}; its flushes are not counted, so the file and other programs cannot be told apart")
            }
            true if most <= PASSED_ON => format!("the file below the image added {parts} per {noun}"),
            true if most <= PASSED_ON_WITH_JOURNAL => format!("{took}, {from_journal}"),
            true => format!("{took}, part of it written by other programs"),
        };
        Some(ImageCost { sentence: (!parts.is_empty()).then_some(added), writes, bytes })
    }
}

fn sum(devices: &[DeviceFlows], column: DeviceColumn) -> Option<f64> {
    devices.iter().map(|device| device.flow(column).per_operation()).sum()
}

fn estimate(values: &[f64]) -> Option<Estimate> {
    let (value, half) = interval::mean_of_differences(values)?;
    Some(Estimate::of(value, half.map(|half| (value - half, value + half)), values.len()))
}

/// Loop devices that the stack itself made on files, and the devices that hold these files. A loop device further down
/// existed before the run: it is the disk below. `None` if there are none, if one has no visible device below it or is
/// on another image of the stack, and if the device below also serves the stack in another way, since its writes cannot
/// then be attributed.
fn levels(stack: &StackFacts) -> Option<(Vec<BaseName>, Vec<BaseName>)> {
    let devices = stack.devices();
    let images = devices.iter().filter(|(name, device)| {
        device.backing_file.is_some() && stack.node(name.node()).is_some_and(|node| node.layer.is_some())
    });
    let images: Vec<BaseName> = images.map(|(name, _)| name.clone()).collect();
    let mut below: Vec<BaseName> = Vec::new();
    for node in stack.nodes.iter().filter(|node| images.iter().any(|image| image.node() == node.name)) {
        let on = node.inputs.iter().map(|input| &input.from);
        let on: Vec<&BaseName> = on.filter(|from| devices.iter().any(|(known, _)| known == *from)).collect();
        if on.is_empty() || on.iter().any(|from| images.contains(from)) {
            return None;
        }
        below.extend(on.into_iter().filter(|from| !below.contains(from)).cloned().collect::<Vec<_>>());
    }
    // The disk below the file of a pre-existing loop device does not use that device.
    let others =
        stack.nodes.iter().filter(|node| node.layer.is_some() && images.iter().all(|image| image.node() != node.name));
    let shared = others.flat_map(|node| &node.inputs).any(|input| below.contains(&input.from));
    (!images.is_empty() && !shared).then_some((images, below))
}

#[cfg(test)]
mod tests {
    use crate::analyse::stories::story::{Act, Story, disk};

    /// ext4 on an image on vda; vda receives `more` times the writes of the loop device.
    fn on_image(more: f64) -> Act {
        let mut act = Act::on("ext4");
        let mut image = disk(0, "loop3");
        image.backing_file = Some("/var/lib/pgstrata/pgstrata-1.img".to_owned());
        act.stack.devices = vec![image, disk(1, "vda")];
        act.flushes = vec![Some(1.0), Some(1.0)];
        act.device_writes = vec![1.0, more];
        act
    }

    #[test]
    fn the_image_file_overhead_is_a_figure_and_a_sentence() {
        let found = Story::of(3, None).with(&on_image(1.1)).findings();
        let strata = found.cases[0].strata.as_ref().unwrap();
        let image = strata.image.as_ref().unwrap();
        assert!((image.writes.value - 0.102).abs() < 0.001, "{image:?}");
        assert!((image.bytes.value - 0.102 * 16.4 * 1024.0).abs() < 5.0, "{image:?}");
        assert_eq!(image.writes.trials, 3);
        let said = "; the file below the image added 0.102 writes and 1.67 KiB per commit";
        assert!(strata.sentence.ends_with(said), "{}", strata.sentence);
    }

    #[test]
    fn flushes_possibly_from_the_lower_journal_are_not_called_foreign() {
        for flushes in [1.2, 2.0] {
            let mut act = on_image(1.5);
            act.flushes = vec![Some(1.0), Some(flushes)];
            let found = Story::of(3, None).with(&act).findings();
            let said = &found.cases[0].strata.as_ref().unwrap().sentence;
            let cause = "from the journal of the filesystem there (the file's timestamps) or from other programs";
            assert!(said.ends_with(cause), "{said}");
        }
    }

    #[test]
    fn where_flushes_below_are_not_counted_nobody_is_blamed() {
        let mut act = on_image(1.5);
        act.flushes = vec![Some(1.0), Some(0.0)];
        let found = Story::of(3, None).with(&act).findings();
        let said = &found.cases[0].strata.as_ref().unwrap().sentence;
        assert!(said.ends_with("not counted, so the file and other programs cannot be told apart"), "{said}");
    }

    #[test]
    fn disk_writes_of_others_are_not_attributed_to_the_image() {
        let mut act = on_image(3.0);
        act.flushes = vec![Some(1.0), Some(2.2)];
        let found = Story::of(3, None).with(&act).findings();
        let said = &found.cases[0].strata.as_ref().unwrap().sentence;
        assert!(
            said.ends_with(
                "; the disk below the image took 2.04 writes and 33.5 KiB more per commit, part of it written by other \
                 programs"
            ),
            "{said}"
        );
    }

    #[test]
    fn an_image_without_overhead_has_a_figure_but_no_sentence() {
        let found = Story::of(3, None).with(&on_image(1.0)).findings();
        let strata = found.cases[0].strata.as_ref().unwrap();
        assert!(strata.image.as_ref().unwrap().writes.value.abs() < 1e-3);
        assert!(!strata.sentence.contains("below the image"), "{}", strata.sentence);
    }

    #[test]
    fn one_trial_alone_makes_no_sentence() {
        let found = Story::of(1, None).with(&on_image(1.5)).findings();
        let strata = found.cases[0].strata.as_ref().unwrap();
        assert_eq!(strata.image.as_ref().unwrap().writes.low, None);
        assert!(!strata.sentence.contains("below the image"), "{}", strata.sentence);
    }

    #[test]
    fn a_preexisting_loop_device_is_the_disk_below() {
        let mut act = on_image(1.1);
        act.stack.devices[1].backing_file = Some("/srv/disk.img".to_owned());
        act.stack.devices.push(disk(2, "sdb"));
        act.flushes.push(Some(1.0));
        act.device_writes.push(7.0);
        let found = Story::of(3, None).with(&act).findings();
        let image = found.cases[0].strata.as_ref().unwrap().image.as_ref().unwrap();
        assert!((image.writes.value - 0.102).abs() < 0.001, "{image:?}");
    }

    #[test]
    fn image_overhead_needs_a_disk_without_other_uses() {
        let mut shared = on_image(1.1);
        shared.wal_stack = Some(Act::on("ext4").stack);
        shared.wal_flushes = vec![Some(1.0)];
        for act in [Act::on("ext4"), shared] {
            let found = Story::of(3, None).with(&act).findings();
            assert!(found.cases[0].strata.as_ref().unwrap().image.is_none());
        }
    }
}

//! State of the drives: rates of rounds, the steady-state rule, and drives that were not prepared.

use crate::analyse::findings::remark::{Remark, Weight};
use crate::analyse::findings::{DriveFinding, DriveRoundFinding};
use crate::record::drive::{DriveRecord, DriveRound, Purge, SNIA_ROUND_US};
use crate::record::stack::{BaseName, StackSpec};
use crate::record::trial::TrialRecord;
use crate::stats::steady_state;
use crate::units::{Micros, grouped};
use std::collections::BTreeSet;

const DISK: &str = "disk";

/// Drives below the trials of a case.
#[derive(Debug, Clone, Default)]
pub struct DriveSums {
    pub(crate) prepared: Vec<DriveRecord>,
    /// Physical SSDs that were not brought to their steady state.
    bare: BTreeSet<String>,
}

impl DriveSums {
    pub fn add(&mut self, record: &TrialRecord) {
        let new: Vec<_> = record.drives.iter().filter(|drive| !self.prepared.contains(drive)).cloned().collect();
        self.prepared.extend(new);
        let bare = bare_disks(&record.case.stack);
        for node in record.stack.iter().flat_map(|stack| &stack.nodes).filter(|node| bare.contains(&node.name)) {
            let device = node.bases.iter().find_map(|base| base.device.as_ref());
            if let Some(ssd) = device.filter(|device| device.rotational == Some(false)) {
                self.bare.insert(ssd.model.clone().unwrap_or_else(|| ssd.name.clone()));
            }
        }
    }

    pub fn remarks(&self) -> Vec<Remark> {
        let bare = self.bare.iter().map(|name| {
            let words = format!("drive not preconditioned ({name}): an SSD may slow down (precondition = true)");
            Remark::plain(Weight::Short, words)
        });
        let unsteady = self.prepared.iter().map(finding).filter(|found| found.steady_after.is_none()).map(|found| {
            let words = format!("drive not in its steady state: {}", found.drive);
            Remark::plain(Weight::Unsure, words)
        });
        bare.chain(unsteady).collect()
    }
}

/// Disks below one end of the stack (data, WAL, tablespaces) with no layer above them brought to its steady state.
fn bare_disks(spec: &StackSpec) -> BTreeSet<String> {
    let mut bare = BTreeSet::new();
    let mut left: Vec<&str> =
        std::iter::once(&spec.data).chain(&spec.wal).chain(spec.tablespaces.values()).map(BaseName::node).collect();
    while let Some(name) = left.pop() {
        let Some(node) = spec.node(name).filter(|node| node.options.boolean("precondition") != Some(true)) else {
            continue;
        };
        if node.layer == DISK {
            bare.insert(node.name.clone());
        }
        left.extend(node.inputs.iter().map(|input| input.from.node()));
    }
    bare
}

pub(crate) fn finding(drive: &DriveRecord) -> DriveFinding {
    let rates: Vec<f64> = drive.rounds.iter().map(DriveRound::rate).collect();
    let mut until_us = 0;
    let rounds = (1..=rates.len()).map(|number| {
        until_us += drive.rounds[number - 1].elapsed_us;
        let window = steady_state::last_window(&rates[..number]);
        let (range, excursion) = (window.map(|window| window.range), window.map(|window| window.excursion));
        DriveRoundFinding { until_s: Micros(until_us).seconds(), rate: rates[number - 1], range, excursion }
    });
    let rounds = rounds.collect();
    let steady_after = (1..=rates.len()).find(|number| steady_state::is_reached(&rates[..*number]));
    DriveFinding {
        drive: drive.key.clone(),
        model: drive.model.clone(),
        bytes: drive.bytes,
        purge: match &drive.purge {
            Purge::SecureDiscard => "secure discard".to_owned(),
            Purge::Discard => "discard".to_owned(),
            Purge::None { why } => format!("none: {why}"),
        },
        fill_bytes: drive.fill.written_bytes,
        fill_bytes_per_s: drive.fill.written_bytes as f64 * 1e6 / drive.fill.elapsed_us.max(1) as f64,
        block_bytes: drive.block_bytes,
        depth: drive.depth,
        rounds,
        steady_after: steady_after.map(|number| number as u64),
        sentence: sentence(drive, &rates, steady_after),
    }
}

fn sentence(drive: &DriveRecord, rates: &[f64], steady_after: Option<usize>) -> String {
    let number = steady_after.unwrap_or(rates.len());
    let window = steady_state::last_window(&rates[..number]).map(|window| {
        let rate = grouped(window.mean.round() as u64);
        // Avoids printing -0 for a slope just below 0.
        let slope = (window.excursion * 100.0).round() + 0.0;
        format!(": {rate} writes/s, range {:.0} %, slope {slope:+.0} %", window.range * 100.0)
    });
    let state = if steady_after.is_some() { "steady after round" } else { "not steady after round" };
    let mut text = format!("{state} {number}{}", window.unwrap_or_default());
    if drive.round_us != SNIA_ROUND_US {
        text.push_str(&format!("; rounds of {}, not SNIA's {}", Micros(drive.round_us), Micros(SNIA_ROUND_US)));
    }
    text.extend(drive.is_image.then_some("; of the image file, not of the drive that holds it"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::stories::columns;
    use crate::record::built::{BaseFacts, NodeFacts};
    use crate::record::drive::Fill;
    use crate::record::facts::DeviceFacts;
    use crate::record::options::{OptionValue, Options};

    fn drive(operations: &[u64], round_us: u64) -> DriveRecord {
        let round = |operations: &u64| DriveRound {
            began_us: 0,
            elapsed_us: round_us,
            operations: *operations,
            written_bytes: operations * 4096,
        };
        DriveRecord {
            key: "/dev/x, serial S".to_owned(),
            node: "d".to_owned(),
            device: "/dev/x".to_owned(),
            model: None,
            is_image: false,
            bytes: 1 << 30,
            purge: Purge::Discard,
            fill: Fill { times: 2, block_bytes: 128 << 10, written_bytes: 2 << 30, elapsed_us: 2_000_000 },
            block_bytes: 4096,
            depth: 32,
            round_us,
            most_rounds: 25,
            rounds: operations.iter().map(round).collect(),
            began_us: 0,
            ended_us: 0,
        }
    }

    #[test]
    fn a_settled_drive_is_reported_with_round_rate_and_slope() {
        let minute = |rates: &[u64]| drive(&rates.iter().map(|rate| rate * 60).collect::<Vec<_>>(), 60_000_000);
        let settles = finding(&minute(&[90_000, 60_000, 42_000, 41_000, 40_000, 41_000, 42_000]));
        assert_eq!(settles.steady_after, Some(7));
        assert_eq!(settles.sentence, "steady after round 7: 41 200 writes/s, range 5 %, slope +0 %");
        assert_eq!((settles.rounds[3].range, settles.rounds[6].until_s), (None, 420.0));
        assert_eq!(settles.fill_bytes_per_s, f64::from(1u32 << 30));
        let falls = finding(&minute(&[100, 90, 80, 70, 60]));
        assert_eq!(falls.steady_after, None);
        assert_eq!(falls.sentence, "not steady after round 5: 80 writes/s, range 50 %, slope -50 %");
    }

    #[test]
    fn short_rounds_and_images_are_told() {
        let found = finding(&DriveRecord { is_image: true, ..drive(&[100; 5], 100_000) });
        assert_eq!(
            found.sentence,
            "steady after round 5: 1000 writes/s, range 0 %, slope +0 %; rounds of 100 ms, not SNIA's 60 s; of the image \
             file, not of the drive that holds it"
        );
    }

    /// Remarks on a trial whose data are on the disk `/dev/x` or a part of it.
    fn remarks(rotational: bool, layers: &[(&str, bool)], wal: Option<&str>) -> Vec<String> {
        let mut record = columns::run(61).1;
        let device =
            DeviceFacts { model: Some("Fast".to_owned()), rotational: Some(rotational), ..DeviceFacts::default() };
        let base = BaseFacts { device: Some(device), ..BaseFacts::default() };
        let layers = layers.iter().map(|(layer, is_asked)| {
            let mut options = Options::default();
            options.set("precondition", OptionValue::Boolean(*is_asked));
            (*layer, options)
        });
        let mut spec = StackSpec::linear("s", layers.collect());
        spec.wal = wal.map(|node| BaseName(node.to_owned()));
        let (name, layer) = (spec.nodes[0].name.clone(), DISK.to_owned());
        let facts = NodeFacts { name, layer: Some(layer), bases: vec![base], ..NodeFacts::default() };
        record.stack.as_mut().unwrap().nodes.push(facts);
        record.case.stack = spec;
        let mut sums = DriveSums::default();
        sums.add(&record);
        sums.add(&record);
        sums.remarks().iter().map(Remark::text).collect()
    }

    #[test]
    fn only_an_ssd_without_preconditioning_is_remarked_and_only_once() {
        let bare = remarks(false, &[(DISK, false), ("xfs", false)], None);
        assert!(bare.len() == 1 && bare[0].starts_with("drive not preconditioned (Fast): "), "{bare:?}");
        let none = Vec::<String>::new();
        assert_eq!(remarks(false, &[(DISK, true), ("xfs", false)], None), none);
        assert_eq!(remarks(false, &[(DISK, false), ("linear", true), ("xfs", false)], None), none, "that part was");
        assert_eq!(remarks(true, &[(DISK, false), ("xfs", false)], None), none, "it rotates");
    }

    #[test]
    fn partial_preconditioning_is_remarked_where_the_wal_lies_elsewhere() {
        let found = remarks(false, &[(DISK, false), ("linear", true), ("xfs", false)], Some(DISK));
        assert!(found.len() == 1 && found[0].starts_with("drive not preconditioned (Fast): "), "{found:?}");
    }

    #[test]
    fn a_slope_that_rounds_to_nothing_has_no_minus() {
        let falls: Vec<u64> = (0..5).map(|round| (10_000 - round) * 60).collect();
        let found = finding(&drive(&falls, 60_000_000)).sentence;
        assert!(found.ends_with("slope +0 %"), "{found}");
    }

    #[test]
    fn a_drive_that_did_not_get_steady_is_remarked() {
        let sums =
            DriveSums { prepared: vec![drive(&[1000, 100, 1000, 100, 1000], 60_000_000)], ..DriveSums::default() };
        let found: Vec<String> = sums.remarks().iter().map(Remark::text).collect();
        assert_eq!(found, ["drive not in its steady state: /dev/x, serial S"]);
    }
}

//! Bringing drives to their steady state, for the run as a whole: the cost, the results of earlier sessions, and
//! contradictions in a plan.

use crate::ageing::drive::FILLS;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::plan::forecast::DriveLine;
use crate::provision::drives::{self, AskedOfOne, WantedDrive};
use crate::record::case::CaseSpec;
use crate::record::drive::DriveRecord;
use crate::record::event::{Event, Stamped};
use crate::record::stack::StackSpec;
use crate::stats::steady_state::{MOST_ROUNDS, WINDOW};
use crate::units::{Bytes, Micros};
use std::collections::{BTreeMap, BTreeSet};

/// Sequential write speed of a drive, conservatively: a SATA SSD. Only for the estimate.
const FILL_BYTES_PER_S: u64 = 450_000_000;

/// Each drive that these stacks want in its steady state, once.
fn of_stacks<'s>(stacks: impl Iterator<Item = &'s StackSpec>) -> Result<Vec<WantedDrive>> {
    let all: Vec<Vec<WantedDrive>> = stacks.map(drives::of_stack).collect::<Result<_>>()?;
    let mut keys = BTreeSet::new();
    Ok(all.into_iter().flatten().filter(|drive| keys.insert(drive.key.clone())).collect())
}

/// Cost of preparing the drives of some stacks.
///
/// # Errors
/// When one of them does not outlive a trial.
pub fn lines<'s>(host: &Host, stacks: impl Iterator<Item = &'s StackSpec>) -> Result<Vec<DriveLine>> {
    let lines = of_stacks(stacks)?.into_iter().map(|drive| {
        let bytes = drive.bytes(host);
        let fill_us = bytes.map(|bytes| (bytes.0 as f64 * f64::from(FILLS) / FILL_BYTES_PER_S as f64 * 1e6) as u64);
        let Micros(round_us) = drive.round;
        DriveLine {
            drive: drive.key,
            is_image: drive.is_image,
            written_bytes: bytes.map(|bytes| Bytes(bytes.0.saturating_mul(u64::from(FILLS)))),
            bytes_per_s: FILL_BYTES_PER_S,
            fill_us,
            least_rounds: WINDOW,
            most_rounds: MOST_ROUNDS,
            round_us,
        }
    });
    Ok(lines.collect())
}

/// Time to prepare the drives of some stacks at the assumed speed, except those already prepared, microseconds.
///
/// # Errors
/// As [`lines`].
pub fn expected_us<'s>(host: &Host, stacks: impl Iterator<Item = &'s StackSpec>, done: &[DriveRecord]) -> Result<u64> {
    let left = lines(host, stacks)?.into_iter().filter(|line| !done.iter().any(|known| known.key == line.drive));
    Ok(left.map(|line| line.most_us()).fold(0, u64::saturating_add))
}

/// Rejects drives that some cases want in their steady state and others as they are, or in other parts: the result
/// would depend on which case comes first.
///
/// # Errors
/// With the drive and two such cases.
pub(super) fn refuse_mixed(host: &Host, cases: &[CaseSpec]) -> Result<()> {
    let mut firsts: BTreeMap<String, (AskedOfOne, &str)> = BTreeMap::new();
    for case in cases {
        for (drive, asked) in drives::asked_of_each(host, &case.stack) {
            let (first, before) = firsts.entry(drive.clone()).or_insert_with(|| (asked.clone(), &case.id));
            if *first != asked {
                let (first, asked) = (in_words(first), in_words(&asked));
                let message =
                    format!("{drive} is to be preconditioned {first} in {before}, and {asked} in {}", case.id);
                return Err(Error::user(message).hint(
                    "a drive has one state in a run: name it, its parts and `precondition` in the same way in all cases on it",
                ));
            }
        }
    }
    Ok(())
}

fn in_words(asked: &AskedOfOne) -> String {
    if asked.is_empty() {
        return "not at all".to_owned();
    }
    asked.iter().map(|(key, round)| format!("as {key} in rounds of {round}")).collect::<Vec<_>>().join(" and ")
}

/// Preconditioning by earlier sessions, the latest per drive. Images are gone with their session.
pub fn earlier(events: &[Stamped]) -> Vec<DriveRecord> {
    let mut done: Vec<DriveRecord> = Vec::new();
    for event in events {
        if let Event::DrivePreconditioned { drive, .. } = &event.what
            && !drive.is_image
        {
            done.retain(|known| known.key != drive.key);
            done.push((**drive).clone());
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::case::TrialKey;
    use crate::record::drive::{Fill, Purge};
    use crate::record::options::{OptionValue, Options};

    fn drive(key: &str, is_image: bool) -> DriveRecord {
        DriveRecord {
            key: key.to_owned(),
            node: "d".to_owned(),
            device: "/dev/x".to_owned(),
            model: None,
            is_image,
            bytes: 1 << 30,
            purge: Purge::Discard,
            fill: Fill::default(),
            block_bytes: 4096,
            depth: 32,
            round_us: 1,
            most_rounds: 25,
            rounds: Vec::new(),
            began_us: 0,
            ended_us: 0,
        }
    }

    fn disk(options: &[(&str, OptionValue)]) -> StackSpec {
        let mut all: Options = Options::default();
        all.set("disk", OptionValue::Text("/dev/no-such-disk".to_owned()));
        all.set("serial", OptionValue::Text("S5GX".to_owned()));
        options.iter().for_each(|(key, value)| all.set(key, value.clone()));
        StackSpec::linear("d", vec![("disk", all), ("ext4", Options::default())])
    }

    const YES: OptionValue = OptionValue::Boolean(true);

    #[test]
    fn a_resumed_run_knows_its_preconditioned_disks_but_no_images() {
        let event = |at_us, is_image| {
            let trial = TrialKey { case: "c".into(), trial: 1 };
            let what =
                Event::DrivePreconditioned { trial, drive: Box::new(drive(&format!("drive {at_us}"), is_image)) };
            Stamped { at_us, what }
        };
        let text = serde_json::to_string(&[event(1, false), event(2, true)]).unwrap();
        let events: Vec<Stamped> = serde_json::from_str(&text).unwrap();
        let found = earlier(&events);
        assert_eq!(found.iter().map(|drive| drive.key.as_str()).collect::<Vec<_>>(), ["drive 1"]);
        // Used by others in between, and preconditioned again.
        let [mut before, mut after] = [event(1, false), event(1, false)];
        for (event, ended) in [(&mut before, 10), (&mut after, 20)] {
            let Event::DrivePreconditioned { drive, .. } = &mut event.what else { unreachable!() };
            drive.ended_us = ended;
        }
        assert_eq!(earlier(&[before, after]).iter().map(|drive| drive.ended_us).collect::<Vec<_>>(), [20]);
    }

    #[test]
    fn preconditioning_is_forecast_once_per_drive_or_partition() {
        let host = Host::this();
        let spec = disk(&[("precondition", YES)]);
        let expected = |done: &[DriveRecord]| expected_us(&host, [&spec, &spec].into_iter(), done).unwrap();
        assert_eq!(expected(&[]), 25 * 60_000_000, "the size of a disk that is not there is unknown");
        assert_eq!(expected(&[drive("/dev/no-such-disk, serial S5GX", false)]), 0);
        let mut part = disk(&[]);
        let mut options = Options::default();
        options.set("size", OptionValue::Text("10%".to_owned()));
        options.set("precondition", YES);
        options.set("precondition_round", OptionValue::Text("1s".to_owned()));
        part = StackSpec::linear(
            "d",
            vec![("disk", part.nodes[0].options.clone()), ("linear", options), ("ext4", Options::default())],
        );
        let found = lines(&host, [&part].into_iter()).unwrap();
        assert_eq!(found[0].drive, "10% from 0% of /dev/no-such-disk, serial S5GX");
        assert_eq!(found[0].most_us(), 25_000_000);
    }

    /// A case on a chain of layers.
    fn case(id: &str, layers: Vec<(&str, Options)>) -> CaseSpec {
        let mut case = crate::run::warnings::tests::case(1, &[]);
        (case.id, case.stack) = (id.to_owned(), StackSpec::linear("s", layers));
        case
    }

    fn part(size: &str, more: &[(&str, OptionValue)]) -> Options {
        let mut options = Options::default();
        options.set("size", OptionValue::Text(size.to_owned()));
        more.iter().for_each(|(key, value)| options.set(key, value.clone()));
        options
    }

    #[test]
    fn a_drive_with_two_states_is_refused_under_any_name() {
        let place = tempfile::tempdir().unwrap();
        let (device, by_id) = (place.path().join("sdx"), place.path().join("by-id"));
        std::fs::write(&device, "").unwrap();
        std::os::unix::fs::symlink(&device, &by_id).unwrap();
        let named = |path: &str, options: &[(&str, OptionValue)]| {
            let mut all = disk(options).nodes[0].options.clone();
            all.set("disk", OptionValue::Text(path.to_owned()));
            all
        };
        let (path, link) = (device.to_str().unwrap(), by_id.to_str().unwrap());
        let yes = &[("precondition", YES)];
        let mixed = |one: &CaseSpec, two: Vec<(&str, Options)>| {
            refuse_mixed(&Host::this(), &[one.clone(), case("b", two)]).map_err(|e| e.to_string())
        };
        let whole = case("a", vec![("disk", named(path, yes)), ("ext4", Options::default())]);
        assert_eq!(mixed(&whole, vec![("disk", named(path, yes)), ("xfs", Options::default())]), Ok(()));
        assert_eq!(mixed(&whole, vec![("disk", named(path, yes)), ("linear", part("10%", &[]))]), Ok(()));
        assert_eq!(mixed(&whole, vec![("disk", named("/dev/no-such-other", &[]))]), Ok(()));
        for (other, words) in [(named(path, &[]), "not at all in b"), (named(link, yes), "by-id, serial")] {
            let error = mixed(&whole, vec![("disk", other)]).unwrap_err();
            assert!(error.contains(words) && error.contains("in a, and"), "{error}");
        }
        let some = case("a", vec![("disk", named(path, &[])), ("linear", part("80%", yes))]);
        assert_eq!(mixed(&some, vec![("disk", named(path, &[])), ("linear", part("80%", yes))]), Ok(()));
        for other in [
            vec![("disk", named(path, &[]))],
            vec![("disk", named(link, &[]))],
            vec![("disk", named(path, &[])), ("linear", part("50%", yes))],
            vec![("disk", named(path, &[])), ("linear", part("80%", &[]))],
        ] {
            let error = mixed(&some, other).unwrap_err();
            assert!(error.contains(&format!("80% from 0% of {path}")), "{error}");
        }
    }

    #[test]
    fn a_device_that_goes_with_its_trial_is_refused() {
        let mut options = Options::default();
        options.set("null_blk", OptionValue::Text("1GiB".to_owned()));
        let mut part = Options::default();
        part.set("size", OptionValue::Text("10%".to_owned()));
        part.set("precondition", YES);
        let spec = StackSpec::linear("n", vec![("null_blk", options), ("linear", part), ("ext4", Options::default())]);
        let error = lines(&Host::this(), [&spec].into_iter()).unwrap_err().to_string();
        assert!(error.contains("made anew for each trial"), "{error}");
    }
}

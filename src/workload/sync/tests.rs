//! The sync methods on real files, and on files that refuse.

use super::turn::{Durable, METHODS, Turn, open, operation};
use super::{Nobody, SLICE, Seconds, Sync, WRITE_BYTES, new_second, record, run};
use crate::host::signals::Interrupt;
use crate::host::time::now;
use crate::record::options::Options;
use crate::record::trial::Figures;
use crate::units::Micros;
use crate::workload::{ClientSecond, Listener, Raw, Workload};
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Mutex;

#[derive(Default)]
struct Ears {
    seconds: Mutex<Vec<ClientSecond>>,
    began: Mutex<Vec<u64>>,
}

impl Listener for Ears {
    fn began(&self, wall_us: u64) {
        self.began.lock().unwrap().push(wall_us);
    }
    fn second(&self, second: ClientSecond) {
        self.seconds.lock().unwrap().push(second);
    }
}

fn figures(raw: &Raw) -> Figures {
    Sync.read(&Options::default(), raw).unwrap()
}

#[test]
fn every_method_of_linux_is_measured_in_turn_and_no_file_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let ears = Ears::default();
    let raw = run(folder.path(), Micros(2_100_000), &Interrupt::never(), &ears).unwrap();
    let figures = figures(&raw);
    let names: Vec<&str> = figures.measures.iter().map(|measure| measure.name.as_str()).collect();
    assert_eq!(names, METHODS.map(|method| method.name));
    for measure in &figures.measures {
        assert_eq!(measure.done.is_some(), measure.unavailable.is_none(), "{measure:?}");
        assert_eq!(measure.unavailable.is_none(), !measure.slice_rates.is_empty(), "{measure:?}");
    }
    assert!(figures.measures[1].done > Some(0) && figures.measures[2].done > Some(0));
    assert!(figures.measures[3].unavailable.as_deref().unwrap().contains("macOS"));
    assert_eq!(ears.began.into_inner().unwrap().len(), 1);
    let seconds = ears.seconds.into_inner().unwrap();
    assert_eq!(seconds.iter().map(|second| second.second).collect::<Vec<_>>(), [1, 2]);
    let told: u64 = seconds.iter().map(|second| second.done).sum();
    assert!(told > 0 && told <= figures.measures.iter().filter_map(|measure| measure.done).sum());
    for (name, latencies) in &raw.latencies {
        let measure = figures.measures.iter().find(|measure| &measure.name == name).unwrap();
        assert_eq!(measure.done, Some(latencies.len()));
        assert!(measure.latency_us_sum <= measure.elapsed_us);
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn an_interrupt_ends_it_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let interrupt = Interrupt::never();
    interrupt.raise();
    let error = run(folder.path(), Micros(60_000_000), &interrupt, &Nobody).unwrap_err();
    assert_eq!(error.kind(), crate::error::Kind::Interrupted);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_device_that_fails_ends_its_method_with_the_errno_and_counts_nothing() {
    let mut turn = Turn::new(tempfile::tempdir().unwrap().path(), &METHODS[3]).unwrap();
    // Every write to /dev/full fails with ENOSPC.
    turn.method = &METHODS[1];
    turn.unavailable = None;
    turn.file = Some(open(Path::new("/dev/full"), OFlags::empty()).unwrap());
    record(&mut turn.latencies, 7).unwrap();
    let begun = now();
    let mut seconds = Seconds { listener: &Nobody, begun, open: new_second(1).unwrap() };
    turn.slice(&[0; WRITE_BYTES], begun + SLICE, &mut seconds, &Interrupt::never()).unwrap();
    let measure = turn.measure();
    assert_eq!((measure.done, measure.failed, measure.latency_us_sum), (None, 1, 0));
    let why = measure.unavailable.unwrap();
    assert!(why.contains("after 1 operations") && why.contains("No space left"), "{why}");
    assert_eq!(seconds.open.failed, 1);
}

#[test]
fn a_sync_that_fails_is_not_a_fast_success() {
    // A pipe takes the write but cannot be synced: EINVAL.
    let (_reader, writer) = io::pipe().unwrap();
    let file = File::from(std::os::fd::OwnedFd::from(writer));
    assert!(rustix::fs::fdatasync(&file).is_err());
    assert!(operation(&file, &[0; 16], Durable::Fdatasync).is_err());
    let null = open(Path::new("/dev/null"), OFlags::empty()).unwrap();
    assert!(operation(&null, &[0; 16], Durable::Fsync).is_err());
}

#[test]
fn spans_without_sense_are_refused() {
    let mut options = Options::default();
    options.set("duration", crate::record::options::OptionValue::Text("0s".to_owned()));
    assert_eq!(Sync.check(&options).unwrap_err().key.as_deref(), Some("duration"));
    assert_eq!(Sync.spans(&Options::default()), (Micros(0), Micros(10_000_000)));
}

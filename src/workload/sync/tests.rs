//! The workload on a real folder: its events and its figures.

use super::*;
use crate::record::probe::{Failure, Slice};
use std::sync::Mutex;

#[derive(Default)]
struct Ears {
    seconds: Mutex<Vec<ClientSecond>>,
    began: Mutex<Vec<u64>>,
    latencies: Mutex<Vec<LatencyInterval>>,
}

impl Ears {
    fn hear(&self, event: LoadEvent) {
        match event {
            LoadEvent::Began(wall_us) => self.began.lock().unwrap().push(wall_us),
            LoadEvent::Second(second) => self.seconds.lock().unwrap().push(second),
            LoadEvent::Latencies(interval) => self.latencies.lock().unwrap().push(interval),
        }
    }
}

fn run(folder: &Path, span: Micros, interrupt: &Interrupt, listener: &Listener<'_>) -> Result<Counts> {
    probed(&Host::this(), &request(folder, &Options::default(), span), interrupt, listener)
}

#[test]
fn sync_measures_are_the_methods_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let ears = Ears::default();
    let counts = run(folder.path(), Micros(2_400_000), &Interrupt::never(), &|event| ears.hear(event)).unwrap();
    let names: Vec<&str> = counts.measures.iter().map(|measure| measure.name.as_str()).collect();
    assert_eq!(names, ["fdatasync", "open_datasync", "fsync", "open_sync"]);
    let latencies = ears.latencies.into_inner().unwrap();
    assert!(latencies.is_sorted_by_key(|interval| interval.start_us));
    assert!(latencies.iter().all(|interval| interval.start_us + interval.length_us <= counts.elapsed_us));
    for measure in &counts.measures {
        assert!(measure.done > Some(0) && !measure.slices.is_empty(), "{measure:?}");
        assert!(measure.latency_us_sum <= measure.elapsed_us);
        let own = latencies.iter().filter(|interval| interval.measure == measure.name);
        assert_eq!(measure.done, Some(own.map(|interval| interval.latencies.len()).sum()));
    }
    let record = counts.probe.unwrap();
    assert!(record.rows.len() > 25 && !record.growth.is_empty());
    assert_eq!(ears.began.into_inner().unwrap().len(), 1);
    let seconds = ears.seconds.into_inner().unwrap();
    assert_eq!(seconds[0].second, 1);
    let reported: u64 = seconds.iter().map(|second| second.done).sum();
    let synced = record.rows.iter().filter(|row| row.spec.family != Family::NotSynced);
    let kept: u64 = synced.flat_map(|row| &row.slices).map(|slice| slice.operations).sum();
    assert!(reported > 0 && reported <= kept, "{reported} {kept}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn an_interrupt_ends_it_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let interrupt = Interrupt::never();
    interrupt.raise();
    let error = run(folder.path(), Micros(60_000_000), &interrupt, &drop).unwrap_err();
    assert_eq!(error.kind(), crate::error::Kind::Interrupted);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_method_that_failed_has_no_figures_but_its_errno() {
    let spec = crate::probe::rows(&RowChoice::All, WAL_BLOCK, 8).into_iter().find(|row| row.id == "wal.fsync.recycled");
    let failure = Failure {
        call: "fsync".to_owned(),
        errno: Some(5),
        message: "EIO: Input/output error".to_owned(),
        at_us: 7,
        after_operations: 3,
    };
    let row = RowRecord {
        spec: spec.unwrap(),
        unavailable: None,
        failure: Some(failure),
        slices: vec![Slice { operations: 3, elapsed_ns: 5, ..Slice::default() }],
        seconds: Vec::new(),
        slowest: Vec::new(),
        segments_us: Vec::new(),
    };
    let measure = measure(&row);
    assert_eq!((measure.done, measure.failed, measure.latency_us_sum), (None, 1, 0));
    assert!(measure.slices.is_empty());
    let why = measure.unavailable.unwrap();
    assert!(why.contains("after 3 operations") && why.contains("EIO"), "{why}");
}

#[test]
fn spans_and_writers_without_sense_are_refused() {
    use crate::record::options::OptionValue;
    let mut options = Options::default();
    options.set("duration", OptionValue::Text("0s".to_owned()));
    assert_eq!(Sync.check(&options).unwrap_err().key.as_deref(), Some("duration"));
    let mut options = Options::default();
    options.set("writers", OptionValue::Integer(1000));
    assert_eq!(Sync.check(&options).unwrap_err().key.as_deref(), Some("writers"));
    let window = Window { warm_up: Some(Micros(0)), extent: Extent::Span { span_us: 10_000_000 } };
    assert_eq!(Sync.window(&Options::default()), window);
}

#[test]
fn the_probe_uses_the_wal_block_size_of_the_plan() {
    use crate::record::options::OptionValue;
    let mut options = Options::default();
    options.set("wal_block", OptionValue::Text("64kB".to_owned()));
    assert_eq!(request(Path::new("/"), &options, Micros(1)).wal_block, 65_536);
    assert_eq!(request(Path::new("/"), &Options::default(), Micros(1)).wal_block, 8192);
}

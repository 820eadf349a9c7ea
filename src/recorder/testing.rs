//! Disks in a temporary folder, for the tests of this room and of `cut`.

use super::disk::{Recorder, create_origin};
use super::{DeviceModel, Durable, Recording, State};
use std::path::PathBuf;

/// Bytes of each disk.
pub const SIZE: u64 = 1 << 20;

/// Larger than any test's log.
pub const ROOM: u64 = 1 << 30;

/// A folder with a recorder and its log.
pub struct TestDisks {
    folder: tempfile::TempDir,
    pub recorder: Recorder,
}

impl TestDisks {
    pub fn new(disks: usize) -> TestDisks {
        let folder = tempfile::tempdir().unwrap();
        let origin =
            |number: usize| (create_origin(&folder.path().join(format!("origin-{number}")), SIZE).unwrap(), SIZE);
        let recorder = Recorder::filling((0..disks).map(origin).collect());
        TestDisks { folder, recorder }
    }

    /// The same, recording.
    pub fn recording(disks: usize) -> TestDisks {
        let this = TestDisks::new(disks);
        this.recorder.begin(&this.log(), ROOM).unwrap();
        this
    }

    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    pub fn origins(&self) -> Vec<PathBuf> {
        (0..)
            .map(|number| self.folder.path().join(format!("origin-{number}")))
            .take_while(|path| path.exists())
            .collect()
    }

    /// The full content of each disk in a state.
    pub fn bytes_of(recording: &Recording, state: &State) -> Vec<Vec<u8>> {
        let durable = Durable::of(recording.log().entries(), DeviceModel::Honest);
        recording.images(&durable, state).iter().map(whole).collect()
    }
}

/// The full content of an image.
pub fn whole(image: &super::Image) -> Vec<u8> {
    let mut bytes = vec![0; image.size() as usize];
    image.read(0, &mut bytes).unwrap();
    bytes
}

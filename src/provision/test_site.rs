//! What the tests of real stacks share: a place of their own, a run in it, and the look whether anything is left.

use super::ledger::Ledger;
use super::stack::{BuiltStack, build_stack};
use super::undo::{Undoers, undo_from};
use super::{Site, folder, mount, sysfs};
use crate::error::Result;
use crate::host::signals::Interrupt;
use crate::host::{Host, files, users};
use crate::record::options::{OptionValue, Options};
use crate::record::stack::StackSpec;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

static NO_IMAGES: BTreeMap<String, PathBuf> = BTreeMap::new();

/// A place of a test, with a ledger and a run's private folder.
pub(super) struct TestPlace {
    pub host: Host,
    pub run_id: String,
    pub ledger: Option<Ledger>,
    folder: tempfile::TempDir,
    interrupt: Interrupt,
}

impl TestPlace {
    /// A fresh one; `None`, with the reason printed, without root.
    pub fn new() -> Option<TestPlace> {
        if !users::is_root() {
            println!("skipped: building stacks needs root");
            return None;
        }
        Some(TestPlace::of_anybody())
    }

    /// A fresh one where this layer can be built; `None`, with what is missing printed, elsewhere.
    pub fn with_layer(name: &str) -> Option<TestPlace> {
        let lacking = super::layer(name).unwrap().unmet(&Host::this(), &Options::default());
        match lacking.first() {
            Some(unmet) => println!("skipped: {name} needs {}", unmet.what),
            None => return TestPlace::new(),
        }
        None
    }

    /// A fresh one for what needs no root.
    pub fn of_anybody() -> TestPlace {
        let folder = tempfile::tempdir().unwrap();
        let run_id = files::random_id().unwrap();
        let mut place = TestPlace { host: Host::this(), run_id, ledger: None, folder, interrupt: Interrupt::never() };
        let ledger = Ledger::create(&place.ledger_folder(), &place.run_id).unwrap();
        folder::make(&ledger, folder::OWNER, &place.site_folder()).unwrap();
        place.ledger = Some(ledger);
        place
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub fn ledger_folder(&self) -> PathBuf {
        self.path().join("ledger")
    }

    fn site_folder(&self) -> PathBuf {
        self.path().join(format!("pgstrata-{}", self.run_id))
    }

    pub fn ledger(&self) -> &Ledger {
        self.ledger.as_ref().unwrap()
    }

    pub fn site(&self, name: &str) -> Site<'_> {
        Site {
            host: &self.host,
            ledger: self.ledger(),
            name: format!("pgstrata-{}-1-{name}", self.run_id),
            folder: self.site_folder(),
            interrupt: &self.interrupt,
            images: &NO_IMAGES,
            image: None,
        }
    }

    pub fn build(&self, spec: &StackSpec) -> Result<BuiltStack> {
        build_stack(&self.site(&spec.name), spec)
    }

    /// A stack of a sparse image in this place and one filesystem on it.
    pub fn on_loop(&self, filesystem: &str, size: &str, options: Options) -> StackSpec {
        let mut image = self.image(size);
        image.set("sparse", OptionValue::Boolean(true));
        stack(filesystem, vec![("loop", image), (filesystem, options)])
    }

    /// Same, on an image that is written in full.
    pub fn on_written(&self, filesystem: &str, size: &str) -> StackSpec {
        stack(filesystem, vec![("loop", self.image(size)), (filesystem, Options::default())])
    }

    fn image(&self, size: &str) -> Options {
        options_of(&[("loop", text(size)), ("in", text(self.path().to_str().unwrap()))])
    }

    /// Undoes everything, as `clean` does; panics on a failure or when anything is left.
    pub fn clean(mut self) {
        self.undo_all();
        self.ledger.take().unwrap().close().unwrap();
        assert_eq!(std::fs::read_dir(self.ledger_folder()).unwrap().count(), 0, "the ledger is left");
    }

    /// Undoes everything that the ledger lists and looks that nothing is left.
    pub fn undo_all(&self) {
        let failures = undo_from(self.ledger(), 0, &Undoers::new(), &self.host);
        assert!(failures.is_empty(), "{failures:#?}");
        assert_eq!(self.left(), Vec::<String>::new());
    }

    /// Mounts, loop devices and files of the test that are there.
    pub fn left(&self) -> Vec<String> {
        let below = |path: &str| Path::new(path).starts_with(self.path());
        let mounts = mount::table(&self.host).unwrap().into_iter().map(|mount| mount.target).filter(|t| below(t));
        let loops = sysfs::loops(&self.host).into_iter().map(|(_, file)| file).filter(|file| below(file));
        let files = std::fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path().display().to_string());
        let ledger = self.ledger_folder().display().to_string();
        mounts.chain(loops).chain(files.filter(|path| *path != ledger)).collect()
    }
}

impl Drop for TestPlace {
    /// The net under a test that failed half-way.
    fn drop(&mut self) {
        if let Some(ledger) = &self.ledger {
            drop(undo_from(ledger, 0, &Undoers::new(), &self.host));
        }
    }
}

pub(super) fn text(value: &str) -> OptionValue {
    OptionValue::Text(value.to_owned())
}

pub(super) fn texts(values: &[&str]) -> OptionValue {
    OptionValue::List(values.iter().map(|value| text(value)).collect())
}

pub(super) fn options_of(pairs: &[(&str, OptionValue)]) -> Options {
    let mut options = Options::default();
    for (key, value) in pairs {
        options.set(key, value.clone());
    }
    options
}

pub(super) fn mkfs(arguments: &[&str]) -> Options {
    options_of(&[("mkfs", texts(arguments))])
}

pub(super) fn mounted(options: &[&str]) -> Options {
    options_of(&[("mount", texts(options))])
}

pub(super) fn stack(name: &str, layers: Vec<(&str, Options)>) -> StackSpec {
    StackSpec::linear(name, layers)
}

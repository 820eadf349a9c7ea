//! Shared setup for tests of real stacks: a private folder, a run in it, and the check that nothing is left.

use super::facts::Bases;
use super::images::Images;
use super::ledger::{Death, Ledger, Thing};
use super::stack::{BuiltStack, build_stack, reopen_stack, unmet};
use super::undo::{undo_from, undo_own};
use super::{Base, Site, folder, layer, mapper, mount, mount_table, sysfs};
use crate::error::Result;
use crate::host::signals::Interrupt;
use crate::host::{Host, files, users};
use crate::record::options::{OptionValue, Options};
use crate::record::stack::{BaseName, Input, NodeSpec, Role, StackSpec};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

static NO_IMAGES: BTreeMap<String, PathBuf> = BTreeMap::new();

/// A test's private folder, with a ledger and a run's folder.
pub(super) struct TestPlace {
    pub host: Host,
    pub run_id: String,
    pub ledger: Option<Ledger>,
    folder: tempfile::TempDir,
    interrupt: Interrupt,
}

impl TestPlace {
    /// Creates one; `None`, with the reason printed, without root.
    pub fn new() -> Option<TestPlace> {
        if !users::is_root() {
            println!("skipped: building stacks needs root");
            return None;
        }
        Some(TestPlace::of_anybody())
    }

    /// Creates one if this layer can be built; else `None`, with the missing requirements printed.
    pub fn with_layer(name: &str) -> Option<TestPlace> {
        let lacking = super::layer(name).unwrap().unmet(&Host::this(), &Options::default());
        match lacking.first() {
            Some(unmet) => println!("skipped: {name} needs {}", unmet.what),
            None => return TestPlace::new(),
        }
        None
    }

    /// Creates one for tests that need no root.
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

    /// A stack of a sparse image in this place with one filesystem on it.
    pub fn on_loop(&self, filesystem: &str, size: &str, options: Options) -> StackSpec {
        let mut image = self.image(size);
        image.set("sparse", OptionValue::Boolean(true));
        stack(filesystem, vec![("loop", image), (filesystem, options)])
    }

    /// Same, on a fully written image.
    pub fn on_written(&self, filesystem: &str, size: &str) -> StackSpec {
        stack(filesystem, vec![("loop", self.image(size)), (filesystem, Options::default())])
    }

    /// An ext4 named `fs` on a volume of the layer, which also names it, over sparse images `d1`, `d2` and so on.
    pub fn on_volume(&self, layer: &str, options: Options, count: usize, size: &str) -> StackSpec {
        let mut image = self.image(size);
        image.set("sparse", OptionValue::Boolean(true));
        let input = |from: String| Input { from: BaseName(from), role: Role::Data, group: None };
        let node = |name: &str, layer: &str, options, inputs| NodeSpec {
            name: name.to_owned(),
            layer: layer.to_owned(),
            options,
            inputs,
        };
        let devices: Vec<String> = (1..=count).map(|number| format!("d{number}")).collect();
        let mut spec = stack(layer, vec![("loop", image.clone())]);
        spec.nodes = devices.iter().map(|name| node(name, "loop", image.clone(), Vec::new())).collect();
        spec.nodes.push(node(layer, layer, options, devices.into_iter().map(input).collect()));
        spec.nodes.push(node("fs", "ext4", Options::default(), vec![input(layer.to_owned())]));
        spec.data = BaseName("fs".to_owned());
        spec
    }

    /// True if this machine can build a stack; prints what it lacks.
    pub fn can_build(&self, spec: &StackSpec) -> bool {
        let unmet = unmet(&self.host, spec, &Images::default());
        for unmet in &unmet {
            println!("skipped: the stack {} needs {}", spec.name, unmet.what);
        }
        unmet.is_empty()
    }

    fn image(&self, size: &str) -> Options {
        options_of(&[("loop", text(size)), ("in", text(self.path().to_str().unwrap()))])
    }

    /// Undoes everything, as `clean` does; panics on a failure or if anything is left.
    pub fn clean(mut self) {
        self.undo_all();
        self.ledger.take().unwrap().close().unwrap();
        assert_eq!(std::fs::read_dir(self.ledger_folder()).unwrap().count(), 0, "the ledger is left");
    }

    /// Undoes everything in the ledger and asserts that nothing is left.
    pub fn undo_all(&self) {
        let failures = undo_from(self.ledger(), 0, undo_own, &self.host);
        assert!(failures.is_empty(), "{failures:#?}");
        assert_eq!(self.left(), Vec::<String>::new());
    }

    /// Names of devices that contain the run's id, including the disk of scsi_debug.
    fn named_devices(&self) -> Vec<String> {
        let ours = format!("pgstrata-{}-", self.run_id);
        let mapped = mapper::all(&self.host).into_iter().map(|mapping| mapping.name);
        let named = self.host.names_in("/sys/block").into_iter().chain(self.host.names_in("/sys/kernel/config/nullb"));
        let vendor = self.host.read_optional("/sys/module/scsi_debug/parameters/inq_vendor");
        let module = vendor.filter(|vendor| self.run_id.starts_with(vendor.as_str())).map(|_| "scsi_debug".to_owned());
        mapped.chain(named).filter(|name| name.starts_with(&ours)).chain(module).collect()
    }

    /// Existing mounts, loop devices, named devices and files of the test.
    pub fn left(&self) -> Vec<String> {
        let below = |path: &str| Path::new(path).starts_with(self.path());
        let mounts = mount_table::table(&self.host).unwrap().into_iter().map(|mount| mount.target).filter(|t| below(t));
        let loops = sysfs::loops(&self.host).into_iter().map(|(_, file)| file).filter(|file| below(file));
        let files = std::fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path().display().to_string());
        let ledger = self.ledger_folder().display().to_string();
        mounts.chain(loops).chain(self.named_devices()).chain(files.filter(|path| *path != ledger)).collect()
    }
}

impl Drop for TestPlace {
    /// Safety net for a test that failed half-way.
    fn drop(&mut self) {
        if let Some(ledger) = &self.ledger {
            drop(undo_from(ledger, 0, undo_own, &self.host));
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

/// Makes builds die before and after each ledger entry from 1 on, until there is no such entry. There are more than
/// `last` if another program takes the number expected for a loop device. `dies` builds, cleans up and returns whether
/// it died; `None` if it cannot build here.
pub(super) fn at_every_entry(last: u64, mut dies: impl FnMut(Death) -> Option<bool>) {
    for entry in 1..last + 20 {
        for death in [Death::Before(entry), Death::After(entry)] {
            let Some(died) = dies(death) else { return };
            assert!(died || entry > last, "the stack has entries 1 to {last}");
            if !died {
                return;
            }
        }
    }
    panic!("the stack has far more entries than {last}");
}

/// Builds a stack, writes to it and passes it to `look`; then makes a build die after every ledger entry from the first of
/// layer `of` on. Nothing may be left, not even after a second walk through the same entries. Does nothing, with the
/// reason printed, if the machine cannot build it.
pub(super) fn stands_and_dies(
    of: &str,
    spec: impl Fn(&TestPlace) -> StackSpec,
    look: impl Fn(&TestPlace, &BuiltStack),
) {
    let Some(place) = TestPlace::new() else { return };
    let wanted = spec(&place);
    if !place.can_build(&wanted) {
        return;
    }
    let built = place.build(&wanted).unwrap();
    let file = built.folder().join("file");
    std::fs::write(&file, vec![1u8; 1 << 20]).unwrap();
    std::fs::File::open(file).unwrap().sync_all().unwrap();
    look(&place, &built);
    let (first, _) = place.ledger().open_things().into_iter().find(|(_, thing)| thing.owner == of).unwrap();
    let entries = place.ledger().mark();
    place.clean();
    for entry in first..entries {
        let Some(mut place) = TestPlace::new() else { return };
        place.ledger().die(Death::After(entry));
        // One entry fewer if, in the previous build, another program took the number.
        let died = place.build(&spec(&place)).is_err();
        assert!(died || entry + 1 == entries, "the stack has entries to {entries}");
        let path = place.ledger().path().to_owned();
        drop(place.ledger.take());
        let before = std::fs::read(&path).unwrap();
        place.ledger = Some(Ledger::take(&place.ledger_folder(), &place.run_id).unwrap());
        place.undo_all();
        drop(place.ledger.take());
        std::fs::write(&path, before).unwrap();
        place.ledger = Some(Ledger::take(&place.ledger_folder(), &place.run_id).unwrap());
        place.clean();
    }
}

/// Builds a stack of [`TestPlace::on_volume`], takes down its mount and volume but not the content of the devices, by
/// undoing the ledger entries that `closing` selects, and opens it again: the written data is there.
pub(super) fn opens_again(layer_name: &str, options: Options, count: usize, closing: impl Fn(&Thing) -> Option<Thing>) {
    let Some(place) = TestPlace::new() else { return };
    let spec = place.on_volume(layer_name, options, count, "64MiB");
    if !place.can_build(&spec) {
        return;
    }
    let built = place.build(&spec).unwrap();
    std::fs::write(built.folder().join("kept"), "x").unwrap();
    let things = place.ledger().open_things();
    let (number, mounted) = things.iter().rev().find(|(_, thing)| thing.kind == "mount").unwrap();
    mount::undo(&place.host, mounted).unwrap();
    place.ledger().undone(*number).unwrap();
    for (_, thing) in things.iter().rev().filter(|(_, thing)| thing.owner == layer_name) {
        if let Some(thing) = closing(thing) {
            layer(layer_name).unwrap().undo(&place.host, &thing).unwrap();
        }
    }
    let is_image = |name: &BaseName| name.0.starts_with('d') && name.0.len() == 2;
    let devices: Bases = built.bases.into_iter().filter(|(name, _)| is_image(name)).collect();
    assert!(devices.values().all(|base| matches!(base, Base::Device(_))) && devices.len() == count);
    let again = reopen_stack(&place.site("again"), &spec, devices).unwrap();
    assert_eq!(std::fs::read_to_string(again.folder().join("kept")).unwrap(), "x", "{layer_name}");
    place.clean();
}

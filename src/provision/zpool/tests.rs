//! Real pools, datasets and volumes on loop devices. Need root and a kernel with ZFS, and report it if either is
//! missing.

use super::*;
use crate::parse::kstat;
use crate::provision::facts::Bases;
use crate::provision::ledger::Ledger;
use crate::provision::stack::{self, BuiltStack};
use crate::provision::test_site::{TestPlace, at_every_entry, options_of, text};
use crate::provision::undo::{undo_from, undo_own};
use crate::provision::{mount, zfs_tools};
use crate::record::claim::Claim;
use crate::record::options::OptionValue;
use crate::record::stack::{BaseName, Input, NodeSpec, StackSpec};
use std::fs;
use std::os::unix::fs::FileExt;

fn given(role: Role, group: Option<&str>, path: &str) -> LayerInput {
    LayerInput { role, group: group.map(str::to_owned), base: Base::Device(PathBuf::from(path)) }
}

fn words(inputs: &[LayerInput], options: &Options) -> (String, bool) {
    let vdevs = vdevs(inputs, options).unwrap();
    (vdevs.words.join(" "), vdevs.mixed)
}

#[test]
fn devices_are_given_in_the_order_that_zpool_takes_them() {
    let none = Options::default();
    let stripe = [given(Role::Data, None, "/a"), given(Role::Data, None, "/b")];
    assert_eq!(words(&stripe, &none), ("/a /b".to_owned(), false));
    let whole = [
        given(Role::Data, Some("mirror-0"), "/a"),
        given(Role::Data, Some("mirror-0"), "/b"),
        given(Role::Data, Some("mirror-1"), "/c"),
        given(Role::Data, Some("mirror-1"), "/d"),
        given(Role::Log, None, "/e"),
        given(Role::Cache, None, "/f"),
        given(Role::Special, Some("mirror-0"), "/g"),
        given(Role::Special, Some("mirror-0"), "/h"),
    ];
    let wanted = "mirror /a /b mirror /c /d log /e cache /f special mirror /g /h";
    assert_eq!(words(&whole, &none), (wanted.to_owned(), false));
    let odd = [
        given(Role::Data, Some("mirror-0"), "/a"),
        given(Role::Data, Some("mirror-0"), "/b"),
        given(Role::Data, None, "/c"),
        given(Role::Dedup, None, "/d"),
    ];
    assert_eq!(words(&odd, &none), ("/c mirror /a /b dedup /d".to_owned(), true));
}

#[test]
fn a_draid_says_how_many_devices_hold_data() {
    let members: Vec<LayerInput> =
        ["/a", "/b", "/c", "/d"].iter().map(|path| given(Role::Data, Some("draid1-0"), path)).collect();
    assert_eq!(words(&members, &Options::default()).0, "draid1:4c /a /b /c /d");
    let options = options_of(&[("draid_data", OptionValue::Integer(2)), ("draid_spares", OptionValue::Integer(1))]);
    assert_eq!(words(&members, &options).0, "draid1:2d:4c:1s /a /b /c /d");
}

#[test]
fn what_would_lead_out_of_the_stack_is_refused() {
    let with = |name: &str| {
        let table = OptionValue::Map([(name.to_owned(), text("x"))].into());
        options_of(&[("properties", table)])
    };
    for name in ["cachefile", "altroot", "pgstrata:mark", "multihost"] {
        assert!(Zpool.check(&with(name)).is_err(), "{name}");
    }
    assert_eq!(Zpool.check(&with("comment")), Ok(()));
    let parameter = OptionValue::Map([("../x".to_owned(), OptionValue::Integer(1))].into());
    assert!(Zpool.check(&options_of(&[("module", parameter)])).is_err());
}

/// A place where pools can be made; `None`, with the reason printed, if they cannot.
fn place() -> Option<TestPlace> {
    let place = TestPlace::new()?;
    if let Some(unmet) = zfs_tools::unmet(&place.host).first() {
        println!("skipped: pools need {}", unmet.what);
        return None;
    }
    Some(place)
}

fn node(name: &str, layer: &str, options: Options, inputs: Vec<Input>) -> NodeSpec {
    NodeSpec { name: name.to_owned(), layer: layer.to_owned(), options, inputs }
}

fn on(name: &str, role: Role, group: Option<&str>) -> Input {
    Input { from: BaseName(name.to_owned()), role, group: group.map(str::to_owned) }
}

fn table(pairs: &[(&str, OptionValue)]) -> OptionValue {
    OptionValue::Map(pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

/// The option `properties` with these.
fn properties(pairs: &[(&str, OptionValue)]) -> Options {
    options_of(&[("properties", table(pairs))])
}

/// A pool on one image per input, named after it, with a dataset `fs`.
fn pool_of(place: &TestPlace, inputs: Vec<Input>, pool: Options, dataset: Options) -> StackSpec {
    let folder = place.path();
    let image = || {
        let sparse = ("sparse", OptionValue::Boolean(true));
        options_of(&[("loop", text("128MiB")), ("in", text(folder.to_str().unwrap())), sparse])
    };
    let mut spec = StackSpec::linear("pool", vec![("loop", image())]);
    spec.nodes = inputs.iter().map(|input| node(&input.from.0, "loop", image(), Vec::new())).collect();
    spec.nodes.push(node("zpool", "zpool", pool, inputs));
    spec.nodes.push(node("fs", "zfs", dataset, vec![on("zpool", Role::Data, None)]));
    spec.data = BaseName("fs".to_owned());
    spec
}

fn stripe(place: &TestPlace, pool: Options, dataset: Options) -> StackSpec {
    pool_of(place, vec![on("a", Role::Data, None)], pool, dataset)
}

/// Writes and syncs a file in the data folder.
fn use_it(built: &BuiltStack) {
    let file = built.folder().join("file");
    fs::write(&file, vec![7u8; 2 << 20]).unwrap();
    fs::File::open(&file).unwrap().sync_all().unwrap();
}

fn pools(place: &TestPlace) -> String {
    let listed = place.host.run(&zfs_tools::call("zpool", &["list", "-H", "-o", "name"])).unwrap().stdout;
    listed.lines().filter(|name| name.contains(&place.run_id)).collect()
}

/// Undoes everything above the images, asserts that the devices are blank, then undoes the rest.
fn clean(place: TestPlace, built: &BuiltStack) {
    let things = place.ledger().open_things();
    let first = things.iter().find(|(_, thing)| thing.owner == "zpool").unwrap().0;
    let failures = undo_from(place.ledger(), first, undo_own, &place.host);
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(pools(&place), "");
    for base in built.bases.values() {
        let Base::Device(path) = base else { continue };
        let Ok(device) = BlockDevice::find(path) else { continue };
        assert_eq!(guard::signatures(&place.host, &device).unwrap(), [], "on {}", path.display());
    }
    place.clean();
}

#[test]
fn a_mirror_with_log_and_cache_holds_datasets_as_requested() {
    let Some(place) = place() else { return };
    let inputs = vec![
        on("a", Role::Data, Some("mirror-0")),
        on("b", Role::Data, Some("mirror-0")),
        on("slog", Role::Log, None),
        on("l2arc", Role::Cache, None),
    ];
    let dataset = [("recordsize", text("8k")), ("compression", text("lz4")), ("atime", OptionValue::Boolean(false))];
    let mut spec = pool_of(&place, inputs, properties(&[("ashift", OptionValue::Integer(12))]), properties(&dataset));
    let wal = [("recordsize", text("128k")), ("logbias", text("throughput")), ("xattr", text("on"))];
    spec.nodes.push(node("wal", "zfs", properties(&wal), vec![on("zpool", Role::Data, None)]));
    spec.wal = Some(BaseName("wal".to_owned()));
    let built = place.build(&spec).unwrap();
    use_it(&built);
    let detail = |node: &str, name: &str| built.facts.node(node).unwrap().details[name].clone();
    assert_eq!((detail("zpool", "ashift"), detail("zpool", "cachefile")), ("12 (local)".into(), "none (local)".into()));
    assert_eq!(
        (detail("fs", "recordsize"), detail("fs", "sync")),
        ("8192 (local)".into(), "standard (default)".into())
    );
    assert_eq!(
        (detail("wal", "recordsize"), detail("wal", "logbias")),
        ("131072 (local)".into(), "throughput (local)".into())
    );
    assert!(detail("zpool", "features enabled").contains("lz4_compress"));
    let mount = built.facts.mount().unwrap();
    assert_eq!((mount.fstype.as_str(), mount.zfs["recordsize"].as_str()), ("zfs", "8192"));
    let below = built.facts.devices_below(built.facts.data.as_ref());
    let roles: Vec<(String, Role)> = below.iter().take(4).map(|below| (below.name().0, below.role)).collect();
    let wanted = [("a", Role::Data), ("b", Role::Data), ("slog", Role::Log), ("l2arc", Role::Cache)];
    assert_eq!(roles, wanted.map(|(name, role)| (name.to_owned(), role)));
    for claim in [Claim::HoldsFlushesBack, Claim::HiddenBelow] {
        assert_eq!(built.facts.promise(built.facts.data.as_ref(), claim), None);
    }
    clean(place, &built);
}

#[test]
fn every_redundancy_and_device_class_is_built_used_and_wiped() {
    let member = |group: &'static str| move |name: &&str| on(name, Role::Data, Some(group));
    let shapes: Vec<(Vec<Input>, Options)> = vec![
        (["a", "b"].iter().map(|name| on(name, Role::Data, None)).collect(), Options::default()),
        (["a", "b", "c"].iter().map(member("raidz1-0")).collect(), Options::default()),
        (["a", "b", "c", "d"].iter().map(member("raidz2-0")).collect(), Options::default()),
        (["a", "b", "c", "d", "e"].iter().map(member("raidz3-0")).collect(), Options::default()),
        (
            ["a", "b", "c", "d"].iter().map(member("draid1-0")).collect(),
            options_of(&[("draid_data", OptionValue::Integer(2)), ("draid_spares", OptionValue::Integer(1))]),
        ),
        (
            vec![
                on("a", Role::Data, Some("mirror-0")),
                on("b", Role::Data, Some("mirror-0")),
                on("c", Role::Special, None),
                on("d", Role::Dedup, None),
            ],
            Options::default(),
        ),
    ];
    for (inputs, options) in shapes {
        let Some(place) = place() else { return };
        let built = place
            .build(&pool_of(&place, inputs.clone(), options, Options::default()))
            .unwrap_or_else(|error| panic!("{inputs:?}: {}", error.chain()));
        use_it(&built);
        clean(place, &built);
    }
}

#[test]
fn a_dataset_with_sync_disabled_promises_no_durability() {
    let Some(place) = place() else { return };
    let built = place.build(&stripe(&place, Options::default(), properties(&[("sync", text("disabled"))]))).unwrap();
    let (node, promise) = built.facts.promise(built.facts.data.as_ref(), Claim::HoldsFlushesBack).unwrap();
    assert_eq!((node.name.as_str(), promise.to_string().as_str()), ("fs", "zfs sync=disabled: a sync does nothing"));
    clean(place, &built);
    let Some(place) = self::place() else { return };
    let module = options_of(&[("module", table(&[("zfs_nocacheflush", OptionValue::Integer(1))]))]);
    let built = place.build(&stripe(&place, module, Options::default())).unwrap();
    let (_, promise) = built.facts.promise(built.facts.data.as_ref(), Claim::HoldsFlushesBack).unwrap();
    assert_eq!(promise.source, "ZFS module parameter zfs_nocacheflush=1");
    clean(place, &built);
    assert_eq!(modules::shown(&Host::this(), "zfs_nocacheflush").as_deref(), Some("0"));
}

#[test]
fn parameters_of_the_module_are_in_force_and_put_back() {
    let Some(place) = place() else { return };
    let limit = || {
        let stats = kstat::named(modules::ARCSTATS, &place.host.read(modules::ARCSTATS).unwrap()).unwrap();
        (modules::shown(&place.host, "zfs_arc_max").unwrap(), stats["c_max"])
    };
    kernel_module::load(&place.host, "zfs", &[]).unwrap();
    let before = limit();
    let module = |bytes: &str| options_of(&[("module", table(&[("zfs_arc_max", text(bytes))]))]);
    let built = place.build(&stripe(&place, module("128MiB"), Options::default())).unwrap();
    assert_eq!(limit(), ("134217728".to_owned(), 128 << 20));
    let details = &built.facts.node("zpool").unwrap().details;
    assert_eq!(details["module parameter zfs_arc_max"], "134217728");
    assert!(undo_from(place.ledger(), 1, undo_own, &place.host).is_empty());
    assert_eq!(limit(), before, "the limit that holds is the one of before");
    // The module accepts such a value and ignores it.
    let error = place.build(&stripe(&place, module("1MiB"), Options::default())).unwrap_err();
    assert!(error.chain().contains("zfs_arc_max = 1048576 is not in force"), "{}", error.chain());
    assert!(undo_from(place.ledger(), 1, undo_own, &place.host).is_empty());
    assert_eq!(limit(), before);
    place.clean();
}

#[test]
fn an_option_refused_by_zfs_is_reported_and_leaves_nothing() {
    let Some(place) = place() else { return };
    let error =
        place.build(&stripe(&place, Options::default(), properties(&[("recordsize", text("7k"))]))).unwrap_err();
    assert!(error.chain().contains("recordsize"), "{}", error.chain());
    place.undo_all();
    let error = place.build(&stripe(&place, properties(&[("no_such", text("on"))]), Options::default())).unwrap_err();
    assert!(error.chain().contains("no_such"), "{}", error.chain());
    assert_eq!(pools(&place), "");
    place.undo_all();
    place.clean();
}

#[test]
fn a_pool_that_dies_at_any_entry_is_undone() {
    // Entry 0 is the run's folder; then image (again with its inode), loop, label, pool, mount point, dataset and
    // mount.
    at_every_entry(8, |death| {
        let mut place = place()?;
        let spec = stripe(&place, Options::default(), Options::default());
        place.ledger().die(death);
        let died = place.build(&spec).is_err();
        drop(place.ledger.take());
        place.ledger = Some(Ledger::take(&place.ledger_folder(), &place.run_id).unwrap());
        place.undo_all();
        assert_eq!(pools(&place), "");
        place.clean();
        Some(died)
    });
}

#[test]
fn a_pool_is_reopened_by_its_devices_without_data_loss() {
    let Some(place) = place() else { return };
    let inputs =
        vec![on("a", Role::Data, Some("mirror-0")), on("b", Role::Data, Some("mirror-0")), on("slog", Role::Log, None)];
    let spec = pool_of(&place, inputs, Options::default(), properties(&[("recordsize", text("16k"))]));
    let built = place.build(&spec).unwrap();
    fs::write(built.folder().join("kept"), "x").unwrap();
    let Base::Pool(name) = &built.bases[&BaseName("zpool".to_owned())] else { panic!() };
    let things = place.ledger().open_things();
    let (number, thing) = things.iter().rev().find(|(_, thing)| thing.kind == "mount").unwrap();
    mount::undo(&place.host, thing).unwrap();
    place.ledger().undone(*number).unwrap();
    place.host.run(&zfs_tools::call("zpool", &["export", name])).unwrap();
    let devices: Bases = built
        .bases
        .iter()
        .filter(|(_, base)| matches!(base, Base::Device(_)))
        .map(|(n, g)| (n.clone(), g.clone()))
        .collect();
    let again = stack::reopen_stack(&place.site("again"), &spec, devices).unwrap();
    assert_eq!(fs::read_to_string(again.folder().join("kept")).unwrap(), "x");
    assert_eq!(again.facts.node("fs").unwrap().details["recordsize"], "16384 (local)");
    // Undoing the import leaves the pool on its devices, and a label is only wiped for its own pool's name.
    let failures = undo_from(place.ledger(), again.mark, undo_own, &place.host);
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(pools(&place), "");
    for base in built.bases.values() {
        let Base::Device(path) = base else { continue };
        let thing = Thing::new("zpool", LABEL).with_path("device", path).unwrap().with("pool", "some-other");
        wipe_label(&place.host, &thing).unwrap();
        assert!(carrier(&place.host, path).is_ok(), "another pool's label stays");
    }
    clean(place, &built);
}

#[test]
fn rewritten_records_fragment_a_file_into_counted_pieces() {
    let Some(place) = place() else { return };
    let spec =
        stripe(&place, Options::default(), properties(&[("recordsize", text("8k")), ("compression", text("off"))]));
    let built = place.build(&spec).unwrap();
    let path = built.folder().join("relation");
    let file = fs::File::create(&path).unwrap();
    let record = |number: u64, byte: u8| {
        file.write_all_at(&[byte; 8192], number * 8192).unwrap();
    };
    (0..256).for_each(|number| record(number, 1));
    file.sync_all().unwrap();
    let pieces = || built.pieces(&place.host, &path).unwrap().unwrap();
    let fresh = pieces();
    assert_eq!(fresh.placed_bytes, 256 * 8192);
    (0..256).step_by(2).for_each(|number| record(number, 2));
    file.sync_all().unwrap();
    let aged = pieces();
    assert_eq!((aged.placed_bytes, aged.encoded_bytes), (256 * 8192, 0));
    assert!(fresh.pieces < 64 && aged.pieces > 200, "{fresh:?} {aged:?}");
    drop(file);
    clean(place, &built);
}

#[test]
fn a_zvol_is_found_by_name_and_carries_a_filesystem() {
    let Some(place) = place() else { return };
    let mut spec = stripe(&place, Options::default(), Options::default());
    spec.nodes.pop();
    let mut options = properties(&[("volblocksize", text("8k")), ("sync", text("disabled")), ("volmode", text("dev"))]);
    options.set("size", text("50%"));
    options.set("sparse", OptionValue::Boolean(true));
    spec.nodes.push(node("vol", "zvol", options, vec![on("zpool", Role::Data, None)]));
    spec.nodes.push(node("fs", "ext4", Options::default(), vec![on("vol", Role::Data, None)]));
    let built = place.build(&spec).unwrap();
    use_it(&built);
    let facts = built.facts.node("vol").unwrap();
    // ZFS 2.1 reports it as the default, which it is there.
    assert!(facts.details["volblocksize"].starts_with("8192"), "{:?}", facts.details);
    assert_eq!(facts.details["volmode"], "dev (local)");
    assert!(facts.bases[0].device.as_ref().unwrap().name.starts_with("zd"));
    assert!(facts.promise(Claim::FlushesUncounted).is_some(), "{:?}", facts.promises);
    assert_eq!(facts.promise(Claim::HoldsFlushesBack).unwrap().source, "zfs sync=disabled");
    let below: Vec<String> =
        built.facts.devices_below(built.facts.data.as_ref()).iter().take(2).map(|below| below.name().0).collect();
    assert_eq!(below, ["vol", "a"]);
    clean(place, &built);
}

#[test]
fn a_foreign_pool_of_that_name_is_never_destroyed() {
    let Some(place) = place() else { return };
    let built = place.build(&place.on_loop("ext4", "128MiB", Options::default())).unwrap();
    let theirs = format!("pgstrata-{}-theirs", place.run_id);
    let file = built.folder().join("vdev");
    fs::File::create(&file).unwrap().set_len(80 << 20).unwrap();
    kernel_module::load(&place.host, "zfs", &[]).unwrap();
    let create = zfs_tools::call("zpool", &["create", "-o", "cachefile=none", "-m", "none", &theirs]).arg(&file);
    place.host.run(&create).unwrap();
    let thing = zfs_tools::marked("zpool", POOL, &theirs, "other");
    let refused = Zpool.undo(&place.host, &thing).unwrap_err().to_string();
    let by_guid = Thing::new("zpool", POOL).with("name", &theirs).with("guid", "1");
    let not_it = Zpool.undo(&place.host, &by_guid).unwrap_err().to_string();
    let still = pools(&place);
    place.host.run(&zfs_tools::call("zpool", &["destroy", &theirs])).unwrap();
    assert!(refused.contains("is not what pgstrata created"), "{refused}");
    assert!(not_it.contains("its GUID is"), "{not_it}");
    assert_eq!(still, theirs);
    place.clean();
}

#[test]
fn pool_devices_are_found_below_a_folder_on_a_dataset() {
    let Some(place) = place() else { return };
    let inputs = vec![on("a", Role::Data, None), on("slog", Role::Log, None)];
    let spec = pool_of(&place, inputs, Options::default(), properties(&[("sync", text("disabled"))]));
    let built = place.build(&spec).unwrap();
    let found = crate::provision::devices::below(&place.host, built.folder()).unwrap();
    assert!(found.ends.is_empty(), "{:?}", found.ends);
    assert_eq!(found.roles.values().copied().collect::<Vec<_>>(), [Role::Data, Role::Log]);
    let reached: Vec<PathBuf> =
        found.reached_by_a_sync().iter().map(|device| Path::new("/dev").join(&device.name)).collect();
    let is_reached = |node: &str| match &built.bases[&BaseName(node.to_owned())] {
        Base::Device(path) => reached.contains(path),
        _ => panic!("{node} is a device"),
    };
    assert!(is_reached("slog") && !is_reached("a"), "a sync goes to the log alone: {reached:?}");
    let folder = options_of(&[("directory", text(built.folder().to_str().unwrap()))]);
    let directory = StackSpec::linear("there", vec![("directory", folder)]);
    let there = place.build(&directory).unwrap();
    let (_, promise) = there.facts.promise(there.facts.data.as_ref(), Claim::HoldsFlushesBack).unwrap();
    assert_eq!(promise.source, "zfs sync=disabled");
    assert_eq!(there.facts.promise(there.facts.data.as_ref(), Claim::HiddenBelow), None);
    let roles: Vec<Role> = there.facts.node("directory").unwrap().inputs.iter().map(|input| input.role).collect();
    assert_eq!(roles, [Role::Data, Role::Log]);
    clean(place, &built);
}

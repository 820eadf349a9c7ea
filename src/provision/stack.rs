//! Builds a whole stack, each node on its inputs, and reads back the result.
//!
//! Teardown is not here: it is the walk of [`super::undo`] down to [`BuiltStack::mark`], the same after a success, a
//! failure and a crash.

use super::by_hand::Script;
use super::facts::{self, Bases};
use super::images::Images;
use super::{
    Base, Built, Details, Layer, LayerInput, Site, Space, Unmet, disk, knobs, layer, precondition, zfs_places,
    zfs_tools,
};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::extents::Pieces;
use crate::record::age::PoolRoom;
use crate::record::built::StackFacts;
use crate::record::options::Options;
use crate::record::stack::{BaseKind, BaseName, End, NodeSpec, Role, StackSpec};
use crate::units::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq)]
pub struct BuiltStack {
    /// Folders for the parts of the database: always the data, others if the plan says so. Users other than root may
    /// traverse them; their owner is root, or us.
    pub folders: BTreeMap<End, PathBuf>,
    /// Bases provided by each node.
    pub bases: Bases,
    /// Facts as read back.
    pub facts: StackFacts,
    /// All its ledger entries have this number or a higher one.
    pub mark: u64,
}

impl BuiltStack {
    pub fn folder(&self) -> &PathBuf {
        // Building fails without one.
        &self.folders[&End::Data]
    }

    /// Free and used space of the ZFS pool below the data; `None` without one.
    ///
    /// # Errors
    /// With the tool's own message.
    pub fn pool_room(&self, host: &Host) -> Result<Option<PoolRoom>> {
        self.pool_of_data().map(|pool| zfs_tools::room(host, pool)).transpose()
    }

    /// Maximum size of the filesystem's own cache of the data files: the ARC for a dataset, 0 if its `primarycache`
    /// excludes them. `None` if the page cache serves them.
    ///
    /// # Errors
    /// If the output of ZFS cannot be parsed.
    pub fn cache_bytes_max(&self, host: &Host) -> Result<Option<u64>> {
        match self.facts.mount().filter(|mount| mount.fstype == "zfs") {
            Some(mount) if mount.is_kept_by_arc() => zfs_tools::arc_bytes_max(host),
            other => Ok(other.map(|_| 0)),
        }
    }

    /// Number of pieces of a data file on a filesystem that does not report extents; `None` if no other method is
    /// available.
    ///
    /// # Errors
    /// With the tool's own message.
    pub(crate) fn pieces(&self, host: &Host, file: &Path) -> Result<Option<Pieces>> {
        let dataset = self.facts.mount().filter(|mount| mount.fstype == "zfs").map(|mount| &mount.source);
        dataset.map(|dataset| zfs_places::pieces(host, dataset, file)).transpose()
    }

    /// The pool below the data; `None` if there are several, or none.
    fn pool_of_data(&self) -> Option<&str> {
        // An existing folder of the machine has no node for its pool.
        let mount = self.facts.mount().filter(|mount| mount.fstype == "zfs");
        let of_mount = mount.and_then(|mount| mount.source.split('/').next());
        // A filesystem on a volume of a pool does not name the pool.
        let way = self.facts.way_down(self.facts.data.as_ref()).into_iter().filter(|(_, role, _)| *role == Role::Data);
        let names = way.flat_map(|(_, _, node)| node.bases.iter().map(|of| BaseName::of(&node.name, &of.name)));
        let below: BTreeSet<&str> = names.filter_map(|name| self.bases.get(&name).and_then(pool_name)).collect();
        of_mount.or_else(|| below.first().copied().filter(|_| below.len() == 1))
    }

    /// Reason that a layer below the filesystems accepts no more writes, such as a full thin pool; `None` if all have
    /// room.
    ///
    /// # Errors
    /// With the tool's own message.
    pub(crate) fn full_below(&self, host: &Host, spec: &StackSpec) -> Result<Option<String>> {
        for node in &spec.nodes {
            if let Some(why) = known(node)?.full(host, &inputs(node, &self.bases)?, &node.options)? {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    /// True if a text names this stack: one of its folders, or a pool that it has built.
    pub fn is_named_in(&self, text: &str) -> bool {
        let folders = self.folders.values().map(|folder| folder.display().to_string());
        let pools = self.bases.values().filter_map(pool_name).map(str::to_owned);
        folders.chain(pools).any(|name| text.contains(&name))
    }

    /// Names of the ZFS pools below it: those it has built, and those of the datasets that hold its folders.
    pub fn pools(&self) -> Vec<String> {
        let built = self.bases.values().filter_map(pool_name);
        let mounts = self.facts.nodes.iter().flat_map(|node| &node.bases).filter_map(|facts| facts.mount.as_ref());
        let of_mounts = mounts.filter(|mount| mount.fstype == "zfs").filter_map(|mount| mount.source.split('/').next());
        let names: BTreeSet<&str> = built.chain(of_mounts).collect();
        names.into_iter().map(str::to_owned).collect()
    }
}

fn pool_name(base: &Base) -> Option<&str> {
    let Base::Pool(name) = base else { return None };
    Some(name)
}

/// Builds a stack bottom-up and reads back what is there.
///
/// The layer's own, prefixed by the stack and node. Everything made so far is in the ledger: the caller takes
/// [`super::ledger::Ledger::mark`] before and undoes down to it.
pub fn build_stack(site: &Site<'_>, spec: &StackSpec) -> Result<BuiltStack> {
    stand_up(site, spec, Bases::new(), "build", <dyn Layer>::build)
}

/// Reopens a stack: the bases in `there` are used as they are (devices that survived a crash, or copies of them), and
/// every node above is opened on them without being made anew.
///
/// # Errors
/// As [`build_stack`].
pub fn reopen_stack(site: &Site<'_>, spec: &StackSpec, there: Bases) -> Result<BuiltStack> {
    stand_up(site, spec, there, "reopen", <dyn Layer>::reopen)
}

/// Builds nodes that hold no database, such as a drive by itself; returns their bases and facts.
///
/// # Errors
/// As [`build_stack`].
pub(super) fn stand_alone(site: &Site<'_>, spec: &StackSpec) -> Result<(Bases, Vec<Details>)> {
    let (bases, nodes) = raise(site, spec, Bases::new(), "build", <dyn Layer>::build)?;
    Ok((bases, nodes.into_iter().map(|(_, built)| built.details).collect()))
}

/// [`Layer::build`] or [`Layer::reopen`].
type Act = fn(&'static dyn Layer, &Site<'_>, &[LayerInput], &Options) -> Result<Built>;

fn stand_up(site: &Site<'_>, spec: &StackSpec, there: Bases, verb: &str, act: Act) -> Result<BuiltStack> {
    let mark = site.ledger.mark();
    let (bases, mut nodes) = raise(site, spec, there, verb, act)?;
    for (node, built) in &mut nodes {
        let doing = |e: Error| e.while_doing(format!("finish `{}` of the stack {}", node.name, spec.name));
        known(node)?.finish(site.host, &node.options, &mut built.details).map_err(doing)?;
        knobs::still_set(site.host, &built.bases, &node.options).map_err(doing)?;
        if precondition::asked(&node.options).is_some() {
            knobs::still_without_discards(site.host, &built.bases).map_err(doing)?;
        }
    }
    let folders = folders(spec, &bases)?;
    let facts = facts::read_back(site.host, spec, &nodes, &bases, &folders)?;
    Ok(BuiltStack { folders, bases, facts, mark })
}

/// Adds the stack to a script, with the values that a run found. Returns the folders for the parts of the database.
///
/// # Errors
/// If a layer exists only for a measurement.
pub fn by_hand(script: &mut Script, spec: &StackSpec, found: Option<&StackFacts>) -> Result<BTreeMap<End, PathBuf>> {
    let mut bases = Bases::new();
    for node in &spec.nodes {
        let layer = known(node)?;
        let from = script.enter(node);
        let built = layer.by_hand(script, &inputs(node, &bases)?, &node.options);
        let built = built.map_err(|e| e.while_doing(format!("write commands for `{}`", node.name)))?;
        knobs::queue_by_hand(script, &built, &node.options);
        let values = found.and_then(|found| found.node(&node.name)).map(facts::lasting).unwrap_or_default();
        script.end(from, &values);
        bases.extend(names(layer, node).into_iter().zip(built));
    }
    folders(spec, &bases)
}

/// The names of a node's bases.
fn names(layer: &dyn Layer, node: &NodeSpec) -> Vec<BaseName> {
    layer.bases(&node.options).iter().map(|base| BaseName::of(&node.name, base)).collect()
}

/// The bases and the nodes of a stack.
type Raised<'n> = (Bases, Vec<(&'n NodeSpec, Built)>);

/// Builds or opens the nodes of a stack, each on its inputs.
fn raise<'n>(site: &Site<'_>, spec: &'n StackSpec, there: Bases, verb: &str, act: Act) -> Result<Raised<'n>> {
    let given = !there.is_empty();
    let mut bases = there;
    let mut nodes = Vec::new();
    for node in &spec.nodes {
        site.interrupt.check()?;
        let doing =
            |e: Error| e.while_doing(format!("{verb} `{}` ({}) of the stack {}", node.name, node.layer, spec.name));
        let layer = known(node)?;
        let names = names(layer, node);
        if given && names.iter().all(|name| bases.contains_key(name)) {
            let there: Vec<Base> = names.iter().map(|name| bases[name].clone()).collect();
            let promises = knobs::set_queue(site.host, site.ledger, &there, &node.options).map_err(doing)?;
            nodes.push((node, Built { bases: Vec::new(), details: Details::new(), promises }));
            continue;
        }
        let image = site.images.get(&node.name).map(PathBuf::as_path);
        let own = Site { name: format!("{}.{}", site.name, node.name), folder: site.folder.clone(), image, ..*site };
        let mut built = act(layer, &own, &inputs(node, &bases)?, &node.options).map_err(doing)?;
        if let Some(twice) = names.iter().find(|name| bases.contains_key(name)) {
            return Err(Error::bug(format!("two nodes of the stack {} are named `{twice}`", spec.name)));
        }
        let offered = built.bases.len();
        if offered != names.len() {
            return Err(Error::bug(format!("the layer {} returned {offered} bases for {names:?}", node.layer)));
        }
        let promises = knobs::set_queue(site.host, site.ledger, &built.bases, &node.options).map_err(doing)?;
        built.promises.extend(promises);
        let discards = precondition::keep_full(site, &built.bases, &node.options).map_err(doing)?;
        built.details.extend(discards.map(|seen| ("discards".to_owned(), seen.to_owned())));
        bases.extend(names.into_iter().zip(built.bases.iter().cloned()));
        nodes.push((node, built));
    }
    Ok((bases, nodes))
}

pub(super) fn inputs(node: &NodeSpec, bases: &Bases) -> Result<Vec<LayerInput>> {
    let given = node.inputs.iter().map(|input| match bases.get(&input.from).cloned() {
        Some(base) => Ok(LayerInput { role: input.role, group: input.group.clone(), base }),
        None => Err(Error::bug(format!("`{}` uses `{}`, which does not exist", node.name, input.from))),
    });
    let given: Vec<LayerInput> = given.collect::<Result<_>>()?;
    for take in known(node)?.info().takes {
        let fitting = given.iter().filter(|given| given.role == take.role && given.base.kind() == take.kind).count();
        if !(take.least..=take.most).contains(&fitting) {
            let (least, most, kind) = (take.least, take.most, take.kind.word());
            let message = format!("`{}` needs {least} to {most} inputs of kind {kind}, but has {fitting}", node.name);
            return Err(Error::user(message));
        }
    }
    Ok(given)
}

fn folders(spec: &StackSpec, bases: &Bases) -> Result<BTreeMap<End, PathBuf>> {
    let folders = spec.ends().into_iter().map(|(end, name)| match bases.get(name) {
        Some(Base::Folder(path)) => Ok((end, path.clone())),
        _ => Err(Error::user(format!("the stack {} puts the {end} on `{name}`, which is not a folder", spec.name))),
    });
    folders.collect()
}

pub(super) fn known(node: &NodeSpec) -> Result<&'static dyn Layer> {
    layer(&node.layer).ok_or_else(|| Error::user(format!("no such layer: `{}`", node.layer)))
}

/// Everything this machine lacks for a stack, including free space, given the existing images. Reads, never changes;
/// each item is reported once.
pub fn unmet(host: &Host, spec: &StackSpec, there: &Images) -> Vec<Unmet> {
    let mut all: Vec<Unmet> = Vec::new();
    let layers = spec.nodes.iter().filter_map(|node| Some((layer(&node.layer)?, &node.options)));
    let of_layers = layers.flat_map(|(layer, options)| layer.unmet(host, options));
    let lacking = there.lacking(spec).into_iter().map(|image| Space::Image(image.folder, image.size));
    let others = spaces(spec).into_iter().filter(|space| !matches!(space, Space::Image(..)));
    let spaces: Vec<Space> = lacking.chain(others).collect();
    for one in of_layers
        .chain(lacking_below(host, spec))
        .chain(claimed_twice(spec))
        .chain(super::needs::lacking_space(host, &spaces))
    {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

/// Requirements of layers that the known sizes of the devices below do not meet.
fn lacking_below(host: &Host, spec: &StackSpec) -> Vec<Unmet> {
    let nodes = spec.nodes.iter();
    let lacking =
        nodes.filter_map(|node| layer(&node.layer)?.lacks_below(&node.options, &sizes_below(Some(host), spec, node)?));
    lacking.collect()
}

/// What mkfs said of arguments on devices of some sizes: its command, exit code and last lines where it refused them.
pub type MkfsAnswers = BTreeMap<String, Option<String>>;

/// Arguments that mkfs refuses, with its words, on everything but real disks, whose sizes it does not ask for, and with no
/// log apart: a device may have what a file has not.
pub fn mkfs_refused(host: &Host, spec: &StackSpec, known: &mut MkfsAnswers) -> Vec<(Vec<String>, String)> {
    let found = spec.nodes.iter().filter(|node| node.options.get("mkfs").is_some()).filter_map(|node| {
        let sizes = sizes_below(None, spec, node).filter(|sizes| sizes.len() == node.inputs.len())?;
        let ask = || layer(&node.layer)?.refused(host, &node.options, &sizes);
        let said = known.entry(format!("{} {:?} {sizes:?}", node.layer, node.options)).or_insert_with(ask);
        Some((node.options.texts("mkfs"), said.clone()?))
    });
    found.collect()
}

/// Disks claimed by two nodes of a stack: the second would format what the first has made.
fn claimed_twice(spec: &StackSpec) -> Vec<Unmet> {
    let mut claimed: BTreeMap<String, &str> = BTreeMap::new();
    let mut twice = Vec::new();
    for node in &spec.nodes {
        let Some(claim) = layer(&node.layer).and_then(|layer| layer.claims(&node.options)) else { continue };
        if let Some(first) = claimed.insert(claim.clone(), &node.name) {
            let what = format!("a separate disk for `{}`: `{first}` already uses {claim}", node.name);
            twice.push(Unmet { what, hint: "give each node of the stack its own disk".to_owned() });
        }
    }
    twice
}

/// Shared space that a stack takes. Needs of stacks that stand at the same time add up: see
/// [`super::needs::lacking_space`].
pub fn spaces(spec: &StackSpec) -> Vec<Space> {
    spec.nodes.iter().filter_map(|node| layer(&node.layer)?.space(&node.options)).collect()
}

/// True if several such stacks may stand at once: on devices that are made for each, in memory, or in private folders.
pub fn may_be_several(spec: &StackSpec) -> bool {
    let is_only = |node: &NodeSpec| layer(&node.layer).is_some_and(|layer| layer.claims(&node.options).is_some());
    let is_made = |node: &NodeSpec| {
        let is_folder = |layer: &dyn Layer| matches!(layer.info().offers, BaseKind::Folder);
        layer(&node.layer).is_some_and(|layer| is_folder(layer) || layer.space(&node.options).is_some())
    };
    !spec.nodes.iter().any(is_only) && spec.nodes.iter().filter(|node| node.inputs.is_empty()).all(is_made)
}

/// Maximum capacity of a base, if it is known before the build.
pub fn capacity(spec: &StackSpec, base: &BaseName) -> Option<Bytes> {
    size(None, spec, spec.node(base.node())?)
}

/// As [`capacity`] for a node, using the disk sizes of a machine, if given.
pub(super) fn size(host: Option<&Host>, spec: &StackSpec, node: &NodeSpec) -> Option<Bytes> {
    if let Some(host) = host.filter(|_| node.layer == disk::NAME) {
        return disk::size(host, &node.options);
    }
    layer(&node.layer)?.capacity(&node.options, &sizes_below(host, spec, node)?)
}

/// Capacities of a node's data inputs, if all are known.
fn sizes_below(host: Option<&Host>, spec: &StackSpec, node: &NodeSpec) -> Option<Vec<Bytes>> {
    let data = node.inputs.iter().filter(|input| input.role == Role::Data);
    data.map(|input| size(host, spec, spec.node(input.from.node())?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::users;
    use crate::provision::test_site;
    use crate::record::built::{BaseFacts, NodeFacts};
    use crate::record::facts::MountFacts;
    use crate::record::stack::Input;

    fn node(name: &str, on: &[(&str, Role)]) -> NodeFacts {
        let input = |(from, role): &(&str, Role)| Input { from: named(from), role: *role, group: None };
        let inputs = on.iter().map(input).collect();
        NodeFacts { name: name.to_owned(), inputs, bases: vec![BaseFacts::default()], ..NodeFacts::default() }
    }

    fn named(name: &str) -> BaseName {
        BaseName(name.to_owned())
    }

    #[test]
    fn a_device_too_small_for_its_filesystem_is_told_before_anything_is_built() {
        let lacking = |size: &str, mkfs: Options| {
            let image = test_site::options_of(&[("loop", test_site::text(size))]);
            lacking_below(&Host::this(), &test_site::stack("s", vec![("loop", image), ("xfs", mkfs)]))
        };
        let told = &lacking("200MiB", Options::default())[0].what;
        assert_eq!(told, "a device of at least 300 MiB for mkfs.xfs: `xfs` has 200 MiB below it");
        assert_eq!(lacking("300MiB", Options::default()), []);
        assert_eq!(lacking("200MiB", test_site::mkfs(&["--unsupported"])), []);
    }

    fn refused(device: &str, filesystem: &str, arguments: &[&str]) -> Vec<(Vec<String>, String)> {
        let main = if device == "disk" { "/dev/disk" } else { "2GiB" };
        let size = test_site::options_of(&[(device, test_site::text(main))]);
        let stack = test_site::stack("s", vec![(device, size), (filesystem, test_site::mkfs(arguments))]);
        mkfs_refused(&Host::this(), &stack, &mut MkfsAnswers::new())
    }

    #[test]
    fn mkfs_itself_judges_its_arguments() {
        let of = [
            ("xfs", ["-m", "crc=1"], ["-O", "bigalloc"], "unknown option -O"),
            ("ext4", ["-O", "bigalloc"], ["-O", "bigaloc"], "Invalid filesystem option set: bigaloc"),
            ("btrfs", ["-n", "16k"], ["-n", "3k"], "illegal nodesize 3072"),
        ];
        for (filesystem, good, bad, says) in of {
            if !Host::this().has_program(&format!("mkfs.{filesystem}")) {
                eprintln!("mkfs.{filesystem} is not here to be asked");
                continue;
            }
            assert_eq!(refused("loop", filesystem, &good), [], "{filesystem}");
            let [(arguments, words)] = &refused("loop", filesystem, &bad)[..] else { panic!("{filesystem}") };
            assert_eq!(arguments, &bad);
            for part in [says, &format!("`mkfs.{filesystem} "), "failed with exit code 1"] {
                assert!(words.contains(part), "{part}: {words}");
            }
        }
    }

    #[test]
    fn a_stray_word_of_mkfs_is_not_written() {
        let stray = format!("pgstrata-stray-{}", std::process::id());
        let path = Path::new("/").join(&stray);
        if !users::is_root()
            || !Host::this().has_program("mkfs.btrfs")
            || std::fs::write(&path, vec![1; 1 << 20]).is_err()
        {
            println!("skipped: a stray word of mkfs: needs root, mkfs.btrfs and a root folder that can be written");
            return;
        }
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(512 << 20).unwrap();
        let said = refused("loop", "btrfs", &["-f", &stray]);
        let kept = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(kept[..1 << 20].iter().all(|byte| *byte == 1) && kept[1 << 20..].iter().all(|byte| *byte == 0));
        assert!(said[0].1.contains("Permission denied") || said[0].1.contains("cannot open"), "{said:?}");
    }

    #[test]
    fn mkfs_is_not_asked_where_a_real_disk_is_below() {
        assert_eq!(refused("loop", "xfs", &[]), []);
        assert_eq!(refused("disk", "xfs", &["-O", "bigalloc"]), []);
    }

    /// A volume of the pool `tank` with a filesystem on it, an image with another whose journal is on such a volume,
    /// and an existing dataset of the machine; the data is on the one named.
    fn with_data_on(name: &str) -> BuiltStack {
        let mut own = node("own", &[]);
        let mount = MountFacts { fstype: "zfs".to_owned(), source: "rpool/home".to_owned(), ..MountFacts::default() };
        own.bases[0].mount = Some(mount);
        let on_image = node("on-image", &[("image", Role::Data), ("volume", Role::Log)]);
        let volume = node("volume", &[("pool", Role::Data)]);
        let on_volume = node("on-volume", &[("volume", Role::Data)]);
        let nodes = vec![node("pool", &[]), volume, on_volume, node("image", &[]), on_image, own];
        BuiltStack {
            folders: [(End::Data, PathBuf::from("/run/stack/fs"))].into(),
            bases: [(named("pool"), Base::Pool("tank".to_owned()))].into(),
            facts: StackFacts { nodes, data: Some(named(name)), ..StackFacts::default() },
            mark: 0,
        }
    }

    #[test]
    fn the_data_pool_is_the_one_without_an_image_between() {
        let pool = |name: &str| with_data_on(name).pool_of_data().map(str::to_owned);
        assert_eq!((pool("on-volume").as_deref(), pool("own").as_deref()), (Some("tank"), Some("rpool")));
        assert_eq!(pool("on-image"), None);
    }

    #[test]
    fn tools_name_stacks_by_mount_point_or_own_pool() {
        let stack = with_data_on("own");
        assert!(
            stack.is_named_in("mkdir: cannot create directory '/run/stack/fs/pgstrata-a3': No space left on device")
        );
        assert!(stack.is_named_in("cannot create snapshot 'tank@pgstrata-a3': out of space"));
        assert!(!stack.is_named_in("write /var/lib/state/aside: No space left on device"));
        assert!(!stack.is_named_in("write /rpool/state/aside: No space left on device"));
    }
}

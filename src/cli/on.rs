//! `--on`: a plan of image files on the user's own disks or in folders.
//!
//! A disk replaces an image file whole, unless the size of that file matters: in a quick run, which should stay short,
//! and if the stack is filled. Then a part of the disk, as large as the file, replaces it. A stack that itself uses
//! parts of its device, such as zones, gets the whole disk.

use super::init::{self, StackPlace};
use super::out::harmless;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::provision::{disk, layer, precondition};
use crate::record::case::CaseSpec;
use crate::record::options::{OptionValue, Options};
use crate::record::stack::{BaseName, Input, NodeSpec, Role, StackSpec};
use crate::units::Bytes;
use std::collections::BTreeSet;

/// Layer of image files, its option for the folder, and the layers that replace it.
const IMAGE: &str = "loop";
const FOLDER: &str = "in";
const DISK: &str = "disk";
const PART: &str = "linear";
/// Key for the only device of a stack, which has no name.
const ONLY: &str = "device";
/// Alignment of parts of a disk, bytes.
const STEP: u64 = 1 << 20;
/// Options of the device itself, and so of the part that replaces an image.
const OF_DEVICE: [&str; 2] = [precondition::PRECONDITION.key, precondition::PRECONDITION_ROUND.key];

/// One `--on`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Placement {
    /// Name of the device; `None` for every device not named by another target.
    device: Option<String>,
    place: StackPlace,
}

/// Puts the image files of the cases into folders, or replaces them by disks; `asked` are `DISK`, `FOLDER`,
/// `DEVICE=DISK` or `DEVICE=FOLDER`. Returns what was replaced.
///
/// # Errors
/// If one of them is neither, or a disk is in use; if a device of a stack would have no place, or share its disk.
pub fn put(host: &Host, cases: &mut [CaseSpec], quick: bool, asked: &[String]) -> Result<String> {
    let found = disk::found(host);
    let targets = asked.iter().map(|text| {
        let (device, on) = split(text);
        Ok(Placement { device: device.map(str::to_owned), place: init::place(on, &found)? })
    });
    let targets = targets.collect::<Result<Vec<Placement>>>()?;
    let parts = replace(cases, quick, &targets)?;
    let of_parts = if parts {
        "; where size matters, only part of each disk is used, as large as the image file (`linear`)"
    } else {
        ""
    };
    let shown: Vec<String> = asked.iter().map(|one| format!("--on {}", harmless(one))).collect();
    Ok(format!("the plan's image files are placed by {}{of_parts}", shown.join(" ")))
}

/// Splits into device and place. A path may contain `=` too.
fn split(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((device, on)) if !device.is_empty() && !device.contains(['/', '.']) => (Some(device), on),
        _ => (None, text),
    }
}

/// True if parts of disks were used.
fn replace(cases: &mut [CaseSpec], quick: bool, targets: &[Placement]) -> Result<bool> {
    let names: BTreeSet<String> =
        cases.iter().flat_map(|case| images(&case.stack).map(|node| named(node).to_owned())).collect();
    if names.is_empty() {
        return Err(Error::user("no stack of the plan has an image file that --on could place")
            .hint("copy the plan and name your devices in it"));
    }
    check(targets, &names)?;
    let mut parts = false;
    for case in cases {
        let stack_name = case.stack.name.clone();
        let mut placed: Vec<(String, usize, &StackPlace)> = Vec::new();
        for (at, node) in case.stack.nodes.iter().enumerate().filter(|(_, node)| node.layer == IMAGE) {
            let device = named(node);
            let place = place(targets, device).ok_or_else(|| {
                Error::user(format!(
                    "--on places no disk or folder for the device `{device}` of the stack {stack_name}"
                ))
                .hint(format!("add --on {device}=DISK, or --on {device}=FOLDER for its image file"))
            })?;
            if let StackPlace::Disk { path, .. } = place
                && let Some((first, ..)) = placed.iter().find(|(.., other)| *other == place)
            {
                let both =
                    format!("the devices `{first}` and `{device}` of the stack {stack_name} would be one disk, {path}");
                return Err(Error::user(both).hint(format!("name a disk for each: {}", example(&names))));
            }
            placed.push((device.to_owned(), at, place));
        }
        // Checked before a part of one device is inserted.
        let has_parts = case.stack.nodes.iter().any(|node| node.layer == PART);
        let is_part = (quick || case.age.get("fill").is_some()) && !has_parts;
        // The last first: a part adds a node, and the places before it stay.
        for (_, at, place) in placed.into_iter().rev() {
            match place {
                StackPlace::Loop => {}
                StackPlace::Folder(folder) => {
                    case.stack.nodes[at].options.set(FOLDER, OptionValue::Text(folder.clone()));
                }
                StackPlace::Disk { path, key, value } => parts |= on_disk(case, at, is_part, path, (*key, value))?,
            }
        }
    }
    Ok(parts)
}

fn images(stack: &StackSpec) -> impl Iterator<Item = &NodeSpec> {
    stack.nodes.iter().filter(|node| node.layer == IMAGE)
}

/// Name of a device in the plan.
fn named(node: &NodeSpec) -> &str {
    if node.name == IMAGE { ONLY } else { &node.name }
}

/// Checks that each device exists and is named once.
fn check(targets: &[Placement], names: &BTreeSet<String>) -> Result<()> {
    for (n, target) in targets.iter().enumerate() {
        if targets[..n].iter().any(|earlier| earlier.device == target.device) {
            let of =
                target.device.as_ref().map_or_else(|| "without a device".to_owned(), |name| format!("for `{name}`"));
            return Err(
                Error::user(format!("two --on {of}")).hint(format!("name each device once: {}", example(names)))
            );
        }
        if let Some(name) = target.device.as_ref().filter(|name| !names.contains(*name)) {
            let name = harmless(name);
            let what = format!("no stack of the plan has an image file for a device named `{name}`");
            let hint = if names.iter().eq([ONLY]) {
                "each stack has one device, without a name: write --on DISK or --on FOLDER".to_owned()
            } else {
                format!("there are: {}", names.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
            };
            return Err(Error::user(what).hint(hint));
        }
    }
    Ok(())
}

/// `--on data=DISK --on log=DISK`.
fn example(names: &BTreeSet<String>) -> String {
    let named: Vec<&String> = names.iter().filter(|name| *name != ONLY || names.len() == 1).collect();
    named.iter().map(|name| format!("--on {name}=DISK")).collect::<Vec<_>>().join(" ")
}

/// Place of a device: of the `--on` that names it, else of one without a name. If there is neither, a stack's only device,
/// which has no name, uses the first `--on`: in `--on data=A --on log=B` that is A.
fn place<'t>(targets: &'t [Placement], device: &str) -> Option<&'t StackPlace> {
    let named = targets.iter().find(|target| target.device.as_deref() == Some(device));
    let unnamed = targets.iter().find(|target| target.device.is_none());
    let first = targets.first().filter(|_| device == ONLY);
    named.or(unnamed).or(first).map(|target| &target.place)
}

/// Puts a disk where the image file at this place in the stack is. True if a part of the disk was used.
fn on_disk(case: &mut CaseSpec, at: usize, is_part: bool, path: &str, (key, value): (&str, &str)) -> Result<bool> {
    if case.axes.contains_key(IMAGE) {
        return Err(Error::user("the size of the image file is an axis of the plan, and a disk has one size")
            .hint("place the image files in a folder of that disk's filesystem: --on FOLDER"));
    }
    let stack = &mut case.stack;
    let image = stack.nodes[at].clone();
    let mut options = Options::default();
    options.set(DISK, OptionValue::Text(path.to_owned()));
    options.set(key, OptionValue::Text(value.to_owned()));
    options.0.extend(image.options.get("queue").map(|queue| ("queue".to_owned(), queue.clone())));
    let of_device = image.options.0.iter().filter(|(option, _)| OF_DEVICE.contains(&option.as_str()));
    let of_device: Vec<_> = of_device.map(|(option, value)| (option.clone(), value.clone())).collect();
    let is_only = image.name == IMAGE;
    let size = layer(IMAGE).and_then(|layer| layer.capacity(&image.options, &[])).filter(|_| is_part);
    let Some(Bytes(size)) = size else {
        options.0.extend(of_device);
        let node = &mut stack.nodes[at];
        (node.layer, node.options) = (DISK.to_owned(), options);
        if is_only {
            rename(stack, DISK);
        }
        return Ok(false);
    };
    let name = if is_only { DISK.to_owned() } else { format!("{}-{DISK}", image.name) };
    let from = BaseName(name.clone());
    let node = &mut stack.nodes[at];
    (node.layer, node.options) = (PART.to_owned(), Options::default());
    node.options.set("size", OptionValue::Text(format!("{}MiB", size.div_ceil(STEP))));
    node.options.0.extend(of_device);
    node.inputs = vec![Input { from, role: Role::Data, group: None }];
    stack.nodes.insert(at, NodeSpec { name, layer: DISK.to_owned(), options, inputs: Vec::new() });
    if is_only {
        rename(stack, PART);
    }
    Ok(true)
}

/// Renames a node that was named after the image file to its replacement.
fn rename(stack: &mut StackSpec, name: &str) {
    for node in stack.nodes.iter_mut().filter(|node| node.name == IMAGE) {
        name.clone_into(&mut node.name);
    }
    let inputs = stack.nodes.iter_mut().flat_map(|node| &mut node.inputs).map(|input| &mut input.from);
    let ends = std::iter::once(&mut stack.data).chain(&mut stack.wal).chain(stack.tablespaces.values_mut());
    for base in inputs.chain(ends).filter(|base| base.node() == IMAGE) {
        *base = BaseName::of(name, base.base());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::shipped;
    use crate::provision::stack::capacity;

    fn cases(name: &str) -> Vec<CaseSpec> {
        let text = shipped::find(name).unwrap().text;
        crate::plan::parse(text, name, &super::super::catalogue()).unwrap().cases
    }

    fn on(device: Option<&str>, path: &str) -> Placement {
        let place = StackPlace::Disk { path: path.to_owned(), key: "serial", value: format!("S-{path}") };
        Placement { device: device.map(str::to_owned), place }
    }

    fn disks(case: &CaseSpec) -> Vec<(String, String)> {
        let disks = case.stack.nodes.iter().filter(|node| node.layer == DISK);
        disks.map(|node| (node.name.clone(), node.options.text(DISK).unwrap().to_owned())).collect()
    }

    /// True if every node is built on earlier nodes, and the data on one of them.
    fn is_whole(stack: &StackSpec) -> bool {
        let known = |base: &BaseName, below: usize| stack.nodes[..below].iter().any(|node| node.name == base.node());
        let mut nodes = stack.nodes.iter().enumerate();
        nodes.all(|(n, node)| node.inputs.iter().all(|input| known(&input.from, n)))
            && stack.ends().iter().all(|(_, base)| known(base, stack.nodes.len()))
    }

    #[test]
    fn image_files_go_to_a_folder_or_become_a_disk() {
        let mut in_it = cases("separate-wal");
        put(&Host::this(), &mut in_it, false, &["/tmp".to_owned()]).unwrap();
        let images = in_it.iter().flat_map(|case| &case.stack.nodes).filter(|node| node.layer == IMAGE);
        assert!(images.clone().count() > 0 && images.clone().all(|node| node.options.text(FOLDER) == Some("/tmp")));

        let mut on_it = cases("wal-compression");
        let ids: Vec<String> = on_it.iter().map(|case| case.id.clone()).collect();
        assert!(!replace(&mut on_it, false, &[on(None, "/dev/x")]).unwrap());
        for case in &on_it {
            let node = case.stack.node(DISK).unwrap();
            assert_eq!((node.options.text(DISK), node.options.text("serial")), (Some("/dev/x"), Some("S-/dev/x")));
            assert_eq!(node.options.0.len(), 2, "nothing of the image is left");
            assert_eq!(case.stack.nodes[1].inputs[0].from.node(), DISK);
        }
        assert_eq!(on_it.iter().map(|case| case.id.clone()).collect::<Vec<_>>(), ids);
    }

    #[test]
    fn each_device_of_a_stack_gets_its_named_disk() {
        let mut wal = cases("separate-wal");
        replace(&mut wal, false, &[on(Some("data"), "/dev/a"), on(Some("log"), "/dev/b")]).unwrap();
        for case in &wal {
            let expected = match case.stack.name.as_str() {
                "together" => vec![("disk".to_owned(), "/dev/a".to_owned())],
                _ => vec![("data".to_owned(), "/dev/a".to_owned()), ("log".to_owned(), "/dev/b".to_owned())],
            };
            assert_eq!(disks(case), expected, "{}", case.id);
            assert!(is_whole(&case.stack), "{:?}", case.stack);
        }
        for name in ["zfs-recordsize", "zfs-sync"] {
            let mut zfs = cases(name);
            replace(&mut zfs, false, &[on(None, "/dev/a"), on(Some("slog"), "/dev/b")]).unwrap();
            let pool = zfs.iter().find(|case| case.stack.name == "pool").unwrap();
            let log = zfs.iter().find(|case| case.stack.name == "log-device").unwrap();
            assert_eq!((disks(pool).len(), disks(log).len()), (1, 2), "{name}");
        }
    }

    #[test]
    fn a_quick_run_takes_a_part_of_image_file_size() {
        for (name, quick, stack, bytes) in [
            ("pool-ageing", false, "ext4-fill", Some(16 << 30)),
            ("pool-ageing", false, "zfs-fill", Some(16 << 30)),
            ("pool-ageing", false, "ext4-rewrite", None),
            ("wal-compression", true, "ext4", Some(6 << 30)),
        ] {
            let mut all = cases(name);
            let before = all.iter().find(|case| case.stack.name == stack).unwrap().stack.clone();
            assert!(replace(&mut all, quick, &[on(None, "/dev/x")]).unwrap(), "{name}: says that parts are used");
            let case = all.iter().find(|case| case.stack.name == stack).unwrap();
            assert!(is_whole(&case.stack) && disks(case).len() == 1, "{name}: {:?}", case.stack);
            let part = case.stack.nodes.iter().find(|node| node.layer == PART);
            assert_eq!(part.is_some(), bytes.is_some(), "{name} {stack}");
            let Some((part, bytes)) = part.zip(bytes) else { continue };
            let size = layer(PART).unwrap().capacity(&part.options, &[Bytes(1 << 40)]);
            assert_eq!(size, Some(Bytes(bytes)), "{name} {stack}");
            let image = images(&before).next().unwrap();
            assert_eq!(capacity(&before, &BaseName(image.name.clone())), size);
            layer(PART).unwrap().check(&part.options).unwrap();
            layer(DISK).unwrap().check(&case.stack.nodes[0].options).unwrap();
        }
    }

    #[test]
    fn zones_span_the_whole_disk_even_in_a_quick_run() {
        let mut zones = cases("disk-zones");
        assert!(!replace(&mut zones, true, &[on(None, "/dev/x")]).unwrap());
        for case in &zones {
            let layers: Vec<&str> = case.stack.nodes.iter().map(|node| node.layer.as_str()).collect();
            assert_eq!(layers[..2], [DISK, PART], "{}", case.id);
        }
    }

    #[test]
    fn a_disk_part_is_drawn_below_the_device_it_replaces() {
        let mut wal = cases("separate-wal");
        replace(&mut wal, true, &[on(Some("data"), "/dev/a"), on(Some("log"), "/dev/b")]).unwrap();
        let apart = wal.iter().find(|case| case.stack.name == "apart").unwrap();
        assert!(is_whole(&apart.stack), "{:?}", apart.stack);
        let drawn = crate::plan::drawing::drawing(&apart.stack).join("\n");
        let at = |text: &str| drawn.find(text).unwrap_or_else(|| panic!("{text} in\n{drawn}"));
        assert!(at("data: linear") < at("data-disk: disk") && at("data-disk: disk") < at("log: linear"), "{drawn}");
        assert!(drawn.contains("/dev/a") && drawn.contains("/dev/b") && !drawn.contains(IMAGE), "{drawn}");
    }

    #[test]
    fn refusals_say_what_to_write() {
        let refused = |name: &str, targets: &[Placement]| {
            let error = replace(&mut cases(name), false, targets).unwrap_err();
            (error.to_string(), error.hint_text().unwrap_or_default().to_owned())
        };
        let (what, hint) = refused("separate-wal", &[on(None, "/dev/x")]);
        assert!(what.contains("`data` and `log` of the stack apart would be one disk"), "{what}");
        assert!(hint.contains("--on data=DISK --on log=DISK"), "{hint}");
        let (what, hint) = refused("separate-wal", &[on(Some("data"), "/dev/x")]);
        assert!(
            what.contains("the device `log` of the stack apart") && hint.contains("--on log=DISK"),
            "{what} {hint}"
        );
        let (what, hint) = refused("separate-wal", &[on(Some("wal"), "/dev/x")]);
        assert!(what.contains("named `wal`") && hint.contains("data, device, log"), "{what} {hint}");
        let (what, _) = refused("separate-wal", &[on(Some("data"), "/dev/x"), on(Some("data"), "/dev/y")]);
        assert!(what.contains("two --on for `data`"), "{what}");
        let (what, _) = refused("zfs-sync", &[on(None, "/dev/x"), on(None, "/dev/y")]);
        assert!(what.contains("two --on without a device"), "{what}");
    }

    #[test]
    fn what_is_neither_disk_nor_folder_is_refused() {
        let error =
            put(&Host::this(), &mut cases("wal-compression"), false, &["/nowhere/at/all".to_owned()]).unwrap_err();
        assert!(error.hint_text().unwrap().contains("doctor"), "{error}");
        let error = put(&Host::this(), &mut [], false, &["/tmp".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("no image file") || error.to_string().contains("no stack"), "{error}");
        assert_eq!(split("data=/dev/x"), (Some("data"), "/dev/x"));
        assert_eq!(split("/srv/a=b"), (None, "/srv/a=b"));
        assert_eq!(split("./a=b"), (None, "./a=b"));
    }
}

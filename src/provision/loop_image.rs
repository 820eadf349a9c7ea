//! `loop`: a loop device on an image file.
//!
//! Things in the ledger: the `image`; the `device`, by its number, where a loop device is made for it; then the `loop`,
//! which is found again by the image's path, as a number may be somebody else's after a restart.
//!
//! A written image stands below a device of our own making, which takes no discards: what would punch a hole into the
//! file is refused by the driver, zeroing included (drivers/block/loop.c, `lo_fallocate`). The kernel takes no other value
//! for the rest of the device's life, so it goes with the trial.

use super::ledger::Thing;
use super::sysfs::{self, DeviceNumber};
use super::{
    Built, GivenGround, Ground, Layer, Site, Space, Unmet, devices, drives, folder, guard, image_file, images, knobs,
    mount, needs, recorded,
};
use crate::error::{Context, Error, Result};
use crate::host::command::Command;
use crate::host::time::sleep;
use crate::host::{Host, files, loops, paths};
use crate::record::built::{ALLOCATION, SPARSE};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::stack::GroundKind;
use crate::units::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where images lie when the plan does not say.
pub(super) const DEFAULT_FOLDER: &str = "/var/lib/pgstrata";

pub struct LoopImage;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        key: "loop",
        kind: OptionKind::Size,
        required: true,
        default: None,
        doc: "Size of the image file and of the device.",
    },
    OptionSpec {
        key: "in",
        kind: OptionKind::Path,
        required: false,
        default: Some(DEFAULT_FOLDER),
        doc: "Folder for the image file; the device that holds it is the one under test.",
    },
    OptionSpec {
        key: "sparse",
        kind: OptionKind::Boolean,
        required: false,
        default: Some("false"),
        doc: "Create a new sparse file for each trial, which supports discard; otherwise the image is fully written once per run.",
    },
    OptionSpec {
        key: "direct_io",
        kind: OptionKind::Boolean,
        required: false,
        default: Some("true"),
        doc: "Bypass the page cache of the filesystem below (O_DIRECT); an error if that filesystem does not support it.",
    },
    drives::PRECONDITION,
    drives::PRECONDITION_ROUND,
    knobs::QUEUE,
];

fn place(options: &Options) -> &Path {
    Path::new(options.text("in").unwrap_or(DEFAULT_FOLDER))
}

fn is_sparse(options: &Options) -> bool {
    options.boolean("sparse").unwrap_or(false)
}

impl Layer for LoopImage {
    fn name(&self) -> &'static str {
        "loop"
    }

    fn doc(&self) -> &'static str {
        "A loop device on an image file, with direct I/O: uses the disk below without formatting it."
    }

    fn offers(&self) -> GroundKind {
        GroundKind::Device
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        drives::check(options)?;
        match options.size("loop") {
            Some(Bytes(bytes)) if bytes < 1 << 20 || bytes % 4096 != 0 => {
                Err(OptionProblem::at("loop", "an image must be at least 1 MiB and a multiple of 4 KiB"))
            }
            Some(_) => Ok(()),
            None => Err(OptionProblem::at("loop", "the size of the image is missing").help("write it as 6GiB")),
        }
    }

    fn keeps_pages(&self, _options: &Options) -> bool {
        true
    }

    fn unmet(&self, host: &Host, options: &Options) -> Vec<Unmet> {
        let folder = place(options);
        let no_folder = (!paths::is_folder(folder) && folder != Path::new(DEFAULT_FOLDER)).then(|| Unmet {
            what: format!("the folder {} for the image", folder.display()),
            hint: format!("mkdir -p {}", folder.display()),
        });
        let programs = [("losetup", "mount"), ("wipefs", "util-linux")];
        let programs = programs.into_iter().filter_map(|(name, package)| needs::program(host, name, package));
        needs::root().into_iter().chain(needs::loop_devices(host)).chain(programs).chain(no_folder).collect()
    }

    fn capacity(&self, options: &Options, _data: &[Bytes]) -> Option<Bytes> {
        options.size("loop")
    }

    fn space(&self, options: &Options) -> Option<Space> {
        let (folder, size) = (place(options).to_owned(), options.size("loop")?);
        Some(if is_sparse(options) { Space::Disk(folder, size) } else { Space::Image(folder, size) })
    }

    fn build(&self, site: &Site<'_>, _inputs: &[GivenGround], options: &Options) -> Result<Built> {
        let size = options.size("loop").ok_or_else(|| Error::bug("a loop image without a size"))?;
        let direct_io = options.boolean("direct_io").unwrap_or(true);
        let sparse = is_sparse(options);
        let image = match site.image {
            Some(device) if recorded::is_device(device) => return recorded_ground(site, device, options),
            Some(written) => {
                free_for_reuse(site.host, written)?;
                written.to_path_buf()
            }
            None => make_image(site, place(options), size, sparse)?,
        };
        site.interrupt.check()?;
        let wish = LoopWish { direct_io, discards: sparse, sector: sector_below(site.host, &image) };
        let device = attach(site, &image, &wish)?;
        Ok(Built::one(Ground::Device(device.clone()), facts(site.host, &image, &device, sparse)?))
    }

    /// Attaches the image that is there.
    fn reopen(&self, site: &Site<'_>, _inputs: &[GivenGround], options: &Options) -> Result<Built> {
        let image = site.image.ok_or_else(|| Error::user("the layer loop cannot be opened again without its image"))?;
        if recorded::is_device(image) {
            return recorded_ground(site, image, options);
        }
        let (direct_io, sparse) = (options.boolean("direct_io").unwrap_or(true), is_sparse(options));
        let wish = LoopWish { direct_io, discards: sparse, sector: sector_below(site.host, image) };
        let device = attach(site, image, &wish)?;
        Ok(Built::one(Ground::Device(device.clone()), facts(site.host, image, &device, sparse)?))
    }

    /// What the filesystem made of the image and of the device.
    fn finish(&self, host: &Host, _options: &Options, details: &mut BTreeMap<String, String>) -> Result<()> {
        let Some((image, device)) = details.get("image").zip(details.get("device")) else { return Ok(()) };
        let (image, node) = (PathBuf::from(image), guard::BlockDevice::find(Path::new(device))?.node);
        let holes = match image_file::unwritten_of(&image)? {
            Some(holes) => match holes.iter().map(|hole| hole.bytes).sum() {
                0 => "0".to_owned(),
                bytes => format!("{} ({})", holes.len(), Bytes(bytes)),
            },
            None => format!("unknown: {} does not report extents", mount::mount_of(host, &image)?.fstype),
        };
        let discards = match node.number::<u64>(host, "queue/discard_max_bytes") {
            Some(0) => "off",
            Some(_) => "punch holes into the image",
            None => "unknown: the kernel has no queue/discard_max_bytes",
        };
        details.insert("allocated".to_owned(), Bytes(paths::look_at(&image)?.allocated_bytes).to_string());
        details.insert("holes and unwritten ranges".to_owned(), holes);
        details.insert("discards".to_owned(), discards.to_owned());
        Ok(())
    }

    fn undo(&self, host: &Host, thing: &Thing) -> Result<()> {
        match thing.kind.as_str() {
            "image" => remove_image(host, Path::new(thing.mark("path")?)),
            "device" => remove_device(host, thing),
            "loop" => {
                let image = thing.mark("image")?;
                if !folder::has_our_name(Path::new(image)) {
                    return Err(Error::host(format!("{image} is not an image of pgstrata")));
                }
                detach(host, image)
            }
            kind => Err(Error::bug(format!("the layer `loop` does not create a {kind}"))),
        }
    }
}

/// A recorded disk that is a block device already, in place of a loop device on an image.
fn recorded_ground(site: &Site<'_>, device: &Path, options: &Options) -> Result<Built> {
    if !is_sparse(options) {
        refuse_discards(site.host, guard::BlockDevice::find(device)?.node);
    }
    recorded::ground(site.host, device)
}

/// An image for this stack alone: a sparse one, or one that nobody has written before.
fn make_image(site: &Site<'_>, place: &Path, size: Bytes, sparse: bool) -> Result<PathBuf> {
    let free = Bytes(files::free_bytes(&files::nearest_existing(place))?);
    if size > free {
        return Err(Error::host(format!("an image of {size} does not fit into {}: {free} free", place.display()))
            .hint("use a smaller image or another folder, or free some space"));
    }
    let image = images::make_file(site.ledger, place, &format!("{}.img", site.name), !sparse)?;
    if !sparse {
        image_file::fill(&image, size, site.interrupt, &|_| Ok(()))?;
        return Ok(image);
    }
    let making = || format!("create the image {} of {size}", image.display());
    let file =
        files::open_to_change(&image)?.ok_or_else(|| Error::host(format!("{} no longer exists", image.display())))?;
    file.set_len(size.0).and_then(|()| file.sync_all()).or_host(making)?;
    Ok(image)
}

/// Makes sure that nobody uses an image, and that nothing of the trial before can be taken for a filesystem.
fn free_for_reuse(host: &Host, image: &Path) -> Result<()> {
    if !devices_on(host, &image.to_string_lossy()).is_empty() {
        return Err(Error::host(format!("the image {} still has a loop device", image.display())));
    }
    image_file::blank(image)
}

/// Largest sector that a loop device may have: the kernel takes none above a page.
const LARGEST_SECTOR: u32 = 4096;

/// The physical sector of the disk below: mkfs chooses by it. A loop device has one size for both kinds of sectors.
fn sector_below(host: &Host, image: &Path) -> Option<u32> {
    let below = devices::below(host, image).ok()?.devices;
    let sectors = below.iter().filter(|device| device.depth == 0).filter_map(|device| device.physical_block_bytes);
    sectors.max().map(|bytes| bytes.clamp(512, LARGEST_SECTOR))
}

/// How a loop device is to be.
pub(super) struct LoopWish {
    pub direct_io: bool,
    /// Whether it passes discards on, as holes.
    pub discards: bool,
    /// Size of its sectors; the kernel's choice where it is `None`.
    pub sector: Option<u32>,
}

pub(super) fn attach(site: &Site<'_>, image: &Path, wish: &LoopWish) -> Result<PathBuf> {
    let own = if wish.discards { None } else { make_device(site, image)? };
    site.ledger.enter(Thing::new("loop", "loop").with_path("image", image)?)?;
    let mut command = Command::new("losetup").arg(format!("--direct-io={}", on(wish.direct_io)));
    if let Some(sector) = wish.sector {
        command = command.arg("--sector-size").arg(sector.to_string());
    }
    command = match &own {
        Some(device) => command.arg(device),
        None => command.args(["--show", "-f"]),
    };
    let refused = |e: Error| {
        if wish.direct_io {
            e.hint("if the filesystem below does not support direct I/O, set `direct_io = false`")
        } else {
            e
        }
    };
    let output = site.host.run(&command.arg(image)).map_err(refused)?;
    let device = own.unwrap_or_else(|| PathBuf::from(output.stdout.trim()));
    let node = guard::BlockDevice::find(&device)?.node;
    if node.backing_file(site.host).as_deref().map(Path::new) != Some(image) {
        return Err(Error::tool(format!(
            "losetup created {}, but its backing file is not {}",
            device.display(),
            image.display()
        )));
    }
    if !wish.discards {
        refuse_discards(site.host, node);
    }
    match node.flag(site.host, "loop/dio") {
        Some(really) if really == wish.direct_io => Ok(device),
        Some(really) => Err(refused(Error::host(format!(
            "direct I/O of {} is {}, but {} was requested",
            device.display(),
            on(really),
            on(wish.direct_io)
        )))),
        None => Err(Error::host(format!("the kernel does not report whether {} uses direct I/O", device.display()))),
    }
}

/// Loop devices that may be tried before it is said that none can be had.
const MOST_TRIES: u32 = 64;

/// Makes a loop device that nobody else has, entered into the ledger first. `None` where this machine makes none: then one
/// that is there already is taken, whose discards stay as they are.
fn make_device(site: &Site<'_>, image: &Path) -> Result<Option<PathBuf>> {
    let absent = |number: &u32| !site.host.exists(format!("/sys/block/loop{number}"));
    for number in (0..).filter(absent).take(MOST_TRIES as usize) {
        let thing =
            Thing::new("loop", "device").with("number", number.to_string()).with("boot", knobs::boot(site.host));
        let entry = site.ledger.enter(thing.with_path("image", image)?)?;
        let device = PathBuf::from(format!("/dev/loop{number}"));
        match loops::add(number) {
            Ok(()) if paths::exists(&device) => return Ok(Some(device)),
            // Where /dev is a folder of a container, no name appears in it.
            Ok(()) => loops::remove(number).or_host(|| format!("remove {} again", device.display()))?,
            // Somebody else was faster.
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                site.ledger.undone(entry)?;
                continue;
            }
            Err(_) => {}
        }
        site.ledger.undone(entry)?;
        return Ok(None);
    }
    Ok(None)
}

/// Has the device refuse discards, if it is one of ours. What came of it is read back once the stack stands.
fn refuse_discards(host: &Host, node: DeviceNumber) {
    let attribute = node.path_of("queue/discard_max_bytes");
    // A kernel that takes no such value says so in the facts of the image.
    if host.exists(&attribute) {
        drop(host.write(&attribute, "0"));
    }
}

/// Removes a loop device that we made, once it has no file any more.
fn remove_device(host: &Host, thing: &Thing) -> Result<()> {
    let number: u32 = thing.mark("number")?.parse().map_err(|_| Error::bug("a loop device without a number"))?;
    if thing.mark("boot")? != knobs::boot(host) {
        return Ok(());
    }
    for attempt in 0.. {
        let Some(node) = DeviceNumber::named(host, &format!("loop{number}")) else { return Ok(()) };
        match node.backing_file(host) {
            Some(file) if file == thing.mark("image")? => {
                return Err(Error::host(format!("/dev/loop{number} on {file} is still there")));
            }
            // It is another one's by now.
            Some(_) => return Ok(()),
            None => {}
        }
        match loops::remove(number) {
            Ok(()) => break,
            Err(e) if attempt >= mount::BUSY_TRIES => {
                return Err(Error::host(format!("the idle /dev/loop{number} cannot be removed: {e}")));
            }
            // Somebody looks at it: udev does, after each change.
            Err(_) => sleep(mount::BUSY_PAUSE),
        }
    }
    Ok(())
}

fn on(flag: bool) -> &'static str {
    if flag { "on" } else { "off" }
}

/// Filesystems that write each block to a new place, or may do so: a written image keeps no write from allocating.
const COPY_ON_WRITE: &[&str] = &["bcachefs", "btrfs", "f2fs", "nilfs2", "zfs"];

fn facts(host: &Host, image: &Path, device: &Path, sparse: bool) -> Result<BTreeMap<String, String>> {
    let found = paths::look_at(image)?;
    let node = guard::BlockDevice::find(device)?.node;
    let below = mount::mount_of(host, image)?;
    let direct_io = node.flag(host, "loop/dio").map_or("unknown", on);
    let sector =
        node.attribute(host, "queue/logical_block_size").map_or("unknown".to_owned(), |size| format!("{size} B"));
    let details = [
        ("device", device.display().to_string()),
        ("image", image.display().to_string()),
        ("size", Bytes(found.bytes).to_string()),
        (ALLOCATION, if sparse { SPARSE } else { "written" }.to_owned()),
        ("direct I/O", direct_io.to_owned()),
        ("sector size", sector),
        ("filesystem of the image", format!("{} on {}", below.fstype, below.source)),
    ];
    let mut details: BTreeMap<String, String> =
        details.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if COPY_ON_WRITE.contains(&below.fstype.as_str()) {
        let moved = format!("not overwritten in place: {} is copy-on-write", below.fstype);
        details.insert("overwrites".to_owned(), moved);
    }
    Ok(details)
}

/// The loop devices whose file is `image`.
fn devices_on(host: &Host, image: &str) -> Vec<DeviceNumber> {
    sysfs::loops(host).into_iter().filter(|(_, file)| file == image).map(|(node, _)| node).collect()
}

fn detach(host: &Host, image: &str) -> Result<()> {
    for attempt in 0.. {
        let Some(node) = devices_on(host, image).into_iter().next() else { return Ok(()) };
        let name = node.name(host).ok_or_else(|| Error::host(format!("the loop device on {image} has no name")))?;
        let path = Path::new("/dev").join(&name);
        if let Some(user) = guard::BlockDevice::find(&path).and_then(|device| in_use(host, &device))? {
            return Err(Error::host(format!("{} on {image} is in use: {user}", path.display())));
        }
        // losetup succeeds on a device that is still open and leaves the rest to the last close: look again. It fails on
        // one that went away meanwhile: look again, too.
        let detached = host.run(&Command::new("losetup").arg("-d").arg(&path));
        if devices_on(host, image).is_empty() {
            return Ok(());
        }
        if attempt >= mount::BUSY_TRIES {
            let open = || Err(Error::host(format!("{} on {image} is held open by another process", path.display())));
            return detached.map(drop).and_then(|()| open());
        }
        sleep(mount::BUSY_PAUSE);
    }
    Ok(())
}

fn in_use(host: &Host, device: &guard::BlockDevice) -> Result<Option<String>> {
    if guard::is_mounted(host, device)? {
        return Ok(Some("it is mounted".to_owned()));
    }
    Ok(device.node.holders(host).first().map(|holder| format!("{holder} uses it")))
}

fn remove_image(host: &Host, image: &Path) -> Result<()> {
    let name = image.file_name().unwrap_or_default().to_string_lossy();
    if !image.is_absolute() || !name.starts_with(folder::PREFIX) || !name.ends_with(".img") {
        return Err(Error::bug(format!("{} is not the name of a pgstrata image", image.display())));
    }
    let Some(found) = paths::look_for(image)? else { return Ok(()) };
    if found.kind != paths::Kind::RegularFile {
        return Err(Error::host(format!("{} is not the file that pgstrata created", image.display())));
    }
    if !devices_on(host, &image.to_string_lossy()).is_empty() {
        return Err(Error::host(format!("the image {} still has a loop device", image.display())));
    }
    files::remove(image).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::options::OptionValue;
    use std::fs;

    fn sized(size: &str) -> Options {
        let mut options = Options::default();
        options.set("loop", OptionValue::Text(size.to_owned()));
        options
    }

    #[test]
    fn a_size_that_no_device_can_have_is_refused() {
        assert_eq!(LoopImage.check(&sized("6GiB")), Ok(()));
        for bad in ["4kB", "1048577B"] {
            assert_eq!(LoopImage.check(&sized(bad)).unwrap_err().key.as_deref(), Some("loop"), "{bad}");
        }
        assert!(LoopImage.check(&Options::default()).is_err());
    }

    #[test]
    fn only_files_named_like_our_images_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let host = Host::this();
        for name in ["other.img", "pgstrata-x", "pgstrata-folder.img"] {
            let path = place.path().join(name);
            let made = if name.contains("folder") { fs::create_dir(&path) } else { fs::write(&path, "") };
            made.unwrap();
            assert!(remove_image(&host, &path).is_err(), "{name}");
            assert!(path.exists());
        }
        let ours = place.path().join("pgstrata-1.img");
        fs::write(&ours, "").unwrap();
        remove_image(&host, &ours).unwrap();
        assert!(!ours.exists());
        remove_image(&host, &ours).unwrap();
    }
}

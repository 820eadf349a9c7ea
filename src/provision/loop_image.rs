//! `loop`: a loop device on an image file.
//!
//! Ledger entries: the `image`, and the `device` by its number. Both are identified by the inode of the image, which
//! survives renames; a number may belong to another device after a restart.
//!
//! Each image gets a device of our own making, which is removed with the trial. A device on a fully written image takes
//! no discards: the driver refuses everything that would punch a hole into the file, zeroing included
//! (drivers/block/loop.c, `lo_fallocate`). The kernel accepts no other value for the rest of the device's life.

use super::identity::BlockDevice;
use super::image_file::{self, DEFAULT_FOLDER, known, known_by};
use super::ledger::Thing;
use super::sysfs::DeviceNumber;
use super::{
    Base, Built, Details, Layer, LayerInfo, LayerInput, Site, Space, Unmet, devices, guard, knobs, mount, mount_table,
    needs, precondition, recorded,
};
use crate::error::{Context, Error, Result};
use crate::host::files::{self, File};
use crate::host::time::sleep;
use crate::host::{Host, folders, loops, paths, users};
use crate::record::built::{ALLOCATION, SPARSE};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::units::Bytes;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub struct LoopImage;

fn place(options: &Options) -> &Path {
    Path::new(options.text("in").unwrap_or(DEFAULT_FOLDER))
}

fn is_sparse(options: &Options) -> bool {
    options.boolean("sparse").unwrap_or(false)
}

pub(super) const INFO: LayerInfo = LayerInfo::device(
    "loop",
    "A loop device on an image file, with direct I/O: uses the disk below without formatting it.",
    &[
        OptionSpec::required("loop", OptionKind::Size).doc("Size of the image file and of the device."),
        OptionSpec::with_default("in", OptionKind::Path, DEFAULT_FOLDER).doc(
            "Folder for the image file; the device that holds it is the one under test. Only root, or who called \
             pgstrata, may change it and the folders above it.",
        ),
        OptionSpec::with_default("sparse", OptionKind::Boolean, "false").doc(
            "Create a new sparse file for each trial, which supports discard; otherwise the image is fully written \
             once per run.",
        ),
        OptionSpec::with_default("direct_io", OptionKind::Boolean, "true").doc(
            "Bypass the page cache of the filesystem below (O_DIRECT); an error if that filesystem does not support \
             it.",
        ),
        precondition::PRECONDITION,
        precondition::PRECONDITION_ROUND,
        knobs::QUEUE,
    ],
)
.keeping_pages()
.undone_by(&[("image", image_file::remove), ("device", remove_device)]);

impl Layer for LoopImage {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        precondition::check(options)?;
        match options.size("loop") {
            Some(Bytes(bytes)) if bytes < 1 << 20 || bytes % 4096 != 0 => {
                Err(OptionProblem::at("loop", "an image must be at least 1 MiB and a multiple of 4 KiB"))
            }
            Some(_) => Ok(()),
            None => Err(OptionProblem::at("loop", "the size of the image is missing").help("write it as 6GiB")),
        }
    }

    fn unmet(&self, host: &Host, options: &Options) -> Vec<Unmet> {
        let folder = place(options);
        let no_folder = (!paths::is_folder(folder) && folder != Path::new(DEFAULT_FOLDER)).then(|| Unmet {
            what: format!("the folder {} for the image", folder.display()),
            hint: format!("mkdir -p {}", folder.display()),
        });
        let trusted = (paths::is_folder(folder) && users::is_root()).then(|| folders::open_trusted(folder));
        let unsafe_folder = trusted.and_then(Result::err).map(|why| Unmet {
            what: format!("a folder for the image that others cannot change ({why})"),
            hint: format!("set `in` to such a folder, as {DEFAULT_FOLDER} is"),
        });
        let wipefs = needs::program(host, "wipefs", "util-linux");
        [needs::root(), needs::loop_devices(host), wipefs, no_folder, unsafe_folder].into_iter().flatten().collect()
    }

    fn space(&self, options: &Options) -> Option<Space> {
        let (folder, size) = (place(options).to_owned(), options.size("loop")?);
        Some(if is_sparse(options) { Space::Disk(folder, size) } else { Space::Image(folder, size) })
    }

    fn build(&self, site: &Site<'_>, _inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let size = options.size("loop").ok_or_else(|| Error::bug("a loop image without a size"))?;
        let image = match site.image {
            Some(device) if recorded::is_device(device) => return recorded::built(site.host, device),
            Some(written) => {
                free_for_reuse(site, written, size)?;
                written.to_path_buf()
            }
            None => make_image(site, place(options), size, is_sparse(options))?,
        };
        site.interrupt.check()?;
        stand(site, &image, options)
    }

    /// Attaches the existing image.
    fn reopen(&self, site: &Site<'_>, _inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let image = site.image.ok_or_else(|| Error::user("the layer loop cannot be opened again without its image"))?;
        if recorded::is_device(image) { recorded::built(site.host, image) } else { stand(site, image, options) }
    }

    /// Reads back how the filesystem treated the image and the device.
    fn finish(&self, host: &Host, _options: &Options, details: &mut Details) -> Result<()> {
        let Some((_, device)) = details.get("image").zip(details.get("device")) else { return Ok(()) };
        let node = BlockDevice::find(Path::new(device))?.node;
        let (file, image) = image_file::behind(host, node)?;
        let holes = match image_file::unwritten(&file, &image)? {
            Some(holes) => match holes.iter().map(|hole| hole.bytes).sum() {
                0 => "0".to_owned(),
                bytes => format!("{} ({})", holes.len(), Bytes(bytes)),
            },
            None => {
                format!("unknown: {} does not report extents", mount::mount_of(host, &image)?.fstype)
            }
        };
        let discards = match node.number::<u64>(host, "queue/discard_max_bytes") {
            Some(0) => "off",
            Some(_) => "punch holes into the image",
            None => "unknown: the kernel has no queue/discard_max_bytes",
        };
        details.insert("allocated".to_owned(), Bytes(paths::look_at_open(&file, &image)?.allocated_bytes).to_string());
        details.insert("holes and unwritten ranges".to_owned(), holes);
        details.insert("discards".to_owned(), discards.to_owned());
        Ok(())
    }
}

/// Attaches a loop device to an image that needs no more writing.
fn stand(site: &Site<'_>, image: &Path, options: &Options) -> Result<Built> {
    let (direct_io, sparse) = (options.boolean("direct_io").unwrap_or(true), is_sparse(options));
    let wish = LoopWish { direct_io, discards: sparse, sector: sector_below(site, image) };
    read_back(site.host, attach(site, image, &wish)?, sparse)
}

/// Makes an image for this stack alone: a sparse one, or one written in full that is not shared by trials.
fn make_image(site: &Site<'_>, place: &Path, size: Bytes, sparse: bool) -> Result<PathBuf> {
    let free = Bytes(files::free_bytes(&files::nearest_existing(place))?);
    if size > free {
        return Err(Error::host(format!("an image of {size} does not fit into {}: {free} free", place.display()))
            .hint("use a smaller image or another folder, or free some space"));
    }
    let image = image_file::make_file(site, place, &format!("{}.img", site.name), !sparse)?;
    let file = image_file::opened(site.ledger, &image)?;
    if sparse {
        let made = file.set_len(size.0).and_then(|()| file.sync_all());
        made.or_host(|| format!("create the image {} of {size}", image.display()))?;
    } else {
        image_file::fill(&file, &image, size, site.interrupt, &|_| Ok(()))?;
    }
    Ok(image)
}

/// Checks that nobody uses an image, and erases whatever could be taken for a filesystem of the previous trial.
fn free_for_reuse(site: &Site<'_>, image: &Path, size: Bytes) -> Result<()> {
    let file = image_file::opened(site.ledger, image)?;
    let found = paths::look_at_open(&file, image)?;
    let boot = knobs::boot(site.host);
    let stands = |thing: &Thing| thing.kind == "device" && thing.marks.get("boot") == Some(&boot);
    let is_on_it = |thing: &Thing| known(thing) == Some((found.filesystem, found.inode));
    // Those of a boot that a crash has ended are worked off with the session.
    if site.ledger.open_things().iter().any(|(_, thing)| stands(thing) && is_on_it(thing)) {
        return Err(Error::host(format!("the image {} still has a loop device", image.display())));
    }
    if found.bytes != size.0 {
        let message = format!("the image {} has {} by now, not {size}", image.display(), Bytes(found.bytes));
        return Err(Error::host(message).hint("find out who truncates or extends it"));
    }
    image_file::blank(&file, image)
}

/// Maximum sector size of a loop device: the kernel accepts none above a page.
const LARGEST_SECTOR: u32 = 4096;

/// Physical sector size of the disk below: mkfs chooses by it. A loop device has one size for both kinds of sectors.
fn sector_below(site: &Site<'_>, image: &Path) -> Option<u32> {
    let image = paths::path_now(&*image_file::opened(site.ledger, image).ok()?).ok()?;
    let below = devices::below(site.host, &image).ok()?.devices;
    let sectors = below.iter().filter(|device| device.depth == 0).filter_map(|device| device.physical_block_bytes);
    sectors.max().map(|bytes| bytes.clamp(512, LARGEST_SECTOR))
}

/// Requested properties of a loop device.
pub(super) struct LoopWish {
    pub direct_io: bool,
    /// True to pass discards on as holes.
    pub discards: bool,
    /// Sector size; `None` leaves it to the kernel.
    pub sector: Option<u32>,
}

/// Attaches a loop device to an open image: its name is not looked up again.
pub(super) fn attach(site: &Site<'_>, image: &Path, wish: &LoopWish) -> Result<PathBuf> {
    let file = image_file::opened(site.ledger, image)?;
    let refused = |e: Error| match wish.direct_io {
        true => e.hint("if the filesystem below does not support direct I/O, set `direct_io = false`"),
        false => e,
    };
    let (device, is_own) = configured(site, image, &file, wish).map_err(refused)?;
    let node = BlockDevice::find(&device)?.node;
    let discards = node.path_of("queue/discard_max_bytes");
    // On a device not of our own making the setting would outlast the run until the machine reboots. The result is read
    // back once the stack stands.
    if is_own && !wish.discards && site.host.exists(&discards) {
        drop(site.host.write(&discards, "0"));
    }
    match node.flag(site.host, "loop/dio") {
        Some(really) if really == wish.direct_io => Ok(device),
        Some(really) => {
            let (really, asked) = (on(really), on(wish.direct_io));
            let message = format!("direct I/O of {} is {really}, but {asked} was requested", device.display());
            Err(refused(Error::host(message)))
        }
        None => Err(Error::host(format!("the kernel does not report whether {} uses direct I/O", device.display()))),
    }
}

/// Maximum number of loop devices to try.
const MOST_TRIES: u32 = 64;
/// Ledger mark of a loop device that we make and remove.
const MADE: &str = "made";

/// Attaches a loop device to an image, entered into the ledger first; returns true if we made the device. It gets a
/// number beyond all others, so that a program looking for a free one finds another. If this machine cannot make one (a
/// container with a `/dev` of its own), an existing one is used.
fn configured(site: &Site<'_>, image: &Path, file: &File, wish: &LoopWish) -> Result<(PathBuf, bool)> {
    let names = site.host.names_in("/sys/block");
    let mut there: Vec<u32> = names.iter().filter_map(|name| name.strip_prefix("loop")?.parse().ok()).collect();
    there.sort_unstable();
    let next = there.last().map_or(0, |last| last + 1);
    let new = (next..next + MOST_TRIES).map(|number| (number, true));
    let found = paths::look_at_open(file, image)?;
    let mut lacks_new = None;
    for (number, is_new) in new.chain(there.into_iter().map(|number| (number, false))) {
        let device = PathBuf::from(format!("/dev/loop{number}"));
        if is_new && lacks_new.is_some() || !is_new && !paths::exists(&device) {
            continue;
        }
        let thing = Thing::new("loop", "device").with("number", number.to_string()).with_path("image", image)?;
        let thing = known_by(thing, &found).with("boot", knobs::boot(site.host)).with(MADE, is_new.to_string());
        let entry = site.ledger.enter(thing)?;
        let made = if is_new { loops::add(number) } else { Ok(()) };
        if made.is_ok() && paths::exists(&device) {
            match loops::configure(&device, file, wish.direct_io, wish.sector) {
                Ok(()) => return Ok((device, is_new)),
                // Another program was faster. The walk through the ledger checks a device that we made again.
                Err(e) if e.kind() == ErrorKind::ResourceBusy && is_new => continue,
                Err(e) if e.kind() == ErrorKind::ResourceBusy => {}
                Err(e) => return Err(e).or_host(|| format!("put {} behind {}", image.display(), device.display())),
            }
        } else if made.as_ref().is_err_and(|e| e.kind() != ErrorKind::AlreadyExists) {
            lacks_new = made.err().map(|e| e.to_string());
        } else if made.is_ok() {
            loops::remove(number).or_host(|| format!("remove {} again", device.display()))?;
            lacks_new = Some(format!("{} does not appear", device.display()));
        }
        site.ledger.undone(entry)?;
    }
    let why = lacks_new.unwrap_or_else(|| "all are in use".to_owned());
    Err(Error::host(format!("no loop device is available: {why}"))
        .hint("in a container, share the /dev of the host: `--privileged --volume /dev:/dev`"))
}

/// Detaches a loop device from its image, and removes it if we made it. Leaves it alone if it has another image by now.
fn remove_device(host: &Host, thing: &Thing) -> Result<()> {
    let number: u32 = thing.mark("number")?.parse().map_err(|_| Error::bug("a loop device without a number"))?;
    if thing.mark("boot")? != knobs::boot(host) {
        return Ok(());
    }
    let path = PathBuf::from(format!("/dev/loop{number}"));
    for attempt in 0.. {
        let Some(node) = DeviceNumber::named(host, &format!("loop{number}")) else { return Ok(()) };
        let done = match node.backing_file(host) {
            Some(file) if is_on(&path, &file, thing)? => {
                if let Some(user) = in_use(host, &BlockDevice { path: path.clone(), node })? {
                    return Err(Error::host(format!("{} on {file} is in use: {user}", path.display())));
                }
                // The file is released by the last process that has it open: check again.
                loops::clear(&path).and_then(|()| Err(ErrorKind::ResourceBusy.into()))
            }
            None if thing.mark(MADE)? == "true" => loops::remove(number),
            _ => return Ok(()),
        };
        match done {
            Ok(()) => break,
            Err(e) if attempt >= mount_table::BUSY_TRIES => {
                return Err(Error::host(format!("{} cannot be removed: {e}", path.display()))
                    .hint(format!("`fuser -v {}` shows who has it open", path.display())));
            }
            Err(_) if attempt == 0 => {}
            // Another program has it open: udev does so after each change.
            Err(_) => sleep(mount_table::BUSY_PAUSE),
        }
    }
    Ok(())
}

/// True if the file behind a loop device is the image of the ledger. A recorded disk whose server is dead cannot report
/// its inode: it is identified by its path, in a folder that is ours alone.
fn is_on(device: &Path, file: &str, thing: &Thing) -> Result<bool> {
    match loops::file_of(device) {
        Ok(found) => Ok(Some(found) == known(thing)),
        // It is releasing its file.
        Err(e) if e.raw_os_error() == Some(NO_DEVICE) => Ok(true),
        Err(_) => Ok(file == thing.mark("image")?),
    }
}

const NO_DEVICE: i32 = 6;

fn on(flag: bool) -> &'static str {
    if flag { "on" } else { "off" }
}

/// Filesystems that write each block to a new place, or may do so: even on a fully written image writes allocate.
const COPY_ON_WRITE: &[&str] = &["bcachefs", "btrfs", "f2fs", "nilfs2", "zfs"];

/// The base that a loop device provides.
fn read_back(host: &Host, device: PathBuf, sparse: bool) -> Result<Built> {
    let node = BlockDevice::find(&device)?.node;
    let (file, image) = image_file::behind(host, node)?;
    let found = paths::look_at_open(&file, &image)?;
    let below = mount::mount_of(host, &image)?;
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
    let moves = COPY_ON_WRITE.contains(&below.fstype.as_str());
    let moved = moves.then(|| ("overwrites", format!("not overwritten in place: {} is copy-on-write", below.fstype)));
    Ok(Built::one(Base::Device(device), details.into_iter().chain(moved)))
}

fn in_use(host: &Host, device: &BlockDevice) -> Result<Option<String>> {
    if guard::is_mounted(host, device)? {
        return Ok(Some("it is mounted".to_owned()));
    }
    Ok(device.node.holders(host).first().map(|holder| format!("{holder} uses it")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::options::OptionValue;

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
}

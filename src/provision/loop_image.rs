//! `loop`: a loop device on an image file.
//!
//! Two things in the ledger: the `image`, then the `loop`, which is found again by the image's path, as its number is
//! the kernel's choice and may be somebody else's after a restart.

use super::ledger::Thing;
use super::sysfs::{self, DeviceNumber};
use super::{Built, GivenGround, Ground, Layer, Site, Space, Unmet, folder, guard, knobs, mount, needs};
use crate::error::{Context, Error, Result};
use crate::host::command::Command;
use crate::host::time::sleep;
use crate::host::{Host, files, folders, paths};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::stack::GroundKind;
use crate::units::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where images lie when the plan does not say.
const DEFAULT_FOLDER: &str = "/var/lib/pgstrata";

pub struct LoopImage;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        key: "loop",
        kind: OptionKind::Size,
        required: true,
        default: None,
        doc: "Size of the image file, and of the device.",
    },
    OptionSpec {
        key: "in",
        kind: OptionKind::Path,
        required: false,
        default: Some(DEFAULT_FOLDER),
        doc: "Folder for the image file: the device under test is the one that holds this folder.",
    },
    OptionSpec {
        key: "preallocate",
        kind: OptionKind::Boolean,
        required: false,
        default: Some("false"),
        doc: "Reserve the image's blocks (fallocate; unwritten), until a discard gives them back; else it is sparse.",
    },
    OptionSpec {
        key: "direct_io",
        kind: OptionKind::Boolean,
        required: false,
        default: Some("true"),
        doc: "Pass the page cache of the filesystem below by (O_DIRECT); refused where that filesystem cannot.",
    },
    knobs::QUEUE,
];

fn place(options: &Options) -> &Path {
    Path::new(options.text("in").unwrap_or(DEFAULT_FOLDER))
}

impl Layer for LoopImage {
    fn name(&self) -> &'static str {
        "loop"
    }

    fn doc(&self) -> &'static str {
        "A loop device on an image file, with direct I/O: what the disk below can do, without giving it away."
    }

    fn offers(&self) -> GroundKind {
        GroundKind::Device
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        match options.size("loop") {
            Some(Bytes(bytes)) if bytes < 1 << 20 || bytes % 4096 != 0 => {
                Err(OptionProblem::at("loop", "an image has at least 1 MiB and is a multiple of 4 KiB"))
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
        let programs = [("losetup", "mount"), ("wipefs", "util-linux")];
        let programs = programs.into_iter().filter_map(|(name, package)| needs::program(host, name, package));
        needs::root().into_iter().chain(needs::loop_devices(host)).chain(programs).chain(no_folder).collect()
    }

    fn capacity(&self, options: &Options, _data: &[Bytes]) -> Option<Bytes> {
        options.size("loop")
    }

    fn space(&self, options: &Options) -> Option<Space> {
        Some(Space::Disk(place(options).to_owned(), options.size("loop")?))
    }

    fn build(&self, site: &Site<'_>, _inputs: &[GivenGround], options: &Options) -> Result<Built> {
        let size = options.size("loop").ok_or_else(|| Error::bug("a loop image without a size"))?;
        let direct_io = options.boolean("direct_io").unwrap_or(true);
        let preallocate = options.boolean("preallocate").unwrap_or(false);
        let image = make_image(site, place(options), size, preallocate)?;
        site.interrupt.check()?;
        let device = attach(site, &image, direct_io)?;
        let details = facts(site.host, &image, &device, preallocate)?;
        Ok(Built::one(Ground::Device(device), details))
    }

    /// mkfs discards the whole device, and each discard punches a hole into the image: reserved blocks are reserved again.
    /// (Switching discards off, `queue/discard_max_bytes` = 0, would outlive our device, and Linux 6.18 takes no other
    /// value after it.)
    fn finish(&self, _host: &Host, options: &Options, details: &mut BTreeMap<String, String>) -> Result<()> {
        let Some(image) = details.get("image").map(PathBuf::from) else { return Ok(()) };
        if options.boolean("preallocate") == Some(true) {
            let gone = || Error::host(format!("the image {} is gone", image.display()));
            reserve(
                &files::open_to_change(&image)?.ok_or_else(gone)?,
                options.size("loop").unwrap_or_default(),
                &image,
            )?;
        }
        details.insert("allocated".to_owned(), Bytes(paths::look_at(&image)?.allocated_bytes).to_string());
        Ok(())
    }

    fn undo(&self, host: &Host, thing: &Thing) -> Result<()> {
        match thing.kind.as_str() {
            "image" => remove_image(host, Path::new(thing.mark("path")?)),
            "loop" => {
                let image = thing.mark("image")?;
                if !folder::has_our_name(Path::new(image)) {
                    return Err(Error::host(format!("{image} is no image of pgstrata's")));
                }
                detach(host, image)
            }
            kind => Err(Error::bug(format!("the layer loop makes no {kind}"))),
        }
    }
}

fn make_image(site: &Site<'_>, place: &Path, size: Bytes, preallocate: bool) -> Result<PathBuf> {
    if place == Path::new(DEFAULT_FOLDER) {
        folders::make_all(place, 0o777)?;
    }
    // The kernel shows the path of the file without symlinks, and by that the device is found again.
    let image = paths::resolve(place)?.join(format!("{}.img", site.name));
    let free = Bytes(files::free_bytes(place)?);
    if size > free {
        return Err(Error::host(format!("an image of {size} does not fit into {}: {free} are free", place.display()))
            .hint("give the stack a smaller image or another folder, or free some space"));
    }
    if paths::exists(&image) {
        return Err(Error::host(format!("the image {} exists already", image.display())));
    }
    site.ledger.enter(Thing::new("loop", "image").with_path("path", &image)?)?;
    let making = || format!("make the image {} of {size}", image.display());
    let file = files::create_new(&image, 0o600).or_host(making)?;
    file.set_len(size.0).or_host(making)?;
    if preallocate {
        reserve(&file, size, &image)?;
    }
    file.sync_all().or_host(making)?;
    Ok(image)
}

fn reserve(file: &files::File, size: Bytes, image: &Path) -> Result<()> {
    files::reserve(file, size.0).or_host(|| format!("reserve {size} for the image {}", image.display()))
}

pub(super) fn attach(site: &Site<'_>, image: &Path, direct_io: bool) -> Result<PathBuf> {
    site.ledger.enter(Thing::new("loop", "loop").with_path("image", image)?)?;
    let flag = if direct_io { "--direct-io=on" } else { "--direct-io=off" };
    let command = Command::new("losetup").args([flag, "--show", "-f"]).arg(image);
    let refused = |e: Error| {
        if direct_io { e.hint("where the filesystem below refuses direct I/O, say `direct_io = false`") } else { e }
    };
    let output = site.host.run(&command).map_err(refused)?;
    let device = PathBuf::from(output.stdout.trim());
    let node = guard::BlockDevice::find(&device)?.node;
    if node.backing_file(site.host).as_deref().map(Path::new) != Some(image) {
        return Err(Error::tool(format!("losetup made {}, but its file is not {}", device.display(), image.display())));
    }
    match node.flag(site.host, "loop/dio") {
        Some(really) if really == direct_io => Ok(device),
        Some(really) => Err(refused(Error::host(format!(
            "direct I/O of {} is {} although it was asked to be {}",
            device.display(),
            on(really),
            on(direct_io)
        )))),
        None => Err(Error::host(format!("the kernel does not tell whether {} uses direct I/O", device.display()))),
    }
}

fn on(flag: bool) -> &'static str {
    if flag { "on" } else { "off" }
}

fn facts(host: &Host, image: &Path, device: &Path, preallocate: bool) -> Result<BTreeMap<String, String>> {
    let found = paths::look_at(image)?;
    let node = guard::BlockDevice::find(device)?.node;
    let below = mount::mount_of(host, image)?;
    let direct_io = node.flag(host, "loop/dio").map_or("unknown", on);
    let details = [
        ("device", device.display().to_string()),
        ("image", image.display().to_string()),
        ("size", Bytes(found.bytes).to_string()),
        ("allocation", if preallocate { "fallocate" } else { "sparse" }.to_owned()),
        ("allocated", Bytes(found.allocated_bytes).to_string()),
        ("direct I/O", direct_io.to_owned()),
        ("filesystem of the image", format!("{} on {}", below.fstype, below.source)),
    ];
    Ok(details.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
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
            let open = || Err(Error::host(format!("{} on {image} is held open by somebody", path.display())));
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
    Ok(device.node.holders(host).first().map(|holder| format!("{holder} stands on it")))
}

fn remove_image(host: &Host, image: &Path) -> Result<()> {
    let name = image.file_name().unwrap_or_default().to_string_lossy();
    if !image.is_absolute() || !name.starts_with(folder::PREFIX) || !name.ends_with(".img") {
        return Err(Error::bug(format!("{} is not the name of an image of pgstrata", image.display())));
    }
    let Some(found) = paths::look_for(image)? else { return Ok(()) };
    if found.kind != paths::Kind::RegularFile {
        return Err(Error::host(format!("{} is not the file that pgstrata made", image.display())));
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

//! Simulates a machine crash on a standing stack: stops its filesystems without writing anything back, then unmounts
//! and remounts them, which replays their journals.
//!
//! A filesystem with a shutdown ioctl is stopped by that. For one without (btrfs before Linux 6.19) its image files are
//! stopped: each loop device is truncated to its first sector, so that no further request reaches the image until the
//! filesystem is unmounted.
//!
//! Data already handed to the device survive, as in a device whose cache survives; a power cut may lose those too. The
//! ledger's entries for the mounts stay valid.

use super::stack::BuiltStack;
use super::sysfs::DeviceNumber;
use super::{Base, folder, image_file, mount, mount_table};
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::time::{micros, now};
use crate::host::{Host, files, linux, loops, threads};
use crate::parse::mountinfo::Mount;
use crate::record::stack::StackSpec;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Size of a stopped loop device: 0 would mean the size of its file.
const ONE_SECTOR: u64 = 512;

/// A stack whose filesystems can be stopped.
#[derive(Debug)]
pub struct StoppableStack {
    host: Host,
    mounts: Vec<Mounted>,
    /// Devices below the stack whose files the page cache may hold.
    images: Vec<DeviceNumber>,
    /// Stopped loop devices, with their size limit before, in bytes.
    stopped: Mutex<Vec<(PathBuf, u64)>>,
}

#[derive(Debug)]
struct Mounted {
    target: String,
    /// Mount options from the plan.
    asked: Vec<String>,
    /// The devices that it stands on.
    devices: Vec<PathBuf>,
}

impl StoppableStack {
    /// The crash of a standing stack.
    pub fn of(host: &Host, spec: &StackSpec, built: &BuiltStack) -> StoppableStack {
        let folders = built.bases.iter().filter_map(|(name, base)| {
            let Base::Folder(path) = base else { return None };
            let node = spec.node(name.node());
            let asked = node.map(|node| mount::asked(&node.options)).unwrap_or_default();
            let inputs = node.into_iter().flat_map(|node| &node.inputs);
            let devices = inputs.filter_map(|input| Some(built.bases.get(&input.from)?.device()?.to_owned()));
            Some(Mounted { target: path.display().to_string(), asked, devices: devices.collect() })
        });
        let devices = built.facts.devices().into_iter().map(|(_, device)| device);
        let images = devices.filter(|device| device.backing_file.is_some());
        let images = images.map(|device| DeviceNumber { major: device.major, minor: device.minor });
        let (mounts, images) = (folders.collect(), images.collect());
        StoppableStack { host: host.clone(), mounts, images, stopped: Mutex::default() }
    }

    /// Stops every filesystem of the stack.
    ///
    /// # Errors
    /// When one cannot be stopped: its type has no such call and its devices are not image files, or it existed before
    /// the run.
    pub fn stop(&self) -> Result<()> {
        for filesystem in &self.mounts {
            let found = self.mounted(&filesystem.target)?;
            let Err(e) = linux::stop_filesystem(Path::new(&filesystem.target)) else { continue };
            if !self.stop_devices(&filesystem.devices) {
                let message = format!("{} cannot be stopped as by a crash of the machine: {e}", found.fstype);
                return Err(Error::host(message).hint(
                    "ext2/3/4, xfs and f2fs can, btrfs from Linux 6.19 on, any filesystem directly on image files; use \
                     crash = \"process\"",
                ));
            }
        }
        Ok(())
    }

    /// Stops the loop devices; `false` if one of the devices is not a loop device.
    fn stop_devices(&self, devices: &[PathBuf]) -> bool {
        let mut stopped = threads::locked(&self.stopped);
        let all = devices.iter().all(|device| {
            let before = loops::end_after(device, ONE_SECTOR);
            before.map(|before| stopped.push((device.clone(), before))).is_ok()
        });
        all && !devices.is_empty()
    }

    /// Restores the size limits of the stopped loop devices.
    fn restart_devices(&self) -> Result<()> {
        for (device, before) in threads::locked(&self.stopped).drain(..) {
            let done = loops::end_after(&device, before);
            done.map_err(|e| Error::host(format!("{} cannot get its size back: {e}", device.display())))?;
        }
        Ok(())
    }

    /// Unmounts every filesystem, drops the images below from the page cache, and mounts each again as before. Returns
    /// the duration of the mounts in microseconds.
    ///
    /// # Errors
    /// With the message of umount(8) or mount(8), or if a filesystem stays alive without its mount.
    pub fn open(&self) -> Result<u64> {
        let mounts: Vec<Mount> = self.mounts.iter().map(|it| self.mounted(&it.target)).collect::<Result<_>>()?;
        mounts.iter().try_for_each(|found| self.unmount(found))?;
        let ended = mounts.iter().try_for_each(|found| mount_table::until_ended(Path::new(&found.source)));
        self.restart_devices()?;
        ended?;
        for image in &self.images {
            // If the filesystem below cannot drop them, reads come from memory, as before.
            drop(image_file::behind(&self.host, *image).map(|(file, _)| files::drop_cache(&file)));
        }
        let begun = now();
        for (found, Mounted { asked, .. }) in mounts.iter().zip(&self.mounts) {
            // A separate log device must be named at each mount.
            let log = found.super_options.iter().filter(|option| option.starts_with("logdev="));
            let options: Vec<&str> = asked.iter().chain(log).map(String::as_str).collect();
            let target = Path::new(&found.target);
            self.host.run(&mount::command(&found.fstype, &found.source, &options.join(","), target))?;
        }
        Ok(micros(begun.elapsed()))
    }

    fn unmount(&self, found: &Mount) -> Result<()> {
        mount_table::again(|| self.host.run(&Command::new("umount").arg(&found.target)).map(drop))
    }

    /// A mount of ours: nothing else may be stopped.
    fn mounted(&self, target: &str) -> Result<Mount> {
        let found = mount_table::table(&self.host)?.into_iter().rev().find(|mount| mount.target == target);
        let ours = found.filter(|mount| folder::has_our_name(Path::new(&mount.target)));
        ours.ok_or_else(|| {
            Error::host(format!("{target} is not a mount of this run, so a machine crash cannot be simulated on it"))
                .hint("give the stack a device and a filesystem of its own, or use crash = \"process\"")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provision::test_site::{TestPlace, mounted};
    use crate::record::options::Options;
    use std::fs;
    use std::io::Read;

    #[test]
    fn only_synced_data_survives_a_machine_crash() {
        for (layer, size) in [("ext4", "64MiB"), ("xfs", "320MiB"), ("btrfs", "256MiB")] {
            let Some(place) = TestPlace::new() else { return };
            let spec = place.on_loop(layer, size, mounted(&["noatime"]));
            if !place.can_build(&spec) {
                continue;
            }
            let built = place.build(&spec).unwrap();
            let folder = built.folder().clone();
            fs::write(folder.join("synced"), "x").unwrap();
            fs::File::open(folder.join("synced")).unwrap().sync_all().unwrap();
            fs::File::open(&folder).unwrap().sync_all().unwrap();
            fs::write(folder.join("not"), vec![1u8; 1 << 20]).unwrap();
            let crash = StoppableStack::of(&place.host, &spec, &built);
            let before = crash.mounted(folder.to_str().unwrap()).unwrap();
            crash.stop().unwrap();
            // With its device stopped, the filesystem still accepts a write but cannot keep it.
            let later = fs::File::create(folder.join("later")).and_then(|file| file.sync_all());
            assert!(later.is_err(), "{layer}");
            assert!(crash.open().unwrap() > 0);
            let after = crash.mounted(folder.to_str().unwrap()).unwrap();
            assert_eq!((after.source, after.options), (before.source, before.options), "{layer}");
            assert_eq!(fs::read_to_string(folder.join("synced")).unwrap(), "x", "{layer}");
            assert!(fs::read(folder.join("not")).map_or(true, |bytes| bytes.is_empty()), "{layer}");
            place.clean();
        }
    }

    #[test]
    fn a_filesystem_alive_in_another_namespace_is_not_mounted_again() {
        let Some(place) = TestPlace::new() else { return };
        let spec = place.on_loop("ext4", "64MiB", Options::default());
        let built = place.build(&spec).unwrap();
        let crash = StoppableStack::of(&place.host, &spec, &built);
        // The mounts of other tests do not stay in the copy, and are gone from it at once.
        let script = "awk -v own=\"$0\" '$2 ~ /pgstrata/ && $2 != own { print $2 }' /proc/self/mounts | \
                      xargs -r umount -l; echo; exec sleep 600";
        let mut copy = std::process::Command::new("unshare");
        copy.args(["--mount", "sh", "-c", script]).arg(built.folder()).stdout(std::process::Stdio::piped());
        let mut copy = copy.spawn().unwrap();
        copy.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        crash.stop().unwrap();
        let error = crash.open().unwrap_err().to_string();
        copy.kill().unwrap();
        copy.wait().unwrap();
        assert!(error.contains("a copy of the mount table"), "{error}");
        place.clean();
    }

    #[test]
    fn unstoppable_and_foreign_filesystems_are_left_alone() {
        let Some(place) = TestPlace::new() else { return };
        let spec = place.on_loop("ext4", "64MiB", Options::default());
        let crash = StoppableStack::of(&place.host, &spec, &place.build(&spec).unwrap());
        let root = Mounted { target: "/".to_owned(), asked: Vec::new(), devices: Vec::new() };
        let others = StoppableStack { mounts: vec![root], ..crash };
        assert!(others.stop().unwrap_err().to_string().contains("not a mount of this run"));
        assert!(others.open().is_err());
        place.clean();
    }
}

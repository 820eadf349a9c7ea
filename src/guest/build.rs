//! Builds a guest, or finds an existing one.

use super::bootstrap::Bootstrap;
use super::cache::{Cache, bytes_below};
use super::image::{GuestImage, INSTALL};
use super::mirror::Mirror;
use super::recipe::{self, Steps};
use super::steps::BuildStep;
use super::suite::Suite;
use super::{accelerator, boot_files};
use crate::error::{Error, Kind, Result};
use crate::host::command::quoted;
use crate::host::signals::Interrupt;
use crate::host::time::now;
use crate::host::{Host, files, folders, paths};
use std::path::Path;
use std::time::Duration;

/// Progress of a build.
#[derive(Debug)]
pub enum GuestProgress<'a> {
    /// A step begins.
    Begins { step: &'a str, what: &'a str },
    /// The current activity.
    At(&'a str),
    /// The step is done; `took` is `None` if it was done before.
    Done { step: &'a str, took: Option<Duration>, bytes: u64 },
}

/// The guest of a suite, if this version of the program has built it.
///
/// # Errors
/// If its files cannot be read.
pub fn find(cache: &Cache, suite: &Suite) -> Result<Option<GuestImage>> {
    let steps = Steps::of(suite, &cache.suite(suite));
    if !steps.all().iter().all(|step| step.is_done()) {
        return Ok(None);
    }
    let (modules, boot, root) = (steps.modules.place(), steps.boot.place(), steps.root.place());
    let image = root.join("root.ext4");
    Ok(Some(GuestImage {
        suite: suite.clone(),
        vmlinux: boot.join("vmlinux"),
        initramfs: boot.join("initramfs"),
        probe: boot.join("probe"),
        root_bytes: paths::look_at(&image)?.allocated_bytes,
        root: image,
        kernel: files::read_text(&modules.join("release"))?,
        zfs: files::read_text(&modules.join("zfs"))?,
        postgresql: files::read_text(&root.join("postgresql"))?.trim().to_owned(),
    }))
}

/// The guest of a suite, which must exist.
///
/// # Errors
/// If it is not built.
pub fn require(cache: &Cache, suite: &Suite) -> Result<GuestImage> {
    find(cache, suite)?.ok_or_else(|| {
        Error::host(format!("the guest {suite} is not built"))
            .hint(format!("pgstrata guest build --suite {suite} (4 GB while it is built, about 10 minutes)"))
    })
}

/// Builds the missing parts of a guest, and determines the accelerator.
///
/// # Errors
/// If a program is missing, the mirror lacks the suite or a package, the disk is full, or the user interrupts.
pub fn build(
    host: &Host,
    cache: &Cache,
    suite: &Suite,
    mirror: Option<&str>,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(GuestProgress<'_>),
) -> Result<GuestImage> {
    if std::env::consts::ARCH != "x86_64" {
        return Err(Error::host(format!("a guest needs an x86-64 machine, this is {}", std::env::consts::ARCH)));
    }
    for program in ["qemu-system-x86_64", "mke2fs"] {
        if !host.has_program(program) {
            return Err(Error::host(format!("the program {program} is missing")).hint(INSTALL));
        }
    }
    let folder = cache.suite(suite);
    let steps = Steps::of(suite, &folder);
    let _lock = cache.lock(suite)?;
    let bootstrap = || Ok(Bootstrap { host, suite, mirror: Mirror::of(host, mirror)?, folder: &folder, interrupt });
    let modules = step(&steps.modules, "build ZFS for the suite's kernel", progress, |work, report| {
        bootstrap()?.modules(work, report)
    });
    if modules.as_ref().is_err_and(|e| e.kind() == Kind::User) {
        // The suite does not exist.
        folders::remove_all(&folder)?;
    }
    modules?;
    step(&steps.boot, "unpack the kernel, pack what it boots", progress, |work, _| {
        boot_files::make(&steps.modules.place(), work)
    })?;
    step(&steps.root, "install the root image", progress, |work, report| {
        bootstrap()?.root(&steps.modules.place(), work, report)
    })?;
    folders::remove_all(&folder.join("packages"))?;
    let image = require(cache, suite)?;
    progress(GuestProgress::Begins { step: "accelerator", what: "boot a tiny kernel to see what works" });
    let begun = now();
    accelerator::of(host, cache, &image, interrupt)?;
    progress(GuestProgress::Done { step: "accelerator", took: Some(begun.elapsed()), bytes: 0 });
    Ok(image)
}

fn step(
    step: &BuildStep,
    what: &str,
    progress: &mut dyn FnMut(GuestProgress<'_>),
    make: impl FnOnce(&Path, &mut dyn FnMut(&str)) -> Result<()>,
) -> Result<()> {
    let begun = now();
    let cached = step.is_done();
    if !cached {
        progress(GuestProgress::Begins { step: step.name, what });
        let made = step.make(|work| make(work, &mut |line| progress(GuestProgress::At(line))));
        made.map_err(|e| e.while_doing(format!("build the guest's {}", step.name)))?;
    }
    let took = (!cached).then(|| begun.elapsed());
    progress(GuestProgress::Done { step: step.name, took, bytes: bytes_below(&step.place()) });
    Ok(())
}

impl Bootstrap<'_> {
    fn modules(&self, work: &Path, report: &mut dyn FnMut(&str)) -> Result<()> {
        let hooks = [
            self.script("modules.sh", recipe::MODULES_SCRIPT)?,
            "chroot \"$1\" sh /modules.sh".to_owned(),
            format!("sync-out /out {}", quoted(work.as_os_str())),
        ];
        self.run("apt", recipe::COMPILING, work, &hooks, report)
    }

    fn root(&self, modules: &Path, work: &Path, report: &mut dyn FnMut(&str)) -> Result<()> {
        let modules = modules.join("modules");
        // A bind mount leaves out what is mounted below it, such as /proc, which is mounted while hooks run.
        let (plain, image) = (work.join("plain"), work.join("root.ext4"));
        let (plain, image) = (quoted(plain.as_os_str()), quoted(image.as_os_str()));
        let image = format!(
            "mkdir {plain} && mount --bind \"$1\" {plain} && \
             mke2fs -q -F -t ext4 -m 0 -L pgstrata -d {plain} {image} {} && \
             umount {plain} && rmdir {plain} && chmod 644 {image}",
            recipe::ROOT_SIZE
        );
        let hooks = [
            "mkdir -p \"$1/usr/lib/modules\"".to_owned(),
            format!("sync-in {} /usr/lib/modules", quoted(modules.as_os_str())),
            self.script("root.sh", recipe::ROOT_SCRIPT)?,
            "chroot \"$1\" sh /root.sh".to_owned(),
            "rm \"$1/root.sh\"".to_owned(),
            format!("download /etc/pgstrata-postgresql {}", quoted(work.join("postgresql").as_os_str())),
            image,
        ];
        self.run("essential", recipe::ROOT, work, &hooks, report)
    }

    /// The hook that copies a script into the chroot.
    fn script(&self, name: &str, text: &str) -> Result<String> {
        let path = self.folder.join(name);
        files::write_whole(&path, text.as_bytes())?;
        Ok(format!("upload {} /{name}", quoted(path.as_os_str())))
    }
}

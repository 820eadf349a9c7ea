//! The files that QEMU loads: the unpacked kernel, and archives of busybox, modules and a first program.

use super::cpio::Archive;
use super::kernel;
use super::recipe::{EARLY_MODULES, EARLY_MODULES_IF_THERE, INITRAMFS_SCRIPT, PROBE_SCRIPT};
use crate::error::{Error, Result};
use crate::host::files;
use crate::parse::modules_dep::{self, Modules};
use std::path::Path;

/// Makes `vmlinux`, `initramfs` and `probe` in `work` from the result of the step `modules`.
pub(super) fn make(modules: &Path, work: &Path) -> Result<()> {
    let kernel = kernel::unpacked(&files::read(&modules.join("vmlinuz"))?)?;
    let busybox = files::read(&modules.join("busybox"))?;
    let release = files::read_text(&modules.join("release"))?;
    let initramfs = initramfs(&busybox, &modules.join("modules").join(release))?;
    let mut probe = base(&busybox);
    probe.file("init", PROBE_SCRIPT.as_bytes());
    for (name, bytes) in [("vmlinux", kernel), ("initramfs", initramfs), ("probe", probe.finish())] {
        let path = work.join(name);
        files::write_whole(&path, &bytes)?;
        files::set_mode(&path, 0o644)?;
    }
    Ok(())
}

/// An archive with busybox, the console, and mount points.
fn base(busybox: &[u8]) -> Archive {
    let mut archive = Archive::default();
    for folder in ["bin", "dev", "proc", "sys", "root", "modules"] {
        archive.folder(folder);
    }
    archive.device("dev/console", (5, 1));
    archive.file("bin/busybox", busybox);
    archive
}

fn initramfs(busybox: &[u8], modules: &Path) -> Result<Vec<u8>> {
    let [listed, built_in] = ["modules.dep", "modules.builtin"].map(|name| files::read_text(&modules.join(name)));
    let known = Modules::parse(&listed?, &built_in?);
    let mut paths: Vec<String> = Vec::new();
    for module in EARLY_MODULES_IF_THERE.iter().chain(EARLY_MODULES) {
        match known.closure(module) {
            Some(closure) => paths.extend(closure),
            None if EARLY_MODULES_IF_THERE.contains(module) => {}
            None => return Err(Error::tool(format!("the suite's kernel has no module {module}"))),
        }
    }
    let mut archive = base(busybox);
    let mut order: Vec<String> = Vec::new();
    for path in paths {
        let name = modules_dep::name(&path).to_owned() + ".ko";
        if !order.contains(&name) {
            archive.file(&format!("modules/{name}"), &kernel::module(&path, files::read(&modules.join(&path))?)?);
            order.push(name);
        }
    }
    archive.file("modules/order", (order.join("\n") + "\n").as_bytes());
    archive.file("init", INITRAMFS_SCRIPT.as_bytes());
    Ok(archive.finish())
}

//! Determines QEMU's accelerator on this machine. The existence of `/dev/kvm` proves nothing: it is tested by booting.

use super::cache::Cache;
use super::death;
use super::image::{GuestImage, INSTALL};
use super::qemu::{Accelerator, Qemu, qemu};
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::signals::Interrupt;
use crate::host::time::{now, sleep};
use crate::host::{Host, files, paths, users};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    pub accelerator: Accelerator,
    /// Reason why it is not KVM.
    pub why: Option<String>,
    /// QEMU version and kernel release: a different pair is probed again.
    qemu: String,
    kernel: String,
}

/// Printed by the probe's first program.
const WORKS: &str = "accelerator works";

/// Result of an earlier probe on this machine.
pub fn known(host: &Host, cache: &Cache) -> Option<Probed> {
    let stored: Probed = serde_json::from_slice(&files::read(&cache.accelerator()).ok()?).ok()?;
    let (qemu, kernel) = machine(host).ok()?;
    (stored.qemu == qemu && stored.kernel == kernel).then_some(stored)
}

/// The accelerator of this machine: from an earlier probe, or by booting.
///
/// # Errors
/// If none works.
pub fn of(host: &Host, cache: &Cache, image: &GuestImage, interrupt: &Interrupt) -> Result<Accelerator> {
    if let Some(probed) = known(host, cache) {
        return Ok(probed.accelerator);
    }
    let (qemu, kernel) = machine(host)?;
    let kvm = if paths::exists(&host.path("/dev/kvm")) {
        boots(host, cache, image, Accelerator::Kvm, interrupt)?
    } else {
        Err("there is no /dev/kvm".to_owned())
    };
    let probed = match kvm {
        Ok(()) => Probed { accelerator: Accelerator::Kvm, why: None, qemu, kernel },
        Err(why) => {
            if let Err(tcg) = boots(host, cache, image, Accelerator::Tcg, interrupt)? {
                return Err(Error::tool(format!("no guest boots here; with KVM: {why}; emulated: {tcg}")));
            }
            Probed { accelerator: Accelerator::Tcg, why: Some(why), qemu, kernel }
        }
    };
    let text = serde_json::to_vec_pretty(&probed).map_err(|e| Error::bug(e.to_string()))?;
    files::write_whole(&cache.accelerator(), &text)?;
    Ok(probed.accelerator)
}

fn machine(host: &Host) -> Result<(String, String)> {
    let version = host.run(&Command::new("qemu-system-x86_64").arg("--version")).map_err(|e| e.hint(INSTALL))?;
    let version = version.stdout.lines().next().unwrap_or_default().to_owned();
    Ok((version, host.read("/proc/sys/kernel/osrelease")?.trim().to_owned()))
}

/// Boots the tiny kernel; the inner error is the reason why that failed.
fn boots(
    host: &Host,
    cache: &Cache,
    image: &GuestImage,
    accelerator: Accelerator,
    interrupt: &Interrupt,
) -> Result<Result<(), String>> {
    let running = cache.running()?;
    let folder = &running.folder;
    let user = users::server_user(host)?;
    files::give_to(folder, &user)?;
    let command = qemu(host, accelerator, &user, folder)
        .args([Path::new("-kernel"), &image.vmlinux, Path::new("-initrd"), &image.probe])
        .args(["-m", "256", "-append", "console=ttyS0 quiet panic=-1 no_timer_check"]);
    let mut child = Qemu::start(host, &command, folder)?;
    let begun = now();
    let status = loop {
        let ended = child.0.try_wait().map_err(|e| Error::host(e.to_string()).while_doing("wait for QEMU"))?;
        if ended.is_some()
            || begun.elapsed() > accelerator.limit()
            || interrupt.is_raised()
            || said(folder, "console.log").contains(WORKS)
        {
            break ended;
        }
        sleep(Duration::from_millis(50));
    };
    drop(child);
    interrupt.check()?;
    let console = said(folder, "console.log");
    if console.contains(WORKS) {
        return Ok(Ok(()));
    }
    let qemu = said(folder, "qemu.log");
    Ok(Err(match status {
        Some(status) if qemu.trim().is_empty() => format!("QEMU ended: {status}"),
        Some(_) => death::first_line(&qemu),
        None => format!("the kernel did not print what was expected within {} s", accelerator.limit().as_secs()),
    }))
}

pub(super) fn said(folder: &Path, file: &str) -> String {
    files::read(&folder.join(file)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

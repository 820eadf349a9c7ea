//! QEMU with nothing but processors and a console.

use crate::error::{Context, Result};
use crate::host::command::Command;
use crate::host::time::{now, sleep};
use crate::host::users::User;
use crate::host::{Host, files, paths};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

/// Interval of looks at QEMU, and at the port to its guest.
pub(super) const TURN: Duration = Duration::from_millis(20);

/// Execution of the guest's CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accelerator {
    /// On the host's CPU, near its speed.
    Kvm,
    /// Emulated (QEMU's TCG), ten to twenty times slower.
    Tcg,
}

impl Accelerator {
    /// Time limit for a tiny kernel to print its line. One that hangs under KVM is abandoned soon; under TCG it takes
    /// 4 s, and on a very busy machine half a minute.
    pub(super) fn limit(self) -> Duration {
        match self {
            Accelerator::Kvm => Duration::from_secs(20),
            Accelerator::Tcg => Duration::from_secs(180),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Accelerator::Kvm => "kvm",
            Accelerator::Tcg => "tcg",
        }
    }
}

/// A QEMU process; killed and reaped when the value is dropped.
#[derive(Debug)]
pub(super) struct Qemu(pub(super) Child);

impl Qemu {
    /// Starts QEMU; its output goes to `qemu.log` in `folder`.
    pub(super) fn start(host: &Host, command: &Command, folder: &Path) -> Result<Qemu> {
        let log = files::create(&folder.join("qemu.log"))?;
        let again = log.try_clone().or_host(|| "open the log of QEMU".to_owned())?;
        host.spawn(command, Stdio::from(again), Stdio::from(log)).map(Qemu)
    }

    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// How it has ended; `None` if it still runs after this time.
    pub(super) fn wait(&mut self, within: Duration) -> Option<ExitStatus> {
        let begun = now();
        while !self.has_ended() && begun.elapsed() < within {
            sleep(TURN);
        }
        self.0.try_wait().ok().flatten()
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        // It may have ended in the meantime.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// QEMU with nothing but processors and a console in `folder`, as `user`.
pub(crate) fn qemu(host: &Host, accelerator: Accelerator, user: &User, folder: &Path) -> Command {
    let mut user = user.clone();
    let (machine, processor) = match accelerator {
        Accelerator::Kvm => ("kvm", "host"),
        Accelerator::Tcg => ("tcg,thread=multi,tb-size=512", "max"),
    };
    if accelerator == Accelerator::Kvm {
        // Usually only its group may open it.
        let kvm = paths::stat(&host.path("/dev/kvm")).ok().filter(|kvm| kvm.mode & 0o060 == 0o060 && kvm.gid != 0);
        user.gid = kvm.map_or(user.gid, |kvm| kvm.gid);
    }
    Command::new("qemu-system-x86_64")
        .args(["-machine", "q35,usb=off,vmport=off", "-accel", machine, "-cpu", processor])
        .args(["-nodefaults", "-no-user-config", "-display", "none", "-nic", "none", "-no-reboot"])
        .args(["-chardev", "file,id=console,path=console.log", "-serial", "chardev:console"])
        .user(&user)
        // For changes to the root image.
        .env("TMPDIR", folder)
        .cwd(folder)
        .dying_with_us()
}

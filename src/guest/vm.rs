//! A running guest: QEMU, the console, the channel to its agent. It ends when the value is dropped.

use super::accelerator::{self, said};
use super::cache::{Cache, GuestFolder};
use super::channel::{Broken, Channel, Input, OutputStream};
use super::death;
use super::disks::{self, PlanDisks};
use super::image::GuestImage;
use super::qemu::{Accelerator, Qemu, TURN, qemu};
use super::share::{self, GivenFile, SharedFolder};
use super::wire::{CommandEnd, Hello, Order};
use crate::error::{Context, Error, Result};
use crate::host::command::Command;
use crate::host::signals::Interrupt;
use crate::host::time::{now, sleep};
use crate::host::users::{self, User};
use crate::host::{Host, files, paths};
use crate::units::Bytes;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time limit for booting: usually 3 to 8 s after QEMU's start; on a very busy machine it took a minute.
const BOOT: Duration = Duration::from_secs(300);
/// Time limit for powering off, before the guest is killed.
const POWER_OFF: Duration = Duration::from_secs(20);
/// Time limit for QEMU to end after its port was closed.
const LAST_BREATH: Duration = Duration::from_secs(2);
/// Longest path of a Unix socket (unix(7)).
const SOCKET_PATH: usize = 107;

/// A scratch disk.
#[derive(Debug, Clone)]
pub enum Scratch {
    /// A new, empty disk of this size.
    Empty(Bytes),
    /// The disk of a guest that was killed.
    Left(LeftDisk),
}

/// Scratch disk of a guest; removed with the last reference to it.
#[derive(Debug, Clone)]
pub struct LeftDisk {
    file: PathBuf,
    /// The guest that it was made for.
    _folder: Arc<GuestFolder>,
}

/// Resources of the machine given to the guest.
#[derive(Debug, Clone)]
pub struct Shape {
    pub memory: Bytes,
    pub cpus: usize,
    /// Disks of the plan that runs in it.
    pub plan_disks: PlanDisks,
    pub shares: Vec<SharedFolder>,
    pub files: Vec<GivenFile>,
    /// A sparse raw disk for temporary data, mounted at [`SCRATCH`].
    pub scratch: Option<Scratch>,
    /// The program that serves the guest: this one, except in tests.
    pub program: PathBuf,
}

impl Shape {
    /// 2 GiB, as many CPUs as the host (at most 8), and the PostgreSQL versions fetched by `scripts/setup`.
    ///
    /// # Errors
    /// If this program cannot be found.
    pub fn usual(cache: &Cache) -> Result<Shape> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Shape {
            memory: Bytes(2 << 30),
            cpus: cpus.min(8),
            plan_disks: PlanDisks::default(),
            shares: vec![SharedFolder {
                tag: "cache".to_owned(),
                folder: cache.parent().to_path_buf(),
                inside: "/var/cache/pgstrata".to_owned(),
                writable: false,
            }],
            files: Vec::new(),
            scratch: None,
            program: std::env::current_exe().or_host(|| "find this program".to_owned())?,
        })
    }

    fn command(
        &self,
        qemu: Command,
        accelerator: Accelerator,
        image: &GuestImage,
        scratch: Option<&LeftDisk>,
    ) -> Result<Command> {
        // On a busy host the emulated timer is late, and the kernel's check at boot would report it as broken.
        let emulated = if accelerator == Accelerator::Tcg { " mitigations=off no_timer_check" } else { "" };
        let kernel = format!("console=ttyS0 loglevel=4 panic=-1 sysctl.vm.panic_on_oom=1{emulated}");
        let mut command = qemu
            .args(["-m", &format!("{}M", self.memory.0 >> 20), "-smp", &self.cpus.to_string()])
            .args([Path::new("-kernel"), &image.vmlinux, Path::new("-initrd"), &image.initramfs])
            .args(["-append", &kernel])
            .args(["-device", "virtio-rng-pci", "-device", "virtio-serial-pci"])
            .args(["-chardev", "socket,id=agent,path=agent"])
            .args(["-device", &format!("virtserialport,chardev=agent,name={}", super::wire::PORT)]);
        // Known in the guest by their serial numbers.
        let scratch = scratch.map(|disk| (&disk.file, "pgstrata-scratch"));
        for (number, (file, serial)) in [(&image.root, "pgstrata-root")].into_iter().chain(scratch).enumerate() {
            let kind = if number == 0 { "snapshot=on,cache=unsafe" } else { "cache=none" };
            let file = comma_safe(file)?;
            // If the host runs out of space, the guest gets an error; by default QEMU would pause it.
            let drive = format!("file={file},if=none,id=disk{number},format=raw,werror=report,rerror=report,{kind}");
            let device = format!("virtio-blk-pci,drive=disk{number},serial={serial}");
            command = command.args(["-drive", &drive, "-device", &device]);
        }
        command = self.plan_disks.attached(command);
        let host =
            SharedFolder { tag: "host".into(), folder: "host".into(), inside: share::INSIDE.into(), writable: false };
        for share in std::iter::once(&host).chain(&self.shares) {
            let access = if share.writable { "" } else { ",readonly=on" };
            let (folder, tag) = (comma_safe(&share.folder)?, &share.tag);
            let files = format!("local,id={tag},path={folder},security_model=none,multidevs=remap{access}");
            let device = format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}");
            command = command.args(["-fsdev", &files, "-device", &device]);
        }
        Ok(command)
    }
}

/// Mount point of the scratch disk: pgstrata's state, including the images of loop devices.
pub const SCRATCH: &str = "/var/lib/pgstrata";

/// A guest that responds.
#[derive(Debug)]
pub struct Vm {
    /// Ends before the folder goes in which it runs.
    qemu: Qemu,
    channel: Channel,
    running: Arc<GuestFolder>,
    scratch: Option<LeftDisk>,
    memory: Bytes,
    pub hello: Hello,
    pub accelerator: Accelerator,
    /// Time from QEMU's start to the agent's greeting.
    pub took: Duration,
}

impl Vm {
    /// Boots a guest and waits until it responds. One whose kernel panics on its way up is booted once more if its
    /// processors are emulated: on a busy host that happens now and then, and nothing has run in it yet. The guest that
    /// comes back from a crash is not: the time until it is there is measured.
    ///
    /// # Errors
    /// If it does not start, with the last lines of its console; if the user interrupts.
    pub fn boot(host: &Host, cache: &Cache, image: &GuestImage, shape: &Shape, interrupt: &Interrupt) -> Result<Vm> {
        let accelerator = accelerator::of(host, cache, image, interrupt)?;
        match Vm::boot_once(host, cache, image, shape, accelerator, interrupt)? {
            Err(_) if accelerator == Accelerator::Tcg && !matches!(shape.scratch, Some(Scratch::Left(_))) => {
                Vm::boot_once(host, cache, image, shape, accelerator, interrupt)?
            }
            booted => booted,
        }
    }

    /// The inner error is a panic of the guest's kernel.
    fn boot_once(
        host: &Host,
        cache: &Cache,
        image: &GuestImage,
        shape: &Shape,
        accelerator: Accelerator,
        interrupt: &Interrupt,
    ) -> Result<Result<Vm>> {
        let running = Arc::new(cache.running()?);
        let folder = running.folder.clone();
        let user = users::server_user(host)?;
        let shared = folder.join("host");
        files::make_folder(&shared, 0o755)?;
        share::fill(host, &shared, &shape.program, &shape.shares, &shape.plan_disks.list(), &shape.files)?;
        let scratch = shape.scratch.as_ref().map(|scratch| scratch.disk(&running, &user)).transpose()?;
        files::give_to(&folder, &user)?;
        may_pass(&folder, &user)?;
        let port = listen(&folder.join("agent"), &user)?;
        let qemu = qemu(host, accelerator, &user, &folder);
        let command = shape.command(qemu, accelerator, image, scratch.as_ref())?;
        let begun = now();
        let mut qemu = Qemu::start(host, &command, &folder)?;
        let mut open = None;
        loop {
            interrupt.check()?;
            match open.take() {
                None => open = accepted(&port)?,
                Some(channel) => match channel.hello(TURN) {
                    Ok(Some(hello)) => {
                        let (memory, took) = (shape.memory, begun.elapsed());
                        return Ok(Ok(Vm { qemu, channel, running, scratch, memory, hello, accelerator, took }));
                    }
                    Ok(None) => open = Some(channel),
                    Err(_) => return died(&mut qemu, &folder, shape.memory),
                },
            }
            if qemu.has_ended() {
                return died(&mut qemu, &folder, shape.memory);
            }
            if begun.elapsed() > BOOT {
                let what = format!("the guest did not answer within {} s", BOOT.as_secs());
                return Err(death::silent(&what, &said(&folder, "console.log"), &said(&folder, "qemu.log")));
            }
            sleep(TURN);
        }
    }

    /// Runs a command in the guest to its end, and passes its output to `output` as it arrives. An interrupt is sent to
    /// it as SIGINT.
    ///
    /// # Errors
    /// If it cannot be started; if the guest ends or does not respond, with the last lines of its console.
    pub fn run(
        &mut self,
        order: &Order,
        input: Option<Input>,
        interrupt: &Interrupt,
        output: &mut dyn FnMut(OutputStream, &[u8]) -> Result<()>,
    ) -> Result<CommandEnd> {
        let ended = self.run_until(order, input, interrupt, output, &|| false)?;
        ended.ok_or_else(|| Error::bug("a command was left that nobody wanted to leave"))
    }

    /// The same, but returns `None` once `left`, which is polled many times a second, returns true; the command
    /// continues.
    ///
    /// # Errors
    /// As [`Vm::run`].
    pub fn run_until(
        &mut self,
        order: &Order,
        input: Option<Input>,
        interrupt: &Interrupt,
        output: &mut dyn FnMut(OutputStream, &[u8]) -> Result<()>,
        left: &dyn Fn() -> bool,
    ) -> Result<Option<CommandEnd>> {
        self.channel.run(order, input, interrupt, output, left).map_err(|broken| match broken {
            Broken::Refused(error) => error,
            Broken::Gone => death(&mut self.qemu, &self.running.folder, self.memory),
            Broken::Silent(span) => {
                let what = format!("the guest has not answered for {} s", span.as_secs());
                death::silent(&what, &self.console(), &said(&self.running.folder, "qemu.log"))
            }
        })
    }

    /// Output of the guest's console.
    pub fn console(&self) -> String {
        said(&self.running.folder, "console.log")
    }

    /// Powers the guest off, so that its shared folders and disks are complete.
    pub fn power_off(mut self) {
        self.channel.power_off();
        self.qemu.wait(POWER_OFF);
    }

    /// Kills the guest as a power cut would: QEMU ends without another write. Whatever the guest's kernel had submitted
    /// to the scratch disk is kept.
    ///
    /// # Errors
    /// If it has no scratch disk.
    pub fn kill(self) -> Result<LeftDisk> {
        drop(self.qemu);
        self.scratch.ok_or_else(|| Error::bug("a guest without a scratch disk was to crash"))
    }
}

impl Scratch {
    /// The scratch disk, created in the guest's folder unless it exists.
    fn disk(&self, running: &Arc<GuestFolder>, user: &User) -> Result<LeftDisk> {
        match self {
            Scratch::Empty(size) => {
                let file = running.folder.join("scratch");
                let made = files::make_sparse(&file, size.0, user)?;
                disks::write_first_block(&made).or_host(|| format!("write to {}", file.display()))?;
                Ok(LeftDisk { file, _folder: Arc::clone(running) })
            }
            Scratch::Left(disk) => Ok(disk.clone()),
        }
    }
}

/// The error for a guest that ended by itself.
fn death(qemu: &mut Qemu, folder: &Path, memory: Bytes) -> Error {
    death::ended(qemu.wait(LAST_BREATH), &said(folder, "console.log"), &said(folder, "qemu.log"), memory)
}

/// The error, the inner one if the guest's kernel panicked.
fn died(qemu: &mut Qemu, folder: &Path, memory: Bytes) -> Result<Result<Vm>> {
    let e = death(qemu, folder, memory);
    if death::is_panic(&said(folder, "console.log")) { Ok(Err(e)) } else { Err(e) }
}

fn listen(path: &Path, user: &User) -> Result<UnixListener> {
    if path.as_os_str().len() > SOCKET_PATH {
        return Err(Error::host(format!("the path of the guest's socket is too long: {}", path.display()))
            .hint("PGSTRATA_CACHE names another folder"));
    }
    let doing = || format!("listen at {}", path.display());
    let listener = UnixListener::bind(path).or_host(doing)?;
    listener.set_nonblocking(true).or_host(doing)?;
    files::give_to(path, user)?;
    Ok(listener)
}

fn accepted(port: &UnixListener) -> Result<Option<Channel>> {
    match port.accept() {
        Ok((stream, _)) => Channel::over(stream).map(Some),
        Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
        Err(e) => Err(Error::host(e.to_string()).while_doing("wait for QEMU")),
    }
}

fn may_pass(folder: &Path, user: &User) -> Result<()> {
    let Some(closed) = paths::closed_to(folder, user) else { return Ok(()) };
    Err(Error::host(format!("QEMU runs as {} and may not enter {}", user.name, closed.display()))
        .hint("PGSTRATA_CACHE names another folder"))
}

/// A path for QEMU's options, with commas doubled.
fn comma_safe(path: &Path) -> Result<String> {
    let text = path.to_str().ok_or_else(|| Error::user(format!("the path {} is not UTF-8", path.display())))?;
    Ok(text.replace(',', ",,"))
}

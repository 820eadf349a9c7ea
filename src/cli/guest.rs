//! `pgstrata guest`: a throw-away virtual machine for kernels and filesystems that the host lacks.

use super::{built, out};
use crate::error::{EXIT_INCOMPLETE, Error, Result};
use crate::guest::accelerator;
use crate::guest::build::{self, GuestProgress};
use crate::guest::cache::{Cache, bytes_below};
use crate::guest::channel::OutputStream;
use crate::guest::image::GuestImage;
use crate::guest::suite::{Suite, TRIED};
use crate::guest::vm::{Shape, Vm};
use crate::guest::wire::{CommandEnd, Order};
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::host::terminal::RawTerminal;
use crate::units::{Bytes, Micros};
use clap::Subcommand;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Build and use a throw-away virtual machine with kernels and filesystems that this machine lacks
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata guest build                   kernel, ZFS and root image of Debian trixie, from this machine's mirror
  pgstrata guest build --suite bookworm  an older kernel with an older ZFS
  pgstrata guest status                  what is built, and whether KVM works here
  pgstrata guest shell                   a shell in a fresh guest; nothing it writes is kept
  pgstrata guest run -- zfs version      one command in a fresh guest, with its exit code
  pgstrata guest rm bookworm             remove what was built of a suite

A guest has no network, neither in nor out. It is in PGSTRATA_CACHE, or /var/cache/pgstrata for root, or \
~/.cache/pgstrata: about 1 GB for each suite. QEMU never runs as root.

Exit code: run, shell: that of the command, 124 at --limit, 128 plus the signal's number if it was killed; status: 0 a guest is \
built, 1 none is; 2 wrong flag, 3 the machine lacks something, 4 QEMU or mmdebstrap failed, 130 interrupted.")]
pub struct Args {
    #[command(subcommand)]
    what: GuestCommand,
}

#[derive(Debug, Subcommand)]
enum GuestCommand {
    /// Build the guest of a suite: kernel, ZFS modules, root image; resumes an interrupted build
    Build {
        /// Suite of Debian: bookworm, trixie; others may work, also with kernel and ZFS from backports: trixie-backports
        #[arg(long, value_name = "SUITE", default_value_t)]
        suite: Suite,
        /// Address of a Debian mirror [default: the one that apt of this machine uses]
        #[arg(long, value_name = "URL")]
        mirror: Option<String>,
    },
    /// Show which guests are built and which accelerator works
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Open a shell in a fresh guest
    Shell {
        /// Suite of Debian
        #[arg(long, value_name = "SUITE", default_value_t)]
        suite: Suite,
    },
    /// Run one command in a fresh guest and exit with its exit code, or 124 when it exceeds --limit
    Run {
        /// Suite of Debian
        #[arg(long, value_name = "SUITE", default_value_t)]
        suite: Suite,
        /// Kill the command after this time: 90s, 10min
        #[arg(long, value_name = "TIME", value_parser = Micros::parse)]
        limit: Option<Micros>,
        /// Program and arguments
        #[arg(required = true, last = true, value_name = "CMD")]
        command: Vec<String>,
    },
    /// Remove what was built of a suite, or of all
    Rm {
        /// Suite of Debian
        suite: Option<Suite>,
    },
}

/// Exit code of a command that was killed at its limit, as in timeout(1).
const TIMED_OUT: u8 = 124;

const ASKED: &[u8] = b"\rinterrupted: the command in the guest was sent SIGINT; interrupt again to end the guest\n";
const LEFT: &[u8] = b"\rthe guest was ended\n";
const STOPPING: &[u8] = b"\rinterrupted: cleaning up; complete steps are kept\n";

/// # Errors
/// See the exit codes in the help text.
pub fn run(args: &Args) -> Result<u8> {
    let (host, cache) = (Host::this(), Cache::of_user()?);
    match &args.what {
        GuestCommand::Build { suite, mirror } => build(&host, &cache, suite, mirror.as_deref()),
        GuestCommand::Status { json } => status(&host, &cache, *json),
        GuestCommand::Shell { suite } => shell(&host, &cache, suite),
        GuestCommand::Run { suite, limit, command } => {
            let interrupt = Interrupt::listen_saying(ASKED, LEFT)?;
            let (argv, limit_ms) = (command.clone(), limit.map(|limit| limit.0 / 1000));
            let order = Order { argv, env: Vec::new(), cwd: "/root".to_owned(), limit_ms };
            in_guest(&host, &cache, suite, &order, false, &interrupt)
        }
        GuestCommand::Rm { suite } => remove(&cache, suite.as_ref()),
    }
}

fn build(host: &Host, cache: &Cache, suite: &Suite, mirror: Option<&str>) -> Result<u8> {
    let interrupt = Interrupt::listen_saying(STOPPING, LEFT)?;
    let host = &host.heeding(&interrupt);
    let live = std::io::stderr().is_terminal();
    let image = build::build(host, cache, suite, mirror, &interrupt, &mut |progress| match progress {
        GuestProgress::Begins { step, what } => out::remark(&format!("{step}: {what}")),
        GuestProgress::At(line) if live => out::passing(line),
        GuestProgress::At(line) => out::remark(&format!("  {}", out::harmless(line))),
        GuestProgress::Done { step, took, bytes } => {
            let size = if bytes > 0 { format!(", {}", Bytes(bytes)) } else { String::new() };
            let took = took.map_or_else(|| "there already".to_owned(), |took| format!("done in {}", shown_span(took)));
            out::remark(&format!("{step}: {took}{size}"));
        }
    })?;
    out::line(&shown(&image))?;
    Ok(0)
}

fn shown_span(span: Duration) -> String {
    if span < Duration::from_millis(100) { "less than 0.1 s".to_owned() } else { built::span(span).to_string() }
}

fn shown(image: &GuestImage) -> String {
    let GuestImage { suite, kernel, zfs, postgresql, root_bytes, .. } = image;
    let root = Bytes(*root_bytes);
    out::harmless(&format!("{suite}: Linux {kernel}, ZFS {zfs}, PostgreSQL {postgresql}, root image {root}"))
}

/// Output of `status --json`.
#[derive(Debug, Serialize)]
struct GuestsStatus {
    guests: Vec<GuestStatus>,
    /// `kvm` or `tcg`; null before the first guest has been booted.
    accelerator: Option<&'static str>,
    /// Reason that it is not KVM.
    why: Option<String>,
}

#[derive(Debug, Serialize)]
struct GuestStatus {
    suite: String,
    built: bool,
    kernel: Option<String>,
    zfs: Option<String>,
    postgresql: Option<String>,
    root_bytes: Option<u64>,
    cache_bytes: u64,
}

fn status(host: &Host, cache: &Cache, json: bool) -> Result<u8> {
    let mut guests = Vec::new();
    let mut lines = Vec::new();
    for suite in cache.suites() {
        let image = build::find(cache, &suite)?;
        let lacking = || format!("{suite}: not complete, or of another version; pgstrata guest build --suite {suite}");
        lines.push(image.as_ref().map_or_else(lacking, shown));
        guests.push(GuestStatus {
            suite: suite.name().to_owned(),
            built: image.is_some(),
            kernel: image.as_ref().map(|image| image.kernel.clone()),
            zfs: image.as_ref().map(|image| image.zfs.clone()),
            postgresql: image.as_ref().map(|image| image.postgresql.clone()),
            root_bytes: image.as_ref().map(|image| image.root_bytes),
            cache_bytes: bytes_below(&cache.suite(&suite)),
        });
    }
    let probed = accelerator::known(host, cache);
    let built = guests.iter().any(|guest| guest.built);
    if guests.is_empty() {
        lines.push(format!("no guest is built: pgstrata guest build --suite {}", TRIED.join("|")));
    }
    lines.push(match probed.as_ref().map(|probed| &probed.why) {
        None => "accelerator: not known before the first guest".to_owned(),
        Some(None) => "accelerator: KVM".to_owned(),
        Some(Some(why)) => {
            format!("accelerator: none, the CPU is emulated (TCG), about 11 to 19 times slower; KVM: {why}")
        }
    });
    let accelerator = probed.as_ref().map(|probed| probed.accelerator.name());
    let status = GuestsStatus { guests, accelerator, why: probed.and_then(|probed| probed.why) };
    out::json_or(json, &status, || out::harmless_lines(&(lines.join("\n") + "\n")))?;
    Ok(if built { 0 } else { EXIT_INCOMPLETE })
}

fn remove(cache: &Cache, suite: Option<&Suite>) -> Result<u8> {
    let suites = suite.map_or_else(|| cache.suites(), |suite| vec![suite.clone()]);
    for suite in suites {
        let bytes = cache.remove(&suite)?;
        out::remark(&format!("{suite}: {} removed", Bytes(bytes)));
    }
    Ok(0)
}

fn shell(host: &Host, cache: &Cache, suite: &Suite) -> Result<u8> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::user("`guest shell` needs a terminal").hint("pgstrata guest run -- sh -c '...'"));
    }
    let size = crate::host::terminal::size();
    let start = format!("stty cols {} rows {}; cd /root; exec bash -i", size.0, size.1);
    // script(1) creates the terminal inside.
    let argv = ["script", "--quiet", "--return", "--command", &start, "/dev/null"].map(str::to_owned).to_vec();
    let term = std::env::var("TERM").unwrap_or_else(|_| "linux".to_owned());
    let env = vec![("TERM".to_owned(), term), ("HOME".to_owned(), "/root".to_owned())];
    let order = Order { argv, env, cwd: "/root".to_owned(), limit_ms: None };
    let interrupt = Interrupt::listen_saying(ASKED, LEFT)?;
    in_guest(host, cache, suite, &order, true, &interrupt)
}

/// Runs a command in a fresh guest, with the terminal passed through if it is interactive.
fn in_guest(
    host: &Host,
    cache: &Cache,
    suite: &Suite,
    order: &Order,
    is_interactive: bool,
    interrupt: &Interrupt,
) -> Result<u8> {
    let image = build::require(cache, suite)?;
    let mut vm = Vm::boot(host, cache, &image, &Shape::usual(cache)?, interrupt)?;
    if std::io::stderr().is_terminal() {
        let (kernel, took) = (out::harmless(&vm.hello.kernel), shown_span(vm.took));
        out::remark(&format!("guest {suite}: Linux {kernel}, {} after {took}", vm.accelerator.name()));
    }
    let raw = if is_interactive { Some(RawTerminal::enter()?) } else { None };
    let ended = vm.run(order, Some(Box::new(std::io::stdin())), interrupt, &mut |stream, bytes| match stream {
        OutputStream::Output => out::bytes(bytes),
        OutputStream::Errors => {
            // If standard error is closed, nobody can be notified.
            drop(std::io::stderr().lock().write_all(bytes));
            Ok(())
        }
    });
    drop(raw);
    let ended = ended?;
    vm.power_off();
    Ok(match ended {
        CommandEnd::Exited(code) => u8::try_from(code).unwrap_or(u8::MAX),
        CommandEnd::Killed { signal } => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        CommandEnd::TimedOut => {
            out::remark("the command did not end within its limit and was killed");
            TIMED_OUT
        }
    })
}

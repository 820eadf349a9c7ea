//! `scsi_debug`: a kernel SCSI disk in memory, with configurable latency, sectors and atomic writes.
//!
//! The disk exists while the module is loaded, and the module's parameters define it, so a machine can have one at a
//! time. The only ledger entry is the `module`; its vendor name is the run's id, which identifies it as ours.

use super::identity::BlockDevice;
use super::ledger::Thing;
use super::{
    Base, Built, Layer, LayerInfo, LayerInput, Site, Unmet, guard, kernel_module, knobs, mount_table, must_show, needs,
    size,
};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::command::Command;
use crate::host::time::sleep;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::units::Bytes;
use std::path::{Path, PathBuf};

pub struct ScsiDebug;

const MIB: u64 = 1 << 20;
const MODULE: &str = "scsi_debug";
const PARAMETERS: &str = "/sys/module/scsi_debug/parameters";
/// Length of a SCSI vendor name.
const VENDOR_BYTES: usize = 8;

pub(super) const INFO: LayerInfo = LayerInfo::device(
    "scsi_debug",
    "scsi_debug: a SCSI disk in memory, with a latency and atomic writes of choice; nothing survives.",
    &[
        OptionSpec::required("scsi_debug", OptionKind::Size)
            .doc("Size of the disk, in whole MiB of memory, taken at once."),
        OptionSpec::with_default("latency", OptionKind::Span, "0us").doc("Time until a request is done."),
        OptionSpec::with_default("sector_size", OptionKind::Integer { min: 512 }, "512")
            .doc("Logical sector in bytes: 512, 1024, 2048 or 4096."),
        OptionSpec::with_default("atomic_writes", OptionKind::Boolean, "false")
            .doc("Support atomic writes (Linux 6.11 and later)."),
        knobs::QUEUE,
    ],
)
.in_memory()
.undone_by(&[(LOADED, unload)]);

impl Layer for ScsiDebug {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        if options.size("scsi_debug").is_some_and(|Bytes(bytes)| bytes < 8 * MIB || bytes % MIB != 0) {
            return Err(OptionProblem::at("scsi_debug", "the size must be a multiple of 1 MiB, at least 8 MiB"));
        }
        size::check(options, "sector_size", size::is_sector, "the sector must have 512, 1024, 2048 or 4096 bytes")
    }

    fn unmet(&self, host: &Host, options: &Options) -> Vec<Unmet> {
        let programs = ["modprobe", "rmmod"].into_iter().filter_map(|name| needs::program(host, name, "kmod"));
        // A built-in driver creates its disk from the kernel's command line and cannot remove it.
        let driver = kernel_module::unmet(host, MODULE, MODULE, |_| false);
        let taken = kernel_module::is_loaded(host, MODULE).then(|| Unmet {
            what: "the module scsi_debug, which is loaded already".to_owned(),
            hint: "rmmod scsi_debug, or `pgstrata clean` if a killed run left it".to_owned(),
        });
        let asked = driver.is_none() && options.boolean("atomic_writes") == Some(true);
        let atomic = (asked && !takes_atomic_writes(host)).then(|| Unmet {
            what: format!("atomic writes of scsi_debug in the kernel {}", needs::release(host).unwrap_or_default()),
            hint: "they came with Linux 6.11: run the plan with --guest=trixie, or remove `atomic_writes`".to_owned(),
        });
        needs::root().into_iter().chain(programs).chain(driver).chain(taken).chain(atomic).collect()
    }

    fn claims(&self, _options: &Options) -> Option<String> {
        Some("the module scsi_debug".to_owned())
    }

    fn build(&self, site: &Site<'_>, _inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let size = options.size("scsi_debug").ok_or_else(|| Error::bug("a scsi_debug without a size"))?;
        if kernel_module::is_loaded(site.host, MODULE) {
            return Err(Error::host("the module scsi_debug is loaded already").hint("rmmod scsi_debug"));
        }
        let vendor = vendor(site.ledger.run_id());
        site.ledger.enter(Thing::new("scsi_debug", LOADED).with("vendor", &vendor))?;
        let latency = options.span("latency").map_or(0, |span| span.0);
        let sector = options.integer("sector_size").unwrap_or(512);
        let atomic = options.boolean("atomic_writes").unwrap_or(false);
        let mut parameters = vec![
            format!("dev_size_mb={}", size.0 / MIB),
            format!("sector_size={sector}"),
            format!("inq_vendor={vendor}"),
            // A delay in nanoseconds replaces the one in ticks, where 0 means none.
            "delay=0".to_owned(),
            format!("ndelay={}", latency * 1000),
        ];
        parameters.extend(atomic.then(|| "atomic_wr=1".to_owned()));
        kernel_module::load(site.host, MODULE, &parameters)?;
        let device = device(site, &vendor)?;
        let node = BlockDevice::find(&device)?.node;
        let [unit, sectors, block] = ["queue/atomic_write_unit_max_bytes", "size", "queue/logical_block_size"]
            .map(|name| node.attribute(site.host, name).unwrap_or_default());
        let wanted = [
            ("size", (size.0 / 512).to_string(), sectors),
            ("sector size", sector.to_string(), block),
            ("latency in ns", (latency * 1000).to_string(), parameter(site.host, "ndelay")),
            ("atomic writes", atomic.to_string(), (!["", "0"].contains(&unit.as_str())).to_string()),
        ];
        for (fact, wanted, shown) in &wanted {
            must_show(&format!("{fact} of scsi_debug"), wanted, shown)?;
        }
        let shown = wanted.into_iter().skip(1).map(|(fact, _, shown)| (fact, shown));
        let largest = if unit.is_empty() { "unknown".to_owned() } else { unit };
        let details = shown.chain([("size", size.to_string()), ("largest atomic write", largest)]);
        Ok(Built::one(Base::Device(device), details))
    }
}

const LOADED: &str = "module";

/// SCSI vendor name of a run.
fn vendor(run_id: &str) -> String {
    run_id.chars().filter(char::is_ascii_alphanumeric).take(VENDOR_BYTES).collect()
}

fn parameter(host: &Host, name: &str) -> String {
    host.read_optional(format!("{PARAMETERS}/{name}")).unwrap_or_default()
}

/// The disk with this vendor name, which the kernel takes a moment to show.
fn device(site: &Site<'_>, vendor: &str) -> Result<PathBuf> {
    for _ in 0..mount_table::BUSY_TRIES {
        site.interrupt.check()?;
        let disks = site.host.names_in("/sys/block").into_iter();
        let mut ours = disks.filter(|name| {
            [("vendor", vendor), ("model", MODULE)].iter().all(|(which, wanted)| {
                site.host.read_optional(format!("/sys/block/{name}/device/{which}")).as_deref() == Some(wanted)
            })
        });
        if let Some(name) = ours.next().filter(|name| site.host.exists(format!("/dev/{name}"))) {
            return Ok(Path::new("/dev").join(name));
        }
        sleep(mount_table::BUSY_PAUSE);
    }
    Err(Error::host("the kernel shows no disk after loading scsi_debug")
        .hint("it also needs the driver for SCSI disks (module sd_mod)"))
}

/// Unloads the module if its disk has this vendor name.
fn unload(host: &Host, thing: &Thing) -> Result<()> {
    let vendor = thing.mark("vendor")?;
    mount_table::until_gone(host, || {
        if !kernel_module::is_loaded(host, MODULE) || parameter(host, "inq_vendor") != vendor {
            return Ok(None);
        }
        let disks = host.names_in("/sys/block").into_iter().map(|name| Path::new("/dev").join(name));
        for device in disks.filter_map(|path| BlockDevice::find(&path).ok()) {
            if device.node.attribute(host, "device/model").as_deref() == Some(MODULE) {
                guard::refuse_mounted(host, &device)?;
            }
        }
        Ok(Some(Command::new("rmmod").arg(MODULE)))
    })
}

/// True if the module has the parameter. The kernel ignores an unknown one, with a line in its log.
fn takes_atomic_writes(host: &Host) -> bool {
    let listed = host.run(&Command::new("modinfo").args(["-F", "parm", MODULE]));
    listed.is_ok_and(|listed| listed.stdout.lines().any(|line| line.starts_with("atomic_wr:")))
}

#[cfg(test)]
mod tests;

//! `null_blk`: a kernel block device in memory with configurable latency; for measuring costs other than storage.
//!
//! The only ledger entry is the `device`, by the name of its folder in configfs, which contains the run's id.

use super::identity::BlockDevice;
use super::ledger::Thing;
use super::{
    Base, Built, Details, Layer, LayerInfo, LayerInput, Site, Unmet, folder, guard, kernel_module, knobs, mapper,
    mount_table, must_show, needs, size,
};
use crate::error::{Error, Result};
use crate::host::{Host, files, folders, paths};
use crate::record::claim::{Claim, Promise};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::units::Bytes;
use std::path::{Path, PathBuf};

pub struct NullBlk;

const MIB: u64 = 1 << 20;
/// Usual mount point of configfs.
const CONFIG: &str = "/sys/kernel/config";
const CONFIGFS: &str = "/sys/kernel/config/nullb";
const MODULE: &str = "null_blk";

pub(super) const INFO: LayerInfo = LayerInfo::device(
    "null_blk",
    "null_blk: a device in memory with a latency of choice; nothing survives.",
    &[
        OptionSpec::required("null_blk", OptionKind::Size)
            .doc("Size of the device, in whole MiB; what is written stays in memory."),
        OptionSpec::with_default("latency", OptionKind::Span, "0us")
            .doc("Time until a request is done; 0us = at once."),
        OptionSpec::with_default("block_size", OptionKind::Integer { min: 512 }, "512")
            .doc("Logical block in bytes: 512, 1024, 2048 or 4096."),
        OptionSpec::with_default("cache", OptionKind::Size, "none")
            .doc("Size of a volatile write cache, in whole MiB; without one it declares no cache."),
        knobs::QUEUE,
    ],
)
.in_memory()
.undone_by(&[(DEVICE, remove)]);

impl Layer for NullBlk {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        for key in ["null_blk", "cache"] {
            size::check(options, key, size::is_in_mib, "the size must be a multiple of 1 MiB")?;
        }
        size::check(options, "block_size", size::is_sector, "the block must have 512, 1024, 2048 or 4096 bytes")
    }

    fn unmet(&self, host: &Host, _options: &Options) -> Vec<Unmet> {
        let driver = kernel_module::unmet(host, "null_blk", MODULE, |host| host.exists(CONFIGFS));
        let mounted = mount_table::table(host).is_ok_and(|table| table.iter().any(|mount| mount.target == CONFIG));
        let configfs = (!mounted).then(|| Unmet {
            what: format!("configfs on {CONFIG}, where null_blk takes its options"),
            hint: format!("mount -t configfs none {CONFIG}"),
        });
        needs::root().into_iter().chain(driver).chain(configfs).collect()
    }

    fn build(&self, site: &Site<'_>, _inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let size = options.size("null_blk").ok_or_else(|| Error::bug("a null_blk without a size"))?;
        // Without parameters it creates a device of its own.
        kernel_module::load(site.host, MODULE, &["nr_devices=0".to_owned()])?;
        let name = mapper::short_name(site);
        let folder = Path::new(CONFIGFS).join(&name);
        site.ledger.enter(Thing::new("null_blk", DEVICE).with("name", &name))?;
        files::make_folder(&folder, 0o755)?;
        let latency = options.span("latency").map_or(0, |span| span.0);
        let mut wanted = vec![
            ("size", (size.0 / MIB).to_string()),
            ("memory_backed", "1".to_owned()),
            ("blocksize", options.integer("block_size").unwrap_or(512).to_string()),
            // 2 = by a timer, 0 = immediately (Documentation/block/null_blk.rst).
            ("irqmode", if latency > 0 { "2" } else { "0" }.to_owned()),
        ];
        if latency > 0 {
            wanted.push(("completion_nsec", (latency * 1000).to_string()));
        }
        wanted.extend(options.size("cache").map(|Bytes(bytes)| ("cache_size", (bytes / MIB).to_string())));
        wanted.push(("power", "1".to_owned()));
        let mut details = Details::from([("size".to_owned(), size.to_string())]);
        for (attribute, value) in wanted {
            let file = folder.join(attribute);
            site.host.write(&file, &value)?;
            let shown = site.host.read(&file)?.trim().to_owned();
            must_show(&format!("{attribute} of null_blk"), &value, &shown)?;
            details.insert(attribute.to_owned(), value);
        }
        details.remove("power");
        let device = device_of(site.host, &name)?;
        BlockDevice::find(&device)?;
        let promise = Promise::new(Claim::Volatile, "block device null_blk");
        Ok(Built { bases: vec![Base::Device(device)], details, promises: vec![promise] })
    }
}

const DEVICE: &str = "device";

/// The device of a folder in configfs: newer kernels name it by the folder, older ones by its number.
fn device_of(host: &Host, name: &str) -> Result<PathBuf> {
    if host.exists(format!("/sys/block/{name}")) {
        return Ok(Path::new("/dev").join(name));
    }
    let index = host.read(format!("{CONFIGFS}/{name}/index"))?;
    Ok(PathBuf::from(format!("/dev/nullb{}", index.trim())))
}

fn remove(host: &Host, thing: &Thing) -> Result<()> {
    let name = thing.mark("name")?;
    if !name.starts_with(folder::PREFIX) || name.contains('/') {
        return Err(Error::host(format!("{name} is not a null_blk of pgstrata")));
    }
    let folder = Path::new(CONFIGFS).join(name);
    if !paths::is_folder(&folder) {
        return Ok(());
    }
    if let Ok(device) = device_of(host, name).and_then(|path| BlockDevice::find(&path)) {
        guard::refuse_mounted(host, &device)?;
    }
    folders::remove_empty(&folder)
}

#[cfg(test)]
mod tests;

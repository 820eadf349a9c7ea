//! `linear`: a part of one device by the device mapper, such as the outer or the inner zone of a disk.
//!
//! The only ledger entry is the `mapping`, by its name and UUID. Nothing is written to the device below, so it can be
//! reopened by creating the same mapping.

use super::identity::BlockDevice;
use super::size::Size;
use super::{
    Built, Layer, LayerInfo, LayerInput, Site, Unmet, devices_for, kernel_module, knobs, mapper, precondition,
};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::stack::{Role, Take};
use crate::units::Bytes;

#[cfg(test)]
mod tests;

pub struct Linear;

const MODULE: &str = "dm-mod";
const SECTOR: u64 = 512;
/// Alignment of parts: a multiple of any device's block size.
const STEP: u64 = 1 << 20;

const START: &str = "start";
const SIZE: &str = "size";

/// Start and size of the requested part.
fn part(options: &Options) -> Result<(Size, Size), OptionProblem> {
    Ok((size_or_share(options, START, "0%")?, size_or_share(options, SIZE, "")?))
}

fn size_or_share(options: &Options, key: &str, default: &str) -> Result<Size, OptionProblem> {
    let text = options.text(key).unwrap_or(default);
    Size::parse(text).ok_or_else(|| {
        OptionProblem::at(key, format!("`{text}` is neither a size nor a share")).help("write it as 20GiB or 10%")
    })
}

/// Offset and length of the part on a device, in bytes; `None` if it is empty or ends beyond the device.
fn range(options: &Options, device: u64) -> Option<(u64, u64)> {
    let (start, size) = part(options).ok()?;
    let (start, size) = (start.bytes(device), size.bytes(device));
    (size > 0 && start.checked_add(size)? <= device).then_some((start, size))
}

/// The part in the plan's notation.
fn described(options: &Options) -> String {
    let [size, start] = [SIZE, START].map(|key| options.text(key).unwrap_or("0%"));
    format!("{size} from {start}")
}

/// Hint for a part beyond the end of its device.
const SMALLER: &str = "reduce `start` or `size` of `linear`, or enlarge the device";

pub(super) const INFO: LayerInfo = LayerInfo::device(
    "linear",
    "dm-linear: a part of one device, to compare zones of a disk.",
    &[
        OptionSpec::with_default(START, OptionKind::Text, "0%")
            .doc("Where the part begins: 100GiB, or a share of the device: 90%. Disks that rotate are fastest at 0%."),
        OptionSpec::required(SIZE, OptionKind::Text).doc("Size of the part: 20GiB, or a share of the device: 10%."),
        precondition::PRECONDITION,
        precondition::PRECONDITION_ROUND,
        knobs::QUEUE,
    ],
)
.on(&[Take::ONE_DEVICE])
.keeping_pages()
.undone_by(mapper::UNDO);

impl Layer for Linear {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        precondition::check(options)?;
        let (start, size) = part(options)?;
        for (key, asked) in [(START, start), (SIZE, size)] {
            if matches!(asked, Size::Bytes(bytes) if bytes % STEP != 0) {
                return Err(OptionProblem::at(key, "must be whole MiB"));
            }
        }
        if [Size::Bytes(0), Size::Percent(0.0)].contains(&size) {
            return Err(OptionProblem::at(SIZE, "must be greater than 0"));
        }
        match (start, size) {
            (Size::Percent(start), Size::Percent(size)) if start + size > 100.0 => {
                Err(OptionProblem::at(SIZE, format!("the part would end at {} % of the device", start + size)))
            }
            _ => Ok(()),
        }
    }

    fn lasting(&self, options: &Options, below: &[String]) -> Option<String> {
        let [device] = below else { return None };
        Some(format!("{} from {} of {device}", options.text(SIZE)?, options.text(START).unwrap_or("0%")))
    }

    fn unmet(&self, host: &Host, _options: &Options) -> Vec<Unmet> {
        mapper::unmet(host).chain(kernel_module::unmet_target(host, self.name(), MODULE)).collect()
    }

    fn capacity(&self, options: &Options, data: &[Bytes]) -> Option<Bytes> {
        let [device] = data else { return None };
        range(options, device.0).map(|(_, size)| Bytes(size))
    }

    fn lacks_below(&self, options: &Options, data: &[Bytes]) -> Option<Unmet> {
        let [device] = data else { return None };
        range(options, device.0).is_none().then(|| Unmet {
            what: format!("room for {} on the device below `linear`, which has {device}", described(options)),
            hint: SMALLER.to_owned(),
        })
    }

    fn build(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        kernel_module::load(site.host, MODULE, &[])?;
        let device = BlockDevice::find(devices_for(inputs, Role::Data)[0])?;
        let bytes = mapper::sectors(site.host, device.node)? * SECTOR;
        let (start, size) = range(options, bytes)
            .ok_or_else(|| Error::host(format!("no {} in {}", described(options), Bytes(bytes))).hint(SMALLER))?;
        let below = format!("{}:{} {}", device.node.major, device.node.minor, start / SECTOR);
        let (name, base) = mapper::create(site, self.name(), size / SECTOR, &below, |shown, wanted| shown == wanted)?;
        let details = [("start", Bytes(start).to_string()), ("size", Bytes(size).to_string()), ("mapping", name)];
        Ok(Built::one(base, details))
    }

    fn reopen(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        self.build(site, inputs, options)
    }
}

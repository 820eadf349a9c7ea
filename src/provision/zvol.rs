//! `zvol`: a volume of a pool, for any filesystem.
//!
//! Ledger entry: the `volume`, identified by its name and a unique mark. Its block device is `/dev/zdN` with an
//! arbitrary number; `zvol_id`, which ZFS provides for udev, identifies it.

use super::filesystem::new_uuid;
use super::size::Size;
use super::zfs::{ONE_POOL, REFUSED, name_in, pool};
use super::zfs_tools::{self, MARK};
use super::{Base, Built, Layer, LayerInfo, LayerInput, Site, Unmet, knobs, total};
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::time::sleep;
use crate::host::{Host, paths};
use crate::parse::zfs_get::Property;
use crate::record::durability;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::units::Bytes;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub struct Zvol;

const SIZE: &str = "size";
const DEFAULT_SIZE: &str = "80%";

/// Size of the volume; `None` if missing or neither a size nor a share.
fn size(options: &Options) -> Option<Size> {
    Size::above_zero(options.text(SIZE).unwrap_or(DEFAULT_SIZE))
}

pub(super) const INFO: LayerInfo = LayerInfo::device(
    "zvol",
    "A volume of a ZFS pool: a block device for another filesystem.",
    &[
        OptionSpec::with_default(SIZE, OptionKind::Text, DEFAULT_SIZE)
            .doc("Size of the volume: 4GiB, or a share of the pool's free space: 80%."),
        OptionSpec::with_default("sparse", OptionKind::Boolean, "false").doc("Reserve no space in the pool."),
        zfs_tools::properties(
            "Volume properties by name: { volblocksize = \"8k\", volmode = \"dev\", sync = \"always\" }.",
        ),
        knobs::QUEUE,
    ],
)
.on(&[ONE_POOL])
.undone_by(&[(VOLUME, |host, thing| zfs_tools::destroy(host, "zfs", "-r", thing))]);

impl Layer for Zvol {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        if size(options).is_none() {
            let message = format!("`{}` is neither a size nor a share", options.text(SIZE).unwrap_or_default());
            return Err(OptionProblem::at(SIZE, message).help("write it as 4GiB or 80%"));
        }
        let hidden = options.table(zfs_tools::PROPERTIES_KEY).text("volmode") == Some("none");
        if hidden {
            return Err(OptionProblem::at(zfs_tools::PROPERTIES_KEY, "with volmode=none the volume has no device"));
        }
        zfs_tools::check(options, REFUSED)
    }

    fn skips_same_bytes(&self, options: &Options) -> Option<String> {
        zfs_tools::skips_same_bytes(options)
    }

    fn unmet(&self, host: &Host, _options: &Options) -> Vec<Unmet> {
        let mut unmet = zfs_tools::unmet(host);
        if unmet.is_empty() && zvol_id().is_none() {
            let what = format!("the program {}", ZVOL_IDS[0]);
            unmet.push(Unmet { what, hint: "apt-get install zfsutils-linux".to_owned() });
        }
        unmet
    }

    fn capacity(&self, options: &Options, data: &[Bytes]) -> Option<Bytes> {
        size(options).map(|size| Bytes(size.bytes(total(data).0)))
    }

    fn build(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let pool = pool(inputs)?;
        let (volume, mark) = (name_in(pool, site), new_uuid(site.host)?);
        let free = number(&zfs_tools::get(site.host, "zfs", pool)?, "available")?;
        let size = size(options).ok_or_else(|| Error::bug("a zvol without a size"))?.bytes(free);
        site.ledger.enter(zfs_tools::marked(self.name(), VOLUME, &volume, &mark))?;
        let asked = zfs_tools::asked(options);
        let sparse = (options.boolean("sparse") == Some(true)).then_some("-s");
        let create = zfs_tools::call("zfs", &["create", "-V", &size.to_string(), "-o", &format!("{MARK}={mark}")]);
        site.host.run(&create.args(sparse).args(zfs_tools::arguments(&asked)).arg(&volume))?;
        open(site.host, &volume, &asked)
    }

    fn reopen(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        open(site.host, &name_in(pool(inputs)?, site), &zfs_tools::asked(options))
    }
}

const VOLUME: &str = "volume";

fn number(found: &[Property], name: &str) -> Result<u64> {
    let value = found.iter().find(|property| property.name == name).map(|property| property.value.as_str());
    let number = value.and_then(|value| value.parse().ok());
    number.ok_or_else(|| Error::tool(format!("zfs get shows no number for `{name}`")))
}

/// Finds the volume's device and reads the volume back.
fn open(host: &Host, volume: &str, asked: &[(String, String)]) -> Result<Built> {
    let device = device_of(host, volume)?;
    let found = zfs_tools::get(host, "zfs", volume)?;
    zfs_tools::compare("the volume", asked, &found)?;
    let size = ("volsize".to_owned(), Bytes(number(&found, "volsize")?).to_string());
    let promises = found.iter().filter_map(|property| durability::zfs_property(&property.name, &property.value));
    let promises = promises.chain(durability::zfs_parameters(|name| knobs::modules::shown(host, name))).collect();
    Ok(Built { promises, ..Built::one(Base::Device(device), zfs_tools::facts(&found).into_iter().chain([size])) })
}

/// Locations of the program in Debian and elsewhere.
const ZVOL_IDS: [&str; 2] = ["/usr/lib/udev/zvol_id", "/lib/udev/zvol_id"];

fn zvol_id() -> Option<&'static str> {
    ZVOL_IDS.into_iter().find(|path| paths::exists(Path::new(path)))
}

/// Attempts to wait for a new volume's device, which the kernel makes in the background.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// The block device of a volume.
fn device_of(host: &Host, volume: &str) -> Result<PathBuf> {
    let program = zvol_id().ok_or_else(|| Error::host(format!("there is no {}", ZVOL_IDS[0])))?;
    for _ in 0..TRIES {
        let names = host.names_in("/sys/block").into_iter().filter(|name| name.starts_with("zd"));
        let paths = names.map(|name| Path::new("/dev").join(name)).filter(|path| paths::exists(path));
        for path in paths {
            // A device that disappears meanwhile is not it.
            let named = host.run(&Command::new(program).arg(&path));
            if named.is_ok_and(|named| named.stdout.trim() == volume) {
                return Ok(path);
            }
        }
        sleep(PAUSE);
    }
    Err(Error::host(format!("the kernel shows no block device for the volume {volume}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::options::OptionValue;

    fn sized(text: &str) -> Options {
        let mut options = Options::default();
        options.set(SIZE, OptionValue::Text(text.to_owned()));
        options
    }

    #[test]
    fn a_size_is_absolute_or_a_share_in_whole_blocks() {
        assert_eq!(Zvol.capacity(&sized("1GiB"), &[]), Some(Bytes(1 << 30)));
        assert_eq!(Zvol.capacity(&sized("50%"), &[Bytes(3 << 20), Bytes((2 << 20) + 4096)]), Some(Bytes(2 << 20)));
        for bad in ["0%", "101%", "80", "x", "0GiB"] {
            assert_eq!(Zvol.check(&sized(bad)).unwrap_err().key.as_deref(), Some(SIZE), "{bad}");
        }
        let hidden = ("volmode".to_owned(), OptionValue::Text("none".to_owned()));
        let mut options = Options::default();
        options.set(zfs_tools::PROPERTIES_KEY, OptionValue::Map([hidden].into()));
        assert!(Zvol.check(&options).is_err());
    }
}

//! The images of a run: written in full once, before the first trial that needs them, and used by all trials in turn.
//!
//! An image is identified by its folder, its size and its position among identical ones in a stack, so that two images
//! of one stack stay distinct. A stack that is kept for all its trials has images of its own. Images precede everything
//! of a trial in the ledger and are removed with the run; a resumed run makes them again ([ADR
//! 18](../../docs/adr/0018-images-written-in-full.md)).

use super::devices::DeviceWalk;
use super::identity::BlockDevice;
use super::image_file::{self, Refilled, WRITTEN, make_file};
use super::sysfs::DeviceNumber;
use super::{Site, Space, folder, layer, needs};
use crate::error::{Context, Error, Result};
use crate::host::{files, paths};
use crate::record::stack::StackSpec;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedImage {
    /// The node that stands on it.
    pub node: String,
    pub folder: PathBuf,
    pub size: Bytes,
    /// Number of earlier images of the stack with the same folder and size.
    slot: usize,
}

impl WantedImage {
    /// Slot and size: its name among the images of its folder.
    pub(super) fn place(&self) -> String {
        format!("image {} of {}", self.slot + 1, self.size)
    }
}

/// An existing image.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct MadeImage {
    wanted: WantedImage,
    /// The stack that keeps it, if one does.
    kept: Option<StackSpec>,
    path: PathBuf,
}

/// The existing images of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Images {
    made: Vec<MadeImage>,
    /// Stacks that stand beside the next one and have images of their own.
    #[serde(skip)]
    pub beside: Vec<StackSpec>,
}

/// Fully written images that a stack stands on.
pub fn of_stack(spec: &StackSpec) -> Vec<WantedImage> {
    let mut all: Vec<WantedImage> = Vec::new();
    for node in &spec.nodes {
        if let Some(Space::Image(folder, size)) = layer(&node.layer).and_then(|layer| layer.space(&node.options)) {
            let slot = all.iter().filter(|known| (&known.folder, known.size) == (&folder, size)).count();
            all.push(WantedImage { node: node.name.clone(), folder, size, slot });
        }
    }
    all
}

/// Every image that the stacks of a run need, each once; given those that stand at once.
pub fn of_run(stands: &[Vec<&StackSpec>]) -> Vec<WantedImage> {
    let mut there = Images::default();
    for stand in stands {
        there.beside.clear();
        for spec in stand {
            let kept = spec.reuse.then(|| (*spec).clone());
            let lacking = there.lacking(spec).into_iter();
            there.made.extend(lacking.map(|wanted| MadeImage { wanted, kept: kept.clone(), path: PathBuf::new() }));
            there.beside.push((*spec).clone());
        }
    }
    there.made.into_iter().map(|made| made.wanted).collect()
}

/// Reports the bytes written and the total.
type Report<'a> = &'a dyn Fn(Bytes, Bytes) -> Result<()>;

impl Images {
    fn find(&self, spec: &StackSpec, wanted: &WantedImage) -> Option<&MadeImage> {
        self.made.iter().find(|MadeImage { wanted: made, kept, .. }| {
            let same = (&made.folder, made.size, made.slot) == (&wanted.folder, wanted.size, wanted.slot);
            same && kept.as_ref() == spec.reuse.then_some(spec)
        })
    }

    /// The images of a stack beside those that stand.
    fn of_next(&self, spec: &StackSpec) -> impl Iterator<Item = WantedImage> {
        let taken: Vec<WantedImage> = self.beside.iter().flat_map(of_stack).collect();
        of_stack(spec).into_iter().map(move |wanted| {
            let alike = |other: &&WantedImage| (&other.folder, other.size) == (&wanted.folder, wanted.size);
            WantedImage { slot: wanted.slot + taken.iter().filter(alike).count(), ..wanted }
        })
    }

    /// Images that a stack needs and that do not exist yet.
    pub fn lacking(&self, spec: &StackSpec) -> Vec<WantedImage> {
        self.of_next(spec).filter(|wanted| self.find(spec, wanted).is_none()).collect()
    }

    /// Existing images of a stack, by node.
    pub fn by_node(&self, spec: &StackSpec) -> BTreeMap<String, PathBuf> {
        let known = self.of_next(spec).filter_map(|wanted| {
            let path = self.find(spec, &wanted)?.path.clone();
            Some((wanted.node, path))
        });
        known.collect()
    }

    /// Makes the missing images of a stack, each entered into the ledger first, and reports the bytes written.
    ///
    /// # Errors
    /// Before anything is written, when there is too little space; interrupted. Then none of them counts as made: the
    /// caller undoes the ledger back to where it was.
    pub fn make(&mut self, site: &Site<'_>, spec: &StackSpec, report: Report<'_>) -> Result<()> {
        let lacking = self.lacking(spec);
        let of = Bytes(lacking.iter().fold(0, |sum, image| image.size.0.saturating_add(sum)));
        let spaces: Vec<Space> = lacking.iter().map(|image| Space::Image(image.folder.clone(), image.size)).collect();
        if let Some(unmet) = needs::lacking_space(site.host, &spaces).into_iter().next() {
            return Err(
                Error::host(format!("the images of the stack {} need {}", spec.name, unmet.what)).hint(unmet.hint)
            );
        }
        let mut made = Vec::new();
        let mut before = 0;
        for wanted in lacking {
            let name = format!("{}{}-image-{}.img", folder::PREFIX, site.ledger.run_id(), site.ledger.mark());
            let path = make_file(site, &wanted.folder, &name, true)?;
            let file = image_file::opened(site.ledger, &path)?;
            image_file::fill(&file, &path, wanted.size, site.interrupt, &|done| report(Bytes(before + done.0), of))?;
            before += wanted.size.0;
            made.push(MadeImage { wanted, kept: spec.reuse.then(|| spec.clone()), path });
        }
        self.made.extend(made);
        Ok(())
    }
}

/// Rewrites the ranges that mkfs left without a written block in the run's own fully written images below these
/// devices. Nobody may write to them meanwhile.
///
/// # Errors
/// When a device cannot be found or an image cannot be written; interrupted.
pub(super) fn refill_below<'d>(site: &Site<'_>, tops: impl Iterator<Item = &'d &'d Path>) -> Result<Refilled> {
    let things = site.ledger.open_things().into_iter().map(|(_, thing)| thing);
    let written = things.filter(|thing| thing.kind == "image" && thing.marks.contains_key(WRITTEN));
    let written: BTreeSet<(u64, u64)> = written.filter_map(|thing| image_file::known(&thing)).collect();
    let mut walk = DeviceWalk::new(site.host)?;
    for top in tops {
        // mkfs's writes must reach the image before it is read.
        files::open(top)?.sync_all().or_host(|| format!("sync {}", top.display()))?;
        walk.node(BlockDevice::find(top)?.node);
    }
    let mut all = Refilled::default();
    for device in walk.below.devices.iter().filter(|device| !written.is_empty() && device.backing_file.is_some()) {
        let (file, path) = image_file::behind(site.host, DeviceNumber { major: device.major, minor: device.minor })?;
        let found = paths::look_at_open(&file, &path)?;
        if !written.contains(&(found.filesystem, found.inode)) {
            continue;
        }
        let refilled = image_file::refill(&file, &path, site.interrupt)?;
        all = Refilled { ranges: all.ranges + refilled.ranges, bytes: all.bytes + refilled.bytes };
    }
    Ok(all)
}

/// Write speed of a folder for an image, in bytes per second; `None` if measuring it would leave a trace.
pub fn try_speed(folder: &Path) -> Option<f64> {
    image_file::try_speed(&files::nearest_existing(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::provision::image_file::remove;
    use crate::provision::ledger::Thing;
    use std::fs;

    #[test]
    fn without_a_known_inode_only_an_empty_image_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let undo =
            |path: &Path| remove(&Host::this(), &Thing::new("loop", "image").with("path", path.to_str().unwrap()));
        for name in ["other.img", "pgstrata-x", "pgstrata-folder.img", "pgstrata-full.img"] {
            let path = place.path().join(name);
            let made = if name.contains("folder") { fs::create_dir(&path) } else { fs::write(&path, "x") };
            made.unwrap();
            assert!(undo(&path).is_err(), "{name}");
            assert!(path.exists());
        }
        let ours = place.path().join("pgstrata-1.img");
        fs::write(&ours, "").unwrap();
        undo(&ours).unwrap();
        assert!(!ours.exists());
        undo(&ours).unwrap();
    }
}

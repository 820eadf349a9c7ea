//! A pool for tests, a stand-in for ZFS if the kernel lacks it: an ext4 on its first data device, with folders as
//! datasets.

use super::ledger::Thing;
use super::{Base, Built, Described, Layer, LayerInfo, LayerInput, Site, Unmet, folder, layer};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::record::options::{OptionKind, OptionSpec, Options};
use crate::record::stack::{BaseKind, Role, Take};
use std::collections::BTreeMap;
use std::path::Path;

pub struct Pool;

pub static POOL: Pool = Pool;

/// A dataset of the pool.
pub struct Dataset;

pub static DATASET: Dataset = Dataset;

const PROPERTIES: &[OptionSpec] =
    &[OptionSpec::optional("properties", OptionKind::Properties).doc("Properties by name.")];

const fn take(role: Role, key: &'static str, least: usize) -> Take {
    let kind = BaseKind::Device;
    Take { role, kind, key, least, most: 64, groups: &["mirror", "raidz1"], doc: "Devices, or groups of them." }
}

const POOL_INFO: LayerInfo = LayerInfo {
    takes: &[
        take(Role::Data, "vdevs", 1),
        take(Role::Log, "log", 0),
        take(Role::Cache, "cache", 0),
        take(Role::Special, "special", 0),
    ],
    offers: BaseKind::Pool,
    ..LayerInfo::device("test-pool", "A pool for tests.", PROPERTIES)
};

impl Described for Pool {
    fn info(&self) -> &LayerInfo {
        &POOL_INFO
    }
}

impl Layer for Pool {
    fn unmet(&self, _host: &Host, _options: &Options) -> Vec<Unmet> {
        Vec::new()
    }

    fn build(&self, site: &Site<'_>, inputs: &[LayerInput], _options: &Options) -> Result<Built> {
        let data: Vec<LayerInput> = inputs.iter().filter(|given| given.role == Role::Data).take(1).cloned().collect();
        let ext4 = layer("ext4").ok_or_else(|| Error::bug("no ext4"))?;
        let built = ext4.build(site, &data, &Options::default())?;
        let [Base::Folder(path)] = built.bases.as_slice() else { return Err(Error::bug("ext4 offers no folder")) };
        let groups: Vec<&str> = inputs.iter().filter_map(|given| given.group.as_deref()).collect();
        let details = BTreeMap::from([("groups".to_owned(), groups.join(" "))]);
        Ok(Built::one(Base::Pool(path.display().to_string()), details))
    }

    fn undo(&self, _host: &Host, thing: &Thing) -> Result<()> {
        Err(Error::bug(format!("the pool for tests makes no {}", thing.kind)))
    }
}

const DATASET_INFO: LayerInfo = LayerInfo::folder("test-dataset", "A dataset for tests.", PROPERTIES)
    .on(&[Take { kind: BaseKind::Pool, ..Take::ONE_DEVICE }]);

impl Described for Dataset {
    fn info(&self) -> &LayerInfo {
        &DATASET_INFO
    }
}

impl Layer for Dataset {
    fn unmet(&self, _host: &Host, _options: &Options) -> Vec<Unmet> {
        Vec::new()
    }

    fn build(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let [LayerInput { base: Base::Pool(pool), .. }] = inputs else { return Err(Error::bug("no pool")) };
        let path = Path::new(pool).join(&site.name);
        folder::make(site.ledger, self.name(), &path)?;
        let pairs = options.table("properties").0.into_iter();
        Ok(Built::one(Base::Folder(path), pairs.map(|(key, value)| (key, value.plain()))))
    }

    fn undo(&self, host: &Host, thing: &Thing) -> Result<()> {
        folder::undo(host, thing)
    }
}

//! `hugetlbfs`: huge pages as files, for mmap(2) alone. It is here so that a plan shows why no cluster lies on it.

use super::ledger::Thing;
use super::mount::{self, WantedMount};
use super::{Built, GivenGround, Ground, Layer, Site, Unmet, needs};
use crate::error::{Error, Result};
use crate::host::{Host, files};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::stack::GroundKind;
use std::collections::BTreeMap;
use std::path::Path;

pub struct Hugetlbfs;

const OPTIONS: &[OptionSpec] = &[OptionSpec {
    key: "mount",
    kind: OptionKind::TextList,
    required: false,
    default: Some("none"),
    doc: "Mount options, one string each: [\"pagesize=2M\"].",
}];

impl Layer for Hugetlbfs {
    fn name(&self) -> &'static str {
        "hugetlbfs"
    }

    fn doc(&self) -> &'static str {
        "hugetlbfs: huge pages as files; it has no write(2), so every case on it fails with that reason."
    }

    fn offers(&self) -> GroundKind {
        GroundKind::Folder
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        mount::check(options, &[])
    }

    fn unmet(&self, host: &Host, _options: &Options) -> Vec<Unmet> {
        let programs = ["mount", "umount"].into_iter().filter_map(|name| needs::program(host, name, "mount"));
        needs::root().into_iter().chain(programs).chain(needs::kernel_filesystem(host, "hugetlbfs", &[])).collect()
    }

    fn build(&self, site: &Site<'_>, _inputs: &[GivenGround], options: &Options) -> Result<Built> {
        let owner = self.name();
        let asked = mount::asked(options);
        let wanted = WantedMount {
            owner,
            fstype: owner,
            source: site.name.as_str(),
            others: Vec::new(),
            options: &asked,
            members: Vec::new(),
            rules: &[],
            in_force: |_, _| Vec::new(),
        };
        let target = mount::mount(site, &wanted)?;
        must_write(&target)?;
        Ok(Built::one(Ground::Folder(target), BTreeMap::new()))
    }

    fn undo(&self, host: &Host, thing: &Thing) -> Result<()> {
        mount::undo(host, thing)
    }
}

/// Writes one block, as initdb would.
fn must_write(folder: &Path) -> Result<()> {
    let file = files::create(&folder.join("block"))?;
    files::write_all_at(&file, &[0; 8192], 0).map_err(|e| {
        Error::host(format!("hugetlbfs cannot hold a cluster: it has no write(2) ({e})"))
            .hint("for files in memory use tmpfs; for shared_buffers in huge pages set huge_pages = on")
    })
}

#[cfg(test)]
mod tests {
    use crate::provision::test_site::{TestPlace, stack};
    use crate::record::options::Options;

    #[test]
    fn a_cluster_is_refused_because_write_is() {
        let Some(place) = TestPlace::with_layer("hugetlbfs") else { return };
        let error = place.build(&stack("huge", vec![("hugetlbfs", Options::default())])).unwrap_err();
        assert!(error.to_string().contains("hugetlbfs cannot hold a cluster: it has no write(2)"), "{error}");
        place.clean();
    }
}

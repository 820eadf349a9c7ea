//! Filesystems in memory: `tmpfs`, with a limit and swappable; `ramfs`, the page cache without a limit; `hugetlbfs`,
//! huge pages for mmap(2) only, included so that a plan shows why it cannot hold a cluster.

use super::by_hand::Script;
use super::ledger::Thing;
use super::mount::{self, WantedMount};
use super::options_kept::KeepSign::{Shown, Unless};
use super::options_kept::{self, KeepRule};
use super::{Base, Built, Described, Details, Layer, LayerInfo, LayerInput, Site, Unmet, needs};
use crate::error::{Error, Result};
use crate::host::{Host, files};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::units::Bytes;
use std::path::Path;

/// A filesystem in memory.
pub struct MemoryFilesystem {
    info: LayerInfo,
    /// Mount options that have keys of their own.
    own: &'static [(&'static str, &'static str)],
    rules: &'static [KeepRule],
    /// Facts of the mounted filesystem, if they match the request.
    facts: fn(&Host, &Path, &Options) -> Result<Details>,
}

pub static TMPFS: MemoryFilesystem = MemoryFilesystem {
    info: LayerInfo {
        usual_mount_options: "huge mpol nr_inodes noswap",
        in_memory: true,
        ..LayerInfo::folder(
            "tmpfs",
            "tmpfs: files in memory, the upper bound for any storage; nothing survives a power loss.",
            &[
                OptionSpec::required("size", OptionKind::Size).doc("Size limit for its files, in memory and swap."),
                mount_options("Extra mount options, one string each: [\"huge=always\", \"noatime\"]."),
            ],
        )
    },
    own: &[("size=", "give the size as `size`"), ("nr_blocks=", "give the size as `size`")],
    // mm/shmem.c, `shmem_show_options`.
    rules: &[
        // Its value is compared separately, since the kernel rounds it.
        ("size=", Shown(&["size="])),
        ("huge=never", Unless(&["huge="])),
        ("mode=1777 mode=01777", Unless(&["mode="])),
        ("uid=0", Unless(&["uid="])),
        ("gid=0", Unless(&["gid="])),
        ("inode32", Unless(&["inode64"])),
        ("mpol=default", Unless(&["mpol="])),
        ("mpol=interleave", Shown(&["mpol=interleave:"])),
        ("mpol=bind", Shown(&["mpol=bind:"])),
    ],
    facts: limit_in_force,
};

pub static RAMFS: MemoryFilesystem = MemoryFilesystem {
    info: LayerInfo::folder(
        "ramfs",
        "ramfs: files in memory without a size limit; large data can exhaust the machine's memory.",
        &[mount_options(
            "Mount options, one string each. ramfs ignores unknown options; an option that does not show up afterwards is an error.",
        )],
    ),
    own: &[],
    // fs/ramfs/inode.c, `ramfs_show_options`: it knows only the mode.
    rules: &[("mode=755 mode=0755", Unless(&["mode="]))],
    facts: |_, _, _| Ok(Details::new()),
};

pub static HUGETLBFS: MemoryFilesystem = MemoryFilesystem {
    info: LayerInfo::folder(
        "hugetlbfs",
        "hugetlbfs: huge pages as files; it has no write(2), so every case on it fails with that reason.",
        &[mount_options("Mount options, one string each: [\"pagesize=2M\"].")],
    ),
    own: &[],
    rules: &[],
    facts: must_write,
};

const fn mount_options(doc: &'static str) -> OptionSpec {
    OptionSpec::with_default("mount", OptionKind::TextList, "none").doc(doc)
}

impl Described for MemoryFilesystem {
    fn info(&self) -> &LayerInfo {
        &self.info
    }
}

impl Layer for MemoryFilesystem {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        let has_size = self.info.options.iter().any(|option| option.key == "size");
        // The kernel interprets 0 as "no limit".
        if has_size && options.size("size").unwrap_or_default() == Bytes(0) {
            let missing = format!("the size of the {} is missing or 0", self.name());
            return Err(OptionProblem::at("size", missing).help("write it as 4GiB"));
        }
        mount::check(options, self.own)
    }

    fn unmet(&self, host: &Host, _options: &Options) -> Vec<Unmet> {
        let programs = ["mount", "umount"].into_iter().filter_map(|name| needs::program(host, name, "mount"));
        needs::root().into_iter().chain(programs).chain(needs::kernel_filesystem(host, self.name(), &[])).collect()
    }

    fn build(&self, site: &Site<'_>, _inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let asked = asked(options);
        let wanted = WantedMount {
            fstype: self.name(),
            source: site.name.as_str(),
            others: Vec::new(),
            options: &asked,
            members: Vec::new(),
            rules: self.rules,
            in_force: |_, _| Vec::new(),
        };
        let target = mount::mount(site, &wanted)?;
        let facts = (self.facts)(site.host, &target, options)?;
        Ok(Built::one(Base::Folder(target), facts))
    }

    fn by_hand(&self, script: &mut Script, _inputs: &[LayerInput], options: &Options) -> Result<Vec<Base>> {
        let name = self.name();
        Ok(vec![Base::Folder(mount::by_hand(script, name, name, &asked(options).join(","), name))])
    }

    fn undo(&self, host: &Host, thing: &Thing) -> Result<()> {
        mount::undo(host, thing)
    }
}

fn asked(options: &Options) -> Vec<String> {
    let size = options.size("size").map(|size| format!("size={}", size.0));
    mount::asked(options).into_iter().chain(size).collect()
}

/// Largest page size of any architecture that PostgreSQL runs on: the kernel rounds the limit up to whole pages.
const LARGEST_PAGE_BYTES: u64 = 64 << 10;

fn limit_in_force(host: &Host, target: &Path, options: &Options) -> Result<Details> {
    let size = options.size("size").ok_or_else(|| Error::bug("a tmpfs without a size"))?;
    let shown = mount::mount_of(host, target)?.super_options;
    match shown.iter().find_map(|option| option.strip_prefix("size=")).and_then(options_kept::amount) {
        Some(limit) if (size.0..size.0.saturating_add(LARGEST_PAGE_BYTES)).contains(&limit) => {
            Ok([("limit".to_owned(), Bytes(limit).to_string())].into())
        }
        other => Err(Error::host(format!("requested a tmpfs of {size}, but the kernel reports {other:?} bytes"))),
    }
}

/// Writes one block, as initdb would.
fn must_write(_host: &Host, target: &Path, _options: &Options) -> Result<Details> {
    let file = files::create(&target.join("block"))?;
    files::write_all_at(&file, &[0; 8192], 0).map_err(|e| {
        Error::host(format!("hugetlbfs cannot hold a cluster: it has no write(2) ({e})"))
            .hint("for files in memory use tmpfs; for shared_buffers in huge pages set huge_pages = on")
    })?;
    Ok(Details::new())
}

#[cfg(test)]
mod tests {
    use crate::provision::test_site::{TestPlace, stack};
    use crate::record::options::Options;

    #[test]
    fn a_cluster_is_refused_on_hugetlbfs_because_write_is() {
        let Some(place) = TestPlace::with_layer("hugetlbfs") else { return };
        let error = place.build(&stack("huge", vec![("hugetlbfs", Options::default())])).unwrap_err();
        assert!(error.to_string().contains("hugetlbfs cannot hold a cluster: it has no write(2)"), "{error}");
        place.clean();
    }
}

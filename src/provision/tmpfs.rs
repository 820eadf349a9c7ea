//! `tmpfs`: files in memory, with a limit; swappable.

use super::ledger::Thing;
use super::mount::{self, WantedMount};
use super::options_kept::Kept::{Shown, Unless};
use super::options_kept::{self, KeepRule};
use super::{Built, GivenGround, Ground, Layer, Site, Space, Unmet, needs};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::stack::GroundKind;
use crate::units::Bytes;

pub struct Tmpfs;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        key: "size",
        kind: OptionKind::Size,
        required: true,
        default: None,
        doc: "Size limit for its files, in memory and swap.",
    },
    OptionSpec {
        key: "mount",
        kind: OptionKind::TextList,
        required: false,
        default: Some("none"),
        doc: "Extra mount options, one string each: [\"huge=always\", \"noatime\"].",
    },
];

/// mm/shmem.c, `shmem_show_options`.
const RULES: &[KeepRule] = &[
    // Its value is compared apart, as the kernel rounds it.
    ("size=", Shown(&["size="])),
    ("huge=never", Unless(&["huge="])),
    ("mode=1777", Unless(&["mode="])),
    ("mode=01777", Unless(&["mode="])),
    ("uid=0", Unless(&["uid="])),
    ("gid=0", Unless(&["gid="])),
    ("inode32", Unless(&["inode64"])),
    ("mpol=default", Unless(&["mpol="])),
    ("mpol=interleave", Shown(&["mpol=interleave:"])),
    ("mpol=bind", Shown(&["mpol=bind:"])),
];

/// The largest page of any architecture that PostgreSQL runs on: the kernel rounds the limit up to whole pages.
const LARGEST_PAGE_BYTES: u64 = 64 << 10;

const OWN: &[(&str, &str)] = &[("size=", "give the size as `size`"), ("nr_blocks=", "give the size as `size`")];

impl Layer for Tmpfs {
    fn name(&self) -> &'static str {
        "tmpfs"
    }

    fn doc(&self) -> &'static str {
        "tmpfs: files in memory, the upper bound for any storage; nothing survives a power loss."
    }

    fn offers(&self) -> GroundKind {
        GroundKind::Folder
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn usual_mount_options(&self) -> &'static [&'static str] {
        &["huge", "mpol", "nr_inodes", "noswap"]
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        // The kernel takes 0 as "no limit".
        if options.size("size").unwrap_or_default() == Bytes(0) {
            return Err(OptionProblem::at("size", "the size of the tmpfs is missing or 0").help("write it as 4GiB"));
        }
        mount::check(options, OWN)
    }

    fn unmet(&self, host: &Host, _options: &Options) -> Vec<Unmet> {
        let programs = ["mount", "umount"].into_iter().filter_map(|name| needs::program(host, name, "mount"));
        needs::root().into_iter().chain(programs).chain(needs::kernel_filesystem(host, "tmpfs", &[])).collect()
    }

    fn capacity(&self, options: &Options, _data: &[Bytes]) -> Option<Bytes> {
        options.size("size")
    }

    fn space(&self, options: &Options) -> Option<Space> {
        options.size("size").map(Space::Memory)
    }

    fn build(&self, site: &Site<'_>, _inputs: &[GivenGround], options: &Options) -> Result<Built> {
        let size = options.size("size").ok_or_else(|| Error::bug("a tmpfs without a size"))?;
        let mut asked = mount::asked(options);
        asked.push(format!("size={}", size.0));
        let (owner, source) = (self.name(), site.name.as_str());
        let in_force = |_: &Host, _: &str| Vec::new();
        let wanted = WantedMount {
            owner,
            fstype: owner,
            source,
            others: Vec::new(),
            options: &asked,
            members: Vec::new(),
            rules: RULES,
            in_force,
        };
        let target = mount::mount(site, &wanted)?;
        let limit = limit(&crate::provision::mount::mount_of(site.host, &target)?.super_options);
        match limit {
            Some(limit) if (size.0..size.0.saturating_add(LARGEST_PAGE_BYTES)).contains(&limit) => {
                let details = [("limit".to_owned(), Bytes(limit).to_string())].into();
                Ok(Built::one(Ground::Folder(target), details))
            }
            other => Err(Error::host(format!("requested a tmpfs of {size}, but the kernel reports {other:?} bytes"))),
        }
    }

    fn undo(&self, host: &Host, thing: &Thing) -> Result<()> {
        mount::undo(host, thing)
    }
}

fn limit(shown: &[String]) -> Option<u64> {
    shown.iter().find_map(|option| option.strip_prefix("size=")).and_then(options_kept::amount)
}

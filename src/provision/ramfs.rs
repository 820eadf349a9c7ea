//! `ramfs`: the page cache as a filesystem, without a limit and never swapped.

use super::ledger::Thing;
use super::mount::{self, WantedMount};
use super::options_kept::KeepRule;
use super::options_kept::Kept::Unless;
use super::{Built, GivenGround, Ground, Layer, Site, Unmet, needs};
use crate::error::Result;
use crate::host::Host;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::stack::GroundKind;
use std::collections::BTreeMap;

pub struct Ramfs;

const OPTIONS: &[OptionSpec] = &[OptionSpec {
    key: "mount",
    kind: OptionKind::TextList,
    required: false,
    default: Some("none"),
    doc: "Mount options, one string each. ramfs ignores unknown options; an option that does not show up afterwards is an error.",
}];

/// fs/ramfs/inode.c, `ramfs_show_options`: the mode is all that it knows.
const RULES: &[KeepRule] = &[("mode=755", Unless(&["mode="])), ("mode=0755", Unless(&["mode="]))];

impl Layer for Ramfs {
    fn name(&self) -> &'static str {
        "ramfs"
    }

    fn doc(&self) -> &'static str {
        "ramfs: files in memory without a size limit; large data can exhaust the machine's memory."
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
        needs::root().into_iter().chain(programs).chain(needs::kernel_filesystem(host, "ramfs", &[])).collect()
    }

    fn build(&self, site: &Site<'_>, _inputs: &[GivenGround], options: &Options) -> Result<Built> {
        let (owner, source) = (self.name(), site.name.as_str());
        let asked = mount::asked(options);
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
        Ok(Built::one(Ground::Folder(target), BTreeMap::new()))
    }

    fn undo(&self, host: &Host, thing: &Thing) -> Result<()> {
        mount::undo(host, thing)
    }
}

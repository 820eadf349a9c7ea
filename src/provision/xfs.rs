//! `xfs`.

use super::filesystem::{self, OnDevice, Recipe};
use super::options_kept::Kept::{Shown, Unless};
use super::options_kept::Rule;
use crate::error::Result;
use crate::host::Host;
use crate::host::command::Command;
use crate::parse::xfs_info;
use std::collections::BTreeMap;
use std::path::Path;

/// The layer.
pub static XFS: OnDevice = OnDevice { doc: "XFS: the default of Red Hat; needs 300 MiB.", recipe: RECIPE };

const RECIPE: Recipe = Recipe {
    name: "xfs",
    mkfs: "mkfs.xfs",
    programs: &["xfs_info"],
    package: "xfsprogs",
    modules: &["xfs"],
    label_bytes: 12,
    label_and_uuid: |label, uuid| {
        vec!["-q".to_owned(), "-L".to_owned(), label.to_owned(), "-m".to_owned(), format!("uuid={uuid}")]
    },
    rules: RULES,
    in_force: |_, _| Vec::new(),
    facts,
};

/// fs/xfs/xfs_super.c, `xfs_fs_parameters` and `xfs_fs_show_options`.
const RULES: &[Rule] = &[
    ("nodiscard", Unless(&["discard"])),
    ("nolargeio", Unless(&["largeio"])),
    ("noikeep", Unless(&["ikeep"])),
    ("attr2", Unless(&["noattr2"])),
    ("bsdgroups", Shown(&["grpid"])),
    ("nogrpid", Unless(&["grpid"])),
    ("sysvgroups", Unless(&["grpid"])),
    ("dax=inode", Unless(&["dax="])),
    ("dax", Shown(&["dax=always"])),
    ("lifetime", Unless(&["nolifetime"])),
    ("quota", Shown(&["usrquota"])),
    ("uquota", Shown(&["usrquota"])),
    ("gquota", Shown(&["grpquota"])),
    ("pquota", Shown(&["prjquota"])),
    ("uqnoenforce", Shown(&["uqnoenforce"])),
    ("qnoenforce", Shown(&["uqnoenforce"])),
];

const FACTS: &[&str] = &[
    "meta-data isize",
    "meta-data agcount",
    "meta-data sectsz",
    "meta-data crc",
    "meta-data finobt",
    "meta-data sparse",
    "meta-data rmapbt",
    "meta-data reflink",
    "meta-data bigtime",
    "meta-data inobtcount",
    "data bsize",
    "data blocks",
    "data sunit",
    "data swidth",
    "naming ftype",
    "log",
    "log bsize",
    "log blocks",
    "log version",
    "log sectsz",
    "log sunit",
    "log lazy-count",
];

fn facts(host: &Host, _device: &Path, target: &Path) -> Result<BTreeMap<String, String>> {
    let printed = host.run(&Command::new("xfs_info").arg(target))?;
    Ok(filesystem::chosen(&xfs_info::parse(&printed.stdout)?, FACTS))
}

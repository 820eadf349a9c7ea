//! `xfs`.

use super::filesystem::{self, CopyOptions, FilesystemDevices, LOG, MADE, MOUNTED, Making, Recipe, on_one_device};
use super::guard;
use super::identity::BlockDevice;
use super::ledger::Thing;
use super::options_kept::KeepRule;
use super::options_kept::KeepSign::{Shown, Unless, UnlessOpposite};
use super::snapshots::{SNAPSHOT, delete_reflinks, reflinks};
use crate::error::{Error, Result};
use crate::host::{Host, files};
use crate::parse::wipefs::Signature;
use crate::parse::xfs_info;
use crate::record::stack::{Role, Take};
use crate::units::Bytes;
use std::path::Path;

pub static XFS: Recipe = Recipe {
    info: on_one_device("xfs", "XFS: the default on Red Hat; needs at least 300 MiB.", USUAL)
        .on(&[
            Take::ONE_DEVICE,
            Take { role: Role::Log, key: "logdev", least: 0, doc: "Separate device for the log.", ..Take::ONE_DEVICE },
        ])
        .undone_by(&[MOUNTED, MADE, (LOG, wipe_log), (SNAPSHOT, delete_reflinks)]),
    programs: &["xfs_info"],
    package: "xfsprogs",
    copies: CopyOptions { bare: "fKNqV", short: 'p', long: "" },
    trying: Some(&["-N"]),
    least: Bytes(300 << 20), // mkfs.xfs since 5.19, without --unsupported; asked of older ones, too.
    label_bytes: 12,
    label_and_uuid: |label, uuid| ["-q", "-L", label, "-m", &format!("uuid={uuid}")].map(str::to_owned).to_vec(),
    further,
    members: |devices| logdev(devices).into_iter().collect(),
    rules: RULES,
    snapshots: Some(reflinks),
    reading: READING,
    facts: |host, _, target| filesystem::printed(host, READING, target, xfs_info::parse, FACTS),
    ..Recipe::defaults()
};

fn logdev(devices: &FilesystemDevices<'_>) -> Option<String> {
    devices.log.map(|log| format!("logdev={}", log.display()))
}

fn further(making: &Making<'_>) -> Vec<String> {
    let Some(mut argument) = logdev(making.devices) else { return Vec::new() };
    // For an external log mkfs.xfs (6.1) assumes 512 bytes whatever the device's sector size is, and fails to write.
    let asked = making.options.texts("mkfs");
    let given = asked.iter().any(|argument| argument.contains("sectsize=") || argument.contains("sectlog="));
    if let Some(sector) = making.log_sector.as_ref().filter(|_| !given) {
        argument = format!("{argument},sectsize={sector}");
    }
    vec!["-l".to_owned(), argument]
}

/// Signature type that wipefs reports for an external XFS log; it prints no UUID.
const LOG_SIGNATURE: &str = "xfs_external_log";
/// Offset of the filesystem's UUID in the header of a log record (fs/xfs/libxfs/xfs_log_format.h, `xlog_rec_header`).
const UUID_IN_RECORD: u64 = 304;

/// Wipes the log from its device if each record header found by wipefs contains the filesystem's UUID.
fn wipe_log(host: &Host, thing: &Thing) -> Result<()> {
    let (path, uuid) = (Path::new(thing.mark("device")?), thing.mark("uuid")?);
    let Some(device) = BlockDevice::with_size(host, path) else { return Ok(()) };
    let signatures = guard::signatures(host, &device)?;
    let mut ours = 0;
    for signature in signatures.iter().filter(|signature| signature.kind == LOG_SIGNATURE) {
        let bytes = files::read_at(path, offset(signature)? + UUID_IN_RECORD, 16)?;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        ours += usize::from(hex == uuid.replace('-', ""));
    }
    match ours {
        0 => Ok(()),
        _ if ours < signatures.len() => Err(filesystem::holds_other(path, "the log that pgstrata created")),
        _ => filesystem::wipe_all(host, path),
    }
}

fn offset(signature: &Signature) -> Result<u64> {
    let digits = signature.offset.trim_start_matches("0x");
    u64::from_str_radix(digits, 16)
        .map_err(|e| Error::tool(format!("wipefs printed the offset `{}`: {e}", signature.offset)))
}

/// Mount options commonly set for a database.
const USUAL: &str = "allocsize discard nodiscard inode32 inode64 largeio nolargeio logbsize logbufs noalign noquota \
    sunit swalloc swidth wsync";

/// fs/xfs/xfs_super.c, `xfs_fs_parameters` and `xfs_fs_show_options`.
const RULES: &[KeepRule] = &[
    ("nodiscard nolargeio noikeep attr2 nogrpid lifetime", UnlessOpposite),
    ("bsdgroups", Shown(&["grpid"])),
    ("sysvgroups", Unless(&["grpid"])),
    ("dax=inode", Unless(&["dax="])),
    ("dax", Shown(&["dax=always"])),
    ("quota uquota", Shown(&["usrquota"])),
    ("gquota", Shown(&["grpquota"])),
    ("pquota", Shown(&["prjquota"])),
    ("uqnoenforce qnoenforce", Shown(&["uqnoenforce"])),
];

const READING: &[&str] = &["xfs_info"];

const FACTS: &str = "meta-data isize, meta-data agcount, meta-data sectsz, meta-data crc, meta-data finobt, \
    meta-data sparse, meta-data rmapbt, meta-data reflink, meta-data bigtime, meta-data inobtcount, data bsize, data \
    blocks, data sunit, data swidth, naming ftype, log, log bsize, log blocks, log version, log sectsz, log sunit, \
    log lazy-count";

#[cfg(test)]
mod tests {
    use crate::provision::test_site::{TestPlace, mkfs};

    #[test]
    fn xfs_blocks_larger_than_a_page_are_confirmed_or_refused() {
        for bytes in ["16384", "65536"] {
            let Some(place) = TestPlace::with_layer("xfs") else { return };
            match place.build(&place.on_loop("xfs", "512MiB", mkfs(&["-b", &format!("size={bytes}")]))) {
                Ok(built) => assert_eq!(built.facts.nodes[1].details["data bsize"], bytes),
                // Before Linux 6.12.
                Err(error) => assert!(error.to_string().contains("will currently work"), "{error}"),
            }
            place.clean();
        }
    }
}

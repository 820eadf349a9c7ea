//! `nilfs2`: a log of checkpoints. mount(8) starts its cleaner, a daemon that reclaims segments, and umount(8) ends it.

use super::Details;
use super::filesystem::{Recipe, on_one_device, superblock};
use super::options_kept::KeepRule;
use super::options_kept::KeepSign::{Unless, UnlessOpposite};
use crate::error::Result;
use crate::host::Host;
use crate::host::command::Command;
use std::path::Path;

pub static NILFS2: Recipe = Recipe {
    info: on_one_device(
        "nilfs2",
        "NILFS2: a log of checkpoints; its cleaner daemon (nilfs_cleanerd) writes while the workload runs.",
        "barrier nobarrier discard nodiscard errors nogc order pp",
    ),
    programs: &["nilfs-tune", "mount.nilfs2", "nilfs_cleanerd"],
    package: "nilfs-tools",
    label_bytes: 80,
    label_and_uuid: |label, _| ["-q", "-L", label].map(str::to_owned).to_vec(),
    set_uuid: Some(|device, uuid| Command::new("nilfs-tune").args(["-f", "-U", uuid]).arg(device)),
    rules: RULES,
    in_force,
    reading: READING,
    facts,
    ..Recipe::defaults()
};

/// fs/nilfs2/super.c, `nilfs_show_options`: it prints no default.
const RULES: &[KeepRule] = &[
    ("barrier nodiscard", UnlessOpposite),
    ("order=relaxed", Unless(&["order=strict"])),
    ("errors=remount-ro", Unless(&["errors="])),
];

/// Options that mount.nilfs2 implements itself: no cleaner for `nogc`, its protection period for `pp=`.
fn in_force(host: &Host, device: &str) -> Vec<String> {
    let Some(arguments) = cleaner(host, device) else { return vec!["nogc".to_owned()] };
    let period = arguments.iter().position(|argument| argument == "-p").and_then(|at| arguments.get(at + 1));
    period.map(|period| format!("pp={period}")).into_iter().collect()
}

/// Arguments of the running cleaner of a device.
fn cleaner(host: &Host, device: &str) -> Option<Vec<String>> {
    host.names_in("/proc").into_iter().find_map(|pid| {
        pid.parse::<u32>().ok()?;
        let line = host.read_optional(format!("/proc/{pid}/cmdline"))?;
        let arguments: Vec<String> = line.split('\0').map(str::to_owned).collect();
        let is_ours = arguments[0].ends_with("nilfs_cleanerd") && arguments.iter().any(|argument| argument == device);
        is_ours.then_some(arguments)
    })
}

const READING: &[&str] = &["nilfs-tune", "-l"];

const FACTS: &str = "# of blocks per segment, Block size, Filesystem UUID, Filesystem features, Filesystem \
    revision #, Number of segments, Reserved segments %";

fn facts(host: &Host, device: &Path, _target: &Path) -> Result<Details> {
    let mut facts = superblock(host, READING, device, "Block size", FACTS)?;
    let runs = device.to_str().is_some_and(|device| cleaner(host, device).is_some());
    facts.insert("cleaner".to_owned(), if runs { "runs" } else { "does not run" }.to_owned());
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provision::test_site::{TestPlace, mounted};
    use crate::record::claim::Claim;

    const SIZE: &str = "160MiB";

    #[test]
    fn mount_options_that_people_set_are_kept() {
        for list in ["barrier,order=relaxed", "order=strict,errors=continue", "nogc,discard", "pp=60,nodiscard"] {
            let Some(place) = TestPlace::with_layer("nilfs2") else { return };
            let built = place.build(&place.on_loop("nilfs2", SIZE, mounted(&[list])));
            assert!(built.is_ok(), "nilfs2 with {list}: {}", built.unwrap_err());
            place.clean();
        }
    }

    #[test]
    fn a_mount_that_holds_flushes_back_says_so() {
        for (option, holds_back) in [("nobarrier", true), ("barrier", false)] {
            let Some(place) = TestPlace::with_layer("nilfs2") else { return };
            let built = place.build(&place.on_loop("nilfs2", SIZE, mounted(&[option]))).unwrap();
            let promise = built.facts.promise(built.facts.data.as_ref(), Claim::HoldsFlushesBack);
            assert_eq!(promise.is_some(), holds_back, "{option}");
            place.clean();
        }
    }

    #[test]
    fn the_cleaner_is_told_and_ends_with_the_mount() {
        for (option, runs) in [("noatime", true), ("nogc", false)] {
            let Some(place) = TestPlace::with_layer("nilfs2") else { return };
            let built = place.build(&place.on_loop("nilfs2", SIZE, mounted(&[option]))).unwrap();
            let reported = &built.facts.nodes[1].details["cleaner"];
            assert_eq!(reported, if runs { "runs" } else { "does not run" }, "{option}");
            let device = format!("/dev/{}", built.facts.devices()[0].1.name);
            assert_eq!(cleaner(&place.host, &device).is_some(), runs);
            place.clean();
            assert_eq!(cleaner(&Host::this(), &device), None, "it outlived its mount");
        }
    }
}

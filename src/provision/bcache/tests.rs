//! Builds a real bcache if the kernel supports it, and checks what is refused before.

use super::*;
use crate::provision::mount_table;
use crate::provision::test_site::{TestPlace, options_of, stands_and_dies, text};
use crate::record::stack::StackSpec;

fn cached(place: &TestPlace, options: Options) -> StackSpec {
    let mut spec = place.on_volume("bcache", options, 2, "64MiB");
    spec.nodes.iter_mut().find(|node| node.name == "bcache").unwrap().inputs[1].role = Role::Cache;
    spec
}

#[test]
fn a_bucket_that_cannot_be_is_refused() {
    assert!(Bcache.check(&options_of(&[("bucket", text("3KiB"))])).is_err());
    assert_eq!(Bcache.check(&options_of(&[("bucket", text("64KiB")), ("mode", text("writeback"))])), Ok(()));
}

#[test]
fn a_cache_has_as_many_buckets_as_the_kernel_requires() {
    let of = |asked: Option<u64>, mib: u64| bucket_of(asked.map(Bytes), Bytes(mib << 20));
    assert_eq!((of(None, 4096).unwrap(), of(None, 512).unwrap()), (Bytes(512 << 10), Bytes(512 << 10)));
    assert_eq!((of(None, 128).unwrap(), of(None, 4).unwrap()), (Bytes(128 << 10), Bytes(4096)));
    assert!(of(None, 1).is_err());
    assert_eq!(of(Some(64 << 10), 64).unwrap(), Bytes(64 << 10));
    let refused = of(Some(512 << 10), 128).unwrap_err().to_string();
    assert!(refused.contains("256 buckets of 512 KiB"), "{refused}");
}

#[test]
fn a_bcache_is_as_requested_and_dying_builds_leave_nothing() {
    let options =
        options_of(&[("mode", text("writeback")), ("bucket", text("64KiB")), ("sequential_cutoff", text("0B"))]);
    stands_and_dies(
        "bcache",
        |place| cached(place, options.clone()),
        |place, built| {
            let details = &built.facts.node("bcache").unwrap().details;
            assert_eq!((details["mode"].as_str(), details["sequential cutoff"].as_str()), ("writeback", "0.0k"));
            let below = built.facts.devices_below(built.facts.data.as_ref());
            assert!(below.iter().any(|below| below.name().0 == "d2" && below.role == Role::Cache), "{below:?}");
            let things = place.ledger().open_things();
            let mut theirs = things.into_iter().find(|(_, thing)| thing.kind == SET).unwrap().1;
            theirs.marks.insert("uuid".to_owned(), "00000000-0000-0000-0000-000000000001".to_owned());
            Bcache.undo(&place.host, &theirs).unwrap();
            assert!(place.host.exists(format!("{SETS}/{}", details["cache set"])));
        },
    );
}

#[test]
fn the_set_is_read_from_the_superblock() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut bytes = vec![0u8; 8192];
    std::fs::write(file.path(), &bytes).unwrap();
    assert_eq!(set_of(file.path()).unwrap(), None);
    bytes[4096 + MAGIC_AT..4096 + MAGIC_AT + 16].copy_from_slice(&MAGIC);
    bytes[4096 + SET_UUID_AT..4096 + SET_UUID_AT + 16].copy_from_slice(&[0x11; 16]);
    std::fs::write(file.path(), &bytes).unwrap();
    assert_eq!(set_of(file.path()).unwrap().unwrap(), "11111111-1111-1111-1111-111111111111");
}

#[test]
fn what_somebody_puts_on_a_busy_device_is_not_wiped() {
    let (host, folder) = (Host::this(), tempfile::tempdir().unwrap());
    let (image, other) = (folder.path().join("image"), folder.path().join("ext4"));
    let mut bytes = vec![0u8; 8 << 20];
    std::fs::write(&other, &bytes).unwrap();
    bytes[4096 + MAGIC_AT..4096 + MAGIC_AT + 16].copy_from_slice(&MAGIC);
    bytes[4096 + SET_UUID_AT..4096 + SET_UUID_AT + 16].copy_from_slice(&[0x11; 16]);
    std::fs::write(&image, &bytes).unwrap();
    if let Err(e) = host.run(&Command::new("mkfs.ext4").arg("-qF").arg(&other)) {
        println!("skipped: no ext4 to be put there: {e}");
        return;
    }
    let attached = match host.run(&Command::new("losetup").args(["--find", "--show"]).arg(&image)) {
        Ok(said) => PathBuf::from(said.stdout.trim()),
        Err(e) => {
            println!("skipped: loop devices need root: {e}");
            return;
        }
    };
    let held = files::open_exclusively(&attached).unwrap();
    let superblock = std::fs::read(&other).unwrap()[1024..2048].to_vec();
    let device = attached.clone();
    let somebody = std::thread::spawn(move || {
        sleep(2 * mount_table::BUSY_PAUSE);
        let file = std::fs::File::options().write(true).open(device).unwrap();
        files::write_all_at(&file, &superblock, 1024).unwrap();
        // Longer than the pause between two attempts.
        sleep(10 * mount_table::BUSY_PAUSE);
        drop((file, held));
    });
    let wiped = wipe(&host, &attached, "11111111-1111-1111-1111-111111111111");
    somebody.join().unwrap();
    let left = files::read_at(&attached, 1024 + 56, 2).unwrap();
    host.run(&Command::new("losetup").arg("--detach").arg(&attached)).unwrap();
    assert!(wiped.unwrap_err().to_string().contains("holds something other"));
    assert_eq!(left, [0x53, 0xef], "the magic of ext4");
}

//! The server against common tools: nbdinfo and nbdcopy of libnbd, qemu-io of QEMU.

use super::tests::Served;
use crate::host::Host;
use crate::host::command::Command;
use crate::recorder::testing::SIZE;
use crate::recorder::{Entry, Op};

/// True if the tool is installed; otherwise reports what is skipped.
fn has(test: &str, tool: &str, package: &str) -> bool {
    let there = Host::this().has_program(tool);
    if !there {
        println!("skipped: {test}: {tool} is missing (Debian package {package})");
    }
    there
}

fn uri(served: &Served) -> String {
    format!("nbd+unix:///a?socket={}", served.server.socket().display())
}

fn run(tool: &str, args: &[&str]) -> String {
    Host::this().run(&Command::new(tool).args(args)).unwrap().stdout
}

#[test]
fn nbdinfo_reads_what_the_export_says_of_itself() {
    if !has("nbdinfo_reads_what_the_export_says_of_itself", "nbdinfo", "libnbd-bin") {
        return;
    }
    let served = Served::recording();
    let info: serde_json::Value = serde_json::from_str(&run("nbdinfo", &["--json", &uri(&served)])).unwrap();
    assert_eq!(info["protocol"], "newstyle-fixed", "{info}");
    let export = &info["exports"][0];
    assert_eq!(export["export-size"], SIZE, "{info}");
    for flag in ["can_flush", "can_fua", "can_trim", "can_zero"] {
        assert_eq!(export[flag], true, "{flag}: {info}");
    }
    for flag in ["is_read_only", "is_rotational", "can_multi_conn", "can_cache", "can_df", "can_fast_zero"] {
        assert_eq!(export[flag], false, "{flag}: {info}");
    }
    assert_eq!(
        (&export["block_size_minimum"], &export["block_size_maximum"]),
        (&1.into(), &(32 << 20).into()),
        "{info}"
    );
    let list: serde_json::Value =
        serde_json::from_str(&run("nbdinfo", &["--json", "--list", &uri(&served).replace("/a?", "/?")])).unwrap();
    assert_eq!(list["exports"][0]["export-name"], "a", "{list}");
    assert!(served.entries().is_empty(), "asking changes nothing");
}

#[test]
fn nbdcopy_copies_a_disk_in_and_out_and_flushes_it() {
    if !has("nbdcopy_copies_a_disk_in_and_out_and_flushes_it", "nbdcopy", "libnbd-bin") {
        return;
    }
    let (served, folder) = (Served::recording(), tempfile::tempdir().unwrap());
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    // A hole in the middle: nbdcopy writes zeros or trims there.
    let mut content: Vec<u8> = (0..SIZE).map(|at| (at / 4096 * 7 + at) as u8 | 1).collect();
    content[200_000..700_000].fill(0);
    std::fs::write(&from, &content).unwrap();
    run("nbdcopy", &["--flush", from.to_str().unwrap(), &uri(&served)]);
    run("nbdcopy", &[&uri(&served), to.to_str().unwrap()]);
    assert!(std::fs::read(&to).unwrap() == content);
    let entries = served.entries();
    let last = entries.iter().rfind(|entry| entry.changes()).unwrap().completed;
    assert!(entries.iter().any(|entry| entry.op == Op::Flush && entry.submitted > last), "a flush after all writes");
}

#[test]
fn qemu_io_sends_writes_with_fua_zeros_trims_and_flushes() {
    if !has("qemu_io_sends_writes_with_fua_zeros_trims_and_flushes", "qemu-io", "qemu-utils") {
        return;
    }
    let served = Served::recording();
    let commands = [
        "write -f -P 0xa5 4096 8192",
        "write -P 0x5a 65536 4096",
        "flush",
        "write -z -u 8192 4096",
        "discard 65536 4096",
        "read -P 0xa5 4096 4096",
        "read -P 0 8192 4096",
        "aio_write -P 1 131072 65536",
        "aio_write -P 2 262144 65536",
        "aio_flush",
        "read -P 1 131072 65536",
        "read -P 2 262144 65536",
    ];
    let uri = uri(&served);
    let mut args = vec!["-f", "raw", "-t", "none", "-d", "unmap"];
    args.extend(commands.iter().flat_map(|command| ["-c", command]));
    let said = run("qemu-io", &[args.as_slice(), &[&uri]].concat());
    assert!(!said.contains("failed") && !said.contains("error"), "{said}");
    let entries = served.entries();
    let find = |op: Op, offset: u64| -> &Entry {
        entries.iter().find(|entry| entry.op == op && entry.offset == offset).unwrap_or_else(|| panic!("{entries:?}"))
    };
    assert!(find(Op::Write, 4096).fua && !find(Op::Write, 65536).fua, "{entries:?}");
    assert_eq!((find(Op::Discard, 65536).length, find(Op::WriteZeroes, 8192).length), (4096, 4096));
    let flush = entries.iter().find(|entry| entry.op == Op::Flush).unwrap();
    assert!(flush.submitted > find(Op::Write, 65536).completed, "{entries:?}");
}

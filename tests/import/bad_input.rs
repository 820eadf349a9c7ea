//! What cannot be read is refused by name, with what it is, and nothing is stored.

use crate::import::desk::{Desk, fixture, said, stderr, stdout};
use std::io::{Read, Write};
use std::process::Stdio;

/// Runs an import that must be refused.
fn refused(desk: &Desk, args: &[&str], says: &[&str]) {
    let output = desk.import(args);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    for words in says {
        assert!(stderr(&output).contains(words), "`{words}` is not in:\n{}", said(&output));
    }
    assert!(desk.results().is_empty(), "{:?}", desk.results());
}

#[test]
fn an_empty_file_is_refused() {
    let desk = Desk::new();
    desk.put("empty.txt", "");
    desk.put("blank.txt", "\r\n \t\n");
    refused(&desk, &["empty.txt"], &["empty.txt is empty"]);
    refused(&desk, &["blank.txt"], &["blank.txt is empty"]);
    refused(&desk, &["missing.txt"], &["missing.txt", "No such file"]);
    let output = desk.import_piped(&["-"], b"");
    assert!(stderr(&output).contains("standard input is empty"), "{}", said(&output));
}

#[test]
fn a_binary_file_is_refused_by_what_it_is() {
    let desk = Desk::new();
    desk.put("program", std::fs::read(env!("CARGO_BIN_EXE_pgstrata")).unwrap().get(..100_000).unwrap());
    desk.put("noise", (0..5000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect::<Vec<u8>>());
    desk.put("zeros", [0; 3000]);
    refused(&desk, &["program"], &["program is not text", "binary, not text"]);
    refused(&desk, &["noise"], &["binary, not text"]);
    refused(&desk, &["zeros"], &["binary, not text"]);
}

#[test]
fn output_of_an_unknown_tool_is_refused_with_known_ones() {
    let desk = Desk::new();
    desk.put("x.txt", "frobnicate 1.2 of /dev/sda\nspeed: 17 furlongs\n");
    let known = ["pg_test_fsync", "pgbench", "iostat", "vmstat", "zpool iostat", "zfs get", "mount", "fio"];
    refused(&desk, &["x.txt"], &["line 1 is `frobnicate 1.2 of /dev/sda`"]);
    refused(&desk, &["x.txt"], &known);
}

#[test]
fn one_refused_file_prevents_storing_all_named_files() {
    let desk = Desk::new();
    desk.put("good.txt", fixture("pg_test_fsync/15-en.txt"));
    desk.put("bad.txt", "nothing of use\n");
    refused(&desk, &["good.txt", "bad.txt"], &["bad.txt"]);
}

#[test]
fn unknown_files_in_a_folder_are_skipped_with_a_notice() {
    let desk = Desk::new();
    desk.put("in/good.txt", fixture("pg_test_fsync/15-en.txt"));
    desk.put("in/README", "How this was measured.\n");
    desk.put("in/.hidden", "");
    let output = desk.import(&["in"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(stderr(&output).contains("passed over: in/README"), "{}", said(&output));
    let folder = desk.results().pop().unwrap();
    assert!(folder.join("raw/in/good.txt").exists() && !folder.join("raw/in/README").exists());
    desk.put("other/README", "Nothing else here.\n");
    let output = desk.import(&["other", "--dry-run"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

#[test]
fn unreadable_lines_are_shown_and_the_rest_is_stored() {
    let desk = Desk::new();
    let log = String::from_utf8(fixture("pgbench/18-scripts.log")).unwrap();
    desk.put("pgbench_log.7", log.replacen("\n", "\nhalf a line\n", 3));
    let output = desk.import(&["pgbench_log.7"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for line in [2, 4, 6] {
        assert!(
            stdout(&output).contains(&format!("line {line} could not be read: `half a line`")),
            "{}",
            said(&output)
        );
    }
    assert_eq!(desk.results().len(), 1);
}

#[test]
fn a_line_of_two_gigabytes_is_refused_in_bounded_memory() {
    const WHOLE: u64 = 2 << 30;
    const MOST_KIB: u64 = 400 << 10;
    let desk = Desk::new();
    let mut command = desk.command(&["-", "--dry-run"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let piece = vec![b'7'; 1 << 20];
    let (mut written, mut peak) = (0, None);
    while written < WHOLE && stdin.write_all(&piece).is_ok() {
        written += piece.len() as u64;
        peak = peak_memory_kib(child.id()).or(peak);
    }
    drop(stdin);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{said}");
    assert!(said.contains("one line of more than 64 MiB"), "{said}");
    let peak = peak.unwrap();
    assert!(peak < MOST_KIB, "{peak} KiB were used");
    assert!(written < WHOLE, "all of it was read");
}

/// Most memory that a process has had.
pub fn peak_memory_kib(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[test]
fn a_decompression_bomb_is_refused_in_bounded_memory() {
    let desk = Desk::new();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..300 {
        packed.write_all(&vec![b'7'; 1 << 20]).unwrap();
    }
    desk.put("bomb.gz", packed.finish().unwrap());
    refused(&desk, &["bomb.gz"], &["bomb.gz has one line of more than 64 MiB"]);
    let mut cut = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    cut.write_all(&fixture("pg_test_fsync/15-en.txt")).unwrap();
    let cut = cut.finish().unwrap();
    desk.put("cut.gz", &cut[..cut.len() / 2]);
    refused(&desk, &["cut.gz"], &["failed to unpack cut.gz", "damaged or truncated"]);
}

#[test]
fn many_unreadable_lines_are_shown_in_part_and_counted() {
    let desk = Desk::new();
    let text = String::from_utf8(fixture("pg_test_fsync/15-en.txt")).unwrap();
    let prose: String = (0..50).map(|n| format!("gadget {n} of 99 wrote\n")).collect();
    desk.put("x.txt", text.replacen("        fdatasync ", &format!("{prose}        fdatasync "), 1));
    let shown = |args: &[&str]| stdout(&desk.import(args)).matches("could not be read").count();
    assert_eq!(shown(&["x.txt", "--dry-run"]), 20);
    let all = shown(&["x.txt", "--dry-run", "--rows"]);
    assert!(all > 20);
    let output = desk.import(&["x.txt", "--dry-run"]);
    assert!(stdout(&output).contains(&format!("and {} more lines", all - 20)), "{}", said(&output));
}

#[test]
fn an_unreadable_subfolder_is_skipped_with_a_notice() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    desk.put("in/good.txt", fixture("pg_test_fsync/15-en.txt"));
    desk.put("in/private/x.txt", "");
    let set = |path: &str, mode| {
        std::fs::set_permissions(desk.path().join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(".", 0o777);
    set("in/private", 0o000);
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid=65534", "--clear-groups", env!("CARGO_BIN_EXE_pgstrata"), "import", "in"]);
    let output = command.current_dir(desk.path()).output();
    set("in/private", 0o755);
    let Some(output) = output.ok().filter(|output| !stderr(output).contains("setpriv")) else {
        println!("skipped: setpriv is not there or not allowed: it needs root");
        return;
    };
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(stderr(&output).contains("passed over: failed to open in/private: Permission denied"), "{}", said(&output));
    assert_eq!(desk.results().len(), 1, "what can be read is stored");
}

#[test]
fn pipes_and_endless_kernel_files_are_refused_at_once() {
    let desk = Desk::new();
    let pipe = desk.path().join("endless");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    refused(
        &desk,
        &["endless"],
        &["endless is a pipe or a device, which may never end", "pgstrata import - < endless"],
    );
    // Read to what it has now, which is no tool's output; for others than root it cannot be opened.
    let output = desk.import(&["/proc/kmsg"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

#[test]
fn a_long_text_takes_time_in_proportion_to_its_length() {
    let desk = Desk::new();
    let summary = |n: u32| {
        format!(
            "transaction type: <builtin: TPC-B (sort of)>\nscaling factor: 10\nquery mode: simple\nnumber of clients: 8\n\
             number of threads: 2\nduration: 60 s\nnumber of transactions actually processed: {n}\n\
             latency average = 8.123 ms\ntps = {n}.123456 (without initial connection time)\n\n"
        )
    };
    let block = |n: u32| format!("Device tps kB_read/s kB_wrtn/s kB_read kB_wrtn\nvda {n}.00 0.00 {n}.00 0 {n}\n\n");
    let second = |n: u32| format!("progress: {n}.0 s, {n}.5 tps, lat 7.123 ms stddev 1.123\n");
    let text = |name: &str, n: u32| match name {
        "summaries" => summary(n),
        "blocks" => block(n),
        _ => second(n),
    };
    // Ticks of the CPU that children took, whatever else ran beside them; no other test runs in this process.
    let ticks = || -> u64 {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        [13, 14].iter().map(|field| fields[*field].parse::<u64>().unwrap()).sum()
    };
    for (name, count) in [("summaries", 500), ("blocks", 2000), ("progress", 4000)] {
        let took = |count: u32| {
            desk.put(name, (1..=count).map(|n| text(name, n)).collect::<String>());
            let before = ticks();
            let output = desk.import(&["--dry-run", name]);
            assert!(output.status.success(), "{}", said(&output));
            (ticks() - before + 1) as f64
        };
        let (short, long) = (took(count), took(count * 4));
        // Four times the text; in the square of its length it would take sixteen times as long.
        assert!(long < short * 9.0, "{name}: {short} ticks, then {long} for four times as many");
    }
}

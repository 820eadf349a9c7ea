//! Whole files through [`read`].

use super::{FileReading, MOST_TEXT, read, recognised};
use crate::error::{Error, Kind};
use std::path::{Path, PathBuf};

fn of(bytes: &[u8]) -> Result<FileReading, Error> {
    read("some.txt", &mut &bytes[..])
}

fn refused(bytes: &[u8]) -> String {
    let error = of(bytes).unwrap_err();
    assert_eq!(error.kind(), Kind::User);
    error.to_string()
}

pub(super) fn fixtures() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            // Plans, statistics tables, server logs, Slurm tasks, read-backs of volumes, profiles: not importable outputs.
            const OTHERS: [&str; 11] = [
                "profile",
                "refused",
                "plans",
                "studentized_range",
                "server_log",
                "recovery_log",
                "scontrol",
                "dmsetup",
                "lvm",
                "mdadm",
                "zfs",
            ];
            if OTHERS.iter().any(|other| path.ends_with(other)) {
                continue;
            }
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

#[test]
fn every_fixture_parses_and_each_line_belongs_to_an_output() {
    for path in fixtures() {
        let name = path.display().to_string();
        let bytes = std::fs::read(&path).unwrap();
        let reading = read(&name, &mut &bytes[..]).unwrap();
        assert_eq!((reading.file.name, reading.file.bytes), (name.clone(), bytes.len() as u64));
        let other = &reading.file.lines_of_no_output;
        assert!(other.is_empty(), "{name}: {other:?}");
        assert!(reading.outputs.iter().all(|output| output.unread.is_empty()), "{name}");
        assert!(reading.outputs.iter().all(|output| !output.tool.is_empty()), "{name}");
        assert_eq!(reading.log.is_some(), name.ends_with(".log"), "{name}");
    }
}

#[test]
fn commands_dates_and_prose_around_an_output_yield_no_figures() {
    let output = include_str!("../../shelf/wal-blocksize-2012/pgbench-fdatasync-8k.txt");
    let around = |before: &str, after: &str| {
        let reading = of(format!("{before}\n{output}\n{after}\n").as_bytes()).unwrap();
        let other = reading.file.lines_of_no_output.len();
        let cases = super::by_file(vec![reading]);
        (other, super::unknown(&crate::record::imported::ImportRecord { cases, ..Default::default() }))
    };
    let before = "Two sockets with 8 cores each, measured 3 times:\n$ uname -a\n\
                  Linux db1 3.10.0-862.el7.x86_64 #1 SMP Fri Apr 20 16:44:24 UTC 2018 x86_64 GNU/Linux\n\
                  Thu Jun 26 23:52:00 UTC 2014\n$ /usr/pgsql-9.1/bin/pgbench -n -r -c 1 -j 1 -T 60";
    let (other, unknown) = around(before, "pgbench -c 1 -j 1 -T 60 was the command");
    assert_eq!(other, 0);
    for known in ["when it was measured", "operating system and kernel", "PostgreSQL's version"] {
        assert!(!unknown.iter().any(|it| it == known), "{unknown:?}");
        assert!(around("", "").1.iter().any(|it| it == known), "{known}");
    }
    assert_eq!(around("", "frob 12.5 8").0, 1);
}

#[test]
fn text_of_unknown_tools_is_refused_with_its_first_line() {
    let error = of(b"\nwelcome to frobnicate 3\n1 2 3\n").unwrap_err();
    assert_eq!(error.kind(), Kind::User);
    assert!(error.to_string().contains("line 2 is `welcome to frobnicate 3`"), "{error}");
    for (name, _) in super::read::KINDS {
        assert!(error.hint_text().unwrap().contains(name), "{name}");
    }
}

#[test]
fn unsupported_formats_of_known_tools_are_refused_by_name() {
    let fixture = |name: &str| {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/refused").join(name))
            .unwrap()
    };
    let tables = "tables are read with their headings";
    for (text, tool, why) in [
        (fixture("fio-2.json"), "output of fio", "fio 3: fio 2 uses different units"),
        (fixture("iostat.json"), "output of iostat -o JSON", "without -o JSON"),
        (fixture("iostat.json").replacen("{\"sysstat\": {", "{\n  \"sysstat\": {", 1), "iostat -o JSON", "iostat's tables"),
        (fixture("zpool-iostat-w.txt"), "output of zpool iostat", "not the histograms of -w and -r"),
        (fixture("zpool-iostat-r.txt"), "output of zpool iostat", "not the histograms of -w and -r"),
        ("{\"fio version\": \"fio-3.33\",\n\"jobs\": [".to_owned(), "output of fio", "a complete JSON document"),
        ("3;fio-3.33;job;0;0;496;26105;6526;19\n".to_owned(), "output of fio", "--output-format=json"),
        ("my job: (groupid=0, jobs=1): err= 0: pid=7: Fri Nov 20\n  write: IOPS=6526, BW=25.5MiB/s\n".to_owned(), "output of fio", "--output-format=json"),
        ("          disk0       cpu    load average\n    KB/t  tps  MB/s  us sy id   1m   5m   15m\n   21.31   12  0.25   1  2 97  1.0 1.0 1.0\n".to_owned(), "output of iostat", "iostat -x"),
        ("sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\ntransactions: 1000 (99.9 per sec.)\n".to_owned(), "output of sysbench", "a tool that is known"),
        ("$ zpool iostat -H -p tank 1\ntank\t1\t2\t3\t4\t5\t6\n".to_owned(), "line 1 calls `$ zpool iostat -H -p tank 1`", tables),
        ("# iostat -x -o JSON\nno such option\n".to_owned(), "line 1 calls `# iostat -x -o JSON`", tables),
    ] {
        let error = of(text.as_bytes()).unwrap_err();
        let said = format!("{error}; {}", error.hint_text().unwrap_or_default());
        assert!(said.contains(tool) && said.contains(why), "{text}\n{said}");
    }
}

#[test]
fn a_failure_message_of_a_tool_accompanies_its_figures() {
    let fixture = |name: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let pgbench = fixture("tests/fixtures/pgbench/15-unmeasured.out");
    let fio = fixture("tests/fixtures/fio/3.13-error.json");
    let sync = fixture("tests/fixtures/pg_test_fsync/15-en.txt");
    for (text, said) in [
        (fio.clone(), "job 1 `fiotest` failed: error 5"),
        (
            format!("fio: pid=7, err=5/file:io_u.c:1889, func=io_u error, error=Input/output error\n{fio}"),
            "line 1: fio: pid=7, err=5",
        ),
        (format!("{pgbench}Run was aborted; the above results are incomplete.\n"), "line 14: Run was aborted"),
        (
            format!(
                "pgbench: error: client 3 script 0 aborted in command 5 query 0: ERROR:  deadlock detected\n{pgbench}"
            ),
            "line 1: pgbench: error: client 3",
        ),
        (
            format!("Client 3 aborted in state 8: ERROR:  deadlock detected\n{pgbench}"),
            "line 1: Client 3 aborted in state 8",
        ),
        (format!("{pgbench}pgbench: fatal: Run was aborted due to an error in thread 1\n"), "line 14: pgbench: fatal"),
        (format!("{pgbench}ERROR:  could not extend file\n"), "line 14: ERROR:  could not"),
        (
            format!("{sync}\npg_test_fsync: error: could not open output file: No space left on device\n"),
            "pg_test_fsync: error: could not open",
        ),
        (
            format!("iostat: cannot find disk data\n{}", fixture("tests/fixtures/iostat/12-ym.txt")),
            "line 1: iostat: cannot find",
        ),
        (
            format!("{}{pgbench}", "pgbench: error: client 1 aborted\n".repeat(9)),
            "and 6 more lines that tell of failures",
        ),
    ] {
        let notes =
            of(text.as_bytes()).unwrap().outputs.into_iter().flat_map(|output| output.notes).collect::<Vec<_>>();
        assert!(notes.iter().any(|note| note.contains(said)), "{text}\n{notes:?}");
    }
    let notes = |text: &str| of(text.as_bytes()).unwrap().outputs[0].notes.clone();
    assert_eq!(notes(&format!("It never failed.\n{pgbench}")), notes(&pgbench));
}

#[test]
fn empty_and_binary_input_is_refused_with_the_reason() {
    assert_eq!(refused(b""), "some.txt is empty");
    assert_eq!(refused(b" \n\t\r\n"), "some.txt is empty");
    assert!(refused(b"\x7fELF\x02\x01\x01\0\0\0\0").contains("it is binary, not text"));
    assert!(refused(b"PK\x03\x04\x14\0\0\0").contains("it is packed with zip: unpack it first"));
    assert!(refused(&[7, 1, 2, 3, 0, 200, 14]).contains("it is binary, not text"));
}

#[test]
fn an_endless_line_is_refused_before_it_is_read() {
    struct Endless(usize);
    impl std::io::Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            into.fill(b'7');
            self.0 += into.len();
            Ok(into.len())
        }
    }
    let mut endless = Endless(0);
    let error = read("endless", &mut endless).unwrap_err();
    assert!(error.to_string().contains("one line of more than 64 MiB"), "{error}");
    assert!(endless.0 <= MOST_TEXT + (1 << 20), "{} bytes were read", endless.0);
}

#[test]
fn an_overlong_line_is_refused_unless_it_is_json() {
    let fixture = |name: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let joined = fixture("tests/fixtures/pg_test_fsync/15-en.txt").replace('\n', " ").repeat(300);
    assert!(refused(joined.as_bytes()).contains("line 1 of some.txt is"));
    let json = fixture("tests/fixtures/fio/3.33.json");
    let on_one_line = json.replace('\n', &" ".repeat(1000));
    assert!(on_one_line.len() > 256 * 1024);
    let rows = |text: &str| of(text.as_bytes()).unwrap().outputs[0].rows.len();
    assert_eq!(rows(&on_one_line), rows(&json));
}

#[test]
fn a_large_compressed_file_is_recognised_by_its_beginning() {
    use std::io::Write;
    let of = |bytes: &[u8]| recognised(&mut &bytes[..]);
    let fixture = |name: &str| std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    assert_eq!(of(&fixture("tests/fixtures/pg_test_fsync/15-en.txt")).as_deref(), Some("pg_test_fsync"));
    let noise = (0..100_000u32).map(|n| format!("0 {n} {} 0 1403826720 5\n", n.wrapping_mul(2_654_435_761) >> 8));
    let log: String = noise.collect();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(log.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    assert!(packed.len() > super::SAMPLE, "{}", packed.len());
    assert_eq!(of(&packed).as_deref(), Some("pgbench -l"));
    for bytes in [&b"Measured on a Friday, 17 h.\n"[..], b"", b"\x7fELF\x02\x01\x01\0\0", &packed[..9]] {
        assert_eq!(of(bytes), None);
    }
}

/// Sample texts of every kind, and pieces for making similar ones.
fn texts() -> Vec<String> {
    let on_shelf = Path::new(env!("CARGO_MANIFEST_DIR")).join("shelf");
    let folders = std::fs::read_dir(on_shelf).unwrap().map(|entry| entry.unwrap().path());
    let published = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let all = fixtures().into_iter().chain(published).filter(|path| path.extension().is_some_and(|it| it != "toml"));
    all.map(|path| std::fs::read_to_string(path).unwrap().chars().take(8000).collect()).collect()
}

/// Asserts that every number stands whole in the line that it names.
fn every_number_stands_in_its_line(text: &str) {
    let Ok(reading) = read("x", &mut text.as_bytes()) else { return };
    let lines: Vec<&str> = text.split('\n').collect();
    for figure in reading.outputs.iter().flat_map(|output| &output.rows).flat_map(|row| &row.figures) {
        let line = lines[figure.line as usize - 1];
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let is_whole = |(at, found): (usize, &str)| {
            !is_digit(line[..at].chars().next_back()) && !is_digit(line[at + found.len()..].chars().next())
        };
        assert!(line.match_indices(&figure.text).any(is_whole), "{figure:?} in `{line}` of:\n{text}");
        assert!(figure.value.is_finite(), "{figure:?}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn no_input_panics_a_reader_and_numbers_stay_whole(
        which in proptest::prelude::any::<usize>(), other in proptest::prelude::any::<usize>(),
        at in 0usize..8000, length in 0usize..60, noise in "[ -~\n\r\t,é]{0,12}", width in 10usize..200,
    ) {
        let texts = texts();
        let (text, other) = (&texts[which % texts.len()], &texts[other % texts.len()]);
        let chars: Vec<char> = text.chars().collect();
        let (from, to) = (at.min(chars.len()), (at + length).min(chars.len()));
        let spliced: String = chars[..from].iter().copied().chain(noise.chars()).chain(chars[to..].iter().copied()).collect();
        let cut: String = chars[..from].iter().collect();
        let folded: String = text.lines().flat_map(|line| {
            let line: Vec<char> = line.chars().collect();
            line.chunks(width).map(|piece| piece.iter().collect::<String>() + "\n").collect::<Vec<_>>()
        }).collect();
        for text in [spliced, cut.clone(), format!("{cut}{other}"), folded, noise] {
            every_number_stands_in_its_line(&text);
        }
    }
}

//! What is mangled: the fixtures of every kind, and what has none.

use crate::check;
use crate::mutate::{self, Random};
use pgstrata::import::KINDS;
use pgstrata::parse::web;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Reads a variant and says how many numbers it gave, or which rule it broke.
pub type Check = Box<dyn Fn(&[u8]) -> Result<u64, String>>;

/// Texts of one kind.
pub struct Corpus {
    pub name: &'static str,
    pub texts: Vec<Vec<u8>>,
    /// Of all kinds, to be spliced in.
    foreign: Vec<Vec<u8>>,
    pub check: Check,
}

impl Corpus {
    /// One variant.
    pub fn variant(&self, random: &mut Random) -> Vec<u8> {
        let text = random.pick(&self.texts).clone();
        mutate::mutated(text, &self.foreign, random)
    }
}

/// One corpus for each kind, then whole files, logs as streams, and packed files.
pub fn all() -> Vec<Corpus> {
    let fixtures = fixtures();
    let extra = EXTRA.iter().map(|text| text.as_bytes().to_vec());
    let everything: Vec<Vec<u8>> = fixtures.iter().map(|path| std::fs::read(path).unwrap()).chain(extra).collect();
    let is_of = |text: &[u8], looks_like: fn(&[pgstrata::parse::output::Line<'_>]) -> bool| {
        looks_like(&web::lines(&String::from_utf8_lossy(text)))
    };
    let mut all: Vec<Corpus> = KINDS
        .iter()
        .map(|kind| Corpus {
            name: kind.name,
            texts: everything.iter().filter(|text| is_of(text, kind.looks_like)).cloned().collect(),
            foreign: everything.clone(),
            check: Box::new(|text| check::kind(kind, text)),
        })
        .collect();
    let logs = fixtures.iter().filter(|path| path.extension().is_some_and(|it| it == "log"));
    let logs: Vec<Vec<u8>> = logs.map(|path| std::fs::read(path).unwrap()).collect();
    let mut whole = |name, texts: Vec<Vec<u8>>| {
        all.push(Corpus { name, texts, foreign: everything.clone(), check: Box::new(check::file) });
    };
    whole("whole files", everything.clone());
    whole("logs as streams", logs);
    whole("packed files", packed(&everything[..everything.len().min(8)]));
    for corpus in &all {
        assert!(!corpus.texts.is_empty(), "{}: no fixture", corpus.name);
    }
    all
}

fn fixtures() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

fn packed(texts: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for program in ["gzip", "xz", "zstd"] {
        for text in texts {
            let path = std::env::temp_dir().join(format!("pgstrata-fuzz-{}", std::process::id()));
            std::fs::write(&path, text).unwrap();
            let made = Command::new(program).arg("-c").arg(&path).stderr(Stdio::null()).output();
            std::fs::remove_file(&path).unwrap();
            match made {
                Ok(output) if output.status.success() => all.push(output.stdout),
                _ => {
                    println!("skipped: {program} is not installed");
                    break;
                }
            }
        }
    }
    all
}

/// Outputs that have no fixture file.
const EXTRA: [&str; 8] = [
    "  pool: tank\n state: ONLINE\n  scan: scrub repaired 0 in 0h5m with 0 errors on Sun Jun  1 03:05:12 2014\nconfig:\n\n\
     \tNAME        STATE     READ WRITE CKSUM\n\ttank        ONLINE       0     0     0\n\t  mirror-0  ONLINE       0     0     0\n\
     \t    ada0    ONLINE       0     0     0\n\t    ada1    ONLINE       1     2     3\n\nerrors: No known data errors\n",
    "NAME    SIZE  ALLOC   FREE    CAP  DEDUP  HEALTH  ALTROOT\ntank   43.5T  936K   43.5T     0%  1.00x  ONLINE  -\n\n\
     NAME        USED  AVAIL  REFER  MOUNTPOINT\ntank        936K  27.1T    51K  /tank\ntank/data   30.9K 27.1T  30.9K /data\n",
    "              capacity     operations     bandwidth\npool        alloc   free   read  write   read  write\n\
     ----------  -----  -----  -----  -----  -----  -----\nrpool       12.1G   467G      1     22  31.5K   310K\n\
     tank        1.51T  2.11T     12    340   1.2M  12.5M\n----------  -----  -----  -----  -----  -----  -----\n\
     rpool       12.1G   467G      0      0      0      0\ntank        1.51T  2.11T      0    400      0  14.0M\n",
    "$ zpool iostat -vl tank 5\n                capacity     operations     bandwidth    total_wait     disk_wait\n\
     pool          alloc   free   read  write   read  write   read  write   read  write\n\
     ------------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----\n\
     tank          2.76T  4.51T  9.56K  62.5K  82.0M   926M  269us    1ms  258us  131us\n\
     \x20 mirror-0     564G   924G  1.91K  12.9K  16.4M   188M  302us    1ms  290us  126us\n\
     \x20   sda           -      -    979  6.42K  8.23M  94.1M  302us    1ms  290us  127us\n\
     logs              -      -      -      -      -      -      -      -      -      -\n",
    "Mach Virtual Memory Statistics: (page size of 4096 bytes)\nPages free:                               12345.\n\
     Pages active:                            234567.\nPages wired down:                        345678.\n",
    " procs      memory      page                    disks     faults         cpu\n r b w     avm    fre   flt  re  pi  po    fr  sr da0 da1   in   sy   cs us sy id\n\
     \x20 0 0 0  1376M   194M   560   0   0   0   647   5   0   0  138  541 1024  1  1 98\n",
    "1345828501 5601 1542744 483552416 61 2573\n1345828503 7884 1979812 565806736 60 1479\n1345828505 7208 1979422 567277552 59 1391\n",
    "Geom name: ada0\nmodified: false\nstate: OK\nfwheads: 16\nfirst: 34\nentries: 128\nscheme: GPT\nProviders:\n1. Name: ada0p1\n\
     \x20  Mediasize: 524288 (512K)\n   Sectorsize: 512\n   Stripesize: 4096\n   Stripeoffset: 0\n   Mode: r0w0e0\n   index: 1\n\
     \x20  length: 524288\n   offset: 20480\n   type: freebsd-boot\n   end: 1063\n   start: 40\nConsumers:\n1. Name: ada0\n\
     \x20  Mediasize: 160041885696 (149G)\n   Sectorsize: 512\n   Mode: r2w2e3\n",
];

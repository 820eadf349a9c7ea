//! What the filesystem below an image adds to each flush, the image being written in full: `cargo bench --bench image_cost`
//! (root; a minute). Prints the table that ADR 18 quotes, asserts nothing.
//!
//! memory <- file <- loop device A <- filesystem <- file, written in full <- loop device B. Nothing but the image writes to A,
//! so A's counters beyond B's are what the filesystem between them adds.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a program for developers")]

use rustix::fs::{Mode, OFlags, open};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const MEMORY: &str = "/dev/shm";
const DISK_BYTES: u64 = 1 << 30;
const IMAGE_MIB: u64 = 256;
const BLOCK: usize = 8192;
const FLUSHES: u64 = 400;
/// Time between a flush and the next write: none, and longer than any timer tick (10 ms at 100 ticks a second).
const PAUSES_MS: [u64; 3] = [0, 1, 12];

fn main() {
    let disk = Disk::new();
    println!("Added by the filesystem below, per 8 kB write + flush at the loop device\n");
    println!("{:<26} {:>9} {:>8} {:>8} {:>8}", "filesystem below", "pause ms", "writes", "bytes", "flushes");
    for (mkfs, mount) in [
        (&["mkfs.ext4", "-q", "-F"][..], "noatime"),
        (&["mkfs.ext4", "-q", "-F"], "lazytime"),
        (&["mkfs.ext4", "-q", "-F", "-O", "^has_journal"], "noatime"),
        (&["mkfs.xfs", "-q", "-f"], "noatime"),
        (&["mkfs.xfs", "-q", "-f"], "lazytime"),
        (&["mkfs.btrfs", "-q", "-f"], "nodatacow"),
    ] {
        disk.below(mkfs, mount);
    }
}

/// Loop device A, on memory.
struct Disk {
    folder: TempDir,
    device: Loop,
}

impl Disk {
    fn new() -> Disk {
        let folder = tempfile::Builder::new().prefix("pgstrata-bench-").tempdir_in(MEMORY).unwrap();
        let file = folder.path().join("disk.img");
        File::create(&file).unwrap().set_len(DISK_BYTES).unwrap();
        let device = Loop::on(&file, "off");
        Disk { folder, device }
    }

    fn below(&self, mkfs: &[&str], options: &str) {
        let label = format!("{} {options}", mkfs[0].trim_start_matches("mkfs."));
        let label = if mkfs.contains(&"^has_journal") { format!("{label}, no journal") } else { label };
        if Command::new(mkfs[0]).arg("-V").output().is_err() {
            println!("skipped: no program {}", mkfs[0]);
            return;
        }
        run(mkfs[0], &[&mkfs[1..], &[self.device.path.to_str().unwrap()]].concat());
        let mounted = Mounted::new(&self.device.path, &self.folder.path().join("mount"), options);
        let image = mounted.at.join("image");
        let mut file = File::create(&image).unwrap();
        for _ in 0..IMAGE_MIB {
            file.write_all(&vec![1; 1 << 20]).unwrap();
        }
        file.sync_all().unwrap();
        let stack = Loop::on(&image, "on");
        for pause in PAUSES_MS {
            let (above, below) = (stack.counters(), self.device.counters());
            flushes(&stack.path, Duration::from_millis(pause));
            let (above, below) = (stack.since(above), self.device.since(below));
            let added: Vec<f64> =
                below.iter().zip(above).map(|(below, above)| (below - above) / FLUSHES as f64).collect();
            println!("{label:<26} {pause:>9} {:>+8.2} {:>+8.0} {:>+8.2}", added[0], added[1], added[2]);
        }
    }
}

/// Writes and flushes, past the page cache.
fn flushes(device: &Path, pause: Duration) {
    let file = File::from(open(device, OFlags::WRONLY | OFlags::DIRECT, Mode::empty()).unwrap());
    let room = vec![2_u8; 2 * BLOCK];
    let start = room.as_ptr().align_offset(4096);
    for number in 0..FLUSHES {
        file.write_at(&room[start..start + BLOCK], number * BLOCK as u64).unwrap();
        file.sync_data().unwrap();
        thread::sleep(pause);
    }
}

/// A loop device, removed when dropped.
struct Loop {
    path: PathBuf,
}

impl Loop {
    fn on(file: &Path, direct: &str) -> Loop {
        let direct = format!("--direct-io={direct}");
        let path = run("losetup", &["--find", "--show", &direct, file.to_str().unwrap()]);
        Loop { path: path.trim().into() }
    }

    /// Writes, bytes written, flushes since it was made (Documentation/block/stat).
    fn counters(&self) -> [f64; 3] {
        let name = self.path.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        let fields: Vec<f64> = text.split_whitespace().map(|field| field.parse().unwrap()).collect();
        [fields[4], fields[6] * 512.0, fields[15]]
    }

    fn since(&self, then: [f64; 3]) -> [f64; 3] {
        let now = self.counters();
        [now[0] - then[0], now[1] - then[1], now[2] - then[2]]
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["--detach", self.path.to_str().unwrap()]);
    }
}

/// A filesystem, unmounted when dropped.
struct Mounted {
    at: PathBuf,
}

impl Mounted {
    fn new(device: &Path, at: &Path, options: &str) -> Mounted {
        fs::create_dir_all(at).unwrap();
        run("mount", &["-o", options, device.to_str().unwrap(), at.to_str().unwrap()]);
        Mounted { at: at.to_owned() }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run("umount", &[self.at.to_str().unwrap()]);
    }
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

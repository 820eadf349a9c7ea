//! Writes and reads large files sequentially, without a server: the dd of the 2011 study.
//!
//! Writes go to the page cache until the file is synced, which counts as part of the time. Seconds are shares of a
//! file.

use super::timed::{PieceSeconds, TimedWork};
use super::wal_segments::{NewSegments, unavailable};
use super::{LoadEvent, Measuring, Place, Window, Workload, WorkloadInfo};
use crate::error::{Context, Result};
use crate::host::files;
use crate::host::noise::Noise;
use crate::host::time::{micros, wall_us};
use crate::record::counts::{Counts, Measure};
use crate::record::operation::{Operation, Writes};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::window::Extent;
use crate::units::{Bytes, Micros};
use std::io::{Read, Write};
use std::path::Path;

const DEFAULT_DURATION: Micros = Micros(20_000_000);
const QUICK_DURATION: &str = "3s";
const DEFAULT_SIZE: u64 = 64 << 20;
const LEAST_FILES: usize = 2;
/// WAL segments made at the end, at most.
const SEGMENTS: u64 = 4;
/// Segment size: the default of `initdb`.
const SEGMENT: u64 = 16 << 20;
/// The study's `bs=512k`.
const BLOCK: usize = 512 * 1024;
/// Of the bytes that are written.
const SEED: u64 = 1;

const INFO: WorkloadInfo = WorkloadInfo {
    name: "files",
    doc: "sequential write of a file and its sync, then sequential read with a cold cache (ZFS keeps its own: set \
          zfs_arc_max below the size), then new WAL segments; no server",
    needs_server: false,
    options: &[
        OptionSpec::with_default("size", OptionKind::Size, "64MiB")
            .doc("size of each file, in blocks of 512 KiB; 15GB in the study of 2011"),
        OptionSpec::with_default("duration", OptionKind::Span, "20s")
            .doc("files are written, read and deleted for this time, at least two of them"),
    ],
    quick: &[("duration", QUICK_DURATION)],
};

#[derive(Debug)]
pub struct Files;

impl Workload for Files {
    fn info(&self) -> &WorkloadInfo {
        &INFO
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        if options.size("size").is_some_and(|size| size.0 < BLOCK as u64) {
            return Err(OptionProblem::at("size", "must be at least one block of 512 KiB"));
        }
        options.positive_span("duration").map(drop)
    }

    fn operation(&self, options: &Options) -> Result<Operation> {
        let settings = options.given(&["size", "duration"]).collect();
        Ok(Operation { settings, ..Operation::new("MiB", "MiB/s", Writes::Unknown) })
    }

    fn window(&self, options: &Options) -> Window {
        let span_us = options.span("duration").unwrap_or(DEFAULT_DURATION).0;
        Window { warm_up: Some(Micros(0)), extent: Extent::Span { span_us } }
    }

    fn measure(&self, run: Measuring<'_>) -> Result<Counts> {
        let Measuring { place, options, until, listener, .. } = run;
        let bytes = options.size("size").map_or(DEFAULT_SIZE, |Bytes(bytes)| bytes);
        let blocks = bytes / BLOCK as u64;
        let mut block = random_block();
        let (mut writes, mut reads) = (TimedWork::new("write"), TimedWork::new("read"));
        let mut seconds = PieceSeconds::new(listener);
        let begun = seconds.begun;
        listener(LoadEvent::Began(wall_us()));
        for number in 0.. {
            let enough = number >= LEAST_FILES;
            if enough && (micros(begun.elapsed()) >= until.longest.0 || (until.progress)()?.is_over) {
                break;
            }
            place.interrupt.check()?;
            let path = place.folder.join(format!("{number}.dd"));
            let bytes = blocks * BLOCK as u64;
            seconds.time(bytes, &mut writes, || write(&path, blocks, &mut block))?;
            let file = files::open(&path)?;
            files::forget(&file, &path)?;
            seconds.time(bytes, &mut reads, || read(&path, file, &mut block))?;
            files::remove(&path)?;
        }
        let elapsed_us = micros(begun.elapsed());
        let measures = vec![writes.measure(), reads.measure(), new_segments(place, bytes)?];
        Ok(Counts { elapsed_us, measures, ..Counts::default() })
    }
}

/// As many segments as fit in a file of this size, so that they need no more space than it did.
fn new_segments(place: &Place<'_>, bytes: u64) -> Result<Measure> {
    let count = (bytes / SEGMENT).min(SEGMENTS);
    if count == 0 {
        return Ok(unavailable(format!("`size` is below that of a segment, {}", Bytes(SEGMENT))));
    }
    let (folder, user) = (place.folder, place.user);
    NewSegments { folder, user, bytes: SEGMENT, count, zeros: true, synced: true, spare: 0 }.measure(place.interrupt)
}

/// Incompressible bytes.
fn random_block() -> Vec<u8> {
    Noise::of(SEED, BLOCK).bytes().to_vec()
}

fn write(path: &Path, blocks: u64, block: &mut [u8]) -> Result<()> {
    let advice = "reduce `size`, or `fill` where the stack is aged";
    write_synced(path, blocks, block).map_err(|e| files::write_refused(&e, format!("write {}", path.display()), advice))
}

fn write_synced(path: &Path, blocks: u64, block: &mut [u8]) -> std::io::Result<()> {
    let mut file = files::create_new(path, 0o600)?;
    for number in 0..blocks {
        // No two blocks are equal, so deduplication finds nothing.
        block[..8].copy_from_slice(&number.to_le_bytes());
        file.write_all(block)?;
    }
    file.sync_all()
}

fn read(path: &Path, mut file: files::File, block: &mut [u8]) -> Result<()> {
    while file.read(block).or_host(|| format!("read {}", path.display()))? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::host::signals::Interrupt;
    use crate::host::users::User;

    #[test]
    fn what_is_written_does_not_compress() {
        let block = random_block();
        let mut counts = [0u32; 256];
        block.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        // Expected 2048 each, standard deviation 45: the bounds are six of them.
        assert!(counts.iter().all(|count| (1780..2320).contains(count)), "{counts:?}");
    }

    #[test]
    fn files_smaller_than_a_segment_say_that_none_was_made() {
        let (host, interrupt, folder) = (Host::this(), Interrupt::never(), tempfile::tempdir().unwrap());
        let user = User { name: "root".to_owned(), uid: 0, gid: 0 };
        let place = Place {
            host: &host,
            folder: folder.path(),
            server: None,
            crash: None,
            snapshots: None,
            user: &user,
            interrupt: &interrupt,
            raw: folder.path(),
        };
        let small = new_segments(&place, SEGMENT - 1).unwrap();
        assert_eq!((small.name.as_str(), small.done), ("new WAL segment", None));
        assert!(small.unavailable.unwrap().contains("16 MiB"));
        assert_eq!(new_segments(&place, SEGMENT).unwrap().done, Some(16));
    }

    #[test]
    fn a_file_is_written_whole_and_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.dd");
        write(&path, 3, &mut random_block()).unwrap();
        let file = files::open(&path).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 3 * BLOCK as u64);
        read(&path, file, &mut vec![0; BLOCK]).unwrap();
    }
}

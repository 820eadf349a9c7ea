//! One writer that walks through WAL segments like the server: block after block, then on to the next segment.

use super::site::{FileFill, ProbeSite};
use super::tape::FailedCall;
use crate::host::time::{micros, now};
use crate::probe::synced::{flags, sync, write_at};
use crate::record::probe::{RowSpec, Segment, Way};
use rustix::fs::OFlags;
use std::fs::File;

/// Name of the segment used by all rows with recycled segments.
pub const RECYCLED: &str = "recycled";

/// A row's position in its segments.
pub struct Walk<'a> {
    site: &'a ProbeSite,
    /// Data to write, block by block: neighbours differ, as in WAL.
    noise: &'a [u8],
    block: usize,
    way: Way,
    flags: OFlags,
    segment: Segment,
    /// File name of the segment; rows with new segments have one each.
    name: String,
    segment_bytes: u64,
    file: Option<File>,
    /// Offset of the next block.
    at: u64,
    /// Time to create each new segment, microseconds; whoever keeps them takes them.
    pub made_us: Vec<u64>,
}

impl<'a> Walk<'a> {
    /// Opens the first segment.
    ///
    /// # Errors
    /// The call that failed.
    pub fn open(spec: &RowSpec, site: &'a ProbeSite, noise: &'a [u8]) -> Result<Walk<'a>, FailedCall> {
        let segment = spec.segment.unwrap_or(Segment::Recycled);
        let recycled = segment == Segment::Recycled;
        let name = if recycled { RECYCLED.to_owned() } else { spec.id.clone() };
        let mut walk = Walk {
            site,
            noise,
            block: spec.write_bytes as usize,
            way: spec.way,
            flags: flags(spec),
            segment,
            name,
            segment_bytes: site.segment_bytes,
            file: None,
            at: 0,
            made_us: Vec::new(),
        };
        if recycled {
            walk.file = Some(walk.reopened()?);
        }
        Ok(walk)
    }

    fn reopened(&self) -> Result<File, FailedCall> {
        self.site.open(&self.name, self.flags)
    }

    /// Operations until the segment is used up; unlimited if the next one is at hand.
    pub fn left(&self) -> usize {
        match self.segment {
            Segment::Recycled => usize::MAX,
            _ => usize::try_from((self.segment_bytes - self.at) / self.block as u64).unwrap_or(usize::MAX),
        }
    }

    /// Creates a new segment if the previous one is used up. Not part of an operation: the server prepares segments in
    /// advance as long as it can.
    ///
    /// # Errors
    /// The call that failed.
    pub fn prepare(&mut self) -> Result<(), FailedCall> {
        let fill = match self.segment {
            Segment::Recycled => return Ok(()),
            Segment::ZeroFilled => FileFill::Zeroes,
            Segment::Extended => FileFill::LastByte,
        };
        if self.file.is_some() && self.left() > 0 {
            return Ok(());
        }
        let begun = now();
        if self.file.take().is_some() {
            self.site.remove(&self.name).map_err(FailedCall::of("unlink"))?;
        }
        let made = self.site.fill(&self.name, self.segment_bytes, fill);
        made.map_err(FailedCall::of("create a segment"))?;
        self.file = Some(self.reopened()?);
        self.at = 0;
        self.made_us.push(micros(begun.elapsed()));
        Ok(())
    }

    /// Writes and syncs one block. The first block of a recycled segment includes closing the previous segment and
    /// opening this one, as in the server.
    #[inline]
    pub fn once(&mut self) -> Result<(), FailedCall> {
        if self.at + self.block as u64 > self.segment_bytes {
            self.file = None;
            self.file = Some(self.reopened()?);
            self.at = 0;
        }
        let Some(file) = &self.file else { return Ok(()) };
        let from = usize::try_from(self.at).unwrap_or(0) % (self.noise.len() - self.block + 1).max(1);
        let from = from - from % self.block;
        write_at(file, &self.noise[from..from + self.block], self.at)?;
        self.at += self.block as u64;
        sync(file, self.way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::rows::{RowChoice, rows};
    use std::collections::BTreeSet;

    fn spec(id: &str, write_bytes: u32) -> RowSpec {
        rows(&RowChoice::All, write_bytes, 1).into_iter().find(|row| row.id == id).unwrap()
    }

    #[test]
    fn every_block_of_a_segment_is_written_once() {
        let place = tempfile::tempdir().unwrap();
        let mut site = ProbeSite::make(place.path()).unwrap();
        site.segment_bytes = 1 << 20;
        let memory = crate::host::noise::Noise::new(crate::probe::NOISE_SEED);
        for id in ["wal.fdatasync.zero_filled", "wal.fdatasync.extended"] {
            let mut walk = Walk::open(&spec(id, 65_536), &site, memory.bytes()).unwrap();
            for segment in 1..=2 {
                walk.prepare().unwrap();
                let mut places = BTreeSet::new();
                while walk.left() > 0 {
                    places.insert(walk.at);
                    walk.once().unwrap();
                }
                assert_eq!(places.len(), 16, "{id}, segment {segment}");
            }
            assert_eq!(walk.made_us.len(), 2);
            let written = std::fs::read(site.folder().join(id)).unwrap();
            assert!(written.chunks(65_536).all(|block| memory.bytes().chunks(65_536).any(|noise| noise == block)));
            assert_ne!(written[..65_536], written[65_536..131_072], "no two neighbours alike");
        }
    }

    #[test]
    fn a_recycled_segment_begins_anew_at_its_end() {
        let place = tempfile::tempdir().unwrap();
        let mut site = ProbeSite::make(place.path()).unwrap();
        site.segment_bytes = 1 << 20;
        site.fill(RECYCLED, 1 << 20, FileFill::Noise).unwrap();
        let memory = crate::host::noise::Noise::new(crate::probe::NOISE_SEED);
        let mut walk = Walk::open(&spec("wal.fdatasync.recycled", 65_536), &site, memory.bytes()).unwrap();
        for _ in 0..17 {
            walk.once().unwrap();
        }
        assert_eq!(walk.at, 65_536);
        assert_eq!(std::fs::metadata(site.folder().join(RECYCLED)).unwrap().len(), 1 << 20);
    }
}

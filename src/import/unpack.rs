//! Files as they were given: their digest, and what they are packed with, undone. Told by the first bytes, never by the
//! name. Sources: RFC 1952 (gzip), the .xz file format 1.2, RFC 8878 (Zstandard).

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use sha2::{Digest, Sha256};
use std::io::{self, BufReader, Chain, Cursor, Read};

/// Bytes that tell the packing.
pub(super) const MAGIC_BYTES: usize = 6;

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// gzip.
    Gzip,
    /// xz.
    Xz,
    /// Zstandard.
    Zstd,
}

impl Packing {
    /// What the first bytes tell; none for plain files.
    pub(super) fn of(head: &[u8]) -> Option<Packing> {
        let begins = |magic: &[u8]| head.starts_with(magic);
        match head {
            _ if begins(b"\x1f\x8b") => Some(Packing::Gzip),
            _ if begins(b"\xfd7zXZ\0") => Some(Packing::Xz),
            _ if begins(b"\x28\xb5\x2f\xfd") => Some(Packing::Zstd),
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Packing::Zstd),
            _ => None,
        }
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Packing::Gzip => "gzip",
            Packing::Xz => "xz",
            Packing::Zstd => "zstd",
        }
    }

    /// What is inside, as it is needed. Several files packed one behind the other are one.
    pub(super) fn unpack<'a>(self, packed: impl Read + 'a) -> Box<dyn Read + 'a> {
        match self {
            Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
            Packing::Xz => Box::new(lzma_rust2::XzReader::new(packed, true)),
            Packing::Zstd => Box::new(Frames { packed: Some(BufReader::new(packed)), frame: None }),
        }
    }
}

/// The beginning of a frame that has been looked at, and what follows it.
type Behind<R> = Chain<Cursor<Vec<u8>>, BufReader<R>>;

/// The frames of a zstd file, one after the other.
struct Frames<R: Read> {
    packed: Option<BufReader<R>>,
    frame: Option<StreamingDecoder<Behind<R>, FrameDecoder>>,
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(frame) = &mut self.frame {
                let read = frame.read(into)?;
                if read > 0 {
                    return Ok(read);
                }
                self.packed = self.frame.take().map(|frame| frame.into_inner().into_inner().1);
            }
            let Some(mut packed) = self.packed.take() else { return Ok(0) };
            let mut head = fill(&mut packed, 8)?;
            match *head.as_slice() {
                [] => return Ok(0),
                // A frame that holds no text: its length, then so many bytes.
                [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d] => {
                    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
                    io::copy(&mut packed.by_ref().take(length), &mut io::sink())?;
                    self.packed = Some(packed);
                }
                _ => {
                    head.extend(fill(&mut packed, MOST_HEADER - head.len())?);
                    if window(&head) > MOST_WINDOW {
                        return Err(io::Error::other("it needs more memory than is spent on that"));
                    }
                    let behind = Cursor::new(head).chain(packed);
                    self.frame = Some(StreamingDecoder::new(behind).map_err(io::Error::other)?);
                }
            }
        }
    }
}

/// Longest magic number and header of a frame, bytes.
const MOST_HEADER: usize = 18;
/// Most memory that a frame may ask for: what `zstd --long` takes.
const MOST_WINDOW: u64 = 128 << 20;

/// Memory that a frame asks for by its header, bytes (RFC 8878, 3.1.1.1): its window, or its content where that is one
/// segment.
fn window(head: &[u8]) -> u64 {
    const SINGLE_SEGMENT: u8 = 1 << 5;
    let Some(descriptor) = head.get(4).copied() else { return 0 };
    if descriptor & SINGLE_SEGMENT == 0 {
        let window = head.get(5).copied().unwrap_or_default();
        let base = 1u64 << (10 + (window >> 3));
        return base + base / 8 * u64::from(window & 7);
    }
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let bytes = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let size = head.iter().skip(5 + dictionary).take(bytes).rev();
    size.fold(0, |size, byte| size << 8 | u64::from(*byte))
}

/// Counts and digests what goes through it.
pub(super) struct Tap<R> {
    inner: R,
    digest: Sha256,
    /// Bytes so far.
    pub(super) bytes: u64,
}

impl<R: Read> Tap<R> {
    /// A tap before `inner`.
    pub(super) fn new(inner: R) -> Tap<R> {
        Tap { inner, digest: Sha256::new(), bytes: 0 }
    }

    /// SHA-256 of all that went through, hex.
    pub(super) fn sha256(self) -> String {
        self.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl<R: Read> Read for Tap<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.digest.update(&into[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

/// Reads until there are `wanted` bytes or no more.
///
/// # Errors
/// Of the reader.
pub(super) fn fill(reader: &mut dyn Read, wanted: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(wanted as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

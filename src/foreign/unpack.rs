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

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use proptest::prelude::{any, prop_assert, proptest};
    use std::io::Write;

    /// `fsync 5` and a line end, by xz 5.4 and zstd 1.5 (with a check sum).
    const XZ: &str = "/Td6WFoAAATm1rRGAgAhARYAAAB0L+WjAQAHZnN5bmMgNQoAoAMs6snnKuUAASAIuxnZux+2830BAAAAAARZWg==";
    const ZSTD: &str = "KLUv/QRYQQAAZnN5bmMgNQr77CyF";

    fn bytes(base64: &str) -> Vec<u8> {
        base64::engine::general_purpose::STANDARD.decode(base64).unwrap()
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(text.as_bytes()).unwrap();
        writer.finish().unwrap()
    }

    fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        let reader = Packing::of(packed).unwrap().unpack(packed);
        reader.take(1 << 20).read_to_end(&mut plain)?;
        Ok(plain)
    }

    #[test]
    fn each_packing_is_told_by_its_first_bytes_and_undone_also_twice_in_a_row() {
        for (packing, packed) in
            [(Packing::Gzip, gzip("fsync 5\n")), (Packing::Xz, bytes(XZ)), (Packing::Zstd, bytes(ZSTD))]
        {
            assert_eq!(Packing::of(&packed), Some(packing));
            assert_eq!(unpacked(&packed).unwrap(), b"fsync 5\n");
            assert_eq!(unpacked(&[packed.clone(), packed].concat()).unwrap(), b"fsync 5\nfsync 5\n");
        }
        assert_eq!(Packing::of(b"fsync"), None);
        assert_eq!(Packing::of(b""), None);
    }

    #[test]
    fn a_frame_without_text_is_passed_over_and_one_that_wants_much_memory_is_refused() {
        let skip = b"\x50\x2a\x4d\x18\x03\0\0\0xyz";
        assert_eq!(unpacked(&[skip, bytes(ZSTD).as_slice()].concat()).unwrap(), b"fsync 5\n");
        let error = unpacked(b"\x28\xb5\x2f\xfd\x00\xff\0\0\0\0\0").unwrap_err();
        assert!(error.to_string().contains("more memory"), "{error}");
        assert!(unpacked(b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\xff\0\0\0").is_err());
    }

    #[test]
    fn a_cut_off_file_is_an_error_and_not_its_beginning() {
        for packed in [gzip(&"fsync 5\n".repeat(99)), bytes(XZ), bytes(ZSTD)] {
            assert!(unpacked(&packed[..packed.len() - 6]).is_err());
        }
    }

    #[test]
    fn the_tap_counts_and_digests_what_was_given() {
        let mut tap = Tap::new(&b"abc"[..]);
        assert_eq!(fill(&mut tap, 9).unwrap(), b"abc");
        assert_eq!(tap.bytes, 3);
        assert_eq!(tap.sha256(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    proptest! {
        #[test]
        fn no_damage_makes_it_panic(which in 0usize..3, at in any::<usize>(), byte in any::<u8>()) {
            let mut packed = [gzip(&"fsync 5\n".repeat(9)), bytes(XZ), bytes(ZSTD)][which].clone();
            let at = at % packed.len();
            packed[at] = byte;
            if Packing::of(&packed).is_some() {
                prop_assert!(unpacked(&packed).is_ok_and(|plain| plain.len() < 100) || unpacked(&packed).is_err());
            }
        }
    }
}

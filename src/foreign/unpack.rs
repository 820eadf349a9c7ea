//! Digests files as given, and unpacks them. The format is recognised by the first bytes, never by the name. Sources:
//! RFC 1952 (gzip), the .xz file format 1.2, RFC 8878 (Zstandard).

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use sha2::{Digest, Sha256};
use std::io::{self, BufRead, BufReader, Read};

/// Bytes needed to recognise a compression format.
pub(super) const MAGIC_BYTES: usize = 6;

/// Compression format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Xz,
    Zstd,
}

impl Packing {
    /// The format indicated by the first bytes; `None` for plain files.
    pub(super) fn of(head: &[u8]) -> Option<Packing> {
        match head {
            [0x1f, 0x8b, ..] => Some(Packing::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Packing::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Packing::Gzip => "gzip",
            Packing::Xz => "xz",
            Packing::Zstd => "zstd",
        }
    }

    /// Decompresses while reading. Concatenated members are read as one.
    pub(super) fn unpack<'a>(self, packed: impl Read + 'a) -> Box<dyn Read + 'a> {
        match self {
            Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
            Packing::Xz => Box::new(lzma_rust2::XzReader::new(packed, true)),
            Packing::Zstd => Box::new(Frames::Packed(BufReader::new(packed))),
        }
    }
}

/// A frame without content. The library limits the memory of a frame (to 100 MiB) for all but a decoder's first one, so
/// this is the first.
const EMPTY_FRAME: [u8; 9] = *b"\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00";

/// Successive frames of a zstd file.
enum Frames<R: Read> {
    /// Inside a frame.
    Frame(Box<StreamingDecoder<BufReader<R>, FrameDecoder>>),
    /// Between two frames, or after the last.
    Packed(BufReader<R>),
    /// A frame that cannot be decompressed, or a read error.
    Broken,
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Frames::Broken) {
                Frames::Frame(mut frame) => {
                    let read = frame.read(into)?;
                    if read > 0 || into.is_empty() {
                        *self = Frames::Frame(frame);
                        return Ok(read);
                    }
                    *self = Frames::Packed(frame.into_inner());
                }
                Frames::Packed(mut packed) => {
                    if packed.fill_buf()?.is_empty() {
                        *self = Frames::Packed(packed);
                        return Ok(0);
                    }
                    let mut decoder = FrameDecoder::new();
                    decoder.init(&EMPTY_FRAME[..]).map_err(io::Error::other)?;
                    let frame = StreamingDecoder::new_with_decoder(packed, decoder).map_err(io::Error::other)?;
                    *self = Frames::Frame(Box::new(frame));
                }
                Frames::Broken => return Err(io::Error::other("the compressed data is damaged")),
            }
        }
    }
}

/// Counts and digests the bytes that pass through it.
pub(super) struct Tap<R> {
    inner: R,
    digest: Sha256,
    /// Bytes so far.
    pub(super) bytes: u64,
}

impl<R: Read> Tap<R> {
    pub(super) fn new(inner: R) -> Tap<R> {
        Tap { inner, digest: Sha256::new(), bytes: 0 }
    }

    /// SHA-256 of all bytes so far, hex.
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
/// Those of the reader.
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

    /// `fsync 5` and a line end, by xz 5.4 and zstd 1.5 (with a checksum).
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
    fn each_compression_is_detected_by_magic_bytes_and_decompressed() {
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
    fn a_frame_needing_much_memory_or_holding_binary_is_refused() {
        assert!(unpacked(b"\x28\xb5\x2f\xfd\x00\xff\0\0\0\0\0").is_err());
        assert!(unpacked(b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\xff\0\0\0").is_err());
        let skip = b"\x50\x2a\x4d\x18\x03\0\0\0xyz";
        assert!(unpacked(&[bytes(ZSTD).as_slice(), skip].concat()).is_err());
    }

    #[test]
    fn a_truncated_compressed_file_is_an_error() {
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

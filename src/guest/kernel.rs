//! Unpacks the kernel and its modules, for QEMU and insmod.

use crate::error::{Error, Result};
use std::io::Read;

const XZ: &[u8] = b"\xfd7zXZ\0";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
const ELF: &[u8] = b"\x7fELF";

/// The uncompressed kernel (ELF, entered by PVH) inside a `vmlinuz`. TCG boots it 1 to 2 s faster than the packed one,
/// which unpacks itself in the guest.
///
/// # Errors
/// If there is none.
pub(super) fn unpacked(vmlinuz: &[u8]) -> Result<Vec<u8>> {
    let starts = |magic: &'static [u8]| (0..vmlinuz.len()).filter(move |at| vmlinuz[*at..].starts_with(magic));
    let xz = starts(XZ).find_map(|at| whole(lzma_rust2::XzReader::new(&vmlinuz[at..], false)));
    xz.or_else(|| starts(ZSTD).find_map(|at| whole(ruzstd::decoding::StreamingDecoder::new(&vmlinuz[at..]).ok()?)))
        .ok_or_else(|| Error::tool("no xz or zstd stream with a kernel in vmlinuz"))
}

/// The reader's data, if they are an ELF file. Errors are ignored: bytes after the stream, such as the stored length,
/// cause one.
fn whole(mut reader: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    drop(reader.read_to_end(&mut bytes));
    bytes.starts_with(ELF).then_some(bytes)
}

/// An unpacked module, whatever its compression.
///
/// # Errors
/// If it cannot be unpacked.
pub(super) fn module(path: &str, bytes: Vec<u8>) -> Result<Vec<u8>> {
    let unpacked = match path.rsplit('.').next() {
        Some("xz") => whole(lzma_rust2::XzReader::new(bytes.as_slice(), true)),
        Some("zst") => ruzstd::decoding::StreamingDecoder::new(bytes.as_slice()).ok().and_then(whole),
        _ => Some(bytes),
    };
    unpacked.ok_or_else(|| Error::tool(format!("the kernel module {path} cannot be unpacked")))
}

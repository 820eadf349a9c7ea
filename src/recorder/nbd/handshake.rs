//! The handshake, from both sides: options until the client has an export or leaves.

use super::{EXPORT_FLAGS, NbdShared};
use crate::error::{Context, Result};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

const MAGIC: &[u8; 8] = b"NBDMAGIC";
const OPTION_MAGIC: &[u8; 8] = b"IHAVEOPT";
const REPLY_MAGIC: u64 = 0x0003_E889_0455_65A9;

/// Flags of both sides: fixed newstyle, no 124 zeros after the export's flags.
const FIXED_NEWSTYLE: u16 = 1;
const NO_ZEROES: u16 = 2;

/// Options.
const EXPORT_NAME: u32 = 1;
const ABORT: u32 = 2;
const LIST: u32 = 3;
const INFO: u32 = 6;
const GO: u32 = 7;

/// Replies to options.
const ACK: u32 = 1;
const SERVER: u32 = 2;
const INFORMATION: u32 = 3;
const UNSUPPORTED: u32 = 1 << 31 | 1;
const INVALID: u32 = 1 << 31 | 3;
const UNKNOWN: u32 = 1 << 31 | 6;
const TOO_BIG: u32 = 1 << 31 | 9;

/// Kinds of information about an export.
const ABOUT_EXPORT: u16 = 0;
const ABOUT_NAME: u16 = 1;
const ABOUT_BLOCKS: u16 = 3;

/// Longest name (the protocol's limit for strings).
const MOST_NAME: usize = 4096;
/// Longest option that is read and rejected gracefully; a longer one ends the connection.
const MOST_OPTION: u32 = 64 << 10;
/// Longest data of an option with a name and a list of information kinds.
const MOST_ASKED: usize = MOST_NAME + 1024;

/// Smallest, preferred and largest request, in bytes.
const BLOCKS: [u32; 3] = [1, 4096, super::transmission::MOST_PAYLOAD];

/// The request in the data of INFO and GO.
struct AskedExport<'d> {
    name: &'d str,
    information: Vec<u16>,
}

/// Serves options; returns the export for transmission, `None` if the client is done.
pub(super) fn negotiate(mut stream: &UnixStream, shared: &NbdShared) -> io::Result<Option<String>> {
    let ours = FIXED_NEWSTYLE | NO_ZEROES;
    stream.write_all(&[MAGIC.as_slice(), OPTION_MAGIC, &ours.to_be_bytes()].concat())?;
    let theirs = u32::from_be_bytes(read(stream)?);
    if theirs & !u32::from(ours) != 0 {
        return Ok(None);
    }
    let zeroes = theirs & u32::from(NO_ZEROES) == 0;
    loop {
        if read::<8>(stream)? != *OPTION_MAGIC {
            return Ok(None);
        }
        let (option, length) = (u32::from_be_bytes(read(stream)?), u32::from_be_bytes(read(stream)?));
        if length > MOST_OPTION {
            return Ok(None);
        }
        let mut data = vec![0; length as usize];
        stream.read_exact(&mut data)?;
        match option {
            EXPORT_NAME => return export_by_name(stream, shared, &data, zeroes),
            ABORT => {
                reply(stream, option, ACK, &[])?;
                return Ok(None);
            }
            LIST if data.is_empty() => {
                for name in shared.names() {
                    reply(stream, option, SERVER, &[&length_of(name.as_bytes()), name.as_bytes()].concat())?;
                }
                reply(stream, option, ACK, &[])?;
            }
            LIST => reply(stream, option, INVALID, b"LIST takes no data")?,
            INFO | GO if data.len() > MOST_ASKED => reply(stream, option, TOO_BIG, b"the option is too long")?,
            INFO | GO => match asked(&data) {
                None => reply(stream, option, INVALID, b"the option's data are malformed")?,
                Some(asked) => {
                    if inform(stream, option, shared, &asked)? && option == GO {
                        return Ok(Some(asked.name.to_owned()));
                    }
                }
            },
            _ => reply(stream, option, UNSUPPORTED, b"this option is not supported")?,
        }
    }
}

/// The oldest way to open an export, whose only error is closing the connection.
fn export_by_name(mut stream: &UnixStream, shared: &NbdShared, data: &[u8], zeros: bool) -> io::Result<Option<String>> {
    let name = std::str::from_utf8(data).unwrap_or_default();
    let Some(size) = shared.export(name).and_then(|export| export.size()) else { return Ok(None) };
    let mut answer = [&size.to_be_bytes()[..], &EXPORT_FLAGS.to_be_bytes()].concat();
    answer.extend(std::iter::repeat_n(0, if zeros { 124 } else { 0 }));
    stream.write_all(&answer)?;
    Ok(Some(name.to_owned()))
}

/// Length and name, number of kinds and kinds of information, with nothing left over.
fn asked(data: &[u8]) -> Option<AskedExport<'_>> {
    let (length, rest) = data.split_first_chunk::<4>()?;
    let (name, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    let (count, rest) = rest.split_first_chunk::<2>()?;
    if name.len() > MOST_NAME || rest.len() != usize::from(u16::from_be_bytes(*count)) * 2 {
        return None;
    }
    let information = rest.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]])).collect();
    Some(AskedExport { name: std::str::from_utf8(name).ok()?, information })
}

/// Describes an export; returns false if it does not exist.
fn inform(stream: &UnixStream, option: u32, shared: &NbdShared, asked: &AskedExport<'_>) -> io::Result<bool> {
    let Some(size) = shared.export(asked.name).and_then(|export| export.size()) else {
        reply(stream, option, UNKNOWN, b"there is no such export")?;
        return Ok(false);
    };
    let send_info = |kind: u16, data: &[u8]| reply(stream, option, INFORMATION, &[&kind.to_be_bytes(), data].concat());
    send_info(ABOUT_EXPORT, &[&size.to_be_bytes()[..], &EXPORT_FLAGS.to_be_bytes()].concat())?;
    if asked.information.contains(&ABOUT_NAME) {
        send_info(ABOUT_NAME, asked.name.as_bytes())?;
    }
    if asked.information.contains(&ABOUT_BLOCKS) {
        send_info(ABOUT_BLOCKS, &BLOCKS.map(u32::to_be_bytes).concat())?;
    }
    reply(stream, option, ACK, &[])?;
    Ok(true)
}

fn reply(mut stream: &UnixStream, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    let head = [&REPLY_MAGIC.to_be_bytes()[..], &option.to_be_bytes(), &kind.to_be_bytes(), &length_of(data)];
    stream.write_all(&[&head.concat(), data].concat())
}

fn length_of(data: &[u8]) -> [u8; 4] {
    u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes()
}

fn read<const N: usize>(mut stream: &UnixStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Opens an export of a server at a socket, up to the first request: for the kernel's driver to take over. With its size
/// and flags.
///
/// # Errors
/// When nobody listens there, it is not an NBD server, or it has no such export.
pub fn open(socket: &Path, name: &str) -> Result<(UnixStream, (u64, u16))> {
    let doing = || format!("open the export {name} at {}", socket.display());
    let stream = UnixStream::connect(socket).or_host(doing)?;
    let size_and_flags = go(&stream, name).or_host(doing)?.or_host(doing)?;
    Ok((stream, size_and_flags))
}

/// Size and flags of the export, or why there is none.
fn go(mut stream: &UnixStream, name: &str) -> io::Result<Result<(u64, u16), String>> {
    if read::<8>(stream)? != *MAGIC || read::<8>(stream)? != *OPTION_MAGIC {
        return Ok(Err("it is no NBD server of the newstyle".to_owned()));
    }
    let flags = u16::from_be_bytes(read(stream)?) & (FIXED_NEWSTYLE | NO_ZEROES);
    let data = [&length_of(name.as_bytes())[..], name.as_bytes(), &0_u16.to_be_bytes()].concat();
    stream.write_all(&u32::from(flags).to_be_bytes())?;
    stream.write_all(&[&OPTION_MAGIC[..], &GO.to_be_bytes(), &length_of(&data), &data].concat())?;
    let mut export = None;
    loop {
        let (magic, _option) = (u64::from_be_bytes(read(stream)?), read::<4>(stream)?);
        let (kind, length) = (u32::from_be_bytes(read(stream)?), u32::from_be_bytes(read(stream)?));
        if magic != REPLY_MAGIC || length > MOST_OPTION {
            return Ok(Err("its reply is malformed".to_owned()));
        }
        let mut data = vec![0; length as usize];
        stream.read_exact(&mut data)?;
        match (kind, data.as_slice()) {
            (INFORMATION, [0, 0, size @ .., high, low]) if size.len() == 8 => {
                let size = size.iter().fold(0_u64, |size, byte| size << 8 | u64::from(*byte));
                export = Some((size, u16::from_be_bytes([*high, *low])));
            }
            (INFORMATION, _) => {}
            (ACK, _) => return Ok(export.ok_or_else(|| "it tells no size".to_owned())),
            (_, why) => return Ok(Err(format!("it refuses: {}", String::from_utf8_lossy(why)))),
        }
    }
}

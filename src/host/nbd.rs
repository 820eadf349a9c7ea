//! The kernel's NBD client: it takes over a connection after the handshake and exposes it as a block device (generic
//! netlink, include/uapi/linux/nbd-netlink.h and genetlink.h).

pub(crate) use super::answers::Wish;
use rustix::io::Errno;
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, sendto, socket_with};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// struct nlmsghdr, struct genlmsghdr.
const MESSAGE_HEAD: usize = 16;
const GENERIC_HEAD: usize = 4;
/// linux/netlink.h: message type of an error or acknowledgement, request flags, nested-attribute flag.
const NLMSG_ERROR: u16 = 2;
const REQUEST_AND_ACK: u16 = 1 | 4;
const NESTED: u16 = 1 << 15;
/// The control family, its command to look up a family, and the attributes of that command.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const CONNECT: u8 = 1;
const DISCONNECT: u8 = 2;
/// Attributes of the driver.
const INDEX: u16 = 1;
const SIZE_BYTES: u16 = 2;
const BLOCK_SIZE_BYTES: u16 = 3;
const TIMEOUT_S: u16 = 4;
const SERVER_FLAGS: u16 = 5;
const SOCKETS: u16 = 7;
const IDENTIFIER: u16 = 10;
const SOCKET_ITEM: u16 = 1;
const SOCKET_FD: u16 = 1;

/// After so many seconds a request fails, so that a killed server leaves nothing that waits for ever.
const LONGEST_S: u64 = 120;

/// Hands a connection to the driver; returns the number of the device.
///
/// # Errors
/// ENOENT if the driver is not loaded; else the driver's error.
pub(crate) fn connect(connection: BorrowedFd<'_>, wish: &Wish<'_>) -> io::Result<u32> {
    let (socket, family) = driver()?;
    let item = attribute(SOCKET_FD, &(connection.as_raw_fd() as u32).to_ne_bytes());
    let sockets = attribute(SOCKET_ITEM | NESTED, &item);
    let attributes = [
        attribute(SIZE_BYTES, &wish.size.to_ne_bytes()),
        attribute(BLOCK_SIZE_BYTES, &wish.block_size.to_ne_bytes()),
        attribute(TIMEOUT_S, &LONGEST_S.to_ne_bytes()),
        attribute(SERVER_FLAGS, &u64::from(wish.flags).to_ne_bytes()),
        attribute(IDENTIFIER, &terminated(wish.identifier)),
        attribute(SOCKETS | NESTED, &sockets),
    ];
    let answer = ask(&socket, family, CONNECT, &attributes.concat())?;
    number_of(&answer, INDEX).ok_or_else(|| io::Error::other("the driver named no device"))
}

/// Disconnects a device. Requests in flight fail.
///
/// # Errors
/// The driver's error.
pub(crate) fn disconnect(number: u32) -> io::Result<()> {
    let (socket, family) = driver()?;
    ask(&socket, family, DISCONNECT, &attribute(INDEX, &number.to_ne_bytes())).map(drop)
}

/// A netlink socket to the driver, and its family.
fn driver() -> io::Result<(OwnedFd, u16)> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(GENERIC))?;
    bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    let answer = ask(&socket, CONTROL, GET_FAMILY, &attribute(FAMILY_NAME, &terminated("nbd")))?;
    let family = attributes(&answer).find(|(kind, _)| *kind == FAMILY_ID).and_then(|(_, value)| half(value, 0));
    let family = family.ok_or_else(|| io::Error::other("the kernel told no number of the family nbd"))?;
    Ok((socket, family))
}

/// Sends a command; returns the attributes of the answer, once it is acknowledged.
fn ask(socket: &OwnedFd, family: u16, command: u8, attributes: &[u8]) -> io::Result<Vec<u8>> {
    let length = (MESSAGE_HEAD + GENERIC_HEAD + attributes.len()) as u32;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(family.to_ne_bytes());
    message.extend(REQUEST_AND_ACK.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(attributes);
    sendto(socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = Vec::new();
    loop {
        let mut bytes = vec![0; 64 << 10];
        let (received, _) = recv(socket, &mut bytes[..], RecvFlags::empty())?;
        for (kind, body) in messages(&bytes[..received]) {
            if kind != NLMSG_ERROR {
                answer.extend_from_slice(body.get(GENERIC_HEAD..).unwrap_or_default());
                continue;
            }
            return match whole(body, 0).unwrap_or(0) as i32 {
                0 => Ok(answer),
                error => Err(Errno::from_raw_os_error(-error).into()),
            };
        }
    }
}

/// Iterates over messages as type and body.
fn messages(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    pieces(bytes, MESSAGE_HEAD, |head| Some((whole(head, 0)? as usize, half(head, 4)?)))
}

/// Iterates over attributes as type and value.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    pieces(bytes, 4, |head| Some((usize::from(half(head, 0)?), half(head, 2)?)))
}

/// Iterates over consecutive records, each with a header that holds its length and kind, padded to 4 bytes.
fn pieces(
    mut bytes: &[u8],
    head: usize,
    read: impl Fn(&[u8]) -> Option<(usize, u16)>,
) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (length, kind) = read(bytes)?;
        let body = bytes.get(head..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len();
    let mut bytes = (length as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

fn terminated(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

fn number_of(answer: &[u8], kind: u16) -> Option<u32> {
    attributes(answer).find(|(found, _)| *found == kind).and_then(|(_, value)| whole(value, 0))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|two| u16::from_ne_bytes(*two))
}

fn whole(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_ne_bytes(*four))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn netlink_attributes_round_trip_and_a_damaged_one_ends_them() {
        let bytes = [attribute(IDENTIFIER, &terminated("a")), attribute(INDEX, &7_u32.to_ne_bytes())].concat();
        assert_eq!(number_of(&bytes, INDEX), Some(7));
        assert_eq!(attributes(&bytes).next(), Some((IDENTIFIER, &b"a\0"[..])));
        assert_eq!(attributes(&bytes[..bytes.len() - 1]).count(), 1);
        assert_eq!(attributes(&[2, 0, 1, 0]).count(), 0, "a length smaller than its head");
    }

    #[test]
    fn the_kernel_resolves_netlink_families_and_reports_missing_ones() {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(GENERIC)).unwrap();
        bind(&socket, &SocketAddrNetlink::new(0, 0)).unwrap();
        let find = |name: &str| ask(&socket, CONTROL, GET_FAMILY, &attribute(FAMILY_NAME, &terminated(name)));
        let found = find("nlctrl").unwrap();
        let family = attributes(&found).find(|(kind, _)| *kind == FAMILY_ID).and_then(|(_, value)| half(value, 0));
        assert_eq!(family, Some(CONTROL));
        assert_eq!(find("no such one").unwrap_err().raw_os_error(), Some(Errno::NOENT.raw_os_error()));
    }
}

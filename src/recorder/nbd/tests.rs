//! The server against a test client: every option, every command, and streams that are not requests.

use super::{EXPORT_FLAGS, NbdServer, open};
use crate::recorder::testing::{ROOM, SIZE, TestDisks};
use crate::recorder::{DeviceModel, Durable, Op, Recorder, create_origin};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const EIO: u32 = 5;
const FUA: u16 = 1;

/// A server with one disk, `a`, of [`SIZE`] bytes.
pub(super) struct Served {
    disks: TestDisks,
    pub recorder: Arc<Recorder>,
    pub server: NbdServer,
}

impl Served {
    /// Not recording yet.
    pub fn filling() -> Served {
        let disks = TestDisks::new(0);
        let origin = create_origin(&disks.log().with_file_name("origin"), SIZE).unwrap();
        let recorder = Arc::new(Recorder::filling(vec![(origin, SIZE)]));
        let server = NbdServer::listen(&disks.log().with_file_name("nbd")).unwrap();
        server.add("a", &recorder, 0).unwrap();
        Served { disks, recorder, server }
    }

    pub fn recording() -> Served {
        let served = Served::filling();
        served.recorder.begin(&served.disks.log(), ROOM).unwrap();
        served
    }

    /// The log, once all clients have gone.
    pub fn entries(self) -> Vec<super::super::Entry> {
        drop(self.server);
        self.recorder.finish().unwrap().log().entries().to_vec()
    }

    fn client(&self) -> Client {
        let (stream, size_and_flags) = open(self.server.socket(), "a").unwrap();
        assert_eq!(size_and_flags, (SIZE, EXPORT_FLAGS));
        Client(stream)
    }
}

/// A client after its handshake.
struct Client(UnixStream);

fn request(flags: u16, command: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let head = [&0x2560_9513_u32.to_be_bytes()[..], &flags.to_be_bytes(), &command.to_be_bytes()].concat();
    [&head[..], &cookie.to_be_bytes(), &offset.to_be_bytes(), &length.to_be_bytes()].concat()
}

impl Client {
    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Error and cookie of the next reply.
    fn reply(&mut self) -> (u32, u64) {
        let mut head = [0; 16];
        self.0.read_exact(&mut head).unwrap();
        assert_eq!(head[..4], 0x6744_6698_u32.to_be_bytes());
        let error = u32::from_be_bytes(head[4..8].try_into().unwrap());
        (error, u64::from_be_bytes(head[8..].try_into().unwrap()))
    }

    /// The error for a request sent with this payload.
    fn ask(&mut self, flags: u16, command: u16, offset: u64, length: u32, payload: &[u8]) -> u32 {
        self.send(&[&request(flags, command, 7, offset, length), payload].concat());
        let (error, cookie) = self.reply();
        assert_eq!(cookie, 7);
        error
    }

    fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        assert_eq!(self.ask(0, 0, offset, length, &[]), 0);
        let mut bytes = vec![0; length as usize];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// True if the server has closed the connection.
    fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0) | Err(_))
    }
}

#[test]
fn each_command_reaches_the_log_with_fua_and_the_disk() {
    let served = Served::recording();
    let mut client = served.client();
    assert_eq!(client.ask(FUA, 1, 4096, 3, b"abc"), 0);
    assert_eq!(client.ask(0, 1, 8192, 4, b"defg"), 0);
    assert_eq!(client.ask(0, 3, 0, 0, &[]), 0);
    assert_eq!(client.ask(FUA, 4, 4096, 1, &[]), 0);
    assert_eq!(client.ask(2 | FUA, 6, 8193, 2, &[]), 0);
    assert_eq!(client.read(4095, 5), [0, 0, b'b', b'c', 0]);
    assert_eq!(client.read(8192, 4), [b'd', 0, 0, b'g']);
    client.send(&request(0, 2, 0, 0, 0));
    assert!(client.is_closed(), "DISC has no reply");
    let entries: Vec<(Op, bool, u64, u64)> =
        served.entries().iter().map(|entry| (entry.op, entry.fua, entry.offset, entry.length)).collect();
    let expected = [
        (Op::Write, true, 4096, 3),
        (Op::Write, false, 8192, 4),
        (Op::Flush, false, 0, 0),
        (Op::Discard, true, 4096, 1),
        (Op::WriteZeroes, true, 8193, 2),
    ];
    assert_eq!(entries, expected);
}

#[test]
fn a_fua_write_is_durable_unless_the_device_ignores_fua() {
    let served = Served::recording();
    let mut client = served.client();
    assert_eq!(client.ask(FUA, 1, 0, 4, b"wal!"), 0);
    assert_eq!(client.ask(0, 1, 4096, 4, b"data"), 0);
    drop(client);
    let entries = served.entries();
    assert_eq!(Durable::of(&entries, DeviceModel::Honest).at(u64::MAX), [0]);
    assert!(Durable::of(&entries, DeviceModel::FuaIgnored).at(u64::MAX).is_empty());
}

#[test]
fn a_flush_does_not_cover_a_write_unanswered_when_sent() {
    let served = Served::recording();
    let mut client = served.client();
    // One stream of bytes: the client cannot have seen an answer.
    let all = [request(0, 1, 1, 0, 4), b"abcd".to_vec(), request(0, 3, 2, 0, 0)].concat();
    client.send(&all);
    assert_eq!([client.reply(), client.reply()], [(0, 1), (0, 2)]);
    assert_eq!(client.ask(0, 3, 0, 0, &[]), 0);
    drop(client);
    let entries = served.entries();
    let [write, early, late] = [entries[0], entries[1], entries[2]];
    assert!(early.submitted < write.completed && write.completed < late.submitted, "{entries:?}");
    assert_eq!(Durable::of(&entries, DeviceModel::Honest).from(0), late.completed);
}

#[test]
fn an_impossible_request_gets_a_protocol_error_without_disconnect() {
    let served = Served::recording();
    let mut client = served.client();
    for (flags, command, offset, length, error) in [
        (0, 0, SIZE, 1, EINVAL),
        (0, 0, u64::MAX, 2, EINVAL),
        (0, 0, 0, (32 << 20) + 1, EINVAL),
        (0, 4, SIZE - 1, 2, EINVAL),
        (0, 6, SIZE - 1, 2, ENOSPC),
        (0, 0, 0, 0, EINVAL),
        (0, 4, 0, 0, EINVAL),
        (0, 3, 512, 0, EINVAL),
        (0, 3, 0, 512, EINVAL),
        (16, 6, 0, 512, EINVAL),
        (2, 4, 0, 512, EINVAL),
        (0, 5, 0, 512, EINVAL),
        (0, 7, 0, 512, EINVAL),
        (0, 99, 0, 0, EINVAL),
    ] {
        assert_eq!(client.ask(flags, command, offset, length, &[]), error, "command {command} with flags {flags}");
    }
    assert_eq!(client.ask(0, 1, SIZE - 1, 2, b"ab"), ENOSPC);
    assert_eq!(client.ask(4, 1, 0, 2, b"ab"), EINVAL, "an unknown flag; the payload is taken all the same");
    assert_eq!(client.ask(0, 1, 0, 2, b"ab"), 0);
    drop(client);
    assert_eq!(served.entries().len(), 1, "what is refused is not logged and leaves no gap");
}

#[test]
fn requests_fail_once_the_recording_has_failed() {
    let served = Served::filling();
    served.recorder.begin(&served.disks.log(), 6000).unwrap();
    let mut client = served.client();
    assert_eq!(client.ask(0, 1, 0, 4096, &[1; 4096]), 0);
    assert_eq!(client.ask(0, 1, 0, 4096, &[1; 4096]), EIO);
    assert_eq!(client.ask(0, 3, 0, 0, &[]), EIO);
    drop(client);
    assert!(served.recorder.finish().unwrap_err().to_string().contains("is full"));
}

#[test]
fn a_submitted_request_completes_though_its_client_is_gone() {
    let served = Served::recording();
    let mut client = served.client();
    for block in 0..20 {
        client.send(&[request(0, 1, block, block * 4096, 4096), vec![1; 4096]].concat());
    }
    client.send(&request(0, 1, 99, 0, 4096));
    drop(client);
    // Cut off inside a payload: that request was never submitted.
    let recorder = Arc::clone(&served.recorder);
    let entries = served.entries();
    assert!(entries.len() <= 20, "{}", entries.len());
    assert!(recorder.failure().is_some_and(|failure| failure.contains("has ended")));
}

#[test]
fn what_is_written_before_the_recording_begins_is_the_origin() {
    let served = Served::filling();
    let mut client = served.client();
    assert_eq!(client.ask(0, 1, 0, 4, b"base"), 0);
    served.recorder.begin(&served.disks.log(), ROOM).unwrap();
    assert_eq!(client.read(0, 4), b"base");
    assert_eq!(client.ask(0, 1, 0, 4, b"more"), 0);
    drop(client);
    assert_eq!(served.entries().len(), 1);
}

#[test]
fn connected_clients_see_a_replaced_disk_and_its_removal_fails() {
    let (served, other) = (Served::recording(), Served::recording());
    let mut client = served.client();
    assert_eq!(client.ask(0, 1, 0, 1, b"1"), 0);
    served.server.swap("a", &other.recorder, 0);
    assert_eq!(client.read(0, 1), [0]);
    served.server.remove("a");
    assert_eq!(client.ask(0, 3, 0, 0, &[]), 108, "ESHUTDOWN");
    assert!(open(served.server.socket(), "a").is_err());
}

/// A connection before its handshake, with the server's greeting read.
fn raw(socket: &Path) -> UnixStream {
    let mut stream = UnixStream::connect(socket).unwrap();
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(greeting, *b"NBDMAGICIHAVEOPT\0\x03");
    stream
}

fn option(option: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &option.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
}

/// Kind and data of the next reply to an option.
fn option_reply(stream: &mut UnixStream) -> (u32, Vec<u8>) {
    let mut head = [0; 20];
    stream.read_exact(&mut head).unwrap();
    let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
    let mut data = vec![0; number(16) as usize];
    stream.read_exact(&mut data).unwrap();
    (number(12), data)
}

#[test]
fn options_are_answered_and_unknown_or_malformed_ones_refused() {
    let served = Served::recording();
    let mut stream = raw(served.server.socket());
    stream.write_all(&3_u32.to_be_bytes()).unwrap();
    let mut ask = |number: u32, data: &[u8]| {
        stream.write_all(&option(number, data)).unwrap();
        let mut replies = vec![option_reply(&mut stream)];
        while replies.last().is_some_and(|(kind, _)| [2, 3].contains(kind)) {
            replies.push(option_reply(&mut stream));
        }
        replies
    };
    let refused = |kind: u32| 1 << 31 | kind;
    assert_eq!(ask(3, &[]), [(2, b"\0\0\0\x01a".to_vec()), (1, vec![])]);
    assert_eq!(ask(3, b"x")[0].0, refused(3));
    assert_eq!(ask(5, &[])[0].0, refused(1), "STARTTLS");
    assert_eq!(ask(8, &[])[0].0, refused(1), "STRUCTURED_REPLY");
    assert_eq!(ask(6, b"\0\0\0\x01b\0\0")[0].0, refused(6));
    for malformed in [&b""[..], b"\0\0\0\x02a\0\0", b"\0\0\0\x01a\0\x01", b"\0\0\0\x01a\0\0x", b"\xff\xff\xff\xff"] {
        assert_eq!(ask(7, malformed)[0].0, refused(3), "{malformed:?}");
    }
    assert_eq!(ask(7, &[0; 20_000])[0].0, refused(9));
    let about = ask(6, b"\0\0\0\x01a\0\x02\0\x01\0\x03");
    assert_eq!(about.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [3, 3, 3, 1]);
    assert_eq!(about[0].1, [&[0, 0][..], &SIZE.to_be_bytes(), &EXPORT_FLAGS.to_be_bytes()].concat());
    assert_eq!(about[1].1, b"\0\x01a");
    assert_eq!(about[2].1[2..], [1_u32, 4096, 32 << 20].map(u32::to_be_bytes).concat());
    assert_eq!(ask(2, &[]), [(1, vec![])], "ABORT");
    assert!(Client(stream).is_closed());
}

#[test]
fn the_oldstyle_export_request_works_with_and_without_zeroes() {
    let served = Served::recording();
    for (flags, zeros) in [(0_u32, 124), (1, 124), (3, 0)] {
        let mut stream = raw(served.server.socket());
        stream.write_all(&flags.to_be_bytes()).unwrap();
        stream.write_all(&option(1, b"a")).unwrap();
        let mut answer = vec![0; 10 + zeros];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..8], SIZE.to_be_bytes());
        let mut client = Client(stream);
        assert_eq!(client.ask(0, 3, 0, 0, &[]), 0);
    }
    let mut stream = raw(served.server.socket());
    stream.write_all(&[&3_u32.to_be_bytes()[..], &option(1, b"none")].concat()).unwrap();
    assert!(Client(stream).is_closed());
}

#[test]
fn streams_that_are_no_requests_end_their_connection_alone() {
    let served = Served::recording();
    let mut witness = served.client();
    for bytes in [
        vec![0; 64],
        request(0, 1, 1, 0, (32 << 20) + 1),
        request(0, 1, 1, 0, u32::MAX),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
    ] {
        let mut client = served.client();
        client.send(&bytes);
        assert!(client.is_closed(), "{:?}", &bytes[..28]);
        assert_eq!(witness.ask(0, 3, 0, 0, &[]), 0);
    }
    for bytes in [
        &4_u32.to_be_bytes()[..],
        &[3, 0, 0, 0],
        b"\0\0\0\x03IHAVEOPX\0\0\0\x07\0\0\0\0",
        b"\0\0\0\x03IHAVEOPT\0\0\0\x07\x7f\0\0\0",
    ] {
        let mut stream = raw(served.server.socket());
        stream.write_all(bytes).unwrap();
        assert!(Client(stream).is_closed(), "{bytes:?}");
        assert_eq!(witness.ask(0, 3, 0, 0, &[]), 0);
    }
}

#[test]
fn the_server_ends_with_clients_that_neither_read_nor_write() {
    let served = Served::recording();
    let mut stalled = served.client();
    let mut silent = UnixStream::connect(served.server.socket()).unwrap();
    for cookie in 0..64 {
        // Nobody reads the answers: the server's thread blocks in its write.
        stalled.send(&request(0, 0, cookie, 0, 1 << 20));
    }
    let socket = served.server.socket().to_owned();
    drop(served.server);
    assert!(!socket.exists() && UnixStream::connect(&socket).is_err());
    // The greeting, then the end.
    silent.read_to_end(&mut Vec::new()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_stream_of_bytes_harms_the_server_or_the_sequence(
        handshaken in any::<bool>(),
        pieces in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..200),
                (0..4_u16, 0..9_u16, any::<u64>(), 0..SIZE * 2, 0..70_000_u32).prop_map(
                    |(flags, command, cookie, offset, length)| request(flags, command, cookie, offset, length)
                ),
                (0..10_u32, proptest::collection::vec(any::<u8>(), 0..40)).prop_map(|(number, data)| option(number, &data)),
            ],
            1..12,
        ),
    ) {
        let served = Served::recording();
        let mut witness = served.client();
        let mut stream =
            if handshaken { served.client().0 } else { UnixStream::connect(served.server.socket()).unwrap() };
        for piece in pieces {
            if stream.write_all(&piece).is_err() {
                break;
            }
        }
        drop(stream);
        prop_assert_eq!(witness.ask(FUA, 1, 0, 4, b"fine"), 0);
        prop_assert_eq!(witness.read(0, 4), b"fine");
        drop(witness);
        drop(served.server);
        prop_assert!(served.recorder.finish().is_ok(), "every submitted request was completed");
    }
}

//! Messages between host and guest: frames of one byte for the kind, four bytes for the length (little-endian), and the
//! content: JSON, except for the bytes of a command's streams.

use crate::error::{Context, Error, Result};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

/// Name of the port in the guest.
pub(super) const PORT: &str = "pgstrata.agent";

/// Largest frame.
const MOST: usize = 1 << 20;

/// Maximum standard input in flight to a command that has not read it.
pub(super) const WINDOW: usize = 256 << 10;

/// Interval of the agent's keep-alive.
pub(super) const ALIVE_EVERY: Duration = Duration::from_secs(2);

/// A command to run in the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: String,
    /// Time limit, milliseconds; the command is then killed in the guest.
    pub limit_ms: Option<u64>,
}

/// Outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandEnd {
    Exited(i32),
    Killed {
        signal: i32,
    },
    /// Killed at its time limit.
    TimedOut,
}

/// The agent's greeting when it is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Kernel release.
    pub kernel: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Frame {
    /// Host to guest.
    Start(Order),
    Input(Vec<u8>),
    InputEnd,
    Signal(i32),
    PowerOff,
    /// Guest to host.
    Hello(Hello),
    Output(Vec<u8>),
    Errors(Vec<u8>),
    /// Number of input bytes that the command has read.
    Took(u32),
    Ended(CommandEnd),
    NotStarted(String),
    Alive,
}

impl Frame {
    /// Writes the frame in one call.
    pub(super) fn write(&self, to: &mut impl Write) -> Result<()> {
        let (kind, content) = self.packed()?;
        let mut bytes = Vec::with_capacity(content.len() + 5);
        bytes.push(kind);
        bytes.extend_from_slice(&u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(&content);
        to.write_all(&bytes).or_host(|| "write to the guest's port".to_owned())
    }

    fn packed(&self) -> Result<(u8, Vec<u8>)> {
        Ok(match self {
            Frame::Input(bytes) => (b'i', bytes.clone()),
            Frame::Output(bytes) => (b'O', bytes.clone()),
            Frame::Errors(bytes) => (b'E', bytes.clone()),
            frame => {
                let json = serde_json::to_vec(frame);
                (b'J', json.map_err(|e| Error::bug(e.to_string()).while_doing("pack a frame"))?)
            }
        })
    }

    /// Reads the next frame; `None` at the end of the stream.
    ///
    /// # Errors
    /// If the stream ends within a frame, or has invalid content.
    pub(super) fn read(from: &mut impl Read) -> Result<Option<Frame>> {
        let mut head = [0; 5];
        match from.read(&mut head[..1]) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => return Frame::read(from),
            Err(e) => return Err(Error::host(e.to_string()).while_doing("read from the guest's port")),
        }
        let reading = || "read from the guest's port".to_owned();
        from.read_exact(&mut head[1..]).or_host(reading)?;
        let length = usize::try_from(u32::from_le_bytes([head[1], head[2], head[3], head[4]])).unwrap_or(usize::MAX);
        if length > MOST {
            return Err(Error::host(format!("a frame of {length} bytes")).while_doing(reading()));
        }
        let mut content = vec![0; length];
        from.read_exact(&mut content).or_host(reading)?;
        Frame::unpacked(head[0], content).map(Some).map_err(|e| e.while_doing(reading()))
    }

    fn unpacked(kind: u8, content: Vec<u8>) -> Result<Frame> {
        match kind {
            b'i' => Ok(Frame::Input(content)),
            b'O' => Ok(Frame::Output(content)),
            b'E' => Ok(Frame::Errors(content)),
            b'J' => serde_json::from_slice(&content).map_err(|e| Error::host(e.to_string())),
            other => Err(Error::host(format!("a frame of the unknown kind {other}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn every_frame_comes_back_as_it_went() {
        let order =
            Order { argv: vec!["a b".into()], env: vec![("X".into(), "1".into())], cwd: "/".into(), limit_ms: Some(5) };
        let frames = [
            Frame::Start(order),
            Frame::Input(vec![0, 255]),
            Frame::InputEnd,
            Frame::Signal(-2),
            Frame::PowerOff,
            Frame::Hello(Hello { kernel: "6".into() }),
            Frame::Output(vec![1; 70_000]),
            Frame::Errors(Vec::new()),
            Frame::Took(7),
            Frame::Ended(CommandEnd::Killed { signal: 9 }),
            Frame::Ended(CommandEnd::TimedOut),
            Frame::NotStarted("ä".into()),
            Frame::Alive,
        ];
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut bytes).unwrap());
        let mut from = bytes.as_slice();
        for frame in frames {
            assert_eq!(Frame::read(&mut from).unwrap(), Some(frame));
        }
        assert_eq!(Frame::read(&mut from).unwrap(), None);
    }

    #[test]
    fn a_truncated_or_oversized_frame_is_an_error() {
        assert!(Frame::read(&mut [b'O', 5, 0, 0, 0, 1].as_slice()).is_err());
        assert!(Frame::read(&mut [b'O', 0, 0, 0, 255].as_slice()).is_err());
        assert!(Frame::read(&mut [b'?', 0, 0, 0, 0].as_slice()).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            drop(Frame::read(&mut bytes.as_slice()));
        }
    }
}

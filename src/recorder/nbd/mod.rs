//! Disks as exports of an NBD server on a Unix socket: the kernel's own client, QEMU and the tools of libnbd attach to it.
//!
//! FUA, flush, trim and write-zeroes reach the recorder as they were sent. Whatever a client sends, it costs that client's
//! connection and no other. The protocol: doc/proto.md of the NBD project (fixed newstyle, simple replies).

mod handshake;
mod transmission;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tool_tests;

use super::disk::Recorder;
use crate::error::{Context, Error, Result};
use crate::host::linux::as_io_flusher;
use crate::host::threads::{self, locked};
use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

pub use handshake::open;

/// Connections at once; a further one is closed at once.
const MOST_CONNECTIONS: usize = 64;

/// What each export tells of itself: it has flags, and takes flush, FUA, trim and write-zeroes.
const EXPORT_FLAGS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6;

/// Serves disks until it is dropped.
#[derive(Debug)]
pub struct NbdServer {
    socket: PathBuf,
    listener: UnixListener,
    shared: Arc<NbdShared>,
    accepting: Option<JoinHandle<()>>,
}

/// What all connections see.
#[derive(Debug, Default)]
struct NbdShared {
    exports: Mutex<BTreeMap<String, Export>>,
    connections: Mutex<Vec<NbdConnection>>,
    closing: AtomicBool,
}

/// The disk behind a name.
#[derive(Debug, Clone)]
struct Export {
    recorder: Arc<Recorder>,
    disk: u16,
}

#[derive(Debug)]
struct NbdConnection {
    stream: UnixStream,
    thread: JoinHandle<()>,
}

impl NbdServer {
    /// Listens on a socket that is not there yet. Who may enter its folder may read and write every disk.
    ///
    /// # Errors
    /// When the socket cannot be made: its path is taken or too long.
    pub fn listen(socket: &Path) -> Result<NbdServer> {
        let doing = || format!("listen for NBD clients at {}", socket.display());
        let listener = UnixListener::bind(socket).or_host(doing)?;
        let shared = Arc::new(NbdShared::default());
        let accepting = {
            let (listener, shared) = (listener.try_clone().or_host(doing)?, Arc::clone(&shared));
            // Connections' threads inherit from this one what is set here.
            as_io_flusher(|| threads::begin_apart("nbd", move || accept(&listener, &shared)))
                .map_err(|e| e.while_doing(doing()))?
        };
        Ok(NbdServer { socket: socket.to_owned(), listener, shared, accepting: Some(accepting) })
    }

    /// The socket's path.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Serves a disk under a name.
    ///
    /// # Errors
    /// When there is no such disk.
    pub fn add(&self, name: &str, recorder: &Arc<Recorder>, disk: u16) -> Result<()> {
        let export = Export { recorder: Arc::clone(recorder), disk };
        export.size().ok_or_else(|| Error::bug(format!("no disk {disk} for the export {name}")))?;
        locked(&self.shared.exports).insert(name.to_owned(), export);
        Ok(())
    }

    /// Puts another disk of the same size behind a name: whoever is connected reads and writes that one from now on. Nobody may
    /// have anything of the old one in a cache.
    pub fn swap(&self, name: &str, recorder: &Arc<Recorder>, disk: u16) {
        if let Some(export) = locked(&self.shared.exports).get_mut(name) {
            *export = Export { recorder: Arc::clone(recorder), disk };
        }
    }

    /// Takes an export away; its clients get errors.
    pub fn remove(&self, name: &str) {
        locked(&self.shared.exports).remove(name);
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both).ok();
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
        let connections: Vec<NbdConnection> = locked(&self.shared.connections).drain(..).collect();
        for NbdConnection { stream, thread } in connections {
            drop(stream.shutdown(Shutdown::Both));
            drop(thread.join());
        }
        drop(crate::host::files::remove(&self.socket));
    }
}

impl Export {
    fn size(&self) -> Option<u64> {
        self.recorder.size(self.disk)
    }
}

impl NbdShared {
    fn export(&self, name: &str) -> Option<Export> {
        locked(&self.exports).get(name).cloned()
    }

    /// Names in order.
    fn names(&self) -> Vec<String> {
        locked(&self.exports).keys().cloned().collect()
    }
}

fn accept(listener: &UnixListener, shared: &Arc<NbdShared>) {
    loop {
        let accepted = listener.accept();
        if shared.closing.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            // A connection that cannot be served is closed by being dropped.
            Ok((stream, _)) => drop(begin(stream, shared)),
            Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted) => {}
            // Without descriptors for a further one the server lives on with those that it has.
            Err(_) => crate::host::time::sleep(std::time::Duration::from_millis(20)),
        }
    }
}

/// Serves one connection in a thread of its own.
fn begin(stream: UnixStream, shared: &Arc<NbdShared>) -> io::Result<()> {
    let mut connections = locked(&shared.connections);
    connections.retain(|connection| !connection.thread.is_finished());
    if connections.len() >= MOST_CONNECTIONS {
        return Err(io::ErrorKind::QuotaExceeded.into());
    }
    let (own, of) = (stream.try_clone()?, Arc::clone(shared));
    let thread = threads::begin_apart("nbd client", move || {
        // How a connection ends concerns its client alone.
        drop(serve(&own, &of));
        drop(own.shutdown(Shutdown::Both));
    });
    let thread = thread.map_err(io::Error::other)?;
    connections.push(NbdConnection { stream, thread });
    Ok(())
}

/// Serves one client to its end.
fn serve(stream: &UnixStream, shared: &NbdShared) -> io::Result<()> {
    let name = handshake::negotiate(stream, shared)?;
    name.map_or(Ok(()), |name| transmission::transmit(stream, shared, &name))
}

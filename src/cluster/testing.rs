//! A real server for the tests of this room and of workloads.

use super::install::{self, Installation};
use super::server::{self, Server};
use super::spec::ServerSpec;
use crate::host::signals::Interrupt;
use crate::host::users::{self, User};
use crate::host::{Host, files};
use std::collections::BTreeMap;
use std::path::Path;

/// The newest installation; reports the test as skipped if there is none.
pub fn some_installation() -> Option<Installation> {
    let found = install::find(&Host::this(), "auto").ok();
    if found.is_none() {
        println!("skipped: no PostgreSQL on this machine");
    }
    found
}

pub fn server_user() -> User {
    users::server_user(&Host::this()).unwrap()
}

/// A server below `folder`, which is handed to the server's user.
pub fn spec_in(install: Installation, folder: &Path) -> ServerSpec {
    let user = server_user();
    files::set_mode(folder, 0o755).unwrap();
    files::give_to(folder, &user).unwrap();
    ServerSpec {
        install,
        user,
        data: folder.join("data"),
        wal: None,
        socket_folder: folder.join("s"),
        log: folder.join("server.log"),
        settings: BTreeMap::from([
            ("fsync".to_owned(), "off".to_owned()),
            ("shared_buffers".to_owned(), "16MB".to_owned()),
        ]),
        initdb: Vec::new(),
    }
}

/// A running server with an empty cluster below `folder`.
pub fn server_in(host: &Host, folder: &Path) -> Option<Server> {
    Some(server_of(host, some_installation()?, folder))
}

/// A running server of this installation with an empty cluster below `folder`.
pub fn server_of(host: &Host, install: Installation, folder: &Path) -> Server {
    let spec = spec_in(install, folder);
    server::init(host, &spec).unwrap();
    Server::start(host, spec, &Interrupt::never()).unwrap()
}

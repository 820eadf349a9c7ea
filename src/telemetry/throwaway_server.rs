//! For tests: a PostgreSQL in a folder of its own that always ends with the test.
//!
//! Uses every installation in Debian's location, and those in the folders (`...:...`) of the environment variable
//! `PGSTRATA_TEST_POSTGRES`.

use crate::cluster::client::ServerAddress;
use crate::host::Host;
use crate::host::command::Command;
use crate::host::files::give_to;
use crate::host::users::{User, server_user};
use std::path::{Path, PathBuf};

pub(super) struct ThrowawayServer {
    host: Host,
    bin: PathBuf,
    user: User,
    folder: tempfile::TempDir,
}

/// The program folders of all installations; prints a message if there are none.
pub(super) fn installations() -> Vec<PathBuf> {
    let named = std::env::var_os("PGSTRATA_TEST_POSTGRES").unwrap_or_default();
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found: Vec<PathBuf> = std::env::split_paths(&named)
        .chain(debian.map(|entry| entry.path().join("bin")))
        .filter(|bin| bin.join("initdb").is_file())
        .collect();
    if found.is_empty() {
        println!("skipped: no PostgreSQL in /usr/lib/postgresql; apt-get install postgresql");
    }
    found
}

impl ThrowawayServer {
    /// Starts a server with these additional settings (`-c name=value`).
    pub(super) fn start(bin: &Path, settings: &str) -> ThrowawayServer {
        let host = Host::this();
        let user = server_user(&host).unwrap();
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        give_to(folder.path(), &user).unwrap();
        let server = ThrowawayServer { host, bin: bin.to_path_buf(), user, folder };
        let data = server.folder.path().join("data");
        server.run(Command::new(bin.join("initdb")).args(["-A", "trust", "-U", "postgres", "-N", "-D"]).arg(&data));
        let options = format!("-k {} -c listen_addresses= {settings}", server.folder.path().display());
        let log = server.folder.path().join("log");
        let start = Command::new(bin.join("pg_ctl")).args(["start", "-w", "-s", "-o", &options, "-D"]).arg(&data);
        server.run(start.arg("-l").arg(log));
        server
    }

    /// Runs SQL with psql: rows as lines, columns with `|` between.
    pub(super) fn psql(&self, sql: &str) -> String {
        let psql = Command::new(self.bin.join("psql")).args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h"]);
        self.run(psql.arg(self.folder.path()).args(["-U", "postgres", "-d", "postgres", "-c", sql]))
    }

    pub(super) fn pgbench(&self, args: &[&str]) -> String {
        let pgbench = Command::new(self.bin.join("pgbench")).arg("-h").arg(self.folder.path());
        self.run(pgbench.args(["-U", "postgres"]).args(args).arg("postgres"))
    }

    pub(super) fn address(&self) -> ServerAddress {
        ServerAddress {
            socket: self.folder.path().join(".s.PGSQL.5432"),
            data: self.folder.path().join("data"),
            database: "postgres".to_owned(),
            user: "postgres".to_owned(),
        }
    }

    fn run(&self, command: Command) -> String {
        self.host.run(&command.user(&self.user)).unwrap().stdout
    }
}

impl Drop for ThrowawayServer {
    fn drop(&mut self) {
        let data = self.folder.path().join("data");
        let stop = Command::new(self.bin.join("pg_ctl")).args(["stop", "-s", "-w", "-m", "immediate", "-D"]).arg(data);
        drop(self.host.run(&stop.user(&self.user)));
    }
}

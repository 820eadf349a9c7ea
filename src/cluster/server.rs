//! One server on one data folder.
//!
//! `postgres` is our own child, not `pg_ctl`'s: we see it die, and its log is a file of the run. Callers enter it into
//! the ledger before starting it; [`super::undo`] finds it again by its working folder.

use super::client::{ANSWER_LIMIT, Client, ServerAddress};
use super::spec::ServerSpec;
use super::{conf, undo};
use crate::error::{Context, Error, Kind, Result};
use crate::host::command::{Command, last_lines};
use crate::host::signals::Interrupt;
use crate::host::time::{now, sleep};
use crate::host::{Host, files, paths, threads};
use crate::record::durability;
use crate::record::facts::{FoundSetting, ServerFacts};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// Database for workloads and statistics.
pub const DATABASE: &str = "postgres";

/// Role of all connections: the superuser created by initdb.
pub const ROLE: &str = "postgres";

/// Port in the socket's name; no TCP port is opened.
pub const PORT: u16 = 5432;

/// A start may have to recover a whole `max_wal_size` on a slow stack; beyond this it hangs.
const START_LIMIT: Duration = Duration::from_secs(600);

/// A stop writes all of shared_buffers in a checkpoint, on a slow stack; beyond this it hangs.
const STOP_LIMIT: Duration = Duration::from_secs(600);

/// An immediate shutdown writes nothing; the postmaster itself kills backends after 5 s.
const QUIT_LIMIT: Duration = Duration::from_secs(20);

/// How often to check whether a server is ready or gone.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// First version whose initdb enables data checksums by default, and the argument that disables them.
pub(crate) const CHECKSUMS_BY_DEFAULT: u32 = 18;
const NO_CHECKSUMS: &str = "--no-data-checksums";

/// Error of a server that is not ready yet: cannot_connect_now (PostgreSQL's errcodes.txt).
const STARTING_UP: &str = "SQLSTATE 57P03";

/// Lines of the log shown for a failed start.
const LOG_LINES: usize = 15;

/// A checkpoint on a slow stack takes a while; beyond this it hangs.
pub(crate) const CHECKPOINT_LIMIT: Duration = Duration::from_secs(3600);

/// Settings that decide what a commit means: [`ServerFacts::key_settings`].
const KEY_SETTINGS: [&str; 11] = [
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "wal_level",
    "shared_buffers",
    "wal_block_size",
    "block_size",
    "segment_size",
    "wal_segment_size",
    "data_checksums",
];

#[derive(Debug)]
pub struct Server {
    pub spec: ServerSpec,
    /// The postmaster; each restart creates a new one.
    postmaster: Mutex<Postmaster>,
    /// Checked by all clients.
    interrupt: Interrupt,
}

#[derive(Debug)]
struct Postmaster {
    /// `None` until it is started.
    child: Option<Child>,
    /// Length of the log before this start, bytes.
    log_start: usize,
    ended: bool,
}

/// Makes an empty cluster with initdb in `spec.data`: UTF-8, C locale, trust, superuser `postgres`.
///
/// # Errors
/// With initdb's own message.
pub fn init(host: &Host, spec: &ServerSpec) -> Result<()> {
    let initdb = spec.install.bin.join("initdb");
    let command = initdb_command(&initdb, &spec.data, spec.wal.as_deref(), &spec.initdb, spec.install.major);
    host.run(&command.args(["-U", ROLE, "-A", "trust"]).user(&spec.user)).map(drop)
}

/// Makes the cluster by this initdb, with its defaults for roles and authentication.
pub(crate) fn initdb_command(initdb: &Path, data: &Path, wal: Option<&Path>, args: &[String], major: u32) -> Command {
    // Older versions default to off and have no such option.
    let knows_it = major >= CHECKSUMS_BY_DEFAULT;
    Command::new(initdb)
        .arg("-D")
        .arg(data)
        .args(["-E", "UTF8", "--locale=C"])
        .args(wal.into_iter().flat_map(|wal| [Path::new("--waldir"), wal]))
        .args(args.iter().filter(|argument| knows_it || *argument != NO_CHECKSUMS))
}

/// The statement that creates a tablespace in an existing, empty folder of the server's user.
///
/// # Errors
/// When the path is not UTF-8.
pub(crate) fn create_tablespace(name: &str, folder: &Path) -> Result<String> {
    let path = conf::utf8(folder)?.replace('\'', "''");
    Ok(format!("CREATE TABLESPACE \"{}\" LOCATION '{path}'", name.replace('"', "\"\"")))
}

impl ServerSpec {
    /// The socket file: `<private folder>/.s.PGSQL.5432`.
    pub fn socket(&self) -> PathBuf {
        self.socket_folder.join(format!(".s.PGSQL.{PORT}"))
    }
}

impl Server {
    /// Writes the settings, starts the server and waits until it answers.
    ///
    /// # Errors
    /// With the last lines of its log if it does not start; interrupted.
    pub fn start(host: &Host, spec: ServerSpec, interrupt: &Interrupt) -> Result<Server> {
        conf::check_socket_path(&spec.socket())?;
        conf::write(&spec)?;
        if !paths::exists(&spec.socket_folder) {
            files::make_folder(&spec.socket_folder, 0o700)?;
            files::give_to(&spec.socket_folder, &spec.user)?;
        }
        let server = Server { postmaster: Mutex::new(launched(host, &spec)?), spec, interrupt: interrupt.clone() };
        server.wait_until_ready(interrupt)?;
        server.refuse_listener()?;
        server.note(host)?;
        Ok(server)
    }

    /// A server started before the machine below it crashed, on whatever the crash left: [`Server::restart`] starts it.
    pub(crate) fn crashed(spec: ServerSpec) -> Server {
        let postmaster = Mutex::new(Postmaster { child: None, log_start: 0, ended: true });
        Server { spec, postmaster, interrupt: Interrupt::never() }
    }

    /// Kills all of its processes at once, as the kernel does when out of memory, and waits until they are gone. Their
    /// writes stay in the page cache.
    ///
    /// # Errors
    /// When a process does not end: it hangs in the kernel.
    pub(crate) fn kill_all(&self, host: &Host) -> Result<()> {
        undo::kill_all(host, &self.spec.data)?;
        self.wait_until_gone(QUIT_LIMIT).map(drop)
    }

    /// Restarts it after it has ended, with its current settings, and waits until it answers.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub(crate) fn restart(&self, host: &Host, interrupt: &Interrupt) -> Result<()> {
        *threads::locked(&self.postmaster) = launched(host, &self.spec)?;
        self.wait_until_ready(interrupt)?;
        self.note(host)
    }

    fn note(&self, host: &Host) -> Result<()> {
        self.pid().map_or(Ok(()), |id| undo::note(host, id, &self.spec.socket_folder, &self.spec.user))
    }

    /// A new connection to `database`.
    ///
    /// # Errors
    /// With the server's own message.
    pub(crate) fn connect(&self, database: &str) -> Result<Client> {
        Ok(Client::connect(&self.address(database), ANSWER_LIMIT)?.heeding(&self.interrupt))
    }

    /// A new connection to [`DATABASE`] with this limit for each piece of an answer.
    ///
    /// # Errors
    /// As [`Server::connect`].
    pub(crate) fn connect_with_limit(&self, limit: Duration) -> Result<Client> {
        let mut client = self.connect(DATABASE)?;
        client.set_limit(limit)?;
        Ok(client)
    }

    /// Size of the workload's database.
    ///
    /// # Errors
    /// With the server's own message.
    pub(crate) fn database_bytes(&self) -> Result<u64> {
        self.connect(DATABASE)?.number("SELECT pg_database_size(current_database())")
    }

    /// The address for a connection to `database`.
    pub(crate) fn address(&self, database: &str) -> ServerAddress {
        let [database, user] = [database, ROLE].map(str::to_owned);
        ServerAddress { socket: self.spec.socket(), data: self.spec.data.clone(), database, user }
    }

    /// Arguments that make a libpq client connect to this server, which is running, whatever the caller's environment.
    ///
    /// # Errors
    /// When it does not answer, or another server does.
    pub(crate) fn client_args(&self) -> Result<Vec<String>> {
        self.connect(DATABASE)?;
        let folder = self.spec.socket_folder.display().to_string();
        Ok(["-h", &folder, "-p", &PORT.to_string(), "-U", ROLE].map(str::to_owned).to_vec())
    }

    /// Process id of the postmaster; `None` if it was not started here.
    pub(crate) fn pid(&self) -> Option<u32> {
        threads::locked(&self.postmaster).child.as_ref().map(Child::id)
    }

    /// Offset in its log file where this start begins.
    pub(super) fn log_start(&self) -> u64 {
        threads::locked(&self.postmaster).log_start as u64
    }

    /// The last lines of its log since it was started, indented; empty if it logged nothing.
    pub(crate) fn log_tail(&self) -> String {
        last_lines(&self.log_text(), LOG_LINES)
    }

    /// Its settings in force and its version.
    ///
    /// # Errors
    /// With the server's own message.
    pub fn facts(&self) -> Result<ServerFacts> {
        let mut client = self.connect(DATABASE)?;
        // 'client' and 'session' belong to our own connection, not to the server.
        let settings = client.query(
            "select name, current_setting(name) from pg_settings \
             where source not in ('default', 'client', 'session') order by name",
        )?;
        let settings = settings.into_iter().filter_map(|row| pair(row).ok()).collect();
        let names = KEY_SETTINGS.map(|name| format!("('{name}')")).join(", ");
        let key = client.query(&format!("select name, current_setting(name) from (values {names}) as key(name)"))?;
        let key_settings = key.into_iter().map(pair).collect::<Result<_>>()?;
        Ok(ServerFacts {
            version: client.value("select current_setting('server_version')")?,
            version_num: client.number("select current_setting('server_version_num')")?,
            bin: self.spec.install.bin.display().to_string(),
            settings,
            configure: client.value("select setting from pg_config where name = 'CONFIGURE'").ok(),
            key_settings,
            shared_buffers_bytes: client.number("select pg_size_bytes(current_setting('shared_buffers'))")?,
            ..ServerFacts::default()
        })
    }

    /// Settings that decide what a commit means and differ from `facts`: in a new session of the clients' role, or
    /// attached to functions.
    ///
    /// # Errors
    /// With the server's own message.
    pub fn settings_elsewhere(&self, facts: &ServerFacts) -> Result<Vec<FoundSetting>> {
        let names: Vec<&str> = durability::settings().collect();
        let listed = names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        let rows = self.connect(DATABASE)?.query(&format!(
            "select name, current_setting(name), 'a new session' from pg_settings where name in ({listed}) union all \
             select split_part(setting, '=', 1), split_part(setting, '=', 2), 'function ' || f.oid::regprocedure \
             from pg_proc f, unnest(f.proconfig) setting where split_part(setting, '=', 1) in ({listed})"
        ))?;
        let found = rows.into_iter().filter_map(|row| {
            let [name, value, place] = <[Option<String>; 3]>::try_from(row).ok()?;
            Some(FoundSetting { name: name?, value, place: place? })
        });
        Ok(found.filter(|found| facts.key_settings.get(&found.name) != found.value.as_ref()).collect())
    }

    /// Its unlogged tables, which are empty after a crash.
    pub(crate) fn unlogged_tables(&self) -> Result<Vec<String>> {
        let sql = "select oid::regclass from pg_class where relpersistence = 'u' and relkind = 'r' order by 1";
        let rows = self.connect(DATABASE)?.query(sql)?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    /// Stops it (fast shutdown, with a checkpoint) and waits; escalates to immediate after a limit.
    ///
    /// # Errors
    /// When it cannot be stopped, or its last checkpoint failed, with the last lines of its log.
    pub fn stop(self, host: &Host) -> Result<()> {
        signal(threads::locked(&self.postmaster).child.as_ref(), Signal::INT);
        let with_log = |what| Err(Error::tool(format!("{what}; its log ends with:\n{}", self.log_tail())));
        match self.wait_until_gone(STOP_LIMIT)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => with_log(format!("the server exited with {status} when it was stopped")),
            None => {
                self.end_at_once(host)?;
                with_log(format!("the server did not stop within {} s and was killed", STOP_LIMIT.as_secs()))
            }
        }
    }

    /// Must come first: nobody else may reach a server that trusts its clients.
    fn refuse_listener(&self) -> Result<()> {
        let listens = self.connect(DATABASE)?.value("select current_setting('listen_addresses')")?;
        if listens.is_empty() {
            return Ok(());
        }
        Err(Error::host(format!("the server listens on `{listens}` despite its configuration; it was stopped")))
    }

    fn end_at_once(&self, host: &Host) -> Result<()> {
        signal(threads::locked(&self.postmaster).child.as_ref(), Signal::QUIT);
        if self.wait_until_gone(QUIT_LIMIT)?.is_none() {
            signal(threads::locked(&self.postmaster).child.as_ref(), Signal::KILL);
            self.wait_until_gone(QUIT_LIMIT)?;
        }
        undo::undo_server(host, &self.spec.data, &self.spec.socket_folder)
    }

    fn wait_until_ready(&self, interrupt: &Interrupt) -> Result<()> {
        let begun = now();
        loop {
            if self.has_ended()?.is_some() {
                return Err(self.start_error("the server did not start"));
            }
            match self.connect(DATABASE) {
                Ok(_) => return Ok(()),
                // A server error other than "still starting up" (cannot_connect_now) is final.
                Err(error) if error.kind() == Kind::Tool && !error.to_string().contains(STARTING_UP) => {
                    return Err(error);
                }
                Err(error) if begun.elapsed() > START_LIMIT => {
                    let after = format!("the server did not respond within {} s ({error})", START_LIMIT.as_secs());
                    return Err(self.start_error(&after));
                }
                Err(_) => sleep(POLL_INTERVAL),
            }
            interrupt.check()?;
        }
    }

    fn start_error(&self, what: &str) -> Error {
        let log = self.log_text();
        let error = Error::tool(format!("{what}; its log ends with:\n{}", last_lines(&log, LOG_LINES)));
        let hint = |setting| format!("fix or remove the setting `{setting}` in the plan");
        conf::blamed_setting(&log).map(hint).into_iter().fold(error, Error::hint)
    }

    /// Its log since it was last started.
    pub(crate) fn log_text(&self) -> String {
        // An unreadable log is shown as empty: the error that brought us here matters more.
        let log = files::read(&self.spec.log).unwrap_or_default();
        String::from_utf8_lossy(log.get(threads::locked(&self.postmaster).log_start..).unwrap_or_default()).into_owned()
    }

    fn has_ended(&self) -> Result<Option<ExitStatus>> {
        let mut postmaster = threads::locked(&self.postmaster);
        let status = postmaster.child.as_mut().map_or(Ok(None), Child::try_wait);
        let status = status.or_host(|| "check whether the server is still running".to_owned())?;
        postmaster.ended |= status.is_some();
        Ok(status)
    }

    fn wait_until_gone(&self, limit: Duration) -> Result<Option<ExitStatus>> {
        let begun = now();
        loop {
            let status = self.has_ended()?;
            if status.is_some() || begun.elapsed() > limit {
                return Ok(status);
            }
            sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Server {
    /// A safety net: callers that can report an error use [`Server::stop`].
    fn drop(&mut self) {
        let ended = threads::locked(&self.postmaster).ended;
        if !ended {
            // Errors cannot be reported from here; the ledger still lists the server.
            drop(self.end_at_once(&Host::this()));
        }
    }
}

/// Starts `postgres` on a data folder with its settings written; appends to its log.
fn launched(host: &Host, spec: &ServerSpec) -> Result<Postmaster> {
    let log = files::append_to(&spec.log)?;
    let log_start = usize::try_from(paths::look_at_open(&log, &spec.log)?.bytes).unwrap_or(usize::MAX);
    let stdout = log.try_clone().or_host(|| format!("open {}", spec.log.display()))?;
    let command = Command::new(spec.install.bin.join("postgres"))
        .arg("-D")
        .arg(&spec.data)
        .args(["-p", &PORT.to_string()])
        .args(conf::command_line(spec)?)
        .user(&spec.user);
    let child = host.spawn(&command, Stdio::from(stdout), Stdio::from(log))?;
    Ok(Postmaster { child: Some(child), log_start, ended: false })
}

/// Signals a child that has not been waited for, so its id is still its own.
fn signal(child: Option<&Child>, signal: Signal) {
    if let Some(pid) = child.and_then(|child| i32::try_from(child.id()).ok()).and_then(rustix::process::Pid::from_raw) {
        // It may have ended by itself; the wait that follows will notice.
        rustix::process::kill_process(pid, signal).ok();
    }
}

fn pair(row: Vec<Option<String>>) -> Result<(String, String)> {
    let mut cells = row.into_iter();
    let pair = cells.next().flatten().zip(cells.next().flatten());
    pair.ok_or_else(|| Error::tool("pg_settings: expected a name and a value, found NULL"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::{server_in, some_installation, spec_in};
    use std::collections::BTreeMap;

    #[test]
    fn a_server_starts_answers_tells_its_settings_and_stops() {
        let host = Host::this();
        let folder = tempfile::tempdir().unwrap();
        let Some(server) = server_in(&host, folder.path()) else { return };
        let facts = server.facts().unwrap();
        assert_eq!(facts.settings["fsync"], "off");
        assert_eq!(facts.settings["listen_addresses"], "");
        assert_eq!(facts.shared_buffers_bytes, 16 << 20);
        assert_eq!(facts.version_num / 10_000, server.spec.install.major);
        assert_eq!(facts.key_settings.len(), KEY_SETTINGS.len());
        assert_eq!(facts.key_settings["synchronous_commit"], "on");
        let mut client = server.connect(DATABASE).unwrap();
        let rows = client.query("select 1, null; select 'a''b', 2 union all select null, 3 order by 2").unwrap();
        assert_eq!(rows, [[Some("a'b".to_owned()), Some("2".to_owned())], [None, Some("3".to_owned())]]);
        let error = client.query("select 1/0").unwrap_err().to_string();
        assert!(error.contains("ERROR: division by zero (SQLSTATE 22012)"), "{error}");
        let error = client.query("create temp table \"ä\" (n int);\n\nselect m from \"ä\";\n").unwrap_err().to_string();
        assert!(error.contains("column \"m\" does not exist (SQLSTATE 42703) in line 3"), "{error}");
        assert_eq!(client.query("select 1").unwrap().len(), 1);
        assert_eq!(server.settings_elsewhere(&facts).unwrap(), []);
        let function = "create function lazy() returns int language sql set synchronous_commit = off as 'select 1'";
        client.query(function).unwrap();
        client.query(&format!("alter role {ROLE} set synchronous_commit = 'local'")).unwrap();
        let found = server.settings_elsewhere(&facts).unwrap();
        let reported: Vec<_> = found.iter().map(|it| (it.value.as_deref().unwrap(), it.place.as_str())).collect();
        assert_eq!(reported, [("local", "a new session"), ("off", "function lazy()")]);
        let (spec, pid) = (server.spec.clone(), server.pid().unwrap());
        server.stop(&host).unwrap();
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        let again = Server::start(&host, spec, &Interrupt::never()).unwrap();
        assert!(again.log_tail().contains("ready to accept connections"), "{}", again.log_tail());
        again.stop(&host).unwrap();
    }

    #[test]
    fn a_server_recovers_after_all_its_processes_are_killed() {
        let host = Host::this();
        let folder = tempfile::tempdir().unwrap();
        let Some(server) = server_in(&host, folder.path()) else { return };
        let mut client = server.connect(DATABASE).unwrap();
        client.query("create table t as select generate_series(1, 1000) as x").unwrap();
        let before = server.pid().unwrap();
        server.kill_all(&host).unwrap();
        assert!(client.query("select 1").is_err() && !Path::new(&format!("/proc/{before}")).exists());
        server.restart(&host, &Interrupt::never()).unwrap();
        let rows = server.connect(DATABASE).unwrap().query("select count(*) from t").unwrap();
        assert_eq!((rows, server.pid() == Some(before)), (vec![vec![Some("1000".to_owned())]], false));
        let log = server.log_text();
        assert!(log.contains("redo done at") && log.matches("starting PostgreSQL").count() == 1, "{log}");
        server.stop(&host).unwrap();
    }

    #[test]
    fn an_unknown_setting_is_named_with_the_servers_error_message() {
        let Some(install) = some_installation() else { return };
        let host = Host::this();
        let folder = tempfile::tempdir().unwrap();
        let mut spec = spec_in(install, folder.path());
        init(&host, &spec).unwrap();
        spec.settings.insert("wal_snyc_method".to_owned(), "fsync".to_owned());
        let error = Server::start(&host, spec.clone(), &Interrupt::never()).unwrap_err();
        assert!(error.to_string().contains("unrecognized configuration parameter \"wal_snyc_method\""), "{error}");
        assert!(error.hint_text().unwrap().contains("`wal_snyc_method`"), "{error}");
        spec.settings = BTreeMap::from([("port".to_owned(), "1".to_owned())]);
        assert!(
            Server::start(&host, spec, &Interrupt::never()).unwrap_err().to_string().contains("reserved for pgstrata")
        );
    }

    #[test]
    fn the_server_always_listens_only_on_its_private_socket() {
        let Some(install) = some_installation() else { return };
        let host = Host::this();
        let folder = tempfile::tempdir().unwrap();
        let spec = spec_in(install, folder.path());
        init(&host, &spec).unwrap();
        let main = spec.data.join("postgresql.conf");
        let had = files::read_text(&main).unwrap();
        let open = "listen_addresses = '*'\nhba_file = '/tmp/none'\nunix_socket_permissions = 0777\n";
        // After our own line, as an ALTER SYSTEM would be.
        files::write_for(&main, format!("{had}\ninclude 'pgstrata.conf'\n{open}").as_bytes(), 0o600, &spec.user)
            .unwrap();
        let server = Server::start(&host, spec, &Interrupt::never()).unwrap();
        let facts = server.facts().unwrap();
        assert_eq!(facts.settings["listen_addresses"], "");
        assert_eq!(facts.settings["unix_socket_permissions"], "0700");
        server.stop(&host).unwrap();
    }

    #[test]
    fn a_copied_template_is_an_independent_server_with_separate_wal() {
        let host = Host::this();
        let folder = tempfile::tempdir().unwrap();
        let Some(template) = server_in(&host, folder.path()) else { return };
        template.connect(DATABASE).unwrap().query("create table t as select 42 as x").unwrap();
        let mut spec = template.spec.clone();
        let made = spec.data.clone();
        template.stop(&host).unwrap();
        spec.data = folder.path().join("copy");
        spec.wal = Some(folder.path().join("wal"));
        assert!(super::super::copy::copy(&made, &spec, &Interrupt::never()).unwrap() > 10 << 20);
        let server = Server::start(&host, spec, &Interrupt::never()).unwrap();
        let rows = server.connect(DATABASE).unwrap().query("checkpoint; select x from t").unwrap();
        assert_eq!(rows, [[Some("42".to_owned())]]);
        assert!(folder.path().join("wal").read_dir().unwrap().count() > 1);
        server.stop(&host).unwrap();
    }

    #[test]
    fn a_failed_initdb_shows_its_own_words() {
        let Some(install) = some_installation() else { return };
        let folder = tempfile::tempdir().unwrap();
        let mut spec = spec_in(install, folder.path());
        spec.initdb = vec!["--no-such-thing".to_owned()];
        let error = init(&Host::this(), &spec).unwrap_err().to_string();
        assert!(error.contains("no-such-thing"), "{error}");
    }
}

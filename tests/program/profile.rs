//! `pgstrata profile` on a real server: what it reads, what it leaves alone, and whether a load made of it has its shape.

use super::workshop::{Workshop, json, said, skipped};
use pgstrata::cluster::install::{self, Installation};
use pgstrata::cluster::server::{self, Server};
use pgstrata::cluster::spec::ServerSpec;
use pgstrata::host::signals::Interrupt;
use pgstrata::host::users;
use pgstrata::host::{Host, files};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Sub-transactions, rows that are not updated in place, and reads; every name is one that must not come out again.
const LOAD: &str = "\\set id random(1, 100000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :id;
SAVEPOINT secret_savepoint;
INSERT INTO \"Secret Schema\".secret_table VALUES (:id, repeat('secret', 30));
RELEASE secret_savepoint;
COMMIT;
";

struct Site {
    shop: Workshop,
    host: Host,
    install: Installation,
    server: Server,
}

impl Site {
    /// A server with a role that has pg_monitor alone, and with odd names; `None` without PostgreSQL.
    fn new(test: &str, settings: &[(&str, &str)]) -> Option<Site> {
        Site::of("auto", test, settings)
    }

    /// The same of this version.
    fn of(version: &str, test: &str, settings: &[(&str, &str)]) -> Option<Site> {
        let host = Host::this();
        let Ok(install) = install::find(&host, version) else {
            skipped(test, &format!("needs PostgreSQL ({version})"));
            return None;
        };
        let shop = Workshop::new();
        let user = users::server_user(&host).unwrap();
        let folder = shop.path().join("server");
        fs::create_dir(&folder).unwrap();
        files::give_to(&folder, &user).unwrap();
        let own = [
            ("fsync", "off"),
            ("shared_buffers", "16MB"),
            ("checkpoint_timeout", "1h"),
            ("max_wal_size", "2GB"),
            ("wal_keep_size", "4GB"),
        ];
        let settings = own.iter().chain(settings).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let spec = ServerSpec {
            install: install.clone(),
            user,
            data: folder.join("data"),
            wal: None,
            socket_folder: folder.join("s"),
            log: folder.join("server.log"),
            settings: settings.collect(),
            initdb: Vec::new(),
        };
        server::init(&host, &spec).unwrap();
        let server = Server::start(&host, spec, &Interrupt::never()).unwrap();
        let site = Site { shop, host, install, server };
        site.sql("postgres", "CREATE ROLE \"Secret Monitor\" LOGIN IN ROLE pg_monitor");
        site.sql("postgres", "ALTER ROLE \"Secret Monitor\" SET statement_timeout = '1s'");
        let known = "IF current_setting('transaction_timeout', true) IS NOT NULL";
        let limit = "ALTER ROLE \"Secret Monitor\" SET transaction_timeout = '900ms'";
        site.sql("postgres", &format!("DO $$ BEGIN {known} THEN {limit}; END IF; END $$"));
        site.sql("postgres", "CREATE ROLE \"Secret Stranger\" LOGIN");
        site.sql("postgres", "CREATE DATABASE secret_db");
        site.ok(site.client("pgbench").args(["-i", "-q", "-s", "1", "secret_db"]));
        site.sql("secret_db", "CREATE SCHEMA \"Secret Schema\"");
        site.sql("secret_db", "CREATE TABLE \"Secret Schema\".secret_table (id int, filler text)");
        Some(site)
    }

    fn ok(&self, command: &mut Command) -> String {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A program of the server's version, as the superuser.
    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.install.bin.join(program));
        command.arg("-h").arg(&self.server.spec.socket_folder).args(["-U", "postgres"]);
        command
    }

    fn sql(&self, database: &str, sql: &str) -> String {
        self.ok(self.client("psql").args(["-X", "-q", "-A", "-t", "-d", database, "-c", sql])).trim().to_owned()
    }

    /// Runs the script, with three samples in place of a minute's; `during` runs behind the first.
    fn script(&self, role: &str, during: &str) -> String {
        let script = self.ok(&mut self.shop.pgstrata(&["profile", "--script", "--minutes", "1"]));
        let samples = script.matches("\n:sample\n").count();
        assert!(samples > 20, "{script}");
        let once = script.replacen(":sample\n", &format!("@FIRST@{during}\n@SECOND@"), 1).replace(":sample\n", "");
        let script = once.replace("@FIRST@", ":sample\n").replace("@SECOND@", ":sample\n:sample\n");
        let file = self.shop.file("p.sql", &script);
        let mut psql = Command::new(self.install.bin.join("psql"));
        psql.arg("-X").arg("-h").arg(&self.server.spec.socket_folder).args(["-U", role, "-d", "secret_db"]);
        self.ok(psql.arg("-f").arg(file))
    }

    /// A command of psql that runs this pgbench and a checkpoint behind it.
    fn load(&self, arguments: &str, database: &str) -> String {
        let (bin, socket) = (self.install.bin.display(), self.server.spec.socket_folder.display());
        let checkpoint = format!("{bin}/psql -X -q -h {socket} -U postgres -c CHECKPOINT");
        let pgbench = format!("{bin}/pgbench -h {socket} -U postgres -n {arguments} {database} > /dev/null 2>&1");
        let shell = self.shop.file("load.sh", &format!("set -e\n{pgbench}\n{checkpoint}\n"));
        format!("\\! sh {}", shell.display())
    }

    /// The profile of what the script printed.
    fn profile(&self, printed: &str, more: &[&str]) -> (String, serde_json::Value) {
        let out = self.shop.file("out", printed);
        let output = self.read(&out, more);
        assert!(output.status.success(), "{}", said(&output));
        let text = fs::read_to_string(self.shop.path().join("profile.toml")).unwrap();
        let shown = self.ok(&mut self.shop.pgstrata(&["profile", "show", "profile.toml", "--json"]));
        (text, json(shown.as_bytes()))
    }

    fn read(&self, out: &Path, more: &[&str]) -> Output {
        let from = ["profile", "--from", out.to_str().unwrap()];
        self.shop.pgstrata(&[&from, more].concat()).output().unwrap()
    }

    fn wal(&self) -> String {
        self.server.spec.data.join("pg_wal").display().to_string()
    }
}

/// WAL bytes of a commit, the share of full pages in them, pages written for it, and pages read for a transaction.
fn shape(site: &Site, arguments: &str, database: &str) -> [f64; 4] {
    site.sql("postgres", "CHECKPOINT");
    let before = site.sql("postgres", "SELECT pg_walfile_name(pg_switch_wal())");
    let printed = site.script("Secret Monitor", &site.load(arguments, database));
    let folder = site.shop.path().join(format!("wal-{before}"));
    fs::create_dir(&folder).unwrap();
    for segment in fs::read_dir(site.wal()).unwrap().map(|entry| entry.unwrap()) {
        let name = segment.file_name().into_string().unwrap();
        if name.len() == before.len() && name > before {
            fs::copy(segment.path(), folder.join(name)).unwrap();
        }
    }
    let (_, shown) = site.profile(&printed, &["--wal", folder.to_str().unwrap()]);
    let wal = &shown["profile"]["wal"];
    let [commits, bytes, full] = ["commits", "bytes", "full_page_bytes"].map(|name| wal[name].as_f64().unwrap());
    let written = shown["figures"]["pages_written_per_commit"].as_f64().unwrap();
    let ids = shown["profile"]["counts"]["moment"]["transaction_ids"].as_f64().unwrap();
    let missed = shown["figures"]["read_misses_per_any_commit"].as_f64().unwrap();
    [bytes / commits, full / bytes, written * ids / commits, missed]
}

fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => found.extend(files_below(&entry)),
            false => found.push(entry),
        }
    }
    found.sort();
    found
}

#[test]
fn a_profile_names_nothing_and_leaves_an_idle_server_alone() {
    let Some(site) = Site::new("profile", &[("autovacuum", "off")]) else { return };
    // Whoever reads a new row first, notes on its page that it is committed; with checksums, that is WAL.
    site.script("Secret Monitor", "");
    site.sql("postgres", "CHECKPOINT");
    let moment = "SELECT txid_snapshot_xmax(txid_current_snapshot()), pg_current_wal_insert_lsn() - '0/0', \
                  md5(string_agg(name || setting, ',' ORDER BY name)) FROM pg_settings WHERE source <> 'session' AND \
                  name <> 'application_name'";
    let (before, files) = (site.sql("secret_db", moment), files_below(&site.server.spec.data));
    let printed = site.script("Secret Monitor", "");
    let after = site.sql("secret_db", moment);
    let [before, after] = [&before, &after].map(|line| line.split('|').collect::<Vec<_>>());
    assert_eq!((before[0], before[2]), (after[0], after[2]), "transaction ids, settings");
    let [first, last] = [before[1], after[1]].map(|position| position.parse::<u64>().unwrap());
    assert!(last - first < 1000, "snapshot records alone: {}", last - first);
    assert_eq!(files_below(&site.server.spec.data), files);
    let (text, _) = site.profile(&printed, &[]);
    for name in ["ecret", "onitor", "postgres =", "pgbench"] {
        assert!(!printed.contains(name) && !text.contains(name), "{name}:\n{printed}\n{text}");
    }
    for unseen in ["none was completed", "pg_stat_statements is not installed", "--wal"] {
        assert!(text.contains(unseen), "{unseen}:\n{text}");
    }
    let (text, shown) = site.profile(&site.script("Secret Stranger", ""), &[]);
    assert!(text.contains("not a member of pg_monitor"), "{text}");
    assert!(shown["figures"].get("clients_active_mean").is_none(), "{shown}");
    let cut = site.shop.file("cut", printed.split_once("pgstrata end").unwrap().0);
    let output = site.read(&cut, &[]);
    assert!(output.status.code() == Some(2) && said(&output).contains("is cut off"), "{}", said(&output));
    site.server.stop(&site.host).unwrap();
}

#[test]
fn a_profile_has_the_commits_and_sizes_of_the_load() {
    let Some(site) = Site::new("profile", &[("autovacuum", "off")]) else { return };
    let file = site.shop.file("load.sql", LOAD);
    site.sql("postgres", "CHECKPOINT");
    let load = format!("-c 4 -t 500 -f {}", file.display());
    let printed = site.script("Secret Monitor", &site.load(&load, "secret_db"));
    let (without, _) = site.profile(&printed, &[]);
    let (text, shown) = site.profile(&without, &["--wal", &site.wal()]);
    assert!(!printed.contains("ecret") && !text.contains("ecret"), "{printed}\n{text}");
    let (counts, wal) = (&shown["profile"]["counts"], &shown["profile"]["wal"]);
    let near = |value: &serde_json::Value, expected: f64| (value.as_f64().unwrap() / expected - 1.0).abs() < 0.05;
    // Each transaction and its sub-transaction has an id.
    assert!(near(&counts["moment"]["transaction_ids"], 4000.0), "{counts}");
    assert!(near(&counts["databases"]["tup_updated"], 2000.0), "{counts}");
    assert_eq!(counts["checkpoints"]["completed"], 1, "{counts}");
    assert!(wal["with_subtransactions"].as_u64().unwrap() >= 1990, "{wal}");
    assert!(wal["subtransactions"].as_u64().unwrap() <= 2000, "{wal}");
    site.server.stop(&site.host).unwrap();
}

#[test]
fn a_profile_is_kept_when_its_wal_cannot_be_read() {
    let shop = Workshop::new();
    let printed = include_str!("../fixtures/profile/18.out");
    shop.file("out", &printed.replace("\"server_version\" : \"18", "\"server_version\" : \"99"));
    let output = shop.pgstrata(&["profile", "--from", "out", "--wal", "."]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    for part in ["profile.toml is written without it", "no PostgreSQL 99", "programs of version 99"] {
        assert!(said(&output).contains(part), "{part}: {}", said(&output));
    }
    let output = shop.pgstrata(&["profile", "--from", "profile.toml", "-o", "again.toml"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let [first, again] = ["profile.toml", "again.toml"].map(|name| fs::read_to_string(shop.path().join(name)).unwrap());
    assert_eq!(first, again);
}

#[test]
fn psql_gets_the_environment_of_libpq_and_kerberos() {
    let shop = Workshop::new();
    fs::create_dir(shop.path().join("bin")).unwrap();
    let psql = shop.file("bin/psql", "#!/bin/sh\necho \"$PGSERVICE $KRB5CCNAME $KRB5_CONFIG $HOME\" >&2\nexit 2\n");
    fs::set_permissions(&psql, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", psql.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let own = [("PATH", &*path), ("PGSERVICE", "db"), ("KRB5CCNAME", "cc"), ("KRB5_CONFIG", "conf"), ("HOME", "/dba")];
    let output = shop.pgstrata(&["profile", "--dsn", "host=db1"]).envs(own).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(said(&output).contains("db cc conf /dba"), "{}", said(&output));
}

#[test]
fn a_reset_of_statements_between_the_readings_is_seen() {
    const EXTENSION: &str = "pg_stat_statements";
    let test = "a reset of pg_stat_statements";
    let Some(mut site) = Site::new(test, &[]) else { return };
    let available = format!("SELECT count(*) FROM pg_available_extensions WHERE name = '{EXTENSION}'");
    if site.install.major < 14 || site.sql("postgres", &available) == "0" {
        site.server.stop(&site.host).unwrap();
        return skipped(test, "needs PostgreSQL 14 with pg_stat_statements");
    }
    let mut spec = site.server.spec.clone();
    spec.settings.insert("shared_preload_libraries".to_owned(), EXTENSION.to_owned());
    site.server.stop(&site.host).unwrap();
    site.server = Server::start(&site.host, spec, &Interrupt::never()).unwrap();
    site.sql("secret_db", "CREATE SCHEMA \"Secret Tools\"");
    site.sql("secret_db", "GRANT USAGE ON SCHEMA \"Secret Tools\" TO PUBLIC");
    site.sql("secret_db", &format!("CREATE EXTENSION {EXTENSION} SCHEMA \"Secret Tools\""));
    let load = site.load("-c 1 -t 200", "secret_db");
    let (_, shown) = site.profile(&site.script("Secret Monitor", &load), &[]);
    assert!(shown["profile"]["counts"]["statements"]["calls"].as_u64().unwrap() >= 200, "{shown}");
    let reset = format!("SELECT \"Secret Tools\".{EXTENSION}_reset();");
    site.sql("secret_db", &reset);
    // More is counted after the reset than before.
    let psql = format!("{}/psql -h {}", site.install.bin.display(), site.server.spec.socket_folder.display());
    let shell =
        site.shop.file("reset.sh", &format!("{psql} -X -q -U postgres -d secret_db -c '{reset}' > /dev/null\n"));
    let printed = site.script("Secret Monitor", &format!("\\! sh {}\n{load}", shell.display()));
    let rows = printed.lines().filter(|line| line.starts_with("pgstrata counts statements"));
    assert!(rows.clone().count() == 2 && rows.into_iter().all(|row| row.contains("\"stats_reset\" : \"")), "{printed}");
    let (_, shown) = site.profile(&printed, &[]);
    assert!(shown["profile"]["counts"].get("statements").is_none(), "{shown}");
    assert!(shown["profile"]["unseen"]["statements"].as_str().unwrap().contains("were reset"), "{shown}");
    site.server.stop(&site.host).unwrap();
}

#[test]
fn a_load_made_of_a_profile_has_its_wal() {
    let Some([original, made]) = of_both("on") else { return };
    let close = |at: usize| (made[at] / original[at] - 1.0).abs() < 0.15;
    assert!(close(0) && close(1), "{made:?} for {original:?}");
}

#[test]
fn a_load_made_without_full_page_images_has_its_wal_and_pages() {
    let Some([original, made]) = of_both("off") else { return };
    let ratio = |at: usize| made[at] / original[at];
    assert!((ratio(0) - 1.0).abs() < 0.15 && (0.7..1.4).contains(&ratio(2)), "{made:?} for {original:?}");
}

/// Shapes of a load, and of the one that is made of its profile; `None` without PostgreSQL.
fn of_both(full_page_writes: &str) -> Option<[[f64; 4]; 2]> {
    let site = Site::new("profile", &[("autovacuum", "off"), ("full_page_writes", full_page_writes)])?;
    let file = site.shop.file("load.sql", LOAD);
    let original = shape(&site, &format!("-c 4 -t 2000 -f {}", file.display()), "secret_db");
    let copied = shape(&site, &format!("-c 8 -t 1000 {}", scripts_of_made(&site)), "postgres");
    site.ok(site.shop.pgstrata(&["plan", "made/plan.toml"]).env("PGSTRATA_STATE", site.shop.state()));
    println!("full_page_writes = {full_page_writes}: {copied:?} for {original:?}");
    let changed = site.shop.file("made/setup.sql", "-- changed, as the page says\n");
    let again = site.shop.pgstrata(&["profile", "load", "profile.toml", "-o", "made"]).output().unwrap();
    let refused = String::from_utf8_lossy(&again.stderr);
    assert!(refused.contains(" already exists, and differs"), "{refused}");
    assert!(fs::read_to_string(changed).unwrap().starts_with("-- changed"));
    site.server.stop(&site.host).unwrap();
    Some([original, copied])
}

/// The shape of 32 000 transactions by 8 clients on a server that has been in use, as those that one profiles.
fn shape_in_use(site: &Site, scripts: &str, database: &str) -> [f64; 4] {
    let warm_up = format!("-n -c 8 -t 1000 {scripts} {database}");
    site.ok(site.client("pgbench").args(warm_up.split(' ')));
    shape(site, &format!("-c 8 -t 4000 {scripts}"), database)
}

/// Makes the tables of a load of the last profile; returns its scripts, for pgbench.
fn scripts_of_made(site: &Site) -> String {
    let plan = site.ok(&mut site.shop.pgstrata(&["profile", "load", "profile.toml", "-o", "made"]));
    let made = site.shop.path().join("made");
    site.shop.file("made/plan.toml", &plan);
    site.ok(site.client("psql").args(["-X", "-q", "-d", "postgres", "-f"]).arg(made.join("setup.sql")));
    let scripts = plan.split("script = [").nth(1).unwrap().split(']').next().unwrap();
    let names = scripts.split('"').filter(|part| part.contains('@'));
    names.map(|name| format!("-f {}/{name}", made.display())).collect::<Vec<_>>().join(" ")
}

/// Sub-transactions, and two transactions of a hundred that COPY 300 rows.
fn nested(site: &Site) -> String {
    let rows: String = (0..300).map(|row| format!("{row}\tsecret {row}\n")).collect();
    let rows = site.shop.file("rows", &rows);
    fs::set_permissions(&rows, fs::Permissions::from_mode(0o644)).unwrap();
    let copy = format!("COPY \"Secret Schema\".secret_table FROM '{}';\n", rows.display());
    let (load, copy) = (site.shop.file("load.sql", LOAD), site.shop.file("copy.sql", &copy));
    format!("-f {}@98 -f {}@2", load.display(), copy.display())
}

/// A shipped script of 40 units, loaded into the database.
fn shipped(site: &Site, name: &str, transactions: &[(&str, u32)]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/workload/pgbench/scripts").join(name);
    let setup = ["-X", "-q", "-v", "scale=40", "-d", "secret_db", "-f"];
    site.ok(site.client("psql").args(setup).arg(folder.join("setup.sql")));
    let files = transactions.iter().map(|(name, weight)| format!("-f {}/{name}.sql@{weight}", folder.display()));
    format!("-D scale=40 {}", files.collect::<Vec<_>>().join(" "))
}

/// The table of docs/profile.md.
#[test]
fn loads_made_of_profiles_are_near_on_two_versions() {
    const NAME: &str = "loads made of profiles of three loads on two versions";
    if std::env::var_os("PGSTRATA_TEST_FULL").is_none() {
        return skipped(NAME, "set PGSTRATA_TEST_FULL");
    }
    const ORDERS: [(&str, u32); 5] =
        [("new_order", 44), ("payment", 43), ("order_status", 4), ("delivery", 4), ("stock_level", 5)];
    const EVENTS: [(&str, u32); 3] = [("append", 70), ("recent", 20), ("history", 10)];
    let mut far = Vec::new();
    for (version, load) in
        ["18", "15"].into_iter().flat_map(|version| ["orders", "events", "nested"].map(|load| (version, load)))
    {
        let Some(site) = Site::of(version, NAME, &[("autovacuum", "off"), ("shared_buffers", "32MB")]) else { return };
        let arguments = match load {
            "orders" => shipped(&site, load, &ORDERS),
            "events" => shipped(&site, load, &EVENTS),
            _ => nested(&site),
        };
        let original = shape_in_use(&site, &arguments, "secret_db");
        let made = shape_in_use(&site, &scripts_of_made(&site), "postgres");
        let row: Vec<String> = made
            .iter()
            .zip(&original)
            .map(|(made, original)| format!("{:.2} ({made:.3} for {original:.3})", made / original))
            .collect();
        println!("| {load} | {version} | {} |", row.join(" | "));
        // Below 1 % of the WAL, and 0.1 page a transaction, the difference itself is held to that.
        let limits = [(0.15, 0.0), (0.15, 0.01), (0.30, 0.0), (0.30, 0.1)];
        let differences = made.iter().zip(&original).map(|(made, original)| (made - original).abs());
        let off = differences.zip(limits).zip(&original);
        if off.into_iter().any(|((off, (share, least)), original)| off > f64::max(share * original, least)) {
            far.push(format!("{load} on {version}: {made:?} for {original:?}"));
        }
        site.server.stop(&site.host).unwrap();
    }
    assert!(far.is_empty(), "{far:#?}");
}

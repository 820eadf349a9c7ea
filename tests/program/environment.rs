//! Nothing of the caller's environment leads a child anywhere: every variable of libpq points at a listener, which must hear nothing.

use crate::depth::is_full;
use crate::program::recovery::FAST_WAL;
use crate::program::workshop::{Workshop, can_build_stacks, json, said};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const PLAN: &str = r#"
name = "environment"
blocks = 1

[postgres]
bin = [BINS]
settings = { shared_buffers = "32MB" }
"#;

/// Where snapshots can be made.
const BTRFS: &str = r#"
[stack.btrfs]
device = { loop = "1GiB", sparse = true }
filesystem = "btrfs"
"#;

const AGED: &str = r#"
[stack.aged]
device = { loop = "512MiB", sparse = true }
filesystem = "ext4"
age = { pgbench = 1, rewrite = 1, churn = 1 }

[workload]
tpcb = { pgbench = { scale = 1, clients = 1, duration = "1s", warmup = "0s" } }
"#;

const CRASHED_AND_READ: &str = r#"
[workload]
crash = { recovery = { scale = 1, clients = 1, script = "fast_wal.sql", wal = "16MiB", after = "1s", warmup = "1s" } }
scan = { scan = { scale = 1, duration = "1s" } }
files = { files = { size = "16MiB", duration = "1s" } }
"#;

/// Of a further version, in the full suite, what its libpq is used for.
const ONE_VERSION: [&str; 3] = ["crash", "scan", "files"];

const COPIED: &str = r#"
[workload]
care = { maintenance = { scale = 1 } }
copies = { snapshots = { scale = 1, clients = 1, every = "4s", keep = 1, duration = "5s", warmup = "0s" } }
"#;

/// The variables of libpq 18 (its documentation, "Environment Variables") with a value that leads elsewhere or forbids, and
/// some of server, loader and tools.
pub const HOSTILE: &[(&str, &str)] = &[
    ("PGHOST", "127.0.0.9"),
    ("PGHOSTADDR", "127.0.0.9"),
    ("PGPORT", "PORT"),
    ("PGDATABASE", "elsewhere"),
    ("PGUSER", "nobody"),
    ("PGPASSWORD", "secret"),
    ("PGPASSFILE", "/nowhere/passfile"),
    ("PGREQUIREAUTH", "scram-sha-256"),
    ("PGCHANNELBINDING", "require"),
    ("PGSERVICE", "elsewhere"),
    ("PGSERVICEFILE", "/nowhere/service"),
    ("PGOPTIONS", "-c fsync=off"),
    ("PGAPPNAME", "x"),
    ("PGSSLMODE", "verify-full"),
    ("PGREQUIRESSL", "1"),
    ("PGSSLNEGOTIATION", "direct"),
    ("PGSSLCOMPRESSION", "1"),
    ("PGSSLCERT", "/nowhere/cert"),
    ("PGSSLKEY", "/nowhere/key"),
    ("PGSSLCERTMODE", "require"),
    ("PGSSLROOTCERT", "/nowhere/root"),
    ("PGSSLCRL", "/nowhere/crl"),
    ("PGSSLCRLDIR", "/nowhere"),
    ("PGSSLSNI", "0"),
    ("PGREQUIREPEER", "nobody"),
    ("PGSSLMINPROTOCOLVERSION", "TLSv1.3"),
    ("PGSSLMAXPROTOCOLVERSION", "TLSv1.3"),
    ("PGGSSENCMODE", "require"),
    ("PGKRBSRVNAME", "x"),
    ("PGGSSLIB", "x"),
    ("PGGSSDELEGATION", "1"),
    ("PGCONNECT_TIMEOUT", "1"),
    ("PGCLIENTENCODING", "LATIN1"),
    ("PGTARGETSESSIONATTRS", "standby"),
    ("PGLOADBALANCEHOSTS", "random"),
    ("PGMINPROTOCOLVERSION", "3.2"),
    ("PGMAXPROTOCOLVERSION", "3.0"),
    ("PGDATESTYLE", "German"),
    ("PGTZ", "Asia/Tokyo"),
    ("PGGEQO", "off"),
    ("PGSYSCONFDIR", "/nowhere"),
    ("PGLOCALEDIR", "/nowhere"),
    ("PGDATA", "/nowhere/data"),
    ("PG_TEST_TIMEOUT_DEFAULT", "1"),
    ("LD_PRELOAD", "/nowhere/libeatmydata.so"),
    ("MKE2FS_CONFIG", "/nowhere/mke2fs.conf"),
    ("LIBMOUNT_FSTAB", "/nowhere/fstab"),
    ("POSIXLY_CORRECT", "1"),
    ("COLUMNS", "40"),
    ("BASH_ENV", "/nowhere/bashrc"),
    ("ENV", "/nowhere/shrc"),
    ("LC_MESSAGES", "de_DE.UTF-8"),
    ("LANGUAGE", "de"),
];

/// A listener where the variables lead, and a workshop.
struct Elsewhere {
    shop: Workshop,
    port: String,
    heard: Arc<AtomicUsize>,
}

impl Elsewhere {
    fn listen() -> Elsewhere {
        let listener = TcpListener::bind("127.0.0.9:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let heard = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&heard);
        // It ends with the process.
        std::thread::spawn(move || {
            listener.incoming().for_each(|_| {
                counting.fetch_add(1, Ordering::SeqCst);
            });
        });
        Elsewhere { shop: Workshop::new(), port, heard }
    }

    /// The file of a plan with these parts, for one server, or all in the full suite: the last without some workloads.
    fn plan(&self, parts: &[&str], of_one_version: &[&str]) -> String {
        let doctor = json(&self.shop.pgstrata(&["doctor", "--json"]).output().unwrap().stdout);
        let versions = if is_full() { usize::MAX } else { 1 };
        let bins = doctor["postgres"].as_array().unwrap().iter().take(versions);
        let bins: Vec<String> = bins.map(|found| found["bin"].to_string()).collect();
        let further = match &bins[..] {
            [_, .., last] if !of_one_version.is_empty() => {
                format!("[[exclude]]\npostgres = {last}\nworkload = {of_one_version:?}\n")
            }
            _ => String::new(),
        };
        let text = PLAN.replace("BINS", &bins.join(", ")) + &parts.concat() + &further;
        self.shop.file("plan.toml", &text).to_str().unwrap().to_owned()
    }

    /// Succeeds with all variables set, and connects to nobody else.
    fn hears_nothing_of(&self, args: &[&str]) {
        let mut command = self.shop.pgstrata(args);
        for (name, value) in HOSTILE {
            command.env(name, value.replace("PORT", &self.port));
        }
        let output = command.output().unwrap();
        let heard = self.heard.load(Ordering::SeqCst);
        assert_eq!(heard, 0, "{args:?} connected to the other server: {}", said(&output));
        assert!(output.status.success(), "{args:?}: {}", said(&output));
    }
}

#[test]
fn environment_variables_redirect_no_client_of_an_aged_stack_or_cut() {
    if !can_build_stacks("the caller's environment") {
        return;
    }
    let elsewhere = Elsewhere::listen();
    let plan = elsewhere.plan(&[AGED], &[]);
    std::fs::create_dir(elsewhere.shop.path().join("disk")).unwrap();
    elsewhere.hears_nothing_of(&["plan", &plan]);
    elsewhere.hears_nothing_of(&["probe", "--seconds", "1", "disk"]);
    elsewhere.hears_nothing_of(&["run", &plan]);
    if Path::new("/dev/fuse").exists() {
        elsewhere.hears_nothing_of(&["cut", &plan, "--states", "0", "--seconds", "1"]);
    }
}

#[test]
fn environment_variables_redirect_no_client_of_a_crash_or_scan() {
    if !can_build_stacks("the caller's environment in a crash") {
        return;
    }
    let elsewhere = Elsewhere::listen();
    elsewhere.shop.file("fast_wal.sql", FAST_WAL);
    let plan = elsewhere.plan(&[BTRFS, CRASHED_AND_READ], &ONE_VERSION);
    elsewhere.hears_nothing_of(&["run", &plan]);
}

#[test]
fn environment_variables_redirect_no_client_of_maintenance_or_copies() {
    if !can_build_stacks("the caller's environment in maintenance") {
        return;
    }
    let elsewhere = Elsewhere::listen();
    let plan = elsewhere.plan(&[BTRFS, COPIED], &[]);
    elsewhere.hears_nothing_of(&["run", &plan]);
}

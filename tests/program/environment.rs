//! Nothing of the caller's environment leads a child anywhere: every variable of libpq points at a listener, which must hear nothing.

use crate::depth::is_full;
use crate::program::workshop::{Workshop, can_build_stacks, json, said};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const PLAN: &str = r#"
name = "environment"
blocks = 1

[stack.btrfs]
device = { loop = "1GiB", sparse = true }
filesystem = "btrfs"

[stack.aged]
device = { loop = "512MiB", sparse = true }
filesystem = "ext4"
age = { pgbench = 1, rewrite = 1, churn = 1 }

[postgres]
bin = [BINS]
settings = { shared_buffers = "32MB" }

[workload]
tpcb = { pgbench = { scale = 1, clients = 1, duration = "1s", warmup = "0s" } }
crash = { recovery = { scale = 1, clients = 1, wal = "16MiB", after = "1s", warmup = "1s" } }
care = { maintenance = { scale = 1 } }
copies = { snapshots = { scale = 1, clients = 1, every = "4s", keep = 1, duration = "5s", warmup = "0s" } }
scan = { scan = { scale = 1, duration = "1s" } }
files = { files = { size = "16MiB", duration = "1s" } }
sync = { sync = { duration = "1s" } }

[[exclude]]
stack = "aged"
workload = ["crash", "care", "copies", "scan", "files", "sync"]
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

#[test]
fn environment_variables_never_redirect_clients_to_another_server() {
    const NAME: &str = "the caller's environment";
    if !can_build_stacks(NAME) {
        return;
    }
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
    let hostile = |command: &mut Command| {
        for (name, value) in HOSTILE {
            command.env(name, value.replace("PORT", &port));
        }
        let output = command.output().unwrap();
        assert_eq!(heard.load(Ordering::SeqCst), 0, "it connected to the other server: {}", said(&output));
        assert!(output.status.success(), "{}", said(&output));
    };
    let shop = Workshop::new();
    let doctor = json(&shop.pgstrata(&["doctor", "--json"]).output().unwrap().stdout);
    let versions = if is_full() { usize::MAX } else { 1 };
    let bins = doctor["postgres"].as_array().unwrap().iter().take(versions);
    let bins: Vec<String> = bins.map(|found| found["bin"].to_string()).collect();
    // Of a further version, in the full suite, what its libpq is used for.
    let further = match &bins[..] {
        [_, .., last] => {
            format!("[[exclude]]\npostgres = {last}\nworkload = [\"crash\", \"scan\", \"files\", \"sync\"]\n")
        }
        _ => String::new(),
    };
    let plan = shop.file("plan.toml", &(PLAN.replace("BINS", &bins.join(", ")) + &further));
    let plan = plan.to_str().unwrap();
    std::fs::create_dir(shop.path().join("disk")).unwrap();
    hostile(&mut shop.pgstrata(&["plan", plan]));
    hostile(&mut shop.pgstrata(&["probe", "--seconds", "1", "disk"]));
    hostile(&mut shop.pgstrata(&["run", plan]));
    if Path::new("/dev/fuse").exists() {
        hostile(&mut shop.pgstrata(&["cut", plan, "--states", "0", "--seconds", "1"]));
    }
}

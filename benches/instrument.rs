//! What the instrument costs: `make bench`. Prints ratios and goals, asserts nothing: times belong to the machine.
//!
//! Everything is measured side by side, interleaved, in one run, on memory, where any cost of ours shows most.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a program for developers")]

use pgstrata::cluster::install::{self, Installation};
use pgstrata::cluster::server::{self, DATABASE, PORT, ROLE, Server, ServerSpec};
use pgstrata::host::command::Command;
use pgstrata::host::signals::Interrupt;
use pgstrata::host::{Host, files, machine, users};
use pgstrata::parse::pgbench_summary;
use pgstrata::record::latency::LatencyInterval;
use pgstrata::record::options::{OptionValue, Options};
use pgstrata::stats::interval::TrialMean;
use pgstrata::stats::ratio::{BlockMean, ratio};
use pgstrata::units::{Bytes, Micros};
use pgstrata::workload::pgbench::Pgbench;
use pgstrata::workload::{ClientSecond, Listener, Memory, Place, Until, Workload};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const PAIRS: usize = 16;
const SECONDS: u32 = 4;
const CLIENTS: i64 = 4;

fn main() {
    let shop = Shop::open();
    pipes(&shop);
    drop(shop);
    telemetry_and_copy();
}

/// A server on memory.
struct Shop {
    host: Host,
    folder: PathBuf,
    server: Option<Server>,
}

impl Shop {
    fn open() -> Shop {
        let host = Host::this();
        let folder = Path::new("/dev/shm").join(format!("pgstrata-bench-{}", files::random_id().unwrap()));
        files::make_folder(&folder, 0o755).unwrap();
        let user = users::server_user(&host).unwrap();
        for name in ["data", "raw"] {
            files::make_folder(&folder.join(name), 0o755).unwrap();
            files::give_to(&folder.join(name), &user).unwrap();
        }
        let install: Installation = install::find(&host, "auto").unwrap();
        println!("PostgreSQL {} on memory (/dev/shm), {CLIENTS} clients\n", install.version);
        let spec = ServerSpec {
            install,
            user,
            data: folder.join("data/cluster"),
            wal: None,
            socket_folder: folder.join("sockets"),
            log: folder.join("server.log"),
            settings: BTreeMap::from([("shared_buffers".to_owned(), "256MB".to_owned())]),
            initdb: Vec::new(),
        };
        server::init(&host, &spec).unwrap();
        let server = Some(Server::start(&host, spec, &Interrupt::never()).unwrap());
        let shop = Shop { host, folder, server };
        Pgbench.load(&shop.place(&Interrupt::never()), &shop.options(), shop.memory()).unwrap();
        shop
    }

    fn memory(&self) -> Memory {
        Memory { total: Bytes(machine::facts(&self.host).memory_bytes), shared_buffers: Bytes(128 << 20) }
    }

    fn options(&self) -> Options {
        let mut options = Options::default();
        options.set("scale", OptionValue::Integer(10));
        options.set("clients", OptionValue::Integer(CLIENTS));
        options.set("jobs", OptionValue::Integer(2));
        options.set("script", OptionValue::Text("select-only".to_owned()));
        options.set("mode", OptionValue::Text("prepared".to_owned()));
        options.set("duration", OptionValue::Text(format!("{SECONDS}s")));
        options.set("warmup", OptionValue::Text("0s".to_owned()));
        options
    }

    fn place<'a>(&'a self, interrupt: &'a Interrupt) -> Place<'a> {
        Place {
            host: &self.host,
            folder: &self.folder,
            server: self.server.as_ref(),
            user: &self.server.as_ref().unwrap().spec.user,
            interrupt,
            raw: Box::leak(self.folder.join("raw").into_boxed_path()),
        }
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            drop(server.stop(&self.host));
        }
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

struct Deaf;

impl Listener for Deaf {
    fn began(&self, _: u64) {}
    fn second(&self, _: ClientSecond) {}
    fn latencies(&self, _: LatencyInterval) {}
}

/// pgbench with its log through our pipes against pgbench without a log. Select-only and prepared: the most lines a
/// second that this machine can make, so the worst case.
fn pipes(shop: &Shop) {
    let interrupt = Interrupt::never();
    let (mut piped, mut plain) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        for turn in 0..2 {
            // ABBA: drift within a pair hits both alike.
            if (pair + turn) % 2 == 0 {
                plain.push(run_plain(shop));
            } else {
                let until = Until { longest: Micros(u64::from(SECONDS) * 1_000_000), is_over: &mut || Ok(false) };
                Pgbench.measure(&shop.place(&interrupt), &shop.options(), shop.memory(), until, &Deaf).unwrap();
                piped.push(tps(&std::fs::read_to_string(shop.folder.join("raw/pgbench.out")).unwrap()));
            }
        }
    }
    let blocks = |rates: &[f64]| -> Vec<BlockMean> {
        let block = |(i, mean): (usize, &f64)| BlockMean {
            block: u32::try_from(i).unwrap(),
            trial: TrialMean { mean: *mean, within: None },
        };
        rates.iter().enumerate().map(block).collect()
    };
    let found = ratio(&blocks(&piped), &blocks(&plain)).unwrap();
    let (low, high) = found.interval.unwrap();
    println!(
        "pgbench with its log through pipes / without a log: {:.3} (95 % {low:.3} to {high:.3}, {PAIRS} pairs of \
              {SECONDS} s, about {:.0} tps)",
        found.value,
        plain.iter().sum::<f64>() / plain.len() as f64
    );
    println!("  goal: at least 0.98\n");
}

fn run_plain(shop: &Shop) -> f64 {
    let spec = &shop.server.as_ref().unwrap().spec;
    let command = Command::new(spec.install.bin.join("pgbench"))
        .args(["-n", "-T", &SECONDS.to_string(), "-c", &CLIENTS.to_string(), "-j", "2", "-M", "prepared"])
        .args(["-P", "1000000", "-r", "-b", "select-only@1", "-h"])
        .arg(&spec.socket_folder)
        .args(["-p", &PORT.to_string(), "-U", ROLE, DATABASE])
        .user(&spec.user);
    tps(&shop.host.run(&command).unwrap().stdout)
}

fn tps(summary: &str) -> f64 {
    pgbench_summary::parse(summary).unwrap().tps.unwrap()
}

/// A whole run on memory: what telemetry cost, what share of its time was measurement, what copying the data saved.
fn telemetry_and_copy() {
    let folder = tempfile::tempdir().unwrap();
    let text = "name = \"bench\"\nblocks = 3\n[stack.memory]\nfilesystem = { tmpfs = \"2GiB\" }\n\
                [workload.w]\npgbench = { scale = 30, clients = 4, duration = \"20s\", warmup = \"2s\" }\n";
    let plan = folder.path().join("plan.toml");
    std::fs::write(&plan, text).unwrap();
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_pgstrata"));
    let output = program.arg("run").arg(&plan).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        println!("a whole run on memory: not measured, the run ended with {}:\n{said}", output.status);
        return;
    }
    let mut records = Vec::new();
    collect(&folder.path().join("results"), &mut records);
    let of = |pointer: &str| -> Vec<f64> {
        records.iter().map(|record| record.pointer(pointer).unwrap().as_f64().unwrap()).collect()
    };
    let share: Vec<f64> =
        of("/telemetry_cpu_us").iter().zip(of("/counts/elapsed_us")).map(|(cpu, wall)| 100.0 * cpu / wall).collect();
    println!("telemetry at 1 Hz and waits at 10 Hz, CPU of our threads: {} % of one core", list(&share, 2));
    println!("  goal: under 0.5 %\n");
    let sitting = said.lines().find(|line| line.contains("of it measurement")).unwrap_or("(not printed)");
    println!("{sitting}\n  goal: printed\n");
    let (copy, made) = (of("/data/copy_s"), of("/data/template_s"));
    println!(
        "data of scale 30: made once in {:.2} s, then copied in {} s: {:.1} times faster a trial",
        made[0],
        list(&copy, 2),
        made[0] * copy.len() as f64 / copy.iter().sum::<f64>()
    );
}

fn list(values: &[f64], decimals: usize) -> String {
    values.iter().map(|value| format!("{value:.decimals$}")).collect::<Vec<_>>().join(", ")
}

fn collect(folder: &Path, records: &mut Vec<serde_json::Value>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(&path, records);
        } else if path.ends_with("trial.json") {
            records.push(serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap());
        }
    }
}

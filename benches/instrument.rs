//! What the instrument costs: `make bench`. Prints ratios and goals, asserts nothing: times belong to the machine.
//!
//! Everything is measured side by side, interleaved, in one run, on memory, where any cost of ours shows most.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a program for developers")]

use pgstrata::cluster::install::{self, Installation};
use pgstrata::cluster::server::{self, DATABASE, PORT, ROLE, Server};
use pgstrata::cluster::spec::ServerSpec;
use pgstrata::host::command::Command;
use pgstrata::host::signals::Interrupt;
use pgstrata::host::{Host, files, machine, users};
use pgstrata::parse::pgbench_summary;
use pgstrata::record::options::{OptionValue, Options};
use pgstrata::stats::interval::TrialMean;
use pgstrata::stats::ratio::{BlockMean, ratio};
use pgstrata::units::{Bytes, Micros};
use pgstrata::workload::pgbench::Pgbench;
use pgstrata::workload::{Measuring, MemorySizes, Place, Until, WindowProgress, Workload};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Rounds before it is looked at whether the interval is narrow enough, and rounds at most.
const FEWEST_ROUNDS: usize = 12;
const MOST_ROUNDS: usize = 90;
/// The orders of the three kinds of run.
const ORDERS: [[u8; 3]; 6] = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [2, 1, 0], [1, 0, 2]];
/// Share that is logged, as a plan without `log_sample` has it at 80 000 a second on two CPUs.
const LOG_SAMPLE: f64 = 0.1;
/// What sampling may cost.
const SAMPLED_GOAL: f64 = 0.99;
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

    fn memory(&self) -> MemorySizes {
        MemorySizes { total: Bytes(machine::facts(&self.host).memory_bytes), shared_buffers: Bytes(128 << 20) }
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
            crash: None,
            snapshots: None,
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

/// pgbench with its whole log through our pipes, with a sampled one, and without. Select-only and prepared: the most lines a
/// second that this machine can make, so the worst case. Rounds are added until the interval of the sampled one is narrower
/// than what its goal leaves, or there are too many.
fn pipes(shop: &Shop) {
    let mut runs = Runs::default();
    for round in 0..most_rounds() {
        // Each order of the three comes equally often: drift within a round hits all alike.
        for turn in ORDERS[round % ORDERS.len()] {
            match turn {
                0 => runs.plain.push(run_plain(shop)),
                1 => runs.whole.push(run_logged(shop, 1.0)),
                _ => runs.sampled.push(run_logged(shop, LOG_SAMPLE)),
            }
        }
        let (_, low, high) = runs.over_plain(&runs.sampled);
        if round + 1 >= FEWEST_ROUNDS && (high - low) / 2.0 < 1.0 - SAMPLED_GOAL {
            break;
        }
    }
    let tps = runs.plain.iter().sum::<f64>() / runs.plain.len() as f64;
    println!("{} rounds of three runs of {SECONDS} s, about {tps:.0} tps without a log", runs.plain.len());
    let tell = |what: &str, rates: &[f64], goal: &str| {
        let (ratio, low, high) = runs.over_plain(rates);
        println!("pgbench with {what} / without a log: {ratio:.3} (95 % {low:.3} to {high:.3})\n  goal: {goal}\n");
    };
    tell("its whole log", &runs.whole, "none: what a plan without `log_sample` avoids at such a rate");
    let width = 1.0 - SAMPLED_GOAL;
    let goal = format!("at least {SAMPLED_GOAL}, known to +-{width:.2}");
    tell(&format!("{LOG_SAMPLE} of its log"), &runs.sampled, &goal);
}

/// Rates of the three kinds of run, round by round.
#[derive(Default)]
struct Runs {
    plain: Vec<f64>,
    whole: Vec<f64>,
    sampled: Vec<f64>,
}

impl Runs {
    /// A kind over the plain one, with its interval; not a number from a single round.
    fn over_plain(&self, rates: &[f64]) -> (f64, f64, f64) {
        let blocks = |rates: &[f64]| -> Vec<BlockMean> {
            let trial = |mean: &f64| TrialMean { mean: *mean, within: None };
            (0u32..).zip(rates).map(|(block, rate)| BlockMean { block, trial: trial(rate) }).collect()
        };
        let found = ratio(&blocks(rates), &blocks(&self.plain)).unwrap();
        let (low, high) = found.interval.unwrap_or((f64::NAN, f64::NAN));
        (found.value, low, high)
    }
}

/// Rounds at most: `PGSTRATA_BENCH_ROUNDS`, to see in a minute whether the bench works.
fn most_rounds() -> usize {
    std::env::var("PGSTRATA_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(MOST_ROUNDS)
}

fn run_logged(shop: &Shop, log_sample: f64) -> f64 {
    let interrupt = Interrupt::never();
    let mut options = shop.options();
    options.set("log_sample", OptionValue::Number(log_sample));
    let until = Until {
        longest: Micros(u64::from(SECONDS) * 1_000_000),
        operations: None,
        progress: &mut || Ok(WindowProgress::default()),
    };
    Pgbench
        .measure(Measuring {
            place: &shop.place(&interrupt),
            options: &options,
            memory: shop.memory(),
            until,
            listener: &drop,
        })
        .unwrap();
    tps(&std::fs::read_to_string(shop.folder.join("raw/pgbench.out")).unwrap())
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
    println!("  goal: under 0.5 %");
    for (part, us) in parts(&records) {
        println!("  of that {part}: {:.3} %", 100.0 * us / of("/counts/elapsed_us").iter().sum::<f64>());
    }
    println!();
    let head = said.lines().find(|line| line.contains("of it measurement")).unwrap_or("(not printed)");
    println!("{head}\n  goal: printed\n");
    let (copy, made) = (of("/data/copy_s"), of("/data/template_s"));
    println!(
        "data of scale 30: made once in {:.2} s, then copied in {} s: {:.1} times faster a trial",
        made[0],
        list(&copy, 2),
        made[0] * copy.len() as f64 / copy.iter().sum::<f64>()
    );
}

/// CPU time that each part of telemetry cost over all trials, microseconds, the most first.
fn parts(records: &[serde_json::Value]) -> Vec<(String, f64)> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for (part, us) in records.iter().flat_map(|record| record["telemetry_cpu_us_by"].as_object().unwrap()) {
        *sums.entry(part.clone()).or_default() += us.as_f64().unwrap();
    }
    let mut parts: Vec<(String, f64)> = sums.into_iter().collect();
    parts.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    parts
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

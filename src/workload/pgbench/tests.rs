//! pgbench against a real server.

use super::Pgbench;
use super::recovery::Recovery;
use super::shipped;
use crate::cluster::install::{self, Installation};
use crate::cluster::server::{DATABASE, Server};
use crate::cluster::testing::{server_of, some_installation};
use crate::error::{Error, Kind, Result};
use crate::host::Host;
use crate::host::command::Command;
use crate::host::signals::Interrupt;
use crate::host::time::now;
use crate::record::counts::Counts;
use crate::record::operation::{CacheState, Writes};
use crate::record::options::{OptionValue, Options};
use crate::record::recovery::CrashKind;
use crate::record::stage::StageKind;
use crate::record::window::Extent;
use crate::units::{Bytes, Micros};
use crate::workload::{
    ClientSecond, Crash, GuestIsBack, Listener, LoadEvent, Measuring, MemorySizes, Place, Until, Window,
    WindowProgress, Workload,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use tempfile::TempDir;

const MEMORY: MemorySizes = MemorySizes { total: Bytes(1 << 30), shared_buffers: Bytes(128 << 20) };

/// A server with pgbench's tables at scale 1, and folders for its output.
struct Bench {
    host: Host,
    server: Option<Server>,
    folder: TempDir,
    raw: PathBuf,
    interrupt: Interrupt,
}

impl Bench {
    fn new() -> Option<Bench> {
        let bench = Bench::empty(some_installation()?);
        Pgbench.load(&bench.place(), &options(&[]), MEMORY).unwrap();
        Some(bench)
    }

    /// Without pgbench's tables.
    fn empty(install: Installation) -> Bench {
        let host = Host::this();
        let folder = tempfile::tempdir().unwrap();
        let server = Some(server_of(&host, install, folder.path()));
        let raw = folder.path().join("raw");
        std::fs::create_dir(&raw).unwrap();
        Bench { host, server, folder, raw, interrupt: Interrupt::never() }
    }

    fn measure(&self, options: &Options, listener: &Listener<'_>) -> Result<Counts> {
        Pgbench.check(options).unwrap();
        let Extent::Span { span_us } = Pgbench.window(options).extent else { panic!("cycles") };
        self.measure_until(
            options,
            Until { longest: Micros(span_us), operations: None, progress: &mut || Ok(WindowProgress::default()) },
            listener,
        )
    }

    fn measure_until(&self, options: &Options, until: Until<'_>, listener: &Listener<'_>) -> Result<Counts> {
        let Until { longest, progress, .. } = until;
        let until = Until { longest, operations: None, progress };
        Pgbench.measure(Measuring { place: &self.place(), options, memory: MEMORY, until, listener })
    }

    fn place(&self) -> Place<'_> {
        let server = self.server.as_ref().unwrap();
        Place {
            host: &self.host,
            folder: self.folder.path(),
            server: Some(server),
            crash: None,
            snapshots: None,
            user: &server.spec.user,
            interrupt: &self.interrupt,
            raw: &self.raw,
        }
    }

    /// Asserts that no pipe and no process is left.
    fn assert_clean(&self) {
        let left: Vec<_> = self.raw.read_dir().unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("pipes-")), "{left:?}");
        let mut client = self.server.as_ref().unwrap().connect(DATABASE).unwrap();
        let sql = "select count(*) from pg_stat_activity where application_name = 'pgbench'";
        for _ in 0..200 {
            if client.query(sql).unwrap()[0][0].as_deref() == Some("0") {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("clients of pgbench are left");
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            drop(server.stop(&self.host));
        }
    }
}

#[derive(Default)]
struct Ears {
    began: Mutex<Vec<u64>>,
    seconds: Mutex<Vec<ClientSecond>>,
    latencies: Mutex<BTreeMap<String, u64>>,
    on_second: Option<Interrupt>,
}

impl Ears {
    fn hear(&self, event: LoadEvent) {
        match event {
            LoadEvent::Began(wall_us) => self.began.lock().unwrap().push(wall_us),
            LoadEvent::Second(second) => {
                self.seconds.lock().unwrap().push(second);
                self.on_second.iter().for_each(Interrupt::raise);
            }
            LoadEvent::Latencies(interval) => {
                *self.latencies.lock().unwrap().entry(interval.measure).or_default() += interval.latencies.len();
            }
        }
    }
}

fn text(text: &str) -> OptionValue {
    OptionValue::Text(text.to_owned())
}

fn options(pairs: &[(&str, OptionValue)]) -> Options {
    let mut options = Options::default();
    options.set("scale", OptionValue::Integer(1));
    options.set("clients", OptionValue::Integer(2));
    options.set("jobs", OptionValue::Integer(2));
    options.set("duration", text("3s"));
    for (key, value) in pairs {
        options.set(key, value.clone());
    }
    options
}

/// Asserts that pgbench's summary agrees with the counts.
fn assert_agrees(counts: &Counts) {
    let (all, reported) = (&counts.measures[0], counts.reported.as_ref().unwrap());
    assert_eq!((Some(reported.done), reported.failed), (all.done, Some(all.failed)));
    assert_eq!((reported.skipped.unwrap_or(0), reported.late.unwrap_or(0)), (all.skipped, all.late));
    let own_ms = all.latency_us_sum as f64 / all.done.unwrap() as f64 / 1e3;
    let tool_ms = reported.latency_ms_mean.unwrap();
    assert!((own_ms - tool_ms).abs() <= 0.01 * tool_ms + 0.0005, "{own_ms} {tool_ms}");
}

#[test]
fn pgbenchs_summary_and_what_was_counted_from_the_pipes_agree() {
    let Some(bench) = Bench::new() else { return };
    let options = options(&[]);
    let until = Until { longest: Micros(1_000_000), operations: None, progress: &mut || Ok(WindowProgress::default()) };
    Pgbench.warm_up(&bench.place(), &options, MEMORY, until).unwrap();
    let ears = Ears::default();
    let counts = bench.measure(&options, &|event| ears.hear(event)).unwrap();
    assert_agrees(&counts);
    let all = &counts.measures[0];
    assert_eq!((all.name.as_str(), counts.measures.len()), ("transactions", 1));
    let reported = counts.reported.as_ref().unwrap();
    assert!(all.done > Some(0) && reported.connection_ms > Some(0.0));
    let latencies = ears.latencies.into_inner().unwrap();
    assert_eq!(latencies, BTreeMap::from([("transactions".to_owned(), all.done.unwrap())]));
    assert_eq!(reported.statements.len(), 11);
    assert_eq!(reported.statements[0].script, "tpcb-like");
    let seconds = ears.seconds.into_inner().unwrap();
    assert_eq!(ears.began.into_inner().unwrap().len(), 1);
    assert!(seconds.iter().enumerate().all(|(i, second)| second.second == i as u64 + 1));
    assert!((2..=4).contains(&seconds.len()), "{}", seconds.len());
    let reported: u64 = seconds.iter().map(|second| second.done).sum();
    assert!(reported > 0 && reported <= all.done.unwrap());
    let rows = bench.server.as_ref().unwrap().connect(DATABASE).unwrap().query("select count(*) from pgbench_history");
    assert!(rows.unwrap()[0][0].as_ref().unwrap().parse::<u64>().unwrap() > all.done.unwrap(), "warm-up included");
    bench.assert_clean();
}

#[test]
fn fixed_rate_latency_counts_from_the_due_time() {
    let Some(bench) = Bench::new() else { return };
    // Each transaction takes 20 ms of one client: 100 per second are possible, 400 are due.
    let script = bench.folder.path().join("slow.sql");
    std::fs::write(&script, "\\sleep 20 ms\nSELECT 1;\n").unwrap();
    let slow = text(script.to_str().unwrap());
    let wanted = options(&[
        ("script", slow),
        ("rate", OptionValue::Number(400.0)),
        ("latency_limit", text("60ms")),
        ("duration", text("2s")),
    ]);
    let counts = bench.measure(&wanted, &drop).unwrap();
    assert_agrees(&counts);
    let all = &counts.measures[0];
    assert!(all.skipped > 0 && all.late > 0, "{all:?}");
    // Begun at most 60 ms late, completed 20 ms later: well above the 20 ms that the work takes.
    assert!(all.latency_us_sum / all.done.unwrap() > 40_000, "{all:?}");
    bench.assert_clean();
}

#[test]
fn transactions_due_in_a_final_stall_count_as_never_sent() {
    let Some(bench) = Bench::new() else { return };
    bench.server.as_ref().unwrap().connect(DATABASE).unwrap().query("CREATE SEQUENCE calls").unwrap();
    // From about the second second on, a transaction takes longer than the rest of the window.
    let script = bench.folder.path().join("stall.sql");
    std::fs::write(&script, "SELECT pg_sleep(CASE WHEN nextval('calls') > 50 THEN 2 ELSE 0 END);\n").unwrap();
    let rate = ("rate", OptionValue::Number(50.0));
    let wanted = options(&[
        ("script", text(script.to_str().unwrap())),
        rate,
        ("clients", OptionValue::Integer(2)),
        ("duration", text("2s")),
    ]);
    let counts = bench.measure(&wanted, &drop).unwrap();
    let all = &counts.measures[0];
    let unsent: u64 = all.unsent.iter().map(|unsent| unsent.count).sum();
    // Out of some 100 that pgbench draws for 2 s, and more on a busy machine with a longer window.
    assert!((10..=200).contains(&unsent), "{all:?}");
    let waits: Vec<u64> = all.unsent.iter().flat_map(|unsent| unsent.waits_us()).collect();
    assert!(waits.iter().all(|us| (500_000..20_000_000).contains(us)), "{waits:?}");
}

#[test]
fn scripts_are_measured_each_for_itself() {
    let Some(bench) = Bench::new() else { return };
    let list = OptionValue::List(vec![text("select-only@3"), text("simple-update")]);
    let wanted = options(&[("script", list), ("mode", text("prepared")), ("duration", text("1s"))]);
    let ears = Ears::default();
    let counts = bench.measure(&wanted, &|event| ears.hear(event)).unwrap();
    assert_agrees(&counts);
    let names: Vec<&str> = counts.measures.iter().map(|measure| measure.name.as_str()).collect();
    assert_eq!(names, ["transactions", "select-only", "simple-update"]);
    let done: Vec<u64> = counts.measures.iter().filter_map(|measure| measure.done).collect();
    assert_eq!(done[0], done[1] + done[2]);
    assert!(done[1] > done[2]);
    let latencies = names.into_iter().map(str::to_owned).zip(done).collect::<BTreeMap<_, _>>();
    assert_eq!(ears.latencies.into_inner().unwrap(), latencies);
}

#[test]
fn a_sampled_log_leaves_counts_exact_and_bounds_the_slowest() {
    let Some(bench) = Bench::new() else { return };
    let script = ("script", text("select-only"));
    let wanted = options(&[script.clone(), ("log_sample", OptionValue::Number(0.1)), ("duration", text("2s"))]);
    // At least one of the two seconds is whole.
    let ears = Ears::default();
    let counts = bench.measure(&wanted, &|event| ears.hear(event)).unwrap();
    assert_agrees(&counts);
    let done = counts.measures[0].done.unwrap() as f64;
    let logged = ears.latencies.lock().unwrap()["transactions"] as f64;
    assert!(done > 1000.0 && (0.05..0.15).contains(&(logged / done)), "{logged} of {done}");
    assert!(ears.seconds.lock().unwrap().iter().all(|second| second.idle_us.is_some()));
    let reported: u64 = ears.seconds.lock().unwrap().iter().map(|second| second.done).sum();
    assert!((0.3..1.5).contains(&(reported as f64 / done)), "{reported} of {done} in whole seconds");
    assert_eq!(Pgbench.operation(&wanted).unwrap().log_sample, Some(0.1));
    // Settings from the plan are not decided again, and without a warm-up all transactions are logged.
    assert_eq!(Pgbench.decide(&bench.place(), &wanted).unwrap(), Options::default());
    let open = options(&[script]);
    assert_eq!(Pgbench.decide(&bench.place(), &open).unwrap().number("log_sample"), Some(1.0));
    let summary = "number of transactions actually processed: 9\ntps = 100000000.0 (without initial connection time)\n";
    std::fs::write(bench.raw.join("pgbench-warmup.out"), summary).unwrap();
    assert_eq!(Pgbench.decide(&bench.place(), &open).unwrap().number("log_sample"), Some(0.001));
    bench.assert_clean();
}

#[test]
fn an_sql_error_in_a_script_is_reported_by_pgbench() {
    let Some(bench) = Bench::new() else { return };
    let script = bench.folder.path().join("wrong.sql");
    std::fs::write(&script, "SELECT * FROM no_such_table;\n").unwrap();
    let wanted = options(&[("script", text(script.to_str().unwrap()))]);
    let error = bench.measure(&wanted, &drop).unwrap_err();
    assert_eq!(error.kind(), Kind::Tool);
    assert!(error.to_string().contains("no_such_table"), "{error}");
    bench.assert_clean();
}

#[test]
fn own_sql_is_tried_at_scale_1_before_it_is_measured() {
    assert_eq!(Pgbench.rehearsal(&options(&[])), None, "pgbench's own scripts need no try");
    let Some(bench) = Bench::new() else { return };
    let tried = |sql: &str| {
        let script = bench.folder.path().join("mine.sql");
        std::fs::write(&script, sql).unwrap();
        let wanted = options(&[("script", text(script.to_str().unwrap())), ("scale", OptionValue::Integer(5000))]);
        Pgbench.rehearse(&bench.place(), &Pgbench.rehearsal(&wanted).unwrap(), MEMORY, Duration::from_secs(2))
    };
    tried("SELECT abalance FROM pgbench_accounts WHERE aid = 100000 * :scale;\n").unwrap();
    assert_eq!(Pgbench.rehearsal(&options(&[("script", text("orders"))])), None, "nor does what ships");
    let mut sized = options(&[("script", text("SELECT 1;")), ("data", text("20GB"))]);
    sized.0.remove("scale");
    Pgbench.rehearse(&bench.place(), &Pgbench.rehearsal(&sized).unwrap(), MEMORY, Duration::from_secs(2)).unwrap();
    let error = tried("SELEC 1;\n").unwrap_err();
    assert!(error.to_string().contains("syntax error at or near \"SELEC\""), "{error}");
    let error = tried("\\sleep 60 s\nSELECT 1;\n").unwrap_err();
    assert!(error.to_string().contains("timeout: it runs for more than 2 s"), "{error}");
    bench.assert_clean();
}

#[test]
fn an_interrupt_ends_pgbench_and_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    let ears = Ears { on_second: Some(bench.interrupt.clone()), ..Ears::default() };
    let error = bench.measure(&options(&[("duration", text("60s"))]), &|event| ears.hear(event)).unwrap_err();
    assert_eq!(error.kind(), Kind::Interrupted);
    bench.assert_clean();
}

#[test]
fn a_server_dying_midway_is_an_error() {
    let Some(mut bench) = Bench::new() else { return };
    let pid = bench.server.as_ref().unwrap().pid().unwrap();
    let killer = |event| {
        if let LoadEvent::Second(_) = event {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            // A second call finds it gone.
            rustix::process::kill_process(pid, rustix::process::Signal::QUIT).ok();
        }
    };
    let error = bench.measure(&options(&[("duration", text("60s"))]), &killer).unwrap_err();
    assert_eq!(error.kind(), Kind::Tool);
    assert!(error.to_string().contains("pgbench failed with exit code"), "{error}");
    drop(bench.server.take());
}

#[test]
fn a_pgbench_that_is_killed_midway_is_an_error() {
    let Some(bench) = Bench::new() else { return };
    let sockets = bench.server.as_ref().unwrap().spec.socket_folder.clone();
    // Kills the process at the other end of our pipes, found by the name of its log.
    let killer = |event| {
        if let LoadEvent::Second(_) = event {
            let mut names = sockets.read_dir().unwrap().flatten();
            let pipes = names.find(|e| e.file_name().to_string_lossy().starts_with("pipes-"));
            let name = pipes.unwrap().path().read_dir().unwrap().flatten().next().unwrap().file_name();
            let pid = name.to_str().unwrap().split('.').nth(1).unwrap().parse().unwrap();
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
    };
    let error = bench.measure(&options(&[("duration", text("60s"))]), &killer).unwrap_err();
    assert!(error.to_string().contains("was killed"), "{error}");
    bench.assert_clean();
}

#[test]
fn an_operation_is_described_with_defaults_and_whether_it_writes() {
    let plain = Pgbench.operation(&options(&[])).unwrap();
    assert_eq!((plain.writes, plain.clients, plain.rate), (Writes::Always, 2, None));
    assert_eq!((plain.scripts.as_slice(), plain.scale.as_deref()), (&["tpcb-like".to_owned()][..], Some("1")));
    assert_eq!((plain.cache, plain.query_mode.as_deref()), (Some(CacheState::Warm), Some("simple")));
    assert_eq!(plain.settings.keys().collect::<Vec<_>>(), ["duration", "jobs"]);
    let writes = |scripts: &[&str]| {
        let list = OptionValue::List(scripts.iter().map(|script| text(script)).collect());
        Pgbench.operation(&options(&[("script", list)])).unwrap().writes
    };
    assert_eq!(writes(&["tpcb-like@3", "simple-update"]), Writes::Always);
    assert_eq!(writes(&["select-only"]), Writes::Never);
    assert_eq!(writes(&["select-only@9", "tpcb-like"]), Writes::Unknown);
    assert_eq!(writes(&["/srv/select-only.sql"]), Writes::Unknown);
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own.sql");
    std::fs::write(&own, "BEGIN;\nSET LOCAL synchronous_commit = off;\nEND;\n").unwrap();
    let lazy = Pgbench.operation(&options(&[("script", text(own.to_str().unwrap()))])).unwrap().script_settings;
    assert_eq!((lazy[0].value.as_deref(), lazy[0].place.as_str()), (Some("off"), "line 2 of own.sql"));
    let paced = [("rate", OptionValue::Number(40.0)), ("latency_limit", text("60ms")), ("cache", text("cold"))];
    let paced = Pgbench.operation(&options(&paced)).unwrap();
    let limits = (paced.rate, paced.latency_limit_us, paced.cache);
    assert_eq!(limits, (Some(40.0), Some(60_000), Some(CacheState::Cold)));
    assert!(Pgbench.operation(&options(&[("clients", OptionValue::Integer(0))])).is_err());
}

#[test]
fn an_interrupted_pgbench_finishes_its_transactions_and_matches_our_counts() {
    let Some(bench) = Bench::new() else { return };
    let begun = std::time::Instant::now();
    let ears = Ears::default();
    let mut progress = || Ok(WindowProgress { cycles: 0, is_over: !ears.began.lock().unwrap().is_empty() });
    let until = Until { longest: Micros(600_000_000), operations: None, progress: &mut progress };
    let counts = bench.measure_until(&options(&[]), until, &|event| ears.hear(event)).unwrap();
    assert!(begun.elapsed().as_secs() < 300);
    assert_agrees(&counts);
    assert!(counts.measures[0].done > Some(0));
    // Ask at once: pgbench has not connected yet, and the alarm would kill it.
    let mut begun = false;
    let mut at_once = || Ok(WindowProgress { cycles: 0, is_over: std::mem::replace(&mut begun, true) });
    let until = Until { longest: Micros(60_000_000), operations: None, progress: &mut at_once };
    Pgbench.warm_up(&bench.place(), &options(&[]), MEMORY, until).unwrap();
    bench.assert_clean();
}

#[test]
fn a_size_of_tables_that_nothing_reads_is_warned_of() {
    let own = |script: &str, size: &[(&str, OptionValue)]| {
        let own = [("script", text(script)), ("setup", text("CREATE TABLE jobs (id int);"))];
        let mut given = options(&own);
        given.0.remove("scale");
        given.0.extend(size.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        Pgbench.warnings(&given, MEMORY)
    };
    assert_eq!(own("SELECT 1;", &[]), [] as [&str; 0], "`setup` needs no size");
    assert!(own("SELECT 1;", &[("data", text("20GB"))])[0].contains("`data` sizes pgbench's own tables"));
    assert_eq!(own("SELECT count(*) FROM pgbench_tellers;", &[("data", text("20GB"))]), [] as [&str; 0]);
}

#[test]
fn more_clients_than_scale_is_warned_of() {
    assert!(Pgbench.warnings(&options(&[]), MEMORY)[0].contains("2 clients at scale 1"));
    assert!(Pgbench.warnings(&options(&[("script", text("select-only"))]), MEMORY).is_empty());
    let half = Pgbench.data_set(&options(&[("scale", text("50% of RAM"))]), MEMORY).unwrap();
    assert_eq!(half.key, "pgbench-scale-34");
    assert!(half.expected > Bytes(500 << 20) && half.expected < Bytes(520 << 20));
    let window = Window { warm_up: Some(Micros(10_000_000)), extent: Extent::Span { span_us: 3_000_000 } };
    assert_eq!(Pgbench.window(&options(&[])), window);
}

#[test]
fn tables_and_indexes_lie_in_the_tablespaces_of_the_options() {
    let Some(bench) = Bench::new() else { return };
    let server = bench.server.as_ref().unwrap();
    let mut client = server.connect(DATABASE).unwrap();
    for name in ["hot", "cold"] {
        let folder = bench.folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        crate::host::files::give_to(&folder, &server.spec.user).unwrap();
        client.query(&crate::cluster::server::create_tablespace(name, &folder).unwrap()).unwrap();
    }
    let named = options(&[
        ("tablespace", OptionValue::Text("hot".to_owned())),
        ("index_tablespace", OptionValue::Text("cold".to_owned())),
    ]);
    assert_eq!(Pgbench.tablespaces(&named), ["hot", "cold"]);
    Pgbench.place_data(&bench.place(), &named).unwrap();
    let sql = "select t.spcname, c.relname from pg_class c join pg_tablespace t on t.oid = c.reltablespace \
               where c.relname like 'pgbench_accounts%' order by 2";
    let found = client.query(sql).unwrap();
    let found: Vec<[&str; 2]> =
        found.iter().map(|row| [row[0].as_deref().unwrap(), row[1].as_deref().unwrap()]).collect();
    assert_eq!(found, [["hot", "pgbench_accounts"], ["cold", "pgbench_accounts_pkey"]]);
    let unknown = options(&[("tablespace", OptionValue::Text("no\"ne".to_owned()))]);
    let error = Pgbench.place_data(&bench.place(), &unknown).unwrap_err().to_string();
    assert!(error.contains("no\"ne"), "{error}");
}

#[test]
fn a_trial_with_a_killed_guest_keeps_its_earlier_counts() {
    let Some(mut bench) = Bench::new() else { return };
    let wanted = recovery_options();
    let measured = |bench: &Bench, crash| {
        let place = Place { crash: Some(crash), ..bench.place() };
        let until = Until { longest: Micros(1), operations: None, progress: &mut || Ok(WindowProgress::default()) };
        Recovery.measure(Measuring { place: &place, options: &wanted, memory: MEMORY, until, listener: &drop })
    };
    let half = measured(&bench, Crash::Guest).unwrap();
    let before = half.before_crash.unwrap();
    assert!(before.wal_bytes >= 16 << 20 && before.done > 0 && half.measures.is_empty(), "{before:?}");
    // Nobody kills us here: `ask` records its arguments.
    let asked = std::cell::Cell::new((0, 0));
    let waited = Recovery.await_end(&bench.place(), &|since_us, apart_us| {
        asked.set((since_us, apart_us));
        Err(Error::tool("still there"))
    });
    assert_eq!(waited.unwrap_err().to_string(), "still there");
    let (since_us, apart_us) = asked.get();
    assert!(since_us <= apart_us, "{since_us} {apart_us}");
    let server = bench.server.take().unwrap();
    server.kill_all(&bench.host).unwrap();
    bench.server = Some(Server::crashed(server.spec.clone()));
    let (begun, away_us) = (now(), 5_000_000);
    let back = GuestIsBack { before: &before, away_us, answers_apart_us: apart_us, begun, opened: now(), mounts_us: 0 };
    let counts = measured(&bench, Crash::GuestIsBack(back)).unwrap();
    let recovery = counts.recovery.as_ref().unwrap();
    assert_eq!((recovery.crash, recovery.wal_bytes), (CrashKind::Guest, before.wal_bytes));
    assert_eq!((&recovery.before, recovery.answers_apart_us), (&before.seconds, apart_us));
    assert!(counts.measures[0].done > Some(before.done) && !recovery.after.is_empty(), "{counts:?}");
    let of = |kind| counts.stages.iter().filter(move |stage| stage.kind == kind);
    let parts: u64 = of(StageKind::Part).map(|stage| stage.length_us).sum();
    assert_eq!(of(StageKind::Ranked).map(|stage| stage.length_us).collect::<Vec<_>>(), [parts], "{:?}", counts.stages);
    assert_eq!(of(StageKind::Beside).map(|stage| stage.length_us).collect::<Vec<_>>(), [away_us]);
    assert!(
        of(StageKind::Part).any(|stage| stage.name == "redo" && stage.bytes > Some(15 << 20)),
        "{:?}",
        counts.stages
    );
    bench.assert_clean();
}

fn recovery_options() -> Options {
    let mut wanted = options(&[("wal", text("16MiB")), ("after", text("3s")), ("crash", text("machine"))]);
    wanted.0.remove("duration");
    Recovery.check(&wanted).unwrap();
    wanted
}

/// What `docs/scripts.md` says of a table or transaction of a shipped script: the two figures of its row.
fn stated(script: &str, name: &str) -> [f64; 2] {
    let page = include_str!("../../../docs/scripts.md");
    let section = page.split("\n## ").find(|section| section.starts_with(&format!("{script}: "))).unwrap();
    let row = section.lines().find_map(|line| line.strip_prefix(&format!("| `{name}` | ")));
    let mut cells = row.unwrap_or_else(|| panic!("{script} has no row `{name}`")).split(" |");
    [(); 2].map(|()| cells.next().unwrap().trim().parse().unwrap())
}

/// Loads each shipped script, and compares its size, its rows and the WAL of each transaction with what its page says.
fn assert_shipped_scripts(install: Installation) {
    let bench = Bench::empty(install);
    let server = bench.server.as_ref().unwrap();
    let mut client = server.connect(DATABASE).unwrap();
    // Neither full-page images nor autovacuum in the WAL.
    for sql in ["full_page_writes", "autovacuum"] {
        client.query(&format!("ALTER SYSTEM SET {sql} = off")).unwrap();
    }
    client.query("SELECT pg_reload_conf()").unwrap();
    let mut number = |sql: &str| client.number::<f64>(sql).unwrap();
    for shipped in &shipped::ALL {
        let mut wanted = options(&[("script", text(shipped.name)), ("data", text("20MB"))]);
        wanted.0.remove("scale");
        let set = Pgbench.data_set(&wanted, MEMORY).unwrap();
        let units: u64 = set.key.rsplit('-').next().unwrap().parse().unwrap();
        let (size, all) = ("SELECT pg_database_size(current_database())", format!("{}: {set:?}", shipped.name));
        let before = number(size);
        Pgbench.load(&bench.place(), &wanted, MEMORY).unwrap();
        let grown = (number(size) - before) / set.expected.0 as f64;
        assert!((0.95..1.12).contains(&grown), "{all}: {grown}");
        let created = shipped.setup.lines().filter_map(|line| line.strip_prefix("CREATE TABLE "));
        let tables: Vec<&str> = created.map(|rest| rest.split(' ').next().unwrap()).collect();
        for table in &tables {
            let rows = number(&format!("SELECT count(*) FROM {table}"));
            assert_eq!(rows, stated(shipped.name, table)[0] * units as f64, "{all}: {table}");
        }
        for transaction in shipped.transactions {
            let [weight, wal] = stated(shipped.name, transaction.name);
            assert_eq!(weight, f64::from(transaction.weight), "{all}: {}", transaction.name);
            let file = bench.folder.path().join("one.sql");
            std::fs::write(&file, transaction.sql).unwrap();
            let position = "SELECT pg_current_wal_insert_lsn() - '0/0'";
            let before = number(position);
            let pgbench = Command::new(server.spec.install.bin.join("pgbench"))
                .args(["-n", "-t", "100", "--random-seed", "7", "-s", &units.to_string(), "-f"])
                .args([file.to_str().unwrap()])
                .args(server.client_args().unwrap())
                .arg(DATABASE);
            bench.host.run(&pgbench).unwrap();
            let written = (number(position) - before) / 100.0;
            assert!((written - wal).abs() < 0.35 * wal + 150.0, "{all}: {}: {written} B", transaction.name);
        }
        for table in &tables {
            let bytes = number(&format!("SELECT avg(pg_column_size(t.*))::bigint FROM {table} AS t"));
            let stated = stated(shipped.name, table)[1];
            assert!((bytes / stated - 1.0).abs() < 0.1, "{all}: {table}: {bytes} B");
        }
    }
}

#[test]
fn shipped_scripts_are_what_their_page_says() {
    let Some(install) = some_installation() else { return };
    assert_shipped_scripts(install);
}

#[test]
fn shipped_scripts_are_the_same_on_another_server() {
    let named = std::env::var_os("PGSTRATA_TEST_POSTGRES").unwrap_or_default();
    let Some(bin) = std::env::split_paths(&named).find(|bin| bin.join("initdb").is_file()) else {
        println!("skipped: no second PostgreSQL in PGSTRATA_TEST_POSTGRES (scripts/setup postgresql)");
        return;
    };
    assert_shipped_scripts(install::find(&Host::this(), bin.to_str().unwrap()).unwrap());
}

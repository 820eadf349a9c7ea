//! `pgstrata serve`: what it refuses, by raw requests, and its pages in a real browser.

use crate::report::chromium::Chromium;
use crate::report::runs;
use crate::report::verdicts::power_cuts;
use pgstrata::record::cut::CutRecord;
use pgstrata::record::event::{Event, Stamped, Step};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A name that would be markup, a script and a way out, were it not text.
const HOSTILE: &str = "2026-01-01-<img src=x onerror=\"window.hacked=1\">'&?a=%2e%2e";

/// A server of a folder, ended with the test.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn of(results: &Path) -> Served {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgstrata"));
        command.arg("serve").arg(results).args(["--listen", "127.0.0.1:0", "--allow-host", "bench.example"]);
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("serving http://").unwrap().trim_end_matches('/').to_owned();
        Served { child, address }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Status and whole answer to a request as it is given.
    fn raw(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
        (status.unwrap_or_else(|| panic!("{request}: {text}")), text)
    }

    fn get(&self, target: &str) -> (u16, String) {
        self.raw(&format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address))
    }
}

impl Served {
    /// A list in which every run has its answer; one list computes at least one.
    fn answered(&self, target: &str) -> String {
        let mut lists = std::iter::repeat_with(|| self.get(target).1).take(9);
        lists.find(|list| !list.contains("in its report")).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Keeps what the browser shows, for people: as base64, in the folder of the variable PGSTRATA_TEST_PICTURES.
fn picture(browser: &mut Chromium, name: &str) {
    if let Some(folder) = std::env::var_os("PGSTRATA_TEST_PICTURES") {
        let picture = browser.call("Page.captureScreenshot", json!({"format": "png"}));
        fs::write(Path::new(&folder).join(format!("{name}.png.base64")), picture["data"].as_str().unwrap()).unwrap();
    }
}

/// What a cut left in a folder of the results.
fn cut(results: &Path, name: &str, plan: &str) {
    let verdicts = power_cuts().into_iter().map(|cut| cut.record).collect();
    let (name, commands) = (results.join(name), vec!["pgstrata cut plan.toml --states 300".to_owned()]);
    let record = CutRecord {
        format: 1,
        made: "2026-03-05T10:00:00Z".to_owned(),
        name: plan.to_owned(),
        commands,
        verdicts,
        ..CutRecord::default()
    };
    fs::create_dir(&name).unwrap();
    fs::write(name.join("cut.json"), serde_json::to_vec(&record).unwrap()).unwrap();
}

/// Runs the program for its standard output, in the folder of the fixtures.
fn printed(args: &[&str]) -> Vec<u8> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pg_test_fsync");
    let output = Command::new(env!("CARGO_BIN_EXE_pgstrata")).args(args).current_dir(fixtures).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Two runs, one of them with a hostile name; the folder of both.
fn two_runs(folder: &Path) -> PathBuf {
    let results = folder.join("results");
    for (id, times, name) in [("0ld", 1.0, HOSTILE), ("0new", 0.8, "2026-02-02-second")] {
        let made = runs::make(folder, id, times);
        fs::rename(made, results.join(name)).unwrap();
    }
    results
}

#[test]
fn nothing_but_the_runs_of_the_folder_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let results = two_runs(folder.path());
    fs::write(folder.path().join("secret"), "TOPSECRET").unwrap();
    fs::write(results.join("loose"), "TOPSECRET").unwrap();
    // A run beside the folder, links to it, and a run with a link to a secret inside.
    let outside = runs::make(&folder.path().join("outside"), "0ut", 1.0);
    symlink(&outside, results.join("linked")).unwrap();
    let inner = runs::make(folder.path(), "0in", 1.0);
    let inner_name = inner.file_name().unwrap().to_string_lossy().into_owned();
    fs::remove_file(inner.join("plan.toml")).unwrap();
    symlink(folder.path().join("secret"), inner.join("plan.toml")).unwrap();
    let served = Served::of(&results);

    let outside = outside.strip_prefix(folder.path()).unwrap().display().to_string().replace('/', "%2f");
    for target in [
        "/runs/linked/report",
        "/runs/..%2fsecret",
        "/runs/%2e%2e/secret",
        &format!("/runs/..%2f{outside}/report"),
        &format!("/runs/{}/report", folder.path().display().to_string().replace('/', "%2f")),
        "/secret",
        "/../secret",
        "/../../../../../../etc/passwd",
        "/loose",
        "/runs/loose/report",
        "/runs/2026-02-02-second/plan.toml",
        "/runs/2026-02-02-second/../../../secret",
        "/runs/2026-02-02-second/report.exe",
        "/assets/../secret",
        "/compare?a=2026-02-02-second&b=linked",
    ] {
        let (status, text) = served.get(target);
        assert!(status == 404 && !text.contains("TOPSECRET"), "{target}: {text}");
    }
    let (status, text) = served.get(&format!("/runs/{inner_name}/report"));
    assert!(status == 403 && text.contains("is a symbolic link") && !text.contains("TOPSECRET"), "{text}");
    let (status, text) = served.get("/");
    assert!(status == 200 && text.contains("2026-02-02-second") && !text.contains(">linked<"), "{text}");
    assert_eq!(served.get("/runs/2026-02-02-second/report.csv").0, 200);
    assert!(served.get("/runs/2026-02-02-second/report.openmetrics").1.ends_with("# EOF\n"));
}

#[test]
fn other_results_are_listed_with_their_answers() {
    let folder = tempfile::tempdir().unwrap();
    let results = two_runs(folder.path());
    let at = |name: &str| results.join(name).display().to_string();
    cut(&results, "cut-0000abcd", HOSTILE);
    let probe = printed(&["probe", folder.path().to_str().unwrap(), "--seconds", "0.2", "--json"]);
    fs::write(at("here.json"), probe).unwrap();
    fs::write(at("both.json"), printed(&["compare", "15-en.txt", "18.txt", "--json", "--html", &at("both.html")]))
        .unwrap();
    printed(&["import", "18.txt", "--name", "old-server", "--output", &at("")]);
    fs::write(at("others.json"), "{\"secret\": \"TOPSECRET\"}").unwrap();
    // A link to a cut elsewhere, and to a file.
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    cut(&outside, "cut-elsewhere", "TOPSECRET");
    symlink(outside.join("cut-elsewhere"), results.join("cut-linked")).unwrap();
    symlink(at("here.json"), results.join("linked.json")).unwrap();
    let served = Served::of(&results);
    let list = served.answered("/");
    let others = list.split("<table class=\"runs others\">").nth(1).unwrap();
    for part in [
        "Convicted: tmpfs",
        "<td>power cut</td>",
        "WAL writes",
        "<td>probe</td>",
        "<td>comparison</td>",
        "<td>page</td>",
        "<td>import</td>",
    ] {
        assert!(others.contains(part), "{part}: {others}");
    }
    assert_eq!(others.matches("class=\"other\"").count(), 5, "{others}");
    assert!(list.contains("1.50 times ext4"), "answers of the runs: {list}");
    let link = |kind: &str| {
        let row = others.split("<tr>").find(|row| row.contains(&format!("<td>{kind}</td>"))).unwrap();
        row.split("href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&#x2f;", "/")
    };
    let (status, page) = served.get(&link("power cut"));
    assert!(status == 200 && page.contains("What must survive") && !page.contains("<img"), "{page}");
    let (status, text) = served.get(&link("probe"));
    assert!(status == 200 && text.contains("text/plain") && text.contains("Credibility"), "{text}");
    assert!(served.get(&link("comparison")).1.contains("measurements side by side"));
    let (status, stored) = served.get(&link("page"));
    assert!(
        status == 200 && stored.contains("Content-Security-Policy: sandbox allow-downloads; default-src"),
        "{stored}"
    );
    assert!(served.get(&link("import")).1.contains("application/json"));
    for target in ["cut-linked", "cut-elsewhere", "linked.json", "others.json", "2026-02-02-second", "..%2foutside"] {
        let (status, text) = served.get(&format!("/others/{target}"));
        assert!(status == 404 && !text.contains("TOPSECRET"), "{target}: {text}");
    }
    assert!(served.get("/?q=import+old").1.contains("<td>import</td>"));
    assert!(!served.get("/?q=power+cut").1.contains("<td>import</td>"));
}

#[test]
fn no_answer_is_computed_while_a_run_is_active() {
    let folder = tempfile::tempdir().unwrap();
    let results = two_runs(folder.path());
    let writer = runs::begin(folder.path(), "0live");
    let served = Served::of(&results);
    assert_eq!(served.get("/").1.matches("in its report").count(), 2);
    drop(writer);
    served.answered("/?q=second");
}

#[test]
fn foreign_hosts_and_writing_requests_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::of(&two_runs(folder.path()));
    let by = |host: &str| served.raw(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).0;
    assert_eq!((by("attacker.example"), by("localhost"), by("bench.example:8432")), (421, 200, 200));
    for method in ["POST", "PUT", "DELETE"] {
        let request = format!("{method} / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(served.raw(&request).0, 405, "{method}");
    }
    let (status, text) = served.raw("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(status == 200 && text.ends_with("\r\n\r\n") && text.contains("script-src 'self'"), "{text}");
}

#[test]
fn a_run_is_opened_and_compared_with_two_clicks() {
    let folder = tempfile::tempdir().unwrap();
    let results = two_runs(folder.path());
    let Some(mut browser) = Chromium::start() else { return };
    let served = Served::of(&results);
    browser.size(1200, 900);
    browser.go(&served.url("/"));
    let names = "Array.from(document.querySelectorAll('a.open')).map(link => link.textContent)";
    assert_eq!(browser.evaluate(names), json!(["2026-02-02-second", HOSTILE]));
    assert_eq!(browser.evaluate("[window.hacked === undefined, document.images.length]"), json!([true, 0]));

    browser.evaluate("document.getElementById('q').value = 'XFS second'");
    browser.click(".search button");
    browser.wait_until("location.search.includes('second') && document.readyState === 'complete'");
    assert_eq!(browser.evaluate(names), json!(["2026-02-02-second"]));
    browser.click("a.open");
    browser.wait_until("location.pathname.endsWith('/report') && document.readyState === 'complete'");
    browser.wait_until("document.querySelector('[data-chart=ranking] canvas, [data-chart=ranking] svg') !== null");

    browser.go(&served.url("/"));
    browser.click("tr:nth-child(2) a.pick");
    browser.wait_until("document.querySelector('.chosen b') !== null");
    assert_eq!(browser.evaluate("document.querySelector('.chosen b').textContent"), json!(HOSTILE));
    browser.click("a.pick");
    browser.wait_until("location.pathname === '/compare' && document.querySelector('#pairs table') !== null");
    picture(&mut browser, "compare-1200");
    let text = browser.evaluate("document.querySelector('main').innerText");
    assert!(text.as_str().unwrap().contains(HOSTILE) && text.as_str().unwrap().contains("slower"), "{text}");
    assert_eq!(browser.evaluate("[window.hacked === undefined, document.images.length]"), json!([true, 0]));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let elsewhere: Vec<String> = browser
        .requests()
        .into_iter()
        .filter(|url| !url.starts_with(&served.url("/")) && !url.starts_with("data:"))
        .collect();
    assert_eq!(elsewhere, Vec::<String>::new());
}

#[test]
fn the_page_follows_a_live_run_without_reloading() {
    let Some(mut browser) = Chromium::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut writer = runs::begin(folder.path(), "0live");
    let order = writer.folder().record().order.clone();
    let at = |what| Stamped { at_us: 1_772_442_873_000_000, what };
    let trials = order.len() as u32;
    let started = Event::RunStarted {
        run: "0live".to_owned(),
        trials,
        expected_us: 60_000_000,
        most_repeats: 0,
        cases: Default::default(),
    };
    writer.append(&at(started)).unwrap();
    let served = Served::of(&folder.path().join("results"));
    browser.size(390, 800);
    browser.go(&served.url("/"));
    assert_eq!(browser.evaluate("document.querySelector('.state').textContent"), json!("running"));
    browser.click("a.open");
    browser.wait_until(&format!(
        "document.querySelector('#trials') && document.querySelector('#trials').textContent === '{trials}'"
    ));
    browser.evaluate("window.before = true");

    writer.append(&at(Event::TrialStarted { trial: order[0].clone() })).unwrap();
    writer.append(&at(Event::StepStarted { trial: order[0].clone(), step: Step::Measure, expected_us: None })).unwrap();
    writer.append(&at(Event::Warning { message: HOSTILE.to_owned() })).unwrap();
    browser.wait_until("document.getElementById('now').textContent.includes('measuring')");
    assert_eq!(browser.evaluate("document.querySelector('#warnings li').textContent"), json!(HOSTILE));
    picture(&mut browser, "live-390");
    for key in &order {
        runs::measure(&writer, key, 1.0);
        let done = Event::TrialDone {
            trial: key.clone(),
            wall_us: 9,
            measured_us: 9,
            rate: Some(1234.0),
            full_after_us: None,
        };
        writer.append(&at(done)).unwrap();
    }
    browser.wait_until(&format!("document.getElementById('measured').textContent === '{trials}'"));
    let widest = "[document.documentElement.scrollWidth, document.body.scrollWidth]";
    assert_eq!(browser.evaluate(widest), json!([390, 390]));
    let done = Event::RunDone { wall_us: 9, measured_us: 9, done: trials, not_run: 0 };
    writer.append(&at(done)).unwrap();
    drop(writer);
    browser.wait_until("document.getElementById('state').textContent === 'complete'");
    assert_eq!(
        browser.evaluate("[window.before, window.hacked === undefined, document.images.length]"),
        json!([true, true, 0])
    );
    browser.click("#report");
    browser.wait_until("location.pathname.endsWith('/report') && document.readyState === 'complete'");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_pages_fit_a_phone() {
    let folder = tempfile::tempdir().unwrap();
    let results = two_runs(folder.path());
    // A name without a place to break, and one that nobody can read.
    let long = format!("2026-03-03-{}", "x".repeat(120));
    fs::rename(runs::make(folder.path(), "0long", 1.0), results.join(long)).unwrap();
    fs::create_dir(results.join("2026-04-04-damaged")).unwrap();
    fs::write(results.join("2026-04-04-damaged/run.json"), "{").unwrap();
    cut(&results, "cut-0000abcd", &"which-filesystem-".repeat(9));
    let Some(mut browser) = Chromium::start() else { return };
    let served = Served::of(&results);
    for (width, scheme) in [(1200, "light"), (390, "light"), (390, "dark")] {
        browser.size(width, 900);
        browser.prefer(scheme);
        for (path, name) in [
            ("/", "list"),
            ("/?a=2026-02-02-second", "chosen"),
            ("/?q=nothing-of-the-kind", "none"),
            ("/compare?a=2026-02-02-second&b=2026-04-04-damaged", "refused"),
            ("/runs/none", "missing"),
            ("/fleet", "fleet"),
            ("/others/cut-0000abcd", "cut"),
        ] {
            browser.go(&served.url(path));
            let widest = "[document.documentElement.scrollWidth, document.body.scrollWidth]";
            assert_eq!(browser.evaluate(widest), json!([width, width]), "{path}");
            picture(&mut browser, &format!("{name}-{width}-{scheme}"));
        }
        browser.go(&served.url("/"));
        let text = browser.evaluate("document.querySelector('main').innerText");
        assert!(text.as_str().unwrap().contains("2026-04-04-damaged"), "{text}");
    }
}

#[test]
fn a_search_finds_runs_by_host_kernel_and_server() {
    let folder = tempfile::tempdir().unwrap();
    let results = two_runs(folder.path());
    let served = Served::of(&results);
    let path = results.join("2026-02-02-second");
    let trials = path.join("trials");
    let mut moved = 0;
    for case in fs::read_dir(&trials).unwrap() {
        for trial in fs::read_dir(case.unwrap().path()).unwrap() {
            let file = trial.unwrap().path().join("trial.json");
            let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            record["host"]["hostname"] = "db7.example".into();
            record["host"]["kernel"] = "7.7.7-lab".into();
            fs::write(&file, record.to_string()).unwrap();
            moved += 1;
        }
    }
    assert!(moved > 0);
    for query in ["DB7", "7.7.7-lab", "db7.example+second"] {
        let (status, text) = served.get(&format!("/?q={query}"));
        assert!(status == 200 && text.contains("1 of 2 runs") && text.contains("db7.example"), "{query}: {text}");
    }
    // Nothing says that a trial was changed; new events do.
    let change = |text: &str| {
        for case in fs::read_dir(&trials).unwrap().map(|case| case.unwrap().path()).filter(|case| case.is_dir()) {
            for trial in fs::read_dir(case).unwrap() {
                let file = trial.unwrap().path().join("trial.json");
                let record = fs::read_to_string(&file).unwrap().replace("db7.example", text);
                fs::write(&file, record).unwrap();
            }
        }
    };
    change("db8.example");
    let mut events = fs::read_to_string(path.join("events.jsonl")).unwrap();
    let warning = Stamped { at_us: 1, what: Event::Warning { message: "x".to_owned() } };
    events.push_str(&(serde_json::to_string(&warning).unwrap() + "\n"));
    fs::write(path.join("events.jsonl"), events).unwrap();
    assert!(served.get("/?q=db8").1.contains("1 of 2 runs"));
    assert!(served.get("/?q=db7").1.contains("0 of 2 runs"));
}

#[test]
fn hosts_are_shown_and_every_page_links_to_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let results = two_runs(folder.path());
    let served = Served::of(&results);
    let (_, list) = served.get("/");
    let link = list.split("<p class=\"fleets\">").nth(1).and_then(|rest| rest.split('"').nth(1)).unwrap_or_default();
    let link = link.replace("&amp;", "&").replace("&#x2f;", "/");
    assert!(link.starts_with("/fleet?by=model,firmware,kernel&plan="), "{list}");
    for target in [
        &link,
        "/fleet",
        "/runs/2026-02-02-second/report",
        &format!("/compare?a=2026-02-02-second&b={}", encoded(HOSTILE)),
    ] {
        let (status, text) = served.get(target);
        assert!(status == 200 && text.contains("href=\"/\">All runs"), "{target}: {}", &text[..text.len().min(2000)]);
    }
    let (_, text) = served.get(&link);
    assert!(text.contains("class=\"dot\""), "{text}");
    for target in ["/fleet?by=colour", "/fleet?plan=none", "/fleet?by=model&plan=../secret"] {
        assert_eq!(served.get(target).0, 404, "{target}");
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

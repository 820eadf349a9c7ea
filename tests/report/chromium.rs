//! A headless Chromium, driven through its DevTools protocol over pipes: JSON messages that end with a zero byte, on
//! the browser's file descriptors 3 and 4. Needs no port, no WebSocket and no driver program.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Where Chromium may be. The headless shell first: it is smaller, and opens no window that nobody sees.
const PROGRAMS: [&str; 4] =
    ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/// How long an answer may take before the test fails. No figure rests on it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page.
pub struct Chromium {
    child: Child,
    to: File,
    from: Receiver<Value>,
    session: Option<String>,
    next_id: u64,
    /// Messages of the page that were not answers, in order.
    pub events: VecDeque<Value>,
    folder: tempfile::TempDir,
}

impl Chromium {
    /// Starts one with an empty profile; `None`, with the reason printed, where there is none on this machine.
    pub fn start() -> Option<Chromium> {
        let Some(program) = PROGRAMS.iter().find(|program| Path::new(program).exists()) else {
            println!("skipped: no Chromium on this machine (looked for {})", PROGRAMS.join(", "));
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let pipes = ["to", "from"].map(|name| {
            let path = folder.path().join(name);
            let made = Command::new("mkfifo").arg(&path).status().unwrap();
            assert!(made.success(), "mkfifo {}", path.display());
            path
        });
        let mut command = Command::new("sh");
        command.arg("-c").arg("exec \"$@\" 3<\"$0/to\" 4>\"$0/from\"").arg(folder.path()).arg(program);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        command.args(["--disable-dev-shm-usage", "--remote-debugging-pipe", "--hide-scrollbars"]);
        // What it makes for its socket it leaves when it is killed.
        command.env("TMPDIR", folder.path());
        // From a file, so that the page of another file stays in its process: what was set for the page before, holds.
        let blank = folder.path().join("blank.html");
        std::fs::write(&blank, "<!doctype html><title>blank</title>").unwrap();
        command.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
        command.arg(format!("file://{}", blank.display()));
        // A group of its own, so that the browser's helpers go with it.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let to = OpenOptions::new().write(true).open(&pipes[0]).unwrap();
        let from = messages(File::open(&pipes[1]).unwrap());
        let mut browser = Chromium { child, to, from, session: None, next_id: 0, events: VecDeque::new(), folder };
        browser.attach();
        Some(browser)
    }

    fn attach(&mut self) {
        let page = self.own_page();
        let attached = self.call("Target.attachToTarget", json!({"targetId": page, "flatten": true}));
        self.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        let downloads = json!({"behavior": "allow", "downloadPath": self.downloads(), "eventsEnabled": false});
        std::fs::create_dir(self.downloads()).unwrap();
        self.call("Browser.setDownloadBehavior", downloads);
    }

    /// The page that Chromium opens by itself. Beside a second one Chromium 156 sometimes stops drawing: no animation frame comes
    /// and no screenshot, while scripts are still answered.
    fn own_page(&mut self) -> Value {
        let start = Instant::now();
        loop {
            let known = self.call("Target.getTargets", json!({}));
            if let Some(page) = known["targetInfos"].as_array().unwrap().iter().find(|one| one["type"] == "page") {
                return page["targetId"].clone();
            }
            assert!(start.elapsed() < PATIENCE, "Chromium opened no page: {known}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Folder that downloads go to.
    pub fn downloads(&self) -> PathBuf {
        self.folder.path().join("downloads")
    }

    /// Calls one method and waits for its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.answer(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers write the parameters in place")]
    fn answer(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = self.session.as_ref().filter(|_| !method.starts_with("Browser.")) {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.from.recv_timeout(PATIENCE).unwrap_or_else(|e| panic!("{method}: {e}"));
            if answer["id"] == json!(id) {
                return answer.get("error").map_or_else(|| Ok(answer["result"].clone()), |error| Err(error.clone()));
            }
            if answer.get("id").is_none() {
                self.events.push_back(answer);
            }
        }
    }

    /// The value of a JavaScript expression; a promise is waited for.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        self.evaluated(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    fn evaluated(&mut self, expression: &str) -> Result<Value, Value> {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.answer("Runtime.evaluate", params)?;
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {}", answer["exceptionDetails"]);
        Ok(answer["result"]["value"].clone())
    }

    /// Opens a file and waits until it has loaded.
    pub fn open(&mut self, path: &Path) {
        self.call("Page.navigate", json!({"url": format!("file://{}", path.display())}));
        self.wait_until(&format!(
            "location.pathname === {:?} && document.readyState === 'complete'",
            path.display().to_string()
        ));
    }

    /// Whether the page is drawn at all: an animation frame comes. On a busy machine Chromium 156 opens one page in some hundreds
    /// of which it never draws one, while scripts are answered and a screenshot is waited for in vain.
    pub fn draws(&mut self) -> bool {
        self.evaluate(
            "Promise.race([new Promise(done => requestAnimationFrame(() => done(true))),
                new Promise(done => setTimeout(() => done(false), 20000))])",
        ) == json!(true)
    }

    /// Goes to an address and waits until its page has loaded.
    pub fn go(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url}));
        self.wait_until(&format!("location.href === {url:?} && document.readyState === 'complete'"));
    }

    /// Waits until an expression is true, over the pages that come and go meanwhile: of one that goes Chromium answers that it was
    /// navigated.
    pub fn wait_until(&mut self, expression: &str) {
        let start = Instant::now();
        loop {
            match self.evaluated(expression) {
                Ok(Value::Bool(true)) => return,
                Err(error) if !error.to_string().contains("navigated") => panic!("{expression}: {error}"),
                _ => {}
            }
            assert!(start.elapsed() < PATIENCE, "never true: {expression}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Size of the view in CSS pixels.
    pub fn size(&mut self, width: u32, height: u32) {
        let params = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", params);
    }

    /// What the system prefers: `dark` or `light`.
    pub fn prefer(&mut self, scheme: &str) {
        let params = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", params);
    }

    /// A click at the middle of what a selector finds, as a person's mouse does it: once the page is loaded and drawn, since
    /// Chromium drops clicks on a document that it has not drawn yet.
    pub fn click(&mut self, selector: &str) {
        self.wait_until("document.readyState === 'complete'");
        let find = format!(
            "(async () => {{ const e = document.querySelector({selector:?}); \
             e.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
             await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        );
        let at = self.evaluate(&find);
        for kind in ["mousePressed", "mouseReleased"] {
            let params = json!({"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", params);
        }
    }

    /// The text of a downloaded file, once it is there.
    pub fn downloaded(&self, path: &Path) -> String {
        let start = Instant::now();
        loop {
            match std::fs::read_to_string(path) {
                Ok(text) if !text.is_empty() => return text,
                _ => assert!(start.elapsed() < PATIENCE, "{} never came", path.display()),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Every error and warning of the page so far: console, exceptions, refused by the content security policy.
    pub fn complaints(&mut self) -> Vec<String> {
        // A round trip, so that what was sent before is here.
        self.evaluate("1");
        let is_complaint = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => {
                ["error", "warning", "assert"].iter().any(|kind| event["params"]["type"] == json!(kind))
            }
            Some("Log.entryAdded") => event["params"]["entry"]["level"] != json!("verbose"),
            _ => false,
        };
        self.events.iter().filter(is_complaint).map(|event| event["params"].to_string()).collect()
    }

    /// Addresses that the page asked for, but for itself and what it holds.
    pub fn requests(&mut self) -> Vec<String> {
        self.evaluate("1");
        let sent = self.events.iter().filter(|event| event["method"] == json!("Network.requestWillBeSent"));
        let urls = sent.filter_map(|event| event["params"]["request"]["url"].as_str().map(str::to_owned));
        urls.filter(|url| !url.starts_with("file:") && !url.starts_with("blob:")).collect()
    }
}

/// Reads messages on a thread of its own, so that waiting for one can end.
fn messages(from: File) -> Receiver<Value> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(from);
        let mut bytes = Vec::new();
        while reader.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
            bytes.pop();
            let Ok(message) = serde_json::from_slice(&bytes) else { break };
            if send.send(message).is_err() {
                break;
            }
            bytes.clear();
        }
    });
    receive
}

impl Drop for Chromium {
    fn drop(&mut self) {
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            // It may be gone already; the folder goes in any case.
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        }
        self.child.wait().ok();
    }
}

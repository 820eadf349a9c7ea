//! `pgstrata serve`: shows the runs of a folder in a browser, read-only.

mod fleet;
mod others;
mod runs;

use super::commands::with_scripts;
use super::estimate::rounded;
use super::out;
use super::progress::named;
use super::status::{LastTrial, RunState, RunStatus, status};
use crate::analyse::compare;
use crate::analyse::compare::from_run::{self, RunSource};
use crate::analyse::findings::names::stored;
use crate::analyse::fleet::GroupBy;
use crate::error::{Kind, Result};
use crate::host::time::wall_us;
use crate::report::serve::{ICON, LIVE_SCRIPT, LiveView, list, live, message, style};
use crate::report::{self, ALL};
use crate::serve::{Answer, HttpRequest, HttpServer, Response};
use crate::store::results::Results;
use runs::Runs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

/// Default address.
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PORT: u16 = 8432;

/// Show the results of a folder in a browser: list with answers, search, reports, comparison, live progress
///
/// Read-only: it answers GET and HEAD and changes nothing. Reports are computed from the run folders when they are asked
/// for.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata serve                            the runs in results/, at http://127.0.0.1:8432/
  pgstrata serve /srv/results --listen 127.0.0.1:0
  pgstrata serve --listen 0.0.0.0:8432 --allow-host db1.example    for a whole network
  ssh -L 8432:127.0.0.1:8432 db1            from another machine, without opening a port

There is no password: whoever reaches the address can read every run of the folder. It is a loopback address unless --listen \
says otherwise. A request must call the server by IP address, as localhost or by a name given with --allow-host, so that no \
other site's page can read the answers. It shows what is directly in the folder: runs; power cuts and imports; files that \
`probe --json`, `compare --json` and `compare --html` wrote. Links are not followed. Answers that are not known yet are computed \
only while no run of the folder is active.

Ends with Ctrl-C. Exit code: 130 interrupted, 2 not a folder of runs, 3 cannot listen on the address.")]
pub struct Args {
    /// Folder in which the runs are
    #[arg(value_name = "RESULTS", default_value = "results")]
    results: PathBuf,
    /// Address and port to listen at: ADDRESS, ADDRESS:PORT or :PORT; port 0 takes any free one [default: 127.0.0.1:8432]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Name by which browsers may call this server; may be given several times
    #[arg(long = "allow-host", value_name = "NAME")]
    names: Vec<String>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    match text.strip_prefix(':') {
        Some(port) => match port.parse() {
            Ok(port) => Ok(SocketAddr::new(LOOPBACK, port)),
            Err(_) => Err(format!("`{port}` is not a port")),
        },
        None => text
            .parse()
            .or_else(|_| text.trim_matches(['[', ']']).parse().map(|ip: IpAddr| SocketAddr::new(ip, PORT)))
            .map_err(|_| "expected an IP address with or without a port: 127.0.0.1:8432, [::1]:8432, :8432".to_owned()),
    }
}

/// Serves until the process is ended.
///
/// # Errors
/// If there is no such folder, or the address is unavailable.
pub fn run(args: &Args) -> Result<u8> {
    let results = Results::open(&args.results)?;
    let server = HttpServer::listen(args.listen.unwrap_or(SocketAddr::new(LOOPBACK, PORT)), &args.names)?;
    let address = server.address()?;
    if !address.ip().is_loopback() {
        out::remark(&format!("warning: whoever reaches {address} can read every run; there is no password"));
    }
    out::line(&format!("serving http://{address}/"))?;
    let site = RunsSite { runs: Runs::of(results), folder: args.results.display().to_string() };
    let answer: Arc<Answer> = Arc::new(move |request: &HttpRequest| site.answer(request));
    server.run(&answer);
    Ok(0)
}

/// The site to serve.
struct RunsSite {
    runs: Runs,
    folder: String,
}

/// Path of the list.
const HOME: &str = "/";
const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

impl RunsSite {
    fn answer(&self, request: &HttpRequest) -> Response {
        let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
        let found = match path.as_slice() {
            [] => self.runs.view(request, &self.folder).and_then(|view| Ok(Some(Response::new(HTML, list(&view)?)))),
            ["assets", "style.css"] => Ok(Some(Response::new("text/css; charset=utf-8", style()))),
            ["assets", "icon.svg"] | ["favicon.ico"] => Ok(Some(Response::new("image/svg+xml", ICON))),
            ["assets", "live.js"] => Ok(Some(Response::new("text/javascript; charset=utf-8", LIVE_SCRIPT))),
            ["compare"] => self.compare(request),
            ["fleet"] => self.fleet(request),
            ["runs", name] => self.run(name),
            ["runs", name, "status.json"] => self.status(name),
            ["runs", name, file] => self.report(name, file),
            ["others", name] => others::page(&self.runs.results, name),
            _ => Ok(None),
        };
        match found {
            Ok(Some(response)) => response,
            Ok(None) => refused(404, "Not found", "There is no such page, or no such result in this folder.", None),
            Err(error) => {
                let status = if error.kind() == Kind::Bug { 500 } else { 403 };
                refused(status, "This run cannot be shown", &error.chain(), error.hint_text())
            }
        }
    }

    /// An active run has its own page; any other shows its report.
    fn run(&self, name: &str) -> Result<Option<Response>> {
        let Some(view) = self.view(name)? else { return Ok(None) };
        Ok(Some(match view.is_live {
            true => Response::new(HTML, live(&view)?),
            false => Response::see(format!("/runs/{}/report", encoded(name))),
        }))
    }

    fn status(&self, name: &str) -> Result<Option<Response>> {
        self.view(name)?.map(|view| Ok(Response::new("application/json", out::json_line(&view)?))).transpose()
    }

    fn view(&self, name: &str) -> Result<Option<LiveView>> {
        self.runs.results.run(name)?.map(|folder| Ok(live_view(name, &status(&folder, wall_us())?))).transpose()
    }

    /// `report` is the page, `report.csv` and so on are the other formats.
    fn report(&self, name: &str, file: &str) -> Result<Option<Response>> {
        let extension = match file.strip_prefix("report") {
            Some("") => "html",
            Some(rest) => rest.strip_prefix('.').unwrap_or_default(),
            None => return Ok(None),
        };
        let Some(renderer) = ALL.iter().find(|renderer| renderer.extension == extension) else { return Ok(None) };
        let Some(folder) = self.runs.results.run(name)? else { return Ok(None) };
        let _turn = self.runs.computing.lock().unwrap_or_else(PoisonError::into_inner);
        let findings = with_scripts(folder.path())?;
        let kind = match extension {
            "html" => return Ok(Some(Response::page(report::page::page(&findings, None, Some(HOME))?))),
            "json" => "application/json",
            "csv" => "text/csv; charset=utf-8",
            "openmetrics" => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            _ => PLAIN,
        };
        Ok(Some(Response::new(kind, (renderer.text)(&findings)?)))
    }

    /// The hosts of one plan's runs; `by` and `plan` in the query select grouping and plan.
    fn fleet(&self, request: &HttpRequest) -> Result<Option<Response>> {
        let by: Option<Vec<GroupBy>> = request.value("by").map_or(Some(fleet::USUAL.to_vec()), fleet::facts);
        let Some(by) = by else { return Ok(None) };
        let Some(plan) = fleet::chosen(self.runs.plans()?, request.value("plan")) else { return Ok(None) };
        let _turn = self.runs.computing.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(Response::page(fleet::page(&self.runs.results, &plan, &by)?)))
    }

    fn compare(&self, request: &HttpRequest) -> Result<Option<Response>> {
        let (Some(a), Some(b)) = (request.value("a"), request.value("b")) else { return Ok(None) };
        let mut sides = Vec::new();
        let _turn = self.runs.computing.lock().unwrap_or_else(PoisonError::into_inner);
        for (argument, name) in [a, b].into_iter().enumerate() {
            let Some(folder) = self.runs.results.run(name)? else { return Ok(None) };
            let source = RunSource::load(folder.path())?;
            sides.extend(from_run::sides(argument, name, &source, None));
        }
        Ok(Some(Response::page(report::compare::page(&compare::compare(&sides), Some(HOME))?)))
    }
}

/// Shown where a run has no such thing.
const NOTHING: &str = "–";

fn live_view(name: &str, status: &RunStatus) -> LiveView {
    let now = status.current.as_ref().map(|current| format!("{}, {}", named(&current.trial), current.step));
    LiveView {
        name: name.to_owned(),
        address: encoded(name),
        plan: status.name.clone(),
        state: stored(&status.state),
        is_live: status.state == RunState::Running,
        measured: status.measured,
        trials: status.trials,
        not_run: status.not_run + status.damaged,
        now: now.unwrap_or_else(|| NOTHING.to_owned()),
        left: status.left_us.map_or_else(|| NOTHING.to_owned(), rounded),
        last: status.last.as_ref().map_or_else(|| NOTHING.to_owned(), LastTrial::words),
        warnings: status.warnings.clone(),
    }
}

/// A name encoded as a path segment or a query value.
fn encoded(text: &str) -> String {
    let encoded = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// A page with a message.
fn refused(status: u16, title: &str, text: &str, hint: Option<&str>) -> Response {
    match message(title, text, hint) {
        Ok(page) => Response { status, ..Response::new(HTML, page) },
        Err(bug) => Response::plain(500, bug.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_lack_its_port_or_itself() {
        let at = |text| address(text).map(|at| at.to_string());
        assert_eq!(at(":0"), Ok("127.0.0.1:0".to_owned()));
        assert_eq!(at("10.0.0.7"), Ok("10.0.0.7:8432".to_owned()));
        assert_eq!(at("[::1]"), Ok("[::1]:8432".to_owned()));
        assert_eq!(at("[::1]:80"), Ok("[::1]:80".to_owned()));
        for bad in ["", "localhost", "127.0.0.1:99999", ":x"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_encoded_for_addresses() {
        assert_eq!(encoded("2026-03-02 a/b?c&d\"<é"), "2026-03-02%20a%2Fb%3Fc%26d%22%3C%C3%A9");
    }
}

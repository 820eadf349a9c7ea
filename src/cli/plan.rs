//! `pgstrata plan`: checks a plan and shows what it will do; nothing is built but a small cluster that tries SQL of its own.

pub(super) mod design;
pub(super) mod guests;

use crate::analyse::findings::groups::by_key;
use crate::cli::built::{self, BuildLine};
use crate::cli::out::{self, harmless, wrapped};
use crate::cli::places::PlaceArgs;
use crate::cli::{on, prepared};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::signals::{Interrupt, LEFT};
use crate::plan::forecast::{CaseUnmet, Forecast};
use crate::plan::pointed::{self, MachineRefusal, Spot};
use crate::plan::{self, Paint, Plan, drawing, shipped};
use crate::record::case::{CaseSpec, TrialKey, by_stack_and_server};
use crate::record::verdict::DurabilityCheck;
use crate::report::layout::TextTable;
use crate::run::check::{self, PlanCheck, ServerLine, check};
use crate::run::forecast::{self, make_quick, must_fit, must_run_all};
use crate::run::rehearsal::rehearse_plan;
use crate::run::verdicts;
use crate::units::{Micros, count};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// Check a plan and show its cases, their order, time and space
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pgstrata plan --example > plan.toml     a plan to begin with
  pgstrata plan --example --all           every key of every layer and workload, with its default
  pgstrata plan plan.toml                 check it and show what it will do
  pgstrata plan plan.toml --json          the same as JSON
  pgstrata plan plan.toml --quick         show how long a quick run takes
  pgstrata plan encryption --on /srv/x    a shipped plan with its image files in a folder
  pgstrata plan separate-wal --on data=/srv/x --on log=/srv/y    two folders
  pgstrata plan --schema > schema.json    for editors that validate TOML

SQL of the plan's own is run once on a small cluster, which is then removed; mkfs tries its options on files in memory.

Exit code: 0 the plan can run, 2 it has errors, 3 it does not fit on this machine, or some of its \
cases cannot run here (listed at the end), 4 its own SQL fails, whatever else is missing.")]
pub struct Args {
    /// Plan file, or the name of a shipped plan (see `pgstrata plans`)
    #[arg(required_unless_present_any = ["example", "schema"])]
    file: Option<PathBuf>,
    /// Print JSON
    #[arg(long, requires = "file")]
    json: bool,
    /// Show it as `pgstrata run --quick` would run it
    #[arg(long, requires = "file")]
    quick: bool,
    /// Show it with its image files in this folder, or this disk in their place; once for each device where a stack has several
    #[arg(long, requires = "file", value_name = "[DEVICE=]DISK|FOLDER")]
    on: Vec<String>,
    /// Print a plan to begin with
    #[arg(long, conflicts_with_all = ["file", "schema"])]
    example: bool,
    /// Print one that explains every key instead
    #[arg(long, requires = "example")]
    all: bool,
    /// Print the JSON schema of plans
    #[arg(long, conflicts_with = "file")]
    schema: bool,
    #[command(flatten)]
    places: PlaceArgs,
}

const STOPPING: &[u8] = b"\rinterrupted: removing the small cluster; again to exit immediately\n";

/// Checks and prints.
///
/// # Errors
/// Mistakes in the plan file; standard output that cannot be written; after all is printed, sizes that don't fit.
pub fn run(args: &Args) -> Result<u8> {
    if args.example {
        let text = if args.all { &plan::example(&super::catalogue()) } else { plan::SHORT_EXAMPLE };
        out::bytes(text.as_bytes())?;
    } else if args.schema {
        out::json(&plan::schema(&super::catalogue()))?;
    } else if let Some(file) = &args.file {
        let read = read(file, args.quick, &args.on, None)?;
        let CheckedPlan { plan, checked, builds } = &read;
        let places = args.places.places()?;
        let mut forecast = forecast::forecast(&Host::this(), plan, None, &places.state)?;
        forecast.warnings.extend(design::warnings(plan));
        let by_servers = unmet_by_servers(&read)?;
        let mut to_try = plan.clone();
        to_try.cases.retain(|case| by_servers.iter().all(|unmet| unmet.case != case.id));
        forecast.unmet.extend(by_servers);
        let document = PlanDocument::new(&read, &forecast);
        out::json_or(args.json, &document, || shown(plan, checked, builds, &forecast))?;
        let can_enter = check::places(&Host::this(), &plan.part_in(None).cases, &places.state);
        let interrupt = Interrupt::listen_saying(STOPPING, LEFT)?;
        let say = |words: &str| out::remark(&harmless(words));
        let tried = match &can_enter {
            Ok(()) => rehearse_plan(&Host::this(), &to_try, &places.state, &places.ledgers(), &interrupt, &say),
            Err(_) => Ok(()),
        };
        let all = [must_run_all(plan, &forecast), must_fit(&forecast), can_enter, tried];
        let mut errors: Vec<Error> = all.into_iter().filter_map(Result::err).collect();
        let last = errors.pop();
        errors.iter().for_each(out::error);
        last.map_or(Ok(()), Err)?;
    } else {
        return Err(Error::user("no plan given").hint("pgstrata plan FILE"));
    }
    Ok(0)
}

/// A plan as found on this machine.
pub struct CheckedPlan {
    pub plan: Plan,
    pub checked: PlanCheck,
    /// Builds of the plan, and those that exist.
    pub builds: Vec<BuildLine>,
}

/// Missing guests and builds, and settings that a server refuses, for each case that needs them.
fn unmet_by_servers(CheckedPlan { plan, checked, builds }: &CheckedPlan) -> Result<Vec<CaseUnmet>> {
    Ok(guests::unmet(&plan.cases)?
        .into_iter()
        .chain(builds.iter().flat_map(unmet))
        .chain(refused(plan, checked))
        .collect())
}

/// Everything that the cases of a plan lack on this machine.
///
/// # Errors
/// If an existing guest cannot be read.
pub fn unmet_here(read: &CheckedPlan) -> Result<Vec<CaseUnmet>> {
    let mut unmet = forecast::unmet(&Host::this(), &read.plan.part_in(None).cases);
    unmet.extend(unmet_by_servers(read)?);
    Ok(unmet)
}

/// Missing requirements of a build, for each of its cases.
fn unmet(build: &BuildLine) -> impl Iterator<Item = CaseUnmet> {
    let lacks = build.cases.iter().flat_map(|case| build.lacking.iter().map(move |lack| (case, lack)));
    lacks.map(|(case, (what, hint))| CaseUnmet { case: case.clone(), what: what.clone(), hint: hint.clone() })
}

/// Parses a plan for this program, as a quick run if requested, and has server and kernel check it; its mistakes are
/// colored if standard error supports it.
///
/// # Errors
/// Mistakes in the plan file, and what server or kernel refuse.
pub fn read(file: &Path, quick: bool, on: &[String], guest: Option<&str>) -> Result<CheckedPlan> {
    let mut plan = parsed(file)?;
    if let Some(guest) = guest {
        plan.run_in(guest);
    }
    if quick {
        make_quick(&mut plan)?;
    }
    if !on.is_empty() {
        out::remark(&on::put(&Host::this(), &mut plan.cases, quick, on)?);
    }
    checked(plan, file, guest)
}

/// Has server and kernel check a plan, and finds its builds.
///
/// # Errors
/// What server or kernel refuse.
pub fn checked(mut plan: Plan, file: &Path, guest: Option<&str>) -> Result<CheckedPlan> {
    let builds = built::find(&Host::this(), &mut plan.cases)?;
    let checked = accepted(&plan, file, guest)?;
    Ok(CheckedPlan { plan, checked, builds })
}

/// Parses a plan file, or the shipped plan of that name; queries neither server nor kernel.
///
/// # Errors
/// Mistakes in the plan file.
pub fn parsed(file: &Path) -> Result<Plan> {
    match super::named::named(file)? {
        Some(plan) => Ok(plan),
        None => plan::read(file, &super::catalogue(), paint()).map_err(|e| super::named::hinted(e, file)),
    }
}

fn paint() -> Paint {
    if out::stderr_takes_colour() { Paint::Coloured } else { Paint::Plain }
}

/// Has server and kernel check a plan. A shipped plan that a server refuses is not wrong: the server is too old, or was
/// built without a feature, and the cases that need it cannot run here.
///
/// # Errors
/// Values that they refuse.
pub fn accepted(plan: &Plan, file: &Path, guest: Option<&str>) -> Result<PlanCheck> {
    let checked = check(&Host::this(), plan, guest)?;
    let is_shipped = shipped::find(&plan.name).is_some_and(|shipped| shipped.text == plan.text);
    let refusals = checked.refusals.iter();
    let mistakes = refusals.filter(|it| !is_shipped || !matches!(it.spot, Spot::Setting(_) | Spot::SettingValue(..)));
    let mistakes: Vec<MachineRefusal> = mistakes.cloned().collect();
    if mistakes.is_empty() { Ok(checked) } else { Err(pointed::refused(plan, file, &mistakes, paint())) }
}

/// Settings that the server refuses, for each case that needs them.
fn refused(plan: &Plan, checked: &PlanCheck) -> impl Iterator<Item = CaseUnmet> {
    let pairs = checked.refusals.iter().flat_map(move |refusal| plan.cases.iter().map(move |case| (refusal, case)));
    pairs.filter(|(refusal, case)| wants(case, &refusal.spot)).map(|(refusal, case)| CaseUnmet {
        case: case.id.clone(),
        what: refusal.message.clone(),
        hint: refusal.help.clone().unwrap_or_default(),
    })
}

/// True if the case has this setting of the server.
fn wants(case: &CaseSpec, spot: &Spot) -> bool {
    let settings = case.postgres.as_ref().map(|postgres| &postgres.settings);
    settings.is_some_and(|settings| match spot {
        Spot::Setting(name) => settings.contains_key(name),
        Spot::SettingValue(name, value) => settings.get(name) == Some(value),
        Spot::Initdb(_) | Spot::Layer { .. } | Spot::Age { .. } | Spot::Workload { .. } => false,
    })
}

/// JSON document of a plan.
#[derive(Serialize)]
struct PlanDocument<'a> {
    name: &'a str,
    sha256: &'a str,
    seed: u64,
    /// The maximum if adaptive.
    blocks: u32,
    /// Blocks before the first look; `null` for a fixed number.
    at_least: Option<u32>,
    /// Cases within so much of each other count as the same, per cent.
    precision_percent: u32,
    trials: usize,
    baseline: &'a BTreeMap<String, String>,
    /// Method to determine the cost of a power cut; `null`: not determined.
    durability: Option<DurabilityCheck>,
    cases: &'a [CaseSpec],
    /// In order of execution.
    order: &'a [TrialKey],
    /// Servers to be used, as found here.
    servers: &'a [ServerLine],
    /// Servers that are built from source.
    builds: &'a [BuildLine],
    /// Options that neither server nor kernel could check.
    unchecked: &'a [String],
    forecast: &'a Forecast,
}

impl<'a> PlanDocument<'a> {
    fn new(CheckedPlan { plan, checked, builds }: &'a CheckedPlan, forecast: &'a Forecast) -> Self {
        PlanDocument {
            name: &plan.name,
            sha256: &plan.sha256,
            seed: plan.seed,
            blocks: plan.blocks,
            at_least: plan.at_least,
            precision_percent: plan.precision_percent,
            trials: plan.order.len(),
            baseline: &plan.baseline,
            durability: plan.durability,
            cases: &plan.cases,
            order: &plan.order,
            servers: &checked.servers,
            builds,
            unchecked: &checked.unchecked,
            forecast,
        }
    }
}

fn shown(plan: &Plan, checked: &PlanCheck, builds: &[BuildLine], forecast: &Forecast) -> String {
    let (cases, blocks, trials) = (plan.cases.len(), plan.blocks, plan.order.len());
    let extent = match plan.at_least {
        Some(least) => format!("{least} to {blocks} blocks = {} to {trials} trials", cases * least as usize),
        None => format!("{} = {}", count(blocks as usize, "block"), count(trials, "trial")),
    };
    let mut text = format!("Plan {}: {} x {extent}, seed {}\n", plan.name, count(cases, "case"), plan.seed);
    if !plan.baseline.is_empty() {
        let axes: Vec<String> = plan.baseline.iter().map(|(axis, value)| format!("{axis} = {value}")).collect();
        text.push_str(&wrapped("Baseline: ", &axes.join(", ")));
    }
    text.push_str(&power_cuts_shown(plan));
    text.push_str(&checked_shown(checked, builds));
    let number: HashMap<&str, usize> = plan.cases.iter().zip(1..).map(|(case, n)| (case.id.as_str(), n)).collect();
    let rows = plan.cases.iter().zip(1..).map(|(case, n)| [n.to_string(), harmless(&case.id)]);
    let (cases, stacks) = (TextTable::new(["#", "case"], &[0]).rows(rows).shown(), stacks_shown(plan));
    text.push_str(&format!("\n{cases}{stacks}\nExecution order, by case number:\n"));
    for block in 1..=plan.blocks {
        let trials = plan.order.iter().filter(|key| key.trial == block);
        let numbers: Vec<String> =
            trials.filter_map(|key| number.get(key.case.as_str())).map(usize::to_string).collect();
        text.push_str(&wrapped(&format!("  block {block:<3} "), &numbers.join(" ")));
    }
    text.push_str(&forecast_shown(forecast, builds, &number));
    text
}

/// The run's method to determine the cost of a power cut.
fn power_cuts_shown(plan: &Plan) -> String {
    let Some(check) = plan.durability else { return String::new() };
    let stacks = count(by_stack_and_server(&plan.cases).len(), "stack");
    let time = Micros(verdicts::expected_us(Some(check), &plan.cases));
    wrapped("Power cuts: ", &format!("{stacks} recorded and judged before the first trial, about {time}"))
}

/// Scope of comparisons with adaptive blocks.
const INSIDE_A_CLASS: &str = "cases are compared only within their durability class, which is known once they ran: a case \
                              alone in its class gets no further trials after the first look";

/// Servers to be used, and what could not be checked.
fn checked_shown(checked: &PlanCheck, builds: &[BuildLine]) -> String {
    let mut text = String::new();
    for ServerLine { asked, version, bin } in &checked.servers {
        let built = builds.iter().find(|build| build.bin.as_ref() == Some(bin));
        let asked = match built {
            Some(built) => format!(" (built from source: {})", built.what),
            None if asked == "auto" => " (auto: the newest found)".to_owned(),
            None => String::new(),
        };
        text.push_str(&wrapped("PostgreSQL: ", &format!("{} in {}{asked}", check::short(version), bin.display())));
    }
    for build in builds.iter().filter(|build| build.bin.is_none()) {
        text.push_str(&wrapped("PostgreSQL: ", &format!("{}: not built yet, the run builds it first", build.what)));
    }
    text.extend(checked.unchecked.iter().map(|unchecked| wrapped("Not checked: ", unchecked)));
    text
}

/// Reports which server a run uses, if the plan left it open.
pub fn remark_servers(checked: &PlanCheck) {
    for server in checked.servers.iter().filter(|server| server.asked == "auto") {
        out::remark(&format!("PostgreSQL {} in {}", check::short(&server.version), server.bin.display()));
    }
}

/// Equal items once, in order, each with the numbers of its cases.
fn with_numbers<'p, T: Debug>(all: impl Iterator<Item = (&'p T, usize)>) -> Vec<(&'p T, String)> {
    // Compared by text: comparing each with all others takes seconds for thousands.
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut found: Vec<(&T, String)> = Vec::new();
    for (one, number) in all {
        let place = *places.entry(format!("{one:?}")).or_insert(found.len());
        match found.get_mut(place) {
            Some((_, numbers)) => numbers.push_str(&format!(" #{number}")),
            None => found.push((one, format!("#{number}"))),
        }
    }
    found
}

/// Kernel knobs of the machine, each set once with the numbers of its cases.
fn machines_shown(plan: &Plan) -> String {
    let machines = plan.cases.iter().map(|case| &case.machine).zip(1..).filter(|(machine, _)| !machine.0.is_empty());
    let mut text = String::new();
    for (machine, cases) in with_numbers(machines) {
        let knobs: Vec<String> = machine.0.iter().map(|(name, value)| format!("{name}={}", value.plain())).collect();
        text.push_str(&wrapped("\nMachine for ", &cases));
        text.push_str(&wrapped("  ", &knobs.join(" ")));
    }
    text
}

/// All stacks of the cases, drawn from the database down, with the numbers of their cases.
fn stacks_shown(plan: &Plan) -> String {
    let mut text = machines_shown(plan);
    for (stack, cases) in with_numbers(plan.cases.iter().map(|case| &case.stack).zip(1..)) {
        let reused = if stack.reuse { ", reused" } else { "" };
        let only = stack.only.as_ref().map_or_else(String::new, |only| format!(", {only} alone"));
        text.push_str(&wrapped(&format!("\nStack {}{only}{reused}, for ", stack.name), &cases));
        for line in drawing::drawing(stack) {
            let label = line.find(|c: char| c.is_alphanumeric()).unwrap_or(0);
            // The blanks after the base's name are part of the drawing.
            let named = line[label..].replace("  ", "\u{a0}\u{a0}");
            text.push_str(&wrapped(&format!("  {}", &line[..label]), &named));
        }
    }
    text
}

fn forecast_shown(forecast: &Forecast, builds: &[BuildLine], number: &HashMap<&str, usize>) -> String {
    let mut text = match forecast.least_us {
        Some(least) => {
            let most = Micros(forecast.expected_us);
            let duration = format!("{} to {most}, depending on when comparisons are decided", Micros(least));
            wrapped("\nExpected duration: ", &duration) + &wrapped("  ", INSIDE_A_CLASS)
        }
        None => format!("\nExpected duration: {}\n", Micros(forecast.expected_us)),
    };
    if forecast.most_repeats > 0 {
        let (repeats, time) = (count(forecast.most_repeats, "repeat"), Micros(forecast.repeats_us));
        text.push_str(&wrapped("  ", &format!("plus up to {repeats} of disturbed trials ({time})")));
    }
    text.extend(built::expected(builds).map(|building| wrapped("  ", &building)));
    text.extend(forecast.windows.iter().map(|window| wrapped("  measured, ", window)));
    text.push_str(&prepared::shown(forecast));
    if !forecast.space.is_empty() {
        let rows = forecast.space.iter().map(|space| {
            let has = space.has.map_or_else(|| "unknown".to_owned(), |has| has.to_string());
            let fits = if space.fits { "fits" } else { "does not fit" };
            [harmless(&space.what), space.needs.to_string(), has, fits.to_owned()]
        });
        let table = TextTable::new(["space on", "needs", "has", ""], &[1, 2]).rows(rows);
        text.push_str(&format!("\n{}", table.shown()));
    }
    text.extend((!forecast.unmet.is_empty()).then_some("\nMissing on this machine:\n"));
    let unmet = forecast.unmet.iter().map(|unmet| {
        let case = number.get(unmet.case.as_str()).map_or_else(|| unmet.case.clone(), |n| format!("#{n}"));
        ((&unmet.what, &unmet.hint), case)
    });
    for ((what, hint), cases) in by_key(unmet) {
        text.push_str(&wrapped("  ", &format!("{what}, for {}", cases.join(" "))));
        text.extend((!hint.is_empty()).then(|| wrapped("    hint: ", hint)));
    }
    text.extend(forecast.warnings.iter().map(|warning| wrapped("\nwarning: ", warning)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::forecast::{CaseUnmet, ImagesLine, SpaceLine};
    use crate::record::case::WorkloadSpec;
    use crate::record::options::{OptionValue, Options};
    use crate::record::stack::StackSpec;
    use crate::units::Bytes;

    fn case(id: &str, size: &str) -> CaseSpec {
        let options = Options(BTreeMap::from([
            ("loop".to_owned(), OptionValue::Text(size.to_owned())),
            ("in".to_owned(), OptionValue::Text("/var/\u{1b}x".to_owned())),
        ]));
        CaseSpec {
            id: id.into(),
            guest: None,
            stack: StackSpec::linear("s", vec![("loop", options), ("ext4", Options::default())]),
            postgres: None,
            machine: Options::default(),
            age: Options::default(),
            workload: WorkloadSpec { name: "w".into(), kind: "sync".into(), options: Options::default() },
            axes: BTreeMap::new(),
        }
    }

    fn plan() -> Plan {
        let cases = vec![case("ext4.sync", "6GiB"), case(&"x".repeat(100), "1GiB")];
        let key = |i: usize, trial| TrialKey { case: cases[i].id.clone(), trial };
        Plan {
            name: "p".into(),
            seed: 7,
            blocks: 2,
            baseline: BTreeMap::from([("stack".into(), "s".into())]),
            order: vec![key(1, 1), key(0, 1), key(0, 2), key(1, 2)],
            cases,
            in_quick: None,
            quick: None,
            share: None,
            at_least: None,
            precision_percent: 5,
            durability: None,
            sha256: "00".into(),
            text: String::new(),
        }
    }

    fn checked() -> PlanCheck {
        let bin = PathBuf::from("/opt/18/bin");
        let server = ServerLine { asked: "auto".into(), version: "18.6 (Debian)".into(), bin };
        PlanCheck {
            servers: vec![server],
            unchecked: vec!["settings of extensions: a.b".into()],
            ..PlanCheck::default()
        }
    }

    fn forecast() -> Forecast {
        let unmet = |case: &str| CaseUnmet { case: case.into(), what: "root".into(), hint: "sudo".into() };
        Forecast {
            turns: Vec::new(),
            expected_us: 7_500_000_000,
            least_us: None,
            most_repeats: 6,
            repeats_us: 1_440_000_000,
            images: vec![
                ImagesLine {
                    folder: "/var".into(),
                    images: 2,
                    bytes: Bytes(7 << 30),
                    bytes_per_s: Some(f64::from(100 << 20)),
                    expected_us: Some(71_680_000),
                },
                ImagesLine {
                    folder: "/srv".into(),
                    images: 1,
                    bytes: Bytes(1 << 30),
                    bytes_per_s: None,
                    expected_us: None,
                },
            ],
            drives: Vec::new(),
            windows: vec!["w: 3 checkpoint cycles of 30 s, after a warm-up of 2 to 5 of them".into()],
            space: vec![SpaceLine { what: "/var".into(), needs: Bytes(6 << 30), has: None, fits: false }],
            unmet: vec![unmet("ext4.sync"), unmet(&"x".repeat(100))],
            warnings: vec!["word ".repeat(40)],
        }
    }

    #[test]
    fn a_plan_lists_its_cases_and_each_blocks_order() {
        insta::assert_snapshot!(shown(&plan(), &checked(), &[], &forecast()), @r"
    Plan p: 2 cases x 2 blocks = 4 trials, seed 7
    Baseline: stack = s
    PostgreSQL: 18.6 in /opt/18/bin (auto: the newest found)
    Not checked: settings of extensions: a.b

      #: 1
      case: ext4.sync

      #: 2
      case:
      xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
      xx

    Stack s, for #1
      data  ext4
            └ loop 6GiB in=/var/\u{1b}x

    Stack s, for #2
      data  ext4
            └ loop 1GiB in=/var/\u{1b}x

    Execution order, by case number:
      block 1   2 1
      block 2   1 2

    Expected duration: 2 h 5 min
      plus up to 6 repeats of disturbed trials (24 min 0 s)
      measured, w: 3 checkpoint cycles of 30 s, after a warm-up of 2 to 5 of them
      2 images in /var, 7 GiB, fully written once: at least 71.7 s, included above (a short test wrote
      100 MiB/s)
      1 image in /srv, 1 GiB, fully written once: time not included: a test write is not possible there
      now

      space on  needs      has
      ──────────────────────────────────────
      /var      6 GiB  unknown  does not fit

    Missing on this machine:
      root, for #1 #2
        hint: sudo

    warning: word word word word word word word word word word word word word word word word word word
             word word word word word word word word word word word word word word word word word word
             word word word word
    ");
    }

    #[test]
    fn no_line_exceeds_the_terminal_width_or_contains_control_characters() {
        let text = shown(&plan(), &checked(), &[], &forecast());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }

    #[test]
    fn the_document_holds_all_of_it() {
        let (read, forecast) = (CheckedPlan { plan: plan(), checked: checked(), builds: Vec::new() }, forecast());
        let document = serde_json::to_value(PlanDocument::new(&read, &forecast)).unwrap();
        assert_eq!(document["trials"], 4);
        assert_eq!(document["order"][0]["trial"], 1);
        assert_eq!(document["cases"][0]["stack"]["nodes"][0]["options"]["loop"], "6GiB");
        assert_eq!(document["forecast"]["space"][0]["has"], serde_json::Value::Null);
    }
}

//! Finds the highest rate at which transactions stay within a latency limit: pgbench with `--rate`, step by step.
//!
//! A trial is one whole search on one stack. `stats::search` picks the next rate, analysis interprets the result. Not
//! here: figures.

use super::due::DueTally;
use super::options::{self, Settings};
use super::seconds::{LoadTally, ScriptTally, TRANSACTIONS};
use super::shifted::{Shifted, TimeAxis};
use super::{Pgbench, drive, settings};
use crate::error::{Error, Result};
use crate::host::files;
use crate::parse::pgbench_summary;
use crate::record::counts::{Counts, Measure};
use crate::record::operation::{Operation, Writes};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, OptionValue, Options};
use crate::record::search::{SearchCounts, StepCounts};
use crate::record::window::Extent;
use crate::stats::search::{self, Try};
use crate::units::Micros;
use crate::workload::{Measuring, MemorySizes, Place, Until, WindowProgress, Workload, WorkloadInfo};

const DEFAULT_STEPS: u64 = 14;
/// Enough that the clients are not the bottleneck: due transactions wait for a free client.
const DEFAULT_CLIENTS: i64 = 16;
/// For scripts that write no WAL, and so have no checkpoints.
const DEFAULT_STEP: Micros = Micros(20_000_000);
const QUICK_STEP: &str = "5s";
const QUICK_WARMUP: &str = "3s";

/// First rate of the search, as a share of the unlimited rate.
const FIRST_RATE: f64 = 0.7;

/// Most rates in a trial, and the longest time for each.
const MOST_STEPS: u64 = 1000;
const LONGEST_STEP: Micros = Micros(86_400_000_000);

/// Scheduled transactions wanted in a step of fixed duration: with 1 % of them late, 300 contain no late one in 5 % of
/// all steps, 100 in 37 %. Steps at low rates are lengthened accordingly, to a minute at most.
const FEWEST_SCHEDULED: f64 = 300.0;
const LENGTHENED_S: u64 = 60;

const SECOND_US: u64 = 1_000_000;

/// The spec of one of pgbench's own options.
pub(super) const fn of_pgbench(key: &str) -> OptionSpec {
    let mut place = 0;
    while place < options::SPECS.len() {
        let (known, wanted) = (options::SPECS[place].key.as_bytes(), key.as_bytes());
        let mut same = 0;
        while same < known.len() && same < wanted.len() && known[same] == wanted[same] {
            same += 1;
        }
        if same == known.len() && same == wanted.len() {
            return options::SPECS[place];
        }
        place += 1;
    }
    panic!("pgbench has no option of this name")
}

const INFO: WorkloadInfo = WorkloadInfo {
    name: "capacity",
    doc: "the highest rate at which 99 % of pgbench's transactions stay within a latency limit, searched step by step \
          at fixed rates",
    needs_server: true,
    options: &[
    OptionSpec::required("latency_limit", OptionKind::Span).doc(
        "at most 1 % of scheduled transactions may take longer, measured from their scheduled time, or be skipped \
         because they are already late",
    ),
    of_pgbench("script"),
    of_pgbench("setup"),
    of_pgbench("profile"),
    of_pgbench("scale"),
    of_pgbench("data"),
    OptionSpec::with_default("clients", OptionKind::Integer { min: 1 }, "16")
        .doc("number of connections; a scheduled transaction waits for a free one"),
    of_pgbench("jobs"),
    of_pgbench("mode"),
    OptionSpec::with_default("steps", OptionKind::Integer { min: search::FEWEST as i64 }, "14")
        .doc("number of rates tried in each trial; each depends on the results before it"),
    OptionSpec::with_default("step", OptionKind::Span, "one full checkpoint cycle; 20s for scripts that write no WAL")
        .doc(
            "duration of each rate, in whole seconds; whether a step contains a checkpoint is then random. At low rates \
         a step lasts until 300 transactions were scheduled, at most 60s",
        ),
    OptionSpec::with_default(
        "warmup",
        OptionKind::Span,
        "until two full checkpoint cycles agree, at most five; with `step` 10s",
    )
    .doc(
        "duration of the warm-up at full speed, in whole seconds, at least one; the search starts at 0.7 of the rate \
         it reaches",
    ),
    of_pgbench("tablespace"),
    of_pgbench("index_tablespace"),
    of_pgbench("cache"),
],
    quick: &[("step", QUICK_STEP), ("warmup", QUICK_WARMUP)],
};

#[derive(Debug)]
pub struct CapacitySearch;

impl Workload for CapacitySearch {
    fn info(&self) -> &WorkloadInfo {
        &INFO
    }

    fn as_pgbench(&self, options: &Options) -> Option<Options> {
        Some(as_pgbench(options))
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        if steps(options) > MOST_STEPS {
            return Err(OptionProblem::at("steps", format!("must be at most {MOST_STEPS}")));
        }
        for key in ["step", "warmup"] {
            if options::seconds(options, key)?.is_some_and(|span| span > LONGEST_STEP) {
                return Err(OptionProblem::at(key, "must be at most 1d"));
            }
        }
        Pgbench.check(&as_pgbench(options))
    }

    fn operation(&self, options: &Options) -> Result<Operation> {
        let mut operation = Pgbench.operation(&as_pgbench(options))?;
        operation.is_searched = true;
        operation.settings.retain(|key, _| !["duration", "cycles"].contains(&key.as_str()));
        operation.settings.insert("steps".to_owned(), steps(options).to_string());
        operation.settings.extend(options.text("step").map(|step| ("step".to_owned(), step.to_owned())));
        Ok(operation)
    }

    fn warm_up(&self, place: &Place<'_>, options: &Options, memory: MemorySizes, until: Until<'_>) -> Result<()> {
        let settings = Settings { latency_limit: None, ..settings(&as_pgbench(options))? };
        drive::warm_up(place, &settings, settings.units(memory), until)
    }

    fn measure(&self, run: Measuring<'_>) -> Result<Counts> {
        let Measuring { place, options, memory, until, listener } = run;
        let settings = settings(&as_pgbench(options))?;
        let steps = steps(options);
        let units = settings.units(memory);
        let longest = Micros((until.longest.0 / steps / SECOND_US).max(1) * SECOND_US);
        let in_cycles = matches!(settings.window.extent, Extent::Cycles { .. });
        let mut search = SearchCounts { peak_tps: peak(place)?, steps: Vec::new() };
        let axis = TimeAxis::default();
        for number in 1..=steps {
            let tried = search.steps.iter().map(|step| Try { rung: step.rung, passed: step.failed_by().is_none() });
            let rung = search::next(&tried.collect::<Vec<_>>());
            let rate = FIRST_RATE * search.peak_tps * search::ratio(f64::from(rung));
            let step = StepCounts { rung, rate, tag: format!("step-{number:02}"), ..StepCounts::default() };
            let shifted = Shifted::new(listener, &axis, &step.tag);
            let before = (until.progress)()?.cycles;
            let until = Until {
                longest: if in_cycles { longest } else { lengthened(longest, rate) },
                operations: None,
                progress: &mut || {
                    let cycles = (until.progress)()?.cycles - before;
                    Ok(WindowProgress { cycles, is_over: cycles > 0 })
                },
            };
            let at_rate = Settings { rate: Some(rate), ..settings.clone() };
            let (tally, failed) =
                drive::measure(place, &at_rate, &step.tag, units, until, &|event| shifted.report(event))?;
            failed.map_or(Ok(()), Err)?;
            let start_us = shifted.start_us.into_inner();
            search.steps.push(counted(step, &tally, start_us));
        }
        Ok(counts(search))
    }
}

/// Duration of a step at this rate: long enough to judge 1 % of its transactions.
fn lengthened(step: Micros, rate: f64) -> Micros {
    let wanted_s = (FEWEST_SCHEDULED / rate).ceil().min(LENGTHENED_S as f64) as u64;
    step.max(Micros(wanted_s * SECOND_US))
}

fn steps(options: &Options) -> u64 {
    options.integer("steps").and_then(|steps| u64::try_from(steps).ok()).unwrap_or(DEFAULT_STEPS).max(1)
}

/// Options of a pgbench that runs as long as all steps together.
fn as_pgbench(options: &Options) -> Options {
    // Whether a transaction was late, and whether the driver was, shows only if it is logged.
    let mut plain = options::logging_all(options, &["steps", "step"]);
    let steps = steps(options);
    let step = options.text("step").and_then(|text| Micros::parse(text).ok());
    plain.0.entry("clients".to_owned()).or_insert(OptionValue::Integer(DEFAULT_CLIENTS));
    let reads = Settings::from(&plain).is_ok_and(|settings| settings.writes() == Writes::Never);
    match step.or(reads.then_some(DEFAULT_STEP)) {
        Some(step) => plain.set("duration", OptionValue::Text(format!("{}s", step.0 / SECOND_US * steps))),
        None => plain.set("cycles", OptionValue::Integer(i64::try_from(steps).unwrap_or(i64::MAX))),
    }
    plain
}

/// Rate of the warm-up, a closed loop without a limit.
fn peak(place: &Place<'_>) -> Result<f64> {
    let warm_up = place.raw.join(format!("{}.out", drive::WARM_UP));
    let tps = pgbench_summary::parse(&files::read_text(&warm_up)?)?.tps;
    tps.filter(|tps| *tps > 0.0).ok_or_else(|| {
        Error::tool("the warm-up completed no transaction, so the search has no starting rate")
            .hint("use a longer `warmup`")
    })
}

/// Adds the counts of a step; none if nothing was due in it.
fn counted(step: StepCounts, tally: &LoadTally, start_us: u64) -> StepCounts {
    let elapsed_us = tally.began_us.map_or(0, |began_us| tally.last_us.saturating_sub(began_us));
    let ScriptTally { done, failed, skipped, late, .. } = tally.total();
    let skipped = skipped + tally.unsent.iter().map(|unsent| unsent.count).sum::<u64>();
    let DueTally { silent_s, lagging, driver_lag_us_sum } = tally.due;
    StepCounts { start_us, elapsed_us, done, failed, skipped, late, silent_s, lagging, driver_lag_us_sum, ..step }
}

/// The steps, with a measure over all of them.
fn counts(search: SearchCounts) -> Counts {
    let steps = &search.steps;
    let main = Measure {
        name: TRANSACTIONS.to_owned(),
        done: Some(steps.iter().map(|step| step.done).sum()),
        failed: steps.iter().map(|step| step.failed).sum(),
        skipped: steps.iter().map(|step| step.skipped).sum(),
        late: steps.iter().map(|step| step.late).sum(),
        elapsed_us: steps.iter().map(|step| step.elapsed_us).sum(),
        ..Measure::default()
    };
    let elapsed_us = search.steps.last().map_or(0, |last| last.start_us + last.elapsed_us);
    Counts { elapsed_us, measures: vec![main], search: Some(search), ..Counts::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, OptionValue)]) -> Options {
        let mut options = Options::default();
        options.set("scale", OptionValue::Integer(10));
        options.set("latency_limit", OptionValue::Text("20ms".to_owned()));
        pairs.iter().for_each(|(key, value)| options.set(key, value.clone()));
        options
    }

    fn text(text: &str) -> OptionValue {
        OptionValue::Text(text.to_owned())
    }

    #[test]
    fn a_step_lasts_one_checkpoint_cycle_by_default() {
        let extent = |pairs: &[(&str, OptionValue)]| CapacitySearch.window(&options(pairs)).extent;
        assert_eq!(extent(&[]), Extent::Cycles { cycles: 14, limit_us: None });
        assert_eq!(
            extent(&[("step", text("3s")), ("steps", OptionValue::Integer(20))]),
            Extent::Span { span_us: 60_000_000 }
        );
        assert_eq!(extent(&[("script", text("select-only"))]), Extent::Span { span_us: 280_000_000 });
        let mut quick = options(&[]);
        CapacitySearch.make_quick(&mut quick);
        assert_eq!(CapacitySearch.window(&quick).extent, Extent::Span { span_us: 70_000_000 });
    }

    #[test]
    fn a_step_is_lengthened_until_one_percent_is_resolved() {
        let step = |seconds: u64, rate| lengthened(Micros(seconds * SECOND_US), rate).0 / SECOND_US;
        assert_eq!((step(1, 5000.0), step(1, 100.0), step(10, 100.0)), (1, 3, 10));
        assert_eq!((step(1, 0.5), step(90, 0.5)), (60, 90));
    }

    #[test]
    fn options_without_start_rate_or_whole_seconds_are_refused() {
        assert_eq!(CapacitySearch.check(&options(&[])), Ok(()));
        for (key, value) in [("warmup", "0s"), ("step", "1500ms"), ("step", "0s"), ("step", "2d")] {
            let problem = CapacitySearch.check(&options(&[(key, text(value))])).unwrap_err();
            assert_eq!(problem.key.as_deref(), Some(key));
        }
        let problem =
            CapacitySearch.check(&options(&[("steps", OptionValue::Integer(i64::MAX)), ("step", text("1h"))]));
        assert_eq!(problem.unwrap_err().key.as_deref(), Some("steps"));
        let operation = CapacitySearch.operation(&options(&[("step", text("3s"))])).unwrap();
        assert!(operation.is_searched && operation.rate.is_none() && operation.clients == 16);
        assert_eq!(operation.settings.keys().map(String::as_str).collect::<Vec<_>>(), ["step", "steps"]);
    }
}

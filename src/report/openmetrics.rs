//! Findings and the trials' seconds as OpenMetrics text, for Prometheus and compatible programs.
//!
//! Every sample has the time of its measurement, so that a run can be loaded afterwards (`promtool tsdb
//! create-blocks-from openmetrics`): findings have the run's start, seconds their own time. Units are base units
//! (seconds, bytes, shares). Names of series come from one list below; user-defined names are in labels.

use super::environment::{each_machine, ran_on};
use super::words::{class_key, is_hidden, seconds, server_versions};
use crate::analyse::findings::{
    CaseFinding, Estimate, Findings, Latency, MeasureFinding, Series, Step, TrialFinding, Verdict,
};

/// A metric family: name, type, unit (the end of the name) and description.
type Family = (&'static str, &'static str, &'static str, &'static str);

/// All families, in output order; those of telemetry by the unit of the findings.
const FAMILIES: [Family; 22] = [
    ("pgstrata_run", "info", "", "The run."),
    ("pgstrata_run_trials_planned", "gauge", "", "Trials that the run planned."),
    ("pgstrata_run_trials_measured", "gauge", "", "Trials that were measured."),
    ("pgstrata_case", "info", "", "A case with its durability class."),
    ("pgstrata_case_axis", "info", "", "Place of a case in the matrix of the plan."),
    (RATE, "gauge", "", "Operations per second, the geometric mean over trials."),
    (RATE_LOW, "gauge", "", "Lower end of the 95 % interval of the rate."),
    (RATE_HIGH, "gauge", "", "Upper end of the 95 % interval of the rate."),
    (LATENCY_MEAN, "gauge", "seconds", "Mean latency."),
    (LATENCY, "gauge", "seconds", "Percentile of the latency, over trials."),
    (LATENCY_LOW, "gauge", "seconds", "Lower end of the 95 % interval of a percentile."),
    (LATENCY_HIGH, "gauge", "seconds", "Upper end of the 95 % interval of a percentile."),
    (LATENCY_MAX, "gauge", "seconds", "Slowest logged operation of all trials."),
    ("pgstrata_case_operations", "counter", "", "Operations over all trials, by outcome."),
    ("pgstrata_case_database_size_bytes", "gauge", "bytes", "Size of the database, at the largest trial."),
    (THROUGHPUT, "gauge", "", "Operations per second of a trial, second by second."),
    (SLOWEST, "gauge", "seconds", "Slowest operation of each second of a trial."),
    ("pgstrata_trial_telemetry_bytes_per_second", "gauge", "", "Telemetry of a trial, by series."),
    ("pgstrata_trial_telemetry_size_bytes", "gauge", "bytes", "Telemetry of a trial, by series."),
    ("pgstrata_trial_telemetry_seconds", "gauge", "seconds", "Telemetry of a trial, by series."),
    ("pgstrata_trial_telemetry_ratio", "gauge", "ratio", "Telemetry of a trial, by series; 1 is all."),
    ("pgstrata_trial_telemetry", "gauge", "", "Telemetry of a trial, by series, in the unit of its label."),
];
const RATE: &str = "pgstrata_case_operations_per_second";
const RATE_LOW: &str = "pgstrata_case_operations_per_second_low";
const RATE_HIGH: &str = "pgstrata_case_operations_per_second_high";
const LATENCY: &str = "pgstrata_case_latency_seconds";
const LATENCY_MEAN: &str = "pgstrata_case_latency_mean_seconds";
const LATENCY_LOW: &str = "pgstrata_case_latency_low_seconds";
const LATENCY_HIGH: &str = "pgstrata_case_latency_high_seconds";
const LATENCY_MAX: &str = "pgstrata_case_latency_max_seconds";
const THROUGHPUT: &str = "pgstrata_trial_operations_per_second";
const SLOWEST: &str = "pgstrata_trial_slowest_operation_seconds";

/// Family of a series in this unit, and the factor to its base unit.
fn telemetry_family(unit: &str) -> (&'static str, f64) {
    const MIB: f64 = (1u64 << 20) as f64;
    match unit {
        "MiB/s" => ("pgstrata_trial_telemetry_bytes_per_second", MIB),
        "MiB" => ("pgstrata_trial_telemetry_size_bytes", MIB),
        "ms" => ("pgstrata_trial_telemetry_seconds", 1e-3),
        "%" => ("pgstrata_trial_telemetry_ratio", 1e-2),
        _ => ("pgstrata_trial_telemetry", 1.0),
    }
}

type Labels<'a> = Vec<(&'static str, &'a str)>;

#[derive(Default)]
struct Samples {
    /// Family and line, in order of arrival; sorted by family at the end.
    lines: Vec<(&'static str, String)>,
}

impl Samples {
    fn add(&mut self, family: &'static str, labels: &Labels<'_>, value: f64, at_s: Option<f64>) {
        if !value.is_finite() {
            return;
        }
        let suffix = match FAMILIES.iter().find(|(name, ..)| *name == family) {
            Some((_, "info", ..)) => "_info",
            Some((_, "counter", ..)) => "_total",
            _ => "",
        };
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let at = at_s.map_or_else(String::new, |at| format!(" {at:.3}"));
        self.lines.push((family, format!("{family}{suffix}{{{}}} {value}{at}\n", labels.join(","))));
    }

    fn estimate(&mut self, names: [&'static str; 3], labels: &Labels<'_>, of: &Estimate, factor: f64, at: Option<f64>) {
        for (family, value) in names.into_iter().zip([Some(of.value), of.low, of.high]) {
            value.into_iter().for_each(|value| self.add(family, labels, value * factor, at));
        }
    }

    /// A series by second; for buckets of several seconds the least and the most, at the bucket's end.
    fn series(&mut self, family: &'static str, labels: &Labels<'_>, series: &Series, factor: f64, from: Option<f64>) {
        let whole = series.bucket_s <= 1;
        let sides: &[(&str, &[Option<f32>])] =
            if whole { &[("value", &series.min)] } else { &[("least", &series.min), ("most", &series.max)] };
        for (stat, values) in sides {
            let labels = [labels.clone(), vec![("stat", *stat)]].concat();
            // A metric without times has only one sample.
            let room = if from.is_some() { values.len() } else { 1 };
            for (value, bucket) in values.iter().zip(1u32..).take(room) {
                let at = from.map(|from| from + f64::from(bucket) * f64::from(series.bucket_s));
                value.iter().for_each(|value| self.add(family, &labels, f64::from(*value) * factor, at));
            }
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (name, kind, unit, help) in FAMILIES {
            let mut lines = self.lines.iter().filter(|(family, _)| *family == name).peekable();
            if lines.peek().is_none() {
                continue;
            }
            text.push_str(&format!("# TYPE {name} {kind}\n"));
            text.extend((!unit.is_empty()).then(|| format!("# UNIT {name} {unit}\n")));
            text.push_str(&format!("# HELP {name} {}\n", escaped(help)));
            lines.for_each(|(_, line)| text.push_str(line));
        }
        text + "# EOF\n"
    }
}

/// `--format openmetrics`.
pub(super) fn samples(findings: &Findings) -> String {
    let run = &findings.run;
    let (id, at) = (run.id.as_str(), seconds(&run.started));
    let mut samples = Samples::default();
    let hosts = each_machine(&findings.machines, |host| host.hostname.clone());
    let kernels = each_machine(&findings.machines, |host| host.kernel.clone());
    let servers = server_versions(findings);
    let mut about = vec![("run", id), ("name", run.name.as_str()), ("pgstrata", run.measured_by.as_str())];
    let of_machines = [("host", hosts.as_str()), ("kernel", kernels.as_str())].into_iter();
    about.extend(of_machines.filter(|(_, value)| !value.is_empty()));
    about.extend(servers.as_deref().map(|versions| ("postgres", versions)));
    samples.add("pgstrata_run", &about, 1.0, at);
    samples.add("pgstrata_run_trials_planned", &vec![("run", id)], f64::from(run.trials_planned), at);
    samples.add("pgstrata_run_trials_measured", &vec![("run", id)], f64::from(run.trials_measured), at);
    findings.cases.iter().for_each(|case| of_case(&mut samples, id, case, at));
    let turned: Vec<&String> = findings.turns.iter().flat_map(|turns| &turns.cases).map(|case| &case.case).collect();
    // Seconds of turns lay apart, so that none has its time.
    for trial in findings.trials.iter().filter(|trial| !turned.contains(&&trial.case)) {
        let machine = findings.machines.iter().find(|machine| ran_on(machine, trial));
        let host = machine.filter(|_| findings.machines.len() > 1).map(|machine| machine.host.hostname.as_str());
        of_trial(&mut samples, id, host, trial);
    }
    samples.text()
}

fn of_case(samples: &mut Samples, run: &str, case: &CaseFinding, at: Option<f64>) {
    let own: Labels<'_> = vec![("run", run), ("case", &case.id)];
    let mut about = own.clone();
    about.extend([("workload", case.workload_kind.as_str()), ("durability", class_key(case.durability.class))]);
    let verdict = case.verdict.as_ref().map(Verdict::short);
    about.extend(verdict.as_deref().map(|verdict| ("verdict", verdict)));
    samples.add("pgstrata_case", &about, 1.0, at);
    for (axis, value) in &case.axes {
        let labels = [own.clone(), vec![("axis", axis.as_str()), ("value", value.as_str())]].concat();
        samples.add("pgstrata_case_axis", &labels, 1.0, at);
    }
    for measure in &case.measures {
        let labels = [own.clone(), vec![("measure", measure.name.as_str())]].concat();
        of_measure(samples, &labels, measure, at);
    }
    if let Some(bytes) = case.database_bytes {
        samples.add("pgstrata_case_database_size_bytes", &own, bytes as f64, at);
    }
}

fn of_measure(samples: &mut Samples, labels: &Labels<'_>, measure: &MeasureFinding, at: Option<f64>) {
    if let Some(rate) = &measure.rate {
        samples.estimate([RATE, RATE_LOW, RATE_HIGH], labels, rate, 1.0, at);
    }
    let counts =
        [("done", measure.done), ("failed", measure.failed), ("skipped", measure.skipped), ("late", measure.late)];
    for (outcome, count) in counts {
        let labels = [labels.clone(), vec![("outcome", outcome)]].concat();
        samples.add("pgstrata_case_operations", &labels, count as f64, at);
    }
    if let Some(latency) = &measure.latency {
        of_latency(samples, labels, latency, at);
    }
}

fn of_latency(samples: &mut Samples, labels: &Labels<'_>, latency: &Latency, at: Option<f64>) {
    const US: f64 = 1e-6;
    samples.add(LATENCY_MEAN, labels, latency.mean_us * US, at);
    for percentile in &latency.percentiles {
        let labels = [labels.clone(), vec![("percentile", percentile.name.as_str())]].concat();
        if let Some(over) = &percentile.over_trials {
            samples.estimate([LATENCY, LATENCY_LOW, LATENCY_HIGH], &labels, over, US, at);
        }
    }
    samples.add(LATENCY_MAX, labels, latency.max_us as f64 * US, at);
}

/// If trials ran on several hosts, the host is a label.
fn of_trial(samples: &mut Samples, run: &str, host: Option<&str>, trial: &TrialFinding) {
    let number = trial.trial.to_string();
    let mut labels: Labels<'_> = vec![("run", run), ("case", &trial.case), ("trial", &number)];
    labels.extend(host.map(|host| ("host", host)));
    let before = trial.steps.iter().take_while(|time| time.step != Step::Measure);
    let before_us: u64 = before.map(|time| time.wall_us).sum();
    let from = seconds(&trial.started).map(|began| began + before_us as f64 / 1e6);
    for (family, series, factor) in [(THROUGHPUT, &trial.throughput, 1.0), (SLOWEST, &trial.latency_ms_max, 1e-3)] {
        series.iter().for_each(|series| samples.series(family, &labels, series, factor, from));
    }
    for series in &trial.telemetry {
        let (family, factor) = telemetry_family(&series.unit);
        let mut labels = labels.clone();
        labels.extend([("group", series.group.as_str()), ("series", series.title.as_str())]);
        labels.extend((family == "pgstrata_trial_telemetry").then_some(("unit", series.unit.as_str())));
        samples.series(family, &labels, series, factor, from);
    }
}

fn escaped(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"");
    // Names come from run folders, and metrics may be shown on a terminal.
    escaped.replace(|c: char| c.is_control() || is_hidden(c), "\u{fffd}")
}

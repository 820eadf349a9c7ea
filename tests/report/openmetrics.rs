//! OpenMetrics text, read by a strict reader of its own: what the specification forbids fails here.

use crate::report::{hostile, rendered, sample};
use std::collections::{BTreeMap, BTreeSet};

/// A sample: its family, its labels as they were before escaping, value and time.
#[derive(Debug)]
struct Sample {
    family: String,
    labels: BTreeMap<String, String>,
    value: f64,
    at: Option<f64>,
}

/// Reads a whole exposition, or says which rule it breaks.
fn read(text: &str) -> Result<Vec<Sample>, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("does not end with # EOF")?;
    let (mut seen, mut family, mut kind) = (BTreeSet::new(), String::new(), String::new());
    let (mut samples, mut ended, mut last): (Vec<Sample>, BTreeSet<String>, _) = (Vec::new(), BTreeSet::new(), None);
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let [what, name, value] = [(); 3].map(|()| words.next().unwrap_or_default().to_owned());
            match what.as_str() {
                "TYPE" if seen.insert(name.clone()) => (family, kind) = (name, value),
                "UNIT" if name == family && name.ends_with(&format!("_{value}")) => {}
                "HELP" if name == family && !value.is_empty() => {}
                _ => return Err(format!("not allowed here: {line}")),
            }
            continue;
        }
        let (name, rest) = line.split_once('{').ok_or_else(|| format!("no labels: {line}"))?;
        let suffix = match kind.as_str() {
            "info" => "_info",
            "counter" => "_total",
            _ => "",
        };
        if name != format!("{family}{suffix}") {
            return Err(format!("a sample of another family than {family}: {line}"));
        }
        let (labels, rest) = labels(rest).ok_or_else(|| format!("labels: {line}"))?;
        let numbers: Result<Vec<f64>, _> = rest.split(' ').filter(|word| !word.is_empty()).map(str::parse).collect();
        let numbers = numbers.map_err(|e| format!("{e}: {line}"))?;
        let (value, at) = match numbers.as_slice() {
            [value] => (*value, None),
            [value, at] => (*value, Some(*at)),
            _ => return Err(format!("neither a value nor a value with a time: {line}")),
        };
        let key = format!("{name}{labels:?}");
        match &last {
            Some((known, before)) if *known == key && at <= *before => return Err(format!("times go back: {line}")),
            Some((known, _)) if *known == key => {}
            _ if !ended.insert(key.clone()) => return Err(format!("samples of one metric are apart: {line}")),
            _ => {}
        }
        last = Some((key, at));
        samples.push(Sample { family: family.clone(), labels, value, at });
    }
    Ok(samples)
}

/// Labels up to the closing brace, unescaped, and what follows it.
fn labels(text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let (mut labels, mut rest) = (BTreeMap::new(), text);
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let is_name = |c: char| c.is_ascii_alphabetic() || c == '_';
        let (mut value, mut chars) = (String::new(), quoted.char_indices());
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\n') => return None,
                (_, '\\') => value.push(match chars.next()?.1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    _ => return None,
                }),
                (_, c) => value.push(c),
            }
        };
        if !name.chars().all(is_name) || labels.insert(name.to_owned(), value).is_some() {
            return None;
        }
        rest = &quoted[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

#[test]
fn openmetrics_output_is_valid_and_uses_base_units() {
    let findings = sample::findings();
    let samples = read(&rendered("openmetrics", &findings)).unwrap();
    let case = &findings.cases[0];
    let of = |family: &str| {
        let found = samples.iter().filter(|sample| sample.family == family && sample.labels["case"] == case.id);
        found.collect::<Vec<_>>()
    };
    let measure = &case.measures[0];
    let rate = measure.rate.unwrap();
    let found = of("pgstrata_case_operations_per_second");
    assert_eq!((found[0].value, &found[0].labels["measure"]), (rate.value, &measure.name));
    assert_eq!(of("pgstrata_case_operations_per_second_low")[0].value, rate.low.unwrap());
    let mean = of("pgstrata_case_latency_mean_seconds")[0].value;
    assert!((mean * 1e6 - measure.latency.as_ref().unwrap().mean_us).abs() < 1e-6, "{mean}");
    // Every second of a trial, a second apart, with the times at which they were measured.
    let trial = findings.trials.iter().find(|trial| trial.case == case.id).unwrap();
    let seconds: Vec<&Sample> = of("pgstrata_trial_operations_per_second")
        .into_iter()
        .filter(|sample| sample.labels["trial"] == trial.trial.to_string())
        .collect();
    let known = trial.throughput.as_ref().unwrap().min.iter().flatten().count();
    assert_eq!((seconds.len(), known), (known, sample::SECONDS));
    assert!(seconds.windows(2).all(|two| (two[1].at.unwrap() - two[0].at.unwrap() - 1.0).abs() < 0.01));
    assert!(samples.iter().filter(|sample| sample.family.ends_with("_ratio")).all(|sample| sample.value <= 128.0));
}

#[test]
fn seconds_of_turns_have_no_times_and_are_left_out_of_openmetrics() {
    let mut findings = sample::findings();
    let turned = findings.trials[0].case.clone();
    let seconds = |findings: &_| -> BTreeSet<String> {
        let samples = read(&rendered("openmetrics", findings)).unwrap();
        let of_trials = samples.into_iter().filter(|sample| sample.family.starts_with("pgstrata_trial_"));
        of_trials.map(|sample| sample.labels["case"].clone()).collect()
    };
    let mut wanted = seconds(&findings);
    let case = serde_json::json!({ "case": turned, "turns": 1, "is_carried_over": false, "borne": {}, "apart": 0 });
    let turns = serde_json::json!({ "rounds": 1, "made_again": 0, "off": 0, "is_taken_out": false, "others_slope": 0.0,
        "others_slope_half_width": null, "cases": [case] });
    findings.turns = Some(serde_json::from_value(turns).unwrap());
    assert!(wanted.remove(&turned));
    assert_eq!(seconds(&findings), wanted);
}

#[test]
fn openmetrics_names_the_machine_of_each_trial() {
    let mut findings = sample::findings();
    let one = read(&rendered("openmetrics", &findings)).unwrap();
    let run = one.iter().find(|sample| sample.family == "pgstrata_run").unwrap();
    let host = findings.machines[0].host.clone();
    assert_eq!((&run.labels["host"], &run.labels["kernel"]), (&host.hostname, &host.kernel));
    assert_eq!(run.labels["postgres"], "15.18");
    assert!(one.iter().all(|sample| sample.family == "pgstrata_run" || !sample.labels.contains_key("host")));

    let mut other = findings.machines[0].clone();
    other.host.hostname = "other".to_owned();
    findings.machines[0].trials.retain(|key| key.trial != 2);
    other.trials.retain(|key| key.trial == 2);
    findings.machines.push(other);
    let two = read(&rendered("openmetrics", &findings)).unwrap();
    let of_trials: Vec<&Sample> = two.iter().filter(|sample| sample.labels.contains_key("trial")).collect();
    assert!(!of_trials.is_empty());
    for sample in of_trials {
        let expected = if sample.labels["trial"] == "2" { "other" } else { &host.hostname };
        assert_eq!(sample.labels["host"], expected);
    }
}

#[test]
fn hostile_names_are_escaped_in_openmetrics() {
    let findings = hostile::hostile();
    let samples = read(&rendered("openmetrics", &findings)).unwrap();
    let names: BTreeSet<&String> =
        samples.iter().filter(|sample| sample.family == "pgstrata_run").map(|sample| &sample.labels["name"]).collect();
    // The format has an escape for the end of a line, and none for what a terminal would obey or what reorders text.
    let is_shown = |one: char| one == '\n' || !one.is_control() && !"\u{202e}\u{2028}".contains(one);
    let shown = findings.run.name.replace(|one| !is_shown(one), "\u{fffd}");
    assert_eq!(names, BTreeSet::from([&shown]));
}

#[test]
fn the_reader_of_this_test_refuses_what_the_format_forbids() {
    let good = "# TYPE a gauge\n# HELP a what\na{x=\"1\"} 2 1.5\na{x=\"1\"} 3 2.5\n# EOF\n";
    assert_eq!(read(good).unwrap().len(), 2);
    for (from, to) in [
        ("# EOF\n", ""),
        ("2.5", "1.5"),
        ("# HELP a", "# HELP b"),
        ("x=\"1\"} 2", "x=\"1\\q\"} 2"),
        ("a{x=\"1\"} 3", "b{x=\"1\"} 3"),
        (" 3 ", " three "),
        ("# HELP a what", "# UNIT a seconds"),
    ] {
        assert!(read(&good.replacen(from, to, 1)).is_err(), "{from} -> {to}");
    }
}

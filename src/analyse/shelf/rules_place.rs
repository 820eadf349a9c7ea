//! Rules that hold where and when a case is said to have run against what its own output shows: filesystem, versions, date.

use super::findings::{Remark, Weight};
use super::rules::Rule;
use super::select::{Found, rows};
use crate::record::imported::{ImportRecord, ImportedCase, ImportedOutput, ImportedTrial};
use jiff::ToSpan;
use jiff::civil::Date;

/// What contradicts what is said of the place and the time of a case.
pub(super) fn of_case(record: &ImportRecord, case: &ImportedCase) -> Vec<Remark> {
    let found = [mounted(record, case), server(record, case), kernel(record, case), date(record, case)];
    found.into_iter().flatten().collect()
}

fn fact<'a>(case: &'a ImportedCase, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| case.facts.get(*key)).map(String::as_str)
}

/// A filesystem that `mount` or `df` shows otherwise: each listing of the place does; where the place is not told, no
/// listing has it at all, which a list of some mounts would not either.
fn mounted(record: &ImportRecord, case: &ImportedCase) -> Option<Remark> {
    let place = fact(case, &["stack.mount"]);
    let weight = if place.is_some() { Weight::Contradiction } else { Weight::Suspicion };
    let rule = Rule { name: "facts_contradict", weight, source: "the mounts that came with the case" };
    let kind = fact(case, &["stack.filesystem"])?;
    let at_place = |row: &Found<'_>| place.is_none() || row.label("mount") == place;
    let mut listed: Vec<Found<'_>> = mounts(record, case).filter(at_place).collect();
    let shown = listed.last()?.label("type")?;
    if listed.iter().any(|row| row.label("type").is_some_and(|shown| shown.eq_ignore_ascii_case(kind))) {
        return None;
    }
    let sentence = match place {
        Some(place) => format!("{place} is mounted as {shown}, where the case is said to be on {kind}"),
        None => {
            // One of each kind.
            listed.sort_by_key(|row| row.label("type"));
            listed.dedup_by_key(|row| row.label("type"));
            let kinds: Vec<&str> = listed.iter().filter_map(|row| row.label("type")).collect();
            format!("{} are mounted and no {kind}, where the case is said to be on {kind}", kinds.join(", "))
        }
    };
    let mut remark = rule.says(&listed, None, sentence)?;
    remark.case.clone_from(&case.name);
    Some(remark)
}

/// The mounts that a case lists; where it lists none those of cases that do nothing else and are said to be on no
/// filesystem of their own: they are the machine's. Another case's may be of another machine.
fn mounts<'a>(record: &'a ImportRecord, case: &'a ImportedCase) -> impl Iterator<Item = Found<'a>> {
    let of =
        |case: &'a ImportedCase| rows(case).filter(|row| row.label("mount").is_some() && row.label("type").is_some());
    let lists_only = |case: &ImportedCase| {
        let mut outputs = case.trials.iter().flat_map(|trial| &trial.outputs);
        !case.facts.contains_key("stack.filesystem") && outputs.all(|output| output.tool == "mount")
    };
    let own = of(case).next().is_some();
    let others = record.cases.iter().filter(move |other| !own && lists_only(other));
    of(case).chain(others.flat_map(of))
}

/// Outputs of a case with the trial that they are of.
fn outputs(case: &ImportedCase) -> impl Iterator<Item = (&ImportedTrial, &ImportedOutput)> {
    case.trials.iter().flat_map(|trial| trial.outputs.iter().map(move |output| (trial, output)))
}

/// Where an output begins.
fn place(trial: &ImportedTrial, output: &ImportedOutput) -> (String, u32) {
    (trial.files.get(output.file).map(|file| file.name.clone()).unwrap_or_default(), output.lines.0)
}

fn printed<'a>(output: &'a ImportedOutput, names: &[&str]) -> Option<&'a str> {
    let of = |name: &&str| output.facts.iter().find(|(known, _)| known == name);
    names.iter().find_map(of).map(|(_, value)| value.as_str())
}

/// The first value that outputs print otherwise than it is told, and all places where that value stands.
fn otherwise<'a>(
    case: &'a ImportedCase,
    names: &[&str],
    differs: impl Fn(&str) -> bool,
) -> Option<(&'a str, Vec<(String, u32)>)> {
    let all = || outputs(case).filter_map(|(trial, output)| Some((trial, output, printed(output, names)?)));
    let (.., own) = all().find(|(.., own)| differs(own))?;
    let at = all().filter(|(.., other)| *other == own).map(|(trial, output, _)| place(trial, output));
    Some((own, at.collect()))
}

/// PostgreSQL's version, to the part that names a major one. A client may be of another version than its server, so that
/// is a suspicion where only the client tells its own.
fn server(record: &ImportRecord, case: &ImportedCase) -> Option<Remark> {
    let told = fact(case, &["postgresql.version", "postgres.version"]).or(record.origin.postgresql.as_deref())?;
    let told_major = major(told)?;
    let differs = |own: &str| major(own).is_some_and(|own| own != told_major);
    let (own, at) = otherwise(case, &["server version", "build"], differs)?;
    let source = "the version that the tool printed";
    let rule = Rule { name: "version_contradicts", weight: Weight::Suspicion, source };
    Some(rule.says_of(case, at, format!("the output is of version {own}, where PostgreSQL is said to be {told}")))
}

/// `15` of `PostgreSQL 15.3`, `9.6` of `9.6.24`.
fn major(version: &str) -> Option<String> {
    let (first, second) = first_numbers(version)?;
    Some(if first >= 10 { first.to_string() } else { format!("{first}.{}", second?) })
}

/// The first two numbers of the first version in a text.
fn first_numbers(text: &str) -> Option<(u32, Option<u32>)> {
    let begin = text.find(|c: char| c.is_ascii_digit())?;
    let mut parts = text[begin..].split('.').map(|part| {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..end].parse::<u32>().ok()
    });
    Some((parts.next()??, parts.next().flatten()))
}

/// The kernel, as far as both tell its numbers.
fn kernel(record: &ImportRecord, case: &ImportedCase) -> Option<Remark> {
    // In the name of a system another version comes first: `Debian 12.5`.
    let of_system = |system: &'_ str| {
        let behind = ["Linux ", "kernel "].iter().find_map(|word| system.split_once(word))?.1.to_owned();
        behind.starts_with(|c: char| c.is_ascii_digit()).then_some(behind)
    };
    let told = fact(case, &["host.kernel", "kernel"]).map(str::to_owned);
    let told = told.or_else(|| record.origin.system.as_deref().and_then(of_system))?;
    let (one, of_one) = first_numbers(&told)?;
    let differs = |own: &str| {
        first_numbers(own).is_some_and(|(other, of_other)| {
            one != other || of_one.zip(of_other).is_some_and(|(one, other)| one != other)
        })
    };
    let (own, at) = otherwise(case, &["kernel"], differs)?;
    let rule =
        Rule { name: "facts_contradict", weight: Weight::Contradiction, source: "the kernel that the tool printed" };
    Some(rule.says_of(case, at, format!("the output is of kernel {own}, where it is said to be {told}")))
}

/// The date; a clock of another zone may put it a day off.
fn date(record: &ImportRecord, case: &ImportedCase) -> Option<Remark> {
    let rule = Rule { name: "facts_contradict", weight: Weight::Contradiction, source: "the clock in the output" };
    let told = record.origin.measured.as_deref()?;
    // Where nobody tells it, it is taken from the output, and is that of the first trial alone.
    let mut began = record.cases.iter().flat_map(|case| &case.trials).filter_map(|trial| trial.began.as_deref());
    if began.any(|began| began == told) {
        return None;
    }
    let (first, last) = days(told)?;
    let (first, last) = (first.checked_sub(1.day()).ok()?, last.checked_add(1.day()).ok()?);
    let outside = |began: &str| {
        let day = began.get(..10).and_then(|day| day.parse::<Date>().ok());
        day.is_some_and(|day| day < first || day > last)
    };
    let other = |trial: &ImportedTrial| trial.began.as_deref().is_some_and(outside);
    let all: Vec<&ImportedTrial> = case.trials.iter().filter(|trial| other(trial)).collect();
    let began = all.first()?.began.as_deref()?;
    let at = all.iter().filter_map(|trial| Some(place(trial, trial.outputs.first()?))).collect();
    Some(rule.says_of(case, at, format!("what was measured began {began}, where it is said to be of {told}")))
}

/// First and last day of a date in full (a time may follow it), of a month `2014-06`, or of a year; `None` of anything else.
fn days(told: &str) -> Option<(Date, Date)> {
    let told = told.trim();
    let end = told.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(told.len());
    let (date, behind) = told.split_at(end);
    let parts: Vec<&str> = date.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let year = || parts[0].parse::<i16>().ok();
    let time = behind.strip_prefix(['T', ' ']).is_some_and(|time| time.starts_with(|c: char| c.is_ascii_digit()));
    match (lengths.as_slice(), behind.is_empty()) {
        ([4, 2, 2], empty) if empty || time => date.parse().ok().map(|day| (day, day)),
        ([4, 2], true) => {
            let first = Date::new(year()?, parts[1].parse().ok()?, 1).ok()?;
            Some((first, first.last_of_month()))
        }
        ([4], true) => Some((Date::new(year()?, 1, 1).ok()?, Date::new(year()?, 12, 31).ok()?)),
        _ => None,
    }
}

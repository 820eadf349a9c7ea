//! `waits.parquet`: the waits of the clients' backends in one trial: one row per second and wait.
//!
//! `trial.json` has the totals; this file has the seconds behind them, stored only here.

use super::seconds::{ColumnData, SecondsWriter, read_file};
use super::staging::WAITS;
use crate::error::{Error, Result};
use crate::record::column::Column;
use crate::record::columns;
use crate::record::seconds::Value;
use crate::record::trial::{WaitFigures, WaitSecond};
use std::collections::BTreeMap;
use std::path::Path;

/// Writes the seconds of `waits`. `key` identifies the trial, in columns that every row begins with; `began_us` is when
/// the first operation began, if known.
///
/// # Errors
/// With the path.
pub fn write(path: &Path, key: &[(Column, Value)], began_us: Option<u64>, waits: &WaitFigures) -> Result<()> {
    let columns = key.iter().map(|(column, _)| column.clone()).chain(columns::waits()).collect();
    let mut writer = SecondsWriter::create(path, columns)?;
    for (place, second) in waits.seconds.iter().enumerate().filter(|(_, second)| second.samples > 0) {
        let row = began_us.map(|began_us| Value::Count(waits.row(place, began_us)));
        let at = Value::Count(waits.began_us + place as u64 * 1_000_000);
        let samples = Value::Count(u64::from(second.samples));
        let mut push = |wait: [Option<&str>; 2], backends: u32| {
            let mut values: Vec<Option<Value>> = key.iter().map(|(_, value)| Some(value.clone())).collect();
            values.extend([row.clone(), Some(at.clone())]);
            values.extend(wait.map(|text| Some(Value::Text(text?.to_owned()))));
            values.extend([Some(samples.clone()), Some(Value::Count(u64::from(backends)))]);
            writer.push(values)
        };
        if second.counts.is_empty() {
            push([None, None], 0)?;
        }
        for (wait, backends) in &second.counts {
            let wait = waits.waits.get(*wait as usize);
            let wait = wait.ok_or_else(|| Error::bug("a second of waits refers to a wait that was not counted"))?;
            push([Some(&wait.class), Some(&wait.event)], *backends)?;
        }
    }
    writer.finish()
}

/// Reads the seconds back into `waits`; they stay empty if the trial has no such file.
///
/// # Errors
/// With the path, if the file is damaged or does not belong to these waits.
pub fn read(trial: &Path, waits: &mut WaitFigures) -> Result<()> {
    let wanted = columns::waits().map(|column| column.name);
    let data = read_file(trial, WAITS, |name| wanted.iter().any(|wanted| wanted == name))?;
    let Some(mut data) = data else { return Ok(()) };
    let damaged = |what: &str| Error::store(format!("{}: {what}", trial.join(WAITS).display()));
    let mut counts = |column: &str| match data.remove(column) {
        Some(ColumnData::Count(column)) => Ok(column.0.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>()),
        _ => Err(damaged(&format!("no numeric column `{column}`"))),
    };
    let (times, samples, backends) = (counts("time_us")?, counts("samples")?, counts("backends")?);
    let mut texts = |column: &str| match data.remove(column) {
        Some(ColumnData::Text(column)) => Ok(column),
        _ => Err(damaged(&format!("no text column `{column}`"))),
    };
    let (classes, events) = (texts("wait_class")?, texts("wait_event")?);
    let place: BTreeMap<(&str, &str), u32> =
        (0..).zip(&waits.waits).map(|(at, wait)| ((wait.class.as_str(), wait.event.as_str()), at)).collect();
    let mut seconds: Vec<WaitSecond> = Vec::new();
    for row in 0..times.len() {
        let after = times[row].checked_sub(waits.began_us).ok_or_else(|| damaged("a second before the first"))?;
        let second = usize::try_from(after / 1_000_000).unwrap_or(usize::MAX);
        // Seconds without any sample have no row.
        if second > seconds.len() + MOST_MISSING {
            return Err(damaged("more than a month without a sample"));
        }
        if seconds.len() <= second {
            seconds.resize_with(second + 1, WaitSecond::default);
        }
        seconds[second].samples = u32::try_from(samples[row]).unwrap_or(u32::MAX);
        if let Some(wait) = classes.at(row).zip(events.at(row)) {
            let wait = place.get(&wait);
            let wait = wait.ok_or_else(|| damaged("a wait that trial.json does not have"))?;
            seconds[second].counts.push((*wait, u32::try_from(backends[row]).unwrap_or(u32::MAX)));
        }
    }
    waits.seconds = seconds;
    Ok(())
}

/// Longest gap between two samples, seconds: a damaged time must not allocate all memory.
const MOST_MISSING: usize = 31 * 86_400;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::trial::WaitCount;

    fn figures() -> WaitFigures {
        let wait = |event: &str| WaitCount { class: "IO".to_owned(), event: event.to_owned(), count: 1 };
        let second = |samples, counts: &[(u32, u32)]| WaitSecond { samples, counts: counts.to_vec() };
        WaitFigures {
            waits: vec![wait("WALSync"), wait("DataFileRead")],
            seconds: vec![second(10, &[(1, 3), (0, 70)]), second(0, &[]), second(9, &[]), second(2, &[(0, 1)])],
            began_us: 1_700_000_000_000_000,
            ..WaitFigures::default()
        }
    }

    fn written(waits: &WaitFigures) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let key = [(columns::CASE.column(), Value::Text("c".to_owned()))];
        write(&folder.path().join("waits.parquet"), &key, Some(waits.began_us + 400_000), waits).unwrap();
        folder
    }

    #[test]
    fn the_seconds_come_back_with_those_without_a_sample() {
        let waits = figures();
        let folder = written(&waits);
        let mut back = WaitFigures { seconds: Vec::new(), ..waits.clone() };
        read(folder.path(), &mut back).unwrap();
        assert_eq!(back, waits);
        let rows = read_file(folder.path(), WAITS, |name| name == "second").unwrap().unwrap();
        let ColumnData::Count(values) = &rows["second"] else { panic!("{rows:?}") };
        assert_eq!(values.0, [1, 1, 3, 4].map(Some));
    }

    #[test]
    fn a_file_of_other_waits_is_an_error() {
        let folder = written(&figures());
        let mut other = WaitFigures { waits: figures().waits[..1].to_vec(), ..figures() };
        assert!(read(folder.path(), &mut other).unwrap_err().to_string().contains("trial.json does not have"));
        let mut later = WaitFigures { began_us: u64::MAX, ..figures() };
        assert!(read(folder.path(), &mut later).unwrap_err().to_string().contains("before the first"));
        std::fs::write(folder.path().join("waits.parquet"), b"PAR1").unwrap();
        assert!(read(folder.path(), &mut figures()).is_err());
    }

    #[test]
    fn a_trial_without_the_file_has_no_seconds() {
        let mut waits = WaitFigures { seconds: Vec::new(), ..figures() };
        read(tempfile::tempdir().unwrap().path(), &mut waits).unwrap();
        assert!(waits.seconds.is_empty());
    }
}

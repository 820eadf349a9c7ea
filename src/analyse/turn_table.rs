//! `turns.parquet`: one row a turn, in order of time, so that a reader can fit a model of their own to what ours was fitted to.
//!
//! Made like `trials.parquet`, and only where trials had turns.

use crate::error::Result;
use crate::record::column::ColumnType;
use crate::record::seconds::{Row, Value};
use crate::record::trial::TrialRecord;
use crate::store::table::{self, ParquetColumn};
use std::path::Path;

/// The file in the run folder.
pub const FILE: &str = "turns.parquet";

/// Name, unit, type and meaning of each column.
const COLUMNS: [(&str, &str, ColumnType, &str); 18] = [
    ("run", "", ColumnType::Text, "id of the run that measured it"),
    ("case", "", ColumnType::Text, "id of the case"),
    ("trial", "", ColumnType::Count, "number of the block, in which its stack stood beside the others"),
    ("round", "", ColumnType::Count, "number of the round in the block; a round is what is compared"),
    ("after", "", ColumnType::Text, "id of the case whose turn came before; absent for the first of a block"),
    ("began_us", "us", ColumnType::Count, "start of its first operation, since 1970"),
    ("whole_us", "us", ColumnType::Count, "from its first operation to the end of its last one"),
    ("operations", "", ColumnType::Count, "operations that its rate counts"),
    ("elapsed_us", "us", ColumnType::Count, "time of these"),
    ("wal_flush_us", "us", ColumnType::Count, "flushing WAL that clients did not wait for, afterwards"),
    ("sync_us", "us", ColumnType::Count, "writing back everything else, then"),
    ("operations_most", "", ColumnType::Count, "operations that each turn was given; absent for turns of equal time"),
    ("probe_flushes", "", ColumnType::Count, "synced writes below the images, or in the folder, just before it"),
    ("probe_us", "us", ColumnType::Count, "time of these"),
    ("probe_others_cpu_us", "us", ColumnType::Count, "CPU time that programs outside of the run took meanwhile"),
    ("probe_whole_us", "us", ColumnType::Count, "time in which they took it, with the making of the probe's file"),
    ("counts", "", ColumnType::Flag, "false where its round was made again, since the disk was disturbed"),
    ("is_off", "", ColumnType::Flag, "true where the disk was disturbed in its round"),
];

/// Rows of a trial, each with the start of its turn.
pub(super) fn rows(trial: &TrialRecord) -> Vec<(u64, Row)> {
    let Some(record) = &trial.turns else { return Vec::new() };
    let all = record.turns.iter().map(|turn| {
        let probe = turn.probe.as_ref();
        let [flushes, elapsed_us] = [probe.map(|probe| probe.flushes), probe.map(|probe| probe.elapsed_us)];
        let [others_us, whole_us] =
            [probe.and_then(|probe| probe.others_cpu_us), probe.and_then(|probe| probe.whole_us)];
        let times = [turn.began_us, turn.whole_us, turn.operations, turn.elapsed_us, turn.wal_flush_us, turn.sync_us];
        let known = [record.operations, flushes, elapsed_us, others_us, whole_us];
        let mut row: Row = [&trial.run, &trial.case.id].map(|text| Some(Value::Text(text.clone()))).into();
        row.extend([trial.trial, turn.round].map(|count| Some(Value::Count(u64::from(count)))));
        row.push(turn.after.clone().map(Value::Text));
        row.extend(times.map(Some).into_iter().chain(known).map(|count| count.map(Value::Count)));
        row.extend([Some(turn.counts), turn.is_off].map(|flag| flag.map(Value::Flag)));
        (turn.began_us, row)
    });
    all.collect()
}

/// Writes them into a run folder in order of time; nothing where no trial had turns.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write(folder: &Path, mut rows: Vec<(u64, Row)>) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|(began_us, _)| *began_us);
    let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    table::write(&folder.join(FILE), &ParquetColumn::all(&COLUMNS), &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::disk_probe::DiskProbe;
    use crate::record::turns::{TurnRecord, TurnsRecord};

    #[test]
    fn a_turn_is_a_row_of_its_raw_counts() {
        let probe = DiskProbe { flushes: 900, elapsed_us: 150_000, ..DiskProbe::default() };
        let turns = vec![
            TurnRecord { round: 1, began_us: 7, operations: 40, elapsed_us: 9, ..TurnRecord::default() },
            TurnRecord {
                round: 1,
                after: Some("b".to_owned()),
                probe: Some(probe),
                counts: true,
                ..TurnRecord::default()
            },
        ];
        let record = TurnsRecord { turns, operations: Some(40), ..TurnsRecord::default() };
        let trial = TrialRecord { turns: Some(record), trial: 3, ..TrialRecord::default() };
        let rows = rows(&trial);
        let cell = |turn: usize, name: &str| {
            let at = COLUMNS.iter().position(|(column, ..)| *column == name).unwrap();
            rows[turn].1[at].clone()
        };
        assert!(rows.iter().all(|(_, row)| row.len() == COLUMNS.len()));
        assert_eq!((cell(0, "trial"), cell(0, "operations")), (Some(Value::Count(3)), Some(Value::Count(40))));
        assert_eq!((cell(0, "probe_us"), cell(0, "after"), cell(0, "counts")), (None, None, Some(Value::Flag(false))));
        assert_eq!(
            (cell(1, "probe_flushes"), cell(1, "after")),
            (Some(Value::Count(900)), Some(Value::Text("b".to_owned())))
        );
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), Vec::new()).unwrap();
        assert!(!folder.path().join(FILE).exists(), "a run without turns has no such file");
        write(folder.path(), rows.clone()).unwrap();
        assert!(folder.path().join(FILE).is_file());
    }
}

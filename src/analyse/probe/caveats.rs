//! Caveats on the figures of a probe.

use super::evidence::ProbeEvidence;
use crate::units::{Bytes, Micros, significant};

/// A filesystem may write this many times the bytes it is given: journal, log tree, superblocks, whole blocks of 64 kB
/// for 8 kB. More must come from others.
const MOST_JOURNAL: f64 = 20.0;
/// Usual file size of the rows that pg_test_fsync has too.
const USUAL_FILE_BYTES: u64 = 16 << 20;

/// The caveat that explains a mark in the table of a probe.
pub const OF_MARKS: &str = "other programs use the device: device work of rows marked ~ includes theirs";

/// All caveats, most important first.
pub(super) fn caveats(evidence: &ProbeEvidence) -> Vec<String> {
    let record = evidence.record;
    let mut found: Vec<String> = record.notes.iter().chain(&record.left_behind).cloned().collect();
    if evidence.rows.iter().flat_map(|row| &row.work).any(|work| work.worthless) {
        found.push(OF_MARKS.to_owned());
    }
    found.extend(busy_cpus(evidence));
    found.extend(crowded(evidence));
    if record.file_bytes > 0 && record.file_bytes < USUAL_FILE_BYTES {
        found.push(format!("the file is {}, not 16 MiB: not enough free space", Bytes(record.file_bytes)));
    }
    found.push(format!(
        "{} of measuring is too short to show a drive that slows down when its cache is full or stalls once a minute{}",
        Micros(record.elapsed_us),
        unsettled(evidence).map_or_else(String::new, |unsettled| format!("; {unsettled}"))
    ));
    found
}

/// Caveat for rows whose rates did not reach the precision in time, with the widest interval.
fn unsettled(evidence: &ProbeEvidence) -> Option<String> {
    let record = evidence.record;
    let rates = evidence.rows.iter().filter_map(|row| Some((row.spec.label.trim(), row.rate.as_ref()?)));
    let imprecise = rates.clone().filter(|(_, rate)| record.precision > 0.0 && !rate.precise);
    let imprecise: Vec<_> =
        imprecise.map(|(label, rate)| (rate.relative_half_width.unwrap_or(f64::INFINITY), label, rate)).collect();
    let (_, label, rate) = imprecise.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(format!(
        "{} of {} rates did not reach ±{} %; widest: \"{label}\", {}",
        imprecise.len(),
        rates.count(),
        significant(record.precision * 100.0),
        rate.imprecise_because.as_deref().unwrap_or_default()
    ))
}

/// Share of the time that the probe's own thread may wait for a CPU; beyond, latencies are not the storage's alone.
const OWN_WAIT: f64 = 0.03;
/// The same for any process: kernel threads that complete a sync wait like others. A probe's row has several writers,
/// which wait for each other's CPU on a small machine.
const SOME_WAIT: f64 = 0.25;

/// Phrase that identifies the caveat about busy CPUs; `compare` takes no direction from a probe that has it.
pub(crate) const WAITED: &str = "waited for a CPU";

/// Caveat if CPU waits were so long that latencies are not the storage's alone.
fn busy_cpus(evidence: &ProbeEvidence) -> Option<String> {
    let wait = evidence.record.cpu.as_ref().filter(|wait| wait.elapsed_us > 0)?;
    let share = |us: u64| (us as f64 / wait.elapsed_us as f64).min(1.0);
    let (who, share, why) = match (wait.own_us.map(share), wait.some_us.map(share)) {
        (Some(own), _) if own > OWN_WAIT => {
            ("the probe", own, "other programs use the CPUs, and latencies include that wait")
        }
        (_, Some(some)) if some > SOME_WAIT => ("some process", some, "latencies may be due to busy CPUs, not storage"),
        _ => return None,
    };
    Some(format!("{who} {WAITED} {} % of the time: {why}", significant(share * 100.0)))
}

/// The row during which a device wrote more than the row can have caused, journal included.
fn crowded(evidence: &ProbeEvidence) -> Option<String> {
    let rows = evidence.rows.iter().filter(|row| row.spec.writers <= 1).filter_map(|row| {
        let own = f64::from(row.spec.write_bytes) * f64::from(row.spec.writes);
        let most = row.work.iter().map(|work| work.bytes_per_op).reduce(f64::max)?;
        (own > 0.0).then_some((row, most / own, most))
    });
    let (row, times, bytes) = rows.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (times > MOST_JOURNAL).then(|| {
        format!(
            "{} were written to the device per operation of \"{}\": other programs wrote at the same time and may have \
             added latency",
            Bytes(bytes.round() as u64),
            row.spec.label.trim()
        )
    })
}

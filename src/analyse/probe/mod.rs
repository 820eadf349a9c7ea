//! Findings of a probe of a folder: speed, steadiness and credibility of synced writes there.
//!
//! A pure function from the record to its findings. `docs/adr/0010-probe-credibility.md` explains the credibility.
//! Absent on purpose: text for terminals (`report::probe`), and convictions, which only a power cut can give.

pub(crate) mod advice;
pub(crate) mod caveats;
pub(crate) mod credibility;
pub(crate) mod evidence;
pub(crate) mod findings;
pub(crate) mod growth;
pub(crate) mod latency;
pub(crate) mod requirements;
pub(crate) mod rows;
pub(crate) mod rules;
pub(crate) mod rules_flush;
pub(crate) mod rules_speed;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod server;
pub(crate) mod standing;
#[cfg(test)]
mod tests;
pub(crate) mod work;

use crate::record::probe::ProbeRecord;
use evidence::ProbeEvidence;
use findings::ProbeFindings;

/// All conclusions from a probe, for a server of the major version `server`.
pub fn find(record: &ProbeRecord, server: u32) -> ProbeFindings {
    let rows: Vec<_> = record.rows.iter().map(|row| rows::finding(row, record, server)).collect();
    let growth = growth::growth(record);
    let evidence = ProbeEvidence { record, rows: &rows, growth: &growth };
    let credibility = credibility::credibility(&evidence);
    let recommendation = advice::recommend(&evidence, &credibility, server);
    let standing = standing::standing(&rows, &credibility);
    ProbeFindings {
        format: findings::FORMAT,
        analysed_by: env!("CARGO_PKG_VERSION").to_owned(),
        started: record.started.clone(),
        elapsed_us: record.elapsed_us,
        server_major: server,
        file_bytes: record.file_bytes,
        place: record.place.clone(),
        histogram: latency::bin_upper_ns().to_vec(),
        idle: work::idle(record),
        caveats: caveats::caveats(&evidence),
        stall_rule: latency::stall_rule(),
        server_equals: server::equals(record, server),
        rows,
        growth,
        credibility,
        recommendation,
        standing,
    }
}

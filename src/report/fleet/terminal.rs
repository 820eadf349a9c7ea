//! A fleet comparison for a terminal.

use crate::analyse::fleet::{FleetFindings, GroupComparison, HostFinding, HostGroup};
use crate::report::layout::TextTable;
use crate::report::text::{paragraph, printable, section};

/// Most hosts shown of a group: the slowest.
const SHOWN: usize = 20;

/// The whole report.
pub fn terminal(findings: &FleetFindings) -> String {
    let answer: String = findings.answer.iter().map(|sentence| paragraph("", sentence)).collect();
    let groups: String = findings.groups.iter().map(table).collect();
    let compared = findings.comparisons.iter().map(|comparison| paragraph("  ", &compared(comparison)));
    answer
        + &groups
        + &section("Groups (each host counts once; 95 % CI)", compared)
        + &section("Groups not compared", findings.not_compared.iter().map(reason))
        + &section("Left out", findings.left_out.iter().map(reason))
}

fn reason((what, why): &(String, String)) -> String {
    paragraph("  ", &format!("{what}: {why}"))
}

/// `firmware B2 against firmware A1: 0.951 times the speed (0.944 to 0.958); paired over 6 hosts`.
fn compared(comparison: &GroupComparison) -> String {
    let GroupComparison { group, reference, ratio, hosts: (own, others), method } = comparison;
    let ends = ratio.low.zip(ratio.high).map(|(low, high)| format!(" ({low:.3} to {high:.3})")).unwrap_or_default();
    let hosts = if own == others && method.starts_with("paired") {
        String::new()
    } else {
        format!("; {own} and {others} hosts")
    };
    format!("{group} against {reference}: {:.3} times the speed{ends}; {method}{hosts}", ratio.value)
}

fn table(group: &HostGroup) -> String {
    let titles = ["host", "speed", "MADs below", "trials", "slowest case"];
    let table = TextTable::new(titles, &[1, 2, 3]).rows(group.hosts.iter().take(SHOWN).map(cells));
    let more = group.hosts.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!("  and {more} faster hosts (--json has them)\n") } else { String::new() };
    format!("\n{}\n{}{rest}", printable(&group.name), table.shown())
}

fn cells(host: &HostFinding) -> [String; 5] {
    let below = host.below.map_or_else(|| "-".to_owned(), |below| format!("{below:.1}"));
    let slowest = host.slowest().map_or_else(String::new, |(case, speed)| format!("{case} {speed:.3}"));
    let name = if host.is_slow { format!("{} (slow)", host.host) } else { host.host.clone() };
    [name, format!("{:.3}", host.speed), below, host.trials.to_string(), slowest]
}

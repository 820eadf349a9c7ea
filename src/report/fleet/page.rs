//! Page of a fleet: one file that opens from disk, needs no network and no script, and uses the report's style sheet.

use super::super::sheet::{self, Sheet};
use super::super::table::{Cell, Table, TableColumn};
use super::super::words::fields;
use super::plot;
use crate::analyse::fleet::{FleetFindings, GroupComparison, HostGroup};
use crate::error::Result;
use minijinja::{Value, context};
use serde::Serialize;

const TEMPLATE: &str = include_str!("page.html");
/// Additions to the report's style sheet.
const OWN_STYLE: &str = include_str!("page.css");
/// Prefix of the file names of its tables.
const NAME: &str = "fleet";

/// Link to another grouping of the same hosts, on a server.
#[derive(Debug, Serialize)]
pub struct GroupingLink {
    pub text: String,
    pub address: String,
    /// True for the grouping of this page.
    pub is_this: bool,
}

/// Renders the page; on a server, with links to its list of runs and to other groupings.
///
/// # Errors
/// A bug: a template that does not render.
pub fn page(findings: &FleetFindings, home: Option<&str>, groupings: &[GroupingLink]) -> Result<String> {
    let words: Vec<&str> = findings.grouped_by.iter().map(|by| by.word()).collect();
    let own = context! {
            version => env!("CARGO_PKG_VERSION"),
            groupings => groupings,
            plan => findings.plan,
            grouped_by => words.join(", "),
            answer => findings.answer,
            hosts => findings.hosts,
            groups => findings.groups.iter().enumerate().map(group).collect::<Vec<_>>(),
            comparisons => Sheet::of(NAME, comparisons(&findings.comparisons)),
            not_compared => findings.not_compared,
            left_out_count => findings.left_out.len(),
            left_out => Sheet::of(NAME, left_out(&findings.left_out)),
    };
    sheet::render("a fleet", TEMPLATE, OWN_STYLE, home, own)
}

fn group((index, group): (usize, &HostGroup)) -> Value {
    context! {
        name => group.name,
        dots => plot::dots(group),
        history => plot::history(group),
        sheet => Sheet::of(NAME, hosts(index, group)),
        limit => group.limit.map(|limit| format!("{limit:.1}")),
        limit_speed => group.limit_speed.map(|speed| format!("{speed:.3}")),
    }
}

fn hosts(index: usize, group: &HostGroup) -> Table {
    let columns = vec![
        TableColumn::text("host").csv(&["host", "slow"]),
        TableColumn::number("speed", ""),
        TableColumn::number("MADs below", ""),
        TableColumn::number("trials", ""),
        TableColumn::number("runs", ""),
        TableColumn::text("slowest case").csv(&["slowest case", "its speed"]),
    ];
    let rows = group.hosts.iter().map(|host| {
        let named = Cell::text(&host.host).csv(vec![host.host.clone(), host.is_slow.to_string()]);
        let named = if host.is_slow { named.aside("slow").style("name slower") } else { named.style("name") };
        let slowest = host.slowest().map_or_else(
            || Cell::text("").csv(vec![String::new(); 2]),
            |(case, speed)| Cell::text(case).aside(format!("{speed:.3}")).csv(vec![case.clone(), speed.to_string()]),
        );
        vec![
            named,
            Cell::number(Some(host.speed), |speed| format!("{speed:.3}")),
            Cell::number(host.below, |below| format!("{below:.1}")),
            Cell::number(Some(host.trials), |trials| trials.to_string()),
            Cell::number(Some(host.runs()), |runs| runs.to_string()),
            slowest,
        ]
    });
    Table::new(format!("hosts-{index}"), format!("Hosts: {}", group.name), columns).rows(rows)
}

fn comparisons(all: &[GroupComparison]) -> Table {
    let columns = vec![
        TableColumn::text("group"),
        TableColumn::text("against"),
        TableColumn::number("speed", "").csv(&["ratio", "low", "high"]),
        TableColumn::text("hosts").csv(&["hosts", "hosts of the other"]),
        TableColumn::text("how"),
    ];
    let rows = all.iter().map(|GroupComparison { group, reference, ratio, hosts: (own, others), method }| {
        let ends = ratio.low.zip(ratio.high).map(|(low, high)| format!("{low:.3}–{high:.3}")).unwrap_or_default();
        vec![
            Cell::text(group).style("name"),
            Cell::text(reference).style("reason"),
            Cell::text(format!("{:.3}×", ratio.value)).aside(ends).csv(fields(Some(ratio))),
            Cell::text(format!("{own} and {others}")).csv(vec![own.to_string(), others.to_string()]),
            Cell::text(method).style("reason"),
        ]
    });
    Table::new("groups", "Groups over the largest one", columns).rows(rows)
}

fn left_out(all: &[(String, String)]) -> Table {
    let columns = vec![TableColumn::text("folder"), TableColumn::text("why")];
    let rows =
        all.iter().map(|(folder, reason)| vec![Cell::text(folder).style("name"), Cell::text(reason).style("reason")]);
    Table::new("left-out", "Left out", columns).rows(rows)
}

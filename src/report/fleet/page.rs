//! Page of a fleet: one file that opens from disk, needs no network and no script, and uses the report's style sheet.

use super::super::sheet::{self, sheet};
use super::super::table::{Cell, Table, TableColumn};
use super::super::words::{fields, optional};
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
    let words: Vec<String> = findings.grouped_by.iter().map(|by| by.word()).collect();
    let own = context! {
            version => env!("CARGO_PKG_VERSION"),
            groupings => groupings,
            plan => findings.plan,
            grouped_by => words.join(", "),
            answer => findings.answer,
            hosts => findings.hosts,
            groups => findings.groups.iter().enumerate().map(group).collect::<Vec<_>>(),
            comparisons => sheet(NAME, &comparisons(&findings.comparisons)),
            not_compared => findings.not_compared,
            left_out_count => findings.left_out.len(),
            left_out => sheet(NAME, &left_out(&findings.left_out)),
    };
    sheet::render("a fleet", TEMPLATE, OWN_STYLE, home, own)
}

fn group((index, group): (usize, &HostGroup)) -> Value {
    context! {
        name => group.name,
        dots => plot::dots(group),
        history => plot::history(group),
        sheet => sheet(NAME, &hosts(index, group)),
        limit => group.limit.map(|limit| format!("{limit:.1}")),
        limit_speed => group.limit_speed.map(|speed| format!("{speed:.3}")),
    }
}

fn hosts(index: usize, group: &HostGroup) -> Table {
    Table::over(format!("hosts-{index}"), format!("Hosts: {}", group.name), &group.hosts).columns(&[
        (TableColumn::text("host").csv(&["host", "slow"]), &|host| {
            let named = Cell::text(&host.host).csv(vec![host.host.clone(), host.is_slow.to_string()]);
            if host.is_slow { named.aside("slow").style("name slower") } else { named.style("name") }
        }),
        (TableColumn::number("speed", ""), &|host| Cell::number(Some(host.speed), |speed| format!("{speed:.3}"))),
        (TableColumn::number("MADs below", ""), &|host| Cell::number(host.below, |below| format!("{below:.1}"))),
        (TableColumn::number("trials", ""), &|host| Cell::text(host.trials.to_string())),
        (TableColumn::number("runs", ""), &|host| Cell::text(host.runs().to_string())),
        (TableColumn::text("slowest case").csv(&["slowest case", "its speed"]), &|host| {
            let (case, speed) = host.slowest().map_or(("", None), |(case, speed)| (case.as_str(), Some(speed)));
            let shown = speed.map(|speed| format!("{speed:.3}")).unwrap_or_default();
            Cell::text(case).aside(shown).csv(vec![case.to_owned(), optional(speed)])
        }),
    ])
}

fn comparisons(all: &[GroupComparison]) -> Table {
    Table::over("groups", "Groups over the largest one", all).columns(&[
        (TableColumn::text("group"), &|it| Cell::text(&it.group).style("name")),
        (TableColumn::text("against"), &|it| Cell::text(&it.reference).style("reason")),
        (TableColumn::number("speed", "").csv(&["ratio", "low", "high"]), &|GroupComparison { ratio, .. }| {
            let ends = ratio.low.zip(ratio.high).map(|(low, high)| format!("{low:.3}–{high:.3}")).unwrap_or_default();
            Cell::text(format!("{:.3}×", ratio.value)).aside(ends).csv(fields(Some(ratio)))
        }),
        (TableColumn::text("hosts").csv(&["hosts", "hosts of the other"]), &|it| {
            let (own, others) = it.hosts;
            Cell::text(format!("{own} and {others}")).csv(vec![own.to_string(), others.to_string()])
        }),
        (TableColumn::text("how"), &|it| Cell::text(&it.method).style("reason")),
    ])
}

fn left_out(all: &[(String, String)]) -> Table {
    Table::over("left-out", "Left out", all).columns(&[
        (TableColumn::text("folder"), &|(folder, _)| Cell::text(folder).style("name")),
        (TableColumn::text("why"), &|(_, reason)| Cell::text(reason).style("reason")),
    ])
}

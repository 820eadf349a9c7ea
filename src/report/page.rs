//! `report.html`: one file that opens from disk and needs no network.
//!
//! Everything that needs no script is rendered here, with the template engine's escaping; charts are drawn by
//! `html/*.js` from the findings embedded as JSON. A content security policy allows exactly the two scripts and the
//! style sheet in the file, by their hashes, and no request at all.

use super::cases::flush_share;
use super::counters::counters_table;
use super::device_work::device_work;
use super::differences::differences_table;
use super::effects::effects_table;
use super::embed::page_data;
use super::environment::{each_machine, machine_names, machines_table, method_table, servers_table, stacks_table};
use super::labelled::Labelled;
use super::latencies::CLOSED_LOOP;
use super::rankings::{kinds, ranking_tables};
use super::section_titles::section_titles;
use super::table::Table;
use super::template::{STYLE, sum};
use super::words::{caution_cases, fits_title, moment, most_disturbed, percent, server_versions};
use super::{ageing, disk, drives, full, merged, power_cuts, profiled, template};
use crate::analyse::findings::groups::by_key;
use crate::analyse::findings::{Ageing, Effects, Findings, Ranking};
use crate::error::Result;
use crate::units::Bytes;
use minijinja::{Value, context};
use std::collections::BTreeMap;

const TEMPLATE: &str = concat!(
    include_str!("html/table.html"),
    include_str!("html/capacity.html"),
    include_str!("html/stages.html"),
    include_str!("html/ageing.html"),
    include_str!("html/power_cuts.html"),
    include_str!("html/page.html")
);
/// Our own script: files in one scope, in order of dependency.
const SCRIPT: &str = concat!(
    "(function () {\n\"use strict\";\n",
    include_str!("html/base.js"),
    include_str!("html/charts.js"),
    include_str!("html/ranking.js"),
    include_str!("html/clients.js"),
    include_str!("html/time.js"),
    include_str!("html/compare.js"),
    include_str!("html/waits.js"),
    include_str!("html/capacity.js"),
    include_str!("html/ageing.js"),
    include_str!("html/heatmap.js"),
    include_str!("html/telemetry.js"),
    include_str!("html/sections.js"),
    include_str!("html/start.js"),
    "})();\n"
);
/// Apache ECharts, verified by `build.rs`.
const ECHARTS: &str = include_str!(concat!(env!("OUT_DIR"), "/echarts.min.js"));
/// Notices and licences that must be distributed with ECharts.
const ECHARTS_LICENSES: [&str; 3] = [
    include_str!(concat!(env!("OUT_DIR"), "/NOTICE")),
    include_str!(concat!(env!("OUT_DIR"), "/LICENSE")),
    include_str!(concat!(env!("OUT_DIR"), "/LICENSE-d3")),
];

/// `--format html`. With `refresh_s`, a browser reloads it at that interval while the run continues; `home` is the address
/// of a server's list of runs.
///
/// # Errors
/// For a fault in our template.
pub(crate) fn page(findings: &Findings, refresh_s: Option<u32>, home: Option<&str>) -> Result<String> {
    let labelled = Labelled::new(findings);
    let data = page_data(&labelled)?;
    let values = context! {
            policy => policy(),
            refresh_s => refresh_s,
            home => home,
            style => STYLE,
            echarts => ECHARTS,
            script => SCRIPT,
            data => data,
            licenses => ECHARTS_LICENSES.join("\n\n"),
            run => findings.run,
            by_hand => findings.by_hand,
            answer => findings.answer,
            any_trial => !findings.trials.is_empty(),
            began => moment(&findings.run.started),
            machines => machine_names(&findings.machines),
            sizes => each_machine(&findings.machines, |host| format!("{}, {}", host.cpus, Bytes(host.memory_bytes))),
            kernels => each_machine(&findings.machines, |host| host.kernel.clone()),
            server_versions => server_versions(findings),
            disturbed_most => most_disturbed(&findings.run),
            measured_share => findings.run.measured_share.map(percent),
            disks => disk::lines(&findings.run.disks),
            cautions => cautions(&labelled),
            rankings => rankings(findings),
            client_charts => client_charts(findings),
            ageing_figures => ageing_figures(findings),
            sentences => sentences(&labelled),
            times => times(&labelled),
            closed_loop => labelled.any_closed_loop().then_some(CLOSED_LOOP),
            checked => findings.trials.iter().map(|trial| trial.checks.len()).sum::<usize>(),
            disagreeing => findings.trials.iter().flat_map(|trial| &trial.checks).filter(|check| !check.agrees).count(),
            titles => section_titles(&labelled),
            tables => tables(&labelled),
            effects_first => findings.effects.iter().any(Effects::has_several_options),
    };
    template::render("a report", TEMPLATE, &values)
}

/// The page's policy: run our two scripts, use our style sheet; no request whatsoever.
fn policy() -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{}' 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        sum(ECHARTS),
        sum(SCRIPT),
        sum(STYLE)
    )
}

/// Rankings of one kind: the first is open, the others are folded.
fn rankings(findings: &Findings) -> Vec<Value> {
    let tables: Vec<Table> = ranking_tables(&findings.rankings).into_iter().map(Table::first).collect();
    let views: Vec<Value> = findings.rankings.iter().zip(tables).enumerate().map(view).collect();
    let shown = kinds(&findings.rankings).into_iter().map(|kind| {
        let measures: Vec<&str> = kind[1..].iter().map(|index| findings.rankings[*index].measure.as_str()).collect();
        let others: Vec<&Value> = kind[1..].iter().map(|index| &views[*index]).collect();
        context! { first => views[kind[0]], other_measures => measures.join(", "), others }
    });
    shown.collect()
}

fn view((index, (ranking, table)): (usize, (&Ranking, Table))) -> Value {
    let Ranking { unit, measure, .. } = ranking;
    context! { index, unit, measure, has_chart => table.length > 0, table }
}

/// A workload and measure ranked at more than one number of clients; each gets a chart.
fn client_charts(findings: &Findings) -> Vec<Value> {
    let mut counts: BTreeMap<(&str, &str, &str), Vec<&str>> = BTreeMap::new();
    for ranking in &findings.rankings {
        let key = (ranking.workload.as_str(), ranking.measure.as_str(), ranking.unit.as_str());
        for row in ranking.rows() {
            let case = findings.cases.iter().find(|case| case.id == row.case);
            if let Some(clients) = case.and_then(|case| case.axes.get("clients")) {
                counts.entry(key).or_default().push(clients);
            }
        }
    }
    let ranked = counts.into_iter().filter(|(_, clients)| clients.iter().any(|count| *count != clients[0]));
    ranked.map(|((workload, measure, unit), _)| context! { workload, measure, unit }).collect()
}

/// One of each figure and amount; each gets a chart.
fn ageing_figures(findings: &Findings) -> Vec<&Ageing> {
    let charts = by_key(findings.ageing.iter().map(|one| ((&one.figure, &one.axis), one)));
    charts.into_iter().map(|(_, of_chart)| of_chart[0]).collect()
}

/// Cautions with the cases that they concern; empty for the whole run.
fn cautions(labelled: &Labelled<'_>) -> Vec<Value> {
    let cautions = labelled.findings.cautions.iter();
    cautions.map(|one| context! { text => one.text, cases => caution_cases(one, &labelled.labels) }).collect()
}

/// Cost of one commit in each case.
fn sentences(labelled: &Labelled<'_>) -> Vec<Value> {
    let cases = labelled.findings.cases.iter().filter_map(|case| {
        let sentence = &case.strata.as_ref()?.sentence;
        // The commit rate as a share of the stack's own sync rate.
        let share = flush_share(case).map(|share| &share.sentence);
        Some(context! { case => labelled.label(&case.id), sentence, share, fits => case.fits.map(fits_title) })
    });
    cases.collect()
}

/// Backend time of each case.
fn times(labelled: &Labelled<'_>) -> Vec<Value> {
    let cases = labelled.findings.cases.iter().filter_map(|case| {
        let sentence = &case.backend_time.as_ref()?.sentence;
        Some(context! { case => labelled.label(&case.id), sentence, share => None::<&str>, fits => None::<&str> })
    });
    cases.collect()
}

/// All tables except rankings, by the template's id.
fn tables(labelled: &Labelled<'_>) -> BTreeMap<String, Table> {
    let findings = labelled.findings;
    let all = [
        device_work(labelled),
        profiled::table(&findings.profiled),
        labelled.stages(),
        labelled.snapshots(),
        power_cuts::verdicts(&findings.power_cuts),
        power_cuts::devices(&findings.power_cuts),
        drives::drives(&findings.drives),
        drives::rounds(&findings.drives),
        ageing::courses(&findings.ageing),
        ageing::points(&findings.ageing),
        labelled.capacities(),
        labelled.capacity_steps(),
        labelled.latencies().telling(),
        labelled.strata(),
        labelled.devices(),
        counters_table(&findings.rankings),
        effects_table(&findings.effects),
        labelled.percentiles(),
        labelled.backend_time(),
        labelled.waits(),
        labelled.steadiness(),
        labelled.phases(),
        labelled.turns(),
        labelled.windows(),
        labelled.checkpoints(),
        labelled.synced(),
        labelled.statements(),
        labelled.trials(),
        labelled.steps(),
        labelled.processes(),
        labelled.checks(),
        labelled.gaps(),
        full::table(labelled),
        labelled.not_run(),
        differences_table(labelled),
        merged::table(findings.run.merge.as_ref()),
        machines_table(&findings.machines, &findings.trials),
        stacks_table(labelled),
        servers_table(labelled),
        method_table(findings),
    ];
    all.into_iter().map(|table| (table.id.replace('-', "_"), table.even().first())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_content_is_unaltered_and_cannot_close_its_element() {
        for script in [ECHARTS, SCRIPT] {
            assert!(!script.contains("</script") && !script.contains("<!--") && !script.contains('\r'));
        }
        assert!(!STYLE.contains("</style") && !STYLE.contains('\r'));
    }

    #[test]
    fn the_page_without_its_data_stays_under_two_megabytes() {
        let bytes = TEMPLATE.len() + STYLE.len() + SCRIPT.len() + ECHARTS.len();
        assert!(bytes < 2_000_000, "{bytes} bytes");
    }
}

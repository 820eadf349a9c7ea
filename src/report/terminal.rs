//! Findings as text for a terminal: headline first, then rankings, latencies, cautions, not run.
//!
//! Plain UTF-8 without colours, to read the same in a log, a mail and a pager. Every text from outside is passed
//! through [`printable`], because a terminal obeys control characters.

use crate::analyse::findings::{
    CaseFinding, Caution, DurabilityClass, Effects, Findings, MeasureFinding, Percentile, Ranking,
};
use crate::error::{Context, Result};
use crate::report::backend_time::storage_words;
use crate::report::capacity::{Capacities, NOTE};
use crate::report::cases::{Cases, flush_share};
use crate::report::counters::differing_counters;
use crate::report::device_work::device_work;
use crate::report::effects::effects_table;
use crate::report::environment::each_machine;
use crate::report::latencies::{CLOSED_LOOP, against_words, load_words, missing, percentile_text};
use crate::report::layout::{ABSENT, TextTable};
use crate::report::rankings::{baseline_of, kinds, left_out, rank_row, ranking_tables, side_by_side};
use crate::report::snapshots::SnapshotTable;
use crate::report::stages::Stages;
use crate::report::table::{Cell, Table};
use crate::report::text::{columns, paragraph, printable, width};
use crate::report::words::{
    case_labels, caution_cases, class_meaning, class_title, estimate_text, in_ms, latency, moment, percent, ranges,
    server_versions,
};
use crate::report::{Renderer, ageing, drives, full, power_cuts, snapshots, stages};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// `--format txt`.
pub(super) struct Terminal;

impl Renderer for Terminal {
    fn extension(&self) -> &'static str {
        "txt"
    }

    fn render(&self, findings: &Findings, out: &mut dyn Write) -> Result<()> {
        out.write_all(page(findings).as_bytes()).or_host(|| "write the report as text".to_owned())
    }
}

fn page(findings: &Findings) -> String {
    let labels = case_labels(findings);
    let tables = ranking_tables(&findings.rankings);
    let ranked = rankings(findings, |place| ranking(&tables[place]));
    head(findings, &labels)
        + &effects(&findings.effects)
        + &ranked
        + &counters(&findings.rankings).collect::<String>()
        + &asked_for(findings, &labels)
        + &cases(findings, &labels)
        + &cautions(findings, &labels)
        + &ending(findings, &labels)
}

/// The first screen: the answer, a line for each ranked case, the worst cautions. `page` contains everything.
pub fn first_screen(findings: &Findings, folder: &Path) -> String {
    let labels = case_labels(findings);
    let ranked = rankings(findings, |place| brief_ranking(&findings.rankings[place], findings));
    let more = if ranked.is_empty() { cases(findings, &labels) } else { String::new() };
    let several: Vec<Effects> = findings.effects.iter().filter(|one| one.has_several_options()).cloned().collect();
    head(findings, &labels)
        + &effects(&several)
        + &ranked
        + &counters(&findings.rankings).next().unwrap_or_default()
        + &asked_for(findings, &labels)
        + &more
        + &worst_cautions(findings, &labels, folder)
        + &ending(findings, &labels)
}

fn head(findings: &Findings, labels: &BTreeMap<String, String>) -> String {
    format!("{}\n{}{}", paragraph("", &findings.headline), paragraph("", &about(findings)), devices(findings, labels))
}

/// A line for each effect of an option.
fn effects(effects: &[Effects]) -> String {
    let found = effects_table(effects);
    let titles = found.columns.iter().map(|column| column.title.to_lowercase()).collect();
    if found.groups.is_empty() { String::new() } else { format!("\n{}", classes(&found, titles, &[2, 4])) }
}

/// Counters per operation that differ between the cases of a ranking, for each ranking that has any.
fn counters(rankings: &[Ranking]) -> impl Iterator<Item = String> + '_ {
    let titled = |ranking: &Ranking| Some(format!("{}, {}", ranking.title, differing_counters(ranking)?));
    rankings.iter().filter_map(titled).map(|found| format!("\n{}", paragraph("", &found)))
}

/// Sections for measurements that only some plans make.
fn asked_for(findings: &Findings, labels: &BTreeMap<String, String>) -> String {
    power_cuts(findings)
        + &stages(findings, labels)
        + &snapshots(findings, labels)
        + &capacities(findings, labels)
        + &ageing(findings)
        + &prepared(findings)
}

fn ending(findings: &Findings, labels: &BTreeMap<String, String>) -> String {
    full_stacks(findings, labels) + &not_run(findings, labels)
}

/// Run, date, machine and trials in one paragraph.
fn about(findings: &Findings) -> String {
    let run = &findings.run;
    let machines = each_machine(&findings.machines, |host| {
        let memory = crate::units::Bytes(host.memory_bytes);
        format!("{} ({} CPUs, {memory}, Linux {})", host.hostname, host.cpus, host.kernel)
    });
    let mut text = format!(
        "{}, {}{}{}. {} of {} trials measured",
        run.name,
        moment(&run.started),
        if machines.is_empty() { String::new() } else { format!(", on {machines}") },
        server_versions(findings).map_or_else(String::new, |versions| format!(", PostgreSQL {versions}")),
        run.trials_measured,
        run.trials_planned
    );
    let mut tell = |more: String| text.push_str(&more);
    if run.trials_not_run > 0 {
        tell(format!(", {} not run", run.trials_not_run));
    }
    if run.trials_disturbed > 0 {
        tell(format!(", {} disturbed by others", run.trials_disturbed));
    }
    if !findings.full.is_empty() {
        tell(format!(", stack full in {}", findings.full.len()));
    }
    if let Some(share) = run.measured_share {
        tell(format!("; {} of the wall time was measurement", percent(share)));
    }
    text.push('.');
    text
}

/// All rankings; those of one workload by several measures side by side.
fn rankings(findings: &Findings, one: impl Fn(usize) -> String) -> String {
    let text = |kind: Vec<usize>| match kind.as_slice() {
        [only] => one(*only),
        _ => compact(&side_by_side(&kind.iter().map(|place| &findings.rankings[*place]).collect::<Vec<_>>())),
    };
    kinds(&findings.rankings).into_iter().map(|kind| format!("\n{}", text(kind))).collect()
}

/// A ranking with the main figures of each case: its rate, its ratio, its 99th percentile, its storage share.
fn brief_ranking(ranking: &Ranking, findings: &Findings) -> String {
    let mut table = plain_table();
    table.set_header(["#", "case", &ranking.unit, "trials", "against baseline", "p99, ms", "storage", "power cut"]);
    let baseline = baseline_of(ranking);
    for class in &ranking.classes {
        let (title, meaning) = (class_title(class.class), class_meaning(class.class));
        table.add_between(paragraph("  ", &format!("{title}: {meaning}")));
        for row in &class.rows {
            let [rank, case, rate, trials, against, p99, _] = rank_row(row, baseline).map(|cell| with_aside(&cell));
            let found = findings.cases.iter().find(|case| case.id == row.case);
            let storage = found.and_then(|case| storage_words(case.backend_time.as_ref()?)).map(|(share, _)| share);
            let verdict = row.verdict.as_ref().map_or_else(absent, |verdict| printable(&verdict.short()));
            table.add_row([rank, case, rate, trials, against, p99, storage.unwrap_or_else(absent), verdict]);
        }
        for remark in class.decision.iter().flat_map(|decision| &decision.remarks) {
            table.add_between(remark_text(remark));
        }
    }
    align_right(&mut table, &[0, 2, 3, 4, 5, 6]);
    let left = left_out(ranking).map_or_else(String::new, |left| paragraph("  ", &left));
    paragraph("", &ranking.title) + &indented(&table) + &left
}

/// A remark on a ranking; a command that it ends with stands on a line of its own, to be copied.
fn remark_text(remark: &str) -> String {
    let Some((why, command)) = remark.split_once(": pgstrata ") else { return paragraph("  ", remark) };
    paragraph("  ", &format!("{why}:")) + &paragraph("    ", &format!("pgstrata {command}"))
}

/// Device work of each case, where nothing is ranked.
fn devices(findings: &Findings, labels: &BTreeMap<String, String>) -> String {
    let found = device_work(findings, labels).even();
    if found.groups.is_empty() {
        return String::new();
    }
    let titles = found.columns.iter().map(|column| printable(&column.title)).collect();
    let measures: Vec<usize> = (1..found.columns.len()).collect();
    let note = paragraph("  ", found.note.as_deref().unwrap_or_default());
    format!("\n{}{}{note}", paragraph("", &found.caption), classes(&found, titles, &measures))
}

/// Several rankings in one table, classes one below the other, columns aligned.
fn compact(found: &Table) -> String {
    let titles: Vec<String> = found.columns.iter().map(|column| printable(&column.title)).collect();
    let measures: Vec<usize> = (1..found.columns.len()).collect();
    paragraph("", &found.caption) + &classes(found, titles, &measures)
}

/// One ranking, classes one below the other, columns aligned.
fn ranking(found: &Table) -> String {
    let unit = found.columns[2].unit.as_deref().unwrap_or_default();
    let titles = ["#", "case", unit, "trials", "against baseline", "p99, ms", "durability"].map(printable);
    let note = found.note.as_ref().map_or_else(String::new, |note| paragraph("  ", note));
    paragraph("", &found.caption) + &classes(found, titles.into(), &[0, 2, 3, 4, 5]) + &note
}

/// A table's groups with their headings.
fn classes(found: &Table, titles: Vec<String>, numbers: &[usize]) -> String {
    let mut table = plain_table();
    table.set_header(titles);
    for group in &found.groups {
        let heading = group.heading.as_deref().unwrap_or_default();
        table.add_between(paragraph("  ", &format!("{heading}: {}", group.note.as_deref().unwrap_or_default())));
        for row in &group.rows {
            table.add_row(row.cells.iter().map(with_aside));
        }
        for sentence in &group.below {
            table.add_between(remark_text(sentence));
        }
    }
    align_right(&mut table, numbers);
    indented(&table)
}

/// Costs of a power cut, on the recorded device and on others.
fn power_cuts(findings: &Findings) -> String {
    let found = power_cuts::verdicts(&findings.power_cuts).even();
    let header = ["stack", "verdict", "commits", "writes", "flushes", "bytes"];
    let verdicts = noted(&found, &header, &[2, 3, 4, 5], power_cuts::NOTE);
    let found = power_cuts::devices(&findings.power_cuts);
    let header: Vec<&str> = found.columns.iter().map(|column| column.title.as_str()).collect();
    verdicts + &noted(&found, &header, &[], power_cuts::DEVICES_NOTE)
}

/// One-time stages of trials.
fn stages(findings: &Findings, labels: &BTreeMap<String, String>) -> String {
    let found = Stages { cases: &findings.cases, labels }.table();
    noted(&found, &["case", "stage", "s", "amount", "MB/s"], &[2, 3, 4], stages::NOTE)
}

fn snapshots(findings: &Findings, labels: &BTreeMap<String, String>) -> String {
    let found = SnapshotTable { cases: &findings.cases, labels }.table();
    noted(&found, &["case", "figure", "value", "unit"], &[2], snapshots::NOTE)
}

/// A table with its note; empty if the table has no rows.
fn noted(found: &Table, header: &[&str], numbers: &[usize], note: &str) -> String {
    let rows: Vec<_> = found.groups.iter().flat_map(|group| &group.rows).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut table = plain_table();
    table.set_header(header);
    for row in rows {
        table.add_row(row.cells.iter().map(with_aside));
    }
    align_right(&mut table, numbers);
    format!("\n{}\n{}{}", found.caption, indented(&table), paragraph("  ", note))
}

/// Both figures of each case with a capacity search.
fn capacities(findings: &Findings, labels: &BTreeMap<String, String>) -> String {
    let found = Capacities { cases: &findings.cases, labels }.figures();
    let header = ["case", "limit", "holds 1/s", "about 1/s", "without a limit", "trials"];
    noted(&found, &header, &[1, 2, 3, 4, 5], NOTE)
}

/// Figures over the ageing of a stack.
fn ageing(findings: &Findings) -> String {
    let found = ageing::courses(&findings.ageing);
    let rows: Vec<_> = found.groups.iter().flat_map(|group| &group.rows).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut table = plain_table();
    table.set_header(["cases", "figure", "course"]);
    for row in rows {
        table.add_row(row.cells.iter().map(with_aside));
    }
    format!("\n{}\n{}{}", found.caption, indented(&table), paragraph("  ", ageing::NOTE))
}

/// Drives brought to their steady state.
fn prepared(findings: &Findings) -> String {
    let header = ["drive", "size", "purge", "sequential writes", "random writes", "state"];
    noted(&drives::drives(&findings.drives), &header, &[1], drives::NOTE)
}

/// Rate, steadiness and storage's share, one line per case; latencies follow.
fn cases(findings: &Findings, labels: &BTreeMap<String, String>) -> String {
    let mut table = plain_table();
    table.set_header(["case", "class", "rate", "stall", "idle s", "storage", "in memory"]);
    let mut any = false;
    for case in &findings.cases {
        let Some(measure) = case.measures.first() else { continue };
        any = true;
        table.add_row(case_cells(case, measure, labels));
    }
    if !any {
        return String::new();
    }
    align_right(&mut table, &[2, 3, 4, 5, 6]);
    let mut note = "Stall: the slowest single operation. Idle s: seconds without a commit, over all trials.".to_owned();
    if findings.cases.iter().any(|case| case.backend_time.is_some()) {
        note.push_str(
            " Storage: share of backend time that waits for it. In memory: speedup of the same settings on a stack in memory.",
        );
    }
    let note = paragraph("  ", &note);
    let shares = flush_shares(findings, labels);
    format!("\nAll cases, main measure\n{}{note}{shares}{}", indented(&table), latencies(findings, labels))
}

/// Percentiles of each case's main measure with their intervals.
fn latencies(findings: &Findings, labels: &BTreeMap<String, String>) -> String {
    const SHOWN: [&str; 3] = ["p50", "p99", "p99.9"];
    let with_baseline = findings.cases.iter().flat_map(|case| &case.measures).filter_map(|m| m.latency.as_ref());
    let with_baseline = with_baseline.flat_map(|latency| &latency.percentiles).any(|one| one.comparison.is_some());
    let mut table = plain_table();
    let last = if with_baseline { &["p99 against baseline"][..] } else { &[] };
    table.set_header(["case", "load"].iter().chain(&SHOWN).chain(last));
    for case in &findings.cases {
        let Some(latency) = case.measures.first().and_then(|measure| measure.latency.as_ref()) else { continue };
        let mut row = vec![printable(labels.get(&case.id).unwrap_or(&case.id)), load_words(case)];
        row.extend(SHOWN.map(|name| latency.percentile(name).map_or_else(absent, percentile)));
        let against = latency.percentile("p99").and_then(|one| one.comparison.as_ref());
        row.extend(with_baseline.then(|| against.map_or_else(absent, against_words)));
        table.add_row(row);
    }
    if table.row_count() == 0 {
        return String::new();
    }
    align_right(&mut table, &[2, 3, 4, 5]);
    let cases = Cases { cases: &findings.cases, labels };
    let mut note = format!("Percentiles per trial, averaged over trials. {}", cases.logged_note());
    if cases.any_closed_loop() {
        note = format!("{note} {CLOSED_LOOP}");
    }
    let mut text = format!("\nLatency, ms\n{}", indented(&table));
    text.extend(missing_percentiles(findings, labels).iter().map(|line| paragraph("  ", line)));
    text + &paragraph("  ", &note)
}

/// Most cases listed individually as lacking a percentile; more of them share a line.
const MOST_MISSING: usize = 3;

/// Missing percentiles, and the reasons.
fn missing_percentiles(findings: &Findings, labels: &BTreeMap<String, String>) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<(&String, &str)>> = BTreeMap::new();
    for case in &findings.cases {
        let Some((name, why)) = missing(case) else { continue };
        by_name.entry(name).or_default().push((labels.get(&case.id).unwrap_or(&case.id), why));
    }
    let lines = by_name.into_iter().flat_map(|(name, cases)| match cases.as_slice() {
        [(label, why), _, ..] if cases.len() > MOST_MISSING => {
            vec![format!("{} cases, such as {label}: no {name}: {why}", cases.len())]
        }
        _ => cases.iter().map(|(label, why)| format!("{label}: no {name}: {why}")).collect(),
    });
    lines.collect()
}

/// The value and its interval on one line.
fn percentile(found: &Percentile) -> String {
    let Some(over) = found.over_trials else { return absent() };
    let (value, interval) = percentile_text(&in_ms(&over));
    if over.low.is_some() { format!("{value} ({interval})") } else { value }
}

/// Commit rate of each case as a share of its stack's own sync rate; empty if no run measured both.
fn flush_shares(findings: &Findings, labels: &BTreeMap<String, String>) -> String {
    let one = |case: &CaseFinding| {
        let label = labels.get(&case.id).unwrap_or(&case.id);
        flush_share(case).map(|found| format!("{label}: {}", percent(found.share.value)))
    };
    let shares: Vec<String> = findings.cases.iter().filter_map(one).collect();
    if shares.is_empty() {
        return String::new();
    }
    let what = "Commit rate as % of the sync rate of one writer, without PostgreSQL, on the same stack";
    paragraph("  ", &format!("{what}: {}. Clients may share a flush.", shares.join("; ")))
}

fn case_cells(case: &CaseFinding, measure: &MeasureFinding, labels: &BTreeMap<String, String>) -> Vec<String> {
    let time = case.backend_time.as_ref();
    let steadiness = case.steadiness.as_ref();
    let class = class_title(case.durability.class);
    let class =
        if case.durability.class == DurabilityClass::Volatile { class.to_uppercase() } else { class.to_owned() };
    vec![
        printable(labels.get(&case.id).unwrap_or(&case.id)),
        class,
        measure
            .rate
            .as_ref()
            .map_or_else(absent, |rate| format!("{} {}", estimate_text(rate).0, printable(&measure.unit))),
        steadiness.and_then(|s| s.longest_stall_us).map_or_else(absent, latency),
        steadiness.map_or_else(absent, |s| s.seconds_at_zero.to_string()),
        time.and_then(storage_words).map_or_else(absent, |(share, ends)| format!("{share} ({ends})")),
        time.and_then(|time| time.in_memory.as_ref()).map_or_else(absent, |memory| {
            let (ratio, interval) = estimate_text(&memory.ratio);
            format!("{ratio}× ({interval})")
        }),
    ]
}

/// Cautions on the first screen.
const FIRST_CAUTIONS: usize = 5;

/// The worst cautions, a line each, and the location of the others.
fn worst_cautions(findings: &Findings, labels: &BTreeMap<String, String>, folder: &Path) -> String {
    let line = |caution: &Caution| {
        let cases = Some(caution_cases(caution, labels)).filter(|cases| !cases.is_empty());
        let whole = format!("  - {}{}", caution.text, cases.map_or_else(String::new, |cases| format!(" ({cases})")));
        let whole = printable(&whole);
        if width(&whole) <= columns() {
            return format!("{whole}\n");
        }
        format!("{}…\n", whole.chars().take(columns() - 1).collect::<String>())
    };
    let first: String = findings.cautions.iter().take(FIRST_CAUTIONS).map(line).collect();
    let left = findings.cautions.len().saturating_sub(FIRST_CAUTIONS);
    let others = if left > 0 { format!(", {left} more caveats") } else { String::new() };
    let heading = if first.is_empty() { "" } else { "\nCaveats\n" };
    let all = format!("Latencies, evidence of durability{others}:");
    let command = format!("pgstrata report --full {}", folder.display());
    format!("{heading}{first}\n{}{}", paragraph("", &all), paragraph("  ", &command))
}

fn cautions(findings: &Findings, labels: &BTreeMap<String, String>) -> String {
    if findings.cautions.is_empty() {
        return String::new();
    }
    let mut text = "\nCaveats\n".to_owned();
    for caution in &findings.cautions {
        let cases = caution_cases(caution, labels);
        let cases = if cases.is_empty() { cases } else { format!(" ({cases})") };
        text.push_str(&paragraph("  - ", &format!("{}{cases}", caution.text)));
    }
    text
}

fn full_stacks(findings: &Findings, labels: &BTreeMap<String, String>) -> String {
    if findings.full.is_empty() {
        return String::new();
    }
    let mut text = "\nFull stacks\n".to_owned();
    for found in &findings.full {
        let label = labels.get(&found.case).unwrap_or(&found.case);
        text.push_str(&paragraph("  - ", &format!("{label}, {}", full::line(found))));
        text.push_str(&paragraph("      ", &found.reason));
        if !found.server_log.is_empty() {
            text.push_str("      the server log ends with:\n");
        }
        for line in found.server_log.lines() {
            text.push_str(&paragraph("        ", line.trim_start()));
        }
    }
    text
}

fn not_run(findings: &Findings, labels: &BTreeMap<String, String>) -> String {
    if findings.not_run.is_empty() {
        return String::new();
    }
    let mut text = "\nNot run, and why\n".to_owned();
    for found in &findings.not_run {
        let label = labels.get(&found.case).unwrap_or(&found.case);
        let step = found.step.as_ref().map(|step| format!(" (ended while {step})")).unwrap_or_default();
        let trials = if found.trials.len() == 1 { "trial" } else { "trials" };
        text.push_str(&paragraph("  - ", &format!("{label}, {trials} {}{step}", ranges(&found.trials))));
        for line in found.reason.lines() {
            text.push_str(&paragraph("      ", line));
        }
        if let Some(hint) = &found.hint {
            text.push_str(&paragraph("      try: ", hint));
        }
    }
    text
}

fn absent() -> String {
    ABSENT.to_owned()
}

/// Text of a cell with its aside. Remarks are omitted: they say that classes differ, which headings show here.
fn with_aside(cell: &Cell) -> String {
    // Text that a page folds below its first clause.
    if let Some(evidence) = cell.more.as_ref().filter(|_| cell.style == "reason") {
        return printable(evidence);
    }
    match &cell.aside {
        Some(aside) if cell.text.starts_with(|c: char| c.is_ascii_digit()) => {
            printable(&format!("{} ({aside})", cell.text))
        }
        Some(aside) => printable(&format!("{}: {aside}", cell.text)),
        None => printable(&cell.text),
    }
}

/// A table without lines, except below its header.
pub(super) fn plain_table() -> TextTable {
    TextTable::default()
}

pub(super) fn align_right(table: &mut TextTable, columns: &[usize]) {
    table.align_right(columns);
}

/// The table, indented by two columns, without trailing blanks.
pub(super) fn indented(table: &TextTable) -> String {
    table.shown()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::text::width;

    #[test]
    fn escape_sequences_are_shown_and_not_obeyed() {
        assert_eq!(printable("a\u{1b}[2Jb"), "a{U+001B}[2Jb");
        assert_eq!(printable("\u{9b}31m\u{8}\u{202e}x"), "{U+009B}31m{U+0008}{U+202E}x");
        assert_eq!(printable("two\nlines\tand a tab"), "two lines and a tab");
    }

    #[test]
    fn paragraphs_fold_at_the_width_below_their_mark() {
        let text = paragraph("  - ", &"word ".repeat(40));
        assert!(text.lines().count() > 1);
        assert!(text.lines().all(|line| width(line) <= 100));
        assert!(text.lines().skip(1).all(|line| line.starts_with("    word")));
    }

    #[test]
    fn a_word_longer_than_the_width_is_cut_into_lines() {
        let text = paragraph("", &"x".repeat(250));
        assert_eq!(text.lines().map(str::len).collect::<Vec<_>>(), [100, 100, 50]);
    }
}

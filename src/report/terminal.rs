//! Findings as text for a terminal: headline first, then rankings, latencies, cautions, not run.
//!
//! Plain UTF-8 without colours, to read the same in a log, a mail and a pager. Every text from outside is passed
//! through [`printable`], because a terminal obeys control characters.

use crate::analyse::findings::groups::by_key;
use crate::analyse::findings::{
    CaseFinding, Caution, DurabilityClass, Effects, Findings, MeasureFinding, PowerCut, Ranking, Verdict,
};
use crate::report::backend_time::storage_words;
use crate::report::cases::flush_share;
use crate::report::counters::differing_counters;
use crate::report::device_work::device_work;
use crate::report::effects::effects_table;
use crate::report::environment::each_machine;
use crate::report::labelled::Labelled;
use crate::report::latencies::{CLOSED_LOOP, SHOWN, against_cell, load_words, missing, shown_percentiles};
use crate::report::layout::{ABSENT, TextTable};
use crate::report::rankings::{baseline_of, kinds, left_out, rank_row, ranking_tables, side_by_side};
use crate::report::table::{Cell, Table};
use crate::report::text::{columns, paragraph, printable, section, width};
use crate::report::words::{
    bounded, caution_cases, class_meaning, class_title, estimate_text, latency, moment, most_disturbed, numbered,
    percent, ratio_words, server_versions,
};
use crate::report::{ageing, disk, drives, full, power_cuts, profiled};
use crate::units::count;
use std::collections::BTreeMap;
use std::path::Path;

/// `--format txt`.
pub(super) fn page(findings: &Findings) -> String {
    let labelled = Labelled::new(findings);
    let tables = ranking_tables(&findings.rankings);
    let ranked = rankings(findings, |place| ranking(&tables[place]));
    head(&labelled)
        + &effects(&findings.effects)
        + &ranked
        + &counters(&findings.rankings).collect::<String>()
        + &asked_for(&labelled)
        + &cases(&labelled)
        + &cautions(&labelled)
        + &ending(&labelled)
}

/// The first screen: the answer, a line for each ranked case, the worst cautions. `page` contains everything.
pub fn first_screen(findings: &Findings, folder: &Path) -> String {
    let labelled = Labelled::new(findings);
    let ranked = rankings(findings, |place| brief_ranking(&findings.rankings[place], findings));
    let more = if ranked.is_empty() { cases(&labelled) } else { String::new() };
    let several: Vec<Effects> = findings.effects.iter().filter(|one| one.has_several_options()).cloned().collect();
    head(&labelled)
        + &effects(&several)
        + &ranked
        + &counters(&findings.rankings).next().unwrap_or_default()
        + &asked_for(&labelled)
        + &more
        + &worst_cautions(&labelled, folder)
        + &ending(&labelled)
}

fn head(labelled: &Labelled<'_>) -> String {
    let findings = labelled.findings;
    format!("{}\n{}{}", paragraph("", &findings.headline), paragraph("", &about(findings)), devices(labelled))
}

/// A line for each effect of an option.
fn effects(effects: &[Effects]) -> String {
    let found = effects_table(effects);
    let titles: Vec<String> = found.columns.iter().map(|column| column.title.to_lowercase()).collect();
    if found.groups.is_empty() { String::new() } else { format!("\n{}", classes(&found, &titles, &[2, 4])) }
}

/// Counters per operation that differ between the cases of a ranking, for each ranking that has any.
fn counters(rankings: &[Ranking]) -> impl Iterator<Item = String> + '_ {
    rankings.iter().filter_map(|ranking| {
        let found = differing_counters(ranking)?;
        Some(format!("\n{}", paragraph("", &format!("{}, {found}", ranking.title))))
    })
}

/// Verdicts on power cuts, and for other devices.
pub fn costs_of_power_cuts(found: &[PowerCut]) -> String {
    let devices = power_cuts::devices(found);
    let models: Vec<&str> = devices.columns.iter().map(|column| column.title.as_str()).collect();
    let verdicts = power_cuts::verdicts(found).even();
    noted(&verdicts, &["stack", "verdict", "commits", "writes", "flushes", "bytes"], &[2, 3, 4, 5])
        + &noted(&devices, &models, &[])
}

/// Sections for measurements that only some plans make.
fn asked_for(labelled: &Labelled<'_>) -> String {
    let findings = labelled.findings;
    costs_of_power_cuts(&findings.power_cuts)
        + &noted(
            &profiled::table(&findings.profiled),
            &["stack", "1/s", "p99 ms", "limit", "headroom", "WAL a day", "to devices", "back s"],
            &[1, 2, 3, 4, 5, 6, 7],
        )
        + &noted(&labelled.stages(), &["case", "stage", "s", "amount", "MB/s"], &[2, 3, 4])
        + &noted(&labelled.snapshots(), &["case", "figure", "value", "unit"], &[2])
        + &noted(
            &labelled.capacities(),
            &["case", "limit", "holds 1/s", "about 1/s", "without a limit", "trials"],
            &[1, 2, 3, 4, 5],
        )
        + &noted(&ageing::courses(&findings.ageing), &["cases", "figure", "course"], &[])
        + &noted(
            &drives::drives(&findings.drives),
            &["drive", "size", "purge", "sequential writes", "random writes", "state"],
            &[1],
        )
}

fn ending(labelled: &Labelled<'_>) -> String {
    full_stacks(labelled) + &not_run(labelled)
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
    text.extend((run.trials_not_run > 0).then(|| format!(", {} not run", run.trials_not_run)));
    text.extend((run.trials_damaged > 0).then(|| format!(", {} damaged (unreadable)", run.trials_damaged)));
    let disturbed = run.trials_disturbed;
    text.extend((disturbed > 0).then(|| format!(", {disturbed} disturbed{}", most_disturbed(run))));
    text.extend((!findings.full.is_empty()).then(|| format!(", stack full in {}", findings.full.len())));
    text.extend(run.measured_share.map(|share| format!("; {} of the wall time was measurement", percent(share))));
    text.push('.');
    text.extend(disk::sentence(&run.disks).map(|sentence| format!(" {sentence}.")));
    text
}

/// All rankings; those of one workload by several measures side by side.
fn rankings(findings: &Findings, one: impl Fn(usize) -> String) -> String {
    let kinds = kinds(&findings.rankings).into_iter().map(|kind| match kind.as_slice() {
        [only] => one(*only),
        _ => compact(&side_by_side(&kind.iter().map(|place| &findings.rankings[*place]).collect::<Vec<_>>())),
    });
    kinds.map(|text| format!("\n{text}")).collect()
}

/// A ranking with the main figures of each case: its rate, its ratio, its 99th percentile, its storage share.
fn brief_ranking(ranking: &Ranking, findings: &Findings) -> String {
    let titles = ["#", "case", &ranking.unit, "trials", "against baseline", "p99, ms", "storage", "power cut"];
    let mut table = TextTable::new(titles, &[0, 2, 3, 4, 5, 6]);
    let baseline = baseline_of(ranking);
    for class in &ranking.classes {
        let (title, meaning) = (class_title(class.class), class_meaning(class.class));
        table.add_between(paragraph("  ", &format!("{title}: {meaning}")));
        for row in &class.rows {
            let [rank, case, rate, trials, against, p99, _] = rank_row(row, baseline).map(|cell| with_aside(&cell));
            let found = findings.cases.iter().find(|case| case.id == row.case);
            let storage = found.and_then(|case| storage_words(case.backend_time.as_ref()?)).map(|(share, _)| share);
            let verdict = row.verdict.as_ref().map_or_else(absent, Verdict::short);
            table.add_row([rank, case, rate, trials, against, p99, storage.unwrap_or_else(absent), verdict]);
        }
        for remark in class.decision.iter().flat_map(|decision| &decision.remarks) {
            table.add_between(remark_text(remark));
        }
    }
    let left = left_out(ranking).map_or_else(String::new, |left| paragraph("  ", &left));
    paragraph("", &ranking.title) + &table.shown() + &left
}

/// A remark on a ranking; a command that it ends with stands on a line of its own, to be copied.
fn remark_text(remark: &str) -> String {
    let Some((why, command)) = remark.split_once(": pgstrata ") else { return paragraph("  ", remark) };
    paragraph("  ", &format!("{why}:")) + &paragraph("    ", &format!("pgstrata {command}"))
}

/// Device work of each case, where nothing is ranked.
fn devices(labelled: &Labelled<'_>) -> String {
    let found = device_work(labelled).even();
    if found.groups.is_empty() {
        return String::new();
    }
    format!("\n{}{}", compact(&found), paragraph("  ", found.note.as_deref().unwrap_or_default()))
}

/// A table with the titles of its columns, classes one below the other, columns aligned.
fn compact(found: &Table) -> String {
    let titles: Vec<String> = found.columns.iter().map(|column| printable(&column.title)).collect();
    let measures: Vec<usize> = (1..found.columns.len()).collect();
    paragraph("", &found.caption) + &classes(found, &titles, &measures)
}

/// One ranking, classes one below the other, columns aligned.
fn ranking(found: &Table) -> String {
    let unit = found.columns[2].unit.as_deref().unwrap_or_default();
    let titles = ["#", "case", unit, "trials", "against baseline", "p99, ms", "durability"].map(printable);
    let note = found.note.as_ref().map_or_else(String::new, |note| paragraph("  ", note));
    paragraph("", &found.caption) + &classes(found, &titles, &[0, 2, 3, 4, 5]) + &note
}

/// A table's groups with their headings.
fn classes(found: &Table, titles: &[String], numbers: &[usize]) -> String {
    let mut table = TextTable::new(titles, numbers);
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
    table.shown()
}

/// A table with its note; empty if the table has no rows.
fn noted(found: &Table, header: &[&str], numbers: &[usize]) -> String {
    if found.length == 0 {
        return String::new();
    }
    let rows = found.groups.iter().flat_map(|group| &group.rows);
    let table = TextTable::new(header, numbers).rows(rows.map(|row| row.cells.iter().map(with_aside)));
    let note = found.note.as_deref().unwrap_or_default();
    format!("\n{}\n{}{}", found.caption, table.shown(), paragraph("  ", note))
}

/// Rate, steadiness and storage's share, one line per case; latencies follow.
fn cases(labelled: &Labelled<'_>) -> String {
    let titles = ["case", "class", "rate", "stall", "idle s", "storage", "in memory"];
    let measured = labelled.findings.cases.iter().filter_map(|case| Some((case, case.measures.first()?)));
    let rows = measured.map(|(case, measure)| case_cells(case, measure, labelled));
    let table = TextTable::new(titles, &[2, 3, 4, 5, 6]).rows(rows);
    if table.is_empty() {
        return String::new();
    }
    let shown = table.shown();
    // A column that no case has is not shown.
    let notes = [
        ("stall", "Stall: the slowest single operation."),
        ("idle s", "Idle s: seconds without a commit, over all trials."),
        ("storage", "Storage: share of backend time that waits for it."),
        ("in memory", "In memory: speedup of the same settings on a stack in memory."),
    ];
    let notes: Vec<&str> = notes.iter().filter(|(title, _)| shown.contains(title)).map(|(_, note)| *note).collect();
    let note = if notes.is_empty() { String::new() } else { paragraph("  ", &notes.join(" ")) };
    let shares = flush_shares(labelled);
    format!("\nAll cases, main measure\n{shown}{note}{shares}{}", latencies(labelled))
}

/// Percentiles of each case's main measure with their intervals.
fn latencies(labelled: &Labelled<'_>) -> String {
    let with_baseline =
        labelled.findings.cases.iter().flat_map(|case| &case.measures).filter_map(|m| m.latency.as_ref());
    let with_baseline = with_baseline.flat_map(|latency| &latency.percentiles).any(|one| one.comparison.is_some());
    let last = if with_baseline { &["p99 against baseline"][..] } else { &[] };
    let mut table = TextTable::new(["case", "load"].iter().chain(&SHOWN).chain(last), &[2, 3, 4, 5]);
    for case in &labelled.findings.cases {
        let Some(latency) = case.measures.first().and_then(|measure| measure.latency.as_ref()) else { continue };
        let mut row = vec![labelled.label(&case.id).to_owned(), load_words(case)];
        row.extend(shown_percentiles(latency));
        let against = latency.percentile("p99").and_then(|one| one.comparison.as_ref());
        row.extend(with_baseline.then(|| with_aside(&against_cell(against))));
        table.add_row(row);
    }
    if table.is_empty() {
        return String::new();
    }
    let mut note = format!("Percentiles per trial, averaged over trials. {}", labelled.logged_note());
    if labelled.any_closed_loop() {
        note = format!("{note} {CLOSED_LOOP}");
    }
    let mut text = format!("\nLatency, ms\n{}", table.shown());
    text.extend(missing_percentiles(labelled).iter().map(|line| paragraph("  ", line)));
    text + &paragraph("  ", &note)
}

/// Most cases listed individually as lacking a percentile; more of them share a line.
const MOST_MISSING: usize = 3;

/// Missing percentiles, and the reasons.
fn missing_percentiles(labelled: &Labelled<'_>) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for case in &labelled.findings.cases {
        let Some((name, why)) = missing(case) else { continue };
        by_name.entry(name).or_default().push((labelled.label(&case.id), why));
    }
    let lines = by_name.into_iter().flat_map(|(name, cases)| match cases.as_slice() {
        [(label, why), _, ..] if cases.len() > MOST_MISSING => {
            vec![format!("{} cases, such as {label}: no {name}: {why}", cases.len())]
        }
        _ => cases.iter().map(|(label, why)| format!("{label}: no {name}: {why}")).collect(),
    });
    lines.collect()
}

/// Commit rate of each case as a share of its stack's own sync rate; empty if no run measured both.
fn flush_shares(labelled: &Labelled<'_>) -> String {
    let found = labelled.findings.cases.iter().filter_map(|case| Some((case, flush_share(case)?)));
    let shares: Vec<String> =
        found.map(|(case, found)| format!("{}: {}", labelled.label(&case.id), percent(found.share.value))).collect();
    if shares.is_empty() {
        return String::new();
    }
    let what = "Commit rate as % of the sync rate of one writer, without PostgreSQL, on the same stack";
    paragraph("  ", &format!("{what}: {}. Clients may share a flush.", shares.join("; ")))
}

fn case_cells(case: &CaseFinding, measure: &MeasureFinding, labelled: &Labelled<'_>) -> Vec<String> {
    let time = case.backend_time.as_ref();
    let steadiness = case.steadiness.as_ref();
    let class = class_title(case.durability.class);
    let class =
        if case.durability.class == DurabilityClass::Volatile { class.to_uppercase() } else { class.to_owned() };
    vec![
        labelled.label(&case.id).to_owned(),
        class,
        measure.rate.as_ref().map_or_else(absent, |rate| format!("{} {}", estimate_text(rate).0, measure.unit)),
        steadiness
            .and_then(|s| s.longest_stall_us)
            .map_or_else(absent, |us| bounded("≥", case.log_sample.is_some(), latency(us))),
        steadiness.map_or_else(absent, |s| s.seconds_at_zero.to_string()),
        time.and_then(storage_words).map_or_else(absent, |(share, ends)| format!("{share} ({ends})")),
        time.and_then(|time| time.in_memory.as_ref()).map_or_else(absent, |memory| ratio_words(&memory.ratio)),
    ]
}

/// Cautions on the first screen.
const FIRST_CAUTIONS: usize = 5;

/// The worst cautions, and the location of the others.
fn worst_cautions(labelled: &Labelled<'_>, folder: &Path) -> String {
    let cautions = &labelled.findings.cautions;
    let first = cautions.iter().take(FIRST_CAUTIONS).map(|one| paragraph("  - ", &brief_caution(one, labelled)));
    let left = cautions.len().saturating_sub(FIRST_CAUTIONS);
    let others = if left > 0 { format!(", {}", count(left, "more caveat")) } else { String::new() };
    let all = format!("Latencies, evidence of durability{others}:");
    let command = format!("pgstrata report --full {}", folder.display());
    let end = match width(&all) + width(&command) < columns() {
        true => paragraph("", &format!("{all} {command}")),
        false => paragraph("", &all) + &paragraph("  ", &command),
    };
    format!("{}\n{end}", section("Caveats", first))
}

/// A caution on one line where its cases can be named there; else with their number, unless that would not help.
fn brief_caution(caution: &Caution, labelled: &Labelled<'_>) -> String {
    let room = columns().saturating_sub("  - ".len());
    let whole = caution_text(caution, labelled);
    let counted = format!("{} ({} of {} cases)", caution.text, caution.cases.len(), labelled.labels.len());
    let is_named = caution.cases.len() < 2 || caution.scope.is_some() && width(&counted) > room;
    if is_named || width(&whole) <= room { whole } else { counted }
}

fn caution_text(caution: &Caution, labelled: &Labelled<'_>) -> String {
    let cases = caution_cases(caution, &labelled.labels);
    if cases.is_empty() { caution.text.clone() } else { format!("{} ({cases})", caution.text) }
}

fn cautions(labelled: &Labelled<'_>) -> String {
    let cautions = labelled.findings.cautions.iter();
    section("Caveats", cautions.map(|caution| paragraph("  - ", &caution_text(caution, labelled))))
}

fn full_stacks(labelled: &Labelled<'_>) -> String {
    let full = labelled.findings.full.iter().map(|found| {
        let line = format!("{}, {}", labelled.label(&found.case), full::line(found));
        let heading = if found.server_log.is_empty() { "" } else { "      the server log ends with:\n" };
        let log = found.server_log.lines().map(|line| paragraph("        ", line.trim_start()));
        paragraph("  - ", &line) + &paragraph("      ", &found.reason) + heading + &log.collect::<String>()
    });
    section("Full stacks", full)
}

fn not_run(labelled: &Labelled<'_>) -> String {
    let not_run = by_key(labelled.findings.not_run.iter().map(|found| {
        let which = format!("{}, {}", labelled.label(&found.case), numbered("trial", &found.trials));
        ((&found.step, &found.reason, &found.hint), which)
    }));
    let not_run = not_run.into_iter().map(|((step, reason, hint), which)| {
        let step = step.as_ref().map(|step| format!(" (ended while {step})")).unwrap_or_default();
        let reason = reason.lines().map(|line| paragraph("      ", line));
        let hint = hint.iter().map(|hint| paragraph("      try: ", hint));
        paragraph("  - ", &(which.join("; ") + &step)) + &reason.chain(hint).collect::<String>()
    });
    let title =
        if labelled.findings.run.trials_damaged > 0 { "Not run or damaged, and why" } else { "Not run, and why" };
    section(title, not_run)
}

fn absent() -> String {
    ABSENT.to_owned()
}

/// Text of a cell with its aside. Remarks are omitted: they say that classes differ, which headings show here.
fn with_aside(cell: &Cell) -> String {
    // Text that a page folds below its first clause.
    if let Some(evidence) = cell.more.as_ref().filter(|_| cell.style == "reason") {
        return evidence.clone();
    }
    match &cell.aside {
        Some(aside) if cell.text.starts_with(|c: char| c.is_ascii_digit()) => format!("{} ({aside})", cell.text),
        Some(aside) => format!("{}: {aside}", cell.text),
        None => cell.text.clone(),
    }
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

//! Findings as GitHub-flavored Markdown for a ticket: the answer, rankings, latencies, cautions, conditions.

use super::device_work::device_work;
use super::effects::effects_table;
use super::environment::each_machine;
use super::labelled::Labelled;
use super::latencies::{CLOSED_LOOP, SHOWN, load_words, shown_percentiles};
use super::rankings::ranking_tables;
use super::table::{Cell, Table, TableColumn, TableRow};
use super::words::{caution_cases, moment, ranges, server_versions};
use super::{ageing, drives, full, merged, power_cuts, profiled};
use crate::analyse::findings::Findings;
use crate::report::text::printable;
use crate::units::Bytes;

/// `--format md`.
pub(super) fn page(findings: &Findings) -> String {
    let labelled = Labelled::new(findings);
    let mut parts = vec![format!("## {}", plain(&findings.run.name)), format!("**{}**", plain(&findings.headline))];
    let effects = effects_table(&findings.effects);
    parts.extend((!effects.groups.is_empty()).then(|| ranking(&effects)));
    let work = device_work(&labelled).even();
    parts.extend((!work.groups.is_empty()).then(|| ranking(&work)));
    parts.extend(ranking_tables(&findings.rankings).iter().map(ranking));
    let tables = [
        power_cuts::verdicts(&findings.power_cuts).even(),
        power_cuts::devices(&findings.power_cuts),
        profiled::table(&findings.profiled),
        labelled.stages(),
        labelled.snapshots(),
        labelled.capacities(),
        ageing::courses(&findings.ageing),
        drives::drives(&findings.drives),
    ];
    parts.extend(tables.iter().filter_map(noted));
    parts.extend(latencies(&labelled));
    let cautions = findings.cautions.iter().map(|caution| {
        let cases = caution_cases(caution, &labelled.labels);
        let cases = if cases.is_empty() { cases } else { format!(" ({cases})") };
        format!("- {}", plain(&format!("{}{cases}", caution.text)))
    });
    parts.extend(list("Caveats", cautions));
    let full = findings.full.iter().map(|found| {
        let label = labelled.label(&found.case);
        format!("- {}", plain(&format!("{label}, {}: {}", full::line(found), found.reason)))
    });
    parts.extend(list("Full stacks", full));
    let not_run = findings.not_run.iter().map(|found| {
        let label = labelled.label(&found.case);
        plain(&format!("{label}, trials {}: {}", ranges(&found.trials), found.reason))
    });
    let heading = if findings.run.trials_damaged > 0 { "Not run or damaged" } else { "Not run" };
    parts.extend(list(heading, not_run.map(|one| format!("- {one}"))));
    parts.push(conditions(findings));
    parts.join("\n\n") + "\n"
}

/// One ranking: a table for each durability class.
fn ranking(found: &Table) -> String {
    let mut text = format!("### {}", plain(&found.caption));
    for group in &found.groups {
        let heading = group.heading.as_deref().unwrap_or_default();
        let meaning = group.note.as_deref().unwrap_or_default();
        text.push_str(&format!("\n\n**{}**: {}\n\n", plain(heading), plain(meaning)));
        text.push_str(&grid(found, group.rows.iter()));
        text.extend(group.below.iter().map(|sentence| format!("\n{}", plain(sentence))));
    }
    text.trim_end().to_owned()
}

/// A table with its note; empty if the table has no rows.
fn noted(found: &Table) -> Option<String> {
    let text = grid(found, found.groups.iter().flat_map(|group| &group.rows));
    let note = found.note.as_deref().unwrap_or_default();
    (found.length > 0).then(|| format!("### {}\n\n{text}\n{}", plain(&found.caption), plain(note)))
}

/// These rows of a table below its titles.
fn grid<'t>(found: &Table, rows: impl Iterator<Item = &'t TableRow>) -> String {
    let head = row(found.columns.iter().map(title)) + &row(found.columns.iter().map(aligned));
    std::iter::once(head).chain(rows.map(|cells| row(cells.cells.iter().map(cell)))).collect()
}

/// A column's title with its unit.
fn title(column: &TableColumn) -> String {
    let unit = column.unit.as_deref().filter(|unit| !unit.is_empty() && !column.title.contains(*unit));
    plain(&unit.map_or_else(|| column.title.clone(), |unit| format!("{}, {unit}", column.title)))
}

fn aligned(column: &TableColumn) -> String {
    if column.numeric { "--:" } else { "---" }.to_owned()
}

/// Percentiles of each case's main measure; empty if no latencies were measured.
fn latencies(labelled: &Labelled<'_>) -> Option<String> {
    let mut text = row(["Case", "Load"].into_iter().chain(SHOWN).map(str::to_owned));
    text.push_str(&row(["---", "---", "--:", "--:", "--:"].into_iter().map(str::to_owned)));
    let mut any = false;
    for case in &labelled.findings.cases {
        let Some(latency) = case.measures.first().and_then(|measure| measure.latency.as_ref()) else { continue };
        any = true;
        let shown = shown_percentiles(latency).map(|percentile| plain(&percentile));
        let name = plain(labelled.label(&case.id));
        text.push_str(&row([name, plain(&load_words(case))].into_iter().chain(shown)));
    }
    let closed = if labelled.any_closed_loop() { format!("\n{}\n", plain(CLOSED_LOOP)) } else { String::new() };
    any.then(|| format!("### Latency, ms (95 % interval over trials)\n\n{text}{closed}").trim_end().to_owned())
}

fn list(heading: &str, lines: impl Iterator<Item = String>) -> Option<String> {
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| format!("### {heading}\n\n{}", lines.join("\n")))
}

/// Machine, servers and procedure of the measurement; the plan is folded.
fn conditions(findings: &Findings) -> String {
    let run = &findings.run;
    let machines = each_machine(&findings.machines, |host| {
        format!("{}, {} CPUs, {}, Linux {}", host.hostname, host.cpus, Bytes(host.memory_bytes), host.kernel)
    });
    let mut lines = vec![format!("- Run {} of {}, seed {}", plain(&run.id), plain(&moment(&run.started)), run.seed)];
    lines.extend((!machines.is_empty()).then(|| format!("- Machine: {}", plain(&machines))));
    lines.extend(server_versions(findings).map(|versions| format!("- PostgreSQL {}", plain(&versions))));
    let (measured, planned, blocks) = (run.trials_measured, run.trials_planned, run.blocks);
    lines.push(format!("- {measured} of {planned} trials measured in {blocks} blocks; intervals are 95 %, of ratios in a ranking over all its pairs together"));
    lines.extend(run.blocks_held.as_ref().map(|held| format!("- Blocks: {}", plain(held))));
    let merge = run.merge.iter().flat_map(merged::lines);
    lines.extend(merge.map(|line| format!("- {}", plain(&line))));
    lines.push(format!("- pgstrata {} (measured with {})", plain(&run.analysed_by), plain(&run.measured_by)));
    // A fence must be longer than any run of backticks in its content.
    let fence = "`".repeat(2 + longest_run(&run.plan, '`').max(1));
    let plan: Vec<String> = run.plan.lines().map(printable).collect();
    let plan = format!("<details><summary>Plan</summary>\n\n{fence}toml\n{}\n{fence}\n\n</details>", plan.join("\n"));
    format!("### Conditions\n\n{}\n\n{plan}", lines.join("\n"))
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|c| c != of).map(str::len).max().unwrap_or(0)
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn cell(cell: &Cell) -> String {
    let text = match &cell.aside {
        Some(aside) if aside.starts_with(|c: char| c.is_ascii_digit()) => format!("{} ({aside})", cell.text),
        Some(aside) if !cell.text.is_empty() => format!("{}: {aside}", cell.text),
        Some(aside) => aside.clone(),
        None => cell.text.clone(),
    };
    plain(&text)
}

/// Text that Markdown shows unchanged: escapes markup, cell separators, elements and issue references; control
/// characters and those that hide or reorder text become their code.
fn plain(text: &str) -> String {
    let text: Vec<char> = printable(text).chars().collect();
    let mut shown = String::with_capacity(text.len());
    for (at, &c) in text.iter().enumerate() {
        let next = text.get(at + 1).copied();
        let before = at.checked_sub(1).and_then(|before| text.get(before)).copied();
        match c {
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '&' => shown.push_str("&amp;"),
            // A mention would notify that person.
            '@' => shown.push_str("@\u{2060}"),
            '_' if [before, next].iter().all(|c| c.is_some_and(char::is_alphanumeric)) => shown.push('_'),
            '#' if !next.is_some_and(|next| next.is_ascii_digit()) && before.is_some() => shown.push('#'),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' | '#' => shown.extend(['\\', c]),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_marks_up_is_shown_as_it_is() {
        assert_eq!(plain("a|b `c` *d* <img> & [x](y) \\"), "a\\|b \\`c\\` \\*d\\* &lt;img&gt; &amp; \\[x\\](y) \\\\");
        assert_eq!(plain("wal_sync_method _x_ #12 C# $1$"), "wal_sync_method \\_x\\_ \\#12 C# \\$1\\$");
        assert_eq!(plain("two\nlines\u{1b}[2J"), "two lines{U+001B}\\[2J");
        assert_eq!(plain("@user"), "@\u{2060}user");
    }

    #[test]
    fn a_fence_is_longer_than_the_fences_it_holds() {
        assert_eq!((longest_run("a ```` b `", '`'), longest_run("none", '`')), (4, 0));
    }
}

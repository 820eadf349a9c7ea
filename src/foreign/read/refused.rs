//! Recognises forms of output that are not read, so that such a file is refused by name; and lines in which a tool
//! reports a failure.

use super::output::{Output, TextLine};
use super::table;

/// The unread forms in a text, each as an output with only its first line.
pub(super) fn outputs(lines: &[TextLine<'_>]) -> Vec<Output> {
    let mut found: Vec<Output> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((tool, wanted)) = form(lines, at) else { continue };
        if found.last().is_none_or(|last| last.tool != tool) {
            let unread = vec![table::unread(*line, wanted)];
            found.push(Output { unread, ..table::output(tool, line.number) });
        }
    }
    found
}

/// The tool whose output begins on a line, and the form of it that is read instead.
fn form(lines: &[TextLine<'_>], at: usize) -> Option<(&'static str, &'static str)> {
    const FIO: (&str, &str) = ("fio", "fio's JSON: --output-format=json");
    let text = lines[at].text;
    // In a multi-line document these are in its first lines.
    let mut near = lines[at..].iter().take(40).map(|line| line.text);
    let words = table::words(if text.len() < 200 { text } else { "" });
    match words.as_slice() {
        _ if text.contains("(groupid=") && text.contains("err=") => Some(FIO),
        _ if text.split(';').nth(1).is_some_and(|version| version.starts_with("fio-")) => Some(FIO),
        _ if text.starts_with('{')
            && near.any(|text| text.contains("\"disk_device\"") || text.contains("\"avg-cpu\"")) =>
        {
            Some(("iostat -o JSON", "iostat's tables, without -o JSON"))
        }
        words if words.contains(&"KB/t") => Some(("iostat", "one row for each disk: iostat -x")),
        ["latency", "read", "write", ..] | ["req_size", "ind", "agg", ..] => {
            Some(("zpool iostat", "rates or mean latencies, not the histograms of -w and -r"))
        }
        ["sysbench", _, "(using", ..] => Some(("sysbench", "the output of a tool that is known")),
        _ => None,
    }
}

/// Adds to each output the failure messages in and before it, and after the last one.
pub(super) fn failures<'a>(lines: &[TextLine<'_>], outputs: impl ExactSizeIterator<Item = &'a mut Output>) {
    const MOST_SHOWN: usize = 3;
    let mut rest = lines;
    let last = outputs.len().saturating_sub(1);
    for (at, output) in outputs.enumerate() {
        let end = rest.partition_point(|line| at == last || line.number <= output.lines.1);
        let (within, behind) = rest.split_at(end);
        rest = behind;
        let said: Vec<&TextLine<'_>> = within.iter().filter(|line| is_failure(line.text)).collect();
        for line in said.iter().take(MOST_SHOWN) {
            table::note(output, format!("line {}: {}", line.number, line.text.chars().take(200).collect::<String>()));
        }
        if said.len() > MOST_SHOWN {
            table::note(output, format!("and {} more lines that tell of failures", said.len() - MOST_SHOWN));
        }
    }
}

fn is_failure(text: &str) -> bool {
    const TOOLS: [&str; 9] =
        ["pgbench:", "pg_test_fsync:", "fio:", "iostat:", "vmstat:", "zpool:", "zfs:", "mount:", "cannot open"];
    const WORDS: [&str; 7] = ["error", "err=", "fatal", "failed", "aborted", "cannot", "could not"];
    text.contains("Run was aborted")
        || text.contains(" aborted in ")
        || ["ERROR: ", "FATAL: ", "PANIC: "].iter().any(|level| text.starts_with(level))
        || TOOLS.iter().any(|tool| text.starts_with(tool))
            && WORDS.iter().any(|word| text.to_lowercase().contains(word))
}

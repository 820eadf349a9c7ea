//! Limits as a JUnit file, shown by CI servers as tests: an exceeded limit is a failure, an undecided one an error.

use super::super::text::{code, replaced};
use super::super::words::is_hidden;
use super::{change, count, summary};
use crate::analyse::limits::{Compliance, LimitFinding, LimitFindings};

/// The whole file.
pub fn junit(findings: &LimitFindings) -> String {
    let [failed, undecided] = [Compliance::Fail, Compliance::Undecided].map(|it| count(findings, it));
    let tests = findings.limits.len();
    let counts = format!("tests=\"{tests}\" failures=\"{failed}\" errors=\"{undecided}\" skipped=\"0\"");
    let name = escaped(&format!("{} against {}", findings.run, findings.baseline));
    let when = when(findings);
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    text.push_str(&format!("<testsuites name=\"pgstrata check\" {counts}{}>\n", time(findings)));
    text.push_str(&format!("  <testsuite name=\"{name}\" {counts}{when}>\n"));
    findings.limits.iter().for_each(|finding| text.push_str(&case(finding)));
    let notes: Vec<&str> = findings.notes.iter().map(String::as_str).collect();
    let said = [&[summary(findings).as_str()], notes.as_slice()].concat().join("\n");
    text.push_str(&format!("    <system-out>{}</system-out>\n  </testsuite>\n</testsuites>\n", escaped(&said)));
    text
}

/// Attributes for the start of the run, in UTC without a zone as the schema of Ant's JUnit files requires, and its
/// duration.
fn when(findings: &LimitFindings) -> String {
    let began = findings.started.split(['Z', '.', '+']).next().unwrap_or_default();
    let stamp = if began.is_empty() { String::new() } else { format!(" timestamp=\"{}\"", escaped(began)) };
    stamp + &time(findings)
}

fn time(findings: &LimitFindings) -> String {
    findings.took_s.map(|seconds| format!(" time=\"{seconds:.3}\"")).unwrap_or_default()
}

fn case(finding: &LimitFinding) -> String {
    let name = escaped(&format!("{} ({})", finding.limit, finding.measure));
    let open = format!("    <testcase classname=\"{}\" name=\"{name}\"", escaped(&finding.case));
    let message = escaped(&format!("{}; {}", change(finding), finding.how));
    let (element, kind) = match finding.outcome {
        Compliance::Pass => return format!("{open}/>\n"),
        Compliance::Fail => ("failure", "exceeded"),
        Compliance::Undecided => ("error", "undecided"),
    };
    format!("{open}>\n      <{element} type=\"{kind}\" message=\"{message}\"/>\n    </testcase>\n")
}

/// Escapes text for XML 1.0; invalid or invisible characters become their code.
fn escaped(text: &str) -> String {
    replaced(text, |c| match c {
        '<' => Some("&lt;".to_owned()),
        '>' => Some("&gt;".to_owned()),
        '&' => Some("&amp;".to_owned()),
        '"' => Some("&quot;".to_owned()),
        '\'' => Some("&apos;".to_owned()),
        '\n' | '\t' => None,
        c => (is_hidden(c) || matches!(c, '\r' | '\u{fffe}' | '\u{ffff}')).then(|| code(c)),
    })
}

//! What `dd` says when it ends: GNU coreutils in any locale, FreeBSD and macOS, busybox.
//!
//! | figure | unit |
//! |---|---|
//! | `full_records_in`, `partial_records_in`, `full_records_out`, `partial_records_out` | count |
//! | `copied_bytes`, `elapsed_us`, `bytes_per_s` | B, us, B/s |
//!
//! GNU's rate is in powers of 1000, busybox' in powers of 1024 (it leaves no blank before its unit). A line of
//! `status=progress` looks like the last line; each is a row. Sources: dd(1) of coreutils, FreeBSD, busybox.

use super::output::{Figure, Line, Output, Row};
use super::{table, web};

/// Whether a line of the text is dd's.
#[must_use]
pub fn looks_like(lines: &[Line<'_>]) -> bool {
    lines.iter().any(|line| records(*line).is_some() || copied(*line).is_some())
}

/// Reads every end of a dd in the text.
#[must_use]
pub fn read(lines: &[Line<'_>]) -> Vec<Output> {
    let mut outputs: Vec<Output> = Vec::new();
    // How many lines of records the present dd has shown; 0 where the next line begins another.
    let mut open: Option<usize> = None;
    for line in lines {
        if let Some(pair) = records(*line) {
            let seen = open.filter(|seen| *seen == 1).unwrap_or(0);
            let output = begin(&mut outputs, seen == 0, *line);
            // The first line may be missing.
            let side = if seen == 0 && !line.text.ends_with(" out") { "in" } else { "out" };
            if seen == 0 {
                output.rows.push(Row { line: line.number, ..Row::default() });
            }
            if let Some(row) = output.rows.last_mut() {
                for (kind, (text, value)) in ["full", "partial"].iter().zip(pair) {
                    row.figures.push(table::figure(
                        &format!("{kind}_records_{side}"),
                        "count",
                        value,
                        text,
                        line.number,
                    ));
                }
            }
            open = Some(if side == "in" { 1 } else { 2 });
        } else if let Some((figures, size)) = copied(*line) {
            let joins = open == Some(2);
            let output = begin(&mut outputs, !joins, *line);
            if !joins {
                output.rows.push(Row { line: line.number, ..Row::default() });
            }
            if let Some(row) = output.rows.last_mut() {
                row.figures.extend(figures);
                row.labels.extend(size.map(|size| ("size", size.to_owned())));
            }
            open = None;
        } else if let (true, Some(output)) = (open.is_some() && begins_copied(line.text), outputs.last_mut()) {
            output.unread.push(table::unread(*line, "bytes, seconds and rate"));
            table::extend(output, line.number);
            open = None;
        } else if !line.text.trim().is_empty() && table::is_prompt(line.text) {
            open = None;
        }
    }
    outputs
}

fn begin<'a>(outputs: &'a mut Vec<Output>, fresh: bool, line: Line<'_>) -> &'a mut Output {
    if fresh || outputs.is_empty() {
        outputs.push(Output { tool: "dd", lines: (line.number, line.number), ..Output::default() });
    }
    let last = outputs.len() - 1;
    table::extend(&mut outputs[last], line.number);
    &mut outputs[last]
}

/// Full and partial records: `20+0 records in`, `20+0 Datensätze ein`.
fn records(line: Line<'_>) -> Option<[(&str, f64); 2]> {
    let words = table::words(line.text);
    let (full, partial) = words.first()?.split_once('+')?;
    let digits = |text: &str| (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| web::number(text));
    let (full, partial) = ((full, digits(full)??), (partial, digits(partial)??));
    let named = (2..=4).contains(&words.len()) && words[1..].iter().all(|word| word.chars().all(char::is_alphabetic));
    named.then_some([full, partial])
}

fn begins_copied(text: &str) -> bool {
    let words = table::words(text);
    let unit = words.get(1).map(|word| word.to_lowercase());
    let unit = unit.is_some_and(|unit| ["byte", "octet", "bajt", "байт"].iter().any(|name| unit.starts_with(name)));
    unit && words[0].bytes().all(|byte| byte.is_ascii_digit())
}

/// The figures of the last line, and the size as it is printed for people.
fn copied(line: Line<'_>) -> Option<(Vec<Figure>, Option<&str>)> {
    if !begins_copied(line.text) {
        return None;
    }
    let words = table::words(line.text);
    let mut figures = vec![table::figure("copied_bytes", "B", web::number(words[0])?, words[0], line.number)];
    let seconds = words.windows(2).rev().find_map(|pair| {
        let unit = pair[1].trim_end_matches(',').to_lowercase();
        let is_seconds = matches!(unit.as_str(), "s" | "sec" | "secs" | "second" | "seconds" | "sek" | "с");
        Some((pair[0], web::number(pair[0]).filter(|_| is_seconds)?))
    })?;
    figures.push(table::figure("elapsed_us", "us", seconds.1 * 1e6, seconds.0, line.number));
    let (text, value) = rate(line.text, &words)?;
    figures.push(table::figure("bytes_per_s", "B/s", value, text, line.number));
    let size = line.text.find('(').zip(line.text.find(')')).filter(|_| !line.text.contains("bytes/sec"));
    Some((figures, size.and_then(|(from, to)| line.text.get(from + 1..to))))
}

/// The rate at the end of the line: `2.8 GB/s`, `2.9GB/s` (busybox), `(3105971564 bytes/sec)`.
fn rate<'a>(text: &'a str, words: &[&'a str]) -> Option<(&'a str, f64)> {
    let (last, before) = words.split_last()?;
    if last.starts_with("bytes/sec") {
        let number = before.last()?.trim_start_matches('(');
        return Some((number, web::number(number)?));
    }
    let unit = last.strip_suffix("/s").or_else(|| last.strip_suffix("/с"))?;
    let end = unit.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','))?;
    let (number, unit) = unit.split_at(end);
    let (text, number, base) = if number.is_empty() {
        let number = before.last()?;
        let from = text.rfind(number)?;
        (text.get(from..)?.trim_end(), web::number(number)?, 1000.0f64)
    } else {
        (*last, web::number(number)?, table::KIB)
    };
    let power = match unit.chars().next()? {
        'B' | 'b' | 'o' => 0,
        letter => i32::try_from("kmgtpe".find(letter.to_ascii_lowercase())? + 1).ok()?,
    };
    Some((text, number * base.powi(power)))
}

#[cfg(test)]
mod tests {
    use super::super::mangle::any_mangling;
    use super::super::table::checks::outputs_of;
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    const GNU: &str = include_str!("../../tests/fixtures/dd/9.1.txt");
    const BUSYBOX: &str = include_str!("../../tests/fixtures/dd/busybox-1.35.0.txt");

    fn outputs(text: &str) -> Vec<Output> {
        outputs_of(text, looks_like, read)
    }

    fn value(text: &str, name: &str) -> f64 {
        let found = outputs(text);
        assert_eq!((found.len(), found[0].rows.len()), (1, 1), "{found:#?}");
        found[0].rows[0].figures.iter().find(|figure| figure.name == name).map_or(f64::NAN, |figure| figure.value)
    }

    #[test]
    fn dd_of_this_machine_is_read() {
        assert_eq!((value(GNU, "full_records_in"), value(GNU, "copied_bytes")), (20.0, 1_310_720.0));
        assert!(value(GNU, "bytes_per_s") > 1e6 && value(GNU, "elapsed_us") < 1e6);
        assert_eq!(value(BUSYBOX, "full_records_out"), 20.0);
    }

    #[test]
    fn other_systems_and_locales_are_read() {
        let text = "1310720 bytes transferred in 0.000422 secs (3105971564 bytes/sec)";
        assert_eq!((value(text, "bytes_per_s"), value(text, "elapsed_us")), (3_105_971_564.0, 422.0));
        let text =
            "20+0 Datensätze ein\n20+0 Datensätze aus\n1310720 Bytes (1,3 MB, 1,2 MiB) kopiert, 0,5 s, 2,6 MB/s\n";
        assert_eq!((value(text, "bytes_per_s"), value(text, "elapsed_us")), (2.6e6, 500_000.0));
        assert_eq!(outputs(text)[0].rows[0].labels, [("size", "1,3 MB, 1,2 MiB".to_owned())]);
        let text = "104857600 bytes (100.0MB) copied, 2.5 seconds, 40.0MB/s";
        assert_eq!(value(text, "bytes_per_s"), 40.0 * 1024.0 * 1024.0);
        let text = "1073741824 bytes (1.1 GB) copied, 10.7 seconds, 100 MB/s";
        assert_eq!(value(text, "bytes_per_s"), 1e8);
    }

    #[test]
    fn two_runs_are_two_outputs_and_a_cut_line_is_reported() {
        assert_eq!(outputs(&format!("{GNU}{GNU}")).len(), 2);
        let found = outputs("1+0 records in\n1+0 records out\n512 bytes (512 B) cop");
        assert_eq!((found.len(), found[0].unread[0].line), (1, 3));
        assert!(outputs("we wrote 512 bytes in 3 s\n1+1 is 2, as you know\n").is_empty());
    }

    proptest! {
        #[test]
        fn mangled_text_gives_the_same_or_less(mangling in any_mangling()) {
            let count = |outputs: &[Output]| -> usize {
                outputs.iter().flat_map(|output| &output.rows).map(|row| row.figures.len()).sum()
            };
            let mangled = count(&outputs(&mangling.apply(GNU)));
            prop_assert!(mangled <= 7, "{}", mangling.apply(GNU));
            prop_assert!(!mangling.keeps_lines() || mangled == 7, "{}", mangling.apply(GNU));
        }

        #[test]
        fn no_text_makes_it_panic(text in "([0-9]{1,3}|\\+|records in|bytes|[(,) ]|copied|s|kB/s|/s|bytes/sec|\\n){0,30}", any in any::<String>()) {
            outputs(&text);
            outputs(&any);
        }
    }
}

//! Help texts below the options and pages of plans, folded once at the width. clap would fold the source's lines once
//! more, and second columns not at all.

use crate::report::text::{at_width, columns, paragraph, width};
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The command line whose help, here and below, is folded at this width.
pub(super) fn at(columns: u16, command: clap::Command) -> clap::Command {
    let folded = command.get_after_help().map(|text| at_width(columns, || folded(&text.to_string())));
    let command = command.term_width(usize::from(columns)).max_term_width(usize::from(columns));
    let command = folded.into_iter().fold(command, clap::Command::after_help);
    command.mut_subcommands(|subcommand| at(columns, subcommand))
}

/// Names the subcommands that have the flag which the one called lacks.
pub(super) fn pointed(mut usage: clap::Error, command: &clap::Command) -> clap::Error {
    let flag = match usage.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if usage.kind() == ErrorKind::UnknownArgument => flag.clone(),
        _ => return usage,
    };
    // A negative number, or the rest of a limit without quotes: `-- -5` would be a folder.
    if flag.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        usage.remove(ContextKind::Suggested);
    }
    let Some(long) = flag.strip_prefix("--") else { return usage };
    let has = |one: &&clap::Command| one.get_arguments().any(|arg| arg.get_long() == Some(long));
    let having = command.get_subcommands().filter(|one| !one.is_hide_set()).filter(has);
    let having: Vec<String> = having.map(|one| format!("`pgstrata {}`", one.get_name())).collect();
    if !having.is_empty() {
        usage.remove(ContextKind::SuggestedArg);
        let tip = format!("{flag} is an option of {}", having.join(", "));
        usage.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    usage
}

/// Folds prose, items of lists and second columns, each of which continues in the next line of the source.
pub(super) fn folded(text: &str) -> String {
    let mut items: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let rest = line.trim_start();
        let indent = line.len() - rest.len();
        match items.last_mut() {
            Some((mark, before))
                if ![before.as_str(), rest].iter().any(|text| text.is_empty() || is_whole(text))
                    && indent == width(mark)
                    && (indent == 0 || mark.trim() != "") =>
            {
                before.push(' ');
                before.push_str(rest);
            }
            _ => items.push(columns_of(line, indent)),
        }
    }
    let lines = items.iter().map(|(mark, text)| {
        let is_wide = width(mark) > columns() / 2 && width(mark) + width(text) > columns();
        if is_wide { paragraph("  ", mark) + &paragraph("      ", text) } else { paragraph(mark, text) }
    });
    lines.collect::<String>().trim_end().to_owned()
}

/// True for a line of Markdown that is a whole: a heading, a row of a table, an item of a list.
fn is_whole(line: &str) -> bool {
    ["#", "|", "- "].iter().any(|start| line.starts_with(start))
}

/// First column with the gap behind it, and second column; of a line with one column its indent and the rest.
fn columns_of(line: &str, indent: usize) -> (String, String) {
    let gap = line[indent..].find("  ").filter(|_| indent > 0).map(|at| at + indent);
    let item = if line[indent..].starts_with("- ") { indent + 2 } else { indent };
    let second = gap.and_then(|at| Some(at + line[at..].find(|c: char| c != ' ')?)).unwrap_or(item);
    (line[..second].to_owned(), line[second..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_of_another_subcommand_is_pointed_to_there() {
        let told = |words: &[&str]| {
            let usage = crate::cli::command().try_get_matches_from(words).unwrap_err();
            pointed(usage, &crate::cli::command()).to_string()
        };
        let blocks = told(&["pgstrata", "plan", "plan.toml", "--blocks", "2"]);
        assert!(blocks.contains("tip: --blocks is an option of `pgstrata run`"), "{blocks}");
        assert!(!blocks.contains("as a value"), "{blocks}");
        let wrong = told(&["pgstrata", "plan", "plan.toml", "--jsn"]);
        assert!(wrong.contains("'--json'"), "{wrong}");
        for stray in ["foo", "-z"] {
            let told = told(&["pgstrata", "doctor", stray]);
            assert!(!told.contains("is an option of"), "{told}");
        }
    }

    #[test]
    fn every_help_is_folded_once_at_80_and_120_columns() {
        for columns in [80, 120] {
            let mut command = at(columns, crate::cli::command());
            command.build();
            let below: Vec<clap::Command> = command.get_subcommands().cloned().collect();
            for mut command in std::iter::once(command).chain(below) {
                let text = command.render_long_help().to_string();
                let lines: Vec<&str> = text.lines().collect();
                assert!(lines.iter().all(|line| width(line) <= usize::from(columns)), "{text}");
                for pair in lines.windows(2) {
                    let is_prose = pair.iter().all(|line| line.starts_with(|c: char| !c.is_whitespace()));
                    let word = pair[1].split(' ').next().unwrap_or_default();
                    let had_room = width(pair[0]) + 1 + width(word) <= usize::from(columns);
                    assert!(!(is_prose && had_room), "{} at {columns}: {pair:?}", command.get_name());
                }
            }
        }
    }

    #[test]
    fn every_example_of_a_command_fits_a_line_of_80() {
        for command in crate::cli::command().get_subcommands() {
            let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in below.lines().filter(|line| line.starts_with("  pgstrata ")) {
                let (mark, text) = columns_of(line, 2);
                let example = if mark.trim().is_empty() { text.as_str() } else { mark.trim() };
                assert!(width(example) <= 78, "whoever copies it gets half of it: {example}");
            }
        }
    }

    #[test]
    fn second_columns_stay_aligned_and_long_commands_have_their_own_line() {
        let source = "Examples:\n  pgstrata x          what it does, at some length, and a little more than that\n  \
                      pgstrata x --with --many --options --and --more  what that does\n\nProse that\ngoes on.";
        assert_eq!(
            at_width(60, || folded(source)),
            "Examples:\n  pgstrata x          what it does, at some length, and a\n                      little more than \
             that\n  pgstrata x --with --many --options --and --more\n      what that does\n\nProse that goes on."
        );
        let page = "# A\n- one\n  more\n- two\n| a |\n| b |";
        assert_eq!(folded(page), "# A\n- one more\n- two\n| a |\n| b |");
    }
}

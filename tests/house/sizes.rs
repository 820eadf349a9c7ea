//! How long files and functions may be.

use super::source::{Source, Token, all};

/// A file beyond this is two files.
const LINES_OF_A_FILE: usize = 600;
/// A function beyond this is two functions.
const LINES_OF_A_FUNCTION: usize = 70;

/// The wing for other people's text and for comparison, which must not outgrow the instrument that it stands beside.
const WING: [&str; 14] = [
    "src/foreign/",
    "src/analyse/imported/",
    "src/analyse/shelf/",
    "src/analyse/compare/",
    "src/analyse/findings/remark.rs",
    "src/report/compare/",
    "src/report/shelf.rs",
    "src/cli/import.rs",
    "src/cli/import/",
    "src/cli/compare",
    "src/cli/shelf.rs",
    "src/store/import.rs",
    "src/record/imported.rs",
    "src/record/publication.rs",
];
/// Lines of code of the wing, tests aside ([ADR 13](../../docs/adr/0013-foreign-text-is-a-wing-with-a-manifest.md)).
const LINES_OF_THE_WING: usize = 8_100;

/// Lines with code outside of `#[cfg(test)]`; none of a file of tests.
fn lines_of_code(source: &Source) -> usize {
    let path = source.path.to_string_lossy();
    if path.ends_with("/tests.rs") || path.contains("/tests/") {
        return 0;
    }
    let lines: Vec<&str> = source.text.lines().collect();
    let (mut count, mut at) = (0, 0);
    while at < lines.len() {
        let line = lines[at].trim();
        if line != "#[cfg(test)]" {
            count += usize::from(!line.is_empty() && !line.starts_with("//"));
            at += 1;
            continue;
        }
        let indent = lines[at].len() - lines[at].trim_start().len();
        at += 1;
        if lines.get(at).is_some_and(|line| line.trim_end().ends_with('{')) {
            let end = format!("{}}}", " ".repeat(indent));
            at += lines[at..].iter().position(|line| line.starts_with(&end)).unwrap_or(0);
        }
        at += 1;
    }
    count
}

/// Name, first line and number of lines of each function with a body, signature counted.
fn functions(source: &Source) -> Vec<(String, usize, usize)> {
    let tokens = &source.tokens;
    let starts = (0..tokens.len().saturating_sub(1)).filter(|&i| tokens[i].is("fn"));
    let named = starts.filter_map(|i| Some((i, tokens[i + 1].word()?.to_owned())));
    named
        .filter_map(|(i, name)| {
            let (first, last) = (tokens[i].line, tokens[end_of_body(tokens, body(tokens, i)?)?].line);
            Some((name, first, last - first + 1))
        })
        .collect()
}

/// The brace that opens the body of the function at `from`; `None` for one without (in a trait).
fn body(tokens: &[Token], from: usize) -> Option<usize> {
    let mut nested = 0usize;
    for (i, token) in tokens.iter().enumerate().skip(from) {
        if token.is_sign('(') || token.is_sign('[') {
            nested += 1;
        } else if token.is_sign(')') || token.is_sign(']') {
            nested = nested.saturating_sub(1);
        } else if nested == 0 && token.is_sign('{') {
            return Some(i);
        } else if nested == 0 && token.is_sign(';') {
            return None;
        }
    }
    None
}

fn end_of_body(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    (open..tokens.len()).find(|&i| {
        depth += usize::from(tokens[i].is_sign('{'));
        depth -= usize::from(tokens[i].is_sign('}'));
        depth == 0
    })
}

#[test]
fn no_file_is_too_long() {
    for source in all() {
        let lines = source.text.lines().count();
        assert!(lines <= LINES_OF_A_FILE, "{} has {lines} lines, {LINES_OF_A_FILE} are allowed", source.at(1));
    }
}

#[test]
fn the_wing_for_foreign_text_stays_small() {
    let of_wing = |source: &&Source| WING.iter().any(|part| source.path.to_string_lossy().starts_with(part));
    let lines: usize = all().iter().filter(of_wing).map(lines_of_code).sum();
    assert!(lines > LINES_OF_THE_WING / 2, "only {lines} lines: a path of the list is wrong");
    let allowed = "are allowed: a reader that nothing compares goes before a new one comes";
    assert!(
        lines <= LINES_OF_THE_WING,
        "the wing for foreign text has {lines} lines of code, {LINES_OF_THE_WING} {allowed}"
    );
}

#[test]
fn tests_do_not_count_as_code() {
    let text = "fn a() {}\n\n/// Of d.\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(test)]\nmod c;\nfn d() {}\n";
    assert_eq!(lines_of_code(&Source::of("src/x.rs", text)), 2);
    assert_eq!(lines_of_code(&Source::of("src/x/tests.rs", text)), 0);
}

#[test]
fn no_function_is_longer_than_a_screen() {
    let long = |source: &Source| -> Vec<String> {
        let found = functions(source).into_iter().filter(|(_, _, lines)| *lines > LINES_OF_A_FUNCTION);
        found.map(|(name, first, lines)| format!("{}: `{name}` has {lines} lines", source.at(first))).collect()
    };
    let long: Vec<String> = all().iter().flat_map(long).collect();
    assert!(long.is_empty(), "{LINES_OF_A_FUNCTION} are allowed:\n{}", long.join("\n"));
}

#[test]
fn braces_in_strings_comments_and_signatures_end_no_function() {
    let text = "fn a(x: [u8; 2]) -> String\nwhere\n    T: Fn(u8),\n{\n    // }\n    let s = \"}\"; let c = '}';\n    { s }\n}\n\
                trait T { fn b(&self);\n    fn c(&self) { fn d() {}\n } }\nconst F: fn(u8) -> u8 = |x| { x };";
    let found = functions(&Source::of("x.rs", text));
    let expected =
        [("a", 1, 8), ("c", 10, 2), ("d", 10, 1)].map(|(name, first, lines)| (name.to_owned(), first, lines));
    assert_eq!(found, expected);
}

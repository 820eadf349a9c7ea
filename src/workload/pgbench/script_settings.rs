//! Settings that the user's own scripts change in their sessions: a commit under `SET LOCAL synchronous_commit = off`
//! is not the commit that the server's settings promise. Pure.

use crate::record::facts::FoundSetting;

/// The session-level setting that decides what its commits mean.
const NAME: &str = "synchronous_commit";
/// Words before a parenthesis that are not function calls: a string inside is data.
const NO_CALLS: [&str; 16] = [
    "in", "values", "and", "or", "not", "where", "on", "any", "all", "select", "when", "then", "else", "if", "return",
    "like",
];

/// A token of SQL, with the line where it begins; names and keywords in lower case.
#[derive(Debug, PartialEq)]
pub enum Piece {
    Word(String),
    /// Content of a string.
    Text(String),
    Sign(char),
}
use Piece::{Sign, Text, Word};

/// All places in a script that set it; `script` is the script's name.
pub fn settings_in(text: &str, script: &str) -> Vec<FoundSetting> {
    let found = set_by(&pieces(text, 1)).into_iter().map(|(line, value)| {
        let place = format!("line {line} of {script}");
        FoundSetting { name: NAME.to_owned(), value, place }
    });
    found.collect()
}

/// The lines that set it, and to what; `None` if that cannot be determined. A string is code if it is a body or is
/// executed, may be code if a function gets it, and is data elsewhere.
fn set_by(code: &[(usize, Piece)]) -> Vec<(usize, Option<String>)> {
    let executes = code.iter().any(|(_, piece)| matches!(piece, Word(word) if word == "execute"));
    let (mut found, mut begin, mut calls) = (Vec::new(), 0, Vec::new());
    for (at, (line, piece)) in code.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |at| word_at(at, code));
        match piece {
            Sign(';') => begin = at + 1,
            Sign('(') => calls.push(before),
            Sign(')') => drop(calls.pop()),
            Word(name) if name == NAME && is_set(&code[begin..at]) => {
                found.extend(value_after(&code[at + 1..]).map(|value| (*line, value)));
            }
            Word(name) if name == "set_config" => {
                found.extend(configured(&code[at + 1..]).map(|value| (*line, value)));
            }
            Sign(_) | Word(_) => {}
            Text(text) => {
                let inner = set_by(&pieces(text, *line));
                let call = calls.last().copied().filter(|call| !call.is_empty() && !NO_CALLS.contains(call));
                if ["as", "do", "execute"].contains(&before) || word_at(begin, code) == "do" {
                    found.extend(inner);
                } else if !inner.is_empty() && (executes || call.is_some()) {
                    found.push((*line, None));
                } else if executes && !matches!(call, Some("set_config" | "current_setting")) {
                    found.extend(text.to_lowercase().contains(NAME).then_some((*line, None)));
                }
            }
        }
    }
    found
}

/// The word at a place; empty if there is none.
fn word_at(at: usize, code: &[(usize, Piece)]) -> &str {
    if let Some((_, Word(word))) = code.get(at) { word } else { "" }
}

/// True if these tokens of a statement are followed by a setting: after `SET`, unless in an `UPDATE`.
fn is_set(before: &[(usize, Piece)]) -> bool {
    let words: Vec<&str> = (0..before.len()).map(|at| word_at(at, before)).collect();
    matches!(words.as_slice(), [.., "set"] | [.., "set", "local" | "session"]) && !words.contains(&"update")
}

/// The value after a setting's name: `= off`, `TO 'off'`. `None` if nothing is set; `Some(None)` if the value cannot be
/// determined.
fn value_after(rest: &[(usize, Piece)]) -> Option<Option<String>> {
    let rest = match rest {
        [(_, Sign('=')), rest @ ..] => rest,
        [(_, Word(to)), rest @ ..] if to == "to" => rest,
        _ => return None,
    };
    match rest {
        [(_, Text(_)), (_, Text(_)), ..] => Some(None),
        [(_, Word(value) | Text(value)), ..] => value_of(value),
        _ => Some(None),
    }
}

/// The value that a call of `set_config` sets, like [`value_after`].
fn configured(call: &[(usize, Piece)]) -> Option<Option<String>> {
    let end = call.iter().position(|(_, piece)| *piece == Sign(')')).unwrap_or(call.len());
    let mut arguments = call.get(1..end)?.split(|(_, piece)| *piece == Sign(','));
    // `setting_name => 'synchronous_commit'`, or without the name.
    let mut argument = |name: &str| {
        let argument = arguments.next()?;
        let is_named = matches!(argument, [(_, Word(word)), (_, Sign(_)), (_, Sign(_)), ..] if word == name);
        Some(if is_named { &argument[3..] } else { argument })
    };
    let [(_, Text(name))] = argument("setting_name")? else { return None };
    if !name.trim().eq_ignore_ascii_case(NAME) {
        return None;
    }
    match argument("new_value")? {
        [(_, Text(value))] => value_of(value),
        [(_, Word(word))] if word == "null" => None,
        _ => Some(None),
    }
}

fn value_of(text: &str) -> Option<Option<String>> {
    let value = text.trim().to_lowercase();
    match value.as_str() {
        "default" => None,
        "off" | "false" | "no" | "0" => Some(Some("off".to_owned())),
        "on" | "true" | "yes" | "1" => Some(Some("on".to_owned())),
        "local" | "remote_write" | "remote_apply" => Some(Some(value)),
        _ => Some(None),
    }
}

/// The tokens of a text that begins in this line, without comments and pgbench commands (scan.l, psqlscan.l,
/// exprscan.l).
fn pieces(text: &str, mut line: usize) -> Vec<(usize, Piece)> {
    let mut found: Vec<(usize, Piece)> = Vec::new();
    let (mut rest, mut ended) = (text, 0);
    while !rest.is_empty() {
        let (bytes, piece) = piece(rest);
        let (this, after) = rest.split_at(bytes);
        let begin = line;
        line += this.matches('\n').count();
        match (piece, found.last_mut()) {
            // String literals separated by line breaks are one.
            (Some(Text(more)), Some((_, Text(text)))) if begin > ended => text.push_str(&more),
            (Some(piece), _) => found.push((begin, piece)),
            (None, _) => {}
        }
        if !this.trim().is_empty() {
            ended = line;
        }
        rest = after;
    }
    found
}

/// The token at the beginning of a text, and its length in bytes; none for what is not code.
pub fn piece(text: &str) -> (usize, Option<Piece>) {
    let first = text.chars().next().unwrap_or(' ');
    let run = |of: fn(char) -> bool| text.find(|c| !of(c)).unwrap_or(text.len());
    let lower = |prefix: &str| text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let quoted = |skip: usize, escapes: Escapes| {
        let (bytes, held) = quoted(&text[skip..], escapes);
        let piece = if text[skip..].starts_with('"') { Word(held.to_lowercase()) } else { Text(held) };
        (skip + bytes, Some(piece))
    };
    match first {
        _ if text.starts_with("--") => (run(|c| c != '\n'), None),
        _ if text.starts_with("/*") => (comment(text), None),
        '\\' => (text.find('\n').unwrap_or(text.len()), None),
        '\'' | '"' => quoted(0, Escapes::None),
        _ if lower("e'") => quoted(1, Escapes::C),
        _ if lower("u&'") || lower("u&\"") => quoted(2, Escapes::Unicode),
        '$' => dollar_quoted(text).map_or((1, Some(Sign('$'))), |(bytes, held)| (bytes, Some(Text(held.to_owned())))),
        _ if first.is_alphanumeric() || first == '_' => {
            let bytes = run(|c| c.is_alphanumeric() || c == '_' || c == '$');
            (bytes, Some(Word(text[..bytes].to_lowercase())))
        }
        _ if first.is_whitespace() => (run(char::is_whitespace), None),
        _ => (first.len_utf8(), Some(Sign(first))),
    }
}

/// Length of a comment in bytes, nested ones included.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(next) = text[at..].find(['/', '*']) {
        at += next;
        let (opens, closes) = (text[at..].starts_with("/*"), text[at..].starts_with("*/"));
        (depth, at) = match (opens, closes) {
            (true, _) => (depth + 1, at + 2),
            (_, true) => (depth - 1, at + 2),
            _ => (depth, at + 1),
        };
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// `$tag$ ... $tag$`: length in bytes, and content.
fn dollar_quoted(text: &str) -> Option<(usize, &str)> {
    let tag = &text[..text[1..].find('$')? + 2];
    let name = &tag[1..tag.len() - 1];
    let is_name =
        name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
    let held = is_name.then(|| &text[tag.len()..])?;
    let end = held.find(tag);
    Some((end.map_or(text.len(), |end| end + 2 * tag.len()), &held[..end.unwrap_or(held.len())]))
}

/// Meaning of a backslash in a string.
#[derive(Clone, Copy, PartialEq)]
enum Escapes {
    None,
    C,
    Unicode,
}

/// A quoted text: length in bytes, and content.
fn quoted(text: &str, escapes: Escapes) -> (usize, String) {
    let (quote, mut held) = (&text[..1], String::new());
    let mut rest = &text[1..];
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix(quote) {
            rest = after;
            if !rest.starts_with(quote) {
                break;
            }
        } else if c == '\\' && escapes != Escapes::None {
            let (bytes, meant) = escaped(&rest[1..], escapes);
            held.extend(meant);
            rest = &rest[1 + bytes..];
            continue;
        }
        held.push(c);
        rest = &rest[c.len_utf8()..];
    }
    (text.len() - rest.len(), held)
}

/// After a backslash: length in bytes, and the character it stands for.
fn escaped(text: &str, escapes: Escapes) -> (usize, Option<char>) {
    let first = text.chars().next();
    let (skip, most, radix) = match (escapes, first) {
        (Escapes::Unicode, Some('+')) => (1, 6, 16),
        (Escapes::Unicode, _) => (0, 4, 16),
        (_, Some('x')) => (1, 2, 16),
        (_, Some('u')) => (1, 4, 16),
        (_, Some('U')) => (1, 8, 16),
        (_, Some('0'..='7')) => (0, 3, 8),
        _ => return (first.map_or(0, char::len_utf8), first),
    };
    let digits = text[skip..].chars().take(most).take_while(|c| c.is_digit(radix)).count();
    let code = u32::from_str_radix(&text[skip..skip + digits], radix);
    (skip + digits, code.ok().and_then(char::from_u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Vec<(Option<String>, String)> {
        settings_in(text, "own.sql").into_iter().map(|found| (found.value, found.place)).collect()
    }

    #[test]
    fn every_way_to_set_it_is_found_with_its_line() {
        for way in [
            "SET LOCAL synchronous_commit = off;",
            "set synchronous_commit to 'off';",
            "SET SESSION synchronous_commit TO FALSE;",
            "SELECT set_config('synchronous_commit', 'off', true);",
            "ALTER ROLE app SET synchronous_commit = 0;",
            "CREATE FUNCTION f() RETURNS void LANGUAGE sql SET \"synchronous_commit\"=no AS $$ $$;",
            "DO $$ BEGIN SET LOCAL synchronous_commit=off; END $$;",
        ] {
            let found = set(&format!("BEGIN;\n\n{way}\nEND;"));
            assert_eq!(found, [(Some("off".to_owned()), "line 3 of own.sql".to_owned())], "{way}");
        }
    }

    #[test]
    fn settings_count_only_in_sql_that_is_executed() {
        let (off, unknown, none): (&[_], &[_], &[_]) = (&[Some("off")], &[None], &[]);
        for (text, wanted) in [
            ("SELECT 1 WHERE 'synchronous_commit = off' <> '';", none),
            ("INSERT INTO log VALUES ('SET synchronous_commit = off');", none),
            ("SELECT $$SET LOCAL synchronous_commit = off$$;", none),
            ("SELECT $q$ ' $q$, 'SET synchronous_commit = off' AS note;", none),
            ("SELECT E'it\\'s', ' SET synchronous_commit = off';", none),
            ("UPDATE t SET synchronous_commit = 'off';", none),
            ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET synchronous_commit = off;", none),
            ("SELECT length('synchronous_commit = off'), synchronous_commit = off FROM t;", none),
            ("/* /* */ SET synchronous_commit = off; */ SELECT 1;", none),
            ("SELECT 1 AS \"SET synchronous_commit = off\";", none),
            ("\\set x 1 -- it's\nSELECT ' SET synchronous_commit = off';", none),
            (
                "SELECT set_config('my.synchronous_commit', 'off', true), set_config('synchronous_commit', NULL, true);",
                none,
            ),
            ("\\set x 1 -- it's\nSET synchronous_commit = off;", off),
            ("SELECT $1, 'a$b'; SET LOCAL synchronous_commit TO off;", off),
            (
                "SELECT set_config(setting_name => 'Synchronous_Commit', new_value => E'o\\x66f', is_local => true);",
                off,
            ),
            ("SELECT set_config(E'synchronous\\137commit', U&'\\006fff', false);", off),
            ("SELECT set_config('synchronous'\n  '_commit', 'off', false);", off),
            ("SET U&\"synchronous\\+00005Fcommit\" = off;", off),
            ("UPDATE t SET a = 1; SET SESSION synchronous_commit = OFF;", off),
            ("DO LANGUAGE plpgsql $x$ BEGIN PERFORM set_config('synchronous_commit', 'off', true); END $x$;", off),
            ("DO 'BEGIN EXECUTE ''SET LOCAL synchronous_commit = off''; END';", off),
            ("DO $$ BEGIN EXECUTE $q$SET LOCAL synchronous_commit = off$q$; END $$;", off),
            ("CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'SET LOCAL synchronous_commit = off';", off),
            ("DO $$ BEGIN EXECUTE 'SET LOCAL synchronous_commit = ' || v; END $$;", unknown),
            ("DO $$ BEGIN EXECUTE format('SET LOCAL %I = off', 'synchronous_commit'); END $$;", unknown),
            ("DO $$ DECLARE s text := 'SET LOCAL synchronous_commit = off'; BEGIN EXECUTE s; END $$;", unknown),
            ("SELECT run_this('SET LOCAL synchronous_commit = off');", unknown),
            ("SELECT set_config('synchronous_commit', 'o' || 'ff', true);", unknown),
            ("SELECT set_config('synchronous_commit', :mode, true);", unknown),
        ] {
            let found = set(text);
            assert_eq!(found.iter().map(|(value, _)| value.as_deref()).collect::<Vec<_>>(), wanted, "{text}");
        }
    }

    #[test]
    fn no_text_breaks_the_scanner() {
        for text in ["'", "\"", "E'\\", "U&'\\00", "$", "$$", "$a$ü", "/*", "/*/", "--", "\\", "e'\\x", "é'", "$ü$é$ü$"]
        {
            assert_eq!(set(text), [], "{text}");
        }
    }

    #[test]
    fn non_constant_setting_values_are_reported_as_unknown() {
        assert_eq!(set("SET synchronous_commit = local;")[0].0.as_deref(), Some("local"));
        assert_eq!(set("SET synchronous_commit = on;")[0].0.as_deref(), Some("on"));
        assert_eq!(set("SET synchronous_commit = :mode;")[0].0, None);
        assert_eq!(set("SET synchronous_commit = 'of' 'f';")[0].0, None);
    }

    #[test]
    fn comments_and_what_sets_nothing_are_left_out() {
        for text in [
            "-- SET synchronous_commit = off;\nSELECT 1;",
            "/* SET\nsynchronous_commit = off; */ SELECT 1;",
            "SHOW synchronous_commit;",
            "RESET synchronous_commit;",
            "SET synchronous_commit TO DEFAULT;",
            "SELECT current_setting('synchronous_commit');",
        ] {
            assert_eq!(set(text), [], "{text}");
        }
        assert_eq!(set("SELECT '--'; SET synchronous_commit = off;").len(), 1);
    }
}

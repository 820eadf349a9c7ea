//! Undoes what the web does to the output of tools: quote marks, fences, table bars and no-break spaces around a line,
//! carriage returns, shell prompts, decimal commas. Seen in mailing lists, issue threads, gists and blogs. Nothing here
//! knows a tool; no reader may depend on columns, since pages collapse blanks.

use super::read::output::TextLine;

/// Lines of a text, without margin, carriage return and the markup a page put around them. Fences are left out, empty
/// lines are kept. A line that was overwritten on a terminal (a carriage return inside) yields several with the same
/// number.
pub fn lines(text: &str) -> Vec<TextLine<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        for piece in line.trim_end_matches('\r').split('\r') {
            found.extend(bare(piece).map(|text| TextLine { number, text, indent: columns_before(piece, text) }));
        }
    }
    if text.is_empty() || text.ends_with('\n') {
        found.pop();
    }
    found
}

/// Columns of a line before its text.
fn columns_before(line: &str, text: &str) -> usize {
    const TAB: usize = 8;
    let before = line.split_once(text).map_or("", |(before, _)| before);
    before.chars().fold(0, |column, c| if c == '\t' { (column / TAB + 1) * TAB } else { column + 1 })
}

/// A line without the markup around it; `None` for a fence.
fn bare(line: &str) -> Option<&str> {
    let mut line = blanks_off(line);
    while let Some(rest) = line.strip_prefix('>') {
        // `>C:\` and `>50` are not quotes: a quote mark is followed by a blank, another mark or nothing.
        if !(rest.is_empty() || rest.starts_with('>') || rest.starts_with(char::is_whitespace)) {
            break;
        }
        line = blanks_off(rest);
    }
    // The bars of a table that was copied as text: `| | 5 seconds per test | |`.
    line = blanks_off(line.trim_matches(|c: char| c == '|' || c.is_whitespace()));
    match ["```", "~~~"].iter().find_map(|fence| line.strip_prefix(fence)) {
        // A single word after a fence is its language; more is text that was put on the fence's line.
        Some(rest) if rest.split_whitespace().nth(1).is_none() => None,
        Some(rest) => Some(blanks_off(rest.trim_end_matches(['`', '~']))),
        None => Some(line),
    }
}

/// Trims blanks of every width, and zero-width marks, at both ends.
fn blanks_off(line: &str) -> &str {
    line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{2060}'))
}

/// The command after a prompt of a shell or of psql; empty if there is none. `$ iostat -x 1`, `postgres@db1:~$
/// pg_test_fsync`, `[root@db1 ~]# zpool iostat`, `bash-4.2$ ls`, `digoal=# select 1`.
pub fn prompt(line: &str) -> Option<&str> {
    const FARTHEST: usize = 120;
    let line = blanks_off(line);
    for (at, sigil) in line.char_indices().take_while(|(at, _)| *at < FARTHEST) {
        if !matches!(sigil, '$' | '#' | '%' | '>' | '❯' | '➜') {
            continue;
        }
        let (before, behind) = (&line[..at], &line[at + sigil.len_utf8()..]);
        let parted = behind.is_empty() || behind.starts_with(char::is_whitespace);
        let behind = blanks_off(behind);
        if is_before_a_sigil(before, sigil, parted) && (behind.is_empty() || is_command(behind)) {
            return Some(behind);
        }
    }
    None
}

/// True if `before` looks like a shell's prompt up to its `$`.
fn is_before_a_sigil(before: &str, sigil: char, parted: bool) -> bool {
    let inner = before.trim_end();
    if inner.is_empty() {
        return parted && sigil != '>';
    }
    let first = inner.trim_start_matches(['[', '(']).split_whitespace().next().unwrap_or_default();
    if let Some((user, host)) = first.split_once('@') {
        let user = user.rsplit([')', ']']).next().unwrap_or_default();
        let host = host.split([':', ']', '/', '~']).next().unwrap_or_default();
        let short = inner.split_whitespace().count() <= 3;
        return short && [user, host].iter().all(|name| !name.is_empty() && name.chars().all(is_plain));
    }
    let is_word = !inner.contains(char::is_whitespace) && inner.len() == before.len();
    let psql = inner.trim_end_matches(['=', '-', '*', '!', '(']);
    if is_word && parted && psql.len() < inner.len() && matches!(sigil, '#' | '>') {
        return !psql.is_empty() && psql.chars().all(is_plain);
    }
    let named = inner.trim_start_matches('-');
    is_word
        && parted
        && named.starts_with(|c: char| c.is_ascii_alphabetic())
        && match sigil {
            '%' => named.chars().all(|c| c.is_ascii_alphabetic()),
            _ => named.chars().all(|c| is_plain(c) || matches!(c, ':' | '/' | '~')),
        }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// True if a text could be a command: its first word is not written like that of a sentence, or like a number.
fn is_command(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let assigns = first.split_once('=').is_some_and(|(name, _)| !name.is_empty());
    let begins = first.starts_with(|c: char| c.is_ascii_lowercase() || matches!(c, '.' | '/' | '~' | '\\' | '"' | '_'));
    let sql = ["SELECT", "SHOW", "SET", "CREATE", "INSERT", "ALTER", "BEGIN;", "EXPLAIN", "CHECKPOINT;"];
    assigns || sql.contains(&first) || (begins && !first.ends_with([':', ',']))
}

pub fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number as tools print it: with a decimal point, or an unambiguous decimal comma, and an optional exponent. `None`
/// for anything else: not-a-number, infinity, marks of thousands, and a comma before three digits, which may be such a
/// mark.
pub fn number(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, decimals) = mantissa.split_once(['.', ',']).unwrap_or((mantissa, "0"));
    let power = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let is_one = [whole, decimals, power].into_iter().all(is_digits) && !decimals.is_empty() && !power.is_empty();
    let of_thousands = decimals.len() == 3 && (1..=3).contains(&whole.len()) && !whole.starts_with('0');
    if !is_one || mantissa.contains(',') && of_thousands {
        return None;
    }
    text.replace(',', ".").parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn texts(text: &str) -> Vec<&str> {
        lines(text).iter().map(|line| line.text).collect()
    }

    #[test]
    fn page_decoration_around_a_line_is_removed_and_numbers_stay() {
        let page = "\u{feff}Hello\r\n```text\r\n> > fsync\u{a0}\n>\n| | open_sync 5 | |\na b\n~~~\n\u{a0} z";
        let found: Vec<(u32, &str)> = lines(page).iter().map(|line| (line.number, line.text)).collect();
        assert_eq!(found, [(1, "Hello"), (3, "fsync"), (4, ""), (5, "open_sync 5"), (6, "a b"), (8, "z")]);
        assert_eq!(texts(""), Vec::<&str>::new());
        assert_eq!(texts("a\n\nb\n"), ["a", "", "b"]);
        assert_eq!(texts("```5 seconds per test```"), ["5 seconds per test"]);
        assert_eq!(texts("10%\r20%\r\n"), ["10%", "20%"]);
        assert_eq!(texts("sda|sdb"), ["sda|sdb"]);
        let indents: Vec<usize> = lines("tank\n  a\n\t  b\n> c\n\n").iter().map(|line| line.indent).collect();
        assert_eq!(indents, [0, 2, 10, 2, 0]);
    }

    #[test]
    fn prompts_of_shells_and_of_psql_give_their_command() {
        for (line, command) in [
            ("$ iostat -x 1", "iostat -x 1"),
            ("# zpool iostat", "zpool iostat"),
            ("postgres@host:~$ pg_test_fsync", "pg_test_fsync"),
            ("root@host:~#zpool iostat", "zpool iostat"),
            ("[root@db1 ~]# LC_ALL=C vmstat 1", "LC_ALL=C vmstat 1"),
            ("me@box:/tmp/x y$ ls", "ls"),
            ("-bash-4.1$ ./pg_test_fsync -s 2", "./pg_test_fsync -s 2"),
            ("digoal=# ", ""),
            ("digoal=# show fsync;", "show fsync;"),
            ("postgres=> SELECT 1", "SELECT 1"),
            ("box% pgbench -c 8", "pgbench -c 8"),
        ] {
            assert_eq!(prompt(line), Some(command), "{line}");
        }
        for line in [
            "# Results",
            "5 seconds per test",
            "100 of 200 tuples (50%) done",
            "It cost 5 $ a month",
            "fsync 100 ops/sec",
            "%util",
            "0.000 SELECT $1",
            "",
            "me@example.org wrote on Monday that > it works",
        ] {
            assert_eq!(prompt(line), None, "{line}");
        }
    }

    #[test]
    fn numbers_read_and_what_may_be_two_numbers_does_not() {
        for (text, value) in [
            ("5", 5.0),
            ("3777,334", 3777.334),
            ("3777.334", 3777.334),
            ("0,334", 0.334),
            ("1,25", 1.25),
            (".5", 0.5),
            ("-1.5e3", -1500.0),
            ("1e-05", 1e-5),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        for text in [
            "",
            "-",
            "nan",
            "inf",
            "1e999",
            "5.",
            "1.2.3",
            "1,234",
            "1,234.5",
            "1.234,5",
            "1'234",
            "1,234,567",
            "1e",
            "0x5",
            "5kB",
            "٣",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_number_reads_back_with_decimal_point_or_comma(value in -1e12f64..1e12) {
            let text = format!("{value:.3}");
            prop_assert_eq!(number(&text), text.parse().ok());
            let comma = number(&text.replace('.', ","));
            prop_assert!(comma.is_none() || comma == text.parse().ok());
        }

        #[test]
        fn no_text_makes_it_panic(text in "[ -~\\n\\r>|`$#%@:=\u{a0}0-9.,'é❯]{0,80}", any in any::<String>()) {
            for text in [text, any] {
                for line in lines(&text) {
                    prop_assert!(text.contains(line.text));
                    let _ = (prompt(line.text), number(line.text));
                }
            }
        }
    }
}

//! Rust files as tokens with their lines: enough of a lexer for the rules of the house, no parser.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The folder of `Cargo.toml`.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// One file.
pub struct Source {
    /// Path below [`root`].
    pub path: PathBuf,
    pub text: String,
    pub tokens: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    /// From 1.
    pub line: usize,
    /// Belongs to an item under `#[cfg(test)]`, or to a file that only such an item leads to.
    pub in_test: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A word: identifier, keyword or number.
    Word(String),
    /// `::`
    Colons,
    /// Any other sign.
    Sign(char),
}

impl Token {
    pub fn is(&self, word: &str) -> bool {
        matches!(&self.kind, Kind::Word(w) if w == word)
    }

    pub fn is_sign(&self, sign: char) -> bool {
        self.kind == Kind::Sign(sign)
    }

    pub fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }
}

impl Source {
    pub fn of(path: impl Into<PathBuf>, text: &str) -> Source {
        let mut tokens = tokens(text);
        mark_items_for_tests(&mut tokens);
        Source { path: path.into(), text: text.to_owned(), tokens }
    }

    /// The tokens that are not for tests.
    pub fn code(&self) -> Vec<&Token> {
        self.tokens.iter().filter(|token| !token.in_test).collect()
    }

    /// String literals and `///` lines that are not for tests, as they are written, with their line.
    pub fn prose(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        lex(&self.text, |line, before, text| found.push((line, before, text)));
        let in_test = |before: usize| self.tokens[..before].last().is_some_and(|token| token.in_test);
        found.into_iter().filter(|(_, before, _)| !in_test(*before)).map(|(line, _, text)| (line, text)).collect()
    }

    /// Where a person would look: `src/plan/mod.rs:12`.
    pub fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }
}

/// Every Rust file of the package, sorted; read once.
pub fn all() -> &'static [Source] {
    static ALL: OnceLock<Vec<Source>> = OnceLock::new();
    ALL.get_or_init(read_all)
}

fn read_all() -> Vec<Source> {
    let mut files = Vec::new();
    for folder in ["src", "tests", "benches"] {
        collect(&root().join(folder), &mut files);
    }
    files.extend(Some(root().join("build.rs")).filter(|path| path.is_file()));
    files.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        Source::of(path.strip_prefix(root()).unwrap(), &text)
    };
    let mut sources: Vec<Source> = files.into_iter().map(read).collect();
    let for_tests = super::reach::only_for_tests(&sources);
    for source in sources.iter_mut().filter(|source| for_tests.contains(&source.path)) {
        source.tokens.iter_mut().for_each(|token| token.in_test = true);
    }
    sources
}

/// Marks `#[cfg(test)]` and the item behind it, to its `;` or closing brace; `#[cfg(any(test, ...))]` as well.
fn mark_items_for_tests(tokens: &mut [Token]) {
    let alone = |t: &[Token]| t[4].is("test") && t[5].is_sign(')');
    let starts = |t: &[Token]| t[0].is_sign('#') && t[2].is("cfg") && (alone(t) || t[4].is("any") && t[6].is("test"));
    let starts: Vec<usize> = tokens.windows(7).enumerate().filter(|(_, t)| starts(t)).map(|(i, _)| i).collect();
    for start in starts {
        let item = tokens[start..].iter().position(|token| token.is_sign(']')).map_or(start, |at| start + at + 1);
        let end = end_of_item(tokens, item);
        tokens[start..end].iter_mut().for_each(|token| token.in_test = true);
    }
}

/// Behind the item that begins at `from`, attributes included.
fn end_of_item(tokens: &[Token], from: usize) -> usize {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate().skip(from) {
        match token.kind {
            Kind::Sign('(' | '[' | '{') => depth += 1,
            Kind::Sign(')' | ']') => depth = depth.saturating_sub(1),
            Kind::Sign('}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return i + 1;
                }
            }
            Kind::Sign(';') if depth == 0 => return i + 1,
            _ => {}
        }
    }
    tokens.len()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The tokens of a Rust text without comments, strings and characters.
pub fn tokens(text: &str) -> Vec<Token> {
    lex(text, |_, _, _| ())
}

/// The tokens; strings and comments of docs go to `prose`, with their line and how many tokens come before them.
fn lex(text: &str, mut prose: impl FnMut(usize, usize, String)) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let (mut found, mut line, mut i) = (Vec::new(), 1, 0);
    while i < chars.len() {
        let (end, kind) = match chars[i] {
            '/' if at(&chars, i + 1) == '/' => (end_of_line(&chars, i), None),
            '/' if at(&chars, i + 1) == '*' => (end_of_block_comment(&chars, i), None),
            '"' => (end_of_string(&chars, i), None),
            '\'' => (end_of_char_or_lifetime(&chars, i), None),
            'r' | 'b' | 'c' if starts_literal(&chars, i) => (end_of_prefixed(&chars, i), None),
            c if is_word(c) => {
                let end = (i..chars.len()).find(|&j| !is_word(chars[j])).unwrap_or(chars.len());
                (end, Some(Kind::Word(chars[i..end].iter().collect())))
            }
            ':' if at(&chars, i + 1) == ':' => (i + 2, Some(Kind::Colons)),
            c if c.is_whitespace() => (i + 1, None),
            c => (i + 1, Some(Kind::Sign(c))),
        };
        found.extend(kind.map(|kind| Token { kind, line, in_test: false }));
        let end = end.min(chars.len());
        if chars[i..end].contains(&'"') || chars[i..end].starts_with(&['/', '/', '/']) {
            prose(line, found.len(), chars[i..end].iter().collect());
        }
        line += chars[i..end].iter().filter(|&&c| c == '\n').count();
        i = end;
    }
    found
}

fn at(chars: &[char], i: usize) -> char {
    chars.get(i).copied().unwrap_or('\0')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn end_of_line(chars: &[char], from: usize) -> usize {
    (from..chars.len()).find(|&i| chars[i] == '\n').unwrap_or(chars.len())
}

/// Block comments nest.
fn end_of_block_comment(chars: &[char], from: usize) -> usize {
    let (mut depth, mut i) = (0, from);
    while i < chars.len() {
        match (chars[i], at(chars, i + 1)) {
            ('/', '*') => (depth, i) = (depth + 1, i + 2),
            ('*', '/') => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            break;
        }
    }
    i
}

fn end_of_string(chars: &[char], open: usize) -> usize {
    let mut i = open + 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

/// `'x'`, `'\n'`, `'\u{1F600}'` are characters; `'a` without a closing quote is a lifetime.
fn end_of_char_or_lifetime(chars: &[char], open: usize) -> usize {
    if at(chars, open + 1) == '\\' {
        let close = (open + 3..chars.len()).find(|&i| chars[i] == '\'');
        return close.map_or(chars.len(), |i| i + 1);
    }
    if at(chars, open + 2) == '\'' { open + 3 } else { open + 1 }
}

/// Whether `r`, `b`, `c` at `i` opens a literal (`r"`, `r#"`, `b"`, `br#"`, `b'`) and is not part of a word.
fn starts_literal(chars: &[char], i: usize) -> bool {
    let prefix = (i..i + 2).take_while(|&j| matches!(at(chars, j), 'r' | 'b' | 'c')).count();
    let after = (i + prefix..).find(|&j| at(chars, j) != '#').unwrap_or(i);
    let hashes = after - i - prefix;
    let raw = chars[i..i + prefix].contains(&'r');
    match at(chars, after) {
        '"' => hashes == 0 || raw,
        '\'' => prefix == 1 && chars[i] == 'b' && hashes == 0,
        _ => false,
    }
}

fn end_of_prefixed(chars: &[char], from: usize) -> usize {
    let mark = (from..chars.len()).find(|&i| !matches!(chars[i], 'r' | 'b' | 'c')).unwrap_or(chars.len());
    if at(chars, mark) == '\'' {
        return end_of_char_or_lifetime(chars, mark);
    }
    if !chars[from..mark].contains(&'r') {
        return end_of_string(chars, mark);
    }
    let open = (mark..chars.len()).find(|&i| chars[i] != '#').unwrap_or(chars.len());
    let hashes = open - mark;
    let closes = |i: usize| chars[i] == '"' && (1..=hashes).all(|k| at(chars, i + k) == '#');
    (open + 1..chars.len()).find(|&i| closes(i)).map_or(chars.len(), |i| i + 1 + hashes)
}

/// Words that mark unfinished work; put together here so that this file does not hold them.
fn marks_of_unfinished_work() -> [String; 3] {
    [["TO", "DO"], ["FIX", "ME"], ["XX", "X"]].map(|halves| halves.concat())
}

#[test]
fn strings_comments_and_characters_are_no_tokens() {
    let text = r##"a "b // \" c" /* d /* e */ f */ g // h
        'i' '\'' '\u{6a}' b'k' b"l" r"m\" r#"n " o"# br#"p"# 'life"##;
    let words: Vec<String> = tokens(text).iter().filter_map(|t| t.word().map(str::to_owned)).collect();
    assert_eq!(words, ["a", "g", "life"]);
}

#[test]
fn prose_is_strings_and_doc_lines_outside_of_tests() {
    let source = Source::of("x.rs", "/// A.\nfn f() { g(\"b c\") } // d \"e\"\n#[cfg(test)] mod t { h(\"i\"); }");
    let found: Vec<String> = source.prose().into_iter().map(|(_, text)| text).collect();
    assert_eq!(found, ["/// A.", "\"b c\"", "// d \"e\""]);
}

#[test]
fn tokens_know_their_line_behind_literals_of_many_lines() {
    let found = tokens("x\n/* 1\n2 */ \"3\n4\" y::z");
    assert_eq!(found.last(), Some(&Token { kind: Kind::Word("z".to_owned()), line: 4, in_test: false }));
    assert_eq!(found[2].kind, Kind::Colons);
}

#[test]
fn words_that_begin_like_a_literal_stay_words() {
    let words: Vec<String> =
        tokens("raw bytes r b c br#x crate").iter().filter_map(|t| t.word().map(str::to_owned)).collect();
    assert_eq!(words, ["raw", "bytes", "r", "b", "c", "br", "x", "crate"]);
}

#[test]
fn what_is_for_tests_is_told_from_what_is_not() {
    let text = "a; #[cfg(test)] mod m { fn t() { b } } c; #[cfg(test)]\n#[x(y)] pub mod d; e; #[cfg(any(test, i))] use f::{g}; h";
    let source = Source::of("x.rs", text);
    let words: Vec<&str> = source.code().iter().filter_map(|token| token.word()).collect();
    assert_eq!(words, ["a", "c", "e", "h"]);
}

#[test]
fn nothing_is_marked_as_unfinished() {
    let marks = marks_of_unfinished_work();
    for source in all() {
        for (number, line) in source.text.lines().enumerate() {
            let mut words = line.split(|c: char| !is_word(c));
            let mark = words.find(|word| marks.iter().any(|mark| mark == word));
            assert!(mark.is_none(), "{}: {mark:?}: finish it, or file an issue", source.at(number + 1));
        }
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for source in all() {
        assert!(
            source.text.starts_with("//! "),
            "{} has no `//!` header: purpose, owner of what, what is absent",
            source.at(1)
        );
    }
}

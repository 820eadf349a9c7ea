//! Documents of JSON inside a text, as flat lists of numbers and strings with their path and line.
//!
//! The web cuts documents off, and a number's text and line count here; so a document is walked token by token and what
//! was whole before the cut is kept. Tools print what no JSON is, `nan`, `-inf` and decimal commas; that costs their
//! value and no other. `serde_json` says whether a document is whole and reads its strings.

use super::output::{Line, Output, Unread};
use super::table;
use crate::foreign::clean as web;
use std::borrow::Cow;

/// A number, string, truth value or null and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leaf<'a, 'p> {
    /// Keys and positions (from 0) from the outermost inwards.
    pub(super) path: &'p [String],
    /// As it stands in the text; of a string, what it means.
    pub(super) text: Cow<'a, str>,
    /// Its value, if it is a number.
    pub(super) number: Option<f64>,
    /// Line in the file.
    pub(super) line: u32,
}

/// A document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Document {
    /// Its first and last line in the file.
    pub(super) lines: (u32, u32),
    /// How many lines of the given ones it takes.
    pub(super) used: usize,
    /// Whether it is whole and right, but for values that are none of JSON.
    whole: bool,
    /// Values that could not be read.
    unread: Vec<Unread>,
    /// How many more of them there are.
    more_unread: usize,
}

impl Document {
    /// Writes the document's lines into `output`, and what of it could not be read.
    pub(super) fn close(self, output: &mut Output) {
        output.lines = self.lines;
        output.unread.extend(self.unread);
        if self.more_unread > 0 {
            table::note(output, format!("{} more values could not be read", self.more_unread));
        }
        if !self.whole {
            table::note(output, "the document is cut off or damaged: what stands before that is read");
        }
    }
}

/// The most that may be nested; tools stay far below it.
const DEEPEST: usize = 64;

/// Walks the document whose first line is the first of these, leaf by leaf; none where no brace opens it.
pub(super) fn document<'a>(lines: &[Line<'a>], mut each: impl FnMut(&Leaf<'a, '_>)) -> Option<Document> {
    let first = lines.first()?;
    if !first.text.starts_with('{') {
        return None;
    }
    let mut walk = Walk::default();
    let mut used = 0;
    for line in lines {
        if used > 0 && web::prompt(line.text).is_some() {
            break;
        }
        if !walk.line(*line, &mut each) {
            break;
        }
        used += 1;
        if walk.open.is_empty() {
            break;
        }
    }
    // A number at the end of the text may be the half of one.
    if let Some((text, _, line)) = walk.held.take() {
        let line = lines[..used].iter().rev().find(|known| known.number == line).copied().unwrap_or(*first);
        walk.unread(line, text, "that does not end where the text does");
    }
    let used = used.max(1);
    let whole = walk.open.is_empty() && is_json(&lines[..used], &walk.strange);
    let last = lines.get(used - 1).map_or(first.number, |line| line.number);
    let Walk { unread, more_unread, .. } = walk;
    Some(Document { lines: (first.number, last), used, whole, unread, more_unread })
}

/// Whether the lines are JSON but for the strange words in them.
fn is_json(lines: &[Line<'_>], strange: &[(usize, usize, usize)]) -> bool {
    let mut text = String::new();
    let mut strange = strange.iter().peekable();
    for (index, line) in lines.iter().enumerate() {
        let mut from = 0;
        while let Some((_, begin, end)) = strange.next_if(|(at, ..)| *at == index) {
            text.push_str(&line.text[from..*begin]);
            text.push_str("null");
            from = *end;
        }
        text.push_str(&line.text[from..]);
        text.push('\n');
    }
    serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok()
}

/// One brace or bracket that is open.
struct Open {
    /// Position in a list; none in an object.
    position: Option<usize>,
    /// Whether a key was read and its value is awaited.
    keyed: bool,
}

#[derive(Default)]
struct Walk<'a> {
    open: Vec<Open>,
    /// The key or position of what is being read, of each that is open.
    path: Vec<String>,
    /// A number at the end of its line with nothing behind it: its text, value and line.
    held: Option<(&'a str, f64, u32)>,
    /// How many lines were walked.
    at: usize,
    /// Words that are none of JSON: index of their line, begin and end in it.
    strange: Vec<(usize, usize, usize)>,
    unread: Vec<Unread>,
    more_unread: usize,
}

impl<'a> Walk<'a> {
    /// Takes the tokens of a line; false when it is none of JSON.
    fn line(&mut self, line: Line<'a>, each: &mut impl FnMut(&Leaf<'a, '_>)) -> bool {
        let mut rest = line.text.trim_start();
        while let Some(c) = rest.chars().next() {
            if matches!(c, ',' | '}' | ']')
                && let Some((text, number, line)) = self.held.take()
            {
                each(&Leaf { path: &self.path, text: text.into(), number: Some(number), line });
            }
            let length = match c {
                _ if self.held.is_some() => 0,
                '{' | '[' => {
                    if self.open.len() >= DEEPEST {
                        return false;
                    }
                    self.taken();
                    let position = (c == '[').then_some(0);
                    self.open.push(Open { position, keyed: false });
                    self.path.push(position.map_or_else(String::new, |position: usize| position.to_string()));
                    1
                }
                '}' | ']' => {
                    self.path.pop();
                    if self.open.pop().is_none() {
                        return false;
                    }
                    1
                }
                ',' | ':' => {
                    self.mark(c);
                    1
                }
                '"' => match string_end(rest) {
                    Some(end) if self.string(&rest[..end], line.number, each) => end,
                    _ => 0,
                },
                _ => self.bare(line, line.text.len() - rest.len(), each),
            };
            if length == 0 {
                return false;
            }
            rest = rest[length..].trim_start();
            if self.open.is_empty() {
                self.at += 1;
                return rest.is_empty() || rest.starts_with(',');
            }
        }
        self.at += 1;
        true
    }

    fn mark(&mut self, c: char) {
        let (Some(top), Some(key)) = (self.open.last_mut(), self.path.last_mut()) else { return };
        if c == ',' {
            if let Some(position) = &mut top.position {
                *position += 1;
                *key = position.to_string();
            }
            top.keyed = false;
        }
    }

    fn string(&mut self, quoted: &str, line: u32, each: &mut impl FnMut(&Leaf<'a, '_>)) -> bool {
        let Ok(text) = serde_json::from_str::<String>(quoted) else { return false };
        match (self.open.last_mut(), self.path.last_mut()) {
            (Some(top), Some(key)) if top.position.is_none() && !top.keyed => (*key, top.keyed) = (text, true),
            _ => {
                each(&Leaf { path: &self.path, text: text.into(), number: None, line });
                self.taken();
            }
        }
        true
    }

    /// The key has its value.
    fn taken(&mut self) {
        if let Some(top) = self.open.last_mut() {
            top.keyed = false;
        }
    }

    /// Takes the bare word at `begin` of a line, and says how long it is; 0 when it is no value.
    fn bare(&mut self, line: Line<'a>, begin: usize, each: &mut impl FnMut(&Leaf<'a, '_>)) -> usize {
        let rest = &line.text[begin..];
        let ends = |c: char| ",]}".contains(c) || c.is_whitespace();
        let mut end = rest.find(ends).unwrap_or(rest.len());
        let in_object = self.open.last().is_some_and(|top| top.position.is_none());
        if in_object && !self.open.last().is_some_and(|top| top.keyed) {
            return 0;
        }
        // In an object a name stands behind a comma: a digit there makes it a decimal comma.
        let comma =
            in_object && rest[end..].starts_with(',') && rest[end + 1..].starts_with(|c: char| c.is_ascii_digit());
        if comma {
            end += 1 + rest[end + 1..].find(ends).unwrap_or(rest.len() - end - 1);
        }
        let word = &rest[..end];
        // No tool prints lists of numbers; one may be of decimal commas in a damaged text, or a third piece follow.
        let goes_on = rest[end..].starts_with(',') && rest[end + 1..].starts_with(|c: char| c.is_ascii_digit());
        let has_name = in_object && !(comma && goes_on);
        let number = match comma {
            _ if !has_name => None,
            true => web::number(word),
            false => serde_json::from_str::<f64>(word).ok().filter(|value| value.is_finite()),
        };
        let is_no_number =
            matches!(word.trim_start_matches(['-', '+']).to_ascii_lowercase().as_str(), "nan" | "inf" | "infinity");
        if comma || is_no_number {
            self.strange.push((self.at, begin, begin + end));
        }
        match number {
            Some(number) if end == rest.len() => self.held = Some((word, number, line.number)),
            Some(_) => each(&Leaf { path: &self.path, text: word.into(), number, line: line.number }),
            None if matches!(word, "true" | "false" | "null") => {
                each(&Leaf { path: &self.path, text: word.into(), number, line: line.number });
            }
            None if comma || is_no_number => self.unread(line, word, "and no nan or inf"),
            None if !in_object && word.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                self.unread(line, word, "with a name of its own");
            }
            None => return 0,
        }
        self.taken();
        end
    }

    fn unread(&mut self, line: Line<'_>, word: &str, why: &str) {
        const MOST: usize = 1000;
        if self.unread.len() >= MOST {
            self.more_unread += 1;
            return;
        }
        let word: String = word.chars().take(40).collect();
        let wanted = format!("a number for {} {why}, not `{word}`", self.path.join("."));
        self.unread.push(table::unread(line, wanted));
    }
}

/// The end of the string that begins here, its quotes counted.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::clean as web;
    use proptest::prelude::{any, proptest};

    fn paths(text: &str) -> (Vec<String>, bool, usize) {
        let (told, found) = walk(text);
        (told, found.whole, found.used)
    }

    fn walk(text: &str) -> (Vec<String>, Document) {
        let mut told = Vec::new();
        let found = document(&web::lines(text), |leaf| {
            told.push(format!("{}={}@{}", leaf.path.join("."), leaf.text, leaf.line));
        });
        (told, found.unwrap())
    }

    #[test]
    fn numbers_keep_path_text_and_line() {
        let text = "{\"a\": {\n \"b\" : [{\"d\": 1.50}, \"x\\\"y\"],\n \"c\": null}}\nprose {";
        assert_eq!(paths(text), (vec!["a.b.0.d=1.50@2".into(), "a.b.1=x\"y@2".into(), "a.c=null@3".into()], true, 3));
    }

    #[test]
    fn a_document_that_is_cut_off_keeps_what_was_whole() {
        let (found, whole, used) = paths("{\"a\": 1,\n\"b\": 2,\n\"c");
        assert_eq!((found, whole, used), (vec!["a=1@1".to_owned(), "b=2@2".to_owned()], false, 2));
        // The last number may have gone on.
        for cut in ["{\"a\": 2,\"b\": 1\n$ ls", "{\"a\": 2,\"b\": 1", "{\"a\": 2,\"b\": 1\nprose"] {
            let (found, document) = walk(cut);
            assert_eq!((found, document.whole), (vec!["a=2@1".to_owned()], false), "{cut}");
            assert_eq!((document.unread.len(), document.unread[0].line), (1, 1), "{cut}");
        }
        assert_eq!(paths("{\"a\": 1\n}").0, ["a=1@1"]);
    }

    #[test]
    fn values_that_are_no_numbers_cost_no_other_value() {
        for word in ["nan", "-nan", "inf", "-inf", "NaN", "-Infinity"] {
            let (found, document) =
                walk(&format!("{{\"a\": {{\n\"b\": {word},\n\"c\": [{word}], \"e\": 5,\n\"d\": {word}\n}}}}"));
            assert_eq!((found, document.whole), (vec!["a.e=5@3".to_owned()], true), "{word}");
            let told: Vec<(u32, &str)> = document.unread.iter().map(|it| (it.line, it.wanted.as_str())).collect();
            let wanted = |path: &str| format!("a number for {path} and no nan or inf, not `{word}`");
            assert_eq!(told, [(2, &*wanted("a.b")), (3, &*wanted("a.c.0")), (4, &*wanted("a.d"))]);
        }
    }

    #[test]
    fn a_decimal_comma_is_not_the_end_of_a_number() {
        let (found, document) = walk("{\"user\": 0,50, \"idle\": 99,50,\"list\": [1,5], \"last\": 1,25}");
        assert_eq!(found, ["user=0,50@1", "idle=99,50@1", "last=1,25@1"]);
        let told: Vec<&str> = document.unread.iter().map(|it| it.wanted.as_str()).collect();
        let wanted = [
            "a number for list.0 with a name of its own, not `1`",
            "a number for list.1 with a name of its own, not `5`",
        ];
        assert_eq!((document.whole, told), (true, wanted.to_vec()));
        assert_eq!(walk("{\"a\": 0,50,1, \"b\": 2}").0, Vec::<String>::new());
        // What has no name is no value.
        assert_eq!(paths("{\"user\": 1 5, \"idle\": 2}").0, ["user=1@1"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\{[\\[\\]{}\",:0-9a-z.\\\\ \\n-]{0,60}", any in any::<String>()) {
            for text in [text, format!("{{{any}")] {
                drop(document(&web::lines(&text), |_| ()));
            }
        }
    }
}

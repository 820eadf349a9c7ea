//! Documents of JSON inside a text, as flat lists of numbers and strings with their path and line.
//!
//! The web cuts documents off, and a number's text and line count here; so a document is walked token by token and what
//! was whole before the cut is kept. `serde_json` says whether a document is whole and reads its strings.

use super::output::Line;
use super::web;

/// A number, string, truth value or null and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leaf<'a> {
    /// Keys and positions (from 0) from the outermost inwards.
    pub(super) path: Vec<String>,
    /// As it stands in the text; of a string, what it means.
    pub(super) text: std::borrow::Cow<'a, str>,
    /// Its value, if it is a number.
    pub(super) number: Option<f64>,
    /// Line in the file.
    pub(super) line: u32,
}

/// A document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Document<'a> {
    /// What is in it, in order.
    pub(super) leaves: Vec<Leaf<'a>>,
    /// Its first and last line in the file.
    pub(super) lines: (u32, u32),
    /// How many lines of the given ones it takes.
    pub(super) used: usize,
    /// Whether it is whole and right.
    pub(super) whole: bool,
}

/// The most that may be nested; tools stay far below it.
const DEEPEST: usize = 64;

/// The document whose first line is the first of these; none where no brace opens it.
pub(super) fn document<'a>(lines: &[Line<'a>]) -> Option<Document<'a>> {
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
        if !walk.line(*line) {
            break;
        }
        used += 1;
        if walk.open.is_empty() {
            break;
        }
    }
    let used = used.max(1);
    let text = lines[..used].iter().map(|line| line.text).collect::<Vec<_>>().join("\n");
    let whole = walk.open.is_empty() && serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
    let last = lines.get(used - 1).map_or(first.number, |line| line.number);
    Some(Document { leaves: walk.leaves, lines: (first.number, last), used, whole })
}

/// One brace or bracket that is open.
struct Open {
    /// The key or position of what is being read.
    key: String,
    /// Position in a list; none in an object.
    position: Option<usize>,
    /// Whether a key was read and its value is awaited.
    keyed: bool,
}

#[derive(Default)]
struct Walk<'a> {
    open: Vec<Open>,
    leaves: Vec<Leaf<'a>>,
}

impl<'a> Walk<'a> {
    /// Takes the tokens of a line; false when it is none of JSON.
    fn line(&mut self, line: Line<'a>) -> bool {
        let mut rest = line.text.trim_start();
        while let Some(c) = rest.chars().next() {
            let length = match c {
                '{' | '[' => {
                    if self.open.len() >= DEEPEST {
                        return false;
                    }
                    self.open.push(Open { key: String::new(), position: (c == '[').then_some(0), keyed: false });
                    1
                }
                '}' | ']' => {
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
                    Some(end) if self.string(&rest[..end], line.number) => end,
                    _ => 0,
                },
                _ => self.bare(rest, line.number),
            };
            if length == 0 {
                return false;
            }
            rest = rest[length..].trim_start();
            if self.open.is_empty() {
                return rest.is_empty() || rest.starts_with(',');
            }
        }
        true
    }

    fn mark(&mut self, c: char) {
        let Some(top) = self.open.last_mut() else { return };
        if c == ',' {
            top.position = top.position.map(|position| position + 1);
            top.keyed = false;
        }
    }

    fn string(&mut self, quoted: &'a str, line: u32) -> bool {
        let Ok(text) = serde_json::from_str::<String>(quoted) else { return false };
        match self.open.last_mut() {
            Some(top) if top.position.is_none() && !top.keyed => (top.key, top.keyed) = (text, true),
            _ => self.leaf(text.into(), None, line),
        }
        true
    }

    fn bare(&mut self, rest: &'a str, line: u32) -> usize {
        let end = rest.find(|c: char| ",]}".contains(c) || c.is_whitespace());
        let word = &rest[..end.unwrap_or(rest.len())];
        let number = serde_json::from_str::<f64>(word).ok().filter(|value| value.is_finite());
        if number.is_none() && !matches!(word, "true" | "false" | "null") {
            return 0;
        }
        // fio may print a last item without a comma at the end of its line; a number cut off in its middle looks the
        // same, and is still a number of the text.
        self.leaf(word.into(), number, line);
        word.len()
    }

    fn leaf(&mut self, text: std::borrow::Cow<'a, str>, number: Option<f64>, line: u32) {
        let of = |open: &Open| open.position.map_or_else(|| open.key.clone(), |position| position.to_string());
        let path = self.open.iter().map(of).collect();
        self.leaves.push(Leaf { path, text, number, line });
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
    use super::super::web;
    use super::*;
    use proptest::prelude::{any, proptest};

    fn paths(text: &str) -> (Vec<String>, bool, usize) {
        let lines = web::lines(text);
        let found = document(&lines).unwrap();
        let told = found.leaves.iter().map(|leaf| format!("{}={}@{}", leaf.path.join("."), leaf.text, leaf.line));
        (told.collect(), found.whole, found.used)
    }

    #[test]
    fn numbers_keep_path_text_and_line() {
        let text = "{\"a\": {\n \"b\" : [1.50, \"x\\\"y\"],\n \"c\": null}}\nprose {";
        assert_eq!(paths(text), (vec!["a.b.0=1.50@2".into(), "a.b.1=x\"y@2".into(), "a.c=null@3".into()], true, 3));
    }

    #[test]
    fn a_document_that_is_cut_off_keeps_what_was_whole() {
        let (found, whole, used) = paths("{\"a\": 1,\n\"b\": 2,\n\"c");
        assert_eq!((found, whole, used), (vec!["a=1@1".to_owned(), "b=2@2".to_owned()], false, 2));
        let (found, whole, _) = paths("{\"a\": 1\n$ ls");
        assert_eq!((found.len(), whole), (1, false));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\{[\\[\\]{}\",:0-9a-z.\\\\ \\n-]{0,60}", any in any::<String>()) {
            for text in [text, format!("{{{any}")] {
                drop(document(&web::lines(&text)));
            }
        }
    }
}

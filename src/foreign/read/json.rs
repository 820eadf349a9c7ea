//! JSON documents inside a text, as flat lists of values with path and line. `serde_json` decides where a document ends
//! and if it is complete; an incomplete one is not read at all.

use super::output::{Output, TextLine};
use super::table;
use serde::de::IgnoredAny;

/// A scalar value and its location.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leaf<'p> {
    /// Keys and positions (from 0), outermost first.
    pub(super) path: &'p [String],
    /// As printed; unescaped for a string.
    pub(super) text: String,
    pub(super) number: Option<f64>,
    pub(super) line: u32,
}

/// Walks the leaves of the document that starts on the first of these lines, and returns how many lines it spans; the
/// lines go into `output`. A damaged document is not walked; its error is listed.
pub fn document(lines: &[TextLine<'_>], output: &mut Output, mut each: impl FnMut(&mut Output, &Leaf<'_>)) -> usize {
    let text: String = lines.iter().flat_map(|line| [line.text, "\n"]).collect();
    let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<IgnoredAny>();
    let damage = documents.next().and_then(Result::err);
    let (whole, used) = match &damage {
        Some(error) => ("", error.line().clamp(1, lines.len())),
        None => {
            let whole = &text[..documents.byte_offset()];
            (whole, whole.matches('\n').count() + 1)
        }
    };
    table::extend(output, lines[0].number);
    table::extend(output, lines[used - 1].number);
    if let Some(error) = damage {
        output.unread.push(table::unread(lines[used - 1], format!("a complete JSON document: {error}")));
    }
    walk(whole, lines, |leaf| each(output, leaf));
    used
}

/// Walks a document known to be valid.
fn walk(text: &str, lines: &[TextLine<'_>], mut each: impl FnMut(&Leaf<'_>)) {
    let mut path: Vec<String> = Vec::new();
    // For each part of the path, its position if it is in a list.
    let mut positions: Vec<Option<usize>> = Vec::new();
    let (mut at, mut line) = (0, 0);
    while let Some(c) = text[at..].chars().next() {
        let mut end = at + c.len_utf8();
        match c {
            '\n' => line += 1,
            '{' | '[' => {
                positions.push((c == '[').then_some(0));
                path.push("0".to_owned());
            }
            '}' | ']' => drop((positions.pop(), path.pop())),
            ',' => {
                if let (Some(Some(position)), Some(last)) = (positions.last_mut(), path.last_mut()) {
                    *position += 1;
                    *last = position.to_string();
                }
            }
            _ if c.is_whitespace() || c == ':' => {}
            _ => {
                end = at + token(&text[at..]);
                let word = &text[at..end];
                let string = serde_json::from_str::<String>(word).ok();
                let is_key = string.is_some() && text[end..].trim_start().starts_with(':');
                match (is_key, string, path.last_mut()) {
                    (true, Some(key), Some(last)) => *last = key,
                    (_, string, _) => {
                        let number =
                            if string.is_none() { word.parse().ok().filter(|it: &f64| it.is_finite()) } else { None };
                        let text = string.unwrap_or_else(|| word.to_owned());
                        each(&Leaf { path: &path, text, number, line: lines[line].number });
                    }
                }
            }
        }
        at = end;
    }
}

/// Length of the string, number or word at the start of a text.
fn token(text: &str) -> usize {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    if let Some(Ok(_)) = values.next() { values.byte_offset() } else { text.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::clean;
    use proptest::prelude::{any, proptest};

    fn paths(text: &str) -> (Vec<String>, Output, usize) {
        let (mut leaves, mut output) = (Vec::new(), table::output("", 1));
        let used = document(&clean::lines(text), &mut output, |_, leaf| {
            leaves.push(format!("{}={}@{}", leaf.path.join("."), leaf.text, leaf.line));
        });
        (leaves, output, used)
    }

    #[test]
    fn numbers_keep_path_text_and_line() {
        let text = "{\"a\": {\n \"b\" : [{\"d\": 1.50}, \"x\\\"y\", [7]],\n \"c\": null}}\nprose {";
        let (leaves, output, used) = paths(text);
        assert_eq!(leaves, ["a.b.0.d=1.50@2", "a.b.1=x\"y@2", "a.b.2.0=7@2", "a.c=null@3"]);
        assert_eq!((used, output.lines, output.unread.len()), (3, (1, 3), 0));
    }

    #[test]
    fn a_damaged_document_is_not_read_and_that_is_said() {
        for text in ["{\"a\": 1,\n\"b\": 2,\n\"c", "{\"a\": nan}", "{\"a\": 0,50}", "{\"a\": 1\n$ ls"] {
            let (leaves, output, _) = paths(text);
            assert!(
                leaves.is_empty() && output.unread[0].wanted.contains("a complete JSON document"),
                "{text}: {output:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\{[\\[\\]{}\",:0-9a-z.\\\\ \\n-]{0,60}", any in any::<String>()) {
            for text in [text, format!("{{{any}")] {
                drop(paths(&text));
            }
        }
    }
}

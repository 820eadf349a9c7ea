//! The TOML text as a tree in which every key and value has its span.
//!
//! Converts the `toml` crate's tables to ours: in the order of the document, with integers and fractions parsed. Absent
//! on purpose: the meaning of any key.

use super::limits::{Key, MAX_DEPTH, MAX_ITEMS, MAX_KEY_PARTS, MAX_KEYS, MAX_TEXT, Span};
use super::problem::{Problem, Problems};
use std::fmt::Display;
use toml::de::{DeTable, DeValue};

/// A value with its span.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Span of the value; for a table with a header, of the header.
    pub span: Span,
    pub value: Toml,
}

/// A key of a table with its value.
pub(super) type Pair = (Key, Node);

/// A value of the plan's text.
#[derive(Debug, Clone)]
pub(super) enum Toml {
    Text(String),
    Integer(i64),
    /// A finite number with a fraction or an exponent.
    Number(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A date or time, which no plan contains.
    Moment,
    List(Vec<Node>),
    /// A table, in the order of the document.
    Table(Vec<Pair>),
}

impl Node {
    /// The kind of value, for messages.
    pub fn noun(&self) -> &'static str {
        match self.value {
            Toml::Text(_) => "text",
            Toml::Integer(_) => "a whole number",
            Toml::Number(_) => "a number with a fraction",
            Toml::Boolean(_) => "true or false",
            Toml::Moment => "a date or time",
            Toml::List(_) => "a list",
            Toml::Table(_) => "a table",
        }
    }

    /// The problem of a value of the wrong kind.
    pub fn must_be(&self, what: impl Display, wanted: &str) -> Problem {
        Problem::at(&self.span, format!("{what} must be {wanted}, found {}", self.noun()))
    }

    /// The pairs of a table; for anything else, adds a problem that says what to write.
    pub fn table(&self, what: impl Display, help: &str, problems: &mut Problems) -> Option<&[Pair]> {
        let Toml::Table(pairs) = &self.value else {
            problems.add(self.must_be(what, "a table").help(help));
            return None;
        };
        Some(pairs)
    }

    /// The items of a list, or the value itself.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Toml::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    /// The values of an axis: the items of a list. Where a value may be a list itself, only those of a list of lists.
    pub fn axis_items(&self, is_scalar: bool) -> &[Node] {
        let is_nested = self.items().iter().any(|item| matches!(item.value, Toml::List(_)));
        if is_scalar || is_nested { self.items() } else { std::slice::from_ref(self) }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Toml::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The pair with this key.
pub(super) fn get<'t>(pairs: &'t [Pair], key: &str) -> Option<&'t Pair> {
    pairs.iter().find(|(k, _)| k.text == key)
}

/// Parses the text; `None` if there are syntax errors, the first of which is added to `problems`: others may only follow from
/// it.
pub(super) fn parse(text: &str, problems: &mut Problems) -> Option<Vec<Pair>> {
    if longest_key(text) > MAX_KEY_PARTS {
        problems.add(Problem::at(&(0..0), format!("a key has more than {MAX_KEY_PARTS} parts; this is not a plan")));
        return None;
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if let Some(first) = errors.iter().min_by_key(|error| error.span().map(|span| span.start)) {
        let more = if first.message().contains("duplicate key") {
            Some("it is defined above: rename one, or merge the two".to_owned())
        } else {
            (errors.len() > 1)
                .then(|| "what is missing may be on the line before; later errors follow from it".to_owned())
        };
        let problem = Problem::at(&first.span().unwrap_or(0..0), first.message()).label("invalid TOML");
        problems.add(problem.help_if(more));
        return None;
    }
    let before = problems.len();
    let pairs = convert_table(table.get_ref(), 0..0, 0, problems);
    (problems.len() == before).then_some(pairs)
}

/// Upper bound of the parts of any dotted key: a key with tens of thousands would make nested tables that overflow the
/// stack when walked. A scan, not a parse: it may also count dots in a multi-line string.
fn longest_key(text: &str) -> usize {
    let (mut longest, mut parts, mut quote, mut comment) = (0, 1, None, false);
    for c in text.chars() {
        match (c, quote) {
            ('\n', _) => (parts, quote, comment) = (1, None, false),
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) if !comment => quote = Some(c),
            ('#', None) => comment = true,
            ('=' | ',' | '{' | '[', None) => parts = 1,
            ('.', None) if !comment => parts += 1,
            _ => {}
        }
        longest = longest.max(parts);
    }
    longest
}

/// True, with a problem, if `count` exceeds the limit.
fn exceeds(limit: usize, count: usize, what: &str, span: &Span, problems: &mut Problems) -> bool {
    if count > limit {
        problems.add(Problem::at(span, format!("{count} {what}, the limit is {limit}")));
    }
    count > limit
}

fn convert_table(table: &DeTable<'_>, span: Span, depth: usize, problems: &mut Problems) -> Vec<Pair> {
    if exceeds(MAX_KEYS, table.len(), "keys in one table", &span, problems) {
        return Vec::new();
    }
    let pairs = table.iter().map(|(key, value)| {
        let key = Key { text: key.get_ref().to_string(), span: key.span() };
        (key, convert(value.get_ref(), value.span(), depth + 1, problems))
    });
    let mut pairs: Vec<Pair> = pairs.collect();
    pairs.sort_by_key(|(key, _)| key.span.start);
    pairs
}

fn convert(value: &DeValue<'_>, span: Span, depth: usize, problems: &mut Problems) -> Node {
    if depth > MAX_DEPTH {
        problems.add(Problem::at(&span, format!("nested more than {MAX_DEPTH} levels deep; this is not a plan")));
        return Node { span, value: Toml::Moment };
    }
    let value = match value {
        DeValue::String(text) if exceeds(MAX_TEXT, text.len(), "bytes in one text", &span, problems) => Toml::Moment,
        DeValue::String(text) => Toml::Text(text.to_string()),
        DeValue::Boolean(flag) => Toml::Boolean(*flag),
        DeValue::Datetime(_) => Toml::Moment,
        DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) => Toml::Integer(number),
            Err(_) => {
                problems.add(Problem::at(&span, format!("`{digits}` does not fit into 64 bits")));
                Toml::Moment
            }
        },
        DeValue::Float(digits) => match digits.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Toml::Number(number),
            _ => {
                problems.add(Problem::at(&span, format!("`{digits}` is not a finite number")));
                Toml::Moment
            }
        },
        DeValue::Array(items) if exceeds(MAX_ITEMS, items.len(), "values in one list", &span, problems) => Toml::Moment,
        DeValue::Array(items) => {
            Toml::List(items.iter().map(|item| convert(item.get_ref(), item.span(), depth + 1, problems)).collect())
        }
        DeValue::Table(table) => Toml::Table(convert_table(table, span.clone(), depth, problems)),
    };
    Node { span, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_the_order_of_the_document() {
        let mut problems = Problems::default();
        let pairs = parse("z = 1\na = 2\n[m]\n[b]\n", &mut problems).unwrap();
        assert_eq!(pairs.iter().map(|(key, _)| key.text.as_str()).collect::<Vec<_>>(), ["z", "a", "m", "b"]);
    }

    #[test]
    fn the_first_of_several_syntax_errors_is_shown() {
        let (text, mut problems) = ("a = { b = 1\nc = 2\n[d]\ne = 3\n", Problems::default());
        assert!(parse(text, &mut problems).is_none() && problems.len() == 1, "{problems:?}");
        let shown = problems.render(text, "x", super::super::Paint::Plain);
        assert!(shown.contains("x:2:1") && shown.contains("may be on the line before"), "{shown}");
    }

    #[test]
    fn endless_keys_are_refused_and_do_not_overflow_the_stack() {
        for text in [format!("{}b = 1", "a.".repeat(200_000)), format!("x = {{ {}b = 1 }}", "a.".repeat(200_000))] {
            assert!(parse(&text, &mut Problems::default()).is_none());
        }
        assert!(parse(&format!("x = {}", "[".repeat(200_000)), &mut Problems::default()).is_none());
        let quoted = format!("{}b = 1", "\"a\".".repeat(200_000));
        assert!(parse(&quoted, &mut Problems::default()).is_none());
    }

    #[test]
    fn oversized_plans_are_refused_with_the_limit_before_allocation() {
        let (list, table) = ("1,".repeat(100_000), (0..2000).map(|n| format!("k{n}=1\n")).collect::<String>());
        let message = |text: &str| {
            let mut problems = Problems::default();
            assert!(parse(text, &mut problems).is_none() && problems.len() == 1, "{problems:?}");
            problems.render("", "x", super::super::Paint::Plain)
        };
        assert!(message(&format!("a = [{list}]")).contains("100000 values in one list, the limit is 10000"));
        assert!(message(&format!("[s]\n{table}")).contains("2000 keys in one table, the limit is 1000"));
        assert!(
            message(&format!("a = '{}'", "x".repeat(100_000))).contains("100000 bytes in one text, the limit is 65536")
        );
        assert!(message(&"[[exclude]]\na = 1\n".repeat(10_001)).contains("10001 values in one list"));
    }

    #[test]
    fn numbers_out_of_range_are_refused_where_they_stand() {
        for text in ["a = 99999999999999999999", "a = inf", "a = nan", "a = 1e999"] {
            let mut problems = Problems::default();
            assert!(parse(text, &mut problems).is_none(), "{text}");
            assert_eq!(problems.len(), 1);
        }
    }
}

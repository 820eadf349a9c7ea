//! Checks one written value against the kind of its option.
//!
//! Owns the values that each [`OptionKind`] accepts, their description for users, and equality of written values
//! (`1GiB` and `1024MiB`). Absent on purpose: the options that exist.

use super::limits::Span;
use super::problem::{Problem, suggestion};
use super::tree::{Node, Toml};
use crate::record::options::{LEAVE, OptionKind, OptionValue};
use crate::units::{Bytes, Micros};

/// One value of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    /// The value as stored in the case.
    pub value: OptionValue,
    /// Key for comparing values: unit-free for kinds with units.
    pub identity: String,
    /// Span of the value in the plan.
    pub span: Span,
}

impl Choice {
    pub fn text(node: &Node, text: String) -> Choice {
        Choice { value: OptionValue::Text(text.clone()), identity: text, span: node.span.clone() }
    }
}

/// The kind in words, to follow "wants".
pub fn describe(kind: OptionKind) -> String {
    match kind {
        OptionKind::Integer { min } => format!("a whole number of at least {min}"),
        OptionKind::Number => "a number greater than 0".to_owned(),
        OptionKind::Boolean => "true or false".to_owned(),
        OptionKind::Text | OptionKind::Sql => "text".to_owned(),
        OptionKind::Path => "an absolute path".to_owned(),
        OptionKind::OneOf(words) => words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or "),
        OptionKind::SqlOrList => "a string or a list of strings".to_owned(),
        OptionKind::TextList => "a list of strings".to_owned(),
        OptionKind::Size => "a size with its unit, such as \"6GiB\"".to_owned(),
        OptionKind::Span => "a time span with its unit, such as \"60s\"".to_owned(),
        OptionKind::IntegerOrShare => {
            "a whole number of at least 1, or a share of memory such as \"50% of RAM\"".to_owned()
        }
        OptionKind::Scalar => "text, a number, true or false".to_owned(),
        OptionKind::OrDefault(kind) => format!("{}, or \"{LEAVE}\"", describe(*kind)),
        OptionKind::Properties => "a table of names and values".to_owned(),
        OptionKind::Table(specs) => {
            let keys: Vec<String> = specs.iter().map(|spec| format!("`{}`", spec.key)).collect();
            format!("a table of {}", keys.join(", "))
        }
    }
}

/// True if a list of values of this kind can be an axis: kinds that are lists themselves cannot.
pub(super) fn is_scalar(kind: OptionKind) -> bool {
    match kind {
        OptionKind::OrDefault(kind) => is_scalar(*kind),
        kind => !matches!(kind, OptionKind::SqlOrList | OptionKind::TextList),
    }
}

/// Reads one value of an option of `kind`.
pub(super) fn read(kind: OptionKind, node: &Node) -> Result<Choice, Problem> {
    let value = match (kind, &node.value) {
        (OptionKind::OrDefault(_), Toml::Text(text)) if text == LEAVE => OptionValue::Text(LEAVE.to_owned()),
        (OptionKind::OrDefault(kind), _) => return read(*kind, node),
        (OptionKind::Size | OptionKind::Span, _) => return read_with_unit(kind, node),
        (OptionKind::Integer { .. } | OptionKind::IntegerOrShare, Toml::Integer(n)) => whole(kind, *n, node)?,
        (OptionKind::Number, Toml::Integer(n)) if *n > 0 => OptionValue::Integer(*n),
        (OptionKind::Number, Toml::Number(n)) if *n > 0.0 => OptionValue::Number(*n),
        (OptionKind::Number, Toml::Integer(_) | Toml::Number(_)) => {
            return Err(Problem::at(&node.span, "must be greater than 0"));
        }
        (OptionKind::Boolean | OptionKind::Scalar, Toml::Boolean(flag)) => OptionValue::Boolean(*flag),
        (OptionKind::Scalar, Toml::Integer(n)) => OptionValue::Integer(*n),
        (OptionKind::Scalar, Toml::Number(n)) => OptionValue::Number(*n),
        (OptionKind::Text | OptionKind::Scalar, Toml::Text(_)) => OptionValue::Text(proper_text(node)?),
        (OptionKind::Sql | OptionKind::SqlOrList, Toml::Text(_)) => OptionValue::Text(sql(node)?),
        (OptionKind::Path, Toml::Text(_)) => OptionValue::Text(absolute_path(node)?),
        (OptionKind::OneOf(words), Toml::Text(text)) if words.contains(&text.as_str()) => {
            OptionValue::Text(text.clone())
        }
        (OptionKind::SqlOrList | OptionKind::TextList, Toml::List(items)) => text_list(kind, node, items)?,
        (OptionKind::IntegerOrShare, Toml::Text(text)) => {
            OptionValue::Text(share_of_memory(text).ok_or_else(|| refuse(kind, node))?)
        }
        _ => return Err(refuse(kind, node)),
    };
    let identity = value.plain();
    Ok(Choice { value, identity, span: node.span.clone() })
}

/// Names what was wanted and what was found, and the right spelling if the intent is plain.
fn refuse(kind: OptionKind, node: &Node) -> Problem {
    let found = match (kind, &node.value) {
        (OptionKind::OneOf(_) | OptionKind::IntegerOrShare, Toml::Text(text)) => format!("\"{text}\""),
        _ => node.noun().to_owned(),
    };
    let refusal = Problem::at(&node.span, format!("must be {}, found {found}", describe(kind)));
    match (kind, &node.value) {
        (OptionKind::Boolean, Toml::Text(text)) if matches!(text.as_str(), "true" | "false") => {
            refusal.help(format!("write it without quotes: {text}"))
        }
        (OptionKind::Integer { .. } | OptionKind::IntegerOrShare | OptionKind::Number, Toml::Text(text))
            if text.parse::<u32>().is_ok() =>
        {
            refusal.help(format!("write it without quotes: {text}"))
        }
        (OptionKind::OneOf(words), Toml::Text(text)) => refusal.help(suggestion(text, words.iter().copied())),
        (OptionKind::TextList, Toml::Text(text)) => refusal.help(as_list(text)),
        (OptionKind::Size, Toml::Integer(_)) => {
            refusal.help("add a unit to the number: MiB, GiB or TiB (MB, GB, TB and M, G, T mean the same)")
        }
        (OptionKind::Span, Toml::Integer(n)) if *n > 0 => {
            refusal.help(format!("add a unit to the number: \"{n}ms\", \"{n}s\" or \"{n}min\""))
        }
        _ => refusal,
    }
}

fn read_with_unit(kind: OptionKind, node: &Node) -> Result<Choice, Problem> {
    let Some(text) = node.text() else { return Err(refuse(kind, node)) };
    let identity = match kind {
        OptionKind::Size if Bytes::parse(text) == Ok(Bytes(0)) => {
            return Err(Problem::at(&node.span, "must be greater than 0"));
        }
        OptionKind::Size => Bytes::parse(text).map(|Bytes(bytes)| format!("bytes:{bytes}")),
        _ => Micros::parse(text).map(|Micros(us)| format!("us:{us}")),
    };
    let identity =
        identity.map_err(|message| Problem::at(&node.span, format!("must be {}: {message}", describe(kind))))?;
    Ok(Choice { value: OptionValue::Text(text.trim().to_owned()), identity, span: node.span.clone() })
}

fn whole(kind: OptionKind, n: i64, node: &Node) -> Result<OptionValue, Problem> {
    let least = if let OptionKind::Integer { min } = kind { min } else { 1 };
    if n < least {
        return Err(Problem::at(&node.span, format!("must be at least {least}, found {n}")));
    }
    Ok(OptionValue::Integer(n))
}

/// Keys by which a scalar of unknown kind is compared, in `[[exclude]]` and `baseline`.
pub(super) fn identities(node: &Node) -> Option<Vec<String>> {
    let mut all = vec![setting(node)?];
    match &node.value {
        Toml::Text(text) => {
            all.extend(Bytes::parse(text).ok().map(|bytes| format!("bytes:{}", bytes.0)));
            all.extend(Micros::parse(text).ok().map(|span| format!("us:{}", span.0)));
            all.extend(share_of_memory(text));
        }
        // Messages show the first one.
        Toml::Boolean(flag) => all.insert(0, flag.to_string()),
        _ => {}
    }
    Some(all)
}

/// The items of a list, or the one value.
pub(super) fn texts(value: &OptionValue) -> Vec<String> {
    match value {
        OptionValue::List(items) => items.iter().map(OptionValue::plain).collect(),
        one => vec![one.plain()],
    }
}

/// A scalar as the value of a setting of PostgreSQL.
pub(super) fn setting(node: &Node) -> Option<String> {
    match &node.value {
        Toml::Text(text) => Some(text.clone()),
        Toml::Integer(n) => Some(n.to_string()),
        Toml::Number(n) => Some(n.to_string()),
        Toml::Boolean(flag) => Some(if *flag { "on" } else { "off" }.to_owned()),
        Toml::Moment | Toml::List(_) | Toml::Table(_) => None,
    }
}

/// Normalises `50 %of ram` to `50% of RAM`; `None` if it is not a share above zero.
fn share_of_memory(text: &str) -> Option<String> {
    let (number, rest) = text.split_once('%')?;
    let share: f64 = number.trim().parse().ok().filter(|share: &f64| share.is_finite() && *share > 0.0)?;
    let words: Vec<String> = rest.split_whitespace().map(str::to_lowercase).collect();
    (words == ["of", "ram"]).then(|| format!("{share}% of RAM"))
}

/// The text of the node; it must be one non-empty line without control characters.
pub(super) fn proper_text(node: &Node) -> Result<String, Problem> {
    let text = node.text().unwrap_or_default();
    if text.trim().is_empty() {
        return Err(Problem::at(&node.span, "is empty").help("remove it instead"));
    }
    if text.chars().any(char::is_control) {
        return Err(Problem::at(&node.span, "contains a line break or another control character"));
    }
    Ok(text.to_owned())
}

/// The text of the node; SQL may have lines, as commands of pgbench need.
fn sql(node: &Node) -> Result<String, Problem> {
    match node.text() {
        Some(text) if text.contains(';') && !text.chars().any(|c| c.is_control() && !"\n\r\t".contains(c)) => {
            Ok(text.replace("\r\n", "\n").trim().to_owned())
        }
        Some(text) if text.trim().contains('\n') => {
            Err(Problem::at(&node.span, "has lines, and no `;`").help("end SQL with `;`"))
        }
        _ => proper_text(node),
    }
}

/// The text of the node as an absolute path.
pub(super) fn absolute_path(node: &Node) -> Result<String, Problem> {
    let text = proper_text(node)?;
    if text.starts_with('/') {
        return Ok(text);
    }
    Err(Problem::at(&node.span, format!("must be an absolute path, found \"{text}\"")).help("start it with `/`"))
}

fn text_list(kind: OptionKind, node: &Node, items: &[Node]) -> Result<OptionValue, Problem> {
    if items.is_empty() {
        return Err(Problem::at(&node.span, "is an empty list").help("remove it instead"));
    }
    let mut texts = Vec::with_capacity(items.len());
    for item in items {
        if item.text().is_none() {
            let message = format!("must be {}, found {} in the list", describe(kind), item.noun());
            return Err(Problem::at(&item.span, message).help("put quotes around it"));
        }
        let is_sql = matches!(kind, OptionKind::SqlOrList);
        texts.push(OptionValue::Text(if is_sql { sql(item) } else { proper_text(item) }?));
    }
    Ok(OptionValue::List(texts))
}

fn as_list(text: &str) -> String {
    let items: Vec<String> = text.split_whitespace().map(|word| format!("{word:?}")).collect();
    format!("write it as a list of single arguments: [{}]", items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::problem::Problems;
    use super::super::tree;
    use super::*;

    fn node(text: &str) -> Node {
        tree::parse(&format!("x = {text}"), &mut Problems::default()).unwrap().remove(0).1
    }

    fn refusal(kind: OptionKind, text: &str) -> String {
        let refusal = read(kind, &node(text)).unwrap_err();
        format!("{}; {}", refusal.message, refusal.help.unwrap_or_default())
    }

    #[test]
    fn equal_values_have_one_identity_however_they_are_written() {
        let identity = |kind, text| read(kind, &node(text)).unwrap().identity;
        assert_eq!(identity(OptionKind::Size, "'1GiB'"), identity(OptionKind::Size, "'1024 MB'"));
        assert_eq!(identity(OptionKind::Span, "'1min'"), identity(OptionKind::Span, "'60s'"));
        assert_eq!(identity(OptionKind::Number, "100"), identity(OptionKind::Number, "1e2"));
        assert_eq!(identity(OptionKind::IntegerOrShare, "'50 % of ram'"), "50% of RAM");
    }

    #[test]
    fn refusals_say_what_is_wanted_and_how_to_write_it() {
        assert_eq!(
            refusal(OptionKind::Span, "60"),
            "must be a time span with its unit, such as \"60s\", found a whole number; \
             add a unit to the number: \"60ms\", \"60s\" or \"60min\""
        );
        assert!(refusal(OptionKind::Size, "'6 gigs'").contains("unknown unit `gigs`"));
        assert!(refusal(OptionKind::Size, "'0GiB'").contains("greater than 0"));
        assert!(refusal(OptionKind::TextList, "'-E a=b'").contains(r#"["-E", "a=b"]"#));
        assert!(refusal(OptionKind::TextList, "[]").contains("empty list; remove it"));
        assert!(refusal(OptionKind::OneOf(&["simple", "prepared"]), "'prepard'").contains("did you mean `prepared`?"));
        assert!(refusal(OptionKind::Boolean, "'true'").contains("without quotes"));
        assert!(refusal(OptionKind::Path, "'a/b'").contains("absolute path"));
        assert!(refusal(OptionKind::Integer { min: 1 }, "0").contains("at least 1, found 0"));
        assert!(refusal(OptionKind::IntegerOrShare, "'half of RAM'").contains("50% of RAM"));
        assert!(refusal(OptionKind::Number, "-1.5").contains("greater than 0"));
        assert!(refusal(OptionKind::Text, "\"a\\nb;\"").contains("line break"));
        assert!(refusal(OptionKind::Sql, "\"a\\nb\"").contains("end SQL with `;`"));
        assert!(refusal(OptionKind::SqlOrList, "[\"a;\\u0007\"]").contains("control character"));
    }

    #[test]
    fn sql_keeps_its_lines() {
        let value = |kind, text: String| read(kind, &node(&text)).unwrap().value;
        let sql = "\\set id random(1, 9)\nSELECT :id;";
        assert_eq!(value(OptionKind::Sql, format!("'''\n{sql}\n'''")).plain(), sql);
        let mixed = value(OptionKind::SqlOrList, format!("['a.sql@3', '''{sql}''']"));
        assert_eq!(mixed, OptionValue::List(["a.sql@3", sql].map(|text| OptionValue::Text(text.to_owned())).into()));
    }
}

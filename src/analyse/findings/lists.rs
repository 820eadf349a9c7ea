//! Several things in a sentence.

/// "a", "a and b", "a, b and c".
pub(crate) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// "block 3", "blocks 1, 2".
pub(crate) fn numbered<'a>(noun: &str, numbers: impl IntoIterator<Item = &'a u32>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(u32::to_string).collect();
    format!("{noun}{} {}", if numbers.len() == 1 { "" } else { "s" }, numbers.join(", "))
}

//! For tests of readers: does to a tool's output what mail, blogs and gists do to it, counts its numbers, and watches how
//! the time to read it grows.

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};

/// What is done to a text; the default does nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mangling {
    /// Runs of blanks become one.
    pub collapse: bool,
    /// Indentation is lost.
    pub dedent: bool,
    /// Lines are wrapped at a blank before this column.
    pub wrap: Option<usize>,
    /// Everything stands on one line.
    pub joined: bool,
    /// This many lines are missing at the front.
    pub cut_front: usize,
    /// This many lines are missing at the end.
    pub cut_back: usize,
    /// Lines end as on Windows.
    pub crlf: bool,
    /// What stands before each line: a quote mark, a no-break space, a table bar.
    pub before: &'static str,
    /// What stands behind each line.
    pub behind: &'static str,
    /// A prompt with a command before it and an empty one after it.
    pub prompt: Option<&'static str>,
    /// Fences around it.
    pub fence: bool,
    /// Prose around it, with numbers of its own.
    pub prose: bool,
    /// A byte order mark.
    pub bom: bool,
}

/// Prose before an output.
const BEFORE: &str = "Hello,\n\nwe bought 12 disks (4 TB each) in 2019 and tested them. Here is what we got:\n\n";
/// Prose behind an output.
const BEHIND: &str = "\nSo about 3 times faster than the 7 old ones.\n\nRegards,\nX.\n";

impl Mangling {
    /// Whether every number is still there and every line still a line.
    pub(super) fn keeps_lines(&self) -> bool {
        self.keeps_words() && self.wrap.is_none() && !self.joined
    }

    /// Whether every word is still there.
    pub(super) fn keeps_words(&self) -> bool {
        self.cut_front == 0 && self.cut_back == 0
    }

    /// The text after it.
    pub(super) fn apply(&self, text: &str) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let end = lines.len().saturating_sub(self.cut_back);
        let kept = lines.get(self.cut_front..end).unwrap_or_default();
        let mut out: Vec<String> = kept.iter().flat_map(|line| self.line(line)).collect();
        if self.joined {
            out = vec![out.join(" ")];
        }
        for line in &mut out {
            *line = format!("{}{line}{}", self.before, self.behind);
        }
        if let Some(prompt) = self.prompt {
            out.insert(0, prompt.to_owned());
            out.push(prompt.split_inclusive(['$', '#']).next().unwrap_or_default().to_owned());
        }
        if self.fence {
            out.insert(0, "```text".to_owned());
            out.push("```".to_owned());
        }
        let mut text = out.join("\n") + "\n";
        if self.prose {
            text = format!("{BEFORE}{text}{BEHIND}");
        }
        if self.crlf {
            text = text.replace('\n', "\r\n");
        }
        format!("{}{text}", if self.bom { "\u{feff}" } else { "" })
    }

    fn line(&self, line: &str) -> Vec<String> {
        let mut line = line.to_owned();
        if self.collapse {
            let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
            line = format!("{indent}{}", line.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        if self.dedent {
            line = line.trim_start().to_owned();
        }
        let Some(column) = self.wrap else { return vec![line] };
        let mut wrapped = vec![String::new()];
        for word in line.split(' ') {
            let last = wrapped.len() - 1;
            if !wrapped[last].trim().is_empty() && wrapped[last].chars().count() + 1 + word.chars().count() > column {
                wrapped.push(word.to_owned());
            } else {
                let blank = if wrapped[last].is_empty() { "" } else { " " };
                wrapped[last] = format!("{}{blank}{word}", wrapped[last]);
            }
        }
        wrapped
    }
}

/// Every mangling; those that lose words or lines as often as those that do not.
pub(super) fn any_mangling() -> impl Strategy<Value = Mangling> {
    let layout = (any::<bool>(), any::<bool>(), prop_oneof![4 => Just(None), 1 => (20usize..100).prop_map(Some)]);
    let lost = prop_oneof![2 => Just((0, 0)), 1 => (0usize..40, 0usize..40)];
    let around = prop::sample::select(vec![
        ("", ""),
        ("", ""),
        ("> ", ""),
        (">> ", " "),
        ("| | ", " | |"),
        ("\u{a0}\u{a0}", "\u{a0}"),
        ("    ", ""),
    ]);
    let prompt = prop::sample::select(vec![None, Some("postgres@db1:~$ some_tool -x 1"), Some("# some_tool")]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), prop::bool::weighted(0.1));
    (layout, lost, around, prompt, flags).prop_map(|(layout, lost, around, prompt, flags)| Mangling {
        collapse: layout.0,
        dedent: layout.1,
        wrap: layout.2,
        joined: flags.4,
        cut_front: lost.0,
        cut_back: lost.1,
        crlf: flags.0,
        before: around.0,
        behind: around.1,
        prompt,
        fence: flags.1,
        prose: flags.2,
        bom: flags.3,
    })
}

/// Every number of a text as it stands there: digits with marks between them, not part of a name such as `ext4`.
pub(super) fn numbers(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let in_a_name = rest[..at].ends_with(|c: char| c.is_alphabetic() || c == '_');
        rest = &rest[at..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if !in_a_name {
            found.push(rest[..end].trim_end_matches(['.', ',']).to_owned());
        }
        rest = &rest[end..];
    }
    found
}

/// The numbers of `text` for which no figure, label or fact of `outputs` stands: each that does covers one.
pub(super) fn numbers_not_read(text: &str, outputs: &[super::output::Output]) -> Vec<String> {
    let mut left = numbers(text);
    let mut cover = |text: &str| {
        for number in numbers(text) {
            if let Some(at) = left.iter().position(|other| *other == number) {
                left.remove(at);
            }
        }
    };
    for output in outputs {
        output.facts.iter().for_each(|(_, fact)| cover(fact));
        for row in &output.rows {
            row.labels.iter().for_each(|(_, label)| cover(label));
            row.figures.iter().for_each(|figure| cover(&figure.text));
        }
    }
    left
}

/// Fails where reading eight times as much takes far more than eight times as long; with the square of the length it would
/// take 64 times. `text` makes one of a length.
pub(super) fn time_goes_with_length(text: impl Fn(usize) -> String, length: usize, read: impl Fn(&str)) {
    const TURNS: usize = 3;
    const MOST: f64 = 30.0;
    // The shortest of some turns: others use the machine too.
    let shortest = |text: &str| {
        let turn = |_| {
            let started = std::time::Instant::now();
            read(text);
            started.elapsed().as_secs_f64()
        };
        (0..TURNS).map(turn).fold(f64::INFINITY, f64::min)
    };
    let (eighth, whole) = (text(length / 8), text(length));
    let (one, eight) = (shortest(&eighth), shortest(&whole));
    let begin: String = whole.chars().take(40).collect();
    assert!(eight < one * MOST, "{eight} s for {length}, {one} s for an eighth of it: {begin}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mangling_does_what_it_says() {
        let text = "a  1\n   b 2,5 c\n";
        assert_eq!(Mangling::default().apply(text), text);
        assert_eq!(Mangling { collapse: true, dedent: true, ..Mangling::default() }.apply(text), "a 1\nb 2,5 c\n");
        assert_eq!(Mangling { dedent: true, wrap: Some(5), ..Mangling::default() }.apply(text), "a  1\nb 2,5\nc\n");
        assert_eq!(Mangling { cut_front: 1, crlf: true, ..Mangling::default() }.apply(text), "   b 2,5 c\r\n");
        assert_eq!(Mangling { cut_back: 9, ..Mangling::default() }.apply(text), "\n");
        assert_eq!(numbers(text), ["1", "2,5"]);
        assert_eq!(numbers("ext4 9.3. (7) 8kB_1 -2"), ["9.3", "7", "8", "2"]);
    }
}

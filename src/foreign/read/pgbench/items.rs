//! The items of pgbench's output: their phrases in every version, and what stands behind each.

use super::{INITIALISATION, RUN, Reading, Script, Statements, bare, figure};
use crate::foreign::read::output::{Figure, Output, Row};

/// What stands behind a phrase.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reads {
    /// A number: name and unit of its figure.
    Number(&'static str, &'static str),
    /// `N`, `N/M`, `N (P%)`, `N (tps = T)`.
    Share(&'static str),
    /// `20.0 ms latency limit: N/M (P %)`.
    Late,
    /// `avg A (max M) ms`.
    Lag,
    /// `X ms`, and perhaps that failures are in it.
    Latency(&'static str),
    /// `X (including connections establishing)`.
    Tps,
    /// A text without a number.
    Fact(&'static str),
    /// `1: NAME`.
    Script,
    /// `2 (targets 28.6% of total)`.
    Weight,
    /// The rest of the heading over statements.
    Statements,
    /// `5.0 s, 1234.5 tps, lat ...`.
    Progress,
    /// `0.31 s (drop tables 0.00 s, ...)`.
    Times,
}

/// Phrases; none is the beginning of another.
pub(super) const ITEMS: [(&str, Reads); 34] = [
    ("transaction type:", Reads::Fact("transaction type")),
    ("query mode:", Reads::Fact("query mode")),
    ("partition method:", Reads::Fact("partition method")),
    ("scaling factor:", Reads::Number("scale", "")),
    ("partitions:", Reads::Number("partitions", "count")),
    ("number of clients:", Reads::Number("clients", "count")),
    ("number of threads:", Reads::Number("threads", "count")),
    ("maximum number of tries:", Reads::Number("max_tries", "count")),
    ("number of transactions per client:", Reads::Number("transactions_per_client", "count")),
    ("number of transactions actually processed:", Reads::Share("transactions")),
    ("number of failed transactions:", Reads::Share("failed")),
    ("number of serialization failures:", Reads::Share("serialization_failures")),
    ("number of deadlock failures:", Reads::Share("deadlock_failures")),
    ("number of other failures:", Reads::Share("other_failures")),
    ("number of transactions retried:", Reads::Share("retried")),
    ("number of retried transactions:", Reads::Share("retried")),
    ("total number of retries:", Reads::Number("retries", "count")),
    ("number of retries:", Reads::Number("retries", "count")),
    ("number of transactions skipped:", Reads::Share("skipped")),
    ("number of transactions above the", Reads::Late),
    ("duration:", Reads::Number("duration", "s")),
    ("latency average:", Reads::Latency("latency_mean")),
    ("latency average =", Reads::Latency("latency_mean")),
    ("latency stddev:", Reads::Latency("latency_stddev")),
    ("latency stddev =", Reads::Latency("latency_stddev")),
    ("rate limit schedule lag: avg", Reads::Lag),
    ("initial connection time =", Reads::Latency("initial_connection_time")),
    ("average connection time =", Reads::Latency("average_connection_time")),
    ("tps =", Reads::Tps),
    ("SQL script", Reads::Script),
    ("weight:", Reads::Weight),
    ("statement latencies in", Reads::Statements),
    ("progress:", Reads::Progress),
    ("done in", Reads::Times),
];

/// The steps of an initialisation that are timed, since version 13.
const STEPS: [&str; 8] = [
    "drop tables",
    "create tables",
    "generate",
    "client-side generate",
    "server-side generate",
    "vacuum",
    "primary keys",
    "foreign keys",
];

impl Reading<'_> {
    /// `N/M`, then `(P%)` or `(tps = T)`, as far as they are there.
    fn count_and_share(&mut self, name: &str) -> Option<Vec<Figure>> {
        let word = *self.words.get(self.at)?;
        let (count, of) = match word.text.split_once('/') {
            Some((count, of)) => (count, Some(of)),
            None => (word.text, None),
        };
        let mut figures = vec![figure(bare(count), name, "count", word.line)?];
        if let Some(of) = of {
            let asked = if name == "transactions" { "transactions_asked" } else { "late_of" };
            figures.push(figure(bare(of), asked, "count", word.line)?);
        }
        self.take(1);
        if self.word(0) == "(tps" && self.word(1) == "=" {
            self.take(2);
            figures.extend(self.number("tps", "tx/s"));
        } else if self.word(0).starts_with('(') && (self.word(0).ends_with("%)") || self.word(1) == "%)") {
            figures.extend(self.number(&format!("{name}_share"), "%"));
            if self.word(0) == "%)" {
                self.take(1);
            }
        }
        Some(figures)
    }

    pub(super) fn share(&mut self, name: &str, dashed: bool) -> bool {
        self.count_and_share(name).is_some_and(|figures| self.keep(figures, dashed))
    }

    pub(super) fn late(&mut self, dashed: bool) -> bool {
        let Some(limit) = self.number("latency_limit", "ms") else { return false };
        if self.phrase("ms latency limit:").is_none() {
            return false;
        }
        self.take(3);
        let Some(mut figures) = self.count_and_share("late") else { return false };
        figures.insert(0, limit);
        self.keep(figures, dashed)
    }

    pub(super) fn lag(&mut self) -> bool {
        let Some(mean) = self.number("lag_mean", "ms") else { return false };
        let mut figures = vec![mean];
        if self.word(0) == "(max" {
            self.take(1);
            figures.extend(self.number("lag_max", "ms"));
        }
        self.keep(figures, false)
    }

    pub(super) fn latency(&mut self, name: &str, dashed: bool) -> bool {
        let Some(latency) = self.number(name, "ms") else { return false };
        let kept = self.keep(vec![latency], dashed);
        if self.phrase("ms (including failures)").is_some() {
            self.fact_of("latency average", "including failures");
        }
        kept
    }

    pub(super) fn tps(&mut self) -> bool {
        let (line, Some(mut tps)) = (self.line(), self.number("tps", "tx/s")) else { return false };
        match (self.word(0), self.word(1)) {
            ("(including", "connections") => tps.name = "tps_including_connecting".to_owned(),
            ("(excluding", "connections") => tps.name = "tps_excluding_connecting".to_owned(),
            ("(including", "reconnection") => tps.name = "tps_including_reconnecting".to_owned(),
            ("(without", _) => {}
            _ => tps.name = "tps_of_unknown_kind".to_owned(),
        }
        let unknown = tps.name == "tps_of_unknown_kind";
        let kept = self.keep(vec![tps], false);
        if let Some(output) = self.outputs.last_mut().filter(|_| unknown) {
            output.notes.push(format!("line {line}: does not say whether the time to connect is in its tps"));
        }
        kept
    }

    fn fact_of(&mut self, name: &str, fact: &str) {
        if let Some(output) = self.outputs.last_mut() {
            output.facts.push((name.to_owned(), fact.to_owned()));
        }
    }

    /// A text to the end of its line, or where a page broke it, to the end of its brackets.
    fn text(&mut self) -> String {
        const MOST_WORDS: usize = 12;
        let mut text = String::new();
        for taken in 0..MOST_WORDS {
            let Some(word) = self.words.get(self.at).copied() else { break };
            let open = |open: char, close: char| text.matches(open).count() > text.matches(close).count();
            let broken = taken > 0 && word.first && !(open('<', '>') || open('(', ')'));
            let is_item = taken > 0 && ITEMS.iter().any(|(phrase, _)| self.phrase(phrase).is_some());
            if broken || is_item || word.text == "-" {
                break;
            }
            text = if text.is_empty() { word.text.to_owned() } else { format!("{text} {}", word.text) };
            self.take(1);
        }
        // Half a name is none.
        if text.starts_with('<') && !text.ends_with('>') { String::new() } else { text }
    }

    pub(super) fn fact(&mut self, name: &'static str) -> bool {
        let line = self.line();
        let fact = match name {
            "transaction type" => self.text(),
            _ => {
                let word = self.word(0).to_owned();
                self.take(1);
                word
            }
        };
        if fact.is_empty() {
            return false;
        }
        let has = |output: &Output| output.tool != RUN || output.facts.iter().any(|(other, _)| other == name);
        if self.outputs.last().is_none_or(has) || (name == "transaction type" && self.summary.is_some()) {
            self.begin(RUN, line);
        }
        self.statements = None;
        self.fact_of(name, &fact);
        true
    }

    pub(super) fn script(&mut self) -> bool {
        let is_number = self.word(0).strip_suffix(':').is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()));
        if !is_number {
            return false;
        }
        let number = self.word(0).trim_end_matches(':').to_owned();
        self.take(1);
        let name = Some(self.text()).filter(|name| !name.is_empty());
        let name = name.map_or(String::new(), |name| format!("{number}: {name}"));
        self.script = Some(Script { name, row: None });
        self.statements = None;
        true
    }

    pub(super) fn weight(&mut self) -> bool {
        let Some(weight) = self.number("weight", "") else { return false };
        let mut figures = vec![weight];
        if self.word(0) == "(targets" {
            self.take(1);
            figures.extend(self.number("target_share", "%"));
        }
        self.keep(figures, true)
    }

    /// `4984 transactions (49.8% of total, tps = 308.1)` behind a dash.
    pub(super) fn script_transactions(&mut self, dashed: bool) -> bool {
        if !(dashed && self.word(1) == "transactions" && self.word(2).starts_with('(')) {
            return false;
        }
        let Some(count) = self.number("script_transactions", "count") else { return false };
        self.take(1);
        let mut figures = vec![count];
        figures.extend(self.number("script_share", "%"));
        if self.phrase("of total, tps =").is_some() {
            self.take(4);
            figures.extend(self.number("tps", "tx/s"));
        }
        self.keep(figures, true)
    }

    pub(super) fn statements_heading(&mut self) -> bool {
        const HEADINGS: [(&str, usize); 3] =
            [("milliseconds:", 0), ("milliseconds and failures:", 1), ("milliseconds, failures and retries:", 2)];
        let found = HEADINGS.iter().find_map(|(phrase, counts)| self.phrase(phrase).map(|words| (words, *counts)));
        let counts = match found {
            Some((words, counts)) => {
                self.take(words);
                counts
            }
            // Before version 9.6 scripts have numbers only.
            None if self.phrase("milliseconds, file").is_some() && self.word(2).ends_with(':') => {
                let name = format!("file {}", bare(self.word(2)));
                self.script = Some(Script { name, row: None });
                self.take(3);
                0
            }
            None => return false,
        };
        self.statements = Some(Statements { counts, row: None });
        true
    }

    pub(super) fn progress(&mut self) -> bool {
        let line = self.line();
        let mut figures = Vec::new();
        loop {
            let behind = bare(self.word(1));
            let (skip, name, unit, after) = match (self.word(0), behind) {
                ("lat", _) => (1, "latency_mean", "ms", 1),
                ("stddev", _) => (1, "latency_stddev", "ms", 0),
                ("lag", _) => (1, "lag_mean", "ms", 1),
                (_, "s") if figures.is_empty() => (0, "at", "s", 1),
                (_, "tps") => (0, "tps", "tx/s", 1),
                (_, "skipped") => (0, "skipped", "count", 1),
                (_, "failed") => (0, "failed", "count", 1),
                (_, "retried") => (0, "retried", "count", 1),
                (_, "retries") => (0, "retries", "count", 1),
                _ => break,
            };
            let back = self.at;
            self.at += skip;
            let Some(figure) = self.number(name, unit) else {
                self.at = back;
                break;
            };
            self.taken[back..self.at].fill(true);
            figures.push(figure);
            if after == 1 && (skip == 0 || bare(self.word(0)) == "ms") {
                self.take(1);
            }
        }
        if figures.len() < 2 {
            return false;
        }
        let at = |row: &Row| row.figures.iter().find(|figure| figure.name == "at").map(|figure| figure.value);
        let last = self.outputs.last().filter(|output| output.tool == RUN).and_then(|output| output.rows.last());
        let back = last.and_then(at).is_some_and(|last| figures[0].name == "at" && figures[0].value < last);
        if self.summary.is_some() || back {
            self.begin(RUN, line);
        }
        self.statements = None;
        self.row(RUN, Row { labels: vec![("part", "progress".to_owned())], figures, line, ..Row::default() });
        true
    }

    /// `100000 of 100000 tuples (100%) done (elapsed 0.05 s, remaining 0.00 s)`, before version 9.3 `10000 tuples done.`
    pub(super) fn tuples(&mut self) -> bool {
        let line = self.line();
        let (short, long) = (self.word(1) == "tuples", self.word(1) == "of" && self.word(3) == "tuples");
        if !(long && self.word(4).starts_with('(') || short && self.word(2).starts_with("done")) {
            return false;
        }
        let Some(tuples) = self.number("tuples", "count") else { return false };
        let mut figures = vec![tuples];
        self.take(1);
        if long {
            figures.extend(self.number("tuples_total", "count"));
            self.take(1);
            figures.extend(self.number("tuples_share", "%"));
            // Since version 17 with the table's name.
            if self.word(0) == "of" && self.word(2) == "done" {
                self.take(2);
            }
        }
        self.take(1);
        for (word, name) in [("(elapsed", "elapsed"), ("remaining", "remaining")] {
            if self.word(0) == word && bare(self.word(2)) == "s" {
                self.take(1);
                figures.extend(self.number(name, "s"));
                self.take(1);
            }
        }
        self.initialising(Row { labels: vec![("part", "tuples".to_owned())], figures, line, ..Row::default() });
        true
    }

    /// The step whose seconds stand here; the first one opens the bracket.
    fn step(&self, opens: bool) -> Option<&'static str> {
        let stands = |step: &&&'static str| {
            let words = step.split(' ').count();
            let is_word = |(at, word)| {
                let first = self.word(0).strip_prefix('(').filter(|_| opens);
                if at == 0 && opens { first == Some(word) } else { self.word(at) == word }
            };
            step.split(' ').enumerate().all(is_word) && self.word(words + 1).trim_end_matches(['.', ',', ')']) == "s"
        };
        STEPS.iter().find(stands).copied()
    }

    pub(super) fn times(&mut self) -> bool {
        let line = self.line();
        if self.word(1) != "s" {
            return false;
        }
        let Some(total) = self.number("elapsed", "s") else { return false };
        self.take(1);
        let mut figures = vec![total];
        // Steps, each with its seconds, to the closing bracket.
        while let Some(step) = self.step(figures.len() == 1) {
            let name = step.replace([' ', '-'], "_");
            let words = step.split(' ').count();
            let back = self.at;
            self.at += words;
            let Some(figure) = self.number(&name, "s") else {
                self.at = back;
                break;
            };
            self.taken[back..self.at].fill(true);
            figures.push(figure);
            let last = self.word(0).contains(')');
            self.take(1);
            if last {
                break;
            }
        }
        self.initialising(Row { labels: vec![("part", "done".to_owned())], figures, line, ..Row::default() });
        true
    }

    /// Adds a row of an initialisation; one that is done is followed by another's.
    fn initialising(&mut self, row: Row) {
        let is_done = |row: &Row| row.labels.iter().any(|(_, part)| part == "done");
        if self.outputs.last().is_some_and(|output| output.tool == INITIALISATION && output.rows.iter().any(is_done)) {
            self.begin(INITIALISATION, row.line);
        }
        self.statements = None;
        self.row(INITIALISATION, row);
    }
}

/// The version, as far as the form tells it.
pub(super) fn version(output: &Output) -> Option<&'static str> {
    let summary = output.rows.iter().find(|row| row.labels.iter().any(|(_, part)| part == "summary"));
    let has = |name: &str| summary.is_some_and(|row| row.figures.iter().any(|figure| figure.name == name));
    let fact = |wanted: &str| {
        let fact = output.facts.iter().find(|(name, _)| name == wanted);
        fact.map(|(_, fact)| fact.as_str())
    };
    let builtin = fact("transaction type").map(|kind| kind.starts_with('<'));
    let new_tps = has("tps") || has("tps_including_reconnecting");
    let old_tps = has("tps_including_connecting") || has("tps_excluding_connecting");
    let progress = output.rows.iter().any(|row| {
        row.labels.iter().any(|(_, part)| part == "progress")
            && row.figures.iter().any(|figure| figure.name == "failed")
    });
    if has("failed") || has("max_tries") || progress {
        Some("15 or newer")
    } else if new_tps {
        Some(if has("transactions") { "14" } else { "14 or newer" })
    } else if old_tps && has("latency_mean") {
        Some(if builtin == Some(true) { "9.6 to 13" } else { "9.4 to 13" })
    } else if old_tps && has("transactions") {
        Some("8.4 to 9.3")
    } else if old_tps {
        Some("13 or older")
    } else {
        None
    }
}

//! The answer as text, from the most important ranking. It claims no more than the intervals support.

use crate::analyse::case::backend_time::storage_clause;
use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::groups::by_key;
use crate::analyse::findings::lists::list;
use crate::analyse::findings::{
    BestCombinations, CaseFinding, ClassRanking, DurabilityClass, Effects, Estimate, NotRun, RankRow, RankedBy,
    RunAnswer, names,
};
use crate::analyse::run::decided::detectable;
use crate::analyse::run::effects;
use crate::analyse::run::ranking::Contest;
use crate::analyse::words::digits::{estimate_text, in_sentence};
use crate::analyse::words::{effects as words, work};
use crate::stats::ratio::Ratio;

/// Maximum length of a failed trial's reason in a headline, characters.
const REASON_CHARS: usize = 160;
/// Other rankings with another winner, and cases without figures, that are named.
const OTHERS_NAMED: usize = 2;

/// The answer from all rankings, the first of which decides; of a plan with several options, from their effects.
pub fn answer(contests: &[Contest<'_>], found: &[Effects], cases: &[CaseFinding], not_run: &[NotRun]) -> RunAnswer {
    let main = contests.first().and_then(|main| Some((main, main.ranking.classes.first()?)));
    let Some((main, head)) = main else { return nothing_measured(not_run, cases) };
    let sentence = HeadlineSentence { main, head };
    let others = main.ranking.classes.iter().skip(1).flat_map(|class| sentence.less_safe(class));
    let others = others.map(|clause| format!("{clause}."));
    let answered = effects::answering(found, main).and_then(|found| Some((found, found.best.as_ref()?)));
    let answered = answered.filter(|(_, best)| unequal_cycles(best, contests).is_none());
    let (title, answer, mut notes): (&str, String, Vec<String>) = match answered {
        Some((found, best)) => {
            let others = others.map(|clause| format!("{}: {clause}", main.ranking.title));
            let best = std::iter::once(sentence.best(best));
            let notes = best.chain(words::wal(found)).chain(others).chain(held(head, cases));
            (&found.title, words::effects(found), notes.collect())
        }
        None => {
            let notes =
                others.chain(held(head, cases)).chain(storage(head, cases)).chain(other_winners(contests, head));
            (&main.ranking.title, sentence.sentence(), notes.collect())
        }
    };
    notes.extend(without_trials(cases));
    RunAnswer { question: format!("On this machine ({title})"), answer: format!("{answer}."), notes }
}

/// Why the combinations of a plan are not compared: their windows hold different work.
fn unequal_cycles(best: &BestCombinations, contests: &[Contest<'_>]) -> Option<String> {
    let entries = contests.iter().flat_map(|contest| &contest.entries);
    let cases = entries.map(|entry| (entry.case.spec.id.as_str(), entry.case));
    let compared = cases.filter(|(id, _)| best.compared.iter().any(|case| case == id));
    work::unequal_cycles(&compared.collect::<Vec<_>>())
}

/// The answer for a run on an emulated processor, where nothing is ranked.
pub fn emulated() -> RunAnswer {
    let note = "Writes, bytes and flushes per operation, durability classes and failures are valid.";
    RunAnswer {
        question: String::new(),
        answer: "Emulated CPU (QEMU TCG): speed is not comparable, and nothing is ranked.".to_owned(),
        notes: vec![note.to_owned()],
    }
}

impl RunAnswer {
    pub fn text(&self) -> String {
        let parts = [&self.question, &self.answer].into_iter().chain(&self.notes).filter(|part| !part.is_empty());
        parts.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// The reason in one line; the rest is listed with the trials that were not run.
fn nothing_measured(not_run: &[NotRun], cases: &[CaseFinding]) -> RunAnswer {
    let failed = not_run.iter().find(|entry| entry.step.is_some());
    let (answer, notes) = match failed {
        Some(entry) => {
            let names = names::of_cases(cases.iter().map(|case| (case.id.as_str(), &case.axes)));
            let name = names.get(&entry.case).unwrap_or(&entry.case);
            let mut lines = entry.reason.lines().map(str::trim);
            let first = lines.next().unwrap_or_default();
            // Below it stands what the tool said.
            let said = lines.find(|line| !line.is_empty()).filter(|_| first.ends_with("output:"));
            let line = &said.map_or_else(|| first.to_owned(), |said| format!("{first} {said}"));
            let short: String = line.chars().take(REASON_CHARS).collect();
            let end = if short.len() < line.len() { " ..." } else { "" };
            let short = short.trim_end_matches(['.', ':']);
            ("Nothing was measured.", vec![format!("First reason ({name}): {short}{end}.")])
        }
        None if not_run.is_empty() => ("Nothing was measured: the run has no trials.", Vec::new()),
        None => ("Nothing has been measured yet: no trial has run.", Vec::new()),
    };
    RunAnswer { question: String::new(), answer: answer.to_owned(), notes }
}

/// Cases that the answer is not about: of none of their trials is there a figure.
fn without_trials(cases: &[CaseFinding]) -> Option<String> {
    let names = names::of_cases(cases.iter().map(|case| (case.id.as_str(), &case.axes)));
    let lacking = cases.iter().filter(|case| case.trials == 0).filter_map(|case| names.get(&case.id).cloned());
    let lacking: Vec<String> = lacking.collect();
    let named = match lacking.len() {
        0 => return None,
        1..=OTHERS_NAMED => list(&lacking),
        many => format!("{many} of {} cases", cases.len()),
    };
    Some(format!("Not measured: {named}."))
}

/// The rate that the best case holds, if it was searched for.
fn held(head: &ClassRanking, cases: &[CaseFinding]) -> Option<String> {
    let best = head.rows.first()?;
    let capacity = cases.iter().find(|case| case.id == best.case)?.capacity.as_ref()?;
    capacity.holds.as_ref()?;
    Some(format!("{} {}.", best.label, capacity.sentence))
}

/// Storage's share of the best case's time.
fn storage(head: &ClassRanking, cases: &[CaseFinding]) -> Option<String> {
    let best = head.rows.first()?;
    let time = cases.iter().find(|case| case.id == best.case)?.backend_time.as_ref()?;
    Some(format!("{}: {}.", best.label, storage_clause(time)?))
}

/// Rankings of the same workload with another winner.
fn other_winners(contests: &[Contest<'_>], head: &ClassRanking) -> Vec<String> {
    let Some(main) = contests.first().map(|contest| &contest.ranking) else { return Vec::new() };
    let ours = winners(head);
    // At a fixed rate a workload has rankings of the same trials by several figures.
    let others = contests.iter().skip(1).map(|contest| &contest.ranking);
    let same_workload =
        others.filter(|other| other.workload == main.workload && (other.by == main.by || other.shared == main.shared));
    let ahead = same_workload.filter_map(|other| {
        let theirs = winners(other.classes.iter().find(|class| class.class == head.class)?);
        let are_others = theirs.iter().all(|label| !ours.contains(label));
        are_others.then(|| format!("{}: {} {} ahead.", other.title, list(&theirs), are(theirs.len())))
    });
    ahead.take(OTHERS_NAMED).collect()
}

fn winners(class: &ClassRanking) -> Vec<String> {
    class.rows.iter().filter(|row| row.rank == 1).map(|row| row.label.clone()).collect()
}

/// The sentence about one ranking.
struct HeadlineSentence<'a> {
    main: &'a Contest<'a>,
    head: &'a ClassRanking,
}

impl HeadlineSentence<'_> {
    fn sentence(&self) -> String {
        let mut text = match self.head.rows.as_slice() {
            [] => String::new(),
            [only] if self.main.entries.len() == 1 => {
                return format!("only {} was measured: {}; nothing to compare it with", only.label, self.rate(only));
            }
            [only] => format!("{} is the only {}: {}", only.label, self.kind(1), self.rate(only)),
            rows => work::unequal_cycles(&self.cases(rows)).unwrap_or_else(|| self.among(rows)),
        };
        text.push_str(&work::wal_aside(&self.main.ranking.counters));
        text.push_str(without_safer(self.head.class));
        text
    }

    /// On the best combinations of a plan with several options.
    fn best(&self, best: &BestCombinations) -> String {
        let kind = self.of_class(best.class, best.compared.len());
        format!("{}{}.", words::best(best, &kind), without_safer(best.class))
    }

    /// Sentence on two or more rows of the safest class.
    fn among(&self, rows: &[RankRow]) -> String {
        let best: Vec<&RankRow> = rows.iter().filter(|row| row.rank == 1).collect();
        let labels: Vec<String> = best.iter().map(|row| row.label.clone()).collect();
        if best.len() == rows.len() {
            let (names, how_far) = (list(&labels), self.how_far(&best));
            return match self.same_within(&best) {
                Some(percent) if !self.of_class(self.head.class, 2).is_empty() => {
                    format!("of the {}, {names} are the same within {percent} %{how_far}", self.kind(2))
                }
                Some(percent) => format!("{names} are the same within {percent} %{how_far}"),
                None => format!("it is undecided which of {names} {}{how_far}", self.leads(1)),
            };
        }
        let first = &rows[0];
        let slower: Vec<&RankRow> = rows.iter().filter(|row| self.main.faster(&first.case, &row.case)).collect();
        if best.len() > 1 {
            let leads = self.leads(labels.len());
            let text = format!("{} {leads}, {}", list(&labels), words::tied(self.same_within(&best)));
            let (of_all, of_first): (Vec<&RankRow>, Vec<&RankRow>) =
                slower.into_iter().partition(|row| best.iter().all(|one| self.main.faster(&one.case, &row.case)));
            let than = format!(" than {}", first.label);
            return text + &self.how_far(&best) + &self.list_slower(&of_all, "") + &self.list_slower(&of_first, &than);
        }
        let reference = self.baseline(rows).filter(|base| base.case != first.case).unwrap_or(&rows[1]);
        let against = match self.main.ratio(&first.case, &reference.case) {
            Some(ratio) if self.main.faster(&first.case, &reference.case) => {
                format!(": {}", quoted_ratio(&ratio, first, reference))
            }
            _ => format!(", but undecided against {}", reference.label),
        };
        let rest: Vec<&RankRow> = slower.into_iter().filter(|row| row.case != reference.case).collect();
        format!("{} {}{against}{}", first.label, self.leads(1), self.list_slower(&rest, ""))
    }

    /// Per cent within which all of these are the same.
    fn same_within(&self, rows: &[&RankRow]) -> Option<u32> {
        let cases: Vec<&str> = rows.iter().map(|row| row.case.as_str()).collect();
        self.main.decided(cases.first()?, cases.last()?)?.same_within(&cases)
    }

    /// The detectable difference, and the best compared with the last of these, with its interval.
    fn how_far(&self, rows: &[&RankRow]) -> String {
        let ratio = rows.first().zip(rows.last()).and_then(|(first, last)| {
            let ratio = self.main.ratio(&first.case, &last.case)?;
            if estimate(&ratio).is_beyond_use() || rows.iter().all(|row| row.rate.trials < 2) {
                return None;
            }
            let is_base = last.comparison.as_ref().is_some_and(|against| against.baseline == first.case);
            let subject = if is_base { String::new() } else { format!("{} is ", first.label) };
            Some(format!("; {subject}{}", quoted_ratio(&ratio, first, last)))
        });
        self.beyond(rows) + &ratio.unwrap_or_default()
    }

    /// The detectable difference between these.
    fn beyond(&self, rows: &[&RankRow]) -> String {
        let cases: Vec<&str> = rows.iter().map(|row| row.case.as_str()).collect();
        let decided = cases.first().zip(cases.last()).and_then(|(first, last)| self.main.decided(first, last));
        let margin = decided.and_then(|decided| decided.margin_among(&cases));
        margin.and_then(detectable).map(|found| format!(" (smallest {found})")).unwrap_or_default()
    }

    fn case(&self, row: &RankRow) -> Option<&CaseSums> {
        self.main.entry(&row.case).map(|entry| entry.case)
    }

    fn cases<'r>(&'r self, rows: &'r [RankRow]) -> Vec<(&'r str, &'r CaseSums)> {
        rows.iter().filter_map(|row| Some((row.label.as_str(), self.case(row)?))).collect()
    }

    fn baseline<'r>(&self, rows: &'r [RankRow]) -> Option<&'r RankRow> {
        rows.iter().find(|row| row.comparison.is_none() && self.main.ranking.rows().any(|row| row.comparison.is_some()))
    }

    /// `than`: the only cases that they were shown to be slower than, if not all of the best.
    fn list_slower(&self, rows: &[&RankRow], than: &str) -> String {
        if rows.is_empty() {
            return String::new();
        }
        let names: Vec<String> = rows.iter().map(|row| row.label.clone()).collect();
        let how = match self.main.ranking.by {
            RankedBy::Rate | RankedBy::Latency | RankedBy::Time => "slower",
            RankedBy::Capacity => "lower",
            RankedBy::InTime => "late more often",
        };
        format!("; {} {} {how}{than}", list(&names), are(names.len()))
    }

    /// "is the fastest stack whose commits wait for a flush", "has the lowest latency of the stacks whose commits wait for a
    /// flush".
    fn leads(&self, count: usize) -> String {
        let [have, take, sustain] = if count == 1 { ["has", "takes", "sustains"] } else { ["have", "take", "sustain"] };
        match self.main.ranking.by {
            RankedBy::Rate => format!("{} the fastest {}", are(count), self.kind(count)),
            RankedBy::Latency => format!("{have} the lowest latency of the {}", self.kind(2)),
            RankedBy::Time => format!("{take} the least time of the {}", self.kind(2)),
            RankedBy::Capacity => format!("{sustain} the highest rate of the {}", self.kind(2)),
            RankedBy::InTime => format!("{} in time most often of the {}", are(count), self.kind(2)),
        }
    }

    /// A class with weaker durability, compared with the best of the safest one.
    fn less_safe(&self, class: &ClassRanking) -> Vec<String> {
        let Some(best) = self.head.rows.first() else { return Vec::new() };
        let by = self.main.ranking.by;
        let faster = if by == RankedBy::InTime { "in time more often" } else { "faster" };
        let how = [
            format!("{faster}, but"),
            format!("not shown to be {faster}, for want of trials, and"),
            format!("not shown to be {faster} and"),
        ];
        let compared = class.rows.iter().map(|row| {
            let better = self.main.ratio(&row.case, &best.case).filter(|ratio| by.is_better(ratio.value));
            match better.filter(|ratio| ratio.interval.is_none() || ratio.tells_apart()) {
                Some(ratio) => {
                    let named = format!("{} ({})", row.label, self.quoted_value(&ratio, row, best));
                    (usize::from(ratio.interval.is_none()), named)
                }
                None => (2, row.label.clone()),
            }
        });
        let mut groups = by_key(compared);
        groups.sort_by_key(|(place, _)| *place);
        let clauses = groups.into_iter().map(|(place, names)| {
            format!("{} {} {} {}", list(&names), are(names.len()), how[place], price(class.class, names.len()))
        });
        clauses.collect()
    }

    /// "2.36 times ext4": the ratio from the table against the baseline; against `best` if there is none or it is
    /// equal.
    fn quoted_value(&self, ratio: &Ratio, row: &RankRow, best: &RankRow) -> String {
        let against = row.comparison.as_ref().filter(|against| against.outcome.differs() || ratio.interval.is_none());
        let mut rows = self.main.ranking.rows();
        let base = against.and_then(|it| Some((&it.ratio, rows.find(|other| other.case == it.baseline)?)));
        match base {
            Some((ratio, base)) => format!("{} times {}", estimate_text(ratio).0, base.label),
            None => format!("{} times {}", estimate_text(&estimate(ratio)).0, best.label),
        }
    }

    fn rate(&self, row: &RankRow) -> String {
        in_sentence(&row.rate, &format!(" {}", self.main.ranking.unit))
    }

    /// "stack"; "stack whose commits wait for a flush", which commits of several clients may share.
    fn kind(&self, count: usize) -> String {
        let what = if self.main.stacks_only { "stack" } else { "case" };
        let plural = if count == 1 { "" } else { "s" };
        format!("{what}{plural}{}", self.of_class(self.head.class, count))
    }

    /// " whose commits wait for a flush", if others do not.
    fn of_class(&self, class: DurabilityClass, count: usize) -> String {
        let words = match (class, count) {
            (DurabilityClass::NotApplicable, _) => "for reads",
            (DurabilityClass::Flushed, _) if self.main.ranking.classes.len() == 1 => return String::new(),
            (DurabilityClass::Flushed, _) => return format!(" whose {} wait for a flush", self.operations()),
            (DurabilityClass::DeclaredStable, 1) => "whose device declares its writes stable",
            (DurabilityClass::DeclaredStable, _) => "whose devices declare their writes stable",
            (DurabilityClass::MayTear, _) => "whose pages a power cut may tear beyond repair",
            (DurabilityClass::Delayed, 1) => "that acknowledges commits before they are written",
            (DurabilityClass::Delayed, _) => "that acknowledge commits before they are written",
            (DurabilityClass::Volatile, _) => "without durability",
            (DurabilityClass::Unknown, _) => "whose durability is unknown",
        };
        format!(" {words}")
    }

    fn operations(&self) -> &'static str {
        let with_server = self.main.entries.first().is_some_and(|entry| entry.case.spec.postgres.is_some());
        if with_server { "commits" } else { "syncs" }
    }
}

fn without_safer(class: DurabilityClass) -> &'static str {
    match class {
        DurabilityClass::Volatile => "; a power cut may lose everything, and nothing safer was measured",
        _ => "",
    }
}

/// Cost of a class.
fn price(class: DurabilityClass, count: usize) -> &'static str {
    match (class, count) {
        (DurabilityClass::NotApplicable, _) => "only read",
        (DurabilityClass::Volatile, _) => "may lose everything on power loss",
        (DurabilityClass::Delayed, 1) => "loses the last commits on power loss",
        (DurabilityClass::Delayed, _) => "lose the last commits on power loss",
        (DurabilityClass::DeclaredStable, 1) => "relies on its device's claim",
        (DurabilityClass::DeclaredStable, _) => "rely on their devices' claim",
        (DurabilityClass::MayTear, _) => "may be left with torn pages by a power cut",
        (DurabilityClass::Unknown, _) => "of unknown durability",
        (DurabilityClass::Flushed, 1) => "waits for a flush at every commit",
        (DurabilityClass::Flushed, _) => "wait for a flush at every commit",
    }
}

/// "1.19 times ext4 (1.10 to 1.29)", as in the table: if `first` is the baseline, the other one against it.
fn quoted_ratio(ratio: &Ratio, first: &RankRow, reference: &RankRow) -> String {
    let [own, turned] = [(first, reference), (reference, first)].map(|(row, base)| {
        row.comparison.as_ref().filter(|against| against.baseline == base.case).map(|against| against.ratio)
    });
    match turned {
        Some(found) => format!("{} is at {}", reference.label, times(&found, &first.label)),
        None => times(&own.unwrap_or_else(|| estimate(ratio)), &reference.label),
    }
}

fn times(ratio: &Estimate, base: &str) -> String {
    in_sentence(ratio, &format!(" times {base}"))
}

fn estimate(ratio: &Ratio) -> Estimate {
    Estimate::of_ratio(ratio, 0)
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

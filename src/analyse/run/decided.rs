//! Decisions about the cases of one class and their wording: `crate::stats::decisions` with names.

use crate::analyse::findings::{Decision, PairOutcome, RankRow, RankedBy, Ranking};
use crate::analyse::run::blocks::RunBlocks;
use crate::stats::criticals::Criticals;
use crate::stats::decisions::{Decisions, Procedure};
use crate::stats::margin::{Margin, POWER};
use crate::stats::ratio::{BlockMean, Ratio};
use crate::stats::sequence::{Relation, Sequence, same};
use crate::units::{beyond, significant};

/// Placeholder for the run's folder until its path is known.
const RUN_FOLDER: &str = "RUN_FOLDER";

/// Inserts the path of the run's folder into the wording of decisions.
pub fn name_folder(rankings: &mut [Ranking], folder: &str) {
    let decisions = rankings.iter_mut().flat_map(|ranking| &mut ranking.classes).filter_map(|it| it.decision.as_mut());
    for remark in decisions.flat_map(|decision| &mut decision.remarks) {
        *remark = remark.replace(RUN_FOLDER, folder);
    }
}

/// Decisions about some cases, by case id.
pub struct Decided {
    cases: Vec<String>,
    decisions: Decisions,
    /// Ranked figure; decides whether higher is better.
    by: RankedBy,
    blocks: RunBlocks,
    /// All blocks as one look, to tell what further blocks would decide.
    looked: Option<Sequence>,
}

impl Decided {
    /// Decides about cases with their trials.
    pub fn of(
        cases: impl Iterator<Item = (String, Vec<BlockMean>)>,
        by: RankedBy,
        blocks: RunBlocks,
        criticals: &mut Criticals,
    ) -> Decided {
        let (cases, trials): (Vec<String>, Vec<Vec<BlockMean>>) = cases.unzip();
        let percent = blocks.precision_percent;
        let decisions = match blocks.rule {
            Some(rule) if cases.len() > 1 => Sequence::of(&trials, rule, percent, criticals).decisions(),
            _ => Decisions::of(&trials, criticals),
        };
        let looked = (cases.len() > 1 && blocks.finished).then(|| Sequence::at_end(&trials, percent, criticals));
        Decided { cases, decisions, by, blocks, looked }
    }

    /// The looks behind the decision, if there were several, with case ids by index.
    pub fn sequence(&self) -> Option<(&Sequence, &[String])> {
        self.decisions.sequence().map(|sequence| (sequence, self.cases.as_slice()))
    }

    /// Relation of a better case in terms of [`Sequence`].
    pub fn best(&self) -> Relation {
        if self.by.less_is_better() { Relation::Smaller } else { Relation::Larger }
    }

    fn place(&self, case: &str) -> Option<usize> {
        self.cases.iter().position(|known| known == case)
    }

    fn places(&self, case: &str, other: &str) -> Option<(usize, usize)> {
        self.place(case).zip(self.place(other))
    }

    pub fn has(&self, case: &str) -> bool {
        self.place(case).is_some()
    }

    pub fn rank(&self, case: &str) -> usize {
        1 + self.cases.iter().filter(|other| self.faster(other, case)).count()
    }

    /// True if a case was shown to be better than another.
    pub fn faster(&self, case: &str, other: &str) -> bool {
        self.places(case, other).is_some_and(|(case, other)| match self.by.less_is_better() {
            true => self.decisions.faster(other, case),
            false => self.decisions.faster(case, other),
        })
    }

    pub fn apart(&self, case: &str, other: &str) -> bool {
        self.faster(case, other) || self.faster(other, case)
    }

    /// Margin that separates the two cases.
    pub fn margin(&self, case: &str, other: &str) -> Option<Margin> {
        self.places(case, other).and_then(|(case, other)| self.decisions.margin(case, other))
    }

    /// Ratio of two cases with the interval of the test that decides them: they differ if it excludes 1.
    pub fn tested(&self, case: &str, other: &str, ratio: Ratio) -> Ratio {
        let Some((one, two)) = self.places(case, other) else { return ratio };
        let margin = self.decisions.margin(one, two);
        // The test may use other blocks than the ratio, if looks stopped a case or the class has more blocks than the
        // ranking.
        let tested = self.decisions.log(one, two).map_or(ratio.value, f64::exp);
        let interval = margin.and_then(|margin| margin.around(tested));
        Ratio { interval, margin, ..ratio }
    }

    /// As [`Self::tested`], with what it shows; a case of another class is compared by the ratio's own interval.
    pub fn compared(&self, case: &str, other: &str, ratio: Ratio) -> (Ratio, PairOutcome) {
        let own = PairOutcome::of(ratio.tells_apart(), None);
        (self.tested(case, other, ratio), if self.has(other) { self.outcome(case, other) } else { own })
    }

    /// Widest margin between any two of these cases; `None` if a pair has none.
    pub fn margin_among(&self, cases: &[&str]) -> Option<Margin> {
        let margins =
            pairs(cases).map(|(one, other)| self.margin(one, other).filter(|margin| margin.detectable().is_some()));
        margins
            .reduce(|one, other| Some(if one?.detectable() >= other?.detectable() { one? } else { other? }))
            .flatten()
    }

    pub fn outcome(&self, case: &str, other: &str) -> PairOutcome {
        let is_within = self.same(case, other);
        PairOutcome::of(self.apart(case, other), is_within.then_some(self.blocks.precision_percent))
    }

    /// Per cent within which all of these are the same.
    pub fn same_within(&self, cases: &[&str]) -> Option<u32> {
        let percent = self.blocks.precision_percent;
        let mut all = pairs(cases).map(|(one, other)| self.outcome(one, other));
        all.all(|outcome| outcome == PairOutcome::SameWithin(percent)).then_some(percent)
    }

    /// True if the two are within the run's precision of each other.
    fn same(&self, case: &str, other: &str) -> bool {
        let Some((one, two)) = self.places(case, other) else { return false };
        if let Some(sequence) = self.decisions.sequence() {
            return sequence.relation(one, two) == Relation::Same;
        }
        let log = self.looked.as_ref().and_then(|looked| looked.log(one, two));
        let margin = self.decisions.margin(one, two).and_then(Margin::ratio);
        let together = matches!(self.decisions.procedure, Procedure::Tukey { .. } | Procedure::Pair);
        together
            && log
                .zip(margin)
                .is_some_and(|(log, margin)| log.abs() + margin.ln() < same(self.blocks.precision_percent))
    }

    /// Describes the best row and the rows not separated from it.
    fn undecided(&self, rows: &[RankRow]) -> Option<String> {
        let (best, rest) = rows.split_first()?;
        let looked = self.looked.as_ref()?;
        let tied = rest.iter().filter(|row| !self.apart(&row.case, &best.case));
        let (same, open): (Vec<&RankRow>, Vec<_>) = tied.partition(|row| self.same(&row.case, &best.case));
        if !same.is_empty() && open.is_empty() {
            let names: Vec<&str> = same.iter().map(|row| row.label.as_str()).collect();
            let percent = self.blocks.precision_percent;
            return Some(format!("{}: the same as {} within {percent} %", names.join(", "), best.label));
        }
        let row = open.first()?;
        let names = format!("{} and {}: undecided", best.label, row.label);
        let (one, other) = self.places(&best.case, &row.case)?;
        looked.log(one, other)?;
        Some(match looked.more_blocks(one, other) {
            Some(more) => format!(
                "{names}; at this ratio and variance, about {more} more blocks{} would decide: pgstrata run --resume \
                 {RUN_FOLDER} --blocks {}",
                self.blocks.minutes_each.map_or_else(String::new, |each| minutes(each * f64::from(more))),
                self.blocks.most + more
            ),
            None => format!(
                "{names}; at this ratio and variance, even 10 times as many blocks, added to this run, would not decide"
            ),
        })
    }

    /// Number of pairs decided together.
    pub fn pairs(&self) -> usize {
        self.decisions.pairs()
    }

    /// How the ranks of these rows were decided; `None` for a single row.
    pub fn decision(&self, rows: &[RankRow]) -> Option<Decision> {
        if self.cases.len() < 2 {
            return None;
        }
        let ids: Vec<&str> = self.cases.iter().map(String::as_str).collect();
        let margin = self.margin_among(&ids);
        Some(Decision {
            detectable_ratio: margin.and_then(Margin::detectable),
            sentence: self.sentence(margin),
            remarks: rows.iter().filter_map(|row| self.remark(row, rows)).chain(self.undecided(rows)).collect(),
        })
    }

    fn sentence(&self, margin: Option<Margin>) -> String {
        let (each, all) = match self.pairs() {
            1 => ("the only pair".to_owned(), "the only pair".to_owned()),
            pairs => (format!("each of the {pairs} pairs"), format!("all {pairs} pairs")),
        };
        let shows = margin.and_then(detectable).map(|found| format!(" Smallest {found}.")).unwrap_or_default();
        match self.decisions.procedure {
            Procedure::Nothing if self.blocks.most < 2 => "Ranks: one trial per case cannot separate cases.".to_owned(),
            Procedure::Nothing => "Ranks: too few trials to separate cases.".to_owned(),
            Procedure::Pair => format!("Ranks: by the ratio's 95 % CI.{shows}"),
            Procedure::Tukey { blocks } => {
                format!("Ranks: Tukey's test on {all} over {blocks} blocks, 5 % risk of any false difference.{shows}")
            }
            Procedure::Holm { noise: Some(noise) } => format!(
                "Ranks: the cases' variances differ (largest {} times the smallest), so {each} is \
                 tested by its own ratio, 5 % risk of any false difference (Holm).",
                significant(noise)
            ),
            Procedure::Holm { noise: None } => format!(
                "Ranks: the cases have too few blocks in common, or a trial without a rate, so {each} is tested by its \
                 own ratio over the blocks that both cases have, 5 % risk of any false difference (Holm)."
            ),
            Procedure::Looks { first, last } => format!(
                "Ranks: Tukey's test on {all} after each block from {first} to at most {last}, at one level \
                 for every look, 5 % risk of any false difference over all looks. A pair keeps its first decision; a \
                 beaten case gets no further trials."
            ),
            Procedure::Anytime => format!(
                "Ranks: the run was extended by unplanned blocks, so {each} is tested by its e-value, \
                 which is valid for any number of looks, 5 % risk of any false difference."
            ),
        }
    }

    /// Remark if the decision on a row and its baseline disagrees with the interval of their ratio.
    fn remark(&self, row: &RankRow, rows: &[RankRow]) -> Option<String> {
        let comparison = row.comparison.as_ref()?;
        let base = rows.iter().find(|base| base.case == comparison.baseline)?;
        let (low, high) = comparison.ratio.low.zip(comparison.ratio.high)?;
        let includes_1 = (low..=high).contains(&1.0);
        let relation = self.places(&row.case, &base.case).zip(self.decisions.sequence());
        let why = match relation.map(|((one, two), looks)| looks.relation(one, two)) {
            Some(Relation::Larger | Relation::Smaller) => {
                "decided at an earlier look and kept; the interval of all blocks since includes 1"
            }
            _ => "their ratio's interval includes 1, but a third case lies between them and differs from both",
        };
        (comparison.outcome.differs() && includes_1).then(|| format!("{} and {}: {why}", row.label, base.label))
    }
}

/// " (16 minutes)"
fn minutes(minutes: f64) -> String {
    match minutes {
        ..1.5 => " (a minute)".to_owned(),
        1.5..120.0 => format!(" ({minutes:.0} minutes)"),
        _ => format!(" ({:.0} hours)", minutes / 60.0),
    }
}

/// All unordered pairs.
pub fn pairs<T>(cases: &[T]) -> impl Iterator<Item = (&T, &T)> {
    cases.iter().enumerate().flat_map(|(at, one)| cases[at + 1..].iter().map(move |other| (one, other)))
}

/// "detectable difference at 80 % power: 5.2 %", with the reason if noise within trials determines it.
pub fn detectable(margin: Margin) -> Option<String> {
    let floor = if margin.by_seconds { ", set by the noise within trials" } else { "" };
    let difference = beyond(margin.detectable()?);
    Some(format!("detectable difference at {:.0} % power: {difference}{floor}", 100.0 * POWER))
}

//! What was decided of the cases of one class, and how that is said: `crate::stats::decisions` with names and words.

use crate::analyse::findings::{Decision, Estimate, PairOutcome, ProcedureKind, RankRow, RankedBy, Ranking};
use crate::analyse::run::blocks::Blocks;
use crate::stats::criticals::Criticals;
use crate::stats::decisions::{Decisions, Procedure};
use crate::stats::ratio::BlockMean;
use crate::stats::sequence::{Relation, SAME, Sequence};
use crate::units::{beyond, significant};

/// Stands for the run's folder until its path is known.
const RUN_FOLDER: &str = "RUN_FOLDER";

/// Puts the path of the run's folder into what is said of decisions.
pub fn name_folder(rankings: &mut [Ranking], folder: &str) {
    let decisions = rankings.iter_mut().flat_map(|ranking| &mut ranking.classes).filter_map(|it| it.decision.as_mut());
    for remark in decisions.flat_map(|decision| &mut decision.remarks) {
        *remark = remark.replace(RUN_FOLDER, folder);
    }
}

/// What was decided of some cases, by their ids.
pub struct Decided {
    cases: Vec<String>,
    decisions: Decisions,
    /// What they were ranked by: whether more is better.
    by: RankedBy,
    blocks: Blocks,
    /// All blocks as one look: what more of them would decide.
    looked: Option<Sequence>,
}

impl Decided {
    /// Of cases with their trials.
    pub fn of(
        cases: impl Iterator<Item = (String, Vec<BlockMean>)>,
        by: RankedBy,
        blocks: Blocks,
        criticals: &mut Criticals,
    ) -> Decided {
        let (cases, trials): (Vec<String>, Vec<Vec<BlockMean>>) = cases.unzip();
        let decisions = match blocks.rule {
            Some(rule) if cases.len() > 1 => Sequence::of(&trials, rule, criticals).decisions(),
            _ => Decisions::of(&trials, criticals),
        };
        let looked = (cases.len() > 1 && blocks.finished).then(|| Sequence::at_end(&trials, criticals));
        Decided { cases, decisions, by, blocks, looked }
    }

    /// The looks that it rests on, where there were several, with the places of the cases.
    #[must_use]
    pub fn sequence(&self) -> Option<(&Sequence, &[String])> {
        self.decisions.sequence().map(|sequence| (sequence, self.cases.as_slice()))
    }

    /// What a better case is, in the words of [`Sequence`].
    #[must_use]
    pub fn best(&self) -> Relation {
        if self.by.less_is_better() { Relation::Smaller } else { Relation::Larger }
    }

    fn place(&self, case: &str) -> Option<usize> {
        self.cases.iter().position(|known| known == case)
    }

    fn places(&self, case: &str, other: &str) -> Option<(usize, usize)> {
        self.place(case).zip(self.place(other))
    }

    #[must_use]
    pub fn has(&self, case: &str) -> bool {
        self.place(case).is_some()
    }

    #[must_use]
    pub fn rank(&self, case: &str) -> usize {
        1 + self.cases.iter().filter(|other| self.faster(other, case)).count()
    }

    /// Whether a case was shown to be better than another.
    #[must_use]
    pub fn faster(&self, case: &str, other: &str) -> bool {
        self.places(case, other).is_some_and(|(case, other)| match self.by {
            RankedBy::Latency | RankedBy::Time => self.decisions.faster(other, case),
            RankedBy::Rate | RankedBy::Capacity | RankedBy::InTime => self.decisions.faster(case, other),
        })
    }

    #[must_use]
    pub fn apart(&self, case: &str, other: &str) -> bool {
        self.faster(case, other) || self.faster(other, case)
    }

    /// The smallest ratio above 1 that would have told the two apart.
    #[must_use]
    pub fn would_have_shown(&self, case: &str, other: &str) -> Option<f64> {
        self.places(case, other).and_then(|(case, other)| self.decisions.would_have_shown(case, other))
    }

    /// The interval of the ratio of two cases at their last look, which holds over all looks: where looks decided how many
    /// blocks there are, a plain one would miss the true ratio too often. `None` for a fixed number of blocks.
    #[must_use]
    pub fn repeated_interval(&self, case: &str, other: &str) -> Option<(f64, f64)> {
        let (one, two) = self.places(case, other)?;
        let ratio = self.decisions.sequence()?.log(one, two)?.exp();
        let margin = self.decisions.would_have_shown(one, two)?;
        Some((ratio / margin, ratio * margin))
    }

    /// The smallest ratio above 1 that would have told any two of these apart; `None` where none would for some two.
    #[must_use]
    pub fn would_have_shown_among(&self, cases: &[&str]) -> Option<f64> {
        let pairs =
            cases.iter().enumerate().flat_map(|(at, one)| cases[at + 1..].iter().map(move |other| (one, other)));
        pairs.map(|(one, other)| self.would_have_shown(one, other)).try_fold(1.0, |most: f64, one| Some(most.max(one?)))
    }

    /// Half the width, on the logarithm, of a case's comparison interval.
    #[must_use]
    pub fn half_interval(&self, case: &str) -> Option<f64> {
        self.place(case).and_then(|place| self.decisions.half_interval(place))
    }

    /// How the two stand.
    #[must_use]
    pub fn outcome(&self, case: &str, other: &str) -> PairOutcome {
        PairOutcome::of(self.apart(case, other), self.same(case, other))
    }

    /// Whether the two are within [`SAME`] of each other.
    fn same(&self, case: &str, other: &str) -> bool {
        let Some((one, two)) = self.places(case, other) else { return false };
        if let Some(sequence) = self.decisions.sequence() {
            return sequence.relation(one, two) == Relation::Same;
        }
        let log = self.looked.as_ref().and_then(|looked| looked.log(one, two));
        let margin = self.decisions.would_have_shown(one, two);
        let together = matches!(self.decisions.procedure, Procedure::Tukey { .. } | Procedure::Pair);
        together && log.zip(margin).is_some_and(|(log, margin)| log.abs() + margin.ln() < SAME.ln())
    }

    /// What became of the best row and others that are not told apart from it.
    fn undecided(&self, rows: &[RankRow]) -> Option<String> {
        let (best, rest) = rows.split_first()?;
        let looked = self.looked.as_ref()?;
        let tied: Vec<&RankRow> = rest.iter().filter(|row| !self.apart(&row.case, &best.case)).collect();
        let (same, open): (Vec<&RankRow>, Vec<&RankRow>) =
            tied.into_iter().partition(|row| self.same(&row.case, &best.case));
        if !same.is_empty() && open.is_empty() {
            let names: Vec<&str> = same.iter().map(|row| row.label.as_str()).collect();
            return Some(format!("{}: the same as {} within {}", names.join(", "), best.label, PairOutcome::margin()));
        }
        let row = open.first()?;
        let names = format!("{} and {}: undecided", best.label, row.label);
        let (one, other) = self.places(&best.case, &row.case)?;
        looked.log(one, other)?;
        Some(match looked.more_blocks(one, other) {
            Some(more) => format!(
                "{names}; at this ratio and variance, about {more} more blocks would decide: pgstrata run --resume \
                 {RUN_FOLDER} --blocks {}",
                self.blocks.most + more
            ),
            None => format!("{names}; at this ratio and variance, even 10 times the blocks would not decide"),
        })
    }

    /// Pairs that were decided together.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.decisions.pairs()
    }

    /// How the ranks of these rows came about; `None` of a single one.
    #[must_use]
    pub fn decision(&self, rows: &[RankRow]) -> Option<Decision> {
        if self.cases.len() < 2 {
            return None;
        }
        let ids: Vec<&str> = self.cases.iter().map(String::as_str).collect();
        let would_have_shown = self.would_have_shown_among(&ids);
        let (procedure, blocks) = match self.decisions.procedure {
            Procedure::Nothing => (ProcedureKind::Nothing, None),
            Procedure::Pair => (ProcedureKind::Pair, None),
            Procedure::Tukey { blocks } => (ProcedureKind::Tukey, u32::try_from(blocks).ok()),
            Procedure::Holm { .. } => (ProcedureKind::Holm, None),
            Procedure::Looks { .. } => (ProcedureKind::Looks, None),
            Procedure::Anytime => (ProcedureKind::EValues, None),
        };
        Some(Decision {
            procedure,
            blocks,
            pairs: u32::try_from(self.pairs()).unwrap_or(u32::MAX),
            would_have_shown,
            sentence: self.sentence(would_have_shown),
            remarks: rows.iter().filter_map(|row| self.remark(row, rows)).chain(self.undecided(rows)).collect(),
        })
    }

    fn sentence(&self, would_have_shown: Option<f64>) -> String {
        let (each, all) = match self.pairs() {
            1 => ("the only pair".to_owned(), "the only pair".to_owned()),
            pairs => (format!("each of the {pairs} pairs"), format!("all {pairs} pairs")),
        };
        let shows = would_have_shown.map(|ratio| format!(" Smallest detectable difference: {}.", beyond(ratio)));
        let shows = shows.unwrap_or_default();
        match self.decisions.procedure {
            Procedure::Nothing => "Ranks: one trial per case cannot separate cases.".to_owned(),
            Procedure::Pair => {
                format!("Ranks: by the ratio's 95 % CI; the two cases differ if their intervals do not overlap.{shows}")
            }
            Procedure::Tukey { blocks } => format!(
                "Ranks: Tukey's test on {all} over {blocks} blocks, 5 % risk of any false difference; two \
                 cases differ if their intervals do not overlap.{shows}"
            ),
            Procedure::Holm { noise: Some(noise) } => format!(
                "Ranks: the cases' variances differ (largest {} times the smallest), so {each} is \
                 tested by its own ratio, 5 % risk of any false difference (Holm). Overlap of intervals is only a guide.",
                significant(noise)
            ),
            Procedure::Holm { noise: None } => format!(
                "Ranks: the cases have too few blocks in common, so {each} is tested by its own ratio, \
                 5 % risk of any false difference (Holm). Each interval is of one case alone; a ratio uses the blocks \
                 that both cases have."
            ),
            Procedure::Looks { first, last } => format!(
                "Ranks: Tukey's test on {all} after each block from {first} to at most {last}, at one level \
                 for every look, 5 % risk of any false difference over all looks. A pair keeps its first decision; a \
                 beaten case gets no further trials. Overlap of intervals is only a guide."
            ),
            Procedure::Anytime => format!(
                "Ranks: the run was extended by unplanned blocks, so {each} is tested by its e-value, \
                 which is valid for any number of looks, 5 % risk of any false difference. Overlap of intervals is only a \
                 guide."
            ),
        }
    }

    /// Where what was decided of a row and its baseline is not what the interval of their ratio says.
    fn remark(&self, row: &RankRow, rows: &[RankRow]) -> Option<String> {
        let comparison = row.comparison.as_ref()?;
        let base = rows.iter().find(|base| base.case == comparison.baseline)?;
        let (low, high) = comparison.ratio.low.zip(comparison.ratio.high)?;
        let (apart, leaves_one) = (comparison.outcome.differs(), low > 1.0 || high < 1.0);
        let names = format!("{} and {}", row.label, base.label);
        if self.decisions.sequence().is_some() {
            let at_first =
                "decided at an earlier look and kept; the ratio's interval, from all blocks since, includes 1";
            return (apart && !leaves_one).then(|| format!("{names}: {at_first}"));
        }
        match (apart, leaves_one) {
            (true, false) => Some(format!("{names}: {}", self.together_only())),
            (false, true) => Some(format!(
                "{names}: this ratio's interval excludes 1, as 1 interval in 20 does by chance; undecided by the \
                 test of {}",
                if self.pairs() == 1 { "this pair".to_owned() } else { format!("all {} pairs together", self.pairs()) }
            )),
            _ => None,
        }
    }

    /// Why two cases are apart although the interval of their ratio holds 1.
    #[must_use]
    pub fn together_only(&self) -> String {
        format!(
            "this ratio's interval, from these two cases alone, includes 1; with the variance of all {} cases pooled, \
             they differ",
            self.cases.len()
        )
    }
}

/// A rate with its comparison interval instead of its own, where there is one.
#[must_use]
pub fn class_intervals(rate: Estimate, half: Option<f64>) -> Estimate {
    match half.filter(|half| rate.value > 0.0 && half.exp().is_finite()) {
        Some(half) => Estimate { low: Some(rate.value / half.exp()), high: Some(rate.value * half.exp()), ..rate },
        None => rate,
    }
}

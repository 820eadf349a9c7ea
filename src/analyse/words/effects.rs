//! The answer to a plan with several axes: what each option does, and the best combination.

use crate::analyse::findings::groups::by_key;
use crate::analyse::findings::lists::list;
use crate::analyse::findings::{BestCombinations, Effects, OptionEffect, PairOutcome, names};
use crate::analyse::words::digits::in_sentence;
use crate::analyse::words::work::more_wal;

/// Most effects, or combinations, that are named.
const MOST_NAMED: usize = 4;

/// "xfs is at 1.30 times ext4 (1.27 to 1.33) and guest=trixie at 0.80 times bookworm (0.78 to 0.82); data=ordered:
/// undecided", the biggest effect first.
pub fn effects(found: &Effects) -> String {
    let mut judged: Vec<(&OptionEffect, PairOutcome)> =
        found.options.iter().filter_map(|option| Some((option, option.outcome?))).collect();
    judged.sort_by(|(one, _), (other, _)| other.ratio.value.ln().abs().total_cmp(&one.ratio.value.ln().abs()));
    let (shown, open): (Vec<_>, Vec<_>) = judged.into_iter().partition(|(_, outcome)| outcome.differs());
    let table = " in the table of effects";
    let mut parts: Vec<String> = shown.iter().map(|(option, _)| effect(option)).collect();
    match parts.first_mut() {
        Some(first) => *first = first.replacen(" at ", " is at ", 1),
        None => parts.push("no option was shown to have an effect".to_owned()),
    }
    let open = by_key(open.iter().map(|(option, outcome)| (outcome.words(), level(option)))).into_iter();
    some(&parts, table)
        + &open.map(|(words, levels)| format!("; {}: {words}", some(&levels, table))).collect::<String>()
}

/// "WAL per commit: full_page_writes=off 70 % less than on and wal_compression=lz4 40 % less than off."; `None` if no option
/// was shown to change it by much.
pub fn wal(found: &Effects) -> Option<String> {
    let differing = found.wal.iter().filter_map(|option| {
        let more = more_wal(Some(&option.ratio), option.outcome)?;
        Some(format!("{} {more} than {}", level(option), option.reference))
    });
    let differing: Vec<String> = differing.collect();
    (!differing.is_empty()).then(|| format!("WAL per commit: {}.", list(&differing)))
}

/// "a, b, c, d and 3 more in the table of effects".
fn some(names: &[String], rest: &str) -> String {
    let more = names.len().saturating_sub(MOST_NAMED);
    let shown = names.iter().take(MOST_NAMED).cloned().chain((more > 0).then(|| format!("{more} more{rest}")));
    list(&shown.collect::<Vec<_>>())
}

fn effect(option: &OptionEffect) -> String {
    let durability = if option.differs_in_durability { " at another durability" } else { "" };
    format!("{} at {}{durability}", level(option), in_sentence(&option.ratio, &format!(" times {}", option.reference)))
}

/// "xfs"; "guest=trixie where clients=8".
fn level(option: &OptionEffect) -> String {
    let at = option.at.as_ref().map_or_else(String::new, |at| format!(" where {at}"));
    names::of_axis(&option.axis, &option.level) + &at
}

/// "Best of the 4 combinations whose commits wait for a flush, clients=8: xfs guest=bookworm, 1.31 times ext4
/// guest=bookworm (1.29 to 1.33)"; `kind`: the words of their class, if any.
pub fn best(found: &BestCombinations, kind: &str) -> String {
    let load = found.load.as_ref().map_or_else(String::new, |load| format!(", {load}"));
    let of = match found.compared.len() {
        all if all > 1 && all == found.labels.len() && found.same_within_percent.is_none() => {
            return format!("It is undecided which of the {all} combinations{kind}{load} is the best");
        }
        1 => "The only combination".to_owned(),
        several => format!("Best of the {several} combinations"),
    };
    let best = format!("{of}{kind}{load}: {}", some(&found.labels, ""));
    let (first, several) = (found.labels.first().cloned().unwrap_or_default(), found.labels.len() > 1);
    let (at, against) = match &found.ratio {
        Some(ratio) => (" at", in_sentence(ratio, &format!(" times {}", found.reference))),
        None => ("", "the one that the others are compared with".to_owned()),
    };
    match several {
        true => format!("{best}, {}; {first} is{at} {against}", tied(found.same_within_percent)),
        false => format!("{best}, {against}"),
    }
}

/// Of several in the first place: whether they are the same.
pub fn tied(same_within_percent: Option<u32>) -> String {
    let same = same_within_percent.map(|percent| PairOutcome::SameWithin(percent).words());
    same.unwrap_or_else(|| "undecided between them".to_owned())
}

//! Ratios as dots with whiskers over a logarithmic axis: an SVG without a script.

use super::tables::{families, family_title, outcome_key, ratio, row_label};
use crate::analyse::compare::findings::{Comparison, PairFinding, Row};
use crate::units::significant;
use serde::Serialize;

/// Width of the drawing, its column of names and its column of figures, pixels.
const WIDTH: f64 = 960.0;
const NAMES: f64 = 300.0;
const FIGURES: f64 = 180.0;
/// Height of a line and of the axis.
const LINE: f64 = 22.0;
const AXIS: f64 = 30.0;
/// Most characters of a name that fit.
const NAME_CHARS: usize = 42;
/// Ratios beyond these leave the axis.
const FARTHEST: f64 = 1e4;

/// A chart as the template draws it.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    width: f64,
    height: f64,
    /// Where the axis begins and ends.
    left: f64,
    right: f64,
    /// Where the lines of the axis end.
    bottom: f64,
    /// Where a ratio of 1 is.
    one: f64,
    ticks: Vec<Tick>,
    lines: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Tick {
    x: f64,
    text: String,
}

/// A heading, or a row with its dot.
#[derive(Debug, Serialize)]
struct Line {
    y: f64,
    name: String,
    full_name: String,
    heading: bool,
    style: &'static str,
    x: f64,
    low: Option<f64>,
    high: Option<f64>,
    text: String,
}

/// The compared rows of a pair; `None` where there are none.
pub(super) fn chart(pair: &PairFinding) -> Option<Chart> {
    let compared: Vec<&Comparison> = pair.rows.iter().filter_map(|row| row.comparison.as_ref()).collect();
    let ends = compared.iter().flat_map(|c| [Some(c.ratio), c.low, c.high]).flatten();
    let (low, high) = ends.fold((1.0f64, 1.0f64), |(low, high), value| (low.min(value), high.max(value)));
    if compared.is_empty() {
        return None;
    }
    let scale = Scale::over(low.max(1.0 / FARTHEST), high.min(FARTHEST));
    let mut lines = Vec::new();
    let mut y = LINE;
    for (family, rows) in families(pair) {
        let rows: Vec<(&Row, &Comparison)> =
            rows.into_iter().filter_map(|row| Some((row, row.comparison.as_ref()?))).collect();
        if rows.is_empty() {
            continue;
        }
        let title = family_title(family, &rows.iter().map(|(row, _)| *row).collect::<Vec<_>>());
        lines.push(Line::heading(y, title));
        y += LINE;
        for (row, comparison) in rows {
            lines.push(Line::row(y, row, comparison, &scale));
            y += LINE;
        }
    }
    let bottom = y - LINE / 2.0;
    let ticks = scale.marks().into_iter().map(|value| Tick { x: scale.x(value), text: significant(value) });
    Some(Chart {
        width: WIDTH,
        height: bottom + AXIS,
        left: NAMES,
        right: WIDTH - FIGURES,
        bottom,
        one: scale.x(1.0),
        ticks: ticks.collect(),
        lines,
    })
}

impl Line {
    fn heading(y: f64, title: String) -> Line {
        Line {
            y,
            name: shortened(&title),
            full_name: title,
            heading: true,
            style: "",
            x: 0.0,
            low: None,
            high: None,
            text: String::new(),
        }
    }

    fn row(y: f64, row: &Row, comparison: &Comparison, scale: &Scale) -> Line {
        let name = row_label(row);
        let (figure, interval, _) = ratio(comparison);
        let text = if interval.is_empty() { figure } else { format!("{figure} ({interval})") };
        Line {
            y,
            name: shortened(&name),
            full_name: row.measure.clone(),
            heading: false,
            style: outcome_key(comparison.outcome),
            x: scale.x(comparison.ratio),
            low: comparison.low.map(|low| scale.x(low)),
            high: comparison.high.map(|high| scale.x(high)),
            text,
        }
    }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_CHARS {
        return name.to_owned();
    }
    name.chars().take(NAME_CHARS - 1).chain(['…']).collect()
}

/// A logarithmic axis.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// Around two ratios, with room on both sides.
    fn over(low: f64, high: f64) -> Scale {
        const ROOM: f64 = 1.15;
        Scale { low: (low / ROOM).min(1.0 / ROOM), high: (high * ROOM).max(ROOM) }
    }

    fn x(&self, ratio: f64) -> f64 {
        let share = (ratio.clamp(self.low, self.high) / self.low).ln() / (self.high / self.low).ln();
        let x = NAMES + share * (WIDTH - FIGURES - NAMES);
        (x * 10.0).round() / 10.0
    }

    /// Round ratios on the axis: 1-2-5 over few powers of ten, else the powers.
    fn marks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let steps: &[f64] = match decades {
            d if d < 0.35 => &[1.0, 1.1, 1.2, 1.3, 1.5, 2.0, 5.0, 7.0, 8.0, 9.0],
            d if d < 2.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let all = (first..=last).flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        all.filter(|value| (self.low..=self.high).contains(value)).collect()
    }
}

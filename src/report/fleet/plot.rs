//! Positions in charts without a script: per cent along an axis, so that a chart fills the width of its page.

use crate::analyse::fleet::{HostFinding, HostGroup, HostRunFinding};
use crate::report::words::{moment, seconds};
use minijinja::{Value, context};

/// Margin beyond the outermost marks, per cent of width and height.
const ROOM: f64 = 4.0;
/// Approximate number of lines of an axis.
const TICKS: f64 = 6.0;

/// The scale of an axis, from its least value to its greatest.
pub(super) struct PlotScale {
    least: f64,
    greatest: f64,
}

impl PlotScale {
    pub(super) fn of(values: impl Iterator<Item = f64>) -> PlotScale {
        let (least, greatest) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        PlotScale { least, greatest }
    }

    fn share(&self, value: f64) -> f64 {
        let width = self.greatest - self.least;
        let share = if width > 0.0 { (value - self.least) / width } else { 0.5 };
        ROOM + (100.0 - 2.0 * ROOM) * share
    }

    /// Distance from the left.
    pub(super) fn across(&self, value: f64) -> String {
        format!("{:.2}%", self.share(value))
    }

    /// Distance from the top, where the greatest value is.
    fn down(&self, value: f64) -> String {
        format!("{:.2}%", 100.0 - self.share(value))
    }

    /// Round values between its ends.
    pub(super) fn ticks(&self) -> Vec<Value> {
        let width = self.greatest - self.least;
        if width <= 0.0 || !width.is_finite() {
            return vec![context! { at => self.across(self.least), text => format!("{:.2}", self.least) }];
        }
        let rough = width / TICKS;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|of| of * power).find(|step| *step >= rough).unwrap_or(rough);
        let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
        let first = (self.least / step).ceil() as i64;
        let last = (self.greatest / step).floor() as i64;
        let values = (first..=last).map(|number| number as f64 * step);
        values.map(|value| context! { at => self.across(value), text => format!("{value:.decimals$}") }).collect()
    }
}

/// The hosts of a group on one axis, each with its speed in every case.
pub(super) fn dots(group: &HostGroup) -> Value {
    let speeds = group.hosts.iter().flat_map(|host| host.cases.values().copied().chain([host.speed]));
    let axis = PlotScale::of(speeds.chain([1.0]).chain(group.limit_speed));
    let rows = group.hosts.iter().map(|host| {
        let marks = host.cases.iter();
        let marks =
            marks.map(|(case, speed)| context! { at => axis.across(*speed), text => format!("{case} {speed:.3}") });
        context! {
            host => host.host,
            is_slow => host.is_slow,
            at => axis.across(host.speed),
            speed => format!("{:.3}", host.speed),
            cases => marks.collect::<Vec<_>>(),
        }
    });
    context! {
        ticks => axis.ticks(),
        median => axis.across(1.0),
        limit => group.limit_speed.map(|speed| axis.across(speed)),
        rows => rows.collect::<Vec<_>>(),
    }
}

/// Smallest range of a host's strip, as a share of the median, so that noise does not look like a change.
const SPAN: f64 = 0.1;

/// The hosts of a group over time, on one axis of time; `None` if no host has two measurements. Each host has an axis
/// of speed around its own values, with one range for all, so that changes of a slow host are visible, and equal
/// changes look equal.
pub(super) fn history(group: &HostGroup) -> Option<Value> {
    let (several, single): (Vec<&HostFinding>, Vec<&HostFinding>) =
        group.hosts.iter().partition(|host| host.history.len() > 1);
    let starts: Vec<&str> =
        several.iter().flat_map(|host| &host.history).map(|session| session.started.as_str()).collect();
    let times = PlotScale::of(starts.iter().filter_map(|started| seconds(started)));
    let span = several.iter().map(|host| speeds(host)).map(|axis| axis.greatest - axis.least).fold(SPAN, f64::max);
    let (first, last) = (starts.iter().min()?, starts.iter().max()?);
    let when = if day(first) == day(last) { moment } else { day };
    let rows = several.iter().map(|host| {
        let own = speeds(host);
        let middle = f64::midpoint(own.least, own.greatest);
        strip(host, &times, &PlotScale { least: middle - span / 2.0, greatest: middle + span / 2.0 }, when)
    });
    let rows: Vec<Value> = rows.collect();
    Some(context! { first => when(first), last => when(last), rows, single => single.len() })
}

fn speeds(host: &HostFinding) -> PlotScale {
    PlotScale::of(host.history.iter().map(|session| session.speed))
}

fn strip(host: &HostFinding, times: &PlotScale, speeds: &PlotScale, when: fn(&str) -> String) -> Value {
    let dated = host.history.iter().filter_map(|it| Some((it, seconds(&it.started)?)));
    let dated = dated.map(|(session, at)| (session, [times.across(at), speeds.down(session.speed)]));
    let (sessions, places): (Vec<&HostRunFinding>, Vec<[String; 2]>) = dated.unzip();
    let points = sessions.iter().zip(&places).map(|(session, [x, y])| {
        let HostRunFinding { run, started, speed, trials, .. } = session;
        let title = format!("{}, run {run}: {speed:.3}, {trials} trials", moment(started));
        context! { x, y, in_group => session.in_group, changed => !session.changes.is_empty(), title }
    });
    let changed = host.history.iter().filter(|session| !session.changes.is_empty());
    let changes = changed.map(|session| format!("{}: {}", when(&session.started), session.changes.join("; ")));
    context! {
        host => host.host,
        least => format!("{:.2}", speeds.least),
        greatest => format!("{:.2}", speeds.greatest),
        // Median of the group, if it is on the host's axis.
        median => (speeds.least..=speeds.greatest).contains(&1.0).then(|| speeds.down(1.0)),
        points => points.collect::<Vec<_>>(),
        segments => places.windows(2).map(<[[String; 2]]>::concat).collect::<Vec<_>>(),
        changes => changes.collect::<Vec<_>>(),
    }
}

fn day(rfc3339: &str) -> String {
    rfc3339.chars().take("2026-03-02".len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_round_lines_between_its_ends() {
        let texts = |least: f64, greatest: f64| {
            let ticks = PlotScale::of([least, greatest].into_iter()).ticks();
            ticks.into_iter().map(|tick| tick.get_attr("text").unwrap().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(texts(0.83, 1.04), ["0.85", "0.90", "0.95", "1.00"]);
        assert_eq!(texts(0.97, 1.05), ["0.98", "1.00", "1.02", "1.04"]);
        assert_eq!(texts(0.5, 9.0), ["2", "4", "6", "8"]);
        assert_eq!(texts(1.0, 1.0), ["1.00"]);
    }

    #[test]
    fn the_ends_of_an_axis_keep_away_from_the_edge() {
        let axis = PlotScale::of([0.9, 1.1].into_iter());
        assert_eq!(
            (axis.across(0.9), axis.across(1.1), axis.down(1.1)),
            ("4.00%".into(), "96.00%".into(), "4.00%".into())
        );
    }
}

//! How steady the disk below the stacks was: a sentence for the terminal, a line with its course for the page.

use crate::analyse::findings::DiskCourse;
use crate::units::significant;
use minijinja::{Value, context};
use std::fmt::Write;

/// Size of the drawn course, in its own units.
const WIDTH: f64 = 180.0;
const HEIGHT: f64 = 24.0;

/// The drawing spans at least this factor around the median, so that a steady disk looks steady.
const LEAST_FACTOR: f64 = 3.0;

/// "The disk below the stacks did 4300 synced writes/s around the trials (2100–8700)"; of several disks, each by its folder.
pub(super) fn sentence(disks: &[DiskCourse]) -> Option<String> {
    let figures = disks.iter().map(|disk| (significant(disk.per_s_median), range(disk)));
    match figures.collect::<Vec<_>>().as_slice() {
        [] => None,
        [(median, range)] => {
            Some(format!("The disk below the stacks did {median} synced writes/s around the trials ({range})"))
        }
        several => {
            let named = disks.iter().zip(several);
            let named = named.map(|(disk, (median, range))| format!("{} {median} ({range})", name(disk, disks)));
            Some(format!("Synced writes/s around the trials: {}", named.collect::<Vec<_>>().join(", ")))
        }
    }
}

/// What the page shows.
pub(super) fn lines(disks: &[DiskCourse]) -> Vec<Value> {
    let lines = disks.iter().map(|disk| {
        context! {
            name => if disks.len() > 1 { name(disk, disks) } else { "Disk below the stacks".to_owned() },
            median => significant(disk.per_s_median),
            range => format!("{} in {} probes", range(disk), disk.probes.len()),
            drawing => drawing(disk),
        }
    });
    lines.collect()
}

/// Its folder, with its machine if there are several.
fn name(disk: &DiskCourse, all: &[DiskCourse]) -> String {
    let machine = all.iter().any(|other| other.machine != disk.machine).then(|| format!("{}:", disk.machine));
    machine.unwrap_or_default() + &disk.folder
}

fn range(disk: &DiskCourse) -> String {
    format!("{}–{}", significant(disk.per_s_lowest), significant(disk.per_s_highest))
}

/// The rates over time on a logarithmic scale, the median in the middle, as SVG.
fn drawing(disk: &DiskCourse) -> String {
    let (Some((began, _)), Some((ended, _))) = (disk.probes.first(), disk.probes.last()) else { return String::new() };
    let off = |rate: f64| (rate / disk.per_s_median).ln();
    let half = off(disk.per_s_highest).max(-off(disk.per_s_lowest)).max(LEAST_FACTOR.ln());
    let mut points = String::new();
    for (at, rate) in &disk.probes {
        let x = (at - began) as f64 / (ended - began).max(1) as f64 * WIDTH;
        let y = (1.0 - off(*rate).clamp(-half, half) / half) * HEIGHT / 2.0;
        points.write_fmt(format_args!("{x:.1},{y:.1} ")).ok();
    }
    format!(
        "<svg class=\"course\" viewBox=\"-1 -1 {} {}\" role=\"img\" aria-label=\"rate of each probe over time\">\
         <line x1=\"0\" x2=\"{WIDTH}\" y1=\"{middle}\" y2=\"{middle}\"/><polyline points=\"{}\"/></svg>",
        WIDTH + 2.0,
        HEIGHT + 2.0,
        points.trim_end(),
        middle = HEIGHT / 2.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(rates: &[f64]) -> DiskCourse {
        DiskCourse {
            machine: "db1".to_owned(),
            folder: "/images".to_owned(),
            per_s_median: rates[0],
            per_s_lowest: rates.iter().copied().fold(f64::INFINITY, f64::min),
            per_s_highest: rates.iter().copied().fold(0.0, f64::max),
            probes: rates.iter().enumerate().map(|(at, rate)| (at as u64 * 1_000_000, *rate)).collect(),
        }
    }

    #[test]
    fn a_steady_disk_is_drawn_in_the_middle() {
        let steady = drawing(&course(&[4000.0, 4100.0, 3900.0]));
        assert!(steady.contains("points=\"0.0,12.0 90.0,11.7 180.0,12.3\""), "{steady}");
    }

    #[test]
    fn a_stalled_disk_reaches_the_edge() {
        let stalled = course(&[4000.0, 40.0]);
        assert!(drawing(&stalled).contains("180.0,24.0"), "{}", drawing(&stalled));
        let words = "The disk below the stacks did 4000 synced writes/s around the trials (40–4000)";
        assert_eq!(sentence(std::slice::from_ref(&stalled)).unwrap(), words);
        let other = DiskCourse { folder: "/other".to_owned(), ..course(&[100.0]) };
        let words = "Synced writes/s around the trials: /images 4000 (40–4000), /other 100 (100–100)";
        assert_eq!(sentence(&[stalled, other]).unwrap(), words);
    }
}

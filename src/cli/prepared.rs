//! Output of `plan` about images and drives that are prepared once before the measurements.

use crate::cli::out::wrapped;
use crate::plan::forecast::{DriveLine, Forecast};
use crate::units::{Bytes, Micros, count};

/// One paragraph each: what is written, and how long that takes.
pub fn shown(forecast: &Forecast) -> String {
    images(forecast) + &drives(&forecast.drives)
}

fn images(forecast: &Forecast) -> String {
    let mut text = String::new();
    for line in &forecast.images {
        let (images, bytes) = (count(line.images, "image"), line.bytes);
        let time = match (line.expected_us, line.bytes_per_s) {
            (Some(us), Some(speed)) => {
                format!("at least {}, included above (a short test wrote {}/s)", Micros(us), Bytes(speed as u64))
            }
            _ => "time not included: a test write is not possible there now".to_owned(),
        };
        let shown = format!("{images} in {}, {bytes}, fully written once: {time}", line.folder);
        text.push_str(&wrapped("  ", &shown));
    }
    text
}

fn drives(lines: &[DriveLine]) -> String {
    let shown = lines.iter().map(|line| format!("preconditioning, once per run, included above: {}", drive(line)));
    shown.map(|shown| wrapped("  ", &shown)).collect()
}

/// One line on a drive: what is written to it, and how long that takes.
pub fn drive(line: &DriveLine) -> String {
    let DriveLine { drive, least_rounds, most_rounds, round_us, .. } = line;
    let fill = match (line.written_bytes, line.fill_us) {
        (Some(bytes), Some(us)) => {
            format!("{bytes} in sequence ({} at an assumed {}/s)", Micros(us), Bytes(line.bytes_per_s))
        }
        _ => "2 x its size in sequence (time not included: its size is unknown)".to_owned(),
    };
    let rounds = format!("{least_rounds} to {most_rounds} rounds of {}", Micros(*round_us));
    let whole = format!("; {} to {} in all at that speed", Micros(line.least_us()), Micros(line.most_us()));
    format!("{drive}: {fill}, then {rounds}{}", if line.fill_us.is_some() { &whole } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_listed_with_planned_writes_and_estimated_duration() {
        let line = DriveLine {
            drive: "/dev/sdx, serial S".to_owned(),
            is_image: false,
            written_bytes: Some(Bytes(2_000_000_000_000)),
            bytes_per_s: 500_000_000,
            fill_us: Some(4_000_000_000),
            least_rounds: 5,
            most_rounds: 25,
            round_us: 60_000_000,
        };
        assert_eq!(line.most_us(), 5_500_000_000);
        let shown = |line: DriveLine| drives(&[line]).split_whitespace().collect::<Vec<_>>().join(" ");
        let text = shown(line.clone());
        for part in
            ["S: 1.82 TiB in sequence", "5 to 25 rounds of 60 s", "at an assumed", "71 min 40 s to 91 min 40 s in all"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
        let unknown = shown(DriveLine { written_bytes: None, fill_us: None, ..line });
        assert!(unknown.contains("time not included") && !unknown.contains("in all"), "{unknown}");
    }
}
